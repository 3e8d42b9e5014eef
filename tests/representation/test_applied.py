from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

import simtree
from simtree import DistanceSimilarity, SimilarityForest, SimilarityTree
from simtree.pairs._sampling import PairSampler
from simtree.representation._columns import dense


class Shifted(TransformerMixin, BaseEstimator):
    """Training rows get another value than later ones, as with a cross-fitted transformer; counts its calls."""

    def fit(self, X, y=None):
        self.n_fitted_, self.labels_, self.asked_ = len(X), y, []
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X) + 100.0

    def transform(self, X):
        self.asked_.append(len(X))
        return X * np.array([1.0, -1.0, 2.0, 0.5])


class Needy(Shifted):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class Unspeakable(Shifted):
    def __repr__(self):
        raise AssertionError("formatted, although nothing is wrong")


def test_a_representation_is_formatted_in_errors_only(blobs, monkeypatch):
    """To format a pipeline takes longer than to score a pair."""
    X, y = blobs
    tree = SimilarityTree(max_depth=2, n_pairs=200, representation=Unspeakable(), random_state=0).fit(X, y)
    assert tree.pair_score([[0, 1]], X).shape == (1,)
    monkeypatch.setattr(Unspeakable, "transform", lambda self, X: X * X)
    with pytest.raises(AssertionError, match="formatted"):
        tree.pair_score([[0, 1]], np.full((2, 4), 1e300))


def test_a_representation_equals_transforming_by_hand(blobs):
    X, y = blobs
    made = StandardScaler().fit(X)
    by_hand = SimilarityForest(n_estimators=3, max_depth=4, n_pairs=500, random_state=0).fit(made.transform(X), y)
    forest = SimilarityForest(n_estimators=3, max_depth=4, n_pairs=500, representation=StandardScaler(), random_state=0)
    forest.fit(X, y)
    np.testing.assert_array_equal(forest.pairwise_score(X), by_hand.pairwise_score(made.transform(X)))
    scores, rows = forest.top_k(X[:3], X, 4)
    expected = by_hand.top_k(made.transform(X[:3]), made.transform(X), 4)
    np.testing.assert_array_equal(scores, expected[0])
    np.testing.assert_array_equal(rows, expected[1])
    assert forest.score(X, y) == by_hand.score(made.transform(X), y)
    assert forest.get_metric()(X[0], X[1]) == by_hand.get_metric()(*made.transform(X[:2]))


def test_training_rows_come_from_fit_transform_with_labels(blobs):
    X, y = blobs
    tree = SimilarityTree(max_depth=3, representation=Shifted(), coordinates=["sum"], random_state=0).fit(X, y)
    assert tree.tree_.nodes.threshold.min() > 90.0
    assert tree.representation_.n_fitted_ == len(X)
    np.testing.assert_array_equal(tree.representation_.labels_, PairSampler(y).labels)
    assert not hasattr(tree.representation, "n_fitted_")


def test_each_sample_is_represented_once(blobs):
    X, y = blobs
    tree = SimilarityTree(max_depth=3, representation=Shifted(), random_state=0).fit(X, y)
    tree.representation_.asked_.clear()
    tree.pairwise_score(X[:10], X)
    tree.pair_score(np.tile([0, 1], (500, 1)), X[:5])
    tree.top_k(X[:2], X, 3)
    assert tree.representation_.asked_ == [10, len(X), 5, 2, len(X)]


def test_a_gallery_is_represented_in_parts(blobs, monkeypatch):
    X, y = blobs
    tree = SimilarityTree(max_depth=5, representation=Shifted(), coordinates=["abs_diff", "oblique"], random_state=0).fit(X, y)
    scores, rows = tree.top_k(X[:6], X, 7)
    monkeypatch.setattr("simtree.models._base.GALLERY_ROWS", 13)
    tree.representation_.asked_.clear()
    in_parts = tree.top_k(X[:6], X, 7)
    assert max(tree.representation_.asked_) == 13
    np.testing.assert_array_equal(in_parts[0], scores)
    np.testing.assert_array_equal(in_parts[1], rows)


def test_pairs_without_labels(blobs):
    X, y = blobs
    index = PairSampler(y).sample(400, np.random.default_rng(0))
    pairs = X[np.column_stack([index.first, index.second])]
    tree = SimilarityTree(max_depth=3, representation=make_pipeline(StandardScaler(), PCA(2)), random_state=0)
    assert tree.fit(pairs, index.same).tree_.pair_map.n_features == 2
    for needy in (Needy(), make_pipeline(StandardScaler(), Needy()), LinearDiscriminantAnalysis()):
        with pytest.raises(ValueError, match="requires labels"):
            SimilarityTree(representation=needy).fit(pairs, index.same)


