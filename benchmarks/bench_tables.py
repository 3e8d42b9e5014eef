"""Tables with holes: boosted trees of simtree and of LightGBM and XGBoost on the same pairs, and what missing values cost.

    SIMTREE_DATA=folder python benchmarks/bench_tables.py [--quick] [--data keystroke satimage lfw] [--rates 0.1] [--out FILE]
    python benchmarks/bench_tables.py --costs [--data keystroke satimage] [--before FOLDER] [--out FILE]
    python benchmarks/bench_tables.py --page [--out FILE] [--docs docs]

A tenth or three tenths of the cells are deleted, from training and test samples alike: at random; more often the further a
value is from the median of its column; or in blocks of neighbouring features of a sample. All models see the same pairs, half
of them same pairs, with the features |x - x'| and x + x'. The peers get NaN for a feature that a sample lacks, and the number
of samples of the pair that lack it (0, 1, 2) as a further feature. All stop early, after at most 2,000 trees, on a held-out
fifth of the identities (of the samples, if classes are known), and are then fitted again on all; learning rate and leaves are
searched for once per problem, on three folds of the training samples of a split that is not reported. The results of several
runs are collected in one file, docs/results/tables.json by default, and what it has is not run again; ``--page`` makes
docs/missing_measured.md of it.

``--costs`` compares the CPU time and the peak memory of fits: of complete samples with those of another version of simtree,
whose sources are in FOLDER, and of samples with 30 % missing with those of complete ones. The samples are synthetic, of 100
identities that complete samples tell apart easily, or those of the data that are named. Cells with missing values are harder
to make pure, so that a forest has more of them: the time per cell is compared, too. The peers are given the matrix of features,
whose computation is not counted, with the further features if values are missing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from accuracy import ours, peers_boosted
from accuracy.data import (
    N_CHOICES,
    Pairs,
    Split,
    make_samples,
    read_keystroke,
    read_samples,
    read_uci,
    split_identities,
    split_samples,
)
from accuracy.peers import F, Training, coordinates
from accuracy.settings import Setting
from measure import memory_status
from simtree import SimilarityBoosting, SimilarityForest
from simtree._utils.files import write_atomically
from simtree._utils.validation import count
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve

ROOT = Path(__file__).parents[1]
FPR = (1e-2, 1e-3)
METRICS = ("AUC", "TPR at 0.01", "TPR at 0.001")
SHARES = (0.1, 0.3)
KINDS = (*F, "n_missing")
PEERS = ("LightGBM", "XGBoost")
# Rounds and leaves of boosting whose costs are measured.
N_ROUNDS, N_LEAVES = 30, 63
LEAVES, RATES = (63, 15), (0.1, 0.03)
# Share of the rounds and pairs of a run that only checks that everything works.
CHECK_SHARE = 0.01
MEDIANS = "simtree, medians"
SYNTHETIC = "synthetic, 40 features"
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


# Models: functions of training samples, by name; each has a setting, which `search` finds


def learners(n_pairs: int) -> dict[str, Callable[..., Any]]:
    """Return the training of each library that is installed, as a function of `Training` and of a setting."""
    found: dict[str, Callable[..., Any]] = {"simtree": partial(ours.boosted, fresh=False, n_pairs=n_pairs)}
    for library in PEERS:
        if find_spec(library.lower()):
            how = {"kinds": KINDS, "n_pairs": n_pairs, "n_validation": n_pairs}
            found[library] = partial(peers_boosted.boosted, library=library, **how)
    return found


def medians_filled(X: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test samples with the median of the training samples in place of missing values."""
    from simtree._utils.matrices import filled  # which versions that costs are compared with may not have

    medians = filled(np.vstack([X, np.full((1, X.shape[1]), np.nan, dtype=X.dtype)]))[-1]
    return np.where(np.isnan(X), medians, X), np.where(np.isnan(X_test), medians, X_test)


# Accuracy


def read_faces() -> Any:
    return read_samples("lfw_dlib128")


