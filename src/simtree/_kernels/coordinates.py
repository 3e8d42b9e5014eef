"""Values of symmetric coordinates of pairs, computed from the rows of two matrices.

A coordinate of one feature is given by a kind and a feature: its value is `coordinate_value` of ``A[first[p], feature]`` and
``B[second[p], feature]``. A pairwise coordinate, such as a distance, depends on all features; these values are computed once
per pair as ``pairwise[p]``, and the coordinate is given by the kind PAIRWISE and a column of ``pairwise``. Each value is the
same, bit for bit, when the two samples are swapped. All arithmetic is in float64, also for float32 rows.
"""

import numpy as np

from simtree._kernels.compilation import fastmath_kernel, kernel

ABS_DIFF = 0
SUM = 1
MIN = 2
MAX = 3
PRODUCT = 4
PAIRWISE = 5

# Kinds of pairwise coordinates, which are the columns of ``pairwise``.
DOT = 0
COSINE = 1
EUCLIDEAN = 2
MANHATTAN = 3

# Values that overflow are clipped to this.
MAX_FLOAT = np.finfo(np.float64).max


@kernel
def coordinate_value(kind, a, b):
    """Return the coordinate of this kind for the values a and b of one feature of the two samples."""
    if kind == ABS_DIFF:
        return abs(a - b)
    if kind == SUM:
        return a + b
    if kind == MIN:
        return min(a, b)
    if kind == MAX:
        return max(a, b)
    return min(max(a * b, -MAX_FLOAT), MAX_FLOAT)


@kernel
def pair_value(kind, f, a, b, pairwise):
    """Return one coordinate of the pair of rows a and b, whose pairwise coordinates are ``pairwise``."""
    if kind == PAIRWISE:
        return pairwise[f]
    return coordinate_value(kind, np.float64(a[f]), np.float64(b[f]))


@kernel
def dot(a, b, n):
    """Return the sum of the products of the first n entries, always as the same four partial sums."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for f in range(0, n - 3, 4):
        s0 += np.float64(a[f]) * np.float64(b[f])
        s1 += np.float64(a[f + 1]) * np.float64(b[f + 1])
        s2 += np.float64(a[f + 2]) * np.float64(b[f + 2])
        s3 += np.float64(a[f + 3]) * np.float64(b[f + 3])
    for f in range(n - n % 4, n):
        s0 += np.float64(a[f]) * np.float64(b[f])
    return (s0 + s1) + (s2 + s3)


@kernel
def squared_distance(a, b, n):
    """Return the sum of the squared differences of the first n entries, summed as in `dot`."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for f in range(0, n - 3, 4):
        s0 += squared_difference(a[f], b[f])
        s1 += squared_difference(a[f + 1], b[f + 1])
        s2 += squared_difference(a[f + 2], b[f + 2])
        s3 += squared_difference(a[f + 3], b[f + 3])
    for f in range(n - n % 4, n):
        s0 += squared_difference(a[f], b[f])
    return (s0 + s1) + (s2 + s3)


@kernel
def squared_difference(x, y):
    """Return (x - y)^2."""
    difference = np.float64(x) - np.float64(y)
    return difference * difference


