"""What metric-learn's public tests ask of a classifier of pairs, asked of every similarity; and the differences.

Behaviours are those that the test suite of metric-learn 0.7 checks for its learners of pairs; the tests are our own. The
differences at the end are those of the table in docs/metric_learn.md.
"""

from __future__ import annotations

import copy
import re
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.exceptions import NotFittedError
from sklearn.metrics import (
    accuracy_score,
    get_scorer,
    precision_score,
    roc_auc_score,
)
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

from simtree import (
    AutoSimilarity,
    DistanceSimilarity,
    GaussianSimilarity,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
)
from simtree.pairs import PairSampler

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "metric_learn.md"
# One of each class that learns from pairs without folds.
LEARNERS = {
    "tree": SimilarityTree(max_depth=4, random_state=0),
    "forest": SimilarityForest(n_estimators=4, max_depth=4, random_state=0),
    "ranks": SimilarityForest(n_estimators=3, max_depth=3, aggregation="median_rank", random_state=0),
    "gaussian": GaussianSimilarity(),
    "distance": DistanceSimilarity(metric="euclidean"),
    "voting": VotingSimilarity([("d", DistanceSimilarity()), ("t", SimilarityTree(max_depth=3, random_state=0))]),
}
# These make folds, which depend on the samples that pairs share; they are asked all that comes after fit.
WITH_FOLDS = {
    "stacked": StackedSimilarity([("d", DistanceSimilarity()), ("g", GaussianSimilarity())], random_state=0),
    "auto": AutoSimilarity(target_fpr=0.5, time_budget=0.0, random_state=0),
}
NAMES = sorted(LEARNERS | WITH_FOLDS)
STRATEGIES = [
    {"strategy": "accuracy"},
    *({"strategy": name, "min_rate": rate} for name, rate in product(("max_tpr", "max_tnr"), (0.0, 0.2, 0.8, 1.0))),
    *({"strategy": "f_beta", "beta": beta} for beta in (0.0, 0.1, 1.0, 5.0)),
]


def of_strategy(options):
    return "-".join(str(value) for value in options.values())


