"""The rows of a gallery that are most alike to each of some queries: 1:N search.

The gallery is looked at in blocks, by several threads if wanted. `BestRows` keeps the best rows found so far; which block comes
first changes what has to be computed, never the result.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.symmetry import PointPairs

# Pairs of a query and a row that are scored at one time.
BLOCK = 1 << 18
# Queries that are answered at one time.
GROUP = 256

PairScore = Callable[[PointPairs], NDArray[np.float64]]


class BestRows:
    """The k best rows found so far for each query: a higher score first, among equals the smaller row number.

    Parameters
    ----------
    n_queries, k : int
        How many queries, and how many rows of each are kept.
    min_score : float
        Rows with a lower score are not kept.

    Attributes
    ----------
    scores, rows : ndarrays of shape (n_queries, k)
        Best first; -inf and -1 where nothing was found.
    needed : ndarray of shape (n_queries,)
        A row with a lower score cannot be among the k best. Never falls.

    Examples
    --------
    >>> best = BestRows(n_queries=1, k=2, min_score=0.0)
    >>> best.offer(0, np.array([0.5, 0.5, -1.0, 0.75]), np.array([7, 3, 2, 9]))
    >>> best.rows, best.needed
    (array([[9, 3]]), array([0.5]))
    """

    def __init__(self, n_queries: int, k: int, min_score: float) -> None:
        self.scores = np.full((n_queries, k), -np.inf)
        self.rows = np.full((n_queries, k), -1, dtype=np.int64)
        self.needed = np.full(n_queries, min_score)
        self._lock = Lock()

    def offer(self, query: int, scores: NDArray[np.float64], rows: NDArray[np.integer[Any]]) -> None:
        """Keep the best of what was kept and of these rows."""
        with self._lock:
            good = scores >= self.needed[query]
            if not good.any():
                return
            # What is not found yet must stay behind any row, also behind one whose score is -inf.
            found = self.rows[query] >= 0
            all_scores = np.concatenate([self.scores[query][found], scores[good]])
            all_rows = np.concatenate([self.rows[query][found], rows[good]])
            k = self.scores.shape[1]
            order = np.lexsort((all_rows, -all_scores))[:k]
            self.scores[query, : len(order)] = all_scores[order]
            self.rows[query, : len(order)] = all_rows[order]
            if len(order) == k:
                self.needed[query] = max(self.needed[query], self.scores[query, -1])


def scan(score: PairScore, queries: NDArray[Any], gallery: NDArray[Any], block: slice, best: BestRows) -> None:
    """Score all queries with each row of a block of the gallery, and keep the best."""
    rows = np.arange(block.start, block.stop, dtype=np.int32)
    for start in range(0, len(queries), GROUP):
        group = np.arange(start, min(start + GROUP, len(queries)), dtype=np.int32)
        pairs = PointPairs(queries, gallery, np.repeat(group, len(rows)), np.tile(rows, len(group)))
        for query, of_rows in zip(group.tolist(), score(pairs).reshape(len(group), len(rows)), strict=True):
            best.offer(query, of_rows, rows)


def blocks(n_rows: int, n_queries: int) -> list[slice]:
    """Blocks of the gallery, so that a block and a group of queries make at most about `BLOCK` pairs."""
    size = max(1, BLOCK // min(n_queries, GROUP))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
