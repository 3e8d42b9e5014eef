"""The pruning benchmark runs and writes what it prints."""

from __future__ import annotations

import json

import pytest

import bench_pruning
import programs

pytestmark = pytest.mark.slow


def test_table_and_report(tmp_path):
    table = programs.call(bench_pruning.main, "--distributions", "2", "--out", str(tmp_path), folder=tmp_path).stdout
    report = json.loads((tmp_path / "bench_pruning.json").read_text())
    assert len(report["runs"]) == 4
    for name, runs in report["runs"].items():
        assert f"| {name} |" in table
        assert [set(run) for run in runs] == [{"optimal_auc", "full_auc", "full_cells", "pruned_auc", "pruned_cells"}] * 2
        assert all(run["pruned_cells"] <= run["full_cells"] for run in runs)
