"""Each kernel against the oracle. Runs three times: compiled, interpreted (NUMBA_DISABLE_JIT=1), bounds-checked."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from simtree._kernels import binning, cart, coordinates, cross, nearest, pairs, posterior, route, samples, search, segments
from simtree._kernels.search import AUC, ENTROPY, GINI, Best, Rule

pytestmark = [
    pytest.mark.kernel,
    # Interpreted, a cut with nothing on one side divides zero by zero before it is discarded; compiled code says nothing.
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
    # Interpreted, NumPy warns of what is meant: differences of bytes that wrap around, and codes of huge numbers.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]

CRITERIA = {"gini": GINI, "entropy": ENTROPY, "auc": AUC}
KINDS = ("abs_diff", "sum", "min", "max", "product")
# What random tables of tests ask for.
COORDINATES = ("abs_diff", "sum", "manhattan")
seeds = st.integers(0, 2**32 - 1)
modest = settings(max_examples=40, deadline=None, database=None)


def random_pairs(rng, n_pairs=30, n_features=3, n_values=None):
    """Pairs of points with few distinct values (many ties) or with continuous ones."""
    points = (
        rng.normal(size=(n_pairs, 2, n_features)) if n_values is None else rng.integers(0, n_values, (n_pairs, 2, n_features))
    )
    return points.astype(float)


def as_rows(pair_array):
    """Points, row numbers and the one pairwise coordinate (the Manhattan distance) of an (n, 2, q) array."""
    first = np.arange(0, 2 * len(pair_array), 2, dtype=np.int32)
    points = pair_array.reshape(-1, pair_array.shape[2])
    return points, points, first, first + np.int32(1), oracle.coordinates(pair_array, ["manhattan"])


def both_kinds(rng, n):
    """Labels with at least one pair of each kind."""
    same = rng.random(n) < rng.uniform(0.2, 0.8)
    same[rng.integers(n)] = True
    same[(np.flatnonzero(same)[0] + 1) % n] = False
    return same


# coordinates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fill_values_is_the_oracle_and_symmetric(rng, dtype):
    pair_array = random_pairs(rng, 20, 3).astype(dtype)
    kinds = np.append(np.repeat(np.arange(5, dtype=np.uint8), 3), np.uint8(coordinates.PAIRWISE))
    features = np.append(np.tile(np.arange(3, dtype=np.int32), 5), np.int32(0))
    values, swapped = np.empty((16, 20)), np.empty((16, 20))
    coordinates.fill_values(*as_rows(pair_array), kinds, features, values)
    coordinates.fill_values(*as_rows(np.ascontiguousarray(pair_array[:, ::-1])), kinds, features, swapped)
    np.testing.assert_array_equal(values.T, oracle.coordinates(pair_array, (*KINDS, "manhattan")))
    np.testing.assert_array_equal(values, swapped)


@pytest.mark.parametrize("n_features", [1, 3, 4, 9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pairwise_coordinates_are_those_of_the_oracle_and_symmetric(rng, n_features, dtype):
    """A column behind the features is not looked at."""
    points = random_pairs(rng, 20, n_features + 1).astype(dtype)
    points[0, 0] = 0.0
    A, B, first, second, _ = as_rows(points)
    kinds = np.arange(4)
    pairwise, swapped = np.empty((20, 4)), np.empty((20, 4))
    coordinates.fill_pairwise(A, B, first, second, n_features, kinds, pairwise)
    coordinates.fill_pairwise(A, B, second, first, n_features, kinds, swapped)
    expected = oracle.coordinates(points[:, :, :n_features], ("dot", "cosine", "euclidean", "manhattan"))
    np.testing.assert_allclose(pairwise, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(pairwise, swapped)


@np.errstate(all="ignore")  # where kernels are interpreted, NumPy warns of what they expect
@pytest.mark.parametrize("n_features", [1, 3, 4, 9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("step", [1e-14, 0.1])
def test_codes_of_pairwise_coordinates_are_those_of_their_exact_values(rng, n_features, dtype, step):
    """Also where values are huge, nearly nothing or zero, and where the steps of the grid are as small as errors."""
    X = rng.normal(size=(36, n_features))
    X[30:] = np.array([0.0, 1e200, -1e200, 1e-200, 1e-320, 1e30])[:, None]
    X = np.nan_to_num(X.astype(dtype))  # 1e200 is infinite in single precision
    kinds = np.array([3, 0, 2, 1])
    trees = nearest.Trees(None, np.zeros(0), np.zeros(0), kinds, n_features)
    for query in X[[0, 7, *range(30, 36)]]:
        exact = np.array([[coordinates.pairwise_value(kind, query, row, n_features) for row in X] for kind in kinds])
        low = np.concatenate([np.zeros(2), exact[:, 5] - 100 * step])
        grid = nearest.Grid(low, np.full(6, 1.0 / step))
        codes = np.zeros((6, 40), np.uint8)
        nearest.fill_pairwise_codes(query, X, 2, 36, grid, codes=codes, trees=trees, sums=np.empty((4, 40)))
        expected = [[nearest.code_of(value, grid.low[2 + k], 1.0 / step) for value in exact[k, 2:]] for k in range(4)]
        np.testing.assert_array_equal(codes[2:, :34], expected)


@pytest.mark.parametrize("n_pairs", [8, 80])
def test_shared_products_and_norms_change_no_bit(rng, n_pairs):
    """There are norms of all rows if there are more pairs than rows, and of the rows of each pair otherwise."""
    A, B = rng.normal(size=(9, 5)), rng.normal(size=(7, 5))
    first, second = rng.integers(0, 9, n_pairs).astype(np.int32), rng.integers(0, 7, n_pairs).astype(np.int32)
    kinds = np.array([3, 1, 0, 2])
    pairwise = np.empty((n_pairs, 4))
    coordinates.fill_pairwise(A, B, first, second, 5, kinds, pairwise)
    alone = [[coordinates.pairwise_value(kind, A[i], B[j], 5) for kind in kinds] for i, j in zip(first, second, strict=True)]
    np.testing.assert_array_equal(pairwise, alone)


def test_what_overflows_stays_a_number():
    points = np.array([[1e200, 1e200], [-1e200, 1e200], [1e200, 1e200]])
    first, second = np.array([0, 0], np.int32), np.array([1, 2], np.int32)
    pairwise = np.empty((2, 4))
    coordinates.fill_pairwise(points, points, first, second, 2, np.arange(4), pairwise)
    assert np.isfinite(pairwise).all()
    values = np.empty((1, 2))
    kinds, features = np.full(1, coordinates.PRODUCT, np.uint8), np.zeros(1, np.int32)
    coordinates.fill_values(points, points, first, second, pairwise, kinds, features, values)
    np.testing.assert_array_equal(values, [[-coordinates.MAX_FLOAT, coordinates.MAX_FLOAT]])


def test_linear_values_is_a_dot_product(rng):
    pair_array = random_pairs(rng, 20, 2)
    kinds, features = np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.int32)
    weights, out = rng.normal(size=4), np.empty(20)
    coordinates.linear_values(*as_rows(pair_array), kinds, features, weights, 0.25, out)
    np.testing.assert_allclose(out, oracle.coordinates(pair_array) @ weights + 0.25, rtol=1e-12)


def test_quadratic_values_are_sums_of_products_and_symmetric(rng):
    Z, u, weights = rng.normal(size=(9, 4)), rng.normal(size=9), rng.normal(size=4)
    i, j = rng.integers(0, 9, (2, 30)).astype(np.int32)
    values, swapped = np.empty(30), np.empty(30)
    coordinates.quadratic_values(Z, Z, u, u, i, j, weights, values)
    coordinates.quadratic_values(Z, Z, u, u, j, i, weights, swapped)
    np.testing.assert_allclose(values, u[i] + u[j] + (Z[i] * Z[j]) @ weights, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(values, swapped)


# codes -----------------------------------------------------------------------------------------------


@given(seeds, st.integers(0, 255), st.sampled_from(["even", "crowded", "alike"]))
@modest
def test_byte_codes_count_the_edges_below(seed, n_edges, spread):
    """Edges evenly spread, nearly all in one step of the grid, or so near one another that steps cannot part them."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, 600, (2, n_edges)).astype(float)
    scaled = {"even": drawn, "crowded": np.exp(drawn / 40), "alike": 1.0 + drawn * 1e-310}[spread]
    edges = np.full((2, binning.MAX_EDGES + binning.ROOM), np.inf)
    edges[:, :n_edges] = np.sort(scaled)
    counts = np.array([n_edges, n_edges])
    low = edges[:, 0] if n_edges else np.zeros(2)
    high = edges[:, n_edges - 1] if n_edges else np.zeros(2)
    limits = np.finfo(float)
    before, first_halving = np.empty((2, binning.N_STEPS), np.uint8), np.empty(2, np.int64)
    with np.errstate(all="ignore"):
        scale = np.clip((binning.N_STEPS - 1) / (high - low), limits.tiny, limits.max)
        binning.lay_grid(edges, counts, low, scale, before, first_halving)
    # Coordinate max of pairs of equal points is the value itself.
    values = np.concatenate([rng.integers(-5, 605, (70, 2)), edges[:, :10].T, np.full((1, 2), 1e308), np.full((1, 2), -1e308)])
    rows = np.arange(len(values), dtype=np.int32)
    kinds, features = np.full(2, coordinates.MAX, np.uint8), np.arange(2, dtype=np.int32)
    codes = np.zeros(values.shape, np.uint8)
    with np.errstate(over="ignore"):  # of the interpreted kernel: infinity is the last step, or the first
        pairwise = np.empty((len(values), 0))
        grid = (edges, low, scale, before, first_halving)
        binning.fill_byte_codes(values, values, rows, rows, pairwise, kinds, features, *grid, codes)
    np.testing.assert_array_equal(codes, (edges[None] < values[:, :, None]).sum(axis=2))


