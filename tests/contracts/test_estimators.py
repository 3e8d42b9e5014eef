"""Contract of all similarities: invariants, consistent results of all methods, and clear errors."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from every_estimator import ESTIMATORS, OTHERS, TREES, looks_at_single_features
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.fixes import parse_version

import oracle
from simtree import ClassifierSplitter, SimilarityBoosting, load
from simtree.pairs._sampling import PairSampler

# So small that a few queries and rows need several parts.
SMALL_PARTS = {"SCAN_PAIRS": 64, "PART_BYTES": 1, "BATCH_BYTES": 1}


@pytest.fixture(params=sorted(ESTIMATORS))
def estimator(request):
    return clone(ESTIMATORS[request.param])


@pytest.fixture
def pair_estimator(estimator):
    """An estimator for given pairs, of which boosting does not draw new ones that are hard."""
    return estimator.set_params(focus_fpr=None) if isinstance(estimator, SimilarityBoosting) else estimator


@pytest.fixture(scope="module")
def _fitted(blobs):
    return {name: clone(estimator).fit(*blobs) for name, estimator in (ESTIMATORS | OTHERS).items()}


@pytest.fixture(params=sorted(ESTIMATORS | OTHERS))
def fitted(request, _fitted):
    return _fitted[request.param]


@pytest.fixture(params=sorted(ESTIMATORS))
def fitted_learner(request, _fitted):
    return _fitted[request.param]


@pytest.fixture(params=sorted(TREES))
def fitted_tree(request, _fitted):
    return _fitted[request.param]


# Checks of input are shared by all estimators: three of them stand for the others.
REPRESENTATIVES = ["forest", "tree", "tree-represented"]
FITTED_REPRESENTATIVES = ["forest-full", "gaussian", "tree-local"]


@pytest.fixture(params=REPRESENTATIVES)
def representative(request):
    return clone(ESTIMATORS[request.param])


@pytest.fixture(params=FITTED_REPRESENTATIVES)
def fitted_representative(request, _fitted):
    return _fitted[request.param]


@pytest.fixture(scope="module")
def new_pairs():
    """Return pairs of samples that were not seen in training."""
    return np.random.default_rng(11).uniform(0, 4, (300, 2, 4))


# Laws ------------------------------------------------------------------------------------------------


def test_symmetric_bit_for_bit(fitted, new_pairs):
    np.testing.assert_array_equal(fitted.pair_score(new_pairs), fitted.pair_score(new_pairs[:, ::-1]))


def test_saving_changes_nothing_or_is_rejected(fitted, new_pairs, tmp_path):
    parts = fitted.get_params(deep=False)
    if isinstance(parts.get("splitter"), ClassifierSplitter) or isinstance(parts.get("representation"), FunctionTransformer):
        with pytest.raises(TypeError, match="never code"):
            fitted.save(tmp_path / "m.simtree")
        return
    fitted.save(tmp_path / "m.simtree")
    loaded = load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(loaded.pair_score(new_pairs), fitted.pair_score(new_pairs))
    np.testing.assert_array_equal(loaded.pair_score(new_pairs[:, ::-1]), fitted.pair_score(new_pairs))


def test_pairwise_is_pair_by_pair_and_symmetric(fitted, rng):
    A, B = rng.uniform(0, 4, (17, 4)), rng.uniform(0, 4, (23, 4))
    scores = fitted.pairwise_score(A, B)
    assert scores.shape == (17, 23)
    np.testing.assert_array_equal(scores, fitted.pairwise_score(B, A).T)
    i, j = np.divmod(np.arange(17 * 23), 23)
    np.testing.assert_array_equal(scores.ravel(), fitted.pair_score(np.stack([A[i], B[j]], axis=1)))
    np.testing.assert_array_equal(fitted.pairwise_score(A), fitted.pairwise_score(A, A))


def test_pairwise_in_several_blocks_and_threads(fitted, rng, monkeypatch):
    A, B = rng.uniform(0, 4, (31, 4)), rng.uniform(0, 4, (29, 4))
    whole = fitted.pairwise_score(A, B)
    monkeypatch.setattr("simtree.models._base.BLOCK", 64)
    np.testing.assert_array_equal(fitted.pairwise_score(A, B), whole)
    many = clone(fitted).set_params(n_jobs=2)
    many.__dict__.update({name: value for name, value in vars(fitted).items() if name not in fitted.get_params()})
    np.testing.assert_array_equal(many.pairwise_score(A, B), whole)


def sorted_best(scores, k, min_score=-np.inf):
    """Return the best k of all sorted scores of each query, ties by row index, above a minimum score."""
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    best = np.take_along_axis(scores, rows, axis=1)
    lacking = ((0, 0), (0, max(0, k - scores.shape[1])))
    best, rows = np.pad(best, lacking, constant_values=-np.inf), np.pad(rows, lacking, constant_values=-1)
    return np.where(best >= min_score, best, -np.inf), np.where(best >= min_score, rows, -1)


@pytest.fixture(scope="module")
def gallery():
    """Return rows of which many are duplicates or differ in one feature only."""
    rng = np.random.default_rng(12)
    rows = np.round(rng.uniform(0, 4, (120, 4)) * 4) / 4
    rows[40:80] = rows[:40]
    rows[80:, :3] = rows[:40, :3]
    return rng.permutation(rows)


@pytest.fixture(params=["scan", "shortcut"])
def way(request, search_by):
    """Run both search methods, if there are two; bounded search even for few pairs."""
    search_by(bounds=request.param == "shortcut")


@pytest.mark.slow
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("k", [1, 7, 120, 150])
def test_top_k_is_all_scores_sorted(fitted, gallery, new_pairs, k):
    queries = np.concatenate([gallery[:9], new_pairs[:9, 0]])
    scores, indices = fitted.top_k(queries, gallery, k)
    expected = sorted_best(fitted.pairwise_score(queries, gallery), k)
    np.testing.assert_array_equal(scores, expected[0])
    np.testing.assert_array_equal(indices, expected[1])
    one = fitted.top_k(queries[3:4], gallery, k)
    np.testing.assert_array_equal(one[1], indices[3:4])


@pytest.mark.slow
@pytest.mark.usefixtures("way")
def test_top_k_in_several_parts_and_threads(fitted, gallery, new_pairs, monkeypatch):
    queries = new_pairs[:6, 0]
    whole = fitted.top_k(queries, gallery)
    for name, small in SMALL_PARTS.items():
        monkeypatch.setattr(f"simtree.models._search.{name}", small)
    many = clone(fitted).set_params(n_jobs=2)
    many.__dict__.update({name: value for name, value in vars(fitted).items() if name not in fitted.get_params()})
    for model in (fitted, many):
        for one, other in zip(model.top_k(queries, gallery), whole, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("way")
def test_top_k_from_a_score_on(fitted, gallery):
    every = fitted.pairwise_score(gallery[:5], gallery)
    for least in (*np.unique(every)[[0, 1, -2, -1]], np.inf):
        for one, other in zip(fitted.top_k(gallery[:5], gallery, 30, least), sorted_best(every, 30, least), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.usefixtures("way")
def test_top_k_of_single_and_double_precision(fitted, gallery, new_pairs):
    """Scores are those of the values as they are, also where queries and gallery have different types."""
    queries, rows = new_pairs[:6, 0], new_pairs[:, 1]
    expected = fitted.top_k(queries.astype(np.float32).astype(np.float64), rows, 12)
    for one, other in zip(fitted.top_k(queries.astype(np.float32), rows, 12), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_training_curve_is_the_roc_of_the_training_scores(pair_estimator, given_pairs):
    pairs, same = given_pairs
    scores = pair_estimator.fit(pairs, same).pair_score(pairs)
    np.testing.assert_allclose(
        np.column_stack([pair_estimator.roc_.fpr, pair_estimator.roc_.tpr]), oracle.roc(scores, same), atol=1e-15
    )
    assert pair_estimator.auc_ == pytest.approx(oracle.auc(scores, same), abs=1e-12)
    assert pair_estimator.auc_ == pytest.approx(pair_estimator.roc_.auc(), abs=1e-12)
    assert pair_estimator.score(pairs, same) == pytest.approx(pair_estimator.auc_, abs=1e-12)


def test_every_split_gains_and_children_partition_their_cell(fitted_tree):
    cells = fitted_tree.tree_.cells
    internal = np.flatnonzero(cells.inside >= 0)
    assert len(internal) > 2
    assert (cells.gain[internal] > 0).all()
    for counts in (cells.n_same, cells.n_different):
        np.testing.assert_array_equal(counts[cells.inside[internal]] + counts[cells.outside[internal]], counts[internal])
    assert (np.diff(fitted_tree.roc_.fpr) >= 0).all()
    assert (np.diff(fitted_tree.roc_.tpr) >= 0).all()
    np.testing.assert_array_equal(cells.rank[cells.inside[internal]], 2 * cells.rank[internal])
    np.testing.assert_array_equal(cells.rank[cells.outside[internal]], 2 * cells.rank[internal] + 1)


def test_swapping_samples_of_training_pairs_changes_nothing(pair_estimator, given_pairs, new_pairs):
    pairs, same = given_pairs
    swapped = pairs.copy()
    swapped[::3] = swapped[::3, ::-1]
    a = clone(pair_estimator).fit(pairs, same).pair_score(new_pairs)
    np.testing.assert_array_equal(a, clone(pair_estimator).fit(swapped, same).pair_score(new_pairs))


def test_relabelling_classes_changes_nothing(estimator, blobs, new_pairs):
    X, y = blobs
    names = np.array(["zoe", "yann", "xenia", "walt", "vera", "uli"])
    a, b = (clone(estimator).fit(X, labels).pair_score(new_pairs) for labels in (y, names[y]))
    np.testing.assert_array_equal(a, b)


def test_adding_a_constant_to_a_feature_changes_nothing(estimator, blobs):
    """The samples are multiples of 1/64 and the constants are integers: exact in floating point.

    What is fitted to scaled numbers is only nearly the same.
    """
    if not looks_at_single_features(estimator):
        pytest.skip("products, angles and projections change with the origin")
    X, y = blobs
    shift = np.array([8.0, -16.0, 0.0, 32.0])
    a = clone(estimator).fit(X, y).pairwise_score(X)
    b = clone(estimator).fit(X + shift, y).pairwise_score(X + shift)
    splitter = str(getattr(estimator, "splitter", None))
    if "Scaler" in splitter or "inear" in splitter:
        assert (a == b).mean() > 0.99
    else:
        np.testing.assert_array_equal(a, b)


def test_same_seed_same_model(estimator, blobs, new_pairs):
    a, b = (clone(estimator).fit(*blobs).pair_score(new_pairs) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    other = clone(estimator).set_params(random_state=1).fit(*blobs).pair_score(new_pairs)
    assert not np.array_equal(a, other)


# One answer by every way of asking -------------------------------------------------------------------


@pytest.mark.slow
def test_pairs_as_arrays_and_as_row_indices(pair_estimator, blobs):
    """Rounds are fixed: what early stopping holds out follows from the samples that pairs share, which arrays do not tell."""
    X, y = blobs
    if "early_stopping" in pair_estimator.get_params(deep=False):
        pair_estimator = clone(pair_estimator).set_params(early_stopping=False)
    index = PairSampler(y).sample(500, np.random.default_rng(0))
    rows = np.column_stack([index.first, index.second])
    stacked = X[rows]
    by_rows = clone(pair_estimator).fit(X, index.same, pairs=rows)
    by_array = clone(pair_estimator).fit(stacked, np.where(index.same, 1, -1))
    by_table = clone(pair_estimator).set_params(preprocessor=X).fit(rows, index.same.astype(int))
    by_function = clone(pair_estimator).set_params(preprocessor=lambda ids: X[ids]).fit(rows, index.same)
    scores = by_rows.pair_score(rows, X)
    np.testing.assert_array_equal(scores, by_array.pair_score(stacked))
    np.testing.assert_array_equal(scores, by_table.pair_score(rows))
    np.testing.assert_array_equal(scores, by_table.pair_score(stacked))
    np.testing.assert_array_equal(scores, by_function.pair_score(rows))
    assert by_rows.score(X, index.same, pairs=rows) == by_array.score(stacked, index.same) == by_table.score(rows, index.same)


@pytest.mark.parametrize("name", sorted(set(OTHERS) - {"auto", "posterior", "stacked"}))
def test_others_learn_the_same_from_pairs_of_samples_and_of_row_indices(name, blobs):
    """A row counts as often as it occurs in a pair.

    (A representation would see each row of X once, and the folds of a stack keep rows apart that pairs of samples do not name.)
    """
    X, y = blobs
    model = clone(OTHERS[name])
    if "representation" in model.get_params(deep=False):
        model.set_params(representation=None)
    index = PairSampler(y).sample(500, np.random.default_rng(0), positive_fraction=0.3)
    rows = np.column_stack([index.first, index.second])
    by_rows, by_array = clone(model).fit(X, index.same, pairs=rows), clone(model).fit(X[rows], index.same)
    scores = by_rows.pair_score(rows, X)
    np.testing.assert_allclose(by_array.pair_score(X[rows]), scores, rtol=1e-9, atol=1e-9)
    assert by_array.threshold_ == pytest.approx(by_rows.threshold_, rel=1e-9)


def test_float32_rows_score_as_their_float64_values(fitted, new_pairs):
    single = new_pairs.astype(np.float32)
    np.testing.assert_array_equal(fitted.pair_score(single), fitted.pair_score(single.astype(np.float64)))


def test_order_and_subsets_do_not_matter(fitted, new_pairs):
    order = np.random.default_rng(0).permutation(len(new_pairs))
    scores = fitted.pair_score(new_pairs)
    np.testing.assert_array_equal(fitted.pair_score(new_pairs[order]), scores[order])
    one_by_one = np.concatenate([fitted.pair_score(pair[None]) for pair in new_pairs[:40]])
    np.testing.assert_array_equal(one_by_one, scores[:40])


def test_memory_layout_does_not_matter(estimator, blobs, new_pairs):
    X, y = blobs
    wide = np.zeros((len(X), 8))
    wide[:, ::2] = X
    for variant in (np.asfortranarray(X), wide[:, ::2], X.tolist()):
        np.testing.assert_array_equal(
            clone(estimator).fit(variant, y).pair_score(np.asfortranarray(new_pairs)),
            clone(estimator).fit(X, y).pair_score(new_pairs),
        )


def test_distance_is_the_maximum_minus_the_score(fitted, new_pairs):
    scores = fitted.pair_score(new_pairs)
    np.testing.assert_array_equal(fitted.decision_function(new_pairs), scores)
    distances = fitted.pair_distance(new_pairs)
    assert distances.min() >= 0
    assert np.ptp(scores + distances) < 1e-12
    metric = fitted.get_metric()
    assert [metric(u, v) for u, v in new_pairs[:20]] == distances[:20].tolist()


@pytest.mark.slow
def test_metric_is_frozen_can_be_pickled_and_used(fitted_learner, blobs, new_pairs):
    X, y = blobs
    metric = pickle.loads(pickle.dumps(fitted_learner.get_metric()))
    before = [metric(u, v) for u, v in new_pairs[:10]]
    refitted = clone(fitted_learner)
    refitted.fit(X, y)
    kept = refitted.get_metric()
    refitted.set_params(random_state=5).fit(X[:60], y[:60])
    assert [kept(u, v) for u, v in new_pairs[:10]] == before
    assert len(DBSCAN(metric=metric, eps=1.0).fit(X[:6]).labels_) == 6
    neighbours = NearestNeighbors(n_neighbors=3, metric=metric, algorithm="brute").fit(X[:12]).kneighbors(X[:3])[0]
    np.testing.assert_array_equal(
        neighbours, np.sort(fitted_learner._max_score() - fitted_learner.pairwise_score(X[:3], X[:12]))[:, :3]
    )


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros(9), np.full(4, np.nan), np.full(4, np.inf), np.zeros((2, 2))])
def test_metric_rejects_invalid_samples(fitted_representative, bad):
    metric, takes_missing = fitted_representative.get_metric(), fitted_representative._takes_missing()
    if takes_missing and np.isnan(bad).all():
        assert np.isfinite(metric(bad, bad))
        return
    numbers = "numbers, NaN where one is missing," if takes_missing else "finite numbers"
    with pytest.raises(ValueError, match=f"give two samples of 4 {numbers} each"):
        metric(bad, bad)


def test_predict_accepts_from_the_threshold_on(fitted, new_pairs):
    scores = fitted.pair_score(new_pairs)
    for threshold in np.unique(scores)[:5]:
        fitted.set_threshold(threshold)
        np.testing.assert_array_equal(fitted.predict(new_pairs), np.where(scores >= threshold, 1, -1))


def test_threshold_maximises_tpr_minus_fpr_on_the_training_pairs(pair_estimator, given_pairs):
    pairs, same = given_pairs
    if hasattr(pair_estimator, "early_stopping"):  # which would hold some pairs out, and choose the threshold on these
        pair_estimator.set_params(early_stopping=False)
    pair_estimator.fit(pairs, same)
    scores = pair_estimator.pair_score(pairs)
    reached = [(scores[same] >= t).mean() - (scores[~same] >= t).mean() for t in np.unique(scores)]
    accepted = scores >= pair_estimator.threshold_
    assert accepted[same].mean() - accepted[~same].mean() == pytest.approx(max(reached))


def test_apply_gives_terminal_cells(fitted_learner, new_pairs):
    trees = getattr(fitted_learner, "trees_", None) or [fitted_learner.tree_]
    cells = fitted_learner.apply(new_pairs).reshape(len(new_pairs), len(trees))
    for tree, column in zip(trees, cells.T, strict=True):
        assert (tree.cells.inside[column] == -1).all()


def test_score_of_a_tree_is_that_of_its_cell(fitted_tree, new_pairs):
    np.testing.assert_array_equal(fitted_tree.tree_.scores[fitted_tree.apply(new_pairs)], fitted_tree.pair_score(new_pairs))


def test_importances_are_shares_by_feature(fitted_learner):
    if not hasattr(fitted_learner, "feature_importances_"):
        pytest.skip("a classifier of the user's does not say")
    shares = fitted_learner.feature_importances_
    assert shares.shape == (4,)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)


def test_a_useless_feature_has_little_importance(estimator, blobs):
    if not looks_at_single_features(estimator):
        pytest.skip("a coordinate of all features gives each its share")
    X, y = blobs
    X = np.column_stack([X[:, :3], np.random.default_rng(0).normal(size=len(X)), np.ones(len(X))])
    if not hasattr(estimator.set_params(max_features=None).fit(X, y), "feature_importances_"):
        pytest.skip("a classifier of the user's does not say")
    shares = estimator.feature_importances_
    assert shares[4] == 0.0
    assert shares[3] < shares[:3].mean()


# scikit-learn ----------------------------------------------------------------------------------------


def test_pickle_and_clone(fitted, new_pairs):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.pair_score(new_pairs), fitted.pair_score(new_pairs))
    assert not hasattr(clone(fitted), "threshold_")


def test_scoring_changes_no_state(fitted_learner, new_pairs):
    before = pickle.dumps(vars(fitted_learner))
    for method in (fitted_learner.pair_score, fitted_learner.predict, fitted_learner.pair_distance, fitted_learner.apply):
        method(new_pairs)
    fitted_learner.top_k(new_pairs[:3, 0], new_pairs[:, 1])
    assert pickle.dumps(vars(fitted_learner)) == before


def test_pipeline_grid_search_and_cross_validation(representative, blobs):
    X, y = blobs
    model = make_pipeline(StandardScaler(), representative.set_params(n_pairs=500))
    assert 0.5 < cross_val_score(model, X, y, cv=3).mean() <= 1
    search = GridSearchCV(representative, {"max_depth": [1, 3]}, cv=3).fit(X, y)
    assert search.best_params_["max_depth"] in (1, 3)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_data_frames(representative, blobs, library):
    if library is pl.DataFrame and parse_version(sklearn.__version__) < parse_version("1.9"):
        pytest.skip("scikit-learn before 1.9 does not see the names of present polars frames")
    X, y = blobs
    frame = library({f"feature {j}": X[:, j] for j in range(4)})
    a = clone(representative).fit(frame, y)
    assert list(a.feature_names_in_) == [f"feature {j}" for j in range(4)]
    rows = np.array([[0, 1], [2, 3]])
    np.testing.assert_array_equal(a.pair_score(rows, frame), clone(representative).fit(X, y).pair_score(rows, X))
    for one, other in zip(a.top_k(frame[:3], frame), clone(representative).fit(X, y).top_k(X[:3], X), strict=True):
        np.testing.assert_array_equal(one, other)
    unknown = library({f"other {j}": X[:, j] for j in range(4)})
    for ask in (lambda: a.pair_score(rows, unknown), lambda: a.top_k(frame, unknown), lambda: a.top_k(unknown, frame)):
        with pytest.raises(ValueError, match="feature names"):
            ask()


def test_pairs_without_feature_names_do_not_warn(estimator, blobs, new_pairs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abcd"))
    np.testing.assert_array_equal(
        clone(estimator).fit(frame, y).pair_score(new_pairs), clone(estimator).fit(X, y).pair_score(new_pairs)
    )


def test_no_pairs_no_scores(fitted):
    assert fitted.pair_score(np.zeros((0, 2, 4))).shape == (0,)
    assert fitted.pair_score(np.zeros((0, 2), int), np.zeros((3, 4))).shape == (0,)


def test_labels_of_a_data_frame(representative, blobs, new_pairs):
    X, y = blobs
    labels = pd.Series(y).map(lambda k: f"person {k}").astype("category")
    a = clone(representative).fit(X, labels).pair_score(new_pairs)
    np.testing.assert_array_equal(a, clone(representative).fit(X, y).pair_score(new_pairs))


# Bad input -------------------------------------------------------------------------------------------


SCORES = ["pair_score", "pair_distance", "decision_function", "predict", "pairwise_score", "top_k"]


@pytest.mark.parametrize("method", [*SCORES, "apply", "export_text", "get_metric"])
def test_unfitted(representative, method, new_pairs):
    if not hasattr(representative, method):
        pytest.skip(f"{type(representative).__name__} has no {method}")
    points = new_pairs[:, 0]
    special = {"export_text": (), "get_metric": (), "pairwise_score": (points,), "top_k": (points, points)}
    with pytest.raises(NotFittedError):
        getattr(representative, method)(*special.get(method, (new_pairs,)))


@pytest.mark.parametrize("attribute", ["roc_", "auc_", "feature_importances_"])
def test_unfitted_attributes(representative, attribute):
    with pytest.raises(NotFittedError):
        getattr(representative, attribute)


def test_unfitted_score_and_threshold(representative, blobs):
    with pytest.raises(NotFittedError):
        representative.score(*blobs)
    with pytest.raises(NotFittedError):
        representative.set_threshold(1.0)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (np.zeros((4, 2)), [1, 1, 1, 1], ValueError, "y has 1 class; different pairs need at least 2 classes"),
        (np.zeros((3, 2)), [1, 2, 3], ValueError, "no class with two members"),
        (np.zeros((4, 2)), None, ValueError, "requires y to be passed"),
        (np.zeros((4, 2)), [1, 2, 1], ValueError, "inconsistent numbers of samples"),
        (np.full((4, 2), np.nan), [1, 1, 2, 2], ValueError, "contains NaN|X has no value in any of its 2 columns"),
        (np.zeros((4, 2)), [1, 1, np.nan, 2], ValueError, "y .*missing"),
        ([[0.0], [np.inf], [1.0], [1.0]], [1, 1, 2, 2], ValueError, "contains infinity"),
        ([["a"], ["b"], ["c"], ["d"]], [1, 1, 2, 2], ValueError, "X has text in column 0"),
        (np.zeros((4, 2, 3)), [1, 1, 1, 1], ValueError, "4 same pairs only"),
        (np.zeros((4, 2, 3)), [0, 0, 0, 0], ValueError, "4 different pairs only"),
        (np.zeros((4, 2, 3)), [0, 1, 2, 1], ValueError, "bool, 0/1 or -1/"),
        (np.zeros((4, 2, 3)), [0, 1, 1], ValueError, "one label for each of the 4 pairs"),
        (np.zeros((4, 3, 3)), [0, 1, 1, 1], ValueError, r"\(4, 3, 3\); it must be \(n_pairs, 2, n_features\)"),
        (np.full((4, 2, 3), np.nan), [0, 1, 1, 1], ValueError, "contains NaN|X has no value"),
        (np.zeros((0, 2, 3)), [], ValueError, "0 sample"),
        (np.zeros(4), [0, 1, 1, 1], ValueError, "Reshape your data"),
    ],
)
def test_bad_training_data(representative, X, y, error, message):
    with pytest.raises(error, match=message):
        representative.fit(X, y)
    assert not [name for name in vars(representative) if name in ("tree_", "trees_", "threshold_")]


@pytest.mark.parametrize(
    ("rows", "y", "error", "message"),
    [
        ([[0, 1], [2, 900]], [1, 0], IndexError, "row number 900; X has 110 rows"),
        ([[0, 1], [2, 3]], [1, 0, 1], ValueError, "one label for each of the 2 pairs"),
        ([[0.0, 1.0], [2.0, 3.0]], [1, 0], TypeError, "must be integers"),
        ([[0, 1, 2]], [1], ValueError, r"\(n_pairs, 2\)"),
        ([[0, 1], [4, 4]], [0, 1], ValueError, "pairs holds row 4 with itself; remove such pairs"),
    ],
)
def test_bad_training_rows(representative, blobs, rows, y, error, message):
    with pytest.raises(error, match=message):
        representative.fit(blobs[0], y, pairs=rows)


@pytest.mark.parametrize(
    ("pairs", "X", "error", "message"),
    [
        (np.zeros((3, 2, 5)), None, ValueError, "pairs has 5 features, but .* is expecting 4 features"),
        (np.zeros((3, 4)), None, ValueError, r"\(3, 4\); give an array of shape \(n_pairs, 2, n_features\)"),
        (np.zeros((3, 3, 4)), None, ValueError, r"\(3, 3, 4\)"),
        (np.full((3, 2, 4), np.inf), None, ValueError, "contains infinity"),
        ([[0, 7]], np.zeros((3, 4)), IndexError, "row number 7; X has 3 rows"),
        ([[0, 1]], np.zeros((3, 5)), ValueError, "expecting 4 features"),
        ([[0.5, 1]], np.zeros((3, 4)), TypeError, "float64; row numbers of pairs must be integers"),
    ],
)
def test_bad_pairs(fitted_representative, pairs, X, error, message):
    with pytest.raises(error, match=message):
        fitted_representative.pair_score(pairs, X)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((np.zeros((2, 5)), np.zeros((3, 4))), ValueError, "expecting 4 features"),
        ((np.zeros((2, 4)), np.zeros((3, 5))), ValueError, "expecting 4 features"),
        ((np.zeros(4), np.zeros((3, 4))), ValueError, "Reshape your data"),
        ((np.full((2, 4), np.inf), np.zeros((3, 4))), ValueError, "contains infinity"),
        ((np.zeros((2, 4)), np.full((3, 4), np.inf)), ValueError, "contains infinity"),
        ((np.zeros((2, 4)), np.zeros((0, 4))), ValueError, "0 sample"),
        ((np.zeros((2, 4)), np.zeros((3, 4)), 0), ValueError, "k=0 is out of range; give an int of at least 1"),
        ((np.zeros((2, 4)), np.zeros((3, 4)), 2.0), TypeError, "k=2.0 is not an integer"),
        ((np.zeros((2, 4)), np.zeros((3, 4)), 2, "high"), TypeError, "min_score='high' is not a number"),
        ((np.zeros((2, 4)), np.zeros((3, 4)), 2, np.nan), ValueError, "min_score=nan"),
    ],
)
def test_bad_search(fitted_representative, arguments, error, message):
    with pytest.raises(error, match=message):
        fitted_representative.top_k(*arguments)


def test_bad_threshold(fitted_representative):
    with pytest.raises(TypeError, match="threshold='high' is not a number"):
        fitted_representative.set_threshold("high")
    with pytest.raises(ValueError, match="threshold=nan"):
        fitted_representative.set_threshold(float("nan"))
