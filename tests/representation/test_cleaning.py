"""Imputers, encoders and columns: equal to scikit-learn, saved as data, and refused with a reason."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler

import simtree
from simtree import GaussianSimilarity, MarginalQuantiles, SimilarityTree
from simtree.io._archive import document_bytes, read_document
from simtree.io._fields import ModelFileError
from simtree.representation import ColumnRepresentation, Imputer, RarityEncoder
from simtree.representation._applied import representation_from_state, representation_state
from simtree.representation._columns import dense, from_column_transformer, with_numbered_columns


@pytest.fixture(scope="module")
def holes():
    """Labelled samples with a third of the cells missing, of which the last column has few values."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(90, 4)), 1)
    X[:, 3] = rng.integers(0, 4, 90)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[:, 1] = np.where(np.isnan(X[:, 1]), 0.5, X[:, 1])
    return X, np.repeat(np.arange(15), 6)


def loaded(fitted, n_features):
    return representation_from_state(read_document(document_bytes(representation_state(fitted))), n_features)


@pytest.mark.parametrize("strategy", ["median", "mean", "most_frequent", "constant"])
@pytest.mark.parametrize("indicator", [False, True])
def test_the_imputer_equals_that_of_scikit_learn(holes, strategy, indicator):
    X, _ = holes
    ours = Imputer(strategy=strategy, fill_value=-3.0, indicator=indicator).fit(X[:60])
    theirs = SimpleImputer(strategy=strategy, fill_value=-3.0, add_indicator=indicator).fit(X[:60])
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-15)  # sums of a mean may be rounded differently
    assert len(ours.get_feature_names_out()) == ours.transform(X).shape[1]


def test_a_feature_without_values_is_filled_with_the_constant():
    X = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    assert Imputer(fill_value=7.0).fit_transform(X)[:, 0].tolist() == [7.0, 7.0]
    assert Imputer(indicator=True).fit(X).get_feature_names_out(["a", "b"]).tolist() == ["a", "b", "missing(a)"]


def test_rarity_is_minus_log_of_the_frequency():
    X = np.array([[0.0], [0.0], [1.0], [np.nan], [np.nan], [np.nan], [5.0], [0.0]])
    rarity = RarityEncoder().fit(X)
    new = np.array([[0.0], [np.nan], [1.0], [5.0], [9.0]])
    expected = -np.log(np.array([3, 3, 1, 1, 1]) / 8)
    np.testing.assert_allclose(rarity.transform(new).ravel(), expected)
    again, n_columns = loaded(rarity, 1)
    np.testing.assert_array_equal(again.transform(new), rarity.transform(new))
    assert n_columns == 1


OBJECTS = {
    "median": SimpleImputer(strategy="median", add_indicator=True),
    "frequent": SimpleImputer(strategy="most_frequent"),
    "constant": SimpleImputer(strategy="constant", fill_value=-1.0, add_indicator=True),
    "empty kept": SimpleImputer(keep_empty_features=True),
    "indicator": MissingIndicator(),
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "one-hot dense": OneHotEncoder(handle_unknown="ignore", drop="first", sparse_output=False),
    "pipeline": make_pipeline(SimpleImputer(), RobustScaler()),
    "columns": ColumnTransformer(
        [
            ("filled", make_pipeline(SimpleImputer(), StandardScaler()), [2, 0]),
            ("codes", OneHotEncoder(handle_unknown="ignore"), [3]),
        ],
        remainder="passthrough",
        sparse_threshold=0.0,
    ),
}


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("name", OBJECTS)
def test_objects_of_scikit_learn_come_back_as_data(holes, name):
    X, _ = holes
    new = np.where(np.random.default_rng(1).random(X.shape) < 0.2, 77.0, X)
    fitted = OBJECTS[name].fit(X)
    again, n_columns = loaded(with_numbered_columns(fitted, None), 4)
    expected = dense(fitted.transform(new))
    np.testing.assert_array_equal(dense(again.transform(new)), expected)
    assert n_columns == expected.shape[1]


