"""How sure figures of pairs are when pairs share people: variance by influence, and a bootstrap over identities.

Pairs are counted for each pair of *units*: identities, or single samples where the identities are fixed (ten digits, say). A
unit brings all its pairs along, so figures vary as units do, not as pairs do. `PairTally` keeps what that needs: sums over
pairs of units of counts at some thresholds, never the pairs themselves.

With r the residual of a pair of units (its accepted pairs minus the rate times its pairs) and D the sum of r over all
pairs of a unit, the variance of a rate is ``c * (sum D^2 - 2 sum r^2) + sum r^2`` over the squared number of pairs: what units
have in common, and what each pair of units has of its own. c makes up for the estimated mean.
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
from simtree.pairs._sampling import IndexPairs

# Cells (pairs of units times thresholds) that are worked on at a time.
CELLS = 1 << 22
# How far effective numbers of pairs are looked for at looser thresholds: up to this multiple of a rate.
NEARBY = 1.6
# Pairs that share no unit are independent; so many groups of them then stand for the units.
N_GROUPS = 1024


class UnitDraws:
    """Units drawn with replacement, many times: how often each was drawn.

    Parameters
    ----------
    n_units : int
        How many units.
    n_bootstraps : int
        How many times all of them are drawn.
    random_state : int
        Seed.

    Notes
    -----
    A pair of units counts as often as the product of its units; pairs within a unit as often as the unit. Such draws count the
    noise of single pairs of units three times (Owen 2007, the pigeonhole bootstrap). `noise` has weights 0 or 2 that are
    uncorrelated between pairs of units and count it once, so that the excess can be taken off.
    """

    def __init__(self, n_units: int, n_bootstraps: int, random_state: int) -> None:
        rng = np.random.default_rng(random_state)
        self.times = rng.multinomial(n_units, np.full(n_units, 1.0 / n_units), size=n_bootstraps).astype(np.float64)
        self._left, self._right = rng.choice([-1.0, 1.0], size=(2, n_bootstraps, n_units))

    def weights(self, first: NDArray[np.integer], second: NDArray[np.integer]) -> FloatArray:
        """Weight of each pair of units in each draw."""
        return np.asarray(self.times[:, first] * np.where(first == second, 1.0, self.times[:, second]))

    def noise(self, first: NDArray[np.integer], second: NDArray[np.integer]) -> FloatArray:
        """Weights that vary from one pair of units to another independently; pairs within a unit keep theirs."""
        return np.asarray(1.0 + np.where(first == second, 0.0, self._left[:, first] * self._right[:, second]))


class PairTally:
    """Counts of pairs of one kind at some thresholds, summed over pairs of units as variances need them.

    Parameters
    ----------
    thresholds : array of shape (n_thresholds,)
        Strictly falling. A pair is accepted iff its score is at least the threshold.
    n_units : int
        How many units there are.
    draws : UnitDraws, optional
        Draws of units to count for.
    independent : bool, default=False
        Units are groups of independent pairs, see `PairSource.disjoint_groups`.

    Attributes
    ----------
    n_pairs, n_cells : int
        Numbers of pairs, and of pairs of units that have some.
    totals : array of shape (n_thresholds + 1,)
        Accepted pairs at each threshold; last the sum of the placements, if these are given.
    drawn, drawn_noise : arrays of shape (n_bootstraps, n_thresholds + 2)
        `totals`, and the number of pairs, weighted as drawn.
    """

    def __init__(
        self, thresholds: FloatArray, n_units: int, draws: UnitDraws | None = None, *, independent: bool = False
    ) -> None:
        self.thresholds = thresholds
        self._independent = independent
        self.n_units = n_units
        self.n_pairs, self.n_cells = 0, 0
        n_columns = len(thresholds) + 2  # last the placements, and the number of pairs
        self._by_unit = np.zeros((n_units, n_columns))
        self._squares, self._crossed = np.zeros(n_columns), np.zeros(n_columns)
        self._draws = draws
        if draws is not None:
            self.drawn = np.zeros((len(draws.times), n_columns))
            self.drawn_noise = np.zeros_like(self.drawn)
        self._sums = np.zeros(n_columns)

    def without_draws(self) -> PairTally:
        """An empty tally at the same thresholds, for other pairs of the same units."""
        return PairTally(self.thresholds, self.n_units, independent=self._independent)

    @property
    def totals(self) -> FloatArray:
        """Accepted pairs at each threshold, and the sum of placements."""
        return self._sums[:-1]

    @property
    def rates(self) -> FloatArray:
        """Share of accepted pairs at each threshold, and the mean placement."""
        return np.asarray(self._sums[:-1] / self.n_pairs)

    def add(
        self,
        first: NDArray[np.integer],
        second: NDArray[np.integer],
        scores: FloatArray,
        placements: FloatArray | None = None,
    ) -> None:
        """Count pairs. All pairs of two units must come in one call."""
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
        level = n_thresholds - np.searchsorted(self.thresholds[::-1], scores, side="right")  # first threshold that accepts
        step = max(1, CELLS // (n_thresholds + 2))
        ends = np.append(starts, len(codes))
        for begin in range(0, len(starts), step):
            cells = slice(begin, min(begin + step, len(starts)))
            rows = slice(ends[cells.start], ends[cells.stop])
            self._add_cells(
                codes[starts[cells]],
                np.diff(ends[cells.start : cells.stop + 1]),
                level[rows],
                None if placements is None else placements[rows],
            )

    def _add_cells(
        self, codes: NDArray[np.int64], sizes: NDArray[np.int64], level: NDArray[np.int64], placements: FloatArray | None
    ) -> None:
        n_cells, n_thresholds = len(codes), len(self.thresholds)
        cell = np.repeat(np.arange(n_cells), sizes)
        width = n_thresholds + 1
        table = np.empty((n_cells, n_thresholds + 2))
        counts = np.bincount(cell * width + level, minlength=n_cells * width).reshape(n_cells, width)
        np.cumsum(counts[:, :-1], axis=1, out=table[:, :n_thresholds])
        table[:, -2] = 0.0 if placements is None else np.bincount(cell, placements, minlength=n_cells)
        table[:, -1] = sizes
        first, second = np.divmod(codes, self.n_units)
        apart = first != second
        self._sums += table.sum(axis=0)
        self.n_pairs += int(sizes.sum())
        self.n_cells += int(sizes.sum()) if self._independent else n_cells
        self._squares += np.einsum("ij,ij->j", table[apart], table[apart])
        self._crossed += table[apart].T @ sizes[apart]
        numbers = np.arange(n_cells)
        units, which = np.concatenate([first, second[apart]]), np.concatenate([numbers, numbers[apart]])
        self._by_unit += sparse.csr_array((np.ones(len(units)), (units, which)), shape=(self.n_units, n_cells)) @ table
        if self._draws is not None:
            self.drawn += self._draws.weights(first, second) @ table
            self.drawn_noise += self._draws.noise(first, second) @ table

    def influences(self) -> tuple[FloatArray, FloatArray]:
        """Sum of residuals of the pairs of each unit, relative to all pairs, and the summed squares of pairs of units.

        Arrays of shape (n_units, n_thresholds + 1) and (n_thresholds + 1,).
        """
        rates = self.rates
        by_unit = (self._by_unit[:, :-1] - rates * self._by_unit[:, -1:]) / self.n_pairs
        own = (self._squares[:-1] - 2 * rates * self._crossed[:-1] + rates**2 * self._crossed[-1]) / self.n_pairs**2
        return by_unit, np.maximum(own, 0.0)

    def effective_sizes(self) -> tuple[FloatArray, FloatArray]:
        """How many independent pairs would make each rate as sure as it is, and from how many degrees of freedom this is known.

        Without errors the number of pairs of units.
        """
        by_unit, own = self.influences()
        variance = variance_of(by_unit, own, self.n_active)[:-1]
        return effective_size(self.rates[:-1], variance, self.n_cells, self.n_pairs), degrees_of_freedom(
            by_unit, self.n_active
        )[:-1]

    @property
    def n_active(self) -> int:
        """How many units have pairs."""
        return int(np.count_nonzero(self._by_unit[:, -1]))


def variance_of(by_unit: FloatArray, own: FloatArray, n_units: int) -> FloatArray:
    """Variance of figures from the influence of each unit and the summed squares of what pairs of units have of their own."""
    squares = np.einsum("ij,ij->j", by_unit, by_unit)
    if not own.any():  # no unit meets another: a plain mean over units
        return _unbiased(squares, n_units, n_units - 1, n_units - 1)
    return own + _unbiased(squares - 2.0 * own, n_units, n_units - 1, n_units - 2)


def _unbiased(shared: FloatArray, n_units: int, df: int, n_left: int) -> FloatArray:
    """The part of a variance that units share, made up for the estimated mean; unknown (infinite) with too few units."""
    factor = n_units * df / n_left**2 if n_left > 0 else np.inf
    return np.multiply(shared, factor, out=np.zeros_like(shared), where=shared > 0.0)


def degrees_of_freedom(by_unit: FloatArray, n_units: int) -> FloatArray:
    """Degrees of freedom of a variance that is a sum of squares of influences (Satterthwaite): few, if few units decide it."""
    squares = by_unit**2
    total = squares.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = n_units * (squares**2).sum(axis=0) / total**2
        found = 2.0 * n_units / (kurtosis - 1.0)
    most = float(max(n_units - 1, 1))
    return np.where(np.isfinite(found), np.clip(found, 1.0, most), most)


def effective_size(rates: FloatArray, variance: FloatArray, n_cells: int, n_pairs: int) -> FloatArray:
    """Numbers of independent pairs with the same variance, at most the number of pairs."""
    at_ends = (rates <= 0.0) | (rates >= 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.minimum(rates * (1.0 - rates) / variance, n_pairs)
    return np.where(at_ends, float(n_cells), np.maximum(found, 1.0))


def least_sizes(rates: FloatArray, sizes: FloatArray, up_to: ArrayLike) -> FloatArray:
    """The least effective size from each rate, at falling thresholds, up to a higher rate.

    Where few errors are seen, their variance is seen even less: a sample with too few errors has too small a variance as well.
    Looser thresholds, with more errors, know better how much units have in common.
    """
    stop = np.searchsorted(rates, up_to, side="right")
    found = sizes.copy()
    for k, end in enumerate(np.broadcast_to(stop, rates.shape)):
        found[k] = sizes[k : max(end, k + 1)].min()
    return found


def wilson_interval(rate: ArrayLike, n_effective: ArrayLike, df: ArrayLike, confidence: float = 0.95) -> FloatArray:
    """Wilson's interval of rates, with an effective number of pairs and Student's quantile for few units.

    Parameters
    ----------
    rate : float or array, in [0, 1]
    n_effective : float or array
        Numbers of independent pairs that would be as sure, see `PairTally.effective_sizes`.
    df : float or array
        Degrees of freedom from which the effective numbers are known.
    confidence : float, default=0.95

    Returns
    -------
    array of shape (..., 2)
        Lower and upper ends; also at rates 0 and 1 neither empty nor beyond them.

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
    return np.stack([np.clip(low, 0.0, p), np.clip(high, p, 1.0)], axis=-1)  # rounding may lead beyond


