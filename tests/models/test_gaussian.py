from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.stats import multivariate_normal

from simtree import GaussianSimilarity, MarginalQuantiles
from simtree.metrics import roc_curve
from simtree.models import _gaussian as gaussian
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs

WITHIN = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, -0.3], [0.0, -0.3, 0.5]])
BETWEEN = np.array([[2.0, 0.0, 0.4], [0.0, 0.5, 0.1], [0.4, 0.1, 1.0]])


def people(n_people, n_each, seed, within=WITHIN, between=BETWEEN):
    """Return samples that follow the assumed distribution."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_people), n_each)
    mean = np.arange(len(within))
    centres = rng.multivariate_normal(mean, between, n_people)
    return centres[y] + rng.multivariate_normal(np.zeros(len(within)), within, len(y)), y


def true_ratio(a, b, mean, within, between):
    """Return the log-likelihood ratio from the joint distribution of two samples."""
    total, nothing = within + between, np.zeros_like(between)
    joint = np.hstack([a, b])
    laws = [np.block([[total, cross], [cross.T, total]]) for cross in (between, nothing)]
    same, different = (multivariate_normal(np.tile(mean, 2), law).logpdf(joint) for law in laws)
    return same - different


def far_reaching(X, pairs, shrinkage):
    """A law that pulls no point back."""
    return gaussian.fit_two_covariance(X, pairs, shrinkage)._replace(reach=1e300)


def test_ratio_is_that_of_the_covariances():
    X, y = people(40, 5, 0)
    pairs = PairSampler(y).all_pairs()
    difference = X[pairs.first] - X[pairs.second]
    within, total = (0.5 * difference[kind].T @ difference[kind] / kind.sum() for kind in (pairs.same, ~pairs.same))
    law = far_reaching(X, pairs, 0.0)
    sides = law.sample_terms(X, None)
    a, b = sides[:50], sides[50:100]
    found = (a[:, :-1] * b[:, :-1]).sum(axis=1) + a[:, -1] + b[:, -1] + law.constant
    expected = true_ratio(X[:50], X[50:100], X.mean(axis=0), within, total - within)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_recovers_the_distribution_of_the_samples():
    X, y = people(2000, 4, 1)
    model = GaussianSimilarity(shrinkage=0.0).fit(X, y)
    X, y = people(200, 4, 2)
    rows = np.random.default_rng(0).integers(0, len(X), (5000, 2))
    expected = true_ratio(X[rows[:, 0]], X[rows[:, 1]], np.arange(3), WITHIN, BETWEEN)
    # Of all but the few points that are pulled back.
    assert np.quantile(np.abs(model.pair_score(rows, X) - expected), 0.85) < 0.25
    pairs = PairSampler(y).all_pairs()
    rows = np.column_stack([pairs.first, pairs.second])
    best = roc_curve(true_ratio(X[pairs.first], X[pairs.second], np.arange(3), WITHIN, BETWEEN), pairs.same).auc()
    assert roc_curve(model.pair_score(rows, X), pairs.same).auc() == pytest.approx(best, abs=0.003)
    ratios = eigh(BETWEEN, WITHIN, eigvals_only=True)[::-1]
    assert model.correlations_ == pytest.approx(ratios / (1 + ratios), abs=0.03)


def test_by_hand():
    """Same pairs differ by 2 (variance within: 2), different ones by 4 (both: 8); so r = 6/8, and points have variance 8."""
    X = np.array([[-3.0], [-1.0], [1.0], [3.0]])
    pairs = IndexPairs(np.array([0, 2, 0, 1]), np.array([1, 3, 2, 3]), np.array([True, True, False, False]))
    law = far_reaching(X, pairs, 0.0)
    assert law.correlations == pytest.approx([0.75])
    assert law.constant == pytest.approx(-0.5 * np.log(1 - 0.75**2))
    sides = law.sample_terms(X, None)
    s, t = -3 / 8**0.5, 1 / 8**0.5
    expected = (0.75 * s * t - 0.75**2 * (s * s + t * t) / 2) / (1 - 0.75**2)
    assert sides[0, 0] * sides[2, 0] + sides[0, 1] + sides[2, 1] == pytest.approx(expected)


def test_shrinkage_reduces_off_diagonal_entries():
    X, y = people(300, 4, 3)
    pairs = PairSampler(y).all_pairs()
    alone = gaussian.fit_two_covariance(X, pairs, 1.0)
    np.testing.assert_array_equal(np.count_nonzero(alone.matrix, axis=0), 1)


def test_far_samples_are_moved_within_reach_and_scores_are_bounded():
    X, y = people(100, 4, 4)
    model = GaussianSimilarity().fit(X, y)
    lengths = np.linalg.norm(model._model._replace(reach=1e300).project(X), axis=1)
    assert np.mean(lengths > model._model.reach) == pytest.approx(0.05)
    far = np.random.default_rng(0).normal(size=(50, 3)) * 1e6
    for factor in (1e3, 1e150, 1e300):
        farther = np.clip(factor * far, -1e308, 1e308)
        if factor < 1e300:
            np.testing.assert_allclose(model.pairwise_score(far, X), model.pairwise_score(farther, X), atol=1e-3)
        assert np.isfinite(model.pairwise_score(farther, X)).all()
    everything = np.concatenate([X, far])
    rows = np.column_stack([np.arange(len(everything))] * 2)
    assert (model.pair_distance(rows, everything) >= 0).all()
    # Along the direction of the greatest correlation the bound is reached.
    best = np.linalg.pinv(model._model.matrix)[0] * 1e6 + model._model.mean
    distance = model.pair_distance([[best, best]])
    assert 0.0 <= distance < 1e-6 * model._max_score()


def test_pairs_and_labels_are_equivalent():
    X, y = people(60, 4, 5)
    pairs = PairSampler(y).all_pairs()
    rows = np.column_stack([pairs.first, pairs.second])
    labelled, paired = GaussianSimilarity().fit(X, y), GaussianSimilarity().fit(X, pairs.same, pairs=rows)
    assert np.corrcoef(labelled.pair_score(rows, X), paired.pair_score(rows, X))[0, 1] > 0.99


def test_never_pair_excludes_pairs_from_fit():
    """Samples of one session agree in the second feature, which is unrelated to the identity."""
    rng = np.random.default_rng(6)
    person, sitting = np.repeat(np.arange(80), 6), np.arange(480) // 3
    X = np.column_stack([rng.normal(size=80)[person] + 0.5 * rng.normal(size=480), 3.0 * rng.normal(size=160)[sitting]])
    blind, warned = GaussianSimilarity().fit(X, person), GaussianSimilarity().fit(X, person, never_pair=sitting)
    # Same pairs of one session suggest that the second feature separates identities; the others show that it does not.
    assert (len(blind.correlations_), len(warned.correlations_)) == (2, 1)


def test_scale_of_features_does_not_matter():
    X, y = people(40, 5, 9)
    expected = GaussianSimilarity().fit(X, y).pairwise_score(X)
    for units in ([1e-3, 1.0, 1e6], [1e-160, 1e-160, 1e-160], [1e150, 1e-150, 1.0]):
        found = GaussianSimilarity().fit(X * units, y).pairwise_score(X * units)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(ValueError, match="divide them by a large number"):
        GaussianSimilarity().fit(X * 1e305, y)


def test_rows_in_no_pair_are_ignored():
    X, y = people(40, 5, 10)
    pairs = PairSampler(y).all_pairs()
    rows = np.column_stack([pairs.first, pairs.second])
    with_others = np.concatenate([X, np.full((100, 3), 1e4)])
    one, other = (GaussianSimilarity().fit(points, pairs.same, pairs=rows) for points in (X, with_others))
    np.testing.assert_array_equal(one.pairwise_score(X), other.pairwise_score(X))


def test_classes_that_are_constant_up_to_rounding():
    rng = np.random.default_rng(11)
    y = np.repeat(np.arange(30), 4)
    for noise in (0.0, 1e-15, 1e-8, 1e-100):
        X = rng.normal(size=(30, 1))[y] + noise * rng.normal(size=(120, 2))
        model = GaussianSimilarity().fit(X, y)
        distances = model.pair_distance(PairSampler(y).sample(500, rng).first.reshape(-1, 2), X)
        assert np.isfinite(distances).all()
        assert (distances >= 0).all()
        assert model.score(X, y) > 0.99


def test_nothing_to_learn():
    rng = np.random.default_rng(7)
    y = np.arange(100) // 2
    X = np.repeat([[1.0, 2.0]], 100, axis=0)
    np.testing.assert_allclose(GaussianSimilarity().fit(X, y).pairwise_score(X[:3]), 0.0, atol=1e-12)
    X = np.column_stack([np.ones(100), rng.normal(size=50)[y] + 0.1 * rng.normal(size=100)])
    model = GaussianSimilarity().fit(X, y)
    assert np.isfinite(model.pairwise_score(X)).all()
    assert model.score(X, y) > 0.9


def test_quantiles_help_if_features_are_not_gaussian():
    X, y = people(120, 5, 8)
    X = np.exp(X)
    learn = y < 80
    scores = [
        GaussianSimilarity(representation=how).fit(X[learn], y[learn]).score(X[~learn], y[~learn])
        for how in (None, MarginalQuantiles())
    ]
    assert scores[1] > scores[0]


def test_shrinkage_is_checked():
    with pytest.raises(ValueError, match=r"shrinkage=2\.0"):
        GaussianSimilarity(shrinkage=2.0).fit(*people(3, 3, 0))
