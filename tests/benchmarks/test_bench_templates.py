"""The benchmark of templates runs at a tiny size, and nobody meets a model that has seen them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(monkeypatch):
    """Run the benchmark in this process, without data."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delenv("SIMTREE_DATA", raising=False)
    import bench_templates as bench

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["bench_templates.py", *map(str, arguments)])
        bench.main()

    return run


def test_tiny_run(run, tmp_path, capsys):
    run("--tiny", "--folds", 4, "--out", tmp_path)
    report = json.loads((tmp_path / "templates.json").read_text())
    assert list(report["by_number_enrolled"]) == ["1", "4", "12"]
    assert all(0.0 <= rate < 0.4 for rate in report["mean_eer"].values())
    assert report["mean_eer"]["average of those as enrolled; learned"] == report["by_number_enrolled"]["12"]
    assert f"| scaled Manhattan | {report['mean_eer']['scaled Manhattan']:.4f} | " in capsys.readouterr().out


def test_simulation_of_the_promise(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import bench_enrolled as bench

    monkeypatch.setattr(bench, "N_TRUTH", 20_000)
    truth = bench.true_scores("normal 0.3", "probes", bench.Fusion("mean"))
    variance = 0.3**2 + bench.OF_PAIR**2 + bench.OF_SAMPLE**2 + (bench.OF_SAMPLE**2 + bench.NOISE**2) / bench.N_ENROLLED
    assert truth.std() == pytest.approx(np.sqrt(variance), rel=0.05)
    cell = bench.cell("normal 0.3", "independent", bench.Fusion("max"), 100, 2, 1)
    assert cell["n_promised"] == 2
    assert cell["n_broken"] == 0
    assert "| normal 0.3 | independent | max | 100 | 2 of 2 | 0 | 0.0" in bench.table({"cells": [cell]})


def test_the_page_is_that_of_the_stored_results(run, tmp_path):
    (tmp_path / "results").mkdir()
    for name in ("templates.json", "enrolled.json"):
        (tmp_path / "results" / name).write_bytes((ROOT / "docs" / "results" / name).read_bytes())
    run("--page", "--out", tmp_path / "results")
    assert (tmp_path / "templates.md").read_text() == (ROOT / "docs" / "templates.md").read_text()


def test_wrong_use_is_one_sentence(run, tmp_path, capsys):
    for arguments, message in (([], "SIMTREE_DATA"), (["--folds", 3], "models are trained without three of them.")):
        with pytest.raises(SystemExit):
            run(*arguments, "--out", tmp_path)
        assert message in capsys.readouterr().err.splitlines()[-1]
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
