"""Tables as they are: kinds of columns, and the matrix of numbers and category codes that a table is read into.

A matrix has one column per number, boolean (0 and 1) and category, and one or two per date: days, and the hour of the day if
there is a time. A category is the number of its value in a vocabulary. Values that are not in it, because they were not seen in
training or because only one identity has them, have large codes of their own that are computed from the value: equal values
have equal codes wherever they are read, others differ, and none is taken for missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.pairs._cells import (
    CATEGORY,
    Value,
    column_names,
    date_named,
    is_numeric,
    table_cells,
)
from simtree.pairs._codes import MISSING, OTHER, hashed, known_codes
from simtree.pairs._column import KINDS, LEFT_OUT, Column, check_large, infinity, read_cells
from simtree.pairs._column_facts import ColumnFacts, distinct_values, joined_facts, warn_of_distinct, warn_of_empty
from simtree.pairs._store import GivenSamples, mapped_parts

Floats = NDArray[np.float64]

#: Which columns are categories by default: text, and columns whose type says so.
FROM_DTYPE = "from_dtype"
# Text with more distinct values than this share of the rows identifies rows.
MAX_DISTINCT_SHARE = 0.9
# Distinct values of a category that one part of a table tells at once; of more, hashes are told first.
MAX_TOLD_VALUES = 1 << 12
# Longer vocabularies in a model file are treated as damage.
MAX_VALUES, MAX_COLUMNS = 1 << 24, 1 << 20


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, and how they are read into a matrix.

    Parameters
    ----------
    columns : tuple of Column
        The columns, in the order of the table.
    named : bool
        Whether the table had names, by which columns are found.
    tokens : tuple of str
        Words for a missing value in files; the command replaces them before a table is read.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1.5, 2.0, 2.0], "colour": ["red", "blue", "red"], "new": [True, False, True]})
    >>> columns = TableColumns.of(table)
    >>> columns.names
    ['size', 'new', 'colour']
    >>> columns.read(table)
    array([[1.5, 1. , 1. ],
           [2. , 0. , 0. ],
           [2. , 1. , 1. ]])
    >>> print(columns)
    size: number; colour: category with 2 values; new: boolean
    """

    columns: tuple[Column, ...]
    named: bool
    tokens: tuple[str, ...] = ()

    @classmethod
    def of(cls, X: Any, categorical_features: Any = FROM_DTYPE) -> Self:
        """Return the columns of a table: their kinds, and the values of categories.

        Parameters
        ----------
        X : data frame (pandas, polars, pyarrow), array-like of shape (n_samples, n_features), or GivenSamples
            The table.
        categorical_features : "from_dtype", or array-like of bool, int or str
            Columns that are categories although they hold numbers, or text that is different in nearly every row.

        Returns
        -------
        TableColumns
            The columns.
        """
        in_parts = isinstance(X, GivenSamples)
        names, n_columns = column_names(X.head if in_parts else X)
        chosen = chosen_columns(categorical_features, names, n_columns)
        look = partial(ColumnFacts.of_table, chosen=chosen, max_values=MAX_TOLD_VALUES if in_parts else None)
        own_names = [str(j) for j in range(n_columns)] if names is None else names
        facts = joined_facts(own_names, mapped_parts(X, "look-at-columns", look))
        named = names is not None
        found = [_column(*of, j in chosen, named) for j, of in enumerate(zip(own_names, facts, strict=True))]
        warn_of_empty([repr(column.name) for column in found if column.kind == LEFT_OUT and column.missing == 1.0])
        if all(column.kind == LEFT_OUT for column in found):
            helps = any(0 < own.n_distinct < own.n_present for own in facts)
            remedy = (
                "name those of text in categorical_features" if helps else "give one of numbers, or of values that rows share"
            )
            raise ValueError(f"X has no column left; {remedy}.")
        untold = [j for j, own in enumerate(facts) if own.values is None and found[j].kind == CATEGORY]
        if untold:
            parts = mapped_parts(X, "look-at-values", partial(distinct_values, columns=untold))
            for place, j in enumerate(untold):
                found[j] = replace(found[j], values=_sorted({value for part in parts for value in part[place]}))
        return cls(tuple(found), named)

    def __str__(self) -> str:
        return "; ".join(f"{column.name}: {column}" for column in self.columns)

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix: categories come last."""
        return [name for last in (False, True) for column in self._of(last) for name in column.names]

    @property
    def categories(self) -> NDArray[np.int64]:
        """Columns of the matrix that are codes of categories: the last ones."""
        n = len(self.names)
        return np.arange(n - len(self._of(True)), n)

    def _of(self, categories: bool) -> list[Column]:
        """Return the columns that are categories, or the others."""
        return [column for column in self.columns if (column.kind == CATEGORY) == categories]

    @property
    def n_values(self) -> NDArray[np.int64]:
        """Length of the vocabulary of each category."""
        return np.array([len(column.values) for column in self._of(True)], dtype=np.int64)

    def read(self, X: Any) -> Floats:
        """Return a table as a matrix; NaN where a number or date is missing, `MISSING` where a category is.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            A table with these columns, found by name if both have names.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            The matrix.
        """
        names, cells = table_cells(X)
        if names is None or not self.named:
            if len(cells) != len(self.columns):
                n_columns = count(len(cells), "column")
                raise ValueError(f"X has {n_columns}, but the model was fitted on {len(self.columns)}; give the same columns.")
            own = dict(zip([column.name for column in self.columns], cells, strict=True))
        else:
            own = dict(zip(names, cells, strict=True))
        read = []
        for column in [*self._of(False), *self._of(True)]:
            if column.kind == LEFT_OUT:
                continue
            if column.name not in own:
                raise ValueError(
                    f"X has no column {column.name!r}, on which the model was fitted; give a table with this column."
                )
            read += read_cells(column, own[column.name])
        return np.column_stack(read)

    def with_holes(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return a matrix with NaN where a category is missing, for models that read its columns as a table of their own.

        Parameters
        ----------
        matrix : ndarray of shape (n_samples, n_columns)
            What `read` returned.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            A copy, or the matrix itself if no category is missing.
        """
        codes = matrix[:, self.categories]
        if not (codes == MISSING).any():
            return matrix
        found = matrix.copy()
        found[:, self.categories] = np.where(codes == MISSING, np.nan, codes)
        return found

    def for_encoders(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return a matrix as encoders see it: NaN where a category is missing, `OTHER` for values outside of the vocabulary.

        Parameters
        ----------
        matrix : ndarray of shape (n_samples, n_columns)
            What `read` returned.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            A copy, or the matrix itself if there is nothing to replace.
        """
        return known_codes(self.with_holes(matrix), self.categories)

    def without_private(self, matrix: Floats, identities: NDArray[np.int64]) -> Self:
        """Return the columns without values that only one identity has, whose codes in the matrix are changed accordingly.

        Parameters
        ----------
        matrix : ndarray of shape (n_samples, n_columns)
            What `read` returned; changed in place.
        identities : ndarray of int of shape (n_samples,)
            Identity of each row.

        Returns
        -------
        TableColumns
            The columns with shorter vocabularies.
        """
        columns = self.with_shared_values(self.holders(matrix, identities))
        for place, old, new in zip(self.categories.tolist(), self._of(True), columns._of(True), strict=True):
            codes = matrix[:, place]
            known = (codes >= 0) & (codes < len(old.values))
            of_value = {value: float(code) for code, value in enumerate(new.values)}
            recoded = np.array([of_value[value] if value in of_value else hashed(date_named(value)) for value in old.values])
            codes[known] = recoded[codes[known].astype(np.int64)]
        return columns

    def holders(self, matrix: Floats, identities: NDArray[np.integer[Any]]) -> list[NDArray[np.int64]]:
        """Return the lowest and the highest identity that has each value of each category.

        Parameters
        ----------
        matrix : ndarray of shape (n_samples, n_columns)
            What `read` returned, or some rows of it.
        identities : ndarray of int of shape (n_samples,)
            Identity of each row.

        Returns
        -------
        list of ndarrays of int of shape (2, n_values)
            One per category; the first is larger than the second if there are none.
        """
        found = []
        for place, column in zip(self.categories.tolist(), self._of(True), strict=True):
            codes = matrix[:, place]
            known = (codes >= 0) & (codes < len(column.values))
            of_value = codes[known].astype(np.int64)
            ends = np.array([[np.iinfo(np.int64).max], [-1]]).repeat(len(column.values), axis=1)
            np.minimum.at(ends[0], of_value, identities[known])
            np.maximum.at(ends[1], of_value, identities[known])
            found.append(ends)
        return found

    def with_shared_values(self, holders: Sequence[NDArray[np.int64]]) -> Self:
        """Return the columns without values that only one identity has.

        Parameters
        ----------
        holders : sequence of ndarrays of int of shape (2, n_values)
            What `holders` returned.

        Returns
        -------
        TableColumns
            The columns with shorter vocabularies.
        """
        ends = iter(holders)
        found = []
        for column in self.columns:
            if column.kind == CATEGORY:
                low, high = next(ends)
                shared = (low < high).tolist()
                column = replace(column, values=tuple(value for value, kept in zip(column.values, shared, strict=True) if kept))
            found.append(column)
        return replace(self, columns=tuple(found))

    def words(self, row: Floats) -> NDArray[Any]:
        """Return a row of a matrix with words in place of codes, as far as they are known; NaN where a category is missing.

        Parameters
        ----------
        row : ndarray of shape (n_columns,)
            A row.

        Returns
        -------
        ndarray of objects of shape (n_columns,)
            Numbers and words.
        """
        found = row.astype(object)
        for place, column in zip(self.categories, self._of(True), strict=True):
            code = int(row[place])
            found[place] = np.nan if code < 0 else str(column.values[code]) if code < len(column.values) else "(other)"
        return found

    def with_values(self, names: Sequence[str]) -> list[str]:
        """Return names of the columns of an encoder with values in place of codes, such as colour_red for colour_2.0.

        Parameters
        ----------
        names : sequence of str
            Names of columns; those that are not of a category are returned as they are.

        Returns
        -------
        list of str
        """
        known = {
            f"{column.name}_{float(code)}": f"{column.name}_{value}"
            for column in self._of(True)
            for code, value in [*enumerate(column.values), (OTHER, "(other)"), (np.nan, "missing")]
        }
        return [known.get(name, name) for name in names]

    def _get_state(self) -> dict[str, Any]:
        """Return what a model file holds of the columns."""
        return {
            "named": self.named,
            "tokens": list(self.tokens),
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "missing": column.missing,
                    "n_distinct": column.n_distinct,
                    "values": list(column.values),
                    "has_time": column.has_time,
                }
                for column in self.columns
            ],
        }

    @classmethod
    def _from_state(cls, fields: Any) -> Self:
        """Return the columns of a model file."""
        found = []
        for part in fields.parts("columns", MAX_COLUMNS):
            kind = part.string("kind", KINDS)
            values = part.items("values", MAX_VALUES)
            plain = all(isinstance(value, str) or (type(value) is float and np.isfinite(value)) for value in values)
            if not plain or len(set(values)) < len(values) or (values and kind != CATEGORY):
                raise part.fail("values", "must be distinct strings and numbers, of a category")
            found.append(
                Column(
                    part.string("name"),
                    kind,
                    part.number("missing", 0.0, 1.0),
                    part.integer("n_distinct", 0, 1 << 53),
                    tuple(values),
                    part.flag("has_time"),
                )
            )
        if not any(column.names for column in found):
            raise fields.fail("columns", "must have one that is not left out")
        return cls(tuple(found), fields.flag("named"), tuple(fields.strings("tokens", MAX_COLUMNS)))


def is_table(X: Any) -> bool:
    """Return whether this is a data frame with a column that is not of numbers or booleans, or one of pyarrow.

    Parameters
    ----------
    X : object
        What was given as samples.

    Returns
    -------
    bool

    Examples
    --------
    >>> import pandas as pd
    >>> is_table(pd.DataFrame({"a": [1.0]})), is_table(pd.DataFrame({"a": ["x"]})), is_table([[1.0]])
    (False, True, False)
    """
    if hasattr(X, "column_names") and hasattr(X, "schema"):
        return True
    columns, dtypes = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if columns is None or dtypes is None or callable(columns) or not hasattr(dtypes, "__iter__"):
        return False
    return not all(is_numeric(dtype) for dtype in dtypes)


def is_chosen(categorical_features: Any) -> bool:
    """Return whether the parameter names columns, instead of leaving them to their types.

    Parameters
    ----------
    categorical_features : "from_dtype", None, or array-like of bool, int or str
        The parameter of models.

    Returns
    -------
    bool
    """
    return categorical_features is not None and not (
        isinstance(categorical_features, str) and categorical_features == FROM_DTYPE
    )


def chosen_columns(categorical_features: Any, names: Sequence[str] | None, n_columns: int) -> set[int]:
    """Return the columns that are said to be categories.

    Parameters
    ----------
    categorical_features : "from_dtype", None, or array-like of bool, int or str
        The parameter of models.
    names : sequence of str or None
        Names of the columns.
    n_columns : int
        Number of columns.

    Returns
    -------
    set of int
        Numbers of columns.
    """
    if not is_chosen(categorical_features):
        return set()
    given = np.atleast_1d(np.asarray(categorical_features))
    if not given.size:
        return set()
    if given.dtype == np.bool_:
        if given.shape != (n_columns,):
            raise ValueError(f"categorical_features is a mask of shape {given.shape}; X has {count(n_columns, 'column')}.")
        return set(np.flatnonzero(given).tolist())
    if given.dtype.kind in "iu":
        if given.size and (given.min() < 0 or given.max() >= n_columns):
            bad = given[(given < 0) | (given >= n_columns)][0]
            raise ValueError(f"categorical_features has the column {bad}; X has {count(n_columns, 'column')}, numbered from 0.")
        return set(given.tolist())
    if given.dtype.kind not in "UO" or not all(isinstance(name, str) for name in given.tolist()):
        raise ValueError(
            f"categorical_features={categorical_features!r} is not a mask, numbers or names of columns; give one of these, or "
            f"{FROM_DTYPE!r}."
        )
    if names is None:
        raise ValueError(f"categorical_features={categorical_features!r}: X has no column names; give numbers of columns.")
    unknown = [name for name in given.tolist() if name not in names]
    if unknown:
        raise ValueError(f"categorical_features has {unknown[0]!r}; the columns of X are {', '.join(map(repr, names))}.")
    return {list(names).index(name) for name in given.tolist()}


def _column(name: str, facts: ColumnFacts, chosen: bool, named: bool) -> Column:
    """Return what is known of a column of the training table; its values later if they are not told yet."""
    missing = facts.n_missing / facts.n_rows if facts.n_rows else 0.0
    # Without names, a column of numbers keeps its place, for a representation finds it by its number.
    if missing == 1.0 and (named or chosen or facts.kind == CATEGORY):
        return Column(name, LEFT_OUT, missing)
    if facts.infinite_row is not None:
        raise infinity(name, facts.infinite_row)
    if chosen or facts.kind == CATEGORY:
        check_large(name, facts.large)
        n_present, n_distinct = facts.n_present, facts.n_distinct
        if n_distinct > MAX_DISTINCT_SHARE * n_present and n_present > 1:
            if chosen and n_distinct == n_present:
                raise ValueError(
                    f"categorical_features names the column {name!r}, whose values are all different; leave it out, for no two "
                    "rows can be equal in it."
                )
            if not chosen:
                warn_of_distinct(name, n_distinct, n_present)
                return Column(name, LEFT_OUT, missing, n_distinct)
        return Column(name, CATEGORY, missing, n_distinct, _sorted(facts.values or ()))
    return Column(name, facts.kind, missing, has_time=facts.has_time)


def _sorted(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return values sorted, as encoders of scikit-learn have them, and so that a file does not tell the order of the rows."""
    return tuple(sorted(values, key=lambda value: (isinstance(value, str), value)))
