"""``simtree evaluate``: error rates of a model on unseen identities, or of any scores."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path
from typing import Annotated, Any

import typer

from simtree.cli._common import (
    DEFAULT_COMPARISONS,
    Assume,
    Assumption,
    Comparisons,
    Confidence,
    Jobs,
    Json,
    NeverPair,
    check_writable,
    friendly_errors,
    require_matplotlib,
    say,
    scoring_bar,
    show,
    show_json,
    table,
)
from simtree.cli._dask import Dask, opened_cluster, read_for, samples_for
from simtree.cli._models import labelled_pairs, load_model, parallel_jobs, words_of
from simtree.cli._protocol import Enrol, FusionName, FusionOption, NBest, Time, protocol_of
from simtree.cli._reading import check_there
from simtree.evaluation._evaluate import evaluate, evaluate_scores
from simtree.evaluation._report import (
    RANKS,
    ThresholdRates,
    in_plain_words,
    legend,
    rates_at_threshold,
    warning_lines,
)
from simtree.evaluation._results import Evaluation
from simtree.evaluation._score_files import ScoreTable, read_scores
from simtree.evaluation._templates import N_BEST, TOP_MEAN
from simtree.evaluation._thresholds import ThresholdReport, threshold_for_scores


class Unit(enum.StrEnum):
    """What confidence intervals take as independent."""

    identities = "identities"
    samples = "samples"


class Weighting(enum.StrEnum):
    """What counts once."""

    samples = "samples"
    identities = "identities"


def evaluate_model(
    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help="Model file, as written by `simtree fit`.")] = None,
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="Table of samples that the model has not seen, as for `simtree fit`."),
    ] = None,
    label: Annotated[str | None, typer.Option("--label", metavar="COL", help="Column with the identity.")] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            "--scores", metavar="FILE", help="Instead of MODEL and DATA: scores written by `simtree score --label` or by bob."
        ),
    ] = None,
    never_pair: NeverPair = None,
    enrol: Enrol = None,
    fusion: FusionOption = None,
    n_best: NBest = None,
    time: Time = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COL", help="Column with an attribute, such as sex or device: also rates per subgroup."),
    ] = None,
    unit: Annotated[
        Unit,
        typer.Option(
            "--unit",
            metavar="identities/samples",
            help="Confidence intervals are for new identities, or for new samples of the same ones.",
        ),
    ] = Unit.identities,
    weighting: Annotated[
        Weighting,
        typer.Option(
            "--weighting",
            metavar="samples/identities",
            help="Count every pair of samples once, or every pair of identities, whatever their numbers of samples.",
        ),
    ] = Weighting.samples,
    sessions: Annotated[
        str | None,
        typer.Option(
            "--sessions",
            metavar="COL",
            help="Column with the session, whose samples share an effect: intervals are for new sessions, too.",
        ),
    ] = None,
    n_pairs: Comparisons = DEFAULT_COMPARISONS,
    max_fpr: Annotated[
        float | None,
        typer.Option(
            "--max-fpr",
            metavar="RATE",
            help="With --scores: choose a threshold with a guarantee on its false positive rate; see `simtree calibrate`.",
        ),
    ] = None,
    confidence: Confidence = 0.95,
    assume: Assume = Assumption.regular,
    plots: Annotated[Path | None, typer.Option("--plots", metavar="DIR", help="Folder for plots.", file_okay=False)] = None,
    dask: Dask = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Evaluate a model on data it has not seen, with confidence intervals that account for identities shared by pairs.

    Identification rates (CMC) need all comparisons: give --n-pairs 0, or data with fewer pairs than --n-pairs.
    """
    with friendly_errors(interrupted="Interrupted. No plot was drawn."):
        if plots is not None:
            require_matplotlib()
            check_writable("--plots", plots)
        report: ThresholdReport | None = None
        if scores is not None:
            _refuse(
                MODEL=model,
                DATA=data,
                __label=label,
                __never_pair=never_pair,
                __enrol=enrol,
                __fusion=fusion,
                __n_best=n_best,
                __time=time,
                __by=by,
                __unit=None if unit is Unit.identities else unit,
                __weighting=None if weighting is Weighting.samples else weighting,
                __sessions=sessions,
                __n_pairs=None if n_pairs == DEFAULT_COMPARISONS else n_pairs,
                __dask=dask,
            )
            comparisons = _read(scores)
            found = evaluate_scores(comparisons.scores, comparisons.same, identities=comparisons.identities)
            if max_fpr is not None:
                report = _promised(comparisons, max_fpr, confidence, assume)
        else:
            if max_fpr is not None:
                raise typer.BadParameter("--max-fpr goes with --scores; use `simtree calibrate` for a model.")
            if model is None or data is None or label is None:
                raise typer.BadParameter("give MODEL, DATA and --label COL, or --scores FILE.")
            learned = load_model(model)
            report = getattr(learned, "threshold_report_", None)
            options = {"unit": unit.value, "weighting": weighting.value, "n_pairs": n_pairs or None}
            columns = {"never_pair": never_pair, "by": by, "sessions": sessions, "enrol": enrol, "time": time}
            with opened_cluster(dask) as client:
                found = _from_model(client, learned, data, label, columns, fusion, n_best, n_jobs, options)
            if not _is_for(report, enrol, fusion, n_best):  # the threshold of the model is for other scores
                report = None
        files = [] if plots is None else draw(found, plots, report)
    source = str(scores) if scores is not None else str(data)
    rates = None if scores is not None or (found.fusion is not None and report is None) else rates_at_threshold(found)
    if as_json:
        at_threshold = None if rates is None else dataclasses.asdict(rates)
        result = {
            "model": model and str(model),
            "data": source,
            "at_threshold": at_threshold,
            **found.to_dict(),
            "plots": files,
        }
        if max_fpr is not None and report is not None:
            result["guarantee"] = {**report.to_dict(), "promise": report.promise}
        show_json(result)
        return
    tables = _tables(found, source, rates, report, by)
    if max_fpr is not None and report is not None:
        tables.append(_guarantee_table(report))
    show(*tables, *warning_lines(found), *legend(found), "", in_plain_words(found) or "")
    for file in files:
        say(f"Drawn: {file}")


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            option = name.replace("__", "--").replace("_", "-")
            raise typer.BadParameter(f"{option} cannot be combined with --scores; leave it out.")


