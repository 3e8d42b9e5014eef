"""Charts of the page, as Vega-Lite specifications.

Colours are variables of style.css, so that charts follow dark mode and print. Which threshold is shown is the parameter
`chosen` (the number of a row of the grid), which the script of the page sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from simtree.evaluation._results import Band, Estimate, Evaluation
from simtree.metrics import FloatArray
from simtree.report._words import percent

SAME, DIFFERENT, CHOSEN = "var(--same)", "var(--different)", "var(--chosen)"
INK, FAINT = "var(--ink)", "var(--faint)"
HEIGHT = 320
# Rates at the ticks of normal-deviate axes.
DEVIATE_TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8)
CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "aria": False,  # the page has a text alternative for each chart
    "view": {"stroke": None},
    "axis": {
        "labelColor": FAINT,
        "titleColor": INK,
        "gridColor": "var(--grid)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": 500,
        "titlePadding": 8,
    },
}


def require_altair() -> Any:
    """Return the module altair, or raise an error that says how to install it."""
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'The report needs altair and vl-convert-python; install them with: pip install "simtree[report]"'
        ) from error
    return altair


@lru_cache(maxsize=1)
def vega_bundle() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed for a script element."""
    import vl_convert

    # The page ends its script elements itself.
    return (
        str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
        .replace("</script", "<\\/script")
        .replace("<!--", "<\\!--")
    )


def grid_rows(band: Band, floor: tuple[float, float]) -> list[dict[str, float]]:
    """Return the rows of the grid of thresholds, with what the charts draw.

    Parameters
    ----------
    band : Band
        Rates at thresholds, with their intervals.
    floor : tuple of float
        Lowest FPR and lowest 1 - TPR that are drawn.

    Returns
    -------
    list of dict
        One row per threshold.
    """
    rows = []
    for k, threshold in enumerate(band.thresholds):
        (fpr_low, fpr_high), (tpr_low, tpr_high) = band.fpr_interval[k], band.tpr_interval[k]
        values = {"fpr": band.fpr[k], "fprLow": fpr_low, "fprHigh": fpr_high}
        misses = {"fnr": 1.0 - band.tpr[k], "fnrLow": 1.0 - tpr_high, "fnrHigh": 1.0 - tpr_low}
        row = {"k": k, "threshold": threshold, "tpr": band.tpr[k], "tprLow": tpr_low, "tprHigh": tpr_high}
        row |= {name: max(value, floor[0]) for name, value in values.items()}
        row |= {f"{name}Z": deviate(value, floor[0]) for name, value in values.items()}
        row |= {f"{name}Z": deviate(value, floor[1]) for name, value in misses.items()}
        rows.append({name: value if name == "k" else _rounded(value) for name, value in row.items()})
    return rows


def deviate(rate: float, floor: float) -> float:
    """Return the normal deviate of a rate, which is kept away from 0 and 1."""
    return float(ndtri(min(max(rate, floor), 1.0 - floor)))


def _rounded(value: Any) -> float:
    return float(f"{float(value):.8g}")


def roc_chart(rows: list[dict[str, float]], used: int | None, floor: float) -> dict[str, Any]:
    """Return the chart of the ROC curve, on a logarithmic axis of false positive rates.

    Parameters
    ----------
    rows : list of dict
        Rows of the grid.
    used : int or None
        Row of the threshold in use.
    floor : float
        Where the axis begins.

    Returns
    -------
    dict
        The specification.
    """
    alt = require_altair()
    powers = [10.0**k for k in range(int(np.ceil(np.log10(floor) - 1e-9)), 1)]
    x = alt.X(
        "fpr:Q",
        title="False positive rate: strangers accepted",
        scale=alt.Scale(type="log", domain=[floor, 1.0], clamp=True, nice=False),
        axis=alt.Axis(values=powers, labelExpr="format(datum.value * 100, '~r') + ' %'", labelOverlap=True),
    )
    y = alt.Y(
        "tpr:Q",
        title="True positive rate: right people accepted",
        scale=alt.Scale(domain=[0.0, 1.0], clamp=True),
        axis=alt.Axis(format="~%", tickCount=6),
    )
    band = _outline(rows, ("fprLow", "tprHigh"), ("fprHigh", "tprLow"), start=(floor, 0.0), end=(1.0, 1.0))
    return _curve(alt, rows, used, band, x, y, ("fprLow", "fprHigh", "tprLow", "tprHigh"), "step-after")


