"""Contract of all representations: rows are independent, training rows are cross-fitted, no sample is stored."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from every_representation import LABELLED, REPRESENTATIONS
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from simtree import (
    BoostingPosterior,
    ForestPosterior,
    KernelDiscriminant,
    LogisticPosterior,
    NuisanceCentering,
    SimilarityForest,
    WithinClassWhitening,
)
from simtree.metrics import roc_curve
from simtree.pairs._sampling import PairSampler
from simtree.representation import RarityEncoder
from simtree.representation import _base as base

CROSS_FITTED = "fit_transform is cross-fitted, so it is not fit followed by transform; passed by the class below"
EXPECTED_FAILURES = dict.fromkeys(("check_transformer_general", "check_transformer_data_not_an_array"), CROSS_FITTED)


def depends_on_folds(estimator):
    """Whether cross-fitting changes what the checks see.

    On their distant blobs, two kinds of classifier agree in all folds, and three blobs are too few identities for centring.
    """
    exact = isinstance(estimator, BoostingPosterior | LogisticPosterior | NuisanceCentering)
    return isinstance(estimator, base.LabelledRepresentation) and not exact


# One instance per class; parameters are tested below.
ONE_EACH = list({type(representation): representation for representation in REPRESENTATIONS.values()}.values())


@pytest.mark.slow
@parametrize_with_checks(
    ONE_EACH,
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES if depends_on_folds(estimator) else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class AllAtOnce:
    """A representation whose fit_transform is fit followed by transform."""

    def fit_transform(self, X, y):
        return self.fit(X, y).transform(X)


class PosteriorAtOnce(AllAtOnce, ForestPosterior):
    """A variant without cross-fitting."""


class DiscriminantAtOnce(AllAtOnce, KernelDiscriminant):
    """A variant without cross-fitting."""


class WhiteningAtOnce(AllAtOnce, WithinClassWhitening):
    """A variant without cross-fitting."""


@pytest.mark.slow
@parametrize_with_checks(
    [PosteriorAtOnce(n_estimators=30), DiscriminantAtOnce(n_landmarks=20), WhiteningAtOnce(emphasis=0.5, n_components=2)]
)
def test_scikit_learn_checks_without_exception(estimator, check):
    check(estimator)


@pytest.fixture(params=sorted(REPRESENTATIONS))
def representation(request):
    return clone(REPRESENTATIONS[request.param])


@pytest.fixture(params=sorted(LABELLED))
def labelled(request):
    return clone(LABELLED[request.param])


@pytest.fixture(scope="module")
def new_points():
    return np.random.default_rng(11).uniform(-1, 5, (600, 4))


# Laws ------------------------------------------------------------------------------------------------


def test_a_row_does_not_depend_on_the_others(representation, blobs, new_points):
    """Bit for bit: alone, among other rows, in another order, across block boundaries, as a view."""
    fitted = representation.fit(*blobs)
    whole = fitted.transform(new_points)
    assert np.isfinite(whole).all()
    order = np.random.default_rng(0).permutation(len(new_points))
    np.testing.assert_array_equal(fitted.transform(new_points[order]), whole[order])
    for rows in (slice(0, 1), slice(7, 9), slice(base.BLOCK - 1, base.BLOCK + 2), slice(3, None), slice(None, None, 5)):
        np.testing.assert_array_equal(fitted.transform(new_points[rows]), whole[rows])
    np.testing.assert_array_equal(fitted.transform(np.asfortranarray(new_points)), whole)


@pytest.mark.slow
def test_same_for_any_number_of_jobs_and_the_same_seed(labelled, blobs, new_points):
    one, two = clone(labelled).set_params(n_jobs=1), clone(labelled).set_params(n_jobs=2)
    np.testing.assert_array_equal(one.fit_transform(*blobs), two.fit_transform(*blobs))
    np.testing.assert_array_equal(one.transform(new_points), two.transform(new_points))
    other = clone(labelled).set_params(random_state=1)
    assert (other.fit_transform(*blobs) != one.fit_transform(*blobs)).any()


def test_fit_and_fit_transform_fit_the_same_model(representation, blobs, new_points):
    a, b = clone(representation), clone(representation)
    a.fit(*blobs)
    b.fit_transform(*blobs)
    np.testing.assert_array_equal(a.transform(new_points), b.transform(new_points))


@pytest.mark.slow
def test_relabelling_classes_changes_nothing(labelled, blobs):
    X, y = blobs
    names = np.array(["zoe", "ann", "kim", "bob", "eve", "joe"])[y]
    found = clone(labelled).fit_transform(X, y)
    for other in (names, names.tolist(), pd.Series(names).astype("category"), names.astype(object)):
        np.testing.assert_array_equal(clone(labelled).fit_transform(X, other), found)


def auc_of_nearness(Z, y):
    """Return the AUC of the distance in a representation over all pairs."""
    pairs = PairSampler(y).all_pairs()
    return roc_curve(-np.linalg.norm(Z[pairs.first] - Z[pairs.second], axis=1), pairs.same).auc()


@pytest.mark.parametrize("name", ["posterior", "discriminant", "discriminant-waves"])
def test_training_rows_do_not_see_their_labels(name):
    """Random labels: memorised by transform, unknown to fit_transform."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), np.concatenate([[0, 1, 2], rng.integers(0, 3, 297)])
    model = clone(LABELLED[name])
    if isinstance(model, KernelDiscriminant):
        model.set_params(n_landmarks=200, alpha=1e-4, gamma=2.0)
    assert (model.fit_transform(X, y).argmax(axis=1) == y).mean() < 0.4
    assert (model.transform(X).argmax(axis=1) == y).mean() > 0.45


