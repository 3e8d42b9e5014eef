"""Simulate the guarantee of `calibrate_threshold(enrol=...)` for people who differ as probes and as enrolled identities.

    python benchmarks/bench_enrolled.py [--people 150] [--runs 40] [--fusions mean] [--jobs 1] [--out docs/results]

A person has an effect on scores as a probe (wolves match everybody) and one as an enrolled identity (lambs are matched by
everybody): the same one, two independent ones, or one in one role only. Effects are those of benchmarks/populations.py. Each
person has three enrolled samples and two probes. A run draws people, chooses a threshold for fused scores, and compares its
true FPR per pair of people, known from a large sample of other people, with the target. Of the runs in which a threshold is
promised, at most one in twenty may exceed it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from populations import NOISE, OF_PAIR, OF_SAMPLE, POPULATIONS
from simtree._utils.files import write_atomically
from simtree.evaluation._enrolled import Templates, fused_scorer
from simtree.evaluation._templates import Fusion
from simtree.evaluation._thresholds import Goal, choose_threshold

ROOT = Path(__file__).parents[1]
N_ENROLLED, N_PROBES, TARGET, CONFIDENCE = 3, 2, 1e-2, 0.95
N_TRUTH = 1_000_000
NAMES = ("normal 0.3", "exponential 0.5", "5 % wolves")
ROLES = ("same", "independent", "probes", "enrolled")


def draw_effects(name: str, role: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the effects of people as probes and as enrolled identities."""
    effects = POPULATIONS[name].effects
    of_probes = effects(rng, n)
    of_enrolled = of_probes if role == "same" else effects(rng, n)
    return of_probes if role != "enrolled" else np.zeros(n), of_enrolled if role != "probes" else np.zeros(n)


def true_scores(name: str, role: str, fusion: Fusion) -> np.ndarray:
    """Return the sorted fused scores of many independent pairs of people."""
    rng = np.random.default_rng(7)
    of_probes, of_enrolled = draw_effects(name, role, N_TRUTH, rng)
    scores = of_probes + np.roll(of_enrolled, 1) + OF_PAIR * rng.normal(size=N_TRUTH) + OF_SAMPLE * rng.normal(size=N_TRUTH)
    of_samples = rng.normal(scale=np.hypot(OF_SAMPLE, NOISE), size=(N_TRUTH, N_ENROLLED))
    return np.sort(fusion(scores[:, None] + of_samples, np.array([0]))[:, 0])


def one_run(name: str, role: str, fusion: Fusion, n_people: int, seed: int) -> float | None:
    """Return the threshold that is promised for one draw of people; None if it is refused."""
    rng = np.random.default_rng([seed, n_people])
    of_probes, of_enrolled = draw_effects(name, role, n_people, rng)
    y = np.repeat(np.arange(n_people), N_ENROLLED + N_PROBES)
    enrol = np.tile(np.arange(N_ENROLLED + N_PROBES) < N_ENROLLED, n_people)
    of_samples = OF_SAMPLE * rng.normal(size=len(y)) + np.where(enrol, of_enrolled[y], of_probes[y])
    of_pairs = OF_PAIR * rng.normal(size=(n_people, n_people))  # of a probe's person and an enrolled one: not symmetric

    def score(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        same = np.where(y[first] == y[second], 3.0, of_pairs[y[first], y[second]])
        return same + of_samples[first] + of_samples[second] + NOISE * rng.normal(size=len(first))

    templates = Templates.of(y, enrol)
    goal = Goal(max_fpr=TARGET, confidence=CONFIDENCE)
    try:
        scorer = templates.scorer(fused_scorer(score, fusion, None))
        return choose_threshold(scorer, templates.comparisons(), templates.identities, goal).threshold
    except ValueError:
        return None


def cell(name: str, role: str, fusion: Fusion, n_people: int, runs: int, jobs: int) -> dict[str, Any]:
    """Return how many of some runs were promised, and how many of these promises were broken."""
    truth = true_scores(name, role, fusion)
    found = Parallel(n_jobs=jobs)(delayed(one_run)(name, role, fusion, n_people, seed) for seed in range(runs))
    rates = np.array([1.0 - np.searchsorted(truth, threshold) / len(truth) for threshold in found if threshold is not None])
    return {
        "population": name,
        "role": role,
        "fusion": fusion.name,
        "n_people": n_people,
        "n_runs": runs,
        "n_promised": len(rates),
        "n_broken": int(np.count_nonzero(rates > TARGET)),
        "median_fpr": float(np.median(rates)) if len(rates) else None,
    }


def row(found: dict[str, Any]) -> str:
    """Return a line of the table."""
    median = "" if found["median_fpr"] is None else f"{found['median_fpr']:.4f}"
    names = " | ".join(str(found[name]) for name in ("population", "role", "fusion", "n_people"))
    return f"| {names} | {found['n_promised']} of {found['n_runs']} | {found['n_broken']} | {median} |"


def table(report: dict[str, Any]) -> str:
    """Return the results as a table in Markdown."""
    head = [
        "| people differ by | in the role | fusion | people | promised | broken | median true FPR |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *map(row, report["cells"])])


def main() -> None:
    """Run the simulation and write its report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[150], help="numbers of people")
    parser.add_argument("--runs", type=int, default=40, help="runs per cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--fusions", nargs="+", default=["mean"], choices=["mean", "max"], help="fusions")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of the report")
    options = parser.parse_args()
    cells = []
    for name, role, fusion, n in itertools.product(NAMES, ROLES, options.fusions, options.people):
        cells.append(cell(name, role, Fusion(fusion), n, options.runs, options.jobs))
        print(row(cells[-1]), file=sys.stderr, flush=True)
    report = {"target": TARGET, "confidence": CONFIDENCE, "n_enrolled": N_ENROLLED, "n_probes": N_PROBES, "cells": cells}
    print(table(report))
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / "enrolled.json", (json.dumps(report, indent=1) + "\n").encode())
    print(f"Written to {options.out / 'enrolled.json'}.")


if __name__ == "__main__":
    main()