def det_chart(rows: list[dict[str, float]], used: int | None) -> dict[str, Any]:
    """Return the chart of the DET curve, on normal-deviate axes.

    Parameters
    ----------
    rows : list of dict
        Rows of the grid.
    used : int or None
        Row of the threshold in use.

    Returns
    -------
    dict
        The specification.
    """
    alt = require_altair()
    x = alt.X("fprZ:Q", title="False positive rate: strangers accepted", **_deviate_axis(alt, rows, "fpr"))
    y = alt.Y("fnrZ:Q", title="False negative rate: right people rejected", **_deviate_axis(alt, rows, "fnr"))
    corner = rows[-1]["fprHighZ"], rows[-1]["fnrLowZ"]
    band = _outline(rows, ("fprLowZ", "fnrLowZ"), ("fprHighZ", "fnrHighZ"), end=corner)
    return _curve(alt, rows, used, band, x, y, ("fprLowZ", "fprHighZ", "fnrLowZ", "fnrHighZ"), "linear")


def _deviate_axis(alt: Any, rows: list[dict[str, float]], name: str) -> dict[str, Any]:
    """Return the scale and the axis of normal deviates of rates."""
    low = min(row[f"{name}Z"] for row in rows)
    high = min(max(row[f"{name}HighZ"] for row in rows), float(ndtri(0.9)))
    ticks = [rate for rate in DEVIATE_TICKS if low <= ndtri(rate) <= high]
    label = "''"
    for rate in reversed(ticks):
        label = f"datum.value < {float(ndtri(rate)) + 1e-6:.6f} ? '{percent(rate)}' : {label}"
    return {
        "scale": alt.Scale(domain=[low, high], nice=False, zero=False),
        "axis": alt.Axis(values=[float(ndtri(rate)) for rate in ticks], labelExpr=label, labelOverlap=True),
    }


def _outline(
    rows: list[dict[str, float]],
    best: tuple[str, str],
    worst: tuple[str, str],
    start: tuple[float, float] | None = None,
    end: tuple[float, float] | None = None,
) -> list[dict[str, float]]:
    """Return the outline of the band: along the best corners of the intervals, and back along the worst ones."""
    there = [(row[best[0]], row[best[1]]) for row in rows]
    back = [(row[worst[0]], row[worst[1]]) for row in reversed(rows)]
    points = [*([start] if start else []), *there, *([end] if end else []), *back]
    return [{"k": k, "x": x, "y": y} for k, (x, y) in enumerate(points)]


def _curve(
    alt: Any,
    rows: list[dict[str, float]],
    used: int | None,
    band: list[dict[str, float]],
    x: Any,
    y: Any,
    box: tuple[str, str, str, str],
    interpolate: str,
) -> dict[str, Any]:
    """Return a curve with its band, the chosen point in the box of its bounds, and the threshold in use."""
    chosen = alt.param(name="chosen", value=used or 0)
    outline = alt.Chart(alt.NamedData("band")).mark_line(
        interpolate="linear-closed", fill=SAME, fillOpacity=0.18, strokeWidth=0, clip=True
    )
    x_of_band, y_of_band = (channel.copy() for channel in (x, y))
    x_of_band.shorthand, y_of_band.shorthand = "x:Q", "y:Q"
    layers = [
        outline.encode(x=x_of_band, y=y_of_band, order="k:Q"),
        alt.Chart().mark_line(interpolate=interpolate, stroke=SAME, strokeWidth=2.2, clip=True).encode(x=x, y=y, order="k:Q"),
    ]
    here = alt.Chart().transform_filter("datum.k == chosen")
    low_x, high_x, low_y, high_y = box
    bounds = {"x": f"{low_x}:Q", "x2": f"{high_x}:Q", "y": f"{low_y}:Q", "y2": f"{high_y}:Q"}
    layers.append(here.mark_rect(fill=CHOSEN, fillOpacity=0.12, stroke=CHOSEN, strokeWidth=1, clip=True).encode(**bounds))
    if used is not None:
        at_use = alt.Chart().transform_filter(f"datum.k == {used}")
        layers.append(
            at_use.mark_point(shape="diamond", size=130, fill="var(--ground)", stroke=INK, strokeWidth=2, opacity=1).encode(
                x=x, y=y
            )
        )
    layers.append(here.mark_point(size=90, fill=CHOSEN, stroke=CHOSEN, opacity=1).encode(x=x, y=y))
    return _finished(alt.layer(*layers, data=alt.NamedData("rows")).add_params(chosen), {"rows": rows, "band": band})


