"""Run all benchmarks of simtree compared with other libraries; writes JSON, Markdown and plots.

    python benchmarks/run.py [--quick] [--only tree,split,fit,boosting,scaling,score,search,roofs] [--repeats 3] [--out results]

Real data are read from the folder in SIMTREE_DATA. ``--quick`` uses small parts of them, about five minutes on two cores;
``--tiny`` uses synthetic data to check that everything runs, so its ratios and goals have no meaning. Sections that a run with
``--only`` does not measure are kept in the JSON. Requires the extra ``simtree[bench]``, and Linux, for /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import bench_boosting_speed
import bench_fit
import bench_roofs
import bench_scaling
import bench_score
import bench_search
import bench_split
import bench_tree
from bench_tree import positive
from measure import Share, setting
from page import section_as_markdown
from problems import Samples, clusters, keystroke, lfw, mnist
from simtree._utils.files import write_atomically
from simtree.experiments._results import write_figure

TREE_SIZES = {"full": bench_tree.FULL, "quick": bench_tree.MEDIUM, "tiny": bench_tree.QUICK}


def tree_section(folder: Path, scale: str, repeats: int) -> dict[str, Any]:
    """Measure one tree, whose table has a goal in each row."""
    size = TREE_SIZES[scale]
    problem = bench_tree.make_problem(Samples.load(folder / "mnist.npz"), size.n_pairs)
    rows = bench_tree.measure(problem, size, repeats)
    return {"title": "One tree", **bench_tree.sizes_of(problem, size, repeats), "rows": [row.as_json() for row in rows]}


def stored(section: Callable[[Path, str, int], Any]) -> Callable[[Path, str, int], dict[str, Any]]:
    return lambda folder, scale, repeats: asdict(section(folder, scale, repeats))


# In the order of the report. A section is a function of a folder with samples, a scale and a number of repeats.
SECTIONS: dict[str, Callable[[Path, str, int], dict[str, Any]]] = {
    "tree": tree_section,
    "split": stored(bench_split.section),
    "fit": stored(bench_fit.section),
    "boosting": stored(bench_boosting_speed.section),
    "scaling": stored(bench_scaling.section),
    "score": stored(bench_score.section),
    "search": stored(bench_search.section),
    "roofs": stored(bench_roofs.section),
}


def save_samples(folder: Path, scale: str) -> None:
    """Write the samples of each data set to a file, for all processes."""
    for name, make in {"mnist": mnist, "keystroke": keystroke, "lfw": lfw}.items():
        (clusters if scale == "tiny" else make)().save(folder / f"{name}.npz")


def sections(text: str) -> list[str]:
    unknown = [name for name in text.split(",") if name not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not a section; choose from {','.join(SECTIONS)}.")
    return [name for name in SECTIONS if name in text.split(",")]


def write(out: Path, report: dict[str, Any]) -> None:
    """Write the report so far, so that an interrupted run keeps its measurements."""
    write_atomically(out / "bench.json", json.dumps(report, indent=1) + "\n")
    parts = [section_as_markdown(name, found) for name, found in report["sections"].items()]
    write_atomically(out / "bench.md", "\n\n".join(parts) + "\n")
    if "scaling" in report["sections"]:
        scaling = bench_scaling.Section.from_json(report["sections"]["scaling"])
        write_figure(out / "bench_scaling.png", bench_scaling.draw(scaling))


def known_sections(out: Path, scale: str) -> dict[str, Any]:
    """Return the sections of an earlier run of the same scale."""
    file = out / "bench.json"
    report = json.loads(file.read_text()) if file.exists() else {"scale": None}
    return report["sections"] if report["scale"] == scale else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small parts of the data: about five minutes")
    parser.add_argument("--tiny", action="store_true", help="small synthetic data, to check that everything runs")
    parser.add_argument("--only", type=sections, default=list(SECTIONS), help="sections to run, separated by commas (all)")
    parser.add_argument("--rows", type=re.compile, help="lines of the fit tables to measure again (a regular expression)")
    parser.add_argument("--repeats", type=positive, help="runs of each measurement (3; 1 with --quick or --tiny)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of bench.json, bench.md and plots (results)")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        parser.exit(2, "This benchmark reads /proc to measure memory; run it on Linux.\n")
    if not options.tiny and not os.environ.get("SIMTREE_DATA"):
        parser.exit(
            2, "SIMTREE_DATA is not set; set it to the folder that holds MNIST, keystroke data and LFW, or pass --tiny.\n"
        )
    scale = "tiny" if options.tiny else "quick" if options.quick else "full"
    repeats = options.repeats or (3 if scale == "full" else 1)
    found = known_sections(options.out, scale)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            save_samples(folder, scale)
        except FileNotFoundError as error:
            parser.exit(2, f"{error}\n")
        for name in options.only:
            load, start, share = os.getloadavg(), time.perf_counter(), Share()
            print(f"{name} ...", file=sys.stderr, flush=True)
            if options.rows and name == "fit" and name in found:
                try:
                    found[name] = bench_fit.measure_again(folder, scale, repeats, found[name], options.rows)
                except ValueError as error:
                    parser.exit(2, f"{error}\n")
                found[name]["setting"]["again"] = {"rows": options.rows.pattern, "others": share.of_others()}
                write(options.out, {"scale": scale, "sections": found})
                print(section_as_markdown(name, found[name]) + "\n", flush=True)
                continue
            measured = SECTIONS[name](folder, scale, repeats)
            how = {**setting(load), "repeats": repeats, "seconds": time.perf_counter() - start, "others": share.of_others()}
            found[name] = {**measured, "setting": how}
            report = {"scale": scale, "sections": {known: found[known] for known in SECTIONS if known in found}}
            write(options.out, report)
            print(section_as_markdown(name, found[name]) + "\n", flush=True)
    print(f"Written to {options.out / 'bench.json'}. Medians, with the minimum and maximum of the runs.")


if __name__ == "__main__":
    main()
