"""Counting of all comparisons of labelled samples in one pass and bounded memory: pairs are scored and counted in blocks.

The true positive rate changes only at the scores of same pairs. So same pairs are scored first, and different pairs are then
counted at and between their scores: the curve is exact without a list of all scores. If there are more than `MAX_CURVE_EDGES`
distinct scores, some are left out; every count stays exact at the others. The equal error rate may lie between two of them, so
near it different pairs are counted at their own scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import MAX_SQUARED
from simtree.evaluation._intervals import N_GROUPS, CurveTallies, curve_thresholds
from simtree.evaluation._search_rates import SearchRates
from simtree.evaluation._searching import ProbeCounts, SearchCounts
from simtree.evaluation._tallies import PairTally
from simtree.metrics import FloatArray, Roc, eer, roc_curve, threshold_at_fmr
from simtree.metrics._likelihood_ratio import different_cost, min_cost, same_cost, separation, unit_of
from simtree.pairs._sources import DifferentBlock, Index, PairSource

# Number of different pairs per block; maximum number of different pairs whose scores are all kept; number of pairs sampled
# beforehand if there are more, to choose the thresholds of the intervals.
BLOCK_SIZE, MAX_KEPT_SCORES, N_PILOT = 1 << 20, 1 << 22, 1 << 18
MAX_CURVE_EDGES = 1 << 17
# Number of distinct scores of different pairs near the equal error rate at which pairs are counted.
EDGES_AT_EER = 1 << 14
N_BINS = 60
# Default number of comparisons, and maximum proportion of same pairs among them.
MAX_COMPARISONS, SAME_SHARE = 5_000_000, 0.2

Codes = NDArray[np.int64]
Score = Callable[[Index, Index], FloatArray]


@dataclass(frozen=True)
class Histogram:
    """Histogram of the scores of same and different pairs; scores beyond the edges count in the first or last bin.

    Parameters
    ----------
    edges : array of shape (n_bins + 1,)
        Edges of the bins.
    same, different : array of shape (n_bins,)
        Numbers of pairs in each bin.
    """

    edges: FloatArray
    same: Codes
    different: Codes


@dataclass(frozen=True)
class Counted:
    """Results of counting all comparisons.

    Parameters
    ----------
    roc : Roc
        ROC curve, with thresholds.
    highest : float
        Highest score.
    tallies : CurveTallies
        Counts at some thresholds, for the intervals.
    histogram : Histogram
        Histogram of the scores.
    d_prime, cllr, min_cllr : float
        As in `simtree.metrics`; `cllr` takes scores as log-likelihood ratios.
    searches : SearchRates or None
        Result of searching each sample among all others, or probes among enrolled identities; None unless all comparisons were
        made.
    subgroups : list of CurveTallies
        Counts of the pairs within each subgroup.
    """

    roc: Roc
    highest: float
    tallies: CurveTallies
    histogram: Histogram
    d_prime: float
    cllr: float
    min_cllr: float
    searches: SearchRates | None
    subgroups: list[CurveTallies]


def count_comparisons(
    score: Score,
    source: PairSource,
    units: Codes,
    *,
    fpr: FloatArray,
    at: FloatArray,
    subgroups: Codes | None = None,
    identities: Codes | None = None,
    sessions: Codes | None = None,
    probes: ProbeCounts | None = None,
    random_state: int = 0,
) -> Counted:
    """Score and count all pairs of labelled samples, or given pairs.

    Parameters
    ----------
    score : callable
        Function from two arrays of row numbers to the scores of the pairs.
    source : PairSource
        The pairs.
    units : array of shape (n_samples,)
        Independent unit of each sample, numbered from 0: its identity, or the sample itself.
    fpr : array
        False positive rates at whose thresholds intervals are computed.
    at : array
        Further thresholds at which intervals are computed.
    subgroups : array of shape (n_samples,), optional
        Subgroup of each sample, numbered from 0; pairs within a subgroup are also counted separately.
    identities : array of shape (n_samples,), optional
        Identity of each sample: all pairs of two identities then have the weight of one pair, and so have the same pairs of an
        identity. By default every pair counts once.
    sessions : array of shape (n_samples,), optional
        Session of each sample, numbered from 0, whose effect its samples share.
    probes : ProbeCounts, optional
        Searches of probes, if the pairs are all comparisons of probes with enrolled identities.
    random_state : int, default=0
        Random seed of the sample of pairs from which thresholds are chosen.

    Returns
    -------
    Counted
        The counts, and the metrics that follow from them.
    """
    groups_of_pairs = source.disjoint_groups(units, N_GROUPS)
    units = units if groups_of_pairs is None else groups_of_pairs
    same, members = source.same_pairs(), source.members()
    same_scores = check_finite(score(same.first, same.second))
    pilot, scored = score_different(score, source, units if identities is None else identities, random_state)
    n_units = int(units.max()) + 1
    rough = roc_curve(np.concatenate([same_scores, pilot]), np.arange(len(same_scores) + len(pilot)) < len(same_scores))
    # Intervals are computed along the entire curve, at the given thresholds, and where these scores have the given rates.
    at_rates = [threshold_at_fmr(rough, float(rate)) for rate in fpr]
    thresholds = curve_thresholds(same_scores, pilot, np.concatenate([at, at_rates]))
    edges = np.union1d(_edges(same_scores), _nearest(np.unique(pilot), eer(rough).threshold))
    # Rounding among the smallest numbers there are could make edges decrease.
    bins = np.maximum.accumulate(np.linspace(*_range(same_scores, pilot), N_BINS + 1))
    n_subgroups = 0 if subgroups is None else int(subgroups.max()) + 1
    rows = _Rows(units, subgroups, sessions, identities)
    of_same, of_different = (
        _PairCounts(
            edges,
            bins,
            PairTally(
                thresholds,
                n_units,
                independent=groups_of_pairs is not None,
                n_sessions=rows.n_sessions,
                n_parts=rows.n_parts,
            ),
            n_subgroups,
        )
        for _ in range(2)
    )
    search: ProbeCounts | SearchCounts | None = probes
    if probes is not None:
        probes.add_mated(same, same_scores)
    elif members is not None:
        by_sample = len(np.unique(units)) == len(units)
        search = SearchCounts(*members, same, same_scores, by_sample=by_sample, by_identity=identities is not None)

    # Placement of a same (different) pair: the proportion of different (same) pairs below (above) its score, ties counted half.
    levels_of_same = of_same.levels(same_scores)
    same_weights = rows.weights(same.first, same.second)
    n_same_at = np.bincount(levels_of_same, same_weights, minlength=of_same.n_levels)
    above = 1.0 - (np.cumsum(n_same_at) - n_same_at / 2.0) / n_same_at.sum()
    for block, scores in scored:
        if search is not None:
            search.add(block, scores)
        first, second, scores = block.first[block.compared], block.second[block.compared], scores[block.compared]
        weights = rows.weights(first, second)
        cost = different_cost(scores, weights)
        of_different.add(first, second, scores, of_different.levels(scores), above, rows, weights, cost)
    n_different_at = of_different.counts
    below = (np.cumsum(n_different_at) - n_different_at / 2.0) / n_different_at.sum()
    cost = same_cost(same_scores, same_weights)
    of_same.add(same.first, same.second, same_scores, levels_of_same, below, rows, same_weights, cost)
    return Counted(
        roc=_curve(edges, of_same, of_different),
        highest=max(of_same.highest, of_different.highest),
        tallies=CurveTallies(of_same.tally, of_different.tally),
        histogram=Histogram(bins, of_same.in_bins, of_different.in_bins),
        d_prime=separation(*of_same.moments(), *of_different.moments()),
        cllr=(of_same.cost / of_same.weight + of_different.cost / of_different.weight) / 2,
        min_cllr=min_cost(of_same.counts, of_different.counts),
        searches=search,
        subgroups=[CurveTallies(*both) for both in zip(of_same.subgroups, of_different.subgroups, strict=True)],
    )


class _Rows:
    """What is known of each row: its unit, subgroup, session and identity, and its part of a unit within a session."""

    def __init__(self, units: Codes, subgroups: Codes | None, sessions: Codes | None, identities: Codes | None) -> None:
        self.units, self.subgroups, self.sessions, self.identities = units, subgroups, sessions, identities
        self.parts: Codes | None = None
        self.n_sessions = self.n_parts = 0
        if sessions is not None:
            self.n_sessions = int(sessions.max()) + 1
            found, self.parts = np.unique(units * self.n_sessions + sessions, return_inverse=True)
            self.n_parts = len(found)

    def weights(self, first: Index, second: Index) -> FloatArray | None:
        """Return weights that give each pair of identities the same weight; None if every pair counts once."""
        if self.identities is None:
            return None
        u, v = self.identities[first], self.identities[second]
        cells = np.minimum(u, v) * (int(self.identities.max()) + 1) + np.maximum(u, v)
        _, where, sizes = np.unique(cells, return_inverse=True, return_counts=True)
        return np.asarray(1.0 / sizes[where])


class _PairCounts:
    """Counts of the same pairs, or of the different pairs.

    Levels number the edges and the gaps between them: level 2k is the gap below edge k, and level 2k + 1 is edge k itself.
    """

    def __init__(
        self,
        edges: FloatArray,
        bins: FloatArray,
        tally: PairTally,
        n_subgroups: int,
    ) -> None:
        self._edges, self._bins, self.tally = edges, bins, tally
        self.subgroups = [tally.like() for _ in range(n_subgroups)]
        self.n_levels = 2 * len(edges) + 1
        self.counts: FloatArray = np.zeros(self.n_levels)
        self.in_bins: Codes = np.zeros(len(bins) - 1, dtype=np.int64)
        self.lowest, self.highest = np.inf, -np.inf
        self.weight = self.cost = self._sum = self._squares = 0.0
        self._unit = unit_of(max(-float(bins[0]), float(bins[-1])))
        self._shift = float(bins[0] + bins[-1]) / 2  # near the mean, to avoid cancellation in the variance

    def levels(self, scores: FloatArray) -> Codes:
        """Return the level of each score."""
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
        rows: _Rows,
        weights: FloatArray | None,
        cost: float,
    ) -> None:
        """Count pairs; all pairs of two units must come in one call. Placements are given per level."""
        self.counts += np.bincount(levels, weights, minlength=self.n_levels)
        self.in_bins += np.histogram(np.clip(scores, self._bins[0], self._bins[-1]), self._bins)[0]
        shifted = (scores - self._shift) / self._unit
        weighted = shifted if weights is None else weights * shifted
        self.weight += len(scores) if weights is None else float(weights.sum())
        self._sum += float(weighted.sum())
        self._squares += float(weighted @ shifted)
        self.cost += cost
        self.lowest, self.highest = min(self.lowest, float(scores.min())), max(self.highest, float(scores.max()))
        first, second = rows.units[first_rows], rows.units[second_rows]
        sessions, parts = (
            None if codes is None else (codes[first_rows], codes[second_rows]) for codes in (rows.sessions, rows.parts)
        )
        self.tally.add(first, second, scores, placements[levels], weights=weights, sessions=sessions, parts=parts)
        if rows.subgroups is not None:
            subgroup = rows.subgroups[first_rows]
            within = subgroup == rows.subgroups[second_rows]
            for number, tally in enumerate(self.subgroups):
                chosen = within & (subgroup == number)
                tally.add(first[chosen], second[chosen], scores[chosen], weights=None if weights is None else weights[chosen])

    def moments(self) -> tuple[float, float]:
        """Return the mean and the variance of the scores, in a common unit."""
        mean = self._sum / self.weight
        return mean + self._shift / self._unit, max(self._squares / self.weight - mean**2, 0.0)


def score_different(
    score: Score, source: PairSource, units: Codes, random_state: int = 0
) -> tuple[FloatArray, Iterator[tuple[DifferentBlock, FloatArray]]]:
    """Return the scores of all different pairs, or of a sample if there are many, and all pairs with their scores in blocks.

    Parameters
    ----------
    score : callable
        Function from two arrays of row numbers to the scores of the pairs.
    source : PairSource
        The pairs.
    units : array of shape (n_samples,)
        Unit of each sample; all pairs of two units are in one block.
    random_state : int, default=0
        Random seed of the sample.

    Returns
    -------
    pilot : array
        Scores of all different pairs, or of a sample of them.
    scored : iterator
        Blocks of pairs, with -inf as the score of pairs that are not compared.
    """
    scored = _score_blocks(score, source, source.iter_different(units, BLOCK_SIZE))
    if source.members() is not None and source.n_pairs > MAX_KEPT_SCORES:
        drawn = source.sample(2 * N_PILOT, np.random.default_rng(random_state))
        return check_finite(score(drawn.first[~drawn.same], drawn.second[~drawn.same])), scored
    known = list(scored)
    return np.concatenate([scores[block.compared] for block, scores in known]), iter(known)


def _score_blocks(
    score: Score, source: PairSource, blocks: Iterator[DifferentBlock]
) -> Iterator[tuple[DifferentBlock, FloatArray]]:
    """Yield blocks of pairs with their scores, -inf for pairs that are not compared.

    A scoring function with a method ``over`` scores several blocks at a time, on a cluster.
    """
    over = getattr(score, "over", None)
    scored = ((block, score(block.first, block.second)) for block in blocks) if over is None else over(source, blocks)
    for block, scores in scored:
        check_finite(scores)
        if block.compared is not ...:
            scores[~block.compared] = -np.inf
        yield block, scores


def check_finite(scores: FloatArray) -> FloatArray:
    """Return scores after checking that they are finite and that their squares are, too."""
    unusable = np.count_nonzero(~np.isfinite(scores))
    if unusable:
        raise ValueError(f"scores must be finite, got {unusable} NaN or infinite of {scores.size}; drop or replace them.")
    if scores.size and not np.abs(scores).max() <= MAX_SQUARED:
        raise ValueError(
            f"scores must lie within {MAX_SQUARED:g}, got {scores[np.abs(scores).argmax()]:g}: "
            "divide them, or X, by a large number."
        )
    return scores


def _edges(same_scores: FloatArray) -> FloatArray:
    """Return distinct scores in increasing order; if there are too many, thin them out evenly, except for the highest ones."""
    distinct = np.unique(same_scores)
    if len(distinct) <= MAX_CURVE_EDGES:
        return distinct
    n_top = MAX_CURVE_EDGES // 2
    places = np.linspace(0, len(distinct) - n_top - 1, MAX_CURVE_EDGES - n_top).astype(np.int64)
    return np.concatenate([distinct[places], distinct[-n_top:]])


def _nearest(distinct: FloatArray, threshold: float) -> FloatArray:
    """Return the scores nearest to a threshold, from distinct scores in increasing order."""
    place = int(np.searchsorted(distinct, threshold))
    return distinct[max(place - EDGES_AT_EER // 2, 0) : place + EDGES_AT_EER // 2]


def _range(same_scores: FloatArray, pilot: FloatArray) -> tuple[float, float]:
    low, high = float(min(same_scores.min(), pilot.min())), float(max(same_scores.max(), pilot.max()))
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _curve(edges: FloatArray, same: _PairCounts, different: _PairCounts) -> Roc:
    """Return the curve through all levels that have pairs, each with the lowest threshold that accepts exactly its pairs."""
    lowest = min(same.lowest, different.lowest)
    thresholds = np.empty(2 * len(edges) + 1)
    thresholds[1::2] = edges
    thresholds[2::2] = np.nextafter(edges, np.inf)
    thresholds[0] = lowest
    seen = np.flatnonzero(same.counts + different.counts)[::-1]
    fpr, tpr = (np.append(0.0, np.cumsum(pairs.counts[seen])) for pairs in (different, same))
    return Roc(fpr / fpr[-1], tpr / tpr[-1], np.append(np.inf, thresholds[seen]))
