"""Counting comparisons in blocks: the same as from a list of all scores."""

from __future__ import annotations

import numpy as np
import pytest

import simtree.evaluation._counting as comparisons
from simtree.evaluation._counting import SAME_SHARE, count_comparisons
from simtree.evaluation._intervals import tally_pairs
from simtree.metrics import cllr, d_prime, eer, min_cllr, roc_curve, searches
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs

FMR = np.array([0.1, 0.01])


def problem(seed, digits=1):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(12), rng.integers(1, 7, 12)))
    x = rng.normal(size=12)[y] + 0.5 * rng.normal(size=len(y))
    table = np.round(-np.abs(x[:, None] - x[None, :]) + 0.3 * (x[:, None] + x[None, :]), digits)
    return y, table


def counted_with(y, table, source=None, **options):
    options = {"fpr": FMR, "at": np.empty(0), **options}
    return count_comparisons(lambda i, j: table[i, j], source or PairSampler(y), PairSampler(y).labels, **options)


@pytest.mark.parametrize("few", [0, 1 << 22])
@pytest.mark.parametrize("chunk", [1, 50, 1 << 20])
@pytest.mark.parametrize("digits", [1, 9])
def test_blocks_count_what_a_list_counts(monkeypatch, few, chunk, digits):
    monkeypatch.setattr(comparisons, "MAX_KEPT_SCORES", few)
    monkeypatch.setattr(comparisons, "BLOCK_SIZE", chunk)
    y, table = problem(0, digits)
    pairs = PairSampler(y).all_pairs()
    scores = table[pairs.first, pairs.second]
    found = counted_with(y, table)
    exact = roc_curve(scores, pairs.same)
    assert found.roc.auc() == pytest.approx(exact.auc())
    assert eer(found.roc) == pytest.approx(eer(exact))
    for target in (0.0, 0.01, 0.1, 0.3):
        assert found.roc.at(target) == pytest.approx(exact.at(target))
    assert found.d_prime == pytest.approx(d_prime(scores, pairs.same))
    assert found.cllr == pytest.approx(cllr(scores, pairs.same))
    assert found.min_cllr == pytest.approx(min_cllr(scores, pairs.same))
    assert found.histogram.same.sum() == pairs.n_same
    assert found.histogram.different.sum() == len(pairs) - pairs.n_same
    for tally, kind in ((found.tallies.same, pairs.same), (found.tallies.different, ~pairs.same)):
        accepted = scores[kind][:, None] >= tally.thresholds
        np.testing.assert_array_equal(tally.totals[:-1], accepted.sum(axis=0))
        assert tally.rates[-1] == pytest.approx(exact.auc())  # the mean placement, of either kind
    classes = PairSampler(y).labels
    whole = tally_pairs(scores, pairs.same, classes[pairs.first], classes[pairs.second])
    np.testing.assert_allclose(found.tallies.influence().variance()[0], whole.influence().variance()[0])


@pytest.mark.parametrize("chunk", [1, 50, 1 << 20])
@pytest.mark.parametrize("digits", [0, 9])
def test_searches_are_those_of_the_whole_matrix(monkeypatch, chunk, digits):
    monkeypatch.setattr(comparisons, "BLOCK_SIZE", chunk)
    y, table = problem(1, digits)
    found = counted_with(y, table).searches.found()
    for probe in range(len(y)):
        others = np.arange(len(y)) != probe
        alone = searches(table[probe : probe + 1, others], y[probe : probe + 1], y[others])
        assert (found.mated[probe], found.nonmated[probe], found.ranks[probe]) == tuple(column[0] for column in alone)


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_given_pairs_are_counted_by_unit_in_any_order(monkeypatch, chunk):
    monkeypatch.setattr(comparisons, "BLOCK_SIZE", chunk)
    y, table = problem(2)
    pairs = PairSampler(y).all_pairs()
    shuffled = pairs.take(np.random.default_rng(0).permutation(len(pairs)))
    swapped = IndexPairs(shuffled.second, shuffled.first, shuffled.same)
    whole, found = counted_with(y, table), counted_with(y, table, swapped)
    assert found.roc.auc() == pytest.approx(whole.roc.auc())
    assert found.searches is None
    np.testing.assert_allclose(found.tallies.influence().units, whole.tallies.influence().units, atol=1e-12)
    np.testing.assert_allclose(found.tallies.different.by_unit.weights, whole.tallies.different.by_unit.weights)


