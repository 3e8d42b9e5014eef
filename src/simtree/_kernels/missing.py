"""Coordinates of pairs of samples with missing values (NaN), their codes, and tests of them.

A feature of a pair has three states: present in both samples, missing in one, missing in both. A coordinate of a pair in one of
the last two has no value: kernels return ``ONE_MISSING`` or ``BOTH_MISSING`` instead, which no value can be, because infinite
samples are refused and overflow is clipped. Their codes follow those of all values: ``one_code`` and ``one_code + 1``. A test
sends each of the two states to one of its sides, whatever its threshold is; its ``states`` are a sum of the bits below. A
state that none of its training pairs had goes to the child of the cell with the most training pairs, past the other tests of
the cell.

Which values are missing is hard to predict for a processor, so loops over many pairs have no branch that depends on it.

Coordinates of the whole pair, and those along a direction, use the features that both samples have, and are scaled to all of
them. The pairwise kinds have no value for a pair without any such feature, which then counts as missing in both.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.binning import BLOCK, N_STEPS, by_feature, code_values, new_block, set_rows, set_samples, set_values
from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import (
    ABS_DIFF,
    COSINE,
    EUCLIDEAN,
    MANHATTAN,
    MAX_FLOAT,
    PAIRWISE,
    coordinate_value,
    pairwise_of_sum,
    pairwise_value,
    squared_difference,
)
from simtree._kernels.route import TESTS_PER_WALK

ONE_MISSING, BOTH_MISSING = np.inf, -np.inf

# Bits of the states of a test: which of them continue at if_gt (the others at if_le), and which occurred in training.
ONE_ABOVE, BOTH_ABOVE, ONE_SEEN, BOTH_SEEN = 1, 2, 4, 8
ALL_ABOVE, N_SIDES = 3, 4
# Number of codes that states take.
N_STATES = 2
# Pages of a grid of bins, see `binning`, follow each other: that of the values, and those of the two states.
ONE_PAGE, BOTH_PAGE = np.int32(N_STEPS), np.int32(2 * N_STEPS)


class StateNodes(NamedTuple):
    """Columns of a table of tests as in `Nodes`, with what missing values need."""

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    if_le: np.ndarray
    if_gt: np.ndarray
    states: np.ndarray
    otherwise: np.ndarray
    """Where a state that did not occur in training continues."""
    directions: np.ndarray


@kernel
def joint_sums(kind, a, b, n):
    """Return the sum behind a pairwise coordinate over the features of both samples, their squared norms, and their number."""
    total, square_a, square_b, n_present = 0.0, 0.0, 0.0, 0
    for f in range(n):
        x, y = np.float64(a[f]), np.float64(b[f])
        if np.isnan(x) or np.isnan(y):
            continue
        n_present += 1
        if kind == MANHATTAN:
            total += abs(x - y)
        elif kind == EUCLIDEAN:
            total += squared_difference(x, y)
        else:
            total += x * y
            square_a += x * x
            square_b += y * y
    return total, square_a, square_b, n_present


@kernel
def joint_pairwise_value(kind, a, b, n):
    """Return a pairwise coordinate over the features that both samples have, scaled to n features."""
    total, square_a, square_b, n_present = joint_sums(kind, a, b, n)
    if n_present == 0:
        return BOTH_MISSING
    if kind == COSINE:
        return pairwise_of_sum(kind, total, np.sqrt(square_a) * np.sqrt(square_b))
    return pairwise_of_sum(kind, total * (n / n_present), 1.0)


@kernel
def joint_product(kind, directions, k, A, i, B, j):
    """Return |w·(x - x')| or w·(x + x') of direction k over the features that both samples have, scaled to all of w."""
    total, present, everything = 0.0, 0.0, 0.0
    for f in range(directions.shape[1]):
        w = directions[k, f]
        everything += abs(w)
        x, y = np.float64(A[i, f]), np.float64(B[j, f])
        if w == 0.0 or np.isnan(x) or np.isnan(y):
            continue
        present += abs(w)
        total += w * (x - y if kind == ABS_DIFF else x + y)
    if present == 0.0:
        return BOTH_MISSING
    value = total * (everything / present)
    return min(max(abs(value) if kind == ABS_DIFF else value, -MAX_FLOAT), MAX_FLOAT)


@kernel
def value_and_lacking(kind, f, A, i, B, j, pairwise, p):
    """Return one coordinate of pair p, of rows i of A and j of B, and how many of the two samples lack it (0, 1, 2).

    The coordinate has no meaning if a sample lacks it. This takes matrices and numbers of rows: a row would be an array of its
    own, whose references Numba counts in every call.
    """
    if kind == PAIRWISE:  # one that a single sample lacks is of a category
        return pairwise[p, f], np.int64(pairwise[p, f] == ONE_MISSING) + 2 * np.int64(pairwise[p, f] == BOTH_MISSING)
    x, y = np.float64(A[i, f]), np.float64(B[j, f])
    return coordinate_value(kind, x, y), np.int64(x != x) + np.int64(y != y)


@kernel
def is_along_direction(kind, f, directions):
    """Return whether a coordinate is one along a direction, which samples that lack a feature may have."""
    return kind != PAIRWISE and f >= directions.shape[1]


@kernel
def joint_value(kind, f, A, i, B, j, directions):
    """Return the coordinate along a direction of a pair that lacks features, and 2 if it lacks all of them, otherwise 0."""
    value = joint_product(kind, directions, f - directions.shape[1], A, i, B, j)
    return value, 2 * np.int64(value == BOTH_MISSING)


@kernel
def fill_joint_pairwise(A, B, first, second, n_features, pairwise_kinds, pairwise):
    """Fill ``pairwise`` as `fill_pairwise` does, bit for bit for complete pairs, and over joint features for others."""
    for p in range(first.shape[0]):
        a, b = A[first[p]], B[second[p]]
        is_complete = True
        for f in range(n_features):
            is_complete &= not (np.isnan(a[f]) or np.isnan(b[f]))
        for k in range(pairwise_kinds.shape[0]):
            if is_complete:
                pairwise[p, k] = pairwise_value(pairwise_kinds[k], a, b, n_features)
            else:
                pairwise[p, k] = joint_pairwise_value(pairwise_kinds[k], a, b, n_features)


@kernel
def set_pages(block, size, kind, f, A, B, directions):
    """Set the pages of a coordinate whose values are set: `ONE_PAGE` or `BOTH_PAGE` if it has no value, otherwise 0."""
    page, x, y = block.page, block.x, block.y
    if kind == PAIRWISE:
        for q in range(size):
            value = block.value[q]  # one that a single sample lacks is of a category
            page[q] = (ONE_PAGE if value == ONE_MISSING else 0) + (BOTH_PAGE if value == BOTH_MISSING else 0)
        return
    for q in range(size):
        page[q] = (ONE_PAGE if x[q] != x[q] else 0) + (ONE_PAGE if y[q] != y[q] else 0)
    if is_along_direction(kind, f, directions):
        for q in range(size):
            if page[q] > 0:
                block.value[q], lacking = joint_value(kind, f, A, block.first[q], B, block.second[q], directions)
                page[q] = ONE_PAGE * lacking


@kernel
def fill_state_values(A, B, first, second, pairwise, kinds, features, directions, values):
    """Fill ``values[c, p]`` with coordinate c of pair p, or with its state."""
    block = new_block()
    for start in range(0, first.shape[0], BLOCK):
        stop = min(start + BLOCK, first.shape[0])
        set_rows(block, first[start:stop], second[start:stop])
        for c in range(kinds.shape[0]):
            if kinds[c] != PAIRWISE:
                set_samples(block, stop - start, features[c], A, B)
            set_values(block, stop - start, kinds[c], features[c], pairwise[start:stop])
            set_pages(block, stop - start, kinds[c], features[c], A, B, directions)
            own = values[c, start:stop]
            for q in range(stop - start):
                state = ONE_MISSING if block.page[q] == ONE_PAGE else BOTH_MISSING
                own[q] = block.value[q] if block.page[q] == 0 else state


@kernel
def fill_state_codes(
    A, B, first, second, pairwise, kinds, features, directions, edges, low, scale, before, first_halving, codes
):
    """Fill codes as `fill_byte_codes` does; ``before`` has a page for each state, which holds the code of the state."""
    block, order = new_block(), by_feature(kinds, features)
    for start in range(0, first.shape[0], BLOCK):
        stop = min(start + BLOCK, first.shape[0])
        set_rows(block, first[start:stop], second[start:stop])
        own = codes[start:stop]
        last = -1
        for c in order:
            is_new = kinds[c] == PAIRWISE or features[c] != last
            if is_new and kinds[c] != PAIRWISE:
                last = features[c]
                set_samples(block, stop - start, last, A, B)
            set_values(block, stop - start, kinds[c], features[c], pairwise[start:stop])
            if is_new or is_along_direction(kinds[c], features[c], directions):
                set_pages(block, stop - start, kinds[c], features[c], A, B, directions)
            code_values(block, stop - start, edges[c], low[c], scale[c], before[c], first_halving[c], own, c)


@kernel
def walk_states(A, i, B, j, pairwise, p, nodes, at):
    """Return the exit that pair p, of rows i of A and j of B, reaches from row ``at`` (itself an exit if negative)."""
    while at >= 0:
        kind, f, states = nodes.kind[at], nodes.feature[at], np.int64(nodes.states[at])
        value, lacking = value_and_lacking(kind, f, A, i, B, j, pairwise, p)
        if lacking > 0 and is_along_direction(kind, f, nodes.directions):
            value, lacking = joint_value(kind, f, A, i, B, j, nodes.directions)
        # Bits by the state: 1 and 2 which sides, 4 and 8 which occurred; a present value has neither.
        bit = np.int64(lacking)
        of_value = np.int64(value > nodes.threshold[at]) & np.int64(bit == 0)
        if bit > 0 and states & (bit << 2) == 0:
            at = nodes.otherwise[at]
        else:
            at = nodes.if_gt[at] if of_value | (states & bit) else nodes.if_le[at]
    return -1 - at


@kernel
def route_states(A, B, first, second, pairwise, nodes, entry, exits):
    """Fill ``exits[p]`` with the exit that pair p reaches from row ``entry``."""
    for p in range(first.shape[0]):
        exits[p] = walk_states(A, first[p], B, second[p], pairwise, p, nodes, entry)


@kernel
def add_state_values(A, B, first, second, pairwise, nodes, values, total):
    """Add to ``total[p]`` the value of the exit that pair p reaches from row 0, as `add_exit_values` does."""
    if first.shape[0] * TESTS_PER_WALK < nodes.kind.shape[0]:
        for p in range(first.shape[0]):
            total[p] += values[walk_states(A, first[p], B, second[p], pairwise, p, nodes, 0)]
    else:
        sweep_states(A, B, first, second, pairwise, nodes, values, total)


@kernel
def sweep_states(A, B, first, second, pairwise, nodes, values, total):
    """Add exit values as `add_state_values` does, row by row: each row distributes its pairs over lists of its successors.

    `route.add_exit_values` does so, too. A successor is found by the state of a pair, and whether its value is above the
    threshold.
    """
    n_rows = nodes.kind.shape[0]
    last = np.full(n_rows + values.shape[0], -1, dtype=np.int32)
    before = np.arange(-1, first.shape[0] - 1).astype(np.int32)
    last[0] = first.shape[0] - 1
    successor = np.empty(6, np.int64)
    for row in range(n_rows):
        p = last[row]
        if p < 0:
            continue
        kind, f, threshold, states = nodes.kind[row], nodes.feature[row], nodes.threshold[row], np.int64(nodes.states[row])
        oblique = is_along_direction(kind, f, nodes.directions)
        for at in range(6):
            bit = at // 2  # 0 for a value, 1 and 2 for the states
            above = at % 2 == 1 if bit == 0 else states & bit != 0
            to = nodes.if_gt[row] if above else nodes.if_le[row]
            to = nodes.otherwise[row] if bit > 0 and states & (bit << 2) == 0 else to
            successor[at] = to if to >= 0 else n_rows - 1 - to
        while p >= 0:
            previous = before[p]
            value, lacking = value_and_lacking(kind, f, A, first[p], B, second[p], pairwise, p)
            if oblique and lacking > 0:
                value, lacking = joint_value(kind, f, A, first[p], B, second[p], nodes.directions)
            to = successor[2 * lacking + np.int64(value > threshold)]
            before[p] = last[to]
            last[to] = p
            p = previous
    for e in range(values.shape[0]):
        p = last[n_rows + e]
        while p >= 0:
            total[p] += values[e]
            p = before[p]


@kernel
def codes_left(states, one_code):
    """Return the codes of the two states, -1 instead of that of a state that does not go left."""
    return -1 if states & ONE_ABOVE else one_code, -1 if states & BOTH_ABOVE else one_code + 1


@kernel
def code_goes_left(code, cut, one_left, both_left):
    """Return 1 if a code is at most the cut, or that of a state which goes left, see `codes_left`; otherwise 0."""
    return np.int64(code <= cut) | np.int64(code == one_left) | np.int64(code == both_left)


@kernel
def split_state_rows(codes, column, cut, states, one_code, rows, spare):
    """Move the rows that go left to the front as `split_rows` does, and return their number."""
    one_left, both_left = codes_left(states, one_code)
    # For codes of one byte, a table of what goes left takes less time than three comparisons of each code.
    is_byte = codes.itemsize == 1
    goes_left = np.zeros(256 if is_byte else 0, np.uint8)
    for code in range(goes_left.shape[0]):
        goes_left[code] = code_goes_left(code, cut, one_left, both_left)
    left = np.uint64(0)  # unsigned, so that indices are not checked for negative numbers
    right = np.uint64(0)
    for r in range(rows.shape[0]):
        p = rows[r]
        code = codes[p, column]
        goes = np.uint64(goes_left[code]) if is_byte else np.uint64(code_goes_left(np.int64(code), cut, one_left, both_left))
        # Both are written, because a branch would be mispredicted half of the time.
        rows[left] = p
        spare[right] = p
        left += goes
        right += np.uint64(1) - goes
    rows[np.int64(left) :] = spare[: np.int64(right)]
    return np.int64(left)


@kernel
def settle_states(codes, column, cut, states, one_code, rows):
    """Return the final cut and states of a test: the middle of the gap, and the states seen among the rows.

    If no value lies above the cut, it is the last code of a value, so that the test separates states only.
    """
    following = np.int64(one_code)
    seen = 0
    for r in range(rows.shape[0]):
        code = np.int64(codes[rows[r], column])
        seen |= ONE_SEEN if code == one_code else 0
        seen |= BOTH_SEEN if code > one_code else 0
        following = min(following, code if code > cut else following)
    middle = (cut + following - 1) // 2 if following < one_code else np.int64(one_code - 1)
    return middle, (states & ALL_ABOVE) | seen


@kernel
def settle_counted_states(of_code, cut, states, one_code):
    """Return the final cut and states of a test as `settle_states` does, given what is not zero for codes that occur."""
    following = cut + 1
    while following < one_code and of_code[following] == 0:
        following += 1
    seen = (ONE_SEEN if of_code[one_code] != 0 else 0) | (BOTH_SEEN if of_code[one_code + 1] != 0 else 0)
    middle = (cut + following - 1) // 2 if following < one_code else one_code - 1
    return middle, (states & ALL_ABOVE) | seen