PROBLEMS: dict[str, tuple[Callable[[], Any], Callable[..., Split]]] = {
    "keystroke": (read_keystroke, lambda data, test, *which: split_identities(data, 30 / 51, test, *which)),
    "satimage": (partial(read_uci, "satimage"), lambda data, test, *which: split_samples(data, test, *which)),
    "lfw": (read_faces, lambda data, test, *which: split_identities(data, 0.6, test, *which)),
    "quick": (make_samples, lambda data, test, *which: split_samples(data, test, *which)),
}


def evaluate(scores: np.ndarray, same: np.ndarray) -> list[float]:
    """Return AUC and TPRs."""
    roc = roc_curve(np.asarray(scores, dtype=np.float64), same)
    return [roc.auc(), *roc.at(np.array(FPR)).tolist()]


def score(learn: Callable[..., Any], setting: Setting, split: Split, seed: int, share: float) -> list[float]:
    """Return the metrics of one model on a split."""
    training = Training(split.X, split.y, split.groups, seed, n_jobs=1, share=share)
    return evaluate(learn(training, setting=setting).pair_score(split.rows, split.X_test), split.same)


def search(
    splits: Sequence[Split], n_pairs: int, share: float, rates: Sequence[float], known: dict[str, Setting]
) -> dict[str, Setting]:
    """Return the setting of each library with the highest mean of the metrics, with three tenths deleted at random."""
    settings = [Setting(rate, leaves) for leaves in LEAVES for rate in rates]
    with_some = [holed(split, "at random", max(SHARES), seed) for seed, split in enumerate(splits)]
    best = dict(known)
    for name, learn in learners(n_pairs).items():
        if name not in known:
            means = {
                setting: float(np.mean([score(learn, setting, split, seed, share) for seed, split in enumerate(with_some)]))
                for setting in settings
            }
            best[name] = max(means, key=means.__getitem__)
            print(f"{name}: {best[name]}, of {[round(mean, 4) for mean in means.values()]}", flush=True)
    return best


def holed(split: Split, way: str, share: float, seed: int) -> Split:
    """Return a split with cells deleted from its training and its test samples."""
    return replace(split, X=with_holes(split.X, way, share, seed), X_test=with_holes(split.X_test, way, share, seed + 1000))


def run_split(
    split: Split, settings: dict[str, Setting], seed: int, n_pairs: int, share: float, found: dict[str, list[float]]
) -> None:
    """Add the metrics of each model on samples with holes, by its own handling and after filling in medians."""
    for name, learn in learners(n_pairs).items():
        if name not in found:
            found[name] = score(learn, settings[name], split, seed, share)
    if MEDIANS not in found:
        X, X_test = medians_filled(split.X, split.X_test)
        complete = replace(split, X=X, X_test=X_test)
        found[MEDIANS] = score(learners(n_pairs)["simtree"], settings["simtree"], complete, seed, share)


def run(
    name: str,
    numbers: Sequence[int],
    n_pairs: int,
    test: Pairs,
    rates: Sequence[float],
    kept: dict[str, Any],
    keep: Callable[[Any], None],
) -> None:
    """Run what is not among the results that were kept; give ``keep`` all of them after each kind of holes."""
    read, split_of = PROBLEMS[name]
    data, share = read(), CHECK_SHARE if name == "quick" else 1.0
    settings = {library: Setting(**found) for library, found in kept.get("settings", {}).items()}
    results: dict[str, dict[str, Any]] = kept.get("results", {})
    # Inner folds of split 0: their test samples are training samples, and no reported split is like it. One fold is left to
    # chance: on satimage it found 15 leaves for simtree, and 63 for its peers.
    inner = [split_of(data, test, 0, fold) for fold in range(N_CHOICES)]
    settings = search(inner, n_pairs, share, rates, settings)
    for number in numbers:
        split = split_of(data, test, number, None)
        for way in WAYS:
            for deleted in SHARES:
                found = results.setdefault(f"{way}, {deleted:.0%}", {}).setdefault(str(number), {})
                run_split(holed(split, way, deleted, number), settings, number, n_pairs, share, found)
                keep({"n_pairs": n_pairs, "settings": {k: asdict(v) for k, v in settings.items()}, "results": results})
        print(f"{name}, split {number}", flush=True)


