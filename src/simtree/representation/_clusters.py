"""Clusters of rows by k-means, each large enough that its mean does not disclose a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.representation._base import Codes

# A cluster has at least this many distinct training rows, or identities, so that its mean does not disclose one of them.
MIN_MEMBERS = 5
# Iterations of k-means.
MAX_ITERATIONS = 10


def cluster_numbers(rows: NDArray[Any], n_clusters: int, rng: np.random.Generator, identities: Codes | None = None) -> Codes:
    """Return the cluster of each row, for rows that are distinct; there may be fewer clusters than asked for.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Distinct rows, at least `MIN_MEMBERS` times as many as clusters.
    n_clusters : int
        Number of clusters.
    rng : Generator
        Random numbers.
    identities : ndarray of shape (n_rows,), optional
        Identity of each row, if a cluster must have rows of `MIN_MEMBERS` identities. By default each row is one.

    Returns
    -------
    ndarray of shape (n_rows,)
        Numbers of clusters from 0 on, all of which occur, with rows of at least `MIN_MEMBERS` identities each; all zero if no
        cluster has them.

    Examples
    --------
    >>> rows = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [9.0], [9.1], [9.2], [9.3], [9.4]])
    >>> np.bincount(cluster_numbers(rows, 2, np.random.default_rng(0))).tolist()
    [5, 5]
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import pairwise_distances_argmin

    seed = int(rng.integers(2**31))
    # A few iterations are enough: centres must be spread out, not optimal.
    centres = KMeans(n_clusters, init="random", n_init=1, max_iter=MAX_ITERATIONS, random_state=seed).fit(rows).cluster_centers_
    # A cluster of few could disclose one of them: drop it, and assign its members to the nearest remaining one.
    nearest = pairwise_distances_argmin(rows, centres)
    members = np.column_stack([nearest, np.arange(len(rows)) if identities is None else identities])
    n_identities = np.bincount(np.unique(members, axis=0)[:, 0], minlength=n_clusters)
    kept = centres[n_identities >= MIN_MEMBERS]
    if not len(kept):
        return np.zeros(len(rows), dtype=np.int64)
    found: Codes = pairwise_distances_argmin(rows, kept).astype(np.int64)
    return found
