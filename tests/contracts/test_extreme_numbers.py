"""Extreme but finite numbers: refused in one sentence with a remedy, or else scores are finite and symmetric."""

from __future__ import annotations

import numpy as np
import pytest
from every_estimator import ESTIMATORS, OTHERS
from every_representation import REPRESENTATIONS, UNLABELLED
from sklearn.base import clone

from simtree import (
    DistanceSimilarity,
    Gallery,
    GaussianSimilarity,
    SimilarityBoosting,
    SimilarityTree,
    cluster,
    evaluate,
    evaluate_scores,
    load,
    metrics,
)
from simtree.pairs import KINDS, pair_features

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:target_fpr=.* cannot be measured")]

MODELS = (
    ESTIMATORS
    | OTHERS
    | {
        "gaussian-plain": GaussianSimilarity(),
        **{f"distance-{metric}": DistanceSimilarity(metric=metric) for metric in ("cosine", "euclidean", "manhattan")},
    }
)
# Three that see all cases; the others see some.
REPRESENTATIVES = ("tree", "forest-full", "gaussian-plain")
FLOAT64, FLOAT32 = np.finfo(np.float64), np.finfo(np.float32)


def _column(value):
    """Return a change of the first column to plus or minus a value."""

    def change(X):
        X[:, 0] = np.sign(X[:, 0] - np.median(X[:, 0])) * value

    return change


def _scaled(factor):
    def change(X):
        X *= factor

    return change


def _cell(value):
    def change(X):
        X[3, 1] = value

    return change


def _constant(value):
    def change(X):
        X[:, 2] = value

    return change


def _mixed(*factors):
    def change(X):
        X *= np.array(factors)

    return change


# Changes of ordinary samples, by type of number.
CHANGES = {
    "float64": {
        "column of 1e308": _column(1e308),
        "column of the largest": _column(FLOAT64.max),
        "column of 1e300": _column(1e300),
        "column of 1e155": _column(1e155),
        "all times 1e300": _scaled(1e300),
        "all times 1e152": _scaled(1e152),
        "all times 1e-300": _scaled(1e-300),
        "all times 1e-160": _scaled(1e-160),
        "subnormal": _scaled(5e-324),
        "cell of the largest": _cell(FLOAT64.max),
        "cell of 1e300": _cell(1e300),
        "cell of minus 1e145": _cell(-1e145),
        "cell of 1e-310": _cell(1e-310),
        "constant 1e308": _constant(1e308),
        "constant 1e300": _constant(1e300),
        "constant 1e-320": _constant(1e-320),
        "mixed scales": _mixed(1e300, 1e-300, 1.0, 1e-320),
        "mixed moderate scales": _mixed(1e130, 1e-130, 1.0, 1e60),
    },
    "float32": {
        "column of the largest": _column(FLOAT32.max),
        "column of 1e38": _column(1e38),
        "all times 1e37": _scaled(1e37),
        "all times 1e-38": _scaled(1e-38),
        "subnormal": _scaled(1e-45),
        "cell of the largest": _cell(FLOAT32.max),
        "cell of 1e30": _cell(1e30),
        "constant 1e38": _constant(1e38),
        "mixed scales": _mixed(1e37, 1e-38, 1.0, 1e-44),
    },
}
ALL = [(dtype, name) for dtype, changes in CHANGES.items() for name in changes]
SOME = [
    ("float64", "column of 1e308"),
    ("float64", "all times 1e152"),
    ("float64", "all times 1e-300"),
    ("float64", "subnormal"),
    ("float64", "cell of 1e300"),
    ("float64", "mixed moderate scales"),
    ("float32", "all times 1e37"),
    ("float32", "mixed scales"),
]
CASES = [
    pytest.param(name, *case, id=f"{name}-{case[0]}-{case[1].replace(' ', '_')}")
    for name in sorted(MODELS)
    for case in (ALL if name in REPRESENTATIVES else SOME)
]


@pytest.fixture(scope="module")
def ordinary():
    """Return labelled samples of moderate size."""
    rng = np.random.default_rng(7)
    y = np.repeat(np.arange(6), 10)
    X = rng.integers(1, 16, (6, 4))[y] / 4 + np.round(rng.normal(0, 0.5, (len(y), 4)) * 64) / 64
    order = rng.permutation(len(y))
    return X[order], y[order]


def changed(X, dtype, change):
    extreme = X.copy()
    CHANGES[dtype][change](extreme)
    extreme = extreme.astype(dtype)
    assert np.isfinite(extreme).all()
    return extreme


