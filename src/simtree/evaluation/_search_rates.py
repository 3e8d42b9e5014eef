"""Rates of searches, and their confidence intervals for new identities.

All searches share one gallery. If a few of its identities are the best wrong matches of many searches, rates of searches vary
more from gallery to gallery than between searches. The variance is the larger one of two estimates:

- Leave out one unit at a time (the jackknife). Without an identity, its own searches are gone, and it cannot be found by the
  others any more. So for each search the best score of another identity is kept with the unit it belongs to, and the best score
  of all other units: they give the result without any unit, for all units at once. The same holds for the best score of the own
  identity if the units are samples. It is unbiased, but with one dominant unit it depends on one difference of two scores.
- Divide the gallery at random into several small ones, and keep the best score of each search in each of them. The variance of
  a rate between these galleries is added to that between searches, see `gallery_variance`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtrit

from simtree.evaluation._intervals import combined_end, correlation, logit_ends, placements, wilson_interval
from simtree.metrics import FloatArray, Searches, fnir_at_fpir
from simtree.pairs._sources import Index

Codes = NDArray[np.int64]
Rows = slice | NDArray[np.integer]
# Number of small galleries. More of them tell their variance better, but smaller galleries vary more.
N_GALLERIES = 8
# How much longer an interval is towards 1/2, per standard error on the logit scale and as far as the gallery causes it; and the
# same for how much fewer alarms than the target a sample may have at the true threshold. Chosen by simulations of
# benchmarks/populations.py, as was the number of galleries.
SEARCH_STRETCH, ALARM_STRETCH = 1.25, 4.0


@dataclass(frozen=True)
class _Rate:
    """A rate of searches, the influence of each unit on it, its variance, and how much of that is due to the gallery."""

    value: float
    influence: FloatArray
    variance: float
    shared: float

    @property
    def error(self) -> float:
        """Standard error on the logit scale; infinite at rates of 0 and 1."""
        spread = self.value * (1.0 - self.value)
        return float(np.sqrt(self.variance) / spread) if spread > 0.0 else np.inf


class TopTwo:
    """Highest score of each search with the unit it belongs to, and the highest score of all other units."""

    def __init__(self, n: int) -> None:
        self.best, self.second = np.full((2, n), -np.inf)
        self.unit = np.full(n, -1, dtype=np.int64)

    def add(self, rows: Rows, best: FloatArray, unit: Codes | int, second: FloatArray | float) -> None:
        """Update some searches, each at most once, with units that they have not met."""
        old_best, old_second = self.best[rows], self.second[rows]
        higher = best > old_best
        self.second[rows] = np.where(higher, np.maximum(second, old_best), np.maximum(old_second, best))
        self.best[rows] = np.where(higher, best, old_best)
        self.unit[rows] = np.where(higher, unit, self.unit[rows])

    def add_table(self, rows: Rows, table: FloatArray, units: Codes) -> None:
        """Update searches with a table of scores, one row per search and one column per unit."""
        place = table.argmax(axis=1)
        here = np.arange(len(table))
        best = table[here, place]
        second = np.full(len(table), -np.inf)
        if table.shape[1] > 1:
            second = np.partition(table, -2, axis=1)[:, -2]
        self.add(rows, best, units[place], second)


class SmallGalleries:
    """Highest score of each search in each of several small galleries, into which the units are divided at random."""

    def __init__(self, n: int, n_units: int) -> None:
        self.best = np.full((N_GALLERIES, n), -np.inf)
        # Always the same division, so that an evaluation of the same rows has the same intervals.
        self._of_units = np.random.default_rng(0).permutation(n_units) % N_GALLERIES

    def add(self, rows: slice, scores: FloatArray, unit: int) -> None:
        """Update searches with their scores of one unit."""
        best = self.best[self._of_units[unit], rows]
        np.maximum(best, scores, out=best)

    def add_table(self, rows: Rows, table: FloatArray, units: Codes) -> None:
        """Update searches with a table of scores, one row per search and one column per unit."""
        of_columns = self._of_units[units]
        order = np.argsort(of_columns, kind="stable")
        n_columns = np.bincount(of_columns, minlength=N_GALLERIES)
        present = np.flatnonzero(n_columns)
        highest = np.maximum.reduceat(table.T[order], (np.cumsum(n_columns) - n_columns)[present], axis=0)
        self.best[present, rows] = np.maximum(self.best[present, rows], highest)

    def add_scores(self, rows: Index, scores: FloatArray, units: Codes) -> None:
        """Update searches with a score of a unit each; a search may come several times."""
        np.maximum.at(self.best, (self._of_units[units], rows), scores)

    def matched(self, best: FloatArray) -> FloatArray:
        """Return the highest scores, of shape (n_searches, N_GALLERIES), with the distribution of those in the entire gallery.

        Best scores in a large gallery are higher. Each is replaced by the score of the same rank, so that rates of all small
        galleries together are those of the entire gallery. Only ranks count, so increasing functions of scores do not matter.
        """
        ranks = placements(self.best.ravel(), self.best.ravel()) * len(best)
        return np.asarray(np.sort(best)[ranks.astype(np.int64)].reshape(self.best.shape).T)


class SearchRates:
    """Results of searches, and the rates and intervals that follow from them.

    Parameters
    ----------
    units : array of shape (n_searches,)
        Unit that each search belongs to.
    n_units : int
        Number of units, those of the gallery among them.
    weights : array of shape (n_searches,)
        Weight of each search.
    place : array of shape (n_searches,)
        At which place the search of each row is kept.
    by_sample : bool
        Whether the units of the intervals are samples, not identities.
    """

    def __init__(self, units: Codes, n_units: int, weights: FloatArray, place: Codes, *, by_sample: bool) -> None:
        self._units, self.n_units, self._weights, self._place, self._by_sample = units, n_units, weights, place, by_sample
        n = len(units)
        self._mated, self._nonmated = TopTwo(n), TopTwo(n)
        self._galleries = SmallGalleries(n, n_units)
        self._n_ahead = np.zeros(n, dtype=np.int64)

    def found(self) -> Searches:
        """Return the best scores and the ranks of the search of each row."""
        mated = self._mated.best[self._place]
        ranks = np.where(np.isfinite(mated), 1 + self._n_ahead[self._place], 0)
        return Searches(mated, self._nonmated.best[self._place], ranks)

    @property
    def weights(self) -> FloatArray:
        """Weight of the search of each row."""
        return np.asarray(self._weights[self._place])

    def largest_hub(self) -> float:
        """Return the largest share of searches whose best score of another identity belongs to one and the same unit."""
        return float(self._sum(self._nonmated.unit, self._weights).max() / self._weights.sum())

    def rank1_interval(self, confidence: float) -> tuple[float, FloatArray]:
        """Return the share of searches with the true identity at rank 1, and its interval."""
        rate = self._rate_of_hits(-np.inf)
        return rate.value, self._interval(rate, confidence)

    def fnir_intervals(self, fpir: list[float], confidence: float) -> FloatArray:
        """Return intervals of the FNIR at some FPIRs, of shape (n_fpir, 2).

        They combine the interval at a fixed threshold with that of the threshold, see `threshold_range`, as `matched_intervals`
        does.
        """
        values = 1.0 - fnir_at_fpir(self.found(), np.asarray(fpir, dtype=np.float64), weights=self.weights)
        order = np.argsort(-self._nonmated.best)
        alarms, shares = self._nonmated.best[order], np.cumsum(self._weights[order]) / self._weights.sum()
        quantile = self._quantile(confidence)
        found = np.empty((len(values), 2))
        for row, (value, target) in enumerate(zip(values, fpir, strict=True)):
            # Just above the first alarm that is not allowed, as in `fnir_at_fpir`.
            n_allowed = int(np.searchsorted(shares, target, side="right"))
            threshold = float(np.nextafter(alarms[n_allowed], np.inf)) if n_allowed < len(alarms) else -np.inf
            # If no alarm is allowed, the error of the highest one is used.
            of_alarms = self._rate_of_alarms(min(threshold, float(alarms[0])))
            of_hits = self._rate_of_hits(threshold)
            both = threshold_range(alarms, shares, target, of_alarms.error, of_alarms.shared, quantile)
            correlated = correlation(of_alarms.influence, of_hits.influence)
            fixed = self._interval(of_hits, confidence)
            moved = [self._hits(to)[0] for to in both]
            for column, sign in ((0, -1.0), (1, 1.0)):
                found[row, column] = combined_end(float(value), sign, fixed[column], moved[column], correlated)
        return 1.0 - np.clip(found, 0.0, 1.0)[:, ::-1]

    def _hits(self, threshold: float) -> tuple[float, FloatArray]:
        """Return the share of searches that find their identity at rank 1 and a threshold, and that without each unit."""
        mated, other, weights = self._mated, self._nonmated, self._weights
        enrolled = np.isfinite(mated.best)

        def hit(own: FloatArray, others: FloatArray) -> FloatArray:
            return np.asarray(weights * (enrolled & (own > others) & (own >= threshold)))

        hits, n_enrolled = hit(mated.best, other.best), weights * enrolled
        lost = self._sum(self._units, hits) + self._sum(other.unit, hits - hit(mated.best, other.second))
        fewer = self._sum(self._units, n_enrolled)
        if self._by_sample:
            lost += self._sum(mated.unit, hits - hit(mated.second, other.best))
            fewer += self._sum(mated.unit, n_enrolled * ~np.isfinite(mated.second))
        return _ratios(hits.sum(), n_enrolled.sum(), lost, fewer)

    def _alarms(self, threshold: float) -> tuple[float, FloatArray]:
        """Return the share of searches in which another identity reaches a threshold, and that without each unit."""
        alarm = self._weights * (self._nonmated.best >= threshold)
        spared = alarm - self._weights * (self._nonmated.second >= threshold)
        lost = self._sum(self._units, alarm) + self._sum(self._nonmated.unit, spared)
        return _ratios(alarm.sum(), self._weights.sum(), lost, self._sum(self._units, self._weights))

    def _sum(self, units: Codes, values: FloatArray) -> FloatArray:
        """Return the sum of the values of each unit; -1 stands for none."""
        return np.asarray(np.bincount(units + 1, values, minlength=self.n_units + 1)[1:], dtype=np.float64)

    def _rate_of_hits(self, threshold: float) -> _Rate:
        """Return the rate of `_hits`, with its variance."""
        mated = self._mated.best
        enrolled = np.isfinite(mated)
        found, others = enrolled & (mated >= threshold), self._galleries.matched(self._nonmated.best)
        in_galleries = found[:, None] & (mated[:, None] > others)
        return self._rate(*self._hits(threshold), found & (mated > self._nonmated.best), in_galleries, self._weights * enrolled)

    def _rate_of_alarms(self, threshold: float) -> _Rate:
        """Return the rate of `_alarms`, with its variance."""
        best = self._nonmated.best
        in_galleries = self._galleries.matched(best) >= threshold
        return self._rate(*self._alarms(threshold), best >= threshold, in_galleries, self._weights)

    def _rate(
        self,
        value: float,
        left_out: FloatArray,
        outcome: NDArray[np.bool_],
        in_galleries: NDArray[np.bool_],
        weights: FloatArray,
    ) -> _Rate:
        """Return a rate with its variance.

        Parameters
        ----------
        value : float
            The rate.
        left_out : array of shape (n_units,)
            The rate without each unit.
        outcome, in_galleries : array of bool of shape (n_searches,) and (n_searches, N_GALLERIES)
            Outcome of each search in the entire gallery, and in each small one with matched scores.
        weights : array of shape (n_searches,)
            Weight of each search.

        Returns
        -------
        _Rate
            Its variance is at least that of independent searches.
        """
        n = len(left_out)
        influence = (left_out.mean() - left_out) * (n - 1) / n
        between_units = self._sum(self._units, weights * (outcome - value)) / weights.sum()
        jackknife, of_searches = (float(values @ values) * n / max(n - 1, 1) for values in (influence, between_units))
        of_searches = max(of_searches, value * (1.0 - value) / len(weights))
        variance = max(jackknife, of_searches + gallery_variance(in_galleries, self._units, weights))
        return _Rate(value, influence, variance, 1.0 - of_searches / variance if variance > 0.0 else 0.0)

    def _quantile(self, confidence: float) -> float:
        """Return Student's quantile, with the degrees of freedom of the equally weighted units that would be as informative."""
        return float(stdtrit(max(self._n_even - 1.0, 1.0), 0.5 + confidence / 2.0))

    @property
    def _n_even(self) -> float:
        own = self._sum(self._units, self._weights)
        return float(own.sum() ** 2 / (own @ own))

    def _interval(self, rate: _Rate, confidence: float) -> FloatArray:
        """Return the interval of a rate; of a rate of 0 or 1, that of searches of units which share nobody."""
        if not 0.0 < rate.value < 1.0:
            n_even = self._n_even
            return wilson_interval(rate.value, max(n_even / 2.0, 1.0), max(n_even - 1.0, 1.0), confidence)
        numbers = np.array([[rate.value], [rate.error], [self._quantile(confidence)], [SEARCH_STRETCH * rate.shared]])
        return np.asarray(logit_ends(*numbers)[0])


