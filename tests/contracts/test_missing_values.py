"""Laws of models on samples with missing values: those of complete samples hold, and states unseen in training have a place."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from every_estimator import ESTIMATORS, OTHERS
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import simtree
from simtree import (
    AutoSimilarity,
    ClassifierSplitter,
    CohortNormalization,
    MarginalQuantiles,
    ObliqueCartSplitter,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
)
from simtree.io._archive import write_document
from simtree.io._fields import ModelFileError
from simtree.representation import Imputer

TREE = SimilarityTree(max_depth=4, n_pairs=600, random_state=0)
BOOSTING = SimilarityBoosting(
    n_estimators=4, max_leaf_nodes=6, min_samples_leaf=5, n_pairs=500, early_stopping=False, random_state=0
)
TAKING = {
    **{name: ESTIMATORS[name] for name in ("tree-exact", "tree-cut", "tree-cross", "tree-whole", "tree-drawn")},
    **{name: ESTIMATORS[name] for name in ("forest", "forest-mean-rank", "forest-median-rank", "boosting")},
    **{name: ESTIMATORS[name] for name in ("tree-linear", "tree-local", "tree-gaussian", "forest-full", "boosting-full")},
    "tree-oblique": SimilarityTree(max_depth=4, coordinates=["abs_diff", "oblique"], n_pairs=600, random_state=0),
    "tree-scaled": SimilarityTree(max_depth=4, representation=StandardScaler(), n_pairs=600, random_state=0),
    "forest-quantiles": SimilarityForest(
        n_estimators=4, max_depth=4, n_pairs=600, representation=MarginalQuantiles(), random_state=0
    ),
    "boosting-drawn": clone(ESTIMATORS["boosting-full"]).set_params(directions="random"),
    "voting": VotingSimilarity([("tree", TREE), ("boosting", BOOSTING)]),
    "stacked": StackedSimilarity([("tree", TREE), ("boosting", BOOSTING)], open_set=False, random_state=0),
    "cohort": CohortNormalization(TREE, n_cohort=20, n_nearest=5, random_state=0),
}
REFUSING = {
    **{name: OTHERS[name] for name in ("gaussian", "distance", "voting", "cohort-distance")},
}


@pytest.fixture(scope="module")
def holed(blobs):
    """Return labelled samples of which a quarter of the values is missing, in one identity half of those of a feature."""
    X, y = blobs
    rng = np.random.default_rng(3)
    X = np.where(rng.random(X.shape) < 0.25, np.nan, X)
    X[y == y[0], 1] = np.where(rng.random(np.count_nonzero(y == y[0])) < 0.5, np.nan, 1.0)
    return X, y


@pytest.fixture(scope="module")
def all_fitted(holed):
    return {name: clone(model).fit(*holed) for name, model in TAKING.items()}


@pytest.fixture(params=sorted(TAKING))
def fitted(request, all_fitted):
    return all_fitted[request.param]


@pytest.fixture(scope="module")
def new_pairs():
    """Return pairs of unseen samples, some of which lack everything."""
    rng = np.random.default_rng(11)
    pairs = np.where(rng.random((120, 2, 4)) < 0.3, np.nan, rng.uniform(0, 4, (120, 2, 4)))
    pairs[0], pairs[1, 0] = np.nan, np.nan
    return pairs


def test_symmetric_saved_and_in_blocks(fitted, new_pairs, tmp_path, monkeypatch):
    scores = fitted.pair_score(new_pairs)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(fitted.pair_score(new_pairs[:, ::-1]), scores)
    fitted.save(tmp_path / "m.simtree")
    loaded = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(loaded.pair_score(new_pairs), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).pair_score(new_pairs), scores)
    monkeypatch.setattr("simtree.models._base.BLOCK", 32)
    np.testing.assert_array_equal(fitted.pair_score(new_pairs), scores)


def test_pairwise_and_top_k_are_pair_by_pair(fitted, new_pairs):
    A, B = new_pairs[:12, 0], new_pairs[:30, 1]
    scores = fitted.pairwise_score(A, B)
    np.testing.assert_array_equal(scores, fitted.pairwise_score(B, A).T)
    i, j = np.divmod(np.arange(len(A) * len(B)), len(B))
    np.testing.assert_array_equal(scores.ravel(), fitted.pair_score(np.stack([A[i], B[j]], axis=1)))
    found, rows = fitted.top_k(A, B, k=4)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(rows, order)
    np.testing.assert_array_equal(found, np.take_along_axis(scores, order, axis=1))


def test_complete_and_incomplete_samples_are_scored_alike_in_one_table(fitted, new_pairs):
    """A complete pair has the same score whether or not other samples of its table lack values."""
    pairs = np.where(np.isnan(new_pairs), 1.5, new_pairs)
    table = pairs.reshape(-1, 4)
    rows = np.arange(len(table)).reshape(-1, 2)
    expected = fitted.pair_score(rows, table)
    with_another = np.vstack([table, np.full((1, 4), np.nan)])
    np.testing.assert_array_equal(fitted.pair_score(rows, with_another), expected)


@pytest.mark.parametrize("name", ["forest", "boosting-full", "tree-whole", "forest-full"])
def test_the_number_of_jobs_changes_nothing(holed, new_pairs, all_fitted, name):
    again = clone(TAKING[name]).set_params(n_jobs=2).fit(*holed)
    np.testing.assert_array_equal(again.pair_score(new_pairs), all_fitted[name].pair_score(new_pairs))


@pytest.mark.parametrize("name", [name for name in TAKING if name.startswith("tree-") and name != "tree-drawn"])
def test_knots_are_the_curve_of_the_training_scores(holed, name):
    X, y = holed
    model = clone(TAKING[name]).set_params(n_pairs=None).fit(X, y)
    assert model.auc_ == pytest.approx(model.score(X, y), abs=1e-12)
    assert model.auc_ == pytest.approx(0.5 + 0.5 * model.tree_.cells.gain.sum(), abs=1e-12)


def test_missing_in_one_and_in_both_are_learned():
    """What decides is which feature is missing: identities with the feature, and without it."""
    y = np.repeat(np.arange(6), 10)
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[y % 2 == 0, 0] = np.nan
    tree = SimilarityTree(max_depth=3, splitter="cut", n_pairs=None).fit(X, y)
    text = tree.export_text(feature_names=["price", "size"])
    assert "or price missing in both)" in text.splitlines()[1]
    one, both, none = (tree.pair_score([[[a, 0.0], [b, 0.0]]])[0] for a, b in ((np.nan, 0.1), (np.nan, np.nan), (0.1, 0.1)))
    assert one < both
    assert one < none
    said = str(tree.explain_pair([np.nan, 0.0], [0.1, 0.0], feature_names=["price", "size"]))
    assert "price missing in one of the two" in said
    assert "missing" in said.splitlines()[2] or "missing" in said.splitlines()[3]


@pytest.mark.parametrize(
    "model",
    [
        TREE,
        BOOSTING,
        *(SimilarityTree(splitter=name, n_pairs=600, max_depth=3, random_state=0) for name in ("cross", "linear", "gaussian")),
        ESTIMATORS["tree-local"],
    ],
)
def test_a_state_unseen_in_training_goes_where_most_pairs_went(blobs, model, tmp_path):
    """Also for a model fitted on complete samples and read from a file, which says nothing of missing values."""
    X, y = blobs
    fitted = clone(model).fit(X, y)
    fitted.save(tmp_path / "m.simtree")
    nothing = np.full((1, 2, 4), np.nan)
    for one in (fitted, simtree.load(tmp_path / "m.simtree")):
        (cells,) = one.apply(nothing).reshape(1, -1)
        for tree, found in zip(one._trees(), cells, strict=True):
            cell, n_pairs = 0, tree.cells.n_same + tree.cells.n_different
            while tree.cells.inside[cell] >= 0:
                inside, outside = tree.cells.inside[cell], tree.cells.outside[cell]
                cell = inside if n_pairs[inside] >= n_pairs[outside] else outside
            assert found == cell
        expected = sum(values[cell] for values, cell in zip(one._leaf_values()[1], cells, strict=True)) / len(cells)
        assert one.pair_score(nothing)[0] == pytest.approx(expected)


def test_which_feature_is_missing_is_learned_by_every_splitter():
    """Values are noise; half of the identities have a feature, and half do not."""
    y = np.repeat(np.arange(10), 12)
    X = np.random.default_rng(0).normal(size=(120, 2))
    X[y % 2 == 0, 0] = np.nan
    one, both = [[np.nan, 0.0], [0.1, 0.0]], [[np.nan, 0.0], [np.nan, 0.0]]
    classifier = ClassifierSplitter(DecisionTreeClassifier(max_depth=3))
    for splitter in ("linear", classifier, ObliqueCartSplitter(min_samples=50)):
        tree = SimilarityTree(max_depth=2, splitter=splitter, n_pairs=2000, random_state=0).fit(X, y)
        scores = tree.pair_score([one, both])
        assert scores[0] < scores[1], splitter
        assert tree.score(X, y) > 0.7
    rules = SimilarityTree(max_depth=1, splitter="linear", random_state=0).fit(X, y).export_text(feature_names=["a", "b"])
    assert "(a missing in one of the two)" in rules


def test_pairs_without_a_joint_feature_have_a_side_of_their_own():
    """Two features that the Gaussian ratio needs both: samples of even identities have the first, others the second."""
    y = np.repeat(np.arange(10), 12)
    X = np.random.default_rng(0).normal(size=(120, 2))
    X[y % 2 == 0, 0], X[y % 2 == 1, 1] = np.nan, np.nan
    tree = SimilarityTree(max_depth=1, splitter="gaussian", n_pairs=2000, random_state=0).fit(X, y)
    apart = tree.pair_score([[[np.nan, 0.0], [0.0, np.nan]]])[0]
    assert apart == tree.pair_score(np.stack([X[:12], X[12:24]], axis=1)).max() == 1.0
    assert tree.score(X, y) > 0.7


def test_a_classifier_in_a_cell_takes_missing_values(holed, new_pairs):
    X, y = holed
    splitter = ClassifierSplitter(LogisticRegression())
    tree = SimilarityTree(max_depth=3, splitter=splitter, n_pairs=None, random_state=0).fit(X, y)
    assert tree.auc_ == pytest.approx(tree.score(X, y), abs=1e-12)
    scores = tree.pair_score(new_pairs)
    np.testing.assert_array_equal(tree.pair_score(new_pairs[:, ::-1]), scores)
    assert "the fitted classifier" in tree.export_text()


@pytest.mark.parametrize("way", ["random", "discriminant"])
def test_a_column_without_values_has_no_part_in_directions(holed, way):
    X, y = holed
    empty = X.copy()
    empty[:, 2] = np.nan
    model = clone(TAKING["tree-oblique"]).set_params(directions=way)
    with pytest.warns(UserWarning, match="no value in column 2"):
        fitted = model.fit(empty, y)
    assert fitted.feature_importances_[2] == 0.0
    expected = fitted.pairwise_score(empty[:8])
    empty[:, 2] = 1.0
    np.testing.assert_array_equal(fitted.pairwise_score(empty[:8]), expected)


@pytest.mark.parametrize("name", sorted(REFUSING))
def test_models_that_need_complete_numbers_name_the_column(holed, blobs, name):
    X, y = holed
    with pytest.raises(ValueError, match=r"^X contains NaN in column \d, first in row \d+; fill it in"):
        clone(REFUSING[name]).fit(X, y)


def test_the_remedy_is_a_representation(holed):
    with pytest.raises(ValueError, match=r"fill it in with representation=Imputer\(\) of simtree.representation, or leave"):
        simtree.GaussianSimilarity().fit(*holed)


@pytest.mark.parametrize("name", ["tree-cut", "stacked"])
def test_the_metric_takes_missing_values(all_fitted, holed, name):
    rows = holed[0][np.isnan(holed[0]).any(axis=1)][:2]
    metric = all_fitted[name].get_metric()
    assert metric(*rows) == all_fitted[name].pair_distance([rows])[0]
    with pytest.raises(ValueError, match="numbers, NaN where one is missing, each"):
        metric(np.full_like(rows[0], np.inf), rows[1])


def test_infinities_stay_refused(holed):
    X, y = holed
    with_infinity = X.copy()
    with_infinity[7, 2] = np.inf
    with pytest.raises(ValueError, match="X contains infinity in column 2, first in row 7; replace it by a finite number"):
        clone(TREE).fit(with_infinity, y)
    with pytest.raises(ValueError, match="contains infinity"):
        clone(TREE).fit(X, y).pairwise_score(with_infinity)


@pytest.mark.parametrize(
    "model", [TREE, BOOSTING, SimilarityForest(n_estimators=2, max_features=1, n_pairs=300, random_state=0)]
)
def test_a_column_without_values_is_left_out_with_a_warning(holed, model):
    X, y = holed
    empty = X.copy()
    empty[:, 2] = np.nan
    with pytest.warns(UserWarning, match=r"^X has no value in column 2; the model does not use it\.$"):
        fitted = clone(model).fit(empty, y)
    assert fitted.feature_importances_[2] == 0.0
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)
    expected = fitted.pairwise_score(empty[:5])
    empty[:, 2] = 1.0
    np.testing.assert_array_equal(fitted.pairwise_score(empty[:5]), expected)


WITHOUT_A_COLUMN = {
    "tree-whole": clone(TREE).set_params(coordinates=["abs_diff", "dot", "euclidean", "manhattan", "cosine"]),
    "forest-whole": SimilarityForest(
        n_estimators=3, coordinates=["abs_diff", "euclidean", "cosine"], n_pairs=300, random_state=0
    ),
    "boosting-whole": clone(BOOSTING).set_params(coordinates=["abs_diff", "euclidean"]),
    "tree-imputed": clone(TREE).set_params(representation=Imputer(indicator=True)),
    "distance": simtree.DistanceSimilarity(metric="euclidean", representation=Imputer()),
    "gaussian": simtree.GaussianSimilarity(representation=make_pipeline(Imputer(), StandardScaler())),
    "voting": VotingSimilarity([("tree", TREE), ("distance", simtree.DistanceSimilarity(representation=Imputer()))]),
    "cohort": CohortNormalization(
        simtree.DistanceSimilarity(representation=Imputer()), n_cohort=20, n_nearest=5, random_state=0
    ),
    "auto": AutoSimilarity(time_budget=0.0, target_fpr=0.2, open_set=False, representation=Imputer(), random_state=0),
}


@pytest.mark.filterwarnings("ignore:X has no value")
@pytest.mark.parametrize("name", sorted(WITHOUT_A_COLUMN))
def test_what_a_column_without_values_holds_later_changes_no_score(holed, name, tmp_path):
    X, y = holed
    empty = X.copy()
    empty[:, 2] = np.nan
    fitted = clone(WITHOUT_A_COLUMN[name]).fit(empty, y)
    later = X.copy()
    later[:, 2] = np.linspace(-3.0, 50.0, len(X))
    expected = fitted.pairwise_score(empty[:8])
    fitted.save(tmp_path / "model.simtree")
    for model in (fitted, pickle.loads(pickle.dumps(fitted)), simtree.load(tmp_path / "model.simtree")):
        np.testing.assert_array_equal(model.pairwise_score(later[:8]), expected)
        assert model.get_metric()(later[0], later[1]) == model.pair_distance([empty[:2]])[0]
        np.testing.assert_array_equal(model.top_k(later[:3], later, 4)[1], model.top_k(empty[:3], empty, 4)[1])
    gallery = simtree.Gallery.create(tmp_path / "people.gallery", fitted)
    ids = [f"id {label}" for label in y[:8]]
    gallery.enroll(ids, later[:8])
    np.testing.assert_array_equal(gallery.verify(ids, later[8:16]).score, gallery.verify(ids, empty[8:16]).score)
    assert "empty_columns" in str(fitted.to_dict())
    assert "empty_columns" not in str(fitted.fit(later, y).to_dict())  # another fit forgets it


@pytest.mark.parametrize("value", [[-1], [4], [1.5], ["a"], [True], [2, 2]])
def test_a_file_with_wrong_columns_without_values_is_damaged(holed, value, tmp_path):
    X, y = holed
    empty = X.copy()
    empty[:, 2] = np.nan
    with pytest.warns(UserWarning, match="no value"):
        state = clone(TREE).fit(empty, y)._get_state()
    assert state["empty_columns"] == [2]
    state["empty_columns"] = value
    write_document(tmp_path / "model.simtree", state)
    with pytest.raises(ModelFileError, match="empty_columns"):
        simtree.load(tmp_path / "model.simtree")


def test_auto_names_a_column_without_values_and_refuses_a_table_of_them(holed):
    X, y = holed
    empty = X.copy()
    empty[:, 2] = np.nan
    auto = AutoSimilarity(time_budget=0.0, target_fpr=0.2, open_set=False, random_state=0)
    with pytest.warns(UserWarning, match=r"^X has no value in column 2; the model does not use it\.$"):
        auto.fit(empty, y)
    with pytest.raises(ValueError, match=r"^X has no value in any of its 4 columns; give samples with values\.$"):
        clone(auto).fit(np.full_like(X, np.nan), y)


@pytest.mark.parametrize("name", ["tree-whole", "boosting", "forest", "tree-linear", "tree-local", "tree-gaussian"])
def test_explanations_add_up(all_fitted, new_pairs, name):
    model = all_fitted[name]
    for x, x2 in new_pairs[:6]:
        explanation = model.explain_pair(x, x2)
        assert explanation.base + explanation.contributions.sum() == pytest.approx(explanation.score)
        assert explanation.score == pytest.approx(model.pair_score([[x, x2]])[0])


@given(arrays(float, (6, 2, 4), elements=st.one_of(st.just(np.nan), st.floats(-1e6, 1e6))))
@settings(max_examples=20, deadline=None, database=None)
def test_any_samples_are_scored_symmetrically(all_fitted, pairs):
    for name in ("tree-oblique", "boosting", "tree-whole", "tree-linear", "tree-local", "tree-gaussian"):
        scores = all_fitted[name].pair_score(pairs)
        assert np.isfinite(scores).all()
        np.testing.assert_array_equal(scores, all_fitted[name].pair_score(pairs[:, ::-1]))
