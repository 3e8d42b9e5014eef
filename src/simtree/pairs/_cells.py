"""Cells of the columns of a table: numbers, booleans, dates, or values that rows have the numbers of."""

from __future__ import annotations

import numbers
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import count

# Types of pyarrow whose arrays NumPy has, too.
PLAIN_ARROW = ("int", "uint", "float", "double", "half", "date", "timestamp", "duration")
# Objects that become numbers: days.
DURATION = "duration"
NUMBER, BOOLEAN, CATEGORY, DATE = "number", "boolean", "category", "date"
# Microseconds, which reach 290,000 years: nanoseconds would end in 2262.
DAY = 86_400 * 10**6
# From here on, several integers are the same floating-point number.
LARGE = 2**53
# Dates, with or without a time and a zone, as ISO 8601 has them; white space may stand before the zone.
ISO_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:([T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)(?:\s?(Z|[+-]\d{2}(?::?\d{2})?))?)?")

Value = str | float


@dataclass(frozen=True)
class Cells:
    """Cells of a column: numbers, booleans, dates (datetime64[us]), or values of which each row has a number.

    ``large`` is one of the integers that cannot be told from their neighbours as numbers, if there are any; a floating-point
    number if it has been rounded already. ``is_duration``: the numbers, or values, are days that something lasts.
    """

    kind: str
    array: NDArray[Any]
    values: tuple[Value, ...] = ()
    large: float | None = None
    is_duration: bool = False

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each cell is missing."""
        if self.kind == CATEGORY:
            return np.asarray(self.array < 0)
        return np.asarray(np.isnat(self.array) if self.kind == DATE else np.isnan(self.array))

    @property
    def infinite_row(self) -> int | None:
        """The first row with infinity."""
        if self.kind == CATEGORY:
            infinite = np.array([*(value in (np.inf, -np.inf) for value in self.values), False])[self.array]
        else:
            infinite = np.isinf(self.array) if self.kind == NUMBER else np.zeros(1, dtype=bool)
        return int(np.argmax(infinite)) if infinite.any() else None

    def as_values(self) -> Cells:
        """Return numbers, booleans or dates as values."""
        if self.kind == CATEGORY:
            return self
        found, codes = np.unique(self.array, return_inverse=True)
        codes = np.where(self.missing, -1, codes)
        known = np.unique(codes[codes >= 0])
        renumbered = np.full(len(found) + 1, -1)
        renumbered[known] = np.arange(len(known))
        values = date_names(found[known]) if self.kind == DATE else [_key(value) for value in found[known].tolist()]
        return Cells(CATEGORY, renumbered[codes], tuple(values), self.large, self.is_duration)


def table_cells(X: Any) -> tuple[list[str] | None, list[Cells]]:
    """Return the names of the columns of a table, None if it has none, and their cells.

    Parameters
    ----------
    X : data frame (pandas, polars, pyarrow), or array-like of shape (n_samples, n_features)
        The table.

    Returns
    -------
    names : list of str or None
        Names of the columns.
    cells : list of Cells
        Their cells.
    """
    names = column_names(X)[0]
    if names is not None:
        columns = (own for _, own in _frame_columns(X))
        return names, [_series_cells(name, column) for name, column in zip(names, columns, strict=True)]
    return None, [_array_cells(str(j), column) for j, column in enumerate(_as_table(X).T)]


def column_names(X: Any) -> tuple[list[str] | None, int]:
    """Return the names of the columns of a table, None if it has none, and their number.

    Parameters
    ----------
    X : data frame (pandas, polars, pyarrow), or array-like of shape (n_samples, n_features)
        The table.

    Returns
    -------
    names : list of str or None
        Names of the columns.
    n_columns : int
        Number of columns.
    """
    names = [str(name) for name, _ in _frame_columns(X)]
    if not names:
        return None, int(_as_table(X).shape[1])
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has two columns {twice!r}; give them different names.")
    return names, len(names)


def _as_table(X: Any) -> NDArray[Any]:
    array = np.asarray(X) if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if array.ndim != 2:
        raise ValueError(f"X has {count(array.ndim, 'dimension')}; give a table with rows and columns.")
    return array


def _frame_columns(X: Any) -> Iterator[tuple[Any, Any]]:
    if hasattr(X, "column_names") and hasattr(X, "schema"):  # pyarrow
        for name in X.column_names:
            yield name, X.column(name)
    elif hasattr(X, "columns") and hasattr(X, "dtypes") and not callable(X.columns):
        for j, name in enumerate(X.columns):
            yield name, X.iloc[:, j] if hasattr(X, "iloc") else X[name]


def _series_cells(name: str, column: Any) -> Cells:
    """Return the cells of a column of a data frame."""
    dtype = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if hasattr(column, "cat") and hasattr(column.cat, "codes"):  # a category of pandas
        values = column.cat.categories
        return _coded(name, column.cat.codes.to_numpy(), values.to_numpy())
    if dtype.startswith("dictionary"):  # a category of pyarrow, also inside of pandas; of numbers, too
        cells = column.to_pylist() if hasattr(column, "to_pylist") else column.astype(object).tolist()
        return _object_cells(name, _as_objects(cells)).as_values()
    if hasattr(column, "to_pylist") and not dtype.startswith(PLAIN_ARROW):
        array = _as_objects(column.to_pylist())  # pyarrow: strings and booleans
    elif hasattr(column, "isna") and is_numeric(column.dtype):
        plain = isinstance(column.dtype, np.dtype)
        array = column.to_numpy() if plain else column.to_numpy(dtype=np.float64, na_value=np.nan)
        if dtype.startswith("bool"):
            return Cells(BOOLEAN, np.asarray(array, dtype=np.float64))
    elif dtype.startswith("datetime64") and hasattr(column, "dt") and getattr(column.dt, "tz", None) is not None:
        array = column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    else:
        array = np.asarray(column.to_numpy())
        if array.ndim != 1:  # polars makes a matrix of structs and of arrays
            array = _as_objects(column.to_list())
    return _array_cells(name, array, is_integer=dtype.startswith(("int", "uint")))


def _as_objects(cells: list[Any]) -> NDArray[Any]:
    """Return cells as an array of one dimension, also if they are lists."""
    return np.array([*cells, None], dtype=object)[:-1]


def _array_cells(name: str, array: NDArray[Any], *, is_integer: bool = False) -> Cells:
    """Return the cells of an array: by its type, or by the types of its objects, which must be of one kind.

    ``is_integer``: the numbers were integers, also if they are not any more because some are missing.
    """
    kind = array.dtype.kind
    if kind in "iuf":
        values = np.asarray(array, dtype=np.float64)
        large = np.abs(values) >= LARGE if is_integer or kind in "iu" else np.zeros(1, dtype=bool)
        return Cells(NUMBER, values, large=array[np.argmax(large)].item() if large.any() else None)
    if kind == "b":
        return Cells(BOOLEAN, np.asarray(array, dtype=np.float64))
    if kind == "M":
        return Cells(DATE, _dates(name, array))
    if kind == "m":
        return Cells(NUMBER, array / np.timedelta64(1, "D"), is_duration=True)
    if kind not in "OUT":
        raise ValueError(f"X has the column {name!r} of type {array.dtype}; convert it to numbers or text, or drop it.")
    return _object_cells(name, array)


def _object_cells(name: str, array: NDArray[Any]) -> Cells:
    lookup: dict[Any, int] = {}
    try:
        codes = np.fromiter(
            (-1 if is_missing(cell) else lookup.setdefault(cell, len(lookup)) for cell in array), np.int64, len(array)
        )
    except TypeError:  # a list cannot be looked up
        codes = None
    values = list(lookup)
    odd = next((cell for cell in (array if codes is None else values) if not is_missing(cell) and _kind_of(cell) is None), None)
    if odd is not None:
        raise ValueError(
            f"X has the column {name!r} with values of the type {type(odd).__name__}, such as {odd!r}; make numbers, text or "
            "dates of them, or drop it."
        )
    assert codes is not None
    kinds = {_kind_of(value) for value in values}
    if len(kinds) > 1:
        first = values[0]
        other = next(value for value in values if _kind_of(value) != _kind_of(first))
        raise ValueError(
            f"X has the column {name!r} of mixed types, such as {first!r} and {other!r}; make all of its values text, or all "
            "of them numbers."
        )
    kind = (kinds.pop() if kinds else None) or NUMBER
    if kind == CATEGORY:
        return Cells(CATEGORY, codes, tuple(values))
    if kind == DATE:
        dates = [_dates(name, np.array([plain_date(value)]))[0] for value in values]
        return Cells(DATE, np.array([*dates, "NaT"], dtype="datetime64[us]")[codes])
    if kind == DURATION:
        return Cells(NUMBER, np.array([*map(_days, values), np.nan])[codes], is_duration=True)
    return Cells(kind, np.array([*(float(value) for value in values), np.nan])[codes], large=_large_of(values))


def _coded(name: str, codes: NDArray[Any], values: NDArray[Any]) -> Cells:
    """Return the cells of a column of categories, of which only the values that occur are kept."""
    used = np.unique(codes[codes >= 0])
    if values.dtype.kind == "O":  # of any type, such as intervals
        lookup: dict[Value, int] = {}
        keys = [_key(value) for value in values[used]]
        array = np.array([lookup.setdefault(key, len(lookup)) for key in keys], dtype=np.int64)
        rounded = [value for value, key in zip(values[used], keys, strict=True) if not isinstance(key, str)]
        found = Cells(CATEGORY, array, tuple(lookup), _large_of(rounded))
    else:
        found = _array_cells(name, values[used]).as_values()
    renumbered = np.full(len(values) + 1, -1)
    renumbered[used] = found.array
    return replace(found, array=renumbered[codes])


def _large_of(values: Iterable[Any]) -> int | None:
    """Return an integer that cannot be told from its neighbours as a number, if there is one."""
    return next((int(value) for value in values if _is_integer(value) and not -LARGE < value < LARGE), None)


def _is_integer(value: Any) -> bool:
    """Return whether a value is an integer; a floating-point number is none, for it has been rounded."""
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return isinstance(value, numbers.Integral)


def is_missing(cell: Any) -> bool:
    """Return whether a cell is None, NaN, or what pandas has in their place."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def _kind_of(value: Any) -> str | None:
    if isinstance(value, str):
        return CATEGORY
    if isinstance(value, bool | np.bool_):
        return BOOLEAN
    if isinstance(value, timedelta | np.timedelta64):  # the latter is a number to NumPy
        return DURATION
    if isinstance(value, numbers.Real | Decimal):
        return NUMBER
    return DATE if isinstance(value, date | np.datetime64) else None


