from __future__ import annotations

import numpy as np
import pytest

import oracle
from simtree import CartSplitter, LinearSplitter, SimilarityTree
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.trees import INSIDE, OUTSIDE, AxisRegion, LinearRegion
from simtree.trees._rank_tree import TreeBuilder


def axis(coordinate, threshold, if_le, if_gt):
    """Return a region from plain lists."""
    integers = (np.array(column, np.int32) for column in (coordinate, if_le, if_gt))
    coordinate, if_le, if_gt = integers
    return AxisRegion(coordinate, np.array(threshold, float), if_le, if_gt, np.ones(len(coordinate)))


@pytest.fixture
def mixed_tree():
    """Depth 3 over |a - a'|: an axis region, then a linear one inside it, then an axis one below the linear one.

    all (10, 20) -- inside |a-a'| <= 4 (8, 5) -- inside 2 - |a-a'| >= 0 (5, 1) -- inside |a-a'| <= 1 (4, 0)
    """
    builder = TreeBuilder(CoordinateSet(("abs_diff",), 1), 3, 10, 20)
    inside, _ = builder.split(0, axis([0], [4], [INSIDE], [OUTSIDE]), 8, 5)
    near, _ = builder.split(inside, LinearRegion(np.array([-1.0]), 2.0, np.ones(1)), 5, 1)
    builder.split(near, axis([0], [1], [INSIDE], [OUTSIDE]), 4, 0)
    return builder.freeze()


def pairs_at(distances):
    X = np.array([[0.0], *([float(d)] for d in distances)])
    n = len(distances)
    return SamplePairs(X, X, np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32))


def test_scores_of_early_leaves(mixed_tree):
    """Cell (j, k) has the score 2^3 (1 - k / 2^j)."""
    cells = mixed_tree.cells
    named = {(d, k): s for d, k, s in zip(cells.depth.tolist(), cells.rank.tolist(), mixed_tree.scores.tolist(), strict=True)}
    assert named == {(0, 0): 8, (1, 0): 8, (1, 1): 4, (2, 0): 8, (2, 1): 6, (3, 0): 8, (3, 1): 7}


def test_routing_through_mixed_regions(mixed_tree):
    np.testing.assert_array_equal(mixed_tree.score(pairs_at([0.5, 1, 1.5, 2, 3, 4, 5, 50])), [8, 8, 7, 7, 6, 6, 4, 4])
    assert len(mixed_tree.apply(pairs_at([]))) == 0


def test_knots_are_cumulative_counts(mixed_tree):
    fpr, tpr = mixed_tree.fpr_knots, mixed_tree.tpr_knots
    np.testing.assert_allclose(fpr, np.array([0, 0, 1, 5, 20]) / 20)
    np.testing.assert_allclose(tpr, np.array([0, 4, 5, 8, 10]) / 10)
    gains = [1.0 * 0.8 - 1.0 * 0.25, 0.25 * 0.5 - 0.8 * 0.05, 0.05 * 0.4 - 0.5 * 0.0]
    np.testing.assert_allclose(mixed_tree.cells.gain[mixed_tree.cells.inside >= 0], gains)
    assert mixed_tree.roc.auc() == pytest.approx(0.5 + 0.5 * sum(gains))


def test_cell_bounds_follow_the_curve(mixed_tree):
    fpr, tpr = mixed_tree.cell_bounds()
    leaves = mixed_tree.leaves
    np.testing.assert_allclose(fpr[leaves], mixed_tree.fpr_knots[:-1])
    np.testing.assert_allclose(tpr[leaves], mixed_tree.tpr_knots[:-1])


def test_node_table_is_a_dag_that_ends_in_cells(given_pairs):
    """Successors come later, exits are terminal cells, and routing agrees with evaluating the regions one by one."""
    pairs, same = given_pairs
    tree = SimilarityTree(max_depth=6, splitter=CartSplitter(max_depth=3, min_samples_leaf=2)).fit(pairs, same).tree_
    successors = np.concatenate([tree.nodes.if_le, tree.nodes.if_gt])
    rows = np.tile(np.arange(len(tree.nodes.kind)), 2)
    assert (successors[successors >= 0] > rows[successors >= 0]).all()
    ends = -1 - successors[successors < 0]
    assert set(ends) <= set(tree.leaves)

    F = oracle.coordinates(pairs)
    by_region = np.zeros(len(pairs), int)
    for cell in np.flatnonzero(tree.cells.inside >= 0):
        region = tree.region(int(cell))
        here = np.flatnonzero(by_region == cell)
        inside = oracle.route(F[here], region.coordinate, region.threshold, region.if_le, region.if_gt) == 0
        by_region[here] = np.where(inside, tree.cells.inside[cell], tree.cells.outside[cell])
        assert (same[here[inside]].sum(), (~same[here[inside]]).sum()) == (
            tree.cells.n_same[tree.cells.inside[cell]],
            tree.cells.n_different[tree.cells.inside[cell]],
        )
    points = np.ascontiguousarray(pairs.reshape(-1, 4))
    first = np.arange(0, len(points), 2, dtype=np.int32)
    np.testing.assert_array_equal(tree.apply(SamplePairs(points, points, first, first + np.int32(1))), by_region)


def test_shared_exits_of_children(given_pairs):
    """A region may lead to a child by several tests; region() restores its exits, even if a child is itself split."""
    tree = SimilarityTree(max_depth=4, splitter=LinearSplitter()).fit(*given_pairs).tree_
    assert set(tree.regions) == set(np.flatnonzero(tree.cells.inside >= 0).tolist())
    assert len(tree.nodes.kind) == 0
    assert all(tree.region(cell) is region for cell, region in tree.regions.items())


def test_gains_are_shared_by_impurity_decrease(given_pairs):
    """Feature by feature the sum over cells of gain times the share of the region's coordinates."""
    tree = SimilarityTree(max_depth=4, splitter=CartSplitter(max_depth=3)).fit(*given_pairs).tree_
    expected = np.zeros(4)
    for cell in np.flatnonzero(tree.cells.inside >= 0):
        expected += tree.cells.gain[cell] * tree.region(int(cell)).feature_shares(tree.pair_map)
    np.testing.assert_allclose(tree.feature_gains(), expected)
    assert tree.feature_gains().sum() == pytest.approx(tree.cells.gain.sum())


def test_unsplit_tree():
    tree = TreeBuilder(CoordinateSet(("sum",), 2), 5, 3, 4).freeze()
    assert tree.score(pairs_at([1, 2])).tolist() == [32, 32]
    assert tree.roc.auc() == 0.5
    assert tree.feature_gains().tolist() == [0, 0]
