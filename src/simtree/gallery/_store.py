"""What a store of galleries must do: one small interface, which SQLite and PostgreSQL implement.

A reading call sees one committed state and holds no transaction when it returns. A writing call commits everything or nothing,
and returns when the disk has it. Statements are those of SQL that all stores understand, with a question mark for each value:
values are always bound, never written into statements.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar, Protocol

from simtree.gallery._errors import DamagedContentError, GalleryError, damaged
from simtree.io._fields import ModelFileError

#: What the names of settings begin with that are about enrolments under a name.
REQUEST = "request "


class Rows(Protocol):
    """What a statement returns."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What gallery code sees of a store inside a transaction."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Rows:
        """Run a statement with a value for each question mark."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Run a statement for each of several rows of values."""


class Store(ABC):
    """An open gallery, wherever it is.

    Parameters
    ----------
    name : str
        What messages call it.
    readonly : bool
        Whether writing is refused.
    timeout : float
        How long to wait for other processes, in seconds.
    """

    #: What `Gallery.to_dict` calls this kind of store.
    kind: ClassVar[str]
    #: Errors of the database, which are translated.
    errors: ClassVar[type[Exception]]

    def __init__(self, name: str, *, readonly: bool, timeout: float) -> None:
        self.name, self.readonly, self.timeout = name, readonly, timeout
        self.is_closed = False
        self._process = os.getpid()
        self._lock = RLock()

    # What a store must do; all of it is called by one thread at a time.

    @abstractmethod
    def _begin(self, *, writes: bool) -> Connection:
        """Begin a transaction that sees one committed state; no other process writes while one that writes is open."""

    @abstractmethod
    def _commit(self, *, writes: bool) -> None:
        """End the transaction; when this returns, the disk has what was written."""

    @abstractmethod
    def _rollback(self) -> None:
        """Undo the transaction, if there is one."""

    @abstractmethod
    def _close(self) -> None:
        """Leave the database."""

    @abstractmethod
    def _translated(self, error: Exception) -> Exception:
        """Return an error of the database as an exception of Python, in one sentence."""

    @abstractmethod
    def _rewrite(self, timeout: float) -> None:
        """Write all tables anew without what was deleted; raise `not_yet_erased` if others prevent it for too long."""

    @abstractmethod
    def version(self) -> int:
        """Return a number that changes when another connection has committed; in a transaction, that of its state.

        Raise `upgraded_meanwhile` if the tables have changed.
        """

    @abstractmethod
    def n_bytes(self) -> int:
        """Return the size of the gallery on disk; to be called outside a transaction."""

    # What all stores do alike.

    def close(self) -> None:
        """Close the store; nothing happens if it is closed already."""
        with self._lock:
            if not self.is_closed and self._process == os.getpid():
                self._close()
            self.is_closed = True

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Show one committed state inside the context, whatever others write meanwhile."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Write everything inside the context, or nothing if it raises; no other process writes meanwhile."""
        self.check_writable()
        with self._transaction(writes=True) as connection:
            yield connection

    def rewrite(self, timeout: float) -> None:
        """Write all tables anew without what was deleted; raise if others prevent it for too long."""
        with self.alone():
            self._rewrite(timeout)

    def check_writable(self, reason: str = "this changes it") -> None:
        """Raise if the gallery was opened for reading only."""
        if self.readonly:
            raise PermissionError(f"{self.name} was opened with readonly=True, and {reason}; open it without.")

    @contextmanager
    def patience(self, timeout: float) -> Iterator[None]:
        """Wait for other processes no longer than this inside the context, whatever the store was opened with."""
        with self.alone():  # other threads have the patience that they were promised
            before = self.timeout
            self._set_timeout(timeout)
            try:
                yield
            finally:
                self._set_timeout(before)

    def _set_timeout(self, timeout: float) -> None:
        self.timeout = timeout

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other threads of this process away, and translate errors."""
        with self._lock, self._explained():
            if self.is_closed:
                raise ValueError(f"{self.name} is closed; open it again with Gallery.open.")
            if self._process != os.getpid():
                raise ValueError(
                    f"{self.name} was opened by another process, from which this one was forked; open it again here."
                )
            yield

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        with self.alone():
            try:
                yield self._begin(writes=writes)
                self._commit(writes=writes)
            except BaseException:
                self._rollback()
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self.errors as error:
            raise self._translated(error) from error
        except DamagedContentError as error:
            raise self._damaged(str(error)) from error
        except ModelFileError as error:
            raise self._damaged(f"its model cannot be read ({error})") from error

    def _damaged(self, what: str) -> Exception:
        """Return the error that the gallery is damaged."""
        return damaged(self.name, what)


def not_yet_erased(name: str) -> TimeoutError:
    """Return the error that others have prevented a gallery from being rewritten."""
    return TimeoutError(
        f"not yet erased: what was removed may still be in {name}, because another process is reading or writing; compact it "
        "again, or with a larger timeout."
    )


def upgraded_meanwhile(name: str) -> GalleryError:
    """Return the error that the tables of an open gallery have changed."""
    return GalleryError(
        f"{name} was upgraded by another program while it was open; open it again with a simtree that can read it."
    )


def get_setting(connection: Connection, name: str) -> Any:
    """Return a setting; None if it is not there."""
    row = connection.execute("SELECT value FROM setting WHERE name = ?", (name,)).fetchone()
    return None if row is None else json.loads(row[0])


def get_settings(connection: Connection) -> dict[str, Any]:
    """Return all settings by name, without the enrolments that were asked for under a name."""
    rows = connection.execute("SELECT name, value FROM setting")
    return {name: json.loads(value) for name, value in rows if not name.startswith(REQUEST)}


def put_setting(connection: Connection, name: str, value: Any) -> None:
    """Write a setting, which must be a value of JSON."""
    connection.execute(
        "INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, json.dumps(value)),
    )


def increase(connection: Connection, name: str, n: int) -> int:
    """Increase a counter; return its value before."""
    before = int(get_setting(connection, name) or 0)
    put_setting(connection, name, before + n)
    return before
