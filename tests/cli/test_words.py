"""Tables with holes and words on the command line: what was found is said, shown again, and held against later tables."""

from __future__ import annotations

import json
import re
import shlex
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import simtree
from simtree.cli._app import app
from simtree.cli._cells import as_dates, as_fitted, as_words
from simtree.cli._models import samples_of, words_of
from simtree.cli._reading import read_samples
from simtree.cli._tables import Table
from simtree.models import _presets as presets
from simtree.pairs._cells import moment_of
from simtree.pairs._codes import FIRST_HASHED


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
    note = "Warning: people.csv has the column 'note' of text with a different value in nearly every row (96 values in 96 rows)"
    assert f"{note}; it is left out, for no two rows can be equal in it." in said
    found = {column["name"]: column["kind"] for column in json.loads((folder / "fit.json").read_text())["columns"]}
    assert found == {"height": "number", "colour": "category", "postcode": "category", "note": "left out"}


def test_show_repeats_it(folder):
    said = run("show", folder / "m.simtree").stdout
    assert "category with 3 values, 12.5% missing" in said
    assert "categories are compared by equality" in said
    assert "note is left out" in said
    told, fitted = json.loads(run("show", folder / "m.simtree", "--json").stdout), json.loads((folder / "fit.json").read_text())
    assert told["done"] == fitted["done"]


@pytest.mark.parametrize("kind", ["tree", "auto"])
def test_show_repeats_what_was_found_and_done_of_numbers_with_holes(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(presets, "CANDIDATES", {"cosine": presets.CANDIDATES["cosine"]})
    table = people()[["person"]].assign(height=np.random.default_rng(0).normal(size=96), weight=1.0 * people()["person"])
    table.loc[::4, "height"] = np.nan
    table.to_csv(tmp_path / "people.csv", index=False)
    options = ("--label", "person", "--model", kind, "--n-jobs", "1", "-o", tmp_path / "m.simtree")
    done = run("fit", tmp_path / "people.csv", *options, *(["--splitter", "linear"] if kind == "tree" else []))
    assert "Columns: height: number, 25.0% missing; weight: number." in done.stderr
    sentence = {
        "tree": "what is missing in one sample of a pair, or in both, has a learned side at every test",
        "auto": "missing numbers are filled in by the median, with a column that tells where",
    }[kind]
    shown = " ".join(run("show", tmp_path / "m.simtree").stdout.split())
    for said in (" ".join(done.stdout.split()), shown):
        assert sentence in said
        assert "number, 25.0% missing" in said


def test_the_default_forest_tells_what_is_missing_and_shows_values_of_the_table(tmp_path):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(24), 4)
    table = pd.DataFrame({"person": person, "height": 1.0 * person + rng.normal(size=96), "weight": rng.normal(size=96)})
    table.loc[person < 8, "weight"] = np.nan
    table.to_csv(tmp_path / "people.csv", index=False)
    done = run("fit", tmp_path / "people.csv", "--label", "person", "--n-jobs", "1", "-o", tmp_path / "m.simtree")
    assert "what is missing in one sample of a pair, or in both, has a learned side at every test" in " ".join(
        done.stdout.split()
    )
    said = run("explain", tmp_path / "m.simtree", tmp_path / "people.csv", "0", "5").stdout
    assert "weight missing in both" in said
    told = json.loads(run("explain", tmp_path / "m.simtree", tmp_path / "people.csv", "0", "5", "--json").stdout)
    shown = {feature["name"]: (feature["first"], feature["second"]) for feature in told["features"]}
    assert shown["height"] == (table["height"][0], table["height"][5])  # not their quantiles
    of_python = simtree.load(tmp_path / "m.simtree").explain_pair(*table.iloc[[0, 5], 1:].to_numpy())
    assert of_python.x[0] == table["height"][0]