def refusal(call):
    """Return the message of a ValueError, checked, or None if there is none."""
    try:
        call()
    except ValueError as error:
        message = str(error)
        assert message.endswith("."), message
        assert message.startswith(("X", "pairs", "representation")), message
        assert "; " in message, message
        assert any(word in message for word in ("divide", "multiply", "replace", "leave")), message
        return message
    return None


def check_scores(model, X):
    """Scores of all pairs are finite and symmetric, however they are asked for."""
    scores = model.pairwise_score(X)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, scores.T)
    i, j = np.divmod(np.arange(len(X) ** 2), len(X))
    np.testing.assert_array_equal(model.pair_score(np.column_stack([i, j]), X), scores.ravel())
    pairs = np.stack([X[i], X[j]], axis=1)
    np.testing.assert_array_equal(model.pair_score(pairs), scores.ravel())
    assert np.isfinite(model.pair_distance(pairs[:5])).all()
    best, rows = model.top_k(X[:5], X, k=3)
    expected = np.argsort(-scores[:5], axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(best, np.take_along_axis(scores[:5], expected, axis=1))
    if X.dtype == np.float64:
        assert model.get_metric()(X[0], X[1]) == model.get_metric()(X[1], X[0]) == model.pair_distance(pairs[1:2])[0]


@pytest.fixture(scope="module")
def fitted_on_ordinary(ordinary):
    """Return each model, fitted on ordinary samples, as needed."""
    found = {}

    def get(name):
        if name not in found:
            found[name] = clone(MODELS[name]).fit(*ordinary)
        return found[name]

    return get


@pytest.mark.parametrize(("name", "dtype", "change"), CASES)
def test_fit_refuses_or_scores(ordinary, name, dtype, change):
    X, y = ordinary
    extreme = changed(X, dtype, change)
    model = clone(MODELS[name])
    if refusal(lambda: model.fit(extreme, y)) is None:
        check_scores(model, extreme)
    else:
        assert not hasattr(model, "threshold_")


@pytest.mark.parametrize(("name", "dtype", "change"), CASES)
def test_a_fitted_model_refuses_or_scores_samples_from_far_away(ordinary, fitted_on_ordinary, name, dtype, change):
    X, _ = ordinary
    extreme = changed(X, dtype, change)
    model = fitted_on_ordinary(name)
    asked = {
        "pairwise": lambda: model.pairwise_score(X, extreme),
        "row pairs": lambda: model.pair_score([[0, 3]], extreme),
        "pairs": lambda: model.pair_score(np.stack([extreme, X.astype(dtype)], axis=1)),
        "queries": lambda: model.top_k(extreme, X),
        "gallery": lambda: model.top_k(X, extreme),
    }
    refused = {way: refusal(call) is not None for way, call in asked.items()}
    assert len(set(refused.values())) == 1, refused
    if not refused["pairwise"]:
        check_scores(model, extreme)
        scores = model.pairwise_score(X, extreme)
        assert np.isfinite(scores).all()
        np.testing.assert_array_equal(scores, model.pairwise_score(extreme, X).T)


REFUSED = {"tree": 1e308, "forest-full": 1e300, "distance-euclidean": 1e300, "gaussian-plain": 1e308}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_every_way_into_fit_refuses_the_same(ordinary, name):
    X, y = ordinary
    extreme = X.copy()
    _column(REFUSED[name])(extreme)
    index = np.array([[i, j] for i in range(12) for j in range(i)])
    same = y[index[:, 0]] == y[index[:, 1]]
    stacked = extreme[index]
    ways = [
        lambda: clone(MODELS[name]).fit(extreme, y),
        lambda: clone(MODELS[name]).fit(stacked, same),
        lambda: clone(MODELS[name]).fit(extreme, same, pairs=index),
        lambda: clone(MODELS[name]).set_params(preprocessor=extreme).fit(index, same),
        lambda: clone(MODELS[name]).set_params(preprocessor=lambda rows: extreme[rows]).fit(index, same),
    ]
    for way in ways:
        assert refusal(way) is not None


@pytest.mark.parametrize("name", ["tree", "distance-euclidean"])
def test_every_way_out_of_a_model_refuses_the_same(ordinary, fitted_on_ordinary, tmp_path, name):
    X, y = ordinary
    far = X.copy()
    _column(1e308)(far)
    model = fitted_on_ordinary(name)
    model.save(tmp_path / "m.simtree")
    gallery = Gallery.create(tmp_path / "people.gallery", model)
    gallery.enroll(["near"], X[:1])
    for asked in (model, load(tmp_path / "m.simtree")):
        ways = [
            lambda asked=asked: asked.pairwise_score(far),
            lambda asked=asked: asked.pairwise_score(X, far),
            lambda asked=asked: asked.predict(far[:4].reshape(2, 2, 4)),
            lambda asked=asked: asked.decision_function(far[:4].reshape(2, 2, 4)),
            lambda asked=asked: asked.get_metric()(far[0], X[0]),
            lambda asked=asked: asked.score(far, y),
            lambda asked=asked: asked.calibrate_threshold(far, y, max_fpr=0.5, confidence=None),
            lambda asked=asked: asked.calibrate_probability(far, y),
            lambda asked=asked: evaluate(asked, far, y),
            lambda asked=asked: cluster(asked, far),
            lambda asked=asked: gallery.enroll(["far"], far[:1]),
            lambda asked=asked: gallery.identify(far[:1]),
            lambda asked=asked: gallery.verify(["near"], far[:1]),
        ]
        if name == "tree":
            ways += [
                lambda asked=asked: asked.apply(far[:4].reshape(2, 2, 4)),
                lambda asked=asked: asked.explain_pair(far[0], X[0]),
            ]
        for way in ways:
            message = refusal(way)
            assert message is not None
            assert "column 0" in message


def test_the_error_names_column_value_limit_and_remedy(ordinary):
    X, y = ordinary
    far = X.copy()
    far[5, 2] = -1.5e308
    message = (
        r"^X has the value -1.5e\+308 in column 2, but coordinates of kind abs_diff and sum take values from -8.99e\+307 to "
        r"8.99e\+307; divide the column by a large number first\.$"
    )
    with pytest.raises(ValueError, match=message):
        clone(MODELS["tree"]).fit(far, y)


def test_the_largest_numbers_without_overflow_are_learned_from(ordinary):
    """Half of the largest number is allowed for sums and differences, its root for products."""
    X, y = ordinary
    above = X[:, :1] > np.median(X[:, :1])
    for kinds, largest in (
        (["abs_diff", "sum"], FLOAT64.max / 2),
        (["product"], FLOAT64.max**0.5),
        (["min", "max"], FLOAT64.max),
    ):
        extreme = np.where(above, largest, -largest) * np.ones((1, 2))
        extreme[:, 1] = X[:, 1]
        model = clone(MODELS["tree"]).set_params(coordinates=kinds).fit(extreme, y)
        assert model.auc_ > 0.6
        check_scores(model, extreme)


REPRESENTATION_CASES = [
    pytest.param(name, *case, id=f"{name}-{case[0]}-{case[1].replace(' ', '_')}")
    for name in sorted(REPRESENTATIONS)
    for case in (ALL if name in ("quantiles", "whitening") else SOME)
]


@pytest.mark.parametrize(("name", "dtype", "change"), REPRESENTATION_CASES)
def test_representations_refuse_or_are_finite(ordinary, name, dtype, change):
    X, y = ordinary
    extreme = changed(X, dtype, change)
    representation = clone(REPRESENTATIONS[name])
    labels = () if name in UNLABELLED else (y,)
    if refusal(lambda: representation.fit(extreme, *labels)) is None:
        assert np.isfinite(clone(representation).fit_transform(extreme, *labels)).all()
        assert np.isfinite(representation.transform(extreme)).all()
    usual = clone(representation).fit(X, *labels)
    if refusal(lambda: usual.transform(extreme)) is None:
        assert np.isfinite(usual.transform(extreme)).all()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "oblique"])
