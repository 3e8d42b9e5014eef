"""Tables given to models with a representation: columns by name, number or mask, and the lines that errors name."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import simtree
from simtree import (
    AutoSimilarity,
    CohortNormalization,
    ColumnRepresentation,
    DistanceSimilarity,
    GaussianSimilarity,
    Imputer,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
)
from simtree.models import _presets as presets
from simtree.models._description import describe

COLUMNS = ["colour", "size", "when", "town", "weight"]
WORDS, NUMBERS, DATE = ["colour", "town"], ["size", "weight"], ["when"]


def visits(seed=0):
    """A table in which words stand before numbers, and a date has a time."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(20), 8)
    words = [np.where(rng.random(160) < 0.8, (y * step) % 7, rng.integers(0, 7, 160)) for step in (1, 3)]
    hours = pd.to_timedelta(y * 60 + rng.integers(0, 40, 160), unit="h")
    table = {
        "colour": np.array(list("abcdefg"), dtype=object)[words[0]],
        "size": y % 5 + rng.normal(size=160),
        "when": pd.Timestamp("2020-01-01") + hours,
        "town": np.array(list("tuvwxyz"), dtype=object)[words[1]],
        "weight": y % 3 + rng.normal(size=160),
    }
    return pd.DataFrame(table), y


def by(way, names):
    """Columns of the table by name, by number or as a mask."""
    numbers = [COLUMNS.index(name) for name in names]
    return {
        "name": names,
        "number": numbers,
        "number from the end": [number - len(COLUMNS) for number in numbers],
        "mask": [name in names for name in COLUMNS],
    }[way]


def encoder(way, kind=ColumnTransformer, names=DATE):
    return kind(
        [
            ("words", OneHotEncoder(handle_unknown="ignore"), by(way, WORDS)),
            ("numbers", StandardScaler(), by(way, NUMBERS)),
            ("days", make_pipeline(Imputer(), StandardScaler()), by(way, names)),
        ]
    )


@pytest.mark.parametrize("kind", [ColumnTransformer, ColumnRepresentation])
@pytest.mark.parametrize("way", ["number", "number from the end", "mask"])
def test_numbers_and_masks_mean_the_columns_of_the_table(way, kind, tmp_path):
    table, y = visits()
    new = visits(1)[0]
    model = GaussianSimilarity(representation=encoder(way, kind)).fit(table, y)
    # What the transformers are given by hand, and the same columns by name.
    parts = {name: (fitted, columns) for name, fitted, columns in model.representation_.transformers_}
    np.testing.assert_allclose(parts["numbers"][0].mean_, table[NUMBERS].mean())
    assert [len(values) for values in parts["words"][0].categories_] == [7, 7]
    assert len(parts["days"][1]) == 2  # the day and the hour
    scores = model.pairwise_score(new[:20])
    by_name = GaussianSimilarity(representation=encoder("name", kind)).fit(table, y)
    np.testing.assert_array_equal(by_name.pairwise_score(new[:20]), scores)
    np.testing.assert_array_equal(model.pairwise_score(new[:20][COLUMNS[::-1]]), scores)
    model.save(tmp_path / "m.simtree")
    again = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(again.pairwise_score(new[:20]), scores)
    np.testing.assert_array_equal(again.fit(table, y).pairwise_score(new[:20]), scores)


@pytest.mark.parametrize(
    "make",
    [
        lambda member: VotingSimilarity([("own", member), ("tree", SimilarityTree(max_depth=3, n_pairs=500, random_state=0))]),
        lambda member: StackedSimilarity([("own", member), ("other", clone(member))], random_state=0),
        lambda member: CohortNormalization(member, n_cohort=20, n_nearest=5, random_state=0),
        lambda member: VotingSimilarity([("inner", VotingSimilarity([("own", member)])), ("own", clone(member))]),
    ],
)
def test_members_mean_the_columns_of_the_table_too(make, tmp_path):
    table, y = visits()
    new = visits(1)[0]
    model = make(GaussianSimilarity(representation=encoder("number"))).fit(table, y)
    scores = model.pairwise_score(new[:10])
    by_name = make(GaussianSimilarity(representation=encoder("name"))).fit(table, y)
    np.testing.assert_array_equal(by_name.pairwise_score(new[:10]), scores)
    model.save(tmp_path / "m.simtree")
    again = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(again.pairwise_score(new[:10]), scores)
    np.testing.assert_array_equal(again.fit(table, y).pairwise_score(new[:10]), scores)


