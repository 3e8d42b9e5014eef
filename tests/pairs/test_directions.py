from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from simtree.pairs import _directions as directions
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._directions import difference_scatter, discriminant_directions, random_directions
from simtree.pairs._sampling import PairSampler


@pytest.fixture
def people(rng):
    """Classes that differ along one oblique direction only, among noise that is large along another."""
    along, noise = np.array([1.0, 1.0, 0.0]), np.array([1.0, -1.0, 0.5])
    y = np.arange(120) % 12
    X = np.outer(rng.normal(size=12)[y], along) + np.outer(5 * rng.normal(size=120), noise) + 0.05 * rng.normal(size=(120, 3))
    pairs = PairSampler(y).all_pairs()
    return X, SamplePairs(X, X, pairs.first, pairs.second), pairs.same


def test_random_directions_have_unit_length_and_depend_on_the_seed():
    first, again, other = (random_directions(5, 3, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1.0)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_scatter_is_the_mean_square_of_differences_in_any_chunks(people, monkeypatch):
    X, pairs, _ = people
    delta = X[pairs.first] - X[pairs.second]
    expected = delta.T @ delta / len(delta)
    np.testing.assert_allclose(difference_scatter(pairs, np.arange(3)), expected, rtol=1e-12)
    monkeypatch.setattr(directions, "CHUNK", 7)
    np.testing.assert_allclose(difference_scatter(pairs, np.arange(3)), expected, rtol=1e-10)
    np.testing.assert_allclose(difference_scatter(pairs, np.array([2, 0])), expected[[2, 0]][:, [2, 0]], rtol=1e-10)


def test_discriminant_direction_is_blind_to_what_same_pairs_do(people):
    _, pairs, same = people
    w = discriminant_directions(pairs, same, 1, np.arange(3))[0]
    assert abs(w @ [1.0, -1.0, 0.5]) < 0.05 * abs(w @ [1.0, 1.0, 0.0])


def test_discriminant_directions_are_the_generalised_eigenvectors(people):
    _, pairs, same = people
    of_same, of_different = (difference_scatter(pairs.take(kind), np.arange(3)) for kind in (same, ~same))
    values, vectors = eigh(of_different, of_same + directions.RIDGE * np.trace(of_same) / 3 * np.eye(3))
    found = discriminant_directions(pairs, same, 5, np.arange(3))
    assert found.shape == (3, 3)
    for w, v in zip(found, vectors.T[np.argsort(-values)], strict=True):
        assert abs(w @ v) == pytest.approx(np.linalg.norm(v), rel=1e-6)
        assert w[np.argmax(np.abs(w))] > 0


def test_points_that_are_all_alike_are_no_problem():
    X = np.zeros((6, 2))
    i = np.arange(5, dtype=np.int32)
    found = discriminant_directions(SamplePairs(X, X, i, i + np.int32(1)), np.arange(5) % 2 == 0, 2, np.arange(2))
    assert np.isfinite(found).all()
