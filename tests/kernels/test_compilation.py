"""Kernels are cached on disk, wherever a folder can be written, and a first compilation is announced to whoever waits."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

import simtree
from programs import said_on_a_terminal
from simtree._kernels import compilation, route

pytestmark = pytest.mark.slow

# A small fit that needs few kernels.
FIT = (
    "import numpy as np, simtree;"
    "X, y = np.arange(8.0)[:, None], np.arange(8) // 4;"
    "simtree.SimilarityTree(splitter='cross', max_depth=2).fit(X, y)"
)
# One small kernel, which compiles in a moment, announced as in a fit.
CALL = """
import numpy as np
from simtree._kernels.compilation import CACHE_FOLDER, announced_compilation
from simtree._kernels.pairs import find_label
with announced_compilation():
    assert find_label(np.array([0, 2, 4]), 3) == 1
print(CACHE_FOLDER, sum(find_label.stats.cache_hits.values()), sum(find_label.stats.cache_misses.values()))
"""


def run(code, **environment):
    settings = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", code], env={**settings, **environment}, capture_output=True, text=True, check=True
    )


@pytest.fixture
def installed(tmp_path):
    """A copy of the package to install elsewhere, without any cache."""
    target = tmp_path / "site" / "simtree"
    shutil.copytree(Path(simtree.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


@pytest.fixture
def imported_from(monkeypatch):
    """A function that imports how kernels are compiled from another installation, which looks for its cache folder anew."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")

    def imported(package):
        spec = importlib.util.spec_from_file_location("compilation_elsewhere", package / "_kernels" / "compilation.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return imported


def test_second_process_loads_what_the_first_compiled_and_says_nothing(tmp_path):
    first, second = (run(CALL, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stdout.startswith(str(tmp_path))
    assert first.stdout.split()[1:] == ["0", "1"]
    assert second.stdout.split()[1:] == ["1", "0"]
    # A script is told once why it waits, and not how far it is.
    assert first.stderr == "simtree: compiling kernels for growing and scoring trees, once per machine ...\n"
    assert second.stderr == ""


def test_a_script_is_told_once_per_group_of_kernels(capsys):
    announcer = compilation._Announcer()
    begun = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=route.walk.py_func)})
    for _ in range(2):
        announcer.on_start(begun)
        announcer.on_end(begun)
        announcer.leave()
    assert capsys.readouterr().err.count("compiling kernels for growing and scoring trees") == 1


def test_a_change_of_any_kernel_gets_a_new_cache(installed, imported_from):
    before = imported_from(installed).CACHE_FOLDER
    assert before == imported_from(installed).CACHE_FOLDER
    assert Path(before).parent == installed / "_kernels" / "__pycache__"
    source = installed / "_kernels" / "coordinates.py"
    source.write_text(source.read_text() + "\n")
    assert before != imported_from(installed).CACHE_FOLDER


def test_read_only_installation_caches_in_the_users_folder(installed, tmp_path):
    """A plain file where the folder should be made stands for a folder that cannot be written, also for root."""
    (installed / "_kernels" / "__pycache__").write_text("")
    home = tmp_path / "home"
    settings = {"PYTHONPATH": str(installed.parent), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    folder, hits, misses = run(CALL, **settings).stdout.split()
    assert folder.startswith(str(home))
    assert (hits, misses) == ("0", "1")
    assert [file.name.split("-")[0] for file in home.rglob("*.nbi")] == ["pairs.find_label"]


def test_without_any_writable_folder_it_still_works(installed, imported_from, monkeypatch, tmp_path):
    (installed / "_kernels" / "__pycache__").write_text("")
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    elsewhere = imported_from(installed)
    assert elsewhere.CACHE_FOLDER is None
    compiled = elsewhere.kernel(lambda x: x + 1)
    assert compiled(2) == 3
    assert compiled.signatures


def test_compilation_is_announced_on_a_terminal(tmp_path):
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "watched")}
    for cached in (False, True):
        said = said_on_a_terminal([sys.executable, "-c", FIT], env=settings, stdout=subprocess.DEVNULL)
        if cached:
            assert said == ""
            continue
        assert said.count("simtree: compiling kernels for growing and scoring trees, once per machine ...") == 1
        assert said.count("simtree: compiling kernels for splitters and representations, once per machine ...") == 1
        done, most = map(int, re.findall(r"(\d+) of at most (\d+) kernels compiled", said)[-1])
        assert re.search(rf"simtree: compiled {done} kernels in \d+ s", said)
        assert 5 <= done <= most < 75


def test_the_command_announces_compilation_in_plain_lines(tmp_path):
    code = f"import simtree._kernels.compilation as c; c.announce_in_plain_lines(); c.SECONDS_BETWEEN_LINES = 0\n{CALL}"
    said = run(code, NUMBA_CACHE_DIR=str(tmp_path)).stderr.splitlines()
    assert said[0] == "simtree: compiling kernels for growing and scoring trees, once per machine ..."
    assert said[1].startswith("simtree: 1 of at most ")
    assert said[-1].startswith("simtree: compiled ")
    assert all(line == line.rstrip() for line in said)
