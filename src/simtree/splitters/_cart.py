"""A cost-sensitive classification tree as LeafRank."""

from __future__ import annotations

from simtree._utils.validation import check_choice, check_integer, n_to_draw
from simtree.pairs._coordinates import CoordinateSet
from simtree.splitters._base import CRITERIA, Cell, Split, Splitter


class CartSplitter(Splitter):
    """A classification tree on the coordinates, its leaves united into one region.

    The two kinds of pair weigh the same in each cell, as in the paper's Symmetric LeafRank. A leaf goes inside if at least
    half of its weight is of same pairs.

    Parameters
    ----------
    max_depth : int, default=5
        Greatest number of tests of a pair.
    criterion : {"gini", "entropy", "auc"}, default="gini"
        What a test lowers: weighted Gini impurity, weighted entropy, or ("auc") the weighted error itself, which is the AUC
        gain.
    min_samples_leaf : int, default=5
        Least number of pairs in a leaf.
    max_features : int, float or None, default=None
        How many coordinates (float: which share) are drawn anew for each test; None uses all.

    Examples
    --------
    >>> from simtree import CartSplitter, SimilarityTree
    >>> SimilarityTree(splitter=CartSplitter(max_depth=3)).get_params()["splitter__max_depth"]
    3
    """

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
        """Check the parameters."""
        check_integer("max_depth", self.max_depth, 1, 30)
        check_choice("criterion", self.criterion, CRITERIA)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        n_to_draw("max_features", self.max_features, len(pair_map))

    def split(self, cell: Cell) -> Split | None:
        """Inside: the leaves in which same pairs weigh at least half."""
        n_drawn = n_to_draw("max_features", self.max_features, len(cell.coordinates))
        return cell.split_by_cart(CRITERIA[self.criterion], self.max_depth, self.min_samples_leaf, n_drawn=n_drawn)
