"""Data as users have them, on a cluster: Dask arrays and frames, NumPy arrays and frames."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection

from simtree._utils.matrices import check_rows
from simtree.dask._cluster import Cluster
from simtree.dask._samples import ArraySamples, ChunkSamples, ClusterSamples
from simtree.pairs._inputs import DTYPES


def known(cluster: Cluster, values: Any) -> Any:
    """Return labels, groups and the like as they are known here; those on the cluster are fetched."""
    if not is_dask_collection(values):
        return values
    found = cluster.client.gather(cluster.client.compute(values))
    return found.to_numpy() if hasattr(found, "to_numpy") else np.asarray(found)


def samples_on(cluster: Cluster, X: Any) -> ClusterSamples:
    """Return samples of any form on a cluster; a collection that fits into every worker is fetched, to be sent to all."""
    if isinstance(X, ClusterSamples):
        return X
    if not is_dask_collection(X):
        head = X[:0] if hasattr(X, "columns") else None
        return ArraySamples(cluster, check_rows("X", X, dtype=DTYPES, order="C"), head)
    array, head = as_rows(X)
    n_bytes = np.prod(array.shape) * array.dtype.itemsize  # NaN if the number of rows is not known
    chunks = ChunkSamples(cluster, array, head)
    if np.isnan(n_bytes):
        n_bytes = len(chunks) * chunks.shape[1] * chunks.dtype.itemsize
    return ArraySamples(cluster, np.asarray(chunks), head) if cluster.has_room_for(int(n_bytes)) else chunks


def as_rows(X: Any) -> tuple[Any, Any]:
    """Return a collection as a Dask array whose chunks have all columns, and an empty part of it with their names."""
    if hasattr(X, "columns"):
        return X.to_dask_array(), X._meta
    if not isinstance(X, da.Array):
        raise TypeError(f"X is a {type(X).__name__}; give a Dask array or frame, or what fit of the model takes.")
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; give one row per sample.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return X, np.empty((0, X.shape[1]), dtype=X.dtype)


def stacked_pairs(X: Any) -> tuple[Any, np.ndarray[Any, Any] | None]:
    """Return pairs of shape (n_pairs, 2, n_features) as samples and row numbers; samples as they are, with None."""
    if np.ndim(X) != 3:
        return X, None
    if X.shape[1] != 2:
        raise ValueError(f"X has shape {X.shape}; pairs must be (n_pairs, 2, n_features).")
    n_pairs, _, n_features = X.shape
    if np.isnan(n_pairs):
        raise ValueError("X has chunks of unknown length; call X.compute_chunk_sizes() first.")
    numbers = np.arange(2 * n_pairs, dtype=np.int32).reshape(-1, 2)
    if not is_dask_collection(X):
        return np.asarray(X).reshape(-1, n_features), numbers
    X = X.rechunk({1: -1, 2: -1})
    chunks = (tuple(2 * n for n in X.chunks[0]), (n_features,))
    return X.map_blocks(_stacked, drop_axis=1, chunks=chunks, dtype=X.dtype), numbers


def _stacked(pairs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return pairs.reshape(-1, pairs.shape[-1])
