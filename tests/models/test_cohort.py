from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import simtree
from simtree import CohortNormalization, DistanceSimilarity, GaussianSimilarity, MarginalQuantiles, SimilarityForest
from simtree.metrics import tpr_at_fpr
from simtree.models import _cohort as cohort
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs
from tiny_models import people

FOREST = SimilarityForest(n_estimators=3, max_depth=4, n_pairs=500, random_state=0)


def normalised(base, **parameters):
    return CohortNormalization(base, **{"n_cohort": 30, "n_nearest": 7, "random_state": 0, **parameters})


@pytest.fixture(scope="module", params=["averaged", "synthetic", "samples"])
def fitted(request, blobs):
    return normalised(DistanceSimilarity(metric="euclidean"), cohort=request.param).fit(*blobs)


def expected_scores(model, A, B):
    """The definition, row by row."""
    scores = np.empty(len(A))
    for p, (a, b) in enumerate(zip(A, B, strict=True)):
        score = model.estimator_.pair_score([[a, b]])[0]
        relative = []
        for x in (a, b):
            nearest = np.sort(model.estimator_.pairwise_score([x], model.cohort_)[0])[-model.n_nearest :]
            relative.append((score - nearest.mean()) / max(nearest.std(), cohort.MIN_SPREAD * model.spread_))
        scores[p] = np.mean(relative)
    return scores


def test_scores_are_those_of_the_definition(fitted, rng):
    A, B = rng.uniform(0, 4, (2, 40, 4))
    np.testing.assert_allclose(fitted.pair_score(np.stack([A, B], axis=1)), expected_scores(fitted, A, B), rtol=1e-9)


def test_scores_do_not_depend_on_the_unit_of_the_estimator(blobs):
    """Normalised scores of a distance are the same in metres and in miles."""
    X, y = blobs
    one, other = (normalised(DistanceSimilarity(metric="euclidean")).fit(scale * X, y) for scale in (1.0, 1024.0))
    np.testing.assert_allclose(other.pairwise_score(1024.0 * X[:9]), one.pairwise_score(X[:9]), rtol=1e-9)


@pytest.mark.parametrize(
    ("n_identities", "averaged"), [(2, "12 means of 5 samples each"), (6, "12 means of samples of 5 identities each")]
)
def test_it_says_what_is_averaged(n_identities, averaged, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % n_identities
    model = normalised(DistanceSimilarity()).fit(X, y)
    model.save(tmp_path / "model.simtree")
    for own in (model, simtree.load(tmp_path / "model.simtree")):
        assert own.to_dict()["cohort"] == f"{averaged}; no training sample"


def test_means_are_of_five_identities_that_are_near():
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [100.0, 0.0]], 6, axis=0)
    y = np.arange(24) % 12
    X = centres[y] + rng.normal(size=(24, 2))
    scores = DistanceSimilarity(metric="euclidean").fit(X, y).pairwise_score(X)
    means = cohort.neighbour_means(X, y, scores)
    assert np.abs(means[:, 0] - np.round(means[:, 0], -2)).max() < 3.0, "no mean of the two clusters"
    for vector, x in zip(means, X, strict=True):
        near = np.abs(X[:, 0] - x[0]) < 50
        assert is_mean_of_five(vector, X[near], y[near])


def test_samples_are_averaged_if_there_are_few_identities(rng):
    X, y = rng.normal(size=(9, 2)), np.arange(9) % 2
    means = cohort.neighbour_means(X, y, -np.abs(X[:, :1] - X[:, 0]))
    assert all(is_mean_of_five(vector, X, np.arange(9)) for vector in means)


def test_averaged_vectors_vary_as_samples_do(blobs):
    X, y = blobs
    model = normalised(DistanceSimilarity(metric="euclidean"), n_cohort=110).fit(X, y)
    shares = model.cohort_.std(axis=0) / X.std(axis=0)
    assert (shares > 0.7).all()
    assert (shares < 1.1).all()
    np.testing.assert_array_equal(cohort.spread_like(np.ones((3, 2)), X[:, :2]), np.ones((3, 2)))


