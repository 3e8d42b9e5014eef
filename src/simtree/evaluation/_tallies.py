"""Counts of pairs at thresholds, with the sums over units from which variances are computed.

Pairs are counted for each pair of *units*. The units are what is independent: identities, or single samples if the identities
are fixed (such as ten digits). All pairs of a unit are correlated, so the variance of a metric depends on the number of units,
not of pairs. `PairTally` keeps sums over pairs of units of the counts at some thresholds, and never the pairs themselves.

Let r be the residual of a pair of units (its accepted pairs minus the rate times its pairs) and D the sum of r over all pairs
of a unit. The variance of a rate is ``c * (sum D^2 - 2 sum r^2) + sum r^2`` divided by the squared number of pairs: the first
term is the variance that pairs share through their units, and the second is specific to each pair of units. c corrects for the
estimated mean. Sessions that samples share add the variance between sessions (two-way clusters, Cameron, Gelbach and Miller
2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.metrics import FloatArray


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
        apart = _chosen(first != second)
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

    def rates(self, place: int) -> FloatArray:
        """Return the rate of accepted pairs of each cluster at a threshold; NaN without pairs."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self._at_level[:, : place + 1].sum(axis=1) / self._weight)

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
        within, apart = low == high, low != high
        self.n_unit_pairs += len(scores) if self.independent else len(np.unique(cells[within]))
        if apart.any():
            kept = _chosen(apart)
            chosen = [None if array is None else array[kept] for array in (weights, placed)]
            self._add_cells(cells[kept], level[kept], *chosen)

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
        keys = cells * (len(self.thresholds) + 1) + level
        order = np.argsort(keys.astype(np.int32) if keys.max() <= np.iinfo(np.int32).max else keys)  # small numbers sort faster
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

    @property
    def crossed(self) -> bool:
        """Whether there are pairs of two different units."""
        return bool(self._crossed[-1] > 0.0)

    @property
    def n_active(self) -> int:
        """Number of units that have pairs."""
        return int(np.count_nonzero(self.by_unit.weights))


def _chosen(mask: NDArray[np.bool_]) -> Any:
    """Return an index of the chosen pairs, which copies nothing if these are all."""
    return slice(None) if mask.all() else mask


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
