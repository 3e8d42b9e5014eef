"""Search for the best cut of a node whose codes include those of the two states of missing values.

A cut sends the values up to a code, and some of the two states, to the left: each cut is tried with the four choices of sides
for the states, so the result is the best of all such splits. The cut after the last value separates states only. The three
algorithms correspond to those of `search`, and give the same result. Ties go to the lowest column, then to the first choice of
sides, then to the lowest code.
"""

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.missing import BOTH_ABOVE, N_SIDES, ONE_ABOVE
from simtree._kernels.search import LOW_HALF, ONE_SAME, score_trials, winner


@kernel
def is_needed(sides, has_one, has_both):
    """Return whether a choice of sides differs from the earlier ones, given the states that occur."""
    return (has_one or sides & ONE_ABOVE == 0) and (has_both or sides & BOTH_ABOVE == 0)


@kernel
def search_state_histogram(histogram, rule, node_same, node_different, n_columns, best):
    """Return the best column (``best`` holds its code and sides) as `search_histogram` does."""
    one, both = histogram[rule.one_code], histogram[rule.one_code + 1]
    has_one, has_both = one[:n_columns].any(), both[:n_columns].any()
    best.score[:n_columns] = -1.0
    best.states[:n_columns] = 0
    counts = np.empty(n_columns, np.int64)
    for sides in range(N_SIDES):
        if not is_needed(sides, has_one, has_both):
            continue
        for c in range(n_columns):
            counts[c] = (0 if sides & ONE_ABOVE else one[c]) + (0 if sides & BOTH_ABOVE else both[c])
        for code in range(rule.one_code):
            for c in range(n_columns):
                counts[c] += histogram[code, c]
                best.left_same[c] = counts[c] >> 32
                best.left_different[c] = counts[c] & LOW_HALF
            score_trials(rule, node_same, node_different, best, n_columns)
            for c in range(n_columns):
                # A cut below all values would have to be the cut after all of them, with the sides of the states exchanged.
                better = (best.trial[c] > best.score[c]) & ((histogram[code, c] != 0) | (code == rule.one_code - 1))
                best.score[c] = best.trial[c] if better else best.score[c]
                best.code[c] = code if better else best.code[c]
                best.states[c] = sides if better else best.states[c]
    return winner(best, n_columns)


@kernel
def search_state_compare(codes, same, rows, columns, rule, node_same, node_different, best):
    """Return the best column (``best`` holds its code and sides) as `search_compare` does.

    The codes of states are above those of all values, so a pair with a value is never counted with them. The cut of a pair in
    a state is that after the last value.
    """
    n_rows, n_columns = rows.shape[0], columns.shape[0]
    n_same = np.int64(node_same)
    last = rule.one_code - 1
    block = np.empty((n_rows, n_columns), codes.dtype)
    one, both = np.zeros(n_columns, np.int64), np.zeros(n_columns, np.int64)
    front = 0
    back = n_same
    for r in range(n_rows):
        p = rows[r]
        if same[p]:
            at = front
            front += 1
        else:
            at = back
            back += 1
        added = ONE_SAME if same[p] else 1
        for k in range(n_columns):
            code = codes[p, columns[k]]
            block[at, k] = code
            one[k] += added if code == rule.one_code else 0
            both[k] += added if code > rule.one_code else 0
    has_one, has_both = one.any(), both.any()
    left_same, left_different = np.empty(n_columns, np.uint8), np.empty(n_columns, np.uint8)
    cut = np.empty(n_columns, codes.dtype)
    best.score[:n_columns] = -1.0
    best.code[:n_columns] = 0
    best.states[:n_columns] = 0
    for i in range(n_rows):
        left_same[:] = 0
        left_different[:] = 0
        for k in range(n_columns):
            cut[k] = min(block[i, k], last)
        for j in range(n_same):
            for k in range(n_columns):
                left_same[k] += np.uint8(block[j, k] <= cut[k])
        for j in range(n_same, n_rows):
            for k in range(n_columns):
                left_different[k] += np.uint8(block[j, k] <= cut[k])
        for sides in range(N_SIDES):
            if not is_needed(sides, has_one, has_both):
                continue
            for k in range(n_columns):
                added = (0 if sides & ONE_ABOVE else one[k]) + (0 if sides & BOTH_ABOVE else both[k])
                best.left_same[k] = left_same[k] + (added >> 32)
                best.left_different[k] = left_different[k] + (added & LOW_HALF)
            score_trials(rule, node_same, node_different, best, n_columns)
            for k in range(n_columns):
                code = np.int64(cut[k])
                before = (sides < best.states[k]) | ((sides == best.states[k]) & (code < best.code[k]))
                better = (best.trial[k] > best.score[k]) | ((best.trial[k] == best.score[k]) & before)
                best.score[k] = best.trial[k] if better else best.score[k]
                best.code[k] = code if better else best.code[k]
                best.states[k] = sides if better else best.states[k]
    return winner(best, n_columns)


