"""Counts of all comparisons of labelled points, in one pass and bounded memory: blocks of pairs are scored, counted, forgotten.

A curve turns at the scores of same pairs only. So same pairs are scored first, and different pairs are then counted at and
between their scores: the curve is exact without a list of all scores. Of more than `MOST_EDGES` distinct scores some are left
out; every count stays exact at the others. The equal error rate may lie between two of them, so different pairs are counted at
their own scores near it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import EllipsisType

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import check_integer
from simtree.evaluation._intervals import CurveTallies, PairTally, UnitDraws, curve_thresholds, grouped_units
from simtree.metrics import FloatArray, Roc, Searches, eer, roc_curve, threshold_at_fmr
from simtree.metrics._evidence import different_cost, min_cost, same_cost, separation
from simtree.pairs._inputs import Index
from simtree.pairs._sampling import IndexPairs, PairSampler

# Different pairs scored at a time; up to how many their scores are kept until all are there; how many are drawn otherwise to
# choose the thresholds of intervals.
CHUNK, FEW, PILOT = 1 << 20, 1 << 22, 1 << 18
MOST_EDGES = 1 << 17
# Distinct scores of different pairs near the equal error rate that are counted at.
EDGES_AT_EER = 1 << 14
N_BARS = 60
# Comparisons made unless more are asked for, and which share of them are same pairs at most.
MOST_PAIRS, MOST_SAME = 5_000_000, 0.2

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
    groups : list of CurveTallies
        The pairs within each group.
    """

    roc: Roc
    highest: float
    tallies: CurveTallies
    histogram: Histogram
    d_prime: float
    cllr: float
    min_cllr: float
    searches: Searches | None
    groups: list[CurveTallies]


def at_most(source: PairSampler, n_pairs: int | None, random_state: int) -> PairSampler | IndexPairs:
    """All pairs, or that many drawn if there are more; None means all."""
    if n_pairs is None or source.n_pairs <= check_integer("n_pairs", n_pairs, 2):
        return source
    return source.draw(n_pairs, np.random.default_rng(random_state), positive_fraction=MOST_SAME)


def count_comparisons(
    score: Score,
    source: PairSampler | IndexPairs,
    units: Codes,
    *,
    fmr: FloatArray,
    at: FloatArray,
    groups: Codes | None = None,
    n_draws: int = 0,
    random_state: int = 0,
) -> Counted:
    """Score and count all pairs of labelled points, or given pairs.

    Parameters
    ----------
    score : callable
        Scores of pairs of rows.
    source : PairSampler or IndexPairs
        Whose pairs.
    units : array of shape (n_points,)
        The unit of each point, from 0: its identity, or itself.
    fmr, at : array
        Rates at whose thresholds intervals are wanted, and thresholds themselves.
    groups : array of shape (n_points,), optional
        The group of each point, from 0; pairs within a group are counted apart as well.
    n_draws, random_state : int
        Draws of units for the bootstrap.

    Returns
    -------
    Counted
    """
    grouped = grouped_units(units[source.first], units[source.second]) if isinstance(source, IndexPairs) else None
    if isinstance(source, IndexPairs) and grouped is not None:
        units = np.zeros_like(units)
        units[source.first] = units[source.second] = grouped
    same, chunks = _split(source, units)
    same_scores = _finite(score(same.first, same.second))
    scored: Iterator[tuple[_Chunk, FloatArray]] = ((chunk, _scores_of(chunk, score)) for chunk in chunks)
    if isinstance(source, PairSampler) and source.n_different_pairs > FEW:
        drawn = source.draw(2 * PILOT, np.random.default_rng(random_state))
        pilot = _finite(score(drawn.first[~drawn.same], drawn.second[~drawn.same]))
    else:
        known = list(scored)
        pilot, scored = np.concatenate([scores[chunk.compared] for chunk, scores in known]), iter(known)
    n_units = int(units.max()) + 1
    draws = UnitDraws(n_units, n_draws, random_state) if n_draws else None
    rough = roc_curve(np.concatenate([same_scores, pilot]), np.arange(len(same_scores) + len(pilot)) < len(same_scores))
    # Intervals are wanted all along the curve, at given thresholds, and where these scores have the given rates.
    wanted = [threshold_at_fmr(rough, float(rate)) for rate in fmr]
    thresholds = curve_thresholds(same_scores, pilot, np.concatenate([at, wanted]))
    edges = np.union1d(_edges(same_scores), _nearest(np.unique(pilot), eer(rough).threshold))
    bars = np.linspace(*_range(same_scores, pilot), N_BARS + 1)
    n_groups = 0 if groups is None else int(groups.max()) + 1
    tallies = [PairTally(thresholds, n_units, draws, independent=grouped is not None) for _ in range(2)]
    of_same, of_different = (_Kind(edges, bars, tally, n_groups) for tally in tallies)
    search = _Search(source, same, same_scores) if isinstance(source, PairSampler) else None

    # Placements: the share of the other kind that is on the right side of a score, ties counted one half.
    levels_of_same = of_same.levels(same_scores)
    n_same_at = np.bincount(levels_of_same, minlength=of_same.n_levels)
    above = 1.0 - (np.cumsum(n_same_at) - n_same_at / 2.0) / len(same_scores)
    for chunk, scores in scored:
        if search is not None:
            search.add(chunk, scores)
        scores = scores[chunk.compared]
        of_different.add(chunk.take(), scores, of_different.levels(scores), above, units, groups, different_cost(scores))
    n_different_at = of_different.counts
    below = (np.cumsum(n_different_at) - n_different_at / 2.0) / n_different_at.sum()
    of_same.add(_Chunk(same.first, same.second), same_scores, levels_of_same, below, units, groups, same_cost(same_scores))
    return Counted(
        roc=_curve(edges, of_same, of_different),
        highest=max(of_same.highest, of_different.highest),
        tallies=CurveTallies(of_same.tally, of_different.tally),
        histogram=Histogram(bars, of_same.in_bars, of_different.in_bars),
        d_prime=separation(*of_same.moments(), *of_different.moments()),
        cllr=(of_same.cost / of_same.n_pairs + of_different.cost / of_different.n_pairs) / 2,
        min_cllr=min_cost(of_same.counts, of_different.counts),
        searches=None if search is None else search.found(),
        groups=[CurveTallies(*both) for both in zip(of_same.groups, of_different.groups, strict=True)],
    )


