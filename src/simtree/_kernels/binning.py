"""Codes of coordinate values: the code of a value is the number of edges strictly below it.

A grid of equal steps over the edges of a coordinate stores, for each step, the number of edges in the steps before it; only the
edges in a value's own step, usually one or none, remain to be compared with it:

    steps  |  0  |  1  |  2  |  3  |  4  |      value x lies in step 3: six edges lie in the steps before it,
    edges     e    e e   eee   e x    e         and it is compared with the one edge in step 3

Pairs are coded in blocks, coordinate by coordinate: the loops over a block are simple, so that most of them vectorise, and no
branch depends on a value, because it would be mispredicted half of the time.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import ABS_DIFF, PAIRWISE, SUM, coordinate_value

N_STEPS = 1024
# Padding with inf behind the edges of a coordinate: the binary search may read past the last edge.
MAX_EDGES, ROOM = 255, 256
# Pairs processed at a time: many, so that a grid is read into cache for many of them, but their samples stay in cache, too.
BLOCK = 256


@kernel
def position(value, low, scale):
    """Return the position of a value in the grid, whose integer part is its step; it never decreases as the value increases.

    It is 0 for NaN: comparisons instead of max and min, which would return it.
    """
    step = (value - low) * scale
    step = step if step > 0.0 else 0.0
    return step if step < N_STEPS - 1.0 else N_STEPS - 1.0


@kernel
def lay_grid(edges, n_edges, low, scale, before, first_halving):
    """Fill ``before[c, s]`` with the number of edges of coordinate c in the steps before s.

    Fill ``first_halving[c]`` with the largest power of two that is at most the maximum number of edges per step; 0 without
    edges.
    """
    for c in range(edges.shape[0]):
        before[c, :] = 0
        max_in_step = 0
        in_step = 0
        last = -1
        for e in range(n_edges[c]):
            step = np.int64(position(edges[c, e], low[c], scale[c]))
            in_step = in_step + 1 if step == last else 1
            max_in_step = max(max_in_step, in_step)
            last = step
            before[c, step + 1 :] = e + 1
        first_halving[c] = min(max_in_step, 1)
        while 2 * first_halving[c] <= max_in_step and max_in_step > 0:
            first_halving[c] *= 2


class Block(NamedTuple):
    """Workspace for one coordinate of a block of pairs: their rows in A and in B, and what is found for each pair."""

    first: np.ndarray
    second: np.ndarray
    x: np.ndarray
    y: np.ndarray
    """Values of the feature in the two samples."""
    value: np.ndarray
    page: np.ndarray
    """Where the page of the grid begins: 0 for values; see `missing` for coordinates without a value."""
    step: np.ndarray
    code: np.ndarray


@kernel
def new_block():
    """Return a workspace in which no coordinate is missing."""
    rows, numbers = np.empty((2, BLOCK), np.uint64), np.empty((3, BLOCK))
    page, step, code = np.zeros(BLOCK, np.int32), np.empty(BLOCK, np.int32), np.empty(BLOCK, np.uint64)
    return Block(rows[0], rows[1], numbers[0], numbers[1], numbers[2], page, step, code)


@kernel
def set_rows(block, first, second):
    """Set the pairs of the block; unsigned, so that indices are not checked for negative numbers."""
    for q in range(first.shape[0]):
        block.first[q], block.second[q] = first[q], second[q]


@kernel
def by_feature(kinds, features):
    """Return the coordinates in an order in which those of a feature follow each other, pairwise ones last."""
    key = np.empty(kinds.shape[0], np.int64)
    for c in range(kinds.shape[0]):
        key[c] = np.iinfo(np.int64).max if kinds[c] == PAIRWISE else features[c]
    return np.argsort(key, kind="mergesort")


@kernel
def set_samples(block, size, f, A, B):
    """Set the values of a feature in the two samples of each pair."""
    x, y, column = block.x, block.y, np.uint64(f)
    for q in range(size):
        x[q], y[q] = A[block.first[q], column], B[block.second[q], column]


@kernel
def set_values(block, size, kind, f, pairwise):
    """Set the values of a coordinate; those of its feature in the two samples are set."""
    x, y, value = block.x, block.y, block.value
    if kind == PAIRWISE:
        for q in range(size):
            value[q] = pairwise[q, f]
        return
    if kind == ABS_DIFF:
        for q in range(size):
            value[q] = abs(x[q] - y[q])
    elif kind == SUM:
        for q in range(size):
            value[q] = x[q] + y[q]
    else:
        for q in range(size):
            value[q] = coordinate_value(kind, x[q], y[q])


@kernel
def code_values(block, size, edges, low, scale, before, first_halving, codes, c):
    """Fill ``codes[q, c]`` with the number of the sorted edges of a coordinate that lie below the value of pair q."""
    value, step, code = block.value, block.step, block.code
    for q in range(size):
        step[q] = np.int32(position(value[q], low, scale)) + block.page[q]
    if first_halving == 1:  # the usual case
        for q in range(size):
            found = np.uint64(before[np.uint64(step[q])])
            codes[q, c] = found + np.uint64(edges[found] < value[q])
        return
    for q in range(size):
        code[q] = before[np.uint64(step[q])]
    halving = np.uint64(first_halving)
    while halving > 0:
        for q in range(size):
            code[q] += halving * np.uint64(edges[code[q] + halving - np.uint64(1)] < value[q])
        halving >>= np.uint64(1)
    for q in range(size):
        codes[q, c] = code[q]


@kernel
def fill_byte_codes(A, B, first, second, pairwise, kinds, features, edges, low, scale, before, first_halving, codes):
    """Fill ``codes[p, c]`` with the number of the sorted ``edges[c]`` that lie below coordinate c of pair p.

    So ``code <= b`` is equivalent to ``value <= edges[c, b]`` for each b.
    """
    block, order = new_block(), by_feature(kinds, features)
    for start in range(0, first.shape[0], BLOCK):
        stop = min(start + BLOCK, first.shape[0])
        set_rows(block, first[start:stop], second[start:stop])
        own = codes[start:stop]
        last = -1
        for c in order:
            if kinds[c] != PAIRWISE and features[c] != last:
                last = features[c]
                set_samples(block, stop - start, last, A, B)
            set_values(block, stop - start, kinds[c], features[c], pairwise[start:stop])
            code_values(block, stop - start, edges[c], low[c], scale[c], before[c], first_halving[c], own, c)
