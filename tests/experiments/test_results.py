"""Logs of runs: nothing finished is lost, nothing is mixed, and what is written is whole."""

from __future__ import annotations

import json
from functools import partial

import pytest

from simtree._utils.files import write_atomically
from simtree.experiments._results import Order, RunLog, markdown_table, mean_and_spread, write_result

pytestmark = pytest.mark.slow


def square(number):
    if number < 0:
        raise RuntimeError("stopped")
    return {"square": number**2}


def tasks(*numbers):
    return {f"run {number}": partial(square, number) for number in numbers}


def test_finished_runs_are_kept_and_not_repeated(tmp_path, capsys):
    log = RunLog(tmp_path / "new" / "a.runs.jsonl", {"seed": 0})
    with pytest.raises(RuntimeError, match="stopped"):
        log.complete(tasks(1, 2, -1), n_jobs=1, what="squares")
    again = RunLog(log.file, {"seed": 0})
    assert again.found == {"run 1": {"square": 1}, "run 2": {"square": 4}}
    again.complete({**tasks(3), "run 1": partial(square, -1)}, n_jobs=1, what="squares")  # would fail if it was repeated
    assert again.found["run 3"] == {"square": 9}
    assert "1 of 2 runs are in" in capsys.readouterr().out


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    log = RunLog(tmp_path / "a.runs.jsonl", {"seed": 0})
    log.add("run 1", {"x": 1}, seconds=1.5)
    with log.file.open("ab") as file:
        file.write(b'{"run": "run 2", "fou')
    again = RunLog(log.file, {"seed": 0})
    assert set(again.found) == {"run 1"}
    again.add("run 2", {"x": 2}, seconds=0.5)
    whole = RunLog(log.file, {"seed": 0})
    assert whole.found == {"run 1": {"x": 1}, "run 2": {"x": 2}}
    assert whole.seconds == {"run 1": 1.5, "run 2": 0.5}


@pytest.mark.parametrize(
    "content", [b"", b"a letter", b"\n", b"[]\n", b"not json\n", b'{"settings": {}}\n{"run": 1}\n', b'{"settings": 3}\n']
)
def test_what_is_not_a_log_is_refused_and_left_alone(tmp_path, content):
    file = tmp_path / "a.runs.jsonl"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="not a log of runs; delete it or choose another folder"):
        RunLog(file, {"seed": 0})
    assert file.read_bytes() == content


def test_runs_with_other_settings_are_not_mixed_in(tmp_path):
    file = tmp_path / "a.runs.jsonl"
    RunLog(file, {"seed": 0, "sizes": (1, 2)})
    RunLog(file, {"seed": 0, "sizes": (1, 2)})
    with pytest.raises(ValueError, match="holds runs with seed=0, not 1; delete it or choose another folder with --out"):
        RunLog(file, {"seed": 1, "sizes": (1, 2)})


def test_parallel_runs_are_those_of_one_process(tmp_path):
    found = []
    for n_jobs in (1, 2):
        log = RunLog(tmp_path / f"{n_jobs}.runs.jsonl", {})
        log.complete(tasks(1, 2, 3, 4), n_jobs=n_jobs, what="squares")
        found.append(log.found)
    assert found[0] == found[1]


def test_a_result_says_where_it_came_from(tmp_path):
    order = Order(tmp_path, 1, 7, None, "simtree reproduce x --seed 7")
    write_result(order, "x", {"numbers": [[1, 2.5], [3, 4]], "names": ["a,  [1,  2] b"]}, lambda result: f"# {result['seed']}")
    text = (tmp_path / "x.json").read_text()
    result = json.loads(text)
    assert (result["command"], result["seed"], result["numbers"]) == (order.command, 7, [[1, 2.5], [3, 4]])
    assert result["names"] == ["a,  [1,  2] b"]
    assert "[1, 2.5]" in text
    assert {"simtree", "python", "numpy"} <= set(result["versions"])
    assert (tmp_path / "x.md").read_text() == "# 7\n"


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "a.txt"
    write_atomically(file, "old")

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_table():
    assert markdown_table(["a", "b"], [[1, "x"], ["---", 2]]).splitlines()[-1] == "| --- | 2 |"


def test_the_spread_is_left_out_for_one_run():
    assert mean_and_spread([0.12345]) == "0.123"
    assert mean_and_spread([1.0, 3.0], digits=1) == "2.0 ± 1.4"
