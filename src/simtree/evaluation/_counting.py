"""Counts of all comparisons of labelled points, in one pass and bounded memory: blocks of pairs are scored, counted, forgotten.

A curve turns at the scores of same pairs only. So same pairs are scored first, and different pairs are then counted at and
between their scores: the curve is exact without a list of all scores. Of more than `MAX_CURVE_EDGES` distinct scores some are
left out; every count stays exact at the others. The equal error rate may lie between two of them, so different pairs are
counted at their own scores near it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import MAX_SQUARED
from simtree.evaluation._intervals import N_GROUPS, CurveTallies, PairTally, UnitDraws, curve_thresholds
from simtree.metrics import FloatArray, Roc, Searches, eer, roc_curve, threshold_at_fmr
from simtree.metrics._evidence import different_cost, min_cost, same_cost, separation, unit_of
from simtree.pairs._sampling import DifferentBlock, Index, IndexPairs, PairSource

# Different pairs scored at a time; up to how many their scores are kept until all are there; how many are drawn otherwise to
# choose the thresholds of intervals.
CHUNK, FEW, PILOT = 1 << 20, 1 << 22, 1 << 18
MAX_CURVE_EDGES = 1 << 17
# Distinct scores of different pairs near the equal error rate that are counted at.
EDGES_AT_EER = 1 << 14
N_BARS = 60
# Comparisons made unless more are asked for, and which share of them are same pairs at most.
MAX_COMPARISONS, SAME_SHARE = 5_000_000, 0.2

Codes = NDArray[np.int64]
Score = Callable[[Index, Index], FloatArray]


@dataclass(frozen=True)
class Histogram:
    """Counts of same and different pairs between edges of scores; scores beyond the ends count in the first and last bar.

    Parameters
    ----------
    edges : array of shape (n_bars + 1,)
    same, different : array of shape (n_bars,)
    """

    edges: FloatArray
    same: Codes
    different: Codes


@dataclass(frozen=True)
class Counted:
    """What all comparisons showed.

    Parameters
    ----------
    roc : Roc
        The curve, with thresholds.
    highest : float
        The highest score.
    tallies : CurveTallies
        Counts for intervals, at some thresholds.
    histogram : Histogram
        Bars of the scores.
    d_prime, cllr, min_cllr : float
        As in `simtree.metrics`; `cllr` reads scores as log-likelihood ratios.
    searches : Searches or None
        Each point searched among all others; None unless all comparisons were made.
    subgroups : list of CurveTallies
        The pairs within each subgroup.
    """

    roc: Roc
    highest: float
    tallies: CurveTallies
    histogram: Histogram
    d_prime: float
    cllr: float
    min_cllr: float
    searches: Searches | None
    subgroups: list[CurveTallies]


def count_comparisons(
    score: Score,
    source: PairSource,
    units: Codes,
    *,
    fmr: FloatArray,
    at: FloatArray,
    subgroups: Codes | None = None,
    n_bootstraps: int = 0,
    random_state: int = 0,
) -> Counted:
    """Score and count all pairs of labelled points, or given pairs.

    Parameters
    ----------
    score : callable
        Scores of pairs of rows.
    source : PairSource
        The pairs.
    units : array of shape (n_points,)
        The unit of each point, from 0: its identity, or itself.
    fmr, at : array
        Rates at whose thresholds intervals are wanted, and thresholds themselves.
    subgroups : array of shape (n_samples,), optional
        The subgroup of each sample, from 0; pairs within a subgroup are counted apart as well.
    n_bootstraps, random_state : int
        Draws of units for the bootstrap.

    Returns
    -------
    Counted
    """
    groups_of_pairs = source.disjoint_groups(units, N_GROUPS)
    units = units if groups_of_pairs is None else groups_of_pairs
    same, members = source.same_pairs(), source.members()
    same_scores = _finite(score(same.first, same.second))
    scored: Iterator[tuple[DifferentBlock, FloatArray]] = (
        (block, _scores_of(block, score)) for block in source.iter_different(units, CHUNK)
    )
    if members is not None and source.n_pairs - len(same) > FEW:
        drawn = source.sample(2 * PILOT, np.random.default_rng(random_state))
        pilot = _finite(score(drawn.first[~drawn.same], drawn.second[~drawn.same]))
    else:
        known = list(scored)
        pilot, scored = np.concatenate([scores[block.compared] for block, scores in known]), iter(known)
    n_units = int(units.max()) + 1
    draws = UnitDraws(n_units, n_bootstraps, random_state) if n_bootstraps else None
    rough = roc_curve(np.concatenate([same_scores, pilot]), np.arange(len(same_scores) + len(pilot)) < len(same_scores))
    # Intervals are wanted all along the curve, at given thresholds, and where these scores have the given rates.
    wanted = [threshold_at_fmr(rough, float(rate)) for rate in fmr]
    thresholds = curve_thresholds(same_scores, pilot, np.concatenate([at, wanted]))
    edges = np.union1d(_edges(same_scores), _nearest(np.unique(pilot), eer(rough).threshold))
    # Rounding among the smallest numbers there are could make edges fall.
    bars = np.maximum.accumulate(np.linspace(*_range(same_scores, pilot), N_BARS + 1))
    n_subgroups = 0 if subgroups is None else int(subgroups.max()) + 1
    tallies = [PairTally(thresholds, n_units, draws, independent=groups_of_pairs is not None) for _ in range(2)]
    of_same, of_different = (_Kind(edges, bars, tally, n_subgroups) for tally in tallies)
    search = None if members is None else _Search(*members, same, same_scores)

    # Placements: the share of the other kind that is on the right side of a score, ties counted one half.
    levels_of_same = of_same.levels(same_scores)
    n_same_at = np.bincount(levels_of_same, minlength=of_same.n_levels)
    above = 1.0 - (np.cumsum(n_same_at) - n_same_at / 2.0) / len(same_scores)
    for block, scores in scored:
        if search is not None:
            search.add(block, scores)
        rows, scores = (block.first[block.compared], block.second[block.compared]), scores[block.compared]
        of_different.add(*rows, scores, of_different.levels(scores), above, units, subgroups, different_cost(scores))
    n_different_at = of_different.counts
    below = (np.cumsum(n_different_at) - n_different_at / 2.0) / n_different_at.sum()
    of_same.add(same.first, same.second, same_scores, levels_of_same, below, units, subgroups, same_cost(same_scores))
    return Counted(
        roc=_curve(edges, of_same, of_different),
        highest=max(of_same.highest, of_different.highest),
        tallies=CurveTallies(of_same.tally, of_different.tally),
        histogram=Histogram(bars, of_same.in_bars, of_different.in_bars),
        d_prime=separation(*of_same.moments(), *of_different.moments()),
        cllr=(of_same.cost / of_same.n_pairs + of_different.cost / of_different.n_pairs) / 2,
        min_cllr=min_cost(of_same.counts, of_different.counts),
        searches=None if search is None else search.found(),
        subgroups=[CurveTallies(*both) for both in zip(of_same.subgroups, of_different.subgroups, strict=True)],
    )


class _Kind:
    """Counts of the pairs of one kind.

    Levels number the edges and the gaps between them: 2k is the gap below edge k, 2k + 1 the edge itself.
    """

    def __init__(
        self,
        edges: FloatArray,
        bars: FloatArray,
        tally: PairTally,
        n_subgroups: int,
    ) -> None:
        self._edges, self._bars, self.tally = edges, bars, tally
        self.subgroups = [tally.without_draws() for _ in range(n_subgroups)]
        self.n_levels = 2 * len(edges) + 1
        self.counts: Codes = np.zeros(self.n_levels, dtype=np.int64)
        self.in_bars: Codes = np.zeros(len(bars) - 1, dtype=np.int64)
        self.lowest, self.highest = np.inf, -np.inf
        self.cost = self._sum = self._squares = 0.0
        self._unit = unit_of(max(-float(bars[0]), float(bars[-1])))
        self._shift = float(bars[0] + bars[-1]) / 2  # near the mean, so that little is lost in the difference of squares

    @property
    def n_pairs(self) -> int:
        """How many pairs were counted."""
        return self.tally.n_pairs

    def levels(self, scores: FloatArray) -> Codes:
        """The level of each score."""
        k = np.searchsorted(self._edges, scores, side="left")
        on_edge = self._edges[np.minimum(k, len(self._edges) - 1)] == scores
        return np.asarray(2 * k + on_edge, dtype=np.int64)

    def add(
        self,
        first_rows: Index,
        second_rows: Index,
        scores: FloatArray,
        levels: Codes,
        placements: FloatArray,
        units: Codes,
        subgroups: Codes | None,
        cost: float,
    ) -> None:
        """Count pairs, all those of two units in one call; placements are given by level."""
        self.counts += np.bincount(levels, minlength=self.n_levels)
        self.in_bars += np.histogram(np.clip(scores, self._bars[0], self._bars[-1]), self._bars)[0]
        moved = (scores - self._shift) / self._unit
        self._sum += float(moved.sum())
        self._squares += float(moved @ moved)
        self.cost += cost
        self.lowest, self.highest = min(self.lowest, float(scores.min())), max(self.highest, float(scores.max()))
        first, second = units[first_rows], units[second_rows]
        self.tally.add(first, second, scores, placements[levels])
        if subgroups is not None:
            subgroup = subgroups[first_rows]
            within = subgroup == subgroups[second_rows]
            for number, tally in enumerate(self.subgroups):
                chosen = within & (subgroup == number)
                tally.add(first[chosen], second[chosen], scores[chosen])

    def moments(self) -> tuple[float, float]:
        """Mean and variance of the scores, in a common unit."""
        mean = self._sum / self.n_pairs
        return mean + self._shift / self._unit, max(self._squares / self.n_pairs - mean**2, 0.0)


class _Search:
    """Each point searched among all others; an identity is as alike as its best point."""

    def __init__(self, order: Index, starts: Codes, same: IndexPairs, same_scores: FloatArray) -> None:
        self._order, self._starts = order, starts
        self._mated = np.full(len(order), -np.inf)
        for rows in (same.first, same.second):
            np.maximum.at(self._mated, rows, same_scores)
        self._nonmated = np.full(len(order), -np.inf)
        self._n_ahead = np.zeros(len(order), dtype=np.int64)

    def add(self, block: DifferentBlock, scores: FloatArray) -> None:
        """Look at the scores of identities with all later ones."""
        done = 0
        for identity in block.identities:
            start, stop = self._starts[identity], self._starts[identity + 1]
            own, later = self._order[start:stop], self._order[stop:]
            table = scores[done : done + len(own) * len(later)].reshape(len(own), len(later))
            done += table.size
            best_of_later = np.maximum.reduceat(table, self._starts[identity + 1 : -1] - stop, axis=1)
            self._nonmated[own] = np.maximum(self._nonmated[own], best_of_later.max(axis=1))
            self._n_ahead[own] += np.count_nonzero(best_of_later >= self._mated[own, None], axis=1)
            best_of_own = table.max(axis=0)
            self._nonmated[later] = np.maximum(self._nonmated[later], best_of_own)
            self._n_ahead[later] += best_of_own >= self._mated[later]

    def found(self) -> Searches:
        """Best scores and ranks."""
        return Searches(self._mated, self._nonmated, np.where(np.isfinite(self._mated), 1 + self._n_ahead, 0))


def _scores_of(block: DifferentBlock, score: Score) -> FloatArray:
    """Return the scores of the pairs of a block; those that do not count are below all others."""
    scores = _finite(score(block.first, block.second))
    if block.compared is not ...:
        scores[~block.compared] = -np.inf
    return scores


def _finite(scores: FloatArray) -> FloatArray:
    unusable = np.count_nonzero(~np.isfinite(scores))
    if unusable:
        raise ValueError(f"scores must be finite, got {unusable} NaN or infinite of {scores.size}: drop or replace them.")
    if scores.size and not np.abs(scores).max() <= MAX_SQUARED:
        raise ValueError(
            f"scores must lie within {MAX_SQUARED:g}, got {scores[np.abs(scores).argmax()]:g}: "
            "divide them, or X, by a large number."
        )
    return scores


def _edges(same_scores: FloatArray) -> FloatArray:
    """Distinct scores in increasing order; if they are too many, evenly thinned, but never where they are highest."""
    distinct = np.unique(same_scores)
    if len(distinct) <= MAX_CURVE_EDGES:
        return distinct
    n_top = MAX_CURVE_EDGES // 2
    places = np.linspace(0, len(distinct) - n_top - 1, MAX_CURVE_EDGES - n_top).astype(np.int64)
    return np.concatenate([distinct[places], distinct[-n_top:]])


def _nearest(distinct: FloatArray, threshold: float) -> FloatArray:
    """Those of increasing scores that are next to a threshold."""
    place = int(np.searchsorted(distinct, threshold))
    return distinct[max(place - EDGES_AT_EER // 2, 0) : place + EDGES_AT_EER // 2]


def _range(same_scores: FloatArray, pilot: FloatArray) -> tuple[float, float]:
    low, high = float(min(same_scores.min(), pilot.min())), float(max(same_scores.max(), pilot.max()))
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _curve(edges: FloatArray, same: _Kind, different: _Kind) -> Roc:
    """The curve through all levels where a pair was seen, each at the lowest threshold that keeps to it."""
    lowest = min(same.lowest, different.lowest)
    thresholds = np.empty(2 * len(edges) + 1)
    thresholds[1::2] = edges
    thresholds[2::2] = np.nextafter(edges, np.inf)
    thresholds[0] = lowest
    seen = np.flatnonzero(same.counts + different.counts)[::-1]
    fpr, tpr = (np.append(0, np.cumsum(kind.counts[seen])) / kind.n_pairs for kind in (different, same))
    return Roc(fpr, tpr, np.append(np.inf, thresholds[seen]))
