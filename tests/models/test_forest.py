"""Tests of SimilarityForest beyond the common contract."""

from __future__ import annotations

import os
import sys
import warnings

import joblib
import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectKBest
from sklearn.inspection import permutation_importance
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import EXPECTED_FAILURES, AgainstOrigin

from programs import said_on_a_terminal
from simtree import CartSplitter, MarginalQuantiles, SimilarityForest, SimilarityTree, WithinClassWhitening
from simtree.datasets import load_keystroke
from simtree.growing._bagging import (
    TreeTask,
    equally_out_of_bag,
    extrapolate_scores,
    first_out_of_bag,
    out_of_bag_values,
)
from simtree.growing._grower import GrowthParams
from simtree.metrics import roc_curve, tpr_at_fpr
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs


@parametrize_with_checks(
    [SimilarityForest(n_estimators=3, n_pairs=200, max_depth=3)], expected_failed_checks=lambda estimator: EXPECTED_FAILURES
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class ForestAgainstOrigin(AgainstOrigin, SimilarityForest):
    """A forest that takes points."""


@parametrize_with_checks([ForestAgainstOrigin(n_estimators=3, n_pairs=200, max_depth=3)])
def test_scikit_learn_checks_without_exception(estimator, check):
    check(estimator)


def small(**parameters):
    return SimilarityForest(**{"n_estimators": 6, "max_depth": 5, "n_pairs": 800, "random_state": 0, **parameters})


def same_tree(a, b):
    """Table for table."""
    return all(
        np.array_equal(x, y) for x, y in zip((*a.cells, *a.nodes, a.decrease), (*b.cells, *b.nodes, b.decrease), strict=True)
    )


# Aggregation


def test_scores_are_means_of_log_likelihood_ratios(blobs):
    X, y = blobs
    forest = small().fit(X, y)
    rows = np.column_stack([np.arange(50), np.arange(50, 100)])
    expected = np.zeros(50)
    for tree, cells in zip(forest.trees_, forest.apply(rows, X).T, strict=True):
        n, m = tree.cells.n_same[cells], tree.cells.n_different[cells]
        N, M = tree.cells.n_same[0], tree.cells.n_different[0]
        expected += np.log((n + 0.5) / (N + 0.5)) - np.log((m + 0.5 * M / N) / (M + 0.5 * M / N))
    np.testing.assert_allclose(forest.pair_score(rows, X), expected / 6, rtol=1e-12)


@pytest.mark.parametrize(("aggregation", "average"), [("mean_rank", np.mean), ("median_rank", np.median)])
def test_ranks_are_shares_of_less_similar_pairs(blobs, aggregation, average):
    """The rank of a cell: of all pairs, both kinds weighing the same, the share behind it and half of its own."""
    X, y = blobs
    forest = small(aggregation=aggregation).fit(X, y)
    rows = np.column_stack([np.arange(50), np.arange(50, 100)])
    said = []
    for tree, cells in zip(forest.trees_, forest.apply(rows, X).T, strict=True):
        mass = 0.5 * (tree.tpr_mass + tree.fpr_mass)
        order = tree.leaves.tolist()
        behind = {leaf: mass[order[k + 1 :]].sum() + 0.5 * mass[leaf] for k, leaf in enumerate(order)}
        said.append([behind[cell] for cell in cells])
    np.testing.assert_allclose(forest.pair_score(rows, X), average(said, axis=0), rtol=1e-12)
    assert forest.pair_score(rows, X).min() >= 0
    assert forest.pair_score(rows, X).max() <= 1


def test_the_median_is_not_the_mean(blobs):
    a, b = (small(aggregation=name).fit(*blobs).pairwise_score(blobs[0]) for name in ("mean_rank", "median_rank"))
    assert not np.allclose(a, b)


def test_a_forest_beats_its_trees_on_held_out_samples(blobs):
    X, y = blobs
    rng = np.random.default_rng(0)
    train = rng.random(len(X)) < 0.5
    forest = small(n_estimators=30).fit(X[train], y[train])
    tree = SimilarityTree(max_depth=5, n_pairs=800, random_state=0).fit(X[train], y[train])
    assert forest.score(X[~train], y[~train]) > tree.score(X[~train], y[~train])


# Seeds, threads, processes


@pytest.mark.slow
def test_same_forest_for_any_number_of_jobs(blobs):
    forests = [small(n_jobs=n_jobs, n_estimators=5).fit(*blobs) for n_jobs in (1, 2, 4)]
    with joblib.parallel_config(backend="loky"):
        forests.append(small(n_jobs=2, n_estimators=5).fit(*blobs))
    for other in forests[1:]:
        assert all(same_tree(a, b) for a, b in zip(forests[0].trees_, other.trees_, strict=True))
        np.testing.assert_array_equal(forests[0].pairwise_score(blobs[0]), other.pairwise_score(blobs[0]))


def test_a_forest_of_one_is_the_tree(given_pairs):
    pairs, same = given_pairs
    splitter = CartSplitter(max_depth=3)
    forest = SimilarityForest(n_estimators=1, bootstrap=False, max_depth=6, splitter=splitter).fit(pairs, same)
    tree = SimilarityTree(max_depth=6, splitter=splitter).fit(pairs, same)
    assert same_tree(forest.trees_[0], tree.tree_)


def test_trees_differ(blobs):
    forest = small().fit(*blobs)
    assert not any(same_tree(forest.trees_[0], other) for other in forest.trees_[1:])
    assert not same_tree(forest.trees_[0], small(random_state=1).fit(*blobs).trees_[0])


def test_warm_start_adds_trees(blobs):
    X, y = blobs
    grown = small(n_estimators=2, warm_start=True).fit(X, y)
    first = grown.trees_[0]
    grown.set_params(n_estimators=6).fit(X, y)
    assert grown.trees_[0] is first
    whole = small().fit(X, y)
    assert all(same_tree(a, b) for a, b in zip(grown.trees_, whole.trees_, strict=True))
    with pytest.raises(ValueError, match="n_estimators=3 is less than the 6 existing trees"):
        grown.set_params(n_estimators=3).fit(X, y)


@pytest.mark.parametrize(
    "change", ["order", "values", "labels", {"bag": "classes"}, {"max_samples": 0.5}, {"bootstrap": False}], ids=str
)
def test_warm_start_on_other_data_or_bags_is_refused(blobs, change):
    """Bags are found again from the seed: of other rows they would be other bags, and pairs in the bag would pass for out."""
    X, y = blobs
    grown = small(n_estimators=2, warm_start=True).fit(X, y)
    before = grown.trees_
    other = {"order": (X[::-1], y[::-1]), "values": (X + 1e-9, y), "labels": (X, np.roll(y, 1))}
    data = other[change] if isinstance(change, str) else (X, y)
    grown.set_params(n_estimators=4, **({} if isinstance(change, str) else change))
    with pytest.raises(ValueError, match="warm_start=True requires the samples, labels and bags"):
        grown.fit(*data)
    assert grown.trees_ is before


@pytest.mark.parametrize("kinds", [["sum", "abs_diff"], ["abs_diff", "cosine"], ["oblique"]])
def test_warm_start_with_other_coordinates_is_refused(blobs, kinds):
    """A file has the coordinates of the first tree only."""
    grown = small(n_estimators=2, coordinates=["abs_diff", "sum"], warm_start=True).fit(*blobs)
    with pytest.raises(ValueError, match=r"coordinates=.* differ from those .* set coordinates=\['abs_diff', 'sum'\]"):
        grown.set_params(n_estimators=4, coordinates=kinds).fit(*blobs)
    assert len(grown.trees_) == 2


def test_warm_start_on_other_pairs_is_refused(blobs):
    X, y = blobs
    drawn = PairSampler(y).sample(500, np.random.default_rng(0))
    rows = np.column_stack([drawn.first, drawn.second])
    grown = small(n_estimators=2, warm_start=True).fit(X, drawn.same, pairs=rows).set_params(n_estimators=3)
    with pytest.raises(ValueError, match="warm_start=True requires the samples"):
        grown.fit(X, drawn.same[::-1], pairs=rows[::-1])
    assert len(grown.fit(X, drawn.same, pairs=rows).trees_) == 3


def test_an_interrupted_fit_leaves_the_estimator_as_it_was(blobs, monkeypatch):
    X, y = blobs
    forest = small().fit(X, y)
    before = forest.pairwise_score(X[:5])

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("simtree.growing._bagging.TreeTask.grow", interrupt)
    with pytest.raises(KeyboardInterrupt):
        forest.set_params(n_estimators=9).fit(X, y)
    assert len(forest.trees_) == 6
    np.testing.assert_array_equal(forest.pairwise_score(X[:5]), before)
    new = small()
    with pytest.raises(KeyboardInterrupt):
        new.fit(X, y)
    assert not hasattr(new, "trees_")


def test_progress(blobs, capsys):
    small(n_estimators=4, verbose=1).fit(*blobs)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [f"growing trees: {k} of 4" for k in range(1, 5)]
    small(n_estimators=4).fit(*blobs)
    assert capsys.readouterr().err == ""


def test_scikit_learn_callbacks_are_called(blobs):
    pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")
    told = []

    class Listener:
        def setup(self, estimator, context):
            told.append("setup")

        def on_fit_task_begin(self, estimator, context):
            told.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context):
            told.append(f"end {context.task_name}")

        def teardown(self, estimator, context):
            told.append("teardown")

    small(n_estimators=3).set_callbacks(Listener()).fit(*blobs)
    tree = ["begin growing trees", "end growing trees"]
    assert told == ["setup", "begin fit", *tree, *tree, *tree, "end fit", "teardown"]