# segments --------------------------------------------------------------------------------------------


@given(seeds, st.integers(0, 20), st.integers(0, 15))
@modest
def test_partition_keeps_each_pair_whole(seed, before, size):
    rng = np.random.default_rng(seed)
    n = before + size + 3
    first = np.arange(n, dtype=np.int32)
    second, same, codes = first + 100, first % 3 == 0, np.column_stack([first, first + 50]).astype(np.uint8)
    inside = rng.random(size) < 0.5
    wanted = set(np.flatnonzero(inside) + before)
    middle = segments.partition_segment(codes, first, second, same, before, before + size, inside)
    assert set(first[before:middle]) == wanted
    assert sorted(first) == list(range(n))
    outside_segment = np.r_[0:before, before + size : n]
    np.testing.assert_array_equal(first[outside_segment], outside_segment)
    np.testing.assert_array_equal(second, first + 100)
    np.testing.assert_array_equal(same, first % 3 == 0)
    np.testing.assert_array_equal(codes, np.column_stack([first, first + 50]))


# pairs -----------------------------------------------------------------------------------------------


def class_layout(sizes):
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = np.random.default_rng(1).permutation(starts[-1]).astype(np.int32)
    y = np.empty(starts[-1], int)
    y[order] = np.repeat(np.arange(len(sizes)), sizes)
    return starts, order, y


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6))
@modest
def test_numbers_and_ordered_pairs_are_one_to_one(sizes):
    starts, order, y = class_layout(sizes)
    sizes = np.array(sizes)
    n = len(y)
    ordered = {(i, j) for i in range(n) for j in range(n) if i != j}
    for fill, counts, wanted in (
        (pairs.fill_same_pairs, sizes * (sizes - 1), {(i, j) for i, j in ordered if y[i] == y[j]}),
        (pairs.fill_different_pairs, sizes * (n - sizes), {(i, j) for i, j in ordered if y[i] != y[j]}),
    ):
        offsets = np.concatenate([[0], np.cumsum(counts)])
        numbers = np.arange(offsets[-1])
        first, second = np.empty(len(numbers), np.int32), np.empty(len(numbers), np.int32)
        fill(numbers, offsets, starts, order, first, second)
        found = list(zip(first.tolist(), second.tolist(), strict=True))
        assert len(found) == len(wanted)
        assert set(found) == wanted


