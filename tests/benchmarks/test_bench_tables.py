"""The benchmark of tables with holes: how holes are made, a quick run, and its page."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bench_tables as bench
import programs


@pytest.mark.parametrize("way", sorted(bench.WAYS))
def test_holes_have_the_share_that_was_asked_for(way, rng):
    X = rng.normal(size=(4000, 10)).astype(np.float32)
    holes = np.isnan(bench.with_holes(X, way, 0.3, 0))
    assert holes.mean() == pytest.approx(0.3, abs=0.02)
    far = np.abs(X) > 1.0
    assert (holes[far].mean() > 1.3 * holes[~far].mean()) == (way == "where extreme")
    assert (holes[:, 0] == holes[:, 1]).all() == (way == "in blocks")


def test_medians_are_those_of_the_training_samples():
    X, X_test = np.array([[1.0], [3.0], [np.nan]]), np.array([[np.nan], [7.0]])
    complete, complete_test = bench.medians_filled(X, X_test)
    np.testing.assert_array_equal(complete, [[1.0], [3.0], [2.0]])
    np.testing.assert_array_equal(complete_test, [[2.0], [7.0]])


def test_comparisons_that_are_lost_by_more_than_a_standard_error_are_listed():
    splits = {
        "1": {"simtree": [0.90, 0.5, 0.2], "LightGBM": [0.91, 0.5, 0.1]},
        "2": {"simtree": [0.92, 0.5, 0.2], "LightGBM": [0.94, 0.5, 0.3]},
    }
    worse, n_all = bench.behind({"results": {"at random, 10%": splits}})
    assert n_all == 3
    assert worse == ["at random, 10%, LightGBM, AUC: -0.0150 ± 0.0050"]


def test_costs_are_compared_as_a_whole_and_per_cell():
    case = {"peak": [2_000_000], "cells": 100}
    forest = {"complete": {"seconds": [1.0, 9.0, 2.0], **case}, "30 % missing": {"seconds": [3.0], **case, "cells": 200}}
    peer = {
        "complete": {"seconds": [1.0], "peak": [0], "cells": 0},
        "30 % missing": {"seconds": [1.5], "peak": [0], "cells": 0},
    }
    text = bench.cost_table({"found": {"forest": forest, "LightGBM": peer}})
    assert "| forest | 30 % missing | 3.00 | 2.0 | 200 | 1.500 | 0.750 | 1.000 |" in text
    assert "| LightGBM | 30 % missing | 1.50 | 0.0 | - | 1.500 | - | - |" in text


def test_costs_are_shown_for_each_data_set():
    case = {"seconds": [1.0], "peak": [1_000_000], "cells": 0}
    measured = {"n_pairs": 1_000, "found": {"boosting": {"complete": case}}}
    text = bench.tables({"costs": {"keystroke": measured, bench.SYNTHETIC: measured}})
    assert "## Costs: keystroke\n\n1,000 pairs at a time." in text
    assert "## Costs: synthetic, 40 features" in text


def test_costs_of_a_peer_are_measured_on_the_same_pairs():
    pytest.importorskip("lightgbm")
    seconds, peak, cells = bench.cost_of("LightGBM", 0.3, 200)
    assert seconds > 0.0
    assert peak >= 0
    assert cells == 0


@pytest.mark.slow
def test_quick_run_and_page(tmp_path):
    pytest.importorskip("lightgbm")
    out = tmp_path / "tables.json"
    finished = programs.call(bench.main, "--quick", "--out", str(out), folder=tmp_path)
    assert finished.returncode == 0, finished.stderr
    cases = json.loads(out.read_text())["accuracy"]["quick"]["results"]
    assert len(cases) == len(bench.WAYS) * len(bench.SHARES)
    assert all({"simtree", "LightGBM", "simtree, medians"} <= set(splits["1"]) for splits in cases.values())
    assert all(0.5 < splits["1"]["simtree"][0] <= 1.0 for splits in cases.values())
    page = tmp_path / "missing_measured.md"
    page.write_text(f"# Tables\n\n{bench.BEGIN}\nold\n{bench.END}\n\nEnd.\n")
    finished = programs.call(bench.main, "--page", "--out", str(out), "--docs", str(tmp_path), folder=tmp_path)
    assert finished.returncode == 0, finished.stderr
    text = page.read_text()
    assert "| in blocks, 30% | simtree | 0." in text
    assert "old" not in text
    assert text.endswith("End.\n")


def test_wrong_use_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("SIMTREE_DATA", raising=False)
    finished = programs.call(bench.main, "--out", str(tmp_path / "t.json"), folder=tmp_path)
    assert finished.returncode == 2
    assert "SIMTREE_DATA is not set" in finished.stderr.splitlines()[-1]
