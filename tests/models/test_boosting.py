"""Tests of SimilarityBoosting beyond the common contract."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_checks import EXPECTED_FAILURES, AgainstOrigin

import oracle
from simtree import ForestPosterior, SimilarityBoosting, load
from simtree.growing import _boosting as growing
from simtree.metrics import roc_curve, youden_threshold
from simtree.models import _early_stopping as early_stopping
from simtree.models import _tree_model as tree_model
from simtree.models._early_stopping import ValidationCurve, tpr_errors
from simtree.pairs import pair_features
from simtree.pairs._directions import MAX_FISHER, fisher_directions
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs

OF_PAIRS = dict.fromkeys(
    (
        "check_all_zero_sample_weights_error",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weights_list",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
    ),
    "the check gives weights of labelled samples, whose pairs are drawn; sample_weight is of given pairs",
)


@parametrize_with_checks(
    [SimilarityBoosting(n_estimators=3, n_pairs=200, min_samples_leaf=5)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES | OF_PAIRS,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class BoostingAgainstOrigin(AgainstOrigin, SimilarityBoosting):
    """Boosting that takes points."""


@parametrize_with_checks(
    [BoostingAgainstOrigin(n_estimators=3, n_pairs=200, min_samples_leaf=5)],
    expected_failed_checks=lambda estimator: OF_PAIRS,
)
def test_scikit_learn_checks_without_exception(estimator, check):
    check(estimator)


def small(**parameters):
    settings = {"n_estimators": 12, "max_leaf_nodes": 6, "min_samples_leaf": 4, "n_pairs": 600, "refresh": 4, "random_state": 0}
    return SimilarityBoosting(**{**settings, **parameters})


def fixed(**parameters):
    return small(early_stopping=False, **parameters)


@pytest.fixture(scope="module")
def people():
    """Samples of twenty identities."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(20), 12)
    return 1.5 * rng.normal(size=(20, 3))[y] + rng.normal(0, 0.7, (len(y), 3)), y


# The algorithm


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_the_oracle(rng, weighted):
    """Gradient boosting written down in NumPy, on coordinates of few distinct values, which are their own bins."""
    pairs = rng.integers(0, 3, (150, 2, 2)).astype(float)
    same = np.abs(pairs[:, 0] - pairs[:, 1]).sum(axis=1) + rng.normal(size=150) < 1.5
    weights = rng.uniform(0.5, 2.0, 150) if weighted else np.ones(150)
    model = fixed(n_estimators=4, learning_rate=0.3, l2=0.5, max_leaf_nodes=5, min_samples_leaf=7)
    model.fit(pairs, same, sample_weight=weights if weighted else None)
    codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in pair_features(pairs).T]).astype(np.uint8)
    offset = np.log(weights[same].sum() / weights[~same].sum())
    scores = np.zeros(150)
    for _ in range(4):
        g, h = oracle.gradients(scores + offset, same, weights)
        for leaf in oracle.boosted_tree(codes, g, h, 0.5, 7, 5, 52, growing.MAX_STEP, np.zeros(4)):
            rows = leaf["rows"]
            value = oracle.bounded_value(g[rows].sum(), h[rows].sum(), 0.5, leaf["low"], leaf["high"])
            scores[rows] += 0.3 * value
    np.testing.assert_allclose(model.pair_score(pairs), scores, atol=1e-6)


def test_weight_two_is_a_pair_twice(given_pairs):
    pairs, same = np.round(given_pairs[0]), given_pairs[1]  # few distinct values, each a bin of its own
    model = fixed(min_samples_leaf=1)
    a = model.fit(pairs, same, sample_weight=np.where(np.arange(len(same)) < 100, 2.0, 1.0)).pair_score(pairs)
    b = model.fit(np.concatenate([pairs, pairs[:100]]), np.concatenate([same, same[:100]])).pair_score(pairs)
    np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("as_rows", [True, False])
def test_weight_zero_is_a_pair_left_out(people, rng, as_rows):
    """Pairs of weight 0 with false labels must not be held out, counted in leaves, or decide about the threshold."""
    X, y = people
    drawn = PairSampler(y).sample(2000, np.random.default_rng(1))
    rows, kept = np.column_stack([drawn.first, drawn.second]), np.arange(2000) % 2 == 0
    same = np.where(kept, drawn.same, rng.random(2000) < 0.5)
    data = [(X, {"pairs": chosen}) if as_rows else (X[chosen], {}) for chosen in (rows, rows[kept])]
    weighted = small().fit(data[0][0], same, sample_weight=kept.astype(float), **data[0][1])
    left_out = small().fit(data[1][0], same[kept], **data[1][1])
    assert weighted.best_iteration_ == left_out.best_iteration_
    assert weighted.validation_roc_ == left_out.validation_roc_
    assert weighted.threshold_ == left_out.threshold_
    assert weighted.roc_ == left_out.roc_
    np.testing.assert_array_equal(weighted.pairwise_score(X), left_out.pairwise_score(X))


