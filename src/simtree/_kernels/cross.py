"""Search for the best square region: the pairs whose two values of a feature lie on the same side of a threshold."""

import numpy as np

from simtree._kernels.compilation import kernel


@kernel
def best_square(codes, same, start, stop, lower, upper, n_bins, weight_same, weight_different, min_leaf):
    """Return the feature and code of the best square, and whether the pairs outside the square are the similar ones.

    Columns ``lower[k]`` and ``upper[k]`` hold the codes of the smaller and the larger of the two values of feature k, in common
    bins. A pair is in the square of code b if its larger code is at most b or its smaller code is above b, so that

        weight in the square of b  =  total  +  weight with larger code <= b  -  weight with smaller code <= b.

    The feature is -1 if no square has a positive gain.
    """
    n_pairs = stop - start
    best_value = 0.0
    best_feature = -1
    best_code = 0
    best_flipped = False
    change = np.empty(n_bins)  # of the balance of weights when b increases by one
    change_count = np.empty(n_bins, np.int64)
    for k in range(lower.shape[0]):
        change[:] = 0.0
        change_count[:] = 0
        for p in range(start, stop):
            weight = weight_same if same[p] else -weight_different
            change[codes[p, upper[k]]] += weight
            change[codes[p, lower[k]]] -= weight
            change_count[codes[p, upper[k]]] += 1
            change_count[codes[p, lower[k]]] -= 1
        balance = 0.0  # of the cell: its same and different pairs have the same total weight
        count = n_pairs
        for code in range(n_bins - 1):
            balance += change[code]
            count += change_count[code]
            if abs(balance) > best_value and count >= min_leaf and n_pairs - count >= min_leaf:
                best_value = abs(balance)
                best_feature = k
                best_code = code
                best_flipped = balance < 0.0
    return best_feature, best_code, best_flipped
