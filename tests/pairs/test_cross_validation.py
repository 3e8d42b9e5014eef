"""PairGroupKFold: what its folds share, how even they are, and scikit-learn's ways of using it."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate

from simtree import DistanceSimilarity, SimilarityTree
from simtree.pairs import PairGroupKFold, PairSampler


@st.composite
def labelled_pairs(draw):
    """Pairs of identities: some same, some different, with any links between identities."""
    n_identities = draw(st.integers(2, 30))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    n_pairs = draw(st.integers(2, 200))
    first = rng.integers(0, n_identities, n_pairs)
    reach = draw(st.sampled_from([1, 2, n_identities]))
    identities = np.column_stack([first, (first + rng.integers(0, reach + 1, n_pairs)) % n_identities])
    same = identities[:, 0] == identities[:, 1]
    assume(0 < same.sum() < n_pairs)
    return identities, same


def folds_of(identities, same, **options):
    return list(PairGroupKFold(**options).split(np.zeros((len(same), 2, 1)), same, identities))


@pytest.mark.slow
@given(labelled_pairs(), st.integers(2, 5), st.sampled_from([None, 0, 1]))
@settings(deadline=None, max_examples=200)
def test_no_identity_is_on_both_sides_and_both_kinds_are(pairs, n_splits, seed):
    identities, same = pairs
    try:
        folds = folds_of(identities, same, n_splits=n_splits, shuffle=seed is not None, random_state=seed)
    except ValueError:  # a fold would lack one of the kinds; see test_bad_input
        assume(False)
    assert len(folds) == n_splits
    tested = np.concatenate([test for _, test in folds])
    assert len(set(tested.tolist())) == len(tested)
    assert set(same.nonzero()[0].tolist()) <= set(tested.tolist())
    fold_of = {}
    for fold, (train, test) in enumerate(folds):
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
        seen, left_out = set(identities[train].ravel().tolist()), set(identities[test].ravel().tolist())
        assert not seen & left_out
        for part in (train, test):
            assert 0 < same[part].sum() < len(part)
        assert not left_out & fold_of.keys()
        fold_of |= dict.fromkeys(left_out, fold)
    # A pair is left out of a fold only if one of its identities is tested there and the other is not.
    for train, test in folds:
        left_out = set(identities[test].ravel().tolist())
        for pair in set(range(len(same))) - set(train.tolist()) - set(test.tolist()):
            assert len(left_out & set(identities[pair].tolist())) < 2
        dropped = np.setdiff1d(np.arange(len(same)), np.union1d(train, test))
        assert not same[dropped].any()


@given(st.integers(0, 100), st.integers(2, 6))
@settings(deadline=None, max_examples=50)
def test_small_separate_sets_of_pairs_lose_no_pair(seed, n_splits):
    rng = np.random.default_rng(seed)
    n_sets = 10 * n_splits
    inside = rng.integers(0, 4, (12 * n_sets, 2))
    identities = 4 * np.repeat(np.arange(n_sets), 12)[:, None] + inside
    same = inside[:, 0] == inside[:, 1]
    links = np.zeros((4 * n_sets, 4 * n_sets))
    links[tuple(identities.T)] = 1
    assert connected_components(links, directed=False)[0] >= n_sets
    for train, test in folds_of(identities, same, n_splits=n_splits):
        assert len(train) + len(test) == len(same)
        assert len(test) == pytest.approx(len(same) / n_splits, rel=0.1)
    tests = [test for _, test in folds_of(identities, same, n_splits=n_splits)]
    np.testing.assert_array_equal(np.sort(np.concatenate(tests)), np.arange(len(same)))


@pytest.mark.parametrize(("options", "ratio"), [({}, 1.05), ({"shuffle": True, "random_state": 0}, 1.2)])
def test_folds_are_stratified_although_identities_differ_in_size(options, ratio):
    y = np.repeat(np.arange(60), np.random.default_rng(0).integers(2, 20, 60))
    pairs = PairSampler(y).sample(20_000, np.random.default_rng(0))
    identities = y[np.column_stack([pairs.first, pairs.second])]
    folds = folds_of(identities, pairs.same, n_splits=5, **options)
    n_same = np.array([pairs.same[test].sum() for _, test in folds])
    n_different = np.array([(~pairs.same[test]).sum() for _, test in folds])
    assert n_same.sum() == pairs.n_same
    assert n_same.max() < ratio * n_same.min()
    assert n_different.max() < 1.2 * n_different.min()
    assert n_different.sum() / (~pairs.same).sum() == pytest.approx(1 / 5, abs=0.02)
    assert min((~pairs.same[train]).mean() for train, _ in folds) > 0.4


def test_names_of_identities_and_labels_of_pairs_have_no_effect():
    rng = np.random.default_rng(1)
    identities = rng.integers(0, 12, (300, 2))
    same = identities[:, 0] == identities[:, 1]
    plain = folds_of(identities, same, n_splits=3)
    words = folds_of(np.array([f"person {k}" for k in range(12)], dtype=object)[identities], np.where(same, 1, -1), n_splits=3)
    for a, b in zip(plain, words, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[1], b[1])
    a, b, c = (folds_of(identities, same, n_splits=3, shuffle=True, random_state=seed) for seed in (0, 0, 1))
    assert all(np.array_equal(x[1], y[1]) for x, y in zip(a, b, strict=True))
    assert not all(np.array_equal(x[1], y[1]) for x, y in zip(a, c, strict=True))


# --- with scikit-learn


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 6)
    X = 2 * rng.normal(size=(20, 3))[y] + rng.normal(size=(120, 3))
    pairs = PairSampler(y).sample(600, np.random.default_rng(0))
    rows = np.column_stack([pairs.first, pairs.second])
    return X[rows], pairs.same, y[rows]


def test_cross_val_score_has_a_score_for_every_fold(problem):
    pairs, same, identities = problem
    cv = PairGroupKFold(4)
    scores = cross_val_score(SimilarityTree(max_depth=3), pairs, same, groups=identities, cv=cv)
    expected = [
        SimilarityTree(max_depth=3).fit(pairs[train], same[train]).score(pairs[test], same[test])
        for train, test in cv.split(pairs, same, identities)
    ]
    np.testing.assert_array_equal(scores, expected)
    assert np.mean(expected) > 0.6


def test_shuffled_pairs_have_scores_in_plain_folds_and_ordered_ones_have_not(problem):
    pairs, same, _ = problem
    assert np.isfinite(cross_val_score(DistanceSimilarity(), pairs, same, cv=KFold(5))).all()
    order = np.argsort(~same, kind="stable")
    with pytest.warns(UserWarning, match="Scoring failed"):
        ordered = cross_val_score(DistanceSimilarity(), pairs[order], same[order], cv=KFold(5))
    assert np.isnan(ordered).any()


def test_grid_search_and_metadata_routing(problem):
    pairs, same, identities = problem
    cv = PairGroupKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(SimilarityTree(), {"max_depth": [1, 4]}, cv=cv).fit(pairs, same, groups=identities)
    assert search.n_splits_ == 3
    assert search.best_params_ == {"max_depth": 4}
    with sklearn.config_context(enable_metadata_routing=True):
        routed = cross_validate(
            search.best_estimator_.set_fit_request(groups=False), pairs, same, params={"groups": identities}, cv=cv
        )
    mean = search.cv_results_["mean_test_score"][search.best_index_]
    assert routed["test_score"].mean() == pytest.approx(mean)


def test_it_is_shown_and_cloned_as_estimators_are():
    cv = PairGroupKFold(3, shuffle=True, random_state=0)
    assert repr(cv) == repr(clone(cv)) == "PairGroupKFold(n_splits=3, random_state=0, shuffle=True)"
    assert cv.get_n_splits() == 3


@pytest.mark.parametrize(
    ("options", "changed", "error", "message"),
    [
        ({"n_splits": 1}, {}, ValueError, "n_splits=1 is out of range"),
        ({"n_splits": 2.5}, {}, TypeError, "n_splits=2.5 is not an integer"),
        ({"random_state": 0}, {}, ValueError, "random_state=0 has no effect with shuffle=False"),
        ({"n_splits": 15}, {}, ValueError, r"n_splits=15 leaves a fold of these 600 pairs of 20 identities without a \w+ pair"),
        ({}, {"groups": None}, ValueError, r"groups is None; give the identities .* shape \(600, 2\)"),
        ({}, {"groups": np.zeros(600)}, ValueError, r"groups has shape \(600,\); give the identities"),
        ({}, {"groups": np.full((600, 2), np.nan)}, ValueError, "groups holds 1,200 missing labels"),
        ({}, {"y": None}, ValueError, "y is None; give whether each pair"),
        ({}, {"y": np.ones(600)}, ValueError, "y holds 600 same pairs only"),
        ({}, {"y": np.ones(3)}, ValueError, r"y has shape \(3,\); give one label for each of the 600 pairs"),
    ],
)
def test_bad_input(problem, options, changed, error, message):
    pairs, same, identities = problem
    with pytest.raises(error, match=message):
        PairGroupKFold(**options).split(**{"X": pairs, "y": same, "groups": identities} | changed)
