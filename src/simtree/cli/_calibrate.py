"""``simtree calibrate``: choose the threshold of a model, with a guarantee on its false positive rate."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from simtree.cli._common import (
    DEFAULT_COMPARISONS,
    Assume,
    Assumption,
    Comparisons,
    Confidence,
    Data,
    Jobs,
    Json,
    Label,
    Model,
    NeverPair,
    check_writable,
    friendly_errors,
    say,
    scoring_bar,
    show,
    show_json,
    table,
)
from simtree.cli._models import labelled_pairs, load_model, parallel_jobs, samples_of, words_of
from simtree.cli._protocol import Enrol, FusionOption, NBest, Time, protocol_of
from simtree.cli._reading import read_samples


def calibrate(
    model: Model,
    data: Data,
    label: Label,
    max_fpr: Annotated[
        float,
        typer.Option("--max-fpr", metavar="RATE", help="Highest false positive rate that is allowed.", show_default=False),
    ],
    confidence: Confidence = 0.95,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write to this file and leave MODEL unchanged.")
    ] = None,
    assume: Assume = Assumption.regular,
    sessions: Annotated[
        str | None,
        typer.Option(
            "--sessions",
            metavar="COL",
            help="Column with the session, if samples of a session share an effect; the promise is then for new sessions.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COL", help="Column with an attribute; the promise then holds within each subgroup."),
    ] = None,
    never_pair: NeverPair = None,
    enrol: Enrol = None,
    fusion: FusionOption = None,
    n_best: NBest = None,
    time: Time = None,
    n_pairs: Comparisons = DEFAULT_COMPARISONS,
    strict: Annotated[bool, typer.Option("--strict", help="Write nothing if DATA looks like the training data.")] = False,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Choose a threshold whose false positive rate on unseen identities is at most a target, with 95 % confidence.

    Takes data that `simtree fit` has not seen, and writes the threshold into the model file. If there are too few identities
    for the target, or these are too unequal, nothing is written, and the message says how many are needed. Data that look like
    the training data get a warning, as far as the model can tell.
    """
    target = model if out is None else out
    with friendly_errors(interrupted=f"Interrupted. {target} was not written."):
        learned = load_model(model)
        check_writable("--out" if out else "MODEL", target.parent, target)
        found = read_samples(data, words_of(learned))
        y, apart, pairs = labelled_pairs(found, label, never_pair)
        in_sessions, subgroups = (
            None if column is None else found.labels(column, option)
            for column, option in ((sessions, "--sessions"), (by, "--by"))
        )
        protocol = protocol_of(found, enrol, fusion, n_best, time)
        others = (label, never_pair, sessions, by, enrol, time)
        X = samples_of(learned, found, [column for column in others if column is not None])
        n_compared = None if protocol else min(n_pairs or pairs.n_pairs, pairs.n_pairs)
        bar = scoring_bar("comparing pairs", n_compared)
        with parallel_jobs(learned, n_jobs), bar, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "same pairs score")  # said below
            learned.calibrate_threshold(
                X,
                y,
                max_fpr=max_fpr,
                confidence=confidence,
                assume=assume.value,
                sessions=in_sessions,
                by=subgroups,
                never_pair=apart,
                n_pairs=n_pairs or None,
                strict=strict,
                **protocol,
            )
        learned.save(target)
    check, report = learned.held_out_check_, learned.threshold_report_
    if check.suspicious:
        say(f"Warning: {check}.")
    n_possible = report.n_same + report.n_different if protocol else pairs.n_pairs
    result = {"model": str(target), "data": str(data), "label": label, "n_possible": n_possible, **report.to_dict()}
    result |= {
        "promise": report.promise,
        "looks_like_training_data": check.suspicious,
        "held_out_check": str(check),
    }
    show_json(result) if as_json else show(_lines(result))


def _lines(result: dict[str, Any]) -> Any:
    rows = table(f"{result['model']}: threshold {result['threshold']:.6g}", "property", "value")
    rows.add_row(
        "promise",
        f"{result['promise']}. For new values of {result['label']}, if none of these rows was used to fit the model",
    )
    rows.add_row("WARNING" if result["looks_like_training_data"] else "new data?", result["held_out_check"])
    if result["subgroup"] is not None:
        rows.add_row("strictest subgroup", result["subgroup"])
    rows.add_row("FPR here", f"{result['fpr']:.3g}")
    rows.add_row("TPR here", f"{result['tpr']:.3g}")
    n_compared = result["n_same"] + result["n_different"]
    drawn = "" if n_compared >= result["n_possible"] else f", drawn from {result['n_possible']:,}"
    rows.add_row("compared", f"{result['n_same']:,} same and {result['n_different']:,} different pairs{drawn}")
    rows.add_row(f"values of {result['label']}", f"{result['n_identities']:,}")
    return rows
