"""Intervals of metrics whose pairs share samples or identities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binomtest, t

from populations import POPULATIONS
from simtree.evaluation._intervals import (
    CARRIED_STRETCH,
    STRETCH,
    _numbered,
    carried_ends,
    logit_interval,
    matched_intervals,
    point_intervals,
    tally_pairs,
    upper_bound,
    wilson_interval,
)
from simtree.evaluation._reliability import find_doubts
from simtree.evaluation._tallies import PairTally
from simtree.metrics import eer, roc_curve, tpr_at_fpr
from simtree.pairs._sampling import PairSampler

pytestmark = pytest.mark.slow

FPR = [0.1, 0.02]
N_POINTS = 120


def scored(seed, n_pairs, effect):
    """Pairs of samples whose scores have noise of the pair, and noise of each sample that all its pairs share."""
    rng = np.random.default_rng(seed)
    pairs = PairSampler(np.arange(N_POINTS) % 3).sample(n_pairs, rng)
    of_points = effect * rng.normal(size=N_POINTS)
    scores = 1.5 * pairs.same + rng.normal(size=len(pairs)) + of_points[pairs.first] + of_points[pairs.second]
    return np.round(scores, 2), pairs  # with ties


def figures(scores, pairs):
    roc = roc_curve(scores, pairs.same)
    return np.array([roc.auc(), *tpr_at_fpr(roc, FPR)])


# --- counts


@pytest.mark.parametrize("weighted", [False, True])
def test_a_tally_is_a_plain_sum_over_pairs_of_units(rng, weighted):
    u, v, scores = rng.integers(0, 6, 200), rng.integers(0, 6, 200), rng.integers(0, 5, 200).astype(float)
    place, thresholds = rng.random(200), np.array([4.0, 2.0, 0.5])
    weight = rng.random(200) if weighted else np.ones(200)
    tally = PairTally(thresholds, 6)
    tally.add(u, v, scores, place, weights=weight if weighted else None)
    columns = np.column_stack([scores[:, None] >= thresholds, place])
    mean = weight @ columns / weight.sum()
    np.testing.assert_allclose(tally.totals, weight @ columns)
    np.testing.assert_allclose(tally.rates, mean)
    found = tally.influence()
    residual = weight[:, None] * (columns - mean) / weight.sum()
    for unit in range(6):
        np.testing.assert_allclose(found.units[unit], residual[(u == unit) | (v == unit)].sum(axis=0), atol=1e-12)
    cell = {}
    for a, b, row in zip(np.minimum(u, v), np.maximum(u, v), residual, strict=True):
        cell[a, b] = cell.get((a, b), 0.0) + row
    assert tally.n_unit_pairs == len(cell)
    np.testing.assert_allclose(found.own, sum(row**2 for (a, b), row in cell.items() if a != b), atol=1e-12)
    per_unit = np.array([weight[(u == unit) | (v == unit)].sum() for unit in range(6)])
    assert found.n_even == pytest.approx(per_unit.sum() ** 2 / np.sum(per_unit**2))


def test_sessions_are_a_second_kind_of_units(rng):
    """Influences of sessions, and of units within sessions, are plain sums; nested sessions add nothing to the variance."""
    identity, session = np.repeat(np.arange(12), 4), np.tile(np.arange(4), 12)
    i, j = np.triu_indices(48, 1)
    scores = rng.normal(size=len(i)) + (identity[i] == identity[j])
    same = identity[i] == identity[j]
    both = tally_pairs(scores, same, identity[i], identity[j], sessions=(session[i], session[j])).different
    plain = tally_pairs(scores, same, identity[i], identity[j]).different
    found, k = both.influence(), 20
    residual = ((scores >= both.thresholds[k]) - both.rates[k])[~same] / np.count_nonzero(~same)
    for number in range(4):
        inside = ((session[i] == number) | (session[j] == number))[~same]
        assert found.sessions[number, k] == pytest.approx(residual[inside].sum())
    assert len(found.parts) == 48
    nested = tally_pairs(scores, same, identity[i], identity[j], sessions=(identity[i], identity[j])).different
    np.testing.assert_allclose(nested.influence().variance()[0], plain.influence().variance()[0])
    assert (both.influence().variance()[0] >= plain.influence().variance()[0] - 1e-15).all()


def test_variance_of_independent_units_is_the_textbook_one(rng):
    """Each unit has its own pairs only: the variance is that of a mean over units."""
    rates = rng.random(30)
    tally = PairTally(np.array([0.5]), 30)
    unit = np.repeat(np.arange(30), 50)
    tally.add(unit, unit, (rng.random(1500) < rates[unit]).astype(float))
    found = tally.influence()
    means = found.units[:, 0] * 30
    np.testing.assert_allclose(found.variance()[0][0], np.var(means, ddof=1) / 30)


def test_variance_is_unbiased_for_two_way_effects():
    """Score of (k, l) is a_k + a_l + e_kl: both parts of the variance are right on average."""
    n, found, rates = 25, [], []
    u, v = np.triu_indices(n, 1)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        effect = rng.normal(size=n)
        tally = PairTally(np.array([1.0]), n)
        tally.add(u, v, effect[u] + effect[v] + rng.normal(size=len(u)))
        found.append(tally.influence().variance()[0][0])
        rates.append(tally.rates[0])
    assert np.mean(found) / np.var(rates) == pytest.approx(1.0, abs=0.2)


# --- intervals


@given(st.floats(0, 1), st.floats(1, 1e6), st.integers(1, 200))
@example(1 - 2**-53, 37.0, 27)
@settings(deadline=None, max_examples=200)
def test_intervals_hold_the_rate_and_stay_inside(rate, n, free):
    low, high = wilson_interval(rate, n, free)
    assert 0.0 <= low <= rate <= high <= 1.0
    assert low < high
    assert rate - 1e-9 <= upper_bound(rate, n) <= 1.0


def test_with_many_units_it_is_wilson_and_clopper_pearson():
    theirs = binomtest(7, 100).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson_interval(0.07, 100, 1e9), theirs)
    exact = binomtest(7, 100, alternative="less").proportion_ci(0.95, method="exact")
    assert upper_bound(0.07, 100) == pytest.approx(exact.high)


def test_without_an_error_the_rule_of_three_on_pairs_of_identities():
    scores, same = np.r_[np.ones(25), np.zeros(300)], np.r_[np.ones(25, bool), np.zeros(300, bool)]
    u, v = np.triu_indices(25, 1)
    first, second = np.r_[np.arange(25), u], np.r_[np.arange(25), v]
    tallies = tally_pairs(np.repeat(scores, 4), np.repeat(same, 4), np.repeat(first, 4), np.repeat(second, 4))
    assert tallies.different.n_pairs == 1200
    assert tallies.different.n_unit_pairs == 300  # four comparisons of two people are worth one
    assert upper_bound(0.0, tallies.different.n_unit_pairs) == pytest.approx(0.00994, abs=1e-5)
    # An interval assumes nothing: 25 people have twelve pairs that share nobody.
    fpr, tpr = tallies.rate_intervals(0.95)
    np.testing.assert_allclose(fpr[0], wilson_interval(0.0, 12.5, 24))
    np.testing.assert_allclose(tpr[0], wilson_interval(1.0, 25, 24))


def test_errors_are_carried_down_by_hand():
    """Rates 0, 0.01, 0.04 and 0.6; the error of 0.04 is 0.3 on the logit scale, and grows by the root of two towards 0.01."""
    rates = np.array([0.0, 0.01, 0.04, 0.6])
    error = np.array([0.0, 0.2, 0.3, 0.5])
    variance, df = (error * rates * (1.0 - rates)) ** 2, np.full(4, 59.0)
    quantile = t.ppf(0.975, 59)
    lowest, second, third, last = carried_ends(rates, variance, df, np.ones(4), 0.0025, 0.95)

    def end(rate, carried):
        return expit(logit(rate) + quantile * carried * (1.0 + CARRIED_STRETCH * carried * (1.0 - 2.0 * rate)))

    assert second == pytest.approx(end(0.01, 0.3 * np.sqrt(2.0)))
    assert third == pytest.approx(end(0.04, 0.3))
    assert lowest == pytest.approx(end(0.0025, 0.6))  # 0.04 is LOOSER times as high
    assert np.isnan(last)
    assert np.isnan(carried_ends(np.array([0.0, 1.0]), np.zeros(2), np.ones(2), np.ones(2), 0.1, 0.95)).all()


def test_logit_intervals_by_hand():
    """Rate 0.1, standard error 0.018: 0.2 on the logit scale; the upper end is stretched by 1 + 1.75 * 0.2 * 0.8."""
    quantile = t.ppf(0.975, 59)

    def ends(rate, shared):
        variance, df = np.array([0.018**2]), np.array([59.0])
        return logit_interval(np.array([rate]), variance, df, np.array([shared]), 10_000, 60, 0.95)[0]

    low, high = ends(0.1, 1.0)
    assert low == pytest.approx(expit(logit(0.1) - 0.2 * quantile))
    assert high == pytest.approx(expit(logit(0.1) + 0.2 * quantile * (1 + STRETCH * 0.2 * 0.8)))
    np.testing.assert_allclose(ends(0.9, 1.0), [1 - high, 1 - low])
    np.testing.assert_allclose(ends(0.1, 0.0), expit(logit(0.1) + 0.2 * quantile * np.array([-1, 1])))


def test_no_interval_is_longer_than_that_of_one_pair_per_unit():
    rates, df = np.array([0.001, 0.5]), np.full(2, 59.0)
    found = logit_interval(rates, np.array([1.0, np.inf]), df, np.ones(2), 10_000, 60, 0.95)
    np.testing.assert_allclose(found, wilson_interval(rates, 60, 59))


def test_a_rate_at_an_estimated_threshold_by_hand():
    """At the target 0.1 the threshold lies between the first and the third; both distances add up in quadrature."""
    x, y = np.array([0.05, 0.1, 0.2]), np.array([0.6, 0.7, 0.9])
    x_ends, y_ends = np.array([[0.03, 0.12], [0.05, 0.2], [0.09, 0.4]]), np.array([[0.5, 0.7], [0.66, 0.85], [0.8, 0.95]])
    of_x, of_y = np.tile([[1.0], [-1.0], [0.0]], 3), np.tile([[0.0], [0.0], [2.0]], 3)
    uncorrelated = matched_intervals(np.array([0.7]), np.array([0.1]), (x, x_ends, of_x), (y, y_ends, of_y))
    np.testing.assert_allclose(uncorrelated[0], [0.7 - np.hypot(0.04, 0.1), 0.7 + np.hypot(0.15, 0.2)])
    # Identities that raise both rates: the threshold moves against the TPR, so that their effects cancel.
    correlated = matched_intervals(np.array([0.7]), np.array([0.1]), (x, x_ends, of_x), (y, y_ends, of_x))
    np.testing.assert_allclose(correlated[0], [0.7 - 0.06, 0.7 + 0.05])


@pytest.mark.parametrize(
    "values",
    [
        np.array([3, 0, 3, 7, 0, 1, 1, 1]),
        np.array([3, -1, 3]),
        np.array([10**9, 5, 5]),
        np.array(["b", "a", "b"]),
        np.array([0.5, 0.1]),
    ],
)
def test_numbers_of_values_are_those_of_numpy(values):
    found, expected = _numbered(values), np.unique(values, return_inverse=True)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


# --- coverage


def covered(ends, truth):
    return np.mean((np.array(ends)[..., 0] <= truth) & (truth <= np.array(ends)[..., 1]), axis=0)


@pytest.mark.parametrize("name", ["normal 0.7", "0.4 t(3)", "Zipf counts", "10 sessions"])
def test_intervals_cover_for_unequal_people_or_warn(name):
    """60 people; docs/intervals.md has all populations and sizes. Of 60 runs an interval of 95 % covers in 87 % at least."""
    population, rate = POPULATIONS[name], 0.05
    threshold = population.threshold(rate)
    truth = np.array([rate, population.tpr(threshold), population.tpr(threshold), population.auc(), population.eer()])
    ends, warned, binomial = [], [], []
    for seed in range(60):
        drawn = population.draw(60, np.random.default_rng(seed))
        pairs = PairSampler(drawn.people).all_pairs()
        scores, (u, v) = drawn.scores[pairs.first, pairs.second], (drawn.people[pairs.first], drawn.people[pairs.second])
        sessions = None if drawn.sessions is None else (drawn.sessions[pairs.first], drawn.sessions[pairs.second])
        tallies = tally_pairs(scores, pairs.same, u, v, at=[threshold], sessions=sessions)
        at = np.flatnonzero(tallies.same.thresholds == threshold)[0]
        fpr, tpr = tallies.rate_intervals(0.95)
        roc = roc_curve(scores, pairs.same)
        equal = eer(roc).value
        at_rate = tallies.tpr_intervals([tpr_at_fpr(roc, rate)], [rate], 0.95)[0]
        ends.append([fpr[at], tpr[at], at_rate, tallies.auc_interval(roc.auc(), 0.95), tallies.eer_interval(equal, 0.95)])
        warned.append(bool(find_doubts(tallies, None, at, "identities")))
        accepted = binomtest(int(tallies.different.totals[at]), tallies.different.n_pairs)
        binomial.append(accepted.proportion_ci(method="wilson"))
    inside = (np.array(ends)[..., 0] <= truth) & (truth <= np.array(ends)[..., 1])
    share = np.mean(inside | np.array(warned)[:, None], axis=0)
    assert (share >= 0.87).all(), share
    assert covered(binomial, rate) < 0.6
    if name == "normal 0.7":
        assert np.mean(warned) <= 0.25


@pytest.mark.parametrize(("n_pairs", "effect"), [(1_000, 0.0), (1_000, 0.7), (7_000, 0.7)])
def test_intervals_are_as_wide_as_the_metrics_vary(n_pairs, effect):
    found = np.array([figures(*scored(seed, n_pairs, effect)) for seed in range(300)])
    ends = []
    for seed in range(25):
        scores, pairs = scored(seed, n_pairs, effect)
        ends.append(point_intervals(scores, pairs.same, pairs.first, pairs.second, FPR))
    ratio = np.mean(np.ptp(ends, axis=2), axis=0) / (3.92 * found.std(axis=0))
    assert np.all((ratio > 0.8) & (ratio < 1.8)), ratio
    assert np.all(covered(ends, found.mean(axis=0)) > 0.8)


def test_the_interval_contains_the_metric():
    scores, pairs = scored(0, 1_000, 0.5)
    ends = point_intervals(scores, pairs.same, pairs.first, pairs.second, FPR)
    values = figures(scores, pairs)
    assert ((ends[:, 0] < values) & (values < ends[:, 1])).all()
