"""``--dask`` on the command line, and Parquet folders."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from simtree import load
from simtree.cli._app import app

RUN = CliRunner()


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    """A table as Dask and Spark write it: parts in a folder, whose names are not in alphabetical order."""
    X, y = people
    frame = pd.DataFrame(X, columns=list("abcde")).assign(person=y, day=np.arange(480) % 3)
    folder = tmp_path_factory.mktemp("tables") / "people"
    folder.mkdir()
    for number in range(12):
        frame[number * 40 : (number + 1) * 40].to_parquet(folder / f"part.{number}.parquet")
    frame.to_csv(folder.parent / "people.csv", index=False)
    return folder


def invoke(*command):
    result = RUN.invoke(app, [str(part) for part in command])
    assert result.exit_code == 0, result.output
    return result


def test_a_folder_on_a_cluster_gives_the_model_of_a_file(folder, client, tmp_path):
    address = client.scheduler.address
    options = ["--label", "person", "--drop", "day", "--trees", 3]
    invoke("fit", folder.parent / "people.csv", *options, "-o", tmp_path / "a.simtree")
    invoke("fit", folder, *options, "-o", tmp_path / "b.simtree")
    invoke("fit", folder, *options, "-o", tmp_path / "c.simtree", "--dask", address)
    files = [(tmp_path / f"{name}.simtree").read_bytes() for name in "abc"]
    assert files[0] == files[1] == files[2]
    assert load(tmp_path / "c.simtree").n_jobs is None

    found = [
        json.loads(invoke("evaluate", tmp_path / "a.simtree", folder, "--label", "person", "--json", *more).stdout)
        for more in ([], ["--dask", address])
    ]
    assert found[0] == found[1]

    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 480, (500, 2)))
    rows.to_csv(tmp_path / "pairs.csv", index=False)
    for data, more in ((folder.parent / "people.csv", []), (folder, ["--dask", address])):
        invoke("score", tmp_path / "a.simtree", tmp_path / "pairs.csv", data, "-o", tmp_path / f"{len(more)}.csv", *more)
    assert (tmp_path / "0.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@pytest.mark.parametrize("form", ["folder", "file"])
def test_tables_with_holes_and_words(form, people, client, tmp_path):
    """A folder may have holes, booleans and dates; a file, which is read here, also words."""
    X, y = people
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    table = pd.DataFrame(X, columns=list("abcde")).assign(
        person=y, known=y % 2 == 0, day=pd.Timestamp("2020-01-01") + pd.to_timedelta(y, unit="D")
    )
    if form == "folder":
        data = tmp_path / "people"
        data.mkdir()
        for number in range(3):
            table[number * 160 : (number + 1) * 160].to_parquet(data / f"part.{number}.parquet")
    else:
        data = tmp_path / "people.csv"
        table.assign(colour=np.array(["red", "blue", "green"])[y % 3]).to_csv(data, index=False)
    address = client.scheduler.address
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 480, (100, 2)))
    rows.to_csv(tmp_path / "pairs.csv", index=False)
    files = []
    for more in ([], ["--dask", address]):
        model, scores = tmp_path / f"{len(more)}.simtree", tmp_path / f"{len(more)}.csv"
        invoke("fit", data, "--label", "person", "--trees", 3, "-o", model, *more)
        found = invoke("evaluate", model, data, "--label", "person", "--json", *more).stdout
        invoke("score", model, tmp_path / "pairs.csv", data, "-o", scores, *more)
        shown = {key: value for key, value in json.loads(found).items() if key != "model"}
        files.append((model.read_bytes(), shown, scores.read_bytes()))
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--dask", "four"], 2, "neither the address of a Dask scheduler"),
        (["--dask", "tcp://127.0.0.1:1"], 1, "no Dask scheduler answers there"),
    ],
)
def test_bad_addresses(options, code, message, folder, monkeypatch, tmp_path):
    monkeypatch.setattr("simtree.cli._dask.SECONDS_TO_CONNECT", 1)
    result = RUN.invoke(app, ["fit", str(folder), "--label", "person", "-o", str(tmp_path / "m"), *options])
    assert result.exit_code == code
    assert message in " ".join(result.output.replace("│", " ").split())


def test_without_dask(folder, monkeypatch, tmp_path):
    monkeypatch.setattr("simtree.cli._dask.importlib.util.find_spec", lambda name: None)
    result = RUN.invoke(app, ["fit", str(folder), "--label", "person", "-o", str(tmp_path / "m"), "--dask", "local:2"])
    assert result.exit_code == 1
    assert 'pip install "simtree[dask]"' in result.output


@pytest.mark.parametrize("option", [("--categories", "a"), ("--missing", "?")])
def test_options_for_files_are_refused_for_a_folder_on_a_cluster(folder, client, tmp_path, option):
    command = ["fit", folder, "--label", "person", "-o", tmp_path / "m.simtree", "--dask", client.scheduler.address, *option]
    result = RUN.invoke(app, [str(part) for part in command])
    assert result.exit_code == 1
    assert "--categories and --missing are not supported for" in result.stderr


def test_a_folder_without_tables_is_refused(tmp_path):
    result = RUN.invoke(app, ["fit", str(tmp_path), "--label", "person", "-o", str(tmp_path / "m")])
    assert result.exit_code == 1
    assert "is a folder; give a file, or a folder of Parquet files" in result.output