def test_weights_hold_in_validation_as_pairs_that_are_repeated(rng):
    same = rng.random(400) < 0.4
    scores, times = rng.normal(size=400) + same, rng.integers(1, 4, 400)
    rows, units = np.repeat(np.arange(400), times), np.arange(400)
    weighted = ValidationCurve(10, same, (units, units), times.astype(float))
    repeated = ValidationCurve(10, same[rows], (rows, rows))
    weighted.add(5, scores)
    repeated.add(5, scores[rows])
    assert weighted.best.roc.auc() == pytest.approx(repeated.best.roc.auc())
    assert weighted.results[0][3] == pytest.approx(repeated.results[0][3])
    found = [curve.best.roc.at([0.02, 0.1, 0.5]) for curve in (weighted, repeated)]
    np.testing.assert_allclose(*found)
    rates = np.array([0.1, 0.3])
    errors = tpr_errors(weighted.best.roc, rates, scores, same, weighted.units, weighted.weights)
    np.testing.assert_allclose(
        errors, tpr_errors(repeated.best.roc, rates, scores[rows], same[rows], repeated.units), rtol=0.05
    )


@pytest.mark.parametrize("stops", [False, True])
def test_weights_hold_in_curves_and_thresholds(given_pairs, rng, stops):
    """Half of the pairs have random labels and hardly any weight; without weights, the AUC would be about 0.75."""
    pairs, labels = given_pairs
    trusted = np.arange(len(labels)) % 2 == 0
    same = np.where(trusted, labels, rng.random(len(labels)) < 0.5)
    model = small(early_stopping=stops).fit(pairs, same, sample_weight=np.where(trusted, 1.0, 1e-6))
    expected = roc_curve(model.pair_score(pairs[trusted]), same[trusted])
    assert model.auc_ == pytest.approx(expected.auc(), abs=1e-4)
    if stops:
        assert model.validation_roc_.auc() > 0.9
    else:
        assert model.threshold_ == youden_threshold(model.roc_)


def test_trees_are_the_same_for_any_number_of_jobs(blobs, monkeypatch):
    X, y = blobs
    one = small().fit(X, y).pairwise_score(X)
    monkeypatch.setattr(growing, "MIN_PARALLEL_UPDATES", 100)
    monkeypatch.setattr(growing, "CHUNK", 64)
    np.testing.assert_array_equal(small(n_jobs=3).fit(X, y).pairwise_score(X), one)


def test_score_is_the_sum_of_values(blobs):
    X, y = blobs
    model = fixed().fit(X, y)
    rows = np.column_stack([np.arange(50), np.arange(50, 100)])
    cells = model.apply(rows, X).T
    total = sum(values[own] for values, own in zip(model.values_, cells, strict=True))
    np.testing.assert_allclose(model.pair_score(rows, X), total, rtol=1e-12)


@pytest.mark.parametrize("parameters", [{"min_samples_leaf": 30}, {"max_leaf_nodes": 3}, {"max_depth": 2}])
def test_limits_of_trees_hold(blobs, parameters):
    model = fixed(**parameters).fit(*blobs)
    for tree in model.trees_:
        leaves = tree.cells.inside < 0
        sizes = (tree.cells.n_same + tree.cells.n_different)[leaves]
        assert leaves.sum() <= model.max_leaf_nodes
        assert sizes.min() >= model.min_samples_leaf
        assert tree.cells.depth.max() <= (model.max_depth or 52)


def test_leaf_values_are_bounded_where_nothing_else_bounds_them(rng):
    """Two clusters that are told apart without error: unbounded Newton steps would diverge."""
    X, y = np.repeat([[0.0], [5.0]], 30, axis=0) + rng.normal(0, 0.1, (60, 1)), np.repeat([0, 1], 30)
    model = fixed(n_estimators=60, learning_rate=1.0, l2=0.0, min_samples_leaf=1).fit(X, y)
    assert max(np.abs(values).max() for values in model.values_) <= growing.MAX_STEP
    assert np.isfinite(model.pairwise_score(X)).all()
    assert model.auc_ == 1.0


