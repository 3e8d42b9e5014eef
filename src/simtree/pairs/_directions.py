"""Directions w for the oblique coordinates |w·(x - x')| and w·(x + x').

With enough random directions the coordinates determine an unordered pair completely (see docs/notation.md). Discriminant
directions are those along which different pairs differ most compared with same pairs; they require pairs, not labels. Fisher
directions tell two classes apart, for many pairs of classes; they require labels.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve, solve_triangular

from simtree._utils.matrices import MAX_SQUARED
from simtree.pairs._coordinates import SamplePairs

Matrix = NDArray[np.float64]

RANDOM, DISCRIMINANT, FISHER = "random", "discriminant", "fisher"
WAYS = (RANDOM, DISCRIMINANT, FISHER)
# Default number of discriminant directions; further ones carry little but noise.
MAX_DISCRIMINANT = 40
# Default number of Fisher directions: those of all pairs of ten classes, and a few more.
MAX_FISHER = 60
# Classes that Fisher directions tell apart, and samples that they are computed from; more are subsampled.
MAX_FISHER_CLASSES, MAX_FISHER_SAMPLES = 1_000, 200_000
# Numbers in the covariances of classes that are kept rather than computed again.
MAX_CACHED = 1 << 25
# Ridge added to the variances of same pairs (or within classes), as a share of their mean.
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


def fisher_directions(samples: Matrix, classes: NDArray[np.int64], n_directions: int) -> Matrix:
    """Return Fisher's linear discriminants of pairs of classes, the inverse of (S_a + S_b) / 2 times the difference of means.

    The covariance S of a class is shrunk towards that within all classes, as if the class had as many more samples of these as
    there are features: so a class of few samples has nearly the common one. If there are more pairs of classes than directions,
    each class is told apart from its nearest ones.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Samples; values may be missing (NaN), but no feature entirely.
    classes : ndarray of shape (n_samples,)
        Class of each sample, as integers from 0 of which each occurs.
    n_directions : int
        Maximum number of directions.

    Returns
    -------
    ndarray of shape (n_directions, n_features)
        Directions of unit length; none for classes with the same mean.

    Examples
    --------
    >>> samples = np.array([[0.0, 0.0], [0.0, 5.0], [1.0, 0.0], [1.0, 5.0]])
    >>> np.abs(fisher_directions(samples, np.array([0, 0, 1, 1]), 5)).round(3)
    array([[1., 0.]])
    """
    n_features = samples.shape[1]
    overall = np.nanmean(samples, axis=0, dtype=np.float64)
    sizes = np.bincount(classes)
    members = np.split(np.argsort(classes, kind="stable"), np.cumsum(sizes)[:-1])
    means = np.zeros((len(sizes), n_features))

    @lru_cache(maxsize=max(2, MAX_CACHED // n_features**2))
    def scatter(number: int) -> Matrix:
        return joint_scatter(samples[members[number]] - overall - means[number])[0]

    n_present, total = np.zeros(n_features), np.zeros((n_features, n_features))
    for number, rows in enumerate(members):
        values = samples[rows] - overall
        present = np.count_nonzero(~np.isnan(values), axis=0)
        means[number] = np.nansum(values, axis=0) / np.maximum(present, 1)
        n_present += present
        total += scatter(number)
    within = scaled_scatter(total, n_present)
    size = np.trace(within) or np.trace(means.T @ means) or 1.0
    within += RIDGE * size / n_features * np.eye(n_features)
    whitened = solve_triangular(cholesky(within, lower=True), means.T, lower=True).T
    found = []
    for a, b in _class_pairs(whitened, n_directions).tolist():
        of_both = [(scatter(c) + n_features * within) / (sizes[c] + n_features) for c in (a, b)]
        found.append(solve(of_both[0] + of_both[1], means[a] - means[b], assume_a="pos"))
    directions = np.array([w / np.abs(w).max() for w in found if w.any()]).reshape(-1, n_features)  # so that norms are finite
    return np.ascontiguousarray(signed(directions.T).T / np.linalg.norm(directions, axis=1, keepdims=True))


def _class_pairs(means: Matrix, n_pairs: int) -> NDArray[np.int64]:
    """Return at most ``n_pairs`` pairs of classes: each class and its nearest one, then its second nearest, and so on.

    Examples
    --------
    >>> _class_pairs(np.array([[0.0], [1.0], [5.0]]), 2)
    array([[0, 1],
           [1, 2]])
    """
    n = len(means)
    squares = (means**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * means @ means.T
    np.fill_diagonal(distances, -np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, 1:]
    ends = np.stack([np.tile(np.arange(n), n - 1), nearest.T.ravel()])
    codes = ends.min(axis=0) * n + ends.max(axis=0)
    first = np.sort(np.unique(codes, return_index=True)[1])[:n_pairs]
    return np.column_stack([codes[first] // n, codes[first] % n])


def signed(vectors: Matrix) -> Matrix:
    """Return eigenvectors, as columns, with their arbitrary sign chosen so that the entry of largest size is positive."""
    greatest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.sign(vectors[greatest, np.arange(vectors.shape[1])]))
