"""The frozen, flat ranking tree: a table of cells (what is known of them) and a table of nodes (how a pair finds its cell).

Cells are numbered so that children come after their parent; cell 0 is the space of all pairs. The tests of all axis regions
are merged into one table of nodes that ends in cells:

    cell 0: |a - a'| <= 1 ?            node 0: |a - a'| <= 1 ?  yes: node 1   no: cell 2
      inside  cell 1: a + a' <= 3 ?    node 1: a + a' <= 3 ?    yes: cell 3   no: cell 4
        inside  cell 3
        outside cell 4
      outside cell 2

Where a cell is split by another kind of region, the walk stops there and the region itself is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.route import Nodes, add_exit_values, route_pairs
from simtree.io._fields import MAX_COUNT, Fields
from simtree.io._registry import REGION, get_class, known_names
from simtree.metrics import Roc
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion, Region, ranges

# Beyond this depth different cells get the same score in float64.
MAX_DEPTH = 52
# Larger numbers in a model file are taken for damage.
MAX_TREES = 1 << 16
MAX_REGIONS = 1 << 20
# Gains follow from counts, up to rounding.
ROUNDING = 1e-9


class Cells(NamedTuple):
    """Cells of a tree, one entry each. Counts are the truth; rates are derived from them."""

    depth: NDArray[np.int32]
    rank: NDArray[np.int64]
    """Position among the 2^depth cells of its depth; 0 is the most similar."""
    parent: NDArray[np.int32]
    inside: NDArray[np.int32]
    """The more similar child, or -1 for a terminal cell."""
    outside: NDArray[np.int32]
    n_same: NDArray[np.int64]
    n_different: NDArray[np.int64]
    gain: NDArray[np.float64]
    """Twice the area that splitting the cell added under the ROC curve; 0 for a terminal cell."""
    entry: NDArray[np.int32]
    """First node of the cell's own axis region, or -1."""


