"""Galleries in PostgreSQL: the tables, how a schema gets them, completely or not at all, and what can go wrong."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import errors, sql

from simtree.gallery._address import PostgresAddress
from simtree.gallery._errors import GalleryError, damaged, full, locked
from simtree.gallery._schema import VERSION
from simtree.gallery._store import Connection

# Ids are found by a hash, because a tree has no place for long ones. Bytes are not compressed, which would be in vain. No
# statistics are kept of what people are called and of their metadata: they would outlive who was removed.
TABLES = b"""
CREATE TABLE gallery (schema_version INTEGER NOT NULL, n_changes BIGINT NOT NULL);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE model (fingerprint TEXT NOT NULL, content BYTEA NOT NULL);
CREATE TABLE identity (number BIGINT PRIMARY KEY, id TEXT NOT NULL, audit_key BYTEA NOT NULL, EXCLUDE USING hash (id WITH =));
CREATE TABLE metadata (name TEXT NOT NULL, number BIGINT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, number));
CREATE INDEX metadata_value ON metadata (name, value);
CREATE INDEX metadata_number ON metadata (number);
CREATE TABLE block (
    number BIGINT PRIMARY KEY,
    n_rows BIGINT NOT NULL,
    checksum BIGINT NOT NULL,
    owners BYTEA NOT NULL,
    samples BYTEA NOT NULL,
    times BYTEA NOT NULL,
    prepared BYTEA NOT NULL
);
CREATE TABLE vectors (number BIGINT PRIMARY KEY, checksum BIGINT NOT NULL, vectors BYTEA NOT NULL);
CREATE TABLE strangers (content TEXT NOT NULL, maxima BYTEA NOT NULL, scores BYTEA NOT NULL, weights BYTEA NOT NULL);
CREATE TABLE audit (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    time DOUBLE PRECISION NOT NULL,
    action TEXT NOT NULL,
    model TEXT NOT NULL,
    n_samples BIGINT NOT NULL,
    subjects BYTEA NOT NULL
);
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''the audit can only be appended to''; END';
CREATE TRIGGER audit_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
ALTER TABLE block ALTER owners SET STORAGE EXTERNAL, ALTER samples SET STORAGE EXTERNAL, ALTER times SET STORAGE EXTERNAL,
    ALTER prepared SET STORAGE EXTERNAL;
ALTER TABLE vectors ALTER vectors SET STORAGE EXTERNAL;
ALTER TABLE identity ALTER id SET STATISTICS 0, ALTER audit_key SET STATISTICS 0;
ALTER TABLE metadata ALTER name SET STATISTICS 0, ALTER value SET STATISTICS 0;
ALTER TABLE block ALTER owners SET STATISTICS 0, ALTER samples SET STATISTICS 0, ALTER times SET STATISTICS 0,
    ALTER prepared SET STATISTICS 0;
ALTER TABLE vectors ALTER vectors SET STATISTICS 0;
"""

#: A commit waits for the disk even if the server is set up not to; if it waits for more than that, it stays so.
WAIT_FOR_DISK = sql.SQL(
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
)
MARK = "INSERT INTO gallery (schema_version, n_changes) VALUES (?, 0)"

#: Tables from which rows are deleted.
ERASABLE = ("setting", "model", "identity", "metadata", "block", "vectors", "strangers")

# Seconds to wait for a connection, if no longer time is given: unlike a lock, a slow server is no reason to give up soon.
CONNECT_TIMEOUT = 30
# Rows that one statement inserts; at most 65,535 values can be bound.
ROWS_AT_A_TIME = 1000
VALUES = re.compile(r"VALUES (\(\?(?:, \?)*\))")
# What a server says when it is shutting down, or does not take more connections.
GONE = ("08", "57P", "53300")


class PostgresConnection:
    """A connection as gallery code sees it: question marks stand for values, which are sent apart from the statement."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> psycopg.RawCursor[Any]:
        """Run a statement."""
        return psycopg.RawCursor(self.raw).execute(_numbered(statement), values, binary=True)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> None:
        """Run a statement for several rows: one that inserts, many at a time; others, without waiting for each answer."""
        found = VALUES.search(statement)
        if found is None:
            psycopg.RawCursor(self.raw).executemany(_numbered(statement), rows)
            return
        left = iter(rows)
        while part := list(itertools.islice(left, ROWS_AT_A_TIME)):
            several = statement.replace(found[0], "VALUES " + ", ".join([found[1]] * len(part)))
            self.execute(several, list(itertools.chain.from_iterable(part)))


