"""The demo runs on a part of its data, says what it compares, and draws its pictures."""

from __future__ import annotations

import runpy
import sys
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import programs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo.py"


def run_demo(folder):
    done = programs.call(partial(runpy.run_path, str(DEMO), run_name="__main__"), "--quick", "--out", str(folder))
    plt.close("all")
    assert done.returncode == 0, done.stderr
    return done


def table_rows(printed):
    """Return AUC and true positive rates by the name of the model."""
    rows = [line for line in printed.splitlines() if ", posteriors" in line or ", pixels" in line]
    return {line[:32].strip(): [float(number) for number in line[32:].split()] for line in rows}


def test_demo_compares_models_and_draws_pictures(tmp_path):
    pytest.importorskip("lightgbm")
    done = run_demo(tmp_path / "demo")
    rows = table_rows(done.stdout)
    assert list(rows) == [
        "similarity forest, posteriors",
        "similarity tree, posteriors",
        "LightGBM, posteriors",
        "cosine, posteriors",
        "Euclidean distance, pixels",
        "cosine, pixels",
    ]
    for auc, *rates in rows.values():
        assert 0.5 < auc <= 1.0
        assert rates == sorted(rates, reverse=True)  # lower false positive rates come last
    assert rows["similarity forest, posteriors"][0] > rows["Euclidean distance, pixels"][0]
    assert "fitting a similarity forest" in done.stderr
    for picture in done.stdout.split("Pictures: ")[1].split("\n")[0].split(", "):
        assert Path(picture).read_bytes().startswith(b"\x89PNG")
    report = Path(done.stdout.split("Report: ")[1].split(",")[0])
    assert report.read_text().startswith("<!DOCTYPE html>")


def test_demo_runs_without_lightgbm(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    done = run_demo(tmp_path / "demo")
    assert "LightGBM, posteriors" not in table_rows(done.stdout)
    assert "LightGBM is not installed and was left out" in done.stdout
