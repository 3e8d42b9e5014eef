"""Routing of samples through classification trees, summing the class shares of the leaves they reach.

Row r of the table tests whether feature[r] of a sample is at most threshold[r], and continues with row if_le[r] or if_gt[r]. A
negative number -1 - e ends at leaf e, whose classes and shares are the entries leaf_start[e] to leaf_start[e + 1] of leaf_class
and leaf_share. This storage is sparse because most leaves hold one class only.
"""

from typing import NamedTuple

import numpy as np

from simtree._kernels.compilation import kernel


class ClassTrees(NamedTuple):
    """Columns of one table for all trees; ``root`` holds the row (or the leaf) at which each tree starts."""

    feature: np.ndarray
    threshold: np.ndarray
    if_le: np.ndarray
    if_gt: np.ndarray
    leaf_start: np.ndarray
    leaf_class: np.ndarray
    leaf_share: np.ndarray
    root: np.ndarray


@kernel
def add_class_shares(X, rows, trees, total):
    """Add to ``total[p]`` the class shares of the leaf that row ``rows[p]`` of X reaches in each tree."""
    for t in range(trees.root.shape[0]):
        for p in range(rows.shape[0]):
            i = rows[p]
            at = trees.root[t]
            while at >= 0:
                at = trees.if_le[at] if X[i, trees.feature[at]] <= trees.threshold[at] else trees.if_gt[at]
            leaf = -1 - at
            for e in range(trees.leaf_start[leaf], trees.leaf_start[leaf + 1]):
                total[p, trees.leaf_class[e]] += trees.leaf_share[e]
