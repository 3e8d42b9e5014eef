"""Results of an evaluation: metrics with their confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from simtree.evaluation._counting import Histogram
from simtree.evaluation._report import report_lines
from simtree.metrics import (
    EqualErrorRate,
    FloatArray,
    Roc,
)

NAMED = {"FMR100": 1e-2, "FMR1000": 1e-3, "FMR10000": 1e-4}
# Maximum number of knots of a curve in `Evaluation.to_dict`.
MAX_KNOTS = 1_000


class Estimate(NamedTuple):
    """A metric with its confidence interval.

    Parameters
    ----------
    value : float
        The metric.
    low, high : float
        Ends of the interval.

    Examples
    --------
    >>> from simtree.evaluation import Estimate
    >>> print(Estimate(0.25, 0.2, 0.3125))
    0.25 [0.2, 0.312]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True)
class OperatingPoint:
    """Operating point with the highest true positive rate (TPR) whose false positive rate (FPR) is at most a target.

    Its rates are ``fpr`` and ``tpr``, and by their ISO names the false match rate (FMR), which is the FPR, and the false
    non-match rate (FNMR), which is 1 - TPR.

    Parameters
    ----------
    target : float
        FPR that is not exceeded on these pairs.
    threshold : float
        A pair is accepted if and only if its score is at least the threshold.
    fmr : float
        FPR at this threshold.
    fnmr : Estimate
        1 - TPR; the interval is that at the target FPR for new identities.

    Examples
    --------
    >>> from simtree.evaluation import Estimate, OperatingPoint
    >>> point = OperatingPoint(0.01, 2.5, 0.008, Estimate(0.25, 0.125, 0.5))
    >>> point.fpr, str(point.tpr)
    (0.008, '0.75 [0.5, 0.875]')
    """

    target: float
    threshold: float
    fmr: float
    fnmr: Estimate

    @property
    def fpr(self) -> float:
        """False positive rate (FPR) at this threshold."""
        return self.fmr

    @property
    def tpr(self) -> Estimate:
        """True positive rate (TPR) at this threshold; the interval is that at the target FPR for new identities."""
        return _complement(self.fnmr)


@dataclass(frozen=True)
class SubgroupRates:
    """Error rates within a subgroup, at a threshold that all subgroups share.

    Parameters
    ----------
    subgroup : object
        Value of the attribute that defines the subgroup.
    n_same, n_different : int
        Numbers of pairs within the subgroup.
    fmr : Estimate or None
        FPR; None without different pairs.
    fnmr : Estimate or None
        1 - TPR; None without same pairs.
    """

    subgroup: Any
    n_same: int
    n_different: int
    fmr: Estimate | None
    fnmr: Estimate | None

    @property
    def fpr(self) -> Estimate | None:
        """False positive rate (FPR) within the subgroup; None without different pairs."""
        return self.fmr

    @property
    def tpr(self) -> Estimate | None:
        """True positive rate (TPR) within the subgroup; None without same pairs."""
        return None if self.fnmr is None else _complement(self.fnmr)


