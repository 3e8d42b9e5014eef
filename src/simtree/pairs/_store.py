"""Samples that are not one array in memory: what models ask of them, so that one `fit` serves arrays and clusters alike.

They are given as a user has them, in parts that may be tables (`GivenSamples`), and become a matrix once a model has checked
their numbers or read their columns (`SampleStore`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simtree.pairs._sources import IndexPairs, PairSource

if TYPE_CHECKING:
    from simtree.pairs._table import TableColumns

Rows = NDArray[Any]


class GivenSamples(ABC):
    """Samples in consecutive parts, each an array or a data frame.

    Attributes
    ----------
    head : array-like of shape (0, n_columns)
        Names and types of the columns.
    """

    ndim = 2
    head: Any

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of columns."""

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def map_parts(self, what: str, function: Callable[..., Any], *by_row: Rows) -> list[Any]:
        """Return a function of each part, in order.

        Parameters
        ----------
        what : str
            Name of such a call, for people who watch.
        function : callable
            Function of the rows of a part and of the rows of each further array that belong to it.
        *by_row : ndarrays of shape (n_samples, ...)
            Further arrays.

        Returns
        -------
        list
            The results. If there are several parts, a ValueError or TypeError names the row among all of them.
        """

    @abstractmethod
    def check(self, estimator: Any, *, reset: bool) -> SampleStore:
        """Check that all values are numbers, and set or compare the number and the names of features.

        Parameters
        ----------
        estimator : estimator
            The estimator; it tells whether values may be missing.
        reset : bool
            Whether this is a call of ``fit``.

        Returns
        -------
        SampleStore
            The checked samples.
        """

    @abstractmethod
    def read(self, columns: TableColumns) -> SampleStore:
        """Return the samples as a matrix of numbers and codes of categories.

        Parameters
        ----------
        columns : TableColumns
            How the columns are read.

        Returns
        -------
        SampleStore
            The matrix; its values are checked.
        """