def is_mean_of_five(vector, rows, labels):
    """Whether a vector is the mean of some five rows of different labels."""
    choices = (list(chosen) for chosen in combinations(range(len(rows)), 5))
    return any(np.allclose(rows[c].mean(axis=0), vector) for c in choices if len(set(labels[c])) == 5)


def test_identities_count_equally():
    """An identity with most of the samples has one place among the first vectors, as every other has."""
    X, y = people(1, n=12)
    X, y = np.concatenate([X, X[:1] + np.random.default_rng(0).normal(size=(200, 3))]), np.append(y, np.zeros(200, int))
    model = normalised(DistanceSimilarity(), cohort="samples", n_cohort=12).fit(X, y)
    rows = [int(np.flatnonzero((vector == X).all(axis=1))[0]) for vector in model.cohort_]
    assert sorted(y[rows]) == list(range(12))


def test_synthetic_vectors_have_mean_and_covariance_of_the_samples(rng):
    X = rng.normal(size=(400, 2)) @ [[2.0, 1.0], [0.0, 0.5]] + [3.0, -1.0]
    drawn = normalised(DistanceSimilarity(), cohort="synthetic", n_cohort=400).fit(X, np.arange(400) % 40).cohort_
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.4)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(X.T), rtol=0.25, atol=0.2)


def holds_sample(path, X):
    data = path.read_bytes()
    return any(row.tobytes() in data for row in X)


@pytest.mark.parametrize("kind", ["averaged", "synthetic", "samples"])
def test_samples_are_in_files_only_if_asked_for(kind, tmp_path):
    X, y = people(1)
    model = normalised(FOREST, cohort=kind).fit(X, y)
    model.save(tmp_path / "m.simtree")
    assert holds_sample(tmp_path / "m.simtree", X) == (kind == "samples")
    assert ("this model holds samples" in model.to_dict()["cohort"]) == (kind == "samples")
    loaded = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(loaded.pairwise_score(X), model.pairwise_score(X))
    np.testing.assert_array_equal(loaded.cohort_, model.cohort_)


@pytest.mark.parametrize("kind", ["averaged", "synthetic"])
def test_duplicated_samples_do_not_get_into_the_cohort(kind):
    X, y = people(1, n=4, n_samples=3)
    X, y = np.repeat(X, 7, axis=0), np.repeat(y, 7)
    model = normalised(DistanceSimilarity(), cohort=kind).fit(X, y)
    assert np.abs(model.cohort_[:, None] - X).max(axis=2).min() > 1e-9


def test_given_pairs_and_preprocessors(blobs):
    X, y = blobs
    pairs = PairSampler(y).sample(400, np.random.default_rng(0))
    rows = np.column_stack([pairs.first, pairs.second])
    by_rows = normalised(DistanceSimilarity()).fit(X, pairs.same, pairs=rows)
    by_table = normalised(DistanceSimilarity(), preprocessor=X).fit(rows, pairs.same)
    np.testing.assert_array_equal(by_rows.pair_score(rows, X), by_table.pair_score(rows))
    assert by_rows.score(X, pairs.same, pairs=rows) > 0.8


@pytest.mark.parametrize("estimator", [DistanceSimilarity(), GaussianSimilarity(), FOREST])
def test_a_named_frame_of_numbers_is_taken_without_a_warning(blobs, estimator):
    X, y = blobs
    frame = pd.DataFrame(X, columns=[f"size {j}" for j in range(X.shape[1])])
    named, plain = (normalised(estimator).fit(of, y) for of in (frame, X))
    np.testing.assert_array_equal(named.pairwise_score(frame[:9]), plain.pairwise_score(X[:9]))