@given(st.lists(st.integers(1, 6), min_size=2, max_size=6))
@modest
def test_all_pairs_come_once(sizes):
    starts, order, y = class_layout(sizes)
    listed = oracle.all_pairs(y)
    for fill, kind in ((pairs.fill_all_same_pairs, True), (pairs.fill_all_different_pairs, False)):
        wanted = sorted((i, j) for i, j, same in listed if same == kind)
        first, second = np.empty(len(wanted), np.int32), np.empty(len(wanted), np.int32)
        fill(starts, order, first, second)
        assert sorted(tuple(sorted(pair)) for pair in zip(first.tolist(), second.tolist(), strict=True)) == wanted


# search ----------------------------------------------------------------------------------------------


def work_space(n):
    return Best(np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n), np.zeros(n, np.int64))


@pytest.mark.slow
@given(seeds, st.sampled_from(sorted(CRITERIA)), st.integers(1, 4), st.integers(2, 40))
@modest
def test_four_searches_find_the_oracle_cut(seed, criterion, min_leaf, n_pairs):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, rng.integers(2, 12), (n_pairs + 3, 5)).astype(np.uint8)
    same = both_kinds(rng, n_pairs + 3)
    rows = np.sort(rng.permutation(n_pairs + 3)[:n_pairs]).astype(np.int32)
    columns = np.array([0, 2, 3])
    n_same = int(same[rows].sum())
    # Weights of a cell of which these rows are a node.
    rule = Rule(CRITERIA[criterion], min_leaf, float((~same).sum()), float(same.sum()))
    totals = float(n_same), float(n_pairs - n_same)
    histogram = np.full((256, 3), -7, np.int64)
    search.count_codes(codes, same, rows, columns, histogram)
    counts = [[(codes[rows, c] == b)[same[rows] == kind].sum() for c in columns] for kind in (1, 0) for b in range(256)]
    np.testing.assert_array_equal(histogram, (np.array(counts[:256]) << 32) + np.array(counts[256:]))

    found, few = [], search.new_few(3, 256)
    for run in (
        lambda best: search.search_histogram(histogram, rule, *totals, 3, best),
        lambda best: search.search_compare(codes, same, rows, columns, rule, *totals, best),
        lambda best: search.search_sorted(codes, same, rows, columns, rule, *totals, best),
        lambda best: search.search_few(codes, same, rows, columns, rule, *totals, few, best),
    ):
        best = work_space(3)
        k = run(best)
        found.append((best.score[k], k if best.score[k] > 0 else -1, best.code[k] if best.score[k] > 0 else -1))
    assert found[0] == found[1] == found[2] == found[3]

    F = codes[np.ix_(rows, columns)].astype(float)
    weight = np.where(same[rows], rule.weight_same, rule.weight_different)
    decrease, c, t = oracle.best_cut(F, same[rows], weight, criterion, min_leaf)
    score, k, code = found[0]
    if score > 0:
        following = min(own for own in codes[rows, columns[k]] if own > code)
        assert few.following[k] == following
        assert (code + following - 1) // 2 == cart.middle_of_gap(codes, columns[k], code, rows)
    if c is None:
        assert score <= 1e-9 * weight.sum()
    else:
        assert score == pytest.approx(decrease, rel=1e-9)
        if criterion != "entropy":  # its logarithms leave equal cuts unequal in the last digit
            assert (k, np.array_equal(F[:, k] <= code, F[:, c] <= t)) == (c, True)


def test_histogram_of_every_column_is_that_of_chosen_columns(rng):
    codes, same = rng.integers(0, 256, (200, 4)).astype(np.uint8), rng.random(200) < 0.5
    rows = np.arange(200, dtype=np.int32)
    every, chosen = np.empty((256, 4), np.int64), np.empty((256, 4), np.int64)
    search.count_codes(codes, same, rows, np.arange(4), every)
    search.count_codes(codes, same, rows, np.array([1, 3]), chosen)
    np.testing.assert_array_equal(every[:, [1, 3]], chosen[:, :2])


# cart ------------------------------------------------------------------------------------------------


def grow(codes, same, criterion, max_depth, min_leaf, *, start=0, stop=None, uniforms=None, histograms=None, coordinates=None):
    """Run grow_cart on a segment; the region's rows and which pairs are inside."""
    stop = len(codes) if stop is None else stop
    cell = same[start:stop]
    rule = Rule(CRITERIA[criterion], min_leaf, float((~cell).sum()), float(cell.sum()))
    n_rows = 2**max_depth
    rows = cart.RegionRows(*(np.empty(n_rows, np.int32) for _ in range(4)), np.empty(n_rows), np.empty(n_rows, np.uint8))
    inside = np.empty(stop - start, bool)
    coordinates = np.arange(codes.shape[1]) if coordinates is None else coordinates
    if histograms is None:
        histograms = np.empty((max_depth, 256, codes.shape[1]), np.int64)
    uniforms = np.empty((0, 0)) if uniforms is None else uniforms
    n = cart.grow_cart(codes, same, start, stop, coordinates, rule, max_depth, uniforms, histograms, False, rows, inside)
    return cart.RegionRows(*(column[:n] for column in rows)), inside


