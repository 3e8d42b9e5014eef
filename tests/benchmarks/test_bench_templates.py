"""The benchmark of templates runs at a tiny size, and nobody meets a model that has seen them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def start(out, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "SIMTREE_DATA"}
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_templates.py"), "--out", str(out), *arguments]
    return subprocess.run(command, env=environment, cwd=out, capture_output=True, text=True)


def test_tiny_run(tmp_path):
    finished = start(tmp_path, "--tiny", "--folds", "4")
    assert finished.returncode == 0, finished.stderr
    report = json.loads((tmp_path / "templates.json").read_text())
    assert list(report["by_number_enrolled"]) == ["1", "4", "12"]
    assert all(0.0 <= rate < 0.4 for rate in report["mean_eer"].values())
    assert report["mean_eer"]["average of those as enrolled; learned"] == report["by_number_enrolled"]["12"]
    assert f"| scaled Manhattan | {report['mean_eer']['scaled Manhattan']:.4f} | " in finished.stdout


def test_simulation_of_the_promise(tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_enrolled.py"), "--out", str(tmp_path)]
    finished = subprocess.run([*command, "--people", "60", "--runs", "2", "--fusions", "max"], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    cells = json.loads((tmp_path / "enrolled.json").read_text())["cells"]
    assert len(cells) == 12
    assert all(cell["n_broken"] <= cell["n_promised"] <= 2 for cell in cells)


def test_the_page_is_that_of_the_stored_results(tmp_path):
    (tmp_path / "results").mkdir()
    for name in ("templates.json", "enrolled.json"):
        (tmp_path / "results" / name).write_bytes((ROOT / "docs" / "results" / name).read_bytes())
    assert start(tmp_path / "results", "--page").returncode == 0
    assert (tmp_path / "templates.md").read_text() == (ROOT / "docs" / "templates.md").read_text()


def test_wrong_use_is_one_sentence(tmp_path):
    finished = start(tmp_path)
    assert finished.returncode == 2
    assert "SIMTREE_DATA" in finished.stderr.splitlines()[-1]
    assert start(tmp_path, "--folds", "3").stderr.splitlines()[-1].endswith("models are trained without three of them.")
    assert list(tmp_path.iterdir()) == []


def test_people_are_scored_by_models_that_have_not_seen_them(monkeypatch):
    """With a model that remembers who it was trained on, by a constant feature."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import bench_templates as bench

    class Memory:
        def __init__(self, people):
            self.known = set(people[:, 0, 0].tolist())

        def pairwise_score(self, probes, enrolled):
            assert not self.known & set(probes[:, 0].tolist())
            assert not self.known & set(enrolled[:, 0].tolist())
            assert len(self.known) >= 6
            return np.zeros((len(probes), len(enrolled)))

    people = np.tile(np.arange(12.0)[:, None, None], (1, bench.TINY.n_repetitions, 1))
    monkeypatch.setattr(bench, "fit_models", lambda some, _: {"memory": Memory(some)})
    folds = np.arange(12) % 4
    scores = bench.Scores(people, folds, bench.TINY)
    for unseen in ([0], [1, 2]):
        scores.add(frozenset(unseen))
    assert {key for key in scores.tested if key[1] == 1} == {("memory", 1, 2)}
    assert set(scores.learned_from) == {("memory", frozenset({1})), ("memory", frozenset({2}))}
    monkeypatch.setattr(Memory, "pairwise_score", lambda self, a, b: np.zeros((len(a), len(b))))
    scores.add(frozenset({0, 1, 2}))
    assert len(scores.learned_from["memory", frozenset({0, 1})]) == 3  # the people of fold 2
