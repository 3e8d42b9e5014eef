"""Where to put the threshold: with a guarantee on the false positive rate, or where a figure is best.

The guarantee: going down from the strictest threshold, the last one before the upper confidence bound on the FPR first
exceeds the target. Only the first threshold whose true FPR exceeds the target matters, so going on until the first failure
costs no confidence. The bound is that of Clopper and Pearson with an effective number of comparisons: pairs share people, so
it is at most the number of pairs of *identities*, and less where some people are taken for others more often than most (see
`simtree.evaluation`). It is the least one found from the threshold down to twice the target, because samples with few errors
also show too little of what they have in common. Without any error it is the rule of three on pairs of identities.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import check_choice, check_real, count
from simtree.evaluation._counting import Score, count_comparisons
from simtree.evaluation._intervals import PairTally, least_sizes, upper_bound
from simtree.io._fields import MAX_COUNT, Fields
from simtree.metrics import FloatArray, Roc, n_for_rate
from simtree.metrics._roc import thresholds_of
from simtree.pairs._sampling import PairSource

STRATEGIES = ("max_tpr", "max_tnr", "accuracy", "f_beta")
# Rates, as multiples of the target, at whose thresholds the bound is computed besides those along the whole curve.
NEAR_TARGET = np.geomspace(0.02, 2.0, 80)
LOOK_AHEAD = 2.0


@dataclass(frozen=True)
class Goal:
    """What a threshold is chosen for; the parameters are those of `Similarity.calibrate_threshold`.

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
        check_real("beta", self.beta, 0.0, math.inf, open_low=True, open_high=True)
        if self.min_rate is not None:
            check_real("min_rate", self.min_rate, 0.0, 1.0)
            if self.strategy not in ("max_tpr", "max_tnr"):
                raise ValueError(f"min_rate={self.min_rate!r} has no meaning for strategy={self.strategy!r}; leave it out.")
        elif self.strategy == "max_tnr":
            raise ValueError("strategy='max_tnr' needs min_rate, the least true positive rate; give one, such as 0.95.")
        elif self.strategy == "max_tpr":
            if self.max_fpr is None:
                raise ValueError("strategy='max_tpr' needs max_fpr (or min_rate, the least true negative rate); give one.")
            check_real("max_fpr", self.max_fpr, 0.0, 1.0, open_low=True, open_high=True)
            if self.confidence is not None:
                check_real("confidence", self.confidence, 0.0, 1.0, open_low=True, open_high=True)

    @property
    def guarantee(self) -> tuple[float, float] | None:
        """Greatest FPR and confidence, if a bound on the FPR is asked for; None if just a figure of these pairs counts."""
        if self.strategy != "max_tpr" or self.min_rate is not None or self.max_fpr is None or self.confidence is None:
            return None
        return self.max_fpr, self.confidence


@dataclass(frozen=True)
class ThresholdReport:
    """How a threshold was chosen, and what it does on the pairs it was chosen on.

    Parameters
    ----------
    threshold : float
        Accept iff score >= threshold.
    strategy : str
    max_fpr, confidence : float or None
        What was promised: FPR <= max_fpr, with this confidence. None without a promise.
    fpr, tpr : float
        Rates on these pairs.
    fpr_bound : float or None
        Upper confidence bound on the FPR.
    n_identities, n_same, n_different : int
        Numbers of units, and of pairs of each kind.
    n_effective : float or None
        How many independent comparisons the different pairs are worth.

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
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def _from_state(cls, fields: Fields) -> ThresholdReport:
        """Return the report of a model file, which holds what `to_dict` returns."""

        def rate(name: str) -> float:
            return fields.number(name, 0.0, 1.0)

        def count(name: str) -> int:
            return fields.integer(name, 0, MAX_COUNT)

        return cls(
            threshold=fields.number("threshold"),
            strategy=fields.word("strategy", STRATEGIES),
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
    """Score all comparisons, and choose the threshold that a goal asks for.

    Parameters
    ----------
    score : callable
        Scores of pairs of rows.
    source : PairSource
        The pairs.
    units : array of shape (n_points,)
        The unit of each point, from 0: its identity, or itself.
    goal : Goal
    n_units : int
        How many of the units have pairs.

    Returns
    -------
    ThresholdReport
    """
    rates = np.empty(0)
    if goal.guarantee is not None:
        _check_support(*goal.guarantee, source.n_unit_pairs(units), n_units)
        rates = NEAR_TARGET * goal.guarantee[0]
    counted = count_comparisons(score, source, units, fmr=np.minimum(rates, 1.0), at=np.empty(0))
    same, different = counted.tallies.same, counted.tallies.different
    bound = size = None
    if goal.guarantee is not None:
        place, bound, size = guaranteed(different, *goal.guarantee)
        threshold, fpr, tpr = float(different.thresholds[place]), float(different.rates[place]), float(same.rates[place])
    else:
        knot = best_knot(counted.roc, goal, same.n_pairs, different.n_pairs)
        fpr, tpr = float(counted.roc.fpr[knot]), float(counted.roc.tpr[knot])
        # The knot that accepts nothing gets a number too.
        thresholds = [np.nextafter(counted.highest, np.inf), *thresholds_of(counted.roc)[1:]]
        threshold = float(thresholds[knot])
    max_fpr, confidence = goal.guarantee or (None, None)
    n_same, n_different = same.n_pairs, different.n_pairs
    return ThresholdReport(threshold, goal.strategy, max_fpr, confidence, fpr, tpr, bound, n_units, n_same, n_different, size)


def fpr_bounds(different: PairTally, max_fpr: float, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Upper confidence bounds on the FPR at the thresholds of a tally, and the effective numbers of comparisons behind them."""
    rates = different.rates[:-1]
    sizes = np.minimum(different.effective_sizes()[0], different.n_cells)
    sizes = np.where(rates > 0.0, least_sizes(rates, sizes, LOOK_AHEAD * max_fpr), float(different.n_cells))
    return upper_bound(rates, sizes, confidence), sizes


