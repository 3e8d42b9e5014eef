"""Figures of models that were fitted on a part of the samples, carried over to all samples by a learning curve.

Folds leave samples out, so that what is measured in them is too low for a model that is fitted on all samples. How much
too low is estimated by fitting on half of what a fold is fitted on: the log odds of TPR and AUC grow by about as much with each
doubling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from simtree.evaluation import Estimate
from simtree.metrics import FloatArray

# Doublings beyond this are not counted: nobody knows whether the curve goes on so far.
MAX_DOUBLINGS = 3.0
# Error of the gain itself, as a share of it, for a curve is no line.
CURVATURE = 0.5
# Figures are kept this far from 0 and 1, where their log odds are infinite.
MARGIN = 1e-7


@dataclass(frozen=True)
class LearningCurve:
    """The gain of a figure with each doubling of the samples.

    Parameters
    ----------
    gain : float
        Gain in log odds, at least zero: more samples are not taken to be worse.
    error : float
        Standard error of the gain.

    Examples
    --------
    >>> LearningCurve.of([0.5, 0.5], [0.6, 0.6]).carried(Estimate(0.6, 0.5, 0.7), 1.0).value  # odds of 1, 1.5 and 2.25
    0.6923...
    """

    gain: float
    error: float

    @classmethod
    def of(cls, with_half: Sequence[float], with_all: Sequence[float]) -> LearningCurve:
        """Return the curve of a figure that was measured in several folds, with half of their samples and with all."""
        gains = log_odds(with_all) - log_odds(with_half)
        error = float(np.std(gains, ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else 0.0
        return cls(max(float(np.mean(gains)), 0.0), error)

    def carried(self, figure: Estimate, n_doublings: float) -> Estimate:
        """Return a figure for this many times twice the samples; its interval allows for the error of the curve."""
        times = min(max(n_doublings, 0.0), MAX_DOUBLINGS)
        gain, error = times * self.gain, times * float(np.hypot(self.error, CURVATURE * self.gain))
        value, low, high = log_odds(figure)
        ends = value + gain - np.hypot(value - low, error), value + gain, value + gain + np.hypot(high - value, error)
        low, value, high = (float(expit(end)) for end in ends)
        # An end that was 0 or 1 stays so.
        return Estimate(value, 0.0 if figure.low <= 0.0 else low, 1.0 if figure.high >= 1.0 else high)


def log_odds(shares: Sequence[float]) -> FloatArray:
    """Return the log odds of shares, those of 0 and 1 finite."""
    kept = np.clip(np.asarray(shares, dtype=np.float64), MARGIN, 1.0 - MARGIN)
    return np.log(kept) - np.log1p(-kept)
