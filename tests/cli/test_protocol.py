"""Probes against enrolled rows from the command line: the numbers of the library, and one sentence for each mistake."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import simtree
from simtree.cli._app import app

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A folder with a table, a model, and the samples of the table."""
    folder = tmp_path_factory.mktemp("protocol")
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(150), 5)
    X = rng.normal(size=(150, 3))[y] + 0.3 * rng.normal(size=(750, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    enrol, time = np.arange(750) % 5 < 3, np.arange(750.0)
    model = simtree.DistanceSimilarity(metric="euclidean").fit(frame, y)
    model.fit_fusion(frame, y, enrol=enrol, time=time).save(folder / "model.simtree")
    frame = frame.assign(who=[f"p{k}" for k in y], enrolled=np.where(enrol, "yes", "no"), when=time)
    frame.to_csv(folder / "people.csv", index=False)
    return folder, model, frame[["a", "b", "c"]], y, enrol, time


def run(folder, verb, *options, code=0):
    paths = [str(folder / "model.simtree"), str(folder / "people.csv"), "--label", "who"]
    done = CliRunner().invoke(app, [verb, *paths, *options], env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    return done


def test_evaluate_and_calibrate(people):
    folder, model, X, y, enrol, time = people
    options = ["--enrol", "enrolled", "--fusion", "learned", "--time", "when", "--json"]
    found = json.loads(run(folder, "evaluate", *options).stdout)
    expected = simtree.evaluate(model, X, y, enrol=enrol, fusion="learned", time=time)
    assert found["auc"]["value"] == pytest.approx(expected.auc.value)
    assert (found["fusion"], found["n_enrolled"], found["at_threshold"]) == ("learned", 150, None)
    out = folder / "calibrated.simtree"
    chosen = json.loads(run(folder, "calibrate", *options, "--max-fpr", "0.05", "--out", str(out)).stdout)
    model.calibrate_threshold(X, y, max_fpr=0.05, enrol=enrol, fusion="learned", time=time)
    assert chosen["threshold"] == pytest.approx(model.threshold_)
    assert "for scores with enrolled identities (learned)" in chosen["promise"]
    assert simtree.load(out).threshold_report_.fusion == "learned"
    again = CliRunner().invoke(app, ["evaluate", str(out), str(folder / "people.csv"), "--label", "who", *options])
    assert json.loads(again.stdout)["at_threshold"]["fpr"] == pytest.approx(chosen["fpr"])
    assert "enrolled identities" in run(folder, "evaluate", "--enrol", "enrolled").stdout


def test_a_threshold_is_for_one_number_of_scores(people):
    folder, out = people[0], people[0] / "top_mean.simtree"
    options = ["--enrol", "enrolled", "--fusion", "top_mean", "--n-best", "2", "--json"]
    chosen = json.loads(run(folder, "calibrate", *options, "--max-fpr", "0.05", "--out", str(out)).stdout)
    assert (chosen["fusion"], chosen["n_best"]) == ("top_mean", 2)
    for n_best, expected in (("2", pytest.approx(chosen["fpr"])), ("3", None)):
        command = [
            "evaluate",
            str(out),
            str(folder / "people.csv"),
            "--label",
            "who",
            *options[:4],
            "--n-best",
            n_best,
            "--json",
        ]
        found = json.loads(CliRunner().invoke(app, command).stdout)["at_threshold"]
        assert (found and found["fpr"]) == expected
    assert "--n-best goes with --enrol" in run(folder, "evaluate", "--n-best", "2", code=2).stderr


def test_a_report_of_probes_against_enrolled_rows(people):
    folder, model, X, y, enrol, time = people
    page = folder / "page.html"
    options = ["--enrol", "enrolled", "--fusion", "learned", "--time", "when", "--enrolled", "1,3", "-o", str(page), "--json"]
    found = json.loads(run(folder, "report", *options).stdout)
    expected = simtree.evaluate(model, X, y, enrol=enrol, fusion="learned", time=time)
    assert found["auc"]["value"] == pytest.approx(expected.auc.value)
    assert (found["name"], found["fusion"], found["n_enrolled"]) == ("DistanceSimilarity", "learned", 150)
    assert "OTHER.csv --label who --enrol enrolled --fusion learned --time when" in page.read_text()
    alone = json.loads(run(folder, "report", "--fusion", "mean", "--enrolled", "1,2", "-o", str(page), "--json").stdout)
    assert alone["fusion"] is None
    assert "the mean of the scores with its samples" in page.read_text()
    assert "--fusion goes with --enrol" in run(folder, "report", "--fusion", "mean", "-o", str(page), code=2).stderr


def test_fit_fusion_is_that_of_the_library(people):
    folder, _, X, y, enrol, time = people
    expected = simtree.DistanceSimilarity(metric="euclidean").fit(X, y).fit_fusion(X, y, enrol=enrol, time=time)
    out = folder / "fused.simtree"
    options = ["--enrol", "enrolled", "--time", "when", "--out", str(out)]
    found = json.loads(run(folder, "fit-fusion", *options, "--json").stdout)
    assert simtree.load(out).learned_fusion_ == expected.learned_fusion_
    assert (found["n_enrolled"], found["n_probes"]) == (450, 300)
    assert found["sharpness"] == expected.learned_fusion_.sharpness
    assert "450 enrolled rows" in run(folder, "fit-fusion", *options).stdout


def test_mistakes_are_one_sentence(people):
    folder = people[0]
    assert "--fusion goes with --enrol" in run(folder, "evaluate", "--fusion", "mean", code=2).stderr
    said = run(folder, "evaluate", "--enrol", "who", code=1).stderr
    assert "column 'who' has 'p0' in data row 1; write true for enrolled rows and false for others." in said
    said = run(folder, "calibrate", "--enrol", "enrolled", "--fusion", "learned", "--max-fpr", "0.05", code=1).stderr
    assert "depends on the age of samples; give time=" in said
