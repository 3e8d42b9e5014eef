"""Confidence intervals of metrics whose pairs share identities: variance by influence, and a bootstrap over identities.

Pairs are counted for each pair of *units*. The units are what is independent: identities, or single samples if the identities
are fixed (such as ten digits). All pairs of a unit are correlated, so the variance of a metric depends on the number of units,
not of pairs. `PairTally` keeps sums over pairs of units of the counts at some thresholds, and never the pairs themselves.

Let r be the residual of a pair of units (its accepted pairs minus the rate times its pairs) and D the sum of r over all pairs
of a unit. The variance of a rate is ``c * (sum D^2 - 2 sum r^2) + sum r^2`` divided by the squared number of pairs: the first
term is the variance that pairs share through their units, and the second is specific to each pair of units. c corrects for the
estimated mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import beta, t

from simtree._utils.validation import check_integer, check_real
from simtree.metrics import FloatArray, eer, roc_curve, threshold_at_fmr, tpr_at_fpr
from simtree.metrics._roc import check_scores
from simtree.pairs._sources import IndexPairs

# Number of table entries (pairs of units times thresholds) per block.
BLOCK_ENTRIES = 1 << 22
# Effective sizes are also computed at looser thresholds, up to this multiple of a rate.
NEARBY = 1.6
# Pairs that share no unit are independent; this number of groups of pairs then replaces the units.
N_GROUPS = 1024


class UnitDraws:
    """Bootstrap draws of units with replacement.

    Parameters
    ----------
    n_units : int
        Number of units.
    n_bootstraps : int
        Number of bootstrap draws.
    random_state : int
        Random seed.

    Notes
    -----
    The weight of a pair of units is the product of the weights of its units; a pair within a unit has the weight of the unit.
    These draws count the variance specific to pairs of units three times (Owen 2007, the pigeonhole bootstrap). `noise` returns
    weights 0 or 2 that are uncorrelated between pairs of units and count it once, so that the excess can be subtracted.
    """

    def __init__(self, n_units: int, n_bootstraps: int, random_state: int) -> None:
        rng = np.random.default_rng(random_state)
        self.counts = rng.multinomial(n_units, np.full(n_units, 1.0 / n_units), size=n_bootstraps).astype(np.float64)
        self._left, self._right = rng.choice([-1.0, 1.0], size=(2, n_bootstraps, n_units))

    def weights(self, first: NDArray[np.integer], second: NDArray[np.integer]) -> FloatArray:
        """Return the weight of each pair of units in each draw."""
        return np.asarray(self.counts[:, first] * np.where(first == second, 1.0, self.counts[:, second]))

    def noise(self, first: NDArray[np.integer], second: NDArray[np.integer]) -> FloatArray:
        """Return weights that are independent between pairs of units; pairs within a unit have weight 1."""
        return np.asarray(1.0 + np.where(first == second, 0.0, self._left[:, first] * self._right[:, second]))


class PairTally:
    """Counts of same pairs, or of different pairs, at some thresholds, with the sums that variances are computed from.

    Parameters
    ----------
    thresholds : array of shape (n_thresholds,)
        Strictly decreasing thresholds. A pair is accepted if and only if its score is at least the threshold.
    n_units : int
        Number of units.
    draws : UnitDraws, optional
        Bootstrap draws for which weighted counts are kept.
    independent : bool, default=False
        Whether the units are groups of independent pairs, see `PairSource.disjoint_groups`.

    Attributes
    ----------
    n_pairs, n_unit_pairs : int
        Number of pairs, and number of pairs of units that have pairs.
    totals : array of shape (n_thresholds + 1,)
        Number of accepted pairs at each threshold; the last entry is the sum of the placements, if these are given.
    drawn, drawn_noise : arrays of shape (n_bootstraps, n_thresholds + 2)
        `totals` and the number of pairs, weighted by the bootstrap draws.
    """

    def __init__(
        self, thresholds: FloatArray, n_units: int, draws: UnitDraws | None = None, *, independent: bool = False
    ) -> None:
        self.thresholds = thresholds
        self._independent = independent
        self.n_units = n_units
        self.n_pairs, self.n_unit_pairs = 0, 0
        n_columns = len(thresholds) + 2  # the last two are the placements and the number of pairs
        self._by_unit = np.zeros((n_units, n_columns))
        self._squares, self._crossed = np.zeros(n_columns), np.zeros(n_columns)
        self._draws = draws
        if draws is not None:
            self.drawn = np.zeros((len(draws.counts), n_columns))
            self.drawn_noise = np.zeros_like(self.drawn)
        self._sums = np.zeros(n_columns)

    def without_draws(self) -> PairTally:
        """Return an empty tally with the same thresholds and units, and without bootstrap draws."""
        return PairTally(self.thresholds, self.n_units, independent=self._independent)

    @property
    def totals(self) -> FloatArray:
        """Number of accepted pairs at each threshold, and the sum of placements."""
        return self._sums[:-1]

    @property
    def rates(self) -> FloatArray:
        """Proportion of accepted pairs at each threshold, and the mean placement."""
        return np.asarray(self._sums[:-1] / self.n_pairs)

    def add(
        self,
        first: NDArray[np.integer],
        second: NDArray[np.integer],
        scores: FloatArray,
        placements: FloatArray | None = None,
    ) -> None:
        """Count pairs; all pairs of two units must come in one call."""
        if not len(scores):
            return
        low, high = np.minimum(first, second).astype(np.int64), np.maximum(first, second).astype(np.int64)
        codes = low * self.n_units + high
        if (np.diff(codes) < 0).any():
            order = np.argsort(codes, kind="stable")
            codes, scores = codes[order], scores[order]
            placements = None if placements is None else placements[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        n_thresholds = len(self.thresholds)
        # Index of the first threshold that accepts each pair.
        level = n_thresholds - np.searchsorted(self.thresholds[::-1], scores, side="right")
        step = max(1, BLOCK_ENTRIES // (n_thresholds + 2))
        ends = np.append(starts, len(codes))
        for begin in range(0, len(starts), step):
            block = slice(begin, min(begin + step, len(starts)))
            rows = slice(ends[block.start], ends[block.stop])
            self._add_unit_pairs(
                codes[starts[block]],
                np.diff(ends[block.start : block.stop + 1]),
                level[rows],
                None if placements is None else placements[rows],
            )

    def _add_unit_pairs(
        self, codes: NDArray[np.int64], sizes: NDArray[np.int64], level: NDArray[np.int64], placements: FloatArray | None
    ) -> None:
        n_unit_pairs, n_thresholds = len(codes), len(self.thresholds)
        unit_pair = np.repeat(np.arange(n_unit_pairs), sizes)
        width = n_thresholds + 1
        table = np.empty((n_unit_pairs, n_thresholds + 2))
        counts = np.bincount(unit_pair * width + level, minlength=n_unit_pairs * width).reshape(n_unit_pairs, width)
        np.cumsum(counts[:, :-1], axis=1, out=table[:, :n_thresholds])
        table[:, -2] = 0.0 if placements is None else np.bincount(unit_pair, placements, minlength=n_unit_pairs)
        table[:, -1] = sizes
        first, second = np.divmod(codes, self.n_units)
        apart = first != second
        self._sums += table.sum(axis=0)
        self.n_pairs += int(sizes.sum())
        self.n_unit_pairs += int(sizes.sum()) if self._independent else n_unit_pairs
        self._squares += np.einsum("ij,ij->j", table[apart], table[apart])
        self._crossed += table[apart].T @ sizes[apart]
        numbers = np.arange(n_unit_pairs)
        units, which = np.concatenate([first, second[apart]]), np.concatenate([numbers, numbers[apart]])
        incidence = sparse.csr_array((np.ones(len(units)), (units, which)), shape=(self.n_units, n_unit_pairs))
        self._by_unit += incidence @ table
        if self._draws is not None:
            self.drawn += self._draws.weights(first, second) @ table
            self.drawn_noise += self._draws.noise(first, second) @ table

    def influences(self) -> tuple[FloatArray, FloatArray]:
        """Return the influence of each unit on the rates, and the summed squared influences of pairs of units.

        The influence of a unit is the sum of the residuals of its pairs divided by the number of all pairs. The arrays have the
        shapes (n_units, n_thresholds + 1) and (n_thresholds + 1,).
        """
        rates = self.rates
        by_unit = (self._by_unit[:, :-1] - rates * self._by_unit[:, -1:]) / self.n_pairs
        own = (self._squares[:-1] - 2 * rates * self._crossed[:-1] + rates**2 * self._crossed[-1]) / self.n_pairs**2
        return by_unit, np.maximum(own, 0.0)

    def effective_sizes(self) -> tuple[FloatArray, FloatArray]:
        """Return the effective number of pairs at each threshold, and the degrees of freedom of this estimate.

        The effective number of pairs is the number of independent pairs that would give the rate the same variance. Without
        errors it is the number of pairs of units.
        """
        by_unit, own = self.influences()
        variance = variance_of(by_unit, own, self.n_active)[:-1]
        return effective_size(self.rates[:-1], variance, self.n_unit_pairs, self.n_pairs), degrees_of_freedom(
            by_unit, self.n_active
        )[:-1]

    @property
    def n_active(self) -> int:
        """Number of units that have pairs."""
        return int(np.count_nonzero(self._by_unit[:, -1]))


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
        Tallies with the same thresholds, units and draws.
    """

    same: PairTally
    different: PairTally

    @property
    def n_units(self) -> int:
        """Number of units."""
        return self.same.n_units

    def auc_variance(self) -> tuple[float, float]:
        """Return the variance of the AUC, from the placements of the pairs of each unit, and its degrees of freedom."""
        by_same, own_same = self.same.influences()
        by_different, own_different = self.different.influences()
        by_unit, own = (by_same + by_different)[:, -1:], (own_same + own_different)[-1:]
        return float(variance_of(by_unit, own, self.n_units)[0]), float(degrees_of_freedom(by_unit, self.n_units)[0])

    def auc_interval(self, auc: float, confidence: float) -> FloatArray:
        """Return the interval of the AUC by influence, of shape (2,)."""
        variance, df = self.auc_variance()
        size = effective_size(np.array(auc), np.array(variance), *self._size_limits())
        return wilson_interval(auc, size, df, confidence)

    def rate_intervals(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return intervals of the FPR and of the TPR at each threshold by influence, of shape (n_thresholds, 2)."""
        fpr, (sizes, free) = self.different.rates[:-1], self.different.effective_sizes()
        sizes = np.where(fpr > 0.0, min_sizes(fpr, sizes, NEARBY * fpr), sizes)
        of_fpr = wilson_interval(fpr, sizes, free, confidence)
        return of_fpr, wilson_interval(self.same.rates[:-1], *self.same.effective_sizes(), confidence)

    def bootstrap_variance(self, fpr: Sequence[float]) -> FloatArray:
        """Return bootstrap variances of the AUC, the equal error rate, and the TPR at some FPRs (all interpolated)."""
        by_units = _variance(_metrics(_rates(self.different.drawn), _rates(self.same.drawn), fpr))
        noise = _variance(_metrics(_rates(self.different.drawn_noise), _rates(self.same.drawn_noise), fpr))
        return noise + _unbiased(by_units - 3.0 * noise, self.n_units, self.n_units - 1, self.n_units - 2)

    def bootstrap_intervals(self, values: ArrayLike, fpr: Sequence[float], confidence: float) -> FloatArray:
        """Return bootstrap intervals of the AUC, the equal error rate and the TPR at some FPRs.

        ``values`` are the metrics themselves. The result has the shape (2 + n_fpr, 2).
        """
        metrics = np.asarray(values, dtype=np.float64)
        # As with rates: slightly higher FPRs, with more errors, give a better estimate of the variance.
        variance = np.maximum(self.bootstrap_variance(fpr), self.bootstrap_variance([NEARBY * rate for rate in fpr]))
        sizes = effective_size(metrics, variance, *self._size_limits())
        # A metric at an estimated threshold has at most as many degrees of freedom as the rates at this threshold.
        rates, free = self.different.rates[:-1], np.minimum(self.different.effective_sizes()[1], self.same.effective_sizes()[1])
        crossing = int(np.argmin(np.abs(rates - (1.0 - self.same.rates[:-1]))))
        places = [crossing, *(max(int(np.searchsorted(rates, target, side="right")) - 1, 0) for target in fpr)]
        return wilson_interval(metrics, sizes, np.array([self.auc_variance()[1], *free[places]]), confidence)

    def _size_limits(self) -> tuple[int, int]:
        """Return the effective size without errors, and the maximum effective size, of a metric of both curves."""
        return min(self.same.n_unit_pairs, self.different.n_unit_pairs), max(self.same.n_pairs, self.different.n_pairs)


def _rates(drawn: FloatArray) -> FloatArray:
    """Return the rates of weighted counts; NaN without pairs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(drawn[:, :-2] / drawn[:, -1:])


def _metrics(fpr: FloatArray, tpr: FloatArray, at: Sequence[float]) -> FloatArray:
    """Return the AUC, equal error rate and TPR at some FPRs of each curve (decreasing thresholds); NaN without pairs."""
    zero, one = np.zeros((len(fpr), 1)), np.ones((len(fpr), 1))
    x, y = np.hstack([zero, fpr, one]), np.hstack([zero, tpr, one])
    found = np.full((len(x), 2 + len(at)), np.nan)
    for row, (a, b) in enumerate(zip(x, y, strict=True)):
        if np.isnan(a).any() or np.isnan(b).any():
            continue
        found[row, 0] = np.trapezoid(b, a)
        found[row, 1] = np.interp(0.0, a - (1.0 - b), a)
        found[row, 2:] = np.interp(at, a, b)
    return found


def _variance(metrics: FloatArray) -> FloatArray:
    """Return the variance over the draws that have both same and different pairs."""
    drawn = metrics[~np.isnan(metrics).any(axis=1)]
    if len(drawn) < 2:
        raise ValueError(
            f"n_bootstraps={len(metrics)} gave fewer than 2 draws with both same and different pairs; "
            "give more identities, or more samples."
        )
    return np.asarray(np.var(drawn, axis=0, ddof=1))


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
    n_bootstraps: int = 0,
    random_state: int = 0,
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
    n_bootstraps : int, default=0
        Number of bootstrap draws of the units.
    random_state : int, default=0
        Random seed of the draws.

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
    draws = UnitDraws(n_units, n_bootstraps, random_state) if n_bootstraps else None
    of_same, of_different = score[is_same], score[~is_same]
    thresholds = curve_thresholds(of_same, of_different, at)
    tallies = CurveTallies(*(PairTally(thresholds, n_units, draws, independent=groups is not None) for _ in range(2)))
    tallies.same.add(u[is_same], v[is_same], of_same, placements(of_same, of_different))
    tallies.different.add(u[~is_same], v[~is_same], of_different, 1.0 - placements(of_different, of_same))
    return tallies


def point_intervals(
    scores: ArrayLike,
    same: ArrayLike,
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    fpr: Sequence[float],
    *,
    n_bootstraps: int = 200,
    confidence: float = 0.95,
    random_state: int = 0,
) -> FloatArray:
    """Return intervals of the AUC and of the TPR at some FPRs for new units, by a bootstrap over units.

    Parameters
    ----------
    scores, same : array-like of shape (n_pairs,)
        Scores of pairs, and whether they are same pairs.
    first, second : ndarray of shape (n_pairs,)
        Units of each pair, as integers: identities, or samples if the identities are fixed.
    fpr : sequence of float
        False positive rates.
    n_bootstraps : int, default=200
        Number of bootstrap draws of the units.
    confidence : float, default=0.95
        Confidence level of the intervals.
    random_state : int, default=0
        Random seed of the draws.

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
    check_integer("n_bootstraps", n_bootstraps, 2)
    check_real("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    roc = roc_curve(scores, same)
    at = [threshold_at_fmr(roc, target) for target in fpr]
    tallies = tally_pairs(scores, same, first, second, at=at, n_bootstraps=n_bootstraps, random_state=random_state)
    values = [roc.auc(), eer(roc).value, *(tpr_at_fpr(roc, target) for target in fpr)]
    return np.delete(tallies.bootstrap_intervals(values, fpr, confidence), 1, axis=0)
