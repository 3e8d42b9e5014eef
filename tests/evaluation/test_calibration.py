"""Scores as probabilities: monotone, honest on other identities, for a stated prior."""

from __future__ import annotations

import numpy as np
import pytest

from simtree import SimilarityForest
from simtree.evaluation._calibration import fit_calibration
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(90), 5)
    return rng.normal(size=(90, 6))[y] + 0.8 * rng.normal(size=(450, 6)), y


@pytest.fixture(scope="module")
def forest(people):
    X, y = people
    model = SimilarityForest(n_estimators=10, max_depth=8, n_pairs=5000, random_state=0).fit(X[:200], y[:200])
    return model.calibrate_probability(X[200:350], y[200:350])


def test_probability_grows_with_the_score_and_the_prior(forest, people):
    X, _ = people
    pairs = np.random.default_rng(0).integers(350, 450, (500, 2))
    scores, even = forest.pair_score(pairs, X), forest.predict_proba(pairs, X)
    np.testing.assert_allclose(even.sum(axis=1), 1.0)
    order = np.argsort(scores)
    assert (np.diff(even[order, 1]) >= 0).all()
    rare = forest.predict_proba(pairs, X, prior=0.01)
    odds = even[:, 1] / even[:, 0]
    np.testing.assert_allclose(rare[:, 1] / rare[:, 0], odds * 0.01 / 0.99)


def test_calibration_helps_on_identities_it_has_not_seen(forest, people):
    """Probabilities on a third set of people are right on average, where those of raw scores are not."""
    X, y = people
    pairs = PairSampler(y[350:]).all_pairs()
    probability = forest.predict_proba(np.column_stack([pairs.first, pairs.second]) + 350, X)[:, 1]
    weight = np.where(pairs.same, 1 / pairs.n_same, 1 / (len(pairs) - pairs.n_same))
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
        chosen = (probability >= low) & (probability <= high)
        share = np.average(pairs.same[chosen], weights=weight[chosen])
        assert low - 0.1 <= share <= high + 0.1
    found = forest.calibration_
    assert found.cllr_min <= found.cllr_after < found.cllr_before
    assert found.cllr_after < found.cllr_min + 0.05
    assert "Cllr" in str(found)
    assert found.to_dict()["knots"] == found.knots.tolist()


def test_there_is_no_probability_before_calibration(people):
    X, y = people
    forest = SimilarityForest(n_estimators=2, n_pairs=500, random_state=0).fit(X[:200], y[:200])
    assert not hasattr(forest, "predict_proba")
    with pytest.raises(AttributeError) as raised:
        forest.predict_proba([[0, 1]], X)
    assert "call calibrate_probability first" in str(raised.value.__cause__)
    forest.calibrate_probability(X[200:], y[200:])
    with pytest.raises(ValueError, match="prior=1 is out of range"):
        forest.predict_proba([[0, 1]], X, prior=1)
    assert not hasattr(forest.fit(X, y), "predict_proba")


def test_the_cost_afterwards_is_that_of_other_identities(rng):
    """Scores that say nothing: fitted and judged on the same pairs they would seem to say something."""
    y = np.repeat(np.arange(12), 3)
    pairs = PairSampler(y).all_pairs()
    found = fit_calibration(rng.normal(size=len(pairs)), pairs, y)
    assert found.cllr_min < 0.98
    assert found.cllr_after > 0.99


def test_too_few_identities():
    pairs = IndexPairs(np.array([0, 0]), np.array([1, 2]), np.array([True, False]))
    with pytest.raises(ValueError, match="too few for folds"):
        fit_calibration(np.array([1.0, 0.0]), pairs, np.array([0, 0, 1]))
