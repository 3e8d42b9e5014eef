"""Checks of matrices of samples: each error names the parameter, the column and the remedy in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data

from simtree._utils.validation import count

#: The largest finite float64.
MAX_FLOAT = float(np.finfo(np.float64).max)
#: Sums of squares of values up to this stay finite, over all pairs and features that memory can hold.
MAX_SQUARED = 1e140
#: Squares of smaller values lose digits, or are zero.
MIN_SQUARED = 1e-150
#: The square of a float32 that is larger overflows; and a float64 that is larger does not fit into a float32.
LARGE, MAX_FLOAT32 = 1e18, float(np.finfo(np.float32).max)

_DATES = "convert them to numbers, such as days since the first date, or drop them"


def check_matrix(estimator: Any, X: Any, *, reset: bool = True, stacked: bool = False, **options: Any) -> NDArray[Any]:
    """Return samples as scikit-learn's ``validate_data`` does, with errors that name the column.

    Parameters
    ----------
    estimator : estimator
        Its number and names of features are set or, if not ``reset``, compared.
    X : array-like of shape (n_samples, n_features)
        Samples.
    reset : bool, default=True
        Whether this is a call of ``fit``.
    stacked : bool, default=False
        Whether rows 2p and 2p + 1 are the samples of pair p.
    **options
        Further parameters of `sklearn.utils.check_array`.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Finite numbers; not copied if X is such an array already.
    """
    check_unmasked("X", X)
    check_dates("X", X)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            return np.asarray(validate_data(estimator, X, reset=reset, **options))
    except (TypeError, ValueError) as error:
        of_text = _about_text(estimator) if reset else ", but the model was fitted on numbers there; convert it to numbers"
        _raise_named("X", X, error, options, stacked, nan_remedy=_imputing(estimator), of_text=of_text)


def check_rows(name: str, rows: Any, *, stacked: bool = False, remedy: str | None = None, **options: Any) -> NDArray[Any]:
    """Return a matrix as scikit-learn's ``check_array`` does, with errors that name the column.

    Parameters
    ----------
    name : str
        Parameter to name in errors.
    rows : array-like of shape (n_rows, n_features)
        The matrix.
    stacked : bool, default=False
        Whether rows 2p and 2p + 1 are the samples of pair p.
    remedy : str, optional
        What to do about NaN and infinity; by default to replace them, or to leave the row or pair out.
    **options
        Further parameters of `sklearn.utils.check_array`.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Finite numbers.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(check_array(rows, input_name=name, **options))
    except (TypeError, ValueError) as error:
        _raise_named(name, rows, error, options, stacked, remedy)


def refuse_missing(estimator: Any, matrix: NDArray[Any], names: Sequence[str]) -> None:
    """Raise if a value is missing, with the name of its column and what helps.

    Parameters
    ----------
    estimator : estimator
        What needs complete numbers.
    matrix : ndarray of shape (n_samples, n_features)
        Numbers.
    names : sequence of str
        Names of the columns.
    """
    rows, columns = np.nonzero(np.isnan(matrix))
    if len(rows):
        raise missing_error(estimator, repr(names[columns[0]]), int(rows[0]))


def missing_error(estimator: Any, column: str, row: int) -> ValueError:
    """Return the error about a missing value, with its place and what helps.

    Parameters
    ----------
    estimator : estimator
        What needs complete numbers.
    column : str
        Number of the column, or its name in quotes.
    row : int
        Number of the row.

    Returns
    -------
    ValueError
    """
    return ValueError(f"X contains NaN in column {column}, first in row {row}; {_imputing(estimator)}, or leave the row out.")


def check_unmasked(name: str, values: Any) -> None:
    """Raise if any entry of a masked array is masked: the mask would be lost.

    Parameters
    ----------
    name : str
        Parameter to name in the error.
    values : object
        Anything; only a `numpy.ma.MaskedArray` can be refused.
    """
    if not isinstance(values, np.ma.MaskedArray) or not np.ma.is_masked(values):
        return
    mask = np.ma.getmaskarray(values)
    place = tuple(int(index) for index in np.argwhere(mask)[0])
    where = f"row {place[0]}" + (f" of column {place[-1]}" if len(place) > 1 else "")
    raise ValueError(
        f"{name} is a masked array with {count(int(mask.sum()), 'masked value')}, the first in {where}; "
        f"fill them with {name}.filled(value), or leave these rows out."
    )


def check_all_unmasked(**values: Any) -> None:
    """Raise as `check_unmasked` does, for several parameters by name."""
    for name, value in values.items():
        check_unmasked(name, value)


def has_missing(samples: Any) -> bool:
    """Return whether any value is NaN.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features), or a store of samples
        Numbers, none of them infinite.

    Returns
    -------
    bool

    Examples
    --------
    >>> has_missing(np.array([[1.0, 2.0], [np.nan, 3.0]]))
    True
    """
    return bool(samples.size) and bool(np.isnan(samples.min()))


