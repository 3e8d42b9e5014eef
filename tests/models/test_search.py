"""1:N search: nothing is lost over many blocks, dropping saves work, and what cannot be dropped is still right."""

from __future__ import annotations

import numpy as np
import pytest

from simtree import SimilarityBoosting, SimilarityForest, SimilarityTree
from simtree._kernels import nearest
from simtree.models import _search as retrieval
from simtree.models._search import BoundedSearch, Part, TopK

pytestmark = pytest.mark.slow

N_ROWS = 2 * nearest.WIDTH + 1000


@pytest.fixture(scope="module")
def people():
    """Points of 40 classes in 8 dimensions, and a gallery of points near them: more than two blocks, some rows twice."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 10)
    X = rng.normal(size=(40, 8))[y] + rng.normal(0, 0.3, (400, 8))
    gallery = X[rng.integers(0, 400, N_ROWS)] + rng.normal(0, 0.1, (N_ROWS, 8))
    gallery[3000:3100] = gallery[:100]
    return X, y, gallery


@pytest.fixture(scope="module")
def forest(people):
    X, y, _ = people
    kinds = ["abs_diff", "sum", "min", "max"]
    return SimilarityForest(n_estimators=20, max_depth=8, n_pairs=5000, coordinates=kinds, random_state=0).fit(X, y)


def assert_same(found, scores, k):
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(found[1], rows)
    np.testing.assert_array_equal(found[0], np.take_along_axis(scores, rows, axis=1))


@pytest.mark.parametrize("k", [1, 10, 300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forest_over_many_blocks(people, forest, k, dtype):
    X, _, gallery = people
    queries, gallery = X[::40].astype(dtype), gallery.astype(dtype)
    assert_same(forest.top_k(queries, gallery, k), forest.pairwise_score(queries, gallery), k)


@pytest.mark.parametrize("splitter", ["cut", "cart", "cross"])
def test_tree_with_masses_of_ties_over_many_blocks(people, splitter):
    X, y, gallery = people
    tree = SimilarityTree(max_depth=5, splitter=splitter, n_pairs=5000, random_state=0).fit(X, y)
    scores = tree.pairwise_score(X[::40], gallery)
    assert len(np.unique(scores)) < 40
    assert_same(tree.top_k(X[::40], gallery, 50), scores, 50)


def test_refilled_forest_adds_two_stages(people, monkeypatch):
    monkeypatch.setattr(SimilarityForest, "_drop_second_half", lambda *_: None)  # a few trees may lose
    X, y, gallery = people
    forest = SimilarityForest(n_estimators=5, max_depth=5, n_pairs=2000, refill=True, random_state=0).fit(X, y)
    assert_same(forest.top_k(X[:3], gallery, 10), forest.pairwise_score(X[:3], gallery), 10)


def test_rows_far_from_the_grid_and_constant_features(people, forest):
    """The grid is made from some rows only; others may lie far outside, and a feature may have one value in all of them."""
    X, _, gallery = people
    odd = gallery.copy()
    odd[7::11] *= 1e3
    odd[8::13] *= -1e150
    odd[:, 3] = 0.5
    odd[9::17, 5] = 8e307
    assert_same(forest.top_k(X[:5], odd, 20), forest.pairwise_score(X[:5], odd), 20)


def test_tree_without_a_split():
    X, y = np.zeros((40, 2)), np.arange(40) % 4
    tree = SimilarityTree(max_depth=3).fit(X, y)
    assert tree.tree_.n_cells == 1
    gallery = np.random.default_rng(0).normal(size=(N_ROWS, 2))
    assert_same(tree.top_k(X[:2], gallery, 7), np.full((2, N_ROWS), 8.0), 7)


def test_needed_never_decreases_and_full_lists_raise_it():
    best = TopK(n_queries=1, k=2, min_score=0.0)
    best.offer(0, np.array([3.0, -1.0]), np.array([4, 5]))
    assert best.needed[0] == 0.0
    best.offer(0, np.array([3.0, 2.0]), np.array([1, 2]))
    assert (best.needed[0], best.rows[0].tolist()) == (3.0, [1, 4])
    best.offer(0, np.array([2.5, 3.0]), np.array([0, 2]))
    assert best.rows[0].tolist() == [1, 2]


def run(forest, queries, gallery, k):
    """Return what a bounded search finds, and the number of tests and tree traversals per pair."""
    shortcut = BoundedSearch(*forest._leaf_values(), queries, gallery)
    best = TopK(len(queries), k, -np.inf)
    shortcut(queries, gallery, Part(slice(0, len(queries)), slice(0, len(gallery))), 0, best)
    return best, shortcut.work / (len(queries) * len(gallery))


def test_bounds_save_work_and_change_nothing(people, forest):
    """Counted, not timed: for the ten best few rows are walked down a tree; if all rows are wanted, all are, down all trees."""
    X, _, gallery = people
    queries = X[::40]
    every, work_of_all = run(forest, queries, gallery, len(gallery))
    ten, work = run(forest, queries, gallery, 10)
    np.testing.assert_array_equal(ten.rows, every.rows[:, :10])
    np.testing.assert_array_equal(ten.scores, every.scores[:, :10])
    assert work_of_all[1] >= len(forest.trees_)
    assert work[1] < 0.05 * len(forest.trees_)
    assert work[0] < 0.5 * work_of_all[0]


def test_later_parts_need_less_work_than_the_first(people, forest):
    """What was found in a part tells what is needed in the next: the same rows once more, all equal to known ones."""
    X, _, gallery = people
    queries = X[::40]
    shortcut = BoundedSearch(*forest._leaf_values(), queries, gallery)
    best = TopK(len(queries), 10, -np.inf)
    counts = []
    for rows in (slice(0, 200), slice(200, N_ROWS)):
        before = shortcut.work.copy()
        shortcut(queries, gallery, Part(slice(0, len(queries)), rows), 0, best)
        counts.append((shortcut.work - before)[0] / (rows.stop - rows.start))
    assert counts[1] < counts[0]
    assert_same((best.scores, best.rows), forest.pairwise_score(queries, gallery), 10)


def test_parts_cover_all_pairs_once_for_any_number_of_threads(people, forest):
    X, _, gallery = people
    for n_queries, n_threads in ((1, 1), (1, 3), (5, 2), (2, 4)):
        best = TopK(n_queries, 3, -np.inf)
        mean = forest._leaf_values()
        _, parts = retrieval.plan_search(X[:n_queries], gallery, 0, forest._score_pairs, mean, best, n_threads)
        assert len(parts) >= n_threads
        covered = np.zeros((n_queries, len(gallery)), int)
        for part in parts:
            covered[part.queries, part.rows] += 1
        assert (covered == 1).all()


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_get_equal_numbers_of_parts(forest, n_threads):
    """602 queries are three parts of at most 256: two threads would take as long as for four."""
    queries, rows = np.zeros((602, 8)), np.zeros((50, 8))
    best = TopK(len(queries), 3, -np.inf)
    parts = retrieval.plan_search(queries, rows, 0, forest._score_pairs, None, best, n_threads)[1]
    assert len(parts) == {1: 3, 2: 4, 3: 3}[n_threads]


def test_memory_beyond_the_gallery_is_bounded(forest):
    """Sizes of parts, not of the process: codes of a part and pending rows."""
    shortcut = BoundedSearch(*forest._leaf_values(), np.zeros((1, 8)), np.ones((10, 8)))
    for n_columns in (1, 8, 128, 5000):
        shortcut.n_columns = n_columns
        n_queries, n_rows = shortcut.sizes(10**6)
        assert n_rows * n_columns <= max(retrieval.PART_BYTES, nearest.WIDTH * n_columns)
        waiting = n_queries * (n_columns + len(forest.trees_)) * 2 * nearest.STRIDE
        assert n_queries == 1 or waiting <= retrieval.BATCH_BYTES


def planned(model, queries, gallery, k, n_threads=1):
    """Run a search as `top_k` does; return what decided how to search, what was found, and how many parts there were."""
    best = TopK(len(queries), k, -np.inf)
    work, parts = retrieval.plan_search(
        queries, gallery, 0, model._score_pairs, model._leaf_values(), best, n_threads, model._test_cost()
    )
    for part in parts:
        work(part)
    search = next(cell.cell_contents for cell in work.__closure__ if hasattr(cell.cell_contents, "sizes"))
    return search, best


@pytest.mark.parametrize(("n_queries", "n_rows"), [(602, 50), (602, 602), (1, 50), (1, 300), (3, 1)])
def test_few_rows_are_scored_by_brute_force(people, forest, n_queries, n_rows, monkeypatch):
    """With deep trees and few rows, ranges of codes and rows near the query alone cost more than to score all pairs."""
    X, _, gallery = people
    queries = np.resize(X, (n_queries, X.shape[1]))
    monkeypatch.setattr(retrieval, "BoundedSearch", None)  # not even prepared
    search, best = planned(forest, queries, gallery[:n_rows], 10)
    assert isinstance(search, retrieval.BruteForceSearch)
    k = min(10, n_rows)
    assert_same((best.scores[:, :k], best.rows[:, :k]), forest.pairwise_score(queries, gallery[:n_rows]), k)


def test_many_easy_rows_are_searched_by_bounds(people, forest):
    """Counted in tests of pairs, in which the constants of the cost are: a small share of brute force."""
    X, _, gallery = people
    search, _ = planned(forest, X[::4], gallery, 10)
    assert search.n_bounded == 100 * N_ROWS
    assert search.cost < 0.4 * search.brute_cost(100 * N_ROWS)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_hard_rows_cost_little_more_than_brute_force(people, forest, n_threads, monkeypatch):
    """If no row can be dropped, the first parts tell so, and all others are scored by brute force."""
    X, _, gallery = people
    monkeypatch.setattr(retrieval, "COST_OF_WALKED_TEST", 7.0)
    monkeypatch.setattr(retrieval, "COST_OF_CODE_TEST", 100.0)  # as if it took thousands of tests to drop a row
    search, best = planned(forest, X[::16], gallery, 10, n_threads)
    assert search.n_bounded == N_ROWS
    assert_same((best.scores, best.rows), forest.pairwise_score(X[::16], gallery), 10)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_without_structure_cost_little_more_than_brute_force(forest, n_threads, rng):
    """All operations are counted, with the constants in use: those of the first parts, and brute force for the others."""
    queries, gallery = rng.normal(size=(100, 8)), rng.normal(size=(N_ROWS, 8))
    search, best = planned(forest, queries, gallery, 10, n_threads)
    n_pairs = len(queries) * len(gallery)
    total = search.cost + search.brute_cost(n_pairs - search.n_bounded)
    assert total <= 1.1 * search.brute_cost(n_pairs)
    assert_same((best.scores, best.rows), forest.pairwise_score(queries, gallery), 10)


def test_all_rows_wanted_means_brute_force(people, forest):
    X, _, gallery = people
    search, best = planned(forest, X[:9], gallery, N_ROWS // 4)
    assert isinstance(search, retrieval.BruteForceSearch)
    assert_same((best.scores, best.rows), forest.pairwise_score(X[:9], gallery), N_ROWS // 4)


def test_cost_of_codes_makes_brute_force_of_boosting_cheaper(people):
    X, y, gallery = people
    boosting = SimilarityBoosting(n_estimators=5, n_pairs=2000, early_stopping=False, random_state=0).fit(X, y)
    assert boosting._test_cost() < SimilarityForest()._test_cost()
    assert_same(boosting.top_k(X[:20], gallery, 7), boosting.pairwise_score(X[:20], gallery), 7)
