"""An open gallery of one process: its store, what is known of it, and transactions that begin with its present state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from simtree.gallery import _identities as identities
from simtree.gallery._audit import add_entry
from simtree.gallery._errors import ChangedWhileReadError
from simtree.gallery._state import State, read_state
from simtree.gallery._store import Connection, Store

T = TypeVar("T")


class Session:
    """An open gallery.

    Each call looks at the version of the store, which tells whether another process has written, and reads what is new.

    Parameters
    ----------
    store : Store
        Where the gallery is.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._state: State | None = None
        self._version: int | None = None

    def close(self) -> None:
        """Close the store, and forget what it held."""
        self.store.close()
        self._state = None

    def state(self) -> State:
        """Return the present state, whose rows may be older."""
        with self._one_state() as connection:
            return self._present(connection)

    @contextmanager
    def reading(self) -> Iterator[tuple[Connection, State]]:
        """Show one committed state, whose rows may be older."""
        with self._one_state() as connection:
            yield connection, self._present(connection)

    @contextmanager
    def searching(self) -> Iterator[tuple[Connection, State]]:
        """Show one committed state with its rows, which remain after the transaction."""
        with self._one_state() as connection:
            state = self._present(connection).with_rows(connection)
            if state.settings.audits_searches:
                self.store.check_writable("it audits searches")
            self._state = state
            yield connection, state

    @contextmanager
    def _one_state(self) -> Iterator[Connection]:
        """Read one committed state; forget what was read if it turns out to have been two."""
        try:
            with self.store.reading() as connection:
                yield connection
        except ChangedWhileReadError:
            self._state = None
            raise

    @contextmanager
    def changing(self, prepare: Callable[[State], T]) -> Iterator[tuple[Connection, State, T]]:
        """Change the gallery inside the context, or leave it as it is if an error is raised.

        Parameters
        ----------
        prepare : callable
            Work that needs the model, done before the transaction so that other processes can write meanwhile. It is done
            again if the gallery has another model then.

        Yields
        ------
        connection : Connection
            The connection.
        state : State
            The state before the change.
        prepared : object
            What ``prepare`` returned.
        """
        self.store.check_writable()
        expected = self.state()
        while True:
            prepared = prepare(expected)
            with self.store.writing() as connection:
                state = self._present(connection)
                is_same = state.model_version == expected.model_version
                if is_same:
                    yield connection, state, prepared
                    self.forget_version()
            if is_same:
                return
            expected = state

    def forget_version(self) -> None:
        """Look at the store again in the next call: our own changes need not change its version.

        To be called before the commit: another thread may search as soon as the store is free, and must not take new rows for
        those of the old model.
        """
        self._version = None

    def audit_search(self, state: State, action: str, ids: Any, n_samples: int) -> None:
        """Add a search to the audit, if the gallery audits searches."""
        if state.settings.audits_searches:
            with self.store.writing() as connection:
                found = identities.find(connection, set(ids))
                add_entry(connection, action, state.fingerprint, found.values(), n_samples)

    def _present(self, connection: Connection) -> State:
        """Return the state that a transaction sees; to be called before it changes anything."""
        version = self.store.version()
        if self._state is None or version != self._version:
            self._state, self._version = read_state(connection, self._state), version
        return self._state


def prepare_nothing(state: State) -> None:
    """Prepare nothing before a change."""
