"""A forest on MNIST pairs beside LightGBM: accuracy, time of a fit with all its costs, scaling, and scores a second.

    SIMTREE_DATA=folder python benchmarks/bench_forest.py [--out results]

simtree: 44 trees of depth 15 with classification trees of depth 5, 60 of the 306 coordinates a test, 100,000 pairs a tree.
LightGBM: 100 trees of 63 leaves on 1,000,000 pairs of the same mix, whose features (|x - x'| and x + x') it needs as a matrix:
making it is counted. Needs the extra ``simtree[bench]``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from problems import materialise, mnist, row_numbers
from simtree import CartSplitter, SimilarityForest
from simtree._files import write_atomically
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs import PairSampler

FPR = [1e-1, 1e-2, 1e-3, 1e-4]


def timed(work):
    """Seconds, and what the work returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def forest(n_pairs: int, *, n_trees: int = 44, n_jobs: int = 2) -> SimilarityForest:
    return SimilarityForest(
        n_estimators=n_trees,
        max_depth=15,
        splitter=CartSplitter(max_depth=5, max_features=60),
        n_pairs=n_pairs,
        n_jobs=n_jobs,
        random_state=0,
    )


def lightgbm_fit(X: np.ndarray, rows: np.ndarray, same: np.ndarray):
    """A LightGBM model of the pairs, from their row numbers."""
    import lightgbm

    model = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=63, n_jobs=2, verbose=-1, random_state=0)
    return model.fit(materialise(X, rows), same)


def accuracy(name: str, scores: np.ndarray, same: np.ndarray) -> dict[str, object]:
    roc = roc_curve(scores, same)
    return {"model": name, "auc": roc.auc(), **{f"{fpr:g}": float(t) for fpr, t in zip(FPR, tpr_at_fpr(roc, FPR), strict=True)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    if not os.environ.get("SIMTREE_DATA"):
        sys.exit("SIMTREE_DATA is not set; set it to the folder that holds MNIST.")
    points = mnist()
    X, y, X_test, y_test = points.X, points.y, points.X_test, points.y_test
    test = PairSampler(y_test).draw(300_000, np.random.default_rng(0), positive_fraction=None)
    test_rows = row_numbers(test)
    forest(1000, n_trees=2).fit(X, y).pair_score(test_rows[:2000], X_test)  # compile first

    fits: dict[str, float] = {}
    fits["simtree 44 x 100,000, 2 jobs"], grown = timed(lambda: forest(100_000).fit(X, y))
    fits["simtree 44 x 200,000, 2 jobs"], larger = timed(lambda: forest(200_000).fit(X, y))
    fits["simtree 12 x 100,000, 2 jobs"], _ = timed(lambda: forest(100_000, n_trees=12).fit(X, y))
    fits["simtree 12 x 100,000, 1 job"], _ = timed(lambda: forest(100_000, n_trees=12, n_jobs=1).fit(X, y))
    million = PairSampler(y).draw(1_000_000, np.random.default_rng(1))
    million_rows = row_numbers(million)
    fits["LightGBM 100 trees, 1,000,000"], peer = timed(lambda: lightgbm_fit(X, million_rows, million.same))

    scores: dict[str, float] = {}
    scores["simtree 44 trees"], _ = timed(lambda: grown.pair_score(million_rows, X))
    scores["LightGBM 100 trees, features counted"], _ = timed(lambda: peer.predict_proba(materialise(X, million_rows)))

    table = [accuracy("simtree 44 x 100,000, llr", grown.pair_score(test_rows, X_test), test.same)]
    table.append(accuracy("simtree 44 x 200,000, llr", larger.pair_score(test_rows, X_test), test.same))
    larger.aggregation = "mean_rank"
    table.append(accuracy("simtree 44 x 200,000, mean_rank", larger.pair_score(test_rows, X_test), test.same))
    table.append(accuracy("LightGBM 1,000,000", peer.predict_proba(materialise(X_test, test_rows))[:, 1], test.same))

    print("| model | AUC | " + " | ".join(f"TPR at {fpr:g}" for fpr in FPR) + " |\n|---|---|" + "---|" * len(FPR))
    for row in table:
        print(f"| {row['model']} | {row['auc']:.4f} | " + " | ".join(f"{row[f'{fpr:g}']:.3f}" for fpr in FPR) + " |")
    print("\n| fit, all costs | seconds |\n|---|---|")
    for name, seconds in fits.items():
        print(f"| {name} | {seconds:.1f} |")
    print("\n| scoring 1,000,000 pairs | seconds |\n|---|---|")
    for name, seconds in scores.items():
        print(f"| {name} | {seconds:.1f} |")
    a, b = fits["simtree 44 x 100,000, 2 jobs"], fits["LightGBM 100 trees, 1,000,000"]
    print(f"\nfit against LightGBM: {a / b:.2f} (goal: at most 0.5)")
    print(f"twice the pairs: {fits['simtree 44 x 200,000, 2 jobs'] / a:.2f} times the time (goal: at most 2.2)")
    one, two = fits["simtree 12 x 100,000, 1 job"], fits["simtree 12 x 100,000, 2 jobs"]
    print(f"twice the jobs: {one / two:.2f} times the speed (goal: at least 1.7)")
    ours, theirs = scores.values()
    print(f"pairs a second against LightGBM: {theirs / ours:.2f} (goal: at least 1)")
    report = {"command": " ".join(sys.argv), "accuracy": table, "fits": fits, "scores": scores}
    write_atomically(arguments.out / "bench_forest.json", json.dumps(report, indent=1))
    print(f"\nWritten to {arguments.out / 'bench_forest.json'}.")


if __name__ == "__main__":
    main()
