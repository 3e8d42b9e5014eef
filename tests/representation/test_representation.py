"""Tests of each representation beyond the common contract."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.tree import ExtraTreeClassifier

from simtree import (
    ForestPosterior,
    GaussianSimilarity,
    KernelDiscriminant,
    LandmarkFeatures,
    MarginalQuantiles,
    NuisanceCentering,
    WithinClassWhitening,
)
from simtree.metrics import roc_curve
from simtree.pairs._sampling import PairSampler
from simtree.representation import _base as base
from simtree.representation import _discriminant as discriminant
from simtree.representation import _kernel_choice as kernel_choice
from simtree.representation import _landmarks as landmarks
from simtree.representation import _posterior as posterior
from simtree.representation._class_trees import join_trees
from simtree.representation._clusters import MIN_MEMBERS, cluster_numbers
from simtree.representation._nuisance import Covariance
from simtree.representation._whitening import inverse_root

finite = st.floats(-1e300, 1e300)


# MarginalQuantiles -------------------------------------------------------------------------------------


def mid_ranks(values):
    """Share of values below each, and half of those equal to it."""
    values = np.asarray(values)
    return np.array([((values < v).sum() + 0.5 * (values == v).sum()) / len(values) for v in values])


def quantiles(training, values, **parameters):
    return MarginalQuantiles(**parameters).fit(np.reshape(training, (-1, 1))).transform(np.reshape(values, (-1, 1))).ravel()


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None, database=None)
def test_ties_get_their_mid_rank(values):
    np.testing.assert_allclose(quantiles(values, values), mid_ranks(values), rtol=1e-12)


@pytest.mark.parametrize("output", ["uniform", "normal"])
def test_missing_values_stay_missing_and_others_have_the_quantiles_of_what_there_is(rng, output):
    X = rng.normal(size=(300, 3))
    X[rng.random(X.shape) < 0.4] = np.nan
    X[:, 1] = np.nan
    margins = MarginalQuantiles(n_quantiles=20, output=output).fit(X)
    found = margins.transform(X)
    for j in (0, 2):
        there = ~np.isnan(X[:, j])
        np.testing.assert_array_equal(found[there, j], quantiles(X[there, j], X[there, j], n_quantiles=20, output=output))
        assert np.isnan(found[~there, j]).all()
    # A feature without any value in fit has no curve, whatever comes later.
    assert np.isnan(margins.transform(np.ones((2, 3)))[:, 1]).all()


def test_common_values_get_their_mid_rank_among_many(rng):
    values = np.concatenate([rng.normal(size=5000), np.zeros(300), np.ones(90), [9.0]])
    found = quantiles(values, values, n_quantiles=50)
    exact = np.isin(values, [0.0, 9.0, values.min()])
    np.testing.assert_allclose(found[exact], mid_ranks(values)[exact], rtol=1e-12)
    # Next to a common value the curve is smooth where the rank jumps by half of the rows that share it.
    assert np.abs(found - mid_ranks(values)).max() < 1 / 50 + 150 / len(values)


@pytest.mark.slow
@given(
    st.lists(finite, min_size=1, max_size=40), st.lists(finite, min_size=1, max_size=40), st.sampled_from(["uniform", "normal"])
)
@settings(max_examples=150, deadline=None, database=None)
def test_increasing_and_bounded_everywhere(training, values, output):
    ordered = np.sort(np.concatenate([training, values]))
    found = quantiles(training, ordered, n_quantiles=5, output=output)
    assert (np.diff(found) >= 0).all()
    if output == "uniform":
        assert found.min() > 0
        assert found.max() < 1
    assert np.isfinite(found).all()


def test_increasing_beyond_the_training_range():
    found = quantiles([0.0, 1.0, 2.0, 3.0], [-1e300, -5.0, -1.0, 0.0, 3.0, 4.0, 8.0, 1e300])
    assert (np.diff(found)[[1, 2, 3, 4, 5]] > 0).all()
    np.testing.assert_allclose(found[[0, 3, 4, 7]], [1 / 16, 1 / 8, 7 / 8, 15 / 16])


def test_normal_scores_of_any_distribution_are_normal(rng):
    scores = quantiles(np.exp(rng.normal(size=4000)), np.exp(rng.normal(size=4000)), output="normal")
    assert abs(scores.mean()) < 0.05
    assert scores.std() == pytest.approx(1, abs=0.03)


def test_knots_are_few(rng):
    values = np.concatenate([rng.normal(size=20_000), np.repeat(np.arange(200.0), 150)])
    margins = MarginalQuantiles(n_quantiles=100).fit(values[:, None])
    assert 100 <= len(margins.knots_[0]) <= 300
    assert len(margins.knots_[0]) == len(margins.levels_[0])
    assert (np.diff(margins.knots_[0]) > 0).all()
    assert (np.diff(margins.levels_[0]) > 0).all()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_quantiles": 1}, ValueError, "n_quantiles=1 is out of range; give an int of at least 2"),
        ({"n_quantiles": 9.0}, TypeError, "n_quantiles=9.0 is not an integer"),
        ({"output": "gauss"}, ValueError, "output='gauss' is unknown; choose one of 'uniform', 'normal'"),
    ],
)
def test_bad_quantiles(parameters, error, message):
    with pytest.raises(error, match=message):
        MarginalQuantiles(**parameters).fit([[1.0], [2.0]])


# ForestPosterior -------------------------------------------------------------------------------------


def test_flat_trees_agree_with_scikit_learn(blobs):
    """Even if rows lie on thresholds, leaves are mixed, or a tree is a single leaf."""
    X, y = np.float32(blobs[0]), blobs[1]
    trees = [
        ExtraTreeClassifier(min_samples_leaf=k, max_depth=d, random_state=k).fit(X, y) for k, d in ((1, None), (6, 4), (80, 1))
    ]
    table = join_trees([posterior._flat(tree.tree_) for tree in trees])
    on_thresholds = np.repeat(table.threshold, 4).reshape(-1, 4)
    for points in (X, on_thresholds, np.nextafter(on_thresholds, np.float32(np.inf))):
        total = np.zeros((len(points), 6))
        posterior.add_class_shares(points, np.arange(len(points)), table, total)
        np.testing.assert_allclose(total, sum(tree.predict_proba(points) for tree in trees), rtol=1e-6)


@pytest.mark.slow
def test_posterior_is_as_good_as_scikit_learns(blobs):
    X, y = blobs
    ours = ForestPosterior(n_estimators=200, random_state=0)
    theirs = ExtraTreesClassifier(200, bootstrap=True, oob_score=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.fit_transform(X, y).sum(axis=1), 1, rtol=1e-6)
    column = [np.flatnonzero(y == k)[0] for k in range(6)]
    order = np.argsort(np.argsort(column))  # columns come in the order of first rows
    difference = ours.fit_transform(X, y)[:, order] - theirs.oob_decision_function_
    assert np.abs(difference).mean() < 0.03
    assert np.abs(ours.transform(X)[:, order] - theirs.predict_proba(X)).mean() < 0.02


@pytest.mark.parametrize("bootstrap", [True, False])
def test_out_of_bag_is_the_mean_of_the_trees_that_did_not_see_the_row(blobs, bootstrap, monkeypatch):
    X, y = blobs
    bags, grow = {}, ForestPosterior._grow
    monkeypatch.setattr(
        ForestPosterior,
        "_grow",
        lambda self, X, y, bag, seed: bags.setdefault(seed, bag) is None or grow(self, X, y, bag, seed),
    )
    model = ForestPosterior(n_estimators=25, bootstrap=bootstrap, random_state=3)
    found = model.fit_transform(X, y)
    said = np.zeros((25, 110, 6))
    for t in range(25):  # trees are grown in their order
        one = model.trees_._replace(root=model.trees_.root[t : t + 1])
        posterior.add_class_shares(np.float32(X), np.arange(110), one, said[t])
    np.testing.assert_allclose(model.transform(X), said.mean(axis=0))
    unseen = np.array(list(bags.values())) == 0
    for row in range(110):
        np.testing.assert_allclose(found[row], said[unseen[:, row], row].mean(axis=0))
    if not bootstrap:  # ten folds in turn, each row in one of them
        assert (unseen[:10].sum(axis=0) == 1).all()
        assert (unseen[10:20] == unseen[:10]).all()
        assert max(bag.max() for bag in bags.values()) == 1


def test_too_few_trees(blobs):
    with pytest.raises(ValueError, match=r"n_estimators=1 is too few: \d+ rows in the bag of every tree; use more trees"):
        ForestPosterior(n_estimators=1, random_state=0).fit_transform(*blobs)
    assert ForestPosterior(n_estimators=1, random_state=0).fit(*blobs).transform(blobs[0]).shape == (110, 6)


def test_many_classes_are_clustered(rng):
    y = np.repeat(np.arange(40), 3)
    X = rng.normal(size=(40, 5))[y] + 0.1 * rng.normal(size=(120, 5))
    model = ForestPosterior(n_estimators=40, max_classes=8, random_state=0)
    found = model.fit_transform(X, y)
    assert found.shape == (120, 8)
    assert model.n_classes_ == 40
    assert np.bincount(found.argmax(axis=1), minlength=8).min() > 0


def test_smaller_models_with_larger_leaves(blobs):
    sizes = [
        len(ForestPosterior(n_estimators=20, min_samples_leaf=k, random_state=0).fit(*blobs).trees_.feature) for k in (1, 5)
    ]
    assert sizes[1] < 0.5 * sizes[0]


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_estimators": 0}, ValueError, "n_estimators=0 is out of range"),
        ({"max_features": "log2"}, TypeError, "max_features='log2' is not a number"),
        ({"max_depth": 0}, ValueError, "max_depth=0"),
        ({"min_samples_leaf": 0}, ValueError, "min_samples_leaf=0"),
        ({"max_classes": 1}, ValueError, "max_classes=1"),
    ],
)
def test_bad_posterior(blobs, parameters, error, message):
    with pytest.raises(error, match=message):
        ForestPosterior(**parameters).fit(*blobs)


# KernelDiscriminant ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["kmeans", "fourier"])
def test_weights_are_those_of_ridge_regression(blobs, kind, monkeypatch):
    """Also those of the folds, which come from sums that are subtracted."""
    X, y = blobs
    folds = np.random.default_rng(5).integers(0, 3, 110)
    monkeypatch.setattr(discriminant, "folds_of_rows", lambda *arguments: folds)
    model = KernelDiscriminant(n_landmarks=15, landmarks=kind, alpha=0.1, cv=3, random_state=0)
    cross_fitted = model.fit_transform(X, y)
    codes = base.encode_labels(y)
    values = model.features_[0].of(X, None)
    ridge = Ridge(alpha=0.1, fit_intercept=False).fit(values, np.eye(6)[codes])
    np.testing.assert_allclose(model.transform(X), ridge.predict(values), atol=1e-8)
    for fold in range(3):
        rest = Ridge(alpha=0.1, fit_intercept=False).fit(values[folds != fold], np.eye(6)[codes][folds != fold])
        np.testing.assert_allclose(cross_fitted[folds == fold], rest.predict(values[folds == fold]), atol=1e-8)


@pytest.mark.slow
def test_fourier_features_approximate_the_kernel(blobs):
    X, y = blobs
    model = KernelDiscriminant(n_landmarks=3000, landmarks="fourier", gamma=0.3, alpha=1.0, random_state=0).fit(X, y)
    targets = np.eye(6)[base.encode_labels(y)]
    exact = KernelRidge(alpha=1.0, kernel="rbf", gamma=0.3).fit(X, targets).predict(X)
    assert np.abs(model.transform(X) - exact).max() < 0.1


@given(st.integers(0, 2**32 - 1), st.integers(5, 80), st.integers(1, 40))
@settings(max_examples=15, deadline=None, database=None)
def test_a_landmark_is_a_mean_of_several_rows(seed, n, n_landmarks):
    """Dense and isolated rows, so that k-means tends to clusters of size one."""
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.normal(size=(n, 2)) * 10.0 ** rng.integers(0, 4, (n, 1)), axis=0)
    centres = landmarks._centres(rows, n_landmarks, rng).T
    assert 1 <= len(centres) <= n_landmarks
    nearest_row = np.abs(centres[:, None] - rows[None]).max(axis=2).min(axis=1)
    assert nearest_row.min() > 0
    assert len(centres) <= n // landmarks.MIN_MEMBERS


def test_equations_of_rows_and_of_features_have_the_same_solution(blobs):
    X, y = blobs
    model = KernelDiscriminant(n_landmarks=60, landmarks="fourier", random_state=0).fit(X, y)
    parts = np.array_split(np.random.default_rng(0).permutation(len(X)), 3)
    targets = np.eye(6)[base.encode_labels(y)]
    regression = discriminant.Regression(model.features_[0], X, targets, parts, 0.1)
    of_features, of_rows = model._by_features(regression, True), model._by_rows(regression, True)
    np.testing.assert_allclose(of_features[0], of_rows[0], atol=1e-8)
    for expected, found in zip(of_features[1], of_rows[1], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_fewer_rows_than_features_are_left_out_fold_by_fold(blobs):
    X, y = blobs
    model = KernelDiscriminant(n_landmarks=400, landmarks="fourier", alpha=0.1, random_state=0)
    cross_fitted = model.fit_transform(X, y)
    values = model.features_[0].of(X, None)
    targets = np.eye(6)[base.encode_labels(y)]
    everything = Ridge(alpha=0.1, fit_intercept=False).fit(values, targets)
    np.testing.assert_allclose(model.transform(X), everything.predict(values), atol=1e-8)
    assert np.mean((cross_fitted - targets) ** 2) > 2 * np.mean((model.transform(X) - targets) ** 2)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.floats(0.003, 3.0))
@settings(max_examples=25, deadline=None, database=None)
def test_leave_one_out_scores_are_those_of_fits_without_each_row(seed, n, alpha):
    rng = np.random.default_rng(seed)
    X, targets = rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    kernel = rbf_kernel(X, gamma=0.5)
    expected = np.empty_like(targets)
    for row in range(n):
        others = np.arange(n) != row
        fitted = KernelRidge(alpha=alpha, kernel="precomputed").fit(kernel[np.ix_(others, others)], targets[others])
        expected[row] = fitted.predict(kernel[np.ix_([row], others)])[0]
    (found,) = kernel_choice.leave_one_out(kernel, targets, [alpha])
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_loss_is_that_of_the_best_multiple_of_the_scores():
    scores, classes = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]), np.array([0, 1, 1])
    losses = [sklearn_log_loss(classes, softmax(multiple * scores, axis=1)) for multiple in kernel_choice.MULTIPLES]
    assert kernel_choice.log_loss(scores, classes) == pytest.approx(min(losses))


def test_a_noisy_table_gets_a_smoother_kernel_than_a_fine_pattern():
    """Stripes need a narrow kernel and a small penalty; a class that has to do with nothing the opposite."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(450, 2))
    stripes, noise = (np.floor(4 * X[:, 0]) % 2).astype(int), rng.integers(0, 2, 450)
    tried = {"gammas": (0.1, 1.0, 10.0), "alphas": (3.0, 0.03), "rng": rng}
    assert kernel_choice.choose_kernel(X, stripes, np.eye(2), **tried) == (10.0, 0.03)
    assert kernel_choice.choose_kernel(X, noise, np.eye(2), **tried) == (0.1, 3.0)


