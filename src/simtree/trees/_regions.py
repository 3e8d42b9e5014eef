"""Symmetric regions of pairs, as returned by splitters.

There is one class per kind: ``axis``, ``linear``, ``oblique``, ``quadratic`` and ``opaque``.
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
from simtree._kernels.missing import route_states
from simtree._kernels.route import Nodes, route_pairs
from simtree._kernels.samples import fill_products
from simtree._utils.matrices import explained_overflow
from simtree.io._fields import Fields
from simtree.io._registry import REGION, register
from simtree.pairs._coordinates import OBLIQUE, CoordinateSet, SamplePairs, occurring, with_products
from simtree.trees._states import MAX_STATES, joined_states, with_states

__all__ = ["INSIDE", "OUTSIDE", "AxisRegion", "LinearRegion", "ObliqueRegion", "OpaqueRegion", "QuadraticRegion", "Region"]

# Number of pairs whose coordinates are held as a matrix at a time.
CHUNK = 50_000
# Arrays of a quadratic region with one entry per feature.
BY_FEATURE = ("centre", "linear", "own", "cross", "shares")


class Region(Protocol):
    """A symmetric set of pairs: membership does not depend on the order of the two samples."""

    @property
    def kind(self) -> str:
        """Kind of the region: ``axis``, ``linear``, ``oblique``, ``quadratic`` or ``opaque``."""

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """Return the share of each feature in the split.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares that sum to one.
        """


@dataclass(frozen=True)
class AxisRegion:
    """Pairs selected by tests of single coordinates, such as those of a classification tree.

    Each test leads to a later test, to `INSIDE` or to `OUTSIDE`; evaluation starts at test 0.

    Parameters
    ----------
    coordinate, threshold, if_le, if_gt : ndarrays of shape (n_tests,)
        Test t continues at ``if_le[t]`` if coordinate ``coordinate[t]`` is at most ``threshold[t]``, otherwise at
        ``if_gt[t]``.
    decrease : ndarray of shape (n_tests,)
        Impurity decrease of each test.
    states : ndarray of uint8 of shape (n_tests,), optional
        Where each test sends pairs of which one sample, or both, lack the feature: a sum of bits of
        `simtree._kernels.missing`. None if no training pair lacked any, as zeros.
    """

    coordinate: NDArray[np.int32]
    threshold: NDArray[np.float64]
    if_le: NDArray[np.int32]
    if_gt: NDArray[np.int32]
    decrease: NDArray[np.float64]
    states: NDArray[np.uint8] | None = None
    kind: ClassVar[str] = "axis"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """
        nodes = Nodes(
            pair_map.kind_codes[self.coordinate], pair_map.columns[self.coordinate], self.threshold, self.if_le, self.if_gt
        )
        exits = np.empty(pairs.n_pairs, dtype=np.int32)
        pairs = pair_map.complete(pairs)
        if pairs.lacks_values:
            outside = np.full(len(self.coordinate), OUTSIDE, dtype=np.int32)
            route_states(*pairs, with_states(nodes, self.states, outside, pair_map), 0, exits)
        else:
            route_pairs(*pairs, nodes, 0, exits)
        return np.equal(exits, -1 - INSIDE)

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """Return the share of each feature in the total impurity decrease of the tests.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares that sum to one.
        """
        total = np.bincount(self.coordinate, weights=self.decrease, minlength=len(pair_map))
        return pair_map.by_feature(total / total.sum())

    @staticmethod
    def _get_state(regions: Sequence[AxisRegion]) -> dict[str, Any]:
        """Return the concatenated tests of regions; successors are numbered within their region."""
        types = {"coordinate": np.int32, "threshold": np.float64, "if_le": np.int32, "if_gt": np.int32, "decrease": np.float64}
        state = {
            name: np.concatenate([np.empty(0, dtype=dtype), *(getattr(region, name) for region in regions)]).astype(dtype)
            for name, dtype in types.items()
        }
        states = joined_states(regions)
        return state if states is None else {**state, "states": states}

    @classmethod
    def _from_state(cls, fields: Fields, n_tests: NDArray[np.int64], n_coordinates: int | NDArray[np.int64]) -> AxisRegion:
        """Return the concatenated tests of regions, given the number of tests per region; `between` separates them.

        Each test must lead to a later one of the same region, or out of it.
        """
        coordinate = fields.array("coordinate", "int32", (None,), low=0)
        n = len(coordinate)
        if int(n_tests.sum()) != n:
            raise fields.fail("coordinate", f"must have {int(n_tests.sum()):,} entries, not {n:,}")
        owner = np.repeat(np.arange(len(n_tests)), n_tests)
        limit = n_coordinates if isinstance(n_coordinates, int) else n_coordinates[owner]
        if (coordinate >= limit).any():
            raise fields.fail("coordinate", "must contain indices of existing coordinates")
        threshold, decrease = (fields.array(name, "float64", (n,)) for name in ("threshold", "decrease"))
        number = np.arange(n) - (np.cumsum(n_tests) - n_tests)[owner]
        successors = []
        for name in ("if_le", "if_gt"):
            successor = fields.array(name, "int32", (n,), low=min(INSIDE, OUTSIDE))
            if (((successor >= 0) & (successor <= number)) | (successor >= n_tests[owner])).any():
                raise fields.fail(name, "must lead from each test to a later one of the same cell, or to an exit")
            successors.append(successor)
        if_le, if_gt = successors
        states = fields.array("states", "uint8", (n,), high=MAX_STATES) if fields.has("states") else None
        return cls(coordinate, threshold, if_le, if_gt, decrease, states)

    def between(self, start: int, stop: int) -> AxisRegion:
        """Return the tests from ``start`` to ``stop``.

        Parameters
        ----------
        start, stop : int
            Range of tests.

        Returns
        -------
        AxisRegion
            A region of these tests.
        """
        chosen = {name: column[start:stop] for name, column in vars(self).items() if column is not None}
        return replace(self, **chosen)


