"""Model files on the command line: loading them, and selecting the columns of a table that they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.cli._cells import as_fitted, is_text
from simtree.cli._reading import check_there
from simtree.cli._tables import Table, choose_features
from simtree.models._load import load
from simtree.pairs._cells import CATEGORY, DATE
from simtree.pairs._column import LEFT_OUT
from simtree.pairs._sampling import PairSampler
from simtree.pairs._table import TableColumns


def load_model(path: Path) -> Any:
    """Return the model in a file."""
    check_there(path)
    return load(path)


def labelled_pairs(found: Table, label: str, never_pair: str | None) -> tuple[NDArray[Any], NDArray[Any] | None, PairSampler]:
    """Return the labels, the values of ``never_pair``, and the pairs; errors name the column."""
    y = found.labels(label, "--label")
    apart = None if never_pair is None else found.labels(never_pair, "--never-pair")
    values = set(y.tolist())
    where = f"{found.name}: column {label!r}"
    if len(values) < 2:
        raise ValueError(
            f"{where} has the single value {values.pop()!r}; different pairs need at least two: add rows of other identities."
        )
    if len(values) == len(y):
        raise ValueError(
            f"{where} has a different value in each row; same pairs need two rows with the same value: is it the right column?"
        )
    try:
        return y, apart, PairSampler(y, never_pair=apart)
    except ValueError as error:
        raise ValueError(f"{found.name}: column {never_pair!r}: {error}") from None


@contextmanager
def parallel_jobs(model: Any, n_jobs: int) -> Iterator[None]:
    """Let the model use this number of parallel jobs inside the context; what is saved does not change."""
    before = model.n_jobs
    model.n_jobs = n_jobs
    try:
        yield
    finally:
        model.n_jobs = before


def samples_of(model: Any, found: Table, others: list[str]) -> Any:
    """Return the columns that a model needs, by name; by position if it was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    table = getattr(model, "columns_", None)
    if table is not None:
        return table_features(table, found)
    if names is not None:
        return number_features(model, found, [found.check_column(str(name), "the model") for name in names])
    columns = choose_features(found, [], [], others)
    if len(columns) != model.n_features_in_:
        raise ValueError(
            f"{found.name} has {count(len(columns), 'feature')}, but the model was fitted on {model.n_features_in_}, without "
            "names; give a table with just these, in the same order."
        )
    return number_features(model, found, columns).to_numpy()


def words_of(model: Any) -> list[str]:
    """Return the columns that a model reads as categories: names, even if they are digits in a file."""
    table = getattr(model, "columns_", None)
    return [] if table is None else [column.name for column in table.columns if column.kind == CATEGORY]


def table_features(table: TableColumns, found: Table, suffix: str = "") -> pd.DataFrame:
    """Return the columns that a model was fitted on, each as the kind that it was; ``suffix`` follows their names."""
    used = [column for column in table.columns if column.kind != LEFT_OUT]
    places = {column.name: found.check_column(f"{column.name}{suffix}", "the model") for column in used}
    of_kind = {kind: [places[column.name] for column in used if column.kind == kind] for kind in (CATEGORY, DATE)}
    read = found.features(list(places.values()), categories=of_kind[CATEGORY], dates=of_kind[DATE], tokens=table.tokens)
    for column in used:
        if column.kind == CATEGORY:
            read[places[column.name]] = as_fitted(read[places[column.name]], column.values)
    others = tuple(replace(column, name=places[column.name]) for column in used if column.kind != CATEGORY)
    if others:  # the model would refuse another kind, too, but cannot name the file
        try:
            TableColumns(others, named=True).read(read)
        except ValueError as error:
            raise ValueError(str(error).replace("X has", f"{found.name} has", 1)) from None
    return read


def number_features(model: Any, found: Table, names: list[str]) -> pd.DataFrame:
    """Return columns of numbers, with holes if the model takes them; a column that turned to words or dates is named."""
    if not model._takes_missing():
        return found.numbers(names)
    read = found.features(names)
    for name in names:
        kind = "dates" if read[name].dtype.kind in "mM" else "text" if is_text(read[name]) else None
        if kind is not None and read[name].notna().any():
            example = str(found.frame[name].dropna().iloc[0])
            raise ValueError(
                f"{found.name} has the column {name!r} of {kind}, such as {example!r}, but the model was fitted on "
                "numbers there; convert it to numbers."
            )
    return read
