"""Make docs/cli.md from the commands themselves: their options, and examples that are run, with their output.

Run ``python docs/make_cli.py``. A test runs it too, and compares.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import tempfile
import textwrap
from collections.abc import Iterable
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
person = np.repeat(np.arange(240), 4)  # 240 people, 4 samples each, in two sittings
sitting = 2 * person + np.tile(np.repeat([0, 1], 2), 240)
centre = rng.normal(size=(240, 5))
X = centre[person] + 0.3 * rng.normal(size=(480, 5))[sitting] + 0.4 * rng.normal(size=(960, 5))
table = pd.DataFrame(X, columns=["hold", "flight", "press", "tilt", "speed"])
table.insert(0, "person", [f"p{k:03d}" for k in person])
table.insert(1, "sitting", sitting)
table.insert(2, "device", rng.choice(["phone", "pad"], 960))
table.to_csv("people.csv", index=False)
pd.DataFrame({"first": [4, 4, 4], "second": [5, 7, 8]}).to_csv("pairs.csv", index=False)
queries = pd.DataFrame(centre[[3, 5, 7, 9]] + 0.3 * rng.normal(size=(4, 5)), columns=table.columns[3:])
queries.insert(0, "name", ["new p003", "new p005", "new p007", "new p009"])
queries.to_csv("queries.csv", index=False)
others = np.repeat(np.arange(60), 6)  # 60 other people, of whom four samples are enrolled
several = pd.DataFrame(rng.normal(size=(60, 5))[others] + 0.5 * rng.normal(size=(360, 5)), columns=table.columns[3:])
several.assign(person=others, enrolled=np.arange(360) % 6 < 4).to_csv("several.csv", index=False)
"""

INTRODUCTION = """\
# The command line

<!-- Made by `python docs/make_cli.py`; change the commands, or that file, and run it again. -->

```sh
pip install ".[cli]"      # in this folder
simtree --help            # or python -m simtree
```

From a table of samples to a decision in five commands:

```sh
simtree split people.csv --label person --into train:0.34 tune:0.33 test:0.33
simtree fit people.train.csv --label person -o people.simtree
simtree calibrate people.simtree people.tune.csv --label person --max-fpr 0.05
simtree evaluate people.simtree people.test.csv --label person --plots plots
simtree score people.simtree pairs.csv people.test.csv -o scores.csv
```

**Tables** have one row per sample: CSV (cells separated by commas, semicolons, tabs or `|`; UTF-8; compressed or not; `-` is
standard input), TSV, Parquet, Feather, NPZ (each array is a column, a matrix `X` the columns X0, X1, ...) or NPY (columns x0,
x1, ..., or those of a structured array). One column has the identity (`--label`); all others are features unless `--features`
or `--drop` says otherwise. Features are numbers, words or dates, with or without holes ([how they are read](tables.md)); a cell
that is infinite, or a word among numbers, is named by its column, row (counted from 0) and line. A model finds its features by
name, so that further columns do no harm.

**Results** go to standard output, everything else to standard error; `--json` prints results as JSON. Files are written
completely or not at all, also after Ctrl-C. The exit code is 0; 1 if something is wrong with the input, which is said in one
sentence; 2 if the command line is wrong; 130 after Ctrl-C.

The examples below use synthetic people:

```python
"""