def upper_bound(rate: ArrayLike, n_effective: ArrayLike, confidence: float = 0.95) -> FloatArray:
    """One-sided Clopper-Pearson bound of rates, with an effective number of pairs; without errors the rule of three.

    Parameters
    ----------
    rate : float or array, in [0, 1]
    n_effective : float or array
    confidence : float, default=0.95

    Returns
    -------
    array

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
    """Same and different pairs counted at the same thresholds: a curve, and how sure it is.

    Parameters
    ----------
    same, different : PairTally
        With the same thresholds, units and draws.
    """

    same: PairTally
    different: PairTally

    @property
    def n_units(self) -> int:
        """How many units there are."""
        return self.same.n_units

    def auc_variance(self) -> tuple[float, float]:
        """Variance of the AUC, from the placements of the pairs of each unit of either kind, and its degrees of freedom."""
        by_same, own_same = self.same.influences()
        by_different, own_different = self.different.influences()
        by_unit, own = (by_same + by_different)[:, -1:], (own_same + own_different)[-1:]
        return float(variance_of(by_unit, own, self.n_units)[0]), float(degrees_of_freedom(by_unit, self.n_units)[0])

    def auc_interval(self, auc: float, confidence: float) -> FloatArray:
        """Interval of the AUC, by influence; shape (2,)."""
        variance, df = self.auc_variance()
        n_cells, n_pairs = min(self.same.n_cells, self.different.n_cells), max(self.same.n_pairs, self.different.n_pairs)
        return wilson_interval(auc, effective_size(np.array(auc), np.array(variance), n_cells, n_pairs), df, confidence)

    def rate_intervals(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Intervals of the FPR and of the TPR at each threshold, by influence; shape (n_thresholds, 2)."""
        fpr, (sizes, free) = self.different.rates[:-1], self.different.effective_sizes()
        sizes = np.where(fpr > 0.0, least_sizes(fpr, sizes, NEARBY * fpr), sizes)
        of_fpr = wilson_interval(fpr, sizes, free, confidence)
        return of_fpr, wilson_interval(self.same.rates[:-1], *self.same.effective_sizes(), confidence)

    def bootstrap_variance(self, fpr: Sequence[float]) -> FloatArray:
        """Variance over draws of units of the AUC, the equal error rate, and the TPR at some FPRs (all interpolated)."""
        by_units = _variance(_figures(_shares(self.different.drawn), _shares(self.same.drawn), fpr))
        noise = _variance(_figures(_shares(self.different.drawn_noise), _shares(self.same.drawn_noise), fpr))
        return noise + _unbiased(by_units - 3.0 * noise, self.n_units, self.n_units - 1, self.n_units - 2)

    def bootstrap_intervals(self, values: ArrayLike, fpr: Sequence[float], confidence: float) -> FloatArray:
        """Intervals of the AUC, the equal error rate, and the TPR at some FPRs, whose values are given; shape (2 + n, 2)."""
        figures = np.asarray(values, dtype=np.float64)
        n_cells, n_pairs = min(self.same.n_cells, self.different.n_cells), max(self.same.n_pairs, self.different.n_pairs)
        # As with rates: a little further right on the curve it is known better how much it varies.
        variance = np.maximum(self.bootstrap_variance(fpr), self.bootstrap_variance([NEARBY * rate for rate in fpr]))
        sizes = effective_size(figures, variance, n_cells, n_pairs)
        # A figure at a threshold that is itself found is known no better than the rates there.
        rates, free = self.different.rates[:-1], np.minimum(self.different.effective_sizes()[1], self.same.effective_sizes()[1])
        crossing = int(np.argmin(np.abs(rates - (1.0 - self.same.rates[:-1]))))
        places = [crossing, *(max(int(np.searchsorted(rates, target, side="right")) - 1, 0) for target in fpr)]
        return wilson_interval(figures, sizes, np.array([self.auc_variance()[1], *free[places]]), confidence)


