"""Samples on a cluster: an array that is here, or the chunks of a collection that no single memory has to hold.

An array that fits is sent to every worker once. Otherwise only rows are sent: those that a tree or a block of pairs needs.
Random rows lie in all chunks, so the row numbers of many trees are found first, and one pass over the chunks then sends each
tree its rows.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import getitem
from typing import Any

import numpy as np
from dask.core import flatten
from distributed import futures_of
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

import dask
from simtree._utils.matrices import check_rows
from simtree.dask._cluster import Cluster, Shared, new_key, once_then
from simtree.dask._scoring import ArrayScorer, RowScorer
from simtree.growing._bagging import TreeTask, hash_rows, join_hashes
from simtree.pairs._inputs import DTYPES
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import SampleStore, renumbered
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
        self._head = values[:0] if head is None else head
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

    def row_hash(self) -> int:
        """Return the hash of the rows."""
        return hash_rows(self.values)

    def check(self, estimator: Any, *, reset: bool) -> ArraySamples:
        """Check the values, and set or compare the number and names of features."""
        if not self._is_checked:
            self.values = check_rows("X", self.values, dtype=DTYPES, order="C")
            self._is_checked = True
        validate_data(estimator, self._head, reset=reset, skip_check_array=True)
        return self

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
        Lowest and highest value of each column.
    hash : int
        Hash of the rows.
    dtype : numpy.dtype
        Type of the values.
    error : Exception or None
        What is wrong with them.
    """

    n_rows: int
    low: Rows
    high: Rows
    hash: int
    dtype: np.dtype[Any]
    error: Exception | None = None


@dataclass(frozen=True)
class Step:
    """What is made of rows: they are transformed by a function, or some of them are replaced.

    Parameters
    ----------
    function : callable or None
        Function of rows.
    rows, values : ndarray or None
        Row numbers in increasing order, and their values.
    """

    function: Callable[[Rows], Rows] | None = None
    rows: Numbers | None = None
    values: Rows | None = None

    def apply(self, numbers: Numbers, samples: Rows) -> Rows:
        """Return what is made of rows with these numbers, which increase."""
        if self.function is not None:
            return self.function(samples)
        assert self.rows is not None
        assert self.values is not None
        place = np.searchsorted(self.rows, numbers)
        known = self.rows[np.minimum(place, len(self.rows) - 1)] == numbers
        samples = samples.astype(self.values.dtype)
        samples[known] = self.values[place[known]]
        return samples