def test_classes_are_separated(labelled, blobs):
    X, y = blobs
    half = np.arange(len(X)) % 2 == 0
    assert auc_of_nearness(labelled.fit_transform(X[half], y[half]), y[half]) > 0.85
    assert auc_of_nearness(labelled.transform(X[~half]), y[~half]) > 0.85


def stored_arrays(value):
    """Yield all arrays reachable from a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, BaseEstimator):
        yield from stored_arrays(vars(value))
    elif isinstance(value, dict):
        yield from (array for item in value.values() for array in stored_arrays(item))
    elif isinstance(value, list | tuple):
        yield from (array for item in value for array in stored_arrays(item))


def test_no_training_row_is_stored(representation):
    """Not even if rows are few, far apart or duplicated."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 4)), rng.normal(size=(8, 4)) * 1e3, np.repeat(rng.normal(size=(1, 4)), 9, axis=0)])
    y = np.arange(len(X)) % 3
    fitted = representation.fit(X, y)
    n_arrays = 0
    for array in stored_arrays(fitted):
        n_arrays += 1
        for rows in (array, array.T):
            if rows.ndim == 2 and rows.shape[1] == 4:
                distance = np.abs(rows[:, None] - X[None]).max(axis=2).min(axis=1)
                assert distance.min() > 1e-9
    assert n_arrays


# scikit-learn ----------------------------------------------------------------------------------------


def test_pickle_and_clone(representation, blobs, new_points):
    fitted = representation.fit(*blobs)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(new_points), fitted.transform(new_points))
    assert not hasattr(clone(fitted), "n_features_in_")


def test_names_and_data_frames(representation, blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = representation.set_output(transform="pandas")
    found = fitted.fit_transform(frame, y)
    assert list(found.columns) == list(fitted.get_feature_names_out()) == list(fitted.transform(frame).columns)
    assert len(set(found.columns)) == found.shape[1]
    np.testing.assert_array_equal(found.to_numpy(), clone(representation).set_output(transform="default").fit_transform(X, y))
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame.rename(columns={"a": "z"}))


def test_pipeline_before_a_similarity(representation, blobs):
    X, y = blobs
    frequencies = isinstance(representation, RarityEncoder)  # of few values, which tell some of the classes apart
    X = np.round(X) if frequencies else X
    forest = SimilarityForest(n_estimators=3, max_depth=4, n_pairs=1000, random_state=0)
    model = make_pipeline(representation, forest).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > (0.6 if frequencies else 0.8)


# Bad input -------------------------------------------------------------------------------------------


def test_unfitted(representation):
    with pytest.raises(NotFittedError):
        representation.transform(np.zeros((2, 4)))


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((4, 2)), [1, 1, 1, 1], r"y has 1 class; \w+ requires at least 2 classes"),
        (np.zeros((3, 2)), [1, 2, 3], "3 classes but no class has two rows"),
        (np.zeros((4, 2)), None, "requires y to be passed, but the target y is None; give the label of each sample"),
        (np.zeros((4, 2)), [1, 2, 1], "inconsistent numbers of samples"),
        (np.zeros((4, 2)), [1, 2, 1, None], "y holds 1 missing label"),
        ([[0.0], [np.nan], [1.0], [1.0]], [1, 1, 2, 2], "contains NaN"),
    ],
)
def test_bad_training_data(labelled, method, X, y, message):
    with pytest.raises(ValueError, match=message):
        getattr(labelled, method)(X, y)


def test_bad_number_of_jobs(labelled, blobs):
    with pytest.raises(ValueError, match="n_jobs=0 is not a number of parallel jobs"):
        labelled.set_params(n_jobs=0).fit(*blobs)
