"""Choice of a threshold: with a guarantee on the false positive rate, or where a metric is best.

With a guarantee, thresholds are tried from the strictest one downwards, and the last one before the upper confidence bound on
the FPR first exceeds the target is chosen. Only the first threshold whose true FPR exceeds the target matters (fixed-sequence
testing), so no correction for multiple thresholds is needed. The bound is that of Clopper and Pearson with an effective number
of comparisons. Pairs share identities, so this number is at most the number of pairs of *identities*, and smaller if some
identities cause more false positives than others (see `simtree.evaluation._intervals`). It is the minimum over the thresholds
from the current one down to an FPR of twice the target, because a sample with few errors also underestimates their
correlation. Without any error the bound is the rule of three on pairs of identities.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import check_choice, check_real, count
from simtree.evaluation._counting import Score, count_comparisons
from simtree.evaluation._intervals import PairTally, min_sizes, upper_bound
from simtree.io._fields import MAX_COUNT, Fields
from simtree.metrics import FloatArray, Roc, n_for_rate
from simtree.metrics._roc import thresholds_of
from simtree.pairs._sources import PairSource

STRATEGIES = ("max_tpr", "max_tnr", "accuracy", "f_beta")
# Multiples of the target FPR at whose thresholds the bound is computed, in addition to thresholds along the entire curve.
NEAR_TARGET = np.geomspace(0.02, 2.0, 80)
LOOK_AHEAD = 2.0


@dataclass(frozen=True)
class Goal:
    """Criterion by which a threshold is chosen; the parameters are those of `Similarity.calibrate_threshold`.

    Examples
    --------
    >>> Goal("max_tpr", max_fpr=0.01).guarantee
    (0.01, 0.95)
    """

    strategy: str = "max_tpr"
    max_fpr: float | None = 1e-3
    confidence: float | None = 0.95
    min_rate: float | None = None
    beta: float = 1.0

    def __post_init__(self) -> None:
        check_choice("strategy", self.strategy, STRATEGIES)
        check_real("beta", self.beta, 0.0, math.inf, open_high=True)
        if self.min_rate is not None:
            check_real("min_rate", self.min_rate, 0.0, 1.0)
            if self.strategy not in ("max_tpr", "max_tnr"):
                raise ValueError(f"min_rate={self.min_rate!r} has no effect for strategy={self.strategy!r}; leave it out.")
        elif self.strategy == "max_tnr":
            raise ValueError("strategy='max_tnr' needs min_rate, the minimum true positive rate; give one, such as 0.95.")
        elif self.strategy == "max_tpr":
            if self.max_fpr is None:
                raise ValueError("strategy='max_tpr' needs max_fpr (or min_rate, the minimum true negative rate); give one.")
            check_real("max_fpr", self.max_fpr, 0.0, 1.0, open_low=True, open_high=True)
            if self.confidence is not None:
                check_real("confidence", self.confidence, 0.0, 1.0, open_low=True, open_high=True)

    @property
    def guarantee(self) -> tuple[float, float] | None:
        """Maximum FPR and confidence level, or None if the goal is a metric of the given pairs without a bound."""
        if self.strategy != "max_tpr" or self.min_rate is not None or self.max_fpr is None or self.confidence is None:
            return None
        return self.max_fpr, self.confidence


@dataclass(frozen=True)
class ThresholdReport:
    """Report on a chosen threshold: its goal, and its rates on the pairs it was chosen on.

    Parameters
    ----------
    threshold : float
        A pair is accepted if and only if its score is at least the threshold.
    strategy : str
        Strategy by which the threshold was chosen.
    max_fpr, confidence : float or None
        The guarantee: FPR <= max_fpr with this confidence level. None without a guarantee.
    fpr, tpr : float
        Rates on these pairs.
    fpr_bound : float or None
        Upper confidence bound on the FPR. None without a guarantee.
    n_identities, n_same, n_different : int
        Numbers of identities, same pairs and different pairs.
    n_effective : float or None
        Effective number of different pairs: the number of independent pairs that would give the same variance.

    Examples
    --------
    >>> print(ThresholdReport(1.5, "accuracy", None, None, 0.01, 0.9, None, 10, 45, 400, None))
    threshold 1.5 (accuracy): FPR 0.01, TPR 0.9 on 45 same and 400 different pairs of 10 identities
    """

    threshold: float
    strategy: str
    max_fpr: float | None
    confidence: float | None
    fpr: float
    tpr: float
    fpr_bound: float | None
    n_identities: int
    n_same: int
    n_different: int
    n_effective: float | None

    def __str__(self) -> str:
        lines = (
            f"threshold {self.threshold:.6g} ({self.strategy}): FPR {self.fpr:.3g}, TPR {self.tpr:.3g} on {self.n_same:,} same "
            f"and {count(self.n_different, 'different pair')} of {count(self.n_identities, 'identity', 'identities')}"
        )
        if self.fpr_bound is not None and self.confidence is not None:
            lines += (
                f"\nFPR <= {self.max_fpr:g} with {100 * self.confidence:g} % confidence: the bound is {self.fpr_bound:.3g}, "
                f"with {self.n_effective:,.0f} effective comparisons"
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return asdict(self)

    @classmethod
    def _from_state(cls, fields: Fields) -> ThresholdReport:
        """Return the report that a model file stores, which is the result of `to_dict`."""

        def rate(name: str) -> float:
            return fields.number(name, 0.0, 1.0)

        def count(name: str) -> int:
            return fields.integer(name, 0, MAX_COUNT)

        return cls(
            threshold=fields.number("threshold"),
            strategy=fields.string("strategy", STRATEGIES),
            max_fpr=rate("max_fpr") if fields.has("max_fpr") else None,
            confidence=rate("confidence") if fields.has("confidence") else None,
            fpr=rate("fpr"),
            tpr=rate("tpr"),
            fpr_bound=rate("fpr_bound") if fields.has("fpr_bound") else None,
            n_identities=count("n_identities"),
            n_same=count("n_same"),
            n_different=count("n_different"),
            n_effective=fields.number("n_effective", 0.0) if fields.has("n_effective") else None,
        )


def choose_threshold(
    score: Score,
    source: PairSource,
    units: NDArray[np.int64],
    goal: Goal,
    *,
    n_units: int,
) -> ThresholdReport:
    """Score all pairs, and choose the threshold that satisfies a goal.

    Parameters
    ----------
    score : callable
        Function from two arrays of row numbers to the scores of the pairs.
    source : PairSource
        The pairs.
    units : array of shape (n_samples,)
        Independent unit of each sample, numbered from 0: its identity, or the sample itself.
    goal : Goal
        Criterion for the threshold.
    n_units : int
        Number of units that have pairs.

    Returns
    -------
    ThresholdReport
        The threshold with its rates.
    """
    rates = np.empty(0)
    if goal.guarantee is not None:
        _check_support(*goal.guarantee, source.n_unit_pairs(units), n_units)
        rates = NEAR_TARGET * goal.guarantee[0]
    counted = count_comparisons(score, source, units, fmr=np.minimum(rates, 1.0), at=np.empty(0))
    same, different = counted.tallies.same, counted.tallies.different
    bound = size = None
    if goal.guarantee is not None:
        index, bound, size = guaranteed_threshold(different, *goal.guarantee)
        threshold, fpr, tpr = float(different.thresholds[index]), float(different.rates[index]), float(same.rates[index])
    else:
        knot = best_knot(counted.roc, goal, same.n_pairs, different.n_pairs)
        fpr, tpr = float(counted.roc.fpr[knot]), float(counted.roc.tpr[knot])
        # The knot that accepts no pair needs a finite threshold, too.
        thresholds = [np.nextafter(counted.highest, np.inf), *thresholds_of(counted.roc)[1:]]
        threshold = float(thresholds[knot])
    max_fpr, confidence = goal.guarantee or (None, None)
    n_same, n_different = same.n_pairs, different.n_pairs
    return ThresholdReport(threshold, goal.strategy, max_fpr, confidence, fpr, tpr, bound, n_units, n_same, n_different, size)


def fpr_bounds(different: PairTally, max_fpr: float, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return upper confidence bounds on the FPR at the thresholds of a tally, and their effective numbers of comparisons."""
    rates = different.rates[:-1]
    sizes = np.minimum(different.effective_sizes()[0], different.n_unit_pairs)
    sizes = np.where(rates > 0.0, min_sizes(rates, sizes, LOOK_AHEAD * max_fpr), float(different.n_unit_pairs))
    return upper_bound(rates, sizes, confidence), sizes


