"""Sampling of pairs of labelled samples: all n(n-1)/2 pairs or a random subset of them, never a sample with itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._kernels import pairs as kernels
from simtree._utils.matrices import check_unmasked
from simtree._utils.validation import check_choice, check_integer, check_real, count
from simtree.pairs._labels import encode_labels, n_missing
from simtree.pairs._sources import DifferentBlock, Index, IndexPairs, PairSource

# Maximum number of different pairs drawn at a time if `never_pair` may reject some of them.
MAX_DRAWN_AT_ONCE = 1 << 22
# How often the samples of two identities are drawn anew if they never pair.
MAX_TRIES = 20


class PairSampler(PairSource):
    """Sample pairs of labelled samples, exactly uniformly for any number of samples per label.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Label of each sample, of any type that can be sorted or hashed.
    never_pair : array-like of shape (n_samples,), optional
        Samples that share a value here never form a pair, such as those of one recording or of one session.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Label of each sample as an integer, by first appearance.
    never_pair : ndarray of shape (n_samples,) or None
        The values of ``never_pair`` as integers.
    n_samples : int
        Number of samples.
    n_same_pairs, n_different_pairs : int
        Numbers of unordered same and different pairs that exist.

    Examples
    --------
    >>> from simtree.pairs import PairSampler
    >>> sampler = PairSampler(["ann", "bob", "ann", "bob", "bob"])
    >>> sampler.n_same_pairs, sampler.n_different_pairs
    (4, 6)
    >>> len(sampler.all_pairs())
    10
    >>> len(PairSampler(["ann", "bob", "ann", "bob", "bob"], never_pair=[1, 1, 2, 3, 3]).all_pairs())
    8
    """

    labels: NDArray[np.int64]

    def __init__(self, y: ArrayLike, *, never_pair: ArrayLike | None = None) -> None:
        labels = encode_labels(y)
        sizes = np.bincount(labels)
        n = len(labels)
        self.labels = labels
        self.never_pair = None if never_pair is None else _sharing(never_pair, n)
        # Samples of a label that share a value of never_pair are adjacent.
        order = np.argsort(labels, kind="stable") if self.never_pair is None else np.lexsort((self.never_pair, labels))
        self._order = order.astype(np.int32)
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._sizes = sizes.astype(np.int64)
        self.n_samples = n
        self._n_across = int((self._sizes * (n - self._sizes)).sum()) // 2
        self.n_same_pairs = int((self._sizes * (self._sizes - 1)).sum()) // 2
        self.n_different_pairs = self._n_across
        if self.never_pair is not None:
            self._blocks = _runs(labels[order], self.never_pair[order])
            sharing, within = np.bincount(self.never_pair).astype(np.int64), np.diff(self._blocks)
            n_within = int((within * (within - 1)).sum()) // 2
            self.n_same_pairs -= n_within
            self.n_different_pairs -= int((sharing * (sharing - 1)).sum()) // 2 - n_within
        if len(sizes) < 2:
            raise ValueError(f"y has {len(sizes)} class; different pairs need at least 2 classes.")
        if self.never_pair is not None and 0 in (self.n_same_pairs, self.n_different_pairs):
            kind = "same" if self.n_same_pairs == 0 else "different"
            raise ValueError(f"never_pair allows no {kind} pair; give samples with more distinct values.")
        if self.n_same_pairs == 0:
            raise ValueError(f"y has {len(sizes)} classes but no class with two members; same pairs need one.")

    @property
    def n_pairs(self) -> int:
        """Number of unordered pairs that exist."""
        return self.n_same_pairs + self.n_different_pairs

    def restrict(self, chosen: NDArray[np.bool_]) -> PairSampler | None:
        """Return a sampler of the pairs among some of the samples.

        Parameters
        ----------
        chosen : ndarray of bool of shape (n_samples,)
            The samples.

        Returns
        -------
        PairSampler or None
            Its row numbers are still those of all samples; None if no same or no different pair is left.
        """
        rows = np.flatnonzero(chosen)
        try:
            sampler = PairSampler(self.labels[rows], never_pair=None if self.never_pair is None else self.never_pair[rows])
        except ValueError:
            return None
        sampler._order = rows[sampler._order].astype(np.int32)
        sampler.never_pair = self.never_pair  # by row of all samples, as pairs are
        return sampler

    @property
    def n_observations(self) -> int:
        """Number of samples."""
        return self.n_samples

    def content(self) -> tuple[NDArray[Any] | None, ...]:
        """Return the arrays that determine the pairs: labels, and what never forms a pair.

        Returns
        -------
        tuple of ndarray or None
            The arrays.
        """
        return self.labels, self.never_pair

    def subsample(self, n_pairs: int, rng: np.random.Generator) -> IndexPairs:
        """Return at most ``n_pairs`` pairs, half of them same pairs.

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
        return self.sample(n_pairs, rng, shuffle=False)

    def limit(
        self, n_pairs: int | None, rng: np.random.Generator, *, positive_fraction: float, weighting: str = "samples"
    ) -> PairSource:
        """Return the sampler itself, or sampled pairs if there are more than ``n_pairs``.

        Parameters
        ----------
        n_pairs : int or None
            Maximum number of pairs; None for no limit.
        rng : numpy.random.Generator
            Source of randomness.
        positive_fraction : float
            Share of same pairs among sampled pairs.
        weighting : {"samples", "identities"}, default="samples"
            ``"identities"`` samples pairs of identities uniformly, and then one pair of their samples.

        Returns
        -------
        PairSource
            The sampler, or sampled pairs.
        """
        if n_pairs is None or self.n_pairs <= check_integer("n_pairs", n_pairs, 2):
            return self
        if weighting == "identities":
            n_same = min(max(round(n_pairs * positive_fraction), 1), n_pairs - 1)
            same = self._draw_same_by_identity(n_same, rng) if n_same < self.n_same_pairs else self._all_same()
            return _join(same, self._draw_different_by_identity(n_pairs - n_same, rng))
        return self.sample(n_pairs, rng, positive_fraction=positive_fraction, shuffle=False)

    def members(self) -> tuple[Index, NDArray[np.int64]]:
        """Return the rows of each label.

        Returns
        -------
        rows : ndarray of int32 of shape (n_samples,)
            Row numbers sorted by label.
        starts : ndarray of shape (n_labels + 1,)
            Position at which each label starts, with the number of samples at the end.
        """
        return self._order, self._starts

    def disjoint_groups(self, units: NDArray[np.int64], n_groups: int) -> None:
        """Return None: pairs share samples.

        Parameters
        ----------
        units, n_groups : ndarray and int
            Not used.
        """
        return None

    def same_pairs(self) -> IndexPairs:
        """Return each unordered same pair once.

        Returns
        -------
        IndexPairs
            The same pairs.
        """
        first, second = self._all_same()
        return IndexPairs(first, second, np.ones(len(first), dtype=np.bool_))

    def all_pairs(self) -> IndexPairs:
        """Return each unordered pair once.

        Returns
        -------
        IndexPairs
            The same pairs, then the different pairs; ``sample(None, rng)`` returns them in random order.
        """
        return _join(self._all_same(), self._all_different())

    def sample(
        self,
        n_pairs: int | None,
        rng: np.random.Generator,
        *,
        positive_fraction: float | None = 0.5,
        same_weighting: str = "pairs",
        shuffle: bool = True,
    ) -> IndexPairs:
        """Sample pairs with replacement, in random order.

        If no more same pairs exist than are asked for, each of them is returned once; so for different pairs.

        Parameters
        ----------
        n_pairs : int or None
            Number of pairs; None, or at least as many as exist, returns all pairs.
        rng : numpy.random.Generator
            Source of randomness.
        positive_fraction : float or None, default=0.5
            Share of same pairs; None samples uniformly from all pairs.
        same_weighting : {"pairs", "identities"}, default="pairs"
            ``"pairs"`` samples same pairs uniformly, so that a label with m samples has weight m(m-1). ``"identities"`` samples
            a label with at least two samples uniformly and then one of its pairs; such pairs may repeat.
        shuffle : bool, default=True
            Whether the pairs are in random order, so that folds of consecutive pairs have both kinds. If False, the same pairs
            come first, then the different pairs. Which pairs are sampled does not depend on it.

        Returns
        -------
        IndexPairs
            The pairs.

        Examples
        --------
        >>> import numpy as np
        >>> from simtree.pairs import PairSampler
        >>> sampler = PairSampler([0, 0, 0, 0, 1, 1, 1, 1])
        >>> pairs = sampler.sample(10, np.random.default_rng(0), positive_fraction=0.3)
        >>> len(pairs), pairs.n_same
        (10, 3)
        """
        check_drawing(n_pairs, positive_fraction, same_weighting)
        by_identity = same_weighting == "identities"
        n_all = self.n_pairs
        if (n_pairs is None or n_pairs >= n_all) and not by_identity:
            return _shuffled(self.all_pairs(), rng) if shuffle else self.all_pairs()
        n_pairs = n_all if n_pairs is None else n_pairs
        if positive_fraction is None:
            # The number of same pairs among n_pairs draws from all pairs is binomial; given it, both are sampled uniformly.
            n_same = int(rng.binomial(n_pairs, self.n_same_pairs / n_all))
        else:
            n_same = min(max(round(n_pairs * positive_fraction), 1), n_pairs - 1)
        same = self._draw_same_by_identity(n_same, rng) if by_identity else self._draw_same(n_same, rng)
        pairs = _join(same, self._draw_different(n_pairs - n_same, rng))
        return _shuffled(pairs, rng) if shuffle else pairs

    def iter_different(self, units: NDArray[np.int64], block_size: int) -> Iterator[DifferentBlock]:
        """Yield the different pairs in blocks: samples of some labels with those of later labels.

        Parameters
        ----------
        units : ndarray of shape (n_samples,)
            Not used: the pairs of any two labels are in one block.
        block_size : int
            Approximate number of pairs per block.

        Yields
        ------
        DifferentBlock
            A block of pairs.
        """
        starts = self._starts
        n_identities = len(starts) - 1
        sizes = np.diff(starts) * (starts[-1] - starts[1:])
        begin = 0
        while begin < n_identities - 1:
            end = begin + max(1, int(np.searchsorted(np.cumsum(sizes[begin:]), block_size, side="right")))
            end = min(end, n_identities - 1)
            first, second = self.pairs_with_later(range(begin, end))
            compared = self.allowed(first, second)
            if compared is None or compared.any():
                yield DifferentBlock(first, second, range(begin, end), ... if compared is None else compared)
            begin = end

    def pairs_with_later(self, identities: range) -> tuple[Index, Index]:
        """Return all pairs of the samples of some labels with those of later labels, label by label.

        Parameters
        ----------
        identities : range
            Labels, as integers.

        Returns
        -------
        first : ndarray of shape (n_pairs,)
            Row numbers of the samples of these labels.
        second : ndarray of shape (n_pairs,)
            Row numbers of the samples of later labels.
        """
        order, starts = self._order, self._starts
        parts = []
        for identity in identities:
            own, later = order[starts[identity] : starts[identity + 1]], order[starts[identity + 1] :]
            parts.append((np.repeat(own, len(later)), np.tile(later, len(own))))
        first, second = (np.concatenate(column) for column in zip(*parts, strict=True))
        return first, second

    def n_unit_pairs(self, units: NDArray[np.int64]) -> int:
        """Return the number of unordered pairs of labels.

        Parameters
        ----------
        units : ndarray of shape (n_samples,)
            Not used.

        Returns
        -------
        int
            Number of unordered pairs of labels.
        """
        n_identities = len(self._sizes)
        return n_identities * (n_identities - 1) // 2

    def allowed(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return which pairs of rows ``never_pair`` allows.

        Parameters
        ----------
        first, second : ndarrays of shape (n_pairs,)
            Row numbers.

        Returns
        -------
        ndarray of bool of shape (n_pairs,) or None
            Whether each pair is allowed; None if all are.
        """
        return None if self.never_pair is None else self.never_pair[first] != self.never_pair[second]

    def _draw_same(self, n: int, rng: np.random.Generator) -> tuple[Index, Index]:
        if n >= self.n_same_pairs:
            return self._all_same()
        offsets = self._same_offsets()
        return self._same_from_numbers(rng.integers(0, offsets[-1], n), offsets)

    def _draw_same_by_identity(self, n: int, rng: np.random.Generator) -> tuple[Index, Index]:
        offsets = self._same_offsets()
        sizes = np.diff(offsets)
        identities = np.flatnonzero(sizes)[rng.integers(0, np.count_nonzero(sizes), n)]
        return self._same_from_numbers(offsets[identities] + rng.integers(0, sizes[identities]), offsets)

    def _same_offsets(self) -> NDArray[np.int64]:
        """Return the first number of the ordered same pairs of each label; a pair has two numbers, one per order."""
        if self.never_pair is None:
            return _offsets(self._sizes * (self._sizes - 1))
        return self._partner_offsets()[self._starts]

    def _partner_offsets(self) -> NDArray[np.int64]:
        """Return the same per sample, in the order of `members`: partners are those of the label that may pair with it."""
        within = np.diff(self._blocks)
        return _offsets(np.repeat(self._sizes, self._sizes) - np.repeat(within, within))

    def _same_from_numbers(self, numbers: NDArray[np.int64], offsets: NDArray[np.int64]) -> tuple[Index, Index]:
        first, second = _empty(len(numbers))
        if self.never_pair is None:
            kernels.fill_same_pairs(numbers, offsets, self._starts, self._order, first, second)
            return first, second
        partners = self._partner_offsets()
        sample = np.searchsorted(partners, numbers, side="right") - 1
        block = np.searchsorted(self._blocks, sample, side="right") - 1
        partner = self._starts[np.searchsorted(offsets, numbers, side="right") - 1] + numbers - partners[sample]
        partner += np.where(partner >= self._blocks[block], np.diff(self._blocks)[block], 0)
        return self._order[sample], self._order[partner]

    def _draw_different(self, n: int, rng: np.random.Generator) -> tuple[Index, Index]:
        if n >= self.n_different_pairs:
            return self._all_different()
        offsets = _offsets(self._sizes * (self.n_samples - self._sizes))
        first, second = _empty(n)
        done = 0
        while done < n:  # once, unless never_pair rejects some of the drawn pairs
            expected = -(-(n - done) * self._n_across // self.n_different_pairs)
            drawn = _empty(expected if self.never_pair is None else min(expected, MAX_DRAWN_AT_ONCE))
            numbers = rng.integers(0, offsets[-1], len(drawn[0]))
            kernels.fill_different_pairs(numbers, offsets, self._starts, self._order, *drawn)
            left, right = (rows[: n - done] for rows in self._without_sharing(*drawn))
            first[done : done + len(left)], second[done : done + len(left)] = left, right
            done += len(left)
        return first, second

    def _draw_different_by_identity(self, n: int, rng: np.random.Generator) -> tuple[Index, Index]:
        """Return one pair of samples for each of some pairs of identities, sampled uniformly."""
        n_identities = len(self._sizes)
        u, v = rng.integers(0, n_identities, n), rng.integers(0, n_identities - 1, n)
        v += v >= u
        first, second = _empty(n)
        left = np.arange(n)
        # Samples that never pair are drawn anew for the same two identities; if these hardly ever pair, they are left out.
        for _ in range(MAX_TRIES):
            for rows, identities in ((first, u[left]), (second, v[left])):
                rows[left] = self._order[self._starts[identities] + rng.integers(0, self._sizes[identities])]
            if self.never_pair is None:
                return first, second
            left = left[self.never_pair[first[left]] == self.never_pair[second[left]]]
        return np.delete(first, left), np.delete(second, left)

    def _all_same(self) -> tuple[Index, Index]:
        first, second = _empty(int((self._sizes * (self._sizes - 1)).sum()) // 2)
        kernels.fill_all_same_pairs(self._starts, self._order, first, second)
        return self._without_sharing(first, second)

    def _all_different(self) -> tuple[Index, Index]:
        first, second = _empty(self._n_across)
        kernels.fill_all_different_pairs(self._starts, self._order, first, second)
        return self._without_sharing(first, second)

    def _without_sharing(self, first: Index, second: Index) -> tuple[Index, Index]:
        chosen = self.allowed(first, second)
        return (first, second) if chosen is None else (first[chosen], second[chosen])


def check_drawing(n_pairs: int | None, positive_fraction: float | None, same_weighting: str) -> None:
    """Raise if a parameter of `PairSampler.sample` is invalid."""
    if n_pairs is not None:
        check_integer("n_pairs", n_pairs, 2)
    if positive_fraction is not None:
        check_real("positive_fraction", positive_fraction, 0.0, 1.0, open_low=True, open_high=True)
    check_choice("same_weighting", same_weighting, ("pairs", "identities"))


def _sharing(never_pair: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    """Return the values of ``never_pair`` as integers."""
    check_unmasked("never_pair", never_pair)
    values = np.asarray(never_pair)
    if values.shape != (n_samples,):
        raise ValueError(f"never_pair has shape {values.shape}; give one value per sample, {n_samples} in all.")
    if n_missing(values):
        missing = count(n_missing(values), "missing value")
        raise ValueError(f"never_pair holds {missing}; give each sample a value, a unique one if it may pair with all others.")
    return encode_labels(values)


def _runs(*keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where runs of equal entries start, with the total length at the end."""
    changes = np.any([np.diff(key, prepend=-1) != 0 for key in keys], axis=0)
    return np.append(np.flatnonzero(changes), len(changes)).astype(np.int64)


def _empty(n: int) -> tuple[Index, Index]:
    return np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _join(same: tuple[Index, Index], different: tuple[Index, Index]) -> IndexPairs:
    labels = np.zeros(len(same[0]) + len(different[0]), dtype=np.bool_)
    labels[: len(same[0])] = True
    return IndexPairs(np.concatenate([same[0], different[0]]), np.concatenate([same[1], different[1]]), labels)


def _shuffled(pairs: IndexPairs, rng: np.random.Generator) -> IndexPairs:
    return pairs.take(rng.permutation(len(pairs)))
