"""Early stopping: what is held out to find the number of rounds, and the results on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from simtree._utils.folds import assign_folds
from simtree.io._fields import Fields
from simtree.metrics import Roc
from simtree.metrics._roc import weighted_roc_curve
from simtree.models._open_set import is_open_set
from simtree.pairs._cross_validation import assign_identities
from simtree.pairs._labels import encode_labels
from simtree.pairs._sources import IndexPairs, PairSource

# Held-out pairs of labelled samples that rounds are compared on, and the share of same pairs among them.
VALIDATION_PAIRS = 200_000
VALIDATION_SAME = 0.25
# With fewer held-out same or different pairs than this, early stopping would follow noise.
MIN_HELD_OUT = 30
# Number of rounds between two evaluations.
ROUNDS_PER_EVALUATION = 5
# False positive rates over which the TPR is averaged: log-spaced around 0.001, where boosting that fits noise fails first. The
# lowest one has at least so many different pairs; of few pairs all rates are higher, by the same factor, up to the largest.
FPR_RANGE, N_FPRS, MIN_DIFFERENT, MAX_FPR = (1e-4, 1e-2), 15, 10, 0.5
# Of these rates the lowest, the middle and the highest one are watched: at none of them may the TPR fall.
WATCHED = [0, N_FPRS // 2, N_FPRS - 1]
# Rounds whose average TPR is lower than the highest by no more than this share of it may be as good.
AS_GOOD = 0.02
# Errors below this are taken for it, so that their logarithms are finite.
MIN_ERROR = 1e-9
# Numbers of the units of the first and of the second sample of each pair.
Units = tuple[NDArray[np.int64], NDArray[np.int64]]
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
    units : ndarray of shape (n_samples,)
        Number of the unit of each sample: what is held out as a whole.
    left_out_weights : ndarray or None
        Weights of given pairs that are held out.
    """

    seen: PairSource
    left_out: PairSource
    weights: NDArray[np.float64] | None
    known: NDArray[np.bool_]
    units: NDArray[np.int64]
    left_out_weights: NDArray[np.float64] | None = None

    def sample(self, rng: np.random.Generator, same_weighting: str) -> tuple[IndexPairs, NDArray[np.float64] | None]:
        """Return the held-out pairs, or some of them, and their weights."""
        if self.left_out.labels is None:
            return subsample(self.left_out, self.left_out_weights, VALIDATION_PAIRS, rng)
        drawn = self.left_out.sample(
            VALIDATION_PAIRS, rng, positive_fraction=VALIDATION_SAME, same_weighting=same_weighting, shuffle=False
        )
        return drawn, None


def subsample(
    source: PairSource, weights: NDArray[np.float64] | None, n_pairs: int, rng: np.random.Generator
) -> tuple[IndexPairs, NDArray[np.float64] | None]:
    """Return at most ``n_pairs`` pairs, and their weights if they have any."""
    given = source.given()
    if weights is None or given is None or len(given) <= n_pairs:
        return source.subsample(n_pairs, rng), weights
    chosen = rng.choice(len(given), n_pairs, replace=False)
    return given.take(chosen), weights[chosen]


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
        Groups that are held out together. By default identities of an open set and samples of a closed set; of given pairs
        identities or samples too if pairs share samples, otherwise pairs.
    weights : ndarray of shape (n_pairs,) or None
        Weights of given pairs.
    open_set : bool or None
        Whether identities are held out. For given pairs None stands for "auto": identities are then counted.
    share : float
        Share that is held out, at most one half.
    rng : numpy.random.Generator
        Source of randomness.
    """
    n_folds = max(2, round(1.0 / share))
    given = source.given()
    if given is not None:
        return _hold_out_given(given, n_samples, units, weights, open_set, n_folds, rng)
    assert source.labels is not None
    classes = None
    if units is None:
        units, classes = (source.labels, None) if open_set else (np.arange(n_samples), source.labels)
    out = np.asarray(assign_folds(int(units.max()) + 1, n_folds, rng, classes)[units] == 0)
    seen, left_out = source.restrict(~out), source.restrict(out)
    if seen is None or left_out is None:
        return None
    drawn = left_out.sample(VALIDATION_PAIRS, np.random.default_rng(0), shuffle=False)
    return HeldOut(seen, left_out, weights, ~out, units) if _is_enough(drawn) else None


def _hold_out_given(
    source: IndexPairs,
    n_samples: int,
    units: NDArray[np.int64] | None,
    weights: NDArray[np.float64] | None,
    open_set: bool | None,
    n_folds: int,
    rng: np.random.Generator,
) -> HeldOut | None:
    """Return given pairs without and with a held-out part, which share no unit; None if too few pairs can be held out.

    Pairs between the two parts are in neither, so that a larger part is held out if too few pairs would be.
    """
    for of_samples in [units] if units is not None else _units_of_given(source, n_samples, open_set):
        for n in [n_folds] if of_samples is None else sorted({n_folds, min(n_folds, 3), 2}, reverse=True):
            is_seen, is_out = _split_given(source, of_samples, n, rng)
            seen, left_out = source.take(is_seen), source.take(is_out)
            if seen.has_both_kinds and _is_enough(left_out):
                known = np.zeros(n_samples, dtype=np.bool_)
                known[seen.first] = known[seen.second] = True
                own = np.arange(n_samples) if of_samples is None else of_samples
                of_parts = (None, None) if weights is None else (weights[is_seen], weights[is_out])
                return HeldOut(seen, left_out, of_parts[0], known, own, of_parts[1])
    return None


def _units_of_given(source: IndexPairs, n_samples: int, open_set: bool | None) -> list[NDArray[np.int64] | None]:
    """Return what may be held out together, best first: identities, samples; None for pairs that share no sample.

    Identities are not given: samples that same pairs link are taken for one identity.
    """
    used = np.bincount(np.concatenate([source.first, source.second]), minlength=n_samples)
    if used.max() <= 1:
        return [None]
    samples = np.arange(n_samples)
    if open_set is False:
        return [samples]
    same = source.take(source.same)
    links = coo_array((np.ones(len(same), dtype=np.int8), (same.first, same.second)), shape=(n_samples, n_samples))
    identities = connected_components(links, directed=False)[1].astype(np.int64)
    if open_set is None and not is_open_set(len(np.unique(identities[used > 0]))):
        return [samples]
    return [identities, samples]


def _split_given(
    source: IndexPairs, units: NDArray[np.int64] | None, n_folds: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the pairs to learn from, and held-out pairs, as masks."""
    if units is None:
        out = assign_folds(len(source), n_folds, rng, source.same.astype(np.int64)) == 0
        return ~out, out
    both = encode_labels(np.concatenate([units[source.first], units[source.second]])).reshape(2, -1).T
    folds = assign_identities(both, source.same, n_folds, rng)[both]
    inside = np.where(folds[:, 0] == folds[:, 1], folds[:, 0], n_folds)
    counts = [np.bincount(inside[chosen], minlength=n_folds + 1)[:n_folds] for chosen in (source.same, ~source.same)]
    # The fold with the most held-out pairs of the rarer kind, but no fold that holds most of all pairs.
    useful = np.where(counts[0] + counts[1] <= len(source) / 2, np.minimum(*counts), -1)
    chosen = np.argmax(useful)
    return (folds != chosen).all(axis=1), inside == chosen


