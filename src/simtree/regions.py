"""Symmetric regions of pairs: what a splitter returns. One type a kind: ``axis``, ``linear``, ``opaque``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.cart import INSIDE, OUTSIDE
from simtree._kernels.coordinates import linear_values
from simtree._kernels.route import Nodes, route_pairs
from simtree.symmetry import CoordinateSet, PointPairs

__all__ = ["INSIDE", "OUTSIDE", "AxisRegion", "LinearRegion", "OpaqueRegion", "Region"]

# Pairs whose coordinates are made into a matrix at one time.
CHUNK = 50_000


class Region(Protocol):
    """A set of pairs that holds a pair whichever of its two points comes first."""

    @property
    def kind(self) -> str:
        """``axis``, ``linear`` or ``opaque``."""

    def contains(self, pair_map: CoordinateSet, pairs: PointPairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region."""

    def coordinate_shares(self, n_coordinates: int) -> NDArray[np.float64]:
        """How much each coordinate had to do with the split: shares that sum to one."""


@dataclass(frozen=True)
class AxisRegion:
    """Tests of single coordinates, each leading to a later test, to `INSIDE` or to `OUTSIDE`; test 0 is the first.

    Parameters
    ----------
    coordinate, threshold, if_le, if_gt : ndarrays of shape (n_tests,)
        Test t goes on to ``if_le[t]`` when coordinate ``coordinate[t]`` is at most ``threshold[t]``, otherwise to ``if_gt[t]``.
    decrease : ndarray of shape (n_tests,)
        Impurity decrease of each test.
    """

    coordinate: NDArray[np.int32]
    threshold: NDArray[np.float64]
    if_le: NDArray[np.int32]
    if_gt: NDArray[np.int32]
    decrease: NDArray[np.float64]
    kind: ClassVar[str] = "axis"

    def contains(self, pair_map: CoordinateSet, pairs: PointPairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region."""
        nodes = Nodes(
            pair_map.kind_codes[self.coordinate], pair_map.columns[self.coordinate], self.threshold, self.if_le, self.if_gt
        )
        exits = np.empty(pairs.n_pairs, dtype=np.int32)
        route_pairs(*pair_map.complete(pairs), nodes, 0, exits)
        return np.equal(exits, -1 - INSIDE)

    def coordinate_shares(self, n_coordinates: int) -> NDArray[np.float64]:
        """Impurity decrease of the tests of each coordinate, as a share of the whole."""
        total = np.bincount(self.coordinate, weights=self.decrease, minlength=n_coordinates)
        return np.asarray(total / total.sum(), dtype=np.float64)


@dataclass(frozen=True)
class LinearRegion:
    """Pairs whose weighted sum of plain coordinates, plus an intercept, is at least zero.

    ``weights`` apply to the plain (unscaled) coordinates. ``shares`` says how much each coordinate matters.
    """

    weights: NDArray[np.float64]
    intercept: float
    shares: NDArray[np.float64]
    kind: ClassVar[str] = "linear"

    def contains(self, pair_map: CoordinateSet, pairs: PointPairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region."""
        values = np.empty(pairs.n_pairs)
        linear_values(*pair_map.complete(pairs), pair_map.kind_codes, pair_map.columns, self.weights, self.intercept, values)
        return values >= 0.0

    def coordinate_shares(self, n_coordinates: int) -> NDArray[np.float64]:
        """The shares given by the splitter."""
        return self.shares


@dataclass(frozen=True)
class OpaqueRegion:
    """Pairs that a fitted scikit-learn classifier of the user's calls same, from some of their (scaled) coordinates."""

    classifier: Any
    coordinates: NDArray[np.int64]
    kind: ClassVar[str] = "opaque"

    def contains(self, pair_map: CoordinateSet, pairs: PointPairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region; a matrix of coordinates is made for some pairs at a time."""
        inside = np.empty(pairs.n_pairs, dtype=np.bool_)
        for start in range(0, pairs.n_pairs, CHUNK):
            rows = slice(start, start + CHUNK)
            inside[rows] = self.classifier.predict(self.values(pair_map, pairs.take(rows)))
        return inside

    def values(self, pair_map: CoordinateSet, pairs: PointPairs) -> NDArray[np.float64]:
        """The matrix that the classifier sees."""
        return pair_map.values(pairs)[:, self.coordinates]

    def coordinate_shares(self, n_coordinates: int) -> NDArray[np.float64]:
        """A classifier of the user's does not say."""
        raise AttributeError(
            "feature_importances_ is not known for a tree grown with ClassifierSplitter; use another splitter, "
            "or permute the columns of X and watch the score."
        )
