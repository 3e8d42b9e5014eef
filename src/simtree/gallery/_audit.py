"""The audit: what was done, when and by which model, with a keyed hash in place of each identity.

Each identity has a random key. The key is deleted with the identity: from then on nobody can tell which entries were about it,
not even by hashing all names there are.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from simtree.gallery._store import Connection

KEY_BYTES = 16
HASH_BYTES = 16


def keyed_hash(name: str, key: bytes) -> bytes:
    """Return the hash that stands for an id."""
    return hashlib.blake2b(name.encode(), key=key, digest_size=HASH_BYTES).digest()


class Subject(NamedTuple):
    """An identity, and the key of its hashes."""

    number: int
    id: str
    key: bytes

    @property
    def hash(self) -> bytes:
        """The keyed hash that stands for the identity."""
        return keyed_hash(self.id, self.key)


class Entry(NamedTuple):
    """An entry of the audit: when it was made, and the keyed hashes of the identities that it is about."""

    time: float
    action: str
    model: str
    n_samples: int
    subjects: list[str]


def new_keys(n: int) -> list[bytes]:
    """Return random keys."""
    drawn = os.urandom(KEY_BYTES * n)
    return [drawn[start : start + KEY_BYTES] for start in range(0, len(drawn), KEY_BYTES)]


def add_entry(
    connection: Connection, action: str, model: str, subjects: Iterable[tuple[int, str, bytes]] = (), n_samples: int = 0
) -> None:
    """Add an entry to the audit."""
    hashes = np.frombuffer(b"".join([keyed_hash(name, key) for _, name, key in subjects]), dtype=">u8").reshape(-1, 2)
    # Sorted: the order in which people were enrolled or found says nothing here.
    hashes = hashes[np.lexsort((hashes[:, 1], hashes[:, 0]))]
    connection.execute(
        "INSERT INTO audit (time, action, model, n_samples, subjects) VALUES (?, ?, ?, ?, ?)",
        (time.time(), action, model, n_samples, hashes.tobytes()),
    )


def read_entries(connection: Connection) -> Iterator[Entry]:
    """Yield the entries, oldest first."""
    rows = connection.execute("SELECT time, action, model, n_samples, subjects FROM audit ORDER BY number")
    for when, action, model, n_samples, subjects in rows:
        hashes = [subjects[start : start + HASH_BYTES].hex() for start in range(0, len(subjects), HASH_BYTES)]
        yield Entry(when, action, model, n_samples, hashes)
