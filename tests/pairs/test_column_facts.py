"""What is known of parts of a table is joined to what is known of all of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from simtree.pairs._categories import N_FOLDS, ValueCounts
from simtree.pairs._column_facts import ColumnFacts, joined_facts

CHOSEN = (5,)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "colour": rng.choice(np.array(["red", "blue", None], dtype=object), n),
            "town": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "new": rng.random(n) < 0.5,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 9, n), unit="D"),
            "code": rng.choice([0.0, -0.0, 1.0, 2.0], n),
        }
    )
    frame.loc[:19, "colour"] = None
    frame.loc[50, "day"] += pd.Timedelta("1h")
    return frame


def of_parts(frame, ends, max_values=None):
    parts = [ColumnFacts.of_table(frame.iloc[start:stop], CHOSEN, max_values) for start, stop in pairwise(ends)]
    return joined_facts(list(frame.columns), parts)


@pytest.mark.parametrize("ends", [(0, 60), (0, 20, 21, 60), (0, 1, 2, 59, 60)])
@pytest.mark.parametrize("max_values", [None, 2])
def test_joined_facts_are_those_of_the_table(table, ends, max_values):
    whole, found = of_parts(table, (0, 60)), of_parts(table, ends, max_values)
    for one, other in zip(whole, found, strict=True):
        for name in ("kind", "n_rows", "n_missing", "n_distinct", "has_time"):
            assert getattr(one, name) == getattr(other, name)
        assert other.values is None or set(other.values) == set(one.values)


def test_text_that_utf8_cannot_hold_is_told_by_hashes(table):
    table = table.assign(colour=pd.Series(["\ud800", "\udc80", "red"] * 20, dtype=object))
    assert of_parts(table, (0, 20, 60), 2)[1].n_distinct == 3


def test_infinity_is_named_by_its_row_in_the_table(table):
    table.loc[41, "size"] = np.inf
    table.loc[43, "code"] = -np.inf  # a category
    assert [facts.infinite_row for facts in of_parts(table, (0, 20, 60))] == [41, None, None, None, None, 43]


def test_integers_that_cannot_be_told_apart_are_remembered(table):
    table = table.assign(code=[1] * 40 + [2**53 + 1] * 20)
    assert [facts.large for facts in of_parts(table, (0, 20, 60))] == [None] * 5 + [2**53 + 1]


def test_parts_of_different_kinds_are_refused(table):
    words = table.assign(colour=["red"] * 30 + [7.0] * 30)
    with pytest.raises(ValueError, match=r"the column 'colour' of mixed types, such as 'red' and 7\.0"):
        of_parts(words, (0, 30, 60))


def test_counts_of_values_can_be_added():
    rng = np.random.default_rng(0)
    codes = rng.choice([-1.0, 0.0, 1.0, 2.0, 2.0**40, 2.0**41], 400)
    units = rng.integers(0, 40, 400)
    folds = (units % N_FOLDS).astype(np.uint8)
    whole = ValueCounts.of(codes, 3, folds, units)
    cuts = [slice(0, 1), slice(1, 250), slice(250, 400)]
    parts = [ValueCounts.of(codes[cut], 3, folds[cut], units[cut]) for cut in cuts]
    for joined in (parts[0].add(parts[1]).add(parts[2]), parts[2].add(parts[0].add(parts[1]))):
        for name in ("counts", "others", "n_others", "holders"):
            np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
        np.testing.assert_array_equal(joined.rarities()[0], whole.rarities()[0])
    # By brute force: at least two units of each fold have the value.
    for value, is_frequent in zip([0.0, 1.0, 2.0, -1.0], whole.are_frequent(), strict=True):
        n_units = [len(np.unique(units[(codes == value) & (folds == fold)])) for fold in range(N_FOLDS)]
        assert is_frequent == (min(n_units) >= 2)
