"""Score files in bob's formats and as CSV: what is written comes back, and what is wrong is named with its line."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simtree import evaluate_scores
from simtree.evaluation._score_files import FORMATS, Comparison, iterate_scores, read_scores, write_scores

LINES = [
    Comparison("ann", "ann", "ann/1", 1.5, "ann-model"),
    Comparison("ann", "bob", "bob/1", -0.25, "ann-model"),
    Comparison("bob", "bob", "bob/1", 0.1 + 0.2, "bob-model"),
    Comparison("bob", "zoë", "zoë/1", 1e-300, "bob-model"),
]
WORDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=5).filter(lambda word: word[0] != "#")
COMPARISONS = st.builds(Comparison, WORDS, WORDS, WORDS, st.floats(allow_nan=False, allow_infinity=False), WORDS)


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_comes_back_bit_for_bit(format, tmp_path):
    assert write_scores(tmp_path / "scores", LINES, format=format) == 4
    expected = [line._replace(model_label="") for line in LINES] if format == "4column" else LINES
    assert list(iterate_scores(tmp_path / "scores", format=format)) == expected
    if format != "csv":
        assert list(iterate_scores(tmp_path / "scores")) == expected


@pytest.mark.slow
@given(st.lists(COMPARISONS, max_size=5), st.sampled_from(FORMATS))
def test_any_words_come_back(lines, format):
    with tempfile.TemporaryDirectory() as folder:
        write_scores(f"{folder}/scores", lines, format=format)
        found = list(iterate_scores(f"{folder}/scores", format=format))
    assert [line[:4] for line in found] == [line[:4] for line in lines]


@pytest.mark.slow
@given(st.lists(st.builds(Comparison, *[st.text(max_size=5)] * 3, st.floats(-9, 9), st.text(max_size=5)), max_size=5))
def test_any_text_comes_back_from_csv(lines):
    with tempfile.TemporaryDirectory() as folder:
        try:
            write_scores(f"{folder}/scores.csv", lines)
        except UnicodeEncodeError:  # half of a pair of surrogates is no text
            return
        assert list(iterate_scores(f"{folder}/scores.csv")) == lines


def test_the_formats_are_bobs(tmp_path):
    write_scores(tmp_path / "a.txt", LINES[:1], format="4column")
    write_scores(tmp_path / "b.txt", LINES[:1])
    write_scores(tmp_path / "c.csv", LINES[:1])
    assert (tmp_path / "a.txt").read_text() == "ann ann ann/1 1.5\n"
    assert (tmp_path / "b.txt").read_text() == "ann ann-model ann ann/1 1.5\n"
    assert b"\r" not in (tmp_path / "c.csv").read_bytes()
    assert (tmp_path / "c.csv").read_text() == "claimed_id,model_label,real_id,probe_label,score\nann,ann-model,ann,ann/1,1.5\n"


def test_arrays_can_be_evaluated(tmp_path):
    write_scores(tmp_path / "scores.txt", LINES)
    table = read_scores(tmp_path / "scores.txt")
    np.testing.assert_array_equal(table.scores, [line.score for line in LINES])
    np.testing.assert_array_equal(table.same, [True, False, True, False])
    assert [[table.names[k] for k in pair] for pair in table.identities] == [[a, b] for a, b, *_ in LINES]
    result = evaluate_scores(table.scores, table.same, identities=table.identities)
    assert result.auc.value == evaluate_scores([line.score for line in LINES], [line.same for line in LINES]).auc.value
    assert result.n_identities == 3


def test_empty_lines_comments_tabs_and_line_ends_of_others_are_read(tmp_path):
    (tmp_path / "scores").write_bytes(b"# made by hand\n\n  ann\tann  ann/1 \t 1.5\r\n#\nann bob bob/1 2\r\n")
    assert [(line.probe_label, line.score) for line in iterate_scores(tmp_path / "scores")] == [("ann/1", 1.5), ("bob/1", 2.0)]


def test_columns_of_csv_are_found_by_name(tmp_path):
    text = '\ufeffscore, real_id,colour,claimed_id,probe_label\n1.5,"a, b",red,"a, b","a\n1"\n'
    (tmp_path / "scores.csv").write_text(text, encoding="utf-8")
    assert list(iterate_scores(tmp_path / "scores.csv")) == [Comparison("a, b", "a, b", "a\n1", 1.5)]


WRONG = {
    "three columns": ("x", "# first\na a 1.0\n", r"x, line 2: 3 columns; a score file has 4 or 5"),
    "a column too many": ("x", "a a p 1\n\na a p 1 2\n", "x, line 3: 5 columns instead of 4"),
    "no number": ("x", "a a p 1\na a p high\n", "x, line 2: the score 'high' is not a finite number"),
    "nan": ("x", "a m a p nan\n", "x, line 1: the score 'nan' is not a finite number"),
    "no header": ("x.csv", "a,a,p,1\n", "x.csv, line 1: the header"),
    "an empty CSV": ("x.csv", "", "x.csv, line 1: the header"),
    "a column twice": ("x.csv", "claimed_id,real_id,probe_label,score,score\n", r"must have \['score'\] exactly once"),
    "a short line": (
        "x.csv",
        "claimed_id,real_id,probe_label,score\na,a,p,1\na,a,1\n",
        "x.csv, line 3: 3 columns instead of 4",
    ),
    "a quote": ("x.csv", 'claimed_id,real_id,probe_label,score\na,a,"p"q,1\n', "x.csv, line 2: not valid CSV"),
    "no number in CSV": ("x.csv", "claimed_id,real_id,probe_label,score\na,a,p,\n", "x.csv, line 2: the score '' is not"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_its_line(name, tmp_path):
    file, text, message = WRONG[name]
    (tmp_path / file).write_text(text)
    with pytest.raises(ValueError, match=message):
        list(iterate_scores(tmp_path / file))


def test_lines_before_the_wrong_one_are_given(tmp_path):
    """It is a stream."""
    (tmp_path / "x").write_text("a a p 1\na a p high\n")
    stream = iterate_scores(tmp_path / "x")
    assert next(stream).score == 1.0
    with pytest.raises(ValueError, match="line 2"):
        next(stream)


@pytest.mark.parametrize("bad", [{"real_id": "a b"}, {"claimed_id": "#a"}, {"probe_label": ""}, {"score": float("nan")}])
def test_what_cannot_be_written_leaves_no_file(bad, tmp_path):
    (tmp_path / "x").write_text("old")
    with pytest.raises(ValueError, match="comparison 2 has"):
        write_scores(tmp_path / "x", [LINES[0], LINES[1]._replace(**bad)])
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_an_unknown_format():
    with pytest.raises(ValueError, match="format='3column' is unknown"):
        write_scores(Path("x"), LINES, format="3column")


def test_a_file_without_lines_is_an_empty_table(tmp_path):
    assert write_scores(tmp_path / "x", []) == 0
    table = read_scores(tmp_path / "x")
    assert (len(table.scores), table.identities.shape, table.names) == (0, (0, 2), [])
