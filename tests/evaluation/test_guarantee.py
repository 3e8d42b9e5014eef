"""The guarantee on new identities: bounds without an assumption, what is learned by resampling, and refusals."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import beta, kurtosis, skew

from simtree.evaluation import n_identities_for, threshold_for_scores
from simtree.evaluation._guarantee import FreeBound, Inequality, chernoff_bound, divergence, free_criterion, regular_criterion
from simtree.evaluation._identity_rates import IdentityRates, count_identity_rates, n_matched, n_matched_sessions
from simtree.evaluation._normal_scores import heavy_tails
from simtree.evaluation._thresholds import Goal, choose_threshold, choose_threshold_by, report_guarantee
from simtree.pairs._sampling import PairSampler

pytestmark = pytest.mark.slow


def people(n, n_samples=3, spread=0.3, seed=0, wolves=0, effects=None):
    """Return the labels of samples, and a function that scores pairs of them: higher for people with a high effect."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n), n_samples)
    effects = spread * rng.normal(size=n) if effects is None else effects
    effects[:wolves] += 4.0
    of_samples = effects[y] + 0.3 * rng.normal(size=len(y))
    noise = np.triu(0.5 * rng.normal(size=(len(y), len(y))), 1)
    scores = of_samples[:, None] + of_samples + noise + noise.T + np.where(y[:, None] == y, 5.0, 0.0)
    return y, lambda i, j: scores[i, j]


def report_of(n, *, max_fpr=0.01, sessions=None, source=None, by=None, **goal):
    y, score = people(n, **{name: goal.pop(name) for name in ("n_samples", "spread", "seed", "wolves") if name in goal})
    sampler = PairSampler(y) if source is None else source(y)
    return choose_threshold_by(score, sampler, y, Goal(max_fpr=max_fpr, **goal), sessions=sessions, by=by)


# --- without an assumption


def test_the_bound_without_errors_is_that_of_half_as_many_independent_pairs():
    assert chernoff_bound(0.0, 20) == pytest.approx(1 - 0.05 ** (1 / 20))
    assert float(chernoff_bound(0.0, 20)) == pytest.approx(0.139, abs=1e-3)
    assert chernoff_bound(0.3, 0.0) == 1.0
    assert chernoff_bound(1.0, 10) == 1.0


