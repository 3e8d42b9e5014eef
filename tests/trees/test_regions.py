from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.trees import INSIDE, OUTSIDE, AxisRegion, LinearRegion, OpaqueRegion

PAIR_MAP = CoordinateSet(("abs_diff", "sum"), 2)


@pytest.fixture
def pairs(rng):
    X = rng.normal(size=(30, 2))
    return SamplePairs(X, X, np.arange(15, dtype=np.int32), np.arange(15, 30, dtype=np.int32))


def test_axis_region_with_shared_successors(pairs):
    """Inside if |a - a'| <= 1, or else if b + b' <= 0; test 1 is reached from two places."""
    region = AxisRegion(
        np.array([0, 1, 3], np.int32),
        np.array([1.0, 0.5, 0.0]),
        np.array([INSIDE, 2, INSIDE], np.int32),
        np.array([1, 2, OUTSIDE], np.int32),
        np.array([3.0, 1.0, 0.0]),
    )
    a, b = pairs.A[pairs.first], pairs.A[pairs.second]
    expected = (np.abs(a - b)[:, 0] <= 1) | ((a + b)[:, 1] <= 0)
    np.testing.assert_array_equal(region.contains(PAIR_MAP, pairs), expected)
    np.testing.assert_allclose(region.feature_shares(PAIR_MAP), [0.75, 0.25])


def test_linear_region_is_closed(pairs):
    """A pair on the plane is inside."""
    weights = np.array([1.0, 0.0, -2.0, 0.0])
    a, b = pairs.A[pairs.first], pairs.A[pairs.second]
    values = np.abs(a - b)[:, 0] - 2.0 * (a + b)[:, 0]
    region = LinearRegion(weights, -values[3], np.full(4, 0.25))
    inside = region.contains(PAIR_MAP, pairs)
    assert inside[3]
    clear = np.abs(values - values[3]) > 1e-12
    np.testing.assert_array_equal(inside[clear], (values > values[3])[clear])


def test_opaque_region_is_evaluated_in_chunks(pairs, monkeypatch):
    class FarApart:
        def predict(self, values):
            return values[:, 0] > 0.5

    region = OpaqueRegion(FarApart(), np.array([0]))
    whole = region.contains(PAIR_MAP, pairs)
    assert 0 < whole.sum() < len(whole)
    monkeypatch.setattr("simtree.trees._opaque_region.CHUNK", 4)
    np.testing.assert_array_equal(region.contains(PAIR_MAP, pairs), whole)


def test_opaque_region_uses_the_classifier(pairs):
    always = DummyClassifier(strategy="constant", constant=True).fit(np.zeros((2, 2)), [True, False])
    region = OpaqueRegion(always, np.array([1, 3]))
    assert region.contains(PAIR_MAP, pairs).all()
    np.testing.assert_array_equal(region.values(PAIR_MAP, pairs), PAIR_MAP.values(pairs)[:, [1, 3]])
    with pytest.raises(AttributeError, match="ClassifierSplitter"):
        region.feature_shares(PAIR_MAP)
