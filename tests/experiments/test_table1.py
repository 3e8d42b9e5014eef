"""Table 1 at a tiny size."""

from __future__ import annotations

import copy
import json
from functools import partial

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest

from simtree.experiments import _table1 as table1
from simtree.experiments._results import Order

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table1, "SIZES", [128, 256, 1024])
        patch.setattr(table1, "FOREST_SIZE", 5)
        table1.run(Order(folder, 2, 0, 1, "simtree reproduce table1 --runs 2 --extended"), extended=True, n_test=20_000)
    return folder


@pytest.fixture(scope="module")
def result(out):
    return json.loads((out / "table1.json").read_text())


def test_rows_are_those_of_the_paper(result):
    rows = result["rows"]
    assert [row["experiment"] for row in rows] == ["class asymmetry"] * 4 + ["model complexity"] * 4 + ["model bias"] * 4
    assert [row["p_plus"] for row in rows] == [0.5, 0.1, 1e-3, 2e-4] + [0.5] * 8
    assert [row["depth_law"] for row in rows] == [3, 3, 3, 3, 1, 2, 3, 4, 3, 3, 3, 3]
    assert [row["depth"] for row in rows] == [3, 3, 3, 3, 1, 2, 3, 4, 1, 2, 3, 8]
    assert [row["n_train"] for row in rows[4:8]] == [188, 366, 1118, 5329]  # 150 (5/4)^(D_gt^2)
    assert all(row["runs"] == 2 for row in rows)


def test_statistics_are_those_of_the_runs(result):
    for row in result["rows"]:
        for name in ("d1", "dinf"):
            runs = row["every_run"][name]
            assert row[f"{name}_mean"] == pytest.approx(np.mean(runs))
            assert row[f"{name}_sd"] == pytest.approx(np.std(runs, ddof=1))
            assert all(-0.01 <= value <= 1 for value in runs)
        assert all(l1 >= abs(d1) - 1e-12 for l1, d1 in zip(row["every_run"]["l1"], row["every_run"]["d1"], strict=True))


def test_files_and_section(out, result):
    text = (out / "table1.md").read_text()
    assert text == table1.section(result) + "\n"
    assert len(result["growing"]["theorem"]["every_run"]) == 3
    assert "| class asymmetry | 0.0002 | 3 | 3 | 1118 | 0.45 |" in text
    assert "Extended table: other models" in text
    assert (out / "table1_growing.png").read_bytes().startswith(b"\x89PNG")
    assert result["growing"]["theorem_depth"] == [2, 2, 3]
    assert [set(row["models"]) for row in result["extended"]] == [{"pruned", "forest", "best_depth"}] * 12


def test_marks_and_intervals():
    row = {"d1_mean": 0.085, "d1_sd": 0.05, "runs": 400}
    assert table1._cells(row, "d1", 0.07, 0.015) == ["0.07", "0.085", "0.100", "0.080 to 0.090", "✓"]
    assert table1._cells({**row, "d1_mean": 0.0851}, "d1", 0.07, 0.015)[-1] == "✗"
    assert table1._cells({**row, "d1_sd": None}, "d1", 0.07, 0.015)[2:4] == ["-", "-"]


def test_rows_that_the_forest_lowers_are_counted(result):
    changed = copy.deepcopy(result)
    for row, other in zip(changed["rows"], changed["extended"], strict=True):
        other["models"]["forest"]["d1_mean"] = row["d1_mean"] + (0.01 if row["depth"] == 8 else -0.01)
    assert "The forest lowers D_1 in 9 of the 10 rows with p+ of at least 0.1." in table1.section(changed)


def test_pairs_of_one_sign_score_alike():
    trial = table1.Trial.draw(3, 50, 0.0, 1000, (0, 1))
    assert not trial.same.any()
    found = trial.distances(partial(table1.fit_tree, depth=3))
    assert found["d1"] == pytest.approx(trial.law.optimal_auc - 0.5)
    best = trial.law.optimal_roc
    assert found["dinf"] == pytest.approx(np.max(best.tpr - best.fpr))


def test_the_best_depth_grows_with_the_pairs():
    few, many = (
        [table1.fit_best_depth(table1.Trial.draw(3, n, 0.5, 10, (7, run))).max_depth_ for run in range(4)] for n in (30, 3_000)
    )
    assert np.mean(many) > np.mean(few)


def test_a_deep_tree_has_the_scores_of_shallower_ones():
    trial = table1.Trial.draw(3, 500, 0.5, 200, (0, 5))
    deep = table1.fit_tree(trial, depth=8)
    for depth in (1, 3, 8):
        shallow = table1.fit_tree(trial, depth=depth).pair_score(trial.test_pairs)
        np.testing.assert_array_equal(table1.scores_at(deep.tree_, depth)[deep.apply(trial.test_pairs)] * 2**depth, shallow)


def test_rare_pairs_are_not_cross_validated():
    trial = table1.Trial.draw(3, 300, 0.02, 10, (1, 2))
    assert 1 <= np.count_nonzero(trial.same) < 10
    whole, pruned = table1.fit_tree(trial, depth=3), table1.fit_pruned(trial, depth=3)
    np.testing.assert_array_equal(whole.tree_.nodes.threshold, pruned.tree_.nodes.threshold)
    assert table1.fit_best_depth(trial).max_depth_ == 1
