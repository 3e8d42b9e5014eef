"""Missing values and tables on a cluster: the models and scores of one machine, bit for bit."""

from __future__ import annotations

from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder

import dask
from cluster_helpers import DeadlySplitter, file_of, frame_part
from simtree import (
    CohortNormalization,
    CutSplitter,
    DistanceSimilarity,
    Gallery,
    GaussianSimilarity,
    Imputer,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
    evaluate,
)
from simtree import dask as simdask
from simtree.dask import _samples, _scoring
from simtree.pairs import _categories, _table
from simtree.pairs._store import SampleStore

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:X has the column 'note'", "ignore:n_estimators")]

FOREST = SimilarityForest(n_estimators=3, n_pairs=500, max_depth=4, random_state=0)
TREE = SimilarityTree(max_depth=3, n_pairs=500, random_state=0)
BOOSTING = SimilarityBoosting(n_estimators=6, n_pairs=500, refresh=2, random_state=0)
ENCODED = ColumnTransformer(
    [("words", OneHotEncoder(handle_unknown="ignore"), ["colour", "town"]), ("filled", Imputer(), ["a", "b", "day"])]
)
# Models that take missing numbers, and tables.
MODELS = {
    "forest": FOREST,
    "out-of-bag": clone(FOREST).set_params(oob_score=True, n_estimators=6, max_samples=0.4),
    "directions": clone(FOREST).set_params(
        coordinates=["abs_diff", "oblique", "cosine"], directions=["random", "discriminant"]
    ),
    "gaussian splitter": clone(FOREST).set_params(splitter="gaussian"),
    "imputed": clone(FOREST).set_params(representation=Imputer(indicator=True)),
    "tree": TREE,
    "boosting": BOOSTING,
    "all rounds": clone(BOOSTING).set_params(early_stopping=False),
    "voting": VotingSimilarity([("forest", FOREST), ("tree", TREE)]),
    "stacked": StackedSimilarity([("forest", FOREST), ("tree", TREE)], random_state=0),
    "cohort": CohortNormalization(FOREST, n_cohort=30, random_state=0),
}
OF_TABLES = {
    **MODELS,
    "chosen": clone(FOREST).set_params(categorical_features=["postcode"]),
    "closed set": clone(FOREST).set_params(open_set=False),
    "boosting of a closed set": clone(BOOSTING).set_params(open_set=False),
    "encoder": GaussianSimilarity(representation=ENCODED),
}
ENDS = (0, 120, 121, 300, 480)


@pytest.fixture(scope="module")
def holed(people):
    """Numbers with holes."""
    X, y = people
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    X[:120, 1] = np.nan  # all of the first chunk
    return X, y


