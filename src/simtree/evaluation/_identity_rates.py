"""False positive rates of different pairs, counted per pair of identities at some thresholds.

A guarantee is for new identities, so what is counted is the pair of *identities*: the share of its pairs of samples that are
accepted. Blocks of scored pairs are added one after the other, and no list of scores is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from simtree.evaluation._counting import Score, score_different
from simtree.metrics import FloatArray
from simtree.pairs._sources import Index, PairSource

WEIGHTINGS = ("identities", "samples")
# Maximum number of pairs of identities whose shares are kept for resampling. Of larger data, identities are drawn.
MAX_KEPT = 1 << 20
# Highest rate at which the inequality of identities is learned.
MAX_RATE = 0.5
# Multiples of the target FPR, in the scores that thresholds are chosen from, at which thresholds are tried.
TRIED = np.geomspace(5e-4, 20.0, 400)
# Maximum number of distinct scores whose ties are broken.
MAX_TIED = 10_000

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Resampler:
    """Pairs of cells at some levels, from which identities (and sessions) are resampled.

    A cell is an identity, or the samples of an identity in one session.

    Parameters
    ----------
    first, second : ndarray of shape (n_cell_pairs,)
        The two cells of each pair of cells, as integers from 0.
    table : sparse array of shape (n_cell_pairs, n_thresholds + 1)
        Weight of the pairs of each pair of cells by the first of some decreasing thresholds that accepts them; the last column
        has those that none accepts.
    levels, low_levels : ndarray of int
        The thresholds at which accepted, and rejected, pairs are counted, as columns.
    factors : list of ndarray of shape (n_cells,)
        Number of the identity of each cell, and of its session if there are sessions.
    """

    first: Codes
    second: Codes
    table: sparse.csc_array
    levels: Codes
    low_levels: Codes
    factors: list[Codes]

    @cached_property
    def compared(self) -> FloatArray:
        """Weight of all pairs of each pair of cells."""
        return np.asarray(self.table.sum(axis=1))

    def rates(self, *, low: bool = False) -> FloatArray:
        """Return the rate of accepted pairs at each level, or of rejected pairs at each low level."""
        rates = np.cumsum(self.table.sum(axis=0)) / self.compared.sum()
        return np.asarray(1.0 - rates[self.low_levels] if low else rates[self.levels])

    def _counted(self, level: int, low: bool) -> tuple[Codes, FloatArray]:
        """Return the pairs of cells that have accepted, or rejected, pairs at a level, repeatedly, and the weight of these."""
        border = self.table.indptr[(self.low_levels if low else self.levels)[level] + 1]
        chosen = slice(border, None) if low else slice(border)
        return self.table.indices[chosen], self.table.data[chosen]

    @lru_cache(maxsize=64)  # noqa: B019, a resampler lives as long as one choice of a threshold
    def _by_cells(self, level: int, low: bool) -> sparse.csr_array:
        """Return the weight of accepted, or rejected, pairs at a level as a table of first and second cells."""
        return self._as_table(*self._counted(level, low))

    def _as_table(self, pairs: Codes, values: FloatArray) -> sparse.csr_array:
        """Return values of pairs of cells as a table of first and second cells."""
        n_cells = len(self.factors[0])
        return sparse.csr_array((values, (self.first[pairs], self.second[pairs])), shape=(n_cells, n_cells))

    def unit_rates(self, level: int) -> list[FloatArray]:
        """Return the rate of accepted pairs of each identity, and of each session, at a level."""
        pairs, counted = self._counted(level, low=False)
        both = np.concatenate([self.first, self.second])
        found = np.concatenate([self.first[pairs], self.second[pairs]])
        return [
            np.bincount(factor[found], np.tile(counted, 2), minlength=int(factor.max()) + 1)
            / np.bincount(factor[both], np.tile(self.compared, 2))
            for factor in self.factors
        ]

    def relative_rates(self, level: int, n_drawn: tuple[int, ...], n_draws: int, *, low: bool = False) -> FloatArray:
        """Return the rates of resampled identities relative to the rate of all of them.

        Parameters
        ----------
        level : int
            Number of the level, or low level.
        n_drawn : tuple of int
            Number of identities, and of sessions, in each draw.
        n_draws : int
            Number of draws, which are the same in each call.
        low : bool, default=False
            Whether to count rejected pairs instead of accepted ones.

        Returns
        -------
        ndarray of shape (n_draws,)
            Relative rates; draws without any compared pair count as 0.
        """
        weights, compared = self._draw(n_drawn, n_draws)
        counted = self._by_cells(level, low)
        expected = compared * (counted.data.sum() / self.compared.sum())
        relative: FloatArray = np.zeros(n_draws)
        np.divide(_weighted_sum(counted, weights), expected, out=relative, where=expected > 0.0)
        return relative

    @lru_cache(maxsize=16)  # noqa: B019, a resampler lives as long as one choice of a threshold
    def _draw(self, n_drawn: tuple[int, ...], n_draws: int) -> tuple[FloatArray, FloatArray]:
        """Return the weight of each cell in each draw, and the weight of all compared pairs."""
        rng = np.random.default_rng(0)
        n_cells = len(self.factors[0])
        weights = np.ones((n_cells, n_draws))
        for factor, n in zip(self.factors, n_drawn, strict=True):
            n_units = int(factor.max()) + 1
            drawn = rng.integers(0, n_units, (n, n_draws)) * n_draws + np.arange(n_draws)
            weights *= np.bincount(drawn.ravel(), minlength=n_units * n_draws).reshape(n_units, n_draws)[factor]
        if len(self.compared) == n_cells * (n_cells - 1) // 2 and np.allclose(self.compared, 1.0):  # all pairs, with weight 1
            return weights, (weights.sum(axis=0) ** 2 - (weights**2).sum(axis=0)) / 2.0
        return weights, _weighted_sum(self._as_table(np.arange(len(self.compared)), self.compared), weights)


def _weighted_sum(table: sparse.csr_array, weights: FloatArray) -> FloatArray:
    """Return the sum of a table of pairs of cells, weighted by the product of the weights of both cells, for each draw."""
    return np.asarray(np.einsum("cd,cd->d", weights, table @ weights))


class IdentityRates:
    """Rates of accepted different pairs at some thresholds, and how the pairs of identities share identities.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        Decreasing thresholds at which rates are computed. A pair is accepted if its score is at least the threshold.
    levels, low_levels : ndarray of shape (n_levels,)
        Decreasing thresholds at which accepted, and rejected, pairs of identities are kept for resampling.
    identities : ndarray of shape (n_samples,)
        Identity of each sample, as an integer from 0.
    weighting : {"identities", "samples"}
        Whether each pair of identities has the same weight, or each pair of samples.
    sessions : ndarray of shape (n_samples,), optional
        Session of each sample, as an integer from 0.
    kept : ndarray of bool of shape (n_identities,), optional
        Identities that are kept for resampling; by default all.

    Attributes
    ----------
    n_pairs, n_identity_pairs : int
        Number of pairs of samples, and of identities, that were compared.
    largest : int
        Maximum number of pairs of samples of a pair of identities.
    degrees : ndarray of shape (n_identities,)
        Number of identities that each identity was compared with.
    highest : float
        Highest score.

    Examples
    --------
    >>> rates = IdentityRates(np.array([2.0, 1.0]), np.array([1.0]), np.array([]), np.array([0, 1, 2]), "identities")
    >>> rates.add(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([3.0, 1.0, 0.0]))
    >>> rates.rates.round(2).tolist(), rates.n_identity_pairs
    ([0.33, 0.67], 3)
    """

    def __init__(
        self,
        thresholds: FloatArray,
        levels: FloatArray,
        low_levels: FloatArray,
        identities: Codes,
        weighting: str,
        *,
        sessions: Codes | None = None,
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        self.thresholds = thresholds
        self._levels = np.unique(np.concatenate([levels, low_levels]))[::-1]
        self._high, self._low = np.isin(self._levels, levels), np.isin(self._levels, low_levels)
        self._identities, self._sessions, self._weighting = identities, sessions, weighting
        self._n_identities = int(identities.max()) + 1
        self._kept = kept
        in_sessions = np.zeros_like(identities) if sessions is None else sessions
        n_sessions = int(in_sessions.max()) + 1
        found, self._cells = np.unique(identities * n_sessions + in_sessions, return_inverse=True)
        self._factors = [found // n_sessions] if sessions is None else [found // n_sessions, found % n_sessions]
        self._n_cells = len(found)
        self._accepted = np.zeros(len(thresholds) + 1)
        self.n_pairs, self.n_identity_pairs, self.largest = 0, 0, 0
        self.highest = -np.inf
        self.degrees: Codes = np.zeros(self._n_identities, dtype=np.int64)
        self._kept_codes: list[Codes] = []
        self._kept_tables: list[sparse.csr_array] = []
        self._resampler: Resampler | None = None

    def add(self, first: Index, second: Index, scores: FloatArray, order: FloatArray | None = None) -> None:
        """Count different pairs; all pairs of two identities must come in one call.

        Parameters
        ----------
        first, second : ndarray of shape (n_pairs,)
            Rows of the two samples of each pair.
        scores : ndarray of shape (n_pairs,)
            Their scores.
        order : ndarray of shape (n_pairs,), optional
            What the levels refer to, if not to the scores: numbers in the same order, with ties broken.
        """
        u, v = self._identities[first], self._identities[second]
        codes = np.minimum(u, v) * self._n_identities + np.maximum(u, v)
        found, numbers = _distinct(codes, self._n_identities**2)
        sizes = np.bincount(numbers)
        low, high = np.divmod(found, self._n_identities)
        weights = 1.0 / sizes[numbers] if self._weighting == "identities" else np.ones(len(codes))
        self._accepted += np.bincount(_level(self.thresholds, scores), weights, minlength=len(self.thresholds) + 1)
        self.n_pairs += len(codes)
        self.n_identity_pairs += len(found)
        self.largest = max(self.largest, int(sizes.max(initial=0)))
        self.highest = max(self.highest, float(scores.max(initial=-np.inf)))
        self.degrees += np.bincount(np.concatenate([low, high]), minlength=self._n_identities)
        ordered = scores if order is None else order
        if self._sessions is None and self._kept is None:  # cells are identities
            self._keep(found, numbers, ordered, weights)
            return
        kept = np.flatnonzero(self._kept[u] & self._kept[v]) if self._kept is not None else np.arange(len(codes))
        cells = np.sort(self._cells[np.column_stack([first[kept], second[kept]])], axis=1)
        self._keep(*_distinct(cells[:, 0] * self._n_cells + cells[:, 1], self._n_cells**2), ordered[kept], weights[kept])

    def _keep(self, found: Codes, numbers: Codes, scores: FloatArray, weights: FloatArray) -> None:
        """Keep the weight of the pairs of each pair of cells by the first level that accepts them."""
        shape = (len(found), len(self._levels) + 1)
        table = sparse.csr_array((weights, (numbers, _level(self._levels, scores))), shape=shape)
        table.sum_duplicates()
        self._kept_codes.append(found)
        self._kept_tables.append(table)
        self._resampler = None

    @property
    def total(self) -> float:
        """Weight of all compared pairs."""
        return float(self._accepted.sum())

    @property
    def rates(self) -> FloatArray:
        """Rate of accepted pairs at each threshold."""
        return np.asarray(np.cumsum(self._accepted)[:-1] / self.total)

    @property
    def n_units(self) -> list[int]:
        """Number of identities that were compared, and number of sessions if identities share them."""
        n_identities = int(np.count_nonzero(self.degrees))
        return [n_identities] if self._sessions is None else [n_identities, len(np.unique(self._sessions))]

    @property
    def max_samples(self) -> int:
        """Maximum number of samples of an identity."""
        return int(np.bincount(self._identities).max())

    def n_independent(self) -> int:
        """Return the number of independent pairs in each of some matchings that together contain all pairs of identities."""
        if self._sessions is None:
            return n_matched(self.degrees, self.n_identity_pairs)
        return n_matched_sessions(self.degrees, self._identities, self._sessions, self.n_identity_pairs)

    def resampler(self) -> Resampler:
        """Return what was kept, for resampling.

        Returns
        -------
        Resampler
            Identities and sessions are numbered anew, from 0.
        """
        if self._resampler is None:
            codes, table = np.concatenate(self._kept_codes), sparse.vstack(self._kept_tables, format="csr").tocsc()
            cells, numbers = _distinct(np.concatenate(np.divmod(codes, self._n_cells)), self._n_cells)
            first, second = np.split(numbers, 2)
            factors = [np.unique(factor[cells], return_inverse=True)[1] for factor in self._factors]
            levels = np.flatnonzero(self._high), np.flatnonzero(self._low)
            self._resampler = Resampler(first, second, table, *levels, factors)
        return self._resampler


def count_identity_rates(
    score: Score,
    source: PairSource,
    identities: NDArray[np.int64],
    targets: Sequence[float],
    *,
    weighting: str,
    sessions: NDArray[np.int64] | None = None,
) -> IdentityRates:
    """Score all different pairs, and count them per pair of identities at the thresholds that guarantees need.

    Parameters
    ----------
    score : callable
        Function from two arrays of row numbers to the scores of the pairs.
    source : PairSource
        The pairs.
    identities : array of shape (n_samples,)
        Identity of each sample, numbered from 0.
    targets : sequence of float
        Maximum false positive rates that will be asked for.
    weighting : {"identities", "samples"}
        Whether each pair of identities has the same weight, or each pair of samples.
    sessions : array of shape (n_samples,), optional
        Session of each sample, numbered from 0.

    Returns
    -------
    IdentityRates
        The counts.
    """
    if sessions is not None and _is_nested(sessions, identities):
        sessions = None  # a session of one identity only adds nothing to what its pairs share
    pilot, scored = score_different(score, source, identities)
    # Between few distinct scores, as of a tree, there would be no rates to learn from: ties are broken at random.
    distinct = np.unique(pilot)
    rng = np.random.default_rng(0)

    def order(scores: FloatArray) -> FloatArray:
        if len(distinct) > MAX_TIED:
            return scores
        return np.asarray(np.searchsorted(distinct, scores, side="right") + rng.random(len(scores)))

    decreasing, ordered = np.sort(pilot)[::-1], np.sort(order(pilot))
    # Inequality is learned at levels from below the target on, because rates per pair of identities may be higher.
    at = np.concatenate([target * 2.0 ** np.arange(-2.0, 1.0 + math.log2(MAX_RATE / target)) for target in targets])
    rates = IdentityRates(
        _at_rates(decreasing, np.outer(targets, TRIED).ravel()),
        _at_rates(ordered[::-1], at),
        np.nextafter(_at_rates(ordered, at), np.inf),
        identities,
        weighting,
        sessions=sessions,
        kept=_kept(source.n_unit_pairs(identities), identities),
    )
    for block, scores in scored:
        compared = scores[block.compared]
        rates.add(block.first[block.compared], block.second[block.compared], compared, order(compared))
    return rates


def _at_rates(scores: FloatArray, rates: FloatArray) -> FloatArray:
    """Return the distinct scores, in decreasing order, at these shares of sorted scores."""
    ranks = np.unique(np.clip(np.round(rates * len(scores)).astype(np.int64), 1, len(scores)))
    return np.unique(scores[ranks - 1])[::-1]


def _kept(n_identity_pairs: int, identities: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Return the identities from which inequality is learned, drawn if there are too many pairs of them."""
    if n_identity_pairs <= MAX_KEPT:
        return None
    n_identities = int(identities.max()) + 1
    kept = np.zeros(n_identities, dtype=np.bool_)
    n_kept = int(n_identities * math.sqrt(MAX_KEPT / n_identity_pairs))
    kept[np.random.default_rng(0).choice(n_identities, n_kept, replace=False)] = True
    return kept


