"""Generate docs/performance.md from docs/results/bench.json.

    python benchmarks/page.py [--json docs/results/bench.json] [--docs docs]

The results of benchmarks/run.py are copied to docs/results by hand when they are to be published.
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
# Share of the machine that other processes may use before the page warns.
MAX_OTHER_LOAD = 0.1

HEAD = """
Time, memory and accuracy of simtree compared with other libraries, measured on one machine; on another machine only the
ratios are meaningful. Times are medians, with the minimum and maximum of the runs. Peak memory is that of a separate
process above its input (samples and labels). Compilation, once per machine, is reported separately. All libraries get the same
pairs, half of them same pairs, and {jobs} threads.
"""

QUICK_RUN = """
**These results are from a quick run on small parts of the data**: they show what is measured; the goals are those of the full
run and have no meaning here.
"""

INTRODUCTIONS = {
    "tree": """
One tree of depth 15 with classification trees of depth 5 as splitters, compared with a `DecisionTreeClassifier(max_depth=5)` of
scikit-learn on the same coordinates as a float32 matrix, whose computation counts in its memory but not in its time.
""",
    "split": """
The best threshold over all coordinates, at the root. simtree starts from samples and row numbers and never computes a matrix of
features; the other libraries run one iteration with two leaves on features that are already binned, which favours them.
scikit-learn does not accept binned features, but prints the time of its iteration. Comparing the search alone is fair; binning
and search together lead from samples and row numbers to the split. They cannot be faster than the search alone of a library
whose features are already binned: computing and binning all coordinates of all pairs takes more steps than counting codes, and
a forest does it once per tree, for hundreds of splits.
""",
    "fit": """
All costs are included: sampling pairs, computing features, binning, growing. simtree: trees of depth 15 with classification
trees of depth 5, a random fifth of the coordinates for each test. LightGBM, XGBoost and HistGradientBoosting: 100 trees of 63
leaves; RandomForest: 100 trees with at least 5 pairs per leaf. MNIST: images on 153 principal components, tested on pairs of
the 10,000 test images. Keystroke data: 30 people for training, 21 others for test, features transformed to their quantiles.
"The same pairs" are those of the other libraries; otherwise simtree samples new pairs for each tree, of which labelled samples
have plenty. "Oblique": the coordinates are |w·(x - x')| and w·(x + x') for 40 discriminant directions w.
""",
    "boosting": """
`SimilarityBoosting` and LightGBM with trees of 63 leaves and a learning rate of 0.1, on the same pairs of images on 153
principal components, coordinates |x - x'| and x + x'. All costs are included; LightGBM needs the coordinates as a matrix, or
in blocks (`lightgbm.Sequence`); "quantised" is its `use_quantized_grad`. CPU time of one thread is compared, because threads
that wait for each other take time wherever something else is running. The time of 100 rounds is that of the first round, with
binning and all else that comes before it, and 99 times the mean of the further rounds that are measured. The float64
matrix is converted from a float32 one, and both exist at LightGBM's peak of memory; with float32 there is only one.
""",
    "scaling": """
A forest of a few trees on MNIST, with two threads. Against samples and features, each tree has the smallest number of pairs of
the first table.
""",
    "score": """
Given pairs are row numbers; LightGBM "computing features" computes the coordinates of the pairs in blocks, and with
"precomputed features" it gets them as a matrix. simtree gets as many trees as it needs to reach LightGBM's AUC and TPR at an
FPR of 0.001; if plain trees cannot reach that TPR (keystroke data; a refilled forest of 40 trees does), as many as it needs to
reach the AUC, which the goals state. On MNIST its coordinates are projections on discriminant directions.
A ranking tree of depth 15 with classification trees of depth 5 evaluates up to 75 tests per pair, a boosted tree of 63 leaves
about 6. Scoring is still fast because it proceeds test by test, not pair by pair: each test routes the pairs that reached it to
one of two lists, and pairs at the same test do not wait for each other, whereas a traversal pair by pair waits for memory at
every test. Variants that did not help: one record per test instead of five columns, traversing several pairs in alternation,
and blocks of rows stored by feature. The scoring kernels are compiled at the first fit.
""",
    "search": """
