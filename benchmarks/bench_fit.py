"""From labelled samples to a fitted model, with all costs: simtree's forest compared with boosting and random forests.

Each run is a process of its own, with a small fit first, so that imports and compilation do not count. Each run gives the time,
the peak memory, and the accuracy on pairs of held-out samples (keystroke data: of held-out people).
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import joblib

from measure import (
    AUC,
    COMPILATION,
    MEMORY,
    SECONDS,
    TPR,
    Goal,
    Line,
    Section,
    Table,
    in_fresh_process,
    joined,
    observe,
    seconds,
    seconds_of_compilation,
)
from models import OBLIQUE, Spec, accuracy, held_out, score
from problems import Samples, clusters, row_numbers

TITLE = "Fit: from labelled samples to a model"


@dataclass(frozen=True)
class Size:
    """Three numbers of pairs of the peers, number of trees of simtree, pairs per tree, and number of test pairs."""

    steps: tuple[int, int, int]
    trees: dict[str, int]
    pairs_per_tree: int
    n_test: int
    depth: int = 15
    n_trees_of_peers: int = 100
    oblique_trees: int = 20
    with_variants: bool = True

    def peer(self, library: str, n_pairs: int) -> Spec:
        return Spec(library, n_pairs, {"n_trees": self.n_trees_of_peers})


FULL = Size((100_000, 1_000_000, 10_000_000), {"mnist": 44, "keystroke": 40}, 100_000, 500_000)
MEDIUM = Size(
    (5_000, 20_000, 50_000),
    {"mnist": 10, "keystroke": 10},
    5_000,
    50_000,
    n_trees_of_peers=25,
    oblique_trees=8,
    with_variants=False,
)
TINY = Size((500, 1_000, 2_000), {"mnist": 3, "keystroke": 3}, 500, 2_000, depth=3, n_trees_of_peers=3, oblique_trees=2)
SIZES = {"full": FULL, "quick": MEDIUM, "tiny": TINY}


@dataclass(frozen=True)
class Plan:
    """Row of a table: a model and its number of runs. Without a model the note gives the reason."""

    name: str
    spec: Spec | None
    repeats: int = 1
    note: str = ""


def run_once(folder: Path, name: str, spec: Spec, n_test: int, aggregations: tuple[str, ...]) -> list[dict[str, list[float]]]:
    """Measure time, memory and accuracy of one fit, for each aggregation of simtree; call it in a fresh process."""
    samples = Samples.load(folder / f"{name}.npz")
    warm_up(spec)
    model, cost = observe(lambda: spec.fit(samples.X, samples.y))
    file = folder / f"{name}-{spec.file_name}"
    if not file.exists():
        joblib.dump(model, file)
    test = held_out(samples, n_test)
    found = []
    for aggregation in aggregations or (None,):
        if aggregation is not None:
            model.set_params(aggregation=aggregation)
        found.append(cost | accuracy(score(model, samples.X_test, row_numbers(test)), test.same))
    return found


def warm_up(spec: Spec) -> Any:
    """Fit and score a small problem, so that later runs do not include compilation and imports."""
    samples = clusters()
    small = {"n_trees": 2}
    if spec.library == "simtree":
        small = spec.parameters | {"n_estimators": min(2, spec.parameters.get("n_estimators", 2)), "max_depth": 3}
    model = replace(spec, n_pairs=1_000, parameters=small).fit(samples.X, samples.y)
    return score(model, samples.X, row_numbers(held_out(samples, 1_000)))


def seconds_of_first_fit() -> float:
    """Return the time of the first forest of a process."""
    return seconds(lambda: warm_up(Spec("simtree", 1_000)))


def run_table(folder: Path, name: str, title: str, plans: list[Plan], n_test: int, relative_to: str) -> Table:
    """Run all plans, repeat by repeat, so that other load affects all of them."""
    lines = run_lines(folder, name, plans, n_test)
    return Table(title, lines, relative_to)


def run_lines(folder: Path, name: str, plans: list[Plan], n_test: int) -> list[Line]:
    runs: dict[str, list[dict[str, list[float]]]] = {plan.name: [] for plan in plans}
    notes = {plan.name: plan.note for plan in plans}
    for repeat in range(max(plan.repeats for plan in plans)):
        for plan in plans:
            if plan.spec is None or repeat >= plan.repeats:
                continue
            if plan.spec.installed:
                runs[plan.name] += in_fresh_process(run_once, folder, name, plan.spec, n_test, ())
            else:
                notes[plan.name] = "not run: not installed"
    return [Line(plan.name, joined(runs[plan.name]), notes[plan.name]) for plan in plans]


# Models


def plans_of(name: str, size: Size, repeats: int, n_coordinates: int) -> list[Plan]:
    """Return the lines of the table of a data set."""
    few, many, most = size.steps
    trees = size.trees[name]
    ours = {"n_estimators": trees, "max_depth": size.depth}
    a_tree = {"mnist": {}, "keystroke": {"min_pairs_split": 100, "refill": True}}[name]
    plain = {key: value for key, value in a_tree.items() if key != "refill"}
    gigabytes = FULL.steps[-1] * n_coordinates * 4 / 1e9
    no_room = f"not run: at {FULL.steps[-1]:,} pairs the matrix of coordinates alone takes {gigabytes:.3g} GB, without its bins"
    oblique = [
        Plan(
            oblique_name(size),
            Spec("simtree", size.pairs_per_tree, oblique_forest(size)),
            repeats,
            "pairs sampled for each tree",
        )
    ]
    lines = [
        Plan(f"simtree, {trees} trees, the same {few:,} pairs", Spec("simtree", few, ours | plain, shared=True), repeats),
        *(
            Plan(f"{peer}, {few:,} pairs", size.peer(peer, few), repeats)
            for peer in ("LightGBM", "XGBoost", "HistGradientBoosting", "RandomForest")
        ),
        Plan(our_name(name, size), Spec("simtree", size.pairs_per_tree, ours | a_tree), repeats, "pairs sampled for each tree"),
        *(oblique if name == "mnist" else []),
        Plan(
            f"simtree, {trees} trees, each on {size.pairs_per_tree:,} of the same {many:,} pairs",
            Spec("simtree", many, ours | plain | {"max_samples": size.pairs_per_tree}, shared=True),
        ),
        Plan(f"LightGBM, {many:,} pairs", size.peer("LightGBM", many), repeats),
        Plan(f"XGBoost, {many:,} pairs", size.peer("XGBoost", many)),
        Plan(f"HistGradientBoosting, {many:,} pairs", None, note=f"not run: only with {few:,} pairs"),
        Plan(f"RandomForest, {many:,} pairs", None, note=f"not run: only with {few:,} pairs"),
        Plan(
            f"simtree, {trees} trees, {most:,} pairs in total",
            Spec("simtree", most // trees, ours | a_tree),
            note=f"{most // trees:,} per tree",
        ),
        Plan(
            f"simtree, one tree, {most:,} pairs",
            Spec("simtree", most, {"n_estimators": 1, "max_depth": size.depth} | plain),
        ),
    ]
    if name == "keystroke":
        lines.append(Plan(f"LightGBM, {most:,} pairs", size.peer("LightGBM", most)))
    else:
        lines.append(Plan(f"LightGBM, {most:,} pairs", None, note=no_room))
    lines.append(Plan(f"XGBoost, {most:,} pairs", None, note=no_room if name == "mnist" else "not run"))
    return lines


def our_name(name: str, size: Size) -> str:
    refill = ", refill" if name == "keystroke" else ""
    return f"simtree, {size.trees[name]} trees x {size.pairs_per_tree:,} pairs{refill}"


def oblique_forest(size: Size) -> dict[str, Any]:
    return OBLIQUE | {"n_estimators": size.oblique_trees, "max_depth": size.depth}


def oblique_name(size: Size) -> str:
    return f"simtree, {size.oblique_trees} trees x {size.pairs_per_tree:,} pairs, oblique"


def variants(folder: Path, size: Size) -> Table:
    """Measure variants of the forest on MNIST, one run each."""
    trees, pairs = size.trees["mnist"], 2 * size.pairs_per_tree
    ours = {"n_estimators": trees, "max_depth": size.depth}
    kinds = ["abs_diff", "sum", "min", "max"]
    lines = []
    for what, spec, aggregations in (
        (["llr", "mean_rank"], Spec("simtree", pairs, ours), ("llr", "mean_rank")),
        (["llr, refill"], Spec("simtree", pairs, ours | {"refill": True}), ()),
        (["llr, refill, also min and max"], Spec("simtree", pairs, ours | {"refill": True, "coordinates": kinds}), ()),
    ):
        found = in_fresh_process(run_once, folder, "mnist", spec, size.n_test, aggregations)
        lines += [Line(f"{trees} trees x {pairs:,}, {how}", metrics) for how, metrics in zip(what, found, strict=True)]
    return Table("Variants of the forest on MNIST, one run each:", lines)


# Goals


def goals_of(name: str, table: Table, size: Size) -> list[Goal]:
    ours = table.line(our_name(name, size))
    _, many, most = size.steps
    peer = table.line(f"LightGBM, {many:,} pairs")
    one_tree = table.line(f"simtree, one tree, {most:,} pairs")
    relative = f"relative to LightGBM with {many:,} pairs"
    memory = Goal(f"{name}: memory of the forest {relative}", ours.median(MEMORY) / peer.median(MEMORY), 1 / 5)
    time = ours.median(SECONDS) / peer.median(SECONDS)
    room = Goal(f"{name}: GB of one tree with {most:,} pairs", one_tree.median(MEMORY) / 1000, 4.0)
    if name == "mnist":
        best = table.line(oblique_name(size))
        return [
            Goal(f"{name}: time of the forest on f {relative}", time, 1 / 2),
            memory,
            room,
            Goal(f"{name}: time of the oblique forest {relative}", best.median(SECONDS) / peer.median(SECONDS), 1 / 3),
            Goal(f"{name}: memory of the oblique forest {relative}", best.median(MEMORY) / peer.median(MEMORY), 1 / 5),
            *accuracy_goals(f"{name}, oblique", best, peer),
        ]
    return [
        Goal(f"{name}: time of the forest {relative}", time, 1.0),
        Goal(f"{name}: the same, stretch goal", time, 1 / 3),
        memory,
        *accuracy_goals(name, ours, peer),
        room,
    ]


def accuracy_goals(name: str, ours: Line, peer: Line) -> list[Goal]:
    return [
        Goal(f"{name}: AUC, difference to LightGBM", ours.median(AUC) - peer.median(AUC), 0.0, at_least=True),
        Goal(f"{name}: TPR at 0.001, difference to LightGBM", ours.median(TPR) - peer.median(TPR), 0.0, at_least=True),
    ]


DATA = (("mnist", "MNIST"), ("keystroke", "Keystroke data"))
AGAIN = "repeated after the other lines"


def measure_again(folder: Path, scale: str, repeats: int, known: dict[str, Any], rows: re.Pattern[str]) -> dict[str, Any]:
    """Measure some lines of a section again, selected by data set and name, and update the goals."""
    size, goals, n_found = SIZES[scale], [], 0
    for (name, _), stored in zip(DATA, known["tables"], strict=False):
        n_coordinates = 2 * Samples.load(folder / f"{name}.npz").X.shape[1]
        plans = [
            plan for plan in plans_of(name, size, repeats, n_coordinates) if plan.spec and rows.search(f"{name}: {plan.name}")
        ]
        n_found += len(plans)
        lines = {line.name: line for line in run_lines(folder, name, plans, size.n_test)} if plans else {}
        for line in stored["lines"]:
            if line["name"] in lines:
                line["metrics"] = lines[line["name"]].metrics
                line["note"] = "; ".join(filter(None, [lines[line["name"]].note, AGAIN]))
        table = Table(stored["title"], [Line(**line) for line in stored["lines"]], stored["relative_to"])
        goals += [asdict(goal) for goal in goals_of(name, table, size)]
    if not n_found:
        raise ValueError(f"--rows {rows.pattern!r} matches no line of the fit tables; choose another pattern.")
    return {**known, "goals": goals}


def section(folder: Path, scale: str, repeats: int) -> Section:
    size = SIZES[scale]
    tables, goals = [], []
    for name, label in DATA:
        n_coordinates = 2 * Samples.load(folder / f"{name}.npz").X.shape[1]
        plans = plans_of(name, size, repeats, n_coordinates)
        title = f"{label}, {n_coordinates} coordinates:"
        table = run_table(folder, name, title, plans, size.n_test, f"LightGBM, {size.steps[1]:,} pairs")
        tables.append(table)
        goals += goals_of(name, table, size)
    if size.with_variants:
        tables.append(variants(folder, size))
    compilation = seconds_of_compilation(seconds_of_first_fit)
    return Section(TITLE, tables, goals, {COMPILATION: compilation, "test pairs": size.n_test})
