"""Metrics of 1:N search: ranks of the true identity, and rates of misses and false alarms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.matrices import check_all_unmasked, check_unmasked
from simtree._utils.validation import check_integer
from simtree.metrics._roc import FloatArray


class Searches(NamedTuple):
    """Results of 1:N searches, one entry per probe.

    Parameters
    ----------
    mated : array of shape (n_probes,)
        Best score with a gallery sample of the probe's own identity; -inf if the gallery has none.
    nonmated : array of shape (n_probes,)
        Best score with a gallery sample of another identity.
    ranks : array of shape (n_probes,)
        Rank of the probe's own identity, from 1, with ties counted against it; 0 if the gallery has no such identity.

    Examples
    --------
    >>> from simtree.metrics import searches
    >>> searches([[0.9, 0.2, 0.9]], ["ann"], ["ann", "ann", "bob"]).ranks
    array([2])
    """

    mated: FloatArray
    nonmated: FloatArray
    ranks: NDArray[np.int64]


def searches(scores: ArrayLike, probes: ArrayLike, gallery: ArrayLike) -> Searches:
    """Return the best scores and ranks of 1:N searches from a matrix of scores.

    The score of an identity is the best score of its gallery samples.

    Parameters
    ----------
    scores : array-like of shape (n_probes, n_gallery)
        Scores of probes and gallery samples; larger means more similar.
    probes : array-like of shape (n_probes,)
        Identity of each probe.
    gallery : array-like of shape (n_gallery,)
        Identity of each gallery sample.

    Returns
    -------
    Searches
        Best mated score, best non-mated score and rank of each probe.

    Examples
    --------
    >>> from simtree.metrics import cmc, searches
    >>> found = searches([[0.9, 0.2, 0.5], [0.3, 0.4, 0.1]], ["ann", "bob"], ["ann", "eve", "bob"])
    >>> found.ranks
    array([1, 3])
    >>> cmc(found.ranks, max_rank=3)
    array([0.5, 0.5, 1. ])
    """
    check_all_unmasked(scores=scores, probes=probes, gallery=gallery)
    table, rows, columns = np.asarray(scores, dtype=np.float64), np.asarray(probes), np.asarray(gallery)
    if table.shape != (len(rows), len(columns)) or not len(columns):
        raise ValueError(
            f"scores has shape {table.shape}; give one row for each of the {len(rows)} probes and one column for each of "
            f"the {len(columns)} gallery samples, and at least one gallery sample."
        )
    if np.isnan(table).any():
        raise ValueError(
            f"scores must not be NaN, got {np.count_nonzero(np.isnan(table))} of {table.size}: use -inf for missing scores."
        )
    names, codes = np.unique(columns, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    best = np.maximum.reduceat(table[:, order], np.searchsorted(codes[order], np.arange(len(names))), axis=1)
    own = rows[:, None] == names[None, :]
    mated = np.where(own, best, -np.inf).max(axis=1)
    others = np.where(own, -np.inf, best)
    ranks = np.where(own.any(axis=1), 1 + np.count_nonzero(others >= mated[:, None], axis=1), 0)
    return Searches(mated, others.max(axis=1), ranks)


def cmc(ranks: ArrayLike, max_rank: int = 20, *, weights: ArrayLike | None = None) -> FloatArray:
    """Return the cumulative match characteristic: the share of searches with the true identity at rank k or better, for each k.

    Parameters
    ----------
    ranks : array-like of int
        Ranks as in `Searches`; searches whose identity is not in the gallery (rank 0) are ignored.
    max_rank : int, default=20
        The largest rank k.
    weights : array-like of float, optional
        Weight of each search; by default every search counts once.

    Returns
    -------
    array of shape (max_rank,)
        Shares for k = 1, ..., max_rank.

    Examples
    --------
    >>> from simtree.metrics import cmc
    >>> cmc([1, 1, 3, 0], max_rank=3).round(3)
    array([0.667, 0.667, 1.   ])
    """
    check_integer("max_rank", max_rank, 1)
    check_unmasked("ranks", ranks)
    found = np.asarray(ranks)
    weight = _weights(weights, len(found))
    found, weight = found[found > 0], weight[found > 0]
    if not len(found):
        raise ValueError("ranks holds no search whose identity is in the gallery; give at least one.")
    at_rank = np.bincount(np.minimum(found, max_rank + 1), weight, minlength=max_rank + 2)[1:-1]
    return np.asarray(np.cumsum(at_rank) / weight.sum())


@overload
def fnir_at_fpir(found: Searches, fpir: float, *, max_rank: int = ..., weights: ArrayLike | None = ...) -> float: ...
@overload
def fnir_at_fpir(
    found: Searches, fpir: Sequence[float] | FloatArray, *, max_rank: int = ..., weights: ArrayLike | None = ...
) -> FloatArray: ...
def fnir_at_fpir(
    found: Searches, fpir: float | Sequence[float] | FloatArray, *, max_rank: int = 1, weights: ArrayLike | None = None
) -> float | FloatArray:
    """Return the lowest FNIR of open-set identification over the thresholds whose FPIR is at most `fpir`.

    FNIR, the false negative identification rate, is the share of searches for an enrolled identity that miss it, because it is
    not among the best `max_rank` or scores below the threshold. FPIR, the false positive identification rate, is the share of
    searches for an identity that is not enrolled in which any identity reaches the threshold.

    Parameters
    ----------
    found : Searches
        Results of searches. Probes whose identity is in the gallery are the searches for enrolled identities; all probes, with
        their own identity ignored, are the searches for identities that are not enrolled.
    fpir : float or array
        Maximum false positive identification rate, in [0, 1].
    max_rank : int, default=1
        Maximum rank at which the true identity counts as found.
    weights : array-like of float, optional
        Weight of each search; by default every search counts once.

    Returns
    -------
    float or array
        False negative identification rate, with the shape of `fpir`.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.metrics import Searches, fnir_at_fpir
    >>> found = Searches(np.array([5.0, 4.0, 1.0]), np.array([2.0, 3.0, 4.0]), np.array([1, 1, 2]))
    >>> round(fnir_at_fpir(found, 0.0), 3), round(fnir_at_fpir(found, 0.4), 3)
    (0.667, 0.333)
    """
    check_integer("max_rank", max_rank, 1)
    targets = np.asarray(fpir, dtype=np.float64)
    if not ((targets >= 0.0) & (targets <= 1.0)).all():
        raise ValueError(f"fpir={fpir!r} must lie in [0, 1]; give a share of searches such as 0.01.")
    weight = _weights(weights, len(found.ranks))
    order = np.argsort(found.nonmated)[::-1]
    alarms = found.nonmated[order]
    enrolled = found.ranks > 0
    if not enrolled.any():
        raise ValueError("found holds no search whose identity is in the gallery; give at least one.")
    listed = np.where(found.ranks[enrolled] <= max_rank, found.mated[enrolled], -np.inf)
    # If k alarms are allowed, the threshold lies just above alarm k + 1, so that ties never add an alarm.
    n_allowed = np.searchsorted(np.cumsum(weight[order]) / weight.sum(), targets, side="right")
    next_alarm = np.append(alarms, -np.inf)[n_allowed]
    hits = (listed > next_alarm[..., None]) @ weight[enrolled]
    value = np.asarray(1.0 - hits / weight[enrolled].sum())
    return float(value) if targets.ndim == 0 else value


def _weights(weights: ArrayLike | None, n: int) -> FloatArray:
    """Return the weight of each search; one by default."""
    check_unmasked("weights", weights)
    return np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
