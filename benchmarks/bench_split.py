"""Time of one split: the best threshold over all coordinates, compared with a boosting iteration with two leaves.

simtree starts from samples and row numbers; its binning and its search are timed separately. The binning of the peers does not
count in their time, which favours them: LightGBM runs one `Booster.update` on a constructed `Dataset`, XGBoost one on a
`QuantileDMatrix`. scikit-learn does not accept binned data, but prints the times of its binning and of its iteration. Each
library runs in a process of its own.
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
from problems import Samples, clusters, draw, materialise, row_numbers
from simtree import CutSplitter
from simtree.pairs._coordinates import CoordinateSet
from simtree.splitters._base import Cell
from simtree.trees._binning import TrainingPairs

TITLE = "Search for one split"
BINNING = "binning (s)"
SEARCH = "search (s)"
# scikit-learn prints milliseconds; times below one millisecond must not become zero.
HALF_A_DIGIT = 0.0005


@dataclass(frozen=True)
class Size:
    n_pairs: int


SIZES = {"full": Size(1_000_000), "quick": Size(50_000), "tiny": Size(1_000)}


def simtree_cut(samples: Samples, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    """Measure the binning of all pairs, and the search for the best split."""
    X, pairs = samples.X, draw(samples.y, n_pairs)
    pair_map = CoordinateSet(CutSplitter.default_coordinates, X.shape[1])

    def search(binned: TrainingPairs) -> Any:
        n_same = pairs.n_same
        coordinates = np.arange(len(pair_map))
        root = Cell(binned, 0, len(pairs), n_same, len(pairs) - n_same, coordinates, 1, np.random.default_rng(SEED))
        return CutSplitter().split(root)

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


def measure_peer(
    samples: Samples, n_pairs: int, repeats: int, bin_pairs: Callable[..., Any], prepare: Callable[[Any], Any]
) -> Any:
    """Measure a peer that bins a matrix and runs one iteration of a new booster each time."""
    pairs = draw(samples.y, n_pairs)
    binning: list[float] = []

    def from_rows() -> Any:
        matrix = materialise(samples.X, row_numbers(pairs))
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


def lightgbm_cut(samples: Samples, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    import lightgbm

    settings = {"objective": "binary", "num_leaves": 2, "num_threads": N_JOBS, "verbose": -1, "seed": SEED}

    def bin_pairs(matrix: np.ndarray, same: np.ndarray) -> Any:
        return lightgbm.Dataset(matrix, same, params=settings).construct()

    def prepare(binned: Any) -> Callable[[], Any]:
        return lightgbm.Booster(settings, binned).update

    return measure_peer(samples, n_pairs, repeats, bin_pairs, prepare)


def xgboost_cut(samples: Samples, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    import xgboost

    settings = {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 1, "nthread": N_JOBS, "seed": SEED}

    def bin_pairs(matrix: np.ndarray, same: np.ndarray) -> Any:
        return xgboost.QuantileDMatrix(matrix, same, nthread=N_JOBS)

    def prepare(binned: Any) -> Callable[[], Any]:
        booster = xgboost.Booster(settings, [binned])
        return lambda: booster.update(binned, 0)

    return measure_peer(samples, n_pairs, repeats, bin_pairs, prepare)


def sklearn_cut(samples: Samples, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    pairs = draw(samples.y, n_pairs)
    model = hist_gradient_boosting(n_trees=1, max_leaf_nodes=2, verbose=2)

    def times_of_fit(matrix: np.ndarray) -> tuple[float, float]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            model.fit(matrix, pairs.same)
        found = re.search(r"training data: ([0-9.]+) s.*max depth = 1, in ([0-9.]+)s", output.getvalue(), re.DOTALL)
        if found is None:
            raise RuntimeError(
                f"HistGradientBoostingClassifier(verbose=2) does not print how long it took: {output.getvalue()}"
            )
        return float(found[1]), max(float(found[2]), HALF_A_DIGIT)

    def from_rows() -> np.ndarray:
        matrix = materialise(samples.X, row_numbers(pairs))
        times_of_fit(matrix)
        return matrix

    matrix, cost = observe(from_rows)
    binning, search = zip(*(times_of_fit(matrix) for _ in range(repeats)), strict=True)
    return {BINNING: list(binning), SEARCH: list(search), MEMORY: cost[MEMORY]}


CUTS = {"simtree": simtree_cut, "LightGBM": lightgbm_cut, "XGBoost": xgboost_cut, "HistGradientBoosting": sklearn_cut}
NOTES = {
    "simtree": "from samples and row numbers",
    "LightGBM": "search: `Booster.update` on a constructed `Dataset`",
    "XGBoost": "search: `Booster.update` on a `QuantileDMatrix`",
    "HistGradientBoosting": "search: its one iteration, as printed with `verbose=2`",
}


def run_library(library: str, folder: Path, n_pairs: int, repeats: int) -> dict[str, list[float]]:
    """Measure one library, after a warm-up on a small problem."""
    CUTS[library](clusters(), 1_000, 1)
    found = CUTS[library](Samples.load(folder / "mnist.npz"), n_pairs, repeats)
    if library == "simtree":
        found = {SECONDS: [b + s for b, s in zip(found[BINNING], found[SEARCH], strict=True)], **found}
    else:
        found = {SECONDS: found[SEARCH], **found}
    return found


def seconds_of_first_cut() -> float:
    return seconds(lambda: simtree_cut(clusters(), 1_000, 1))


def section(folder: Path, scale: str, repeats: int) -> Section:
    n_pairs = SIZES[scale].n_pairs
    lines = [
        Line(library, in_fresh_process(run_library, library, folder, n_pairs, repeats), NOTES[library])
        if Spec(library, n_pairs).installed
        else Line(library, {}, "not run: not installed")
        for library in CUTS
    ]
    n_coordinates = 2 * Samples.load(folder / "mnist.npz").X.shape[1]
    title = (
        f"{n_pairs:,} pairs of MNIST, {n_coordinates} coordinates. "
        "Time: binning and search of simtree, search alone of the others."
    )
    table = Table(title, lines, "LightGBM")
    ours, *peers = (line for line in lines if line.metrics)
    fastest = min(line.median(SEARCH) for line in peers)
    with_binning = min(line.median(BINNING) + line.median(SEARCH) for line in peers)
    goals = [
        Goal("search, relative to the fastest peer's search", ours.median(SEARCH) / fastest, 1.0),
        Goal("binning and search, relative to the fastest peer's search", ours.median(SECONDS) / fastest, 1.0),
        Goal("binning and search, relative to the fastest peer's binning and search", ours.median(SECONDS) / with_binning, 1.0),
    ]
    return Section(TITLE, [table], goals, {COMPILATION: seconds_of_compilation(seconds_of_first_cut)})
