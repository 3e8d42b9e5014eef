"""Report of the accuracy benchmark: metrics of each model, paired differences, ranks, tables and a plot.

A metric is a list with one value per split (or official fold). All models have the same splits and pairs, so differences are
paired by split. A rate with too few different pairs in any split is left out.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import cycle, product
from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from accuracy.catalogue import BEST
from accuracy.lists import AUTO
from accuracy.protocol import (
    AUC,
    GRID,
    Benchmark,
    Model,
    Problem,
    Scale,
    Unit,
    official_accuracies,
    run_name,
    tpr_at,
    units_of,
)
from simtree._utils.validation import count
from simtree.experiments._maps import BLUE, ORANGE
from simtree.experiments._mnist import GREY, RED
from simtree.experiments._results import Values, markdown_table, mean_and_spread
from simtree.metrics import Roc
from simtree.plots import RocDisplay

OFFICIAL = "accuracy on the official folds"
WIDTH = 128
LEVEL = 0.95
# Differences up to this one, and two standard errors, do not count as clear losses.
TOLERANCE = 0.01
# More curves of baselines are hard to tell apart.
MAX_PEERS = 10
# Second colour of simtree's models, after blue.
TEAL = "#00897b"


def digits_of(metric: str) -> int:
    """Return the number of decimals that are shown: AUCs differ less than rates."""
    return 5 if metric == AUC else 4


# From the log to JSON


def collect(benchmark: Benchmark, found: dict[str, Values], splits: tuple[int, ...], *, scale: Scale, choose: bool) -> Values:
    """Return the results of all models that were run on all splits."""
    problems = []
    for problem in benchmark.problems:
        units = list(units_of(problem, splits, choose))
        plain = [unit for unit in units if unit.kind != "fold"]
        known = [model for model in benchmark.models if all(run_name(model, unit) in found for unit in plain)]
        problems.append(problem_metrics(problem, known, units, found))
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "description": " ".join(benchmark.description.split()),
        "scale": scale.name,
        "choose": choose,
        "splits": list(splits),
        "missing": {model.name: model.needs for model in benchmark.models if not model.installed},
        "problems": problems,
        "comparisons": [asdict(comparison) for comparison in benchmark.comparisons],
        "grid": [float(f"{fpr:.6g}") for fpr in GRID],
    }


def problem_metrics(problem: Problem, models: list[Model], units: list[Unit], found: dict[str, Values]) -> Values:
    plain = [unit for unit in units if unit.kind != "fold"]
    folds = [unit for unit in units if unit.kind == "fold"]
    entries, n_pairs = [], []
    for model in models:
        runs = [found[run_name(model, unit)] for unit in plain]
        metrics = {AUC: [run["auc"] for run in runs]}
        for k, fpr in enumerate(problem.fpr):
            if all(run["tpr"][k] is not None for run in runs):
                metrics[tpr_at(fpr)] = [run["tpr"][k] for run in runs]
        if folds and all(run_name(model, unit) in found for unit in folds):
            metrics[OFFICIAL] = official_accuracies([found[run_name(model, unit)] for unit in folds])
        entries.append(
            {
                "model": model.name,
                "ours": model.ours,
                "settings": model.settings,
                "metrics": metrics,
                "seconds": {part: [run["seconds"][part] for run in runs] for part in ("fit", "score")},
                "curve": [round(float(rate), 5) for rate in np.mean([run["curve"] for run in runs], axis=0)],
                **({"own": [run["own"] for run in runs]} if all("own" in run for run in runs) else {}),
            }
        )
        n_pairs = [{"same": run["n_same"], "different": run["n_different"]} for run in runs]
    return {"name": problem.name, "pairs": n_pairs, "models": entries}


def added(stored: Values, new: Values) -> Values:
    """Return stored results with the models of a new run, which replace those of the same names; splits must be the same."""
    if stored["splits"] != new["splits"] or stored["scale"] != new["scale"]:
        raise ValueError(
            f"the stored results of {stored['name']} are of splits {stored['splits']} and scale {stored['scale']!r}, the new "
            f"ones of {new['splits']} and {new['scale']!r}; run the same splits and scale."
        )
    problems = []
    for old, own in zip(stored["problems"], new["problems"], strict=True):
        replaced = {entry["model"]: entry for entry in own["models"]}
        kept = [replaced.pop(entry["model"], entry) for entry in old["models"]]
        problems.append({**old, "models": [*kept, *replaced.values()]})
    # What this machine lacks a library for may have been run on another, whose versions of other libraries are kept.
    known = {entry["model"] for problem in problems for entry in problem["models"]}
    missing = {model: needs for model, needs in new["missing"].items() if model not in known}
    versions = stored["versions"] | new["versions"]
    return {**stored, **new, "problems": problems, "missing": missing, "versions": versions}


# Paired differences and ranks


def metrics_of(result: Values, model: str) -> dict[str, list[float]]:
    """Return the metrics of a model that all problems have, concatenated over problems; empty if it was not run.

    Problems without any run do not count.
    """
    problems = [problem for problem in result["problems"] if problem["models"]]
    found = [entry["metrics"] for problem in problems for entry in problem["models"] if entry["model"] == model]
    if not found or len(found) < len(problems):
        return {}
    return {name: [value for metrics in found for value in metrics[name]] for name in found[0] if all(name in f for f in found)}


def differences(result: Values, model: str, other: str) -> dict[str, np.ndarray]:
    """Return the differences of two models, model minus other, paired by split."""
    mine, theirs = metrics_of(result, model), metrics_of(result, other)
    return {name: np.subtract(mine[name], theirs[name]) for name in mine if name in theirs}


@dataclass(frozen=True)
class Loss:
    """Metric of a problem in which the best baseline is ahead of a model, with paired differences (model minus baseline)."""

    problem: str
    model: str
    metric: str
    baseline: str
    ours: float
    theirs: float
    differences: np.ndarray

    @property
    def standard_error(self) -> float:
        n = len(self.differences)
        return float(self.differences.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan

    @property
    def is_clear(self) -> bool:
        """Whether it is more than `TOLERANCE` and two standard errors."""
        return bool(self.differences.mean() < -TOLERANCE - 2.0 * self.standard_error)


def losses_of(result: Values) -> list[Loss]:
    """Return where the best baseline of a comparison is ahead, the largest difference first."""
    found = []
    for problem in result["problems"]:
        metrics = {entry["model"]: entry["metrics"] for entry in problem["models"]}
        for comparison in result["comparisons"]:
            model = comparison["model"]
            for metric, values in metrics.get(model, {}).items():
                known = [name for name in comparison["baselines"] if metric in metrics.get(name, {})]
                best = max(known, key=lambda name: np.mean(metrics[name][metric]), default=None)
                if best is None or np.mean(metrics[best][metric]) <= np.mean(values):
                    continue
                theirs = metrics[best][metric]
                means = (float(np.mean(values)), float(np.mean(theirs)))
                found.append(Loss(problem["name"], model, metric, best, *means, np.subtract(values, theirs)))
    return sorted(found, key=lambda loss: float(loss.differences.mean()))


def mean_ranks(result: Values, models: list[str], metric: str) -> tuple[dict[str, float], float, int]:
    """Return the mean rank of each model (1 is best), the p-value of Friedman's test, and the number of problems.

    Only problems are counted that have this metric.
    """
    means = []
    for problem in result["problems"]:
        by_model = {entry["model"]: entry["metrics"].get(metric) for entry in problem["models"] if entry["model"] in models}
        if all(by_model.get(model) for model in models):
            means.append([-np.mean(by_model[model]) for model in models])
    ranks = np.array([rankdata(row) for row in means]).mean(axis=0)
    p_value = float(friedmanchisquare(*np.transpose(means)).pvalue) if len(models) > 2 and len(means) > 1 else math.nan
    return dict(zip(models, ranks.tolist(), strict=True)), p_value, len(means)


def critical_difference(n_models: int, n_problems: int) -> float:
    """Return the critical difference of mean ranks (Nemenyi's test).

    >>> round(critical_difference(5, 30), 2)  # Demšar 2006: q = 2.728
    1.11
    """
    q = float(studentized_range.ppf(LEVEL, n_models, np.inf)) / math.sqrt(2.0)
    return q * math.sqrt(n_models * (n_models + 1) / (6.0 * n_problems))


# Tables


def section(result: Values) -> str:
    """Return all tables of a data set as Markdown."""
    parts = [
        f"## {result['title']}",
        wrapped(f"{result['description']} {setting(result)}"),
        *(table(p) for p in result["problems"]),
        wrapped(own_figures(result["problems"])),
    ]
    parts.append(f"![ROC curves of simtree and of the best baselines, logarithmic false positive rates]({result['name']}.png)")
    if not result["choose"]:
        parts += [comparison_as_markdown(result, comparison) for comparison in result["comparisons"]]
    if result["missing"]:
        left_out = "; ".join(f"{model} requires {library}" for model, library in result["missing"].items())
        parts.append(f"Left out: {left_out}.")
    return "\n\n".join(part for part in parts if part)


def own_figures(problems: list[Values]) -> str:
    """Say how often the test is inside the interval that models state for themselves; empty if no model does.

    >>> own = [{"fpr": 0.001, "tpr": [0.5, 0.4, 0.6], "test": test} for test in (0.45, 0.55, 0.7)]
    >>> own_figures([{"name": "faces", "models": [{"model": "auto", "own": own}]}])  # doctest: +ELLIPSIS
    'The TPR on the test is inside the 95 % interval that a model states for itself: auto, faces in 2 of 3 splits (0.50, ...'
    """
    found = []
    for problem in problems:
        for entry in problem["models"]:
            if "own" in entry:
                inside = sum(own["tpr"][1] <= own["test"] <= own["tpr"][2] for own in entry["own"])
                means = [np.mean([own["tpr"][0] for own in entry["own"]]), np.mean([own["test"] for own in entry["own"]])]
                found.append(
                    f"{entry['model']}, {problem['name']} in {inside} of {len(entry['own'])} splits ({means[0]:.2f}, "
                    f"test {means[1]:.2f})"
                )
    if not found:
        return ""
    return f"The TPR on the test is inside the 95 % interval that a model states for itself: {'; '.join(found)}."


def setting(result: Values) -> str:
    """Describe which splits the metrics are computed on."""
    n_splits = len(result["splits"])
    which = "inner folds of the training side of split 0" if result["choose"] else spell(result["splits"])
    spread = "; mean and standard deviation" if n_splits > 1 or result["choose"] else ""
    reduced = {"full": "", "quick": " (a quick run: fewer pairs and trees)", "tiny": " (synthetic data)"}[result["scale"]]
    return f"Metrics on {which}{spread}{reduced}."


def spell(splits: list[int]) -> str:
    """Describe a list of splits.

    >>> spell([1, 2, 3]), spell([2, 5]), spell([4])
    ('splits 1 to 3', 'splits 2, 5', 'split 4')
    """
    if len(splits) == 1:
        return f"split {splits[0]}"
    in_a_row = splits == list(range(splits[0], splits[-1] + 1))
    return f"splits {splits[0]} to {splits[-1]}" if in_a_row else f"splits {', '.join(map(str, splits))}"


def table(problem: Values) -> str:
    """Return the table of all models of a problem, those of simtree in bold."""
    if not problem["models"]:
        return f"{problem['name']}: no model has been run on all splits."
    names = list(problem["models"][0]["metrics"])
    rows = []
    for entry in problem["models"]:
        name = f"**{entry['model']}**" if entry["ours"] else entry["model"]
        metrics = entry["metrics"]
        cells = [mean_and_spread(metrics[metric], digits_of(metric)) if metric in metrics else "-" for metric in names]
        seconds = [f"{np.mean(entry['seconds'][part]):.1f}" for part in ("fit", "score")]
        rows.append([name, *cells, *seconds])
    pairs = " and ".join(f"{np.mean([p[kind] for p in problem['pairs']]):,.0f} {kind}" for kind in ("same", "different"))
    made = markdown_table([f"{problem['name']}: {pairs} pairs", *names, "fit (s)", "score (s)"], rows)
    return made


def comparison_as_markdown(result: Values, comparison: Values) -> str:
    """Return paired differences to the baselines, the targets, and the ranks if there are several problems."""
    model = comparison["model"]
    mine = metrics_of(result, model)
    head = f"### {comparison['title']}: {model}"
    if not mine:
        return f"{head}\n\nNot run on all splits."
    parts = [head, difference_table(result, comparison, list(mine))]
    if comparison["targets"]:
        rows = [
            [
                name,
                f"{target:g}",
                f"{np.mean(mine[name]):.{digits_of(name)}f}",
                "yes" if np.mean(mine[name]) >= target else "no",
            ]
            for name, target in comparison["targets"].items()
            if name in mine
        ]
        parts.append(markdown_table(["metric", "target", "result", "met"], rows))
    if len(result["problems"]) > 1:
        parts.append(rank_table(result, comparison))
    return "\n\n".join(parts)


def difference_table(result: Values, comparison: Values, names: list[str]) -> str:
    """Return one row per baseline: the differences, with the numbers of splits won and lost, and whether all are positive."""
    rows = []
    for other in comparison["baselines"]:
        found = differences(result, comparison["model"], other)
        if not found:
            rows.append([other, *("" for _ in names), "not run"])
            continue
        behind = [name for name in found if found[name].mean() <= 0.0]
        verdict = "yes" if not behind else f"no: worse in {', '.join(behind)}"
        cells = (difference_as_text(found[name], digits_of(name)) if name in found else "-" for name in names)
        rows.append([other, *cells, verdict])
    return markdown_table(["difference to", *names, "better"], rows)


def difference_as_text(values: np.ndarray, digits: int = 4) -> str:
    """Format paired differences.

    >>> difference_as_text(np.array([0.02, 0.01, -0.01]))
    '+0.0067 ± 0.0153 (2 won, 1 lost)'
    """
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():+.{digits}f}{spread} ({(values > 0).sum()} won, {(values < 0).sum()} lost)"


def rank_table(result: Values, comparison: Values) -> str:
    """Return mean ranks over the problems, of a model and its baselines, with Nemenyi's critical difference."""
    models = [name for name in (comparison["model"], *comparison["baselines"]) if metrics_of(result, name)]
    if len(models) < 2 or models[0] != comparison["model"]:
        return ""
    entries = [entry for problem in result["problems"] for entry in problem["models"] if entry["model"] == models[0]]
    names = list(dict.fromkeys(name for entry in entries for name in entry["metrics"]))
    found = {name: mean_ranks(result, models, name) for name in names}
    rows = [[model, *(f"{found[name][0][model]:.2f}" for name in names)] for model in models]
    rows.append(["p (Friedman)", *(f"{found[name][1]:.2g}" for name in names)])
    rows.append(["data sets", *(str(found[name][2]) for name in names)])
    rows.append(["significant difference", *(f"{critical_difference(len(models), found[name][2]):.2f}" for name in names)])
    best = [name for name in names if found[name][0][models[0]] == min(found[name][0].values())]
    verdict = f"simtree has the best mean rank in {', '.join(best) if best else 'no column'}."
    note = f"Mean ranks over the data sets that have a rate; significant differences by Nemenyi's test, 5 %. {verdict}"
    return f"{markdown_table(['mean rank', *names], rows)}\n\n{wrapped(note)}"


def losses(results: Iterable[Values]) -> str:
    """Return what comes first on a page: where a baseline is ahead of simtree, the largest difference first."""
    found = sorted((loss for result in results for loss in losses_of(result)), key=lambda loss: loss.differences.mean())
    if not found:
        return "No baseline is ahead of the model of simtree that it is compared with, in any column."
    rows = []
    for loss in found:
        digits = digits_of(loss.metric)
        figures = [f"{value:.{digits}f}" for value in (loss.ours, loss.theirs)]
        gap = difference_as_text(loss.differences, digits)
        rows.append([loss.problem, loss.metric, loss.model, figures[0], loss.baseline, figures[1], gap])
    header = ["data", "metric", "simtree", "", "best baseline", "", "difference"]
    clear = sum(loss.is_clear for loss in found)
    note = f"""The best baseline is ahead in {count(len(found), "row")}, the largest difference first; in {clear} of them by
    more than {TOLERANCE} and two standard errors."""
    return f"{wrapped(note)}\n\n{markdown_table(header, rows)}"


def run_page(result: Values) -> str:
    """Return the tables of one run: where a baseline is ahead, and then all."""
    return section(result) if result["choose"] else f"{losses([result])}\n\n{section(result)}"


def summary(results: Iterable[Values]) -> str:
    """Return the table of all data sets, with one row per baseline."""
    rows = []
    for result in results:
        for comparison in result["comparisons"]:
            for other in comparison["baselines"]:
                found = differences(result, comparison["model"], other)
                ahead = [name for name in found if found[name].mean() > 0.0]
                verdict = "not run" if not found else "yes" if len(ahead) == len(found) else f"in {len(ahead)} of {len(found)}"
                gains = ", ".join(f"{name} {values.mean():+.{digits_of(name)}f}" for name, values in found.items())
                rows.append([result["name"], comparison["model"], other, verdict, gains])
    return markdown_table(["data", "simtree", "baseline", "better", "difference (mean over splits)"], rows)


def headline(results: Iterable[Values], metric: str) -> str:
    """Return the table of the README, one row per data set: AutoSimilarity, a chosen model of simtree, and the best peer."""
    rows = []
    for result in results:
        best = [comparison for comparison in result["comparisons"] if comparison["title"] == BEST]
        for problem, comparison in product(result["problems"], best):
            means = {e["model"]: np.mean(e["metrics"][metric]) for e in problem["models"] if metric in e["metrics"]}
            # All that was run, also models that are no longer in the catalogue.
            others = [e["model"] for e in problem["models"] if not e["ours"] and e["model"] in means]
            ours = comparison["model"]
            if ours not in means or not others:
                continue
            other = max(others, key=lambda name: means[name])
            auto = f"{means[AUTO.name]:.3f}" if AUTO.name in means else "-"
            rows.append([problem["name"], auto, ours, f"{means[ours]:.3f}", other, f"{means[other]:.3f}"])
    return markdown_table(["data", "AutoSimilarity", "chosen by hand", metric, "best baseline", metric], rows)


def wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


# The plot


def draw(result: Values) -> Any:
    """Plot mean curves over the splits with logarithmic false positive rates, down to ten different pairs.

    Those of simtree are blue; of the baselines the best ones are shown.
    """
    import matplotlib.pyplot as plt

    problems = [problem for problem in result["problems"] if problem["models"]]
    n_columns = min(3, max(1, len(problems)))
    n_rows = max(1, -(-len(problems) // n_columns))
    # Many panels are smaller, so that the picture is no large file.
    side = 6.8 if n_rows < 3 else 5.2
    size = (side * n_columns, side * n_rows)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)
    for ax, problem in zip(axes.flat, problems, strict=False):
        draw_problem(ax, problem, np.array(result["grid"]))
    for ax in axes.flat[len(problems) :]:
        ax.set_axis_off()
    return figure


# Characters of a line of the legend that fit below a plot.
LEGEND_WIDTH = 90


def draw_problem(ax: Any, problem: Values, grid: np.ndarray) -> None:
    lines = ("-", "--", ":", "-.")
    ours = cycle((colour, line) for colour in (BLUE, TEAL) for line in lines)
    others = cycle((colour, line) for line in lines for colour in (ORANGE, RED, GREY))
    peers = [entry for entry in problem["models"] if not entry["ours"]]
    # The grid is even in the logarithm, so that low rates count as much as high ones.
    best = sorted(peers, key=lambda entry: -float(np.mean(entry["curve"])))[:MAX_PEERS]
    for entry in problem["models"]:
        if not entry["ours"] and entry not in best:
            continue
        colour, line = next(ours if entry["ours"] else others)
        roc = Roc(np.append(0.0, grid), np.append(0.0, entry["curve"]))
        label = textwrap.fill(f"{entry['model']} ({np.mean(entry['metrics'][AUC]):.4f})", LEGEND_WIDTH)
        RocDisplay(roc, knots=False).plot(ax, log_fpr=True, color=colour, linestyle=line, label=label)
    ax.set_xlim(10.0 / min(pairs["different"] for pairs in problem["pairs"]), 1.0)
    ax.set_title(f"{problem['name']} (AUC in brackets)", size=10)
    # Below the plot, because names are long and no corner is free.
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), frameon=False, fontsize=8)
