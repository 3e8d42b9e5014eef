"""Generate the page on accuracy from the JSON files of the runs and the notes, and print the table of the README.

python benchmarks/accuracy/page.py [--results docs/results/accuracy] [--page docs/accuracy.md]
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
from accuracy.notes import NOTES
from accuracy.protocol import tpr_at
from simtree._utils.files import write_atomically
from simtree.experiments._results import Values

ROOT = Path(__file__).resolve().parents[2]

HEAD = """All models of a table are trained on the same side of each split, with as many same as different pairs, and score
the same pairs of the other side. Models and parameters were chosen on the training side of split 0 alone (MNIST: on the last
10,000 training images); splits 1 to 5 were then run once, except where a note says otherwise. Differences are simtree minus
the baseline, paired by split. A rate is shown only if at least 30 different pairs lie at that FPR in every split. "Better"
means a better mean; the numbers of splits won and lost are given with each difference. Times were measured on a machine with
other load; for the speed of simtree see [performance](performance.md)."""


STALE = """Not all models of the catalogue have been run on all data; missing are {missing}."""
UNTUNED = """On {names}, boosted peers with early stopping and searched settings have not been run: where LightGBM is in these
tables, it has 100 rounds and fixed settings, which is less than it can do."""


def stale_note(found: dict[str, Values]) -> list[str]:
    """Return a paragraph that names the data whose stored results lack models of the catalogue."""
    missing: dict[str, set[str]] = {}
    for name, benchmark in BENCHMARKS.items():
        run = {model["model"] for problem in found.get(name, {"problems": []})["problems"] for model in problem["models"]}
        missing[name] = {model.name for model in benchmark.models} - run
    stale = [f"{len(models)} of {len(BENCHMARKS[name].models)} on {name}" for name, models in missing.items() if models]
    notes = [STALE.format(missing=", ".join(stale))] if stale else []
    tuned = {
        name: {model.name for model in benchmark.models if model.name.startswith("tuned")}
        for name, benchmark in BENCHMARKS.items()
    }
    untuned = [name for name, models in tuned.items() if models and models <= missing[name]]
    notes += [UNTUNED.format(names=", ".join(untuned))] if untuned else []
    return [report.wrapped(" ".join(notes))] if notes else []


def read_results(results: Path) -> dict[str, Values]:
    """Return the results by data set."""
    found = {name: json.loads(file.read_text()) for name in BENCHMARKS if (file := results / f"{name}.json").is_file()}
    if not found:
        raise FileNotFoundError(f"{results} has no results; create them with: python benchmarks/accuracy/run.py --help")
    return found


def make_page(results: Path, *, folder: str) -> str:
    """Return the page as Markdown; ``folder`` is the folder of the results, relative to the page."""
    found = read_results(results)
    parts = ["# Accuracy compared with other libraries", report.wrapped(HEAD)]
    parts += [
        "## Where a baseline is ahead",
        *stale_note(found),
        report.losses(found.values()),
        "## All comparisons",
        report.summary(found.values()),
    ]
    for name, result in found.items():
        parts.append(report.section(result).replace(f"]({name}.png)", f"]({folder}/{name}.png)"))
        if NOTES[name]:
            parts.append(report.wrapped(NOTES[name]))
        versions = ", ".join(f"{package} {version}" for package, version in result["versions"].items())
        parts.append(report.wrapped(f"*`{result['command']}`; {versions}; {result['machine']['cores']} cores.*"))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "docs" / "results" / "accuracy", help="folder of the JSON files")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "accuracy.md", help="the page to write")
    options = parser.parse_args()
    folder = Path(os.path.relpath(options.results, options.page.parent)).as_posix()
    try:
        write_atomically(options.page, make_page(options.results, folder=folder))
        print(report.headline(read_results(options.results).values(), tpr_at(1e-3)))
    except FileNotFoundError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
