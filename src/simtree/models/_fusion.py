"""Fusion of the scores of several similarities: calibrated log-likelihood ratios, combined by logistic regression.

The scores of each member become log-likelihood ratios by an increasing map. The fused score is a sum of these, with weights of
at least zero, plus a constant: again a log-likelihood ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import MAX_FLOAT
from simtree.io._fields import Fields
from simtree.metrics import FloatArray
from simtree.metrics._likelihood_ratio import likelihood_ratios
from simtree.metrics._roc import grouped

# More knots in a model file are treated as damage.
MAX_KNOTS = 1 << 20
# Penalty on the squares of weights: it keeps them finite where pairs are separated perfectly, and shares them among equals.
RIDGE = 1e-4
# Ratios of one block may differ by this much.
ROUNDING = 1e-9
# Beyond this, the sum of the ratios of many members might overflow.
MAX_RATIO = MAX_FLOAT / (1 << 20)


@dataclass(frozen=True, eq=False)
class MonotoneMap:
    """Increasing map from scores to log-likelihood ratios: linear between knots, and linear beyond them.

    Parameters
    ----------
    knots, llr : array of shape (n_knots,)
        Scores, strictly increasing, and their natural log-likelihood ratios, which never decrease.
    slope : float
        Slope beyond the first and the last knot.

    Examples
    --------
    >>> MonotoneMap(np.array([0.0, 1.0]), np.array([-1.0, 1.0]), 0.5).apply(np.array([-2.0, 0.5, 3.0]))
    array([-2.,  0.,  2.])
    """

    knots: FloatArray
    llr: FloatArray
    slope: float

    def apply(self, scores: FloatArray) -> FloatArray:
        """Return the log-likelihood ratio of each score."""
        with np.errstate(over="ignore"):
            beyond = np.maximum(scores - self.knots[-1], 0.0) - np.maximum(self.knots[0] - scores, 0.0)
            ratios = np.interp(scores, self.knots, self.llr) + self.slope * beyond
        return np.asarray(np.clip(ratios, -MAX_RATIO, MAX_RATIO))

    def _get_state(self) -> dict[str, Any]:
        """Return the fields that a model file stores."""
        return vars(self)

    @classmethod
    def _from_state(cls, fields: Fields) -> MonotoneMap:
        """Return the map that a model file stores."""
        knots = fields.array("knots", "float64", (None,))
        llr = fields.array("llr", "float64", knots.shape, low=-MAX_RATIO, high=MAX_RATIO)
        if not 0 < len(knots) <= MAX_KNOTS or (knots[1:] <= knots[:-1]).any() or (llr[1:] < llr[:-1]).any():
            raise fields.fail("knots", "must be strictly increasing, and llr non-decreasing")
        return cls(knots, llr, fields.number("slope", 0.0, MAX_FLOAT))


def fit_map(scores: FloatArray, same: NDArray[np.bool_]) -> MonotoneMap:
    """Fit the map from scores to log-likelihood ratios by centred isotonic regression.

    Isotonic regression pools scores into blocks with one ratio each. Here a block has its ratio at the mean of its scores, and
    the map is linear between these means, so that it makes no ties and keeps the order of scores. One same and one different
    pair are added above all scores, and below, to keep the ratios finite.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Scores of the pairs.
    same : array of bool of shape (n_pairs,)
        Whether each is a same pair; both kinds must occur.

    Returns
    -------
    MonotoneMap
        The map. It is constant if higher scores are not more often those of same pairs.

    Examples
    --------
    >>> fitted = fit_map(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, True, False, False]))
    >>> fitted.knots.tolist(), fitted.llr.round(2).tolist()
    ([1.5, 3.5], [-1.1, 1.1])
    """
    values, n_same, n_different = grouped(scores, same)
    pad = np.ones(1, dtype=np.int64)
    ratios = np.log(likelihood_ratios(np.concatenate([pad, n_same, pad]), np.concatenate([pad, n_different, pad]))[1:-1])
    weights = n_same / n_same.sum() + n_different / n_different.sum()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(ratios) > ROUNDING) + 1])
    of_block = np.add.reduceat(weights, starts)
    lengths = np.diff(np.append(starts, len(values)))
    # Each value is multiplied by a share, so that the sum does not overflow.
    knots = np.add.reduceat(values * (weights / np.repeat(of_block, lengths)), starts)
    knots, first = np.unique(knots, return_index=True)
    llr = ratios[starts][first]
    with np.errstate(over="ignore"):
        slope = (llr[-1] - llr[0]) / (knots[-1] - knots[0]) if len(knots) > 1 else 0.0
    return MonotoneMap(knots, llr, float(min(slope, MAX_FLOAT)))


@dataclass(frozen=True, eq=False)
class Fusion:
    """The maps and weights by which the scores of members become one log-likelihood ratio.

    Parameters
    ----------
    maps : tuple of MonotoneMap
        Map of each member.
    weights : array of shape (n_members,)
        Weights of the log-likelihood ratios, at least zero.
    constant : float
        Constant that is added.
    """

    maps: tuple[MonotoneMap, ...]
    weights: FloatArray
    constant: float

    def apply(self, scores: Sequence[FloatArray]) -> FloatArray:
        """Return the fused score of each pair, from the scores of each member."""
        return self.combine([monotone.apply(own) for own, monotone in zip(scores, self.maps, strict=True)])

    def combine(self, ratios: Sequence[FloatArray]) -> FloatArray:
        """Return the fused score of each pair, from the log-likelihood ratios of each member."""
        total = np.full(np.shape(ratios[0]), self.constant)
        for own, weight in zip(ratios, self.weights, strict=True):
            total += self.part(own, weight)
        return total

    @staticmethod
    def part(ratios: FloatArray, weight: float) -> FloatArray:
        """Return the part of one member in the fused score, from its log-likelihood ratios."""
        return np.clip(weight * ratios, -MAX_RATIO, MAX_RATIO)


def fit_fusion(scores: Sequence[FloatArray], same: NDArray[np.bool_], prior: float) -> Fusion:
    """Fit the maps and weights of members on the scores of pairs that they have not seen.

    Parameters
    ----------
    scores : sequence of arrays of shape (n_pairs,)
        Scores of each member.
    same : array of bool of shape (n_pairs,)
        Whether each is a same pair.
    prior : float
        Share of same pairs that the logistic regression works for, whatever it is in the data: small for low false
        positive rates.

    Returns
    -------
    Fusion
        The fitted maps and weights.
    """
    maps = tuple(fit_map(of_member, same) for of_member in scores)
    ratios = np.column_stack([monotone.apply(of_member) for monotone, of_member in zip(maps, scores, strict=True)])
    return Fusion(maps, *fit_weights(ratios, same, prior))


def fit_weights(ratios: FloatArray, same: NDArray[np.bool_], prior: float) -> tuple[FloatArray, float]:
    """Fit non-negative weights of log-likelihood ratios, and a constant, by logistic regression.

    Parameters
    ----------
    ratios : array of shape (n_pairs, n_members)
        Log-likelihood ratios of each member.
    same : array of bool of shape (n_pairs,)
        Whether each is a same pair.
    prior : float
        Share of same pairs that the regression works for.

    Returns
    -------
    weights : array of shape (n_members,)
        Weights, at least zero.
    constant : float
        The constant.

    Examples
    --------
    >>> ratios = np.array([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, 0.0]])
    >>> weights, _ = fit_weights(ratios, np.array([True, True, False, False, False, True]), 0.5)
    >>> bool(weights[0] > 0.1), bool(weights[1] == 0.0)
    (True, True)
    """
    from scipy.optimize import minimize  # imported here to keep the import of simtree fast

    sign = np.where(same, 1.0, -1.0)
    n_same = np.count_nonzero(same)
    offset = np.log(prior) - np.log1p(-prior)
    # In units of the cost of knowing nothing, so that the penalty is as strong for any prior.
    unit = -prior * np.log(prior) - (1.0 - prior) * np.log1p(-prior)
    share = np.where(same, prior / n_same, (1.0 - prior) / (len(same) - n_same)) / unit
    # Columns of one size, so that the search takes even steps; the weights are then those of the columns as they are.
    sizes = np.maximum(np.sqrt(np.mean(ratios * ratios, axis=0)), np.finfo(np.float64).tiny)
    columns = ratios / sizes

    def cost(point: FloatArray) -> tuple[float, FloatArray]:
        weights, constant = point[:-1], point[-1]
        margin = sign * (columns @ weights + constant + offset)
        small = np.exp(-np.abs(margin))  # log(1 + exp(-margin)) and its derivative, without overflow
        loss = share @ (np.log1p(small) + np.maximum(-margin, 0.0)) + RIDGE * weights @ weights
        pull = share * sign * np.where(margin > 0.0, small, 1.0) / (1.0 + small)
        return float(loss), -np.append(columns.T @ pull - 2.0 * RIDGE * weights, pull.sum())

    start = np.append(np.full(columns.shape[1], 1.0 / columns.shape[1]) * sizes, 0.0)
    bounds = [(0.0, None)] * columns.shape[1] + [(None, None)]
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200, "ftol": 1e-8})
    return np.asarray(found.x[:-1] / sizes), float(found.x[-1])
