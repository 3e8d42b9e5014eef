"""``simtree report`` and ``simtree set-threshold``: a page for the person who decides, and the decision."""

from __future__ import annotations

import hashlib
import importlib.util
import math
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from simtree.cli._common import (
    DEFAULT_COMPARISONS,
    Comparisons,
    Confidence,
    Data,
    Jobs,
    Json,
    Label,
    Model,
    NeverPair,
    check_writable,
    command_line,
    file_size,
    friendly_errors,
    say,
    scoring_bar,
    show,
    show_json,
)
from simtree.cli._evaluate import Unit
from simtree.cli._models import labelled_pairs, load_model, parallel_jobs, samples_of, words_of
from simtree.cli._protocol import Enrol, FusionOption, NBest, Time, protocol_of
from simtree.cli._reading import read_samples
from simtree.evaluation._report import in_plain_words
from simtree.report._write import Origin, write

SHAPE = re.compile(r"([1-9]\d*)x([1-9]\d*)")


def _shape(text: str | None) -> tuple[int, int] | None:
    """Return height and width, given as ``28x28``."""
    if text is None:
        return None
    found = SHAPE.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"--image-shape {text} is not height x width; give it as in 28x28.")
    return int(found[1]), int(found[2])


def _numbers(text: str | None) -> list[int]:
    """Return whole numbers that are given as ``1,2,5``."""
    parts = [] if text is None else text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise typer.BadParameter(f"--enrolled {text} is not a list of numbers; give it as in 1,2,5.")
    return [int(part) for part in parts]


def report(
    model: Model,
    data: Data,
    label: Label,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="HTML file to write.", show_default=False)],
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="COL", help="Column with an attribute, such as sex or device: also rates per subgroup."),
    ] = None,
    never_pair: NeverPair = None,
    enrol: Enrol = None,
    fusion: FusionOption = None,
    n_best: NBest = None,
    time: Time = None,
    sessions: Annotated[
        str | None,
        typer.Option("--sessions", metavar="COL", help="Column with the session, whose samples share an effect."),
    ] = None,
    unit: Annotated[
        Unit,
        typer.Option("--unit", metavar="identities/samples", help="Intervals are for new identities, or for new samples only."),
    ] = Unit.identities,
    n_pairs: Comparisons = DEFAULT_COMPARISONS,
    confidence: Confidence = 0.95,
    enrolled: Annotated[
        str | None,
        typer.Option(
            "--enrolled",
            metavar="N,N,...",
            help="Also the equal error rate with these numbers of enrolled samples per identity, such as 1,2,5; --fusion and "
            "--time go with it, too.",
        ),
    ] = None,
    with_samples: Annotated[
        bool,
        typer.Option(
            "--with-samples", help="Show identities, values and images of the hardest pairs: the file then holds personal data."
        ),
    ] = False,
    image_shape: Annotated[
        str | None, typer.Option("--image-shape", metavar="HxW", help="Samples are images of this height and width.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.")] = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Write one HTML file for the person who decides: error rates with bands, and a threshold to move.

    The file needs no network. No sample is in it, unless --with-samples is given.
    """
    shape, numbers = _shape(image_shape), _numbers(enrolled)
    with friendly_errors(interrupted=f"Interrupted. {out} was not written."):
        if importlib.util.find_spec("altair") is None or importlib.util.find_spec("vl_convert") is None:
            raise ImportError('The report needs altair and vl-convert-python; install them with: pip install "simtree[report]"')
        learned = load_model(model)
        check_writable("--out", out.parent, out)
        found = read_samples(data, words_of(learned))
        y, apart, pairs = labelled_pairs(found, label, never_pair)
        subgroups, in_sessions = (
            None if column is None else found.labels(column, option)
            for column, option in ((by, "--by"), (sessions, "--sessions"))
        )
        protocol = protocol_of(found, enrol, fusion, n_best, time, needs_enrol=not numbers)
        others = (label, by, never_pair, sessions, enrol, time)
        X = samples_of(learned, found, [column for column in others if column is not None])
        facts = [("Command", command_line()), ("SHA-256 of the model file", _digest(model))]
        if data.is_file():
            facts.append(("SHA-256 of the data file", _digest(data)))
        quoted = {name: shlex.quote(column) for name, column in (("enrol", enrol), ("time", time)) if column is not None}
        origin = Origin(shlex.quote(str(model)), str(data), shlex.quote(label), by or "subgroup", facts=facts, **quoted)
        n_compared = None if protocol else min(n_pairs or pairs.n_pairs, pairs.n_pairs)
        bar = scoring_bar("comparing pairs", n_compared)
        with parallel_jobs(learned, n_jobs), bar:
            result = write(
                learned,
                X,
                y,
                out,
                by=subgroups,
                never_pair=apart,
                **protocol,
                sessions=in_sessions,
                unit=unit.value,
                n_pairs=n_pairs or None,
                confidence=confidence,
                enrolled=numbers,
                with_samples=with_samples,
                image_shape=shape,
                title=title,
                origin=origin,
            )
    if as_json:
        show_json({"model": str(model), "data": str(data), "report": str(out), "bytes": out.stat().st_size, **result.to_dict()})
        return
    show(in_plain_words(result) or "")
    say(f"Written: {out}, {file_size(out.stat().st_size)}; open it in a browser.")
    if with_samples:
        say("It holds samples, because of --with-samples: keep it as safe as the data.")


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def set_threshold(
    model: Model,
    threshold: Annotated[
        float, typer.Argument(metavar="THRESHOLD", help="Pairs with at least this score are accepted.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write to this file and leave MODEL unchanged.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Set the threshold of a model by hand, without a guarantee; `simtree calibrate` chooses one with a guarantee."""
    target = model if out is None else out
    with friendly_errors(interrupted=f"Interrupted. {target} was not written."):
        if not math.isfinite(threshold):
            raise ValueError(f"THRESHOLD {threshold} is not a finite number; give a score.")
        learned = load_model(model)
        check_writable("--out" if out else "MODEL", target.parent, target)
        before, promise = float(learned.threshold_), getattr(learned, "threshold_report_", None)
        learned.set_threshold(threshold)
        learned.save(target)
    lost = promise is not None and bool(promise.promise)
    result = {"model": str(target), "threshold": threshold, "before": before, "guarantee_lost": lost}
    if as_json:
        show_json(result)
        return
    gone = " Its guarantee is gone." if lost else ""
    show(f"{target}: threshold {threshold:.6g} instead of {before:.6g}, without a guarantee.{gone}")
