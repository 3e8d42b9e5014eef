"""Walking pairs down a flat table of tests.

Row r of the table asks whether coordinate (kind[r], feature[r]) of a pair is at most threshold[r], and goes on with row
if_le[r] or if_gt[r]. A negative number -1 - e ends the walk at exit e. Rows may share successors (the table is a DAG), and each
successor has a larger number than its row, so each walk ends.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import pair_value

# About how many tests a pair meets in a deep tree.
ROWS_OF_A_WALK = 32


class Nodes(NamedTuple):
    """The columns of a table of tests. (Defined here because compiled code is cached with the names of its argument types.)"""

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    if_le: np.ndarray
    if_gt: np.ndarray


@kernel
def walk(a, b, whole, nodes, at):
    """The exit that the pair of rows a and b reaches from row ``at`` (itself an exit if negative)."""
    while at >= 0:
        value = pair_value(nodes.kind[at], nodes.feature[at], a, b, whole)
        at = nodes.if_le[at] if value <= nodes.threshold[at] else nodes.if_gt[at]
    return -1 - at


@kernel
def route_pairs(A, B, first, second, whole, nodes, entry, exits):
    """OUT ``exits[p]``: the exit that pair p reaches from row ``entry``."""
    for p in range(first.shape[0]):
        exits[p] = walk(A[first[p]], B[second[p]], whole[p], nodes, entry)


@kernel
def add_exit_values(A, B, first, second, whole, nodes, values, total):
    """OUT ``total[p]``: grows by the value of the exit that pair p reaches from row 0."""
    # A sweep looks at all rows of the table, a walk at those that the pair meets.
    if first.shape[0] * ROWS_OF_A_WALK < nodes.kind.shape[0]:
        for p in range(first.shape[0]):
            total[p] += values[walk(A[first[p]], B[second[p]], whole[p], nodes, 0)]
    else:
        _sweep(A, B, first, second, whole, nodes, values, total)


@kernel
def _sweep(A, B, first, second, whole, nodes, values, total):
    """The same, row of the table by row: each row sends the pairs that came to it on to one of two lists.

    A walk waits for memory at each test to learn where the next one is; here the pairs of a row do not wait for one another.
    The lists are chains: ``last[r]`` is the pair that came last to row r, or to exit r - n_rows, and ``before[p]`` the one
    that came there before pair p.
    """
    n_rows = nodes.kind.shape[0]
    last = np.full(n_rows + values.shape[0], -1, dtype=np.int32)
    before = np.arange(-1, first.shape[0] - 1).astype(np.int32)
    last[0] = first.shape[0] - 1
    for row in range(n_rows):
        p = last[row]
        if p < 0:
            continue
        kind, f, threshold = nodes.kind[row], nodes.feature[row], nodes.threshold[row]
        le, gt = nodes.if_le[row], nodes.if_gt[row]
        le = le if le >= 0 else n_rows - 1 - le
        gt = gt if gt >= 0 else n_rows - 1 - gt
        if le == gt:  # one list, not two copies of it
            threshold = np.inf
        last_le, last_gt = last[le], last[gt]
        while p >= 0:
            following = before[p]
            above = pair_value(kind, f, A[first[p]], B[second[p]], whole[p]) > threshold
            # Choices without jumps: which way a pair goes cannot be foreseen.
            before[p] = last_gt if above else last_le
            last_gt = p if above else last_gt
            last_le = last_le if above else p
            p = following
        last[gt] = last_gt
        last[le] = last_le
    for e in range(values.shape[0]):
        p = last[n_rows + e]
        while p >= 0:
            total[p] += values[e]
            p = before[p]
