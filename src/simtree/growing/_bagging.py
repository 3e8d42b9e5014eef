"""Which observations a tree of a forest sees, and how pairs are scored by the trees that did not see them.

A bag is a set of different *units*: points, whole classes, or groups that the user names. A pair is out of bag for a tree if
neither of its units was in the bag; two pairs may share a point, so leaving out pairs would prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.growing._grower import Recipe
from simtree.pairs._coordinates import PointPairs
from simtree.pairs._sampling import IndexPairs, PairSampler
from simtree.trees._rank_tree import RankTree

# A bag without a pair of each kind is drawn again at most this often.
MAX_DRAWS = 50


@dataclass(frozen=True)
class Bag:
    """How bags are drawn.

    Parameters
    ----------
    units : ndarray of shape (n_points,), or None
        Unit of each point, as a number from 0. None: given pairs are themselves drawn, as their points have no identity.
    n_drawn : int or None
        How many units (or pairs) are drawn with replacement; the bag is the set of those drawn. None: all, always.
    """

    units: NDArray[np.int64] | None
    n_drawn: int | None

    def draw(
        self, source: IndexPairs | PairSampler, rng: np.random.Generator
    ) -> tuple[IndexPairs | PairSampler, NDArray[np.bool_] | None]:
        """What a tree may draw its pairs from, and which points are in its bag (None if that is not known)."""
        if self.n_drawn is None:
            return source, None if self.units is None else np.ones(len(self.units), dtype=np.bool_)
        for _ in range(MAX_DRAWS):
            if self.units is None:
                assert isinstance(source, IndexPairs)
                pairs = source.take(np.unique(rng.integers(0, len(source), self.n_drawn)))
                if pairs.has_both_kinds:
                    return pairs, None
                continue
            chosen = np.zeros(int(self.units.max()) + 1, dtype=np.bool_)
            chosen[rng.integers(0, len(chosen), self.n_drawn)] = True
            inside = chosen[self.units]
            bagged = source.among(inside)
            if bagged is not None:
                return bagged, inside
        raise ValueError(
            f"max_samples: {MAX_DRAWS} bags of {self.n_drawn} draws held no pair of each kind; "
            "draw more, or set bootstrap=False."
        )


@dataclass(frozen=True)
class Task:
    """One tree of a forest: what is common to all, and its own seed."""

    recipe: Recipe
    bag: Bag
    entropy: tuple[int, ...]
    number: int

    def rng(self) -> np.random.Generator:
        """The tree's own randomness, whoever grows it and whenever."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(self.number,)))

    def grow(self, points: NDArray[Any], source: IndexPairs | PairSampler, hard: IndexPairs | None = None) -> RankTree:
        """The tree; on those of the ``hard`` pairs that lie in its bag, if there are such.

        The bag does not depend on ``hard``, so that `in_bag` finds it again.
        """
        rng = self.rng()
        bagged, inside = self.bag.draw(source, rng)
        if hard is None or inside is None:
            return self.recipe.grow(points, self.recipe.draw(bagged, rng), rng)
        pairs = hard.among(inside)
        if pairs is None:
            raise ValueError("refill=True: a bag holds hard pairs of one kind only; raise refill_budget or focus_fpr.")
        return self.recipe.grow(points, pairs if self.recipe.n_pairs is None else pairs.some(self.recipe.n_pairs, rng), rng)

    def in_bag(self, source: IndexPairs | PairSampler) -> NDArray[np.bool_]:
        """Which points the tree may have seen, found again from its seed."""
        _, inside = self.bag.draw(source, self.rng())
        assert inside is not None
        return inside


def out_of_bag_values(
    trees: Sequence[RankTree], values: Sequence[NDArray[np.float64]], bags: Sequence[NDArray[np.bool_]], pairs: PointPairs
) -> NDArray[np.float64]:
    """Value of each pair in each tree for which it is out of bag, ``(n_trees, n_pairs)``; nan where it is not.

    ``values`` are those of the cells of each tree, ``bags`` tell which points each tree may have seen.
    """
    found = np.full((len(trees), pairs.n_pairs), np.nan)
    for row, tree, of_cells, inside in zip(found, trees, values, bags, strict=True):
        outside = np.flatnonzero(~inside[pairs.first] & ~inside[pairs.second])
        part = np.zeros(len(outside))
        tree.add_values(pairs.take(outside), of_cells, part)
        row[outside] = part
    return found
