"""What all representations share: the border to scikit-learn, folds for cross-fitting, and rows in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from simtree._kernels.compilation import announced_compilation
from simtree._utils.folds import assign_folds
from simtree._utils.matrices import MAX_SQUARED, check_magnitude, check_matrix, check_unmasked
from simtree._utils.threads import in_threads
from simtree.io._fields import Fields
from simtree.pairs._labels import encode_labels

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# More classes in a model file are taken for damage.
MAX_CLASSES = 1 << 40
# Rows transformed at one time by one thread: their features stay in cache until they have been used.
BLOCK = 256


class LabelledRepresentation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A representation of points that is learned from their classes.

    `fit_transform` is cross-fitted: what a training row gets comes from models that never saw its label. `transform` uses
    everything.
    """

    random_state: int | np.random.RandomState | None
    n_classes_: int
    n_features_in_: int
    _n_features_out: int

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the representation from labelled points.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points.
        y : array-like of shape (n_points,)
            Their classes, of any type that can be sorted or hashed.

        Returns
        -------
        self
        """
        self._learn(X, y, cross_fitted=False)
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Learn the representation, and give each training row the answer of models that did not see its label.

        This is what a similarity must be trained on; ``fit(X, y).transform(X)`` would make training pairs look too easy.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        ndarray of shape (n_points, n_features_out)
        """
        found = self._learn(X, y, cross_fitted=True)
        assert found is not None
        return found

    def transform(self, X: ArrayLike) -> Floats:
        """The representation of points, from everything that was learned; of each row alone, bit for bit.

        Parameters
        ----------
        X : array-like of shape (n_points, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_points, n_features_out)
        """
        check_is_fitted(self)
        with announced_compilation():
            return check_represented(self._apply(check_matrix(self, X, dtype=self._dtype, order="C", reset=False)))

    # float32 where the model itself rounds to it.
    _dtype: type[np.floating[Any]] = np.float64
    # The largest absolute value of a feature in training.
    _max_value: float = MAX_SQUARED

    def _learn(self, X: ArrayLike, y: ArrayLike, *, cross_fitted: bool) -> Floats | None:
        """Fit; the cross-fitted representation of the rows if it is asked for."""
        self._check_parameters()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None; give the classes of X.")
        samples = check_matrix(self, X, dtype=self._dtype, order="C")
        check_magnitude(samples, self._max_value, f"sums of squares in {type(self).__name__}")
        check_unmasked("y", y)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(samples, labels)
        codes = encode_labels(labels)
        sizes = np.bincount(codes)
        if len(sizes) < 2:
            raise ValueError(f"y has {len(sizes)} class; a representation of classes needs at least 2.")
        if sizes.max() < 2:
            raise ValueError(f"y has {len(sizes)} classes but no class with two rows; nothing can be learned from them.")
        self.n_classes_ = len(sizes)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        with announced_compilation():
            found = self._fit(samples, codes, rng, cross_fitted)
        return None if found is None else check_represented(found)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter is not what it must be."""

    @abstractmethod
    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        """Learn from checked points and the numbers of their classes."""

    @abstractmethod
    def _apply(self, X: NDArray[Any]) -> Floats:
        """The representation of checked points."""

    @abstractmethod
    def _get_fitted_state(self) -> dict[str, Any]:
        """Return what a model file holds of what was learned."""

    @abstractmethod
    def _set_fitted_state(self, fields: Fields) -> int:
        """Read what was learned; return the number of columns of transformed samples."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def check_represented(found: Floats) -> Floats:
    """Return represented samples if they are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(found.sum()) or np.isfinite(found).all()
    if not finite:
        raise ValueError(
            "X has values so far from those of fit that their representation overflows; leave these samples out, or "
            "divide X by a large number first and fit again."
        )
    return found


def class_means(X: NDArray[Any], codes: Codes) -> Floats:
    """The mean of the rows of each class."""
    sums = np.zeros((int(codes.max()) + 1, X.shape[1]))
    np.add.at(sums, codes, X)
    return np.asarray(sums / np.bincount(codes)[:, None])


def folds_of_rows(codes: Codes, n_folds: int, rng: np.random.Generator) -> Codes:
    """A fold for each row: each class is spread over the folds as evenly as can be."""
    if len(codes) < n_folds:
        raise ValueError(f"cv={n_folds!r} is more than the number of rows, {len(codes)}; make fewer folds.")
    return assign_folds(len(codes), n_folds, rng, codes)


def filled_in_blocks(n: int, n_columns: int, fill: Callable[[slice, Floats], None], n_jobs: int | None) -> Floats:
    """An array of n rows, of which ``fill(rows, out)`` fills a block at a time."""
    out = np.zeros((n, n_columns))
    blocks = [slice(start, min(n, start + BLOCK)) for start in range(0, n, BLOCK)]
    in_threads(lambda rows: fill(rows, out[rows]), blocks, n_jobs)
    return out
