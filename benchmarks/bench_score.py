"""Pairs scored per second: given pairs, and all pairs of two sets, compared with LightGBM and compilers of its trees.

simtree gets as many trees as it needs to reach LightGBM's AUC and TPR at an FPR of 0.001 on the test pairs, or only its AUC if
it does not have enough trees for both. On MNIST its coordinates are those along discriminant directions, because |x - x'| and
x + x' alone are not accurate enough.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from measure import (
    AUC,
    COMPILATION,
    MEMORY,
    N_JOBS,
    RATE,
    SECONDS,
    Goal,
    Line,
    Section,
    Table,
    in_fresh_process,
    observe,
    seconds,
)
from models import OBLIQUE, Spec, accuracy, fitted, held_out, probabilities, score
from problems import Samples, draw, materialise, row_numbers

TITLE = "Score: pairs per second"
OURS, BUILT, PRECOMPUTED = "simtree", "LightGBM, computing features", "LightGBM, precomputed features"


@dataclass(frozen=True)
class Size:
    """Numbers of training pairs, trees, pairs to score, sides of the block, and pairs of the block that LightGBM scores."""

    n_pairs: dict[str, int]
    pairs_per_tree: int
    n_trees: dict[str, int]
    n_scored: int
    block: tuple[int, int]
    n_block_of_peer: int
    n_test: int
    depth: int = 15
    n_trees_of_peer: int = 100


FULL = Size(
    {"mnist": 1_000_000, "keystroke": 1_000_000},
    100_000,
    {"mnist": 20, "keystroke": 40},
    1_000_000,
    (1_000, 10_000),
    1_000_000,
    500_000,
)
MEDIUM = Size(
    {"mnist": 50_000, "keystroke": 50_000}, 10_000, {"mnist": 10, "keystroke": 10}, 100_000, (100, 8_000), 100_000, 100_000
)
TINY = Size(
    {"mnist": 1_000, "keystroke": 1_000},
    500,
    {"mnist": 3, "keystroke": 3},
    2_000,
    (20, 100),
    1_000,
    2_000,
    depth=3,
    n_trees_of_peer=3,
)
SIZES = {"full": FULL, "quick": MEDIUM, "tiny": TINY}


def our_spec(name: str, size: Size) -> Spec:
    more = {"min_pairs_split": 100} if name == "keystroke" else OBLIQUE
    return Spec("simtree", size.pairs_per_tree, {"n_estimators": size.n_trees[name], "max_depth": size.depth} | more)


def first_trees(forest: Any, n: int) -> Any:
    """Return the forest of the first n trees."""
    smaller = copy.copy(forest)
    smaller.trees_ = forest.trees_[:n]
    return smaller


def as_good_as(forest: Any, wanted: dict[str, list[float]], samples: Samples, n_test: int) -> tuple[Any, list[str]]:
    """Return the smallest forest that reaches the given accuracy on test pairs, or only its AUC, and what it reaches."""
    test = held_out(samples, n_test)
    first: tuple[Any, list[str]] | None = None
    for n in [*range(2, len(forest.trees_), 2), len(forest.trees_)]:
        smaller = first_trees(forest, n)
        found = accuracy(score(smaller, samples.X_test, row_numbers(test)), test.same)
        reached = [metric for metric in wanted if found[metric][0] >= wanted[metric][0]]
        if len(reached) == len(wanted):
            return smaller, reached
        if first is None and AUC in reached:
            first = smaller, [AUC]
    return first or (forest, [])


# Compilers of LightGBM's trees


def compiled_by_treelite(text: Path) -> Callable[[np.ndarray], Any]:
    import tl2cgen
    import treelite

    library = text.with_suffix(".so")
    model = treelite.frontend.load_lightgbm_model(text)
    tl2cgen.export_lib(model, toolchain="gcc", libpath=library, params={"parallel_comp": 8})
    predictor = tl2cgen.Predictor(library, nthread=N_JOBS)
    return lambda matrix: predictor.predict(tl2cgen.DMatrix(matrix))


def compiled_by_lleaves(text: Path) -> Callable[[np.ndarray], Any]:
    import lleaves

    model = lleaves.Model(model_file=str(text))
    model.compile()
    return lambda matrix: model.predict(matrix, n_jobs=N_JOBS)


COMPILERS = {
    "treelite (tl2cgen), precomputed features": compiled_by_treelite,
    "lleaves, precomputed features": compiled_by_lleaves,
}


def compiled(booster: Any, folder: Path) -> tuple[dict[str, tuple[Callable[[np.ndarray], Any], float]], list[Line]]:
    """Return predictors with their compilation times, and a line for each compiler that fails."""
    text = folder / "lightgbm.txt"
    booster.save_model(text)
    predictors, failed = {}, []
    for name, compiler in COMPILERS.items():
        made: list[Callable[[np.ndarray], Any]] = []
        try:
            time = seconds(lambda compiler=compiler, made=made: made.append(compiler(text)))
        except Exception as error:  # an optional library may fail in any way
            failed.append(Line(name, {}, f"does not run here: {type(error).__name__}: {str(error).splitlines()[0][:90]}"))
        else:
            predictors[name] = (made[0], time)
    return predictors, failed


# The tables


def one_to_one(samples: Samples, models: dict[str, Any], size: Size, repeats: int, predictors: Any) -> list[Line]:
    """Measure given pairs, by row numbers, in alternation. Precomputed features are computed before the time starts."""
    X, rows = samples.X, row_numbers(draw(samples.y, size.n_scored))
    matrix = materialise(X, rows)
    scorers: dict[str, Callable[[], Any]] = {
        OURS: lambda: score(models[OURS], X, rows),
        BUILT: lambda: score(models[BUILT], X, rows),
        PRECOMPUTED: lambda: probabilities(models[BUILT], matrix),
    }
    scorers |= {name: lambda predict=predict: predict(matrix) for name, (predict, _) in predictors.items()}
    lines = []
    for name, runs in alternate(scorers, repeats).items():
        metrics = {RATE: [len(rows) / run for run in runs], SECONDS: runs}
        if name in predictors:
            metrics[COMPILATION] = [predictors[name][1]]
        lines.append(Line(name, metrics))
    return lines


def as_a_block(samples: Samples, models: dict[str, Any], size: Size, repeats: int) -> list[Line]:
    """Measure all pairs of two sets of samples; LightGBM scores only the first of them, and computes their features."""
    height, width = size.block
    A, B = samples.X_test[:height], samples.X_test[-width:]
    both = np.concatenate([A, B])
    first, second = np.divmod(np.arange(min(size.n_block_of_peer, len(A) * len(B))), len(B))
    rows = np.column_stack([first, second + len(A)])
    scorers = {OURS: lambda: models[OURS].pairwise_score(A, B), BUILT: lambda: score(models[BUILT], both, rows)}
    n_pairs = {OURS: len(A) * len(B), BUILT: len(rows)}
    return [
        Line(name, {RATE: [n_pairs[name] / run for run in runs], SECONDS: runs}, f"{n_pairs[name]:,} pairs")
        for name, runs in alternate(scorers, repeats).items()
    ]


def alternate(scorers: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Return the times of each function, measured in alternation."""
    runs: dict[str, list[float]] = {name: [] for name in scorers}
    for _ in range(repeats):
        for name, work in scorers.items():
            runs[name].append(seconds(work))
    return runs


