from __future__ import annotations

import pytest

import bench_boosting_speed as bench
from measure import MEMORY
from problems import clusters

pytest.importorskip("lightgbm")
pytestmark = pytest.mark.slow


def test_section_measures_all_models_on_the_same_pairs(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "in_fresh_process", lambda function, *arguments: function(*arguments))
    clusters().save(tmp_path / "mnist.npz")
    fit, scored = (section := bench.section(tmp_path, "tiny", 1)).tables
    assert [line.name for line in fit.lines] == list(bench.FITS)
    for line in fit.lines:
        first, further = line.median(bench.FIRST), line.median(bench.PER_ROUND)
        assert min(first, further, line.median(MEMORY)) > 0
        assert line.median(bench.HUNDRED) == pytest.approx(first + 99 * further)
    assert all(fit.line(name).median("AUC") > 0.8 for name in (bench.OURS, bench.BASE))
    assert {bench.OURS, bench.BUILT, bench.READY} <= {line.name for line in scored.lines}
    names = [goal.name for goal in section.goals]
    assert names[2] == "memory above the input, relative to LightGBM, float64"
    memory = fit.line(bench.OURS).median(MEMORY) / fit.line(bench.BASE).median(MEMORY)
    assert section.goals[2].value == pytest.approx(memory)


def test_sequence_gives_the_coordinates_of_the_matrix():
    samples = clusters()
    pairs = bench.draw(samples.y, 2_000)
    rows = bench.row_numbers(pairs)
    matrix = bench.materialise(samples.X, rows)
    by_matrix, by_sequence = (
        bench.fit_lightgbm(samples.X, rows, pairs.same, 5, [], **options).predict(matrix) for options in ({"dtype": float}, {})
    )
    assert by_sequence == pytest.approx(by_matrix, abs=0.05)
