"""Similarities of known classes by the class posteriors of scikit-learn's and LightGBM's classifiers, and of their mean.

If p_k is the posterior of class k and q_k its prior, the likelihood ratio of a pair is the sum of p_k p'_k / q_k; the dot
product of posteriors is the same with equal priors. The classifiers are tuned within the training side: by cross-validation on
a subsample, and LightGBM by early stopping.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import models
from accuracy.peers import MappedSamples, Training, subsample
from simtree.experiments import _peers as maps

# Hyperparameters are compared on at most so many samples.
MAX_SEARCHED = 2_000
N_FOLDS = 3
N_NETWORKS = 3
# With at least so many samples a network holds a tenth of them out to stop early.
MIN_STOPPED = 5_000


def extra_trees(training: Training) -> Any:
    trees = ExtraTreesClassifier(training.rounds(500), n_jobs=training.n_jobs, random_state=training.seed)
    return tuned(training, trees, {"min_samples_leaf": [1, 3, 10]}, "neg_log_loss").fit(training.X, training.y)


def lightgbm(training: Training) -> Any:
    """Return LightGBM's classifier of classes, with the number of rounds that is best on held-out samples."""
    from lightgbm import early_stopping

    how = {"learning_rate": 0.05, "num_leaves": 31, "n_jobs": training.n_jobs, "random_state": training.seed}
    out = training.hold_out()
    stopped = models.lightgbm(training.rounds(2_000), **how)
    validation = [(training.X[out], training.y[out])]
    callbacks = [early_stopping(training.rounds(50), verbose=False)]
    stopped.fit(training.X[~out], training.y[~out], eval_set=validation, callbacks=callbacks)
    return models.lightgbm(stopped.best_iteration_, **how).fit(training.X, training.y)


def svm(training: Training) -> Any:
    """Return a support vector machine on standardised features, with the probabilities of libsvm.

    They couple calibrated pairs of classes. `CalibratedClassifierCV`, which scikit-learn recommends instead, calibrates each
    class against all others; in a first comparison that was far worse (satimage: a TPR of 0.35 instead of 0.61 at an FPR of
    0.01).
    """
    machine = make_pipeline(StandardScaler(), SVC(cache_size=1_000, random_state=training.seed))
    width = 1.0 / training.X.shape[1]
    grid = {"svc__C": [1.0, 10.0, 100.0], "svc__gamma": [0.3 * width, width, 3.0 * width]}
    machine = tuned(training, machine, grid, "accuracy").set_params(svc__probability=True)
    return machine.fit(training.X, training.y)


def mlp(training: Training) -> Any:
    """Return several networks on standardised features, whose posteriors are averaged."""
    stops = len(training.X) >= MIN_STOPPED
    network = MLPClassifier((256, 128), max_iter=training.rounds(200), early_stopping=stops, random_state=training.seed)
    pipeline = make_pipeline(StandardScaler(), network)
    pipeline = tuned(training, pipeline, {"mlpclassifier__alpha": [1e-4, 1e-2, 1.0]}, "neg_log_loss")
    seeds = np.random.SeedSequence(training.seed).generate_state(N_NETWORKS).tolist()
    members = [(f"network {seed}", clone(pipeline).set_params(mlpclassifier__random_state=seed)) for seed in seeds]
    return VotingClassifier(members, voting="soft").fit(training.X, training.y)


def tuned(training: Training, estimator: Any, grid: dict[str, list[Any]], scoring: str) -> Any:
    """Return an unfitted classifier with the parameters that are best on folds of a subsample."""
    if training.is_check:
        return estimator
    X, y = subsample(training, MAX_SEARCHED)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=training.seed)
    search = GridSearchCV(estimator, grid, scoring=scoring, cv=folds, refit=False).fit(X, y)
    return clone(estimator).set_params(**search.best_params_)


CLASSIFIERS: dict[str, Callable[[Training], Any]] = {
    "ExtraTrees": extra_trees,
    "LightGBM": lightgbm,
    "SVM": svm,
    "MLP": mlp,
}


@dataclass(frozen=True)
class Fitted:
    """Fitted classifier, and the time that it took."""

    classifier: Any
    seconds: float


# One classifier is part of several models of a split, which are run in sequence.
@lru_cache(maxsize=len(CLASSIFIERS))
def fitted(training: Training, name: str) -> Fitted:
    start = time.perf_counter()
    return Fitted(CLASSIFIERS[name](training), time.perf_counter() - start)


@dataclass(frozen=True)
class Posteriors(MappedSamples):
    """Similarity by class posteriors, with the time of all fits."""

    fit_seconds: float


def posteriors(training: Training, *, classifiers: tuple[str, ...], ratio: bool) -> Posteriors:
    """Train classifiers of the known classes; score by the dot product or the likelihood ratio of mean posteriors."""
    parts = [fitted(training, name) for name in classifiers]
    priors = np.unique(training.y, return_counts=True)[1] / len(training.y)
    weights = 1.0 / np.sqrt(priors) if ratio else np.ones(len(priors))

    def weighted(X: np.ndarray) -> np.ndarray:
        return weights * np.mean([part.classifier.predict_proba(X) for part in parts], axis=0)

    return Posteriors(weighted, maps.inner_product_scores, sum(part.seconds for part in parts))
