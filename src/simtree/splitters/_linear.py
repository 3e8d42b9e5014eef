"""Splitter by a linear support vector machine."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from simtree._kernels.missing import BOTH_SEEN, ONE_SEEN
from simtree._utils.validation import check_integer, check_real
from simtree.io._registry import SPLITTER, register
from simtree.pairs._coordinates import CoordinateSet
from simtree.splitters._base import Cell, Split, Splitter
from simtree.trees._filled import FilledCoordinates
from simtree.trees._linear_region import LinearRegion


@register(SPLITTER)
class LinearSplitter(Splitter):
    """Split each cell by a linear SVM on its coordinates, with weights that balance same and different pairs.

    Coordinates are standardised within each cell. Those that a pair lacks are replaced by their mean, and further columns tell
    where: each state of a feature, missing in one sample or in both, has a weight of its own.

    Parameters
    ----------
    C : float, default=1.0
        Inverse regularisation strength, as in `sklearn.svm.LinearSVC`.
    max_samples : int, default=100_000
        Maximum number of pairs that the SVM is fitted on; larger cells are subsampled.

    Examples
    --------
    >>> from simtree import LinearSplitter, SimilarityTree
    >>> X, y = [[0.0, 0.0], [0.1, 0.2], [1.0, 0.9], [1.1, 1.3]], [0, 0, 1, 1]
    >>> tree = SimilarityTree(max_depth=1, splitter=LinearSplitter(), random_state=0).fit(X, y)
    >>> tree.auc_
    1.0
    """

    binned = False
    takes_missing = True

    def __init__(self, *, C: float = 1.0, max_samples: int = 100_000) -> None:
        self.C = C
        self.max_samples = max_samples

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise an error if a parameter is invalid.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the pairs.
        """
        check_real("C", self.C, 0.0, np.inf, open_low=True, open_high=True)
        check_integer("max_samples", self.max_samples, 2)

    def split(self, cell: Cell) -> Split | None:
        """Split the cell: the inside is the side of the separating hyperplane that the SVM predicts to be same.

        Parameters
        ----------
        cell : Cell
            The cell to split.

        Returns
        -------
        Split or None
            The region of the more similar pairs and the pairs inside; None if no split improves the AUC.
        """
        from sklearn.svm import LinearSVC

        pairs, same, weights = cell.sample(self.max_samples)
        if same.all() or not same.any():
            return None
        used, pair_map = cell.coordinates, cell.pair_map
        values = pair_map.values(pairs)[:, used]
        filled = FilledCoordinates.fit(pair_map, used, values)
        table = filled.table(values)
        with np.errstate(all="ignore"):
            centre, spread = table.mean(axis=0), table.std(axis=0)
            scaled = (table - centre) / spread
        # A constant coordinate is uninformative, whatever rounding does to it, and so is one that overflows.
        useless = (np.ptp(table, axis=0) == 0.0) | ~np.isfinite(scaled).all(axis=0)
        scaled[:, useless], centre[useless], spread[useless] = 0.0, 0.0, np.inf
        svm = LinearSVC(C=self.C, random_state=int(cell.rng.integers(2**31)))
        with warnings.catch_warnings():
            # A hyperplane that is not quite optimal is still a valid split, because its gain is measured.
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm.fit(scaled, same, sample_weight=weights)
        standardised = svm.coef_[0]
        size = np.abs(standardised).sum()
        if size == 0.0:
            return None
        slopes, n = standardised / spread, len(used)
        plain, shares = np.zeros(len(pair_map)), np.zeros(len(pair_map))
        plain[used] = slopes[:n] * pair_map.scales[used]
        np.add.at(shares, used[filled.column_places()], np.abs(standardised) / size)
        states, seen = np.zeros((len(pair_map), 2)), np.zeros(len(pair_map), dtype=np.uint8)
        states[used] = (slopes[:n] * filled.means)[:, None]
        for state, (places, columns) in enumerate(filled.state_columns()):
            states[used[places], state] += slopes[columns]
            seen[used[np.isin(filled.group, filled.group[places])]] |= (ONE_SEEN, BOTH_SEEN)[state]
        intercept = float(svm.intercept_[0] - slopes @ centre)
        return cell.split_by(LinearRegion(plain, intercept, shares, states, seen))
