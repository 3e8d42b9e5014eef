"""One run of the accuracy benchmark: a model is trained on one side of a split and scores the pairs of the other.

The result of a run has the AUC, the TPR at some FPRs, a curve for the plot, and times. A rate is kept only if at least 30
different pairs lie at that FPR, because it is too uncertain otherwise.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from accuracy.data import N_CHOICES, Faces, Pairs, Split, without_fold
from accuracy.peers import Learn, Training
from simtree.metrics import roc_curve, tpr_at_fpr

AUC = "AUC"
FPR = (1e-1, 1e-2, 1e-3, 1e-4)
MIN_DIFFERENT = 30
# False positive rates at which curves are kept for the plot.
GRID = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 121)])
SPLITS = (1, 2, 3, 4, 5)
N_OFFICIAL_FOLDS = 10


def tpr_at(fpr: float) -> str:
    """Return the name of a rate in tables, JSON and targets."""
    return f"TPR at {fpr:g}"


@dataclass(frozen=True)
class Scale:
    """Size of a run, relative to the full benchmark."""

    name: str
    share: float
    test_pairs: float

    def pairs(self, same: int, different: int) -> Pairs:
        return Pairs(round(self.test_pairs * same), round(self.test_pairs * different))


SCALES = {"full": Scale("full", 1.0, 1.0), "quick": Scale("quick", 0.1, 0.1), "tiny": Scale("tiny", 0.002, 0.01)}


@dataclass(frozen=True)
class Model:
    """A model of a table.

    Parameters
    ----------
    name : str
        Unique name in tables and in the log.
    learn : callable
        Function from `Training` to an object with ``pair_score(rows, X)``.
    ours : bool
        Whether it is a model of simtree.
    needs : str or None
        Optional library; the model is skipped if it is not installed.
    """

    name: str
    learn: Learn
    ours: bool = False
    needs: str | None = None

    @property
    def installed(self) -> bool:
        return self.needs is None or find_spec(self.needs) is not None

    @property
    def settings(self) -> dict[str, str]:
        """Name of the training function and its non-default arguments, as strings."""
        function, given = (self.learn.func, self.learn.keywords) if isinstance(self.learn, partial) else (self.learn, {})
        return {"learn": function.__name__} | {name: getattr(value, "__name__", str(value)) for name, value in given.items()}


@dataclass(frozen=True)
class Comparison:
    """Comparison of a model of simtree with baselines, in AUC and at every FPR, and its targets."""

    title: str
    model: str
    baselines: tuple[str, ...]
    targets: Mapping[str, float]


@dataclass(frozen=True)
class Problem:
    """Samples with their splits. ``split`` is a function of a scale, a split number, and an inner fold number or None."""

    name: str
    split: Callable[[Scale, int, int | None], Split]
    fpr: tuple[float, ...] = FPR
    n_choices: int = N_CHOICES
    faces: Callable[[Scale], Faces] | None = None


@dataclass(frozen=True)
class Benchmark:
    """Models of one table, and the problems they are run on."""

    name: str
    title: str
    description: str
    problems: tuple[Problem, ...]
    models: tuple[Model, ...]
    comparisons: tuple[Comparison, ...]

    def model(self, name: str) -> Model:
        return next(model for model in self.models if model.name == name)


@dataclass(frozen=True)
class Unit:
    """Data of a run: a split of a problem, an inner fold of split 0, or an official fold."""

    problem: Problem
    kind: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.problem.name} {self.kind} {self.number}"


def units_of(problem: Problem, splits: tuple[int, ...], choose: bool) -> Iterator[Unit]:
    """Iterate over the units that a model is run on, to choose or to report."""
    if choose:
        yield from (Unit(problem, "choice", k) for k in range(problem.n_choices))
        return
    yield from (Unit(problem, "split", k) for k in splits)
    if problem.faces is not None:
        yield from (Unit(problem, "fold", k) for k in range(N_OFFICIAL_FOLDS))


# All models of a unit are run in sequence, so it is enough to keep the last split.
@lru_cache(maxsize=1)
def split_of(unit: Unit, scale: Scale) -> Split:
    if unit.kind == "fold":
        return without_fold(unit.problem.faces(scale), unit.number)
    if unit.kind == "choice":
        return unit.problem.split(scale, 0, unit.number)
    return unit.problem.split(scale, unit.number, None)


@lru_cache(maxsize=1)
def training_of(unit: Unit, scale: Scale, n_jobs: int) -> Training:
    """Return the training side of a split; the same object for all models, so that they can share what they fit."""
    split = split_of(unit, scale)
    return Training(split.X, split.y, split.groups, unit.number, n_jobs, scale.share, unit.problem.name)


def one_run(model: Model, unit: Unit, scale: Scale, n_jobs: int) -> dict[str, Any]:
    """Train a model on one side of a split, and score the pairs of the other."""
    split, training = split_of(unit, scale), training_of(unit, scale, n_jobs)
    with warnings.catch_warnings(action="ignore"):  # peers warn whenever they stop before convergence
        start = time.perf_counter()
        learned = model.learn(training)
        fitted = time.perf_counter()
        scores = np.asarray(learned.pair_score(split.rows, split.X_test), dtype=np.float64)
    # A model that shares fits with others has the time that they took.
    fit_seconds = getattr(learned, "fit_seconds", fitted - start)
    seconds = {"fit": round(fit_seconds, 2), "score": round(time.perf_counter() - fitted, 2)}
    if unit.kind == "fold":
        return {"scores": [float(f"{score:.8g}") for score in scores], "same": split.same.tolist(), "seconds": seconds}
    own = {"own": own_figure(learned, scores, split.same)} if getattr(learned, "performance_", None) else {}
    return {**compute_metrics(scores, split.same, unit.problem.fpr), "seconds": seconds, **own}


def own_figure(learned: Any, scores: np.ndarray, same: np.ndarray) -> dict[str, Any]:
    """Return the TPR that a model expects at its false positive rate, with the ends of its interval, and that of the test."""
    return {
        "fpr": learned.fpr_,
        "tpr": [round(value, 6) for value in learned.performance_["tpr"]],
        "test": round(float(roc_curve(scores, same).at(learned.fpr_)), 6),
    }


def compute_metrics(scores: np.ndarray, same: np.ndarray, fpr: tuple[float, ...]) -> dict[str, Any]:
    """Return the AUC, the rates (None if there are too few different pairs), and the curve."""
    roc = roc_curve(scores, same)
    n_different = int(np.count_nonzero(~same))
    rates = tpr_at_fpr(roc, list(fpr))
    return {
        "auc": round(roc.auc(), 7),
        "tpr": [
            round(float(rate), 7) if n_different * at >= MIN_DIFFERENT else None for at, rate in zip(fpr, rates, strict=True)
        ],
        "n_same": len(same) - n_different,
        "n_different": n_different,
        "curve": [round(float(rate), 5) for rate in tpr_at_fpr(roc, GRID)],
    }


def tasks_of(models: list[Model], units: list[Unit], scale: Scale, n_jobs: int) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return all runs by name, unit by unit."""
    return {run_name(model, unit): partial(one_run, model, unit, scale, n_jobs) for unit in units for model in models}


def run_name(model: Model, unit: Unit) -> str:
    return f"{unit.name}: {model.name}"


def official_accuracies(folds: list[dict[str, Any]]) -> list[float]:
    """Return the accuracy on each fold, with the threshold that is best on the pairs of the other folds.

    Each fold was scored by a model that was trained without its identities.
    """
    scores = [np.array(fold["scores"]) for fold in folds]
    same = [np.array(fold["same"]) for fold in folds]
    accuracies = []
    for k in range(len(folds)):
        others = [j for j in range(len(folds)) if j != k]
        threshold = best_threshold(np.concatenate([scores[j] for j in others]), np.concatenate([same[j] for j in others]))
        accuracies.append(float(np.mean((scores[k] >= threshold) == same[k])))
    return accuracies


def best_threshold(scores: np.ndarray, same: np.ndarray) -> float:
    """Return the threshold with the highest accuracy, halfway between two scores."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    right = np.cumsum(np.where(same[order], 1, -1))
    right[:-1][ordered[:-1] == ordered[1:]] = -len(scores)  # a threshold does not cut ties
    best = int(np.argmax(right))
    return float(ordered[best] + ordered[min(best + 1, len(ordered) - 1)]) / 2.0