def guaranteed_threshold(different: PairTally, max_fpr: float, confidence: float) -> tuple[int, float, float]:
    """Return the index, bound and effective size of the last threshold before the bound first exceeds the target."""
    bounds, sizes = fpr_bounds(different, max_fpr, confidence)
    index = int(np.argmax(np.append(bounds > max_fpr, True))) - 1
    if index < 0:
        strictest = f"max_fpr={max_fpr!r} cannot be guaranteed: at the strictest threshold the FPR is {different.rates[0]:.3g}"
        if different.rates[0] > max_fpr:
            raise ValueError(
                f"{strictest}. Give a higher max_fpr, or a model that gives fewer different pairs the highest score."
            )
        # Pairs that share an identity are correlated, so the effective size grows with the number of identities, not of pairs.
        needed = math.ceil(different.n_active * max(n_for_rate(max_fpr, confidence) / sizes[0], 1.0)) + 1
        raise ValueError(
            f"{strictest} and its bound is {bounds[0]:.3g}, because these {different.n_active:,} identities are "
            f"worth {sizes[0]:,.0f} independent comparisons. Give data of at least {needed:,} identities, or a higher max_fpr."
        )
    return index, float(bounds[index]), float(sizes[index])


def best_knot(roc: Roc, goal: Goal, n_same: int, n_different: int) -> int:
    """Return the index of the knot of a curve where a metric is best; the strictest among ties, the loosest for an F score."""
    true, false = roc.tpr * n_same, roc.fpr * n_different
    if goal.strategy == "accuracy":
        value, allowed = (true + n_different - false) / (n_same + n_different), np.ones(len(true), dtype=np.bool_)
    elif goal.strategy == "f_beta":
        total = np.maximum(goal.beta**2 * n_same + true + false, 0.5)  # a precision of 0 where no pair is accepted
        value, allowed = (1 + goal.beta**2) * true / total, np.ones(len(true), dtype=np.bool_)
    elif goal.strategy == "max_tnr":
        value, allowed = -roc.fpr, roc.tpr >= (goal.min_rate or 0.0)
    else:
        max_fpr = goal.max_fpr if goal.min_rate is None else 1.0 - goal.min_rate
        value, allowed = roc.tpr, roc.fpr <= (max_fpr or 0.0) + 1e-15  # 1 - min_rate is rounded
    value = np.where(allowed, value, -np.inf)
    best = np.flatnonzero(value >= value.max() - 1e-12)
    return int(best[-1 if goal.strategy == "f_beta" else 0])  # at equal precision more recall is better