@pytest.mark.parametrize(("given", "expected"), [({}, growing.L2_OF_NEW_PAIRS), ({"refresh": None}, growing.L2)])
def test_penalty_is_larger_where_pairs_are_drawn_anew(people, given, expected):
    scores = [fixed(n_estimators=5, l2=l2, **given).fit(*people).pairwise_score(people[0]) for l2 in ("auto", expected)]
    np.testing.assert_array_equal(*scores)
    assert not np.array_equal(scores[0], fixed(n_estimators=5, l2=0.3, **given).fit(*people).pairwise_score(people[0]))


def test_given_pairs_have_a_small_penalty(people):
    X, y = people
    index = PairSampler(y).sample(500, np.random.default_rng(0))
    how = {"pairs": np.column_stack([index.first, index.second])}
    scores = [fixed(n_estimators=5, l2=l2).fit(X, index.same, **how).pairwise_score(X) for l2 in ("auto", growing.L2)]
    np.testing.assert_array_equal(*scores)


def test_growth_goes_on_where_all_pairs_are_sure(rng):
    """At the top of the ranking, where the loss is almost zero, hardly a pair would be told apart otherwise."""
    X, y = np.repeat([[0.0], [5.0]], 30, axis=0) + rng.normal(0, 0.1, (60, 1)), np.repeat([0, 1], 30)
    model = fixed(n_estimators=40, learning_rate=1.0, l2=0.0).fit(X, y)
    scores, same = model.pairwise_score(X), y[:, np.newaxis] == y
    assert np.median(np.where(same, scores, -scores)) > 30.0
    assert all((tree.cells.inside >= 0).any() for tree in model.trees_)


@pytest.mark.parametrize("kind", ["abs_diff", "cosine", "oblique"])
def test_scores_are_monotone_where_asked(rng, kind):
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)  # labels that mean nothing, so that any direction may occur
    direction = 1 if kind == "cosine" else -1
    model = fixed(coordinates=["sum", kind], monotonic_cst={kind: direction}, n_estimators=20).fit(X, y)
    pair_map = model.trees_[0].pair_map
    numbers = pair_map.monotone_numbers(kind)
    used = 0
    for tree, values in zip(model.trees_, model.values_, strict=True):
        for cell in np.flatnonzero(tree.cells.inside >= 0):
            region = tree.region(int(cell))
            if region.coordinate[0] not in numbers:
                continue
            used += 1
            le, gt = tree.cells.inside[cell], tree.cells.outside[cell]
            le, gt = (le, gt) if region.if_le[0] == -1 else (gt, le)
            assert direction * (leaf_values(tree, values, gt).min() - leaf_values(tree, values, le).max()) >= 0
    assert used


def leaf_values(tree, values, cell):
    """Values of all leaves below a cell."""
    if tree.cells.inside[cell] < 0:
        return values[[cell]]
    return np.concatenate([leaf_values(tree, values, child) for child in (tree.cells.inside[cell], tree.cells.outside[cell])])


def test_directions_one_by_one_are_those_by_kind(blobs):
    by_kind = fixed(monotonic_cst={"abs_diff": -1}).fit(*blobs)
    one_by_one = fixed(monotonic_cst=[-1, -1, -1, -1, 0, 0, 0, 0]).fit(*blobs)
    np.testing.assert_array_equal(by_kind.pairwise_score(blobs[0]), one_by_one.pairwise_score(blobs[0]))


# Fisher directions


FISHER = {"coordinates": ["oblique"], "directions": "fisher"}


def test_fisher_directions_are_those_of_the_samples_that_are_not_held_out(blobs):
    X, y = blobs
    known = np.arange(len(y)) % 3 > 0
    seen = PairSampler(y).restrict(known)
    found = small(**FISHER)._find_directions(X, seen, np.random.default_rng(0))
    expected = fisher_directions(X[known], np.unique(y[known], return_inverse=True)[1], MAX_FISHER)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(expected, axis=0), rtol=1e-9, atol=1e-12)


def test_many_classes_and_samples_are_subsampled(blobs, monkeypatch):
    monkeypatch.setattr(tree_model, "MAX_FISHER_CLASSES", 2)
    monkeypatch.setattr(tree_model, "MAX_FISHER_SAMPLES", 15)
    model = fixed(**FISHER).fit(*blobs)
    assert len(model.trees_[0].pair_map.directions) == 1
    np.testing.assert_array_equal(model.pairwise_score(blobs[0]), fixed(**FISHER).fit(*blobs).pairwise_score(blobs[0]))


