"""Splitter by any scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from simtree._utils.matrices import explained_overflow
from simtree._utils.validation import check_integer
from simtree.pairs._coordinates import CoordinateSet
from simtree.splitters._base import Cell, Split, Splitter
from simtree.trees._filled import FilledCoordinates
from simtree.trees._opaque_region import OpaqueRegion


class ClassifierSplitter(Splitter):
    """Split each cell by a scikit-learn classifier, fitted on the coordinates of its pairs.

    A classifier that accepts ``sample_weight`` is fitted with weights that balance same and different pairs. Any other
    classifier (such as nearest neighbours, or a pipeline) is fitted on equally many same and different pairs, after
    subsampling the more frequent of the two without replacement.

    A classifier needs complete numbers: coordinates that a pair lacks are replaced by their mean over the pairs that have them,
    and a further column for each state of a feature, missing in one sample or in both, tells where.

    A model that contains fitted classifiers cannot be saved to a model file.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The classifier; a clone is fitted in each cell.
    min_samples : int, default=10
        Minimum number of same pairs and of different pairs in a cell that is split. A classifier of very few pairs would
        overfit, and some cannot be fitted at all.
    max_samples : int, default=100_000
        Maximum number of pairs that the classifier is fitted on; larger cells are subsampled.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from simtree import ClassifierSplitter, SimilarityTree
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]
    >>> splitter = ClassifierSplitter(KNeighborsClassifier(n_neighbors=1), min_samples=1)
    >>> SimilarityTree(max_depth=1, splitter=splitter, random_state=0).fit(X, y).auc_
    1.0
    """

    binned = False
    takes_missing = True
    squares = True

    def __init__(self, estimator: Any, *, min_samples: int = 10, max_samples: int = 100_000) -> None:
        self.estimator = estimator
        self.min_samples = min_samples
        self.max_samples = max_samples

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise an error if the estimator is not a classifier, or another parameter is invalid.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the pairs.
        """
        if isinstance(self.estimator, type) or not is_classifier(self.estimator):
            raise TypeError(f"estimator={self.estimator!r} is not a scikit-learn classifier; give an instance of one.")
        check_integer("min_samples", self.min_samples, 1)
        check_integer("max_samples", self.max_samples, 2)

    def split(self, cell: Cell) -> Split | None:
        """Split the cell: the inside are the pairs that the classifier predicts to be same.

        Parameters
        ----------
        cell : Cell
            The cell to split.

        Returns
        -------
        Split or None
            The region of the more similar pairs and the pairs inside; None if no split improves the AUC.
        """
        pairs, same, weights = cell.sample(self.max_samples)
        if min(np.count_nonzero(same), np.count_nonzero(~same)) < self.min_samples:
            return None
        classifier = clone(self.estimator)
        seeds = {
            name: int(cell.rng.integers(2**31))
            for name, value in sorted(classifier.get_params().items())
            if value is None and (name == "random_state" or name.endswith("__random_state"))
        }
        classifier.set_params(**seeds)
        coordinates = OpaqueRegion(classifier, cell.coordinates).values(cell.pair_map, pairs)
        filled = FilledCoordinates.fit(cell.pair_map, cell.coordinates, coordinates)
        region = OpaqueRegion(classifier, cell.coordinates, filled)
        values = filled.table(coordinates)
        if has_fit_parameter(classifier, "sample_weight"):
            chosen: dict[str, Any] = {"X": values, "y": same, "sample_weight": weights}
        else:
            rows = _balanced_rows(same, cell.rng)
            chosen = {"X": values[rows], "y": same[rows]}
        with explained_overflow(values, "estimator=", self.estimator):
            classifier.fit(**chosen)
        return cell.split_by(region)


def _balanced_rows(same: np.ndarray[Any, np.dtype[np.bool_]], rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return equally many rows of same and different pairs, all of the rarer ones, in increasing order."""
    by_label = np.flatnonzero(same), np.flatnonzero(~same)
    n = min(len(rows) for rows in by_label)
    return np.sort(np.concatenate([rng.choice(rows, n, replace=False) for rows in by_label]))
