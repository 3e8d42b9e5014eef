"""The contract of LeafRank: a splitter is given the pairs of one cell and returns a symmetric region of them, or None."""

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
    """A region and which pairs of the cell it holds."""

    region: Region
    inside: NDArray[np.bool_]


@dataclass(frozen=True)
class Cell:
    """One cell of the tree being grown, as a splitter sees it.

    Parameters
    ----------
    pairs : TrainingPairs
        The pairs of the tree; those of the cell are ``[start, stop)``.
    start, stop : int
        The segment of the cell.
    n_same, n_different : int
        How many pairs of each kind the cell holds; both positive.
    coordinates : ndarray of int
        Coordinates that may be used, in increasing order.
    min_pairs : int
        A split with fewer pairs on a side will be refused.
    rng : numpy.random.Generator
        The only source of randomness.
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
        """How many pairs the cell holds."""
        return self.stop - self.start

    @property
    def same(self) -> NDArray[np.bool_]:
        """Whether each pair of the cell is a same pair."""
        return self.pairs.same[self.start : self.stop]

    @property
    def codes(self) -> NDArray[np.unsignedinteger[Any]]:
        """Bins of the cell's pairs, ``(n_pairs, n_coordinates)``; there if the splitter is `binned`."""
        return self.pairs.codes[self.start : self.stop]

    @property
    def sample_pairs(self) -> SamplePairs:
        """The cell's pairs with their points."""
        return self.pairs.sample_pairs(self.start, self.stop)

    @property
    def pair_map(self) -> CoordinateSet:
        """All coordinates of a pair."""
        return self.pairs.pair_map

    @property
    def features(self) -> NDArray[np.int64]:
        """Features that may be used: those that an allowed coordinate looks at alone."""
        columns = self.pair_map.columns[self.coordinates][~self.pair_map.of_whole[self.coordinates]]
        return np.unique(columns[columns < self.pair_map.n_features]).astype(np.int64)

    @property
    def weight_same(self) -> float:
        """Weight of a same pair. The paper's cost 1 - p of a false negative, times the number of pairs: a whole number."""
        return float(self.n_different)

    @property
    def weight_different(self) -> float:
        """Weight of a different pair: the paper's cost p of a false positive, times the number of pairs."""
        return float(self.n_same)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each pair, with mean one; same and different pairs weigh as much in total."""
        return np.where(self.same, 0.5 * self.n_pairs / self.n_same, 0.5 * self.n_pairs / self.n_different)

    def sample(self, max_samples: int) -> tuple[SamplePairs, NDArray[np.bool_], NDArray[np.float64]]:
        """Pairs, labels and weights of the cell, or of that many of its pairs drawn without replacement."""
        if self.n_pairs <= max_samples:
            return self.sample_pairs, self.same, self.weights
        rows = np.sort(self.rng.choice(self.n_pairs, max_samples, replace=False))
        return self.sample_pairs.take(rows), self.same[rows], self.weights[rows]

    def with_directions(self, directions: NDArray[np.float64]) -> Cell:
        """The cell by itself, with codes of its allowed coordinates and then of oblique ones along these directions."""
        segment = slice(self.start, self.stop)
        joined = self.pairs.with_directions(segment, self.coordinates, directions)
        coordinates = np.arange(joined.codes.shape[1])
        return Cell(joined, 0, self.n_pairs, self.n_same, self.n_different, coordinates, self.min_pairs, self.rng)

    def split_by(self, region: Region) -> Split:
        """The split of the cell by a region."""
        return Split(region, region.contains(self.pair_map, self.sample_pairs))


class Splitter(BaseEstimator, ABC):
    """Base of all splitters; a scikit-learn estimator, so that its parameters can be searched as ``splitter__name``.

    A splitter keeps no state: `split` may be called from several threads.
    """

    #: Coordinates used where the tree does not name any.
    default_coordinates: ClassVar[tuple[str, ...]] = ("abs_diff", "sum")
    #: Whether `Cell.codes` is used.
    binned: ClassVar[bool] = True
    #: Whether values of features are squared, which limits how large they may be.
    squares: ClassVar[bool] = False

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise a ValueError or TypeError if a parameter is wrong, or if the coordinates do not suit the splitter."""

    @abstractmethod
    def split(self, cell: Cell) -> Split | None:
        """Split the cell into its more and its less similar pairs, or return None if there is nothing to gain."""
