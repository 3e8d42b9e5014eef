"""What the subcommands share: options, exit codes, and how results, progress and errors are shown.

Results go to standard output, everything else to standard error. The exit code is 0, or 1 if something is wrong with the input,
2 if the command line is wrong, and 130 after Ctrl-C.
"""

from __future__ import annotations

import importlib.util
import io
import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable

from simtree._utils.files import DISK_FULL, disk_full, is_special, opened_atomically
from simtree._utils.progress import watched_pairs
from simtree._utils.startup import INTERRUPTED, take_over

FAILED = 1
# Width of tables that are not printed on a terminal.
WIDE = 120
# Pairs that evaluate and calibrate compare: a forest scores them in seconds.
DEFAULT_COMPARISONS = 1_000_000


def _check_jobs(n_jobs: int) -> int:
    if n_jobs == 0:
        raise typer.BadParameter("the number of parallel jobs cannot be 0; give 1 or more, or -1 for all cores.")
    return n_jobs


Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Random seed.")]
Jobs = Annotated[
    int, typer.Option("--n-jobs", metavar="N", callback=_check_jobs, help="Number of parallel jobs; -1 for all cores.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Model file, as written by `simtree fit`.", show_default=False)]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="Table with one row per sample: CSV, TSV, Parquet, Feather, NPZ or NPY, or a folder of Parquet files; - for CSV "
        "from standard input.",
        show_default=False,
    ),
]
Label = Annotated[str, typer.Option("--label", metavar="COL", help="Column with the identity.", show_default=False)]
NeverPair = Annotated[
    str | None,
    typer.Option(
        "--never-pair",
        metavar="COL",
        help="Rows with the same value in this column never form a pair, such as those of one recording or session.",
    ),
]
Comparisons = Annotated[
    int,
    typer.Option(
        "--n-pairs",
        metavar="N",
        min=0,
        help="Maximum number of pairs to compare; if there are more, they are sampled; 0 for all.",
    ),
]


class Assumption(StrEnum):
    """Assumption of a guarantee."""

    regular = "regular"
    none = "none"


Confidence = Annotated[float, typer.Option("--confidence", metavar="SHARE", help="Confidence level of the guarantee.")]
Assume = Annotated[
    Assumption,
    typer.Option(
        "--assume",
        metavar="regular/none",
        help="regular: new people are about as unequal as those in the data; none: no assumption (takes many).",
    ),
]


@contextmanager
def friendly_errors(interrupted: str = "Interrupted. Nothing was written.") -> Iterator[None]:
    """Print errors and Ctrl-C as one sentence instead of a traceback, and exit with their code."""
    take_over()
    try:
        yield
    except BrokenPipeError:  # the reader of our output has closed the pipe; typer exits quietly
        raise
    except (ValueError, OSError, ImportError) as error:
        if isinstance(error, OSError) and error.errno in DISK_FULL and error.args[1:]:  # as the system says it
            error = disk_full(error.filename or "standard output", error)
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        typer.echo(interrupted, err=True)
        raise typer.Exit(INTERRUPTED) from None


def check_writable(option: str, folder: Path, file: Path | None = None) -> None:
    """Raise before the work, not after it, if a folder (or a file in it) cannot be written."""
    named = folder if file is None else file
    if file is not None and is_special(file):
        return  # nothing is written beside it
    if file is not None and file.is_symlink():
        folder = file.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        if error.errno in DISK_FULL:
            raise disk_full(named, error) from error
        raise OSError(f"{option} {named} cannot be written to ({error.strerror}); choose another folder.") from error
    if file is not None and file.is_dir():
        raise OSError(f"{option} {file} is a folder; give the name of a file.")


def require_matplotlib() -> None:
    """Raise before the work if matplotlib is missing, and draw plots without a window."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError('The plots need matplotlib; install it with: pip install "simtree[cli]"')
    os.environ.setdefault("MPLBACKEND", "Agg")  # plots go to files: no display needed


def file_size(n_bytes: int) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> file_size(700), file_size(25_300), file_size(5_600_000)
    ('1 kB', '25 kB', '5.6 MB')
    """
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 100_000 else f"{max(1, round(n_bytes / 1e3))} kB"


def say(sentence: str) -> None:
    """Print a message to standard error."""
    typer.echo(sentence, err=True)


def show_json(result: Any) -> None:
    """Print a result as JSON."""
    typer.echo(json.dumps(_finite(result), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """Return the value with None for infinite numbers, which JSON cannot hold: a threshold may be one."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show(*parts: Any) -> None:
    """Print a result as lines and tables."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    for part in parts:
        if isinstance(part, RichTable):  # the title of a narrow table would be broken into lines
            console.print(part.title, style="bold", soft_wrap=True)
            part.title = None
        console.print(part, soft_wrap=isinstance(part, str))


def table(title: str, *columns: str) -> RichTable:
    """Return an empty table; columns whose name starts with '>' are aligned to the right."""
    made = RichTable(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    return made


@contextmanager
def scoring_bar(what: str, n_pairs: int | None) -> Iterator[None]:
    """Show a progress bar on a terminal while pairs are scored; ``n_pairs`` is None if their number is not known."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=n_pairs)
        with watched_pairs(lambda n: bar.advance(task, n)):
            yield


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """Show on a terminal that something takes its time, whose parts cannot be counted."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
    ) as bar:
        bar.add_task(what, total=None)
        yield


@contextmanager
def opened_output(out: Path | None) -> Iterator[BinaryIO]:
    """Open a file that appears when it is complete, or standard output."""
    if out is not None:
        with opened_atomically(out) as stream:
            yield stream
        return
    sys.stdout.flush()
    stream = getattr(sys.stdout, "buffer", None) or io.BytesIO()
    yield stream
    stream.flush()


def command_line() -> str:
    """Return the command line as it was given."""
    return shlex.join(["simtree", *sys.argv[1:]])