@dataclass(frozen=True, eq=False)
class RankTree:
    """A grown similarity tree.

    Parameters
    ----------
    pair_map : CoordinateSet
        The coordinates that nodes test.
    max_depth : int
        The depth D of the score scale: a terminal cell (j, k) has the score 2^D (1 - k / 2^j).
    cells : Cells
        Statistics of the cells.
    nodes : Nodes
        Tests of all axis regions; exits are cells.
    coordinate : ndarray of shape (n_nodes,)
        The coordinate that each node tests, as a number of ``pair_map``.
    decrease : ndarray of shape (n_nodes,)
        Impurity decrease of each test.
    regions : mapping from cell to Region
        The regions of another kind than axis.
    """

    pair_map: CoordinateSet
    max_depth: int
    cells: Cells
    nodes: Nodes
    coordinate: NDArray[np.int32]
    decrease: NDArray[np.float64]
    regions: Mapping[int, Region]

    @staticmethod
    def _get_state(trees: Sequence[RankTree]) -> dict[str, Any]:
        """Return what a model file holds of trees with the same coordinates: one array for each column, tree after tree.

        What follows from other entries (depths, ranks, parents, where the tests of a cell end) is not written, so that it
        cannot contradict them.
        """
        n_regions = sum(len(tree.regions) for tree in trees)
        if len(trees) > MAX_TREES or n_regions > MAX_REGIONS:
            raise ValueError(
                f"a model of {len(trees):,} trees with {n_regions:,} regions cannot be saved; a file holds at most "
                f"{MAX_TREES:,} and {MAX_REGIONS:,}. Grow fewer or smaller trees."
            )
        tests = [separate_tests(tree) for tree in trees]
        cells = {
            name: np.concatenate([getattr(tree.cells, name) for tree in trees])
            for name in ("inside", "n_same", "n_different", "gain")
        }
        return {
            "coordinates": trees[0].pair_map._get_state(),
            "max_depth": np.array([tree.max_depth for tree in trees], dtype=np.int64),
            "n_cells": np.array([tree.n_cells for tree in trees], dtype=np.int64),
            "cells": {**cells, "n_tests": np.concatenate([n_tests for n_tests, _ in tests])},
            "tests": AxisRegion._get_state([of_tree for _, of_tree in tests]),
            "regions": _regions_state(trees),
        }

    @classmethod
    def _from_state(cls, fields: Fields) -> list[RankTree]:
        """Return the trees of a model file."""
        pair_map = CoordinateSet._from_state(fields.part("coordinates"))
        n_cells = fields.lengths("n_cells", None, low=1)
        if not 0 < len(n_cells) <= MAX_TREES:
            raise fields.fail("n_cells", f"must have an entry for each tree, of which there are at most {MAX_TREES:,}")
        max_depth = fields.array("max_depth", "int64", n_cells.shape, low=1, high=MAX_DEPTH)
        part, total = fields.part("cells"), int(n_cells.sum())
        inside = part.array("inside", "int32", (total,), low=-1)
        n_same = part.array("n_same", "int64", (total,), low=0, high=MAX_COUNT)
        n_different = part.array("n_different", "int64", (total,), low=0, high=MAX_COUNT)
        gain = part.array("gain", "float64", (total,))
        n_tests = part.lengths("n_tests", total)
        tests = AxisRegion._from_state(fields.part("tests"), n_tests, len(pair_map))
        others = _regions_from_state(fields.part("regions"), pair_map, n_cells)
        trees = []
        first_tests = np.concatenate([[0], np.cumsum(n_tests)])
        for number, (start, stop) in enumerate(ranges(n_cells)):
            own = slice(start, stop)
            columns = inside[own], n_same[own], n_different[own], gain[own], n_tests[own]
            cells = _cells_from_state(part, int(max_depth[number]), *columns)
            regions = others[number]
            by_region = (cells.inside >= 0) & (n_tests[own] == 0)
            if ((n_tests[own] > 0) & (cells.inside < 0)).any() or list(regions) != np.flatnonzero(by_region).tolist():
                raise fields.fail("regions", "must have one region for each cell that is split, and no other")
            of_tree = tests.between(int(first_tests[start]), int(first_tests[stop]))
            trees.append(joined_tree(pair_map, int(max_depth[number]), cells, n_tests[own], of_tree, regions))
        return trees

    @property
    def n_cells(self) -> int:
        """Number of cells, terminal or not."""
        return len(self.cells.depth)

    @cached_property
    def leaves(self) -> NDArray[np.int64]:
        """Terminal cells from the most to the least similar."""
        terminal = np.flatnonzero(self.cells.inside < 0)
        return terminal[np.argsort(-self.scores[terminal], kind="stable")]

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Score 2^D (1 - k / 2^j) of each cell (j, k); exact in float64 for D <= 52."""
        below = np.ldexp(self.cells.rank.astype(np.float64), self.max_depth - self.cells.depth)
        return np.asarray(2.0**self.max_depth - below, dtype=np.float64)

    @cached_property
    def tpr_mass(self) -> NDArray[np.float64]:
        """Share of all same pairs that lie in each cell."""
        return np.asarray(self.cells.n_same / self.cells.n_same[0], dtype=np.float64)

    @cached_property
    def fpr_mass(self) -> NDArray[np.float64]:
        """Share of all different pairs that lie in each cell."""
        return np.asarray(self.cells.n_different / self.cells.n_different[0], dtype=np.float64)

    @cached_property
    def llr(self) -> NDArray[np.float64]:
        """Smoothed log-likelihood ratio of each cell: the evidence, over-confident, that a pair in it is a same pair.

        log((n+ + 1/2) / (N+ + 1/2)) - log((n- + h) / (N- + h)) with h = N- / (2 N+), n the counts of the cell and N of the
        tree: half a same pair more, and as large a share of the different pairs.
        """
        same, different = self.cells.n_same, self.cells.n_different
        half = 0.5 * different[0] / same[0]
        return np.asarray(
            np.log((same + 0.5) / (same[0] + 0.5)) - np.log((different + half) / (different[0] + half)), dtype=np.float64
        )

    @cached_property
    def mean_ranks(self) -> NDArray[np.float64]:
        """Share of pairs (both kinds weighing the same) that are less similar than each cell, half of its own included."""
        fpr, tpr = self.cell_bounds()
        return 1.0 - 0.5 * (fpr + 0.5 * self.fpr_mass + tpr + 0.5 * self.tpr_mass)

    @property
    def fpr_knots(self) -> NDArray[np.float64]:
        """False positive rate before the first and after each terminal cell, from the most similar on (the paper's alpha)."""
        return self._cumulated(self.cells.n_different)

    @property
    def tpr_knots(self) -> NDArray[np.float64]:
        """True positive rate before the first and after each terminal cell, from the most similar on (the paper's beta)."""
        return self._cumulated(self.cells.n_same)

    @property
    def roc(self) -> Roc:
        """The ROC curve of the scores on the training pairs, with the scores as thresholds."""
        return Roc(self.fpr_knots, self.tpr_knots, np.concatenate([[np.inf], self.scores[self.leaves]]))

    @cached_property
    def node_cell(self) -> NDArray[np.int64]:
        """The cell that each node helps to split."""
        owners = np.flatnonzero(self.cells.entry >= 0)
        return np.repeat(owners, np.diff(np.append(self.cells.entry[owners], len(self.nodes.kind))))

    def cell_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """FPR and TPR at which each cell begins: the masses of all that is more similar than the cell."""
        fpr, tpr = np.zeros(self.n_cells), np.zeros(self.n_cells)
        for cell in np.flatnonzero(self.cells.inside >= 0):
            inside, outside = self.cells.inside[cell], self.cells.outside[cell]
            fpr[inside], tpr[inside] = fpr[cell], tpr[cell]
            fpr[outside] = fpr[cell] + self.fpr_mass[inside]
            tpr[outside] = tpr[cell] + self.tpr_mass[inside]
        return fpr, tpr

    def apply(self, pairs: SamplePairs) -> NDArray[np.int32]:
        """The terminal cell of each pair."""
        cell = np.zeros(pairs.n_pairs, dtype=np.int32)
        pairs = self.pair_map.complete(pairs)
        self._walk(pairs, 0, cell)
        for split, region in self.regions.items():  # parents come before their children
            rows = np.flatnonzero(cell == split)
            inside = region.contains(self.pair_map, pairs.take(rows))
            for child, chosen in ((self.cells.inside[split], rows[inside]), (self.cells.outside[split], rows[~inside])):
                reached = np.full(len(chosen), child, dtype=np.int32)
                self._walk(pairs.take(chosen), child, reached)
                cell[chosen] = reached
        return cell

    def score(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Score of each pair."""
        return self.scores[self.apply(pairs)]

    def add_values(self, pairs: SamplePairs, values: NDArray[np.float64], total: NDArray[np.float64]) -> None:
        """Add to ``total`` of each pair the value of its terminal cell."""
        if self.regions or self.cells.entry[0] < 0:
            total += values[self.apply(pairs)]
        else:
            add_exit_values(*self.pair_map.complete(pairs), self.nodes, values, total)

    def region(self, cell: int) -> Region:
        """The region that splits a cell."""
        if cell in self.regions:
            return self.regions[cell]
        start, stop = np.searchsorted(self.node_cell, [cell, cell + 1]).tolist()
        exits = {self._target(int(self.cells.inside[cell])): -1, self._target(int(self.cells.outside[cell])): -2}
        if_le, if_gt = (
            np.array([exits[s] if s in exits else s - start for s in table[start:stop].tolist()], dtype=np.int32)
            for table in (self.nodes.if_le, self.nodes.if_gt)
        )
        tests = slice(start, stop)
        return AxisRegion(self.coordinate[tests], self.nodes.threshold[tests], if_le, if_gt, self.decrease[tests])

    def feature_gains(self) -> NDArray[np.float64]:
        """AUC gain by feature: the gain of each cell, shared among the coordinates that split it."""
        decrease_of_cell = np.bincount(self.node_cell, weights=self.decrease, minlength=self.n_cells)
        gain = self.cells.gain[self.node_cell] * self.decrease / decrease_of_cell[self.node_cell]
        by_coordinate = np.bincount(self.coordinate, weights=gain, minlength=len(self.pair_map)).astype(np.float64)
        by_feature = self.pair_map.by_feature(by_coordinate)
        for cell, region in self.regions.items():
            by_feature += self.cells.gain[cell] * region.feature_shares(self.pair_map)
        return by_feature

    def _cumulated(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(np.concatenate([[0], np.cumsum(counts[self.leaves])]) / counts[0], dtype=np.float64)

    def _target(self, cell: int) -> int:
        """Where a walk that enters the cell goes on: a node, or the cell as an exit."""
        entry = int(self.cells.entry[cell])
        return entry if entry >= 0 else -1 - cell

    def _walk(self, pairs: SamplePairs, start: int, cell: NDArray[np.int32]) -> None:
        """Walk pairs that lie in cell ``start`` as far as axis regions lead; OUT ``cell``."""
        entry = int(self.cells.entry[start])
        if entry >= 0 and pairs.n_pairs:
            route_pairs(*pairs, self.nodes, entry, cell)


@dataclass
class _Growing:
    """A cell while its tree is grown."""

    depth: int
    rank: int
    parent: int
    n_same: int
    n_different: int
    gain: float = 0.0
    inside: int = -1
    outside: int = -1
    region: Region | None = None


class TreeBuilder:
    """Collects the cells of a tree and freezes them into a `RankTree`."""

    def __init__(self, pair_map: CoordinateSet, max_depth: int, n_same: int, n_different: int) -> None:
        self.pair_map = pair_map
        self.max_depth = max_depth
        self._cells = [_Growing(0, 0, -1, n_same, n_different)]

    def split(self, cell: int, region: Region, n_same_inside: int, n_different_inside: int) -> tuple[int, int]:
        """Split a cell by a region that holds so many of its pairs; return the numbers of its two children."""
        parent = self._cells[cell]
        n_same, n_different = parent.n_same - n_same_inside, parent.n_different - n_different_inside
        parent.region = region
        # (fpr of the cell) (tpr of the inside) - (tpr of the cell) (fpr of the inside), from whole numbers.
        total = self._cells[0].n_same * self._cells[0].n_different
        parent.gain = (parent.n_different * n_same_inside - parent.n_same * n_different_inside) / total
        parent.inside, parent.outside = len(self._cells), len(self._cells) + 1
        self._cells.append(_Growing(parent.depth + 1, 2 * parent.rank, cell, n_same_inside, n_different_inside))
        self._cells.append(_Growing(parent.depth + 1, 2 * parent.rank + 1, cell, n_same, n_different))
        return parent.inside, parent.outside

    def freeze(self) -> RankTree:
        """The finished tree."""

        def column(name: str, dtype: type) -> NDArray[Any]:
            return np.array([getattr(cell, name) for cell in self._cells], dtype=dtype)

        axis = {c: cell.region for c, cell in enumerate(self._cells) if isinstance(cell.region, AxisRegion)}
        n_tests = np.zeros(len(self._cells), dtype=np.int64)
        n_tests[list(axis)] = [len(region.coordinate) for region in axis.values()]

        def joined(name: str, dtype: type) -> NDArray[Any]:
            return np.concatenate([np.empty(0), *(getattr(region, name) for region in axis.values())]).astype(dtype)

        cells = Cells(
            depth=column("depth", np.int32),
            rank=column("rank", np.int64),
            parent=column("parent", np.int32),
            inside=column("inside", np.int32),
            outside=column("outside", np.int32),
            n_same=column("n_same", np.int64),
            n_different=column("n_different", np.int64),
            gain=column("gain", np.float64),
            entry=entries(n_tests),
        )
        tests = AxisRegion(
            joined("coordinate", np.int32),
            joined("threshold", np.float64),
            joined("if_le", np.int32),
            joined("if_gt", np.int32),
            joined("decrease", np.float64),
        )
        others = {
            c: cell.region for c, cell in enumerate(self._cells) if cell.region is not None and cell.region.kind != "axis"
        }
        return joined_tree(self.pair_map, self.max_depth, cells, n_tests, tests, others)


def entries(n_tests: NDArray[np.int64]) -> NDArray[np.int32]:
    """The first node of each cell that has so many tests; -1 where there is none."""
    return np.where(n_tests > 0, np.cumsum(n_tests) - n_tests, -1).astype(np.int32)


def _targets(entry: NDArray[np.int32]) -> NDArray[np.int32]:
    """Where a walk that enters each cell goes on: a node, or the cell as an exit."""
    return np.where(entry >= 0, entry, -1 - np.arange(len(entry), dtype=np.int32))


def joined_tree(
    pair_map: CoordinateSet,
    max_depth: int,
    cells: Cells,
    n_tests: NDArray[np.int64],
    tests: AxisRegion,
    others: Mapping[int, Region],
) -> RankTree:
    """A tree whose axis regions are given one after the other: so many tests of each cell, whose ends become its children."""
    target = _targets(cells.entry)
    owner = np.repeat(np.arange(len(n_tests)), n_tests)

    def successors(local: NDArray[np.int32]) -> NDArray[np.int32]:
        ends = np.where(local == INSIDE, target[cells.inside[owner]], target[cells.outside[owner]])
        return np.where(local >= 0, local + cells.entry[owner], ends).astype(np.int32)

    kinds, columns = pair_map.kind_codes[tests.coordinate], pair_map.columns[tests.coordinate]
    nodes = Nodes(kinds, columns, tests.threshold, successors(tests.if_le), successors(tests.if_gt))
    return RankTree(pair_map, max_depth, cells, nodes, tests.coordinate, tests.decrease, others)


def separate_tests(tree: RankTree) -> tuple[NDArray[np.int64], AxisRegion]:
    """What `joined_tree` was given: how many tests each cell has, and the tests with successors as in their own region."""
    cells, owner = tree.cells, tree.node_cell
    target = _targets(cells.entry)

    def local(successor: NDArray[np.int32]) -> NDArray[np.int32]:
        inside, outside = successor == target[cells.inside[owner]], successor == target[cells.outside[owner]]
        return np.where(inside, INSIDE, np.where(outside, OUTSIDE, successor - cells.entry[owner])).astype(np.int32)

    n_tests = np.bincount(owner, minlength=tree.n_cells).astype(np.int64)
    nodes = tree.nodes
    return n_tests, AxisRegion(tree.coordinate, nodes.threshold, local(nodes.if_le), local(nodes.if_gt), tree.decrease)


def _cells_from_state(
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


def _regions_state(trees: Sequence[RankTree]) -> dict[str, Any]:
    """Return the regions of another kind than axis, kind by kind, with the tree and cell of each."""
    placed = [(number, cell, region) for number, tree in enumerate(trees) for cell, region in tree.regions.items()]
    found: dict[str, Any] = {}
    for kind in sorted({region.kind for _, _, region in placed}):
        if kind not in _region_classes():
            raise TypeError(
                "a tree grown with ClassifierSplitter cannot be saved: it holds fitted classifiers, which a file of data alone "
                "cannot; use another splitter, or pickle the model where you trust whoever can write the file."
            )
        of_kind = [entry for entry in placed if entry[2].kind == kind]
        place = {"tree": [tree for tree, _, _ in of_kind], "cell": [cell for _, cell, _ in of_kind]}
        numbers = {name: np.array(column, dtype=np.int64) for name, column in place.items()}
        found[kind] = {**numbers, **_region_classes()[kind]._get_state([region for _, _, region in of_kind])}
    return found


def _region_classes() -> dict[str, Any]:
    """Return the classes of regions that a model file can hold, by kind."""
    return {get_class(REGION, name).kind: get_class(REGION, name) for name in known_names(REGION)}


def _regions_from_state(fields: Fields, pair_map: CoordinateSet, n_cells: NDArray[np.int64]) -> list[dict[int, Region]]:
    """For each tree its regions by cell, parents before children."""
    found: dict[tuple[int, int], Region] = {}
    for kind, cls in _region_classes().items():
        if not fields.has(kind):
            continue
        part = fields.part(kind)
        tree = part.array("tree", "int64", (None,), low=0, high=len(n_cells) - 1)
        cell = part.array("cell", "int64", tree.shape, low=0)
        if not 0 < len(tree) <= MAX_REGIONS or (cell >= n_cells[tree]).any():
            raise part.fail("cell", f"must be the numbers of cells that there are, at most {MAX_REGIONS:,}")
        places = list(zip(tree.tolist(), cell.tolist(), strict=True))
        if len(set(places)) < len(places) or not found.keys().isdisjoint(places):
            raise part.fail("cell", "must not name a cell twice")
        found.update(zip(places, cls._from_state(part, len(places), pair_map), strict=True))
    regions: list[dict[int, Region]] = [{} for _ in n_cells]
    for tree_number, cell_number in sorted(found):
        regions[tree_number][cell_number] = found[tree_number, cell_number]
    return regions