def _from_model(
    client: Any,
    learned: Any,
    data: Path,
    label: str,
    columns: dict[str, str | None],
    fusion: FusionName | None,
    n_best: int | None,
    n_jobs: int,
    options: dict[str, Any],
) -> Evaluation:
    """Evaluate a model on a table; ``columns`` are those of never_pair, by, sessions, enrol and time."""
    others = [name for name in (label, *columns.values()) if name is not None]
    found, folder = read_for(client, data, others, words_of(learned))
    y, apart, pairs = labelled_pairs(found, label, columns["never_pair"])
    by, sessions = (
        None if (name := columns[option]) is None else found.labels(name, f"--{option}") for option in ("by", "sessions")
    )
    X = samples_for(learned, found, folder, others)
    protocol = protocol_of(found, columns["enrol"], fusion, n_best, columns["time"])
    n_compared = None if protocol else min(options["n_pairs"] or pairs.n_pairs, pairs.n_pairs)
    is_for_these = _is_for(getattr(learned, "threshold_report_", None), columns["enrol"], fusion, n_best)
    threshold = learned.threshold_ if is_for_these else None
    options |= {**protocol, "by": by, "never_pair": apart, "sessions": sessions, "threshold": threshold}
    with parallel_jobs(learned, n_jobs), scoring_bar("comparing pairs", n_compared):
        if client is None:
            return evaluate(learned, X, y, **options)
        from simtree.dask import evaluate as evaluate_on_cluster

        return evaluate_on_cluster(learned, X, y, client=client, **options)


def _is_for(report: ThresholdReport | None, enrol: str | None, fusion: FusionName | None, n_best: int | None) -> bool:
    """Return whether the threshold of a model is for scores that are fused in this way, or for pairs as these are."""
    chosen = (None, None) if report is None else (report.fusion, report.n_best)
    if enrol is None:
        return chosen == (None, None)
    name = "max" if fusion is None else fusion.value
    return chosen == (name, (n_best or N_BEST) if name == TOP_MEAN else None)


def draw(found: Evaluation, folder: Path, report: ThresholdReport | None) -> list[str]:
    """Draw the plots into a folder and return the names of the files."""
    import matplotlib.pyplot as plt

    from simtree.plots import CmcDisplay, DetDisplay, RocDisplay, ScoreHistogramDisplay, ThresholdDisplay

    roc = RocDisplay(found.roc, knots=False, band=found.band, threshold=found.threshold).plot(log_fpr=True)
    displays: dict[str, Any] = {
        "det": DetDisplay(found).plot(),
        "roc": roc,
        "scores": ScoreHistogramDisplay(found).plot(threshold=None if report is None else report.threshold),
        "threshold": ThresholdDisplay(found, report=report).plot(),
    }
    if found.cmc is not None:
        displays["cmc"] = CmcDisplay(found).plot()
    files = []
    for name, display in displays.items():
        file = folder / f"{name}.png"
        display.figure_.savefig(file, dpi=150)
        plt.close(display.figure_)
        files.append(str(file))
    return files