def test_fisher_directions_need_classes_that_differ(given_pairs):
    with pytest.raises(ValueError, match=r"directions='fisher' tells classes apart, but pairs were given; give labelled"):
        fixed(**FISHER).fit(*given_pairs)
    with pytest.raises(ValueError, match=r"directions='fisher': all classes have the same mean; use"):
        fixed(**FISHER).fit(np.tile([[0.0, 1.0], [1.0, 0.0]], (40, 1)), np.repeat(np.arange(4), 20))


# Pairs


def test_new_pairs_are_drawn(blobs, monkeypatch):
    drawn = []
    original = growing.Booster._draw
    monkeypatch.setattr(
        growing.Booster, "_draw", lambda self, block, before: drawn.append(block) or original(self, block, before)
    )
    fixed(n_estimators=9).fit(*blobs)
    assert drawn == [0, 1, 2]
    drawn.clear()
    fixed(n_estimators=9, n_pairs=None).fit(*blobs)  # there are no others
    fixed(n_estimators=9, refresh=None).fit(*blobs)
    assert drawn == [0, 0]


def test_scores_of_new_pairs_are_those_of_the_model(blobs):
    """New pairs start with the scores of the trees so far: what the training loop adds up is what the model scores."""
    X, y = blobs
    model = fixed().fit(X, y)
    source = PairSampler(y)
    params = model._boosting_params(X, source, None)
    with growing.Booster(params, X, source, model._entropy) as booster:
        list(booster.rounds(12))
        pairs = source.sample(300, np.random.default_rng(3))
        coded = booster.encode(pairs)
    scores = model.pair_score(np.column_stack([pairs.first, pairs.second]), X)
    np.testing.assert_allclose(coded.scores, scores, rtol=1e-12, atol=1e-12)


def test_hard_pairs_are_weighted_to_an_honest_estimate(people):
    X, y = people
    source = PairSampler(y)
    model = fixed(n_pairs=1000, focus_fpr=0.1, n_estimators=8).fit(X, y)
    params = model._boosting_params(X, source, None)
    with growing.Booster(params, X, source, model._entropy) as booster:
        list(booster.rounds(8))
        drawn = params.sample(source, np.random.default_rng(1))
        pairs, weights = booster._focus(drawn, 0.1, np.random.default_rng(2))
        scores = booster.encode(pairs).scores
        every = source.all_pairs()
        all_scores = booster.encode(every).scores
    different = ~pairs.same
    assert weights[pairs.same].tolist() == [1.0] * drawn.n_same
    assert weights[different].sum() == pytest.approx(different.sum())
    lowest = np.quantile(all_scores[~every.same], 0.9)
    assert np.mean(scores[different] >= lowest) > 0.3  # a tenth of all different pairs, far more of these
    # The weighted mean of any function of the score estimates that over all different pairs.
    estimate = np.average(np.logaddexp(0, scores[different]), weights=weights[different])
    assert estimate == pytest.approx(np.logaddexp(0, all_scores[~every.same]).mean(), rel=0.1)


# Early stopping


def test_rounds_stop_when_they_no_longer_help(people, monkeypatch):
    model = small(n_estimators=400, learning_rate=0.5, n_iter_no_change=20).fit(*people)
    curve = model.validation_curve_
    assert model.open_set_
    assert len(model.trees_) == model.best_iteration_ < curve["iteration"][-1] < 400
    assert curve["iteration"][-1] - model.best_iteration_ >= 20
    assert curve["tpr"].max() <= curve["tpr"][curve["iteration"] == model.best_iteration_][0] + 0.02
    assert model.threshold_ == youden_threshold(model.validation_roc_)
    assert model.validation_roc_.auc() == pytest.approx(curve["auc"][curve["iteration"] == model.best_iteration_][0])


def alone(same):
    """Return units that no two pairs share."""
    return np.arange(len(same)), np.arange(len(same), 2 * len(same))


def test_rounds_that_break_the_top_of_the_ranking_are_not_chosen(rng):
    """Better by AUC, loss and the mean TPR at low rates, but one in two hundred different pairs is above all same ones."""
    same = rng.random(40_000) < 0.25
    sound = rng.normal(np.where(same, 1.0, -1.0))
    broken = rng.normal(np.where(same, 2.0, -2.0), 1.4)
    broken[rng.choice(np.flatnonzero(~same), 150, replace=False)] = broken.max() + 0.1
    curve = ValidationCurve(10, same, alone(same))
    for iteration, scores in ((5, sound), (10, broken), (15, broken), (20, broken)):
        assert not curve.stopped  # the average rose in the last ten rounds
        curve.add(iteration, scores)
    assert curve.best.iteration == 5
    assert curve.stopped
    found = curve.columns()
    assert found["auc"][1] > found["auc"][0]
    assert found["log_loss"][1] < found["log_loss"][0]
    assert found["tpr"][1] > found["tpr"][0]


