"""Looking into the tables and files of a gallery, and tampering with them, whatever its store."""

from __future__ import annotations

import numpy as np

from simtree.gallery._schema import COLUMNS

PIECE = 16


def pieces(rows):
    """All pieces of 16 bytes of some rows that start with a number, up to the end of each row: a page can split a row."""
    rows = np.ascontiguousarray(rows)
    step = rows.dtype.itemsize
    return {row[start : start + PIECE] for row in map(bytes, rows) for start in range(0, len(row) - PIECE + 1, step)}


def query(gallery, statement, *values):
    """The rows that a statement returns."""
    with gallery._session.store.reading() as connection:
        return connection.execute(statement, values).fetchall()


def tamper(gallery, statement, *values):
    """Run a statement that the gallery itself never would."""
    with gallery._session.store.writing() as connection:
        connection.execute(statement, values)


def content(gallery):
    """Everything that the tables hold."""
    return {table: sorted(query(gallery, f"SELECT {', '.join(names)} FROM {table}")) for table, names in COLUMNS.items()}


def is_idle(gallery):
    """Whether the gallery holds no transaction."""
    store = gallery._session.store
    if store.kind == "sqlite":
        return not store.connection.in_transaction
    return store._connection.info.transaction_status.name == "IDLE"
