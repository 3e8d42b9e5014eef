"""Make docs/cli.md from the commands themselves: their options, and examples that are run, with what they print.

Run ``python docs/make_cli.py``. A test runs it too, and compares.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from simtree.cli._app import app

PAGE = Path(__file__).parent / "cli.md"

DATA = """\
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
person = np.repeat(np.arange(90), 8)                        # 90 people, 8 samples each, in two sittings
sitting = 2 * person + np.tile(np.repeat([0, 1], 4), 90)
X = rng.normal(size=(90, 5))[person] + 0.3 * rng.normal(size=(180, 5))[sitting] + 0.4 * rng.normal(size=(720, 5))
table = pd.DataFrame(X, columns=["hold", "flight", "press", "tilt", "speed"])
table.insert(0, "person", [f"p{k:02d}" for k in person])
table.insert(1, "sitting", sitting)
table.insert(2, "device", rng.choice(["phone", "pad"], 720))
table[person < 30].drop(columns="device").to_csv("train.csv", index=False)
table[(person >= 30) & (person < 60)].to_csv("tune.csv", index=False)
table[person >= 60].to_csv("test.csv", index=False)
pd.DataFrame({"first": [0, 0, 0], "second": [1, 7, 8]}).to_csv("pairs.csv", index=False)
"""

INTRODUCTION = """\
# The command line

<!-- Made by `python docs/make_cli.py`; change the commands, or that file, and run it again. -->

```sh
pip install ".[cli]"      # in this folder
simtree --help            # or python -m simtree
```

From a table of samples to a decision in four commands:

```sh
simtree fit train.csv --label person -o people.simtree
simtree calibrate people.simtree tune.csv --label person --max-fpr 0.05
simtree evaluate people.simtree test.csv --label person --plots pictures
simtree score people.simtree pairs.csv test.csv -o scores.csv
```

**Tables** have one row a sample: CSV (also with `;`, tabs or `|` between cells, and packed), TSV, Parquet, Feather, NPZ (each
array is a column, a matrix `X` the columns X0, X1, ...) or NPY (columns x0, x1, ..., or those of a structured array). One
column says whose sample a row is (`--label`); all others are features unless `--features` or `--drop` says otherwise. Features
are numbers: a cell that is empty, infinite or no number is named by its column, row (counted from 0) and line. A model finds
its features by name, so further columns do no harm.

**Results** go to standard output, everything else to standard error; `--json` prints results for machines. Files are written
whole or not at all, also after Ctrl-C. A command ends with 0; with 1 if something is wrong with what it was given, which it
says in one sentence; with 2 if it was called wrongly; with 130 after Ctrl-C.

The examples below are made of people who do not exist:

```python
"""

# Verb by verb: what is said of it, and what is run. A line that starts with "!" must fail.
EXAMPLES: dict[str, tuple[str, list[str]]] = {
    "fit": (
        "Without further options it grows a forest of 50 trees on marginal quantiles of the features, from bags of whole "
        "identities if there are more than ten: then those that will be met are taken for others (an open set). How long "
        "that takes is estimated by a small trial first, and said.",
        ["simtree fit train.csv --label person --never-pair sitting -o people.simtree"],
    ),
    "calibrate": (
        "What counts is how many people there are: pairs of the same two people are not independent ([why](evaluation.md)). "
        "Take others than those of `fit`, and others than those of `evaluate` if you can.",
        [
            "simtree calibrate people.simtree tune.csv --label person --never-pair sitting --max-fpr 0.05",
            "!simtree calibrate people.simtree tune.csv --label person --never-pair sitting --max-fpr 0.001",
        ],
    ),
    "evaluate": (
        "`--plots` draws DET and ROC curves with the band of their intervals, histograms of the scores, both rates against the "
        "threshold and, if all comparisons were made, the CMC curve.",
        ["simtree evaluate people.simtree test.csv --label person --never-pair sitting --by device --plots pictures"],
    ),
    "score": (
        "With `--label` the scores can be evaluated later, or by other programs: `simtree evaluate --scores scores.csv`.",
        [
            "simtree score people.simtree pairs.csv test.csv",
            "simtree score people.simtree pairs.csv test.csv --label person --format 5column",
        ],
    ),
    "explain": ("", ["simtree explain people.simtree test.csv 0 8"]),
    "show": ("", ["simtree show people.simtree"]),
    "reproduce": (
        "`simtree reproduce table1`, `mnist`, `figures` and `lemma` run an experiment of the paper "
        "([results](reproduction.md)).",
        ["simtree reproduce --help"],
    ),
}


def make_page() -> str:
    """The page, with examples that were run just now."""
    parts = [INTRODUCTION + DATA + "```\n"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), _wide(100):
        exec(DATA, {})
        for verb, (text, examples) in EXAMPLES.items():
            parts.append(_section(verb, text, examples))
    return "\n".join(parts)


def comparable(page: str) -> tuple[str, list[float]]:
    """A page without what differs from run to run and machine to machine: its words, and its numbers but for times."""
    page = re.sub(r"\d+ s\b", "N s", page)
    page = re.sub(r"[ ─]+", " ", page)
    number = r"[-+]?\d+(?:[\d,]*\d)?(?:\.\d+)?(?:e-?\d+)?"
    return re.sub(number, "#", page), [float(found.replace(",", "")) for found in re.findall(number, page)]


def _section(verb: str, text: str, examples: list[str]) -> str:
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    lines = [f"## simtree {verb}", ""]
    for paragraph in (" ".join((command.help or "").split()), text):
        lines += [textwrap.fill(paragraph, 140, break_on_hyphens=False), ""] if paragraph else []
    options = [_option(parameter) for parameter in command.params if parameter.name != "help"]
    if options:
        lines += ["| | | default |", "|---|---|---|", *options, ""]
    for example in examples:
        lines += ["```console", *_run(example), "```", ""]
    return "\n".join(lines)


def _option(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    name = parameter.metavar or parameter.name.upper()
    if is_option:
        flag = getattr(parameter, "is_flag", False)
        takes = "" if flag else f" {parameter.metavar}"
        name = f"{', '.join(parameter.opts)}{takes}"
    default = parameter.default
    hidden = parameter.required or default is None or default is False
    shown = "" if hidden else f"`{getattr(default, 'value', default)}`"
    required = " (required)" if parameter.required and is_option else ""
    return f"| `{name}` | {parameter.help}{required} | {shown} |"


def _run(example: str) -> list[str]:
    must_fail, line = example.startswith("!"), example.removeprefix("!")
    done = CliRunner().invoke(app, shlex.split(line)[1:])
    if bool(done.exit_code) != must_fail:
        raise RuntimeError(f"{line} ended with {done.exit_code}: {done.output}") from done.exception
    # Progress is for those who wait.
    said = [text for text in done.stderr.splitlines() if not re.match(r"growing trees|comparing", text)]
    shown = [f"$ {line}", *said, *(text.rstrip() for text in done.stdout.splitlines())]
    if done.exit_code:
        shown.append(f"(ended with {done.exit_code})")
    while not shown[-1]:
        shown.pop()
    return shown


@contextlib.contextmanager
def _wide(columns: int) -> Any:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
    print(f"Written: {PAGE}")
