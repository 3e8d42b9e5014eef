"""Early stopping: what is held out to find the number of rounds, and the results on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree._utils.folds import assign_folds
from simtree.io._fields import Fields
from simtree.metrics import Roc, roc_curve
from simtree.pairs._sources import IndexPairs, PairSource

# Held-out pairs of labelled samples that rounds are compared on, and the share of same pairs among them.
VALIDATION_PAIRS = 200_000
VALIDATION_SAME = 0.25
# With fewer held-out same or different pairs than this, early stopping would follow noise.
MIN_HELD_OUT = 30
# Number of rounds between two evaluations.
ROUNDS_PER_EVALUATION = 5
# False positive rates over which the TPR is averaged: log-spaced between these, and at least so many different pairs.
FPR_RANGE, N_FPRS, MIN_DIFFERENT = (1e-4, 0.3), 15, 10
# Columns of a validation curve.
CURVE = ("iteration", "tpr", "auc", "log_loss")


class HeldOut(NamedTuple):
    """Data without and with a held-out part.

    Parameters
    ----------
    seen, left_out : PairSource
        Pairs to learn from, and held-out pairs.
    weights : ndarray or None
        Weights of given pairs to learn from.
    known : ndarray of bool of shape (n_samples,)
        Samples that a representation may be fitted on.
    """

    seen: PairSource
    left_out: PairSource
    weights: NDArray[np.float64] | None
    known: NDArray[np.bool_]

    def sample(self, rng: np.random.Generator, same_weighting: str) -> IndexPairs:
        """Return the held-out pairs, or some of them."""
        if self.left_out.labels is None:
            return self.left_out.subsample(VALIDATION_PAIRS, rng)
        return self.left_out.sample(
            VALIDATION_PAIRS, rng, positive_fraction=VALIDATION_SAME, same_weighting=same_weighting, shuffle=False
        )


def hold_out(
    source: PairSource,
    n_samples: int,
    units: NDArray[np.int64] | None,
    weights: NDArray[np.float64] | None,
    open_set: bool | None,
    share: float,
    rng: np.random.Generator,
) -> HeldOut | None:
    """Return the data without and with a held-out part; None if too few pairs can be held out.

    Parameters
    ----------
    source : PairSource
        All pairs.
    n_samples : int
        Number of samples.
    units : ndarray of shape (n_samples,) or None
        Groups that are held out together. By default identities of an open set, samples of a closed set, or given pairs.
    weights : ndarray of shape (n_pairs,) or None
        Weights of given pairs.
    open_set : bool or None
        Whether identities are held out; None for given pairs.
    share : float
        Share that is held out, at most one half.
    rng : numpy.random.Generator
        Source of randomness.
    """
    n_folds = max(2, round(1.0 / share))
    seen: PairSource | None
    left_out: PairSource | None
    if isinstance(source, IndexPairs):
        if units is None:
            pair_is_out = assign_folds(len(source), n_folds, rng, source.same.astype(np.int64)) == 0
            pair_is_seen = ~pair_is_out
        else:
            out = _one_fold(units, n_folds, rng, None)
            pair_is_out, pair_is_seen = (chosen[source.first] & chosen[source.second] for chosen in (out, ~out))
        given, left_out = source.take(pair_is_seen), source.take(pair_is_out)
        seen = given if given.has_both_kinds else None
        weights = None if weights is None else weights[pair_is_seen]
        known = np.zeros(n_samples, dtype=np.bool_)
        known[given.first] = known[given.second] = True
    else:
        assert source.labels is not None
        classes = None
        if units is None:
            units, classes = (source.labels, None) if open_set else (np.arange(n_samples), source.labels)
        out = _one_fold(units, n_folds, rng, classes)
        seen, left_out, known = source.restrict(~out), source.restrict(out), ~out
    if seen is None or left_out is None:
        return None
    drawn = left_out.sample(VALIDATION_PAIRS, np.random.default_rng(0), shuffle=False)
    enough = min(drawn.n_same, len(drawn) - drawn.n_same) >= MIN_HELD_OUT
    return HeldOut(seen, left_out, weights, known) if enough else None


@dataclass
class ValidationCurve:
    """Held-out results by the number of rounds.

    Parameters
    ----------
    patience : int
        Number of rounds without improvement after which to stop.
    """

    patience: int
    results: list[tuple[float, ...]] = field(default_factory=list)
    best_iteration: int = 0
    best_roc: Roc = field(init=False)
    stopped: bool = False
    _best: float = -np.inf

    def add(self, iteration: int, scores: NDArray[np.float64], same: NDArray[np.bool_]) -> None:
        """Add the results after some rounds, and decide whether to stop."""
        roc = roc_curve(scores, same)
        tpr = mean_tpr(roc, int(np.count_nonzero(~same)))
        self.results.append((iteration, tpr, roc.auc(), log_loss(scores, same)))
        if tpr > self._best:
            self._best, self.best_iteration, self.best_roc = tpr, iteration, roc
        self.stopped = iteration - self.best_iteration >= self.patience

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the results as columns."""
        found = {name: np.array(column) for name, column in zip(CURVE, zip(*self.results, strict=True), strict=True)}
        return {**found, "iteration": found["iteration"].astype(np.int64)}


def curve_from_state(fields: Fields, max_iterations: int) -> dict[str, NDArray[Any]]:
    """Return the columns of a curve from a model file."""
    iteration = fields.array("iteration", "float64", (None,), low=1, high=max_iterations)
    return {
        "iteration": iteration.astype(np.int64),
        **{name: fields.array(name, "float64", iteration.shape) for name in CURVE[1:]},
    }


def mean_tpr(roc: Roc, n_different: int) -> float:
    """Return the TPR averaged over log-spaced false positive rates, interpolated so that ties do not decide."""
    low = min(max(FPR_RANGE[0], MIN_DIFFERENT / n_different), FPR_RANGE[1])
    return float(np.mean(roc.at(np.geomspace(low, FPR_RANGE[1], N_FPRS))))


def log_loss(scores: NDArray[np.float64], same: NDArray[np.bool_]) -> float:
    """Return the logistic loss of scores, where same and different pairs weigh equally."""
    return float(0.5 * (np.logaddexp(0.0, -scores[same]).mean() + np.logaddexp(0.0, scores[~same]).mean()))


def _one_fold(
    units: NDArray[np.int64], n_folds: int, rng: np.random.Generator, classes: NDArray[np.int64] | None
) -> NDArray[np.bool_]:
    """Return which samples are in one random fold of the units."""
    return np.asarray(assign_folds(int(units.max()) + 1, n_folds, rng, classes)[units] == 0)
