"""Writing the report: evaluate a model, gather what the page shows, and fill the template."""

from __future__ import annotations

import base64
import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import metadata, resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.files import write_atomically
from simtree._utils.validation import check_integer, count
from simtree.evaluation._counting import MAX_COMPARISONS
from simtree.evaluation._enrolled import check_protocol
from simtree.evaluation._evaluate import evaluate
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._model_fusion import resolve_fusion
from simtree.evaluation._report import rates_at_threshold
from simtree.evaluation._results import Band, Evaluation
from simtree.evaluation._templates import TOP_MEAN, Fusion
from simtree.models._base import Similarity, check_similarity
from simtree.models._description import describe, input_columns
from simtree.models._tree import SimilarityTree
from simtree.report import _charts as charts
from simtree.report import _sections as sections
from simtree.report._enrolment import eer_by_enrolled
from simtree.report._hardest import ScoredPair, Watched
from simtree.report._images import MAX_PIXELS, signed_image
from simtree.report._pairs import HardPair, describe_comparison, describe_pair, rows_as_fitted
from simtree.report._tree import tree_of
from simtree.report._words import percent

# Seed of the pairs that are sampled if there are too many, which the page names.
SEED = 0
MAX_HARDEST = 50
# Pixels of all images of one kind, so that the page has less than 2 MB even if these are noise, which cannot be compressed.
MAX_PIXELS_OF_ALL = 100_000


@dataclass(frozen=True)
class Origin:
    """Where the model and the data come from: what the page can say of them, and put into commands.

    Parameters
    ----------
    model, data, label : str
        Files, and the column with the identity, as they stand in commands.
    by : str
        Name of the attribute that defines subgroups.
    enrol, time : str
        Columns with the enrolled rows and with times, as they stand in commands.
    facts : list of (str, str)
        Further lines of the footer, such as the command and hashes of files.

    Examples
    --------
    >>> from simtree.report import Origin
    >>> Origin(model="people.simtree", label="person").data is None
    True
    """

    model: str = "MODEL.simtree"
    data: str | None = None
    label: str = "LABEL"
    by: str = "subgroup"
    enrol: str = "ENROL"
    time: str | None = None
    facts: list[tuple[str, str]] = field(default_factory=list)


