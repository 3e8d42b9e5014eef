"""One column of a table: what a model knows of it, and how its cells are read into a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.pairs._cells import BOOLEAN, CATEGORY, DATE, DAY, DURATION, NUMBER, Cells, Value, date_name, date_named, moment_of
from simtree.pairs._codes import MISSING, hashed

Floats = NDArray[np.float64]

LEFT_OUT = "left out"
KINDS = (NUMBER, BOOLEAN, CATEGORY, DATE, LEFT_OUT)


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        Its name; its number if there are no names.
    kind : str
        One of `KINDS`.
    missing : float
        Share of missing values in the training table.
    n_distinct : int
        Number of distinct values of a category in the training table.
    values : tuple of str and float
        Vocabulary of a category.
    has_time : bool
        Whether a date has a time of the day.
    """

    name: str
    kind: str
    missing: float = 0.0
    n_distinct: int = 0
    values: tuple[Value, ...] = ()
    has_time: bool = False

    # What is cached is no part of a copy.
    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def types(self) -> set[bool]:
        """Whether values are text: of all of them."""
        return {isinstance(value, str) for value in self.values}

    @cached_property
    def codes(self) -> dict[Value, float]:
        """Code of each value."""
        return {value: float(code) for code, value in enumerate(self.values)}

    @cached_property
    def dates(self) -> dict[Value, float]:
        """Code of each value that is a date, by the name of the date: files of earlier versions spell dates in other ways."""
        return {date_named(value): code for value, code in self.codes.items() if moment_of(value) is not None}

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix that this one is read into."""
        if self.kind == LEFT_OUT:
            return []
        return [self.name, f"{self.name}: hour"] if self.kind == DATE and self.has_time else [self.name]

    def __str__(self) -> str:
        distinct = f" with {count(self.n_distinct, 'value')}" if self.kind == CATEGORY else ""
        time = " and time" if self.has_time else ""
        missing = f", {self.missing:.1%} missing" if self.missing else ""
        return f"{self.kind}{time}{distinct}{missing}"


def read_cells(column: Column, cells: Cells) -> list[Floats]:
    """Return the columns of the matrix that the cells of a column are read into.

    Parameters
    ----------
    column : Column
        The column.
    cells : Cells
        Its cells.

    Returns
    -------
    list of ndarrays of shape (n_samples,)
        None if the column is left out, two of a date with a time.
    """
    if column.kind == CATEGORY:
        _check_finite(column.name, cells)
        own = cells.as_values()
        _check_type(column, cells, own.values)
        check_large(column.name, cells.large)
        codes = [_code(column, value, is_date=cells.kind == DATE) for value in own.values]
        return [np.array([*codes, MISSING])[own.array]]
    if cells.kind != column.kind and not (column.kind in (NUMBER, BOOLEAN) and cells.kind in (NUMBER, BOOLEAN)):
        if not cells.missing.all():
            raise _changed_type(column.name, cells.kind, cells.values, column.kind)
        return [np.full(len(cells.array), np.nan) for _ in column.names]
    _check_finite(column.name, cells)
    if column.kind != DATE:
        return [np.asarray(cells.array, dtype=np.float64)]
    stamps = cells.array.astype(np.int64)
    days, rest = np.divmod(stamps, DAY)
    parts = [np.where(cells.missing, np.nan, days), np.where(cells.missing, np.nan, rest / (DAY / 24))]
    return parts[: len(column.names)]


def _code(column: Column, value: Value, *, is_date: bool) -> float:
    """Return the code of a value; ``is_date``: it is the name of a date."""
    known = column.codes.get(value)
    if known is not None:
        return known
    moment = None if is_date else moment_of(value)
    if not is_date and moment is None:
        return hashed(value)
    name = value if moment is None else date_name(moment)
    known = column.codes.get(name, column.dates.get(name))
    return hashed(name) if known is None else known


def _check_type(column: Column, cells: Cells, values: Sequence[Value]) -> None:
    """Raise if the values of a category are of another type than all of its vocabulary, so that none can be known."""
    found, fitted = {isinstance(value, str) for value in values}, column.types
    differ = not found & fitted
    if not found or not fitted or not (differ or cells.kind == DATE):
        return
    if differ or not column.dates:
        kind = cells.kind if cells.kind != CATEGORY or True in found else NUMBER
        if cells.is_duration:
            kind = DURATION
        elif all(moment_of(value) is not None for value in values):
            kind = DATE
        of_dates = all(moment_of(value) is not None for value in column.values)
        known = NUMBER if True not in fitted else DATE if of_dates else CATEGORY
        raise _changed_type(column.name, kind, values, known, is_category=True)


def _changed_type(name: str, found: str, values: Sequence[Value], fitted: str, *, is_category: bool = False) -> ValueError:
    """Return the error for a column of another kind than in training."""
    called = {CATEGORY: "text", NUMBER: "numbers", BOOLEAN: "booleans", DATE: "dates", DURATION: "durations"}
    such = f", such as {values[0]!r}" if found == CATEGORY else ""
    remedy = f"convert it to {called[fitted]}"
    if is_category and found in (DATE, DURATION):  # which earlier versions read as numbers, or as text
        remedy = f"fit the model again on {called[found]}, or {remedy}"
    return ValueError(
        f"X has the column {name!r} of {called[found]}{such}, but the model was fitted on {called[fitted]} there; {remedy}."
    )


def _check_finite(name: str, cells: Cells) -> None:
    if cells.infinite_row is not None:
        raise infinity(name, cells.infinite_row)


def check_large(name: str, large: float | None) -> None:
    """Raise if a category has integers that cannot be told apart.

    Parameters
    ----------
    name : str
        Name of the column.
    large : float or None
        One of them, if there are any: `Cells.large`.
    """
    if large is not None:
        integer = f"the integer {large}" if isinstance(large, int) else f"an integer that is about {large:.15g}"
        raise ValueError(
            f"X has the category {name!r} with {integer}, and integers from 2**53 on cannot be told apart; make text of them, "
            "in training as in scoring."
        )


def infinity(name: str, row: int) -> ValueError:
    """Return the error for a column with infinity.

    Parameters
    ----------
    name : str
        Name of the column.
    row : int
        The first row with infinity.

    Returns
    -------
    ValueError
    """
    return ValueError(
        f"X contains infinity in column {name!r}, first in row {row}; replace it by a finite number, or leave the row out."
    )
