"""How long a fit will take, from small trials on the same data."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from simtree.models import _auto as auto
from simtree.models import _presets as presets
from simtree.models._open_set import is_open_set
from simtree.models._tree import SimilarityTree
from simtree.pairs._sampling import PairSampler

# Pairs of the fit that comes before all others: it compiles, if that is still to be done, and finds bad data.
FIRST_PAIRS = 2_000
# Pairs that the candidates of a search are tried with: the difference shows what a pair costs. As many as this are scored.
FEW_PAIRS, TRIAL_PAIRS = 5_000, 25_000
# A trial of fewer seconds is made twice: something that is compiled or read for the first time would be most of it.
SHORT = 2.0


def expected_seconds(learner: Any, X: Any, y: NDArray[Any], apart: NDArray[Any] | None) -> float:
    """Return how many seconds ``learner.fit(X, y, never_pair=apart)`` will take."""
    if isinstance(learner, auto.AutoSimilarity):
        return _seconds_of_search(learner, X, PairSampler(y, never_pair=apart))
    if isinstance(learner, SimilarityTree):
        trial = first = clone(learner).set_params(n_pairs=FIRST_PAIRS)
        times = min(learner.n_pairs or np.inf, PairSampler(y, never_pair=apart).n_pairs) / FIRST_PAIRS
    else:
        n_trees = min(effective_n_jobs(learner.n_jobs), learner.n_estimators)
        trial = clone(learner).set_params(n_estimators=n_trees, oob_score=False, verbose=0)
        first = clone(trial).set_params(n_pairs=FIRST_PAIRS)
        times = learner.n_estimators / n_trees
    first.fit(X, y, never_pair=apart)
    return max(1.0, times) * _timed(lambda: trial.fit(X, y, never_pair=apart))


def _timed(work: Callable[[], Any]) -> float:
    def seconds() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    taken = seconds()
    return min(taken, seconds()) if taken < SHORT else taken


@dataclass(frozen=True)
class _Cost:
    """Seconds that a candidate takes to be fitted and to score: whatever its size, and per tree and pair."""

    fit: float
    fit_per_pair: float
    score: float
    score_per_pair: float

    def to_fit(self, n_trees: int, n_pairs: int) -> float:
        """Return the seconds of a fit."""
        return self.fit + n_trees * n_pairs * self.fit_per_pair

    def to_score(self, n_trees: int, n_pairs: int) -> float:
        """Return the seconds of scoring."""
        return self.score + n_trees * n_pairs * self.score_per_pair


def _seconds_of_search(learner: Any, X: Any, source: PairSampler) -> float:
    """Add up what all candidates take in all folds, and what the last fit takes on average over those that have trees."""
    labels = source.labels
    open_set = is_open_set(int(labels.max()) + 1) if learner.open_set == "auto" else bool(learner.open_set)
    rows = auto._some_rows(labels, open_set, np.random.default_rng(0))
    fold = rows[(labels[rows] if open_set else np.arange(len(rows))) % auto.N_FOLDS > 0]
    samples, pairs = np.asarray(X)[fold], auto._sampler_of(source, fold)
    names = [name for name, (_, closed) in presets.CANDIDATES.items() if not (closed and open_set)]
    costs = [_cost(presets.CANDIDATES[name][0], samples, pairs, learner.n_jobs) for name in names]
    small, large = presets.SMALL, presets.LARGE
    n_scored = _n_drawn(auto.VALIDATION_PAIRS, pairs, 0.2)
    search = sum(
        auto.N_FOLDS * (cost.to_fit(small.n_trees, _n_drawn(small.n_pairs, pairs)) + cost.to_score(small.n_trees, n_scored))
        for cost in costs
    )
    last = [cost.to_fit(large.n_trees, _n_drawn(large.n_pairs, source)) for cost in costs if cost.fit_per_pair > 0.0]
    return search + (statistics.fmean(last) if last else 0.0)


def _cost(make: Callable[[presets.Size], Any], samples: NDArray[Any], pairs: PairSampler, n_jobs: int | None) -> _Cost:
    n_trees, small = effective_n_jobs(n_jobs), presets.SMALL

    def sized(n_pairs: int) -> Any:
        return auto._seeded(make(presets.Size(n_trees, n_pairs, small.n_landmarks, small.n_extra_trees)), 0, n_jobs)

    def seconds(model: Any) -> float:
        return _timed(lambda: model.fit(samples, pairs.labels, never_pair=pairs.never_pair))

    few, more = _n_drawn(FEW_PAIRS, pairs), _n_drawn(TRIAL_PAIRS, pairs)
    model = sized(FEW_PAIRS)
    fixed, growing = seconds(model), 0.0
    if any(name.endswith("n_estimators") for name in model.get_params()):
        model = sized(TRIAL_PAIRS)
        taken = seconds(model)
        # On a busy machine the larger trial may be the faster one: half of its time is then taken for that of its pairs.
        growing = (taken - fixed) / (more - few) if more > few and taken > fixed else 0.5 * taken / more
        fixed = max(taken - growing * more, 0.0)
    drawn = pairs.sample(TRIAL_PAIRS, np.random.default_rng(0), shuffle=False)
    numbers = np.column_stack([drawn.first, drawn.second])
    # Samples are checked and represented before the first pair is scored.
    one, many = (_timed(partial(model.pair_score, rows, samples)) for rows in (numbers[:1], numbers))
    scoring = max(many - one, 0.0) / len(numbers)
    return _Cost(fixed, growing / n_trees, one, scoring / n_trees)


def _n_drawn(n_pairs: int, pairs: PairSampler, share: float = 0.5) -> int:
    """Return the number of pairs sampled if ``n_pairs`` are requested, with this share of same pairs."""
    if n_pairs >= pairs.n_pairs:
        return pairs.n_pairs
    n_same = round(share * n_pairs)
    return min(n_same, pairs.n_same_pairs) + min(n_pairs - n_same, pairs.n_pairs - pairs.n_same_pairs)
