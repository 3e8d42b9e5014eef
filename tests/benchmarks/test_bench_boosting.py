from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import bench_boosting
from accuracy.data import Pairs, make_samples, split_identities

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("step", [0.3, 1.0])
def test_boosting_learns(step):
    split = split_identities(make_samples(), 0.6, Pairs(300, 1_500), 0, 0)
    found = bench_boosting.metrics(bench_boosting.boosted(split, 4, 1_000, step, 4), split.same)
    assert found[0] > 0.7
    assert np.all(np.diff(found[1:]) <= 0)


def test_command_prints_what_it_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench_boosting.py", "--tiny", "--out", str(tmp_path)])
    bench_boosting.main()
    found = json.loads((tmp_path / "bench_boosting.json").read_text())["found"]
    printed = capsys.readouterr().out
    for of_data in found.values():
        for model, folds in of_data.items():
            assert f"| {model} | {np.mean(folds, axis=0)[0]:.4f} |" in printed
