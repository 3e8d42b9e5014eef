"""How good simtree is beside its peers on one data set, as JSON, a table and a picture with a logarithmic axis.

    python benchmarks/accuracy/run.py mnist|keystroke|audio|lfw|uci [--choose] [--splits 1-5] [--only ours] [--out results]

All models of a table learn from one side of a split and score the same pairs of the other. ``--choose`` looks at the training
side of split 0 alone and is for comparing candidates; the splits 1 to 5 are for reporting them, once. Each finished run is kept
in a log beside the results, so that a command that was stopped goes on where it was, and a model that is new in
`accuracy.catalogue` is all that is computed. Real data are read from the folder that SIMTREE_DATA names; ``--quick`` takes
fewer pairs and trees, and ``--tiny`` made-up data, to show that everything runs. Needs the extras ``simtree[test]`` and, for
the network, ``simtree[experiments]``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from accuracy import report
from accuracy.catalogue import BENCHMARKS
from accuracy.protocol import SCALES, SPLITS, Benchmark, Model, Scale, tasks_of, units_of
from simtree.experiments._results import Order, RunLog, write_figure, write_result


def run(
    benchmark: Benchmark,
    order: Order,
    *,
    scale: Scale,
    splits: tuple[int, ...] = SPLITS,
    choose: bool = False,
    models: list[Model] | None = None,
    again: bool = False,
) -> None:
    """Do the runs that the log lacks and write what all runs of the log say; ``again`` does all runs of the models anew."""
    name = f"{benchmark.name}_choose" if choose else benchmark.name
    log = RunLog(order.out / f"{name}.runs.jsonl", {"seed": order.seed, "scale": scale.name})
    units = [unit for problem in benchmark.problems for unit in units_of(problem, splits, choose)]
    installed = [model for model in models or benchmark.models if model.installed]
    tasks = tasks_of(installed, units, scale, order.n_jobs or 1)
    if again:
        log.found = {known: values for known, values in log.found.items() if known not in tasks}
    # One after the other: each uses as many threads as it is given.
    log.complete(tasks, n_jobs=1, what=name, with_bar=False)
    found = report.collect(benchmark, log.found, splits, scale=scale, choose=choose) | {"name": name}
    write_figure(order.out / f"{name}.png", report.draw(found))
    write_result(order, name, found, report.section)


def split_numbers(text: str) -> tuple[int, ...]:
    """
    >>> split_numbers("1-3"), split_numbers("2,5")
    ((1, 2, 3), (2, 5))
    """
    try:
        ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
        numbers = tuple(number for part in ends for number in range(part[0], part[-1] + 1))
    except ValueError:
        numbers = ()
    if not numbers or not set(numbers) <= set(SPLITS):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of splits; give splits from 1 to 5, such as 1-5 or 2,3.")
    return numbers


def chosen_models(benchmark: Benchmark, only: str | None) -> list[Model]:
    """All models, ours, the peers, or those whose names hold a text."""
    tests = {None: lambda model: True, "ours": lambda model: model.ours, "peers": lambda model: not model.ours}
    test = tests.get(only, lambda model: only.lower() in model.name.lower())
    return [model for model in benchmark.models if test(model)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=list(BENCHMARKS), help="data set")
    parser.add_argument("--choose", action="store_true", help="compare candidates inside the training side of split 0")
    parser.add_argument("--splits", type=split_numbers, default=SPLITS, help="splits to report (1-5)")
    parser.add_argument("--only", help="models to run: ours, peers, or a part of a name (all)")
    parser.add_argument("--again", action="store_true", help="do the runs of these models anew, although the log has them")
    parser.add_argument("--quick", action="store_true", help="fewer pairs and trees")
    parser.add_argument("--tiny", action="store_true", help="small made-up data: shows that everything runs")
    parser.add_argument("--n-jobs", "--n_jobs", type=int, default=2, help="threads (2)")
    parser.add_argument("--out", type=Path, default=Path("results/accuracy"), help="folder of the results (results/accuracy)")
    options = parser.parse_args()
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(2, "SIMTREE_DATA is not set; set it to the folder that holds the data, or pass --tiny.\n")
    benchmark = BENCHMARKS[options.data]
    models = chosen_models(benchmark, options.only)
    if not models:
        names = ", ".join(model.name for model in benchmark.models)
        parser.exit(2, f"--only {options.only!r} is in no name of a model; there are: {names}.\n")
    command = f"python benchmarks/accuracy/run.py {options.data}{' --choose' if options.choose else ''}"
    order = Order(options.out, len(options.splits), 0, options.n_jobs, command)
    scale = SCALES["tiny" if options.tiny else "quick" if options.quick else "full"]
    asked = {"splits": options.splits, "choose": options.choose, "models": models, "again": options.again}
    try:
        run(benchmark, order, scale=scale, **asked)
    except (FileNotFoundError, ValueError) as error:
        parser.exit(2, f"{error}\n")
    print((options.out / f"{benchmark.name}{'_choose' if options.choose else ''}.md").read_text())


if __name__ == "__main__":
    main()