def test_the_chosen_kernel_is_used(blobs, monkeypatch):
    monkeypatch.setattr(discriminant, "choose_kernel", lambda *given: (0.7, 0.2))
    chosen = KernelDiscriminant(n_landmarks=10, gamma="auto", alpha="auto", random_state=0).fit_transform(*blobs)
    given = KernelDiscriminant(n_landmarks=10, gamma=0.7, alpha=0.2, random_state=0).fit_transform(*blobs)
    np.testing.assert_array_equal(chosen, given)


@pytest.mark.parametrize("parameters", [{"gamma": "auto"}, {"alpha": "auto"}])
def test_what_is_given_is_not_chosen(blobs, monkeypatch, parameters):
    seen = []

    def choose(X, codes, targets, gammas, alphas, rng):
        seen.append((len(gammas), len(alphas)))
        return gammas[0], alphas[0]

    monkeypatch.setattr(discriminant, "choose_kernel", choose)
    KernelDiscriminant(n_landmarks=10, **parameters).fit(*blobs)
    assert seen == [(4, 1) if "gamma" in parameters else (1, 7)]


def test_repeats_are_averaged(blobs):
    X, y = blobs
    model = KernelDiscriminant(n_landmarks=10, n_repeats=3, random_state=0).fit(X, y)
    assert len(model.features_) == len(model.weights_) == 3
    one_by_one = [model._scores(X, f, w) for f, w in zip(model.features_, model.weights_, strict=True)]
    np.testing.assert_allclose(model.transform(X), np.mean(one_by_one, axis=0), rtol=1e-12)
    assert np.abs(one_by_one[0] - one_by_one[1]).max() > 1e-3


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_landmarks": 0}, ValueError, "n_landmarks=0 is out of range"),
        ({"gamma": -1.0}, ValueError, "gamma=-1.0 is out of range"),
        ({"gamma": "narrow"}, ValueError, "gamma='narrow' is unknown; choose one of 'scale', 'wide', 'auto'"),
        ({"alpha": "small"}, ValueError, "alpha='small' is unknown; choose one of 'auto'"),
        ({"gamma": None}, TypeError, "gamma=None is not a number"),
        ({"alpha": 0}, ValueError, "alpha=0 is out of range"),
        ({"n_repeats": 0}, ValueError, "n_repeats=0"),
        ({"landmarks": "rows"}, ValueError, "landmarks='rows' is unknown; choose one of 'kmeans', 'fourier'"),
        ({"max_classes": 1}, ValueError, "max_classes=1"),
        ({"cv": 1}, ValueError, "cv=1 is out of range; give an int of at least 2"),
        ({"cv": 200}, ValueError, "cv=200 exceeds the number of rows, 110; use fewer folds"),
    ],
)
def test_bad_discriminant(blobs, parameters, error, message):
    with pytest.raises(error, match=message):
        KernelDiscriminant(**parameters).fit_transform(*blobs)


