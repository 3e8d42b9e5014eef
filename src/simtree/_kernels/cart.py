"""Growth of a classification tree inside one cell of a ranking tree; the union of its inside leaves is a region.

The pairs of a node are a slice of ``rows``; splitting a node reorders its slice:

    node    rows[start:stop]   [ 7 3 9 4 8 ]
    split   code <= cut        [ 7 9 | 3 4 8 ]      left slice, right slice, each in its original order

If values are missing, the codes of a coordinate include two for their states, see `missing`, and the search is that of
`missing_search`.

Nodes are visited depth first, the smaller child first. A node with many pairs has a histogram: that of the smaller child is
counted, and that of the larger child is the histogram of the parent minus that of the smaller child.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.missing import BOTH_SEEN, ONE_SEEN, settle_counted_states, settle_states, split_state_rows
from simtree._kernels.missing_search import (
    price_of,
    search_state_compare,
    search_state_few,
    search_state_histogram,
    search_state_sorted,
)
from simtree._kernels.search import (
    count_codes,
    new_best,
    new_few,
    search_compare,
    search_few,
    search_histogram,
    search_sorted,
)

INSIDE = -1
OUTSIDE = -2

# Up to this many pairs, comparing each pair with every other is faster than a histogram (must be below 256).
MAX_COMPARED = 64
# The same for a few columns that are drawn.
MAX_COMPARED_FEW = 20
# The same with missing values, where a histogram is searched at the codes that occur only.
MAX_COMPARED_STATES = 32


class RegionRows(NamedTuple):
    """Tests of a region: coordinate, largest code that goes to if_le, the two successors, impurity decrease, states."""

    coordinate: np.ndarray
    code: np.ndarray
    if_le: np.ndarray
    if_gt: np.ndarray
    decrease: np.ndarray
    states: np.ndarray


@kernel
def draw_columns(coordinates, uniforms, chosen):
    """Fill ``chosen`` with distinct coordinates drawn without replacement by means of ``uniforms``, in increasing order."""
    deck = coordinates.copy()
    n_chosen = chosen.shape[0]
    for k in range(n_chosen):
        at = k + np.int64(uniforms[k] * (deck.shape[0] - k))
        deck[k], deck[at] = deck[at], deck[k]
        chosen[k] = deck[k]
    chosen.sort()


@kernel
def split_rows(codes, column, code, rows, spare):
    """Move the rows with a code of at most ``code`` to the front, in stable order, and return their number."""
    left = 0
    right = 0
    for r in range(rows.shape[0]):
        p = rows[r]
        goes_left = np.int64(codes[p, column] <= code)
        # Both are written, because a branch would be mispredicted half of the time.
        rows[left] = p
        spare[right] = p
        left += goes_left
        right += 1 - goes_left
    rows[left:] = spare[:right]
    return left


@kernel
def middle_of_gap(codes, column, code, rows):
    """Return the midpoint of ``code`` and the next larger code among the rows; every code in this gap gives the same split."""
    following = np.int64(1) << 40
    for r in range(rows.shape[0]):
        value = np.int64(codes[rows[r], column])
        if value > code and value < following:
            following = value
    return (code + following - 1) // 2


@kernel
def grow_cart(codes, same, start, stop, coordinates, rule, max_depth, uniforms, histograms, counted, region, inside):
    """Grow the tree on pairs [start, stop), fill ``inside`` for each of them, and return the number of rows of ``region``.

    ``uniforms`` has one row per node that may be searched, used in turn; its width is the number of coordinates drawn per node
    (0: all coordinates are searched, and histograms are subtracted). ``histograms`` has max_depth slots, or none if the codes
    are too wide for histograms; drawn coordinates are counted apart, see `search_few`. ``counted`` tells whether slot 0
    already holds the histogram of all pairs.
    """
    n_pairs = stop - start
    subsample = uniforms.shape[1] > 0
    columns = coordinates.copy() if not subsample else np.empty(uniforms.shape[1], np.int64)
    n_columns = columns.shape[0]
    wide = histograms.shape[0] == 0
    best = new_best(n_columns)
    missing = rule.one_code > 0
    few_columns = subsample and not wide
    few = new_few(n_columns if few_columns else 0, histograms.shape[1] if few_columns else 0)
    max_compared = MAX_COMPARED_STATES if missing else MAX_COMPARED_FEW if few_columns else MAX_COMPARED
    rows = np.arange(start, stop).astype(np.int32)
    spare = np.empty(n_pairs, np.int32)

    # Stack of nodes to visit: slice, depth, histogram slot (or -1), and the row and side that lead to the node.
    stack = np.empty((max_depth + 2, 6), np.int64)
    stack[0] = (0, n_pairs, 0, 0 if counted else -1, -1, 0)
    height = 1
    n_rows = 0
    n_searched = 0
    while height > 0:
        height -= 1
        low = stack[height, 0]
        high = stack[height, 1]
        depth = stack[height, 2]
        slot = stack[height, 3]
        parent = stack[height, 4]
        side = stack[height, 5]
        node = rows[low:high]
        n_same = 0
        for r in range(node.shape[0]):
            n_same += same[node[r]]
        node_same = np.float64(n_same)
        node_different = np.float64(node.shape[0] - n_same)

        winner = -1
        if depth < max_depth and node.shape[0] >= 2 * rule.min_leaf and 0 < n_same < node.shape[0]:
            if subsample:
                draw_columns(coordinates, uniforms[n_searched], columns)
                n_searched += 1
            if node.shape[0] <= max_compared:
                if missing:
                    winner = search_state_compare(codes, same, node, columns, rule, node_same, node_different, best)
                else:
                    winner = search_compare(codes, same, node, columns, rule, node_same, node_different, best)
            elif few_columns:
                if missing:
                    winner = search_state_few(codes, same, node, columns, rule, node_same, node_different, few, best)
                else:
                    winner = search_few(codes, same, node, columns, rule, node_same, node_different, few, best)
            elif wide:
                if missing:
                    winner = search_state_sorted(codes, same, node, columns, rule, node_same, node_different, best)
                else:
                    winner = search_sorted(codes, same, node, columns, rule, node_same, node_different, best)
            else:
                if slot < 0:
                    slot = depth
                    count_codes(codes, same, node, columns, histograms[slot])
                if missing:
                    winner = search_state_histogram(histograms[slot], rule, node_same, node_different, n_columns, best)
                else:
                    winner = search_histogram(histograms[slot], rule, node_same, node_different, n_columns, best)
            if best.score[winner] <= 0.0:
                winner = -1

        if winner < 0:
            is_inside = rule.weight_same * node_same >= rule.weight_different * node_different
            for r in range(node.shape[0]):
                inside[node[r] - start] = is_inside
            at = INSIDE if is_inside else OUTSIDE
        else:
            at = n_rows
            column = columns[winner]
            code, states = best.code[winner], best.states[winner]
            if missing:
                if few_columns and node.shape[0] > max_compared:
                    code, states = settle_counted_states(few.counts[winner], code, states, rule.one_code)
                else:
                    code, states = settle_states(codes, column, code, states, rule.one_code, node)
                left = low + split_state_rows(codes, column, code, states, rule.one_code, node, spare)
            else:
                if few_columns and node.shape[0] > max_compared:
                    code = (code + few.following[winner] - 1) // 2  # as `middle_of_gap`
                else:
                    code = middle_of_gap(codes, column, code, node)
                left = low + split_rows(codes, column, code, node, spare)
            paid = price_of(rule, node_same, node_different) if states & (ONE_SEEN | BOTH_SEEN) else 0.0
            region.coordinate[at] = column
            region.code[at] = code
            region.decrease[at] = best.score[winner] + paid
            region.states[at] = states
            n_rows += 1
            left_smaller = left - low <= high - left
            # Count a histogram only for a child that will be searched with it.
            larger_slot = -1
            smaller_slot = -1
            larger_size = max(left - low, high - left)
            if slot >= 0 and not subsample and depth + 1 < max_depth and larger_size > max_compared:
                smaller = rows[low:left] if left_smaller else rows[left:high]
                smaller_slot = depth + 1
                count_codes(codes, same, smaller, columns, histograms[smaller_slot])
                histograms[slot] -= histograms[smaller_slot]
                larger_slot = slot
                if smaller.shape[0] <= max_compared:
                    smaller_slot = -1
            if left_smaller:
                stack[height] = (left, high, depth + 1, larger_slot, at, 1)
                stack[height + 1] = (low, left, depth + 1, smaller_slot, at, 0)
            else:
                stack[height] = (low, left, depth + 1, larger_slot, at, 0)
                stack[height + 1] = (left, high, depth + 1, smaller_slot, at, 1)
            height += 2
        if parent >= 0:
            if side == 0:
                region.if_le[parent] = at
            else:
                region.if_gt[parent] = at
    return drop_redundant_rows(region, n_rows)


@kernel
def drop_redundant_rows(region, n_rows):
    """Remove the rows whose two outcomes lead to the same exit, and return the number of rows left."""
    exit_of = np.zeros(n_rows, np.int64)  # the exit that all outcomes lead to, or 0
    for at in range(n_rows - 1, -1, -1):
        le = region.if_le[at]
        gt = region.if_gt[at]
        le = exit_of[le] if le >= 0 and exit_of[le] < 0 else le
        gt = exit_of[gt] if gt >= 0 and exit_of[gt] < 0 else gt
        region.if_le[at] = le
        region.if_gt[at] = gt
        if le < 0 and le == gt:
            exit_of[at] = le
    moved_to = np.empty(n_rows, np.int64)
    kept = 0
    for at in range(n_rows):
        if exit_of[at] == 0:
            moved_to[at] = kept
            region.coordinate[kept] = region.coordinate[at]
            region.code[kept] = region.code[at]
            region.decrease[kept] = region.decrease[at]
            region.states[kept] = region.states[at]
            region.if_le[kept] = region.if_le[at]
            region.if_gt[kept] = region.if_gt[at]
            kept += 1
    for at in range(kept):
        if region.if_le[at] >= 0:
            region.if_le[at] = moved_to[region.if_le[at]]
        if region.if_gt[at] >= 0:
            region.if_gt[at] = moved_to[region.if_gt[at]]
    return kept
