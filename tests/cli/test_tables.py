"""Tables from files: every kind is read alike, and what is wrong is named by its column and its row."""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import simtree
from simtree.cli import _reading as reading
from simtree.cli import _text_files as text_files
from simtree.cli._app import app
from simtree.cli._reading import read_samples, read_table, stream_table
from simtree.cli._tables import Table, choose_features

pytestmark = pytest.mark.slow

FRAME = pd.DataFrame(
    {"who": ["ann", "ann", "bob", "bob"], "hold": [0.1, 0.25, 1 / 3, 1e-17], "flight": [1, 2, 3, 4], "left": [True, False] * 2}
)


def write(folder, end, frame=FRAME):
    path = folder / f"people.{end}"
    if end == "parquet":
        frame.to_parquet(path)
    elif end == "feather":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep={"tsv": "\t"}.get(end, ","))
    return path


@pytest.mark.parametrize("end", ["csv", "tsv", "parquet", "feather", "csv.gz"])
def test_every_kind_of_table_is_read_alike(tmp_path, end):
    found = read_samples(write(tmp_path, end))
    pd.testing.assert_frame_equal(found.numbers(["hold", "flight", "left"]), FRAME[["hold", "flight", "left"]].astype(float))
    assert found.labels("who", "--label").tolist() == FRAME["who"].tolist()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_first_line_tells_the_separator(tmp_path, separator):
    path = tmp_path / "people.csv"
    path.write_text("\ufeff" + FRAME.to_csv(index=False, sep=separator), encoding="utf-8")
    assert list(read_samples(path).frame.columns) == list(FRAME.columns)


def test_arrays_are_columns(tmp_path):
    path = tmp_path / "people.npz"
    np.savez(path, X=np.arange(6.0).reshape(3, 2), y=[0, 0, 1])
    found = read_samples(path)
    assert list(found.frame.columns) == ["X0", "X1", "y"]
    assert found.numbers(["X1"])["X1"].tolist() == [1.0, 3.0, 5.0]
    np.save(tmp_path / "people.npy", np.arange(6).reshape(3, 2))
    assert list(read_samples(tmp_path / "people.npy").frame.columns) == ["x0", "x1"]
    np.save(tmp_path / "named.npy", np.array([(1, 2.0), (3, 4.0)], dtype=[("who", int), ("hold", float)]))
    assert list(read_samples(tmp_path / "named.npy").frame.columns) == ["who", "hold"]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        (
            {"X": np.zeros((3, 2)), "y": np.zeros(2)},
            r"its arrays must have one entry or row for each sample, but they are X \(3, 2\)",
        ),
        ({"X": np.array([{}, {}], dtype=object)}, "cannot be read: Object arrays cannot be loaded"),
        ({"X": np.zeros((3, 2, 2))}, r"but they are X \(3, 2, 2\)"),
    ],
)
def test_arrays_that_are_no_table(tmp_path, arrays, said):
    path = tmp_path / "people.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=said):
        read_samples(path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("people.csv", b"", r"people.csv is empty; its first line must name the columns"),
        ("people.csv", b"a,b\n1,2\n", "people.csv has 1 row; a pair needs two"),
        ("people.csv", b"a,b\n", "people.csv has 0 rows"),
        ("people.csv", b"1.5,2\n3,4\n5,6\n", "people.csv starts with numbers; its first line must name the columns"),
        (
            "people.csv",
            b"a,b\n1,2\n3,4,5\n6,7\n",
            "people.csv: line 3 has 3 cells, but the table has 2 columns; correct the line, or put quotation marks around",
        ),
        ("people.csv", b'a,b\n1,"2\n3,4\n', "people.csv: a quotation mark is opened and never closed"),
        (
            "people.csv",
            "who,h\u00f6he\nann,1\nrené,2\n".encode("latin-1"),
            r"people.csv is not in UTF-8 \(line 1 has other bytes\) but probably in Latin-1 or Windows-1252; save it as UTF-8, "
            r"for example with: iconv -f WINDOWS-1252 -t UTF-8 people.csv > new_people.csv",
        ),
        ("people.csv", b"who,a\nann,1\nren\xe9,2\n", r"people.csv is not in UTF-8 \(line 3 has other bytes\)"),
        ("people.csv", "who,a\nann,1\nbob,2\n".encode("utf-16"), "people.csv is in UTF-16; save it as UTF-8"),
        ("people.csv", "who,a\nann,1\nbob,2\n".encode("utf-16-be"), "people.csv is in UTF-16; save it as UTF-8"),
        (
            "people.csv",
            b"# made by hand\nwho,a\nann,1\nbob,2\n",
            "people.csv begins with a comment, '# made by hand'; delete lines that begin with '#'",
        ),
        ("people.csv", b"who,a\nann,1\n# one, two, three\nbob,2\n", "people.csv: line 3 is a comment"),
        ("people.parquet", b"PAR1 no", "people.parquet cannot be read"),
        ("people.feather", b"no", "people.feather cannot be read"),
        ("people.npz", b"no", "people.npz cannot be read"),
        ("people.npy", b"no", "people.npy cannot be read"),
        ("people.csv.gz", b"no", "people.csv.gz cannot be read"),
        ("people.xlsx", b"no", r"people.xlsx: the extension must tell what it is, one of .csv, .tsv, .parquet"),
        ("people", b"no", r"the extension must tell what it is"),
    ],
)
def test_a_file_that_is_no_table_of_samples_is_named(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said):
        read_samples(tmp_path / name)