def _is_enough(pairs: IndexPairs) -> bool:
    return min(pairs.n_same, len(pairs) - pairs.n_same) >= MIN_HELD_OUT


class _Rounds(NamedTuple):
    """Held-out results after some rounds."""

    iteration: int
    tpr: float
    auc: float
    roc: Roc

    @property
    def error(self) -> float:
        """Sum of the logarithms of 1 - TPR and of 1 - AUC, so that their relative changes are compared."""
        return float(np.log(max(1.0 - self.tpr, MIN_ERROR)) + np.log(max(1.0 - self.auc, MIN_ERROR)))


def _as_good(found: list[_Rounds]) -> list[_Rounds]:
    """Return the rounds that may be the best, now or later: TPR nearly the highest, and no others better in both TPR and AUC.

    Examples
    --------
    >>> results = [(5, 0.50, 0.90), (10, 0.600, 0.92), (15, 0.599, 0.91), (20, 0.595, 0.93)]
    >>> [rounds.iteration for rounds in _as_good([_Rounds(*result, roc=None) for result in results])]
    [10, 20]
    """
    least = (1.0 - AS_GOOD) * max(rounds.tpr for rounds in found)
    kept: list[_Rounds] = []
    for rounds in sorted(found, key=lambda rounds: (-rounds.tpr, rounds.iteration)):
        if rounds.tpr >= least and all(rounds.auc > other.auc for other in kept):
            kept.append(rounds)
    return sorted(kept, key=lambda rounds: rounds.iteration)


