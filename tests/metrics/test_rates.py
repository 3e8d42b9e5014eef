"""Error rates, identification and log-likelihood ratios, against hand-worked ties, scikit-learn and plain restatements."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from simtree.metrics import (
    Searches,
    cllr,
    cmc,
    d_prime,
    det_points,
    eer,
    fnir_at_fpir,
    fnmr_at_fmr,
    min_cllr,
    monotone_llr,
    n_for_rate,
    roc_curve,
    searches,
    threshold_at_fmr,
    zero_fmr,
    zero_fnmr,
)

SETTINGS = settings(deadline=None, max_examples=40)
# Scores with few levels, as trees have them: of 2000 different pairs one scores 4, three 3, and one 2.
TIED_SAME = np.array([4, 4, 3, 3, 3, 2])
TIED_DIFFERENT = np.repeat([4, 3, 2, 1], [1, 3, 1, 1995])
TIED = np.concatenate([TIED_SAME, TIED_DIFFERENT]), np.arange(2006) < 6


@st.composite
def scored_pairs(draw):
    rows = draw(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=25))
    scores, same = (np.array(column) for column in zip(*rows, strict=True))
    assume(same.any() and not same.all())
    return scores, same


def rates(scores, same, threshold):
    return np.mean(scores[~same] >= threshold), np.mean(scores[same] < threshold)


# --- rates


@given(scored_pairs(), st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0]))
@SETTINGS
def test_fnmr_is_the_lowest_with_at_most_the_fmr(pairs, target):
    scores, same = pairs
    roc = roc_curve(scores, same)
    reachable = [rates(scores, same, t) for t in [*np.unique(scores), math.inf]]
    lowest = min(fnmr for fmr, fnmr in reachable if fmr <= target)
    assert fnmr_at_fmr(roc, target) == pytest.approx(lowest)
    fmr, fnmr = rates(scores, same, threshold_at_fmr(roc, target))
    assert fmr <= target
    assert fnmr == pytest.approx(lowest)


def test_tied_scores_are_never_split():
    """With few levels the nearest rate to the target exceeds it: an evaluator that takes it reports no error at all."""
    roc = roc_curve(*TIED)
    assert fnmr_at_fmr(roc, 1e-3) == pytest.approx(4 / 6)  # threshold 4: FMR 0.0005; at 3 it is 0.002
    assert threshold_at_fmr(roc, 1e-3) == 4
    assert fnmr_at_fmr(roc, 2e-3) == pytest.approx(1 / 6)
    assert zero_fmr(roc) == 1.0
    assert zero_fnmr(roc) == pytest.approx(5 / 2000)
    assert threshold_at_fmr(roc, 0.0) == math.inf


@given(scored_pairs())
@SETTINGS
def test_det_points_are_those_of_scikit_learn(pairs):
    scores, same = pairs
    fmr, fnmr = det_points(roc_curve(scores, same))
    theirs = sklearn.metrics.det_curve(same, scores, drop_intermediate=False)
    for point in zip(theirs[0], theirs[1], strict=True):
        assert np.isclose(np.stack([fmr, fnmr]).T, point).all(axis=1).any()


@given(scored_pairs())
@SETTINGS
def test_eer_as_fvc2000_says(pairs):
    scores, same = pairs
    thresholds = [*np.unique(scores), math.inf]
    strict = max(t for t in thresholds if rates(scores, same, t)[1] <= rates(scores, same, t)[0])
    loose = min(t for t in thresholds if rates(scores, same, t)[1] >= rates(scores, same, t)[0])
    best = min((sum(rates(scores, same, t)), -t) for t in (strict, loose))[0]
    found = eer(roc_curve(scores, same))
    assert found.low + found.high == pytest.approx(best)
    assert found.value == pytest.approx(best / 2)
    assert sorted(rates(scores, same, found.threshold)) == pytest.approx([found.low, found.high])


def test_eer_by_hand():
    # Accepting from 2 on: one of two different pairs, and all same ones. From 3 on: no different pair, and half of the same.
    found = eer(roc_curve([3, 2, 2, 1], [True, True, False, False]))
    assert found == (0.25, 0.0, 0.5, 2.0)
    assert eer(roc_curve([2, 1], [True, False]))[:3] == (0.0, 0.0, 0.0)
    # Both rates are 2/3 when 1 is accepted, but one minus 1/3 is rounded.
    assert eer(roc_curve([0, 0, 0, 1, 1, 1], [False, True, True, False, False, True])).threshold == 1.0


def test_rule_of_three():
    for rate in (0.3, 1e-2, 1e-3, 1e-4):
        n = n_for_rate(rate)
        assert beta.ppf(0.95, 1, n) <= rate < beta.ppf(0.95, 1, n - 1)
    with pytest.raises(ValueError, match="rate=0 is out of range"):
        n_for_rate(0)


# --- identification


@pytest.mark.parametrize("ties", [False, True])
def test_searches_against_a_plain_restatement(rng, ties):
    probes, gallery = rng.integers(0, 8, 40), rng.integers(0, 6, 30)
    scores = rng.integers(0, 4, (40, 30)) if ties else rng.normal(size=(40, 30))
    found = searches(scores, probes, gallery)
    for i, person in enumerate(probes):
        best = {other: scores[i][gallery == other].max() for other in set(gallery)}
        own = best.pop(person, None)
        assert found.nonmated[i] == max(best.values())
        assert found.ranks[i] == (0 if own is None else 1 + sum(score >= own for score in best.values()))
        assert found.mated[i] == (-math.inf if own is None else own)


def test_cmc_by_hand():
    np.testing.assert_allclose(cmc([1, 2, 2, 5, 0], max_rank=4), [0.25, 0.75, 0.75, 0.75])
    with pytest.raises(ValueError, match="no search whose identity is in the gallery"):
        cmc([0, 0])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=12))
@SETTINGS
def test_fnir_is_the_lowest_with_at_most_the_fpir(rows):
    mated, nonmated, ranks = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    found = Searches(mated, nonmated, ranks.astype(int))
    thresholds = [*np.unique(np.concatenate([mated, nonmated])), math.inf]
    for target in (0.0, 0.2, 0.5, 1.0):
        allowed = [t for t in thresholds if np.mean(nonmated >= t) <= target]
        lowest = min(np.mean((mated < t) | (ranks > 1)) for t in allowed)
        assert fnir_at_fpir(found, target) == pytest.approx(lowest)
    assert fnir_at_fpir(found, [0.0, 0.5]).shape == (2,)


def test_searches_that_cannot_be_judged():
    with pytest.raises(ValueError, match="scores must not be NaN, got 1 of 2"):
        searches([[math.nan, 1.0]], ["ann"], ["ann", "bob"])
    found = searches([[0.5, 1.0]], ["ann"], ["ann", "bob"])
    for rate in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            fnir_at_fpir(found, rate)
    with pytest.raises(ValueError, match="no search whose identity is in the gallery"):
        fnir_at_fpir(searches([[0.5, 1.0]], ["eve"], ["ann", "bob"]), 0.1)


# --- log-likelihood ratios


def test_d_prime_and_cllr_by_hand():
    assert d_prime([3, 1, 0, -2], [True, True, False, False]) == pytest.approx(3.0)
    assert d_prime([1, 0], [True, False]) == math.inf
    assert cllr([math.log(3), -math.log(3)], [True, False]) == pytest.approx(math.log2(4 / 3))
    assert cllr([math.log(3), -math.log(3)], [False, True]) == pytest.approx(2.0)


@given(scored_pairs())
@SETTINGS
def test_cllr_is_log_loss_at_even_odds(pairs):
    scores, same = pairs
    weight = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())
    loss = sklearn.metrics.log_loss(same, 1 / (1 + np.exp(-scores)), sample_weight=weight, labels=[False, True])
    assert cllr(scores, same) == pytest.approx(loss / math.log(2))


@given(scored_pairs(), st.sampled_from([0.3, 1.0, 4.0]))
@SETTINGS
def test_no_increasing_function_beats_min_cllr(pairs, scale):
    scores, same = pairs
    least = min_cllr(scores, same)
    assert 0.0 <= least <= 1.0 + 1e-12
    assert least <= cllr(scale * scores, same) + 1e-12
    assert least <= cllr(np.interp(scores, *monotone_llr(scores, same)), same) + 1e-12
    assert least == pytest.approx(min_cllr(np.exp(scores), same))


@given(scored_pairs())
@SETTINGS
def test_monotone_llr_increases_and_stays_finite(pairs):
    knots, llr = monotone_llr(*pairs)
    assert (np.diff(knots) > 0).all()
    assert (np.diff(llr) >= 0).all()
    assert np.isfinite(llr).all()


def test_pooled_by_hand():
    # 1: one different; 2 and 3 in the wrong order, pooled; 4: one same. Ratio of shares in the middle: 1.
    scores, same = [1, 2, 3, 4], [False, True, False, True]
    assert min_cllr(scores, same) == pytest.approx(0.5)
