"""`simtree report` and `simtree set-threshold`."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import simtree
from simtree.cli._app import app

pytestmark = pytest.mark.slow


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model and the table of people it has not seen."""
    made = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(60), 4)
    table = pd.DataFrame(rng.normal(size=(60, 4))[codes] + 0.4 * rng.normal(size=(240, 4)), columns=list("abcd"))
    names = np.array([f"Xanthippe{code}" for code in codes])
    simtree.SimilarityForest(n_estimators=3, n_pairs=2_000, random_state=0).fit(table[:120], names[:120]).save(
        made / "m.simtree"
    )
    table.insert(0, "the person", names)
    table.insert(1, "device", np.where(codes % 2, "phone", "pad"))
    table[120:].to_csv(made / "test.csv", index=False)
    return made


def test_a_report_is_written(folder, tmp_path):
    page = tmp_path / "new" / "report.html"
    done = run("report", folder / "m.simtree", folder / "test.csv", "--label", "the person", "--by", "device", "-o", page)
    assert f"Written: {page}" in done.stderr
    assert "At threshold" in done.stdout
    text = page.read_text()
    assert "By device" in text
    for kind, file in (("model", "m.simtree"), ("data", "test.csv")):
        digest = hashlib.sha256((folder / file).read_bytes()).hexdigest()
        assert f'<th scope="row">SHA-256 of the {kind} file</th><td><code>{digest}</code>' in text
    assert "Xanthippe" not in text
    assert f"simtree calibrate {folder / 'm.simtree'} OTHER.csv --label 'the person'" in text
    result = json.loads(
        run(
            *("report", folder / "m.simtree", folder / "test.csv", "--label", "the person", "-o", page),
            *("--with-samples", "--image-shape", "2x2", "--unit", "samples", "--enrolled", "1,3", "--json"),
        ).stdout
    )
    assert result["bytes"] == page.stat().st_size
    assert result["unit"] == "samples"
    assert "Xanthippe" in page.read_text()
    assert "How many samples to enrol" in page.read_text()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--image-shape", "28"], 2, "--image-shape 28 is not height x width"),
        (["--image-shape", "3x3"], 1, "image_shape=(3, 3) does not fit samples with 4 features"),
        (["--by", "colour"], 1, "colour"),
        (["--enrolled", "1;2"], 2, "--enrolled 1;2 is not a list of numbers"),
        (["--enrolled", "4"], 1, "enrolled=4 needs two identities with 5 samples or more"),
    ],
)
def test_bad_options_leave_no_file(folder, tmp_path, options, code, message):
    page = tmp_path / "report.html"
    done = run("report", folder / "m.simtree", folder / "test.csv", "--label", "the person", "-o", page, *options, code=code)
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert not page.exists()


@pytest.mark.parametrize("threshold", [1.25, -3.5])
def test_a_threshold_is_set_without_a_guarantee(folder, tmp_path, threshold):
    before = (folder / "m.simtree").read_bytes()
    done = run("set-threshold", folder / "m.simtree", threshold, "-o", tmp_path / "new.simtree")
    assert f"threshold {threshold:g} instead of" in done.stdout
    assert "without a guarantee" in done.stdout
    assert simtree.load(tmp_path / "new.simtree").threshold_ == threshold
    assert (folder / "m.simtree").read_bytes() == before
    result = json.loads(run("set-threshold", tmp_path / "new.simtree", 0.5, "--json").stdout)
    assert result == {"model": str(tmp_path / "new.simtree"), "threshold": 0.5, "before": threshold, "guarantee_lost": False}


def test_a_lost_guarantee_is_said(folder, tmp_path):
    model = simtree.load(folder / "m.simtree")
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(100), 3)
    X = pd.DataFrame(rng.normal(size=(100, 4))[codes] + 0.4 * rng.normal(size=(300, 4)), columns=list("abcd"))
    model.calibrate_threshold(X, codes, max_fpr=0.2).save(tmp_path / "m.simtree")
    assert "Its guarantee is gone." in run("set-threshold", tmp_path / "m.simtree", 2).stdout


@pytest.mark.parametrize("threshold", ["nan", "inf", "-inf"])
def test_a_threshold_is_a_finite_number(folder, threshold):
    assert "is not a finite number; give a score." in run("set-threshold", folder / "m.simtree", threshold, code=1).stderr
    assert run("set-threshold", folder / "m.simtree", "high", code=2).stderr
