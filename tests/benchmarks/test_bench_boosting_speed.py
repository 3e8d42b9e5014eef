from __future__ import annotations

import json
import sys

import pytest

import bench_boosting_speed as bench

pytest.importorskip("lightgbm")
pytestmark = pytest.mark.slow


def test_command_prints_what_it_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "in_fresh_process", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(
        sys, "argv", ["bench_boosting_speed.py", "--tiny", "--pairs", "2000", "--rounds", "10", "--out", str(tmp_path)]
    )
    bench.main()
    found = json.loads((tmp_path / "bench_boosting_speed.json").read_text())["found"]
    printed = capsys.readouterr().out
    assert list(found) == list(bench.FITS)
    for name, metrics in found.items():
        assert metrics["AUC"] > 0.8
        assert f"| {name} | {metrics['fit: time (s)']:.4g} |" in printed
    # The same pairs and coordinates in whatever form.
    assert found["LightGBM, Sequence"]["AUC"] == pytest.approx(found[bench.BASE]["AUC"], abs=0.01)
