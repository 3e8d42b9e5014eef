"""Separation of the scores of same and different pairs, and the quality of scores as log-likelihood ratios."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from simtree._utils.matrices import MAX_SQUARED
from simtree.metrics._roc import Counts, FloatArray, check_scores, grouped


def d_prime(scores: ArrayLike, same: ArrayLike) -> float:
    """Return the sensitivity index d': the difference of the mean scores of same and different pairs, standardised.

    The unit is the root mean square of the standard deviations of the scores of same and of different pairs.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Scores of the pairs; larger means more similar.
    same : array of shape (n_pairs,)
        True for same pairs: bool, 0/1 or -1/+1. Same and different pairs must both occur.

    Returns
    -------
    float
        The index; infinite if the scores vary neither among same nor among different pairs.

    Examples
    --------
    >>> from simtree.metrics import d_prime
    >>> d_prime([4, 2, 1, -1], [True, True, False, False])
    3.0
    """
    score, is_same = check_scores(scores, same)
    score = score / unit_of(float(np.abs(score).max()))
    genuine, impostor = score[is_same], score[~is_same]
    return separation(genuine.mean(), genuine.var(), impostor.mean(), impostor.var())


def unit_of(largest: float) -> float:
    """Return what to divide scores by so that their squares neither overflow nor vanish; 1 for ordinary scores."""
    return largest if largest > MAX_SQUARED or 0.0 < largest < 1.0 / MAX_SQUARED else 1.0


def separation(mean_same: float, var_same: float, mean_different: float, var_different: float) -> float:
    """Return `d_prime` from means and variances."""
    spread = math.sqrt((var_same + var_different) / 2)
    gap = float(mean_same - mean_different)
    return gap / spread if spread else math.copysign(math.inf, gap) if gap else 0.0


def cllr(llr: ArrayLike, same: ArrayLike) -> float:
    """Return the cost of log-likelihood ratios (Cllr), in bits.

    A cost of 0 is perfect, 1 is that of scores without information, and a larger cost means that the ratios mislead.

    Parameters
    ----------
    llr : array of shape (n_pairs,)
        Natural logarithms of likelihood ratios, such as the scores of a forest with ``aggregation="llr"``.
    same : array of shape (n_pairs,)
        True for same pairs: bool, 0/1 or -1/+1. Same and different pairs must both occur.

    Returns
    -------
    float
        The cost.

    Examples
    --------
    >>> from simtree.metrics import cllr
    >>> cllr([0, 0], [True, False])
    1.0
    """
    value, is_same = check_scores(llr, same)
    n_same = int(np.count_nonzero(is_same))
    return (same_cost(value[is_same]) / n_same + different_cost(value[~is_same]) / (len(value) - n_same)) / 2


def same_cost(llr: FloatArray, weights: FloatArray | None = None) -> float:
    """Return the sum of the costs of same pairs, weighted if weights are given, in bits."""
    with np.errstate(over="ignore"):  # the cost of numbers near the largest there are is infinite
        cost = np.logaddexp(0.0, -llr)
        return float(cost.sum() if weights is None else cost @ weights) / math.log(2)


def different_cost(llr: FloatArray, weights: FloatArray | None = None) -> float:
    """Return the sum of the costs of different pairs, weighted if weights are given, in bits."""
    with np.errstate(over="ignore"):
        cost = np.logaddexp(0.0, llr)
        return float(cost.sum() if weights is None else cost @ weights) / math.log(2)


def min_cllr(scores: ArrayLike, same: ArrayLike) -> float:
    """Return the minimum `cllr` over all increasing functions of the scores: the part of the cost due to their order.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Scores of the pairs; larger means more similar.
    same : array of shape (n_pairs,)
        True for same pairs: bool, 0/1 or -1/+1. Same and different pairs must both occur.

    Returns
    -------
    float
        The minimum cost, in bits.

    Examples
    --------
    >>> from simtree.metrics import min_cllr
    >>> min_cllr([5, 3, 2], [True, True, False])
    0.0
    """
    _, n_same, n_different = grouped(*check_scores(scores, same))
    return min_cost(n_same, n_different)


def monotone_llr(scores: ArrayLike, same: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Fit log-likelihood ratios as an increasing function of the scores, by pooling adjacent violators (PAV).

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Scores of the pairs; larger means more similar.
    same : array of shape (n_pairs,)
        True for same pairs: bool, 0/1 or -1/+1. Same and different pairs must both occur.

    Returns
    -------
    knots : array of shape (n_knots,)
        Strictly increasing scores.
    llr : array of shape (n_knots,)
        Log-likelihood ratios (natural) at the knots. The function is linear between knots and constant beyond them.

    Notes
    -----
    One same and one different pair are added above all scores, and below, to keep the ratios finite.

    Examples
    --------
    >>> from simtree.metrics import monotone_llr
    >>> knots, llr = monotone_llr([4, 3, 2, 1], [True, True, False, False])
    >>> llr.round(2).tolist()
    [-1.1, -1.1, 1.1, 1.1]
    """
    values, n_same, n_different = grouped(*check_scores(scores, same))
    pad = np.ones(1, dtype=np.int64)
    ratio = likelihood_ratios(np.concatenate([pad, n_same, pad]), np.concatenate([pad, n_different, pad]))[1:-1]
    # Keep only the two ends of each step.
    changes = np.flatnonzero(np.diff(ratio) > 0.0)
    keep = np.unique(np.concatenate([[0], changes, changes + 1, [len(values) - 1]]))
    return values[keep], np.log(ratio[keep])


def likelihood_ratios(n_same: Counts | FloatArray, n_different: Counts | FloatArray) -> FloatArray:
    """Return the isotonic ratio of the shares of same and of different pairs at increasing scores."""
    from sklearn.isotonic import isotonic_regression  # imported here to keep the import of simtree fast

    share_same, share_different = n_same / n_same.sum(), n_different / n_different.sum()
    weight = share_same + share_different
    seen = weight > 0.0
    pooled = np.zeros(len(weight))
    pooled[seen] = isotonic_regression(share_same[seen] / weight[seen], sample_weight=weight[seen], y_min=0.0, y_max=1.0)
    pooled = np.maximum.accumulate(pooled)
    with np.errstate(divide="ignore"):
        return np.asarray(pooled / (1.0 - pooled))


def min_cost(n_same: Counts | FloatArray, n_different: Counts | FloatArray) -> float:
    """Return `min_cllr` from the counts at increasing scores."""
    ratio = likelihood_ratios(n_same, n_different)
    with np.errstate(divide="ignore"):
        llr = np.log(ratio)
    of_same, of_different = n_same > 0, n_different > 0
    cost_same = np.sum(np.logaddexp(0.0, -llr[of_same]) * n_same[of_same]) / n_same.sum()
    cost_different = np.sum(np.logaddexp(0.0, llr[of_different]) * n_different[of_different]) / n_different.sum()
    return float(cost_same + cost_different) / (2 * math.log(2))
