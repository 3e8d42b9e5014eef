"""Models fitted on a cluster are those of one machine, bit for bit."""

from __future__ import annotations

from collections import Counter

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from cluster_helpers import file_of, read_chunk
from simtree import (
    CohortNormalization,
    DistanceSimilarity,
    ForestPosterior,
    GaussianSimilarity,
    MarginalQuantiles,
    PosteriorSimilarity,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
    WithinClassWhitening,
)
from simtree import dask as simdask
from simtree.representation import _applied

pytestmark = pytest.mark.slow

FOREST = SimilarityForest(n_estimators=3, n_pairs=500, max_depth=4, random_state=0)
TREE = SimilarityTree(max_depth=3, n_pairs=500, random_state=0)
MODELS = {
    "forest": FOREST,
    "out-of-bag": clone(FOREST).set_params(oob_score=True, n_estimators=6, max_samples=0.4),
    "directions": clone(FOREST).set_params(
        coordinates=["abs_diff", "oblique"], directions=["random", "discriminant", "fisher"]
    ),
    "classes": clone(FOREST).set_params(bag="classes", splitter="gaussian"),
    "whitened": clone(FOREST).set_params(representation=WithinClassWhitening(random_state=0)),
    "tree": TREE,
    "pruned": clone(TREE).set_params(prune="cv", cv=2),
    "gaussian": GaussianSimilarity(representation=MarginalQuantiles()),
    "distance": DistanceSimilarity(),
    "voting": VotingSimilarity([("distance", DistanceSimilarity()), ("tree", TREE)]),
    "stacked": StackedSimilarity([("distance", DistanceSimilarity()), ("gaussian", GaussianSimilarity())], random_state=0),
    "cohort": CohortNormalization(DistanceSimilarity(), n_cohort=30, random_state=0),
    "posterior": PosteriorSimilarity(ForestPosterior(n_estimators=40, random_state=0)),
    "boosting": SimilarityBoosting(n_estimators=4, n_pairs=500, refresh=2, early_stopping=False, random_state=0),
}
CLOSED = {"posterior"}


@pytest.mark.filterwarnings("ignore:n_estimators")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_that_of_one_machine(name, people, client, too_large, small_batches, tmp_path):
    X, y = people
    y = y % 10 if name in CLOSED else y
    expected = file_of(clone(MODELS[name]).fit(X, y), tmp_path)
    model = clone(MODELS[name])
    assert simdask.fit(model, da.from_array(X, chunks=(130, 3)), da.from_array(y, chunks=200), client=client) is model
    assert file_of(model, tmp_path) == expected


@pytest.mark.parametrize("chunks", [(480, 5), (60, 5), ((1, 399, 80), 2)])
def test_chunks_do_not_matter(chunks, people, client, too_large, tmp_path):
    X, y = people
    expected = file_of(clone(FOREST).fit(X, y), tmp_path)
    assert file_of(simdask.fit(clone(FOREST), da.from_array(X, chunks=chunks), y, client=client), tmp_path) == expected


@pytest.mark.parametrize(
    ("form", "fits"),
    [
        ("array", True),
        ("array", False),
        ("frame", True),
        ("dask frame", True),
        ("dask frame", False),
        ("empty chunks", False),
        ("persisted", False),
    ],
)
def test_any_form_of_samples(form, fits, people, client, tmp_path, request):
    X, y = people
    if not fits:
        request.getfixturevalue("too_large")
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcde"))
    given = {
        "array": X,
        "frame": frame,
        "dask frame": dd.from_pandas(frame, npartitions=3),
        "empty chunks": da.from_array(X, chunks=100)[da.from_array(np.arange(480) < 250, chunks=100)],
        "persisted": client.persist(da.from_array(X, chunks=(200, 5))),
    }[form]
    here = {"dask frame": frame, "frame": frame, "empty chunks": X[:250]}.get(form, X)
    labels = dd.from_pandas(pd.Series(y), npartitions=2) if form == "dask frame" else y[: len(here)]
    expected = file_of(clone(FOREST).fit(here, y[: len(here)]), tmp_path)
    assert file_of(simdask.fit(clone(FOREST), given, labels, client=client), tmp_path) == expected


