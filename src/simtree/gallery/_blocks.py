"""Samples in blocks: many rows in one piece, because reading a row of a database each takes far longer.

A block is never changed. What is enrolled becomes a new block; rows are removed by writing their block anew without them; and
many small blocks are merged into a larger one. So whoever has read a block need not read it again as long as it exists.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from simtree.gallery._errors import DamagedContentError
from simtree.gallery._store import Connection, increase

# Size of a block of prepared samples. Removing a person writes the blocks with their samples anew.
BLOCK_BYTES = 1 << 22
# So many blocks of about equal size are merged: each row is moved a logarithmic number of times.
FAN_OUT = 32

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Form:
    """What a row is: the types and widths of its prepared and original sample.

    Parameters
    ----------
    dtype : str
        Type of original samples, float32 or float64.
    n_features : int
        Their width.
    prepared_dtype : str
        Type of prepared samples.
    n_prepared : int
        Their width.
    is_plain : bool
        Whether the prepared sample is the original one.
    keeps_vectors : bool
        Whether original samples are kept.
    """

    dtype: str
    n_features: int
    prepared_dtype: str
    n_prepared: int
    is_plain: bool
    keeps_vectors: bool

    @property
    def has_vectors(self) -> bool:
        """Whether the original samples can be read, from their own table or as prepared ones."""
        return self.is_plain or self.keeps_vectors

    @property
    def stores_vectors(self) -> bool:
        """Whether original samples have a table of their own."""
        return self.keeps_vectors and not self.is_plain

    def block_bytes(self, n_rows: int) -> list[int]:
        """Return the lengths of the four parts of a block."""
        return [8 * n_rows, 8 * n_rows, 8 * n_rows, n_rows * self.n_prepared * np.dtype(self.prepared_dtype).itemsize]

    @property
    def block_rows(self) -> int:
        """Number of rows of a full block."""
        return max(1, BLOCK_BYTES // (self.n_prepared * np.dtype(self.prepared_dtype).itemsize))


@dataclass(frozen=True)
class Rows:
    """Samples, and whose they are.

    Parameters
    ----------
    owners : ndarray of shape (n_rows,)
        Number of the identity.
    samples : ndarray of shape (n_rows,)
        Number of the sample, which increases with each enrolment.
    times : ndarray of shape (n_rows,)
        When the sample was taken, in seconds since 1970.
    prepared : ndarray of shape (n_rows, n_prepared)
        Prepared samples.
    vectors : ndarray of shape (n_rows, n_features) or None
        Original samples, where they are stored beside the prepared ones.
    """

    owners: Numbers
    samples: Numbers
    times: NDArray[np.float64]
    prepared: NDArray[Any]
    vectors: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.owners)

    def take(self, rows: Any) -> Self:
        """Return some of the rows, by numbers, a mask or a slice."""
        vectors = None if self.vectors is None else self.vectors[rows]
        return replace(
            self,
            owners=self.owners[rows],
            samples=self.samples[rows],
            times=self.times[rows],
            prepared=self.prepared[rows],
            vectors=vectors,
        )

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Return the rows of all parts, one after the other."""
        vectors = [part.vectors for part in parts if part.vectors is not None]
        return cls(
            np.concatenate([part.owners for part in parts]),
            np.concatenate([part.samples for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.prepared for part in parts]),
            np.concatenate(vectors) if vectors else None,
        )


def block_numbers(connection: Connection) -> list[int]:
    """Return the numbers of all blocks."""
    return [number for (number,) in connection.execute("SELECT number FROM block ORDER BY number")]


def count_rows(connection: Connection) -> int:
    """Return the number of samples in all blocks."""
    return int(connection.execute("SELECT coalesce(sum(n_rows), 0) FROM block").fetchone()[0])


