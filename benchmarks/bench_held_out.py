"""How often calibration data are taken for training data: held-out data (false alarms) and training data.

    python benchmarks/bench_held_out.py [--runs 5] [--seed 0]

Each run samples identities with Gaussian centres and Gaussian deviations (of unequal size, where said), grows a forest with
``oob_score=True``, and calibrates it on the training table, on half of its rows in another order, and on data of new identities
of the same distribution.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np

from simtree import SimilarityForest
from simtree.models._held_out import MAX_EXCESS

N_HELD_OUT = (12, 25, 60, 150) * 3
# Standard deviation of the centres, and of the logarithm of the size of the deviations of an identity.
PROBLEMS = {"hard": (0.7, 0.0), "medium": (1.5, 0.0), "unequal": (1.5, 0.5), "easy": (3.0, 0.0), "easy, unequal": (3.0, 0.5)}


def identities(n: int, rng: np.random.Generator, centres: float, unequal: float) -> tuple[np.ndarray, np.ndarray]:
    """Return five samples of each of n identities."""
    y = np.repeat(np.arange(n), 5)
    sizes = np.exp(unequal * rng.normal(size=n))[y][:, None]
    return centres * rng.normal(size=(n, 8))[y] + sizes * rng.normal(size=(len(y), 8)), y


def excess(model: SimilarityForest, X: np.ndarray, y: np.ndarray) -> float:
    """Return by how many standard errors calibration finds these data too good."""
    return model.calibrate_threshold(X, y, strategy="accuracy", n_pairs=1000).held_out_check_.excess


def runs(bag: str, problem: str, n_train: int, n_runs: int, seed: int) -> Iterator[tuple[float, float, float, list[float]]]:
    """Yield the out-of-bag AUC and the excess of training data, of a part of them and of held-out data, run by run."""
    for run in range(n_runs):
        rng = np.random.default_rng([seed, n_train, run])
        X, y = identities(n_train, rng, *PROBLEMS[problem])
        model = SimilarityForest(n_estimators=50, n_pairs=10_000, bag=bag, oob_score=True, random_state=run, n_jobs=2).fit(X, y)
        part = rng.permutation(len(y))[: len(y) // 2]
        held_out = [excess(model, *identities(n, rng, *PROBLEMS[problem])) for n in N_HELD_OUT]
        yield model.oob_score_, excess(model, X, y), excess(model, X[part], y[part]), held_out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "same pairs score")
    print("| bag | problem | identities | out-of-bag AUC | training table | half of it | false alarms | highest held out |")
    print("|---|---|---|---|---|---|---|---|")
    alarms = []
    for bag in ("samples", "classes"):
        for problem in PROBLEMS:
            for n_train in (20, 60, 150):
                aucs, table, half, held_out = zip(*runs(bag, problem, n_train, options.runs, options.seed), strict=True)
                false = np.array(held_out) > MAX_EXCESS
                alarms.append(false.mean())
                print(
                    f"| {bag} | {problem} | {n_train} | {np.mean(aucs):.2f} | {np.mean(np.array(table) > MAX_EXCESS):.0%} "
                    f"| {np.mean(np.array(half) > MAX_EXCESS):.0%} | {false.mean():.1%} | {np.max(held_out):.1f} |",
                    flush=True,
                )
    n = len(alarms) * options.runs * len(N_HELD_OUT)
    print(f"\nFalse alarms: {np.mean(alarms):.2%} of {n:,} calibrations on held-out data.")


if __name__ == "__main__":
    main()
