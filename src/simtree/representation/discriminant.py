"""KernelDiscriminant: bumps around landmarks, or random waves, and ridge regression on the classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from simtree._checks import check_choice, check_integer, check_n_jobs, check_real
from simtree._kernels.points import fill_bumps, fill_products, fill_waves
from simtree.representation.base import (
    Codes,
    Floats,
    LabelledRepresentation,
    filled_in_blocks,
    folds_of_classes,
    folds_of_rows,
)

# A landmark is a mean of at least so many different training rows: it shows nobody's sample.
LEAST_MEMBERS = 5
# Rows whose features are held in memory at one time.
CHUNK = 4096


class Bumps(NamedTuple):
    """exp(-gamma * squared distance) to each landmark, a column."""

    landmarks: Floats
    gamma: float

    @property
    def n(self) -> int:
        """How many features there are."""
        return int(self.landmarks.shape[1])

    def fill(self, X: NDArray[Any], out: Floats) -> None:
        """Features of each row of X."""
        fill_bumps(X, self.landmarks, self.gamma, out)


class Waves(NamedTuple):
    """Cosines along random directions, a column each, whose products are on average the same bumps."""

    directions: Floats
    phases: Floats

    @property
    def n(self) -> int:
        """How many features there are."""
        return len(self.phases)

    def fill(self, X: NDArray[Any], out: Floats) -> None:
        """Features of each row of X."""
        fill_waves(X, self.directions, self.phases, out)


class Sums(NamedTuple):
    """The two sides of the normal equations: sums over rows, so those of a part of the rows can be taken away."""

    gram: Floats
    moment: Floats


class KernelDiscriminant(LabelledRepresentation):
    """Class scores of a smooth classifier: ridge regression of the classes on bumps around landmarks. One column a class.

    Parameters
    ----------
    n_landmarks : int, default=2000
        How many landmarks or waves; with k-means at most one for each five rows.
    gamma : float or "scale", default="scale"
        Bumps are exp(-gamma * squared distance). ``"scale"`` is 1 / (n_features * variance of all entries of X).
    alpha : float, default=0.01
        Penalty of the ridge regression.
    n_repeats : int, default=1
        Over how many sets of landmarks the scores are averaged.
    landmarks : {"kmeans", "fourier"}, default="kmeans"
        Centres of clusters of rows, or random waves. A landmark is a mean of at least five different rows, never a row.
    max_classes : int, default=100
        Most columns. If there are more classes, scores are projected on as many random directions.
    cross_fit : {"rows", "classes"}, default="rows"
        What is left out of the fit that a training row gets its scores from.
    cv : int, default=5
        In how many parts rows or classes are left out.
    n_jobs : int or None, default=None
        Blocks of rows worked on at one time. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of landmarks, folds and projections.

    Attributes
    ----------
    features_ : list of Bumps or Waves
        For each repeat, the landmarks or waves.
    weights_ : list of ndarray of shape (n_landmarks, n_features_out)
        For each repeat, what a feature adds to the scores.
    n_classes_ : int
        How many classes there were. Columns are in the order of their first rows.

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

    features_: list[Bumps | Waves]
    weights_: list[Floats]

    def __init__(
        self,
        *,
        n_landmarks: int = 2000,
        gamma: float | str = "scale",
        alpha: float = 0.01,
        n_repeats: int = 1,
        landmarks: str = "kmeans",
        max_classes: int = 100,
        cross_fit: str = "rows",
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
        self.cross_fit = cross_fit
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer("n_landmarks", self.n_landmarks, 1)
        if self.gamma != "scale":
            check_real("gamma", self.gamma, 0.0, np.inf, open_low=True, open_high=True)
        check_real("alpha", self.alpha, 0.0, np.inf, open_low=True, open_high=True)
        check_integer("n_repeats", self.n_repeats, 1)
        check_choice("landmarks", self.landmarks, ("kmeans", "fourier"))
        check_integer("max_classes", self.max_classes, 2)
        check_integer("cv", self.cv, 2)
        check_n_jobs(self.n_jobs)

    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        for_codes, for_folds, for_features = rng.spawn(3)  # the model is the same whether or not rows are cross-fitted
        targets = np.eye(self.n_classes_)
        if self.n_classes_ > self.max_classes:
            targets = _random_codes(self.n_classes_, self.max_classes, for_codes)
        self._n_features_out = targets.shape[1]
        make_folds = folds_of_rows if self.cross_fit == "rows" else folds_of_classes
        folds = make_folds(codes, self.cv, for_folds) if cross_fitted else np.zeros(len(codes), dtype=np.int64)
        parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
        self.features_, self.weights_ = [], []
        scores = np.zeros((len(X), self._n_features_out)) if cross_fitted else None
        for features in self._draw_features(X, for_features):
            sums = [self._sums(features, X, targets[codes], rows) for rows in parts]
            whole = Sums(np.sum([part.gram for part in sums], axis=0), np.sum([part.moment for part in sums], axis=0))
            self.features_.append(features)
            self.weights_.append(self._ridge(whole))
            if scores is not None:
                for rows, part in zip(parts, sums, strict=True):
                    weights = self._ridge(Sums(whole.gram - part.gram, whole.moment - part.moment))
                    scores[rows] += self._scores(X[rows], features, weights) / self.n_repeats
        return scores

    def _draw_features(self, X: NDArray[Any], rng: np.random.Generator) -> Iterator[Bumps | Waves]:
        """The landmarks or waves of each repeat."""
        variance = float(X.var())
        gamma = float(self.gamma) if self.gamma != "scale" else 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
        rows = np.unique(X, axis=0) if self.landmarks == "kmeans" else X
        for _ in range(self.n_repeats):
            if self.landmarks == "kmeans":
                yield Bumps(_centres(rows, self.n_landmarks, rng), gamma)
            else:
                yield _waves(X.shape[1], self.n_landmarks, gamma, rng)

    def _apply(self, X: NDArray[Any]) -> Floats:
        total = np.zeros((len(X), self._n_features_out))
        for features, weights in zip(self.features_, self.weights_, strict=True):
            total += self._scores(X, features, weights) / len(self.features_)
        return total

    def _scores(self, X: NDArray[Any], features: Bumps | Waves, weights: Floats) -> Floats:
        def fill(rows: slice, out: Floats) -> None:
            values = np.empty((rows.stop - rows.start, features.n))
            features.fill(X[rows], values)
            fill_products(values, weights, out)

        return filled_in_blocks(len(X), weights.shape[1], fill, self.n_jobs)

    def _sums(self, features: Bumps | Waves, X: NDArray[Any], targets: Floats, rows: Codes) -> Sums:
        """Products of features with one another and with the targets, summed over some rows."""
        gram, moment = np.zeros((features.n, features.n)), np.zeros((features.n, targets.shape[1]))
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            values = self._values(features, X[chunk])
            gram += values.T @ values
            moment += values.T @ targets[chunk]
        return Sums(gram, moment)

    def _values(self, features: Bumps | Waves, X: NDArray[Any]) -> Floats:
        return filled_in_blocks(len(X), features.n, lambda rows, out: features.fill(X[rows], out), self.n_jobs)

    def _ridge(self, sums: Sums) -> Floats:
        """Weights that solve the normal equations."""
        penalised = sums.gram + self.alpha * np.eye(len(sums.gram))
        return np.ascontiguousarray(solve(penalised, sums.moment, assume_a="pos"))


def _centres(rows: NDArray[Any], n_landmarks: int, rng: np.random.Generator) -> Floats:
    """Means of at least `LEAST_MEMBERS` different rows each, as columns."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import pairwise_distances_argmin

    if len(rows) < LEAST_MEMBERS:
        raise ValueError(
            f"X has {len(rows)} different rows; landmarks='kmeans' takes means of at least {LEAST_MEMBERS}: "
            "give more rows, or take landmarks='fourier'."
        )
    n_clusters = min(n_landmarks, len(rows) // LEAST_MEMBERS)
    seed = int(rng.integers(2**31))
    kmeans = MiniBatchKMeans(
        n_clusters, n_init=1, batch_size=max(1024, 2 * n_clusters), random_state=seed, compute_labels=False
    )
    centres = kmeans.fit(rows).cluster_centers_
    # A centre with few members could be one of them. Their members go to the nearest centre that stays.
    for _ in range(2):
        nearest = pairwise_distances_argmin(rows, centres)
        sizes = np.bincount(nearest, minlength=len(centres))
        kept = sizes >= LEAST_MEMBERS
        centres = centres[kept]
    nearest = pairwise_distances_argmin(rows, centres)
    sums = np.zeros_like(centres)
    np.add.at(sums, nearest, rows)
    return np.ascontiguousarray((sums / np.bincount(nearest, minlength=len(centres))[:, None]).T)


def _waves(n_features: int, n_waves: int, gamma: float, rng: np.random.Generator) -> Waves:
    """Random Fourier features of the kernel exp(-gamma * squared distance)."""
    directions = rng.normal(scale=(2.0 * gamma) ** 0.5, size=(n_features, n_waves))
    return Waves(directions, rng.uniform(0.0, 2.0 * np.pi, n_waves))


def _random_codes(n_classes: int, n_columns: int, rng: np.random.Generator) -> Floats:
    """A row for each class, columns orthonormal."""
    return np.linalg.qr(rng.normal(size=(n_classes, n_columns)))[0]
