"""Values of symmetric coordinates of pairs, computed from the rows of two matrices.

A coordinate is a kind and a feature. With ``a = A[first[p], feature]`` and ``b = B[second[p], feature]`` its value is one of
the four below; each is the same, bit for bit, when a and b change places. All arithmetic is in float64, also for float32 rows.
"""

import numpy as np

from simtree._kernels.compilation import kernel

ABS_DIFF = 0
SUM = 1
MIN = 2
MAX = 3


@kernel
def coordinate_value(kind, a, b):
    """Value of one coordinate for the feature values a and b of the two points of a pair."""
    if kind == ABS_DIFF:
        return abs(a - b)
    if kind == SUM:
        return a + b
    if kind == MIN:
        return min(a, b)
    return max(a, b)


@kernel
def fill_values(A, B, first, second, kinds, features, values):
    """OUT ``values[c, p]``: coordinate c of pair p. Few coordinates at a time: a pair's rows stay in cache for all of them."""
    for p in range(first.shape[0]):
        i = first[p]
        j = second[p]
        for c in range(kinds.shape[0]):
            f = features[c]
            values[c, p] = coordinate_value(kinds[c], np.float64(A[i, f]), np.float64(B[j, f]))


@kernel
def linear_values(A, B, first, second, kinds, features, weights, intercept, values):
    """OUT ``values[p]``: the intercept plus the weighted sum of the coordinates of pair p, always summed in one order."""
    for p in range(first.shape[0]):
        i = first[p]
        j = second[p]
        total = intercept
        for c in range(kinds.shape[0]):
            f = features[c]
            total += weights[c] * coordinate_value(kinds[c], np.float64(A[i, f]), np.float64(B[j, f]))
        values[p] = total
