"""RarityEncoder: each value replaced by how rare it is."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from simtree._utils.matrices import check_matrix
from simtree._utils.validation import check_real
from simtree.io._fields import MAX_COUNT, Fields
from simtree.io._registry import REPRESENTATION, register

Floats = NDArray[np.float64]


@register(REPRESENTATION)
class RarityEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each value by its rarity, -log of its frequency in the training data.

    Use it for categories of which the rare ones say more. A missing value counts as one more value. A value that does not
    occur in the training data, or occurs there once, has the rarity of a value that occurs once.

    Parameters
    ----------
    keep_below : float or None, default=None
        Values of at least this number are not kept, and have the rarity of a value that occurs once. Models of tables set it
        for codes of values that only one identity may have.

    Attributes
    ----------
    values_ : list of ndarray
        Values of each feature that occur at least twice, in increasing order; NaN comes last.
    rarities_ : list of ndarray
        Their rarities.
    n_samples_ : int
        Number of training samples.

    Examples
    --------
    >>> from simtree.representation import RarityEncoder
    >>> RarityEncoder().fit([[1.0], [1.0], [1.0], [2.0]]).transform([[1.0], [2.0], [7.0]]).ravel().round(2)
    array([0.29, 1.39, 1.39])
    """

    def __init__(self, *, keep_below: float | None = None) -> None:
        self.keep_below = keep_below

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Count the values of each feature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples: codes of categories, or other numbers; NaN is missing.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        samples = check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        self.n_samples_ = len(samples)
        self.values_, self.rarities_ = [], []
        for feature in samples.T:
            values, counts = np.unique(feature, return_counts=True)
            shared = counts > 1
            if self.keep_below is not None:
                shared &= ~(values >= self.keep_below)  # NaN is kept
            self.values_.append(values[shared])
            self.rarities_.append(np.log(self.n_samples_ / counts[shared]))
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the rarity of each value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rarities, at least 0.
        """
        check_is_fitted(self)
        samples = check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        found = np.full(samples.shape, np.log(self.n_samples_))
        for j, (values, rarities) in enumerate(zip(self.values_, self.rarities_, strict=True)):
            if not len(values):
                continue
            place = np.minimum(np.searchsorted(values, samples[:, j]), len(values) - 1)
            known = (values[place] == samples[:, j]) | (np.isnan(values[place]) & np.isnan(samples[:, j]))
            found[known, j] = rarities[place[known]]
        return found

    def _check_parameters(self) -> None:
        """Raise an error if the parameter is invalid."""
        if self.keep_below is not None:
            check_real("keep_below", self.keep_below, -np.inf, np.inf)

    def _get_fitted_state(self) -> dict[str, Any]:
        """Return the counts for a model file."""
        counts = [np.rint(self.n_samples_ * np.exp(-rarities)).astype(np.int64) for rarities in self.rarities_]
        # A file holds finite numbers: the count of missing values, the last ones, is on its own.
        present = [~np.isnan(values) for values in self.values_]
        missing = [int(found[~own].sum()) for found, own in zip(counts, present, strict=True)]
        return {
            "n_samples": self.n_samples_,
            "n_values": np.array([np.count_nonzero(own) for own in present], dtype=np.int64),
            "values": np.concatenate([values[own] for values, own in zip(self.values_, present, strict=True)]),
            "counts": np.concatenate([found[own] for found, own in zip(counts, present, strict=True)]),
            "n_missing": np.array(missing, dtype=np.int64),
        }

    def _set_fitted_state(self, fields: Fields) -> int:
        """Restore the counts from a model file; return the number of output columns."""
        n_features = int(self.n_features_in_)
        self.n_samples_ = fields.integer("n_samples", 1, MAX_COUNT)
        values = fields.array("values", "float64", (None,))
        counts = fields.array("counts", "int64", values.shape, low=2, high=self.n_samples_)
        missing = fields.array("n_missing", "int64", (n_features,), low=0, high=self.n_samples_)
        ends = np.cumsum(fields.lengths("n_values", n_features, len(values)))[:-1]
        self.values_, self.rarities_ = [], []
        for own, number, absent in zip(np.split(values, ends), np.split(counts, ends), missing, strict=True):
            if (np.diff(own) <= 0.0).any():
                raise fields.fail("values", "must be increasing")
            nan, count = (np.array([np.nan]), [absent]) if absent else (np.empty(0), [])
            self.values_.append(np.concatenate([own, nan]))
            self.rarities_.append(np.log(self.n_samples_ / np.concatenate([number, count])))
        return n_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
