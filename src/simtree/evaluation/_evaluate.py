"""All figures of a similarity on labelled data: verification, identification, groups, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_choice, check_integer, check_real
from simtree.evaluation._counting import MOST_PAIRS, Counted, Histogram, Score, at_most, count_comparisons
from simtree.evaluation._intervals import CurveTallies, wilson_interval
from simtree.evaluation._report import report_lines
from simtree.metrics import (
    EqualErrorRate,
    FloatArray,
    Roc,
    cmc,
    eer,
    fnir_at_fpir,
    n_for_rate,
    partial_auc,
    threshold_at_fmr,
    tpr_at_fpr,
    zero_fmr,
)
from simtree.metrics._roc import check_scores, thresholds_of
from simtree.pairs._inputs import group_numbers
from simtree.pairs._sampling import IndexPairs, PairSampler

FMRS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
FPIRS = (1e-1, 1e-2, 1e-3)
NAMED = {"FMR100": 1e-2, "FMR1000": 1e-3, "FMR10000": 1e-4}
FOR_GROUPS = 1e-3
# Most knots of a curve that is written out.
MOST_KNOTS = 1_000


class Estimate(NamedTuple):
    """A figure and the ends of its interval.

    Parameters
    ----------
    value, low, high : float

    Examples
    --------
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
    """The lowest FNMR with an FMR of at most a target.

    Parameters
    ----------
    target : float
        The FMR that is not exceeded on these pairs.
    threshold : float
        Accept iff score >= threshold.
    fmr : float
        The FMR that it has.
    fnmr : Estimate
        Its FNMR; the interval is that of the FNMR at this target with new people, by a bootstrap over units.
    """

    target: float
    threshold: float
    fmr: float
    fnmr: Estimate


@dataclass(frozen=True)
class GroupRates:
    """Error rates within a group, at the threshold of all.

    Parameters
    ----------
    group : object
        Its name.
    n_same, n_different : int
        Numbers of pairs within the group.
    fmr, fnmr : Estimate or None
        None without pairs of the kind.
    """

    group: Any
    n_same: int
    n_different: int
    fmr: Estimate | None
    fnmr: Estimate | None