@dataclass(frozen=True)
class _Chunk:
    """Pairs to be scored together; of all pairs, those of the points of some identities with the points of later ones.

    Only the ``compared`` ones count: others are there to keep the pairs of two identities a rectangle.
    """

    first: Index
    second: Index
    identities: range = range(0)
    compared: NDArray[np.bool_] | EllipsisType = ...

    def take(self) -> _Chunk:
        """The pairs that count."""
        return _Chunk(self.first[self.compared], self.second[self.compared])


class _Kind:
    """Counts of the pairs of one kind.

    Levels number the edges and the gaps between them: 2k is the gap below edge k, 2k + 1 the edge itself.
    """

    def __init__(
        self,
        edges: FloatArray,
        bars: FloatArray,
        tally: PairTally,
        n_groups: int,
    ) -> None:
        self._edges, self._bars, self.tally = edges, bars, tally
        self.groups = [tally.without_draws() for _ in range(n_groups)]
        self.n_levels = 2 * len(edges) + 1
        self.counts: Codes = np.zeros(self.n_levels, dtype=np.int64)
        self.in_bars: Codes = np.zeros(len(bars) - 1, dtype=np.int64)
        self.lowest, self.highest = np.inf, -np.inf
        self.cost = self._sum = self._squares = 0.0
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
        pairs: _Chunk,
        scores: FloatArray,
        levels: Codes,
        placements: FloatArray,
        units: Codes,
        groups: Codes | None,
        cost: float,
    ) -> None:
        """Count pairs, all those of two units in one call; placements are given by level."""
        self.counts += np.bincount(levels, minlength=self.n_levels)
        self.in_bars += np.histogram(np.clip(scores, self._bars[0], self._bars[-1]), self._bars)[0]
        moved = scores - self._shift
        self._sum += float(moved.sum())
        self._squares += float(moved @ moved)
        self.cost += cost
        self.lowest, self.highest = min(self.lowest, float(scores.min())), max(self.highest, float(scores.max()))
        first, second = units[pairs.first], units[pairs.second]
        self.tally.add(first, second, scores, placements[levels])
        if groups is not None:
            group = groups[pairs.first]
            within = group == groups[pairs.second]
            for number, tally in enumerate(self.groups):
                chosen = within & (group == number)
                tally.add(first[chosen], second[chosen], scores[chosen])

    def moments(self) -> tuple[float, float]:
        """Mean and variance of the scores."""
        mean = self._sum / self.n_pairs
        return mean + self._shift, max(self._squares / self.n_pairs - mean**2, 0.0)


