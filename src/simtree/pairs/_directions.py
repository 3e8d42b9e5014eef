"""Directions w for the oblique coordinates |w·(x - x')| and w·(x + x').

Random directions make the map of a pair complete (see docs/notation.md). Discriminant ones are those along which different
pairs differ most, compared with same pairs; they need pairs, not labels.
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
# Discriminant directions, if their number is not given: more of them carry little but noise.
MAX_DISCRIMINANT = 40
# Share of the mean variance of same pairs that is added to all their variances.
RIDGE = 0.01
# Pairs whose differences are held at one time.
CHUNK = 10_000


def random_directions(n_directions: int, n_features: int, rng: np.random.Generator) -> Matrix:
    """Gaussian directions of unit length."""
    drawn = rng.normal(size=(n_directions, n_features))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def difference_scatter(pairs: SamplePairs, features: NDArray[np.int64]) -> Matrix:
    """Mean of (x - x')(x - x')ᵀ over pairs, of some features."""
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
    """Generalised eigenvectors of the scatter of different pairs against that of same pairs, the greatest first.

    They have an entry for each of ``features``.

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [0.0, 5.0], [1.0, 0.0], [1.0, 5.0]])  # the first feature tells classes apart
    >>> i, j = np.array([0, 2, 0, 1], dtype=np.int32), np.array([1, 3, 2, 3], dtype=np.int32)
    >>> same = np.array([True, True, False, False])
    >>> discriminant_directions(SamplePairs(points, points, i, j), same, 1, np.arange(2)).round(3)
    array([[1., 0.]])
    """
    of_same = difference_scatter(pairs.take(same), features)
    of_different = difference_scatter(pairs.take(~same), features)
    n_features = len(features)
    # Where same pairs do not differ at all the ridge is that of all pairs, or anything, if these do not either.
    size = np.trace(of_same) or np.trace(of_different) or 1.0
    regularised = of_same + RIDGE * size / n_features * np.eye(n_features)
    n_directions = min(n_directions, n_features)
    _, vectors = eigh(of_different, regularised, subset_by_index=[n_features - n_directions, n_features - 1])
    found = signed(vectors[:, ::-1]).T
    if not np.abs(found).max() <= MAX_SQUARED:  # of samples that hardly differ
        found = found / np.abs(found).max(axis=1, keepdims=True)
    return np.ascontiguousarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def signed(vectors: Matrix) -> Matrix:
    """Eigenvectors, as columns, with the sign that makes their greatest entry positive: it is arbitrary otherwise."""
    greatest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[greatest, np.arange(vectors.shape[1])]))
