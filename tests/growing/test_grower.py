from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from simtree import CartSplitter, CrossSplitter, CutSplitter, SimilarityTree
from simtree.datasets import make_tree_law
from simtree.metrics import roc_curve, roc_l1_distance

LEAF_RANKS = {
    "cut": (CutSplitter(), lambda F, same: oracle.cart_region(F, same, "auc", 1, 1)),
    "cart": (CartSplitter(max_depth=2, min_samples_leaf=1), lambda F, same: oracle.cart_region(F, same, "gini", 2, 1)),
}


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(LEAF_RANKS)), st.sampled_from([None, 255]), st.integers(5, 60))
@settings(max_examples=30, deadline=None, database=None)
def test_grown_tree_is_the_oracle_split_for_split(seed, name, max_bins, n_pairs):
    """With exact search, or if the distinct values fit the bins, the scores of all pairs equal those of the oracle."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 7, (n_pairs, 2, 2)).astype(float)
    same = rng.random(n_pairs) < 0.5
    if same.all() or not same.any():
        return
    splitter, leaf_rank = LEAF_RANKS[name]
    tree = SimilarityTree(max_depth=4, splitter=splitter, max_bins=max_bins).fit(pairs, same)
    scores, gains = oracle.tree_rank(oracle.coordinates(pairs), same, leaf_rank, 4)
    np.testing.assert_array_equal(tree.pair_score(pairs), scores)
    made = tree.tree_.cells.gain[tree.tree_.cells.inside >= 0]
    np.testing.assert_allclose(np.sort(made), np.sort(gains), rtol=1e-12)


def test_exact_search_on_continuous_values_is_the_oracle(rng):
    pairs = rng.normal(size=(120, 2, 3))
    same = np.abs(pairs[:, 0] - pairs[:, 1]).sum(axis=1) + rng.normal(0, 0.5, 120) < 3.0
    for name, (splitter, leaf_rank) in LEAF_RANKS.items():
        tree = SimilarityTree(max_depth=5, splitter=splitter, max_bins=None).fit(pairs, same)
        scores, _ = oracle.tree_rank(oracle.coordinates(pairs), same, leaf_rank, 5)
        np.testing.assert_array_equal(tree.pair_score(pairs), scores, err_msg=name)


def test_exact_search_with_wide_codes_is_the_oracle(rng):
    """More distinct values than a byte can hold, and cells large enough to be sorted."""
    pairs = rng.normal(size=(300, 2, 2))
    same = np.abs(pairs[:, 0] - pairs[:, 1]).sum(axis=1) + rng.normal(0, 0.5, 300) < 2.0
    for name, (splitter, leaf_rank) in LEAF_RANKS.items():
        tree = SimilarityTree(max_depth=3, splitter=splitter, max_bins=None).fit(pairs, same)
        scores, _ = oracle.tree_rank(oracle.coordinates(pairs), same, leaf_rank, 3)
        np.testing.assert_array_equal(tree.pair_score(pairs), scores, err_msg=name)


def test_cross_tree_is_the_oracle(rng):
    pairs = rng.integers(0, 9, (80, 2, 2)).astype(float)
    same = (pairs[:, 0, 0] > 4) == (pairs[:, 1, 0] > 4)
    same ^= rng.random(80) < 0.2
    F = np.hstack([pairs.min(axis=1), pairs.max(axis=1)])
    tree = SimilarityTree(max_depth=3, splitter=CrossSplitter()).fit(pairs, same)
    scores, _ = oracle.tree_rank(F, same, lambda f, s: oracle.cross_region(f[:, :2], f[:, 2:], s), 3)
    np.testing.assert_array_equal(tree.pair_score(pairs), scores)


def test_hand_worked_tree():
    """Seven pairs on a line, |x - x'| = 1..7, labelled s s d s d d d (same or different).

    Root: the best cut is after 4 (3 of 3 same, 1 of 4 different: gain 3/4) and beats after 2 (2/3 - 0).
    Inside {1 2 3 4} (3 same, 1 different): the best cut is after 2, 2/3 of the same and no different pair.
    Then {3 4} (1 same, 1 different): inside is what lies above 3.
    """
    pairs = np.array([[[0.0], [d]] for d in range(1, 8)])
    same = [True, True, False, True, False, False, False]
    tree = SimilarityTree(max_depth=3, splitter="cut", coordinates=["abs_diff"]).fit(pairs, same)
    np.testing.assert_array_equal(tree.pair_score(pairs), [8, 8, 5, 6, 4, 4, 4])
    np.testing.assert_allclose(tree.roc_.fpr, [0, 0, 0, 0.25, 1])
    np.testing.assert_allclose(tree.roc_.tpr, [0, 2 / 3, 1, 1, 1])
    gains = sorted(tree.tree_.cells.gain[tree.tree_.cells.gain > 0])
    np.testing.assert_allclose(gains, [1 / 4 * 1 / 3, 1 / 4 * 2 / 3, 3 / 4])
    assert tree.auc_ == 1.0


@pytest.mark.parametrize("limit", [{"min_pairs_split": 100}, {"min_pairs_leaf": 40}, {"max_depth": 2}])
def test_stopping(given_pairs, limit):
    pairs, same = given_pairs
    cells = SimilarityTree(splitter=CutSplitter(), **{"max_depth": 8, **limit}).fit(pairs, same).tree_.cells
    n_pairs = cells.n_same + cells.n_different
    internal = cells.inside >= 0
    assert internal.sum() >= 2
    if "min_pairs_split" in limit:
        assert n_pairs[internal].min() >= 100
        assert n_pairs[~internal].min() < 100
    elif "min_pairs_leaf" in limit:
        assert n_pairs.min() >= 40
    else:
        assert cells.depth.max() == 2


@pytest.mark.parametrize("splitter", ["cut", "cross"])
def test_min_pairs_leaf_constrains_the_search_and_not_only_its_result(splitter):
    """Four same pairs at one end: the best cut is too small, so the best one that is large enough is chosen."""
    pairs = np.array([[[0.0], [float(d)]] for d in range(400)])
    same = np.zeros(400, bool)
    same[[0, 1, 2, 3, 50, 90, 120]] = True
    tree = SimilarityTree(max_depth=1, splitter=splitter, min_pairs_leaf=10).fit(pairs, same)
    cells = tree.tree_.cells
    assert len(cells.depth) == 3
    assert (cells.n_same + cells.n_different).min() >= 10


def test_pure_cells_are_not_split(given_pairs):
    cells = SimilarityTree(max_depth=12, splitter=CutSplitter()).fit(*given_pairs).tree_.cells
    pure = (cells.n_same == 0) | (cells.n_different == 0)
    assert pure.sum() > 10
    assert (cells.inside[pure] < 0).all()


@pytest.mark.parametrize("focus", [0.05, 0.3])
def test_only_cells_that_reach_into_the_focus_are_split(given_pairs, focus):
    pairs, same = given_pairs
    whole = SimilarityTree(max_depth=8, splitter=CutSplitter()).fit(pairs, same).tree_
    tree = SimilarityTree(max_depth=8, splitter=CutSplitter(), focus_fpr=focus).fit(pairs, same).tree_
    fpr, _ = tree.cell_bounds()
    split = tree.cells.inside >= 0
    assert (fpr[split] < focus).all()
    assert split.sum() < (whole.cells.inside >= 0).sum()
    # Below the focus it is the same tree: the same terminal cells with the same scores.
    left = {(d, k) for d, k, f in zip(whole.cells.depth, whole.cells.rank, whole.cell_bounds()[0], strict=True) if f < focus}
    assert left == {(d, k) for d, k, f in zip(tree.cells.depth, tree.cells.rank, fpr, strict=True) if f < focus}


def test_features_are_drawn_for_each_cell(blobs):
    """With one feature per cell, each region tests one feature only, and not always the same."""
    tree = SimilarityTree(max_depth=6, max_features=1, n_pairs=2000, random_state=0).fit(*blobs).tree_
    used = [set((tree.region(c).coordinate % 4).tolist()) for c in np.flatnonzero(tree.cells.inside >= 0)]
    assert max(map(len, used)) == 1
    assert len(set.union(*used)) == 4


@pytest.mark.slow
def test_a_planted_distribution_is_recovered():
    """D_1 decreases towards zero as the number of pairs grows."""
    distances = []
    for n_pairs in (300, 3000, 30_000):
        found = []
        for seed in range(5):
            law = make_tree_law(3, random_state=seed)
            tree = SimilarityTree(max_depth=6).fit(*law.sample(n_pairs, random_state=seed + 100))
            test, same = law.sample(30_000, random_state=seed + 200)
            found.append(roc_l1_distance(roc_curve(tree.pair_score(test), same), law.optimal_roc))
        distances.append(max(found))
    assert distances[0] > 2 * distances[1] > 4 * distances[2]
    assert distances[2] < 0.015
