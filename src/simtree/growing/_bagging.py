"""Which observations a tree of a forest sees, and how pairs are scored by the trees that did not see them.

A bag is a set of different *units*: samples, all samples of a label, or groups that the user names. A pair is out of bag for a
tree if neither of its units was in the bag; two pairs may share a sample, so leaving out pairs would prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.growing._grower import GrowthParams
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._sampling import IndexPairs, PairSource
from simtree.trees._rank_tree import RankTree

# A bag without a pair of each kind is drawn again at most this often.
MAX_DRAWS = 50


@dataclass(frozen=True)
class TreeTask:
    """One tree of a forest: what is common to all, and its own seed.

    Parameters
    ----------
    params : GrowthParams
        How the tree is grown.
    units : ndarray of shape (n_samples,) or None
        Unit of each sample, as an integer from 0. None: given pairs are themselves drawn, as their samples have no identity.
    n_drawn : int or None
        Number of units (or pairs) drawn with replacement; the bag is the set of those drawn. None: all, always.
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
        """Return the tree; grown on those of the ``hard`` pairs that lie in its bag, if they are given.

        The bag does not depend on ``hard``, so that `in_bag` finds it again.
        """
        rng = self._rng()
        bagged, inside = self._draw_bag(source, rng)
        if hard is None or inside is None:
            return self.params.grow(samples, self.params.sample(bagged, rng), rng)
        pairs = hard.restrict(inside)
        if pairs is None:
            raise ValueError("refill=True: a bag holds hard pairs of one kind only; raise refill_budget or focus_fpr.")
        n_pairs = self.params.n_pairs
        return self.params.grow(samples, pairs if n_pairs is None else pairs.subsample(n_pairs, rng), rng)

    def in_bag(self, source: PairSource) -> NDArray[np.bool_]:
        """Return which samples the tree may have seen, found again from its seed."""
        _, inside = self._draw_bag(source, self._rng())
        assert inside is not None
        return inside

    def _rng(self) -> np.random.Generator:
        """Return the tree's own randomness, whoever grows it and whenever."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(self.number,)))

    def _draw_bag(self, source: PairSource, rng: np.random.Generator) -> tuple[PairSource, NDArray[np.bool_] | None]:
        """Return what the tree may sample its pairs from, and which samples are in its bag (None if that is not known)."""
        if self.n_drawn is None:
            return source, None if self.units is None else np.ones(len(self.units), dtype=np.bool_)
        for _ in range(MAX_DRAWS):
            bagged, inside = source.draw_bag(self.units, self.n_drawn, rng)
            if bagged is not None:
                return bagged, inside
        raise ValueError(
            f"max_samples: {MAX_DRAWS} bags of {self.n_drawn} draws held no pair of each kind; "
            "draw more, or set bootstrap=False."
        )


def out_of_bag_values(
    trees: Sequence[RankTree], values: Sequence[NDArray[np.float64]], bags: Sequence[NDArray[np.bool_]], pairs: SamplePairs
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
