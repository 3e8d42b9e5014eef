"""The list of all estimators: to add one, add an entry, and every contract test runs on it."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from simtree import (
    AutoSimilarity,
    ClassifierSplitter,
    CohortNormalization,
    DistanceSimilarity,
    ForestPosterior,
    GaussianSimilarity,
    GaussianSplitter,
    LinearSplitter,
    MarginalQuantiles,
    ObliqueCartSplitter,
    PosteriorSimilarity,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
)

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
    "tree-whole": SimilarityTree(
        max_depth=5, coordinates=["product", "dot", "cosine", "euclidean", "manhattan"], n_pairs=2000, random_state=0
    ),
    "tree-oblique": SimilarityTree(
        max_depth=5, coordinates=["abs_diff", "oblique"], directions=["random", "discriminant"], n_pairs=2000, random_state=0
    ),
    "tree-represented": SimilarityTree(
        max_depth=5,
        representation=FunctionTransformer(np.square, feature_names_out="one-to-one"),
        coordinates=["sum", "oblique"],
        n_pairs=2000,
        random_state=0,
    ),
    "tree-local": SimilarityTree(
        max_depth=4,
        splitter=ObliqueCartSplitter(n_directions=2, max_depth=3, min_samples=20),
        coordinates=["abs_diff", "sum", "cosine", "oblique"],
        n_pairs=2000,
        random_state=0,
    ),
    "tree-gaussian": SimilarityTree(max_depth=3, splitter=GaussianSplitter(min_samples=5), n_pairs=2000, random_state=0),
    "tree-drawn": SimilarityTree(max_depth=6, max_features=0.5, n_pairs=2000, random_state=0),
}

FORESTS = {
    "forest": SimilarityForest(n_estimators=6, max_depth=5, n_pairs=1000, random_state=0),
    "forest-mean-rank": SimilarityForest(n_estimators=4, max_depth=4, n_pairs=1000, aggregation="mean_rank", random_state=0),
    "forest-median-rank": SimilarityForest(
        n_estimators=5, max_depth=4, n_pairs=1000, aggregation="median_rank", splitter="cross", bootstrap=False, random_state=0
    ),
    "forest-full": SimilarityForest(
        n_estimators=5,
        max_depth=5,
        coordinates=["abs_diff", "sum", "product", "cosine", "manhattan", "oblique"],
        directions=["discriminant", "random"],
        n_directions=2,
        n_pairs=1000,
        max_features=0.8,
        random_state=0,
    ),
    "forest-linear": SimilarityForest(
        n_estimators=3, max_depth=3, n_pairs=500, splitter="linear", max_features=0.5, random_state=0
    ),
}
BOOSTED = {
    "boosting": SimilarityBoosting(n_estimators=8, max_leaf_nodes=8, min_samples_leaf=5, n_pairs=1000, random_state=0),
    "boosting-full": SimilarityBoosting(
        n_estimators=5,
        max_leaf_nodes=6,
        min_samples_leaf=5,
        max_depth=4,
        coordinates=["abs_diff", "sum", "product", "cosine", "manhattan", "oblique"],
        directions=["discriminant", "random"],
        n_directions=2,
        n_pairs=500,
        refresh=2,
        focus_fpr=0.2,
        max_features=0.8,
        subsample=0.7,
        monotonic_cst={"cosine": 1, "oblique": -1},
        early_stopping=False,
        random_state=0,
    ),
}
ESTIMATORS = TREES | FORESTS | BOOSTED
# What scores pairs in other ways.
OTHERS = {
    "gaussian": GaussianSimilarity(representation=MarginalQuantiles()),
    "distance": DistanceSimilarity(metric="euclidean", representation=MarginalQuantiles()),
    "voting": VotingSimilarity(
        [("distance", DistanceSimilarity()), ("forest", FORESTS["forest"]), ("tree", TREES["tree-whole"])]
    ),
    "posterior": PosteriorSimilarity(ForestPosterior(n_estimators=30, random_state=0)),
    "cohort": CohortNormalization(FORESTS["forest-full"], n_cohort=40, n_nearest=10, random_state=0),
    "cohort-distance": CohortNormalization(DistanceSimilarity(metric="euclidean"), cohort="synthetic", random_state=0),
    "stacked": StackedSimilarity(
        [("distance", DistanceSimilarity()), ("forest", FORESTS["forest"]), ("tree", TREES["tree-whole"])],
        open_set=False,
        random_state=0,
    ),
    "auto": AutoSimilarity(target_fpr=0.15, time_budget=0.0, open_set=False, random_state=0),
}


def looks_at_single_features(estimator):
    """Whether each coordinate is of one feature and does not change when a constant is added to it."""
    kinds = estimator.coordinates or ["abs_diff"]
    return estimator.representation is None and set(kinds) <= {"abs_diff", "sum", "min", "max"}
