from __future__ import annotations

import json
import sys

import pytest

import bench_auto

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:target_fpr=.* cannot be measured")]


def test_command_prints_what_it_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench_auto.py", "--tiny", "--seeds", "2", "--out", str(tmp_path)])
    bench_auto.main()
    runs = json.loads((tmp_path / "bench_auto.json").read_text())["runs"]
    printed = capsys.readouterr().out
    assert [(found["problem"], found["seed"]) for found in runs] == [(p, s) for p in ("keystroke", "digits") for s in (0, 1)]
    assert [found["open_set"] for found in runs] == [True, True, False, False]
    for found in runs:
        assert f"| {found['auc']:.4f} |" in printed
        assert found["inside"] == (found["promised"][1] <= found["reached"] <= found["promised"][2])
