"""LightGBM, XGBoost and CatBoost on pair coordinates: early stopping, and settings that `accuracy.tune` has searched for.

The number of rounds is found on pairs of a held-out fifth of the identities (of the samples if classes are known). The model is
then fitted again on pairs of all samples. Scores are raw, because probabilities of many sure pairs are equal after rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

import models
from accuracy.peers import F, PairClassifier, Training, coordinates, identity
from accuracy.settings import Setting, setting_for
from problems import draw, row_numbers

MAX_ROUNDS = 2_000
PATIENCE = 100
VALIDATION_PAIRS = 100_000
# Metric by which early stopping decides, and the share of same pairs among the validation pairs of each metric. The loss of
# models that are trained on as many same as different pairs needs such pairs; rankings are compared on fewer same pairs, since
# low false positive rates need many different ones. On the training people of the keystroke data (`tune --metrics`), average
# precision and AUC differ by about 0.001 in the mean of AUC and TPRs; the loss costs LightGBM 0.008 and XGBoost 0.02, and
# CatBoost's results do not depend on the metric.
METRIC = "average precision"
SAME_SHARE = {"AUC": 0.1, "average precision": 0.1, "log loss": 0.5}

Data = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Library:
    """How a library is called.

    Parameters
    ----------
    make : callable
        Function from a number of rounds and parameters to an unfitted classifier.
    size : str
        Parameter for the size of trees: a number of leaves, or the depth.
    metrics : mapping
        Names of the metrics of `SAME_SHARE`.
    stop : callable
        Function from a classifier, training and validation data, the name of a metric and a patience to the best number of
        rounds; the classifier then scores with so many.
    raw : callable
        Function from a fitted classifier and a matrix of coordinates to raw scores.
    """

    make: Callable[..., Any]
    size: str
    metrics: Mapping[str, str]
    stop: Callable[[Any, Data, Data, str, int], int]
    raw: Callable[[Any, np.ndarray], np.ndarray]


def stop_lightgbm(classifier: Any, train: Data, validation: Data, metric: str, patience: int) -> int:
    from lightgbm import early_stopping

    classifier.set_params(metric=metric)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The argument 'eval_set'")  # its successor is not in all versions
        classifier.fit(*train, eval_set=[validation], callbacks=[early_stopping(patience, verbose=False)])
    return int(classifier.best_iteration_)


def stop_xgboost(classifier: Any, train: Data, validation: Data, metric: str, patience: int) -> int:
    classifier.set_params(eval_metric=metric, early_stopping_rounds=patience)
    classifier.fit(*train, eval_set=[validation], verbose=False)
    return int(classifier.best_iteration) + 1


def stop_catboost(classifier: Any, train: Data, validation: Data, metric: str, patience: int) -> int:
    classifier.set_params(eval_metric=metric, early_stopping_rounds=patience, use_best_model=True)
    classifier.fit(*train, eval_set=validation)
    return int(classifier.tree_count_)


def raw_lightgbm(classifier: Any, matrix: np.ndarray) -> np.ndarray:
    return classifier.booster_.predict(matrix, raw_score=True, num_threads=classifier.n_jobs)


def raw_xgboost(classifier: Any, matrix: np.ndarray) -> np.ndarray:
    return classifier.predict(matrix, output_margin=True)


def raw_catboost(classifier: Any, matrix: np.ndarray) -> np.ndarray:
    return classifier.predict(matrix, prediction_type="RawFormulaVal")


LIBRARIES = {
    "LightGBM": Library(
        models.lightgbm,
        "num_leaves",
        {"AUC": "auc", "average precision": "average_precision", "log loss": "binary_logloss"},
        stop_lightgbm,
        raw_lightgbm,
    ),
    "XGBoost": Library(
        models.xgboost,
        "max_leaves",
        {"AUC": "auc", "average precision": "aucpr", "log loss": "logloss"},
        stop_xgboost,
        raw_xgboost,
    ),
    "CatBoost": Library(
        models.catboost,
        "depth",
        {"AUC": "AUC", "average precision": "PRAUC", "log loss": "Logloss"},
        stop_catboost,
        raw_catboost,
    ),
}


def boosted(
    training: Training,
    *,
    library: str,
    n_pairs: int,
    kinds: Sequence[str] = F,
    represent: Callable[[Training], Any] | None = None,
    same_weighting: str = "pairs",
    setting: Setting | None = None,
    metric: str = METRIC,
    n_validation: int = VALIDATION_PAIRS,
    refit: bool = True,
) -> PairClassifier:
    """Train gradient boosting on same and different pairs.

    Parameters
    ----------
    training : Training
        Training data.
    library : str
        Key of `LIBRARIES`.
    n_pairs : int
        Number of training pairs.
    kinds : sequence of str
        Coordinates of the pairs.
    represent : callable, optional
        Function that returns a transformer of samples, fitted by its ``fit_transform`` as in `SimilarityForest`; without the
        held-out samples to find the number of rounds.
    same_weighting : {"pairs", "identities"}
        Whether same pairs are uniform over pairs or over identities.
    setting : Setting, optional
        Learning rate and size of trees; by default those that were found for the problem.
    metric : str
        Metric for early stopping, a key of `SAME_SHARE`.
    n_validation : int
        Number of held-out pairs for early stopping.
    refit : bool
        Whether the model is fitted again on pairs of all samples.
    """
    used = LIBRARIES[library]
    setting = setting or setting_for(training, library)
    representation = None if represent is None else represent(training)
    make = partial(
        used.make,
        learning_rate=setting.learning_rate,
        n_jobs=training.n_jobs,
        random_state=training.seed,
        **{used.size: setting.size},
    )
    out = training.hold_out()
    samples, transform = fit_map(representation, training.X[~out], training.y[~out])
    how = {"seed": training.seed, "same_weighting": same_weighting}
    train = draw(training.y[~out], training.some(n_pairs), **how)
    held_out = draw(training.y[out], training.some(n_validation), positive_fraction=SAME_SHARE[metric], **how)
    classifier = make(training.rounds(MAX_ROUNDS))
    rounds = used.stop(
        classifier,
        (coordinates(samples, row_numbers(train), kinds), train.same),
        (coordinates(transform(training.X[out]), row_numbers(held_out), kinds), held_out.same),
        used.metrics[metric],
        training.rounds(PATIENCE),
    )
    if refit:
        samples, transform = fit_map(representation, training.X, training.y)
        pairs = training.pairs(n_pairs, same_weighting)
        classifier = make(rounds)
        classifier.fit(coordinates(samples, row_numbers(pairs), kinds), pairs.same)
    return PairClassifier(partial(used.raw, classifier), kinds, transform)


def fit_map(representation: Any, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return samples transformed by a fitted copy of a transformer, and the function that transforms others."""
    if representation is None:
        return X, identity
    fitted = clone(representation)
    return fitted.fit_transform(X, y), fitted.transform