@lru_cache(maxsize=100)
def _numbered(statement: str) -> sql.SQL:
    """Return a statement with $1, $2 and so on, as PostgreSQL has them, for its question marks, all of which are values."""
    number = itertools.count(1)
    return sql.SQL(re.sub(r"\?", lambda _: f"${next(number)}", statement))


def connect(address: PostgresAddress, timeout: float) -> psycopg.Connection[Any]:
    """Return a connection whose transactions are begun and ended explicitly."""
    defaults: dict[str, Any] = {"connect_timeout": max(CONNECT_TIMEOUT, round(timeout)), "application_name": "simtree"}
    given: dict[str, Any] = {**defaults, **address.parameters, "client_encoding": "utf8"}
    return psycopg.connect(**given, autocommit=True, prepare_threshold=None)


@contextmanager
def new_schema(address: PostgresAddress, timeout: float) -> Iterator[PostgresConnection]:
    """Make the tables of a gallery in a schema that has none, to be filled inside the context; nothing is left if it raises."""
    try:
        with connect(address, timeout) as raw, raw.transaction():
            try:
                _make_tables(raw, address)
            except (errors.DuplicateSchema, errors.DuplicateTable, errors.UniqueViolation) as error:
                raise _taken(address) from error  # which somebody else made at the same time
            yield PostgresConnection(raw)
    except psycopg.Error as error:
        raise translated(address, timeout, error) from error


def _make_tables(raw: psycopg.Connection[Any], address: PostgresAddress) -> None:
    connection, schema = PostgresConnection(raw), sql.Identifier(address.schema)
    encoding = connection.execute("SHOW server_encoding").fetchall()[0][0]
    if encoding != "UTF8":
        raise GalleryError(f"the database of {address} has the encoding {encoding}; give one with the encoding UTF8.")
    if not has_schema(connection, address.schema):
        raw.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
    elif _n_tables(connection, address.schema):
        raise _taken(address)
    raw.execute(sql.SQL("SET LOCAL search_path TO {}; {}").format(schema, WAIT_FOR_DISK))
    raw.execute(TABLES)
    connection.execute(MARK, (VERSION,))


def exists(address: PostgresAddress, timeout: float) -> bool:
    """Return whether the schema of an address has any tables."""
    try:
        with connect(address, timeout) as raw:
            return _n_tables(PostgresConnection(raw), address.schema) > 0
    except psycopg.Error as error:
        raise translated(address, timeout, error) from error


def has_schema(connection: Connection, schema: str) -> bool:
    """Return whether the database has a schema."""
    return connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = ?", (schema,)).fetchone() is not None


def _n_tables(connection: Connection, schema: str) -> int:
    statement = "SELECT count(*) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = ?"
    return int(connection.execute(statement, (schema,)).fetchone()[0])


def _taken(address: PostgresAddress) -> FileExistsError:
    return FileExistsError(f"{address} exists; choose another schema, or drop it first.")


def translated(address: PostgresAddress, timeout: float, error: psycopg.Error) -> Exception:
    """Return an error of PostgreSQL as an exception of Python, with the gallery and the remedy, and without passwords."""
    state = error.sqlstate or ""
    if state in ("55P03", "40P01"):  # no lock in time, or a deadlock
        return locked(str(address), timeout)
    if state == "53100":
        return full(str(address))
    if state in ("25006", "42501"):  # a transaction for reading, or no privilege
        return forbidden(str(address), _said(address, error))
    if state in ("XX001", "XX002", "42P01", "42703"):  # damaged pages, a table or column that is missing
        return damaged(str(address), _said(address, error))
    if not state or state.startswith(GONE):
        return ConnectionError(
            f"{address} cannot be reached ({_said(address, error)}); check the address, the user, the password and the server."
        )
    return GalleryError(f"{address} cannot be used: {_said(address, error)}.")


def forbidden(name: str, what: str) -> PermissionError:
    """Return the error that a user has no privilege for something."""
    return PermissionError(
        f"{name} cannot be read or written to by this user ({what}); ask for the privileges, or open it with readonly=True."
    )


def _said(address: PostgresAddress, error: psycopg.Error) -> str:
    """Return what the server or the driver says in one line, without passwords."""
    text = error.diag.message_primary or str(error)
    for secret in address.secrets:
        text = text.replace(secret, "***")
    return " ".join(text.split()).rstrip(".")
