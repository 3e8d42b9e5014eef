"""All benchmarks run at a tiny size and report what they measured; the page is what its command makes. No time decides."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

import bench_fit
import bench_roofs
import bench_scaling
import bench_score
import bench_search
import bench_split
import measure
import page
import programs
import run
from measure import AUC, COMPILATION, MEMORY, RATE, SECONDS, TPR, Goal, Line, Section, Share, Table, describe, joined

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark reads /proc")]


# The frame


def test_line_shows_median_and_spread():
    assert describe([]) == ""
    assert describe([0.5, 0.5]) == "0.5000"
    assert describe([3.0, 1.0, 2.0]) == "2 (1 to 3)"


def test_ratio_is_that_of_the_medians():
    lines = [Line("a", {SECONDS: [1.0, 3.0, 2.0]}), Line("b", {SECONDS: [4.0]}), Line("c", {}, "why")]
    shown = Table("title", lines, "b").as_markdown().splitlines()
    assert shown[0] == "| what | time (s) | ratio to b | note |"
    assert shown[2:] == ["| a | 2 (1 to 3) | 0.5 |  |", "| b | 4 | 1 |  |", "| c |  |  | why |"]


@pytest.mark.parametrize(
    ("value", "at_least", "met"), [(0.5, False, True), (2.0, False, False), (0.5, True, False), (1.0, True, True)]
)
def test_goal_bounds_from_its_side(value, at_least, met):
    assert Goal("g", value, 1.0, at_least).met is met


def test_section_survives_json():
    section = Section("t", [Table("a", [Line("x", {SECONDS: [1.0]}, "n")], "x")], [Goal("g", 1.0, 2.0)], {"fact": 1})
    assert Section.from_json(json.loads(json.dumps(asdict(section)))) == section


def test_runs_are_joined_in_order():
    assert joined([{"a": [1.0]}, {"a": [2.0], "b": [3.0]}]) == {"a": [1.0, 2.0], "b": [3.0]}


def test_compilation_is_what_the_first_of_two_calls_takes_longer(monkeypatch):
    """The first finds an empty cache, the second that of the first."""
    folders, times = [], iter([5.0, 2.0])

    def called(first_call):
        folders.append(Path(os.environ["NUMBA_CACHE_DIR"]))
        assert list(folders[-1].iterdir()) == [folders[-1] / "kernel"][: len(folders) - 1]
        (folders[-1] / "kernel").touch()
        return first_call()

    monkeypatch.setattr(measure, "in_fresh_process", called)
    assert measure.seconds_of_compilation(times.__next__) == 3.0
    assert folders[0] == folders[1]
    assert not folders[0].exists()


# The sections, in this process: starting others takes longer than all they do


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("samples")
    run.save_samples(place, "tiny")
    return place


@pytest.fixture
def here(monkeypatch):
    for module in (bench_fit, bench_score, bench_search, bench_split):
        monkeypatch.setattr(module, "in_fresh_process", lambda function, *arguments: function(*arguments))
    for module in (bench_fit, bench_split):
        monkeypatch.setattr(module, "seconds_of_compilation", lambda first_call: first_call())


@pytest.mark.slow
def test_a_fresh_process_is_another_one():
    assert measure.in_fresh_process(os.getpid) != os.getpid()


def test_split_section(folder, here):
    section = bench_split.section(folder, "tiny", 2)
    ours, *peers = section.tables[0].lines
    assert [line.name for line in peers] == ["LightGBM", "XGBoost", "HistGradientBoosting"]
    for line in (ours, *peers):
        if line.note != "not run: not installed":
            assert len(line.metrics[bench_split.SEARCH]) == 2
            assert set(line.metrics) == {SECONDS, bench_split.BINNING, bench_split.SEARCH, MEMORY}
    assert ours.metrics[SECONDS] == [
        b + s for b, s in zip(ours.metrics[bench_split.BINNING], ours.metrics[bench_split.SEARCH], strict=True)
    ]
    assert len(section.goals) == 3
    assert section.facts[COMPILATION] > 0


@pytest.mark.filterwarnings("ignore:refill=True lowers")
def test_fit_section(folder, here):
    section = bench_fit.section(folder, "tiny", 1)
    mnist, keystroke, variants = section.tables
    for line in (*mnist.lines, *keystroke.lines, *variants.lines):
        assert line.metrics or line.note.startswith("not run")
        assert not line.metrics or set(line.metrics) == {SECONDS, MEMORY, AUC, TPR}
    assert "GB" in mnist.line("LightGBM, 2,000 pairs").note
    assert keystroke.line("LightGBM, 2,000 pairs").metrics
    llr, rank = variants.lines[:2]
    assert llr.metrics[SECONDS] == rank.metrics[SECONDS]
    assert llr.metrics[AUC] != rank.metrics[AUC]
    assert len(section.goals) == 13


def test_scaling_section(folder, tmp_path):
    section = bench_scaling.section(folder, "tiny", 1)
    assert [len(table.lines) for table in section.tables] == [2, 2, 2, 2]
    assert len(section.goals) == 4
    assert len(bench_scaling.draw(section).axes) == 3


def test_score_section(folder, here, monkeypatch):
    def refuses(text):
        raise OSError("no compiler")

    monkeypatch.setattr(bench_score, "COMPILERS", {"refuses": refuses, "echo": lambda text: lambda matrix: matrix})
    section = bench_score.section(folder, "tiny", 1)
    given, block = section.tables[:2]
    assert given.line("refuses").note == "does not run here: OSError: no compiler"
    assert given.line("echo").metrics[COMPILATION]
    for name in (bench_score.OURS, bench_score.BUILT):
        assert set(given.line(name).metrics) == {RATE, SECONDS, MEMORY, AUC, TPR}
        assert block.line(name).metrics[RATE]
    assert len(section.goals) == 6


def test_fewest_trees_that_are_as_good(folder):
    samples = bench_score.Samples.load(folder / "keystroke.npz")
    forest = bench_score.Spec("simtree", 500, {"n_estimators": 5, "max_depth": 3}).fit(samples.X, samples.y)
    for auc, tpr, n_trees, what in ((0.0, 0.0, 2, [AUC, TPR]), (1.1, 0.0, 5, []), (0.0, 1.1, 2, [AUC])):
        found, reached = bench_score.as_good_as(forest, {AUC: [auc], TPR: [tpr]}, samples, 1_000)
        assert (len(found.trees_), reached) == (n_trees, what)
    assert len(forest.trees_) == 5


def test_search_section(folder, here):
    pytest.importorskip("faiss", reason="a peer of the extra simtree[bench]")
    section = bench_search.section(folder, "tiny", 1)
    accuracy, one, many, *few, memory = section.tables
    assert accuracy.lines[0].name == bench_search.EUCLIDEAN
    for table in (one, many):
        assert [line.name for line in table.lines] == ["simtree", "FAISS flat", "LightGBM"]
    assert [[line.name for line in table.lines] for table in few] == [["top_k", "pairwise_score"]] * len(
        bench_search.SMALL_ROWS
    )
    assert memory.lines[0].metrics[MEMORY][0] > 0
    assert len(section.goals) == 4 + len(few)


def test_tests_answered_are_those_of_the_walk(folder):
    samples = bench_score.Samples.load(folder / "mnist.npz")
    tree = bench_score.Spec("simtree", 500, {"n_estimators": 1, "max_depth": 3}).fit(samples.X, samples.y).tree_
    pairs = bench_roofs.draw(samples.y, 50)
    values = tree.pair_map.plain_values(bench_roofs.SamplePairs(samples.X, samples.X, pairs.first, pairs.second))
    answered = 0
    for p in range(50):
        at = 0
        while at >= 0:
            answered += 1
            below = values[tree.coordinate[at], p] <= tree.nodes.threshold[at]
            at = (tree.nodes.if_le if below else tree.nodes.if_gt)[at]
    assert answered == bench_roofs.count_tests(tree, bench_roofs.SamplePairs(samples.X, samples.X, pairs.first, pairs.second))


def test_some_lines_of_a_fit_are_measured_again(folder, here):
    size, name = bench_fit.SIZES["tiny"], bench_fit.our_name("keystroke", bench_fit.SIZES["tiny"])
    plans = {data: bench_fit.plans_of(data, size, 1, 8) for data, _ in bench_fit.DATA}
    stored = [
        {
            "title": data,
            "lines": [
                {"name": p.name, "metrics": {metric: [9e9] for metric in (SECONDS, MEMORY, AUC, TPR)}, "note": p.note}
                for p in plans[data]
            ],
            "relative_to": None,
        }
        for data in plans
    ]
    known = {"tables": stored, "goals": [], "facts": {}, "setting": {}}
    found = bench_fit.measure_again(folder, "tiny", 1, known, re.compile("keystroke: .*refill$"))
    changed = [
        (table["title"], line) for table in found["tables"] for line in table["lines"] if bench_fit.AGAIN in line["note"]
    ]
    assert [(title, line["name"]) for title, line in changed] == [("keystroke", name)]
    assert 0 < changed[0][1]["metrics"][SECONDS][0] < 9e9
    ratio = next(goal for goal in found["goals"] if goal["name"].startswith("keystroke: time of the forest"))
    assert ratio["value"] == pytest.approx(changed[0][1]["metrics"][SECONDS][0] / 9e9)
    with pytest.raises(ValueError, match="matches no line"):
        bench_fit.measure_again(folder, "tiny", 1, known, re.compile("wood"))


# The command


@pytest.mark.filterwarnings("ignore:No artists with labels")  # the known section has no table
def test_command_writes_and_keeps_what_it_does_not_measure(tmp_path):
    known = {"scale": "tiny", "sections": {"scaling": asdict(Section("Known")) | {"setting": {}}}}
    known["sections"]["scaling"]["tables"] = []
    (tmp_path / "bench.json").write_text(json.dumps(known))
    finished = programs.call(run.main, "--out", str(tmp_path), "--tiny", "--only", "roofs", folder=tmp_path)
    assert finished.returncode == 0, finished.stderr
    report = json.loads((tmp_path / "bench.json").read_text())
    assert list(report["sections"]) == ["scaling", "roofs"]
    assert report["sections"]["roofs"]["setting"]["repeats"] == 1
    assert {file.name for file in tmp_path.iterdir()} == {"bench.json", "bench.md", "bench_scaling.png"}
    assert (tmp_path / "bench.md").read_text().strip().endswith(finished.stdout.split("Written")[0].strip())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [((), "SIMTREE_DATA is not set"), (("--only", "tree,wood"), "'wood' is not a section; choose from tree,split,fit")],
)
def test_wrong_use_is_one_sentence(tmp_path, arguments, sentence):
    finished = programs.call(run.main, "--out", str(tmp_path), *arguments, folder=tmp_path)
    assert finished.returncode == 2
    assert sentence in finished.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


# The page


def test_committed_page_is_generated_from_the_committed_results():
    report = json.loads((ROOT / "docs" / "results" / "bench.json").read_text())
    assert report["scale"] == "full"
    assert set(report["sections"]) == set(run.SECTIONS)
    assert (ROOT / "docs" / "performance.md").read_text() == page.make_page(report)


def test_page_says_which_goals_are_not_met():
    section = asdict(Section("T", [], [Goal("this", 2.0, 1.0), Goal("that", 0.5, 1.0)]))
    assert page.section_as_markdown("split", section).endswith("Not met: this.")


@pytest.mark.parametrize(("others", "warned"), [(0.02, False), (0.4, True)])
def test_page_warns_of_a_machine_that_was_not_quiet(others, warned):
    setting = {"command": "run", "seed": 0, "versions": {"python": "3"}, "machine": {"cores": 2}, "others": others}
    assert ("unreliable" in page.where(setting)) is warned


def test_share_of_others_is_what_is_busy_without_this_process(monkeypatch):
    monkeypatch.setattr(Share, "_now", staticmethod(iter([(0.0, 0.0, 0.0), (10.0, 6.0, 4.0)]).__next__))
    assert Share().of_others() == pytest.approx(0.2)
