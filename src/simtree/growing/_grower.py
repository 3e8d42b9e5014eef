"""TreeRank: split the cells of each level, from the most to the least similar, by what a splitter proposes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import n_to_draw
from simtree.pairs._coordinates import CoordinateSet
from simtree.pairs._sampling import IndexPairs, PairSampler
from simtree.splitters._base import Cell, Splitter
from simtree.trees._binning import TrainingPairs
from simtree.trees._rank_tree import RankTree, TreeBuilder


@dataclass(frozen=True)
class Limits:
    """When a cell is left as it is.

    At this depth, with too few pairs, if a child would have too few, or wholly to the right of a false positive rate.
    """

    max_depth: int
    min_pairs_split: int
    min_pairs_leaf: int
    focus_fpr: float | None = None


def grow_tree(
    pairs: TrainingPairs,
    splitter: Splitter,
    limits: Limits,
    rng: np.random.Generator,
    *,
    max_features: int | float | None = None,
) -> RankTree:
    """Grow a similarity tree (the paper's Similarity TreeRank algorithm).

    A cell also stays as it is if all its pairs are of one kind or if no split raises the AUC.

    Parameters
    ----------
    pairs : TrainingPairs
        Pairs of both kinds; reordered in place.
    splitter : Splitter
        LeafRank.
    limits : Limits
        When to stop.
    rng : numpy.random.Generator
        The only source of randomness.
    max_features : int, float or None
        How many features of the points and products with directions (float: which share) are drawn for each cell; None uses
        all. Coordinates of the whole pair are always there.
    """
    n_same = int(np.count_nonzero(pairs.same))
    builder = TreeBuilder(pairs.pair_map, limits.max_depth, n_same, len(pairs) - n_same)
    n_columns = pairs.pair_map.n_columns
    n_drawn = n_to_draw("max_features", max_features, n_columns)
    coordinates = np.arange(len(pairs.pair_map))
    # Of each cell: its number, its segment, its same pairs, and the different pairs that are more similar than it.
    level = [(0, 0, len(pairs), n_same, 0)]
    most_before = len(pairs) if limits.focus_fpr is None else limits.focus_fpr * (len(pairs) - n_same)
    for _ in range(limits.max_depth):
        children = []
        for number, start, stop, n_same, n_before in level:
            n_pairs = stop - start
            n_different = n_pairs - n_same
            if n_pairs < limits.min_pairs_split or n_same == 0 or n_different == 0 or n_before >= most_before:
                continue
            if n_drawn < n_columns:
                coordinates = pairs.pair_map.of_columns(rng.choice(n_columns, n_drawn, replace=False))
            split = splitter.split(Cell(pairs, start, stop, n_same, n_different, coordinates, limits.min_pairs_leaf, rng))
            if split is None:
                continue
            n_inside = int(np.count_nonzero(split.inside))
            n_same_inside = int(np.count_nonzero(split.inside & pairs.same[start:stop]))
            # Twice the area gained under the ROC curve, times a positive whole number: n_d n_s(inside) - n_s n_d(inside).
            gains = n_different * n_same_inside > n_same * (n_inside - n_same_inside)
            if not gains or min(n_inside, n_pairs - n_inside) < limits.min_pairs_leaf:
                continue
            middle = pairs.partition(start, stop, split.inside)
            n_different_inside = n_inside - n_same_inside
            inside, outside = builder.split(number, split.region, n_same_inside, n_different_inside)
            children += [
                (inside, start, middle, n_same_inside, n_before),
                (outside, middle, stop, n_same - n_same_inside, n_before + n_different_inside),
            ]
        level = children
    return builder.freeze()


@dataclass(frozen=True)
class Recipe:
    """All that is needed to make a tree from points and their pairs: checked parameters of an estimator."""

    splitter: Splitter
    pair_map: CoordinateSet
    limits: Limits
    max_features: int | float | None
    max_bins: int | None
    n_pairs: int | None
    positive_fraction: float | None
    same_weighting: str

    def draw(self, source: IndexPairs | PairSampler, rng: np.random.Generator) -> IndexPairs:
        """The training pairs: those given, or drawn from labelled points."""
        if isinstance(source, IndexPairs):
            return source
        pairs = source.draw(self.n_pairs, rng, positive_fraction=self.positive_fraction, same_weighting=self.same_weighting)
        if pairs.n_same in (0, len(pairs)):
            kind = "different" if pairs.n_same == 0 else "same"
            raise ValueError(
                f"n_pairs={self.n_pairs!r} with positive_fraction={self.positive_fraction!r} drew {kind} pairs only; "
                "draw more pairs, or set positive_fraction=0.5."
            )
        return pairs

    def grow(self, points: NDArray[Any], pairs: IndexPairs, rng: np.random.Generator, *, n_jobs: int | None = 1) -> RankTree:
        """The tree grown on pairs of rows of the points; ``n_jobs`` threads, if no other tree is grown meanwhile."""
        training = TrainingPairs(points, pairs, self.pair_map, self.max_bins, binned=self.splitter.binned, n_jobs=n_jobs)
        return grow_tree(training, self.splitter, self.limits, rng, max_features=self.max_features)
