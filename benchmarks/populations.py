"""Populations of unequal people, for simulations: their scores, numbers of samples, sessions and true rates.

The score of a different pair is the sum of an effect of each of its people, of the pair of people, of both samples, and noise;
a same pair has a higher mean and an effect of its person. Truth counts every pair of samples once, as the estimates do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

OF_PAIR, OF_SAMPLE, NOISE, SHIFT, OF_SAME = 0.3, 0.3, 0.5, 3.0, 0.5
N_SAMPLES, N_POPULATION, N_PARTNERS = 4, 200_000, 20
ZIPF = np.arange(2, 41)

Effects = Callable[[np.random.Generator, int], np.ndarray]


class Scored(NamedTuple):
    """All pairs of the samples of some people."""

    scores: np.ndarray  # of shape (n_samples, n_samples)
    people: np.ndarray
    sessions: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Population:
    """Effects of people, goats (people whose same pairs score lower), numbers of samples, and sessions shared by people."""

    effects: Effects
    goats: float = 0.0
    counts: str = "equal"
    n_sessions: int = 0

    def draw(self, n_people: int, rng: np.random.Generator) -> Scored:
        """Draw people, their samples, and the scores of all pairs."""
        effects, counts, of_same = self._people(n_people, rng)
        people, of_samples, sessions = self._samples(counts, rng)
        of_people = effects[:, None] + effects + _symmetric(OF_PAIR * rng.normal(size=(n_people, n_people)))
        np.fill_diagonal(of_people, SHIFT + of_same)
        noise = _symmetric(NOISE * rng.normal(size=(len(people), len(people))))
        return Scored(of_people[people][:, people] + of_samples[:, None] + of_samples + noise, people, sessions)

    def draw_samples(
        self, n_people: int, rng: np.random.Generator, n_samples: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Draw people and their samples: the person of each sample, its effect with that of the person, and its session."""
        effects, counts, _ = self._people(n_people, rng, n_samples)
        people, of_samples, sessions = self._samples(counts, rng)
        return people, effects[people] + of_samples, sessions

    def _samples(self, counts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        people = np.repeat(np.arange(len(counts)), counts)
        of_samples = OF_SAMPLE * rng.normal(size=len(people))
        if not self.n_sessions:
            return people, of_samples, None
        sessions = rng.integers(0, self.n_sessions, len(people))
        return people, of_samples + rng.normal(size=self.n_sessions)[sessions], sessions

    def _people(
        self, n: int, rng: np.random.Generator, n_samples: int = N_SAMPLES
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        effects = self.effects(rng, n)
        counts = np.full(n, n_samples)
        if self.counts == "zipf":
            counts = rng.choice(ZIPF, size=n, p=ZIPF**-2.0 / np.sum(ZIPF**-2.0))
        elif self.counts == "growing":
            counts = np.clip(np.round(n_samples * np.exp(effects)), 2, 20).astype(np.int64)
        return effects, counts, OF_SAME * rng.normal(size=n) - 2.0 * (rng.random(n) < self.goats)

    @cached_property
    def _curve(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Thresholds, with the true FPR and TPR."""
        effects, counts, of_same = self._people(N_POPULATION, np.random.default_rng(7))
        shifts = range(1, N_PARTNERS + 1)
        both = np.concatenate([effects + np.roll(effects, k) for k in shifts])
        weights = np.concatenate([counts * np.roll(counts, k) for k in shifts]).astype(np.float64)
        thresholds = np.linspace(-8.0, 14.0, 441)
        of_noise = 2 * OF_SAMPLE**2 + NOISE**2
        fpr, tpr = np.zeros((2, len(thresholds)))
        # Two samples of one session share its effect twice.
        within = 1.0 / self.n_sessions if self.n_sessions else 0.0
        for share, extra in ((1.0 - within, 2.0 if self.n_sessions else 0.0), (within, 4.0)):
            fpr += share * _tail(both, weights, np.sqrt(OF_PAIR**2 + of_noise + extra), thresholds)
            tpr += share * _tail(SHIFT + of_same, counts * (counts - 1.0), np.sqrt(of_noise + extra), thresholds)
        return thresholds, fpr, tpr

    @cached_property
    def _curve_of_people(self) -> tuple[np.ndarray, np.ndarray]:
        """Thresholds, with the true FPR of a random pair of people, in two new sessions if there are sessions."""
        effects, _, _ = self._people(N_POPULATION, np.random.default_rng(7))
        both = np.concatenate([effects + np.roll(effects, k) for k in range(1, N_PARTNERS + 1)])
        thresholds = np.linspace(-4.0, 40.0, 1761)
        spread = np.sqrt(OF_PAIR**2 + 2 * OF_SAMPLE**2 + NOISE**2 + (2.0 if self.n_sessions else 0.0))
        return thresholds, _tail(both, np.ones(len(both)), spread, thresholds)

    def fpr_of_people(self, threshold: float) -> float:
        """Return the true FPR of a random pair of people at a threshold."""
        return float(np.interp(threshold, *self._curve_of_people))

    def threshold(self, fpr: float) -> float:
        """Return the threshold with a true FPR."""
        thresholds, rates, _ = self._curve
        return float(np.interp(-np.log(fpr), -np.log(np.maximum(rates, 1e-300)), thresholds))

    def tpr(self, threshold: float) -> float:
        """Return the true TPR at a threshold."""
        return float(np.interp(threshold, self._curve[0], self._curve[2]))

    def rates(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the true FPR and TPR at thresholds."""
        grid, fpr, tpr = self._curve
        return np.exp(np.interp(thresholds, grid, np.log(np.maximum(fpr, 1e-300)))), np.interp(thresholds, grid, tpr)

    def auc(self) -> float:
        """Return the true AUC."""
        _, fpr, tpr = self._curve
        return float(np.trapezoid(tpr[::-1], fpr[::-1]))

    def eer(self) -> float:
        """Return the true equal error rate."""
        thresholds, fpr, tpr = self._curve
        return float(np.interp(np.interp(0.0, 1.0 - tpr - fpr, thresholds), thresholds, fpr))


def _symmetric(values: np.ndarray) -> np.ndarray:
    upper = np.triu(values, 1)
    return upper + upper.T


def _tail(means: np.ndarray, weights: np.ndarray, spread: float, thresholds: np.ndarray) -> np.ndarray:
    """Return how often normal scores with these means exceed thresholds, from a fine histogram of the means."""
    counts, edges = np.histogram(np.clip(means, -30.0, 60.0), np.linspace(-30.0, 60.0, 9001), weights=weights)
    seen = counts > 0.0
    middle = ((edges[1:] + edges[:-1]) / 2)[seen]
    return np.array([counts[seen] @ norm.sf((threshold - middle) / spread) for threshold in thresholds]) / counts.sum()


def _normal(spread: float) -> Effects:
    return lambda rng, n: spread * rng.normal(size=n)


def _log_normal(sigma: float) -> Effects:
    mean, spread = np.exp(sigma**2 / 2), np.sqrt((np.exp(sigma**2) - 1) * np.exp(sigma**2))
    return lambda rng, n: 0.5 * (np.exp(sigma * rng.normal(size=n)) - mean) / spread


def _exponential(spread: float) -> Effects:
    return lambda rng, n: spread * (rng.exponential(size=n) - 1.0)


def _wolves(share: float, effect: float = 2.5) -> Effects:
    return lambda rng, n: 0.3 * rng.normal(size=n) + effect * (rng.random(n) < share)


def _scaled(draw: Effects, mean: float, spread: float) -> Effects:
    """Return effects with a mean of 0 and a standard deviation of 0.5."""
    return lambda rng, n: 0.5 * (draw(rng, n) - mean) / spread


BENIGN = ("no effects", "normal 0.3", "normal 0.7", "log-normal 0.25")
POPULATIONS = {
    "no effects": Population(_normal(0.0)),
    "normal 0.3": Population(_normal(0.3)),
    "normal 0.7": Population(_normal(0.7)),
    "log-normal 0.25": Population(_log_normal(0.25)),
    "log-normal 0.5": Population(_log_normal(0.5)),
    "log-normal 1": Population(_log_normal(1.0)),
    "exponential 0.5": Population(_exponential(0.5)),
    "exponential 0.7": Population(_exponential(0.7)),
    "0.4 t(3)": Population(lambda rng, n: 0.4 * rng.standard_t(3, size=n)),
    "5 % wolves": Population(_wolves(0.05)),
    "2 % wolves": Population(_wolves(0.02)),
    "10 % goats": Population(_normal(0.3), goats=0.1),
    "Zipf counts": Population(_normal(0.3), counts="zipf"),
    "growing counts": Population(_normal(0.5), counts="growing"),
    "10 sessions": Population(_normal(0.3), n_sessions=10),
    "4 sessions": Population(_normal(0.3), n_sessions=4),
}
# Populations that a sceptic would try: heavier tails on one side or on both, and a minority that is moderately confusable.
FURTHER = {
    "Laplace": Population(_scaled(lambda rng, n: rng.laplace(size=n), 0.0, np.sqrt(2.0))),
    "0.4 t(4)": Population(lambda rng, n: 0.4 * rng.standard_t(4, size=n)),
    "gamma 0.5": Population(_scaled(lambda rng, n: rng.gamma(0.5, size=n), 0.5, np.sqrt(0.5))),
    "Pareto 3": Population(_scaled(lambda rng, n: rng.pareto(3.0, size=n), 0.5, np.sqrt(0.75))),
    "10 % at +1.5": Population(_wolves(0.1, 1.5)),
}