def _is_nested(sessions: NDArray[np.int64], identities: NDArray[np.int64]) -> bool:
    """Return whether no session has samples of two identities."""
    return len(np.unique(np.column_stack([sessions, identities]), axis=0)) == len(np.unique(sessions))


def n_matched(degrees: Codes, n_identity_pairs: int) -> int:
    """Return the number of pairs of identities in each of some matchings that together contain all pairs.

    Every graph has an edge colouring with one colour more than its maximum degree (Vizing), and colours can be made equally
    frequent (de Werra). A complete graph of an even number of identities takes one colour less, as do independent pairs.

    Parameters
    ----------
    degrees : ndarray of shape (n_identities,)
        Number of identities that each identity was compared with.
    n_identity_pairs : int
        Number of pairs of identities.

    Returns
    -------
    int
        Minimum size of a matching.

    Examples
    --------
    >>> n_matched(np.full(40, 39), 780), n_matched(np.ones(10, dtype=int), 5)
    (20, 5)
    """
    n = int(np.count_nonzero(degrees))
    most = int(degrees.max(initial=0))
    complete = n_identity_pairs == n * (n - 1) // 2
    n_colours = most if most == 1 or (complete and n % 2 == 0) else most + 1
    return n_identity_pairs // max(n_colours, 1)