# Costs, each measured in a fresh process that prints CPU seconds and the peak of its memory in bytes


def cost_of(model: str, share: float, n_pairs: int, name: str = SYNTHETIC) -> tuple[float, int, int]:
    """Return the CPU time of a second fit in this process, the peak memory above that before it, and the number of cells.

    The cells of peers, whose trees have a fixed number of leaves, are not counted.
    """
    data = make_samples(100, 40, 40) if name == SYNTHETIC else PROBLEMS[name][0]()
    X = with_holes(data.X, "at random", share, 0) if share else data.X
    if model in peers_boosted.LIBRARIES:
        pairs = Training(X, data.y, None, 0, n_jobs=1).pairs(n_pairs)
        rows = np.column_stack([pairs.first, pairs.second])
        given = coordinates(X, rows, KINDS if share else F), pairs.same
        library = peers_boosted.LIBRARIES[model]
        made = library.make(N_ROUNDS, n_jobs=1, **{library.size: N_LEAVES})
    else:
        given = X, data.y
        how = {"n_pairs": n_pairs, "n_jobs": 1, "random_state": 0}
        made = (
            SimilarityForest(n_estimators=3, **how)
            if model == "forest"
            else SimilarityBoosting(n_estimators=N_ROUNDS, max_leaf_nodes=N_LEAVES, early_stopping=False, refresh=10, **how)
        )
    made.fit(*given)  # compiles the kernels
    before = memory_status("VmRSS")
    start = time.process_time()
    made.fit(*given)
    seconds, peak = time.process_time() - start, max(0, memory_status("VmHWM") - before)
    return seconds, peak, sum(tree.n_cells for tree in getattr(made, "trees_", ()))


