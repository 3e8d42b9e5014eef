"""The audit of a service: one row per call with a key, on the disk before the answer is sent.

It is a database of its own, so that searches do not write to the gallery. Identities appear as the hashes of the gallery's
audit, which nobody can assign to a person who was removed. Rows of calls that run at the same time are committed together: the
disk is asked once for all of them.
"""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

#: Marks an SQLite file as an audit of a service: the letters "simc".
APPLICATION_ID = int.from_bytes(b"simc")
VERSION = 1
HASH_BYTES = 16
# Rows that are committed together.
MAX_ROWS = 500

TABLES = """
CREATE TABLE call (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    request TEXT NOT NULL,
    key TEXT NOT NULL,
    action TEXT NOT NULL,
    status INTEGER NOT NULL,
    n_samples INTEGER NOT NULL,
    model TEXT NOT NULL,
    milliseconds REAL NOT NULL,
    subjects BLOB NOT NULL
);
CREATE TRIGGER call_not_changed BEFORE UPDATE ON call BEGIN SELECT RAISE(ABORT, 'the audit can only be appended to'); END;
CREATE TRIGGER call_not_deleted BEFORE DELETE ON call BEGIN SELECT RAISE(ABORT, 'the audit can only be appended to'); END;
"""
COLUMNS = "time, request, key, action, status, n_samples, model, milliseconds, subjects"


class CallLogError(Exception):
    """Error raised if the audit cannot be read or written."""


@dataclass(frozen=True)
class Row:
    """A call.

    Parameters
    ----------
    time : float
        When it came, in seconds since 1970.
    request : str
        Its number, which the answer carries too.
    key : str
        Id of the key.
    action : str
        What was asked for.
    status : int
        Status of the answer.
    n_samples : int
        Number of samples that it was about.
    model : str
        Fingerprint of the model.
    milliseconds : float
        How long it took.
    subjects : tuple of str
        Hashes of the identities that it was about, or that the answer named.
    """

    time: float
    request: str
    key: str
    action: str
    status: int
    n_samples: int
    model: str
    milliseconds: float
    subjects: tuple[str, ...]


class CallLog:
    """An open audit of a service.

    Parameters
    ----------
    path : Path
        The file, which is made if there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Made with the right mode from the first moment on; SQLite gives the files beside it the same one.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            self._connection = _connected(path)
        except sqlite3.Error as error:
            raise CallLogError(f"{path} cannot be used as an audit of a service ({error}); give another file.") from error
        self._waiting: queue.SimpleQueue[tuple[Row, Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="audit", daemon=True)
        self._thread.start()

    def add(self, row: Row) -> Future[None]:
        """Add a row; the result comes when the disk has it."""
        done: Future[None] = Future()
        self._waiting.put((row, done))
        return done

    def latest(self, limit: int, before: int | None = None) -> list[dict[str, Any]]:
        """Return rows, the newest first, from before one with some number."""
        try:
            with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
                rows = connection.execute(
                    f"SELECT number, {COLUMNS} FROM call WHERE number < ? ORDER BY number DESC LIMIT ?",
                    ((1 << 62) if before is None else before, limit),
                ).fetchall()
        except sqlite3.Error as error:
            raise CallLogError(f"the audit cannot be read ({error}); look at its file and its disk.") from error
        names = ("number", *COLUMNS.split(", "))
        return [{**dict(zip(names, row, strict=True)), "subjects": _hashes(row[-1])} for row in rows]

    def close(self) -> None:
        """Write what is waiting, and close the file."""
        self._waiting.put(None)
        self._thread.join()
        self._connection.close()

    def _write_all(self) -> None:
        is_open = True
        while is_open:
            some = [self._waiting.get()]
            while len(some) < MAX_ROWS and not self._waiting.empty():
                some.append(self._waiting.get())
            is_open = None not in some
            self._write([entry for entry in some if entry is not None])

    def _write(self, entries: list[tuple[Row, Future[None]]]) -> None:
        if not entries:
            return
        rows = [(*astuple(row)[:-1], bytes.fromhex("".join(row.subjects))) for row, _ in entries]
        try:
            with self._connection:
                marks = ", ".join("?" * len(COLUMNS.split(", ")))
                self._connection.executemany(f"INSERT INTO call ({COLUMNS}) VALUES ({marks})", rows)
        except sqlite3.Error as error:
            problem = CallLogError(f"the audit cannot be written ({error}); look at its file and its disk.")
            _finish(entries, problem)
        else:
            _finish(entries, None)


def _finish(entries: Iterable[tuple[Row, Future[None]]], problem: Exception | None) -> None:
    for _, done in entries:
        if done.set_running_or_notify_cancel():
            done.set_result(None) if problem is None else done.set_exception(problem)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION_ID and n_tables:
            raise sqlite3.DatabaseError("it holds something else")
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}").fetchone()
        if not n_tables:
            marks = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={VERSION};"
            connection.executescript(f"BEGIN;{TABLES}{marks}COMMIT;")
    except BaseException:
        connection.close()
        raise
    return connection


def _hashes(content: bytes) -> list[str]:
    return [content[start : start + HASH_BYTES].hex() for start in range(0, len(content), HASH_BYTES)]
