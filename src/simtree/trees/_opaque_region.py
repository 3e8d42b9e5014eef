"""Regions of fitted classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import explained_overflow
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.trees._filled import FilledCoordinates

# Number of pairs whose coordinates are held as a matrix at a time.
CHUNK = 50_000


@dataclass(frozen=True)
class OpaqueRegion:
    """Pairs that a fitted scikit-learn classifier predicts to be same, from some of their (scaled) coordinates.

    Parameters
    ----------
    classifier : scikit-learn classifier
        The fitted classifier.
    coordinates : ndarray of int
        Indices of the coordinates that it was fitted on.
    filled : FilledCoordinates, optional
        How coordinates that a pair lacks are filled in; required if samples may lack values.
    """

    classifier: Any
    coordinates: NDArray[np.int64]
    filled: FilledCoordinates | None = None
    kind: ClassVar[str] = "opaque"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs, *, unseen_inside: bool = False) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.
        unseen_inside : bool, default=False
            Where pairs go whose state of missing values did not occur in training.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """
        inside = np.empty(pairs.n_pairs, dtype=np.bool_)
        for start in range(0, pairs.n_pairs, CHUNK):
            rows = slice(start, start + CHUNK)
            values = self.values(pair_map, pairs.take(rows))
            is_known = None if self.filled is None or not pairs.lacks_values else self.filled.is_known(values)
            values = values if self.filled is None else self.filled.table(values)
            with explained_overflow(values, "the classifier ", self.classifier):
                inside[rows] = self.classifier.predict(values)
            if is_known is not None:
                inside[rows][~is_known] = unseen_inside
        return inside

    def values(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the coordinates that the classifier was fitted on, infinite in a state of missing values.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of shape (n_pairs, n_coordinates)
            One row per pair.
        """
        return pair_map.values(pairs)[:, self.coordinates]

    def feature_shares(self, pair_map: CoordinateSet, present: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Raise an error: the shares of features in an arbitrary classifier are not known.

        Parameters
        ----------
        pair_map : CoordinateSet
            Not used.
        present : ndarray of bool of shape (n_features,), optional
            Not used.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError(
            "feature_importances_ is not available for a tree grown with ClassifierSplitter; use another splitter, "
            "or compute permutation importances from the score."
        )
