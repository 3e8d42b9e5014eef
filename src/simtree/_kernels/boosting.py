"""Growth of one tree of gradient boosting from codes of coordinates: leaf by leaf, from histograms of gradients.

Gradient and Hessian of a pair are quantised and packed into one integer, the gradient in the upper half, so that one addition
updates both sums, and sums do not depend on their order. A cell is a slice of ``rows``, and splitting it reorders the slice.
Each time the leaf with the largest gain is split: the histogram of the smaller child is counted, and that of the larger child
is the histogram of the parent minus that of the smaller child. Codes are read eight at a time, so that rows of codes, and
columns of histograms, are padded to a multiple of eight.
"""

import math
from typing import NamedTuple

import numpy as np

from simtree._kernels.boosting_search import HALF, LOW_HALF, bounded_value, left_sum, search, search_counted
from simtree._kernels.cart import split_rows
from simtree._kernels.compilation import kernel
from simtree._kernels.missing import code_goes_left, codes_left, settle_counted_states, split_state_rows

# Codes that are read as one integer; and entries of the histogram of a column, constant so that offsets are cheap.
WORD, N_CODES = 8, 256
# Rows whose codes are gathered before any is counted, so that the processor waits for many of them at once; and words that are
# counted for all of these rows before the next words. With more of them, additions to the code of a state, which many rows
# have, take three times as long: the processor expects the additions of neighbouring rows to go to different places.
GATHERED, COUNTED_WORDS = 1024, 2
NOT_GROWN = -1
CODE_MASK = np.uint64(255)
# Where the histogram of a column of a word begins, and the bits of its code.
COLUMN_STEP = tuple(np.uint64(k * N_CODES) for k in range(WORD + 1))
BITS = tuple(np.uint64(8 * k) for k in range(WORD))


class Growing(NamedTuple):
    """Cells of a growing tree: at most 2 * max_leaves - 1 entries each; ``size`` has the number of cells and of leaves."""

    start: np.ndarray
    stop: np.ndarray
    depth: np.ndarray
    total: np.ndarray
    """Packed sums of the cell, and those of the pairs that its best split sends to the first child."""
    left_total: np.ndarray
    low: np.ndarray
    high: np.ndarray
    gain: np.ndarray
    """Gain of the best split of a leaf, at most 0 if there is none; gain of the split that was made."""
    column: np.ndarray
    code: np.ndarray
    child: np.ndarray
    """First child (codes up to ``code``), followed by the second one; -1 for a leaf."""
    slot: np.ndarray
    size: np.ndarray
    states: np.ndarray
    """Where the split sends missing values, see `missing`."""


class Found(NamedTuple):
    """Best split of each column, for two cells that are searched together."""

    gain: np.ndarray
    code: np.ndarray
    states: np.ndarray


