"""``simtree score``: score the pairs of a file, as a stream."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from simtree.cli._common import Jobs, Model, check_writable, friendly_errors, opened_output, say, scoring_bar
from simtree.cli._dask import Dask, opened_cluster, read_for, samples_for, scorer_for
from simtree.cli._models import load_model, number_features, parallel_jobs, table_features, words_of
from simtree.cli._reading import stream_table
from simtree.cli._tables import Table
from simtree.cli._text_files import STANDARD_INPUT
from simtree.evaluation._score_files import Comparison, score_lines

# Blocks of pairs: their rows; the identity and the sample of each side, if asked for; their scores.
Scored = Iterator[tuple[pd.DataFrame, NDArray[Any] | None, NDArray[np.float64]]]
SIDES = "_1", "_2"


class Format(enum.StrEnum):
    """The formats of scores."""

    csv = "csv"
    four = "4column"
    five = "5column"


def score(
    model: Model,
    pairs: Annotated[
        Path,
        typer.Argument(
            metavar="PAIRS",
            help="Table with one row per pair; - for CSV from standard input. With DATA, its first two columns are row numbers "
            "of DATA, counted from 0, or values of the --id column. Without DATA, it has the features of both, NAME_1 and "
            "NAME_2.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="Table of the samples that PAIRS refers to.", show_default=False)
    ] = None,
    key: Annotated[
        str | None, typer.Option("--id", metavar="COL", help="PAIRS has values of this column of DATA instead of row numbers.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="The two columns of PAIRS that name the samples.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="COL", help="Column of DATA with the identity, so that the scores can be evaluated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to write to; by default standard output.")
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="csv/4column/5column",
            help="CSV, with the columns of PAIRS and whether each pair is accepted; or the four or five columns of bob.",
        ),
    ] = Format.csv,
    dask: Dask = None,
    n_jobs: Jobs = -1,
) -> None:
    """Score the pairs of a file of any length: pairs are read, scored and written block by block."""
    with friendly_errors(interrupted="Interrupted. Scores that were not written to --out are lost."), ExitStack() as opened:
        if form is not Format.csv and (data is None or label is None):
            raise typer.BadParameter(f"--format {form.value} names the identities of each pair: give DATA and --label COL.")
        if data is None and (key is not None or columns is not None):
            raise typer.BadParameter("--id and --columns say how PAIRS refers to DATA: give DATA too.")
        if data is None and dask is not None:
            raise typer.BadParameter("--dask sends the rows of DATA to a cluster: give DATA and row numbers.")
        if pairs == data == STANDARD_INPUT:
            raise typer.BadParameter("PAIRS and DATA cannot both be standard input; give a file for one of them.")
        learned = load_model(model)
        if out is not None:
            check_writable("--out", out.parent, out)
        client = opened.enter_context(opened_cluster(dask))
        n_done = 0

        def scored() -> Scored:
            nonlocal n_done
            blocks = (
                _scored(learned, pairs) if data is None else _scored_rows(client, learned, pairs, data, key, columns, label)
            )
            for part in blocks:
                yield part
                n_done += len(part[2])

        texts = _csv(scored(), learned.threshold_) if form is Format.csv else score_lines(_comparisons(scored()), form.value)
        with opened_output(out) as stream, parallel_jobs(learned, n_jobs), scoring_bar("scoring pairs", None):
            for text in texts:
                stream.write(text.encode())
        if out is not None:
            say(f"Written: {n_done:,} scores to {out}")


def _scored_rows(
    client: Any, learned: Any, pairs: Path, data: Path, key: str | None, columns: str | None, label: str | None
) -> Scored:
    """Score pairs of rows of a table, block by block."""
    others = [name for name in (label, key) if name is not None]
    found, folder = read_for(client, data, others, [*others, *words_of(learned)])
    identities = None if label is None else found.labels(label, "--label")
    score_rows = scorer_for(client, learned, samples_for(learned, found, folder, others))
    keys = None if key is None else found.labels(key, "--id")
    places = None if keys is None else _places(found, str(key), keys)
    for part in stream_table(pairs, as_text=key is not None):
        rows = np.column_stack([_rows(part, column, places, found) for column in _columns(part, columns)])
        named = None
        if identities is not None:
            names = rows if keys is None else keys[rows]
            named = np.stack([identities[rows].astype(str), names.astype(str)], axis=2)
        yield part.frame, named, score_rows(rows)


def _scored(learned: Any, pairs: Path) -> Scored:
    """Score pairs that have the features of both samples, block by block."""
    names = getattr(learned, "feature_names_in_", None)
    if names is None:
        raise ValueError("the model was fitted without feature names, which PAIRS would refer to; give DATA and row numbers.")
    words = [f"{name}{side}" for name in words_of(learned) for side in SIDES]
    for part in stream_table(pairs, text=words):
        both = np.stack([_side(learned, part, [str(name) for name in names], side) for side in SIDES], axis=1)
        yield part.frame, None, learned.pair_score(both)


def _side(learned: Any, part: Table, names: list[str], side: str) -> NDArray[Any]:
    """Return the features of one sample of each pair."""
    table = getattr(learned, "columns_", None)
    wanted = [f"{name}{side}" for name in names]
    if table is None:
        return np.asarray(number_features(learned, part, [part.check_column(name, "the model") for name in wanted]))
    return np.asarray(table_features(table, part, side).reindex(columns=wanted), dtype=object)


def _places(found: Table, key: str, keys: NDArray[Any]) -> dict[str, int]:
    # As text, for the file may hold numbers where PAIRS holds words.
    texts = keys.astype(str)
    places = {value: row for row, value in enumerate(texts.tolist())}
    if len(places) < len(keys):
        values, counts = np.unique(texts, return_counts=True)
        raise ValueError(
            f"{found.name}: column {key!r} has {counts.max()} rows with {str(values[counts.argmax()])!r}; "
            "the values of --id must be unique."
        )
    return places


def _columns(part: Table, columns: str | None) -> list[str]:
    if columns is None:
        names = [str(name) for name in part.frame.columns[:2]]
    else:
        names = [part.check_column(name.strip(), "--columns") for name in columns.split(",")]
    if len(names) != 2:
        raise ValueError(f"{part.name} must have two columns that name the samples of each pair, not {len(names)}.")
    return names


def _rows(part: Table, column: str, places: dict[str, int] | None, found: Table) -> NDArray[np.int64]:
    if places is None:
        return part.rows_of(column, "PAIRS", found)
    return part.places_of(column, "PAIRS", places, found.name)


def _csv(scored: Scored, threshold: float) -> Iterator[str]:
    """Yield CSV text: the columns of the pairs and of the scores."""
    first = True
    for part, named, scores in scored:
        columns: dict[str, Any] = {}
        if named is not None:
            places = {"claimed_id": (0, 0), "model_label": (0, 1), "real_id": (1, 0), "probe_label": (1, 1)}
            columns |= {name: named[:, side, what] for name, (side, what) in places.items()}
        columns |= {"score": scores, "accepted": (scores >= threshold).astype(np.int8)}
        yield str(part.assign(**columns).to_csv(index=False, header=first, lineterminator="\n"))
        first = False


def _comparisons(scored: Scored) -> Iterator[Comparison]:
    """Yield the comparisons one by one."""
    for _, named, scores in scored:
        assert named is not None
        (claimed, model_label), (real, probe) = named[:, 0].T.tolist(), named[:, 1].T.tolist()
        yield from map(Comparison, claimed, real, probe, scores.tolist(), model_label)
