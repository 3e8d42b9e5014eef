"""The benchmark of 1:N search runs and writes what it prints; how fast anything is decides no test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "bench_search.py"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark reads /proc")


def test_table_and_report(tmp_path):
    for peer in ("faiss", "lightgbm"):
        pytest.importorskip(peer, reason="a peer of the extra simtree[bench]")
    command = [sys.executable, str(SCRIPT), "--quick", "--repeats", "1", "--jobs", "1", "--out", str(tmp_path)]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    report = json.loads((tmp_path / "bench_search.json").read_text())
    assert [(row["rows"], row["queries"]) for row in report["rows"]] == [(3000, 1), (3000, 100)]
    for row in report["rows"]:
        assert f"| {row['rows']:,} | {row['queries']} |" in table
        assert row["lightgbm_goal_met"] == (row["faster_than_lightgbm"] >= 20)
    assert set(report["tpr"]) == {"fpr", "Euclidean distance", "forest on f", "forest on f, min, max"}
