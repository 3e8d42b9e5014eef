"""Trees and curves in model files: what is written of them, and how it is read back and checked.

The trees of a model share their coordinates. They are written one after the other, into one array for each column of cells, of
tests and of each kind of region. What follows from other entries (depths, ranks, parents, where the tests of a cell end) is not
written, so that it cannot contradict them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.io._archive import Fields
from simtree.metrics import Roc
from simtree.pairs._coordinates import KINDS, OBLIQUE, CoordinateSet
from simtree.trees._rank_tree import Cells, RankTree, entries, joined_tree, separate_tests
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion, LinearRegion, ObliqueRegion, QuadraticRegion, Region

# Larger numbers are taken for damage.
MOST_FEATURES = 1 << 20
MOST_TREES = 1 << 16
MOST_REGIONS = 1 << 20
MOST_PAIRS = 1 << 53
# Beyond this depth different cells get the same score in float64.
DEEPEST = 52
# Gains follow from counts, up to rounding.
ROUNDING = 1e-9
# The columns of a quadratic region that have one entry a feature.
BY_FEATURE = ("centre", "linear", "own", "cross", "shares")

Placed = list[tuple[int, int, Any]]


def trees_document(trees: Sequence[RankTree]) -> dict[str, Any]:
    """What is written of trees with the same coordinates."""
    pair_map = trees[0].pair_map
    n_regions = sum(len(tree.regions) for tree in trees)
    if len(trees) > MOST_TREES or n_regions > MOST_REGIONS:
        raise ValueError(
            f"a model of {len(trees):,} trees with {n_regions:,} regions cannot be saved; a file holds at most {MOST_TREES:,} "
            f"and {MOST_REGIONS:,}. Grow fewer or smaller trees."
        )
    tests = [separate_tests(tree) for tree in trees]
    cells = {
        name: np.concatenate([getattr(tree.cells, name) for tree in trees])
        for name in ("inside", "n_same", "n_different", "gain")
    }
    placed = [(number, cell, region) for number, tree in enumerate(trees) for cell, region in tree.regions.items()]
    return {
        "coordinates": {
            "kinds": pair_map.kinds,
            "n_features": pair_map.n_features,
            "directions": pair_map.directions if len(pair_map.directions) else None,
        },
        "max_depth": np.array([tree.max_depth for tree in trees], dtype=np.int64),
        "n_cells": np.array([tree.n_cells for tree in trees], dtype=np.int64),
        "cells": {**cells, "n_tests": np.concatenate([n_tests for n_tests, _ in tests])},
        "tests": _tests_document([of_tree for _, of_tree in tests]),
        "regions": _regions_document(placed),
    }


def read_trees(fields: Fields) -> list[RankTree]:
    """Trees as `trees_document` wrote them."""
    pair_map = _read_coordinates(fields.part("coordinates"))
    n_cells = fields.lengths("n_cells", None, low=1)
    if not 0 < len(n_cells) <= MOST_TREES:
        raise fields.fail("n_cells", f"must have an entry for each tree, of which there are at most {MOST_TREES:,}")
    max_depth = fields.array("max_depth", "int64", n_cells.shape, low=1, high=DEEPEST)
    part, total = fields.part("cells"), int(n_cells.sum())
    inside = part.array("inside", "int32", (total,), low=-1)
    n_same = part.array("n_same", "int64", (total,), low=0, high=MOST_PAIRS)
    n_different = part.array("n_different", "int64", (total,), low=0, high=MOST_PAIRS)
    gain = part.array("gain", "float64", (total,))
    n_tests = part.lengths("n_tests", total)
    tests = _read_tests(fields.part("tests"), n_tests, len(pair_map))
    others = _read_regions(fields.part("regions"), pair_map, n_cells)
    trees = []
    first_tests = np.concatenate([[0], np.cumsum(n_tests)])
    for number, (start, stop) in enumerate(_ranges(n_cells)):
        own = slice(start, stop)
        columns = inside[own], n_same[own], n_different[own], gain[own], n_tests[own]
        cells = _read_cells(part, int(max_depth[number]), *columns)
        regions = others[number]
        by_region = (cells.inside >= 0) & (n_tests[own] == 0)
        if ((n_tests[own] > 0) & (cells.inside < 0)).any() or list(regions) != np.flatnonzero(by_region).tolist():
            raise fields.fail("regions", "must have one region for each cell that is split, and no other")
        of_tree = _tests_between(tests, int(first_tests[start]), int(first_tests[stop]))
        trees.append(joined_tree(pair_map, int(max_depth[number]), cells, n_tests[own], of_tree, regions))
    return trees


def roc_document(roc: Roc) -> dict[str, Any]:
    """What is written of a curve; its first threshold is infinite and is left out."""
    assert roc.thresholds is not None
    return {"fpr": roc.fpr, "tpr": roc.tpr, "thresholds": roc.thresholds[1:]}


def read_roc(fields: Fields) -> Roc:
    """A curve as `roc_document` wrote it."""
    fpr, tpr, thresholds = (fields.array(name, "float64", (None,)) for name in ("fpr", "tpr", "thresholds"))
    try:
        return Roc(fpr, tpr, np.concatenate([[np.inf], thresholds]))
    except ValueError as error:
        raise fields.fail("fpr", f"is no curve: {error}") from None


def _read_coordinates(fields: Fields) -> CoordinateSet:
    """The coordinates of pairs."""
    kinds = fields.words("kinds", len(KINDS))
    n_features = fields.integer("n_features", 1, MOST_FEATURES)
    directions = np.empty((0, n_features))
    if fields.has("directions"):
        directions = fields.array("directions", "float64", (None, n_features))
        if not np.abs(directions).max(axis=1).all():
            raise fields.fail("directions", "must hold no direction of zeros")
    if set(kinds) - set(KINDS) or not kinds or len(set(kinds)) < len(kinds) or (OBLIQUE in kinds) != bool(len(directions)):
        raise fields.fail("kinds", f"must be different words of {', '.join(KINDS)}, the last if there are directions")
    return CoordinateSet(tuple(kinds), n_features, directions)


def _read_cells(
    fields: Fields,
    max_depth: int,
    inside: NDArray[np.int32],
    n_same: NDArray[np.int64],
    n_different: NDArray[np.int64],
    gain: NDArray[np.float64],
    n_tests: NDArray[np.int64],
) -> Cells:
    """The cells of one tree, if each but the first is the child of one before it, and children partition their parent."""
    n = len(inside)
    split = np.flatnonzero(inside >= 0)
    children = inside[split]
    if n % 2 == 0 or not np.array_equal(np.sort(children), np.arange(1, n, 2)) or (children <= split).any():
        raise fields.fail("inside", "must make each cell but the first the child of one cell before it")
    outside = np.where(inside >= 0, inside + 1, -1).astype(np.int32)
    parent = np.full(n, -1, dtype=np.int32)
    parent[children], parent[children + 1] = split, split
    depth, rank = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int64)
    level = np.zeros(1, dtype=np.int64)
    while len(level := level[inside[level] >= 0]):
        if depth[level[0]] == max_depth:
            raise fields.fail("inside", f"must not be deeper than max_depth={max_depth}")
        for child, side in ((inside[level], 0), (outside[level], 1)):
            depth[child], rank[child] = depth[level] + 1, 2 * rank[level] + side
        level = np.concatenate([inside[level], outside[level]]).astype(np.int64)
    for name, counts in (("n_same", n_same), ("n_different", n_different)):
        if counts[0] < 1 or not np.array_equal(counts[children] + counts[children + 1], counts[split]):
            raise fields.fail(name, "must be positive for a tree, and for a cell the sum of its children's")
    fpr, tpr = n_different / n_different[0], n_same / n_same[0]
    expected = np.zeros(n)
    expected[split] = fpr[split] * tpr[children] - tpr[split] * fpr[children]
    if np.abs(gain - expected).max() > ROUNDING:
        raise fields.fail("gain", "must be what the counts of a cell and its children make it")
    return Cells(depth, rank, parent, inside, outside, n_same, n_different, gain, entries(n_tests))


def _tests_document(regions: Sequence[AxisRegion]) -> dict[str, Any]:
    """The tests of axis regions, one region after the other; successors are numbers within their region."""
    types = {"coordinate": np.int32, "threshold": np.float64, "if_le": np.int32, "if_gt": np.int32, "decrease": np.float64}
    return {name: _joined([getattr(region, name) for region in regions], dtype) for name, dtype in types.items()}


def _read_tests(fields: Fields, n_tests: NDArray[np.int64], n_coordinates: int | NDArray[np.int64]) -> AxisRegion:
    """The tests of regions that have so many of them each; a test leads to a later one of its region, or out of it."""
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
    return AxisRegion(coordinate, threshold, if_le, if_gt, decrease)


def _tests_between(tests: AxisRegion, start: int, stop: int) -> AxisRegion:
    """Some of the tests."""
    return AxisRegion(*(column[start:stop] for column in vars(tests).values()))


def _regions_document(placed: Placed) -> dict[str, Any]:
    """The regions of another kind than axis, kind by kind."""
    found: dict[str, Any] = {}
    for kind in sorted({region.kind for _, _, region in placed}):
        if kind not in REGIONS:
            raise TypeError(
                "a tree grown with ClassifierSplitter cannot be saved: it holds fitted classifiers, which a file of data alone "
                "cannot; use another splitter, or pickle the model where you trust whoever can write the file."
            )
        of_kind = [entry for entry in placed if entry[2].kind == kind]
        place = {"tree": [tree for tree, _, _ in of_kind], "cell": [cell for _, cell, _ in of_kind]}
        numbers = {name: np.array(column, dtype=np.int64) for name, column in place.items()}
        found[kind] = {**numbers, **REGIONS[kind][0]([region for _, _, region in of_kind])}
    return found


def _read_regions(fields: Fields, pair_map: CoordinateSet, n_cells: NDArray[np.int64]) -> list[dict[int, Region]]:
    """For each tree its regions by cell, parents before children."""
    found: dict[tuple[int, int], Region] = {}
    for kind, (_, read) in REGIONS.items():
        if not fields.has(kind):
            continue
        part = fields.part(kind)
        tree = part.array("tree", "int64", (None,), low=0, high=len(n_cells) - 1)
        cell = part.array("cell", "int64", tree.shape, low=0)
        if not 0 < len(tree) <= MOST_REGIONS or (cell >= n_cells[tree]).any():
            raise part.fail("cell", f"must be the numbers of cells that there are, at most {MOST_REGIONS:,}")
        places = list(zip(tree.tolist(), cell.tolist(), strict=True))
        if len(set(places)) < len(places) or not found.keys().isdisjoint(places):
            raise part.fail("cell", "must not name a cell twice")
        found.update(zip(places, read(part, len(places), pair_map), strict=True))
    regions: list[dict[int, Region]] = [{} for _ in n_cells]
    for tree_number, cell_number in sorted(found):
        regions[tree_number][cell_number] = found[tree_number, cell_number]
    return regions


def _linear_document(regions: Sequence[LinearRegion]) -> dict[str, Any]:
    return {
        "weights": np.array([region.weights for region in regions]),
        "intercept": np.array([region.intercept for region in regions]),
        "shares": np.array([region.shares for region in regions]),
    }


def _read_linear(fields: Fields, n: int, pair_map: CoordinateSet) -> Iterator[LinearRegion]:
    weights, shares = (fields.array(name, "float64", (n, len(pair_map))) for name in ("weights", "shares"))
    intercept = fields.array("intercept", "float64", (n,)).tolist()
    return (LinearRegion(weights[k], intercept[k], shares[k]) for k in range(n))


def _oblique_document(regions: Sequence[ObliqueRegion]) -> dict[str, Any]:
    return {
        "n_tests": np.array([len(region.tests.coordinate) for region in regions], dtype=np.int64),
        "n_directions": np.array([len(region.directions) for region in regions], dtype=np.int64),
        "tests": _tests_document([region.tests for region in regions]),
        "directions": np.concatenate([region.directions for region in regions]),
    }


def _read_oblique(fields: Fields, n: int, pair_map: CoordinateSet) -> Iterator[ObliqueRegion]:
    directions = fields.array("directions", "float64", (None, pair_map.n_features))
    if not np.abs(directions).max(axis=1).all():
        raise fields.fail("directions", "must hold no direction of zeros")
    n_directions = fields.lengths("n_directions", n, len(directions), low=1)
    n_tests = fields.lengths("n_tests", n, low=1)
    tests = _read_tests(fields.part("tests"), n_tests, len(pair_map) + 2 * n_directions)
    return (
        ObliqueRegion(_tests_between(tests, *of_tests), directions[slice(*of_directions)])
        for of_tests, of_directions in zip(_ranges(n_tests), _ranges(n_directions), strict=True)
    )


def _quadratic_document(regions: Sequence[QuadraticRegion]) -> dict[str, Any]:
    return {
        "n_features": np.array([len(region.features) for region in regions], dtype=np.int64),
        "features": np.concatenate([region.features for region in regions]).astype(np.int64),
        **{name: np.concatenate([getattr(region, name) for region in regions]) for name in BY_FEATURE},
        "own_directions": np.concatenate([region.own_directions.ravel() for region in regions]),
        "cross_directions": np.concatenate([region.cross_directions.ravel() for region in regions]),
        "threshold": np.array([region.threshold for region in regions]),
    }


def _read_quadratic(fields: Fields, n: int, pair_map: CoordinateSet) -> Iterator[QuadraticRegion]:
    features = fields.array("features", "int64", (None,), low=0, high=pair_map.n_features - 1)
    n_features = fields.lengths("n_features", n, len(features), low=1)
    columns = {name: fields.array(name, "float64", features.shape) for name in BY_FEATURE}
    squares = n_features**2
    own, cross = (fields.array(name, "float64", (int(squares.sum()),)) for name in ("own_directions", "cross_directions"))
    threshold = fields.array("threshold", "float64", (n,)).tolist()
    for k, (of_features, of_squares) in enumerate(zip(_ranges(n_features), _ranges(squares), strict=True)):
        some, shape = slice(*of_features), (int(n_features[k]), int(n_features[k]))
        yield QuadraticRegion(
            features=features[some],
            own_directions=own[slice(*of_squares)].reshape(shape),
            cross_directions=cross[slice(*of_squares)].reshape(shape),
            threshold=threshold[k],
            **{name: column[some] for name, column in columns.items()},
        )


# How regions of each kind are written and read.
REGIONS: dict[str, tuple[Callable[[Any], dict[str, Any]], Callable[[Fields, int, CoordinateSet], Iterator[Region]]]] = {
    "linear": (_linear_document, _read_linear),
    "oblique": (_oblique_document, _read_oblique),
    "quadratic": (_quadratic_document, _read_quadratic),
}


def _joined(columns: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=dtype), *columns]).astype(dtype)


def _ranges(lengths: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Where parts of these lengths begin and end."""
    ends = np.cumsum(lengths)
    return zip((ends - lengths).tolist(), ends.tolist(), strict=True)
