"""WithinClassWhitening: a linear map that makes the within-class covariance the identity."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.samples import fill_products
from simtree._utils.validation import check_integer, check_n_jobs, check_real
from simtree.io._fields import Fields, moderate
from simtree.io._registry import REPRESENTATION, register
from simtree.pairs._directions import signed
from simtree.representation._base import (
    MAX_CLASSES,
    Codes,
    Floats,
    LabelledRepresentation,
    filled_in_blocks,
    folds_of_rows,
)

# Minimum variance of a direction relative to the mean variance: below it there is only rounding error.
MIN_VARIANCE = 1e-12


class Moments(NamedTuple):
    """Counts and sums of the rows of each class, and the products of features summed over all rows."""

    counts: Floats
    sums: Floats
    gram: Floats

    @classmethod
    def of(cls, X: Floats, codes: Codes, n_classes: int) -> Self:
        """Return the moments of some rows."""
        sums = np.zeros((n_classes, X.shape[1]))
        np.add.at(sums, codes, X)
        return cls(np.bincount(codes, minlength=n_classes).astype(np.float64), sums, X.T @ X)

    def without(self, other: Moments) -> Moments:
        """Return the moments after removing the rows of ``other``."""
        return Moments(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Scales(NamedTuple):
    """Whitening, directions of whitened samples, and the share of between-class variance in each, in decreasing order."""

    whitening: Floats
    directions: Floats
    shares: Floats


@register(REPRESENTATION)
class WithinClassWhitening(LabelledRepresentation):
    """Transform samples linearly so that they vary equally in all directions within a class.

    Variation within an identity is reduced, and variation between identities stands out. The map is linear with few
    parameters, so it generalises to unseen identities. Use it before the cosine, distances or a forest.

    Parameters
    ----------
    shrinkage : float, default=0.1
        Shrinkage of the within-class covariance towards a multiple of the identity matrix, above 0 and at most 1. Use more
        if there are few rows per feature, or if the features are already well scaled; 1 changes only the overall scale.
    emphasis : float, default=0.0
        Exponent that emphasises directions in which classes differ. If r is the ratio of between-class to within-class
        variance, a direction is multiplied by (r / (1 + r)) to this power: 0 weighs all directions equally, 0.5 corresponds
        to probabilistic linear discriminant analysis.
    center : bool, default=True
        Whether to subtract the mean of all rows. This changes cosines; set it to False for embeddings trained for cosine
        similarity.
    n_components : int or None, default=None
        Number of directions to keep, in order of decreasing between-class variance; None keeps all with nonzero weight.
    cv : int, default=5
        Number of folds for cross-fitting.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for the folds; the fitted model does not depend on it.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Vector that is subtracted.
    matrix_ : ndarray of shape (n_features, n_features_out)
        Matrix of the linear map.
    n_classes_ : int
        Number of classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import WithinClassWhitening
    >>> X, y = load_iris(return_X_y=True)
    >>> whitening = WithinClassWhitening(n_components=2).fit(X, y)
    >>> whitening.transform(X).shape
    (150, 2)
    """

    mean_: Floats
    matrix_: Floats

    def __init__(
        self,
        *,
        shrinkage: float = 0.1,
        emphasis: float = 0.0,
        center: bool = True,
        n_components: int | None = None,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.emphasis = emphasis
        self.center = center
        self.n_components = n_components
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_real("shrinkage", self.shrinkage, 0.0, 1.0, open_low=True)
        check_real("emphasis", self.emphasis, 0.0, 1.0)
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 1)
        check_integer("cv", self.cv, 2)
        check_n_jobs(self.n_jobs)

    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        mean = X.mean(axis=0)
        centred = X - mean
        folds = folds_of_rows(codes, self.cv, rng)
        total = Moments.of(centred, codes, self.n_classes_)
        scales = self._scales(total)
        weights = scales.shares**self.emphasis
        axes = scales.directions[:, weights > 0.0][:, : self.n_components]
        self._n_features_out = axes.shape[1]
        self.mean_ = mean if self.center else np.zeros_like(mean)
        self.matrix_ = self._matrix(scales, axes)
        if not cross_fitted:
            return None
        found = np.empty((len(X), self._n_features_out))
        for fold in range(self.cv):
            rows = np.flatnonzero(folds == fold)
            others = total.without(Moments.of(centred[rows], codes[rows], self.n_classes_))
            # Each fold has its own directions: express all of them along the axes of the full fit.
            found[rows] = self._project(X[rows], self._matrix(self._scales(others), axes))
        return found

    def _apply(self, X: NDArray[Any]) -> Floats:
        return self._project(X, self.matrix_)

    def _get_fitted_state(self) -> dict[str, Any]:
        return {"n_classes": self.n_classes_, "mean": moderate(self.mean_), "matrix": moderate(self.matrix_)}

    def _set_fitted_state(self, fields: Fields) -> int:
        self.n_classes_ = fields.integer("n_classes", 2, MAX_CLASSES)
        self.mean_ = fields.moderate("mean", (self.n_features_in_,))
        self.matrix_ = fields.moderate("matrix", (self.n_features_in_, None))
        self._n_features_out = self.matrix_.shape[1]
        return self._n_features_out

    def _project(self, X: NDArray[Any], matrix: Floats) -> Floats:
        return filled_in_blocks(
            len(X), matrix.shape[1], lambda rows, out: fill_products(X[rows] - self.mean_, matrix, out), self.n_jobs
        )

    def _scales(self, moments: Moments) -> Scales:
        counts, sums, gram = moments
        n = counts.sum()
        # A class without remaining rows has no mean; its sum is zero up to rounding.
        centres = sums / np.maximum(counts, 1.0)[:, None]
        within = (gram - sums.T @ centres) / max(n - np.count_nonzero(counts), 1.0)
        whitening = inverse_root(within, self.shrinkage)
        offsets = (centres - sums.sum(axis=0) / n) @ whitening
        ratios, directions = np.linalg.eigh((offsets * counts[:, None]).T @ offsets / n)
        # Means of few rows differ even if their classes do not: subtract the expected sampling variance.
        mean_count = (n - (counts**2).sum() / n) / max(np.count_nonzero(counts) - 1, 1)
        ratios = np.maximum(ratios - 1.0 / mean_count, 0.0)[::-1]
        shares = (
            ratios / (1.0 + ratios) if ratios[0] > 0.0 else np.ones_like(ratios)
        )  # no direction separates classes: weigh all equally
        return Scales(whitening, signed(directions)[:, ::-1], shares)

    def _matrix(self, scales: Scales, axes: Floats) -> Floats:
        """Return whitening and weighting as one matrix, along the axes."""
        weighted = (scales.directions * scales.shares**self.emphasis) @ scales.directions.T
        return np.ascontiguousarray(scales.whitening @ weighted @ axes)


def inverse_root(covariance: Floats, shrinkage: float) -> Floats:
    """Return the symmetric matrix that makes a covariance the identity, after shrinking it towards a multiple of that.

    Examples
    --------
    >>> inverse_root(np.diag([4.0, 16.0]), 1e-12).round(6).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    n_features = len(covariance)
    size = max(float(np.trace(covariance)) / n_features, 0.0) or 1.0
    variances, vectors = np.linalg.eigh((1.0 - shrinkage) * covariance + shrinkage * size * np.eye(n_features))
    return np.asarray((vectors / np.sqrt(np.maximum(variances, MIN_VARIANCE * size))) @ vectors.T)
