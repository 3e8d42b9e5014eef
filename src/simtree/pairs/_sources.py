"""Sources of pairs, and pairs that are given as row numbers.

Inside the library a pair is two different row numbers of a matrix of samples. A *unit* is what bags, folds and bootstraps
keep together: a sample, all samples of an identity, or a group named by the user.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int32]


class DifferentBlock(NamedTuple):
    """Different pairs to be scored together; all pairs of any two units are in one block.

    Parameters
    ----------
    first, second : ndarrays of shape (n_pairs,)
        Row numbers of the two samples of each pair.
    identities : range
        Identities whose samples are compared with those of all later identities, in this order: the pairs of each identity
        form a matrix, as a gallery search requires. Empty if the pairs were given.
    compared : ndarray of bool of shape (n_pairs,), or Ellipsis
        The pairs that count; Ellipsis for all of them.
    """

    first: Index
    second: Index
    identities: range = range(0)
    compared: NDArray[np.bool_] | EllipsisType = ...


class PairSource(ABC):
    """Pairs of rows to learn from or to compare: sampled from labels (`PairSampler`) or given (`IndexPairs`).

    Attributes
    ----------
    labels : ndarray of shape (n_samples,) or None
        Label of each sample as an integer from 0, by first appearance; None if only pairs are known.
    never_pair : ndarray of shape (n_samples,) or None
        Two samples with the same integer here never form a pair; None allows all pairs.
    """

    labels: NDArray[np.int64] | None = None
    never_pair: NDArray[np.int64] | None = None

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Number of pairs that exist."""

    @property
    @abstractmethod
    def n_observations(self) -> int:
        """Number of observations: samples if they are labelled, otherwise pairs."""

    @abstractmethod
    def content(self) -> tuple[NDArray[Any] | None, ...]:
        """Return the arrays that determine the pairs, always in the same order.

        Returns
        -------
        tuple of ndarray or None
            The arrays.
        """

    @abstractmethod
    def sample(
        self,
        n_pairs: int | None,
        rng: np.random.Generator,
        *,
        positive_fraction: float | None = 0.5,
        same_weighting: str = "pairs",
        shuffle: bool = True,
    ) -> IndexPairs:
        """Return pairs to learn from: sampled from labels, or all given pairs.

        Parameters
        ----------
        n_pairs : int or None
            Number of pairs to sample; None for all. Given pairs are always returned in full.
        rng : numpy.random.Generator
            Source of randomness.
        positive_fraction : float or None, default=0.5
            Share of same pairs among sampled pairs; None keeps the proportion in all pairs.
        same_weighting : {"pairs", "identities"}, default="pairs"
            Whether same pairs are sampled uniformly over pairs or over identities.
        shuffle : bool, default=True
            Whether sampled pairs are in random order, otherwise same pairs come first. Nothing inside the library depends on
            their order. Given pairs keep theirs.

        Returns
        -------
        IndexPairs
            The pairs.
        """

    @abstractmethod
    def subsample(self, n_pairs: int, rng: np.random.Generator) -> IndexPairs:
        """Return at most ``n_pairs`` pairs, also if pairs were given.

        Parameters
        ----------
        n_pairs : int
            Maximum number of pairs.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        IndexPairs
            The pairs.
        """

    @abstractmethod
    def limit(
        self, n_pairs: int | None, rng: np.random.Generator, *, positive_fraction: float, weighting: str = "samples"
    ) -> PairSource:
        """Return the source itself, or sampled pairs if the labels have too many.

        Parameters
        ----------
        n_pairs : int or None
            Maximum number of pairs of labelled samples; None for no limit. Given pairs are never reduced.
        rng : numpy.random.Generator
            Source of randomness.
        positive_fraction : float
            Share of same pairs among sampled pairs.
        weighting : {"samples", "identities"}, default="samples"
            Whether pairs of samples are sampled uniformly, or pairs of identities and then one pair of their samples.

        Returns
        -------
        PairSource
            This source, or sampled pairs.
        """

    @abstractmethod
    def restrict(self, chosen: NDArray[np.bool_]) -> PairSource | None:
        """Return the pairs among some of the samples.

        Parameters
        ----------
        chosen : ndarray of bool of shape (n_samples,)
            The samples.

        Returns
        -------
        PairSource or None
            Its row numbers are still those of all samples; None if no same or no different pair is left.
        """

    def draw_bag(
        self, units: NDArray[np.int64] | None, n_drawn: int, rng: np.random.Generator
    ) -> tuple[PairSource | None, NDArray[np.bool_] | None]:
        """Return the pairs within a bag of units, and which samples are in the bag.

        Parameters
        ----------
        units : ndarray of shape (n_samples,) or None
            Unit of each sample, as an integer from 0. None takes each observation as a unit.
        n_drawn : int
            Number of units drawn with replacement; the bag is the set of units drawn.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        pairs : PairSource or None
            The pairs whose two samples are in the bag; None if no same or no different pair is left.
        inside : ndarray of bool of shape (n_samples,) or None
            The samples in the bag; None if pairs were drawn instead.
        """
        units = np.arange(self.n_observations) if units is None else units
        chosen = np.zeros(int(units.max()) + 1, dtype=np.bool_)
        chosen[rng.integers(0, len(chosen), n_drawn)] = True
        inside = chosen[units]
        return self.restrict(inside), inside

    def given(self) -> IndexPairs | None:
        """Return the pairs themselves if they were given.

        Returns
        -------
        IndexPairs or None
            The pairs; None if they are sampled from labels.
        """
        return None

    @abstractmethod
    def members(self) -> tuple[Index, NDArray[np.int64]] | None:
        """Return the rows of each label.

        Returns
        -------
        tuple of ndarrays, or None
            Row numbers sorted by label, and the position at which each label starts, with the total number at the end; None
            if there are no labels.
        """

    @abstractmethod
    def disjoint_groups(self, units: NDArray[np.int64], n_groups: int) -> NDArray[np.int64] | None:
        """Return larger units for pairs that are independent of each other.

        Parameters
        ----------
        units : ndarray of shape (n_samples,)
            Unit of each sample, as an integer from 0.
        n_groups : int
            Number of larger units over which the pairs are distributed.

        Returns
        -------
        ndarray of shape (n_samples,) or None
            The larger unit of each sample; None if two pairs share a unit, so that they are not independent.
        """

    @abstractmethod
    def same_pairs(self) -> IndexPairs:
        """Return each same pair once."""

    @abstractmethod
    def iter_different(self, units: NDArray[np.int64], block_size: int) -> Iterator[DifferentBlock]:
        """Yield all different pairs in blocks, the pairs of any two units in one block.

        Parameters
        ----------
        units : ndarray of shape (n_samples,)
            Unit of each sample, as an integer from 0.
        block_size : int
            Approximate number of pairs per block.

        Yields
        ------
        DifferentBlock
            A block of pairs.
        """

    @abstractmethod
    def n_unit_pairs(self, units: NDArray[np.int64]) -> int:
        """Return the number of pairs of units that are compared by different pairs.

        Parameters
        ----------
        units : ndarray of shape (n_samples,)
            Unit of each sample, as an integer from 0.

        Returns
        -------
        int
            Number of unordered pairs of units.
        """


