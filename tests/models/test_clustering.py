"""Clusters: those of the whole matrix of scores, without making it."""

from __future__ import annotations

import copy
import tracemalloc

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components

import simtree
from simtree.models import _clustering as clustering
from tiny_models import fitted, people


def same_partition(one, other):
    return len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(set(one.tolist())) == len(set(other.tolist()))


def samples():
    X, y = people(11, n=25, n_samples=4)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def threshold_of(scores, share):
    """A score between two values, so that rounding decides nothing."""
    values = np.unique(scores[np.triu_indices(len(scores), 1)])
    place = int((1.0 - share) * (len(values) - 1))
    return float(values[place : place + 2].mean())


@pytest.mark.parametrize("kind", ["forest", "gaussian", "distance"])
@pytest.mark.parametrize("share", [0.001, 0.03, 0.2])
def test_clusters_are_those_of_all_scores(kind, share, monkeypatch):
    monkeypatch.setattr(clustering, "BLOCK_ROWS", 13)
    monkeypatch.setattr(clustering, "FIRST_MATCHES", 2)
    model, (X, y) = fitted(kind), samples()
    scores = model.pairwise_score(X)
    threshold = threshold_of(scores, share)
    first, second = clustering.matching_pairs(model, model._prepare(X), threshold)
    expected = np.nonzero(np.triu(scores >= threshold, 1))
    np.testing.assert_array_equal([first, second], expected)
    found = simtree.cluster(model, X, y=y, threshold=threshold, method="components")
    assert same_partition(found.labels, connected_components(scores >= threshold, directed=False)[1])
    assert (found.n_matches, found.n_pairs) == (len(first), 100 * 99 // 2)
    average = simtree.cluster(model, X, threshold=threshold)
    if kind != "forest":  # ties of a forest may be merged in any order
        distances = scores.max() - scores[np.triu_indices(len(X), 1)]
        assert same_partition(average.labels, fcluster(linkage(distances, "average"), scores.max() - threshold, "distance"))
    for result in (found, average):
        assert result.n_clusters == len(np.unique(result.labels)) == len(result.sizes)
        assert list(dict.fromkeys(result.labels.tolist())) == list(range(result.n_clusters))
    assert found.pairwise == simtree.metrics.pairwise_cluster_scores(y, found.labels)
    assert found.b_cubed == simtree.metrics.b_cubed(y, found.labels)


def test_easy_people_are_found():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 5)
    X = rng.normal(size=(60, 12))[y] + 0.3 * rng.normal(size=(300, 12))
    model = simtree.GaussianSimilarity().fit(X[:150], y[:150])
    found = simtree.cluster(model, X[150:], y=y[150:])
    assert found.threshold == model.threshold_
    assert found.b_cubed.f1 > 0.95
    assert found.pairwise.f1 > 0.95
    assert found.max_fpr is None


@pytest.mark.parametrize("n_pairs", [1, 7, 30, 1 << 18])
def test_all_pairs_of_a_component_are_scored_block_by_block(n_pairs, monkeypatch):
    monkeypatch.setattr(clustering, "LINKED_PAIRS", n_pairs)
    model = fitted("gaussian")
    for n in (2, 3, 12):
        prepared = model._prepare(samples()[0][:n])
        expected = model._scorer(prepared)(*(side.astype(np.int32) for side in np.triu_indices(n, 1)))
        np.testing.assert_array_equal(clustering._scores_of_all_pairs(model, prepared), expected)


def test_memory_of_average_linkage(monkeypatch):
    n = 600
    monkeypatch.setattr(clustering, "LINKED_PAIRS", 1 << 13)
    X = np.random.default_rng(0).normal(size=(n, 2))
    model = simtree.DistanceSimilarity(metric="euclidean").fit(X, np.arange(n) // 2)
    simtree.cluster(model, X[:9], threshold=-100.0)  # compiles
    tracemalloc.start()
    found = clustering._by_average_linkage(model, X, -100.0, np.zeros(n, dtype=np.int64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not found.any()
    assert peak < 2 * 8 * n * n / 2 + 64 * clustering.LINKED_PAIRS  # all scores twice, and a block of pairs
    assert 2 * 8 * clustering.MAX_COMPONENT**2 / 2 < 0.5e9


def test_a_threshold_for_enrolled_identities_is_not_one_for_pairs():
    model, (X, y) = copy.deepcopy(fitted("distance")), samples()
    model.calibrate_threshold(X, y, confidence=None, max_fpr=0.05, enrol=np.arange(len(y)) % 2 == 0, fusion="mean")
    said = r"threshold_ is for scores with enrolled identities .* calibrate it without enrol=, or give a threshold"
    for options in ({}, {"max_fpr": 0.1}):
        with pytest.raises(ValueError, match=said):
            simtree.cluster(model, X, **options)
    assert simtree.cluster(model, X, threshold=model.threshold_).max_fpr is None


def test_max_fpr_needs_a_promise():
    model, (X, y) = copy.deepcopy(fitted("gaussian")), samples()
    with pytest.raises(ValueError, match=r"max_fpr=0\.05, and the threshold of the model has no such promise; call"):
        simtree.cluster(model, X, max_fpr=0.05)
    other, labels = people(12, n=200, n_samples=2)
    model.calibrate_threshold(other, labels, max_fpr=0.05)
    found = simtree.cluster(model, X, y=y, max_fpr=0.05)
    assert found.threshold == model.threshold_
    assert found.expected_false_matches == pytest.approx(0.05 * 100 * 99 / 2)
    assert found.to_dict()["b_cubed"]["f1"] == found.b_cubed.f1
    assert "labels" not in found.to_dict()
    with pytest.raises(ValueError, match=r"was calibrated for 0\.05; call calibrate_threshold\(X, y, max_fpr=0\.001\)"):
        simtree.cluster(model, X, max_fpr=0.001)


def test_nothing_and_one_sample():
    model = fitted("distance")
    one = simtree.cluster(model, people(1, n=1, n_samples=1)[0])
    assert (one.n_clusters, one.n_pairs, one.labels.tolist()) == (1, 0, [0])


def test_bad_input(monkeypatch):
    model, (X, y) = fitted("distance"), samples()
    for wrong, error, message in [
        (lambda: simtree.cluster("model", X), TypeError, "is not a similarity"),
        (lambda: simtree.cluster(model, X, method="median"), ValueError, "method"),
        (lambda: simtree.cluster(model, X, threshold=0.0, max_fpr=0.1), ValueError, "give one of them"),
        (lambda: simtree.cluster(model, X, max_fpr=1.0), ValueError, "max_fpr"),
        (lambda: simtree.cluster(model, X, y=y[:3]), ValueError, "give one identity each"),
    ]:
        with pytest.raises(error, match=message):
            wrong()
    monkeypatch.setattr(clustering, "MAX_COMPONENT", 20)
    with pytest.raises(ValueError, match="too many for average linkage"):
        simtree.cluster(model, X, threshold=-1e9)
    monkeypatch.setattr(clustering, "MAX_MATCHES", 20)
    with pytest.raises(ValueError, match="too many to be held in memory"):
        simtree.cluster(model, X, threshold=-1e9)
