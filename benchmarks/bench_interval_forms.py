"""Compare forms of confidence intervals for unequal people; decision 14 has the tables that this prints.

    python benchmarks/bench_interval_forms.py [--runs 500] [--people 60] [--fpr 0.01] [--population "exponential 0.5"]
    python benchmarks/bench_interval_forms.py --searches [--runs 500]

All forms for the FPR start from the same rate and the same influences of people. Those for rank 1 and the FNIR of searches
differ from the chosen one in a part of it.
"""

from __future__ import annotations

import argparse
from unittest import mock

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm, t

from populations import POPULATIONS, Population
from simtree.evaluation import _search_rates
from simtree.evaluation._intervals import logit_interval, tally_interval, tally_pairs, wilson_interval
from simtree.evaluation._searching import SearchCounts
from simtree.metrics import Searches, fnir_at_fpir
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

# What is replaced in `simtree.evaluation._search_rates`.
OF_SEARCHES = {
    "leaving out one person at a time, stretched": {"gallery_variance": lambda *_: 0.0},
    "or 8 small galleries if they vary more, not stretched": {"SEARCH_STRETCH": 0.0, "ALARM_STRETCH": 0.0},
    "or 4 small galleries, stretched": {"N_GALLERIES": 4},
    "or 8 small galleries, stretched (chosen)": {"N_GALLERIES": 8},
    "or 16 small galleries, stretched": {"N_GALLERIES": 16},
}
SEARCHED, FPIR = (("normal 0.7", 200), ("log-normal 0.5", 200), ("exponential 0.5", 60)), 0.1


def one_search(population: Population, n_people: int, seed: int) -> tuple[list[np.ndarray], Searches]:
    """Return the ends of rank 1 and FNIR of all forms for one draw of people, and the result of searches."""
    drawn = population.draw(n_people, np.random.default_rng([seed, n_people]))
    sampler = PairSampler(drawn.people)
    same = sampler.same_pairs()
    ends = []
    for replaced in OF_SEARCHES.values():
        with mock.patch.multiple(_search_rates, **replaced):
            scores = drawn.scores[same.first, same.second]
            search = SearchCounts(*sampler.members(), same, scores, by_sample=False, by_identity=False)
            for block in sampler.iter_different(drawn.people, 1 << 20):
                search.add(block, drawn.scores[block.first, block.second])
            ends.append(np.array([search.rank1_interval(0.95)[1], search.fnir_intervals([FPIR], 0.95)[0]]))
    return ends, search.found()


def print_searches(runs: int) -> None:
    """Print the coverage and the median width of each form for searches."""
    columns = []
    for name, n_people in SEARCHED:
        found = [one_search(POPULATIONS[name], n_people, seed) for seed in range(runs)]
        searched = Searches(*(np.concatenate(column) for column in zip(*(searches for _, searches in found), strict=True)))
        truth = np.array([np.mean(searched.ranks == 1), fnir_at_fpir(searched, FPIR)])
        ends = np.array([of_forms for of_forms, _ in found])
        columns.append(
            (np.mean((ends[..., 0] <= truth) & (truth <= ends[..., 1]), axis=0), np.median(np.diff(ends)[..., 0], axis=0))
        )
    print("| interval | " + " | ".join(f"{name}, {n} people" for name, n in SEARCHED) + " |\n|---|---|---|---|")
    for row, form in enumerate(OF_SEARCHES):
        cells = [
            ", ".join(f"{100 * share:.0f} % ({wide:.2f})" for share, wide in zip(covered[row], width[row], strict=True))
            for covered, width in columns
        ]
        print(f"| {form} | {' | '.join(cells)} |")


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
    few = _degrees_of_freedom(units)
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


def _degrees_of_freedom(units: np.ndarray) -> float:
    """Return the degrees of freedom of a sum of squared influences (Satterthwaite): few, if few people dominate the sum."""
    squares = units**2
    kurtosis = len(units) * np.sum(squares**2) / np.sum(squares) ** 2
    return float(np.clip(2.0 * len(units) / (kurtosis - 1.0), 1.0, len(units) - 1.0))


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
    """Print the coverage of each form as a Markdown table; of searches, of rank 1 and of the FNIR, with median widths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--fpr", type=float, default=0.01)
    parser.add_argument("--population", choices=POPULATIONS, default="exponential 0.5")
    parser.add_argument("--searches", action="store_true", help="compare intervals of rank 1 and of the FNIR")
    given = parser.parse_args()
    if given.searches:
        print_searches(given.runs)
        return
    ends = np.array([one_run(POPULATIONS[given.population], given.people, given.fpr, seed) for seed in range(given.runs)])
    covered = np.mean((ends[..., 0] <= given.fpr) & (given.fpr <= ends[..., 1]), axis=0)
    print("| interval | covered |\n|---|---|")
    for form, share in zip(FORMS, covered, strict=True):
        print(f"| {form} | {100 * share:.0f} % |")


if __name__ == "__main__":
    main()
