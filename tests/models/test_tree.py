"""Tests of SimilarityTree beyond the common contract."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import EXPECTED_FAILURES, AgainstOrigin

from simtree import CartSplitter, ClassifierSplitter, SimilarityForest, SimilarityTree
from simtree.pairs._sampling import PairSampler
from simtree.trees import _binning as binning


class TreeAgainstOrigin(AgainstOrigin, SimilarityTree):
    """A tree that takes points."""


@parametrize_with_checks([SimilarityTree(n_pairs=500, max_depth=3)], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_checks([TreeAgainstOrigin(n_pairs=500, max_depth=3)])
def test_scikit_learn_checks_without_exception(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"max_depth": 0}, ValueError, "max_depth=0 is out of range; give an int from 1 to 52"),
        ({"max_depth": 53}, ValueError, "max_depth=53"),
        ({"max_depth": 2.0}, TypeError, "max_depth=2.0 is not an integer"),
        ({"max_depth": "log"}, ValueError, "max_depth='log' is unknown; give an int from 1 to 52 or 'sqrt_log'"),
        ({"max_depth": True}, TypeError, "max_depth=True"),
        ({"splitter": "oak"}, ValueError, "splitter='oak' is unknown; choose one of 'cart', 'cross', 'cut', 'gaussian'"),
        ({"splitter": CartSplitter}, TypeError, "is not a Splitter"),
        ({"coordinates": "sum"}, TypeError, "coordinates='sum' is not a list of strings"),
        ({"coordinates": 5}, TypeError, "coordinates=5 is not a list of strings"),
        ({"coordinates": [["sum"]]}, TypeError, "is not a list of strings"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0 is not a number of parallel jobs; give a positive int"),
        ({"n_jobs": "x"}, ValueError, "n_jobs='x'"),
        ({"coordinates": ["sums"]}, ValueError, r"coordinates=\['sums'\]"),
        ({"coordinates": []}, ValueError, r"coordinates=\[\]"),
        ({"n_pairs": 1}, ValueError, "n_pairs=1 is out of range; give an int of at least 2"),
        ({"n_pairs": 1e5}, TypeError, "n_pairs=100000.0 is not an integer"),
        ({"positive_fraction": 0.0}, ValueError, "positive_fraction=0.0"),
        ({"positive_fraction": 1.5}, ValueError, "positive_fraction=1.5 is out of range"),
        ({"positive_fraction": "half"}, TypeError, "positive_fraction='half' is not a number"),
        ({"same_weighting": "people"}, ValueError, "same_weighting='people' is unknown"),
        ({"min_pairs_split": 1}, ValueError, "min_pairs_split=1"),
        ({"min_pairs_leaf": 0}, ValueError, "min_pairs_leaf=0"),
        ({"focus_fpr": 0.0}, ValueError, "focus_fpr=0.0"),
        ({"max_features": 0}, ValueError, "max_features=0"),
        ({"max_features": 1.5}, ValueError, "max_features=1.5"),
        ({"max_bins": 257}, ValueError, "max_bins=257 is out of range; give an int from 2 to 256"),
        ({"max_bins": 1}, ValueError, "max_bins=1"),
        ({"random_state": "lucky"}, ValueError, "lucky"),
    ],
)
def test_bad_parameters(blobs, parameters, error, message):
    with pytest.raises(error, match=message):
        SimilarityTree(**parameters).fit(*blobs)


def test_parameters_of_a_splitter_given_by_name_can_be_searched(blobs):
    search = GridSearchCV(SimilarityTree(n_pairs=500, random_state=0), {"splitter__max_depth": [1, 4]}, cv=3).fit(*blobs)
    assert search.best_estimator_.splitter.max_depth == search.best_params_["splitter__max_depth"]
    with pytest.raises(ValueError, match="splitter='oak' is unknown"):
        SimilarityTree(splitter="oak").set_params(splitter__max_depth=3)


def test_depth_of_the_theorem(blobs, given_pairs):
    """round(sqrt(log n)), n points for labels and n pairs for pairs, at least 1."""
    X, y = blobs
    tree = SimilarityTree(max_depth="sqrt_log").fit(X, y)
    assert tree.max_depth_ == round(math.sqrt(math.log(110))) == 2
    assert tree.tree_.cells.depth.max() <= 2
    assert SimilarityTree(max_depth="sqrt_log").fit(*given_pairs).max_depth_ == round(math.sqrt(math.log(600))) == 3
    two = np.array([[[0.0], [1.0]], [[0.0], [2.0]]])
    assert SimilarityTree(max_depth="sqrt_log").fit(two, [1, 0]).max_depth_ == 1


def test_deepest_scores_do_not_collide():
    """A chain of 52 splits: all 53 terminal cells have scores of their own."""
    n = 53
    pairs = np.array([[[0.0], [float(d)]] for d in range(2 * n)])
    same = np.arange(2 * n) % 2 == 0
    tree = SimilarityTree(max_depth=52, splitter="cut", coordinates=["abs_diff"]).fit(pairs, same)
    scores = tree.tree_.scores[tree.tree_.leaves]
    assert (np.diff(scores) < 0).all()
    assert tree.auc_ == pytest.approx(tree.score(pairs, same))


def test_natural_mix_without_same_pairs_is_rejected():
    """One same pair in 4,950: a handful of pairs in the natural mix holds none of it."""
    X, y = np.arange(100.0)[:, None], np.r_[0, 0, 1:99]
    with pytest.raises(
        ValueError, match="n_pairs=5 with positive_fraction=None sampled different pairs only; increase n_pairs"
    ):
        SimilarityTree(n_pairs=5, positive_fraction=None, random_state=0).fit(X, y)
    assert SimilarityTree(n_pairs=5, random_state=0).fit(X, y).tree_.cells.n_same[0] == 1


def test_only_the_shares_matter_not_the_mix(blobs):
    """All pairs in any mix have the same curve: a repeated kind of pair changes no split (exact binning, no smallest leaf)."""
    X, y = blobs
    i, j = np.triu_indices(60, 1)
    rows, same = np.column_stack([i, j]), y[i] == y[j]
    tripled = np.concatenate([rows, rows[same], rows[same]]), np.concatenate([same, same[same], same[same]])
    splitter = CartSplitter(min_samples_leaf=1, criterion="auc")
    a = SimilarityTree(max_depth=4, splitter=splitter, max_bins=None).fit(X, same, pairs=rows)
    b = SimilarityTree(max_depth=4, splitter=splitter, max_bins=None).fit(X, tripled[1], pairs=tripled[0])
    np.testing.assert_allclose(a.roc_.fpr, b.roc_.fpr, rtol=1e-12)
    np.testing.assert_allclose(a.roc_.tpr, b.roc_.tpr, rtol=1e-12)
    np.testing.assert_array_equal(a.pairwise_score(X), b.pairwise_score(X))


def test_weighting_by_identity_reaches_the_tree():
    """One identity with 60 samples, three with 2: uniformly over pairs, nearly all same pairs are of the first."""
    y = np.repeat(np.arange(4), [60, 2, 2, 2])
    X = np.random.default_rng(0).normal(size=(66, 2))
    kwargs = {"max_depth": 2, "n_pairs": 400, "random_state": 0}
    by_pairs = SimilarityTree(**kwargs).fit(X, y)
    by_people = SimilarityTree(same_weighting="identities", **kwargs).fit(X, y)
    assert not np.array_equal(by_pairs.roc_.tpr, by_people.roc_.tpr)


def test_score_of_many_samples_samples_pairs(monkeypatch, blobs):
    X, y = blobs
    tree = SimilarityTree(max_depth=5, random_state=0).fit(X, y)
    exact = tree.score(X, y)
    monkeypatch.setattr("simtree.models._base.MAX_SCORE_PAIRS", 4000)
    drawn = tree.score(X, y)
    assert drawn == tree.score(X, y)
    assert drawn == pytest.approx(exact, abs=0.02)
    assert drawn != exact


def test_importances_of_a_classifier_are_not_available(blobs):
    from sklearn.tree import DecisionTreeClassifier

    tree = SimilarityTree(max_depth=2, splitter=ClassifierSplitter(DecisionTreeClassifier(max_depth=2)), random_state=0).fit(
        *blobs
    )
    assert not hasattr(tree, "feature_importances_")
    assert tree.score(*blobs) > 0.6


def test_failed_refit_keeps_the_old_model(blobs):
    X, y = blobs
    tree = SimilarityTree(max_depth=3, random_state=0).fit(X, y)
    before = tree.pairwise_score(X[:5])
    with pytest.raises(ValueError, match="1 class"):
        tree.fit(X, np.zeros(len(X)))
    np.testing.assert_array_equal(tree.pairwise_score(X[:5]), before)
    with pytest.raises(ValueError, match="1 class"):
        tree.fit(X[:, :2], np.zeros(len(X)))
    np.testing.assert_array_equal(tree.pairwise_score(X[:5]), before)  # still a tree of four features
    with pytest.raises(ValueError, match="expecting 4 features"):
        tree.pairwise_score(X[:5, :2])


@pytest.mark.parametrize("splitter", ["cut", "cart", "oblique"])
def test_one_tree_is_the_same_for_any_number_of_jobs(blobs, splitter, monkeypatch):
    """Codes are filled and large cells counted in threads."""
    one = SimilarityTree(
        max_depth=5, splitter=splitter, coordinates=["abs_diff", "sum", "cosine"], n_pairs=2000, random_state=0
    )
    one.fit(*blobs)
    counted = []
    monkeypatch.setattr("simtree.trees._binning.CHUNK", 300)
    monkeypatch.setattr("simtree.trees._binning.MIN_PARALLEL_UPDATES", 1000)
    count = binning.TrainingPairs.count
    monkeypatch.setattr(binning.TrainingPairs, "count", lambda *given: counted.append(count(*given)) or counted[-1])
    many = clone(one).set_params(n_jobs=3).fit(*blobs)
    assert any(counted)
    assert not all(counted)
    for a, b in zip(one.tree_.nodes, many.tree_.nodes, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.pairwise_score(blobs[0]), many.pairwise_score(blobs[0]))


def test_never_pair_excludes_pairs_from_training(blobs):
    X, y = blobs
    sitting = np.arange(len(y)) % 7
    allowed = PairSampler(y, never_pair=sitting)
    tree = SimilarityTree(max_depth=2, n_pairs=None, random_state=0).fit(X, y, never_pair=sitting)
    assert tree.n_pairs_ == allowed.n_pairs < PairSampler(y).n_pairs
    forest = SimilarityForest(n_estimators=2, max_depth=2, n_pairs=None, bootstrap=False, random_state=0)
    for grown in forest.fit(X, y, never_pair=sitting).trees_:
        assert (grown.cells.n_same[0], grown.cells.n_different[0]) == (allowed.n_same_pairs, allowed.n_different_pairs)
    with pytest.raises(ValueError, match="never_pair is for labelled samples"):
        tree.fit(X, [True, False], pairs=[[0, 1], [0, 2]], never_pair=sitting)


def test_row_indices_without_samples_raise_a_clear_error(blobs):
    tree = SimilarityTree(max_depth=2, random_state=0).fit(*blobs)
    with pytest.raises(ValueError, match=r"pairs has shape \(2, 2\); .* row numbers together with X"):
        tree.pair_score([[0, 1], [0, 50]])
