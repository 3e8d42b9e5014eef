"""Mixin of similarities that have a representation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import check_magnitude, extremes, has_missing
from simtree.io._fields import Fields
from simtree.pairs._inputs import n_columns
from simtree.pairs._sources import PairSource
from simtree.pairs._store import mapped
from simtree.pairs._table import FROM_DTYPE, TableColumns
from simtree.representation._applied import (
    fit_representation,
    represent,
    representation_from_state,
    representation_state,
)
from simtree.representation._columns import takes_categories, takes_missing, with_matrix_columns, with_numbered_columns


class RepresentedMixin:
    """Methods to fit, apply and save ``representation``, which is applied once per sample in every method.

    Of a table, it is applied to the numbers, and codes of categories follow as they are; a representation of categories, such
    as an encoder, is given all columns and returns numbers. Columns without any value in ``fit`` stay without values: they are
    made missing before all else, so that no representation or coordinate uses what they hold later.
    """

    representation: Any
    representation_: Any
    columns_: TableColumns | None
    n_features_in_: int
    _empty_columns: tuple[int, ...]

    def _table_categories(self) -> Any:
        """Return which columns are categories: a model without such a parameter reads tables for an encoder."""
        return getattr(self, "categorical_features", FROM_DTYPE if takes_categories(self.representation) else None)

    def _fit_representation(self, samples: NDArray[Any], source: PairSource) -> NDArray[Any]:
        """Fit the representation; return the transformed training samples."""
        self.__dict__.pop("_empty_columns", None)  # of an earlier fit
        if self._takes_missing() and has_missing(samples):
            empty = np.flatnonzero(np.isnan(extremes(samples, axis=0)[0]))
            if len(empty):
                self._empty_columns = tuple(empty.tolist())
        given, n_kept = self._given_and_kept(samples)
        representation = self._own_representation() if given.shape[1] > n_kept else None
        self.representation_, represented = fit_representation(
            representation, given, source, allow_missing=self._takes_represented_missing(), n_kept=n_kept
        )
        return represented

    def _represent(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return samples transformed by the fitted representation; an empty input is not passed to the transformer."""
        if self._empty_columns:
            samples = mapped(samples, partial(_without_values, columns=self._empty_columns))
        given, n_kept = self._given_and_kept(samples)
        if self.representation_ is None or not len(samples):
            return given
        return represent(self.representation_, given, allow_missing=self._takes_represented_missing(), n_kept=n_kept)

    def _n_codes(self) -> int:
        """Return the number of columns of represented samples that are codes of categories, the last ones."""
        columns = getattr(self, "columns_", None)
        return 0 if columns is None or takes_categories(self.representation) else len(columns.categories)

    def _n_read(self) -> int:
        """Return the number of columns of samples before their representation: features, or what a table is read into."""
        return n_columns(self)

    def _n_given(self) -> int:
        """Return the number of columns that are given to the representation."""
        return self._n_read() - self._n_codes()

    def _given_and_kept(self, samples: NDArray[Any]) -> tuple[NDArray[Any], int]:
        """Return samples for the representation, and how many of their last columns are codes that are not given to it."""
        columns = getattr(self, "columns_", None)
        if columns is None or self._n_codes():
            return samples, self._n_codes()
        # To an encoder all values outside of the vocabulary are one more value: those of single identities are not written.
        return mapped(samples, columns.for_encoders), 0

    def _own_representation(self) -> Any:
        """Return the representation with its columns by number, for it is given samples without names."""
        columns = getattr(self, "columns_", None)
        if columns is None:
            return with_numbered_columns(self.representation, getattr(self, "feature_names_in_", None))
        return with_matrix_columns(self.representation, columns)

    def _takes_represented_missing(self) -> bool:
        """Return whether samples may still have missing values after their representation."""
        return False

    def _takes_missing(self) -> bool:
        """Return whether samples may have missing values, which the representation then fills in."""
        return takes_missing(getattr(self, "representation", None))

    def _check_magnitude(self, represented: NDArray[Any], limit: float, needed_by: str) -> None:
        """Raise if a value is so large that a number computed from it would overflow."""
        plain = self.representation_ is None
        names = getattr(self, "feature_names_in_", None) if plain else None
        check_magnitude(represented, limit, needed_by, names=names, name="X" if plain else "X, after its representation,")

    def _get_representation_state(self) -> dict[str, Any] | None:
        """Return the state of the representation for a model file."""
        return representation_state(self.representation_)

    def _set_representation_state(self, fields: Fields) -> int:
        """Restore the representation from a model file, if any; return the number of features after it, without codes."""
        if not fields.has("representation"):
            self.representation_ = None
            return self._n_given()
        self.representation_, n_features = representation_from_state(fields.part("representation"), self._n_given())
        return n_features


def _without_values(rows: NDArray[Any], columns: tuple[int, ...]) -> NDArray[Any]:
    """Return rows that lack the values of some columns; a copy if they have any."""
    if np.isnan(rows[:, columns]).all():
        return rows
    found = rows.copy()
    found[:, columns] = np.nan
    return found
