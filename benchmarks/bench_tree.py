"""Time and memory of a SimilarityTree compared with scikit-learn's DecisionTreeClassifier, on pairs of MNIST.

    python benchmarks/bench_tree.py [--repeats 5] [--out results] [--quick]

Both are trained on the same pairs. SimilarityTree gets samples and row numbers; scikit-learn gets the same coordinates as a
float32 matrix, whose computation counts in its memory but not in its time. Memory, import and compilation are measured in a
fresh process, so that earlier runs do not affect them. The data are read from the folder in SIMTREE_DATA; ``--quick`` uses
small synthetic data instead, for which goals have no meaning. Requires Linux, for /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from measure import (
    MEGABYTE,
    SEED,
    describe,
    in_fresh_process,
    peak_memory,
    seconds,
    seconds_of_compilation,
    seconds_of_import,
    setting,
)
from problems import Samples, clusters, draw, materialise, mnist, row_numbers
from simtree import CartSplitter, SimilarityTree
from simtree._utils.files import write_atomically
from simtree.experiments._results import markdown_table


@dataclass(frozen=True)
class Size:
    """Size of the problem."""

    n_components: int
    n_pairs: int
    n_scored: int
    n_drawn: int
    n_imports: int
    first_splitter: str = "cart"  # of the fit whose compilation is measured


# MEDIUM is for the quick run of all benchmarks on real data, QUICK to check on synthetic data that this one runs.
MEDIUM = Size(n_components=153, n_pairs=20_000, n_scored=100_000, n_drawn=500_000, n_imports=1)
FULL = Size(n_components=153, n_pairs=100_000, n_scored=1_000_000, n_drawn=10_000_000, n_imports=5)
QUICK = Size(n_components=8, n_pairs=5_000, n_scored=10_000, n_drawn=50_000, n_imports=1, first_splitter="cross")


@dataclass(frozen=True)
class Problem:
    """Samples (float32 and C-contiguous, so that no library needs to copy them) and pairs of their row numbers."""

    X: np.ndarray
    y: np.ndarray
    pairs: np.ndarray
    same: np.ndarray
    X_test: np.ndarray
    pairs_test: np.ndarray
    same_test: np.ndarray

    def save(self, file: Path) -> None:
        np.savez(file, **vars(self))

    @classmethod
    def load(cls, file: Path) -> Problem:
        with np.load(file) as arrays:
            return cls(**arrays)


@dataclass(frozen=True)
class Row:
    """Row of the table: all runs of simtree and of scikit-learn (if there is a counterpart), and the goal.

    A goal is an upper bound on the ratio of the two medians, or on simtree's median if ``of_ratio`` is false.
    """

    name: str
    unit: str
    simtree: list[float]
    scikit_learn: list[float]
    goal: float | None = None
    of_ratio: bool = False

    @property
    def ratio(self) -> float | None:
        """Ratio of the medians of simtree and scikit-learn; None if it is undefined."""
        other = statistics.median(self.scikit_learn) if self.of_ratio else 0.0
        return statistics.median(self.simtree) / other if other > 0.0 else None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.goal is None:
            return None
        if self.of_ratio:
            return self.ratio is not None and self.ratio <= self.goal
        return statistics.median(self.simtree) < self.goal

    @property
    def goal_text(self) -> str:
        """The goal as text."""
        if self.goal is None:
            return ""
        return f"ratio ≤ {self.goal:.3g}" if self.of_ratio else f"< {self.goal:g} {self.unit}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "met": self.met}

    def cells(self) -> list[str]:
        return [
            f"{self.name} ({self.unit})" if self.unit else self.name,
            describe(self.simtree),
            describe(self.scikit_learn),
            "" if self.ratio is None else f"{self.ratio:.3f}",
            self.goal_text,
            {None: "", True: "yes", False: "no"}[self.met],
        ]


# The problem and the two models


def make_problem(samples: Samples, n_pairs: int) -> Problem:
    """Return samples, and training and test pairs, half of which are same pairs."""
    train, test = draw(samples.y, n_pairs), draw(samples.y_test, n_pairs)
    return Problem(samples.X, samples.y, row_numbers(train), train.same, samples.X_test, row_numbers(test), test.same)


def fit_simtree(X: np.ndarray, pairs: np.ndarray, same: np.ndarray) -> SimilarityTree:
    tree = SimilarityTree(max_depth=15, splitter=CartSplitter(max_depth=5), n_jobs=2, random_state=SEED)
    return tree.fit(X, same, pairs=pairs)


def fit_sklearn(matrix: np.ndarray, same: np.ndarray) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=5, random_state=SEED).fit(matrix, same)


def fit_sklearn_from_samples(X: np.ndarray, pairs: np.ndarray, same: np.ndarray) -> DecisionTreeClassifier:
    return fit_sklearn(materialise(X, pairs), same)


def warm_up(fit: Callable[..., Any]) -> Any:
    """Fit a small problem of the same types, so that later runs do not include compilation and imports."""
    small = make_problem(clusters(), n_pairs=1_000)
    return fit(small.X, small.pairs, small.same)


def memory_of_fit(fit: Callable[..., Any], file: Path) -> float:
    """Return the peak memory of a fit in megabytes, above samples and pairs; call it in a fresh process."""
    problem = Problem.load(file)
    warm_up(fit)
    return peak_memory(lambda: fit(problem.X, problem.pairs, problem.same)) / MEGABYTE


def seconds_of_first_fit(splitter: str) -> float:
    """Return the time of the first fit in a process, from labelled samples."""
    samples = clusters()
    tree = SimilarityTree(max_depth=3, splitter=splitter, n_pairs=200, random_state=SEED)
    return seconds(lambda: tree.fit(samples.X, samples.y))


# The rows


def fit_rows(problem: Problem, repeats: int) -> list[Row]:
    """Measure the time of a fit, alternating so that other load affects both, and the AUC of the last two models."""
    matrix = materialise(problem.X, problem.pairs)
    models: dict[str, Any] = {"simtree": warm_up(fit_simtree), "sklearn": warm_up(fit_sklearn_from_samples)}
    runs: dict[str, list[float]] = {"simtree": [], "sklearn": []}

    def run(name: str, fit: Callable[..., Any], *arguments: Any) -> None:
        def work() -> None:
            models[name] = fit(*arguments)

        runs[name].append(seconds(work))

    for _ in range(repeats):
        run("simtree", fit_simtree, problem.X, problem.pairs, problem.same)
        run("sklearn", fit_sklearn, matrix, problem.same)
    scores = models["simtree"].pair_score(problem.pairs_test, problem.X_test)
    posteriors = models["sklearn"].predict_proba(materialise(problem.X_test, problem.pairs_test))[:, 1]
    aucs = [[float(roc_auc_score(problem.same_test, s))] for s in (scores, posteriors)]
    name = f"fit, {len(problem.pairs):,} pairs, {matrix.shape[1]} coordinates"
    return [
        Row(name, "s", runs["simtree"], runs["sklearn"], goal=1 / 2, of_ratio=True),
        Row(f"{name}, second goal", "s", runs["simtree"], runs["sklearn"], goal=1 / 6, of_ratio=True),
        Row("AUC on test pairs", "", *aucs),
    ]


def memory_row(problem: Problem, repeats: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "problem.npz")
        problem.save(file)
        runs = [
            [in_fresh_process(memory_of_fit, fit, file) for _ in range(repeats)]
            for fit in (fit_simtree, fit_sklearn_from_samples)
        ]
    return Row("peak memory of fit above X", "MB", *runs, goal=1 / 3, of_ratio=True)


def scoring_row(problem: Problem, size: Size, repeats: int) -> Row:
    tree = fit_simtree(problem.X, problem.pairs, problem.same)
    pairs = row_numbers(draw(problem.y, size.n_scored))
    tree.pair_score(pairs, problem.X)
    runs = [seconds(lambda: tree.pair_score(pairs, problem.X)) for _ in range(repeats)]
    return Row(f"scoring {len(pairs):,} pairs, n_jobs=2", "s", runs, [], goal=2.0)


def drawing_row(problem: Problem, size: Size, repeats: int) -> Row:
    draw(problem.y, 100)
    runs = [seconds(lambda: draw(problem.y, size.n_drawn)) for _ in range(repeats)]
    return Row(f"sampling {size.n_drawn:,} pairs of {len(problem.y):,} samples", "s", runs, [])


def import_row(size: Size) -> Row:
    """Measure the import, compared with scikit-learn, which simtree imports."""
    modules = ("simtree", "sklearn.tree")
    seconds_of_import("simtree")  # fills the file cache of the machine
    runs = [[seconds_of_import(module) for module in modules] for _ in range(size.n_imports)]
    return Row("import", "s", *map(list, zip(*runs, strict=True)), goal=1.5)


def compilation_row(size: Size) -> Row:
    first_fit = partial(seconds_of_first_fit, size.first_splitter)
    return Row("compilation, once per machine", "s", [seconds_of_compilation(first_fit)], [], goal=30.0)


def measure(problem: Problem, size: Size, repeats: int) -> list[Row]:
    """Measure all rows, in the order of the table."""
    *fits, accuracy = fit_rows(problem, repeats)
    return [
        *fits,
        memory_row(problem, repeats),
        scoring_row(problem, size, repeats),
        import_row(size),
        compilation_row(size),
        drawing_row(problem, size, repeats),
        accuracy,
    ]


# The report


def as_markdown(rows: list[Row]) -> str:
    return markdown_table(["what", "simtree", "scikit-learn", "ratio", "goal", "met"], [row.cells() for row in rows])


def sizes_of(problem: Problem, size: Size, repeats: int) -> dict[str, Any]:
    """Return the size of the problem and the number of repeats."""
    return {
        "repeats": repeats,
        "size": asdict(size),
        "X": {
            "shape": list(problem.X.shape),
            "dtype": str(problem.X.dtype),
            "c_contiguous": bool(problem.X.flags.c_contiguous),
            "megabytes": problem.X.nbytes / MEGABYTE,
        },
    }


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive; give at least 1.")
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=positive, default=5, help="runs of each measurement (5)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of bench_tree.json (results)")
    parser.add_argument("--quick", action="store_true", help="small synthetic data, to check that the benchmark runs")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        parser.exit(2, "This benchmark reads /proc to measure memory; run it on Linux.\n")
    if not options.quick and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds MNIST, or pass --quick.\n")
    load = os.getloadavg()
    size = QUICK if options.quick else FULL
    try:
        samples = clusters(size.n_components) if options.quick else mnist(size.n_components)
    except FileNotFoundError as error:
        parser.exit(2, f"{error}\n")
    problem = make_problem(samples, size.n_pairs)
    rows = measure(problem, size, options.repeats)
    report = {
        **setting(load),
        **sizes_of(problem, size, options.repeats),
        "quick": options.quick,
        "rows": [row.as_json() for row in rows],
    }
    print(as_markdown(rows))
    file = options.out / "bench_tree.json"
    write_atomically(file, json.dumps(report, indent=1) + "\n")
    print(f"\nWritten to {file}. Medians, with the minimum and maximum of the runs.")


if __name__ == "__main__":
    main()
