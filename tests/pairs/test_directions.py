from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh

from simtree.pairs import _directions as directions
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._directions import difference_scatter, discriminant_directions, fisher_directions, random_directions
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


@pytest.fixture
def three_classes(rng):
    """Classes with covariances of their own; the first two are near to each other."""
    y = np.repeat([0, 1, 2], [60, 90, 40])
    spread = rng.normal(size=(3, 4, 4))
    X = np.array([[0.0, 0, 0, 0], [1, 0, 1, 0], [9, 9, 0, 1]])[y] + np.einsum(
        "nij,nj->ni", spread[y], rng.normal(size=(190, 4))
    )
    return X, y


def shrunk_covariances(X, y):
    """Return the covariances of classes, each as if it had four more samples of the covariance within classes."""
    centred = [X[y == c] - X[y == c].mean(axis=0) for c in range(3)]
    within = sum(part.T @ part for part in centred) / len(X)
    within += directions.RIDGE * np.trace(within) / 4 * np.eye(4)
    return [(part.T @ part + 4 * within) / (len(part) + 4) for part in centred]


def test_fisher_directions_are_the_discriminants_of_pairs_of_classes(three_classes):
    X, y = three_classes
    found, S = fisher_directions(X, y, 10), shrunk_covariances(X, y)
    assert found.shape == (3, 4)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        w = np.linalg.inv((S[a] + S[b]) / 2) @ (X[y == a].mean(axis=0) - X[y == b].mean(axis=0))
        assert np.abs(found @ w).max() == pytest.approx(np.linalg.norm(w), rel=1e-9)


def test_fewer_fisher_directions_are_of_the_nearest_classes_and_do_not_depend_on_memory(three_classes, monkeypatch):
    X, y = three_classes
    one = fisher_directions(X, y, 1)
    np.testing.assert_allclose(one, fisher_directions(X[y < 2], y[y < 2], 1), atol=0.2)
    every = fisher_directions(X, y, 3)
    monkeypatch.setattr(directions, "MAX_CACHED", 0)
    np.testing.assert_array_equal(every, fisher_directions(X, y, 3))


def test_each_class_is_told_apart_from_its_nearest_class_first():
    means = np.array([[0.0], [1.0], [10.0], [12.0], [40.0]])
    assert directions._class_pairs(means, 3).tolist() == [[0, 1], [2, 3], [3, 4]]
    assert len(directions._class_pairs(means, 99)) == 10


def test_fisher_directions_of_samples_with_missing_values_are_finite_and_near_those_of_all(three_classes, rng):
    X, y = three_classes
    holes = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    holes[y == 2, 3] = np.nan  # a class that lacks a feature entirely
    found, complete = fisher_directions(holes, y, 3), fisher_directions(X, y, 3)
    assert np.isfinite(found).all()
    assert np.abs(np.sum(found * complete, axis=1)).min() > 0.8


def test_fisher_directions_of_large_and_of_equal_values_are_finite(three_classes):
    X, y = three_classes
    np.testing.assert_allclose(fisher_directions(1e140 * X, y, 3), fisher_directions(X, y, 3), atol=1e-6)
    assert fisher_directions(np.zeros((6, 2)), np.arange(6) % 2, 3).shape == (0, 2)