def n_matched_sessions(degrees: Codes, identities: Codes, sessions: Codes, n_identity_pairs: int) -> int:
    """Return the number of pairs in each matching if two pairs must share neither an identity nor a session.

    Parameters
    ----------
    degrees : ndarray of shape (n_identities,)
        Number of identities that each identity was compared with.
    identities, sessions : ndarray of shape (n_samples,)
        Identity and session of each sample, as integers from 0.
    n_identity_pairs : int
        Number of pairs of identities.

    Returns
    -------
    int
        Minimum size of a matching: the pairs of identities can be coloured with one colour more than the maximum number of
        pairs that conflict with one, each colour equally often (Hajnal and Szemeredi).

    Examples
    --------
    >>> n_matched_sessions(np.full(4, 3), np.arange(4), np.zeros(4, dtype=int), 6)
    1
    """
    both = np.unique(np.column_stack([identities, sessions]), axis=0)
    touched = np.bincount(both[:, 1], weights=degrees[both[:, 0]])  # pairs of identities that touch each session
    conflicts = np.bincount(both[:, 0], weights=touched[both[:, 1]], minlength=len(degrees))
    most = np.sort(conflicts)[-2:].sum() if len(conflicts) > 1 else 0.0
    return max(n_identity_pairs // int(min(most, n_identity_pairs)), 1) if most else 0


def _distinct(codes: Codes, n_codes: int) -> tuple[Codes, Codes]:
    """Return the distinct codes in increasing order, and the position of each code among them."""
    if n_codes > 8 * len(codes):
        found, numbers = np.unique(codes, return_inverse=True)
        return found, numbers
    present = np.zeros(n_codes, dtype=np.bool_)  # no sorting where a table of all codes is small
    present[codes] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]


def _level(thresholds: FloatArray, scores: FloatArray) -> Codes:
    """Return the index of the first of some decreasing thresholds that accepts each score."""
    level = np.full(len(scores), len(thresholds))
    found = np.flatnonzero(scores >= thresholds[-1]) if len(thresholds) else np.empty(0, dtype=np.int64)
    level[found] -= np.searchsorted(thresholds[::-1], scores[found], side="right")
    return level
