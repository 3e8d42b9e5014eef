"""Data as users have them, on a cluster: Dask arrays and frames, NumPy arrays and frames."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection

from simtree.dask._cluster import Cluster
from simtree.dask._given import GivenArray, GivenChunks
from simtree.pairs._store import GivenSamples


def known(cluster: Cluster, values: Any) -> Any:
    """Return labels, groups and the like as they are known here; those on the cluster are fetched."""
    if not is_dask_collection(values):
        return values
    found = cluster.client.gather(cluster.client.compute(values))
    return found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)


def known_samples(cluster: Cluster, X: Any) -> Any:
    """Return samples as they are known here, data frames as they are; those on the cluster are fetched."""
    if is_dask_collection(X) and hasattr(X, "columns"):
        return cluster.client.gather(cluster.client.compute(X))
    return known(cluster, X)


def samples_on(cluster: Cluster, X: Any) -> GivenSamples:
    """Return samples of any form on a cluster, for a model to check or read them."""
    if isinstance(X, GivenSamples):
        return X
    return GivenChunks(cluster, *as_rows(X)) if is_dask_collection(X) else GivenArray(cluster, X)


def as_rows(X: Any) -> tuple[Any, Any]:
    """Return a collection whose chunks have all columns, and an empty part of it with their names and types."""
    if hasattr(X, "columns"):
        return X, X._meta
    if not isinstance(X, da.Array):
        raise TypeError(f"X is a {type(X).__name__}; give a Dask array or frame, or what fit of the model takes.")
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; give one row per sample.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return X, np.empty((0, X.shape[1]), dtype=X.dtype)


def stacked_pairs(X: Any) -> tuple[Any, np.ndarray[Any, Any] | None]:
    """Return pairs of shape (n_pairs, 2, n_features) as samples and row numbers; samples as they are, with None."""
    if isinstance(X, list | tuple):
        X = _as_array(X)
    if hasattr(X, "columns") or np.ndim(X) != 3:
        return X, None
    if X.shape[1] != 2:
        raise ValueError(f"X has shape {X.shape}; pairs must be (n_pairs, 2, n_features).")
    n_pairs, _, n_features = X.shape
    if np.isnan(n_pairs):
        raise ValueError("X has chunks of unknown length; call X.compute_chunk_sizes() first.")
    numbers = np.arange(2 * n_pairs, dtype=np.int32).reshape(-1, 2)
    if not is_dask_collection(X):
        return X.reshape(-1, n_features), numbers
    X = X.rechunk({1: -1, 2: -1})
    chunks = (tuple(2 * n for n in X.chunks[0]), (n_features,))
    return X.map_blocks(_stacked, drop_axis=1, chunks=chunks, dtype=X.dtype), numbers


def _as_array(X: Any) -> np.ndarray[Any, Any]:
    """Return nested lists as an array, in which numbers beside words stay numbers."""
    found = np.asarray(X)
    return np.asarray(X, dtype=object) if found.dtype.kind in "US" else found


def _stacked(pairs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return pairs.reshape(-1, pairs.shape[-1])