class _Search:
    """Each point searched among all others; an identity is as alike as its best point."""

    def __init__(self, pairs: PairSampler, same: IndexPairs, same_scores: FloatArray) -> None:
        self._order, self._starts = pairs.members()
        self._mated = np.full(pairs.n_points, -np.inf)
        for rows in (same.first, same.second):
            np.maximum.at(self._mated, rows, same_scores)
        self._nonmated = np.full(pairs.n_points, -np.inf)
        self._n_ahead = np.zeros(pairs.n_points, dtype=np.int64)

    def add(self, chunk: _Chunk, scores: FloatArray) -> None:
        """Look at the scores of identities with all later ones."""
        done = 0
        for identity in chunk.identities:
            start, stop = self._starts[identity], self._starts[identity + 1]
            own, later = self._order[start:stop], self._order[stop:]
            block = scores[done : done + len(own) * len(later)].reshape(len(own), len(later))
            done += block.size
            best_of_later = np.maximum.reduceat(block, self._starts[identity + 1 : -1] - stop, axis=1)
            self._nonmated[own] = np.maximum(self._nonmated[own], best_of_later.max(axis=1))
            self._n_ahead[own] += np.count_nonzero(best_of_later >= self._mated[own, None], axis=1)
            best_of_own = block.max(axis=0)
            self._nonmated[later] = np.maximum(self._nonmated[later], best_of_own)
            self._n_ahead[later] += best_of_own >= self._mated[later]

    def found(self) -> Searches:
        """Best scores and ranks."""
        return Searches(self._mated, self._nonmated, np.where(np.isfinite(self._mated), 1 + self._n_ahead, 0))


def _split(source: PairSampler | IndexPairs, units: Codes) -> tuple[IndexPairs, Iterator[_Chunk]]:
    """Same pairs, and chunks of different pairs; all pairs of two units are in one chunk."""
    if isinstance(source, PairSampler):
        return source.same_pairs(), _identity_chunks(source)
    return source.take(source.same), _list_chunks(source.take(~source.same), units)


def _identity_chunks(pairs: PairSampler) -> Iterator[_Chunk]:
    order, starts = pairs.members()
    n_identities = len(starts) - 1
    sizes = np.diff(starts) * (starts[-1] - starts[1:])
    begin = 0
    while begin < n_identities - 1:
        end = begin + max(1, int(np.searchsorted(np.cumsum(sizes[begin:]), CHUNK, side="right")))
        end = min(end, n_identities - 1)
        parts = []
        for identity in range(begin, end):
            own, later = order[starts[identity] : starts[identity + 1]], order[starts[identity + 1] :]
            parts.append((np.repeat(own, len(later)), np.tile(later, len(own))))
        first, second = (np.concatenate(column) for column in zip(*parts, strict=True))
        compared = pairs.allowed(first, second)
        if compared is None or compared.any():
            yield _Chunk(first, second, range(begin, end), ... if compared is None else compared)
        begin = end


def _list_chunks(pairs: IndexPairs, units: Codes) -> Iterator[_Chunk]:
    u, v = units[pairs.first], units[pairs.second]
    codes = np.minimum(u, v) * (int(units.max()) + 1) + np.maximum(u, v)
    order = np.argsort(codes, kind="stable")
    starts = np.append(np.flatnonzero(np.diff(codes[order], prepend=-1)), len(order))
    begin = 0
    while begin < len(starts) - 1:
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + CHUNK, side="right")) - 1)
        rows = order[starts[begin] : starts[end]]
        yield _Chunk(pairs.first[rows], pairs.second[rows])
        begin = end


def _scores_of(chunk: _Chunk, score: Score) -> FloatArray:
    """Scores of the pairs of a chunk; those that do not count are below all others."""
    scores = _finite(score(chunk.first, chunk.second))
    if chunk.compared is not ...:
        scores[~chunk.compared] = -np.inf
    return scores


def _finite(scores: FloatArray) -> FloatArray:
    unusable = np.count_nonzero(~np.isfinite(scores))
    if unusable:
        raise ValueError(f"scores must be finite, got {unusable} NaN or infinite of {scores.size}: drop or replace them.")
    return scores


def _edges(same_scores: FloatArray) -> FloatArray:
    """Distinct scores in increasing order; if they are too many, evenly thinned, but never where they are highest."""
    distinct = np.unique(same_scores)
    if len(distinct) <= MOST_EDGES:
        return distinct
    n_top = MOST_EDGES // 2
    places = np.linspace(0, len(distinct) - n_top - 1, MOST_EDGES - n_top).astype(np.int64)
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