@dataclass(frozen=True)
class IndexPairs(PairSource):
    """Pairs that are given, as row numbers of a matrix of samples.

    Parameters
    ----------
    first, second : ndarrays of int32 of shape (n_pairs,)
        Row numbers of the two samples of each pair.
    same : ndarray of bool of shape (n_pairs,)
        Whether each pair shares its label.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.pairs import IndexPairs
    >>> pairs = IndexPairs(np.array([0, 0]), np.array([1, 2]), np.array([True, False]))
    >>> pairs.n_same, pairs.has_both_kinds
    (1, True)
    """

    first: Index
    second: Index
    same: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first)

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.first)

    @property
    def n_observations(self) -> int:
        """Number of pairs."""
        return len(self.first)

    def content(self) -> tuple[NDArray[Any] | None, ...]:
        """Return the arrays that determine the pairs: rows, and whether each pair is same.

        Returns
        -------
        tuple of ndarray or None
            The arrays.
        """
        return self.first, self.second, self.same

    @property
    def n_same(self) -> int:
        """Number of same pairs."""
        return int(np.count_nonzero(self.same))

    @property
    def has_both_kinds(self) -> bool:
        """Whether there is at least one same pair and one different pair."""
        return 0 < self.n_same < len(self)

    def take(self, chosen: NDArray[Any]) -> IndexPairs:
        """Return some of the pairs.

        Parameters
        ----------
        chosen : ndarray
            Numbers of the pairs, or a mask.

        Returns
        -------
        IndexPairs
            The chosen pairs.
        """
        return IndexPairs(self.first[chosen], self.second[chosen], self.same[chosen])

    def sample(
        self,
        n_pairs: int | None,
        rng: np.random.Generator,
        *,
        positive_fraction: float | None = 0.5,
        same_weighting: str = "pairs",
        shuffle: bool = True,
    ) -> IndexPairs:
        """Return all pairs: given pairs keep their number, their proportions and their order.

        Parameters
        ----------
        n_pairs, rng, positive_fraction, same_weighting, shuffle : object
            Not used; as in `PairSource.sample`.

        Returns
        -------
        IndexPairs
            The pairs themselves.
        """
        return self

    def subsample(self, n_pairs: int, rng: np.random.Generator) -> IndexPairs:
        """Return all pairs, or ``n_pairs`` of them sampled without replacement.

        Parameters
        ----------
        n_pairs : int
            Maximum number of pairs.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        IndexPairs
            The pairs.
        """
        return self if len(self) <= n_pairs else self.take(rng.choice(len(self), n_pairs, replace=False))

    def limit(
        self, n_pairs: int | None, rng: np.random.Generator, *, positive_fraction: float, weighting: str = "samples"
    ) -> IndexPairs:
        """Return all pairs.

        Parameters
        ----------
        n_pairs, rng, positive_fraction, weighting : object
            Not used; as in `PairSource.limit`.

        Returns
        -------
        IndexPairs
            The pairs themselves.
        """
        return self

    def restrict(self, chosen: NDArray[np.bool_]) -> IndexPairs | None:
        """Return the pairs among some of the samples.

        Parameters
        ----------
        chosen : ndarray of bool of shape (n_samples,)
            The samples.

        Returns
        -------
        IndexPairs or None
            None if no same or no different pair is left.
        """
        pairs = self.take(chosen[self.first] & chosen[self.second])
        return pairs if pairs.has_both_kinds else None

    def draw_bag(
        self, units: NDArray[np.int64] | None, n_drawn: int, rng: np.random.Generator
    ) -> tuple[PairSource | None, NDArray[np.bool_] | None]:
        """Return the pairs within a bag of units; without units, a bag of pairs.

        Parameters
        ----------
        units : ndarray of shape (n_samples,) or None
            Unit of each sample, as an integer from 0.
        n_drawn : int
            Number of units, or of pairs, drawn with replacement.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        pairs : IndexPairs or None
            The pairs of the bag; None if no same or no different pair is left.
        inside : ndarray of bool of shape (n_samples,) or None
            The samples in the bag; None if pairs were drawn.
        """
        if units is not None:
            return super().draw_bag(units, n_drawn, rng)
        pairs = self.take(np.unique(rng.integers(0, len(self), n_drawn)))
        return pairs if pairs.has_both_kinds else None, None

    def given(self) -> IndexPairs:
        """Return these pairs.

        Returns
        -------
        IndexPairs
            The pairs.
        """
        return self

    def members(self) -> None:
        """Return None: the labels are not known."""
        return None

    def disjoint_groups(self, units: NDArray[np.int64], n_groups: int) -> NDArray[np.int64] | None:
        """Return larger units over which the pairs are distributed.

        Parameters
        ----------
        units : ndarray of shape (n_samples,)
            Unit of each sample, as an integer from 0.
        n_groups : int
            Number of larger units.

        Returns
        -------
        ndarray of shape (n_samples,) or None
            The larger unit of each sample; None if two pairs share a unit.
        """
        first, second = units[self.first], units[self.second]
        if np.bincount(first).max(initial=0) > 1 or np.bincount(np.concatenate([first, second])).max(initial=0) > 1:
            return None
        groups = np.zeros_like(units)
        groups[self.first] = groups[self.second] = np.arange(len(self)) % n_groups
        return groups

    def same_pairs(self) -> IndexPairs:
        """Return the same pairs.

        Returns
        -------
        IndexPairs
            The same pairs, in their order.
        """
        return self.take(self.same)

    def iter_different(self, units: NDArray[np.int64], block_size: int) -> Iterator[DifferentBlock]:
        """Yield the different pairs in blocks, the pairs of any two units in one block.

        Parameters
        ----------
        units : ndarray of shape (n_samples,)
            Unit of each sample, as an integer from 0.
        block_size : int
            Approximate number of pairs per block.

        Yields
        ------
        DifferentBlock
            A block of pairs.
        """
        different = self.take(~self.same)
        codes = different._unit_pair_codes(units)
        order = np.argsort(codes, kind="stable")
        starts = np.append(np.flatnonzero(np.diff(codes[order], prepend=-1)), len(order))
        begin = 0
        while begin < len(starts) - 1:
            end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + block_size, side="right")) - 1)
            rows = order[starts[begin] : starts[end]]
            yield DifferentBlock(different.first[rows], different.second[rows])
            begin = end

    def n_unit_pairs(self, units: NDArray[np.int64]) -> int:
        """Return the number of pairs of units that are compared by different pairs.

        Parameters
        ----------
        units : ndarray of shape (n_samples,)
            Unit of each sample, as an integer from 0.

        Returns
        -------
        int
            Number of unordered pairs of units.
        """
        return len(np.unique(self.take(~self.same)._unit_pair_codes(units)))

    def _unit_pair_codes(self, units: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return an integer that identifies the unordered pair of units of each pair."""
        u, v = units[self.first], units[self.second]
        return np.asarray(np.minimum(u, v) * (int(units.max()) + 1) + np.maximum(u, v))
