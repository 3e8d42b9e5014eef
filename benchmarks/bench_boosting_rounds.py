"""TPR at low false positive rates as boosting rounds grow: fixed and new pairs, penalties, subsamples, hard pairs.

    SIMTREE_DATA=folder python benchmarks/bench_boosting_rounds.py [--tiny] [--rounds 100 300 1000 2000] [--pairs 100000]
        [--folds 3] [--data keystroke letter lfw mnist] [--models ...] [--out results]

Keystroke data and faces (lfw): the training people of split 0 of the accuracy benchmark, in three folds of people. Letters: the
training side of its split 0, in three folds of samples. MNIST: the last 10,000 training images are the test images. All models
see the features f. The last row has the rounds that early stopping chooses on held-out people or samples of the training side.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np

from accuracy.data import (
    N_CHOICES,
    Pairs,
    Split,
    digits,
    make_digits,
    make_samples,
    read_keystroke,
    read_lfw,
    read_uci,
    split_identities,
    split_samples,
)
from measure import N_JOBS
from simtree import SimilarityBoosting
from simtree._utils.files import write_atomically
from simtree._utils.validation import count
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve

FPR = (1e-1, 1e-2, 1e-3, 1e-4)
MODELS = {
    "fixed pairs": {"refresh": None},
    "fixed pairs, l2=1": {"refresh": None, "l2": 1.0},
    "fixed pairs, l2=0.1": {"refresh": None, "l2": 0.1},
    "new pairs": {},
    "new pairs, l2=0.01": {"l2": 0.01},
    "ten times the pairs for ten times as long, a tenth per tree": {"refresh": 100, "subsample": 0.1},
    "new pairs, focus_fpr=0.1": {"focus_fpr": 0.1},
    "new pairs, focus_fpr=0.01": {"focus_fpr": 0.01},
}


def by_rounds(model: SimilarityBoosting, split: Split, rounds: list[int]) -> list[list[float]]:
    """Return AUC and TPRs on the test pairs after each number of rounds."""
    found = []
    for n in rounds:
        part = copy.copy(model)
        part.trees_, part.values_ = model.trees_[:n], model.values_[:n]
        part._code()
        roc = roc_curve(part.pair_score(split.rows, split.X_test), split.same)
        found.append([roc.auc(), *roc.at(np.array(FPR)).tolist()])
    return found


def boosting(rounds: int, n_pairs: int, *, early_stopping: bool = False, **parameters: object) -> SimilarityBoosting:
    """Return the model that is compared; with a subsample, each tree is grown on so many pairs."""
    n_drawn = round(n_pairs / float(parameters.get("subsample", 1.0)))
    return SimilarityBoosting(
        n_estimators=rounds, n_pairs=n_drawn, early_stopping=early_stopping, n_jobs=N_JOBS, random_state=0, **parameters
    )


def folds_of(name: str, tiny: bool, n_folds: int) -> list[Split]:
    """Return the folds of a data set."""
    test = Pairs(200, 1_000) if tiny else Pairs(60_000, 300_000)
    if name == "mnist":
        return [(make_digits if tiny else digits)(test, 0, 0)]
    if name == "keystroke":
        split, read = partial(split_identities, share=30 / 51), read_keystroke
    elif name == "lfw":
        split, read = partial(split_identities, share=0.6), read_lfw
    else:
        split, read = split_samples, partial(read_uci, "letter")
    data = make_samples() if tiny else read()
    return [split(data, pairs=test, split=0, choice=k) for k in range(n_folds)]


def options() -> argparse.Namespace:
    """Parse the command line; exit if there are no data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--rounds", type=int, nargs="+", default=[100, 300, 1000, 2000], help="numbers of rounds")
    parser.add_argument("--pairs", type=int, default=100_000, help="number of pairs at a time (100000)")
    parser.add_argument("--folds", type=int, default=N_CHOICES, help=f"number of folds (all {N_CHOICES})")
    parser.add_argument("--data", nargs="+", default=["keystroke", "letter"], choices=["keystroke", "letter", "lfw", "mnist"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS), help="models to compare")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (results)")
    found = parser.parse_args()
    if not found.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    return found


def main() -> None:
    chosen = options()
    header = ["model", "rounds", "AUC", *(f"TPR at {fpr:g}" for fpr in FPR)]
    report = {}
    for name in chosen.data:
        rows, report[name] = [], {}
        folds = folds_of(name, chosen.tiny, chosen.folds)
        for model in chosen.models:
            parameters = MODELS[model]
            fitted = [boosting(max(chosen.rounds), chosen.pairs, **parameters).fit(fold.X, fold.y) for fold in folds]
            found = np.array([by_rounds(one, fold, chosen.rounds) for one, fold in zip(fitted, folds, strict=True)])
            report[name][model] = found.tolist()
            for n, mean in zip(chosen.rounds, found.mean(axis=0), strict=True):
                rows.append([model, n, f"{mean[0]:.5f}", *(f"{rate:.3f}" for rate in mean[1:])])
        stopped = [boosting(max(chosen.rounds), chosen.pairs, early_stopping=True).fit(fold.X, fold.y) for fold in folds]
        n_rounds = [one.best_iteration_ for one in stopped]
        found = np.array([by_rounds(one, fold, [n]) for one, fold, n in zip(stopped, folds, n_rounds, strict=True)])
        report[name]["early stopping"] = {"rounds": n_rounds, "found": found.tolist()}
        mean = found.mean(axis=(0, 1))
        told = ", ".join(map(str, n_rounds))
        rows.append(["new pairs, early stopping", told, f"{mean[0]:.5f}", *(f"{rate:.3f}" for rate in mean[1:])])
        print(f"{name}, means over {count(len(folds), 'fold')}:\n\n{markdown_table(header, rows)}\n", flush=True)
    command = " ".join(["python", *sys.argv])
    found_in = chosen.out / "bench_boosting_rounds.json"
    write_atomically(found_in, json.dumps({"command": command, "rounds": chosen.rounds, "found": report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
