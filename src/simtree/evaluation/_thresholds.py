"""Choice of a threshold: with a guarantee on the false positive rate, or where a metric is best.

With a guarantee, thresholds are tried from the strictest one downwards, and the last one whose observed FPR is at most a
critical rate is chosen. The critical rate is the same for all thresholds and the observed FPR increases, so only the first
threshold whose true FPR exceeds the target matters (fixed-sequence testing): no correction for multiple thresholds is needed.
Where the critical rate comes from is in `simtree.evaluation._guarantee`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_choice, check_integer, check_real, count
from simtree.evaluation._counting import MAX_COMPARISONS, SAME_SHARE, Score, check_finite, count_comparisons
from simtree.evaluation._evaluate import check_by
from simtree.evaluation._guarantee import (
    ASSUMPTIONS,
    MIN_PEOPLE,
    Criterion,
    FreeBound,
    Inequality,
    free_criterion,
    regular_criterion,
)
from simtree.evaluation._identity_rates import WEIGHTINGS, IdentityRates, count_identity_rates
from simtree.evaluation._templates import FUSIONS, N_BEST, TOP_MEAN
from simtree.io._fields import MAX_COUNT, Fields
from simtree.metrics import FloatArray, Roc
from simtree.metrics._roc import check_scores, thresholds_of
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import IndexPairs, PairSource

#: Fields of a report on a threshold for scores with enrolled identities.
OF_FUSION = ("fusion", "n_best")
STRATEGIES = ("max_tpr", "max_tnr", "accuracy", "f_beta")
# A refusal says that some identities stand out if heavy tails add this much to the exponent of the critical rate.
MIN_TOLD = 1.0


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
    assume: str = "regular"
    weighting: str = "identities"
    max_samples: int | None = None

    def __post_init__(self) -> None:
        check_choice("strategy", self.strategy, STRATEGIES)
        check_choice("assume", self.assume, ASSUMPTIONS)
        check_choice("weighting", self.weighting, WEIGHTINGS)
        if self.max_samples is not None:
            check_integer("max_samples", self.max_samples, 1)
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
        Rates on these pairs; with a guarantee under its weighting.
    n_identities, n_same, n_different : int
        Numbers of identities, same pairs and different pairs.
    assume, weighting : str or None
        Assumption and weighting of the guarantee, see `Similarity.calibrate_threshold`. None without a guarantee.
    free_bound : float or None
        Upper confidence bound on the FPR of this threshold without any assumption. None without a guarantee.
    n_sessions : int or None
        Number of sessions that identities share, which are new as well; None without such sessions.
    subgroup : str or None
        The subgroup that takes this threshold, if the guarantee is for each of some subgroups.
    fusion : str or None
        How the scores of a probe with the samples of an enrolled identity become one; None if the threshold is for pairs of
        samples.
    n_best : int or None
        Number of scores that the fusion ``"top_mean"`` averages over; None for all others.

    Examples
    --------
    >>> from simtree.evaluation import ThresholdReport
    >>> print(ThresholdReport(1.5, "accuracy", None, None, 0.01, 0.9, 10, 45, 400))
    threshold 1.5 (accuracy): FPR 0.01, TPR 0.9 on 45 same and 400 different pairs of 10 identities
    """

    threshold: float
    strategy: str
    max_fpr: float | None
    confidence: float | None
    fpr: float
    tpr: float
    n_identities: int
    n_same: int
    n_different: int
    assume: str | None = None
    weighting: str | None = None
    free_bound: float | None = None
    n_sessions: int | None = None
    subgroup: str | None = None
    fusion: str | None = None
    n_best: int | None = None

    def __str__(self) -> str:
        lines = (
            f"threshold {self.threshold:.6g} ({self.strategy}): FPR {self.fpr:.3g}, TPR {self.tpr:.3g} on {self.n_same:,} same "
            f"and {count(self.n_different, 'different pair')} of {count(self.n_identities, 'identity', 'identities')}"
        )
        return lines if self.max_fpr is None else f"{lines}\n{self.promise}"

    @property
    def promise(self) -> str:
        """The guarantee in one sentence, with its assumption and the bound without it; empty without a guarantee."""
        if self.max_fpr is None or self.confidence is None or self.free_bound is None:
            return ""
        of = "" if self.subgroup is None else " within each subgroup"
        new = "" if self.n_sessions is None else ", in new sessions,"
        of_fused = "" if self.fusion is None else f" for scores with enrolled identities ({self.fusion})"
        per = f"per pair of {self.weighting}{of}{new}{of_fused}"
        said = f"FPR <= {self.max_fpr:g} {per} with {100 * self.confidence:g} % confidence"
        if self.free_bound <= self.max_fpr:
            return f"{said}, without an assumption about how identities differ"
        return f"{said} if identities differ regularly; without that assumption <= {self.free_bound:.2g}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return asdict(self)

    def _get_state(self) -> dict[str, Any]:
        """Return the fields that a model file stores; those of a fusion only if there is one, as files of before have none."""
        return {name: value for name, value in self.to_dict().items() if name not in OF_FUSION or value is not None}

    @classmethod
    def _from_state(cls, fields: Fields) -> ThresholdReport:
        """Return the report that a model file stores."""

        def rate(name: str) -> float:
            return fields.number(name, 0.0, 1.0)

        def count(name: str) -> int:
            return fields.integer(name, 0, MAX_COUNT)

        fusion = fields.string("fusion", FUSIONS) if fields.has("fusion") else None
        n_best = fields.integer("n_best", 1, MAX_COUNT) if fields.has("n_best") else None
        if fusion == TOP_MEAN and n_best is None:  # a file of before
            n_best = N_BEST
        return cls(
            threshold=fields.number("threshold"),
            strategy=fields.string("strategy", STRATEGIES),
            max_fpr=rate("max_fpr") if fields.has("max_fpr") else None,
            confidence=rate("confidence") if fields.has("confidence") else None,
            fpr=rate("fpr"),
            tpr=rate("tpr"),
            n_identities=count("n_identities"),
            n_same=count("n_same"),
            n_different=count("n_different"),
            assume=fields.string("assume", ASSUMPTIONS) if fields.has("assume") else None,
            weighting=fields.string("weighting", WEIGHTINGS) if fields.has("weighting") else None,
            free_bound=rate("free_bound") if fields.has("free_bound") else None,
            n_sessions=count("n_sessions") if fields.has("n_sessions") else None,
            subgroup=fields.string("subgroup") if fields.has("subgroup") else None,
            fusion=fusion,
            n_best=n_best,
        )


