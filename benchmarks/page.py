"""docs/performance.md, made from docs/results/bench.json.

    python benchmarks/page.py [--json docs/results/bench.json] [--docs docs]

What a run of benchmarks/run.py wrote is copied to docs/results by hand, once it is what shall be published.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

import bench_scaling
import bench_tree
from measure import COMPILATION, Section
from simtree._utils.files import write_atomically
from simtree.experiments._results import write_figure

ROOT = Path(__file__).parents[1]
WIDTH = 140
# Share of the machine that other programs may take before a page says so.
QUIET = 0.1

HEAD = """
simtree beside its peers: time, memory and accuracy, taken side by side on one machine. Only ratios mean anything on another
machine. Times are medians, with the least and the greatest of the runs; peak memory is what a process of its own held beyond
its input (points and labels) at the worst moment; compilation, once on a machine, is counted apart. Peers get the same pairs,
in the same mix (half of them same), and {jobs} threads, as simtree does.
"""

QUICK_RUN = """
**These figures come from a quick run on small parts of the data**: they show what is measured, and its goals are those of the
full run, which small sizes neither reach nor miss.
"""

INTRODUCTIONS = {
    "tree": """
One tree of depth 15 with classification trees of depth 5 as splitters, beside one `DecisionTreeClassifier(max_depth=5)` of
scikit-learn on the same coordinates as a float32 matrix, whose making counts in its memory but not in its time.
""",
    "split": """
The best threshold on one of all coordinates, at the root. simtree starts from points and row numbers and never makes a matrix
of features; the peers are asked for one iteration with two leaves on features that they have binned before, their best case.
scikit-learn's class cannot be handed bins, but says itself how long its iteration took. Searching alone is like with like;
binning and search together are from points and row numbers to the cut. Against the search alone of a peer whose bins are
ready they cannot win: to compute and code all coordinates of all pairs takes more steps than to count codes, and a forest does
it once a tree, for hundreds of cuts.
""",
    "fit": """
All costs are counted: drawing pairs, making features, binning, growing. simtree: trees of depth 15 with classification trees
of depth 5, a fifth of the coordinates drawn for each test. LightGBM, XGBoost and HistGradientBoosting: 100 trees of 63
leaves; RandomForest: 100 trees with at least 5 pairs a leaf. MNIST: images on 153 principal components, tested on pairs of
the 10,000 test images. Keystroke data: 30 people to train, 21 others to test, features transformed to their quantiles. "The
same pairs" are the very pairs that the peers are given; otherwise simtree draws pairs for each tree, which labelled points
have in plenty. "Oblique": the coordinates are |w·(x - x')| and w·(x + x') for 40 discriminant directions w.
""",
    "scaling": """
A forest of a few trees on MNIST, on two threads. Against points and features, each tree has the fewest pairs of the first
table.
""",
    "score": """
Given pairs are row numbers; LightGBM with "features built" makes the coordinates of each pair a block at a time, with
"features ready" it is handed them as a matrix. simtree gets as many trees as it takes to reach LightGBM's AUC and TPR at FPR
0.001; where plain trees cannot reach that TPR (keystroke data; a refilled forest of 40 trees does), as many as its AUC
takes, and the goals say so. On MNIST its coordinates are products with discriminant directions.
A ranking tree of depth 15 with classification trees of depth 5 asks up to 75 questions of a pair, a boosted tree of 63 leaves
about 6. Scoring keeps up because it goes test by test, not pair by pair: each test sends the pairs that came to it on to one
of two chains, and pairs at one test do not wait for one another, while a walk waits for memory at every test. What else was
tried and did not help: the five columns of the table of tests in one record a test, several pairs walking in turns, rows of a
block laid out by feature. The kernels of scoring are compiled at the first fit.
""",
    "search": """
`top_k(queries, X, k=10)` of a forest of 44 trees of depth 15 with classification trees of depth 5, each on 200,000 pairs of
LFW descriptors (128 features) of 60 % of the people, beside FAISS flat (L2), which computes one distance where simtree asks
44 trees, and beside LightGBM (100 trees of 63 leaves) scoring every row, features built. The result of simtree is exact: what
scoring and sorting all rows would find, ties broken by row number. For one query alone the gallery is coded for that query
only. Before that, some pairs are asked which tests are worth asking, which takes about 6 ms whatever the number of rows: in
100,000 rows that is a quarter of the time, and it is not shared by threads.
""",
    "roofs": """