def add_rows(connection: Connection, form: Form, rows: Rows) -> None:
    """Add rows as new blocks."""
    for start in range(0, len(rows), form.block_rows):
        block = rows.take(slice(start, start + form.block_rows))
        parts = [_bytes(array) for array in (block.owners, block.samples, block.times, block.prepared)]
        number = increase(connection, "n_blocks_added", 1) + 1  # numbers are never given twice
        connection.execute(
            "INSERT INTO block (number, n_rows, checksum, owners, samples, times, prepared) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, len(block), _checksum(parts), *parts),
        )
        if block.vectors is not None:
            vectors = _bytes(block.vectors)
            connection.execute("INSERT INTO vectors VALUES (?, ?, ?)", (number, _checksum([vectors]), vectors))


def read_rows(connection: Connection, form: Form, number: int, *, with_vectors: bool = False) -> Rows:
    """Return the rows of a block."""
    row = connection.execute(
        "SELECT n_rows, checksum, owners, samples, times, prepared FROM block WHERE number = ?", (number,)
    ).fetchone()
    n_rows, checksum, *parts = row
    if _checksum(parts) != checksum:
        raise DamagedContentError(f"the checksum of block {number} does not match")
    vectors = None
    if with_vectors and form.stores_vectors:
        checksum, content = connection.execute("SELECT checksum, vectors FROM vectors WHERE number = ?", (number,)).fetchone()
        if _checksum([content]) != checksum:
            raise DamagedContentError(f"the checksum of the vectors of block {number} does not match")
        vectors = _array(content, form.dtype, (n_rows, form.n_features))
    owners, samples, times, prepared = parts
    if [len(part) for part in parts] != form.block_bytes(n_rows):
        raise DamagedContentError(f"block {number} does not have the length of its {n_rows:,} rows")
    return Rows(
        _array(owners, "int64", (n_rows,)),
        _array(samples, "int64", (n_rows,)),
        _array(times, "float64", (n_rows,)),
        _array(prepared, form.prepared_dtype, (n_rows, form.n_prepared)),
        vectors,
    )


def read_owners(connection: Connection, numbers: Iterable[int]) -> Iterator[tuple[int, Numbers, Numbers, NDArray[np.float64]]]:
    """Yield the number of each of some blocks with the owners, numbers and times of its rows."""
    for number in numbers:
        statement = "SELECT owners, samples, times FROM block WHERE number = ?"
        owners, samples, times = connection.execute(statement, (number,)).fetchone()
        yield number, _array(owners, "int64", (-1,)), _array(samples, "int64", (-1,)), _array(times, "float64", (-1,))


def delete_block(connection: Connection, number: int) -> None:
    """Delete a block."""
    connection.execute("DELETE FROM block WHERE number = ?", (number,))
    connection.execute("DELETE FROM vectors WHERE number = ?", (number,))


def delete_rows(connection: Connection, form: Form, doomed: dict[int, NDArray[np.bool_]]) -> int:
    """Delete rows, given as a mask per block; return how many there were."""
    n_deleted = 0
    for number, mask in doomed.items():
        rows = read_rows(connection, form, number, with_vectors=True)
        delete_block(connection, number)
        add_rows(connection, form, rows.take(~mask))
        n_deleted += int(np.count_nonzero(mask))
    return n_deleted


def merge_blocks(connection: Connection, form: Form, *, fan_out: int = FAN_OUT) -> None:
    """Merge blocks of about equal size wherever there are many; those that are at least half full stay."""
    while True:
        levels: dict[int, list[int]] = {}
        small = connection.execute(
            "SELECT number, n_rows FROM block WHERE n_rows <= ? ORDER BY number", (form.block_rows // 2,)
        )
        for number, n_rows in small.fetchall():
            levels.setdefault(0 if fan_out < 3 else int(np.log(n_rows) / np.log(fan_out)), []).append(number)
        many = [numbers for numbers in levels.values() if len(numbers) >= fan_out]
        if not many:
            return
        for numbers in many:
            merged = Rows.joined([read_rows(connection, form, number, with_vectors=True) for number in numbers])
            for number in numbers:
                delete_block(connection, number)
            add_rows(connection, form, merged)


def _bytes(array: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()


def _array(content: bytes, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    return np.frombuffer(content, dtype=np.dtype(dtype).newbyteorder("<")).reshape(shape)


def _checksum(parts: list[bytes]) -> int:
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum
