"""Tables from files: text, Parquet and NumPy, whole or part by part."""

from __future__ import annotations

import csv
import difflib
import fnmatch
import io
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from simtree._utils.validation import count
from simtree.cli._common import say
from simtree.cli._row_lengths import RowLengths
from simtree.cli._tables import Table
from simtree.cli._text_files import (
    ENCODING,
    HEAD_BYTES,
    STANDARD_INPUT,
    UnreadableFileError,
    advice,
    check_head,
    comment_advice,
    counted_bytes,
    file_kind,
    file_name,
    first_comment_row,
    head_of,
    open_bytes,
    separator_of,
    standard_input,
)

# Rows per block of a stream of pairs.
ROWS = 1 << 17
# Larger files that have no progress of their own are announced.
LARGE_BYTES = 50_000_000


def check_there(path: Path) -> None:
    """Raise if there is no such file, with the name of a similar one."""
    if path == STANDARD_INPUT:
        return
    if not path.exists():
        beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.6)
        raise FileNotFoundError(f"there is no file {path}{f'; did you mean {close[0]}?' if close else '.'}")
    if path.is_dir() and not is_parquet_folder(path):
        raise IsADirectoryError(f"{path} is a folder; give a file, or a folder of Parquet files.")


def is_parquet_folder(path: Path) -> bool:
    """Return whether this is a folder of Parquet files, as Dask and Spark write one table."""
    return path.is_dir() and bool(parquet_files(path))


