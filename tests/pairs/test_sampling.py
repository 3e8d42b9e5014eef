from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import oracle
from simtree._utils.validation import check_pair_labels
from simtree.pairs._inputs import check_index_pairs, look_up, stack_pairs
from simtree.pairs._labels import encode_labels
from simtree.pairs._sampling import PairSampler


def as_set(pairs):
    return {tuple(sorted(p)) for p in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}


@given(st.lists(st.sampled_from("abcde"), min_size=3, max_size=14))
@settings(max_examples=60, deadline=None, database=None)
def test_all_pairs_are_all_pairs(y):
    if len(set(y)) < 2 or len(set(y)) == len(y):
        return
    pairs = PairSampler(y).all_pairs()
    expected = oracle.all_pairs(y)
    assert len(pairs) == len(expected) == len(as_set(pairs))
    found = zip(pairs.first, pairs.second, pairs.same, strict=True)
    assert sorted((min(i, j), max(i, j), bool(s)) for i, j, s in found) == sorted(expected)


def test_drawn_pairs_are_uniform_over_their_kind_with_very_unequal_classes():
    """5,000 identities, sizes 1 to 500: same pairs uniform over pairs, different pairs too, never i = j (chi-square)."""
    rng = np.random.default_rng(0)
    sizes = np.maximum(1, (500 / np.arange(1, 5001) ** 0.8)).astype(int)
    y = rng.permutation(np.repeat(np.arange(5000), sizes))
    n = len(y)
    size_of = np.bincount(y)
    pairs = PairSampler(y).sample(400_000, rng)
    same = pairs.same
    assert same.sum() == 200_000
    assert (pairs.first != pairs.second).all()
    np.testing.assert_array_equal(y[pairs.first] == y[pairs.second], same)
    # A point is in size - 1 same pairs and in n - size different pairs, on either side.
    for kind, weight in ((same, size_of - 1), (~same, n - size_of)):
        for side in (pairs.first, pairs.second):
            drawn = np.bincount(y[side[kind]], minlength=5000)
            expected = kind.sum() * size_of * weight / (size_of * weight).sum()
            # Classes that are expected rarely are counted together.
            common = expected >= 20
            observed = np.append(drawn[common], drawn[~common].sum())
            wanted = np.append(expected[common], expected[~common].sum())
            keep = wanted > 0
            assert drawn[expected == 0].sum() == 0
            statistic = ((observed - wanted)[keep] ** 2 / wanted[keep]).sum()
            assert statistic < chi2.ppf(1 - 1e-6, keep.sum() - 1)


@pytest.mark.slow
def test_drawn_pairs_are_uniform_pair_by_pair():
    y = [0, 0, 0, 0, 1, 1, 2, 1, 2]
    sampler = PairSampler(y)
    rng = np.random.default_rng(1)
    counts: dict[tuple[int, int], int] = {}
    n_bootstraps = 0
    for _ in range(4000):
        pairs = sampler.sample(10, rng)
        n_bootstraps += 5
        for p in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
            counts[tuple(sorted(p))] = counts.get(tuple(sorted(p)), 0) + 1
    for kind, n_kind in ((True, sampler.n_same_pairs), (False, sampler.n_different_pairs)):
        found = np.array([counts[i, j] for i, j, same in oracle.all_pairs(y) if same == kind])
        assert len(found) == n_kind
        assert ((found - n_bootstraps / n_kind) ** 2 / (n_bootstraps / n_kind)).sum() < chi2.ppf(1 - 1e-6, n_kind - 1)


def test_same_pairs_uniform_over_identities():
    y = np.repeat([0, 1, 2, 3], [100, 10, 2, 1])
    pairs = PairSampler(y).sample(30_000, np.random.default_rng(2), same_weighting="identities")
    drawn = np.bincount(y[pairs.first[pairs.same]], minlength=4) / 15_000
    np.testing.assert_allclose(drawn, [1 / 3, 1 / 3, 1 / 3, 0], atol=0.02)
    assert (pairs.first != pairs.second).all()
    by_pairs = PairSampler(y).sample(2_000, np.random.default_rng(2))
    assert (y[by_pairs.first[by_pairs.same]] == 0).mean() > 0.95  # 4950 of 4996 same pairs


