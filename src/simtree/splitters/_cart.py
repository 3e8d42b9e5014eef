"""Splitter by a cost-sensitive classification tree, and the search shared with other splitters."""

from __future__ import annotations

import numpy as np

from simtree._kernels import cart as kernels
from simtree._kernels.search import AUC, ENTROPY, GINI, Rule
from simtree._utils.validation import check_choice, check_integer, n_to_draw
from simtree.io._registry import SPLITTER, register
from simtree.pairs._coordinates import CoordinateSet
from simtree.splitters._base import Cell, Split, Splitter
from simtree.trees._regions import AxisRegion

# Chi-squared statistic that a test of a coordinate in which values are missing must exceed: the best of many cuts with four
# choices of sides each fits noise, and trees are otherwise much larger and less accurate.
PRICE_OF_SIDES = 8.0
#: Impurity criteria by name.
CRITERIA = {"gini": GINI, "entropy": ENTROPY, "auc": AUC}


@register(SPLITTER)
class CartSplitter(Splitter):
    """Split each cell by a classification tree on the coordinates, whose leaves are merged into one region.

    Same and different pairs have equal total weight in each cell, as in the paper's Symmetric LeafRank. A leaf is inside if
    same pairs make up at least half of its weight.

    Parameters
    ----------
    max_depth : int, default=5
        Maximum depth of the classification tree.
    criterion : {"gini", "entropy", "auc"}, default="gini"
        Impurity that a test decreases: weighted Gini impurity, weighted entropy, or the weighted error, whose decrease is
        the AUC gain (``"auc"``).
    min_samples_leaf : int, default=5
        Minimum number of pairs in a leaf.
    max_features : int, float or None, default=None
        Number of coordinates (share of them if a float) drawn anew for each test; None uses all.

    Examples
    --------
    >>> from simtree import CartSplitter, SimilarityTree
    >>> SimilarityTree(splitter=CartSplitter(max_depth=3)).get_params()["splitter__max_depth"]
    3
    """

    takes_missing = True

    def __init__(
        self,
        *,
        max_depth: int = 5,
        criterion: str = "gini",
        min_samples_leaf: int = 5,
        max_features: int | float | None = None,
    ) -> None:
        self.max_depth = max_depth
        self.criterion = criterion
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise an error if a parameter is invalid.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the pairs.
        """
        check_integer("max_depth", self.max_depth, 1, 30)
        check_choice("criterion", self.criterion, CRITERIA)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        n_to_draw("max_features", self.max_features, len(pair_map))

    def split(self, cell: Cell) -> Split | None:
        """Split the cell: the inside is the union of the leaves in which same pairs make up at least half of the weight.

        Parameters
        ----------
        cell : Cell
            The cell to split.

        Returns
        -------
        Split or None
            The region of the more similar pairs and the pairs inside; None if no split improves the AUC.
        """
        n_drawn = n_to_draw("max_features", self.max_features, len(cell.coordinates))
        return split_by_cart(cell, self.criterion, self.max_depth, self.min_samples_leaf, n_drawn=n_drawn)


def split_by_cart(cell: Cell, criterion: str, max_depth: int, min_leaf: int, *, n_drawn: int | None = None) -> Split | None:
    """Return the split of a cell by a classification tree whose leaves are merged, or None if all are on one side.

    ``n_drawn`` coordinates are drawn anew for each test; None uses all coordinates that the cell allows.
    """
    n_nodes = min(2**max_depth - 1, 2 * (cell.n_pairs // min_leaf) + 1)
    uniforms = np.empty((0, 0))
    if n_drawn is not None and n_drawn < len(cell.coordinates):
        uniforms = cell.rng.random((n_nodes, n_drawn))
    if cell.n_pairs < 2 * min_leaf:  # random numbers are drawn all the same, so that later ones do not depend on this
        return None
    coordinate, code, if_le, if_gt = np.empty((4, n_nodes), dtype=np.int32)
    rows = kernels.RegionRows(coordinate, code, if_le, if_gt, np.empty(n_nodes), np.empty(n_nodes, dtype=np.uint8))
    inside = np.empty(cell.n_pairs, dtype=np.bool_)
    histograms = cell.pairs.histograms(max_depth)
    counted = not uniforms.size and cell.pairs.count(cell.start, cell.stop, cell.coordinates, histograms)
    n_rows = kernels.grow_cart(
        cell.pairs.codes,
        cell.pairs.same,
        cell.start,
        cell.stop,
        cell.coordinates,
        Rule(CRITERIA[criterion], min_leaf, cell.weight_same, cell.weight_different, cell.pairs.one_code, PRICE_OF_SIDES),
        max_depth,
        uniforms,
        histograms,
        counted,
        rows,
        inside,
    )
    if n_rows == 0:
        return None
    coordinate, code, if_le, if_gt, decrease, states = (column[:n_rows] for column in rows)
    threshold = cell.pairs.thresholds(coordinate, code)
    known = states if cell.pairs.one_code else None
    return Split(AxisRegion(coordinate, threshold, if_le, if_gt, decrease, known), inside)
