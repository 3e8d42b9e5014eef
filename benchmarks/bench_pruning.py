"""Effect of pruning by cross-validation on the AUC of new pairs and on the number of terminal cells.

    python benchmarks/bench_pruning.py [--distributions 50] [--out results]

Random tree distributions of the paper (depth 3, with a known optimal AUC), and similarity trees of depth 8. The last two
settings have few pairs, and noise features in addition to the three informative ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from simtree import SimilarityTree
from simtree._utils.files import write_atomically
from simtree.datasets import make_tree_law
from simtree.metrics import roc_curve

DEPTH = 8
N_TEST = 20_000
SETTINGS = [
    ("2,000 pairs", 2_000, 0),
    ("10,000 pairs", 10_000, 0),
    ("200 pairs, 3 noise features", 200, 3),
    ("200 pairs, 12 noise features", 200, 12),
]


def with_noise(pairs: np.ndarray, n_noise: int, rng: np.random.Generator) -> np.ndarray:
    """Return the pairs with additional noise features."""
    return np.concatenate([pairs, rng.uniform(-1, 1, (*pairs.shape[:2], n_noise))], axis=2)


def one_distribution(n_pairs: int, n_noise: int, seed: int) -> dict[str, float]:
    """Return the AUC and the size of the full and of the pruned tree on one distribution."""
    rng = np.random.default_rng(seed)
    law = make_tree_law(3, random_state=seed)
    pairs, same = law.sample(n_pairs, random_state=seed + 1000)
    test, test_same = law.sample(N_TEST, random_state=seed + 2000)
    pairs, test = with_noise(pairs, n_noise, rng), with_noise(test, n_noise, rng)
    # Pairs of a distribution share no sample, so each pair is a group of its own.
    groups = np.repeat(np.arange(n_pairs), 2).reshape(n_pairs, 2)
    result = {"optimal_auc": law.optimal_auc}
    for name, parameters in (("full", {}), ("pruned", {"prune": "cv", "n_jobs": 2})):
        tree = SimilarityTree(max_depth=DEPTH, splitter="cut", random_state=seed, **parameters).fit(pairs, same, groups=groups)
        result[f"{name}_auc"] = roc_curve(tree.pair_score(test), test_same).auc()
        result[f"{name}_cells"] = len(tree.tree_.leaves)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--distributions", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    runs = {
        name: [one_distribution(n_pairs, n_noise, seed) for seed in range(arguments.distributions)]
        for name, n_pairs, n_noise in SETTINGS
    }
    print("| setting | optimal AUC | AUC full | AUC pruned | gain | cells full | cells pruned | kept |")
    print("|---|---|---|---|---|---|---|---|")
    for name, found in runs.items():
        mean = {key: float(np.mean([run[key] for run in found])) for key in found[0]}
        gains = [run["pruned_auc"] - run["full_auc"] for run in found]
        error = 2 * np.std(gains) / np.sqrt(len(gains))
        print(
            f"| {name} | {mean['optimal_auc']:.3f} | {mean['full_auc']:.4f} | {mean['pruned_auc']:.4f} "
            f"| {np.mean(gains):+.4f} ± {error:.4f} | {mean['full_cells']:.1f} | {mean['pruned_cells']:.1f} "
            f"| {mean['pruned_cells'] / mean['full_cells']:.0%} |"
        )
    report = {
        "command": " ".join(sys.argv),
        "distributions": arguments.distributions,
        "depth": DEPTH,
        "n_test": N_TEST,
        "runs": runs,
    }
    write_atomically(arguments.out / "bench_pruning.json", json.dumps(report, indent=1))
    print(
        f"\nWritten to {arguments.out / 'bench_pruning.json'}. "
        f"Means over {arguments.distributions} distributions; ± twice the standard error."
    )


if __name__ == "__main__":
    main()
