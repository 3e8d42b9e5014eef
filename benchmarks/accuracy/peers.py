"""Models that simtree is compared with. Each is a function from `Training` to an object with ``pair_score(rows, X)``.

A peer that is trained on pairs samples them from the labels with the random seed of the split, as many same as different ones.
All peers with the same number of pairs get the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.covariance import shrunk_covariance
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import models
from problems import draw, row_numbers
from simtree._utils.folds import assign_folds
from simtree.experiments import _peers as maps
from simtree.pairs._sources import IndexPairs

# Number of pairs per block when coordinates are computed.
BLOCK = 16_384
# With a smaller share of the pairs a run says nothing about accuracy.
MIN_SHARE = 0.05
# A model that stops early holds out one of so many folds.
N_HELD_OUT_FOLDS = 5

F = ("abs_diff", "sum")
ALL = (*F, "product", "dot", "cosine", "euclidean", "manhattan")


class Similarity(Protocol):
    """Protocol of a fitted model: it scores pairs of rows of X."""

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Training:
    """Training data and settings of a model.

    Parameters
    ----------
    X, y : ndarray
        Samples (float32) and their labels.
    groups : ndarray or None
        Identity of each sample if the test samples are of other identities; None if they are of the classes in y.
    seed : int
        Random seed.
    n_jobs : int
        Number of parallel jobs.
    share : float
        Proportion of the full number of pairs and samples: 1, or less for a quick run.
    problem : str
        Name of the problem, by which settings that were searched for are found.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    seed: int
    n_jobs: int = 1
    share: float = 1.0
    problem: str = ""

    @property
    def open_set(self) -> bool:
        """Whether the test samples are of other identities."""
        return self.groups is not None

    @property
    def is_check(self) -> bool:
        """Whether the run only checks that everything works, so that nothing is searched for."""
        return self.share < MIN_SHARE

    def some(self, number: int, minimum: int = 500) -> int:
        """Return a number of pairs or samples, scaled down in a quick run."""
        return max(minimum, round(self.share * number))

    def rounds(self, number: int) -> int:
        """Return a number of trees, epochs or iterations, scaled down in a quick run, and more so in a check."""
        return max(2, round((self.share if self.is_check else self.share**0.5) * number))

    def pairs(self, number: int, same_weighting: str = "pairs") -> IndexPairs:
        """Return training pairs, which depend only on their number, on the weights of same pairs, and on the random seed."""
        return draw(self.y, self.some(number), seed=self.seed, same_weighting=same_weighting)

    def hold_out(self) -> np.ndarray:
        """Return which samples are held out to find a number of rounds: a fifth of each class, or of the identities.

        At least two identities are held out, since different pairs need as many.
        """
        rng = np.random.default_rng(self.seed)
        if self.groups is None:
            classes = np.unique(self.y, return_inverse=True)[1]
            return assign_folds(len(self.y), N_HELD_OUT_FOLDS, rng, classes) == 0
        identities, codes = np.unique(self.groups, return_inverse=True)
        order = rng.permutation(len(identities))
        chosen = order[::N_HELD_OUT_FOLDS] if len(order) > N_HELD_OUT_FOLDS else order[:2]
        return np.isin(codes, chosen)


Learn = Callable[[Training], Similarity]


# Transformed samples, compared by a distance or a cosine


Compare = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class MappedSamples:
    """Similarity that compares transformed samples."""

    map: Callable[[np.ndarray], np.ndarray]
    compare: Compare

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        return self.compare(self.map(X), rows[:, 0], rows[:, 1])


def identity(X: np.ndarray) -> np.ndarray:
    return X


def euclidean(training: Training) -> Similarity:
    """Return the negative Euclidean distance, without training."""
    return MappedSamples(identity, maps.euclidean_scores)


def cosine(training: Training) -> Similarity:
    """Return the cosine, without training."""
    return MappedSamples(identity, maps.cosine_scores)


def standardised_manhattan(training: Training) -> Similarity:
    return MappedSamples(StandardScaler().fit(training.X).transform, maps.manhattan_scores)


def lda_cosine(training: Training, *, shrinkage: float | None = None) -> Similarity:
    """Train a linear discriminant analysis of the training classes, and compare by cosine."""
    solver = {"solver": "svd"} if shrinkage is None else {"solver": "eigen", "shrinkage": shrinkage}
    pipeline = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(**solver))
    return MappedSamples(pipeline.fit(training.X, training.y).transform, maps.cosine_scores)


# NCA and LMNN start from the distance of the samples. A common scale of all features preserves it; standardised features are
# worse if all features have the same unit (optdigits: an AUC of 0.77 instead of 0.88 before training).


def nca(training: Training, *, max_points: int = 4_000, max_iter: int = 50) -> Similarity:
    """Train NCA, and compare by distance; its time grows with the square of the number of samples."""
    X, y = subsample(training, max_points)
    scale = common_scale(training.X)
    model = NeighborhoodComponentsAnalysis(max_iter=training.rounds(max_iter), random_state=training.seed).fit(X / scale, y)
    return MappedSamples(lambda X: model.transform(X / scale), maps.euclidean_scores)


def lmnn(training: Training, *, max_points: int = 2_000, max_iter: int = 1_000) -> Similarity:
    """Train LMNN, and compare by distance; pull and push have the same weight, as in metric-learn but not as in the paper."""
    X, y = subsample(training, max_points)
    scale = common_scale(training.X)
    how = {"regularization": 0.5, "max_points": None, "max_iter": training.rounds(max_iter), "random_state": training.seed}
    L = maps.lmnn_map(X / scale, y, **how)
    return MappedSamples(lambda X: (X / scale) @ L.T, maps.euclidean_scores)