class ChunkSamples(ClusterSamples):
    """Samples in the chunks of a Dask collection.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    array : dask.array.Array
        The collection. A chunk has all columns of its rows.
    head : array-like of shape (0, n_columns)
        Names and types of the columns.
    steps : tuple of Step
        What is made of the rows.
    raw : ChunkSamples, optional
        The samples that the steps begin with.
    """

    def __init__(
        self,
        cluster: Cluster,
        array: Any,
        head: Any,
        steps: tuple[Step, ...] = (),
        raw: ChunkSamples | None = None,
    ) -> None:
        self.cluster, self.array, self._head = cluster, array, head
        self._graph: dict[Any, Any]
        self._keys: list[Any]
        self._graph, self._keys = graph_of(array) if raw is None else (raw._graph, raw._keys)
        self.steps = steps
        self._raw = self if raw is None else raw

    @cached_property
    def _facts(self) -> list[ChunkFacts]:
        """Return what is known of each chunk, from one pass over all of them; raise if a value is not a finite number."""
        starts = [0] * len(self._keys) if self is self._raw else self._raw.starts[:-1].tolist()
        shared = self.cluster.send(self.steps, to_all=True) if self.steps else None
        names = [new_key("check-chunk") for _ in self._keys]
        calls = {name: (_look_at, shared, start, key) for name, start, key in zip(names, starts, self._keys, strict=True)}
        facts: list[ChunkFacts] = self.cluster.gather({**self._graph, **calls}, names)
        n_before = 0
        for one in facts:
            if one.error is not None:
                raise with_row(one.error, n_before)
            n_before += one.n_rows
        if not n_before:
            raise ValueError("X has no rows; give at least two samples.")
        if self is self._raw:  # chunks without rows are of no use
            self._keys = [key for key, one in zip(self._keys, facts, strict=True) if one.n_rows]
        return [one for one in facts if one.n_rows]

    @cached_property
    def starts(self) -> Numbers:
        """Row number at which each chunk starts, and the number of rows."""
        if self is not self._raw:
            return self._raw.starts
        return np.concatenate([[0], np.cumsum([one.n_rows for one in self._facts])]).astype(np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of columns."""
        return int(self.starts[-1]), self._first.shape[1]

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
        """Return the lowest value, or those of the columns."""
        low = np.min([one.low for one in self._facts], axis=0)
        return low if axis == 0 else low.min()

    def max(self, axis: int | None = None) -> Any:
        """Return the highest value, or those of the columns."""
        high = np.max([one.high for one in self._facts], axis=0)
        return high if axis == 0 else high.max()

    def row_hash(self) -> int:
        """Return the hash of the rows, joined from those of the chunks."""
        return join_hashes([one.hash for one in self._facts], [one.n_rows for one in self._facts])

    def check(self, estimator: Any, *, reset: bool) -> ChunkSamples:
        """Check the values in one pass over the chunks, and set or compare the number and names of features."""
        validate_data(estimator, self._head, reset=reset, skip_check_array=True)
        _ = self._facts
        return self

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
        return ChunkSamples(self.cluster, self.array, made[:0], steps, self._raw)

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
        return any(step.rows is not None for step in self.steps)

    def batched(self, jobs: Iterable[Job]) -> Iterator[list[Job]]:
        """Yield the jobs in batches whose rows fit into the memory of the workers."""
        row_bytes = self._raw._first.nbytes
        room = BATCH_MEMORY * self.cluster.memory * self.cluster.n_workers
        batch: list[Job] = []
        weight = 0
        for job in jobs:
            own = len(job[0]) * row_bytes
            _check_weight(self.cluster, own)
            if batch and (weight + own > room or (len(batch) + 1) * len(self._keys) > MAX_PIECES):
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
        """Return a graph that reads each chunk once and takes the rows of each set from it, and the keys of the pieces.

        A piece is named by the number of its chunk and of its set. There are none for chunks without rows of a set. ``again``
        gives the chunks new names, so that they are not kept for another graph that reads them.
        """
        graph, keys = self._graph_again() if again else (dict(self._graph), self._keys)
        names: dict[tuple[int, int], Any] = {}
        starts = self._raw.starts
        ends = [np.searchsorted(rows, starts) for rows in row_sets]
        for chunk, (start, key) in enumerate(zip(starts[:-1], keys, strict=True)):
            here = [number for number, places in enumerate(ends) if places[chunk] < places[chunk + 1]]
            if not here:
                continue
            kind = np.uint16 if starts[chunk + 1] - start <= 1 << 16 else np.uint32
            chosen = [(row_sets[n][ends[n][chunk] : ends[n][chunk + 1]] - start).astype(kind) for n in here]
            taken = new_key(what)
            graph[taken] = (_take, key, Choice(chosen))
            for place, number in enumerate(here):
                names[chunk, number] = piece = new_key("pick-rows")
                graph[piece] = (getitem, taken, place)
        return graph, names

    def _graph_again(self) -> tuple[dict[Any, Any], list[Any]]:
        """Return the graph and the keys of the chunks under new names; chunks that workers keep anyway as they are.

        Not by `dask.graph_manipulation.clone`, whose tasks keep the old name inside, which the fusion of tasks does not bear.
        """
        if not all(hasattr(task, "substitute") for task in self._graph.values()):
            return dict(self._graph), self._keys
        name = new_key("again")
        renamed = {key: f"{name}-{number}" for number, key in enumerate(self._graph)}
        again = {renamed[key]: task.substitute(renamed, key=renamed[key]) for key, task in self._graph.items()}
        return again, [renamed[key] for key in self._keys]


class Choice:
    """Row numbers within a chunk, one array per set; a class of its own so that Dask does not look into it."""

    def __init__(self, rows: list[NDArray[Any]]) -> None:
        self.rows = rows


def graph_of(array: Any) -> tuple[dict[Any, Any], list[Any]]:
    """Return the optimised graph of an array, and the keys of its chunks; what is in the memory of workers keeps its keys."""
    (made,) = (array,) if futures_of(array) else dask.optimize(array)
    return dict(made.__dask_graph__()), list(flatten(made.__dask_keys__()))


def as_matrix(chunk: Any) -> Rows:
    """Return a checked chunk as a matrix of float32 or float64, which compiled code may not take for a constant."""
    values = np.asarray(chunk)
    values = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    return np.require(values, requirements=["C", "W"])


def _take(chunk: Any, choice: Choice) -> tuple[Rows, ...]:
    values = as_matrix(chunk)
    return tuple(values[rows] for rows in choice.rows)


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


def _look_at(steps: tuple[Step, ...] | None, start: int, chunk: Any) -> ChunkFacts:
    """Return what is known of a chunk, and what is wrong with it."""
    nothing = np.empty(0)
    if not len(chunk):
        return ChunkFacts(0, nothing, nothing, 0, nothing.dtype)
    try:
        values = check_rows("X", chunk, dtype=DTYPES, order="C") if steps is None else as_matrix(chunk)
        if steps:
            values = _made(steps, np.arange(start, start + len(values)), [values])
    except (TypeError, ValueError) as error:
        return ChunkFacts(len(chunk), nothing, nothing, 0, nothing.dtype, error)
    number = hash_rows(values) if steps is None else 0
    return ChunkFacts(len(values), values.min(axis=0), values.max(axis=0), number, values.dtype)


def with_row(error: Exception, n_before: int) -> Exception:
    """Return an error that names a row of a chunk, with its number among all rows."""
    said = re.sub(r"first in row (\d+)", lambda found: f"first in row {n_before + int(found[1])}", str(error))
    return type(error)(said)


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
