"""``simtree fit``: learn a similarity from a table of labelled samples and write it to a model file."""

from __future__ import annotations

import enum
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from simtree._utils.validation import count
from simtree.cli._choice import add_performance, choice_tables
from simtree.cli._common import (
    Data,
    Jobs,
    Json,
    Label,
    NeverPair,
    Seed,
    check_writable,
    file_size,
    friendly_errors,
    say,
    show,
    show_json,
    table,
)
from simtree.cli._dask import Dask, columns_of, opened_cluster, read_for
from simtree.cli._models import labelled_pairs
from simtree.cli._tables import UNNAMED, Table, choose_categories, choose_features, missing_tokens, some_names
from simtree.cli._trial import expected_seconds
from simtree.models._auto import AutoSimilarity
from simtree.models._description import describe_choice
from simtree.models._open_set import MAX_CLOSED_SET_LABELS
from simtree.models._presets import (
    N_TREES,
    READABLE_DEPTH,
    READABLE_SPLITTER,
    forest_preset,
    tree_preset,
)
from simtree.models._table_members import Contents, described, for_table
from simtree.models._table_report import what_was_done
from simtree.pairs._sampling import PairSampler
from simtree.pairs._table import FROM_DTYPE, TableColumns


class Kind(enum.StrEnum):
    """The kinds of model."""

    forest = "forest"
    tree = "tree"
    auto = "auto"


class SplitterName(enum.StrEnum):
    """The splitters, by name."""

    cart = "cart"
    cross = "cross"
    cut = "cut"
    gaussian = "gaussian"
    linear = "linear"
    oblique = "oblique"


NAMES = {Kind.forest: "a forest", Kind.tree: "a tree", Kind.auto: "the best of several models"}


