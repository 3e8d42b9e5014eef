"""Questions about single identities of a gallery: what is enrolled of them, and why they match a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simtree._utils.validation import check_integer
from simtree.gallery import _identities as identities
from simtree.gallery._answers import Identity
from simtree.gallery._blocks import read_owners, read_rows
from simtree.gallery._inputs import check_ids
from simtree.gallery._model import check_rows_of
from simtree.gallery._same_file import FileMark
from simtree.gallery._session import Session
from simtree.pairs._coordinates import SamplePairs
from simtree.trees import Explanation

# How a store is told to compare characters by their codes, whatever language it is set up for.
COLLATIONS = {"sqlite": "", "postgresql": ' COLLATE "C"'}


class LookupMixin:
    """Methods of a gallery about single identities, and about its file."""

    path: Path | str
    _session: Session
    _mark: FileMark | None

    def check(self) -> None:
        """Raise if the gallery cannot be read, or its file was replaced, removed or damaged since it was opened.

        It takes microseconds as long as the file is the same. Programs that keep a gallery open for long call it before they
        answer: a file that was moved away can still be searched, but what is enrolled in it is lost.
        """
        with self._session.store.reading():  # raises if the gallery is closed
            if self._mark is not None:
                self._mark.check()

    @property
    def max_fpir(self) -> float | None:
        """The rate that `calibrate` was asked for; None unless the gallery is calibrated."""
        strangers = self._session.state().strangers
        return None if strangers is None else strangers.max_fpir

    def search_ids(self, prefix: str = "", *, after: str = "", limit: int = 100) -> list[str]:
        """Return some ids in the order of their characters.

        Parameters
        ----------
        prefix : str, default=""
            What the ids begin with.
        after : str, default=""
            Return only ids that come after this one, to go on where another call has stopped.
        limit : int, default=100
            Maximum number of ids.

        Returns
        -------
        list of str
            The ids.
        """
        check_integer("limit", limit, 1)
        with self._session.reading() as (connection, _):
            return identities.search(connection, prefix, after, int(limit), COLLATIONS[self._session.store.kind])

    def hashes(self, ids: Any) -> list[str]:
        """Return the hashes that stand for identities in the audit.

        Parameters
        ----------
        ids : str, int or array-like
            Identities; those that are not enrolled are left out.

        Returns
        -------
        list of str
            The hashes, sorted.
        """
        names = check_ids(ids)
        with self._session.reading() as (connection, _):
            return sorted(subject.hash.hex() for subject in identities.find(connection, names).values())

    def subject(self, id: str | int) -> Identity:
        """Return what is enrolled of an identity.

        Parameters
        ----------
        id : str or int
            The identity.

        Returns
        -------
        Identity
            Its samples by their times, and its metadata.
        """
        names = check_ids([id])
        with self._session.searching() as (connection, state):
            (subject,) = identities.require(connection, names).values()
            snapshot = state.snapshot
            own = np.flatnonzero(snapshot.owners == subject.number)
            times = [
                taken[owners == subject.number]
                for _, owners, _, taken in read_owners(connection, np.unique(snapshot.blocks[own]).tolist())
            ]
            metadata = identities.metadata_of(connection, subject.number)
        seconds = np.sort(np.concatenate([np.empty(0), *times]))
        return Identity(
            subject.id, len(own), (1000.0 * seconds).astype(np.int64).astype("datetime64[ms]"), metadata, subject.hash.hex()
        )

    def explain(self, id: str | int, x: ArrayLike) -> Explanation:
        """Explain the score of a sample with the enrolled sample of an identity that matches it best.

        Parameters
        ----------
        id : str or int
            The identity.
        x : array-like of shape (n_features,)
            The sample.

        Returns
        -------
        Explanation
            Contribution of each feature; ``x2`` is the enrolled sample.
        """
        names = check_ids([id])
        with self._session.searching() as (connection, state):
            (subject,) = identities.require(connection, names).values()
            model, snapshot = state.model, state.snapshot
            if not hasattr(model, "explain_pair"):
                raise ValueError(
                    f"a {type(model).__name__} cannot explain its scores, which are not sums over features; fit a forest or a "
                    "tree."
                )
            if not state.form.has_vectors:
                raise ValueError("the gallery was made with keep_vectors=False and has no samples to explain a score with.")
            cells = np.asarray(x, dtype=None if getattr(model, "columns_", None) is None else object)  # numbers and words
            sample = check_rows_of(model, state.form, cells[None])
            own = np.flatnonzero(snapshot.owners == subject.number)
            pairs = SamplePairs(
                model._prepare(sample), snapshot.buffer, np.zeros(len(own), dtype=np.int32), own.astype(np.int32)
            )
            best = own[int(np.argmax(model._score_pairs(pairs)))]
            rows = read_rows(connection, state.form, int(snapshot.blocks[best]), with_vectors=True)
        (place,) = np.flatnonzero(rows.samples == snapshot.samples[best])
        enrolled = (rows.prepared if rows.vectors is None else rows.vectors)[place]
        explanation: Explanation = model._explain_rows(np.vstack([sample[0], enrolled]))
        self._session.audit_search(state, "explain", names, 1)
        return explanation
