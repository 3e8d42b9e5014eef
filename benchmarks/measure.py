"""What all benchmarks share: seconds, peak memory in a fresh process, and tables of what was measured.

A section of the report is a number of tables and of goals. A line of a table holds all runs of each of its figures; medians,
spreads and verdicts are made when it is shown, so that the JSON holds what was measured and nothing else.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

from simtree.experiments._results import markdown_table

SEED = 0
MEGABYTE = 1e6
N_JOBS = 2
# The least memory that can be told from none.
PAGE = 4096
LIBRARIES = ("numpy", "numba", "scikit-learn", "simtree", "lightgbm", "xgboost", "faiss-cpu", "treelite", "tl2cgen", "lleaves")

# Names of figures that several tables share.
SECONDS = "time (s)"
MEMORY = "peak memory above the input (MB)"
COMPILATION = "compilation (s)"
AUC = "AUC"
TPR = "TPR at 0.001"
RATE = "pairs a second"


# What a command is told, time and memory


def tiny_and_out(description: str | None) -> argparse.Namespace:
    """Options of a benchmark of real data that has a tiny version; ends the program if there are no data."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small made-up data: shows that everything runs")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (results)")
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    return options


def seconds(work: Callable[[], Any]) -> float:
    """How long the work takes."""
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Result of a function of a module, called in an interpreter started for it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def memory_status(name: str) -> int:
    """Bytes, from a field of /proc/self/status: VmRSS is the memory held now, VmHWM its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no field {name}; this benchmark needs Linux.")


def peak_memory(work: Callable[[], Any]) -> int:
    """Most bytes held during the work beyond those held before it."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak becomes what is held now
    except OSError:
        return sampled_peak_memory(work)
    before = memory_status("VmHWM")
    kept = work()
    peak = memory_status("VmHWM")
    del kept
    return peak - before


def sampled_peak_memory(work: Callable[[], Any]) -> int:
    """The same where the peak cannot be reset: looked at each millisecond, which may miss a short one."""
    before = memory_status("VmRSS")
    samples = [before]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            samples.append(memory_status("VmRSS"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(samples) - before


def observe(work: Callable[[], Any]) -> tuple[Any, dict[str, list[float]]]:
    """What the work returns, with its time and its peak memory as figures of a line; run it in a fresh process."""
    found: dict[str, Any] = {}

    def timed() -> None:
        start = time.perf_counter()
        found["result"] = work()
        found["seconds"] = time.perf_counter() - start

    memory = max(peak_memory(timed), PAGE) / MEGABYTE
    return found["result"], {SECONDS: [found["seconds"]], MEMORY: [memory]}


def seconds_of_compilation(first_call: Callable[[], float]) -> float:
    """Time that a first call says it takes with an empty cache of compiled kernels, less that with a full cache."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, NUMBA_CACHE_DIR=folder):
        cold = in_fresh_process(first_call)
        return float(cold - in_fresh_process(first_call))


def seconds_of_import(module: str) -> float:
    """Time of an import in a fresh interpreter, whose own start is not counted."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


# Tables and goals


@dataclass(frozen=True)
class Line:
    """All runs of each figure of one thing; a note says why there are none, or what must be known to read them."""

    name: str
    figures: dict[str, list[float]]
    note: str = ""

    def median(self, figure: str) -> float:
        return statistics.median(self.figures[figure])


@dataclass(frozen=True)
class Table:
    """Lines whose figures are shown side by side. ``relative_to`` is the line whose time the ratios are taken to."""

    title: str
    lines: list[Line]
    relative_to: str | None = None

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    def as_markdown(self) -> str:
        names = list(dict.fromkeys(figure for line in self.lines for figure in line.figures))
        base = None if self.relative_to is None else self.line(self.relative_to).figures.get(SECONDS)
        header = ["what", *names]
        if base:
            header.insert(2, f"ratio to {self.relative_to}")
        with_notes = any(line.note for line in self.lines)
        rows = []
        for line in self.lines:
            cells = [line.name, *(describe(line.figures.get(name, [])) for name in names)]
            if base:
                there = SECONDS in line.figures
                cells.insert(2, f"{line.median(SECONDS) / statistics.median(base):.3g}" if there else "")
            rows.append([*cells, line.note] if with_notes else cells)
        return markdown_table([*header, "note"] if with_notes else header, rows)


@dataclass(frozen=True)
class Goal:
    """A figure and the bound it must keep; ``at_least`` tells from which side."""

    name: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def cells(self) -> list[str]:
        side = "at least" if self.at_least else "at most"
        return [self.name, f"{self.value:.3g}", f"{side} {self.bound:.3g}", "yes" if self.met else "no"]


@dataclass(frozen=True)
class Section:
    """One part of the report."""

    title: str
    tables: list[Table] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Section:
        tables = [Table(t["title"], [Line(**line) for line in t["lines"]], t["relative_to"]) for t in stored["tables"]]
        return cls(stored["title"], tables, [Goal(**goal) for goal in stored["goals"]], stored["facts"])

    def as_markdown(self) -> str:
        parts = [f"{table.title}\n\n{table.as_markdown()}" for table in self.tables]
        if self.goals:
            parts.append(markdown_table(["goal", "reached", "bound", "met"], [goal.cells() for goal in self.goals]))
        return "\n\n".join(parts)


def describe(runs: list[float]) -> str:
    """Median, and the range if there are several runs.

    >>> describe([3.0, 1.0, 2.0])
    '2 (1 to 3)'
    """
    if not runs:
        return ""
    median = number(statistics.median(runs))
    return median if min(runs) == max(runs) else f"{median} ({number(min(runs))} to {number(max(runs))})"


def number(value: float) -> str:
    """Three digits (rates below one: four decimals), and thousands set apart.

    >>> number(12345678.9), number(0.91234), number(0.0123)
    ('12,300,000', '0.9123', '0.0123')
    """
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.4f}" if 0.1 <= abs(value) < 1 else f"{value:.3g}"


def joined(runs: Iterable[dict[str, list[float]]]) -> dict[str, list[float]]:
    """The figures of several runs of one line, run after run."""
    together: dict[str, list[float]] = {}
    for run in runs:
        for name, values in run.items():
            together.setdefault(name, []).extend(values)
    return together


# Where and how


class Share:
    """How much of the machine other processes have taken since this was made, as a share of all its cores.

    Libraries whose threads wait for one another suffer from it more than others do, so ratios are not to be trusted then.
    """

    def __init__(self) -> None:
        self._start = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        ticks = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        idle = ticks[3] + ticks[4]
        own = os.times()
        per_second = os.sysconf("SC_CLK_TCK")
        mine = own.user + own.system + own.children_user + own.children_system
        return sum(ticks) / per_second, (sum(ticks) - idle) / per_second, mine

    def of_others(self) -> float:
        total, busy, mine = (now - then for now, then in zip(self._now(), self._start, strict=True))
        return max(0.0, busy - mine) / max(total, 1e-9)


def setting(load_before: tuple[float, ...]) -> dict[str, Any]:
    """All that is needed to make sense of the figures, but the sizes."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "command": " ".join([Path(sys.executable).name, *map(as_typed, sys.argv)]),
        "seed": SEED,
        "versions": versions,
        "machine": {
            "platform": platform.platform(),
            "cores": len(os.sched_getaffinity(0)),
            "load_before": list(load_before),
            "load_after": list(os.getloadavg()),
        },
    }


def as_typed(argument: str) -> str:
    """An argument without the folders that lead to it, which say nothing elsewhere."""
    return "/".join(Path(argument).parts[-2:]) if Path(argument).is_absolute() else argument
