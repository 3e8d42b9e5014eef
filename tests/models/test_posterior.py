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
)
from simtree.models import _posterior as posterior
from simtree.pairs._sampling import PairSampler

TREES = ForestPosterior(n_estimators=30, random_state=0)


@pytest.fixture(scope="module")
def fitted(blobs):
    return PosteriorSimilarity(TREES).fit(*blobs)


def test_score_is_the_log_of_the_sum_of_products_over_priors(blobs, fitted):
    X, _ = blobs
    own = posterior.PRIOR_SHARE
    mixed = (1.0 - own) * fitted.representation_.transform(X[:30]) + own * fitted.priors_
    np.testing.assert_allclose(fitted.pairwise_score(X[:30]), np.log(mixed / fitted.priors_ @ mixed.T), rtol=1e-9, atol=1e-9)


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
    assert fitted._max_score() == pytest.approx(-np.log(fitted.priors_.min()), abs=1e-5)


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
