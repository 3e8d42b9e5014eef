"""Options of several commands for probes against enrolled identities, and the names of fusions."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from simtree.cli._galleries import times_of
from simtree.cli._tables import Table

# What a cell may say about whether its row is enrolled.
YES, NO = {"true", "1", "1.0", "yes"}, {"false", "0", "0.0", "no"}


class FusionName(enum.StrEnum):
    """How the scores with the samples of an identity become one."""

    max = "max"
    mean = "mean"
    top_mean = "top_mean"
    likelihood_ratio = "likelihood_ratio"
    learned = "learned"


FUSION_NAMES = "/".join(FusionName)
Enrol = Annotated[
    str | None,
    typer.Option(
        "--enrol",
        metavar="COL",
        help="Column that is true for enrolled rows: compare each other row with each enrolled identity, by one score.",
    ),
]
FusionOption = Annotated[
    FusionName | None,
    typer.Option(
        "--fusion",
        metavar=FUSION_NAMES,
        help="With --enrol: how the scores with several rows of an identity become one; max by default.",
    ),
]
NBest = Annotated[
    int | None,
    typer.Option("--n-best", metavar="N", min=1, help="With --fusion top_mean: how many of the best scores are averaged; 3."),
]
Time = Annotated[
    str | None,
    typer.Option("--time", metavar="COL", help="With --enrol: column with the time of each row, for --fusion learned."),
]


def protocol_of(
    found: Table,
    enrol: str | None,
    fusion: FusionName | None,
    n_best: int | None,
    time: str | None,
    *,
    needs_enrol: bool = True,
) -> dict[str, Any]:
    """Return the parameters of `evaluate` and `calibrate_threshold` that these options stand for."""
    if enrol is None and needs_enrol:
        for option, value in (("--fusion", fusion), ("--n-best", n_best), ("--time", time)):
            if value is not None:
                raise typer.BadParameter(f"{option} goes with --enrol; give the column of enrolled rows, or leave it out.")
        return {}
    return {
        "enrol": None if enrol is None else _mask(found, enrol),
        "fusion": None if fusion is None else fusion.value,
        "n_best": n_best,
        "time": None if time is None else times_of(found, time),
    }


def _mask(found: Table, column: str) -> NDArray[np.bool_]:
    """Return a column of true and false values."""
    words = [str(value).strip().lower() for value in found.labels(column, "--enrol").tolist()]
    for row, word in enumerate(words, 1):
        if word not in YES | NO:
            raise ValueError(
                f"{found.name}: column {column!r} has {word!r} in data row {row}; write true for enrolled rows and false for "
                "others."
            )
    return np.array([word in YES for word in words])
