"""Common parts of all benchmarks: times, peak memory in a fresh process, and tables of measurements.

A section of the report has tables and goals. A line of a table has all runs of each of its metrics; medians, ranges and whether
goals are met are computed when it is rendered, so that the JSON has only measurements.
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
# The smallest amount of memory that can be measured.
PAGE = 4096
LIBRARIES = ("numpy", "numba", "scikit-learn", "simtree", "lightgbm", "xgboost", "faiss-cpu", "treelite", "tl2cgen", "lleaves")

# Names of metrics that are common to several tables.
SECONDS = "time (s)"
MEMORY = "peak memory above the input (MB)"
COMPILATION = "compilation (s)"
AUC = "AUC"
TPR = "TPR at 0.001"
RATE = "pairs per second"


# Command-line options, time and memory


def tiny_and_out(description: str | None) -> argparse.Namespace:
    """Parse the options of a benchmark of real data that has a tiny version; exit if there are no data."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (results)")
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    return options


def seconds(work: Callable[[], Any]) -> float:
    """Return the time of a function call."""
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a module-level function, called in a new interpreter."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def memory_status(name: str) -> int:
    """Return a field of /proc/self/status in bytes: VmRSS is the current memory, VmHWM its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no field {name}; this benchmark requires Linux.")


def peak_memory(work: Callable[[], Any]) -> int:
    """Return the peak memory of a function call in bytes, above the memory before the call."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current memory
    except OSError:
        return sampled_peak_memory(work)
    before = memory_status("VmHWM")
    kept = work()
    peak = memory_status("VmHWM")
    del kept
    return peak - before


def sampled_peak_memory(work: Callable[[], Any]) -> int:
    """Return the same if the peak cannot be reset, by sampling every millisecond, which may miss short peaks."""
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
    """Return the result of a function call, and its time and peak memory as metrics of a line; call it in a fresh process."""
    found: dict[str, Any] = {}

    def timed() -> None:
        start = time.perf_counter()
        found["result"] = work()
        found["seconds"] = time.perf_counter() - start

    memory = max(peak_memory(timed), PAGE) / MEGABYTE
    return found["result"], {SECONDS: [found["seconds"]], MEMORY: [memory]}


def seconds_of_compilation(first_call: Callable[[], float]) -> float:
    """Return the time of a first call with an empty cache of compiled kernels, minus its time with a full cache."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, NUMBA_CACHE_DIR=folder):
        cold = in_fresh_process(first_call)
        return float(cold - in_fresh_process(first_call))


def seconds_of_import(module: str) -> float:
    """Return the time of an import in a fresh interpreter, without the start of the interpreter."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


# Tables and goals


@dataclass(frozen=True)
class Line:
    """Row of a table, with all runs of each metric; a note explains missing runs or how to read them."""

    name: str
    metrics: dict[str, list[float]]
    note: str = ""

    def median(self, metric: str) -> float:
        return statistics.median(self.metrics[metric])


@dataclass(frozen=True)
class Table:
    """Table of lines. ``relative_to`` is the line whose time is the denominator of the ratios."""

    title: str
    lines: list[Line]
    relative_to: str | None = None

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    def as_markdown(self) -> str:
        names = list(dict.fromkeys(metric for line in self.lines for metric in line.metrics))
        base = None if self.relative_to is None else self.line(self.relative_to).metrics.get(SECONDS)
        header = ["what", *names]
        if base:
            header.insert(2, f"ratio to {self.relative_to}")
        with_notes = any(line.note for line in self.lines)
        rows = []
        for line in self.lines:
            cells = [line.name, *(describe(line.metrics.get(name, [])) for name in names)]
            if base:
                timed = SECONDS in line.metrics
                cells.insert(2, f"{line.median(SECONDS) / statistics.median(base):.3g}" if timed else "")
            rows.append([*cells, line.note] if with_notes else cells)
        return markdown_table([*header, "note"] if with_notes else header, rows)


@dataclass(frozen=True)
class Goal:
    """Metric with an upper bound, or a lower bound if ``at_least``."""

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
    """Section of the report."""

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
    """Return the median, with the range if there are several runs.

    >>> describe([3.0, 1.0, 2.0])
    '2 (1 to 3)'
    """
    if not runs:
        return ""
    median = number(statistics.median(runs))
    return median if min(runs) == max(runs) else f"{median} ({number(min(runs))} to {number(max(runs))})"


def number(value: float) -> str:
    """Format a number with three digits (rates below one: four decimals) and thousands separators.

    >>> number(12345678.9), number(0.91234), number(0.0123)
    ('12,300,000', '0.9123', '0.0123')
    """
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.4f}" if 0.1 <= abs(value) < 1 else f"{value:.3g}"


def joined(runs: Iterable[dict[str, list[float]]]) -> dict[str, list[float]]:
    """Concatenate the metrics of several runs of a line."""
    together: dict[str, list[float]] = {}
    for run in runs:
        for name, values in run.items():
            together.setdefault(name, []).extend(values)
    return together


# Environment


class Share:
    """CPU time of other processes since this object was created, as a share of all cores.

    Libraries whose threads wait for each other are slowed down more than others, so ratios are unreliable if it is large.
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
    """Return the command, versions and machine of a measurement."""
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
    """Return an argument without leading folders, which mean nothing on another machine."""
    return "/".join(Path(argument).parts[-2:]) if Path(argument).is_absolute() else argument
