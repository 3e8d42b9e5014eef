"""Older gallery files become files of the present schema version, after a backup: in one transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from simtree.gallery._audit import add_entry
from simtree.gallery._errors import check_version
from simtree.gallery._identities import metadata_key
from simtree.gallery._schema import VERSION
from simtree.gallery._sqlite_file import NOT_REPLACED, connect_any, explained, new_file, schema_version
from simtree.gallery._store import put_setting


def upgrade_file(path: Path, backup: Path | None, timeout: float) -> Path | None:
    """Upgrade a gallery file, after copying it.

    Parameters
    ----------
    path : Path
        The file.
    backup : Path or None
        Where to copy it first; None for a name beside it that has the old version.
    timeout : float
        How long to wait for other processes, in seconds.

    Returns
    -------
    Path or None
        The copy; None if the file has the present version already, and nothing was done.
    """
    with closing(connect_any(path, readonly=False, timeout=timeout)) as connection, explained(path, timeout):
        connection.execute("BEGIN IMMEDIATE")  # nobody changes the file between the copy and the upgrade
        try:
            before = schema_version(connection)
            if before == VERSION:
                return None
            if before not in STEPS:
                check_version(path, before, VERSION)
            copy = path.with_name(f"{path.name}.version_{before}") if backup is None else backup
            with closing(connect_any(path, readonly=True, timeout=timeout)) as source, new_file(copy) as target:
                source.backup(target)
            for version in range(before, VERSION):
                STEPS[version](connection)
            (mark,) = connection.execute("SELECT fingerprint FROM model").fetchone()
            add_entry(connection, "upgrade", mark)
            connection.execute(f"PRAGMA user_version={VERSION}")
            connection.execute("COMMIT")
            return copy
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _from_1(connection: sqlite3.Connection) -> None:
    """Write settings and metadata as text, and count blocks: the numbers of both were those of SQLite."""
    settings = connection.execute("SELECT name, value FROM setting").fetchall()
    metadata = connection.execute("SELECT name, number, value FROM metadata").fetchall()
    for statement in (
        "DROP TABLE setting",
        "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        "DROP TABLE metadata",
        "CREATE TABLE metadata (\n"
        "    name TEXT NOT NULL, number INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, number)\n"
        ") WITHOUT ROWID",
        "CREATE INDEX metadata_value ON metadata (name, value)",
        "CREATE INDEX metadata_number ON metadata (number)",
    ):
        connection.execute(statement)
    connection.executemany("INSERT INTO setting VALUES (?, ?)", ((name, json.dumps(value)) for name, value in settings))
    rows = ((name, number, metadata_key(value)) for name, number, value in metadata)
    connection.executemany("INSERT INTO metadata VALUES (?, ?, ?)", rows)
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'block'").fetchone()
    put_setting(connection, "n_blocks_added", 0 if row is None else row[0])
    connection.execute(NOT_REPLACED)


#: How a file of a version becomes one of the next.
STEPS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _from_1}
