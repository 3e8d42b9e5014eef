"""Time of a forest against its numbers of pairs, samples, features and parallel jobs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from measure import N_JOBS, SECONDS, Goal, Line, Section, Table, seconds
from models import Spec
from problems import Samples

TITLE = "Scaling: time of a forest against pairs, samples and features"
# Tolerance for noise and caches, of the exponent of linear growth or of the factor if there should be no growth.
TOLERANCE = 1.1
TWICE_THE_JOBS = 1.7
FACTOR, STEP = "time, relative to the first", "size, relative to the first"


@dataclass(frozen=True)
class Size:
    """Steps of each sweep; the other sizes are at their first (pairs) or last (samples, features) step."""

    n_trees: int
    pairs: tuple[int, ...]
    samples: tuple[int, ...]
    features: tuple[int, ...]
    n_trees_of_jobs: int
    depth: int = 15


FULL = Size(4, (100_000, 200_000, 400_000), (6_000, 20_000, 60_000), (38, 76, 153), 12)
MEDIUM = Size(2, (10_000, 20_000, 40_000), (6_000, 20_000, 60_000), (38, 76, 153), 4)
TINY = Size(2, (500, 1_000), (300, 600), (4, 8), 2, depth=3)
SIZES = {"full": FULL, "quick": MEDIUM, "tiny": TINY}


def forest(size: Size, n_pairs: int, **parameters: Any) -> Spec:
    return Spec("simtree", n_pairs, {"n_estimators": size.n_trees, "max_depth": size.depth, **parameters})


def sweep(fits: dict[str, tuple[Spec, np.ndarray, np.ndarray]], repeats: int) -> dict[str, list[float]]:
    """Return the times of each fit, in alternation, after a warm-up."""
    for spec, X, y in fits.values():
        Spec("simtree", 1_000, spec.parameters | {"max_depth": 2}).fit(X, y)
    runs: dict[str, list[float]] = {name: [] for name in fits}
    for _ in range(repeats):
        for name, (spec, X, y) in fits.items():
            runs[name].append(seconds(lambda spec=spec, X=X, y=y: spec.fit(X, y)))
    return runs


def as_table(title: str, runs: dict[str, list[float]], steps: tuple[int, ...]) -> tuple[Table, float]:
    """Return the table of a sweep, and the ratio of the times of its last and first step."""
    first, last = (float(np.median(runs[name])) for name in (next(iter(runs)), list(runs)[-1]))
    lines = [
        Line(name, {SECONDS: times, FACTOR: [float(np.median(times)) / first], STEP: [step / steps[0]]})
        for (name, times), step in zip(runs.items(), steps, strict=True)
    ]
    return Table(title, lines), last / first


def section(folder: Path, scale: str, repeats: int) -> Section:
    size = SIZES[scale]
    data = Samples.load(folder / "mnist.npz")
    X, y = data.X, data.y
    order = np.random.default_rng(0).permutation(len(y))
    few = size.pairs[0]
    of_pairs = {f"{n:,} pairs per tree": (forest(size, n), X, y) for n in size.pairs}
    of_samples = {f"{n:,} samples": (forest(size, few), X[order[:n]], y[order[:n]]) for n in size.samples}
    of_features = {f"{q} features": (forest(size, few), np.ascontiguousarray(X[:, :q]), y) for q in size.features}
    tables, goals = [], []
    for what, fits, steps, linear in (
        ("pairs", of_pairs, size.pairs, True),
        ("samples", of_samples, size.samples, False),
        ("features", of_features, size.features, True),
    ):
        table, factor = as_table(f"Time of {size.n_trees} trees against {what}:", sweep(fits, repeats), steps)
        tables.append(table)
        growth = steps[-1] / steps[0]
        if linear:
            name = f"time grows at most linearly in {what}: exponent"
            goals.append(Goal(name, math.log(factor) / math.log(growth), TOLERANCE))
        else:
            goals.append(Goal(f"time does not depend on {what}: factor for {growth:.3g} times the {what}", factor, TOLERANCE))
    jobs = {f"n_jobs={n}": (forest(size, few, n_estimators=size.n_trees_of_jobs, n_jobs=n), X, y) for n in range(1, N_JOBS + 1)}
    table, factor = as_table(f"Time of {size.n_trees_of_jobs} trees against n_jobs:", sweep(jobs, repeats), (1, N_JOBS))
    tables.append(table)
    goals.append(Goal("speedup with twice the n_jobs", 1 / factor, TWICE_THE_JOBS, at_least=True))
    return Section(TITLE, tables, goals)


def draw(section: Section) -> Any:
    """Plot the three sweeps, each with linear growth for comparison."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axis, table, what in zip(axes, section.tables, ("pairs", "samples", "features"), strict=False):
        steps = [line.median(STEP) for line in table.lines]
        times = [line.median(SECONDS) for line in table.lines]
        axis.loglog(steps, times, "o-", label="measured")
        axis.loglog(steps, [times[0] * step for step in steps], "--", color="grey", label="linear")
        axis.set_xticks(steps, [line.name.split()[0] for line in table.lines])
        axis.minorticks_off()
        axis.set(xlabel=table.lines[0].name.split(maxsplit=1)[1], title=f"against {what}")
    axes[0].set_ylabel(SECONDS)
    axes[0].legend()
    return figure
