"""Scores of pairs of people who differ: the law behind the simulations of intervals and thresholds, with its true rates.

A different pair scores the sum of what its two people have in common with everybody (wolves and lambs), what the two of them
have in common, what their samples have, and noise. A same pair has a higher mean, and people differ in how alike their samples
are (goats). All parts are normal, so that the true rates at a threshold are known; a share of the people may be wolves, whose
part is shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

SAMPLE, NOISE = 0.5, 0.5**0.5


@dataclass(frozen=True)
class Law:
    """Standard deviations of the effects of people, of pairs of people and of same pairs; share and shift of wolves."""

    people: float = 0.7
    pairs: float = 0.5
    goats: float = 0.6
    mean: float = 2.5
    wolves: float = 0.0
    shift: float = 0.0

    def fpr(self, threshold: float | np.ndarray) -> float | np.ndarray:
        """True false positive rate."""
        spread = np.sqrt(2 * self.people**2 + self.pairs**2 + 2 * SAMPLE**2 + NOISE**2)
        both = (1 - self.wolves) ** 2, 2 * self.wolves * (1 - self.wolves), self.wolves**2
        return sum(w * norm.sf((threshold - k * self.shift) / spread) for k, w in enumerate(both))

    def tpr(self, threshold: float | np.ndarray) -> float | np.ndarray:
        """True positive rate."""
        spread = np.sqrt(self.goats**2 + 2 * SAMPLE**2 + NOISE**2)
        return norm.sf((threshold - self.mean) / spread)

    @lru_cache  # noqa: B019, a law is a value
    def threshold(self, fpr: float) -> float:
        """The threshold with this false positive rate."""
        return float(brentq(lambda t: self.fpr(t) - fpr, -30.0, 60.0))

    @lru_cache  # noqa: B019, a law is a value
    def auc(self) -> float:
        """True AUC."""
        thresholds = np.linspace(30.0, -30.0, 20_001)
        return float(np.trapezoid(self.tpr(thresholds), self.fpr(thresholds)))

    def sample(self, n_people: int, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Scores of all pairs of the samples of new people, whether they are same pairs, and their two people."""
        person = np.repeat(np.arange(n_people), n_samples)
        i, j = np.triu_indices(len(person), 1)
        u, v = person[i], person[j]
        same = u == v
        of_people = rng.normal(0, self.people, n_people) + self.shift * (rng.random(n_people) < self.wolves)
        of_pairs = rng.normal(0, self.pairs, (n_people, n_people))
        goats = rng.normal(0, self.goats, n_people)
        of_samples = rng.normal(0, SAMPLE, len(person))
        scores = np.where(same, self.mean + goats[u], of_people[u] + of_people[v] + of_pairs[u, v])
        scores += of_samples[i] + of_samples[j] + rng.normal(0, NOISE, len(i))
        return scores, same, u, v


LAWS = {
    "no effects": Law(people=0.0, pairs=0.0, goats=0.0),
    "mild": Law(people=0.3, pairs=0.3, goats=0.4),
    "strong": Law(),
    "wolves": Law(people=0.3, pairs=0.3, wolves=0.05, shift=2.5),
}
