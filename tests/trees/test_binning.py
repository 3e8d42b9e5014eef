from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from simtree._utils.edges import find_edges
from simtree.pairs._categories import Categories
from simtree.pairs._coordinates import FEATURE_KINDS, PAIRWISE_KINDS, CoordinateSet
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs
from simtree.trees._binning import TrainingPairs


def edges_of(values, max_bins):
    """Return the edges of one column, from all its values."""
    return find_edges(values, max_bins, lambda: values)


floats = st.floats(-1e6, 1e6, width=32)


@given(hnp.arrays(np.float64, st.integers(1, 200), elements=floats), st.one_of(st.none(), st.integers(2, 256)))
@settings(max_examples=80, deadline=None, database=None)
def test_edges_separate_distinct_values_where_they_fit(values, max_bins):
    edges = edges_of(values, max_bins)
    distinct = np.unique(values)
    assert (np.diff(edges) > 0).all()
    codes = np.searchsorted(edges, distinct)
    if max_bins is None or len(distinct) <= max_bins:
        np.testing.assert_array_equal(codes, np.arange(len(distinct)))
    else:
        assert len(edges) < max_bins
        assert (np.diff(codes) >= 0).all()


def test_neighbouring_floats_are_separated():
    low = 1.0
    high = np.nextafter(low, 2)
    edges = edges_of(np.array([low, high]), None)
    assert np.searchsorted(edges, [low, high]).tolist() == [0, 1]
    huge = np.array([1.7e308, 1.75e308])
    assert np.isfinite(edges_of(huge, None)).all()


def test_quantile_bins_hold_about_equally_many_values():
    values = np.random.default_rng(0).lognormal(size=100_000)
    edges = edges_of(values, 255)
    counts = np.bincount(np.searchsorted(edges, values), minlength=255)
    assert len(counts) == 255
    assert counts.min() > 0.5 * counts.mean()
    assert counts.max() < 1.5 * counts.mean()


def test_few_values_missed_by_the_subsample_are_still_exact():
    """A rare distinct value outside the quantile subsample must not be lost."""
    values = np.zeros(100_001)
    values[::2] = 1.0
    values[3] = 7.0
    assert find_edges(values[4:2000], 255, lambda: values).tolist() == [0.5, 4.0]


@pytest.mark.parametrize("max_bins", [255, None, 4])
def test_states_of_missing_values_do_not_move_edges(rng, max_bins):
    values = rng.integers(0, 30, 200).astype(float)
    with_states = rng.permutation(np.concatenate([values, np.repeat([np.inf, -np.inf], 50)]))
    np.testing.assert_array_equal(edges_of(with_states, max_bins), edges_of(values, max_bins))
    assert edges_of(np.array([np.inf, -np.inf]), max_bins).size == 0


@pytest.mark.slow
@pytest.mark.parametrize("max_bins", [255, None, 4])
def test_codes_and_thresholds_are_equivalent(rng, max_bins):
    X = rng.normal(size=(40, 6))
    y = np.arange(40) % 4
    pairs = PairSampler(y).all_pairs()
    pair_map = CoordinateSet((*FEATURE_KINDS, *PAIRWISE_KINDS), 6)
    training = TrainingPairs(X, pairs, pair_map, max_bins)
    F = pair_map.plain_values(training.sample_pairs(0, len(pairs))).T
    assert training.codes.shape == F.shape
    assert training.wide == (max_bins is None)
    for c in range(len(pair_map)):
        for b in range(int(training.codes[:, c].max())):
            threshold = training.thresholds(np.array([c]), np.array([b]))[0]
            np.testing.assert_array_equal(training.codes[:, c] <= b, F[:, c] <= threshold)
        if max_bins is None:
            assert len(np.unique(training.codes[:, c])) == len(np.unique(F[:, c]))


@pytest.mark.parametrize("max_bins", [255, None])
@pytest.mark.parametrize("n_categories", [2, 40])
def test_pairwise_coordinates_are_computed_a_few_times_whatever_their_number(rng, monkeypatch, max_bins, n_categories):
    """Those of all categories come together: to compute them once per coordinate took twenty times as long with sixty."""
    n_samples, codes = 60, rng.integers(0, 5, (60, n_categories)).astype(float)
    source = PairSampler(np.arange(n_samples) % 6)
    categories = Categories.fit(codes, np.full(n_categories, 5), source)
    pair_map = CoordinateSet(("abs_diff",), 0, np.empty((0, 0)), categories)
    counted = []
    fill = Categories.fill
    monkeypatch.setattr(
        Categories, "fill", lambda self, pairs, *where: (counted.append(pairs.n_pairs), fill(self, pairs, *where))[1]
    )
    pairs = source.all_pairs()
    TrainingPairs(pair_map.extend(codes, training=True), pairs, pair_map, max_bins)
    assert sum(counted) <= 3 * len(pairs)


def test_min_and_max_share_their_bins(rng):
    X = rng.normal(size=(50, 2))
    training = TrainingPairs(X, PairSampler(np.arange(50) % 2).all_pairs(), CoordinateSet(("max", "sum", "min"), 2), 16)
    for j in range(2):
        bins = np.arange(10)
        np.testing.assert_array_equal(training.thresholds(np.full(10, j), bins), training.thresholds(np.full(10, 4 + j), bins))


@pytest.mark.parametrize("order", ["sorted", "periodic"])
def test_bins_do_not_depend_on_the_order_of_pairs(order):
    """Pairs sorted by distance, or a distant pair of each sample before its close ones: close pairs get their share of bins."""
    distance = np.concatenate([np.linspace(100, 200, 10_000), np.linspace(0, 1, 40_000)])
    if order == "periodic":
        distance = np.column_stack([distance[:10_000], distance[10_000:].reshape(10_000, 4)]).ravel()
    X = np.concatenate([np.zeros(1), distance])[:, None]
    first = np.zeros(50_000, np.int32)
    pairs = IndexPairs(first, np.arange(1, 50_001, dtype=np.int32), distance < 0.5)
    training = TrainingPairs(X, pairs, CoordinateSet(("abs_diff",), 1))
    near = np.unique(training.codes[distance <= 1])
    assert 190 < len(near) < 215  # four fifths of the pairs, four fifths of 255 bins


def test_samples_are_shared_and_pairs_are_copied(rng):
    X = rng.normal(size=(20, 2)).astype(np.float32)
    pairs = PairSampler(np.arange(20) % 2).all_pairs()
    kept = pairs.first.copy()
    training = TrainingPairs(X, pairs, CoordinateSet(("sum",), 2))
    training.partition(0, len(pairs), rng.random(len(pairs)) < 0.5)
    assert training.X is X
    np.testing.assert_array_equal(pairs.first, kept)


def test_no_codes_if_not_needed(rng):
    pairs = IndexPairs(np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.array([True, False]))
    training = TrainingPairs(rng.normal(size=(3, 2)), pairs, CoordinateSet(("sum",), 2), binned=False)
    assert training.codes.shape == (2, 0)
    assert training.partition(0, 2, np.array([False, True])) == 1
    assert training.first.tolist() == [1, 0]
