"""Boosting on the same pairs and coordinates as LightGBM: time and memory of `fit`, and time of scoring.

    SIMTREE_DATA=folder python benchmarks/run.py --only boosting [--out results]

Trees of 63 leaves, with a learning rate of 0.1; the time of 100 rounds is that of the first round, with all that comes before
it, and 99 times the mean of the other rounds that are measured. Each model is fitted in a process of its own, after a small
fit, so that imports and compilation do not count. The input are samples and row numbers of pairs: the matrix of coordinates,
which only LightGBM needs, counts as its time and memory. CPU time of one thread is compared, because threads that wait for each
other take time wherever something else is running.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from measure import MEMORY, N_JOBS, Goal, Line, Section, Table, in_fresh_process, observe
from models import accuracy, score
from problems import Samples, draw, materialise, row_numbers
from simtree import SimilarityBoosting
from simtree.growing._boosting import Booster

TITLE = "Boosting: CPU time and memory"
OURS, BASE = "simtree", "LightGBM, float64"
CPU, FIRST, PER_ROUND = "CPU time (s)", "CPU time to the end of the first round (s)", "CPU time per further round (s)"
HUNDRED = "CPU time of 100 rounds (s)"
BUILT, READY, COMPILED = (
    "LightGBM, computing features",
    "LightGBM, precomputed features",
    "treelite (tl2cgen), precomputed features",
)
N_THREADS = 1
# Pairs of the fit that is made first, so that nothing is compiled later.
WARM_PAIRS, WARM_ROUNDS = 20_000, 3
# Rows that a Sequence gives at a time.
BATCH = 4096


@dataclass(frozen=True)
class Size:
    """Numbers of training pairs (and of pairs to score), of rounds, and of rounds of the variants of LightGBM."""

    n_pairs: int
    rounds: int
    rounds_of_variants: int


SIZES = {"full": Size(1_000_000, 20, 3), "quick": Size(100_000, 10, 3), "tiny": Size(2_000, 10, 5)}


def fit_simtree(X: np.ndarray, rows: np.ndarray, same: np.ndarray, rounds: int, marks: list[float]) -> SimilarityBoosting:
    """Return our model on given pairs; add the CPU time at the end of each round."""
    boosted = Booster.rounds

    def marked(*arguments: Any) -> Any:
        for tree in boosted(*arguments):
            marks.append(time.process_time())
            yield tree

    model = SimilarityBoosting(n_estimators=rounds, early_stopping=False, n_jobs=N_THREADS, random_state=0)
    with patch.object(Booster, "rounds", marked):
        return model.fit(X, same, pairs=rows)


def fit_lightgbm(
    X: np.ndarray,
    rows: np.ndarray,
    same: np.ndarray,
    rounds: int,
    marks: list[float],
    *,
    dtype: Any = None,
    quantised: bool = False,
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

    settings = {
        "objective": "binary",
        "num_leaves": 63,
        "learning_rate": 0.1,
        "verbose": -1,
        "num_threads": N_THREADS,
        "seed": 0,
    }
    settings["use_quantized_grad"] = quantised
    matrix = Coordinates() if dtype is None else materialise(X, rows).astype(dtype, copy=False)
    data = lightgbm.Dataset(matrix, same.astype(np.float64), params=settings)
    return lightgbm.train(settings, data, rounds, callbacks=[lambda _: marks.append(time.process_time())])


FITS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    OURS: (fit_simtree, {}),
    BASE: (fit_lightgbm, {"dtype": np.float64}),
    "LightGBM, float64, quantised": (fit_lightgbm, {"dtype": np.float64, "quantised": True}),
    "LightGBM, float32": (fit_lightgbm, {"dtype": np.float32}),
    "LightGBM, Sequence": (fit_lightgbm, {}),
}


def cpu_time(work: Callable[[], Any]) -> float:
    """Return the CPU time of a function call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def scoring(model: Any, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, dict[str, Callable[[], Any]]]:
    """Return the scores of pairs, and the ways to compute them that are to be measured."""
    if hasattr(model, "pair_score"):
        return score(model, X, rows), {OURS: lambda: score(model, X, rows)}
    matrix = materialise(X, rows)
    ways: dict[str, Callable[[], Any]] = {
        BUILT: lambda: model.predict(materialise(X, rows), num_threads=N_THREADS),
        READY: lambda: model.predict(matrix, num_threads=N_THREADS),
    }
    with suppress(ImportError):  # an optional library
        ways[COMPILED] = compiled(model, matrix)
    return model.predict(matrix, num_threads=N_THREADS), ways