def test_the_auc_decides_among_rounds_with_nearly_the_same_tpr(rng):
    """The middle of the ranking gets better while its top stays: rounds that are as good at low rates are not the last word."""
    same = rng.random(40_000) < 0.25
    scores = rng.normal(np.where(same, 1.5, -1.5))
    hard = same & (scores < -1.0)
    curve = ValidationCurve(10, same, alone(same))
    for iteration, raised in ((5, 0.0), (10, 0.4), (15, 0.8)):
        curve.add(iteration, scores + raised * hard - 1e-3 * iteration * (same & (scores > 2.0)))
    found = curve.columns()
    assert found["tpr"][0] > found["tpr"][2] > 0.98 * found["tpr"][0]
    assert curve.best.iteration == 15
    worse = np.where(same & (scores > 1.0), scores - 1.0, scores) + hard
    curve.add(20, worse)  # a higher AUC, and a TPR that is too low
    assert curve.columns()["tpr"][3] < 0.98 * found["tpr"][0]
    assert curve.best.iteration == 15


@pytest.mark.parametrize(
    "results",
    [
        [(330, 0.8626, 0.998261), (1_040, 0.8733, 0.998243)],  # hardly a pair is ranked wrongly: the TPR decides
        [(120, 0.4500, 0.9420), (185, 0.4460, 0.9460)],  # the TPR is the same up to chance: the AUC decides
        [(5, 0.9990, 0.99999), (10, 1.0, 1.0)],  # an error of zero has no logarithm
    ],
)
def test_relative_errors_decide_among_rounds_that_are_as_good(results):
    good = [early_stopping._Rounds(*result, roc=None) for result in results]
    assert early_stopping._as_good(good)[-1] == good[1]
    curve = ValidationCurve(10, np.array([True, False]), (np.arange(2), np.arange(2)), _good=good)
    assert curve.best.iteration == results[1][0]


@pytest.mark.parametrize("n", [40_000, 400])
def test_ties_do_not_decide_the_number_of_rounds(rng, n):
    """The top cell of a few leaves may lie just above a rate: that is not a rate of zero."""
    same = rng.random(n) < 0.25
    scores = rng.normal(np.where(same, 1.5, -1.5))
    curve = ValidationCurve(10, same, alone(same))
    for cells in (scores, np.minimum(np.round(scores, 1), np.quantile(scores[~same], 0.998))):
        curve.add(5, cells)
    exact, tied = curve.columns()["tpr"]
    assert 0.1 < exact < 0.97
    assert tied == pytest.approx(exact, rel=0.15)


@pytest.mark.slow
def test_standard_errors_of_the_tpr_are_those_of_repeated_draws(rng):
    found, stated = [], []
    for _ in range(200):
        same = np.arange(4000) < 1000
        scores = rng.normal(np.where(same, 1.0, -1.0))
        roc = roc_curve(scores, same)
        found.append(roc.at(np.array([0.01, 0.1])))
        stated.append(tpr_errors(roc, np.array([0.01, 0.1]), scores, same, alone(same)))
    np.testing.assert_allclose(np.mean(stated, axis=0), np.std(found, axis=0), rtol=0.2)


@pytest.mark.slow
def test_standard_errors_know_that_pairs_share_samples(rng):
    """Some samples are like many others: errors as of independent pairs would be too small."""
    first, second = np.triu_indices(60, 1)
    same = first // 6 == second // 6
    rates, units, pairs = np.array([0.01, 0.1]), (first, second), alone(same)
    found, stated, naive = [], [], []
    for _ in range(200):
        likeness = rng.normal(size=60)
        scores = rng.normal(np.where(same, 1.5, -1.5)) + likeness[first] + likeness[second]
        roc = roc_curve(scores, same)
        found.append(roc.at(rates))
        stated.append(tpr_errors(roc, rates, scores, same, units))
        naive.append(tpr_errors(roc, rates, scores, same, pairs))
    np.testing.assert_allclose(np.mean(stated, axis=0), np.std(found, axis=0), rtol=0.3)
    assert (np.mean(naive, axis=0) < 0.85 * np.std(found, axis=0)).all()