@pytest.fixture(scope="module")
def data():
    """Return samples with row numbers of pairs and their labels, +1 and -1."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 6)
    X = 2 * rng.normal(size=(12, 3))[y] + rng.normal(size=(72, 3))
    drawn = PairSampler(y).sample(300, rng)
    return X, np.column_stack([drawn.first, drawn.second]), np.where(drawn.same, 1, -1), y


@pytest.fixture(scope="module")
def _fitted(data):
    X, rows, signs, _ = data
    return {name: clone(model).fit(X[rows[:200]], signs[:200]) for name, model in (LEARNERS | WITH_FOLDS).items()}


@pytest.fixture(params=NAMES)
def fitted(request, _fitted):
    return copy.deepcopy(_fitted[request.param])


@pytest.fixture(params=sorted(LEARNERS))
def learner(request):
    return clone(LEARNERS[request.param])


@pytest.fixture
def held_out(data):
    X, rows, signs, _ = data
    return X[rows[200:]], signs[200:]


# --- predictions


def test_predictions_are_signs_that_a_score_separates(fitted, held_out):
    scores, predicted = fitted.pair_score(held_out[0]), fitted.predict(held_out[0])
    assert set(predicted) == {-1, 1}
    assert scores[predicted == -1].max() < scores[predicted == 1].min()
    np.testing.assert_array_equal(fitted.decision_function(held_out[0]), scores)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, pairs, y: model.pair_score(pairs),
        lambda model, pairs, y: model.pair_distance(pairs),
        lambda model, pairs, y: model.decision_function(pairs),
        lambda model, pairs, y: model.predict(pairs),
        lambda model, pairs, y: model.get_metric(),
        lambda model, pairs, y: model.score(pairs, y),
        lambda model, pairs, y: model.set_threshold(0.5),
        lambda model, pairs, y: model.calibrate_threshold(pairs, y, strategy="accuracy"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_works_before_fit(name, ask, held_out):
    model = (LEARNERS | WITH_FOLDS)[name]
    with pytest.raises(NotFittedError):
        ask(clone(model), *held_out)


def test_score_is_the_auc(fitted, held_out):
    assert fitted.score(*held_out) == pytest.approx(roc_auc_score(held_out[1], fitted.decision_function(held_out[0])))


def test_toy_accuracy(held_out):
    """A baseline by Euclidean distance, whose decisions can be seen: pairs nearer than the threshold are the same."""
    model = DistanceSimilarity(metric="euclidean").fit(*held_out)
    line = np.arange(4.0)[:, None] * np.array([1.0, 0.0, 0.0])
    pairs = line[[[0, 1], [0, 3], [1, 2], [2, 3]]]
    model.set_threshold(model.pair_score(np.array([[line[0], 1.5 * line[1]]]))[0])
    np.testing.assert_array_equal(model.predict(pairs), [1, -1, 1, 1])
    assert accuracy_score([-1, 1, 1, -1], model.predict(pairs)) == 0.25


# --- thresholds


@pytest.mark.parametrize("options", STRATEGIES, ids=of_strategy)
def test_a_calibrated_threshold_is_finite_and_warns_of_nothing(fitted, held_out, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.calibrate_threshold(*held_out, **options)
        fitted.predict(held_out[0])
    assert np.isfinite(fitted.threshold_)


def value_of(options, true, false, n_same, n_different):
    """Return what a strategy maximises, from the numbers of same and of different pairs that are accepted."""
    tpr, tnr = true / n_same, 1 - false / n_different
    if options["strategy"] == "accuracy":
        return (true + n_different - false) / (n_same + n_different)
    if options["strategy"] == "f_beta":
        precision, weight = true / max(true + false, 1), options["beta"] ** 2
        return 0.0 if true == 0 else (1 + weight) * precision * tpr / (weight * precision + tpr)
    rate, other = (tpr, tnr) if options["strategy"] == "max_tpr" else (tnr, tpr)
    return rate if other >= options["min_rate"] - 1e-12 else -1.0


@pytest.mark.parametrize("options", STRATEGIES, ids=of_strategy)
@pytest.mark.parametrize("duplicates", [False, True])
def test_no_other_threshold_is_better(fitted, held_out, options, duplicates):
    pairs, y = held_out
    if duplicates:
        pairs, y = np.concatenate([pairs, pairs[:20]]), np.concatenate([y, y[:20]])
    n_same, n_different = (y == 1).sum(), (y == -1).sum()

    def value(accepted):
        return value_of(options, (accepted & (y == 1)).sum(), (accepted & (y == -1)).sum(), n_same, n_different)

    scores = fitted.pair_score(pairs)
    reached = value(fitted.calibrate_threshold(pairs, y, **options).predict(pairs) == 1)
    others = [value(scores >= t) for t in [*np.unique(scores), scores.max() + 1]]
    assert reached == pytest.approx(max(others))
    assert len(set(others)) > 1


def test_among_the_most_precise_thresholds_the_one_with_the_highest_recall(fitted, held_out):
    pairs, y = held_out
    fitted.calibrate_threshold(pairs, y, strategy="f_beta", beta=0)
    scores = fitted.pair_score(pairs)
    precisions = {t: precision_score(y, np.where(scores >= t, 1, -1), zero_division=0.0) for t in np.unique(scores)}
    assert fitted.threshold_ == min(t for t, precision in precisions.items() if precision >= max(precisions.values()) - 1e-12)


@pytest.mark.parametrize(
    ("signs", "options", "accepted"),
    [
        ([1, 1, 1, -1, -1, -1, -1], {"strategy": "accuracy"}, False),
        ([1, 1, 1, 1, -1, -1, -1], {"strategy": "accuracy"}, True),
        ([1, 1, 1, -1, -1, -1, -1], {"strategy": "max_tpr", "min_rate": 0.0}, True),
        ([1, 1, 1, -1, -1, -1, -1], {"strategy": "max_tnr", "min_rate": 0.0}, False),
        ([1, -1, 1, -1, 1, -1], {"strategy": "f_beta", "beta": 1.0}, True),
    ],
)
def test_scores_in_the_wrong_order_accept_all_pairs_or_none(signs, options, accepted):
    """The same pairs are those that are farthest apart."""
    far = np.arange(len(signs), dtype=float)[::-1]
    pairs = np.stack([np.zeros((len(signs), 1)), far[:, None]], axis=1)
    model = DistanceSimilarity(metric="euclidean").fit(pairs, signs)
    assert (model.calibrate_threshold(pairs, signs, **options).predict(pairs) == (1 if accepted else -1)).all()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"strategy": "weird"}, "strategy='weird'"),
        *(
            ({"strategy": name, "min_rate": rate}, "min_rate")
            for name, rate in product(("max_tpr", "max_tnr"), ("weird", -0.2, 1.2, 3 + 2j))
        ),
        ({"strategy": "max_tnr", "min_rate": None}, "min_rate"),
        *(({"strategy": "f_beta", "beta": beta}, "beta") for beta in (None, "weird", 3 + 2j)),
    ],
)
def test_bad_parameters_are_named_before_pairs_are_looked_at(fitted, options, named):
    before = fitted.threshold_
    with pytest.raises((ValueError, TypeError), match=re.escape(named)):
        fitted.calibrate_threshold("not pairs", "no labels", **options)
    assert fitted.threshold_ == before


def test_set_threshold(fitted, held_out):
    threshold = float(np.median(fitted.pair_score(held_out[0])))
    assert fitted.set_threshold(threshold) is fitted
    assert fitted.threshold_ == threshold
    np.testing.assert_array_equal(fitted.predict(held_out[0]) == 1, fitted.pair_score(held_out[0]) >= threshold)


# --- distances


def test_pair_distance_orders_pairs_as_pair_score_does_and_is_finite(fitted, held_out):
    X = held_out[0].reshape(-1, 3)[:20]
    pairs = np.array(list(product(X, X)))
    distances, scores = fitted.pair_distance(pairs), fitted.pair_score(pairs)
    assert distances.shape == (400,)
    assert np.isfinite(distances).all()
    np.testing.assert_allclose(distances + scores, distances[0] + scores[0])
    square = distances.reshape(20, 20)
    np.testing.assert_array_equal(square, square.T)
    np.testing.assert_allclose(square, distances[0] + scores[0] - fitted.pairwise_score(X))


def test_get_metric_is_the_pair_distance_and_serves_scikit_learn(fitted, held_out):
    X = held_out[0].reshape(-1, 3)[:12]
    metric = fitted.get_metric()
    for u, v in product(X[:4], X[:4]):
        assert metric(u, v) == metric(v, u) == pytest.approx(fitted.pair_distance([[u, v]])[0])
        assert metric(u, v) >= 0
        assert metric(u.tolist(), v.tolist()) == metric(u, v)
    DBSCAN(metric=metric).fit(X)


def test_get_metric_does_not_change_with_the_model(learner, data):
    X, rows, signs, _ = data
    metric = learner.fit(X[rows], signs).get_metric()
    before = metric(X[0], X[9])
    learner.fit(np.sin(X)[rows], signs)
    assert metric(X[0], X[9]) == before


@pytest.mark.parametrize("bad", [([1.0] * 4, [1.0] * 3), (np.ones((4, 3)), np.ones((4, 3))), ([1.0] * 4, [2.0] * 4)])
def test_get_metric_refuses_other_vectors(fitted, bad):
    with pytest.raises(ValueError, match=r"give two samples of 3|inhomogeneous"):
        fitted.get_metric()(*bad)


# --- input


@pytest.mark.parametrize("as_input", [np.ndarray.tolist, lambda rows: tuple(map(tuple, rows.tolist())), pd.DataFrame])
def test_pairs_of_identifiers_may_be_any_array_like(learner, data, as_input):
    X, rows, signs, _ = data
    learner.set_params(preprocessor=X)
    expected = clone(learner).fit(rows, signs).decision_function(rows)
    given = as_input(rows)
    model = learner.fit(given, signs.tolist())
    np.testing.assert_array_equal(model.decision_function(given), expected)
    assert model.score(given, tuple(signs)) == pytest.approx(roc_auc_score(signs, expected))
    assert set(model.predict(given)) <= {-1, 1}


def test_pairs_of_samples_may_be_nested_lists_or_tuples(learner, data):
    X, rows, signs, _ = data
    expected = clone(learner).fit(X[rows], signs).pair_score(X[rows[:9]])
    for pairs in (X[rows].tolist(), tuple(tuple(map(tuple, pair)) for pair in X[rows].tolist())):
        np.testing.assert_array_equal(clone(learner).fit(pairs, signs.tolist()).pair_score(pairs[:9]), expected)


@pytest.mark.parametrize("as_preprocessor", [np.asarray, np.ndarray.tolist, lambda X: lambda ids: X[ids]])
def test_a_preprocessor_looks_up_what_pairs_of_samples_would_be(learner, data, as_preprocessor):
    X, rows, signs, _ = data
    plain = clone(learner).fit(X[rows], signs)
    looked_up = learner.set_params(preprocessor=as_preprocessor(X)).fit(rows, signs)
    for method in ("pair_score", "pair_distance", "decision_function", "predict"):
        np.testing.assert_allclose(getattr(looked_up, method)(rows), getattr(plain, method)(X[rows]), rtol=1e-9)
        np.testing.assert_allclose(getattr(looked_up, method)(X[rows]), getattr(plain, method)(X[rows]), rtol=1e-9)


@pytest.mark.parametrize(
    ("preprocessor", "error", "message"),
    [
        (lambda ids: np.ones((len(ids), 2, 2)), ValueError, "preprocessor returned shape"),
        (np.ones((3, 3)), IndexError, "row number"),
        (np.ones(80), ValueError, "preprocessor has shape"),
    ],
)
def test_a_bad_preprocessor_is_named(learner, data, preprocessor, error, message):
    _, rows, signs, _ = data
    with pytest.raises(error, match=message):
        learner.set_params(preprocessor=preprocessor).fit(rows, signs)


@pytest.mark.parametrize(
    ("pairs", "labels", "message"),
    [
        (np.zeros((4, 5, 3)), [1, 1, -1, -1], r"must be \(n_pairs, 2, n_features\)"),
        (np.zeros((4, 2, 3)) * 1j, [1, 1, -1, -1], "Complex data not supported"),
        (np.full((4, 2, 3), "word"), [1, 1, -1, -1], "word"),
        (np.full((4, 2, 3), np.nan), [1, 1, -1, -1], "NaN|X has no value"),
        (np.zeros((4, 2, 0)), [1, 1, -1, -1], r"0 feature"),
        (np.zeros((4, 2, 3)), [1, 2, -1, -1], "pair labels"),
        (np.zeros((4, 2, 3)), [1, 1, 1], "one label for each of the 4 pairs"),
        (np.zeros((4, 2, 3)), [1, 1, 1, 1], "give both same and different pairs"),
    ],
)
def test_bad_pairs_and_labels(learner, pairs, labels, message):
    with pytest.raises(ValueError, match=message):
        learner.fit(pairs, labels)
    assert not hasattr(learner, "threshold_")


@pytest.mark.parametrize("pairs", [np.zeros((2, 3)), np.zeros(3), np.zeros((4, 3, 3))])
def test_scoring_takes_pairs_only(fitted, pairs):
    for method in (fitted.pair_score, fitted.pair_distance, fitted.predict):
        with pytest.raises(ValueError, match=r"pairs has shape|Expected 2D array"):
            method(pairs)


def test_one_feature(learner, data):
    X, rows, signs, _ = data
    pairs = X[rows][:, :, :1]
    assert 0.5 < learner.fit(pairs, signs).score(pairs, signs) <= 1.0


# --- scikit-learn


@pytest.mark.parametrize("scoring", [None, "accuracy", "f1", "roc_auc", "average_precision", "precision", "recall"])
def test_scorers_of_scikit_learn(learner, data, scoring):
    X, rows, signs, _ = data
    pairs = X[rows]
    cv = KFold(3)
    found = cross_val_score(learner, pairs, signs, scoring=scoring, cv=cv)
    scorer = (lambda model, p, y: model.score(p, y)) if scoring is None else get_scorer(scoring)
    by_hand = [
        scorer(clone(learner).fit(pairs[train], signs[train]), pairs[test], signs[test]) for train, test in cv.split(pairs)
    ]
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, by_hand)


def test_cross_val_predict(learner, data):
    X, rows, signs, _ = data
    assert set(cross_val_predict(learner, X[rows], signs, cv=KFold(3))) == {-1, 1}


def test_init_sets_parameters_only_and_fit_returns_self_and_leaves_them(learner, data):
    X, rows, signs, _ = data
    assert vars(learner).keys() == learner.get_params(deep=False).keys()
    before = {name: repr(value) for name, value in learner.get_params().items()}
    assert learner.fit(X[rows], signs) is learner
    assert {name: repr(value) for name, value in learner.get_params().items()} == before


def test_asking_changes_no_attribute(fitted, held_out):
    before = copy.deepcopy(vars(fitted)).keys()
    public = {name for name in vars(fitted) if not name.startswith("_")}
    for ask in (fitted.predict, fitted.pair_score, fitted.pair_distance, fitted.decision_function):
        ask(held_out[0])
    fitted.score(*held_out)
    fitted.get_metric()
    assert vars(fitted).keys() == before
    assert {name for name in vars(fitted) if not name.startswith("_")} == public


def test_same_seed_same_scores(learner, data):
    X, rows, signs, _ = data
    a, b = (clone(learner).fit(X[rows], signs).pair_score(X[rows]) for _ in range(2))
    np.testing.assert_array_equal(a, b)


# --- differences, each with its row in docs/metric_learn.md


def differs_thresholds(model, pairs, y, samples):
    """Thresholds are on the scale of scores."""
    model.set_threshold(float(np.median(model.pair_score(pairs))))
    np.testing.assert_array_equal(model.predict(pairs) == 1, model.pair_score(pairs) >= model.threshold_)


def differs_default_strategy(model, pairs, y, samples):
    """Without a strategy a guarantee is asked for, and refused where identities are unknown or too few."""
    with pytest.raises(ValueError, match=r"cannot be guaranteed for pairs of unknown identities"):
        model.calibrate_threshold(pairs, y)
    with pytest.raises(ValueError, match=r"max_fpr=0\.001"):
        model.calibrate_threshold(pairs, y, identities=np.arange(2 * len(pairs)).reshape(-1, 2))


def differs_min_rate(model, pairs, y, samples):
    """Without min_rate "max_tpr" takes max_fpr."""
    model.calibrate_threshold(pairs, y, strategy="max_tpr", max_fpr=0.3, confidence=None)
    assert model.threshold_report_.fpr <= 0.3


def differs_negative_beta(model, pairs, y, samples):
    """A negative beta, which is the same as its absolute value, is refused."""
    with pytest.raises(ValueError, match="beta=-1 is out of range"):
        model.calibrate_threshold(pairs, y, strategy="f_beta", beta=-1)


def differs_calibration_params(model, pairs, y, samples):
    """Fit takes no calibration_params."""
    with pytest.raises(TypeError, match="calibration_params"):
        model.fit(pairs, y, calibration_params={"strategy": "accuracy"})


def differs_distance(model, pairs, y, samples):
    """The distance is the highest score minus the score, and of a sample to itself it may be positive."""
    total = model.pair_distance(pairs) + model.pair_score(pairs)
    np.testing.assert_allclose(total, total[0])
    assert model.pair_distance(pairs).min() >= 0.0


def differs_metric_vectors(model, pairs, y, samples):
    """The function of get_metric takes two vectors, without squared=."""
    metric = model.get_metric()
    with pytest.raises(ValueError, match="give two samples"):
        metric(samples[:1], samples[1:2])
    with pytest.raises(TypeError, match="squared"):
        metric(samples[0], samples[1], squared=True)


def differs_transform(model, pairs, y, samples):
    """There is no linear map of samples."""
    for name in ("transform", "components_", "get_mahalanobis_matrix", "score_pairs"):
        assert not hasattr(model, name)


def differs_labels(model, pairs, y, samples):
    """Labels of pairs may also be bool or 0/1."""
    by_sign = model.score(pairs, y)
    assert model.score(pairs, y == 1) == model.score(pairs, (y == 1).astype(int)) == by_sign


def differs_errors(model, pairs, y, samples):
    """Values of a wrong type raise TypeError."""
    for value in ("ABC", None, [1, 2], True, pairs):
        with pytest.raises(TypeError, match="threshold"):
            model.set_threshold(value)


def differs_equal_samples(model, pairs, y, samples):
    """Pairs of two equal samples are allowed."""
    equal = pairs.copy()
    equal[:3, 1] = equal[:3, 0]
    assert np.isfinite(model.score(equal, y))


DIFFERENCES = {name.removeprefix("differs_"): check for name, check in globals().items() if name.startswith("differs_")}


@pytest.mark.parametrize("difference", sorted(DIFFERENCES))
def test_difference(fitted, held_out, data, difference):
    DIFFERENCES[difference](fitted, *held_out, data[0])


def test_first_threshold(learner, data):
    """It maximises TPR - FPR on the training pairs."""
    X, rows, signs, _ = data
    scores = learner.fit(X[rows], signs).pair_score(X[rows])
    gains = [(scores[signs == 1] >= t).mean() - (scores[signs == -1] >= t).mean() for t in [learner.threshold_, *scores]]
    assert gains[0] == pytest.approx(max(gains))


def test_fit_allows_pairs_of_equal_samples(learner, data):
    X, rows, signs, _ = data
    pairs = X[rows]
    pairs[:3, 1] = pairs[:3, 0]
    assert np.isfinite(learner.fit(pairs, signs).score(pairs, signs))


def test_distances_of_a_tree_do_not_obey_the_triangle_inequality(data):
    """And the distance of a sample to itself may be positive."""
    X, rows, signs, _ = data
    distances = SimilarityTree(max_depth=4, random_state=0).fit(X[rows], signs).pairwise_score(X)
    distances = distances.max() - distances
    assert np.diag(distances).max() > 0.0
    assert (distances[:, :, None] > distances[:, None, :] + distances[None, :, :].transpose(0, 2, 1)).any()


def test_the_page_lists_exactly_these_differences():
    listed = re.findall(r"^\| .* \| .* \| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted([*DIFFERENCES, "first_threshold", "triangle"])
