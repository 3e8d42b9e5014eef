from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from simtree import CartSplitter, ClassifierSplitter, CutSplitter, LinearSplitter, SimilarityForest, SimilarityTree

MODELS = [
    SimilarityTree(max_depth=5, n_pairs=2000, random_state=0),
    SimilarityTree(max_depth=3, splitter=LinearSplitter(), n_pairs=500, random_state=0),
    SimilarityTree(max_depth=4, splitter="cross", n_pairs=500, random_state=0),
    SimilarityForest(n_estimators=8, max_depth=5, n_pairs=800, random_state=0),
    SimilarityForest(n_estimators=5, max_depth=5, n_pairs=800, aggregation="mean_rank", random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.splitter}")
def test_base_and_contributions_add_up_to_the_score(blobs, model):
    X, y = blobs
    model.fit(X, y)
    for i, j in [(0, 1), (3, 60), (10, 100)]:
        why = model.explain_pair(X[i], X[j])
        score = model.pair_score([[X[i], X[j]]])[0]
        assert why.score == pytest.approx(score, abs=1e-12)
        assert why.base + why.contributions.sum() == pytest.approx(score, abs=1e-9)
        np.testing.assert_allclose(model.explain_pair(X[j], X[i]).contributions, why.contributions)


def test_base_of_a_forest_is_zero(blobs):
    forest = SimilarityForest(n_estimators=4, max_depth=4, n_pairs=500, random_state=0).fit(*blobs)
    assert forest.explain_pair(blobs[0][0], blobs[0][1]).base == 0.0


def test_hand_worked_shares():
    """One cut on feature a, then one on b inside it: each gets the change of its own step."""
    a = np.array([0, 0, 0, 0, 5, 5, 5, 5.0])
    b = np.array([0, 0, 3, 3, 0, 0, 3, 3.0])
    pairs = np.zeros((8, 2, 2))
    pairs[:, 1, 0], pairs[:, 1, 1] = a, b
    same = np.array([1, 1, 1, 0, 0, 0, 0, 0], bool)
    tree = SimilarityTree(max_depth=2, splitter=CutSplitter(), coordinates=["abs_diff"]).fit(pairs, same)
    assert tree.pair_score(pairs).tolist() == [4, 4, 3, 3, 2, 2, 2, 2]
    assert tree.explain_pair([0, 0], [0, 3]).contributions.tolist() == [0, -1]  # inside by a, outside by b
    assert tree.explain_pair([0, 0], [5, 0]).contributions.tolist() == [-2, 0]


def test_untested_features_contribute_nothing(blobs):
    X, y = blobs
    X = np.column_stack([X, np.ones(len(X))])
    forest = SimilarityForest(n_estimators=5, max_depth=4, splitter=CartSplitter(max_depth=3), n_pairs=800, random_state=0)
    why = forest.fit(X, y).explain_pair(X[0], X[5])
    assert why.contributions[4] == 0
    assert np.count_nonzero(why.contributions[:4]) > 1


def test_table_has_names_and_values(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["dwell", "flight", "pressure", "tilt"])
    tree = SimilarityTree(max_depth=4, random_state=0).fit(frame, y)
    lines = str(tree.explain_pair(X[0], X[5])).splitlines()
    assert lines[1].split() == ["feature", "x", "x'", "contribution"]
    assert {line.split()[0] for line in lines[2:]} == set(frame.columns)
    sizes = [abs(float(line.split()[-1])) for line in lines[2:]]
    assert sizes == sorted(sizes, reverse=True)
    renamed = tree.explain_pair(X[0], X[5], feature_names=["a", "b", "c", "d"])
    assert renamed.feature_names == ("a", "b", "c", "d")


def test_unexplainable_models_are_rejected(blobs):
    X, y = blobs
    splitter = ClassifierSplitter(DecisionTreeClassifier(max_depth=2))
    opaque = SimilarityTree(max_depth=2, splitter=splitter, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="ClassifierSplitter"):
        opaque.explain_pair(X[0], X[1])
    median = SimilarityForest(n_estimators=3, max_depth=3, aggregation="median_rank", n_pairs=300, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="a median is not a sum over trees"):
        median.explain_pair(X[0], X[1])
    with pytest.raises(ValueError, match="expecting 4 features"):
        median.explain_pair(X[0, :2], X[1, :2])