def in_other_sources(sources: Path, *case: Any) -> tuple[float, int, int]:
    """Return `cost_of` in a new process with other sources of simtree."""
    call = f"import bench_tables; print(*bench_tables.cost_of(*{case!r}))"
    path = os.pathsep.join([str(sources.resolve()), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-c", call], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    seconds, peak, cells = done.stdout.split()[-3:]
    return float(seconds), int(peak), int(cells)


def costs(name: str, before: Path | None, n_pairs: int, n_runs: int) -> dict[str, Any]:
    """Return CPU seconds, peak memory and cells of all runs, which alternate so that other load meets all of them alike."""
    here = ROOT / "src"
    cases = {"complete": (here, 0.0), "30 % missing": (here, 0.3)}
    if before is not None:
        cases["complete, before"] = (before, 0.0)
    found: dict[str, Any] = {}
    for model in ("forest", "boosting", *(name for name in PEERS if find_spec(name.lower()))):
        for _ in range(n_runs):
            for case, (sources, share) in cases.items():
                if model in PEERS and sources != here:
                    continue
                seconds, peak, cells = in_other_sources(sources, model, share, n_pairs, name)
                of_case = found.setdefault(model, {}).setdefault(case, {"seconds": [], "peak": [], "cells": cells})
                of_case["seconds"].append(seconds)
                of_case["peak"].append(peak)
    return {"n_pairs": n_pairs, "found": found}


# The page


def paired(splits: dict[str, Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error over splits of the difference of simtree to another model, by metric."""
    differences = np.array([np.subtract(found["simtree"], found[name]) for found in splits.values()])
    spread = differences.std(axis=0, ddof=1) if len(differences) > 1 else np.full(differences.shape[1], np.nan)
    return differences.mean(axis=0), spread / np.sqrt(len(differences))


def accuracy_table(problem: dict[str, Any]) -> str:
    """Return the means over splits, and for the other models how far simtree is ahead of them, as a table."""
    rows = []
    for case, splits in problem["results"].items():
        for name in sorted(next(iter(splits.values())), key=lambda name: (not name.startswith("simtree"), name)):
            means = np.mean([found[name] for found in splits.values()], axis=0)
            mean, error = paired(splits, name)
            ahead = (
                [""] * len(means) if name == "simtree" else [f" ({m:+.4f} ± {e:.4f})" for m, e in zip(mean, error, strict=True)]
            )
            rows.append([case, name, *(f"{value:.4f}{more}" for value, more in zip(means, ahead, strict=True))])
    return markdown_table(["deleted", "model", *METRICS], rows)


def behind(problem: dict[str, Any]) -> tuple[list[str], int]:
    """Return the comparisons in which simtree is behind by more than a standard error, and the number of all comparisons."""
    found, n_all = [], 0
    for case, splits in problem["results"].items():
        for name in next(iter(splits.values())):
            if name == "simtree":
                continue
            mean, error = paired(splits, name)
            n_all += len(mean)
            for metric, m, e in zip(METRICS, mean, error, strict=True):
                if m < -e:
                    found.append(f"{case}, {name}, {metric}: {m:+.4f} ± {e:.4f}")
    return found, n_all


def cost_table(found: dict[str, Any]) -> str:
    """Return medians of CPU time and of memory, and their ratios to those of complete samples here."""
    rows = []
    for model, cases in found["found"].items():
        base = {what: float(np.median(cases["complete"][what])) for what in ("seconds", "peak")}
        for case, values in cases.items():
            seconds, peak = (float(np.median(values[what])) for what in ("seconds", "peak"))
            cells = values.get("cells", 0)  # which earlier results do not have
            ratio = seconds / base["seconds"]
            per_cell = f"{ratio * cases['complete']['cells'] / cells:.3f}" if cells else "-"
            ratios = [f"{ratio:.3f}", per_cell, f"{peak / base['peak']:.3f}" if base["peak"] else "-"]
            rows.append([model, case, f"{seconds:.2f}", f"{peak / 1e6:.1f}", f"{cells:,}" if cells else "-", *ratios])
    to_complete = ["time to complete", "time per cell to complete", "memory to complete"]
    return markdown_table(["model", "samples", "CPU (s)", "peak memory (MB)", "cells", *to_complete], rows)


def tables(report: dict[str, Any]) -> str:
    """Return all tables of a report, with headings of the second level."""
    parts = []
    for name, problem in report.get("accuracy", {}).items():
        n_splits = len(next(iter(problem["results"].values())))
        chosen = "; ".join(f"{k} {v['learning_rate']:g} and {v['size']}" for k, v in problem["settings"].items())
        how = f"{count(n_splits, 'split')}, {problem['n_pairs']:,} pairs; learning rates and leaves: {chosen}."
        worse, n_all = behind(problem)
        lost = "\n".join(f"- {line}" for line in worse) or "- none"
        says = f"Of {n_all} comparisons, simtree is behind by more than a standard error in {len(worse)}:"
        parts += [f"## {name}", how, says, lost, accuracy_table(problem)]
    for name, measured in report.get("costs", {}).items():
        parts += [f"## Costs: {name}", f"{measured['n_pairs']:,} pairs at a time.", cost_table(measured)]
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
    parser.add_argument("--rates", type=float, nargs="+", default=RATES, help="learning rates to choose from (0.1 and 0.03)")
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

    def keep_accuracy(name: str, found: Any) -> None:
        keep("accuracy", name, found=found)

    if options.page:
        write_page(report, options.docs / "missing_measured.md")
        return
    needs_data = options.data is not None if options.costs else not options.quick
    if needs_data and not os.environ.get("SIMTREE_DATA"):
        instead = "leave out --data" if options.costs else "pass --quick"
        parser.exit(2, f"SIMTREE_DATA is not set; set it to the folder that holds the data, or {instead}.\n")
    if options.costs:
        for name in options.data or [SYNTHETIC]:
            found = costs(name, options.before, 2_000 if options.quick else 100_000, 1 if options.quick else 5)
            keep("costs", name, found=found)
    else:
        names = ["quick"] if options.quick else options.data or [name for name in PROBLEMS if name != "quick"]
        test = Pairs(200, 1_000) if options.quick else Pairs(20_000, 100_000)
        numbers = [1] if options.quick else range(1, options.splits + 1)
        for name in names:
            known = report.get("accuracy", {}).get(name, {})
            n_pairs = 400 if options.quick else options.pairs
            run(name, numbers, n_pairs, test, options.rates, known, partial(keep_accuracy, name))
    print(tables(report))


if __name__ == "__main__":
    main()
