"""How far two kinds of scores lie apart, and what scores are worth as evidence (log-likelihood ratios)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.matrices import MAX_SQUARED
from simtree.metrics._roc import FloatArray, check_scores

Counts = NDArray[np.int64]


def d_prime(scores: ArrayLike, same: ArrayLike) -> float:
    """Distance of the means of the two kinds of scores, in root mean square standard deviations.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Larger means more alike.
    same : array of shape (n_pairs,)
        Whether each pair shares its label: bool, 0/1 or -1/+1; both kinds must occur.

    Returns
    -------
    float
        Infinite if neither kind varies.

    Examples
    --------
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
    """`d_prime` from moments."""
    spread = math.sqrt((var_same + var_different) / 2)
    gap = float(mean_same - mean_different)
    return gap / spread if spread else math.copysign(math.inf, gap) if gap else 0.0


def cllr(llr: ArrayLike, same: ArrayLike) -> float:
    """Cost of log-likelihood ratios, in bits: 0 is perfect, 1 says nothing, and more misleads.

    Parameters
    ----------
    llr : array of shape (n_pairs,)
        Natural logarithms of likelihood ratios, such as the scores of a forest with ``aggregation="llr"``.
    same : array of shape (n_pairs,)
        Whether each pair shares its label: bool, 0/1 or -1/+1; both kinds must occur.

    Returns
    -------
    float

    Examples
    --------
    >>> cllr([0, 0], [True, False])
    1.0
    """
    value, is_same = check_scores(llr, same)
    n_same = int(np.count_nonzero(is_same))
    return (same_cost(value[is_same]) / n_same + different_cost(value[~is_same]) / (len(value) - n_same)) / 2


def same_cost(llr: FloatArray) -> float:
    """Sum of the costs of same pairs, in bits."""
    with np.errstate(over="ignore"):  # the cost of numbers near the largest there are is infinite
        return float(np.logaddexp(0.0, -llr).sum()) / math.log(2)


def different_cost(llr: FloatArray) -> float:
    """Sum of the costs of different pairs, in bits."""
    with np.errstate(over="ignore"):
        return float(np.logaddexp(0.0, llr).sum()) / math.log(2)


def min_cllr(scores: ArrayLike, same: ArrayLike) -> float:
    """Least `cllr` that an increasing function of the scores can have on these pairs: what is lost in the order alone.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Larger means more alike.
    same : array of shape (n_pairs,)
        Whether each pair shares its label: bool, 0/1 or -1/+1; both kinds must occur.

    Returns
    -------
    float

    Examples
    --------
    >>> min_cllr([5, 3, 2], [True, True, False])
    0.0
    """
    _, n_same, n_different = grouped(*check_scores(scores, same))
    return min_cost(n_same, n_different)


def monotone_llr(scores: ArrayLike, same: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The increasing function of the scores that is the best evidence (pool adjacent violators), kept finite at its ends.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Larger means more alike.
    same : array of shape (n_pairs,)
        Whether each pair shares its label: bool, 0/1 or -1/+1; both kinds must occur.

    Returns
    -------
    knots, llr : arrays of shape (n_knots,)
        Log-likelihood ratios (natural) at strictly increasing scores; between them it is linear, beyond them constant.

    Notes
    -----
    One pair of each kind is added above all scores and one below: no number of pairs is enough for certainty.

    Examples
    --------
    >>> knots, llr = monotone_llr([4, 3, 2, 1], [True, True, False, False])
    >>> llr.round(2).tolist()
    [-1.1, -1.1, 1.1, 1.1]
    """
    values, n_same, n_different = grouped(*check_scores(scores, same))
    pad = np.ones(1, dtype=np.int64)
    ratio = likelihood_ratios(np.concatenate([pad, n_same, pad]), np.concatenate([pad, n_different, pad]))[1:-1]
    # The ends of each step are enough.
    changes = np.flatnonzero(np.diff(ratio) > 0.0)
    keep = np.unique(np.concatenate([[0], changes, changes + 1, [len(values) - 1]]))
    return values[keep], np.log(ratio[keep])


def grouped(score: FloatArray, is_same: NDArray[np.bool_]) -> tuple[FloatArray, Counts, Counts]:
    """Distinct scores in increasing order, and how many same and different pairs have each."""
    values, where = np.unique(score, return_inverse=True)
    n_same = np.bincount(where[is_same], minlength=len(values))
    return values, n_same, np.bincount(where, minlength=len(values)) - n_same


def likelihood_ratios(n_same: Counts, n_different: Counts) -> FloatArray:
    """Ratio of the shares of same and of different pairs at each of increasing scores, made to increase by pooling."""
    from sklearn.isotonic import isotonic_regression  # here: not needed for an import

    share_same, share_different = n_same / n_same.sum(), n_different / n_different.sum()
    weight = share_same + share_different
    seen = weight > 0.0
    pooled = np.zeros(len(weight))
    pooled[seen] = isotonic_regression(share_same[seen] / weight[seen], sample_weight=weight[seen], y_min=0.0, y_max=1.0)
    pooled = np.maximum.accumulate(pooled)
    with np.errstate(divide="ignore"):
        return np.asarray(pooled / (1.0 - pooled))


def min_cost(n_same: Counts, n_different: Counts) -> float:
    """`min_cllr` from counts at increasing scores."""
    ratio = likelihood_ratios(n_same, n_different)
    with np.errstate(divide="ignore"):
        llr = np.log(ratio)
    of_same, of_different = n_same > 0, n_different > 0
    cost_same = np.sum(np.logaddexp(0.0, -llr[of_same]) * n_same[of_same]) / n_same.sum()
    cost_different = np.sum(np.logaddexp(0.0, llr[of_different]) * n_different[of_different]) / n_different.sum()
    return float(cost_same + cost_different) / (2 * math.log(2))
