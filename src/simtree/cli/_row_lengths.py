"""The rows of a text table, counted while it is read: one with too few cells is a mistake, not one with holes."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from simtree.cli._text_files import ENCODING, UnreadableFileError, comment_advice, wrong_cells

BYTES_AT_A_TIME = 1 << 20
# Rows are no longer counted if one seems to be longer than this: a quotation mark is then a part of a cell.
MAX_ROW_BYTES = 1 << 24
NEWLINE, QUOTE = b"\n", b'"'


class RowLengths(io.BufferedIOBase):
    r"""The bytes of a text table, which pass through as they are; `check` raises if a row of them is too short.

    pandas takes the cells that such a row lacks as missing. Works for what can be read once, such as standard input.

    Parameters
    ----------
    stream : buffered binary file
        The bytes, uncompressed.
    name : str
        Name of the table in messages.
    separator : str
        What separates the cells.
    n_columns : int
        Number of cells that a row must have.

    Examples
    --------
    >>> rows = RowLengths(io.BytesIO(b"who,a,b\nann,1,\nbob,2\n"), "people.csv", ",", 3)
    >>> rows.read().count(b"\n")
    3
    >>> rows.check()
    Traceback (most recent call last):
        ...
    simtree.cli._text_files.UnreadableFileError: people.csv: line 3 has 2 cells, but the table has 3 columns; correct the line.
    """

    def __init__(self, stream: Any, name: str, separator: str, n_columns: int) -> None:
        self._stream, self._name, self._separator, self._n_columns = stream, name, separator, n_columns
        self._parts: list[bytes] = []  # read, but not counted yet
        self._n_bytes = 0  # of them, without a row that is not complete yet
        self._line = 0  # lines before these bytes
        self._problem: str | None = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes, and count the cells of the rows that they complete."""
        size = -1 if size is None else size
        return self._passed(bytes(self._stream.read(size)), is_end=size < 0)

    def read1(self, size: int = -1, /) -> bytes:
        """Read bytes as `read` does, but no more than are there."""
        return self._passed(bytes(self._stream.read1(size)), is_end=False)

    def check(self) -> None:
        """Raise an error if a row that was read has too few cells."""
        self._count(is_end=False)
        if self._problem is not None:
            raise UnreadableFileError(self._problem)

    def _passed(self, part: bytes, *, is_end: bool) -> bytes:
        """Return bytes that were read; rows are counted many at a time."""
        self._parts.append(part)
        self._n_bytes += len(part)
        if is_end or not part or self._n_bytes >= BYTES_AT_A_TIME:
            self._count(is_end=is_end or not part)
        return part

    def _count(self, *, is_end: bool) -> None:
        """Count the cells of the complete rows among the bytes that were not counted yet."""
        data = b"".join(self._parts)
        end = len(data) if is_end else _end_of_rows(data)
        rows = data[:end]
        self._parts, self._n_bytes = [data[end:]], 0
        if len(data) - end > MAX_ROW_BYTES:
            self._n_columns = 0
        if self._problem is None and self._n_columns > 1 and (QUOTE in rows or self._has_short_line(rows)):
            self._find(rows)
        self._line += rows.count(NEWLINE)

    def _has_short_line(self, rows: bytes) -> bool:
        """Return whether a line has fewer separators than a row must have, which is fast to find out."""
        if not rows:
            return False
        found = np.frombuffer(rows if rows.endswith(NEWLINE) else rows + NEWLINE, dtype=np.uint8)
        ends = np.flatnonzero(found == ord(NEWLINE))
        marks = np.cumsum(found == ord(self._separator))[ends]
        return bool((np.diff(marks, prepend=0) < self._n_columns - 1).any())

    def _find(self, rows: bytes) -> None:
        """Keep what is to be said of the first row that is too short; blank lines are no rows."""
        lines = csv.reader(io.StringIO(rows.decode(ENCODING, "replace"), newline=""), delimiter=self._separator)
        for cells in lines:
            if len(cells) < self._n_columns and any(cell.strip() for cell in cells):
                line = self._line + lines.line_num
                is_comment = cells[0].startswith("#")
                said = f"{wrong_cells(self._name, line, len(cells), self._n_columns)}."
                self._problem = comment_advice(self._name, line) if is_comment else said
                return


def _end_of_rows(data: bytes) -> int:
    """Return where the last complete row ends: at a line break that is not within a cell in quotation marks."""
    if QUOTE not in data:
        return data.rfind(NEWLINE) + 1
    found = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(found == ord(NEWLINE))
    outside = ends[np.cumsum(found == ord(QUOTE))[ends] % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0
