"""1:N search in a gallery of face descriptors beside FAISS (flat, L2) and beside LightGBM scoring every row.

    SIMTREE_DATA=folder python benchmarks/bench_search.py [--jobs 2] [--repeats 3] [--out results] [--quick]

simtree: a forest of 44 trees of depth 15 with classification trees of depth 5, each on 200,000 pairs of LFW descriptors (128
features) of 3,449 people. LightGBM: 100 trees of 63 leaves on as many pairs of the same people and mix; the making of the
features of each pair of query and row is counted; it is measured for one query and LIGHTGBM_ROWS rows, and scaled to other
sizes. FAISS is given one thread or all, whichever is faster. Gallery and queries are descriptors plus a little Gaussian noise;
the queries are of people that were not in training. ``--quick`` takes small synthetic data. Needs Linux and ``simtree[bench]``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import faiss
import lightgbm
import numpy as np

from bench_tree import describe, materialise, peak_memory, row_numbers, seconds
from simtree import CartSplitter, SimilarityForest
from simtree._files import write_atomically
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs import PairSampler

K = 10
NOISE = 0.02
LIGHTGBM_ROWS = 100_000
FPR = [1e-2, 1e-3, 1e-4]
KINDS = {"f": ["abs_diff", "sum"], "f, min, max": ["abs_diff", "sum", "min", "max"]}
GOALS = {"LightGBM": 20.0, "FAISS": 20.0}


def descriptors() -> tuple[np.ndarray, np.ndarray, int]:
    """Face descriptors, who is on each, and how many people are for training."""
    folder = os.environ.get("SIMTREE_DATA")
    if not folder:
        sys.exit("SIMTREE_DATA is not set; set it to the folder that holds lfw_dlib128.npz, or give --quick.")
    with np.load(Path(folder) / "lfw_dlib128.npz", allow_pickle=False) as arrays:
        return arrays["X"].astype(np.float32), arrays["y"], 3449


def quick_points() -> tuple[np.ndarray, np.ndarray, int]:
    """Points around 60 centres, of which 40 are for training."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 10)
    return (rng.normal(0, 0.15, (60, 16))[y] + rng.normal(0, 0.05, (600, 16))).astype(np.float32), y, 40


def forest(kinds: list[str], n_trees: int, n_pairs: int, jobs: int) -> SimilarityForest:
    splitter = CartSplitter(max_depth=5, max_features=0.2)
    return SimilarityForest(
        n_estimators=n_trees, max_depth=15, splitter=splitter, coordinates=kinds, n_pairs=n_pairs, n_jobs=jobs, random_state=0
    )


