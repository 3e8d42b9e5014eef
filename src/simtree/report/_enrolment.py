"""How much better decisions get with more enrolled samples per identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_integer
from simtree.evaluation._evaluate import evaluate_scores
from simtree.evaluation._results import Estimate
from simtree.evaluation._templates import Fusion
from simtree.pairs._labels import encode_groups

# Comparisons of a probe with an enrolled sample: their scores are kept.
MAX_COMPARISONS = 5_000_000


def eer_by_enrolled(
    model: Any,
    X: ArrayLike,
    labels: NDArray[Any],
    numbers: Sequence[int],
    fusion: str = "max",
    confidence: float = 0.95,
) -> list[tuple[int, Estimate]]:
    """Return the equal error rate for some numbers of enrolled samples per identity.

    The first rows of an identity are enrolled, as many as the largest number asks for. Its other rows are probes, the same for
    all numbers. Identities with too few rows are left out.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    X, labels : array-like
        Samples that the model has not seen, and their identities.
    numbers : sequence of int
        Numbers of enrolled samples.
    fusion : {"max", "mean", "top_mean"}, default="max"
        How the scores with the samples of an identity become one.
    confidence : float, default=0.95
        Confidence level of the intervals, which are for new identities.

    Returns
    -------
    list of (int, Estimate)
        Numbers in increasing order, each with its equal error rate.
    """
    for number in numbers:
        check_integer("enrolled", number, 1)
    most, fuse = max(numbers), Fusion(fusion)
    codes = encode_groups(labels, len(labels), "y")
    rows = np.argsort(codes, kind="stable")
    of_rows = codes[rows]
    position = np.arange(len(rows)) - np.searchsorted(of_rows, of_rows)
    known = (np.bincount(codes) > most)[of_rows]
    if len(np.unique(of_rows[known])) < 2:
        raise ValueError(
            f"enrolled={most} needs two identities with {most + 1} samples or more, one of them to compare; give a smaller one."
        )
    is_enrolled, is_probe = known & (position < most), known & (position >= most)
    n_comparisons = int(is_enrolled.sum()) * int(is_probe.sum())
    if n_comparisons > MAX_COMPARISONS:
        raise ValueError(
            f"enrolled={most} takes {n_comparisons:,} comparisons, more than {MAX_COMPARISONS:,}; give a smaller one."
        )
    index = np.stack(np.broadcast_arrays(rows[is_probe][:, None], rows[is_enrolled]), axis=-1)
    scores = model.pair_score(index.reshape(-1, 2), X).reshape(index.shape[:2])
    probes, owners = of_rows[is_probe], np.unique(of_rows[is_enrolled])
    pairs = np.stack(np.broadcast_arrays(probes[:, None], owners), axis=-1).reshape(-1, 2)
    same = pairs[:, 0] == pairs[:, 1]
    found = []
    for number in sorted(set(numbers)):
        kept = position[is_enrolled] < number
        fused = fuse(np.ascontiguousarray(scores[:, kept]), number * np.arange(len(owners)))
        result = evaluate_scores(fused.ravel(), same, identities=pairs, confidence=confidence)
        found.append((number, result.eer_interval))
    return found
