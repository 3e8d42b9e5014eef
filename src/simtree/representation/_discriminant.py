"""KernelDiscriminant: ridge regression of the classes on RBF or random Fourier features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from simtree._kernels.samples import fill_products
from simtree._utils.validation import check_choice, check_integer, check_n_jobs, check_real
from simtree.io._fields import Fields, moderate
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._base import (
    MAX_CLASSES,
    Codes,
    Floats,
    LabelledRepresentation,
    class_means,
    filled_in_blocks,
    folds_of_rows,
)
from simtree.representation._kernel_choice import PENALTIES, WIDTHS, choose_kernel
from simtree.representation._landmarks import (
    GAMMAS,
    FourierFeatures,
    RBFFeatures,
    check_features,
    draw_features,
    features_from_state,
    width,
)

# More repeats in a model file are treated as corruption.
MAX_REPEATS = 1 << 12
# Number of rows whose features are held in memory at a time.
CHUNK = 4096
# Name of the choice of width and penalty by leave-one-out scores.
AUTO = "auto"


class Sums(NamedTuple):
    """Both sides of the normal equations: sums over rows, so that the contribution of some rows can be subtracted."""

    gram: Floats
    moment: Floats


class Regression(NamedTuple):
    """What is regressed: the targets of samples on their features, with a penalty; ``parts`` are the rows of each fold."""

    features: RBFFeatures | FourierFeatures
    X: NDArray[Any]
    targets: Floats
    parts: list[Codes]
    alpha: float


@register(REPRESENTATION)
class KernelDiscriminant(LabelledRepresentation):
    """Represent samples by the class scores of a kernel classifier, for the classes seen in training.

    The scores are a ridge regression of the classes on RBF features around landmarks, or on random Fourier features, with
    one column per class. `fit_transform` is cross-fitted.

    Parameters
    ----------
    n_landmarks : int, default=2000
        Number of landmarks or Fourier features; with k-means at most one landmark per five rows.
    gamma : float, "scale", "wide" or "auto", default="scale"
        Width of the kernel exp(-gamma * squared distance). ``"scale"`` is 1 / (n_features * variance of all entries of X),
        ``"wide"`` a tenth of that. ``"auto"`` chooses among multiples of ``"scale"`` from 0.1 to 3: the one whose scores of up
        to 500 rows, each fitted without the row, have the smallest log loss.
    alpha : float or "auto", default=0.01
        Regularisation strength of the ridge regression. ``"auto"`` chooses among values from 0.003 to 3, as for the width.
    n_repeats : int, default=1
        Number of sets of landmarks over which the scores are averaged.
    landmarks : {"kmeans", "fourier"}, default="kmeans"
        Features: RBF features around cluster centres, or random Fourier features. A centre is the mean of at least five
        distinct rows, never a single row.
    max_classes : int, default=100
        Maximum number of columns. If there are more classes, the targets are the projections of the class means onto this
        many directions (at most the number of features), those in which the means differ most.
    cv : int, default=5
        Number of folds for cross-fitting.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for landmarks and folds.

    Attributes
    ----------
    features_ : list of RBFFeatures or FourierFeatures
        Feature map of each repeat.
    weights_ : list of ndarray of shape (n_landmarks, n_features_out)
        Ridge coefficients of each repeat.
    n_classes_ : int
        Number of classes. Columns are in order of first appearance.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import KernelDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> discriminant = KernelDiscriminant(random_state=0)
    >>> cross_fitted = discriminant.fit_transform(X, y)
    >>> float((cross_fitted.argmax(axis=1) == y).mean().round(2))
    0.97
    """

    features_: list[RBFFeatures | FourierFeatures]
    weights_: list[Floats]

    def __init__(
        self,
        *,
        n_landmarks: int = 2000,
        gamma: float | str = "scale",
        alpha: float | str = 0.01,
        n_repeats: int = 1,
        landmarks: str = "kmeans",
        max_classes: int = 100,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.gamma = gamma
        self.alpha = alpha
        self.n_repeats = n_repeats
        self.landmarks = landmarks
        self.max_classes = max_classes
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_features(self.landmarks, self.n_landmarks, self.gamma, (*GAMMAS, AUTO))
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, (AUTO,))
        else:
            check_real("alpha", self.alpha, 0.0, np.inf, open_low=True, open_high=True)
        check_integer("n_repeats", self.n_repeats, 1)
        check_integer("max_classes", self.max_classes, 2)
        check_integer("cv", self.cv, 2)
        check_n_jobs(self.n_jobs)

    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        for_folds, for_features, for_choice = rng.spawn(3)
        many = self.n_classes_ > self.max_classes
        targets = _mean_codes(class_means(X, codes), self.max_classes) if many else np.eye(self.n_classes_)
        self._n_features_out = targets.shape[1]
        gamma, alpha = self._kernel(X, codes, targets, for_choice)
        folds = folds_of_rows(codes, self.cv, for_folds)
        parts = [np.flatnonzero(folds == fold) for fold in range(self.cv)]
        self.features_, self.weights_ = [], []
        scores = np.zeros((len(X), self._n_features_out)) if cross_fitted else None
        for features in draw_features(X, self.landmarks, self.n_landmarks, gamma, self.n_repeats, for_features):
            # The smaller of the two systems of equations is solved: one per feature, or one per row.
            regress = self._by_features if features.n <= len(X) else self._by_rows
            weights, left_out = regress(Regression(features, X, targets[codes], parts, alpha), cross_fitted)
            self.features_.append(features)
            self.weights_.append(weights)
            if scores is not None:
                for rows, found in zip(parts, left_out, strict=True):
                    scores[rows] += found / self.n_repeats
        return scores

    def _kernel(self, X: NDArray[Any], codes: Codes, targets: Floats, rng: np.random.Generator) -> tuple[float, float]:
        """Return the width of the kernel and the penalty: as given, or chosen."""
        if AUTO not in (self.gamma, self.alpha):
            return width(X, self.gamma), float(self.alpha)
        gammas = [times * width(X, "scale") for times in WIDTHS] if self.gamma == AUTO else [width(X, self.gamma)]
        alphas = PENALTIES if self.alpha == AUTO else [float(self.alpha)]
        return choose_kernel(X, codes, targets, gammas, alphas, rng)

    def _by_features(self, given: Regression, cross_fitted: bool) -> tuple[Floats, list[Floats]]:
        """Return the weights of all rows, and the scores of each part by weights of the others if requested."""
        features, X, targets, parts, alpha = given
        # By parts in any case, so that the weights do not depend on it.
        sums = [self._sums(features, X, targets, rows) for rows in parts]
        total = Sums(np.sum([part.gram for part in sums], axis=0), np.sum([part.moment for part in sums], axis=0))
        left_out = []
        for rows, part in zip(parts, sums, strict=True) if cross_fitted else ():
            weights = _ridge(total.gram - part.gram, total.moment - part.moment, alpha)
            left_out.append(self._scores(X[rows], features, weights))
        return np.ascontiguousarray(_ridge(total.gram, total.moment, alpha)), left_out

    def _by_rows(self, given: Regression, cross_fitted: bool) -> tuple[Floats, list[Floats]]:
        """Return the same from products of rows with one another, of which there are fewer than of features."""
        features, X, targets, parts, alpha = given
        values = features.of(X, self.n_jobs)
        products = values @ values.T
        left_out = []
        for rows in parts if cross_fitted else ():
            others = np.setdiff1d(np.arange(len(X)), rows)
            left_out.append(products[np.ix_(rows, others)] @ _ridge(products[np.ix_(others, others)], targets[others], alpha))
        return np.ascontiguousarray(values.T @ _ridge(products, targets, alpha)), left_out

    def _get_fitted_state(self) -> dict[str, Any]:
        repeats = [
            {**features._get_state(), "weights": moderate(weights)}
            for features, weights in zip(self.features_, self.weights_, strict=True)
        ]
        return {"n_classes": self.n_classes_, "repeats": repeats}

    def _set_fitted_state(self, fields: Fields) -> int:
        self.n_classes_ = fields.integer("n_classes", 2, MAX_CLASSES)
        self.features_, self.weights_ = [], []
        n_columns: int | None = None
        for part in fields.parts("repeats", MAX_REPEATS):
            features = features_from_state(part, self.n_features_in_)
            weights = part.moderate("weights", (features.n, n_columns))
            n_columns = weights.shape[1]
            self.features_.append(features)
            self.weights_.append(weights)
        if n_columns is None:
            raise fields.fail("repeats", "must not be empty")
        self._n_features_out = n_columns
        return n_columns

    def _apply(self, X: NDArray[Any]) -> Floats:
        total = np.zeros((len(X), self._n_features_out))
        for features, weights in zip(self.features_, self.weights_, strict=True):
            total += self._scores(X, features, weights) / len(self.features_)
        return total

    def _scores(self, X: NDArray[Any], features: RBFFeatures | FourierFeatures, weights: Floats) -> Floats:
        def fill(rows: slice, out: Floats) -> None:
            values = np.empty((rows.stop - rows.start, features.n))
            features.fill(X[rows], values)
            fill_products(values, weights, out)

        return filled_in_blocks(len(X), weights.shape[1], fill, self.n_jobs)

    def _sums(self, features: RBFFeatures | FourierFeatures, X: NDArray[Any], targets: Floats, rows: Codes) -> Sums:
        """Return the products of features with one another and with the targets, summed over some rows."""
        gram, moment = np.zeros((features.n, features.n)), np.zeros((features.n, targets.shape[1]))
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            values = features.of(X[chunk], self.n_jobs)
            gram += values.T @ values
            moment += values.T @ targets[chunk]
        return Sums(gram, moment)


def _ridge(gram: Floats, moment: Floats, alpha: float) -> Floats:
    """Return the weights that solve the penalised normal equations."""
    return np.asarray(solve(gram + alpha * np.eye(len(gram)), moment, assume_a="pos"))


def _mean_codes(means: Floats, n_columns: int) -> Floats:
    """Return orthogonal targets, one row per class: its mean along the directions in which the class means differ most."""
    left, sizes, _ = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    kept = sizes > sizes[0] * 1e-9
    return left[:, kept][:, :n_columns] * np.sqrt(len(means)) if kept.any() else np.ones((len(means), 1))