def n_identities_for(max_fpr: float, confidence: float) -> int:
    """Return the minimum number of identities that can support the claim FPR <= max_fpr, if no error is observed.

    Parameters
    ----------
    max_fpr : float
        Maximum false positive rate, in (0, 1).
    confidence : float
        Confidence level, in (0, 1).

    Returns
    -------
    int
        Number of identities with enough pairs of identities for the rule of three.

    Examples
    --------
    >>> n_identities_for(1e-2, 0.95), n_identities_for(1e-3, 0.95)
    (25, 78)
    """
    return math.ceil((1 + math.sqrt(1 + 8 * n_for_rate(max_fpr, confidence))) / 2)


def _check_support(max_fpr: float, confidence: float, n_unit_pairs: int, n_units: int) -> None:
    """Raise an error if the pairs of identities cannot support the target even without any error."""
    needed = n_for_rate(max_fpr, confidence)
    if n_unit_pairs < needed:
        lowest = float(upper_bound(0.0, max(n_unit_pairs, 1), confidence))
        raise ValueError(
            f"max_fpr={max_fpr!r} at confidence={confidence!r} takes at least {n_identities_for(max_fpr, confidence):,} "
            f"identities ({needed:,} pairs of them, not one mistaken); there are {n_units:,} ({n_unit_pairs:,} pairs), "
            f"enough for max_fpr={math.ceil(lowest * 1e4) / 1e4:g} at best. Give data of more identities, or a higher max_fpr."
        )
