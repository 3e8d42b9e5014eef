"""The check of the promise about strangers: its truth, its verdict, and the table of the documentation."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bench_open_set as bench
from simtree.gallery._strangers import n_above


def test_a_repeat_counts_by_hand():
    study = bench.simulated(400, (100,))
    rng = np.random.default_rng([3, 100, 59])
    people = rng.permutation(400)
    drawn = people[100:][rng.integers(0, 300, 59)]
    maxima = np.sort([max(study.highest[one, other] for other in people[:100]) for one in drawn])[::-1]
    threshold = np.nextafter(np.float64(maxima[n_above(59, 0.05, 0.95)]), np.inf)
    alarms = [max(study.highest[one, other] for other in people[:100]) >= threshold for one in people[100:]]
    assert bench.one_repeat(study, 100, 0.05, 59, False, 3) == pytest.approx(np.mean(alarms))
    assert bench.one_repeat(study, 100, 0.05, 59, True, 3) is None  # twice as large: too few strangers
    assert bench.one_repeat(study, 100, 0.05, 120, True, 3) < 0.2


def test_the_highest_score_is_over_all_samples():
    scores = np.arange(25.0).reshape(5, 5)
    y = np.array([3, 3, 5, 6, 6])
    np.testing.assert_array_equal(bench.highest_scores(scores, y), [[6, 7, 9], [11, 12, 14], [21, 22, 24]])


def test_tiny_run_keeps_the_promise():
    rows = bench.run([bench.simulated(400, (60,))], 40)
    assert [row["repeats"] for row in rows] == [40, 40, 40]
    assert not bench.broken([row for row in rows if not row["grown"]])
    five = {**rows[0], "exceeded": 5}  # 2 are expected, and 4.8 allowed
    assert bench.broken([five]) == [bench.line(five), bench.line({**five, "n_enrolled": 0})]
    assert bench.broken([five, {**five, "exceeded": 0}, {**five, "exceeded": 0}]) == [bench.line(five)]
    assert not bench.broken([{**five, "exceeded": 4}])
    grown = {**five, "grown": True, "exceeded": 4}
    assert not bench.broken([grown])
    grown["exceeded"] = 5
    said = [f"{bench.line(row)} {bench.ASSUMES}" for row in (grown, {**grown, "n_enrolled": 0})]
    assert bench.broken([grown, {**five, "exceeded": 4}]) == said


def test_the_page_has_the_table_of_the_results(tmp_path):
    stored = json.loads(bench.RESULTS.read_text())
    assert [said for said in bench.broken(stored["rows"]) if not said.endswith(bench.ASSUMES)] == []
    grown = [row for row in bench.above(stored["rows"]) if row["grown"]]
    assert [(row["n_enrolled"], row["exceeded"]) for row in grown] == [(100, 31), (100, 30)]  # as the page says
    assert "above (LFW with 100 at 0.02: 31 of 300; LFW with 100 at 0.05: 30 of 300)" in bench.table(stored)
    assert stored["repeats"] >= 300
    assert {row["n_enrolled"] for row in stored["rows"] if row["population"] == "LFW"} == {100, 300, 1000}
    assert f"{bench.BEGIN}\n{bench.table(stored)}\n{bench.END}" in bench.PAGE.read_text()
    page = tmp_path / "page.md"
    page.write_text(f"before\n{bench.BEGIN}\nold\n{bench.END}\nafter\n")
    bench.write_page(stored, page)
    assert page.read_text() == f"before\n{bench.BEGIN}\n{bench.table(stored)}\n{bench.END}\nafter\n"