def compiled(model: Any, matrix: np.ndarray) -> Callable[[], Any]:
    """Return a function that scores precomputed features by the trees, compiled to machine code."""
    import tl2cgen
    import treelite

    with tempfile.TemporaryDirectory() as folder:
        text, library = Path(folder) / "lightgbm.txt", Path(folder) / "lightgbm.so"
        model.save_model(text)
        tl2cgen.export_lib(
            treelite.frontend.load_lightgbm_model(text), toolchain="gcc", libpath=library, params={"parallel_comp": 8}
        )
        predictor = tl2cgen.Predictor(library, nthread=N_THREADS)
    return lambda: predictor.predict(tl2cgen.DMatrix(matrix))


def measured(
    folder: Path, name: str, n_pairs: int, rounds: int, repeats: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return the figures of one model, and the CPU times of scoring if repeats are asked for; call it in a fresh process."""
    samples = Samples.load(folder / "mnist.npz")
    fit, options = FITS[name]
    warm = draw(samples.y, min(WARM_PAIRS, n_pairs), seed=3)
    score_warm = fit(samples.X, row_numbers(warm), warm.same, WARM_ROUNDS, [], **options)
    if name == OURS:
        score(score_warm, samples.X, row_numbers(warm))
    pairs, test = draw(samples.y, n_pairs), draw(samples.y_test, n_pairs, positive_fraction=0.2, seed=1)
    rows, marks = row_numbers(pairs), []
    start = time.process_time()
    model, found = observe(lambda: fit(samples.X, rows, pairs.same, rounds, marks, **options))
    first, further = marks[0] - start, (marks[-1] - marks[0]) / (rounds - 1)
    metrics = {FIRST: [first], PER_ROUND: [further], HUNDRED: [first + 99 * further], MEMORY: found[MEMORY]}
    if not repeats:
        return metrics, {}
    scores, ways = scoring(model, samples.X_test, row_numbers(test))
    return metrics | accuracy(scores, test.same), {way: [cpu_time(work) for _ in range(repeats)] for way, work in ways.items()}


def section(folder: Path, scale: str, repeats: int) -> Section:
    size = SIZES[scale]
    rounds = {name: size.rounds if name in (OURS, BASE) else size.rounds_of_variants for name in FITS}
    scorings = {name: repeats if name in (OURS, BASE) else 0 for name in FITS}
    with ThreadPoolExecutor(N_JOBS) as pool:  # one process per core
        work = {n: pool.submit(in_fresh_process, measured, folder, n, size.n_pairs, rounds[n], scorings[n]) for n in FITS}
    fits = [Line(n, of.result()[0], "" if scorings[n] else f"{rounds[n]} rounds") for n, of in work.items()]
    times = {way: found for of in work.values() for way, found in of.result()[1].items()}
    fit = Table(f"Fit, {size.n_pairs:,} pairs of MNIST, trees of 63 leaves, {size.rounds} rounds measured:", fits)
    scored = Table(
        f"Scoring {size.n_pairs:,} pairs by these trees:", [Line(name, {CPU: found}) for name, found in times.items()]
    )
    ours, base = fit.line(OURS), fit.line(BASE)
    against = f"relative to {BASE}"
    goals = [
        Goal(f"CPU time of 100 rounds, all costs, {against}", ours.median(HUNDRED) / base.median(HUNDRED), 0.4),
        Goal(f"CPU time per further round, {against}", ours.median(PER_ROUND) / base.median(PER_ROUND), 0.6),
        Goal(f"memory above the input, {against}", ours.median(MEMORY) / base.median(MEMORY), 0.15),
    ]
    for name, bound in ((BUILT, 1 / 3), (COMPILED, 1.0)):
        if name in times:
            ratio = scored.line(OURS).median(CPU) / scored.line(name).median(CPU)
            goals.append(Goal(f"CPU time of scoring, relative to {name}", ratio, bound))
    return Section(TITLE, [fit, scored], goals)
