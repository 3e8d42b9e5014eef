from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from simtree import CartSplitter, ClassifierSplitter, LinearSplitter, SimilarityForest, SimilarityTree


def test_text_of_a_small_tree():
    pairs = np.array([[[0.0], [d]] for d in range(1, 8)])
    same = [True, True, False, True, False, False, False]
    tree = SimilarityTree(max_depth=3, splitter="cut", coordinates=["abs_diff"]).fit(pairs, same)
    assert tree.export_text(feature_names=["age"]).splitlines() == [
        "all pairs: 3 same, 4 different",
        "|  inside if |age - age'| <= 4.5",
        "|--- cell 1.0: 3 same, 1 different, FPR 0 to 0.25, TPR 0 to 1",
        "|  |  inside if |age - age'| <= 2.5",
        "|  |--- cell 2.0: 2 same, 0 different, FPR 0 to 0, TPR 0 to 0.667, score 8",
        "|  |--- cell 2.1: 1 same, 1 different, FPR 0 to 0.25, TPR 0.667 to 1",
        "|  |  |  inside if |age - age'| > 3.5",
        "|  |  |--- cell 3.2: 1 same, 0 different, FPR 0 to 0, TPR 0.667 to 1, score 6",
        "|  |  |--- cell 3.3: 0 same, 1 different, FPR 0 to 0.25, TPR 1 to 1, score 5",
        "|--- cell 1.1: 0 same, 3 different, FPR 0.25 to 1, TPR 1 to 1, score 4",
    ]
    assert tree.export_text(max_depth=1).splitlines()[-2:] == [
        "|  |  ... (split further)",
        "|--- cell 1.1: 0 same, 3 different, FPR 0.25 to 1, TPR 1 to 1, score 4",
    ]


def test_every_cell_is_listed_with_its_counts(blobs):
    tree = SimilarityTree(max_depth=5, n_pairs=2000, random_state=0).fit(*blobs)
    text = tree.export_text()
    listed = {(int(d), int(k), int(s), int(n)) for d, k, s, n in re.findall(r"cell (\d+)\.(\d+): (\d+) same, (\d+) diff", text)}
    cells = tree.tree_.cells
    expected = set(
        zip(
            cells.depth[1:].tolist(),
            cells.rank[1:].tolist(),
            cells.n_same[1:].tolist(),
            cells.n_different[1:].tolist(),
            strict=True,
        )
    )
    assert listed == expected


def test_rules_hold_for_the_pairs(given_pairs):
    """Evaluating the printed rule of the root gives the pairs of its first child."""
    pairs, same = given_pairs
    tree = SimilarityTree(max_depth=1, splitter=CartSplitter(max_depth=3)).fit(pairs, same)
    x, x2 = pairs[:, 0], pairs[:, 1]
    lines = [line for line in tree.export_text(digits=17).splitlines() if "inside if" in line or "       or" in line]
    assert len(lines) > 1
    inside = np.zeros(len(pairs), bool)
    for line in lines:
        rule = re.sub(r"^\|\s+(inside if|or) ", "", line)
        met = np.ones(len(pairs), bool)
        for condition in rule.split(" and "):
            condition = re.sub(r"\|x(\d) - x\d'\|", r"D[:, \1]", condition)
            condition = re.sub(r"x(\d) \+ x\d'", r"S[:, \1]", condition)
            low = re.match(r"(\S+) < (.*) <= (\S+)$", condition)
            if low:
                condition = f"({low[1]} < {low[2]}) & ({low[2]} <= {low[3]})"
            met &= eval(condition, {"D": np.abs(x - x2), "S": x + x2})
        inside |= met
    np.testing.assert_array_equal(inside, tree.pair_score(pairs) == 2)


def test_names_of_a_data_frame_are_kept(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["dwell", "flight", "pressure", "tilt"])
    tree = SimilarityTree(max_depth=2, random_state=0).fit(frame, y)
    assert tree.export_text() == SimilarityTree(max_depth=2, random_state=0).fit(X, y).export_text(feature_names=frame.columns)
    assert any(f"{name} - {name}'" in tree.export_text() for name in frame.columns)
    assert "x0" not in tree.export_text()
    assert list(tree.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature_names has 1 name; X had 4 features"):
        tree.export_text(feature_names=["a"])


def test_linear_and_opaque_rules(given_pairs):
    pairs, same = given_pairs
    linear = SimilarityTree(max_depth=1, splitter=LinearSplitter()).fit(pairs, same).export_text()
    assert re.search(r"inside if -?[\d.e-]+ \(.*\) \+ .* 2 smaller terms >= ", linear)
    opaque = SimilarityTree(max_depth=1, splitter=ClassifierSplitter(DecisionTreeClassifier(max_depth=2)))
    assert "the fitted classifier predicts same" in opaque.fit(pairs, same).export_text()


def test_long_unions_are_truncated(blobs):
    tree = SimilarityTree(max_depth=1, splitter=CartSplitter(max_depth=7, min_samples_leaf=1), random_state=0).fit(*blobs)
    assert re.search(r"or one of \d+ more rules", tree.export_text())


def test_a_small_tree_as_a_dict():
    pairs = np.array([[[0.0], [d]] for d in range(1, 8)])
    same = [True, True, False, True, False, False, False]
    tree = SimilarityTree(max_depth=3, splitter="cut", coordinates=["abs_diff"]).fit(pairs, same)
    root = tree.to_dict()["tree"]
    assert root["inside_if"] == ["|x0 - x0'| <= 4.5"]
    assert root["fpr"] == root["tpr"] == [0.0, 1.0]
    assert root["outside"] == {
        "depth": 1,
        "rank": 1,
        "n_same": 0,
        "n_different": 3,
        "fpr": [0.25, 1.0],
        "tpr": [1.0, 1.0],
        "llr": float(tree.tree_.llr[2]),
        "score": 4.0,
    }
    assert [root["inside"]["inside"]["score"], root["inside"]["outside"]["inside"]["score"]] == [8.0, 6.0]


def test_a_dict_is_json_serializable_and_complete(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    forest = SimilarityForest(n_estimators=2, max_depth=3, n_pairs=300, preprocessor=X, random_state=0).fit(frame, y)
    found = json.loads(json.dumps(forest.calibrate_threshold(frame, y, confidence=None).to_dict()))
    assert found["class"] == "SimilarityForest"
    assert found["parameters"]["n_pairs"] == 300
    assert "preprocessor" not in found["parameters"]
    assert found["feature_names_in"] == ["a", "b", "c", "d"]
    assert found["threshold_report"]["threshold"] == found["threshold"] == forest.threshold_
    assert found["calibration"] is None
    assert len(found["trees"]) == 2
    rule = found["trees"][0]["inside_if"][0]
    assert re.search(r"[abcd]'", rule)
