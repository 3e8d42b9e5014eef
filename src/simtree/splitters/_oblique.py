"""Splitter by a classification tree that also tests directions found in its own cell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import check_choice, check_integer, n_to_draw
from simtree.io._registry import SPLITTER, register
from simtree.pairs._coordinates import CoordinateSet
from simtree.pairs._directions import discriminant_directions
from simtree.splitters._base import Cell, Split, Splitter
from simtree.splitters._cart import CRITERIA, split_by_cart
from simtree.trees._regions import AxisRegion, ObliqueRegion


@register(SPLITTER)
class ObliqueCartSplitter(Splitter):
    """Split each cell by a classification tree on the coordinates and on oblique ones along directions fitted in the cell.

    The directions are those along which the different pairs of the cell differ most, relative to its same pairs. Deep cells
    thus use what the splits above them have not used yet. A cell with few pairs is split on the coordinates alone. If values
    are missing, directions are fitted on the features of both samples of a pair, and coordinates are scaled to all of them.

    Parameters
    ----------
    n_directions : int, default=8
        Number of directions fitted in each cell.
    max_depth, criterion, min_samples_leaf : see `CartSplitter`
        Parameters of the classification tree.
    max_features : int, float or None, default=None
        Number of coordinates (share of them if a float) drawn for each cell in addition to the oblique ones; None uses all.
    min_samples : int, default=500
        Minimum number of same pairs and of different pairs in a cell to fit directions.
    max_samples : int, default=20_000
        Maximum number of pairs that directions are fitted on; larger cells are subsampled.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import ObliqueCartSplitter, SimilarityTree
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SimilarityTree(max_depth=3, splitter=ObliqueCartSplitter(n_directions=2, max_depth=2), random_state=0).fit(X, y)
    >>> tree.tree_.regions[0].directions.shape
    (2, 4)
    """

    takes_missing = True
    squares = True

    def __init__(
        self,
        *,
        n_directions: int = 8,
        max_depth: int = 5,
        criterion: str = "gini",
        min_samples_leaf: int = 5,
        max_features: int | float | None = None,
        min_samples: int = 500,
        max_samples: int = 20_000,
    ) -> None:
        self.n_directions = n_directions
        self.max_depth = max_depth
        self.criterion = criterion
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.min_samples = min_samples
        self.max_samples = max_samples

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise an error if a parameter is invalid.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the pairs.
        """
        check_integer("n_directions", self.n_directions, 1)
        check_integer("max_depth", self.max_depth, 1, 30)
        check_choice("criterion", self.criterion, CRITERIA)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        n_to_draw("max_features", self.max_features, len(pair_map))
        check_integer("min_samples", self.min_samples, 1)
        check_integer("max_samples", self.max_samples, 2)

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
        tree = (self.criterion, self.max_depth, self.min_samples_leaf)
        n_drawn = n_to_draw("max_features", self.max_features, len(cell.coordinates))
        directions = self._directions(cell)
        if directions is None:
            return split_by_cart(cell, *tree, n_drawn=n_drawn)
        if n_drawn < len(cell.coordinates):
            drawn = np.sort(cell.rng.choice(cell.coordinates, n_drawn, replace=False))
            cell = Cell(cell.pairs, cell.start, cell.stop, cell.n_same, cell.n_different, drawn, cell.min_pairs, cell.rng)
        split = split_by_cart(cell.with_directions(directions), *tree)
        if split is None:
            return None
        assert isinstance(split.region, AxisRegion)
        # Oblique coordinates follow the drawn coordinates in the codes of the cell, but all coordinates in the region.
        numbers = np.append(cell.coordinates, len(cell.pair_map) + np.arange(2 * len(directions))).astype(np.int32)
        tests = replace(split.region, coordinate=numbers[split.region.coordinate])
        return Split(ObliqueRegion(tests, directions), split.inside)

    def _directions(self, cell: Cell) -> NDArray[Any] | None:
        """Return directions of the allowed features, fitted on the pairs of the cell; None if there are too few."""
        pairs, same, _ = cell.sample(self.max_samples)
        features = cell.features
        if min(np.count_nonzero(same), np.count_nonzero(~same)) < self.min_samples or not len(features):
            return None
        found = discriminant_directions(pairs, same, self.n_directions, features)
        directions = np.zeros((len(found), cell.pair_map.n_features))
        directions[:, features] = found
        return directions
