"""simtree split: parts of a table that share no identity, with rows as they were."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from simtree.cli._app import app
from simtree.pairs import split_identities

pytestmark = pytest.mark.slow

INTO = ["--into", "train:0.4", "tune:0.3", "test:0.3"]


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["split", *map(str, arguments)], env={"COLUMNS": "200"})
    assert done.exit_code == code, (done.output, done.exception)
    if code:
        assert done.stdout == ""
    return done


def people(n=20, samples=3):
    rng = np.random.default_rng(0)
    who = np.tile(np.arange(n), samples)
    frame = pd.DataFrame(rng.normal(size=(n * samples, 2)), columns=["hold", "flight"])
    frame.insert(1, "person", [f"00{k}" for k in who])
    return frame


@pytest.fixture
def data(tmp_path):
    people().to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def test_parts_share_no_identity_and_keep_rows_byte_by_byte(tmp_path):
    lines = [b'"x; y";person;note\r\n', b"\r\n"]
    lines += [f'{k:.3f}00;0{k % 10};"line\r\nbreak {k} ""é"" 5"\r\n'.encode() for k in range(40)]
    data = tmp_path / "data.csv"
    data.write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
    run(data, "--label", "person", *INTO)
    parts = [(tmp_path / f"data.{name}.csv").read_bytes() for name in ("train", "tune", "test")]
    seen = []
    for part in parts:
        assert part.startswith(b"\xef\xbb\xbf" + lines[0])
        own = [line for line in lines[2:] if line in part]
        # The empty line comes with the row that follows it.
        assert part.removeprefix(b"\xef\xbb\xbf" + lines[0]).replace(b"\r\n\r\n0.000", b"\r\n0.000").lstrip() == b"".join(own)
        seen.append({line.split(b";")[1] for line in own})
    assert [len(identities) for identities in seen] == [4, 3, 3]
    assert len(set.union(*seen)) == 10
    assert sum(len(part) for part in parts) == data.stat().st_size + 2 * len(b"\xef\xbb\xbf" + lines[0])


def test_what_is_said_and_json(data):
    shown = run(data, "--label", "person", *INTO).stdout
    assert "20 values of person" in shown
    assert str(data.with_name("data.tune.csv")) in shown
    result = json.loads(run(data, "--label", "person", *INTO, "--force", "--json").stdout)
    assert [(part["name"], part["n_identities"], part["n_rows"]) for part in result["parts"]] == [
        ("train", 8, 24),
        ("tune", 6, 18),
        ("test", 6, 18),
    ]
    assert result["left_out"] == {"n_identities": 0, "n_rows": 0}
    result = json.loads(run(data, "--label", "person", "--into", "a:0.25", "b:0.25", "--json").stdout)
    assert result["left_out"] == {"n_identities": 10, "n_rows": 30}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--label", "person", "DATA", "--into", "train:0.4", "tune:0.3", "test:0.3"],
        ["--into", "train:0.4", "tune:0.3", "test:0.3", "--label", "person", "DATA"],
        ["--into", "train:0.4", "tune:0.3", "test:0.3", "DATA", "--label", "person"],
        ["DATA", "--label", "person", "--into", "train:0.4,tune:0.3,test:0.3"],
    ],
)
def test_parts_may_stand_anywhere(data, arguments):
    run(*[data if argument == "DATA" else argument for argument in arguments])
    found = {file.name for file in data.parent.iterdir()}
    assert found == {"data.csv", "data.train.csv", "data.tune.csv", "data.test.csv"}


def test_the_seed_decides(data, tmp_path):
    texts = []
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(data, "--label", "person", *INTO, "--seed", seed, "--out-dir", tmp_path / folder)
        texts.append((tmp_path / folder / "data.train.csv").read_bytes())
    assert texts[0] == texts[1] != texts[2]
    rows = split_identities(pd.read_csv(data, dtype=str)["person"], {"train": 0.4, "tune": 0.3, "test": 0.3}, random_state=0)
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "a" / "data.train.csv"), pd.read_csv(data).iloc[rows["train"]].reset_index(drop=True)
    )


@pytest.mark.parametrize("end", ["tsv", "csv.gz", "csv.bz2", "csv.xz", "parquet", "feather", "npz", "npy"])
def test_every_kind_of_table_can_be_split(tmp_path, end):
    frame, data, label = people(), tmp_path / f"my.data.{end}", "person"
    if end == "parquet":
        frame.to_parquet(data)
    elif end == "feather":
        frame.to_feather(data)
    elif end == "npz":
        np.savez_compressed(data, X=frame[["hold", "flight"]], person=frame["person"].to_numpy(str))
    elif end == "npy":
        np.save(data, np.column_stack([frame["hold"], frame["person"].astype(int)]))
        label = "x1"
    else:
        frame.to_csv(data, index=False, sep="\t" if end == "tsv" else ",")
    run(data, "--label", label, "--into", "a:0.5", "b:0.5")
    parts = [tmp_path / f"my.data.{name}.{end}" for name in "ab"]
    if end == "npy":
        found = [set(np.load(part)[:, 1]) for part in parts]
    elif end == "npz":
        found = [set(np.load(part)["person"]) for part in parts]
        assert np.load(parts[0])["X"].shape == (30, 2)
    else:
        reader = {"parquet": pd.read_parquet, "feather": pd.read_feather}.get(
            end, lambda p: pd.read_csv(p, sep=None, engine="python")
        )
        frames = [reader(part) for part in parts]
        found = [set(part["person"]) for part in frames]
        assert list(frames[0].columns) == list(frame.columns)
    assert [len(part) for part in found] == [10, 10]
    assert not found[0] & found[1]


def test_compressed_parts_are_whole_files(tmp_path):
    text = people().to_csv(index=False).encode()
    for end, opened in (("gz", gzip), ("bz2", bz2), ("xz", lzma)):
        (tmp_path / f"data.csv.{end}").write_bytes(opened.compress(text))
        run(tmp_path / f"data.csv.{end}", "--label", "person", "--into", "all:1")
        assert opened.decompress((tmp_path / f"data.all.csv.{end}").read_bytes()) == text


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--into", "train:0.6", "test:0.6"], 1, "shares add up to 1.2; give shares of at most 1 in all"),
        (["--into", "train:0.99", "test:0.01"], 1, "shares['test']=0.01 of 20 identities is 0, and different pairs take 2"),
        (["--into", "train:0"], 1, "shares['train']=0.0 is out of range"),
        (["--into", "train:nan"], 1, "shares['train']=nan is out of range"),
        (["--into", "train"], 2, "--into 'train' is not NAME:SHARE"),
        (["--into", "train:half"], 2, "--into 'train:half' is not NAME:SHARE"),
        (["--into", "../x:0.5"], 2, "is not NAME:SHARE"),
        (["--into", "a:0.5", "a:0.5"], 2, "names the part 'a' twice"),
        (["--into", *[f"p{k}:0.05" for k in range(20)]], 1, "of 20 identities is 1, and different pairs take 2"),
        (["--label", "preson", "--into", "a:0.5"], 1, "no column 'preson', which --label names; did you mean 'person'?"),
    ],
)
def test_what_cannot_be_split(data, options, code, said):
    done = run(data, "--label", "person", *options, code=code)
    assert said in done.stderr
    assert os.listdir(data.parent) == ["data.csv"]


def test_files_that_exist_are_kept_unless_forced(data):
    data.with_name("data.test.csv").write_text("precious")
    assert "data.test.csv exists; give --force to overwrite it" in run(data, "--label", "person", *INTO, code=1).stderr
    assert data.with_name("data.test.csv").read_text() == "precious"
    assert not data.with_name("data.train.csv").exists()
    run(data, "--label", "person", *INTO, "--force")
    assert data.with_name("data.test.csv").read_text().startswith("hold,")


def test_parts_appear_whole_or_not_at_all(data, monkeypatch):
    def press(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("simtree.cli._split.records", press)
    done = run(data, "--label", "person", *INTO, code=130)
    assert "Interrupted. Nothing was written." in done.stderr
    assert os.listdir(data.parent) == ["data.csv"]


def test_standard_input_has_no_name(data):
    assert "which cannot be standard input" in run("-", "--label", "person", *INTO, code=2).stderr
