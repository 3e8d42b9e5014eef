"""Error rates of verification in biometric terms: FMR is the false positive rate, FNMR one minus the true positive rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np

from simtree._utils.validation import check_real
from simtree.metrics._roc import ROUNDING, FloatArray, Roc, thresholds_of, tpr_at_fpr


class EqualErrorRate(NamedTuple):
    """Equal error rate, where false matches are as frequent as false non-matches.

    Parameters
    ----------
    value : float
        The mean of `low` and `high`.
    low, high : float
        The two error rates at `threshold`, which are rarely equal because an empirical curve has steps.
    threshold : float
        Threshold of the operating point: accept iff score >= threshold.

    Examples
    --------
    >>> from simtree.metrics import EqualErrorRate
    >>> EqualErrorRate(0.25, 0.0, 0.5, 1.5).value
    0.25
    """

    value: float
    low: float
    high: float
    threshold: float


def eer(roc: Roc) -> EqualErrorRate:
    """Return the equal error rate with its interval, as in the FVC2000 competition.

    Of the two neighbouring thresholds where the sign of FMR - FNMR changes, the one with the smaller sum of errors is used;
    its two error rates are the ends of the interval.

    Parameters
    ----------
    roc : Roc
        Curve with thresholds, as returned by `roc_curve`.

    Returns
    -------
    EqualErrorRate
        The rate, its interval and its threshold.

    Examples
    --------
    >>> from simtree.metrics import eer, roc_curve
    >>> eer(roc_curve([4, 3, 2, 2, 1], [True, False, True, False, False]))
    EqualErrorRate(value=0.33..., low=0.0, high=0.66..., threshold=2.0)
    """
    thresholds = thresholds_of(roc)
    fmr, fnmr = det_points(roc)
    gap = fmr - fnmr  # FNMR is rounded, so equal rates may differ slightly
    strict = int(np.argmax(gap >= -ROUNDING))  # highest threshold with FNMR <= FMR, which holds at the last knot
    loose = len(fmr) - 1 - int(np.argmax(gap[::-1] <= ROUNDING))  # lowest one with FNMR >= FMR, which holds at the first knot
    k = strict if fmr[strict] + fnmr[strict] <= fmr[loose] + fnmr[loose] else loose
    low, high = sorted((float(fmr[k]), float(fnmr[k])))
    return EqualErrorRate((low + high) / 2, low, high, float(thresholds[k]))


def det_points(roc: Roc) -> tuple[FloatArray, FloatArray]:
    """Return the points of the DET curve: FMR and FNMR at the knots of a ROC curve, by decreasing threshold.

    Parameters
    ----------
    roc : Roc
        Curve.

    Returns
    -------
    fmr : array of shape (n_knots,)
        False match rates.
    fnmr : array of shape (n_knots,)
        False non-match rates.

    Examples
    --------
    >>> from simtree.metrics import Roc, det_points
    >>> fmr, fnmr = det_points(Roc([0, 0, 0.5, 1], [0, 0.25, 0.75, 1]))
    >>> fnmr.tolist()
    [1.0, 0.75, 0.25, 0.0]
    """
    return roc.fpr, 1.0 - roc.tpr


@overload
def fnmr_at_fmr(roc: Roc, fmr: float) -> float: ...
@overload
def fnmr_at_fmr(roc: Roc, fmr: Sequence[float] | FloatArray) -> FloatArray: ...
def fnmr_at_fmr(roc: Roc, fmr: float | Sequence[float] | FloatArray) -> float | FloatArray:
    """Return the lowest FNMR of the thresholds whose FMR is at most `fmr`.

    FMR100 is the FNMR at ``fmr=1e-2``, FMR1000 the one at ``fmr=1e-3``.

    Parameters
    ----------
    roc : Roc
        Curve.
    fmr : float or array
        Maximum false match rate, in [0, 1].

    Returns
    -------
    float or array
        False non-match rate, with the shape of `fmr`.

    Examples
    --------
    >>> from simtree.metrics import Roc, fnmr_at_fmr
    >>> fnmr_at_fmr(Roc([0, 0, 0.5, 1], [0, 0.25, 0.75, 1]), [0, 0.4, 0.5]).tolist()
    [0.75, 0.75, 0.25]
    """
    return 1.0 - tpr_at_fpr(roc, fmr)


def threshold_at_fmr(roc: Roc, fmr: float) -> float:
    """Return the threshold of `fnmr_at_fmr`, the highest one on ties.

    Parameters
    ----------
    roc : Roc
        Curve with thresholds, as returned by `roc_curve`.
    fmr : float
        Maximum false match rate, in [0, 1].

    Returns
    -------
    float
        The threshold; infinity if no allowed threshold accepts a same pair.

    Examples
    --------
    >>> from simtree.metrics import roc_curve, threshold_at_fmr
    >>> threshold_at_fmr(roc_curve([4, 3, 2, 1], [True, False, True, False]), 0.5)
    2.0
    """
    reached = tpr_at_fpr(roc, fmr)
    return float(thresholds_of(roc)[np.searchsorted(roc.tpr, reached, side="left")])


def zero_fmr(roc: Roc) -> float:
    """Return the lowest FNMR at which the FMR is zero.

    Parameters
    ----------
    roc : Roc
        Curve.

    Returns
    -------
    float
        False non-match rate.

    Examples
    --------
    >>> from simtree.metrics import Roc, zero_fmr
    >>> zero_fmr(Roc([0, 0, 0.5, 1], [0, 0.25, 0.75, 1]))
    0.75
    """
    return fnmr_at_fmr(roc, 0.0)


def zero_fnmr(roc: Roc) -> float:
    """Return the lowest FMR at which the FNMR is zero.

    Parameters
    ----------
    roc : Roc
        Curve.

    Returns
    -------
    float
        False match rate.

    Examples
    --------
    >>> from simtree.metrics import Roc, zero_fnmr
    >>> zero_fnmr(Roc([0, 0, 0.5, 1], [0, 0.25, 1, 1]))
    0.5
    """
    return float(roc.fpr[np.argmax(roc.tpr == 1.0)])


def n_for_rate(rate: float, confidence: float = 0.95) -> int:
    """Return the number of error-free independent comparisons needed to claim that the error rate is at most `rate`.

    At 95 % confidence this is the rule of three: about ``3 / rate``.

    Parameters
    ----------
    rate : float
        Error rate to claim, in (0, 1).
    confidence : float, default=0.95
        Confidence of the claim, in (0, 1).

    Returns
    -------
    int
        Number of comparisons.

    Examples
    --------
    >>> from simtree.metrics import n_for_rate
    >>> n_for_rate(1e-2), n_for_rate(1e-3)
    (299, 2995)
    """
    check_real("rate", rate, 0.0, 1.0, open_low=True, open_high=True)
    check_real("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    return math.ceil(math.log1p(-confidence) / math.log1p(-rate))