def test_a_kind_with_no_more_pairs_than_asked_for_is_taken_whole():
    y = np.repeat([0, 1], [3, 60])
    sampler = PairSampler(np.concatenate([y, np.arange(2, 50)]))  # 3 + 1770 same pairs of 6105
    pairs = sampler.sample(4_000, np.random.default_rng(0))
    assert pairs.n_same == sampler.n_same_pairs == 1773
    assert as_set(sampler.all_pairs()) >= as_set(pairs)
    assert len(pairs) - pairs.n_same == 2_000
    few = PairSampler([0, 0, 1, 1]).sample(100, np.random.default_rng(0))
    assert len(few) == 6
    assert len(as_set(few)) == 6


def test_mix_of_pairs():
    y = np.random.default_rng(0).integers(0, 10, 1000)
    sampler = PairSampler(y)
    share = sampler.n_same_pairs / (sampler.n_same_pairs + sampler.n_different_pairs)
    rng = np.random.default_rng(1)
    assert sampler.sample(10_000, rng, positive_fraction=0.3).n_same == 3000
    natural = sampler.sample(100_000, rng, positive_fraction=None)
    assert natural.n_same / 100_000 == pytest.approx(share, abs=0.005)
    assert len(sampler.sample(None, rng)) == 499_500


def test_same_seed_same_pairs():
    y = np.arange(300) % 7
    a, b, c = (PairSampler(y).sample(500, np.random.default_rng(s)) for s in (0, 0, 1))
    np.testing.assert_array_equal(a.first, b.first)
    np.testing.assert_array_equal(a.second, b.second)
    assert not np.array_equal(a.first, c.first)


@pytest.mark.parametrize("n_pairs", [500, None])
@pytest.mark.parametrize("weighting", ["pairs", "identities"])
def test_shuffling_mixes_the_kinds_and_changes_only_the_order(n_pairs, weighting):
    sampler = PairSampler(np.arange(60) % 7)
    shuffled, ordered = (
        sampler.sample(n_pairs, np.random.default_rng(0), same_weighting=weighting, shuffle=shuffle)
        for shuffle in (True, False)
    )
    assert (np.diff(ordered.same.astype(int)) <= 0).all()
    columns = [np.column_stack([pairs.first, pairs.second, pairs.same]) for pairs in (shuffled, ordered)]
    assert not np.array_equal(*columns)
    np.testing.assert_array_equal(*(rows[np.lexsort(rows.T)] for rows in columns))
    for part in np.array_split(shuffled.same, 5):
        assert 0 < part.sum() < len(part)


@pytest.mark.slow
def test_ten_million_pairs_of_sixty_thousand_points():
    """The size that users have; all row numbers in range, four bytes each. (The time is the benchmark's business.)"""
    y = np.random.default_rng(0).integers(0, 10, 60_000)
    pairs = PairSampler(y).sample(10_000_000, np.random.default_rng(0))
    assert len(pairs) == 10_000_000
    assert pairs.first.dtype == np.int32
    assert min(pairs.first.min(), pairs.second.min()) >= 0
    assert max(pairs.first.max(), pairs.second.max()) < 60_000
    assert not (pairs.first == pairs.second).any()