def test_too_few_rows_for_a_landmark():
    with pytest.raises(ValueError, match="X has 2 distinct rows, but landmarks='kmeans' requires at least 5"):
        KernelDiscriminant(cv=2).fit([[0.0], [0.0], [1.0], [1.0]], [0, 0, 1, 1])


# LandmarkFeatures ------------------------------------------------------------------------------------


def test_gamma_follows_the_data(rng):
    X = rng.normal(size=(200, 5)) * 3
    gammas = [
        LandmarkFeatures(n_landmarks=5, gamma=gamma, random_state=0).fit(X).features_.gamma for gamma in ("scale", "wide", 0.7)
    ]
    np.testing.assert_allclose(gammas, [1 / (5 * X.var()), 0.1 / (5 * X.var()), 0.7])
    assert LandmarkFeatures(gamma="scale", landmarks="fourier").fit(np.ones((9, 2))).transform(np.ones((1, 2))).shape == (
        1,
        300,
    )


# WithinClassWhitening --------------------------------------------------------------------------------


def scatter_within(Z, y):
    residuals = np.concatenate([Z[y == k] - Z[y == k].mean(axis=0) for k in np.unique(y)])
    return residuals.T @ residuals / (len(Z) - len(np.unique(y)))


def test_within_class_variance_is_equal_in_all_directions(blobs):
    X, y = blobs
    X = X @ np.diag([1.0, 10.0, 0.1, 3.0])
    Z = WithinClassWhitening(shrinkage=1e-9).fit(X, y).transform(X)
    np.testing.assert_allclose(scatter_within(Z, y), np.eye(4), atol=1e-5)
    unit = WithinClassWhitening(shrinkage=1.0).fit(X, y)
    np.testing.assert_allclose(unit.matrix_.T @ unit.matrix_, np.eye(4) / np.trace(scatter_within(X, y)) * 4, atol=1e-9)


