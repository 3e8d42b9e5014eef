"""Confidence intervals of metrics whose pairs share identities, from the influence of each identity.

Pairs are counted for each pair of *units*. The units are what is independent: identities, or single samples if the identities
are fixed (such as ten digits). All pairs of a unit are correlated, so the variance of a metric depends on the number of units,
not of pairs. `PairTally` keeps sums over pairs of units of the counts at some thresholds, and never the pairs themselves.

Let r be the residual of a pair of units (its accepted pairs minus the rate times its pairs) and D the sum of r over all pairs
of a unit. The variance of a rate is ``c * (sum D^2 - 2 sum r^2) + sum r^2`` divided by the squared number of pairs: the first
term is the variance that pairs share through their units, and the second is specific to each pair of units. c corrects for the
estimated mean. Sessions that samples share add the variance between sessions (two-way clusters, Cameron, Gelbach and Miller
2011). Intervals are Student's on the logit scale, see `logit_interval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from scipy.stats import beta, t

from simtree._utils.validation import check_real
from simtree.metrics import FloatArray, roc_curve, threshold_at_fmr, tpr_at_fpr
from simtree.metrics._roc import check_scores
from simtree.pairs._sources import IndexPairs

# Slopes at the equal error rate are taken between this fraction and this multiple of it.
NEARBY = 1.6
# How much longer an interval is towards 1/2, per relative standard error; chosen by benchmarks/bench_coverage.py.
STRETCH = 1.75
# Pairs that share no unit are independent; this number of groups of pairs then replaces the units.
N_GROUPS = 1024


class ClusterSums:
    """Sums over the pairs that each cluster takes part in: of accepted pairs at each threshold, of placements and of weights.

    Parameters
    ----------
    n_clusters : int
        Number of clusters, such as identities or sessions. A pair within a cluster counts once in it.
    n_thresholds : int
        Number of thresholds.
    """

    def __init__(self, n_clusters: int, n_thresholds: int) -> None:
        self.n_clusters, self._width = n_clusters, n_thresholds + 1
        self._at_level = np.zeros((n_clusters, self._width))
        self._placed, self._weight = np.zeros(n_clusters), np.zeros(n_clusters)

    def add(
        self,
        first: NDArray[np.integer],
        second: NDArray[np.integer],
        level: NDArray[np.integer],
        weights: FloatArray | None,
        placed: FloatArray | None,
    ) -> None:
        """Add pairs of clusters: the first threshold that accepts each, its weight, and its placement times its weight."""
        apart = first != second
        for cluster, chosen in ((first, slice(None)), (second[apart], apart)):
            weight = None if weights is None else weights[chosen]
            at = np.bincount(cluster * self._width + level[chosen], weight, minlength=self._at_level.size)
            self._at_level += at.reshape(self._at_level.shape)
            self._weight += np.bincount(cluster, weight, minlength=self.n_clusters)
            if placed is not None:
                self._placed += np.bincount(cluster, placed[chosen], minlength=self.n_clusters)

    @property
    def weights(self) -> FloatArray:
        """Total weight of the pairs of each cluster."""
        return self._weight

    def residuals(self, rates: FloatArray, total: float) -> FloatArray:
        """Return the influence of each cluster on rates, of shape (n_clusters, n_thresholds + 1)."""
        sums = np.column_stack([np.cumsum(self._at_level[:, :-1], axis=1), self._placed])
        return np.asarray((sums - rates * self._weight[:, None]) / total)


@dataclass(frozen=True)
class Influence:
    """Influence of each unit on some metrics: what a metric gains from the pairs of the unit, relative to its value.

    Parameters
    ----------
    units : array of shape (n_units, n_metrics)
        Influence of each unit.
    own : array of shape (n_metrics,)
        Sum of the squared influences of pairs of two units.
    n_units : int
        Number of units that have pairs.
    n_even : float
        Number of units of equal weight that would be as informative (Kish): less than `n_units` if few bring most pairs.
    sessions, parts : array of shape (n_sessions, n_metrics) and (n_parts, n_metrics), optional
        Influence of each session, and of each unit within each session.
    """

    units: FloatArray
    own: FloatArray
    n_units: int
    n_even: float
    sessions: FloatArray | None = None
    parts: FloatArray | None = None

    def at(self, places: Any) -> Influence:
        """Return the influence on some of the metrics."""
        both = [None if array is None else array[:, places] for array in (self.sessions, self.parts)]
        return Influence(self.units[:, places], self.own[places], self.n_units, self.n_even, *both)

    def plus(self, other: Influence, of_self: float = 1.0, of_other: float = 1.0) -> Influence:
        """Return the influence on a weighted sum of metrics of same pairs and of different pairs, which share no pair."""
        both = [
            None if mine is None or theirs is None else of_self * mine + of_other * theirs
            for mine, theirs in ((self.sessions, other.sessions), (self.parts, other.parts))
        ]
        return Influence(
            of_self * self.units + of_other * other.units,
            of_self**2 * self.own + of_other**2 * other.own,
            max(self.n_units, other.n_units),
            min(self.n_even, other.n_even),
            *both,
        )

    def shared(self) -> FloatArray:
        """Return the share of the variance of each metric that its pairs share through their units."""
        variance = self.variance()[0]
        return 1.0 - np.divide(self.own, variance, out=np.zeros_like(variance), where=variance > 0.0)

    def variance(self) -> tuple[FloatArray, FloatArray]:
        """Return the variance of each metric, and its degrees of freedom."""
        of_units = variance_of(self.units, self.own, self.n_units)
        df = np.full(of_units.shape, max(self.n_even - 1.0, 1.0))
        if self.sessions is None or self.parts is None:
            return of_units, df
        n = len(self.sessions)
        # What units and sessions share is in both: the influence of a unit within a session is subtracted once.
        extra = np.einsum("ij,ij->j", self.sessions, self.sessions) - np.einsum("ij,ij->j", self.parts, self.parts)
        of_sessions = _unbiased(np.maximum(extra, 0.0), n, n - 1, n - 2)
        total = of_units + of_sessions
        with np.errstate(divide="ignore", invalid="ignore"):
            both = total**2 / (of_units**2 / df + of_sessions**2 / max(n - 1, 1))
        return total, np.where(np.isfinite(both), np.minimum(both, df), float(max(n - 1, 1)))


class PairTally:
    """Counts of same pairs, or of different pairs, at some thresholds, with the sums that variances are computed from.

    Parameters
    ----------
    thresholds : array of shape (n_thresholds,)
        Strictly decreasing thresholds. A pair is accepted if and only if its score is at least the threshold.
    n_units : int
        Number of units.
    independent : bool, default=False
        Whether the units are groups of independent pairs, see `PairSource.disjoint_groups`.
    n_sessions, n_parts : int, default=0
        Numbers of sessions, and of parts of units within sessions.

    Attributes
    ----------
    n_pairs, n_unit_pairs : int
        Number of pairs, and number of pairs of units that have pairs.
    totals : array of shape (n_thresholds + 1,)
        Weight of the accepted pairs at each threshold; the last entry is the sum of the placements, if these are given.
    """

    def __init__(
        self, thresholds: FloatArray, n_units: int, *, independent: bool = False, n_sessions: int = 0, n_parts: int = 0
    ) -> None:
        self.thresholds = thresholds
        self.independent = independent
        self.n_units = n_units
        self.n_pairs, self.n_unit_pairs = 0, 0
        self.by_unit = ClusterSums(n_units, len(thresholds))
        self.by_session, self.by_part = (ClusterSums(n, len(thresholds)) if n else None for n in (n_sessions, n_parts))
        n_columns = len(thresholds) + 2  # the last two are the placements and the weight of all pairs
        self._sums, self._squares, self._crossed = np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns)
        self._influence: Influence | None = None

    def like(self) -> PairTally:
        """Return an empty tally with the same thresholds and units, without sessions."""
        return PairTally(self.thresholds, self.n_units, independent=self.independent)

    @property
    def totals(self) -> FloatArray:
        """Weight of the accepted pairs at each threshold, and the sum of placements."""
        return self._sums[:-1]

    @property
    def rates(self) -> FloatArray:
        """Proportion of accepted pairs at each threshold, and the mean placement."""
        return np.asarray(self._sums[:-1] / self._sums[-1])

    def add(
        self,
        first: NDArray[np.integer],
        second: NDArray[np.integer],
        scores: FloatArray,
        placements: FloatArray | None = None,
        *,
        weights: FloatArray | None = None,
        sessions: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
        parts: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
    ) -> None:
        """Count pairs; all pairs of two units must come in one call."""
        if not len(scores):
            return
        self._influence = None
        # Index of the first threshold that accepts each pair.
        level = len(self.thresholds) - np.searchsorted(self.thresholds[::-1], scores, side="right")
        placed = placements if placements is None or weights is None else placements * weights
        self.by_unit.add(first, second, level, weights, placed)
        for clusters, both in ((self.by_session, sessions), (self.by_part, parts)):
            if clusters is not None and both is not None:
                clusters.add(*both, level, weights, placed)
        self.n_pairs += len(scores)
        self._sums += self._column_sums(level, weights, placed)
        low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second).astype(np.int64)
        cells = low * self.n_units + high
        apart = low != high
        self.n_unit_pairs += len(scores) if self.independent else len(np.unique(cells[~apart]))
        if apart.any():
            chosen = [None if array is None else array[apart] for array in (weights, placed)]
            self._add_cells(cells[apart], level[apart], *chosen)

    def _column_sums(self, level: NDArray[np.int64], weights: FloatArray | None, placed: FloatArray | None) -> FloatArray:
        """Return sums of weights of the pairs accepted at each threshold, of placements, and of all weights."""
        at = np.bincount(level, weights, minlength=len(self.thresholds) + 1)
        return np.concatenate([np.cumsum(at[:-1]), [0.0 if placed is None else placed.sum(), at.sum()]])

    def _add_cells(
        self, cells: NDArray[np.int64], level: NDArray[np.int64], weights: FloatArray | None, placed: FloatArray | None
    ) -> None:
        """Add the squared sums of each cell, a pair of two units, and their products with its weight.

        The squared number of accepted pairs of a cell grows by ``w (2 before + w)`` with each pair, in order of the thresholds.
        """
        order = np.argsort(cells * (len(self.thresholds) + 1) + level)
        cells, level = cells[order], level[order]
        weight = np.ones(len(cells)) if weights is None else weights[order]
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        self.n_unit_pairs += 0 if self.independent else len(starts)
        total = np.add.reduceat(weight, starts)
        n_in_cell = np.diff(np.append(starts, len(cells)))
        done = np.cumsum(weight)
        before = done - weight - np.repeat(done[starts] - weight[starts], n_in_cell)
        of_cell = np.zeros(len(starts)) if placed is None else np.add.reduceat(placed[order], starts)
        self._squares += self._column_sums(level, weight * (2.0 * before + weight), None)
        self._crossed += self._column_sums(level, weight * np.repeat(total, n_in_cell), None)
        self._squares[-2] += of_cell @ of_cell
        self._crossed[-2] += of_cell @ total

    def influence(self) -> Influence:
        """Return the influence of each unit on the rates and on the mean placement."""
        if self._influence is None:
            self._influence = self._compute_influence()
        return self._influence

    def _compute_influence(self) -> Influence:
        rates, total = self.rates, float(self._sums[-1])
        own = (self._squares[:-1] - 2 * rates * self._crossed[:-1] + rates**2 * self._crossed[-1]) / total**2
        weights = self.by_unit.weights
        clusters = (None if sums is None else sums.residuals(rates, total) for sums in (self.by_session, self.by_part))
        n_even = float(weights.sum() ** 2 / (weights @ weights))
        return Influence(self.by_unit.residuals(rates, total), np.maximum(own, 0.0), self.n_active, n_even, *clusters)

    def effective_sizes(self) -> tuple[FloatArray, FloatArray]:
        """Return the effective number of pairs at each threshold, and the degrees of freedom of this estimate.

        The effective number of pairs is the number of independent pairs that would give the rate the same variance. Without
        errors it is the number of pairs of units.
        """
        found = self.influence()
        variance = variance_of(found.units, found.own, self.n_active)[:-1]
        return effective_size(self.rates[:-1], variance, self.n_unit_pairs, self.n_pairs), degrees_of_freedom(
            found.units, self.n_active
        )[:-1]

    @property
    def crossed(self) -> bool:
        """Whether there are pairs of two different units."""
        return bool(self._crossed[-1] > 0.0)

    @property
    def n_active(self) -> int:
        """Number of units that have pairs."""
        return int(np.count_nonzero(self.by_unit.weights))


def variance_of(by_unit: FloatArray, own: FloatArray, n_units: int) -> FloatArray:
    """Return the variance of metrics from the influences of units and the summed squared influences of pairs of units."""
    squares = np.einsum("ij,ij->j", by_unit, by_unit)
    if not own.any():  # no pair has two units: a plain mean over units
        return _unbiased(squares, n_units, n_units - 1, n_units - 1)
    return own + _unbiased(squares - 2.0 * own, n_units, n_units - 1, n_units - 2)


def _unbiased(shared: FloatArray, n_units: int, df: int, n_left: int) -> FloatArray:
    """Return the shared part of a variance, corrected for the estimated mean; infinite with too few units."""
    factor = n_units * df / n_left**2 if n_left > 0 else np.inf
    return np.multiply(shared, factor, out=np.zeros_like(shared), where=shared > 0.0)


def degrees_of_freedom(by_unit: FloatArray, n_units: int) -> FloatArray:
    """Return the degrees of freedom of a sum of squared influences (Satterthwaite): few, if few units dominate the sum."""
    squares = by_unit**2
    total = squares.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = n_units * (squares**2).sum(axis=0) / total**2
        found = 2.0 * n_units / (kurtosis - 1.0)
    maximum = float(max(n_units - 1, 1))
    return np.where(np.isfinite(found), np.clip(found, 1.0, maximum), maximum)


def effective_size(rates: FloatArray, variance: FloatArray, n_unit_pairs: int, n_pairs: int) -> FloatArray:
    """Return the number of independent pairs with the same variance, at most the number of pairs."""
    at_ends = (rates <= 0.0) | (rates >= 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.minimum(rates * (1.0 - rates) / variance, n_pairs)
    return np.where(at_ends, float(n_unit_pairs), np.maximum(found, 1.0))


def min_sizes(rates: FloatArray, sizes: FloatArray, up_to: ArrayLike) -> FloatArray:
    """Return the minimum effective size between each rate and a higher rate; thresholds are decreasing.

    With few errors the variance is underestimated as well. Looser thresholds, with more errors, give a better estimate of how
    strongly the pairs of a unit are correlated.
    """
    stop = np.searchsorted(rates, up_to, side="right")
    found = sizes.copy()
    for k, end in enumerate(np.broadcast_to(stop, rates.shape)):
        found[k] = sizes[k : max(end, k + 1)].min()
    return found


def wilson_interval(rate: ArrayLike, n_effective: ArrayLike, df: ArrayLike, confidence: float = 0.95) -> FloatArray:
    """Return Wilson intervals of rates, with effective numbers of pairs and Student's quantile for few units.

    Parameters
    ----------
    rate : float or array
        Observed rates, in [0, 1].
    n_effective : float or array
        Effective numbers of pairs: the numbers of independent pairs that would give the same variance.
    df : float or array
        Degrees of freedom of the effective numbers.
    confidence : float, default=0.95
        Confidence level.

    Returns
    -------
    array of shape (..., 2)
        Lower and upper ends, in [0, 1]; intervals are not empty at rates 0 and 1.

    Examples
    --------
    >>> wilson_interval(0.0, 299, df=24).round(3).tolist()
    [0.0, 0.014]
    """
    p, n = np.asarray(rate, dtype=np.float64), np.asarray(n_effective, dtype=np.float64)
    square = t.ppf(0.5 + confidence / 2.0, np.asarray(df)) ** 2 / n
    middle = (p + square / 2.0) / (1.0 + square)
    half = np.sqrt(square * (p * (1.0 - p) + square / 4.0)) / (1.0 + square)
    low, high = np.where(p <= 0.0, 0.0, middle - half), np.where(p >= 1.0, 1.0, middle + half)
    return np.stack([np.clip(low, 0.0, p), np.clip(high, p, 1.0)], axis=-1)  # rounding may exceed the limits


def upper_bound(rate: ArrayLike, n_effective: ArrayLike, confidence: float = 0.95) -> FloatArray:
    """Return one-sided Clopper-Pearson upper bounds of rates; without errors these are the rule of three.

    Parameters
    ----------
    rate : float or array
        Observed rates, in [0, 1].
    n_effective : float or array
        Effective numbers of pairs, as in `wilson_interval`.
    confidence : float, default=0.95
        Confidence level.

    Returns
    -------
    array
        Upper bounds.

    Examples
    --------
    >>> upper_bound([0.0, 0.001], 3000).round(5).tolist()
    [0.001, 0.00258]
    """
    p, n = np.asarray(rate, dtype=np.float64), np.asarray(n_effective, dtype=np.float64)
    errors = p * n
    return np.where(p >= 1.0, 1.0, beta.ppf(confidence, errors + 1.0, np.maximum(n - errors, 1e-9)))


@dataclass(frozen=True)
class CurveTallies:
    """Counts of same and different pairs at the same thresholds: a ROC curve with its confidence intervals.

    Parameters
    ----------
    same, different : PairTally
        Tallies with the same thresholds and units.
    """

    same: PairTally
    different: PairTally

    def influence(self) -> Influence:
        """Return the influence of each unit on the AUC: on the mean placements of same and of different pairs."""
        return self.same.influence().at([-1]).plus(self.different.influence().at([-1]))

    def auc_interval(self, auc: float, confidence: float) -> FloatArray:
        """Return the interval of the AUC, of shape (2,)."""
        return np.asarray(self._interval(np.array([auc]), self.influence(), confidence)[0])

    def rate_intervals(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return intervals of the FPR and of the TPR at each threshold, of shape (n_thresholds, 2)."""
        fpr, tpr = (tally_interval(tally, slice(0, -1), confidence) for tally in (self.different, self.same))
        # The FPR is at most that at any looser threshold: without errors the least of these bounds holds.
        looser = np.minimum.accumulate(fpr[::-1, 1])[::-1]
        fpr[:, 1] = np.where(self.different.rates[:-1] > 0.0, fpr[:, 1], looser)
        return fpr, tpr

    def eer_interval(self, value: float, confidence: float) -> FloatArray:
        """Return the interval of the equal error rate, of shape (2,)."""
        return np.asarray(self._interval(np.array([value]), self.eer_influence(value), confidence)[0])

    def eer_influence(self, value: float) -> Influence:
        """Return the influence of each unit on the equal error rate.

        At a fixed threshold near the crossing, it is a mean of both error rates, each weighted by the slope of the other.
        """
        fpr, fnmr = self.different.rates[:-1], 1.0 - self.same.rates[:-1]
        crossing = int(np.argmin(np.abs(fpr - fnmr)))
        near = np.flatnonzero((fpr >= value / NEARBY) & (fpr <= value * NEARBY))
        first, last = (near[0], near[-1]) if len(near) > 1 else (max(crossing - 1, 0), min(crossing + 1, len(fpr) - 1))
        slopes = np.array([fnmr[first] - fnmr[last], fpr[last] - fpr[first]])
        of_fpr, of_fnmr = slopes / slopes.sum() if slopes.sum() > 0.0 else (0.5, 0.5)
        return self.different.influence().at([crossing]).plus(self.same.influence().at([crossing]), of_fpr, -of_fnmr)

    def tpr_intervals(self, tpr: ArrayLike, fpr: Sequence[float], confidence: float) -> FloatArray:
        """Return intervals of the TPR at some FPRs, of shape (n_fpr, 2); ``tpr`` are the rates themselves."""
        of_fpr, of_tpr = self.rate_intervals(confidence)
        of_same, of_different = self.same.influence().units[:, :-1], self.different.influence().units[:, :-1]
        return matched_intervals(
            np.asarray(tpr, dtype=np.float64),
            np.asarray(fpr, dtype=np.float64),
            (self.different.rates[:-1], of_fpr, of_different),
            (self.same.rates[:-1], of_tpr, of_same),
        )

    def _interval(self, values: FloatArray, influence: Influence, confidence: float) -> FloatArray:
        """Return the interval of metrics of both kinds of pairs."""
        n_pairs = max(self.same.n_pairs, self.different.n_pairs)
        n_units = min(effective_units(tally) for tally in (self.same, self.different))
        return influence_interval(values, influence, n_pairs, n_units, confidence, independent=self.same.independent)


