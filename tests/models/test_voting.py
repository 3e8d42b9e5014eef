from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from simtree import DistanceSimilarity, MarginalQuantiles, SimilarityForest, SimilarityTree, VotingSimilarity
from simtree.pairs._sampling import PairSampler

MEMBERS = [
    ("cosine", DistanceSimilarity(representation=MarginalQuantiles())),
    ("forest", SimilarityForest(n_estimators=3, max_depth=4, n_pairs=500, random_state=0)),
]


@pytest.fixture(scope="module")
def voting(blobs):
    return VotingSimilarity(MEMBERS).fit(*blobs)


def test_score_is_the_sum_of_scaled_scores(blobs, voting):
    X, y = blobs
    rows = np.random.default_rng(0).integers(0, len(X), (200, 2))
    pairs = PairSampler(y).all_pairs()
    different = np.column_stack([pairs.first, pairs.second])[~pairs.same]
    expected = np.zeros(200)
    for member in voting.estimators_:
        expected += member.pair_score(rows, X) / member.pair_score(different, X).std()
    np.testing.assert_allclose(voting.pair_score(rows, X), expected, rtol=1e-10)
    np.testing.assert_array_equal(voting.pair_score(rows, X), voting.pair_score(rows[:, ::-1], X))


def test_weights_count(blobs, voting):
    X, y = blobs
    heavy = VotingSimilarity(MEMBERS, weights=[1.0, 3.0]).fit(X, y)
    rows = np.random.default_rng(0).integers(0, len(X), (50, 2))
    more = 2.0 * voting.estimators_[1].pair_score(rows, X) / voting.scales_[1]
    np.testing.assert_allclose(heavy.pair_score(rows, X), voting.pair_score(rows, X) + more, rtol=1e-10)


def test_search_and_blocks_agree_with_pairs(blobs, voting):
    X, _ = blobs
    every = voting.pairwise_score(X[:4], X)
    rows = np.stack(np.meshgrid(np.arange(4), np.arange(len(X)), indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_array_equal(every.ravel(), voting.pair_score(rows, X))
    scores, _ = voting.top_k(X[:4], X, 5)
    np.testing.assert_array_equal(scores, -np.sort(-every, axis=1)[:, :5])
    assert (voting.pair_distance(rows, X) >= 0.0).all()


def test_pairs_and_preprocessors_reach_the_members(blobs):
    X, y = blobs
    pairs = PairSampler(y).sample(400, np.random.default_rng(0))
    rows = np.column_stack([pairs.first, pairs.second])
    members = [("plain", DistanceSimilarity()), ("tree", SimilarityTree(max_depth=3, random_state=0))]
    by_rows = VotingSimilarity(members).fit(X, pairs.same, pairs=rows)
    by_table = VotingSimilarity(members, preprocessor=X).fit(rows, pairs.same)
    np.testing.assert_array_equal(by_rows.pair_score(rows, X), by_table.pair_score(rows))


def test_a_constant_member_has_no_influence(blobs):
    X, y = blobs
    tree = SimilarityTree(max_depth=3, random_state=0)
    idle = SimilarityTree(max_depth=1, min_pairs_split=10**9, random_state=0)
    rows = np.random.default_rng(0).integers(0, len(X), (50, 2))
    together, alone = VotingSimilarity([("idle", idle), ("tree", tree)]).fit(X, y), clone(tree).fit(X, y)
    differences = np.diff(together.pair_score(rows, X)) * together.scales_[1]
    np.testing.assert_allclose(differences, np.diff(alone.pair_score(rows, X)), atol=1e-9)


def test_parameters_of_members_can_be_set():
    voting = clone(VotingSimilarity(MEMBERS)).set_params(forest__n_estimators=7)
    assert dict(voting.estimators)["forest"].n_estimators == 7
    assert dict(MEMBERS)["forest"].n_estimators == 3


@pytest.mark.parametrize(
    ("estimators", "weights", "error", "sentence"),
    [
        ([], None, ValueError, "estimators is empty"),
        ([("a", DistanceSimilarity()), ("a", DistanceSimilarity())], None, ValueError, "Names"),
        ([("a", MarginalQuantiles())], None, TypeError, "give similarities"),
        ([("a", DistanceSimilarity())], [1.0, 2.0], ValueError, "must be 1 positive numbers"),
        ([("a", DistanceSimilarity())], [0.0], ValueError, "must be 1 positive numbers"),
    ],
)
def test_invalid_members_are_rejected(blobs, estimators, weights, error, sentence):
    with pytest.raises(error, match=sentence):
        VotingSimilarity(estimators, weights=weights).fit(*blobs)