@dataclass
class ValidationCurve:
    """Held-out results by the number of rounds.

    Parameters
    ----------
    patience : int
        Number of rounds without improvement after which to stop.
    same : ndarray of bool of shape (n_pairs,)
        Whether each held-out pair is a same pair.
    units : tuple of two ndarrays of shape (n_pairs,)
        The units of the two samples of each pair, identities or samples, as numbers from 0: pairs that share one err together.
    weights : ndarray of shape (n_pairs,), optional
        Positive weights of the pairs.
    """

    patience: int
    same: NDArray[np.bool_]
    units: Units
    weights: NDArray[np.float64] | None = None
    results: list[tuple[float, ...]] = field(default_factory=list)
    stopped: bool = False
    _good: list[_Rounds] = field(default_factory=list)
    _highest: float = -np.inf
    _highest_iteration: int = 0
    _floor: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(WATCHED)))

    def add(self, iteration: int, scores: NDArray[np.float64]) -> None:
        """Add the results after some rounds, and decide whether to stop.

        Rounds are good if they have the highest TPR on average or nearly so, and at no watched rate a TPR that is more than two
        standard errors below that of earlier rounds: an average may rise while the top of the ranking breaks. While the average
        rises, rounds go on: what broke may be repaired.
        """
        same, weights = self.same, self.weights
        roc = weighted_roc_curve(scores, same, weights)
        rates = low_rates(int(np.count_nonzero(~same)) if weights is None else _effective_number(weights[~same]))
        tprs = roc.at(rates)
        tpr = float(tprs.mean())
        rounds = _Rounds(iteration, tpr, roc.auc(), roc)
        self.results.append((iteration, tpr, rounds.auc, log_loss(scores, same, weights)))
        watched = tprs[WATCHED]
        errors = tpr_errors(roc, rates[WATCHED], scores, same, self.units, weights)
        self._floor = np.maximum(self._floor, watched - 2.0 * errors)
        if tpr > self._highest:
            self._highest, self._highest_iteration = tpr, iteration
        if (watched >= self._floor).all():
            self._good = _as_good([*self._good, rounds])
        self.stopped = iteration - self._highest_iteration >= self.patience

    @property
    def best(self) -> _Rounds:
        """The best rounds so far: of those that are good the ones with the smallest relative errors, the first of equals.

        The TPR at low rates of few pairs differs by chance, and the AUC then decides. Where hardly a pair is ranked wrongly the
        AUC does not change any more, and the TPR decides.
        """
        return min(self._good, key=lambda rounds: rounds.error)

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


def low_rates(n_different: float) -> NDArray[np.float64]:
    """Return the false positive rates at which the TPR is averaged; between knots it is interpolated, so ties do not decide."""
    low, high = FPR_RANGE
    factor = max(1.0, min(MIN_DIFFERENT / n_different, 0.5 * MAX_FPR) / low)
    return np.geomspace(factor * low, min(factor * high, MAX_FPR), N_FPRS)


def _effective_number(weights: NDArray[np.float64]) -> float:
    """Return the number of pairs of equal weight whose mean varies as much as that of pairs with these weights."""
    shares = weights / weights.sum()
    return float(1.0 / (shares @ shares))


def _quantiles(
    values: NDArray[np.float64], shares: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return quantiles of values, which may have weights."""
    if weights is None:
        return np.asarray(np.quantile(values, shares), dtype=np.float64)
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return np.asarray(values[order][np.minimum(np.searchsorted(below, shares * below[-1]), len(values) - 1)])


def tpr_errors(
    roc: Roc,
    fpr: NDArray[np.float64],
    scores: NDArray[np.float64],
    same: NDArray[np.bool_],
    units: Units,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return standard errors of the TPR at false positive rates: that of a share, and that of the threshold of the rate.

    Pairs that share a unit are not independent: one sample that is like many others makes many of the few false positives.
    """
    above = np.minimum(2.0 * fpr, 1.0)
    slopes = (roc.at(above) - roc.at(0.5 * fpr)) / (above - 0.5 * fpr)
    thresholds = _quantiles(scores[~same], 1.0 - fpr, None if weights is None else weights[~same])
    found = np.empty(len(fpr))
    for k, (threshold, slope) in enumerate(zip(thresholds, slopes, strict=True)):
        accepted = scores >= threshold
        influence = np.empty(len(scores))
        for kind, effect in ((same, 1.0), (~same, -slope)):
            shares = accepted[kind]
            if weights is None:
                influence[kind] = effect * (shares - shares.mean()) / len(shares)
            else:
                of_kind = weights[kind] / weights[kind].sum()
                influence[kind] = effect * (shares - of_kind @ shares) * of_kind
        found[k] = error_of_sum(influence, units)
    return found


def error_of_sum(values: NDArray[np.float64], units: Units) -> float:
    """Return the standard error of the sum of values of pairs, each zero on average; those that share a unit may err together.

    Examples
    --------
    >>> values, own = np.array([1.0, -1.0, 1.0, -1.0]), np.arange(4)
    >>> error_of_sum(values, (own, own + 4))  # no pair shares a unit
    2.0
    >>> round(error_of_sum(values, (own % 2, own % 2)), 2)  # two units, whose pairs are alike
    2.83
    """
    first, second = units
    apart = first != second
    sums = np.bincount(np.concatenate([first, second[apart]]), weights=np.concatenate([values, values[apart]]))
    # A pair of two units is in the sums of both. It counts no less than if it shared none.
    squares = float(values @ values)
    return float(np.sqrt(max(float(sums @ sums) - float(values[apart] @ values[apart]), squares)))


def log_loss(scores: NDArray[np.float64], same: NDArray[np.bool_], weights: NDArray[np.float64] | None = None) -> float:
    """Return the logistic loss of scores, where same and different pairs weigh equally; weights are relative to their kind."""
    of_same, of_different = (None, None) if weights is None else (weights[same], weights[~same])
    missed = np.average(np.logaddexp(0.0, -scores[same]), weights=of_same)
    return float(0.5 * (missed + np.average(np.logaddexp(0.0, scores[~same]), weights=of_different)))