def noisy(X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of X drawn with replacement, plus noise; made in blocks, to need no more memory than they do."""
    rows = np.empty((n, X.shape[1]), dtype=np.float32)
    for start in range(0, n, 1 << 16):
        part = rows[start : start + (1 << 16)]
        part[:] = X[rng.integers(0, len(X), len(part))]
        part += rng.normal(0, NOISE, part.shape).astype(np.float32)
    return rows


def lightgbm_search(model: Any, query: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """The best rows for one query, from the features of all pairs."""
    points = np.concatenate([query[None], gallery])
    pairs = np.column_stack([np.zeros(len(gallery), dtype=int), np.arange(1, len(points))])
    scores = model.predict_proba(materialise(points, pairs))[:, 1]
    best = np.argpartition(-scores, K)[:K]
    return best[np.argsort(-scores[best])]


def accuracy(scores: np.ndarray, same: np.ndarray) -> list[float]:
    return [float(tpr) for tpr in tpr_at_fpr(roc_curve(scores, same), FPR)]


def timed(work: Any, repeats: int) -> list[float]:
    work()
    return [seconds(work) for _ in range(repeats)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    jobs = arguments.jobs
    X, y, n_train = quick_points() if arguments.quick else descriptors()
    n_trees, n_pairs, n_test = (5, 2000, 5000) if arguments.quick else (44, 200_000, 1_500_000)
    sizes = (3000,) if arguments.quick else (100_000, 1_000_000)
    lightgbm_rows = 1000 if arguments.quick else LIGHTGBM_ROWS
    people = np.random.default_rng(0).permutation(np.unique(y))[:n_train]
    train = np.isin(y, people)
    others = X[~train]

    test = PairSampler(y[~train]).draw(n_test, np.random.default_rng(0), positive_fraction=0.02)
    table = {"Euclidean distance": accuracy(-np.linalg.norm(others[test.first] - others[test.second], axis=1), test.same)}
    models = {}
    for name, kinds in KINDS.items():
        models[name] = forest(kinds, n_trees, n_pairs, jobs).fit(X[train], y[train])
        table[f"forest on {name}"] = accuracy(models[name].pair_score(row_numbers(test), others), test.same)
    pairs = PairSampler(y[train]).draw(n_pairs, np.random.default_rng(1))
    peer = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=63, n_jobs=jobs, verbose=-1, random_state=0)
    peer.fit(materialise(X[train], row_numbers(pairs)), pairs.same)
    print("| TPR at FPR | " + " | ".join(f"{fpr:g}" for fpr in FPR) + " |\n|---|" + "---|" * len(FPR))
    for name, rates in table.items():
        print(f"| {name} | " + " | ".join(f"{rate:.3f}" for rate in rates) + " |")

    rng = np.random.default_rng(2)
    queries = noisy(others, 100, rng)
    gallery = noisy(X, sizes[-1], rng)
    model = models["f"]
    exact = model.pairwise_score(queries[:2], gallery[: sizes[0]])
    assert np.array_equal(model.top_k(queries[:2], gallery[: sizes[0]], K)[1], np.argsort(-exact, axis=1, kind="stable")[:, :K])
    megabytes = peak_memory(lambda: model.top_k(queries, gallery, K)) / 1e6
    one_query = timed(lambda: lightgbm_search(peer, queries[0], gallery[:lightgbm_rows]), arguments.repeats)
    rows = []
    for n_rows in sizes:
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(gallery[:n_rows])
        for n_queries in (1, 100):
            wanted = queries[:n_queries]

            def search(wanted=wanted, n_rows=n_rows):
                model.top_k(wanted, gallery[:n_rows], K)

            ours = timed(search, arguments.repeats)
            flat = []
            for threads in {1, jobs}:
                faiss.omp_set_num_threads(threads)
                flat.append(timed(lambda wanted=wanted, index=index: index.search(wanted, K), arguments.repeats))
            row = {"rows": n_rows, "queries": n_queries, "simtree": ours, "FAISS": min(flat, key=statistics.median)}
            row["LightGBM"] = [run * n_queries * n_rows / lightgbm_rows for run in one_query]
            rows.append(row)
        del index
    print(f"\nThe {K} best rows (seconds; LightGBM measured for 1 query and {lightgbm_rows:,} rows, else scaled):\n")
    print(
        "| rows | queries | simtree | FAISS flat | LightGBM | LightGBM / simtree | goal | met | simtree / FAISS | goal | met |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        medians = {name: statistics.median(row[name]) for name in ("simtree", "FAISS", "LightGBM")}
        row["faster_than_lightgbm"] = medians["LightGBM"] / medians["simtree"]
        row["slower_than_faiss"] = medians["simtree"] / medians["FAISS"]
        row["lightgbm_goal_met"] = row["faster_than_lightgbm"] >= GOALS["LightGBM"]
        row["faiss_goal_met"] = None if row["queries"] == 1 else row["slower_than_faiss"] <= GOALS["FAISS"]
        cells = [f"{row['rows']:,}", str(row["queries"]), *(describe(row[name]) for name in medians)]
        cells += [f"{row['faster_than_lightgbm']:.0f}", f"≥ {GOALS['LightGBM']:g}", "yes" if row["lightgbm_goal_met"] else "no"]
        of_batch = ["", ""] if row["queries"] == 1 else [f"≤ {GOALS['FAISS']:g}", "yes" if row["faiss_goal_met"] else "no"]
        print(f"| {' | '.join([*cells, format(row['slower_than_faiss'], '.1f'), *of_batch])} |")
    held = f"{sizes[-1]:,} rows ({gallery.nbytes / 1e6:.0f} MB)"
    print(f"\npeak memory of a search for 100 queries in {held}, above what was held before: {megabytes:.0f} MB")
    report = {
        "command": " ".join(sys.argv),
        "jobs": jobs,
        "load": os.getloadavg(),
        "tpr": {"fpr": FPR, **table},
        "rows": rows,
        "peak_memory_mb": megabytes,
    }
    write_atomically(arguments.out / "bench_search.json", json.dumps(report, indent=1))
    print(f"\nWritten to {arguments.out / 'bench_search.json'}.")


if __name__ == "__main__":
    main()