@pytest.mark.parametrize("end", ["", ","])
@pytest.mark.parametrize("text", ["who,a\nann,1\n# so far{}\nbob,2\n", "a,who\n1,ann\n# so far{}\n2,bob\n"])
def test_a_comment_among_the_rows_is_named_by_its_line(tmp_path, text, end):
    (tmp_path / "people.csv").write_text(text.format(end))
    with pytest.raises(ValueError, match=r"people.csv: line 3 is a comment, for it begins with '#'; delete the comment"):
        read_samples(tmp_path / "people.csv")


@pytest.mark.parametrize("verb", ["fit", "split", "evaluate", "score", "explain"])
def test_no_verb_takes_a_comment_for_a_sample(tmp_path, verb):
    model, data, pairs = tmp_path / "m.simtree", tmp_path / "people.csv", tmp_path / "pairs.csv"
    simtree.DistanceSimilarity().fit(FRAME[["hold", "flight"]], FRAME["who"]).save(model)
    if verb == "explain":
        simtree.SimilarityTree(max_depth=1).fit(FRAME[["hold", "flight"]], FRAME["who"]).save(model)
    data.write_text(FRAME.to_csv(index=False) + "# batch two\ncid,1,2,True\n")
    pairs.write_text("a,b\n0,1\n")
    given = {
        "fit": [data, "--label", "who", "-o", tmp_path / "new.simtree"],
        "split": [data, "--label", "who", "--into", "a:0.5", "b:0.5"],
        "evaluate": [model, data, "--label", "who"],
        "score": [model, pairs, data],
        "explain": [model, data, "0", "1"],
    }[verb]
    done = CliRunner().invoke(app, [verb, *map(str, given)], env={"COLUMNS": "200"})
    assert done.exit_code == 1
    assert "people.csv: line 6 is a comment" in done.stderr


@pytest.mark.parametrize("key", [None, "who"])
def test_a_comment_among_pairs_is_named_by_its_line(tmp_path, key):
    (tmp_path / "pairs.csv").write_text("a,b\n0,1\n# checked by hand,\n2,3\n")
    samples = Table(tmp_path / "people.csv", FRAME)
    for pairs in stream_table(tmp_path / "pairs.csv"):
        with pytest.raises(ValueError, match=r"pairs.csv: line 3 is a comment"):
            pairs.rows_of("a", "--pairs", samples) if key is None else pairs.places_of(
                "a", "--pairs", {"0": 0, "2": 2}, "people.csv"
            )


