"""Scores, searches, evaluations and thresholds on a cluster are those of one machine."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.base import clone

from simtree import DistanceSimilarity, SimilarityForest, evaluate
from simtree import dask as simdask
from simtree._utils.progress import watched_pairs
from simtree.dask import _scoring

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def forest(people):
    X, y = people
    return SimilarityForest(n_estimators=3, n_pairs=500, max_depth=4, oob_score=False, random_state=0).fit(X, y)


@pytest.fixture
def many_blocks(monkeypatch):
    """Pairs are many, so that workers score them."""
    monkeypatch.setattr(_scoring, "FEW", 64)
    monkeypatch.setattr(_scoring, "BLOCK", 5_000)


@pytest.fixture(params=["fits", "does not fit"])
def room(request):
    if request.param == "does not fit":
        request.getfixturevalue("too_large")
    return request.param


def test_pair_score_is_lazy_and_exact(room, many_blocks, small_batches, forest, people, client):
    X, _ = people
    pairs = np.random.default_rng(0).integers(0, 480, (12_000, 2))
    expected = forest.pair_score(pairs, X)
    for numbers in (pairs, da.from_array(pairs, chunks=(7_000, 1))):
        scores = simdask.pair_score(forest, numbers, da.from_array(X, chunks=(100, 2)), client=client)
        assert isinstance(scores, da.Array)
        assert scores.shape == (12_000,)
        np.testing.assert_array_equal(scores.compute(), expected)
    np.testing.assert_array_equal(simdask.pair_score(forest, pairs, X, client=client).compute(), expected)


def test_pair_score_of_pairs_of_samples(forest, people, client):
    X, _ = people
    pairs = X[np.random.default_rng(0).integers(0, 480, (900, 2))]
    expected = forest.pair_score(pairs)
    for given in (pairs, da.from_array(pairs, chunks=(400, 1, 3))):
        np.testing.assert_array_equal(simdask.pair_score(forest, given, client=client).compute(), expected)


@pytest.mark.parametrize("k", [7, 600])
def test_top_k_is_exact(k, forest, people, client):
    X, _ = people
    queries, frame = X[:20], pd.DataFrame(X)
    expected = forest.top_k(queries, X, k=k, min_score=0.1)
    for gallery in (da.from_array(X, chunks=(90, 2)), X, dd.from_pandas(frame, npartitions=3), da.from_array(X, chunks=480)):
        found = simdask.top_k(forest, queries, gallery, k=k, min_score=0.1, client=client)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "options",
    [
        {"n_pairs": None},
        {"n_pairs": 20_000},
        {"n_pairs": None, "weighting": "identities"},
        {"n_pairs": None, "by": np.arange(480) % 2, "never_pair": np.arange(480) % 50},
    ],
    ids=["all", "sampled", "identities", "subgroups"],
)
def test_an_evaluation_is_that_of_one_machine(options, room, many_blocks, forest, people, client):
    X, y = people
    told = []
    with watched_pairs(told.append):
        found = simdask.evaluate(forest, da.from_array(X, chunks=(100, 5)), y, client=client, **options)
    assert found.to_dict() == evaluate(forest, X, y, **options).to_dict()
    assert sum(told) >= found.n_same + found.n_different


@pytest.mark.parametrize("oob_score", [False, True])
@pytest.mark.filterwarnings("ignore:same pairs score", "ignore:n_estimators")
def test_a_threshold_is_that_of_one_machine(oob_score, room, many_blocks, people, client):
    X, y = people
    model = SimilarityForest(n_estimators=6, n_pairs=500, max_depth=3, max_samples=0.4, random_state=0, oob_score=oob_score)
    model.fit(X, y)
    expected = clone(model).fit(X, y).calibrate_threshold(X, y, max_fpr=0.2)
    assert simdask.calibrate_threshold(model, da.from_array(X, chunks=(100, 5)), y, max_fpr=0.2, client=client) is model
    assert model.threshold_report_ == expected.threshold_report_
    assert model.held_out_check_ == expected.held_out_check_


def test_the_small_step_is_the_backend_of_joblib(people, client, forest):
    X, y = people
    with client.as_current(), joblib.parallel_config(backend="dask"):
        found = clone(forest).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(found.pair_score([[0, 1], [3, 9]], X), forest.pair_score([[0, 1], [3, 9]], X))


def test_bad_input_is_told_in_one_sentence(forest, people, client, too_large):
    X, y = people
    bad = X.copy()
    bad[300, 2] = np.nan
    chunks = da.from_array(bad, chunks=(100, 5))
    with pytest.raises(ValueError, match="contains NaN in column 2, first in row 300; fill it in"):
        simdask.fit(DistanceSimilarity(), chunks, y, client=client)
    with pytest.raises(ValueError, match="contains NaN in column 2, first in row 300"):
        simdask.top_k(DistanceSimilarity().fit(X, y), X[:2], chunks, client=client)
    with pytest.raises(ValueError, match="X has 4 features, but SimilarityForest is expecting 5"):
        simdask.evaluate(forest, chunks[:, :4], y, client=client)
    with pytest.raises(IndexError, match="row number 480"):
        simdask.pair_score(forest, [[0, 480]], da.from_array(X, chunks=(100, 5)), client=client)
    with pytest.raises(ValueError, match="enrol is not supported on a cluster"):
        simdask.evaluate(forest, X, y, enrol=np.arange(len(y)) % 2 == 0, client=client)
    with pytest.raises(TypeError, match="is not a similarity"):
        simdask.fit("forest", X, y, client=client)
    with pytest.raises(TypeError, match=r"is not a dask\.distributed\.Client"):
        simdask.fit(SimilarityForest(), X, y, client="tcp://")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        simdask.fit(SimilarityForest(), da.from_array(X, chunks=(100, 5)), y[:10], client=client)
    names = pd.DataFrame(X, columns=list("abcde"))
    named = DistanceSimilarity().fit(names, y)
    with pytest.raises(ValueError, match="feature names should match"):
        simdask.evaluate(named, dd.from_pandas(names.rename(columns={"a": "z"}), npartitions=2), y, client=client)


def test_without_a_client(people, monkeypatch):
    def nobody():
        raise ValueError("no client")

    monkeypatch.setattr("simtree.dask._cluster.get_client", nobody)
    monkeypatch.setattr("simtree.dask._cluster.default_client", nobody)
    with pytest.raises(ValueError, match="there is no current Dask client"):
        simdask.fit(SimilarityForest(), *people)


def test_the_current_client_is_used(people, client, forest):
    X, _ = people
    assert isinstance(client, Client)
    with client.as_current():
        scores, _ = simdask.top_k(forest, X[:1], X, k=2)
    np.testing.assert_array_equal(scores, forest.top_k(X[:1], X, k=2)[0])
