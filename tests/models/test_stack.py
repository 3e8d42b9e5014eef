"""StackedSimilarity: the fused scores of its members, in all ways of asking."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import simtree
from simtree import (
    CohortNormalization,
    DistanceSimilarity,
    GaussianSimilarity,
    MarginalQuantiles,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
)
from simtree.io import ModelFileError
from simtree.io._archive import document_bytes
from simtree.metrics import roc_curve
from simtree.pairs._sampling import PairSampler
from tiny_models import people, probes

TREES = [
    ("tree", SimilarityTree(max_depth=3, n_pairs=400, random_state=0)),
    ("forest", SimilarityForest(n_estimators=3, max_depth=3, n_pairs=300, random_state=0)),
]
MEMBERS = [("distance", DistanceSimilarity(metric="euclidean")), *TREES]
WHITENED = (
    "whitened",
    SimilarityTree(max_depth=2, representation=simtree.WithinClassWhitening(random_state=0), random_state=0),
)


@pytest.fixture(scope="module")
def stack():
    return StackedSimilarity(MEMBERS, random_state=0).fit(*people(1))


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).integers(0, 16, (60, 2))


def test_the_score_is_the_weighted_sum_of_calibrated_scores(stack, rows):
    expected = np.full(len(rows), stack._fusion.constant)
    for member, monotone, weight in zip(stack.estimators_, stack._fusion.maps, stack.weights_, strict=True):
        expected += weight * monotone.apply(member.pair_score(rows, probes()))
    np.testing.assert_allclose(stack.pair_score(rows, probes()), expected, rtol=1e-12)
    np.testing.assert_array_equal(stack.pair_score(rows, probes()), stack.pair_score(rows[:, ::-1], probes()))
    assert (stack.weights_ >= 0.0).all()
    assert (stack.pair_distance(rows, probes()) >= 0.0).all()


def test_it_is_about_as_good_as_its_best_member_on_other_people(stack):
    X, y = people(3, n=40)
    pairs = PairSampler(y).all_pairs()
    index = np.column_stack([pairs.first, pairs.second])
    found = [roc_curve(model.pair_score(index, X), pairs.same).auc() for model in (stack, *stack.estimators_)]
    assert found[0] > max(found[1:]) - 0.02


def test_a_copy_of_a_member_changes_little(rows):
    X, y = people(1)
    once = StackedSimilarity(MEMBERS[:2], random_state=0).fit(X, y)
    twice = StackedSimilarity([*MEMBERS[:2], ("again", MEMBERS[0][1])], random_state=0).fit(X, y)
    assert twice.weights_[[0, 2]].sum() == pytest.approx(once.weights_[0], rel=0.05, abs=0.02)


def test_contributions_add_up_to_the_score(rows):
    stack = StackedSimilarity(TREES, random_state=0).fit(*people(1))
    for first, second in rows[:10]:
        explanation = stack.explain_pair(probes()[first], probes()[second])
        score = stack.pair_score([[first, second]], probes())[0]
        assert explanation.base + explanation.contributions.sum() == pytest.approx(score, rel=1e-9, abs=1e-9)
        assert explanation.score == pytest.approx(score, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("second", [MEMBERS[0], WHITENED], ids=lambda member: member[0])
def test_any_stack_explains_its_scores_by_the_features_as_given(second, rows, tmp_path):
    stack = StackedSimilarity([TREES[0], second], random_state=0).fit(*people(1))
    first, other = probes()[rows[1]]
    found = stack.explain_pair(first, other, feature_names=[f"f{j}" for j in range(len(first))])
    assert found.feature_names[1] == "f1"
    assert found.score == pytest.approx(stack.pair_score([rows[1]], probes())[0], rel=1e-12)
    assert found.base + found.contributions.sum() == pytest.approx(found.score, rel=1e-9)
    np.testing.assert_array_equal(stack.explain_pair(other, first).contributions, found.contributions)
    stack.save(tmp_path / "stack.simtree")
    loaded = simtree.load(tmp_path / "stack.simtree")
    np.testing.assert_array_equal(loaded.explain_pair(first, other).contributions, found.contributions)
    with pytest.raises(ValueError, match="feature_names has 1 name; X had"):
        stack.explain_pair(first, other, feature_names=["f"])


def test_stacks_of_earlier_versions_say_why_they_cannot_explain(stack, tmp_path):
    for second in (MEMBERS[0], WHITENED):
        old = StackedSimilarity([TREES[0], second], random_state=0).fit(*people(1))
        old._typical = None  # not written then
        old.save(tmp_path / "old.simtree")
        loaded = simtree.load(tmp_path / "old.simtree")
        np.testing.assert_array_equal(loaded.pairwise_score(probes()), old.pairwise_score(probes()))
        with pytest.raises((AttributeError, ValueError)) as raised:
            loaded.explain_pair(*probes()[:2])
        assert "could be explained; fit it again" in str(raised.value.__cause__ or raised.value)


def test_given_pairs_and_groups(rows):
    X, y = people(1)
    index = PairSampler(y).sample(400, np.random.default_rng(0))
    numbers = np.column_stack([index.first, index.second])
    by_rows = StackedSimilarity(MEMBERS[:2], random_state=0).fit(X, index.same, pairs=numbers, groups=y)
    by_table = StackedSimilarity(MEMBERS[:2], preprocessor=X, random_state=0).fit(numbers, index.same, groups=y)
    np.testing.assert_array_equal(by_rows.pair_score(rows, probes()), by_table.pair_score(probes()[rows]))


@pytest.mark.parametrize(
    "made",
    [
        lambda forest: StackedSimilarity([("forest", forest), MEMBERS[0]], random_state=0),
        lambda forest: VotingSimilarity([("forest", forest), MEMBERS[0]]),
        lambda forest: CohortNormalization(forest, n_cohort=20, random_state=0),
    ],
    ids=["stack", "voting", "cohort"],
)
def test_groups_are_passed_on_to_members_that_take_them(rows, made):
    X, y = people(1)
    groups, forest = np.array(["abcd"[identity // 3] for identity in y]), TREES[1][1]
    fitted = made(forest).fit(X, y, groups=groups)
    member = fitted.estimator_ if hasattr(fitted, "estimator_") else fitted.estimators_[0]
    expected = clone(forest).fit(X, y, groups=groups).pair_score(rows, probes())
    np.testing.assert_array_equal(member.pair_score(rows, probes()), expected)
    assert (clone(forest).fit(X, y).pair_score(rows, probes()) != expected).any()


def test_too_few_data_for_folds_are_refused():
    with pytest.raises(ValueError, match="fewer than two folds have both same and different pairs"):
        StackedSimilarity(MEMBERS).fit(np.arange(4.0)[:, None], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="open_set='auto' is unknown; give True or False"):
        StackedSimilarity(MEMBERS, open_set="auto").fit(*people(1))
    with pytest.raises(ValueError, match="estimators is empty"):
        StackedSimilarity([]).fit(*people(1))


CHANGES = {
    "knots that fall": lambda state: state["maps"][0].update(knots=state["maps"][0]["knots"][::-1].copy()),
    "ratios that fall": lambda state: state["maps"][0].update(llr=-state["maps"][0]["llr"]),
    "no knot": lambda state: state["maps"][0].update(knots=np.empty(0), llr=np.empty(0)),
    "a slope below zero": lambda state: state["maps"][0].update(slope=-1.0),
    "a map too few": lambda state: state["maps"].pop(),
    "a weight below zero": lambda state: state.update(weights=-state["weights"] - 1.0),
    "a weight too many": lambda state: state.update(weights=np.append(state["weights"], 1.0)),
    "a constant that is no number": lambda state: state.update(constant=float("nan")),
    "an infinite constant": lambda state: state.update(constant=float("inf")),
    "no member": lambda state: state.update(members=[]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_inconsistent_files_are_refused(stack, change, tmp_path):
    document = stack._get_state()
    document["fitted"]["maps"] = [dict(part) for part in document["fitted"]["maps"]]
    CHANGES[change](document["fitted"])
    (tmp_path / "m.simtree").write_bytes(document_bytes(document))
    with pytest.raises(ModelFileError, match=r"m\.simtree is damaged"):
        simtree.load(tmp_path / "m.simtree")


def test_parameters_of_members_can_be_set():
    stack = StackedSimilarity([("gaussian", GaussianSimilarity(representation=MarginalQuantiles()))])
    assert stack.set_params(gaussian__shrinkage=0.5).estimators[0][1].shrinkage == 0.5