def guaranteed(different: PairTally, max_fpr: float, confidence: float) -> tuple[int, float, float]:
    """The last threshold before the bound first exceeds the target: its place, its bound, and its effective size."""
    bounds, sizes = fpr_bounds(different, max_fpr, confidence)
    place = int(np.argmax(np.append(bounds > max_fpr, True))) - 1
    if place < 0:
        strictest = f"max_fpr={max_fpr!r} cannot be promised: at the strictest threshold the FPR is {different.rates[0]:.3g}"
        if different.rates[0] > max_fpr:
            raise ValueError(f"{strictest}. Give a higher max_fpr, or a model that scores fewer different pairs highest.")
        # What people have in common makes effective numbers grow with the number of people, not of their pairs.
        needed = math.ceil(different.n_active * max(n_for_rate(max_fpr, confidence) / sizes[0], 1.0)) + 1
        raise ValueError(
            f"{strictest} and its bound {bounds[0]:.3g}, for these {different.n_active:,} identities are worth {sizes[0]:,.0f} "
            f"independent comparisons. Give data of at least {needed:,} identities, or a higher max_fpr."
        )
    return place, float(bounds[place]), float(sizes[place])


def best_knot(roc: Roc, goal: Goal, n_same: int, n_different: int) -> int:
    """The knot of a curve where a figure of these pairs is best; the strictest among equals."""
    true, false = roc.tpr * n_same, roc.fpr * n_different
    if goal.strategy == "accuracy":
        value, allowed = (true + n_different - false) / (n_same + n_different), np.ones(len(true), dtype=np.bool_)
    elif goal.strategy == "f_beta":
        value, allowed = (1 + goal.beta**2) * true / (goal.beta**2 * n_same + true + false), np.ones(len(true), dtype=np.bool_)
    elif goal.strategy == "max_tnr":
        value, allowed = -roc.fpr, roc.tpr >= (goal.min_rate or 0.0)
    else:
        most = goal.max_fpr if goal.min_rate is None else 1.0 - goal.min_rate
        value, allowed = roc.tpr, roc.fpr <= (most or 0.0) + 1e-15  # 1 - min_rate is rounded
    value = np.where(allowed, value, -np.inf)
    return int(np.argmax(value >= value.max() - 1e-12))


def n_identities_for(max_fpr: float, confidence: float) -> int:
    """How many identities have enough pairs for the claim FPR <= max_fpr, if there is no error at all.

    Examples
    --------
    >>> n_identities_for(1e-2, 0.95), n_identities_for(1e-3, 0.95)
    (25, 78)
    """
    return math.ceil((1 + math.sqrt(1 + 8 * n_for_rate(max_fpr, confidence))) / 2)


def _check_support(max_fpr: float, confidence: float, n_cells: int, n_units: int) -> None:
    """Refuse a target that even pairs of identities without a single error could not support."""
    needed = n_for_rate(max_fpr, confidence)
    if n_cells < needed:
        least = float(upper_bound(0.0, max(n_cells, 1), confidence))
        raise ValueError(
            f"max_fpr={max_fpr!r} at confidence={confidence!r} takes at least {n_identities_for(max_fpr, confidence):,} "
            f"identities ({needed:,} pairs of them, not one mistaken); there are {n_units:,} ({n_cells:,} pairs), enough for "
            f"max_fpr={math.ceil(least * 1e4) / 1e4:g} at best. Give data of more identities, or a higher max_fpr."
        )
