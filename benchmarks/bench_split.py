"""One cut: the best threshold on one of all coordinates of many pairs, beside one boosting iteration with two leaves.

simtree starts from points and row numbers; its binning (codes from rows) and its search are timed apart. The peers' binning is
not in their time, which is their best case: LightGBM is asked for one `Booster.update` on a constructed `Dataset`, XGBoost for
one on a `QuantileDMatrix`. scikit-learn's class cannot be handed bins, but it says itself how long its binning and its
iteration took. Each library runs in a process of its own.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from measure import (
    COMPILATION,
    MEMORY,
    N_JOBS,
    SECONDS,
    SEED,
    Goal,
    Line,
    Section,
    Table,
    in_fresh_process,
    observe,
    seconds,
    seconds_of_compilation,
)
from models import Spec, hist_gradient_boosting
from problems import Points, clouds, draw, materialise, row_numbers
from simtree import CutSplitter
from simtree.pairs._coordinates import CoordinateSet
from simtree.splitters._base import Cell
from simtree.trees._binning import TrainingPairs

TITLE = "Split search: one cut"
BINNING = "binning (s)"
SEARCH = "search (s)"
# scikit-learn says milliseconds; less than one must not become nothing.
HALF_A_DIGIT = 0.0005


@dataclass(frozen=True)
class Size:
    n_pairs: int


SIZES = {"full": Size(1_000_000), "quick": Size(50_000), "tiny": Size(1_000)}


def simtree_cut(points: Points, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    """Codes from rows, then the best cut of all pairs."""
    X, pairs = points.X, draw(points.y, n_pairs)
    pair_map = CoordinateSet(CutSplitter.default_coordinates, X.shape[1])

    def search(binned: TrainingPairs) -> Any:
        n_same = pairs.n_same
        coordinates = np.arange(len(pair_map))
        whole = Cell(binned, 0, len(pairs), n_same, len(pairs) - n_same, coordinates, 1, np.random.default_rng(SEED))
        return CutSplitter().split(whole)

    def cut() -> TrainingPairs:
        binned = TrainingPairs(X, pairs, pair_map, n_jobs=N_JOBS)
        search(binned)
        return binned

    binned, cost = observe(cut)
    return {
        BINNING: [seconds(lambda: TrainingPairs(X, pairs, pair_map, n_jobs=N_JOBS)) for _ in range(repeats)],
        SEARCH: [seconds(lambda: search(binned)) for _ in range(repeats)],
        MEMORY: cost[MEMORY],
    }


def beside(points: Points, n_pairs: int, repeats: int, bin_pairs: Callable[..., Any], prepare: Callable[[Any], Any]) -> Any:
    """Figures of a peer that bins a matrix and is then asked for one iteration, by a new booster each time."""
    pairs = draw(points.y, n_pairs)
    binning: list[float] = []

    def from_rows() -> Any:
        matrix = materialise(points.X, row_numbers(pairs))
        bins: list[Any] = []
        binning.append(seconds(lambda: bins.append(bin_pairs(matrix, pairs.same))))
        prepare(bins[0])()
        return bins[0]

    binned, cost = observe(from_rows)
    return {
        BINNING: binning,
        SEARCH: [seconds(prepare(binned)) for _ in range(repeats)],
        MEMORY: cost[MEMORY],
    }


def lightgbm_cut(points: Points, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    import lightgbm

    settings = {"objective": "binary", "num_leaves": 2, "num_threads": N_JOBS, "verbose": -1, "seed": SEED}

    def bin_pairs(matrix: np.ndarray, same: np.ndarray) -> Any:
        return lightgbm.Dataset(matrix, same, params=settings).construct()

    def prepare(binned: Any) -> Callable[[], Any]:
        return lightgbm.Booster(settings, binned).update

    return beside(points, n_pairs, repeats, bin_pairs, prepare)


def xgboost_cut(points: Points, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    import xgboost

    settings = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 1, "nthread": N_JOBS, "seed": SEED}

    def bin_pairs(matrix: np.ndarray, same: np.ndarray) -> Any:
        return xgboost.QuantileDMatrix(matrix, same, nthread=N_JOBS)

    def prepare(binned: Any) -> Callable[[], Any]:
        booster = xgboost.Booster(settings, [binned])
        return lambda: booster.update(binned, 0)

    return beside(points, n_pairs, repeats, bin_pairs, prepare)


def sklearn_cut(points: Points, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    pairs = draw(points.y, n_pairs)
    model = hist_gradient_boosting(n_trees=1, max_leaf_nodes=2, verbose=2)

    def said_by_fit(matrix: np.ndarray) -> tuple[float, float]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            model.fit(matrix, pairs.same)
        found = re.search(r"training data: ([0-9.]+) s.*max depth = 1, in ([0-9.]+)s", said.getvalue(), re.DOTALL)
        if found is None:
            raise RuntimeError(f"HistGradientBoostingClassifier(verbose=2) does not say how long it took: {said.getvalue()}")
        return float(found[1]), max(float(found[2]), HALF_A_DIGIT)

    def from_rows() -> np.ndarray:
        matrix = materialise(points.X, row_numbers(pairs))
        said_by_fit(matrix)
        return matrix

    matrix, cost = observe(from_rows)
    binning, search = zip(*(said_by_fit(matrix) for _ in range(repeats)), strict=True)
    return {BINNING: list(binning), SEARCH: list(search), MEMORY: cost[MEMORY]}


CUTS = {"simtree": simtree_cut, "LightGBM": lightgbm_cut, "XGBoost": xgboost_cut, "HistGradientBoosting": sklearn_cut}
NOTES = {
    "simtree": "from points and row numbers",
    "LightGBM": "search: `Booster.update` on a constructed `Dataset`",
    "XGBoost": "search: `Booster.update` on a `QuantileDMatrix`",
    "HistGradientBoosting": "search: its one iteration, as it says itself (`verbose=2`)",
}


def run_library(library: str, folder: Path, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    """Figures of one library, after a small problem that brings imports and compiled code into place."""
    CUTS[library](clouds(), 1_000, 1)
    found = CUTS[library](Points.load(folder / "mnist.npz"), n_pairs, repeats)
    if library == "simtree":
        found = {SECONDS: [b + s for b, s in zip(found[BINNING], found[SEARCH], strict=True)], **found}
    else:
        found = {SECONDS: found[SEARCH], **found}
    return found


def seconds_of_first_cut() -> float:
    return seconds(lambda: simtree_cut(clouds(), 1_000, 1))


def section(folder: Path, scale: str, repeats: int) -> Section:
    n_pairs = SIZES[scale].n_pairs
    lines = [
        Line(library, in_fresh_process(run_library, library, folder, n_pairs, repeats), NOTES[library])
        if Spec(library, n_pairs).installed
        else Line(library, {}, "not run: not installed")
        for library in CUTS
    ]
    n_coordinates = 2 * Points.load(folder / "mnist.npz").X.shape[1]
    title = (
        f"{n_pairs:,} pairs of MNIST, {n_coordinates} coordinates. Time: simtree's binning and search, a peer's search alone."
    )
    table = Table(title, lines, "LightGBM")
    ours, *peers = (line for line in lines if line.figures)
    fastest = min(line.median(SEARCH) for line in peers)
    with_binning = min(line.median(BINNING) + line.median(SEARCH) for line in peers)
    goals = [
        Goal("search alone against the fastest peer's search", ours.median(SEARCH) / fastest, 1.0),
        Goal("binning and search against the fastest peer's search", ours.median(SECONDS) / fastest, 1.0),
        Goal("binning and search against the fastest peer's binning and search", ours.median(SECONDS) / with_binning, 1.0),
    ]
    return Section(TITLE, [table], goals, {COMPILATION: seconds_of_compilation(seconds_of_first_cut)})
