"""``simtree fit-fusion``: learn how the scores with several enrolled rows of an identity become one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from simtree._utils.validation import count
from simtree.cli._common import (
    Data,
    Jobs,
    Json,
    Label,
    Model,
    NeverPair,
    check_writable,
    friendly_errors,
    scoring_bar,
    show,
    show_json,
    table,
)
from simtree.cli._models import labelled_pairs, load_model, parallel_jobs, samples_of, words_of
from simtree.cli._protocol import protocol_of
from simtree.cli._reading import read_samples
from simtree.evaluation import LearnedFusion


def fit_fusion(
    model: Model,
    data: Data,
    label: Label,
    enrol: Annotated[
        str,
        typer.Option(
            "--enrol",
            metavar="COL",
            help="Column that is true for enrolled rows; the others are probes. Enrol as many per identity as will be usual.",
            show_default=False,
        ),
    ],
    time: Annotated[
        str | None,
        typer.Option("--time", metavar="COL", help="Column with the time of each row, if old samples may count less."),
    ] = None,
    never_pair: NeverPair = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write to this file and leave MODEL unchanged.")
    ] = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Learn how the scores with several enrolled samples of an identity become one, for `--fusion learned`.

    Takes identities that `simtree fit` has not seen, and writes the result into the model file: what high scores, the number of
    samples and their age count. A threshold for learned scores is chosen with `simtree calibrate --enrol --fusion learned`.
    """
    target = model if out is None else out
    with friendly_errors(interrupted=f"Interrupted. {target} was not written."):
        learned = load_model(model)
        check_writable("--out" if out else "MODEL", target.parent, target)
        found = read_samples(data, words_of(learned))
        y, apart, _ = labelled_pairs(found, label, never_pair)
        protocol = protocol_of(found, enrol, None, None, time)
        others = (label, never_pair, enrol, time)
        X = samples_of(learned, found, [column for column in others if column is not None])
        with parallel_jobs(learned, n_jobs), scoring_bar("comparing probes", None):
            learned.fit_fusion(X, y, enrol=protocol["enrol"], time=protocol["time"], never_pair=apart)
        learned.save(target)
    fusion = learned.learned_fusion_
    n_enrolled = int(protocol["enrol"].sum())
    result = {"model": str(target), "data": str(data), "n_enrolled": n_enrolled, "n_probes": len(y) - n_enrolled}
    result |= {"sharpness": fusion.sharpness, "half_life": fusion.half_life if math.isfinite(fusion.half_life) else None}
    show_json(result) if as_json else show(_lines(result, fusion))


def _lines(result: dict[str, Any], fusion: LearnedFusion) -> Any:
    rows = table(f"{result['model']}: a learned fusion", "property", "value")
    rows.add_row("learned from", f"{count(result['n_probes'], 'probe')} and {count(result['n_enrolled'], 'enrolled row')}")
    rows.add_row(
        "high scores count",
        "as much as low ones" if fusion.sharpness == 0.0 else f"more than low ones (sharpness {fusion.sharpness:.3g})",
    )
    age = "as much as new ones" if result["half_life"] is None else f"half as much at an age of {result['half_life']:.3g}"
    rows.add_row("old samples count", age)
    low, high = fusion.n_samples
    rows.add_row("samples per identity", f"{low:g} to {high:g}")
    return rows
