"""The benchmark of galleries runs at a tiny size and reports what it measured."""

from __future__ import annotations

import json
import sys

import pytest

import bench_gallery

pytestmark = pytest.mark.slow


def test_tiny_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["bench", "--rows", "300", "--features", "4", "--queries", "3", "--repeats", "1", "--out", str(tmp_path)]
    )
    bench_gallery.main()
    found = json.loads((tmp_path / "bench_gallery.json").read_text())
    assert len(found["seconds"]) == 10
    assert all(seconds > 0 for seconds in found["seconds"].values())
    assert len(found["ratios"]) == 4
    assert found["megabytes"] > 10
    assert "| identify | " in capsys.readouterr().out


def test_wrong_use_is_one_sentence(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "--rows", "0"])
    with pytest.raises(SystemExit, match="must be at least 1"):
        bench_gallery.main()