@kernel
def padded(n_columns):
    """Return the number of columns of codes and histograms that kernels need, which read several of them at a time."""
    return -(-n_columns // WORD) * WORD


@kernel
def new_cells(max_leaves, n_rows, total, max_step):
    """Return the cells of a tree that has only its root so far; ``max_step`` bounds the values of leaves."""
    n = 2 * max_leaves - 1
    integers = np.zeros((9, n), np.int64)
    start, stop, depth, totals, left_total = integers[0], integers[1], integers[2], integers[3], integers[4]
    column, code, slot, states = integers[5], integers[6], integers[7], integers[8]
    stop[0], totals[0] = n_rows, total
    low, high, gain = np.full(n, -max_step), np.full(n, max_step), np.zeros(n)
    child, size = np.full(n, -1, np.int64), np.ones(2, np.int64)
    return Growing(start, stop, depth, totals, left_total, low, high, gain, column, code, child, slot, size, states)


@kernel
def fill_gradients(scores, same, weights, gradients, hessians):
    """Fill gradients and Hessians of the weighted logistic loss at the scores."""
    for p in range(scores.shape[0]):
        e = math.exp(-abs(scores[p]))
        small = e / (1.0 + e)
        share = small if scores[p] < 0.0 else 1.0 - small
        gradients[p] = weights[p] * (-(small if scores[p] >= 0.0 else 1.0 - small) if same[p] else share)
        hessians[p] = weights[p] * small * (1.0 - small)


@kernel
def fill_packed(gradients, hessians, gradient_unit, hessian_unit, packed):
    """Fill ``packed`` with the gradients and Hessians as multiples of their units, rounded.

    A Hessian is at least one unit, so that a sum is zero only if it has no pair.
    """
    for p in range(packed.shape[0]):
        hessian = max(np.int64(1), np.int64(np.rint(hessians[p] / hessian_unit)))
        packed[p] = (np.int64(np.rint(gradients[p] / gradient_unit)) << HALF) + hessian


@kernel
def add_codes(codes, packed, rows, columns, begin, end, histogram):
    """Fill ``histogram[k, code]`` with the packed sum of the rows that have this code in column ``columns[k]``, for some k.

    ``begin`` is a multiple of eight. The padding of the last columns is overwritten.
    """
    n_words = (end - begin + WORD - 1) // WORD
    histogram[begin : begin + n_words * WORD] = 0
    in_place = True  # the columns are next to each other in the codes
    for k in range(begin, end):
        in_place &= columns[k] == k
    size = min(GATHERED, rows.shape[0])
    words, added = np.zeros((size, n_words), np.uint64), np.empty(size, np.int64)
    for start in range(0, rows.shape[0], GATHERED):
        n = min(GATHERED, rows.shape[0] - start)
        for r in range(n):
            added[r] = packed[rows[start + r]]
        if in_place:
            gather_words(codes, rows[start : start + n], begin // WORD, words)
        else:
            gather_codes(codes, rows[start : start + n], columns[begin:end], words)
        for word in range(0, n_words, COUNTED_WORDS):
            add_words(words[:n], added, word, min(word + COUNTED_WORDS, n_words), begin // WORD, histogram.ravel())


@kernel
def gather_words(codes, rows, first, words):
    """Fill ``words[r]`` with the codes of a row, from the word ``first`` on."""
    all_words, n = codes.view(np.uint64), words.shape[1]
    for r in range(rows.shape[0]):
        found, to = all_words[rows[r], first : first + n], words[r]
        for word in range(n):
            to[word] = found[word]


@kernel
def gather_codes(codes, rows, columns, words):
    """Fill the bytes of ``words[r]`` with the codes of a row in some columns."""
    to = words.view(np.uint8)
    for r in range(rows.shape[0]):
        found = codes[rows[r]]
        for k in range(columns.shape[0]):
            to[r, k] = found[columns[k]]


@kernel
def add_words(words, added, begin, end, first, flat):
    """Add the packed sums ``added`` of rows to a flat histogram, for some of the words with their codes.

    Word 0 holds the codes of the columns from ``first`` words on. Indices are unsigned, so that they are not checked for
    negative numbers.
    """
    for r in range(words.shape[0]):
        value = added[r]
        for word in range(begin, end):
            codes, at = words[r, word], np.uint64(first + word) * COLUMN_STEP[WORD]
            flat[at + (codes & CODE_MASK)] += value
            flat[at + COLUMN_STEP[1] + ((codes >> BITS[1]) & CODE_MASK)] += value
            flat[at + COLUMN_STEP[2] + ((codes >> BITS[2]) & CODE_MASK)] += value
            flat[at + COLUMN_STEP[3] + ((codes >> BITS[3]) & CODE_MASK)] += value
            flat[at + COLUMN_STEP[4] + ((codes >> BITS[4]) & CODE_MASK)] += value
            flat[at + COLUMN_STEP[5] + ((codes >> BITS[5]) & CODE_MASK)] += value
            flat[at + COLUMN_STEP[6] + ((codes >> BITS[6]) & CODE_MASK)] += value
            flat[at + COLUMN_STEP[7] + (codes >> BITS[7])] += value


@kernel
def settle(codes, rows, columns, directions, rule, histogram, cells, cell, gains, cuts, states):
    """Set the best split of a cell from the best split of each column, and check that its children are large enough.

    Histograms do not count rows. So rows are counted for the best column only, unless the sums of the Hessians show that there
    are enough; if a child is too small, in rows or in Hessians, the column is searched again for children that are not, and the
    best of all columns is taken anew.
    """
    node = rows[cells.start[cell] : cells.stop[cell]]
    low, high, total = cells.low[cell], cells.high[cell], cells.total[cell]
    counted = np.zeros(columns.shape[0], np.bool_)
    cells.gain[cell] = 0.0
    while True:
        k = np.argmax(gains)
        if gains[k] <= rule.min_gain:
            return
        if counted[k] or (rule.min_leaf <= 1 and rule.min_hessian == 0):
            break
        left = left_sum(histogram[k], cuts[k], states[k], rule) & LOW_HALF
        less = min(left, (total & LOW_HALF) - left)
        if less >= max(rule.min_leaf * rule.max_hessian, rule.min_hessian):
            break
        n_left = 0
        one_left, both_left = codes_left(states[k], rule.one_code) if rule.one_code > 0 else (-1, -1)
        for r in range(node.shape[0]):
            n_left += code_goes_left(np.int64(codes[node[r], columns[k]]), cuts[k], one_left, both_left)
        if less >= rule.min_hessian and min(n_left, node.shape[0] - n_left) >= rule.min_leaf:
            break
        gains[k], cuts[k], states[k] = search_counted(
            codes, node, columns[k], histogram, k, rule, total, low, high, directions[k]
        )
        counted[k] = True
    cells.gain[cell], cells.column[cell] = gains[k], k
    cells.left_total[cell] = left_sum(histogram[k], cuts[k], states[k], rule)
    # Neighbouring codes without rows give the same split: the middle of them is the fairest threshold.
    if rule.one_code > 0:
        cells.code[cell], cells.states[cell] = settle_counted_states(histogram[k], cuts[k], states[k], rule.one_code)
        return
    last = cuts[k] + 1
    while last < rule.n_bins - 1 and histogram[k, last] == 0:
        last += 1
    cells.code[cell], cells.states[cell] = (cuts[k] + last - 1) // 2, states[k]


@kernel
def can_split(cells, cell, rule):
    """Return whether a cell is large and shallow enough to be split."""
    return cells.stop[cell] - cells.start[cell] >= 2 * rule.min_leaf and cells.depth[cell] < rule.max_depth


@kernel
def split_cell(codes, rows, spare, columns, directions, rule, cells, cell):
    """Split a cell by its best split: reorder its rows and append its two children."""
    start, stop, k = cells.start[cell], cells.stop[cell], cells.column[cell]
    if rule.one_code > 0:
        arguments = (cells.code[cell], cells.states[cell], rule.one_code)
        middle = start + split_state_rows(codes, columns[k], *arguments, rows[start:stop], spare)
    else:
        middle = start + split_rows(codes, columns[k], cells.code[cell], rows[start:stop], spare)
    child = cells.size[0]
    cells.child[cell] = child
    for at in range(2):
        cells.start[child + at] = start if at == 0 else middle
        cells.stop[child + at] = middle if at == 0 else stop
        cells.depth[child + at] = cells.depth[cell] + 1
        cells.total[child + at] = cells.left_total[cell] if at == 0 else cells.total[cell] - cells.left_total[cell]
        cells.low[child + at], cells.high[child + at] = cells.low[cell], cells.high[cell]
        cells.gain[child + at] = 0.0
        cells.child[child + at] = -1
    if directions[k] != 0 and not (rule.one_code > 0 and cells.code[cell] == rule.one_code - 1):
        values = np.empty(2)
        for at in range(2):
            total = cells.total[child + at]
            h = np.float64(total & LOW_HALF) * rule.hessian_unit + rule.l2
            g = np.float64(total >> HALF) * rule.gradient_unit
            values[at] = bounded_value(g, h, cells.low[cell], cells.high[cell])
        middle_value = 0.5 * (values[0] + values[1])
        lower = child if directions[k] > 0 else child + 1
        cells.high[lower] = middle_value
        cells.low[2 * child + 1 - lower] = middle_value
    cells.size[0] += 2
    cells.size[1] += 1


@kernel
def expand_columns(codes, packed, rows, columns, begin, end, directions, rule, histograms, cells, cell, found):
    """Count and search the children of a cell (of a root without children, itself) for some columns; fill ``found``.

    Row 0 of ``found`` is for the smaller child (or the root), row 1 for the larger one.
    """
    if cells.child[cell] < 0:
        slot = histograms[cells.slot[cell]]
        add_codes(codes, packed, rows[cells.start[cell] : cells.stop[cell]], columns, begin, end, slot)
        low, high, total = cells.low[cell], cells.high[cell], cells.total[cell]
        search(slot, begin, end, rule, total, low, high, directions, found, 0)
        return
    smaller, larger = by_size(cells, cell)
    less, more = histograms[cells.slot[smaller]], histograms[cells.slot[larger]]
    add_codes(codes, packed, rows[cells.start[smaller] : cells.stop[smaller]], columns, begin, end, less)
    for k in range(begin, end):
        of_larger, of_smaller = more[k], less[k]
        for code in range(rule.n_bins):
            of_larger[code] -= of_smaller[code]
    for at in range(2):
        child = smaller if at == 0 else larger
        if can_split(cells, child, rule):
            histogram = less if at == 0 else more
            low, high, total = cells.low[child], cells.high[child], cells.total[child]
            search(histogram, begin, end, rule, total, low, high, directions, found, at)


@kernel
def by_size(cells, cell):
    """Return the smaller and the larger child of a cell."""
    child = cells.child[cell]
    if cells.stop[child] - cells.start[child] <= cells.stop[child + 1] - cells.start[child + 1]:
        return child, child + 1
    return child + 1, child


@kernel
def settle_children(codes, rows, columns, directions, rule, histograms, cells, cell, found):
    """Set the best splits of the children of a cell (of a root without children, its own) after `expand_columns`."""
    if cells.child[cell] < 0:
        by_column = (found.gain[0], found.code[0], found.states[0])
        settle(codes, rows, columns, directions, rule, histograms[cells.slot[cell]], cells, cell, *by_column)
        return
    smaller, larger = by_size(cells, cell)
    for at in range(2):
        child = smaller if at == 0 else larger
        if can_split(cells, child, rule):
            histogram = histograms[cells.slot[child]]
            by_column = (found.gain[at], found.code[at], found.states[at])
            settle(codes, rows, columns, directions, rule, histogram, cells, child, *by_column)


@kernel
def grow(codes, packed, rows, spare, columns, directions, rule, histograms, cells, found, max_updates):
    """Grow the tree; return NOT_GROWN, or a cell to be expanded in threads before this is called again.

    That is a cell whose children need more than ``max_updates`` updates of a histogram: `expand_columns` is to be called for
    parts of the columns, then `settle_children`. The root must have been expanded and settled.
    """
    n_columns = columns.shape[0]
    while cells.size[1] < rule.max_leaves:
        best = 0
        for cell in range(1, cells.size[0]):
            if cells.child[cell] < 0 and (cells.child[best] >= 0 or cells.gain[cell] > cells.gain[best]):
                best = cell
        if cells.child[best] >= 0 or cells.gain[best] <= rule.min_gain:
            return NOT_GROWN
        split_cell(codes, rows, spare, columns, directions, rule, cells, best)
        smaller, larger = by_size(cells, best)
        if cells.size[1] == rule.max_leaves or not can_split(cells, larger, rule):
            continue
        cells.slot[larger] = cells.slot[best]
        cells.slot[smaller] = cells.size[1] - 1
        if (cells.stop[smaller] - cells.start[smaller]) * n_columns > max_updates:
            return best
        expand_columns(codes, packed, rows, columns, 0, n_columns, directions, rule, histograms, cells, best, found)
        settle_children(codes, rows, columns, directions, rule, histograms, cells, best, found)
    return NOT_GROWN


@kernel
def sum_cells(rows, gradients, hessians, same, cells, sums, n_same):
    """Fill, for each cell, the exact sums of gradients and Hessians, ``sums[:, cell]``, and the number of same pairs."""
    for cell in range(cells.size[0] - 1, -1, -1):
        child = cells.child[cell]
        if child >= 0:
            sums[0, cell] = sums[0, child] + sums[0, child + 1]
            sums[1, cell] = sums[1, child] + sums[1, child + 1]
            n_same[cell] = n_same[child] + n_same[child + 1]
            continue
        g, h, n = 0.0, 0.0, 0
        for r in range(cells.start[cell], cells.stop[cell]):
            p = rows[r]
            g += gradients[p]
            h += hessians[p]
            n += same[p]
        sums[0, cell], sums[1, cell], n_same[cell] = g, h, n


@kernel
def add_cell_values(rows, cells, values, total):
    """Add to ``total`` the value of the leaf of each row."""
    for cell in range(cells.size[0]):
        if cells.child[cell] < 0:
            for r in range(cells.start[cell], cells.stop[cell]):
                total[rows[r]] += values[cell]
