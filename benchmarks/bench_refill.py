"""Effect of refilling at low false positive rates: a forest with and without it on keystroke data, split by person.

    SIMTREE_DATA=folder python benchmarks/bench_refill.py [--splits 5] [--trees 40] [--out results]

30 of the 51 people are for training, the 21 others for test; features are transformed by their training quantiles. With
refilling, half of the trees are grown on new pairs that are difficult for the other half; the number of trees is the same. Half
of the trees without refilling is the first stage alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.preprocessing import QuantileTransformer

from simtree import SimilarityForest
from simtree._utils.files import write_atomically
from simtree.datasets import load_keystroke
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs._sampling import PairSampler

FPR = [1e-1, 1e-2, 1e-3, 1e-4]
N_TEST = 1_000_000


def one_split(seed: int, n_trees: int, n_pairs: int) -> dict[str, dict[str, float]]:
    """Return the AUC, TPR and time of each forest on one split."""
    X, y = load_keystroke()
    train = np.isin(y, np.random.default_rng(seed).permutation(51)[:30])
    X = QuantileTransformer(random_state=0).fit(X[train]).transform(X)
    test = PairSampler(y[~train]).sample(N_TEST, np.random.default_rng(seed), positive_fraction=0.2)
    rows = np.column_stack([test.first, test.second])
    found = {}
    forests = (("half of the trees, without", n_trees // 2, False), ("without", n_trees, False), ("with refill", n_trees, True))
    for name, n_estimators, refill in forests:
        forest = SimilarityForest(
            n_estimators=n_estimators, n_pairs=n_pairs, min_pairs_split=100, refill=refill, n_jobs=2, random_state=seed
        )
        start = time.perf_counter()
        forest.fit(X[train], y[train])
        seconds = time.perf_counter() - start
        roc = roc_curve(forest.pair_score(rows, X[~train]), test.same)
        rates = {f"tpr_at_{fpr:g}": float(tpr) for fpr, tpr in zip(FPR, tpr_at_fpr(roc, FPR), strict=True)}
        found[name] = {"auc": roc.auc(), **rates, "fit_seconds": seconds}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--trees", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    if not os.environ.get("SIMTREE_DATA"):
        sys.exit("SIMTREE_DATA is not set; set it to the folder that holds cmu_keystroke.npz.")
    runs = [one_split(seed, arguments.trees, arguments.pairs) for seed in range(arguments.splits)]
    print("| forest | split | AUC | " + " | ".join(f"TPR at {fpr:g}" for fpr in FPR) + " | fit (s) |")
    print("|---|---|---|" + "---|" * (len(FPR) + 1))
    for name in runs[0]:
        table = np.array([list(run[name].values()) for run in runs])
        for split, line in [*enumerate(table), ("mean", table.mean(axis=0))]:
            print(
                f"| {name} | {split} | {line[0]:.4f} | " + " | ".join(f"{x:.3f}" for x in line[1:-1]) + f" | {line[-1]:.1f} |"
            )
    report = {"command": " ".join(sys.argv), "trees": arguments.trees, "pairs": arguments.pairs, "n_test": N_TEST, "runs": runs}
    write_atomically(arguments.out / "bench_refill.json", json.dumps(report, indent=1))
    print(f"\nWritten to {arguments.out / 'bench_refill.json'}.")


if __name__ == "__main__":
    main()
