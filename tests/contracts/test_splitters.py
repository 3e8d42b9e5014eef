"""Contract of all splitters."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from every_splitter import SPLITTERS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from simtree import SimilarityTree
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.pairs._sampling import PairSampler
from simtree.splitters import Cell
from simtree.trees._binning import TrainingPairs
from simtree.trees._regions import Region

# The neural network in the list is deliberately stopped early.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=sorted(SPLITTERS))
def splitter(request):
    return SPLITTERS[request.param]


def cell_of(blobs, splitter, *, seed=0, features=None, n_pairs=500):
    """Return a cell that is a segment in the middle of the training pairs."""
    X, y = blobs
    pairs = PairSampler(y).sample(n_pairs, np.random.default_rng(1))
    pair_map = CoordinateSet(splitter.default_coordinates, X.shape[1])
    training = TrainingPairs(X, pairs, pair_map, binned=splitter.binned)
    order = np.random.default_rng(2).random(n_pairs) < 0.7
    training.partition(0, n_pairs, order)
    start, stop = 40, n_pairs - 60
    n_same = int(training.same[start:stop].sum())
    coordinates = np.arange(len(pair_map)) if features is None else pair_map.of_columns(np.array(features))
    return Cell(training, start, stop, n_same, stop - start - n_same, coordinates, 1, np.random.default_rng(seed))


def test_split_increases_the_auc(blobs, splitter):
    cell = cell_of(blobs, splitter)
    split = splitter.split(cell)
    assert split.inside.shape == (cell.n_pairs,)
    assert split.inside.dtype == np.bool_
    gain = (split.inside & cell.same).sum() / cell.n_same - (split.inside & ~cell.same).sum() / cell.n_different
    assert gain > 0.1


def test_region_agrees_with_the_mask(blobs, splitter):
    cell = cell_of(blobs, splitter)
    region, inside = splitter.split(cell)
    np.testing.assert_array_equal(region.contains(cell.pair_map, cell.sample_pairs), inside)


def test_region_is_symmetric(blobs, splitter):
    cell = cell_of(blobs, splitter)
    region = splitter.split(cell).region
    X = blobs[0]
    i, j = (a.ravel().astype(np.int32) for a in np.meshgrid(np.arange(len(X)), np.arange(len(X))))
    forth = region.contains(cell.pair_map, SamplePairs(X, X, i, j))
    back = region.contains(cell.pair_map, SamplePairs(X, X, j, i))
    np.testing.assert_array_equal(forth, back)
    assert 0 < forth.sum() < len(forth)


def test_region_is_of_a_known_kind(blobs, splitter):
    cell = cell_of(blobs, splitter)
    region: Region = splitter.split(cell).region
    assert region.kind in ("axis", "linear", "oblique", "quadratic", "opaque")
    if region.kind == "opaque":
        with pytest.raises(AttributeError, match="ClassifierSplitter"):
            region.feature_shares(cell.pair_map)
    else:
        shares = region.feature_shares(cell.pair_map)
        assert shares.shape == (4,)
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)


def test_only_the_allowed_coordinates_are_used(blobs, splitter):
    """If only feature 2 is allowed, changing the others has no effect."""
    cell = cell_of(blobs, splitter, features=[2])
    region = splitter.split(cell).region
    X = blobs[0].copy()
    before = region.contains(cell.pair_map, cell.sample_pairs)
    X[:, [0, 1, 3]] = np.random.default_rng(5).normal(size=(len(X), 3))
    changed = SamplePairs(X, X, cell.sample_pairs.first, cell.sample_pairs.second)
    np.testing.assert_array_equal(region.contains(cell.pair_map, changed), before)


def test_same_generator_same_split(blobs, splitter):
    a, b = (splitter.split(cell_of(blobs, splitter, seed=3)).inside for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_pairs_are_not_modified(blobs, splitter):
    cell = cell_of(blobs, splitter)
    before = cell.pairs.first.copy(), cell.pairs.same.copy(), cell.pairs.codes.copy()
    splitter.split(cell)
    for kept, now in zip(before, (cell.pairs.first, cell.pairs.same, cell.pairs.codes), strict=True):
        np.testing.assert_array_equal(kept, now)


def test_constant_data_is_not_split(splitter):
    """A splitter returns None, or a split that the grower rejects."""
    X, y = np.ones((20, 3)), np.arange(20) % 2
    tree = SimilarityTree(max_depth=3, splitter=splitter, random_state=0).fit(X, y)
    assert tree.tree_.n_cells == 1
    assert tree.auc_ == 0.5


def test_it_is_a_scikit_learn_estimator(splitter):
    copy = clone(splitter)
    assert type(copy) is type(splitter)
    assert str(copy.get_params()) == str(splitter.get_params())
    tree = SimilarityTree(splitter=splitter)
    name = next(iter(splitter.get_params(deep=False)))
    assert f"splitter__{name}" in tree.get_params()


def test_fit_does_not_modify_the_given_splitter(blobs, splitter):
    before = str(splitter.get_params())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        SimilarityTree(max_depth=2, splitter=splitter, n_pairs=300, random_state=0).fit(*blobs)
    assert str(splitter.get_params()) == before
    assert not [name for name in vars(splitter) if name.endswith("_")]
