"""Learned fusions: what they return, that they increase with each score, and that they find what data were made with."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp

from simtree.evaluation import LearnedFusion
from simtree.evaluation._learned_fusion import generalised_mean
from simtree.io import ModelFileError
from simtree.io._fields import Fields

STARTS = np.array([0, 1, 4])
FUSION = LearnedFusion(0.7, 3.0, 1.5, -0.5, 0.4, -0.3, (1.0, 3.0), (0.5, 6.0), 2.0)


def plain(fusion, scores, ages):
    """The fused score of one identity, in one line per term."""
    weights = np.exp2(-ages / fusion.half_life)
    mean = logsumexp(fusion.sharpness * scores, b=weights / weights.sum()) / fusion.sharpness
    number = np.log(np.clip(len(scores), *fusion.n_samples))
    newest = np.log1p(np.clip(ages.min(), *fusion.newest) / fusion.age_unit)
    return fusion.intercept + fusion.slope * mean + fusion.of_number * number + fusion.of_age * newest


def test_fused_scores_of_each_identity(rng):
    scores, ages = rng.normal(size=(5, 9)), 10.0 * rng.random(size=(5, 9))
    fused = FUSION(scores, STARTS, ages)
    for k, columns in enumerate(np.split(np.arange(9), STARTS[1:])):
        of_own = [plain(FUSION, *rows) for rows in zip(scores[:, columns], ages[:, columns], strict=True)]
        assert_allclose(fused[:, k], of_own, rtol=1e-12)
        alone = FUSION(np.ascontiguousarray(scores[:, columns]), np.array([0]), np.ascontiguousarray(ages[:, columns]))
        assert_array_equal(fused[:, k], alone[:, 0])


@pytest.mark.parametrize("sharpness", [0.0, 0.3, 50.0])
def test_means_lie_between_the_scores_and_increase(sharpness, rng):
    scores, ages = rng.normal(size=(20, 9)), 5.0 * rng.random(size=(20, 9))
    mean = generalised_mean(scores, STARTS, ages, sharpness, 2.0)
    assert (mean <= np.maximum.reduceat(scores, STARTS, axis=1) + 1e-12).all()
    assert (mean >= np.minimum.reduceat(scores, STARTS, axis=1) - 1e-12).all()
    for column in range(9):
        higher = scores.copy()
        higher[:, column] += rng.random(20)
        assert (generalised_mean(higher, STARTS, ages, sharpness, 2.0) >= mean - 1e-12).all()


def test_the_limits_are_the_mean_and_the_best_score(rng):
    scores = rng.normal(size=(3, 9))
    sizes = np.diff(STARTS, append=9)
    assert_allclose(generalised_mean(scores, STARTS, None, 0.0, math.inf), np.add.reduceat(scores, STARTS, axis=1) / sizes)
    assert_allclose(
        generalised_mean(scores, STARTS, None, 1e5, math.inf), np.maximum.reduceat(scores, STARTS, axis=1), atol=1e-4
    )


def test_what_the_data_were_made_with_is_found(rng):
    """Old samples say nothing, the fusion learns that; and its ratios are calibrated on new comparisons."""
    n, n_samples = 4000, 6

    def draw():
        same = rng.random(n) < 0.5
        ages = np.tile(np.arange(n_samples, dtype=np.float64) * 10.0, (n, 1))
        informative = ages < 15.0
        return rng.normal(size=(n, n_samples)) + np.where(same[:, None] & informative, 1.5, 0.0), ages, same

    scores, ages, same = draw()
    fusion = LearnedFusion.fit(scores.ravel(), n_samples * np.arange(n), same, ages=ages.ravel())
    assert 1.0 < fusion.half_life < 15.0
    assert fusion.slope > 0.0
    assert fusion.needs_time
    scores, ages, same = draw()
    probability = expit(fusion(scores.reshape(1, -1), n_samples * np.arange(n), ages.reshape(1, -1))[0])
    for low, high in ((0.1, 0.4), (0.4, 0.6), (0.6, 0.9)):
        chosen = (probability > low) & (probability < high)
        assert abs(same[chosen].mean() - probability[chosen].mean()) < 0.06
    with pytest.raises(ValueError, match="depends on the age of samples; give time="):
        fusion(scores, np.array([0]))


def test_the_number_of_samples_counts(rng):
    """The best of many scores is high for strangers, too."""
    sizes = rng.integers(1, 30, 3000)
    starts, same = np.append(0, np.cumsum(sizes)[:-1]), rng.random(3000) < 0.5
    scores = rng.normal(size=sizes.sum())
    scores[starts] += np.where(same, 3.0, 0.0)  # one sample fits
    fusion = LearnedFusion.fit(scores, starts, same)
    assert fusion.sharpness > 1.0
    assert not fusion.needs_time
    assert fusion.n_samples == (1.0, 29.0)
    assert LearnedFusion.fit(scores, starts, same) == fusion


def test_useless_scores_do_not_turn_around(rng):
    same = np.arange(200) < 100
    scores = np.where(same, -1.0, 1.0) + 0.1 * rng.normal(size=200)
    assert LearnedFusion.fit(scores, np.arange(200), same).slope == 0.0
    assert LearnedFusion.fit(np.zeros(200), np.arange(200), same).slope == 0.0


def test_state_round_trip():
    for fusion in (FUSION, LearnedFusion(0.0, math.inf, 0.0, 1.0)):
        assert LearnedFusion._from_state(Fields("file", "", fusion._get_state(), [])) == fusion


@pytest.mark.parametrize(
    "wrong",
    [
        {"slope": -1.0},
        {"half_life": 0.0},
        {"half_life": math.nan},
        {"sharpness": math.inf},
        {"n_samples": [3.0, 1.0]},
        {"newest": [1.0]},
    ],
)
def test_damaged_states_are_refused(wrong):
    with pytest.raises(ModelFileError, match=f"file is damaged: {next(iter(wrong))}"):
        LearnedFusion._from_state(Fields("file", "", {**FUSION._get_state(), **wrong}, []))
