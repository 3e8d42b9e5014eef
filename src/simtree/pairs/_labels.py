"""Labels and groups as integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.matrices import check_unmasked
from simtree._utils.validation import count


def encode_labels(y: ArrayLike, name: str = "y") -> NDArray[np.int64]:
    """Return labels as integers 0, 1, ... by first appearance, so that renaming labels changes nothing.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of any type that can be sorted or hashed.
    name : str, default="y"
        Parameter to name in errors.

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels as integers.
    """
    check_unmasked(name, y)
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"{name} has shape {labels.shape}; give one label for each sample.")
    n_unlabelled = n_missing(labels)
    if n_unlabelled:
        raise ValueError(
            f"{name} holds {count(n_unlabelled, 'missing label')} (None, NaN, NaT or NA); "
            "leave out the samples without a label."
        )
    if labels.dtype == object:  # labels of several types cannot be sorted, but can be hashed
        known: dict[object, int] = {}
        return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)
    _, first_seen, codes = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first_seen), dtype=np.int64)
    rank[np.argsort(first_seen)] = np.arange(len(first_seen))
    return rank[codes.ravel()]


def n_missing(labels: NDArray[Any]) -> int:
    """Return the number of missing labels."""
    if labels.dtype.kind == "f":
        return int(np.count_nonzero(np.isnan(labels)))
    if labels.dtype.kind in "mM":
        return int(np.count_nonzero(np.isnat(labels)))
    if labels.dtype != object:
        return 0
    # pandas has its own objects for missing values, which are not equal to anything (nor is NaN to itself).
    marks = ("NAType", "NaTType")
    return sum(
        label is None or type(label).__name__ in marks or (isinstance(label, float) and math.isnan(label)) for label in labels
    )


def encode_groups(groups: ArrayLike, n_samples: int, name: str = "groups") -> NDArray[np.int64]:
    """Return groups as integers, one per sample.

    Parameters
    ----------
    groups : array-like of shape (n_samples,) or (n_pairs, 2)
        Group of each sample; with two columns, of the two samples of each pair.
    n_samples : int
        Number of samples.
    name : str, default="groups"
        Parameter to name in errors.

    Returns
    -------
    ndarray of shape (n_samples,)
        The groups as integers.
    """
    check_unmasked(name, groups)
    names = np.asarray(groups)
    if names.size != n_samples:
        raise ValueError(f"{name} has shape {names.shape}; give one entry per sample, {n_samples} in all (two per pair).")
    return encode_labels(names.ravel(), name)


def linked_units(labels: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the smallest units of samples that divide neither a label nor a group, as integers.

    Parameters
    ----------
    labels, groups : ndarray of int of shape (n_samples,)
        Label and group of each sample, as integers 0, 1, ...

    Returns
    -------
    ndarray of int of shape (n_samples,)
        Unit of each sample.

    Examples
    --------
    >>> linked_units(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 1, 2, 2]))  # groups 0 and 1 share label 1
    array([0, 0, 0, 0, 1, 1])
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_labels, n_groups = int(labels.max()) + 1, int(groups.max()) + 1
    links = coo_array((np.ones(len(labels)), (labels, n_labels + groups)), shape=(n_labels + n_groups,) * 2)
    _, linked = connected_components(links, directed=False)
    return np.asarray(np.unique(linked[labels], return_inverse=True)[1], dtype=np.int64)
