"""Symmetric regions of pairs: what a splitter returns.

One type a kind: ``axis``, ``linear``, ``oblique``, ``quadratic``, ``opaque``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.cart import INSIDE, OUTSIDE
from simtree._kernels.coordinates import linear_values, quadratic_values
from simtree._kernels.route import Nodes, route_pairs
from simtree._kernels.samples import fill_products
from simtree._utils.matrices import explained_overflow
from simtree.io._fields import Fields
from simtree.io._registry import REGION, register
from simtree.pairs._coordinates import OBLIQUE, CoordinateSet, SamplePairs, occurring, with_products

__all__ = ["INSIDE", "OUTSIDE", "AxisRegion", "LinearRegion", "ObliqueRegion", "OpaqueRegion", "QuadraticRegion", "Region"]

# Pairs whose coordinates are made into a matrix at one time.
CHUNK = 50_000
# The columns of a quadratic region that have one entry per feature.
BY_FEATURE = ("centre", "linear", "own", "cross", "shares")


class Region(Protocol):
    """A set of pairs that holds a pair whichever of its two points comes first."""

    @property
    def kind(self) -> str:
        """``axis``, ``linear``, ``oblique``, ``quadratic`` or ``opaque``."""

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region."""

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """How much each feature had to do with the split: shares that sum to one."""


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

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region."""
        nodes = Nodes(
            pair_map.kind_codes[self.coordinate], pair_map.columns[self.coordinate], self.threshold, self.if_le, self.if_gt
        )
        exits = np.empty(pairs.n_pairs, dtype=np.int32)
        route_pairs(*pair_map.complete(pairs), nodes, 0, exits)
        return np.equal(exits, -1 - INSIDE)

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """Impurity decrease of the tests of each feature, as a share of the whole."""
        total = np.bincount(self.coordinate, weights=self.decrease, minlength=len(pair_map))
        return pair_map.by_feature(total / total.sum())

    @staticmethod
    def _get_state(regions: Sequence[AxisRegion]) -> dict[str, Any]:
        """Return the tests of regions, one region after the other; successors are numbers within their region."""
        types = {"coordinate": np.int32, "threshold": np.float64, "if_le": np.int32, "if_gt": np.int32, "decrease": np.float64}
        return {
            name: np.concatenate([np.empty(0, dtype=dtype), *(getattr(region, name) for region in regions)]).astype(dtype)
            for name, dtype in types.items()
        }

    @classmethod
    def _from_state(cls, fields: Fields, n_tests: NDArray[np.int64], n_coordinates: int | NDArray[np.int64]) -> AxisRegion:
        """Return the tests of regions that have so many of them each, joined; `between` takes them apart.

        A test leads to a later one of its region, or out of it.
        """
        coordinate = fields.array("coordinate", "int32", (None,), low=0)
        n = len(coordinate)
        if int(n_tests.sum()) != n:
            raise fields.fail("coordinate", f"must have {int(n_tests.sum()):,} entries, not {n:,}")
        owner = np.repeat(np.arange(len(n_tests)), n_tests)
        most = n_coordinates if isinstance(n_coordinates, int) else n_coordinates[owner]
        if (coordinate >= most).any():
            raise fields.fail("coordinate", "must be the numbers of coordinates that there are")
        threshold, decrease = (fields.array(name, "float64", (n,)) for name in ("threshold", "decrease"))
        number = np.arange(n) - (np.cumsum(n_tests) - n_tests)[owner]
        successors = []
        for name in ("if_le", "if_gt"):
            successor = fields.array(name, "int32", (n,), low=min(INSIDE, OUTSIDE))
            if (((successor >= 0) & (successor <= number)) | (successor >= n_tests[owner])).any():
                raise fields.fail(name, "must lead from each test to a later one of the same cell, or to an end")
            successors.append(successor)
        if_le, if_gt = successors
        return cls(coordinate, threshold, if_le, if_gt, decrease)

    def between(self, start: int, stop: int) -> AxisRegion:
        """Return some of the tests."""
        return AxisRegion(*(column[start:stop] for column in vars(self).values()))


@register(REGION)
@dataclass(frozen=True)
class LinearRegion:
    """Pairs whose weighted sum of plain coordinates, plus an intercept, is at least zero.

    ``weights`` apply to the plain (unscaled) coordinates. ``shares`` says how much each coordinate matters.
    """

    weights: NDArray[np.float64]
    intercept: float
    shares: NDArray[np.float64]
    kind: ClassVar[str] = "linear"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region."""
        values = np.empty(pairs.n_pairs)
        linear_values(*pair_map.complete(pairs), pair_map.kind_codes, pair_map.columns, self.weights, self.intercept, values)
        return values >= 0.0

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """The shares of coordinates given by the splitter, by feature."""
        return pair_map.by_feature(self.shares)

    @staticmethod
    def _get_state(regions: Sequence[LinearRegion]) -> dict[str, Any]:
        """Return the columns of regions, one row per region."""
        return {
            "weights": np.array([region.weights for region in regions]),
            "intercept": np.array([region.intercept for region in regions]),
            "shares": np.array([region.shares for region in regions]),
        }

    @classmethod
    def _from_state(cls, fields: Fields, n: int, pair_map: CoordinateSet) -> Iterator[LinearRegion]:
        """Yield ``n`` regions."""
        weights, shares = (fields.array(name, "float64", (n, len(pair_map))) for name in ("weights", "shares"))
        intercept = fields.array("intercept", "float64", (n,)).tolist()
        return (cls(weights[k], intercept[k], shares[k]) for k in range(n))