class SampleStore(GivenSamples):
    """A matrix of samples whose rows are read by number, and near which trees are grown and pairs are scored.

    Models treat it as an array as far as possible: it has a length, a shape and a type, and rows are taken with an index. What
    needs only the rows of some pairs takes them with `with_rows`.

    Attributes
    ----------
    shape : tuple of int
        Numbers of samples and of columns.
    dtype : numpy.dtype
        Type of the values, float32 or float64.
    """

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @property
    def size(self) -> int:
        """Number of values."""
        return self.shape[0] * self.shape[1]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Rows:
        return np.asarray(self[np.arange(len(self))], dtype=dtype)

    @abstractmethod
    def __getitem__(self, rows: NDArray[Any] | slice) -> Rows:
        """Return some rows as an array."""

    @abstractmethod
    def min(self, axis: int | None = None) -> Any:
        """Return the lowest value, or those of the columns; NaN if a value is missing."""

    @abstractmethod
    def max(self, axis: int | None = None) -> Any:
        """Return the highest value, or those of the columns; NaN if a value is missing."""

    @abstractmethod
    def extremes(self, axis: int | None = None) -> tuple[Any, Any]:
        """Return the lowest and the highest value, or those of the columns; missing ones do not count."""

    @abstractmethod
    def row_hash(self) -> int:
        """Return what `simtree.growing._bagging.hash_rows` returns for the samples."""

    @abstractmethod
    def without_private(self, columns: TableColumns, identities: NDArray[np.int64]) -> tuple[SampleStore, TableColumns]:
        """Return the samples that were read by some columns without values that only one identity has.

        Parameters
        ----------
        columns : TableColumns
            How the samples were read.
        identities : ndarray of int of shape (n_samples,)
            Identity of each sample.

        Returns
        -------
        samples : SampleStore
            The samples as the new columns read them.
        columns : TableColumns
            The columns, see `TableColumns.without_private`.
        """

    @abstractmethod
    def refuse_missing(self, estimator: Any, names: Sequence[str] | None) -> None:
        """Raise if a value is missing, with its place and what helps.

        Parameters
        ----------
        estimator : estimator
            What needs complete numbers.
        names : sequence of str or None
            Names of the columns.
        """

    @abstractmethod
    def select(self, columns: slice) -> SampleStore:
        """Return some columns of the samples."""

    @abstractmethod
    def append(self, values: Rows) -> SampleStore:
        """Return the samples with further columns.

        Parameters
        ----------
        values : ndarray of shape (n_samples, n_further)
            The further columns. They are sent along: small integers as a small type.

        Returns
        -------
        SampleStore
            The samples with these columns, as float64.
        """

    @abstractmethod
    def map(self, function: Callable[[Rows], Rows]) -> SampleStore:
        """Return the samples transformed by a function.

        Parameters
        ----------
        function : callable
            Function from some rows to as many rows, in which each row depends on its own sample alone, bit for bit.

        Returns
        -------
        SampleStore
            The transformed samples.
        """

    @abstractmethod
    def replace(self, rows: NDArray[np.int64], values: Rows) -> SampleStore:
        """Return the samples with other values in some rows.

        Parameters
        ----------
        rows : ndarray of int
            Row numbers in increasing order.
        values : ndarray of shape (n_rows, n_columns)
            Their values.

        Returns
        -------
        SampleStore
            The samples with these values.
        """

    @abstractmethod
    def grow(self, tasks: Sequence[Any], source: PairSource, hard: IndexPairs | None = None) -> Iterator[Any]:
        """Yield the trees of some tasks in order, see `simtree.growing._bagging.grow_trees`.

        Parameters
        ----------
        tasks : sequence of TreeTask
            The trees to be grown.
        source : PairSource
            Where their pairs come from.
        hard : IndexPairs, optional
            Hard pairs, see `TreeTask.draw`.

        Yields
        ------
        RankTree
            A grown tree.
        """

    @abstractmethod
    def scorer(self, model: Any) -> Callable[[Any, Any], NDArray[np.float64]]:
        """Return a function that scores pairs given as row numbers of these samples, which are prepared for the model.

        Parameters
        ----------
        model : Similarity
            The model.

        Returns
        -------
        callable
            Function from two arrays of row numbers to scores.
        """

    @abstractmethod
    def compute(self, what: str, function: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """Return the results of independent calls, each made where there is room for it.

        Parameters
        ----------
        what : str
            Name of such a call, for people who watch.
        function : callable
            Function of a part.
        parts : sequence
            What the function is called with.

        Returns
        -------
        list
            The results; a ValueError that a call raises is its result.
        """


def mapped(samples: Any, function: Callable[[Any], Any]) -> Any:
    """Return samples, an array or a store, transformed by a function of rows, see `SampleStore.map`.

    Examples
    --------
    >>> mapped(np.ones((1, 2)), lambda rows: 2 * rows)
    array([[2., 2.]])
    """
    return samples.map(function) if isinstance(samples, SampleStore) else function(samples)


def selected(samples: Any, columns: slice) -> Any:
    """Return some columns of samples, an array or a store.

    Examples
    --------
    >>> selected(np.array([[1.0, 2.0, 3.0]]), slice(0, 2))
    array([[1., 2.]])
    """
    return samples.select(columns) if isinstance(samples, SampleStore) else samples[:, columns]


def appended(samples: Any, values: Rows) -> Any:
    """Return samples, an array or a store, with further columns.

    Examples
    --------
    >>> appended(np.array([[1.0], [2.0]]), np.array([[3], [4]], dtype=np.uint8))
    array([[1., 3.],
           [2., 4.]])
    """
    if isinstance(samples, SampleStore):
        return samples.append(values)
    return np.hstack([samples, values.astype(np.float64)])


def mapped_parts(samples: Any, what: str, function: Callable[..., Any], *by_row: Rows) -> list[Any]:
    """Return a function of each part of samples, see `GivenSamples.map_parts`; an array or a table is one part.

    Examples
    --------
    >>> mapped_parts(np.ones((2, 3)), "count", lambda rows, used: rows[used].sum(), np.array([True, False]))
    [np.float64(3.0)]
    """
    if isinstance(samples, GivenSamples):
        return samples.map_parts(what, function, *by_row)
    return [function(samples, *by_row)]


def with_rows(samples: Any, pairs: IndexPairs) -> tuple[Rows, IndexPairs, NDArray[np.int64] | slice]:
    """Return samples in memory that pairs refer to.

    Parameters
    ----------
    samples : ndarray or SampleStore
        All samples.
    pairs : IndexPairs
        Pairs of them.

    Returns
    -------
    samples : ndarray
        An array as it is; of a store, the rows that occur in the pairs, in increasing order.
    pairs : IndexPairs
        The pairs in terms of these rows.
    rows : ndarray of int, or slice
        The rows among all samples.

    Examples
    --------
    >>> pairs = IndexPairs(np.array([0]), np.array([1]), np.array([True]))
    >>> with_rows(np.zeros((5, 2)), pairs)[0].shape
    (5, 2)
    """
    if not isinstance(samples, SampleStore):
        return samples, pairs, slice(None)
    rows, local = renumbered(pairs)
    return samples[rows], local, rows


def renumbered(pairs: IndexPairs) -> tuple[NDArray[np.int64], IndexPairs]:
    """Return the rows that occur in pairs, in increasing order, and the pairs in terms of these rows.

    Examples
    --------
    >>> rows, local = renumbered(IndexPairs(np.array([9, 4]), np.array([4, 7]), np.array([True, False])))
    >>> rows, local.first, local.second
    (array([4, 7, 9]), array([2, 0], dtype=int32), array([0, 1], dtype=int32))
    """
    rows, numbers = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = numbers.astype(np.int32).reshape(2, -1)
    return rows.astype(np.int64), IndexPairs(first, second, pairs.same)
