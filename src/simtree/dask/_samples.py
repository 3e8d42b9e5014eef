"""Samples on a cluster: an array that is here, or the chunks of a collection that no single memory has to hold.

An array that fits is sent to every worker once. Otherwise only rows are sent: those that a tree or a block of pairs needs.
Random rows lie in all chunks, so the row numbers of many trees are found first, and one pass over the chunks then sends each
tree its rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from simtree._utils.matrices import check_rows, extremes, has_missing, missing_error
from simtree.dask._chunks import Chunks, PartResult, Reader, part_result
from simtree.dask._cluster import Cluster, Shared, once_then
from simtree.dask._scoring import ArrayScorer, RowScorer
from simtree.growing._bagging import TreeTask, hash_rows, join_hashes
from simtree.pairs._inputs import DTYPES
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import SampleStore, renumbered
from simtree.pairs._table import TableColumns
from simtree.trees._rank_tree import RankTree

Rows = NDArray[Any]
Numbers = NDArray[np.int64]
# What is done on some rows: their row numbers, and the arguments of the function that is called with the rows.
Job = tuple[Numbers, tuple[Any, ...]]

# Share of the memory of all workers that the rows of a batch may take. Two batches are on their way at a time.
BATCH_MEMORY = 0.15
# Share of the memory of a worker that the rows of one tree may take: they are there twice while they are put together.
MAX_ROWS_MEMORY = 0.4
# Pieces of rows that one pass makes at most, because each is a task of the scheduler.
MAX_PIECES = 200_000


class ClusterSamples(SampleStore):
    """What samples on a cluster share."""

    cluster: Cluster

    def check(self, estimator: Any, *, reset: bool) -> ClusterSamples:
        """Check the values, and set or compare the number and names of features."""
        names = getattr(self.head, "columns", None)
        self.check_values()
        if not getattr(estimator, "_takes_missing", bool)():
            self.refuse_missing(estimator, None if names is None else [str(name) for name in names])
        validate_data(estimator, self.head, reset=reset, skip_check_array=True)
        return self

    @abstractmethod
    def check_values(self) -> None:
        """Raise if a value is infinite."""

    def refuse_missing(self, estimator: Any, names: Sequence[str] | None) -> None:
        """Raise if a value is missing, with its place and what helps."""
        if has_missing(self):
            first = self._first_missing()
            column = int(np.argmax(first >= 0))
            raise missing_error(estimator, str(column) if names is None else repr(names[column]), int(first[column]))

    @abstractmethod
    def _first_missing(self) -> Numbers:
        """Return the first row that lacks a value of each column; -1 if there is none."""

    @abstractmethod
    def run_on_rows(self, what: str, function: Callable[..., Any], value: Any, jobs: Iterable[Job]) -> Iterator[Any]:
        """Yield ``function(value, rows, *arguments)`` of each job in order, where rows are the samples of the job."""

    def compute(self, what: str, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """Return the results of independent calls on workers; a ValueError that a call raises is its result."""
        return list(self.cluster.map(what, _result_or_error, function, [(part,) for part in parts]))

    def _grow_on_rows(self, tasks: Sequence[TreeTask], source: PairSource, hard: IndexPairs | None) -> Iterator[RankTree]:
        """Yield the trees; their pairs are drawn here, while earlier trees are grown."""

        def jobs() -> Iterator[Job]:
            for task in tasks:
                pairs, rng = task.draw(source, hard)
                rows, local = renumbered(pairs)
                yield rows, (local, rng)

        for tree in self.run_on_rows("grow-tree", _grow_on_rows, tasks[0].params, jobs()):
            yield _in_family(tree, tasks[0])


class ArraySamples(ClusterSamples):
    """Samples in an array of this program.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    values : ndarray of shape (n_samples, n_columns)
        The samples.
    head : array-like of shape (0, n_columns)
        Names of the columns, if they have any.
    """

    def __init__(self, cluster: Cluster, values: Rows, head: Any = None) -> None:
        self.cluster, self.values = cluster, values
        self.head = values[:0] if head is None else head
        self._is_checked = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of columns."""
        return self.values.shape[0], self.values.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self.values.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Rows:
        return np.asarray(self.values, dtype=dtype)

    def __getitem__(self, rows: NDArray[Any] | slice) -> Rows:
        return np.asarray(self.values[rows])

    def min(self, axis: int | None = None) -> Any:
        """Return the lowest value, or those of the columns."""
        return self.values.min(axis=axis)

    def max(self, axis: int | None = None) -> Any:
        """Return the highest value, or those of the columns."""
        return self.values.max(axis=axis)

    def extremes(self, axis: int | None = None) -> tuple[Any, Any]:
        """Return the lowest and the highest value, or those of the columns; missing ones do not count."""
        return extremes(self.values, axis)

    def row_hash(self) -> int:
        """Return the hash of the rows."""
        return hash_rows(self.values)

    def check_values(self) -> None:
        """Raise if a value is infinite."""
        if not self._is_checked:
            self.values = check_rows("X", self.values, dtype=DTYPES, order="C", ensure_all_finite="allow-nan")
            self._is_checked = True

    def _first_missing(self) -> Numbers:
        return first_missing(self.values)

    def map_parts(self, what: str, function: Callable[..., Any], *by_row: Rows) -> list[Any]:
        """Return the function of all rows: they are one part."""
        return [function(self.values, *by_row)]

    def read(self, columns: TableColumns) -> ArraySamples:
        """Return the samples as a table of numbers that is read again."""
        return ArraySamples(self.cluster, columns.read(self.values))

    def without_private(self, columns: TableColumns, identities: Numbers) -> tuple[ArraySamples, TableColumns]:
        """Return the samples that were read by some columns without values that only one identity has; changed in place."""
        return self, columns.without_private(self.values, identities)

    def select(self, columns: slice) -> ArraySamples:
        """Return some columns of the samples."""
        return ArraySamples(self.cluster, self.values[:, columns])

    def append(self, values: Rows) -> ArraySamples:
        """Return the samples with further columns."""
        return ArraySamples(self.cluster, np.hstack([self.values, values.astype(np.float64)]))

    def map(self, function: Callable[[Rows], Rows]) -> ArraySamples:
        """Return the samples transformed by a function."""
        made = function(self.values)
        return self if made is self.values else ArraySamples(self.cluster, made)

    def replace(self, rows: Numbers, values: Rows) -> ArraySamples:
        """Return the samples with other values in some rows."""
        if len(rows) == len(self):
            return ArraySamples(self.cluster, values)
        made = self.values.copy()
        made[rows] = values
        return ArraySamples(self.cluster, made)

    @property
    def fits(self) -> bool:
        """Whether every worker can have all samples."""
        return self.cluster.has_room_for(self.values.nbytes)

    def grow(self, tasks: Sequence[TreeTask], source: PairSource, hard: IndexPairs | None = None) -> Iterator[RankTree]:
        """Yield the trees in order."""
        if not tasks:
            return
        if not self.fits:
            yield from self._grow_on_rows(tasks, source, hard)
            return
        shared = (self.values, source, tasks[0], hard)
        for tree in self.cluster.map("grow-tree", _grow_on_all, shared, ((task.number,) for task in tasks)):
            yield _in_family(tree, tasks[0])

    def scorer(self, model: Any) -> Any:
        """Return a function that scores pairs of rows."""
        return ArrayScorer(self, model) if self.fits else RowScorer(self, model)

    def run_on_rows(self, what: str, function: Callable[..., Any], value: Any, jobs: Iterable[Job]) -> Iterator[Any]:
        """Yield the results of jobs; their rows are sent from here, to one worker each."""
        shared = Shared(self.cluster, value)

        def made(job: Job) -> Callable[[], Any]:
            rows, arguments = job
            _check_weight(self.cluster, len(rows) * self.values.itemsize * self.shape[1])
            return lambda: self.cluster.call(what, function, shared.future(), self.values[rows], *arguments)

        return self.cluster.run(made(job) for job in jobs)


