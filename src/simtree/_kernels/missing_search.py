"""Search for the best cut of a node whose codes include those of the two states of missing values.

A cut sends the values up to a code, and some of the two states, to the left: each cut is tried with the four choices of sides
for the states, so the result is the best of all such splits. The cut after the last value separates states only. The
algorithms correspond to those of `search`, and give the same result. Ties go to the lowest column, then to the lowest code,
then to the first choice of sides.

The best of so many choices fits noise, so that a test of a column in which values are missing has a price. The scores of
columns are impurity decreases less this price.

Four choices take longer to score than one, so that only cuts after a code that occurs are scored: in a column with missing
values, and in a node with few pairs, many codes do not.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.missing import ALL_ABOVE, BOTH_ABOVE, N_SIDES, ONE_ABOVE
from simtree._kernels.search import AUC, GINI, LOW_HALF, ONE_SAME, count_few, entropy, first_largest, winner


class Node(NamedTuple):
    """What all cuts of a node share: weight and balance (same less different) of its pairs, limits of a child, impurity."""

    total: float
    balance: float
    min_left: float
    max_left: float
    impurity: float
    """Only set for criteria other than Gini."""
    price: float
    """What a cut of a column in which values are missing must gain."""


class Sides(NamedTuple):
    """The states of each column in a node, or of one column: the balance, the weight and the number of their pairs."""

    one_balance: np.ndarray
    one_weight: np.ndarray
    one_count: np.ndarray
    both_balance: np.ndarray
    both_weight: np.ndarray
    both_count: np.ndarray


@kernel
def node_of(rule, node_same, node_different):
    """Return what the cuts of a node share."""
    a, b = rule.weight_same * node_same, rule.weight_different * node_different
    own = 0.0 if rule.criterion == GINI else impurity(rule.criterion, a, b)
    price = price_of(rule, node_same, node_different)
    return Node(a + b, a - b, np.float64(rule.min_leaf), node_same + node_different - rule.min_leaf, own, price)


@kernel
def price_of(rule, node_same, node_different):
    """Return the impurity decrease at which the chi-squared statistic of a test, same or different by side, is ``rule.price``.

    With the weights a and b of the same and of the different pairs of a node, t = a + b, the weights w and v of one pair of
    each kind, and n pairs, it is about t^3 / (2 w v a b n) times the decrease of the Gini impurity, if the shares of the
    children in weight and in number are alike. That of the entropy is t^2 / (4 a b) times that of Gini for small decreases. The
    weighted error (AUC) has no such relation, and no price.
    """
    a, b = rule.weight_same * node_same, rule.weight_different * node_different
    each = rule.price * rule.weight_same * rule.weight_different * (node_same + node_different) / (a + b)
    if rule.criterion == GINI:
        return 2.0 * each * a * b / ((a + b) * (a + b))
    return 0.0 if rule.criterion == AUC else 0.5 * each


@kernel
def to_pay(node, own):
    """Return the price of the cuts of a column, whose states are ``own``: nothing if no value is missing."""
    return node.price if own.one_count + own.both_count > 0.0 else 0.0


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
    )


@kernel
def of_column(sides, k):
    """Return the states of column k, which loops over its cuts then need not read again for each of them."""
    one = sides.one_balance[k], sides.one_weight[k], sides.one_count[k]
    return Sides(*one, sides.both_balance[k], sides.both_weight[k], sides.both_count[k])


@kernel
def score_sides(rule, node, own, same, different):
    """Return the impurity decrease of a cut of a column with the best of four choices of sides, and the choice as a float.

    ``own`` are the states of the column; ``same`` and ``different`` count the pairs with values that go left. The decrease is
    -1 if no choice is allowed. The first of equal choices is taken.
    """
    if rule.criterion == GINI:
        return score_gini_sides(rule, node, own, same, different)
    return score_other_sides(rule, node, own, same, different)


@kernel
def score_gini_sides(rule, node, own, same, different):
    """Return what `score_sides` does for the Gini impurity.

    Fractions are compared by their products, so that the four choices take one division. Loops over cuts that call this, and
    nothing else, vectorise.
    """
    a, b, n = rule.weight_same * same, rule.weight_different * different, same + different
    d, t = a - b, a + b
    without_one = d + own.both_balance, t + own.both_weight, n + own.both_count
    without_both = d + own.one_balance, t + own.one_weight, n + own.one_count
    top, bottom = fraction(
        node,
        without_both[0] + own.both_balance,
        without_both[1] + own.both_weight,
        without_both[2] + own.both_count,
    )
    choice = 0.0
    u, v = fraction(node, *without_one)
    better = u * bottom > top * v
    top, bottom, choice = u if better else top, v if better else bottom, 1.0 * ONE_ABOVE if better else choice
    u, v = fraction(node, *without_both)
    better = u * bottom > top * v
    top, bottom, choice = u if better else top, v if better else bottom, 1.0 * BOTH_ABOVE if better else choice
    u, v = fraction(node, d, t, n)
    better = u * bottom > top * v
    top, bottom, choice = u if better else top, v if better else bottom, 1.0 * ALL_ABOVE if better else choice
    return top / (2.0 * node.total * bottom) if top >= 0.0 else -1.0, choice


@kernel
def score_other_sides(rule, node, own, same, different):
    """Return what `score_sides` does for another impurity than Gini."""
    a, b, n = rule.weight_same * same, rule.weight_different * different, same + different
    best, chosen = -1.0, 0.0
    for choice in range(N_SIDES):
        one, both = 0.0 if choice & ONE_ABOVE else 1.0, 0.0 if choice & BOTH_ABOVE else 1.0
        found = other_decrease(
            rule.criterion,
            node,
            a - b + one * own.one_balance + both * own.both_balance,
            a + b + one * own.one_weight + both * own.both_weight,
            n + one * own.one_count + both * own.both_count,
        )
        if found > best:
            best, chosen = found, 1.0 * choice
    return best, chosen


@kernel
def score_cuts(rule, node, own, left_same, left_different, n_cuts, trial, chosen):
    """Fill ``trial[i]`` and ``chosen[i]`` with the score and the sides of cut i of a column, see `score_sides`."""
    if rule.criterion == GINI:
        for i in range(n_cuts):
            same, different = np.float64(left_same[i]), np.float64(left_different[i])
            trial[i], chosen[i] = score_gini_sides(rule, node, own, same, different)
    else:
        for i in range(n_cuts):
            same, different = np.float64(left_same[i]), np.float64(left_different[i])
            trial[i], chosen[i] = score_other_sides(rule, node, own, same, different)


@kernel
def score_columns(rule, node, sides, left_same, left_different, trial, chosen):
    """Fill ``trial[k]`` and ``chosen[k]`` with the score and the sides of one cut of each column k, see `score_sides`."""
    if rule.criterion == GINI:
        for k in range(chosen.shape[0]):
            same, different = np.float64(left_same[k]), np.float64(left_different[k])
            trial[k], chosen[k] = score_gini_sides(rule, node, of_column(sides, k), same, different)
    else:
        for k in range(chosen.shape[0]):
            same, different = np.float64(left_same[k]), np.float64(left_different[k])
            trial[k], chosen[k] = score_other_sides(rule, node, of_column(sides, k), same, different)


@kernel
def fraction(node, d, t, n):
    """Return numerator and denominator of the decrease of the Gini impurity, times twice the total; -1 if a child is small."""
    u = d * node.total - node.balance * t
    is_allowed = (n >= node.min_left) & (n <= node.max_left)
    return u * u if is_allowed else -1.0, t * (node.total - t) if is_allowed else 1.0


@kernel
def other_decrease(criterion, node, d, t, n):
    """Return the decrease of another impurity than Gini; -1 if a child is small."""
    if n < node.min_left or n > node.max_left:
        return -1.0
    left = impurity(criterion, 0.5 * (t + d), 0.5 * (t - d))
    right = impurity(criterion, 0.5 * (node.total - t + node.balance - d), 0.5 * (node.total - t - node.balance + d))
    return node.impurity - left - right


@kernel
def impurity(criterion, a, b):
    """Return the impurity of weights: their entropy, or the lesser of them (AUC)."""
    return min(a, b) if criterion == AUC else entropy(a, b)


@kernel
def search_state_histogram(histogram, rule, node_same, node_different, n_columns, best):
    """Return the best column (``best`` holds its code and sides) as `search_histogram` does."""
    n = rule.one_code
    node = node_of(rule, node_same, node_different)
    sides = lay_sides(rule, histogram[n, :n_columns], histogram[n + 1, :n_columns])
    # Of each cut after a code that occurs: the code, the counts of the values up to it, its decrease and its sides.
    cuts, left_same, left_different = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    trial, chosen = np.empty(n), np.empty(n)
    for k in range(n_columns):
        n_found, left = np.uint64(0), np.int64(0)
        for code in range(n):
            own = histogram[code, k]
            left += own
            cuts[n_found], left_same[n_found], left_different[n_found] = code, left >> 32, left & LOW_HALF
            n_found += np.uint64(own != 0)
        # Without values, the last code remains, and there are states to separate.
        n_cuts = max(np.int64(n_found), 1)
        score_cuts(rule, node, of_column(sides, k), left_same, left_different, n_cuts, trial, chosen)
        at = first_largest(trial, n_cuts)
        best.score[k] = trial[at] - to_pay(node, of_column(sides, k))
        best.code[k], best.states[k] = cuts[at], np.int64(chosen[at])
    return winner(best, n_columns)


@kernel
def search_state_few(codes, same, rows, columns, rule, node_same, node_different, few, best):
    """Return the best column (``best`` holds its code and sides) as `search_few` does; ``few.counts`` keep the counts."""
    count_few(codes, same, rows, columns, few)
    return search_state_histogram(few.counts.T, rule, node_same, node_different, columns.shape[0], best)


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
    node, sides = node_of(rule, node_same, node_different), lay_sides(rule, one, both)
    chosen = np.empty(n_columns)
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
        score_columns(rule, node, sides, left_same, left_different, best.trial, chosen)
        for k in range(n_columns):
            code = np.int64(cut[k])
            better = (best.trial[k] > best.score[k]) | ((best.trial[k] == best.score[k]) & (code < best.code[k]))
            best.score[k] = best.trial[k] if better else best.score[k]
            best.code[k] = code if better else best.code[k]
            best.states[k] = np.int64(chosen[k]) if better else best.states[k]
    for k in range(n_columns):
        best.score[k] -= to_pay(node, of_column(sides, k))
    return winner(best, n_columns)


@kernel
def search_state_sorted(codes, same, rows, columns, rule, node_same, node_different, best):
    """Return the best column (``best`` holds its code and sides) as `search_sorted` does."""
    n_rows = rows.shape[0]
    keys = np.empty(n_rows, np.int64)
    one, both = np.empty(1, np.int64), np.empty(1, np.int64)
    node = node_of(rule, node_same, node_different)
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
            n_different = np.float64(min(r + 1, n_values) - n_same)
            trial, choice = score_sides(rule, node, of_column(sides, 0), np.float64(n_same), n_different)
            if trial > score:
                score, chosen, states = trial, code, np.int64(choice)
        best.score[k], best.code[k], best.states[k] = score - to_pay(node, of_column(sides, 0)), chosen, states
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
