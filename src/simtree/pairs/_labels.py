"""Labels and groups as integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.matrices import check_unmasked


def encode_labels(y: ArrayLike, name: str = "y") -> NDArray[np.int64]:
    """Classes as numbers 0, 1, ... by first appearance, so that other names for the classes change nothing."""
    check_unmasked(name, y)
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


def encode_groups(groups: ArrayLike, n_samples: int, name: str = "groups") -> NDArray[np.int64]:
    """Groups of points as numbers; ``(n_pairs, 2)`` groups are those of the two points of each pair."""
    check_unmasked(name, groups)
    names = np.asarray(groups)
    if names.size != n_samples:
        raise ValueError(f"{name} has shape {names.shape}; give one entry for each of the {n_samples} points (two a pair).")
    return encode_labels(names.ravel(), name)
