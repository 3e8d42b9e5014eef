"""Calibration of scores as log-likelihood ratios, by an increasing function that is fitted on held-out data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simtree._utils.validation import count
from simtree.io._fields import MAX_COUNT, Fields
from simtree.metrics import FloatArray, cllr, min_cllr, monotone_llr
from simtree.pairs._sources import IndexPairs

# Folds of identities for the held-out cost after calibration.
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Calibration:
    """Non-decreasing map from scores to log-likelihood ratios: linear between knots, constant beyond them.

    Parameters
    ----------
    knots, llr : array of shape (n_knots,)
        Scores, strictly increasing, and their natural log-likelihood ratios.
    cllr_before, cllr_after : float
        Cost (Cllr) in bits of the scores taken as log-likelihood ratios, and of calibrated scores, cross-validated by identity.
    cllr_min : float
        Minimum cost over all increasing functions of the scores of these pairs.
    n_same, n_different : int
        Numbers of same and different pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.evaluation import Calibration
    >>> calibration = Calibration(np.array([0.0, 1.0]), np.array([-1.0, 1.0]), 0.9, 0.5, 0.4, 10, 90)
    >>> calibration.log_likelihood_ratio(np.array([0.75, 5.0]))
    array([0.5, 1. ])
    >>> print(calibration)
    Cllr 0.9 before, 0.5 after calibration (on identities it was not fitted on; at least 0.4), 10 same and 90 different pairs
    """

    knots: FloatArray
    llr: FloatArray
    cllr_before: float
    cllr_after: float
    cllr_min: float
    n_same: int
    n_different: int

    def __str__(self) -> str:
        return (
            f"Cllr {self.cllr_before:.3g} before, {self.cllr_after:.3g} after calibration (on identities it was not fitted on; "
            f"at least {self.cllr_min:.3g}), {self.n_same:,} same and {self.n_different:,} different pairs"
        )

    def log_likelihood_ratio(self, scores: FloatArray) -> FloatArray:
        """Return the log-likelihood ratio of each score.

        Parameters
        ----------
        scores : ndarray
            Scores of pairs.

        Returns
        -------
        ndarray
            Natural log-likelihood ratios, of the same shape.
        """
        return np.asarray(np.interp(scores, self.knots, self.llr))

    def probability(self, scores: FloatArray, prior: float) -> FloatArray:
        """Return the probability that a pair with each score is a same pair.

        Parameters
        ----------
        scores : ndarray
            Scores of pairs.
        prior : float
            Proportion of same pairs among all pairs, in (0, 1).

        Returns
        -------
        ndarray
            Probabilities, of the same shape.
        """
        log_odds = self.log_likelihood_ratio(scores) + np.log(prior) - np.log1p(-prior)
        return np.asarray(1.0 / (1.0 + np.exp(-log_odds)))

    def _get_state(self) -> dict[str, Any]:
        """Return the fields that a model file stores."""
        return vars(self)

    @classmethod
    def _from_state(cls, fields: Fields) -> Calibration:
        """Return the calibration that a model file stores."""
        knots = fields.array("knots", "float64", (None,))
        llr = fields.array("llr", "float64", knots.shape)
        if not len(knots) or (knots[1:] <= knots[:-1]).any() or (llr[1:] < llr[:-1]).any():
            raise fields.fail("knots", "must be strictly increasing, and llr non-decreasing")
        return cls(
            knots,
            llr,
            cllr_before=fields.number("cllr_before", 0.0),
            cllr_after=fields.number("cllr_after", 0.0),
            cllr_min=fields.number("cllr_min", 0.0),
            n_same=fields.integer("n_same", 0, MAX_COUNT),
            n_different=fields.integer("n_different", 0, MAX_COUNT),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, with arrays as lists.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in vars(self).items()}


def fit_calibration(scores: FloatArray, pairs: IndexPairs, identities: Any, random_state: int = 0) -> Calibration:
    """Fit a calibration on all pairs, and estimate its cost by cross-validation over identities.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Scores of the pairs.
    pairs : IndexPairs
        The pairs, and which of them are same pairs.
    identities : array of shape (n_samples,)
        Identity of each sample, numbered from 0.
    random_state : int, default=0
        Random seed of the folds.

    Returns
    -------
    Calibration
        The calibration with its costs.
    """
    n_identities = int(identities.max()) + 1
    folds = np.random.default_rng(random_state).permutation(n_identities)[identities] % min(N_FOLDS, n_identities)
    first, second = folds[pairs.first], folds[pairs.second]
    llr, held_out = np.zeros(len(scores)), np.zeros(len(scores), dtype=np.bool_)
    for fold in range(int(folds.max()) + 1):
        seen, left_out = (first != fold) & (second != fold), (first == fold) & (second == fold)
        if left_out.any() and 0 < np.count_nonzero(pairs.same[seen]) < np.count_nonzero(seen):
            llr[left_out] = np.interp(scores[left_out], *monotone_llr(scores[seen], pairs.same[seen]))
            held_out |= left_out
    is_same = pairs.same[held_out]
    if not 0 < np.count_nonzero(is_same) < len(is_same):
        raise ValueError(
            f"y has {count(n_identities, 'identity', 'identities')}, too few for folds with same and different pairs; "
            "give more."
        )
    return Calibration(
        *monotone_llr(scores, pairs.same),
        cllr_before=cllr(scores[held_out], is_same),
        cllr_after=cllr(llr[held_out], is_same),
        cllr_min=min_cllr(scores[held_out], is_same),
        n_same=pairs.n_same,
        n_different=len(pairs) - pairs.n_same,
    )