def test_a_label_may_begin_with_a_hash(tmp_path):
    (tmp_path / "people.csv").write_text("who,a,b\n#1,1,\n#1,,2\n#2,3,4\n")
    assert read_samples(tmp_path / "people.csv").labels("who", "--label").tolist() == ["#1", "#1", "#2"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("people.csv", "who,a,b\nann,1,2\nann,1\nbob,2,\n", "people.csv: line 3 has 2 cells, but the table has 3 columns"),
        ("people.csv", 'who,a,b\n"a\nnn",1,2\nbob,2,\n\n"b,b",2\n', "people.csv: line 6 has 2 cells, but the table has 3"),
        ("people.tsv", "who\ta\nann\t1\nbob\n", "people.tsv: line 3 has 1 cell, but the table has 2 columns; correct the line"),
        ("people.csv", "who,a,b\nann,1,2\n# so far, so good\nbob,2,\n", "people.csv: line 3 is a comment"),
    ],
)
def test_a_row_with_too_few_cells_is_not_one_with_holes(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=said):
        read_samples(tmp_path / name)
    with gzip.open(tmp_path / f"{name}.gz", "wt") as stream:
        stream.write(text)
    with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
        archive.writestr(name, text)
    for packed in (f"{name}.gz", f"{name}.zip"):
        with pytest.raises(ValueError, match=said.replace(name, packed)):
            read_samples(tmp_path / packed)
        with pytest.raises(ValueError, match=said.replace(name, packed)):
            list(stream_table(tmp_path / packed))


@pytest.mark.parametrize("read", [read_samples, lambda path: list(stream_table(path))])
def test_rows_of_standard_input_are_counted_too(monkeypatch, read):
    text = "who;a;b\n" + "ann;1;\n" * 40_000
    for short, said in (("bob;2\n", "line 40002 has 2 cells, but the table has 3"), ('"bo\nb";2\n', "line 40003 has 2 cells")):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((text + short + "eve;3;4\n").encode())))
        with pytest.raises(ValueError, match=f"standard input: {said}"):
            read(Path("-"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((text + 'b"ob;2;\n' + "eve;3;4").encode())))
    assert read(Path("-")) is not None


def test_an_archive_holds_one_table(tmp_path):
    with zipfile.ZipFile(tmp_path / "people.csv.zip", "w") as archive:
        archive.writestr("a.csv", "who,a\nann,1\n")
        archive.writestr("b.csv", "who,a\nann,1\n")
    with pytest.raises(ValueError, match=r"people.csv.zip holds 2 files; pack one table alone\."):
        read_samples(tmp_path / "people.csv.zip")


def test_a_compression_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    (tmp_path / "people.csv.zst").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"people.csv.zst is compressed by zstd; install the package zstandard, or unpack"):
        read_samples(tmp_path / "people.csv.zst")


def test_rows_with_holes_are_read(tmp_path):
    (tmp_path / "people.csv").write_text('who,a,b,\n"a\nnn",1,,\n\n"b,b",,2\n   \nbob,,\n')
    assert read_samples(tmp_path / "people.csv").frame["b"].isna().tolist() == [True, False, True]


def test_a_column_may_be_called_with_a_hash(tmp_path):
    (tmp_path / "people.csv").write_text("# of steps,who\n1,ann\n2,bob\n")
    assert list(read_samples(tmp_path / "people.csv").frame.columns) == ["# of steps", "who"]


@pytest.mark.parametrize("mark", [" ", ":", "~"])
def test_a_separator_that_is_not_known_is_guessed_from_the_one_column(tmp_path, mark):
    (tmp_path / "people.csv").write_text(mark.join(["who", "a", "b"]) + "\n" + mark.join(["ann", "1", "2"]) + "\n" * 2 + "x\n")
    with pytest.raises(
        ValueError, match=r"people.csv has the one column 'who.a.b' and none 'who', which --label names; .* commas"
    ):
        read_samples(tmp_path / "people.csv").labels("who", "--label")


def test_reading_that_takes_long_shows_its_progress(tmp_path, monkeypatch, capsys):
    path = write(tmp_path, "csv", pd.concat([FRAME] * 50_000))
    read_table(path)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(text_files, "SECONDS_OF_SILENCE", 0.0)
    monkeypatch.setattr(text_files, "SECONDS_BETWEEN_LINES", 0.0)
    assert len(read_table(path)) == 200_000
    said = capsys.readouterr().err.splitlines()
    size = f"{path.stat().st_size / 1e6:.0f}"
    assert said[0] == f"Reading people.csv: 0 of {size} MB"
    assert said[-1] == f"Reading people.csv: {size} of {size} MB, converting cells ..."
    assert sum("converting" in line for line in said) == 1
    monkeypatch.setattr(reading, "LARGE_BYTES", 0)
    read_table(write(tmp_path, "parquet"))
    assert capsys.readouterr().err == "Reading people.parquet, 0 MB ...\n"


