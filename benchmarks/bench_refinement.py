"""Global refinement of forests (Ren et al. 2015): values of all cells refitted together by logistic regression on fresh pairs.

    SIMTREE_DATA=folder python benchmarks/bench_refinement.py [--data keystroke mnist] [--seeds 3] [--tiny] [--out results]

A forest is fitted; then new pairs of the same samples are drawn, and the sum of the values of their cells is fitted to whether
they are same pairs, with an L2 penalty of the distance of each value from that of the forest. The test pairs are of other
people (keystroke) or other images (mnist, 30 principal components). The last column is the mean difference to the forest alone
at a false positive rate of 0.001, and its standard error over random seeds.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit

from problems import N_PEOPLE_TO_TRAIN, Samples, as_rows, clusters, draw, mnist, row_numbers
from simtree import SimilarityForest
from simtree._utils.files import write_atomically
from simtree.datasets import load_keystroke
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve, tpr_at_fpr

FPR = (1e-2, 1e-3, 1e-4)
PENALTIES = (1.0, 10.0, 100.0)
PLAIN = "forest"
# Trees, pairs per tree, fresh pairs, test pairs, and iterations of the optimisation.
SIZES = {"full": (20, 100_000, 400_000, 400_000, 60), "tiny": (3, 1_000, 2_000, 4_000, 20)}


def keystroke_people(seed: int) -> Samples:
    """Return 30 people for training and 21 others for test; trees do not depend on the units of features."""
    X, y = load_keystroke()
    train = np.isin(y, np.random.default_rng(seed).permutation(51)[:N_PEOPLE_TO_TRAIN])
    return Samples(as_rows(X[train]), y[train], as_rows(X[~train]), y[~train])


def samples_of(name: str, seed: int, tiny: bool) -> Samples:
    if tiny:
        return clusters()
    return keystroke_people(seed) if name == "keystroke" else mnist(30)


def indicators(forest: SimilarityForest, X: np.ndarray, rows: np.ndarray) -> csr_array:
    """Return a matrix with a row per pair and a column per cell of any tree: 1 where the pair ends."""
    n_cells = [tree.n_cells for tree in forest.trees_]
    columns = forest.apply(rows, X) + np.cumsum([0, *n_cells[:-1]])
    starts = np.arange(len(rows) + 1) * len(n_cells)
    return csr_array((np.ones(columns.size), columns.ravel(), starts), shape=(len(rows), sum(n_cells)))


def refined(cells: csr_array, same: np.ndarray, start: np.ndarray, penalty: float, n_iterations: int) -> np.ndarray:
    """Return values of cells that minimise the logistic loss of pairs plus the penalty of their distance from the start."""
    sign, back = np.where(same, 1.0, -1.0), csr_array(cells.T)
    # The scale of the forest's scores first: the mean of log-likelihood ratios is none.
    base = cells @ start

    def of_line(line: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (line[0] * base + line[1])
        slope = -sign * expit(-margin)
        return float(np.logaddexp(0.0, -margin).sum()), np.array([slope @ base, slope.sum()])

    scale, offset = minimize(of_line, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B").x

    def loss(change: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (scale * base + offset + cells @ change)
        slope = back @ (-sign * expit(-margin)) + penalty * change
        return float(np.logaddexp(0.0, -margin).sum() + 0.5 * penalty * change @ change), slope

    found = minimize(loss, np.zeros(len(start)), jac=True, method="L-BFGS-B", options={"maxiter": n_iterations})
    return scale * start + found.x


def figures(scores: np.ndarray, same: np.ndarray) -> list[float]:
    """Return the AUC and the TPR at some false positive rates."""
    roc = roc_curve(scores, same)
    return [float(roc.auc()), *(float(rate) for rate in tpr_at_fpr(roc, FPR))]


def measured(name: str, seed: int, tiny: bool) -> dict[str, list[float]]:
    """Return the figures of a forest on the test, as it is and refined with several penalties."""
    n_trees, n_pairs, n_fresh, n_test, n_iterations = SIZES["tiny" if tiny else "full"]
    samples = samples_of(name, seed, tiny)
    split = {"min_pairs_split": 100} if name == "keystroke" else {}
    forest = SimilarityForest(n_estimators=n_trees, n_pairs=n_pairs, random_state=seed, n_jobs=1, **split).fit(
        samples.X, samples.y
    )
    fresh = draw(samples.y, n_fresh, seed=1000 + seed)
    test = draw(samples.y_test, n_test, positive_fraction=0.2, seed=seed)
    of_test = indicators(forest, samples.X_test, row_numbers(test))
    start = np.concatenate([tree.llr for tree in forest.trees_]) / n_trees
    found = {PLAIN: figures(of_test @ start, test.same)}
    cells = indicators(forest, samples.X, row_numbers(fresh))
    for penalty in PENALTIES:
        values = refined(cells, fresh.same, start, penalty, n_iterations)
        found[f"refined, penalty {penalty:g}"] = figures(of_test @ values, test.same)
    return found


def table_of(runs: list[dict[str, list[float]]]) -> str:
    """Return means over random seeds as a table, with the difference to the forest."""
    rows = []
    for name in runs[0]:
        values = np.array([run[name] for run in runs])
        cells = [name, *(f"{mean:.4f}" for mean in values.mean(axis=0))]
        change = values[:, 2] - np.array([run[PLAIN][2] for run in runs])
        error = change.std(ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else float("nan")
        rows.append([*cells, "" if name == PLAIN else f"{change.mean():+.4f} ± {error:.4f}"])
    return markdown_table(["values of cells", "AUC", *(f"TPR at {fpr:g}" for fpr in FPR), "difference at 0.001"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["keystroke", "mnist"], choices=["keystroke", "mnist"], help="problems")
    parser.add_argument("--seeds", type=int, default=3, help="number of random seeds (3)")
    parser.add_argument("--tiny", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (results)")
    chosen = parser.parse_args()
    if not chosen.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    found: dict[str, Any] = {}
    for name in chosen.data:
        found[name] = [measured(name, seed, chosen.tiny) for seed in range(chosen.seeds)]
        print(f"{name}, {chosen.seeds} random seeds:\n\n{table_of(found[name])}\n", flush=True)
    write_atomically(chosen.out / "bench_refinement.json", json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
