"""Figures of folds, carried over to all samples."""

from __future__ import annotations

import numpy as np
import pytest

from simtree import AutoSimilarity, LogisticPosterior, PosteriorSimilarity
from simtree.evaluation import Estimate
from simtree.models import _comparison as comparison
from simtree.models import _presets as presets
from simtree.models._learning_curve import MAX_DOUBLINGS, LearningCurve

FIGURE = Estimate(0.6, 0.5, 0.7)


def test_odds_grow_by_the_same_factor_with_each_doubling():
    curve = LearningCurve.of([0.5, 0.5, 0.5], [0.6, 0.6, 0.6])  # odds of 1 and 1.5
    assert curve.carried(FIGURE, 2.0).value == pytest.approx(3.375 / 4.375)
    assert curve.carried(FIGURE, 99.0) == curve.carried(FIGURE, MAX_DOUBLINGS)


@pytest.mark.parametrize("n_doublings", [0.0, -1.0])
def test_nothing_changes_without_more_samples(n_doublings):
    assert LearningCurve.of([0.5, 0.4], [0.6, 0.6]).carried(FIGURE, n_doublings) == pytest.approx(FIGURE)


def test_more_samples_are_not_taken_to_be_worse():
    """If they are so by chance, the figure stays where it is, and its interval is wider."""
    found = LearningCurve.of([0.7, 0.5], [0.6, 0.5]).carried(FIGURE, 1.0)
    assert found.value == pytest.approx(FIGURE.value)
    assert found.low < FIGURE.low - 0.01
    assert found.high > FIGURE.high + 0.01


def test_the_interval_allows_for_a_curve_that_is_no_line():
    """Half of the gain, and half as much again, are within it even if all else is known."""
    curve = LearningCurve.of([0.5, 0.5], [0.6, 0.6])
    found = curve.carried(Estimate(0.6, 0.6, 0.6), 1.0)
    odds = np.array([found.low / (1.0 - found.low), found.high / (1.0 - found.high)])
    np.testing.assert_allclose(odds, 1.5 * 1.5 ** np.array([0.5, 1.5]))


def test_ends_of_an_interval_that_say_nothing_stay():
    found = LearningCurve.of([0.5], [0.6]).carried(Estimate(1.0, 0.0, 1.0), 1.0)
    assert (found.low, found.high) == (0.0, 1.0)
    assert found.value == pytest.approx(1.0)


def classes(rng, n, shift):
    y = np.arange(n) % 4
    return shift[y] + rng.normal(size=(n, shift.shape[1])), y


@pytest.mark.slow
def test_the_figure_is_nearer_to_a_test_of_what_was_fitted_on_all_samples(monkeypatch):
    """With few samples per feature, a third more samples tell."""
    linear = presets.Candidate(lambda size: PosteriorSimilarity(LogisticPosterior(C=10.0)))
    monkeypatch.setattr(presets, "CANDIDATES", {"linear": linear})
    plain, carried = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shift = 0.35 * rng.normal(size=(4, 40))
        X, y = classes(rng, 240, shift)
        model = AutoSimilarity(target_fpr=0.05, open_set=False, random_state=seed).fit(X, y)
        monkeypatch.setattr(comparison.Comparison, "with_half", lambda *arguments: None)
        in_folds = AutoSimilarity(target_fpr=0.05, open_set=False, random_state=seed).fit(X, y).performance_
        monkeypatch.undo()
        monkeypatch.setattr(presets, "CANDIDATES", {"linear": linear})
        test = model.score(*classes(rng, 1_500, shift))
        assert model.performance_["auc"].low <= test <= model.performance_["auc"].high
        plain.append(in_folds["auc"].value - test)
        carried.append(model.performance_["auc"].value - test)
    assert np.mean(plain) < -0.01
    assert abs(np.mean(carried)) < 0.5 * abs(np.mean(plain))