def choose_threshold(
    score: Score,
    source: PairSource,
    units: NDArray[np.int64],
    goal: Goal,
    *,
    sessions: NDArray[np.int64] | None = None,
) -> ThresholdReport:
    """Score all pairs, and choose the threshold that satisfies a goal.

    Parameters
    ----------
    score : callable
        Function from two arrays of row numbers to the scores of the pairs.
    source : PairSource
        The pairs.
    units : array of shape (n_samples,)
        Identity of each sample, numbered from 0.
    goal : Goal
        Criterion for the threshold.
    sessions : array of shape (n_samples,), optional
        Session of each sample, numbered from 0. The guarantee is then for new identities in new sessions.

    Returns
    -------
    ThresholdReport
        The threshold with its rates.
    """
    if goal.guarantee is not None:
        return _guaranteed(score, source, units, goal, sessions)
    counted = count_comparisons(score, source, units, fpr=np.empty(0), at=np.empty(0))
    n_same, n_different = counted.tallies.same.n_pairs, counted.tallies.different.n_pairs
    knot = best_knot(counted.roc, goal, n_same, n_different)
    # The knot that accepts no pair needs a finite threshold, too.
    thresholds = [np.nextafter(counted.highest, np.inf), *thresholds_of(counted.roc)[1:]]
    fpr, tpr = float(counted.roc.fpr[knot]), float(counted.roc.tpr[knot])
    return ThresholdReport(
        float(thresholds[knot]), goal.strategy, None, None, fpr, tpr, len(np.unique(units)), n_same, n_different
    )


def choose_threshold_by(
    score: Score,
    source: PairSource,
    units: NDArray[np.int64],
    goal: Goal,
    *,
    sessions: NDArray[np.int64] | None = None,
    by: ArrayLike | None = None,
    n_pairs: int | None = MAX_COMPARISONS,
) -> ThresholdReport:
    """Choose a threshold on at most ``n_pairs`` pairs that satisfies a goal, within each subgroup if subgroups are given.

    Parameters
    ----------
    score, source, units, goal, sessions : object
        As in `choose_threshold`.
    by : array-like of shape (n_samples,), optional
        Attribute that defines subgroups; only pairs within a subgroup count.
    n_pairs : int or None, default=5_000_000
        Maximum number of pairs, in each subgroup; None for all.

    Returns
    -------
    ThresholdReport
        The threshold with its rates; with subgroups, those of the subgroup with the strictest threshold.
    """

    def choose(within: PairSource) -> ThresholdReport:
        limited = within.limit(
            n_pairs,
            np.random.default_rng(0),
            positive_fraction=SAME_SHARE,
            weighting=goal.weighting if goal.guarantee else "samples",
        )
        return choose_threshold(score, limited, units, goal, sessions=sessions)

    names, codes = check_by(by, len(units))
    if codes is None:
        return choose(source)
    if goal.guarantee is None:
        raise ValueError(
            "by= needs a guarantee (max_fpr and confidence): a metric is best at one threshold for all; leave it out."
        )
    reports = []
    for number, name in enumerate(names):
        within = source.restrict(codes == number)
        if within is None:
            raise ValueError(
                f"by={str(name)!r} has no same or no different pair within it; add samples, or leave this subgroup out."
            )
        try:
            reports.append(replace(choose(within), subgroup=str(name)))
        except ValueError as error:
            raise ValueError(f"Within by={str(name)!r}: {error}") from None
    return max(reports, key=lambda report: report.threshold)


