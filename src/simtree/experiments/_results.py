"""The output of an experiment: a log of finished runs and, at the end, a JSON file, tables and figures.

An experiment consists of independent runs, each with a name. Each finished run is appended to the log, so that an interrupted
experiment can be resumed; the final output is made from the log alone.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from simtree._utils.files import write_atomically
from simtree._utils.progress import reported

Values = dict[str, Any]

# An experiment NAME writes NAME.json (all results), NAME.md (tables), NAME*.png (figures) and NAME.runs.jsonl (the log).
VERSIONS_OF = (
    "simtree",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "joblib",
    "matplotlib",
    "metric-learn",
    "torch",
    "lightgbm",
    "xgboost",
    "catboost",
    "pytorch-metric-learning",
)


@dataclass(frozen=True)
class Order:
    """Settings of an experiment.

    Parameters
    ----------
    out : Path
        Folder of the results.
    runs : int
        Number of random repetitions.
    seed : int
        Random seed; run r depends on the seed and on r alone.
    n_jobs : int or None
        Number of parallel jobs.
    command : str
        Command line that started the experiment.
    """

    out: Path
    runs: int
    seed: int
    n_jobs: int | None
    command: str


class RunLog:
    """Log of finished runs in a JSON Lines file.

    Parameters
    ----------
    file : Path
        The log; it is created together with its folder, or continued if it exists.
    settings : mapping
        Everything that determines the result of a run, such as the random seed. A log with other settings is refused.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = RunLog(Path(folder.name) / "coin.runs.jsonl", {"seed": 0})
    >>> log.add("run 1", {"heads": True}, seconds=0.1)
    >>> RunLog(log.file, {"seed": 0}).found
    {'run 1': {'heads': True}}
    >>> folder.cleanup()
    """

    def __init__(self, file: Path, settings: Mapping[str, Any]) -> None:
        self.file = file
        self.settings = {"simtree": metadata.version("simtree"), **settings}
        self.found: dict[str, Values] = {}
        self.seconds: dict[str, float] = {}
        if file.exists():
            self._read()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps({"settings": self.settings}) + "\n")

    def add(self, name: str, values: Values, *, seconds: float) -> None:
        """Append the result of a run and the seconds it took."""
        self.found[name] = values
        self.seconds[name] = seconds
        with self.file.open("ab") as log:
            log.write(json.dumps({"run": name, "found": values, "seconds": seconds}).encode() + b"\n")

    def complete(
        self, tasks: Mapping[str, Callable[[], Values]], *, n_jobs: int | None, what: str, with_bar: bool = True
    ) -> None:
        """Do the missing runs in parallel, and append each to the log as soon as it is finished.

        Progress is shown as a bar or, for runs that show their own progress, as one line per run.
        """
        missing = {name: task for name, task in tasks.items() if name not in self.found}
        if len(missing) < len(tasks):
            print(f"{what}: {len(tasks) - len(missing):,} of {len(tasks):,} runs are in {self.file} already")
        # One run per batch, because joblib returns a batch only when all of it is done.
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        announced = None if with_bar else what
        done = parallel(delayed(_timed)(name, task, announced) for name, task in missing.items())
        for name, values, seconds in reported(done, None, n_steps=len(missing), what=what, verbose=int(with_bar)):
            self.add(name, values, seconds=seconds)

    def _read(self) -> None:
        content = self.file.read_bytes()
        *lines, unfinished = content.split(b"\n")
        try:
            header, *entries = [json.loads(line) for line in lines]
            settings = dict(header["settings"])
            self.found = {entry["run"]: entry["found"] for entry in entries}
            self.seconds = {entry["run"]: entry["seconds"] for entry in entries}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.file} is not a log of runs; delete it or choose another folder with --out.") from error
        # Compare after a round trip through JSON, which turns tuples into lists.
        for name, value in json.loads(json.dumps(self.settings)).items():
            if settings.get(name) != value:
                raise ValueError(
                    f"{self.file} holds runs with {name}={settings.get(name)!r}, not {value!r}; "
                    "delete it or choose another folder with --out."
                )
        if unfinished:  # the line that was being written when the process was killed
            os.truncate(self.file, len(content) - len(unfinished))


def _timed(name: str, task: Callable[[], Values], announced: str | None) -> tuple[str, Values, float]:
    if announced is not None:
        print(f"{announced}: {name}", file=sys.stderr, flush=True)
    start = time.perf_counter()
    return name, task(), time.perf_counter() - start


def write_result(order: Order, name: str, found: Mapping[str, Any], section: Callable[[Values], str]) -> None:
    """Write the results of an experiment and their origin as JSON, and the output of ``section`` as Markdown."""
    result = {"command": order.command, "seed": order.seed, "versions": _versions(), "machine": _machine(), **found}
    write_json(order.out / f"{name}.json", result)
    write_atomically(order.out / f"{name}.md", section(result) + "\n")


def write_json(file: Path, result: Mapping[str, Any]) -> None:
    """Write results as JSON with each list of numbers on one line."""
    # A JSON string contains no line break.
    text = re.sub(r"\[\n([^][{}\"]*)\]", lambda numbers: f"[{' '.join(numbers[1].split())}]", json.dumps(result, indent=1))
    write_atomically(file, text + "\n")


def write_figure(file: Path, figure: Any) -> None:
    """Write a matplotlib figure as PNG, reproducible to the byte, and close it."""
    import matplotlib.pyplot as plt

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150, metadata={"Software": None})
    plt.close(figure)
    write_atomically(file, picture.getvalue())


def markdown_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown.

    Examples
    --------
    >>> print(markdown_table(["model", "AUC"], [["tree", 0.9]]))
    | model | AUC |
    |---|---|
    | tree | 0.9 |
    """
    names = list(header)
    lines = [f"| {' | '.join(map(str, line))} |" for line in (names, *rows)]
    return "\n".join([lines[0], "|---" * len(names) + "|", *lines[1:]])


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    """Return the mean and standard deviation over runs as text; the mean alone if there is one run.

    Examples
    --------
    >>> mean_and_spread([0.5, 0.7])
    '0.600 ± 0.141'
    """
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def _versions() -> dict[str, str]:
    installed = {"python": platform.python_version()}
    for name in VERSIONS_OF:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def _machine() -> dict[str, Any]:
    return {"system": platform.system(), "architecture": platform.machine(), "cores": os.cpu_count()}