def extremes(samples: Any, axis: int | None = None) -> tuple[Any, Any]:
    """Return the lowest and the highest value, of all values or of each column; missing ones do not count.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features), or a store of samples
        Numbers.
    axis : {None, 0}, default=None
        0 for the extremes of each column.

    Returns
    -------
    low, high : float, or ndarrays of shape (n_features,)
        NaN if there are no values.
    """
    if not has_missing(samples):
        return samples.min(axis=axis), samples.max(axis=axis)
    if hasattr(samples, "extremes"):  # a store, whose values need not be here
        low, high = samples.extremes(axis)
        return low, high
    values = np.asarray(samples)
    return np.fmin.reduce(values, axis=axis), np.fmax.reduce(values, axis=axis)


def filled(samples: NDArray[Any]) -> NDArray[Any]:
    """Return samples with the median of its column in place of each missing value; 0 in a column without values.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Numbers.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        The samples themselves if none lacks a value.

    Examples
    --------
    >>> filled(np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]]))
    array([[1., 0.],
           [3., 0.],
           [2., 0.]])
    """
    if not has_missing(samples):
        return samples
    medians = [np.median(column[~np.isnan(column)]) if not np.isnan(column).all() else 0.0 for column in samples.T]
    return np.where(np.isnan(samples), np.asarray(medians, dtype=samples.dtype), samples)


def check_magnitude(
    samples: NDArray[Any], limit: float, needed_by: str, *, names: Sequence[str] | None = None, name: str = "X"
) -> None:
    """Raise if a value is so large that a number computed from it would overflow.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Finite numbers.
    limit : float
        The largest absolute value that is allowed.
    needed_by : str
        What requires the limit, as the subject of a sentence in the plural.
    names : sequence of str, optional
        Names of the columns.
    name : str, default="X"
        Parameter to name in the error.
    """
    if not samples.size or limit >= float(np.finfo(samples.dtype).max):
        return
    low, high = extremes(samples)
    if not (low < -limit or high > limit):
        return
    value = low if -low > high else high
    lows, highs = extremes(samples, axis=0)
    column = int(np.nanargmax(np.fmax(-lows, highs)))
    which = f"{column}" if names is None else repr(str(names[column]))
    raise ValueError(
        f"{name} has the value {value:g} in column {which}, but {needed_by} take values from {-limit:.3g} to {limit:.3g}; "
        "divide the column by a large number first."
    )


def check_squares(samples: NDArray[Any], needed_by: str) -> None:
    """Raise if all values are so small that their squares vanish; samples of zeros are allowed.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Finite numbers.
    needed_by : str
        What requires squares, as the subject of a sentence in the plural.
    """
    low, high = extremes(samples) if samples.size else (0.0, 0.0)
    largest = max(-float(low), float(high))
    if 0.0 < largest < MIN_SQUARED:
        raise ValueError(
            f"X has no value larger than {largest:g}, but {needed_by} lose squares of values below {MIN_SQUARED:g}; "
            "multiply X by a large number first."
        )


@contextmanager
def explained_overflow(values: NDArray[Any], what: str, estimator: Any) -> Iterator[None]:
    """Refuse very large values if code that is not ours overflows or fails on them.

    Parameters
    ----------
    values : ndarray
        What the code is given.
    what : str
        What the code is, as the beginning of a sentence, which goes on with the estimator.
    estimator : estimator
        Whose code it is. It is formatted in an error only: that takes longer than to score a pair.
    """
    low, high = extremes(values) if values.size else (0.0, 0.0)
    largest = max(-float(low), float(high))
    if not largest > LARGE:
        yield
        return
    overflow: Any = "raise" if values.dtype == np.float32 or largest > MAX_FLOAT32 else "warn"
    try:
        with np.errstate(over=overflow, invalid=overflow):
            yield
    except (FloatingPointError, ValueError) as error:
        if str(error).startswith("X"):  # says already what is wrong
            raise
        raise ValueError(
            f"X has values that lead to numbers as large as {largest:g}, with which {what}{estimator!r} fails; "
            "divide X by a large number first."
        ) from error


def check_dates(name: str, X: Any) -> None:
    """Raise if a column of a frame, or an array, holds dates: they would be taken for numbers.

    Parameters
    ----------
    name : str
        Parameter to name in the error.
    X : object
        Samples of any form.
    """
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "mM":
            raise ValueError(f"{name} is an array of dates; {_DATES}.")
        return
    for column, dtype in _columns(X):
        if str(dtype).lower().startswith(("date", "time", "duration", "period", "interval")):
            raise ValueError(f"{name} has the column {column!r} of dates; {_DATES}.")


def _columns(X: Any) -> list[tuple[str, Any]]:
    """Return names and types of the columns of a data frame (pandas, polars); none of anything else."""
    columns, dtypes = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if columns is None or dtypes is None or callable(columns) or not hasattr(dtypes, "__iter__"):
        return []
    return [(str(column), dtype) for column, dtype in zip(columns, dtypes, strict=False)]


def _imputing(estimator: Any) -> str:
    """Return what to do about missing values: the line that fills them in, for an estimator with a representation."""
    needing, where = _member_that_needs(estimator, lambda member: not member._takes_missing())
    if not hasattr(needing, "representation"):
        return "fill it in"
    return f"fill it in with {_representation_after(needing, 'Imputer()')} of simtree.representation{where}"


