"""Values that only one identity has are not in model files: not as words, and not as codes that follow from words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import simtree
from simtree import (
    AutoSimilarity,
    CohortNormalization,
    DistanceSimilarity,
    GaussianSimilarity,
    RarityEncoder,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
)
from simtree.io._archive import read_document
from simtree.models import _presets as presets
from simtree.pairs._codes import FIRST_HASHED, hashed

# The warning that most values of the town belong to one identity is meant.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TREE = SimilarityTree(max_depth=3, splitter="cut", n_pairs=800, random_state=0)
BOOSTING = SimilarityBoosting(n_estimators=4, n_pairs=500, early_stopping=False, random_state=0)


def encoded(encoder):
    """Return a representation by which categories become numbers."""
    return ColumnTransformer([("words", encoder, ["colour", "town"])], remainder="passthrough")


ENCODED = {
    "one-hot": GaussianSimilarity(representation=encoded(OneHotEncoder(handle_unknown="ignore"))),
    "ordinal": DistanceSimilarity(
        representation=encoded(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1))
    ),
    "rarity": DistanceSimilarity(representation=encoded(RarityEncoder())),
    "rarity-tree": clone(TREE).set_params(representation=encoded(RarityEncoder())),
}
MODELS = {
    "tree": TREE,
    "forest": SimilarityForest(n_estimators=2, max_depth=3, n_pairs=500, random_state=0),
    "boosting": BOOSTING,
    **ENCODED,
    **{f"voting {name}": VotingSimilarity([("tree", TREE), ("other", model)]) for name, model in ENCODED.items()},
    "stacked": StackedSimilarity([("tree", TREE), ("boosting", BOOSTING)], open_set=False, random_state=0),
    "cohort": CohortNormalization(TREE, n_cohort=20, n_nearest=5, random_state=0),
    "cohort samples": CohortNormalization(TREE, cohort="samples", n_cohort=20, n_nearest=5, random_state=0),
    "stacked one-hot": StackedSimilarity([("tree", TREE), ("other", ENCODED["one-hot"])], open_set=False, random_state=0),
    "cohort synthetic": CohortNormalization(TREE, cohort="synthetic", n_cohort=20, n_nearest=5, random_state=0),
}
CANDIDATES = {
    "gaussian": lambda size: GaussianSimilarity(),
    "distance": lambda size: DistanceSimilarity(),
    "tree": lambda size: clone(TREE),
}


@pytest.fixture(scope="module")
def people():
    """Return a table, its labels, and the values that one person has: several samples of each person show them."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(16), 6)
    colour = np.array(["red", "blue", "green"], dtype=object)[rng.integers(0, 3, len(y))]
    colour[y == 3] = "a colour of one person"
    town = np.where(rng.random(len(y)) < 0.5, [f"town {k}" for k in y], "capital")
    private = ["a colour of one person", *(f"town {k}" for k in range(16))]
    return pd.DataFrame({"height": rng.normal(y % 4, 1.0), "colour": colour, "town": town}), y, private


def numbers_of(content):
    """Yield all numbers of a document."""
    for entry in content.values() if isinstance(content, dict) else content:
        if isinstance(entry, dict | list):
            yield from numbers_of(entry)
        elif isinstance(entry, int | float):
            yield float(entry)


def check(model, private, path):
    model.save(path)
    data, fields = path.read_bytes(), read_document(path)
    assert not [word for word in private if f'"{word}"'.encode() in data or f'"{word}"'.encode("utf-16-le") in data]
    found = np.concatenate([*(array.ravel().astype(np.float64) for array in fields.arrays), [*numbers_of(fields.content)]])
    codes = np.array([hashed(word) for word in private])
    assert not np.isin(codes, found).any()
    # Categories of a member are codes of the whole: none of them may be one of those that follow from a word.
    assert not (found > FIRST_HASHED).any()


@pytest.mark.parametrize("name", MODELS)
def test_values_of_one_identity_are_in_no_model_file(people, name, tmp_path):
    table, y, private = people
    check(clone(MODELS[name]).fit(table, y), private, tmp_path / "m.simtree")


@pytest.mark.parametrize("name", CANDIDATES)
def test_nor_in_what_auto_chose(people, name, tmp_path, monkeypatch):
    table, y, private = people
    monkeypatch.setattr(presets, "CANDIDATES", {name: presets.Candidate(CANDIDATES[name])})
    auto = AutoSimilarity(target_fpr=0.2, open_set=True, random_state=0).fit(table, y)
    check(auto, private, tmp_path / "m.simtree")


def test_a_member_with_an_encoder_scores_as_it_does_alone(people):
    table, y, _ = people
    voting = clone(MODELS["voting one-hot"]).fit(table, y)
    alone = clone(ENCODED["one-hot"]).fit(table, y)
    given = voting._given(voting.columns_.read(table[:12]))
    np.testing.assert_allclose(voting.estimators_[1].pairwise_score(given), alone.pairwise_score(table[:12]))


def test_a_loaded_ensemble_with_encoders_can_be_fitted_again(people, tmp_path):
    table, y, _ = people
    voting = clone(MODELS["voting one-hot"]).fit(table, y)
    voting.save(tmp_path / "m.simtree")
    loaded = simtree.load(tmp_path / "m.simtree")
    scores = voting.pairwise_score(table[:12])
    np.testing.assert_array_equal(loaded.pairwise_score(table[:12]), scores)
    np.testing.assert_allclose(loaded.fit(table, y).pairwise_score(table[:12]), scores)


def test_a_shared_value_is_found_by_the_same_check(people, tmp_path):
    table, y, _ = people
    with pytest.raises(AssertionError):
        check(clone(TREE).fit(table, y), ["capital"], tmp_path / "m.simtree")