@given(seeds, st.sampled_from(["gini", "auc"]), st.integers(1, 4), st.integers(1, 4), st.integers(4, 60))
@modest
def test_cart_is_the_oracle(seed, criterion, max_depth, min_leaf, n_pairs):
    rng = np.random.default_rng(seed)
    codes, same = rng.integers(0, 9, (n_pairs, 3)).astype(np.uint8), both_kinds(rng, n_pairs)
    region, inside = grow(codes, same, criterion, max_depth, min_leaf)
    np.testing.assert_array_equal(inside, oracle.cart_region(codes.astype(float), same, criterion, max_depth, min_leaf))
    if len(region.coordinate):
        exits = oracle.route(codes, region.coordinate, region.code, region.if_le, region.if_gt)
        np.testing.assert_array_equal(exits == 0, inside)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "auc"])
def test_large_nodes_are_the_oracle_by_histogram_and_by_sorting(rng, criterion):
    """Nodes above the size where pairs are compared: counted, subtracted and scanned, or sorted (wide codes)."""
    n_pairs = 4 * cart.MAX_COMPARED
    codes = rng.integers(0, 200, (n_pairs, 3)).astype(np.uint8)
    same = codes[:, 0] + rng.integers(0, 60, n_pairs) > codes[:, 1] + 40.0
    expected = oracle.cart_region(codes.astype(float), same, criterion, 3, 5)
    _, by_histogram = grow(codes, same, criterion, 3, 5)
    _, by_sorting = grow(codes.astype(np.uint16), same, criterion, 3, 5, histograms=np.empty((0, 0, 0), np.int64))
    assert 0.1 < expected.mean() < 0.9
    np.testing.assert_array_equal(by_histogram, expected)
    np.testing.assert_array_equal(by_sorting, expected)


def test_histograms_subtracted_agree_with_counted_and_sorted(rng):
    """A cell far above the size where pairs are compared: large nodes take over what remains of their parent's histogram."""
    n_pairs = 5 * cart.MAX_COMPARED
    codes, same = rng.integers(0, 256, (n_pairs, 3)).astype(np.uint8), both_kinds(rng, n_pairs)
    same |= codes[:, 1] > 128
    narrow, inside = grow(codes, same, "gini", 4, 2)
    wide, inside_wide = grow(codes.astype(np.uint16), same, "gini", 4, 2, histograms=np.empty((0, 0, 0), np.int64))
    assert len(narrow.coordinate) > 3
    np.testing.assert_array_equal(inside, inside_wide)
    for a, b in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(a, b)