def test_first_directions_are_those_of_discriminant_analysis(blobs):
    X, y = blobs
    whitening = WithinClassWhitening(shrinkage=1e-9, n_components=2).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen", n_components=2).fit(X, y).transform(X)
    ours = whitening.transform(X)
    for j in range(2):
        assert abs(np.corrcoef(ours[:, j], theirs[:, j])[0, 1]) == pytest.approx(1, abs=1e-6)


def test_emphasis_weights_directions_by_between_class_variance(blobs):
    X, y = blobs
    plain = WithinClassWhitening().fit(X, y).transform(X)
    factors = (WithinClassWhitening(emphasis=0.5).fit(X, y).transform(X) / plain)[0]
    np.testing.assert_allclose(factors, WithinClassWhitening(emphasis=0.25).fit(X, y).transform(X)[0] ** 2 / plain[0] ** 2)
    assert (np.diff(factors) <= 0).all()
    assert factors[0] < 1


def test_whitening_does_not_overfit_noise(rng):
    """Random labels and many features: within-class variance looks small only for rows that were seen."""
    X, y = rng.normal(size=(120, 60)), np.arange(120) % 3
    whitening = WithinClassWhitening(shrinkage=1e-6, emphasis=0.5, random_state=0)
    cross_fitted, known = whitening.fit_transform(X, y), whitening.transform(X)
    pairs = PairSampler(y).all_pairs()

    def auc(Z):
        return roc_curve(-np.linalg.norm(Z[pairs.first] - Z[pairs.second], axis=1), pairs.same).auc()

    assert auc(known) > 0.7
    assert auc(cross_fitted) == pytest.approx(0.5, abs=0.05)


