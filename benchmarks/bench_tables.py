"""Tables with holes: boosted trees of simtree and of LightGBM and XGBoost on the same pairs, and what missing values cost.

    SIMTREE_DATA=folder python benchmarks/bench_tables.py [--quick] [--data keystroke satimage lfw] [--splits 5] [--out FILE]
    python benchmarks/bench_tables.py --costs [--before FOLDER] [--out FILE]
    python benchmarks/bench_tables.py --page [--out FILE] [--docs docs]

A tenth or three tenths of the cells are deleted, from training and test samples alike: at random; more often the further a
value is from the median of its column; or in blocks of neighbouring features of a sample. All models see the same pairs, half
of them same pairs, with the features |x - x'| and x + x'. The peers get NaN for a feature that a sample lacks, and the number
of samples of the pair that lack it (0, 1, 2) as a further feature. All models grow 150 trees of 63 leaves. The results of
several runs are collected in one file, docs/results/tables.json by default; ``--page`` makes docs/missing_measured.md of it.

``--costs`` compares the CPU time and the peak memory of fits: of complete samples with those of another version of simtree,
whose sources are in FOLDER, and of samples with 30 % missing with those of complete ones.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from accuracy.data import Pairs, Split, make_samples, read_keystroke, read_samples, read_uci, split_identities, split_samples
from measure import memory_status
from simtree import SimilarityBoosting, SimilarityForest
from simtree._utils.files import write_atomically
from simtree._utils.matrices import filled
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve
from simtree.pairs._sampling import PairSampler

ROOT = Path(__file__).parents[1]
FPR = (1e-2, 1e-3)
METRICS = ("AUC", "TPR at 0.01", "TPR at 0.001")
SHARES = (0.1, 0.3)
N_BLOCKS = 5
BEGIN, END = "<!-- begin: printed by benchmarks/bench_tables.py --page -->", "<!-- end -->"
# The page before there is one; later runs replace its tables only.
NEW_PAGE = f"""# Tables with missing values

How good are boosted trees if cells of a table are deleted, compared with LightGBM on the same pairs, and with filling in
medians? `python benchmarks/bench_tables.py --help` says how cells are deleted and what each model is given.

{BEGIN}
{END}
"""


# Holes


def at_random(X: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return the cells to delete, each with the same probability."""
    return rng.random(X.shape) < share


