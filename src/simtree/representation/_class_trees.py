"""Trees with values per class as plain arrays: numbering of nodes, several trees in one table, and model files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.posterior import ClassTrees
from simtree.io._fields import Fields


def numbered(inner: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the number of each node: tests are numbered 0, 1, ... and leaves -1, -2, ..., in their original order.

    Examples
    --------
    >>> numbered(np.array([True, False, True, False, False]))
    array([ 0, -1,  1, -2, -3], dtype=int32)
    """
    return np.where(inner, np.cumsum(inner, dtype=np.int32) - 1, -np.cumsum(~inner, dtype=np.int32))


def join_trees(trees: list[ClassTrees]) -> ClassTrees:
    """Return the trees in one table: tests, leaves and entries of later trees follow those of earlier ones."""
    n_tests, n_leaves, n_entries = 0, 0, 0
    moved = []
    for tree in trees:

        def move(to: NDArray[np.int32], n_tests: int = n_tests, n_leaves: int = n_leaves) -> NDArray[np.int32]:
            return np.where(to >= 0, to + n_tests, to - n_leaves).astype(np.int32)

        start = tree.leaf_start[:-1] + n_entries
        moved.append(tree._replace(if_le=move(tree.if_le), if_gt=move(tree.if_gt), leaf_start=start, root=move(tree.root)))
        n_tests += len(tree.feature)
        n_leaves += len(start)
        n_entries += len(tree.leaf_class)
    joined = ClassTrees(*(np.concatenate(columns) for columns in zip(*moved, strict=True)))
    return joined._replace(leaf_start=np.append(joined.leaf_start, n_entries))


def read_trees(fields: Fields, n_features: int, n_columns: int, *, dtype: str, low: float, high: float) -> ClassTrees:
    """Return trees read from a model file, through which no way can loop or leave the table.

    Thresholds and values of leaves have the type ``dtype``, and values lie between ``low`` and ``high``.
    """
    feature = fields.array("feature", "int32", (None,), low=0, high=n_features - 1)
    leaf_start = fields.array("leaf_start", "int64", (None,), low=0)
    leaf_class = fields.array("leaf_class", "int32", (None,), low=0, high=n_columns - 1)
    n_tests, n_leaves = len(feature), len(leaf_start) - 1
    if n_leaves < 1 or leaf_start[0] != 0 or leaf_start[-1] != len(leaf_class) or (leaf_start[1:] < leaf_start[:-1]).any():
        raise fields.fail("leaf_start", "must increase from 0 to the number of leaf entries")
    successors: dict[str, Any] = {
        name: fields.array(name, "int32", (n_tests,), low=-n_leaves, high=n_tests - 1) for name in ("if_le", "if_gt")
    }
    for name, successor in successors.items():
        if ((successor >= 0) & (successor <= np.arange(n_tests))).any():
            raise fields.fail(name, "must lead from each test to a later one, or to a leaf")
    return ClassTrees(
        feature=feature,
        threshold=fields.array("threshold", dtype, (n_tests,)),
        leaf_start=leaf_start,
        leaf_class=leaf_class,
        leaf_share=fields.array("leaf_share", dtype, leaf_class.shape, low=low, high=high),
        root=fields.array("root", "int32", (None,), low=-n_leaves, high=n_tests - 1),
        **successors,
    )