def test_a_missing_file_and_a_folder(tmp_path):
    write(tmp_path, "csv")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*poeple.csv; did you mean people.csv\?"):
        read_table(tmp_path / "poeple.csv")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*away"):
        read_table(tmp_path / "away" / "x.csv")
    with pytest.raises(IsADirectoryError, match="is a folder; give a file"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("abc", r"people.csv: column 'hold', row 2 \(line 5\) is 'abc', not a number; correct it"),
        ("", r"people.csv: column 'hold', row 2 \(line 5\) is empty; fill it in"),
        ("inf", r"people.csv: column 'hold', row 2 \(line 5\) is infinite"),
        ("-1e999", r"people.csv: column 'hold', row 2 \(line 5\) is infinite"),
    ],
)
def test_a_bad_cell_is_named_with_its_line(tmp_path, cell, said):
    """An empty line is no row, and a cell may hold a line break."""
    path = tmp_path / "people.csv"
    path.write_text(f'who,hold\nann,1\n\n"b\nb",2\nbob,{cell}\n'.replace('"b\nb"', "bob"))
    with pytest.raises(ValueError, match=said):
        read_samples(path).numbers(["hold"])
    path.write_text(f'who,hold\n"a\nnn",1\nbob,2\nbob,{cell}\n')
    with pytest.raises(ValueError, match=said):
        read_samples(path).numbers(["hold"])


def test_the_remedy_is_to_drop_the_column_where_that_can_be_done(tmp_path):
    frame = FRAME.assign(city=["Rome", "Oslo", "Rome", "Bern"], day=pd.to_datetime(["2024-01-01"] * 4))
    found = read_samples(write(tmp_path, "parquet", frame))
    with pytest.raises(
        ValueError,
        match=r"column 'city', row 0 is 'Rome', and the column has no numbers; leave it out with --drop 'city'",
    ):
        found.numbers(["city"], can_drop=True)
    with pytest.raises(
        ValueError, match=r"column 'day' is of type datetime64.*; convert it, or leave the column out with --drop 'day'"
    ):
        found.numbers(["day"], can_drop=True)
    with pytest.raises(ValueError, match=r"column 'city', row 0 is 'Rome', not a number; correct it, or remove the row"):
        found.numbers(["city"])
    assert found.numbers(["hold"], can_drop=True)["hold"].tolist() == FRAME["hold"].tolist()


def test_several_empty_cells_are_counted(tmp_path):
    found = read_samples(write(tmp_path, "parquet", FRAME.assign(hold=[1.0, None, 2.0, None])))
    with pytest.raises(ValueError, match=r"row 1 is empty \(so are 1 more\)"):
        found.numbers(["hold"])


def test_a_missing_label_is_named(tmp_path):
    found = read_samples(write(tmp_path, "csv", FRAME.assign(who=["ann", "ann", None, "bob"])))
    with pytest.raises(
        ValueError, match=r"people.csv: column 'who', row 2 \(line 4\) is empty or NA; fill it in, or remove the row"
    ):
        found.labels("who", "--label")


def test_a_wrong_name_tells_the_closest(tmp_path):
    found = read_samples(write(tmp_path, "csv"))
    with pytest.raises(ValueError, match=r"people.csv has no column 'flihgt', which --label names; did you mean 'flight'\?"):
        found.labels("flihgt", "--label")
    with pytest.raises(ValueError, match=r"no column 'zzz'.*its columns are 'who', 'hold', 'flight', 'left'\."):
        found.labels("zzz", "--label")


@pytest.mark.parametrize(
    ("features", "drop", "chosen"),
    [
        ([], [], ["hold", "flight", "left"]),
        ([], ["hold,left"], ["flight"]),
        (["flight", "hold"], [], ["flight", "hold"]),
        (["*l*"], ["left"], ["hold", "flight"]),
        ([], ["f*", "hold"], ["left"]),
    ],
)
def test_features_are_chosen_by_name_or_pattern(tmp_path, features, drop, chosen):
    assert choose_features(read_samples(write(tmp_path, "csv")), features, drop, ["who"]) == chosen


