"""The frozen ranking tree: a table of cells with their statistics and a table of nodes that route pairs to cells.

Cells are numbered so that children come after their parent; cell 0 contains all pairs. The tests of all axis regions are
merged into one table of nodes whose exits are cells:

    cell 0: |a - a'| <= 1 ?            node 0: |a - a'| <= 1 ?  yes: node 1   no: cell 2
      inside  cell 1: a + a' <= 3 ?    node 1: a + a' <= 3 ?    yes: cell 3   no: cell 4
        inside  cell 3
        outside cell 4
      outside cell 2

If a cell is split by a region of another kind, routing stops at that cell and the region itself is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.missing import StateNodes, add_state_values, route_states
from simtree._kernels.route import Nodes, add_exit_values, route_pairs
from simtree.io._fields import MAX_COUNT, Fields
from simtree.io._registry import REGION, get_class, known_names
from simtree.metrics import Roc
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion, Region, ranges
from simtree.trees._states import joined_states, with_states

# Beyond this depth, distinct cells would get the same score in float64.
MAX_DEPTH = 52
# Larger numbers in a model file are treated as corruption.
MAX_TREES = 1 << 16
MAX_REGIONS = 1 << 20
# Tolerance for gains in a model file, which must agree with the counts up to rounding.
ROUNDING = 1e-9


class Cells(NamedTuple):
    """Statistics of the cells of a tree, one entry per cell. Rates are derived from the integer counts.

    Parameters
    ----------
    depth : ndarray of int
        Depth; 0 for the root.
    rank : ndarray of int
        Rank among the 2^depth possible cells of the same depth; 0 is the most similar.
    parent : ndarray of int
        The cell that it is a child of, or -1 for the root.
    inside, outside : ndarrays of int
        More similar and less similar child, or -1 for a terminal cell.
    n_same, n_different : ndarrays of int
        Number of same and different training pairs.
    gain : ndarray of float
        Twice the area that the split of the cell adds under the ROC curve; 0 for a terminal cell.
    entry : ndarray of int
        First node of the axis region that splits the cell, or -1.
    """

    depth: NDArray[np.int32]
    rank: NDArray[np.int64]
    parent: NDArray[np.int32]
    inside: NDArray[np.int32]
    outside: NDArray[np.int32]
    n_same: NDArray[np.int64]
    n_different: NDArray[np.int64]
    gain: NDArray[np.float64]
    entry: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class RankTree:
    """A grown similarity tree.

    Parameters
    ----------
    pair_map : CoordinateSet
        Coordinates that the nodes test.
    max_depth : int
        Depth D of the score scale: the terminal cell of depth j and rank k has the score 2^D (1 - k / 2^j).
    cells : Cells
        Statistics of the cells.
    nodes : Nodes
        Tests of all axis regions; exits are cells.
    coordinate : ndarray of shape (n_nodes,)
        Coordinate that each node tests, as an index into ``pair_map``.
    decrease : ndarray of shape (n_nodes,)
        Impurity decrease of each test.
    regions : mapping from cell to Region
        Regions of other kinds than axis, by the cell they split.
    states : ndarray of uint8 of shape (n_nodes,), optional
        Where each node sends missing values, see `AxisRegion`.
    """

    pair_map: CoordinateSet
    max_depth: int
    cells: Cells
    nodes: Nodes
    coordinate: NDArray[np.int32]
    decrease: NDArray[np.float64]
    regions: Mapping[int, Region]
    states: NDArray[np.uint8] | None = None

    @staticmethod
    def _get_state(trees: Sequence[RankTree]) -> dict[str, Any]:
        """Return the state of trees with the same coordinates for a model file: each column of all trees as one array.

        Derived entries (depths, ranks, parents, exits of the tests of a cell) are not written, so that a file cannot
        contradict itself.
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
        """Return the trees read from a model file."""
        pair_map = CoordinateSet._from_state(fields.part("coordinates"))
        n_cells = fields.lengths("n_cells", None, low=1)
        if not 0 < len(n_cells) <= MAX_TREES:
            raise fields.fail("n_cells", f"must have one entry per tree, for at most {MAX_TREES:,} trees")
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
                raise fields.fail("regions", "must have exactly one region for each cell that is split")
            of_tree = tests.between(int(first_tests[start]), int(first_tests[stop]))
            trees.append(joined_tree(pair_map, int(max_depth[number]), cells, n_tests[own], of_tree, regions))
        return trees

    @property
    def n_cells(self) -> int:
        """Number of cells, terminal or not."""
        return len(self.cells.depth)

    @cached_property
    def leaves(self) -> NDArray[np.int64]:
        """Terminal cells, from the most to the least similar."""
        terminal = np.flatnonzero(self.cells.inside < 0)
        return terminal[np.argsort(-self.scores[terminal], kind="stable")]

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Score 2^D (1 - k / 2^j) of each cell of depth j and rank k; exact in float64 for D <= 52."""
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
        """Smoothed log-likelihood ratio of each cell, overconfident until it is calibrated.

        It is log((n+ + 1/2) / (N+ + 1/2)) - log((n- + h) / (N- + h)) with h = N- / (2 N+), where n are the counts of the cell
        and N those of the tree: half a same pair is added, and the same share of the different pairs.
        """
        same, different = self.cells.n_same, self.cells.n_different
        half = 0.5 * different[0] / same[0]
        return np.asarray(
            np.log((same + 0.5) / (same[0] + 0.5)) - np.log((different + half) / (different[0] + half)), dtype=np.float64
        )

    @cached_property
    def mean_ranks(self) -> NDArray[np.float64]:
        """Share of pairs less similar than each cell plus half its own, where same and different pairs weigh equally."""
        fpr, tpr = self.cell_bounds()
        return 1.0 - 0.5 * (fpr + 0.5 * self.fpr_mass + tpr + 0.5 * self.tpr_mass)

    @property
    def fpr_knots(self) -> NDArray[np.float64]:
        """False positive rate before the first and after each terminal cell, in order of similarity (the paper's alpha)."""
        return self._cumulated(self.cells.n_different)

    @property
    def tpr_knots(self) -> NDArray[np.float64]:
        """True positive rate before the first and after each terminal cell, in order of similarity (the paper's beta)."""
        return self._cumulated(self.cells.n_same)

    @property
    def roc(self) -> Roc:
        """ROC curve on the training pairs, with the scores as thresholds."""
        return Roc(self.fpr_knots, self.tpr_knots, np.concatenate([[np.inf], self.scores[self.leaves]]))

    @cached_property
    def node_cell(self) -> NDArray[np.int64]:
        """Cell that each node belongs to."""
        owners = np.flatnonzero(self.cells.entry >= 0)
        return np.repeat(owners, np.diff(np.append(self.cells.entry[owners], len(self.nodes.kind))))

    def cell_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the FPR and TPR at which each cell begins: the shares of pairs that are more similar than the cell.

        Returns
        -------
        fpr : ndarray of shape (n_cells,)
            False positive rate at the start of each cell.
        tpr : ndarray of shape (n_cells,)
            True positive rate at the start of each cell.
        """
        fpr, tpr = np.zeros(self.n_cells), np.zeros(self.n_cells)
        for cell in np.flatnonzero(self.cells.inside >= 0):
            inside, outside = self.cells.inside[cell], self.cells.outside[cell]
            fpr[inside], tpr[inside] = fpr[cell], tpr[cell]
            fpr[outside] = fpr[cell] + self.fpr_mass[inside]
            tpr[outside] = tpr[cell] + self.tpr_mass[inside]
        return fpr, tpr

    def apply(self, pairs: SamplePairs) -> NDArray[np.int32]:
        """Return the terminal cell of each pair.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Cell numbers.
        """
        cell = np.zeros(pairs.n_pairs, dtype=np.int32)
        pairs = self.pair_map.complete(pairs)
        self._route(pairs, 0, cell)
        for split, region in self.regions.items():  # parents come before their children
            rows = np.flatnonzero(cell == split)
            unseen_inside = bool(self.majority_child[split] == self.cells.inside[split])
            inside = region.contains(self.pair_map, pairs.take(rows), unseen_inside=unseen_inside)
            for child, chosen in ((self.cells.inside[split], rows[inside]), (self.cells.outside[split], rows[~inside])):
                reached = np.full(len(chosen), child, dtype=np.int32)
                self._route(pairs.take(chosen), child, reached)
                cell[chosen] = reached
        return cell

    def score(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the score of each pair.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Scores of the terminal cells.
        """
        return self.scores[self.apply(pairs)]

    def add_values(self, pairs: SamplePairs, values: NDArray[np.float64], total: NDArray[np.float64]) -> None:
        """Add the value of the terminal cell of each pair to ``total``, in place.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs with their samples.
        values : ndarray of shape (n_cells,)
            Value of each cell.
        total : ndarray of shape (n_pairs,)
            Sum to add to.
        """
        if self.regions or self.cells.entry[0] < 0:
            total += values[self.apply(pairs)]
        elif pairs.lacks_values:
            add_state_values(*self.pair_map.complete(pairs), self._state_nodes, values, total)
        else:
            add_exit_values(*self.pair_map.complete(pairs), self.nodes, values, total)

    def region(self, cell: int) -> Region:
        """Return the region that splits a cell.

        Parameters
        ----------
        cell : int
            Number of a cell that is not terminal.

        Returns
        -------
        Region
            The region of the more similar child.
        """
        if cell in self.regions:
            return self.regions[cell]
        start, stop = np.searchsorted(self.node_cell, [cell, cell + 1]).tolist()
        exits = {self._target(int(self.cells.inside[cell])): -1, self._target(int(self.cells.outside[cell])): -2}
        if_le, if_gt = (
            np.array([exits[s] if s in exits else s - start for s in table[start:stop].tolist()], dtype=np.int32)
            for table in (self.nodes.if_le, self.nodes.if_gt)
        )
        tests = slice(start, stop)
        states = None if self.states is None else self.states[tests]
        return AxisRegion(self.coordinate[tests], self.nodes.threshold[tests], if_le, if_gt, self.decrease[tests], states)

    def feature_gains(self) -> NDArray[np.float64]:
        """Return the AUC gain of each feature.

        The gain of a cell is divided among the coordinates that split it in proportion to their impurity decrease.

        Returns
        -------
        ndarray of shape (n_features,)
            Gains; their sum is the gain of all splits.
        """
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
        """Return where routing continues from a cell: its first node, or the cell itself as an exit."""
        entry = int(self.cells.entry[cell])
        return entry if entry >= 0 else -1 - cell

    def _route(self, pairs: SamplePairs, start: int, cell: NDArray[np.int32]) -> None:
        """Route pairs that lie in cell ``start`` through axis regions, writing the cells they reach to ``cell``."""
        entry = int(self.cells.entry[start])
        if entry >= 0 and pairs.n_pairs:
            if pairs.lacks_values:
                route_states(*pairs, self._state_nodes, entry, cell)
            else:
                route_pairs(*pairs, self.nodes, entry, cell)

    @cached_property
    def majority_child(self) -> NDArray[np.int32]:
        """Child of each cell with the most training pairs, the inside one on ties; -1 for a terminal cell."""
        n_pairs = self.cells.n_same + self.cells.n_different
        inside, outside = self.cells.inside, self.cells.outside
        return np.where(n_pairs[inside] >= n_pairs[outside], inside, outside).astype(np.int32)

    @cached_property
    def _state_nodes(self) -> StateNodes:
        """Nodes through which pairs with missing values are routed."""
        otherwise = _targets(self.cells.entry)[self.majority_child[self.node_cell]]
        return with_states(self.nodes, self.states, otherwise, self.pair_map.kernel_directions)


@dataclass
class _GrowingCell:
    """A cell of a tree that is being grown."""

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
    """Collect the cells of a tree and freeze them into a `RankTree`."""

    def __init__(self, pair_map: CoordinateSet, max_depth: int, n_same: int, n_different: int) -> None:
        self.pair_map = pair_map
        self.max_depth = max_depth
        self._cells = [_GrowingCell(0, 0, -1, n_same, n_different)]

    def split(self, cell: int, region: Region, n_same_inside: int, n_different_inside: int) -> tuple[int, int]:
        """Split a cell by a region, given the number of same and different pairs inside; return the numbers of its children."""
        parent = self._cells[cell]
        n_same, n_different = parent.n_same - n_same_inside, parent.n_different - n_different_inside
        parent.region = region
        # fpr(cell) * tpr(inside) - tpr(cell) * fpr(inside), computed from integers.
        total = self._cells[0].n_same * self._cells[0].n_different
        parent.gain = (parent.n_different * n_same_inside - parent.n_same * n_different_inside) / total
        parent.inside, parent.outside = len(self._cells), len(self._cells) + 1
        self._cells.append(_GrowingCell(parent.depth + 1, 2 * parent.rank, cell, n_same_inside, n_different_inside))
        self._cells.append(_GrowingCell(parent.depth + 1, 2 * parent.rank + 1, cell, n_same, n_different))
        return parent.inside, parent.outside

    def freeze(self) -> RankTree:
        """Return the finished tree."""

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
            joined_states(axis.values()),
        )
        others = {
            c: cell.region for c, cell in enumerate(self._cells) if cell.region is not None and cell.region.kind != "axis"
        }
        return joined_tree(self.pair_map, self.max_depth, cells, n_tests, tests, others)


