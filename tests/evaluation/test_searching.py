"""Searches of each sample among all others: intervals by leaving out a unit, against really leaving it out."""

from __future__ import annotations

import numpy as np
import pytest

from simtree import evaluate
from simtree.evaluation._searching import SearchCounts
from simtree.metrics import fnir_at_fpir, searches
from simtree.pairs._sampling import PairSampler


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
