"""Scores of linear and quadratic regions of pairs that lack values equal the obvious statement of them."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from simtree._kernels.coordinates import linear_values
from simtree._kernels.missing import BOTH_SEEN, ONE_SEEN
from simtree._kernels.missing_regions import linear_state_values
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.trees import QuadraticRegion

KINDS = ("abs_diff", "sum", "euclidean", "oblique")


@pytest.fixture
def holed(rng):
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.4] = np.nan
    X[:2], X[2], X[40:] = np.nan, [1.0, np.nan, 1.0], rng.normal(size=(20, 3))
    first, second = rng.integers(0, 60, (2, 400)).astype(np.int32)
    first[:2], second[:2] = 0, [1, 2]
    return X, first, second


def test_linear_scores_are_the_oracle_and_symmetric(rng, holed):
    X, first, second = holed
    directions = np.array([[0.5, -1.0, 0.0]])
    pair_map = CoordinateSet(KINDS, 3, directions)
    samples = pair_map.extend(X)
    weights, states = rng.normal(size=len(pair_map)), rng.normal(size=(len(pair_map), 2))
    weights[1] = 0.0
    seen = np.zeros(len(pair_map), dtype=np.uint8)
    seen[0], seen[4] = BOTH_SEEN, ONE_SEEN

    def scores(i, j):
        pairs = pair_map.complete(SamplePairs(samples, samples, i, j))
        values = np.empty(len(i))
        places = pair_map.kind_codes, pair_map.columns, pair_map.kernel_directions
        linear_state_values(*pairs, *places, weights, 0.25, states, seen, values)
        return values

    found = scores(first, second)
    for value, coordinates in zip(
        found, oracle.coordinates_with_missing(np.stack([X[first], X[second]], axis=1), KINDS, directions), strict=True
    ):
        one, both = np.isposinf(coordinates), np.isneginf(coordinates)
        added = np.select([one, both], [states[:, 0], states[:, 1]], weights * np.where(one | both, 0.0, coordinates))
        known = np.select([one, both], [seen & ONE_SEEN, seen & BOTH_SEEN], weights != 0.0)
        assert np.isnan(value) == (not known.any())
        assert np.isnan(value) or value == pytest.approx(0.25 + added.sum())
    assert 0 < np.isnan(found).sum() < len(found)
    np.testing.assert_array_equal(scores(second, first), found)
    complete = np.flatnonzero((first >= 40) & (second >= 40))
    pairs = pair_map.complete(SamplePairs(samples, samples, first[complete], second[complete]))
    plain = np.empty(len(complete))
    linear_values(*pairs, pair_map.kind_codes, pair_map.columns, weights, 0.25, plain)
    np.testing.assert_array_equal(found[complete], plain)


def test_quadratic_scores_are_the_oracle_and_symmetric(rng, holed):
    """The score of the joint features, divided by their share; a complete pair is scored as among complete ones."""
    X, first, second = holed
    features = np.array([0, 2])
    F, E = rng.normal(size=(2, 2, 2))
    own, cross, line, centre = rng.normal(size=(4, 2))
    shares = np.array([0.25, 0.75])
    region = QuadraticRegion(features, centre, line, F, own, E, cross, 0.0, shares)
    found, lacks = region.scores(SamplePairs(X, X, first, second))
    for p, (i, j) in enumerate(zip(first, second, strict=True)):
        joint = ~np.isnan(X[i, features] + X[j, features])
        assert lacks[p] == (not joint.any())
        if joint.any():
            y, z = (np.where(joint, x[features] - centre, 0.0) for x in (X[i], X[j]))
            score = sum(line @ v + own @ (F @ v) ** 2 for v in (y, z)) + cross @ ((E @ y) * (E @ z))
            assert found[p] == pytest.approx(score / shares[joint].sum())
    assert 0 < lacks.sum() < len(lacks)
    swapped, _ = region.scores(SamplePairs(X, X, second, first))
    np.testing.assert_array_equal(swapped[~lacks], found[~lacks])
    complete = (first >= 40) & (second >= 40)
    alone, _ = region.scores(SamplePairs(X[40:], X[40:], first[complete] - 40, second[complete] - 40))
    np.testing.assert_array_equal(alone, found[complete])