def memory_of_scoring(folder: Path, name: str, spec: Spec, n_scored: int) -> list[float]:
    """Return the peak memory of scoring pairs given by row numbers; call it in a fresh process."""
    model, samples = fitted(folder, name, spec), Samples.load(folder / f"{name}.npz")
    rows = row_numbers(draw(samples.y, n_scored))
    score(model, samples.X, rows[:100])
    return observe(lambda: score(model, samples.X, rows))[1][MEMORY]


def tables_of(folder: Path, name: str, label: str, size: Size, repeats: int) -> tuple[list[Table], list[Goal]]:
    samples = Samples.load(folder / f"{name}.npz")
    peer_spec = Spec("LightGBM", size.n_pairs[name], {"n_trees": size.n_trees_of_peer})
    peer, forest = fitted(folder, name, peer_spec), fitted(folder, name, our_spec(name, size))
    test = held_out(samples, size.n_test)
    rates = {BUILT: accuracy(score(peer, samples.X_test, row_numbers(test)), test.same)}
    ours, reached = as_good_as(forest, rates[BUILT], samples, size.n_test)
    rates[OURS] = accuracy(score(ours, samples.X_test, row_numbers(test)), test.same)
    models = {OURS: ours, BUILT: peer}
    memory = {
        BUILT: in_fresh_process(memory_of_scoring, folder, name, peer_spec, size.n_scored),
        OURS: in_fresh_process(memory_of_scoring, folder, name, our_spec(name, size), size.n_scored),
    }
    with tempfile.TemporaryDirectory() as place:
        predictors, failed = compiled(peer.booster_, Path(place))
        singles = one_to_one(samples, models, size, repeats, predictors)
    singles = [
        Line(line.name, line.metrics | ({MEMORY: memory[line.name], **rates[line.name]} if line.name in rates else {}))
        for line in singles
    ]
    n_trees = len(ours.trees_)
    equal = f"{' and '.join(reached)} reached" if reached else "accuracy not reached"
    what = (
        f"{label}, simtree with {n_trees} trees x {size.pairs_per_tree:,} ({equal}), LightGBM with {size.n_trees_of_peer} trees"
    )
    pairs = Table(f"{what}, {size.n_scored:,} given pairs:", [*singles, *failed], BUILT)
    block = Table(f"{what}, block of {size.block[0]:,} by {size.block[1]:,}:", as_a_block(samples, models, size, repeats))
    rate = {
        table: {line.name: line.median(RATE) for line in lines.lines if RATE in line.metrics}
        for table, lines in (("pairs", pairs), ("block", block))
    }
    compared = f"{name}, {equal}: speedup over LightGBM"
    fastest = max(value for key, value in rate["pairs"].items() if "precomputed" in key)
    goals = [
        Goal(f"{compared}, computing features", rate["pairs"][OURS] / rate["pairs"][BUILT], 3.0, at_least=True),
        Goal(f"{compared}, computing features, block", rate["block"][OURS] / rate["block"][BUILT], 3.0, at_least=True),
        Goal(
            f"{name}, {equal}: speedup over the fastest with precomputed features",
            rate["pairs"][OURS] / fastest,
            1.0,
            at_least=True,
        ),
    ]
    return [pairs, block], goals


def section(folder: Path, scale: str, repeats: int) -> Section:
    size = SIZES[scale]
    tables, goals = [], []
    for name, label in (("keystroke", "Keystroke data"), ("mnist", "MNIST")):
        new_tables, new_goals = tables_of(folder, name, label, size, repeats)
        tables += new_tables
        goals += new_goals
    return Section(TITLE, tables, goals)