# Bags and out-of-bag figures


@pytest.fixture
def seen(monkeypatch):
    """The pairs on which trees were grown, in order."""
    pairs_of_trees = []
    original = GrowthParams.grow

    def watch(self, points, pairs, rng):
        pairs_of_trees.append(pairs)
        return original(self, points, pairs, rng)

    monkeypatch.setattr(GrowthParams, "grow", watch)
    return pairs_of_trees


def test_bags_are_sets_of_samples_that_contain_all_pairs(blobs, seen):
    X, y = blobs
    forest = small(n_estimators=8).fit(X, y)
    sampler = PairSampler(y)
    for number, pairs in enumerate(seen):
        task = TreeTask(None, np.arange(len(X)), len(X), forest._entropy, number)
        inside = task.in_bag(sampler)
        assert 0.5 < inside.mean() < 0.75
        assert inside[pairs.first].all()
        assert inside[pairs.second].all()
        assert (pairs.first != pairs.second).all()
        np.testing.assert_array_equal(y[pairs.first] == y[pairs.second], pairs.same)


def test_out_of_bag_scores_use_only_trees_that_saw_neither_sample(blobs):
    """Against the obvious loop: for each pair, average the trees whose bag holds none of its two units."""
    X, y = blobs
    forest = small(n_estimators=5).fit(X, y)
    rng = np.random.default_rng(0)
    bags = [rng.random(len(X)) < 0.5 for _ in forest.trees_]
    first, second = np.arange(60, dtype=np.int32), np.arange(50, 110, dtype=np.int32)
    said = out_of_bag_values(forest.trees_, forest._leaf_values()[1], bags, SamplePairs(X, X, first, second))
    cells = forest.apply(np.column_stack([first, second]), X)
    for t, (tree, bag) in enumerate(zip(forest.trees_, bags, strict=True)):
        for p in range(60):
            if bag[first[p]] or bag[second[p]]:
                assert np.isnan(said[t, p])
            else:
                assert said[t, p] == tree.llr[cells[p, t]]


