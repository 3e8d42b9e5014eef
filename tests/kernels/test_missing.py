"""Kernels for missing values: coordinates, codes, searches and tests are those of the oracle, by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from simtree._kernels import boosting, boosting_search, cart, missing, missing_search, search
from simtree._kernels.binning import BLOCK
from simtree._kernels.route import TESTS_PER_WALK
from simtree._kernels.search import Best, Rule
from simtree.growing._boosting import MAX_STEP
from simtree.pairs._coordinates import KINDS, CoordinateSet, SamplePairs
from simtree.splitters._cart import CRITERIA
from simtree.trees._binning import ByteBins, coordinate_edges
from simtree.trees._code_walk import CodeWalk
from simtree.trees._states import goes_above

pytestmark = [
    pytest.mark.kernel,
    # Interpreted, a cut with nothing on one side divides zero by zero before it is discarded; compiled code says nothing.
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
]

seeds = st.integers(0, 2**32 - 1)
modest = settings(max_examples=40, deadline=None, database=None)
N_VALUES = 6  # codes of values are 0 to 5, those of the states 6 and 7


def holes(rng, X, share=0.3):
    """Return samples with missing values."""
    return np.where(rng.random(X.shape) < share, np.nan, X)


def work_space(n):
    return Best(np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n), np.zeros(n, np.int64))


def random_codes(rng, n_pairs, n_columns, dtype=np.uint8):
    """Return codes with states in most columns, and the same as floats for the oracle."""
    n_codes = rng.choice([N_VALUES, N_VALUES + 1, N_VALUES + 2], n_columns)
    codes = rng.integers(0, n_codes, (n_pairs, n_columns)).astype(dtype)
    if rng.random() < 0.2:
        codes[:, 0] = rng.integers(N_VALUES, N_VALUES + 2, n_pairs)  # a column without values
    states = [codes == N_VALUES, codes == N_VALUES + 1]
    return codes, np.select(states, [oracle.ONE_MISSING, oracle.BOTH_MISSING], codes.astype(float))


def both_kinds(rng, n):
    same = rng.random(n) < 0.5
    same[:2] = True, False
    return same


# coordinates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coordinates_are_the_oracle_and_symmetric(rng, dtype):
    pairs = holes(rng, rng.normal(size=(60, 2, 5))).astype(dtype)
    pairs[0], pairs[1, 0] = np.nan, np.nan  # nothing present in both
    w = rng.normal(size=(3, 5))
    w[0, 1:] = 0.0  # a direction of one feature
    pair_map = CoordinateSet(KINDS, 5, w)
    samples = pair_map.extend(pairs.reshape(-1, 5))
    first = np.arange(0, 120, 2, dtype=np.int32)
    found = pair_map.plain_values(SamplePairs(samples, samples, first, first + np.int32(1)))
    swapped = pair_map.plain_values(SamplePairs(samples, samples, first + np.int32(1), first))
    np.testing.assert_array_equal(found, swapped)
    expected = oracle.coordinates_with_missing(pairs.astype(float), KINDS, w)
    assert (expected == oracle.BOTH_MISSING).any()
    assert (expected == oracle.ONE_MISSING).any()
    np.testing.assert_allclose(found.T, expected, rtol=1e-5 if dtype is np.float32 else 1e-9, atol=1e-5)


def test_complete_pairs_among_incomplete_ones_have_the_same_coordinates(rng):
    X = rng.normal(size=(30, 4))
    X[::3, 1] = np.nan
    pair_map = CoordinateSet(KINDS, 4, rng.normal(size=(2, 4)))
    here = np.flatnonzero(~np.isnan(X[:, 1])).astype(np.int32)
    first, second = here[:-1], here[1:]
    with_holes = pair_map.extend(X)
    complete = pair_map.extend(np.nan_to_num(X))
    np.testing.assert_array_equal(
        pair_map.plain_values(SamplePairs(with_holes, with_holes, first, second)),
        pair_map.plain_values(SamplePairs(complete, complete, first, second)),
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_codes_count_the_edges_below_values_and_follow_them_for_states(rng, dtype):
    """Also for edges that crowd in one step of the grid, and for a last block that is not full."""
    X = holes(rng, np.exp(4.0 * rng.normal(size=(40, 3)))).astype(dtype)
    pair_map = CoordinateSet(KINDS, 3, rng.normal(size=(2, 3)))
    samples = pair_map.extend(X)
    first, second = rng.integers(0, 40, (2, 3 * BLOCK + 5)).astype(np.int32)
    pairs = SamplePairs(samples, samples, first, second)
    values = pair_map.plain_values(pairs)
    edges = coordinate_edges(pair_map, pairs, 20)
    codes = np.empty((len(first), len(pair_map)), np.uint8)
    bins = ByteBins(pair_map, edges)
    bins.fill(pairs, codes, 1)
    expected = [np.searchsorted(own, of_column) for own, of_column in zip(edges, values, strict=True)]
    states = [values == oracle.ONE_MISSING, values == oracle.BOTH_MISSING]
    np.testing.assert_array_equal(codes.T, np.select(states, [bins.n_bins, bins.n_bins + 1], expected))
    assert [state.any() for state in states] == [True, True]


# search ----------------------------------------------------------------------------------------------


@given(seeds, st.sampled_from(sorted(CRITERIA)), st.integers(1, 4), st.integers(2, 40))
@modest
def test_all_searches_find_the_best_split_of_all(seed, criterion, min_leaf, n_pairs):
    rng = np.random.default_rng(seed)
    codes, F = random_codes(rng, n_pairs + 3, 5)
    same = both_kinds(rng, n_pairs + 3)
    rows = np.sort(rng.permutation(n_pairs + 3)[:n_pairs]).astype(np.int32)
    columns = np.array([0, 2, 3])
    n_same = int(same[rows].sum())
    rule = Rule(CRITERIA[criterion], min_leaf, float((~same).sum()), float(same.sum()), N_VALUES)
    totals = float(n_same), float(n_pairs - n_same)
    histogram = np.full((N_VALUES + 2, 3), -7, np.int64)
    search.count_codes(codes, same, rows, columns, histogram)
    few = search.new_few(3, N_VALUES + 2)
    found = []
    for run in (
        lambda best: missing_search.search_state_histogram(histogram, rule, *totals, 3, best),
        lambda best: missing_search.search_state_few(codes, same, rows, columns, rule, *totals, few, best),
        lambda best: missing_search.search_state_compare(codes, same, rows, columns, rule, *totals, best),
        lambda best: missing_search.search_state_sorted(codes, same, rows, columns, rule, *totals, best),
    ):
        best = work_space(3)
        k = run(best)
        found.append((best.score[k], *((k, best.code[k], best.states[k]) if best.score[k] > 0 else ())))
    weight = np.where(same[rows], rule.weight_same, rule.weight_different)
    decrease, left = oracle.best_split_with_states(F[np.ix_(rows, columns)], same[rows], weight, criterion, min_leaf)
    if criterion == "entropy":  # its logarithms leave equal cuts unequal in the last digit
        expected = 0.0 if left is None else decrease
        assert [max(score, 0.0) for score, *_ in found] == pytest.approx([expected] * 4, abs=1e-6)
        return
    assert found[0] == found[1] == found[2] == found[3]
    if left is None:
        assert found[0][0] <= 1e-9 * weight.sum()
        return
    score, k, code, states = found[0]
    assert score == pytest.approx(decrease, rel=1e-9)
    spare, order = np.empty(n_pairs, np.int32), rows.copy()
    n_left = missing.split_state_rows(codes, columns[k], code, states, N_VALUES, order, spare)
    goes_left = np.isin(rows, order[:n_left])
    assert oracle.impurity_decrease(criterion, weight, same[rows], goes_left) == pytest.approx(decrease, rel=1e-9)


def chi_squared(same, left):
    """Return the statistic of the table of kinds by sides."""
    observed = np.array([[np.sum(same & left), np.sum(same & ~left)], [np.sum(~same & left), np.sum(~same & ~left)]])
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / observed.sum()
    return np.sum((observed - expected) ** 2 / expected)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_price_is_the_decrease_at_which_chi_squared_is_as_asked_for(rng, criterion):
    same, left = rng.random(4000) < 0.3, rng.random(4000) < 0.5
    left |= same & (rng.random(4000) < 0.1)
    rule = Rule(CRITERIA[criterion], 1, 2.0, 1.0, N_VALUES, chi_squared(same, left))
    decrease = oracle.impurity_decrease(criterion, np.where(same, 2.0, 1.0), same, left)
    assert missing_search.price_of(rule, same.sum(), (~same).sum()) == pytest.approx(decrease, rel=0.05)


@given(seeds, st.sampled_from(sorted(CRITERIA)), st.integers(4, 40))
@modest
def test_columns_with_missing_values_pay_for_their_sides(seed, criterion, n_pairs):
    rng = np.random.default_rng(seed)
    codes, _ = random_codes(rng, n_pairs, 3)
    same, rows = both_kinds(rng, n_pairs), np.arange(n_pairs, dtype=np.int32)
    totals = float(same.sum()), float((~same).sum())
    rule = Rule(CRITERIA[criterion], 1, totals[1], totals[0], N_VALUES, 0.5)
    histogram = np.empty((N_VALUES + 2, 3), np.int64)
    search.count_codes(codes, same, rows, np.arange(3), histogram)
    arguments, few = (codes, same, rows, np.arange(3)), search.new_few(3, N_VALUES + 2)
    free, paid = work_space(3), [work_space(3) for _ in range(4)]
    missing_search.search_state_compare(*arguments, rule._replace(price=0.0), *totals, free)
    found = [
        missing_search.search_state_histogram(histogram, rule, *totals, 3, paid[0]),
        missing_search.search_state_few(*arguments, rule, *totals, few, paid[1]),
        missing_search.search_state_compare(*arguments, rule, *totals, paid[2]),
        missing_search.search_state_sorted(*arguments, rule, *totals, paid[3]),
    ]
    price = missing_search.price_of(rule, *totals)
    assert (price > 0.0) == (criterion != "auc")
    expected = free.score - np.where((codes >= N_VALUES).any(axis=0), price, 0.0)
    for k, best in zip(found, paid, strict=True):
        np.testing.assert_allclose(best.score, expected, atol=1e-9)
        assert best.score[k] == best.score.max()


@given(seeds, st.integers(1, 30))
@modest
def test_the_first_of_the_largest_scores_is_found(seed, n):
    scores = np.random.default_rng(seed).choice([-1.0, 0.0, 1e-300, 0.5, 0.5000000000000001, 7.0], n)
    scores[n // 2] = max(scores[n // 2], 0.0)
    behind = np.append(scores, 9.0)  # what is not to be read
    assert search.first_largest(behind, n) == np.argmax(scores)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@given(seeds, st.integers(1, 40))
@modest
def test_rows_are_split_by_their_codes_and_states(dtype, seed, n_pairs):
    rng = np.random.default_rng(seed)
    codes, F = random_codes(rng, n_pairs + 3, 2, dtype)
    rows = rng.permutation(n_pairs + 3)[:n_pairs].astype(np.int32)
    cut, states = rng.integers(0, N_VALUES), rng.integers(0, missing.N_SIDES)
    above = np.array([goes_above(value, cut, states | missing.ONE_SEEN | missing.BOTH_SEEN) for value in F[rows, 1]], bool)
    order = rows.copy()
    n_left = missing.split_state_rows(codes, 1, cut, states, N_VALUES, order, np.empty_like(rows))
    np.testing.assert_array_equal(order, np.concatenate([rows[~above], rows[above]]))
    assert n_left == (~above).sum()


# routes ----------------------------------------------------------------------------------------------


@given(seeds, st.sampled_from([(1, TESTS_PER_WALK + 1), (1, TESTS_PER_WALK), (40, 9), (2, 1)]))
@modest
def test_exit_values_by_walks_and_by_sweeps(seed, sizes):
    """Tests of all kinds of coordinates, whose successors may be one place, and states that may not have occurred."""
    n_pairs, n_nodes = sizes
    rng = np.random.default_rng(seed)
    pair_map = CoordinateSet(("abs_diff", "sum", "cosine", "oblique"), 3, rng.normal(size=(2, 3)))
    samples = pair_map.extend(holes(rng, rng.integers(0, 4, (12, 3)).astype(float)))
    first, second = rng.integers(0, 12, (2, n_pairs)).astype(np.int32)
    pairs = SamplePairs(samples, samples, first, second, lacks_values=True)
    values = pair_map.plain_values(pairs)
    coordinate = rng.integers(0, len(pair_map), n_nodes)
    later = np.array([[rng.choice([*range(r + 1, n_nodes), -1, -2, -3]) for r in range(n_nodes)] for _ in range(3)], np.int32)
    threshold, states = rng.integers(0, 5, n_nodes).astype(float), rng.integers(0, 16, n_nodes).astype(np.uint8)
    of_tests = (pair_map.kind_codes[coordinate], pair_map.columns[coordinate], threshold, later[0], later[1], states, later[2])
    of_exits, total = rng.normal(size=3), rng.normal(size=n_pairs)
    expected = total.copy()
    for p in range(n_pairs):
        at = 0
        while at >= 0:
            value = values[coordinate[at], p]
            state = {oracle.ONE_MISSING: 1, oracle.BOTH_MISSING: 2}.get(value, 0)
            if state and not states[at] & (state << 2):
                at = later[2, at]
            else:
                at = later[int(states[at] & state != 0 if state else value > threshold[at]), at]
        expected[p] += of_exits[-1 - at]
    nodes = missing.StateNodes(*of_tests, pair_map.kernel_directions)
    missing.add_state_values(*pair_map.complete(pairs), nodes, of_exits, total)
    np.testing.assert_array_equal(total, expected)


# cart ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_pairs", [50, 3 * cart.MAX_COMPARED_STATES])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n_drawn", [0, 3])
def test_cart_routes_its_pairs_where_it_put_them(rng, n_pairs, wide, n_drawn):
    """Routing by codes and states gives the inside that the tree was grown with, also for large nodes and wide codes."""
    codes, F = random_codes(rng, n_pairs, 4)
    same = both_kinds(rng, n_pairs) | (F[:, 1] == oracle.BOTH_MISSING) | (F[:, 2] > 3)
    n_rows, max_depth = 16, 4
    rule = Rule(CRITERIA["gini"], 2, float((~same).sum()), float(same.sum()), N_VALUES)
    rows = cart.RegionRows(*(np.empty(n_rows, np.int32) for _ in range(4)), np.empty(n_rows), np.empty(n_rows, np.uint8))
    inside = np.empty(n_pairs, bool)
    histograms = np.empty((0, 0, 0) if wide else (max_depth, N_VALUES + 2, 4), np.int64)
    used = codes.astype(np.uint16) if wide else codes
    arguments = (
        np.arange(4),
        rule,
        max_depth,
        rng.random((n_rows if n_drawn else 0, n_drawn)),
        histograms,
        False,
        rows,
        inside,
    )
    n = cart.grow_cart(used, same, 0, n_pairs, *arguments)
    assert n > 2
    for p in range(n_pairs):
        at = 0
        while at >= 0:
            value = F[p, rows.coordinate[at]]
            above = goes_above(value, rows.code[at], rows.states[at])
            at = rows.if_gt[at] if above else rows.if_le[at]
        assert (at == cart.INSIDE) == inside[p]


def test_first_split_of_cart_is_the_best_of_all(rng):
    codes, F = random_codes(rng, 300, 4)
    same = both_kinds(rng, 300) | (F[:, 3] == oracle.ONE_MISSING)
    rule = Rule(CRITERIA["gini"], 1, float((~same).sum()), float(same.sum()), N_VALUES)
    rows = cart.RegionRows(*(np.empty(1, np.int32) for _ in range(4)), np.empty(1), np.empty(1, np.uint8))
    histograms = np.empty((1, N_VALUES + 2, 4), np.int64)
    cart.grow_cart(codes, same, 0, 300, np.arange(4), rule, 1, np.empty((0, 0)), histograms, False, rows, np.empty(300, bool))
    weight = np.where(same, rule.weight_same, rule.weight_different)
    decrease, _ = oracle.best_split_with_states(F, same, weight, "gini", 1)
    assert rows.decrease[0] == pytest.approx(decrease, rel=1e-9)


@given(seeds, st.integers(1, 12))
@modest
def test_counts_settle_a_test_as_rows_do(seed, n_pairs):
    rng = np.random.default_rng(seed)
    codes, _ = random_codes(rng, n_pairs, 1)
    counts = np.bincount(codes[:, 0], minlength=N_VALUES + 2)
    cut, states, rows = rng.integers(0, N_VALUES), rng.integers(0, missing.N_SIDES), np.arange(n_pairs, dtype=np.int32)
    expected = missing.settle_states(codes, 0, cut, states, N_VALUES, rows)
    assert missing.settle_counted_states(counts, cut, states, N_VALUES) == expected


def test_cut_after_the_last_value_separates_states_only():
    codes = np.array([[1], [2], [5], [N_VALUES], [N_VALUES + 1]], np.uint8)
    rows = np.arange(5, dtype=np.int32)
    seen = missing.ONE_SEEN | missing.BOTH_SEEN
    assert missing.settle_states(codes, 0, 5, missing.ONE_ABOVE, N_VALUES, rows) == (N_VALUES - 1, missing.ONE_ABOVE | seen)
    assert missing.settle_states(codes, 0, 2, 0, N_VALUES, rows[:3]) == (3, 0)


# boosting --------------------------------------------------------------------------------------------


def boosted(codes, packed, units, min_leaf, max_leaves, directions):
    """Grow a boosted tree on codes with states; its rows by leaf and its cells."""
    n, n_columns = codes.shape
    padded_codes = np.pad(codes, ((0, 0), (0, boosting.padded(n_columns) - n_columns)))
    max_hessian = int((packed & boosting.LOW_HALF).max())
    rule = boosting_search.Rule(*units, max_hessian, N_VALUES + 2, 1.0, min_leaf, max_leaves, 10, 1e-9, N_VALUES)
    rows, columns = np.arange(n, dtype=np.int32), np.arange(n_columns)
    cells = boosting.new_cells(max_leaves, n, int(packed.sum()), MAX_STEP)
    histograms = np.empty((max_leaves, boosting.padded(n_columns), boosting.N_CODES), dtype=np.int64)
    found = boosting.Found(np.empty((2, n_columns)), *np.zeros((2, 2, n_columns), dtype=np.int64))
    boosting.expand_columns(padded_codes, packed, rows, columns, 0, n_columns, directions, rule, histograms, cells, 0, found)
    boosting.settle_children(padded_codes, rows, columns, directions, rule, histograms, cells, 0, found)
    spare = np.empty_like(rows)
    boosting.grow(padded_codes, packed, rows, spare, columns, directions, rule, histograms, cells, found, 1 << 60)
    return padded_codes, rows, cells


@pytest.mark.slow
@given(seeds, st.integers(1, 6), st.booleans())
@modest
def test_boosted_trees_make_the_best_split_of_all_and_score_as_they_were_grown(seed, min_leaf, monotone):
    rng = np.random.default_rng(seed)
    codes, F = random_codes(rng, 60, 4)
    same = rng.random(60) < 0.2 + 0.6 * (F[:, 1] == oracle.ONE_MISSING)
    g, h = oracle.gradients(rng.normal(size=60), same, rng.uniform(0.2, 20, 60))
    units = np.abs(g).sum() / boosting_search.MAX_SUM, np.abs(h).sum() / boosting_search.MAX_SUM
    packed = np.empty(60, dtype=np.int64)
    boosting.fill_packed(g, h, *units, packed)
    g, h = (packed >> boosting.HALF) * units[0], (packed & boosting.LOW_HALF) * units[1]
    directions = np.array([0, -1, 0, 1]) if monotone else np.zeros(4, dtype=np.int64)
    padded_codes, rows, cells = boosted(codes, packed, units, min_leaf, 6, directions)

    def decrease(chosen):
        v = oracle.bounded_value(g[chosen].sum(), h[chosen].sum(), 1.0, -MAX_STEP, MAX_STEP)
        return -v * (g[chosen].sum() + (h[chosen].sum() + 1.0) * v / 2), v

    best = 0.0
    for c in range(4):
        one, both = F[:, c] == oracle.ONE_MISSING, F[:, c] == oracle.BOTH_MISSING
        of_column = (-1.0, 0.0)
        for left in oracle.splits_with_states(F[:, c]):
            (of_left, v_left), (of_right, v_right) = decrease(left), decrease(~left)
            values_on_both_sides = np.isfinite(F[left, c]).any() and np.isfinite(F[~left, c]).any()
            allowed = directions[c] * (v_right - v_left) >= 0 or not values_on_both_sides
            if allowed and min(left.sum(), (~left).sum()) >= min_leaf:
                gain = of_left + of_right - decrease(left | ~left)[0]
                are_apart = one.any() and both.any() and left[one].all() != left[both].all()
                of_column = max(of_column, (gain - (boosting_search.APART if are_apart else 0.0), gain))
        best = max(best, of_column[1])
    assert cells.gain[0] == pytest.approx(best, rel=1e-6, abs=1e-7)

    n_cells = int(cells.size[0])
    values, expected, total = rng.normal(size=n_cells), np.zeros(60), np.zeros(60)
    boosting.add_cell_values(rows, cells, values, expected)
    tests = (cells.child[:n_cells], cells.column[:n_cells], cells.code[:n_cells], cells.states[:n_cells])
    walk = CodeWalk.of_cells(*tests, values)
    walk.add(padded_codes, N_VALUES, total)
    np.testing.assert_array_equal(total, expected)
