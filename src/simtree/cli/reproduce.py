"""``simtree reproduce``: the experiments of the paper, one command each."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from simtree.experiments.results import Order

app = typer.Typer(help="Run an experiment of the paper and set it beside what the paper prints.", no_args_is_help=True)


def _check_jobs(n_jobs: int) -> int:
    if n_jobs == 0:
        raise typer.BadParameter("0 cores do no work; give 1 or more, or -1 for all.")
    return n_jobs


Runs = Annotated[int, typer.Option("--runs", min=1, help="How often what is random is repeated.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of all that is random.")]
Jobs = Annotated[int, typer.Option("--n-jobs", callback=_check_jobs, help="Cores at work; -1 for all.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the results.", file_okay=False)]

RESULTS = Path("results")
INTERRUPTED = 130  # what shells give after Ctrl-C


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Say what went wrong without a traceback."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from None


def _carry_out(name: str, run: Callable[[Order], None], *, runs: int, seed: int, n_jobs: int, out: Path) -> None:
    """Run an experiment, show its tables and name its files; what goes wrong is one sentence."""
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures go to files: no window, no display needed
    folder = out.expanduser()
    try:
        with _one_sentence():
            _check_ready(folder)
            run(Order(folder, runs, seed, n_jobs, shlex.join(["simtree", *sys.argv[1:]])))
            shown = (folder / f"{name}.md").read_text(encoding="utf-8")
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. Finished runs are kept in {out}; the same command goes on from there.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(shown)
    typer.echo("Written: " + ", ".join(str(file) for file in sorted(folder.glob(f"{name}[._]*"))))


def _check_ready(folder: Path) -> None:
    """Fail before the work, not after it."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ImportError('The pictures need matplotlib; install it with: pip install "simtree[cli]"')
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"--out {folder} cannot be written to ({error.strerror}); choose another folder.") from error


@app.command()
def table1(
    extended: Annotated[
        bool,
        typer.Option(
            "--extended",
            help="Also a pruned tree, a forest and the best depth on all rows; a third to half an hour more on two cores.",
        ),
    ] = False,
    runs: Runs = 400,
    seed: Seed = 0,
    n_jobs: Jobs = -1,
    out: Out = RESULTS,
) -> None:
    """Table 1: distances to the optimal ROC curve of random tree laws, twelve rows."""
    from simtree.experiments import table1

    _carry_out("table1", partial(table1.run, extended=extended), runs=runs, seed=seed, n_jobs=n_jobs, out=out)


@app.command()
def mnist(
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of MNIST's idx files; else that of SIMTREE_DATA, else OpenML.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the size, in about two minutes.")] = False,
    runs: Runs = 1,
    seed: Seed = 0,
    n_jobs: Jobs = -1,
    out: Out = RESULTS,
) -> None:
    """MNIST: forests beside LMNN and a neural network."""
    from simtree.experiments import mnist

    name = "mnist_quick" if quick else "mnist"
    _carry_out(name, partial(mnist.run, folder=data, quick=quick), runs=runs, seed=seed, n_jobs=n_jobs, out=out)


@app.command()
def figures(runs: Runs = 20, seed: Seed = 0, n_jobs: Jobs = -1, out: Out = RESULTS) -> None:
    """Figures: regions on the unit square, a symmetric split, a tree of depth 3, the knots of its curve."""
    from simtree.experiments import figures

    _carry_out("figures", figures.run, runs=runs, seed=seed, n_jobs=n_jobs, out=out)


@app.command()
def lemma(runs: Runs = 20, seed: Seed = 0, n_jobs: Jobs = -1, out: Out = RESULTS) -> None:
    """Lemma 1: what the paper's f cannot see with two features, and what repairs it."""
    from simtree.experiments import lemma

    _carry_out("lemma", lemma.run, runs=runs, seed=seed, n_jobs=n_jobs, out=out)


@app.command()
def page(
    results: Annotated[Path, typer.Option("--results", help="Folder of the JSON results and pictures.")] = Path("docs/results"),
    out: Annotated[Path, typer.Option("--out", help="The page to write.", dir_okay=False)] = Path("docs/reproduction.md"),
) -> None:
    """Make the page that shows all results beside the paper's, from the JSON files of the experiments."""
    from simtree.experiments.page import write_page

    with _one_sentence():
        write_page(results, out)
    typer.echo(f"Written: {out}")
