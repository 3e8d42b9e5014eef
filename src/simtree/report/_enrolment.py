"""How much better decisions get with more enrolled samples per identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from simtree._utils.times import check_times
from simtree._utils.validation import check_integer
from simtree.evaluation._evaluate import evaluate
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._results import Estimate
from simtree.pairs._labels import encode_groups


def eer_by_enrolled(
    model: Any,
    X: ArrayLike,
    labels: NDArray[Any],
    numbers: Sequence[int],
    *,
    fusion: str | LearnedFusion | None = None,
    n_best: int | None = None,
    time: Any = None,
    never_pair: ArrayLike | None = None,
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
    fusion, n_best, time, never_pair : optional
        As in `evaluate`.
    confidence : float, default=0.95
        Confidence level of the intervals, which are for new identities.

    Returns
    -------
    list of (int, Estimate)
        Numbers in increasing order, each with its equal error rate.
    """
    for number in numbers:
        check_integer("enrolled", number, 1)
    most = max(numbers)
    codes = encode_groups(labels, len(labels), "y")
    order = np.argsort(codes, kind="stable")
    position = np.empty(len(codes), dtype=np.int64)
    position[order] = np.arange(len(order)) - np.searchsorted(codes[order], codes[order])
    known = (np.bincount(codes) > most)[codes]
    if len(np.unique(codes[known])) < 2:
        raise ValueError(
            f"enrolled={most} needs two identities with {most + 1} samples or more, one of them to compare; give a smaller one."
        )
    times = None if time is None else check_times(time, len(codes))
    apart = None if never_pair is None else encode_groups(never_pair, len(codes), "never_pair")
    found = []
    for number in sorted(set(numbers)):
        rows = np.flatnonzero(known & ((position < number) | (position >= most)))
        result = evaluate(
            model,
            _safe_indexing(X, rows),
            codes[rows],
            enrol=position[rows] < number,
            fusion=fusion,
            n_best=n_best,
            time=None if times is None else times[rows],
            never_pair=None if apart is None else apart[rows],
            confidence=confidence,
        )
        found.append((number, result.eer_interval))
    return found