def test_centring(blobs):
    X, y = blobs
    centred, left = (WithinClassWhitening(center=center).fit(X, y) for center in (True, False))
    np.testing.assert_allclose(centred.transform(X).mean(axis=0), 0, atol=1e-9)
    np.testing.assert_array_equal(left.transform(np.zeros((1, 4))), np.zeros((1, 4)))
    np.testing.assert_array_equal(centred.matrix_, left.matrix_)


def test_classes_of_equal_rows_can_be_whitened():
    X = np.repeat(np.eye(3), 4, axis=0)
    assert np.isfinite(WithinClassWhitening().fit_transform(X, np.repeat([0, 1, 2], 4))).all()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"shrinkage": 0}, ValueError, "shrinkage=0 is out of range; give a number above 0 to 1"),
        ({"shrinkage": 1.1}, ValueError, "shrinkage=1.1"),
        ({"emphasis": -1}, ValueError, "emphasis=-1"),
        ({"n_components": 0}, ValueError, "n_components=0"),
        ({"cv": 1}, ValueError, "cv=1"),
    ],
)
def test_bad_whitening(blobs, parameters, error, message):
    with pytest.raises(error, match=message):
        WithinClassWhitening(**parameters).fit(*blobs)


def test_emphasis_where_classes_do_not_differ():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), [0, 0, 1, 1]
    found = [WithinClassWhitening(emphasis=emphasis, cv=2).fit(X, y).transform(X) for emphasis in (0.0, 0.5)]
    np.testing.assert_array_equal(*found)