def fit(
    data: Data,
    label: Label,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Model file to write.")] = Path("model.simtree"),
    never_pair: NeverPair = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            "--features",
            metavar="COLS",
            help="Columns with features, separated by commas, or patterns such as 'H*'; by default all other columns.",
        ),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option("--drop", metavar="COLS", help="Columns that are not features.")] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            "--categories",
            metavar="COLS",
            help="Columns of categories although they hold numbers, such as postcodes, or text that differs in most rows.",
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing", metavar="TOKENS", help="Words for a missing value besides empty cells and NA, such as '?,-'."
        ),
    ] = None,
    model: Annotated[
        Kind,
        typer.Option(
            "--model",
            metavar="forest/tree/auto",
            help="A forest, accurate as it is; one tree, which can be read but is less accurate; or auto, which compares "
            "forests on several representations, likelihood ratios and distances, stacks the best, and takes longer.",
        ),
    ] = Kind.forest,
    trees: Annotated[
        int | None, typer.Option("--trees", metavar="N", min=1, help=f"Number of trees of a forest; by default {N_TREES}.")
    ] = None,
    open_set: Annotated[
        bool | None,
        typer.Option(
            "--open-set/--closed-set",
            help="Whether the model will meet other identities than those of DATA, or only these; by default other ones if "
            f"there are more than {MAX_CLOSED_SET_LABELS}.",
            show_default=False,
        ),
    ] = None,
    splitter: Annotated[
        SplitterName | None,
        typer.Option(
            "--splitter",
            metavar="/".join(SplitterName),
            help=f"How a cell of a tree is split; by default {READABLE_SPLITTER} in one tree, which can be read, and cart in a "
            "forest.",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth",
            metavar="N",
            min=1,
            max=52,
            help=f"Maximum depth; by default {READABLE_DEPTH} of one tree, 15 of a forest.",
        ),
    ] = None,
    seed: Seed = 0,
    dask: Dask = None,
    n_jobs: Jobs = -1,
    as_json: Json = False,
) -> None:
    """Learn a similarity from labelled samples.

    Writes a model file. The expected time is announced first, from small trials on the same data.
    """
    with friendly_errors(), ExitStack() as opened:
        if model is not Kind.forest and trees is not None:
            raise ValueError(f"--trees is for a forest; leave it out with --model {model.value}.")
        if model is Kind.auto and (splitter, depth) != (None, None):
            raise ValueError("--splitter and --depth are for a tree or a forest; leave them out with --model auto.")
        if model is Kind.tree and open_set is not None:
            raise ValueError("--open-set and --closed-set are for a forest or auto; leave them out with --model tree.")
        check_writable("--out", out.parent, out)
        client = opened.enter_context(opened_cluster(dask))
        others = [label] if never_pair is None else [label, never_pair]
        found, folder = read_for(client, data, others, categories)
        if folder is not None and (categories or missing):
            raise ValueError(
                f"--categories and --missing are not supported for {data} on a cluster, where columns must be of numbers, "
                "booleans or dates; leave --dask out, or encode the columns first."
            )
        y, apart, pairs = labelled_pairs(found, label, never_pair)
        head = found if folder is None else folder.head
        names = choose_features(head, features or [], drop or [], others)
        _tell_unnamed(head, names)
        meanings = (
            {label: "the label"} if never_pair is None else {never_pair: "the column of --never-pair", label: "the label"}
        )
        chosen = choose_categories(head, categories or [], names, drop or [], meanings)
        tokens = missing_tokens(head, names, missing or [])
        options: dict[str, Any] = {"categories": chosen, "tokens": tokens, "can_drop": True}
        X = found.features(names, **options) if folder is None else folder.features(names)
        settings: dict[str, Any] = {"n_jobs": n_jobs, "random_state": seed}
        settings |= {key: value for key, value in (("splitter", splitter and splitter.value), ("max_depth", depth)) if value}
        learner = _learner(model, pairs, trees or N_TREES, open_set, settings)
        with _named_by_file(found.name):
            kinds = _prepare_for_table(learner, X, chosen, tokens, client)
        n_identities = len(np.unique(pairs.labels))
        counts = f"{count(len(y), 'row')} with {count(n_identities, 'value')}"
        what = f"{counts} of {label}, {count(len(names), 'feature')}"
        if model is Kind.auto and client is None:
            say("Estimating the time: each candidate is tried on a few pairs ...")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # fit says it again
            expected = expected_seconds(learner, X, y, apart) if client is None else None
        say(f"Learning {NAMES[model]} from {what}{'.' if expected is None else f': about {_duration(expected)}.'}")
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            _fit(client, learner, X, y, apart)
        seconds = time.perf_counter() - start
        if tokens and learner.columns_ is not None:
            learner.columns_ = replace(learner.columns_, tokens=tuple(tokens))
        for warning in told:
            say(f"Warning: {_of_file(str(warning.message), found.name)}")
        if kinds is not None:
            learner.set_params(categorical_features=chosen or FROM_DTYPE)
        learner.set_params(n_jobs=None, **({} if model is Kind.tree else {"verbose": 0}))
        learner.save(out)
    result = {
        "model": str(out),
        "class": type(learner).__name__,
        "data": str(data),
        "n_rows": len(y),
        "label": label,
        "n_identities": n_identities,
        "never_pair": never_pair,
        "features": names,
        "columns": described(kinds),
        "done": what_was_done(learner),
        "n_pairs": pairs.n_pairs,
        "seed": seed,
        **describe_choice(learner),
        "left_out": {True: "classes", False: "rows", None: None}[getattr(learner, "open_set_", None)],
        "n_cells": int(np.count_nonzero(learner.tree_.cells.inside < 0)) if model is Kind.tree else None,
        "training_auc": float(learner.auc_) if model is Kind.tree else None,
        "oob_auc": getattr(learner, "oob_score_", None),
        "oob_unit": getattr(learner, "bag", None) if hasattr(learner, "oob_score_") else None,
        "threshold": learner.threshold_,
        "expected_seconds": expected,
        "seconds": seconds,
        "bytes": out.stat().st_size,
    }
    show_json(result) if as_json else show(*_lines(result, what))