def test_the_model_scores_files_of_both_kinds(folder):
    (folder / "pairs.csv").write_text("a,b\n0,1\n0,20\n9,3\n")
    of_csv, of_parquet = (
        run("score", folder / "m.simtree", folder / "pairs.csv", folder / name, "--n-jobs", "1").stdout
        for name in ("people.csv", "people.parquet")
    )
    assert of_csv == of_parquet
    model = simtree.load(folder / "m.simtree")
    table = people().assign(height=pd.to_numeric(people()["height"], errors="coerce"))
    expected = model.pair_score([[0, 1], [0, 20], [9, 3]], table.astype({"postcode": str}))
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
    said = "words.csv has the column 'height' of text, such as 'tall', but the model was fitted on numbers there"
    assert said in done.stderr
    done = run("evaluate", folder / "m.simtree", folder / "words.csv", "--label", "person", code=1)
    assert said in done.stderr
    both = people().assign(height="tall").add_suffix("_1").join(people().add_suffix("_2"))
    both.to_csv(folder / "words.csv", index=False)
    done = run("score", folder / "m.simtree", folder / "words.csv", code=1)
    assert said.replace("height", "height_1") in done.stderr


@pytest.mark.parametrize("kind", ["forest", "auto"])
def test_a_column_without_any_value_is_named_once_and_not_needed_later(tmp_path, monkeypatch, kind):
    few = ("euclidean", "boosting on f and pairwise coordinates")
    monkeypatch.setattr(presets, "CANDIDATES", {name: presets.CANDIDATES[name]._replace(after=None) for name in few})
    table = people().drop(columns="note").assign(height=np.linspace(0.0, 1.0, len(people())))
    table.assign(empty=None).to_csv(tmp_path / "people.csv", index=False)
    table.to_csv(tmp_path / "less.csv", index=False)
    table.assign(empty=5.0).to_csv(tmp_path / "more.csv", index=False)
    (tmp_path / "pairs.csv").write_text("a,b\n0,1\n0,9\n")
    options = ["--trees", 3] if kind == "forest" else []
    done = run(
        *("fit", tmp_path / "people.csv", "--label", "person", "-o", tmp_path / "m.simtree", "--model", kind, "--open-set"),
        *("--n-jobs", 1, *options),
    )
    assert done.stderr.count("has no value in column") == 1
    assert "Warning: people.csv has no value in column 'empty'; the model does not use it." in done.stderr
    scores = [
        run("score", tmp_path / "m.simtree", tmp_path / "pairs.csv", tmp_path / name).stdout
        for name in ("less.csv", "more.csv")
    ]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--categories", "person"], "--categories names 'person', which is the label; leave it out there."),
        (["--never-pair", "note", "--categories", "note"], "--categories names 'note', which is the column of --never-pair;"),
        (
            ["--drop", "postcode", "--categories", "postcode"],
            "--categories and --drop both name 'postcode'; leave it out of one",
        ),
        (
            ["--features", "colour", "--categories", "postcode"],
            "--categories names 'postcode', which is not among --features; add",
        ),
    ],
)
def test_a_category_that_is_no_feature_is_named_with_the_reason(tmp_path, options, said):
    people().drop(columns="height").to_csv(tmp_path / "people.csv", index=False)
    command = ("fit", tmp_path / "people.csv", "--label", "person", "-o", tmp_path / "m.simtree")
    assert said in run(*command, *options, code=1).stderr


@pytest.mark.parametrize("holes", [True, False])
def test_a_column_of_numbers_that_turned_to_dates_is_named_with_the_file(tmp_path, holes):
    y = np.repeat(np.arange(12), 4)
    table = pd.DataFrame({"person": y, "size": y + np.arange(48) / 100})
    model = simtree.SimilarityTree(max_depth=1, random_state=0) if holes else simtree.DistanceSimilarity()
    model.fit(table[["size"]], y).save(tmp_path / "m.simtree")
    dates = table.assign(size=pd.Timestamp("2020-01-31"))
    dates.to_parquet(tmp_path / "dates.parquet")
    dates.to_csv(tmp_path / "dates.csv", index=False)
    for name in ("dates.csv", "dates.parquet"):
        said = run("evaluate", tmp_path / "m.simtree", tmp_path / name, "--label", "person", code=1).stderr
        if holes:
            assert f"{name} has the column 'size' of dates, such as '2020-01-31" in said
            assert said.endswith("but the model was fitted on numbers there; convert it to numbers.\n")
        else:
            assert f"{name}: column 'size'" in said
            assert "drop" not in said
    assert "remove" not in said