def _shares(drawn: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(drawn[:, :-2] / drawn[:, -1:])


def _figures(fpr: FloatArray, tpr: FloatArray, at: Sequence[float]) -> FloatArray:
    """AUC, equal error rate and TPR at some FPRs of each of many curves, given at falling thresholds; NaN without pairs."""
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


def _variance(figures: FloatArray) -> FloatArray:
    drawn = figures[~np.isnan(figures).any(axis=1)]
    if len(drawn) < 2:
        raise ValueError(
            f"n_bootstraps={len(figures)} draws of units held no pair of each kind; give more identities, or points."
        )
    return np.asarray(np.var(drawn, axis=0, ddof=1))


def curve_thresholds(same: FloatArray, different: FloatArray, at: ArrayLike = (), n: int = 100) -> FloatArray:
    """Thresholds that trace a curve: scores of different pairs by powers of rank, of same pairs evenly, and given ones."""
    chosen = []
    for scores, ranks in ((different, np.geomspace(1, len(different), n)), (same, np.linspace(1, len(same), n))):
        places = np.unique(ranks.astype(np.int64)) - 1
        chosen.append(np.sort(scores)[::-1][places])
    given = np.asarray(at, dtype=np.float64)
    return np.unique(np.concatenate([*chosen, given[np.isfinite(given)]]))[::-1]


def placements(scores: FloatArray, others: FloatArray) -> FloatArray:
    """Share of the other scores that lie below each score, ties counted one half."""
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
    """Count scored pairs of units, at thresholds that trace their curve and at given ones.

    Parameters
    ----------
    scores, same : array-like of shape (n_pairs,)
        Scores of pairs, and whether they are same pairs.
    first, second : array of shape (n_pairs,)
        The units of each pair, such as the identities of its two samples; of any type.
    at : array-like, optional
        Thresholds to count at besides.
    n_bootstraps : int, default=0
        How often units are drawn for the bootstrap.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    CurveTallies

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
    genuine, impostor = score[is_same], score[~is_same]
    thresholds = curve_thresholds(genuine, impostor, at)
    tallies = CurveTallies(*(PairTally(thresholds, n_units, draws, independent=groups is not None) for _ in range(2)))
    tallies.same.add(u[is_same], v[is_same], genuine, placements(genuine, impostor))
    tallies.different.add(u[~is_same], v[~is_same], impostor, 1.0 - placements(impostor, genuine))
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
    """Intervals of the AUC and of the TPR at some FPRs, for new units and new pairs of them, by a bootstrap over units.

    Parameters
    ----------
    scores, same : array-like of shape (n_pairs,)
        Scores of pairs, and whether they are same pairs.
    first, second : ndarray of shape (n_pairs,)
        Their units, as numbers: identities, or samples if the identities are fixed.
    fpr : sequence of float
        Where on the curve.
    n_bootstraps : int, default=200
        How often the units are drawn.
    confidence : float, default=0.95
        Confidence level of the intervals.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ndarray of shape (1 + len(fpr), 2)
        Lower and upper ends: of the AUC first, then of the TPR at each FPR (at most each target, as in `tpr_at_fpr`).

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
