"""Metrics of clusters, compared with their definitions over all pairs and all samples."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from simtree.metrics import b_cubed, pairwise_cluster_scores


def by_pairs(y, labels):
    pairs = list(combinations(range(len(y)), 2))
    together = [(i, j) for i, j in pairs if labels[i] == labels[j]]
    same = [(i, j) for i, j in pairs if y[i] == y[j]]
    both = len(set(together) & set(same))
    return (both / len(together) if together else 1.0), (both / len(same) if same else 1.0)


def by_samples(y, labels):
    precision, recall = [], []
    for i in range(len(y)):
        own = {j for j in range(len(y)) if labels[j] == labels[i]}
        kin = {j for j in range(len(y)) if y[j] == y[i]}
        precision.append(len(own & kin) / len(own))
        recall.append(len(own & kin) / len(kin))
    return np.mean(precision), np.mean(recall)


@pytest.mark.parametrize(("metric", "oracle"), [(pairwise_cluster_scores, by_pairs), (b_cubed, by_samples)])
@pytest.mark.parametrize(("n_identities", "n_clusters"), [(1, 1), (4, 4), (2, 9), (30, 3), (40, 40)])
def test_equals_the_definition(metric, oracle, n_identities, n_clusters):
    rng = np.random.default_rng(n_identities * 100 + n_clusters)
    y, labels = rng.integers(0, n_identities, 40), rng.integers(0, n_clusters, 40)
    found, (precision, recall) = metric([f"p{k}" for k in y], labels), oracle(y, labels)
    np.testing.assert_allclose(found[:2], (precision, recall), rtol=1e-12)
    total = precision + recall
    assert found.f1 == pytest.approx(2 * precision * recall / total if total else 0.0)


@pytest.mark.parametrize("metric", [pairwise_cluster_scores, b_cubed])
def test_extremes(metric):
    y = np.repeat([0, 1, 2], 4)
    assert metric(y, 7 - y) == (1.0, 1.0, 1.0)
    assert metric(y, np.arange(12)).precision == 1.0
    assert metric(y, np.zeros(12)).recall == 1.0
    assert metric(np.arange(5), np.arange(5)) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("metric", [pairwise_cluster_scores, b_cubed])
def test_bad_input(metric):
    with pytest.raises(ValueError, match="give one of each per sample"):
        metric([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="at least one sample"):
        metric([], [])