@pytest.mark.parametrize("name", ["median", "one-hot", "pipeline", "columns"])
def test_models_take_holes_if_the_representation_fills_them(holes, name, tmp_path):
    X, y = holes
    columns = slice(3, 4) if name == "one-hot" else slice(None)
    X = X[:, columns]
    tree = SimilarityTree(max_depth=4, n_pairs=400, representation=OBJECTS[name], random_state=0).fit(X, y)
    made = dense(tree.representation_.transform(X))
    np.testing.assert_allclose(made, dense(OBJECTS[name].fit_transform(X)), rtol=1e-14, atol=1e-14)
    by_hand = SimilarityTree(max_depth=4, n_pairs=400, random_state=0).fit(made, y)
    np.testing.assert_array_equal(tree.pairwise_score(X), by_hand.pairwise_score(made))
    tree.save(tmp_path / "m.simtree")
    again = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(again.pairwise_score(X), tree.pairwise_score(X))
    np.testing.assert_array_equal(again.fit(X, y).pairwise_score(X), tree.pairwise_score(X))
    scores = tree.pair_score(np.stack([X[:5], X[5:10]], axis=1))
    np.testing.assert_array_equal(scores, tree.pairwise_score(X[:5], X[5:10]).diagonal())


def test_columns_by_name_equal_scikit_learn(holes):
    X, y = holes
    frame = pd.DataFrame(X, columns=list("abcd"))
    parts = [("filled", SimpleImputer(strategy="mean"), ["c", "a"]), ("kept", "passthrough", ["b"]), ("left", "drop", ["d"])]
    theirs = ColumnTransformer(parts).fit(frame)
    ours = ColumnRepresentation(parts).fit(frame)
    np.testing.assert_allclose(ours.transform(frame), theirs.transform(frame), rtol=1e-15)
    assert ours.get_feature_names_out().tolist() == ["c", "a", "b"]
    np.testing.assert_allclose(from_column_transformer(theirs).transform(frame), theirs.transform(frame), rtol=1e-15)
    gaussian = GaussianSimilarity(representation=ColumnTransformer(parts)).fit(frame, y)
    np.testing.assert_array_equal(
        gaussian.pairwise_score(frame), GaussianSimilarity().fit(ours.transform(frame), y).pairwise_score(ours.transform(frame))
    )
    tree = SimilarityTree(max_depth=2, representation=ColumnTransformer(parts), random_state=0).fit(frame, y)
    assert tree._names(None) == ["c", "a", "b"]


def test_a_fitted_pipeline_with_columns_becomes_a_model(holes, tmp_path):
    X, y = holes
    pipeline = make_pipeline(OBJECTS["columns"], SimpleImputer(), GaussianSimilarity()).fit(X, y)
    model = simtree.from_pipeline(pipeline)
    np.testing.assert_array_equal(model.pairwise_score(X), pipeline[-1].pairwise_score(pipeline[:-1].transform(X)))
    model.save(tmp_path / "m.simtree")
    np.testing.assert_array_equal(simtree.load(tmp_path / "m.simtree").pairwise_score(X), model.pairwise_score(X))


# Bad input -------------------------------------------------------------------------------------------


