"""Base class of posteriors of classifiers that are fitted once per fold, each on the other folds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from simtree.io._fields import Fields
from simtree.representation._base import (
    Codes,
    Floats,
    LabelledRepresentation,
    filled_in_blocks,
    folds_of_rows,
    quiet_classifiers,
)

# More folds in a model file are treated as corruption.
MAX_FOLDS = 1 << 10

M = TypeVar("M")


class Part(NamedTuple):
    """The samples that one classifier is fitted on, and those of its classes in the fold that is left out.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    targets : ndarray of shape (n_samples,)
        The class of each sample: all numbers from 0 to the number of ``classes`` - 1 occur, possibly only one.
    classes : ndarray of shape (n_classes,)
        Which classes of all samples these are.
    X_out, targets_out : ndarray
        Samples of these classes that are left out.
    """

    X: Floats
    targets: Codes
    classes: Codes
    X_out: Floats
    targets_out: Codes

    @classmethod
    def without(cls, X: Floats, codes: Codes, out: NDArray[np.bool_]) -> Self:
        """Return the part without some samples."""
        classes, targets = np.unique(codes[~out], return_inverse=True)
        known = out & np.isin(codes, classes)
        return cls(X[~out], targets, classes, X[known], np.searchsorted(classes, codes[known]))


def learned_apart(learn: Callable[[Part, int], M], parts: Sequence[Part], seeds: Sequence[int], n_jobs: int | None) -> list[M]:
    """Return what a classifier learns of each part, with a seed of its own."""
    return list(Parallel(n_jobs=n_jobs, prefer="threads")(map(delayed(learn), parts, seeds)))


class FoldedPosterior(LabelledRepresentation, Generic[M]):
    """Base class of class probabilities by the mean of classifiers, each of which was fitted without one fold.

    `fit_transform` returns, for each row, the probabilities of the one classifier that did not see it; `transform` the mean of
    all classifiers. There is one column per class, in order of first appearance. ``models_`` has, for each classifier, the
    classes that it knows and what it learned as arrays.
    """

    cv: int
    n_jobs: int | None
    models_: list[tuple[Codes, M]]

    @abstractmethod
    def _learn_models(self, parts: list[Part], seeds: list[int]) -> list[M]:
        """Return what the classifier of each part learned."""

    @abstractmethod
    def _add_scores(self, X: Floats, model: M, out: Floats) -> None:
        """Add to ``out``, which is zero, the class scores of samples, whose softmax are the probabilities."""

    @abstractmethod
    def _model_state(self, model: M) -> dict[str, Any]:
        """Return what a model file holds of a classifier."""

    @abstractmethod
    def _model_from_state(self, fields: Fields, n_classes: int) -> M:
        """Return a classifier read from a model file."""

    @quiet_classifiers()
    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        for_folds, for_models = rng.spawn(2)
        folds = folds_of_rows(codes, self.cv, for_folds)
        seeds = for_models.integers(2**31, size=self.cv).tolist()
        self._n_features_out = self.n_classes_
        parts = [Part.without(X, codes, folds == fold) for fold in range(self.cv)]
        learned = self._learn_models(parts, seeds)
        self.models_ = [(part.classes, model) for part, model in zip(parts, learned, strict=True)]
        if not cross_fitted:
            return None
        found = np.empty((len(X), self.n_classes_))
        for fold, model in enumerate(self.models_):
            rows = folds == fold
            found[rows] = self._mean_probabilities(X[rows], [model])
        return found

    def _apply(self, X: NDArray[Any]) -> Floats:
        return self._mean_probabilities(X, self.models_)

    def _mean_probabilities(self, X: NDArray[Any], models: list[tuple[Codes, M]]) -> Floats:
        """Return the mean of the class probabilities of some classifiers; zero for classes that a classifier does not know."""

        def fill(rows: slice, out: Floats) -> None:
            for classes, model in models:
                scores = np.zeros((len(out), len(classes)))
                self._add_scores(X[rows], model, scores)
                if not np.isfinite(scores).all():
                    raise ValueError("X holds numbers so large that class scores overflow; divide X by a large number.")
                out[:, classes] += softmax(scores)
            out /= len(models)

        return filled_in_blocks(len(X), self.n_classes_, fill, self.n_jobs)

    def _get_fitted_state(self) -> dict[str, Any]:
        models = [{"classes": classes, **self._model_state(model)} for classes, model in self.models_]
        return {"n_classes": self.n_classes_, "models": models}

    def _set_fitted_state(self, fields: Fields) -> int:
        self.models_ = []
        for part in fields.parts("models", MAX_FOLDS):
            classes = part.array("classes", "int64", (None,), low=0)
            if not len(classes) or (np.diff(classes) <= 0).any():
                raise part.fail("classes", "must increase")
            self.models_.append((classes, self._model_from_state(part, len(classes))))
        known = np.unique(np.concatenate([classes for classes, _ in self.models_])) if self.models_ else np.empty(0)
        # There are as many columns as the classifiers have classes, so that a small file cannot ask for much memory.
        self.n_classes_ = self._n_features_out = fields.integer("n_classes", 2, max(2, len(known)))
        if not np.array_equal(known, np.arange(self.n_classes_)):
            raise fields.fail("models", f"must know the {self.n_classes_:,} classes")
        return self.n_classes_


def softmax(scores: Floats) -> Floats:
    """Return exp(score) of each row, divided by their sum."""
    with np.errstate(over="ignore"):  # a difference of -inf is a share of zero
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def both_columns(of_second: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return two columns for the one that a classifier of two classes has: the score of the first class is zero."""
    return np.hstack([np.zeros_like(of_second), of_second])
