"""Base class and helpers of the representations: input checks, folds for cross-fitting, and blocks of rows."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
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

# More classes in a model file are treated as corruption.
MAX_CLASSES = 1 << 40
# Number of rows that one thread transforms at a time: few enough for their features to stay in cache.
BLOCK = 256


@contextmanager
def quiet_classifiers() -> Iterator[None]:
    """Hide what scikit-learn says of classifiers that are fitted here as intended.

    Threads share the filters: fitting in threads must enter this once, outside of them.
    """
    with warnings.catch_warnings():
        # The number of iterations is limited on purpose: what is fitted to the end is too sure of itself.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Labels are classes, however few samples each of them has in a fold.
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        yield


class LabelledRepresentation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Base class of representations that are learned from labels.

    `fit_transform` is cross-fitted: each training row is transformed by models that have not seen its label. `transform`
    uses the model fitted on all rows.
    """

    random_state: int | np.random.RandomState | None
    n_classes_: int
    n_features_in_: int
    _n_features_out: int

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the representation on labelled samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Label of each sample, of any sortable or hashable type.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._learn(X, y, cross_fitted=False)
        return self

    def fit_transform(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Fit the representation, and transform each training row by models that have not seen its label.

        Train a similarity on this output: ``fit(X, y).transform(X)`` would make the training pairs look too easy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Label of each sample, of any sortable or hashable type.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Cross-fitted representation of the training samples.
        """
        found = self._learn(X, y, cross_fitted=True)
        assert found is not None
        return found

    def transform(self, X: ArrayLike) -> Floats:
        """Return the representation of samples, using the model fitted on all training rows.

        The result for a row does not depend on the other rows, bit for bit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Representation of the samples.
        """
        check_is_fitted(self)
        with announced_compilation():
            return check_represented(self._apply(check_matrix(self, X, dtype=self._dtype, order="C", reset=False)))

    # float32 for models that round their input to it.
    _dtype: type[np.floating[Any]] = np.float64
    # The largest absolute value of a feature in training.
    _max_value: float = MAX_SQUARED

    def _learn(self, X: ArrayLike, y: ArrayLike, *, cross_fitted: bool) -> Floats | None:
        """Fit, and return the cross-fitted representation of the rows if requested."""
        self._check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give the label of each sample."
            )
        samples = check_matrix(self, X, dtype=self._dtype, order="C")
        check_magnitude(samples, self._max_value, f"sums of squares in {type(self).__name__}")
        check_unmasked("y", y)
        labels = column_or_1d(y, warn=True)
        check_consistent_length(samples, labels)
        codes = encode_labels(labels)
        sizes = np.bincount(codes)
        if len(sizes) < 2:
            raise ValueError(f"y has {len(sizes)} class; {type(self).__name__} requires at least 2 classes.")
        if sizes.max() < 2:
            raise ValueError(f"y has {len(sizes)} classes but no class has two rows; give at least two samples of some class.")
        self.n_classes_ = len(sizes)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        with announced_compilation():
            found = self._fit(samples, codes, rng, cross_fitted)
        return None if found is None else check_represented(found)

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error if a parameter is invalid."""

    @abstractmethod
    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        """Fit on checked samples and their integer class codes."""

    @abstractmethod
    def _apply(self, X: NDArray[Any]) -> Floats:
        """Return the representation of checked samples."""

    @abstractmethod
    def _get_fitted_state(self) -> dict[str, Any]:
        """Return the fitted state for a model file."""

    @abstractmethod
    def _set_fitted_state(self, fields: Fields) -> int:
        """Restore the fitted state from a model file; return the number of output columns."""

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
    """Return the mean of the rows of each class."""
    sums = np.zeros((int(codes.max()) + 1, X.shape[1]))
    np.add.at(sums, codes, X)
    return np.asarray(sums / np.bincount(codes)[:, None])


def folds_of_rows(codes: Codes, n_folds: int, rng: np.random.Generator) -> Codes:
    """Return the fold of each row; each class is distributed over the folds as evenly as possible."""
    if len(codes) < n_folds:
        raise ValueError(f"cv={n_folds!r} exceeds the number of rows, {len(codes)}; use fewer folds.")
    return assign_folds(len(codes), n_folds, rng, codes)


def filled_in_blocks(n: int, n_columns: int, fill: Callable[[slice, Floats], None], n_jobs: int | None) -> Floats:
    """Return an array of n rows, filled one block at a time by ``fill(rows, out)``."""
    out = np.zeros((n, n_columns))
    blocks = [slice(start, min(n, start + BLOCK)) for start in range(0, n, BLOCK)]
    in_threads(lambda rows: fill(rows, out[rows]), blocks, n_jobs)
    return out
