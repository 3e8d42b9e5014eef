"""What the subcommands on galleries share: options, opening a gallery, and columns of a table for it."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from simtree.cli._models import parallel_jobs, samples_of, words_of
from simtree.cli._reading import check_there, read_table, stream_table
from simtree.cli._tables import Table
from simtree.cli._text_files import file_name
from simtree.gallery import Gallery
from simtree.gallery._address import parse_address
from simtree.models import Similarity

GalleryAddress = Annotated[
    str,
    typer.Argument(
        metavar="GALLERY",
        help="Gallery file, as made by `simtree enroll`, or an address postgresql://user@host/database?schema=name.",
        show_default=False,
    ),
]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to write to; by default standard output.")]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COL",
        help="Column with the time of each row, for a learned fusion that depends on age; now by default.",
    ),
]
# How true and false of a table are stored.
FLAGS = {"true": 1, "false": 0}


@contextmanager
def opened_gallery(path: str, *, readonly: bool = False) -> Iterator[Gallery]:
    """Open a gallery that must exist."""
    check_gallery(path)
    with Gallery.open(path, readonly=readonly) as gallery:
        yield gallery


@contextmanager
def searched_gallery(path: str, n_jobs: int) -> Iterator[Gallery]:
    """Open a gallery to search in with some parallel jobs; for reading only, unless its audit records searches."""
    check_gallery(path)
    gallery = Gallery.open(path, readonly=True)
    if gallery.to_dict()["audit_searches"]:
        gallery.close()
        gallery = Gallery.open(path)
    with gallery, parallel_jobs(gallery.model, n_jobs):
        yield gallery


def check_gallery(path: str) -> None:
    """Raise if a gallery is a file that does not exist, with the name of one that does."""
    address = parse_address(path)
    if isinstance(address, Path):
        check_there(address)


def read_rows(path: Path, label: str, model: Similarity) -> Table:
    """Return a table with at least one row, whose labels and categories are text."""
    found = read_table(path, [label, *words_of(model)])
    if not len(found):
        raise _no_rows(path)
    return found


def stream_rows(path: Path, model: Similarity | None = None, *, as_text: bool) -> Iterator[Table]:
    """Yield the blocks of a table with at least one row; ``as_text`` as in `stream_table`. Categories of a model are text."""
    is_empty = True
    for part in stream_table(path, as_text=as_text, text=words_of(model)):
        if len(part):
            is_empty = False
            yield part
    if is_empty:
        raise _no_rows(path)


def _no_rows(path: Path) -> ValueError:
    return ValueError(f"{file_name(path)} has no rows; give at least one.")


def gallery_samples(gallery: Gallery, found: Table, others: Iterable[str | None]) -> Any:
    """Return the columns of a table that the model of a gallery needs."""
    return samples_of(gallery.model, found, [name for name in others if name is not None])


def read_for_enrolment(
    path: Path, model: Similarity, dtype: str, label: str, time: str | None, metadata: list[str]
) -> tuple[Table, list[str], Any]:
    """Read a table block by block, of whose samples only the numbers are kept, in the type of a gallery.

    Parameters
    ----------
    path : Path
        The file.
    model : Similarity
        The model of the gallery, which names the columns of samples.
    dtype : str
        Type of the samples of the gallery.
    label : str
        Column with the identity.
    time : str or None
        Column with the time.
    metadata : list of str
        Names of columns, separated by commas.

    Returns
    -------
    others : Table
        The columns that are no samples.
    names : list of str
        Names of the columns with metadata.
    X : DataFrame or ndarray
        The samples.
    """
    given = [name.strip() for entry in metadata for name in entry.split(",") if name.strip()]
    samples: list[Any] = []
    others: list[pd.DataFrame] = []
    is_table = model.columns_ is not None
    for part in stream_rows(path, as_text=True):
        names = [part.check_column(name, "--metadata") for name in given]
        kept = [part.check_column(label, "--label"), *([] if time is None else [part.check_column(time, "--time")]), *names]
        X = samples_of(model, part, kept)
        samples.append(X if is_table else _converted(np.asarray(X), dtype))
        others.append(part.frame[list(dict.fromkeys(kept))])
    whole = pd.concat(others, ignore_index=True)
    if part.is_text:  # let pandas tell numbers from text, as it does for a table that it reads at once
        whole = pd.read_csv(io.StringIO(whole.to_csv(index=False)), low_memory=False, dtype={label: str})
    if is_table:
        return Table(path, whole, part.separator), names, pd.concat(samples, ignore_index=True)
    joined = np.concatenate(samples)
    return (
        Table(path, whole, part.separator),
        names,
        pd.DataFrame(joined, columns=X.columns) if hasattr(X, "columns") else joined,
    )


def _converted(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return numbers in a type; as they are if it cannot hold one of them, which the gallery then refuses."""
    with np.errstate(over="ignore"):
        converted = values.astype(dtype)
    return converted if np.isfinite(converted).all() else values


def ids_of(found: Table, column: str) -> list[str]:
    """Return a column of ids as text."""
    return [str(value) for value in found.labels(column, "--label").tolist()]


def times_of(found: Table, column: str) -> Any:
    """Return a column of times: numbers are seconds since 1970, all else is read as dates, in UTC unless they say otherwise."""
    values = pd.Series(found.labels(column, "--time"))
    is_number = pd.api.types.is_numeric_dtype(values) or (  # or text, in a block whose ids are text
        bool(values.map(lambda value: isinstance(value, str)).all()) and pd.to_numeric(values, errors="coerce").notna().all()
    )
    if is_number:
        return found.numbers([column])[column].to_numpy()
    try:
        return pd.to_datetime(values, utc=True, format="ISO8601").dt.tz_localize(None).to_numpy()
    except (ValueError, TypeError, OverflowError):
        raise ValueError(
            f"{found.name}: column {column!r} has the time {str(values.iloc[0])!r} or another that cannot be read; write times "
            "as 2026-01-31 12:00, or as seconds since 1970."
        ) from None


def parse_where(given: list[str]) -> dict[str, list[Any]] | None:
    """Return filters given as NAME=VALUE; a name may be given several times, for values of which one must hold.

    Examples
    --------
    >>> parse_where(["site=A", "floor=2"])
    {'site': ['A'], 'floor': ['2', 2]}
    """
    where: dict[str, list[Any]] = {}
    for entry in given:
        name, separator, value = entry.partition("=")
        if not separator or not name or not value:
            raise typer.BadParameter(f"--where {entry!r} is not NAME=VALUE, such as site=A.")
        # A column of digits is one of numbers to pandas, and one of true and false is one of booleans.
        where.setdefault(name, []).extend([value, *_numbers(value)])
    return where or None


def _numbers(value: str) -> list[int | float]:
    if value.lower() in FLAGS:
        return [FLAGS[value.lower()]]
    try:
        number = float(value)
    except ValueError:
        return []
    return [int(number) if number.is_integer() and abs(number) < 2**53 else number] if np.isfinite(number) else []
