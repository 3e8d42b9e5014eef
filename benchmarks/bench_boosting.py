"""Boosted ranking trees, and fewer trees with more pairs, compared with a forest on the same number of pairs.

    SIMTREE_DATA=folder python benchmarks/bench_boosting.py [--tiny] [--out results]

Keystroke data: the 30 training people of split 0 of the accuracy benchmark, in three folds of people. Letters: the training
side of its split 0, in three folds of samples. A boosted tree is grown on pairs sampled with the weights of logistic boosting,
which increase with the error of the sum of log-likelihood ratios so far. All models see the features f of 1,000,000 pairs.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial

import numpy as np
from scipy.special import expit

from accuracy.data import N_CHOICES, Pairs, Split, make_samples, read_keystroke, read_uci, split_identities, split_samples
from measure import N_JOBS, tiny_and_out
from problems import row_numbers
from simtree import SimilarityForest
from simtree._utils.files import write_atomically
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs._sampling import PairSampler

FPR = (1e-1, 1e-2, 1e-3)
# Number of candidates per pair that is sampled.
CANDIDATES = 4


def forest(split: Split, n_trees: int, n_pairs: int) -> np.ndarray:
    """Return the scores of the test pairs by a forest."""
    model = SimilarityForest(n_estimators=n_trees, n_pairs=n_pairs, min_pairs_split=100, n_jobs=N_JOBS, random_state=0)
    return model.fit(split.X, split.y).pair_score(split.rows, split.X_test)


def boosted(split: Split, n_trees: int, n_pairs: int, step: float, depth: int) -> np.ndarray:
    """Return the scores of the test pairs by boosted trees, each grown on pairs that the previous ones misjudge."""
    rng, sampler, trees = np.random.default_rng(0), PairSampler(split.y), []
    scores = np.zeros(len(split.rows))
    for _ in range(n_trees):
        pairs = sampler.sample(CANDIDATES * n_pairs, rng, positive_fraction=0.5, shuffle=False)
        so_far = np.zeros(len(pairs))
        for tree in trees:
            so_far += step * tree.pair_score(row_numbers(pairs), split.X)
        errors = expit(np.where(pairs.same, -so_far, so_far))
        sampled = pairs.take(rng.choice(len(pairs), n_pairs, p=errors / errors.sum()))
        # A forest of one tree, because its scores are log-likelihood ratios.
        tree = SimilarityForest(
            n_estimators=1, bootstrap=False, max_depth=depth, min_pairs_split=100, n_jobs=N_JOBS, random_state=0
        )
        trees.append(tree.fit(split.X, sampled.same, pairs=row_numbers(sampled)))
        scores += step * tree.pair_score(split.rows, split.X_test)
    return scores


def metrics(scores: np.ndarray, same: np.ndarray) -> list[float]:
    roc = roc_curve(scores, same)
    return [roc.auc(), *tpr_at_fpr(roc, list(FPR)).tolist()]


def main() -> None:
    options = tiny_and_out(__doc__)
    n_trees, n_pairs = (4, 500) if options.tiny else (20, 50_000)
    test = Pairs(200, 1_000) if options.tiny else Pairs(60_000, 300_000)
    samples = {"keystroke": make_samples if options.tiny else read_keystroke}
    samples["letter"] = make_samples if options.tiny else partial(read_uci, "letter")
    splits = {"keystroke": lambda data, k: split_identities(data, 30 / 51, test, 0, k)}
    splits["letter"] = lambda data, k: split_samples(data, test, 0, k)
    models = {f"forest, {n_trees} trees": partial(forest, n_trees=n_trees, n_pairs=n_pairs)}
    for factor in (2, 4):
        models[f"forest, {n_trees // factor} trees, {factor} times the pairs each"] = partial(
            forest, n_trees=n_trees // factor, n_pairs=factor * n_pairs
        )
    for step, depth in ((1.0, 15), (0.3, 15), (1.0, 4), (0.3, 4)):
        models[f"boosted, step {step:g}, depth {depth}"] = partial(
            boosted, n_trees=n_trees, n_pairs=n_pairs, step=step, depth=depth
        )
    report, header = {}, ["model", "AUC", *(f"TPR at {fpr:g}" for fpr in FPR), "seconds"]
    for name, read in samples.items():
        data, rows = read(), []
        report[name] = {}
        for model, learn in models.items():
            start = time.perf_counter()
            found = []
            for k in range(N_CHOICES):
                split = splits[name](data, k)
                found.append(metrics(learn(split), split.same))
            report[name][model] = found
            mean = np.mean(found, axis=0)
            rows.append([model, f"{mean[0]:.4f}", *(f"{rate:.3f}" for rate in mean[1:]), f"{time.perf_counter() - start:.0f}"])
        print(f"{name}, means over {N_CHOICES} folds:\n\n{markdown_table(header, rows)}\n", flush=True)
    command = " ".join(["python", *sys.argv])
    write_atomically(options.out / "bench_boosting.json", json.dumps({"command": command, "found": report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
