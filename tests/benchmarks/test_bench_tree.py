"""The benchmark runs, reports each row, and says what is missing; how fast anything is decides no test."""

from __future__ import annotations

import json
import statistics
import sys

import pytest

import bench_tree
import programs

ROWS = ["fit", "second goal", "peak memory", "scoring", "import", "compilation", "sampling", "AUC"]
BESIDE_SKLEARN = {"fit", "second goal", "peak memory", "import", "AUC"}
CONTEXT = {"sampling", "AUC"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark reads /proc")]


def run(folder, *arguments, **variables):
    """The benchmark, without a data folder unless one is given."""
    return programs.call(bench_tree.main, "--out", str(folder), *arguments, folder=folder, **variables)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Table and report of one quick run; imports are measured in fresh processes, memory and compilation in this one."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_tree, "in_fresh_process", lambda function, *arguments: function(*arguments))
        patch.setattr(bench_tree, "seconds_of_compilation", lambda first_call: first_call())
        finished = run(folder, "--quick", "--repeats", "1")
    assert finished.returncode == 0, finished.stderr
    assert [file.name for file in folder.iterdir()] == ["bench_tree.json"]
    return finished.stdout, json.loads((folder / "bench_tree.json").read_text())


def test_report_says_how_it_was_made(quick):
    _, report = quick
    assert report["seed"] == 0
    assert report["repeats"] == 1
    assert report["quick"] is True
    assert "--quick --repeats 1" in report["command"]
    assert set(report["versions"]) >= {"python", "numpy", "numba", "scikit-learn", "simtree"}
    assert report["X"]["dtype"] == "float32"
    assert report["X"]["c_contiguous"] is True
    assert report["machine"]["cores"] >= 1


def test_every_row_has_its_runs_and_a_computed_verdict(quick):
    _, report = quick
    assert len(report["rows"]) == len(ROWS)
    for name, row in zip(ROWS, report["rows"], strict=True):
        assert name in row["name"]
        assert len(row["simtree"]) == 1
        assert len(row["scikit_learn"]) == (name in BESIDE_SKLEARN)
        assert (row["goal"] is None) == (row["met"] is None) == (name in CONTEXT)
        if row["ratio"] is not None:
            assert row["ratio"] == statistics.median(row["simtree"]) / statistics.median(row["scikit_learn"])
            assert row["met"] == (row["ratio"] <= row["goal"])


def test_table_has_all_rows(quick):
    table, report = quick
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")]
    assert lines[0] == ["what", "simtree", "scikit-learn", "ratio", "goal", "met"]
    verdicts = {True: "yes", False: "no", None: ""}
    for cells, row in zip(lines[2:], report["rows"], strict=True):
        assert cells[0].startswith(row["name"])
        assert cells[-1] == verdicts[row["met"]]


def test_missing_data_is_one_sentence(tmp_path):
    finished = run(tmp_path)
    assert finished.returncode == 2
    assert finished.stderr == "SIMTREE_DATA is not set; set it to the folder that holds MNIST, or pass --quick.\n"
    assert list(tmp_path.iterdir()) == []


def test_wrong_data_folder_is_one_sentence(tmp_path):
    finished = run(tmp_path, SIMTREE_DATA=str(tmp_path / "nowhere"))
    assert finished.returncode == 2
    assert finished.stderr.startswith("SIMTREE_DATA=")
    assert finished.stderr.count("\n") == 1