@kernel
def search_state_sorted(codes, same, rows, columns, rule, node_same, node_different, best):
    """Return the best column (``best`` holds its code and sides) as `search_sorted` does."""
    n_rows = rows.shape[0]
    keys = np.empty(n_rows, np.int64)
    for k in range(columns.shape[0]):
        one, both, n_values = np.int64(0), np.int64(0), 0
        for r in range(n_rows):
            code, is_same = np.int64(codes[rows[r], columns[k]]), np.int64(same[rows[r]])
            added = ONE_SAME if is_same else 1
            if code == rule.one_code:
                one += added
            elif code > rule.one_code:
                both += added
            else:
                keys[n_values] = 2 * code + is_same
                n_values += 1
        keys[:n_values].sort()
        score, chosen, states = -1.0, 0, 0
        for sides in range(N_SIDES):
            if not is_needed(sides, one > 0, both > 0):
                continue
            added = (0 if sides & ONE_ABOVE else one) + (0 if sides & BOTH_ABOVE else both)
            n_same = np.int64(0)
            for r in range(max(n_values, 1)):
                code = np.int64(rule.one_code - 1)  # without values, there are states to separate
                if n_values > 0:
                    n_same += keys[r] & 1
                    code = keys[r] >> 1
                    if r + 1 < n_values and keys[r + 1] >> 1 == code:
                        continue
                best.left_same[0] = n_same + (added >> 32)
                best.left_different[0] = min(r + 1, n_values) - n_same + (added & LOW_HALF)
                score_trials(rule, node_same, node_different, best, 1)
                if best.trial[0] > score:
                    score, chosen, states = best.trial[0], code, sides
        best.score[k], best.code[k], best.states[k] = score, chosen, states
    return winner(best, columns.shape[0])


@kernel
def best_state_square(codes, same, start, stop, lower, upper, one_code, weight_same, weight_different, min_leaf):
    """Return feature, code, flip and sides of the best square as `best_square` does, for codes that include those of states.

    The bit of a state is set if its pairs are not counted with the square. The last code makes a square of all values.
    """
    n_pairs = stop - start
    best_value, best_feature, best_code, best_flipped, best_sides = 0.0, -1, 0, False, 0
    change, change_count = np.empty(one_code), np.empty(one_code, np.int64)
    weights, counts = np.empty(2), np.empty(2, np.int64)  # of the two states
    for k in range(lower.shape[0]):
        change[:], change_count[:], weights[:], counts[:] = 0.0, 0, 0.0, 0
        balance, count = 0.0, np.int64(0)  # of the square of a code below all values, which has all pairs with values
        for p in range(start, stop):
            weight = weight_same if same[p] else -weight_different
            high, low = np.int64(codes[p, upper[k]]), np.int64(codes[p, lower[k]])
            if high >= one_code:
                weights[high - one_code] += weight
                counts[high - one_code] += 1
                continue
            balance += weight
            count += 1
            change[high] += weight
            change[low] -= weight
            change_count[high] += 1
            change_count[low] -= 1
        for code in range(one_code):
            balance += change[code]
            count += change_count[code]
            for sides in range(N_SIDES):
                total, n_square = balance, count
                for state in range(2):
                    if (sides >> state) & 1 == 0:
                        total += weights[state]
                        n_square += counts[state]
                if abs(total) > best_value and n_square >= min_leaf and n_pairs - n_square >= min_leaf:
                    best_value, best_feature, best_code = abs(total), k, code
                    best_flipped, best_sides = total < 0.0, sides
    return best_feature, best_code, best_flipped, best_sides
