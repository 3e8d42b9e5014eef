"""Walks of pairs through trees by the codes of their coordinates; each cell of a tree has one test, packed into 64 bits."""

import numpy as np

from simtree._kernels.compilation import kernel

# How a test is packed into 64 bits: first child, whether the two states of missing values stay at it, 0, column, code.
CHILD_SHIFT, STATES_SHIFT, CODE_BITS = np.uint64(33), np.uint64(31), np.uint64(8)
BEFORE_STATES = np.uint64(30)
MAX_COLUMNS = 1 << 22
COLUMN_MASK, CODE_MASK = np.uint64(MAX_COLUMNS - 1), np.uint64(255)
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
def step_with_states(tests, codes, at, row, last):
    """Return the cell that follows cell ``at`` as `step` does, without a branch; ``last`` is the last code of a value.

    The code of a state is above those of all values, so that it goes on unless its bit says that it stays.
    """
    test = tests[at]
    code = np.uint64(codes[row + ((test >> CODE_BITS) & COLUMN_MASK)])
    state = (code if code > last else last) - last  # 1 or 2; 0 for a value
    stays = (test >> BEFORE_STATES) >> state
    return (test >> CHILD_SHIFT) + (np.uint64(code > (test & CODE_MASK)) & ~stays)


@kernel
def add_state_code_values(codes, one_code, tests, values, first, depth, total):
    """Add the values of the leaves that pairs reach as `add_code_values` does, for codes that include those of states."""
    n, flat, o = codes.shape[0], codes.ravel(), np.uint64(one_code - 1)
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
                    a, b = step_with_states(own, flat, a, r, o), step_with_states(own, flat, b, s, o)
                    c, d = step_with_states(own, flat, c, u, o), step_with_states(own, flat, d, v, o)
                    e, f = step_with_states(own, flat, e, w, o), step_with_states(own, flat, f, x, o)
                    g, h = step_with_states(own, flat, g, y, o), step_with_states(own, flat, h, z, o)
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
                    a = step_with_states(own, flat, a, r, o)
                total[p] += own_values[a]
                p += 1