def test_samples_that_same_pairs_connect_are_one_identity():
    X, y = people(3, n=6, n_samples=4)
    chain = np.array([[4 * k + j, 4 * k + j + 1] for k in range(6) for j in range(3)])
    different = np.array([[4 * k, 4 * ((k + 1) % 6)] for k in range(6)])
    rows, same = np.concatenate([chain, different]), np.repeat([True, False], [len(chain), len(different)])
    drawn, identities = cohort._drawn_rows(X, IndexPairs(*rows.T.astype(np.int32), same), 24, np.random.default_rng(0))
    labels = [y[np.flatnonzero((x == X).all(axis=1))[0]] for x in drawn]
    assert len(set(identities[:6])) == 6, "one of each first"
    assert len(set(zip(labels, identities, strict=True))) == 6


def test_constant_scores_are_finite(blobs):
    X, y = blobs
    idle = simtree.SimilarityTree(max_depth=1, min_pairs_split=10**9, random_state=0)
    model = normalised(idle).fit(X, y)
    assert model.spread_ == 1.0
    np.testing.assert_array_equal(model.pairwise_score(X[:5]), np.zeros((5, 5)))


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_extreme_scores_are_finite_and_symmetric(blobs, scale):
    X, y = blobs
    model = normalised(DistanceSimilarity(metric="manhattan")).fit(scale * X, y)
    far = np.concatenate([scale * X[:5], 1e12 * scale * X[:3]])
    scores = model.pairwise_score(far)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, scores.T)
    assert np.abs(scores).max() <= cohort.MAX_SCORE


def test_a_representation_of_the_estimator_is_used(blobs):
    X, y = blobs
    model = normalised(GaussianSimilarity(representation=MarginalQuantiles())).fit(X, y)
    assert model.score(X, y) > 0.9


def test_explanations_add_up_to_the_score(blobs):
    X, y = blobs
    model = normalised(FOREST).fit(X, y)
    explanation = model.explain_pair(X[0], X[40])
    assert explanation.score == model.pair_score([[X[0], X[40]]])[0]
    assert explanation.base + explanation.contributions.sum() == pytest.approx(explanation.score)
    inner = model.estimator_.explain_pair(X[0], X[40])
    np.testing.assert_array_equal(explanation.order(), inner.order())
    assert hasattr(model, "explain_pair")
    assert not hasattr(normalised(DistanceSimilarity()), "explain_pair")


@pytest.mark.slow
def test_people_who_score_high_with_everybody_are_made_comparable():
    """Identities of different spread: one threshold fits them all after normalisation, but not before."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(200), 6)
    spread = np.exp(rng.normal(0.0, 0.7, 200))
    centres = rng.normal(size=(200, 8)) * spread[:, None]
    X = centres[y] + 0.5 * rng.normal(size=(len(y), 8)) * spread[y, None]
    train = y < 100
    base = DistanceSimilarity(metric="euclidean")
    models = [clone(model).fit(X[train], y[train]) for model in (base, CohortNormalization(base, random_state=0))]
    before, after = (tpr_at_fpr(model._roc_on(X[~train], y[~train], None), 1e-2) for model in models)
    assert after > before + 0.1


@pytest.mark.parametrize(
    ("parameters", "error", "sentence"),
    [
        ({"estimator": MarginalQuantiles()}, TypeError, "is not a similarity; give one such as SimilarityForest"),
        ({"cohort": "people"}, ValueError, "cohort='people' is unknown"),
        ({"n_cohort": 1}, ValueError, "n_cohort=1 is out of range"),
        ({"n_nearest": 1}, ValueError, "n_nearest=1 is out of range"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0"),
    ],
)
def test_invalid_parameters_are_rejected(blobs, parameters, error, sentence):
    model = normalised(DistanceSimilarity()).set_params(**parameters)
    with pytest.raises(error, match=sentence):
        model.fit(*blobs)
    assert not hasattr(model, "estimator_")


def test_too_few_samples_to_average():
    X, y = [[0.0, 1.0], [1.0, 1.0], [5.0, 1.0], [6.0, 1.0]], [0, 0, 1, 1]
    with pytest.raises(ValueError, match=r"X has 4 distinct samples, but cohort='averaged' requires at least 5"):
        normalised(DistanceSimilarity()).fit(X, y)
    assert len(normalised(DistanceSimilarity(), cohort="samples").fit(X, y).cohort_) == 4