@dataclass(frozen=True)
class ChunkFacts:
    """What is known of a chunk after one look at it.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    low, high : ndarray of shape (n_columns,)
        Lowest and highest value of each column; NaN if it has none.
    first_missing : ndarray of int of shape (n_columns,)
        The first row that lacks a value of each column; -1 if there is none.
    hash : int or None
        Hash of the rows, if it is known.
    """

    n_rows: int
    low: Rows
    high: Rows
    first_missing: Numbers
    hash: int | None = None

    def of_columns(self, columns: slice) -> ChunkFacts:
        """Return what is known of some columns, except for a hash."""
        return ChunkFacts(self.n_rows, self.low[columns], self.high[columns], self.first_missing[columns])


@dataclass(frozen=True)
class Step:
    """What is made of rows: they are transformed by a function, some of them are replaced, or they get further columns.

    Parameters
    ----------
    function : callable or None
        Function of rows.
    rows, values : ndarray or None
        Row numbers in increasing order, and their values. Without row numbers, values are further columns of all rows.
    """

    function: Callable[[Rows], Rows] | None = None
    rows: Numbers | None = None
    values: Rows | None = None

    def apply(self, numbers: Numbers, samples: Rows) -> Rows:
        """Return what is made of rows with these numbers, which increase."""
        if self.function is not None:
            return self.function(samples)
        assert self.values is not None
        if self.rows is None:
            return np.hstack([samples, self.values[numbers].astype(np.float64)])
        place = np.searchsorted(self.rows, numbers)
        known = self.rows[np.minimum(place, len(self.rows) - 1)] == numbers
        samples = samples.astype(self.values.dtype)
        samples[known] = self.values[place[known]]
        return samples


