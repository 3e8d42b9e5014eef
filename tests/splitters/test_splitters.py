"""Tests of single splitters beyond the common contract."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import oracle
from simtree import (
    CartSplitter,
    ClassifierSplitter,
    CrossSplitter,
    CutSplitter,
    GaussianSplitter,
    LinearSplitter,
    ObliqueCartSplitter,
    SimilarityTree,
)
from simtree.pairs._coordinates import SamplePairs
from simtree.splitters._gaussian import best_threshold, gaussian_ratio


def fit_pairs(splitter, pairs, same, **parameters):
    return SimilarityTree(splitter=splitter, random_state=0, max_bins=None, **parameters).fit(pairs, same)


@pytest.mark.parametrize("kinds", [["abs_diff"], ["sum"], ["abs_diff", "sum"]])
def test_cut_maximises_the_gain_over_all_thresholds_and_directions(given_pairs, kinds):
    pairs, same = given_pairs
    tree = fit_pairs(CutSplitter(), pairs, same, max_depth=1, coordinates=kinds)
    F = oracle.coordinates(pairs, kinds)
    gains = [abs((F[same, c] <= t).mean() - (F[~same, c] <= t).mean()) for c in range(F.shape[1]) for t in np.unique(F[:, c])]
    assert tree.auc_ == pytest.approx(0.5 + 0.5 * max(gains), abs=1e-12)


def test_cut_goes_in_either_direction():
    """Same pairs far apart: the similar side is above the threshold."""
    pairs = np.array([[[0.0], [5.0]], [[1.0], [7.0]], [[0.0], [1.0]], [[2.0], [2.5]]])
    tree = fit_pairs(CutSplitter(), pairs, [True, True, False, False], max_depth=1, coordinates=["abs_diff"])
    assert "inside if |x0 - x0'| > 3" in tree.export_text()
    assert tree.auc_ == 1.0


def test_cross_is_the_oracle_square_or_its_complement(given_pairs):
    pairs, same = given_pairs
    for labels in (same, ~same):
        tree = fit_pairs(CrossSplitter(), pairs, labels, max_depth=1)
        least, greatest = pairs.min(axis=1), pairs.max(axis=1)
        expected = oracle.cross_region(least, greatest, labels)
        np.testing.assert_array_equal(tree.pair_score(pairs) == 2.0, expected)


def test_cart_is_scikit_learns_tree_with_balanced_weights(given_pairs):
    """The leaves of DecisionTreeClassifier on the same coordinates form the same region (these data have no ties)."""
    pairs, same = given_pairs
    rng = np.random.default_rng(0)
    pairs = pairs + rng.normal(0, 1e-3, pairs.shape)
    F = oracle.coordinates(pairs)
    for criterion in ("gini", "entropy"):
        peer = DecisionTreeClassifier(
            max_depth=4, min_samples_leaf=5, class_weight="balanced", criterion=criterion, random_state=0
        )
        peer.fit(F, same)
        tree = fit_pairs(CartSplitter(max_depth=4, criterion=criterion), pairs, same, max_depth=1)
        agree = (tree.pair_score(pairs) == 2.0) == peer.predict(F)
        assert agree.mean() > 0.99


def test_cart_respects_max_depth(given_pairs):
    pairs, same = given_pairs
    nodes = fit_pairs(CartSplitter(max_depth=2), pairs, same, max_depth=1).tree_.nodes
    assert len(nodes.kind) <= 3


def test_linear_region_is_the_hyperplane_of_the_svm(given_pairs):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    pairs, same = given_pairs
    tree = fit_pairs(LinearSplitter(C=0.1), pairs, same, max_depth=1)
    F = oracle.coordinates(pairs)
    peer = make_pipeline(StandardScaler(), LinearSVC(C=0.1, class_weight="balanced", random_state=0)).fit(F, same)
    assert ((tree.pair_score(pairs) == 2.0) == peer.predict(F)).mean() > 0.99
    assert 0.9 < tree.feature_importances_.sum() < 1.1


class Spy(ClassifierMixin, BaseEstimator):
    """Split at the mean of the first coordinate of same pairs, and record the input."""

    def __init__(self, seen=None):
        self.seen = seen

    def __sklearn_clone__(self):
        return self

    def fit(self, X, y, sample_weight):
        self.seen.append((y.copy(), sample_weight))  # pairs are reordered later
        self.classes_ = np.unique(y)
        self.cut_ = X[y, 0].mean()
        return self

    def predict(self, X):
        return X[:, 0] <= self.cut_


def test_classifier_gets_the_costs_of_the_paper(blobs):
    """In each cell same and different pairs have equal total weight, and the mean weight is one."""
    seen = []
    splitter = ClassifierSplitter(Spy(seen))
    SimilarityTree(max_depth=2, splitter=splitter, n_pairs=1000, positive_fraction=0.1, random_state=0).fit(*blobs)
    assert len(seen) > 1
    assert seen[0][0].sum() == 100
    for same, weight in seen:
        expected = np.where(same, len(same) / (2 * same.sum()), len(same) / (2 * (~same).sum()))
        np.testing.assert_allclose(weight, expected, rtol=1e-12)


def test_linear_and_classifier_see_at_most_max_samples(blobs):
    seen = []
    splitter = ClassifierSplitter(Spy(seen), max_samples=200)
    SimilarityTree(max_depth=2, splitter=splitter, n_pairs=1000, random_state=0).fit(*blobs)
    assert max(len(same) for same, _ in seen) == 200
    tree = SimilarityTree(max_depth=2, splitter=LinearSplitter(max_samples=100), n_pairs=1000, random_state=0).fit(*blobs)
    assert tree.auc_ > 0.6


def test_linear_splitter_is_invariant_to_the_scale_of_features(given_pairs):
    pairs, same = given_pairs
    scale = np.array([1.0, 1e-4, 1e5, 1.0])
    a = fit_pairs(LinearSplitter(), pairs, same, max_depth=2).pair_score(pairs)
    b = fit_pairs(LinearSplitter(), pairs * scale, same, max_depth=2).pair_score(pairs * scale)
    assert (a == b).mean() > 0.98


@pytest.mark.parametrize("size", [8e307, 1e154, 1e-310])
def test_linear_splitter_survives_extreme_values(given_pairs, size):
    """A coordinate that overflows is ignored, and the others are used."""
    pairs, same = given_pairs
    extreme = np.concatenate([pairs, np.where(pairs[..., :1] > 2, size, size / 2)], axis=2)
    assert fit_pairs(LinearSplitter(), extreme, same, max_depth=1).auc_ > 0.6


def test_importances_of_hyperplanes_are_weighted_by_gain(given_pairs):
    tree = fit_pairs(LinearSplitter(), *given_pairs, max_depth=3).tree_
    expected = sum(tree.cells.gain[cell] * region.shares for cell, region in tree.regions.items())
    np.testing.assert_allclose(tree.feature_gains(), expected.reshape(2, 4).sum(axis=0))


def test_classifier_without_weights_sees_balanced_pairs(blobs):
    kinds = []

    class Counting(KNeighborsClassifier):
        def fit(self, X, y):
            kinds.append((y.sum(), (~y).sum()))
            return super().fit(X, y)

    X, y = blobs
    SimilarityTree(
        max_depth=2, splitter=ClassifierSplitter(Counting(3)), n_pairs=900, positive_fraction=0.1, random_state=0
    ).fit(X, y)
    assert kinds[0] == (90, 90)
    assert all(a == b for a, b in kinds)


def test_classifier_is_not_fitted_to_very_few_pairs(blobs):
    """Five neighbours cannot be found among two pairs: small cells are not split."""
    splitter = ClassifierSplitter(KNeighborsClassifier(5))
    cells = SimilarityTree(max_depth=12, splitter=splitter, n_pairs=600, random_state=0).fit(*blobs).tree_.cells
    rarer = np.minimum(cells.n_same, cells.n_different)
    assert rarer[cells.inside >= 0].min() >= 10
    assert rarer[cells.inside < 0].min() < 10


@pytest.mark.parametrize(
    ("splitter", "error", "message"),
    [
        (CartSplitter(max_depth=0), ValueError, "max_depth=0 is out of range; give an int from 1 to 30"),
        (CartSplitter(max_depth=2.5), TypeError, "max_depth=2.5 is not an integer"),
        (CartSplitter(criterion="gain"), ValueError, "criterion='gain' is unknown; choose one of 'gini'"),
        (CartSplitter(min_samples_leaf=0), ValueError, "min_samples_leaf=0"),
        (CartSplitter(max_features=0.0), ValueError, "max_features=0.0 is out of range"),
        (CartSplitter(max_features=0), ValueError, "max_features=0"),
        (CartSplitter(max_features="sqrt"), TypeError, "max_features='sqrt' is not a number"),
        (CutSplitter(min_samples_leaf=-1), ValueError, "min_samples_leaf=-1"),
        (LinearSplitter(C=0), ValueError, "C=0 is out of range"),
        (LinearSplitter(max_samples=1), ValueError, "max_samples=1"),
        (ClassifierSplitter(LinearRegression()), TypeError, "not a scikit-learn classifier"),
        (ClassifierSplitter(KNeighborsClassifier), TypeError, "give an instance"),
    ],
)
def test_bad_parameters(blobs, splitter, error, message):
    with pytest.raises(error, match=message):
        SimilarityTree(splitter=splitter).fit(*blobs)


def test_cross_requires_min_and_max(blobs):
    with pytest.raises(ValueError, match=r"coordinates=\['min', 'sum'\] lacks 'min' or 'max'"):
        SimilarityTree(splitter="cross", coordinates=["min", "sum"]).fit(*blobs)


@pytest.fixture(scope="module")
def oblique_classes():
    """Classes that differ along one oblique direction only, with large noise along others."""
    rng = np.random.default_rng(0)
    y = np.arange(600) % 60
    basis = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    scale = np.array([0.15, 3.0, 3.0, 3.0, 3.0])
    return (np.outer(rng.normal(size=60)[y], [1, 0, 0, 0, 0]) + rng.normal(size=(600, 5)) * scale) @ basis, y


def test_local_directions_find_what_single_features_do_not(oblique_classes):
    X, y = oblique_classes
    aucs = {}
    for splitter in (CartSplitter(max_depth=3), ObliqueCartSplitter(max_depth=3, n_directions=1)):
        tree = SimilarityTree(max_depth=4, splitter=splitter, n_pairs=20_000, random_state=0).fit(X[:300], y[:300])
        aucs[type(splitter).__name__] = tree.score(X[300:], y[300:])
    assert aucs["ObliqueCartSplitter"] > 0.85
    assert aucs["CartSplitter"] < 0.65


def test_cells_have_their_own_directions_unless_they_are_small(oblique_classes):
    X, y = oblique_classes
    splitter = ObliqueCartSplitter(max_depth=2, n_directions=2, min_samples=200)
    tree = SimilarityTree(max_depth=5, splitter=splitter, n_pairs=4000, random_state=0).fit(X, y).tree_
    assert not np.allclose(tree.regions[0].directions, tree.regions[1].directions)
    split = np.flatnonzero(tree.cells.inside >= 0)
    enough = np.minimum(tree.cells.n_same[split], tree.cells.n_different[split]) >= 200
    np.testing.assert_array_equal(np.isin(split, list(tree.regions)), enough)
    assert 0 < enough.sum() < len(enough)


def test_rules_name_the_directions_of_a_cell(oblique_classes):
    X, y = oblique_classes
    tree = SimilarityTree(max_depth=1, splitter=ObliqueCartSplitter(max_depth=1, n_directions=1), random_state=0).fit(X, y)
    assert "inside if |v0·(x - x')| <= " in tree.export_text()


def test_gaussian_ratio_is_that_of_the_densities(given_pairs):
    """Up to a constant, with scipy's densities of the same covariances."""
    pairs, same = given_pairs
    points = pairs.reshape(-1, 4)
    first = np.arange(0, len(points), 2, dtype=np.int32)
    rows = SamplePairs(points, points, first, first + np.int32(1))
    region = gaussian_ratio(rows, same, np.arange(4), shrinkage=0.2)
    delta, total = pairs[:, 0] - pairs[:, 1], pairs[:, 0] + pairs[:, 1]

    def log_density(values, centred, kind):
        mean = np.zeros(4) if centred else values[kind].mean(axis=0)
        covariance = (values[kind] - mean).T @ (values[kind] - mean) / kind.sum()
        shrunk = 0.8 * covariance + 0.2 * np.trace(covariance) / 4 * np.eye(4)
        return multivariate_normal(mean, shrunk).logpdf(values)

    expected = sum(log_density(v, c, same) - log_density(v, c, ~same) for v, c in ((delta, True), (total, False)))
    scores, _ = region.scores(rows)
    np.testing.assert_allclose(scores - scores.mean(), expected - expected.mean(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("min_pairs", [1, 6])
def test_best_threshold_is_the_best_of_all(rng, min_pairs):
    for _ in range(50):
        scores, same = rng.integers(0, 8, 20).astype(float), rng.random(20) < 0.4
        same[:2] = [True, False]
        found = best_threshold(scores, same, 3.0, 2.0, min_pairs)
        gains = {}
        for t in np.unique(scores):
            inside = scores >= t
            if min(inside.sum(), (~inside).sum()) >= min_pairs:
                gains[t] = 3.0 * (inside & same).sum() - 2.0 * (inside & ~same).sum()
        best = max(gains.values(), default=-1.0)
        if best <= 0.0:
            assert found is None
        else:
            inside = scores >= found
            assert 3.0 * (inside & same).sum() - 2.0 * (inside & ~same).sum() == best


def test_gaussian_splitter_finds_the_oblique_direction(oblique_classes):
    X, y = oblique_classes
    tree = SimilarityTree(max_depth=2, splitter=GaussianSplitter(shrinkage=0.01), n_pairs=20_000, random_state=0)
    assert tree.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.8
    assert "Gaussian log-likelihood ratio" in tree.export_text()


def test_gaussian_splitter_does_not_split_constant_data():
    X, y = np.zeros((40, 2)), np.arange(40) % 4
    assert SimilarityTree(splitter=GaussianSplitter(min_samples=2)).fit(X, y).tree_.n_cells == 1
    constant = np.column_stack([np.random.default_rng(0).normal(size=40), np.ones(40)])
    assert np.isfinite(SimilarityTree(splitter="gaussian", n_pairs=500).fit(constant, y).auc_)
