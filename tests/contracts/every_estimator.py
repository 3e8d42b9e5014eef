"""The list of all estimators: to add one, add an entry, and every contract test runs on it."""

from __future__ import annotations

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from simtree import ClassifierSplitter, LinearSplitter, SimilarityForest, SimilarityTree

TREES = {
    "tree": SimilarityTree(max_depth=6, n_pairs=2000, random_state=0),
    "tree-exact": SimilarityTree(max_depth=4, n_pairs=1000, max_bins=None, random_state=0),
    "tree-cut": SimilarityTree(
        max_depth=5, splitter="cut", coordinates=["abs_diff", "sum", "min"], n_pairs=2000, random_state=0
    ),
    "tree-cross": SimilarityTree(max_depth=5, splitter="cross", n_pairs=2000, random_state=0),
    "tree-linear": SimilarityTree(max_depth=3, splitter=LinearSplitter(), n_pairs=1000, random_state=0),
    "tree-opaque": SimilarityTree(
        max_depth=3,
        splitter=ClassifierSplitter(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, max_features=4))),
        n_pairs=800,
        random_state=0,
    ),
    "tree-drawn": SimilarityTree(max_depth=6, max_features=0.5, n_pairs=2000, random_state=0),
}

FORESTS = {
    "forest": SimilarityForest(n_estimators=6, max_depth=5, n_pairs=1000, random_state=0),
    "forest-mean-rank": SimilarityForest(n_estimators=4, max_depth=4, n_pairs=1000, aggregation="mean_rank", random_state=0),
    "forest-median-rank": SimilarityForest(
        n_estimators=5, max_depth=4, n_pairs=1000, aggregation="median_rank", splitter="cross", bootstrap=False, random_state=0
    ),
    "forest-linear": SimilarityForest(
        n_estimators=3, max_depth=3, n_pairs=500, splitter="linear", max_features=0.5, random_state=0
    ),
}
ESTIMATORS = TREES | FORESTS
