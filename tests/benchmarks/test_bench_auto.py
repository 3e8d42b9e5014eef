from __future__ import annotations

import json
import sys

import pytest

import bench_auto

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:target_fpr=.* cannot be measured")]


def test_command_prints_what_it_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench_auto.py", "--tiny", "--out", str(tmp_path)])
    bench_auto.main()
    found = json.loads((tmp_path / "bench_auto.json").read_text())["found"]
    printed = capsys.readouterr().out
    assert f"Chosen: {found['best']}. On test pairs: AUC {found['auc']:.4f}," in printed
    assert all(f"| {name} |" in printed for name in found["results"]["name"])
    assert found["best"] == found["results"]["name"][0]
