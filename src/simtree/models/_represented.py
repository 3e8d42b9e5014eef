"""How a similarity fits, applies and saves its representation."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from simtree._utils.matrices import check_magnitude
from simtree.io._fields import Fields
from simtree.pairs._sampling import PairSource
from simtree.representation._applied import (
    fit_representation,
    represent,
    representation_from_state,
    representation_state,
)


class RepresentedMixin:
    """A similarity of represented samples: ``representation`` is fitted once and applied once per sample in every method."""

    representation: Any
    representation_: Any
    n_features_in_: int

    def _fit_representation(self, samples: NDArray[Any], source: PairSource) -> NDArray[Any]:
        """Fit the representation; return the training samples as it represents them."""
        self.representation_, represented = fit_representation(self.representation, samples, source)
        return represented

    def _represent(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return samples as the fitted representation gives them; no samples stay none, which transformers refuse."""
        return samples if self.representation_ is None or not len(samples) else represent(self.representation_, samples)

    def _check_magnitude(self, represented: NDArray[Any], limit: float, needed_by: str) -> None:
        """Raise if a value is so large that a number computed from it would overflow."""
        plain = self.representation_ is None
        names = getattr(self, "feature_names_in_", None) if plain else None
        check_magnitude(represented, limit, needed_by, names=names, name="X" if plain else "X, after its representation,")

    def _get_representation_state(self) -> dict[str, Any] | None:
        """Return what a model file holds of the representation."""
        return representation_state(self.representation_)

    def _set_representation_state(self, fields: Fields) -> int:
        """Read the representation, if there is one; return how many features represented samples have."""
        if not fields.has("representation"):
            self.representation_ = None
            return self.n_features_in_
        self.representation_, n_features = representation_from_state(fields.part("representation"), self.n_features_in_)
        return n_features
