"""Models for tables: each is given what it needs to take the holes and categories of a table as it was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from simtree._utils.matrices import encoding, extremes, has_missing
from simtree.models._base import Similarity
from simtree.models._represented import RepresentedMixin
from simtree.models._tree_model import TreeModel
from simtree.pairs._cells import CATEGORY
from simtree.pairs._codes import FIRST_HASHED
from simtree.pairs._column import LEFT_OUT
from simtree.pairs._store import selected
from simtree.pairs._table import FROM_DTYPE, TableColumns, is_chosen
from simtree.representation._columns import (
    ColumnRepresentation,
    takes_categories,
    takes_missing,
    with_matrix_columns,
    with_table_columns,
)
from simtree.representation._imputer import Imputer
from simtree.representation._known_codes import KnownCodes
from simtree.representation._rarity import RarityEncoder

# Categories with more values have one column, their rarity, instead of one per value where numbers are needed.
MAX_ONE_HOT = 30


@dataclass(frozen=True)
class Contents:
    """What a matrix that was read from a table holds.

    Parameters
    ----------
    n_numbers : int
        Number of its first columns, those of numbers.
    one_hot, rare : tuple of int
        Columns of categories with few and with many values.
    has_holes : bool
        Whether a number is missing.
    """

    n_numbers: int
    one_hot: tuple[int, ...] = ()
    rare: tuple[int, ...] = ()
    has_holes: bool = False

    @classmethod
    def of(cls, samples: NDArray[Any], n_values: Sequence[int] | NDArray[np.int64]) -> Contents:
        """Return what a matrix holds, of which the last columns are codes of categories.

        Parameters
        ----------
        samples : ndarray or SampleStore of shape (n_samples, n_columns)
            The matrix that a table was read into, with NaN where a category is missing.
        n_values : sequence of int
            Lengths of the vocabularies of the categories, all of whose values occur.

        Returns
        -------
        Contents
        """
        n_numbers = samples.shape[1] - len(n_values)
        high = extremes(samples, axis=0)[1]
        few: list[int] = []
        many: list[int] = []
        for column, n in enumerate(n_values, start=n_numbers):
            (few if n <= MAX_ONE_HOT and not high[column] >= FIRST_HASHED else many).append(column)
        return cls(n_numbers, tuple(few), tuple(many), has_missing(selected(samples, slice(0, n_numbers))))

    @classmethod
    def of_columns(cls, columns: TableColumns) -> Contents:
        """Return what the matrix holds that a table is read into, before values of single identities are left out.

        Parameters
        ----------
        columns : TableColumns
            The columns of the table.

        Returns
        -------
        Contents
        """
        n_numbers = len(columns.names) - len(columns.categories)
        few, many = (
            tuple(
                column
                for column, n in zip(columns.categories.tolist(), columns.n_values, strict=True)
                if (n <= MAX_ONE_HOT) == is_few
            )
            for is_few in (True, False)
        )
        has_holes = any(column.missing and column.kind not in (CATEGORY, LEFT_OUT) for column in columns.columns)
        return cls(n_numbers, few, many, has_holes)

    @property
    def is_plain(self) -> bool:
        """Whether these are complete numbers, which all models take."""
        return not (self.one_hot or self.rare or self.has_holes)

    @property
    def categories(self) -> list[int]:
        """Columns of categories."""
        return sorted([*self.one_hot, *self.rare])

    def cleaning(self) -> ColumnRepresentation:
        """Return a representation that makes complete numbers of all columns."""
        parts: list[tuple[str, Any, list[int]]] = []
        if self.n_numbers:
            filled = Imputer(indicator=True) if self.has_holes else "passthrough"
            parts.append(("numbers", filled, list(range(self.n_numbers))))
        if self.one_hot:
            parts.append(("values", OneHotEncoder(handle_unknown="ignore", sparse_output=False), list(self.one_hot)))
        if self.rare:
            # Codes of values that only one identity may have follow from these values, and must not be written.
            parts.append(("rarities", RarityEncoder(keep_below=FIRST_HASHED), list(self.rare)))
        return ColumnRepresentation(parts)


def for_table(model: Similarity, contents: Contents, *, closed_set: bool = False) -> Similarity:
    """Return a model that takes a matrix with these contents; it is changed in place.

    Trees, forests and boosting compare categories themselves; other models are given complete numbers. Holes are filled in
    where a model does not take them.

    Parameters
    ----------
    model : Similarity
        The unfitted model.
    contents : Contents
        What the matrix holds.
    closed_set : bool, default=False
        Whether the model will meet the identities of the training data only, which categories are then learned for.

    Returns
    -------
    Similarity
        The model.
    """
    if contents.is_plain:
        return model
    parameters = model.get_params(deep=False)
    if "estimators" in parameters:
        members = [(name, for_table(member, contents, closed_set=closed_set)) for name, member in parameters["estimators"]]
        return _set(model, estimators=members)
    if "estimator" in parameters:
        return _set(model, estimator=for_table(parameters["estimator"], contents, closed_set=closed_set))
    if isinstance(model, TreeModel):
        model = _set(model, categorical_features=contents.categories or FROM_DTYPE)
        if closed_set and contents.categories:
            model = _set(model, open_set=False)
        if contents.has_holes and contents.n_numbers and not model._takes_missing():
            model = _set(model, representation=_before(Imputer(indicator=True), model.representation))
        return model
    if isinstance(model, RepresentedMixin) and not (takes_missing(model.representation) and not contents.categories):
        return _set(model, representation=_before(contents.cleaning(), model.representation))
    return model


def reading_again(model: Similarity, columns: TableColumns | None, name: str) -> Similarity:
    """Return a clone of a model that takes the matrix that another one, of which it is a part, has read from a table.

    Parameters
    ----------
    model : Similarity
        The unfitted model.
    columns : TableColumns or None
        How the table was read; None if it was numbers.
    name : str
        What the model is called in an error.

    Returns
    -------
    Similarity
        The clone: its categories and the columns of its representation are given by their numbers in the matrix.
    """
    found: Similarity = clone(model)
    if columns is None:
        return found
    categories = columns.categories.tolist()
    if categories and found._table_categories() is None:
        words = [column.name for column in columns.columns if column.kind == CATEGORY]
        is_tree = hasattr(model, "categorical_features")
        raise ValueError(
            f"{name} is a {type(model).__name__} that takes numbers only, but X has the category {words[-1]!r}; give it "
            f"{f'categorical_features={FROM_DTYPE!r}' if is_tree else encoding(model, repr(words))}, or drop the column."
        )
    return _numbered(found, columns)


def _numbered(model: Similarity, columns: TableColumns) -> Similarity:
    parameters = model.get_params(deep=False)
    if "estimators" in parameters:
        return _set(model, estimators=[(name, _numbered(member, columns)) for name, member in parameters["estimators"]])
    if "estimator" in parameters:
        return _set(model, estimator=_numbered(parameters["estimator"], columns))
    if "representation" in parameters:
        representation = with_matrix_columns(parameters["representation"], columns)
        if takes_categories(representation) and "categorical_features" not in parameters and len(columns.categories):
            representation = make_pipeline(KnownCodes(columns.categories.tolist()), representation)
        model = _set(model, representation=representation)
    if "categorical_features" in parameters:
        model = _set(model, categorical_features=columns.categories.tolist() or FROM_DTYPE)
    return model


def unread(model: Similarity, columns: TableColumns | None, *, by_name: bool = False) -> Similarity:
    """Return a model of `reading_again` with columns of the table, for another ``fit``; it is changed in place.

    Parameters
    ----------
    model : Similarity
        The unfitted model.
    columns : TableColumns or None
        How the table was read; None if it was numbers.
    by_name : bool, default=False
        Whether columns are given by name, for people, instead of by number.

    Returns
    -------
    Similarity
        The model.
    """
    if columns is None:
        return model
    parameters = model.get_params(deep=False)
    if "estimators" in parameters:
        members = [(name, unread(member, columns, by_name=by_name)) for name, member in parameters["estimators"]]
        return _set(model, estimators=members)
    if "estimator" in parameters:
        return _set(model, estimator=unread(parameters["estimator"], columns, by_name=by_name))
    own = parameters.get("representation")
    if isinstance(own, Pipeline) and isinstance(own.steps[0][1], KnownCodes):
        own = own.steps[1][1]
    if own is not None:
        model = _set(model, representation=with_table_columns(own, columns, by_name=by_name))
    if is_chosen(parameters.get("categorical_features")):
        found = [(j, column.name) for j, column in enumerate(columns.columns) if column.kind == CATEGORY]
        return _set(model, categorical_features=[name if by_name else j for j, name in found])
    return model


def common_categories(models: Sequence[tuple[str, Similarity]]) -> Any:
    """Return which columns of a table are categories to several models, as `TableColumns.of` takes it.

    Parameters
    ----------
    models : sequence of (str, Similarity) tuples
        Names and models.

    Returns
    -------
    "from_dtype", array-like of bool, int or str, or None
        What the models that name columns agree on; None if none of them takes categories.
    """
    known = [(name, model._table_categories()) for name, model in models]
    named = [(name, given) for name, given in known if is_chosen(given)]
    for name, given in named[1:]:
        if not np.array_equal(np.asarray(given), np.asarray(named[0][1])):
            raise ValueError(
                f"estimators: {named[0][0]!r} and {name!r} name different columns in categorical_features, "
                f"{named[0][1]!r} and {given!r}; name the same ones."
            )
    if named:
        return named[0][1]
    return FROM_DTYPE if any(given is not None for _, given in known) else None


def described(columns: TableColumns | None) -> list[dict[str, Any]]:
    """Return the columns of a table with their kinds and shares of missing values, for people and other programs.

    Parameters
    ----------
    columns : TableColumns or None
        The columns; None if the model was fitted on numbers.

    Returns
    -------
    list of dict
        One entry per column.
    """
    if columns is None:
        return []
    return [
        {
            "name": column.name,
            "kind": column.kind,
            "missing": column.missing,
            "n_distinct": column.n_distinct,
            "words": str(column),
        }
        for column in columns.columns
    ]


def _before(first: Any, representation: Any) -> Any:
    return first if representation is None else make_pipeline(first, representation)


def _set(model: Similarity, **parameters: Any) -> Similarity:
    found: Similarity = model.set_params(**parameters)
    return found