`top_k(queries, X, k=10)` of a forest of 44 trees of depth 15 with classification trees of depth 5, each on 200,000 pairs of
LFW descriptors (128 features) of 60 % of the people, compared with FAISS flat (L2), which computes one distance where simtree
evaluates 44 trees, and with LightGBM (100 trees of 63 leaves) scoring every row, including its features. The result of simtree
is exact: the same as scoring and sorting all rows, with ties broken by row number. For a single query the gallery is binned for
that query only. Before that, the most useful tests are determined on some pairs, which takes about 6 ms regardless of the
number of rows: with 100,000 rows this is a quarter of the time, and it is not parallel.
""",
    "roofs": """
Throughput of each kernel compared with a bare loop on the same machine: a copy of the same number of bytes, a histogram of one
column, and a loop that evaluates tests without routing pairs.
""",
}

COMMANDS = """
## Commands

- `make bench` runs all benchmarks (about forty minutes on two cores, 8 GB; requires MNIST, keystroke data and LFW),
  `make bench-quick` small versions of them.
- `python benchmarks/run.py --only split,score` runs some sections and keeps the others;
  `--only fit --rows "keystroke: .*refill"` repeats some lines of the fit tables.
- `python benchmarks/page.py` generates this page from docs/results/bench.json.
- `python benchmarks/bench_refill.py` and `python benchmarks/bench_pruning.py` measure the gains of refilling and pruning; see
  [the decision on refilling](decisions/006-refilling-in-two-stages.md) and
  [the decision on pruning](decisions/005-what-pruning-can-gain.md).
"""


def section_as_markdown(name: str, found: dict[str, Any]) -> str:
    """Return the tables of one section as Markdown, with the goals that are not met."""
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
        parts.append(f"Compilation of the kernels of this section, once per machine: {section.facts[COMPILATION]:.1f} s.")
    return "\n\n".join(parts)


def verdict(n_missed: int, missed: list[str]) -> str:
    return "All goals are met." if n_missed == 0 else f"Not met: {'; '.join(missed)}."


def make_page(report: dict[str, Any]) -> str:
    """Return the page as Markdown."""
    parts = ["# Performance compared with other libraries", wrapped(HEAD.format(jobs=2))]
    if report["scale"] != "full":
        parts.append(wrapped(QUICK_RUN))
    for name, found in report["sections"].items():
        title, _, rest = section_as_markdown(name, found).partition("\n\n")
        plot = (
            ["![Time of a forest against pairs, samples and features](images/bench_scaling.png)"] if name == "scaling" else []
        )
        parts += [title, wrapped(INTRODUCTIONS[name]), *plot, rest, where(found["setting"])]
    return "\n\n".join(part.strip() for part in [*parts, COMMANDS]) + "\n"


def where(setting: dict[str, Any]) -> str:
    """Describe the command, machine and versions of a section."""
    versions = ", ".join(f"{name} {version}" for name, version in setting["versions"].items())
    machine = setting["machine"]
    lines = [f"*`{setting['command']}`, {machine['cores']} cores, random seed {setting['seed']}; {versions}.*"]
    if setting["others"] > MAX_OTHER_LOAD:
        lines.append(
            f"**Other processes used {setting['others']:.0%} of the machine meanwhile**, which affects libraries whose threads "
            "wait for each other most: these ratios are unreliable."
        )
    return "\n\n".join(map(wrapped, lines))


def wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=ROOT / "docs" / "results" / "bench.json", help="results of a run")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of the page and its plot")
    options = parser.parse_args()
    report = json.loads(options.json.read_text())
    write_atomically(options.docs / "performance.md", make_page(report))
    if "scaling" in report["sections"]:
        scaling = Section.from_json(report["sections"]["scaling"])
        write_figure(options.docs / "images" / "bench_scaling.png", bench_scaling.draw(scaling))


if __name__ == "__main__":
    main()