def test_cart_of_a_segment_leaves_the_rest_alone(rng):
    codes, same = rng.integers(0, 9, (50, 3)).astype(np.uint8), both_kinds(rng, 50)
    kept = codes.copy(), same.copy()
    region, inside = grow(codes, same, "gini", 3, 1, start=10, stop=40)
    alone, inside_alone = grow(codes[10:40].copy(), same[10:40].copy(), "gini", 3, 1)
    np.testing.assert_array_equal(inside, inside_alone)
    for a, b in zip(region, alone, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(codes, kept[0])
    np.testing.assert_array_equal(same, kept[1])


def test_drawn_columns_are_different_sorted_and_uniform(rng):
    coordinates = np.array([2, 3, 5, 7, 11])
    counts = np.zeros(12)
    for _ in range(3000):
        chosen = np.empty(2, np.int64)
        cart.draw_columns(coordinates, rng.random(2), chosen)
        assert chosen[0] < chosen[1]
        counts[chosen] += 1
    assert set(np.flatnonzero(counts)) == set(coordinates)
    assert np.abs(counts[coordinates] / 1200 - 1).max() < 0.1


def test_cart_uses_only_drawn_columns(rng):
    codes, same = rng.integers(0, 9, (60, 6)).astype(np.uint8), both_kinds(rng, 60)
    uniforms = np.full((31, 1), 0.99)  # always the last of the allowed coordinates
    region, _ = grow(codes, same, "gini", 3, 1, uniforms=uniforms, coordinates=np.array([1, 4]))
    assert set(region.coordinate) == {4}


def test_cart_takes_a_histogram_that_is_there(rng):
    codes, same = rng.integers(0, 9, (200, 4)).astype(np.uint8), both_kinds(rng, 200)
    rule, columns = Rule(GINI, 1, 3.0, 2.0), np.array([0, 2, 3])
    found = []
    for counted in (False, True):
        histograms = np.full((3, 9, 4), 7, np.int64)
        if counted:
            search.count_segment(codes, same, 20, 180, columns, histograms[0])
        rows = cart.RegionRows(*(np.zeros(7, np.int32) for _ in range(4)), np.zeros(7), np.zeros(7, np.uint8))
        inside = np.empty(160, bool)
        cart.grow_cart(codes, same, 20, 180, columns, rule, 3, np.empty((0, 0)), histograms, counted, rows, inside)
        found.append((*rows, inside))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_redundant_rows_are_dropped():
    """Row 0 asks about a; row 1 leads inside either way, row 2 does not: row 1 goes and row 2 becomes row 1."""
    rows = cart.RegionRows(
        np.array([7, 8, 9], np.int32),
        np.array([1, 2, 3], np.int32),
        np.array([1, cart.INSIDE, cart.INSIDE], np.int32),
        np.array([2, cart.INSIDE, cart.OUTSIDE], np.int32),
        np.array([0.5, 0.25, 0.125]),
        np.array([0, 1, 2], np.uint8),
    )
    assert cart.drop_redundant_rows(rows, 3) == 2
    assert [column[:2].tolist() for column in rows] == [
        [7, 9],
        [1, 3],
        [cart.INSIDE, cart.INSIDE],
        [1, cart.OUTSIDE],
        [0.5, 0.125],
        [0, 2],
    ]


def test_cut_lies_in_the_middle_of_its_gap():
    codes = np.array([[1], [2], [9], [200]], np.uint8)
    rows = np.arange(4, dtype=np.int32)
    assert cart.middle_of_gap(codes, 0, 2, rows) == 5  # codes 2 to 8 all cut between 2 and 9
    assert cart.middle_of_gap(codes, 0, 1, rows) == 1


# cross -----------------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 3), st.integers(4, 40))
@modest
def test_square_is_the_oracle(seed, min_leaf, n_pairs):
    rng = np.random.default_rng(seed)
    pair_codes = rng.integers(0, 7, (n_pairs, 2, 2))
    codes = np.hstack([pair_codes.min(axis=1), pair_codes.max(axis=1)]).astype(np.uint8)
    same = both_kinds(rng, n_pairs)
    lower, upper = np.array([0, 1]), np.array([2, 3])
    weights = float((~same).sum()), float(same.sum())
    feature, code, flipped = cross.best_square(codes, same, 0, n_pairs, lower, upper, 7, *weights, min_leaf)
    expected = oracle.cross_region(codes[:, :2].astype(float), codes[:, 2:].astype(float), same, min_leaf)
    if expected is None:
        assert feature == -1
    else:
        square = (codes[:, upper[feature]] <= code) | (codes[:, lower[feature]] > code)
        np.testing.assert_array_equal(square != flipped, expected)


# route -----------------------------------------------------------------------------------------------


def random_table(rng, n_nodes, n_features):
    """A random table of tests of `COORDINATES` with three exits; both answers of a test may lead to one place."""
    coordinate = rng.integers(0, 2 * n_features + 1, n_nodes)
    later = [[rng.choice([*range(r + 1, n_nodes), -1, -2, -3]) for r in range(n_nodes)] for _ in range(2)]
    threshold = rng.integers(0, 6, n_nodes).astype(float)
    nodes = route.Nodes(
        np.where(coordinate < 2 * n_features, coordinate // n_features, coordinates.PAIRWISE).astype(np.uint8),
        (coordinate % n_features).astype(np.int32),  # 0 for pairwise coordinates
        threshold,
        *(np.array(s, np.int32) for s in later),
    )
    return nodes, (coordinate, threshold, *later)


@given(seeds)
@modest
def test_route_walks_as_the_oracle(seed):
    rng = np.random.default_rng(seed)
    pair_array = random_pairs(rng, 25, 3, n_values=5)
    nodes, table = random_table(rng, 7, 3)
    exits = np.empty(25, np.int32)
    route.route_pairs(*as_rows(pair_array), nodes, 0, exits)
    np.testing.assert_array_equal(exits, oracle.route(oracle.coordinates(pair_array, COORDINATES), *table))


@given(seeds, st.sampled_from([(1, route.TESTS_PER_WALK + 1), (1, route.TESTS_PER_WALK), (25, 7), (2, 1)]))
@modest
def test_exit_values_are_those_of_the_oracle_by_walks_and_by_sweeps(seed, sizes):
    n_pairs, n_nodes = sizes
    rng = np.random.default_rng(seed)
    pair_array = random_pairs(rng, n_pairs, 3, n_values=5)
    nodes, table = random_table(rng, n_nodes, 3)
    values, total = rng.normal(size=3), rng.normal(size=n_pairs)
    expected = total + values[oracle.route(oracle.coordinates(pair_array, COORDINATES), *table)]
    route.add_exit_values(*as_rows(pair_array), nodes, values, total)
    np.testing.assert_array_equal(total, expected)


# nearest ---------------------------------------------------------------------------------------------


def some_grid(rng, n_features):
    """A coarse grid, with a feature that has but one code."""
    low = rng.normal(size=n_features)
    scale = rng.choice([0.0, 1.0, 7.3, 90.0, 1e300], n_features)
    return nearest.Grid(low, scale)


def first_tests(rng, n_trees, n_features, n_kinds=5):
    """Random tables of tests for bounds: trees whose exits are levels, with their tables for the oracle."""
    columns, start, tables, n_slots = [], [0], [], 0
    for _ in range(n_trees):
        n = int(rng.integers(1, 9))
        coordinate = rng.integers(0, n_kinds * n_features, n)
        successors = [
            np.array([rng.choice([*range(r + 1, n), *(-1 - rng.integers(0, 256, 4))]) for r in range(n)], np.int32)
            for _ in range(2)
        ]
        threshold = rng.integers(-2, 6, n) / 2
        tables.append((coordinate, threshold, *(s.copy() for s in successors)))
        slot = np.full(n, -1, np.int32)
        n_slots = max(n_slots, nearest.assign_slots(np.array([0, n]), *successors, slot))
        kind, feature = (coordinate // n_features).astype(np.uint8), (coordinate % n_features).astype(np.int32)
        columns.append((kind, feature, threshold, *successors, slot))
        start.append(start[-1] + n)
    tests = nearest.FirstTests(*(np.concatenate(c) for c in zip(*columns, strict=True)), np.array([start]))
    return tests, tables, max(n_slots, nearest.TOP + 1)


def slots_for(n_slots):
    slots = np.zeros((n_slots, nearest.STRIDE), np.uint8)
    slots[: nearest.TOP + 1] = np.arange(nearest.TOP + 1)[:, None]
    return slots


def room(n_features, n_trees, n):
    return nearest.Rows(*(array[0] for array in nearest.allocate_rows(1, n_features, n_trees, n)))


@given(seeds)
@modest
def test_reachable_is_the_best_of_all_walks(seed):
    rng = np.random.default_rng(seed)
    nodes, _ = random_table(rng, 7, 3)
    values, best = rng.normal(size=3), np.empty(7)
    nearest.fill_reachable(nodes, values, best)

    def reached(at):
        return values[-1 - at] if at < 0 else max(reached(nodes.if_le[at]), reached(nodes.if_gt[at]))

    np.testing.assert_array_equal(best, [reached(r) for r in range(7)])


def joined_trees(made, values):
    """Random tables of six tests and three exits as one table."""

    def joined(name):
        columns = [getattr(nodes, name) for nodes, _ in made]
        if name not in ("if_le", "if_gt"):
            return np.concatenate(columns)
        return np.concatenate([np.where(c >= 0, c + 6 * t, c - 3 * t) for t, c in enumerate(columns)]).astype(np.int32)

    nodes = route.Nodes(*(joined(name) for name in route.Nodes._fields))
    root = np.arange(0, 6 * len(made), 6, dtype=np.int32)
    return nearest.Trees(nodes, root, values.ravel(), np.array([coordinates.MANHATTAN]), 3)


@pytest.mark.slow
@given(seeds)
@modest
def test_answers_are_those_of_single_steps(seed):
    rng = np.random.default_rng(seed)
    made = [random_table(rng, 6, 3) for _ in range(2)]
    trees = joined_trees(made, np.zeros((2, 3)))
    points, _, first, second, _ = as_rows(random_pairs(rng, 25, 3, n_values=5))
    n_le, n_gt = np.zeros((2, 12), np.int64)
    nearest.count_answers(points, points, first, second, trees, n_le, n_gt)
    F = oracle.coordinates(points.reshape(-1, 2, 3), COORDINATES)
    for t, (_, (coordinate, threshold, if_le, if_gt)) in enumerate(made):
        came = np.zeros((6, 25), bool)
        came[0] = True
        for r in range(6):
            le = F[:, coordinate[r]] <= threshold[r]
            assert (n_le[6 * t + r], n_gt[6 * t + r]) == ((came[r] & le).sum(), (came[r] & ~le).sum())
            for successor, goes in ((if_le[r], le), (if_gt[r], ~le)):
                if successor >= 0:
                    came[successor] |= came[r] & goes


@given(seeds)
@modest
def test_chosen_tests_are_worth_more_than_any_others(seed):
    """All sets of tests that hold what leads to their tests are tried, for a tree of seven tests and eight exits."""
    rng = np.random.default_rng(seed)
    if_le, if_gt = (np.array([s if s < 7 else 6 - s for s in range(first, 15, 2)], np.int32) for first in (1, 2))
    values, reachable = rng.normal(size=8), np.empty(7)
    nodes = route.Nodes(np.zeros(7, np.uint8), np.zeros(7, np.int32), np.zeros(7), if_le, if_gt)
    nearest.fill_reachable(nodes, values, reachable)
    n = np.zeros(15, int)
    n[0] = 60
    for r in range(7):
        n[2 * r + 1] = rng.integers(0, n[r] + 1)
        n[2 * r + 2] = n[r] - n[2 * r + 1]
    asked, price = np.empty(7, bool), rng.choice([0.5, 5.0, 1000.0])
    trees = nearest.Trees(nodes, np.zeros(1, np.int32), values, np.empty(0, int), 1)
    nearest.choose_tests(trees, reachable, n[1::2].copy(), n[2::2].copy(), price, asked)
    best = np.concatenate([reachable, values])

    def cost(tests):
        ends = [s for s in range(15) if s not in tests and (s == 0 or (s - 1) // 2 in tests)]
        return sum(n[s] * best[s] for s in ends) + price * len(tests)

    sets = [{r for r in range(7) if code >> r & 1} for code in range(128)]
    closed = [tests for tests in sets if all(r == 0 or (r - 1) // 2 in tests for r in tests)]
    assert cost(set(np.flatnonzero(asked))) == pytest.approx(min(map(cost, closed)))


@given(seeds)
@modest
def test_codes_never_fall_and_ranges_hold_what_they_say(seed):
    """A test may hold only where the codes say so, and holds wherever they say it must; also for x on the very threshold."""
    rng = np.random.default_rng(seed)
    tests, _, _ = first_tests(rng, 3, 2)
    grid, query = some_grid(rng, 2), rng.integers(-4, 5, 2) / 2
    thresholds = tests.threshold[:, None] + np.array([1.0, -1.0])
    edges = np.concatenate([(query + t * sign).ravel() for t in thresholds for sign in (1, -1)])
    quotients = (tests.threshold[:, None] / np.where(query == 0.0, 1.0, query)).ravel()
    edges = np.concatenate([edges, quotients, np.nextafter(quotients, -np.inf)])
    x = np.concatenate([rng.normal(size=30), edges, np.nextafter(edges, np.inf), [-1e300, 1e300]])
    X = np.column_stack([x, rng.permutation(x)])
    codes = np.full((2, len(X) + 1), 77, np.uint8)
    nearest.fill_codes(np.concatenate([X[:1], X]), 1, len(X) + 1, grid, codes)
    assert codes[:, :-1].max() <= nearest.LAST_CODE
    ranges = np.empty((len(tests.kind), 4), np.uint8)
    nearest.fill_ranges(query, tests, grid, ranges)
    pair_array = np.stack([np.broadcast_to(query, X.shape), X], axis=1)
    for f in range(2):
        assert (np.diff(codes[f, :-1][np.argsort(X[:, f])].astype(int)) >= 0).all()
    for r, (kind, f) in enumerate(zip(tests.kind, tests.feature, strict=True)):
        holds = oracle.coordinates(pair_array, [KINDS[kind]])[:, f] <= tests.threshold[r]
        may_first, may_more, must_first, must_more = ranges[r].astype(int)
        code = codes[f, :-1].astype(int)
        may = (may_first <= code) & (code <= may_first + may_more)
        must = (must_first <= code) & (code <= must_first + must_more)
        assert not (holds & ~may).any()
        assert not (must & ~holds).any()


@given(seeds)
@modest
def test_levels_are_bounds_and_exact_on_a_fine_grid(seed):
    rng = np.random.default_rng(seed)
    tests, tables, n_slots = first_tests(rng, 3, 2, n_kinds=4)
    X, query = rng.integers(-8, 9, (40, 2)) / 4 + 1 / 16, rng.integers(-4, 5, 2) / 4
    F = oracle.coordinates(np.stack([np.broadcast_to(query, X.shape), X], axis=1), KINDS)
    true = np.array([oracle.route(F, *table) for table in tables])
    fine = nearest.Grid(np.full(2, -4.0), np.full(2, 32.0))
    for grid in (fine, some_grid(rng, 2)):
        codes = np.zeros((2, nearest.STRIDE), np.uint8)
        nearest.fill_codes(X, 0, 40, grid, codes[:, 5:])
        ranges = np.empty((len(tests.kind), 4), np.uint8)
        nearest.fill_ranges(query, tests, grid, ranges)
        slots = slots_for(n_slots)
        found = [slots[nearest.fill_levels(codes, 5, 40, tests, 0, tree, ranges, slots)][:40].copy() for tree in range(3)]
        assert (np.array(found) >= true).all()
        if grid is fine:
            np.testing.assert_array_equal(found, true)


@given(seeds, st.integers(0, 255 * 5))
@modest
def test_rows_are_dropped_by_their_bounds(seed, need):
    rng = np.random.default_rng(seed)
    tests, _, n_slots = first_tests(rng, 5, 2)
    grid, query = some_grid(rng, 2), rng.normal(size=2)
    rows, to, work = room(2, 5, nearest.STRIDE), room(2, 5, 2 * nearest.STRIDE), np.zeros(2, np.int64)
    nearest.fill_codes(rng.normal(size=(50, 2)), 0, 50, grid, rows.codes)
    rows.levels[:], rows.bound[:], rows.row[:50] = nearest.TOP, 5 * nearest.TOP, np.arange(100, 150)
    ranges, slots = np.empty((len(tests.kind), 4), np.uint8), slots_for(n_slots)
    nearest.fill_ranges(query, tests, grid, ranges)
    levels = [slots[nearest.fill_levels(rows.codes, 0, 50, tests, 0, tree, ranges, slots)][:50].copy() for tree in range(5)]
    bound = np.sum(levels, axis=0, dtype=int)
    codes = rows.codes.copy()
    n = nearest.drop_rows(rows, 0, 50, tests, 0, ranges, np.int32(need), 0, slots, to, 7, work)
    kept = np.flatnonzero(bound >= need)
    np.testing.assert_array_equal(to.row[7 : 7 + n], 100 + kept)
    np.testing.assert_array_equal(to.bound[7 : 7 + n], bound[kept])
    np.testing.assert_array_equal(to.levels[:, 7 : 7 + n], np.array(levels)[:, kept])
    np.testing.assert_array_equal(to.codes[:, 7 : 7 + n], codes[:, kept])
    assert 0 < work[0] <= 50 * len(tests.kind)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=12, unique_by=lambda pair: pair[1]))
@modest
def test_best_are_sorted_by_score_and_then_by_row(pairs_of_score_and_row):
    scores, rows = np.full(4, -np.inf), np.full(4, -1)
    for score, row in pairs_of_score_and_row:
        nearest.insert_best(float(score), row, scores, rows)
    expected = sorted(pairs_of_score_and_row, key=lambda pair: (-pair[0], pair[1]))[:4]
    assert [(s, r) for s, r in zip(scores, rows, strict=True) if r >= 0] == expected


def test_distances_are_sums_of_differences_of_codes(rng):
    for n_features in (3, 600):
        codes, of_query = rng.integers(0, 255, (n_features, 40), np.uint8), rng.integers(0, 255, n_features, np.uint8)
        distance = np.empty(40, np.uint16)
        nearest.fill_distances(codes, of_query, distance)
        step = 1 if n_features == 3 else 3
        expected = np.abs(codes[::step].astype(int) - of_query[::step, None].astype(int)).sum(axis=0)
        np.testing.assert_array_equal(distance, expected)


@given(seeds, st.integers(1, 12), st.sampled_from([-np.inf, 0.5, np.inf]))
@modest
def test_search_finds_what_sorting_all_scores_finds(seed, k, least):
    rng = np.random.default_rng(seed)
    n_trees, n_rows = int(rng.integers(1, 5)), int(rng.integers(1, 90))
    queries, gallery = rng.integers(0, 5, (2, 3)).astype(float), rng.integers(0, 5, (n_rows + 4, 3)).astype(float)
    made = [random_table(rng, 6, 3) for _ in range(n_trees)]
    values = np.round(rng.normal(size=(n_trees, 3)), 1)
    scores = np.zeros((2, n_rows))
    for (_, table), of_exits in zip(made, values, strict=True):
        for q in range(2):
            pair_array = np.stack([np.broadcast_to(queries[q], (n_rows, 3)), gallery[4:]], axis=1)
            scores[q] += of_exits[oracle.route(oracle.coordinates(pair_array, COORDINATES), *table)]
    scores /= n_trees

    trees = joined_trees(made, values)
    step = np.ptp(values) / nearest.TOP
    levels = nearest.Levels(values.max(axis=1) - nearest.TOP * step, step, 1e-6)
    # A first step that asks one test of each tree, and a second one that asks two.
    columns = []
    for n_asked in (1, 2):
        for t, (table, _) in enumerate(made):
            best = np.empty(6)
            nearest.fill_reachable(table, values[t], best)
            highest = np.concatenate([values[t][::-1], best])  # of a successor s at 3 + s
            target = -1 - np.minimum(np.ceil((highest - levels.base[t]) / step), nearest.TOP).astype(np.int32)
            target[3 : 3 + n_asked] = np.arange(n_asked)
            successors, slot = [target[3 + s[:n_asked]] for s in (table.if_le, table.if_gt)], np.empty(n_asked, np.int32)
            nearest.assign_slots(np.array([0, n_asked]), *successors, slot)
            kind = table.kind[:n_asked]
            column = table.feature[:n_asked] + np.where(kind == coordinates.PAIRWISE, 3, 0).astype(np.int32)
            columns.append((kind, column, table.threshold[:n_asked], *successors, slot))
    start = np.array([np.arange(n_trees + 1), n_trees + 2 * np.arange(n_trees + 1)])
    asked = nearest.FirstTests(*(np.concatenate(c) for c in zip(*columns, strict=True)), start)
    found, rows, needed = np.full((2, k), -np.inf), np.full((2, k), -1), np.full(2, least)
    grid, work = nearest.Grid(np.zeros(4), np.full(4, rng.choice([0.0, 0.4, 20.0]))), np.zeros(2, np.int64)
    n_slots = nearest.TOP + 3
    nearest.search_rows(queries, gallery, 4, n_rows + 4, grid, asked, trees, levels, n_slots, needed, found, rows, work)
    for q in range(2):
        order = [row for row in np.argsort(-scores[q], kind="stable")[:k] if scores[q, row] >= least]
        np.testing.assert_array_equal(rows[q], [*(4 + np.array(order, int)), *[-1] * (k - len(order))])
        np.testing.assert_array_equal(found[q, : len(order)], scores[q, order])


# the lanes have teeth --------------------------------------------------------------------------------


@pytest.mark.slow
def test_bounds_are_checked_when_asked():
    """The third lane would prove nothing if a cached kernel without checks were used."""
    code = (
        "import numpy as np; from simtree._kernels.segments import partition_segment as f;"
        "a = np.zeros(2, np.int32); f(np.zeros((2, 0), np.uint8), a, a, a > 0, 0, 2, np.zeros(1, bool))"
    )
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_DISABLE_JIT": "0"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "IndexError" in run.stderr


# samples ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 5), (9, samples.WIDTH + 3)])
def test_features_of_samples_are_the_oracle(rng, dtype, n, m):
    X, matrix, phases = rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=(3, m)), rng.uniform(0, 6, m)
    out = np.full((n, m), np.nan)
    samples.fill_products(X, matrix, out)
    np.testing.assert_allclose(out, X.astype(float) @ matrix, rtol=1e-12, atol=1e-12)
    samples.fill_rbf(X, matrix, 0.7, out)
    np.testing.assert_allclose(out, oracle.rbf_features(X, matrix, 0.7), rtol=1e-12)
    samples.fill_fourier(X, matrix, phases, out)
    np.testing.assert_allclose(out, np.sqrt(2 / m) * np.cos(X.astype(float) @ matrix + phases), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fill", ["products", "rbf", "fourier"])
def test_features_of_a_sample_do_not_depend_on_the_others(rng, fill):
    X, matrix = rng.normal(size=(11, 6)), rng.normal(size=(6, 20))
    arguments = {"products": (), "rbf": (0.3,), "fourier": (rng.uniform(0, 6, 20),)}[fill]
    whole, part = np.empty((11, 20)), np.empty((11, 20))
    getattr(samples, f"fill_{fill}")(X, matrix, *arguments, whole)
    for cut in range(12):
        for rows in (slice(0, cut), slice(cut, 11)):
            getattr(samples, f"fill_{fill}")(X[rows], matrix, *arguments, part[rows])
        np.testing.assert_array_equal(part, whole)


# posterior -------------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 4))
@modest
def test_class_shares_are_those_of_the_leaves(seed, n_trees):
    rng = np.random.default_rng(seed)
    n_tests, n_leaves, n_classes = 6, 5, 3
    after = np.arange(n_tests)[:, None] + 1
    ways = rng.integers(after, n_tests + n_leaves, (n_tests, 2))  # successors with larger numbers; from n_tests on, leaves
    ways = np.where(ways < n_tests, ways, n_tests - 1 - ways).astype(np.int32)
    sizes = rng.integers(0, n_classes + 1, n_leaves)
    trees = posterior.ClassTrees(
        feature=rng.integers(0, 2, n_tests, dtype=np.int32),
        threshold=rng.normal(size=n_tests).astype(np.float32),
        if_le=ways[:, 0].copy(),
        if_gt=ways[:, 1].copy(),
        leaf_start=np.concatenate([[0], np.cumsum(sizes)]),
        leaf_class=np.concatenate([rng.permutation(n_classes)[:size] for size in sizes]).astype(np.int32),
        leaf_share=rng.random(sizes.sum()).astype(np.float32),
        root=rng.integers(-n_leaves, n_tests, n_trees, dtype=np.int32),
    )
    X, rows = rng.normal(size=(8, 2)).astype(np.float32), np.array([5, 1, 1])
    total = np.ones((3, n_classes))
    posterior.add_class_shares(X, rows, trees, total)
    np.testing.assert_allclose(total, 1 + oracle.class_shares(X[rows], trees, n_classes), rtol=1e-6)
