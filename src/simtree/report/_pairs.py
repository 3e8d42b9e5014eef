"""What the page says of one of the hardest pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.models._description import input_columns
from simtree.report._hardest import ScoredPair
from simtree.report._images import MAX_PIXELS, grey_image, signed_image
from simtree.trees._explanation import value_text

MAX_FEATURES = 6


@dataclass(frozen=True)
class HardPair:
    """One of the hardest pairs.

    Parameters
    ----------
    first, second : int
        Rows of the data.
    score : float
        Score of the pair.
    accepted : bool or None
        Whether the score reaches the threshold in use; None if there is none for such scores.
    contributions : list of (str, float)
        Largest contributions of features, and the sum of the others.
    has_rest : bool
        Whether the last contribution is the sum of the others.
    labels : tuple of str or None
        Identities of both samples; None unless samples may be shown.
    images : list of (str, str)
        Names and sources of images; empty unless samples may be shown.
    n_enrolled : int or None
        Number of samples of the enrolled identity that ``first`` was compared with, of which ``second`` is the most similar;
        None if two samples were compared.
    """

    first: int
    second: int
    score: float
    accepted: bool | None
    contributions: list[tuple[str, float]]
    has_rest: bool
    labels: tuple[str, str] | None
    images: list[tuple[str, str]]
    n_enrolled: int | None = None


def describe_pair(
    model: Any,
    pair: ScoredPair,
    samples: NDArray[Any],
    labels: NDArray[Any],
    *,
    threshold: float | None,
    with_samples: bool,
    image_shape: tuple[int, int] | None,
    max_pixels: int = MAX_PIXELS,
) -> HardPair:
    """Return what the page says of a pair; values, names and images only if samples may be shown.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    pair : ScoredPair
        The pair.
    samples, labels : ndarray
        The data.
    threshold : float or None
        Threshold in use; None if there is none for such scores.
    with_samples : bool
        Whether samples may be shown.
    image_shape : tuple of int or None
        Height and width of samples that are images.
    max_pixels : int, default=4096
        Number of pixels of an image, at most.

    Returns
    -------
    HardPair
        The description.
    """
    contributions: list[tuple[str, float]] = []
    has_rest = False
    images: list[tuple[str, str]] = []
    x, x2 = samples[pair.first], samples[pair.second]
    if with_samples and image_shape is not None:
        images = [(f"row {row}", grey_image(samples[row], image_shape, max_pixels)) for row in (pair.first, pair.second)]
    if hasattr(model, "explain_pair"):
        explanation = model.explain_pair(x, x2)
        order = explanation.order()
        columns = input_columns(model)
        for j in order[:MAX_FEATURES]:
            name = str(explanation.feature_names[j])
            if with_samples and image_shape is None:
                place = None if columns is None else columns[j]
                values = (_value(row, place, own[j]) for row, own in ((x, explanation.x), (x2, explanation.x2)))
                name = f"{name}: {' and '.join(values)}"
            contributions.append((name, float(explanation.contributions[j])))
        if len(order) > MAX_FEATURES:
            rest = float(np.sum(explanation.contributions[order[MAX_FEATURES:]]))
            contributions.append((count(len(order) - MAX_FEATURES, "more feature"), rest))
            has_rest = True
        if images and columns is not None:
            drawn = signed_image(explanation.contributions, image_shape or (1, len(x)), max_pixels)
            images.append(("contributions", drawn))
    return HardPair(
        first=pair.first,
        second=pair.second,
        score=pair.score,
        accepted=None if threshold is None else bool(pair.score >= threshold),
        contributions=contributions,
        has_rest=has_rest,
        labels=(str(labels[pair.first]), str(labels[pair.second])) if with_samples else None,
        images=images,
    )


def describe_comparison(
    model: Any,
    pair: ScoredPair,
    samples: NDArray[Any],
    labels: NDArray[Any],
    is_candidate: NDArray[np.bool_],
    **options: Any,
) -> HardPair:
    """Return what the page says of a probe and an enrolled identity, by the most similar sample of the identity.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    pair : ScoredPair
        The probe, and one of the samples of the identity.
    samples, labels : ndarray
        The data.
    is_candidate : ndarray of bool
        Which samples the probe may be compared with.
    **options : dict
        As in `describe_pair`.

    Returns
    -------
    HardPair
        The description.
    """
    rows = np.flatnonzero(is_candidate & (labels == labels[pair.second]))
    pairs = np.stack([samples[np.full(len(rows), pair.first)], samples[rows]], axis=1)
    best = int(rows[np.argmax(model.pair_score(pairs))])
    return replace(describe_pair(model, pair._replace(second=best), samples, labels, **options), n_enrolled=len(rows))


def rows_as_fitted(model: Any, X: Any) -> NDArray[Any]:
    """Return samples as rows that can be given to a model one by one, without names: columns in the order of its training.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    X : data frame or array-like of shape (n_samples, n_features)
        Samples that the model takes, with columns in any order if both have names; those that it left out may be missing.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Numbers, or objects if there are words.
    """
    table = getattr(model, "columns_", None)
    names = [str(name) for name in getattr(X, "column_names", getattr(X, "columns", []))]
    if table is None or not table.named or not names:
        return np.asarray(X)
    rows = np.full((len(X), len(table.columns)), None, dtype=object)
    for place, column in enumerate(table.columns):
        if column.name in names:
            rows[:, place] = np.asarray(X[column.name], dtype=object)
    return rows


def _value(row: NDArray[Any], place: int | None, explained: Any) -> str:
    """Return a value as it stands in a sample; what the model makes of it, if it is a date, missing or not in the sample."""
    given = None if place is None else row[place]
    return value_text(given if isinstance(given, Real | str) else explained)
