"""Search for the best cut of a node whose codes include those of the two states of missing values.

A cut sends the values up to a code, and some of the two states, to the left: each cut is tried with the four choices of sides
for the states, so the result is the best of all such splits. The cut after the last value separates states only. The three
algorithms correspond to those of `search`, and give the same result. Ties go to the lowest column, then to the lowest code,
then to the first choice of sides.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.missing import ALL_ABOVE, BOTH_ABOVE, N_SIDES, ONE_ABOVE
from simtree._kernels.search import AUC, GINI, LOW_HALF, ONE_SAME, entropy, winner


class Sides(NamedTuple):
    """The states of each column in a node: the balance, the weight and the number of their pairs; and the best sides so far."""

    one_balance: np.ndarray
    one_weight: np.ndarray
    one_count: np.ndarray
    both_balance: np.ndarray
    both_weight: np.ndarray
    both_count: np.ndarray
    chosen: np.ndarray


@kernel
def lay_sides(rule, one, both):
    """Return the states of the columns of a node, given packed counts of the pairs in each."""
    one_same, one_different = (one >> 32).astype(np.float64), (one & LOW_HALF).astype(np.float64)
    both_same, both_different = (both >> 32).astype(np.float64), (both & LOW_HALF).astype(np.float64)
    return Sides(
        rule.weight_same * one_same - rule.weight_different * one_different,
        rule.weight_same * one_same + rule.weight_different * one_different,
        one_same + one_different,
        rule.weight_same * both_same - rule.weight_different * both_different,
        rule.weight_same * both_same + rule.weight_different * both_different,
        both_same + both_different,
        np.zeros(one.shape[0], np.int64),
    )


@kernel
def score_sides(rule, node_same, node_different, sides, best, n_columns):
    """Fill ``best.trial[c]`` as `score_trials` does with the best of four choices of sides, and ``sides.chosen[c]``.

    ``best.left_same`` and ``best.left_different`` are those of the values that go left.
    """
    ws, wd = rule.weight_same, rule.weight_different
    total = ws * node_same + wd * node_different
    balance = ws * node_same - wd * node_different
    min_left, max_left = rule.min_leaf, node_same + node_different - rule.min_leaf
    if rule.criterion != GINI:
        base = impurity(rule.criterion, ws * node_same, wd * node_different)
        for c in range(n_columns):
            a, b = ws * best.left_same[c], wd * best.left_different[c]
            n_values = best.left_same[c] + best.left_different[c]
            best.trial[c] = -1.0
            sides.chosen[c] = 0
            for choice in range(N_SIDES):
                one, both = 0.0 if choice & ONE_ABOVE else 1.0, 0.0 if choice & BOTH_ABOVE else 1.0
                n_left = n_values + one * sides.one_count[c] + both * sides.both_count[c]
                if n_left < min_left or n_left > max_left:
                    continue
                d = a - b + one * sides.one_balance[c] + both * sides.both_balance[c]
                t = a + b + one * sides.one_weight[c] + both * sides.both_weight[c]
                left = impurity(rule.criterion, 0.5 * (t + d), 0.5 * (t - d))
                right = impurity(rule.criterion, 0.5 * (total - t + balance - d), 0.5 * (total - t - balance + d))
                if base - left - right > best.trial[c]:
                    best.trial[c] = base - left - right
                    sides.chosen[c] = choice
        return
    twice = 2.0 * total
    for c in range(n_columns):
        a, b = ws * best.left_same[c], wd * best.left_different[c]
        d, t, n = a - b, a + b, best.left_same[c] + best.left_different[c]
        choice = 0
        # Fractions are compared by their products, so that the four choices take one division.
        u, v = fraction(
            total,
            balance,
            min_left,
            max_left,
            d + sides.one_balance[c] + sides.both_balance[c],
            t + sides.one_weight[c] + sides.both_weight[c],
            n + sides.one_count[c] + sides.both_count[c],
        )
        top, bottom = u, v
        u, v = fraction(
            total,
            balance,
            min_left,
            max_left,
            d + sides.both_balance[c],
            t + sides.both_weight[c],
            n + sides.both_count[c],
        )
        better = u * bottom > top * v
        top, bottom, choice = u if better else top, v if better else bottom, ONE_ABOVE if better else choice
        u, v = fraction(
            total,
            balance,
            min_left,
            max_left,
            d + sides.one_balance[c],
            t + sides.one_weight[c],
            n + sides.one_count[c],
        )
        better = u * bottom > top * v
        top, bottom, choice = u if better else top, v if better else bottom, BOTH_ABOVE if better else choice
        u, v = fraction(total, balance, min_left, max_left, d, t, n)
        better = u * bottom > top * v
        top, bottom, choice = u if better else top, v if better else bottom, ALL_ABOVE if better else choice
        best.trial[c] = top / (twice * bottom) if top >= 0.0 else -1.0
        sides.chosen[c] = choice


@kernel
def fraction(total, balance, min_left, max_left, d, t, n):
    """Return numerator and denominator of the decrease of the Gini impurity, times twice the total; -1 if a child is small."""
    u = d * total - balance * t
    is_allowed = (n >= min_left) & (n <= max_left)
    return u * u if is_allowed else -1.0, t * (total - t) if is_allowed else 1.0


@kernel
def impurity(criterion, a, b):
    """Return the impurity of weights: their entropy, or the lesser of them (AUC)."""
    return min(a, b) if criterion == AUC else entropy(a, b)


@kernel
def search_state_histogram(histogram, rule, node_same, node_different, n_columns, best):
    """Return the best column (``best`` holds its code and sides) as `search_histogram` does."""
    sides = lay_sides(rule, histogram[rule.one_code, :n_columns], histogram[rule.one_code + 1, :n_columns])
    best.score[:n_columns] = -1.0
    best.states[:n_columns] = 0
    counts = np.zeros(n_columns, np.int64)
    for code in range(rule.one_code):
        for c in range(n_columns):
            counts[c] += histogram[code, c]
            best.left_same[c] = counts[c] >> 32
            best.left_different[c] = counts[c] & LOW_HALF
        score_sides(rule, node_same, node_different, sides, best, n_columns)
        for c in range(n_columns):
            # A cut below all values would have to be the cut after all of them, with the sides of the states exchanged.
            better = (best.trial[c] > best.score[c]) & ((histogram[code, c] != 0) | (code == rule.one_code - 1))
            best.score[c] = best.trial[c] if better else best.score[c]
            best.code[c] = code if better else best.code[c]
            best.states[c] = sides.chosen[c] if better else best.states[c]
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
    sides = lay_sides(rule, one, both)
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
        for k in range(n_columns):
            best.left_same[k] = left_same[k]
            best.left_different[k] = left_different[k]
        score_sides(rule, node_same, node_different, sides, best, n_columns)
        for k in range(n_columns):
            code = np.int64(cut[k])
            better = (best.trial[k] > best.score[k]) | ((best.trial[k] == best.score[k]) & (code < best.code[k]))
            best.score[k] = best.trial[k] if better else best.score[k]
            best.code[k] = code if better else best.code[k]
            best.states[k] = sides.chosen[k] if better else best.states[k]
    return winner(best, n_columns)


@kernel
def search_state_sorted(codes, same, rows, columns, rule, node_same, node_different, best):
    """Return the best column (``best`` holds its code and sides) as `search_sorted` does."""
    n_rows = rows.shape[0]
    keys = np.empty(n_rows, np.int64)
    one, both = np.empty(1, np.int64), np.empty(1, np.int64)
    for k in range(columns.shape[0]):
        one[0], both[0], n_values = 0, 0, 0
        for r in range(n_rows):
            code, is_same = np.int64(codes[rows[r], columns[k]]), np.int64(same[rows[r]])
            added = ONE_SAME if is_same else 1
            if code == rule.one_code:
                one[0] += added
            elif code > rule.one_code:
                both[0] += added
            else:
                keys[n_values] = 2 * code + is_same
                n_values += 1
        keys[:n_values].sort()
        sides = lay_sides(rule, one, both)
        score, chosen, states = -1.0, np.int64(0), np.int64(0)
        n_same = np.int64(0)
        for r in range(max(n_values, 1)):
            code = np.int64(rule.one_code - 1)  # without values, there are states to separate
            if n_values > 0:
                n_same += keys[r] & 1
                code = keys[r] >> 1
                if r + 1 < n_values and keys[r + 1] >> 1 == code:
                    continue
            best.left_same[0] = n_same
            best.left_different[0] = min(r + 1, n_values) - n_same
            score_sides(rule, node_same, node_different, sides, best, 1)
            if best.trial[0] > score:
                score, chosen, states = best.trial[0], code, sides.chosen[0]
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
