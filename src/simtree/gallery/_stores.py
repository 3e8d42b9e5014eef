"""Which store a gallery has: a file is SQLite's, an address that begins with ``postgresql://`` is PostgreSQL's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from simtree.gallery._address import Address
from simtree.gallery._schema import copy_tables
from simtree.gallery._sqlite import SqliteStore
from simtree.gallery._sqlite_file import new_file, new_gallery_file
from simtree.gallery._sqlite_upgrade import upgrade_file
from simtree.gallery._store import Connection, Store


def open_store(address: Address, *, readonly: bool, timeout: float) -> Store:
    """Open an existing gallery."""
    if isinstance(address, Path):
        return SqliteStore(address, readonly=readonly, timeout=timeout)
    require_psycopg()
    from simtree.gallery._postgres import PostgresStore

    return PostgresStore(address, readonly=readonly, timeout=timeout)


def new_gallery(address: Address, timeout: float) -> AbstractContextManager[Connection]:
    """Make a gallery with empty tables, which are filled inside the context; nothing is left if it raises."""
    if isinstance(address, Path):
        return new_gallery_file(address)
    require_psycopg()
    from simtree.gallery._postgres_schema import new_schema

    return new_schema(address, timeout)


def exists(address: Address, timeout: float) -> bool:
    """Return whether there is something at an address."""
    if isinstance(address, Path):
        return address.exists()
    require_psycopg()
    from simtree.gallery import _postgres_schema

    return _postgres_schema.exists(address, timeout)


def backup(store: Store, target: Address) -> None:
    """Copy a committed state of a gallery to a new one, in the same kind of store or in another."""
    if isinstance(store, SqliteStore) and isinstance(target, Path):
        with new_file(target) as file:
            store.copy_to(file)
        return
    with new_gallery(target, store.timeout) as copy, store.reading() as connection:
        store.version()  # raises if the tables have changed
        copy_tables(connection, copy)


def upgrade(address: Address, backup: Path | None, timeout: float) -> Path | None:
    """Upgrade a gallery of an older schema version, after a backup; return the backup, or None if nothing was to be done."""
    if isinstance(address, Path):
        return upgrade_file(address, backup, timeout)
    open_store(address, readonly=True, timeout=timeout).close()  # there is no older version, and a newer one is refused
    return None


def require_psycopg() -> None:
    """Raise if the driver of PostgreSQL is not installed, which is optional."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise ImportError('a gallery in PostgreSQL needs psycopg; install it with: pip install "simtree[postgres]"') from None
