"""Directions w for the oblique coordinates |w·(x - x')| and w·(x + x').

With enough random directions the coordinates determine an unordered pair completely (see docs/notation.md). Discriminant
directions are those along which different pairs differ most compared with same pairs; they require pairs, not labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from simtree._utils.matrices import MAX_SQUARED
from simtree.pairs._coordinates import SamplePairs

Matrix = NDArray[np.float64]

RANDOM, DISCRIMINANT = "random", "discriminant"
WAYS = (RANDOM, DISCRIMINANT)
# Default number of discriminant directions; further ones carry little but noise.
MAX_DISCRIMINANT = 40
# Ridge added to the variances of same pairs, as a share of their mean.
RIDGE = 0.01
# Number of pairs whose differences are held in memory at a time.
CHUNK = 10_000


def random_directions(n_directions: int, n_features: int, rng: np.random.Generator) -> Matrix:
    """Return Gaussian directions of unit length."""
    drawn = rng.normal(size=(n_directions, n_features))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def difference_scatter(pairs: SamplePairs, features: NDArray[np.int64]) -> Matrix:
    """Return the mean of (x - x')(x - x')ᵀ over pairs, for some features."""
    total = np.zeros((len(features), len(features)))
    for start in range(0, pairs.n_pairs, CHUNK):
        part = pairs.take(slice(start, start + CHUNK))
        difference = part.A[part.first[:, None], features].astype(np.float64)
        difference -= part.B[part.second[:, None], features]
        total += difference.T @ difference
    return total / pairs.n_pairs


def discriminant_directions(
    pairs: SamplePairs, same: NDArray[np.bool_], n_directions: int, features: NDArray[np.int64]
) -> Matrix:
    """Return generalised eigenvectors of the scatter of different pairs against that of same pairs.

    Parameters
    ----------
    pairs : SamplePairs
        Pairs with their samples.
    same : ndarray of bool of shape (n_pairs,)
        Whether each pair shares its label.
    n_directions : int
        Maximum number of directions.
    features : ndarray of int
        Features to use.

    Returns
    -------
    ndarray of shape (n_directions, len(features))
        Directions of unit length, those with the largest eigenvalue first.

    Examples
    --------
    >>> samples = np.array([[0.0, 0.0], [0.0, 5.0], [1.0, 0.0], [1.0, 5.0]])  # the first feature determines the label
    >>> i, j = np.array([0, 2, 0, 1], dtype=np.int32), np.array([1, 3, 2, 3], dtype=np.int32)
    >>> same = np.array([True, True, False, False])
    >>> discriminant_directions(SamplePairs(samples, samples, i, j), same, 1, np.arange(2)).round(3)
    array([[1., 0.]])
    """
    of_same = difference_scatter(pairs.take(same), features)
    of_different = difference_scatter(pairs.take(~same), features)
    n_features = len(features)
    # If same pairs do not differ at all the ridge follows different pairs; if these do not differ either, any ridge will do.
    size = np.trace(of_same) or np.trace(of_different) or 1.0
    regularised = of_same + RIDGE * size / n_features * np.eye(n_features)
    n_directions = min(n_directions, n_features)
    _, vectors = eigh(of_different, regularised, subset_by_index=[n_features - n_directions, n_features - 1])
    found = signed(vectors[:, ::-1]).T
    if not np.abs(found).max() <= MAX_SQUARED:  # the samples hardly differ, and norms would overflow
        found = found / np.abs(found).max(axis=1, keepdims=True)
    return np.ascontiguousarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def signed(vectors: Matrix) -> Matrix:
    """Return eigenvectors, as columns, with their arbitrary sign chosen so that the entry of largest size is positive."""
    greatest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[greatest, np.arange(vectors.shape[1])]))