@register(REGION)
@dataclass(frozen=True)
class ObliqueRegion:
    """Tests as those of an axis region, also of oblique coordinates along directions of the region's own.

    Parameters
    ----------
    tests : AxisRegion
        The tests. With n the number of coordinates of a pair, coordinate n + k is |w·(x - x')| of direction k, and after all of
        these come the w·(x + x').
    directions : ndarray of shape (n_directions, n_features)
        The directions w.
    """

    tests: AxisRegion
    directions: NDArray[np.float64]
    kind: ClassVar[str] = "oblique"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region."""
        pairs = pair_map.complete(pairs)
        A, first = _with_products(pairs.A, pairs.first, self.directions)
        B, second = _with_products(pairs.B, pairs.second, self.directions)
        own = CoordinateSet((OBLIQUE,), pair_map.n_features, self.directions)
        # Products with the directions come behind all columns of the points.
        kinds = np.append(pair_map.kind_codes, own.kind_codes)
        columns = np.append(pair_map.columns, own.columns - own.n_features + pair_map.n_columns)
        tests = self.tests
        nodes = Nodes(kinds[tests.coordinate], columns[tests.coordinate], tests.threshold, tests.if_le, tests.if_gt)
        exits = np.empty(pairs.n_pairs, dtype=np.int32)
        route_pairs(A, B, first, second, pairs.whole, nodes, 0, exits)
        return np.equal(exits, -1 - INSIDE)

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """Impurity decrease of the tests of each feature, as a share of the whole; by |w| for a direction w."""
        n = len(pair_map)
        own = CoordinateSet((OBLIQUE,), pair_map.n_features, self.directions)
        total = (
            np.bincount(self.tests.coordinate, weights=self.tests.decrease, minlength=n + len(own)) / self.tests.decrease.sum()
        )
        return pair_map.by_feature(total[:n]) + own.by_feature(total[n:])

    @staticmethod
    def _get_state(regions: Sequence[ObliqueRegion]) -> dict[str, Any]:
        """Return the tests and directions of regions, one region after the other."""
        return {
            "n_tests": np.array([len(region.tests.coordinate) for region in regions], dtype=np.int64),
            "n_directions": np.array([len(region.directions) for region in regions], dtype=np.int64),
            "tests": AxisRegion._get_state([region.tests for region in regions]),
            "directions": np.concatenate([region.directions for region in regions]),
        }

    @classmethod
    def _from_state(cls, fields: Fields, n: int, pair_map: CoordinateSet) -> Iterator[ObliqueRegion]:
        """Yield ``n`` regions."""
        directions = fields.moderate("directions", (None, pair_map.n_features))
        if not np.abs(directions).max(axis=1).all():
            raise fields.fail("directions", "must not hold a direction of zeros")
        n_directions = fields.lengths("n_directions", n, len(directions), low=1)
        n_tests = fields.lengths("n_tests", n, low=1)
        tests = AxisRegion._from_state(fields.part("tests"), n_tests, len(pair_map) + 2 * n_directions)
        return (
            cls(tests.between(*of_tests), directions[slice(*of_directions)])
            for of_tests, of_directions in zip(ranges(n_tests), ranges(n_directions), strict=True)
        )


@register(REGION)
@dataclass(frozen=True)
class QuadraticRegion:
    """Pairs whose score, a quadratic function of their difference and of their sum, is at least a threshold.

    Of each point only its distance from ``centre`` matters, y = x - centre. The score of a pair is

        u(y) + u(y') + sum over k of cross[k] (E y)_k (E y')_k,   with   u(y) = l·y + sum over k of own[k] (F y)_k^2.

    Parameters
    ----------
    features : ndarray of int
        The features that are looked at; all else has as many columns as they are.
    centre, linear : ndarrays of shape (n,)
        The point from which points are measured, and l.
    own_directions, own : ndarrays of shape (n, n) and (n,)
        F, and the weights of its squares.
    cross_directions, cross : ndarrays of shape (n, n) and (n,)
        E, and the weights of its products.
    threshold : float
        The least score of a pair in the region.
    shares : ndarray of shape (n,)
        How much each of the features matters.
    """

    features: NDArray[np.int64]
    centre: NDArray[np.float64]
    linear: NDArray[np.float64]
    own_directions: NDArray[np.float64]
    own: NDArray[np.float64]
    cross_directions: NDArray[np.float64]
    cross: NDArray[np.float64]
    threshold: float
    shares: NDArray[np.float64]
    kind: ClassVar[str] = "quadratic"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region."""
        return self.scores(pairs) >= self.threshold

    def at(self, threshold: float) -> QuadraticRegion:
        """The region of the same score with another threshold."""
        return replace(self, threshold=threshold)

    def scores(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """The score of each pair."""
        products_a, own_a, first = self._of_points(pairs.A, pairs.first)
        products_b, own_b, second = self._of_points(pairs.B, pairs.second)
        values = np.empty(pairs.n_pairs)
        quadratic_values(products_a, products_b, own_a, own_b, first, second, self.cross, values)
        return values

    def _of_points(
        self, samples: NDArray[Any], rows: NDArray[np.int32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
        """E y and u(y) of the points that occur, and their new row numbers."""
        used, numbers = occurring(samples, rows)
        centred = used[:, self.features].astype(np.float64) - self.centre
        products, squares, own, line = (np.empty((len(used), n)) for n in (len(self.cross), len(self.own), 1, 1))
        fill_products(centred, np.ascontiguousarray(self.cross_directions.T), products)
        fill_products(centred, np.ascontiguousarray(self.own_directions.T), squares)
        with np.errstate(over="ignore"):  # a score that is not a number lies outside
            squares = squares**2
        fill_products(squares, self.own[:, None], own)
        fill_products(centred, self.linear[:, None], line)
        return products, (own + line)[:, 0], numbers

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """The shares given by the splitter."""
        found = np.zeros(pair_map.n_features)
        found[self.features] = self.shares
        return found

    @staticmethod
    def _get_state(regions: Sequence[QuadraticRegion]) -> dict[str, Any]:
        """Return the columns and matrices of regions, one region after the other."""
        return {
            "n_features": np.array([len(region.features) for region in regions], dtype=np.int64),
            "features": np.concatenate([region.features for region in regions]).astype(np.int64),
            **{name: np.concatenate([getattr(region, name) for region in regions]) for name in BY_FEATURE},
            "own_directions": np.concatenate([region.own_directions.ravel() for region in regions]),
            "cross_directions": np.concatenate([region.cross_directions.ravel() for region in regions]),
            "threshold": np.array([region.threshold for region in regions]),
        }

    @classmethod
    def _from_state(cls, fields: Fields, n: int, pair_map: CoordinateSet) -> Iterator[QuadraticRegion]:
        """Yield ``n`` regions."""
        features = fields.array("features", "int64", (None,), low=0, high=pair_map.n_features - 1)
        n_features = fields.lengths("n_features", n, len(features), low=1)
        columns = {name: fields.array(name, "float64", features.shape) for name in BY_FEATURE}
        squares = n_features**2
        own, cross = (fields.array(name, "float64", (int(squares.sum()),)) for name in ("own_directions", "cross_directions"))
        threshold = fields.array("threshold", "float64", (n,)).tolist()
        for k, (of_features, of_squares) in enumerate(zip(ranges(n_features), ranges(squares), strict=True)):
            some, shape = slice(*of_features), (int(n_features[k]), int(n_features[k]))
            yield cls(
                features=features[some],
                own_directions=own[slice(*of_squares)].reshape(shape),
                cross_directions=cross[slice(*of_squares)].reshape(shape),
                threshold=threshold[k],
                **{name: column[some] for name, column in columns.items()},
            )


@dataclass(frozen=True)
class OpaqueRegion:
    """Pairs that a fitted scikit-learn classifier of the user's calls same, from some of their (scaled) coordinates."""

    classifier: Any
    coordinates: NDArray[np.int64]
    kind: ClassVar[str] = "opaque"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Whether each pair lies in the region; a matrix of coordinates is made for some pairs at a time."""
        inside = np.empty(pairs.n_pairs, dtype=np.bool_)
        for start in range(0, pairs.n_pairs, CHUNK):
            rows = slice(start, start + CHUNK)
            values = self.values(pair_map, pairs.take(rows))
            with explained_overflow(values, f"the classifier {self.classifier!r}"):
                inside[rows] = self.classifier.predict(values)
        return inside

    def values(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.float64]:
        """The matrix that the classifier sees."""
        return pair_map.values(pairs)[:, self.coordinates]

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """A classifier of the user's does not say."""
        raise AttributeError(
            "feature_importances_ is not known for a tree grown with ClassifierSplitter; use another splitter, "
            "or permute the columns of X and watch the score."
        )


def _with_products(
    samples: NDArray[Any], rows: NDArray[np.int32], directions: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The points that occur, with their products with the directions as last columns, and their new row numbers."""
    used, numbers = occurring(samples, rows)
    features = np.ascontiguousarray(used[:, : directions.shape[1]])
    return with_products(used, features, directions), numbers


def ranges(lengths: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Return where parts of these lengths begin and end."""
    return pairwise([0, *np.cumsum(lengths).tolist()])
