"""What simtree is compared with. Each peer is a function from `Training` to an object with ``pair_score(rows, X)``.

A peer that learns from pairs draws them from labels and the seed of the split, as many same as different ones: all that ask for
as many get the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.covariance import shrunk_covariance
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import models
from problems import draw, row_numbers
from simtree.experiments import _peers as maps
from simtree.pairs._sampling import IndexPairs

# Pairs whose coordinates are computed at one time.
BLOCK = 16_384

F = ("abs_diff", "sum")
ALL = (*F, "product", "dot", "cosine", "euclidean", "manhattan")


class Similarity(Protocol):
    """What a model must be able to do: score pairs of rows of X."""

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Training:
    """All that a model is given to learn from.

    Parameters
    ----------
    X, y : ndarray
        Points (float32) and their classes.
    groups : ndarray or None
        Who each point belongs to if the test points are of other people; None if they are of the classes in y.
    seed : int
        Of all that is random, and of the pairs.
    n_jobs : int
        Threads.
    share : float
        Which part of the usual number of pairs and points to take: 1, or less for a quick look.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    seed: int
    n_jobs: int = 1
    share: float = 1.0

    def some(self, number: int, least: int = 500) -> int:
        """That many pairs or points in a full run, fewer in a quick one."""
        return max(least, round(self.share * number))

    def rounds(self, number: int) -> int:
        """That many trees, epochs or iterations in a full run, fewer in a quick one."""
        return max(2, round(self.share**0.5 * number))

    def pairs(self, number: int) -> IndexPairs:
        """Training pairs, always the same ones."""
        return draw(self.y, self.some(number), seed=self.seed)


Learn = Callable[[Training], Similarity]


# Maps of points, compared by a distance or a cosine


Compare = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class MappedPoints:
    """Pairs scored by comparing what a map makes of their points."""

    map: Callable[[np.ndarray], np.ndarray]
    compare: Compare

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        return self.compare(self.map(X), rows[:, 0], rows[:, 1])


def as_it_is(X: np.ndarray) -> np.ndarray:
    return X


def euclidean(training: Training) -> Similarity:
    """No learning."""
    return MappedPoints(as_it_is, maps.euclidean_scores)


def cosine(training: Training) -> Similarity:
    """No learning."""
    return MappedPoints(as_it_is, maps.cosine_scores)


def standardised_manhattan(training: Training) -> Similarity:
    return MappedPoints(StandardScaler().fit(training.X).transform, maps.manhattan_scores)


def lda_cosine(training: Training, *, shrinkage: float | None = None) -> Similarity:
    """Linear discriminants of the training classes, compared by cosine."""
    solver = {"solver": "svd"} if shrinkage is None else {"solver": "eigen", "shrinkage": shrinkage}
    pipeline = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(**solver))
    return MappedPoints(pipeline.fit(training.X, training.y).transform, maps.cosine_scores)


# NCA and LMNN start from the distance of the points and keep margins in it. One factor for all features leaves that distance as
# it is; a factor for each makes it worse where features share a unit (optdigits: 0.77 instead of 0.88 AUC before learning).


def nca(training: Training, *, max_points: int = 4_000, max_iter: int = 50) -> Similarity:
    """Neighbourhood components, compared by distance; its time grows with the square of the points."""
    X, y = some_points(training, max_points)
    scale = common_scale(training.X)
    model = NeighborhoodComponentsAnalysis(max_iter=training.rounds(max_iter), random_state=training.seed).fit(X / scale, y)
    return MappedPoints(lambda X: model.transform(X / scale), maps.euclidean_scores)


def lmnn(training: Training, *, max_points: int = 2_000, max_iter: int = 1_000) -> Similarity:
    """LMNN, compared by distance; pull and push weigh the same, as in metric-learn, not as in the paper."""
    X, y = some_points(training, max_points)
    scale = common_scale(training.X)
    how = {"regularization": 0.5, "max_points": None, "max_iter": training.rounds(max_iter), "random_state": training.seed}
    L = maps.lmnn_map(X / scale, y, **how)
    return MappedPoints(lambda X: (X / scale) @ L.T, maps.euclidean_scores)


def common_scale(X: np.ndarray) -> float:
    """Root of the mean variance of the features."""
    return float(np.sqrt(X.var(axis=0).mean()))


