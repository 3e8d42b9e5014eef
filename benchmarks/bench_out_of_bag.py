"""Out-of-bag figures beside held-out people: on noise, with signal, and on keystroke data; and refilling on few people.

    SIMTREE_DATA=folder python benchmarks/bench_out_of_bag.py [--runs 20] [--splits 10] [--jobs 2] [--out docs/results]
    python benchmarks/bench_out_of_bag.py --quick            two runs of each simulation, without keystroke data

Held-out people come in groups of as many as there are for training, because a rate at a low FPR depends on their number.
Without SIMTREE_DATA the simulations alone are run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from simtree import SimilarityForest, WithinClassWhitening
from simtree._utils.files import write_atomically
from simtree.datasets import load_keystroke
from simtree.metrics import Roc, roc_curve, tpr_at_fpr
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._directions import discriminant_directions
from simtree.pairs._sampling import PairSampler

FPR = (0.1, 0.01, 0.001)
N_PEOPLE, N_SAMPLES = 30, 10
N_TREES = (20, 50, 100, 200)
N_GROUPS = 10
MAX_PAIRS = 200_000

Labelled = tuple[np.ndarray, np.ndarray]
Figures = dict[str, list[float]]


def people(n_people: int, n_samples: int, n_features: int, spread: float, rng: np.random.Generator) -> Labelled:
    """Return samples around a centre per person; the centres have this standard deviation, samples 1 around them."""
    y = np.repeat(np.arange(n_people), n_samples)
    return spread * rng.normal(size=(n_people, n_features))[y] + rng.normal(size=(len(y), n_features)), y


def figures(roc: Roc) -> list[float]:
    """Return the AUC and the TPR at each FPR."""
    return [roc.auc(), *tpr_at_fpr(roc, list(FPR)).tolist()]


def held_out(forest: SimilarityForest, samples: Labelled) -> list[float]:
    """Return the figures of a forest on labelled samples."""
    X, y = samples
    pairs = PairSampler(y).sample(MAX_PAIRS, np.random.default_rng(0))
    return figures(roc_curve(forest.pair_score(np.column_stack([pairs.first, pairs.second]), X), pairs.same))


def fitted(samples: Labelled, n_jobs: int, **parameters: object) -> SimilarityForest:
    """Return a forest fitted without the warnings, which say that trees are few; that is what is shown here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return SimilarityForest(n_jobs=n_jobs, **parameters).fit(*samples)


def one_curve(seed: int, n_trees: int, spread: float, n_jobs: int) -> Figures:
    """Return out-of-bag and held-out figures and the default threshold of one forest on simulated people."""
    rng = np.random.default_rng(seed)
    draw = lambda: people(N_PEOPLE, N_SAMPLES, 8, spread, rng)  # noqa: E731
    forest = fitted(
        draw(), n_jobs, n_estimators=n_trees, max_depth=8, n_pairs=3000, bag="classes", oob_score=True, random_state=seed
    )
    others = np.mean([held_out(forest, draw()) for _ in range(N_GROUPS)], axis=0)
    return {"out of bag": figures(forest.oob_roc_), "held out": others.tolist(), "threshold": [forest.threshold_]}


def one_leak(seed: int, n_jobs: int) -> Figures:
    """Return out-of-bag AUC on noise: of the features, and of features that were fitted on all labels before.

    A forest refuses to do the latter itself; here the samples are transformed first.
    """
    X, y = people(30, 6, 30, 0.0, np.random.default_rng(seed))
    pairs = PairSampler(y).all_pairs()
    directions = discriminant_directions(SamplePairs(X, X, pairs.first, pairs.second), pairs.same, 10, np.arange(30))
    whitened = WithinClassWhitening(random_state=seed).fit_transform(X, y)
    settings = {"n_estimators": 100, "max_depth": 6, "n_pairs": 2000, "bag": "classes", "oob_score": True, "random_state": seed}
    inputs = {"features": X, "whitened with all labels": whitened, "discriminant directions of all labels": X @ directions.T}
    return {name: [fitted((Z, y), n_jobs, **settings).oob_score_] for name, Z in inputs.items()}


