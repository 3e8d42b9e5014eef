"""Walks of pairs through trees by the codes of their coordinates; each cell of a tree has one test, packed into 64 bits."""

import numpy as np

from simtree._kernels.compilation import kernel

# How a test is packed into 64 bits: first child, whether the two states of missing values stay at it, 0, column, code.
CHILD_SHIFT, STATES_SHIFT, CODE_BITS = np.uint64(33), np.uint64(31), np.uint64(8)
BEFORE_STATES = np.uint64(30)
MAX_COLUMNS, N_CODES = 1 << 22, 256
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
def add_code_values(codes, tests, values, first, total):
    """Add to ``total[p]`` the values of the leaves that pair p reaches in some trees, tree by tree.

    The cells of tree t begin at ``first[t]``, parents before their children. Eight pairs walk in step, so that none waits for
    another, until all are at leaves: then the sum of their cells no longer grows. Indices are unsigned, so that they are not
    checked for negative numbers.
    """
    n, flat = codes.shape[0], codes.ravel()
    width = np.uint64(codes.shape[1])
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(first.shape[0] - 1):
            own, own_values = tests[first[t] : first[t + 1]], values[first[t] : first[t + 1]]
            p = start
            while p + 8 <= stop:
                a = b = c = d = e = f = g = h = np.uint64(0)
                r = np.uint64(p) * width
                s, u, v, w = r + width, r + width * np.uint64(2), r + width * np.uint64(3), r + width * np.uint64(4)
                x, y, z = w + width, w + width * np.uint64(2), w + width * np.uint64(3)
                before, after = np.uint64(1), np.uint64(0)
                while before != after:
                    a, b, c, d = step(own, flat, a, r), step(own, flat, b, s), step(own, flat, c, u), step(own, flat, d, v)
                    e, f, g, h = step(own, flat, e, w), step(own, flat, f, x), step(own, flat, g, y), step(own, flat, h, z)
                    before, after = after, a + b + c + d + e + f + g + h
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
                a, before, r = np.uint64(0), np.uint64(1), np.uint64(p) * width
                while before != a:
                    before, a = a, step(own, flat, a, r)
                total[p] += own_values[a]
                p += 1


@kernel
def step_with_states(tests, codes, at, row, shifts):
    """Return the cell that follows cell ``at`` as `step` does; ``shifts`` say by its code which bit of a test keeps a pair.

    The code of a state is above those of all values, so that it goes on unless its bit says that it stays. The bit of a value
    is zero. The shifts are a table because a comparison of the code may become a branch, which is mispredicted.
    """
    test = tests[at]
    code = codes[row + ((test >> CODE_BITS) & COLUMN_MASK)]
    return (test >> CHILD_SHIFT) + (np.uint64(code > (test & CODE_MASK)) & ~(test >> shifts[code]))


@kernel
def add_state_code_values(codes, one_code, tests, values, first, total):
    """Add the values of the leaves that pairs reach as `add_code_values` does, for codes that include those of states."""
    n, flat = codes.shape[0], codes.ravel()
    o = np.full(N_CODES, BEFORE_STATES)  # shifts, see `step_with_states`
    o[one_code], o[one_code + 1] = STATES_SHIFT, STATES_SHIFT + np.uint64(1)
    width = np.uint64(codes.shape[1])
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for t in range(first.shape[0] - 1):
            own, own_values = tests[first[t] : first[t + 1]], values[first[t] : first[t + 1]]
            p = start
            while p + 8 <= stop:
                a = b = c = d = e = f = g = h = np.uint64(0)
                r = np.uint64(p) * width
                s, u, v, w = r + width, r + width * np.uint64(2), r + width * np.uint64(3), r + width * np.uint64(4)
                x, y, z = w + width, w + width * np.uint64(2), w + width * np.uint64(3)
                before, after = np.uint64(1), np.uint64(0)
                while before != after:
                    a, b = step_with_states(own, flat, a, r, o), step_with_states(own, flat, b, s, o)
                    c, d = step_with_states(own, flat, c, u, o), step_with_states(own, flat, d, v, o)
                    e, f = step_with_states(own, flat, e, w, o), step_with_states(own, flat, f, x, o)
                    g, h = step_with_states(own, flat, g, y, o), step_with_states(own, flat, h, z, o)
                    before, after = after, a + b + c + d + e + f + g + h
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
                a, before, r = np.uint64(0), np.uint64(1), np.uint64(p) * width
                while before != a:
                    before, a = a, step_with_states(own, flat, a, r, o)
                total[p] += own_values[a]
                p += 1
