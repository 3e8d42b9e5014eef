"""What can go wrong with a gallery file, in one sentence each instead of the messages of SQLite."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simtree._utils.files import disk_full


class GalleryError(ValueError):
    """Error raised if a file is not a gallery, is damaged, or was written by a newer simtree."""


def foreign(path: Path) -> GalleryError:
    """Return the error that a file is not a gallery."""
    return GalleryError(f"{path} is not a gallery of simtree; give another file.")


def damaged(path: Path, what: str) -> GalleryError:
    """Return the error that a gallery is damaged."""
    return GalleryError(f"{path} is damaged: {what}; restore a backup of it.")


@contextmanager
def explained(path: Path, timeout: float) -> Iterator[None]:
    """Translate errors of SQLite into the exceptions of Python, with the file and the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(path, timeout, error) from error


def _translated(path: Path, timeout: float, error: sqlite3.Error) -> Exception:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return TimeoutError(
            f"{path} is locked by another process, and was still so after timeout={timeout:g} seconds; try again, or open it "
            "with a larger timeout."
        )
    if code == sqlite3.SQLITE_FULL:
        return disk_full(path, OSError(errno.ENOSPC, "no space left on the disk"))
    if code == sqlite3.SQLITE_READONLY:
        return PermissionError(f"{path} cannot be written to; change its permissions, or open it with readonly=True.")
    if code == sqlite3.SQLITE_CANTOPEN:
        return PermissionError(f"{path} cannot be opened; the file and its folder must be readable, and writable to enrol.")
    if code == sqlite3.SQLITE_NOTADB:
        return foreign(path)
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(path, str(error))
    if code == sqlite3.SQLITE_IOERR:
        return OSError(f"{path} cannot be read or written ({error}); check the disk.")
    return GalleryError(f"{path} cannot be used: {error}.")
