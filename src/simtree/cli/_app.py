"""The command ``simtree`` and its subcommands."""

from __future__ import annotations

from importlib import metadata

import typer

from simtree.cli import _calibrate as calibrate
from simtree.cli import _cluster as cluster
from simtree.cli import _enroll as enroll
from simtree.cli import _evaluate as evaluate
from simtree.cli import _explain as explain
from simtree.cli import _fit as fit
from simtree.cli import _fusion as fusion
from simtree.cli import _gallery as gallery
from simtree.cli import _identify as identify
from simtree.cli import _keys as keys
from simtree.cli import _report as report
from simtree.cli import _reproduce as reproduce
from simtree.cli import _score as score
from simtree.cli import _serve as serve
from simtree.cli import _show as show
from simtree.cli import _split as split

CATEGORY = "Similarity learning: verification, identification and record linkage with trees, forests and boosting."
app = typer.Typer(help=CATEGORY, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
app.command("split", cls=split.SplitCommand)(split.split)
app.command("fit")(fit.fit)
app.command("evaluate")(evaluate.evaluate_model)
app.command("report")(report.report)
app.command("calibrate")(calibrate.calibrate)
# A negative threshold looks like an option.
app.command("set-threshold", context_settings={"ignore_unknown_options": True})(report.set_threshold)
app.command("fit-fusion")(fusion.fit_fusion)
app.command("score")(score.score)
app.command("explain")(explain.explain)
app.command("show")(show.show_model)
app.command("enroll")(enroll.enroll)
app.add_typer(gallery.app, name="gallery")
app.command("identify")(identify.identify)
app.command("verify")(identify.verify)
app.command("remove")(enroll.remove)
app.command("cluster")(cluster.cluster_table)
gallery.app.command("cluster")(cluster.cluster_gallery)
app.command("serve")(serve.serve)
app.add_typer(keys.app, name="keys")
app.add_typer(reproduce.app, name="reproduce")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"simtree {metadata.version('simtree')}")
        raise typer.Exit


@app.callback()
def simtree(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
) -> None:
    """Similarity learning: verification, identification and record linkage with trees, forests and boosting."""
