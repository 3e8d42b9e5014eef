"""Walking pairs down a flat table of tests.

Row r of the table asks whether coordinate (kind[r], feature[r]) of a pair is at most threshold[r], and goes on with row
if_le[r] or if_gt[r]. A negative number -1 - e ends the walk at exit e. Rows may share successors (the table is a DAG), and each
successor has a larger number than its row, so each walk ends.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import coordinate_value


class Nodes(NamedTuple):
    """The columns of a table of tests. (Defined here because compiled code is cached with the names of its argument types.)"""

    kind: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    if_le: np.ndarray
    if_gt: np.ndarray


@kernel
def walk(a, b, nodes, at):
    """The exit that the pair of rows a and b reaches from row ``at`` (itself an exit if negative)."""
    while at >= 0:
        f = nodes.feature[at]
        value = coordinate_value(nodes.kind[at], np.float64(a[f]), np.float64(b[f]))
        at = nodes.if_le[at] if value <= nodes.threshold[at] else nodes.if_gt[at]
    return -1 - at


@kernel
def route_pairs(A, B, first, second, nodes, entry, exits):
    """OUT ``exits[p]``: the exit that pair p reaches from row ``entry``."""
    for p in range(first.shape[0]):
        exits[p] = walk(A[first[p]], B[second[p]], nodes, entry)


@kernel
def add_exit_values(A, B, first, second, nodes, values, total):
    """OUT ``total[p]``: grows by the value of the exit that pair p reaches from row 0."""
    for p in range(first.shape[0]):
        total[p] += values[walk(A[first[p]], B[second[p]], nodes, 0)]
