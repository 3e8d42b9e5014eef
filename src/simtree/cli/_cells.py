"""Columns of a file as features: words for a missing value, words of categories, and dates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from simtree.pairs._cells import LARGE, date_names, moment_of, plain_date
from simtree.pairs._codes import hashed

# Words for booleans, of which capitals do not matter.
TRUTHS = {"true": 1.0, "false": 0.0}


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
        column = column.astype(object)
    cells = [None if pd.isna(cell) else _word(cell) for cell in column.tolist()]
    return pd.Series(cells, index=column.index, dtype=object)


def as_fitted(column: pd.Series, values: Sequence[str | float]) -> pd.Series:
    """Return the words of a category as numbers, if the model was fitted on a category of numbers, and truths as it has them.

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
    cells = [None if pd.isna(word) else word for word in column]
    if not values or isinstance(values[0], str):
        truths = {str(value).lower(): value for value in values if str(value).lower() in TRUTHS}
        known = set(values)
        words = [word if word is None or word in known else truths.get(word.lower(), word) for word in cells]
        return pd.Series(words, index=column.index, dtype=object)
    numbers = [
        np.nan if word is None else float(word) if _is_plain(word) else TRUTHS.get(word.lower(), hashed(word)) for word in cells
    ]
    return pd.Series(numbers, index=column.index)


def as_booleans(column: pd.Series) -> pd.Series | None:
    """Return a column of true and false, also as words, as booleans; None if a cell is something else.

    Examples
    --------
    >>> as_booleans(pd.Series(["True", None, "false"])).tolist()
    [True, <NA>, False]
    """
    present = column[column.notna()]
    if not len(present) or str(present.iloc[0]).lower() not in TRUTHS:
        return None
    words = present.astype(str).str.lower()
    if not words.isin(list(TRUTHS)).all():
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
    # Not by pandas, which cannot read 9999-12-31 next to nanoseconds, or before version 3.
    dates = {word: moment_of(word) for word in present.unique()}
    if None in dates.values():
        return None
    return pd.Series(column.map(dates), index=column.index, dtype="datetime64[us]")


def _word(cell: Any) -> str:
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < LARGE else f"{cell:.15g}"
    return date_names(np.array([plain_date(cell)]))[0] if isinstance(cell, date | np.datetime64) else str(cell)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_plain(text: str) -> bool:
    """Return whether a word is a finite number that can be told from its neighbours."""
    return _is_number(text) and abs(float(text)) < LARGE
