"""WithinClassWhitening: directions scaled so that rows of one class scatter alike in all of them."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.samples import fill_products
from simtree._utils.validation import check_integer, check_n_jobs, check_real
from simtree.io._fields import Fields, moderate
from simtree.io._registry import REPRESENTATION, register
from simtree.pairs._directions import signed
from simtree.representation._base import MAX_CLASSES, Codes, Floats, LabelledRepresentation, filled_in_blocks, folds_of_rows

# The least variance of a direction, as a share of the mean one: below it there is rounding only.
MIN_VARIANCE = 1e-12


class Moments(NamedTuple):
    """Counts and sums of the rows of each class, and products of features summed over all rows."""

    counts: Floats
    sums: Floats
    gram: Floats

    @classmethod
    def of(cls, X: Floats, codes: Codes, n_classes: int) -> Self:
        """Those of some rows."""
        sums = np.zeros((n_classes, X.shape[1]))
        np.add.at(sums, codes, X)
        return cls(np.bincount(codes, minlength=n_classes).astype(np.float64), sums, X.T @ X)

    def without(self, other: Moments) -> Moments:
        """Those of the rows that are not among the others."""
        return Moments(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Scales(NamedTuple):
    """Whitening, directions of the whitened points, and the share of variance between classes in each, greatest first."""

    whitening: Floats
    directions: Floats
    shares: Floats


@register(REPRESENTATION)
class WithinClassWhitening(LabelledRepresentation):
    """Points in coordinates in which rows of one class scatter alike in all directions.

    What varies among samples of one person is made small, what varies between people stands out. It is linear and has few
    parameters, so that it serves people who were not seen in training; it is meant for cosine similarity or distances.

    Parameters
    ----------
    shrinkage : float, default=0.1
        From near 0 to 1: how much of the scatter within classes is replaced by a sphere of the same size. More if there are few
        rows for the number of features, or if the features are already well scaled. 1 changes nothing but the unit.
    emphasis : float, default=0.0
        How much directions in which the classes differ weigh more than others. With r the variance between classes over that
        within them, a direction is multiplied by (r / (1 + r)) to this power: 0 weighs all alike, 0.5 does what probabilistic
        linear discriminant analysis does.
    center : bool, default=True
        Whether the mean of all rows is subtracted. It changes cosines; descriptors that are made for cosines are better left.
    n_components : int or None, default=None
        How many directions are kept, those first in which the classes differ most; None keeps all that have a weight.
    cv : int, default=5
        In how many parts rows are left out.
    n_jobs : int or None, default=None
        Blocks of rows transformed at one time. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the parts; the model does not depend on it.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        What is subtracted.
    matrix_ : ndarray of shape (n_features, n_features_out)
        What is multiplied.
    n_classes_ : int
        How many classes there were.

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
        whole = Moments.of(centred, codes, self.n_classes_)
        scales = self._scales(whole)
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
            others = whole.without(Moments.of(centred[rows], codes[rows], self.n_classes_))
            # Directions of each fit are its own: all are seen along the axes of the whole.
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
        n, n_features = counts.sum(), gram.shape[0]
        # A class that is wholly left out has no mean; its sum is zero up to rounding.
        centres = sums / np.maximum(counts, 1.0)[:, None]
        within = (gram - sums.T @ centres) / max(n - np.count_nonzero(counts), 1.0)
        size = max(float(np.trace(within)) / n_features, 0.0) or 1.0
        variances, vectors = np.linalg.eigh((1.0 - self.shrinkage) * within + self.shrinkage * size * np.eye(n_features))
        whitening = (vectors / np.sqrt(np.maximum(variances, MIN_VARIANCE * size))) @ vectors.T
        offsets = (centres - sums.sum(axis=0) / n) @ whitening
        ratios, directions = np.linalg.eigh((offsets * counts[:, None]).T @ offsets / n)
        # Means of few rows differ also where their classes do not.
        mean_count = (n - (counts**2).sum() / n) / max(np.count_nonzero(counts) - 1, 1)
        ratios = np.maximum(ratios - 1.0 / mean_count, 0.0)[::-1]
        shares = ratios / (1.0 + ratios) if ratios[0] > 0.0 else np.ones_like(ratios)  # none differs: all are alike
        return Scales(whitening, signed(directions)[:, ::-1], shares)

    def _matrix(self, scales: Scales, axes: Floats) -> Floats:
        """Whitening and weights in one matrix, along the axes."""
        weighted = (scales.directions * scales.shares**self.emphasis) @ scales.directions.T
        return np.ascontiguousarray(scales.whitening @ weighted @ axes)
