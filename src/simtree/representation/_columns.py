"""ColumnRepresentation: transformers of some columns, chosen by name or number, side by side."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Collection, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils import InputTags, get_tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from simtree._utils.matrices import MAX_SQUARED, check_magnitude, check_matrix
from simtree._utils.validation import check_choice, count
from simtree.io._registry import REPRESENTATION, convert, register
from simtree.pairs._cells import CATEGORY
from simtree.pairs._table import TableColumns

# Columns of a matrix, for each column of a table.
Places = Sequence[Sequence[int]]

DROP, PASSTHROUGH = "drop", "passthrough"
# scikit-learn's transformers that take NaN and return it; ours have an attribute passes_missing.
PASSING_ON = (MaxAbsScaler, MinMaxScaler, PowerTransformer, QuantileTransformer, RobustScaler, StandardScaler)
# Transformers that keep their columns, possibly followed by indicators; others have scikit-learn's OneToOneFeatureMixin.
IMPUTERS = ("Imputer", "SimpleImputer")


@register(REPRESENTATION)
class ColumnRepresentation(TransformerMixin, BaseEstimator):
    """Apply transformers to some columns each, and put the results side by side.

    It is scikit-learn's `ColumnTransformer` as far as a model file can hold it. A `ColumnTransformer` that is given as the
    ``representation`` of a model becomes one.

    Parameters
    ----------
    transformers : list of (name, transformer, columns) tuples
        What is applied to which columns: a transformer, ``"passthrough"`` or ``"drop"``; and names or numbers of columns, one
        or a list of them, or a mask. Names need a data frame.
    remainder : {"drop", "passthrough"}, default="drop"
        What becomes of the columns that are not named; ``"passthrough"`` puts them last.

    Attributes
    ----------
    transformers_ : list of (name, transformer, columns) tuples
        The fitted transformers, and their columns as numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from simtree.representation import ColumnRepresentation, Imputer
    >>> parts = [("filled", Imputer(), [0]), ("scaled", StandardScaler(), [1])]
    >>> ColumnRepresentation(parts).fit_transform([[1.0, 5.0], [np.nan, 7.0], [3.0, 6.0]]).round(2)
    array([[ 1.  , -1.22],
           [ 2.  ,  1.22],
           [ 3.  ,  0.  ]])
    """

    def __init__(self, transformers: Sequence[tuple[str, Any, Any]], *, remainder: str = DROP) -> None:
        self.transformers = transformers
        self.remainder = remainder

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Fit the transformers on their columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            Labels, for transformers that use them.

        Returns
        -------
        self
            The fitted transformer.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Fit the transformers on their columns, and return what their ``fit_transform`` returns, side by side.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,), optional
            Labels, for transformers that use them.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Transformed training samples.
        """
        self._check_parameters()
        samples = check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        names = getattr(self, "feature_names_in_", None)
        self.transformers_: list[tuple[str, Any, NDArray[np.int64]]] = []
        found = []
        for name, transformer, columns in self.transformers:
            rows = column_numbers(columns, samples.shape[1], names)
            fitted = transformer if isinstance(transformer, str) else clone(transformer)
            own = np.ascontiguousarray(samples[:, rows])  # sums of columns must not depend on the layout
            if isinstance(fitted, str):
                made = own
            else:
                check_magnitude(own, MAX_SQUARED, f"sums of squares in {type(fitted).__name__}")
                made = fitted.fit_transform(own, y)
            self.transformers_.append((name, fitted, rows))
            found += [] if fitted == DROP else [made]
        return self._joined(samples, found)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the transformed columns side by side.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Transformed samples.
        """
        check_is_fitted(self)
        samples = check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        found = []
        for _, fitted, columns in self.transformers_:
            own = np.ascontiguousarray(samples[:, columns])
            if not isinstance(fitted, str):
                check_magnitude(own, MAX_SQUARED, f"sums of squares in {type(fitted).__name__}")
            found += [] if fitted == DROP else [own if fitted == PASSTHROUGH else fitted.transform(own)]
        return self._joined(samples, found)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the output columns; equal names are preceded by that of their transformer.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the features; by default those seen in `fit`.

        Returns
        -------
        ndarray of str
            Names of the output columns.
        """
        check_is_fitted(self)
        names = np.asarray(_check_feature_names_in(self, input_features), dtype=object)
        found: list[tuple[str, str]] = []
        for name, fitted, columns in self.transformers_:
            if fitted != DROP:
                own = names[columns] if fitted == PASSTHROUGH else fitted.get_feature_names_out(names[columns])
                found += [(name, str(column)) for column in own]
        if self.remainder == PASSTHROUGH:
            found += [("remainder", str(column)) for column in names[self._others()]]
        plain = [column for _, column in found]
        if len(set(plain)) < len(plain):
            plain = [f"{name}__{column}" for name, column in found]
        return np.array(plain, dtype=object)

    def _joined(self, samples: NDArray[np.float64], found: list[Any]) -> NDArray[np.float64]:
        if self.remainder == PASSTHROUGH:
            found = [*found, samples[:, self._others()]]
        if not found:
            raise ValueError("transformers keeps no column; name one, or set remainder='passthrough'.")
        return np.hstack([dense(part) for part in found]).astype(np.float64, copy=False)

    def _others(self) -> NDArray[np.int64]:
        """Return the columns that no transformer has."""
        named = [columns for _, _, columns in self.transformers_]
        return np.setdiff1d(np.arange(self.n_features_in_), np.concatenate([[], *named])).astype(np.int64)

    def _check_parameters(self) -> None:
        check_choice("remainder", self.remainder, (DROP, PASSTHROUGH))
        parts = self.transformers
        if not isinstance(parts, list | tuple) or not all(isinstance(part, tuple) and len(part) == 3 for part in parts):
            raise TypeError(f"transformers={parts!r} is not a list of tuples; give (name, transformer, columns) each.")
        names = [name for name, _, _ in parts]
        if not parts or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError(f"transformers has the names {names!r}; give at least one, and distinct strings.")
        for name, transformer, _ in parts:
            is_word = isinstance(transformer, str)
            if (is_word and transformer not in (DROP, PASSTHROUGH)) or not (is_word or hasattr(transformer, "fit_transform")):
                raise TypeError(f"transformers: {name!r} has {transformer!r}; give a transformer, 'passthrough' or 'drop'.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        steps = [part[1] for part in self.transformers if not isinstance(part[1], str)]
        tags.target_tags.required = any(get_tags(step).target_tags.required for step in steps)
        return tags


def column_numbers(columns: Any, n_features: int, names: Sequence[str] | None) -> NDArray[np.int64]:
    """Return columns that are given by name or number, one or a list of them, or as a mask, as numbers.

    Parameters
    ----------
    columns : str, int, or array-like of them or of bool
        The columns.
    n_features : int
        Number of columns that there are.
    names : sequence of str or None
        Their names, if they have any.

    Returns
    -------
    ndarray of int
        Numbers of the columns.

    Examples
    --------
    >>> column_numbers(["b", "a"], 2, ["a", "b"]), column_numbers(-1, 2, None), column_numbers([True, False], 2, None)
    (array([1, 0]), array([1]), array([0]))
    """
    if callable(columns) or isinstance(columns, slice):
        raise TypeError(f"columns={columns!r} is neither names nor numbers of columns; give a list of them.")
    given: list[Any] = [columns] if isinstance(columns, str | numbers.Integral) else list(columns)
    if given and all(isinstance(entry, bool | np.bool_) for entry in given):
        if len(given) != n_features:
            raise ValueError(f"columns is a mask of length {len(given)}; X has {count(n_features, 'column')}.")
        return np.flatnonzero(given)
    found = []
    for entry in given:
        if isinstance(entry, str):
            if names is None:
                raise ValueError(f"columns={columns!r}: X has no column names; give a data frame, or numbers of columns.")
            if entry not in list(names):
                raise ValueError(f"columns: X has no column {entry!r}; its columns are {', '.join(map(repr, names))}.")
            found.append(list(names).index(entry))
        elif isinstance(entry, int | np.integer) and -n_features <= entry < n_features:
            found.append(int(entry) % n_features)
        else:
            raise ValueError(f"columns has {entry!r}; give names, or numbers from {-n_features} to {n_features - 1}.")
    return np.array(found, dtype=np.int64)


def with_numbered_columns(
    representation: Any, names: Sequence[str] | None, places: Places | None = None, n_columns: int | None = None
) -> Any:
    """Return a representation whose columns are given by number, and without any `ColumnTransformer`.

    Models pass matrices without names to their representation, so names are looked up before.

    Parameters
    ----------
    representation : transformer or None
        The representation; it is not modified.
    names : sequence of str or None
        Names of the columns of X.
    places : sequence of sequences of int, optional
        Columns of the matrix that each column of X is read into; by default X is the matrix.
    n_columns : int, optional
        Number of columns of X, if names of parts of them follow.

    Returns
    -------
    transformer or None
        The representation itself if nothing is to be changed.
    """
    if type(representation) is Pipeline:
        steps, keeps = [], True
        for step, part in representation.steps:
            steps.append((step, with_numbered_columns(part, *((names, places, n_columns) if keeps else (None,)))))
            keeps = keeps and places is not None and _keeps_columns(part)
        same = all(new is old for (_, new), (_, old) in zip(steps, representation.steps, strict=True))
        return representation if same else Pipeline(steps)
    if is_column_transformer(representation):
        representation = from_column_transformer(representation)
    if type(representation) is not ColumnRepresentation or names is None:
        return representation
    parts = []
    for name, transformer, columns in representation.transformers:
        chosen = column_numbers(columns, n_columns or len(names), names).tolist()
        own = [[j] for j in chosen] if places is None else [places[j] for j in chosen]
        left_out = [names[j] for j, found in zip(chosen, own, strict=True) if not found]
        if left_out and transformer != DROP:
            raise ValueError(
                f"representation: {name!r} has the column {left_out[0]!r}, which the model leaves out because it has no "
                "values, or is text that differs in nearly every row; remove it from there, too."
            )
        inner = with_numbered_columns(transformer, [names[j] for j in chosen], None if places is None else _in_order(own))
        parts.append((name, inner, [place for found in own for place in found]))
    return ColumnRepresentation(parts, remainder=representation.remainder)


def with_matrix_columns(representation: Any, columns: TableColumns) -> Any:
    """Return a representation of a table as one of the matrix that the table is read into, with columns by number.

    Parameters
    ----------
    representation : transformer or None
        The representation, whose columns are names or numbers of columns of the table; it is not modified.
    columns : TableColumns
        How the table is read.

    Returns
    -------
    transformer or None

    Examples
    --------
    >>> import pandas as pd
    >>> columns = TableColumns.of(pd.DataFrame({"word": ["a", "b", "a"], "size": [1.0, 2.0, 2.0]}))
    >>> with_matrix_columns(ColumnRepresentation([("kept", "passthrough", [0])]), columns).transformers
    [('kept', 'passthrough', [1])]
    """
    refuse_words(representation)
    return with_numbered_columns(representation, *_names_and_places(columns), len(columns.columns))


def with_table_columns(representation: Any, columns: TableColumns, *, by_name: bool = False) -> Any:
    """Return what `with_matrix_columns` was given: columns are numbers or names of columns of the table.

    Parameters
    ----------
    representation : transformer or None
        A representation of the matrix; it is not modified.
    columns : TableColumns
        How the table is read.
    by_name : bool, default=False
        Whether columns are given by name.

    Returns
    -------
    transformer or None
    """
    return _numbered_back(representation, *_names_and_places(columns), len(columns.columns), by_name)


def _names_and_places(columns: TableColumns) -> tuple[list[str], Places]:
    """Return the columns of a table, then the hours of its dates: their names, and the columns of the matrix they become."""
    order = sorted(range(len(columns.columns)), key=lambda j: columns.columns[j].kind == CATEGORY)
    of_order = dict(zip(order, _in_order([columns.columns[j].names for j in order]), strict=True))
    found = [(column.name, of_order[j]) for j, column in enumerate(columns.columns)]
    found += [(column.names[1], of_order[j][1:]) for j, column in enumerate(columns.columns) if len(column.names) > 1]
    return [name for name, _ in found], [places for _, places in found]


def _in_order(groups: Sequence[Sequence[Any]]) -> list[list[int]]:
    """Return numbers of the entries of groups that are put one after the other, group by group."""
    ends = np.cumsum([len(group) for group in groups], dtype=np.int64).tolist()
    return [list(range(end - len(group), end)) for group, end in zip(groups, ends, strict=True)]


def _numbered_back(representation: Any, names: Sequence[str], places: Places, n_columns: int, by_name: bool) -> Any:
    if type(representation) is Pipeline:
        steps, keeps = [], True
        for name, part in representation.steps:
            steps.append((name, _numbered_back(part, names, places, n_columns, by_name) if keeps else part))
            keeps = keeps and _keeps_columns(part)
        return Pipeline(steps)
    of_place = {place: j for j, found in enumerate(places[:n_columns]) for place in found}
    hours = {place: j for j, found in enumerate(places[n_columns:], n_columns) for place in found}
    if type(representation) is not ColumnRepresentation or not _is_numbered(representation.transformers, of_place):
        return representation
    parts = []
    for name, transformer, columns in representation.transformers:
        alone = {place: j for place, j in hours.items() if place - 1 not in columns}  # without the day
        chosen = list(dict.fromkeys(alone.get(place, of_place[place]) for place in columns))
        own, called = _in_order([places[j] for j in chosen]), [names[j] for j in chosen]
        inner = _numbered_back(transformer, called, own, len(chosen), by_name)
        parts.append((name, inner, [names[j] if by_name or j >= n_columns else j for j in chosen]))
    return ColumnRepresentation(parts, remainder=representation.remainder)


def _is_numbered(parts: Any, known: Collection[int]) -> bool:
    """Return whether these are transformers of columns by number, which a damaged file need not have."""
    return isinstance(parts, list) and all(
        isinstance(part, tuple)
        and len(part) == 3
        and isinstance(part[2], list)
        and all(isinstance(place, int) and place in known for place in part[2])
        for part in parts
    )


def _keeps_columns(step: Any) -> bool:
    """Return whether a transformer returns the columns that it is given in their order, possibly followed by others."""
    if type(step) is Pipeline:
        return all(_keeps_columns(part) for _, part in step.steps)
    return step in (None, PASSTHROUGH) or isinstance(step, OneToOneFeatureMixin) or type(step).__name__ in IMPUTERS


def is_column_transformer(value: Any) -> bool:
    """Return whether an object is scikit-learn's `ColumnTransformer`; its module is slow to import, so it is not imported."""
    return type(value).__name__ == "ColumnTransformer" and type(value).__module__.startswith("sklearn.compose")


def from_column_transformer(given: Any) -> ColumnRepresentation:
    """Return a scikit-learn `ColumnTransformer` as a `ColumnRepresentation`; a fitted one if it is fitted.

    Parameters
    ----------
    given : ColumnTransformer
        What is converted; it is not modified.

    Returns
    -------
    ColumnRepresentation
        The same transformers of the same columns.
    """
    if given.transformer_weights is not None or not isinstance(given.remainder, str):
        raise TypeError(
            "a ColumnTransformer with transformer_weights, or with a transformer as its remainder, is not supported; name its "
            "columns in transformers, and set remainder to 'drop' or 'passthrough'."
        )
    found = ColumnRepresentation(list(given.transformers), remainder=given.remainder)
    if hasattr(given, "transformers_"):
        found.n_features_in_ = given.n_features_in_
        names = getattr(given, "feature_names_in_", None)
        if names is not None:
            found.feature_names_in_ = names
        fitted = {name: step for name, step, _ in given.transformers_}
        found.transformers_ = []
        for name, step, columns in given.transformers:
            own = step if isinstance(step, str) else _without_names(fitted[name])
            found.transformers_.append((name, own, column_numbers(columns, given.n_features_in_, names)))
    return found


def _without_names(step: Any) -> Any:
    """Return a copy of a fitted transformer that has not seen names, for it will be given matrices."""
    found = copy.copy(step)
    if isinstance(found, Pipeline):
        found.steps = [(name, _without_names(part)) for name, part in found.steps]
    found.__dict__.pop("feature_names_in_", None)
    return found


def dense(made: Any) -> NDArray[Any]:
    """Return the output of a transformer as an array; that of a OneHotEncoder is sparse by default."""
    return np.asarray(made.toarray() if issparse(made) else made)


def takes_categories(representation: Any) -> bool:
    """Return whether a representation takes columns of categories, or chooses its columns itself.

    Parameters
    ----------
    representation : transformer or None
        The representation.

    Returns
    -------
    bool
        True for encoders and `ColumnRepresentation`, and for a Pipeline that begins with one.

    Examples
    --------
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> takes_categories(OneHotEncoder()), takes_categories(StandardScaler())
    (True, False)
    """
    if representation is None:
        return False
    if isinstance(representation, Pipeline):
        return any(takes_categories(step) for _, step in representation.steps[:2])
    if isinstance(representation, ColumnRepresentation) or is_column_transformer(representation):
        return True
    tags = _input_tags(representation)
    return tags is not None and bool(tags.categorical)


def takes_missing(representation: Any) -> bool:
    """Return whether a representation takes NaN and fills it in.

    scikit-learn's scalers take NaN and pass it on, so that in a Pipeline the step after them decides.

    Parameters
    ----------
    representation : transformer or None
        The representation.

    Returns
    -------
    bool
        What the tags of scikit-learn say of the transformer.

    Examples
    --------
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.preprocessing import StandardScaler
    >>> takes_missing(SimpleImputer()), takes_missing(StandardScaler()), takes_missing(None)
    (True, False, False)
    """
    steps = [step for _, step in representation.steps] if isinstance(representation, Pipeline) else [representation]
    for step in steps:
        if is_column_transformer(step):
            return True
        if isinstance(step, Pipeline):
            return takes_missing(step)
        tags = _input_tags(step)
        if tags is None or not tags.allow_nan:
            return False
        if not _passes_on(step):
            return True
    return False


def refuse_words(representation: Any) -> None:
    """Raise if a transformer of scikit-learn is told of words: of a table, it is given the numbers of values.

    Parameters
    ----------
    representation : transformer or None
        The representation of a model that reads tables.

    Examples
    --------
    >>> from sklearn.preprocessing import OrdinalEncoder
    >>> refuse_words(OrdinalEncoder())
    """
    if isinstance(representation, Pipeline):
        steps = [step for _, step in representation.steps]
    elif isinstance(representation, ColumnRepresentation) or is_column_transformer(representation):
        steps = [part[1] for part in representation.transformers]
    else:
        _refuse_words_of(representation)
        return
    for step in steps:
        refuse_words(step)


def _refuse_words_of(step: Any) -> None:
    name = type(step).__name__
    given = getattr(step, "categories", None)
    listed = [value for values in given for value in values] if isinstance(given, list | tuple | np.ndarray) else []
    if any(isinstance(value, str) for value in listed):
        raise ValueError(
            f"representation: {name} has the categories {given!r}, but it is given the numbers of the values of a table, which "
            "are sorted; leave categories='auto', or encode the column before."
        )
    dropped = getattr(step, "drop", None)
    if isinstance(dropped, list | tuple | np.ndarray) and any(isinstance(value, str) for value in dropped):
        raise ValueError(
            f"representation: {name} has drop={dropped!r}, but it is given the numbers of the values of a table; set "
            "drop='first' or drop='if_binary', or leave it out."
        )
    if isinstance(getattr(step, "fill_value", None), str):
        raise ValueError(
            f"representation: {name} has fill_value={step.fill_value!r}, but it is given the numbers of the values of a table; "
            "leave it out before an encoder, which has a place for missing values, or set strategy='most_frequent'."
        )


def passes_missing(representation: Any) -> bool:
    """Return whether a representation takes NaN and leaves it where it is, as scikit-learn's scalers do.

    Parameters
    ----------
    representation : transformer
        The representation.

    Returns
    -------
    bool
        Whether it is one of these scalers, or a Pipeline of them.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.preprocessing import StandardScaler
    >>> passes_missing(StandardScaler()), passes_missing(PCA())
    (True, False)
    """
    if isinstance(representation, Pipeline):
        return all(passes_missing(step) for _, step in representation.steps)
    return _passes_on(representation)


def _passes_on(step: Any) -> bool:
    return type(step) in PASSING_ON or bool(getattr(step, "passes_missing", False))


def _input_tags(step: Any) -> InputTags | None:
    """Return what scikit-learn's tags say of the input of a transformer; None of an object without tags."""
    return get_tags(step).input_tags if hasattr(step, "__sklearn_tags__") and not isinstance(step, type) else None


convert(is_column_transformer, from_column_transformer)
