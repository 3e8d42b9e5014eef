"""The store of a gallery in PostgreSQL: the tables of one schema of a database.

Each transaction sets what it needs for itself, so that it does not matter whether a connection pooler stands in between. One
row, `gallery`, has the schema version and the number of changes, by which readers notice that something is new.
"""

from __future__ import annotations

import re
import time
import warnings

import psycopg
from psycopg import errors, sql
from psycopg.pq import TransactionStatus

from simtree.gallery._address import PostgresAddress
from simtree.gallery._errors import GalleryError, check_version, foreign
from simtree.gallery._postgres_schema import (
    ERASABLE,
    WAIT_FOR_DISK,
    PostgresConnection,
    connect,
    forbidden,
    has_schema,
    translated,
)
from simtree.gallery._schema import VERSION
from simtree.gallery._store import Connection, Store, not_yet_erased, upgraded_meanwhile

# The first version that there was in PostgreSQL.
OLDEST = 2
# Pause between two attempts to rewrite tables whose old rows others can still see.
PAUSE = 0.02


class PostgresStore(Store):
    """An open gallery in PostgreSQL.

    Parameters
    ----------
    address : PostgresAddress
        The database and the schema.
    readonly : bool
        Whether writing is refused.
    timeout : float
        How long to wait for the server and other processes, in seconds.
    """

    kind = "postgresql"
    errors = psycopg.Error

    def __init__(self, address: PostgresAddress, *, readonly: bool, timeout: float) -> None:
        super().__init__(str(address), readonly=readonly, timeout=timeout)
        self._address = address
        with self._explained():
            self._connection = connect(address, timeout)
        try:
            with self.reading() as connection:
                self._check(connection)
        except BaseException:
            self._connection.close()
            raise

    def _check(self, connection: Connection) -> None:
        """Raise if the schema is not a gallery of this version; warn if the server cannot keep what it has confirmed."""
        if not has_schema(connection, self._address.schema):
            raise FileNotFoundError(f"there is no gallery {self.name}; make it with Gallery.create.")
        if not connection.execute("SELECT has_schema_privilege(?, 'USAGE')", (self._address.schema,)).fetchone()[0]:
            raise forbidden(self.name, "permission denied for the schema")
        if connection.execute("SELECT to_regclass('gallery')").fetchone()[0] is None:
            raise foreign(self.name)
        version, _ = self._mark(connection)
        check_version(self.name, version, VERSION, oldest=OLDEST)
        if not self.readonly and connection.execute("SHOW fsync").fetchone()[0] == "off":
            warnings.warn(
                f"the server of {self.name} runs with fsync=off: it may lose what it has confirmed if the power fails; turn "
                "it on.",
                UserWarning,
                stacklevel=5,
            )

    def _mark(self, connection: Connection) -> tuple[int, int]:
        version, n_changes = connection.execute("SELECT schema_version, n_changes FROM gallery").fetchone()
        return int(version), int(n_changes)

    def _begin(self, *, writes: bool) -> PostgresConnection:
        statements = _begun(self._address.schema, self.timeout, writes)
        try:
            self._connection.execute(statements)
        except psycopg.OperationalError:
            if not self._connection.closed:
                raise
            # The server was restarted, or has ended an idle connection: nothing was begun, so nothing is lost.
            self._connection = connect(self._address, self.timeout)
            self._connection.execute(statements)
        return PostgresConnection(self._connection)

    def _commit(self, *, writes: bool) -> None:
        if writes:
            self._connection.execute("UPDATE gallery SET n_changes = n_changes + 1")
        try:
            done = self._connection.execute("COMMIT").statusmessage
        except psycopg.OperationalError as error:
            if not self._connection.closed or not writes:
                raise
            raise ConnectionError(
                f"the connection to {self.name} was lost while a change was being committed; look whether it is there before "
                "you repeat it."
            ) from error
        if done != "COMMIT":  # what the server answers if a statement before has failed
            raise GalleryError(f"{self.name} was not changed, because a statement has failed; try again.")

    def _rollback(self) -> None:
        try:
            if not self._connection.closed and self._connection.info.transaction_status != TransactionStatus.IDLE:
                self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()  # the server undoes what a connection that ends has begun

    def _close(self) -> None:
        self._connection.close()

    def _translated(self, error: Exception) -> Exception:
        assert isinstance(error, psycopg.Error)
        return translated(self._address, self.timeout, error)

    def version(self) -> int:
        """Return the number of changes that the transaction sees."""
        version, n_changes = self._mark(PostgresConnection(self._connection))
        if version != VERSION:
            raise upgraded_meanwhile(self.name)
        return n_changes

    def n_bytes(self) -> int:
        """Return the size of all tables with their indexes."""
        statement = (
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = ?::regnamespace"
        )
        with self.reading() as connection:
            return int(connection.execute(statement, (self._address.schema,)).fetchone()[0])

    def _rewrite(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        waiting = list(ERASABLE)
        try:
            while waiting := [table for table in waiting if self._vacuum(table, deadline)]:
                if time.monotonic() >= deadline:
                    raise not_yet_erased(self.name)
                time.sleep(PAUSE)
        except errors.LockNotAvailable as error:
            raise not_yet_erased(self.name) from error
        finally:
            if not self._connection.closed:
                self._connection.execute("RESET lock_timeout")

    def _vacuum(self, table: str, deadline: float) -> int:
        """Write a table anew; return the number of deleted rows that another transaction can still see, and which stay."""
        left = max(1, round(1000 * (deadline - time.monotonic())))
        self._connection.execute(sql.SQL("SET lock_timeout = {}").format(left))
        details: list[str] = []

        def listen(said: psycopg.errors.Diagnostic) -> None:
            if said.message_detail:
                details.append(said.message_detail)

        self._connection.add_notice_handler(listen)
        try:
            self._connection.execute(sql.SQL("VACUUM (FULL, VERBOSE) {}").format(sql.Identifier(self._address.schema, table)))
        finally:
            self._connection.remove_notice_handler(listen)
        # In whatever language: the number of dead row versions that cannot be removed yet comes first.
        found = re.search(r"\d+", details[0]) if details else None
        if found is None:
            raise PermissionError(f"{self.name} can be compacted only by the owner of its tables; connect as that user.")
        return int(found[0])


def _begun(schema: str, timeout: float, writes: bool) -> sql.Composed:
    """Return the statements that begin a transaction, as one message to the server.

    One that writes locks before it looks, so that it sees what the writer before has written.
    """
    parts: list[sql.Composable] = [
        sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ {}").format(sql.SQL("READ WRITE" if writes else "READ ONLY")),
        sql.SQL("SET LOCAL search_path TO {}").format(sql.Identifier(schema)),
        sql.SQL("SET LOCAL lock_timeout = {}").format(max(1, round(1000 * timeout))),
    ]
    if writes:
        parts += [sql.SQL("LOCK TABLE gallery IN SHARE ROW EXCLUSIVE MODE"), WAIT_FOR_DISK]
    return sql.SQL("; ").join(parts)