def test_class_codes_go_by_first_appearance():
    assert encode_labels(["b", "a", "b", "c", "a"]).tolist() == [0, 1, 0, 2, 1]
    assert encode_labels([3.5, -1, 3.5]).tolist() == [0, 1, 0]
    assert encode_labels(np.array(["b", 7, "b", 7], dtype=object)).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "a"],
        [1.0, np.nan, 1.0],
        np.array(["2020-01-01", "NaT", "2020-01-01"], "datetime64[D]"),
        pd.Series(["a", pd.NA, "a"], dtype="string"),
        pd.Series([1, pd.NA, 1], dtype="Int64"),
        np.array(["a", float("nan"), "a"], dtype=object),
    ],
)
def test_missing_labels_are_no_class(y):
    with pytest.raises(ValueError, match=r"y holds 1 missing label \(None, NaN, NaT or NA\); leave out"):
        encode_labels(y)


def test_drawing_is_checked():
    sampler = PairSampler([0, 0, 1, 1])
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="same_weighting='identity' is unknown"):
        sampler.sample(3, rng, same_weighting="identity")
    with pytest.raises(ValueError, match="positive_fraction=7 is out of range"):
        sampler.sample(3, rng, positive_fraction=7)
    with pytest.raises(ValueError, match="n_pairs=0"):
        sampler.sample(0, rng)


@pytest.mark.parametrize(("y", "message"), [([1, 1, 1], "1 class;.*2 classes"), ([1, 2, 3], "no class with two members")])
def test_labels_without_pairs_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        PairSampler(y)


@pytest.mark.parametrize("same", [[True, False], [1, 0], [1, -1], np.array([1.0, -1.0])])
def test_pair_labels(same):
    assert check_pair_labels("y", same, 2).tolist() == [True, False]


@pytest.mark.parametrize(
    ("same", "message"),
    [
        ([1, 2], r"labels 1, 2;.*bool, 0/1 or -1/\+1"),
        ([-1, 0], "must be bool"),
        ([1, 1], "2 same pairs only"),
        ([False, False], "2 different pairs only"),
        ([1, 0, 1], r"\(3,\).*2 pairs"),
    ],
)
def test_bad_pair_labels(same, message):
    with pytest.raises(ValueError, match=message):
        check_pair_labels("y", same, 2)


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        ([[0, 5]], IndexError, "row number 5; X has 5 rows"),
        ([[-1, 2]], IndexError, "row number -1"),
        ([[0.5, 1.0]], TypeError, "float64.*integers"),
        ([[0, 1, 2]], ValueError, r"\(n_pairs, 2\)"),
        ([0, 1], ValueError, r"\(n_pairs, 2\)"),
    ],
)
def test_bad_row_numbers(pairs, error, message):
    with pytest.raises(error, match=message):
        check_index_pairs(pairs, 5)


def test_stacked_pairs_share_memory(rng):
    pairs = rng.normal(size=(4, 2, 3))
    points, first, second = stack_pairs(pairs)
    assert np.shares_memory(points, pairs)
    np.testing.assert_array_equal(np.stack([points[first], points[second]], axis=1), pairs)


def test_preprocessor_array_and_function(rng):
    table = rng.normal(size=(5, 2))
    keys = np.array([[0, 3], [3, 4]])
    for preprocessor in (table, table.tolist()):
        points, first, second = look_up(keys, preprocessor)
        np.testing.assert_array_equal(np.stack([points[first], points[second]], axis=1), table[keys])
    asked = []

    def fetch(names):
        asked.extend(names)
        return np.array([[len(name), ord(name[0])] for name in names])

    points, first, second = look_up([["ann", "bo"], ["bo", "carol"]], fetch)
    assert sorted(asked) == ["ann", "bo", "carol"]  # once each
    assert points[first].tolist() == [[3, 97], [2, 98]]
    with pytest.raises(ValueError, match=r"returned shape \(1,\) for 3"):
        look_up(keys, lambda ids: np.zeros(1))
    with pytest.raises(IndexError, match="row number 4"):
        look_up(keys, table[:4])
    with pytest.raises(ValueError, match=r"preprocessor has shape \(\); give an \(n_samples, n_features\) array"):
        look_up(keys, 3)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=3, max_size=14))
