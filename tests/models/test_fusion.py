"""Calibrated scores and their non-negative combination."""

from __future__ import annotations

import numpy as np
import pytest

from simtree.metrics import auc, roc_curve
from simtree.models._fusion import MAX_RATIO, Fusion, MonotoneMap, fit_fusion, fit_map, fit_weights


def scored(n=4_000, shift=1.5, seed=0):
    """Scores of same pairs around ``shift`` and of different pairs around zero: the ratio is shift * (score - shift / 2)."""
    rng = np.random.default_rng(seed)
    same = np.arange(n) < n // 4
    return rng.normal(size=n) + shift * same, same


def test_blocks_have_their_ratio_at_the_mean_of_their_scores():
    """By hand: with one pair of each kind added at both ends, 2 of 4 same and 1 of 4 different pairs are in the upper block."""
    fitted = fit_map(np.array([1.0, 2.0, 4.0, 6.0]), np.array([False, False, True, True]))
    np.testing.assert_allclose(fitted.knots, [1.5, 5.0])
    np.testing.assert_allclose(fitted.llr, np.log([1 / 3, 3.0]))
    assert fitted.slope == pytest.approx(np.log(9.0) / 3.5)


def test_the_map_finds_the_ratios_of_two_gaussians():
    scores, same = scored(40_000)
    at = np.array([-0.5, 0.75, 2.0])
    np.testing.assert_allclose(fit_map(scores, same).apply(at), 1.5 * (at - 0.75), atol=0.25)


def test_the_map_keeps_the_order_and_makes_no_ties():
    scores, same = scored()
    mapped = fit_map(scores, same).apply(scores)
    order = np.argsort(scores)
    assert (np.diff(mapped[order]) > 0.0).all()
    assert auc(roc_curve(mapped, same)) == auc(roc_curve(scores, same))


def test_ties_share_a_ratio_and_a_useless_score_has_a_constant_one():
    assert len(fit_map(np.zeros(4), np.array([True, False, True, False])).knots) == 1
    falling = fit_map(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, False, False]))
    assert np.ptp(falling.apply(np.linspace(-9.0, 9.0, 5))) == 0.0


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_extreme_scores_have_finite_ratios(size):
    scores, same = scored(400)
    fitted = fit_map(size * scores, same)
    far = fitted.apply(np.array([-1.7e308, 1.7e308]))
    assert np.isfinite(far).all()
    assert np.abs(far).max() <= MAX_RATIO
    assert far[0] < far[1]


def test_weights_find_the_planted_ones_and_are_never_negative():
    rng = np.random.default_rng(0)
    ratios = rng.normal(size=(60_000, 3)) * [2.0, 1.0, 1.0]
    truth = ratios @ [1.0, 2.0, -0.5] + 0.3
    same = rng.random(len(truth)) < 1.0 / (1.0 + np.exp(-truth))
    weights, _ = fit_weights(ratios, same, same.mean())
    np.testing.assert_allclose(weights[:2], [0.9, 1.8], atol=0.2)
    assert weights[2] == 0.0


@pytest.mark.parametrize("prior", [0.5, 0.01])
def test_a_duplicate_gets_no_more_weight_than_the_member_alone(prior):
    scores, same = scored(20_000)
    other = scores + np.random.default_rng(1).normal(size=len(scores))
    ratios = np.column_stack([scores, other])
    once, _ = fit_weights(ratios, same, prior)
    twice, _ = fit_weights(ratios[:, [0, 1, 0]], same, prior)
    assert twice[0] + twice[2] == pytest.approx(once[0], rel=0.01)
    assert twice[0] == pytest.approx(twice[2], rel=0.01)


def test_perfectly_separated_pairs_have_finite_weights():
    ratios = np.array([[5.0], [4.0], [-4.0], [-5.0]])
    weights, constant = fit_weights(ratios, np.array([True, True, False, False]), 0.5)
    assert np.isfinite(weights).all()
    assert np.isfinite(constant)


def test_a_fusion_is_better_than_its_members_where_they_err_differently():
    scores, same = scored(20_000)
    other, _ = scored(20_000, seed=1)
    fused = fit_fusion([scores, np.exp(other)], same, 0.1).apply([scores, np.exp(other)])
    assert auc(roc_curve(fused, same)) > max(auc(roc_curve(part, same)) for part in (scores, other)) + 0.03


def test_a_fused_score_is_a_log_likelihood_ratio():
    """Where it is near zero, the share of all same pairs is that of all different pairs."""
    scores, same = scored(40_000)
    near = np.abs(fit_fusion([scores, scores], same, 0.5).apply([scores, scores])) < 0.3
    assert near[same].mean() == pytest.approx(near[~same].mean(), rel=0.15)


def test_parts_never_overflow():
    monotone = MonotoneMap(np.array([0.0, 1.0]), np.array([0.0, 1e300]), 1e300)
    fusion = Fusion((monotone, monotone), np.array([1e6, 1e6]), 1e300)
    assert np.isfinite(fusion.apply([np.array([1e308]), np.array([1e308])])).all()