def test_a_lucky_sample_at_the_top_does_not_end_the_search(rng):
    """One held-out sample has most of the highest different pairs; that they move up later is no sign that the top breaks."""
    first, second = np.triu_indices(300, 1)
    same = first // 6 == second // 6
    noise = rng.normal(size=len(same))
    curve = ValidationCurve(10, same, (first, second))
    for iteration in range(5, 60, 5):
        scores = np.where(same, 1.0 + 0.03 * iteration, -1.0) + noise
        scores[(first == 0) & ~same] += -1.0 if iteration == 5 else 1.0
        curve.add(iteration, scores)
        assert not curve.stopped
    assert curve.best.iteration == 55


def test_held_out_identities_are_not_seen(people):
    """Without a refit, the scores of the held-out pairs are those of the validation curve, on identities of their own."""
    X, y = people
    model = small(refit=False).fit(X, y)
    held_out = model._hold_out(len(X), PairSampler(y), None, None)
    assert not set(y[held_out.known]) & set(y[~held_out.known])
    assert len(set(y[~held_out.known])) == 4
    closed = small(open_set=False)
    closed._entropy = model._entropy
    known = closed._hold_out(len(X), PairSampler(y), None, None).known
    assert set(y[known]) == set(y[~known]) == set(y)
    pairs = held_out.left_out.sample(None, np.random.default_rng(0))
    scores = model.pair_score(np.column_stack([pairs.first, pairs.second]), X)
    assert roc_curve(scores, pairs.same).auc() == pytest.approx(model.validation_roc_.auc())


def test_groups_are_held_out_together(people, given_pairs):
    X, y = people
    groups = np.arange(len(y)) % 7
    model = small().fit(X, y, groups=groups)
    known = model._hold_out(len(X), PairSampler(y), groups, None).known
    assert not set(groups[known]) & set(groups[~known])
    pairs, same = given_pairs
    of_samples = np.random.default_rng(0).integers(0, 2, (len(same), 2))
    assert small().fit(pairs, same, groups=of_samples).validation_curve_ is not None


@pytest.mark.parametrize("open_set", ["auto", False])
def test_given_pairs_are_held_out_by_identity_or_sample(people, open_set):
    """All pairs are linked, so that identities are those that same pairs link."""
    X, y = people
    every = PairSampler(y).all_pairs()
    model = small(open_set=open_set)
    model._entropy = (1, 2, 3, 4)
    found = model._hold_out(len(X), every, None, np.arange(len(every), dtype=float))
    seen, out = (np.concatenate([part.first, part.second]) for part in (found.seen, found.left_out))
    assert not set(seen) & set(out)
    assert bool(set(y[seen]) & set(y[out])) == (open_set is False)
    assert set(np.flatnonzero(found.known)) == set(seen)
    # Both kinds are held out in about the share of two samples of the same part.
    assert 0.02 < found.left_out.n_same / every.n_same < 0.3
    assert len(found.weights) == len(found.seen)
    np.testing.assert_array_equal(every.first[found.weights.astype(int)], found.seen.first)