def write(
    model: Similarity,
    X: ArrayLike,
    y: ArrayLike,
    path: str | Path,
    *,
    by: ArrayLike | None = None,
    never_pair: ArrayLike | None = None,
    enrol: ArrayLike | None = None,
    fusion: str | LearnedFusion | None = None,
    n_best: int | None = None,
    time: Any = None,
    sessions: ArrayLike | None = None,
    unit: str = "identities",
    weighting: str = "samples",
    n_pairs: int | None = MAX_COMPARISONS,
    confidence: float = 0.95,
    enrolled: Sequence[int] = (),
    with_samples: bool = False,
    image_shape: tuple[int, int] | None = None,
    n_hardest: int = 3,
    title: str | None = None,
    origin: Origin | None = None,
) -> Evaluation:
    """Evaluate a model on held-out labelled samples, and write one HTML file for the person who decides.

    The file needs no network and no other file. It needs ``pip install "simtree[report]"`` to be written.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    X : array-like of shape (n_samples, n_features)
        Samples that the model has not seen.
    y : array-like of shape (n_samples,)
        Identity of each sample.
    path : str or Path
        HTML file to write.
    by, never_pair, enrol : optional
        As in `evaluate`. With ``enrol``, a pair is a probe and an enrolled identity; a threshold that was calibrated in another
        way is left out.
    fusion, n_best, time : optional
        How the scores with the enrolled samples of an identity become one, for ``enrol`` and for ``enrolled``, as in
        `evaluate`.
    sessions, unit, weighting, n_pairs, confidence : optional
        As in `evaluate`. Identification is part of the report if all pairs are compared.
    enrolled : sequence of int, default=()
        Numbers of enrolled samples per identity for which the report has the equal error rate, such as ``(1, 2, 5)``: the first
        rows of an identity are enrolled, and its rows after the largest number are compared with all identities.
    with_samples : bool, default=False
        Whether the hardest pairs show identities, values and images. By default no sample is in the file: only row numbers,
        scores and contributions of features.
    image_shape : tuple of int, optional
        Height and width, if samples are images: importances, and with ``with_samples`` the hardest pairs, are drawn as such.
        Images of more than 64 x 64 pixels are shrunk.
    n_hardest : int, default=3
        Number of the hardest same pairs, and of the hardest different pairs, at most 50. With more than 12 of them, images are
        shrunk further, to 1,000 pixels at 50.
    title : str, optional
        Title of the page.
    origin : Origin, optional
        Files that the model and the data come from, as ``simtree report`` knows them.

    Returns
    -------
    Evaluation
        The evaluation that the page shows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> import simtree.report
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = simtree.SimilarityTree(max_depth=4, random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = simtree.report.write(tree, X[1::2], y[1::2], Path(folder) / "report.html", unit="samples")
    >>> print(result.auc)
    0.959 [0.839, 0.983]
    """
    charts.require_altair()
    check_integer("n_hardest", n_hardest, 1, MAX_HARDEST)
    check_similarity(model)
    if np.ndim(X) != 2:
        raise ValueError(f"X has {np.ndim(X)} dimensions; give samples of shape (n_samples, n_features), with their labels y.")
    samples, labels = rows_as_fitted(model, X), np.asarray(y)
    _check_shape(image_shape, samples.shape[1])
    check_protocol(True if enrol is not None or len(enrolled) else None, fusion=fusion, n_best=n_best, time=time)
    how = {"fusion": fusion, "n_best": n_best, "time": time}
    chosen = resolve_fusion(model, "max" if fusion is None else fusion, n_best)
    used = (
        None
        if enrol is None
        else (chosen.name, chosen.n_best if isinstance(chosen, Fusion) and chosen.name == TOP_MEAN else None)
    )
    by_enrolled = (
        eer_by_enrolled(model, X, labels, enrolled, **how, never_pair=never_pair, confidence=confidence)
        if len(enrolled)
        else []
    )
    threshold = _threshold_for(model, used)
    watched = Watched(model)
    result = evaluate(
        watched,
        X,
        y,
        by=by,
        never_pair=never_pair,
        enrol=enrol,
        **({} if enrol is None else how),
        sessions=sessions,
        unit=unit,
        weighting=weighting,
        n_pairs=n_pairs,
        threshold=threshold,
        confidence=confidence,
        simultaneous=True,
        random_state=SEED,
    )
    result = replace(result, name=type(model).__name__)
    origin = origin or Origin()
    shown = {
        "threshold": threshold,
        "with_samples": with_samples,
        "image_shape": image_shape,
        "max_pixels": max_pixels(n_hardest),
    }
    hard = _hardest(watched, n_hardest, model, samples, labels, enrol, never_pair, shown)
    facts = [*origin.facts, *_versions(model), ("SHA-256 of the samples and labels", hash_of(samples, labels))]
    more: dict[str, dict[str, Any]] = {}
    if by_enrolled:
        more[sections.enrolment(by_enrolled, chosen.name, confidence)] = {"enrolment": charts.enrolment_chart(by_enrolled)}
    page = _render(model, result, used, hard, facts, origin, title, image_shape, more, with_samples=with_samples)
    write_atomically(Path(path), page)
    return result


def _threshold_for(model: Similarity, fusion: sections.FusionUsed | None) -> float | None:
    """Return the threshold of a model; None if it is for scores that became one in another way, or for pairs of samples."""
    of_report = sections.fusion_of(getattr(model, "threshold_report_", None))
    return float(model.threshold_) if of_report == fusion else None


def _hardest(
    watched: Watched,
    n: int,
    model: Similarity,
    samples: NDArray[Any],
    labels: NDArray[Any],
    enrol: ArrayLike | None,
    never_pair: ArrayLike | None,
    options: dict[str, Any],
) -> list[list[HardPair]]:
    """Return the hardest same and different pairs, or comparisons of probes with enrolled identities."""
    if enrol is None:
        return [[describe_pair(model, pair, samples, labels, **options) for pair in pairs] for pairs in watched.hardest(n)]
    mask = np.asarray(enrol)
    apart = np.arange(len(labels)) if never_pair is None else np.asarray(never_pair)
    found: list[list[HardPair]] = []
    for pairs in watched.hardest(n):
        found.append([])
        for first, second, score in pairs:
            probe, of_identity = (second, first) if mask[first] else (first, second)
            pair, may_be = ScoredPair(probe, of_identity, score), mask & (apart != apart[probe])
            found[-1].append(describe_comparison(model, pair, samples, labels, may_be, **options))
    return found


