"""Samples and pairs of the benchmarks: MNIST, keystroke data, faces, or small synthetic clusters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.preprocessing import QuantileTransformer

from measure import SEED
from simtree.datasets import load_keystroke, load_mnist
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs

# Number of pairs per block when coordinates are computed, to avoid temporaries of the size of the matrix.
BLOCK = 4096
N_PEOPLE_TO_TRAIN = 30


@dataclass(frozen=True)
class Samples:
    """Samples for training and for test: float32 and C-contiguous, so that no library needs to copy them."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def save(self, file: Path) -> None:
        np.savez(file, **vars(self))

    @classmethod
    def load(cls, file: Path) -> Samples:
        with np.load(file) as arrays:
            return cls(**arrays)


def mnist(n_components: int = 153) -> Samples:
    """Return images scaled to [0, 1], on the principal components of the training images."""
    (X, y), (X_test, y_test) = (load_mnist(part=part) for part in ("train", "test"))
    return Samples(*components(n_components, X, y, X_test, y_test))


def components(n_components: int, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> list[np.ndarray]:
    """Return images X and X_test scaled to [0, 1], on the principal components of X, with their digits."""
    scaled, scaled_test = (images.astype(np.float32) / np.float32(255) for images in (X, X_test))
    pca = PCA(n_components, random_state=SEED).fit(scaled)
    return [as_rows(pca.transform(scaled)), y, as_rows(pca.transform(scaled_test)), y_test]


def keystroke() -> Samples:
    """Return 30 people for training and 21 others for test; features are transformed by their training quantiles."""
    X, y = load_keystroke()
    train = np.isin(y, np.random.default_rng(SEED).permutation(51)[:N_PEOPLE_TO_TRAIN])
    transform = QuantileTransformer(random_state=SEED).fit(X[train]).transform
    return Samples(as_rows(transform(X[train])), y[train], as_rows(transform(X[~train])), y[~train])


def lfw() -> Samples:
    """Return face descriptors, of 60 % of the people for training and of the others for test."""
    file = Path(os.environ.get("SIMTREE_DATA", ".")) / "lfw_dlib128.npz"
    with np.load(file, allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
    people = np.unique(y)
    train = np.isin(y, np.random.default_rng(SEED).permutation(people)[: round(0.6 * len(people))])
    return Samples(as_rows(X[train]), y[train], as_rows(X[~train]), y[~train])


def clusters(n_features: int = 8) -> Samples:
    """Return ten clusters of samples, split into training and test."""
    X, y = make_blobs(1_000, n_features, centers=10, cluster_std=5.0, random_state=SEED)
    return Samples(as_rows(X[:600]), y[:600], as_rows(X[600:]), y[600:])


def as_rows(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X, dtype=np.float32)


def draw(
    y: np.ndarray, n_pairs: int, *, positive_fraction: float | None = 0.5, seed: int = SEED, same_weighting: str = "pairs"
) -> IndexPairs:
    """Sample pairs of labelled samples, by default half of them same pairs, with a fixed random seed."""
    how = {"positive_fraction": positive_fraction, "same_weighting": same_weighting, "shuffle": False}
    return PairSampler(y).sample(n_pairs, np.random.default_rng(seed), **how)


def row_numbers(pairs: IndexPairs) -> np.ndarray:
    return np.column_stack([pairs.first, pairs.second])


def materialise(X: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the coordinates |x - x'| and x + x' of pairs as a float32 matrix."""
    n_features = X.shape[1]
    matrix = np.empty((len(pairs), 2 * n_features), dtype=np.float32)
    for start in range(0, len(pairs), BLOCK):
        a, b = (X[pairs[start : start + BLOCK, side]] for side in (0, 1))
        np.abs(a - b, out=matrix[start : start + BLOCK, :n_features])
        np.add(a, b, out=matrix[start : start + BLOCK, n_features:])
    return matrix