# NuisanceCentering -----------------------------------------------------------------------------------


def speakers(rng, n=40, n_samples=20, noise=0.1):
    """Samples of speakers who say one of three words each time."""
    y, words = np.repeat(np.arange(n), n_samples), rng.integers(0, 3, n * n_samples)
    of_word = np.array([[0.0, 9.0, 0.0], [9.0, 0.0, 0.0], [9.0, 9.0, 0.0]])
    return rng.normal(size=(n, 3))[y] + of_word[words] + noise * rng.normal(size=(len(y), 3)), y, words


def auc_of_gaussian(X, y, representation):
    """Return the AUC on the second half of the identities of a Gaussian ratio that was fitted on the first half."""
    half = y < (y.max() + 1) // 2
    return GaussianSimilarity(representation=representation).fit(X[half], y[half]).score(X[~half], y[~half])


def test_what_nobody_labelled_is_removed_from_samples_of_new_identities(rng):
    X, y, words = speakers(rng)
    known = X - np.array([X[words == word].mean(axis=0) for word in range(3)])[words]
    found = auc_of_gaussian(X, y, NuisanceCentering(random_state=0))
    assert auc_of_gaussian(X, y, None) < 0.96
    assert found > 0.98
    assert found == pytest.approx(auc_of_gaussian(known, y, None), abs=0.02)


