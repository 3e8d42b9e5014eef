"""Fit, apply, save and load the ``representation`` of an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from simtree._utils.matrices import check_rows, explained_overflow
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


def fit_representation(representation: Any, samples: NDArray[Any], source: PairSource) -> tuple[Any, NDArray[Any]]:
    """Return a fitted clone of the transformer and the training samples from its ``fit_transform``; None is the identity."""
    if representation is None:
        return None, samples
    if isinstance(representation, type) or not all(hasattr(representation, name) for name in ("fit_transform", "transform")):
        raise TypeError(f"representation={representation!r} is not a transformer; give one with fit_transform and transform.")
    fitted = clone(representation)
    if source.labels is not None:
        with explained_overflow(samples, f"representation={representation!r}"):
            return fitted, _checked(fitted.fit_transform(samples, source.labels), len(samples))
    if _needs_labels(fitted):
        raise ValueError(f"representation={representation!r} requires labels; fit labelled samples (X, y) instead of pairs.")
    with explained_overflow(samples, f"representation={representation!r}"):
        return fitted, _checked(fitted.fit_transform(samples), len(samples))


def depends_on_labels(representation: Any, samples: NDArray[Any], represented: NDArray[Any]) -> bool:
    """Return whether the transformer, fitted without labels, fails or transforms the training samples differently.

    Tags do not tell: some transformers that select features by labels, or contain one that does, declare no need of them.
    """
    if representation is None:
        return False
    try:
        without = _checked(clone(representation).fit_transform(samples), len(samples))
    except (AttributeError, TypeError, ValueError):
        return True
    return not np.array_equal(without, represented)


def represent(fitted: Any, samples: NDArray[Any]) -> NDArray[Any]:
    """Return samples as transformed by a fitted transformer."""
    with explained_overflow(samples, f"representation={fitted!r}"):
        return _checked(fitted.transform(samples), len(samples))


def represented_names(fitted: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    """Return the names of the output features of a fitted transformer, or None if it does not define them."""
    try:
        return [str(name) for name in fitted.get_feature_names_out(None if names is None else np.asarray(names, dtype=object))]
    except (AttributeError, ValueError):
        return None


def representation_state(fitted: Any) -> dict[str, Any] | None:
    """Return the state of a fitted representation for a model file."""
    if fitted is None:
        return None
    if type(fitted) is Pipeline:
        steps = [{"name": name, "step": representation_state(step)} for name, step in fitted.steps]
        return {"class": PIPELINE, "steps": steps}
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
            step, n_features = representation_from_state(part.part("step"), n_features)
            steps.append((part.string("name"), step))
        return Pipeline(steps), n_features
    representation = estimator_from_state(fields, get_class(REPRESENTATION, name))
    check_parameters(fields, representation)
    representation.n_features_in_ = fields.integer("n_features_in", n_features, n_features)
    return representation, set_fitted_state(representation, fields.part("fitted"))


def _needs_labels(transformer: Any) -> bool:
    steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    return any(get_tags(step).target_tags.required for step in steps if not isinstance(step, str) and step is not None)


def _checked(samples: Any, n_samples: int) -> NDArray[Any]:
    """Return the output of the transformer as rows of finite numbers."""
    remedy = "choose a transformer that makes finite numbers of X, or divide X by a large number first"
    rows = check_rows("representation", samples, remedy=remedy, dtype=[np.float64, np.float32], order="C")
    if len(rows) != n_samples:
        raise ValueError(
            f"representation returned {count(len(rows), 'row')} for {count(n_samples, 'sample')}; "
            "it must return one row per sample."
        )
    return rows
