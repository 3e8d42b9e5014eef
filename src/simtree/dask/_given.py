"""Samples as users have them on a cluster, before a model has checked or read them: Dask collections, arrays, data frames."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import check_dates, check_rows
from simtree.dask._chunks import Chunks, Reader, as_matrix, part_result
from simtree.dask._cluster import Cluster
from simtree.dask._samples import ArraySamples, ChunkSamples, ClusterSamples
from simtree.pairs._inputs import DTYPES
from simtree.pairs._store import GivenSamples
from simtree.pairs._table import TableColumns, is_table

Rows = NDArray[Any]


class GivenArray(GivenSamples):
    """An array or a data frame of this program.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    X : array-like of shape (n_samples, n_columns)
        The samples.
    """

    def __init__(self, cluster: Cluster, X: Any) -> None:
        self._cluster = cluster
        self._X = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else X  # numbers beside words stay numbers
        self.head = self._X[:0]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of columns."""
        n_samples, n_columns = np.shape(self._X)
        return n_samples, n_columns

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Rows:
        return np.asarray(self._X, dtype=dtype)

    @cached_property
    def _numbers(self) -> ArraySamples:
        check_dates("X", self._X)
        values = check_rows("X", self._X, dtype=DTYPES, order="C", ensure_all_finite="allow-nan")
        return ArraySamples(self._cluster, values, self._X[:0] if hasattr(self._X, "columns") else None)

    def map_parts(self, what: str, function: Callable[..., Any], *by_row: Rows) -> list[Any]:
        """Return the function of all rows: they are one part."""
        return [function(self._X, *by_row)]

    def check(self, estimator: Any, *, reset: bool) -> ClusterSamples:
        """Check the values, and set or compare the number and names of features."""
        return self._numbers.check(estimator, reset=reset)

    def read(self, columns: TableColumns) -> ArraySamples:
        """Return the samples as a matrix of numbers and codes of categories."""
        return ArraySamples(self._cluster, columns.read(self._X))


class GivenChunks(GivenSamples):
    """A Dask array or data frame. What fits into every worker is fetched once it is a matrix, to be sent to all.

    Parameters
    ----------
    cluster : Cluster
        The workers.
    collection : dask.array.Array or dask.dataframe.DataFrame
        The collection; its chunks have all columns.
    head : array-like of shape (0, n_columns)
        Names and types of the columns.
    """

    def __init__(self, cluster: Cluster, collection: Any, head: Any) -> None:
        self._cluster, self._collection, self.head = cluster, collection, head
        self._chunks = Chunks(cluster, collection)
        self._is_looked_at = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of columns."""
        return int(self._chunks.starts[-1]), int(self.head.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Rows:
        client = self._cluster.client
        return np.asarray(client.gather(client.compute(self._collection)), dtype=dtype)

    @cached_property
    def _numbers(self) -> ClusterSamples:
        check_dates("X", self.head)
        samples = ChunkSamples(self._chunks, Reader(), self.head)
        if not self._chunks.are_counted or is_table(self.head):
            samples.check_values()  # counts rows, too, and names a column of text
        return self._fetched(samples, as_matrix(self.head), self.head)

    def _fetched(self, samples: ChunkSamples, empty: Rows, head: Any) -> ClusterSamples:
        """Return samples as an array if every worker has room for it; ``empty`` is one without rows."""
        n_bytes = len(self) * empty.shape[1] * empty.dtype.itemsize
        return ArraySamples(self._cluster, np.asarray(samples), head) if self._cluster.has_room_for(n_bytes) else samples

    def map_parts(self, what: str, function: Callable[..., Any], *by_row: Rows) -> list[Any]:
        """Return the function of each chunk."""
        own = None
        if by_row:
            ends = pairwise(self._chunks.starts.tolist())
            own = [tuple(array[start:stop] for array in by_row) for start, stop in ends]
        self._is_looked_at = True
        return self._chunks.results(self._chunks.each(what, part_result, function, own))

    def check(self, estimator: Any, *, reset: bool) -> ClusterSamples:
        """Check the values in one pass over the chunks, and set or compare the number and names of features."""
        return self._numbers.check(estimator, reset=reset)

    def read(self, columns: TableColumns) -> ClusterSamples:
        """Return the samples as a matrix of numbers and codes of categories."""
        head = columns.read(self.head)  # tells a column that is not there before anything is read
        samples = ChunkSamples(self._chunks, Reader(columns), head)
        if not self._is_looked_at:
            samples.check_values()
        return self._fetched(samples, head, head)
