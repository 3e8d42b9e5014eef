"""The page of reproduced results: the committed one is what its script makes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import make_reproduction
from make_reproduction import SECTIONS, make_page, write_page

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results"


def test_the_committed_page_is_what_the_script_makes(tmp_path):
    write_page(RESULTS, tmp_path / "page.md")
    made = make_page(RESULTS, folder="results")
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == made
    for picture in RESULTS.glob("*.png"):
        assert f"](results/{picture.name})" in made


def test_committed_results_are_full_ones():
    found = {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in SECTIONS}
    assert all(row["runs"] == 400 for row in found["table1"]["rows"])
    assert "extended" in found["table1"]
    assert not found["mnist"]["quick"]
    assert not found["mnist"]["missing"]


def test_a_result_that_is_missing_or_broken_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"table1.json does not exist; make it with: simtree reproduce table1 --out"):
        make_page(tmp_path, folder="results")
    shutil.copytree(RESULTS, tmp_path / "results")
    for content in ("{", "{}", "[1]", '{"pairs": 3}'):
        (tmp_path / "results" / "lemma.json").write_text(content)
        with pytest.raises(
            ValueError, match=r"lemma.json is not a result of this version; make it again with: simtree reproduce"
        ):
            make_page(tmp_path / "results", folder="results")


def test_the_script_writes_a_page_or_names_what_is_missing(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["make_reproduction.py", "--results", str(RESULTS), "--out", str(page)])
    make_reproduction.main()
    assert capsys.readouterr().out == f"Written: {page}\n"
    assert page.read_text(encoding="utf-8").startswith("# Reproduction of the paper's experiments")
    monkeypatch.setattr("sys.argv", ["make_reproduction.py", "--results", str(tmp_path), "--out", str(page)])
    with pytest.raises(SystemExit, match="1"):
        make_reproduction.main()
    assert "table1.json does not exist" in capsys.readouterr().err
