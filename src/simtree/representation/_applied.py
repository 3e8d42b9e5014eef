"""Fit, apply, save and load the ``representation`` of an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from simtree._utils.matrices import check_rows, explained_overflow, has_missing
from simtree._utils.validation import count
from simtree.io._fields import Fields
from simtree.io._registry import (
    PIPELINE,
    REPRESENTATION,
    check_parameters,
    estimator_from_state,
    get_class,
    get_fitted_state,
    is_registered,
    known_names,
    parameters_state,
    pipeline_steps,
    refusal,
    set_fitted_state,
)
from simtree.pairs._sources import PairSource
from simtree.pairs._store import SampleStore
from simtree.representation._columns import DROP, PASSTHROUGH, ColumnRepresentation, dense

# A representation is fitted on at most this many rows: a sample of them that depends on nothing but their number.
MAX_FITTED_ROWS = 1 << 18


class LabelsRequiredError(ValueError):
    """Error raised if pairs are given to a representation that requires labels."""


def fit_representation(
    representation: Any, samples: NDArray[Any], source: PairSource, *, allow_missing: bool = False, n_kept: int = 0
) -> tuple[Any, NDArray[Any]]:
    """Return a fitted clone of the transformer and the training samples from its ``fit_transform``; None is the identity.

    ``allow_missing``: whether what is missing may stay so. ``n_kept``: how many of the last columns are not given to the
    transformer, and follow what it returns.
    """
    if representation is None:
        return None, samples
    if isinstance(representation, type) or not all(hasattr(representation, name) for name in ("fit_transform", "transform")):
        raise TypeError(f"representation={representation!r} is not a transformer; give one with fit_transform and transform.")
    fitted = clone(representation)
    if source.labels is None and _needs_labels(fitted):
        raise LabelsRequiredError(
            f"representation={representation!r} requires labels; fit labelled samples (X, y) instead of pairs."
        )
    rows = fitted_rows(len(samples))
    seen = np.asarray(samples) if rows is None else samples[rows]
    labels = source.labels if source.labels is None or rows is None else source.labels[rows]
    given, kept = _split(seen, n_kept)
    with explained_overflow(given, "representation=", representation):
        made = fitted.fit_transform(given) if labels is None else fitted.fit_transform(given, labels)
    joined = _joined(_checked(fitted, made, given, allow_missing), kept)
    return fitted, _with_others(samples, rows, joined, partial(represent, fitted, allow_missing=allow_missing, n_kept=n_kept))


def fitted_rows(n_samples: int) -> NDArray[np.int64] | None:
    """Return the rows that a representation is fitted on: a seeded sample of many rows; None for all rows.

    Examples
    --------
    >>> fitted_rows(1000) is None, len(fitted_rows(1_000_000))
    (True, 262144)
    """
    if n_samples <= MAX_FITTED_ROWS:
        return None
    return np.sort(np.random.default_rng(0).choice(n_samples, MAX_FITTED_ROWS, replace=False, shuffle=False))


def _with_others(
    samples: Any, rows: NDArray[np.int64] | None, made: NDArray[Any], transform: Callable[[NDArray[Any]], NDArray[Any]]
) -> Any:
    """Return all training samples transformed: cross-fitted values of the rows that were fitted on, the others as new ones."""
    if isinstance(samples, SampleStore):
        return samples.map(transform).replace(np.arange(len(samples)) if rows is None else rows, made)
    if rows is None:
        return made
    found = np.empty((len(samples), made.shape[1]), dtype=made.dtype)
    found[rows] = made
    others = np.delete(np.arange(len(samples)), rows)
    for start in range(0, len(others), MAX_FITTED_ROWS):  # some transformers take much memory per row
        part = others[start : start + MAX_FITTED_ROWS]
        found[part] = transform(samples[part])
    return found


def _split(samples: NDArray[Any], n_kept: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return what is given to a transformer, and the last columns, which are kept as they are."""
    return (np.ascontiguousarray(samples[:, :-n_kept]), samples[:, -n_kept:]) if n_kept else (samples, None)


def _joined(made: NDArray[Any], kept: NDArray[Any] | None) -> NDArray[Any]:
    return made if kept is None else np.hstack([made, kept])


def depends_on_labels(representation: Any, samples: NDArray[Any], represented: NDArray[Any], *, n_kept: int = 0) -> bool:
    """Return whether the transformer, fitted without labels, fails or transforms the training samples differently.

    Tags do not tell: some transformers that select features by labels, or contain one that does, declare no need of them.
    """
    if representation is None:
        return False
    rows = fitted_rows(len(samples))
    seen, known = (_split(np.asarray(both) if rows is None else both[rows], n_kept)[0] for both in (samples, represented))
    try:
        fitted = clone(representation)
        without = _checked(fitted, fitted.fit_transform(seen), seen, allow_missing=True)
    except (AttributeError, TypeError, ValueError):
        return True
    return not np.array_equal(without, known, equal_nan=True)


def represent(fitted: Any, samples: NDArray[Any], *, allow_missing: bool = False, n_kept: int = 0) -> NDArray[Any]:
    """Return samples as transformed by a fitted transformer; see `fit_representation`."""
    given, kept = _split(samples, n_kept)
    with explained_overflow(given, "representation=", fitted), _explained_unknown():
        return _joined(_checked(fitted, fitted.transform(given), given, allow_missing), kept)