@kernel
def absolute_distance(a, b, n):
    """Return the sum of the absolute differences of the first n entries, summed as in `dot`."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for f in range(0, n - 3, 4):
        s0 += abs(np.float64(a[f]) - np.float64(b[f]))
        s1 += abs(np.float64(a[f + 1]) - np.float64(b[f + 1]))
        s2 += abs(np.float64(a[f + 2]) - np.float64(b[f + 2]))
        s3 += abs(np.float64(a[f + 3]) - np.float64(b[f + 3]))
    for f in range(n - n % 4, n):
        s0 += abs(np.float64(a[f]) - np.float64(b[f]))
    return (s0 + s1) + (s2 + s3)


@kernel
def pairwise_value(kind, a, b, n):
    """Return the pairwise coordinate of this kind over the first n features."""
    if kind == DOT:
        return pairwise_of_sum(kind, dot(a, b, n), 1.0)
    if kind == COSINE:
        return pairwise_of_sum(kind, dot(a, b, n), np.sqrt(dot(a, a, n)) * np.sqrt(dot(b, b, n)))
    if kind == EUCLIDEAN:
        return pairwise_of_sum(kind, squared_distance(a, b, n), 1.0)
    return pairwise_of_sum(kind, absolute_distance(a, b, n), 1.0)


@kernel
def pairwise_of_sum(kind, total, norms):
    """Return a pairwise coordinate from its sum over features and, for the cosine, the product of the two norms.

    Undefined values (the cosine of a zero vector, or an overflow of both signs) are 0.
    """
    value = np.sqrt(total) if kind == EUCLIDEAN else total / norms if kind == COSINE else total
    return 0.0 if np.isnan(value) else min(max(value, -MAX_FLOAT), MAX_FLOAT)


@fastmath_kernel
def fill_sums(query, X, start, stop, n_features, sums):
    """Fill ``sums[kind, i]`` with the sum behind `pairwise_value` of this kind, for the query and row start + i of X.

    Summed in any order, so equal up to rounding only. Row COSINE, whose sum is that of DOT, holds the squared norm of the row
    of X.
    """
    for i in range(stop - start):
        row = X[start + i]
        product, square, squared_distance, distance = 0.0, 0.0, 0.0, 0.0
        for f in range(n_features):
            value = np.float64(row[f])
            difference = value - query[f]
            product += value * query[f]
            square += value * value
            squared_distance += difference * difference
            distance += abs(difference)
        sums[DOT, i], sums[COSINE, i], sums[EUCLIDEAN, i], sums[MANHATTAN, i] = product, square, squared_distance, distance


@kernel
def fill_pairwise(A, B, first, second, n_features, pairwise_kinds, pairwise):
    """Fill ``pairwise[p, k]`` with the coordinate ``pairwise_kinds[k]`` of pair p, over the first n_features features.

    Each is `pairwise_value`, bit for bit; the product is shared, and so are the norms if there are more pairs than rows.
    """
    has_cosine, has_product = False, False
    for kind in pairwise_kinds:
        has_cosine |= kind == COSINE
        has_product |= kind in (COSINE, DOT)
    shared = has_cosine and A.shape[0] + B.shape[0] <= first.shape[0]
    norms_a = row_norms(A, n_features) if shared else np.empty(0)
    norms_b = row_norms(B, n_features) if shared else np.empty(0)
    for p in range(first.shape[0]):
        a, b = A[first[p]], B[second[p]]
        product = dot(a, b, n_features) if has_product else 0.0
        for k in range(pairwise_kinds.shape[0]):
            kind = pairwise_kinds[k]
            if kind == DOT:
                pairwise[p, k] = pairwise_of_sum(kind, product, 1.0)
            elif kind == COSINE and shared:
                pairwise[p, k] = pairwise_of_sum(kind, product, norms_a[first[p]] * norms_b[second[p]])
            elif kind == COSINE:
                norms = np.sqrt(dot(a, a, n_features)) * np.sqrt(dot(b, b, n_features))
                pairwise[p, k] = pairwise_of_sum(kind, product, norms)
            else:
                pairwise[p, k] = pairwise_value(kind, a, b, n_features)


@kernel
def row_norms(A, n_features):
    """Return the Euclidean norm of each row over the first n_features features, summed as in `dot`."""
    norms = np.empty(A.shape[0])
    for r in range(A.shape[0]):
        norms[r] = np.sqrt(dot(A[r], A[r], n_features))
    return norms


@kernel
def quadratic_values(products_a, products_b, own_a, own_b, first, second, weights, values):
    """Fill ``values[p]`` with the own terms of the two samples of pair p plus the weighted sum of their products."""
    for p in range(first.shape[0]):
        a, b = products_a[first[p]], products_b[second[p]]
        total = 0.0
        for k in range(weights.shape[0]):
            total += weights[k] * (a[k] * b[k])
        values[p] = (own_a[first[p]] + own_b[second[p]]) + total


@kernel
def fill_values(A, B, first, second, pairwise, kinds, features, values):
    """Fill ``values[c, p]`` with coordinate c of pair p; the rows of a pair stay in cache for all coordinates."""
    for p in range(first.shape[0]):
        a, b = A[first[p]], B[second[p]]
        for c in range(kinds.shape[0]):
            values[c, p] = pair_value(kinds[c], features[c], a, b, pairwise[p])


@kernel
def linear_values(A, B, first, second, pairwise, kinds, features, weights, intercept, values):
    """Fill ``values[p]`` with the intercept plus the weighted sum of the coordinates of pair p, in a fixed order."""
    for p in range(first.shape[0]):
        a, b = A[first[p]], B[second[p]]
        total = intercept
        for c in range(kinds.shape[0]):
            total += weights[c] * pair_value(kinds[c], features[c], a, b, pairwise[p])
        values[p] = total
