"""The model inside a gallery: its bytes, and a fingerprint of everything that determines scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree.gallery._blocks import Form
from simtree.io._archive import document_bytes, read_document
from simtree.models import Similarity
from simtree.models._persistence import model_from_state
from simtree.pairs._inputs import check_samples, n_columns

# Entries of the state of a model that do not change its scores: decisions, and what is known of its training; and parameters
# that change nothing.
NO_SCORES = {"threshold", "threshold_report", "held_out_check", "calibration", "training_counts"}
IDLE_PARAMETERS = {"n_jobs", "verbose"}


def model_bytes(model: Similarity) -> bytes:
    """Return a model as the bytes of a model file."""
    return document_bytes(model._get_state())


def model_from_bytes(content: bytes) -> Similarity:
    """Return the model in the bytes of a model file."""
    model: Similarity = model_from_state(read_document(content))
    return model


def fingerprint(model: Similarity) -> str:
    """Return a hash of everything that determines the scores of a model, and of no threshold or calibration.

    Parameters
    ----------
    model : Similarity
        A fitted model.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> from simtree import DistanceSimilarity
    >>> model = DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    >>> before = fingerprint(model)
    >>> fingerprint(model.set_threshold(-1.0)) == before
    True
    """
    digest = hashlib.sha256()
    _update(digest, _scoring_part(model._get_state()))
    return digest.hexdigest()


def _scoring_part(state: Any) -> Any:
    """Return the state of a model, and of the models inside it, without what does not change scores."""
    if isinstance(state, Mapping):
        is_model = {"class", "parameters", "fitted"} <= set(state)
        kept = {name: _scoring_part(entry) for name, entry in state.items() if not (is_model and name in NO_SCORES)}
        if is_model:
            kept["parameters"] = {name: value for name, value in kept["parameters"].items() if name not in IDLE_PARAMETERS}
        return kept
    return [_scoring_part(entry) for entry in state] if isinstance(state, list | tuple) else state


def _update(digest: Any, value: Any) -> None:
    """Add a value to a hash, with its structure, so that different values give different bytes."""
    if isinstance(value, Mapping):
        digest.update(f"{{{len(value)}".encode())
        for name in sorted(value):
            _update(digest, name)
            _update(digest, value[name])
    elif isinstance(value, list | tuple):
        digest.update(f"[{len(value)}".encode())
        for entry in value:
            _update(digest, entry)
    elif isinstance(value, np.ndarray):
        digest.update(f"a{value.dtype.name}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes())
    else:
        text = json.dumps(value.item() if isinstance(value, np.generic) else value).encode()
        digest.update(f"v{len(text)}:".encode() + text)


def n_vector_features(model: Similarity) -> int:
    """Return the number of features of a sample as it is stored: those of X, or of what a table is read into."""
    return n_columns(model)


def form_of(model: Similarity, dtype: str, keeps_vectors: bool) -> Form:
    """Return what the rows of a gallery with a model are."""
    n_features = n_vector_features(model)
    origin = np.zeros((1, n_features), dtype=dtype)
    prepared = model._prepare(origin)
    return Form(dtype, n_features, prepared.dtype.name, prepared.shape[1], prepared is origin, keeps_vectors)


def check_rows_of(model: Similarity, form: Form, X: ArrayLike) -> NDArray[Any]:
    """Return samples in the type of the gallery, after checking them as the model does."""
    samples = check_samples(model, X)
    if samples.dtype.name == form.dtype:
        return samples
    with np.errstate(over="ignore"):
        converted = samples.astype(form.dtype)
    if np.isinf(converted).any():
        column = int(np.argwhere(np.isinf(converted))[0, 1])
        raise ValueError(
            f"X has a value in column {column} that float32 cannot hold; divide the column by a large number, or make the "
            "gallery with dtype='float64'."
        )
    return converted