def histogram_chart(evaluation: Evaluation, rows: list[dict[str, float]], used: int | None) -> dict[str, Any]:
    """Return the histograms of the scores of same and different pairs, with the chosen threshold.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    rows : list of dict
        Rows of the grid.
    used : int or None
        Row of the threshold in use.

    Returns
    -------
    dict
        The specification.
    """
    alt = require_altair()
    histogram = evaluation.histogram
    bins = [
        {"from": _rounded(low), "to": _rounded(high), "kind": kind, "share": _rounded(share), "zero": 0}
        for kind, counts in (("different", histogram.different), ("same", histogram.same))
        for low, high, share in zip(histogram.edges, histogram.edges[1:], counts / counts.sum(), strict=False)
    ]
    cut = alt.param(name="threshold", value=rows[used or 0]["threshold"])
    bars = (
        alt.Chart(alt.NamedData("bins"))
        .mark_rect(stroke="var(--ground)", strokeWidth=0.5)
        .encode(
            x=alt.X("from:Q", title="Score", scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(tickCount=8)),
            x2="to:Q",
            # Where both kinds overlap bars are low: on a linear axis nothing would be seen of them.
            y=alt.Y(
                "share:Q",
                title="Share of pairs (square-root scale)",
                scale=alt.Scale(type="sqrt"),
                axis=alt.Axis(format="~%", tickCount=6),
            ),
            y2="zero:Q",
            color=alt.Color("kind:N", legend=None, scale=alt.Scale(domain=["different", "same"], range=[DIFFERENT, SAME])),
            opacity=alt.condition("datum.to > threshold", alt.value(0.75), alt.value(0.3)),
        )
    )
    line = (
        alt.Chart(alt.NamedData("one")).transform_calculate(at="threshold").mark_rule(stroke=CHOSEN, strokeWidth=2, clip=True)
    )
    return _finished(alt.layer(bars, line.encode(x="at:Q")).add_params(cut), {"bins": bins, "one": [{}]}, height=220)


def cmc_chart(rates: FloatArray, chance: float) -> dict[str, Any]:
    """Return the chart of the CMC curve, with a line for a ranking by chance.

    Parameters
    ----------
    rates : array of shape (n_ranks,)
        Share of searches with the true identity among the top 1, 2, ...
    chance : float
        The share at rank 1 of a ranking by chance.

    Returns
    -------
    dict
        The specification.
    """
    alt = require_altair()
    values = [{"rank": k, "rate": _rounded(rate), "chance": min(1.0, k * chance)} for k, rate in enumerate(rates, start=1)]
    base = alt.Chart(alt.NamedData("values")).encode(
        x=alt.X("rank:Q", title="Rank", scale=alt.Scale(domain=[1, len(values)], nice=False), axis=alt.Axis(tickMinStep=1))
    )
    y = alt.Y(
        "rate:Q", title="Searches with the true identity so far", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%")
    )
    dotted = base.mark_line(stroke=FAINT, strokeDash=[3, 3]).encode(y="chance:Q")
    solid = base.mark_line(stroke=SAME, point=alt.OverlayMarkDef(fill=SAME)).encode(y=y)
    return _finished(alt.layer(dotted, solid), {"values": values}, height=240)


