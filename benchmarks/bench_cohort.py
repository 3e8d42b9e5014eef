"""Score normalisation with a cohort: TPR at low false positive rates on unseen people, for each kind of cohort.

    SIMTREE_DATA=folder python benchmarks/bench_cohort.py [--only lfw,keystroke,audio] [--splits 0 1 2] [--nearest 30 100]

Models are fitted on the people of the training side (60 % of the people of lfw, 30 of 51 typists, 36 of 60 speakers) and score
pairs of the others; the first row of each model is without a cohort. ``--choose`` splits the training side again, by people,
and leaves the test side alone: this is how the default settings were chosen. ``--tiny`` uses synthetic clusters to check that
everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench_representation import SAME, samples_of
from problems import Samples
from simtree import CohortNormalization, DistanceSimilarity, GaussianSimilarity, MarginalQuantiles, SimilarityForest
from simtree._utils.files import write_atomically
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.models._base import Similarity
from simtree.models._cohort import COHORTS
from simtree.pairs._sampling import PairSampler

FPR = [1e-2, 1e-3, 1e-4, 1e-5]
SETS = ("lfw", "keystroke", "audio")
N_TEST = 1_500_000


def models_of(name: str, n_trees: int, n_pairs: int) -> dict[str, Similarity]:
    """Return the models of a data set by name."""
    forest = SimilarityForest(
        n_estimators=n_trees, n_pairs=n_pairs, coordinates=["abs_diff", "sum"], min_pairs_split=100, n_jobs=2, random_state=0
    )
    quantiles = None if name == "lfw" else MarginalQuantiles()
    found: dict[str, Similarity] = {
        "Gaussian ratio": GaussianSimilarity(representation=quantiles, n_jobs=2),
        "forest on f": forest,
    }
    return {"cosine": DistanceSimilarity(representation=quantiles, n_jobs=2), **found}


def training_side(samples: Samples, seed: int) -> Samples:
    """Return the training samples, split again by identity: two thirds to train, the others to test."""
    people = np.unique(samples.y)
    train = np.isin(samples.y, np.random.default_rng([seed, 1]).permutation(people)[: round(2 * len(people) / 3)])
    return Samples(samples.X[train], samples.y[train], samples.X[~train], samples.y[~train])


def one_split(name: str, seed: int, options: argparse.Namespace) -> dict[str, list[float]]:
    """Return AUC and TPRs of each model, without and with cohorts."""
    samples = samples_of(name, seed)
    if options.choose:
        samples = training_side(samples, seed)
    n_test = 5_000 if options.tiny else N_TEST
    test = PairSampler(samples.y_test).sample(n_test, np.random.default_rng(seed), positive_fraction=SAME[name])
    rows = np.column_stack([test.first, test.second])

    def rates(model: Similarity) -> list[float]:
        roc = roc_curve(model.pair_score(rows, samples.X_test), test.same)
        return [roc.auc(), *(float(tpr) for tpr in tpr_at_fpr(roc, FPR))]

    found = {}
    for label, model in models_of(name, options.trees, options.pairs).items():
        if options.models and label not in options.models:
            continue
        for cohort in COHORTS:
            normalised = CohortNormalization(model, cohort=cohort, n_cohort=options.cohort, n_jobs=2, random_state=seed)
            normalised.fit(samples.X, samples.y)
            if label not in found:
                found[label] = rates(normalised.estimator_)
            for nearest in options.nearest:
                found[f"{label}, {cohort}, nearest {nearest}"] = rates(normalised.set_params(n_nearest=nearest))
        print(f"{name} {seed} {label}", file=sys.stderr, flush=True)
    return found


def as_markdown(runs: list[dict[str, list[float]]]) -> str:
    """Return a table of the means over the splits."""
    lines = ["| model | AUC | " + " | ".join(f"TPR at {fpr:g}" for fpr in FPR) + " |", "|" + "---|" * (len(FPR) + 2)]
    for label in runs[0]:
        auc, *tprs = np.mean([run[label] for run in runs], axis=0)
        lines.append(f"| {label} | {auc:.4f} | " + " | ".join(f"{tpr:.3f}" for tpr in tprs) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SETS), help="data sets, separated by commas")
    parser.add_argument("--models", nargs="+", help="only models of these names")
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2], help="random seeds of the splits (0 1 2)")
    parser.add_argument("--nearest", type=int, nargs="+", default=[100], help="numbers of nearest vectors of the cohort")
    parser.add_argument("--cohort", type=int, default=600, help="size of the cohort")
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=200_000, help="pairs per tree")
    parser.add_argument("--choose", action="store_true", help="split the training side again, to choose settings")
    parser.add_argument("--tiny", action="store_true", help="synthetic clusters, to check that everything runs")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    names = ["tiny"] if options.tiny else options.only.split(",")
    unknown = [name for name in names if name not in (*SETS, "tiny")]
    if unknown:
        parser.exit(2, f"{unknown[0]!r} is not a data set; choose from {','.join(SETS)}.\n")
    report: dict[str, Any] = {"command": " ".join(sys.argv), "fpr": FPR, "sets": {}}
    for name in names:
        runs = [one_split(name, seed, options) for seed in (options.splits[:1] if options.tiny else options.splits)]
        report["sets"][name] = runs
        write_atomically(options.out / "bench_cohort.json", json.dumps(report, indent=1) + "\n")
        print(f"{name}, means over {len(runs)} split(s)\n\n{as_markdown(runs)}\n", flush=True)
    print(f"Written to {options.out / 'bench_cohort.json'}.")


if __name__ == "__main__":
    main()