def _check_shape(shape: tuple[int, int] | None, n_features: int) -> None:
    if shape is not None and (min(shape) < 1 or shape[0] * shape[1] != n_features):
        raise ValueError(
            f"image_shape={shape!r} does not fit samples with {n_features} features; give height and width whose product it is."
        )


def max_pixels(n_hardest: int) -> int:
    """Return how many pixels each image of a hard pair may have.

    Parameters
    ----------
    n_hardest : int
        Number of the hardest same pairs, and of the hardest different pairs.

    Returns
    -------
    int
        The number.
    """
    return min(MAX_PIXELS, MAX_PIXELS_OF_ALL // (2 * n_hardest))


def hash_of(samples: NDArray[Any], labels: NDArray[Any]) -> str:
    """Return the SHA-256 of samples and labels: of the float64 numbers row by row, and of the labels as lines of text.

    If not all cells of the samples are numbers, all of them are lines of text, too, row by row.

    Parameters
    ----------
    samples, labels : ndarray
        The data.

    Returns
    -------
    str
        Hexadecimal digits.
    """
    try:
        content = np.ascontiguousarray(samples, dtype="<f8").tobytes()
    except (TypeError, ValueError):  # words, dates, or missing cells that are not NaN
        content = "".join(f"{cell}\n" for cell in samples.ravel().tolist()).encode()
    digest = hashlib.sha256(content)
    digest.update("\n".join(map(str, labels.tolist())).encode())
    return digest.hexdigest()


def _versions(model: Similarity) -> list[tuple[str, str]]:
    packages = ("simtree", "numpy", "scipy", "scikit-learn", "numba", "altair", "vl-convert-python")
    named = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    seed = model.get_params(deep=False).get("random_state")
    return [
        ("Versions", f"Python {platform.python_version()}, {named}"),
        ("Random seeds", f"model {seed}, sampling of pairs {SEED}"),
    ]


def _render(
    model: Similarity,
    result: Evaluation,
    fusion: sections.FusionUsed | None,
    hard: Sequence[Sequence[Any]],
    facts: Sequence[tuple[str, str]],
    origin: Origin,
    title: str | None,
    image_shape: tuple[int, int] | None,
    more: dict[str, dict[str, Any]],
    *,
    with_samples: bool,
) -> str:
    """Return the page; ``more`` has further sections with their charts."""
    band = result.simultaneous
    assert band is not None
    described = describe(model)
    report = getattr(model, "threshold_report_", None)
    is_for_these = _threshold_for(model, fusion) is not None
    guaranteed = is_for_these and report is not None and bool(report.promise)
    used_name = "guaranteed threshold" if guaranteed else "threshold in use"
    rates = rates_at_threshold(result) if is_for_these else None
    used = None if rates is None else int(np.flatnonzero(band.thresholds == rates.threshold)[0])
    floors = 0.5 / result.n_different, 0.5 / result.n_same
    rows = charts.grid_rows(band, floors)
    drawn: dict[str, Any] = {
        "roc": charts.roc_chart(rows, used, floors[0]),
        "det": charts.det_chart(rows, used),
        "scores": charts.histogram_chart(result, rows, used),
    }
    parts = [
        sections.summary(result, rates, sections.threshold_words(report, fusion)),
        sections.threshold(result, len(rows), used, used_name, guaranteed),
    ]
    if result.by:
        parts.append(sections.subgroups(result, origin.by))
        drawn |= {f"subgroup-{kind}": charts.subgroup_chart(result, kind) for kind in ("fmr", "fnmr")}
    if result.cmc is not None:
        chance = 1.0 / max(result.n_in_gallery, 1)
        parts.append(sections.identification(result, chance))
        drawn["cmc"] = charts.cmc_chart(result.cmc, chance)
    for part, of_part in more.items():
        parts.append(part)
        drawn |= of_part
    inner = getattr(model, "best_estimator_", model)
    tree = tree_of(inner.tree_, inner._names(None)) if isinstance(inner, SimilarityTree) else None
    if tree is not None:
        parts.append(sections.tree(tree["n_cells"], len(tree["cells"])))
        drawn["segment"] = charts.segment_chart(tree.pop("knots"))
    if described["importances"]:
        shares = list(described["importances"].items())
        parts.append(sections.importances(shares, _importance_image(model, inner, image_shape)))
    parts.append(sections.hardest(*hard, with_samples=with_samples))
    parts.append(sections.about([*sections.describe_model(described), *_data_rows(result, origin)]))
    parts.append(sections.glossary(result))
    protocol = "" if fusion is None else f" --enrol {origin.enrol} {sections.fusion_options(fusion)}"
    protocol += f" --time {origin.time}" if protocol and origin.time else ""
    data = {
        "grid": _grid(band),
        "used": used,
        "usedName": used_name,
        "commands": {
            "calibrate": f"simtree calibrate {origin.model} OTHER.csv --label {origin.label}{protocol}",
            "set": f"simtree set-threshold {origin.model}",
        },
        "tree": tree,
        "charts": drawn,
        "config": charts.CONFIG,
    }
    return _fill(title or f"{described['class']}: how far can it be trusted?", parts, facts, result, data)


def _importance_image(model: Similarity, inner: Any, shape: tuple[int, int] | None) -> str | None:
    """Return the importance of each pixel as an image, if features are pixels."""
    if shape is None or input_columns(model) is None:
        return None
    return signed_image(inner.feature_importances_, shape)


def _data_rows(result: Evaluation, origin: Origin) -> list[tuple[str, str]]:
    """Return what the model was evaluated on."""
    n_compared = result.n_same + result.n_different
    of_all = "" if n_compared >= result.n_possible else f", drawn from {result.n_possible:,}"
    enrolled = count(result.n_enrolled or 0, "enrolled identity", "enrolled identities")
    return [
        (
            "Evaluated on",
            f"{result.n_samples:,} samples of {result.n_identities:,} identities"
            + (f", from {origin.data}" if origin.data else ""),
        ),
        ("Pairs", f"{result.n_same:,} same and {result.n_different:,} different pairs{of_all}"),
        *(
            [("Pair", f"a probe and one of {enrolled}: the score is {sections.FUSIONS[result.fusion]}")]
            if result.fusion is not None
            else []
        ),
        ("Intervals", f"{percent(result.confidence)}, for new {result.unit}"),
    ]


def _grid(band: Band) -> dict[str, list[float]]:
    """Return the rates at all thresholds with their bounds, exactly."""
    return {
        "threshold": band.thresholds.tolist(),
        "fpr": band.fpr.tolist(),
        "tpr": band.tpr.tolist(),
        "fprLow": band.fpr_interval[:, 0].tolist(),
        "fprHigh": band.fpr_interval[:, 1].tolist(),
        "tprLow": band.tpr_interval[:, 0].tolist(),
        "tprHigh": band.tpr_interval[:, 1].tolist(),
    }


def _fill(title: str, parts: Sequence[str], facts: Sequence[tuple[str, str]], result: Evaluation, data: dict[str, Any]) -> str:
    """Return the template with everything filled in; its policy allows just these two scripts, and no eval."""
    files = resources.files("simtree.report")
    script, vega = (files / "report.js").read_text(encoding="utf-8"), charts.vega_bundle()
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'" for code in (vega, script)
    )
    new = (
        "identities that the model should not"
        if result.unit == "identities"
        else "identities; samples that the model should not"
    )
    lead = sections.paragraph(
        f"Two samples of one person, or of two? Measured on {result.n_same:,} same and {result.n_different:,} different pairs "
        f"of {result.n_identities:,} {new} have seen.",
        "faint",
    )
    return Template((files / "template.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        version=metadata.version("simtree"),
        hashes=hashes,
        style="\n".join((files / name).read_text(encoding="utf-8") for name in ("style.css", "report.css")),
        lead=lead,
        sections="\n".join(parts),
        footer=sections.footer(facts),
        # A data element ends at the first end tag, also inside a string.
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        vega=vega,
        script=script,
    )
