"""MeanPosterior: the mean of class probabilities of several kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from simtree._utils.members import NamedMembers
from simtree._utils.validation import count
from simtree.io._fields import Fields
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._applied import represent, representation_from_state, representation_state
from simtree.representation._base import MAX_CLASSES, Codes, Floats, LabelledRepresentation

# More members in a model file are treated as corruption.
MAX_MEMBERS = 1 << 8


@register(REPRESENTATION)
class MeanPosterior(NamedMembers, LabelledRepresentation):
    """Represent samples by the mean of class probabilities of several kinds, for the classes seen in training.

    Classifiers that differ in kind err on different samples, and their mean is less sure of what it does not know. For
    closed-set problems; score it by a `PosteriorSimilarity`.

    Parameters
    ----------
    posteriors : list of (str, transformer) tuples
        Names and transformers that return one probability per class, such as `ForestPosterior`, or Pipelines that end in one;
        clones of these are fitted.

    Attributes
    ----------
    posteriors_ : list of transformers
        The fitted transformers.
    n_classes_ : int
        Number of classes. Columns are in order of first appearance.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import ForestPosterior, LogisticPosterior, MeanPosterior
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("trees", ForestPosterior(n_estimators=50, random_state=0)), ("linear", LogisticPosterior(random_state=0))]
    >>> cross_fitted = MeanPosterior(members).fit_transform(X, y)
    >>> float((cross_fitted.argmax(axis=1) == y).mean().round(2))
    0.95
    """

    random_state = None
    posteriors_: list[Any]
    _MEMBERS = "posteriors"

    def __init__(self, posteriors: Sequence[tuple[str, Any]]) -> None:
        self.posteriors = posteriors

    def _check_parameters(self) -> None:
        self._check_names("transformer")
        for name, member in self.posteriors:
            if isinstance(member, type) or not all(hasattr(member, method) for method in ("fit_transform", "transform")):
                raise TypeError(f"posteriors has {member!r} under {name!r}; give transformers such as ForestPosterior().")

    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        self._n_features_out = self.n_classes_
        self.posteriors_, total = [], np.zeros((len(X), self.n_classes_))
        for name, member in self.posteriors:
            fitted = clone(member)
            if cross_fitted:
                found = np.asarray(fitted.fit_transform(X, codes))
            else:
                found = np.asarray(fitted.fit(X, codes).transform(X[:1]))
            if found.shape[1] != self.n_classes_ or found.min() < 0.0:
                raise ValueError(
                    f"posteriors has {member!r} under {name!r}, which does not return one probability for each of the "
                    f"{count(self.n_classes_, 'class', 'classes')}; give transformers that do, such as ForestPosterior with "
                    "max_classes of at least this number."
                )
            self.posteriors_.append(fitted)
            if cross_fitted:
                total += found
        return total / len(self.posteriors_) if cross_fitted else None

    def _apply(self, X: NDArray[Any]) -> Floats:
        total = np.zeros((len(X), self.n_classes_))
        for member in self.posteriors_:
            total += represent(member, X)
        return np.asarray(total / len(self.posteriors_))

    def _get_fitted_state(self) -> dict[str, Any]:
        return {"n_classes": self.n_classes_, "members": [representation_state(member) for member in self.posteriors_]}

    def _set_fitted_state(self, fields: Fields) -> int:
        self.n_classes_ = self._n_features_out = fields.integer("n_classes", 2, MAX_CLASSES)
        parts = fields.parts("members", MAX_MEMBERS)
        if len(parts) != len(self.posteriors):
            raise fields.fail("members", f"must be {len(self.posteriors):,}, as the parameters say")
        self.posteriors_ = []
        for part in parts:
            member, n_columns = representation_from_state(part, self.n_features_in_)
            if n_columns != self.n_classes_:
                raise part.fail("n_classes", f"must be {self.n_classes_:,}")
            self.posteriors_.append(member)
        return self.n_classes_
