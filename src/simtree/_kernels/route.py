"""Walking pairs down a flat table of tests.

Row r of the table asks whether coordinate (kind[r], feature[r]) of a pair is at most threshold[r], and goes on with row
if_le[r] or if_gt[r]. A negative number -1 - e ends the walk at exit e. Rows may share successors (the table is a DAG), and each
successor has a larger number than its row, so each walk ends.
"""

import numpy as np

from simtree._kernels.compilation import kernel
from simtree._kernels.coordinates import coordinate_value


@kernel
def route_pairs(A, B, first, second, nodes, entry, exits):
    """OUT ``exits[p]``: the exit that pair p reaches, starting at row ``entry`` (itself an exit if negative)."""
    for p in range(first.shape[0]):
        i = first[p]
        j = second[p]
        at = entry
        while at >= 0:
            f = nodes.feature[at]
            value = coordinate_value(nodes.kind[at], np.float64(A[i, f]), np.float64(B[j, f]))
            at = nodes.if_le[at] if value <= nodes.threshold[at] else nodes.if_gt[at]
        exits[p] = -1 - at
