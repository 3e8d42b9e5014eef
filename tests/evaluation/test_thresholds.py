"""Thresholds of models, and metric-learn's strategies; the guarantee itself is tested in test_guarantee.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.metrics import fbeta_score

from simtree import SimilarityTree
from simtree.evaluation._thresholds import Goal, best_knot, choose_threshold
from simtree.metrics import roc_curve
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs

pytestmark = pytest.mark.slow


@st.composite
def scored_pairs(draw):
    rows = draw(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=25))
    scores, same = (np.array(column) for column in zip(*rows, strict=True))
    assume(same.any() and not same.all())
    return scores.astype(float), same


def chosen(scores, same, u, v, goal):
    """The threshold of scored pairs of units u and v."""
    numbers = np.arange(len(scores), dtype=np.int32)
    pairs = IndexPairs(2 * numbers, 2 * numbers + 1, same)
    units = np.column_stack([u, v]).ravel()
    return choose_threshold(lambda i, _: scores[i // 2], pairs, units, goal)


def test_a_target_that_every_threshold_exceeds():
    u, v = np.triu_indices(100)
    with pytest.raises(
        ValueError, match=r"cannot be guaranteed: at the strictest threshold the FPR is 1, above .* Give a higher"
    ):
        chosen(np.zeros(len(u)), u == v, u, v, Goal(max_fpr=0.2))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"strategy": "best"}, ValueError, "strategy='best' is unknown"),
        ({"max_fpr": 0.0}, ValueError, "max_fpr=0.0 is out of range"),
        ({"max_fpr": None}, ValueError, "'max_tpr' needs max_fpr"),
        ({"confidence": 1.0}, ValueError, "confidence=1.0 is out of range"),
        ({"strategy": "max_tnr"}, ValueError, "'max_tnr' needs min_rate"),
        ({"strategy": "accuracy", "min_rate": 0.5}, ValueError, "min_rate=0.5 has no effect"),
        ({"strategy": "f_beta", "beta": -1}, ValueError, "beta=-1 is out of range"),
        ({"min_rate": "high"}, TypeError, "min_rate='high' is not a number"),
    ],
)
def test_bad_goals(options, error, message):
    with pytest.raises(error, match=message):
        Goal(**options)


# --- metric-learn's strategies


@given(scored_pairs(), st.sampled_from([0.0, 1e-3, 0.5, 1.0, 2.0]))
@settings(deadline=None, max_examples=50)
def test_strategies_are_optimal_with_ties(pairs, beta):  # an F score with beta=0 is precision
    scores, same = pairs
    candidates = [*np.unique(scores), math.inf]
    units = np.arange(2 * len(scores))
    for goal, value in (
        (Goal("accuracy"), lambda t: np.mean(same == (scores >= t))),
        (Goal("f_beta", beta=beta), lambda t: fbeta_score(same, scores >= t, beta=beta, zero_division=0.0)),
    ):
        report = chosen(scores, same, units[::2], units[1::2], goal)
        assert value(report.threshold) == pytest.approx(max(map(value, candidates)))
        assert report.fpr == np.mean(scores[~same] >= report.threshold)


@given(scored_pairs(), st.sampled_from([0.0, 0.5, 0.7, 0.9, 1.0]))
@settings(deadline=None, max_examples=100)
def test_min_rate_is_reached_and_the_other_rate_is_best(pairs, least):
    scores, same = pairs
    rates = [(np.mean(scores[same] >= t), np.mean(scores[~same] < t)) for t in [*np.unique(scores), math.inf]]
    roc = roc_curve(scores, same)
    knot = best_knot(roc, Goal("max_tpr", min_rate=least), same.sum(), (~same).sum())
    assert 1 - roc.fpr[knot] >= least - 1e-12
    assert roc.tpr[knot] == max(tpr for tpr, tnr in rates if tnr >= least - 1e-12)
    knot = best_knot(roc, Goal("max_tnr", min_rate=least), same.sum(), (~same).sum())
    assert roc.tpr[knot] >= least
    assert 1 - roc.fpr[knot] == pytest.approx(max(tnr for tpr, tnr in rates if tpr >= least))


# --- the method


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(160), 4)
    return rng.normal(size=(160, 6))[y] + 0.3 * rng.normal(size=(640, 6)), y


@pytest.fixture
def tree(people):
    X, y = people
    return SimilarityTree(max_depth=6, random_state=0).fit(X[:240], y[:240])


def test_predict_uses_the_threshold(tree, people):
    X, y = people
    assert tree.calibrate_threshold(X[240:], y[240:], max_fpr=0.1) is tree
    report = tree.threshold_report_
    assert tree.threshold_ == report.threshold
    assert report.n_identities == 100
    scores = tree.pair_score([[0, 1], [0, 200]], X)
    np.testing.assert_array_equal(tree.predict([[0, 1], [0, 200]], X), np.where(scores >= report.threshold, 1, -1))


def test_a_new_fit_or_threshold_resets_the_guarantee(tree, people):
    X, y = people
    tree.calibrate_threshold(X[240:], y[240:], max_fpr=0.1).set_threshold(1.0)
    assert not hasattr(tree, "threshold_report_")
    tree.calibrate_threshold(X[240:], y[240:], max_fpr=0.1).fit(X, y)
    assert not hasattr(tree, "threshold_report_")


def test_pairs_with_identities(tree, people):
    X, y = people
    X, y = X[240:], y[240:]
    i, j = np.triu_indices(400, 1)
    whole = tree.calibrate_threshold(X, y, max_fpr=0.1).threshold_report_
    rows = np.column_stack([i, j])
    given = tree.calibrate_threshold(X, y[i] == y[j], pairs=rows, identities=y, max_fpr=0.1).threshold_report_
    assert given == whole
    stacked = tree.calibrate_threshold(X[rows], y[i] == y[j], identities=y[rows], max_fpr=0.1).threshold_report_
    assert stacked == whole
    with pytest.raises(ValueError, match=r"cannot be guaranteed for pairs of unknown identities.*give identities="):
        tree.calibrate_threshold(X, y[i] == y[j], pairs=rows, max_fpr=0.1)
    alone = tree.calibrate_threshold(X, y[i] == y[j], pairs=rows, max_fpr=0.1, confidence=None).threshold_report_
    assert alone.threshold <= whole.threshold


def test_a_refusal_leaves_the_threshold(tree, people):
    X, y = people
    before = tree.threshold_
    with pytest.raises(ValueError, match=r"max_fpr=0\.1 .* cannot be guaranteed: 20 identities are too few"):
        tree.calibrate_threshold(X[240:320], y[240:320], max_fpr=0.1)
    assert tree.threshold_ == before
    with pytest.raises(NotFittedError):
        SimilarityTree().calibrate_threshold(X, y)


def test_samples_that_never_pair_do_not_count(tree, people):
    X, y = people
    sitting = np.arange(len(y)) % 3
    report = tree.calibrate_threshold(X, y, max_fpr=0.1, never_pair=sitting).threshold_report_
    sampler = PairSampler(y, never_pair=sitting)
    assert (report.n_same, report.n_different) == (sampler.n_same_pairs, sampler.n_different_pairs)
