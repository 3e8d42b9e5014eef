"""Coordinates of pairs of categories: equality, the rarity of a shared value or of two, and what is known of a pair of values.

Samples have one column per category with the code of its value: NaN if it is missing, and at least ``n_values`` if it is not in
the vocabulary. Two more columns have the fold of a sample and a random number, by which values of a training pair are looked up
that were learned without two folds, those of its samples among them.

The coordinates of a category that a sample lacks are in one of the two states of `missing`, which no value has. Only the third,
what is known of the values, has a number for a pair that lacks one if training pairs did: missing is one more value to it.
"""

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.missing import BOTH_MISSING, ONE_MISSING

# Values of the equality of two categories.
DIFFERENT, EQUAL = 0.0, 1.0
# Rarity of two different values is this less the rarities of both; that of a shared value is at least 0. Of a category with
# more values than the second number it is this alone: pairs of so many values would take the bins of the shared ones.
NOT_SHARED, MAX_TOLD_APART = -1.0, 20
# Coordinates per category.
N_COORDINATES = 3


@kernel
def state_of(u, v):
    """Return the state of two codes: 0 different, 1 equal, 2 one missing, 3 both missing."""
    if np.isnan(u) or np.isnan(v):
        return 3 if np.isnan(u) and np.isnan(v) else 2
    return 1 if u == v else 0


@kernel
def key_of(u, v, n_values):
    """Return the key of an unordered pair of codes, where missing is one more value; -1 if one is not in the vocabulary."""
    if u >= n_values or v >= n_values:
        return np.int64(-1)
    i = np.int64(n_values) if np.isnan(u) else np.int64(u)
    j = np.int64(n_values) if np.isnan(v) else np.int64(v)
    return min(i, j) * (n_values + 1) + max(i, j)


@kernel
def find_key(keys, start, stop, key):
    """Return the place of a key among sorted keys, or -1."""
    end = stop
    while start < stop:
        middle = (start + stop) // 2
        if keys[middle] < key:
            start = middle + 1
        else:
            stop = middle
    return start if start < end and keys[start] == key else -1


@kernel
def other_fold(f, a, b, n_folds):
    """Return the fold that is left out together with f for a pair of two samples of f, from their random numbers."""
    return (f + 1 + (a + b) % (n_folds - 1)) % n_folds


@kernel
def fill_categories(
    A,
    B,
    first,
    second,
    column,
    n_values,
    rarities,
    rarity_start,
    unseen,
    keys,
    key_start,
    ratios,
    priors,
    lacking,
    sets,
    place,
    pairwise,
):
    """Fill ``pairwise[p, place:]`` with the coordinates of the categories of pair p: all equalities, rarities, then ratios.

    Codes are in the columns of A and B from ``column`` on, followed by the fold and the random number. ``sets[f, g]`` is the
    set of the folds f and g, which is a column of ``ratios`` and ``priors``; its last row and column are for samples of no
    fold. Two folds are left out for every training pair, whether its identities are the same or not: one or two would tell.
    ``lacking[k]`` tells whether training pairs had category k missing in one sample, and in both.
    """
    n = n_values.shape[0]
    n_folds = sets.shape[0] - 1
    for p in range(first.shape[0]):
        a, b = A[first[p]], B[second[p]]
        f, g = np.int64(a[column + n]), np.int64(b[column + n])
        if f == g and f < n_folds:
            g = other_fold(f, np.int64(a[column + n + 1]), np.int64(b[column + n + 1]), n_folds)
        left_out = sets[f, g]
        for k in range(n):
            u, v = np.float64(a[column + k]), np.float64(b[column + k])
            state = state_of(u, v)
            if state == 1:
                pairwise[p, place + k] = EQUAL
                known = u < n_values[k]
                pairwise[p, place + n + k] = rarities[rarity_start[k] + np.int64(u)] if known else unseen[k]
            elif state == 0:
                pairwise[p, place + k] = DIFFERENT
                pairwise[p, place + n + k] = NOT_SHARED
                if n_values[k] <= MAX_TOLD_APART:
                    rarity_u = rarities[rarity_start[k] + np.int64(u)] if u < n_values[k] else unseen[k]
                    rarity_v = rarities[rarity_start[k] + np.int64(v)] if v < n_values[k] else unseen[k]
                    pairwise[p, place + n + k] = NOT_SHARED - (rarity_u + rarity_v)
            else:
                missing = ONE_MISSING if state == 2 else BOTH_MISSING
                pairwise[p, place + k] = missing
                pairwise[p, place + n + k] = missing
                if not lacking[k, state - 2]:
                    pairwise[p, place + 2 * n + k] = missing
                    continue
            key = key_of(u, v, n_values[k])
            at = find_key(keys, key_start[k], key_start[k + 1], key) if key >= 0 else -1
            pairwise[p, place + 2 * n + k] = ratios[at, left_out] if at >= 0 else priors[k, state, left_out]
