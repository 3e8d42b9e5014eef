"""Thresholds: the guarantee on new identities, refusals, and metric-learn's strategies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, fbeta_score

from identity_effects import DISTRIBUTIONS
from simtree import SimilarityTree
from simtree.evaluation._thresholds import Goal, best_knot, choose_threshold, n_identities_for
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
    return choose_threshold(lambda i, _: scores[i // 2], pairs, units, goal, n_units=len(np.unique(units)))


# --- the guarantee


def exceedances(distribution, n_identities, max_fpr, n_repeats, n_samples=2):
    """How often the true FPR of the chosen threshold exceeds the target, and the median of true FPR / target."""
    found = []
    for seed in range(n_repeats):
        scores, same, u, v = DISTRIBUTIONS[distribution].sample(n_identities, n_samples, np.random.default_rng(seed))
        found.append(DISTRIBUTIONS[distribution].fpr(chosen(scores, same, u, v, Goal(max_fpr=max_fpr)).threshold))
    return np.mean(np.array(found) > max_fpr), np.median(found) / max_fpr


@pytest.mark.parametrize(("distribution", "n_identities", "max_fpr"), [("strong", 60, 0.05), ("mild", 40, 0.05)])
def test_fpr_on_new_identities_exceeds_the_target_in_at_most_5_percent(distribution, n_identities, max_fpr):
    share, ratio = exceedances(distribution, n_identities, max_fpr, n_repeats=300)
    assert share <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)
    assert ratio > 0.05  # not by accepting nothing


def test_pairs_taken_for_independent_would_exceed_it():
    """The same data without identities: what a binomial bound does."""
    distribution, exceeded = DISTRIBUTIONS["strong"], 0
    for seed in range(30):
        scores, same, *_ = distribution.sample(40, 2, np.random.default_rng(seed))
        numbers = np.arange(len(scores))
        exceeded += distribution.fpr(chosen(scores, same, 2 * numbers, 2 * numbers + 1, Goal(max_fpr=0.05)).threshold) > 0.05
    assert exceeded / 30 > 0.15


def test_the_last_threshold_before_the_bound_exceeds_the_target():
    scores, same, u, v = DISTRIBUTIONS["mild"].sample(60, 3, np.random.default_rng(0))
    report = chosen(scores, same, u, v, Goal(max_fpr=0.02))
    assert report.fpr == np.mean(scores[~same] >= report.threshold)
    assert report.tpr == np.mean(scores[same] >= report.threshold)
    assert report.fpr < report.fpr_bound <= 0.02
    assert report.n_effective <= 60 * 59 / 2
    looser = chosen(scores, same, u, v, Goal(max_fpr=0.03))
    assert looser.threshold < report.threshold
    surer = chosen(scores, same, u, v, Goal(max_fpr=0.02, confidence=0.99))
    assert surer.threshold > report.threshold
    assert "FPR <= 0.02 with 95 % confidence" in str(report)
    assert report.to_dict()["max_fpr"] == 0.02


# --- refusals


@pytest.mark.parametrize(("max_fpr", "needed"), [(1e-2, 25), (1e-3, 78), (1e-4, 246)])
def test_how_many_identities_are_needed(max_fpr, needed):
    assert n_identities_for(max_fpr, 0.95) == needed
    for n_identities in (needed - 1, needed) if needed < 100 else ():
        first, second, same = all_pairs_of(n_identities)
        if n_identities < needed:
            with pytest.raises(ValueError, match=f"takes at least {needed} identities .* there are {n_identities} "):
                chosen(same.astype(float), same, first, second, Goal(max_fpr=max_fpr))
        else:
            report = chosen(same.astype(float), same, first, second, Goal(max_fpr=max_fpr))
            assert report.threshold == 1.0
            assert report.fpr_bound <= max_fpr


def all_pairs_of(n_identities):
    u, v = np.triu_indices(n_identities, 1)
    first, second = np.r_[np.arange(n_identities), u], np.r_[np.arange(n_identities), v]
    return first, second, first == second


def test_a_target_that_every_threshold_exceeds():
    first, second, same = all_pairs_of(30)
    with pytest.raises(ValueError, match=r"cannot be guaranteed: at the strictest threshold the FPR is 1\. Give a higher"):
        chosen(np.zeros(len(first)), same, first, second, Goal(max_fpr=0.01))


def test_one_person_who_is_taken_for_many_makes_the_others_worth_little():
    first, second, same = all_pairs_of(30)
    scores = np.where(first == 0, 1.0, 0.0)  # one wolf matches all others: an FPR of 29 / 435
    with pytest.raises(
        ValueError, match=r"cannot be guaranteed: .* these 30 identities are worth \d+ .* at least \d+ identities"
    ):
        chosen(scores, same, first, second, Goal(max_fpr=0.1))


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
@settings(deadline=None, max_examples=100)
def test_strategies_are_optimal_with_ties(pairs, beta):  # an F score with beta=0 is precision
    scores, same = pairs
    candidates = [*np.unique(scores), math.inf]
    units = np.arange(2 * len(scores))
    for goal, value in (
        (Goal("accuracy"), lambda t: accuracy_score(same, scores >= t)),
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
    y = np.repeat(np.arange(120), 4)
    return rng.normal(size=(120, 6))[y] + 0.3 * rng.normal(size=(480, 6)), y


@pytest.fixture
def tree(people):
    X, y = people
    return SimilarityTree(max_depth=6, random_state=0).fit(X[:240], y[:240])


def test_predict_uses_the_threshold(tree, people):
    X, y = people
    assert tree.calibrate_threshold(X[240:], y[240:], max_fpr=0.05) is tree
    report = tree.threshold_report_
    assert tree.threshold_ == report.threshold
    assert report.n_identities == 60
    scores = tree.pair_score([[0, 1], [0, 200]], X)
    np.testing.assert_array_equal(tree.predict([[0, 1], [0, 200]], X), np.where(scores >= report.threshold, 1, -1))


def test_a_new_fit_or_threshold_resets_the_guarantee(tree, people):
    X, y = people
    tree.calibrate_threshold(X[240:], y[240:], max_fpr=0.05).set_threshold(1.0)
    assert not hasattr(tree, "threshold_report_")
    tree.calibrate_threshold(X[240:], y[240:], max_fpr=0.05).fit(X, y)
    assert not hasattr(tree, "threshold_report_")


def test_pairs_with_identities(tree, people):
    X, y = people
    X, y = X[240:], y[240:]
    i, j = np.triu_indices(240, 1)
    whole = tree.calibrate_threshold(X, y, max_fpr=0.05).threshold_report_
    rows = np.column_stack([i, j])
    given = tree.calibrate_threshold(X, y[i] == y[j], pairs=rows, identities=y, max_fpr=0.05).threshold_report_
    assert given == whole
    stacked = tree.calibrate_threshold(X[rows], y[i] == y[j], identities=y[rows], max_fpr=0.05).threshold_report_
    assert stacked == whole
    naive = tree.calibrate_threshold(X, y[i] == y[j], pairs=rows, max_fpr=0.05).threshold_report_
    assert naive.threshold <= whole.threshold


def test_a_refusal_leaves_the_threshold(tree, people):
    X, y = people
    before = tree.threshold_
    with pytest.raises(ValueError, match=r"takes at least 78 identities .* there are 60 .* enough for max_fpr=0\.0017 at best"):
        tree.calibrate_threshold(X[240:], y[240:])
    assert tree.threshold_ == before
    with pytest.raises(NotFittedError):
        SimilarityTree().calibrate_threshold(X, y)


def test_samples_that_never_pair_do_not_count(tree, people):
    X, y = people
    sitting = np.arange(len(y)) % 3
    report = tree.calibrate_threshold(X, y, max_fpr=0.05, never_pair=sitting).threshold_report_
    sampler = PairSampler(y, never_pair=sitting)
    assert (report.n_same, report.n_different) == (sampler.n_same_pairs, sampler.n_different_pairs)
