"""Kernels of gradient boosting against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from simtree._kernels import boosting, code_walk
from simtree._kernels.boosting import N_CODES, NOT_GROWN, WORD, Found
from simtree._kernels.boosting_search import HALF, LOW_HALF, MAX_SUM, Rule
from simtree.trees._code_walk import pack_tests

pytestmark = [
    pytest.mark.kernel,
    # Interpreted, NumPy warns of unsigned sums that wrap around and of quotients by almost zero.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
seeds = st.integers(0, 2**32 - 1)
modest = settings(max_examples=30, deadline=None, database=None)
BOUND = 4.0
MIN_GAIN = 1e-9


def packed_gradients(g, h):
    """Quantised gradients, packed, and their units."""
    units = np.abs(g).sum() / MAX_SUM, np.abs(h).sum() / MAX_SUM
    packed = np.empty(len(g), dtype=np.int64)
    boosting.fill_packed(g, h, *units, packed)
    return packed, units


def problem(seed, n=60, n_columns=4, n_codes=9):
    """Codes, gradients that the quantisation keeps exactly, and what is needed to grow a tree on them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_codes, (n, n_columns)).astype(np.uint8)
    same = rng.random(n) < 0.2 + 0.6 * (codes[:, 0] > n_codes // 2)
    packed, units = packed_gradients(*oracle.gradients(rng.normal(size=n), same, rng.uniform(0.2, 2, n)))
    g, h = (packed >> HALF) * units[0], (packed & LOW_HALF) * units[1]
    return rng, codes, same, packed, units, g, h


def rule_of(packed, units, *limits, n_bins=9, min_hessian=0.0):
    """The rule of a tree, with what it has to know of the packed gradients."""
    in_units = int(np.ceil(min_hessian / units[1]))
    return Rule(*units, int((packed & LOW_HALF).max()), n_bins, *limits, min_hessian=in_units)


def with_padding(codes):
    """Codes as kernels take them; the padding has codes, too, which must not matter."""
    return np.pad(codes, ((0, 0), (0, boosting.padded(codes.shape[1]) - codes.shape[1])), constant_values=3)


def grow(codes, packed, rule, directions, *, threads, coordinates=None):
    """Grow a tree as the booster does; with threads each expansion is done in two parts of the columns."""
    coordinates = np.arange(codes.shape[1]) if coordinates is None else coordinates
    rows, n = np.arange(len(codes), dtype=np.int32), len(coordinates)
    codes = with_padding(codes)
    cells = boosting.new_cells(rule.max_leaves, len(rows), int(packed.sum()), BOUND)
    histograms = np.full((rule.max_leaves, boosting.padded(n), N_CODES), -1, dtype=np.int64)
    found = Found(np.empty((2, n)), *np.zeros((2, 2, n), dtype=np.int64))

    def expand(cell):
        for begin, end in ((0, WORD), (WORD, n)) if threads else ((0, n),):
            boosting.expand_columns(
                codes, packed, rows, coordinates, begin, end, directions, rule, histograms, cells, cell, found
            )
        boosting.settle_children(codes, rows, coordinates, directions, rule, histograms, cells, cell, found)

    if boosting.can_split(cells, 0, rule):
        expand(0)
    many = 0 if threads else 1 << 60
    spare = np.empty_like(rows)
    arguments = (codes, packed, rows, spare, coordinates, directions, rule, histograms, cells, found, many)
    while (cell := boosting.grow(*arguments)) != NOT_GROWN:
        expand(cell)
    return rows, cells


def leaves_of(rows, cells):
    """The rows of each leaf, as sets."""
    leaves = [cell for cell in range(cells.size[0]) if cells.child[cell] < 0]
    return {frozenset(rows[cells.start[cell] : cells.stop[cell]].tolist()) for cell in leaves}


@given(seeds)
@modest
def test_gradients_are_those_of_the_loss(seed):
    rng = np.random.default_rng(seed)
    scores, same, weights = 5 * rng.normal(size=20), rng.random(20) < 0.5, rng.uniform(0, 2, 20)
    g, h = np.empty(20), np.empty(20)
    boosting.fill_gradients(scores, same, weights, g, h)
    expected = oracle.gradients(scores, same, weights)
    np.testing.assert_allclose(g, expected[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(h, expected[1], rtol=1e-9, atol=1e-12)


def test_gradients_of_extreme_scores_are_finite():
    scores, g, h = np.array([-1e4, 1e4, 0.0]), np.empty(3), np.empty(3)
    boosting.fill_gradients(scores, np.array([True, True, False]), np.ones(3), g, h)
    np.testing.assert_array_equal(g, [-1.0, 0.0, 0.5])
    np.testing.assert_array_equal(h, [0.0, 0.0, 0.25])


@given(seeds)
@modest
def test_packed_sums_are_the_sums_up_to_rounding(seed):
    rng = np.random.default_rng(seed)
    g, h = oracle.gradients(rng.normal(size=50), rng.random(50) < 0.5, np.ones(50))
    packed, units = packed_gradients(g, h)
    total = packed.sum()
    assert abs((total >> HALF) * units[0] - g.sum()) <= 50 * units[0]
    assert abs((total & LOW_HALF) * units[1] - h.sum()) <= 50 * units[1]
    assert ((packed & LOW_HALF) >= 1).all()


@given(seeds, st.booleans())
@modest
def test_histogram_is_the_sum_of_each_code(seed, some):
    """More rows than are gathered at a time, and columns that fill several words, of which some are counted."""
    rng, codes, _, packed, *_ = problem(seed, n=40, n_columns=2 * WORD + 3)
    columns = rng.permutation(2 * WORD + 3)[: 2 * WORD - 1] if some else np.arange(2 * WORD + 3)
    rows = rng.integers(0, len(codes), boosting.GATHERED + 40).astype(np.int32)
    histogram = np.full((boosting.padded(len(columns)), N_CODES), 7, dtype=np.int64)
    boosting.add_codes(with_padding(codes), packed, rows, columns, WORD, len(columns), histogram)
    assert (histogram[:WORD] == 7).all()
    for k, column in list(enumerate(columns))[WORD:]:
        expected = np.zeros(N_CODES, dtype=np.int64)
        np.add.at(expected, codes[rows, column], packed[rows])
        np.testing.assert_array_equal(histogram[k], expected)


@given(seeds, st.integers(1, 12), st.sampled_from([0.0, 0.5, 20.0]), st.booleans(), st.sampled_from([0.0, 1.0, 4.0]))
@modest
def test_first_split_is_the_best_one(seed, min_leaf, l2, constrained, min_hessian):
    rng, codes, _, packed, units, g, h = problem(seed)
    directions = rng.integers(-1, 2, 4) if constrained else np.zeros(4, dtype=np.int64)
    rule = rule_of(packed, units, l2, min_leaf, 2, 52, MIN_GAIN, min_hessian=min_hessian)
    _, cells = grow(codes, packed, rule, directions, threads=False)
    gain, column, code = oracle.boosted_split(codes, g, h, l2, min_leaf, -BOUND, BOUND, directions, min_hessian)
    if column is None:
        assert cells.size[0] == 1
    else:
        assert (cells.column[0], cells.code[0]) == (column, code)
        np.testing.assert_allclose(cells.gain[0], gain, rtol=1e-6, atol=1e-9)


@given(seeds, st.integers(1, 8), st.integers(2, 9), st.integers(1, 5), st.booleans(), st.booleans())
@modest
def test_tree_is_that_of_the_oracle(seed, min_leaf, max_leaves, max_depth, constrained, threads):
    n_columns = WORD + 1 if threads else 4
    rng, codes, _, packed, units, g, h = problem(seed, n_columns=n_columns)
    directions = rng.integers(-1, 2, n_columns) if constrained else np.zeros(n_columns, dtype=np.int64)
    rule = rule_of(packed, units, 1.0, min_leaf, max_leaves, max_depth, MIN_GAIN)
    rows, cells = grow(codes, packed, rule, directions, threads=threads)
    expected = oracle.boosted_tree(codes, g, h, 1.0, min_leaf, max_leaves, max_depth, BOUND, directions)
    assert leaves_of(rows, cells) == {frozenset(leaf["rows"].tolist()) for leaf in expected}
    # Two columns may give the same leaves, of which one has a direction: bounds follow from the columns that were chosen.
    assert (cells.low[0], cells.high[0]) == (-BOUND, BOUND)
    for parent in np.flatnonzero(cells.child[: cells.size[0]] >= 0):
        low, high = cells.low[parent], cells.high[parent]
        parts = [cells.child[parent], cells.child[parent] + 1]
        own = [rows[cells.start[part] : cells.stop[part]] for part in parts]
        values = [oracle.bounded_value(g[part].sum(), h[part].sum(), 1.0, low, high) for part in own]
        bounds = [[low, high], [low, high]]
        if way := directions[cells.column[parent]]:
            lower = 0 if way > 0 else 1
            bounds[lower][1] = bounds[1 - lower][0] = np.mean(values)
        np.testing.assert_allclose([(cells.low[part], cells.high[part]) for part in parts], bounds, rtol=1e-6)


@given(seeds)
@modest
def test_some_columns_only(seed):
    _, codes, _, packed, units, g, h = problem(seed)
    rule = rule_of(packed, units, 1.0, 3, 5, 52, MIN_GAIN)
    none = np.zeros(2, dtype=np.int64)
    rows, cells = grow(codes, packed, rule, none, threads=False, coordinates=np.array([1, 3]))
    expected = oracle.boosted_tree(codes[:, [1, 3]], g, h, 1.0, 3, 5, 52, BOUND, none)
    assert leaves_of(rows, cells) == {frozenset(leaf["rows"].tolist()) for leaf in expected}


@given(seeds)
@modest
def test_sums_and_values_of_leaves(seed):
    rng, codes, same, packed, units, *_ = problem(seed)
    rows, cells = grow(
        codes, packed, rule_of(packed, units, 1.0, 2, 6, 52, MIN_GAIN), np.zeros(4, dtype=np.int64), threads=False
    )
    n = int(cells.size[0])
    g, h, sums, n_same = rng.normal(size=60), rng.random(60), np.empty((2, n)), np.empty(n, dtype=np.int64)
    boosting.sum_cells(rows, g, h, same, cells, sums, n_same)
    values, total = rng.normal(size=n), np.zeros(60)
    boosting.add_cell_values(rows, cells, values, total)
    for cell in range(n):
        own = rows[cells.start[cell] : cells.stop[cell]]
        np.testing.assert_allclose(sums[:, cell], [g[own].sum(), h[own].sum()], rtol=1e-9)
        assert n_same[cell] == same[own].sum()
        if cells.child[cell] < 0:
            np.testing.assert_array_equal(total[own], values[cell])


@given(seeds, st.integers(1, 70))
@modest
def test_walks_by_codes_end_where_the_rows_are(seed, n):
    """Trees of several sizes, one of them a leaf alone; pairs that fill no block of eight."""
    rng, codes, _, packed, units, *_ = problem(seed)
    tests, values, first = [], [], [0]
    expected = np.zeros(60)
    for max_leaves in (6, 1, 3):
        rule = rule_of(packed, units, 1.0, 2, max_leaves, 52, MIN_GAIN)
        rows, cells = grow(codes, packed, rule, np.zeros(4, dtype=np.int64), threads=False)
        size = int(cells.size[0])
        own = rng.normal(size=size)
        boosting.add_cell_values(rows, cells, own, expected)
        tests.append(pack_tests(cells.child[:size], cells.column[:size], cells.code[:size], cells.states[:size]))
        values.append(own)
        first.append(first[-1] + size)
    total = np.zeros(min(n, 60))
    some = np.ascontiguousarray(codes[: len(total)])
    code_walk.add_code_values(some, np.concatenate(tests), np.concatenate(values), np.array(first), total)
    np.testing.assert_array_equal(total, expected[: len(total)])
