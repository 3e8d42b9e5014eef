"""Symmetric regions of pairs, as returned by splitters.

There is one class per kind: ``axis`` and ``oblique`` are here; ``linear``, ``quadratic`` and ``opaque`` have their own modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.cart import INSIDE, OUTSIDE
from simtree._kernels.missing import route_states
from simtree._kernels.route import Nodes, route_pairs
from simtree.io._fields import Fields
from simtree.io._registry import REGION, register
from simtree.pairs._coordinates import OBLIQUE, CoordinateSet, SamplePairs, occurring, with_products
from simtree.trees._states import MAX_STATES, joined_states, with_states

__all__ = ["INSIDE", "OUTSIDE", "AxisRegion", "ObliqueRegion", "Region"]


class Region(Protocol):
    """A symmetric set of pairs: membership does not depend on the order of the two samples."""

    @property
    def kind(self) -> str:
        """Kind of the region: ``axis``, ``linear``, ``oblique``, ``quadratic`` or ``opaque``."""

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs, *, unseen_inside: bool = False) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.
        unseen_inside : bool, default=False
            Where pairs go whose state of missing values did not occur in training.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """

    def feature_shares(self, pair_map: CoordinateSet, present: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the share of each feature in the split.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        present : ndarray of bool of shape (n_features,), optional
            Features that both samples of a pair have, to explain its score; all by default.

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

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs, *, unseen_inside: bool = False) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.
        unseen_inside : bool, default=False
            Where pairs go whose state of missing values did not occur in training.

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
            unseen = np.full(len(self.coordinate), INSIDE if unseen_inside else OUTSIDE, dtype=np.int32)
            route_states(*pairs, with_states(nodes, self.states, unseen, pair_map.kernel_directions), 0, exits)
        else:
            route_pairs(*pairs, nodes, 0, exits)
        return np.equal(exits, -1 - INSIDE)

    def feature_shares(self, pair_map: CoordinateSet, present: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the share of each feature in the total impurity decrease of the tests.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        present : ndarray of bool of shape (n_features,), optional
            Features that both samples of a pair have, to explain its score; all by default.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares that sum to one.
        """
        total = np.bincount(self.coordinate, weights=self.decrease, minlength=len(pair_map))
        return pair_map.by_feature(total / total.sum(), present)

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

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs, *, unseen_inside: bool = False) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.
        unseen_inside : bool, default=False
            Where pairs go whose state of missing values did not occur in training.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """
        pairs = pair_map.complete(pairs)
        A, first = _with_products(pairs.A, pairs.first, pair_map, self.directions)
        B, second = _with_products(pairs.B, pairs.second, pair_map, self.directions)
        own = CoordinateSet((OBLIQUE,), pair_map.n_features, self.directions)
        # Products with the directions follow the features of the samples, and their products with directions of all cells.
        kinds = np.append(pair_map.kind_codes, own.kind_codes)
        columns = np.append(pair_map.columns, own.columns - own.n_features + pair_map.n_columns)
        tests = self.tests
        nodes = Nodes(kinds[tests.coordinate], columns[tests.coordinate], tests.threshold, tests.if_le, tests.if_gt)
        exits = np.empty(pairs.n_pairs, dtype=np.int32)
        if pairs.lacks_values:
            unseen = np.full(len(tests.coordinate), INSIDE if unseen_inside else OUTSIDE, dtype=np.int32)
            directions = np.vstack([pair_map.kernel_directions, self.directions])
            state_nodes = with_states(nodes, tests.states, unseen, directions)
            route_states(A, B, first, second, pairs.pairwise, state_nodes, 0, exits)
        else:
            route_pairs(A, B, first, second, pairs.pairwise, nodes, 0, exits)
        return np.equal(exits, -1 - INSIDE)

    def feature_shares(self, pair_map: CoordinateSet, present: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the share of each feature in the total impurity decrease of the tests; by ``|w|`` for a direction w.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        present : ndarray of bool of shape (n_features,), optional
            Features that both samples of a pair have, to explain its score; all by default.

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
        shares = pair_map.by_feature(total[:n], present)
        shares[: own.n_features] += own.by_feature(total[n:], present)
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


def _with_products(
    samples: NDArray[Any], rows: NDArray[np.int32], pair_map: CoordinateSet, directions: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the samples that occur, with their products with the directions as last columns, and their new row numbers.

    Codes of categories are left out: the coordinates of a pair that depend on them are already computed.
    """
    used, numbers = occurring(samples, rows)
    features = np.ascontiguousarray(used[:, : pair_map.n_features])
    return with_products(used[:, : pair_map.n_columns], features, directions), numbers


def ranges(lengths: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Return the start and stop of consecutive ranges of these lengths."""
    return pairwise([0, *np.cumsum(lengths).tolist()])
