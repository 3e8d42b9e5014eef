"""Scores of pairs on a cluster, in blocks whose size does not depend on the workers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.progress import pairs_watcher
from simtree.dask._cluster import Shared
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._sources import DifferentBlock, IndexPairs, PairSource
from simtree.pairs._store import renumbered

Index = NDArray[np.int32]
Scores = NDArray[np.float64]
# Number of pairs that one task scores if they are sent to it, and if it finds them itself, which takes a moment.
BLOCK, FOUND_BLOCK = 1 << 16, 1 << 18
# So many are scored here, because sending the model takes longer.
FEW = 1 << 14
# Share of the memory of a worker that the rows of a block may take, if they are sent there for it.
ROWS_MEMORY = 0.1


class ArrayScorer:
    """Score pairs of samples that every worker has.

    Parameters
    ----------
    store : ArraySamples
        The samples, prepared for the model.
    model : Similarity
        The model.
    """

    def __init__(self, store: Any, model: Any) -> None:
        self._cluster, self._values, self._model = store.cluster, store.values, lightened(model)
        self._shared = Shared(self._cluster, (self._model, self._values))

    def __call__(self, first: Index, second: Index) -> Scores:
        """Return the scores of pairs."""
        if len(first) <= FEW:
            return _score_here(self._model, self._values, first, second)
        parts = [(first[rows], second[rows]) for rows in _slices(len(first), BLOCK)]
        return np.concatenate(list(_watched(self._cluster.map("score-block", score_pairs, self._shared, parts))))

    def over(self, source: PairSource, blocks: Iterable[DifferentBlock]) -> Iterator[tuple[DifferentBlock, Scores]]:
        """Yield blocks with their scores in order, several of which are scored at a time."""
        sampler = Shared(self._cluster, source)

        def calls(block: DifferentBlock) -> list[Callable[[], Any]]:
            size = FOUND_BLOCK if block.identities else BLOCK
            return [self._call(block, rows, sampler) for rows in _slices(len(block.first), size)]

        return _in_order(self._cluster, blocks, calls)

    def _call(self, block: DifferentBlock, rows: slice, sampler: Shared) -> Callable[[], Any]:
        if block.identities:  # workers find the pairs themselves
            return lambda: self._cluster.call(
                "score-block", _score_identities, self._shared.future(), sampler.future(), block.identities, rows
            )
        return lambda: self._cluster.call(
            "score-block", score_pairs, self._shared.future(), block.first[rows], block.second[rows]
        )


class RowScorer:
    """Score pairs of samples of which each task is sent the rows that it needs.

    Parameters
    ----------
    store : ClusterSamples
        The samples, prepared for the model.
    model : Similarity
        The model.
    """

    def __init__(self, store: Any, model: Any) -> None:
        self._store, self._model = store, lightened(model)
        row_bytes = store.shape[1] * store.dtype.itemsize
        # A pair has two rows; powers of two, so that memory decides about the size of blocks, but not about their edges.
        room = max(FEW, int(ROWS_MEMORY * store.cluster.memory) // (2 * row_bytes))
        self._n_pairs = min(BLOCK, 1 << (room.bit_length() - 1))

    def __call__(self, first: Index, second: Index) -> Scores:
        """Return the scores of pairs."""
        if len(first) <= FEW:
            rows, local = renumbered(IndexPairs(first, second, np.zeros(len(first), dtype=np.bool_)))
            return _score_here(self._model, self._store[rows], local.first, local.second)
        return np.concatenate(list(_watched(self._scored(self.jobs(first, second)))))

    def over(self, source: PairSource, blocks: Iterable[DifferentBlock]) -> Iterator[tuple[DifferentBlock, Scores]]:
        """Yield blocks with their scores in order."""
        for block in blocks:
            yield block, self(block.first, block.second)

    def _scored(self, jobs: Iterator[Any]) -> Iterator[Scores]:
        scores: Iterator[Scores] = self._store.run_on_rows("score-block", score_rows, self._model, jobs)
        return scores

    def jobs(self, first: Index, second: Index) -> Iterator[Any]:
        """Yield the rows that each block of pairs needs, and its pairs in terms of them."""
        for rows in _slices(len(first), self._n_pairs):
            unlabelled = np.zeros(len(first[rows]), dtype=np.bool_)
            used, local = renumbered(IndexPairs(first[rows], second[rows], unlabelled))
            yield used, (local.first, local.second)


def lightened(model: Any) -> Any:
    """Return a copy of a model without what only this program needs: callbacks and a preprocessor, which may be large."""
    made = copy.copy(model)
    made.__dict__.pop("_skl_callbacks", None)
    made.preprocessor, made.n_jobs = None, 1
    return made


def _in_order(
    cluster: Any, blocks: Iterable[DifferentBlock], calls: Callable[[DifferentBlock], list[Callable[[], Any]]]
) -> Iterator[tuple[DifferentBlock, Scores]]:
    """Yield blocks with the joined results of their calls."""
    report = pairs_watcher()
    known: list[tuple[DifferentBlock, int]] = []

    def made() -> Iterator[Callable[[], Any]]:
        for block in blocks:
            own = calls(block)
            known.append((block, len(own)))
            yield from own

    found: list[Scores] = []
    for scores in cluster.run(made()):
        found.append(scores)
        report(len(scores))
        block, n_parts = known[0]
        if len(found) == n_parts:
            known.pop(0)
            yield block, np.concatenate(found)
            found = []


def _watched(scored: Iterator[Scores]) -> Iterator[Scores]:
    """Report progress with each block of scores."""
    report = pairs_watcher()
    for scores in scored:
        report(len(scores))
        yield scores


def _slices(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _score_here(model: Any, values: NDArray[Any], first: Index, second: Index) -> Scores:
    scores: Scores = model._scorer(values)(first, second)
    return scores


def score_pairs(shared: tuple[Any, NDArray[Any]], first: Index, second: Index) -> Scores:
    """Return the scores of pairs by a model, which is shared with the prepared samples."""
    model, values = shared
    scores: Scores = model._score_pairs(SamplePairs(values, values, first, second))
    return scores


def _score_identities(shared: tuple[Any, NDArray[Any]], source: Any, identities: range, rows: slice) -> Scores:
    first, second = source.pairs_with_later(identities)
    return score_pairs(shared, first[rows], second[rows])


def score_rows(model: Any, samples: NDArray[Any], first: Index, second: Index) -> Scores:
    """Return the scores of pairs of prepared samples."""
    return score_pairs((model, samples), first, second)
