"""``simtree cluster`` and ``simtree gallery cluster``: groups of rows without labels, or of the samples of a gallery."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from simtree._utils.validation import count
from simtree.cli._common import (
    Data,
    Jobs,
    Json,
    Model,
    check_writable,
    friendly_errors,
    opened_output,
    say,
    scoring_bar,
    show_json,
)
from simtree.cli._galleries import GalleryAddress, Out, searched_gallery
from simtree.cli._models import load_model, parallel_jobs, samples_of, words_of
from simtree.cli._reading import read_samples
from simtree.gallery._address import shown
from simtree.models import Clusters, cluster


class Method(enum.StrEnum):
    """How matches become groups."""

    average = "average"
    components = "components"


MaxFpr = Annotated[
    float | None,
    typer.Option(
        "--max-fpr",
        metavar="RATE",
        help="Rate of different pairs that may match, which the model must have been calibrated for (`simtree calibrate`). It "
        "is a rate of pairs, each of which may join two groups: choose it far below one by the number of rows.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", metavar="SCORE", help="Pairs match from this score on, instead of the threshold of the model."),
]
How = Annotated[
    Method,
    typer.Option(
        "--method",
        metavar="average/components",
        help="average: groups are joined while their mean score reaches the threshold; components: all that matches connect.",
    ),
]
INTERRUPTED = "Interrupted. Nothing was written."


def cluster_table(
    model: Model,
    data: Data,
    max_fpr: MaxFpr = None,
    threshold: Threshold = None,
    method: How = Method.average,
    label: Annotated[
        str | None, typer.Option("--label", metavar="COL", help="Column with known identities, to evaluate the groups.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--id", metavar="COL", help="Column that names the rows of DATA; row numbers by default.")
    ] = None,
    out: Out = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Group the rows of a table without labels, as CSV: row, cluster, size.

    Rows that the model matches are of one group. Matches are found by an exact search, without a table of all pairs.
    """
    with friendly_errors(interrupted=INTERRUPTED):
        learned = load_model(model)
        if out is not None:
            check_writable("--out", out.parent, out)
        others = [name for name in (label, key) if name is not None]
        found = read_samples(data, [*others, *words_of(learned)])
        if not len(found):
            raise ValueError(f"{found.name} has no rows; give at least one.")
        y = None if label is None else found.labels(label, "--label").astype(str)
        names = np.arange(len(found)) if key is None else found.labels(key, "--id")
        samples = samples_of(learned, found, others)
        with parallel_jobs(learned, n_jobs), scoring_bar("comparing rows", None):
            clusters = cluster(learned, samples, y=y, max_fpr=max_fpr, threshold=threshold, method=method.value)
        table = pd.DataFrame({"row": names, "cluster": clusters.labels, "size": clusters.sizes[clusters.labels]})
        _finish({"model": str(model), "data": str(data)}, clusters, table, out, as_json)


def cluster_gallery(
    gallery: GalleryAddress,
    max_fpr: MaxFpr = None,
    threshold: Threshold = None,
    method: How = Method.average,
    out: Out = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Group the samples of a gallery, whatever their ids, as CSV: id, cluster, size.

    A group with several ids may be one person who is enrolled twice; an id in several groups may be of several people.
    """
    with friendly_errors(interrupted=INTERRUPTED):
        if out is not None:
            check_writable("--out", out.parent, out)
        with searched_gallery(gallery, n_jobs) as opened, scoring_bar("comparing samples", None):
            groups = opened.cluster(max_fpr=max_fpr, threshold=threshold, method=method.value)
        _finish({"gallery": shown(gallery)}, groups.clusters, groups.to_frame(), out, as_json, mixed=groups.mixed())


def _finish(
    what: dict[str, Any], clusters: Clusters, table: pd.DataFrame, out: Path | None, as_json: bool, **more: Any
) -> None:
    """Write the table, or everything as JSON, and say what was found."""
    if as_json:
        show_json({**what, **clusters.to_dict(), **more, "rows": table.to_dict("records")})
        return
    with opened_output(out) as stream:
        stream.write(table.to_csv(index=False, lineterminator="\n").encode())
    say(_sentence(clusters) + (f" {count(len(more['mixed']), 'group')} with several ids." if "mixed" in more else ""))
    if out is not None:
        say(f"Written: {count(len(table), 'row')} to {out}")


def _sentence(clusters: Clusters) -> str:
    matches = count(clusters.n_matches, "match", "matches")
    of_rows = f"{count(clusters.n_clusters, 'group')} of {count(len(clusters.labels), 'row')}"
    found = f"{of_rows}: {matches} above {clusters.threshold:g}."
    if clusters.expected_false_matches is not None:
        false = clusters.expected_false_matches
        found += (
            f" At most about {false:.3g} of them are false at a rate of {clusters.max_fpr:g} of {clusters.n_pairs:,} pairs."
        )
    if clusters.pairwise is not None and clusters.b_cubed is not None:
        for name, (precision, recall, f1) in (("By pairs", clusters.pairwise), ("B-cubed", clusters.b_cubed)):
            found += f" {name}: precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}."
    return found
