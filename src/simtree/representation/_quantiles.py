"""MarginalQuantiles: each feature replaced by its smoothed quantile in the training data."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from simtree._utils.matrices import check_matrix
from simtree._utils.validation import check_choice, check_integer
from simtree.io._fields import Fields
from simtree.io._registry import REPRESENTATION, register

Floats = NDArray[np.float64]

# Quantiles in a model file are at least this far from 0 and 1: closer ones would need more rows than are possible.
MIN_LEVEL = 1e-12
# Values are clipped, knots beyond `HALVED` halved, so that no difference overflows; the smallest difference there is.
MAX_VALUE, HALVED, MIN_GAP = 1e308, 1e300, 5e-324


@register(REPRESENTATION)
class MarginalQuantiles(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each feature by its quantile in the training data, without using labels.

    This removes heavy tails and differences of scale between features. The quantile of a value is the share of training
    values below it plus half of those equal to it. Unlike scikit-learn's `QuantileTransformer` it keeps increasing beyond
    the training range, by at most half of the remaining distance to 0 or 1. Missing values (NaN) stay missing, and
    quantiles are those of the values that there are.

    Parameters
    ----------
    n_quantiles : int, default=100
        Approximate number of knots of the curve of each feature. A knot is a mean of neighbouring values. The extremes, and
        values shared by more than one in ``n_quantiles`` rows, have knots of their own, so that there are at most three
        times as many knots. A feature with at most this many distinct values has one knot per value.
    output : {"uniform", "normal"}, default="uniform"
        Distribution of the output: quantiles in (0, 1), or the corresponding values of a standard normal distribution.

    Attributes
    ----------
    knots_, levels_ : list of ndarray
        Values in increasing order and their quantiles, for each feature. The curve is linear in between. There are none for a
        feature without any value in `fit`, which is missing in all samples then.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree import MarginalQuantiles
    >>> margins = MarginalQuantiles().fit([[1.0], [10.0], [10.0], [1000.0]])
    >>> margins.transform([[1.0], [10.0], [505.0], [1e9]]).ravel().round(2)
    array([0.12, 0.5 , 0.69, 0.94])
    """

    passes_missing: ClassVar[bool] = True

    def __init__(self, *, n_quantiles: int = 100, output: str = "uniform") -> None:
        self.n_quantiles = n_quantiles
        self.output = output

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Compute the knots of each feature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, NaN where a value is missing.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        samples = check_matrix(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        curves = [_curve(feature[~np.isnan(feature)], self.n_quantiles) for feature in samples.T]
        self.knots_, self.levels_ = [knots for knots, _ in curves], [levels for _, levels in curves]
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the quantiles of samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, NaN where a value is missing.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Quantiles, or the corresponding values of a standard normal distribution; NaN where a value is missing.
        """
        check_is_fitted(self)
        samples = check_matrix(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        found = np.full_like(samples, np.nan)
        for j, (knots, levels) in enumerate(zip(self.knots_, self.levels_, strict=True)):
            there = ~np.isnan(samples[:, j])
            if len(knots):
                found[there, j] = _quantiles(samples[there, j], knots, levels)
        return np.asarray(ndtri(found) if self.output == "normal" else found, dtype=np.float64)

    def _check_parameters(self) -> None:
        check_integer("n_quantiles", self.n_quantiles, 2)
        check_choice("output", self.output, ("uniform", "normal"))

    def _get_fitted_state(self) -> dict[str, Any]:
        """Return the state of the knots for a model file."""
        return {
            "n_knots": np.array([len(knots) for knots in self.knots_], dtype=np.int64),
            "knots": np.concatenate(self.knots_),
            "levels": np.concatenate(self.levels_),
        }

    def _set_fitted_state(self, fields: Fields) -> int:
        """Restore the knots from a model file; return the number of output columns."""
        knots = fields.array("knots", "float64", (None,))
        levels = fields.array("levels", "float64", knots.shape, low=MIN_LEVEL, high=1.0 - MIN_LEVEL)
        n_knots = fields.lengths("n_knots", self.n_features_in_, len(knots))
        ends = np.cumsum(n_knots)[:-1]
        self.knots_, self.levels_ = np.split(knots, ends), np.split(levels, ends)
        for of_feature, heights in zip(self.knots_, self.levels_, strict=True):
            if (of_feature[1:] <= of_feature[:-1]).any() or (heights[1:] < heights[:-1]).any():
                raise fields.fail("knots", "must be increasing, and so must levels")
        return int(self.n_features_in_)


def _curve(values: Floats, n_quantiles: int) -> tuple[Floats, Floats]:
    """Return the knots of a feature and their levels."""
    distinct, counts = np.unique(values, return_counts=True)
    n = len(values)
    levels = (np.cumsum(counts) - counts / 2) / n
    if len(distinct) <= n_quantiles:
        return distinct, levels
    alone = counts > n / n_quantiles
    alone[[0, -1]] = True
    begins = np.diff(np.floor(levels * n_quantiles), prepend=-1.0) > 0
    begins |= alone
    begins[1:] |= alone[:-1]
    starts = np.flatnonzero(begins)
    weights = np.add.reduceat(counts, starts)
    # Weight the values before summing: the sum of large values could overflow.
    knots = np.add.reduceat(distinct * (counts / np.repeat(weights, np.diff(starts, append=len(counts)))), starts)
    # Rounding can make a mean equal to the next knot.
    rising = np.concatenate([[True], np.diff(np.maximum.accumulate(knots)) > 0])
    return knots[rising], (np.add.reduceat(levels * counts, starts) / weights)[rising]


def _quantiles(values: Floats, knots: Floats, levels: Floats) -> Floats:
    """Return the curve at some values: non-decreasing even in floating point, and in (0, 1)."""
    # Halves of large numbers, because their differences could overflow; not of small ones, which halving could make equal.
    unit = 0.5 if max(-knots[0], knots[-1]) > HALVED else 1.0
    at, knots = unit * np.clip(values, -MAX_VALUE, MAX_VALUE), unit * np.clip(knots, -MAX_VALUE, MAX_VALUE)
    last = len(knots) - 1
    gaps = np.maximum(knots[[1, last]] - knots[[0, last - 1]], MIN_GAP) if last > 0 else np.full(2, unit)
    with np.errstate(under="ignore", over="ignore"):
        left = np.searchsorted(knots, at, side="right") - 1
        inside = np.clip(left, 0, max(last - 1, 0))
        after = np.minimum(inside + 1, last)
        gap = knots[after] - knots[inside]
        share = (at - knots[inside]) / np.where(gap > 0.0, gap, 1.0)
        between = np.minimum(levels[inside] + share * (levels[after] - levels[inside]), levels[after])
        below = levels[0] * _tail(np.maximum(knots[0] - at, 0.0) / gaps[0])
        above = 1.0 - (1.0 - levels[last]) * _tail(np.maximum(at - knots[last], 0.0) / gaps[1])
    return np.where(at <= knots[0], below, np.where(at >= knots[last], above, between))


def _tail(distance: Floats) -> Floats:
    """Return a factor that decreases from one at the edge of the training range to one half far from it."""
    return 0.5 + 0.5 / (1.0 + distance)