def effective_units(tally: PairTally) -> float:
    """Return how many independent observations there are without any assumption: pairs of units that share no unit."""
    if tally.independent:
        return float(tally.n_pairs)
    n_even = tally.influence().n_even
    return max(n_even / 2.0 if tally.crossed else n_even, 1.0)


def tally_interval(tally: PairTally, places: Any, confidence: float) -> FloatArray:
    """Return intervals of the rates of a tally at some thresholds, of shape (n_places, 2)."""
    influence, n_units = tally.influence().at(places), effective_units(tally)
    return influence_interval(tally.rates[places], influence, tally.n_pairs, n_units, confidence, independent=tally.independent)


def influence_interval(
    values: FloatArray, influence: Influence, n_pairs: int, n_units: float, confidence: float, *, independent: bool = False
) -> FloatArray:
    """Return intervals of metrics from the influence of units, see `logit_interval`."""
    variance, df = influence.variance()
    shared = np.zeros_like(values) if independent else influence.shared()
    return logit_interval(values, variance, df, shared, n_pairs, n_units, confidence)


def logit_interval(
    values: FloatArray,
    variance: FloatArray,
    df: FloatArray,
    shared: FloatArray,
    n_pairs: int,
    n_units: float,
    confidence: float,
) -> FloatArray:
    """Return Student's intervals of rates on the logit scale, longer towards the middle if errors are rare.

    The relative standard error of a rare rate rests on the few units that cause it, and is too low in exactly those samples
    that show too few of them. So the distance of the end towards 1/2 is multiplied by one plus `STRETCH` times this error,
    as far as units cause it.

    Parameters
    ----------
    values, variance, df : array of shape (n,)
        Rates, their variances, and the degrees of freedom of these.
    shared : array of shape (n,)
        Share of the variance that is due to units, which may be very unequal, and not to single pairs of units.
    n_pairs : int
        Number of pairs: a rate of independent pairs has the smallest variance possible.
    n_units : float
        Number of independent observations: it bounds the variance, and is all there is to go by at rates of 0 and 1.
    confidence : float
        Confidence level.

    Returns
    -------
    array of shape (n, 2)
        Lower and upper ends.
    """
    limits = wilson_interval(values, n_units, df, confidence)
    ends = limits.copy()
    inside = (values > 0.0) & (values < 1.0)
    p = values[inside]
    error = np.sqrt(np.maximum(variance[inside], p * (1.0 - p) / n_pairs)) / (p * (1.0 - p))
    quantile = t.ppf(0.5 + confidence / 2.0, df[inside])
    with np.errstate(over="ignore", invalid="ignore"):
        for column, sign in ((0, -1.0), (1, 1.0)):
            stretch = 1.0 + STRETCH * shared[inside] * error * np.maximum(sign * (1.0 - 2.0 * p), 0.0)
            ends[inside, column] = expit(logit(p) + sign * quantile * error * stretch)
    # Rates of units lie in [0, 1], so the variance is at most that of one pair per unit.
    ends = np.stack([np.fmax(ends[:, 0], limits[:, 0]), np.fmin(ends[:, 1], limits[:, 1])], axis=-1)
    return np.stack([np.minimum(ends[:, 0], values), np.maximum(ends[:, 1], values)], axis=-1)


