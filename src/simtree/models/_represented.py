"""Mixin of similarities that have a representation."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from simtree._utils.matrices import check_magnitude
from simtree.io._fields import Fields
from simtree.pairs._sources import PairSource
from simtree.representation._applied import (
    fit_representation,
    represent,
    representation_from_state,
    representation_state,
)
from simtree.representation._columns import takes_missing, with_numbered_columns


class RepresentedMixin:
    """Methods to fit, apply and save ``representation``, which is applied once per sample in every method."""

    representation: Any
    representation_: Any
    n_features_in_: int

    def _fit_representation(self, samples: NDArray[Any], source: PairSource) -> NDArray[Any]:
        """Fit the representation; return the transformed training samples."""
        self.representation_, represented = fit_representation(self._own_representation(), samples, source)
        return represented

    def _own_representation(self) -> Any:
        """Return the representation with its columns by number, for it is given samples without names."""
        return with_numbered_columns(self.representation, getattr(self, "feature_names_in_", None))

    def _takes_missing(self) -> bool:
        """Return whether samples may have missing values, which the representation then fills in."""
        return takes_missing(getattr(self, "representation", None))

    def _represent(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return samples transformed by the fitted representation; an empty input is not passed to the transformer."""
        return samples if self.representation_ is None or not len(samples) else represent(self.representation_, samples)

    def _check_magnitude(self, represented: NDArray[Any], limit: float, needed_by: str) -> None:
        """Raise if a value is so large that a number computed from it would overflow."""
        plain = self.representation_ is None
        names = getattr(self, "feature_names_in_", None) if plain else None
        check_magnitude(represented, limit, needed_by, names=names, name="X" if plain else "X, after its representation,")

    def _get_representation_state(self) -> dict[str, Any] | None:
        """Return the state of the representation for a model file."""
        return representation_state(self.representation_)

    def _set_representation_state(self, fields: Fields) -> int:
        """Restore the representation from a model file, if any; return the number of features after it."""
        if not fields.has("representation"):
            self.representation_ = None
            return self.n_features_in_
        self.representation_, n_features = representation_from_state(fields.part("representation"), self.n_features_in_)
        return n_features
