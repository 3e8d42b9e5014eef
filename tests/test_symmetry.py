from __future__ import annotations

import numpy as np
import pytest

import oracle
from simtree.symmetry import KINDS, CoordinateSet, PointPairs, pair_features


def test_f_is_an_orthonormal_change_of_basis(rng):
    """The paper's f keeps the length of (x, x'): its coordinates are those of two orthonormal bases, up to sign."""
    pairs = rng.normal(size=(50, 2, 3))
    f = pair_features(pairs)
    np.testing.assert_allclose((f**2).sum(axis=1), (pairs**2).sum(axis=(1, 2)), rtol=1e-12)


def test_features_are_the_oracle_scaled(rng):
    pairs = rng.normal(size=(30, 2, 3))
    kinds = ("max", "abs_diff", "min", "sum")
    scale = np.repeat([1.0, 0.5**0.5, 1.0, 0.5**0.5], 3)
    np.testing.assert_allclose(pair_features(pairs, kinds), oracle.coordinates(pairs, kinds) * scale, rtol=1e-15)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_of_the_catalogue_has_its_kernel_and_its_oracle(rng, kind):
    """A new entry of the catalogue without a branch in the kernel would be taken for another kind."""
    pairs = rng.normal(size=(30, 2, 2))
    expected = oracle.coordinates(pairs, (kind,)) * KINDS[kind].scale
    np.testing.assert_allclose(pair_features(pairs, [kind]), expected, rtol=1e-15)
    others = [pair_features(pairs, [other]) / KINDS[other].scale for other in KINDS if other != kind]
    assert not any(np.array_equal(expected / KINDS[kind].scale, values) for values in others)


def test_features_are_symmetric_bit_for_bit(rng):
    pairs = rng.normal(size=(200, 2, 4)) * 10.0 ** rng.integers(-200, 200, (200, 2, 4))
    np.testing.assert_array_equal(pair_features(pairs, list(KINDS)), pair_features(pairs[:, ::-1], list(KINDS)))


def test_numbering():
    pair_map = CoordinateSet(("abs_diff", "sum"), 3)
    assert len(pair_map) == 6
    assert pair_map.of_features(np.array([2, 0])).tolist() == [0, 2, 3, 5]
    assert pair_map.numbers("sum").tolist() == [3, 4, 5]
    assert pair_map.names()[4] == "x1 + x1'"
    assert pair_map.features.tolist() == [0, 1, 2, 0, 1, 2]


def test_point_pairs_may_come_from_two_matrices(rng):
    A, B = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    pairs = PointPairs(A, B, np.array([0, 2], np.int32), np.array([3, 1], np.int32))
    f = CoordinateSet(("sum",), 2).values(pairs)
    np.testing.assert_allclose(f, (A[[0, 2]] + B[[3, 1]]) / np.sqrt(2))
    assert pairs.take(slice(1, 2)).n_pairs == 1


@pytest.mark.parametrize("kinds", [(), ("abs_dif",), ("sum", "sum")])
def test_unknown_kinds_are_refused(kinds):
    with pytest.raises(ValueError, match="choose from"):
        CoordinateSet(kinds, 2)


def test_pairs_of_the_wrong_shape_are_refused():
    with pytest.raises(ValueError, match=r"\(3, 4\).*\(n_pairs, 2, n_features\)"):
        pair_features(np.zeros((3, 4)))