def some_points(training: Training, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many of the training points."""
    chosen = np.random.default_rng(training.seed).permutation(len(training.X))[: training.some(most)]
    return training.X[chosen], training.y[chosen]


def network(training: Training, *, penalty: float) -> Similarity:
    """The paper's network, trained on nine tenths of the points, compared by cosine."""
    chosen = np.random.default_rng(training.seed).permutation(len(training.X))[: round(0.9 * len(training.X))]
    encode = maps.train_network(
        training.X[chosen], training.y[chosen], penalty=penalty, epochs=training.rounds(20), random_state=training.seed
    )
    return MappedPoints(encode, maps.cosine_scores)


# Classifiers of pairs


@dataclass(frozen=True)
class PairClassifier:
    """A classifier of pairs by their coordinates, those of the points themselves or of a representation of them."""

    classifier: Any
    kinds: Sequence[str]
    map: Callable[[np.ndarray], np.ndarray]

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        points = self.map(X)
        scores = np.empty(len(rows))
        for start in range(0, len(rows), BLOCK):
            block = slice(start, start + BLOCK)
            scores[block] = models.probabilities(self.classifier, coordinates(points, rows[block], self.kinds))
        return scores


def pair_classifier(
    training: Training,
    *,
    make: Callable[..., Any] = models.lightgbm,
    kinds: Sequence[str] = F,
    n_pairs: int,
    n_trees: int = 100,
    representation: Any = None,
) -> Similarity:
    """Learn to tell same from different pairs.

    ``representation`` is a transformer of points, fitted by its ``fit_transform`` as simtree's forest does.
    """
    classifier = make(training.rounds(n_trees), n_jobs=training.n_jobs, random_state=training.seed)
    pairs = training.pairs(n_pairs)
    if representation is None:
        points, map_points = training.X, as_it_is
    else:
        representation = clone(representation)
        points, map_points = representation.fit_transform(training.X, training.y), representation.transform
    classifier.fit(coordinates(points, row_numbers(pairs), kinds), pairs.same)
    return PairClassifier(classifier, kinds, map_points)


random_forest = partial(pair_classifier, make=models.random_forest)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.divide(np.einsum("ij,ij->i", a, b), lengths, out=np.zeros(len(a), dtype=a.dtype), where=lengths > 0)


# A coordinate is a number of each feature, or one of all features.
OF_FEATURES = {
    "abs_diff": lambda a, b: np.abs(a - b),
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "product": np.multiply,
}
OF_POINTS = {
    "dot": lambda a, b: np.einsum("ij,ij->i", a, b),
    "cosine": cosines,
    "euclidean": lambda a, b: np.linalg.norm(a - b, axis=1),
    "manhattan": lambda a, b: np.abs(a - b).sum(axis=1),
}


def coordinates(X: np.ndarray, rows: np.ndarray, kinds: Sequence[str]) -> np.ndarray:
    """The coordinates of pairs of rows of X as a float32 matrix, kind by kind."""
    columns = np.cumsum([0, *(X.shape[1] if kind in OF_FEATURES else 1 for kind in kinds)])
    matrix = np.empty((len(rows), columns[-1]), dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        a, b = (X[rows[start : start + BLOCK, side]] for side in (0, 1))
        for kind, first, end in zip(kinds, columns[:-1], columns[1:], strict=True):
            values = OF_FEATURES[kind](a, b) if kind in OF_FEATURES else OF_POINTS[kind](a, b)[:, None]
            matrix[start : start + BLOCK, first:end] = values
    return matrix


# One quadratic log-likelihood ratio


@dataclass(frozen=True)
class Gaussian:
    """A normal law, by its mean, its covariance as a Cholesky factor, and the logarithm of its determinant."""

    mean: np.ndarray
    factor: tuple[np.ndarray, bool]
    log_determinant: float

    @classmethod
    def fit(cls, values: np.ndarray, shrinkage: float) -> Gaussian:
        covariance = shrunk_covariance(np.cov(values, rowvar=False), shrinkage=shrinkage)
        factor = cho_factor(covariance, lower=True)
        return cls(values.mean(axis=0), factor, 2.0 * float(np.log(np.diag(factor[0])).sum()))

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """Up to a constant that all laws of as many features share."""
        centred = values - self.mean
        return -0.5 * (np.einsum("ij,ji->i", centred, cho_solve(self.factor, centred.T)) + self.log_determinant)


@dataclass(frozen=True)
class QuadraticRatio:
    """Log-likelihood ratio of normal laws of differences and sums of same and of different pairs."""

    same: tuple[Gaussian, Gaussian]
    different: tuple[Gaussian, Gaussian]

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        scores = np.zeros(len(rows))
        for start in range(0, len(rows), BLOCK):
            block = slice(start, start + BLOCK)
            for values, same, different in zip(differences_and_sums(X, rows[block]), self.same, self.different, strict=True):
                scores[block] += same.log_density(values) - different.log_density(values)
        return scores


def differences_and_sums(X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = (X[rows[:, side]].astype(np.float64) for side in (0, 1))
    return a - b, a + b


def quadratic_ratio(training: Training, *, n_pairs: int = 600_000, shrinkage: float = 0.1) -> Similarity:
    """Differences are of pairs in both orders, so that their mean is zero and the score symmetric."""
    pairs = training.pairs(n_pairs)
    laws = []
    for kind in (pairs.same, ~pairs.same):
        differences, sums = differences_and_sums(training.X, row_numbers(pairs.take(kind)))
        both_orders = np.concatenate([differences, -differences])
        laws.append((Gaussian.fit(both_orders, shrinkage), Gaussian.fit(sums, shrinkage)))
    return QuadraticRatio(*laws)