def test_names_are_those_of_the_representation(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abcd"))
    scaled = SimilarityTree(max_depth=2, representation=StandardScaler(), random_state=0).fit(frame, y)
    assert scaled.explain_pair(X[0], X[1]).feature_names == ("a", "b", "c", "d")
    pca = SimilarityTree(max_depth=2, representation=PCA(3), random_state=0).fit(frame, y)
    explanation = pca.explain_pair(X[0], X[1])
    assert explanation.feature_names == ("pca0", "pca1", "pca2")
    assert explanation.base + explanation.contributions.sum() == pytest.approx(explanation.score)
    assert len(pca.feature_importances_) == 3
    silent = SimilarityTree(max_depth=2, representation=Shifted(), random_state=0).fit(frame, y)
    assert silent.explain_pair(X[0], X[1]).feature_names == ("x0", "x1", "x2", "x3")


def test_parameters_of_a_representation_can_be_searched():
    tree = SimilarityTree(representation=PCA(3)).set_params(representation__n_components=2)
    assert tree.representation.n_components == 2


class Halved(Shifted):
    def transform(self, X):
        return X[::2]


@pytest.mark.parametrize(
    ("representation", "error", "sentence"),
    [
        ("pca", TypeError, "not a transformer"),
        (StandardScaler, TypeError, "not a transformer"),
        (Halved(), ValueError, "one row per sample"),
    ],
)
def test_invalid_representations_are_rejected(blobs, representation, error, sentence):
    X, y = blobs
    with pytest.raises(error, match=sentence):
        SimilarityTree(representation=representation, n_pairs=100).fit(X, y)


def test_warm_start_is_rejected_with_a_representation(blobs):
    X, y = blobs
    forest = SimilarityForest(n_estimators=2, max_depth=2, n_pairs=200, representation=PCA(2), warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start=True cannot be used with a representation"):
        forest.set_params(n_estimators=3).fit(X, y)


OF_SCIKIT_LEARN = {
    "pca": PCA(),
    "pca-few": PCA(3, whiten=True),
    "pca-one": PCA(1),
    "pca-share": PCA(0.8),
    **{
        f"pca-{solver}-{n}": PCA(n, svd_solver=solver, random_state=0)
        for solver in ("full", "covariance_eigh", "arpack", "randomized")
        for n in (1, 4)
    },
    "standard": StandardScaler(),
    "standard-deviations": StandardScaler(with_std=False),
    "range": MinMaxScaler((-1.0, 2.0), clip=True),
    "extremes": MaxAbsScaler(),
    "robust": RobustScaler(quantile_range=(10.0, 80.0), unit_variance=True),
    "length": Normalizer("l1"),
    "imputer": SimpleImputer(strategy="median", add_indicator=True),
    "indicator": MissingIndicator(features="all"),
    "codes": OrdinalEncoder(),
    "flags": OneHotEncoder(drop="first"),
    "pipeline": make_pipeline(StandardScaler(), PCA(4), MinMaxScaler()),
    "columns": ColumnTransformer([("range", MinMaxScaler(), [0, 2]), ("pca", PCA(1), [1, 3, 4])], remainder="passthrough"),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OF_SCIKIT_LEARN)
def test_what_is_loaded_transforms_and_scores_bit_for_bit(rng, tmp_path, name, dtype):
    y = np.repeat(np.arange(15), 6)
    X = (rng.normal(size=(15, 20))[y] + 0.3 * rng.normal(size=(90, 20))) @ rng.normal(size=(20, 20)) + 3.0
    if name in ("codes", "flags"):
        X = np.round(X[:, :3] / 10.0) + 0.1
    if name in ("imputer", "indicator"):
        X[rng.random(X.shape) < 0.1] = np.nan
    X = X.astype(dtype)
    model = DistanceSimilarity(metric="euclidean", representation=OF_SCIKIT_LEARN[name]).fit(X, y)
    model.save(tmp_path / "m.simtree")
    loaded = simtree.load(tmp_path / "m.simtree")
    for samples in (X, X[:1], X.astype(np.float64), X.astype(np.float32)):
        if name in ("codes", "flags") and samples.dtype != dtype:
            continue  # other numbers, which are no categories
        made, again = (dense(fitted.representation_.transform(samples)) for fitted in (model, loaded))
        np.testing.assert_array_equal(again, made)
        assert again.dtype == made.dtype
        np.testing.assert_array_equal(loaded.pairwise_score(samples), model.pairwise_score(samples))
    loaded.save(tmp_path / "again.simtree")
    assert (tmp_path / "again.simtree").read_bytes() == (tmp_path / "m.simtree").read_bytes()
