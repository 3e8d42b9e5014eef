"""The benchmark of representations runs at a tiny size and reports what it measured."""

from __future__ import annotations

import json

import pytest

import bench_representation
import programs

pytestmark = pytest.mark.slow


def start(out, *arguments):
    return programs.call(bench_representation.main, "--out", str(out), *arguments, folder=out)


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