def gallery_variance(outcome: NDArray[np.bool_], units: Codes, weights: FloatArray) -> float:
    """Return the variance of a rate that is due to the gallery, from the same searches in several galleries.

    It is the variance of the rate between galleries, minus what searches of each unit alone contribute to it: the covariance of
    searches of different units that share a gallery.

    Parameters
    ----------
    outcome : array of bool of shape (n_searches, n_galleries)
        Outcome of each search in each gallery. The galleries share no unit.
    units : array of shape (n_searches,)
        Unit that each search belongs to.
    weights : array of shape (n_searches,)
        Weight of each search.

    Returns
    -------
    float
        Variance, at least 0.
    """
    deviations = weights[:, None] * (outcome - outcome.mean(axis=1, keepdims=True))
    total = own = 0.0
    for column in deviations.T:
        of_units = np.bincount(units, column)
        total += float(of_units.sum()) ** 2
        own += float(of_units @ of_units)
    return max(total - own, 0.0) / float((outcome.shape[1] - 1) * weights.sum() ** 2)


def threshold_range(
    alarms: FloatArray, shares: FloatArray, target: float, error: float, shared: float, quantile: float
) -> tuple[float, float]:
    """Return the strictest and the loosest threshold at which the true FPIR may be the target (Woodruff 1952).

    At the true threshold a sample has an FPIR that lies around the target. It may be much lower: a gallery without the
    identities that cause most alarms also shows too little of how much galleries vary.

    Parameters
    ----------
    alarms : array of shape (n_searches,)
        Best scores of other identities, in decreasing order.
    shares : array of shape (n_searches,)
        FPIR at each of these scores.
    target : float
        The FPIR.
    error, shared : float
        Standard error of the FPIR on the logit scale, and the share of its variance that is due to the gallery.
    quantile : float
        Number of standard errors.

    Returns
    -------
    strictest, loosest : float
        Thresholds; the strictest is infinite if the sample may have no alarm at all at the true one.
    """
    if not np.isfinite(error):  # alarms in all searches or in none: nothing is known
        return np.inf, float(alarms[-1])
    stretch = 1.0 + ALARM_STRETCH * shared * error * max(1.0 - 2.0 * target, 0.0)
    lowest, highest = (float(expit(logit(target) + sign * quantile * error)) for sign in (-stretch, 1.0))
    strictest = int(np.searchsorted(shares, lowest, side="right")) - 1
    loosest = min(int(np.searchsorted(shares, highest, side="left")), len(alarms) - 1)
    return float(alarms[strictest]) if strictest >= 0 else np.inf, float(alarms[loosest])


def _ratios(total: float, weight: float, lost: FloatArray, fewer: FloatArray) -> tuple[float, FloatArray]:
    """Return a ratio of sums, and that without each unit; with nothing left it is the ratio of all."""
    left = weight - fewer
    safe = np.where(left > 0.0, left, 1.0)
    return float(total / weight), np.where(left > 0.0, (total - lost) / safe, total / weight)
