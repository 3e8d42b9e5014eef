"""Bagging: the samples that each tree of a forest sees, and out-of-bag scores of pairs.

A bag is a set of distinct *units*: samples, all samples of a label, or the user's ``groups``. A pair is out of bag for a tree
if neither of its units is in the bag. Leaving out pairs alone would not be enough, because two pairs may share a sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from simtree.growing._grower import GrowthParams
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import SampleStore
from simtree.trees._rank_tree import RankTree

# Maximum number of attempts to draw a bag that has both same and different pairs.
MAX_DRAWS = 50
# Rows hashed at a time, and the odd constant whose powers tell them apart.
HASHED_ROWS, HASH_BASE = 1 << 12, 0xD1B54A32D192ED03


@dataclass(frozen=True)
class TreeTask:
    """One tree of a forest to be grown: parameters common to all trees, and its own random seed.

    Parameters
    ----------
    params : GrowthParams
        Growth parameters.
    units : ndarray of shape (n_samples,) or None
        Unit of each sample, as an integer from 0. None if given pairs are drawn themselves, because it is not known which of
        their samples are the same.
    n_drawn : int or None
        Number of units (or pairs) drawn with replacement; the bag is the set of those drawn. None for all units.
    entropy : tuple of int
        Random seed of the forest.
    number : int
        Number of the tree.
    """

    params: GrowthParams
    units: NDArray[np.int64] | None
    n_drawn: int | None
    entropy: tuple[int, ...]
    number: int

    def grow(self, samples: NDArray[Any], source: PairSource, hard: IndexPairs | None = None) -> RankTree:
        """Return the grown tree, see `draw`."""
        return self.params.grow(samples, *self.draw(source, hard))

    def draw(self, source: PairSource, hard: IndexPairs | None = None) -> tuple[IndexPairs, np.random.Generator]:
        """Return the pairs to grow the tree on, and its random generator; of ``hard`` pairs, those that lie in its bag.

        The bag does not depend on ``hard``, so that `in_bag` can reproduce it.
        """
        rng = tree_rng(self.entropy, self.number)
        bagged, inside = draw_bag(source, self.units, self.n_drawn, rng)
        if hard is None:
            return self.params.sample(bagged, rng), rng
        assert inside is not None
        pairs = hard.restrict(inside)
        if pairs is None:
            raise ValueError(
                "refill=True: a bag has only same or only different hard pairs; increase refill_budget or focus_fpr."
            )
        n_pairs = self.params.n_pairs
        return pairs if n_pairs is None else pairs.subsample(n_pairs, rng), rng

    def in_bag(self, source: PairSource) -> NDArray[np.bool_]:
        """Return a mask of the samples that the tree may have seen, reproduced from its random seed."""
        _, inside = draw_bag(source, self.units, self.n_drawn, tree_rng(self.entropy, self.number))
        assert inside is not None
        return inside


def grow_trees(
    tasks: Sequence[TreeTask], samples: Any, source: PairSource, hard: IndexPairs | None = None, *, n_jobs: int | None
) -> Iterator[RankTree]:
    """Return the trees in order, as they become available: grown in threads, or near the samples of a store."""
    if isinstance(samples, SampleStore):
        return samples.grow(tasks, source, hard)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    grown: Iterator[RankTree] = parallel(delayed(task.grow)(samples, source, hard) for task in tasks)
    return grown


def tree_rng(entropy: tuple[int, ...], number: int) -> np.random.Generator:
    """Return the random generator of a tree of a forest, independent of the order in which trees are grown."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(number,)))


def draw_bag(
    source: PairSource, units: NDArray[np.int64] | None, n_drawn: int | None, rng: np.random.Generator
) -> tuple[PairSource, NDArray[np.bool_] | None]:
    """Return the pairs of a bag, and a mask of the samples in the bag (None if not known)."""
    if n_drawn is None:
        return source, None if units is None else np.ones(len(units), dtype=np.bool_)
    for _ in range(MAX_DRAWS):
        bagged, inside = source.draw_bag(units, n_drawn, rng)
        if bagged is not None:
            return bagged, inside
    raise ValueError(
        f"max_samples: none of {MAX_DRAWS} bags of {n_drawn} draws has both same and different pairs; "
        "increase max_samples, or set bootstrap=False."
    )


def out_of_bag_values(
    trees: Sequence[RankTree], values: Sequence[NDArray[np.float64]], bags: Sequence[NDArray[np.bool_]], pairs: SamplePairs
) -> NDArray[np.float64]:
    """Return the value of each pair in each tree, of shape ``(n_trees, n_pairs)``; nan unless the pair is out of bag.

    ``values`` are the cell values of each tree, ``bags`` are masks of the samples that each tree may have seen.
    """
    found = np.full((len(trees), pairs.n_pairs), np.nan)
    for row, tree, of_cells, inside in zip(found, trees, values, bags, strict=True):
        outside = np.flatnonzero(~inside[pairs.first] & ~inside[pairs.second])
        part = np.zeros(len(outside))
        tree.add_values(pairs.take(outside), of_cells, part)
        row[outside] = part
    return found


