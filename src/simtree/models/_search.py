"""Gallery (1:N) search: the rows of a gallery that are most similar to each query.

The gallery is searched in parts, possibly by several threads. `TopK` keeps the best rows found so far; the order of the parts
affects the amount of work, never the result. If the score is a mean of cell values of trees with axis regions, `BoundedSearch`
skips most of the work by upper bounds (see `simtree._kernels.nearest`); otherwise `BruteForceSearch` scores every pair. Which
of them is cheaper is estimated from a sample of the pairs, and checked by counting operations while searching
(`ThriftySearch`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree._kernels import nearest as kernels
from simtree._kernels.coordinates import PAIRWISE
from simtree._kernels.nearest import FirstTests, Grid, Levels, Trees
from simtree._kernels.route import Nodes
from simtree._utils.matrices import MAX_FLOAT, has_missing
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.trees._rank_tree import RankTree

# Number of pairs of a query and a row scored at a time by brute force.
SCAN_PAIRS = 1 << 18
# Memory of the codes of a part of the gallery, and of the pending rows of a batch of queries, in a bounded search.
PART_BYTES = 1 << 25
BATCH_BYTES = 1 << 26
# Minimum gain of a test to be evaluated in the first and second step of a bounded search: the mean decrease of the upper bound
# over sampled pairs, relative to the range of values.
MIN_GAINS = (2e-3, 1.2e-4)
# One in this many pairs is sampled, within these limits.
SAMPLE_EVERY, SAMPLE_SIZES = 400, (250, 2000)
# Number of rows that the grid of codes is computed from.
GRID_ROWS = 500
# Costs of the operations of a bounded search; the unit is one test of one pair in brute force. The code of a value of a row; a
# test on the code of a row; a test of a query, which is turned into a range of codes and is started for few rows; a test on a
# walk, which waits for memory; a feature of a row in the search for rows near the query; and the preparation, per node.
COST_OF_CODE, COST_OF_CODE_TEST, COST_OF_RANGE, COST_OF_WALKED_TEST, COST_OF_DISTANCE = 0.15, 0.007, 6.0, 7.0, 0.007
COST_OF_NODE = 18.0
# For a first guess, before pairs are sampled: tests on the path of a pair, per binary digit of the number of nodes of a tree.
TESTS_PER_DIGIT = 2.0
# A search starts with parts that tell what the others will cost: one query of so many, or one block of rows of so many.
MIN_PILOT_QUERIES, MIN_PILOT_BLOCKS = 8, 8

PairScore = Callable[[SamplePairs], NDArray[np.float64]]
Values = NDArray[np.float64]


class Part(NamedTuple):
    """Some queries and some rows of the gallery: one unit of work for a thread."""

    queries: slice
    rows: slice


class TopK:
    """The k best rows found so far for each query, by decreasing score; ties by increasing row index.

    Parameters
    ----------
    n_queries, k : int
        Number of queries, and number of rows kept per query.
    min_score : float
        Rows with a lower score are not kept.

    Attributes
    ----------
    scores, rows : ndarrays of shape (n_queries, k)
        Best first; -inf and -1 for missing rows.
    needed : ndarray of shape (n_queries,)
        Score below which a row cannot be among the k best. Never decreases.

    Examples
    --------
    >>> best = TopK(n_queries=1, k=2, min_score=0.0)
    >>> best.offer(0, np.array([0.5, 0.5, -1.0, 0.75]), np.array([7, 3, 2, 9]))
    >>> best.rows, best.needed
    (array([[9, 3]]), array([0.5]))
    """

    def __init__(self, n_queries: int, k: int, min_score: float) -> None:
        self.scores = np.full((n_queries, k), -np.inf)
        self.rows = np.full((n_queries, k), -1, dtype=np.int64)
        self.needed = np.full(n_queries, min_score)
        self._lock = Lock()

    @property
    def k(self) -> int:
        """Number of rows kept per query."""
        return int(self.rows.shape[1])

    def offer(self, query: int, scores: NDArray[np.float64], rows: NDArray[np.integer[Any]]) -> None:
        """Update the best rows of a query with these rows."""
        with self._lock:
            good = scores >= self.needed[query]
            if not good.any():
                return
            found = self.rows[query] >= 0
            all_scores = np.concatenate([self.scores[query][found], scores[good]])
            all_rows = np.concatenate([self.rows[query][found], rows[good]])
            order = np.lexsort((all_rows, -all_scores))[: self.k]
            self.scores[query, : len(order)] = all_scores[order]
            self.rows[query, : len(order)] = all_rows[order]
            if len(order) == self.k:
                self.needed[query] = max(self.needed[query], self.scores[query, -1])


def plan_search(
    queries: NDArray[Any],
    gallery: NDArray[Any],
    offset: int,
    score: PairScore,
    leaf_values: tuple[list[RankTree], list[Values]] | None,
    best: TopK,
    n_threads: int,
    test_cost: float = 1.0,
) -> tuple[Callable[[Part], None], list[Part]]:
    """Return a search function and the parts to call it on, in any order, to collect the best rows in ``best``.

    Parameters
    ----------
    queries, gallery : ndarrays of shape (n_queries, n_features) and (n_rows, n_features)
        Prepared samples to search for, and to search in.
    offset : int
        Index of row 0 of the gallery in ``best``.
    score : callable
        Function that returns the scores of pairs.
    leaf_values : tuple of trees and their cell values, or None
        Trees and values whose mean is the score, if it is of this form.
    best : TopK
        Receives the result.
    n_threads : int
        Minimum number of parts, if possible.
    test_cost : float, default=1.0
        Cost of one test of one pair in ``score``, relative to that of a forest.

    Returns
    -------
    search : callable
        Function of a part.
    parts : list of Part
        Parts that cover all queries and rows.
    """
    search = _cheapest(queries, gallery, score, leaf_values, best.k, test_cost)

    def work(part: Part) -> None:
        search(queries, gallery, part, offset, best)

    n_queries, n_rows = search.sizes(len(queries))
    n_first, n_first_rows = search.pilot(len(queries), len(gallery), n_threads)
    n_left = len(queries) - n_first
    # A multiple of the threads if possible, so that none waits for the last part of another.
    n_batches = min(n_threads * -(-max(1, -(-n_left // n_queries)) // n_threads), n_left)
    n_parts = max(-(-(len(gallery) - n_first_rows) // n_rows), min(-(-n_threads // max(1, n_batches)), len(gallery)))
    singles = [slice(query, query + 1) for query in range(n_first)]
    batches = singles + _chunks(n_left, n_batches, n_first)
    first_rows = [slice(0, n_first_rows)] if n_first_rows else []
    parts = first_rows + _chunks(len(gallery) - n_first_rows, n_parts, n_first_rows)
    # All queries search one part before the next: scores found there raise the bar for the other parts.
    return work, [Part(batch, rows) for rows in parts for batch in batches]


def _cheapest(
    queries: NDArray[Any],
    gallery: NDArray[Any],
    score: PairScore,
    leaf_values: tuple[list[RankTree], list[Values]] | None,
    k: int,
    test_cost: float,
) -> BruteForceSearch | ThriftySearch:
    """Return brute force, or a bounded search if it is expected to cost less."""
    brute = BruteForceSearch(score)
    if leaf_values is not None and leaf_values[0][0].pair_map.categories is not None:  # bounds are those of numbers
        return brute
    if leaf_values is None or any(tree.regions for tree in leaf_values[0]) or not len(queries) or not len(gallery):
        return brute
    if has_missing(queries) or has_missing(gallery):  # bounds are those of values
        return brute
    # Rows that are walked in any case cost more than all rows by brute force, whatever the trees are.
    if test_cost * len(gallery) <= COST_OF_WALKED_TEST * _min_walked(len(gallery), k):
        return brute
    n_nodes = [len(tree.nodes.kind) for tree in leaf_values[0]]
    n_pairs = len(queries) * len(gallery)
    first_guess = test_cost * n_pairs * TESTS_PER_DIGIT * float(np.log2(np.add(n_nodes, 1)).sum())
    if first_guess <= COST_OF_NODE * sum(n_nodes):
        return brute
    thrifty = ThriftySearch(brute, BoundedSearch(*leaf_values, queries, gallery), test_cost)
    return brute if thrifty.brute_cost(n_pairs) <= thrifty.least_cost(len(queries), len(gallery), k) else thrifty


def _min_walked(n_rows: int, k: int) -> int:
    """Return the number of rows per query that a bounded search walks at least: those near the query, and the k best."""
    return min(n_rows, max(2 * k, kernels.MIN_GUESSES)) + min(n_rows, k)


@dataclass(frozen=True)
class BruteForceSearch:
    """Search by scoring every pair.

    Parameters
    ----------
    score : callable
        Function that returns the scores of pairs.
    """

    score: PairScore

    def sizes(self, n_queries: int) -> tuple[int, int]:
        """Return the maximum number of queries and rows of a part, whose pairs fit in one block."""
        return 256, max(1, SCAN_PAIRS // max(1, min(n_queries, 256)))

    def pilot(self, n_queries: int, n_rows: int, n_threads: int) -> tuple[int, int]:
        """Return 0 and 0: no part is needed to tell what others will cost."""
        return 0, 0

    def __call__(self, queries: NDArray[Any], gallery: NDArray[Any], part: Part, offset: int, best: TopK) -> None:
        """Update ``best`` with all rows of a part; row 0 of the gallery has the index ``offset`` in it."""
        some, rows = queries[part.queries], gallery[part.rows]
        numbers, places = np.arange(len(some), dtype=np.int32), np.arange(len(rows), dtype=np.int32)
        pairs = SamplePairs(some, rows, np.repeat(numbers, len(rows)), np.tile(places, len(some)))
        found = offset + np.arange(part.rows.start, part.rows.stop, dtype=np.int64)
        for query, scores in enumerate(self.score(pairs).reshape(len(some), len(rows)), part.queries.start):
            best.offer(query, scores, found)


class BoundedSearch:
    """Search by upper bounds, if the score is the mean of cell values of trees with axis regions only.

    Parameters
    ----------
    trees, values : lists
        The trees and their cell values.
    queries, gallery : ndarrays of shape (n_queries, n_features) and (n_rows, n_features)
        Prepared samples to search for, and to search in.

    Attributes
    ----------
    work : ndarray of two ints
        Number of tests evaluated on the codes of rows, and number of trees that rows were routed through.
    path : float
        Mean number of tests of a pair in all trees, from a sample of the pairs.
    """

    def __init__(self, trees: list[RankTree], values: list[Values], queries: NDArray[Any], gallery: NDArray[Any]) -> None:
        self.trees = _joined(trees, values)
        starts = np.cumsum([0, *(tree.n_cells for tree in trees[:-1])])
        highest, lowest = (extreme.reduceat(self.trees.values, starts) for extreme in (np.maximum, np.minimum))
        widest = float((highest - lowest).max())
        step = widest / kernels.TOP if widest > 0.0 else 1.0
        largest = float(np.maximum(np.abs(highest), np.abs(lowest)).sum()) + len(trees) * kernels.TOP * step
        self.levels = Levels(highest - kernels.TOP * step, step, margin=1e-9 * largest)
        answers = _answers(self.trees, queries, gallery)
        self.tests, self.n_slots = _first_tests(trees, self.trees, self.levels, answers)
        self.path = float(answers.sum()) / n_sampled(len(queries) * len(gallery))
        self.grid = _grid(trees[0].pair_map, queries, gallery)
        self.n_columns = len(self.grid.low)
        self.work = np.zeros(2, dtype=np.int64)
        self._lock = Lock()

    def sizes(self, n_queries: int) -> tuple[int, int]:
        """Return the maximum number of queries and rows of a part."""
        pending = 2 * kernels.STRIDE * (self.n_columns + len(self.trees.root))
        return max(1, min(128, BATCH_BYTES // pending)), max(kernels.WIDTH, PART_BYTES // self.n_columns)

    def __call__(self, queries: NDArray[Any], gallery: NDArray[Any], part: Part, offset: int, best: TopK) -> None:
        """Update ``best`` with the best rows of a part; row 0 of the gallery has the index ``offset`` in it."""
        needed = best.needed[part.queries].copy()
        found = TopK(len(needed), best.k, -np.inf)
        work = np.zeros_like(self.work)
        kernels.search_rows(
            queries[part.queries],
            gallery,
            part.rows.start,
            part.rows.stop,
            self.grid,
            self.tests,
            self.trees,
            self.levels,
            self.n_slots,
            needed,
            found.scores,
            found.rows,
            work,
        )
        for query, (scores, rows) in enumerate(zip(found.scores, found.rows, strict=True), part.queries.start):
            best.offer(query, scores[rows >= 0], offset + rows[rows >= 0])
        with self._lock:
            self.work += work

    def fixed_cost(self, n_queries: int, n_rows: int) -> float:
        """Return the cost of what is done for any result in a part of so many queries and rows."""
        codes, ranges = n_rows * self.n_columns, n_queries * len(self.tests.kind)
        distances = n_queries * n_rows * self.trees.n_features
        return COST_OF_CODE * codes + COST_OF_RANGE * ranges + COST_OF_DISTANCE * distances

    def variable_cost(self) -> float:
        """Return the cost of all tests that were evaluated so far, on codes and on walks."""
        n_code_tests, n_walks = self.work.tolist()
        return COST_OF_CODE_TEST * n_code_tests + COST_OF_WALKED_TEST * n_walks * self.path / len(self.trees.root)


class ThriftySearch:
    """Search by upper bounds as long as this costs less than brute force for the same pairs, and by brute force from then on.

    Parameters
    ----------
    brute : BruteForceSearch
        The search to change to.
    bounded : BoundedSearch
        The search to begin with.
    test_cost : float
        Cost of one test of one pair in brute force.

    Attributes
    ----------
    cost, n_bounded : float and int
        Cost of the bounded searches so far, by counted operations, and the number of their pairs.
    """

    def __init__(self, brute: BruteForceSearch, bounded: BoundedSearch, test_cost: float) -> None:
        self.brute, self.bounded, self.test_cost = brute, bounded, test_cost
        self.cost, self.n_bounded = 0.0, 0
        self._fixed = 0.0
        self._lock = Lock()

    def brute_cost(self, n_pairs: int) -> float:
        """Return the cost of brute force."""
        return self.test_cost * n_pairs * self.bounded.path

    def least_cost(self, n_queries: int, n_rows: int, k: int) -> float:
        """Return the cost of a bounded search that drops all rows that it can."""
        walks = COST_OF_WALKED_TEST * n_queries * _min_walked(n_rows, k) * self.bounded.path
        return self.bounded.fixed_cost(n_queries, n_rows) + walks

    def sizes(self, n_queries: int) -> tuple[int, int]:
        """Return the maximum number of queries and rows of a part."""
        return self.bounded.sizes(n_queries)

    def pilot(self, n_queries: int, n_rows: int, n_threads: int) -> tuple[int, int]:
        """Return the number of queries that come first, each in a part of its own, and the number of rows that do."""
        if n_queries >= MIN_PILOT_QUERIES:
            return min(n_threads, n_queries // MIN_PILOT_QUERIES), 0
        return 0, kernels.WIDTH if n_rows >= MIN_PILOT_BLOCKS * kernels.WIDTH else 0

    def __call__(self, queries: NDArray[Any], gallery: NDArray[Any], part: Part, offset: int, best: TopK) -> None:
        """Update ``best`` with the best rows of a part; row 0 of the gallery has the index ``offset`` in it."""
        n_queries, n_rows = (places.stop - places.start for places in part)
        if self.cost <= self.brute_cost(self.n_bounded):
            self.bounded(queries, gallery, part, offset, best)
            with self._lock:
                self._fixed += self.bounded.fixed_cost(n_queries, n_rows)
                self.cost = self._fixed + self.bounded.variable_cost()
                self.n_bounded += n_queries * n_rows
            return
        max_queries, max_rows = self.brute.sizes(n_queries)
        for some in _chunks(n_queries, -(-n_queries // max_queries), part.queries.start):
            for rows in _chunks(n_rows, -(-n_rows // max_rows), part.rows.start):
                self.brute(queries, gallery, Part(some, rows), offset, best)


def _chunks(n: int, n_chunks: int, start: int = 0) -> list[slice]:
    """Return the slices of a range of n numbers, from ``start``, in chunks of about equal size."""
    ends = (start + np.linspace(0, n, n_chunks + 1).astype(int)).tolist()
    return [slice(begin, stop) for begin, stop in pairwise(ends)]


def _grid(pair_map: CoordinateSet, queries: NDArray[Any], gallery: NDArray[Any]) -> Grid:
    """Return a grid for the codes of a gallery, from some of its rows; values beyond it get the first or last code."""
    # A copy of these rows, because pairs of a gallery are asked whether any of its values is missing.
    some = gallery[:: max(1, len(gallery) // GRID_ROWS)].copy()
    numbers = np.arange(len(some), dtype=np.int32)
    pairs = SamplePairs(queries, some, numbers % np.int32(len(queries)), numbers)
    columns = np.hstack([some.astype(np.float64), pair_map.complete(pairs).pairwise])
    low, high = columns.min(axis=0), columns.max(axis=0)
    scale = np.zeros_like(low)
    with np.errstate(over="ignore"):
        width = high - low
        np.divide(kernels.LAST_CODE + 1, width, out=scale, where=width > 0.0)
    return Grid(low, np.minimum(scale, MAX_FLOAT))


def n_sampled(n_pairs: int) -> int:
    """Return how many of so many pairs are sampled."""
    return int(np.clip(n_pairs // SAMPLE_EVERY, *SAMPLE_SIZES))


def _answers(trees: Trees, queries: NDArray[Any], gallery: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of sampled pairs that go from each node to its first (row 0) and second (row 1) successor."""
    n = n_sampled(len(queries) * len(gallery))
    counts = np.zeros((2, len(trees.nodes.kind)), dtype=np.int64)
    numbers = np.arange(n)
    kernels.count_answers(queries, gallery, numbers % len(queries), numbers * len(gallery) // n, trees, *counts)
    return counts


def _first_tests(separate: list[RankTree], trees: Trees, levels: Levels, answers: NDArray[np.int64]) -> tuple[FirstTests, int]:
    """Return the tests of each tree with sufficient gain in each step, and the number of slots they need."""
    nodes, n_cells = trees.nodes, len(trees.values)
    reachable = np.empty(len(nodes.kind))
    kernels.fill_reachable(nodes, trees.values, reachable)
    level_of_cells = _levels(trees.values, levels, [tree.n_cells for tree in separate])
    level_of_nodes = _levels(reachable, levels, [len(tree.nodes.kind) for tree in separate])
    ends = np.cumsum([0, *(len(tree.nodes.kind) for tree in separate)])
    n_pairs = int(answers[:, 0].sum()) if len(nodes.kind) else 0
    # Codes of pairwise coordinates follow those of the columns of samples.
    column = nodes.feature + np.where(nodes.kind == PAIRWISE, separate[0].pair_map.n_columns, 0).astype(np.int32)
    parts: list[tuple[NDArray[Any], ...]] = []
    starts, n_slots, n_before = [], 0, 0
    for min_gain in MIN_GAINS:
        asked = np.empty(len(nodes.kind), dtype=np.bool_)
        kernels.choose_tests(trees, reachable, *answers, min_gain * kernels.TOP * levels.step * n_pairs, asked)
        # For a successor s, at n_cells + s: the number of the test, or -1 - level of a cell or of a node that is not evaluated.
        target = -1 - np.concatenate([level_of_cells[::-1], level_of_nodes])
        target[n_cells:][asked] = np.arange(np.count_nonzero(asked))
        if_le, if_gt = target[n_cells + nodes.if_le[asked]], target[n_cells + nodes.if_gt[asked]]
        start, slot = np.append(0, np.cumsum(asked))[ends], np.empty(len(if_le), dtype=np.int32)
        n_slots = max(n_slots, kernels.assign_slots(start, if_le, if_gt, slot))
        parts.append((nodes.kind[asked], column[asked], nodes.threshold[asked], if_le, if_gt, slot))
        starts.append(n_before + start)
        n_before += len(slot)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return FirstTests._make([*columns, np.array(starts)]), n_slots


def _levels(values: Values, levels: Levels, sizes: list[int]) -> NDArray[np.int32]:
    """Return the levels of values, rounded up; ``sizes`` is the number of values of each tree."""
    above = (values - np.repeat(levels.base, sizes)) / levels.step
    return np.asarray(np.clip(np.ceil(above), 0, kernels.TOP), dtype=np.int32)


def _joined(trees: list[RankTree], values: list[Values]) -> Trees:
    """Return all trees in one table."""
    n_nodes, n_cells = [len(tree.nodes.kind) for tree in trees], [tree.n_cells for tree in trees]
    first_node, first_cell = (np.cumsum([0, *sizes[:-1]]) for sizes in (n_nodes, n_cells))

    def moved(table: NDArray[np.int32], n_each: list[int] | int) -> NDArray[np.int32]:
        """Return the successors with their new numbers, after the nodes and cells of the preceding trees."""
        after = np.where(table >= 0, np.repeat(first_node, n_each), -np.repeat(first_cell, n_each))
        return np.asarray(table + after, dtype=np.int32)

    columns = Nodes(*(np.concatenate(column) for column in zip(*(tree.nodes for tree in trees), strict=True)))
    nodes = columns._replace(if_le=moved(columns.if_le, n_nodes), if_gt=moved(columns.if_gt, n_nodes))
    entry = moved(np.where(n_nodes, 0, -1), 1)
    pair_map = trees[0].pair_map
    return Trees(nodes, entry, np.concatenate(values), pair_map.pairwise_kinds, pair_map.n_features)
