"""What the page says of one of the hardest pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.report._hardest import ScoredPair
from simtree.report._images import grey_image, signed_image
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
    accepted : bool
        Whether the score reaches the threshold in use.
    contributions : list of (str, float)
        Largest contributions of features, and the sum of the others.
    has_rest : bool
        Whether the last contribution is the sum of the others.
    labels : tuple of str or None
        Identities of both samples; None unless samples may be shown.
    images : list of (str, str)
        Names and sources of images; empty unless samples may be shown.
    """

    first: int
    second: int
    score: float
    accepted: bool
    contributions: list[tuple[str, float]]
    has_rest: bool
    labels: tuple[str, str] | None
    images: list[tuple[str, str]]


def describe_pair(
    model: Any,
    pair: ScoredPair,
    samples: NDArray[Any],
    labels: NDArray[Any],
    *,
    with_samples: bool,
    image_shape: tuple[int, int] | None,
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
    with_samples : bool
        Whether samples may be shown.
    image_shape : tuple of int or None
        Height and width of samples that are images.

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
        images = [(f"row {row}", grey_image(samples[row], image_shape)) for row in (pair.first, pair.second)]
    if hasattr(model, "explain_pair"):
        is_read = model.columns_ is not None
        explanation = model._explain_rows(samples[[pair.first, pair.second]]) if is_read else model.explain_pair(x, x2)
        order = explanation.order()
        of_samples = len(order) == len(x)
        for j in order[:MAX_FEATURES]:
            name = str(explanation.feature_names[j])
            if with_samples and image_shape is None and of_samples:
                of_pair = (explanation.x[j], explanation.x2[j]) if is_read else (x[j], x2[j])
                name = f"{name}: {value_text(of_pair[0])} and {value_text(of_pair[1])}"
            contributions.append((name, float(explanation.contributions[j])))
        if len(order) > MAX_FEATURES:
            rest = float(np.sum(explanation.contributions[order[MAX_FEATURES:]]))
            contributions.append((count(len(order) - MAX_FEATURES, "more feature"), rest))
            has_rest = True
        if images and of_samples:
            images.append(("contributions", signed_image(explanation.contributions, image_shape or (1, len(x)))))
    return HardPair(
        first=pair.first,
        second=pair.second,
        score=pair.score,
        accepted=bool(pair.score >= model.threshold_),
        contributions=contributions,
        has_rest=has_rest,
        labels=(str(labels[pair.first]), str(labels[pair.second])) if with_samples else None,
        images=images,
    )
