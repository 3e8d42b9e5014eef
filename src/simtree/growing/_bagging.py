"""Bagging: the samples that each tree of a forest sees, and out-of-bag values of pairs.

A bag is a set of distinct *units*: samples, all samples of a label, or the user's ``groups``. A pair is out of bag for a tree
if neither of its units is in the bag. Leaving out pairs alone would not be enough, because two pairs may share a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.growing._grower import GrowthParams
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.trees._rank_tree import RankTree

# Maximum number of attempts to draw a bag that has both same and different pairs.
MAX_DRAWS = 50


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
        """Return the grown tree; if ``hard`` pairs are given, it is grown on those of them that lie in its bag.

        The bag does not depend on ``hard``, so that `in_bag` can reproduce it.
        """
        rng = tree_rng(self.entropy, self.number)
        bagged, inside = draw_bag(source, self.units, self.n_drawn, rng)
        if hard is None or inside is None:
            return self.params.grow(samples, self.params.sample(bagged, rng), rng)
        pairs = hard.restrict(inside)
        if pairs is None:
            raise ValueError(
                "refill=True: a bag has only same or only different hard pairs; increase refill_budget or focus_fpr."
            )
        n_pairs = self.params.n_pairs
        return self.params.grow(samples, pairs if n_pairs is None else pairs.subsample(n_pairs, rng), rng)

    def in_bag(self, source: PairSource) -> NDArray[np.bool_]:
        """Return a mask of the samples that the tree may have seen, reproduced from its random seed."""
        _, inside = draw_bag(source, self.units, self.n_drawn, tree_rng(self.entropy, self.number))
        assert inside is not None
        return inside


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