@register(REGION)
@dataclass(frozen=True)
class LinearRegion:
    """Pairs for which a weighted sum of coordinates plus an intercept is at least zero.

    Parameters
    ----------
    weights : ndarray of shape (n_coordinates,)
        Weights of the plain (unscaled) coordinates.
    intercept : float
        Constant added to the sum.
    shares : ndarray of shape (n_coordinates,)
        Share of each coordinate in the split, for feature importances.
    """

    weights: NDArray[np.float64]
    intercept: float
    shares: NDArray[np.float64]
    kind: ClassVar[str] = "linear"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """
        values = np.empty(pairs.n_pairs)
        linear_values(*pair_map.complete(pairs), pair_map.kind_codes, pair_map.columns, self.weights, self.intercept, values)
        return values >= 0.0

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """Return the share of each feature, from the shares of the coordinates.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares that sum to one.
        """
        return pair_map.by_feature(self.shares)

    @staticmethod
    def _get_state(regions: Sequence[LinearRegion]) -> dict[str, Any]:
        """Return the state of regions, one row per region."""
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
    """Pairs selected by tests as in an axis region, also of oblique coordinates along the region's own directions.

    Parameters
    ----------
    tests : AxisRegion
        The tests. If a pair has n coordinates, coordinate n + k is ``|w·(x - x')|`` for direction k; these are followed by
        w·(x + x') for each direction.
    directions : ndarray of shape (n_directions, n_features)
        The directions w.
    """

    tests: AxisRegion
    directions: NDArray[np.float64]
    kind: ClassVar[str] = "oblique"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """
        pairs = pair_map.complete(pairs)
        A, first = _with_products(pairs.A, pairs.first, self.directions)
        B, second = _with_products(pairs.B, pairs.second, self.directions)
        own = CoordinateSet((OBLIQUE,), pair_map.n_features, self.directions)
        # Products with the directions follow all columns of the samples.
        kinds = np.append(pair_map.kind_codes, own.kind_codes)
        columns = np.append(pair_map.columns, own.columns - own.n_features + pair_map.n_columns)
        tests = self.tests
        nodes = Nodes(kinds[tests.coordinate], columns[tests.coordinate], tests.threshold, tests.if_le, tests.if_gt)
        exits = np.empty(pairs.n_pairs, dtype=np.int32)
        route_pairs(A, B, first, second, pairs.pairwise, nodes, 0, exits)
        return np.equal(exits, -1 - INSIDE)

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """Return the share of each feature in the total impurity decrease of the tests; by ``|w|`` for a direction w.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares that sum to one.
        """
        n = len(pair_map)
        own = CoordinateSet((OBLIQUE,), pair_map.n_features, self.directions)
        total = (
            np.bincount(self.tests.coordinate, weights=self.tests.decrease, minlength=n + len(own)) / self.tests.decrease.sum()
        )
        shares = pair_map.by_feature(total[:n])
        shares[: own.n_features] += own.by_feature(total[n:])
        return shares

    @staticmethod
    def _get_state(regions: Sequence[ObliqueRegion]) -> dict[str, Any]:
        """Return the concatenated tests and directions of regions."""
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
            raise fields.fail("directions", "must not contain a zero vector")
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
    """Pairs for which a quadratic function of their difference and their sum is at least a threshold.

    With y = x - centre for each sample x, the score of a pair is

        u(y) + u(y') + sum over k of cross[k] (E y)_k (E y')_k,   with   u(y) = l·y + sum over k of own[k] (F y)_k^2.

    Parameters
    ----------
    features : ndarray of int of shape (n,)
        The features that are used.
    centre, linear : ndarrays of shape (n,)
        The centre, and the vector l.
    own_directions, own : ndarrays of shape (n, n) and (n,)
        The matrix F, and the weights of the squares.
    cross_directions, cross : ndarrays of shape (n, n) and (n,)
        The matrix E, and the weights of the products.
    threshold : float
        Minimum score of a pair in the region.
    shares : ndarray of shape (n,)
        Share of each of the features in the split, for feature importances.
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
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """
        return self.scores(pairs) >= self.threshold

    def at(self, threshold: float) -> QuadraticRegion:
        """Return the region with the same score and another threshold.

        Parameters
        ----------
        threshold : float
            Minimum score of a pair in the region.

        Returns
        -------
        QuadraticRegion
            The region.
        """
        return replace(self, threshold=threshold)

    def scores(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the score of each pair.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Scores; a pair lies in the region if its score is at least the threshold.
        """
        products_a, own_a, first = self._project(pairs.A, pairs.first)
        products_b, own_b, second = self._project(pairs.B, pairs.second)
        values = np.empty(pairs.n_pairs)
        quadratic_values(products_a, products_b, own_a, own_b, first, second, self.cross, values)
        return values

    def _project(
        self, samples: NDArray[Any], rows: NDArray[np.int32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
        """Return E y and u(y) for the samples that occur, and their new row numbers."""
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
        """Return the share of each feature, as given by the splitter.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares that sum to one.
        """
        found = np.zeros(pair_map.n_all_features)
        found[self.features] = self.shares
        return found

    @staticmethod
    def _get_state(regions: Sequence[QuadraticRegion]) -> dict[str, Any]:
        """Return the concatenated arrays of regions."""
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
    """Pairs that a fitted scikit-learn classifier predicts to be same, from some of their (scaled) coordinates.

    Parameters
    ----------
    classifier : scikit-learn classifier
        The fitted classifier.
    coordinates : ndarray of int
        Indices of the coordinates that it was fitted on.
    """

    classifier: Any
    coordinates: NDArray[np.int64]
    kind: ClassVar[str] = "opaque"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """
        inside = np.empty(pairs.n_pairs, dtype=np.bool_)
        for start in range(0, pairs.n_pairs, CHUNK):
            rows = slice(start, start + CHUNK)
            values = self.values(pair_map, pairs.take(rows))
            with explained_overflow(values, "the classifier ", self.classifier):
                inside[rows] = self.classifier.predict(values)
        return inside

    def values(self, pair_map: CoordinateSet, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the feature matrix of the classifier.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of shape (n_pairs, n_coordinates)
            One row per pair.
        """
        return pair_map.values(pairs)[:, self.coordinates]

    def feature_shares(self, pair_map: CoordinateSet) -> NDArray[np.float64]:
        """Raise an error: the shares of features in an arbitrary classifier are not known.

        Parameters
        ----------
        pair_map : CoordinateSet
            Not used.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError(
            "feature_importances_ is not available for a tree grown with ClassifierSplitter; use another splitter, "
            "or compute permutation importances from the score."
        )


def _with_products(
    samples: NDArray[Any], rows: NDArray[np.int32], directions: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the samples that occur, with their products with the directions as last columns, and their new row numbers."""
    used, numbers = occurring(samples, rows)
    features = np.ascontiguousarray(used[:, : directions.shape[1]])
    return with_products(used, features, directions), numbers


def ranges(lengths: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Return the start and stop of consecutive ranges of these lengths."""
    return pairwise([0, *np.cumsum(lengths).tolist()])