def _tables(
    found: Evaluation, source: str, rates: ThresholdRates | None, report: ThresholdReport | None, by: str | None
) -> list[Any]:
    interval = f"{100 * found.confidence:g} % interval"
    metrics = table(f"{source}: {found.name}", "metric", ">value", interval)
    if found.n_identities is not None:
        metrics.add_row("identities", f"{found.n_identities:,}", "")
    if found.n_samples is not None:
        metrics.add_row("samples", f"{found.n_samples:,}", "")
    drawn = "" if found.n_same + found.n_different >= found.n_possible else f"drawn from {found.n_possible:,} of both kinds"
    if found.n_enrolled is not None:
        metrics.add_row("enrolled identities", f"{found.n_enrolled:,}", f"scores fused by {found.fusion!r}")
    metrics.add_row("same pairs", f"{found.n_same:,}", drawn)
    metrics.add_row("different pairs", f"{found.n_different:,}", drawn)
    metrics.add_row("AUC", f"{found.auc.value:.4f}", _ends(found.auc.low, found.auc.high))
    metrics.add_row("AUC up to FPR 0.01", f"{found.partial_auc:.4f}", "chance is 0.5")
    metrics.add_row("EER", f"{found.eer.value:.4f}", _ends(found.eer_interval.low, found.eer_interval.high))
    metrics.add_row("d'", f"{found.d_prime:.3f}", "")
    metrics.add_row("Cllr, at best", f"{found.min_cllr:.3f}", "")
    if found.cmc is not None:
        for k in RANKS:
            ends = _ends(found.rank1.low, found.rank1.high) if k == 1 and found.rank1 else ""
            metrics.add_row(f"found at rank {k}", f"{found.cmc[k - 1]:.4f}", ends)
    for fpir, fnir in (found.fnir_intervals or {}).items():
        metrics.add_row(f"FNIR at FPIR {fpir:g}", f"{fnir.value:.4f}", _ends(fnir.low, fnir.high))
    points = table(
        f"Operating points; intervals are for new {found.unit}", "FPR at most", ">FPR here", ">TPR", interval, ">threshold"
    )
    for point in found.operating_points:
        tpr = point.tpr
        points.add_row(
            f"{point.target:g}", f"{point.fpr:.3g}", f"{tpr.value:.4f}", _ends(tpr.low, tpr.high), f"{point.threshold:.5g}"
        )
    shown = [metrics, points]
    if rates is not None:
        promised = "" if report is None or report.max_fpr is None else f"; its promise: {report.promise}"
        at = table(f"At the model's threshold {rates.threshold:.5g}{promised}", "rate", ">value", interval)
        at.add_row("FPR", f"{rates.fpr:.3g}", _ends(*rates.fpr_interval))
        at.add_row("TPR", f"{rates.tpr:.4f}", _ends(*rates.tpr_interval))
        shown.append(at)
    if found.by:
        within = table(f"By {by}, at threshold {found.by_threshold:.5g}", str(by), ">FPR", interval, ">TPR", interval)
        for group in found.by:
            cells = [
                (f"{rate.value:.3g}", _ends(rate.low, rate.high)) if rate else ("-", "") for rate in (group.fpr, group.tpr)
            ]
            within.add_row(str(group.subgroup), *cells[0], *cells[1])
        shown.append(within)
    return shown


def _ends(low: float, high: float) -> str:
    return f"[{low:.3g}, {high:.3g}]"


def _read(path: Path) -> ScoreTable:
    check_there(path)
    return read_scores(path)


def _promised(comparisons: ScoreTable, max_fpr: float, confidence: float, assume: Assumption) -> ThresholdReport:
    """Choose a threshold for the scores of a file, with a guarantee."""
    return threshold_for_scores(
        comparisons.scores,
        comparisons.same,
        comparisons.identities,
        max_fpr=max_fpr,
        confidence=confidence,
        assume=assume.value,
    )


def _guarantee_table(report: ThresholdReport) -> Any:
    rows = table(f"Threshold {report.threshold:.6g}", "property", "value")
    rows.add_row("promise", f"{report.promise}. For new identities, if the scores are of samples that their model had not seen")
    rows.add_row("FPR here", f"{report.fpr:.3g}")
    rows.add_row("TPR here", f"{report.tpr:.3g}")
    return rows
