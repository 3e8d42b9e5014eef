"""Imputer: missing values replaced by a number per feature."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from simtree._utils.matrices import check_matrix
from simtree._utils.validation import check_choice, check_real
from simtree.io._fields import MAX_MODERATE, Fields, moderate
from simtree.io._registry import REPRESENTATION, register

Floats = NDArray[np.float64]

STRATEGIES = ("median", "mean", "most_frequent", "constant")


@register(REPRESENTATION)
class Imputer(TransformerMixin, BaseEstimator):
    """Replace missing values by the median, the mean, the most frequent value or a constant of their feature.

    Put it before models and representations that need complete numbers, such as `GaussianSimilarity`. Trees, forests and
    boosting also learn from what is missing.

    Parameters
    ----------
    strategy : {"median", "mean", "most_frequent", "constant"}, default="median"
        The number that replaces the missing values of a feature, found in the training data. Of several most frequent values
        it is the smallest.
    fill_value : float, default=0.0
        The number for ``strategy="constant"``, and for features without any value in the training data.
    indicator : bool, default=False
        Whether to append a column of 0 and 1 for each feature with missing values in the training data, 1 where its value was
        missing.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        The number that replaces the missing values of each feature.
    missing_features_ : ndarray of int
        Features with missing values in the training data.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.representation import Imputer
    >>> Imputer(indicator=True).fit_transform([[1.0, 5.0], [3.0, np.nan], [np.nan, 7.0], [7.0, 7.0]])
    array([[1., 5., 0., 0.],
           [3., 7., 0., 1.],
           [3., 7., 1., 0.],
           [7., 7., 0., 0.]])
    """

    def __init__(self, *, strategy: str = "median", fill_value: float = 0.0, indicator: bool = False) -> None:
        self.strategy = strategy
        self.fill_value = fill_value
        self.indicator = indicator

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the number that replaces the missing values of each feature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples; NaN is missing.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        samples = check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        missing = np.isnan(samples)
        self.missing_features_ = np.flatnonzero(missing.any(axis=0))
        present = [feature[~absent] for feature, absent in zip(samples.T, missing.T, strict=True)]
        self.statistics_ = np.array([self._statistic(values) for values in present], dtype=np.float64)
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return samples without missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples; NaN is missing.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Samples, followed by the columns of ``indicator``.
        """
        check_is_fitted(self)
        samples = check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        missing = np.isnan(samples)
        filled = np.where(missing, self.statistics_, samples)
        if not self.indicator:
            return filled
        return np.hstack([filled, missing[:, self.missing_features_].astype(np.float64)])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the output columns; those of ``indicator`` are called ``missing(name)``.

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
        names = _check_feature_names_in(self, input_features)
        if not self.indicator:
            return np.asarray(names, dtype=object)
        return np.array([*names, *(f"missing({names[j]})" for j in self.missing_features_)], dtype=object)

    def _statistic(self, values: Floats) -> float:
        """Return what replaces the missing values of a feature with these values."""
        if self.strategy == "constant" or not len(values):
            return float(self.fill_value)
        if self.strategy == "median":
            return float(np.median(values))
        if self.strategy == "mean":
            return float(np.mean(values))
        distinct, counts = np.unique(values, return_counts=True)
        return float(distinct[np.argmax(counts)])

    def _check_parameters(self) -> None:
        check_choice("strategy", self.strategy, STRATEGIES)
        check_real("fill_value", self.fill_value, -MAX_MODERATE, MAX_MODERATE)
        check_choice("indicator", self.indicator, (True, False))

    def _get_fitted_state(self) -> dict[str, Any]:
        """Return the statistics for a model file."""
        return {"statistics": moderate(self.statistics_), "missing_features": self.missing_features_.astype(np.int64)}

    def _set_fitted_state(self, fields: Fields) -> int:
        """Restore the statistics from a model file; return the number of output columns."""
        n_features = int(self.n_features_in_)
        self.statistics_ = fields.moderate("statistics", (n_features,))
        found = fields.array("missing_features", "int64", (None,), low=0, high=n_features - 1)
        if (np.diff(found) <= 0).any():
            raise fields.fail("missing_features", "must be increasing")
        self.missing_features_ = found
        return n_features + (len(found) if self.indicator else 0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
