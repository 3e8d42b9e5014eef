"""``simtree explain``: the contribution of each feature to the score of a pair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from simtree._utils.validation import count
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
from simtree.cli._models import load_model, samples_of, words_of
from simtree.cli._reading import read_samples
from simtree.models._cohort import CohortNormalization
from simtree.models._distance import DistanceSimilarity
from simtree.models._gaussian import GaussianSimilarity
from simtree.models._posterior import PosteriorSimilarity
from simtree.models._stack import StackedSimilarity
from simtree.models._voting import VotingSimilarity
from simtree.pairs._inputs import check_samples
from simtree.trees._explanation import value_text

# Features that are shown by default.
MIN_SHOWN, MAX_SHOWN = 10, 30
# Models whose scores are not a sum over features.
UNEXPLAINED: dict[type, str] = {
    GaussianSimilarity: "a ratio of Gaussian likelihoods",
    DistanceSimilarity: "a distance",
    PosteriorSimilarity: "a comparison of class posteriors",
    VotingSimilarity: "an ensemble of several models",
}


def explain(
    model: Model,
    data: Data,
    first: Annotated[str, typer.Argument(metavar="FIRST", help="Number of a row of DATA, counted from 0.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="Number of another row.", show_default=False)],
    key: Annotated[
        str | None,
        typer.Option("--id", metavar="COL", help="FIRST and SECOND are values of this column instead of row numbers."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            metavar="N",
            min=1,
            help=f"How many features are shown, largest contributions first; by default {MIN_SHOWN} or more, until the others "
            f"add up to less than the smallest of them, but at most {MAX_SHOWN}.",
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Also write a plot to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Say what each feature contributes to the score of a pair: positive for the same identity, negative against it."""
    with friendly_errors():
        learned = load_model(model)
        if plot is not None:
            require_matplotlib()
            check_writable("--plot", plot.parent, plot)
        if not hasattr(learned, "explain_pair"):
            what = _unexplained(getattr(learned, "best_estimator_", learned))
            raise ValueError(
                f"{model.name} holds {what}, which is not a sum over features; fit a forest, a tree or --model auto."
            )
        found = read_samples(data, [*([] if key is None else [key]), *words_of(learned)])
        samples = check_samples(learned, samples_of(learned, found, [] if key is None else [key]))
        pair = samples[[found.row(text, key) for text in (first, second)]]
        explanation = learned._explain_rows(pair)
        columns = getattr(learned, "columns_", None)
        names = getattr(learned, "feature_names_in_", []) if columns is None else columns.names
        if list(explanation.feature_names) == list(names):
            # A representation may have changed the values, but the user knows those of the table.
            x, x2 = pair if columns is None else map(columns.words, pair)
            explanation = replace(explanation, x=x, x2=x2)
        accepted = bool(explanation.score >= learned.threshold_)
        order = explanation.order()
        shown = _n_shown(explanation.contributions[order]) if top is None else top
        if plot is not None:
            _draw(explanation, plot, shown, float(learned.threshold_))
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
                "label": explanation.label(j),
                "first": _plain(explanation.x[j]),
                "second": _plain(explanation.x2[j]),
                "contribution": float(explanation.contributions[j]),
            }
            for j in order
        ],
    }
    show_json(result) if as_json else show(_lines(result, shown))
    if plot is not None:
        say(f"Drawn: {plot}")


def _plain(value: Any) -> str | float | None:
    """Return a value of a sample as JSON has it: a word, a number, or null if it is missing."""
    if isinstance(value, str):
        return value
    return None if np.isnan(value) else float(value)


def _unexplained(model: Any) -> str:
    """Return what a model is whose score is not a sum over features."""
    if isinstance(model, CohortNormalization):
        return _unexplained(model.estimator_)
    if isinstance(model, StackedSimilarity):
        return "a stack of an earlier version"
    return UNEXPLAINED.get(type(model), f"a {type(model).__name__}")


def _draw(explanation: Any, file: Path, top: int, threshold: float) -> None:
    import matplotlib.pyplot as plt

    from simtree.plots import ExplanationDisplay

    display = ExplanationDisplay(explanation, max_features=top, threshold=threshold).plot()
    display.figure_.savefig(file, dpi=150)
    plt.close(display.figure_)


def _n_shown(contributions: NDArray[np.float64]) -> int:
    """Return how many of the falling contributions are shown: until the others add up to less than the last of them."""
    n = min(MIN_SHOWN, len(contributions))
    while n < min(MAX_SHOWN, len(contributions)) and abs(contributions[n:].sum()) > abs(contributions[n - 1]):
        n += 1
    return n


def _lines(result: dict[str, Any], n_shown: int) -> Any:
    decision = "accepted" if result["accepted"] else "not accepted"
    title = f"score {result['score']:.4g}, {decision} at threshold {result['threshold']:.4g}"
    rows = table(title, "feature", f">{result['first']}", f">{result['second']}", ">contribution")
    rows.add_row("baseline: average pair", "", "", f"{result['base']:+.3f}")
    for feature in result["features"][:n_shown]:
        values = [value_text(feature[side]) for side in ("first", "second")]
        rows.add_row(feature["label"], *values, f"{feature['contribution']:+.3f}")
    rest = [feature["contribution"] for feature in result["features"][n_shown:]]
    # Apart, so that many small contributions do not hide behind their sum.
    for what, part in (
        ("for the same identity", [value for value in rest if value >= 0]),
        ("against it", [value for value in rest if value < 0]),
    ):
        if part:
            rows.add_row(f"{count(len(part), 'other feature')} {what}", "", "", f"{sum(part):+.3f}")
    rows.add_section()
    rows.add_row("score", "", "", f"{result['score']:+.3f}")
    rows.add_row("threshold", "", "", f"{result['threshold']:+.3f}")
    rows.add_row("decision", "", "", decision)
    return rows