@pytest.mark.parametrize("value", [FLOAT64.max, 1e300, 1e155, 1e152, 1e-300, 5e-324])
def test_coordinates_of_pairs_refuse_or_are_finite(kind, value):
    pairs = np.array([[[value, -value], [-value, value]], [[value, value], [value, 1.0]]])
    if refusal(lambda: pair_features(pairs, [kind])) is None:
        found = pair_features(pairs, [kind])
        assert np.isfinite(found).all()
        np.testing.assert_array_equal(found, pair_features(pairs[:, ::-1], [kind]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_with_directions_are_refused_if_they_overflow(ordinary, dtype):
    X, y = ordinary
    largest = float(np.finfo(dtype).max)
    huge = (np.sign(X - np.median(X, axis=0)) * 0.9 * largest).astype(dtype)
    oblique = clone(MODELS["tree"]).set_params(coordinates=["oblique"])
    assert "directions of oblique coordinates" in refusal(lambda: oblique.fit(huge, y))
    if dtype == "float64":
        assert "directions" in refusal(lambda: pair_features(huge[:2][None], ["oblique"], directions=np.ones((1, 4))))


@pytest.mark.parametrize("name", ["distance-euclidean", "distance-cosine", "tree-whole"])
def test_samples_whose_squares_vanish_are_refused(ordinary, name):
    X, y = ordinary
    message = r"^X has no value larger than .*e-300, but coordinates of kind .* multiply X by a large number first\.$"
    with pytest.raises(ValueError, match=message):
        clone(MODELS[name]).fit(X * 1e-300, y)
    clone(MODELS[name]).fit(X * 1e-145, y)
    clone(MODELS[name]).fit(np.zeros_like(X), y)


@pytest.mark.parametrize("scale", [1e308, 1e300, 1e155, 1e-300, 5e-324])
def test_metrics_of_extreme_scores(scale):
    rng = np.random.default_rng(0)
    same = np.arange(400) % 4 == 0
    plain = np.clip(rng.normal(same * 1.5, 1.0), -4, 4).round(1) / 4 * 1.7
    with np.errstate(all="ignore"):
        scores = plain * scale
    scores = np.clip(scores, -FLOAT64.max, FLOAT64.max)
    roc = metrics.roc_curve(scores, same)
    assert 0.5 < roc.auc() <= 1.0
    assert np.isfinite(metrics.youden_threshold(roc))
    assert 0.0 <= metrics.eer(roc).value <= 1.0
    assert 0.0 <= metrics.min_cllr(scores, same) <= 1.0
    assert metrics.cllr(scores, same) >= 0.0
    assert np.isfinite(metrics.d_prime(scores, same))
    if scale > 1e140:
        with pytest.raises(ValueError, match=r"scores must lie within 1e\+140, got .*: divide them, or X, by a large number."):
            evaluate_scores(scores, same)
        return
    found = evaluate_scores(scores, same)
    assert 0.5 < found.auc.value <= 1.0
    assert found.d_prime == pytest.approx(metrics.d_prime(scores, same))
    assert np.isfinite([found.d_prime, found.min_cllr, found.cllr]).all()
    assert "AUC" in str(found)


def check_kernels():
    """Fit and search small models on extreme numbers; where bounds are checked, an index out of range is an IndexError."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 4)
    X = rng.integers(1, 16, (4, 4))[y] / 4 + np.round(rng.normal(0, 0.5, (16, 4)) * 64) / 64
    for name in ("tree", "tree-whole", "tree-oblique"):
        for dtype, change in (*SOME, ("float64", "column of 1e300"), ("float32", "column of the largest")):
            model = clone(ESTIMATORS[name]).set_params(max_depth=2, n_pairs=60)
            extreme = changed(X, dtype, change)
            if refusal(lambda model=model, extreme=extreme: model.fit(extreme, y)) is None:
                check_scores(model, extreme)
    # Kernels of their own: boosting, states of missing values (once for trees, once for boosting), and categories.
    n_learned = 0
    for dtype, change in (("float64", "all times 1e152"), ("float32", "mixed scales"), ("float64", "column of 1e300")):
        extreme = changed(X, dtype, change)
        with_holes = extreme.copy()
        with_holes[[3, 5, 9], [0, 2, 0]] = np.nan
        with_category = np.column_stack([extreme[:, :3], np.arange(16) % 3]).astype(dtype)
        tree = SimilarityTree(max_depth=2, n_pairs=60, random_state=0)
        boosting = SimilarityBoosting(n_estimators=2, max_leaf_nodes=3, n_pairs=60, early_stopping=False, random_state=0)
        cross = clone(tree).set_params(splitter="cross", categorical_features=[3])
        for model, samples in ((boosting, extreme), (tree, with_holes), (clone(boosting), with_holes), (cross, with_category)):
            if refusal(lambda model=model, samples=samples: model.fit(samples, y)) is None:
                check_scores(model, samples)
                n_learned += 1
    assert n_learned >= 8


# An interpreted kernel warns where the compiled one does not.
@pytest.mark.filterwarnings("ignore:(overflow|invalid value|divide by zero) encountered:RuntimeWarning")
@pytest.mark.kernel
@pytest.mark.parametrize("bounds", [True, False])
def test_kernels_take_extreme_numbers(search_by, bounds):
    """Runs again interpreted and bounds-checked (`make kernels`), with and without the bounded search."""
    search_by(bounds=bounds)
    check_kernels()
