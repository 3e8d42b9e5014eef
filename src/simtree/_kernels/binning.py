"""Codes of coordinate values: the code of a value is the number of edges strictly below it.

A grid of equal steps over the edges of a coordinate says for each step how many edges lie in the steps before it; only the
edges of a value's own step, mostly one or none, are left to compare with:

    edges           |    |  | |||  |     |          value 'x' lies in step 5, before which there are 5 edges,
    steps      0    1    2    3    4 x  5          and is compared with the one edge of its step
"""

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import pair_value

N_STEPS = 1024
# Room beyond the edges of a coordinate, filled with inf: halvings may look past the last edge.
MAX_EDGES, ROOM = 255, 256
# Pairs whose values are held at one time: all their coordinates stay near.
BLOCK = 64


@kernel
def step_of(value, low, scale):
    """The step of the grid in which a value lies. A greater value never lies in an earlier step, however it is rounded."""
    return np.int64(min(max((value - low) * scale, 0.0), N_STEPS - 1.0))


@kernel
def lay_grid(edges, n_edges, low, scale, before, first_halving):
    """OUT ``before[c, s]``: how many edges of coordinate c lie in steps before s.

    OUT ``first_halving[c]``: the greatest power of two that is at most the number of edges in any one step; 0 without edges.
    """
    for c in range(edges.shape[0]):
        before[c, :] = 0
        most = 0
        in_step = 0
        last = -1
        for e in range(n_edges[c]):
            step = step_of(edges[c, e], low[c], scale[c])
            in_step = in_step + 1 if step == last else 1
            most = max(most, in_step)
            last = step
            before[c, step + 1 :] = e + 1
        first_halving[c] = min(most, 1)
        while 2 * first_halving[c] <= most and most > 0:
            first_halving[c] *= 2


@kernel
def fill_byte_codes(A, B, first, second, whole, kinds, features, edges, low, scale, before, first_halving, codes):
    """OUT ``codes[p, c]``: how many of the sorted ``edges[c]`` lie below coordinate c of pair p.

    So ``code <= b`` says the same as ``value <= edges[c, b]``, for each b. No branch depends on a value: it would be
    mispredicted every other time.
    """
    n_coordinates = kinds.shape[0]
    values = np.empty((n_coordinates, BLOCK))
    for start in range(0, first.shape[0], BLOCK):
        size = min(BLOCK, first.shape[0] - start)
        for q in range(size):
            a = A[first[start + q]]
            b = B[second[start + q]]
            for c in range(n_coordinates):
                values[c, q] = pair_value(kinds[c], features[c], a, b, whole[start + q])
        for c in range(n_coordinates):
            own_edges, own_before, own_low, own_scale, halving = edges[c], before[c], low[c], scale[c], first_halving[c]
            for q in range(size):
                value = values[c, q]
                code = np.int64(own_before[step_of(value, own_low, own_scale)])
                if halving == 1:  # nearly always; without a loop it is twice as fast
                    code += own_edges[code] < value
                else:
                    step = halving
                    while step > 0:
                        code += step * (own_edges[code + step - 1] < value)
                        step >>= 1
                codes[start + q, c] = code
