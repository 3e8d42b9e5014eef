"""Galleries in SQLite files: how a file becomes one, completely or not at all, how it is opened, and what can go wrong."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from simtree.gallery._errors import GalleryError, check_version, damaged, foreign, full, locked
from simtree.gallery._schema import VERSION

#: Marks an SQLite file as a gallery: the letters "simg".
APPLICATION_ID = int.from_bytes(b"simg")
# Files that SQLite keeps beside a database; if they are left over, they belong to another file.
COMPANIONS = ("-wal", "-shm", "-journal")
# Files that this process is making.
_MAKING: set[Path] = set()

TABLES = """
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE model (fingerprint TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE identity (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, audit_key BLOB NOT NULL);
CREATE TABLE metadata (
    name TEXT NOT NULL, number INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, number)
) WITHOUT ROWID;
CREATE INDEX metadata_value ON metadata (name, value);
CREATE INDEX metadata_number ON metadata (number);
CREATE TABLE block (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    n_rows INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    owners BLOB NOT NULL,
    samples BLOB NOT NULL,
    times BLOB NOT NULL,
    prepared BLOB NOT NULL
);
CREATE TABLE vectors (number INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, vectors BLOB NOT NULL);
CREATE TABLE strangers (content TEXT NOT NULL, maxima BLOB NOT NULL, scores BLOB NOT NULL, weights BLOB NOT NULL);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time REAL NOT NULL,
    action TEXT NOT NULL,
    model TEXT NOT NULL,
    n_samples INTEGER NOT NULL,
    subjects BLOB NOT NULL
);
CREATE TRIGGER audit_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit can only be appended to'); END;
CREATE TRIGGER audit_not_deleted BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit can only be appended to'); END;
"""
# INSERT OR REPLACE deletes a row without the trigger above, unless a connection asks for it. Files of before get this one when
# they are compacted or upgraded.
NOT_REPLACED = """
CREATE TRIGGER IF NOT EXISTS audit_not_replaced BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'the audit can only be appended to'); END
"""


@contextmanager
def explained(path: Path, timeout: float) -> Iterator[None]:
    """Translate errors of SQLite into the exceptions of Python, with the file and the remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(path, timeout, error) from error


def translated(path: Path, timeout: float, error: sqlite3.Error) -> Exception:
    """Return an error of SQLite as an exception of Python, with the file and the remedy."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return locked(path, timeout)
    if code == sqlite3.SQLITE_FULL:
        return full(path)
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


def connect(path: Path, *, readonly: bool, timeout: float, frozen: bool | None = None) -> sqlite3.Connection:
    """Return a connection to an existing gallery of the present version; see `connect_any`."""
    connection = connect_any(path, readonly=readonly, timeout=timeout, frozen=frozen)
    try:
        check_version(path, schema_version(connection), VERSION)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_any(path: Path, *, readonly: bool, timeout: float, frozen: bool | None = None) -> sqlite3.Connection:
    """Return a connection to an existing gallery of any version.

    Transactions are begun and ended explicitly. A commit returns when the disk has it, deleted content is overwritten, and
    nothing is written to temporary files. A connection to a ``frozen`` file, see `is_frozen`, notices no changes.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no gallery {path}; make it with Gallery.create.")
    with explained(path, timeout):
        connection = _connected(path, readonly, timeout, is_frozen(path, readonly=readonly) if frozen is None else frozen)
        try:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise foreign(path)
            _check_length(path, connection)
        except BaseException:
            connection.close()
            raise
    return connection


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the schema version of a gallery."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def is_frozen(path: Path, *, readonly: bool) -> bool:
    """Return whether SQLite can read a file only as one that nobody changes.

    That is so if it has no log, and this process cannot make one beside it: on a disk that cannot be written to, but also in a
    folder of another user, who may change the file later.
    """
    return readonly and not _can_write(path.parent) and not log_of(path).exists()


def log_of(path: Path) -> Path:
    """Return the name of the log of a file."""
    return path.with_name(path.name + "-wal")