# Each subcommand: its text, and the examples that are run. A line that starts with "!" must fail.
EXAMPLES: dict[str, tuple[str, list[str]]] = {
    "split": (
        "A threshold and its error rates hold for unseen identities only if no identity is in two of the tables.",
        ["simtree split people.csv --label person --into train:0.34 tune:0.33 test:0.33"],
    ),
    "fit": (
        "Without further options it grows a forest of 50 trees on marginal quantiles of the features, from bags of whole "
        "identities if there are more than ten: then unseen identities are expected (an open set). `--model tree` grows one "
        "tree that can be read; it is less accurate than a forest, and `simtree evaluate` says by how much on your data.",
        [
            "simtree fit people.train.csv --label person --never-pair sitting --drop device -o people.simtree",
            "simtree fit people.train.csv --label person --never-pair sitting --drop device --model tree -o tree.simtree",
        ],
    ),
    "calibrate": (
        "The number of identities matters: pairs of the same two identities are not independent ([why](evaluation.md)). "
        "Use other identities than those of `fit`, and than those of `evaluate` if you can.",
        [
            "simtree calibrate people.simtree people.tune.csv --label person --never-pair sitting --max-fpr 0.05",
            "!simtree calibrate people.simtree people.tune.csv --label person --never-pair sitting --max-fpr 0.001",
        ],
    ),
    "evaluate": (
        "`--plots` draws DET and ROC curves with confidence bands, histograms of the scores, both rates against the "
        "threshold and, if all pairs were compared, the CMC curve.",
        ["simtree evaluate people.simtree people.test.csv --label person --never-pair sitting --by device --plots plots"],
    ),
    "report": (
        "The page has a slider for the threshold, and works without a network ([what is on it](report.md)). It needs "
        '`pip install ".[report]"`.',
        ["simtree report people.simtree people.test.csv --label person --never-pair sitting --by device -o report.html"],
    ),
    "set-threshold": ("", ["simtree set-threshold people.simtree 2.5 -o strict.simtree"]),
    "fit-fusion": (
        "It pays where identities have several samples, and most where these age ([figures](templates.md)).",
        ["simtree fit-fusion people.simtree several.csv --label person --enrol enrolled -o fused.simtree"],
    ),
    "score": (
        "With `--label` the scores can be evaluated later, or by other programs: `simtree evaluate --scores scores.csv`. "
        "With `--max-fpr` that command also chooses a threshold, with the promise of `simtree calibrate`.",
        [
            "simtree score people.simtree pairs.csv people.test.csv",
            "simtree score people.simtree pairs.csv people.test.csv --label person --format 5column",
        ],
    ),
    "enroll": (
        "A gallery is one file, or a schema in PostgreSQL ([what is in it](gallery.md)). Several rows of an identity become "
        "its samples; later enrolments add to them.",
        ["simtree enroll people.gallery people.test.csv --label person --model people.simtree"],
    ),
    "gallery": (
        "",
        [
            "simtree gallery show people.gallery",
            "simtree gallery calibrate people.gallery people.tune.csv --label person --max-fpir 0.05",
            "!simtree gallery calibrate people.gallery people.tune.csv --label person --max-fpir 0.01",
            "simtree gallery backup people.gallery people.backup",
            "simtree gallery re-enroll people.backup tree.simtree",
            "simtree gallery compact people.backup",
            "simtree gallery cluster people.gallery --threshold 5 -o groups.csv",
        ],
    ),
    "identify": (
        "With `--max-fpir` a row may have no candidate: then it is nobody who is enrolled, as far as the gallery can tell.",
        [
            "simtree identify people.gallery queries.csv --id name -k 2",
            "simtree identify people.gallery queries.csv --id name --max-fpir 0.5",
        ],
    ),
    "verify": ("", ["simtree verify people.gallery people.test.csv --label person -o decisions.csv"]),
    "remove": (
        "",
        ["simtree remove people.gallery p009 --compact", "!simtree remove people.gallery somebody"],
    ),
    "cluster": (
        "A false positive rate is one of pairs, and each false match may join two groups "
        "([what that means](gallery.md#groups-without-labels)).",
        [
            "simtree cluster people.simtree queries.csv --id name",
            "simtree cluster people.simtree people.test.csv --label person --threshold 5 -o groups.csv",
            "!simtree cluster people.simtree people.test.csv --max-fpr 0.000001",
        ],
    ),
    "keys": (
        "A key is printed once; its file holds only a hash ([the service](service.md)).",
        ["!simtree keys list --keys keys.json"],
    ),
    "serve": (
        "[The service](service.md) has its routes, its page and how to ask.",
        ["!simtree serve people.gallery --host 0.0.0.0"],
    ),
    "explain": ("", ["simtree explain people.simtree people.test.csv 4 8"]),
    "show": ("", ["simtree show people.simtree", "simtree show tree.simtree --rules 2"]),
    "reproduce": (
        "`simtree reproduce table1`, `mnist`, `figures` and `lemma` run an experiment of the paper "
        "([results](reproduction.md)).",
        ["simtree reproduce --help"],
    ),
}


def make_page() -> str:
    """Return the page, with examples that are run now."""
    parts = [INTRODUCTION + DATA + "```\n"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), _wide(100):
        exec(DATA, {})
        for verb, (text, examples) in EXAMPLES.items():
            parts.append(_section(verb, text, examples))
    return "\n".join(parts)


def comparable(page: str) -> tuple[str, list[float]]:
    """Return the words of a page, and its numbers except for times, which differ from run to run."""
    page = re.sub(r"\d+ s\b", "N s", page)
    page = re.sub(r"fingerprint [0-9a-f]+", "fingerprint F", page)  # changes with the last digit of a model
    page = re.sub(r"[ ─]+", " ", page)
    number = r"[-+]?\d+(?:[\d,]*\d)?(?:\.\d+)?(?:e-?\d+)?"
    return re.sub(number, "#", page), [float(found.replace(",", "")) for found in re.findall(number, page)]


def _section(verb: str, text: str, examples: list[str]) -> str:
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    lines = [f"## simtree {verb}", ""]
    for paragraph in (" ".join((command.help or "").split()), text):
        lines += [textwrap.fill(paragraph, 140, break_on_hyphens=False), ""] if paragraph else []
    lines += _options(command)
    for name, inner in getattr(command, "commands", {}).items() if verb != "reproduce" else ():
        lines += [
            f"### simtree {verb} {name}",
            "",
            textwrap.fill(" ".join(inner.help.split()), 140, break_on_hyphens=False),
            "",
        ]
        lines += [*_options(inner), *_shown(example for example in examples if f"simtree {verb} {name} " in example)]
    if not hasattr(command, "commands") or verb == "reproduce":
        lines += _shown(examples)
    return "\n".join(lines)


def _shown(examples: Iterable[str]) -> list[str]:
    return [line for example in examples for line in ("```console", *_run(example), "```", "")]


def _options(command: Any) -> list[str]:
    options = [_option(parameter) for parameter in command.params if parameter.name != "help"]
    return ["| | | default |", "|---|---|---|", *options, ""] if options else []


def _option(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    name = parameter.metavar or parameter.name.upper()
    if is_option:
        flag = getattr(parameter, "is_flag", False)
        takes = "" if flag else f" {parameter.metavar}"
        name = "/".join([", ".join(parameter.opts), *parameter.secondary_opts]) + takes
    default = parameter.default
    hidden = parameter.required or default is None or default is False
    shown = "" if hidden else f"`{getattr(default, 'value', default)}`"
    required = " (required)" if parameter.required and is_option else ""
    return f"| `{name}` | {parameter.help}{required} | {shown} |"


def _run(example: str) -> list[str]:
    must_fail, line = example.startswith("!"), example.removeprefix("!")
    done = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="simtree")
    if bool(done.exit_code) != must_fail:
        raise RuntimeError(f"{line} ended with {done.exit_code}: {done.output}") from done.exception
    # Progress is not shown.
    said = [text for text in done.stderr.splitlines() if not re.match(r"growing trees|comparing|simtree: ", text)]
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
