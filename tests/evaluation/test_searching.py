"""Searches of each sample among all others: intervals by leaving out a unit and by small galleries, against doing just that."""

from __future__ import annotations

import numpy as np
import pytest

from simtree import evaluate
from simtree.evaluation._search_rates import N_GALLERIES, gallery_variance, threshold_range
from simtree.evaluation._searching import ProbeCounts, SearchCounts
from simtree.metrics import fnir_at_fpir, searches
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs


class Known:
    """A model that looks scores up in a table."""

    def __init__(self, table):
        self.table = table

    def pair_score(self, pairs, X):
        return self.table[X[pairs[:, 0], 0].astype(int), X[pairs[:, 1], 0].astype(int)]


def problem(seed=0, digits=1, n_identities=9):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(n_identities), rng.integers(1, 5, n_identities)))
    x, hub = rng.normal(size=n_identities)[y], rng.normal(size=n_identities)[y]
    table = -np.abs(x[:, None] - x) + 0.5 * (hub[:, None] + hub) + rng.normal(size=(len(y), len(y)))
    return y, np.round(table + table.T, digits)


def counted(y, table, **options):
    sampler = PairSampler(y)
    same = sampler.same_pairs()
    options = {"by_sample": False, "by_identity": False, **options}
    search = SearchCounts(*sampler.members(), same, table[same.first, same.second], **options)
    for block in sampler.iter_different(sampler.labels, 10):
        search.add(block, table[block.first, block.second])
    return search


def plain(y, table):
    """Searches among all other samples, from the whole table."""
    table = table.copy()
    np.fill_diagonal(table, -np.inf)
    found = searches(table, y, y)
    return found._replace(ranks=np.where(np.isfinite(found.mated), found.ranks, 0))


def rates(y, table, threshold, weights):
    found = plain(y, table)
    enrolled = found.ranks > 0
    hits = (found.ranks == 1) & (found.mated >= threshold)
    return weights @ hits / (weights @ enrolled), weights @ (found.nonmated >= threshold) / weights.sum()


@pytest.mark.parametrize("digits", [0, 6])
@pytest.mark.parametrize("by_identity", [False, True])
@pytest.mark.parametrize("by_sample", [False, True])
def test_rates_without_each_unit_are_those_of_the_remaining_samples(by_sample, by_identity, digits):
    y, table = problem(digits=digits)
    search = counted(y, table, by_sample=by_sample, by_identity=by_identity)
    labels = PairSampler(y).labels
    units = np.arange(len(y)) if by_sample else labels
    weights = 1.0 / np.bincount(labels)[labels] if by_identity else np.ones(len(y))
    for threshold in (-np.inf, np.median(table), np.quantile(table, 0.9)):
        hits, hits_without = search._hits(threshold)
        alarms, alarms_without = search._alarms(threshold)
        assert (hits, alarms) == pytest.approx(rates(y, table, threshold, weights))
        for unit in range(units.max() + 1):
            left = units != unit
            expected = rates(y[left], table[np.ix_(left, left)], threshold, weights[left])
            assert (hits_without[unit], alarms_without[unit]) == pytest.approx(expected)


def test_the_largest_hub_is_the_best_wrong_match_of_most_searches():
    y, table = problem()
    search = counted(y, table)
    others = np.where(y[:, None] == y, -np.inf, table)
    best = y[others.argmax(axis=1)]
    assert search.largest_hub() == pytest.approx(np.bincount(best).max() / len(y))


def best_in_galleries(y, table, search):
    """Best scores of others in each small gallery, from the whole table."""
    labels = PairSampler(y).labels
    others = np.where(labels[:, None] == labels, -np.inf, table)
    gallery = search._galleries._of_units[np.arange(len(y)) if search._by_sample else labels]
    return np.column_stack([np.where(gallery == number, others, -np.inf).max(axis=1) for number in range(N_GALLERIES)])


@pytest.mark.parametrize("digits", [0, 6])
@pytest.mark.parametrize("by_sample", [False, True])
def test_small_galleries_have_the_best_scores_of_their_units(by_sample, digits):
    y, table = problem(digits=digits, n_identities=20)
    search = counted(y, table, by_sample=by_sample)
    n_units = np.bincount(search._galleries._of_units)
    assert len(n_units) == N_GALLERIES
    assert np.ptp(n_units) <= 1
    order = PairSampler(y).members()[0]
    np.testing.assert_array_equal(search._galleries.best.T, best_in_galleries(y, table, search)[order])


def test_small_galleries_are_matched_to_the_entire_one():
    """All small galleries together have the rates of the entire one, and the order within them is kept."""
    y, table = problem(digits=9, n_identities=24)
    search = counted(y, table)
    best, small = search._nonmated.best, search._galleries.best.T
    matched = search._galleries.matched(best)
    for threshold in np.sort(best):
        # Both samples of a pair may have its score as their best: they stay equal, one of them may be one rank too high.
        assert np.mean(matched >= threshold) == pytest.approx(np.mean(best >= threshold), abs=1.5 / matched.size)
    assert (np.diff(matched.ravel()[np.argsort(small.ravel())]) >= 0.0).all()


