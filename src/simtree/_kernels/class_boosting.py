"""One round of gradient boosting of classes: a tree per class, grown as in `boosting` on the gradients of the logistic loss.

The probabilities of the classes are the softmax of their scores. All trees of a round are grown on the gradients at the scores
before it. Rows are samples instead of pairs, and no value is missing. Of two classes only the second has a score.
"""

import math

import numpy as np

from simtree._kernels.boosting import can_split, expand_columns, fill_packed, grow, new_cells, settle_children
from simtree._kernels.boosting_search import HALF, LOW_HALF, MAX_SUM, MIN_SUM, Rule, bounded_value
from simtree._kernels.compilation import kernel

# A split that decreases the mean loss of all rows by less than this is not made: it may be rounding.
MIN_GAIN = 1e-10
# Smallest sum of Hessians of a leaf: where the classes are almost sure, a Newton step would be arbitrarily long without l2.
MIN_HESSIAN = 1e-3
# No cell is expanded in threads.
ALL_UPDATES = np.iinfo(np.int64).max


@kernel
def fill_probabilities(scores, probabilities):
    """Fill ``probabilities[:, p]`` with the softmax of ``scores[:, p]`` for each row p."""
    n_classes, n = scores.shape
    largest, total = scores[0].copy(), np.zeros(n)
    for c in range(1, n_classes):
        for p in range(n):
            largest[p] = max(largest[p], scores[c, p])
    for c in range(n_classes):
        for p in range(n):
            probabilities[c, p] = math.exp(scores[c, p] - largest[p])
            total[p] += probabilities[c, p]
    for c in range(n_classes):
        for p in range(n):
            probabilities[c, p] /= total[p]


@kernel
def pack_gradients(probabilities, targets, c, packed):
    """Fill ``packed`` with the gradients and Hessians of the score of class c; return their units and the largest Hessian."""
    n = packed.shape[0]
    gradients, hessians = np.empty(n), np.empty(n)
    sum_g, sum_h, largest = 0.0, 0.0, 0.0
    for p in range(n):
        gradients[p] = probabilities[p] - (1.0 if targets[p] == c else 0.0)
        hessians[p] = probabilities[p] * (1.0 - probabilities[p])
        sum_g += abs(gradients[p])
        sum_h += hessians[p]
        largest = max(largest, hessians[p])
    unit_g, unit_h = max(sum_g, MIN_SUM) / MAX_SUM, max(sum_h, MIN_SUM) / MAX_SUM
    fill_packed(gradients, hessians, unit_g, unit_h, packed)
    return unit_g, unit_h, np.int64(np.rint(largest / unit_h)) + 1


@kernel
def grow_tree(codes, packed, rows, spare, columns, directions, rule, histograms, found):
    """Return the cells of a tree, and reorder the rows by leaf."""
    total = np.int64(0)
    for p in range(packed.shape[0]):
        total += packed[p]
    cells = new_cells(rule.max_leaves, rows.shape[0], total, np.inf)
    if can_split(cells, 0, rule) and (total & LOW_HALF) >= 2 * rule.min_hessian:
        expand_columns(codes, packed, rows, columns, 0, columns.shape[0], directions, rule, histograms, cells, 0, found)
        settle_children(codes, rows, columns, directions, rule, histograms, cells, 0, found)
        grow(codes, packed, rows, spare, columns, directions, rule, histograms, cells, found, ALL_UPDATES)
    return cells


@kernel
def append_tree(rows, cells, rule, learning_rate, c, scores, trees, n_tests, n_leaves):
    """Append a tree of class c to the table, and add its values to the scores of the rows.

    Return the numbers of tests and leaves of the table, and where the tree starts. Thresholds are codes. A tree without a test
    adds nothing.
    """
    n_cells = cells.size[0]
    number = np.empty(n_cells, np.int32)
    for cell in range(n_cells):
        if cells.child[cell] >= 0:
            number[cell] = n_tests
            n_tests += 1
            continue
        number[cell] = -1 - n_leaves
        value = 0.0
        if n_cells > 1:
            total = cells.total[cell]
            g, h = np.float64(total >> HALF) * rule.gradient_unit, np.float64(total & LOW_HALF) * rule.hessian_unit
            value = learning_rate * bounded_value(g, h + rule.l2, cells.low[cell], cells.high[cell])
        trees.leaf_class[n_leaves], trees.leaf_share[n_leaves] = c, value
        n_leaves += 1
        for r in range(cells.start[cell], cells.stop[cell]):
            scores[rows[r]] += value
    for cell in range(n_cells):
        if cells.child[cell] >= 0:
            at, child = number[cell], cells.child[cell]
            trees.feature[at], trees.threshold[at] = cells.column[cell], cells.code[cell]
            trees.if_le[at], trees.if_gt[at] = number[child], number[child + 1]
    return n_tests, n_leaves, number[0]


@kernel
def boost_round(codes, targets, scores, first_class, n_bins, l2, learning_rate, min_leaf, max_leaves, histograms, found, trees):
    """Fill a table with one tree per class from ``first_class`` on, and add their values to ``scores[class, row]``.

    Return the numbers of tests and leaves; the table has room for those of trees with ``max_leaves`` leaves.
    """
    n_classes, n = scores.shape
    columns = np.arange(found.gain.shape[1])
    directions = np.zeros(columns.shape[0], np.int64)
    probabilities, packed = np.empty((n_classes, n)), np.empty(n, np.int64)
    rows, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    fill_probabilities(scores, probabilities)
    n_tests, n_leaves = 0, 0
    for c in range(first_class, n_classes):
        unit_g, unit_h, max_hessian = pack_gradients(probabilities[c], targets, c, packed)
        min_hessian = np.int64(math.ceil(min(MIN_HESSIAN / unit_h, 1.0 * MAX_SUM)))
        limits = (min_leaf, max_leaves, max_leaves, MIN_GAIN * n, 0, min_hessian)
        rule = Rule(unit_g, unit_h, max_hessian, n_bins, l2, *limits)
        for p in range(n):
            rows[p] = p
        cells = grow_tree(codes, packed, rows, spare, columns, directions, rule, histograms, found)
        n_tests, n_leaves, root = append_tree(rows, cells, rule, learning_rate, c, scores[c], trees, n_tests, n_leaves)
        trees.root[c - first_class] = root
    return n_tests, n_leaves
