"""Exact search for the rows of a gallery with the highest scores, without evaluating every test for every row.

The score of a query and a row is the mean of one cell value per tree. After a few tests of a tree, the largest value that a row
can still reach in that tree is known. A row is dropped when the sum of these bounds over the trees is below the score that is
needed. The bounds are tightened in three steps, each of which sees fewer rows:

1. **A few tests per tree**, the same for all rows of a block. With the query fixed, |x - q| <= t, x + q <= t and so on all mean
   "x lies in an interval". So a row is stored as one byte per feature (its code on a grid), and a test as a range of codes. If
   the code does not decide a test, both outcomes remain possible. Values are bytes as well (levels, rounded up), so that one
   instruction compares 32 or more rows. The tests are evaluated from the last to the first:

       levels of test r = maximum of (levels of if_le[r] where x may be inside, levels of if_gt[r] where x may be outside)

2. **More tests per tree**, in the same way, once enough rows of several blocks have passed the first step.
3. **The walk down each tree**, on the values themselves. Its result is the score itself, summed tree by tree.

Which tests belong to which step is decided from their outcomes on some of the pairs. A bound is never too low, so no row is
lost, and the result equals that of scoring all rows.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import (
    ABS_DIFF,
    COSINE,
    DOT,
    MAX,
    MAX_FLOAT,
    MIN,
    PRODUCT,
    SUM,
    dot,
    fill_sums,
    pair_value,
    pairwise_of_sum,
    pairwise_value,
)
from simtree._kernels.route import Nodes, walk

# Rows per block: a column of codes and the levels of the tests in use stay in cache.
WIDTH = 4096
# Distance between columns, larger than WIDTH to avoid cache-set conflicts.
STRIDE = WIDTH + 64
# Loops over rows process a multiple of this: the results of rows behind the last one are ignored.
VECTOR = 128
# The highest level: values of cells are rounded up to levels 0 to TOP, which fit into a byte.
TOP = 255
# The highest code; no row has the next one, so a range of NO_CODE alone is an empty range of codes.
LAST_CODE, NO_CODE = 254, 255
# Fewer rows than this skip the later steps on codes, which cost the same for one row as for a hundred.
MIN_CODED_ROWS = 64
# Rows that are walked down the trees together, one tree after another.
WALK_BATCH = 64
# Minimum number of rows near the query that are scored first (or twice the number of results, if larger).
MIN_GUESSES = 100
# Once at most this many rows of a block are left, they wait for those of other blocks.
FEW_LEFT = WIDTH // 8


class Grid(NamedTuple):
    """Linear map of values to codes, per column: (x - low) * scale, clipped to 0 to LAST_CODE.

    The columns of the samples are followed by the pairwise coordinates, whose codes depend on the row and the query.
    """

    low: np.ndarray
    scale: np.ndarray


class FirstTests(NamedTuple):
    """The first tests of each tree, for each step; ``feature`` is a column of codes.

    Those of tree t in step s are start[s, t] to start[s, t + 1]; the first one is the root. ``slot[r]`` is the slot that the
    levels of test r are written to, and ``if_le[r]`` and ``if_gt[r]`` are the slots of the levels of its successors. Slot v,
    from 0 to TOP, holds the constant level v.
    """

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    if_le: np.ndarray
    if_gt: np.ndarray
    slot: np.ndarray
    start: np.ndarray


class Trees(NamedTuple):
    """All tests of all trees in one table, the row at which each tree starts (an exit if negative), and the values of exits.

    ``pairwise_kinds`` are the pairwise coordinates, over the first ``n_features`` columns of the samples.
    """

    nodes: Nodes
    root: np.ndarray
    values: np.ndarray
    pairwise_kinds: np.ndarray
    n_features: int


class Levels(NamedTuple):
    """A cell of tree t at level v has a value of at most base[t] + v * step; ``margin`` exceeds all rounding errors."""

    base: np.ndarray
    step: float
    margin: float


class Rows(NamedTuple):
    """Some rows of a gallery: codes per feature, levels per tree, the sum of the levels, and row numbers."""

    codes: np.ndarray
    levels: np.ndarray
    bound: np.ndarray
    row: np.ndarray


@kernel
def fill_pairwise_of(a, b, trees, pairwise):
    """Fill ``pairwise`` with the pairwise coordinates of rows a and b."""
    for k in range(trees.pairwise_kinds.shape[0]):
        pairwise[k] = pairwise_value(trees.pairwise_kinds[k], a, b, trees.n_features)


# Preparation -----------------------------------------------------------------------------------------


@kernel
def fill_reachable(nodes, values, best):
    """Fill ``best[r]`` with the largest value that can be reached from row r of the table."""
    for r in range(nodes.kind.shape[0] - 1, -1, -1):
        le, gt = nodes.if_le[r], nodes.if_gt[r]
        best[r] = max(best[le] if le >= 0 else values[-1 - le], best[gt] if gt >= 0 else values[-1 - gt])


@kernel
def count_answers(queries, gallery, first, second, trees, n_le, n_gt):
    """Add to ``n_le[r]`` and ``n_gt[r]`` the number of pairs that go from test r to each of its two successors."""
    nodes = trees.nodes
    pairwise = np.empty(trees.pairwise_kinds.shape[0])
    for p in range(first.shape[0]):
        a, b = queries[first[p]], gallery[second[p]]
        fill_pairwise_of(a, b, trees, pairwise)
        for root in trees.root:
            at = root
            while at >= 0:
                if pair_value(nodes.kind[at], nodes.feature[at], a, b, pairwise) <= nodes.threshold[at]:
                    n_le[at] += 1
                    at = nodes.if_le[at]
                else:
                    n_gt[at] += 1
                    at = nodes.if_gt[at]


@kernel
def choose_tests(trees, reachable, n_le, n_gt, price, asked):
    """Fill ``asked`` with whether a test, and every test on the way to it, is worth its price.

    From the last test to the first, the mean bound of the pairs that reach a test is the lower of two values: the largest value
    that can be reached from it, and the mean bound of its successors plus the price of the test divided among these pairs.
    """
    nodes, values = trees.nodes, trees.values
    bound = reachable.copy()
    for r in range(bound.shape[0] - 1, -1, -1):
        le, gt, n = nodes.if_le[r], nodes.if_gt[r], n_le[r] + n_gt[r]
        total = n_le[r] * (bound[le] if le >= 0 else values[-1 - le]) + n_gt[r] * (bound[gt] if gt >= 0 else values[-1 - gt])
        asked[r] = total + price < n * bound[r]
        if asked[r]:
            bound[r] = (total + price) / n
    led_to = np.zeros(asked.shape[0], dtype=np.bool_)
    for root in trees.root:
        if root >= 0:
            led_to[root] = True
    for r in range(asked.shape[0]):
        asked[r] = asked[r] and led_to[r]
        for s in (nodes.if_le[r], nodes.if_gt[r]):
            if asked[r] and s >= 0:
                led_to[s] = True


@kernel
def assign_slots(start, if_le, if_gt, slot):
    """Assign slots to the tests of each tree, reusing a slot once all tests that read its levels have done so.

    On input, ``if_le`` and ``if_gt`` hold a later test, or -1 - level; they are replaced by slots. Fill ``slot``, too, and
    return the number of slots.
    """
    readers, free = np.zeros(slot.shape[0], dtype=np.int32), np.empty(slot.shape[0], dtype=np.int32)
    for successors in (if_le, if_gt):
        for s in successors:
            if s >= 0:
                readers[s] += 1
    max_slots = TOP + 1
    for tree in range(start.shape[0] - 1):
        n_free, n_slots = 0, TOP + 1
        for r in range(start[tree + 1] - 1, start[tree] - 1, -1):
            # Taken before the slots of the successors are released: a loop that writes where it reads is slow.
            if n_free > 0:
                n_free -= 1
                slot[r] = free[n_free]
            else:
                slot[r] = n_slots
                n_slots += 1
            for successors in (if_le, if_gt):
                s = successors[r]
                successors[r] = slot[s] if s >= 0 else -1 - s
                if s >= 0:
                    readers[s] -= 1
                    if readers[s] == 0:
                        free[n_free] = slot[s]
                        n_free += 1
        max_slots = max(max_slots, n_slots)
    return max_slots


# Codes -----------------------------------------------------------------------------------------------


@kernel
def code_of(x, low, scale):
    """Return the code of a value; despite rounding it never decreases in x, so that a range of x is a range of codes."""
    at = (x - low) * scale
    at = at if at > 0.0 else 0.0
    return np.uint8(at if at < LAST_CODE else LAST_CODE)


@kernel
def fill_codes(X, start, stop, grid, codes):
    """Fill ``codes[f, i]`` with the code of feature f of row start + i of X."""
    of_row = np.empty(X.shape[1], dtype=np.uint8)
    for i in range(start, stop):
        for f in range(X.shape[1]):
            of_row[f] = code_of(np.float64(X[i, f]), grid.low[f], grid.scale[f])
        for f in range(X.shape[1]):
            codes[f, i - start] = of_row[f]


@kernel
def fill_pairwise_codes(query, X, start, stop, grid, trees, sums, codes):
    """Fill the last rows of ``codes`` with the codes of the pairwise coordinates of the query and rows start to stop of X.

    Sums are computed in the fastest order. Where the resulting rounding error might change the code, the exact value, as the
    trees use it, is computed instead. ``sums`` is workspace.
    """
    n = trees.n_features
    n_columns = codes.shape[0] - trees.pairwise_kinds.shape[0]
    fill_sums(query.astype(np.float64), X, start, stop, n, sums)
    length = np.sqrt(dot(query, query, n))
    for k in range(trees.pairwise_kinds.shape[0]):
        kind, column = trees.pairwise_kinds[k], codes[n_columns + k]
        low, scale = grid.low[n_columns + k], grid.scale[n_columns + k]
        of_kind, square = sums[DOT if kind == COSINE else kind], sums[COSINE]
        angular = kind in (DOT, COSINE)
        for i in range(stop - start):
            norms = length * np.sqrt(square[i])
            value = pairwise_of_sum(kind, of_kind[i], norms)
            # Away from overflow and underflow, the error is a small fraction of this.
            size = 1.0 if kind == COSINE else norms if kind == DOT else value
            known = (2.0**-400 < norms < 2.0**400) if angular else of_kind[i] < 2.0**800
            error = (n + 4) * 2.0**-50 * size + 2.0**-500
            below, above = code_of(value - error, low, scale), code_of(value + error, low, scale)
            column[i] = below if known and below == above else NO_CODE
        for i in range(stop - start):
            if column[i] == NO_CODE:
                column[i] = code_of(pairwise_value(kind, query, X[start + i], n), low, scale)


@kernel
def fill_ranges(query, tests, grid, ranges):
    """Fill ``ranges[r]`` with the first code, and the number of codes minus one, where test r may hold and where it must."""
    for r in range(tests.kind.shape[0]):
        kind, f, t = tests.kind[r], tests.feature[r], tests.threshold[r]
        low, scale = grid.low[f], grid.scale[f]
        q = np.float64(query[f]) if f < query.shape[0] else 0.0
        # Exceeds the rounding error of one subtraction here and one in the test.
        slack = 2.0**-48 * (abs(q) + abs(t))
        may_first, may_last, must_first, must_last = 0, -1, 0, -1
        if kind == ABS_DIFF:
            if t >= 0.0:
                may_first, may_last = int(code_of(q - t - slack, low, scale)), int(code_of(q + t + slack, low, scale))
                must_first = int(code_of(q - t + slack, low, scale)) + 1
                must_last = int(code_of(q + t - slack, low, scale)) - 1
        elif kind == SUM:
            may_last = int(code_of(t - q + slack, low, scale))
            must_last = int(code_of(t - q - slack, low, scale)) - 1
        elif kind == PRODUCT and q != 0.0 and t < MAX_FLOAT:
            # Exceeds the rounding error of the quotient here and of the product in the test, also near zero.
            slack = 2.0**-48 * abs(t / q) + 2.0**-1050 / abs(q)
            if q > 0.0:
                may_last = int(code_of(t / q + slack, low, scale))
                must_last = int(code_of(t / q - slack, low, scale)) - 1
            else:
                may_first, may_last = int(code_of(t / q - slack, low, scale)), LAST_CODE
                must_first, must_last = int(code_of(t / q + slack, low, scale)) + 1, LAST_CODE
        elif (kind == MIN and q <= t) or (kind == PRODUCT and t >= 0.0):
            may_last = must_last = LAST_CODE
        elif kind == PRODUCT or (kind == MAX and q > t):
            pass
        else:  # decided by the value of the row, or by the pairwise coordinate
            may_last = int(code_of(t, low, scale))
            must_last = may_last - 1
        ranges[r, 0] = may_first if may_first <= may_last else NO_CODE
        ranges[r, 1] = may_last - may_first if may_first <= may_last else 0
        ranges[r, 2] = must_first if must_first <= must_last else NO_CODE
        ranges[r, 3] = must_last - must_first if must_first <= must_last else 0


# Bounds ----------------------------------------------------------------------------------------------


@kernel
def fill_level(codes, of_le, of_gt, levels, may_first, may_more, must_first, must_more):
    """Fill ``levels`` with the highest levels that rows can reach from a test: those of its successors that remain possible.

    A function of its own, because the loop over rows of one table, that is read and written, is not vectorised.
    """
    for i in range(levels.shape[0]):
        code = codes[i]
        le, gt = of_le[i], of_gt[i]
        inside = le if np.uint8(code - may_first) <= may_more else np.uint8(0)
        outside = np.uint8(0) if np.uint8(code - must_first) <= must_more else gt
        levels[i] = inside if inside > outside else outside


@kernel
def fill_levels(codes, at, n, tests, step, tree, ranges, slots):
    """Compute the highest level that each of n rows, from position ``at``, can reach in a tree, and return the slot."""
    for r in range(tests.start[step, tree + 1] - 1, tests.start[step, tree] - 1, -1):
        of_le, of_gt, levels = slots[tests.if_le[r], :n], slots[tests.if_gt[r], :n], slots[tests.slot[r], :n]
        may_first, may_more, must_first, must_more = ranges[r, 0], ranges[r, 1], ranges[r, 2], ranges[r, 3]
        column = codes[tests.feature[r], at : at + n]
        fill_level(column, of_le, of_gt, levels, may_first, may_more, must_first, must_more)
    return tests.slot[tests.start[step, tree]]


@kernel
def move_rows(rows, at, n, need, to, place):
    """Copy those of n rows, from position ``at``, whose bound is at least ``need`` to ``place`` of ``to``; return the number.

    ``to`` may be the same rows if no row moves to a later position.
    """
    chosen = np.empty(n + 1, dtype=np.uint32)
    n_chosen = 0
    for i in range(at, at + n):
        chosen[n_chosen] = i
        n_chosen += 1 if rows.bound[i] >= need else 0
    for columns, moved in ((rows.codes, to.codes), (rows.levels, to.levels)):
        for c in range(columns.shape[0]):
            column, target = columns[c], moved[c, place : place + n_chosen]
            for i in range(n_chosen):
                target[i] = column[chosen[i]]
    for i in range(n_chosen):
        to.bound[place + i] = rows.bound[chosen[i]]
        to.row[place + i] = rows.row[chosen[i]]
    return n_chosen


@kernel
def drop_rows(rows, at, n, tests, step, ranges, need, few_left, slots, to, place, work):
    """Tighten the bounds of n rows, from position ``at``, tree by tree; copy those still at ``need`` to ``place`` of ``to``.

    Rows are copied whenever three quarters have been dropped, and at the end, which comes early if at most ``few_left`` are
    left. Return the number of rows left, and add the number of tests evaluated to ``work[0]``.
    """
    for tree in range(tests.start.shape[1] - 1):
        n_tests = tests.start[step, tree + 1] - tests.start[step, tree]
        if n_tests == 0:
            continue
        work[0] += n_tests * n
        sharper = slots[fill_levels(rows.codes, at, -(-n // VECTOR) * VECTOR, tests, step, tree, ranges, slots)]
        levels, bound = rows.levels[tree, at : at + n], rows.bound[at : at + n]
        n_left = 0
        for i in range(n):
            bound[i] -= np.int32(levels[i]) - np.int32(sharper[i])
            levels[i] = sharper[i]
            n_left += 1 if bound[i] >= need else 0
        if n_left <= few_left:
            break
        if 4 * n_left <= n:
            n = move_rows(rows, at, n, need, to, place)
            rows, at = to, place
    return move_rows(rows, at, n, need, to, place)


# Search ----------------------------------------------------------------------------------------------


@kernel
def min_bound(needed, n_trees, levels):
    """Return the minimum sum of levels with which a row may have the score that is needed."""
    units = (needed * n_trees - levels.margin - levels.base.sum()) / levels.step
    return np.int32(min(max(np.floor(units), 0.0), 2.0**31 - 1.0))


@kernel
def insert_best(score, row, scores, rows):
    """Insert a row among the best, by decreasing score and then by increasing row number, and drop the last one."""
    at = scores.shape[0]
    while at > 0 and (rows[at - 1] < 0 or scores[at - 1] < score or (scores[at - 1] == score and rows[at - 1] > row)):
        at -= 1
        if at + 1 < scores.shape[0]:
            scores[at + 1], rows[at + 1] = scores[at], rows[at]
    if at < scores.shape[0]:
        scores[at], rows[at] = score, row


@kernel
def fill_distances(codes, of_query, distance):
    """Fill ``distance[i]`` with the sum of absolute code differences over at most 257 features, which fits into 16 bits."""
    distance[:] = 0
    for f in range(0, codes.shape[0], 1 + codes.shape[0] // 258):
        column, code = codes[f], of_query[f]
        for i in range(distance.shape[0]):
            c = column[i]
            distance[i] += np.uint16(np.uint8(c - code) if c > code else np.uint8(code - c))


@kernel
def score_rows(query, gallery, rows, at, n, trees, levels, needed, scores, best, work):
    """Score n rows, from position ``at``, in the order of their bounds, keep the best, and return the score needed afterwards.

    Rows are walked in batches down one tree after another, so that the tree stays in cache. Add the number of walks to
    ``work[1]``.
    """
    n_trees = trees.root.shape[0]
    order = np.argsort(-rows.bound[at : at + n])
    left, total, rest = np.empty(WALK_BATCH, dtype=np.int64), np.empty(WALK_BATCH), np.empty(WALK_BATCH)
    pairwise = np.empty((WALK_BATCH, trees.pairwise_kinds.shape[0]))
    for first in range(0, n, WALK_BATCH):
        enough = needed * n_trees - levels.margin
        n_left = 0
        for i in order[first : first + WALK_BATCH]:
            left[n_left] = at + i
            total[n_left], rest[n_left] = 0.0, np.float64(rows.bound[at + i]) * levels.step + levels.base.sum()
            fill_pairwise_of(query, gallery[rows.row[at + i]], trees, pairwise[n_left])
            n_left += 1 if rest[n_left] >= enough else 0
        for tree in range(n_trees):
            work[1] += n_left
            n_before, n_left = n_left, 0
            for j in range(n_before):
                i = left[j]
                value = trees.values[walk(query, gallery[rows.row[i]], pairwise[j], trees.nodes, trees.root[tree])]
                left[n_left], total[n_left], pairwise[n_left] = i, total[j] + value, pairwise[j]
                rest[n_left] = rest[j] - levels.base[tree] - np.float64(rows.levels[tree, i]) * levels.step
                n_left += 1 if total[n_left] + rest[n_left] >= enough else 0
        for j in range(n_left):
            if total[j] / n_trees >= needed:
                insert_best(total[j] / n_trees, rows.row[left[j]], scores, best)
        if best[-1] >= 0:
            needed = max(needed, scores[-1])
    return needed


@kernel
def score_of_guess(query, gallery, start, n, codes, grid, trees, levels, needed, k, work):
    """Return the k-th best score of some rows near the query, or ``needed`` if that is larger; lower scores are of no use."""
    n_guess = min(n, max(2 * k, MIN_GUESSES))
    near, nearest_rows = np.full(n_guess, -np.inf), np.full(n_guess, -1, dtype=np.int64)
    of_query = np.empty(trees.n_features, dtype=np.uint8)
    for f in range(trees.n_features):
        of_query[f] = code_of(np.float64(query[f]), grid.low[f], grid.scale[f])
    distance = np.empty(WIDTH, dtype=np.uint16)
    for block in range(codes.shape[0]):
        fill_distances(codes[block, : trees.n_features], of_query, distance)
        for i in range(min(WIDTH, n - block * WIDTH)):
            if -np.float64(distance[i]) > near[-1]:
                insert_best(-np.float64(distance[i]), start + block * WIDTH + i, near, nearest_rows)
    n_trees = trees.root.shape[0]
    rows = Rows(
        np.empty((0, 0), dtype=np.uint8),
        np.full((n_trees, n_guess), TOP, dtype=np.uint8),
        np.full(n_guess, TOP * n_trees, dtype=np.int32),
        nearest_rows.astype(np.int32),
    )
    scores, best = np.full(k, -np.inf), np.full(k, -1, dtype=np.int64)
    return score_rows(query, gallery, rows, 0, n_guess, trees, levels, needed, scores, best, work)


@kernel
def search_rows(queries, gallery, start, stop, grid, tests, trees, levels, n_slots, needed, scores, best, work):
    """Search rows ``start`` to ``stop`` of a gallery for the best rows of each query.

    Update ``needed``, the score below which a row is of no use, and ``scores`` and ``best``, the best rows of each query, which
    are -inf and -1 at first. Add to ``work`` the number of tests evaluated on codes and the number of walks down a tree.
    """
    n_queries, n_columns, n_trees = queries.shape[0], grid.low.shape[0], trees.root.shape[0]
    slots = np.empty((n_slots, STRIDE), dtype=np.uint8)
    for level in range(TOP + 1):
        slots[level] = level
    ranges = np.empty((n_queries, tests.kind.shape[0], 4), dtype=np.uint8)
    for q in range(n_queries):
        fill_ranges(queries[q], tests, grid, ranges[q])
    n_blocks = -(-(stop - start) // WIDTH)
    codes = np.zeros((n_blocks, n_columns, STRIDE), dtype=np.uint8)
    for block in range(n_blocks):
        begin = start + block * WIDTH
        fill_codes(gallery, begin, min(begin + WIDTH, stop), grid, codes[block])
    for q in range(n_queries):
        k = scores.shape[1]
        needed[q] = score_of_guess(queries[q], gallery, start, stop - start, codes, grid, trees, levels, needed[q], k, work)
    # Rows that passed the first step wait, per query, until they fill a block; there is room for one more block.
    waiting = allocate_rows(n_queries, n_columns, n_trees, 2 * STRIDE)
    n_waiting = np.zeros(n_queries, dtype=np.int64)
    levels_of_block = np.empty((n_trees, STRIDE), dtype=np.uint8)
    sums = np.empty((4, WIDTH))
    bound, row = np.empty(STRIDE, dtype=np.int32), np.empty(STRIDE, dtype=np.int32)
    for b in range(n_blocks):
        begin = start + b * WIDTH
        n_block = min(WIDTH, stop - begin)
        block = Rows(codes[b], levels_of_block, bound, row)
        for i in range(n_block):
            row[i] = begin + i
        for q in range(n_queries):
            if trees.pairwise_kinds.shape[0] > 0:
                fill_pairwise_codes(queries[q], gallery, begin, begin + n_block, grid, trees, sums, codes[b])
            block.levels[:] = TOP
            block.bound[:] = TOP * n_trees
            kept = Rows(waiting.codes[q], waiting.levels[q], waiting.bound[q], waiting.row[q])
            need = min_bound(needed[q], n_trees, levels)
            at = n_waiting[q]
            n_waiting[q] += drop_rows(block, 0, n_block, tests, 0, ranges[q], need, FEW_LEFT, slots, kept, at, work)
            while n_waiting[q] >= WIDTH or (n_waiting[q] > 0 and begin + WIDTH >= stop):
                n = min(n_waiting[q], WIDTH)
                n_waiting[q] -= n
                at = n_waiting[q]
                need = min_bound(needed[q], n_trees, levels)
                for step in range(1, tests.start.shape[0]):
                    if n >= MIN_CODED_ROWS:
                        n = drop_rows(kept, at, n, tests, step, ranges[q], need, 0, slots, kept, at, work)
                needed[q] = score_rows(queries[q], gallery, kept, at, n, trees, levels, needed[q], scores[q], best[q], work)


@kernel
def allocate_rows(n_queries, n_columns, n_trees, size):
    """Allocate rows for each query. Codes are initialised because they are also read behind the last row."""
    return Rows(
        np.zeros((n_queries, n_columns, size), dtype=np.uint8),
        np.empty((n_queries, n_trees, size), dtype=np.uint8),
        np.empty((n_queries, size), dtype=np.int32),
        np.empty((n_queries, size), dtype=np.int32),
    )
