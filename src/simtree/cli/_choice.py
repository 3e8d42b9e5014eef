"""What `AutoSimilarity` compared and chose, for ``simtree fit`` and ``simtree show``."""

from __future__ import annotations

from typing import Any

from simtree.cli._common import table


def add_performance(rows: Any, described: dict[str, Any]) -> None:
    """Add the figures of what was chosen to a table of properties."""
    found = described["performance"]
    if not found:
        rows.add_row("performance", "not measured: there is one fold only")
        return
    for name, what in (("tpr", f"TPR at FPR {described['fpr']:.2g}"), ("auc", "AUC")):
        value, low, high = found[name]
        rows.add_row(what, f"{value:.3f} [{low:.3f}, {high:.3f}] on data left out of fit and choice")


def choice_tables(described: dict[str, Any]) -> list[Any]:
    """Return the table of candidates, if there is one."""
    if not described["candidates"]:
        return []
    around = f"TPR around FPR {described['fpr']:.2g}"
    rows = table(
        "Candidates, each on held-out pairs", "candidate", ">share", f">{around}", ">standard error", ">AUC", ">seconds"
    )
    for entry in described["candidates"]:
        share = f"{entry['weight']:.2f}" if entry["weight"] > 0.0 else ""
        figures = [f"{entry[name]:.3f}" for name in ("criterion", "criterion_error", "auc")]
        rows.add_row(entry["name"], share, *figures, f"{entry['seconds']:.1f}")
    for name, reason in described["skipped"].items():
        rows.add_row(name, "", f"skipped: {reason}", "", "", "")
    return [rows]