def test_one_wrong_cell_among_numbers_is_still_a_mistake(tmp_path):
    (tmp_path / "people.csv").write_text("who,hold\n" + "ann,1\n" * 8 + "bob,l2\n")
    with pytest.raises(ValueError, match=r"column 'hold', row 8 \(line 10\) is 'l2', not a number; correct it"):
        read_samples(tmp_path / "people.csv").features(["hold"])
    found = read_samples(tmp_path / "people.csv").features(["hold"], categories=["hold"])
    assert set(found["hold"]) == {"1", "l2"}
    (tmp_path / "people.csv").write_text("who,hold\nann,1\nann,inf\nbob,2\n")
    with pytest.raises(ValueError, match=r"column 'hold', row 1 \(line 3\) is infinite"):
        read_samples(tmp_path / "people.csv").features(["hold"])


def test_the_remedies_for_a_word_among_numbers_are_options(tmp_path):
    (tmp_path / "people.csv").write_text("who,hold\n" + "ann,1\n" * 8 + "bob,?\n")
    with pytest.raises(ValueError, match=r"is '\?', not a number; .*--missing='\?' .*--categories hold .*--drop 'hold'"):
        read_samples(tmp_path / "people.csv").features(["hold"], can_drop=True)


def test_a_word_with_a_comma_stands_for_a_missing_value_as_the_error_says(tmp_path):
    table = pd.DataFrame({"who": np.arange(60) // 6, "size": (np.arange(60) // 6 + np.arange(60) / 100).astype(str)})
    table["colour"] = np.array(["red", "unknown"])[np.arange(60) % 2]
    table.loc[::9, "size"] = "unknown, see notes"
    table.to_csv(tmp_path / "people.csv", index=False)
    command = [
        "fit",
        tmp_path / "people.csv",
        "--label",
        "who",
        "-o",
        tmp_path / "m.simtree",
        "--model",
        "tree",
        "--n-jobs",
        "1",
    ]
    remedy = re.search(r"say with (--missing=\S.*') that it stands", run(*command, code=1).stderr).group(1)
    said = run(*command, *shlex.split(remedy)).stderr
    assert "size: number, 11.7% missing; colour: category with 2 values." in said  # the part before the comma is a value
    assert simtree.load(tmp_path / "m.simtree").columns_.tokens == ("unknown, see notes",)
    run("evaluate", tmp_path / "m.simtree", tmp_path / "people.csv", "--label", "who", "--n-jobs", "1")


def test_a_number_stands_for_a_missing_value(tmp_path):
    (tmp_path / "people.csv").write_text("who,hold,shop\nann,1,007\nann,-999,7\nbob,2.5,-999\nbob,3,\n")
    found = read_samples(tmp_path / "people.csv", ["shop"]).features(
        ["hold", "shop"], categories=["shop"], tokens=["?", "-999.0", "7"]
    )
    np.testing.assert_array_equal(found["hold"], [1.0, np.nan, 2.5, 3.0])
    assert [None if pd.isna(cell) else cell for cell in found["shop"]] == ["007", None, "-999", None]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_values_of_categories_are_text_in_every_file(tmp_path, end):
    """A column that holds digits only in one file, and words in another, has the same values."""
    who = np.repeat(np.arange(12), 4)
    table = pd.DataFrame({"person": who, "shop": np.array(["A1", "B2", "1010"])[who % 3], "code": 7 + who % 2})
    table["born"] = np.array(["007", "7"])[who % 2]
    if end == "csv":
        table.to_csv(tmp_path / "people.csv", index=False)
    else:
        table.to_parquet(tmp_path / "people.parquet")
    options = ("--label", "person", "--categories", "code,bo*", "--model", "tree", "--n-jobs", "1")
    run("fit", tmp_path / f"people.{end}", *options, "-o", tmp_path / "m.simtree")
    model = simtree.load(tmp_path / "m.simtree")
    values = {column.name: set(column.values) for column in model.columns_.columns}
    assert values == {"shop": {"A1", "B2", "1010"}, "code": {"7", "8"}, "born": {"007", "7"}}
    digits = table[table["shop"] == "1010"]
    digits.to_csv(tmp_path / "digits.csv", index=False)
    digits.assign(code="eight").to_csv(tmp_path / "words.csv", index=False)
    for name, is_known in (("digits", True), ("words", False)):
        read = model.columns_.read(samples_of(model, read_samples(tmp_path / f"{name}.csv", words_of(model)), ["person"]))
        codes = dict(zip(model.columns_.names, read.T, strict=True))
        assert codes["shop"].max() < 3
        assert (codes["code"] < 2).all() == is_known
        assert codes["born"].max() < 2
    (tmp_path / "pairs.csv").write_text("a,b\n0,1\n0,7\n")
    by_row = run("score", tmp_path / "m.simtree", tmp_path / "pairs.csv", tmp_path / "digits.csv", "--n-jobs", "1").stdout
    sides = [digits.iloc[rows].reset_index(drop=True).add_suffix(end) for rows, end in (([0, 0], "_1"), ([1, 7], "_2"))]
    pd.concat(sides, axis=1).to_csv(tmp_path / "wide.csv", index=False)
    wide = run("score", tmp_path / "m.simtree", tmp_path / "wide.csv", "--n-jobs", "1").stdout
    assert [line.split(",")[-2:] for line in wide.splitlines()] == [line.split(",")[-2:] for line in by_row.splitlines()]


def test_a_category_of_numbers_of_another_program_is_read_as_numbers(tmp_path):
    who = np.repeat(np.arange(12), 4)
    table = pd.DataFrame({"shop": 1010 + who % 3, "flag": who % 2 == 0})
    model = simtree.SimilarityTree(max_depth=2, categorical_features=["shop", "flag"], random_state=0).fit(table, who)
    table.assign(shop=table["shop"].astype(str).where(who > 0, "new")).to_csv(tmp_path / "new.csv", index=False)
    found = samples_of(model, read_samples(tmp_path / "new.csv", words_of(model)), [])
    np.testing.assert_array_equal(model.columns_.read(found)[4:], model.columns_.read(table)[4:])
    assert model.columns_.read(found)[0, 0] >= FIRST_HASHED
    table.assign(shop="inf").to_csv(tmp_path / "new.csv", index=False)
    found = samples_of(model, read_samples(tmp_path / "new.csv", words_of(model)), [])
    assert (model.columns_.read(found)[:, 0] >= FIRST_HASHED).all()


def test_large_integers_of_a_category_are_told_apart_or_refused(tmp_path):
    cards = pd.Series([1234567890123456, 1234567890123457, None])  # of floating-point numbers
    found = Table(tmp_path / "people.parquet", pd.DataFrame({"card": cards})).features(["card"], categories=["card"])
    assert found["card"].tolist() == ["1234567890123456", "1234567890123457", None]
    exact = pd.DataFrame({"card": [2**60 + 1, 2**60 + 2]})
    found = Table(tmp_path / "people.parquet", exact).features(["card"], categories=["card"])
    assert found["card"].tolist() == [str(2**60 + 1), str(2**60 + 2)]
    lost = Table(tmp_path / "people.parquet", exact.astype(float))
    with pytest.raises(ValueError, match=r"people\.parquet: column 'card', row 0 is about 1\.15292150460685e\+18, .*as text"):
        lost.features(["card"], categories=["card"])


def test_dates_and_booleans_of_a_category_are_the_same_in_every_file(tmp_path):
    who = np.repeat(np.arange(12), 4)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(12 * (who % 5), unit="h")
    table = pd.DataFrame({"person": who, "day": days, "born": days.normalize(), "flag": who % 2 == 0})
    table.to_parquet(tmp_path / "people.parquet")
    table.astype({"day": "datetime64[ns]"}).to_parquet(tmp_path / "nanoseconds.parquet")
    table.to_csv(tmp_path / "people.csv", index=False)
    pl.from_pandas(table).write_csv(tmp_path / "polars.csv")
    names = ["people.parquet", "nanoseconds.parquet", "people.csv", "polars.csv"]
    options = ("--label", "person", "--categories", "day,born,flag", "--model", "tree", "--n-jobs", "1")
    models = [simtree.SimilarityTree(max_depth=2, categorical_features=["day", "born", "flag"], random_state=0)]
    models[0].fit(table.drop(columns="person"), who)
    for name in names:
        run("fit", tmp_path / name, *options, "-o", tmp_path / "m.simtree")
        models.append(simtree.load(tmp_path / "m.simtree"))
    for model in models:
        codes = [
            model.columns_.read(samples_of(model, read_samples(tmp_path / name, words_of(model)), ["person"])) for name in names
        ]
        assert codes[0].max() < 5
        for other in codes[1:]:
            np.testing.assert_array_equal(other, codes[0])
    assert models[1].columns_.columns[0].values[:2] == ("2020-01-01", "2020-01-01 12:00:00")


def test_dates_of_text_files_are_dates(tmp_path):
    who = np.repeat(np.arange(12), 4)
    days = pd.Timestamp("2020-01-31") + pd.to_timedelta(who, unit="D")
    table = pd.DataFrame({"person": who, "day": days.strftime("%Y-%m-%d"), "seen": days.strftime("%Y-%m-%dT12:30:00+02:00")})
    table["kept"], table["flag"] = table["day"], np.array(["True", "False"])[who % 2]
    table.loc[3, ["day", "flag"]] = None
    table.to_csv(tmp_path / "people.csv", index=False)
    options = ("--label", "person", "--categories", "kept", "--model", "tree", "--n-jobs", "1")
    said = run("fit", tmp_path / "people.csv", *options, "-o", tmp_path / "m.simtree").stderr
    assert "day: date, 2.1% missing; seen: date and time; kept: category with 12 values; flag: boolean, 2.1% missing" in said
    model = simtree.load(tmp_path / "m.simtree")
    found = model.columns_.read(samples_of(model, read_samples(tmp_path / "people.csv"), ["person"]))
    np.testing.assert_array_equal(found[0, :4], [18292.0, 18292.0, 10.5, 1.0])
    table.assign(day="soon").to_csv(tmp_path / "words.csv", index=False)
    (tmp_path / "pairs.csv").write_text("a,b\n0,1\n")
    done = run("score", tmp_path / "m.simtree", tmp_path / "pairs.csv", tmp_path / "words.csv", code=1)
    assert "words.csv: column 'day', row 0 (line 2) is 'soon', but the model was fitted on dates there" in done.stderr


def test_a_model_of_numbers_with_holes(tmp_path):
    who = np.repeat(np.arange(12), 4)
    table = pd.DataFrame({"person": who, "a": np.random.default_rng(0).normal(who, 0.3), "b": 1.0 * (who % 5)})
    table.loc[::7, "a"] = np.nan
    model = simtree.SimilarityTree(max_depth=3, random_state=0).fit(table[["a", "b"]], who)
    model.save(tmp_path / "m.simtree")
    sides = [
        table[rows][["a", "b"]].reset_index(drop=True).add_suffix(end) for rows, end in ((slice(9), "_1"), (slice(9, 18), "_2"))
    ]
    pd.concat(sides, axis=1).to_csv(tmp_path / "wide.csv", index=False)
    wide = run("score", tmp_path / "m.simtree", tmp_path / "wide.csv", "--n-jobs", "1").stdout
    expected = model.pair_score(np.column_stack([np.arange(9), np.arange(9, 18)]), table[["a", "b"]])
    assert [float(line.split(",")[-2]) for line in wide.splitlines()[1:]] == expected.tolist()
    table.assign(a="tall").to_csv(tmp_path / "words.csv", index=False)
    (tmp_path / "pairs.csv").write_text("a,b\n0,1\n")
    done = run("score", tmp_path / "m.simtree", tmp_path / "pairs.csv", tmp_path / "words.csv", code=1)
    assert "words.csv has the column 'a' of text, such as 'tall', but the model was fitted on numbers there" in done.stderr
    unnamed = simtree.SimilarityTree(max_depth=3, random_state=0).fit(table[["a", "b"]].to_numpy(), who)
    found = samples_of(unnamed, Table(tmp_path / "people.csv", table), ["person"])
    np.testing.assert_array_equal(found, table[["a", "b"]].to_numpy())


def test_a_gallery_of_words(folder):
    names = ["--label", "person", "--n-jobs", "1"]
    run("enroll", folder / "g.gallery", folder / "people.csv", "--label", "person", "--model", folder / "m.simtree")
    done = run("verify", folder / "g.gallery", folder / "people.csv", *names)
    assert len(done.stdout.splitlines()) == len(people()) + 1
    found = run("identify", folder / "g.gallery", folder / "people.csv", "--n-jobs", "1", "-k", "1").stdout
    assert len(found.splitlines()) > len(people()) // 2


def test_decimal_commas_are_named_before_a_column_is_taken_for_words(tmp_path):
    (tmp_path / "people.csv").write_text("who;hold\nann;\nann;1,25\nbob;2,5\nbob;3\n")
    table = read_samples(tmp_path / "people.csv")
    with pytest.raises(ValueError, match=r"column 'hold', row 1 \(line 3\) is '1,25', with a decimal comma; write 1.25\."):
        table.features(["hold"])
    assert table.features(["hold"], categories=["hold"])["hold"].tolist()[1:] == ["1,25", "2,5", "3"]


def test_a_table_of_which_no_column_is_left_is_named_with_the_option(tmp_path):
    people()[["person", "note"]].to_csv(tmp_path / "people.csv", index=False)
    done = run("fit", tmp_path / "people.csv", "--label", "person", "-o", tmp_path / "m.simtree", code=1)
    assert "people.csv has no column left; give one of numbers, or of values that rows share." in done.stderr
    done = run(
        "fit", tmp_path / "people.csv", "--label", "person", "-o", tmp_path / "m.simtree", "--categories", "note", code=1
    )
    assert "--categories names the column 'note', whose values are all different" in done.stderr
    # What is said of a column in which two rows are equal helps.
    people()[["person", "note"]].replace("note 1", "note 0").to_csv(tmp_path / "people.csv", index=False)
    done = run("fit", tmp_path / "people.csv", "--label", "person", "-o", tmp_path / "m.simtree", code=1)
    assert "people.csv has no column left; name those of text in --categories." in done.stderr
    run(
        "fit",
        tmp_path / "people.csv",
        "--label",
        "person",
        "-o",
        tmp_path / "m.simtree",
        "--trees",
        "2",
        "--categories",
        "note",
    )


def test_dates_of_a_file_are_read_at_once_and_one_by_one_alike():
    words = [
        *("2020-01-31", "2020-01-31T12:30", "2020-01-31 12:30:00", "2020-01-31T12:30:00.5", "1969-12-31 23:59:59.9999999"),
        *("2020-01-31T12:30:00,5", "2020-01-31T12:30:00.1234567890123456789", "2020-01-31 12:30:00.5 +02:00", "0001-01-01"),
        *("1000-01-01", "9999-12-31T23:59:59.999999", "2020-01-31T12:30Z"),
    ]
    expected = [moment_of(word) for word in words]
    for dtype in ("str", object):
        column = pd.Series([*words, None, words[0]], index=range(3, len(words) + 5), dtype=dtype)
        found = as_dates(column)
        assert found.index.equals(column.index)
        np.testing.assert_array_equal(found.to_numpy(), np.array([*expected, "NaT", expected[0]], dtype="datetime64[us]"))
        for word in ("soon", "today", "NaT", "2020-01", "2020-02-30", "0000-01-01", "2020-01-31 24:30", " 2020-01-31"):
            assert as_dates(pd.Series([*words, word], dtype=dtype)) is None
    assert as_dates(pd.Series([words[0], 1, None], dtype=object)) is None


def test_values_of_a_category_are_named_by_their_own_type():
    values = [1, True, 1.0, "1", Decimal("1.0"), Decimal("1.00"), None, 2.5, date(2020, 1, 1)]
    expected = ["1", "True", "1", "1", "1.0", "1.00", None, "2.5", "2020-01-01"]
    assert as_words(pd.Series(values, dtype=object)).tolist() == expected
    assert as_words(pd.Series(values[4:7], dtype=object)).tolist() == expected[4:7]
    days = pd.Series([date(2020, 1, 1), None, date(9999, 12, 31)] * 2, dtype=object)
    found = as_words(days)
    assert found.tolist() == ["2020-01-01", None, "9999-12-31"] * 2
    assert as_fitted(found, ["2020-01-01"]) is found


def test_dates_without_end_are_far_away(tmp_path):
    words = ["9999-12-31", "2020-01-31T12:30:00.123456789", "1066-10-14 00:00 +02:00"]
    (tmp_path / "people.csv").write_text("who,until\n" + "".join(f"ann,{word}\n" for word in words))
    found = read_samples(tmp_path / "people.csv").features(["until"])["until"].to_numpy()
    expected = ["9999-12-31", "2020-01-31T12:30:00.123456", "1066-10-13T22:00"]
    np.testing.assert_array_equal(found, np.array(expected, dtype="datetime64[us]"))
    (tmp_path / "people.csv").write_text("who,until\nann,2020-02-30\nann,2020-02-28\n")
    assert read_samples(tmp_path / "people.csv").features(["until"])["until"].tolist() == ["2020-02-30", "2020-02-28"]
