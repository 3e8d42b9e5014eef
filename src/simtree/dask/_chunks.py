"""The chunks of a Dask collection: arrays or data frames that workers read, look at, and take rows from."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import getitem
from typing import Any

import dask.array as da
import numpy as np
from dask.core import flatten
from distributed import futures_of
from numpy.typing import NDArray

import dask
from simtree._utils.matrices import check_rows
from simtree.dask._cluster import Cluster, new_key
from simtree.pairs._inputs import DTYPES
from simtree.pairs._table import TableColumns

Rows = NDArray[Any]
Numbers = NDArray[np.int64]


class Choice:
    """Row numbers within a chunk, one array per set; a class of its own so that Dask does not look into it."""

    def __init__(self, rows: list[NDArray[Any]]) -> None:
        self.rows = rows


@dataclass(frozen=True)
class Reader:
    """How a chunk becomes a matrix.

    Parameters
    ----------
    columns : TableColumns or None
        How the columns of a table are read; None for a chunk of numbers.
    kept : slice or None
        The columns of the matrix that are kept; None for all.
    """

    columns: TableColumns | None = None
    kept: slice | None = None

    def __call__(self, chunk: Any) -> Rows:
        """Return a chunk that was checked as a matrix."""
        return self._kept(as_matrix(chunk) if self.columns is None else self.columns.read(chunk))

    def check(self, chunk: Any) -> Rows:
        """Return a chunk as a matrix of numbers, of which some may be missing; raise if a value is something else."""
        if self.columns is not None:
            return self(chunk)
        return self._kept(check_rows("X", chunk, dtype=DTYPES, order="C", ensure_all_finite="allow-nan"))

    def _kept(self, values: Rows) -> Rows:
        return values if self.kept is None else np.ascontiguousarray(values[:, self.kept])


@dataclass(frozen=True)
class PartResult:
    """A function of a chunk.

    Parameters
    ----------
    n_rows : int
        Number of rows of the chunk.
    value : object
        The result, if it has rows.
    error : Exception or None
        What is wrong with the rows.
    """

    n_rows: int
    value: Any = None
    error: Exception | None = None


class Chunks:
    """The chunks of a collection, which have all columns of their rows.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    collection : dask.array.Array or dask.dataframe.DataFrame
        The collection.
    """

    def __init__(self, cluster: Cluster, collection: Any) -> None:
        self.cluster = cluster
        self.graph: dict[Any, Any]
        self.keys: list[Any]
        self.graph, self.keys = graph_of(collection)
        self._lengths: list[int] | None = None
        if isinstance(collection, da.Array) and not np.isnan(collection.chunks[0]).any():
            self.set_lengths(collection.chunks[0])

    def set_lengths(self, lengths: Sequence[int]) -> None:
        """Remember the number of rows of each chunk, once it is known; chunks without rows are of no use."""
        if self._lengths is None:
            if not sum(lengths):
                raise ValueError("X has no rows; give at least two samples.")
            self.keys = [key for key, length in zip(self.keys, lengths, strict=True) if length]
            self._lengths = [length for length in lengths if length]

    @cached_property
    def starts(self) -> Numbers:
        """Row number at which each chunk starts, and the number of rows."""
        if self._lengths is None:
            self.set_lengths(self.each("count-rows", _length))
        assert self._lengths is not None
        return np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int64)

    @property
    def are_counted(self) -> bool:
        """Whether the number of rows of each chunk is known."""
        return self._lengths is not None

    def each(
        self, what: str, function: Callable[..., Any], shared: Any = None, of_chunks: Sequence[tuple[Any, ...]] | None = None
    ) -> list[Any]:
        """Return ``function(shared, chunk, *arguments)`` of each chunk, in order.

        Parameters
        ----------
        what : str
            Name of such a call.
        function : callable
            The function.
        shared : object
            Argument that is the same for all chunks; part of the graph, so that Dask can compute it again.
        of_chunks : sequence of tuples, optional
            Further arguments of each chunk.

        Returns
        -------
        list
            The results.
        """
        entry, names = new_key("shared"), [new_key(what) for _ in self.keys]
        graph = {**self.graph, entry: Entry(shared)}
        for name, key, own in zip(names, self.keys, of_chunks or [()] * len(self.keys), strict=True):
            graph[name] = (_on_chunk, function, entry, key, *own)
        return self.cluster.gather(graph, names)

    def results(self, parts: list[PartResult]) -> list[Any]:
        """Return the results of `part_result` of each chunk that has rows; raise if something is wrong with one."""
        starts = np.cumsum([0, *(part.n_rows for part in parts)]).tolist()
        errors = [with_row(part.error, start) for part, start in zip(parts, starts, strict=False) if part.error is not None]
        if errors:  # of a part without any value, only another one may tell what is wrong
            raise next((error for error in errors if str(error).startswith("X")), errors[0])
        self.set_lengths([part.n_rows for part in parts])
        return [part.value for part in parts if part.n_rows]

    def taking(
        self, reader: Reader, row_sets: list[Numbers], what: str, *, again: bool = False
    ) -> tuple[dict[Any, Any], dict[tuple[int, int], Any]]:
        """Return a graph that reads each chunk once and takes the rows of each set from it, and the keys of the pieces.

        A piece is named by the number of its chunk and of its set. There are none for chunks without rows of a set. ``again``
        gives the chunks new names, so that they are not kept for another graph that reads them.
        """
        starts = self.starts
        graph, keys = self._graph_again() if again else (dict(self.graph), self.keys)
        names: dict[tuple[int, int], Any] = {}
        reading = new_key("columns")
        graph[reading] = Entry(reader)
        ends = [np.searchsorted(rows, starts) for rows in row_sets]
        for chunk, (start, key) in enumerate(zip(starts[:-1], keys, strict=True)):
            here = [number for number, places in enumerate(ends) if places[chunk] < places[chunk + 1]]
            if not here:
                continue
            kind = np.uint16 if starts[chunk + 1] - start <= 1 << 16 else np.uint32
            chosen = [(row_sets[n][ends[n][chunk] : ends[n][chunk + 1]] - start).astype(kind) for n in here]
            taken = new_key(what)
            graph[taken] = (_take, reading, key, Choice(chosen))
            for place, number in enumerate(here):
                names[chunk, number] = piece = new_key("pick-rows")
                graph[piece] = (getitem, taken, place)
        return graph, names

    def _graph_again(self) -> tuple[dict[Any, Any], list[Any]]:
        """Return the graph and the keys of the chunks under new names; chunks that workers keep anyway as they are.

        Not by `dask.graph_manipulation.clone`, whose tasks keep the old name inside, which the fusion of tasks does not bear.
        """
        if not all(hasattr(task, "substitute") for task in self.graph.values()):
            return dict(self.graph), self.keys
        name = new_key("again")
        renamed = {key: f"{name}-{number}" for number, key in enumerate(self.graph)}
        again = {renamed[key]: task.substitute(renamed, key=renamed[key]) for key, task in self.graph.items()}
        return again, [renamed[key] for key in self.keys]


class Entry:
    """Something that all tasks of a graph have, as an entry of it; a class of its own so that Dask does not look into it."""

    def __init__(self, value: Any) -> None:
        self.value = value


def graph_of(collection: Any) -> tuple[dict[Any, Any], list[Any]]:
    """Return the optimised graph of a collection, and the keys of its chunks; what workers have in memory keeps its keys."""
    made = collection
    if not futures_of(collection):
        # Not by `dask.optimize` for frames, which loses a choice of columns, and fails on frames of delayed parts.
        made = collection.optimize() if hasattr(collection, "columns") else dask.optimize(collection)[0]
    return dict(made.__dask_graph__()), list(flatten(made.__dask_keys__()))


def as_matrix(chunk: Any) -> Rows:
    """Return a checked chunk as a matrix of float32 or float64, which compiled code may not take for a constant."""
    if hasattr(chunk, "columns"):  # as `check_rows` makes numbers of it, whatever types it has
        chunk = check_rows("X", chunk, dtype=DTYPES, order="C", ensure_all_finite=False, ensure_min_samples=0)
    values = np.asarray(chunk)
    values = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    return np.require(values, requirements=["C", "W"])


def with_row(error: Exception, n_before: int) -> Exception:
    """Return an error that names a row of a chunk, with its number among all rows."""
    said = re.sub(r"first in row (\d+)", lambda found: f"first in row {n_before + int(found[1])}", str(error))
    return type(error)(said)


def part_result(function: Callable[..., Any], chunk: Any, *by_row: Rows) -> PartResult:
    """Return a function of a chunk and of the rows of further arrays that belong to it."""
    if not len(chunk):
        return PartResult(0)
    try:
        return PartResult(len(chunk), function(chunk, *by_row))
    except (TypeError, ValueError) as error:
        return PartResult(len(chunk), error=error)


def _on_chunk(function: Callable[..., Any], shared: Entry, chunk: Any, *arguments: Any) -> Any:
    return function(shared.value, chunk, *arguments)


def _length(_: None, chunk: Any) -> int:
    return len(chunk)


def _take(reader: Entry, chunk: Any, choice: Choice) -> tuple[Rows, ...]:
    values = reader.value(chunk)
    return tuple(values[rows] for rows in choice.rows)