def where_extreme(X: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return the cells to delete: the probability grows with the rank of the distance to the median of the column."""
    distance = np.abs(X - np.median(X, axis=0))
    rank = distance.argsort(axis=0).argsort(axis=0) / max(1, len(X) - 1)
    return rng.random(X.shape) < 2.0 * share * rank


def in_blocks(X: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return the cells to delete: of each sample, each of five blocks of neighbouring features with the same probability."""
    blocks = np.arange(X.shape[1]) * N_BLOCKS // X.shape[1]
    return (rng.random((len(X), N_BLOCKS)) < share)[:, blocks]


WAYS: dict[str, Callable[[np.ndarray, float, np.random.Generator], np.ndarray]] = {
    "at random": at_random,
    "where extreme": where_extreme,
    "in blocks": in_blocks,
}


def with_holes(X: np.ndarray, way: str, share: float, seed: int) -> np.ndarray:
    """Return samples with a share of their cells deleted."""
    return np.where(WAYS[way](X, share, np.random.default_rng(seed)), np.float32(np.nan), X).astype(np.float32)


# Models: functions of training samples, pairs and labels, and of test samples and pairs, that return scores


def boosting(X: np.ndarray, rows: np.ndarray, same: np.ndarray, X_test: np.ndarray, test: np.ndarray, n_trees: int) -> Any:
    model = SimilarityBoosting(n_estimators=n_trees, early_stopping=False, n_jobs=1, random_state=0)
    return model.fit(X, same, pairs=rows).pair_score(test, X_test)


def pair_features(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return |x - x'| and x + x', NaN if a sample lacks the feature, and the number of samples that lack it."""
    a, b = X[rows[:, 0]], X[rows[:, 1]]
    n_missing = np.isnan(a).astype(np.float32) + np.isnan(b)
    return np.hstack([np.abs(a - b), a + b, n_missing])


def lightgbm(X: np.ndarray, rows: np.ndarray, same: np.ndarray, X_test: np.ndarray, test: np.ndarray, n_trees: int) -> Any:
    import lightgbm as lgb

    parameters = {"objective": "binary", "num_leaves": 63, "learning_rate": 0.1, "verbosity": -1, "num_threads": 1, "seed": 0}
    booster = lgb.train(parameters, lgb.Dataset(pair_features(X, rows), same), n_trees)
    return booster.predict(pair_features(X_test, test), raw_score=True, num_threads=1)


def xgboost(X: np.ndarray, rows: np.ndarray, same: np.ndarray, X_test: np.ndarray, test: np.ndarray, n_trees: int) -> Any:
    import xgboost as xgb

    parameters = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": 63,
        "max_depth": 0,
        "learning_rate": 0.1,
        "nthread": 1,
    }
    booster = xgb.train(parameters, xgb.DMatrix(pair_features(X, rows), same), n_trees)
    return booster.predict(xgb.DMatrix(pair_features(X_test, test)), output_margin=True)


def models() -> dict[str, Callable[..., Any]]:
    """Return the models that are installed; the same with missing values filled in by the training median."""
    found: dict[str, Callable[..., Any]] = {"simtree": boosting, "LightGBM": lightgbm}
    if find_spec("xgboost"):
        found["XGBoost"] = xgboost
    return found


def medians_filled(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test samples with the median of the training samples in place of missing values."""
    medians = filled(np.vstack([X, np.full((1, X.shape[1]), np.nan, dtype=X.dtype)]))[-1]
    return np.where(np.isnan(X), medians, X), np.where(np.isnan(X_test), medians, X_test)


# Accuracy


def read_faces() -> Any:
    return read_samples("lfw_dlib128")


PROBLEMS: dict[str, tuple[Callable[[], Any], Callable[..., Split]]] = {
    "keystroke": (read_keystroke, lambda data, test, split: split_identities(data, 30 / 51, test, split, None)),
    "satimage": (partial(read_uci, "satimage"), lambda data, test, split: split_samples(data, test, split, None)),
    "lfw": (read_faces, lambda data, test, split: split_identities(data, 0.6, test, split, None)),
    "quick": (make_samples, lambda data, test, split: split_samples(data, test, split, None)),
}


def evaluate(scores: np.ndarray, same: np.ndarray) -> list[float]:
    """Return AUC and TPRs."""
    roc = roc_curve(np.asarray(scores, dtype=np.float64), same)
    return [roc.auc(), *roc.at(np.array(FPR)).tolist()]


def run_split(split: Split, way: str, share: float, seed: int, n_pairs: int, n_trees: int) -> dict[str, list[float]]:
    """Return the metrics of each model on samples with holes, by its own handling and after filling in medians."""
    X, X_test = with_holes(split.X, way, share, seed), with_holes(split.X_test, way, share, seed + 1000)
    drawn = PairSampler(split.y).sample(n_pairs, np.random.default_rng(seed), positive_fraction=0.5, shuffle=True)
    rows = np.column_stack([drawn.first, drawn.second])
    found = {}
    for name, learn in models().items():
        found[name] = evaluate(learn(X, rows, drawn.same, X_test, split.rows, n_trees), split.same)
    complete = medians_filled(X, X_test)
    found["simtree, medians"] = evaluate(boosting(complete[0], rows, drawn.same, complete[1], split.rows, n_trees), split.same)
    return found


def run(names: list[str], n_splits: int, n_pairs: int, n_trees: int, test: Pairs, keep: Callable[[str, Any], None]) -> None:
    """Run all problems; ``keep`` is given the results of each, by way and share, one entry per split."""
    for name in names:
        read, split_of = PROBLEMS[name]
        data = read()
        results: dict[str, list[dict[str, list[float]]]] = {}
        for number in range(1, n_splits + 1):
            split = split_of(data, test, number)
            for way in WAYS:
                for share in SHARES:
                    found = run_split(split, way, share, number, n_pairs, n_trees)
                    results.setdefault(f"{way}, {share:.0%}", []).append(found)
            print(f"{name}, split {number} of {n_splits}", flush=True)
        keep(name, {"n_splits": n_splits, "n_pairs": n_pairs, "n_trees": n_trees, "results": results})


# Costs, each measured in a fresh process that prints CPU seconds and the peak of its memory in bytes


def cost_of(model: str, share: float, n_pairs: int) -> tuple[float, int]:
    """Return the CPU time of a second fit in this process, and the peak memory above that before it."""
    data = make_samples(100, 40, 40)
    X = with_holes(data.X, "at random", share, 0) if share else data.X
    made: dict[str, Any] = {
        "forest": SimilarityForest(n_estimators=3, n_pairs=n_pairs, n_jobs=1, random_state=0),
        "boosting": SimilarityBoosting(
            n_estimators=30, n_pairs=n_pairs, early_stopping=False, refresh=10, n_jobs=1, random_state=0
        ),
    }
    made[model].fit(X, data.y)  # compiles the kernels
    before = memory_status("VmRSS")
    start = time.process_time()
    made[model].fit(X, data.y)
    return time.process_time() - start, max(0, memory_status("VmHWM") - before)


def in_other_sources(sources: Path, model: str, share: float, n_pairs: int) -> tuple[float, int]:
    """Return `cost_of` in a new process with other sources of simtree."""
    call = f"import bench_tables; print(*bench_tables.cost_of({model!r}, {share!r}, {n_pairs!r}))"
    path = os.pathsep.join([str(sources.resolve()), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-c", call], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    seconds, peak = done.stdout.split()[-2:]
    return float(seconds), int(peak)


def costs(before: Path | None, n_pairs: int, n_runs: int) -> dict[str, Any]:
    """Return CPU seconds and peak memory of all runs, which alternate so that other load meets all of them alike."""
    here = ROOT / "src"
    cases = {"complete": (here, 0.0), "30 % missing": (here, 0.3)}
    if before is not None:
        cases["complete, before"] = (before, 0.0)
    found: dict[str, Any] = {}
    for model in ("forest", "boosting"):
        for _ in range(n_runs):
            for case, (sources, share) in cases.items():
                seconds, peak = in_other_sources(sources, model, share, n_pairs)
                of_case = found.setdefault(model, {}).setdefault(case, {"seconds": [], "peak": []})
                of_case["seconds"].append(seconds)
                of_case["peak"].append(peak)
    return {"n_pairs": n_pairs, "found": found}


# The page


def accuracy_table(problem: dict[str, Any]) -> str:
    """Return the means over splits, and the difference of simtree to the best of the others, as a table."""
    rows = []
    for case, splits in problem["results"].items():
        means = {name: np.mean([found[name] for found in splits], axis=0) for name in splits[0]}
        for name, values in means.items():
            rows.append([case, name, *(f"{value:.4f}" for value in values)])
    return markdown_table(["deleted", "model", *METRICS], rows)


def least_difference(problem: dict[str, Any]) -> dict[str, list[float]]:
    """Return, for each other model, the lowest mean difference of simtree to it over all cases, by metric."""
    lowest: dict[str, list[float]] = {}
    for splits in problem["results"].values():
        for name in splits[0]:
            if name != "simtree":
                differences = np.mean([np.subtract(found["simtree"], found[name]) for found in splits], axis=0)
                lowest[name] = np.minimum(lowest.get(name, np.inf), differences).tolist()
    return lowest


def cost_table(found: dict[str, Any]) -> str:
    """Return medians of CPU time and of memory, and their ratios to those of complete samples here."""
    rows = []
    for model, cases in found["found"].items():
        base = {what: float(np.median(cases["complete"][what])) for what in ("seconds", "peak")}
        for case, values in cases.items():
            seconds, peak = (float(np.median(values[what])) for what in ("seconds", "peak"))
            ratios = [f"{seconds / base['seconds']:.3f}", f"{peak / base['peak']:.3f}" if base["peak"] else "-"]
            rows.append([model, case, f"{seconds:.2f}", f"{peak / 1e6:.1f}", *ratios])
    return markdown_table(["model", "samples", "CPU (s)", "peak memory (MB)", "time to complete", "memory to complete"], rows)


def tables(report: dict[str, Any]) -> str:
    """Return all tables of a report, with headings of the second level."""
    parts = []
    for name, problem in report.get("accuracy", {}).items():
        how = f"{problem['n_splits']} splits, {problem['n_pairs']:,} pairs, {problem['n_trees']} trees."
        lowest = least_difference(problem)
        differences = markdown_table(["simtree less", *METRICS], [[k, *(f"{v:+.4f}" for v in d)] for k, d in lowest.items()])
        parts += [f"## {name}", how, accuracy_table(problem), "Lowest mean difference over the six cases:", differences]
    if "costs" in report:
        parts += ["## Costs", f"{report['costs']['n_pairs']:,} pairs at a time, 40 features.", cost_table(report["costs"])]
    return "\n\n".join(parts)


def write_page(report: dict[str, Any], page: Path) -> None:
    """Replace the tables of the page, or begin it."""
    text = page.read_text(encoding="utf-8") if page.is_file() else NEW_PAGE
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    write_atomically(page, f"{head}{BEGIN}\n{tables(report)}\n{END}{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--data", nargs="+", choices=[name for name in PROBLEMS if name != "quick"], help="problems (all)")
    parser.add_argument("--splits", type=int, default=5, help="number of splits (5)")
    parser.add_argument("--pairs", type=int, default=20_000, help="number of training pairs (20,000)")
    parser.add_argument("--trees", type=int, default=150, help="number of trees (150)")
    parser.add_argument("--costs", action="store_true", help="measure CPU time and memory of fits instead")
    parser.add_argument("--before", type=Path, help="folder with the sources of another version of simtree, for --costs")
    parser.add_argument("--page", action="store_true", help="write docs/missing_measured.md from the results")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "tables.json", help="file of the results")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page")
    options = parser.parse_args()
    report: dict[str, Any] = json.loads(options.out.read_text()) if options.out.is_file() else {}

    def keep(*places: str, found: Any) -> None:
        part = report
        for place in places[:-1]:
            part = part.setdefault(place, {})
        part[places[-1]] = found
        write_atomically(options.out, json.dumps(report, indent=1) + "\n")

    if options.page:
        write_page(report, options.docs / "missing_measured.md")
        return
    if options.costs:
        keep("costs", found=costs(options.before, 2_000 if options.quick else 100_000, 1 if options.quick else 5))
    else:
        if not options.quick and not os.environ.get("SIMTREE_DATA"):
            parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --quick.\n")
        names = ["quick"] if options.quick else options.data or [name for name in PROBLEMS if name != "quick"]
        sizes = (1, 400, 5) if options.quick else (options.splits, options.pairs, options.trees)
        test = Pairs(200, 1_000) if options.quick else Pairs(20_000, 100_000)
        run(names, *sizes, test, lambda name, found: keep("accuracy", name, found=found))
    print(tables(report))


if __name__ == "__main__":
    main()
