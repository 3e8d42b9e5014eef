"""Confidence intervals of metrics whose pairs share identities: Student's on the logit scale, see `logit_interval`.

The variance comes from the influence of each identity, see `simtree.evaluation._tallies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, stdtrit
from scipy.stats import beta

from simtree._utils.validation import check_real
from simtree.evaluation._tallies import Influence, PairTally
from simtree.metrics import FloatArray, roc_curve, threshold_at_fmr, tpr_at_fpr
from simtree.metrics._roc import check_scores
from simtree.pairs._sources import IndexPairs

# Slopes at the equal error rate are taken between this fraction and this multiple of it.
NEARBY = 1.6
# How much longer an interval is towards 1/2, per relative standard error; chosen by benchmarks/bench_coverage.py, as are the
# following three.
STRETCH = 1.75
# The same for an error that is carried down from higher rates; these are at most LOOSER times as high.
CARRIED_STRETCH, LOOSER = 1.0, 16.0
# The upper end is that of a rate of at least this many of all pairs of units.
MIN_PAIRS_AT_UPPER_END = 0.5
# Pairs that share no unit are independent; this number of groups of pairs then replaces the units.
N_GROUPS = 1024


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
    >>> from simtree.evaluation import wilson_interval
    >>> wilson_interval(0.0, 299, df=24).round(3).tolist()
    [0.0, 0.014]
    """
    p, n = np.asarray(rate, dtype=np.float64), np.asarray(n_effective, dtype=np.float64)
    square = stdtrit(np.asarray(df), 0.5 + confidence / 2.0) ** 2 / n
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
    >>> from simtree.evaluation import upper_bound
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
        fpr, tpr = (tally_interval(tally, slice(None), confidence) for tally in (self.different, self.same))
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
    """Return intervals of the rates of a tally at some thresholds, of shape (n_places, 2).

    If pairs join two units, the upper end is at least that of an error carried down from higher rates, see `carried_ends`.
    """
    influence, n_units = tally.influence(), effective_units(tally)
    curve = slice(0, -1)
    rates, of_curve = tally.rates[curve], influence.at(curve)
    ends = influence_interval(rates, of_curve, tally.n_pairs, n_units, confidence, independent=tally.independent)
    if tally.crossed and not tally.independent:
        variance, df = of_curve.variance()
        lowest = MIN_PAIRS_AT_UPPER_END / max(n_units * (2.0 * n_units - 1.0), 1.0)  # of the pairs of 2 * n_units units
        carried = carried_ends(rates, variance, df, of_curve.shared(), lowest, confidence)
        limits = wilson_interval(rates, n_units, df, confidence)[:, 1]
        # Without errors the interval of this rate alone is the limit: it does not know how unequal units are.
        known = np.isfinite(carried)
        own = np.where(known & (rates <= 0.0), 0.0, ends[:, 1])
        ends[:, 1] = np.maximum(own, np.where(known, np.minimum(carried, limits), 0.0))
    return np.asarray(ends[places])


def carried_ends(
    rates: FloatArray, variance: FloatArray, df: FloatArray, shared: FloatArray, lowest: float, confidence: float
) -> FloatArray:
    """Return upper ends of increasing rates from the standard errors of higher rates.

    How unequal units are is seen where errors are frequent. A quarter of the number of errors of n units is like the errors of
    n / 2 units (their pairs are a quarter), whose relative standard error is larger by the square root of two. So the error of
    a rate, carried down to a lower one, grows with the fourth root of their ratio.

    Parameters
    ----------
    rates, variance, df, shared : array of shape (n,)
        Increasing rates, and what `logit_interval` takes.
    lowest : float
        Lowest rate whose upper end is computed; lower ones get the same.
    confidence : float
        Confidence level.

    Returns
    -------
    array of shape (n,)
        Upper ends; NaN for rates of 1/2 and more, and where no higher rate below 1 has an error.
    """
    p = np.maximum(rates, lowest)
    inside = (rates > 0.0) & (rates < 1.0)
    spread = np.where(inside, rates * (1.0 - rates), 1.0)
    scaled = np.where(inside, np.sqrt(variance) / spread * rates**0.25, 0.0)
    ends = np.full(len(rates), np.nan)
    first = np.searchsorted(rates, p, side="left")
    last = np.searchsorted(rates, np.minimum(LOOSER * p, 0.5), side="right")
    places = np.flatnonzero((p < 0.5) & (first < len(rates)))
    if not len(places):
        return ends
    begin, end = first[places], np.maximum(last[places], first[places] + 1)
    highest = np.maximum.reduceat(np.append(scaled, 0.0), np.column_stack([begin, end]).ravel())[::2]
    error = np.where(highest > 0.0, highest, np.nan) / p[places] ** 0.25
    stretch = 1.0 + CARRIED_STRETCH * shared[begin] * error * (1.0 - 2.0 * p[places])
    ends[places] = expit(logit(p[places]) + stdtrit(df[places], 0.5 + confidence / 2.0) * error * stretch)
    return ends


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
    quantile = stdtrit(df[inside], 0.5 + confidence / 2.0)
    ends[inside] = logit_ends(p, error, quantile, STRETCH * shared[inside])
    # Rates of units lie in [0, 1], so the variance is at most that of one pair per unit.
    ends = np.stack([np.fmax(ends[:, 0], limits[:, 0]), np.fmin(ends[:, 1], limits[:, 1])], axis=-1)
    return np.stack([np.minimum(ends[:, 0], values), np.maximum(ends[:, 1], values)], axis=-1)


