"""Figures of 1:N search: how high the true identity ranks, and how often a stranger is taken for somebody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_integer
from simtree.metrics._roc import FloatArray


class Searches(NamedTuple):
    """What 1:N searches found, one entry a probe.

    Parameters
    ----------
    mated : array of shape (n_probes,)
        Best score with a sample of the probe's own identity; -inf if the gallery has none.
    nonmated : array of shape (n_probes,)
        Best score with a sample of another identity.
    ranks : array of shape (n_probes,)
        Rank of the own identity, from 1, ties counted against it; 0 if the gallery has none.

    Examples
    --------
    >>> searches([[0.9, 0.2, 0.9]], ["ann"], ["ann", "ann", "bob"]).ranks
    array([2])
    """

    mated: FloatArray
    nonmated: FloatArray
    ranks: NDArray[np.int64]


def searches(scores: ArrayLike, probes: ArrayLike, gallery: ArrayLike) -> Searches:
    """Best scores and ranks of searches, from a matrix of scores. An identity is as alike as its best sample.

    Parameters
    ----------
    scores : array-like of shape (n_probes, n_gallery)
        Larger for more alike.
    probes, gallery : array-like
        Identity of each row, and of each column.

    Returns
    -------
    Searches

    Examples
    --------
    >>> found = searches([[0.9, 0.2, 0.5], [0.3, 0.4, 0.1]], ["ann", "bob"], ["ann", "eve", "bob"])
    >>> found.ranks
    array([1, 3])
    >>> cmc(found.ranks, max_rank=3)
    array([0.5, 0.5, 1. ])
    """
    table, rows, columns = np.asarray(scores, dtype=np.float64), np.asarray(probes), np.asarray(gallery)
    if table.shape != (len(rows), len(columns)) or not len(columns):
        raise ValueError(
            f"scores has shape {table.shape}; give a row for each of the {len(rows)} probes and a column for each of "
            f"the {len(columns)} gallery samples, of which there must be one."
        )
    if np.isnan(table).any():
        raise ValueError(
            f"scores must not be NaN, got {np.count_nonzero(np.isnan(table))} of {table.size}: give -inf to misses."
        )
    names, codes = np.unique(columns, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    best = np.maximum.reduceat(table[:, order], np.searchsorted(codes[order], np.arange(len(names))), axis=1)
    own = rows[:, None] == names[None, :]
    mated = np.where(own, best, -np.inf).max(axis=1)
    others = np.where(own, -np.inf, best)
    ranks = np.where(own.any(axis=1), 1 + np.count_nonzero(others >= mated[:, None], axis=1), 0)
    return Searches(mated, others.max(axis=1), ranks)


def cmc(ranks: ArrayLike, max_rank: int = 20) -> FloatArray:
    """Cumulative match characteristic: the share of searches whose true identity is among the best k, for k = 1, 2, ...

    Parameters
    ----------
    ranks : array-like of int
        As in `Searches`; searches without a true identity in the gallery (0) do not count.
    max_rank : int, default=20
        The last k.

    Returns
    -------
    array of shape (max_rank,)

    Examples
    --------
    >>> cmc([1, 1, 3, 0], max_rank=3).round(3)
    array([0.667, 0.667, 1.   ])
    """
    check_integer("max_rank", max_rank, 1)
    found = np.asarray(ranks)
    found = found[found > 0]
    if not len(found):
        raise ValueError("ranks holds no search whose identity is in the gallery; give at least one.")
    return np.cumsum(np.bincount(np.minimum(found, max_rank + 1), minlength=max_rank + 2)[1:-1]) / len(found)


@overload
def fnir_at_fpir(found: Searches, fpir: float, *, max_rank: int = ...) -> float: ...
@overload
def fnir_at_fpir(found: Searches, fpir: Sequence[float] | FloatArray, *, max_rank: int = ...) -> FloatArray: ...
def fnir_at_fpir(found: Searches, fpir: float | Sequence[float] | FloatArray, *, max_rank: int = 1) -> float | FloatArray:
    """Open-set identification: lowest share of searches that miss the true identity, with at most `fpir` false alarms.

    A search of somebody enrolled misses if the true identity is not among the best `max_rank`, or scores below the threshold
    (FNIR). A search of somebody not enrolled is a false alarm if anybody reaches the threshold (FPIR).

    Parameters
    ----------
    found : Searches
        Probes with a mate count as searches of enrolled people; all probes, their own identity put aside, as searches of people
        who are not.
    fpir : float or array, in [0, 1]
    max_rank : int, default=1

    Returns
    -------
    float or array
        As `fpir`.

    Examples
    --------
    >>> found = Searches(np.array([5.0, 4.0, 1.0]), np.array([2.0, 3.0, 4.0]), np.array([1, 1, 2]))
    >>> round(fnir_at_fpir(found, 0.0), 3), round(fnir_at_fpir(found, 0.4), 3)
    (0.667, 0.333)
    """
    check_integer("max_rank", max_rank, 1)
    targets = np.asarray(fpir, dtype=np.float64)
    if not ((targets >= 0.0) & (targets <= 1.0)).all():
        raise ValueError(f"fpir={fpir!r} must lie in [0, 1]; give a share of searches such as 0.01.")
    alarms = np.sort(found.nonmated)[::-1]
    enrolled = found.ranks > 0
    if not enrolled.any():
        raise ValueError("found holds no search whose identity is in the gallery; give at least one.")
    listed = np.where(found.ranks[enrolled] <= max_rank, found.mated[enrolled], -np.inf)
    # With k alarms allowed, the threshold lies just above the next one, so that ties never add an alarm.
    n_allowed = np.searchsorted(np.arange(1, len(alarms) + 1) / len(alarms), targets, side="right")
    next_alarm = np.append(alarms, -np.inf)[n_allowed]
    hits = np.count_nonzero(listed > next_alarm[..., None], axis=-1)
    value = np.asarray(1.0 - hits / np.count_nonzero(enrolled))
    return float(value) if targets.ndim == 0 else value
