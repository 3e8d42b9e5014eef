"""Representations of samples: accuracy on unseen people, and on known classes.

    SIMTREE_DATA=folder python benchmarks/bench_representation.py [--only audio,keystroke,lfw,mnist] [--splits 2 3 4]

Each representation is fitted on the training samples; test pairs are scored by the cosine of the transformed samples and by a
forest on them. audio, keystroke and lfw are split by person (36 of 60 speakers, 30 of 51 typists and 60 % of the people for
training); mnist has other images of the ten digits for test. ``--tiny`` uses synthetic clusters to check that everything runs.
Parameters were chosen on splits 0 and 1.
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
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from problems import Samples, clusters, mnist
from simtree import (
    ForestPosterior,
    KernelDiscriminant,
    LandmarkFeatures,
    MarginalQuantiles,
    SimilarityForest,
    WithinClassWhitening,
)
from simtree._utils.files import write_atomically
from simtree.datasets import load_keystroke
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs

FPR = [1e-1, 1e-2, 1e-3, 1e-4]
FILES = {"audio": "audiomnist_mfcc60.npz", "lfw": "lfw_dlib128.npz"}
N_TO_TRAIN = {"audio": 36, "keystroke": 30, "lfw": 3449}
N_TEST = 1_000_000
N_IMAGES = 20_000
# Proportion of same pairs among test pairs.
SAME = {"audio": 0.2, "keystroke": 0.2, "lfw": 0.02, "mnist": 0.1, "tiny": 0.1}


def samples_of(name: str, seed: int) -> Samples:
    """Return training and test samples."""
    if name == "tiny":
        return clusters()
    if name == "mnist":
        found = mnist()
        return Samples(found.X[:N_IMAGES], found.y[:N_IMAGES], found.X_test, found.y_test)
    if name == "keystroke":
        X, y = load_keystroke()
    else:
        with np.load(Path(os.environ["SIMTREE_DATA"], FILES[name]), allow_pickle=False) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    train = np.isin(y, np.random.default_rng(seed).permutation(y.max() + 1)[: N_TO_TRAIN[name]])
    return Samples(X[train], y[train], X[~train], y[~train])


def representations(name: str) -> dict[str, Any]:
    """Return the representations by name; None is the raw features."""
    first = [MarginalQuantiles(output="normal" if name == "audio" else "uniform")] if name in ("audio", "keystroke") else []
    given: dict[str, Any] = {"raw": None}
    if first:
        given["quantiles"] = first[0]
    emphasis = {"audio": 0.25}.get(name, 0.0)
    shrinkage, center = {"lfw": (0.6, False)}.get(name, (0.1, True))
    n_trees = 20 if name == "tiny" else 200
    learned = {
        "posterior": [ForestPosterior(n_estimators=n_trees, n_jobs=2, random_state=0)],
        "discriminant": [KernelDiscriminant(n_jobs=2, random_state=0)],
        "discriminant, alpha 1": [KernelDiscriminant(alpha=1.0, n_jobs=2, random_state=0)],
        "discriminant, Fourier features": [KernelDiscriminant(landmarks="fourier", n_jobs=2, random_state=0)],
        "whitening": [WithinClassWhitening(shrinkage=shrinkage, emphasis=emphasis, center=center, random_state=0)],
        "landmarks, whitening": [
            LandmarkFeatures(random_state=0),
            WithinClassWhitening(shrinkage=0.01, emphasis=emphasis, random_state=0),
        ],
    }
    return given | {label: make_pipeline(*clone(first), *steps) for label, steps in learned.items()}


def rates(scores: np.ndarray, same: np.ndarray) -> dict[str, float]:
    roc = roc_curve(scores, same)
    return {"auc": roc.auc()} | {f"tpr_at_{fpr:g}": float(tpr) for fpr, tpr in zip(FPR, tpr_at_fpr(roc, FPR), strict=True)}


def cosines(Z: np.ndarray, pairs: IndexPairs) -> np.ndarray:
    """Return the cosine of each pair, computed in blocks."""
    unit = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300)
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), 100_000):
        block = slice(start, start + 100_000)
        found[block] = np.einsum("ij,ij->i", unit[pairs.first[block]], unit[pairs.second[block]])
    return found


def n_bytes(value: Any) -> int:
    """Return the total size in bytes of the arrays of a fitted model."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(map(n_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(n_bytes, value))
    return n_bytes(vars(value)) if hasattr(value, "__dict__") else 0


