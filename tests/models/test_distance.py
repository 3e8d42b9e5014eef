from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from simtree import DistanceSimilarity
from simtree.pairs._sampling import PairSampler


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("cosine", lambda a, b: (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)),
        ("euclidean", lambda a, b: -np.linalg.norm(a - b, axis=1)),
        ("manhattan", lambda a, b: -np.abs(a - b).sum(axis=1)),
    ],
)
def test_scores_are_those_of_the_metric(blobs, metric, expected):
    X, y = blobs
    plain = DistanceSimilarity(metric=metric).fit(X, y)
    rows = np.random.default_rng(0).integers(0, len(X), (50, 2))
    np.testing.assert_allclose(plain.pair_score(rows, X), expected(X[rows[:, 0]], X[rows[:, 1]]), rtol=1e-12)
    assert (plain.pair_distance(rows, X) >= -1e-12).all()
    scores, indices = plain.top_k(X[:3], X, 4)
    np.testing.assert_array_equal(scores, -np.sort(-plain.pairwise_score(X[:3], X), axis=1)[:, :4])
    assert indices[0, 0] == 0


def test_threshold_maximises_tpr_minus_fpr(blobs):
    X, y = blobs
    plain = DistanceSimilarity(metric="euclidean").fit(X, y)
    pairs = PairSampler(y).all_pairs()
    rows = np.column_stack([pairs.first, pairs.second])
    scores = plain.pair_score(rows, X)

    def youden(threshold):
        return (scores[pairs.same] >= threshold).mean() - (scores[~pairs.same] >= threshold).mean()

    assert youden(plain.threshold_) == pytest.approx(max(map(youden, np.unique(scores))))


def test_representation_comes_first(blobs):
    X, y = blobs
    plain = DistanceSimilarity(representation=StandardScaler()).fit(X, y)
    Z = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(plain.pairwise_score(X), DistanceSimilarity().fit(Z, y).pairwise_score(Z))


def test_unknown_metric():
    with pytest.raises(ValueError, match="metric='taxi' is unknown"):
        DistanceSimilarity(metric="taxi").fit([[0.0], [1.0], [2.0]], [0, 0, 1])