@pytest.mark.filterwarnings("ignore:refill=True lowers")
@pytest.mark.parametrize("fits", [True, False])
def test_hard_pairs_and_more_trees(fits, people, client, tmp_path, request):
    X, y = people
    if not fits:
        request.getfixturevalue("too_large")
    chunks = da.from_array(X, chunks=(200, 5))
    refilled = clone(FOREST).set_params(n_estimators=8, max_samples=0.4, refill=True, refill_budget=5000, focus_fpr=0.3)
    expected = file_of(clone(refilled).fit(X, y), tmp_path)
    assert file_of(simdask.fit(clone(refilled), chunks, y, client=client), tmp_path) == expected
    grown = simdask.fit(clone(FOREST), chunks, y, client=client).set_params(n_estimators=5, warm_start=True)
    more = clone(FOREST).set_params(n_estimators=5).fit(X, y)
    assert len(simdask.fit(grown, chunks, y, client=client).trees_) == 5
    np.testing.assert_array_equal(grown.pair_score([[0, 1], [5, 9]], X), more.pair_score([[0, 1], [5, 9]], X))


@pytest.mark.parametrize("fits", [True, False])
def test_given_pairs(fits, people, client, tmp_path, request):
    X, _ = people
    if not fits:
        request.getfixturevalue("too_large")
    pairs = np.random.default_rng(0).permutation(480).reshape(-1, 2)
    same = np.arange(240) % 3 == 0
    expected = file_of(clone(FOREST).fit(X, same, pairs=pairs), tmp_path)
    chunks = da.from_array(X, chunks=(100, 5))
    assert file_of(simdask.fit(clone(FOREST), chunks, same, pairs=pairs, client=client), tmp_path) == expected
    stacked = X[pairs]
    expected = file_of(clone(FOREST).fit(stacked, same), tmp_path)
    assert file_of(simdask.fit(clone(FOREST), stacked, same, client=client), tmp_path) == expected
    in_chunks = da.from_array(stacked, chunks=(50, 1, 5))
    assert file_of(simdask.fit(clone(FOREST), in_chunks, same, client=client), tmp_path) == expected


@pytest.mark.parametrize("model", [FOREST, GaussianSimilarity()], ids=["forest", "gaussian"])
def test_a_representation_of_many_rows_is_fitted_on_a_sample_of_them(model, people, client, too_large, tmp_path, monkeypatch):
    """On one machine alike; rows that were not in the sample are transformed as new ones."""
    monkeypatch.setattr(_applied, "MAX_FITTED_ROWS", 100)
    X, y = people
    y = y % 10
    model = clone(model).set_params(representation=ForestPosterior(n_estimators=40, random_state=0))
    expected = clone(model).fit(X, y)
    rows = _applied.fitted_rows(480)
    assert len(rows) == 100
    own = ForestPosterior(n_estimators=40, random_state=0).fit(X[rows], y[rows])
    np.testing.assert_array_equal(expected.representation_.transform(X), own.transform(X))
    found = simdask.fit(clone(model), da.from_array(X, chunks=(130, 5)), y, client=client)
    assert file_of(found, tmp_path) == file_of(expected, tmp_path)


@pytest.mark.parametrize("memory", [0.15, 1e-12])
def test_one_pass_over_the_chunks_per_batch_of_trees(memory, people, client, too_large, tmp_path, monkeypatch):
    monkeypatch.setattr("simtree.dask._samples.BATCH_MEMORY", memory)
    X, y = people
    chunks = da.from_array(X, chunks=(120, 5)).map_blocks(read_chunk, str(tmp_path), dtype=X.dtype, meta=X[:0])
    simdask.fit(clone(FOREST).set_params(n_estimators=5), chunks, y, client=client)
    reads = Counter(path.name.split()[0] for path in tmp_path.iterdir())
    n_batches = 1 if memory == 0.15 else 5
    # One look at the values, the first row, the rows of the trees, and those of the training curve.
    assert sorted(reads.values()) == [2 + n_batches] * 3 + [3 + n_batches]


@pytest.mark.filterwarnings("ignore:target_fpr")
def test_candidates_are_compared_at_the_same_time(people, client, monkeypatch):
    from simtree import AutoSimilarity
    from simtree.models import _presets

    chosen = {name: _presets.CANDIDATES[name] for name in list(_presets.CANDIDATES)[:2]}
    monkeypatch.setattr(_presets, "CANDIDATES", chosen)
    X, y = people
    expected = AutoSimilarity(open_set=True, random_state=0).fit(X, y)
    found = simdask.fit(AutoSimilarity(open_set=True, random_state=0), da.from_array(X, chunks=(100, 5)), y, client=client)
    for column in ("name", "weight", "criterion", "auc"):
        np.testing.assert_array_equal(found.results_[column], expected.results_[column])
    rows = np.arange(480).reshape(-1, 2)
    np.testing.assert_array_equal(found.pair_score(rows, X), expected.pair_score(rows, X))
