"""The file of a gallery: transactions, settings and the model.

A reading call sees one committed state and holds no transaction when it returns. A writing call commits everything or nothing,
and returns when the disk has it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from simtree.gallery._blocks import DamagedContentError
from simtree.gallery._errors import damaged, explained
from simtree.gallery._schema import connect
from simtree.io._fields import ModelFileError

# Pause between two attempts to empty the log of a file that others are reading.
PAUSE = 0.02


class Store:
    """An open gallery file.

    Parameters
    ----------
    path : Path
        The file.
    readonly : bool
        Whether writing is refused.
    timeout : float
        How long to wait for other processes, in seconds.

    Attributes
    ----------
    connection : sqlite3.Connection
        To be used inside `reading` and `writing` only.
    """

    def __init__(self, path: Path, *, readonly: bool, timeout: float) -> None:
        self.path, self.readonly, self.timeout = path, readonly, timeout
        self._connection: sqlite3.Connection | None = connect(path, readonly=readonly, timeout=timeout)
        self._process = os.getpid()
        self._lock = RLock()

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, if the file is open and was opened by this process."""
        if self._connection is None:
            raise ValueError(f"{self.path} is closed; open it again with Gallery.open.")
        if self._process != os.getpid():
            raise ValueError(f"{self.path} was opened by another process, from which this one was forked; open it again here.")
        return self._connection

    @property
    def is_closed(self) -> bool:
        """Whether the file is closed."""
        return self._connection is None

    def close(self) -> None:
        """Close the file; nothing happens if it is closed already."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Show one committed state inside the context, whatever others write meanwhile."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write everything inside the context, or nothing if it raises; no other process writes meanwhile."""
        self.check_writable()
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def check_writable(self, reason: str = "this changes it") -> None:
        """Raise if the file was opened for reading only."""
        if self.readonly:
            raise PermissionError(f"{self.path} was opened with readonly=True, and {reason}; open it without.")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            connection = self.connection
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with explained(self.path, self.timeout):
                yield
        except DamagedContentError as error:
            raise damaged(self.path, str(error)) from error
        except ModelFileError as error:
            raise damaged(self.path, f"its model cannot be read ({error})") from error

    def data_version(self) -> int:
        """Return a number that changes when another connection has committed; in a transaction, that of its state."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy the file to another database."""
        with self._lock, self._explained():
            self.connection.backup(target)

    def rewrite(self, timeout: float) -> None:
        """Write the whole file anew without what was deleted, and empty the log; raise if others prevent it for too long."""
        deadline = time.monotonic() + timeout
        with self._lock, explained(self.path, self.timeout), self._impatient() as connection:
            self._until(deadline, lambda: connection.execute("VACUUM"))
            self._until(deadline, lambda: _truncate_log(connection))

    def _until(self, deadline: float, work: Callable[[], object]) -> None:
        """Repeat some work until other processes let it succeed."""
        while True:
            try:
                work()
                return
            except sqlite3.OperationalError as error:
                if (error.sqlite_errorcode & 0xFF) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
                if time.monotonic() >= deadline:
                    raise not_yet_erased(self.path) from error
                time.sleep(PAUSE)

    @contextmanager
    def _impatient(self) -> Iterator[sqlite3.Connection]:
        """Do not wait for locks inside the context, so that a deadline can be kept."""
        connection = self.connection
        connection.execute("PRAGMA busy_timeout=0")
        try:
            yield connection
        finally:
            connection.execute(f"PRAGMA busy_timeout={round(1000 * self.timeout)}")


def not_yet_erased(path: Path) -> TimeoutError:
    """Return the error that others have prevented a file from being rewritten."""
    return TimeoutError(
        f"not yet erased: what was removed may still be in {path} and its log, because another process is reading or writing; "
        "compact it again, or with a larger timeout."
    )


def _truncate_log(connection: sqlite3.Connection) -> None:
    """Copy the log into the file and cut it to zero bytes."""
    is_busy, n_frames, n_copied = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy or n_frames != n_copied:
        error = sqlite3.OperationalError("the log is in use")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error


def get_setting(connection: sqlite3.Connection, name: str) -> Any:
    """Return a setting; None if it is not there."""
    row = connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def put_setting(connection: sqlite3.Connection, name: str, value: Any) -> None:
    """Write a setting."""
    connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))


def increase(connection: sqlite3.Connection, name: str, n: int) -> int:
    """Increase a counter; return its value before."""
    before = int(get_setting(connection, name) or 0)
    put_setting(connection, name, before + n)
    return before
