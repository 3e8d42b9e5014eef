"""What representations of points do for people never seen in training, and for classes that were seen.

    SIMTREE_DATA=folder python benchmarks/bench_representation.py [--only audio,keystroke,lfw,mnist] [--splits 2 3 4]

Each representation is fitted on the training rows; pairs of other rows are scored by the cosine of the represented points and
by a forest on them. audio, keystroke and lfw test people who were not in training (36 of 60 speakers, 30 of 51 typists and 60 %
of the people to train; a split is another choice of them), mnist tests other images of the ten digits. ``--tiny`` takes
synthetic clouds and shows that everything runs. Splits 0 and 1 are those on which settings were chosen.
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

from problems import Points, clouds, mnist
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
from simtree.pairs._sampling import IndexPairs, PairSampler

FPR = [1e-1, 1e-2, 1e-3, 1e-4]
FILES = {"audio": "audiomnist_mfcc60.npz", "lfw": "lfw_dlib128.npz"}
N_TO_TRAIN = {"audio": 36, "keystroke": 30, "lfw": 3449}
N_TEST = 1_000_000
N_IMAGES = 20_000
# The share of same pairs among test pairs.
SAME = {"audio": 0.2, "keystroke": 0.2, "lfw": 0.02, "mnist": 0.1, "tiny": 0.1}


def points_of(name: str, seed: int) -> Points:
    """Rows to learn from and others to test with."""
    if name == "tiny":
        return clouds()
    if name == "mnist":
        found = mnist()
        return Points(found.X[:N_IMAGES], found.y[:N_IMAGES], found.X_test, found.y_test)
    if name == "keystroke":
        X, y = load_keystroke()
    else:
        with np.load(Path(os.environ["SIMTREE_DATA"], FILES[name]), allow_pickle=False) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    train = np.isin(y, np.random.default_rng(seed).permutation(y.max() + 1)[: N_TO_TRAIN[name]])
    return Points(X[train], y[train], X[~train], y[~train])


def representations(name: str) -> dict[str, Any]:
    """What is put before the similarity; None is nothing."""
    first = [MarginalQuantiles(output="normal" if name == "audio" else "uniform")] if name in ("audio", "keystroke") else []
    given: dict[str, Any] = {"as given": None}
    if first:
        given["quantiles"] = first[0]
    emphasis = {"audio": 0.25}.get(name, 0.0)
    shrinkage, center = {"lfw": (0.6, False)}.get(name, (0.1, True))
    n_trees = 20 if name == "tiny" else 200
    learned = {
        "posterior": [ForestPosterior(n_estimators=n_trees, n_jobs=2, random_state=0)],
        "discriminant": [KernelDiscriminant(n_jobs=2, random_state=0)],
        "discriminant, alpha 1": [KernelDiscriminant(alpha=1.0, n_jobs=2, random_state=0)],
        "discriminant, 2000 waves": [KernelDiscriminant(landmarks="fourier", n_jobs=2, random_state=0)],
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
    """Cosine of the points of each pair, in blocks."""
    unit = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300)
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), 100_000):
        block = slice(start, start + 100_000)
        found[block] = np.einsum("ij,ij->i", unit[pairs.first[block]], unit[pairs.second[block]])
    return found


def n_bytes(value: Any) -> int:
    """Bytes of all arrays that a fitted model holds."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sum(map(n_bytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(n_bytes, value))
    return n_bytes(vars(value)) if hasattr(value, "__dict__") else 0


def one_split(name: str, seed: int, n_trees: int, n_pairs: int, n_test: int) -> dict[str, dict[str, float]]:
    """Figures of each representation, by cosine and by a forest."""
    points = points_of(name, seed)
    test = PairSampler(points.y_test).sample(n_test, np.random.default_rng(seed), positive_fraction=SAME[name])
    rows = np.column_stack([test.first, test.second])
    found = {}
    for label, representation in representations(name).items():
        start = time.perf_counter()
        Z, Z_test = points.X, points.X_test
        if representation is not None:
            Z = representation.fit_transform(points.X, points.y)
            Z_test = representation.transform(points.X_test)
        seconds, size = time.perf_counter() - start, n_bytes(representation) / 1e6
        print(f"{name} {seed} {label}: {seconds:.0f} s", file=sys.stderr, flush=True)
        forest = SimilarityForest(
            n_estimators=n_trees,
            n_pairs=n_pairs,
            coordinates=["abs_diff", "sum", "min", "max"],
            min_pairs_split=100,
            n_jobs=2,
            random_state=seed,
        ).fit(Z, points.y)
        for scorer, scores in (("cosine", cosines(Z_test, test)), ("forest", forest.pair_score(rows, Z_test))):
            found[f"{label} | {scorer}"] = {**rates(scores, test.same), "columns": Z.shape[1], "seconds": seconds, "MB": size}
    return found


def as_markdown(runs: list[dict[str, dict[str, float]]]) -> str:
    """Means over the splits."""
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
    parser.add_argument("--only", default="audio,keystroke,lfw,mnist", help="data sets, with commas between")
    parser.add_argument("--splits", type=int, nargs="+", default=[2, 3, 4], help="seeds of the choice of people (2 3 4)")
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=100_000, help="pairs of one tree")
    parser.add_argument("--tiny", action="store_true", help="synthetic clouds: shows that everything runs")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder of the data, or pass --tiny.\n")
    names = ["tiny"] if options.tiny else options.only.split(",")
    unknown = [name for name in names if name not in SAME]
    if unknown:
        parser.exit(2, f"{unknown[0]!r} is no data set; choose from audio,keystroke,lfw,mnist.\n")
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