@dataclass(frozen=True)
class Band:
    """Rates at decreasing thresholds along the ROC curve, with their confidence intervals.

    Parameters
    ----------
    thresholds : array of shape (n,)
        Decreasing thresholds.
    fpr, tpr : array of shape (n,)
        Rates at each threshold.
    fpr_interval, tpr_interval : array of shape (n, 2)
        Lower and upper ends of their intervals.
    confidence : float or None
        Confidence level of the intervals, if it is known.
    unit : str or None
        What the intervals are for, as in `Evaluation`, if it is known.
    simultaneous : bool
        Whether the intervals hold at all thresholds together.
    """

    thresholds: FloatArray
    fpr: FloatArray
    tpr: FloatArray
    fpr_interval: FloatArray
    tpr_interval: FloatArray
    confidence: float | None = None
    unit: str | None = None
    simultaneous: bool = False

    @property
    def label(self) -> str:
        """Name of the band in a legend."""
        level = "band" if self.confidence is None else f"{100 * self.confidence:g} % band"
        together = " for all thresholds" if self.simultaneous else ""
        return f"{level}{together}" if self.unit is None else f"{level}{together}, for new {self.unit}"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Result of `evaluate`; print it for a table.

    Parameters
    ----------
    name : str
        Name of what was evaluated.
    n_identities, n_samples : int or None
        Numbers of identities and samples; None if unknown.
    n_same, n_different : int
        Numbers of same and different pairs that were compared.
    n_possible : int
        Number of all pairs; larger than the number of compared pairs if these were sampled.
    unit : str
        Independent units of the intervals: "identities", "samples", or "pairs" if no identities were given.
    weighting : str
        "samples" if every pair counts once, "identities" if every pair of identities does.
    confidence : float
        Confidence level of all intervals.
    roc : Roc
        ROC curve, with thresholds.
    auc : Estimate
        Area under the curve.
    partial_auc : float
        Area up to an FPR of 0.01, rescaled to 0.5 for random and 1 for perfect scores.
    operating_points : tuple of OperatingPoint
        Operating points at the false positive rates for which there are enough different pairs (rule of three).
    eer : EqualErrorRate
        Equal error rate, with the two error rates that are nearest to each other.
    eer_interval : Estimate
        Equal error rate with its interval.
    zero_fmr : float
        Minimum of 1 - TPR without any false positive.
    d_prime, cllr, min_cllr : float
        Separation of the scores; cost of the scores taken as log-likelihood ratios; minimum cost over all increasing functions
        of the scores.
    cmc : array or None
        Proportion of searches with the true identity among the top 1, 2, ...; each sample is searched among all others, or
        each probe among the enrolled identities. None unless all comparisons were made.
    rank1 : Estimate or None
        Proportion of searches with the true identity at rank 1, with its interval for galleries of this size.
    fnir : dict or None
        Open-set identification: the false negative identification rate (rank 1) at each false positive identification rate
        (FPIR) for which there are enough searches.
    fnir_intervals : dict or None
        These rates with their intervals, for galleries of this size.
    histogram : Histogram
        Histogram of the scores.
    band : Band
        ROC curve with the intervals of its rates, each at one threshold.
    by_threshold : float or None
        Threshold at which the rates of subgroups are computed.
    by : tuple of SubgroupRates
        Error rates within subgroups.
    threshold : float or None
        Threshold in use: the one that was given, or that of FPR 1e-3 (of the lowest FPR in the table if that is higher). None
        if it is infinite.
    simultaneous : Band or None
        ROC curve with intervals that hold at all thresholds together, for a threshold that is picked by looking at the curve;
        None unless it was asked for.
    fusion : str or None
        How the scores of a probe with the samples of an enrolled identity became one; None if samples were compared.
    n_enrolled : int or None
        Number of enrolled identities; None if samples were compared.
    warnings : tuple of str
        Reasons why some intervals may be too narrow, such as few identities that bring most errors; empty if there are none.

    Examples
    --------
    >>> from simtree.evaluation import evaluate_scores
    >>> evaluate_scores([4, 3, 2, 1], [True, False, True, False])
    Evaluation(scores: AUC 0.75 [0.00689, 0.999], 2 same and 2 different pairs)
    """

    name: str
    n_identities: int | None
    n_samples: int | None
    n_same: int
    n_different: int
    n_possible: int
    unit: str
    weighting: str
    confidence: float
    roc: Roc
    auc: Estimate
    partial_auc: float
    operating_points: tuple[OperatingPoint, ...]
    eer: EqualErrorRate
    eer_interval: Estimate
    zero_fmr: float
    d_prime: float
    cllr: float
    min_cllr: float
    cmc: FloatArray | None
    rank1: Estimate | None
    fnir: dict[float, float] | None
    fnir_intervals: dict[float, Estimate] | None
    histogram: Histogram
    band: Band
    by_threshold: float | None
    by: tuple[SubgroupRates, ...]
    threshold: float | None = None
    simultaneous: Band | None = None
    fusion: str | None = None
    n_enrolled: int | None = None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Evaluation({self.name}: AUC {self.auc}, {self.n_same:,} same and {self.n_different:,} different pairs)"

    def __str__(self) -> str:
        return "\n".join(report_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as values that JSON can hold.

        Returns
        -------
        dict
            Numbers, lists and dicts. Infinite values become None, and long curves are thinned out.
        """
        result = _to_plain(self)
        result["named"] = self.named
        return dict(result)

    @property
    def n_in_gallery(self) -> int:
        """Number of identities that are searched: the enrolled ones, or all."""
        return (self.n_identities or 0) if self.n_enrolled is None else self.n_enrolled

    @property
    def tpr_at_zero_fpr(self) -> float:
        """True positive rate (TPR) at the lowest threshold that accepts no different pair: 1 - ZeroFMR."""
        return 1.0 - self.zero_fmr

    @property
    def named(self) -> dict[str, float]:
        """FMR100, FMR1000 and FMR10000: 1 - TPR at an FPR of at most 1/100, 1/1000 and 1/10,000, if there are enough pairs."""
        reached = {point.target: point.fnmr.value for point in self.operating_points}
        return {name: reached[rate] for name, rate in NAMED.items() if rate in reached}


def _complement(rate: Estimate) -> Estimate:
    """Return 1 - rate with its interval: the TPR of an FNMR."""
    return Estimate(1.0 - rate.value, 1.0 - rate.high, 1.0 - rate.low)


def _to_plain(value: Any) -> Any:
    """Return dataclasses, tuples and arrays as values that JSON can hold."""
    if isinstance(value, Roc):
        # Knots at geometric ranks, because low false positive rates matter most.
        n = len(value.fpr)
        kept = np.unique(np.append(0, np.geomspace(1, n, MAX_KNOTS).astype(np.int64) - 1)) if n > MAX_KNOTS else slice(None)
        arrays = {"fpr": value.fpr, "tpr": value.tpr, "thresholds": value.thresholds}
        return {key: None if array is None else _to_plain(array[kept]) for key, array in arrays.items()}
    if is_dataclass(value):
        return {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return {key: _to_plain(entry) for key, entry in value._asdict().items()}
    if isinstance(value, dict):
        return {f"{key:g}": _to_plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _to_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_to_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)
