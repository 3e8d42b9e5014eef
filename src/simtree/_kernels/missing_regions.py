"""Scores of linear and quadratic regions for pairs of samples with missing values (NaN), see `missing`.

A complete pair has the same score, bit for bit, as from `linear_values` and `quadratic_values`.
"""

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.missing import is_along_direction, joint_value, value_and_lacking


@kernel
def linear_state_values(A, B, first, second, pairwise, kinds, features, directions, weights, intercept, states, seen, values):
    """Fill ``values[p]`` with the intercept plus what each coordinate of pair p adds to it, in a fixed order.

    A coordinate adds its value times its weight, or ``states[c, 0]`` if one sample lacks it and ``states[c, 1]`` if both do.
    The value is NaN if nothing is known of the pair: each coordinate has no weight, or is in a state that is not ``seen``.
    """
    for p in range(first.shape[0]):
        i, j = first[p], second[p]
        total, is_known = intercept, False
        for c in range(kinds.shape[0]):
            value, n_lacking = value_and_lacking(kinds[c], features[c], A, i, B, j, pairwise, p)
            if n_lacking > 0 and is_along_direction(kinds[c], features[c], directions):
                value, n_lacking = joint_value(kinds[c], features[c], A, i, B, j, directions)
            if n_lacking == 0:
                total += weights[c] * value
                is_known |= weights[c] != 0.0
            else:
                total += states[c, n_lacking - 1]
                is_known |= (np.int64(seen[c]) & (n_lacking << 2)) != 0
        values[p] = total if is_known else np.nan


@kernel
def own_score(y, linear, own_directions, own):
    """Return the own term of one centred sample in a quadratic score."""
    line, squares = 0.0, 0.0
    for f in range(y.shape[0]):
        line += linear[f] * y[f]
    for k in range(own.shape[0]):
        product = 0.0
        for f in range(y.shape[0]):
            product += own_directions[k, f] * y[f]
        squares += own[k] * (product * product)
    return squares + line


@kernel
def fill_incomplete_quadratic(A, B, first, second, linear, own_directions, own, cross_directions, cross, shares, values, lacks):
    """Replace ``values[p]`` for pairs that lack a feature by the score of the features of both, scaled to all of them.

    A and B hold centred samples. The score is divided by the share of the features that both samples have; ``lacks[p]`` is set
    if they have none with a share.
    """
    n = linear.shape[0]
    a, b = np.empty(n), np.empty(n)
    for p in range(first.shape[0]):
        i, j = first[p], second[p]
        is_complete, present = True, 0.0
        for f in range(n):
            x, y = A[i, f], B[j, f]
            is_joint = not (np.isnan(x) or np.isnan(y))
            is_complete &= is_joint
            present += shares[f] if is_joint else 0.0
            a[f], b[f] = (x, y) if is_joint else (0.0, 0.0)
        lacks[p] = present == 0.0
        if is_complete or present == 0.0:
            continue
        total = own_score(a, linear, own_directions, own) + own_score(b, linear, own_directions, own)
        for k in range(cross.shape[0]):
            of_a, of_b = 0.0, 0.0
            for f in range(n):
                of_a += cross_directions[k, f] * a[f]
                of_b += cross_directions[k, f] * b[f]
            total += cross[k] * (of_a * of_b)
        values[p] = total / present
