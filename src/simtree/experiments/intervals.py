"""How sure a point of a ROC curve is when pairs share points: intervals by drawing points and pairs anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from simtree.metrics import FloatArray


def point_intervals(
    scores: ArrayLike,
    same: ArrayLike,
    first: NDArray[np.integer],
    second: NDArray[np.integer],
    fpr: Sequence[float],
    *,
    n_draws: int = 100,
    level: float = 0.95,
    random_state: int = 0,
) -> FloatArray:
    """Intervals of the AUC and of the TPR at some FPRs, for new points of the same classes and new pairs of them.

    Points are drawn with replacement, and a pair counts as often as the product of the times that its two points were drawn.
    Such draws count the noise of single pairs three times (Owen 2007, the pigeonhole bootstrap), so twice the variance over
    draws of single pairs is taken off. Nothing is scored anew.

    Parameters
    ----------
    scores, same : array-like of shape (n_pairs,)
        Scores of pairs, and whether they are same pairs.
    first, second : ndarray of shape (n_pairs,)
        Their points, as numbers.
    fpr : sequence of float
        Where on the curve.
    n_draws : int, default=100
        How often the points are drawn, and how often the pairs.
    level : float, default=0.95
        Level of the intervals.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ndarray of shape (1 + len(fpr), 2)
        Lower and upper ends: of the AUC first, then of the TPR at each FPR (at most each target, as in `tpr_at_fpr`).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = rng.integers(0, 50, (2, 400))
    >>> same = first % 2 == second % 2
    >>> ends = point_intervals(same + rng.normal(size=400), same, first, second, [0.1])
    >>> ends.shape, bool((ends[:, 0] < ends[:, 1]).all())
    ((2, 2), True)
    """
    values = np.asarray(scores, dtype=np.float64)
    order = np.argsort(-values, kind="stable")
    last_of_tie = np.flatnonzero(np.append(np.diff(values[order]) < 0, True))
    is_same = np.asarray(same, dtype=np.bool_)[order]
    points, numbers = np.unique(np.concatenate([first[order], second[order]]), return_inverse=True)
    i, j = np.split(numbers, 2)
    rng = np.random.default_rng(random_state)

    def figures(weight: NDArray[np.integer]) -> list[float] | None:
        tp, fp = (np.concatenate([[0], np.cumsum(np.where(kind, weight, 0))[last_of_tie]]) for kind in (is_same, ~is_same))
        if not (tp[-1] and fp[-1]):  # no pair of a kind was drawn
            return None
        tpr, there = tp / tp[-1], fp / fp[-1]
        at = np.searchsorted(there, np.asarray(fpr), side="right") - 1
        return [float(np.trapezoid(tpr, there)), *tpr[at].tolist()]

    def variance(draws: list[list[float] | None]) -> FloatArray:
        found = [draw for draw in draws if draw is not None]
        if len(found) < 2:
            raise ValueError(f"n_draws={n_draws} draws of {len(points)} points held no pair of each kind; give more points.")
        return np.asarray(np.var(found, axis=0, ddof=1))

    def drawn_points() -> NDArray[np.integer]:
        times = np.bincount(rng.integers(0, len(points), len(points)), minlength=len(points))
        return np.asarray(times[i] * times[j])

    by_points = variance([figures(drawn_points()) for _ in range(n_draws)])
    by_pairs = variance([figures(rng.poisson(1.0, len(order))) for _ in range(n_draws)])
    half = norm.ppf(0.5 + level / 2.0) * np.sqrt(np.maximum(by_points - 2.0 * by_pairs, by_pairs))
    middle = np.asarray(figures(np.ones(len(order), dtype=np.int64)))
    return np.asarray(np.clip(np.stack([middle - half, middle + half], axis=1), 0.0, 1.0))
