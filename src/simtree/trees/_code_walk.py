"""Trees as tables of tests of codes, which pairs walk through several times faster than through tests of their coordinates.

Each cell must be split by one test, as in boosted trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree._kernels import code_walk as kernels
from simtree._kernels.binning import MAX_EDGES
from simtree._kernels.missing import ALL_ABOVE, BOTH_ABOVE, BOTH_SEEN, N_STATES, ONE_ABOVE, ONE_SEEN
from simtree._utils.matrices import MAX_FLOAT
from simtree.pairs._coordinates import SamplePairs
from simtree.trees._binning import ByteBins
from simtree.trees._rank_tree import RankTree

# Number of pairs whose codes are held at a time.
CHUNK = 1 << 13


class CodeWalk(NamedTuple):
    """Trees as tables of tests, in the order in which `add_code_values` takes them.

    Parameters
    ----------
    tests : ndarray of uint64 of shape (n_cells,)
        The test of each cell of each tree, packed by `pack_tests`.
    values : ndarray of shape (n_cells,)
        The value of each cell.
    first : ndarray of shape (n_trees + 1,)
        The first cell of each tree, and the number of cells.
    """

    tests: NDArray[np.uint64]
    values: NDArray[np.float64]
    first: NDArray[np.int64]

    @classmethod
    def join(cls, walks: Sequence[CodeWalk]) -> CodeWalk:
        """Return several trees in one table."""
        none = cls(np.empty(0, dtype=np.uint64), np.empty(0), np.zeros(1, dtype=np.int64))
        tests, values, _ = zip(none, *walks, strict=True)
        first = np.cumsum([0, *(len(own) for own in tests[1:])])
        return cls(np.concatenate(tests), np.concatenate(values), first)

    @classmethod
    def of_cells(
        cls,
        child: NDArray[np.int64],
        coordinate: NDArray[np.int64],
        code: NDArray[np.int64],
        states: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> CodeWalk:
        """Return one tree; a cell continues at its ``child`` up to ``code``, otherwise at the next cell after it."""
        return cls(pack_tests(child, coordinate, code, states), values, np.array([0, len(child)]))

    def add(self, codes: NDArray[np.uint8], one_code: int, total: NDArray[np.float64]) -> None:
        """Add the values of the leaves that pairs reach; ``one_code`` is the first code of missing values, or 0."""
        if one_code:
            kernels.add_state_code_values(codes, one_code, *self, total)
        else:
            kernels.add_code_values(codes, *self, total)


def sides_of(states: NDArray[Any], most_above: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the states of tests with unseen ones sent to the child with the most training pairs, the second or the first.

    Examples
    --------
    >>> sides_of(np.array([ONE_SEEN, ONE_SEEN]), np.array([True, False])) & ALL_ABOVE
    array([2, 0])
    """
    states = states.astype(np.int64)
    unseen = np.where(states & ONE_SEEN, 0, ONE_ABOVE) | np.where(states & BOTH_SEEN, 0, BOTH_ABOVE)
    return np.asarray((states & ~unseen) | np.where(most_above, unseen, 0))


