"""Tables become matrices: kinds of columns, vocabularies, values that are not in them, and what is refused."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from simtree import SimilarityTree, load
from simtree.io._archive import document_bytes, read_document
from simtree.io._fields import ModelFileError
from simtree.pairs import _column
from simtree.pairs._cells import moment_of
from simtree.pairs._codes import FIRST_HASHED, MISSING, hashed
from simtree.pairs._table import TableColumns, is_table

COLOURS = ["red", "blue", None, "red", "green", "blue"]
DAYS = [date(1970, 1, 2), date(1970, 1, 11), None, *[date(1970, 1, 2)] * 3]
# Values are sorted: blue, green, red.
EXPECTED = np.array([[1.5, 1.0, 1.0, 2.0], [2.0, 0.0, 10.0, 0.0], [np.nan, 1.0, np.nan, -1.0], [1.0, 0.0, 1.0, 2.0]])


def pandas_frame():
    days = pd.to_datetime(pd.Series(DAYS))
    return pd.DataFrame({"size": [1.5, 2.0, None, 1.0, 3.0, 4.0], "colour": COLOURS, "new": [True, False] * 3, "day": days})


def frames():
    plain = pandas_frame()
    arrow = pa.table({"size": plain["size"].tolist(), "colour": COLOURS, "new": [True, False] * 3, "day": DAYS})
    arrow = arrow.set_column(0, "size", pa.array([1.5, 2.0, None, 1.0, 3.0, 4.0]))
    polar = pl.DataFrame({"size": [1.5, 2.0, None, 1.0, 3.0, 4.0], "colour": COLOURS, "new": [True, False] * 3, "day": DAYS})
    return {
        "pandas": plain,
        "pandas category": plain.astype({"colour": pd.CategoricalDtype(["red", "blue", "yellow", "green"])}),
        "pandas object": plain.astype({"colour": object, "new": object, "day": object}),
        "pandas of arrow": plain.astype({"size": "Float64", "new": "boolean", "colour": "string[pyarrow]"}),
        "pandas time zone": plain.assign(day=plain["day"].dt.tz_localize("UTC")),
        "polars": polar,
        "polars category": polar.cast({"colour": pl.Categorical}),
        "pyarrow": arrow,
        "pyarrow dictionary": arrow.set_column(1, "colour", arrow["colour"].dictionary_encode()),
    }


@pytest.mark.parametrize("name", frames())
def test_all_data_frames_are_read_alike(name):
    table = frames()[name]
    assert is_table(table)
    columns = TableColumns.of(table)
    assert columns.names == ["size", "new", "day", "colour"]
    assert [column.kind for column in columns.columns] == ["number", "category", "boolean", "date"]
    np.testing.assert_array_equal(columns.read(table)[:4], EXPECTED)
    np.testing.assert_array_equal(columns.categories, [3])
    assert columns.columns[1].missing == columns.columns[0].missing == pytest.approx(1 / 6)
    # What was fitted on one reads all others.
    np.testing.assert_array_equal(TableColumns.of(pandas_frame()).read(table)[:4], EXPECTED)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([7, 8, None, 7]).dictionary_encode(),
        pa.chunked_array([pa.array([7, 8]).dictionary_encode(), pa.array([None, 7]).dictionary_encode()]),
    ],
)
def test_categories_of_numbers_of_pyarrow_are_categories(column):
    frames = [pa.table({"shop": column, "size": [1.0, 2.0, 3.0, 4.0]})]
    frames.append(pd.DataFrame({"shop": pd.array([7, 8, None, 7], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.int64())))}))
    for table in frames:
        columns = TableColumns.of(table)
        assert (columns.columns[0].kind, columns.columns[0].values) == ("category", (7.0, 8.0))
        np.testing.assert_array_equal(columns.read(table)[:, -1], [0.0, 1.0, -1.0, 0.0])


def test_decimals_are_numbers():
    columns = TableColumns.of(pa.table({"price": [Decimal("1.5"), None], "colour": ["a", "a"]}))
    np.testing.assert_array_equal(columns.read(pa.table({"price": [Decimal("2.5")], "colour": ["a"]}))[0], [2.5, 0.0])


@pytest.mark.parametrize("chosen", ["from_dtype", ["empty"]])
def test_a_category_without_any_value_is_left_out_with_a_warning(chosen):
    table = pandas_frame().assign(empty=pd.Categorical([None] * 6))
    with pytest.warns(UserWarning, match="X has no value in column 'empty'; the model does not use it"):
        columns = TableColumns.of(table, chosen)
    assert (columns.columns[-1].kind, columns.columns[-1].missing) == ("left out", 1.0)


@pytest.mark.parametrize("empty", [np.nan, pd.NaT])
def test_a_column_of_numbers_or_dates_without_any_value_is_left_out(empty):
    table, y = pandas_frame(), [0, 0, 1, 1, 2, 2]
    with pytest.warns(UserWarning, match="^X has no value in column 'empty'; the model does not use it[.]$") as told:
        tree = SimilarityTree(max_depth=2, random_state=0).fit(table.assign(empty=pd.Series([empty] * 6)), y)
    assert len(told) == 1
    assert tree.columns_.columns[-1].kind == "left out"
    np.testing.assert_array_equal(tree.pairwise_score(table), tree.pairwise_score(table.assign(empty=range(6))))


@pytest.mark.parametrize("name", frames())
def test_a_model_is_fitted_on_every_data_frame(name):
    table = frames()[name]
    fitted = SimilarityTree(max_depth=1, splitter="cut", random_state=0).fit(table, [0, 0, 1, 1, 2, 2])
    expected = SimilarityTree(max_depth=1, splitter="cut", random_state=0).fit(pandas_frame(), [0, 0, 1, 1, 2, 2])
    assert fitted.columns_ == expected.columns_
    np.testing.assert_array_equal(fitted.pairwise_score(table), expected.pairwise_score(pandas_frame()))


def test_numbers_are_no_table():
    assert not is_table(pd.DataFrame({"a": [1.0], "b": [True], "c": pd.array([1], dtype="Int64")}))
    assert not is_table(pl.DataFrame({"a": [1.0], "b": [True]}))
    assert not is_table(np.zeros((2, 2)))
    assert not is_table([["a"]])


def test_dates_with_a_time_have_an_hour():
    zone = timezone(timedelta(hours=2))
    times = pd.to_datetime(["1970-01-02 12:30", "1970-01-03 00:00"])
    table = pd.DataFrame({"when": times})
    columns = TableColumns.of(table)
    assert columns.names == ["when", "when: hour"]
    np.testing.assert_array_equal(columns.read(table), [[1.0, 12.5], [2.0, 0.0]])
    aware = pd.DataFrame({"when": times.tz_localize(zone)})
    np.testing.assert_array_equal(columns.read(aware)[0], [1.0, 10.5])
    objects = pd.DataFrame({"when": np.array([datetime(1970, 1, 2, 12, tzinfo=zone), None], dtype=object)})
    np.testing.assert_array_equal(columns.read(objects), [[1.0, 10.0], [np.nan, np.nan]])
    assert TableColumns.of(pd.DataFrame({"long": pd.to_timedelta([36, 12], unit="h")})).columns[0].kind == "number"


def test_new_values_are_equal_to_themselves_and_never_missing():
    columns = TableColumns.of(pandas_frame())
    new = pandas_frame().assign(colour=["pink", "grey", None, "pink", "red", "grey"])
    codes = columns.read(new)[:, 3]
    assert codes[0] == codes[3] != codes[1] == codes[5]
    assert codes[2] == MISSING
    assert (codes[[0, 1]] >= FIRST_HASHED).all()
    assert codes[4] == 2.0
    np.testing.assert_array_equal(codes, codes.astype(np.float32))
    assert columns.read(new.iloc[:1])[0, 3] == codes[0]


def test_text_that_utf8_cannot_hold_is_a_value(tmp_path):
    names = ["file-\ud800", "file-\udcff", "plain"]
    table, y = pd.DataFrame({"name": pd.Series(names * 4, dtype=object)}), [0, 0, 0, 1, 1, 1] * 2
    tree = SimilarityTree(max_depth=2, random_state=0).fit(table, y)
    assert tree.columns_.columns[0].values == ("file-\ud800", "file-\udcff", "plain")
    new = pd.DataFrame({"name": pd.Series(["\udc80", "\udc81", *names], dtype=object)})
    codes = tree.columns_.read(new)[:, 0]
    assert (codes[:2] >= FIRST_HASHED).all()
    assert len(np.unique(codes)) == 5
    tree.save(tmp_path / "m.simtree")
    again = load(tmp_path / "m.simtree")
    assert again.columns_ == tree.columns_
    np.testing.assert_array_equal(again.pairwise_score(new), tree.pairwise_score(new))


def test_hashes_of_many_values_differ():
    codes = {hashed(f"value {k}") for k in range(3000)}
    assert len(codes) == 3000
    assert min(codes) >= FIRST_HASHED


def test_values_of_one_identity_are_not_kept():
    table = pd.DataFrame({"colour": ["red", "red", "blue", "blue", "pink", None], "size": np.arange(6.0)})
    columns = TableColumns.of(table)
    identities = np.array([0, 1, 1, 1, 2, 2])
    matrix = columns.read(table)
    kept = columns.without_private(matrix, identities)
    assert kept.columns[0].values == ("red",)
    np.testing.assert_array_equal(matrix[:, 1], [0, 0, hashed("blue"), hashed("blue"), hashed("pink"), MISSING])
    np.testing.assert_array_equal(kept.read(table), matrix)
    assert kept.columns[0].n_distinct == 3
    assert "blue" not in str(kept._get_state())


def test_chosen_columns_are_categories():
    numbers = np.array([[1.0, 5.0], [2.0, 5.0], [np.nan, 7.0], [1.0, 5.0]])
    by_number, by_mask = (TableColumns.of(numbers, chosen) for chosen in ([0], [True, False]))
    np.testing.assert_array_equal(by_number.read(numbers), [[5, 0], [5, 1], [7, -1], [5, 0]])
    np.testing.assert_array_equal(by_mask.read(numbers), by_number.read(numbers))
    frame = pd.DataFrame(numbers, columns=["a", "b"])
    np.testing.assert_array_equal(TableColumns.of(frame, ["a"]).read(frame), by_number.read(numbers))
    objects = np.array([["x", 1.0], ["y", 2.0], ["x", 1.0]], dtype=object)
    np.testing.assert_array_equal(TableColumns.of(objects, [0]).read(objects), [[1, 0], [2, 1], [1, 0]])


def test_text_that_identifies_rows_is_left_out_unless_it_is_named():
    notes = [f"note {k}" for k in range(19)] + ["note 0"]
    table = pd.DataFrame({"note": notes, "size": np.arange(20.0)})
    said = r"'note' of text with a different value in nearly every row \(19 values in 20 rows\); it is left out, unless"
    with pytest.warns(UserWarning, match=said):
        columns = TableColumns.of(table)
    assert columns.names == ["size"]
    assert columns.read(table.drop(columns="note")).shape == (20, 1)
    assert TableColumns.of(table, ["note"]).names == ["size", "note"]


def test_words_of_a_row():
    columns = TableColumns.of(pandas_frame())
    assert columns.words(np.array([1.5, 1.0, 3.0, 0.0])).tolist() == [1.5, 1.0, 3.0, "blue"]
    assert np.isnan(columns.words(np.array([1.5, 1.0, 3.0, -1.0]))[3])  # not a word, which a value could be
    assert columns.words(np.array([1.5, 1.0, 3.0, hashed("new")]))[3] == "(other)"


def test_ten_thousand_values_of_many_rows_are_read_in_bounded_memory():
    import tracemalloc

    n = 200_000
    codes = np.random.default_rng(0).integers(0, 10_000, n)
    table = pd.DataFrame({"shop": pd.Categorical.from_codes(codes, [f"shop {k}" for k in range(10_000)])})
    tracemalloc.start()
    columns = TableColumns.of(table)
    matrix = columns.read(table)
    columns.without_private(matrix, codes % 50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * n  # 200 MB for a million rows
    assert len(np.unique(matrix)) == 10_000


# Bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "chosen", "message"),
    [
        ({"a": [1, "x", 1]}, "from_dtype", "column 'a' of mixed types, such as 1 and 'x'; make all of its values text"),
        ({"a": ["x", True, "x"]}, "from_dtype", "mixed types, such as 'x' and True"),
        (
            {"a": [[1], [2], [1]]},
            "from_dtype",
            r"column 'a' with values of the type list, such as \[1\]; make numbers, text or",
        ),
        (
            {"a": [time(0), time(1)]},
            "from_dtype",
            r"values of the type time, such as datetime.time\(0, 0\); make numbers, text or",
        ),
        ({"a": [1.0, np.inf, 2.0], "b": ["x", "x", "y"]}, "from_dtype", "infinity in column 'a', first in row 1"),
        ({"a": [1.0, 1.0, -np.inf]}, ["a"], "infinity in column 'a', first in row 2"),
        ({"a": pd.Categorical([1.0, np.inf, 1.0])}, "from_dtype", "infinity in column 'a', first in row 1"),
        ({"a": [1.0, 2.0, 3.0]}, ["a"], "names the column 'a', whose values are all different"),
        ({"a": [1.0, 2.0, 3.0]}, ["b"], "categorical_features has 'b'; the columns of X are 'a'"),
        ({"a": [1.0, 2.0, 3.0]}, [1], "categorical_features has the column 1; X has 1 column, numbered from 0"),
        ({"a": [1.0, 2.0, 3.0]}, [True, False], r"mask of shape \(2,\); X has 1 column"),
        ({"a": [1.0, 2.0, 3.0]}, [0.5], "is not a mask, numbers or names"),
        ({"a": [1.0, 2.0, 3.0]}, "dtype", "categorical_features has 'dtype'"),
        ({"a": [1j, 2.0, 3.0], "b": ["x", "x", "y"]}, "from_dtype", "column 'a' of type complex128"),
    ],
)
def test_what_cannot_be_read_is_named(table, chosen, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TableColumns.of(pd.DataFrame(table), chosen)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(size=list("abcdef")), "'size' of text, such as 'a', but the model was fitted on numbers there"),
        (lambda t: t.assign(day=1.0), "'day' of numbers, but the model was fitted on dates there; convert it to dates"),
        (lambda t: t.drop(columns="colour"), "no column 'colour', on which the model was fitted"),
        (lambda t: t.assign(size=-np.inf), "infinity in column 'size', first in row 0"),
        (lambda t: t.to_numpy()[:, :2], "X has 2 columns, but the model was fitted on 4"),
        (lambda t: np.zeros(4), "X has 1 dimension"),
        (lambda t: pd.concat([t, t[["size"]]], axis=1), "two columns 'size'"),
    ],
)
def test_tables_that_changed_get_one_sentence(change, message):
    columns = TableColumns.of(pandas_frame())
    with pytest.raises(ValueError, match=message):
        columns.read(change(pandas_frame()))


@pytest.mark.parametrize("make", [np.array, pd.Categorical, pd.Series])
def test_infinity_that_comes_later_into_a_category_is_refused(make):
    columns = TableColumns.of(pd.DataFrame({"code": make([1.0, 2.0, 1.0])}), ["code"])
    with pytest.raises(ValueError, match="infinity in column 'code', first in row 1; replace it by a finite number"):
        columns.read(pd.DataFrame({"code": make([1.0, np.inf, 2.0])}))


LARGE = [2**60 + 1, 2**60 + 2, 2**60 + 1]
DECIMALS = [Decimal(x) for x in LARGE]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(LARGE),
        pd.Series([-x for x in LARGE]),
        pd.Series(LARGE, dtype="uint64"),
        pd.Series([*LARGE, None], dtype="Int64"),
        pd.Series([*LARGE, None], dtype=pd.ArrowDtype(pa.int64())),
        pd.Series([*LARGE, None], dtype=object),
        pd.Series(pd.Categorical(LARGE)),
        pd.Series(pd.Categorical(np.array(LARGE, dtype=object))),
        pl.Series(LARGE),
        pl.Series([*LARGE, None]),
        pa.array(LARGE),
        pa.array([*LARGE, None]),
        pa.array(LARGE).dictionary_encode(),
        pd.Series([*DECIMALS, None], dtype=object),
        pd.Series([*DECIMALS, None], dtype=pd.ArrowDtype(pa.decimal128(20, 0))),
        pl.Series([*DECIMALS, None]),
        pa.array([*DECIMALS, None], pa.decimal128(20, 0)),
        pa.array([*DECIMALS, None], pa.decimal128(22, 2)),
    ],
)
def test_integers_that_cannot_be_told_apart_are_no_categories(column):
    frame = {pl.Series: pl.DataFrame, pd.Series: pd.DataFrame}.get(type(column), pa.table)
    said = r"category 'code' with (the integer -?115292150460684697[78]|an integer that is about 1\.15292150460685e\+18), and"
    with pytest.raises(ValueError, match=said):
        TableColumns.of(frame({"code": column}), ["code"])
    with pytest.raises(ValueError, match=said):
        TableColumns.of(pd.DataFrame({"code": [1, 2, 1]}), ["code"]).read(frame({"code": column}))


def test_decimals_that_are_no_large_integers_are_categories():
    prices = [Decimal("1.50"), Decimal(2**53 - 1), Decimal("1.5"), Decimal("NaN"), Decimal(2**53 - 1)]
    columns = TableColumns.of(pd.DataFrame({"price": pd.Series(prices, dtype=object)}), ["price"])
    assert columns.columns[0].values == (1.5, 2.0**53 - 1)
    infinite = pd.DataFrame({"price": pd.Series([Decimal("Infinity"), Decimal(1), Decimal(1)], dtype=object)})
    with pytest.raises(ValueError, match="infinity in column 'price', first in row 0"):
        TableColumns.of(infinite, ["price"])


def test_large_integers_are_categories_as_text_and_numbers_as_they_are():
    table = pd.DataFrame({"code": LARGE, "size": LARGE})
    columns = TableColumns.of(table.astype({"code": str}), ["code"])
    assert columns.columns[0].values == (str(LARGE[0]), str(LARGE[1]))
    np.testing.assert_array_equal(columns.read(table.astype({"code": str})), [[2.0**60, 0], [2.0**60, 1], [2.0**60, 0]])


HOURS = [timedelta(hours=36), timedelta(microseconds=-1), None, timedelta(days=200_000)]


@pytest.mark.parametrize(
    "times",
    [
        pd.Series(HOURS).astype("timedelta64[us]"),
        pd.Series(HOURS, dtype=object),
        pd.Series([None if x is None else np.timedelta64(x) for x in HOURS], dtype=object),
        pd.Series([None if x is None else pd.Timedelta(x) for x in HOURS], dtype=object),
        pd.Series(HOURS, dtype=pd.ArrowDtype(pa.duration("us"))),
        pl.Series(HOURS),
        pa.array(HOURS),
        pa.chunked_array([pa.array(HOURS[:1]), pa.array(HOURS[1:], type=pa.duration("us"))]),
    ],
)
def test_durations_are_days(times):
    frame = {pl.Series: pl.DataFrame, pd.Series: pd.DataFrame}.get(type(times), pa.table)({"time": times})
    columns = TableColumns.of(frame)
    assert columns.columns[0].kind == "number"
    np.testing.assert_array_equal(columns.read(frame)[:, 0], [1.5, -1e-6 / 86_400, np.nan, 200_000])


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
def test_durations_of_a_category_are_days(unit):
    table = pd.DataFrame({"time": pd.Categorical(pd.to_timedelta([36, 12, 36], unit="h").as_unit(unit))})
    assert TableColumns.of(table).columns[0].values == (0.5, 1.5)


def test_durations_among_numbers_are_refused():
    table = pd.DataFrame({"time": pd.Series([timedelta(hours=36), 1.5], dtype=object)})
    with pytest.raises(ValueError, match="column 'time' of mixed types"):
        TableColumns.of(table)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pl.Series([{"a": 1}, {"a": 2}, {"a": 1}]), "type dict, such as {'a': 1}"),
        (pl.Series([{"a": 1, "b": "x"}, None, {"a": 1, "b": "x"}]), "type dict, such as {'a': 1, 'b': 'x'}"),
        (pl.Series([[1], [2], [1]], dtype=pl.Array(pl.Int64, 1)), "type list, such as [1]"),
        (pl.Series([[1, 2]] * 3, dtype=pl.Array(pl.Int64, 2)), "type list, such as [1, 2]"),
        (pl.Series([[[1.0], [2.0]]] * 3, dtype=pl.Array(pl.Float64, (2, 1))), "type list, such as [[1.0], [2.0]]"),
    ],
)
def test_structs_and_arrays_are_refused_like_lists(column, said):
    said = f"column 'a' with values of the {said}; make numbers, text or dates of them, or drop it"
    with pytest.raises(ValueError, match=re.escape(said)):
        TableColumns.of(pl.DataFrame({"a": column}))


DATES = ["2020-01-01", "2020-01-02 12:30:00", "2020-01-01"]
ISO = pd.to_datetime(DATES, format="ISO8601")


@pytest.mark.parametrize(
    "dates",
    [
        *(pd.Series(ISO.as_unit(unit)) for unit in ("ns", "us", "s")),
        *(pd.Series(pd.Categorical(ISO.as_unit(unit))) for unit in ("ns", "us", "s")),
        pd.Series(ISO.tz_localize("UTC").tz_convert("Asia/Tokyo")),
        pd.Series(pd.Categorical(ISO.tz_localize("UTC").tz_convert("Asia/Tokyo"))),
        pd.Series(ISO.to_pydatetime(), dtype=object),
        pd.Series(ISO, dtype=pd.ArrowDtype(pa.timestamp("us"))),
        pd.Series(pd.Categorical.from_codes([0, 1, 2], np.array([date(2020, 1, 1), ISO[1], "2020-01-01"], dtype=object))),
        pd.Series(DATES),
        pl.Series(ISO.to_pydatetime()),
        pa.array(ISO.to_pydatetime()),
        pa.array(ISO.to_pydatetime()).dictionary_encode(),
    ],
)
def test_a_date_has_one_name_as_a_category(dates):
    frame = {pl.Series: pl.DataFrame, pd.Series: pd.DataFrame}.get(type(dates), pa.table)({"day": dates})
    columns = TableColumns.of(frame, ["day"])
    assert columns.columns[0].values == ("2020-01-01", "2020-01-02 12:30:00")
    np.testing.assert_array_equal(columns.read(frame), [[0], [1], [0]])


# As polars writes them to a text file, with a zone, and as earlier models have them in their files.
SPELLED = ["2020-01-01 00:00:00", "2020-01-02T13:30+01:00", "2020-01-01T00:00:00.000000"]


@pytest.mark.parametrize("values", [DATES[:2], SPELLED[:2], ["2020-01-01T00:00:00.000000", "2020-01-02T12:30:00.000000"]])
@pytest.mark.parametrize("scored", [DATES, SPELLED, ISO, pd.Categorical(ISO.as_unit("ns"))])
def test_a_date_that_is_spelled_in_another_way_is_known(values, scored):
    columns = TableColumns.of(pd.DataFrame({"day": DATES}))
    columns = replace(columns, columns=(replace(columns.columns[0], values=tuple(values)),))
    np.testing.assert_array_equal(columns.read(pd.DataFrame({"day": scored})), [[0], [1], [0]])


@pytest.mark.parametrize("zone", ["Z", "+02", "+0200", "+02:00", "-11:30"])
@pytest.mark.parametrize("time", ["12:30", "12:30:00", "12:30:00.5", "12:30:00,25", "12:30:00.12345", "12:30:00.123456789"])
def test_white_space_may_stand_before_a_zone(time, zone):
    together, apart = moment_of(f"2020-01-31T{time}{zone}"), moment_of(f"2020-01-31 {time} {zone}")
    assert together is not None
    assert apart == together


@pytest.mark.parametrize(
    "text", ["2020-01-31 Z", "2020-01-31 12:30 ", "2020-01-31 12:30  Z", "2020-01-31 12:30:00.5 +2", "2020-02-30"]
)
def test_text_that_is_nearly_a_date_is_none(text):
    assert moment_of(text) is None


def test_a_vocabulary_of_dates_is_named_once(monkeypatch):
    columns = TableColumns.of(pd.DataFrame({"day": DATES}))
    columns = replace(columns, columns=(replace(columns.columns[0], values=tuple(SPELLED[:2])),))
    new = pd.DataFrame({"day": ["2021-01-01", "2020-01-01T00:00"]})
    expected = columns.read(new)
    copied = pickle.loads(pickle.dumps(columns))
    named = []
    monkeypatch.setattr(_column, "moment_of", lambda value: named.append(value) or moment_of(value))
    for frame in (new, pd.DataFrame({"day": pd.to_datetime(["2021-01-01", "2020-01-01"])})):
        np.testing.assert_array_equal(columns.read(frame), expected)
    assert named == new["day"].tolist()
    assert copied == columns
    assert "dates" not in vars(copied.columns[0])
    np.testing.assert_array_equal(copied.read(new), expected)


def test_a_new_date_has_one_code_in_all_spellings():
    columns = TableColumns.of(pd.DataFrame({"day": ["soon", "late", "soon"]}))
    codes = columns.read(pd.DataFrame({"day": [*DATES, *SPELLED]}))[:, 0]
    np.testing.assert_array_equal(codes[:3], codes[3:])
    assert codes[0] >= FIRST_HASHED


NUMBERS, TEXT = [1, 2, 1], ["1", "2", "1"]
BOOLEANS, STAMPS = [True, False, True], pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01"])


@pytest.mark.parametrize(
    ("fitted", "scored", "message"),
    [
        (TEXT, NUMBERS, "of numbers, but the model was fitted on text there; convert it to text"),
        (TEXT, pd.Categorical(NUMBERS), "of numbers, but the model was fitted on text there; convert it to text"),
        (TEXT, BOOLEANS, "of booleans, but the model was fitted on text there"),
        (TEXT, STAMPS, "of dates, but the model was fitted on text there"),
        (NUMBERS, TEXT, "of text, such as '1', but the model was fitted on numbers there; convert it to numbers"),
        (NUMBERS, pd.Categorical(TEXT), "of text, such as '1', but the model was fitted on numbers there"),
        (NUMBERS, STAMPS, "of dates, but the model was fitted on numbers there"),
        (BOOLEANS, TEXT, "of text, such as '1', but the model was fitted on numbers there"),
        (STAMPS, NUMBERS, "of numbers, but the model was fitted on dates there; convert it to dates"),
        (STAMPS, BOOLEANS, "of booleans, but the model was fitted on dates there; convert it to dates"),
        (["a", "2020-01-01", "a"], NUMBERS, "of numbers, but the model was fitted on text there"),
    ],
)
def test_categories_that_turned_to_another_type_get_one_sentence(fitted, scored, message):
    columns = TableColumns.of(pd.DataFrame({"code": fitted}), ["code"])
    with pytest.raises(ValueError, match=f"X has the column 'code' {message}"):
        columns.read(pd.DataFrame({"code": scored}))


@pytest.mark.parametrize(
    ("fitted", "scored"),
    [
        (TEXT, ["soon", "1", None]),
        (TEXT, [None, None, None]),
        (TEXT, pd.Categorical([None, None, None], categories=[1, 2])),
        (BOOLEANS, NUMBERS),
        (STAMPS, ["2020-01-01", "soon", "2020-01-02"]),
        (["a", "2020-01-01", "a"], STAMPS),
        (pd.Categorical(["a", 1, "a"]), NUMBERS),
        (pd.Categorical(["a", 1, "a"]), TEXT),
    ],
)
def test_categories_that_may_have_known_values_are_read(fitted, scored):
    columns = TableColumns.of(pd.DataFrame({"code": fitted}), ["code"])
    assert columns.read(pd.DataFrame({"code": scored})).shape == (3, 1)


@pytest.mark.parametrize("unit", ["ns", "us"])
@pytest.mark.parametrize(
    ("values", "scored", "called", "fitted"),
    [
        ((1.5778368e18, 1.5779682e18), ISO, "dates", "numbers"),
        (("1 day, 12:00:00", "12:00:00"), pd.to_timedelta([36, 12, 36], unit="h"), "durations", "text"),
    ],
)
def test_models_of_earlier_versions_that_had_other_values_must_be_fitted_again(unit, values, scored, called, fitted):
    columns = TableColumns.of(pd.DataFrame({"a": DATES}))
    columns = replace(columns, columns=(replace(columns.columns[0], values=values),))
    said = f"column 'a' of {called}, but the model was fitted on {fitted} there; fit the model again on {called}, or convert"
    for column in (scored.as_unit(unit), pd.Categorical(scored.as_unit(unit)), pd.Series(scored, dtype=object)):
        with pytest.raises(ValueError, match=said):
            columns.read(pd.DataFrame({"a": column}))


def test_a_vocabulary_without_values_says_nothing_of_types():
    columns = TableColumns.of(pd.DataFrame({"code": TEXT}), ["code"]).with_shared_values([np.array([[0, 1], [0, 1]])])
    assert (columns.read(pd.DataFrame({"code": NUMBERS})) >= FIRST_HASHED).all()


def test_all_columns_left_out_is_an_error():
    said = "no column left; give one of numbers, or of values that rows share"
    reason = "nearly every row .*; it is left out, for no two rows can be equal in it"
    with pytest.warns(UserWarning, match=reason), pytest.raises(ValueError, match=said):
        TableColumns.of(pd.DataFrame({"note": list("abc")}))
    with pytest.warns(UserWarning, match="X has no value in column 'note'"), pytest.raises(ValueError, match=said):
        TableColumns.of(pd.DataFrame({"note": [None] * 3}, dtype=object))
    said = "no column left; name those of text in categorical_features"
    with pytest.warns(UserWarning, match="unless categorical_features names it"), pytest.raises(ValueError, match=said):
        TableColumns.of(pd.DataFrame({"note": [*map(str, range(19)), "0"]}))


def test_columns_come_back_from_a_file():
    columns = TableColumns.of(pandas_frame())
    again = TableColumns._from_state(read_document(document_bytes(columns._get_state())))
    assert again == columns


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("values", ["a", "a"], "must be distinct strings and numbers"),
        ("values", [["a"]], "must be distinct strings and numbers|unhashable"),
        ("kind", "code", "must be one of"),
        ("missing", 2.0, "must be a number from 0 to 1"),
    ],
)
def test_damaged_columns_are_refused(entry, value, message):
    state = TableColumns.of(pandas_frame())._get_state()
    state["columns"][1][entry] = value
    with pytest.raises(ModelFileError, match=message):
        TableColumns._from_state(read_document(document_bytes(state)))


# Dates that nanoseconds cannot hold ------------------------------------------------------------------

FAR = [date(9999, 12, 31), date(1066, 10, 14), date(2020, 1, 1), None]


@pytest.mark.parametrize(
    "days",
    [
        pd.Series(pd.to_datetime(FAR).as_unit("us")),
        pd.Series(pd.to_datetime(FAR).as_unit("s")),
        pd.Series(FAR, dtype=object),
        pd.Series([None if day is None else np.datetime64(day) for day in FAR], dtype=object),
        pd.Series(FAR, dtype=pd.ArrowDtype(pa.date32())),
        pl.Series(FAR),
        pl.Series(FAR).cast(pl.Datetime("us")),
        pa.array(FAR),
        pa.array(FAR).cast(pa.timestamp("us", tz="UTC")),
    ],
    ids=["us", "s", "object", "datetime64", "arrow dtype", "polars", "polars time", "pyarrow", "pyarrow time"],
)
def test_dates_of_all_years_are_days(days):
    frame = {pl.Series: pl.DataFrame, pd.Series: pd.DataFrame}.get(type(days), pa.table)({"day": days})
    expected = np.array(FAR, dtype="datetime64[D]").astype(np.int64)[:3]
    columns = TableColumns.of(frame)
    assert columns.names == ["day"]
    np.testing.assert_array_equal(columns.read(frame)[:3, 0], expected)
    assert np.isnan(columns.read(frame)[3, 0])


def test_the_last_moment_of_the_calendar_has_a_time_zone():
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-5)))
    table = pd.DataFrame({"until": pd.Series([last, None], dtype=object)})
    days = np.datetime64("10000-01-01").astype(np.int64)
    np.testing.assert_allclose(TableColumns.of(table).read(table)[0], [days, 4 + (59 + 59 / 60) / 60])


def test_times_below_microseconds_are_cut_off():
    table = pd.DataFrame({"when": pd.to_datetime(["1970-01-02", "1969-12-31"]).as_unit("ns") + pd.Timedelta(999, "ns")})
    columns = TableColumns.of(table)
    assert columns.names == ["when"]
    np.testing.assert_array_equal(columns.read(table), [[1.0], [-1.0]])


def test_dates_beyond_microseconds_are_refused():
    table = pd.DataFrame({"day": np.array(["2020-01-01", "300000-01-01"], dtype="datetime64[s]")})
    with pytest.raises(ValueError, match="column 'day' with the date 300000-01-01T00:00:00, which is too far away; correct it"):
        TableColumns.of(table)
