"""Boosting on the same pairs and coordinates as LightGBM: time and memory of `fit`, time of scoring, all costs included.

    SIMTREE_DATA=folder python benchmarks/bench_boosting_speed.py [--tiny] [--pairs 1000000] [--rounds 100] [--out results]

MNIST, 153 principal components, coordinates f (306), 63 leaves, learning rate 0.1, two threads. Each model is fitted in a
process of its own, after a small fit, so that imports and compilation do not count. The input are samples and row numbers of
pairs: the matrix of coordinates, which only LightGBM needs, counts as its time and memory. CPU time is that of all threads, and
depends less than time on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from measure import MEMORY, N_JOBS, SECONDS, in_fresh_process, observe
from models import accuracy, score
from problems import Samples, clusters, draw, materialise, mnist, row_numbers
from simtree import SimilarityBoosting
from simtree._utils.files import write_atomically
from simtree.experiments._results import markdown_table

OURS = "simtree"
BASE = "LightGBM, float64"
# Pairs of the fit that is made first, so that nothing is compiled later.
WARM_PAIRS, WARM_ROUNDS = 20_000, 3
# Rows that a Sequence gives at a time.
BATCH = 4096


def fit_simtree(X: np.ndarray, rows: np.ndarray, same: np.ndarray, rounds: int) -> SimilarityBoosting:
    """Return our model on given pairs."""
    model = SimilarityBoosting(n_estimators=rounds, early_stopping=False, n_jobs=N_JOBS, random_state=0)
    return model.fit(X, same, pairs=rows)


def fit_lightgbm(
    X: np.ndarray, rows: np.ndarray, same: np.ndarray, rounds: int, *, dtype: Any = None, quantised: bool = False
) -> Any:
    """Return LightGBM's model on the same pairs; ``dtype=None`` gives coordinates by `lightgbm.Sequence`, without a matrix."""
    import lightgbm

    class Coordinates(lightgbm.Sequence):
        batch_size = BATCH

        def __len__(self) -> int:
            return len(rows)

        def __getitem__(self, chosen: Any) -> np.ndarray:
            found = materialise(X, np.atleast_2d(rows[chosen])).astype(np.float64)
            return found[0] if np.ndim(chosen) == 0 and not isinstance(chosen, slice) else found

    settings = {"objective": "binary", "num_leaves": 63, "learning_rate": 0.1, "verbose": -1, "num_threads": N_JOBS, "seed": 0}
    settings["use_quantized_grad"] = quantised
    matrix = Coordinates() if dtype is None else materialise(X, rows).astype(dtype, copy=False)
    data = lightgbm.Dataset(matrix, same.astype(np.float64), params=settings)
    return lightgbm.train(settings, data, rounds)


FITS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    OURS: (fit_simtree, {}),
    BASE: (fit_lightgbm, {"dtype": np.float64}),
    "LightGBM, float64, quantised": (fit_lightgbm, {"dtype": np.float64, "quantised": True}),
    "LightGBM, float32": (fit_lightgbm, {"dtype": np.float32}),
    "LightGBM, Sequence": (fit_lightgbm, {}),
}


def scores_of(model: Any, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the scores of pairs, with the coordinates that LightGBM needs."""
    return score(model, X, rows) if hasattr(model, "pair_score") else model.predict(materialise(X, rows), num_threads=N_JOBS)


def measured(name: str, tiny: bool, n_pairs: int, rounds: int) -> dict[str, float]:
    """Return all figures of one model; called in a fresh process."""
    samples: Samples = clusters() if tiny else mnist()
    fit, options = FITS[name]
    warm = draw(samples.y, min(WARM_PAIRS, n_pairs), seed=3)
    scores_of(fit(samples.X, row_numbers(warm), warm.same, WARM_ROUNDS, **options), samples.X, row_numbers(warm))
    pairs, test = draw(samples.y, n_pairs), draw(samples.y_test, n_pairs, positive_fraction=0.2, seed=1)
    rows, test_rows = row_numbers(pairs), row_numbers(test)
    cpu = time.process_time()
    model, found = observe(lambda: fit(samples.X, rows, pairs.same, rounds, **options))
    cpu = time.process_time() - cpu
    _, of_scoring = observe(lambda: scores_of(model, samples.X_test, test_rows))
    scored = scores_of(model, samples.X_test, test_rows)
    return {
        "fit: time (s)": found[SECONDS][0],
        "fit: CPU time (s)": cpu,
        "fit: memory (MB)": found[MEMORY][0],
        "scoring: time (s)": of_scoring[SECONDS][0],
        **{metric: runs[0] for metric, runs in accuracy(scored, test.same).items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="number of training pairs, and of test pairs (1000000)")
    parser.add_argument("--rounds", type=int, default=100, help="number of rounds (100)")
    parser.add_argument("--only", nargs="+", default=list(FITS), choices=list(FITS), help="models to measure")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (results)")
    chosen = parser.parse_args()
    if not chosen.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    found = {name: in_fresh_process(measured, name, chosen.tiny, chosen.pairs, chosen.rounds) for name in chosen.only}
    metrics = list(next(iter(found.values())))
    rows = [[name, *(f"{of_model[metric]:.4g}" for metric in metrics)] for name, of_model in found.items()]
    print(f"{chosen.pairs:,} pairs, {chosen.rounds} rounds:\n\n{markdown_table(['model', *metrics], rows)}\n")
    if OURS in found and BASE in found:
        ratios = {metric: found[OURS][metric] / found[BASE][metric] for metric in metrics[:4]}
        print(f"{OURS} relative to {BASE}: " + ", ".join(f"{metric} {ratio:.2f}" for metric, ratio in ratios.items()))
    command = " ".join(["python", *sys.argv])
    write_atomically(
        chosen.out / "bench_boosting_speed.json", json.dumps({"command": command, "found": found}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
