"""Scores of pairs as means of the values of terminal cells, which forests and boosting share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from simtree.pairs._coordinates import SamplePairs
from simtree.trees._rank_tree import RankTree

# Number of pairs that all trees score before the next ones, so that their rows stay in cache.
SMALL_BLOCK = 4096


def iter_blocks(n: int) -> Iterator[slice]:
    """Return the blocks of a range, small enough for the rows of a block of pairs to stay in cache for all trees."""
    return (slice(start, min(start + SMALL_BLOCK, n)) for start in range(0, n, SMALL_BLOCK))


def mean_values(trees: list[RankTree], values: list[NDArray[np.float64]], pairs: SamplePairs) -> NDArray[np.float64]:
    """Return the mean over trees of the value of the terminal cell of each pair."""
    total = np.zeros(pairs.n_pairs)
    for rows in iter_blocks(pairs.n_pairs):
        part = trees[0].pair_map.complete(pairs.take(rows))
        for tree, of_cells in zip(trees, values, strict=True):
            tree.add_values(part, of_cells, total[rows])
    return total / len(trees)
