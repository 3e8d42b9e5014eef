"""Kernels of boosting of classes against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from simtree._kernels import boosting, class_boosting
from simtree._kernels.boosting import N_CODES, Found
from simtree._kernels.boosting_search import HALF, LOW_HALF, Rule
from simtree._kernels.posterior import ClassTrees, add_class_shares

pytestmark = [
    pytest.mark.kernel,
    # Interpreted, NumPy warns of unsigned sums that wrap around and of quotients by almost zero.
    pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning"),
]
seeds = st.integers(0, 2**32 - 1)
modest = settings(max_examples=30, deadline=None, database=None)
N_COLUMNS, N_VALUES = 3, 9


def problem(seed, n_classes, n=60, scale=2.0):
    """Codes with their padding, targets and scores."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, boosting.padded(N_COLUMNS)), dtype=np.uint8)
    codes[:, :N_COLUMNS] = rng.integers(0, N_VALUES, (n, N_COLUMNS))
    targets = (codes[:, 0] + rng.integers(0, 3, n)) % n_classes
    return codes, targets.astype(np.int64), scale * rng.normal(size=(n_classes, n))


def table(n_trees, max_leaves):
    """Room for trees with so many leaves."""
    n_tests, n_leaves = n_trees * (max_leaves - 1), n_trees * max_leaves
    feature, if_le, if_gt = np.full((3, n_tests), -9, dtype=np.int32)
    leaf_class, root = np.full(n_leaves, -9, dtype=np.int32), np.full(n_trees, -9, dtype=np.int32)
    return ClassTrees(feature, np.empty(n_tests), if_le, if_gt, np.arange(n_leaves + 1), leaf_class, np.empty(n_leaves), root)


def work(max_leaves):
    """Histograms, and what is found in them."""
    histograms = np.full((max_leaves, boosting.padded(N_COLUMNS), N_CODES), -1, dtype=np.int64)
    return histograms, Found(np.empty((2, N_COLUMNS)), *np.zeros((2, 2, N_COLUMNS), dtype=np.int64))


@given(seeds, st.integers(2, 5), st.sampled_from([1.0, 1e3]))
@modest
def test_probabilities_and_gradients_are_those_of_the_loss(seed, n_classes, scale):
    _, targets, scores = problem(seed, n_classes, scale=scale)
    probabilities = np.empty_like(scores)
    class_boosting.fill_probabilities(scores, probabilities)
    np.testing.assert_allclose(probabilities.sum(axis=0), 1.0)
    gradients, hessians = oracle.class_gradients(scores, targets)
    packed = np.empty(len(targets), dtype=np.int64)
    for c in range(n_classes):
        unit_g, unit_h, largest = class_boosting.pack_gradients(probabilities[c], targets, c, packed)
        np.testing.assert_allclose((packed >> HALF) * unit_g, gradients[c], rtol=0, atol=unit_g)
        np.testing.assert_allclose((packed & LOW_HALF) * unit_h, hessians[c], rtol=0, atol=2 * unit_h)
        assert (packed & LOW_HALF).max() <= largest


@given(seeds, st.integers(2, 4), st.integers(1, 8), st.integers(2, 9), st.sampled_from([0.5, 3.0]))
@modest
def test_round_adds_the_trees_of_the_oracle(seed, n_classes, min_leaf, max_leaves, l2):
    codes, targets, before = problem(seed, n_classes)
    first_class = 1 if n_classes == 2 else 0
    scores, trees = before.copy(), table(n_classes - first_class, max_leaves)
    rule = (first_class, N_VALUES, l2, 0.3, min_leaf, max_leaves)
    n_tests, n_leaves = class_boosting.boost_round(codes, targets, scores, *rule, *work(max_leaves), trees)
    own, none = codes[:, :N_COLUMNS], np.zeros(N_COLUMNS, dtype=np.int64)
    limits = (min_leaf, max_leaves, max_leaves, np.inf, none, class_boosting.MIN_HESSIAN)
    expected, n_expected = np.zeros_like(before), 0
    for c, (g, h) in list(enumerate(zip(*oracle.class_gradients(before, targets), strict=True)))[first_class:]:
        leaves = oracle.boosted_tree(own, g, h, l2, *limits)
        n_expected += len(leaves)
        for leaf in leaves if len(leaves) > 1 else []:
            rows = leaf["rows"]
            expected[c, rows] = 0.3 * oracle.bounded_value(g[rows].sum(), h[rows].sum(), l2, -np.inf, np.inf)
    np.testing.assert_allclose(scores - before, expected, rtol=1e-5, atol=1e-6)
    # The table has the same trees.
    assert n_leaves == n_expected == n_tests + len(trees.root)
    total = np.zeros((len(codes), n_classes))
    add_class_shares(codes, np.arange(len(codes)), trees, total)
    np.testing.assert_allclose(total.T, scores - before, rtol=1e-9, atol=1e-12)