def _dates(name: str, array: NDArray[Any]) -> NDArray[np.datetime64]:
    """Return dates in microseconds; finer times are cut off."""
    dates = array.astype("datetime64[us]")
    known = array[~np.isnat(array)]
    if len(known) and np.can_cast(array.dtype, dates.dtype):  # of a coarser unit
        wrong = known[known.astype(dates.dtype).astype(array.dtype) != known]
        if len(wrong):
            raise ValueError(
                f"X has the column {name!r} with the date {wrong[0]}, which is too far away; correct it, or make it missing."
            )
    return dates


def plain_date(value: date | np.datetime64) -> np.datetime64:
    """Return a date without its time zone, in UTC.

    Parameters
    ----------
    value : date, datetime or datetime64
        The date.

    Returns
    -------
    datetime64

    Examples
    --------
    >>> print(plain_date(datetime.fromisoformat("9999-12-31T23:00:00-05:00")))
    10000-01-01T04:00:00.000000
    """
    if not isinstance(value, datetime) or (offset := value.utcoffset()) is None:
        return np.datetime64(value)
    return np.datetime64(value.replace(tzinfo=None), "us") - np.timedelta64(offset)


def _days(value: timedelta | np.timedelta64) -> float:
    return value / timedelta(days=1) if isinstance(value, timedelta) else float(value / np.timedelta64(1, "D"))


