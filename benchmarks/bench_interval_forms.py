"""Compare forms of confidence intervals for the FPR of unequal people; decision 14 has the table that this prints.

    python benchmarks/bench_interval_forms.py [--runs 500] [--people 60] [--fpr 0.01] [--population "exponential 0.5"]

All forms start from the same rate and the same influences of people.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm, t

from populations import POPULATIONS, Population
from simtree.evaluation._intervals import logit_interval, tally_interval, tally_pairs, wilson_interval
from simtree.evaluation._tallies import degrees_of_freedom
from simtree.pairs._sampling import PairSampler

LEVELS, N_DRAWS = np.array([0.025, 0.975]), 599
FORMS = (
    "Wilson with an effective size, degrees of freedom by kurtosis (decision 9)",
    "Student on the logit scale, degrees of freedom by kurtosis",
    "Student on the logit scale, n - 1 degrees of freedom",
    "Hall's transformation for skewness",
    "BCa bootstrap of the influences",
    "bootstrap-t of the influences on the logit scale",
    "stretched logit interval",
    "the same, with errors carried down from higher rates (chosen)",
)


def one_run(population: Population, n_people: int, fpr: float, seed: int) -> list[tuple[float, float]]:
    """Return the ends of all forms for one draw of people; without errors they are all the chosen one."""
    drawn = population.draw(n_people, np.random.default_rng([seed, n_people]))
    pairs = PairSampler(drawn.people).all_pairs()
    threshold = population.threshold(fpr)
    people = drawn.people[pairs.first], drawn.people[pairs.second]
    tally = tally_pairs(drawn.scores[pairs.first, pairs.second], pairs.same, *people, at=[threshold]).different
    place = int(np.flatnonzero(tally.thresholds == threshold)[0])
    rate, influence = float(tally.rates[place]), tally.influence().at([place])
    variance, df = influence.variance()
    values, shared = np.array([rate]), influence.shared()
    stretched = logit_interval(values, variance, df, shared, tally.n_pairs, influence.n_even / 2.0, 0.95)[0]
    chosen = tally_interval(tally, [place], 0.95)[0]
    if not 0.0 < rate < 1.0:
        return [tuple(chosen)] * len(FORMS)
    units, error = influence.units[:, 0], float(np.sqrt(variance[0]))
    few = float(degrees_of_freedom(influence.units, n_people)[0])
    size = min(rate * (1.0 - rate) / float(variance[0]), tally.n_pairs)  # of independent pairs with this variance
    on_logit = error / (rate * (1.0 - rate))
    draws = np.random.default_rng(seed).multinomial(n_people, np.full(n_people, 1.0 / n_people), size=N_DRAWS)
    return [
        tuple(wilson_interval(rate, max(size, 1.0), few)),
        tuple(expit(logit(rate) + t.ppf(LEVELS, few) * on_logit)),
        tuple(expit(logit(rate) + t.ppf(LEVELS, n_people - 1) * on_logit)),
        _hall(rate, units, error),
        _bca(rate, units, error, draws),
        _bootstrap_t(rate, units, on_logit, draws),
        tuple(stretched),
        tuple(chosen),
    ]


def _skewness(units: np.ndarray) -> float:
    return float(np.sum(units**3) / np.sum(units**2) ** 1.5)


def _hall(rate: float, units: np.ndarray, error: float) -> tuple[float, float]:
    """Return the ends from Hall's cubic transformation of Student's statistic."""
    skew = _skewness(units)
    a = skew / 3.0
    quantile = t.ppf(LEVELS[::-1], len(units) - 1)
    at = (np.cbrt(1.0 + 3.0 * a * (quantile - skew / 6.0)) - 1.0) / a if abs(a) > 1e-6 else quantile
    return tuple(rate - at * error)


def _bca(rate: float, units: np.ndarray, error: float, draws: np.ndarray) -> tuple[float, float]:
    """Return the ends of the bias-corrected and accelerated bootstrap, with the variance of pairs of people."""
    moved = draws @ units * error / np.sqrt(np.sum(units**2))
    bias = norm.ppf(np.clip(np.mean(moved < 0.0), 0.01, 0.99))
    z = bias + t.ppf(LEVELS, len(units) - 1)
    return tuple(rate + np.quantile(moved, norm.cdf(bias + z / (1.0 - _skewness(units) / 6.0 * z))))


def _bootstrap_t(rate: float, units: np.ndarray, on_logit: float, draws: np.ndarray) -> tuple[float, float]:
    """Return the ends of the studentised bootstrap on the logit scale."""
    moved = draws @ units
    squares = np.maximum(draws @ units**2 - moved**2 / len(units), 0.01 * np.sum(units**2))
    rates = np.clip(rate + moved, 0.02 * rate, 1.0 - 0.02 * (1.0 - rate))
    statistic = (logit(rates) - logit(rate)) * rates * (1.0 - rates) / np.sqrt(squares)
    return tuple(expit(logit(rate) - np.quantile(statistic, LEVELS[::-1]) * on_logit))


def main() -> None:
    """Print the coverage of each form as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--fpr", type=float, default=0.01)
    parser.add_argument("--population", choices=POPULATIONS, default="exponential 0.5")
    given = parser.parse_args()
    ends = np.array([one_run(POPULATIONS[given.population], given.people, given.fpr, seed) for seed in range(given.runs)])
    covered = np.mean((ends[..., 0] <= given.fpr) & (given.fpr <= ends[..., 1]), axis=0)
    print("| interval | covered |\n|---|---|")
    for form, share in zip(FORMS, covered, strict=True):
        print(f"| {form} | {100 * share:.0f} % |")


if __name__ == "__main__":
    main()
