"""The kernel of categories equals the obvious statement of it, and does not depend on the order of a pair."""

from __future__ import annotations

import numpy as np

from simtree._kernels.categories import MAX_TOLD_APART
from simtree.pairs._categories import LEFT_OUT, N_FOLDS, NO_FOLD, SETS, Categories
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._sampling import PairSampler


def categories():
    """Two categories with three and two values, of which some pairs have a ratio."""
    rng = np.random.default_rng(0)
    keys = [np.array([0, 1, 5, 10, 15]), np.array([1, 8])]  # (0,0), (0,1), (1,1), (2,2), both missing; (0,1), both missing
    n_keys = sum(map(len, keys))
    return Categories(
        n_values=np.array([3, 2]),
        rarities=np.array([0.1, 0.2, 0.3, 1.0, 2.0]),
        unseen=np.array([4.0, 5.0]),
        keys=np.concatenate(keys),
        n_keys=np.array([len(own) for own in keys]),
        ratios=rng.normal(size=(n_keys, len(LEFT_OUT))),
        priors=rng.normal(size=(2, 4, len(LEFT_OUT))),
        lacking=np.array([[True, True], [True, False]]),
    )


def expected(known, a, b, folds, chance):
    """Coordinates of one pair, by dictionaries."""
    f, g = folds
    if f == g != NO_FOLD:
        g = [*range(f + 1, N_FOLDS), *range(f)][chance % (N_FOLDS - 1)]
    left_out = LEFT_OUT.index(tuple(sorted({f, g} - {NO_FOLD})))
    equality, rarity, ratio = [], [], []
    for k, n in enumerate(known.n_values):
        u, v = a[k], b[k]
        missing = [u < 0, v < 0]
        state = 3 if all(missing) else 2 if any(missing) else int(u == v)
        equality.append([0.0, 1.0, np.inf, -np.inf][state])
        own = known.rarities[int(known.n_values[:k].sum()) :][:n]
        of_values = [own[int(value)] if 0 <= value < n else known.unseen[k] for value in (u, v)]
        rarity.append([-1.0 - sum(of_values), of_values[0], np.inf, -np.inf][state])
        if state > 1 and not known.lacking[k, state - 2]:  # no training pair lacked it so
            ratio.append(equality[-1])
            continue
        i, j = sorted(int(n) if value < 0 else int(value) for value in (u, v))
        start = int(known.n_keys[:k].sum())
        table = dict(
            zip(known.keys[start : start + known.n_keys[k]].tolist(), range(start, start + known.n_keys[k]), strict=True)
        )
        outside = max(u, v) >= n
        place = None if outside else table.get(i * (int(n) + 1) + j)
        ratio.append(known.priors[k, state, left_out] if place is None else known.ratios[place, left_out])
    return [*equality, *rarity, *ratio]


def test_coordinates_of_categories_equal_the_oracle_and_are_symmetric():
    known = categories()
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.choice([-1, 0, 1, 2, 2**31, 2**33], 60), rng.choice([-1, 0, 1, 2**31], 60)]).astype(float)
    folds = rng.integers(0, N_FOLDS + 1, 60)
    chance = rng.integers(0, N_FOLDS - 1, 60)
    samples = np.column_stack([rng.normal(size=60), np.where(codes < 0, np.nan, codes), folds, chance])
    first, second = rng.integers(0, 60, (2, 500)).astype(np.int32)
    found = np.full((500, 7), np.nan)
    known.fill(SamplePairs(samples, samples, first, second), 1, 1, found)
    wanted = [
        expected(known, codes[i], codes[j], (int(folds[i]), int(folds[j])), int(chance[i] + chance[j]))
        for i, j in zip(first, second, strict=True)
    ]
    np.testing.assert_array_equal(found[:, 1:], wanted)
    assert np.isnan(found[:, 0]).all()
    swapped = np.empty((500, 7))
    known.fill(SamplePairs(samples, samples, second, first), 1, 1, swapped)
    np.testing.assert_array_equal(swapped[:, 1:], found[:, 1:])


def test_many_different_values_are_not_told_apart_by_their_rarities():
    """Every pair of up to 20 values has a bin of its own; pairs of more would take the bins of shared values."""
    for n, told_apart in ((MAX_TOLD_APART, True), (MAX_TOLD_APART + 1, False)):
        codes = np.repeat(np.arange(n), 2 + np.arange(n))[:, None].astype(float)
        known = Categories.fit(codes, np.array([n]), PairSampler(np.arange(len(codes)) % 2))
        first, second = np.triu_indices(len(codes), 1)
        found = np.empty((len(first), 3))
        samples = np.column_stack([codes, np.full(len(codes), NO_FOLD), np.zeros(len(codes))])
        known.fill(SamplePairs(samples, samples, first.astype(np.int32), second.astype(np.int32)), 0, 0, found)
        different = codes[first, 0] != codes[second, 0]
        assert (len(np.unique(found[different, 1])) > n) == told_apart
        assert found[different, 1].max() <= -1.0
        assert len(np.unique(found[:, 1])) <= 254


def test_every_pair_of_folds_has_its_set():
    for f in range(N_FOLDS + 1):
        for g in range(N_FOLDS + 1):
            assert set(LEFT_OUT[SETS[f, g]]) == {f, g} - {NO_FOLD}
