from __future__ import annotations

import numpy as np
import pytest

import oracle
from simtree.pairs import pair_features
from simtree.pairs._coordinates import KINDS, CoordinateSet, SamplePairs
from simtree.pairs._directions import random_directions


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
    pairs, w = rng.normal(size=(30, 2, 2)), rng.normal(size=(3, 2))
    directions = w if kind == "oblique" else None
    scale = {"abs_diff": 0.5**0.5, "sum": 0.5**0.5, "oblique": 0.5**0.5}.get(kind, 1.0)
    expected = oracle.coordinates(pairs, (kind,), w) * scale
    np.testing.assert_allclose(pair_features(pairs, [kind], directions=directions), expected, rtol=1e-13)
    others = [oracle.coordinates(pairs, (other,), w) for other in KINDS if other != kind]
    assert not any(np.array_equal(expected / scale, values) for values in others)


def test_features_are_symmetric_bit_for_bit(rng):
    pairs = rng.normal(size=(200, 2, 4)) * 10.0 ** rng.integers(-200, 150, (200, 2, 4))
    w = rng.normal(size=(3, 4))
    features, swapped = (pair_features(given, list(KINDS), directions=w) for given in (pairs, pairs[:, ::-1]))
    assert np.isfinite(features).all()
    np.testing.assert_array_equal(features, swapped)


def coordinate_swaps(pair):
    """All pairs that come from one by exchanging some of the two points' features, each unordered pair once."""
    q = pair.shape[1]
    for bits in range(1, 2 ** (q - 1)):
        swapped = pair.copy()
        chosen = [j for j in range(q - 1) if bits >> j & 1]
        swapped[:, chosen] = pair[::-1, chosen]
        yield swapped


@pytest.mark.parametrize("q", [2, 3, 6])
def test_random_directions_tell_apart_what_f_cannot(rng, q):
    """f is the same on all swaps of a pair; with q - 1 random directions the coordinates are so on none."""
    w = random_directions(q - 1, q, rng)
    for pair in rng.normal(size=(20, 2, q)):
        swaps = np.array(list(coordinate_swaps(pair)))
        f, f_of_swaps = pair_features(pair[None]), pair_features(swaps)
        np.testing.assert_array_equal(f_of_swaps, np.broadcast_to(f, f_of_swaps.shape))
        kinds = ["abs_diff", "sum", "oblique"]
        full, full_of_swaps = (pair_features(given, kinds, directions=w) for given in (pair[None], swaps))
        assert (np.abs(full_of_swaps - full).max(axis=1) > 1e-6).all()


def test_a_pair_can_be_found_again_from_the_completed_map(rng):
    """x + x' and the |w.(x - x')| of 2q - 1 directions determine the unordered pair: all choices of signs are tried."""
    q = 4
    w = np.vstack([np.eye(q), random_directions(q - 1, q, rng)])
    for x, x2 in rng.normal(size=(10, 2, q)):
        sizes = np.abs(w @ (x - x2))
        found = set()
        for bits in range(2 ** (q - 1)):
            signs = np.array([1, *(1 if bits >> j & 1 else -1 for j in range(q - 1))])
            difference = signs * sizes[:q]
            if np.allclose(np.abs(w @ difference), sizes, atol=1e-9):
                found.add(tuple(np.round(difference, 6)))
        assert len(found) == 1
        (difference,) = found
        assert np.allclose(np.abs(difference), np.abs(x - x2))
        assert np.allclose(difference, x - x2, atol=1e-5) or np.allclose(difference, x2 - x, atol=1e-5)


def test_numbering():
    pair_map = CoordinateSet(("abs_diff", "cosine", "sum", "oblique"), 3, np.array([[1.0, 0.0, -3.0]]))
    assert len(pair_map) == 3 + 1 + 3 + 2
    assert pair_map.n_columns == 4
    assert pair_map.of_columns(np.array([2, 0])).tolist() == [0, 2, 3, 4, 6]
    assert pair_map.of_columns(np.array([3])).tolist() == [3, 7, 8]
    assert pair_map.numbers("sum").tolist() == [4, 5, 6]
    assert pair_map.names()[3:] == ["cosine(x, x')", "x0 + x0'", "x1 + x1'", "x2 + x2'", "|w0·x - w0·x'|", "w0·x + w0·x'"]
    assert pair_map.columns.tolist() == [0, 1, 2, 0, 0, 1, 2, 3, 3]


def test_shares_go_to_the_features_a_coordinate_looks_at():
    pair_map = CoordinateSet(("abs_diff", "cosine", "oblique"), 3, np.array([[1.0, 0.0, -3.0]]))
    np.testing.assert_allclose(pair_map.by_feature(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(pair_map.by_feature(np.array([0.0, 0.0, 0.0, 3.0, 0.0, 0.0])), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(pair_map.by_feature(np.array([0.0, 0.0, 0.0, 0.0, 1.0, 3.0])), [1.0, 0.0, 3.0])


def test_complete_pairs_are_not_completed_again(rng):
    X = rng.normal(size=(6, 2))
    pairs = SamplePairs(X, X, np.arange(3, dtype=np.int32), np.arange(3, 6, dtype=np.int32))
    pair_map = CoordinateSet(("cosine", "sum", "euclidean"), 2)
    full = pair_map.complete(pairs)
    assert full.pairwise.shape == (3, 2)
    assert pair_map.complete(full) is full
    np.testing.assert_array_equal(full.take(np.array([2, 0])).pairwise, full.pairwise[[2, 0]])
    assert CoordinateSet(("sum",), 2).complete(pairs) is pairs


def test_point_pairs_may_come_from_two_matrices(rng):
    A, B = rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
    pairs = SamplePairs(A, B, np.array([0, 2], np.int32), np.array([3, 1], np.int32))
    f = CoordinateSet(("sum",), 2).values(pairs)
    np.testing.assert_allclose(f, (A[[0, 2]] + B[[3, 1]]) / np.sqrt(2))
    assert pairs.take(slice(1, 2)).n_pairs == 1


@pytest.mark.parametrize(("kinds", "directions"), [(["oblique"], None), (["sum"], np.eye(2)), (["oblique"], np.eye(3))])
def test_directions_must_suit(kinds, directions):
    with pytest.raises(ValueError, match=r"requires \(n_directions, 2\)"):
        pair_features(np.zeros((1, 2, 2)), kinds, directions=directions)


@pytest.mark.parametrize("kinds", [(), ("abs_dif",), ("sum", "sum")])
def test_unknown_kinds_are_refused(kinds):
    with pytest.raises(ValueError, match="choose from"):
        CoordinateSet(kinds, 2)


def test_pairs_of_the_wrong_shape_are_refused():
    with pytest.raises(ValueError, match=r"\(3, 4\).*\(n_pairs, 2, n_features\)"):
        pair_features(np.zeros((3, 4)))


def test_names_of_more_pairwise_kinds_than_features():
    pair_map = CoordinateSet(("abs_diff", "dot", "cosine"), n_features=1)
    assert pair_map.names(["age"]) == ["|age - age'|", "dot(x, x')", "cosine(x, x')"]
    assert len(pair_map) == 3