def common_scale(X: np.ndarray) -> float:
    """Return the root of the mean variance of the features."""
    return float(np.sqrt(X.var(axis=0).mean()))


def subsample(training: Training, maximum: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most this many random training samples with their labels."""
    chosen = np.random.default_rng(training.seed).permutation(len(training.X))[: training.some(maximum)]
    return training.X[chosen], training.y[chosen]


def network(training: Training, *, penalty: float) -> Similarity:
    """Train the network of the paper on nine tenths of the samples, and compare by cosine."""
    chosen = np.random.default_rng(training.seed).permutation(len(training.X))[: round(0.9 * len(training.X))]
    encode = maps.train_network(
        training.X[chosen], training.y[chosen], penalty=penalty, epochs=training.rounds(20), random_state=training.seed
    )
    return MappedSamples(encode, maps.cosine_scores)


# Classifiers of pairs


@dataclass(frozen=True)
class PairClassifier:
    """Classifier of pairs by their coordinates, of raw or of transformed samples; ``score`` takes a matrix of coordinates."""

    score: Callable[[np.ndarray], np.ndarray]
    kinds: Sequence[str]
    map: Callable[[np.ndarray], np.ndarray]

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        samples = self.map(X)
        scores = np.empty(len(rows))
        for start in range(0, len(rows), BLOCK):
            block = slice(start, start + BLOCK)
            scores[block] = self.score(coordinates(samples, rows[block], self.kinds))
        return scores


def pair_classifier(
    training: Training, *, make: Callable[..., Any], kinds: Sequence[str] = F, n_pairs: int, n_trees: int = 100
) -> Similarity:
    """Train a classifier of same and different pairs."""
    classifier = make(training.rounds(n_trees), n_jobs=training.n_jobs, random_state=training.seed)
    pairs = training.pairs(n_pairs)
    classifier.fit(coordinates(training.X, row_numbers(pairs), kinds), pairs.same)
    return PairClassifier(partial(models.probabilities, classifier), kinds, identity)


random_forest = partial(pair_classifier, make=models.random_forest)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.divide(np.einsum("ij,ij->i", a, b), lengths, out=np.zeros(len(a), dtype=a.dtype), where=lengths > 0)


# Coordinates per feature, and pairwise coordinates, which depend on all features.
FEATURE_COORDINATES = {
    "abs_diff": lambda a, b: np.abs(a - b),
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "product": np.multiply,
    # How many of the two samples lack the feature: what a peer cannot see in a NaN.
    "n_missing": lambda a, b: np.isnan(a).astype(np.float32) + np.isnan(b),
}
PAIR_COORDINATES = {
    "dot": lambda a, b: np.einsum("ij,ij->i", a, b),
    "cosine": cosines,
    "euclidean": lambda a, b: np.linalg.norm(a - b, axis=1),
    "manhattan": lambda a, b: np.abs(a - b).sum(axis=1),
}


def coordinates(X: np.ndarray, rows: np.ndarray, kinds: Sequence[str]) -> np.ndarray:
    """Return the coordinates of pairs of rows of X as a float32 matrix, kind by kind."""
    columns = np.cumsum([0, *(X.shape[1] if kind in FEATURE_COORDINATES else 1 for kind in kinds)])
    matrix = np.empty((len(rows), columns[-1]), dtype=np.float32)
    for start in range(0, len(rows), BLOCK):
        a, b = (X[rows[start : start + BLOCK, side]] for side in (0, 1))
        for kind, first, end in zip(kinds, columns[:-1], columns[1:], strict=True):
            values = FEATURE_COORDINATES[kind](a, b) if kind in FEATURE_COORDINATES else PAIR_COORDINATES[kind](a, b)[:, None]
            matrix[start : start + BLOCK, first:end] = values
    return matrix


# One quadratic log-likelihood ratio. `GaussianSplitter` has the same one in closed form; this baseline is written out with
# densities instead of calling it, so that a mistake there cannot make the baseline worse. Tests compare both with scipy's.


@dataclass(frozen=True)
class Gaussian:
    """Normal distribution: mean, Cholesky factor of the covariance, and its log-determinant."""

    mean: np.ndarray
    factor: tuple[np.ndarray, bool]
    log_determinant: float

    @classmethod
    def fit(cls, values: np.ndarray, shrinkage: float) -> Gaussian:
        covariance = shrunk_covariance(np.cov(values, rowvar=False), shrinkage=shrinkage)
        factor = cho_factor(covariance, lower=True)
        return cls(values.mean(axis=0), factor, 2.0 * float(np.log(np.diag(factor[0])).sum()))

    def log_density(self, values: np.ndarray) -> np.ndarray:
        """Return the log-density up to a constant that depends only on the number of features."""
        centred = values - self.mean
        return -0.5 * (np.einsum("ij,ji->i", centred, cho_solve(self.factor, centred.T)) + self.log_determinant)


@dataclass(frozen=True)
class QuadraticRatio:
    """Log-likelihood ratio of normal distributions of the differences and sums of same and of different pairs."""

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
    """Fit the quadratic ratio; differences of both orders are used, so that the score is symmetric."""
    pairs = training.pairs(n_pairs)
    distributions = []
    for kind in (pairs.same, ~pairs.same):
        differences, sums = differences_and_sums(training.X, row_numbers(pairs.take(kind)))
        both_orders = np.concatenate([differences, -differences])
        distributions.append((Gaussian.fit(both_orders, shrinkage), Gaussian.fit(sums, shrinkage)))
    return QuadraticRatio(*distributions)
