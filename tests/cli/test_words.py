"""Tables with holes and words on the command line: what was found is said, shown again, and held against later tables."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import simtree
from simtree.cli._app import app
from simtree.cli._tables import read_samples


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    return done


def people():
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(16), 6)
    table = pd.DataFrame({"person": who, "height": rng.normal(size=len(who)).round(2).astype(str)})
    table["colour"] = np.array(["red", "blue", "green"])[(who + (rng.random(len(who)) < 0.2)) % 3]
    table["postcode"] = 10_000 + who % 4
    table["note"] = [f"note {k}" for k in range(len(who))]
    table.loc[::9, "height"] = "?"
    table.loc[::8, "colour"] = None
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("words")
    people().to_csv(path / "people.csv", index=False)
    people().to_parquet(path / "people.parquet")
    done = run(
        *(
            "fit",
            path / "people.csv",
            "--label",
            "person",
            "-o",
            path / "m.simtree",
            "--model",
            "tree",
            "--json",
            "--n-jobs",
            "1",
        ),
        *("--categories", "postcode", "--missing", "?,n/a"),
    )
    (path / "fit.json").write_text(done.stdout)
    (path / "fit.txt").write_text(done.stderr)
    return path


def test_what_was_found_is_said(folder):
    said = (folder / "fit.txt").read_text()
    assert (
        "height: number, 11.5% missing; colour: category with 3 values, 12.5% missing; postcode: category with 4 values" in said
    )
    note = "'note' of text with a different value in nearly every row (96 values in 96 rows)"
    assert f"{note}; it is left out, unless --categories names it" in said
    found = {column["name"]: column["kind"] for column in json.loads((folder / "fit.json").read_text())["columns"]}
    assert found == {"height": "number", "colour": "category", "postcode": "category", "note": "left out"}


def test_show_repeats_it(folder):
    assert "category with 3 values, 12.5% missing" in run("show", folder / "m.simtree").stdout


def test_the_model_scores_files_of_both_kinds(folder):
    (folder / "pairs.csv").write_text("a,b\n0,1\n0,20\n9,3\n")
    of_csv, of_parquet = (
        run("score", folder / "m.simtree", folder / "pairs.csv", folder / name, "--n-jobs", "1").stdout
        for name in ("people.csv", "people.parquet")
    )
    assert of_csv == of_parquet
    model = simtree.load(folder / "m.simtree")
    table = people().assign(height=pd.to_numeric(people()["height"], errors="coerce"))
    expected = model.pair_score([[0, 1], [0, 20], [9, 3]], table)
    assert [float(line.split(",")[2]) for line in of_csv.splitlines()[1:]] == expected.tolist()


def test_an_explanation_says_words_and_what_is_missing(folder):
    said = run("explain", folder / "m.simtree", folder / "people.csv", "0", "9").stdout
    assert "colour missing in one of the two" in said
    assert "red" in said or "blue" in said or "green" in said
    assert "height missing in both" in said
    told = json.loads(run("explain", folder / "m.simtree", folder / "people.csv", "0", "9", "--json").stdout)
    values = {feature["name"]: (feature["first"], feature["second"]) for feature in told["features"]}
    assert values["height"] == (None, None)
    assert values["colour"] == (None, people()["colour"][9])
    assert told["base"] + sum(feature["contribution"] for feature in told["features"]) == pytest.approx(told["score"])


def test_columns_that_vanished_or_turned_to_words_get_one_sentence(folder):
    people().drop(columns="colour").to_csv(folder / "less.csv", index=False)
    done = run("score", folder / "m.simtree", folder / "pairs.csv", folder / "less.csv", code=1)
    assert "less.csv has no column 'colour', which the model names" in done.stderr
    people().assign(height="tall").to_csv(folder / "words.csv", index=False)
    done = run("score", folder / "m.simtree", folder / "pairs.csv", folder / "words.csv", code=1)
    assert "X has the column 'height' of text, such as 'tall', but the model was fitted on numbers there" in done.stderr


def test_one_wrong_cell_among_numbers_is_still_a_mistake(tmp_path):
    (tmp_path / "people.csv").write_text("who,hold\n" + "ann,1\n" * 8 + "bob,l2\n")
    with pytest.raises(ValueError, match=r"column 'hold', row 8 \(line 10\) is 'l2', not a number; correct it"):
        read_samples(tmp_path / "people.csv").features(["hold"])
    found = read_samples(tmp_path / "people.csv").features(["hold"], categories=["hold"])
    assert set(found["hold"]) == {"1", "l2"}
    (tmp_path / "people.csv").write_text("who,hold\nann,1\nann,inf\nbob,2\n")
    with pytest.raises(ValueError, match=r"column 'hold', row 1 \(line 3\) is infinite"):
        read_samples(tmp_path / "people.csv").features(["hold"])
