"""Normal scores of units: how much identities, or sessions, stand out in how often they are accepted with others.

A unit that is accepted with a share r of all others has the normal score ndtri(r). If the effects of units on scores are
normal, so are their normal scores, nearly; skewness and kurtosis tell of units that stand out. They are computed at a false
positive rate at which nearly every unit has accepted and rejected pairs, so they describe all units, not the most extreme ones.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import kurtosis, skew

from simtree.metrics import FloatArray

# False positive rate at which units are compared; a rate within a factor of 2 serves as well.
COMPARED_AT = 0.3
# With fewer others than this, the rate of a unit says little about it.
MIN_OTHERS = 10
# Excess kurtosis of regular units: that of a gamma distribution with their skewness, but at most MAX_REGULAR. It is 0 for
# normal effects and about 1 for slightly skewed ones (log-normal with sigma 0.25), but 1.5 for effects of Laplace's
# distribution with skewness 0, 4 for exponential and 10 for Pareto effects.
OF_SKEWNESS, MAX_REGULAR = 1.5, 1.0


def nearest_level(rates: FloatArray) -> int | None:
    """Return the index of the rate at which units are compared.

    Parameters
    ----------
    rates : ndarray of shape (n_levels,)
        False positive rates.

    Returns
    -------
    int or None
        Index of the rate nearest to `COMPARED_AT`; None if none is near.

    Examples
    --------
    >>> nearest_level(np.array([0.01, 0.2, 0.35])), nearest_level(np.array([0.01, 0.7]))
    (2, None)
    """
    inside = np.flatnonzero((rates > COMPARED_AT / 2.0) & (rates < 2.0 * COMPARED_AT))
    return int(inside[np.argmin(np.abs(rates[inside] - COMPARED_AT))]) if len(inside) else None


def normal_scores(rates: FloatArray, n_others: float) -> FloatArray | None:
    """Return the normal score of the rate at which each unit is accepted with others.

    Parameters
    ----------
    rates : ndarray of shape (n_units,)
        Rate of accepted pairs of each unit.
    n_others : float
        Mean number of others that a unit is compared with.

    Returns
    -------
    ndarray of shape (n_units,) or None
        Normal scores; None if there are too few others, or all units have the same rate.

    Examples
    --------
    >>> normal_scores(np.array([0.1, 0.5, 0.9]), 20).round(2).tolist()
    [-1.18, 0.0, 1.18]
    """
    if n_others < MIN_OTHERS or np.ptp(rates) == 0.0:
        return None
    # Half an acceptance more and less keeps the normal scores of 0 and 1 finite.
    return np.asarray(ndtri((rates * n_others + 0.5) / (n_others + 1.0)))


def heavy_tails(scores: FloatArray) -> float:
    """Return by how much the excess kurtosis of normal scores exceeds that of regular units.

    Parameters
    ----------
    scores : ndarray of shape (n_units,)
        Normal scores.

    Returns
    -------
    float
        What exceeds the kurtosis that skewness explains by more than one standard error (of normal values); 0 if nothing does.

    Examples
    --------
    >>> heavy_tails(np.linspace(-1.0, 1.0, 100)), round(heavy_tails(np.array([5.0] + [0.0, 1.0] * 20)), 2)
    (0.0, 13.35)
    """
    regular = math.sqrt(24.0 / len(scores)) + OF_SKEWNESS * float(skew(scores)) ** 2
    return max(float(kurtosis(scores)) - min(regular, MAX_REGULAR), 0.0)