def test_centring_is_the_mean_of_deviations_by_probability(rng):
    X, y, _ = speakers(rng)
    centring = NuisanceCentering(n_clusters=5, random_state=0).fit(X, y)
    weights, intercepts, deviations = centring.clustering_
    assert len(intercepts) == 5
    expected = softmax((X - X.mean(axis=0)) @ weights + intercepts, axis=1) @ deviations
    np.testing.assert_allclose(centring.transform(X), X - expected, rtol=1e-12)


def test_clusters_are_recognised_as_by_discriminant_analysis_that_is_half_as_sure(rng):
    X, y, _ = speakers(rng, noise=2.0)
    deviations = X - base.class_means(X, y)[y]
    clusters = rng.integers(0, 4, len(X))
    shrinkage = 0.25
    found = NuisanceCentering(shrinkage=shrinkage)._recognised(X, deviations, clusters)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X, clusters)
    expected = softmax(0.5 * np.log(theirs.predict_proba(X)), axis=1)
    np.testing.assert_allclose(softmax(X @ found.weights + found.intercepts, axis=1), expected, rtol=1e-8)
    np.testing.assert_allclose(found.deviations, [deviations[clusters == k].mean(axis=0) for k in range(4)])


@pytest.mark.parametrize("shape", [(7, 30), (30, 7), (12, 12)])
def test_many_features_have_the_covariance_of_few(rng, shape):
    rows, shrinkage = rng.normal(size=shape) * rng.uniform(0.1, 3.0, shape[1]), 0.3
    found, root = Covariance.of(rows, shrinkage), inverse_root(rows.T @ rows / len(rows), shrinkage)
    others = rng.normal(size=(4, shape[1]))
    np.testing.assert_allclose(found.solve(others), others @ root @ root, rtol=1e-8)
    np.testing.assert_allclose(cdist(*2 * [found.whiten(rows)]), cdist(*2 * [rows @ root]), rtol=1e-8, atol=1e-8)


def test_turned_and_scaled_samples_are_centred_alike(rng):
    X, y, _ = speakers(rng)
    turned = 100.0 * np.linalg.qr(rng.normal(size=(3, 3)))[0]
    centring = NuisanceCentering(random_state=0)
    np.testing.assert_allclose(centring.fit_transform(X @ turned + 7, y), centring.fit_transform(X, y) @ turned + 7, rtol=1e-8)


def test_clusters_are_found_on_few_of_many_rows(rng, monkeypatch):
    X, y, _ = speakers(rng)
    sizes = []
    monkeypatch.setattr("simtree.representation._nuisance.MAX_ROWS", 200)
    monkeypatch.setattr(
        "simtree.representation._nuisance.cluster_numbers",
        lambda rows, *how: sizes.append(len(rows)) or cluster_numbers(rows, *how),
    )
    assert auc_of_gaussian(X, y, NuisanceCentering(random_state=0)) > 0.98
    assert set(sizes) == {200}


