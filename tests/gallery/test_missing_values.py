"""Samples with missing values in a gallery and in an evaluation."""

from __future__ import annotations

import numpy as np
import pytest

import simtree


@pytest.fixture(scope="module")
def holed():
    """Return samples of eight people of which a fifth of the values is missing, and a tree fitted on them."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(8), 12)
    X = 2.0 * rng.normal(size=(8, 4))[y] + rng.normal(0, 0.4, (96, 4))
    X = np.where(rng.random(X.shape) < 0.2, np.nan, X).astype(np.float32)
    return X, y, simtree.SimilarityTree(max_depth=5, n_pairs=2000, random_state=0).fit(X, y)


def test_vectors_with_missing_values_are_enrolled_found_and_explained(holed, place):
    X, y, tree = holed
    names = [f"person {k}" for k in y]
    with simtree.Gallery.create(place(), tree) as gallery:
        gallery.enroll(names[::2], X[::2])
        found = gallery.identify(X[1::2], k=3)
        scores = tree.pairwise_score(X[1::2], X[::2])
        best = np.array([[scores[q, y[::2] == k].max() for k in range(8)] for q in range(len(scores))])
        assert len(found.score)
        expected = [best[query, int(name.split()[1])] for query, name in zip(found.query, found.id, strict=True)]
        np.testing.assert_array_equal(found.score, expected)
        assert "missing in" in str(gallery.explain(names[0], np.array([np.nan, 0.0, np.nan, 0.0])))
    with simtree.Gallery.open(place()) as gallery:
        np.testing.assert_array_equal(gallery.identify(X[1::2], k=3).score, found.score)


def test_evaluation_takes_missing_values(holed):
    X, y, tree = holed
    result = simtree.evaluate(tree, X, y)
    assert result.auc.value == pytest.approx(tree.score(X, y))
