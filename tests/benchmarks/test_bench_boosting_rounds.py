from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import bench_boosting_rounds

pytestmark = pytest.mark.slow


def test_command_prints_what_it_writes(tmp_path, monkeypatch, capsys):
    options = ["--tiny", "--rounds", "5", "10", "--pairs", "1000", "--folds", "2", "--data", "keystroke", "letter", "mnist"]
    monkeypatch.setattr(sys, "argv", ["bench_boosting_rounds.py", *options, "--out", str(tmp_path)])
    bench_boosting_rounds.main()
    found = json.loads((tmp_path / "bench_boosting_rounds.json").read_text())["found"]
    printed = capsys.readouterr().out
    for of_data in found.values():
        for model in bench_boosting_rounds.MODELS:
            for n, mean in zip((5, 10), np.mean(of_data[model], axis=0), strict=True):
                assert mean[0] > 0.6
                assert f"| {model} | {n} | {mean[0]:.5f} |" in printed
        assert all(5 <= n <= 10 for n in of_data["early stopping"]["rounds"])