def test_linked_given_pairs_are_held_out_together():
    """Sets of three samples that pairs link: no pair is lost."""
    first, second = np.array([0, 1, 2]), np.array([1, 2, 0])
    sets = np.repeat(3 * np.arange(300), 3)
    pairs = IndexPairs(np.tile(first, 300) + sets, np.tile(second, 300) + sets, np.tile([True, False, False], 300))
    model = small()
    model._entropy = (1, 2, 3, 4)
    found = model._hold_out(900, pairs, None, None)
    assert len(found.seen) + len(found.left_out) == 900
    assert not set(found.seen.first // 3) & set(found.left_out.first // 3)
    assert 150 <= len(found.left_out) <= 210


def test_pairs_that_share_no_sample_are_held_out_one_by_one(given_pairs):
    same = given_pairs[1]
    source = IndexPairs(np.arange(0, 2 * len(same), 2), np.arange(1, 2 * len(same), 2), same)
    model = small()
    model._entropy = (1, 2, 3, 4)
    found = model._hold_out(2 * len(same), source, None, None)
    assert len(found.seen) + len(found.left_out) == len(same)
    assert found.left_out.n_same == pytest.approx(same.sum() / 5, abs=1)


def test_held_out_pairs_of_shared_samples_are_not_recognised(rng):
    """Random labels of pairs that occur twice: with random rows held out, the AUC would be above 0.9."""
    rows = np.tile(np.column_stack(np.triu_indices(40, 1)), (2, 1))
    same = np.tile(rng.random(len(rows) // 2) < 0.5, 2)
    model = small(n_estimators=60, max_leaf_nodes=30, learning_rate=0.3)
    model.fit(rng.normal(size=(40, 3)), same, pairs=rows)
    assert abs(model.validation_roc_.auc() - 0.5) < 0.2


def test_refit_has_the_rounds_and_all_identities(people):
    found, kept = small().fit(*people), small(refit=False).fit(*people)
    assert len(found.trees_) == len(kept.trees_)
    assert found.threshold_ == kept.threshold_
    plain = fixed(n_estimators=found.best_iteration_).fit(*people)
    np.testing.assert_array_equal(found.pairwise_score(people[0]), plain.pairwise_score(people[0]))


def test_a_supervised_representation_has_not_seen_the_held_out_samples(people, monkeypatch):
    seen = []
    original = ForestPosterior.fit_transform
    monkeypatch.setattr(ForestPosterior, "fit_transform", lambda self, X, y=None: seen.append(len(X)) or original(self, X, y))
    small(n_estimators=2, representation=ForestPosterior(n_estimators=30, random_state=0)).fit(*people)
    assert seen == [192, 240]


def test_too_little_to_hold_out():
    X, y = np.arange(16.0)[:, None], np.repeat([0, 1], 8)
    model = small().fit(X, y)
    assert model.validation_curve_ is None
    assert model.best_iteration_ == 12
    with pytest.raises(ValueError, match=r"early_stopping=True: fewer than 30 .* early_stopping=False"):
        small(early_stopping=True).fit(X, y)


def test_file_keeps_the_validation(people, tmp_path):
    model = small(monotonic_cst={"abs_diff": -1}).fit(*people)
    model.save(tmp_path / "m.simtree")
    loaded = load(tmp_path / "m.simtree")
    assert loaded.monotonic_cst == {"abs_diff": -1}
    assert loaded.best_iteration_ == model.best_iteration_
    assert loaded.validation_roc_ == model.validation_roc_
    for name, column in model.validation_curve_.items():
        np.testing.assert_array_equal(loaded.validation_curve_[name], column)


# Trees without splits


@pytest.mark.parametrize("case", ["few samples", "constant features", "large leaves", "missing values"])
def test_trees_without_splits_are_a_constant_model(rng, tmp_path, case):
    y = np.repeat(np.arange(4), 2 if case == "few samples" else 10)
    X = np.ones((len(y), 3)) if case == "constant features" else rng.normal(size=(len(y), 3))
    if case == "missing values":
        X[::3, 0] = np.nan
    model = SimilarityBoosting(
        n_estimators=5, min_samples_leaf=20 if case in ("few samples", "constant features") else 10**6, random_state=0
    ).fit(X, y)
    scores = model.pairwise_score(X)
    assert np.ptp(scores) == 0.0
    assert model.auc_ == 0.5
    assert model.explain_pair(X[0], X[-1]).score == scores[0, 0]
    np.testing.assert_array_equal(model.top_k(X[:2], X, k=3)[0], scores[:2, :3])
    assert not model.feature_importances_.any()
    model.save(tmp_path / "m.simtree")
    np.testing.assert_array_equal(load(tmp_path / "m.simtree").pairwise_score(X), scores)


# Warm start


def test_trees_can_be_added(blobs):
    X, y = blobs
    model = small(n_estimators=5, warm_start=True).fit(X, y)
    first = model.trees_[0]
    model.set_params(n_estimators=11).fit(X, y)
    assert model.trees_[0] is first
    np.testing.assert_array_equal(model.pairwise_score(X), fixed(n_estimators=11).fit(X, y).pairwise_score(X))


@pytest.mark.parametrize(
    ("columns", "change", "message"),
    [
        (3, {}, "X has 3 features, but the existing trees were grown on 4; give the same"),
        (5, {}, "X has 5 features, but the existing trees were grown on 4; give the same"),
        (
            4,
            {"coordinates": ["sum", "abs_diff"]},
            r"coordinates=\['sum', 'abs_diff'\] differ .* set coordinates=\['abs_diff', ",
        ),
        (4, {"coordinates": ["sum", "oblique"]}, r"coordinates=\['sum', 'oblique'\] differ"),
    ],
)
def test_trees_of_other_coordinates_cannot_be_added(blobs, columns, change, message):
    """All trees are walked on the coordinates of the first."""
    X, y = blobs
    model = small(n_estimators=5, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.set_params(n_estimators=8, **change).fit(np.hstack([X, X])[:, :columns], y)
    assert len(model.trees_) == 5
    assert len(model.set_params(coordinates=["abs_diff", "sum"]).fit(X, y).trees_) == 8


def test_trees_of_other_categories_cannot_be_added(blobs, tmp_path):
    X, y = blobs
    table = pd.DataFrame({"size": X[:, 0], "colour": np.array(["red", "blue", "grey"])[y % 3]})  # each of two identities
    small(n_estimators=5, warm_start=True).fit(table, y).save(tmp_path / "m.simtree")
    model = load(tmp_path / "m.simtree").set_params(n_estimators=8)
    renamed = table.assign(colour=table["colour"].replace("grey", "greyish"))
    for other, labels in ((renamed, y), (table.assign(colour=np.where(y % 2, "red", "blue")), y), (table[::2], y[::2])):
        with pytest.raises(ValueError, match=r"X has categories of which other values .*, or set warm_start=False"):
            model.fit(other, labels)
    assert len(model.fit(table, y).trees_) == 8


# Bad input


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_estimators": 0}, ValueError, "n_estimators=0 is out of range"),
        ({"learning_rate": 0.0}, ValueError, r"learning_rate=0\.0 is out of range"),
        ({"max_leaf_nodes": 1}, ValueError, "max_leaf_nodes=1 is out of range"),
        ({"l2": -1.0}, ValueError, r"l2=-1\.0 is out of range"),
        ({"l2": "none"}, ValueError, r"l2='none' is unknown; give 'auto' or a number from 0 to 1e\+09\."),
        ({"subsample": 1.5}, ValueError, r"subsample=1\.5 is out of range"),
        ({"max_bins": None}, TypeError, "max_bins=None is not an integer"),
        ({"refresh": 0}, ValueError, "refresh=0 is out of range"),
        ({"focus_fpr": 0.1, "refresh": None}, ValueError, r"focus_fpr=0\.1 requires new pairs"),
        ({"early_stopping": "yes"}, ValueError, "early_stopping='yes' is unknown"),
        ({"early_stopping": True, "warm_start": True}, ValueError, "early_stopping=True cannot be used with warm_start"),
        ({"open_set": None}, ValueError, "open_set=None is unknown"),
        ({"monotonic_cst": "abs_diff"}, TypeError, "monotonic_cst='abs_diff' is neither a dict nor a sequence"),
        ({"monotonic_cst": {"abs_diff": 2}}, ValueError, "other than -1, 0 and 1"),
        ({"monotonic_cst": {"angle": 1}}, ValueError, "unknown kind"),
        ({"monotonic_cst": {"cosine": 1}}, ValueError, "not among the coordinates"),
        ({"monotonic_cst": [1, 0]}, ValueError, "2 entries for 8 coordinates"),
    ],
)
def test_bad_parameters_are_named(blobs, parameters, error, message):
    model = small(**parameters)
    with pytest.raises(error, match=message):
        model.fit(*blobs)
    assert not hasattr(model, "trees_")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda same: np.ones(3), "shape"),
        (lambda same: -np.ones(len(same)), "negative"),
        (lambda same: np.full(len(same), np.nan), "non-finite"),
        (lambda same: np.where(same, 1.0, 0.0), "all different pairs"),
        (lambda same: ["a"] * len(same), "is not a list of numbers; give one for each of the 600 pairs"),
        (lambda same: [[1.0], [1.0, 2.0]], "is not a list of numbers"),
        (lambda same: [None, {}], "is not a list of numbers"),
        (lambda same: np.ma.masked_equal(np.arange(len(same)), 3), "mask"),
    ],
)
def test_bad_weights_are_named(given_pairs, weights, message):
    pairs, same = given_pairs
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        small().fit(pairs, same, sample_weight=weights(same))


def test_hard_pairs_are_drawn_of_labelled_samples_only(given_pairs):
    with pytest.raises(ValueError, match=r"focus_fpr=0\.1 draws new pairs, but pairs are given; set focus_fpr=None"):
        small(focus_fpr=0.1).fit(*given_pairs)


def test_weights_are_for_given_pairs(blobs):
    with pytest.raises(ValueError, match="sample_weight is for given pairs"):
        small().fit(*blobs, sample_weight=np.ones(len(blobs[1])))


def test_trees_cannot_be_taken_away_or_given_a_representation(blobs):
    model = small(n_estimators=5, warm_start=True).fit(*blobs)
    with pytest.raises(ValueError, match="n_estimators=3 is less than the 5 existing trees"):
        model.set_params(n_estimators=3).fit(*blobs)
