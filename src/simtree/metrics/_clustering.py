"""Metrics of clusters of samples whose identities are known: by pairs, and by samples (B-cubed)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.matrices import check_all_unmasked
from simtree.metrics._roc import FloatArray


class ClusterScores(NamedTuple):
    """How well clusters agree with identities.

    Parameters
    ----------
    precision : float
        Of what is in one cluster, the share that belongs together.
    recall : float
        Of what belongs together, the share that is in one cluster.
    f1 : float
        Harmonic mean of both.

    Examples
    --------
    >>> from simtree.metrics import ClusterScores
    >>> ClusterScores(0.5, 1.0, 2 / 3).recall
    1.0
    """

    precision: float
    recall: float
    f1: float


def pairwise_cluster_scores(y: ArrayLike, labels: ArrayLike) -> ClusterScores:
    """Return the precision and recall of clusters over pairs of samples.

    Precision is the share of same pairs among all pairs within a cluster; recall is the share of pairs within a cluster among
    all same pairs. Large clusters and identities dominate, because their pairs grow with the square of their size.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Identity of each sample.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    ClusterScores
        Precision, recall and their harmonic mean; precision is 1 if no two samples are in one cluster, and recall if no two
        samples are of one identity.

    Examples
    --------
    >>> from simtree.metrics import pairwise_cluster_scores
    >>> scores = pairwise_cluster_scores(["ann", "ann", "ann", "bob"], [0, 0, 1, 1])
    >>> scores.precision, round(scores.recall, 3)
    (0.5, 0.333)
    """
    both, of_clusters, of_identities, *_ = _contingency(y, labels)
    n_both, n_together, n_same = (float((sizes * (sizes - 1.0)).sum()) for sizes in (both, of_clusters, of_identities))
    return _scores(n_both / n_together if n_together else 1.0, n_both / n_same if n_same else 1.0)


def b_cubed(y: ArrayLike, labels: ArrayLike) -> ClusterScores:
    """Return the B-cubed precision and recall of clusters: means over samples, so that each sample counts alike.

    The precision of a sample is the share of its cluster, itself included, that is of its identity; its recall is the share
    of its identity that is in its cluster.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Identity of each sample.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    ClusterScores
        Precision, recall and their harmonic mean.

    Examples
    --------
    >>> from simtree.metrics import b_cubed
    >>> scores = b_cubed(["ann", "ann", "ann", "bob"], [0, 0, 1, 1])
    >>> scores.precision, round(scores.recall, 3)
    (0.75, 0.667)
    """
    both, of_clusters, of_identities, clusters, identities = _contingency(y, labels)
    n = both.sum()
    precision = float((both * both / of_clusters[clusters]).sum() / n)
    return _scores(precision, float((both * both / of_identities[identities]).sum() / n))


def _contingency(
    y: ArrayLike, labels: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64]]:
    """Return the sizes of overlaps, clusters and identities, and the cluster and the identity of each overlap.

    Only overlaps with a sample are listed: their number is at most that of samples, also for many clusters and identities.
    """
    check_all_unmasked(y=y, labels=labels)
    names, found = np.asarray(y), np.asarray(labels)
    if names.ndim != 1 or names.shape != found.shape:
        raise ValueError(f"y has shape {names.shape} and labels has shape {found.shape}; give one of each per sample.")
    if not len(names):
        raise ValueError("y and labels are empty; give at least one sample.")
    identity, cluster = (np.unique(values, return_inverse=True)[1].astype(np.int64) for values in (names, found))
    n_identities = int(identity.max()) + 1
    codes, both = np.unique(cluster * n_identities + identity, return_counts=True)
    clusters, identities = np.divmod(codes, n_identities)
    sizes = (both, np.bincount(cluster), np.bincount(identity))
    return *(counts.astype(np.float64) for counts in sizes), clusters, identities


def _scores(precision: float, recall: float) -> ClusterScores:
    total = precision + recall
    return ClusterScores(precision, recall, 2.0 * precision * recall / total if total else 0.0)
