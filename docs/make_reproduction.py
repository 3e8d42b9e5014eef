"""Make docs/reproduction.md from the JSON files of the experiments, which `simtree reproduce` writes.

Run ``python docs/make_reproduction.py [--results docs/results] [--out docs/reproduction.md]``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

from simtree._utils.files import write_atomically
from simtree.experiments import _figures as figures
from simtree.experiments import _lemma as lemma
from simtree.experiments import _mnist as mnist
from simtree.experiments import _table1 as table1

SECTIONS = {"table1": table1.section, "mnist": mnist.section, "figures": figures.section, "lemma": lemma.section}

HEAD = """# Reproduction of the paper's experiments

Clémençon and Vogel, *On Tree-based Methods for Similarity Learning* (2019): Table 1, the ROC curves on MNIST, the figures, and
a discussion of Lemma 1. The commands `simtree reproduce table1`, `mnist`, `figures` and `lemma` produce one section each, and
`python docs/make_reproduction.py` makes this page from their JSON files in `{folder}`, which hold the results of every run, the
random seeds and the package versions."""
PAGE = Path(__file__).parent / "reproduction.md"


def make_page(results: Path, *, folder: str) -> str:
    """Return the page in Markdown; ``folder`` is the path of the results relative to the page."""
    parts = [HEAD.format(folder=folder)]
    for name, section in SECTIONS.items():
        file = results / f"{name}.json"
        if not file.is_file():
            raise FileNotFoundError(f"{file} does not exist; make it with: simtree reproduce {name} --out {results}")
        try:
            result = json.loads(file.read_text(encoding="utf-8"))
            text = section(result)
            made_with = ", ".join(f"{package} {version}" for package, version in result["versions"].items())
            cores = result["machine"]["cores"]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{file} is not a result of this version; make it again with: simtree reproduce {name} --out {results}"
            ) from error
        parts.append(re.sub(rf"\]\(({name}\w*\.png)\)", rf"]({folder}/\1)", text))
        parts.append(f"*Made with {made_with}; {cores} cores.*")
    return "\n\n".join(parts) + "\n"


def write_page(results: Path, out: Path) -> None:
    """Write the page that shows a folder of results."""
    write_atomically(out, make_page(results, folder=Path(os.path.relpath(results, out.parent)).as_posix()))


def main() -> None:
    """Write the page, or say which result is missing."""
    parser = argparse.ArgumentParser(description="Make the page that shows the results of all experiments beside the paper's.")
    parser.add_argument("--results", type=Path, default=PAGE.parent / "results", help="folder of the JSON results and plots")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write")
    options = parser.parse_args()
    try:
        write_page(options.results, options.out)
    except (OSError, ValueError) as error:
        parser.exit(1, f"Error: {error}\n")
    print(f"Written: {options.out}")


if __name__ == "__main__":
    main()
