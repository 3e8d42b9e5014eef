"""The benchmark of cohorts runs at a tiny size and reports what it measured."""

from __future__ import annotations

import json

import pytest

import bench_cohort
import programs

pytestmark = pytest.mark.slow


def start(out, *arguments):
    return programs.call(bench_cohort.main, "--out", str(out), *arguments, folder=out)


@pytest.mark.parametrize("more", [[], ["--choose"]])
def test_tiny_run(tmp_path, more):
    finished = start(tmp_path, "--tiny", "--trees", "2", "--pairs", "500", "--nearest", "5", "20", *more)
    assert finished.returncode == 0, finished.stderr
    (run,) = json.loads((tmp_path / "bench_cohort.json").read_text())["sets"]["tiny"]
    assert len(run) == 3 * (1 + 3 * 2)
    assert all(0.5 < auc <= 1 for auc, *_ in run.values())
    assert "| cosine, averaged, nearest 5 | " in finished.stdout


def test_wrong_use_is_one_sentence(tmp_path):
    finished = start(tmp_path)
    assert finished.returncode == 2
    assert "SIMTREE_DATA is not set" in finished.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []
