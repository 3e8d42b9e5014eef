"""Boosted ranking trees, and more pairs instead of more trees, beside a forest that sees as many pairs.

    SIMTREE_DATA=folder python benchmarks/bench_boosting.py [--tiny] [--out results]

Keystroke data: the 30 people to learn from of split 0 of the accuracy benchmark, in three folds of people. Letters: the
training side of its split 0, in three folds of points. A boosted tree is grown on pairs drawn with the weights of logistic
boosting: the more likely, the more the sum of log-likelihood ratios so far is mistaken. All see 1,000,000 pairs, through f.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial

import numpy as np
from scipy.special import expit

from accuracy.data import N_CHOICES, Pairs, Split, made_up_points, other_people, other_points, read_keystroke, read_uci
from measure import N_JOBS, tiny_and_out
from problems import row_numbers
from simtree import SimilarityForest
from simtree._utils.files import write_atomically
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs._sampling import PairSampler

FPR = (1e-1, 1e-2, 1e-3)
# Of so many pairs for each that is wanted, those that are mistaken most are the most likely to be drawn.
CANDIDATES = 4


def forest(split: Split, n_trees: int, n_pairs: int) -> np.ndarray:
    """Scores of the test pairs by a forest."""
    model = SimilarityForest(n_estimators=n_trees, n_pairs=n_pairs, min_pairs_split=100, n_jobs=N_JOBS, random_state=0)
    return model.fit(split.X, split.y).pair_score(split.rows, split.X_test)


def boosted(split: Split, n_trees: int, n_pairs: int, step: float, depth: int) -> np.ndarray:
    """Scores of the test pairs by trees each of which is grown on pairs that those before it mistake."""
    rng, sampler, trees = np.random.default_rng(0), PairSampler(split.y), []
    scores = np.zeros(len(split.rows))
    for _ in range(n_trees):
        pairs = sampler.sample(CANDIDATES * n_pairs, rng, positive_fraction=0.5)
        so_far = np.zeros(len(pairs))
        for tree in trees:
            so_far += step * tree.pair_score(row_numbers(pairs), split.X)
        mistaken = expit(np.where(pairs.same, -so_far, so_far))
        drawn = pairs.take(rng.choice(len(pairs), n_pairs, p=mistaken / mistaken.sum()))
        # A forest of one tree, for its log-likelihood ratios.
        tree = SimilarityForest(
            n_estimators=1, bootstrap=False, max_depth=depth, min_pairs_split=100, n_jobs=N_JOBS, random_state=0
        )
        trees.append(tree.fit(split.X, drawn.same, pairs=row_numbers(drawn)))
        scores += step * tree.pair_score(split.rows, split.X_test)
    return scores


def figures(scores: np.ndarray, same: np.ndarray) -> list[float]:
    roc = roc_curve(scores, same)
    return [roc.auc(), *tpr_at_fpr(roc, list(FPR)).tolist()]


def main() -> None:
    options = tiny_and_out(__doc__)
    n_trees, n_pairs = (4, 500) if options.tiny else (20, 50_000)
    test = Pairs(200, 1_000) if options.tiny else Pairs(60_000, 300_000)
    points = {"keystroke": made_up_points if options.tiny else read_keystroke}
    points["letter"] = made_up_points if options.tiny else partial(read_uci, "letter")
    splits = {"keystroke": lambda data, k: other_people(data, 30 / 51, test, 0, k)}
    splits["letter"] = lambda data, k: other_points(data, test, 0, k)
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
    for name, read in points.items():
        data, rows = read(), []
        report[name] = {}
        for model, learn in models.items():
            start = time.perf_counter()
            found = []
            for k in range(N_CHOICES):
                split = splits[name](data, k)
                found.append(figures(learn(split), split.same))
            report[name][model] = found
            mean = np.mean(found, axis=0)
            rows.append([model, f"{mean[0]:.4f}", *(f"{rate:.3f}" for rate in mean[1:]), f"{time.perf_counter() - start:.0f}"])
        print(f"{name}, means over {N_CHOICES} folds:\n\n{markdown_table(header, rows)}\n", flush=True)
    command = " ".join(["python", *sys.argv])
    write_atomically(options.out / "bench_boosting.json", json.dumps({"command": command, "found": report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
