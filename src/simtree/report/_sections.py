"""Sections of the page, as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from simtree._utils.validation import count
from simtree.evaluation._report import RANKS, ThresholdRates, legend
from simtree.evaluation._results import Estimate, Evaluation
from simtree.evaluation._thresholds import ThresholdReport
from simtree.report._pairs import HardPair
from simtree.report._words import interval, percent, plain, what_it_does

# Values that the fields of the page start with.
GALLERY, TRAFFIC, IMPOSTORS, PRICE_ACCEPT, PRICE_REJECT = 1_000, 1_000, 1, 100, 1
MAX_BARS = 15
# Name of a fusion, and the number of scores that "top_mean" averages over.
FusionUsed = tuple[str, int | None]
FUSIONS = {
    "max": "the highest of the scores with its samples",
    "mean": "the mean of the scores with its samples",
    "top_mean": "the mean of the highest scores with its samples",
    "likelihood_ratio": "the log-likelihood ratio of all of its samples together, in closed form",
    "learned": "what was learned to make of the scores with its samples",
}


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with a heading."""
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(title)}</h2>\n' + "\n".join(parts) + "\n</section>"


def paragraph(words: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f'<p class="{kind}">{escape(words)}</p>' if kind else f"<p>{escape(words)}</p>"


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column names its rows, and whose other columns are numbers."""
    head = "".join(f'<th scope="col"{"" if k == 0 else " class=number"}>{escape(name)}</th>' for k, name in enumerate(columns))
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td class=number>{escape(cell)}</td>" for cell in rest)
        + "</tr>\n"
        for first, *rest in rows
    )
    content = f"<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>"
    return _scrolling(caption, content)


def _scrolling(name: str, content: str) -> str:
    """Return a table that scrolls by itself, also by the keyboard."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}"><table>\n{content}\n</table></div>'


def chart(name: str, alternative: str, caption: str) -> str:
    """Return the place of a chart, with its text alternative."""
    return (
        f'<figure><div class="chart" id="chart-{name}" role="img" aria-label="{escape(alternative)}"></div>\n'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _card(name: str, value: str, ends: str, key: str = "") -> str:
    ids = (f' id="{key}"', f' id="{key}-bounds"') if key else ("", "")
    return (
        f'<li class="card"><span class="name">{escape(name)}</span><span class="value"{ids[0]}>{escape(value)}</span>'
        f'<span class="interval"{ids[1]}>{escape(ends)}</span></li>'
    )


def _ends(estimate: Estimate) -> str:
    return f"{plain(estimate.low)} to {plain(estimate.high)}"


def fusion_of(report: ThresholdReport | None) -> FusionUsed | None:
    """Return how the scores that a threshold is for became one; None if they are those of pairs of samples."""
    return None if report is None or report.fusion is None else (report.fusion, report.n_best)


def fusion_options(fusion: FusionUsed) -> str:
    """Return the options of commands that stand for a fusion."""
    name, n_best = fusion
    return f"--fusion {name}" + ("" if n_best is None else f" --n-best {n_best}")


def threshold_words(report: ThresholdReport | None, fusion: FusionUsed | None) -> str:
    """Return what is known of the threshold of a model, for pairs of samples or for scores that were fused."""
    of_report = fusion_of(report)
    if of_report != fusion:
        own, here = (
            "pairs of samples" if used is None else f"scores with enrolled identities ({fusion_options(used)})"
            for used in (of_report, fusion)
        )
        options = "without --enrol" if fusion is None else f"with --enrol and {fusion_options(fusion)}"
        return (
            f"The threshold of the model is for {own}, and not for {here}, which are evaluated here: it is left out. The "
            f"command simtree calibrate, {options}, chooses one for these."
        )
    if report is not None and report.promise:
        return f"The threshold was chosen by calibration, with this guarantee: {report.promise}."
    return "No guarantee comes with this threshold: the command simtree calibrate chooses one that has it."


def summary(result: Evaluation, rates: ThresholdRates | None, of_threshold: str) -> str:
    """Return what the figures mean in words, and the most important of them."""
    sure = percent(result.confidence)
    parts = []
    if rates is not None:
        first, second = what_it_does(rates, result.confidence)
        parts.append(paragraph(f"At its threshold {rates.threshold:.5g}, the model accepts or rejects like this:"))
        parts.append(f'<ul class="lead">\n<li>{escape(first)}</li>\n<li>{escape(second)}</li>\n</ul>')
    parts.append(paragraph(of_threshold))
    cards = []
    if rates is not None:
        cards.append(_card("False positive rate (strangers accepted)", percent(rates.fpr), interval(*rates.fpr_interval)))
        cards.append(_card("True positive rate (right people accepted)", percent(rates.tpr), interval(*rates.tpr_interval)))
    equal = result.eer_interval
    cards.append(_card("Equal error rate (EER)", percent(equal.value), interval(equal.low, equal.high)))
    cards.append(_card("Area under the ROC curve (AUC)", plain(result.auc.value, 4), _ends(result.auc)))
    if result.rank1 is not None:
        cards.append(_card("Found at rank 1", percent(result.rank1.value), interval(result.rank1.low, result.rank1.high)))
    parts.append(f'<ul class="cards">\n{"".join(cards)}\n</ul>')
    parts.append(
        paragraph(f"Small figures are {sure} intervals, for new {result.unit}, at a threshold that was fixed before.", "faint")
    )
    if result.warnings:
        parts.append('<div class="note">' + "".join(paragraph(f"Careful: {reason}") for reason in result.warnings) + "</div>")
    return section("summary", "In short", *parts)


def about(rows: Sequence[tuple[str, str]]) -> str:
    """Return what was trained and what it was evaluated on."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>\n' for name, value in rows)
    return section("about", "What was evaluated", _scrolling("What was evaluated", f"<tbody>\n{body}</tbody>"))


def threshold(result: Evaluation, n_grid: int, used: int | None, used_name: str, guaranteed: bool) -> str:
    """Return the section with the slider."""
    sure = percent(result.confidence)
    start = n_grid - 1 - (used or 0)
    fields = [
        (
            "gallery",
            "Identities in the gallery",
            GALLERY,
            "1",
            "one sample each" if result.n_enrolled is None else "enrolled as here",
            "",
        ),
        ("traffic", "Attempts per day", TRAFFIC, "0", "", ""),
        ("impostors", "Impostors among them, in %", IMPOSTORS, "0", "", 'max="100"'),
        ("price-accept", "Price of a stranger accepted", PRICE_ACCEPT, "0", "", ""),
        ("price-reject", "Price of a right person rejected", PRICE_REJECT, "0", "", ""),
    ]
    inputs = "".join(
        f'<div><label for="{key}">{escape(name)}{f" <span class=hint>{hint}</span>" if hint else ""}</label>'
        f'<input type="number" id="{key}" value="{value}" min="{low}" step="any" inputmode="decimal" {extra}></div>\n'
        for key, name, value, low, hint, extra in fields
    )
    cards = "".join(
        [
            '<li class="card"><span class="name">Threshold</span><span class="value" id="at-threshold"></span>'
            '<span class="interval" id="at-mark"></span></li>',
            _card("False positive rate", "", "", "at-fpr"),
            _card("True positive rate", "", "", "at-tpr"),
            _card("Expected false matches per search of the gallery", "", "", "at-matches"),
            _card("Expected cost of errors per day", "", "", "at-cost"),
        ]
    )
    back = (
        f'<button type="button" class="quiet" id="to-used">Back to the {escape(used_name)}</button>' if used is not None else ""
    )
    marked = f" The diamond is the {used_name}." if used is not None else ""
    points = [
        (
            percent(point.target),
            percent(point.fpr),
            percent(point.tpr.value),
            interval(point.tpr.low, point.tpr.high),
            f"{point.threshold:.5g}",
        )
        for point in result.operating_points
    ]
    kept = " The threshold that calibration guaranteed is marked by a diamond." if guaranteed else ""
    return section(
        "choose",
        "Choose a threshold",
        paragraph(
            "Accept more strangers, or reject more of the right people: move the slider to see what each threshold does. "
            f"Bounds hold at all thresholds together, with {sure} confidence for new {result.unit}, because an interval at one "
            "threshold does not hold for a threshold that was picked by looking at all of them."
        ),
        '<div class="panel">',
        '<label for="slider">Threshold <span class="hint">to the left more are accepted, to the right fewer; arrow keys move '
        "it, too</span></label>",
        f'<input type="range" id="slider" min="0" max="{n_grid - 1}" step="1" value="{start}">',
        f'<ul class="cards at">{cards}</ul>',
        '<p><output id="at-words" for="slider"></output></p>',
        f'<div class="fields">{inputs}</div>',
        f'<p class="no-print"><button type="button" id="to-cheapest">Go to the cheapest threshold</button> {back}</p>',
        "</div>",
        '<div class="note">',
        paragraph(
            "A point picked here is not guaranteed: it fits these data. To use its rate with a guarantee, calibrate on other "
            f"data of people who are neither in the training data nor here.{kept}"
        ),
        _command("command-calibrate"),
        paragraph("Or set the threshold as it is, without a guarantee:"),
        _command("command-set"),
        '<p role="status" id="copied" class="faint"></p>',
        "</div>",
        '<div class="columns">',
        chart(
            "roc",
            f"ROC curve with its band. AUC {plain(result.auc.value, 4)}. The table of operating points below has its values.",
            f'ROC curve with a {sure} band for all thresholds together. <span class="key chosen"></span>chosen threshold, in '
            f"the box of its bounds.{escape(marked)}",
        ),
        chart(
            "det",
            f"DET curve with its band. Equal error rate {percent(result.eer.value)}. The table below has its values.",
            "DET curve: both errors, on normal-deviate axes. Down and left is better.",
        ),
        "</div>",
        chart(
            "scores",
            f"Histograms of the scores of {result.n_same:,} same and {result.n_different:,} different pairs.",
            'Scores of <span class="key same"></span>same and <span class="key different"></span>different pairs. Scores to '
            "the right of the line are accepted.",
        ),
        table(
            f"Operating points: the best threshold for each false positive rate here; {sure} intervals for new {result.unit}",
            ["FPR at most", "FPR here", "TPR", "interval", "threshold"],
            points,
        ),
    )


def _command(name: str) -> str:
    """Return the place of a command, with a button that copies it."""
    button = f'<button type="button" data-copy="{name}">Copy the command</button>'
    return f'<div class="command"><code id="{name}"></code>{button}</div>'


def subgroups(result: Evaluation, by: str) -> str:
    """Return the rates within subgroups."""
    rows = []
    for group in result.by:
        cells = [
            (percent(rate.value), interval(rate.low, rate.high)) if rate else ("no pair", "") for rate in (group.fpr, group.tpr)
        ]
        rows.append((str(group.subgroup), *cells[0], f"{group.n_different:,}", *cells[1], f"{group.n_same:,}"))
    columns = [by, "FPR", "interval", "different pairs", "TPR", "interval", "same pairs"]
    return section(
        "subgroups",
        f"By {by}",
        paragraph(
            f"Rates of pairs within each subgroup, all at the threshold {result.by_threshold:.5g}. A threshold that is right "
            "for all people together may be wrong for some of them."
        ),
        '<div class="columns">',
        chart(
            "subgroup-fmr", f"False positive rate by {by}; the table below has the values.", "Strangers accepted, by subgroup"
        ),
        chart(
            "subgroup-fnmr",
            f"False negative rate by {by}; the table below has the values.",
            "Right people rejected, by subgroup",
        ),
        "</div>",
        table(f"Rates by {by}, with {percent(result.confidence)} intervals", columns, rows),
    )


def identification(result: Evaluation, chance: float) -> str:
    """Return the figures of searches."""
    assert result.cmc is not None
    ranks = [(f"found at rank {k} or better", percent(result.cmc[k - 1]), "") for k in RANKS if k <= len(result.cmc)]
    if result.rank1 is not None:
        ranks[0] = (*ranks[0][:2], interval(result.rank1.low, result.rank1.high))
    rates = [
        (f"missed, if {percent(fpir)} of strangers may be found (FNIR)", percent(fnir.value), interval(fnir.low, fnir.high))
        for fpir, fnir in (result.fnir_intervals or {}).items()
    ]
    return section(
        "identification",
        "Who is it? Identification",
        paragraph(
            f"Each sample was searched among all others, a gallery of {(result.n_samples or 1) - 1:,} samples of "
            f"{result.n_identities or 0:,} identities."
            if result.n_enrolled is None
            else f"Each probe was searched among {result.n_enrolled:,} enrolled identities."
        ),
        chart(
            "cmc",
            f"CMC curve: {percent(result.cmc[0])} of searches have the true identity at rank 1; chance is {percent(chance)}.",
            f"CMC curve, and a ranking by chance (dotted) among {result.n_in_gallery:,} identities.",
        ),
        table("Searches", ["search", "share", f"{percent(result.confidence)} interval"], [*ranks, *rates]),
    )


def enrolment(rates: Sequence[tuple[int, Estimate]], fusion: str, confidence: float) -> str:
    """Return how the equal error rate depends on the number of enrolled samples."""
    rows = [(str(number), percent(rate.value), interval(rate.low, rate.high)) for number, rate in rates]
    (first, before), (last, after) = rates[0], rates[-1]
    return section(
        "enrolment",
        "How many samples to enrol",
        paragraph(
            "The first rows of each identity were enrolled, and its other rows compared with all identities; the score with an "
            f"identity is {FUSIONS[fusion]}."
        ),
        chart(
            "enrolment",
            f"Equal error rate {percent(before.value)} with {first} and {percent(after.value)} with {last} enrolled samples.",
            "Equal error rate against the number of enrolled samples, with intervals for new identities.",
        ),
        table("Equal error rates", ["enrolled samples", "EER", f"{percent(confidence)} interval"], rows),
    )


def tree(n_cells: int, n_shown: int) -> str:
    """Return the place of the tree."""
    shown = "" if n_shown == n_cells else f" The {n_shown:,} cells nearest to the root are here, of {n_cells:,}."
    return section(
        "model",
        "What the model looks at: the tree",
        paragraph(
            "The tree divides all pairs into cells, from the most similar (left) to the most different (right). Click a cell "
            f"to open it and to see its rule and its segment of the ROC curve; arrow keys work, too.{shown}"
        ),
        '<p class="no-print"><button type="button" class="quiet" id="open-all">Open all cells</button> '
        '<button type="button" class="quiet" id="close-all">Close all cells</button></p>',
        '<div class="tree-scroll"><div class="tree" id="tree" role="tree" aria-label="Cells of the tree"></div></div>',
        '<div class="columns">',
        '<div class="panel" id="cell" aria-live="polite"></div>',
        chart(
            "segment",
            "ROC curve of the tree on its training pairs; the segment of the selected cell is lit up.",
            'Training curve; <span class="key chosen"></span>segment of the selected cell.',
        ),
        "</div>",
    )


def importances(shares: Sequence[tuple[str, float]], image: str | None) -> str:
    """Return the importances of features, largest first."""
    shown, rest = list(shares[:MAX_BARS]), shares[MAX_BARS:]
    most = max((share for _, share in shown), default=1.0) or 1.0
    items = [_bar(name, share, percent(share), 0.0, share / most) for name, share in shown]
    if rest:
        total = sum(share for _, share in rest)
        items.append(_bar(count(len(rest), "more feature"), total, percent(total), 0.0, min(total / most, 1.0), rest=True))
    picture = (
        f'<figure class="importance-map"><img src="{image}" alt="Importance of each pixel, dark for the most important">'
        "<figcaption>Importance of each pixel</figcaption></figure>"
        if image
        else ""
    )
    return section(
        "importances",
        "What the model looks at: features",
        paragraph("Share of the total gain in the area under the ROC curve that each feature brought in training."),
        f'<div class="columns"><ul class="bars">{"".join(items)}</ul>{picture}</div>',
    )


def _bar(name: str, value: float, amount: str, left: float, width: float, *, rest: bool = False) -> str:
    side = " against" if value < 0.0 else ""
    return (
        f'<li{" class=rest" if rest else ""}><span class="name">{escape(name)}</span><span class="track" aria-hidden="true">'
        f'<span class="bar{side}" style="left:{100 * left:.1f}%;width:{100 * width:.1f}%"></span></span>'
        f'<span class="amount">{escape(amount)}</span></li>'
    )


def hardest(same: Sequence[HardPair], different: Sequence[HardPair], *, with_samples: bool) -> str:
    """Return the hardest pairs, with what each feature contributed to their scores."""
    private = (
        "This file has values of samples in it, because that was asked for: keep it as safe as the data."
        if with_samples
        else "Rows are numbered from 0. Values, names and images are left out; --with-samples adds them."
    )
    parts = [paragraph(f"The pairs that the model gets most wrong, each sample at most once. {private}")]
    for title, pairs in (
        ("The right person, and yet the lowest scores (same pairs)", same),
        ("Strangers, and yet the highest scores (different pairs)", different),
    ):
        parts.append(f"<h3>{escape(title)}</h3>")
        parts.append('<div class="columns">' + "".join(_pair(pair) for pair in pairs) + "</div>")
    return section("hardest", "The hardest pairs", *parts)


def _pair(pair: HardPair) -> str:
    decision = "" if pair.accepted is None else ", accepted" if pair.accepted else ", rejected"
    who = (
        f"Rows {pair.first:,} and {pair.second:,}"
        if pair.n_enrolled is None
        else f"Row {pair.first:,} and {count(pair.n_enrolled, 'enrolled sample')}, row {pair.second:,} the most similar"
    )
    parts = [f'<article class="panel pair"><h4>{who}: score {pair.score:.4g}{decision}</h4>']
    if pair.labels is not None:
        parts.append(paragraph(f"Identities: {pair.labels[0]} and {pair.labels[1]}."))
    if pair.images:
        figures = "".join(
            f'<figure><img src="{source}" alt="{escape(name)}"><figcaption>{escape(name)}</figcaption></figure>'
            for name, source in pair.images
        )
        parts.append(f'<div class="images">{figures}</div>')
    if pair.contributions:
        # The bar of all other features is clipped, so that it does not dwarf those that are shown.
        n_shown = len(pair.contributions) - pair.has_rest
        most = max(abs(value) for _, value in pair.contributions[:n_shown]) or 1.0
        bars = []
        for k, (name, value) in enumerate(pair.contributions):
            width = min(abs(value) / most, 1.0) / 2.0
            rest = k == n_shown
            bars.append(_bar(name, value, f"{value:+.3g}", 0.5 if value >= 0.0 else 0.5 - width, width, rest=rest))
        of_rows = "" if pair.n_enrolled is None else " in the score of these two rows"
        parts.append(
            paragraph(f"For the same identity (right) and against it (left){of_rows}, from the average pair:", "faint")
        )
        parts.append(f'<ul class="bars">{"".join(bars)}</ul>')
    return "".join(parts) + "</article>"


def glossary(result: Evaluation) -> str:
    """Return what the terms mean."""
    terms = (line.partition(": ") for line in legend(result))
    items = "".join(f"<dt><strong>{escape(term)}</strong></dt><dd>{escape(meaning)}</dd>\n" for term, _, meaning in terms)
    return section("terms", "Terms", f"<dl>\n{items}</dl>")


def footer(rows: Sequence[tuple[str, str]]) -> str:
    """Return how to make the report again."""
    items = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><code>{escape(value)}</code></td></tr>\n' for name, value in rows
    )
    return f'<h2 id="reproduction">Reproduction</h2>\n{_scrolling("Reproduction", f"<tbody>{chr(10)}{items}</tbody>")}'


def describe_model(described: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what is known of a model, from `describe`."""
    rows = [("Model", described["class"])]
    if described["chosen"]:
        rows.append(("Chosen", described["chosen"]))
    rows.append(("Trained on", described["trained_on"] or "not known: the model file is of an earlier version"))
    if described["n_trees"]:
        rows.append(("Trees", f"{described['n_trees']:,}, with {described['n_cells']:,} terminal cells"))
    if described["training_pairs"]:
        same, different = described["training_pairs"]
        rows.append(("Training pairs", f"{same:,} same and {different:,} different ones per tree"))
    rows.append(("Features", f"{described['n_features']:,}"))
    settings = ", ".join(f"{name}={value}" for name, value in described["parameters"].items())
    rows.append(("Parameters that are not defaults", settings or "none"))
    rows.extend(("Cohort", sentence) for sentence in described["cohorts"])
    return rows
