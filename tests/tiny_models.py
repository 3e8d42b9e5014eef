"""Small fitted models of every kind that a model file can hold; run as a program it writes the files of tests/model_files.

Files of a version are written once, when it is new, and kept for ever: later versions of simtree must read them.
"""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler

from simtree import (
    AutoSimilarity,
    BoostingPosterior,
    CohortNormalization,
    DistanceSimilarity,
    ForestPosterior,
    GaussianSimilarity,
    GaussianSplitter,
    KernelDiscriminant,
    LandmarkFeatures,
    LinearSplitter,
    LogisticPosterior,
    MarginalQuantiles,
    MeanPosterior,
    NetworkPosterior,
    NuisanceCentering,
    ObliqueCartSplitter,
    PosteriorSimilarity,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
    WithinClassWhitening,
)

FILES = Path(__file__).parent / "model_files"
N_FEATURES = 3
WHITENED = (MarginalQuantiles(n_quantiles=5, output="normal"), WithinClassWhitening(random_state=0))


def people(seed, n=12, n_samples=6):
    """Samples of some people, and who they are of."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n), n_samples)
    return 1.5 * rng.normal(size=(n, N_FEATURES))[y] + 0.4 * rng.normal(size=(len(y), N_FEATURES)), y


def probes():
    """Points that no model has seen."""
    return people(99, n=4, n_samples=4)[0]


def _tree(**parameters):
    return SimilarityTree(**{"max_depth": 3, "n_pairs": 400, "random_state": 0, **parameters})


def _forest(**parameters):
    return SimilarityForest(**{"n_estimators": 3, "max_depth": 3, "n_pairs": 200, "random_state": 0, **parameters})


def _boosting(**parameters):
    settings = {"n_estimators": 4, "max_leaf_nodes": 5, "min_samples_leaf": 3, "n_pairs": 300, "refresh": 2, "random_state": 0}
    return SimilarityBoosting(**settings, **parameters)


MODELS = {
    "tree": _tree(),
    "tree-pruned": _tree(max_depth="sqrt_log", splitter="cut", prune="cv", coordinates=("abs_diff", "min", "cosine")),
    "tree-oblique": _tree(coordinates=["abs_diff", "oblique", "dot"], directions=["random", "discriminant"], n_directions=2),
    "tree-linear": _tree(splitter=LinearSplitter(C=0.5)),
    "tree-local": _tree(splitter=ObliqueCartSplitter(n_directions=2, max_depth=2, min_samples=10)),
    "tree-gaussian": _tree(splitter=GaussianSplitter(min_samples=5), max_features=2),
    "forest": _forest(oob_score=True, n_estimators=5),
    "forest-refilled": _forest(n_estimators=4, refill=True, focus_fpr=0.3),
    "forest-median": _forest(aggregation="median_rank", splitter="cross", bootstrap=False),
    "forest-linear": _forest(splitter="linear", max_features=0.5),
    "forest-posterior": _forest(representation=ForestPosterior(n_estimators=20, max_depth=3, random_state=0)),
    "forest-discriminant": _forest(representation=KernelDiscriminant(n_landmarks=6, n_repeats=2, random_state=0)),
    "forest-pipeline": _forest(representation=make_pipeline(*WHITENED), coordinates=["product", "euclidean", "oblique"]),
    "boosting": _boosting(early_stopping=True, validation_fraction=0.4, monotonic_cst={"abs_diff": -1}),
    "boosting-pipeline": _boosting(representation=make_pipeline(*WHITENED), coordinates=["product", "euclidean", "oblique"]),
    "gaussian": GaussianSimilarity(shrinkage=0.1, n_jobs=2),
    "gaussian-pipeline": GaussianSimilarity(representation=make_pipeline(*WHITENED)),
    "gaussian-centred": GaussianSimilarity(representation=NuisanceCentering(n_clusters=3, cv=2, random_state=0)),
    "distance": DistanceSimilarity(metric="manhattan", n_jobs=2),
    "distance-pipeline": DistanceSimilarity(representation=make_pipeline(*WHITENED)),
    "distance-landmarks": DistanceSimilarity(
        metric="euclidean", representation=make_pipeline(LandmarkFeatures(n_landmarks=5, random_state=0), *WHITENED)
    ),
    "distance-waves": DistanceSimilarity(
        representation=KernelDiscriminant(n_landmarks=4, landmarks="fourier", max_classes=3, random_state=0)
    ),
    "voting": VotingSimilarity(
        [
            ("distance", DistanceSimilarity(representation=make_pipeline(*WHITENED))),
            ("forest", _forest(n_estimators=2)),
            ("tree", _tree()),
        ],
        weights=[1.0, 2.0, 0.5],
    ),
    "distance-scaled": DistanceSimilarity(representation=make_pipeline(StandardScaler(), PCA(2)), metric="euclidean"),
    "tree-robust": _tree(representation=make_pipeline(RobustScaler(), MinMaxScaler(), MaxAbsScaler())),
    "gaussian-normalised": GaussianSimilarity(representation=make_pipeline(*WHITENED, Normalizer())),
    "posterior": PosteriorSimilarity(BoostingPosterior(n_rounds=2, max_leaf_nodes=3, cv=2, random_state=0), n_jobs=2),
    "posterior-mean": PosteriorSimilarity(
        MeanPosterior(
            [
                ("network", make_pipeline(StandardScaler(), NetworkPosterior(hidden_layer_sizes=(3, 2), n_updates=9, cv=2))),
                ("kernel", make_pipeline(LandmarkFeatures(n_landmarks=4), LogisticPosterior(cv=2))),
            ]
        ).set_params(
            network__networkposterior__random_state=0,
            kernel__landmarkfeatures__random_state=0,
            kernel__logisticposterior__random_state=0,
        )
    ),
    "cohort": CohortNormalization(_forest(n_estimators=2), n_cohort=9, n_nearest=4, random_state=0),
    "cohort-synthetic": CohortNormalization(
        DistanceSimilarity(representation=make_pipeline(*WHITENED)), cohort="synthetic", n_cohort=5, random_state=0
    ),
    "stacked": StackedSimilarity(
        [("distance", DistanceSimilarity(representation=make_pipeline(*WHITENED))), ("tree", _tree())], random_state=0
    ),
    "auto": AutoSimilarity(target_fpr=0.5, time_budget=0.0, open_set=True, random_state=0),
    "auto-forest": AutoSimilarity(target_fpr=0.5, time_budget=0.0, open_set=True, random_state=0),
    "auto-represented": AutoSimilarity(
        target_fpr=0.5, time_budget=0.0, open_set=True, representation=MarginalQuantiles(n_quantiles=5), random_state=0
    ),
}


@cache
def fitted(name):
    """The model of this name, fitted, with a threshold and a calibration; do not change it."""
    X, y = people(1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_estimators=|target_fpr=")  # so few trees and people say that they are
        model = MODELS[name].fit(X, y)
    if name == "auto-forest":  # as if one had been chosen: those that AutoSimilarity grows are large
        model.best_estimator_ = fitted("forest-pipeline")
    promised = "tree" in name
    model.calibrate_threshold(
        *people(2, n=80 if promised else 12), max_fpr=0.4, confidence=0.8 if promised else None, assume="none"
    )
    return model if name == "distance" else model.calibrate_probability(*people(2))


if __name__ == "__main__":
    from simtree.io._archive import VERSION

    folder = FILES / f"version_{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "scores.json"
    scores = json.loads(known.read_text()) if known.exists() else {}
    for name in [name for name in MODELS if name not in scores]:  # never over files that exist
        model = fitted(name)
        scores[name] = model.pairwise_score(probes())[0].tolist()
        model.save(folder / f"{name}.simtree")
    known.write_text(json.dumps({name: scores[name] for name in MODELS}, indent=1) + "\n")
