"""Score distribution with effects of identities, for the simulation of intervals and thresholds, with its true rates.

The score of a different pair is the sum of an effect of each of its identities (wolves and lambs in biometrics), an effect of
the pair of identities, an effect of each sample, and noise. A same pair has a higher mean, plus an effect of its identity
(goats). All effects are normal, so that the true rates at a threshold are known. A share of the identities may be wolves, whose
effect is shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

SAMPLE, NOISE = 0.5, 0.5**0.5


@dataclass(frozen=True)
class ScoreDistribution:
    """Standard deviations of the effects of identities, pairs of identities and same pairs; share and shift of wolves."""

    identities: float = 0.7
    pairs: float = 0.5
    goats: float = 0.6
    mean: float = 2.5
    wolves: float = 0.0
    shift: float = 0.0

    def fpr(self, threshold: float | np.ndarray) -> float | np.ndarray:
        """Return the true false positive rate."""
        spread = np.sqrt(2 * self.identities**2 + self.pairs**2 + 2 * SAMPLE**2 + NOISE**2)
        both = (1 - self.wolves) ** 2, 2 * self.wolves * (1 - self.wolves), self.wolves**2
        return sum(w * norm.sf((threshold - k * self.shift) / spread) for k, w in enumerate(both))

    def tpr(self, threshold: float | np.ndarray) -> float | np.ndarray:
        """Return the true positive rate."""
        spread = np.sqrt(self.goats**2 + 2 * SAMPLE**2 + NOISE**2)
        return norm.sf((threshold - self.mean) / spread)

    @lru_cache  # noqa: B019, a distribution is immutable
    def threshold(self, fpr: float) -> float:
        """Return the threshold with a false positive rate."""
        return float(brentq(lambda t: self.fpr(t) - fpr, -30.0, 60.0))

    @lru_cache  # noqa: B019, a distribution is immutable
    def auc(self) -> float:
        """Return the true AUC."""
        thresholds = np.linspace(30.0, -30.0, 20_001)
        return float(np.trapezoid(self.tpr(thresholds), self.fpr(thresholds)))

    def sample(self, n_identities: int, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Sample identities: return the scores of all pairs, which of them are same pairs, and their two identities."""
        identity = np.repeat(np.arange(n_identities), n_samples)
        i, j = np.triu_indices(len(identity), 1)
        u, v = identity[i], identity[j]
        same = u == v
        of_identities = rng.normal(0, self.identities, n_identities) + self.shift * (rng.random(n_identities) < self.wolves)
        of_pairs = rng.normal(0, self.pairs, (n_identities, n_identities))
        goats = rng.normal(0, self.goats, n_identities)
        of_samples = rng.normal(0, SAMPLE, len(identity))
        scores = np.where(same, self.mean + goats[u], of_identities[u] + of_identities[v] + of_pairs[u, v])
        scores += of_samples[i] + of_samples[j] + rng.normal(0, NOISE, len(i))
        return scores, same, u, v


DISTRIBUTIONS = {
    "no effects": ScoreDistribution(identities=0.0, pairs=0.0, goats=0.0),
    "mild": ScoreDistribution(identities=0.3, pairs=0.3, goats=0.4),
    "strong": ScoreDistribution(),
    "wolves": ScoreDistribution(identities=0.3, pairs=0.3, wolves=0.05, shift=2.5),
}
