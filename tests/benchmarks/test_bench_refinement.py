from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import bench_refinement as bench
from problems import clusters, draw, row_numbers
from simtree import SimilarityForest


@pytest.fixture(scope="module")
def fitted():
    samples = clusters()
    forest = SimilarityForest(n_estimators=3, n_pairs=1_000, max_depth=4, random_state=0).fit(samples.X, samples.y)
    fresh = draw(samples.y, 2_000, seed=1)
    start = np.concatenate([tree.llr for tree in forest.trees_]) / 3
    return forest, samples, fresh, bench.indicators(forest, samples.X, row_numbers(fresh)), start


def test_values_of_cells_add_up_to_the_scores(fitted):
    forest, samples, fresh, cells, start = fitted
    np.testing.assert_allclose(cells @ start, forest.pair_score(row_numbers(fresh), samples.X), rtol=1e-9, atol=1e-9)


def test_a_large_penalty_keeps_the_ranking_and_a_small_one_fits_the_pairs(fitted):
    *_, fresh, cells, start = fitted

    def auc(penalty):
        return bench.figures(cells @ bench.refined(cells, fresh.same, start, penalty, 50), fresh.same)[0]

    plain = bench.figures(cells @ start, fresh.same)[0]
    assert auc(1e9) == pytest.approx(plain, abs=1e-6)
    assert auc(1.0) > plain + 0.005


def test_command_prints_what_it_writes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["bench_refinement.py", "--tiny", "--data", "mnist", "--seeds", "2", "--out", str(tmp_path)]
    )
    bench.main()
    runs = json.loads((tmp_path / "bench_refinement.json").read_text())["mnist"]
    mean = np.mean([run[bench.PLAIN][0] for run in runs])
    assert f"| {bench.PLAIN} | {mean:.4f} |" in capsys.readouterr().out
