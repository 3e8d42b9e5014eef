"""Model files on the command line: reading one, and the columns of a table that it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from simtree.cli._tables import Table, check_there, choose_features
from simtree.models._load import load
from simtree.pairs._sampling import PairSampler


def load_model(path: Path) -> Any:
    """The model in a file."""
    check_there(path)
    return load(path)


def labelled_pairs(found: Table, label: str, never_pair: str | None) -> tuple[NDArray[Any], NDArray[Any] | None, PairSampler]:
    """The labels of rows, what rows of no pair share, and the pairs there are; what is wrong is said by column."""
    y = found.labels(label, "--label")
    apart = None if never_pair is None else found.labels(never_pair, "--never-pair")
    values = set(y.tolist())
    where = f"{found.name}: column {label!r}"
    if len(values) < 2:
        raise ValueError(f"{where} has the one value {values.pop()!r}; different pairs take two: give rows of others too.")
    if len(values) == len(y):
        raise ValueError(
            f"{where} has another value in each row; same pairs take two rows with one value: is it the right one?"
        )
    try:
        return y, apart, PairSampler(y, never_pair=apart)
    except ValueError as error:
        raise ValueError(f"{found.name}: column {never_pair!r}: {error}") from None


@contextmanager
def cores(model: Any, n_jobs: int) -> Iterator[None]:
    """Inside this context the model works on so many cores; what is saved of it does not change."""
    before = model.n_jobs
    model.n_jobs = n_jobs
    try:
        yield
    finally:
        model.n_jobs = before


def points_of(model: Any, found: Table, others: list[str]) -> Any:
    """The columns that a model asks for, by their names; by their order, if it was fitted without names."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return found.numbers([found.check_column(str(name), "the model") for name in names])
    columns = choose_features(found, [], [], others)
    if len(columns) != model.n_features_in_:
        raise ValueError(
            f"{found.name} has {len(columns)} columns of features, but the model knows {model.n_features_in_}, without "
            "names; give a table of just these, in their order."
        )
    return found.numbers(columns).to_numpy()
