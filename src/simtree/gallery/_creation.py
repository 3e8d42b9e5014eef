"""New galleries: their settings, and how one comes into being together with its first samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numpy.typing import ArrayLike

from simtree._utils.validation import check_choice, check_integer
from simtree.evaluation._model_fusion import resolve_fusion
from simtree.evaluation._templates import FUSIONS, N_BEST
from simtree.gallery import _enrolment as enrolment
from simtree.gallery._address import Address
from simtree.gallery._answers import Enrolment
from simtree.gallery._audit import add_entry
from simtree.gallery._state import Settings, State, read_state, write_model
from simtree.gallery._store import Connection
from simtree.gallery._stores import new_gallery
from simtree.models import Similarity
from simtree.models._base import check_similarity

DTYPES = ("float64", "float32")


def checked_settings(
    model: Similarity,
    *,
    fusion: str = "max",
    n_best: int = N_BEST,
    max_samples: int | None = None,
    keep_vectors: bool = True,
    dtype: str = "float64",
    audit_searches: bool = False,
) -> Settings:
    """Return the settings of a new gallery, see `Gallery.create`; raise if they cannot be used with a model."""
    check_similarity(model)
    if max_samples is not None:
        check_integer("max_samples", max_samples, 1)
    limit = None if max_samples is None else int(max_samples)
    kind = check_choice("dtype", dtype, DTYPES)
    resolve_fusion(model, check_choice("fusion", fusion, FUSIONS), n_best)
    n_best = check_integer("n_best", n_best, 1)
    return Settings(fusion, n_best, kind, bool(keep_vectors), limit, bool(audit_searches))


@contextmanager
def new_gallery_of(
    address: Address, model: Similarity, settings: Settings, timeout: float
) -> Iterator[tuple[Connection, State]]:
    """Make a gallery of a model, to which samples may be added inside the context; nothing is left if it raises.

    Nobody sees the gallery before the context ends.
    """
    with new_gallery(address, timeout) as connection:
        settings.write(connection)
        add_entry(connection, "create", write_model(connection, model))
        yield connection, read_state(connection, None)


def create_enrolled(
    address: Address,
    model: Similarity,
    settings: Settings,
    ids: Any,
    X: ArrayLike,
    *,
    metadata: Any = None,
    time: Any = None,
    on_duplicate: str = "ignore",
    timeout: float,
) -> Enrolment:
    """Make a gallery together with its first samples: others see it when both are there, and never without them.

    Parameters
    ----------
    address : Path or PostgresAddress
        Where to make it.
    model : Similarity
        Its model.
    settings : Settings
        Its settings.
    ids, X, metadata, time, on_duplicate
        As in `Gallery.enroll`.
    timeout : float
        How long to wait for other processes, in seconds.

    Returns
    -------
    Enrolment
        What was enrolled.
    """
    given = enrolment.Given.checked(ids, X, metadata, time, on_duplicate)
    with new_gallery_of(address, model, settings, timeout) as (connection, state):
        done = enrolment.enroll_given(connection, state, given, given.prepared(state))
    enrolment.warn_of(done)
    return done