def logit_ends(p: FloatArray, error: FloatArray, quantile: FloatArray, stretch: FloatArray) -> FloatArray:
    """Return the ends of intervals on the logit scale.

    Parameters
    ----------
    p, error : array of shape (n,)
        Rates above 0 and below 1, and their standard errors on the logit scale.
    quantile : array of shape (n,)
        Number of standard errors.
    stretch : array of shape (n,)
        How much longer the interval is towards 1/2, per standard error.

    Returns
    -------
    array of shape (n, 2)
        Lower and upper ends.
    """
    ends = np.empty((len(p), 2))
    with np.errstate(over="ignore", invalid="ignore"):
        for column, sign in ((0, -1.0), (1, 1.0)):
            factor = 1.0 + stretch * error * np.maximum(sign * (1.0 - 2.0 * p), 0.0)
            ends[:, column] = expit(logit(p) + sign * quantile * error * factor)
    return ends


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
        correlated = correlation(of_x[:, place], of_y[:, place])
        for column, sign, end in ((0, -1.0, strict), (1, 1.0, loose)):
            found[row, column] = combined_end(float(value), sign, y_ends[place, column], y[end], correlated)
    return np.clip(found, 0.0, 1.0)


def correlation(of_x: FloatArray, of_y: FloatArray) -> float:
    """Return the correlation of two metrics from the influences of units; 0 if one of them does not vary."""
    product = np.sqrt((of_x @ of_x) * (of_y @ of_y))
    return float(of_x @ of_y / product) if product > 0.0 else 0.0


def combined_end(value: float, sign: float, fixed_end: float, moved_to: float, correlated: float) -> float:
    """Return one end of the interval of a rate at an estimated threshold, from its two distances.

    Parameters
    ----------
    value : float
        The rate.
    sign : float
        -1 for the lower and 1 for the upper end.
    fixed_end : float
        End of the interval at a fixed threshold.
    moved_to : float
        The rate at the threshold of that end.
    correlated : float
        Correlation of this rate and the one that decides the threshold, both at a fixed threshold.

    Returns
    -------
    float
        The end.
    """
    fixed, moved = (max(sign * (to - value), 0.0) for to in (fixed_end, moved_to))
    # Rounding may give less than 0 with a correlation of 1.
    return float(value + sign * np.sqrt(max(fixed**2 + moved**2 - 2.0 * correlated * fixed * moved, 0.0)))


def curve_thresholds(same: FloatArray, different: FloatArray, at: ArrayLike = (), n: int = 100) -> FloatArray:
    """Return thresholds along a curve: scores at geometric (different pairs) and even (same pairs) ranks, and given ones."""
    chosen = []
    for scores, ranks in ((different, np.geomspace(1, len(different), n)), (same, np.linspace(1, len(same), n))):
        indices = np.unique(ranks.astype(np.int64)) - 1
        chosen.append(np.sort(scores)[::-1][indices])
    given = np.asarray(at, dtype=np.float64)
    return np.unique(np.concatenate([*chosen, given[np.isfinite(given)]]))[::-1]


def monotone_ends(interval: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper ends of a rate's intervals at decreasing thresholds, made non-decreasing.

    A rate cannot decrease when the threshold does, so a lower bound at one threshold holds at all lower thresholds, and an
    upper bound at all higher ones.

    Examples
    --------
    >>> monotone_ends(np.array([[0.2, 0.6], [0.1, 0.5], [0.3, 0.9]]))
    (array([0.2, 0.2, 0.3]), array([0.5, 0.5, 0.9]))
    """
    return np.maximum.accumulate(interval[:, 0]), np.minimum.accumulate(interval[::-1, 1])[::-1]


def placements(scores: FloatArray, others: FloatArray) -> FloatArray:
    """Return the proportion of the other scores that are below each score, ties counted half."""
    ordered = np.sort(others)
    below, up_to = np.searchsorted(ordered, scores, side="left"), np.searchsorted(ordered, scores, side="right")
    return np.asarray((below + up_to) / (2.0 * len(others)))


def _numbered(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct values in order, and the index of each value among them."""
    if np.issubdtype(values.dtype, np.integer) and len(values) and values.min() >= 0 and values.max() < len(values):
        present = np.zeros(int(values.max()) + 1, dtype=bool)
        present[values] = True
        return np.flatnonzero(present), (np.cumsum(present) - 1)[values]  # without sorting, which took a third of a tally
    return np.unique(values, return_inverse=True)


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
    >>> from simtree.evaluation import tally_pairs
    >>> tallies = tally_pairs([3, 2, 2, 1], [True, False, True, False], ["a", "a", "b", "b"], ["a", "b", "b", "c"])
    >>> tallies.different.thresholds.tolist(), tallies.different.totals[:-1].tolist()
    ([3.0, 2.0, 1.0], [0.0, 1.0, 2.0])
    """
    score, is_same = check_scores(scores, same)
    units, numbers = _numbered(np.concatenate([first, second]))
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
    >>> import numpy as np
    >>> from simtree.evaluation import point_intervals
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