@dataclass(frozen=True)
class Band:
    """The curve at some falling thresholds, with intervals of both rates at each (by influence of the units).

    Parameters
    ----------
    thresholds, fpr, tpr : array of shape (n,)
    fpr_interval, tpr_interval : array of shape (n, 2)
    """

    thresholds: FloatArray
    fpr: FloatArray
    tpr: FloatArray
    fpr_interval: FloatArray
    tpr_interval: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What `evaluate` found; print it for a table.

    Parameters
    ----------
    name : str
        What was evaluated.
    n_identities, n_samples : int or None
        How many; None where it is not known.
    n_same, n_different : int
        How many comparisons were made.
    n_possible : int
        How many there are; more than were made, if those were drawn.
    unit : str
        What intervals take for independent: "identities", "samples", or "pairs" if nobody said whose they are.
    level : float
        Level of all intervals.
    roc : Roc
        The curve, with thresholds.
    auc : Estimate
        By influence.
    partial_auc : float
        Area up to FPR 0.01, rescaled so that chance is 0.5 and perfection 1.
    operating_points : tuple of OperatingPoint
        At those FMRs for which there are enough comparisons (rule of three).
    eer : EqualErrorRate
        With the two error rates that are nearest to each other.
    eer_interval : Estimate
        The same figure with its interval, by a bootstrap over units.
    zero_fmr : float
        Lowest FNMR without a false match.
    d_prime, cllr, min_cllr : float
        Separation; cost of the scores read as log-likelihood ratios; and of the best increasing function of them.
    cmc : array or None
        Share of searches with the true identity among the best 1, 2, ...; each sample is searched among all others. None unless
        all comparisons were made.
    fnir : dict or None
        Open-set: the share of missed searches (rank 1) at each FPIR that the searches support.
    histogram : Histogram
        Bars of the scores.
    band : Band
        The curve with its intervals.
    group_threshold : float or None
        The one threshold of the table of groups.
    groups : tuple of GroupRates
        Rates within groups.
    threshold : float or None
        The threshold in use: the one that was asked for, or that of FPR 1e-3 (the lowest FPR in the table if that is higher).
        None if it is infinite.

    Examples
    --------
    >>> evaluate_scores([4, 3, 2, 1], [True, False, True, False])
    Evaluation(scores: AUC 0.75 [0.0938, 0.989], 2 same and 2 different pairs)
    """

    name: str
    n_identities: int | None
    n_samples: int | None
    n_same: int
    n_different: int
    n_possible: int
    unit: str
    level: float
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
    fnir: dict[float, float] | None
    histogram: Histogram
    band: Band
    group_threshold: float | None
    groups: tuple[GroupRates, ...]
    threshold: float | None = None

    def __repr__(self) -> str:
        return f"Evaluation({self.name}: AUC {self.auc}, {self.n_same:,} same and {self.n_different:,} different pairs)"

    def __str__(self) -> str:
        return "\n".join(report_lines(self))

    def to_dict(self) -> dict[str, Any]:
        """All figures as numbers, lists and dicts that JSON can hold; infinite is None, and long curves are thinned out."""
        found = _plain(self)
        found["named"] = self.named
        return dict(found)

    @property
    def named(self) -> dict[str, float]:
        """FMR100, FMR1000 and FMR10000, the FNMR at an FMR of at most 1/100, 1/1000 and 1/10,000, where pairs are enough."""
        reached = {point.target: point.fnmr.value for point in self.operating_points}
        return {name: reached[rate] for name, rate in NAMED.items() if rate in reached}


def evaluate(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    pairs: ArrayLike | None = None,
    identities: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    never_pair: ArrayLike | None = None,
    unit: str = "identities",
    n_pairs: int | None = MOST_PAIRS,
    threshold: float | None = None,
    fmr: Sequence[float] = FMRS,
    max_rank: int = 20,
    n_draws: int = 200,
    level: float = 0.95,
    random_state: int = 0,
) -> Evaluation:
    """Evaluate a similarity on labelled points, or on pairs, that training has not seen.

    Parameters
    ----------
    model : Similarity, or any object with ``pair_score(pairs, X)``
        Fitted.
    X, y, pairs : array-like
        As in `fit`: points and their identities; or pairs and whether they are same pairs.
    identities : array-like, optional
        For pairs: whom the points belong to, one entry for each row of X, or (n_pairs, 2). Without it each point counts as
        somebody else.
    groups : array-like of shape (n_points,), optional
        An attribute of each row of X, such as sex or device: error rates within each group are added.
    never_pair : array-like of shape (n_points,), optional
        Points that share a value here, such as a recording, are not compared.
    unit : {"identities", "samples"}, default="identities"
        What intervals take for independent. "samples" is right when the identities are fixed, such as ten digits.
    n_pairs : int or None, default=5_000_000
        If there are more pairs, so many are drawn, at most a fifth of them same, and there are no searches. None makes all
        comparisons, in bounded memory.
    threshold : float, optional
        The threshold for groups; by default that of FMR 1e-3, or of the lowest FMR in the table if that is higher.
    fmr : sequence of float, default=(1e-1, ..., 1e-6)
        Where the FNMR is wanted; left out where there are too few comparisons.
    max_rank : int, default=20
        Length of the CMC curve.
    n_draws : int, default=200
        How often units are drawn for the bootstrap.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import SimilarityTree, evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SimilarityTree(max_depth=4, random_state=0).fit(X[::2], y[::2])
    >>> result = evaluate(tree, X[1::2], y[1::2], unit="samples")
    >>> print(result.auc)
    0.959 [0.898, 0.984]
    """
    check_choice("unit", unit, ("identities", "samples"))
    options = _Options(unit, threshold, fmr, max_rank, n_draws, level, random_state)
    score, source, units, n_points = _scored_by(model, X, y, pairs, identities, never_pair)
    n_identities: int | None = len(np.unique(units))
    n_samples: int | None = n_points
    if isinstance(source, PairSampler):
        n_possible = source.n_pairs
        source = at_most(source, n_pairs, random_state)
    else:
        n_possible = len(source)
        if identities is None:
            n_identities, options = None, replace(options, unit="samples")
        n_samples = None if np.ndim(X) == 3 else n_samples
    counts = n_identities, n_samples, n_possible
    return _evaluate(type(model).__name__, score, source, units, groups, counts, options)


def evaluate_scores(
    scores: ArrayLike,
    same: ArrayLike,
    *,
    identities: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    threshold: float | None = None,
    fmr: Sequence[float] = FMRS,
    n_draws: int = 200,
    level: float = 0.95,
    random_state: int = 0,
) -> Evaluation:
    """Evaluate scores of pairs, of whatever origin.

    Parameters
    ----------
    scores : array-like of shape (n_pairs,)
        Larger for more alike.
    same : array-like of shape (n_pairs,)
        Whether each pair is a same pair: bool, 0/1 or -1/+1.
    identities : array-like of shape (n_pairs, 2), optional
        Whom the two sides of each pair belong to. Without it pairs are taken for independent, and intervals are too narrow
        if they are not.
    groups : array-like of shape (n_pairs, 2), optional
        An attribute of the two sides of each pair.
    threshold, fmr, n_draws, level, random_state : optional
        As in `evaluate`.

    Returns
    -------
    Evaluation
        Without searches.

    Examples
    --------
    >>> result = evaluate_scores([4, 3, 2, 1], [True, True, False, False])
    >>> result.auc.value, result.zero_fmr
    (1.0, 0.0)
    """
    options = _Options("pairs" if identities is None else "identities", threshold, fmr, 1, n_draws, level, random_state)
    score, is_same = check_scores(scores, same)
    numbers = np.arange(len(score), dtype=np.int32)
    first, second = 2 * numbers, 2 * numbers + np.int32(1)
    units = np.arange(2 * len(score)) if identities is None else group_numbers(identities, 2 * len(score), "identities")
    counts = (None if identities is None else len(np.unique(units)), None, len(score))
    source = IndexPairs(first, second, is_same)
    return _evaluate("scores", lambda rows, _: score[rows // 2], source, units, groups, counts, options)


@dataclass(frozen=True)
class _Options:
    unit: str
    threshold: float | None
    fmr: Sequence[float]
    max_rank: int
    n_draws: int
    level: float
    random_state: int

    def __post_init__(self) -> None:
        check_integer("max_rank", self.max_rank, 1)
        check_integer("n_draws", self.n_draws, 2)
        check_real("level", self.level, 0.0, 1.0, open_low=True, open_high=True)
        if np.ndim(self.fmr) != 1:
            raise TypeError(f"fmr={self.fmr!r} is no list of rates; give one, such as [0.01, 0.001].")
        for rate in self.fmr:
            check_real("fmr", rate, 0.0, 1.0, open_low=True, open_high=True)
        if self.threshold is not None:
            check_real("threshold", self.threshold, -np.inf, np.inf)


def _scored_by(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    pairs: ArrayLike | None,
    identities: ArrayLike | None,
    never_pair: ArrayLike | None,
) -> tuple[Score, PairSampler | IndexPairs, NDArray[np.int64], int]:
    """How to score pairs of rows, which pairs there are, whom each row belongs to, and how many rows there are."""
    if hasattr(model, "_comparisons"):
        score, source, units = model._comparisons(X, y, pairs, identities, never_pair)
        return score, source, units, len(units)
    if not hasattr(model, "pair_score"):
        raise TypeError(f"model={model!r} cannot be evaluated; give a similarity, or any object with pair_score(pairs, X).")
    if pairs is not None or np.ndim(X) == 3:
        raise TypeError(f"model={model!r} is not a Similarity; score the pairs yourself, and call evaluate_scores.")
    points, sampler = np.asarray(X), PairSampler(y, never_pair=never_pair)
    if len(points) != sampler.n_points:
        raise ValueError(f"y has {sampler.n_points} entries for the {len(points)} rows of X; give one for each row.")
    return (
        lambda first, second: np.asarray(model.pair_score(np.column_stack([first, second]), points), dtype=np.float64),
        sampler,
        sampler.classes,
        len(points),
    )


def _evaluate(
    name: str,
    score: Score,
    source: PairSampler | IndexPairs,
    identities: NDArray[np.int64],
    groups: ArrayLike | None,
    counts: tuple[int | None, int | None, int],
    options: _Options,
) -> Evaluation:
    units = np.arange(len(identities)) if options.unit == "samples" else identities
    group_names, group_codes = _check_groups(groups, len(identities))
    counted = count_comparisons(
        score,
        source,
        units,
        fmr=np.asarray(options.fmr, dtype=np.float64),
        at=np.array([] if options.threshold is None else [options.threshold]),
        groups=group_codes,
        n_draws=options.n_draws,
        random_state=options.random_state,
    )
    roc, tallies = counted.roc, counted.tallies
    n_different = tallies.different.n_pairs
    targets = [float(rate) for rate in options.fmr if n_different >= n_for_rate(float(rate))]
    equal = eer(roc)
    tprs = [tpr_at_fpr(roc, target) for target in targets]
    ends = tallies.bootstrap_intervals([roc.auc(), equal.value, *tprs], targets, options.level)
    points = tuple(
        OperatingPoint(target, *_reached(roc, target), Estimate(1.0 - tpr, *(1.0 - interval[::-1]).tolist()))
        for target, tpr, interval in zip(targets, tprs, ends[2:], strict=True)
    )
    of_fpr, of_tpr = tallies.rate_intervals(options.level)
    thresholds, different, same = tallies.same.thresholds, tallies.different.rates[:-1], tallies.same.rates[:-1]
    strict = [point.threshold for point in points if point.target >= FOR_GROUPS]
    default = strict[-1] if strict else equal.threshold
    place, group_threshold = _place(thresholds, default if options.threshold is None else options.threshold)
    n_identities, n_samples, n_possible = counts
    return Evaluation(
        name=name,
        n_identities=n_identities,
        n_samples=n_samples,
        n_same=tallies.same.n_pairs,
        n_different=n_different,
        n_possible=n_possible,
        unit=options.unit,
        level=options.level,
        roc=roc,
        auc=Estimate(roc.auc(), *tallies.auc_interval(roc.auc(), options.level).tolist()),
        partial_auc=partial_auc(roc, 1e-2, standardize=True),
        operating_points=points,
        eer=equal,
        eer_interval=Estimate(equal.value, *ends[1].tolist()),
        zero_fmr=zero_fmr(roc),
        d_prime=counted.d_prime,
        cllr=counted.cllr,
        min_cllr=counted.min_cllr,
        cmc=None if counted.searches is None else cmc(counted.searches.ranks, options.max_rank),
        fnir=_open_set(counted),
        histogram=counted.histogram,
        band=Band(thresholds, different, same, of_fpr, of_tpr),
        group_threshold=group_threshold if group_names else None,
        groups=tuple(
            _group_rates(group, tallies_of, place, options.level)
            for group, tallies_of in zip(group_names, counted.groups, strict=True)
        ),
        threshold=None if options.threshold is not None and math.isinf(options.threshold) else group_threshold,
    )


def _check_groups(groups: ArrayLike | None, n_points: int) -> tuple[list[Any], NDArray[np.int64] | None]:
    """Names of the groups by first appearance, and the number of the group of each row."""
    if groups is None:
        return [], None
    codes = group_numbers(groups, n_points)
    first = np.unique(codes, return_index=True)[1]
    return list(np.asarray(groups).ravel()[first]), codes


def _reached(roc: Roc, target: float) -> tuple[float, float]:
    """The threshold of an operating point, and the FMR it has."""
    threshold = threshold_at_fmr(roc, target)
    return threshold, float(roc.fpr[np.flatnonzero(thresholds_of(roc) == threshold)[0]])


def _place(thresholds: FloatArray, wanted: float) -> tuple[int, float]:
    """The lowest of the falling thresholds that is not below a wanted one (or the highest): rates stay below targets."""
    place = max(int(np.searchsorted(-thresholds, -wanted, side="right")) - 1, 0)
    return place, float(thresholds[place])


def _group_rates(group: Any, tallies: CurveTallies, place: int, level: float) -> GroupRates:
    estimates: list[Estimate | None] = []
    for tally in (tallies.different, tallies.same):
        if not tally.n_pairs:
            estimates.append(None)
            continue
        rate = float(tally.rates[place])
        sizes, free = tally.effective_sizes()
        estimates.append(Estimate(rate, *wilson_interval(rate, sizes[place], free[place], level).tolist()))
    fmr, tpr = estimates
    fnmr = None if tpr is None else Estimate(1.0 - tpr.value, 1.0 - tpr.high, 1.0 - tpr.low)
    name = group.item() if isinstance(group, np.generic) else group
    return GroupRates(name, tallies.same.n_pairs, tallies.different.n_pairs, fmr, fnmr)


def _open_set(counted: Counted) -> dict[float, float] | None:
    """FNIR at the FPIRs that the number of searches supports."""
    if counted.searches is None:
        return None
    targets = [rate for rate in FPIRS if len(counted.searches.ranks) >= n_for_rate(rate)]
    return dict(zip(targets, fnir_at_fpir(counted.searches, targets).tolist(), strict=True))


def _plain(value: Any) -> Any:
    """Dataclasses, tuples and arrays as what JSON can hold."""
    if isinstance(value, Roc):
        # Evenly in rank on a logarithmic scale: the left of the curve is what matters.
        n = len(value.fpr)
        kept = np.unique(np.append(0, np.geomspace(1, n, MOST_KNOTS).astype(np.int64) - 1)) if n > MOST_KNOTS else slice(None)
        arrays = {"fpr": value.fpr, "tpr": value.tpr, "thresholds": value.thresholds}
        return {key: None if array is None else _plain(array[kept]) for key, array in arrays.items()}
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        return {key: _plain(entry) for key, entry in value._asdict().items()}
    if isinstance(value, dict):
        return {f"{key:g}": _plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)
