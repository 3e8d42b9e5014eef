from __future__ import annotations

import itertools

import numpy as np
import pytest

import oracle
from simtree import CartSplitter, LinearSplitter, SimilarityTree
from simtree.datasets import make_tree_law
from simtree.growing._cross_validation import fold_numbers
from simtree.metrics import roc_curve
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._inputs import stack_pairs
from simtree.pairs._sampling import PairSampler
from simtree.trees._pruning import critical_penalties, held_out_aucs, held_out_gains, prune, pruning_path


def small_tree(seed, depth=3, n_pairs=120):
    law = make_tree_law(2, random_state=seed)
    pairs, same = law.sample(n_pairs, random_state=seed + 1)
    same ^= np.random.default_rng(seed).random(n_pairs) < 0.15
    return SimilarityTree(max_depth=depth, splitter="cut").fit(pairs, same).tree_


def subtrees(tree, cell=0):
    """All sets of split cells that a subtree with this root can have."""
    yield frozenset()
    if tree.cells.inside[cell] >= 0:
        below = [list(subtrees(tree, int(child))) for child in (tree.cells.inside[cell], tree.cells.outside[cell])]
        for inside, outside in itertools.product(*below):
            yield frozenset({cell}) | inside | outside


@pytest.mark.parametrize("seed", range(8))
def test_each_step_of_the_path_is_the_best_subtree(seed):
    """Against all subtrees of a small tree: the kept splits maximise AUC - penalty * leaves, and are the fewest that do."""
    tree = small_tree(seed)
    critical = critical_penalties(tree)
    every = list(subtrees(tree))
    assert len(every) > 5
    path = pruning_path(tree)
    between = [*path.penalties, *(path.penalties[1:] + path.penalties[:-1]) / 2, 2 * path.penalties[-1]]
    for penalty in between:

        def worth(splits, penalty=penalty):
            return 0.5 + 0.5 * sum(tree.cells.gain[c] for c in splits) - penalty * (1 + len(splits))

        best = max(worth(splits) for splits in every)
        smallest = min((splits for splits in every if worth(splits) >= best - 1e-12), key=len)
        assert frozenset(np.flatnonzero(critical > penalty).tolist()) == smallest


def test_path_is_nested_and_ends_at_the_root(given_pairs):
    tree = SimilarityTree(max_depth=8).fit(*given_pairs).tree_
    path = pruning_path(tree)
    assert path.penalties[0] == 0
    assert (np.diff(path.penalties) > 0).all()
    assert (np.diff(path.aucs) < 0).all()
    assert (np.diff(path.n_leaves) < 0).all()
    assert path.n_leaves[0] == len(tree.leaves)
    assert (path.n_leaves[-1], path.aucs[-1]) == (1, 0.5)


@pytest.mark.parametrize("splitter", [CartSplitter(max_depth=2), LinearSplitter()])
def test_pruned_tree_merges_cells(given_pairs, splitter):
    """Scores are those of the highest undone ancestor, and the AUC is that of the path."""
    pairs, same = given_pairs
    whole = SimilarityTree(max_depth=6, splitter=splitter, random_state=0).fit(pairs, same)
    path = whole.cost_complexity_path()
    middle = len(path.penalties) // 2
    pruned = SimilarityTree(max_depth=6, splitter=splitter, prune_penalty=path.penalties[middle], random_state=0).fit(
        pairs, same
    )
    assert len(pruned.tree_.leaves) == path.n_leaves[middle]
    assert pruned.auc_ == pytest.approx(path.aucs[middle], abs=1e-12)
    assert pruned.auc_ == pytest.approx(oracle.auc(pruned.pair_score(pairs), same), abs=1e-12)
    critical = critical_penalties(whole.tree_)
    cells = whole.tree_.cells
    for p, cell in enumerate(whole.apply(pairs)):
        line = [int(cell)]
        while cells.parent[line[-1]] >= 0:
            line.append(int(cells.parent[line[-1]]))
        undone = [c for c in line if cells.inside[c] >= 0 and critical[c] <= path.penalties[middle]]
        assert pruned.pair_score(pairs[p : p + 1])[0] == whole.tree_.scores[undone[-1] if undone else cell]


