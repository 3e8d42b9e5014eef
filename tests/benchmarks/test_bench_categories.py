"""The benchmark of categories runs and writes what it prints."""

from __future__ import annotations

import json

import pytest

import bench_categories
import programs

pytest.importorskip("lightgbm")


def test_table_and_report(tmp_path):
    table = programs.call(bench_categories.main, "--quick", "--out", str(tmp_path), folder=tmp_path).stdout
    (run,) = json.loads((tmp_path / "bench_categories.json").read_text())["runs"]["synthetic"]
    assert f"| synthetic | {run['boosting']:.4f} | {run['forest']:.4f} | {run['LightGBM']:.4f} |" in table
    assert min(run.values()) > 0.6
