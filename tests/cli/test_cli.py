"""The command line as a user meets it; in a process of its own where signals, imports and the interpreter matter."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import make_reproduction
import programs
from simtree._utils import startup
from simtree.cli._app import app
from simtree.experiments import _figures, _lemma
from simtree.experiments import _table1 as experiment

pytestmark = pytest.mark.slow

SIMTREE = [sys.executable, "-m", "simtree"]
TABLE1 = ["reproduce", "table1", "--runs", "1", "--n-jobs", "1", "--seed", "3"]
# Few pairs in the picture, where one point takes up to a hundred times as many as a run of the table.
SIZES = [128, 256]
# Waits for a signal in the sixth run.
STOPPED = f"""
import signal
from simtree.cli import main
from simtree.experiments import _table1 as experiment
def one_run(*arguments, run=experiment.one_run, started=[], **settings):
    started.append(arguments)
    return signal.pause() if len(started) == 6 else run(*arguments, **settings)
experiment.one_run, experiment.SIZES = one_run, {SIZES}
main()
"""


def start(*arguments, **environment):
    """Run the command in a process of its own."""
    return subprocess.run(
        [*SIMTREE, *arguments], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def simtree(*arguments, **environment):
    """Run the command in this process."""
    return programs.call(app, *arguments, **environment)


@pytest.fixture(scope="module", autouse=True)
def few_pairs():
    """Make the experiments small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "SIZES", SIZES)
        figures = _figures.Sizes(points=400, pairs=2_000, fresh=2_000, marks=50)
        patch.setattr(_figures, "Sizes", lambda: figures)
        patch.setattr(_lemma, "Sizes", lambda lemma=_lemma.Sizes: lemma(pairs=3_000, fresh=5_000, marks=50))
        yield


@pytest.fixture(scope="module")
def table1(tmp_path_factory):
    """A run of table1 that nobody disturbed."""
    out = tmp_path_factory.mktemp("table1")
    done = simtree(*TABLE1, "--out", str(out))
    assert done.returncode == 0, done.stderr
    return out, done


def test_version_and_help():
    assert start("--version").stdout.startswith("simtree 0.")
    shown = simtree("reproduce", "--help").stdout
    for name in ("table1", "mnist", "figures", "lemma"):
        assert name in shown
    shown = simtree("reproduce", "table1", "--help", COLUMNS="120").stdout
    for option in ("--runs", "--seed", "--n-jobs", "--out", "--extended"):
        assert option in shown


@pytest.mark.parametrize("module", ["numpy", "sklearn.base", "typer"])
def test_ctrl_c_while_libraries_are_imported_is_one_line(module):
    """Python tells which modules it has imported, so that the signal comes at the right moment."""
    command = [sys.executable, "-X", "importtime", "-m", "simtree", "show", "model.simtree"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.split("|")[-1].strip().startswith(module):
                process.send_signal(signal.SIGINT)
                break
        out, said = process.communicate(timeout=600)
    assert process.returncode == 130
    own = [line for line in said.splitlines() if not line.startswith("import time:")]
    assert own == ["Interrupted. Nothing was written."]
    assert out == ""


def test_nothing_is_imported_before_ctrl_c_is_watched():
    """What is imported before it, even of the standard library, would end in a traceback."""
    folder = Path(startup.__file__).parents[1]
    assert "import" not in (folder / "_utils" / "__init__.py").read_text()
    first = next(node for node in ast.parse((folder / "__init__.py").read_text()).body if not isinstance(node, ast.Expr))
    assert ast.unparse(first) == "from simtree._utils import startup as _startup"
    tree = ast.parse((folder / "_utils" / "startup.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert imported == {"__future__", "os", "signal", "sys", "types"}


def test_table1_prints_its_table_and_names_its_files(table1):
    out, done = table1
    assert "| class asymmetry | 0.5 | 3 | 3 | 1118 | 0.07 |" in done.stdout
    assert "Table 1: 12 of 12" in done.stderr
    result = json.loads((out / "table1.json").read_text())
    assert result["command"] == f"simtree {' '.join(TABLE1)} --out {out}"
    assert result["seed"] == 3
    for name in ("table1.json", "table1.md", "table1_growing.png"):
        assert str(out / name) in done.stdout


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_table1_that_was_stopped_goes_on_where_it_was(table1, tmp_path, sent, code):
    command = [sys.executable, "-c", STOPPED, *TABLE1, "--out", str(tmp_path)]
    log = tmp_path / "table1.runs.jsonl"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (log.exists() and log.read_bytes().count(b"\n") > 5):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(sent)
        said = process.communicate()[1]
    assert process.returncode == code
    assert ("the same command goes on from there" in said) == (sent == signal.SIGINT)
    assert not (tmp_path / "table1.json").exists()
    kept = log.read_bytes().split(b"\n")[:-1]
    assert len(kept) == 6
    done = simtree(*TABLE1, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Table 1: 5 of 12 runs are in" in done.stdout
    assert log.read_bytes().split(b"\n")[: len(kept)] == kept
    undisturbed = json.loads((table1[0] / "table1.json").read_text())
    resumed = json.loads((tmp_path / "table1.json").read_text())
    for part in ("rows", "growing"):
        assert resumed[part] == undisturbed[part]


def test_another_seed_in_one_folder_is_refused_in_one_sentence(table1):
    out, _ = table1
    done = simtree("reproduce", "table1", "--runs", "1", "--seed", "4", "--out", str(out))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "holds runs with seed=3, not 4; delete it or choose another folder with --out." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_mnist_is_named(tmp_path):
    done = simtree("reproduce", "mnist", "--data", str(tmp_path), "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert f"is not in {tmp_path}; put it there" in done.stderr
    assert "On the command line, give the folder with --data" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    done = simtree("reproduce", "lemma", "--runs", "1", "--out", str(tmp_path / "file"), COLUMNS="400")
    assert done.returncode == 2
    assert "is a file" in done.stderr
    done = simtree("reproduce", "lemma", "--runs", "1", "--out", str(tmp_path / "file" / "below"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: --out {tmp_path / 'file' / 'below'} cannot be written to (")


def test_no_cores_are_refused():
    done = simtree("reproduce", "lemma", "--n-jobs", "0", COLUMNS="400")
    assert done.returncode == 2
    assert "the number of parallel jobs cannot be 0; give 1 or more, or -1 for all cores." in done.stderr


@pytest.mark.parametrize("missing", ["typer", "rich", "pandas"])
def test_without_its_libraries_the_command_says_how_to_get_them(tmp_path, missing):
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError('No module named {missing}', name='{missing}')\n")
    done = start("--version", PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert done.returncode == 1
    assert done.stderr.strip() == f'The simtree command needs {missing}; install it with: pip install "simtree[cli]"'


def test_small_runs_of_all_commands_make_a_page(table1, mnist_out):
    """What the page shows of a small run is what that run found."""
    out = table1[0]
    shutil.copytree(mnist_out, out, dirs_exist_ok=True)
    for name in ("figures", "lemma"):
        done = simtree("reproduce", name, "--runs", "1", "--n-jobs", "1", "--out", str(out))
        assert done.returncode == 0, done.stderr
    page = out.parent / "page.md"
    make_reproduction.write_page(out, page)
    text = page.read_text()
    for name in ("table1", "mnist", "figures", "lemma"):
        for line in (out / f"{name}.md").read_text().splitlines():
            assert line in text or line.startswith("![")
    assert f"]({out.name}/lemma.png)" in text
