"""Text tables (CSV, TSV): bytes with their progress, what separates cells, and advice on what cannot be read."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib
import io
import lzma
import math
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from simtree._utils.validation import count
from simtree.cli._common import say

# Separators that are looked for in the first line; the first of them if there is none.
SEPARATORS = ",;\t|"
NAMES_OF_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# Without the mark that some programs put at the start.
ENCODING = "utf-8-sig"
HEAD_BYTES = 1 << 16
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zip": "zip"}
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# Reading is announced after this time, and then every few seconds where there is no bar.
SECONDS_OF_SILENCE = 1.0
SECONDS_BETWEEN_LINES = 5.0
STANDARD_INPUT = Path("-")


class UnreadableFileError(ValueError):
    """A file is not what its extension says."""


def file_name(path: Path) -> str:
    """Return the name by which messages call a file."""
    return "standard input" if path == STANDARD_INPUT else path.name


def standard_input() -> BinaryIO:
    """Return the bytes of standard input."""
    return cast(BinaryIO, sys.stdin.buffer)


def file_kind(path: Path) -> str:
    """Return the extension that tells what a file is, without that of its compression."""
    ends = [end.lower() for end in path.suffixes]
    if ends and ends[-1] in COMPRESSIONS:
        ends.pop()
    return ends[-1].removeprefix(".") if ends else ""


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a text file for its bytes, uncompressed."""
    with path.open("rb") as stream, _unpacked(path, stream) as unpacked:
        yield unpacked


def _unpacked(path: Path, stream: BinaryIO) -> BinaryIO:
    """Return the bytes of a file, given its compressed ones."""
    kind = path.suffix.lower()
    if kind == ".zip":
        archive = zipfile.ZipFile(stream)
        if len(archive.namelist()) != 1:
            raise UnreadableFileError(f"{path.name} holds {count(len(archive.namelist()), 'file')}; pack one table alone.")
        return cast(BinaryIO, archive.open(archive.namelist()[0]))
    if kind == ".zst":
        try:
            zstandard = importlib.import_module("zstandard")
        except ImportError:
            raise UnreadableFileError(
                f"{path.name} is compressed by zstd; install the package zstandard, or unpack the file first."
            ) from None
        return cast(BinaryIO, io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(stream)))
    return stream if kind not in _OPENERS else cast(BinaryIO, _OPENERS[kind](stream, "rb"))


@contextmanager
def pack_bytes(path: Path, stream: BinaryIO) -> Iterator[BinaryIO]:
    """Write to a stream bytes that are compressed as those of a file are; the same bytes give the same file."""
    kind = path.suffix.lower()
    if kind not in _OPENERS:
        if kind in COMPRESSIONS:
            raise ValueError(f"{path.name} is compressed by {COMPRESSIONS[kind]}, which is not written; unpack it first.")
        yield stream
        return
    if kind == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    else:
        with _OPENERS[kind](cast(Any, stream), "wb") as packed:
            yield packed


def head_of(stream: BinaryIO) -> tuple[bytes, BinaryIO]:
    """Return the first lines of a stream, and a stream that begins with them again."""
    first = b""
    while not first.strip():
        line = stream.readline()
        first += line
        if not line:
            break
    return first, io.BufferedReader(_Joined(first, stream))


class _Joined(io.RawIOBase):
    """Some bytes, and then those of a stream."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self.start, self.rest = start, rest

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer and return the number of bytes."""
        part = self.start[: len(buffer)] if self.start else self.rest.read(len(buffer))
        self.start = self.start[len(part) :]
        buffer[: len(part)] = part
        return len(part)


