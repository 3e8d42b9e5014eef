"""Posteriors of classifiers that are fitted once per fold, and the mean of several."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting import gradient_boosting
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from simtree import (
    BoostingPosterior,
    ForestPosterior,
    KernelDiscriminant,
    LandmarkFeatures,
    LogisticPosterior,
    MeanPosterior,
    NetworkPosterior,
    WithinClassWhitening,
)
from simtree._utils.folds import assign_folds
from simtree.representation import _boosting as boosting
from simtree.representation import _network as network
from simtree.representation._perceptron import Layer, Training

MODELS = {
    "linear": LogisticPosterior(cv=3, random_state=0),
    "network": NetworkPosterior(hidden_layer_sizes=(7, 5), n_updates=200, cv=3, random_state=0),
    "network-wide": NetworkPosterior(hidden_layer_sizes=12, n_updates=200, cv=3, random_state=0),
    "boosting": BoostingPosterior(n_rounds=15, cv=3, random_state=0),
}


@pytest.fixture
def classifiers(monkeypatch):
    """Collect the classifiers of scikit-learn that are fitted, or that a network is equal to, in the order of the folds."""
    fitted = []
    fit_logistic, train = LogisticRegression.fit, NetworkPosterior._learn_models

    def fit(self, X, y):
        fitted.append(fit_logistic(self, X, y))
        return self

    def learn(self, parts, seeds):
        found = train(self, parts, seeds)
        fitted.extend(of_scikit_learn(part, layers) for part, layers in zip(parts, found, strict=True))
        return found

    monkeypatch.setattr(LogisticRegression, "fit", fit)
    monkeypatch.setattr(NetworkPosterior, "_learn_models", learn)
    return fitted


def of_scikit_learn(part, layers):
    """Return a network of scikit-learn with given layers."""
    model = MLPClassifier([len(layer.intercepts) for layer in layers[:-1]], max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(part.X, part.targets)
    if len(part.classes) == 2:  # the score of the second class less that of the first
        weights, intercepts = layers[-1]
        layers = [*layers[:-1], Layer(weights[:, 1:] - weights[:, :1], intercepts[1:] - intercepts[:1])]
    model.coefs_, model.intercepts_ = ([layer[k] for layer in layers] for k in range(2))
    return model


def samples(n_classes, n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n_classes, 3))[y] + rng.normal(size=(n, 3)), y


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "boosting"])
def test_probabilities_are_the_mean_of_those_of_scikit_learn(name, n_classes, classifiers):
    X, y = samples(n_classes)
    model = clone(MODELS[name])
    cross_fitted = model.fit_transform(X, y)
    assert len(classifiers) == 3
    expected = np.mean([classifier.predict_proba(X) for classifier in classifiers], axis=0)
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-9, atol=1e-12)
    of_one = [np.isclose(cross_fitted, classifier.predict_proba(X), rtol=1e-9).all(axis=1) for classifier in classifiers]
    assert np.any(of_one, axis=0).all()
    assert np.array(of_one).sum(axis=1).min() >= len(X) // 3


def on_a_grid(n_classes, n, seed=0):
    """Return samples with so few values per feature that all occur on both sides of a cut, also among some of the rows.

    Otherwise our threshold is the middle of the values that do not occur, and that of scikit-learn the lowest of them.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return np.clip(np.round(1.5 * (rng.normal(size=(n_classes, 6))[y] + rng.normal(size=(n, 6)))), -3, 3), y


@pytest.fixture
def boosted(monkeypatch):
    """Collect scikit-learn's classifiers for the parts that trees are boosted on, which hold out the same rows."""
    fitted = []
    learn = BoostingPosterior._learn_model

    def learn_both(self, part, seed):
        folds = assign_folds(len(part.X), 10, np.random.default_rng(seed), part.targets)

        def split(X, y, **_):
            return X[folds > 0], X[folds == 0], y[folds > 0], y[folds == 0]

        monkeypatch.setattr(gradient_boosting, "train_test_split", split)
        classifier = HistGradientBoostingClassifier(
            max_iter=self.n_rounds,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf,
            l2_regularization=self.l2_regularization,
            early_stopping=len(part.X) >= boosting.MIN_TO_STOP,
            n_iter_no_change=boosting.PATIENCE,
        )
        fitted.append(classifier.fit(part.X, part.targets))
        return learn(self, part, seed)

    monkeypatch.setattr(BoostingPosterior, "_learn_model", learn_both)
    return fitted


