"""``simtree cluster``: tables in, tables out, and one sentence for each mistake."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import simtree
from simtree import Gallery
from simtree.cli._app import app

NAMES = ["hold", "flight", "press", "tilt"]


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("groups")
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 4)
    X = rng.normal(size=(60, 4))[who] + 0.1 * rng.normal(size=(240, 4))
    frame = pd.DataFrame(X, columns=NAMES).assign(person=[f"p{k:02d}" for k in who], sample=[f"s{k}" for k in range(240)])
    frame[:80].to_csv(made / "data.csv", index=False)
    train = frame[80:]
    model = simtree.GaussianSimilarity().fit(train[NAMES], train["person"])
    model.save(made / "m.simtree")
    with Gallery.create(made / "people.gallery", model) as gallery:
        gallery.enroll(frame["person"][:80], frame[NAMES][:80])
        gallery.enroll(["alias"], frame[NAMES][:1])
    return made


def test_a_table_of_rows_and_groups(folder, tmp_path):
    done = run("cluster", folder / "m.simtree", folder / "data.csv", "--label", "person", "--id", "sample")
    table = pd.read_csv(io.StringIO(done.stdout))
    frame = pd.read_csv(folder / "data.csv")
    expected = simtree.cluster(simtree.load(folder / "m.simtree"), frame[NAMES], y=frame["person"])
    assert table["row"].tolist() == frame["sample"].tolist()
    assert table["cluster"].tolist() == expected.labels.tolist()
    assert table["size"].tolist() == expected.sizes[expected.labels].tolist()
    assert f"{expected.n_clusters} groups of 80 rows: {expected.n_matches:,} matches above" in done.stderr
    assert f"B-cubed: precision {expected.b_cubed.precision:.3f}" in done.stderr
    out = tmp_path / "groups.csv"
    again = run("cluster", folder / "m.simtree", folder / "data.csv", "--label", "person", "--id", "sample", "-o", out)
    assert (again.stdout, out.read_text()) == ("", done.stdout)


def test_json_has_everything(folder):
    arguments = ("--label", "person", "--threshold", "2.5", "--method", "components", "--json")
    found = json.loads(run("cluster", folder / "m.simtree", folder / "data.csv", *arguments, "--id", "sample").stdout)
    assert found["threshold"] == 2.5
    assert set(found["b_cubed"]) == {"precision", "recall", "f1"}
    assert len(found["rows"]) == 80
    assert set(found["rows"][0]) == {"row", "cluster", "size"}


def test_a_gallery_shows_who_has_two_ids(folder):
    done = run("gallery", "cluster", folder / "people.gallery")
    table = pd.read_csv(io.StringIO(done.stdout))
    assert len(table) == 81
    assert "with several ids." in done.stderr
    found = json.loads(run("gallery", "cluster", folder / "people.gallery", "--json").stdout)
    assert any({"alias", "p00"} <= set(ids) for ids in found["mixed"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cluster", "m.simtree", "data.csv", "--max-fpr", "0.01"], "has no such promise; call calibrate_threshold"),
        (["cluster", "m.simtree", "data.csv", "--max-fpr", "0.01", "--threshold", "1"], "are both given; give one of them"),
        (["cluster", "m.simtree", "data.csv", "--label", "nobody"], "nobody"),
        (["cluster", "m.simtree", "missing.csv"], "missing.csv"),
        (["gallery", "cluster", "missing.gallery"], "missing.gallery"),
    ],
)
def test_mistakes_get_one_sentence(folder, arguments, message, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(*arguments, code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