class _Counted(io.RawIOBase):
    """The bytes of a file; ``tell_position`` hears of each part that was read, and where it ends."""

    def __init__(self, file: BinaryIO, tell_position: Callable[[int], None]) -> None:
        self.file, self.tell_position = file, tell_position

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position of the file."""
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position in the file."""
        return self.file.tell()

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer and return the number of bytes."""
        part = self.file.read(len(buffer))
        buffer[: len(part)] = part
        self.tell_position(self.file.tell())
        return len(part)


@contextmanager
def counted_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file for its uncompressed bytes, and show how much of it was read if that takes longer than a second."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console, transient=True) if console.is_terminal else None
    size, began = path.stat().st_size, time.monotonic()
    shown = began + SECONDS_OF_SILENCE - SECONDS_BETWEEN_LINES
    task = None if bar is None else bar.add_task(f"reading {path.name}", total=size)

    def tell_position(position: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - began < SECONDS_OF_SILENCE:
            return
        if bar is not None and task is not None:
            bar.start()
            bar.update(task, completed=position, description="converting cells" if position >= size else None)
        elif now - shown >= SECONDS_BETWEEN_LINES or (position >= size and shown < math.inf):
            shown = now if position < size else math.inf
            ending = ", converting cells ..." if position >= size else ""
            say(f"Reading {path.name}: {position / 1e6:,.0f} of {size / 1e6:,.0f} MB{ending}")

    try:
        with path.open("rb") as file:
            counted = cast(BinaryIO, io.BufferedReader(_Counted(file, tell_position), 1 << 20))
            with _unpacked(path, counted) as unpacked:
                yield unpacked
    finally:
        if bar is not None:
            bar.stop()


def check_head(name: str, head: bytes) -> None:
    """Raise if a text table begins as no table does that can be read: in UTF-16, with a comment, or not at all."""
    if not head.strip():
        raise UnreadableFileError(f"{name} is empty; its first line must name the columns.")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in head[:200]:
        raise UnreadableFileError(f"{name} is in UTF-16; {_save_as_utf8(name, 'UTF-16')}")
    lines = [line for line in head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").splitlines() if line.strip()]
    rest = [line for line in lines if not line.startswith("#")]
    # A column may be called '#', or '# of steps': the lines below then have as many cells.
    if lines[0].startswith("#") and not (rest and any(lines[0].count(mark) == rest[0].count(mark) > 0 for mark in SEPARATORS)):
        raise UnreadableFileError(f"{name} begins with a comment, {lines[0][:40]!r}; {_without_comments(1)}")


def separator_of(line: str) -> str:
    """Return what separates the cells of a line."""
    return max(SEPARATORS, key=line.count)


def _save_as_utf8(name: str, encoding: str) -> str:
    example = "" if name == "standard input" else f", for example with: iconv -f {encoding} -t UTF-8 {name} > new_{name}"
    return f"save it as UTF-8{example}"


def _without_comments(line: int) -> str:
    return f"delete lines that begin with '#' (the first is line {line}), so that the first line names the columns."


def comment_advice(name: str, line: int | None) -> str:
    """Return what to say of a row that is a comment."""
    where = "a line" if line is None else f"line {line}"
    return f"{name}: {where} is a comment, for it begins with '#'; delete the comment lines."


def wrong_cells(name: str, line: int, n_cells: int, n_columns: int) -> str:
    """Return what to say of a line with too many or too few cells."""
    return f"{name}: line {line} has {count(n_cells, 'cell')}, but the table has {count(n_columns, 'column')}; correct the line"


def advice(path: Path, error: Exception) -> str | None:
    """Return what to do about a text table that could not be parsed, if that is known."""
    name, text = file_name(path), str(error)
    if isinstance(error, UnicodeError):
        line = None if path == STANDARD_INPUT else _first_undecodable(path)
        where = "" if line is None else f" (line {line} has other bytes)"
        encoding = "WINDOWS-1252"
        return f"{name} is not in UTF-8{where} but probably in Latin-1 or Windows-1252; {_save_as_utf8(name, encoding)}"
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text)
    if found:
        n_columns, number, n_cells = map(int, found.groups())
        comment = None if path == STANDARD_INPUT else _first_comment(path)
        if comment is not None and comment <= number:
            return comment_advice(name, comment)
        return (
            f"{wrong_cells(name, number, n_cells, n_columns)}, or put quotation marks around cells that contain the separator."
        )
    if "EOF inside string" in text:
        return f"{name}: a quotation mark is opened and never closed; close it, or delete it."
    return None


def _first_undecodable(path: Path) -> int | None:
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


def _first_comment(path: Path) -> int | None:
    with open_bytes(path) as stream:
        return next((number for number, line in enumerate(stream, start=1) if line.startswith(b"#")), None)


def line_of(path: Path, separator: str, row: int) -> int | None:
    """Return the line on which a row ends, counted from 1; cells may hold line breaks, and empty lines are no rows."""
    with path.open(encoding=ENCODING, newline="") as stream:
        lines = csv.reader(stream, delimiter=separator)
        number = -2
        for cells in lines:
            number += bool(cells)
            if number == row:
                return lines.line_num
    return None


def first_comment_row(frame: pd.DataFrame) -> int | None:
    """Return the first row that is a comment: its first cell begins with '#', and the others are empty."""
    first, others = frame.iloc[:, 0], frame.iloc[:, 1:]
    if first.dtype.kind in "biuf" or not others.shape[1]:
        return None
    marked = np.flatnonzero(first.astype(str).str.startswith("#"))
    comments = marked[others.iloc[marked].isna().all(axis=1).to_numpy()]
    return int(comments[0]) if len(comments) else None


def records(stream: BinaryIO, separator: str) -> Iterator[bytes]:
    r"""Yield the rows of a text table as they are, with their ends; a cell in quotation marks may hold line breaks.

    Empty lines come with the row that follows.

    Examples
    --------
    >>> list(records(io.BytesIO(b'a,b\n\n1,"x\ny"\n2,z'), ","))
    [b'a,b\n', b'\n1,"x\ny"\n', b'2,z']
    """
    pending: list[bytes] = []

    def lines() -> Iterator[str]:
        for line in stream:
            pending.append(line)
            yield line.decode("utf-8")

    for cells in csv.reader(lines(), delimiter=separator):
        if any(cell.strip() for cell in cells) or len(cells) > 1:
            yield b"".join(pending)
            pending.clear()
