"""Simulate how often a band of the ROC curve holds at all thresholds at once, for unequal people.

    python benchmarks/bench_bands.py [--runs 200] [--people 60] [--populations "no effects" "normal 0.7" ...]

The populations are in benchmarks/populations.py. A band holds if both true rates lie within their intervals at every threshold
of the band; the intervals of single thresholds are beside it, to show why they are not enough for a point that is picked.
"""

from __future__ import annotations

import argparse

import numpy as np

from populations import POPULATIONS
from simtree.evaluation._intervals import tally_pairs
from simtree.evaluation._simultaneous import simultaneous_band
from simtree.pairs._sampling import PairSampler

CONFIDENCE = 0.95
SHOWN = ("no effects", "normal 0.3", "normal 0.7", "log-normal 0.5", "5 % wolves", "10 % goats", "Zipf counts")


def one_run(name: str, n_people: int, seed: int) -> tuple[bool, bool]:
    """Return whether the intervals of single thresholds, and the band, hold everywhere in one draw of people."""
    population = POPULATIONS[name]
    drawn = population.draw(n_people, np.random.default_rng([seed, n_people, list(POPULATIONS).index(name)]))
    pairs = PairSampler(drawn.people).all_pairs()
    people = drawn.people[pairs.first], drawn.people[pairs.second]
    tallies = tally_pairs(drawn.scores[pairs.first, pairs.second], pairs.same, *people)
    band = simultaneous_band(tallies, CONFIDENCE)
    truth = population.rates(band.thresholds)
    single = tallies.rate_intervals(CONFIDENCE)
    return holds(truth, single), holds(truth, (band.fpr_interval, band.tpr_interval))


def holds(truth: tuple[np.ndarray, np.ndarray], intervals: tuple[np.ndarray, np.ndarray]) -> bool:
    """Return whether all rates lie within their intervals."""
    return all(bool(np.all((ends[:, 0] <= true) & (true <= ends[:, 1]))) for true, ends in zip(truth, intervals, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--populations", nargs="+", choices=list(POPULATIONS), default=SHOWN)
    options = parser.parse_args()
    print(f"{options.people} people, {options.runs} runs: share in which all of the curve is inside")
    print(f"{'population':18}{'single intervals':>18}{'band':>8}")
    for name in options.populations:
        single, band = np.mean([one_run(name, options.people, seed) for seed in range(options.runs)], axis=0)
        print(f"{name:18}{single:18.2f}{band:8.2f}", flush=True)


if __name__ == "__main__":
    main()
