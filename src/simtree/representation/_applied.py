"""Points after a transformer of the user's: how an estimator fits and applies its ``representation``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array

from simtree.pairs._sampling import IndexPairs, PairSampler


def fit_representation(representation: Any, points: NDArray[Any], source: IndexPairs | PairSampler) -> tuple[Any, NDArray[Any]]:
    """A fitted clone of the transformer, and the training points as its ``fit_transform`` gives them; None changes nothing."""
    if representation is None:
        return None, points
    if isinstance(representation, type) or not all(hasattr(representation, name) for name in ("fit_transform", "transform")):
        raise TypeError(f"representation={representation!r} is no transformer; give one with fit_transform and transform.")
    fitted = clone(representation)
    if isinstance(source, PairSampler):
        return fitted, _checked(fitted.fit_transform(points, source.classes), len(points))
    if _needs_labels(fitted):
        raise ValueError(f"representation={representation!r} needs labels; fit labelled points (X, y), or give no pairs.")
    return fitted, _checked(fitted.fit_transform(points), len(points))


def represent(fitted: Any, points: NDArray[Any]) -> NDArray[Any]:
    """Points as a fitted transformer gives them."""
    return _checked(fitted.transform(points), len(points))


def represented_names(fitted: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    """Names of the features that a fitted transformer makes, or None if it does not tell."""
    try:
        return [str(name) for name in fitted.get_feature_names_out(None if names is None else np.asarray(names, dtype=object))]
    except (AttributeError, ValueError):
        return None


def _needs_labels(transformer: Any) -> bool:
    steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    return any(get_tags(step).target_tags.required for step in steps if not isinstance(step, str) and step is not None)


def _checked(points: Any, n_points: int) -> NDArray[Any]:
    """The transformer's answer as rows of finite numbers."""
    rows = np.asarray(check_array(points, dtype=[np.float64, np.float32], order="C", input_name="representation"))
    if len(rows) != n_points:
        raise ValueError(f"representation made {len(rows)} rows of {n_points}; it must make one of each.")
    return rows