def test_equal_scores_of_small_galleries_stay_equal():
    y, table = problem(digits=0, n_identities=24)
    search = counted(y, table)
    small, matched = search._galleries.best.T, search._galleries.matched(search._nonmated.best)
    for value in np.unique(small):
        assert len(np.unique(matched[small == value])) == 1


def test_gallery_variance_by_hand():
    """Two galleries and four searches of two identities, in the same and in different galleries."""
    units, weights = np.array([0, 0, 1, 1]), np.ones(4)
    all_in_one = np.array([[True, False]] * 4)
    # Rates of 1 and 0 have a variance of 1/2. Each identity alone moves the rate by 1/2, which is half of that.
    assert gallery_variance(all_in_one, units, weights) == pytest.approx(0.25)
    assert gallery_variance(all_in_one, units, 3.0 * weights) == pytest.approx(0.25)
    # Searches of one identity only, or of both in opposite directions: the galleries do not differ.
    assert gallery_variance(all_in_one & (units == 0)[:, None], units, weights) == 0.0
    assert gallery_variance(all_in_one ^ (units == 0)[:, None], units, weights) == 0.0
    # The second identity has half of the weight of the first: of 8 / 3 (its own part) and 1 / 3 (that of the second).
    uneven = np.array([1.0, 1.0, 0.5, 0.5])
    assert gallery_variance(all_in_one, units, uneven) == pytest.approx(2 * (1.5**2 - 1.0 - 0.5**2) / 9)


@pytest.mark.parametrize("by_identity", [False, True])
def test_the_variance_is_the_larger_one_of_the_jackknife_and_small_galleries(by_identity):
    larger = set()
    for seed in range(6):
        y, table = problem(seed, digits=9, n_identities=16)
        search = counted(y, table, by_identity=by_identity)
        order = PairSampler(y).members()[0]
        labels = PairSampler(y).labels[order]
        weights = 1.0 / np.bincount(labels)[labels] if by_identity else np.ones(len(y))
        found = plain(y[order], table[np.ix_(order, order)])
        small = search._galleries.matched(found.nonmated)
        n = 16
        for threshold in (-np.inf, np.quantile(table, 0.9)):
            enrolled = weights * (found.ranks > 0)
            hit = (found.ranks == 1) & (found.mated >= threshold)
            in_small = (found.mated[:, None] > small) & (found.mated >= threshold)[:, None]
            alarm = found.nonmated >= threshold
            for rate, outcome, in_galleries, weight, left_out in (
                (search._rate_of_hits(threshold), hit, in_small, enrolled, search._hits(threshold)[1]),
                (search._rate_of_alarms(threshold), alarm, small >= threshold, weights, search._alarms(threshold)[1]),
            ):
                assert rate.value == pytest.approx(np.average(outcome, weights=weight))
                jackknife = (n - 1) / n * np.sum((left_out - left_out.mean()) ** 2)
                sums = np.bincount(labels, weight * (outcome - rate.value)) / weight.sum()
                of_searches = max(n / (n - 1) * np.sum(sums**2), rate.value * (1 - rate.value) / len(y))
                both = of_searches + gallery_variance(in_galleries, labels, weight)
                assert rate.variance == pytest.approx(max(jackknife, both))
                assert rate.shared == pytest.approx(1.0 - of_searches / rate.variance if rate.variance else 0.0)
                larger.add(bool(jackknife > both))
    assert larger == {False, True}


def test_threshold_range_by_hand():
    """Ten alarms, target 0.2: the FPIR of the sample at the true threshold lies within two standard errors."""
    alarms, shares = np.arange(10.0, 0.0, -1.0), np.arange(1, 11) / 10
    # From 0.13 to 0.29 and from 0.08, less than one alarm, to 0.40.
    assert threshold_range(alarms, shares, 0.2, 0.25, 0.0, 2.0) == (10.0, 8.0)
    assert threshold_range(alarms, shares, 0.2, 0.5, 0.0, 2.0) == (np.inf, 6.0)
    # From 0.12, or from 0.08 if the gallery causes all of the error, which makes the distance 1.72 times as long.
    assert threshold_range(alarms, shares, 0.2, 0.3, 0.0, 2.0) == (10.0, 7.0)
    assert threshold_range(alarms, shares, 0.2, 0.3, 1.0, 2.0) == (np.inf, 7.0)
    assert threshold_range(alarms, shares, 0.2, np.inf, 0.0, 2.0) == (np.inf, 1.0)


@pytest.mark.parametrize("by_sample", [False, True])
def test_intervals_of_searches_depend_on_the_order_of_scores_only(by_sample):
    y, table = problem(2, digits=9, n_identities=20)
    plain_scores, increased = (counted(y, scores, by_sample=by_sample) for scores in (table, np.exp(table)))
    np.testing.assert_allclose(plain_scores.rank1_interval(0.95)[1], increased.rank1_interval(0.95)[1])
    np.testing.assert_allclose(plain_scores.fnir_intervals([0.1, 0.3], 0.95), increased.fnir_intervals([0.1, 0.3], 0.95))


