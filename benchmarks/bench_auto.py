"""AutoSimilarity with default settings: what it chooses, its own figure against the test, its members alone, and the time.

SIMTREE_DATA=folder python benchmarks/bench_auto.py [--only keystroke digits] [--seeds 5] [--tiny] [--out results]

Unseen identities (open sets) are tested on the 40 % of the identities that are not trained on, closed sets on 40 % of the
samples of each class; mnist has its own split. Rates with fewer than 30 different test pairs are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from accuracy import data
from accuracy.catalogue import mnist_split
from accuracy.protocol import MIN_DIFFERENT, SCALES
from measure import N_JOBS
from problems import row_numbers
from simtree import AutoSimilarity, StackedSimilarity
from simtree._utils.files import write_atomically
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve
from simtree.pairs import split_identities
from simtree.pairs._sampling import PairSampler

FPR = (1e-2, 1e-3, 1e-4, 1e-5)
TEST_PAIRS = {"full": 1_200_000, "tiny": 20_000}
SAME_SHARE = 1 / 6
OPEN = {"keystroke": data.read_keystroke, "audiomnist": data.read_audiomnist, "lfw": data.read_lfw}
CLOSED = {name: (lambda name=name: data.read_uci(name)) for name in data.UCI}


def random_split(samples: data.Labelled, open_set: bool, seed: int, n_pairs: int) -> data.Split:
    """Return 60 % of the identities, or of the samples of each class, for training, and pairs of the others."""
    X, y = samples.X, samples.y
    if open_set:
        parts = split_identities(y, {"train": 0.6, "test": 0.4}, random_state=seed)
        train, test = parts["train"], parts["test"]
    else:
        train, test = train_test_split(np.arange(len(y)), train_size=0.6, stratify=y, random_state=seed)
    pairs = PairSampler(y[test]).sample(n_pairs, np.random.default_rng(seed), positive_fraction=SAME_SHARE, shuffle=False)
    return data.Split(X[train], y[train], y[train] if open_set else None, X[test], row_numbers(pairs), pairs.same)


def split_of(name: str, seed: int, size: str) -> tuple[data.Split, bool]:
    """Return training and test data of a problem, and whether its identities are unseen."""
    n_pairs = TEST_PAIRS[size]
    if size == "tiny":
        return random_split(data.make_samples(), name in OPEN, seed, n_pairs), name in OPEN
    if name == "mnist":
        return mnist_split(SCALES["full"], seed + 1, None), False
    samples = data.read_digits() if name == "digits" else (OPEN | CLOSED)[name]()
    return random_split(samples, name in OPEN, seed, n_pairs), name in OPEN


def run(name: str, seed: int, size: str) -> dict[str, Any]:
    """Fit AutoSimilarity once, and return what it chose, promised and reached."""
    split, open_set = split_of(name, seed, size)
    n_different = int(np.count_nonzero(~split.same))
    rates = [fpr for fpr in FPR if fpr * n_different >= MIN_DIFFERENT]
    budget = 0.0 if size == "tiny" else None
    model = AutoSimilarity(time_budget=budget, open_set=open_set, n_jobs=N_JOBS, random_state=seed)
    start = time.perf_counter()
    model.fit(split.X, split.y)
    seconds = time.perf_counter() - start
    roc = roc_curve(model.pair_score(split.rows, split.X_test), split.same)
    best = model.best_estimator_
    alone = {}
    if isinstance(best, StackedSimilarity):
        for (member, _), fitted in zip(best.estimators, best.estimators_, strict=True):
            alone[member] = roc_curve(fitted.pair_score(split.rows, split.X_test), split.same).at(rates).tolist()
    promised = model.performance_["tpr"]
    reached = float(roc.at(model.fpr_))
    return {
        "problem": name,
        "seed": seed,
        "shape": list(split.X.shape),
        "open_set": open_set,
        "chosen": model.best_name_,
        "members": {n: w for n, w in zip(model.results_["name"].tolist(), model.results_["weight"].tolist(), strict=True) if w},
        "fpr_": model.fpr_,
        "promised": list(promised),
        "reached": reached,
        "inside": bool(promised.low <= reached <= promised.high),
        "n_repeats": model.n_repeats_,
        "auc": roc.auc(),
        "fpr": rates,
        "tpr": roc.at(rates).tolist(),
        "alone": alone,
        "results": {column: values.tolist() for column, values in model.results_.items()},
        "seconds": seconds,
    }


def table(runs: list[dict[str, Any]]) -> str:
    """Return one line per run."""
    rows = []
    for found in runs:
        at = dict(zip(found["fpr"], found["tpr"], strict=True))
        best = {fpr: max((rates[k] for rates in found["alone"].values()), default=None) for k, fpr in enumerate(found["fpr"])}
        promised = "{:.3f} [{:.3f}, {:.3f}]".format(*found["promised"])
        figures = [f"{at[fpr]:.3f}" + ("" if best[fpr] is None else f" ({best[fpr]:.3f})") if fpr in at else "" for fpr in FPR]
        members = ", ".join(f"{name} {share:.2f}" for name, share in found["members"].items())
        rows.append(
            [found["problem"], str(found["seed"]), members, promised, f"{found['reached']:.3f} at {found['fpr_']:.2g}",
             "yes" if found["inside"] else "no", f"{found['auc']:.4f}", *figures, f"{found['seconds']:.0f}"]
        )  # fmt: skip
    names = ["problem", "seed", "members and shares", "own figure", "test", "inside", "AUC", *(f"{fpr:g}" for fpr in FPR), "s"]
    return str(markdown_table(names, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*OPEN, "digits", *CLOSED, "mnist"]
    parser.add_argument("--only", nargs="+", choices=known, default=["keystroke", "digits"], help="problems")
    parser.add_argument("--seeds", type=int, default=1, help="number of splits (1)")
    parser.add_argument("--tiny", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (results)")
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    runs = []
    for name in options.only:
        for seed in range(options.seeds):
            runs.append(run(name, seed, "tiny" if options.tiny else "full"))
            report = {"command": " ".join(["python", *sys.argv]), "runs": runs}
            write_atomically(options.out / "bench_auto.json", json.dumps(report, indent=1) + "\n")
    print(f"In brackets the best member alone; {N_JOBS} threads.\n\n{table(runs)}")
    inside = sum(found["inside"] for found in runs)
    print(f"\nThe test lies inside the model's own interval in {inside} of {len(runs)} runs.")


if __name__ == "__main__":
    main()