def matched_intervals(
    values: FloatArray,
    targets: FloatArray,
    limited: tuple[FloatArray, FloatArray, FloatArray],
    other: tuple[FloatArray, FloatArray, FloatArray],
) -> FloatArray:
    """Return intervals of a rate at the thresholds where another one reaches its target.

    The threshold is estimated: it lies between those at which the interval of the limited rate still contains the target. The
    distance of each end is the root of the sum of squares of two distances: at a fixed threshold, and due to the threshold
    (Zou and Donner 2008), with the correlation of both rates.

    Parameters
    ----------
    values : array of shape (n_targets,)
        The rate at each target.
    targets : array of shape (n_targets,)
        Targets of the limited rate.
    limited, other : tuples of arrays
        Rates at decreasing thresholds, of shape (n,), their intervals, of shape (n, 2), and the influences of units.

    Returns
    -------
    array of shape (n_targets, 2)
        Lower and upper ends.
    """
    (x, x_ends, of_x), (y, y_ends, of_y) = limited, other
    lows, highs = np.minimum.accumulate(x_ends[::-1, 0])[::-1], np.maximum.accumulate(x_ends[:, 1])
    found = np.empty((len(targets), 2))
    for row, (value, target) in enumerate(zip(values, targets, strict=True)):
        place = max(int(np.searchsorted(x, target, side="right")) - 1, 0)
        strict = min(int(np.searchsorted(highs, target, side="left")), place)
        loose = max(int(np.searchsorted(lows, target, side="right")) - 1, place)
        product = np.sqrt((of_x[:, place] @ of_x[:, place]) * (of_y[:, place] @ of_y[:, place]))
        correlation = float(of_x[:, place] @ of_y[:, place] / product) if product > 0.0 else 0.0
        for column, sign, end in ((0, -1.0, strict), (1, 1.0, loose)):
            fixed, moved = (max(sign * (to - value), 0.0) for to in (y_ends[place, column], y[end]))
            found[row, column] = value + sign * np.sqrt(fixed**2 + moved**2 - 2.0 * correlation * fixed * moved)
    return np.clip(found, 0.0, 1.0)


