"""Columns of a file as features: words for a missing value, words of categories, and dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from simtree.pairs._cells import LARGE, date_name, date_named, moment_of, plain_date
from simtree.pairs._codes import hashed

# Words for booleans, in any case.
BOOLEANS = {"true": 1.0, "false": 0.0}


# Types of objects of which equal ones are the same word; 1 and True, or decimals such as 1.0 and 1.00, are not.
ALIKE = ("string", "date", "datetime")
# Dates without a zone that NumPy reads as ISO 8601 has them, many at once.
PLAIN_DATE = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?"


def is_text(column: pd.Series) -> bool:
    """Return whether a column holds text, or objects that may be text.

    Examples
    --------
    >>> is_text(pd.Series(["a", "b"])), is_text(pd.Series([1.0, 2.0]))
    (True, False)
    """
    return bool(column.dtype.kind in "OUT") or isinstance(column.dtype, pd.StringDtype)


def without_tokens(column: pd.Series, tokens: Sequence[str], *, is_category: bool) -> pd.Series:
    """Return a column in which cells that are one of the words for a missing value are missing.

    Parameters
    ----------
    column : Series
        The column.
    tokens : sequence of str
        Words for a missing value; one that is a number stands for cells that are equal to it, unless they are categories.
    is_category : bool
        Whether the cells are names, so that 7 is not 007.

    Returns
    -------
    Series

    Examples
    --------
    >>> without_tokens(pd.Series([1.5, -999.0]), ["?", "-999"], is_category=False).tolist()
    [1.5, nan]
    """
    if not tokens or column.dtype.kind in "bMm":
        return column
    if is_text(column):
        column = column.mask(column.astype(str).isin(list(tokens)))
    numbers = [float(token) for token in tokens if _is_number(token)]
    if not numbers or is_category:
        return column
    return column.mask(pd.to_numeric(column, errors="coerce").isin(numbers))


def as_words(column: pd.Series) -> pd.Series:
    """Return the values of a category as text; a missing one stays missing.

    The same value is the same word in every kind of file: whole numbers have no decimal point, also beside missing ones.

    Examples
    --------
    >>> as_words(pd.Series([1010.0, None, 7.5])).tolist()
    ['1010', None, '7.5']
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, values = column.cat.codes.to_numpy(), column.cat.categories
    elif column.dtype == object and pd.api.types.infer_dtype(column) not in ALIKE:
        cells = [None if pd.isna(cell) else _word(cell) for cell in column.tolist()]
        return pd.Series(cells, index=column.index, dtype=object)
    else:
        codes, values = pd.factorize(column)
    words = np.array([*map(_word, values.tolist()), None], dtype=object)
    return pd.Series(words[codes], index=column.index, dtype=object)


def as_fitted(column: pd.Series, values: Sequence[str | float]) -> pd.Series:
    """Return words of a category as numbers if the model was fitted on numbers, and booleans in the spelling of the model.

    Parameters
    ----------
    column : Series
        Words, as `as_words` returns them.
    values : sequence of str and float
        Vocabulary of the category.

    Returns
    -------
    Series
        A word that is not a number has one of its own, so that it is a value that was not seen, and not missing.

    Examples
    --------
    >>> as_fitted(pd.Series(["1010", None]), [1010.0, 9020.0]).tolist()
    [1010.0, nan]
    >>> as_fitted(pd.Series(["true", "FALSE"]), ["False", "True"]).tolist()
    ['True', 'False']
    """
    of_numbers = bool(values) and not isinstance(values[0], str)
    spelled = {str(value).lower(): value for value in values if str(value).lower() in BOOLEANS}
    if not (of_numbers or spelled):
        return column
    codes, words = pd.factorize(column)
    if of_numbers:
        numbers = [float(word) if _is_plain(word) else BOOLEANS.get(word.lower(), hashed(date_named(word))) for word in words]
        return pd.Series(np.array([*numbers, np.nan])[codes], index=column.index)
    known = set(values)
    cells = [word if word in known else spelled.get(word.lower(), word) for word in words]
    return pd.Series(np.array([*cells, None], dtype=object)[codes], index=column.index)


def as_booleans(column: pd.Series) -> pd.Series | None:
    """Return a column of true and false, also as words, as booleans; None if a cell is something else.

    Examples
    --------
    >>> as_booleans(pd.Series(["True", None, "false"])).tolist()
    [True, <NA>, False]
    """
    present = column[column.notna()]
    if not len(present) or str(present.iloc[0]).lower() not in BOOLEANS:
        return None
    words = present.astype(str).str.lower()
    if not words.isin(list(BOOLEANS)).all():
        return None
    return (words == "true").reindex(column.index).astype("boolean")


def as_dates(column: pd.Series) -> pd.Series | None:
    """Return a column of ISO dates, with or without a time, as dates in UTC; None if a cell is something else.

    Examples
    --------
    >>> as_dates(pd.Series(["2020-01-31", None])).tolist()
    [Timestamp('2020-01-31 00:00:00'), NaT]
    >>> as_dates(pd.Series(["2020-01-31", "soon"])) is None
    True
    """
    present = column[column.notna()]
    if not len(present) or not isinstance(present.iloc[0], str):
        return None
    codes, values = pd.factorize(column)
    dates = _moments(pd.Series(values))
    return None if dates is None else pd.Series(np.append(dates, np.datetime64("NaT"))[codes], index=column.index)


def _moments(words: pd.Series) -> NDArray[np.datetime64] | None:
    """Return the dates that words are; None if a word is something else."""
    # Not by pandas, which cannot read 9999-12-31 next to nanoseconds, or before version 3.
    is_plain = words.str.fullmatch(PLAIN_DATE, na=False).to_numpy(dtype=bool)
    dates = np.full(len(words), "NaT", dtype="datetime64[us]")
    try:
        dates[is_plain] = np.array(words[is_plain].tolist(), dtype="datetime64[us]")
    except ValueError:  # 2020-02-30
        is_plain = np.zeros(len(words), dtype=bool)
    for place in np.flatnonzero(~is_plain).tolist():
        moment = moment_of(words.iloc[place])
        if moment is None:
            return None
        dates[place] = moment
    return dates


def _word(cell: Any) -> str:
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < LARGE else f"{cell:.15g}"
    return date_name(plain_date(cell)) if isinstance(cell, date | np.datetime64) else str(cell)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_plain(text: str) -> bool:
    """Return whether a word is a finite number that can be told from its neighbours."""
    return _is_number(text) and abs(float(text)) < LARGE