def test_held_out_gains_add_up_to_the_auc(given_pairs):
    pairs, same = given_pairs
    tree = SimilarityTree(max_depth=6).fit(pairs[:300], same[:300]).tree_
    points, first, second = stack_pairs(np.ascontiguousarray(pairs[300:]))
    other = SamplePairs(points, points, first, second)
    gains = held_out_gains(tree, other, same[300:])
    path = pruning_path(tree)
    for penalty, auc in zip(path.penalties, held_out_aucs(tree, gains, path.penalties), strict=True):
        assert auc == pytest.approx(roc_curve(prune(tree, penalty).score(other), same[300:]).auc(), abs=1e-12)


def test_folds_share_no_point_and_hold_whole_classes_if_asked(blobs):
    y = blobs[1]
    sampler = PairSampler(y)
    rng = np.random.default_rng(0)
    by_points = fold_numbers(np.arange(len(y)), sampler, 5, rng)
    assert np.bincount(by_points).min() >= len(y) // 5
    for k in range(6):
        counts = np.bincount(by_points[y == k], minlength=5)
        assert counts.max() - counts.min() <= 1  # each class has its share of each fold
    by_classes = fold_numbers(sampler.labels, sampler, 3, rng)
    assert all(len(set(by_classes[y == k])) == 1 for k in range(6))
    with pytest.raises(ValueError, match="cv=7 is more than the number of groups, 6; make fewer folds"):
        fold_numbers(sampler.labels, sampler, 7, rng)


@pytest.mark.parametrize("open_set", [False, True])
def test_pruning_by_cross_validation(blobs, open_set):
    X, y = blobs
    noisy = np.column_stack([X, np.random.default_rng(0).normal(size=(len(X), 6))])
    parameters = {"max_depth": 10, "splitter": CartSplitter(max_depth=2), "cv": 3, "random_state": 0, "n_pairs": 2000}
    whole = SimilarityTree(**parameters).fit(noisy, y)
    pruned = SimilarityTree(prune="cv", open_set=open_set, **parameters).fit(noisy, y)
    assert 0 < pruned.prune_penalty_ < 1
    assert 1 < len(pruned.tree_.leaves) < len(whole.tree_.leaves)
    assert pruned.cost_complexity_path().n_leaves[0] == len(whole.tree_.leaves)
    again = SimilarityTree(prune="cv", open_set=open_set, n_jobs=2, **parameters).fit(noisy, y)
    assert again.prune_penalty_ == pruned.prune_penalty_


def test_pruning_of_given_pairs(blobs):
    X, y = blobs
    drawn = PairSampler(y).sample(3000, np.random.default_rng(0))
    rows = np.column_stack([drawn.first, drawn.second])
    tree = SimilarityTree(max_depth=8, prune="cv", cv=3, random_state=0)
    assert tree.fit(X, drawn.same, pairs=rows).prune_penalty_ > 0
    assert tree.fit(X[rows], drawn.same, groups=rows).prune_penalty_ > 0
    assert tree.fit(X, drawn.same, pairs=rows, groups=y).prune_penalty_ > 0
    with pytest.raises(ValueError, match="prune='cv' needs to know which points are the same: give groups, or row numbers"):
        tree.fit(X[rows], drawn.same)
    with pytest.raises(ValueError, match=r"give groups\.$"):
        tree.set_params(open_set=True).fit(X, drawn.same, pairs=rows)
    with pytest.raises(ValueError, match="groups has shape"):
        tree.fit(X, drawn.same, pairs=rows, groups=y[:7])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"prune": "auto"}, "prune='auto' is unknown"),
        ({"prune_penalty": -0.1}, "prune_penalty=-0.1 is out of range"),
        ({"cv": 1}, "cv=1 is out of range"),
        ({"prune": "cv", "cv": 200}, "cv=200 is more than the number of groups, 110"),
        ({"prune": "cv", "cv": 60}, "none of the 60 folds leaves pairs of both kinds"),
    ],
)
def test_bad_parameters(blobs, parameters, message):
    with pytest.raises(ValueError, match=message):
        SimilarityTree(n_pairs=500, **parameters).fit(*blobs)
