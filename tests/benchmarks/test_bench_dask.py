"""The benchmark of clusters runs at a tiny size, and its constants are enough for the page on scaling."""

from __future__ import annotations

import json
import sys

import pytest

import bench_dask
import dask_on_paper

pytestmark = pytest.mark.slow


def run(main, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["command", *map(str, arguments)])
    main()


def test_tiny_run(tmp_path, monkeypatch, capsys):
    run(bench_dask.main, monkeypatch, "--tiny", "draw", "evaluate", "--out", tmp_path)
    found = json.loads((tmp_path / "bench_dask.json").read_text())
    assert found["draw"]["samples"] == bench_dask.SIZES["tiny"].n_rows
    assert "| 2.0e+04 pairs: CPU per pair (ns) |" in capsys.readouterr().out


def test_costs_on_paper(tmp_path, monkeypatch, capsys):
    constants = {
        "fit": {"CPU time per tree (s)": 1.0},
        "fit_features": 128,
        "overhead": {"per tree and chunk: CPU (ms)": 1.0},
        "draw": {"CPU per tree and sample (ns)": 100.0, "memory per sample (bytes)": 20.0},
        "search": {"CPU per query and row (ns)": 10.0},
    }
    (tmp_path / "constants.json").write_text(json.dumps(constants))
    run(dask_on_paper.main, monkeypatch, tmp_path / "constants.json")
    told = capsys.readouterr().out
    assert "| draw pairs on the client (hours) | 27.8 | 27.8 | 27.8 |" in told
    assert "| 100 queries, from memory (s) | 100 | 10 | 1 |" in told
    assert (
        dask_on_paper.forest(constants, 1_000)["passes over the data"]
        < dask_on_paper.forest(constants, 10)["passes over the data"]
    )


def test_unknown_parts_are_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(bench_dask.main, monkeypatch, "everything", "--out", tmp_path)
    assert "'everything' is not a part" in capsys.readouterr().err