def test_tree_without_a_test_adds_nothing():
    """All rows are alike, or they are so few or so sure that no leaf is large enough."""
    codes, targets, scores = problem(0, 3)
    alike, sure = np.zeros_like(codes), np.where(np.arange(3)[:, None] == targets, 30.0, -30.0)
    for some, at, min_leaf in ((alike, scores, 1), (codes, scores, 31), (codes, sure, 1)):
        after, trees = at.copy(), table(3, 4)
        found = class_boosting.boost_round(some, targets, after, 0, N_VALUES, 0.0, 0.1, min_leaf, 4, *work(4), trees)
        assert found == (0, 3)
        np.testing.assert_array_equal(after, at)
        np.testing.assert_array_equal(trees.root, [-1, -2, -3])
        np.testing.assert_array_equal(trees.leaf_class[:3], [0, 1, 2])
        np.testing.assert_array_equal(trees.leaf_share[:3], 0.0)


@given(seeds, st.integers(1, 8))
@modest
def test_appended_trees_follow_each_other(seed, max_leaves):
    """Tests and leaves are numbered in the order of the cells, and values are those of the packed sums of the leaves."""
    codes, targets, scores = problem(seed, 3)
    packed, probabilities = np.empty(len(codes), dtype=np.int64), np.empty_like(scores)
    class_boosting.fill_probabilities(scores, probabilities)
    unit_g, unit_h, largest = class_boosting.pack_gradients(probabilities[2], targets, 2, packed)
    rule = Rule(unit_g, unit_h, int(largest), N_VALUES, 1.0, 2, max_leaves, max_leaves, 1e-9)
    rows, none = np.arange(len(codes), dtype=np.int32), np.zeros(N_COLUMNS, dtype=np.int64)
    arguments = (codes, packed, rows, np.empty_like(rows), np.arange(N_COLUMNS), none, rule)
    cells = class_boosting.grow_tree(*arguments, *work(max_leaves))
    trees, after = table(2, 9), scores[2].copy()
    n_tests, n_leaves, root = class_boosting.append_tree(rows, cells, rule, 0.5, 2, after, trees, 1, 2)
    size = int(cells.size[0])
    split = cells.child[:size] >= 0
    assert (n_tests, n_leaves) == (1 + split.sum(), 2 + (~split).sum())
    number = np.where(split, np.cumsum(split), -2 - np.cumsum(~split))
    assert root == number[0]
    child = cells.child[:size][split]
    np.testing.assert_array_equal(trees.if_le[1:n_tests], number[child])
    np.testing.assert_array_equal(trees.if_gt[1:n_tests], number[child + 1])
    np.testing.assert_array_equal(trees.feature[1:n_tests], cells.column[:size][split])
    np.testing.assert_array_equal(trees.threshold[1:n_tests], cells.code[:size][split])
    assert (trees.leaf_class[2:n_leaves] == 2).all()
    for cell, value in zip(np.flatnonzero(~split), trees.leaf_share[2:n_leaves], strict=True):
        own = rows[cells.start[cell] : cells.stop[cell]]
        g, h = (packed[own] >> HALF).sum() * unit_g, (packed[own] & LOW_HALF).sum() * unit_h
        np.testing.assert_allclose(value, -0.5 * g / (h + 1.0) if size > 1 else 0.0, rtol=1e-9)
        np.testing.assert_allclose(after[own] - scores[2, own], value, rtol=1e-6, atol=1e-12)
