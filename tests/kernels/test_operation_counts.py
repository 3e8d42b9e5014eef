"""How much work growing and scoring do, counted instead of timed: the same on every machine.

The outer kernels run interpreted, so that the inner ones they call can be replaced by ones that count. A law is an exact count
or a bound that follows from how the kernels work (see docs/decisions/004-searching-a-split.md). A ceiling is what was counted
when it was written and a few percent more: work that grows beyond it must be paid for on purpose.
"""

from __future__ import annotations

import inspect
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from simtree import CartSplitter, CutSplitter, SimilarityForest, SimilarityTree
from simtree._kernels import cart, coordinates, route
from simtree.pairs._sampling import PairSampler
from simtree.trees import _binning as binning
from simtree.trees import _rank_tree as tree

pytestmark = pytest.mark.slow

N_FEATURES = 8
N_COORDINATES = 2 * N_FEATURES
DEPTH = 6
CART_DEPTH = 5


def interpreted(function):
    """The Python source of a kernel (the kernel itself where nothing is compiled)."""
    return getattr(function, "py_func", function)


def counted(monkeypatch, module, name, count):
    """Replace a function of a module by itself and a call of ``count`` with its arguments by name."""
    original = getattr(module, name)
    signature = inspect.signature(interpreted(original))

    def counting(*arguments):
        count(signature.bind(*arguments).arguments)
        return original(*arguments)

    monkeypatch.setattr(module, name, counting)


@pytest.fixture
def work(monkeypatch):
    """Operations of growing since the test began, by kind."""
    counts = Counter()

    def add(name, amount):
        counts[name] += int(amount)

    def compared(call):
        add("comparisons", len(call["rows"]) ** 2 * len(call["columns"]))
        add("largest compared", max(0, len(call["rows"]) - counts["largest compared"]))

    def few(call):
        add("updates", len(call["rows"]) * len(call["columns"]))
        add("bins", call["few"].counts.size)

    monkeypatch.setattr(cart, "grow_cart", interpreted(cart.grow_cart))
    counted(monkeypatch, cart, "count_codes", lambda call: add("updates", len(call["rows"]) * len(call["columns"])))
    counted(monkeypatch, cart, "search_histogram", lambda call: add("bins", len(call["histogram"]) * call["n_columns"]))
    counted(monkeypatch, cart, "search_few", few)
    counted(monkeypatch, cart, "search_compare", compared)
    counted(monkeypatch, coordinates, "fill_values", lambda call: add("values", call["values"].size))
    counted(monkeypatch, binning.kernels, "fill_byte_codes", lambda call: add("codes", call["codes"].size))
    return counts


@pytest.fixture(scope="module")
def points():
    X, y = make_blobs(500, N_FEATURES, centers=12, cluster_std=6.0, random_state=0)
    return np.round(X, 2), y


def grow(points, n_pairs, splitter, max_depth=DEPTH):
    """A tree on pairs whose number is known exactly."""
    X, y = points
    pairs = PairSampler(y).sample(n_pairs, np.random.default_rng(0))
    model = SimilarityTree(max_depth=max_depth, splitter=splitter, random_state=0)
    return model.fit(X, pairs.same, pairs=np.column_stack([pairs.first, pairs.second])).tree_


# Growing ---------------------------------------------------------------------------------------------


def test_binning_computes_each_coordinate_of_each_pair_once_and_of_a_sample_once_more(points, work, monkeypatch):
    monkeypatch.setattr(binning, "QUANTILE_SAMPLE", 600)
    grow(points, 1_000, CutSplitter(), max_depth=1)
    assert work["codes"] == 1_000 * N_COORDINATES
    assert work["values"] == 600 * N_COORDINATES


def test_a_cut_counts_each_code_once_and_scans_the_bins_once(points, work):
    grow(points, 1_000, CutSplitter(), max_depth=1)
    assert work["updates"] == 1_000 * N_COORDINATES
    assert work["bins"] <= 256 * N_COORDINATES
    assert work["comparisons"] == 0


def test_only_the_smaller_child_is_counted(points, work):
    """So a classification tree of depth d counts each pair at most 1 + (d - 1) / 2 times, and not d times."""
    n_pairs = 4_000
    grow(points, n_pairs, CartSplitter(max_depth=CART_DEPTH), max_depth=1)
    assert n_pairs * N_COORDINATES < work["updates"] <= (1 + (CART_DEPTH - 1) / 2) * n_pairs * N_COORDINATES


def test_children_of_the_last_level_are_not_counted(points, work):
    n_pairs = 4_000
    grow(points, n_pairs, CartSplitter(max_depth=1), max_depth=1)
    assert work["updates"] == n_pairs * N_COORDINATES


def test_only_small_nodes_are_compared_pair_by_pair(points, work):
    grow(points, 2_000, CartSplitter(max_depth=CART_DEPTH))
    assert 0 < work["largest compared"] <= cart.MAX_COMPARED
    assert work["comparisons"] <= cart.MAX_COMPARED * 2_000 * N_COORDINATES * CART_DEPTH * DEPTH


