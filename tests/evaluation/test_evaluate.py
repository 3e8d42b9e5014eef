"""One result object for all metrics: each against its own function, scikit-learn, or a hand-worked case."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import simtree.evaluation._counting as comparisons
from simtree import SimilarityTree, evaluate, evaluate_scores
from simtree.metrics import cmc, eer, fnir_at_fpir, fnmr_at_fmr, roc_curve, searches, tpr_at_fpr
from simtree.pairs._sampling import PairSampler


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(40), rng.integers(2, 8, 40)))
    return rng.normal(size=(40, 5))[y] + 0.6 * rng.normal(size=(len(y), 5)), y


@pytest.fixture(scope="module")
def tree(people):
    X, y = people
    return SimilarityTree(max_depth=6, random_state=0).fit(X[y < 20], y[y < 20])


@pytest.fixture(scope="module")
def held_out(people):
    X, y = people
    return X[y >= 20], y[y >= 20]


@pytest.fixture(scope="module")
def result(tree, held_out):
    return evaluate(tree, *held_out)


def test_verification_metrics(tree, held_out, result):
    X, y = held_out
    pairs = PairSampler(y).all_pairs()
    scores = tree.pair_score(np.column_stack([pairs.first, pairs.second]), X)
    roc = roc_curve(scores, pairs.same)
    assert result.auc.value == pytest.approx(roc_auc_score(pairs.same, scores))
    assert result.auc.value == pytest.approx(tree.score(X, y))
    assert result.partial_auc == pytest.approx(roc_auc_score(pairs.same, scores, max_fpr=0.01))
    assert result.auc.low < result.auc.value < result.auc.high
    assert result.eer == pytest.approx(eer(roc))
    for point in result.operating_points:
        assert point.fnmr.value == pytest.approx(fnmr_at_fmr(roc, point.target))
        assert point.fmr == np.mean(scores[~pairs.same] >= point.threshold) <= point.target
        assert point.fnmr.low <= point.fnmr.value <= point.fnmr.high
    assert (result.n_identities, result.n_samples) == (20, len(y))
    assert (result.n_same, result.n_different, result.n_possible) == (pairs.n_same, len(pairs) - pairs.n_same, len(pairs))


def test_only_rates_that_the_comparisons_support(result):
    """About 3,000 different pairs support 1e-3, by the rule of three, and not 1e-4."""
    assert 2995 <= result.n_different < 29_000
    assert [point.target for point in result.operating_points] == [1e-1, 1e-2, 1e-3]
    assert (
        result.to_dict()["named"]
        == result.named
        == {"FMR100": result.operating_points[1].fnmr.value, "FMR1000": result.operating_points[2].fnmr.value}
    )


def test_identification_metrics(tree, held_out, result):
    X, y = held_out
    table = tree.pairwise_score(X)
    alone = [searches(table[[i]][:, np.arange(len(y)) != i], y[[i]], y[np.arange(len(y)) != i]) for i in range(len(y))]
    joined = type(alone[0])(*(np.concatenate(column) for column in zip(*alone, strict=True)))
    np.testing.assert_allclose(result.cmc, cmc(joined.ranks))
    assert result.fnir == {0.1: pytest.approx(fnir_at_fpir(joined, 0.1))}  # too few searches for 0.01


def test_a_sample_is_stated(tree, held_out):
    drawn = evaluate(tree, *held_out, n_pairs=500)
    assert drawn.n_same + drawn.n_different == 500 < drawn.n_possible
    assert f"drawn from {drawn.n_possible:,}" in str(drawn)
    assert drawn.cmc is None
    assert drawn.fnir is None


def test_memory_does_not_grow_with_the_number_of_pairs(tree, held_out, monkeypatch):
    """Blocks are scored one after the other: at no time are more pairs asked for than a block has."""
    asked = []
    score = SimilarityTree._map_blocks
    monkeypatch.setattr(comparisons, "MAX_KEPT_SCORES", 0)
    monkeypatch.setattr(comparisons, "N_PILOT", 100)
    monkeypatch.setattr(comparisons, "BLOCK_SIZE", 400)
    monkeypatch.setattr(SimilarityTree, "_map_blocks", lambda self, block, n: asked.append(n) or score(self, block, n))
    whole = evaluate(tree, *held_out, n_pairs=None)
    largest = max(np.bincount(held_out[1])) * len(held_out[1])
    assert max(asked[2:]) <= max(400, largest)
    assert len(asked) > 5
    assert whole.auc.value == pytest.approx(tree.score(*held_out))


def test_subgroups_at_one_threshold(tree, held_out):
    X, y = held_out
    device = np.where(np.arange(len(y)) % 2, "phone", "pad")
    found = evaluate(tree, X, y, by=device, threshold=20.0)
    assert found.by_threshold == 20.0
    pairs = PairSampler(y).all_pairs()
    accepted = tree.pair_score(np.column_stack([pairs.first, pairs.second]), X) >= 20.0
    for group in found.by:
        within = (device[pairs.first] == group.subgroup) & (device[pairs.second] == group.subgroup)
        assert group.fmr.value == pytest.approx(accepted[within & ~pairs.same].mean())
        assert group.fnmr.value == pytest.approx(1 - accepted[within & pairs.same].mean())
        assert group.fmr.low <= group.fmr.value <= group.fmr.high
    assert {group.subgroup for group in found.by} == {"phone", "pad"}
    assert "within subgroups" in str(found)


def test_unknown_subgroups(tree, held_out):
    X, y = held_out
    with pytest.raises(ValueError, match=f"by holds {len(y)} missing labels"):
        evaluate(tree, X, y, by=[None] * len(y))


def test_a_subgroup_without_same_or_different_pairs(tree, held_out):
    X, y = held_out
    alone = np.where(np.arange(len(y)) == 0, "alone", "others")
    found = {group.subgroup: group for group in evaluate(tree, X, y, by=alone).by}
    assert found["alone"].fmr is None
    assert found["alone"].fnmr is None
    assert found["others"].n_same > 0


def test_table_and_json(result):
    text = str(result)
    for word in ("AUC", "EER", "FPR at most", "TPR at FPR 0", "rank 1", "open set", "20 identities"):
        assert word in text
    assert all(len(line) < 160 for line in text.splitlines())
    json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert repr(result).startswith("Evaluation(SimilarityTree: AUC")


def test_long_curves_are_thinned_out():
    rng = np.random.default_rng(0)
    same = np.arange(4000) % 2 == 0
    written = evaluate_scores(rng.normal(size=4000) + same, same).to_dict()["roc"]
    assert len(written["fpr"]) <= 1001
    assert written["fpr"][0] == 0.0
    assert written["fpr"][-1] == written["tpr"][-1] == 1.0


def test_scores_and_pairs_give_what_points_give(tree, held_out, result):
    X, y = held_out
    pairs = PairSampler(y).all_pairs()
    rows = np.column_stack([pairs.first, pairs.second])
    by_scores = evaluate_scores(tree.pair_score(rows, X), pairs.same, identities=y[rows])
    by_pairs = evaluate(tree, X, pairs.same, pairs=rows, identities=y)
    for other in (by_scores, by_pairs):
        assert other.auc == pytest.approx(result.auc)
        assert [p.fmr for p in other.operating_points] == [p.fmr for p in result.operating_points]
        assert other.n_identities == 20
        assert other.cmc is None


def test_intervals_are_wider_for_identities_than_for_pairs(tree, held_out, result):
    X, y = held_out
    pairs = PairSampler(y).all_pairs()
    naive = evaluate_scores(tree.pair_score(np.column_stack([pairs.first, pairs.second]), X), pairs.same)
    assert np.ptp(result.auc[1:]) > 1.2 * np.ptp(naive.auc[1:])
    samples = evaluate(tree, X, y, unit="samples")
    assert samples.auc.value == pytest.approx(result.auc.value)


def test_any_object_that_scores_pairs(held_out):
    class Distance:
        def pair_score(self, pairs, X):
            return -np.linalg.norm(X[pairs[:, 0]] - X[pairs[:, 1]], axis=1)

    X, y = held_out
    pairs = PairSampler(y).all_pairs()
    expected = roc_auc_score(pairs.same, -np.linalg.norm(X[pairs.first] - X[pairs.second], axis=1))
    assert evaluate(Distance(), X, y).auc.value == pytest.approx(expected)
    with pytest.raises(TypeError, match="is not a Similarity; score the pairs yourself"):
        evaluate(Distance(), X, pairs.same, pairs=np.column_stack([pairs.first, pairs.second]))
    with pytest.raises(ValueError, match="entries for the"):
        evaluate(Distance(), X, y[1:])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"unit": "people"}, ValueError, "unit='people' is unknown"),
        ({"confidence": 1.0}, ValueError, "confidence=1.0 is out of range"),
        ({"fpr": [0.0]}, ValueError, "fpr=0.0 is out of range"),
        ({"max_rank": 0}, ValueError, "max_rank=0 is out of range"),
        ({"n_pairs": 1}, ValueError, "n_pairs=1 is out of range"),
        ({"threshold": "high"}, TypeError, "threshold='high' is not a number"),
        ({"by": ["a"]}, ValueError, "by has shape"),
        ({"fpr": 0.01}, TypeError, "fpr=0.01 is not a list of rates"),
    ],
)
def test_bad_options(tree, held_out, options, error, message):
    with pytest.raises(error, match=message):
        evaluate(tree, *held_out, **options)


def test_what_is_taken_for_independent_is_said(tree, held_out):
    X, y = held_out
    pairs = PairSampler(y).sample(60, np.random.default_rng(0))
    rows = np.column_stack([pairs.first, pairs.second])
    scores = tree.pair_score(rows, X)
    assert evaluate_scores(scores, pairs.same).unit == "pairs"
    assert evaluate_scores(scores, pairs.same, identities=y[rows]).unit == "identities"
    assert evaluate(tree, X, pairs.same, pairs=rows).unit == "samples"
    assert "for new identities" in str(evaluate(tree, X, pairs.same, pairs=rows, identities=y))
    with pytest.raises(ValueError, match="identities has shape"):
        evaluate_scores(scores, pairs.same, identities=y)


def test_what_scores_no_pairs_is_refused(held_out):
    with pytest.raises(TypeError, match=r"give a similarity, or any object with pair_score\(pairs, X\)"):
        evaluate(object(), *held_out)


def test_an_unfitted_model_is_refused(held_out):
    with pytest.raises(NotFittedError):
        evaluate(SimilarityTree(), *held_out)


def test_points_that_never_pair_are_not_compared(tree, held_out):
    X, y = held_out
    sitting = np.arange(len(y)) % 4
    pairs = PairSampler(y, never_pair=sitting).all_pairs()
    scores = tree.pair_score(np.column_stack([pairs.first, pairs.second]), X)
    result = evaluate(tree, X, y, never_pair=sitting)
    assert result.auc.value == pytest.approx(roc_auc_score(pairs.same, scores))
    assert result.n_same + result.n_different == result.n_possible == len(pairs)
    drawn = evaluate(tree, X, y, never_pair=sitting, n_pairs=500)
    assert (drawn.n_same + drawn.n_different, drawn.n_possible) == (500, len(pairs))

    class Known:
        def pair_score(self, pairs, X):
            return tree.pair_score(pairs, X)

    assert evaluate(Known(), X, y, never_pair=sitting).auc == result.auc
    with pytest.raises(ValueError, match="never_pair is for labelled samples; leave unwanted pairs out"):
        evaluate(tree, X, pairs.same, pairs=np.column_stack([pairs.first, pairs.second]), never_pair=sitting)


def test_every_rate_has_its_plain_name_beside_that_of_iso():
    rng = np.random.default_rng(0)
    same = np.arange(600) % 3 == 0
    by = np.repeat(np.where(np.arange(600) < 400, "a", "b")[:, None], 2, axis=1)
    found = evaluate_scores(rng.normal(same * 1.0, 1.0), same, by=by, fpr=[0.1, 0.05])
    assert [point.target for point in found.operating_points] == [0.1, 0.05]
    roc = found.roc
    for point in found.operating_points:
        assert point.fpr == point.fmr <= point.target
        assert point.tpr.value == pytest.approx(tpr_at_fpr(roc, point.target))
        assert point.tpr.low <= point.tpr.value <= point.tpr.high
        assert (1.0 - point.tpr.low, 1.0 - point.tpr.high) == pytest.approx((point.fnmr.high, point.fnmr.low))
    for group in found.by:
        assert group.fpr == group.fmr
        assert group.tpr.value == pytest.approx(1.0 - group.fnmr.value)
    assert found.tpr_at_zero_fpr == pytest.approx(tpr_at_fpr(roc, 0.0))
    only_same = np.array([["c", "c"]] * 4)
    unlike = evaluate_scores(
        [3.0, 2.0, 1.0, 0.0], [True, False, True, False], by=np.where([[1], [0], [1], [0]], only_same, "d")
    )
    assert [(group.subgroup, group.fpr is None, group.tpr is None) for group in unlike.by] == [
        ("c", True, False),
        ("d", False, True),
    ]