def test_all_pairs_are_scored_by_the_same_number_of_trees():
    """Same pairs of one class are out of more bags: the number is one that half of the pairs of either kind reach."""
    bags = [np.array([False, False, True]), np.array([False, False, False]), np.array([False, False, True])]
    index = IndexPairs(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([True, False, False]))
    kept, n_used = equally_out_of_bag(index, [bags])
    assert (n_used, len(kept)) == (1, 3)  # same: 3 trees; different: 1
    kept, n_used = equally_out_of_bag(index, [[bags[1]] * 2, bags])
    assert (n_used, len(kept)) == (1, 3)
    kept, n_used = equally_out_of_bag(index, [bags[:1]])
    assert (n_used, kept.same.tolist()) == (1, [True])
    by_tree = np.array([[np.nan, 1.0], [2.0, np.nan], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(first_out_of_bag(by_tree, 2), [[2.0, 1.0], [3.0, 4.0]])


def test_scores_by_few_trees_are_extrapolated_to_many():
    """Each tree adds noise to the value of a pair; what is found is nearly the distribution of many trees."""
    rng = np.random.default_rng(0)
    by_tree = rng.normal(size=20_000) + 1.5 * rng.normal(size=(200, 20_000))
    used, halves = by_tree[:12].mean(axis=0), np.array([by_tree[0:12:2].mean(axis=0), by_tree[1:12:2].mean(axis=0)])
    found = extrapolate_scores(used, halves, 12, 200)
    assert used.std() > 1.07
    assert found.std() == pytest.approx(by_tree.mean(axis=0).std(), abs=0.02)
    assert (np.diff(found) >= 0).all()
    np.testing.assert_array_equal(extrapolate_scores(used, halves, 12, 12), np.sort(used))
    np.testing.assert_array_equal(extrapolate_scores(used, halves, 1, 100), np.sort(used))


@pytest.mark.slow
def test_out_of_bag_curve_of_classes_on_noise_and_with_signal():
    """On noise the TPR is the FPR (it was 0.035 at 0.1); with signal it is that of unseen people, as is the threshold."""
    found = {0.0: [], 2.0: []}
    for spread, figures in found.items():
        for seed in range(6):
            rng = np.random.default_rng(seed)
            y = np.repeat(np.arange(30), 6)
            X, other = (spread * rng.normal(size=(30, 6))[y] + rng.normal(size=(180, 6)) for _ in range(2))
            forest = small(n_estimators=40, n_pairs=1000, bag="classes", oob_score=True).fit(X, y)
            drawn = PairSampler(y).all_pairs()
            scores = forest.pair_score(np.column_stack([drawn.first, drawn.second]), other)
            rocs = forest.oob_roc_, roc_curve(scores, drawn.same)
            figures.append([*(tpr_at_fpr(roc, 0.1) for roc in rocs), *(roc.auc() for roc in rocs)])
    (noise, _, noise_auc, _), (oob, unseen, oob_auc, unseen_auc) = (np.mean(figures, axis=0) for figures in found.values())
    assert noise == pytest.approx(0.1, abs=0.03)
    assert noise_auc == pytest.approx(0.5, abs=0.03)
    assert oob == pytest.approx(unseen, abs=0.05)
    assert oob_auc == pytest.approx(unseen_auc, abs=0.02)


@pytest.mark.slow
def test_out_of_bag_figures_of_a_previous_fit_are_forgotten(blobs):
    forest = small(n_estimators=120, oob_score=True).fit(*blobs)
    forest.set_params(oob_score=False).fit(*blobs)
    assert not hasattr(forest, "oob_roc_")
    assert not hasattr(forest, "oob_score_")


def test_too_few_trees_are_told(blobs):
    with pytest.warns(
        UserWarning, match=r"n_estimators=20 is too few for oob_score=True: pairs are out of bag for \d of the trees"
    ):
        small(n_estimators=20, bag="samples", oob_score=True).fit(*blobs)


@pytest.mark.parametrize(
    "representation",
    [
        WithinClassWhitening(random_state=0),
        make_pipeline(StandardScaler(), WithinClassWhitening(random_state=0)),
        FeatureUnion([("discriminant", LinearDiscriminantAnalysis())]),
        SelectKBest(k=2),
    ],
    ids=["whitening", "pipeline", "union", "selection"],
)
@pytest.mark.parametrize("bag", ["samples", "classes"])
def test_out_of_bag_scores_are_refused_if_a_representation_saw_the_labels(blobs, representation, bag):
    forest = small(representation=representation, oob_score=True, bag=bag)
    with pytest.raises(
        ValueError, match=r"depends on labels .* is fitted once on all samples, so that no pair is out of bag; set"
    ):
        forest.fit(*blobs)
    assert not hasattr(forest, "trees_")
    forest.set_params(oob_score=False).fit(*blobs)


def test_out_of_bag_scores_are_refused_with_discriminant_directions(blobs):
    oblique = {"coordinates": ["abs_diff", "oblique"], "oob_score": True, "n_estimators": 60}
    for directions in ("discriminant", ["random", "discriminant"], "fisher"):
        with pytest.raises(ValueError, match=r"oob_score=True: directions=.* is fitted once on all samples"):
            small(**oblique, directions=directions).fit(*blobs)
    assert small(**oblique).fit(*blobs).oob_score_ > 0.6  # random directions see no labels


def test_out_of_bag_scores_with_a_representation_that_does_without_labels(blobs):
    forest = small(representation=make_pipeline(MarginalQuantiles(), StandardScaler()), oob_score=True, n_estimators=60)
    assert 0.6 < forest.fit(*blobs).oob_score_ < forest.auc_


@pytest.fixture
def fewer_pairs(monkeypatch):
    """A small part of the pairs is enough to two digits."""
    monkeypatch.setattr("simtree.models._base.MAX_SCORE_PAIRS", 20_000)
    monkeypatch.setattr("simtree.models._forest.OOB_PAIRS", 20_000)


def people(seed, n_people, n_samples=20):
    """People around centres of their own."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, 1, (n_people, 5))

    def sample():
        y = np.repeat(np.arange(n_people), n_samples)
        return centres[y] + rng.normal(0, 0.7, (len(y), 5)), y

    return sample


@pytest.mark.slow
def test_out_of_bag_estimates_agree_with_held_out_samples_and_identities(fewer_pairs):
    """Means over four populations of forty people; strangers are two hundred others.

    A pair is scored by a seventh of the trees only, so an out-of-bag figure is a little low.
    """
    found = []
    for seed in range(4):
        sample = people(seed, 40)
        X, y = sample()
        forest = {"n_estimators": 60, "max_depth": 7, "n_pairs": 1000, "oob_score": True, "random_state": 0, "n_jobs": 2}
        by_samples, by_classes = (SimilarityForest(bag=bag, **forest).fit(X, y) for bag in ("samples", "classes"))
        strangers = people(seed + 50, 200)()
        figures = by_samples.oob_score_, by_samples.score(*sample()), by_classes.oob_score_, by_classes.score(*strangers)
        found.append((*figures, by_samples.auc_))
    points, other_points, classes, strangers, training = np.mean(found, axis=0)
    assert points == pytest.approx(other_points, abs=0.02)
    assert classes == pytest.approx(strangers, abs=0.03)
    assert classes < points < other_points + 0.005 < training


@pytest.mark.slow
def test_gap_on_keystroke_data(capsys, fewer_pairs):
    """Other samples of people seen in training, against people never seen: the gap is large, and each figure is honest.

    Means over three splits of the people: from split to split the figure for strangers moves by several hundredths.
    """
    if not os.environ.get("SIMTREE_DATA"):
        pytest.skip("SIMTREE_DATA is not set: no keystroke data")
    X, y = load_keystroke()
    even = np.arange(len(y)) % 2 == 0
    forest = {"n_estimators": 40, "max_depth": 9, "n_pairs": 2_500, "oob_score": True, "random_state": 0, "n_jobs": 2}
    found = []
    for seed in range(3):
        train = np.isin(y, np.random.default_rng(seed).permutation(51)[:30])
        points = SimilarityForest(**forest).fit(X[train & even], y[train & even])
        people = SimilarityForest(bag="classes", **forest).fit(X[train & even], y[train & even])
        held_out = points.score(X[train & ~even], y[train & ~even]), people.score(X[~train], y[~train])
        found.append((points.oob_score_, held_out[0], people.oob_score_, held_out[1]))
    points, samples, people, strangers = np.mean(found, axis=0)
    with capsys.disabled():
        print(
            f"\nkeystroke, AUC: bag='samples' {points:.3f} (held-out samples {samples:.3f}), "
            f"bag='classes' {people:.3f} (held-out people {strangers:.3f})"
        )
    assert points == pytest.approx(samples, abs=0.03)  # few trees a pair: a little low
    assert people == pytest.approx(strangers, abs=0.025)
    assert samples - strangers > 0.02


@pytest.mark.slow
def test_out_of_bag_of_given_pairs(blobs):
    X, y = blobs
    drawn = PairSampler(y).sample(3000, np.random.default_rng(0))
    rows = np.column_stack([drawn.first, drawn.second])
    by_rows = small(oob_score=True, n_estimators=60).fit(X, drawn.same, pairs=rows)
    by_groups = small(oob_score=True, n_estimators=60).fit(X[rows], drawn.same, groups=rows)
    assert by_rows.oob_score_ == pytest.approx(by_groups.oob_score_, abs=0.03)
    by_people = small(oob_score=True, n_estimators=120).fit(X, drawn.same, pairs=rows, groups=y)
    assert 0.5 < by_people.oob_score_ <= 1
    with pytest.raises(
        ValueError, match="requires the identity of each sample of a pair; give groups, or give pairs as row indices of X"
    ):
        small(oob_score=True).fit(X[rows], drawn.same)
    with pytest.raises(ValueError, match=r"bag='classes' requires the identity of each sample of a pair; give groups\."):
        small(bag="classes").fit(X, drawn.same, pairs=rows)
    with pytest.raises(ValueError, match="groups has shape"):
        small().fit(X, drawn.same, pairs=rows, groups=y[:5])


def test_too_few_trees_for_out_of_bag():
    X, y = np.arange(4.0)[:, None], [0, 0, 1, 1]
    with pytest.raises(
        ValueError, match="with n_estimators=1 too few pairs are out of bag to have both same and different ones; increase"
    ):
        small(oob_score=True, n_estimators=1).fit(X, y)


def test_a_bag_without_pairs_is_redrawn_or_rejected():
    X, y = np.arange(6.0)[:, None], [0, 0, 1, 2, 3, 4]
    forest = small(n_estimators=3).fit(X, y)  # most bags lack the only same pair
    assert len(forest.trees_) == 3
    with pytest.raises(ValueError, match="has both same and different pairs; increase max_samples, or set bootstrap=False"):
        small(max_samples=1).fit(X, y)


# Refilling


@pytest.fixture
def both_halves(monkeypatch):
    """The second half is kept even if it loses."""
    monkeypatch.setattr(SimilarityForest, "_drop_second_half", lambda *_: None)


def test_second_half_of_the_trees_is_grown_on_pairs_that_are_hard_out_of_bag(blobs, seen, both_halves):
    """Against the obvious loop: hard pairs score high by the first half's trees that saw neither sample."""
    X, y = blobs
    forest = small(n_estimators=40, refill=True, refill_budget=4000, focus_fpr=0.2).fit(X, y)
    first = small(n_estimators=20, focus_fpr=0.2).fit(X, y)
    assert all(same_tree(a, b) for a, b in zip(first.trees_, forest.trees_[:20], strict=True))
    bags = [TreeTask(None, np.arange(len(X)), len(X), forest._entropy, t).in_bag(PairSampler(y)) for t in range(20)]
    i, j = np.triu_indices(len(X), 1)
    cells = first.apply(np.column_stack([i, j]), X)
    out = np.array([~bag[i] & ~bag[j] for bag in bags])
    values = np.array([np.where(o, tree.llr[c], np.nan) for o, tree, c in zip(out, first.trees_, cells.T, strict=True)])
    n_used = min(np.median(out.sum(axis=0)[y[i] == y[j]]), np.median(out.sum(axis=0)[y[i] != y[j]]))
    known = out.sum(axis=0) >= n_used
    scores = np.full((len(X), len(X)), np.nan)
    scores[i[known], j[known]] = [column[~np.isnan(column)][: int(n_used)].mean() for column in values[:, known].T]
    lowest = np.nanquantile(scores[i, j][y[i] != y[j]], 0.7)  # of all pairs; candidates are a sample of them
    for pairs in seen[20:40]:
        of_pairs = scores[np.minimum(pairs.first, pairs.second), np.maximum(pairs.first, pairs.second)]
        assert of_pairs.min() >= lowest
        assert 0.1 < pairs.same.mean() < 0.97
        np.testing.assert_array_equal(y[pairs.first] == y[pairs.second], pairs.same)
        assert len(pairs) <= 800


@pytest.mark.slow
def test_refilling_never_turns_a_model_below_chance():
    """24 people with 8 samples each: the AUC on unseen people was 0.735 without, and 0.376 with refilling."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(24), 8)
    X, other = (0.8 * rng.normal(size=(24, 8))[y] + rng.normal(size=(192, 8)) for _ in range(2))
    settings = {"n_estimators": 40, "n_pairs": 20_000, "n_jobs": 2, "random_state": 0}
    without = SimilarityForest(**settings).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        refilled = SimilarityForest(refill=True, **settings).fit(X, y)
    assert refilled.score(other, y) > without.score(other, y) - 0.04 > 0.6


@pytest.mark.slow
def test_a_second_half_that_loses_is_dropped_with_a_warning(blobs, monkeypatch):
    """Trees on pairs with the labels swapped."""
    X, y = blobs
    original = SimilarityForest._hard_pairs

    def swapped(self, *arguments):
        hard = original(self, *arguments)
        return IndexPairs(hard.first, hard.second, ~hard.same)

    monkeypatch.setattr(SimilarityForest, "_hard_pairs", swapped)
    with pytest.warns(UserWarning, match=r"refill=True lowers the out-of-bag AUC .* were dropped, which leaves 60 trees"):
        forest = small(n_estimators=120, refill=True, focus_fpr=0.3, oob_score=True).fit(X, y)
    assert not forest.refilled_
    first = small(n_estimators=60, focus_fpr=0.3).fit(X, y)
    np.testing.assert_array_equal(forest.pairwise_score(X[:9]), first.pairwise_score(X[:9]))


def test_score_is_the_sum_of_the_two_halves(blobs, both_halves):
    X, y = blobs
    forest = small(n_estimators=7, refill=True, focus_fpr=0.2).fit(X, y)
    rows = np.column_stack([np.arange(50), np.arange(50, 100)])
    cells = forest.apply(rows, X)
    said = np.array([tree.llr[column] for tree, column in zip(forest.trees_, cells.T, strict=True)])
    np.testing.assert_allclose(forest.pair_score(rows, X), said[:4].mean(axis=0) + said[4:].mean(axis=0), rtol=1e-9)
    why = forest.explain_pair(X[0], X[50])
    assert why.contributions.sum() == pytest.approx(forest.pair_score(rows[:1], X)[0])


@pytest.mark.slow
def test_refilled_trees_draw_in_their_bag_and_out_of_bag_scores_are_sums(blobs, both_halves):
    X, y = blobs
    forest = small(n_estimators=121, refill=True, focus_fpr=0.2, oob_score=True).fit(X, y)
    assert 0.6 < forest.oob_score_ < forest.auc_
    # The scale of the sum is that of the scores: the threshold chosen on it serves both.
    assert np.isclose(forest.oob_roc_.thresholds[1], forest.roc_.thresholds[1], rtol=0.5)
    again = small(n_estimators=121, refill=True, focus_fpr=0.2, oob_score=True).fit(X, y)
    assert again.oob_score_ == forest.oob_score_
    assert all(same_tree(a, b) for a, b in zip(forest.trees_, again.trees_, strict=True))


def test_bags_of_refilled_trees_are_reproduced(seen, both_halves):
    """Bags of ten draws of ten classes, some drawn again: each tree's pairs lie in the bag found from its seed."""
    y = np.repeat(np.arange(10), 6)
    X = np.random.default_rng(0).normal(size=(60, 2))
    forest = small(n_estimators=30, bag="classes", refill=True, focus_fpr=0.9, refill_budget=9_000).fit(X, y)
    sampler = PairSampler(y)
    assert len(seen) == 30
    for number, pairs in enumerate(seen):
        inside = TreeTask(None, sampler.labels, 10, forest._entropy, number).in_bag(sampler)
        assert inside[pairs.first].all()
        assert inside[pairs.second].all()


def test_a_bag_without_same_or_different_hard_pairs_is_rejected():
    """Drawing another bag would be wrong: it could not be found again, and out-of-bag figures would be false."""
    y = np.repeat(np.arange(4), [3, 3, 12, 12])
    X = np.random.default_rng(0).normal(size=(30, 2)) + y[:, None]
    forest = small(n_estimators=30, bag="classes", max_samples=2, refill=True, focus_fpr=0.5, n_pairs=60)
    with pytest.raises(
        ValueError, match="a bag has only same or only different hard pairs; increase refill_budget or focus_fpr"
    ):
        forest.fit(X, y)


@pytest.mark.parametrize("data", ["pairs", "warm"])
def test_refill_requires_labels_and_no_warm_start(blobs, data):
    X, y = blobs
    if data == "pairs":
        drawn = PairSampler(y).sample(500, np.random.default_rng(0))
        arguments = {"X": X, "y": drawn.same, "pairs": np.column_stack([drawn.first, drawn.second])}
        forest = small(refill=True)
    else:
        arguments = {"X": X, "y": y}
        forest = small(refill=True, warm_start=True).fit(X, y).set_params(n_estimators=8)
    with pytest.raises(ValueError, match="refill=True samples pairs of labelled samples"):
        forest.fit(**arguments)
    if data == "warm":
        before = forest.pairwise_score(X[:9])
        with pytest.raises(ValueError, match="warm_start=False to refit"):
            forest.set_params(refill=False).fit(**arguments)
        np.testing.assert_array_equal(forest.pairwise_score(X[:9]), before)  # a parameter set later changes no fitted forest


# Importances


def test_importances(blobs):
    X, y = blobs
    X = np.column_stack([X, np.random.default_rng(0).normal(size=len(X))])
    forest = small(n_estimators=20).fit(X, y)
    assert forest.feature_importances_.sum() == pytest.approx(1)
    assert forest.feature_importances_.argmin() == 4
    drop = permutation_importance(forest, X, y, n_repeats=3, random_state=0).importances_mean
    assert drop[4] == pytest.approx(0, abs=0.01)
    assert drop[:4].min() > 0.01


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_estimators": 0}, ValueError, "n_estimators=0"),
        ({"aggregation": "mean"}, ValueError, "aggregation='mean' is unknown; choose one of 'llr'"),
        ({"bag": "people"}, ValueError, "bag='people' is unknown"),
        ({"oob_score": True, "bootstrap": False}, ValueError, "oob_score=True requires bootstrap samples; set bootstrap=True"),
        ({"max_samples": 0.5, "bootstrap": False}, ValueError, "max_samples=0.5 requires bootstrap samples"),
        ({"max_samples": 0}, ValueError, "max_samples=0"),
        ({"max_depth": 60}, ValueError, "max_depth=60"),
        (
            {"refill": True, "aggregation": "mean_rank"},
            ValueError,
            "refill=True adds log-likelihood ratios, but aggregation='mean_rank'",
        ),
        ({"refill_budget": 1}, ValueError, "refill_budget=1"),
        ({"refill": True, "bootstrap": False}, ValueError, "refill=True finds hard pairs by trees that did not see them"),
    ],
)
def test_bad_parameters(blobs, parameters, error, message):
    with pytest.raises(error, match=message):
        small(**parameters).fit(*blobs)


