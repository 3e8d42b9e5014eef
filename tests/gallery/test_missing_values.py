"""Samples with missing values in a gallery and in an evaluation."""

from __future__ import annotations

import numpy as np
import pandas as pd
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


def test_an_explanation_reads_words_once(tmp_path):
    """The category is the first column of the table, but the last one of what it is read into."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(8), 6)
    colours = np.array(["red", "green", "blue"], dtype=object)[y % 3]
    table = pd.DataFrame({"colour": colours, "height": rng.normal(y, 1.0), "born": rng.integers(0, 4, len(y))})
    table.loc[::7, "colour"] = None
    tree = simtree.SimilarityTree(max_depth=4, categorical_features=["born"], n_pairs=500, random_state=0).fit(table, y)
    with simtree.Gallery.create(tmp_path / "g.gallery", tree) as gallery:
        gallery.enroll([f"person {k}" for k in y], table)
        for row in (0, 1, 20):
            found = gallery.explain("person 0", table.iloc[row].tolist())
            assert found.score == gallery.verify(["person 0"], table.iloc[[row]]).score[0]
            assert found.base + found.contributions.sum() == pytest.approx(found.score)
            values = dict(zip(found.feature_names, found.x, strict=True))
            assert values["height"] == pytest.approx(table["height"][row])
            if row:
                assert values["colour"] == table["colour"][row]
            else:
                assert np.isnan(values["colour"])
                assert "colour missing in one of the two" in str(found)