@contextmanager
def _explained_unknown() -> Iterator[None]:
    """Say what to do about a value that an encoder has not seen: its own message has a number in place of the word."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("Found unknown categories"):
            raise
        raise ValueError(
            "representation: an encoder is given a value of a category that it was not fitted on; set handle_unknown='ignore' "
            "of a OneHotEncoder, or handle_unknown='use_encoded_value' and unknown_value=-1 of an OrdinalEncoder."
        ) from None


def represented_names(fitted: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    """Return the names of the output features of a fitted transformer, or None if it does not define them."""
    try:
        return [str(name) for name in fitted.get_feature_names_out(None if names is None else np.asarray(names, dtype=object))]
    except (AttributeError, ValueError):
        return None


def representation_state(fitted: Any) -> dict[str, Any] | None:
    """Return the state of a fitted representation for a model file."""
    if fitted is None or (isinstance(fitted, str) and fitted == PASSTHROUGH):
        return None
    if type(fitted) is Pipeline:
        steps = [{"name": name, "step": representation_state(step) or PASSTHROUGH} for name, step in fitted.steps]
        return {"class": PIPELINE, "steps": steps}
    if type(fitted) is ColumnRepresentation:
        parts = [
            {"name": name, "step": step if isinstance(step, str) else representation_state(step), "columns": columns.tolist()}
            for name, step, columns in fitted.transformers_
        ]
        return {
            "class": ColumnRepresentation.__name__,
            "remainder": fitted.remainder,
            "n_features_in": fitted.n_features_in_,
            "steps": parts,
        }
    if not is_registered(fitted, REPRESENTATION):
        raise TypeError(refusal(f"a model with the representation {fitted!r}"))
    return {
        "class": type(fitted).__name__,
        "parameters": parameters_state(fitted),
        "n_features_in": fitted.n_features_in_,
        "fitted": get_fitted_state(fitted),
    }


def representation_from_state(fields: Fields, n_features: int) -> tuple[Any, int]:
    """Return a fitted representation of samples with ``n_features`` features, and its number of output columns."""
    name = fields.string("class", [*known_names(REPRESENTATION), PIPELINE])
    if name == PIPELINE:
        steps = []
        for part in pipeline_steps(fields):
            if isinstance(part.get("step"), str):
                step: Any = part.string("step", (PASSTHROUGH,))
            else:
                step, n_features = representation_from_state(part.part("step"), n_features)
            steps.append((part.string("name"), step))
        return Pipeline(steps), n_features
    if name == ColumnRepresentation.__name__:
        return _columns_from_state(fields, n_features)
    representation = estimator_from_state(fields, get_class(REPRESENTATION, name))
    check_parameters(fields, representation)
    representation.n_features_in_ = fields.integer("n_features_in", n_features, n_features)
    return representation, set_fitted_state(representation, fields.part("fitted"))


def _columns_from_state(fields: Fields, n_features: int) -> tuple[ColumnRepresentation, int]:
    """Return a fitted ColumnRepresentation, and its number of output columns."""
    fields.integer("n_features_in", n_features, n_features)
    remainder = fields.string("remainder", (DROP, PASSTHROUGH))
    parts, n_columns, left = [], 0, set(range(n_features))
    for part in pipeline_steps(fields):
        columns = part.items("columns", n_features)
        if not all(type(column) is int and 0 <= column < n_features for column in columns):
            raise part.fail("columns", f"must be numbers from 0 to {n_features - 1}")
        left -= set(columns)
        if isinstance(part.get("step"), str):
            step: Any = part.string("step", (DROP, PASSTHROUGH))
            n_columns += len(columns) if step == PASSTHROUGH else 0
        else:
            step, made = representation_from_state(part.part("step"), len(columns))
            n_columns += made
        parts.append((part.string("name"), step, np.array(columns, dtype=np.int64)))
    unfitted = [(name, step if isinstance(step, str) else clone(step), columns.tolist()) for name, step, columns in parts]
    found = ColumnRepresentation(unfitted, remainder=remainder)
    found.n_features_in_, found.transformers_ = n_features, parts
    n_columns += len(left) if remainder == PASSTHROUGH else 0
    if not n_columns:
        raise fields.fail("steps", "must keep a column")
    return found, n_columns


def _needs_labels(transformer: Any) -> bool:
    steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    return any(get_tags(step).target_tags.required for step in steps if not isinstance(step, str) and step is not None)


def _encodes_as_missing(fitted: Any) -> bool:
    """Return whether an OrdinalEncoder has seen missing values and returns NaN for them."""
    if isinstance(fitted, Pipeline):
        return any(_encodes_as_missing(step) for _, step in fitted.steps)
    if isinstance(fitted, ColumnRepresentation):
        return any(_encodes_as_missing(step) for _, step, _ in fitted.transformers_)
    if type(fitted).__name__ != "OrdinalEncoder":
        return False
    return fitted.encoded_missing_value != fitted.encoded_missing_value and any(
        np.isnan(found[-1:]).any() for found in fitted.categories_ if found.dtype.kind == "f"
    )


def _checked(fitted: Any, made: Any, given: NDArray[Any], allow_missing: bool) -> NDArray[Any]:
    """Return the output of the transformer as rows of finite numbers; NaN may stay in samples that have one, if allowed."""
    remedy = "choose a transformer that makes finite numbers of X, or divide X by a large number first"
    made = dense(made)
    if _encodes_as_missing(fitted) and np.isnan(made).any():
        remedy = "set encoded_missing_value of the OrdinalEncoder to a number such as -2, as the code of missing values"
    options: dict[str, Any] = {"remedy": remedy, "dtype": [np.float64, np.float32], "order": "C"}
    holed = has_missing(given) and allow_missing
    rows = check_rows("representation", made, ensure_all_finite="allow-nan" if holed else True, **options)
    if len(rows) != len(given):
        raise ValueError(
            f"representation returned {count(len(rows), 'row')} for {count(len(given), 'sample')}; "
            "it must return one row per sample."
        )
    if holed:
        complete = ~np.isnan(given).any(axis=1)
        check_rows("representation", np.where(complete[:, None], rows, 0.0), **options)
    return rows
