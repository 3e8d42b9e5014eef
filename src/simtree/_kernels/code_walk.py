"""Walks of pairs through trees by the codes of their coordinates; each cell of a tree has one test, packed into 64 bits."""

import numpy as np

from simtree._kernels.compilation import kernel

# How a test is packed into 64 bits: first child, sides of the two states of missing values, column, code.
CHILD_SHIFT, STATES_SHIFT, CODE_BITS = np.uint64(32), np.uint64(30), np.uint64(8)
MAX_COLUMNS = 1 << 22
COLUMN_MASK, CODE_MASK, STATES_MASK = np.uint64(MAX_COLUMNS - 1), np.uint64(255), np.uint64(3)
# 1, and more than any code: unsigned differences of codes stay positive, and `STATES_MASK` does not see it.
LIFT = np.uint64(257)
# Pairs walked through one tree before the next, so that their codes stay in cache.
BLOCK = 64


@kernel
def step(tests, codes, at, row):
    """Return the cell that follows cell ``at`` for the pair whose codes begin at ``row``; a leaf follows itself."""
    test = tests[at]
    goes_on = codes[row + ((test >> CODE_BITS) & COLUMN_MASK)] > (test & CODE_MASK)
    return (test >> CHILD_SHIFT) + np.uint64(goes_on)


@kernel
def add_code_values(codes, tests, values, first, depth, total):
    """Add to ``total[p]`` the values of the leaves that pair p reaches in some trees, tree by tree.

    The cells of tree t begin at ``first[t]``; its deepest leaf has the depth ``depth[t]``. Eight pairs walk in step, without a
    branch, so that none waits for another; their indices are unsigned, so that they are not checked for negative numbers.
    """
    n, flat = codes.shape[0], codes.ravel()
    width = np.uint64(codes.shape[1])
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(depth.shape[0]):
            own, own_values = tests[first[t] : first[t + 1]], values[first[t] : first[t + 1]]
            p = start
            while p + 8 <= stop:
                a = b = c = d = e = f = g = h = np.uint64(0)
                r = np.uint64(p) * width
                s, u, v, w = r + width, r + width * np.uint64(2), r + width * np.uint64(3), r + width * np.uint64(4)
                x, y, z = w + width, w + width * np.uint64(2), w + width * np.uint64(3)
                for _ in range(depth[t]):
                    a, b, c, d = step(own, flat, a, r), step(own, flat, b, s), step(own, flat, c, u), step(own, flat, d, v)
                    e, f, g, h = step(own, flat, e, w), step(own, flat, f, x), step(own, flat, g, y), step(own, flat, h, z)
                total[p] += own_values[a]
                total[p + 1] += own_values[b]
                total[p + 2] += own_values[c]
                total[p + 3] += own_values[d]
                total[p + 4] += own_values[e]
                total[p + 5] += own_values[f]
                total[p + 6] += own_values[g]
                total[p + 7] += own_values[h]
                p += 8
            while p < stop:
                a, r = np.uint64(0), np.uint64(p) * width
                for _ in range(depth[t]):
                    a = step(own, flat, a, r)
                total[p] += own_values[a]
                p += 1


@kernel
def step_with_states(tests, codes, at, row, one_code):
    """Return the cell that follows cell ``at`` as `step` does; without a branch, also for the codes of states."""
    test = tests[at]
    code = np.uint64(codes[row + ((test >> CODE_BITS) & COLUMN_MASK)])
    # 1 and 2 for the codes of the two states, which are also the bits of their sides.
    sides = (test >> STATES_SHIFT) & (code + LIFT - one_code) & STATES_MASK
    of_state, of_value = np.uint64(sides != 0), np.uint64(code > (test & CODE_MASK))
    return (test >> CHILD_SHIFT) + (of_state if code >= one_code else of_value)


@kernel
def add_state_code_values(codes, one_code, tests, values, first, depth, total):
    """Add the values of the leaves that pairs reach as `add_code_values` does, for codes that include those of states."""
    n, flat, o = codes.shape[0], codes.ravel(), np.uint64(one_code)
    width = np.uint64(codes.shape[1])
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(depth.shape[0]):
            own, own_values = tests[first[t] : first[t + 1]], values[first[t] : first[t + 1]]
            p = start
            while p + 4 <= stop:
                a = b = c = d = np.uint64(0)
                r = np.uint64(p) * width
                s, u, v = r + width, r + width * np.uint64(2), r + width * np.uint64(3)
                for _ in range(depth[t]):
                    a, b = step_with_states(own, flat, a, r, o), step_with_states(own, flat, b, s, o)
                    c, d = step_with_states(own, flat, c, u, o), step_with_states(own, flat, d, v, o)
                total[p] += own_values[a]
                total[p + 1] += own_values[b]
                total[p + 2] += own_values[c]
                total[p + 3] += own_values[d]
                p += 4
            while p < stop:
                a, r = np.uint64(0), np.uint64(p) * width
                for _ in range(depth[t]):
                    a = step_with_states(own, flat, a, r, o)
                total[p] += own_values[a]
                p += 1
