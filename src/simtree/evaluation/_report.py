"""An evaluation in words: the lines of `print(result)`, which the command shares, a legend, and a sentence without terms.

The words are FPR and TPR; what ISO 19795 calls them (FMR, FNMR) is named once, in the legend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from simtree._utils.validation import count

if TYPE_CHECKING:
    from simtree.evaluation._results import Evaluation

RANKS = (1, 5, 10, 20)
# The smallest number of pairs that a sentence speaks of, and the largest.
MIN_SCALE, MAX_SCALE = 100, 10**9


@dataclass(frozen=True)
class ThresholdRates:
    """Both rates at a threshold, with the ends of their intervals.

    Parameters
    ----------
    threshold, fpr, tpr : float
    fpr_interval, tpr_interval : tuple of float
    """

    threshold: float
    fpr: float
    fpr_interval: tuple[float, float]
    tpr: float
    tpr_interval: tuple[float, float]


def rates_at_threshold(result: Evaluation) -> ThresholdRates | None:
    """Return both rates at the threshold in use; None if it is infinite."""
    if result.threshold is None:
        return None
    band = result.band
    place = int(np.flatnonzero(band.thresholds == result.threshold)[0])
    ends = [(float(low), float(high)) for low, high in (band.fpr_interval[place], band.tpr_interval[place])]
    return ThresholdRates(result.threshold, float(band.fpr[place]), ends[0], float(band.tpr[place]), ends[1])


def warning_lines(result: Evaluation) -> list[str]:
    """Return the reasons why intervals may be too narrow, one per line."""
    return [f"warning: {reason}" for reason in result.warnings]


def _weighting(result: Evaluation) -> str:
    return "; every pair of identities counts once" if result.weighting == "identities" else ""


def _protocol(result: Evaluation) -> list[str]:
    if result.n_enrolled is None:
        return []
    enrolled = count(result.n_enrolled, "enrolled identity", "enrolled identities")
    return [f"pairs: a probe and one of {enrolled}, scores fused by {result.fusion!r}"]


def legend(result: Evaluation) -> list[str]:
    """Return what the terms of a report mean."""
    lines = [
        "FPR: share of different pairs that are accepted (ISO: FMR); TPR: share of same pairs accepted (ISO: 1 - FNMR)",
        "EER: 1 - TPR where it equals the FPR",
        "d': distance between the mean scores of same and different pairs, in standard deviations",
        "Cllr: cost of the scores read as log-likelihood ratios, in bits (0 perfect, 1 uninformative); at best: calibrated",
    ]
    if result.cmc is not None:
        lines.append("rank k: share of searches with the true identity among the k best")
    if result.fnir:
        lines.append(
            "FNIR: share of searches that miss an enrolled identity; FPIR: share of searches for others that return an identity"
        )
    return lines


def in_plain_words(result: Evaluation) -> str | None:
    """Return what the threshold in use does, in a sentence without terms; None if it is infinite."""
    rates = rates_at_threshold(result)
    if rates is None:
        return None
    high = rates.fpr_interval[1]
    n_same = scale_of(rates.tpr)
    n_different = scale_of(rates.fpr if rates.fpr > 0.0 else high)
    here = f"about {round(rates.fpr * n_different):,}" if rates.fpr > 0.0 else "none here"
    most = _at_most(high, n_different)
    words = (
        f"At threshold {rates.threshold:.5g} it accepts {round(rates.tpr * n_same):,} of {n_same:,} same pairs; of "
        f"{n_different:,} different ones {here}, at most {most:,} with {100 * result.confidence:g} % confidence"
    )
    # Intervals narrow with the square root of the number of independent units, unless nothing was seen.
    fewer = _at_most(rates.fpr + (high - rates.fpr) / math.sqrt(2.0), n_different)
    if result.unit == "identities" and rates.fpr > 0.0 and fewer < most:
        words += f" (about {fewer:,} with twice as many identities)"
    return f"{words}."


def scale_of(rate: float, at_least: int = MIN_SCALE) -> int:
    """Return the power of ten of which a rate is one or more."""
    scale = at_least
    while rate * scale < 1.0 and scale < MAX_SCALE:
        scale *= 10
    return scale


def _at_most(rate: float, scale: int) -> int:
    return math.ceil(rate * scale - 1e-9)


def report_lines(result: Evaluation) -> list[str]:
    """Return the lines of the table."""
    n_compared = result.n_same + result.n_different
    of_all = "" if n_compared >= result.n_possible else f", drawn from {result.n_possible:,}"
    counts = [
        f"{n:,} {what}" for n, what in ((result.n_identities, "identities"), (result.n_samples, "samples")) if n is not None
    ]
    lines = [
        f"{result.name}: {', '.join([*counts, f'{result.n_same:,} same and {result.n_different:,} different pairs'])}{of_all}",
        f"intervals: {100 * result.confidence:g} %, for new {result.unit}{_weighting(result)}",
        *_protocol(result),
        "",
        f"AUC            {result.auc}",
        f"AUC to FPR 1 % {result.partial_auc:.4g} (chance 0.5)",
        f"EER            {result.eer_interval}, error rates {result.eer.low:.3g} and {result.eer.high:.3g}",
        f"TPR at FPR 0   {result.tpr_at_zero_fpr:.3g} among {result.n_different:,} different pairs",
        f"d'             {result.d_prime:.3g}",
        f"Cllr           {result.cllr:.3g}, at best {result.min_cllr:.3g}",
        "",
        "FPR at most  FPR here    TPR       interval              threshold",
    ]
    for point in result.operating_points:
        tpr = point.tpr
        interval = f"[{tpr.low:.4f}, {tpr.high:.4f}]"
        lines.append(f"{point.target:<13g}{point.fpr:<12.3g}{tpr.value:<10.4f}{interval:<22}{point.threshold:.6g}")
    if result.cmc is not None:
        ranks = [f"rank {k}: {result.cmc[k - 1]:.4f}" for k in RANKS if k <= len(result.cmc)]
        among = "sample among all others" if result.n_enrolled is None else f"probe among {result.n_enrolled:,} identities"
        lines += ["", f"identification, each {among}: {', '.join(ranks)}"]
        assert result.rank1 is not None
        lines.append(f"rank 1:   {result.rank1}")
    if result.fnir_intervals:
        rates = [f"FNIR {fnir} at FPIR {fpir:g}" for fpir, fnir in result.fnir_intervals.items()]
        lines.append(f"open set: {', '.join(rates)}")
    if result.by:
        lines += ["", f"within subgroups, all at threshold {result.by_threshold:.6g}:"]
        lines += [
            f"{group.subgroup!s:<16} FPR {group.fpr or '-'} of {group.n_different:,}, "
            f"TPR {group.tpr or '-'} of {group.n_same:,}"
            for group in result.by
        ]
    if result.warnings:
        lines += ["", *warning_lines(result)]
    words = in_plain_words(result)
    return [*lines, "", *legend(result), *(["", words] if words else [])]