def curve_thresholds(same: FloatArray, different: FloatArray, at: ArrayLike = (), n: int = 100) -> FloatArray:
    """Return thresholds along a curve: scores at geometric (different pairs) and even (same pairs) ranks, and given ones."""
    chosen = []
    for scores, ranks in ((different, np.geomspace(1, len(different), n)), (same, np.linspace(1, len(same), n))):
        indices = np.unique(ranks.astype(np.int64)) - 1
        chosen.append(np.sort(scores)[::-1][indices])
    given = np.asarray(at, dtype=np.float64)
    return np.unique(np.concatenate([*chosen, given[np.isfinite(given)]]))[::-1]


def placements(scores: FloatArray, others: FloatArray) -> FloatArray:
    """Return the proportion of the other scores that are below each score, ties counted half."""
    ordered = np.sort(others)
    below, up_to = np.searchsorted(ordered, scores, side="left"), np.searchsorted(ordered, scores, side="right")
    return np.asarray((below + up_to) / (2.0 * len(others)))


def tally_pairs(
    scores: ArrayLike,
    same: ArrayLike,
    first: NDArray[Any],
    second: NDArray[Any],
    *,
    at: ArrayLike = (),
    sessions: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> CurveTallies:
    """Count scored pairs of units, at thresholds along their ROC curve and at given ones.

    Parameters
    ----------
    scores, same : array-like of shape (n_pairs,)
        Scores of pairs, and whether they are same pairs.
    first, second : array of shape (n_pairs,)
        Units of each pair, such as the identities of its two samples; of any type.
    at : array-like, optional
        Additional thresholds.
    sessions : tuple of two arrays of shape (n_pairs,), optional
        Sessions of the two samples of each pair, whose effects their samples share.

    Returns
    -------
    CurveTallies
        Counts at each threshold.

    Examples
    --------
    >>> tallies = tally_pairs([3, 2, 2, 1], [True, False, True, False], ["a", "a", "b", "b"], ["a", "b", "b", "c"])
    >>> tallies.different.thresholds.tolist(), tallies.different.totals[:-1].tolist()
    ([3.0, 2.0, 1.0], [0.0, 1.0, 2.0])
    """
    score, is_same = check_scores(scores, same)
    units, numbers = np.unique(np.concatenate([first, second]), return_inverse=True)
    u, v = np.split(numbers, 2)
    groups = IndexPairs(u.astype(np.int32), v.astype(np.int32), is_same).disjoint_groups(np.arange(len(units)), N_GROUPS)
    if groups is not None:
        u, v = groups[u], groups[v]
    n_units = len(units) if groups is None else int(groups.max()) + 1
    of_same, of_different = score[is_same], score[~is_same]
    thresholds = curve_thresholds(of_same, of_different, at)
    in_session = in_part = None
    n_sessions = n_parts = 0
    if sessions is not None:
        names, of_both = np.unique(np.concatenate(sessions), return_inverse=True)
        parts, of_parts = np.unique(np.concatenate([u, v]) * len(names) + of_both, return_inverse=True)
        in_session, in_part, n_sessions, n_parts = np.split(of_both, 2), np.split(of_parts, 2), len(names), len(parts)
    tallies = []
    for chosen, placed in (
        (is_same, placements(of_same, of_different)),
        (~is_same, 1.0 - placements(of_different, of_same)),
    ):
        tally = PairTally(thresholds, n_units, independent=groups is not None, n_sessions=n_sessions, n_parts=n_parts)
        clusters = [None if both is None else (both[0][chosen], both[1][chosen]) for both in (in_session, in_part)]
        tally.add(u[chosen], v[chosen], score[chosen], placed, sessions=clusters[0], parts=clusters[1])
        tallies.append(tally)
    return CurveTallies(*tallies)


def point_intervals(
    scores: ArrayLike,
    same: ArrayLike,
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    fpr: Sequence[float],
    *,
    confidence: float = 0.95,
) -> FloatArray:
    """Return intervals of the AUC and of the TPR at some FPRs for new units.

    Parameters
    ----------
    scores, same : array-like of shape (n_pairs,)
        Scores of pairs, and whether they are same pairs.
    first, second : ndarray of shape (n_pairs,)
        Units of each pair, as integers: identities, or samples if the identities are fixed.
    fpr : sequence of float
        False positive rates.
    confidence : float, default=0.95
        Confidence level of the intervals.

    Returns
    -------
    ndarray of shape (1 + len(fpr), 2)
        Lower and upper ends, first of the AUC, then of the TPR at each FPR (which is not exceeded, as in `tpr_at_fpr`).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.integers(0, 50, (2, 400))
    >>> same = first % 2 == second % 2
    >>> ends = point_intervals(same + rng.normal(size=400), same, first, second, [0.1])
    >>> ends.shape, bool((ends[:, 0] < ends[:, 1]).all())
    ((2, 2), True)
    """
    check_real("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    roc = roc_curve(scores, same)
    at = [threshold_at_fmr(roc, target) for target in fpr]
    tallies = tally_pairs(scores, same, first, second, at=at)
    of_tpr = tallies.tpr_intervals([tpr_at_fpr(roc, target) for target in fpr], fpr, confidence)
    return np.vstack([tallies.auc_interval(roc.auc(), confidence), of_tpr])