def _about_text(estimator: Any) -> str:
    """Return what to do about a column of text, called ``{}``, in ``fit``: the line that makes numbers or categories of it."""
    needing, where = _member_that_needs(estimator, lambda member: member._table_categories() is None)
    if hasattr(needing, "categorical_features"):
        return f"; name it in categorical_features=[{{}}]{where}, or drop it"
    if not hasattr(needing, "representation"):
        return "; convert it to numbers, or drop it"
    return f"; give a data frame and {encoding(estimator, '[{}]')}, or drop it"


def encoding(estimator: Any, columns: str) -> str:
    """Return the line with which an estimator of numbers, or the member of it that needs one, takes columns of words.

    Parameters
    ----------
    estimator : estimator
        An estimator with a representation, or an ensemble.
    columns : str
        The columns, as a list.

    Returns
    -------
    str
        The parameter ``representation`` with an encoder of scikit-learn.
    """
    needing, where = _member_that_needs(estimator, lambda member: member._table_categories() is None)
    encoder = f"ColumnTransformer([('words', OneHotEncoder(handle_unknown='ignore'), {columns})], remainder='passthrough')"
    return f"{_representation_after(needing, encoder)} of scikit-learn{where}"


def _member_that_needs(estimator: Any, needs: Callable[[Any], bool]) -> tuple[Any, str]:
    """Return the first member of an ensemble that needs something, and where it is; otherwise the estimator itself."""
    path: list[str] = []
    while True:
        members = [("estimator", getattr(estimator, "estimator", None))]
        members += [(repr(name), member) for name, member in getattr(estimator, "estimators", ())]
        found = [(name, member) for name, member in members if hasattr(member, "_takes_missing") and needs(member)]
        if not found:
            return estimator, f" in {' of '.join(path)}, a {type(estimator).__name__}" if path else ""
        path, estimator = [found[0][0], *path], found[0][1]


def _representation_after(estimator: Any, first: str) -> str:
    """Return the parameter of an estimator whose representation begins with this step."""
    own = estimator.representation
    return f"representation={first}" if own is None else f"representation=make_pipeline({first}, {own!r})"


def _raise_named(
    name: str,
    X: Any,
    error: Exception,
    options: Mapping[str, Any],
    stacked: bool,
    remedy: str | None = None,
    nan_remedy: str = "fill it in",
    of_text: str = "; convert it to numbers, or drop it",
) -> NoReturn:
    """Raise an error that names the first column of text, NaN or infinity; the given one if there is none."""
    dtype, allowed = options.get("dtype"), options.get("ensure_all_finite") == "allow-nan"
    if np.ndim(X) != 2 or hasattr(X, "toarray"):
        raise error
    if str(error).startswith("Complex data not supported"):
        raise ValueError(f"Complex data not supported: {name} holds complex numbers; give real ones, such as {name}.real.")
    names = [column for column, _ in _columns(X)]
    columns = _as_columns(X)
    target = np.float32 if dtype is np.float32 else np.float64
    for j, column in enumerate(columns):
        which = repr(names[j]) if names else str(j)
        has = f"has the column {which} of {{}}" if names else f"has {{}} in column {which}"
        values = _as_floats(column)
        if values is None:
            text = next((str(cell) for cell in column if isinstance(cell, str | bytes)), None)
            if text is not None:
                advice = of_text.replace("{}", which)
                raise ValueError(f"{name} {has.format('text')}, such as {text!r}{advice}.") from error
            if any(isinstance(cell, date) for cell in column):
                raise ValueError(f"{name} {has.format('dates')}; {_DATES}.") from error
            continue
        with np.errstate(over="ignore"):
            values = values.astype(target)
        unusable = np.flatnonzero(np.isinf(values) if allowed else ~np.isfinite(values))
        if len(unusable):
            row = int(unusable[0])
            what = "NaN" if np.isnan(values[row]) else "infinity"
            if what == "infinity" and np.isfinite(float(column[row])):
                what = f"the value {float(column[row]):g}, which is infinity as {np.dtype(target)},"
            unit, number = ("pair", row // 2) if stacked else ("row", row)
            remedy = remedy or f"{nan_remedy if what == 'NaN' else 'replace it by a finite number'}, or leave the {unit} out"
            raise ValueError(f"{name} contains {what} in column {which}, first in {unit} {number}; {remedy}.") from error
    raise error


def _as_columns(X: Any) -> list[NDArray[Any]]:
    """Return the columns of a matrix as arrays, as far as it can be read."""
    if hasattr(X, "to_numpy") and _columns(X):
        X = X.to_numpy()
    elif isinstance(X, list | tuple):
        X = np.asarray(X, dtype=object)
    return list(np.asarray(X).T)


def _as_floats(column: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return a column as float64, missing values as NaN; None if it is not numbers."""
    if column.dtype.kind == "c":
        return None
    if column.dtype == object:
        missing = [cell is None or type(cell).__name__ in ("NAType", "NaTType") for cell in column]
        column = np.where(missing, np.nan, column)
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return None
