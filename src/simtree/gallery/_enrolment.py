"""Changes of a gallery, each inside one transaction: to enrol, to remove, and to prepare all samples by another model."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_choice, count
from simtree.evaluation._model_fusion import resolve_fusion
from simtree.gallery import _identities as identities
from simtree.gallery import _requests as requests
from simtree.gallery._answers import Duplicate, Enrolment
from simtree.gallery._audit import add_entry
from simtree.gallery._blocks import (
    Form,
    Numbers,
    Rows,
    add_rows,
    block_numbers,
    delete_block,
    delete_rows,
    merge_blocks,
    read_owners,
    read_rows,
)
from simtree.gallery._inputs import Value, check_ids, check_lengths, check_metadata, check_times
from simtree.gallery._model import check_rows_of, fingerprint, form_of, n_vector_features
from simtree.gallery._search import best_identities
from simtree.gallery._snapshot import Templates
from simtree.gallery._state import State, write_model
from simtree.gallery._store import Connection, increase
from simtree.models import Similarity

# Counter of samples that were deleted but may still be in the files, until they are rewritten.
NOT_ERASED = "n_samples_not_erased"
ON_DUPLICATE = ("ignore", "warn", "raise")


@dataclass(frozen=True)
class Samples:
    """Checked samples to enrol.

    Parameters
    ----------
    ids : list of str
        Identity of each sample.
    vectors, prepared : ndarrays
        Original and prepared samples.
    times : ndarray of shape (n_samples,)
        When they were taken.
    metadata : dict
        Values of identities by name.
    """

    ids: list[str]
    vectors: NDArray[np.floating]
    prepared: NDArray[np.floating]
    times: NDArray[np.float64]
    metadata: dict[str, dict[str, Value]]


@dataclass(frozen=True)
class Given:
    """What is to be enrolled, checked as far as that is possible without the model.

    Parameters
    ----------
    ids : list of str
        Identity of each sample.
    X : array-like
        The samples.
    times : ndarray of shape (n_samples,)
        When they were taken.
    metadata : dict
        Values of identities by name.
    on_duplicate : {"ignore", "warn", "raise"}
        What to do if a sample matches another identity.
    """

    ids: list[str]
    X: ArrayLike
    times: NDArray[np.float64]
    metadata: dict[str, dict[str, Value]]
    on_duplicate: str

    @classmethod
    def checked(cls, ids: Any, X: ArrayLike, metadata: Any, time: Any, on_duplicate: str) -> Self:
        """Return what is to be enrolled, see `Gallery.enroll`."""
        check_choice("on_duplicate", on_duplicate, ON_DUPLICATE)
        names = check_ids(ids)
        values, times = check_metadata(metadata, names), check_times(time, len(names))
        return cls(names, X, times, values, on_duplicate)

    def prepared(self, state: State) -> Samples:
        """Return the samples as the model of a gallery prepares them."""
        vectors = check_rows_of(state.model, state.form, self.X)
        check_lengths(self.ids, len(vectors))
        return Samples(self.ids, vectors, state.model._prepare(vectors), self.times, self.metadata)


def enroll_given(connection: Connection, state: State, given: Given, samples: Samples) -> Enrolment:
    """Enrol samples, after a search for duplicates if that is wanted; raise if there are some and they are refused."""
    duplicates: tuple[Duplicate, ...] = ()
    if given.on_duplicate != "ignore":
        state = state.with_rows(connection)
        duplicates = find_duplicates(state, samples)
    if duplicates and given.on_duplicate == "raise":
        raise ValueError(f"{_said_of(duplicates)}, and nothing was enrolled; remove the one that is wrong first.")
    return enroll(connection, state, samples, duplicates)


def warn_of(done: Enrolment) -> None:
    """Warn of the duplicates of an enrolment, in the name of the function that called the caller."""
    if done.duplicates:
        warnings.warn(f"{_said_of(done.duplicates)}; check whether they are the same.", UserWarning, stacklevel=3)


def enroll(connection: Connection, state: State, samples: Samples, duplicates: tuple[Duplicate, ...]) -> Enrolment:
    """Enrol samples; the oldest ones of an identity that has more than ``max_samples`` then are dropped."""
    distinct = list(dict.fromkeys(samples.ids))
    known = identities.find(connection, distinct)
    new = [name for name in distinct if name not in known]
    added = identities.add(connection, new)
    numbers = {subject.id: subject.number for subject in known.values()} | {name: number for number, name, _ in added}
    identities.put_metadata(connection, {numbers[name]: values for name, values in samples.metadata.items()})
    owners = np.fromiter(map(numbers.__getitem__, samples.ids), dtype=np.int64, count=len(samples.ids))
    first = increase(connection, "n_samples_added", len(owners))
    if known and state.settings.fusion != "max":
        increase(connection, "n_templates_changed", len(known))
    rows = Rows(
        owners,
        first + np.arange(len(owners)),
        samples.times,
        samples.prepared,
        samples.vectors if state.form.stores_vectors else None,
    )
    n_dropped = 0
    if state.settings.max_samples is not None:
        rows, n_dropped = _without_oldest(connection, state.form, rows, state.settings.max_samples)
        increase(connection, NOT_ERASED, n_dropped)
    add_rows(connection, state.form, rows)
    merge_blocks(connection, state.form)
    add_entry(connection, "enroll", state.fingerprint, itertools.chain(known.values(), added), len(owners))
    return Enrolment(len(owners), len(distinct), len(new), n_dropped, duplicates)


def find_repeated(connection: Connection, request: str, samples: Samples, *, with_times: bool) -> Enrolment | None:
    """Return what an enrolment of the same name did, if there was one; raise if it was another one."""
    return requests.find_request(connection, request, _content(connection, samples, with_times))


def note_request(connection: Connection, request: str, samples: Samples, done: Enrolment, *, with_times: bool) -> None:
    """Note that the samples were enrolled under a name; to be called in the same transaction."""
    requests.add_request(connection, request, _content(connection, samples, with_times), done)


def _content(connection: Connection, samples: Samples, with_times: bool) -> str:
    """Return a hash of samples under the keys of their identities; times are part of it only if they were given."""
    subjects = identities.find(connection, samples.ids).values()
    named = json.dumps([samples.ids, samples.metadata], sort_keys=True).encode()
    times = samples.times.tobytes() if with_times else b""
    return requests.content_digest(subjects, (named, np.ascontiguousarray(samples.vectors).tobytes(), times))


def _without_oldest(connection: Connection, form: Form, new: Rows, max_samples: int) -> tuple[Rows, int]:
    """Drop the oldest samples, in the gallery and among new ones; return the new ones that stay, and how many were dropped."""
    concerned = np.unique(new.owners)
    places: dict[int, NDArray[np.bool_]] = {}
    columns: list[tuple[Numbers, ...]] = [(new.owners, new.samples, np.zeros_like(new.owners), np.arange(len(new)))]
    times = [new.times]
    for number, owners, samples, taken in read_owners(connection, block_numbers(connection)):
        rows = np.flatnonzero(np.isin(owners, concerned))
        if len(rows):
            places[number] = np.zeros(len(owners), dtype=np.bool_)
            columns.append((owners[rows], samples[rows], np.full(len(rows), number), rows))
            times.append(taken[rows])
    all_owners, all_samples, blocks, all_rows = (np.concatenate(column) for column in zip(*columns, strict=True))
    newest_first = np.lexsort((-all_samples, -np.concatenate(times), all_owners))
    sorted_owners = all_owners[newest_first]
    rank = np.arange(len(sorted_owners)) - np.searchsorted(sorted_owners, sorted_owners)
    doomed = newest_first[rank >= max_samples]
    stays = np.ones(len(new), dtype=np.bool_)
    for block, row in zip(blocks[doomed].tolist(), all_rows[doomed].tolist(), strict=True):
        if block:
            places[block][row] = True
        else:
            stays[row] = False
    delete_rows(connection, form, {number: mask for number, mask in places.items() if mask.any()})
    return new.take(stays), len(doomed)


def remove(connection: Connection, state: State, ids: Iterable[str]) -> int:
    """Remove identities with all that belongs to them; return how many samples they had."""
    subjects = identities.require(connection, ids).values()
    numbers = [subject.number for subject in subjects]
    masks = {number: np.isin(owners, numbers) for number, owners, *_ in read_owners(connection, block_numbers(connection))}
    n_samples = delete_rows(connection, state.form, {number: mask for number, mask in masks.items() if mask.any()})
    identities.delete(connection, subjects)
    add_entry(connection, "remove", state.fingerprint, subjects, n_samples)
    increase(connection, NOT_ERASED, n_samples)
    return n_samples


def re_enroll(connection: Connection, state: State, model: Similarity) -> None:
    """Prepare all samples by another model, which is written into the gallery; strangers must be searched for again."""
    if fingerprint(model) == state.fingerprint:  # the same scores: only thresholds and probabilities are new
        write_model(connection, model)
        add_entry(connection, "update thresholds", state.fingerprint)
        return
    old, new = state.form, form_of(model, state.settings.dtype, state.settings.keeps_vectors)
    n_samples = 0
    for number in block_numbers(connection):
        rows = read_rows(connection, old, number, with_vectors=True)
        vectors = np.array(rows.prepared if rows.vectors is None else rows.vectors, dtype=new.dtype)
        prepared = model._prepare(vectors)
        delete_block(connection, number)
        kept = vectors if new.stores_vectors else None
        add_rows(connection, new, Rows(rows.owners, rows.samples, rows.times, prepared, kept))
        n_samples += len(rows)
    connection.execute("DELETE FROM strangers")
    increase(connection, NOT_ERASED, n_samples)
    add_entry(connection, "re-enroll", write_model(connection, model), n_samples=n_samples)


def check_successor(state: State, model: Similarity) -> None:
    """Raise if the samples of a gallery cannot be prepared by a model, or if the model does not have its fusion."""
    resolve_fusion(model, state.settings.fusion)
    if fingerprint(model) == state.fingerprint:
        return
    if not state.form.has_vectors:
        raise ValueError(
            "the gallery was made with keep_vectors=False and has no samples that another model could prepare; make a new "
            "gallery and enrol the samples again."
        )
    if n_vector_features(model) != state.form.n_features:
        raise ValueError(
            f"the model is for samples with {count(n_vector_features(model), 'feature')}, and those of the gallery have "
            f"{state.form.n_features}; give a model for the same features."
        )
    names, others = (getattr(some, "feature_names_in_", None) for some in (state.model, model))
    if names is not None and others is not None and list(names) != list(others):
        raise ValueError(
            f"the model is for the features {', '.join(map(str, others[:5]))} ..., and the samples of the gallery have "
            f"{', '.join(map(str, names[:5]))} ...; give a model for the same features in the same order."
        )


def find_duplicates(state: State, samples: Samples) -> tuple[Duplicate, ...]:
    """Return the samples that match another identity, in the gallery or among the samples themselves."""
    strangers = state.strangers
    rise = state.max_rise(samples.times)
    threshold = state.threshold if strangers is None else strangers.strictest_threshold(state.size, rise)
    distinct, codes = np.unique(np.array(samples.ids, dtype=object), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    among = Templates.of(np.ascontiguousarray(samples.prepared[order]), samples.times[order], codes[order])
    found: dict[int, Duplicate] = {}
    for templates, names in ((state.snapshot.templates, state.snapshot.names), (among, distinct)):
        # Two, because the best one may be the own identity.
        scores, places = best_identities(
            state.model, state.fusion, samples.prepared, templates, 2, threshold, times=samples.times
        )
        for row, own in enumerate(samples.ids):
            others = [
                Duplicate(row, own, str(names[place]), float(score))
                for score, place in zip(scores[row], places[row], strict=True)
                if place >= 0 and names[place] != own
            ]
            if others and (row not in found or others[0].score > found[row].score):
                found[row] = others[0]
    return tuple(found[row] for row in sorted(found))


def _said_of(duplicates: tuple[Duplicate, ...]) -> str:
    """Return what is wrong with duplicates, without the remedy."""
    first = duplicates[0]
    return (
        f"{count(len(duplicates), 'sample')} to enrol match another identity, such as row {first.row} of {first.id!r}, which "
        f"matches {first.other!r} with the score {first.score:.6g}"
    )
