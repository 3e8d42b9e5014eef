"""Search for the learning rate and the size of trees of gradient boosting, once per problem, for `accuracy.settings`.

    python benchmarks/accuracy/tune.py [--problems keystroke lfw] [--libraries LightGBM XGBoost] [--metrics "log loss"]

Each setting is fitted on the features f of 100,000 pairs of the first inner fold of split 0, and scores the pairs of its other
side; reported splits take no part in it. First the sizes of trees are compared at the higher learning rate, then the lower rate
is tried with the best of them. The setting with the highest mean of AUC and TPRs is stored, and all runs reuse it, whatever
their pairs and coordinates. The number of rounds is not stored, since each run stops early by itself. ``--metrics``
compares metrics for early stopping instead, and stores nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from accuracy import ours, peers_boosted
from accuracy.catalogue import BENCHMARKS
from accuracy.peers import Learn
from accuracy.protocol import SCALES, Model, Problem, Scale, Unit, one_run, tpr_at
from accuracy.settings import FILE, RATES, SIZES, Setting, first_setting
from simtree._utils.files import write_atomically
from simtree.experiments._results import markdown_table

N_PAIRS = 100_000
# Share of the test pairs of a reported run: candidates differ by more than that costs in precision.
TEST_SHARE = 0.2
PROBLEMS = {problem.name: problem for benchmark in BENCHMARKS.values() for problem in benchmark.problems}


def learn_with(library: str, setting: Setting, **more: Any) -> Learn:
    """Return the training of a library with a setting, without a second fit on all samples."""
    how = {"n_pairs": N_PAIRS, "setting": setting, "refit": False} | more
    if library == "simtree":
        return partial(ours.boosted, fresh=False, **how)
    return partial(peers_boosted.boosted, library=library, **how)


def result_of(learn: Learn, problem: Problem, scale: Scale, n_jobs: int) -> dict[str, Any]:
    """Train on the first inner fold of split 0; return the metrics, their mean, and the time."""
    start = time.perf_counter()
    found = one_run(Model("candidate", learn), Unit(problem, "choice", 0), scale, n_jobs)
    rates = {tpr_at(fpr): rate for fpr, rate in zip(problem.fpr, found["tpr"], strict=True) if rate is not None}
    metrics = {"AUC": found["auc"], **rates}
    return {"mean": float(np.mean(list(metrics.values()))), **metrics, "seconds": round(time.perf_counter() - start, 1)}


def search(problem: Problem, library: str, scale: Scale, n_jobs: int) -> dict[str, Any]:
    """Return the best setting of a library, and the results of all of them."""
    tried: list[dict[str, Any]] = []

    def best_size(rate: float, sizes: Sequence[int]) -> int:
        for size in sizes:
            setting = Setting(rate, size)
            found = result_of(learn_with(library, setting), problem, scale, n_jobs)
            tried.append({**asdict(setting), **found})
            print(f"{problem.name}, {library}, {setting}: {found}", file=sys.stderr, flush=True)
        return int(max(tried, key=lambda entry: entry["mean"])["size"])

    best_size(RATES[1], [best_size(RATES[0], SIZES[library])])
    best = max(tried, key=lambda entry: entry["mean"])
    return {
        "setting": asdict(Setting(best["learning_rate"], best["size"])),
        "version": version(library.lower()),
        "tried": tried,
    }


def compare_metrics(problem: Problem, libraries: list[str], metrics: list[str], scale: Scale, n_jobs: int) -> str:
    """Return a table of the results of early stopping by several metrics, with the first setting of each library."""
    rows = []
    for library in libraries:
        for metric in metrics:
            found = result_of(learn_with(library, first_setting(library), metric=metric), problem, scale, n_jobs)
            rows.append([library, metric, *(f"{value:.4f}" for value in found.values())])
    return markdown_table(["library", f"{problem.name}, stopped by", *found], rows)


def store(file: Path, problem: str, library: str, found: dict[str, Any], command: str) -> None:
    """Add the results of a library to the file, beside those of other libraries and problems."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    libraries = known.get(problem, {}).get("libraries", {})
    known[problem] = {"command": command, "libraries": libraries | {library: found}}
    write_atomically(file, json.dumps(known, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS), metavar="PROBLEM")
    parser.add_argument("--libraries", nargs="+", choices=list(SIZES), default=list(SIZES), help="libraries (all)")
    parser.add_argument("--metrics", nargs="+", choices=list(peers_boosted.SAME_SHARE), help="metrics to compare for stopping")
    parser.add_argument("--tiny", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--n-jobs", "--n_jobs", type=int, default=2, help="number of parallel jobs (2)")
    parser.add_argument("--out", type=Path, default=FILE, help="JSON file of the settings")
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    scale = SCALES["tiny"] if options.tiny else replace(SCALES["full"], test_pairs=TEST_SHARE)
    for name in options.problems:
        problem = PROBLEMS[name]
        if options.metrics:
            libraries = [library for library in options.libraries if library != "simtree"]
            print(compare_metrics(problem, libraries, options.metrics, scale, options.n_jobs))
            continue
        for library in options.libraries:
            found = search(problem, library, scale, options.n_jobs)
            store(options.out, name, library, found, f"python benchmarks/accuracy/tune.py --problems {name}")
            print(f"{name}, {library}: {found['setting']}", flush=True)


if __name__ == "__main__":
    main()
