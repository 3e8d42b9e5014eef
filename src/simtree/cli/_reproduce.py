"""``simtree reproduce``: the experiments of the paper, one command per experiment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from simtree.cli._common import Jobs, Seed, check_writable, command_line, friendly_errors, require_matplotlib
from simtree.experiments._results import Order

app = typer.Typer(help="Run an experiment of the paper and compare it with the printed results.", no_args_is_help=True)


Runs = Annotated[int, typer.Option("--runs", min=1, help="Number of random repetitions.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results.", file_okay=False)]

RESULTS = Path("results")


def _carry_out(name: str, run: Callable[[Order], None], *, runs: int, seed: int, n_jobs: int, out: Path) -> None:
    """Run an experiment, show its tables and name its files."""
    folder = out.expanduser()
    kept = f"Interrupted. Finished runs are kept in {out}; the same command goes on from there."
    with friendly_errors(interrupted=kept):
        require_matplotlib()
        check_writable("--out", folder)
        run(Order(folder, runs, seed, n_jobs, command_line()))
        shown = (folder / f"{name}.md").read_text(encoding="utf-8")
    typer.echo(shown)
    typer.echo("Written: " + ", ".join(str(file) for file in sorted(folder.glob(f"{name}[._]*"))))


@app.command()
def table1(
    extended: Annotated[
        bool,
        typer.Option(
            "--extended",
            help="Also a pruned tree, a forest and the best depth for all rows; 20 to 30 minutes more on two cores.",
        ),
    ] = False,
    runs: Runs = 400,
    seed: Seed = 0,
    n_jobs: Jobs = -1,
    out: Out = RESULTS,
) -> None:
    """Reproduce Table 1: distances to the optimal ROC curve of random tree distributions, twelve rows."""
    from simtree.experiments import _table1 as table1

    _carry_out("table1", partial(table1.run, extended=extended), runs=runs, seed=seed, n_jobs=n_jobs, out=out)


@app.command()
def mnist(
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of the MNIST idx files; by default that of SIMTREE_DATA, or OpenML.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the size, in about two minutes.")] = False,
    runs: Runs = 1,
    seed: Seed = 0,
    n_jobs: Jobs = -1,
    out: Out = RESULTS,
) -> None:
    """Compare forests with LMNN and a neural network on MNIST."""
    from simtree.experiments import _mnist as mnist

    name = "mnist_quick" if quick else "mnist"
    _carry_out(name, partial(mnist.run, folder=data, quick=quick), runs=runs, seed=seed, n_jobs=n_jobs, out=out)


@app.command()
def figures(runs: Runs = 20, seed: Seed = 0, n_jobs: Jobs = -1, out: Out = RESULTS) -> None:
    """Draw the figures: regions on the unit square, a symmetric split, a tree of depth 3, the knots of its curve."""
    from simtree.experiments import _figures as figures

    _carry_out("figures", figures.run, runs=runs, seed=seed, n_jobs=n_jobs, out=out)


@app.command()
def lemma(runs: Runs = 20, seed: Seed = 0, n_jobs: Jobs = -1, out: Out = RESULTS) -> None:
    """Test Lemma 1: what the paper's f cannot see with two features, and what repairs it."""
    from simtree.experiments import _lemma as lemma

    _carry_out("lemma", lemma.run, runs=runs, seed=seed, n_jobs=n_jobs, out=out)
