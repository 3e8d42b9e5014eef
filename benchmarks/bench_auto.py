"""AutoSimilarity on MNIST (60,000 samples, 153 features): the chosen model, the time, and the accuracy on test images.

SIMTREE_DATA=folder python benchmarks/bench_auto.py [--tiny] [--out results]
"""

from __future__ import annotations

import json
import sys
import time

from accuracy.catalogue import mnist_split
from accuracy.protocol import FPR, SCALES
from measure import N_JOBS, tiny_and_out
from simtree import AutoSimilarity
from simtree._utils.files import write_atomically
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve, tpr_at_fpr

COLUMNS = ("tpr", "tpr_spread", "auc", "seconds")


def main() -> None:
    options = tiny_and_out(__doc__)
    split = mnist_split(SCALES["tiny" if options.tiny else "full"], 1, None)
    model = AutoSimilarity(time_budget=0.0 if options.tiny else None, n_jobs=N_JOBS, random_state=0)
    start = time.perf_counter()
    model.fit(split.X, split.y)
    seconds = time.perf_counter() - start
    results = {name: column.tolist() for name, column in model.results_.items()}
    rows = [[name, *(f"{results[column][k]:.3f}" for column in COLUMNS)] for k, name in enumerate(results["name"])]
    roc = roc_curve(model.pair_score(split.rows, split.X_test), split.same)
    rates = tpr_at_fpr(roc, list(FPR)).tolist()
    n, q = split.X.shape
    print(f"{n:,} x {q} in {seconds:.0f} s with {N_JOBS} threads; candidates are compared at an FPR of {model.fpr_:g}:\n")
    print(markdown_table(["candidate", *COLUMNS], rows))
    at = ", ".join(f"{rate:.3f} at {fpr:g}" for fpr, rate in zip(FPR, rates, strict=True))
    print(f"\nChosen: {model.best_name_}. On test pairs: AUC {roc.auc():.4f}, TPR {at}.")
    found = {"seconds": seconds, "best": model.best_name_, "results": results, "auc": roc.auc(), "fpr": list(FPR), "tpr": rates}
    report = {"command": " ".join(["python", *sys.argv]), "shape": [n, q], "found": found}
    write_atomically(options.out / "bench_auto.json", json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