def entries(n_tests: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the first node of each cell, given the number of tests per cell; -1 for cells without tests."""
    return np.where(n_tests > 0, np.cumsum(n_tests) - n_tests, -1).astype(np.int32)


def _targets(entry: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return where routing continues from each cell: its first node, or the cell itself as an exit."""
    return np.where(entry >= 0, entry, -1 - np.arange(len(entry), dtype=np.int32))


def joined_tree(
    pair_map: CoordinateSet,
    max_depth: int,
    cells: Cells,
    n_tests: NDArray[np.int64],
    tests: AxisRegion,
    others: Mapping[int, Region],
) -> RankTree:
    """Return a tree from the concatenated tests of its axis regions, whose exits become the children of each cell."""
    target = _targets(cells.entry)
    owner = np.repeat(np.arange(len(n_tests)), n_tests)

    def successors(local: NDArray[np.int32]) -> NDArray[np.int32]:
        ends = np.where(local == INSIDE, target[cells.inside[owner]], target[cells.outside[owner]])
        return np.where(local >= 0, local + cells.entry[owner], ends).astype(np.int32)

    kinds, columns = pair_map.kind_codes[tests.coordinate], pair_map.columns[tests.coordinate]
    nodes = Nodes(kinds, columns, tests.threshold, successors(tests.if_le), successors(tests.if_gt))
    return RankTree(pair_map, max_depth, cells, nodes, tests.coordinate, tests.decrease, others, tests.states)


def separate_tests(tree: RankTree) -> tuple[NDArray[np.int64], AxisRegion]:
    """Invert `joined_tree`: return the number of tests per cell, and the tests with successors local to their region."""
    cells, owner = tree.cells, tree.node_cell
    target = _targets(cells.entry)

    def local(successor: NDArray[np.int32]) -> NDArray[np.int32]:
        inside, outside = successor == target[cells.inside[owner]], successor == target[cells.outside[owner]]
        return np.where(inside, INSIDE, np.where(outside, OUTSIDE, successor - cells.entry[owner])).astype(np.int32)

    n_tests = np.bincount(owner, minlength=tree.n_cells).astype(np.int64)
    nodes = tree.nodes
    successors = local(nodes.if_le), local(nodes.if_gt)
    return n_tests, AxisRegion(tree.coordinate, nodes.threshold, *successors, tree.decrease, tree.states)


def _cells_from_state(
    fields: Fields,
    max_depth: int,
    inside: NDArray[np.int32],
    n_same: NDArray[np.int64],
    n_different: NDArray[np.int64],
    gain: NDArray[np.float64],
    n_tests: NDArray[np.int64],
) -> Cells:
    """Return the cells of one tree after checking that they form a tree whose children partition their parent."""
    n = len(inside)
    split = np.flatnonzero(inside >= 0)
    children = inside[split]
    if n % 2 == 0 or not np.array_equal(np.sort(children), np.arange(1, n, 2)) or (children <= split).any():
        raise fields.fail("inside", "must make each cell except the first the child of exactly one preceding cell")
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
            raise fields.fail(name, "must be positive for the root, and for each split cell the sum over its children")
    fpr, tpr = n_different / n_different[0], n_same / n_same[0]
    expected = np.zeros(n)
    expected[split] = fpr[split] * tpr[children] - tpr[split] * fpr[children]
    if np.abs(gain - expected).max() > ROUNDING:
        raise fields.fail("gain", "must agree with the counts of each cell and its children")
    return Cells(depth, rank, parent, inside, outside, n_same, n_different, gain, entries(n_tests))


def _regions_state(trees: Sequence[RankTree]) -> dict[str, Any]:
    """Return the state of all regions that are not axis regions, by kind, with the tree and cell of each."""
    placed = [(number, cell, region) for number, tree in enumerate(trees) for cell, region in tree.regions.items()]
    found: dict[str, Any] = {}
    for kind in sorted({region.kind for _, _, region in placed}):
        if kind not in _region_classes():
            raise TypeError(
                "a tree grown with ClassifierSplitter cannot be saved: it contains fitted classifiers, but a model file holds "
                "data only; use another splitter, or pickle the model if you trust everyone who can write the file."
            )
        of_kind = [entry for entry in placed if entry[2].kind == kind]
        place = {"tree": [tree for tree, _, _ in of_kind], "cell": [cell for _, cell, _ in of_kind]}
        numbers = {name: np.array(column, dtype=np.int64) for name, column in place.items()}
        found[kind] = {**numbers, **_region_classes()[kind]._get_state([region for _, _, region in of_kind])}
    return found


def _region_classes() -> dict[str, Any]:
    """Return the region classes that a model file can hold, by kind."""
    return {get_class(REGION, name).kind: get_class(REGION, name) for name in known_names(REGION)}


def _regions_from_state(fields: Fields, pair_map: CoordinateSet, n_cells: NDArray[np.int64]) -> list[dict[int, Region]]:
    """Return the regions of each tree by cell, parents before children."""
    found: dict[tuple[int, int], Region] = {}
    for kind, cls in _region_classes().items():
        if not fields.has(kind):
            continue
        part = fields.part(kind)
        tree = part.array("tree", "int64", (None,), low=0, high=len(n_cells) - 1)
        cell = part.array("cell", "int64", tree.shape, low=0)
        if not 0 < len(tree) <= MAX_REGIONS or (cell >= n_cells[tree]).any():
            raise part.fail("cell", f"must contain numbers of existing cells, at most {MAX_REGIONS:,} of them")
        places = list(zip(tree.tolist(), cell.tolist(), strict=True))
        if len(set(places)) < len(places) or not found.keys().isdisjoint(places):
            raise part.fail("cell", "must not contain a cell twice")
        found.update(zip(places, cls._from_state(part, len(places), pair_map), strict=True))
    regions: list[dict[int, Region]] = [{} for _ in n_cells]
    for tree_number, cell_number in sorted(found):
        regions[tree_number][cell_number] = found[tree_number, cell_number]
    return regions
