"""A tree for the page: its cells with their rules in words, counts, and segments of the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simtree.report._words import opposite_in_words, rule_in_words
from simtree.trees._rank_tree import RankTree

# Cells in the page, those nearest to the root; a deep tree of CART regions would take megabytes.
MAX_CELLS = 301


def tree_of(tree: RankTree, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the cells of a tree, each with its children, and the knots of its training ROC curve.

    Parameters
    ----------
    tree : RankTree
        The tree.
    names : sequence of str, optional
        Names of the features.

    Returns
    -------
    dict
        ``cells``, nearest to the root first, and ``knots``: the curve runs through the terminal cells from the most similar to
        the least, so ``knots`` of a cell are the numbers of the first and the last knot of its segment.
    """
    features = [f"x{j}" for j in range(tree.pair_map.n_all_features)] if names is None else [str(name) for name in names]
    cells = tree.cells
    order = np.lexsort((cells.rank, cells.depth))[:MAX_CELLS]
    number = {int(cell): k for k, cell in enumerate(order)}
    segments = _segments(tree)
    fpr, tpr = tree.cell_bounds()
    found = []
    for cell in order.tolist():
        first, last = segments[cell]
        entry: dict[str, Any] = {
            "depth": int(cells.depth[cell]),
            "rank": int(cells.rank[cell]),
            "parent": number.get(int(cells.parent[cell]), -1) if cell else -1,
            "same": int(cells.n_same[cell]),
            "different": int(cells.n_different[cell]),
            "fpr": [float(fpr[cell]), float(fpr[cell] + tree.fpr_mass[cell])],
            "tpr": [float(tpr[cell]), float(tpr[cell] + tree.tpr_mass[cell])],
            "knots": [first, last],
        }
        inside, outside = int(cells.inside[cell]), int(cells.outside[cell])
        if inside < 0:
            entry["score"] = float(tree.scores[cell])
        else:
            region = tree.region(cell)
            entry["rule"] = rule_in_words(region, tree.pair_map, features)
            entry["opposite"] = opposite_in_words(region, tree.pair_map, features)
            entry["children"] = [number[child] for child in (inside, outside) if child in number]
        found.append(entry)
    knots = [[round(float(x), 6), round(float(y), 6)] for x, y in zip(tree.fpr_knots, tree.tpr_knots, strict=True)]
    return {"cells": found, "knots": knots, "n_cells": tree.n_cells}


def _segments(tree: RankTree) -> dict[int, tuple[int, int]]:
    """Return the numbers of the first and of the last knot of the segment of each cell."""
    found: dict[int, tuple[int, int]] = {}
    done = 0

    def visit(cell: int) -> None:
        nonlocal done
        first, inside = done, int(tree.cells.inside[cell])
        if inside < 0:
            done += 1
        else:
            visit(inside)
            visit(int(tree.cells.outside[cell]))
        found[cell] = (first, done)

    visit(0)
    return found