def one_split(name: str, seed: int, n_trees: int, n_pairs: int, n_test: int) -> dict[str, dict[str, float]]:
    """Return the metrics of each representation, by cosine and by a forest."""
    samples = samples_of(name, seed)
    test = PairSampler(samples.y_test).sample(n_test, np.random.default_rng(seed), positive_fraction=SAME[name])
    rows = np.column_stack([test.first, test.second])
    found = {}
    for label, representation in representations(name).items():
        start = time.perf_counter()
        Z, Z_test = samples.X, samples.X_test
        if representation is not None:
            Z = representation.fit_transform(samples.X, samples.y)
            Z_test = representation.transform(samples.X_test)
        seconds, size = time.perf_counter() - start, n_bytes(representation) / 1e6
        print(f"{name} {seed} {label}: {seconds:.0f} s", file=sys.stderr, flush=True)
        forest = SimilarityForest(
            n_estimators=n_trees,
            n_pairs=n_pairs,
            coordinates=["abs_diff", "sum", "min", "max"],
            min_pairs_split=100,
            n_jobs=2,
            random_state=seed,
        ).fit(Z, samples.y)
        for scorer, scores in (("cosine", cosines(Z_test, test)), ("forest", forest.pair_score(rows, Z_test))):
            found[f"{label} | {scorer}"] = {**rates(scores, test.same), "columns": Z.shape[1], "seconds": seconds, "MB": size}
    return found


def as_markdown(runs: list[dict[str, dict[str, float]]]) -> str:
    """Return a table of the means over the splits."""
    lines = [
        "| representation | scored by | AUC | " + " | ".join(f"TPR at {fpr:g}" for fpr in FPR) + " | columns | time (s) | MB |"
    ]
    lines.append("|" + "---|" * 10)
    for label in runs[0]:
        auc, *tprs, columns, seconds, size = np.mean([list(run[label].values()) for run in runs], axis=0)
        shown = " | ".join(f"{tpr:.3f}" for tpr in tprs)
        lines.append(f"| {label} | {auc:.4f} | {shown} | {columns:.0f} | {seconds:.1f} | {size:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="audio,keystroke,lfw,mnist", help="data sets, separated by commas")
    parser.add_argument("--splits", type=int, nargs="+", default=[2, 3, 4], help="random seeds of the splits (2 3 4)")
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=100_000, help="pairs per tree")
    parser.add_argument("--tiny", action="store_true", help="synthetic clusters, to check that everything runs")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    names = ["tiny"] if options.tiny else options.only.split(",")
    unknown = [name for name in names if name not in SAME]
    if unknown:
        parser.exit(2, f"{unknown[0]!r} is not a data set; choose from audio,keystroke,lfw,mnist.\n")
    report: dict[str, Any] = {"command": " ".join(sys.argv), "trees": options.trees, "pairs": options.pairs, "sets": {}}
    for name in names:
        n_test = 5_000 if options.tiny else N_TEST
        splits = options.splits[:1] if name in ("mnist", "tiny") else options.splits
        runs = [one_split(name, seed, options.trees, options.pairs, n_test) for seed in splits]
        report["sets"][name] = runs
        write_atomically(options.out / "bench_representation.json", json.dumps(report, indent=1) + "\n")
        print(f"{name}, means over {len(runs)} split(s)\n\n{as_markdown(runs)}\n", flush=True)
    print(f"Written to {options.out / 'bench_representation.json'}.")


if __name__ == "__main__":
    main()
