"""Model files on the command line: loading them, and selecting the columns of a table that they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.cli._tables import Table, check_there, choose_features
from simtree.models._load import load
from simtree.pairs._cells import CATEGORY
from simtree.pairs._sampling import PairSampler
from simtree.pairs._table import LEFT_OUT


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
        used = [column for column in table.columns if column.kind != LEFT_OUT]
        wanted = [found.check_column(column.name, "the model") for column in used]
        categories = [column.name for column in used if column.kind == CATEGORY]
        return found.features(wanted, categories=categories, tokens=table.tokens)
    if names is not None and model._takes_missing():
        return found.features([found.check_column(str(name), "the model") for name in names])
    if names is not None:
        return found.numbers([found.check_column(str(name), "the model") for name in names])
    columns = choose_features(found, [], [], others)
    if len(columns) != model.n_features_in_:
        raise ValueError(
            f"{found.name} has {count(len(columns), 'feature')}, but the model was fitted on {model.n_features_in_}, without "
            "names; give a table with just these, in the same order."
        )
    return found.numbers(columns).to_numpy()
