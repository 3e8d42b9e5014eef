"""Whether the file of a gallery is still the one that was opened.

A file that was moved over that of an open gallery leaves the program with one that has no name any more, where enrolments would
be lost. A file that was copied over it, or damaged, is noticed by its time, and is then looked at by a new connection: never
by opening the file itself, which would drop the locks of SQLite when it is closed.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from simtree.gallery._errors import GalleryError, damaged
from simtree.gallery._sqlite_file import connect, explained

# How long to wait for other processes when a file is looked at, in seconds.
TIMEOUT = 5.0


class FileMark:
    """What tells the file of an open gallery from others.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._place, self._change = _look(path)
        self._created = self._read_created()

    def check(self) -> None:
        """Raise if the file is another one, is gone or cannot be read."""
        place, change = _look(self.path)
        if place != self._place:
            raise self._replaced()
        if change != self._change:
            if self._read_created() != self._created:
                raise self._replaced()
            self._change = change

    def _replaced(self) -> GalleryError:
        return GalleryError(f"{self.path} was replaced by another file while it was open; open it again.")

    def _read_created(self) -> float:
        """Return when the gallery was made, by the first entry of its audit."""
        with explained(self.path, TIMEOUT), closing(connect(self.path, readonly=True, timeout=TIMEOUT)) as connection:
            row = _first_entry(connection)
        if row is None:
            raise damaged(self.path, "its audit is empty")
        return float(row[0])


def _first_entry(connection: sqlite3.Connection) -> tuple[float] | None:
    row: tuple[float] | None = connection.execute("SELECT time FROM audit ORDER BY number LIMIT 1").fetchone()
    return row


def _look(path: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return which file has a name, and when and to which size it was last changed."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise GalleryError(f"{path} is gone while it was open; put it back, or open another file.") from None
    return (found.st_dev, found.st_ino), (found.st_mtime_ns, found.st_size)
