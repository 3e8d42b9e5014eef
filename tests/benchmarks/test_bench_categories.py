"""The benchmark of categories runs and writes what it prints."""

from __future__ import annotations

import json

import pytest

import bench_categories
import programs

pytest.importorskip("lightgbm")


@pytest.mark.slow
def test_table_and_report(tmp_path):
    out = tmp_path / "categories.json"
    table = programs.call(bench_categories.main, "--quick", "--out", str(out), folder=tmp_path).stdout
    run = json.loads(out.read_text())["runs"]["synthetic"]["1"]
    ours = [f"{run[name]:.4f}" for name in bench_categories.OURS]
    assert f"| synthetic | {' | '.join(ours)} | {run['LightGBM']:.4f} |" in table
    assert min(run.values()) > 0.6
    page = tmp_path / "categories_measured.md"
    assert (
        programs.call(bench_categories.main, "--page", "--out", str(out), "--docs", str(tmp_path), folder=tmp_path).returncode
        == 0
    )
    assert page.read_text().endswith(table)


def test_pairs_of_parts_share_no_sample():
    table, y = bench_categories.synthetic()
    split = bench_categories.split_table(table, y, 1, (300, 200, 300))
    rows = [set(bench_categories.rows_of(pairs).ravel()) for pairs in (split.train, split.inner, split.validation, split.test)]
    assert not rows[0] & rows[3]
    assert not rows[1] & rows[2]
    assert rows[1] | rows[2] <= set(range(len(y))) - rows[3]


def test_tables_with_holes_need_their_folder(tmp_path):
    finished = programs.call(bench_categories.main, "--tables", "Soybean", "--out", str(tmp_path / "c.json"), folder=tmp_path)
    assert finished.returncode == 2
    assert "--mlbench is not given" in finished.stderr
