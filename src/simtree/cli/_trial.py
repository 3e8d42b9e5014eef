"""How long a fit will take, from small trials on the same data."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from simtree.models._auto import AutoSimilarity
from simtree.models._timing import timed
from simtree.models._tree import SimilarityTree
from simtree.pairs._sampling import PairSampler

# Pairs of the fit that comes before all others: it compiles, if that is still to be done, and finds bad data.
FIRST_PAIRS = 2_000


def expected_seconds(learner: Any, X: Any, y: NDArray[Any], apart: NDArray[Any] | None) -> float:
    """Return how many seconds ``learner.fit(X, y, never_pair=apart)`` will take."""
    if isinstance(learner, AutoSimilarity):
        copy: AutoSimilarity = clone(learner)
        return copy._expected_seconds(X, y, apart)
    if isinstance(learner, SimilarityTree):
        trial = first = clone(learner).set_params(n_pairs=FIRST_PAIRS)
        times = min(learner.n_pairs or np.inf, PairSampler(y, never_pair=apart).n_pairs) / FIRST_PAIRS
    else:
        n_trees = min(effective_n_jobs(learner.n_jobs), learner.n_estimators)
        trial = clone(learner).set_params(n_estimators=n_trees, oob_score=False, verbose=0)
        first = clone(trial).set_params(n_pairs=FIRST_PAIRS)
        times = learner.n_estimators / n_trees
    first.fit(X, y, never_pair=apart)
    return max(1.0, times) * timed(lambda: trial.fit(X, y, never_pair=apart))
