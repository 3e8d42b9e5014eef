"""Identities of a gallery: their numbers, names and metadata. Values are always bound, never written into statements."""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.gallery._audit import Subject, new_keys
from simtree.gallery._errors import NotEnrolledError
from simtree.gallery._inputs import Value
from simtree.gallery._store import Connection, increase

# Number of values that are bound at a time; older versions of SQLite allow 999.
MAX_BOUND = 500
# Longest value of metadata that is stored as it is; an index has no place for long ones.
MAX_KEY = 200

T = TypeVar("T")


def find(connection: Connection, ids: Iterable[str]) -> dict[str, Subject]:
    """Return those of the ids that are enrolled."""
    found: dict[str, Subject] = {}
    if connection.execute("SELECT 1 FROM identity LIMIT 1").fetchone() is None:
        return found
    for part in _parts(list(dict.fromkeys(ids))):
        marks = ", ".join("?" * len(part))
        for row in connection.execute(f"SELECT number, id, audit_key FROM identity WHERE id IN ({marks})", part):
            found[row[1]] = Subject(*row)
    return found


def require(connection: Connection, ids: Iterable[str]) -> dict[str, Subject]:
    """Return all of the ids; raise if one is not enrolled."""
    wanted = list(dict.fromkeys(ids))
    found = find(connection, wanted)
    missing = [name for name in wanted if name not in found]
    if missing:
        known = [name for (name,) in connection.execute("SELECT id FROM identity LIMIT 10000")]
        close = difflib.get_close_matches(missing[0], known, n=1, cutoff=0.6)
        others = f" (nor are {len(missing) - 1:,} others)" if len(missing) > 1 else ""
        meant = f"did you mean {close[0]!r}?" if close else "check its spelling."
        raise NotEnrolledError(f"the id {missing[0]!r} is not enrolled{others}; {meant}")
    return found


def add(connection: Connection, ids: Sequence[str]) -> list[tuple[int, str, bytes]]:
    """Add new identities, with numbers that no identity has ever had; return them, as the tuples that subjects are."""
    first = increase(connection, "n_identities_added", len(ids)) + 1
    # Plain tuples: a million named ones take a second.
    subjects = list(zip(itertools.count(first), ids, new_keys(len(ids)), strict=False))
    connection.executemany("INSERT INTO identity (number, id, audit_key) VALUES (?, ?, ?)", subjects)
    return subjects


def delete(connection: Connection, subjects: Iterable[Subject]) -> None:
    """Delete identities with their metadata and the keys of their hashes."""
    numbers = [(subject.number,) for subject in subjects]
    connection.executemany("DELETE FROM metadata WHERE number = ?", numbers)
    connection.executemany("DELETE FROM identity WHERE number = ?", numbers)


def names_since(connection: Connection, number: int) -> NDArray[np.object_]:
    """Return the ids of the identities that were added after one, in the order of their numbers."""
    # Without the numbers, which samples have too: rows of two values take twice as long.
    rows = connection.execute("SELECT id FROM identity WHERE number > ? ORDER BY number", (number,))
    return np.fromiter(itertools.chain.from_iterable(rows), dtype=object)


def count_identities(connection: Connection) -> int:
    """Return the number of identities."""
    return int(connection.execute("SELECT count(*) FROM identity").fetchone()[0])


def all_ids(connection: Connection) -> list[str]:
    """Return the ids in the order in which they were first enrolled."""
    return [name for (name,) in connection.execute("SELECT id FROM identity ORDER BY number")]


def search(connection: Connection, prefix: str, after: str, limit: int, collation: str) -> list[str]:
    """Return the first ids in the order of characters that begin with a prefix and come after another id.

    ``collation`` is what makes the store compare characters by their codes.
    """
    statement, bound = f"SELECT id FROM identity WHERE id{collation} >= ? AND id{collation} > ?", [prefix, after]
    end = _successor(prefix)
    if end:
        statement, bound = f"{statement} AND id{collation} < ?", [*bound, end]
    return [name for (name,) in connection.execute(f"{statement} ORDER BY id{collation} LIMIT ?", (*bound, limit))]


def _successor(prefix: str) -> str:
    """Return the first string after all that begin with a prefix; the empty one if there is none.

    Examples
    --------
    >>> _successor("p1"), _successor("\U0010ffff")
    ('p2', '')
    """
    start = prefix.rstrip("\U0010ffff")
    if not start:
        return ""
    code = ord(start[-1]) + 1
    return start[:-1] + chr(0xE000 if 0xD800 <= code < 0xE000 else code)  # between them are no characters


def metadata_of(connection: Connection, number: int) -> dict[str, Value]:
    """Return the metadata of an identity by name; a long value is the hash that stands for it."""
    rows = connection.execute("SELECT name, value FROM metadata WHERE number = ?", (number,))
    return {name: value if value.startswith("sha256:") else json.loads(value) for name, value in sorted(rows)}


def put_metadata(connection: Connection, values: dict[int, dict[str, Value]]) -> None:
    """Write values of identities by name; those of other names stay."""
    rows = [(name, number, metadata_key(value)) for number, named in values.items() for name, value in named.items()]
    connection.executemany(
        "INSERT INTO metadata (name, number, value) VALUES (?, ?, ?) "
        "ON CONFLICT (name, number) DO UPDATE SET value = excluded.value",
        rows,
    )


def metadata_key(value: Value) -> str:
    """Return a text that stands for a value of metadata: two are equal if the values are, and 2 is 2.0 but not "2".

    Examples
    --------
    >>> metadata_key(2.0), metadata_key("2"), metadata_key("long" * 1000)[:20]
    ('2', '"2"', 'sha256:53df9d6133428')
    """
    text = json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
    return text if len(text) <= MAX_KEY else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def metadata_names(connection: Connection) -> list[str]:
    """Return the names that occur in the metadata."""
    return sorted(name for (name,) in connection.execute("SELECT DISTINCT name FROM metadata"))


def select(connection: Connection, where: dict[str, list[Value]]) -> NDArray[np.int64]:
    """Return the numbers of the identities whose metadata have one of the allowed values for each name."""
    chosen: set[int] | None = None
    for name, allowed in where.items():
        known = metadata_names(connection)
        if name not in known:
            remedy = f"its names are {', '.join(map(repr, known))}" if known else "it has none"
            raise ValueError(f"where names {name!r}, which the metadata of the gallery do not have; {remedy}.")
        found: set[int] = set()
        for part in _parts([metadata_key(value) for value in allowed]):
            marks = ", ".join("?" * len(part))
            rows = connection.execute(f"SELECT number FROM metadata WHERE name = ? AND value IN ({marks})", (name, *part))
            found |= {number for (number,) in rows}
        chosen = found if chosen is None else chosen & found
    return np.array(sorted(chosen or ()), dtype=np.int64)


def check_strangers(connection: Connection, ids: Iterable[str]) -> None:
    """Raise if one of these people is enrolled."""
    enrolled = sorted(find(connection, ids))
    if enrolled:
        raise ValueError(
            f"y has {count(len(enrolled), 'identity', 'identities')} that the gallery holds, such as {enrolled[0]!r}; "
            "calibrate with identities that are not enrolled."
        )


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), MAX_BOUND):
        yield values[start : start + MAX_BOUND]
