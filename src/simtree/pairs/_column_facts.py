"""What is known of the columns of a table, found part by part: facts of parts are joined to those of the whole table."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.pairs._cells import CATEGORY, DATE, DAY, Cells, Value, date_name, table_cells
from simtree.pairs._codes import digest


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column, or of a part of it.

    Parameters
    ----------
    kind : str
        Kind of its cells; without any value in a part, other parts decide.
    n_rows, n_missing : int
        Numbers of cells, and of those that are missing.
    values : tuple of str and float, or None
        Distinct values, if it may be a category; None if there are too many to be told.
    hashes : ndarray of uint64
        Their hashes, if they are not told.
    has_time : bool
        Whether a date has a time of the day.
    infinite_row : int or None
        The first row with infinity.
    example : object
        A value.
    large : float or None
        One of the integers that cannot be told from their neighbours as numbers.
    """

    kind: str
    n_rows: int
    n_missing: int
    values: tuple[Value, ...] | None = ()
    hashes: NDArray[np.uint64] | None = None
    has_time: bool = False
    infinite_row: int | None = None
    example: Any = None
    large: float | None = None

    @classmethod
    def of(cls, cells: Cells, is_chosen: bool, max_values: int | None = None) -> ColumnFacts:
        """Return the facts of some cells.

        Parameters
        ----------
        cells : Cells
            The cells.
        is_chosen : bool
            Whether the column is said to be a category.
        max_values : int, optional
            Of more distinct values, only hashes are kept.

        Returns
        -------
        ColumnFacts
        """
        missing = cells.missing
        found = cls(
            cells.kind, len(cells.array), int(np.count_nonzero(missing)), infinite_row=cells.infinite_row, large=cells.large
        )
        if not missing.all():
            place = int(np.argmin(missing))
            example = cells.array[place].item() if cells.kind != CATEGORY else cells.values[cells.array[place]]
            found = replace(found, example=example if cells.kind != DATE else date_name(cells.array[place]))
        if is_chosen or cells.kind == CATEGORY:
            values = cells.as_values().values
            if max_values is not None and len(values) > max_values:
                return replace(found, values=None, hashes=_hashes(values))
            return replace(found, values=values)
        if cells.kind == DATE:
            stamps = cells.array[~missing].astype(np.int64)
            return replace(found, has_time=bool((stamps % DAY != 0).any()))
        return found

    @classmethod
    def of_table(cls, X: Any, chosen: Collection[int], max_values: int | None = None) -> list[ColumnFacts]:
        """Return the facts of the columns of a table, or of a part of it.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow), or array-like of shape (n_samples, n_features)
            The table.
        chosen : collection of int
            Columns that are said to be categories.
        max_values : int, optional
            Of a column with more distinct values, only hashes are kept.

        Returns
        -------
        list of ColumnFacts
            One per column.
        """
        return [cls.of(cells, j in chosen, max_values) for j, cells in enumerate(table_cells(X)[1])]

    @property
    def n_present(self) -> int:
        """Number of cells that have a value."""
        return self.n_rows - self.n_missing

    @property
    def n_distinct(self) -> int:
        """Number of distinct values."""
        if self.values is not None:
            return len(self.values)
        assert self.hashes is not None
        return len(self.hashes)


def joined_facts(names: Sequence[str], parts: Sequence[list[ColumnFacts]]) -> list[ColumnFacts]:
    """Return the facts of the columns of a table from those of its parts.

    Parameters
    ----------
    names : sequence of str
        Names of the columns, for errors.
    parts : sequence of lists of ColumnFacts
        What `ColumnFacts.of_table` returned for each part, in their order.

    Returns
    -------
    list of ColumnFacts
        One per column.
    """
    return [_joined(name, list(own)) for name, own in zip(names, zip(*parts, strict=True), strict=True)]


def distinct_values(X: Any, columns: Sequence[int]) -> list[tuple[Value, ...]]:
    """Return the distinct values of some columns of a table.

    Parameters
    ----------
    X : data frame (pandas, polars, pyarrow), or array-like of shape (n_samples, n_features)
        The table.
    columns : sequence of int
        Numbers of columns.

    Returns
    -------
    list of tuples of str and float
    """
    cells = table_cells(X)[1]
    return [cells[j].as_values().values for j in columns]


def warn_of_empty(columns: Sequence[str]) -> None:
    """Warn of columns of training samples that have no value, if there are any.

    Parameters
    ----------
    columns : sequence of str
        What they are called.
    """
    if columns:
        several = len(columns) > 1
        warnings.warn(
            f"X has no value in column{'s' if several else ''} {', '.join(columns)}; the model does not use "
            f"{'them' if several else 'it'}.",
            UserWarning,
            stacklevel=3,
        )


def warn_of_distinct(name: str, n_distinct: int, n_present: int) -> None:
    """Warn of a column of text that is left out, for it is different in nearly every row.

    Parameters
    ----------
    name : str
        Its name.
    n_distinct, n_present : int
        Numbers of distinct values, and of rows that have one.
    """
    reason = "unless categorical_features names it" if n_distinct < n_present else "for no two rows can be equal in it"
    warnings.warn(
        f"X has the column {name!r} of text with a different value in nearly every row ({n_distinct:,} values in "
        f"{n_present:,} rows); it is left out, {reason}.",
        UserWarning,
        stacklevel=3,
    )


def _joined(name: str, parts: list[ColumnFacts]) -> ColumnFacts:
    """Return the facts of a column from those of its parts."""
    if len(parts) == 1:
        return parts[0]
    # A column of objects without any value in a part could be of any kind.
    telling = [part for part in parts if part.n_present] or parts[:1]
    other = next((part for part in telling if part.kind != telling[0].kind), None)
    if other is not None:
        raise ValueError(
            f"X has the column {name!r} of mixed types, such as {telling[0].example!r} and {other.example!r}; make all of its "
            "values text, or all of them numbers."
        )
    starts = np.cumsum([0, *(part.n_rows for part in parts)]).tolist()
    infinite = [start + part.infinite_row for start, part in zip(starts, parts, strict=False) if part.infinite_row is not None]
    values: tuple[Value, ...] | None = None
    hashes = None
    if all(part.values is not None for part in parts):
        values = tuple(dict.fromkeys(value for part in parts for value in part.values or ()))
    else:
        hashes = np.unique(np.concatenate([_hashes(part.values) if part.hashes is None else part.hashes for part in parts]))
    return ColumnFacts(
        telling[0].kind,
        starts[-1],
        sum(part.n_missing for part in parts),
        values,
        hashes,
        any(part.has_time for part in parts),
        infinite[0] if infinite else None,
        telling[0].example,
        next((part.large for part in parts if part.large is not None), None),
    )


def _hashes(values: tuple[Value, ...] | None) -> NDArray[np.uint64]:
    """Return a hash of each value: two values have the same one with a probability of 5e-20."""
    texts = (f"s{value}" if isinstance(value, str) else f"n{value!r}" for value in values or ())
    return np.array([digest(text) for text in texts], dtype=np.uint64)