def _connected(path: Path, readonly: bool, timeout: float, frozen: bool) -> sqlite3.Connection:
    address = f"{path.resolve().as_uri()}?mode={'ro' if readonly else 'rw'}"
    if frozen:
        address += "&immutable=1"
    connection = sqlite3.connect(address, timeout=timeout, isolation_level=None, check_same_thread=False, uri=True)
    for pragma in ("synchronous=FULL", "secure_delete=ON", "temp_store=MEMORY", "trusted_schema=OFF", "fullfsync=ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def file_state(path: Path) -> tuple[int, ...]:
    """Return what changes with the content of a file, as far as its folder tells; nothing if it is gone."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _can_write(folder: Path) -> bool:
    """Return whether this process may make files in a folder."""
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _check_length(path: Path, connection: sqlite3.Connection) -> None:
    """Raise if a file is shorter than it says, unless the rest may be in its log."""
    connection.execute("BEGIN")  # nobody shortens a file that is being read
    (n_pages,), (page_size,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    log = log_of(path)
    is_complete = (log.exists() and log.stat().st_size > 0) or path.stat().st_size >= n_pages * page_size
    connection.execute("COMMIT")
    if not is_complete:
        raise damaged(path, f"it should have {n_pages * page_size:,} bytes and has {path.stat().st_size:,}")


@contextmanager
def new_file(path: Path) -> Iterator[sqlite3.Connection]:
    """Make a gallery under a temporary name and, if no error occurs, move it into place; an existing file is left alone."""
    check_free(path)
    remove_unfinished(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    _MAKING.add(unfinished)
    try:
        with explained(path, 0.0), closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
            yield connection
        _sync(unfinished)
        _move(unfinished, path)
        _sync(path.parent)
    finally:
        for ending in ("", *COMPANIONS):
            unfinished.with_name(unfinished.name + ending).unlink(missing_ok=True)
        _MAKING.discard(unfinished)


def remove_unfinished(path: Path) -> None:
    """Remove what a process that was killed while it made this file has left, which may be a copy of a whole gallery."""
    start = f".{path.name}."
    for file in list(path.parent.iterdir()):
        number, _, ending = file.name.removeprefix(start).partition("-")
        is_ours = file.name.startswith(start) and number.isdecimal() and (not ending or f"-{ending}" in COMPANIONS)
        if is_ours and not _is_being_made(path.with_name(start + number), int(number)):
            with suppress(PermissionError):  # a file that somebody has open, where such files cannot be removed
                file.unlink(missing_ok=True)


def _is_being_made(unfinished: Path, process: int) -> bool:
    """Return whether a process, by its number, is still making a file."""
    if process == os.getpid():  # perhaps one that had the same number before, as in a container
        return unfinished in _MAKING
    if os.name != "posix":
        return False
    try:
        os.kill(process, 0)  # which does nothing
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def new_gallery_file(path: Path) -> Iterator[sqlite3.Connection]:
    """Make a gallery with empty tables, which are filled inside the context; no file is left if it raises."""
    with new_file(path) as connection:
        _make_tables(connection)
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")


def _make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty gallery."""
    for pragma in (
        f"application_id={APPLICATION_ID}",
        f"user_version={VERSION}",
        "journal_mode=WAL",
        "secure_delete=ON",
        "temp_store=MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchone()
    connection.executescript(f"BEGIN;{TABLES}{NOT_REPLACED};COMMIT;")


def check_free(path: Path) -> None:
    """Raise if a file exists, or what SQLite would take for its unfinished transactions."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}; make it first.")
    for ending in ("", *COMPANIONS):
        file = path.with_name(path.name + ending)
        if file.exists():
            raise _taken(file)


def _taken(path: Path) -> FileExistsError:
    return FileExistsError(f"{path} exists; choose another name, or remove it first.")


def _move(unfinished: Path, path: Path) -> None:
    """Move a file to a name that must not exist."""
    try:
        os.link(unfinished, path)  # unlike a move, it fails if the file has appeared meanwhile
    except FileExistsError:
        raise _taken(path) from None
    except OSError:  # this disk has no links
        check_free(path)
        os.rename(unfinished, path)


def _sync(path: Path) -> None:
    """Wait until the disk has a file, or the entries of a folder."""
    if os.name != "posix" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
