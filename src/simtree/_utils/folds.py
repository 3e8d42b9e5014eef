"""Random folds of about equal size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def assign_folds(
    n: int, n_folds: int, rng: np.random.Generator, classes: NDArray[np.integer[Any]] | None = None
) -> NDArray[np.int64]:
    """Return a random fold for each of n samples (or identities).

    All folds have about the same size and, if classes are given, about the same number of samples of each class.

    Examples
    --------
    >>> np.bincount(assign_folds(7, 3, np.random.default_rng(0)))
    array([3, 2, 2])
    """
    order = rng.permutation(n)
    if classes is not None:
        order = order[np.argsort(classes[order], kind="stable")]
    folds = np.empty(n, dtype=np.int64)
    folds[order] = np.arange(n) % n_folds
    return folds
