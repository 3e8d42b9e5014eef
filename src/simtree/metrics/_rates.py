"""Error rates of verification as biometrics names them: FMR is the false positive rate, FNMR is one minus the true one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np

from simtree._utils.validation import check_real
from simtree.metrics._roc import ROUNDING, FloatArray, Roc, thresholds_of, tpr_at_fpr


class EqualErrorRate(NamedTuple):
    """Where false matches are as frequent as false non-matches.

    Parameters
    ----------
    value : float
        The middle of `low` and `high`.
    low, high : float
        The two error rates at `threshold`: a step curve seldom has a point where they are equal.
    threshold : float
        Accept iff score >= threshold.

    Examples
    --------
    >>> EqualErrorRate(0.25, 0.0, 0.5, 1.5).value
    0.25
    """

    value: float
    low: float
    high: float
    threshold: float


def eer(roc: Roc) -> EqualErrorRate:
    """Equal error rate with its interval, as in the FVC2000 competition.

    Of the two neighbouring thresholds where the sign of FMR - FNMR changes, the one with the smaller sum of errors is taken;
    its two error rates are the ends of the interval.

    Parameters
    ----------
    roc : Roc
        With thresholds, as `roc_curve` makes it.

    Returns
    -------
    EqualErrorRate

    Examples
    --------
    >>> from simtree.metrics import roc_curve
    >>> eer(roc_curve([4, 3, 2, 2, 1], [True, False, True, False, False]))
    EqualErrorRate(value=0.33..., low=0.0, high=0.66..., threshold=2.0)
    """
    thresholds = thresholds_of(roc)
    fmr, fnmr = det_points(roc)
    gap = fmr - fnmr  # one minus a rate is rounded, so equal rates may differ a little
    strict = int(np.argmax(gap >= -ROUNDING))  # the highest threshold with FNMR <= FMR; at the last knot it holds
    loose = len(fmr) - 1 - int(np.argmax(gap[::-1] <= ROUNDING))  # the lowest with FNMR >= FMR; at the first knot it holds
    k = strict if fmr[strict] + fnmr[strict] <= fmr[loose] + fnmr[loose] else loose
    low, high = sorted((float(fmr[k]), float(fnmr[k])))
    return EqualErrorRate((low + high) / 2, low, high, float(thresholds[k]))


def det_points(roc: Roc) -> tuple[FloatArray, FloatArray]:
    """FMR and FNMR of the knots of a curve, by falling threshold: the points of a DET curve.

    Parameters
    ----------
    roc : Roc

    Returns
    -------
    fmr, fnmr : arrays of shape (n_knots,)

    Examples
    --------
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
    """Lowest FNMR of the thresholds whose FMR is at most `fmr`: FMR100 is at 1e-2, FMR1000 at 1e-3.

    Parameters
    ----------
    roc : Roc
    fmr : float or array, in [0, 1]

    Returns
    -------
    float or array
        As `fmr`.

    Examples
    --------
    >>> fnmr_at_fmr(Roc([0, 0, 0.5, 1], [0, 0.25, 0.75, 1]), [0, 0.4, 0.5]).tolist()
    [0.75, 0.75, 0.25]
    """
    return 1.0 - tpr_at_fpr(roc, fmr)


def threshold_at_fmr(roc: Roc, fmr: float) -> float:
    """The threshold of `fnmr_at_fmr`: the highest that reaches this FNMR; infinity if none accepts a same pair.

    Parameters
    ----------
    roc : Roc
        With thresholds, as `roc_curve` makes it.
    fmr : float in [0, 1]

    Returns
    -------
    float

    Examples
    --------
    >>> from simtree.metrics import roc_curve
    >>> threshold_at_fmr(roc_curve([4, 3, 2, 1], [True, False, True, False]), 0.5)
    2.0
    """
    reached = tpr_at_fpr(roc, fmr)
    return float(thresholds_of(roc)[np.searchsorted(roc.tpr, reached, side="left")])


def zero_fmr(roc: Roc) -> float:
    """Lowest FNMR without a single false match.

    Examples
    --------
    >>> zero_fmr(Roc([0, 0, 0.5, 1], [0, 0.25, 0.75, 1]))
    0.75
    """
    return fnmr_at_fmr(roc, 0.0)


def zero_fnmr(roc: Roc) -> float:
    """Lowest FMR without a single false non-match.

    Examples
    --------
    >>> zero_fnmr(Roc([0, 0, 0.5, 1], [0, 0.25, 1, 1]))
    0.5
    """
    return float(roc.fpr[np.argmax(roc.tpr == 1.0)])


def n_for_rate(rate: float, confidence: float = 0.95) -> int:
    """How many independent comparisons without an error it takes to claim that the error rate is at most `rate`.

    At 95 % this is the rule of three: about ``3 / rate``.

    Parameters
    ----------
    rate : float in (0, 1)
    confidence : float in (0, 1), default=0.95

    Returns
    -------
    int

    Examples
    --------
    >>> n_for_rate(1e-2), n_for_rate(1e-3)
    (299, 2995)
    """
    check_real("rate", rate, 0.0, 1.0, open_low=True, open_high=True)
    check_real("confidence", confidence, 0.0, 1.0, open_low=True, open_high=True)
    return math.ceil(math.log1p(-confidence) / math.log1p(-rate))
