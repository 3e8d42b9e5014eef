"""Splitter by the best single threshold."""

from __future__ import annotations

from simtree._utils.validation import check_integer
from simtree.io._registry import SPLITTER, register
from simtree.pairs._coordinates import CoordinateSet
from simtree.splitters._base import Cell, Split, Splitter
from simtree.splitters._cart import split_by_cart


@register(SPLITTER)
class CutSplitter(Splitter):
    """Split each cell by the best threshold on one coordinate; the inside is either side of it.

    With ``coordinates=["abs_diff"]`` these are the regions C_diag of the paper's appendix; with ``"sum"`` as well (the
    default), those of its Table 1.

    Parameters
    ----------
    min_samples_leaf : int, default=1
        Minimum number of pairs on each side.

    Examples
    --------
    >>> from simtree import CutSplitter, SimilarityTree
    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]
    >>> print(SimilarityTree(max_depth=1, splitter=CutSplitter()).fit(X, y).export_text())
    all pairs: 2 same, 4 different
    |  inside if |x0 - x0'| <= 0.5
    |--- cell 1.0: 2 same, 0 different, FPR 0 to 0, TPR 0 to 1, score 2
    |--- cell 1.1: 0 same, 4 different, FPR 0 to 1, TPR 1 to 1, score 1
    """

    takes_missing = True

    def __init__(self, *, min_samples_leaf: int = 1) -> None:
        self.min_samples_leaf = min_samples_leaf

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise an error if a parameter is invalid.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the pairs.
        """
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)

    def split(self, cell: Cell) -> Split | None:
        """Split the cell: the inside is the half-space with the highest AUC gain.

        Parameters
        ----------
        cell : Cell
            The cell to split.

        Returns
        -------
        Split or None
            The region of the more similar pairs and the pairs inside; None if no split improves the AUC.
        """
        return split_by_cart(cell, "auc", max_depth=1, min_leaf=max(self.min_samples_leaf, cell.min_pairs))