def date_names(dates: NDArray[np.datetime64]) -> list[str]:
    """Return what dates are called as values of a category, in all data frames and files.

    Parameters
    ----------
    dates : ndarray of datetime64
        The dates, in UTC.

    Returns
    -------
    list of str
        ISO dates, with a time unless it is midnight.

    Examples
    --------
    >>> date_names(np.array(["2020-01-31T00:00:00.000", "2020-01-31T12:30:00.250"], dtype="datetime64[ns]"))
    ['2020-01-31', '2020-01-31 12:30:00.250000']
    """
    texts = np.datetime_as_string(dates.astype("datetime64[us]")).tolist()
    return [text.replace("T", " ").removesuffix(".000000").removesuffix(" 00:00:00") for text in texts]


def date_name(moment: np.datetime64) -> str:
    """Return what a date is called as a value of a category, as `date_names` has it.

    Parameters
    ----------
    moment : datetime64
        The date, in UTC.

    Returns
    -------
    str

    Examples
    --------
    >>> date_name(np.datetime64("2020-01-31T00:00"))
    '2020-01-31'
    """
    return date_names(np.array([moment]))[0]


def date_named(value: Value) -> Value:
    """Return a value of a category as `date_names` has it, if it is a date in any spelling of ISO 8601.

    Parameters
    ----------
    value : str or float
        The value.

    Returns
    -------
    str or float

    Examples
    --------
    >>> date_named("2020-01-31T00:00"), date_named("soon")
    ('2020-01-31', 'soon')
    """
    moment = moment_of(value)
    return value if moment is None else date_name(moment)


def moment_of(value: Value) -> np.datetime64 | None:
    """Return the date that text is, by ISO 8601, with or without a time and a zone, in UTC; None if it is something else.

    Parameters
    ----------
    value : str or float
        A value of a category.

    Returns
    -------
    datetime64 or None

    Examples
    --------
    >>> print(moment_of("2020-01-31 12:30+02:00"), moment_of("soon"), moment_of(2020.0))
    2020-01-31T10:30:00.000000 None None
    """
    match = ISO_DATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        return plain_date(datetime.fromisoformat("".join(match.groups(""))))
    except ValueError:  # 2020-02-30
        return None


def _key(value: Any) -> Value:
    """Return a value as a vocabulary has it: text or a number."""
    if isinstance(value, str):
        return value
    if isinstance(value, date | np.datetime64):
        return date_name(plain_date(value))
    return float(value) + 0.0 if isinstance(value, numbers.Real | np.bool_) else str(value)  # -0.0 is 0.0


def is_numeric(dtype: Any) -> bool:
    """Return whether a type, of pandas or polars, is one of numbers or booleans."""
    if hasattr(dtype, "kind"):
        return bool(dtype.kind in "biuf")
    return str(dtype).startswith(("Int", "UInt", "Float", "Bool"))
