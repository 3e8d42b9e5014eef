"""The benchmark of representations runs at a tiny size and reports what it measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bench_representation

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def start(out, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "SIMTREE_DATA"}
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_representation.py"), "--out", str(out), *arguments]
    return subprocess.run(command, env=environment, cwd=out, capture_output=True, text=True)


def test_tiny_run(tmp_path):
    finished = start(tmp_path, "--tiny", "--trees", "2", "--pairs", "500")
    assert finished.returncode == 0, finished.stderr
    (run,) = json.loads((tmp_path / "bench_representation.json").read_text())["sets"]["tiny"]
    assert len(run) == 2 * len(bench_representation.representations("tiny"))
    for line in run.values():
        assert 0.5 < line["auc"] <= 1
    assert "| posterior | cosine | " in finished.stdout


def test_wrong_use_is_one_sentence(tmp_path):
    finished = start(tmp_path)
    assert finished.returncode == 2
    assert "SIMTREE_DATA is not set" in finished.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []
