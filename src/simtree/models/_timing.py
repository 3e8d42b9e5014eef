"""How long candidates take, from small trials on the same data; and a budget of seconds that is shared out by it.

Without a budget nothing here is asked, so that nothing depends on the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from simtree.models import _presets as presets
from simtree.models._presets import Size
from simtree.models._selection import SAME_SHARE, VALIDATION_PAIRS, Units, fit_arguments, groups_for, restricted
from simtree.pairs._sources import PairSource

# Pairs that a candidate is tried with: the difference shows what a pair costs. As many as the second are scored.
FEW_PAIRS, TRIAL_PAIRS = 5_000, 25_000
# Samples that a candidate is tried with; what does not depend on pairs grows with their number.
TRIAL_ROWS = 2_000
# A trial of fewer seconds is made twice: something that is compiled or read for the first time would be most of it.
SHORT = 2.0


class Budget:
    """Seconds that a search may take; None is without limit.

    Parameters
    ----------
    seconds : float or None
        The budget, from now on.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._start = time.perf_counter()

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.seconds is not None

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self._start

    def allows(self, seconds: float) -> bool:
        """Return whether work of this many seconds fits into what is left."""
        return self.seconds is None or self.elapsed() + seconds <= self.seconds


@dataclass(frozen=True)
class Cost:
    """Seconds that a candidate takes to be fitted and to score: whatever its size, and per tree and pair.

    Parameters
    ----------
    fixed : float
        Seconds of a fit that do not depend on trees and pairs, for as many samples as in a fold.
    per_pair : float
        Seconds of a fit per tree and pair.
    score : float
        Seconds of scoring before the first pair.
    score_per_pair : float
        Seconds of scoring per tree and pair.
    growth : float
        How much longer the fixed part takes at the large size.
    """

    fixed: float
    per_pair: float
    score: float
    score_per_pair: float
    growth: float

    def of_fold(self, known: PairSource) -> float:
        """Return the seconds to be fitted on the samples of a fold at the small size, and to score the held-out pairs."""
        size = _sized(presets.SMALL, known)
        fit = self.fixed + size.n_trees * n_drawn(size.n_pairs, known) * self.per_pair
        return fit + self.score + presets.SMALL.n_trees * n_drawn(VALIDATION_PAIRS, known, SAME_SHARE) * self.score_per_pair

    def of_last_fit(self, source: PairSource, times: float) -> float:
        """Return the seconds to be fitted at the large size, on this many times as many samples as in a fold."""
        size = _sized(presets.LARGE, source)
        return self.fixed * self.growth * times + size.n_trees * n_drawn(size.n_pairs, source) * self.per_pair


def measure_cost(
    make: Callable[[Size], Any], samples: NDArray[Any], known: PairSource, n_jobs: int | None, groups: Units | None = None
) -> Cost:
    """Return what a candidate costs, from fits on some of the samples and few pairs."""
    n = len(samples)
    rows = np.arange(n) if known.labels is None else np.unique(np.linspace(0, n - 1, min(n, TRIAL_ROWS)).astype(np.int64))
    try:
        some = restricted(known, rows)
    except ValueError:  # so few samples of an identity are among them that there is no same pair
        rows, some = np.arange(n), known
    tried, n_trees = samples[rows], effective_n_jobs(n_jobs)
    groups = None if groups is None else groups[rows]

    def sized(n_pairs: int) -> Any:
        model = presets.seeded(make(Size(n_trees, n_pairs, presets.SMALL.n_landmarks, presets.SMALL.n_extra_trees)), 0, n_jobs)
        model._only_scores = True  # as in a fold
        return model

    def seconds(model: Any) -> float:
        return timed(lambda: model.fit(tried, **fit_arguments(some), **groups_for(model, groups)))

    model = sized(FEW_PAIRS)
    fixed, per_pair = seconds(model), 0.0
    few, more = n_drawn(FEW_PAIRS, some), n_drawn(TRIAL_PAIRS, some)
    grows = _grows_trees(model)
    if grows:
        model = sized(TRIAL_PAIRS)
        taken = seconds(model)
        # On a busy machine the larger trial may be the faster one: half of its time is then taken for that of its pairs.
        per_pair = (taken - fixed) / (more - few) if more > few and taken > fixed else 0.5 * taken / more
        fixed = max(taken - per_pair * more, 0.0)
    drawn = some.sample(TRIAL_PAIRS, np.random.default_rng(0), shuffle=False)
    numbers = np.column_stack([drawn.first, drawn.second])
    # Samples are checked and represented before the first pair is scored.
    one, many = (timed(partial(model.pair_score, pairs, tried)) for pairs in (numbers[:1], numbers))
    scoring = max(many - one, 0.0) / len(numbers)
    ratio = n / len(rows)
    scored_trees = n_trees if grows else presets.SMALL.n_trees  # one without trees takes as long whatever their number
    return Cost(fixed * ratio, per_pair / n_trees, one * ratio, scoring / scored_trees, _growth(make))


def _grows_trees(model: Any) -> bool:
    """Return whether a candidate grows trees on pairs; those of a representation are grown on samples."""
    return any(name.endswith("n_estimators") and "representation" not in name for name in model.get_params())


def _sized(size: Size, source: PairSource) -> Size:
    """Return the size that is used for labelled samples; given pairs are all used."""
    return size if source.labels is None else size.for_samples(len(source.labels))


def _growth(make: Callable[[Size], Any]) -> float:
    """Return how much larger a representation is at the large size: the largest ratio of its numeric parameters."""
    small, large = make(presets.SMALL).get_params(), make(presets.LARGE).get_params()
    ratios = [
        float(large[name] / value)
        for name, value in small.items()
        if "representation" in name and type(value) in (int, float) and type(large[name]) in (int, float) and value > 0
    ]
    return float(max([1.0, *ratios]))


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that work takes; short work is done twice, and the shorter time counts."""

    def seconds() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    taken = seconds()
    return min(taken, seconds()) if taken < SHORT else taken


def n_drawn(n_pairs: int, pairs: PairSource, share: float = 0.5) -> int:
    """Return the number of pairs used if ``n_pairs`` are asked for, with this share of same pairs; given pairs are all used."""
    members = pairs.members()
    if members is None or n_pairs >= pairs.n_pairs:
        return pairs.n_pairs
    sizes = np.diff(members[1])
    n_same, n_all_same = round(share * n_pairs), int(sizes @ (sizes - 1)) // 2
    return min(n_same, n_all_same) + min(n_pairs - n_same, max(pairs.n_pairs - n_all_same, 0))
