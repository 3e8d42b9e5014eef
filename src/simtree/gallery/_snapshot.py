"""What a process holds of a gallery in memory: prepared samples in the order of identities, and how they are kept up to date.

Blocks never change, so an update reads only blocks that are new. A snapshot is never changed either: a search that runs while
another thread updates goes on with what it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from simtree.gallery import _identities as identities
from simtree.gallery._blocks import Form, Numbers, block_numbers, read_owners, read_rows
from simtree.gallery._errors import DamagedContentError
from simtree.gallery._store import Connection

# Room for rows that will be enrolled, so that most updates need not copy all rows.
SPARE_SHARE, SPARE_ROWS = 0.1, 256


@dataclass(frozen=True)
class Templates:
    """Prepared samples to search in, with those of an identity beside each other.

    Parameters
    ----------
    prepared : ndarray of shape (n_rows, n_prepared)
        Prepared samples.
    times : ndarray of shape (n_rows,)
        When each sample was taken, in seconds since 1970.
    starts : ndarray of shape (n_identities,)
        First row of each identity.
    numbers : ndarray of shape (n_identities,)
        Numbers of the identities, increasing.
    """

    prepared: NDArray[Any]
    times: NDArray[np.float64]
    starts: Numbers
    numbers: Numbers

    @classmethod
    def of(cls, prepared: NDArray[Any], times: NDArray[np.float64], owners: Numbers) -> Self:
        """Return rows that are in the order of their owners."""
        starts = np.flatnonzero(np.diff(owners, prepend=owners[:1] - 1))
        return cls(prepared, times, starts, owners[starts])

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> Numbers:
        """Number of samples of each identity."""
        return np.diff(self.starts, append=len(self.prepared))

    def only(self, numbers: Numbers) -> Templates:
        """Return the identities with these numbers."""
        rows = np.repeat(np.isin(self.numbers, numbers), self.sizes)
        owners = np.repeat(self.numbers, self.sizes)
        return Templates.of(np.ascontiguousarray(self.prepared[rows]), self.times[rows], owners[rows])


@dataclass(frozen=True)
class Snapshot:
    """All rows of a gallery at one time, in the order of identities and, within them, of enrolment.

    Parameters
    ----------
    buffer : ndarray of shape (capacity, n_prepared)
        Prepared samples, followed by room for more.
    owners, samples, blocks : ndarrays of shape (n_rows,)
        Number of the identity, of the sample and of the block of each row.
    names : ndarray of shape (n_identities,)
        Ids, in the order of their numbers.
    last_number : int
        The highest number of an identity that was ever seen.
    known : frozenset of int
        Numbers of the blocks that the rows are from.
    templates : Templates
        The rows by identity.
    """

    buffer: NDArray[Any]
    owners: Numbers
    samples: Numbers
    blocks: Numbers
    names: NDArray[np.object_]
    last_number: int
    known: frozenset[int]
    templates: Templates

    @classmethod
    def empty(cls, form: Form) -> Self:
        """Return a snapshot without rows."""
        nothing = np.empty(0, dtype=np.int64)
        buffer = np.empty((0, form.n_prepared), dtype=form.prepared_dtype)
        templates = Templates.of(buffer, np.empty(0), nothing)
        return cls(buffer, nothing, nothing, nothing, np.empty(0, dtype=object), 0, frozenset(), templates)

    def updated(self, connection: Connection, form: Form) -> Snapshot:
        """Return the present state of the gallery; only blocks that are new are read."""
        present = block_numbers(connection)
        if self.known == set(present):
            return self
        new = [number for number in present if number not in self.known]
        kept = np.isin(self.blocks, present)
        columns: list[tuple[NDArray[Any], ...]] = [
            (self.owners[kept], self.samples[kept], self.blocks[kept], self.templates.times[kept])
        ]
        for number, of_rows, numbers, taken in read_owners(connection, new):
            columns.append((of_rows, numbers, np.full(len(of_rows), number), taken))
        joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
        n_kept, n_rows = len(columns[0][0]), len(joined[0])
        is_later = _are_later(joined[1], n_kept)
        places = _places_of_new(joined[0], n_kept) if is_later else _places_of_all(*joined[:2])
        buffer = self._room(kept, places[:n_kept], n_rows)
        start = n_kept
        for number in new:
            rows = read_rows(connection, form, number)
            to = places[start : start + len(rows)]
            if (np.diff(to) == 1).all():  # rows that stay beside each other, as those of one enrolment, in one piece
                buffer[to[0] : to[0] + len(to)] = rows.prepared
            else:
                buffer[to] = rows.prepared
            start += len(rows)
        for column in joined:
            column[places] = column.copy()
        owners, samples, blocks, times = joined
        templates = Templates.of(buffer[:n_rows], times, owners)
        names, last_number = self._names(connection, templates.numbers)
        return Snapshot(buffer, owners, samples, blocks, names, last_number, frozenset(present), templates)

    def _room(self, kept: NDArray[np.bool_], places: Numbers, n_rows: int) -> NDArray[Any]:
        """Return a buffer for so many rows, with the rows that are kept at their places; the old one, if they stay there."""
        stay = len(kept) == len(places) and bool((places == np.arange(len(places))).all())
        if stay and n_rows <= len(self.buffer):
            return self.buffer  # rows that others look at are not touched: new ones come after them
        buffer = np.empty((n_rows + max(SPARE_ROWS, int(SPARE_SHARE * n_rows)), self.buffer.shape[1]), self.buffer.dtype)
        buffer[places] = self.buffer[: len(kept)][kept]
        return buffer

    def _names(self, connection: Connection, numbers: Numbers) -> tuple[NDArray[np.object_], int]:
        """Return the ids of the identities with these numbers, and the highest number; only those of new ones are read."""
        n_known = int(np.searchsorted(numbers, self.last_number, side="right"))
        new = identities.names_since(connection, self.last_number)
        if len(new) != len(numbers) - n_known:
            raise DamagedContentError("its identities are not those of its samples")
        names = np.append(self.names[np.searchsorted(self.templates.numbers, numbers[:n_known])], new)
        return names, max(self.last_number, int(numbers[-1]) if len(numbers) else 0)


def _places_of_all(owners: Numbers, samples: Numbers) -> Numbers:
    """Return the place of each row in the order of identities and, within them, of enrolment."""
    order = np.lexsort((samples, owners))
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places


def _are_later(samples: Numbers, n_kept: int) -> bool:
    """Return whether all samples but the first ones were enrolled after those, and are in the order of enrolment."""
    last = samples[:n_kept].max(initial=-1)
    return bool((np.diff(samples[n_kept:], prepend=last) > 0).all())


def _places_of_new(owners: Numbers, n_kept: int) -> Numbers:
    """Return the place of each row, if the first ones are in order and the others are later: only these are sorted."""
    new = np.argsort(owners[n_kept:], kind="stable")
    n_before = np.searchsorted(owners[:n_kept], owners[n_kept:][new], side="right")
    places = np.arange(len(owners))
    places[:n_kept] += np.cumsum(np.bincount(n_before, minlength=n_kept + 1)[:n_kept])
    places[n_kept + new] = n_before + np.arange(len(new))
    return places
