"""Kernel features of samples, fitted without labels: RBF features around landmarks, or random Fourier features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._kernels.samples import fill_fourier, fill_rbf
from simtree._utils.matrices import MAX_SQUARED, check_magnitude, check_matrix
from simtree._utils.validation import check_choice, check_integer, check_n_jobs, check_real, count
from simtree.io._fields import Fields, moderate
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._base import Floats, check_represented, class_means, filled_in_blocks
from simtree.representation._clusters import MIN_MEMBERS, cluster_numbers

# Named values of gamma, as multiples of 1 / (n_features * variance of all entries).
GAMMAS = {"scale": 1.0, "wide": 0.1}
# Squares of smaller differences are lost.
MIN_VARIANCE = 1e-280


class RBFFeatures(NamedTuple):
    """RBF features: exp(-gamma * squared distance) to each landmark (a column of ``landmarks``)."""

    landmarks: Floats
    gamma: float

    @property
    def n(self) -> int:
        """Number of features."""
        return int(self.landmarks.shape[1])

    def fill(self, X: NDArray[Any], out: Floats) -> None:
        """Write the features of each row of X to ``out``."""
        fill_rbf(X, self.landmarks, self.gamma, out)

    def of(self, X: NDArray[Any], n_jobs: int | None) -> Floats:
        """Return the features of each row of X."""
        return filled_in_blocks(len(X), self.n, lambda rows, out: self.fill(X[rows], out), n_jobs)

    def _get_state(self) -> dict[str, Any]:
        """Return the state of the features for a model file."""
        return {"kind": "rbf", "landmarks": moderate(self.landmarks), "gamma": self.gamma}

    @classmethod
    def _from_state(cls, fields: Fields, n_features: int) -> Self:
        """Return the features read from a model file."""
        gamma = fields.number("gamma", 0.0, np.finfo(np.float64).max)
        return cls(fields.moderate("landmarks", (n_features, None)), gamma)


class FourierFeatures(NamedTuple):
    """Random Fourier features, whose inner products approximate the RBF kernel; one column of ``directions`` each."""

    directions: Floats
    phases: Floats

    @property
    def n(self) -> int:
        """Number of features."""
        return len(self.phases)

    def fill(self, X: NDArray[Any], out: Floats) -> None:
        """Write the features of each row of X to ``out``."""
        fill_fourier(X, self.directions, self.phases, out)

    def of(self, X: NDArray[Any], n_jobs: int | None) -> Floats:
        """Return the features of each row of X."""
        return filled_in_blocks(len(X), self.n, lambda rows, out: self.fill(X[rows], out), n_jobs)

    def _get_state(self) -> dict[str, Any]:
        """Return the state of the features for a model file."""
        return {"kind": "fourier", "directions": moderate(self.directions), "phases": moderate(self.phases)}

    @classmethod
    def _from_state(cls, fields: Fields, n_features: int) -> Self:
        """Return the features read from a model file."""
        directions = fields.moderate("directions", (n_features, None))
        return cls(directions, fields.moderate("phases", (directions.shape[1],)))


FEATURE_MAPS: dict[str, type[RBFFeatures] | type[FourierFeatures]] = {"rbf": RBFFeatures, "fourier": FourierFeatures}


def features_from_state(fields: Fields, n_features: int) -> RBFFeatures | FourierFeatures:
    """Return the features read from a model file."""
    return FEATURE_MAPS[fields.string("kind", FEATURE_MAPS)]._from_state(fields, n_features)


@register(REPRESENTATION)
class LandmarkFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Represent samples by their RBF similarity to landmarks, exp(-gamma * squared distance), without using labels.

    Combine it with a following `WithinClassWhitening`, which then learns directions that are nonlinear in the original
    features.

    Parameters
    ----------
    n_landmarks : int, default=300
        Number of landmarks or Fourier features; with k-means at most one landmark per five rows.
    gamma : float, "scale" or "wide", default="wide"
        Width of the kernel, as in `KernelDiscriminant`.
    landmarks : {"kmeans", "fourier"}, default="kmeans"
        Features: RBF features around cluster centres, or random Fourier features, as in `KernelDiscriminant`.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for the landmarks.

    Attributes
    ----------
    features_ : RBFFeatures or FourierFeatures
        The feature map.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import LandmarkFeatures
    >>> X, y = load_iris(return_X_y=True)
    >>> LandmarkFeatures(n_landmarks=10, random_state=0).fit_transform(X).shape  # two clusters have fewer than five rows
    (150, 8)
    """

    features_: RBFFeatures | FourierFeatures
    _n_features_out: int

    def __init__(
        self,
        *,
        n_landmarks: int = 300,
        gamma: float | str = "wide",
        landmarks: str = "kmeans",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.gamma = gamma
        self.landmarks = landmarks
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Choose the landmarks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        samples = check_matrix(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        check_magnitude(samples, MAX_SQUARED, "landmarks")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))
        (self.features_,) = draw_features(samples, self.landmarks, self.n_landmarks, self.gamma, 1, rng)
        self._n_features_out = self.features_.n
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the features of samples.

        The result for a row does not depend on the other rows, bit for bit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_landmarks)
            Features of the samples.
        """
        check_is_fitted(self)
        with announced_compilation():
            samples = check_matrix(self, X, dtype=np.float64, order="C", reset=False)
            return check_represented(self.features_.of(samples, self.n_jobs))

    def _get_fitted_state(self) -> dict[str, Any]:
        return self.features_._get_state()

    def _set_fitted_state(self, fields: Fields) -> int:
        self.features_ = features_from_state(fields, self.n_features_in_)
        self._n_features_out = self.features_.n
        return self._n_features_out

    def _check_parameters(self) -> None:
        check_features(self.landmarks, self.n_landmarks, self.gamma)
        check_n_jobs(self.n_jobs)


def check_features(landmarks: str, n_landmarks: int, gamma: float | str, named: Iterable[str] = GAMMAS) -> None:
    """Raise an error if a parameter is invalid; the width may have one of some names."""
    check_choice("landmarks", landmarks, ("kmeans", "fourier"))
    check_integer("n_landmarks", n_landmarks, 1)
    if isinstance(gamma, str):
        check_choice("gamma", gamma, tuple(named))
    else:
        check_real("gamma", gamma, 0.0, np.inf, open_low=True, open_high=True)


def width(X: Floats, gamma: float | str) -> float:
    """Return the width of the kernel as a number; raise an error if squares of differences between samples would vanish."""
    variance = float(X.var())
    if variance < MIN_VARIANCE and (X[0] != X).any():
        raise ValueError(
            f"X has values that differ by less than {MIN_VARIANCE**0.5:g}, whose squares vanish; "
            "multiply X by a large number first."
        )
    return GAMMAS[gamma] / (X.shape[1] * (variance or 1.0)) if isinstance(gamma, str) else float(gamma)


def draw_features(
    X: Floats, landmarks: str, n_landmarks: int, gamma: float | str, n_repeats: int, rng: np.random.Generator
) -> Iterator[RBFFeatures | FourierFeatures]:
    """Yield ``n_repeats`` feature maps for some samples."""
    gamma = width(X, gamma)
    rows = np.unique(X, axis=0) if landmarks == "kmeans" else X
    for _ in range(n_repeats):
        if landmarks == "kmeans":
            yield RBFFeatures(_centres(rows, n_landmarks, rng), gamma)
        else:
            yield _fourier(X.shape[1], n_landmarks, gamma, rng)


def _centres(rows: NDArray[Any], n_landmarks: int, rng: np.random.Generator) -> Floats:
    """Return cluster centres as columns, each the mean of at least `MIN_MEMBERS` distinct rows."""
    if len(rows) < MIN_MEMBERS:
        raise ValueError(
            f"X has {count(len(rows), 'distinct row')}, but landmarks='kmeans' requires at least {MIN_MEMBERS}; "
            "give more rows, or set landmarks='fourier'."
        )
    nearest = cluster_numbers(rows, min(n_landmarks, len(rows) // MIN_MEMBERS), rng)
    return np.ascontiguousarray(class_means(rows, nearest).T)


def _fourier(n_features: int, n_directions: int, gamma: float, rng: np.random.Generator) -> FourierFeatures:
    """Return random Fourier features of the kernel exp(-gamma * squared distance)."""
    directions = rng.normal(scale=(2.0 * gamma) ** 0.5, size=(n_features, n_directions))
    return FourierFeatures(directions, rng.uniform(0.0, 2.0 * np.pi, n_directions))
