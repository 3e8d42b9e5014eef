"""Search of each sample among all others: ranks, and confidence intervals by leaving out one unit at a time.

Without an identity, its own searches are gone, and it cannot be found by the others any more. So for each search the best score
of another identity is kept with the unit it belongs to, and the best score of all other units: they give the result without any
unit, for all units at once. The same holds for the best score of the own identity if the units are samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simtree.evaluation._intervals import logit_interval, matched_intervals
from simtree.evaluation._tallies import Influence, degrees_of_freedom
from simtree.metrics import FloatArray, Searches, fnir_at_fpir
from simtree.pairs._sources import DifferentBlock, Index, IndexPairs

Codes = NDArray[np.int64]
# Number of thresholds at which the rates of an open set are computed.
N_THRESHOLDS = 40


class _TopTwo:
    """Highest score of each search with the unit it belongs to, and the highest score of all other units."""

    def __init__(self, n: int) -> None:
        self.best, self.second = np.full((2, n), -np.inf)
        self.unit = np.full(n, -1, dtype=np.int64)

    def add(self, rows: NDArray[np.integer], best: FloatArray, unit: Codes, second: FloatArray) -> None:
        """Update some searches, each at most once, with units that they have not met."""
        old_best, old_second = self.best[rows], self.second[rows]
        higher = best > old_best
        self.second[rows] = np.where(higher, np.maximum(second, old_best), np.maximum(old_second, best))
        self.best[rows] = np.where(higher, best, old_best)
        self.unit[rows] = np.where(higher, unit, self.unit[rows])

    def add_table(self, rows: NDArray[np.integer], table: FloatArray, units: Codes) -> None:
        """Update searches with a table of scores, one row per search and one column per unit."""
        place = table.argmax(axis=1)
        here = np.arange(len(table))
        best = table[here, place]
        second = np.full(len(table), -np.inf)
        if table.shape[1] > 1:
            second = np.partition(table, -2, axis=1)[:, -2]
        self.add(rows, best, units[place], second)


class SearchCounts:
    """Search of each sample among all others; the score of an identity is that of its best sample.

    Parameters
    ----------
    order : array of shape (n_samples,)
        Rows sorted by identity.
    starts : array of shape (n_identities + 1,)
        Position at which each identity starts, and the number of samples.
    same : IndexPairs
        The same pairs.
    same_scores : array
        Their scores.
    by_sample : bool
        Whether the units of the intervals are samples, not identities.
    by_identity : bool
        Whether all searches of an identity together have the weight of one.
    """

    def __init__(
        self, order: Index, starts: Codes, same: IndexPairs, same_scores: FloatArray, *, by_sample: bool, by_identity: bool
    ) -> None:
        self._order, self._starts, self._by_sample = order, starts, by_sample
        n = len(order)
        identity = np.empty(n, dtype=np.int64)
        identity[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        self._identity = identity
        self.units = np.arange(n) if by_sample else identity
        self._mated, self._nonmated = _TopTwo(n), _TopTwo(n)
        self._n_ahead = np.zeros(n, dtype=np.int64)
        rows = np.concatenate([same.first, same.second]).astype(np.int64)
        mates, scores = np.concatenate([same.second, same.first]), np.concatenate([same_scores, same_scores])
        if by_sample:
            by_score = np.lexsort([-scores, rows])
            rows, mates, scores = rows[by_score], mates[by_score], scores[by_score]
            first = np.flatnonzero(np.diff(rows, prepend=-1))
            following = np.minimum(first + 1, len(rows) - 1)
            second = np.where((following > first) & (rows[following] == rows[first]), scores[following], -np.inf)
            self._mated.add(rows[first], scores[first], mates[first].astype(np.int64), second)
        else:
            np.maximum.at(self._mated.best, rows, scores)
        self.weights = 1.0 / np.bincount(identity)[identity] if by_identity else np.ones(n)

    def add(self, block: DifferentBlock, scores: FloatArray) -> None:
        """Update the searches with the scores of some identities against all later ones."""
        done = 0
        for identity in block.identities:
            start, stop = self._starts[identity], self._starts[identity + 1]
            own, later = self._order[start:stop], self._order[stop:]
            table = scores[done : done + len(own) * len(later)].reshape(len(own), len(later))
            done += table.size
            mated = self._mated.best
            best_of_later = np.maximum.reduceat(table, self._starts[identity + 1 : -1] - stop, axis=1)
            self._n_ahead[own] += np.count_nonzero(best_of_later >= mated[own, None], axis=1)
            best_of_own = table.max(axis=0)
            self._n_ahead[later] += best_of_own >= mated[later]
            if self._by_sample:
                self._nonmated.add_table(own, table, later.astype(np.int64))
                self._nonmated.add_table(later, table.T, own.astype(np.int64))
            else:
                self._nonmated.add_table(own, best_of_later, np.arange(identity + 1, len(self._starts) - 1))
                nobody = np.full(len(later), -np.inf)
                self._nonmated.add(later, best_of_own, np.full(len(later), identity), nobody)

    def found(self) -> Searches:
        """Return the best scores and the ranks."""
        mated = self._mated.best
        return Searches(mated, self._nonmated.best, np.where(np.isfinite(mated), 1 + self._n_ahead, 0))

    def largest_hub(self) -> float:
        """Return the largest share of searches whose best score of another identity belongs to one and the same unit."""
        return float(self._sum(self._nonmated.unit, self.weights).max() / self.weights.sum())

    def rank1_interval(self, confidence: float) -> tuple[float, FloatArray]:
        """Return the share of searches with the true identity at rank 1, and its interval."""
        rate, left_out = self._hits(-np.inf)
        value = np.array([rate])
        return rate, self._interval(value, self._influence(left_out[:, None]), confidence)[0]

    def fnir_intervals(self, fpir: list[float], confidence: float) -> FloatArray:
        """Return intervals of the FNIR at some FPIRs, of shape (n_fpir, 2)."""
        alarms = np.sort(self._nonmated.best[np.isfinite(self._nonmated.best)])[::-1]
        places = np.unique(np.geomspace(1, len(alarms), N_THRESHOLDS).astype(np.int64)) - 1
        thresholds = np.unique(alarms[places])[::-1]
        limited, other = (self._curve(rate, thresholds, confidence) for rate in (self._alarms, self._hits))
        hits = 1.0 - fnir_at_fpir(self.found(), np.asarray(fpir, dtype=np.float64), weights=self.weights)
        return 1.0 - matched_intervals(hits, np.asarray(fpir), limited, other)[:, ::-1]

    def _curve(
        self, rate: Callable[[float], tuple[float, FloatArray]], thresholds: FloatArray, confidence: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return a rate at some thresholds, its intervals, and the influence of units."""
        values, left_out = zip(*(rate(float(threshold)) for threshold in thresholds), strict=True)
        influence = self._influence(np.column_stack(left_out))
        return np.array(values), self._interval(np.array(values), influence, confidence), influence.units

    @property
    def n_units(self) -> int:
        """Number of units."""
        return int(self.units.max()) + 1

    def _hits(self, threshold: float) -> tuple[float, FloatArray]:
        """Return the share of searches that find their identity at rank 1 and a threshold, and that without each unit."""
        mated, other, weights = self._mated, self._nonmated, self.weights
        enrolled = np.isfinite(mated.best)

        def hit(own: FloatArray, others: FloatArray) -> FloatArray:
            return np.asarray(weights * (enrolled & (own > others) & (own >= threshold)))

        hits, n_enrolled = hit(mated.best, other.best), weights * enrolled
        lost = self._sum(self.units, hits) + self._sum(other.unit, hits - hit(mated.best, other.second))
        fewer = self._sum(self.units, n_enrolled)
        if self._by_sample:
            lost += self._sum(mated.unit, hits - hit(mated.second, other.best))
            fewer += self._sum(mated.unit, n_enrolled * ~np.isfinite(mated.second))
        return _ratios(hits.sum(), n_enrolled.sum(), lost, fewer)

    def _alarms(self, threshold: float) -> tuple[float, FloatArray]:
        """Return the share of searches in which another identity reaches a threshold, and that without each unit."""
        alarm = self.weights * (self._nonmated.best >= threshold)
        spared = alarm - self.weights * (self._nonmated.second >= threshold)
        lost = self._sum(self.units, alarm) + self._sum(self._nonmated.unit, spared)
        return _ratios(alarm.sum(), self.weights.sum(), lost, self._sum(self.units, self.weights))

    def _sum(self, units: Codes, values: FloatArray) -> FloatArray:
        """Return the sum of the values of each unit; -1 stands for none."""
        return np.asarray(np.bincount(units + 1, values, minlength=self.n_units + 1)[1:], dtype=np.float64)

    def _influence(self, left_out: FloatArray) -> Influence:
        """Return the influence of units from the rates without each of them, of shape (n_units, n_rates): the jackknife."""
        n = len(left_out)
        own = self._sum(self.units, self.weights)
        n_even = float(own.sum() ** 2 / (own @ own))
        return Influence((left_out.mean(axis=0) - left_out) * (n - 1) / n, np.zeros(left_out.shape[1]), n, n_even)

    def _interval(self, values: FloatArray, influence: Influence, confidence: float) -> FloatArray:
        variance, _ = influence.variance()
        # The best of others is an extreme, which few units decide; a search involves two identities, as a pair does.
        df, shared = degrees_of_freedom(influence.units, influence.n_units), np.ones_like(values)
        return logit_interval(values, variance, df, shared, len(self.weights), influence.n_even / 2.0, confidence)


def _ratios(total: float, weight: float, lost: FloatArray, fewer: FloatArray) -> tuple[float, FloatArray]:
    """Return a ratio of sums, and that without each unit; with nothing left it is the ratio of all."""
    left = weight - fewer
    safe = np.where(left > 0.0, left, 1.0)
    return float(total / weight), np.where(left > 0.0, (total - lost) / safe, total / weight)
