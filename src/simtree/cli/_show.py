"""``simtree show``: describe a model file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from simtree._utils.validation import count
from simtree.cli._choice import add_performance, choice_tables
from simtree.cli._common import Json, Model, file_size, friendly_errors, show, show_json, table
from simtree.cli._models import load_model
from simtree.evaluation._thresholds import ThresholdReport
from simtree.models._description import describe


def show_model(
    model: Model,
    rules: Annotated[
        int | None, typer.Option("--rules", min=1, metavar="DEPTH", help="Also print the rules of a tree, down to this depth.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what is in a model file: the model, its features, and its threshold."""
    with friendly_errors():
        learned = load_model(model)
        described = describe(learned)
        text = None if rules is None else _rules(learned, rules)
        described = {"model": str(model), "bytes": model.stat().st_size, **described}
    if as_json:
        show_json({**described, "rules": text})
        return
    show(*_tables(described))
    if text is not None:
        show(text)


def _rules(learned: Any, depth: int) -> str:
    inner = getattr(learned, "best_estimator_", learned)
    if not hasattr(inner, "export_text"):
        raise ValueError(
            f"--rules {depth}: {type(inner).__name__} is not a single tree, which has rules; fit one with --model tree."
        )
    return str(inner.export_text(max_depth=depth))


def _tables(described: dict[str, Any]) -> list[Any]:
    rows = table(f"{described['model']}: {described['class']}, {file_size(described['bytes'])}", "property", "value")
    if described["chosen"]:
        rows.add_row("chosen", described["chosen"])
        add_performance(rows, described)
    if described["trained_on"]:
        rows.add_row("trained on", described["trained_on"])
    if described["n_trees"]:
        rows.add_row("trees", f"{described['n_trees']:,}, with {count(described['n_cells'], 'terminal cell')}")
        rows.add_row("AUC on training pairs", f"{described['training_auc']:.4f}")
    if described["oob_auc"] is not None:
        rows.add_row("out-of-bag AUC", f"{described['oob_auc']:.4f}")
    rows.add_row("features", _shortened(described["features"], described["n_features"]))
    for column in described["columns"]:
        rows.add_row(f"column {column['name']}", column["words"])
    for sentence in described["done"]:
        rows.add_row("done", sentence)
    for name, value in described["parameters"].items():
        rows.add_row(name, value)
    for sentence in described["cohorts"]:
        rows.add_row("cohort", sentence)
    report = described["threshold_report"]
    promise = "no guarantee; see `simtree calibrate`"
    if report is not None and report["max_fpr"] is not None:
        promise = f"{ThresholdReport(**report).promise}; from {report['n_identities']:,} identities"
    rows.add_row("threshold", f"{described['threshold']:.6g}: {promise}")
    if described["probabilities"]:
        rows.add_row("probabilities", described["probabilities"])
    shown = [rows, *choice_tables(described)]
    if described["importances"]:
        top = list(described["importances"].items())[:10]
        shares = table("Feature importances: shares of the AUC gain", "feature", ">share")
        for name, share in top:
            shares.add_row(name, f"{share:.3f}")
        shown.append(shares)
    return shown


def _shortened(names: list[str] | None, n: int, most: int = 6) -> str:
    if names is None:
        return f"{n:,}, without names"
    return f"{n:,}: {', '.join(names[:most])}{' ...' if n > most else ''}"
