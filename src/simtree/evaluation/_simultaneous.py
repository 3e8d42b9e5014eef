"""Bands that hold at all thresholds at once, for operating points that are picked after looking at the curve.

An interval at one threshold holds there with its confidence level. Somebody who moves along the curve and picks a point has
looked at all of them, so that both rates at all thresholds must lie within their intervals together. The intervals of
`simtree.evaluation._intervals` are used at a higher confidence level: that of the distribution of the largest standardised
error over all thresholds and both rates, a multivariate Student distribution with the correlations of the influences of units.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr
from scipy.stats import gamma

from simtree.evaluation._intervals import CurveTallies, monotone_ends
from simtree.evaluation._results import Band
from simtree.evaluation._tallies import PairTally
from simtree.metrics import FloatArray

# Draws of the largest error: enough for its 95 % quantile to two digits.
N_DRAWS = 4_000
# Components of the correlation matrix with less than this share of the largest are rounding errors.
MIN_SHARE = 1e-10


def simultaneous_band(tallies: CurveTallies, confidence: float, unit: str | None = None) -> Band:
    """Return the rates at all thresholds, with intervals that hold for all of them together.

    Parameters
    ----------
    tallies : CurveTallies
        Counts of same and different pairs.
    confidence : float
        Confidence level of the entire band.
    unit : str, optional
        What the band is for, as in `Evaluation`.

    Returns
    -------
    Band
        The band. A bound at one threshold that implies a sharper one at another has sharpened it, since rates are monotone.
    """
    each = pointwise_confidence(tallies, confidence)
    of_fpr, of_tpr = (
        np.column_stack(monotone_ends(_with_few_errors(tally, ends, each)))
        for tally, ends in zip((tallies.different, tallies.same), tallies.rate_intervals(each), strict=True)
    )
    rates = tallies.different.rates[:-1], tallies.same.rates[:-1]
    return Band(tallies.same.thresholds, *rates, of_fpr, of_tpr, confidence, unit, simultaneous=True)


def _with_few_errors(tally: PairTally, ends: FloatArray, confidence: float) -> FloatArray:
    """Return intervals whose ends towards 0 and 1 are at least as far away as those of a Poisson number of pairs.

    Thresholds are scores, so the strictest ones accept a single pair, by construction. Normal errors on the logit scale are far
    too narrow below a handful of pairs.
    """
    rates, variance = tally.rates[:-1], tally.influence().variance()[0][:-1]
    found = ends.copy()
    for of_kind, column in ((rates, 0), (1.0 - rates, 1)):
        seen = (of_kind > 0.0) & (variance > 0.0)
        # As many independent pairs would have the same relative error.
        number = of_kind[seen] ** 2 / variance[seen]
        low = of_kind[seen] * gamma.ppf(0.5 - confidence / 2.0, number) / number
        found[seen, column] = np.minimum(ends[seen, 0], low) if column == 0 else np.maximum(ends[seen, 1], 1.0 - low)
    return found


def pointwise_confidence(tallies: CurveTallies, confidence: float) -> float:
    """Return the confidence level that each interval needs, so that all of them hold together with another one.

    Parameters
    ----------
    tallies : CurveTallies
        Counts of same and different pairs.
    confidence : float
        Confidence level of all intervals together.

    Returns
    -------
    float
        Confidence level of each, at least that of two rates whose errors are not known.
    """
    both = 0.5 + confidence / 2.0
    columns, df = [], np.inf
    for tally in (tallies.different, tallies.same):
        influence = tally.influence()
        of_rates = influence.units[:, :-1]
        lengths = np.sqrt(np.einsum("ij,ij->j", of_rates, of_rates))
        columns.append(of_rates[:, lengths > 0.0] / lengths[lengths > 0.0])
        df = min(df, float(influence.variance()[1].min()))
    standardised = np.hstack(columns)
    if not standardised.shape[1]:
        return both
    values, vectors = np.linalg.eigh(standardised.T @ standardised)
    kept = values > MIN_SHARE * values[-1]
    rng = np.random.default_rng(0)  # always the same, so that the same counts have the same band
    errors = rng.normal(size=(N_DRAWS, int(kept.sum()))) @ (vectors[:, kept] * np.sqrt(values[kept])).T
    largest = np.abs(errors).max(axis=1) / np.sqrt(rng.chisquare(df, N_DRAWS) / df)
    return max(both, float(2.0 * stdtr(df, np.quantile(largest, confidence)) - 1.0))
