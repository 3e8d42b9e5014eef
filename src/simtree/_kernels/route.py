"""Routing of pairs through a flat table of tests.

Row r of the table tests whether coordinate (kind[r], feature[r]) of a pair is at most threshold[r], and continues with row
if_le[r] or if_gt[r]. A negative number -1 - e ends the walk at exit e. Rows may share successors (the table is a DAG), and each
successor has a larger row number, so every walk terminates.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import pair_value

# Approximate number of tests on the path of a pair in a deep tree.
TESTS_PER_WALK = 32


class Nodes(NamedTuple):
    """Columns of a table of tests, defined here because compiled code is cached under the names of its argument types."""

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    if_le: np.ndarray
    if_gt: np.ndarray


@kernel
def walk(a, b, pairwise, nodes, at):
    """Return the exit that the pair of samples a and b reaches from row ``at`` (itself an exit if negative)."""
    while at >= 0:
        value = pair_value(nodes.kind[at], nodes.feature[at], a, b, pairwise)
        at = nodes.if_le[at] if value <= nodes.threshold[at] else nodes.if_gt[at]
    return -1 - at


@kernel
def route_pairs(A, B, first, second, pairwise, nodes, entry, exits):
    """Fill ``exits[p]`` with the exit that pair p reaches from row ``entry``."""
    for p in range(first.shape[0]):
        exits[p] = walk(A[first[p]], B[second[p]], pairwise[p], nodes, entry)


@kernel
def add_exit_values(A, B, first, second, pairwise, nodes, values, total):
    """Add to ``total[p]`` the value of the exit that pair p reaches from row 0."""
    # A sweep visits every row of the table, a walk only those on the path of the pair.
    if first.shape[0] * TESTS_PER_WALK < nodes.kind.shape[0]:
        for p in range(first.shape[0]):
            total[p] += values[walk(A[first[p]], B[second[p]], pairwise[p], nodes, 0)]
    else:
        _sweep(A, B, first, second, pairwise, nodes, values, total)


@kernel
def _sweep(A, B, first, second, pairwise, nodes, values, total):
    """Add exit values as `add_exit_values` does, row by row: each row distributes its pairs over the lists of its successors.

    A walk stalls on memory at each test to find the next one; in a sweep, the pairs of a row do not depend on one another.
    The lists are linked: ``last[r]`` is the last pair that reached row r (or exit r - n_rows), and ``before[p]`` is the pair
    that reached the same row before pair p.
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
        if le == gt:  # both successors share one list
            threshold = np.inf
        last_le, last_gt = last[le], last[gt]
        while p >= 0:
            previous = before[p]
            above = pair_value(kind, f, A[first[p]], B[second[p]], pairwise[p]) > threshold
            # Selections instead of branches, which would be mispredicted.
            before[p] = last_gt if above else last_le
            last_gt = p if above else last_gt
            last_le = last_le if above else p
            p = previous
        last[gt] = last_gt
        last[le] = last_le
    for e in range(values.shape[0]):
        p = last[n_rows + e]
        while p >= 0:
            total[p] += values[e]
            p = before[p]
