"""Searches whose rates are estimated: of each sample among all others, or of probes among enrolled identities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simtree.evaluation._search_rates import SearchRates
from simtree.metrics import FloatArray
from simtree.pairs._sources import DifferentBlock, Index, IndexPairs

Codes = NDArray[np.int64]


class SearchCounts(SearchRates):
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
        self._starts = starts
        # Searches are kept in the given order, in which the samples of an identity, and of all later ones, are a slice.
        identity = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        units = order.astype(np.int64) if by_sample else identity
        weights = 1.0 / np.bincount(identity)[identity] if by_identity else np.ones(len(order))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        super().__init__(units, int(units.max()) + 1, weights, place, by_sample=by_sample)
        rows = self._place[np.concatenate([same.first, same.second])]
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

    def add(self, block: DifferentBlock, scores: FloatArray) -> None:
        """Update the searches with the scores of some identities against all later ones."""
        done = 0
        mated = self._mated.best
        for identity in block.identities:
            start, stop = self._starts[identity], self._starts[identity + 1]
            own, later = slice(start, stop), slice(stop, None)
            table = scores[done : done + (stop - start) * (len(mated) - stop)].reshape(stop - start, -1)
            done += table.size
            best_of_later = np.maximum.reduceat(table, self._starts[identity + 1 : -1] - stop, axis=1)
            self._n_ahead[own] += np.count_nonzero(best_of_later >= mated[own, None], axis=1)
            best_of_own = table.max(axis=0)
            self._n_ahead[later] += best_of_own >= mated[later]
            if self._by_sample:
                self._add_table(own, table, self._units[later])
                self._add_table(later, table.T, self._units[own])
            else:
                self._add_table(own, best_of_later, np.arange(identity + 1, len(self._starts) - 1))
                self._nonmated.add(later, best_of_own, identity, -np.inf)
                self._galleries.add(later, best_of_own, identity)

    def _add_table(self, rows: slice, table: FloatArray, units: Codes) -> None:
        self._nonmated.add_table(rows, table, units)
        self._galleries.add_table(rows, table, units)


class ProbeCounts(SearchRates):
    """Search of each probe among enrolled identities, each of which is compared by one score.

    Parameters
    ----------
    n_probes : int
        Number of probes, whose rows come first; the others are enrolled identities.
    identities : array of shape (n_rows,)
        Identity of each row, numbered from 0.
    by_sample : bool
        Whether the units of the intervals are rows, not identities.
    by_identity : bool
        Whether all searches of an identity together have the weight of one.
    """

    def __init__(self, n_probes: int, identities: Codes, *, by_sample: bool, by_identity: bool) -> None:
        self._unit_of_row = np.arange(len(identities)) if by_sample else identities
        own = identities[:n_probes]
        weights = 1.0 / np.bincount(own)[own] if by_identity else np.ones(n_probes)
        n_units = int(self._unit_of_row.max()) + 1
        super().__init__(self._unit_of_row[:n_probes], n_units, weights, np.arange(n_probes), by_sample=by_sample)

    def add_mated(self, same: IndexPairs, scores: FloatArray) -> None:
        """Set the scores of probes with their own identities, of which there is at most one each; before all others."""
        self._mated.add(same.first, scores, self._unit_of_row[same.second], -np.inf)

    def add(self, block: DifferentBlock, scores: FloatArray) -> None:
        """Update the searches with comparisons of probes with other identities, each of which comes once."""
        probes, units = block.first, self._unit_of_row[block.second]
        np.add.at(self._n_ahead, probes, scores >= self._mated.best[probes])
        self._galleries.add_scores(probes, scores, units)
        order = np.lexsort((-scores, probes))
        probes, units, scores = probes[order], units[order], scores[order]
        first = np.flatnonzero(np.diff(probes, prepend=-1))
        has_second = np.diff(first, append=len(probes)) > 1
        second = np.where(has_second, scores[np.minimum(first + 1, len(scores) - 1)], -np.inf)
        self._nonmated.add(probes[first], scores[first], units[first], second)
