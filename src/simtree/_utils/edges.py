"""Edges of the bins that the values of a column are divided into."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import MAX_FLOAT


def find_edges(
    sampled: NDArray[np.float64],
    max_bins: int | None,
    all_values: Callable[[], NDArray[np.float64]],
    distinct: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the sorted edges of at most ``max_bins`` bins: midpoints between neighbouring values.

    If there are more distinct values than bins, the bins hold about equally many sampled values. All values are requested
    only if the distinct sampled values fit the bins, and what is ``distinct`` among them is not known. Infinite ones, which are
    states of missing values, are left out.

    Examples
    --------
    >>> values = np.array([3.0, 1.0, 1.0, 2.0])
    >>> find_edges(values, max_bins=255, all_values=lambda: values).tolist()
    [1.5, 2.5]
    """
    ordered = in_order(sampled)
    if max_bins is None or count_distinct(ordered) <= max_bins:
        distinct = distinct_values(in_order(all_values())) if distinct is None else distinct
        if max_bins is None or len(distinct) <= max_bins:
            return _midpoints(distinct[:-1], distinct[1:])
        if len(ordered) < max_bins:  # most sampled values are missing
            ordered = in_order(all_values())
    cuts = np.arange(1, max_bins) * len(ordered) // max_bins
    cuts = cuts[cuts > 0]
    return np.unique(_midpoints(ordered[cuts - 1], ordered[cuts]))


def in_order(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the finite values in increasing order; sorting all of them is faster than selecting the finite ones first."""
    ordered = np.sort(values, axis=None)
    return ordered[np.searchsorted(ordered, -MAX_FLOAT) : np.searchsorted(ordered, MAX_FLOAT, side="right")]


def distinct_values(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distinct values of an array in increasing order."""
    return np.concatenate([ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]])


def count_distinct(ordered: NDArray[np.float64]) -> int:
    """Return the number of distinct values of an array in increasing order."""
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _midpoints(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the midpoints of neighbours, always less than the upper one so that the edge separates them."""
    middle = 0.5 * low + 0.5 * high
    return np.where((low < middle) & (middle < high), middle, low)