What a kernel does a second, beside a bare loop on the same machine: a copy of as many bytes, a histogram of one column, a
loop that answers tests and sends pairs nowhere.
""",
}

COMMANDS = """
## Commands

- `make bench` measures all of this (about forty minutes on two cores, 8 GB; needs MNIST, keystroke data and LFW),
  `make bench-quick` small parts of it.
- `python benchmarks/run.py --only split,score` measures some sections and leaves the others as they were;
  `--only fit --rows "keystroke: .*refill"` some lines of the fit tables.
- `python benchmarks/page.py` makes this page from docs/results/bench.json.
- `python benchmarks/bench_refill.py` and `python benchmarks/bench_pruning.py` measure what refilling and pruning gain; see
  [the decision on refilling](decisions/006-refilling-in-two-stages.md) and
  [that on pruning](decisions/005-what-pruning-can-gain.md).
"""


def section_as_markdown(name: str, found: dict[str, Any]) -> str:
    """Tables of one section, with what was reached."""
    if name == "tree":
        names = {f.name for f in fields(bench_tree.Row)}
        rows = [bench_tree.Row(**{key: value for key, value in row.items() if key in names}) for row in found["rows"]]
        missed = [row.name for row in rows if row.met is False]
        return f"## {found['title']}\n\n{bench_tree.as_markdown(rows)}\n\n{verdict(len(missed), missed)}"
    section = Section.from_json(found)
    missed = [goal.name for goal in section.goals if not goal.met]
    parts = [f"## {section.title}", section.as_markdown()]
    if section.goals:
        parts.append(verdict(len(missed), missed))
    if "why" in section.facts:
        parts.append("\n".join(f"- {reason}" for reason in section.facts["why"].values()))
    if COMPILATION in section.facts:
        parts.append(f"Compilation of what simtree runs here, once on a machine: {section.facts[COMPILATION]:.1f} s.")
    return "\n\n".join(parts)


def verdict(n_missed: int, missed: list[str]) -> str:
    return "All goals are met." if n_missed == 0 else f"Not reached: {'; '.join(missed)}."


def make_page(report: dict[str, Any]) -> str:
    """The whole page."""
    parts = ["# How fast, beside peers", wrapped(HEAD.format(jobs=2))]
    if report["scale"] != "full":
        parts.append(wrapped(QUICK_RUN))
    for name, found in report["sections"].items():
        title, _, rest = section_as_markdown(name, found).partition("\n\n")
        picture = (
            ["![Time of a forest against pairs, points and features](images/bench_scaling.png)"] if name == "scaling" else []
        )
        parts += [title, wrapped(INTRODUCTIONS[name]), *picture, rest, where(found["setting"])]
    return "\n\n".join(part.strip() for part in [*parts, COMMANDS]) + "\n"


def where(setting: dict[str, Any]) -> str:
    """How the figures of a section came about."""
    versions = ", ".join(f"{name} {version}" for name, version in setting["versions"].items())
    machine = setting["machine"]
    lines = [f"*`{setting['command']}`, {machine['cores']} cores, seed {setting['seed']}; {versions}.*"]
    if setting["others"] > QUIET:
        lines.append(
            f"**Other programs took {setting['others']:.0%} of the machine meanwhile**, from which libraries whose threads "
            "wait for one another suffer most: these ratios are not to be trusted."
        )
    return "\n\n".join(map(wrapped, lines))


def wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=ROOT / "docs" / "results" / "bench.json", help="what a run found")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page and its picture")
    options = parser.parse_args()
    report = json.loads(options.json.read_text())
    write_atomically(options.docs / "performance.md", make_page(report))
    if "scaling" in report["sections"]:
        scaling = Section.from_json(report["sections"]["scaling"])
        write_figure(options.docs / "images" / "bench_scaling.png", bench_scaling.draw(scaling))


if __name__ == "__main__":
    main()
