"""TreeRank: grow a tree level by level, splitting each cell with a splitter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.pairs._coordinates import CoordinateSet
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import with_rows
from simtree.splitters._base import Cell, Splitter
from simtree.trees._binning import TrainingPairs
from simtree.trees._rank_tree import RankTree, TreeBuilder


@dataclass(frozen=True)
class GrowthParams:
    """The checked parameters for growing a tree from pairs of samples.

    Parameters
    ----------
    splitter : Splitter
        The splitter (LeafRank).
    pair_map : CoordinateSet
        Coordinates of a pair.
    max_depth, min_pairs_split, min_pairs_leaf, focus_fpr
        A cell is not split at this depth, if it has fewer pairs, if a child would have fewer pairs, or if it lies entirely
        above this false positive rate.
    n_columns : int
        Number of columns (features, and products with directions) drawn for each cell. Pairwise coordinates are always
        used.
    max_bins : int or None
        Maximum number of bins per coordinate; None for exact splits.
    n_pairs, positive_fraction, same_weighting
        How pairs are sampled, see `PairSampler.sample`.
    columns : ndarray of int, optional
        Columns with values, of which those for a cell are drawn; all by default.
    lacks_values : bool
        Whether samples lack values (NaN).
    """

    splitter: Splitter
    pair_map: CoordinateSet
    max_depth: int
    min_pairs_split: int
    min_pairs_leaf: int
    n_columns: int
    focus_fpr: float | None = None
    max_bins: int | None = 255
    n_pairs: int | None = None
    positive_fraction: float | None = 0.5
    same_weighting: str = "pairs"
    columns: NDArray[np.int64] | None = None
    lacks_values: bool = False

    def sample(self, source: PairSource, rng: np.random.Generator) -> IndexPairs:
        """Return training pairs, both same and different."""
        return sample_both_kinds(source, rng, self.n_pairs, self.positive_fraction, self.same_weighting)

    def grow(self, samples: NDArray[Any], pairs: IndexPairs, rng: np.random.Generator, *, n_jobs: int | None = 1) -> RankTree:
        """Return the tree grown on pairs of rows of the samples; ``n_jobs`` is for growing a single tree at a time."""
        samples, pairs, _ = with_rows(samples, pairs)
        training = TrainingPairs(
            samples,
            pairs,
            self.pair_map,
            self.max_bins,
            binned=self.splitter.binned,
            n_jobs=n_jobs,
            lacks_values=self.lacks_values,
        )
        return grow_tree(training, self, rng)


def sample_both_kinds(
    source: PairSource, rng: np.random.Generator, n_pairs: int | None, positive_fraction: float | None, same_weighting: str
) -> IndexPairs:
    """Return training pairs, and raise if they are all same or all different."""
    pairs = source.sample(n_pairs, rng, positive_fraction=positive_fraction, same_weighting=same_weighting, shuffle=False)
    if not pairs.has_both_kinds:
        label = "different" if pairs.n_same == 0 else "same"
        raise ValueError(
            f"n_pairs={n_pairs!r} with positive_fraction={positive_fraction!r} sampled {label} pairs only; "
            "increase n_pairs, or set positive_fraction=0.5."
        )
    return pairs


def grow_tree(pairs: TrainingPairs, params: GrowthParams, rng: np.random.Generator) -> RankTree:
    """Grow a similarity tree (the paper's Similarity TreeRank algorithm).

    A cell is terminal if a stopping rule of ``params`` applies, if its pairs are all same or all different, or if no split
    increases the AUC.

    Parameters
    ----------
    pairs : TrainingPairs
        Training pairs, both same and different; reordered in place.
    params : GrowthParams
        The splitter and the stopping rules.
    rng : numpy.random.Generator
        Source of all randomness.

    Returns
    -------
    RankTree
    """
    n_same = int(np.count_nonzero(pairs.same))
    builder = TreeBuilder(pairs.pair_map, params.max_depth, n_same, len(pairs) - n_same)
    columns = np.arange(pairs.pair_map.n_columns) if params.columns is None else params.columns
    coordinates = pairs.pair_map.of_columns(columns)
    # For each cell: its number, its segment, its same pairs, and the number of different pairs ranked above it.
    level = [(0, 0, len(pairs), n_same, 0)]
    max_before = len(pairs) if params.focus_fpr is None else params.focus_fpr * (len(pairs) - n_same)
    for _ in range(params.max_depth):
        children = []
        for number, start, stop, n_same, n_before in level:
            n_pairs = stop - start
            n_different = n_pairs - n_same
            if n_pairs < params.min_pairs_split or n_same == 0 or n_different == 0 or n_before >= max_before:
                continue
            if params.n_columns < len(columns):
                coordinates = pairs.pair_map.of_columns(rng.choice(columns, params.n_columns, replace=False))
            split = params.splitter.split(
                Cell(pairs, start, stop, n_same, n_different, coordinates, params.min_pairs_leaf, rng)
            )
            if split is None:
                continue
            n_inside = int(np.count_nonzero(split.inside))
            n_same_inside = int(np.count_nonzero(split.inside & pairs.same[start:stop]))
            # The gain, up to a positive factor, in integers: n_different * n_same(inside) - n_same * n_different(inside).
            gains = n_different * n_same_inside > n_same * (n_inside - n_same_inside)
            if not gains or min(n_inside, n_pairs - n_inside) < params.min_pairs_leaf:
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
