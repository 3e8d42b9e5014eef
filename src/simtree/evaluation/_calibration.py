"""Scores as probabilities: an increasing function of the score, fitted on data that training has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simtree._utils.validation import count
from simtree.io._fields import MAX_COUNT, Fields
from simtree.metrics import FloatArray, cllr, min_cllr, monotone_llr
from simtree.pairs._sampling import IndexPairs

# Folds of identities for the honest cost after calibration.
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Calibration:
    """From scores to log-likelihood ratios: linear between knots, constant beyond them, never falling.

    Parameters
    ----------
    knots, llr : array of shape (n_knots,)
        Scores, strictly increasing, and their natural log-likelihood ratios.
    cllr_before, cllr_after : float
        Cost in bits of the scores read as log-likelihood ratios, and of those of calibrations fitted on other identities.
    cllr_least : float
        What no increasing function can go below on these pairs.
    n_same, n_different : int
        Numbers of pairs.

    Examples
    --------
    >>> calibration = Calibration(np.array([0.0, 1.0]), np.array([-1.0, 1.0]), 0.9, 0.5, 0.4, 10, 90)
    >>> calibration.evidence(np.array([0.75, 5.0]))
    array([0.5, 1. ])
    >>> print(calibration)
    Cllr 0.9 before, 0.5 after calibration (on identities it was not fitted on; at least 0.4), 10 same and 90 different pairs
    """

    knots: FloatArray
    llr: FloatArray
    cllr_before: float
    cllr_after: float
    cllr_least: float
    n_same: int
    n_different: int

    def __str__(self) -> str:
        return (
            f"Cllr {self.cllr_before:.3g} before, {self.cllr_after:.3g} after calibration (on identities it was not fitted on; "
            f"at least {self.cllr_least:.3g}), {self.n_same:,} same and {self.n_different:,} different pairs"
        )

    def evidence(self, scores: FloatArray) -> FloatArray:
        """Log-likelihood ratios of scores."""
        return np.asarray(np.interp(scores, self.knots, self.llr))

    def probability(self, scores: FloatArray, prior: float) -> FloatArray:
        """Probability that a pair with this score is a same pair, if a share ``prior`` of all pairs is."""
        log_odds = self.evidence(scores) + np.log(prior) - np.log1p(-prior)
        return np.asarray(1.0 / (1.0 + np.exp(-log_odds)))

    def _get_state(self) -> dict[str, Any]:
        """Return what a model file holds of the calibration."""
        return vars(self)

    @classmethod
    def _from_state(cls, fields: Fields) -> Calibration:
        """Return the calibration of a model file."""
        knots = fields.array("knots", "float64", (None,))
        llr = fields.array("llr", "float64", knots.shape)
        if not len(knots) or (knots[1:] <= knots[:-1]).any() or (llr[1:] < llr[:-1]).any():
            raise fields.fail("knots", "must rise, and llr must not fall")
        return cls(
            knots,
            llr,
            cllr_before=fields.number("cllr_before", 0.0),
            cllr_after=fields.number("cllr_after", 0.0),
            cllr_least=fields.number("cllr_least", 0.0),
            n_same=fields.integer("n_same", 0, MAX_COUNT),
            n_different=fields.integer("n_different", 0, MAX_COUNT),
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, arrays as lists."""
        return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in vars(self).items()}


def fit_calibration(scores: FloatArray, pairs: IndexPairs, units: Any, random_state: int = 0) -> Calibration:
    """Fit on all pairs; the cost afterwards is that of fits on other units, on pairs of those left out.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
    pairs : IndexPairs
    units : array of shape (n_points,)
        The identity of each point, from 0.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    Calibration
    """
    n_units = int(units.max()) + 1
    folds = np.random.default_rng(random_state).permutation(n_units)[units] % min(N_FOLDS, n_units)
    first, second = folds[pairs.first], folds[pairs.second]
    llr, judged = np.zeros(len(scores)), np.zeros(len(scores), dtype=np.bool_)
    for fold in range(int(folds.max()) + 1):
        seen, left_out = (first != fold) & (second != fold), (first == fold) & (second == fold)
        if left_out.any() and 0 < np.count_nonzero(pairs.same[seen]) < np.count_nonzero(seen):
            llr[left_out] = np.interp(scores[left_out], *monotone_llr(scores[seen], pairs.same[seen]))
            judged |= left_out
    kinds = pairs.same[judged]
    if not 0 < np.count_nonzero(kinds) < len(kinds):
        raise ValueError(
            f"y has {count(n_units, 'identity', 'identities')}; "
            "too few for folds with same and different pairs, give more identities."
        )
    return Calibration(
        *monotone_llr(scores, pairs.same),
        cllr_before=cllr(scores[judged], kinds),
        cllr_after=cllr(llr[judged], kinds),
        cllr_least=min_cllr(scores[judged], kinds),
        n_same=pairs.n_same,
        n_different=len(pairs) - pairs.n_same,
    )