def test_a_cluster_is_of_several_identities(rng):
    """One person is seen at a place where nobody else is: the mean deviation there would tell of that person alone."""
    X, y, _ = speakers(rng, n=20)
    X[:10] += 50.0
    clusters = []

    def spied(rows, n_clusters, generator, identities):
        clusters.append((cluster_numbers(rows, n_clusters, generator, identities), identities))
        return clusters[-1][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simtree.representation._nuisance.cluster_numbers", spied)
        NuisanceCentering(n_clusters=20, random_state=0).fit(X, y)
    assert clusters
    for numbers, identities in clusters:
        assert all(len(np.unique(identities[numbers == k])) >= MIN_MEMBERS for k in range(numbers.max() + 1))


def test_a_model_holds_one_mean_per_cluster_and_none_of_a_fold(rng):
    """Means of a cluster with and without some rows would disclose these rows by their difference."""
    X, y, _ = speakers(rng)
    state = NuisanceCentering(n_clusters=5, random_state=0).fit(X, y)._get_fitted_state()
    assert set(state) == {"n_classes", "mean", "clusterings"}
    assert [clustering["deviations"].shape for clustering in state["clusterings"]] == [(5, 3)]


def test_all_samples_are_centred_or_none(rng):
    """Some folds of so few samples leave enough for two clusters, and others do not."""
    centred = set()
    for n in (24, 26, 28, 30, 60):
        X, y, _ = speakers(np.random.default_rng(n), n=n // 4, n_samples=4)
        centring = NuisanceCentering(random_state=0)
        changed = (centring.fit_transform(X, y) != X).any(axis=1)
        assert changed.all() == changed.any() == (centring.clustering_ is not None)
        centred.add(bool(changed.all()))
    assert centred == {False, True}


def test_centring_does_not_learn_random_labels(rng):
    X, y = rng.normal(size=(300, 20)), np.arange(300) % 30
    centred = NuisanceCentering(random_state=0).fit_transform(X, y)
    pairs = PairSampler(y).all_pairs()
    apart = np.linalg.norm(centred[pairs.first] - centred[pairs.second], axis=1)
    assert roc_curve(-apart, pairs.same).auc() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    "y",
    [np.repeat(np.arange(4), 2), np.concatenate([np.arange(39), [0]]), np.repeat(np.arange(4), 50)],
    ids=["few samples", "one class with two samples", "few identities"],
)
def test_without_clusters_samples_stay_as_they_are(rng, y):
    X = rng.normal(size=(len(y), 3))
    centring = NuisanceCentering(random_state=0).fit(X, y)
    assert centring.clustering_ is None
    np.testing.assert_array_equal(centring.transform(X), X)


def test_samples_that_repeat_are_no_cluster(rng):
    X, y, _ = speakers(rng, n=10, n_samples=12)
    X[:100] = X[0]
    assert np.isfinite(NuisanceCentering(random_state=0).fit_transform(X, y)).all()
    same = np.repeat(np.eye(3), 30, axis=0)
    np.testing.assert_array_equal(NuisanceCentering(random_state=0).fit_transform(same, np.repeat([0, 1, 2], 30)), same)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_clusters": 0}, ValueError, "n_clusters=0 is out of range; give an int of at least 1"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters=2.5 is not an integer"),
        ({"n_clusters": "10"}, TypeError, "n_clusters='10' is not an integer"),
        ({"shrinkage": 0}, ValueError, "shrinkage=0"),
        ({"cv": 1}, ValueError, "cv=1"),
    ],
)
def test_bad_centring(blobs, parameters, error, message):
    with pytest.raises(error, match=message):
        NuisanceCentering(**parameters).fit(*blobs)


# Folds -----------------------------------------------------------------------------------------------


def test_folds_of_rows_spread_each_class(rng):
    codes = rng.integers(0, 4, 203)
    folds = base.folds_of_rows(codes, 5, rng)
    counts = np.array([np.bincount(folds[codes == k], minlength=5) for k in range(4)])
    assert np.ptp(counts, axis=1).max() <= 1
    assert np.ptp(np.bincount(folds)) <= 1
