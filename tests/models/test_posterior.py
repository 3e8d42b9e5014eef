from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from simtree import (
    DistanceSimilarity,
    ForestPosterior,
    LogisticPosterior,
    PosteriorSimilarity,
    VotingSimilarity,
    WithinClassWhitening,
    load,
)
from simtree.metrics import roc_curve
from simtree.models import _posterior as posterior
from simtree.pairs._sampling import PairSampler

TREES = ForestPosterior(n_estimators=30, random_state=0)


@pytest.fixture(scope="module")
def fitted(blobs):
    return PosteriorSimilarity(TREES).fit(*blobs)


def test_score_is_the_log_odds_of_a_same_pair_less_those_of_the_priors(blobs, fitted):
    X, _ = blobs
    probabilities, prior = fitted.representation_.transform(X[:30]), fitted.priors_ @ fitted.priors_
    own = posterior.PRIOR_SHARE
    same = (1.0 - own) * probabilities @ probabilities.T + own * prior
    expected = np.log(same / (1.0 - same)) - np.log(prior / (1.0 - prior))
    np.testing.assert_allclose(fitted.pairwise_score(X[:30]), expected, rtol=1e-6, atol=1e-6)


def test_classes_of_unequal_size_are_compared_by_the_probability_of_a_same_pair():
    """Divided by the priors, as if each class had as many same pairs, products rank pairs of rare classes first."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [1200, 100, 100])
    X = rng.normal(size=(len(y), 2)) + 2.0 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[y]
    model = PosteriorSimilarity(LogisticPosterior(random_state=0)).fit(X[::2], y[::2])
    probabilities = model.representation_.transform(X[1::2])
    first, second = np.triu_indices(len(probabilities), 1)
    same = y[1::2][first] == y[1::2][second]
    ratios = np.sum(probabilities[first] * probabilities[second] / model.priors_, axis=1)
    roc = roc_curve(model.pair_score(np.column_stack([first, second]), X[1::2]), same)
    assert roc.auc() > roc_curve(ratios, same).auc() + 0.05


def test_score_with_as_many_same_pairs_of_each_sample_is_the_log_of_products_over_priors(blobs):
    X, y = blobs
    model = PosteriorSimilarity(TREES, same_weighting="samples").fit(X, y)
    own = posterior.PRIOR_SHARE
    mixed = (1.0 - own) * model.representation_.transform(X[:30]) + own * model.priors_
    np.testing.assert_allclose(model.pairwise_score(X[:30]), np.log(mixed / model.priors_ @ mixed.T), rtol=1e-9, atol=1e-9)
    assert model._max_score() == pytest.approx(-np.log(model.priors_.min()), abs=1e-5)


@pytest.mark.parametrize("weighting", ["pairs", "samples"])
def test_weighting_survives_a_model_file(blobs, weighting, tmp_path):
    X, y = blobs
    model = PosteriorSimilarity(TREES, same_weighting=weighting).fit(X, y)
    model.save(tmp_path / "model.simtree")
    loaded = load(tmp_path / "model.simtree")
    assert loaded.same_weighting == weighting
    np.testing.assert_array_equal(loaded.pairwise_score(X[:9]), model.pairwise_score(X[:9]))


def test_unknown_weighting_is_refused(blobs):
    with pytest.raises(ValueError, match="same_weighting='classes'"):
        PosteriorSimilarity(TREES, same_weighting="classes").fit(*blobs)


def test_priors_are_shares_of_the_classes(blobs, fitted):
    _, y = blobs
    shares = np.array([np.mean(y == label) for label in dict.fromkeys(y.tolist())])
    np.testing.assert_allclose(fitted.priors_, shares, atol=0.05)
    assert fitted.priors_.sum() == pytest.approx(1.0)


def test_scores_are_finite_and_at_most_the_maximum(blobs, fitted):
    X, _ = blobs
    scores = fitted.pairwise_score(X, np.concatenate([X, 1e30 * X]))
    assert np.isfinite(scores).all()
    assert scores.max() <= fitted._max_score()
    assert fitted._max_score() == pytest.approx(-np.log(posterior.PRIOR_SHARE * fitted.priors_ @ fitted.priors_), abs=1e-5)


def test_threshold_is_that_of_cross_fitted_probabilities():
    """Random labels: the trees know all training samples, but their cross-fitted probabilities do not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 4, 200)
    model = PosteriorSimilarity(TREES).fit(X, y)
    assert model.score(X, y) > 0.95
    out_of_bag = model._roc_of(model._scaled(TREES.fit_transform(X, y)), PairSampler(y))
    assert 0.4 < out_of_bag.auc() < 0.6
    best = np.argmax(out_of_bag.tpr - out_of_bag.fpr)
    assert model.threshold_ == out_of_bag.thresholds[best]


def test_works_as_a_member(blobs):
    X, y = blobs
    voting = VotingSimilarity([("posterior", PosteriorSimilarity(TREES)), ("distance", DistanceSimilarity())]).fit(X, y)
    assert voting.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("representation", "sentence"),
    [
        (None, "representation=None, but probabilities of classes are required"),
        (WithinClassWhitening(), "does not return probabilities of classes; give one that does, such as ForestPosterior"),
        (PCA(2), "does not return probabilities of classes"),
    ],
)
def test_other_representations_are_rejected(blobs, representation, sentence):
    model = PosteriorSimilarity(representation)
    with pytest.raises(ValueError, match=sentence):
        model.fit(*blobs)
    assert not hasattr(model, "representation_")


def test_pairs_are_rejected(given_pairs):
    with pytest.raises(ValueError, match="requires labels; fit labelled samples"):
        PosteriorSimilarity(LogisticPosterior()).fit(*given_pairs)