def test_columns_of_a_transformer_inside_another_are_counted_there():
    table, y = visits()

    def outer(way):
        # Of the date, the town and the weight, the transformer inside is given the last two.
        inner = [("word", OneHotEncoder(handle_unknown="ignore"), [1]), ("number", StandardScaler(), [-1])]
        return ColumnRepresentation([("some", ColumnRepresentation(inner), by(way, ["when", "town", "weight"]))])

    expected = [("word", OneHotEncoder(handle_unknown="ignore"), ["town"]), ("number", StandardScaler(), ["weight"])]
    plain = GaussianSimilarity(representation=ColumnRepresentation(expected)).fit(table, y)
    for way in ("name", "number"):
        found = GaussianSimilarity(representation=outer(way)).fit(table, y)
        np.testing.assert_array_equal(found.pairwise_score(table[:9]), plain.pairwise_score(table[:9]))


@pytest.mark.parametrize("first", [SimpleImputer(strategy="most_frequent"), Imputer(strategy="most_frequent", indicator=True)])
def test_columns_after_a_step_that_keeps_them_are_those_of_the_table(first):
    table, y = visits()
    table.loc[::9, "town"] = None
    coded = ColumnTransformer([("words", OrdinalEncoder(), [0, 3]), ("numbers", StandardScaler(), [1, 4])])
    model = DistanceSimilarity(representation=make_pipeline(first, coded)).fit(table, y)
    words, numbers = (step for _, step, _ in model.representation_.steps[1][1].transformers_)
    assert [len(values) for values in words.categories_] == [7, 7]
    np.testing.assert_allclose(numbers.mean_, table[NUMBERS].mean())


@pytest.mark.parametrize("step", ["passthrough", None])
def test_a_step_that_does_nothing_keeps_columns(step, tmp_path):
    table, y = visits()
    coded = ColumnTransformer([("words", OneHotEncoder(), WORDS), ("numbers", StandardScaler(), NUMBERS)])
    plain, padded = coded, Pipeline([("nothing", step), ("coded", coded)])
    expected = VotingSimilarity([("own", GaussianSimilarity(representation=plain))]).fit(table, y).pairwise_score(table[:9])
    model = VotingSimilarity([("own", GaussianSimilarity(representation=padded))]).fit(table, y)
    np.testing.assert_array_equal(model.pairwise_score(table[:9]), expected)
    model.save(tmp_path / "m.simtree")
    np.testing.assert_array_equal(simtree.load(tmp_path / "m.simtree").fit(table, y).pairwise_score(table[:9]), expected)