@pytest.mark.slow
def test_training_curve_and_threshold(blobs):
    X, y = blobs
    forest = small().fit(X, y)
    scores = forest.pairwise_score(X)[np.triu_indices(len(X), 1)]
    i, j = np.triu_indices(len(X), 1)
    assert forest.auc_ == pytest.approx(roc_curve(scores, y[i] == y[j]).auc(), abs=1e-12)  # few points: all pairs
    assert small(oob_score=True, n_estimators=60).fit(X, y).oob_score_ < small(n_estimators=60).fit(X, y).auc_


@pytest.mark.slow
def test_a_progress_bar_is_shown_on_a_terminal(blobs):
    """With rich, on a pseudo-terminal: the bar is there, and says how many trees are done."""
    pytest.importorskip("rich")
    code = (
        "import numpy as np, simtree;"
        "X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3;"
        "simtree.SimilarityForest(n_estimators=3, max_depth=2, n_pairs=100, verbose=1).fit(X, y)"
    )
    said = said_on_a_terminal([sys.executable, "-c", code])
    assert "growing trees" in said
    assert "100%" in said


def test_warm_start_keeps_its_directions(blobs):
    """Samples are projected once for all trees."""
    X, y = blobs
    forest = SimilarityForest(
        n_estimators=2, n_pairs=300, coordinates=["oblique"], directions="discriminant", warm_start=True, random_state=0
    )
    kept = forest.fit(X, y).trees_[0].pair_map.directions
    forest.set_params(n_estimators=4).fit(X, y)
    for tree in forest.trees_:
        np.testing.assert_array_equal(tree.pair_map.directions, kept)


@pytest.mark.parametrize("directions", ["steep", ["random", "steep"], [], 3])
def test_unknown_directions_are_rejected(blobs, directions):
    with pytest.raises(ValueError, match="directions="):
        SimilarityForest(coordinates=["oblique"], directions=directions).fit(*blobs)