def fingerprint(samples: Any, source: PairSource, units: NDArray[np.int64] | None, n_drawn: int | None) -> str:
    """Return a hash of all that bags and out-of-bag pairs depend on, except the random seed.

    Bags are reproduced from the seed, so they are those of the existing trees only if this has not changed.
    """
    digest = hashlib.blake2b(str(n_drawn).encode(), digest_size=16)
    number = samples.row_hash() if isinstance(samples, SampleStore) else hash_rows(samples)
    digest.update(f"{samples.dtype.str}{samples.shape}{number}".encode())
    for array in (units, *source.content()):
        digest.update(b"none" if array is None else f"{array.dtype.str}{array.shape}".encode())
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def hash_rows(samples: NDArray[Any]) -> int:
    """Return a 64-bit hash of a matrix that can be computed part by part: see `join_hashes`.

    It is the sum over rows i of their hashes times a constant to the power of i, modulo 2**64.

    Examples
    --------
    >>> samples = np.arange(6.0).reshape(3, 2)
    >>> hash_rows(samples) == join_hashes([hash_rows(samples[:1]), hash_rows(samples[1:])], [1, 2])
    True
    """
    words = np.uint64 if samples.dtype.itemsize == 8 else np.uint32
    factors = np.random.default_rng(0).integers(0, 2**64, samples.shape[1], dtype=np.uint64, endpoint=False)
    powers = np.cumprod(np.full(HASHED_ROWS, HASH_BASE, dtype=np.uint64))
    found = []
    for start in range(0, len(samples), HASHED_ROWS):
        part = np.ascontiguousarray(samples[start : start + HASHED_ROWS]).view(words).astype(np.uint64)
        part *= np.uint64(0x9E3779B97F4A7C15)  # spreads the high bits, which tell most numbers apart, over all of them
        part ^= part >> np.uint64(32)
        part += factors
        part *= np.uint64(0xBF58476D1CE4E5B9)
        part ^= part >> np.uint64(29)
        part *= factors | np.uint64(1)
        found.append(int((part.sum(axis=1) * powers[: len(part)]).sum()))
    return join_hashes(found, [HASHED_ROWS] * len(found))


def join_hashes(hashes: Sequence[int], lengths: Sequence[int]) -> int:
    """Return the hash of rows from the hashes of consecutive parts of them, and the lengths of the parts."""
    total, shift = 0, 1
    for number, length in zip(hashes, lengths, strict=True):
        total = (total + number * shift) % 2**64
        shift = shift * pow(HASH_BASE, length, 2**64) % 2**64
    return total


def equally_out_of_bag(index: IndexPairs, stages: Sequence[Sequence[NDArray[np.bool_]]]) -> tuple[IndexPairs, int]:
    """Return the pairs that are out of bag for enough trees, and that number of trees.

    A pair of one class is out of bag for more trees than a pair of two classes, and the more trees, the narrower the
    distribution of scores. So all pairs must be scored by the same number of trees; it is one that at least half of the same
    and half of the different pairs reach.

    Parameters
    ----------
    index : IndexPairs
        Pairs of samples, both same and different.
    stages : sequence of sequences of ndarrays
        For each stage of the forest, the bags of its trees, as masks of the samples.

    Returns
    -------
    index : IndexPairs
        The pairs that are out of bag for at least ``n_used`` trees of each stage.
    n_used : int
        Number of trees per stage, at least 1.
    """
    if not index.has_both_kinds:
        return index, 1
    counts = np.full(len(index), np.iinfo(np.int32).max, dtype=np.int32)
    for bags in stages:
        n_outside = np.zeros(len(index), dtype=np.int32)
        for inside in bags:
            outside = ~inside
            n_outside += outside[index.first] & outside[index.second]
        np.minimum(counts, n_outside, out=counts)
    n_used = max(1, int(min(np.median(counts[index.same]), np.median(counts[~index.same]))))
    return index.take(counts >= n_used), n_used


def first_out_of_bag(by_tree: NDArray[np.float64], n_trees: int) -> NDArray[np.float64]:
    """Return the values of the first ``n_trees`` trees that have one for each pair, of shape ``(n_trees, n_pairs)``.

    ``by_tree`` is that of `out_of_bag_values`, each of its columns with at least ``n_trees`` numbers.
    """
    order = np.argsort(np.isnan(by_tree), axis=0, kind="stable")[:n_trees]
    return np.take_along_axis(by_tree, order, axis=0)


def extrapolate_scores(
    scores: NDArray[np.float64], halves: NDArray[np.float64], n_used: int, n_trees: int
) -> NDArray[np.float64]:
    """Return the distribution of scores as it would be with ``n_trees`` trees, from scores by ``n_used`` trees.

    The fewer trees, the wider the distribution. To first order its quantiles are linear in the inverse of the number of trees,
    so they are extrapolated from those of all and of half of the trees that were used.

    Parameters
    ----------
    scores : ndarray of shape (n_pairs,)
        Scores of pairs of one kind, by ``n_used`` trees each.
    halves : ndarray of shape (2, n_pairs)
        Their scores by each half of these trees, ``n_used // 2`` trees each.
    n_used, n_trees : int
        Numbers of trees.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Scores in increasing order.

    Examples
    --------
    >>> extrapolate_scores(np.array([-2.0, 2.0]), np.array([[-3.0, 3.0], [3.0, -3.0]]), n_used=10, n_trees=10**9).round(6)
    array([-1.,  1.])
    """
    found = np.sort(scores)
    n_half = n_used // 2
    if n_half == 0 or n_trees <= n_used:
        return found
    share = (1.0 / n_used - 1.0 / n_trees) / (1.0 / n_half - 1.0 / n_used)
    found += share * (found - np.sort(halves, axis=1).mean(axis=0))
    return np.maximum.accumulate(found)
