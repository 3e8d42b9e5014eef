"""Looking after a gallery: changes of the model, erasure, backups, the audit and a description."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from simtree._utils.validation import check_real
from simtree.gallery import _enrolment as enrolment
from simtree.gallery import _identities as identities
from simtree.gallery._address import parse_address
from simtree.gallery._answers import AuditTrail
from simtree.gallery._audit import add_entry, read_entries
from simtree.gallery._blocks import merge_blocks
from simtree.gallery._inputs import check_ids
from simtree.gallery._schema import VERSION
from simtree.gallery._session import Session, prepare_nothing
from simtree.gallery._store import get_setting, increase, not_yet_erased
from simtree.gallery._stores import backup
from simtree.models import Similarity
from simtree.models._base import check_similarity

TIMEOUT = 30.0


class MaintenanceMixin:
    """Methods of a gallery that look after its store."""

    path: Path | str
    _session: Session

    def re_enroll(self, model: Similarity) -> None:
        """Change to another model, which prepares all samples again: in one step that others see as a whole.

        The gallery must have its samples, see ``keep_vectors``. The calibration is void afterwards. A model that gives the same
        scores only brings its thresholds and probabilities.

        Parameters
        ----------
        model : Similarity
            Fitted model for the same features.
        """
        check_similarity(model)
        with self._session.changing(prepare_nothing) as (connection, state, _):
            enrolment.check_successor(state, model)
            enrolment.re_enroll(connection, state, model)

    def compact(self, *, timeout: float = TIMEOUT) -> None:
        """Write everything anew, so that nothing of what was removed is left.

        A file is rewritten and its log emptied, which takes memory of about the size of the file. In PostgreSQL all tables are
        rewritten (``VACUUM FULL``), which keeps readers waiting; the write-ahead log and the backups of the server are its
        operator's to delete.

        Parameters
        ----------
        timeout : float, default=30.0
            How long to wait for other processes that read or write, in seconds. An error is raised then: "not yet erased".
        """
        check_real("timeout", timeout, 0.0, np.inf, open_high=True)
        store, deadline = self._session.store, time.monotonic() + timeout

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        with store.patience(timeout):
            try:
                with self._session.changing(prepare_nothing) as (connection, state, _):
                    merge_blocks(connection, state.form, fan_out=2)
                    n_deleted = int(get_setting(connection, enrolment.NOT_ERASED) or 0)
                    add_entry(connection, "compact", state.fingerprint, n_samples=n_deleted)
            except TimeoutError as error:
                raise not_yet_erased(store.name) from error
            store.rewrite(left())
            # Everything is erased. If somebody else writes right now, only the counter is too high, until the next time.
            with store.patience(left()), contextlib.suppress(TimeoutError), store.writing() as connection:
                increase(connection, enrolment.NOT_ERASED, -n_deleted)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the gallery to another one, while others may go on using it.

        Copying a file by other means loses what is still in its log. Backups keep what is removed later. A gallery in a file
        can be copied to PostgreSQL, and back.

        Parameters
        ----------
        path : str or path-like
            File or address to make, which must not exist.
        """
        backup(self._session.store, parse_address(path))

    def audit(self, id: str | int | None = None) -> AuditTrail:
        """Return what was done with the gallery, when and by which model.

        Identities appear as hashes with a random key each, which is deleted with the identity: entries about people who were
        removed cannot be assigned to them any more.

        Parameters
        ----------
        id : str or int, optional
            Return only entries about this identity, which must be enrolled.

        Returns
        -------
        AuditTrail
            Table of entries, oldest first.
        """
        with self._session.reading() as (connection, _):
            entries = list(read_entries(connection))
            if id is not None:
                (subject,) = identities.require(connection, check_ids([id])).values()
                entries = [entry for entry in entries if subject.hash.hex() in entry.subjects]
        return AuditTrail.of(entries)

    def to_dict(self) -> dict[str, Any]:
        """Return a description of the gallery: its size, parameters, model and calibration.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        with self._session.reading() as (connection, state):
            not_erased = int(get_setting(connection, enrolment.NOT_ERASED) or 0)
            names = identities.metadata_names(connection)
        return {
            "gallery": str(self.path),
            "store": self._session.store.kind,
            "schema_version": VERSION,
            "bytes": self._session.store.n_bytes(),
            "n_samples_not_erased": not_erased,
            "metadata": names,
            **state.to_dict(),
        }
