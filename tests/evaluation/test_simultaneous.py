"""Bands that hold at all thresholds together."""

from __future__ import annotations

import numpy as np
import pytest

from bench_bands import one_run
from simtree.evaluation import evaluate, evaluate_scores, tally_pairs
from simtree.evaluation._simultaneous import pointwise_confidence, simultaneous_band


@pytest.fixture(scope="module")
def tallies():
    rng = np.random.default_rng(0)
    first, second = np.triu_indices(60, k=1)
    people = np.repeat(np.arange(20), 3)
    same = people[first] == people[second]
    scores = 2.0 * same + rng.normal(size=len(same)) + rng.normal(size=20)[people[first]]
    return tally_pairs(scores, same, people[first], people[second])


def test_a_band_contains_the_intervals_of_single_thresholds(tallies):
    band = simultaneous_band(tallies, 0.9)
    assert 0.95 <= pointwise_confidence(tallies, 0.9) < 1.0
    for ends, single in zip((band.fpr_interval, band.tpr_interval), tallies.rate_intervals(0.9), strict=True):
        inside = (ends[:, 0] <= single[:, 0] + 1e-12) & (single[:, 1] <= ends[:, 1] + 1e-12)
        # Elsewhere a bound at another threshold has sharpened this one: rates are monotone.
        assert inside.mean() > 0.9
    for rate, ends in ((band.fpr, band.fpr_interval), (band.tpr, band.tpr_interval)):
        assert np.all((ends[:, 0] <= rate) & (rate <= ends[:, 1]))
        assert np.all(np.diff(ends, axis=0) >= 0.0)


def test_more_confidence_gives_a_wider_band_and_the_same_counts_the_same_band(tallies):
    narrow, wide, again = (simultaneous_band(tallies, confidence) for confidence in (0.8, 0.99, 0.8))
    assert np.all(wide.fpr_interval[:, 1] >= narrow.fpr_interval[:, 1])
    assert np.array_equal(narrow.tpr_interval, again.tpr_interval)


def test_separated_scores_leave_two_rates_without_an_error():
    first, second = np.triu_indices(8)
    tallies = tally_pairs((first == second) * 1.0, first == second, first, second)
    assert pointwise_confidence(tallies, 0.95) == pytest.approx(0.975)


def test_evaluate_returns_the_band_when_asked():
    rng = np.random.default_rng(1)
    u, v = np.triu_indices(30)
    scores, same = (u == v) + rng.normal(size=len(u)), u == v
    assert evaluate_scores(scores, same, identities=np.column_stack([u, v])).simultaneous is None

    class Negative:
        def pair_score(self, pairs, X):
            return -np.abs(X[pairs[:, 0], 0] - X[pairs[:, 1], 0])

    y = np.repeat(np.arange(12), 4)
    X = rng.normal(size=(12, 1))[y] + 0.1 * rng.normal(size=(48, 1))
    result = evaluate(Negative(), X, y, simultaneous=True)
    assert np.array_equal(result.simultaneous.thresholds, result.band.thresholds)
    assert np.array_equal(result.simultaneous.fpr, result.band.fpr)
    assert result.to_dict()["simultaneous"]["tpr"] == result.band.tpr.tolist()


@pytest.mark.slow
def test_a_band_holds_where_single_intervals_do_not():
    """Chance: 30 runs of a band that holds in 95 % leave fewer than 25 in one test of 200."""
    single, band = np.sum([one_run("normal 0.7", 40, seed) for seed in range(30)], axis=0)
    assert single < 20
    assert band >= 25