def _prepare_for_table(learner: Any, X: Any, chosen: list[str], tokens: list[str], client: Any) -> TableColumns | None:
    """Let what is fitted take the holes and categories of a table; return its columns, None if they are complete numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fit says it again
        columns = columns_of(client, X, chosen)
    is_plain = all(dtype.kind in "biuf" for dtype in X.dtypes) and not any(column.missing for column in columns.columns)
    if is_plain and not chosen and not tokens:
        return None
    if isinstance(learner, AutoSimilarity):
        learner.set_params(categorical_features=chosen)
        return columns
    say(f"Columns: {columns}.")
    for_table(learner, Contents.of_columns(columns))
    # A list, even an empty one, so that the kinds of columns are found, kept and shown.
    learner.set_params(categorical_features=chosen)
    return columns


@contextmanager
def _named_by_file(name: str) -> Iterator[None]:
    """Name the file and the options of the command in errors about a table."""
    try:
        yield
    except ValueError as error:
        raise ValueError(_of_file(str(error), name)) from None


def _fit(client: Any, learner: Any, X: Any, y: Any, apart: Any) -> None:
    if client is None:
        learner.fit(X, y, never_pair=apart)
        return
    from simtree.dask import fit as fit_on_cluster

    fit_on_cluster(learner, X, y, never_pair=apart, client=client)


def _learner(kind: Kind, pairs: PairSampler, n_trees: int, open_set: bool | None, settings: dict[str, Any]) -> Any:
    """Return what is fitted: one of the presets."""
    if kind is Kind.auto:
        return AutoSimilarity(verbose=1, open_set="auto" if open_set is None else open_set, **settings)
    if kind is Kind.tree:
        return tree_preset(pairs, **settings)
    return forest_preset(pairs, n_trees=n_trees, open_set=open_set, verbose=1, **settings)


def _tell_unnamed(found: Table, names: list[str]) -> None:
    left = [name for name in found.frame.columns if name.startswith(UNNAMED) and name not in names]
    if left:
        say(f"{found.name}: {count(len(left), 'column')} without a name left out (mostly row numbers).")


def _of_file(message: str, name: str) -> str:
    """Return what is said of a table with the file and the options of the command in place of X and parameters."""
    for parameter, option in (("open_set=True", "--open-set"), ("open_set=False", "--closed-set")):
        message = message.replace(f"set {parameter}", f"give {option}").replace(f"or {parameter}", f"or {option}")
    return message.replace("categorical_features", "--categories").replace("X has", f"{name} has", 1)


def _duration(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _lines(result: dict[str, Any], what: str) -> list[Any]:
    rows = table(f"{result['model']}: {result['class']}", "property", "value")
    rows.add_row("learned from", what)
    rows.add_row("features", some_names(result["features"]))
    for column in result["columns"]:
        rows.add_row(f"column {column['name']}", column["words"])
    for sentence in result["done"]:
        rows.add_row("done", sentence)
    if result["never_pair"]:
        rows.add_row("never paired", f"rows with the same {result['never_pair']}")
    if result["chosen"]:
        unit = f"values of {result['label']}" if result["left_out"] == "classes" else "rows"
        rows.add_row("chosen", f"{result['chosen']}, cross-validated on {unit} left out")
        add_performance(rows, result)
    if result["oob_auc"] is not None:
        unit = result["label"] if result["oob_unit"] == "classes" else "row"
        judged = f"each pair scored by trees that saw neither {unit}"
        rows.add_row("out-of-bag AUC", f"{result['oob_auc']:.3f}, {judged}")
    elif result["class"] == "SimilarityForest":
        rows.add_row("out-of-bag AUC", "none: too few trees or rows")
    if result["n_cells"] is not None:
        rows.add_row("cells", f"{result['n_cells']:,}; read them with: simtree show {result['model']} --rules 3")
        deeper = "a forest, or --splitter cart --depth 10, is more accurate but cannot be read as easily"
        rows.add_row("AUC on training pairs", f"{result['training_auc']:.3f}; {deeper}")
    rows.add_row("threshold", f"{result['threshold']:.6g} until `simtree calibrate` chooses one with a guarantee")
    rows.add_row("file", f"{file_size(result['bytes'])}, without any row of the data")
    expected = "" if result["expected_seconds"] is None else f" ({_duration(result['expected_seconds'])} expected)"
    rows.add_row("took", f"{_duration(result['seconds'])}{expected}")
    return [rows, *choice_tables(result)]