def enrolment_chart(rates: Sequence[tuple[int, Estimate]]) -> dict[str, Any]:
    """Return the chart of the equal error rate against the number of enrolled samples.

    Parameters
    ----------
    rates : sequence of (int, Estimate)
        Result of `eer_by_enrolled`.

    Returns
    -------
    dict
        The specification.
    """
    alt = require_altair()
    values = [{"number": number, "eer": rate.value, "low": rate.low, "high": rate.high} for number, rate in rates]
    x = alt.X("number:O", title="Enrolled samples per identity", axis=alt.Axis(labelAngle=0))
    axis = alt.Axis(labelExpr="format(datum.value * 100, '~r') + ' %'", tickCount=5)
    base = alt.Chart(alt.NamedData("values")).encode(x=x)
    ends = base.mark_rule(stroke=SAME, strokeWidth=3, opacity=0.5).encode(
        y=alt.Y("low:Q", title="Equal error rate", axis=axis, scale=alt.Scale(zero=True)), y2="high:Q"
    )
    line = base.mark_line(stroke=SAME, point=alt.OverlayMarkDef(fill=SAME, size=70)).encode(y="eer:Q")
    return _finished(alt.layer(ends, line), {"values": values}, height=220)


def subgroup_chart(evaluation: Evaluation, kind: str) -> dict[str, Any]:
    """Return the rates within subgroups, with their intervals.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    kind : {"fmr", "fnmr"}
        Error rate that is drawn.

    Returns
    -------
    dict
        The specification.
    """
    alt = require_altair()
    values = [
        {"subgroup": str(group.subgroup), "rate": rate.value, "low": rate.low, "high": rate.high}
        for group in evaluation.by
        if (rate := getattr(group, kind)) is not None
    ]
    title, colour = (
        ("False positive rate: strangers accepted", DIFFERENT)
        if kind == "fmr"
        else ("False negative rate: right people rejected", SAME)
    )
    base = alt.Chart(alt.NamedData("values")).encode(
        y=alt.Y("subgroup:N", title=None, sort=None, axis=alt.Axis(labelLimit=120, labelColor=INK))
    )
    axis = alt.Axis(labelExpr="format(datum.value * 100, '~r') + ' %'", tickCount=5)
    lines = base.mark_rule(stroke=colour, strokeWidth=3, opacity=0.5).encode(
        x=alt.X("low:Q", title=title, axis=axis), x2="high:Q"
    )
    points = base.mark_point(fill=colour, stroke=colour, size=80, opacity=1).encode(x="rate:Q")
    return _finished(alt.layer(lines, points), {"values": values}, height=40 + 34 * len(values))


def segment_chart(knots: list[list[float]]) -> dict[str, Any]:
    """Return the training curve of a tree, with the segment between two knots lit up.

    Parameters
    ----------
    knots : list
        Rates at the knots.

    Returns
    -------
    dict
        The specification, with the parameters `first` and `last`.
    """
    alt = require_altair()
    values = [{"k": k, "fpr": x, "tpr": y} for k, (x, y) in enumerate(knots)]
    base = alt.Chart(alt.NamedData("values")).encode(
        x=alt.X("fpr:Q", title="False positive rate", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%", tickCount=5)),
        y=alt.Y("tpr:Q", title="True positive rate", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="~%", tickCount=5)),
        order="k:Q",
    )
    params = [alt.param(name="first", value=0), alt.param(name="last", value=len(values) - 1)]
    lit = base.transform_filter("datum.k >= first && datum.k <= last").mark_line(stroke=CHOSEN, strokeWidth=5, point=False)
    thin = base.mark_line(stroke=SAME, strokeWidth=1.6)
    return _finished(alt.layer(thin, lit).add_params(*params), {"values": values}, height=260)


def _finished(chart: Any, datasets: dict[str, list[Any]], height: int = HEIGHT) -> dict[str, Any]:
    """Return the specification of a chart that is as wide as its place in the page, with its data.

    The data are added here, since Altair would check every number of them against its schema.
    """
    made = chart.properties(width="container", height=height, autosize={"type": "fit-x", "contains": "padding"})
    specification: dict[str, Any] = made.to_dict()
    # The page gives all charts one configuration, and knows which language they are in.
    kept = {name: value for name, value in specification.items() if name not in ("config", "$schema")}
    return {**kept, "datasets": datasets}
