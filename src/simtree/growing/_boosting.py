"""Gradient boosting: trees grown one after another on the gradients of the logistic loss of pairs.

A round computes the gradients at the scores of the trees so far, grows a tree on them in `simtree._kernels.boosting`, and
refits the values of its cells in float64. Pairs of labelled samples are drawn anew every few rounds, because there are many
more than one tree needs. Coordinates are binned once: the bins of the first pairs serve for all, so that the trees can score
further pairs by their codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from simtree._kernels import boosting as kernels
from simtree._kernels.boosting import N_CODES, NOT_GROWN, WORD, Found, Growing
from simtree._kernels.boosting_search import MAX_SUM, MIN_SUM, TINY, Rule
from simtree._kernels.missing import N_STATES
from simtree._utils.matrices import has_missing
from simtree._utils.threads import in_threads
from simtree.growing._grower import sample_both_kinds
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import with_rows
from simtree.trees._binning import MIN_PARALLEL_UPDATES, ByteBins, coordinate_edges, thresholds
from simtree.trees._code_walk import CodeWalk, sides_of
from simtree.trees._rank_tree import Cells, RankTree, entries, joined_tree
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion

# Bound of a leaf value before it is multiplied by the learning rate: where a cell is almost sure, its Hessian is almost zero,
# and a Newton step would jump to the top of the ranking.
MAX_STEP = 4.0
# L2 penalty by default. Where pairs are drawn anew, a sure cell meets a pair of the other kind now and then, and later rounds,
# which see other pairs, do not take back what a small penalty would give it.
L2, L2_OF_NEW_PAIRS = 0.01, 1.0
# Pairs processed by one thread at a time.
CHUNK = 1 << 16
# Candidates for hard different pairs, as a multiple of the different pairs of a round, and the share of them that are hard.
CANDIDATES, HARD_SHARE = 4, 0.5
# A split that decreases the loss by less than this share of the sum of all gradients, to which they are rounded, is not made.
# Relative to the number of pairs the bound would end the growth where almost all pairs are sure: at the top of the ranking.
MIN_GAIN = 1e-10
# What random numbers are for, so that each purpose has its own stream.
FOR_PAIRS, FOR_ROUND = 1, 2


@dataclass(frozen=True)
class BoostingParams:
    """The checked parameters of gradient boosting on pairs of samples.

    Parameters
    ----------
    pair_map : CoordinateSet
        Coordinates of a pair.
    directions : ndarray of shape (n_coordinates,)
        1 if the score must not decrease with the coordinate, -1 if it must not increase, 0 otherwise.
    learning_rate, max_leaf_nodes, max_depth, min_samples_leaf
        Factor of the values of each tree, and its limits.
    l2 : float or None
        L2 penalty of leaf values; None for that of new pairs or of the same ones.
    n_columns : int
        Number of columns (features, and products with directions) drawn for each tree. Pairwise coordinates are always used.
    subsample : float
        Share of the pairs drawn for each tree.
    max_bins : int
        Maximum number of bins per coordinate.
    n_pairs, positive_fraction, same_weighting
        How pairs are sampled, see `PairSampler.sample`.
    refresh : int or None
        Number of rounds after which pairs are drawn anew; None for never.
    focus_fpr : float or None
        Different pairs whose score is among the highest of this share are drawn more often.
    columns : ndarray of int
        Columns with values, of which those for a tree are drawn.
    """

    pair_map: CoordinateSet
    directions: NDArray[np.int64]
    learning_rate: float
    max_leaf_nodes: int
    max_depth: int
    min_samples_leaf: int
    l2: float | None
    n_columns: int
    subsample: float
    max_bins: int
    n_pairs: int | None
    positive_fraction: float | None
    same_weighting: str
    refresh: int | None
    focus_fpr: float | None
    columns: NDArray[np.int64]

    def sample(self, source: PairSource, rng: np.random.Generator) -> IndexPairs:
        """Return training pairs, both same and different."""
        return sample_both_kinds(source, rng, self.n_pairs, self.positive_fraction, self.same_weighting)


@dataclass(frozen=True, eq=False)
class BoostedTree:
    """One tree of a boosted ensemble.

    Parameters
    ----------
    tree : RankTree
        The tree; each cell is split by one test.
    values : ndarray of shape (n_cells,)
        Value of each cell, of which the score of a pair is the sum.
    walk : CodeWalk
        The tree as a table that pairs walk through by their codes.
    """

    tree: RankTree
    values: NDArray[np.float64]
    walk: CodeWalk


@dataclass
class CodedPairs:
    """Pairs as the codes of their coordinates, with their scores so far."""

    codes: NDArray[np.uint8]
    same: NDArray[np.bool_]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.same)


class Booster:
    """Gradient boosting on the pairs of a source; it is a context, which holds threads.

    Parameters
    ----------
    params : BoostingParams
        Parameters.
    samples : ndarray of shape (n_samples, n_columns)
        Samples, extended by their products with the directions of oblique coordinates.
    source : PairSource
        Where the pairs come from.
    entropy : tuple of int
        Random seed. Each round has its own random numbers, so that rounds can be added later.
    weights : ndarray of shape (n_pairs,), optional
        Weights of given pairs.
    n_jobs : int or None
        Number of parallel jobs. It does not affect the result.
    """

    def __init__(
        self,
        params: BoostingParams,
        samples: NDArray[Any],
        source: PairSource,
        entropy: Sequence[int],
        *,
        weights: NDArray[np.float64] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.params = params
        self.samples = samples
        self.source = source
        self.entropy = tuple(entropy)
        self.weights = weights
        self.n_threads = effective_n_jobs(n_jobs)
        self.trees: list[BoostedTree] = []
        self.earlier: list[tuple[RankTree, NDArray[np.float64]]] = []
        first = params.sample(source, self._rng(FOR_PAIRS, 0))
        self._first = first
        rows, local, _ = with_rows(samples, first)
        lacks_values = has_missing(samples)
        pairs = SamplePairs(rows, rows, local.first, local.second, lacks_values=lacks_values)
        self.bins = ByteBins(params.pair_map, coordinate_edges(params.pair_map, pairs, params.max_bins))
        self.one_code = self.bins.n_bins if lacks_values else 0
        exhausted = params.n_pairs is None or params.n_pairs >= source.n_pairs
        fixed = source.labels is None or (exhausted and params.same_weighting == "pairs")
        self._refresh = None if fixed else params.refresh
        # As asked for, whether or not there are more pairs than are drawn at a time: both fits of early stopping do the same.
        new_pairs = source.labels is not None and params.refresh is not None
        self._l2 = (L2_OF_NEW_PAIRS if new_pairs else L2) if params.l2 is None else params.l2
        self._histograms = np.empty((0, 0, 0), dtype=np.int64)
        self._stack = ExitStack()

    def __enter__(self) -> Booster:
        if self.n_threads > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.n_threads))
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.close()

    def rounds(self, n_rounds: int, earlier: Sequence[tuple[RankTree, NDArray[np.float64]]] = ()) -> Iterator[BoostedTree]:
        """Yield the trees of rounds up to ``n_rounds``, after those that exist already."""
        self.earlier = list(earlier)
        pairs: CodedPairs | None = None
        for number in range(len(self.earlier), n_rounds):
            if pairs is None or (self._refresh is not None and number % self._refresh == 0):
                pairs = self._draw(0 if self._refresh is None else number // self._refresh, pairs)
            grown = self._round(pairs, self._rng(FOR_ROUND, number))
            self.trees.append(grown)
            yield grown

    def encode(self, drawn: IndexPairs, weights: NDArray[np.float64] | None = None) -> CodedPairs:
        """Return pairs with their codes, and their scores by the trees so far."""
        codes = empty_codes(len(drawn), len(self.params.pair_map))
        return self._encode(drawn, np.ones(len(drawn)) if weights is None else weights, codes)

    def add(self, grown: BoostedTree, pairs: CodedPairs) -> None:
        """Add the values of a tree to the scores of pairs."""
        table = grown.walk
        self._in_chunks(len(pairs), lambda rows: table.add(pairs.codes[rows], self.one_code, pairs.scores[rows]))

    def _encode(self, drawn: IndexPairs, weights: NDArray[np.float64], codes: NDArray[np.uint8]) -> CodedPairs:
        scores = np.zeros(len(drawn))
        self._fill_codes(drawn, codes, scores)
        return CodedPairs(codes, drawn.same, weights, scores)

    def _fill_codes(self, drawn: IndexPairs, codes: NDArray[np.uint8], scores: NDArray[np.float64]) -> None:
        """Fill the codes of pairs, and add the values of all trees to their scores."""
        rows, drawn, _ = with_rows(self.samples, drawn)
        pairs = SamplePairs(rows, rows, drawn.first, drawn.second, lacks_values=self.one_code > 0)
        table = CodeWalk.join([grown.walk for grown in self.trees])

        def fill(rows: slice) -> None:
            part = self.params.pair_map.complete(pairs.take(rows))
            self.bins.fill(part, codes[rows], 1)
            for tree, values in self.earlier:
                tree.add_values(part, values, scores[rows])
            table.add(codes[rows], self.one_code, scores[rows])

        self._in_chunks(len(drawn), fill)

    def _in_chunks(self, n: int, work: Callable[[slice], None]) -> None:
        size = min(CHUNK, max(1, -(-n // self.n_threads)))
        in_threads(work, [slice(start, min(start + size, n)) for start in range(0, n, size)], self.n_threads)

    def _rng(self, purpose: int, number: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(purpose, number)))

    def _draw(self, block: int, before: CodedPairs | None) -> CodedPairs:
        """Return the pairs of some rounds; their codes take the place of those before."""
        params, rng = self.params, self._rng(FOR_PAIRS, block)
        drawn = self._first if block == 0 else params.sample(self.source, rng)
        weights = np.ones(len(drawn)) if self.weights is None else self.weights
        if block > 0 and params.focus_fpr is not None:
            drawn, weights = self._focus(drawn, params.focus_fpr, rng)
        if before is not None and len(before) == len(drawn):
            return self._encode(drawn, weights, before.codes)
        return self.encode(drawn, weights)

    def _focus(self, drawn: IndexPairs, focus_fpr: float, rng: np.random.Generator) -> tuple[IndexPairs, NDArray[np.float64]]:
        """Return pairs with the same ones as drawn, and different ones of which more are hard; and weights that make up for it.

        Of candidates, those with the highest scores are the hard ones. Both kinds of candidate are sampled uniformly, and the
        weight of each is its share among the candidates over its share among the pairs.
        """
        n_different = len(drawn) - drawn.n_same
        n_candidates = CANDIDATES * n_different
        total = n_candidates + drawn.n_same
        pool = self.source.sample(total, rng, positive_fraction=drawn.n_same / total, shuffle=False)
        pool = pool.take(~pool.same)
        n_hard_candidates = max(1, round(focus_fpr * len(pool)))
        n_hard = min(int(HARD_SHARE * n_different), n_hard_candidates)
        n_easy = min(n_different - n_hard, len(pool) - n_hard_candidates)
        if n_hard == 0 or n_easy == 0:
            return drawn, np.ones(len(drawn))
        scores = np.zeros(len(pool))
        for start in range(0, len(pool), n_different):  # no more codes at a time than of the pairs themselves
            rows = slice(start, start + n_different)
            codes = empty_codes(len(scores[rows]), len(self.params.pair_map))
            self._fill_codes(IndexPairs(pool.first[rows], pool.second[rows], pool.same[rows]), codes, scores[rows])
        order = np.argsort(-scores, kind="stable")
        chosen = np.concatenate(
            [
                rng.choice(order[:n_hard_candidates], n_hard, replace=False),
                rng.choice(order[n_hard_candidates:], n_easy, replace=False),
            ]
        )
        same, different = drawn.take(drawn.same), pool.take(chosen)
        columns = zip(vars(same).values(), vars(different).values(), strict=True)
        share = n_hard_candidates / len(pool)
        weights = np.ones(len(same) + len(different))
        weights[len(same) : len(same) + n_hard] = n_different * share / n_hard
        weights[len(same) + n_hard :] = n_different * (1.0 - share) / n_easy
        return IndexPairs(*(np.concatenate(parts) for parts in columns)), weights

    def _round(self, pairs: CodedPairs, rng: np.random.Generator) -> BoostedTree:
        """Grow one tree, and add its values to the scores of the pairs."""
        params, n = self.params, len(pairs)
        gradients, hessians, packed = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        sums = [float(pairs.weights[chosen].sum()) for chosen in (pairs.same, ~pairs.same)]
        offset = np.log(sums[0] / sums[1])  # the scores are log-likelihood ratios, the loss is one of log-odds

        def fill_gradients(rows: slice) -> None:
            scores = pairs.scores[rows] + offset
            kernels.fill_gradients(scores, pairs.same[rows], pairs.weights[rows], gradients[rows], hessians[rows])

        self._in_chunks(n, fill_gradients)
        total_g, total_h = (max(float(np.abs(part).sum()), MIN_SUM) for part in (gradients, hessians))
        unit_g, unit_h = total_g / MAX_SUM, total_h / MAX_SUM
        self._in_chunks(n, lambda rows: kernels.fill_packed(gradients[rows], hessians[rows], unit_g, unit_h, packed[rows]))
        limits = (params.min_samples_leaf, params.max_leaf_nodes, params.max_depth)
        max_hessian = int(np.rint(hessians.max() / unit_h)) + 1
        n_bins = self.bins.n_bins + (N_STATES if self.one_code else 0)
        rule = Rule(unit_g, unit_h, max_hessian, n_bins, self._l2, *limits, MIN_GAIN * total_g, self.one_code)
        rows = self._subsample(pairs.same, rng)
        coordinates = params.pair_map.of_columns(params.columns)
        if params.n_columns < len(params.columns):
            coordinates = params.pair_map.of_columns(rng.choice(params.columns, params.n_columns, replace=False))
        cells = self._grow(pairs.codes, packed, rows, coordinates, rule)
        n_cells = int(cells.size[0])
        exact, n_same = np.empty((2, n_cells)), np.empty(n_cells, dtype=np.int64)
        kernels.sum_cells(rows, gradients, hessians, pairs.same, cells, exact, n_same)
        penalised = np.maximum(exact[1] + self._l2, TINY)
        values = params.learning_rate * np.clip(-exact[0] / penalised, cells.low[:n_cells], cells.high[:n_cells])
        grown = _freeze(params.pair_map, self.bins.edges, coordinates, cells, values, n_same, self.one_code > 0)
        if len(rows) == n:
            kernels.add_cell_values(rows, cells, values, pairs.scores)
        else:
            self.add(grown, pairs)
        return grown

    def _subsample(self, same: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int32]:
        """Return the rows that a tree is grown on, of both kinds."""
        if self.params.subsample == 1.0:
            return np.arange(len(same), dtype=np.int32)
        parts = [np.flatnonzero(same), np.flatnonzero(~same)]
        drawn = [rng.choice(part, max(1, round(self.params.subsample * len(part))), replace=False) for part in parts]
        return np.sort(np.concatenate(drawn)).astype(np.int32)

    def _grow(
        self,
        codes: NDArray[np.uint8],
        packed: NDArray[np.int64],
        rows: NDArray[np.int32],
        coordinates: NDArray[np.int64],
        rule: Rule,
    ) -> Growing:
        """Return the cells of a tree; the rows are reordered by leaf."""
        n_columns = len(coordinates)
        shape = (rule.max_leaves, kernels.padded(n_columns), N_CODES)
        if self._histograms.shape != shape:
            self._histograms = np.empty(shape, dtype=np.int64)
        cells: Growing = kernels.new_cells(rule.max_leaves, len(rows), int(packed[rows].sum()), MAX_STEP)
        found = Found(np.empty((2, n_columns)), *np.zeros((2, 2, n_columns), dtype=np.int64))
        directions = self.params.directions[coordinates]
        many = MIN_PARALLEL_UPDATES if self.n_threads > 1 else np.iinfo(np.int64).max
        ends = np.minimum(np.linspace(0, kernels.padded(n_columns) // WORD, self.n_threads + 1).astype(int) * WORD, n_columns)
        arrays = (codes, packed, rows)

        def expand(begin: int, end: int, cell: int) -> None:
            kernels.expand_columns(*arrays, coordinates, begin, end, directions, rule, self._histograms, cells, cell, found)

        def expand_in_threads(cell: int) -> None:
            work = [self._pool.submit(expand, begin, end, cell) for begin, end in pairwise(ends)]
            for part in work:
                part.result()
            kernels.settle_children(codes, rows, coordinates, directions, rule, self._histograms, cells, cell, found)

        if rule.max_leaves > 1 and kernels.can_split(cells, 0, rule):
            if len(rows) * n_columns > many:
                expand_in_threads(0)
            else:
                expand(0, n_columns, 0)
                kernels.settle_children(codes, rows, coordinates, directions, rule, self._histograms, cells, 0, found)
        spare = np.empty_like(rows)
        grow = (*arrays, spare, coordinates, directions, rule, self._histograms, cells, found, many)
        while (cell := kernels.grow(*grow)) != NOT_GROWN:
            expand_in_threads(cell)
        return cells


def empty_codes(n_pairs: int, n_columns: int) -> NDArray[np.uint8]:
    """Return an array for the codes of pairs; the padding of its columns is zero."""
    return np.zeros((n_pairs, kernels.padded(n_columns)), dtype=np.uint8)


def _freeze(
    pair_map: CoordinateSet,
    edges: Sequence[NDArray[np.float64]],
    coordinates: NDArray[np.int64],
    growing: Growing,
    values: NDArray[np.float64],
    n_same: NDArray[np.int64],
    lacks_values: bool,
) -> BoostedTree:
    """Return the grown tree; of two children the one with the higher value is the inside one, which comes first."""
    n = int(growing.size[0])
    child = growing.child[:n]
    split = np.flatnonzero(child >= 0)
    le_inside = values[child[split]] >= values[child[split] + 1]
    number = np.arange(n)  # of each growing cell in the frozen tree
    first = child[split]
    number[first], number[first + 1] = np.where(le_inside, first, first + 1), np.where(le_inside, first + 1, first)

    def column(of_growing: NDArray[Any], dtype: Any) -> NDArray[Any]:
        found = np.empty(n, dtype=dtype)
        found[number] = of_growing[:n]
        return found

    inside = np.full(n, -1, dtype=np.int32)
    inside[number[split]] = first
    outside = np.where(inside >= 0, inside + 1, -1).astype(np.int32)
    parent = np.full(n, -1, dtype=np.int32)
    owners = np.flatnonzero(inside >= 0)
    parent[inside[owners]], parent[outside[owners]] = owners, owners
    depth = column(growing.depth, np.int32)
    rank = np.zeros(n, dtype=np.int64)
    for cell in range(1, n):  # parents come before their children
        rank[cell] = 2 * rank[parent[cell]] + (outside[parent[cell]] == cell)
    n_all = column(growing.stop - growing.start, np.int64)
    same = column(n_same, np.int64)
    different = n_all - same
    tpr, fpr = same / max(same[0], 1), different / max(different[0], 1)
    gain = np.zeros(n)
    gain[owners] = fpr[owners] * tpr[inside[owners]] - tpr[owners] * fpr[inside[owners]]
    n_tests = (inside >= 0).astype(np.int64)
    cells = Cells(depth, rank, parent, inside, outside, same, different, gain, entries(n_tests))
    order = np.argsort(number[split])  # the node of a cell has the place of the cell among those that are split
    coordinate = coordinates[growing.column[split][order]].astype(np.int32)
    codes = growing.code[split][order]
    if_le = np.where(le_inside[order], INSIDE, OUTSIDE).astype(np.int32)
    regions = AxisRegion(
        coordinate,
        thresholds(edges, coordinate, codes),
        if_le,
        (INSIDE + OUTSIDE - if_le).astype(np.int32),
        growing.gain[split][order],
        growing.states[split][order].astype(np.uint8) if lacks_values else None,
    )
    tree = joined_tree(pair_map, max(1, int(depth.max())), cells, n_tests, regions, {})
    most_above = np.zeros(n, dtype=np.bool_)
    most_above[split] = tree.majority_child[number[split]] == number[first + 1]
    states = sides_of(growing.states[:n], most_above)
    tests = (child, coordinates[growing.column[:n]], growing.code[:n], states)
    walk = CodeWalk.of_cells(*tests, values)
    return BoostedTree(tree, column(values, np.float64), walk)
