"""Tried as a new user would: a CSV of samples, four commands, and there is a model, a promised threshold, a table, pictures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import programs
import simtree
from simtree.cli._app import app

pytestmark = pytest.mark.slow


def timings():
    """Timings of one password typed by 130 people: few of each, with long tails."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(130), 5)
    return np.exp(rng.normal(size=(130, 8))[y] + 0.5 * rng.standard_t(3, size=(650, 8)) - 2), y


def test_four_commands_from_a_table_to_a_decision(tmp_path):
    X, y = timings()
    table = pd.DataFrame(X, columns=[f"t{j}" for j in range(X.shape[1])])
    table.insert(0, "subject", [f"s{k:02d}" for k in y])
    table[y < 30].to_csv(tmp_path / "train.csv", index=False)
    table[y >= 30].to_csv(tmp_path / "others.csv", index=False)
    n = int((y >= 30).sum())
    rows = np.column_stack([np.zeros(200, dtype=int), np.random.default_rng(1).integers(1, n, 200)])
    pd.DataFrame(rows, columns=["first", "second"]).to_csv(tmp_path / "pairs.csv", index=False)

    def command(line, code=0):
        # Wide, so that no sentence is broken into lines.
        done = programs.call(app, *line.split()[1:], folder=tmp_path, COLUMNS="200")
        assert done.returncode == code, done.stderr
        return done

    command("simtree fit train.csv --label subject -o people.simtree")
    promised = command("simtree calibrate people.simtree others.csv --label subject --max-fpr 0.05")
    evaluated = command("simtree evaluate people.simtree others.csv --label subject --plots pictures")
    command("simtree score people.simtree pairs.csv others.csv -o scores.csv")

    model = simtree.load(tmp_path / "people.simtree")
    report = model.threshold_report_
    assert (report.max_fpr, report.confidence, report.n_identities) == (0.05, 0.95, 100)
    assert report.promise in promised.stdout
    assert report.promise in evaluated.stdout
    assert {"det.png", "roc.png", "scores.png", "threshold.png"} <= {file.name for file in (tmp_path / "pictures").iterdir()}
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert scores["accepted"].tolist() == (scores["score"] >= model.threshold_).astype(int).tolist()

    before = (tmp_path / "people.simtree").read_bytes()
    refused = command("simtree calibrate people.simtree others.csv --label subject --max-fpr 0.001", code=1)
    assert "max_fpr=0.001 at confidence=0.95 cannot be guaranteed" in refused.stderr
    assert (tmp_path / "people.simtree").read_bytes() == before
