"""``simtree explain``: why a pair has its score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from simtree.cli._common import (
    Data,
    Json,
    Model,
    check_writable,
    friendly_errors,
    require_matplotlib,
    say,
    show,
    show_json,
    table,
)
from simtree.cli._models import load_model, points_of
from simtree.cli._tables import read_samples
from simtree.models._distance import DistanceSimilarity
from simtree.models._gaussian import GaussianSimilarity
from simtree.models._voting import VotingSimilarity

# Models whose scores are no sum over features.
UNEXPLAINED: dict[type, str] = {
    GaussianSimilarity: "a ratio of Gaussian likelihoods",
    DistanceSimilarity: "a plain distance",
    VotingSimilarity: "a vote of several models",
}


def explain(
    model: Model,
    data: Data,
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A row of DATA, counted from 0.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="Another row.", show_default=False)],
    key: Annotated[
        str | None, typer.Option("--id", metavar="COL", help="FIRST and SECOND are values of this column, not row numbers.")
    ] = None,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=1, help="How many features are shown, those that said most.")
    ] = 10,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Also draw it into this picture.")] = None,
    as_json: Json = False,
) -> None:
    """Say what each feature added to the score of a pair, or took from it."""
    with friendly_errors():
        learned = load_model(model)
        if plot is not None:
            require_matplotlib()
            check_writable("--plot", plot.parent, plot)
        if not hasattr(learned, "explain_pair"):
            inner = getattr(learned, "best_estimator_", learned)
            what = UNEXPLAINED[type(inner)]
            raise ValueError(f"{model.name} holds {what}, which has no parts to explain; fit a forest or a tree.")
        found = read_samples(data, [] if key is None else [key])
        points = np.asarray(points_of(learned, found, [] if key is None else [key]))
        x, x2 = (points[found.row(text, key)] for text in (first, second))
        explanation = learned.explain_pair(x, x2)
        if list(explanation.feature_names) == list(getattr(learned, "feature_names_in_", [])):
            # A representation may have changed the values of features, but it is the user's own that say something.
            explanation = replace(explanation, x=x, x2=x2)
        accepted = bool(explanation.score >= learned.threshold_)
        if plot is not None:
            _draw(explanation, plot, top)
    order = explanation.order()
    result = {
        "first": first,
        "second": second,
        "score": explanation.score,
        "threshold": float(learned.threshold_),
        "accepted": accepted,
        "base": explanation.base,
        "features": [
            {
                "name": explanation.feature_names[j],
                "first": float(explanation.x[j]),
                "second": float(explanation.x2[j]),
                "contribution": float(explanation.contributions[j]),
            }
            for j in order
        ],
    }
    show_json(result) if as_json else show(_lines(result, top))
    if plot is not None:
        say(f"Drawn: {plot}")


def _draw(explanation: Any, file: Path, top: int) -> None:
    import matplotlib.pyplot as plt

    from simtree.plots import ExplanationDisplay

    display = ExplanationDisplay(explanation, max_features=top).plot()
    display.figure_.savefig(file, dpi=150)
    plt.close(display.figure_)


def _lines(result: dict[str, Any], top: int) -> Any:
    decision = "accepted" if result["accepted"] else "not accepted"
    title = f"score {result['score']:.4g}, {decision} at threshold {result['threshold']:.4g}"
    rows = table(title, "feature", f">{result['first']}", f">{result['second']}", ">added")
    rows.add_row("any pair", "", "", f"{result['base']:+.3f}")
    for feature in result["features"][:top]:
        rows.add_row(feature["name"], f"{feature['first']:.4g}", f"{feature['second']:.4g}", f"{feature['contribution']:+.3f}")
    rest = result["features"][top:]
    if rest:
        rows.add_row(f"{len(rest)} other features", "", "", f"{sum(feature['contribution'] for feature in rest):+.3f}")
    return rows