def one_refill(seed: int, n_jobs: int) -> Figures:
    """Return the AUC on unseen people without and with refilling: 24 people, 8 samples each, 40 trees."""
    rng = np.random.default_rng(seed)
    known, others = people(24, 8, 8, 0.8, rng), people(80, 8, 8, 0.8, rng)
    forests = {
        name: fitted(known, n_jobs, n_estimators=40, n_pairs=20_000, refill=refill, random_state=seed)
        for name, refill in (("without refill", False), ("with refill", True))
    }
    kept = float(forests["with refill"].refilled_)
    return {**{name: [forest.score(*others)] for name, forest in forests.items()}, "second half kept": [kept]}


def one_split(seed: int, n_trees: int, n_jobs: int) -> Figures:
    """Return out-of-bag and held-out figures on keystroke data: 30 people for training, 21 others."""
    X, y = load_keystroke()
    train = np.isin(y, np.random.default_rng(seed).permutation(51)[:30])
    settings = {"min_pairs_split": 100, "n_pairs": 20_000, "bag": "classes", "oob_score": True, "random_state": seed}
    forest = fitted((X[train], y[train]), n_jobs, n_estimators=n_trees, **settings)
    return {"out of bag": figures(forest.oob_roc_), "held out": held_out(forest, (X[~train], y[~train]))}


def summary(runs: list[Figures]) -> dict[str, dict[str, list[float]]]:
    """Return the mean of each figure over runs and its standard error."""
    found = {}
    for name in runs[0]:
        table = np.array([run[name] for run in runs])
        error = table.std(axis=0, ddof=1) / len(table) ** 0.5 if len(table) > 1 else np.full(table.shape[1], np.nan)
        found[name] = {"mean": table.mean(axis=0).round(4).tolist(), "error": error.round(4).tolist()}
    return found


def simulate(n_runs: int, n_splits: int, n_jobs: int, trees: tuple[int, ...] = N_TREES) -> dict[str, object]:
    """Run everything; print a line per result as it is there."""
    result: dict[str, object] = {"runs": n_runs, "splits": n_splits}

    def measure(name: str, n: int, run: Callable[[int], Figures]) -> None:
        result[name] = summary([run(seed) for seed in range(n)])
        for what, found in result[name].items():
            shown = "  ".join(f"{m:.3f} ± {e:.3f}" for m, e in zip(found["mean"], found["error"], strict=True))
            print(f"| {name} | {what} | {shown} |", flush=True)

    print(
        f"| simulation | figure | AUC, TPR at {', '.join(f'{fpr:g}' for fpr in FPR)} (mean ± standard error) |\n|---|---|---|"
    )
    measure("leak on noise", n_runs, lambda seed: one_leak(seed, n_jobs))
    for name, spread in (("noise", 0.0), ("signal", 2.0)):
        for n_trees in trees:
            measure(f"{name}, {n_trees} trees", n_runs, lambda seed, n=n_trees, s=spread: one_curve(seed, n, s, n_jobs))
    measure("refill", n_runs, lambda seed: one_refill(seed, n_jobs))
    if n_splits:
        for n_trees in trees[1:3]:
            measure(f"keystroke, {n_trees} trees", n_splits, lambda seed, n=n_trees: one_split(seed, n, n_jobs))
    return result


def main() -> None:
    """Run the simulations and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--quick", action="store_true", help="two runs of each simulation, without keystroke data")
    arguments = parser.parse_args()
    n_splits = arguments.splits if os.environ.get("SIMTREE_DATA") and not arguments.quick else 0
    result = simulate(
        2 if arguments.quick else arguments.runs, n_splits, arguments.jobs, (20, 50) if arguments.quick else N_TREES
    )
    file = arguments.out / "out_of_bag.json"
    write_atomically(file, json.dumps({"command": " ".join(sys.argv), **result}, indent=1) + "\n")
    print(f"\nWritten to {file}.")


if __name__ == "__main__":
    main()