def test_a_pipeline_that_was_fitted_on_words_is_refused():
    frame = pd.DataFrame({"colour": ["red", "blue"] * 6})
    pipeline = make_pipeline(OneHotEncoder(sparse_output=False), GaussianSimilarity()).fit(frame, np.arange(12) // 4)
    with pytest.raises(TypeError, match=r"was fitted on words.*convert the unfitted Pipeline"):
        simtree.from_pipeline(pipeline)


@pytest.mark.parametrize(
    ("representation", "error", "message"),
    [
        (Imputer(strategy="mode"), ValueError, "strategy='mode' is unknown"),
        (Imputer(strategy="constant", fill_value=np.inf), ValueError, "fill_value=inf is out of range"),
        (Imputer(indicator="yes"), ValueError, "indicator='yes' is unknown"),
        (ColumnRepresentation([("a", Imputer(), ["x"])]), ValueError, "X has no column names; give a data frame"),
        (ColumnRepresentation([("a", Imputer(), [4])]), ValueError, "columns has 4; give names, or numbers from -4 to 3"),
        (ColumnRepresentation([("a", Imputer(), [True])]), ValueError, "mask of length 1; X has 4 columns"),
        (ColumnRepresentation([("a", "fill", [0])]), TypeError, "'a' has 'fill'; give a transformer"),
        (ColumnRepresentation([("a", Imputer(), [0])] * 2), ValueError, "distinct strings"),
        (ColumnRepresentation([("a", "drop", [0])]), ValueError, "keeps no column"),
        (ColumnTransformer([("a", Imputer(), make_column_selector())]), TypeError, "neither names nor numbers"),
        (ColumnTransformer([("a", Imputer(), [0])], remainder=Imputer()), TypeError, "transformer as its remainder"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(holes, representation, error, message):
    with pytest.raises(error, match=message):
        SimilarityTree(representation=representation).fit(*holes)


def test_the_line_that_helps_is_named_where_complete_numbers_are_needed(holes):
    X, y = holes
    message = r"X contains NaN in column 0, first in row \d+; fill it in with representation=Imputer\(\)"
    with pytest.raises(ValueError, match=message):
        GaussianSimilarity().fit(X, y)
    model = GaussianSimilarity(representation=MarginalQuantiles())
    with pytest.raises(ValueError, match=r"representation=make_pipeline\(Imputer\(\), MarginalQuantiles\(\)\)"):
        model.fit(X, y)
    model.set_params(representation=make_pipeline(Imputer(), MarginalQuantiles())).fit(X, y)
    X = X.copy()
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match="X contains infinity in column 2, first in row 7"):
        model.pairwise_score(X)


@pytest.mark.parametrize(
    ("fitted", "message"),
    [
        (OneHotEncoder(min_frequency=2), "min_frequency or max_categories cannot be saved"),
        (OrdinalEncoder(dtype=np.int64), "another dtype than the default"),
        (SimpleImputer(missing_values=0.0), "missing_values other than NaN"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(fitted, message):
    with pytest.raises(TypeError, match=message):
        representation_state(fitted.fit(np.array([[0.0], [1.0], [1.0]])))


@pytest.mark.parametrize(
    ("name", "entry", "value", "message"),
    [
        ("imputer", "missing_features", np.array([1, 0]), "must be increasing"),
        ("imputer", "statistics", np.array([0.0]), "does not match"),
        ("rarity", "counts", np.array([1, 1, 1]), "must hold finite numbers from 2"),
        ("rarity", "values", np.array([2.0, 1.0, 0.0]), "must be increasing"),
        ("median", "statistics", [np.inf, 0.0], "must not be infinite"),
        ("ordinal", "categories", np.array([1.0, 0.0, 2.0]), "must be increasing"),
        ("ordinal", "has_missing", [0, 1], "one flag per feature"),
    ],
)
def test_damaged_files_are_refused(name, entry, value, message):
    X = np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, 1.0]])
    known = {"imputer": Imputer(), "rarity": RarityEncoder(), "median": SimpleImputer(), "ordinal": OrdinalEncoder()}
    state = representation_state(known[name].fit(X))
    state["fitted"][entry] = value
    with pytest.raises(ModelFileError, match=message):
        representation_from_state(read_document(document_bytes(state)), 2)


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder()])
def test_a_value_that_an_encoder_has_not_seen_gets_a_remedy_instead_of_an_internal_number(rng, encoder):
    y = np.repeat(np.arange(10), 6)
    table = pd.DataFrame({"size": y + rng.normal(size=60), "colour": rng.choice(["red", "blue", "green"], 60)})
    coded = ColumnTransformer([("words", encoder, ["colour"])], remainder="passthrough")
    model = GaussianSimilarity(representation=coded).fit(table, y)
    table.loc[3, "colour"] = "violet"
    with pytest.raises(
        ValueError, match="given a value of a category that it was not fitted on; set handle_unknown='ignore'"
    ) as said:
        model.pair_score([[3, 1]], table)
    assert "-2" not in str(said.value)
    tolerant = {"OneHotEncoder": {"handle_unknown": "ignore"}}.get(
        type(encoder).__name__, {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    )
    coded.set_params(**{f"words__{name}": value for name, value in tolerant.items()})
    model = GaussianSimilarity(representation=coded).fit(table[table["colour"] != "violet"], y[table["colour"] != "violet"])
    assert np.isfinite(model.pair_score([[3, 1]], table)).all()