@pytest.mark.parametrize(
    ("features", "drop", "said"),
    [
        (["who"], [], "--features names 'who', which is not a feature"),
        (["holt"], [], r"no column 'holt', which --features names; did you mean 'hold'"),
        ([], ["*"], "no feature column left"),
    ],
)
def test_bad_choices_of_features(tmp_path, features, drop, said):
    with pytest.raises(ValueError, match=said):
        choose_features(read_samples(write(tmp_path, "csv")), features, drop, ["who"])


def test_a_name_may_have_a_comma_in_it(tmp_path):
    found = read_samples(write(tmp_path, "csv", FRAME.rename(columns={"hold": "a, b"})))
    assert choose_features(found, [], ["a, b"], ["who"]) == ["flight", "left"]


def test_columns_without_a_name_are_no_features(tmp_path):
    FRAME.to_csv(tmp_path / "people.csv")  # with row numbers
    found = read_samples(tmp_path / "people.csv")
    assert choose_features(found, [], [], ["who"]) == ["hold", "flight", "left"]
    assert choose_features(found, ["Unnamed: 0"], [], ["who"]) == ["Unnamed: 0"]


@pytest.mark.parametrize("end", ["csv", "parquet", "npy", "csv.gz"])
def test_a_stream_comes_in_parts_that_know_their_rows(tmp_path, monkeypatch, end):
    monkeypatch.setattr(reading, "ROWS", 3)
    frame = pd.DataFrame({"x0": np.arange(8), "x1": np.arange(8, 0, -1)})
    path = tmp_path / f"pairs.{end}"
    if end == "npy":
        np.save(path, frame.to_numpy())
    elif end == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    parts = list(stream_table(path))
    assert [(part.start, len(part)) for part in parts] == [(0, 3), (3, 3), (6, 2)]
    assert pd.concat([part.frame for part in parts])["x1"].tolist() == frame["x1"].tolist()
    samples = Table(tmp_path / "people.csv", pd.DataFrame({"x": range(5)}))
    with pytest.raises(ValueError, match=r"column 'x0', row 5.* is 5; give a row number of people.csv, from 0 to 4"):
        [part.rows_of("x0", "PAIRS", samples) for part in parts]


def test_a_stream_that_breaks_off_is_named(tmp_path):
    path = tmp_path / "pairs.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20])
    with pytest.raises(ValueError, match=r"pairs.csv.gz cannot be read"):
        list(stream_table(path))


def test_rows_by_number_or_key(tmp_path):
    found = read_samples(write(tmp_path, "csv", FRAME.assign(key=["k1", "k2", "k3", "k3"])))
    assert found.row("2", None) == 2
    assert found.row("k2", "key") == 1
    for text, key, said in (
        ("4", None, "has no row 4; its rows are 0 to 3, or give --id COL"),
        ("ann", None, "has no row ann"),
        ("k3", "key", "has 2 rows with the value 'k3'; give a value that is unique"),
        ("k0", "key", r"has 0 rows with the value 'k0'; did you mean 'k"),
    ):
        with pytest.raises(ValueError, match=said):
            found.row(text, key)


def test_a_decimal_comma_is_told_from_text(tmp_path):
    (tmp_path / "t.csv").write_text("who;a\nx;1,5\ny;2,5\n")
    with pytest.raises(ValueError, match=r"row 0 \(line 2\) is '1,5', with a decimal comma; write 1\.5\."):
        read_table(tmp_path / "t.csv").numbers(["a"], can_drop=True)


def test_two_columns_of_one_name_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("who,a,a\nx,1,2\n")
    with pytest.raises(ValueError, match=r"t\.csv has two columns 'a'"):
        read_table(tmp_path / "t.csv")


def test_a_name_in_other_letters_is_the_closest(tmp_path):
    (tmp_path / "t.csv").write_text("H3,H30,H23\n1,2,3\n")
    with pytest.raises(ValueError, match=r"did you mean 'H3'\?"):
        read_table(tmp_path / "t.csv").check_column("h3", "--label")
