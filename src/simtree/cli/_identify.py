"""``simtree identify`` and ``simtree verify``: who the rows of a table are, as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from simtree._utils.validation import count
from simtree.cli._common import (
    Jobs,
    Json,
    Label,
    check_writable,
    friendly_errors,
    opened_output,
    say,
    scoring_bar,
    show_json,
)
from simtree.cli._dask import Dask, opened_cluster, searching
from simtree.cli._galleries import (
    GalleryAddress,
    Out,
    Time,
    gallery_samples,
    ids_of,
    parse_where,
    searched_gallery,
    stream_rows,
    times_of,
)
from simtree.gallery import Candidates, Gallery
from simtree.gallery._address import shown

Queries = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Table with one row per sample, of any length; - for CSV from standard input.",
        show_default=False,
    ),
]
INTERRUPTED = "Interrupted. Answers that were not written to --out are lost."


def identify(
    gallery: GalleryAddress,
    data: Queries,
    k: Annotated[int, typer.Option("--k", "-k", metavar="N", min=1, help="Maximum number of candidates per row.")] = 10,
    max_fpir: Annotated[
        float | None,
        typer.Option(
            "--max-fpir",
            metavar="RATE",
            help="Only candidates that a stranger has at most this often, see `simtree gallery calibrate`; maybe none.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="NAME=VALUE", help="Search only identities with this value in their metadata."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--id", metavar="COL", help="Column that names the rows of DATA; row numbers by default.")
    ] = None,
    time: Time = None,
    out: Out = None,
    dask: Dask = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Search for the identities that are most similar to each row, as CSV: query, rank, id, score.

    Rows are read, searched for and written block by block. The search is exact. `probability` is there for a model with
    calibrated probabilities and identities with one sample, `expected_false_matches` for a calibrated gallery.
    """
    with friendly_errors(interrupted=INTERRUPTED):
        allowed = parse_where(where or [])
        if out is not None:
            check_writable("--out", out.parent, out)
        seen = Seen()
        with searched_gallery(gallery, n_jobs) as opened, opened_cluster(dask) as client:
            options = {"k": k, "where": allowed, "max_fpir": max_fpir}
            frames = _identified(opened, searching(opened, client, **options), data, key, time, seen)
            if as_json:
                with scoring_bar("searching", None):
                    rows = pd.concat(list(frames)).to_dict("records")
            else:
                _write(frames, out)
    if as_json:
        show_json(
            {
                "gallery": shown(gallery),
                "data": str(data),
                "n_queries": seen.n_queries,
                "n_identities": seen.n_identities,
                "threshold": seen.threshold,
                "promise": seen.promise,
                "candidates": rows,
            }
        )
    if max_fpir is not None:
        say(f"{count(seen.n_queries, 'query', 'queries')}, {seen.n_found:,} with candidates: {seen.promise}.")


@dataclass
class Seen:
    """What is known of all answers so far; the answers themselves are not kept, so that a table may be of any length.

    Parameters
    ----------
    n_queries, n_found : int
        Number of queries, and of those with candidates.
    n_identities : int
        Number of identities that were searched last.
    threshold, promise
        As in `Candidates`; the highest threshold, as the times of queries may change it, and the last promise.
    """

    n_queries: int = 0
    n_found: int = 0
    n_identities: int = 0
    threshold: float | None = None
    promise: str | None = None

    def add(self, answer: Candidates) -> None:
        """Take notice of one more answer."""
        self.n_queries += answer.n_queries
        self.n_found += len(np.unique(answer.query))
        self.n_identities, self.promise = answer.n_identities, answer.promise
        if answer.threshold is not None:
            self.threshold = answer.threshold if self.threshold is None else max(self.threshold, answer.threshold)


def _identified(
    gallery: Gallery, search: Callable[..., Candidates], data: Path, key: str | None, time: str | None, seen: Seen
) -> Iterator[pd.DataFrame]:
    """Yield the candidates of each block of a table."""
    for part in stream_rows(data, gallery.model, as_text=key is not None):
        taken = None if time is None else times_of(part, time)
        answer = search(gallery_samples(gallery, part, [key, time]), time=taken)
        seen.add(answer)
        names = np.arange(part.start, part.start + len(part)) if key is None else part.labels(key, "--id")
        yield answer.to_frame().assign(query=names[answer.query])


def verify(
    gallery: GalleryAddress,
    data: Queries,
    label: Label,
    time: Time = None,
    out: Out = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Decide whether each row is of the identity that it claims to be of, as CSV: id, score, threshold, accepted.

    The threshold is that of the model in the gallery, see `simtree calibrate`. Rows are read and answered block by block.
    """
    with friendly_errors(interrupted=INTERRUPTED):
        if out is not None:
            check_writable("--out", out.parent, out)
        with searched_gallery(gallery, n_jobs) as opened:
            frames = _verified(opened, data, label, time)
            if as_json:
                with scoring_bar("verifying", None):
                    rows = pd.concat(list(frames)).to_dict("records")
            else:
                _write(frames, out)
    if as_json:
        show_json({"gallery": shown(gallery), "data": str(data), "n_claims": len(rows), "claims": rows})


def _verified(gallery: Gallery, data: Path, label: str, time: str | None) -> Iterator[pd.DataFrame]:
    """Yield the decisions on each block of a table."""
    for part in stream_rows(data, gallery.model, as_text=True):
        taken = None if time is None else times_of(part, time)
        answer = gallery.verify(ids_of(part, label), gallery_samples(gallery, part, [label, time]), time=taken)
        yield answer.to_frame().assign(accepted=answer.accepted.astype(np.int8))


def _write(frames: Iterator[pd.DataFrame], out: Path | None) -> None:
    """Write frames as CSV, one after the other."""
    n_rows, is_first = 0, True
    with opened_output(out) as stream, scoring_bar("searching", None):
        for frame in frames:
            stream.write(frame.to_csv(index=False, header=is_first, lineterminator="\n").encode())
            n_rows, is_first = n_rows + len(frame), False
    if out is not None:
        say(f"Written: {count(n_rows, 'row')} to {out}")
