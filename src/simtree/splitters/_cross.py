"""Splitter by square regions."""

from __future__ import annotations

import numpy as np

from simtree._kernels.cross import best_square
from simtree._kernels.missing import BOTH_SEEN, ONE_SEEN
from simtree._kernels.missing_search import best_state_square
from simtree._utils.validation import check_integer
from simtree.io._registry import SPLITTER, register
from simtree.pairs._coordinates import CoordinateSet
from simtree.splitters._base import Cell, Split, Splitter
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion


@register(SPLITTER)
class CrossSplitter(Splitter):
    """Split each cell by whether both values of a feature lie on the same side of a threshold.

    The inside is the best such region, or its complement. These are the regions C_sq of the paper's appendix: with min and
    max the smaller and the larger of the two values, ``max <= t`` or ``min > t``. The splitter requires the coordinates
    ``min`` and ``max``, which are its default.

    Parameters
    ----------
    min_samples_leaf : int, default=1
        Minimum number of pairs in the region and in its complement.

    Examples
    --------
    >>> from simtree import CrossSplitter, SimilarityTree
    >>> X, y = [[0.0], [0.4], [0.6], [1.0]], [0, 0, 1, 1]
    >>> print(SimilarityTree(max_depth=1, splitter=CrossSplitter()).fit(X, y).export_text())
    all pairs: 2 same, 4 different
    |  inside if max(x0, x0') <= 0.5
    |         or max(x0, x0') > 0.5 and min(x0, x0') > 0.5
    |--- cell 1.0: 2 same, 0 different, FPR 0 to 0, TPR 0 to 1, score 2
    |--- cell 1.1: 0 same, 4 different, FPR 0 to 1, TPR 1 to 1, score 1
    """

    default_coordinates = ("min", "max")
    takes_missing = True

    def __init__(self, *, min_samples_leaf: int = 1) -> None:
        self.min_samples_leaf = min_samples_leaf

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise an error if a parameter is invalid, or if the coordinates lack ``min`` or ``max``.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the pairs.
        """
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        if not {"min", "max"} <= set(pair_map.kinds):
            raise ValueError(f"coordinates={list(pair_map.kinds)!r} lacks 'min' or 'max'; CrossSplitter requires both.")

    def split(self, cell: Cell) -> Split | None:
        """Split the cell: the inside is the square region, or its complement, with the highest AUC gain.

        Parameters
        ----------
        cell : Cell
            The cell to split.

        Returns
        -------
        Split or None
            The region of the more similar pairs and the pairs inside; None if no split improves the AUC.
        """
        lower = np.intersect1d(cell.pair_map.numbers("min"), cell.coordinates)
        upper = np.intersect1d(cell.pair_map.numbers("max"), cell.coordinates)
        pairs = (cell.pairs.codes, cell.pairs.same, cell.start, cell.stop, lower, upper)
        rule = (cell.weight_same, cell.weight_different, max(self.min_samples_leaf, cell.min_pairs))
        if cell.pairs.one_code:
            feature, code, flipped, sides = best_state_square(*pairs, cell.pairs.one_code, *rule)
        else:
            (feature, code, flipped), sides = best_square(*pairs, cell.pairs.n_bins, *rule), 0
        if feature < 0:
            return None
        coordinates = np.array([upper[feature], lower[feature]], dtype=np.int32)
        thresholds = cell.pairs.thresholds(coordinates, np.array([code, code]))
        square, rest = (OUTSIDE, INSIDE) if flipped else (INSIDE, OUTSIDE)
        if_le, if_gt = np.array([square, rest], dtype=np.int32), np.array([1, square], dtype=np.int32)
        states = None
        if cell.pairs.one_code:  # a state beside the square goes on at the second test, which sends it out
            codes = cell.codes[:, upper[feature]]
            seen = sum(bit for state, bit in enumerate((ONE_SEEN, BOTH_SEEN)) if (codes == cell.pairs.one_code + state).any())
            states = np.array([sides | seen, seen], dtype=np.uint8)
        return cell.split_by(AxisRegion(coordinates, thresholds, if_le, if_gt, np.ones(2), states))