def pack_tests(
    child: NDArray[np.int64], coordinate: NDArray[np.int64], code: NDArray[np.int64], states: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return the tests of cells as `add_code_values` takes them, in 64 bits.

    From the highest bits on they are the first child (31), whether a state leads to it (2), zero (1), the coordinate (22) and
    the code (8). A leaf, whose child is -1, leads to itself: no code is above its own, which is 255.
    """
    leaf = child < 0
    follows = np.where(leaf, np.arange(len(child)), child).astype(np.uint64)
    column = np.where(leaf, 0, coordinate).astype(np.uint64)
    stays = (~states & ALL_ABOVE).astype(np.uint64)
    codes = np.where(leaf, kernels.CODE_MASK, code.astype(np.uint64))
    shifted = (follows << kernels.CHILD_SHIFT) | (stays << kernels.STATES_SHIFT) | (column << kernels.CODE_BITS)
    return np.asarray(shifted | codes, dtype=np.uint64)


class CodedTrees:
    """Trees that score pairs by the codes of the coordinates that they test.

    The edges of the bins are the thresholds of the trees, so that codes decide as values do.

    Parameters
    ----------
    trees : list of RankTree
        Trees with the same coordinates, each cell of which is split by one test; see `can_code`.
    values : list of ndarrays of shape (n_cells,)
        Values of the cells of each tree.

    Attributes
    ----------
    takes_missing : bool
        Whether pairs may lack values: a byte has room for their codes.
    """

    def __init__(self, trees: Sequence[RankTree], values: Sequence[NDArray[np.float64]]) -> None:
        self.pair_map = trees[0].pair_map
        coordinate, edges, code = _edges(trees)
        self.bins = ByteBins(self.pair_map, edges, np.unique(coordinate))
        self.takes_missing = self.bins.n_bins + N_STATES <= MAX_EDGES + 1
        column = np.unique(coordinate, return_inverse=True)[1]
        ends = np.cumsum([0, *(len(tree.coordinate) for tree in trees)])
        self.walk = CodeWalk.join(
            [
                _walk(tree, of_cells, column[start:stop], code[start:stop])
                for tree, of_cells, (start, stop) in zip(trees, values, pairwise(ends.tolist()), strict=True)
            ]
        )

    def sums(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the sum over trees of the value of the terminal cell of each pair, added tree by tree."""
        total = np.zeros(pairs.n_pairs)
        one_code = self.bins.n_bins if pairs.lacks_values else 0
        for start in range(0, pairs.n_pairs, CHUNK):
            rows = slice(start, start + CHUNK)
            codes = np.empty((len(total[rows]), len(self.bins.edges)), dtype=np.uint8)
            self.bins.fill(self.pair_map.complete(pairs.take(rows)), codes, 1)
            self.walk.add(codes, one_code, total[rows])
        return total


def can_code(trees: Sequence[RankTree]) -> bool:
    """Return whether any pair is tested, and no coordinate has more thresholds than a byte can tell apart."""
    edges = _edges(trees)[1]
    return len(edges) > 0 and len(trees[0].pair_map) <= kernels.MAX_COLUMNS and all(len(own) <= MAX_EDGES for own in edges)


def _edges(trees: Sequence[RankTree]) -> tuple[NDArray[np.int32], list[NDArray[np.float64]], NDArray[np.int64]]:
    """Return the coordinate of each test, the thresholds of each coordinate that is tested, and the code of each test.

    A threshold that no value exceeds is not an edge: its code is that of the largest values.
    """
    coordinate = np.concatenate([tree.coordinate for tree in trees])
    threshold = np.concatenate([tree.nodes.threshold for tree in trees])
    code = np.zeros(len(coordinate), dtype=np.int64)
    order = np.argsort(coordinate, kind="stable")
    starts = np.flatnonzero(np.diff(coordinate[order], prepend=-1))
    edges = []
    for own in np.split(order, starts[1:]) if len(order) else []:
        found, code[own] = np.unique(threshold[own], return_inverse=True)
        edges.append(found[found < MAX_FLOAT])
    return coordinate, edges, code


def _walk(tree: RankTree, values: NDArray[np.float64], column: NDArray[np.int64], code: NDArray[np.int64]) -> CodeWalk:
    """Return a tree whose cells are renumbered such that of two children that of the lower values comes first."""
    cells, owner = tree.cells, tree.node_cell
    inside = cells.inside[owner].astype(np.int64)
    entry = cells.entry[inside]
    le_inside = tree.nodes.if_le == np.where(entry >= 0, entry, -1 - inside)
    place = np.arange(tree.n_cells)
    place[inside], place[inside + 1] = np.where(le_inside, inside, inside + 1), np.where(le_inside, inside + 1, inside)
    child = np.full(tree.n_cells, -1)
    columns, codes, states = np.zeros((3, tree.n_cells), np.int64)
    child[place[owner]], columns[place[owner]], codes[place[owner]] = inside, column, code
    most_above = place[tree.majority_child[owner]] > inside
    states[place[owner]] = sides_of(np.zeros(len(owner)) if tree.states is None else tree.states, most_above)
    moved = np.empty(tree.n_cells)
    moved[place] = values
    return CodeWalk.of_cells(child, columns, codes, states, moved)