@pytest.mark.parametrize("by_sample", [False, True])
@pytest.mark.parametrize("digits", [-2, 0, 9])
def test_intervals_of_searches_contain_their_rates(digits, by_sample):
    """With few identities and equal scores, too: all scores are equal with -2 digits."""
    for n_identities in (3, 12):
        y, table = problem(3, digits=digits, n_identities=n_identities)
        search = counted(y, table, by_sample=by_sample)
        rate, (low, high) = search.rank1_interval(0.95)
        assert 0.0 <= low <= rate <= high <= 1.0
        assert low < high
        targets = [0.001, 0.1, 0.5]
        for value, (low, high) in zip(
            fnir_at_fpir(plain(y, table), targets), search.fnir_intervals(targets, 0.95), strict=True
        ):
            assert 0.0 <= low <= value + 1e-12
            assert value - 1e-12 <= high <= 1.0


def test_one_best_wrong_match_of_all_searches_makes_intervals_wide():
    """Without the hub all searches succeed, so other galleries may have any rate between 0 and 1."""
    y = np.repeat(np.arange(30), 2)
    table = np.random.default_rng(0).normal(size=(60, 60)) / 10
    table = table + table.T + 3.0 * (y[:, None] == y)
    hub = y == 7
    table[np.ix_(hub, ~hub)] += 2.9
    table[np.ix_(~hub, hub)] += 2.9
    search = counted(y, table)
    rate, (low, high) = search.rank1_interval(0.95)
    assert 0.3 < rate < 0.7
    assert low < 0.05
    assert high > 0.95


def test_evaluation_has_intervals_of_rank_1_and_of_the_fnir():
    y, table = problem(1, digits=6, n_identities=20)
    X = np.arange(len(y))[:, None].astype(float)
    result = evaluate(Known(table), X, y)
    assert result.rank1.value == result.cmc[0]
    assert 0.0 <= result.rank1.low < result.rank1.value < result.rank1.high <= 1.0
    assert list(result.fnir_intervals) == list(result.fnir) == [0.1]
    estimate = result.fnir_intervals[0.1]
    assert estimate.value == result.fnir[0.1] == pytest.approx(fnir_at_fpir(plain(y, table), 0.1))
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    assert estimate.low < estimate.high
    assert f"rank 1:   {result.rank1}" in str(result)
    assert f"FNIR {estimate} at FPIR 0.1" in str(result)


@pytest.mark.parametrize("by_identity", [False, True])
@pytest.mark.parametrize("by_sample", [False, True])
def test_rates_of_probes_without_each_unit_are_those_of_the_remaining_rows(by_sample, by_identity):
    rng = np.random.default_rng(0)
    probes, gallery = rng.permutation(np.r_[np.arange(12), rng.integers(0, 12, 20)]), np.arange(3, 12)  # 0 to 2: strangers
    hub = rng.normal(size=len(gallery))
    table = np.round(2.0 * (probes[:, None] == gallery) + hub + rng.normal(size=(len(probes), len(gallery))), 1)
    identities = np.concatenate([probes, gallery])
    search = ProbeCounts(len(probes), identities, by_sample=by_sample, by_identity=by_identity)
    first, second = np.divmod(rng.permutation(table.size), len(gallery))
    pairs = IndexPairs(first.astype(np.int32), (second + len(probes)).astype(np.int32), probes[first] == gallery[second])
    same = pairs.same_pairs()
    search.add_mated(same, table[same.first, same.second - len(probes)])
    for block in pairs.iter_different(identities, 40):
        search.add(block, table[block.first, block.second - len(probes)])
    assert_same = np.testing.assert_array_equal
    expected = searches(table, probes, gallery)
    assert_same(search.found().ranks, np.where(np.isfinite(expected.mated), expected.ranks, 0))
    assert_same(search.found().nonmated, expected.nonmated)

    units = np.arange(len(identities)) if by_sample else identities
    weights = 1.0 / np.bincount(probes)[probes] if by_identity else np.ones(len(probes))

    def rates(kept, threshold):
        own, templates = kept[: len(probes)], kept[len(probes) :]
        found = searches(table[np.ix_(own, templates)], probes[own], gallery[templates])
        hits = (found.ranks == 1) & (found.mated >= threshold) & np.isfinite(found.mated)
        left = weights[own]
        return left @ hits / (left @ np.isfinite(found.mated)), left @ (found.nonmated >= threshold) / left.sum()

    for threshold in (-np.inf, np.median(table), np.quantile(table, 0.9)):
        (hits, hits_without), (alarms, alarms_without) = search._hits(threshold), search._alarms(threshold)
        assert (hits, alarms) == pytest.approx(rates(units >= 0, threshold))
        for unit in range(units.max() + 1):
            assert (hits_without[unit], alarms_without[unit]) == pytest.approx(rates(units != unit, threshold))
    others = np.where(probes[:, None] == gallery, -np.inf, table)
    division = search._galleries._of_units[units[len(probes) :]]
    best = [np.where(division == number, others, -np.inf).max(axis=1) for number in range(N_GALLERIES)]
    assert_same(search._galleries.best, best)
