"""Search for the best cut of a node under a criterion: a column of the codes, and the largest code that goes left.

Four algorithms give the same result. `search_histogram` counts codes and scans the bins, for nodes with many pairs.
`search_few` counts those of a few columns alone, which are drawn anew for each node, and tries the codes that occur.
`search_compare` compares each pair with every other pair, all columns at once, for nodes with so few pairs that clearing and
scanning 255 bins would cost more. `search_sorted` sorts, for codes too wide for a histogram. Ties go to the lowest column, then
to the lowest code.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel

GINI = 0
ENTROPY = 1
AUC = 2

# Two counts packed into one integer: same pairs in the upper half, different pairs in the lower half.
ONE_SAME = 1 << 32
LOW_HALF = ONE_SAME - 1


class Rule(NamedTuple):
    """Criterion, minimum leaf size and weights of a search, constant over the nodes of one cell."""

    criterion: int
    min_leaf: int
    weight_same: float
    weight_different: float
    one_code: int = 0
    """Code of a feature that one sample lacks, after those of all values; 0 if no value is missing."""
    price: float = 0.0
    """What a test must gain if it chooses sides for missing values, see `missing_search.price_of`."""


class Best(NamedTuple):
    """Best cut of each column so far (workspace of a search)."""

    score: np.ndarray
    code: np.ndarray
    left_same: np.ndarray
    left_different: np.ndarray
    trial: np.ndarray
    states: np.ndarray
    """Sides of the states of missing values, only set by `missing_search`."""


class Few(NamedTuple):
    """Workspace of `search_few`."""

    counts: np.ndarray
    """Packed counts of each column and code, together in memory because they are few."""
    code: np.ndarray
    left: np.ndarray
    """Codes of one column that occur, and packed counts of the pairs up to them."""
    following: np.ndarray
    """Next code after that of the best cut of each column."""
    cuts: Best


@kernel
def new_best(n):
    """Return a workspace for n columns, or for n cuts of one column."""
    numbers = np.empty((4, n))
    return Best(numbers[0], np.empty(n, np.int64), numbers[1], numbers[2], numbers[3], np.zeros(n, np.int64))


@kernel
def new_few(n_columns, n_codes):
    """Return a workspace for so many columns, whose codes are less than ``n_codes``."""
    listed = np.zeros((2, n_codes + 1), np.int64)
    return Few(np.empty((n_columns, n_codes), np.int64), listed[0], listed[1], np.empty(n_columns, np.int64), new_best(n_codes))


@kernel
def entropy(a, b):
    """Return the entropy of the weights a and b, times their sum."""
    result = 0.0
    if a > 0.0:
        result -= a * np.log(a / (a + b))
    if b > 0.0:
        result -= b * np.log(b / (a + b))
    return result


@kernel
def score_trials(rule, node_same, node_different, best, n_columns):
    """Fill ``best.trial[c]`` with the impurity decrease if ``left_same[c]`` and ``left_different[c]`` pairs go left.

    It is -1 if a child would have fewer than ``rule.min_leaf`` pairs.

    With a, b the weights of the same and different pairs of a node, t = a + b and d = a - b, the weighted Gini impurity is
    t/2 - d^2/(2t), and a split into left and right lowers it by (d_left t - d t_left)^2 / (2 t t_left t_right).
    """
    ws = rule.weight_same
    wd = rule.weight_different
    total = ws * node_same + wd * node_different
    balance = ws * node_same - wd * node_different
    min_left = rule.min_leaf
    max_left = node_same + node_different - rule.min_leaf
    if rule.criterion == GINI:
        twice = 2.0 * total
        for c in range(n_columns):
            a = ws * best.left_same[c]
            b = wd * best.left_different[c]
            left = a + b
            u = (a - b) * total - balance * left
            n_left = best.left_same[c] + best.left_different[c]
            score = u * u / (twice * left * (total - left))
            best.trial[c] = score if (n_left >= min_left) & (n_left <= max_left) else -1.0
    elif rule.criterion == AUC:
        base = max(balance, 0.0)
        for c in range(n_columns):
            d = ws * best.left_same[c] - wd * best.left_different[c]
            n_left = best.left_same[c] + best.left_different[c]
            score = max(d, 0.0) + max(balance - d, 0.0) - base
            best.trial[c] = score if (n_left >= min_left) & (n_left <= max_left) else -1.0
    else:
        base = entropy(ws * node_same, wd * node_different)
        for c in range(n_columns):
            n_left = best.left_same[c] + best.left_different[c]
            best.trial[c] = -1.0
            if n_left >= min_left and n_left <= max_left:
                a = ws * best.left_same[c]
                b = wd * best.left_different[c]
                best.trial[c] = base - entropy(a, b) - entropy(ws * node_same - a, wd * node_different - b)


@kernel
def first_largest(scores, n):
    """Return the place of the largest of the first n scores, the first one on ties; any of them if none is positive.

    The bits of positive floats are in the order of the floats, and those of negative ones below. The largest of integers is
    found by a loop that vectorises; that of floats, which may be NaN, is not.
    """
    bits = scores.view(np.int64)
    top = bits[0]
    for i in range(1, n):
        top = max(top, bits[i])
    at = 0
    while bits[at] != top:
        at += 1
    return at


@kernel
def winner(best, n_columns):
    """Return the column with the highest score, the lowest one on ties."""
    at = 0
    for c in range(1, n_columns):
        if best.score[c] > best.score[at]:
            at = c
    return at


@kernel
def count_codes(codes, same, rows, columns, histogram):
    """Fill ``histogram[code, k]`` with the packed counts of the rows that have this code in column ``columns[k]``."""
    n_columns = columns.shape[0]
    histogram[:, :n_columns] = 0
    every_column = n_columns == codes.shape[1]
    for r in range(rows.shape[0]):
        p = rows[r]
        one = ONE_SAME if same[p] else 1
        if every_column:  # avoids the lookup of the column number
            for k in range(n_columns):
                histogram[codes[p, k], k] += one
        else:
            for k in range(n_columns):
                histogram[codes[p, columns[k]], k] += one


@kernel
def count_segment(codes, same, start, stop, columns, histogram):
    """Fill ``histogram`` as `count_codes` does, for rows start to stop."""
    count_codes(codes, same, np.arange(start, stop), columns, histogram)


@kernel
def search_histogram(histogram, rule, node_same, node_different, n_columns, best):
    """Return the best column (``best`` holds its code); all columns are scanned in step, so that the loops vectorise."""
    best.score[:n_columns] = -1.0
    counts = np.zeros(n_columns, np.int64)
    for code in range(histogram.shape[0] - 1):
        for c in range(n_columns):
            counts[c] += histogram[code, c]
            best.left_same[c] = counts[c] >> 32
            best.left_different[c] = counts[c] & LOW_HALF
        score_trials(rule, node_same, node_different, best, n_columns)
        for c in range(n_columns):
            better = best.trial[c] > best.score[c]
            best.score[c] = best.trial[c] if better else best.score[c]
            best.code[c] = code if better else best.code[c]
    return winner(best, n_columns)


@kernel
def count_few(codes, same, rows, columns, few):
    """Fill ``few.counts[k, code]`` with the packed counts of the rows that have this code in column ``columns[k]``."""
    few.counts[:] = 0
    for r in range(rows.shape[0]):
        p = np.uint64(rows[r])  # unsigned, so that indices are not checked for negative numbers
        one = ONE_SAME if same[p] else 1
        for k in range(columns.shape[0]):
            few.counts[k, np.uint64(codes[p, np.uint64(columns[k])])] += one


@kernel
def search_few(codes, same, rows, columns, rule, node_same, node_different, few, best):
    """Return the best column (``best`` holds its code, ``few.following`` the next code that occurs), for a few columns.

    Only codes that occur are tried: one that does not occur cuts as the one before it does.
    """
    count_few(codes, same, rows, columns, few)
    for k in range(columns.shape[0]):
        n_cuts = list_cuts(few, k)
        score_trials(rule, node_same, node_different, few.cuts, n_cuts)
        at = first_largest(few.cuts.trial, n_cuts)
        best.score[k] = few.cuts.trial[at] if n_cuts > 0 else -1.0
        best.code[k] = few.code[at]
        few.following[k] = few.code[at + 1]
    return winner(best, columns.shape[0])


@kernel
def list_cuts(few, k):
    """Fill ``few.code`` with the codes of a column that occur, and ``few.cuts`` with what is left of each but the last.

    Return the number of cuts, one less than that of the codes.
    """
    n_codes = 0
    total = 0
    for code in range(few.counts.shape[1]):  # without branches, which would be mispredicted
        count = few.counts[k, code]
        total += count
        few.code[n_codes] = code
        few.left[n_codes] = total
        n_codes += np.int64(count != 0)
    for cut in range(n_codes - 1):
        few.cuts.left_same[cut] = few.left[cut] >> 32
        few.cuts.left_different[cut] = few.left[cut] & LOW_HALF
    return n_codes - 1


@kernel
def search_compare(codes, same, rows, columns, rule, node_same, node_different, best):
    """Return the best column (``best`` holds its code), trying the code of each pair as the cut.

    ``block`` holds the codes of the rows, same pairs first, so that each inner loop adds one byte per column and one machine
    instruction compares dozens of columns. At most 255 rows are allowed, so that a count fits into a byte.
    """
    n_rows = rows.shape[0]
    n_columns = columns.shape[0]
    n_same = np.int64(node_same)
    block = np.empty((n_rows, n_columns), codes.dtype)
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
        for k in range(n_columns):
            block[at, k] = codes[p, columns[k]]
    left_same = np.empty(n_columns, np.uint8)
    left_different = np.empty(n_columns, np.uint8)
    best.score[:n_columns] = -1.0
    best.code[:n_columns] = 0
    for i in range(n_rows):
        left_same[:] = 0
        left_different[:] = 0
        for j in range(n_same):
            for k in range(n_columns):
                left_same[k] += np.uint8(block[j, k] <= block[i, k])
        for j in range(n_same, n_rows):
            for k in range(n_columns):
                left_different[k] += np.uint8(block[j, k] <= block[i, k])
        for k in range(n_columns):
            best.left_same[k] = left_same[k]
            best.left_different[k] = left_different[k]
        score_trials(rule, node_same, node_different, best, n_columns)
        for k in range(n_columns):
            code = np.int64(block[i, k])
            better = (best.trial[k] > best.score[k]) | ((best.trial[k] == best.score[k]) & (code < best.code[k]))
            best.score[k] = best.trial[k] if better else best.score[k]
            best.code[k] = code if better else best.code[k]
    return winner(best, n_columns)


@kernel
def search_sorted(codes, same, rows, columns, rule, node_same, node_different, best):
    """Return the best column (``best`` holds its code), for codes of any width."""
    n_rows = rows.shape[0]
    keys = np.empty(n_rows, np.int64)
    for k in range(columns.shape[0]):
        for r in range(n_rows):
            keys[r] = 2 * np.int64(codes[rows[r], columns[k]]) + np.int64(same[rows[r]])
        keys.sort()
        score = -1.0
        chosen = 0
        n_same = 0
        for r in range(n_rows - 1):
            n_same += keys[r] & 1
            code = keys[r] >> 1
            if keys[r + 1] >> 1 == code:
                continue
            best.left_same[0] = n_same
            best.left_different[0] = r + 1 - n_same
            score_trials(rule, node_same, node_different, best, 1)
            if best.trial[0] > score:
                score = best.trial[0]
                chosen = code
        best.score[k] = score
        best.code[k] = chosen
    return winner(best, columns.shape[0])