@pytest.mark.slow
@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_boosted_trees_are_those_of_scikit_learn(n_classes, stops, boosted, monkeypatch):
    """Gradients are rounded to 32 bits there, and to 30 bits of their sum here: hence the tolerance."""
    X, y = on_a_grid(n_classes, 3000)
    new = on_a_grid(n_classes, 500, seed=1)[0]
    if not stops:
        monkeypatch.setattr(boosting, "MIN_TO_STOP", 10_000)
    model = BoostingPosterior(n_rounds=40, learning_rate=0.3, min_samples_leaf=20, cv=2, random_state=0).fit(X, y)
    n_trees = 1 if n_classes == 2 else n_classes
    assert [len(learned.trees.root) for _, learned in model.models_] == [n_trees * each.n_iter_ for each in boosted]
    assert all((each.n_iter_ < 40) == stops for each in boosted)
    expected = np.mean([classifier.predict_proba(new) for classifier in boosted], axis=0)
    np.testing.assert_allclose(model.transform(new), expected, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_boosted_trees_are_as_good_as_those_of_scikit_learn(boosted):
    """On values without ties, where thresholds lie elsewhere between the rows."""
    X, y = samples(4, n=450)
    new, of_new = samples(4, n=2450)[0][450:], np.arange(450, 2450) % 4
    found = BoostingPosterior(n_rounds=30, random_state=0).fit(X, y).transform(new)
    expected = np.mean([classifier.predict_proba(new) for classifier in boosted], axis=0)
    losses = [-np.log(each[np.arange(len(new)), of_new]).mean() for each in (found, expected)]
    assert losses[0] < losses[1] + 0.01
    assert np.abs(found - expected).mean() < 0.02


def test_boosting_stops_early_on_many_rows(monkeypatch):
    X, y = samples(3, n=900)
    monkeypatch.setattr(boosting, "PATIENCE", 2)

    def rounds(cv, y):
        model = BoostingPosterior(n_rounds=100, learning_rate=0.5, cv=cv, random_state=0).fit(X, y)
        return [len(learned.trees.root) / len(classes) for classes, learned in model.models_]

    assert rounds(2, y) == [100, 100]
    assert max(rounds(4, y)) < 100
    # A class with a single row cannot be on both sides; there may be more classes than rows that are held out.
    alone = np.where(np.arange(900) < 2, 3, y)
    assert sorted(n < 100 for n in rounds(4, alone)) == [False, False, True, True]
    assert max(rounds(4, np.arange(900) // 4)) < 100


def test_boosting_with_any_number_of_jobs_is_the_same():
    X, y = samples(3, n=900)
    one, two = (BoostingPosterior(n_rounds=10, n_jobs=n, random_state=0).fit_transform(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_boosting_ignores_constant_features():
    X, y = samples(3)
    constant = np.full((len(X), 1), 7.0)
    model = BoostingPosterior(n_rounds=5, random_state=0)
    expected = model.fit_transform(X, y)
    np.testing.assert_array_equal(model.fit_transform(np.hstack([constant, X, constant]), y), expected)
    for classes, learned in model.fit(constant, y).models_:
        assert len(learned.trees.root) == 5 * len(classes)
        assert not learned.trees.leaf_share.any()
    np.testing.assert_allclose(model.transform(constant), np.tile(np.bincount(y) / len(y), (len(X), 1)), atol=0.01)


def test_boosting_of_what_is_separable_remains_finite():
    """Without l2, Newton steps are bounded by the Hessians that a leaf must have."""
    X, y = np.repeat([[0.0], [1.0], [5.0]], 20, axis=0), np.repeat([0, 1, 2], 20)
    model = BoostingPosterior(n_rounds=300, learning_rate=1.0, l2_regularization=0.0, min_samples_leaf=1, random_state=0)
    found = model.fit(X, y).transform(X)
    assert np.isfinite(found).all()
    assert (found[np.arange(60), y] > 0.999).all()
    assert max(np.abs(learned.trees.leaf_share).max() for _, learned in model.models_) < 1e4


def test_boosting_takes_more_leaves_than_there_are_rows():
    X, y = samples(2, n=60)
    model = BoostingPosterior(n_rounds=2, max_leaf_nodes=10**9, min_samples_leaf=1, cv=2, random_state=0).fit(X, y)
    assert all(len(learned.trees.leaf_share) <= 2 * 30 for _, learned in model.models_)
    model = BoostingPosterior(n_rounds=2, min_samples_leaf=10**9, cv=2, random_state=0).fit(X, y)
    assert all(len(learned.trees.feature) == 0 for _, learned in model.models_)


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "hidden"), [(2, (6,)), (4, (6, 5))])
def test_a_network_is_trained_as_by_scikit_learn(n_classes, hidden):
    """In several batches per pass, the last of them smaller, until the loss does not fall any more."""
    X, y = samples(n_classes, n=130)
    X = X.astype(np.float32)  # scikit-learn then trains in single precision, too
    network = MLPClassifier(hidden, alpha=3.0, batch_size=50, max_iter=20, random_state=3)
    training = Training(X, y, n_classes, hidden, alpha=3.0, batch=50, seed=3)
    training.advance(3)
    training.advance(17)
    with pytest.warns(ConvergenceWarning):
        assert_same_layers(training, network.fit(X, y), rtol=1e-4, atol=1e-5)
    training.advance(1_980)
    assert training.has_ended
    assert network.set_params(max_iter=2_000).fit(X, y).n_iter_ < 2_000
    assert_same_layers(training, network, rtol=1e-2, atol=3e-3)  # rounding adds up in hundreds of passes


def assert_same_layers(training, network, *, rtol, atol):
    for layer, weights, intercepts in zip(training.layers(), network.coefs_, network.intercepts_, strict=True):
        np.testing.assert_allclose(layer.weights, weights, rtol=rtol, atol=atol)
        np.testing.assert_allclose(layer.intercepts, intercepts, rtol=rtol, atol=atol)


def confusing(n=300, seed=0):
    """Return samples of three classes that overlap so much that a network learns them by heart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return 0.7 * rng.normal(size=(3, 10))[y] + 2.0 * rng.normal(size=(n, 10)), y


@pytest.mark.slow
def test_networks_end_before_they_know_rows_by_heart(monkeypatch):
    X, y = confusing()
    new, of_new = confusing(600)[0][300:], y
    losses = []
    for waiting in (network.MAX_WAITING, np.inf):
        monkeypatch.setattr(network, "MAX_WAITING", waiting)
        monkeypatch.setattr(network, "N_ERRORS", network.N_ERRORS if np.isfinite(waiting) else np.inf)
        found = NetworkPosterior(n_updates=2_000, random_state=0).fit(X, y).transform(new)
        losses.append(-np.log(found[np.arange(len(new)), of_new]).mean())
    assert losses[0] < 1.1 < losses[1] - 0.1  # log(3) is that of no knowledge


def test_networks_of_any_number_of_jobs_are_the_same():
    X, y = confusing()
    one, two = (NetworkPosterior(n_updates=300, n_jobs=n, random_state=0).fit_transform(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", MODELS)
def test_a_class_of_one_row_is_unknown_to_one_classifier(name):
    X, y = samples(3)
    y[5] = 7
    model = clone(MODELS[name])
    cross_fitted = model.fit_transform(X, y)
    known = [classes.tolist() for classes, _ in model.models_]
    assert sorted(map(len, known)) == [3, 4, 4]
    np.testing.assert_allclose(cross_fitted.sum(axis=1), 1.0)
    column = list(dict.fromkeys(y.tolist())).index(7)
    assert cross_fitted[5, column] == 0.0
    assert model.transform(X)[5, column] > 0.0


@pytest.mark.parametrize("name", MODELS)
def test_a_fold_may_leave_one_class_only(name):
    X, y = samples(2, n=30)
    y[:] = 0
    y[4] = 1
    model = clone(MODELS[name])
    np.testing.assert_allclose(model.fit_transform(X, y).sum(axis=1), 1.0)
    assert sorted(len(classes) for classes, _ in model.models_) == [1, 2, 2]


def test_kernel_logistic_regression_separates_what_a_linear_one_cannot():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (np.linalg.norm(X, axis=1) > 1.1).astype(int)
    linear = LogisticPosterior(random_state=0).fit(X[:200], y[:200])
    kernel = make_pipeline(
        LandmarkFeatures(n_landmarks=30, gamma=1.0, random_state=0), LogisticPosterior(C=100.0, random_state=0)
    )
    kernel.fit(X[:200], y[:200])
    correct = [(model.transform(X[200:])[:, 1] > 0.5) == (y[200:] == y[1]) for model in (linear, kernel)]
    accuracy = [max(right.mean(), 1 - right.mean()) for right in correct]
    assert accuracy[1] > 0.9 > accuracy[0] + 0.05


# MeanPosterior -----------------------------------------------------------------------------------------

TREES = ForestPosterior(n_estimators=30, random_state=0)
SCALED = make_pipeline(StandardScaler(), LogisticPosterior(random_state=0))


def test_mean_of_members(blobs):
    X, y = blobs
    mean = MeanPosterior([("trees", TREES), ("linear", SCALED)])
    cross_fitted = mean.fit_transform(X, y)
    members = [clone(member) for member in (TREES, SCALED)]
    np.testing.assert_array_equal(cross_fitted, sum(member.fit_transform(X, y) for member in members) / 2)
    np.testing.assert_array_equal(mean.transform(X), sum(member.transform(X) for member in members) / 2)


def test_parameters_of_members_can_be_set():
    mean = clone(MeanPosterior([("trees", TREES), ("linear", SCALED)])).set_params(linear__logisticposterior__C=3.0)
    assert mean.posteriors[1][1][-1].C == 3.0
    assert mean.get_params()["trees__n_estimators"] == 30
    assert SCALED[-1].C == 1.0


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    ("posteriors", "error", "sentence"),
    [
        ([], ValueError, "posteriors is empty"),
        ([("a", TREES), ("a", TREES)], ValueError, "Names provided are not unique"),
        ([("a", LogisticRegression())], TypeError, "give transformers such as ForestPosterior"),
        ([("a", WithinClassWhitening())], ValueError, "one probability for each of the 6 classes"),
        ([("a", KernelDiscriminant(n_landmarks=5))], ValueError, "one probability for each of the 6 classes"),
        ([("a", ForestPosterior(max_classes=3))], ValueError, "max_classes of at least this number"),
    ],
)
def test_invalid_members_are_rejected(blobs, method, posteriors, error, sentence):
    with pytest.raises(error, match=sentence):
        getattr(MeanPosterior(posteriors), method)(*blobs)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("model", [*MODELS.values(), ForestPosterior(n_estimators=60, random_state=0)], ids=repr)
def test_most_classes_may_have_one_sample(rng, model, n_jobs):
    """Warnings are errors here: scikit-learn suspects that so many labels are numbers to regress on."""
    y = np.append(np.repeat(np.arange(10), 2), np.arange(10, 25))
    X = rng.normal(size=(25, 4))[y] + 0.1 * rng.normal(size=(35, 4))
    assert clone(model).set_params(n_jobs=n_jobs).fit_transform(X, y).shape == (35, 25)


# Bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "error", "sentence"),
    [
        (LogisticPosterior(C=0.0), ValueError, "C=0.0 is out of range"),
        (LogisticPosterior(n_updates=0), ValueError, "n_updates=0 is out of range"),
        (LogisticPosterior(cv=1), ValueError, "cv=1 is out of range"),
        (LogisticPosterior(cv=1000), ValueError, "cv=1000 exceeds the number of rows, 110"),
        (NetworkPosterior(hidden_layer_sizes=(3, 0)), ValueError, "hidden_layer_sizes=0 is out of range"),
        (NetworkPosterior(hidden_layer_sizes="wide"), TypeError, "hidden_layer_sizes='wide' is not an integer"),
        (NetworkPosterior(hidden_layer_sizes=(3,) * 16), ValueError, "too many layers; give at most 15"),
        (NetworkPosterior(alpha=-1.0), ValueError, "alpha=-1.0 is out of range"),
        (NetworkPosterior(n_updates=0), ValueError, "n_updates=0 is out of range"),
        (BoostingPosterior(n_rounds=0), ValueError, "n_rounds=0 is out of range"),
        (BoostingPosterior(learning_rate=0.0), ValueError, "learning_rate=0.0 is out of range"),
        (BoostingPosterior(max_leaf_nodes=1), ValueError, "max_leaf_nodes=1 is out of range"),
        (BoostingPosterior(min_samples_leaf=0), ValueError, "min_samples_leaf=0 is out of range"),
        (BoostingPosterior(l2_regularization=-1.0), ValueError, "l2_regularization=-1.0 is out of range"),
    ],
)
def test_invalid_parameters_are_rejected(blobs, model, error, sentence):
    with pytest.raises(error, match=sentence):
        model.fit(*blobs)
