"""The store of a gallery in one SQLite file, with a write-ahead log."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simtree.gallery._errors import ChangedWhileReadError
from simtree.gallery._schema import VERSION
from simtree.gallery._sqlite_file import NOT_REPLACED, connect, file_state, is_frozen, log_of, schema_version, translated
from simtree.gallery._store import Store, not_yet_erased, upgraded_meanwhile

# Pause between two attempts to empty the log of a file that others are reading.
PAUSE = 0.02


class SqliteStore(Store):
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
        The connection to the file.
    """

    kind = "sqlite"
    errors = sqlite3.Error

    def __init__(self, path: Path, *, readonly: bool, timeout: float) -> None:
        super().__init__(str(path), readonly=readonly, timeout=timeout)
        self.path = path
        self._n_opened = 0
        self._open()

    def _open(self) -> None:
        """Connect to the file; note what it is like if SQLite can read it only as one that nobody changes."""
        frozen = is_frozen(self.path, readonly=self.readonly)
        seen = file_state(self.path) if frozen else None
        self.connection = connect(self.path, readonly=self.readonly, timeout=self.timeout, frozen=frozen)
        self._seen = seen
        self._n_opened += 1

    def _refresh(self) -> None:
        """Connect again if the file was taken for one that nobody changes, and somebody did."""
        if self._seen is not None and (log_of(self.path).exists() or self._was_changed()):
            old = self.connection
            self._open()
            old.close()

    def _was_changed(self) -> bool:
        return self._seen is not None and file_state(self.path) != self._seen

    def _begin(self, *, writes: bool) -> sqlite3.Connection:
        self._refresh()
        self.connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
        return self.connection

    def _commit(self, *, writes: bool) -> None:
        self.connection.execute("COMMIT")
        if self._was_changed():  # what was read may be of two states
            raise ChangedWhileReadError(self.name)

    def _rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _close(self) -> None:
        self.connection.close()

    def _set_timeout(self, timeout: float) -> None:
        super()._set_timeout(timeout)
        self.connection.execute(f"PRAGMA busy_timeout={round(1000 * timeout)}")

    def _translated(self, error: Exception) -> Exception:
        assert isinstance(error, sqlite3.Error)
        if self._was_changed():
            return ChangedWhileReadError(self.name)
        return translated(self.path, self.timeout, error)

    def _damaged(self, what: str) -> Exception:
        return ChangedWhileReadError(self.name) if self._was_changed() else super()._damaged(what)

    def version(self) -> int:
        """Return a number that changes when another connection has committed; in a transaction, that of its state."""
        if schema_version(self.connection) != VERSION:
            raise upgraded_meanwhile(self.name)
        # Numbers of two connections say nothing about each other.
        return (self._n_opened << 32) + int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def n_bytes(self) -> int:
        """Return the size of the file and of its log."""
        return sum(file.stat().st_size for file in (self.path, log_of(self.path)) if file.exists())

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy the file to another database by the online backup of SQLite."""
        with self.alone():
            self._refresh()
            self.connection.backup(target)
            if self._was_changed():
                raise ChangedWhileReadError(self.name)

    def _rewrite(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        with self._impatient() as connection:
            self._until(deadline, lambda: connection.execute(NOT_REPLACED))
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
                    raise not_yet_erased(self.name) from error
                time.sleep(PAUSE)

    @contextmanager
    def _impatient(self) -> Iterator[sqlite3.Connection]:
        """Do not wait for locks inside the context, so that a deadline can be kept."""
        self.connection.execute("PRAGMA busy_timeout=0")
        try:
            yield self.connection
        finally:
            self.connection.execute(f"PRAGMA busy_timeout={round(1000 * self.timeout)}")


def _truncate_log(connection: sqlite3.Connection) -> None:
    """Copy the log into the file and cut it to zero bytes."""
    is_busy, n_frames, n_copied = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy or n_frames != n_copied:
        error = sqlite3.OperationalError("the log is in use")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error