@settings(max_examples=80, deadline=None, database=None)
def test_points_that_share_a_value_never_pair(points):
    y, sitting = zip(*points, strict=True)
    allowed = {(i, j): same for i, j, same in oracle.all_pairs(y) if sitting[i] != sitting[j]}
    if len(set(y)) < 2 or set(allowed.values()) != {True, False}:
        with pytest.raises(ValueError, match=r"different pairs need|never_pair allows no"):
            PairSampler(y, never_pair=sitting)
        return
    sampler = PairSampler(y, never_pair=sitting)
    pairs = sampler.all_pairs()
    assert as_set(pairs) == set(allowed)
    assert len(pairs) == len(allowed)
    assert (sampler.n_same_pairs, sampler.n_different_pairs) == (pairs.n_same, len(pairs) - pairs.n_same)
    assert as_set(sampler.same_pairs()) == {pair for pair, same in allowed.items() if same}
    rng = np.random.default_rng(0)
    for weighting in ("pairs", "identities"):
        drawn = sampler.sample(max(2, len(allowed) - 1), rng, same_weighting=weighting)
        for i, j, same in zip(drawn.first.tolist(), drawn.second.tolist(), drawn.same.tolist(), strict=True):
            assert allowed[min(i, j), max(i, j)] == same


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["pairs", "identities"])
def test_drawn_pairs_that_may_pair_are_uniform_pair_by_pair(weighting):
    y = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    sitting = np.array([5, 6, 5, 7, 6, 5, 5, 8, 6, 8, 5])
    sampler = PairSampler(y, never_pair=sitting)
    rng = np.random.default_rng(1)
    drawn = [sampler.sample(8, rng, positive_fraction=0.5, same_weighting=weighting) for _ in range(3000)]
    counts: dict[tuple[int, int], int] = {}
    for pairs in drawn:
        for pair in zip(np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second), strict=True):
            counts[tuple(map(int, pair))] = counts.get(tuple(map(int, pair)), 0) + 1
    allowed = [(i, j) for i, j, _ in oracle.all_pairs(y) if sitting[i] != sitting[j]]
    assert set(counts) == set(allowed)
    same = [(i, j) for i, j in allowed if y[i] == y[j]]
    per_class = np.bincount([y[i] for i, _ in same])
    share = {(i, j): 1 / len(same) if weighting == "pairs" else 1 / (3 * per_class[y[i]]) for i, j in same}
    for kind in (same, [pair for pair in allowed if pair not in same]):
        observed = np.array([counts[pair] for pair in kind])
        expected = observed.sum() * np.array([share.get(pair, 1 / len(kind)) for pair in kind])
        assert ((observed - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, len(kind) - 1)


def test_pairs_among_some_points_are_kept_apart_too():
    rng = np.random.default_rng(2)
    y, sitting = rng.integers(0, 4, 60), rng.integers(0, 5, 60)
    chosen = rng.random(60) < 0.5
    sampler = PairSampler(y, never_pair=sitting).restrict(chosen)
    expected = {(i, j) for i, j, _ in oracle.all_pairs(y) if chosen[i] and chosen[j] and sitting[i] != sitting[j]}
    assert as_set(sampler.all_pairs()) == expected
    for weighting in ("pairs", "identities"):
        assert as_set(sampler.sample(50, rng, same_weighting=weighting)) <= expected
    assert PairSampler(y, never_pair=sitting).restrict(sitting == 3) is None


@pytest.mark.parametrize(
    ("never_pair", "message"),
    [
        ([1, 2, 3], r"never_pair has shape \(3,\); give one value per sample, 4 in all"),
        ([1.0, 2.0, np.nan, 3.0], "never_pair holds 1 missing value; give each sample a value"),
        ([1, 1, 2, 2], "never_pair allows no same pair"),
        ([1, 1, 1, 1], "never_pair allows no same pair"),
    ],
)
def test_bad_values_of_never_pair(never_pair, message):
    with pytest.raises(ValueError, match=message):
        PairSampler(["a", "a", "b", "b"], never_pair=never_pair)
