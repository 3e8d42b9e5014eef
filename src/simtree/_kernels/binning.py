"""Codes of coordinate values: the code of a value is the number of edges strictly below it.

A grid of equal steps over the edges of a coordinate stores, for each step, the number of edges in the steps before it; only the
edges in a value's own step, usually one or none, remain to be compared with it:

    steps  |  0  |  1  |  2  |  3  |  4  |      value x lies in step 3: six edges lie in the steps before it,
    edges     e    e e   eee   e x    e         and it is compared with the one edge in step 3
"""

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import pair_value

N_STEPS = 1024
# Padding with inf behind the edges of a coordinate: the binary search may read past the last edge.
MAX_EDGES, ROOM = 255, 256
# Pairs processed at a time: the values of all their coordinates stay in cache.
BLOCK = 64


@kernel
def step_of(value, low, scale):
    """Return the step of the grid that contains a value; despite rounding, it never decreases as the value increases.

    It is 0 for NaN: comparisons instead of max and min, which would return it.
    """
    step = (value - low) * scale
    step = step if step > 0.0 else 0.0
    return np.int64(step if step < N_STEPS - 1.0 else N_STEPS - 1.0)


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
            step = step_of(edges[c, e], low[c], scale[c])
            in_step = in_step + 1 if step == last else 1
            max_in_step = max(max_in_step, in_step)
            last = step
            before[c, step + 1 :] = e + 1
        first_halving[c] = min(max_in_step, 1)
        while 2 * first_halving[c] <= max_in_step and max_in_step > 0:
            first_halving[c] *= 2


@kernel
def fill_byte_codes(A, B, first, second, pairwise, kinds, features, edges, low, scale, before, first_halving, codes):
    """Fill ``codes[p, c]`` with the number of the sorted ``edges[c]`` that lie below coordinate c of pair p.

    So ``code <= b`` is equivalent to ``value <= edges[c, b]`` for each b. No branch depends on a value, because it would be
    mispredicted half of the time.
    """
    n_coordinates = kinds.shape[0]
    values = np.empty((n_coordinates, BLOCK))
    for start in range(0, first.shape[0], BLOCK):
        size = min(BLOCK, first.shape[0] - start)
        for q in range(size):
            a = A[first[start + q]]
            b = B[second[start + q]]
            for c in range(n_coordinates):
                values[c, q] = pair_value(kinds[c], features[c], a, b, pairwise[start + q])
        code_block(values, size, edges, low, scale, before, first_halving, codes[start : start + size])


@kernel
def code_block(values, size, edges, low, scale, before, first_halving, codes):
    """Fill ``codes[q, c]`` with the number of the sorted ``edges[c]`` that lie below ``values[c, q]``, for q below ``size``."""
    for c in range(values.shape[0]):
        own_edges, own_before, own_low, own_scale, halving = edges[c], before[c], low[c], scale[c], first_halving[c]
        for q in range(size):
            value = values[c, q]
            code = np.int64(own_before[step_of(value, own_low, own_scale)])
            if halving == 1:  # the usual case; twice as fast as the loop
                code += own_edges[code] < value
            else:
                step = halving
                while step > 0:
                    code += step * (own_edges[code + step - 1] < value)
                    step >>= 1
            codes[q, c] = code