def threshold_for_scores(
    scores: ArrayLike,
    same: ArrayLike,
    identities: ArrayLike,
    *,
    max_fpr: float = 1e-3,
    confidence: float = 0.95,
    assume: str = "regular",
    weighting: str = "identities",
    max_samples: int | None = None,
    sessions: ArrayLike | None = None,
    by: ArrayLike | None = None,
) -> ThresholdReport:
    """Choose a threshold with a guarantee for scores of pairs from any source.

    Parameters
    ----------
    scores : array-like of shape (n_pairs,)
        Scores; larger for more similar samples.
    same : array-like of shape (n_pairs,)
        Whether each pair is a same pair: bool, 0/1 or -1/+1.
    identities : array-like of shape (n_pairs, 2)
        Identities of the two samples of each pair.
    max_fpr, confidence, assume, weighting, max_samples : optional
        The guarantee, as in `Similarity.calibrate_threshold`.
    sessions, by : array-like of shape (n_pairs, 2), optional
        Session, and attribute that defines subgroups, of the two samples of each pair.

    Returns
    -------
    ThresholdReport
        The threshold; print it for the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.evaluation import threshold_for_scores
    >>> rng = np.random.default_rng(0)
    >>> u, v = np.triu_indices(100)
    >>> report = threshold_for_scores((u == v) + 0.1 * rng.normal(size=len(u)), u == v, np.column_stack([u, v]), max_fpr=0.01)
    >>> report.max_fpr, report.assume, 0.2 < report.threshold < 0.4
    (0.01, 'regular', True)
    """
    goal = Goal(max_fpr=max_fpr, confidence=confidence, assume=assume, weighting=weighting, max_samples=max_samples)
    score, is_same = check_scores(scores, same)
    rows = np.arange(2 * len(score), dtype=np.int32)
    return choose_threshold_by(
        lambda first, _: score[first // 2],
        IndexPairs(rows[::2], rows[1::2], is_same),
        encode_groups(identities, len(rows), "identities"),
        goal,
        sessions=None if sessions is None else encode_groups(sessions, len(rows), "sessions"),
        by=by,
    )


def _guaranteed(
    score: Score, source: PairSource, identities: NDArray[np.int64], goal: Goal, sessions: NDArray[np.int64] | None
) -> ThresholdReport:
    """Return the loosest threshold at which the guarantee can be given, or raise an error that says what it takes."""
    same = source.same_pairs()
    same_scores = check_finite(score(same.first, same.second))
    rates = count_identity_rates(score, source, identities, [goal.max_fpr or 0.0], weighting=goal.weighting, sessions=sessions)
    return report_guarantee(rates, goal, same_scores, identities[same.first])


def report_guarantee(
    rates: IdentityRates, goal: Goal, same_scores: FloatArray, same_identities: NDArray[np.int64]
) -> ThresholdReport:
    """Choose the loosest threshold at which a guarantee can be given, or raise an error that says what it takes.

    Parameters
    ----------
    rates : IdentityRates
        Counts of the different pairs.
    goal : Goal
        The guarantee.
    same_scores, same_identities : array of shape (n_same,)
        Scores of the same pairs, and their identities.

    Returns
    -------
    ThresholdReport
        The threshold with its rates.
    """
    max_fpr, confidence = goal.max_fpr or 0.0, goal.confidence or 0.0
    # A threshold above all different pairs is tried as well, if it accepts any same pair.
    tried, observed = rates.thresholds, rates.rates
    if same_scores.max() > rates.highest:
        tried, observed = np.append(np.nextafter(rates.highest, np.inf), tried), np.append(0.0, observed)
    free = _free_bound(rates, goal)
    if observed[0] > max_fpr:
        criterion = Criterion(max_fpr, 0.0, rates.n_units[0], None)  # refused below, whatever is learned
    elif goal.assume == "none" or rates.degrees.max() == 1:  # independent pairs need no assumption
        criterion = free_criterion(free, max_fpr, confidence, rates.n_units[0])
    elif min(rates.n_units[1:], default=math.inf) < MIN_PEOPLE:  # so few sessions are refused whatever is learned
        criterion = Criterion(-1.0, 0.0, rates.n_units[0], None)
    else:
        learned = Inequality(rates.resampler(), rates.n_units, confidence)
        criterion = regular_criterion(learned, max_fpr, rates.n_units, rates.n_identity_pairs)
    if criterion.critical < 0.0:
        raise ValueError(_refusal(goal, criterion, rates.n_units))
    index = int(np.searchsorted(observed, criterion.critical * (1.0 + 1e-12), side="right")) - 1
    if index < 0:
        raise ValueError(
            f"max_fpr={max_fpr!r} cannot be guaranteed: at the strictest threshold the FPR is {observed[0]:.3g}, above the "
            f"critical rate {criterion.critical:.3g}. Give a higher max_fpr, or a model that gives fewer different pairs the "
            "highest score."
        )
    accepted = same_scores >= tried[index]
    return ThresholdReport(
        threshold=float(tried[index]),
        strategy=goal.strategy,
        max_fpr=max_fpr,
        confidence=confidence,
        fpr=float(observed[index]),
        tpr=_mean_by(accepted, same_identities) if goal.weighting == "identities" else float(accepted.mean()),
        n_identities=rates.n_units[0],
        n_same=len(same_scores),
        n_different=rates.n_pairs,
        assume=goal.assume,
        weighting=goal.weighting,
        free_bound=free.at(float(observed[index]), confidence),
        n_sessions=rates.n_units[1] if len(rates.n_units) > 1 else None,
    )


def _mean_by(values: NDArray[np.bool_], groups: NDArray[np.int64]) -> float:
    """Return the mean over groups of the mean of the values of each."""
    sizes = np.bincount(groups)
    means = np.bincount(groups, values)[sizes > 0] / sizes[sizes > 0]
    return float(np.mean(means))


def _free_bound(rates: IdentityRates, goal: Goal) -> FreeBound:
    """Return the assumption-free bound for the identities that were compared."""
    n_independent = rates.n_independent()
    binary = bool(rates.degrees.max() == 1) and rates.largest == 1 and len(rates.n_units) == 1
    if goal.weighting == "identities":
        return FreeBound(n_independent, rates.n_identity_pairs, binary)
    most = rates.max_samples
    if goal.max_samples is None:
        if goal.assume == "none":
            raise ValueError(
                "weighting='samples' without an assumption takes max_samples, the maximum number of samples per identity in "
                f"use (here it is {most}): give it, or weighting='identities'."
            )
        return FreeBound(0, rates.n_identity_pairs)
    if goal.max_samples < most:
        raise ValueError(
            f"max_samples={goal.max_samples} is exceeded by an identity with {count(most, 'sample')}; give at least {most}."
        )
    mean_size = rates.n_pairs / rates.n_identity_pairs / goal.max_samples**2
    return FreeBound(n_independent, rates.n_identity_pairs, binary and goal.max_samples == 1, mean_size)


def _refusal(goal: Goal, criterion: Criterion, n_units: list[int]) -> str:
    """Return why a guarantee is refused, and what it takes."""
    said = f"max_fpr={goal.max_fpr!r} at confidence={goal.confidence!r} cannot be guaranteed"
    n_identities, *n_sessions = n_units
    if n_sessions and n_sessions[0] < MIN_PEOPLE and goal.assume == "regular":
        return (
            f"{said} for new sessions: identities share {count(n_sessions[0], 'session')}, but {MIN_PEOPLE:g} are needed; "
            "give data of more sessions, or leave sessions out if new identities come in these sessions."
        )
    people = count(n_identities, "identity", "identities")
    lower = "" if criterion.possible is None else f", or max_fpr={_rounded_up(criterion.possible):g}"
    if goal.assume == "none":
        return (
            f"{said} without an assumption from {people}, not even without a single error: give data of about "
            f"{criterion.n_needed:,} identities{lower}, or assume='regular'."
        )
    standing_out = ", and some stand out from the others" if criterion.tails >= MIN_TOLD else ""
    return (
        f"{said}: {people} are too few, or too unequal (resampled, they may keep only {100 * criterion.quantile:.0f} % of "
        f"their false positives{standing_out}). Give data of about {criterion.n_needed:,} identities{lower}."
    )


def _rounded_up(rate: float) -> float:
    """Return a rate rounded up to two digits, so that it can still be guaranteed."""
    digits = 1 - math.floor(math.log10(rate))
    return float(math.ceil(rate * 10.0**digits - 1e-9) / 10.0**digits)


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
