"""The interface of splitters (LeafRank): given the pairs of one cell, return a symmetric region, or None."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.trees._binning import TrainingPairs
from simtree.trees._regions import Region


class Split(NamedTuple):
    """A region and a mask of the pairs of the cell that it contains.

    Parameters
    ----------
    region : Region
        The symmetric region of the more similar pairs.
    inside : ndarray of bool of shape (n_pairs,)
        Whether each pair of the cell lies in the region.
    """

    region: Region
    inside: NDArray[np.bool_]


@dataclass(frozen=True)
class Cell:
    """One cell of the tree being grown, as seen by a splitter.

    Parameters
    ----------
    pairs : TrainingPairs
        Pairs of the tree; those of the cell are ``[start, stop)``.
    start, stop : int
        Segment of the cell.
    n_same, n_different : int
        Number of same and different pairs in the cell; both positive.
    coordinates : ndarray of int
        Coordinates that may be used, in increasing order.
    min_pairs : int
        Minimum number of pairs on each side; a split with fewer is rejected.
    rng : numpy.random.Generator
        Source of all randomness.
    """

    pairs: TrainingPairs
    start: int
    stop: int
    n_same: int
    n_different: int
    coordinates: NDArray[np.int64]
    min_pairs: int
    rng: np.random.Generator

    @property
    def n_pairs(self) -> int:
        """Number of pairs in the cell."""
        return self.stop - self.start

    @property
    def same(self) -> NDArray[np.bool_]:
        """Whether each pair of the cell is a same pair."""
        return self.pairs.same[self.start : self.stop]

    @property
    def codes(self) -> NDArray[np.unsignedinteger[Any]]:
        """Bin codes of the pairs, of shape ``(n_pairs, n_coordinates)``; available if the splitter is `binned`."""
        return self.pairs.codes[self.start : self.stop]

    @property
    def sample_pairs(self) -> SamplePairs:
        """Pairs of the cell with their samples."""
        return self.pairs.sample_pairs(self.start, self.stop)

    @property
    def pair_map(self) -> CoordinateSet:
        """All coordinates of a pair."""
        return self.pairs.pair_map

    @property
    def features(self) -> NDArray[np.int64]:
        """Features that may be used: those of the allowed coordinates of single features."""
        columns = self.pair_map.columns[self.coordinates][~self.pair_map.is_pairwise[self.coordinates]]
        return np.unique(columns[columns < self.pair_map.n_features]).astype(np.int64)

    @property
    def weight_same(self) -> float:
        """Weight of a same pair: the paper's cost 1 - p of a false negative, times the number of pairs (an integer)."""
        return float(self.n_different)

    @property
    def weight_different(self) -> float:
        """Weight of a different pair: the paper's cost p of a false positive, times the number of pairs (an integer)."""
        return float(self.n_same)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each pair, with mean one; same and different pairs have equal total weight."""
        return np.where(self.same, 0.5 * self.n_pairs / self.n_same, 0.5 * self.n_pairs / self.n_different)

    def sample(self, max_samples: int) -> tuple[SamplePairs, NDArray[np.bool_], NDArray[np.float64]]:
        """Return pairs of the cell with labels and weights, a random subsample if there are more than ``max_samples``.

        Parameters
        ----------
        max_samples : int
            Maximum number of pairs, drawn without replacement.

        Returns
        -------
        pairs : SamplePairs
            The pairs with their samples.
        same : ndarray of bool of shape (n_pairs,)
            Whether each pair is a same pair.
        weights : ndarray of shape (n_pairs,)
            Weight of each pair.
        """
        if self.n_pairs <= max_samples:
            return self.sample_pairs, self.same, self.weights
        rows = np.sort(self.rng.choice(self.n_pairs, max_samples, replace=False))
        return self.sample_pairs.take(rows), self.same[rows], self.weights[rows]

    def with_directions(self, directions: NDArray[np.float64]) -> Cell:
        """Return a copy of the cell with codes of its allowed coordinates, followed by oblique ones along directions.

        Parameters
        ----------
        directions : ndarray of shape (n_directions, n_features)
            Directions of the oblique coordinates.

        Returns
        -------
        Cell
            The copy, with the same pairs.
        """
        segment = slice(self.start, self.stop)
        joined = self.pairs.with_directions(segment, self.coordinates, directions)
        coordinates = np.arange(joined.codes.shape[1])
        return Cell(joined, 0, self.n_pairs, self.n_same, self.n_different, coordinates, self.min_pairs, self.rng)

    def split_by(self, region: Region) -> Split:
        """Return the split of the cell by a region.

        Parameters
        ----------
        region : Region
            The region of the more similar pairs.

        Returns
        -------
        Split
            The region, and the pairs of the cell inside it.
        """
        inside = region.contains(self.pair_map, self.sample_pairs, unseen_inside=True)
        if self.pairs.lacks_values and 2 * np.count_nonzero(inside) < self.n_pairs:
            # As in the tree, states that a subsample of the cell did not show go where most pairs of the cell go.
            inside = region.contains(self.pair_map, self.sample_pairs)
        return Split(region, inside)


class Splitter(BaseEstimator, ABC):
    """Base class of all splitters.

    A splitter is a scikit-learn estimator, so that its parameters can be tuned as ``splitter__name``. It is stateless:
    `split` may be called from several threads.
    """

    #: Coordinates used if the tree does not specify any.
    default_coordinates: ClassVar[tuple[str, ...]] = ("abs_diff", "sum")
    #: Whether the splitter uses `Cell.codes`.
    binned: ClassVar[bool] = True
    #: Whether samples may lack values (NaN).
    takes_missing: ClassVar[bool] = False
    #: Whether values of features are squared, which limits how large they may be.
    squares: ClassVar[bool] = False

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise an error if a parameter is invalid or the coordinates are unsuitable.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the pairs.

        Raises
        ------
        ValueError or TypeError
            With the parameter, its value and the remedy.
        """

    @abstractmethod
    def split(self, cell: Cell) -> Split | None:
        """Split the cell into its more and its less similar pairs.

        Parameters
        ----------
        cell : Cell
            The cell to split.

        Returns
        -------
        Split or None
            The region of the more similar pairs and the pairs inside; None if no split improves the AUC.
        """