def test_more_scores_than_edges_keep_exact_counts(monkeypatch):
    monkeypatch.setattr(comparisons, "MAX_CURVE_EDGES", 8)
    y, table = problem(3, 9)
    pairs = PairSampler(y).all_pairs()
    scores = table[pairs.first, pairs.second]
    roc = counted_with(y, table).roc
    for fpr, tpr, threshold in zip(roc.fpr[1:], roc.tpr[1:], roc.thresholds[1:], strict=True):
        assert fpr == np.mean(scores[~pairs.same] >= threshold)
        assert tpr == np.mean(scores[pairs.same] >= threshold)


@pytest.mark.parametrize("seed", range(20))
def test_an_equal_error_rate_between_two_same_scores(monkeypatch, seed):
    monkeypatch.setattr(comparisons, "EDGES_AT_EER", 4)
    rng = np.random.default_rng(seed)
    scores, same = rng.normal(size=60), np.arange(60) < 3
    scores[same] += 1.0
    numbers = np.arange(60, dtype=np.int32)
    source = IndexPairs(2 * numbers, 2 * numbers + np.int32(1), same)
    found = count_comparisons(lambda i, j: scores[i // 2], source, np.arange(120), fpr=FMR, at=np.empty(0))
    exact = roc_curve(scores, same)
    assert eer(found.roc)[:3] == pytest.approx(eer(exact)[:3])
    assert np.mean(scores[~same] >= eer(found.roc).threshold) == np.mean(scores[~same] >= eer(exact).threshold)


def test_pairs_within_subgroups_are_counted():
    y, table = problem(4)
    group = np.arange(len(y)) % 3
    pairs = PairSampler(y).all_pairs()
    scores = table[pairs.first, pairs.second]
    found = counted_with(y, table, subgroups=group)
    for number, tallies in enumerate(found.subgroups):
        within = (group[pairs.first] == number) & (group[pairs.second] == number)
        for tally, kind in ((tallies.same, within & pairs.same), (tallies.different, within & ~pairs.same)):
            assert tally.n_pairs == kind.sum()
            np.testing.assert_array_equal(tally.totals[:-1], (scores[kind][:, None] >= tally.thresholds).sum(axis=0))


def test_scores_must_be_finite():
    y, table = problem(5)
    table[0, :] = table[:, 0] = np.nan
    with pytest.raises(ValueError, match="scores must be finite"):
        counted_with(y, table)


def test_a_sample_of_pairs():
    sampler = PairSampler(np.repeat(np.arange(30), 10))
    assert sampler.limit(None, np.random.default_rng(0), positive_fraction=SAME_SHARE) is sampler
    assert sampler.limit(sampler.n_pairs, np.random.default_rng(0), positive_fraction=SAME_SHARE) is sampler
    drawn = sampler.limit(1_000, np.random.default_rng(0), positive_fraction=SAME_SHARE)
    assert len(drawn) == 1_000
    assert drawn.n_same == 200


@pytest.mark.parametrize("few", [0, 1 << 22])
@pytest.mark.parametrize("chunk", [1, 50, 1 << 20])
def test_pairs_that_share_a_value_are_not_counted(monkeypatch, few, chunk):
    monkeypatch.setattr(comparisons, "MAX_KEPT_SCORES", few)
    monkeypatch.setattr(comparisons, "BLOCK_SIZE", chunk)
    y, table = problem(0)
    sitting = np.random.default_rng(5).integers(0, 3, len(y))
    source = PairSampler(y, never_pair=sitting)
    pairs = source.all_pairs()
    assert len(pairs) < len(PairSampler(y).all_pairs())
    found = counted_with(y, table, source)
    exact = roc_curve(table[pairs.first, pairs.second], pairs.same)
    assert found.roc.auc() == pytest.approx(exact.auc())
    assert (found.tallies.same.n_pairs, found.tallies.different.n_pairs) == (pairs.n_same, len(pairs) - pairs.n_same)
    assert found.histogram.different.sum() == len(pairs) - pairs.n_same
    # A search does not meet what it may not be compared with.
    expected = searches(np.where(sitting[:, None] == sitting, -np.inf, table), y, y)
    result = found.searches.found()
    np.testing.assert_array_equal(result.mated, expected.mated)
    np.testing.assert_array_equal(result.nonmated, expected.nonmated)
    np.testing.assert_array_equal(result.ranks, np.where(np.isfinite(expected.mated), expected.ranks, 0))