@pytest.mark.parametrize("wrap", [lambda member: member, lambda member: VotingSimilarity([("own", member)])])
def test_the_hour_of_a_date_can_be_given_by_name(wrap, tmp_path):
    table, y = visits()
    inner = ColumnRepresentation([("hour", StandardScaler(), [0]), ("weight", "passthrough", ["weight"])])
    parts = ColumnRepresentation([("h", StandardScaler(), ["when: hour"]), ("inner", inner, ["when: hour", "weight"])])
    model = wrap(GaussianSimilarity(representation=parts)).fit(table, y)
    hours = table.assign(hour=table["when"].dt.hour)[["hour", "weight", "colour"]]
    of_numbers = ColumnRepresentation(
        [("h", StandardScaler(), ["hour"]), ("again", StandardScaler(), ["hour"]), ("weight", "passthrough", ["weight"])]
    )
    expected = wrap(GaussianSimilarity(representation=of_numbers)).fit(hours, y).pairwise_score(hours[:9])
    np.testing.assert_array_equal(model.pairwise_score(table[:9]), expected)
    model.save(tmp_path / "m.simtree")
    again = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(again.pairwise_score(table[:9]), expected)
    np.testing.assert_array_equal(again.fit(table, y).pairwise_score(table[:9]), expected)
    # A column of the table with this name comes first, and numbers and masks count columns of the table.
    named = table.assign(**{"when: hour": table["size"]})
    plain = ColumnRepresentation([("h", StandardScaler(), ["when: hour"])])
    found = GaussianSimilarity(representation=plain).fit(named, y)
    np.testing.assert_allclose(found.representation_.transformers_[0][1].mean_, [table["size"].mean()])
    with pytest.raises(ValueError, match="columns has 5; give names, or numbers from -5 to 4"):
        GaussianSimilarity(representation=ColumnRepresentation([("h", StandardScaler(), [5])])).fit(table, y)


@pytest.mark.parametrize("way", ["name", "number", "mask"])
@pytest.mark.filterwarnings("ignore:X has no value", "ignore:X has the column 'when' of text")
def test_a_column_that_is_left_out_is_named(way):
    table, y = visits()
    for left in (np.nan, [f"visit {k}" for k in range(len(y))]):
        with pytest.raises(
            ValueError, match=r"'days' has the column 'when', which the model leaves out.*; remove it from there"
        ):
            GaussianSimilarity(representation=encoder(way)).fit(table.assign(when=left), y)
        kept = encoder(way).set_params(days="drop")
        assert GaussianSimilarity(representation=kept).fit(table.assign(when=left), y).score(table, y) > 0.6


def test_the_length_of_a_mask_is_that_of_the_table():
    table, y = visits()
    short = ColumnTransformer([("words", OneHotEncoder(), [True, False, False, True])])
    with pytest.raises(ValueError, match="mask of length 4; X has 5 columns"):
        GaussianSimilarity(representation=short).fit(table, y)
    with pytest.raises(ValueError, match="columns has 5; give names, or numbers from -5 to 4"):
        GaussianSimilarity(representation=ColumnTransformer([("words", OneHotEncoder(), [5])])).fit(table, y)


NEEDING = {
    "voting": (VotingSimilarity([("f", SimilarityTree()), ("g", GaussianSimilarity())]), "'g'", "g"),
    "stack": (StackedSimilarity([("f", SimilarityTree()), ("g", GaussianSimilarity())]), "'g'", "g"),
    "cohort": (CohortNormalization(GaussianSimilarity(), n_cohort=20), "estimator", "estimator"),
    "nested": (
        VotingSimilarity([("f", SimilarityTree()), ("in", CohortNormalization(GaussianSimilarity(), n_cohort=20))]),
        "estimator of 'in'",
        "in__estimator",
    ),
}


@pytest.mark.parametrize("name", NEEDING)
def test_the_member_that_needs_complete_numbers_is_named_with_the_line_that_helps(name):
    model, where, path = NEEDING[name]
    table, y = visits()
    table = table[NUMBERS].mask(np.arange(160)[:, None] % 20 == [7, 9])
    said = (
        rf"column 'size', first in row 7; fill it in with (representation=.*) of simtree\.representation in {where}, a Gaussian"
    )
    with pytest.raises(ValueError, match=said):
        clone(model).fit(table, y)
    clone(model).set_params(**{f"{path}__representation": Imputer()}).fit(table, y)


def test_the_member_that_needs_numbers_is_named_with_the_line_that_helps():
    table, y = visits()
    model = CohortNormalization(GaussianSimilarity(), n_cohort=20, random_state=0)
    said = (
        r"'colour' of text.*; give a data frame and representation=(.*) of scikit-learn in estimator, a GaussianSimilarity, or"
    )
    with pytest.raises(ValueError, match=said) as error:
        model.fit(table[["colour", "size"]], y)
    known = {"ColumnTransformer": ColumnTransformer, "OneHotEncoder": OneHotEncoder}
    encoding = eval(re.search(said, str(error.value)).group(1), known)
    model.set_params(estimator__representation=encoding).fit(table[["colour", "size"]], y)


