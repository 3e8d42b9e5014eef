"""The criterion, worked by hand; and folds that never split what must stay together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from simtree import DistanceSimilarity, GaussianSimilarity, SimilarityForest
from simtree.metrics import Roc, roc_curve
from simtree.models import _selection as selection
from simtree.models._selection import (
    HeldOut,
    criterion,
    criterion_rates,
    fold_units,
    make_folds,
    measurable_rate,
    restricted,
    some_rows,
)
from simtree.pairs._labels import linked_units
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs


def test_a_tie_at_the_top_counts_for_its_share():
    """A cell with 5,558 of 7,000 same and 55 of 52,000 different pairs, an FPR of 0.00106, is not nothing at 0.001."""
    scores = np.repeat([1.0, 0.0, 1.0, 0.0], [5_558, 1_442, 55, 51_945])
    same = np.repeat([True, False], [7_000, 52_000])
    roc = roc_curve(scores, same)
    top, fpr = 5_558 / 7_000, 55 / 52_000
    below = [rate * top / fpr for rate in criterion_rates(1e-3)[:3]]
    above = [top + (1.0 - top) * (rate - fpr) / (1.0 - fpr) for rate in criterion_rates(1e-3)[3:]]
    assert criterion(roc, 1e-3) == pytest.approx(np.mean(below + above))
    assert criterion(roc, 1e-3) > 0.55


@pytest.mark.parametrize(
    ("fpr", "tpr", "expected"),
    [
        ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0], 1.0),  # perfect
        ([0.0, 1.0], [0.0, 1.0], 0.1 * np.mean(10 ** np.array([-0.5, -0.25, 0.0, 0.25, 0.5]))),  # one cell: chance
        ([0.0, 0.0, 1.0], [0.0, 0.5, 0.5 + 0.5], 0.5 + 0.05 * np.mean(10 ** np.array([-0.5, -0.25, 0.0, 0.25, 0.5]))),
    ],
)
def test_criterion_by_hand(fpr, tpr, expected):
    assert criterion(Roc(fpr, tpr), 0.1) == pytest.approx(expected)


def test_rates_are_even_in_the_logarithm_and_at_most_one():
    rates = criterion_rates(1e-3)
    assert rates[2] == pytest.approx(1e-3)
    np.testing.assert_allclose(np.diff(np.log10(rates)), 0.25)
    assert criterion_rates(1.0).max() == 1.0


def test_the_rate_is_measurable():
    assert measurable_rate(1e-3, 30_000) == 1e-3
    assert measurable_rate(1e-3, 300) == pytest.approx(0.1)
    assert measurable_rate(1e-3, 6) == pytest.approx(selection.MAX_TARGET)
    assert measurable_rate(0.9, 6) == 0.9


def people(n=12, samples=5, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n), samples)
    return rng.normal(size=(n, 3))[y] + 0.3 * rng.normal(size=(len(y), 3)), y


@pytest.mark.parametrize("open_set", [True, False])
def test_open_sets_are_divided_by_identity_and_closed_ones_by_sample(open_set):
    _, y = people()
    source = PairSampler(y)
    folds = make_folds(source, fold_units(source, len(y), open_set, None), 0, np.random.default_rng(0))
    assert len(folds) == 3
    for fold in folds:
        assert not fold.seen[fold.pairs.first].any()
        assert not fold.seen[fold.pairs.second].any()
        assert bool(set(y[fold.seen]) & set(y[~fold.seen])) is not open_set


@pytest.mark.parametrize("open_set", [True, False])
def test_groups_are_never_split(open_set):
    _, y = people()
    groups = y // 2 if open_set else np.tile(np.arange(5), 12)
    source = PairSampler(y)
    for fold in make_folds(source, fold_units(source, len(y), open_set, groups), 0, np.random.default_rng(1)):
        assert not set(groups[fold.seen]) & set(groups[~fold.seen])
        assert bool(set(y[fold.seen]) & set(y[~fold.seen])) is not open_set


def test_given_pairs_are_divided_by_what_they_link():
    """Twelve separate sets of pairs: no set is split, and no pair is lost."""
    rows = np.arange(48).reshape(12, 4)
    first = np.concatenate([rows[:, 0], rows[:, 1], rows[:, 2]]).astype(np.int32)
    second = np.concatenate([rows[:, 1], rows[:, 2], rows[:, 3]]).astype(np.int32)
    pairs = IndexPairs(first, second, np.repeat([True, False, True], 12))
    folds = make_folds(pairs, fold_units(pairs, 48, True, None), 0, np.random.default_rng(0))
    assert sum(len(fold.pairs) for fold in folds) == 36
    for fold in folds:
        inside = ~fold.seen.reshape(12, 4)
        assert (inside.all(axis=1) == inside.any(axis=1)).all()


def test_never_pair_holds_in_held_out_pairs_and_in_what_is_fitted():
    X, y = people()
    sitting = np.tile([0, 0, 1, 1, 2], 12)
    source = PairSampler(y, never_pair=sitting)
    fold = make_folds(source, y, 0, np.random.default_rng(0))[0]
    assert (sitting[fold.pairs.first] != sitting[fold.pairs.second]).all()
    np.testing.assert_array_equal(HeldOut(X, source, fold, None).known.never_pair, sitting[fold.seen])


def test_a_restricted_source_has_the_pairs_of_its_rows():
    pairs = IndexPairs(np.array([0, 2, 4], dtype=np.int32), np.array([2, 4, 5], dtype=np.int32), np.array([True, False, True]))
    some = restricted(pairs, np.array([2, 4, 5]))
    assert (some.first.tolist(), some.second.tolist(), some.same.tolist()) == ([0, 1], [1, 2], [False, True])


def test_a_representation_is_fitted_on_what_is_seen(monkeypatch):
    X, y = people()
    source = PairSampler(y)
    fold = make_folds(source, y, 0, np.random.default_rng(0))[0]
    from sklearn.preprocessing import StandardScaler

    held_out = HeldOut(X, source, fold, StandardScaler())
    np.testing.assert_allclose(held_out.samples.mean(axis=0), 0.0, atol=1e-12)
    assert np.abs(held_out.test.mean(axis=0)).max() > 1e-3
    model = DistanceSimilarity(metric="euclidean")
    scores = held_out.score(model)
    assert model.n_features_in_ == 3
    assert scores.shape == (len(fold.pairs),)


def test_many_samples_are_subsampled_by_whole_identities_of_an_open_set(monkeypatch):
    monkeypatch.setattr(selection, "MAX_SAMPLES", 200)
    y = np.repeat(np.arange(100), 9)
    source, rng = PairSampler(y), np.random.default_rng(0)
    rows = some_rows(source, y, rng)
    assert 150 <= len(rows) <= 200
    assert set(np.bincount(y[rows], minlength=100)) == {0, 9}
    assert len(some_rows(source, np.arange(900), rng)) == 200
    few = np.repeat(np.arange(10), 90)
    assert len(some_rows(PairSampler(few), few, rng)) == 200


def test_groups_of_what_is_seen_are_given_to_models_that_take_them():
    X, y = people()
    source, groups = PairSampler(y), np.repeat([7, 3, 5, 1, 0, 2], 10)
    fold = make_folds(source, linked_units(y, np.unique(groups, return_inverse=True)[1]), 0, np.random.default_rng(0))[0]
    forest, held_out = SimilarityForest(n_estimators=2, random_state=0), HeldOut(X, source, fold, None, groups)
    known = clone(forest).fit(X[fold.seen], y[fold.seen], groups=groups[fold.seen])
    without = clone(forest).fit(X[fold.seen], y[fold.seen])
    expected = known.pair_score(held_out.rows, held_out.test)
    np.testing.assert_array_equal(held_out.score(clone(forest)), expected)
    assert (without.pair_score(held_out.rows, held_out.test) != expected).any()
    assert held_out.score(DistanceSimilarity()).shape == (len(fold.pairs),)  # takes none


def test_too_few_samples_have_no_folds():
    source = PairSampler([0, 0, 1, 1])
    assert make_folds(source, source.labels, 0, np.random.default_rng(0)) == []


@pytest.mark.parametrize(
    "model", [DistanceSimilarity(), GaussianSimilarity(), SimilarityForest(n_estimators=2, random_state=0)]
)
def test_held_out_scores_need_no_curve_of_training_pairs(rng, model):
    X, y = rng.normal(size=(90, 3)), np.arange(90) % 9
    source = PairSampler(y)
    fold = HeldOut(X, source, make_folds(source, np.arange(90), 0, rng)[0], None)
    scores = fold.score(clone(model))
    known = clone(model).fit(fold.samples, y=fold.known.labels)
    np.testing.assert_array_equal(scores, known.pair_score(fold.rows, fold.test))


def test_scores_that_are_not_finite_are_refused(rng):
    class Infinite(DistanceSimilarity):
        def _score_pairs(self, pairs):
            return np.full(pairs.n_pairs, np.inf)

    source = PairSampler(np.arange(90) % 9)
    fold = HeldOut(rng.normal(size=(90, 3)), source, make_folds(source, np.arange(90), 0, rng)[0], None)
    with pytest.raises(ValueError, match="not finite"):
        fold.score(Infinite())
