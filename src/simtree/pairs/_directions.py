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
    """Return the mean of (x - x')(x - x')ᵀ over pairs, for some features; of those that lack values see `joint_scatter`."""
    total, counts = np.zeros((len(features), len(features))), np.zeros(len(features))
    for start in range(0, pairs.n_pairs, CHUNK):
        part = pairs.take(slice(start, start + CHUNK))
        difference = part.A[part.first[:, None], features].astype(np.float64)
        difference -= part.B[part.second[:, None], features]
        if pairs.lacks_values:
            product, n_present = joint_scatter(difference)
            total += product
            counts += n_present
        else:
            total += difference.T @ difference
    return scaled_scatter(total, counts) if pairs.lacks_values else total / pairs.n_pairs


def joint_scatter(values: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
    """Return the product of a matrix with itself, with zeros in place of missing values, and the number present per column."""
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    return filled.T @ filled, present.sum(axis=0).astype(np.float64)


def scaled_scatter(product: Matrix, n_present: NDArray[np.float64]) -> Matrix:
    """Return the scatter of columns with missing values: the diagonal has means over the values that are present.

    An entry off the diagonal is divided by the geometric mean of the two numbers of values. So the matrix is positive
    semidefinite, and correlations are shrunk by the share of rows that have both columns. Means over the rows that have both
    would not be shrunk, but they are not positive semidefinite, and directions that seem to have no variance would come first.

    Examples
    --------
    >>> scaled_scatter(*joint_scatter(np.array([[2.0, 2.0], [2.0, np.nan], [2.0, np.nan], [2.0, 2.0]])))
    array([[4.        , 2.82842712],
           [2.82842712, 4.        ]])
    """
    sizes = np.sqrt(np.maximum(n_present, 1.0))
    return product / sizes[:, None] / sizes


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