def test_only_large_nodes_scan_bins(points, work):
    """A level of a classification tree has at most n / MAX_COMPARED nodes whose bins are scanned."""
    n_pairs = 2_000
    grow(points, n_pairs, CartSplitter(max_depth=CART_DEPTH))
    assert work["bins"] <= 256 * N_COORDINATES * (n_pairs / cart.MAX_COMPARED) * CART_DEPTH * DEPTH


def test_only_the_coordinates_that_are_asked_are_counted(points, work):
    n_pairs, asked = 2_000, 3
    grow(points, n_pairs, CartSplitter(max_depth=CART_DEPTH, max_features=asked))
    assert 0 < work["updates"] <= n_pairs * asked * CART_DEPTH * DEPTH
    assert work["comparisons"] <= cart.MAX_COMPARED * n_pairs * asked * CART_DEPTH * DEPTH


# Counted for 4,000 pairs, by pair and coordinate (of 16, or of the 3 that are asked at a test): ceilings.
CEILINGS = {
    None: {"updates": 8.5, "bins": 16.0, "comparisons": 74.0},
    3: {"updates": 24.4, "bins": 27.8, "comparisons": 7.5},
}


@pytest.mark.parametrize("asked", CEILINGS)
def test_growing_a_tree_stays_below_its_ceilings(points, work, asked):
    n_pairs = 4_000
    grow(points, n_pairs, CartSplitter(max_depth=CART_DEPTH, max_features=asked))
    width = N_COORDINATES if asked is None else asked
    for kind, ceiling in CEILINGS[asked].items():
        assert work[kind] / (n_pairs * width) <= ceiling, kind


def test_work_of_growing_is_at_most_in_proportion_to_the_pairs(points, work):
    splitter = CartSplitter(max_depth=CART_DEPTH)
    found = []
    for n_pairs in (1_500, 6_000):
        before = work.copy()
        grow(points, n_pairs, splitter)
        found.append({kind: (work - before)[kind] for kind in ("values", "updates", "bins", "comparisons")})
    few, many = found
    assert many["values"] == 4 * few["values"]
    assert sum(many.values()) <= 4 * sum(few.values())


# Scoring ---------------------------------------------------------------------------------------------


@pytest.fixture
def answered(monkeypatch):
    """How many tests of trees were answered since the test began; all kernels of routing run interpreted."""
    counts = Counter()
    value = interpreted(route.pair_value)

    def counting(*arguments):
        counts["tests"] += 1
        return value(*arguments)

    monkeypatch.setattr(route, "pair_value", counting)
    for name in ("walk", "_sweep"):
        monkeypatch.setattr(route, name, interpreted(getattr(route, name)))
    for name in ("add_exit_values", "route_pairs"):
        monkeypatch.setattr(tree, name, interpreted(getattr(tree, name)))
    return counts


@pytest.fixture(scope="module")
def forest(points):
    return SimilarityForest(n_estimators=3, max_depth=8, n_pairs=3_000, random_state=0).fit(*points)


@pytest.fixture(scope="module")
def rows(points):
    drawn = PairSampler(points[1]).sample(200, np.random.default_rng(5))
    return np.column_stack([drawn.first, drawn.second])


def path_lengths(grown, X, rows):
    """Tests that each pair meets on its way, by following it through the table."""
    a, b = X[rows[:, 0]], X[rows[:, 1]]
    values = np.hstack([np.abs(a - b), a + b])
    lengths = []
    for row in values:
        at, length = 0, 0
        while at >= 0:
            length += 1
            below = row[grown.coordinate[at]] <= grown.nodes.threshold[at]
            at = (grown.nodes.if_le if below else grown.nodes.if_gt)[at]
        lengths.append(length)
    return np.array(lengths)


def test_scoring_answers_the_tests_that_a_pair_meets_and_no_other(points, forest, rows, answered):
    forest.pair_score(rows, points[0])
    assert answered["tests"] == sum(path_lengths(grown, points[0], rows).sum() for grown in forest.trees_)


def test_one_pair_does_not_pay_for_the_whole_table(points, forest, rows, answered, monkeypatch):
    """A sweep looks at each row of the table, so a single pair walks."""
    monkeypatch.setattr(route, "_sweep", None)
    assert all(len(grown.nodes.kind) > 2 * route.TESTS_PER_WALK for grown in forest.trees_)
    forest.pair_score(rows[:1], points[0])
    assert answered["tests"] == sum(path_lengths(grown, points[0], rows[:1])[0] for grown in forest.trees_)


def test_no_test_is_idle(forest):
    for grown in forest.trees_:
        assert (grown.nodes.if_le != grown.nodes.if_gt).all()


# Tests a pair and tree, on average and at most: ceilings.
MEAN_PATH, LONGEST_PATH = 24.4, 38


def test_paths_stay_short(points, forest, rows):
    lengths = np.array([path_lengths(grown, points[0], rows) for grown in forest.trees_])
    assert lengths.max() <= min(LONGEST_PATH, 8 * CART_DEPTH)
    assert lengths.mean() <= MEAN_PATH