@given(st.floats(0.0, 1.0), st.integers(1, 10_000), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
@settings(deadline=None)
def test_the_bound_solves_its_equation_and_is_above_clopper_pearson(rate, n, confidence):
    bound = float(chernoff_bound(rate, n, confidence))
    assert rate - 1e-12 <= bound <= 1.0
    if bound < 1.0 - 1e-12:
        assert n * divergence(rate, bound) == pytest.approx(-math.log(1 - confidence), rel=1e-5, abs=1e-6)
    errors = math.floor(rate * n)
    if errors < n:
        assert (
            chernoff_bound(errors / n, n, confidence) >= beta.ppf(confidence, errors + 1, n - errors) * (1 - 1e-3) - 1e-9
            or errors
        )


def test_chernoff_covers_a_wolf_that_may_be_absent():
    """2 % of people are mistaken for everybody: the observed rate is a U-statistic with the worst possible dependence."""
    rng = np.random.default_rng(0)
    n, share = 100, 0.02
    n_wolves = rng.binomial(n, share, size=4000)
    rates = 1 - (n - n_wolves) * (n - n_wolves - 1) / (n * (n - 1))
    truth = 1 - (1 - share) ** 2
    exceeded = np.mean([truth > bound for bound in chernoff_bound(rates, n // 2)])
    assert exceeded <= 0.05
    assert np.mean(truth > chernoff_bound(rates, n * (n - 1) // 2)) > 0.3  # pairs taken for independent


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9])
def test_complete_graphs_have_matchings_of_half_of_the_identities(n):
    assert n_matched(np.full(n, n - 1), n * (n - 1) // 2) == n // 2


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] < pair[1]), min_size=1))
@settings(deadline=None)
def test_matchings_are_never_larger_than_a_maximum_matching(edges):
    degrees = np.bincount(np.array(list(edges)).ravel(), minlength=8)
    largest = next(k for k in range(4, 0, -1) if any(len(set(np.ravel(chosen))) == 2 * k for chosen in combinations(edges, k)))
    assert n_matched(degrees, len(edges)) <= largest


def test_sessions_that_all_share_leave_a_single_comparison():
    degrees, identities = np.full(20, 19), np.repeat(np.arange(20), 2)
    assert n_matched_sessions(degrees, identities, np.tile([0, 1], 20), 190) == 1
    # Sessions of two people each: a pair of people conflicts with the pairs of these and of two others.
    assert n_matched_sessions(degrees, np.arange(20), np.arange(20) // 2, 190) == 190 // (2 * 2 * 19)


def test_weighted_by_samples_the_free_bound_is_wider_and_needs_a_maximum():
    narrow, wide = FreeBound(500, 1000), FreeBound(500, 1000, mean_size=0.25)
    assert narrow.at(0.001, 0.95) < wide.at(0.001, 0.95) < 1.0
    sizes = 1.0 - float(chernoff_bound(0.75, 500, 0.995))  # at least this share of the maximum number of pairs of samples
    assert 0.15 < sizes < 0.25
    assert wide.at(0.0, 0.95) == pytest.approx(float(chernoff_bound(0.0, 500, 0.955)) / sizes)
    with pytest.raises(ValueError, match=r"weighting='samples' without an assumption takes max_samples.*here it is 3"):
        report_of(80, assume="none", weighting="samples")
    with pytest.raises(ValueError, match="max_samples=2 is exceeded by an identity with 3 samples; give at least 3"):
        report_of(80, weighting="samples", max_samples=2)


def test_independent_pairs_need_no_assumption():
    rng = np.random.default_rng(0)
    same = np.arange(2000) < 500
    report = threshold_for_scores(
        3.0 * same + rng.normal(size=2000), same, np.arange(4000).reshape(-1, 2) // np.where(same, 2, 1)[:, None], max_fpr=0.01
    )
    assert report.free_bound <= 0.01
    assert "without an assumption" in report.promise
    errors = round(report.fpr * 1500)
    assert report.free_bound == pytest.approx(beta.ppf(0.95, errors + 1, 1500 - errors))


# --- what is counted


def test_rates_are_means_over_pairs_of_identities():
    """Identities 0, 1, 2 with 1, 2, 3 samples; identity 0 is accepted with one of the two samples of 1."""
    y = np.array([0, 1, 1, 2, 2, 2])
    i, j = np.nonzero(np.triu(y[:, None] != y))
    scores = np.where((i == 0) & (j == 1), 1.0, 0.0)
    for weighting, expected in (("identities", 0.5 / 3), ("samples", 1 / 11)):
        rates = IdentityRates(np.array([1.0]), np.array([1.0]), np.array([1.0]), y, weighting)
        rates.add(i, j, scores)
        assert rates.rates[0] == pytest.approx(expected)
        assert (rates.n_pairs, rates.n_identity_pairs, rates.largest, rates.max_samples) == (11, 3, 6, 3)
        resampler = rates.resampler()
        assert resampler.rates()[0] == pytest.approx(expected)
        assert resampler.rates(low=True)[0] == pytest.approx(1 - expected)


@given(st.integers(0, 1000), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=25)
def test_resampled_rates_are_those_of_the_drawn_identities(seed, by_session, weighted):
    """Oracle: all pairs of all drawn copies, counted one by one."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, 6, 14))
    y = np.unique(y, return_inverse=True)[1]
    sessions = rng.integers(0, 3, len(y)) if by_session else None
    i, j = np.nonzero(np.triu(y[:, None] != y))
    scores = rng.normal(size=len(i))
    rates = IdentityRates(
        np.array([0.0]), np.array([0.0]), np.array([0.0]), y, "identities" if weighted else "samples", sessions=sessions
    )
    half = len(i) // 2
    order = np.argsort(y[i] * 100 + y[j], kind="stable")  # pairs of two identities come in one call
    border = order[half]
    first = y[i] * 100 + y[j] < y[i[border]] * 100 + y[j[border]]
    for part in (first, ~first):
        if part.any():
            rates.add(i[part], j[part], scores[part])
    resampler = rates.resampler()
    n_drawn = (4,) if sessions is None else (4, 2)
    weights, compared = resampler._draw(n_drawn, 3)
    relative = resampler.relative_rates(0, n_drawn, 3)
    cells = np.unique(y * 3 + (0 if sessions is None else sessions), return_inverse=True)[1]
    sizes = {(a, b): np.sum((y[i] == a) & (y[j] == b)) for a, b in combinations(range(y.max() + 1), 2)}
    each = np.array([1.0 / sizes[a, b] if weighted else 1.0 for a, b in zip(y[i], y[j], strict=True)])
    for draw in range(3):
        weight = each * weights[cells[i], draw] * weights[cells[j], draw]
        assert compared[draw] == pytest.approx(weight.sum())
        overall = (each * (scores >= 0)).sum() / each.sum()
        expected = (weight * (scores >= 0)).sum() / weight.sum() / overall if weight.sum() > 0 and overall > 0 else 0.0
        assert relative[draw] == pytest.approx(expected)


# --- regular inequality


def test_the_critical_rate_is_the_square_of_what_resampling_leaves():
    y, score = people(300, spread=0.9)
    rates = count_identity_rates(score, PairSampler(y), y, [0.001], weighting="identities")
    learned = Inequality(rates.resampler(), rates.n_units, 0.95)
    criterion = regular_criterion(learned, 0.001, rates.n_units, rates.n_identity_pairs)
    assert learned.tails == 0.0
    assert 0.18 < criterion.quantile < 0.43
    assert criterion.critical == pytest.approx(criterion.quantile**2 * 0.001)
    report = report_guarantee(rates, Goal(max_fpr=0.001), np.array([5.0, 9.0]), np.array([0, 1]))
    assert 0.8 * criterion.critical < report.fpr <= criterion.critical
    assert report.tpr == np.mean(np.array([5.0, 9.0]) >= report.threshold)


def test_people_who_stand_out_are_noticed_by_their_kurtosis():
    """Oracle: the rate of each of 100 people with all others, one by one."""
    y, score = people(100, effects=0.5 * np.random.default_rng(1).exponential(size=100))
    rates = count_identity_rates(score, PairSampler(y), y, [0.01], weighting="identities")
    resampler = rates.resampler()
    learned = Inequality(resampler, rates.n_units, 0.95)
    i, j = np.nonzero(y[:, None] != y)
    threshold = np.quantile(score(i, j), 1 - 0.32)  # the level nearest to 0.3, 32 times the target
    (of_people,) = resampler.unit_rates(int(np.argmin(np.abs(resampler.rates() - 0.32))))
    expected = np.array([np.mean(score(i, j)[y[i] == a] >= threshold) for a in range(100)])
    np.testing.assert_allclose(of_people, expected, atol=2e-3)
    assert learned.tails == pytest.approx(2.0 * (kurtosis(ndtri((expected * 99 + 0.5) / 100)) - 1.0), abs=0.05)
    assert learned.tails > 1.0
    assert "some stand out from the others" in refusal_of(rates, 0.01)


def test_heavy_tails_lower_the_critical_rate():
    y, score = people(150, effects=0.3 * np.random.default_rng(0).laplace(size=150))
    rates = count_identity_rates(score, PairSampler(y), y, [0.05], weighting="identities")
    learned = Inequality(rates.resampler(), rates.n_units, 0.95)
    assert 0.2 < learned.tails < 2.0
    criterion = regular_criterion(learned, 0.05, rates.n_units, rates.n_identity_pairs)
    most = math.sqrt(150 / (534 * math.log(20)))
    assert criterion.critical == pytest.approx(min(criterion.quantile, most) ** (2.0 + learned.tails) * 0.05)
    assert criterion.tails == learned.tails


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_person_who_stands_out_on_either_side_is_noticed(sign):
    effects = 0.3 * np.random.default_rng(1).normal(size=80)
    effects[0] += sign * 2.5
    y, score = people(80, effects=effects)
    rates = count_identity_rates(score, PairSampler(y), y, [0.01], weighting="identities")
    assert Inequality(rates.resampler(), rates.n_units, 0.95).tails > 1.0


def refusal_of(rates, max_fpr):
    with pytest.raises(ValueError, match="cannot be guaranteed") as refused:
        report_guarantee(rates, Goal(max_fpr=max_fpr), np.array([9.0]), np.array([0]))
    return str(refused.value)


def test_only_kurtosis_beyond_that_of_skewed_people_counts():
    rng = np.random.default_rng(0)
    normal, skewed, heavy = rng.normal(size=2000), rng.gamma(16.0, size=2000), rng.standard_t(4, size=2000)
    assert heavy_tails(normal) < 0.1
    assert heavy_tails(skewed) < 0.2 < kurtosis(skewed)
    assert heavy_tails(heavy) == pytest.approx(kurtosis(heavy) - min(np.sqrt(24 / 2000) + 1.5 * skew(heavy) ** 2, 1.0))
    assert heavy_tails(heavy) > 1.0


def test_what_cannot_be_compared_adds_no_margin():
    y, score = people(8, wolves=1)
    rates = count_identity_rates(score, PairSampler(y), y, [0.01], weighting="identities")
    assert Inequality(rates.resampler(), rates.n_units, 0.95).tails == 0.0  # seven others are too few
    y = np.arange(30)
    same = count_identity_rates(
        lambda i, j: np.zeros(len(i)), PairSampler(np.repeat(y, 2)), np.repeat(y, 2), [0.01], weighting="identities"
    )
    assert Inequality(same.resampler(), same.n_units, 0.95).tails < 1.0  # ties are broken at random


def test_many_people_need_less_margin():
    y, score = people(600, n_samples=2, spread=0.9)
    rates = count_identity_rates(score, PairSampler(y), y, [0.001], weighting="identities")
    learned = Inequality(rates.resampler(), rates.n_units, 0.95)
    criterion = regular_criterion(learned, 0.001, rates.n_units, rates.n_identity_pairs)
    assert criterion.critical == pytest.approx(criterion.quantile ** (1.0 + math.sqrt(300 / 600) + learned.tails) * 0.001)


def test_few_people_leave_room_for_those_who_are_absent():
    y, equal = people(150, spread=0.1)
    of_equal = count_identity_rates(equal, PairSampler(y), y, [0.003], weighting="identities")
    few = regular_criterion(Inequality(of_equal.resampler(), [150], 0.95), 0.003, [150], of_equal.n_identity_pairs)
    assert few.critical == pytest.approx(150 / (534 * math.log(20)) * 0.003)
    assert few.critical < few.quantile**2 * 0.003


def test_more_confidence_a_lower_target_and_more_unequal_people_are_stricter():
    plain = report_of(150)
    assert report_of(150, confidence=0.99).threshold > plain.threshold
    assert report_of(150, max_fpr=0.005).threshold > plain.threshold
    assert report_of(300, max_fpr=0.001, spread=0.9).fpr < report_of(300, max_fpr=0.001).fpr
    assert report_of(600).fpr > plain.fpr
    assert report_of(150) == plain


def test_the_promise_names_its_assumption_and_the_bound_without_it():
    report = report_of(150)
    assert report.assume == "regular"
    assert report.free_bound == pytest.approx(float(chernoff_bound(report.fpr, 75)))
    assert (
        "FPR <= 0.01 per pair of identities with 95 % confidence if identities differ regularly; without that assumption <= 0.0"
        in str(report)
    )
    free = report_of(700, assume="none", n_samples=2)
    assert free.free_bound <= 0.01
    assert "without an assumption about how identities differ" in free.promise


def test_a_wolf_is_refused():
    with pytest.raises(ValueError, match=r"150 identities are too few, or too unequal .* about [\d,]+ identities"):
        report_of(150, wolves=1)


@pytest.mark.parametrize(
    ("n", "assume", "message"),
    [
        (40, "none", r"without an assumption from 40 identities.* about 597 identities, or max_fpr=0\.14, or assume='regular'"),
        (20, "regular", "20 identities are too few"),
        (40, "regular", r"40 identities are too few.* about \d+ identities"),
    ],
)
def test_too_few_people_are_refused(n, assume, message):
    with pytest.raises(ValueError, match=message):
        report_of(n, assume=assume)


def test_what_a_refusal_offers_is_granted():
    with pytest.raises(ValueError, match="or max_fpr=") as refused:
        report_of(80, max_fpr=0.001)
    possible = float(str(refused.value).rsplit("max_fpr=", 1)[1].rstrip("."))
    assert 0.001 < possible < 0.02
    report_of(80, max_fpr=possible)


def test_how_many_identities_are_needed():
    assert n_identities_for(0.01) == 598
    assert float(chernoff_bound(0.0, 299)) <= 0.01 < float(chernoff_bound(0.0, 298))
    assert n_identities_for(0.01, assume="regular") == 39
    assert free_criterion(FreeBound(299, 598 * 597 // 2), 0.01, 0.95, 598).critical >= 0.0
    assert free_criterion(FreeBound(298, 596 * 595 // 2), 0.01, 0.95, 596).critical < 0.0


# --- sessions, subgroups, weighting, subsampling


def test_shared_sessions_are_refused_and_own_sessions_change_nothing():
    y, score = people(100)
    own = y * 3 + np.tile(np.arange(3), 100)
    plain = choose_threshold(score, PairSampler(y), y, Goal(max_fpr=0.01))
    assert choose_threshold(score, PairSampler(y), y, Goal(max_fpr=0.01), sessions=own) == plain
    with pytest.raises(ValueError, match="identities share 4 sessions, but 38 are needed"):
        choose_threshold(score, PairSampler(y), y, Goal(max_fpr=0.01), sessions=np.arange(300) % 4)
    with pytest.raises(ValueError, match="without an assumption from 100 identities"):
        choose_threshold(score, PairSampler(y), y, Goal(max_fpr=0.01, assume="none"), sessions=np.arange(300) % 4)
    many = choose_threshold(score, PairSampler(y), y, Goal(max_fpr=0.05), sessions=np.arange(300) % 97)
    assert many.n_sessions == 97
    assert many.threshold >= choose_threshold(score, PairSampler(y), y, Goal(max_fpr=0.05)).threshold
    assert "in new sessions" in many.promise


def test_subgroups_take_the_strictest_threshold():
    y, score = people(240)
    by = np.where(y < 120, "a", "b")
    report = report_of(240, by=by)
    alone = [choose_threshold(score, PairSampler(y).restrict(by == name), y, Goal(max_fpr=0.01)) for name in "ab"]
    assert report.threshold == max(one.threshold for one in alone)
    assert report.subgroup == max(zip("ab", alone, strict=True), key=lambda pair: pair[1].threshold)[0]
    assert "within each subgroup" in report.promise
    with pytest.raises(ValueError, match=r"Within by='b': .* 20 identities are too few"):
        report_of(240, by=np.where(y < 220, "a", "b"))
    with pytest.raises(ValueError, match="by= needs a guarantee"):
        report_of(240, by=by, confidence=None)


def test_identities_with_few_samples_count_as_much_as_others():
    """The confusable people have one sample, the others ten: per pair of samples their errors would hardly show."""
    rng = np.random.default_rng(0)
    counts = np.where(np.arange(200) < 40, 1, 10)
    y = np.repeat(np.arange(200), counts)
    base = np.where(y < 40, 1.0, 0.0) + 0.1 * rng.normal(size=len(y))

    def score(i, j):
        return base[i] + base[j] + np.where(y[i] == y[j], 5.0, 0.0)

    by_identity = choose_threshold(score, PairSampler(y), y, Goal(max_fpr=0.05))
    by_sample = choose_threshold(score, PairSampler(y), y, Goal(max_fpr=0.05, weighting="samples"))
    assert by_identity.threshold > by_sample.threshold
    assert by_sample.free_bound == 1.0


def test_subsampled_pairs_keep_the_weighting():
    y, score = people(300, n_samples=2)
    full = choose_threshold_by(score, PairSampler(y), y, Goal(max_fpr=0.02))
    part = choose_threshold_by(score, PairSampler(y), y, Goal(max_fpr=0.02), n_pairs=100_000)
    assert part.n_different < full.n_different
    assert abs(part.threshold - full.threshold) < 0.15
    counts = np.where(np.arange(60) < 30, 2, 20)
    sampler = PairSampler(np.repeat(np.arange(60), counts))
    drawn = sampler.limit(20_000, np.random.default_rng(0), positive_fraction=0.2, weighting="identities")
    different = sampler.labels[drawn.first[~drawn.same]]
    assert np.mean(different < 30) == pytest.approx(0.5, abs=0.02)


def test_identity_pairs_are_subsampled_without_those_that_never_pair():
    y = np.repeat(np.arange(50), 4)
    apart = np.tile(np.arange(2), 100)
    drawn = PairSampler(y, never_pair=apart).limit(
        4000, np.random.default_rng(0), positive_fraction=0.2, weighting="identities"
    )
    assert (apart[drawn.first] != apart[drawn.second]).all()
    assert (y[drawn.first[~drawn.same]] != y[drawn.second[~drawn.same]]).all()