@pytest.mark.parametrize(
    ("needing", "path"),
    [
        (GaussianSimilarity(), "own"),
        (CohortNormalization(GaussianSimilarity(), n_cohort=20, random_state=0), "own__estimator"),
        (SimilarityTree(max_depth=2, n_pairs=500, categorical_features=None), "own"),
    ],
)
def test_a_member_of_numbers_beside_one_of_words_is_named_with_the_line_that_helps(needing, path):
    table, y = visits()
    model = VotingSimilarity([("tree", SimilarityTree(max_depth=2, n_pairs=500, random_state=0)), ("own", needing)])
    name = type(needing).__name__
    said = rf"'own' is a {name} that takes numbers only, but X has .*; give it (\w+)=(.*?)( of scikit.*)?, or drop"
    with pytest.raises(ValueError, match=said) as error:
        model.fit(table, y)
    parameter, line = re.search(said, str(error.value)).group(1, 2)
    given = eval(line, {"ColumnTransformer": ColumnTransformer, "OneHotEncoder": OneHotEncoder})
    model.set_params(**{f"{path}__{parameter}": given}).fit(table, y)


@pytest.mark.parametrize("wrap", [lambda encoder: encoder, lambda encoder: make_pipeline(encoder, StandardScaler())])
def test_an_encoder_that_returns_missing_values_is_named_with_the_parameter_that_helps(wrap):
    table, y = visits()
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    coded = ColumnTransformer([("words", wrap(encoder), WORDS)], remainder="passthrough")
    holes = table[["colour", "size", "town"]].mask(np.arange(160)[:, None] % 20 == [7, -1, 9])
    said = "contains NaN in column 0, first in row 7; set encoded_missing_value of the OrdinalEncoder to a number such as -2"
    with pytest.raises(ValueError, match=said):
        GaussianSimilarity(representation=coded).fit(holes, y)
    encoder.set_params(encoded_missing_value=-2)
    assert GaussianSimilarity(representation=coded).fit(holes, y).score(holes, y) > 0.6
    # Missing numbers are not those of the encoder, which sees complete words.
    holes = table[["colour", "size", "town"]].mask(np.arange(160)[:, None] % 20 == [-1, 9, -1])
    with pytest.raises(ValueError, match="contains NaN in column 2, first in row 9; choose a transformer that makes finite"):
        GaussianSimilarity(representation=coded.set_params(words=OrdinalEncoder())).fit(holes, y)


@pytest.mark.parametrize(
    ("candidates", "said"),
    [
        (["tree"], {"categorical_features": "['colour', 'town']"}),
        (["gaussian"], {"representation": "['size', 'when', "}),
        (["tree", "gaussian"], {"estimators": "categorical_features=['colour', 'town']"}),
    ],
)
def test_the_description_of_a_chosen_model_names_columns_of_the_table(candidates, said, monkeypatch, tmp_path):
    table, y = visits()
    models = {"tree": SimilarityTree(max_depth=2, n_pairs=500, random_state=0), "gaussian": GaussianSimilarity()}
    stack = StackedSimilarity([(name, models[name]) for name in candidates], random_state=0)
    chosen = models[candidates[0]] if len(candidates) == 1 else stack
    monkeypatch.setattr(presets, "CANDIDATES", {"only": presets.Candidate(lambda size: clone(chosen))})
    auto = AutoSimilarity(target_fpr=0.2, open_set=True, random_state=0).fit(table, y)
    auto.save(tmp_path / "m.simtree")
    for model in (auto, simtree.load(tmp_path / "m.simtree")):
        shown = describe(model)["parameters"]
        for name, words in said.items():
            assert words in shown[name]
        assert not re.search(r"\[\d+(, \d+)*\]", str(shown))
