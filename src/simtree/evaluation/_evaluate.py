"""Metrics of a similarity on labelled data, with confidence intervals: verification, identification and subgroups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_choice, check_integer, check_real, refuse_pipeline
from simtree.evaluation._counting import MAX_COMPARISONS, SAME_SHARE, Counted, Score, count_comparisons
from simtree.evaluation._enrolled import (
    Templates,
    TemplateScore,
    check_no_pairs,
    check_protocol,
    check_template_times,
    fused_scorer,
)
from simtree.evaluation._intervals import CurveTallies, tally_interval
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._model_fusion import LikelihoodRatio, ModelFusion, resolve_fusion
from simtree.evaluation._reliability import find_doubts
from simtree.evaluation._results import Band, Estimate, Evaluation, OperatingPoint, SubgroupRates
from simtree.evaluation._searching import ProbeCounts
from simtree.evaluation._simultaneous import simultaneous_band
from simtree.metrics import (
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
from simtree.pairs._labels import encode_groups
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs, PairSource

DEFAULT_FPRS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
DEFAULT_FPIRS = (1e-1, 1e-2, 1e-3)
SUBGROUP_FPR = 1e-3


def evaluate(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    pairs: ArrayLike | None = None,
    identities: ArrayLike | None = None,
    by: ArrayLike | None = None,
    never_pair: ArrayLike | None = None,
    enrol: ArrayLike | None = None,
    fusion: str | LearnedFusion | None = None,
    n_best: int | None = None,
    time: Any = None,
    unit: str = "identities",
    weighting: str = "samples",
    sessions: ArrayLike | None = None,
    n_pairs: int | None = MAX_COMPARISONS,
    threshold: float | None = None,
    fpr: Sequence[float] = DEFAULT_FPRS,
    max_rank: int = 20,
    confidence: float = 0.95,
    simultaneous: bool = False,
    random_state: int = 0,
) -> Evaluation:
    """Evaluate a similarity on held-out labelled samples, or on held-out pairs.

    The false positive rate (FPR) and 1 - TPR, where TPR is the true positive rate, are the false match rate (FMR) and the false
    non-match rate (FNMR) of ISO/IEC 19795-1.

    Parameters
    ----------
    model : Similarity, or any object with ``pair_score(pairs, X)``
        Fitted model.
    X, y, pairs : array-like
        Held-out data, as in `fit`: samples and their identities, or pairs and whether they are same pairs.
    identities : array-like, optional
        Only for pairs: identity of each row of X, or of the two samples of each pair, of shape (n_pairs, 2). By default each
        sample counts as an identity of its own.
    by : array-like of shape (n_samples,), optional
        Attribute of each row of X, such as sex or device; the error rates within each of its subgroups are computed as well.
    never_pair : array-like of shape (n_samples,), optional
        Samples with the same value, such as a session, are not compared.
    enrol : array-like of bool of shape (n_samples,), optional
        Which samples are enrolled: the others are probes, and each probe is compared with each enrolled identity, by one score
        from all of its enrolled samples. By default every sample is compared with every other.
    fusion : {"max", "mean", "top_mean", "likelihood_ratio", "learned"} or LearnedFusion, optional
        How the scores of a probe with the samples of an identity become one: the best, the mean, the mean of the best few, the
        closed form of a `GaussianSimilarity`, or what `Similarity.fit_fusion` has learned. ``"max"`` by default.
    n_best : int, optional
        Number of scores that ``"top_mean"`` averages over, by default 3.
    time : array-like of shape (n_samples,), optional
        When each sample was taken, as dates or numbers, for a learned fusion that depends on age.
    unit : {"identities", "samples"}, default="identities"
        What is independent, and would be drawn anew: identities, or only samples if the identities are fixed, such as ten
        digits. It decides how wide the intervals are, not the metrics.
    weighting : {"samples", "identities"}, default="samples"
        What counts once: every pair of samples, or every pair of identities, so that identities with many samples count no
        more than others (each identity also counts once for same pairs and for searches). "identities" needs all pairs.
    sessions : array-like of shape (n_samples,), optional
        Session of each row of X whose effect all of its samples share, such as a day or a device. Intervals are then for new
        sessions, too: they are wider, and few sessions give a warning.
    n_pairs : int or None, default=5_000_000
        Maximum number of pairs. If there are more, this many are sampled, at most a fifth of them same pairs, and no
        identification metrics are computed. None compares all pairs, in bounded memory.
    threshold : float, optional
        Threshold for the rates of subgroups; by default that of an FPR of 1e-3, or of the lowest FPR in the table if that is
        higher.
    fpr : sequence of float, default=(1e-1, ..., 1e-6)
        False positive rates of the operating points; those for which there are too few different pairs are left out.
    max_rank : int, default=20
        Length of the CMC curve.
    confidence : float, default=0.95
        Confidence level of the intervals.
    simultaneous : bool, default=False
        Whether to compute a band that holds at all thresholds together as well, for a threshold that is picked by looking at
        the curve.
    random_state : int, default=0
        Random seed of the sampling of pairs.

    Returns
    -------
    Evaluation
        Metrics with their intervals.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import SimilarityTree, evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SimilarityTree(max_depth=4, random_state=0).fit(X[::2], y[::2])
    >>> result = evaluate(tree, X[1::2], y[1::2], unit="samples")
    >>> print(result.auc)
    0.959 [0.839, 0.983]
    """
    check_choice("unit", unit, ("identities", "samples"))
    options = _Options(unit, weighting, threshold, fpr, max_rank, confidence, random_state, simultaneous)
    check_protocol(enrol, fusion=fusion, n_best=n_best, time=time)
    if enrol is not None:
        check_no_pairs(X, pairs, identities)
        chosen = resolve_fusion(model, "max" if fusion is None else fusion, n_best)
        templates, template_score, n_rows = _templates_of(model, X, y, never_pair, enrol, chosen, time)
        return _evaluate_enrolled(model, templates, template_score, by, sessions, n_pairs, options, n_rows, chosen.name)
    score, source, units, n_rows = _scored_by(model, X, y, pairs, identities, never_pair)
    n_identities: int | None = len(np.unique(units))
    n_samples: int | None = n_rows
    n_possible = source.n_pairs
    if source.labels is None:
        if identities is None:
            _check_identities(options)
            n_identities, options = None, replace(options, unit="samples")
        n_samples = None if np.ndim(X) == 3 else n_samples
    source = source.limit(n_pairs, np.random.default_rng(random_state), positive_fraction=SAME_SHARE)
    _check_all_pairs(options, source.n_pairs, n_possible, n_pairs)
    counts = n_identities, n_samples, n_possible
    return _evaluate(type(model).__name__, score, source, units, by, sessions, counts, options)


def evaluate_scores(
    scores: ArrayLike,
    same: ArrayLike,
    *,
    identities: ArrayLike | None = None,
    by: ArrayLike | None = None,
    weighting: str = "samples",
    sessions: ArrayLike | None = None,
    threshold: float | None = None,
    fpr: Sequence[float] = DEFAULT_FPRS,
    confidence: float = 0.95,
) -> Evaluation:
    """Evaluate scores of pairs from any source.

    Parameters
    ----------
    scores : array-like of shape (n_pairs,)
        Scores; larger for more similar samples.
    same : array-like of shape (n_pairs,)
        Whether each pair is a same pair: bool, 0/1 or -1/+1.
    identities : array-like of shape (n_pairs, 2), optional
        Identities of the two samples of each pair. By default pairs are assumed to be independent; intervals are too narrow if
        they are not.
    by : array-like of shape (n_pairs, 2), optional
        Attribute of the two samples of each pair.
    weighting : {"samples", "identities"}, default="samples"
        As in `evaluate`; "identities" needs `identities`.
    sessions : array-like of shape (n_pairs, 2), optional
        Sessions of the two samples of each pair.
    threshold, fpr, confidence : optional
        As in `evaluate`.

    Returns
    -------
    Evaluation
        Metrics with their intervals, without those of identification.

    Examples
    --------
    >>> from simtree import evaluate_scores
    >>> result = evaluate_scores([4, 3, 2, 1], [True, True, False, False])
    >>> result.auc.value, result.zero_fmr
    (1.0, 0.0)
    """
    options = _Options(
        "pairs" if identities is None else "identities", weighting, threshold, fpr, 1, confidence, random_state=0
    )
    if identities is None:
        _check_identities(options)
    score, is_same = check_scores(scores, same)
    numbers = np.arange(len(score), dtype=np.int32)
    first, second = 2 * numbers, 2 * numbers + np.int32(1)
    units = np.arange(2 * len(score)) if identities is None else encode_groups(identities, 2 * len(score), "identities")
    counts = (None if identities is None else len(np.unique(units)), None, len(score))
    source = IndexPairs(first, second, is_same)
    return _evaluate("scores", lambda rows, _: score[rows // 2], source, units, by, sessions, counts, options)


@dataclass(frozen=True)
class _Options:
    unit: str
    weighting: str
    threshold: float | None
    fpr: Sequence[float]
    max_rank: int
    confidence: float
    random_state: int
    simultaneous: bool = False

    def __post_init__(self) -> None:
        check_choice("weighting", self.weighting, ("samples", "identities"))
        check_integer("max_rank", self.max_rank, 1)
        check_real("confidence", self.confidence, 0.0, 1.0, open_low=True, open_high=True)
        if np.ndim(self.fpr) != 1:
            raise TypeError(f"fpr={self.fpr!r} is not a list of rates; give one, such as [0.01, 0.001].")
        for rate in self.fpr:
            check_real("fpr", rate, 0.0, 1.0, open_low=True, open_high=True)
        if self.threshold is not None:
            check_real("threshold", self.threshold, -np.inf, np.inf)


def _check_identities(options: _Options) -> None:
    if options.weighting == "identities":
        raise ValueError("weighting='identities' needs the identities of the pairs; give identities, or weighting='samples'.")


def _check_all_pairs(options: _Options, n_compared: int, n_possible: int, n_pairs: int | None) -> None:
    if options.weighting == "identities" and n_compared < n_possible:
        raise ValueError(
            f"weighting='identities' needs all {n_possible:,} pairs, more than n_pairs={n_pairs!r}; give n_pairs=None, "
            "or weighting='samples'."
        )


def _templates_of(
    model: Any, X: ArrayLike, y: ArrayLike, never_pair: ArrayLike | None, enrol: ArrayLike, fusion: ModelFusion, time: Any
) -> tuple[Templates, TemplateScore, int]:
    """Return probes and enrolled identities, the function that scores them, and the number of samples."""
    if hasattr(model, "_templates"):
        templates, score = model._templates(X, y, enrol, fusion, never_pair, time)
        return templates, score, len(templates.labels)
    of_pairs, _, labels, n_rows = _scored_by(model, X, y, None, None, never_pair)
    assert not isinstance(fusion, LikelihoodRatio)
    times = check_template_times(time, n_rows, needed=fusion.needs_time)
    return Templates.of(labels, enrol, never_pair), fused_scorer(of_pairs, fusion, times), n_rows


def _evaluate_enrolled(
    model: Any,
    templates: Templates,
    score: TemplateScore,
    by: ArrayLike | None,
    sessions: ArrayLike | None,
    n_pairs: int | None,
    options: _Options,
    n_rows: int,
    fusion: str,
) -> Evaluation:
    """Return the metrics of the comparisons of probes with enrolled identities."""
    source = templates.comparisons(n_pairs, seed=options.random_state)
    n_possible = templates.n_comparisons if n_pairs is not None and templates.n_comparisons > n_pairs else source.n_pairs
    _check_all_pairs(options, source.n_pairs, n_possible, n_pairs)
    units = templates.identities
    result = _evaluate(
        type(model).__name__,
        templates.scorer(score),
        source,
        units,
        templates.of_rows(by, "by"),
        templates.sessions(sessions),
        (len(np.unique(units)), n_rows, n_possible),
        options,
        None if source.n_pairs < n_possible else len(templates.probes),
    )
    return replace(result, fusion=fusion, n_enrolled=len(templates.starts))


def _scored_by(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    pairs: ArrayLike | None,
    identities: ArrayLike | None,
    never_pair: ArrayLike | None,
) -> tuple[Score, PairSource, NDArray[np.int64], int]:
    """Return the scoring function of pairs of rows, the pairs, the identity of each row, and the number of rows."""
    if hasattr(model, "_comparisons"):
        score, source, units = model._comparisons(X, y, pairs, identities, never_pair)
        return score, source, units, len(units)
    refuse_pipeline("model", model)
    if not hasattr(model, "pair_score"):
        raise TypeError(f"model={model!r} cannot be evaluated; give a similarity, or any object with pair_score(pairs, X).")
    if pairs is not None or np.ndim(X) == 3:
        raise TypeError(f"model={model!r} is not a Similarity; score the pairs yourself, and call evaluate_scores.")
    samples, sampler = np.asarray(X), PairSampler(y, never_pair=never_pair)
    if len(samples) != sampler.n_samples:
        raise ValueError(f"y has {sampler.n_samples} entries for the {len(samples)} rows of X; give one entry per row.")
    return (
        lambda first, second: np.asarray(model.pair_score(np.column_stack([first, second]), samples), dtype=np.float64),
        sampler,
        sampler.labels,
        len(samples),
    )


def _evaluate(
    name: str,
    score: Score,
    source: PairSource,
    identities: NDArray[np.int64],
    by: ArrayLike | None,
    sessions: ArrayLike | None,
    counts: tuple[int | None, int | None, int],
    options: _Options,
    n_probes: int | None = None,
) -> Evaluation:
    """Return the metrics of pairs; with ``n_probes``, these are all comparisons of so many probes, which are searched for."""
    weighted = identities if options.weighting == "identities" else None
    probes = None
    if n_probes is not None:
        probes = ProbeCounts(n_probes, identities, by_sample=options.unit == "samples", by_identity=weighted is not None)
    units = np.arange(len(identities)) if options.unit == "samples" else identities
    subgroups, subgroup_codes = check_by(by, len(identities))
    counted = count_comparisons(
        score,
        source,
        units,
        fpr=np.asarray(options.fpr, dtype=np.float64),
        at=np.array([] if options.threshold is None else [options.threshold]),
        subgroups=subgroup_codes,
        identities=weighted,
        sessions=None if sessions is None else encode_groups(sessions, len(identities), "sessions"),
        probes=probes,
        random_state=options.random_state,
    )
    roc, tallies = counted.roc, counted.tallies
    n_different = tallies.different.n_pairs
    targets = [float(rate) for rate in options.fpr if n_different >= n_for_rate(float(rate))]
    equal = eer(roc)
    tprs = [tpr_at_fpr(roc, target) for target in targets]
    ends = tallies.tpr_intervals(tprs, targets, options.confidence)
    points = tuple(
        OperatingPoint(target, *_reached(roc, target), Estimate(1.0 - tpr, *(1.0 - interval[::-1]).tolist()))
        for target, tpr, interval in zip(targets, tprs, ends, strict=True)
    )
    of_fpr, of_tpr = tallies.rate_intervals(options.confidence)
    thresholds, different, same = tallies.same.thresholds, tallies.different.rates[:-1], tallies.same.rates[:-1]
    strict = [point.threshold for point in points if point.target >= SUBGROUP_FPR]
    default = strict[-1] if strict else equal.threshold
    index, by_threshold = _nearest_threshold(thresholds, default if options.threshold is None else options.threshold)
    n_identities, n_samples, n_possible = counts
    return Evaluation(
        name=name,
        n_identities=n_identities,
        n_samples=n_samples,
        n_same=tallies.same.n_pairs,
        n_different=n_different,
        n_possible=n_possible,
        unit=options.unit,
        weighting=options.weighting,
        confidence=options.confidence,
        roc=roc,
        auc=Estimate(roc.auc(), *tallies.auc_interval(roc.auc(), options.confidence).tolist()),
        partial_auc=partial_auc(roc, 1e-2, standardize=True),
        operating_points=points,
        eer=equal,
        eer_interval=Estimate(equal.value, *tallies.eer_interval(equal.value, options.confidence).tolist()),
        zero_fmr=zero_fmr(roc),
        d_prime=counted.d_prime,
        cllr=counted.cllr,
        min_cllr=counted.min_cllr,
        **_identification(counted, options),
        histogram=counted.histogram,
        band=Band(thresholds, different, same, of_fpr, of_tpr, options.confidence, options.unit),
        by_threshold=by_threshold if subgroups else None,
        by=tuple(
            _subgroup_rates(subgroup, subgroup_tallies, index, options.confidence)
            for subgroup, subgroup_tallies in zip(subgroups, counted.subgroups, strict=True)
        ),
        threshold=None if options.threshold is not None and math.isinf(options.threshold) else by_threshold,
        simultaneous=simultaneous_band(tallies, options.confidence, options.unit) if options.simultaneous else None,
        warnings=find_doubts(tallies, counted.searches, index, options.unit),
    )


def check_by(by: ArrayLike | None, n_rows: int) -> tuple[list[Any], NDArray[np.int64] | None]:
    """Return the names of the subgroups by first appearance, and the index of the subgroup of each row."""
    if by is None:
        return [], None
    codes = encode_groups(by, n_rows, "by")
    first = np.unique(codes, return_index=True)[1]
    return list(np.asarray(by).ravel()[first]), codes


def _reached(roc: Roc, target: float) -> tuple[float, float]:
    """Return the threshold of an operating point, and its FPR."""
    threshold = threshold_at_fmr(roc, target)
    return threshold, float(roc.fpr[np.flatnonzero(thresholds_of(roc) == threshold)[0]])


def _nearest_threshold(thresholds: FloatArray, given: float) -> tuple[int, float]:
    """Return the index and value of the lowest threshold that is not below a given one, or else of the highest.

    Thresholds are decreasing. The stricter neighbour is chosen so that rates do not exceed their targets.
    """
    index = max(int(np.searchsorted(-thresholds, -given, side="right")) - 1, 0)
    return index, float(thresholds[index])


def _subgroup_rates(subgroup: Any, tallies: CurveTallies, index: int, confidence: float) -> SubgroupRates:
    estimates: list[Estimate | None] = []
    for tally in (tallies.different, tallies.same):
        if not tally.n_pairs:
            estimates.append(None)
            continue
        estimates.append(Estimate(float(tally.rates[index]), *tally_interval(tally, [index], confidence)[0].tolist()))
    fmr, tpr = estimates
    fnmr = None if tpr is None else Estimate(1.0 - tpr.value, 1.0 - tpr.high, 1.0 - tpr.low)
    name = subgroup.item() if isinstance(subgroup, np.generic) else subgroup
    return SubgroupRates(name, tallies.same.n_pairs, tallies.different.n_pairs, fmr, fnmr)


def _identification(counted: Counted, options: _Options) -> dict[str, Any]:
    """Return the metrics of searches, with the FNIR at each FPIR for which there are enough of them."""
    search = counted.searches
    if search is None:
        return {"cmc": None, "rank1": None, "fnir": None, "fnir_intervals": None}
    found, weights = search.found(), search.weights
    rank1, ends = search.rank1_interval(options.confidence)
    targets = [rate for rate in DEFAULT_FPIRS if len(found.ranks) >= n_for_rate(rate)]
    fnir = fnir_at_fpir(found, targets, weights=weights).tolist()
    of_fnir = search.fnir_intervals(targets, options.confidence) if targets else np.empty((0, 2))
    return {
        "cmc": cmc(found.ranks, options.max_rank, weights=weights),
        "rank1": Estimate(rank1, *ends.tolist()),
        "fnir": dict(zip(targets, fnir, strict=True)),
        "fnir_intervals": {
            target: Estimate(value, *interval.tolist()) for target, value, interval in zip(targets, fnir, of_fnir, strict=True)
        },
    }
