"""Intervals of ROC curves whose pairs share points."""

from __future__ import annotations

import numpy as np
import pytest

from simtree.experiments.intervals import point_intervals
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs import PairSampler

FPR = [0.1, 0.02]
N_POINTS = 120


def scored(seed, n_pairs, effect):
    """Pairs of points whose scores have noise of the pair, and noise of each point that all its pairs share."""
    rng = np.random.default_rng(seed)
    pairs = PairSampler(np.arange(N_POINTS) % 3).draw(n_pairs, rng)
    of_points = effect * rng.normal(size=N_POINTS)
    scores = 1.5 * pairs.same + rng.normal(size=len(pairs)) + of_points[pairs.first] + of_points[pairs.second]
    return np.round(scores, 2), pairs  # with ties


def figures(scores, pairs):
    roc = roc_curve(scores, pairs.same)
    return np.array([roc.auc(), *tpr_at_fpr(roc, FPR)])


@pytest.mark.parametrize(("n_pairs", "effect"), [(1_000, 0.0), (1_000, 0.7), (7_000, 0.7)])
def test_intervals_are_as_wide_as_the_figures_vary(n_pairs, effect):
    found = np.array([figures(*scored(seed, n_pairs, effect)) for seed in range(300)])
    ends = []
    for seed in range(60):
        scores, pairs = scored(seed, n_pairs, effect)
        ends.append(point_intervals(scores, pairs.same, pairs.first, pairs.second, FPR))
    ratio = np.mean(np.ptp(ends, axis=2), axis=0) / (3.92 * found.std(axis=0))
    assert np.all((ratio > 0.8) & (ratio < 1.25)), ratio
    truth = found.mean(axis=0)
    covered = np.mean((np.array(ends)[:, :, 0] <= truth) & (truth <= np.array(ends)[:, :, 1]), axis=0)
    assert np.all(covered > 0.85), covered


def test_the_middle_is_the_figure_itself():
    scores, pairs = scored(0, 1_000, 0.5)
    ends = point_intervals(scores, pairs.same, pairs.first, pairs.second, FPR)
    np.testing.assert_allclose(ends.mean(axis=1), figures(scores, pairs))


def test_too_few_points():
    with pytest.raises(ValueError, match="held no pair of each kind; give more points"):
        point_intervals([1.0, 2.0], [True, True], np.array([0, 1]), np.array([1, 2]), FPR, n_draws=3)
