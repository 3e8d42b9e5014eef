"""The border: what users hand over (arrays, identifiers, labels) becomes checked arrays and row numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Index = NDArray[np.int32]


def class_codes(y: ArrayLike, name: str = "y") -> NDArray[np.int64]:
    """Classes as numbers 0, 1, ... by first appearance, so that other names for the classes change nothing."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"{name} has shape {labels.shape}; give one class for each point.")
    n_unlabelled = n_missing(labels)
    if n_unlabelled:
        raise ValueError(
            f"{name} holds {n_unlabelled} missing labels (None, NaN, NaT or NA); leave out the points without a class."
        )
    if labels.dtype == object:  # labels of several types cannot be sorted, but they can be looked up
        known: dict[object, int] = {}
        return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)
    _, first_seen, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first_seen), dtype=np.int64)
    rank[np.argsort(first_seen)] = np.arange(len(first_seen))
    return rank[codes.ravel()]


def n_missing(labels: NDArray[Any]) -> int:
    """How many labels stand for a missing one."""
    if labels.dtype.kind == "f":
        return int(np.count_nonzero(np.isnan(labels)))
    if labels.dtype.kind in "mM":
        return int(np.count_nonzero(np.isnat(labels)))
    if labels.dtype != object:
        return 0
    # pandas marks missing values by objects of its own, which are not equal to anything (nor is nan to itself).
    marks = ("NAType", "NaTType")
    return sum(
        label is None or type(label).__name__ in marks or (isinstance(label, float) and math.isnan(label)) for label in labels
    )


def group_numbers(groups: ArrayLike, n_points: int, name: str = "groups") -> NDArray[np.int64]:
    """Groups of points as numbers; ``(n_pairs, 2)`` groups are those of the two points of each pair."""
    names = np.asarray(groups)
    if names.size != n_points:
        raise ValueError(f"{name} has shape {names.shape}; give one entry for each of the {n_points} points (two a pair).")
    return class_codes(names.ravel(), name)


def check_index_pairs(pairs: ArrayLike, n_points: int) -> tuple[Index, Index]:
    """The two columns of ``(n_pairs, 2)`` row numbers, checked against the number of points."""
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"pairs has shape {rows.shape}; row numbers of pairs must have shape (n_pairs, 2).")
    if not np.issubdtype(rows.dtype, np.integer):
        raise TypeError(f"pairs has dtype {rows.dtype}; row numbers of pairs must be integers.")
    if rows.size and (rows.min() < 0 or rows.max() >= n_points):
        bad = rows[(rows < 0) | (rows >= n_points)][0]
        raise IndexError(f"pairs holds the row number {bad}; X has {n_points} rows, numbered from 0.")
    return np.ascontiguousarray(rows[:, 0], dtype=np.int32), np.ascontiguousarray(rows[:, 1], dtype=np.int32)


def stack_pairs(pairs: NDArray[Any]) -> tuple[NDArray[Any], Index, Index]:
    """Points and row numbers of ``(n_pairs, 2, n_features)`` pairs: pair p is rows 2p and 2p + 1. The points are a view."""
    n_pairs = pairs.shape[0]
    first = np.arange(0, 2 * n_pairs, 2, dtype=np.int32)
    return pairs.reshape(2 * n_pairs, pairs.shape[2]), first, first + np.int32(1)


def look_up(
    pairs: ArrayLike, preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike]
) -> tuple[NDArray[Any], Index, Index]:
    """Points and row numbers of pairs of identifiers, through metric-learn's preprocessor.

    It is an array whose rows the identifiers number, or a function, called once with the different identifiers.
    """
    keys = np.asarray(pairs)
    if keys.ndim != 2 or keys.shape[1] != 2:
        raise ValueError(f"pairs has shape {keys.shape}; with a preprocessor it must be (n_pairs, 2).")
    if not callable(preprocessor):
        table = np.asarray(preprocessor)
        if table.ndim != 2:
            raise ValueError(f"preprocessor has shape {table.shape}; give an (n_points, n_features) array, or a function.")
        return table, *check_index_pairs(keys, len(table))
    different, rows = np.unique(keys, return_inverse=True)
    table = np.asarray(preprocessor(different))
    if table.ndim != 2 or len(table) != len(different):
        raise ValueError(
            f"preprocessor returned shape {table.shape} for {len(different)} identifiers; it must return one row for each."
        )
    return table, *check_index_pairs(rows.reshape(keys.shape), len(table))
