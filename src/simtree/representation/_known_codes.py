"""KnownCodes: one number for all values of a category that are not in the vocabulary of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from simtree._utils.matrices import check_matrix
from simtree._utils.validation import check_integer
from simtree.io._fields import Fields
from simtree.io._registry import REPRESENTATION, register
from simtree.pairs._codes import known_codes


@register(REPRESENTATION)
class KnownCodes(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace the codes of values that are not in the vocabulary of a table by one number.

    Ensembles put it before the encoders of their members: such a code follows from the value, which only one identity may have,
    and an encoder would write it to model files.

    Parameters
    ----------
    columns : sequence of int
        Columns of codes.

    Examples
    --------
    >>> KnownCodes([1]).fit_transform([[7e9, 0.0], [1.0, 7e9]])
    array([[ 7.e+09,  0.e+00],
           [ 1.e+00, -2.e+00]])
    """

    #: NaN stays where it is.
    passes_missing: ClassVar[bool] = True

    def __init__(self, columns: Sequence[int]) -> None:
        self.columns = columns

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Check the samples; there is nothing to learn.

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
        check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return samples with one number in place of codes outside of the vocabulary.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            A copy.
        """
        check_is_fitted(self, "n_features_in_")
        samples = check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return known_codes(samples, np.asarray(self.columns, dtype=np.int64))

    def _check_parameters(self) -> None:
        """Raise an error if the parameter is invalid."""
        for column in self.columns:
            check_integer("columns", column, 0)

    def _get_fitted_state(self) -> dict[str, Any]:
        """Return what a model file holds: nothing but the parameter."""
        return {}

    def _set_fitted_state(self, fields: Fields) -> int:
        """Return the number of output columns, after checking that the columns of a model file exist."""
        if max(self.columns, default=0) >= self.n_features_in_:
            raise fields.fail("columns", f"must be numbers of the {self.n_features_in_:,} columns")
        return int(self.n_features_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