def parquet_files(path: Path) -> list[Path]:
    """Return the files of a Parquet folder in the order of their numbers, so that a row has the same number everywhere."""
    return sorted(
        path.glob("*.parquet"), key=lambda file: [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", file.name)]
    )


def read_table(path: Path, text: Sequence[str] = ()) -> Table:
    """Return the table in a file, by its extension.

    The columns of text files that ``text`` names, also by patterns, are read as strings, even if they are digits.
    """
    check_there(path)
    reader = _reader(path, text)
    if not (path == STANDARD_INPUT or file_kind(path) in ("csv", "tsv")) and path.stat().st_size >= LARGE_BYTES:
        say(f"Reading {path.name}, {path.stat().st_size / 1e6:,.0f} MB ...")
    with _readable(path):
        found = reader(path)
    found.frame.columns = found.frame.columns.map(str)
    repeated = found.frame.columns[found.frame.columns.duplicated()]
    if len(repeated):
        raise ValueError(f"{found.name} has two columns {repeated[0]!r}; give them different names.")
    return found


def read_samples(path: Path, text: Sequence[str] = ()) -> Table:
    """Return a table with one row per sample, of which there are at least two; ``text`` as in `read_table`."""
    found = read_table(path, text)
    if len(found) < 2:
        raise ValueError(f"{found.name} has {count(len(found), 'row')}; a pair needs two: give more rows.")
    if found.is_text and all(_is_number(name) for name in found.frame.columns):
        raise ValueError(f"{found.name} starts with numbers; its first line must name the columns.")
    return found


def stream_table(path: Path, *, as_text: bool = False, text: Sequence[str] = ()) -> Iterator[Table]:
    """Yield the blocks of a table that need not fit in memory; '-' is standard input, as CSV.

    ``as_text``: cells of text files stay strings, for 007 may be a name; ``text``: those of these columns do.
    """
    check_there(path)
    start = 0
    with _readable(path):
        separator, frames = _parts(path, str if as_text else dict.fromkeys(text, str))
        for frame in frames:
            yield Table(path, frame.rename(columns=str), separator, start)
            start += len(frame)


def _reader(path: Path, text: Sequence[str]) -> Callable[[Path], Table]:
    readers: dict[str, Callable[[Path], Table]] = {
        "csv": lambda path: _read_text(path, text),
        "tsv": lambda path: _read_text(path, text),
        "parquet": lambda path: Table(path, _read_parquet(path)),
        "feather": lambda path: Table(path, pd.read_feather(path)),
        "npz": _read_npz,
        "npy": _read_npy,
    }
    if path == STANDARD_INPUT:
        return readers["csv"]
    if path.is_dir():
        return readers["parquet"]
    if file_kind(path) not in readers:
        raise ValueError(f"{path.name}: the extension must tell what it is, one of {', '.join(f'.{k}' for k in readers)}.")
    return readers[file_kind(path)]


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Name the file that could not be read."""
    try:
        yield
    except UnreadableFileError:
        raise
    # zipfile raises NotImplementedError for a compression that it does not know.
    except (ValueError, OSError, KeyError, EOFError, NotImplementedError, csv.Error, zipfile.BadZipFile) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        known = advice(path, error) if path == STANDARD_INPUT or file_kind(path) in ("csv", "tsv") else None
        raise UnreadableFileError(known or f"{file_name(path)} cannot be read: {said[0].rstrip('.')}.") from None


def _read_text(path: Path, text: Sequence[str]) -> Table:
    with _text_source(path) as (separator, header, source):
        twice = header[header.duplicated()]
        if len(twice):
            raise UnreadableFileError(f"{file_name(path)} has two columns {twice.iloc[0]!r}; give each a name of its own.")
        as_text = dict.fromkeys((name for name in header if _is_named(name, text)), str)
        frame = pd.read_csv(source, sep=separator, low_memory=False, dtype=as_text, encoding=ENCODING)
        found = Table(path, frame, _plain_separator(path, separator))
        comment = first_comment_row(frame)
        if comment is not None:
            raise UnreadableFileError(comment_advice(found.name, found._line(comment)))
        source.check()
    return found


@contextmanager
def _text_source(path: Path, *, in_parts: bool = False) -> Iterator[tuple[str, pd.Series, RowLengths]]:
    """Open a text table: what separates its cells, the names of its columns, and its bytes, whose rows are counted.

    Progress is shown unless the table is read in parts: most of the time then goes to what is done with each of them.
    """
    if path == STANDARD_INPUT:
        head, stream = head_of(standard_input())
        separator = _separator(path, head)
        header = _header(io.BytesIO(head), separator)
        yield separator, header, RowLengths(stream, file_name(path), separator, _n_named(header))
        return
    separator = _separator(path, _head(path))
    with open_bytes(path) as first:
        header = _header(first, separator)
    with open_bytes(path) if in_parts else counted_bytes(path) as stream:
        yield separator, header, RowLengths(stream, file_name(path), separator, _n_named(header))


def _header(stream: Any, separator: str) -> pd.Series:
    """Return the names of the columns, by their place."""
    return pd.read_csv(stream, sep=separator, header=None, nrows=1, dtype=str, encoding=ENCODING).iloc[0].dropna()


def _n_named(header: pd.Series) -> int:
    """Return how many cells a row must have: as many as there are names, or cells without one before the last of them."""
    return int(header.index[-1]) + 1 if len(header) else 0


def _is_named(name: str, given: Sequence[str]) -> bool:
    """Return whether a column is among names or patterns, one by one or separated by commas."""
    pieces = [piece.strip() for entry in given for piece in (entry, *entry.split(","))]
    return name in pieces or any(fnmatch.fnmatch(name, piece) for piece in pieces)


def _parts(path: Path, dtype: Any) -> tuple[str | None, Iterator[pd.DataFrame]]:
    """Return the separator of a text file whose lines can be counted, and the blocks of a file."""
    if path == STANDARD_INPUT:
        return None, _text_parts(path, dtype)
    if file_kind(path) in ("csv", "tsv"):
        return _plain_separator(path, _separator(path, _head(path))), _text_parts(path, dtype)
    if file_kind(path) == "parquet" or path.is_dir():
        return None, _parquet_parts(path)
    whole = read_table(path).frame
    return None, (whole.iloc[start : start + ROWS] for start in range(0, len(whole), ROWS))


def _text_parts(path: Path, dtype: Any) -> Iterator[pd.DataFrame]:
    options: dict[str, Any] = {"chunksize": ROWS, "low_memory": False, "encoding": ENCODING, "dtype": dtype}
    with _text_source(path, in_parts=True) as (separator, _, source), pd.read_csv(source, sep=separator, **options) as parts:
        for part in parts:
            source.check()
            yield part


def _read_parquet(path: Path) -> pd.DataFrame:
    if not path.is_dir():
        return pd.read_parquet(path)
    return pd.concat([pd.read_parquet(part) for part in parquet_files(path)], ignore_index=True)


def _parquet_parts(path: Path) -> Iterator[pd.DataFrame]:
    from pyarrow.parquet import ParquetFile

    for part in parquet_files(path) if path.is_dir() else [path]:
        with ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=ROWS):
                yield batch.to_pandas()


def _head(path: Path) -> bytes:
    """Return the first bytes of a text file, uncompressed."""
    with open_bytes(path) as stream:
        return stream.read(HEAD_BYTES)


def head_of_text(path: Path) -> str:
    """Return the first line of a text file."""
    return _first_line(_head(path))


def _separator(path: Path, head: bytes) -> str:
    """Return the separator of cells, from the first line; raise if that cannot be the first line of a table."""
    check_head(file_name(path), head)
    return separator_of(_first_line(head))


def _first_line(head: bytes) -> str:
    return head.decode(ENCODING, "replace").lstrip("\r\n").splitlines()[0]


def _plain_separator(path: Path, separator: str) -> str | None:
    """Return the separator if the lines of the file can be counted."""
    return separator if path.suffix.lower() in (".csv", ".tsv") else None


def _read_npz(path: Path) -> Table:
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    lengths = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
    if len(set(lengths.values())) != 1 or any(array.ndim > 2 for array in arrays.values()):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"its arrays must have one entry or row for each sample, but they are {shapes}")
    columns: dict[str, Any] = {}
    for name, array in arrays.items():
        columns |= {name: array} if array.ndim == 1 else {f"{name}{j}": array[:, j] for j in range(array.shape[1])}
    return Table(path, pd.DataFrame(columns))


def _read_npy(path: Path) -> Table:
    array = np.load(path, allow_pickle=False)
    if array.dtype.names is not None and array.ndim == 1:
        return Table(path, pd.DataFrame({name: array[name] for name in array.dtype.names}))
    if array.ndim != 2:
        raise ValueError(f"its array must have two dimensions, rows and columns, but its shape is {array.shape}")
    return Table(path, pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])]))


def _is_number(text: object) -> bool:
    try:
        return math.isfinite(float(str(text)))
    except ValueError:
        return False