@pytest.fixture(scope="module")
def table(holed):
    """A table with holes, categories, booleans and dates; some of it is found in one partition only."""
    X, y = holed
    rng = np.random.default_rng(2)
    n = len(y)
    colour = np.array(["red", "blue", "green", "grey"], dtype=object)[(y + (rng.random(n) < 0.2)) % 4]
    colour[rng.random(n) < 0.1] = None
    colour[130:135] = "orange"  # in the third partition only, of several people
    colour[:120] = None  # no value at all in the first
    town = np.array([f"town {number}" for number in y // 3], dtype=object)
    town[400] = "a town of one person"
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(24 * (3 * y + rng.integers(0, 2, n)) + 6, unit="h")
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        colour=colour,
        town=pd.Categorical(town),
        known=rng.random(n) < 0.5,
        member=pd.array(np.where(rng.random(n) < 0.1, None, y % 2 == 0), dtype="boolean"),
        day=days,
        postcode=1000 + y % 7,
        note=[f"note {number}" for number in range(n)],
    )
    frame.loc[5:9, "day"] = pd.NaT
    return frame, y


def in_partitions(frame, ends=ENDS):
    """A Dask frame each of whose partitions has its categories in an order of its own."""
    parts = []
    for start, stop in pairwise(ends):
        part = frame.iloc[start:stop].copy()
        own = list(dict.fromkeys(part["town"].dropna()))
        parts.append(part.assign(town=pd.Categorical(part["town"].astype(object), categories=own[::-1])))
    meta = frame[:0].assign(town=frame["town"][:0].astype(pd.CategoricalDtype(["__UNKNOWN_CATEGORIES__"])))
    return dd.from_map(frame_part, parts, meta=meta, enforce_metadata=False)


@pytest.fixture(params=["fits", "does not fit"])
def room(request):
    if request.param == "does not fit":
        request.getfixturevalue("too_large")


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_numbers_with_holes_is_that_of_one_machine(name, holed, client, too_large, small_batches, tmp_path):
    X, y = holed
    expected = file_of(clone(MODELS[name]).fit(X, y), tmp_path)
    assert file_of(simdask.fit(clone(MODELS[name]), da.from_array(X, chunks=(120, 3)), y, client=client), tmp_path) == expected


@pytest.mark.parametrize("name", OF_TABLES)
def test_a_model_of_a_table_is_that_of_one_machine(name, table, client, too_large, small_batches, tmp_path):
    frame, y = table
    expected = clone(OF_TABLES[name]).fit(frame, y)
    found = simdask.fit(clone(OF_TABLES[name]), in_partitions(frame), y, client=client)
    assert found.columns_ == expected.columns_
    assert file_of(found, tmp_path) == file_of(expected, tmp_path)


@pytest.mark.parametrize(
    "form", ["array", "dask array", "frame", "dask frame", "chosen of a dask array", "dask frame of numbers"]
)
def test_any_form_that_fits(form, holed, table, client, tmp_path):
    (X, y), (frame, _) = holed, table
    whole = np.where(np.isnan(X), np.nan, np.round(X))
    numbers = frame[["a", "known", "member", "postcode"]]
    here, given = {
        "array": (X, X),
        "dask array": (X, da.from_array(X, chunks=(200, 5))),
        "frame": (frame, frame),
        "dask frame": (frame, in_partitions(frame)),
        "chosen of a dask array": (whole, da.from_array(whole, chunks=(200, 5))),
        "dask frame of numbers": (numbers, dd.from_pandas(numbers, npartitions=3)),
    }[form]
    model = clone(FOREST).set_params(categorical_features=[0, 2]) if form.startswith("chosen") else clone(FOREST)
    expected = file_of(clone(model).fit(here, y), tmp_path)
    assert file_of(simdask.fit(model, given, y, client=client), tmp_path) == expected


@pytest.mark.parametrize("form", ["chosen of a dask array", "dask frame of numbers", "pairs"])
def test_other_forms_that_do_not_fit(form, holed, table, client, too_large, tmp_path):
    (X, y), (frame, _) = holed, table
    model, options = clone(FOREST), {}
    if form == "pairs":
        options["pairs"] = np.random.default_rng(0).permutation(480).reshape(-1, 2)
        here, given, y = frame, in_partitions(frame), np.arange(240) % 3 == 0
    elif form == "dask frame of numbers":
        here = frame[["a", "known", "member", "postcode"]]
        given = dd.from_pandas(here, npartitions=3)
    else:
        here = np.where(np.isnan(X), np.nan, np.round(X))
        given = da.from_array(here, chunks=(200, 2))
        model.set_params(categorical_features=[0, 2])
    expected = file_of(clone(model).fit(here, y, **options), tmp_path)
    assert file_of(simdask.fit(model, given, y, client=client, **options), tmp_path) == expected


@pytest.mark.parametrize("form", ["persisted", "delayed", "columns"])
def test_frames_of_any_origin(form, table, client, too_large, tmp_path):
    frame, y = table
    here = frame[["a", "colour", "town"]]
    halves = [here[:200], here[200:]]
    given = {
        "persisted": lambda: client.persist(in_partitions(here)),
        "delayed": lambda: dd.from_delayed([dask.delayed(half) for half in halves], meta=here[:0]),
        "columns": lambda: in_partitions(frame)[["a", "colour", "town"]],
    }[form]()
    expected = file_of(clone(FOREST).fit(here, y), tmp_path)
    assert file_of(simdask.fit(clone(FOREST), given, y, client=client), tmp_path) == expected


@pytest.mark.parametrize("ends", [(0, 480), (0, 1, 2, 250, 480), (0, 240, 240, 480)])
def test_partitions_do_not_matter(ends, table, client, too_large, tmp_path):
    frame, y = table
    expected = file_of(clone(FOREST).fit(frame, y), tmp_path)
    assert file_of(simdask.fit(clone(FOREST), in_partitions(frame, ends), y, client=client), tmp_path) == expected


@pytest.mark.filterwarnings("ignore:refill=True lowers")
def test_more_trees_on_a_table(table, client, too_large, tmp_path):
    """Hard pairs, and trees that are added later: the hash of the samples is that of one machine."""
    frame, y = table
    model = clone(FOREST).set_params(n_estimators=8, max_samples=0.4, refill=True, refill_budget=5000, focus_fpr=0.3)
    expected = file_of(clone(model).fit(frame, y), tmp_path)
    assert file_of(simdask.fit(model, in_partitions(frame), y, client=client), tmp_path) == expected
    grown = clone(FOREST).fit(frame, y).set_params(n_estimators=5, warm_start=True)
    simdask.fit(grown, in_partitions(frame), y, client=client)
    more = clone(FOREST).set_params(n_estimators=5).fit(frame, y)
    np.testing.assert_array_equal(grown.pair_score([[0, 1], [5, 9]], frame), more.pair_score([[0, 1], [5, 9]], frame))


def test_a_worker_is_killed_in_the_middle_of_a_table(table, client, too_large, tmp_path):
    frame, y = table
    expected = clone(FOREST).set_params(splitter=CutSplitter()).fit(frame, y)
    found = clone(FOREST).set_params(splitter=DeadlySplitter(str(tmp_path / "flag")))
    simdask.fit(found, in_partitions(frame), y, client=client)
    assert (tmp_path / "flag").exists()
    rows = np.arange(480).reshape(-1, 2)
    np.testing.assert_array_equal(found.pair_score(rows, frame), expected.pair_score(rows, frame))


def test_many_values_are_told_by_hashes_first(table, client, too_large, tmp_path, monkeypatch):
    frame, y = table
    expected = file_of(clone(FOREST).fit(frame, y), tmp_path)
    monkeypatch.setattr(_table, "MAX_TOLD_VALUES", 3)
    assert file_of(simdask.fit(clone(FOREST), in_partitions(frame), y, client=client), tmp_path) == expected


@pytest.mark.parametrize("model", [FOREST, BOOSTING], ids=["forest", "boosting"])
def test_no_process_gathers_all_rows(model, table, client, too_large, monkeypatch):
    """Only rows of sampled pairs come to this program; here so few are sampled that they are not all rows."""
    frame, y = table
    monkeypatch.setattr(_categories, "N_PAIRS", 60)
    monkeypatch.setattr("simtree.models._boosting.TRAINING_SAMPLE", 60)
    monkeypatch.setattr("simtree.models._forest.TRAINING_SAMPLE", 60)
    fetched = []
    taken = _samples.ChunkSamples.__getitem__

    def counted(self, rows):
        found = taken(self, rows)
        fetched.append(len(found))
        return found

    def refused(self, dtype=None, copy=None):
        raise AssertionError("all rows were gathered")

    monkeypatch.setattr(_samples.ChunkSamples, "__getitem__", counted)
    monkeypatch.setattr(SampleStore, "__array__", refused)
    simdask.fit(
        clone(model).set_params(n_pairs=60, early_stopping=False) if model is BOOSTING else clone(model),
        in_partitions(frame),
        y,
        client=client,
    )
    assert 0 < max(fetched) <= 120


def test_scores_of_a_table(room, table, client, monkeypatch):
    monkeypatch.setattr(_scoring, "FEW", 64)
    monkeypatch.setattr(_scoring, "BLOCK", 5_000)
    frame, y = table
    forest, given = clone(FOREST).fit(frame, y), in_partitions(frame)
    pairs = np.random.default_rng(0).integers(0, 480, (12_000, 2))
    np.testing.assert_array_equal(
        simdask.pair_score(forest, pairs, given, client=client).compute(), forest.pair_score(pairs, frame)
    )
    expected = evaluate(forest, frame, y, n_pairs=None).to_dict()
    assert simdask.evaluate(forest, given, y, n_pairs=None, client=client).to_dict() == expected
    other = clone(FOREST).fit(frame, y).calibrate_threshold(frame, y, max_fpr=0.2, confidence=None)
    simdask.calibrate_threshold(forest, given, y, max_fpr=0.2, confidence=None, client=client)
    assert forest.threshold_report_ == other.threshold_report_


def test_scores_of_numbers_with_holes(room, holed, client):
    X, y = holed
    forest, given = clone(FOREST).fit(X, y), da.from_array(X, chunks=(120, 3))
    pairs = np.random.default_rng(0).integers(0, 480, (500, 2))
    np.testing.assert_array_equal(
        simdask.pair_score(forest, pairs, given, client=client).compute(), forest.pair_score(pairs, X)
    )
    assert simdask.evaluate(forest, given, y, client=client).to_dict() == evaluate(forest, X, y).to_dict()


def test_pairs_of_samples_of_a_table(table, client):
    frame, y = table
    forest = clone(FOREST).fit(frame, y)
    cells = frame.to_numpy(dtype=object)
    pairs = cells[np.random.default_rng(0).integers(0, 480, (200, 2))]
    expected = forest.pair_score(pairs)
    for given in (pairs, pairs.tolist(), da.from_array(pairs, chunks=(90, 1, 5))):
        np.testing.assert_array_equal(simdask.pair_score(forest, given, client=client).compute(), expected)


def test_search_in_a_table(table, client, tmp_path):
    frame, y = table
    forest = clone(FOREST).fit(frame, y)
    expected = forest.top_k(frame[:20], frame, k=7)
    for queries in (frame[:20], in_partitions(frame[:20], (0, 5, 20))):
        for gallery in (in_partitions(frame), frame):
            for one, other in zip(simdask.top_k(forest, queries, gallery, k=7, client=client), expected, strict=True):
                np.testing.assert_array_equal(one, other)
    with Gallery.create(tmp_path / "people.gallery", forest) as gallery:
        gallery.enroll([f"person {number}" for number in y[:200]], frame[:200])
        own = gallery.identify(frame[200:230], k=3)
        found = simdask.identify(gallery, in_partitions(frame[200:230], (0, 9, 30)), k=3, client=client)
        assert found.id.tolist() == own.id.tolist()
        np.testing.assert_array_equal(found.score, own.score)


def test_bad_tables_are_told_in_one_sentence(holed, table, client, room):
    (X, y), (frame, _) = holed, table
    chunks = da.from_array(X, chunks=(120, 5))
    row = int(np.flatnonzero(np.isnan(X[:, 0]))[0])
    with pytest.raises(
        ValueError, match=rf"contains NaN in column 0, first in row {row}; fill it in with representation=Imputer"
    ):
        simdask.fit(GaussianSimilarity(), chunks, y, client=client)
    with pytest.raises(ValueError, match=rf"contains NaN in column 'a', first in row {row}; fill it in"):
        simdask.fit(DistanceSimilarity(), in_partitions(frame)[["a", "b"]], y, client=client)
    with pytest.raises(ValueError, match="has the column 'colour' of text, such as '"):
        simdask.fit(
            GaussianSimilarity(), in_partitions(frame[["town", "colour"]].assign(a=0.0))[["a", "colour"]], y, client=client
        )
    with pytest.raises(ValueError, match="has the column 'day' of dates"):
        simdask.fit(GaussianSimilarity(), in_partitions(frame)[["a", "day"]], y, client=client)
    endless = frame.assign(a=np.where(np.arange(480) == 310, np.inf, frame["a"]))
    with pytest.raises(ValueError, match="contains infinity in column 'a', first in row 310"):
        simdask.fit(clone(FOREST), in_partitions(endless), y, client=client)
    forest = clone(FOREST).fit(frame, y)
    with pytest.raises(ValueError, match="contains infinity in column 'a', first in row 310"):
        simdask.evaluate(forest, in_partitions(endless), y, client=client)
    with pytest.raises(ValueError, match="has no column 'colour', on which the model was fitted"):
        simdask.evaluate(forest, in_partitions(frame).drop(columns="colour"), y, client=client)
    words = np.column_stack([np.where(np.arange(480) < 300, "red", None), X[:, 0]]).astype(object)
    words[300:, 0] = 7.0
    with pytest.raises(ValueError, match=r"has the column '0' of mixed types, such as 'red' and 7.0"):
        simdask.fit(clone(FOREST).set_params(categorical_features=[0]), da.from_array(words, chunks=(150, 2)), y, client=client)
    with pytest.raises(ValueError, match=r"categorical_features names the column 'note', whose values are all different"):
        simdask.fit(clone(FOREST).set_params(categorical_features=["note"]), in_partitions(frame), y, client=client)


def test_warnings_are_those_of_one_machine(table, client, too_large):
    frame, y = table
    frame = frame.assign(e=np.nan, colour=None)
    given = in_partitions(frame)
    with pytest.warns(UserWarning, match="X has no value in columns? .*'e'"):
        found = simdask.fit(clone(FOREST), given, y, client=client)
    with pytest.warns(UserWarning, match="X has no value in columns? .*'e'"):
        expected = clone(FOREST).fit(frame, y)
    assert found.columns_ == expected.columns_


@pytest.mark.filterwarnings("ignore:target_fpr")
def test_a_choice_for_a_table(table, client, too_large, monkeypatch):
    from simtree import AutoSimilarity
    from simtree.models import _presets

    chosen = {name: _presets.CANDIDATES[name] for name in list(_presets.CANDIDATES)[:2]}
    monkeypatch.setattr(_presets, "CANDIDATES", chosen)
    frame, y = table
    expected = AutoSimilarity(open_set=True, random_state=0).fit(frame, y)
    found = simdask.fit(AutoSimilarity(open_set=True, random_state=0), in_partitions(frame), y, client=client)
    assert found.columns_ == expected.columns_
    np.testing.assert_array_equal(found.results_["criterion"], expected.results_["criterion"])
    rows = np.arange(480).reshape(-1, 2)
    np.testing.assert_array_equal(found.pair_score(rows, frame), expected.pair_score(rows, frame))