class ChunkSamples(ClusterSamples):
    """Samples in the chunks of a Dask collection.

    Parameters
    ----------
    chunks : Chunks
        The chunks.
    reader : Reader
        How a chunk becomes a matrix.
    head : array-like of shape (0, n_columns)
        Names and types of the columns.
    steps : tuple of Step
        What is made of the rows.
    raw : ChunkSamples, optional
        The samples that the steps begin with.
    """

    def __init__(
        self, chunks: Chunks, reader: Reader, head: Any, steps: tuple[Step, ...] = (), raw: ChunkSamples | None = None
    ) -> None:
        self.cluster, self.chunks, self.reader, self.head = chunks.cluster, chunks, reader, head
        self.steps = steps
        self._raw = self if raw is None else raw

    @cached_property
    def _facts(self) -> list[ChunkFacts]:
        """Return what is known of each chunk, from one pass over all of them; raise if a value is infinite."""
        is_raw = self is self._raw
        return self._of_chunks("check-chunk", partial(_facts_of, with_hash=is_raw), checking=is_raw)

    def _of_chunks(self, what: str, function: Callable[..., Any], *by_row: Rows, checking: bool = False) -> list[Any]:
        """Return the function of the rows of each chunk, and of the rows of further arrays that belong to it."""
        own: list[tuple[Any, ...]] | None = None
        if self.steps or by_row:
            starts = self.chunks.starts.tolist()
            steps = self.cluster.send(self.steps, to_all=True) if self.steps else None
            own = [(start, steps, *(array[start:stop] for array in by_row)) for start, stop in pairwise(starts)]
        return self.chunks.results(self.chunks.each(what, _on_rows, (self.reader, function, checking), own))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of columns."""
        return int(self.chunks.starts[-1]), self._first.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        return self._first.dtype

    @cached_property
    def _first(self) -> Rows:
        """The first row, as an array."""
        return self[np.zeros(1, dtype=np.int64)]

    def __getitem__(self, rows: NDArray[Any] | slice) -> Rows:
        is_index = isinstance(rows, np.ndarray) and rows.dtype != np.bool_
        numbers: NDArray[Any] = np.asarray(rows) if is_index else np.arange(len(self))[rows]
        used, places = np.unique(numbers, return_inverse=True)
        graph, names = self.taking([used], "read-rows")
        pieces = self.cluster.gather(graph, [names[place] for place in sorted(names)])
        return np.asarray(_made(self.steps, used, pieces)[places.reshape(-1)])

    def min(self, axis: int | None = None) -> Any:
        """Return the lowest value, or those of the columns; NaN if a value is missing."""
        low = np.where(self._first_missing() >= 0, np.nan, self.extremes(0)[0])
        return low if axis == 0 else low.min()

    def max(self, axis: int | None = None) -> Any:
        """Return the highest value, or those of the columns; NaN if a value is missing."""
        high = np.where(self._first_missing() >= 0, np.nan, self.extremes(0)[1])
        return high if axis == 0 else high.max()

    def extremes(self, axis: int | None = None) -> tuple[Any, Any]:
        """Return the lowest and the highest value, or those of the columns; missing ones do not count."""
        low = np.fmin.reduce([one.low for one in self._facts], axis=0)
        high = np.fmax.reduce([one.high for one in self._facts], axis=0)
        return (low, high) if axis == 0 else (np.fmin.reduce(low), np.fmax.reduce(high))

    def row_hash(self) -> int:
        """Return the hash of the rows, joined from those of the chunks."""
        known = [one.hash for one in self._facts if one.hash is not None]
        hashes = known if len(known) == len(self._facts) else self.map_parts("hash-chunk", hash_rows)
        return join_hashes(hashes, np.diff(self.chunks.starts).tolist())

    def check_values(self) -> None:
        """Raise if a value is infinite, after one pass over the chunks."""
        _ = self._facts

    def _first_missing(self) -> Numbers:
        first = np.stack([one.first_missing for one in self._facts])
        numbers = np.where(first >= 0, first + self.chunks.starts[:-1, None], np.iinfo(np.int64).max).min(axis=0)
        return np.where(numbers == np.iinfo(np.int64).max, -1, numbers)

    def map_parts(self, what: str, function: Callable[..., Any], *by_row: Rows) -> list[Any]:
        """Return the function of the rows of each chunk."""
        return self._of_chunks(what, function, *by_row)

    def read(self, columns: TableColumns) -> ChunkSamples:
        """Return the samples as a table of numbers that is read again."""
        return self.map(columns.read)

    def without_private(self, columns: TableColumns, identities: Numbers) -> tuple[ChunkSamples, TableColumns]:
        """Return the samples that were read by some columns without values that only one identity has."""
        holders = zip(*self.map_parts("find-holders", columns.holders, identities.astype(np.int32)), strict=True)
        shared = columns.with_shared_values(
            [np.stack([np.min(low, axis=0), np.max(high, axis=0)]) for low, high in map(_lows_and_highs, holders)]
        )
        if self.steps:  # what a model of which this one is a part has read
            *before, _ = self.steps
            return ChunkSamples(self.chunks, self.reader, self.head, (*before, Step(shared.read)), self._raw), shared
        return ChunkSamples(self.chunks, Reader(shared), self.head), shared

    def select(self, columns: slice) -> ChunkSamples:
        """Return some columns of the samples."""
        if self.steps or self.reader.kept is not None:
            made = self._with(Step(partial(_columns_of, columns=columns)))
        else:  # other columns are not even sent
            made = ChunkSamples(self.chunks, replace(self.reader, kept=columns), self._first[:0, columns])
        if "_facts" in vars(self):  # no need to look at the chunks again
            made.__dict__["_facts"] = [one.of_columns(columns) for one in self._facts]
        return made

    def append(self, values: Rows) -> ChunkSamples:
        """Return the samples with further columns."""
        return self._with(Step(values=values))

    def map(self, function: Callable[[Rows], Rows]) -> ChunkSamples:
        """Return the samples transformed by a function, when they are needed."""
        return self._with(Step(function))

    def replace(self, rows: Numbers, values: Rows) -> ClusterSamples:
        """Return the samples with other values in some rows."""
        if len(rows) == len(self):
            return ArraySamples(self.cluster, values)
        return self._with(Step(None, rows, values))

    def _with(self, step: Step) -> ChunkSamples:
        steps = (*self.steps, step)
        made = _made(steps, np.zeros(1, dtype=np.int64), [self._raw._first])
        return ChunkSamples(self.chunks, self.reader, made[:0], steps, self._raw)

    def grow(self, tasks: Sequence[TreeTask], source: PairSource, hard: IndexPairs | None = None) -> Iterator[RankTree]:
        """Yield the trees in order."""
        return self._grow_on_rows(tasks, source, hard) if tasks else iter(())

    def scorer(self, model: Any) -> Any:
        """Return a function that scores pairs of rows."""
        return RowScorer(self, model)

    def run_on_rows(self, what: str, function: Callable[..., Any], value: Any, jobs: Iterable[Job]) -> Iterator[Any]:
        """Yield the results of jobs in order: one pass over the chunks per batch of them sends each its rows."""
        shared = Shared(self.cluster, (self.steps, value))

        def finish(job: Job, pieces: list[Any]) -> Any:
            numbers = job[0] if self.needs_numbers else None
            return self.cluster.call(what, on_pieces, function, shared.future(), numbers, pieces, *job[1])

        def start_again(job: Job) -> Any:
            return finish(job, self._pieces([job[0]])[0])

        def calls(batch: list[Job]) -> list[Callable[[], Any]]:
            pieces = self._pieces([rows for rows, _ in batch])
            futures = [finish(job, own) for job, own in zip(batch, pieces, strict=True)]
            # The pieces are forgotten here: they live as long as a tree that is still to be grown needs them.
            return [once_then(future, partial(start_again, job)) for job, future in zip(batch, futures, strict=True)]

        return self.cluster.run_batches(calls(batch) for batch in self.batched(jobs))

    @property
    def needs_numbers(self) -> bool:
        """Whether what is made of a row depends on its number."""
        return any(step.values is not None for step in self.steps)

    def batched(self, jobs: Iterable[Job]) -> Iterator[list[Job]]:
        """Yield the jobs in batches whose rows fit into the memory of the workers."""
        row_bytes = self._raw._first.nbytes
        room = BATCH_MEMORY * self.cluster.memory * self.cluster.n_workers
        batch: list[Job] = []
        weight = 0
        for job in jobs:
            own = len(job[0]) * row_bytes
            _check_weight(self.cluster, own)
            if batch and (weight + own > room or (len(batch) + 1) * len(self.chunks.keys) > MAX_PIECES):
                yield batch
                batch, weight = [], 0
            batch.append(job)
            weight += own
        if batch:
            yield batch

    def _pieces(self, row_sets: list[Numbers]) -> list[list[Any]]:
        """Return the futures of the rows of each set, in pieces by chunk, after one pass over the chunks."""
        graph, names = self.taking(row_sets, "take-rows")
        found = dict(zip(names, self.cluster.get(graph, list(names.values())), strict=True))
        by_set: list[list[Any]] = [[] for _ in row_sets]
        for chunk, number in sorted(found):
            by_set[number].append(found[chunk, number])
        return by_set

    def taking(
        self, row_sets: list[Numbers], what: str, *, again: bool = False
    ) -> tuple[dict[Any, Any], dict[tuple[int, int], Any]]:
        """Return a graph that takes the rows of each set from the chunks, and the keys of the pieces, see `Chunks.taking`."""
        return self.chunks.taking(self.reader, row_sets, what, again=again)


def first_missing(values: Rows) -> Numbers:
    """Return the first row that lacks a value of each column; -1 if there is none.

    Examples
    --------
    >>> first_missing(np.array([[1.0, 2.0], [3.0, np.nan]]))
    array([-1,  1])
    """
    if not has_missing(values):
        return np.full(values.shape[1], -1, dtype=np.int64)
    missing = np.isnan(values)
    return np.where(missing.any(axis=0), missing.argmax(axis=0), -1)


def _made(steps: tuple[Step, ...], numbers: Numbers, pieces: Sequence[Rows]) -> Rows:
    """Return what the steps make of rows that are given in pieces."""
    samples = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    for step in steps:
        samples = step.apply(numbers, samples)
    return samples


def on_pieces(
    function: Callable[..., Any], shared: tuple[Any, Any], numbers: Numbers | None, pieces: list[Rows], *arguments: Any
) -> Any:
    """Return the result of a function of rows that come in pieces, after the steps that are shared with a value."""
    steps, value = shared
    return function(value, _made(steps, np.empty(0, dtype=np.int64) if numbers is None else numbers, pieces), *arguments)


def _on_rows(
    shared: tuple[Reader, Callable[..., Any], bool],
    chunk: Any,
    start: int = 0,
    steps: tuple[Step, ...] | None = None,
    *by_row: Rows,
) -> PartResult:
    """Return a function of the rows of a chunk, as they are read and what the steps make of them."""
    reader, function, checking = shared

    def made(chunk: Any, *by_row: Rows) -> Any:
        values = reader.check(chunk) if checking else reader(chunk)
        if steps:
            values = _made(steps, np.arange(start, start + len(values)), [values])
        return function(values, *by_row)

    return part_result(made, chunk, *by_row)


def _facts_of(values: Rows, *, with_hash: bool) -> ChunkFacts:
    low, high = extremes(values, axis=0)
    return ChunkFacts(len(values), low, high, first_missing(values), hash_rows(values) if with_hash else None)


def _columns_of(values: Rows, *, columns: slice) -> Rows:
    return np.ascontiguousarray(values[:, columns])


def _lows_and_highs(holders: Sequence[Numbers]) -> tuple[list[Numbers], list[Numbers]]:
    return [ends[0] for ends in holders], [ends[1] for ends in holders]


def _check_weight(cluster: Cluster, n_bytes: int) -> None:
    if n_bytes > MAX_ROWS_MEMORY * cluster.memory:
        raise ValueError(
            f"the rows of one tree or block of pairs take {n_bytes / 1e6:,.0f} MB, more than {MAX_ROWS_MEMORY:.0%} of the "
            f"{cluster.memory / 1e6:,.0f} MB of a worker; start workers with more memory, or decrease n_pairs."
        )


def _grow_on_all(shared: tuple[Any, ...], number: int) -> RankTree:
    samples, source, task, hard = shared
    tree: RankTree = replace(task, number=number).grow(samples, source, hard)
    return tree


def _grow_on_rows(params: Any, samples: Rows, pairs: IndexPairs, rng: np.random.Generator) -> RankTree:
    tree: RankTree = params.grow(samples, pairs, rng)
    return tree


def _in_family(tree: RankTree, task: TreeTask) -> RankTree:
    """Return a tree that has come back from a worker with the coordinates that all trees share."""
    return replace(tree, pair_map=task.params.pair_map)


def _result_or_error(function: Callable[[Any], Any], part: Any) -> Any:
    try:
        return function(part)
    except ValueError as error:
        return error
