"""The choice of members on held-out scores: laws that hold whatever the scores are."""

from __future__ import annotations

import numpy as np
import pytest

from simtree.metrics import roc_curve
from simtree.models import _choice as choice
from simtree.models._choice import Chooser, HeldOutScores, judge
from simtree.models._selection import criterion
from simtree.pairs._sources import IndexPairs

FPR = 0.01


def held_out(make, n_folds=3, n_repeats=1, n=6_000):
    """Folds with a fifth of same pairs, and the scores that ``make(rng, same)`` gives."""
    folds = []
    for number in range(n_folds * n_repeats):
        rng = np.random.default_rng(number)
        same = np.arange(n) < n // 5
        first = np.where(same, np.arange(n) % 40, np.arange(n) % 40)
        second = np.where(same, first, (first + 1 + np.arange(n) // 40 % 39) % 40)
        rows = (40 * (number % n_folds) + np.stack([first, second])).astype(np.int32)
        folds.append(HeldOutScores(number // n_folds, IndexPairs(*rows, same), make(rng, same)))
    return folds


def two_views(rng, same):
    """Two members that err on different pairs, one that knows nothing, and a copy of the first."""
    first, second = (rng.normal(size=len(same)) + 1.5 * same for _ in range(2))
    return {"first": first, "second": np.exp(second), "noise": rng.normal(size=len(same)), "copy": first}


@pytest.fixture(scope="module")
def chooser():
    return Chooser(held_out(two_views), FPR)


def test_members_that_add_to_each_other_are_stacked_and_others_dropped(chooser):
    members = chooser.members(chooser.all_folds)
    assert len(members) == 2
    assert "second" in members
    assert set(members) & {"first", "copy"}
    assert chooser.value(members) > chooser.value(("first",)) + 0.05


@pytest.mark.parametrize("seed", range(6))
def test_what_is_chosen_is_never_worse_than_the_best_member(seed):
    """By the criterion on folds that the weights have not seen."""
    strengths = np.random.default_rng(seed).uniform(0.0, 2.0, 4)

    def make(rng, same):
        shared = rng.normal(size=len(same))
        return {f"m{k}": shared + rng.normal(size=len(same)) + strength * same for k, strength in enumerate(strengths)}

    found = Chooser(held_out(make, n=2_000), FPR)
    members = found.members(found.all_folds)
    assert found.value(members) >= max(found.value((name,)) for name in found.names)


def test_the_best_alone_is_chosen_where_others_add_nothing():
    def make(rng, same):
        scores = rng.normal(size=len(same)) + 2.0 * same
        return {"weak": scores + 3.0 * rng.normal(size=len(same)), "strong": scores, "noise": rng.normal(size=len(same))}

    found = Chooser(held_out(make), FPR)
    assert found.members(found.all_folds) == ("strong",)
    assert found.ranking(found.all_folds)[0] == "strong"


def test_among_equals_the_first_is_chosen():
    def make(rng, same):
        scores = rng.normal(size=len(same)) + same
        return {"a": scores, "b": 2.0 * scores + 1.0}

    found = Chooser(held_out(make), FPR)
    assert found.members(found.all_folds) == ("a",)


def test_the_order_of_pairs_does_not_matter(chooser):
    rng = np.random.default_rng(0)
    mixed = []
    for fold in held_out(two_views):
        order = rng.permutation(len(fold.pairs))
        scores = {name: found[order] for name, found in fold.scores.items()}
        mixed.append(HeldOutScores(fold.repeat, fold.pairs.take(order), scores))
    again = Chooser(mixed, FPR)
    members = chooser.members(chooser.all_folds)
    assert again.members(again.all_folds) == members
    np.testing.assert_allclose(
        again.fusion(members, again.all_folds).weights, chooser.fusion(members, chooser.all_folds).weights, rtol=1e-4
    )


def test_weights_see_other_folds_of_the_same_partition_only():
    """Folds of another partition share pairs with the fold that is judged."""
    found = Chooser(held_out(two_views, n_repeats=2, n=1_000), FPR)
    assert found._others(1, found.all_folds) == (0, 2)
    assert found._others(4, found.all_folds) == (3, 5)
    assert found._others(4, (1, 4)) == ()


def test_nested_scores_are_of_members_chosen_without_the_fold():
    """Members that each know one fold only: what is chosen by two folds knows nothing about the third."""

    def lucky(folds):
        return [
            HeldOutScores(
                fold.repeat,
                fold.pairs,
                {f"m{j}": np.random.default_rng(10 * k + j).normal(size=len(fold.pairs)) + 3.0 * (j == k) * fold.pairs.same
                 for j in range(3)},
            )
            for k, fold in enumerate(folds)
        ]  # fmt: skip

    folds = lucky(held_out(two_views))
    found = Chooser(folds, FPR)
    chosen = found.value(found.members(found.all_folds))
    nested = found.nested_scores()
    honest = np.mean([criterion(roc_curve(part, fold.pairs.same), FPR) for part, fold in zip(nested, folds, strict=True)])
    assert chosen > 0.15
    assert honest < 0.1


def test_one_fold_has_no_nested_figure_and_two_have_one():
    assert Chooser(held_out(two_views, n_folds=1), FPR).nested_scores() is None
    assert len(Chooser(held_out(two_views, n_folds=2), FPR).nested_scores()) == 2


def test_a_clear_lead_is_stable_and_a_close_race_of_noisy_folds_is_not():
    def make(gap):
        return lambda rng, same: {
            "a": rng.normal(size=len(same)) + 2.0 * same,
            "b": rng.normal(size=len(same)) + (2.0 - gap) * same,
        }

    assert Chooser(held_out(make(1.0)), FPR).is_stable()
    assert not Chooser(held_out(make(0.0), n=300), FPR).is_stable()
    assert Chooser(held_out(lambda rng, same: {"a": rng.normal(size=len(same))}, n=300), FPR).is_stable()


def test_figures_are_means_over_folds_with_intervals_over_identities():
    folds = held_out(two_views)
    scores = [fold.scores["first"] for fold in folds]
    found = judge(scores, folds, np.arange(120), FPR, 0.95)
    rocs = [roc_curve(part, fold.pairs.same) for part, fold in zip(scores, folds, strict=True)]
    assert found["auc"].value == pytest.approx(np.mean([roc.auc() for roc in rocs]))
    assert found["tpr"].value == pytest.approx(np.mean([roc.at(FPR) for roc in rocs]))
    for figure in found.values():
        assert figure.low < figure.value < figure.high
    # Scores of another fold may be on another scale.
    shifted = judge([part + 100.0 * k for k, part in enumerate(scores)], folds, np.arange(120), FPR, 0.95)
    assert shifted == found


def all_pairs(rng, n_people=30, n_each=5):
    """Distances of all pairs of samples of new people, who differ in how much their samples vary."""
    person = np.repeat(np.arange(n_people), n_each)
    spread = np.exp(0.4 * rng.normal(size=n_people))[person]
    X = 2.0 * rng.normal(size=(n_people, 3))[person] + spread[:, None] * rng.normal(size=(len(person), 3))
    first, second = np.triu_indices(len(person), 1)
    return person, first, second, person[first] == person[second], -np.linalg.norm(X[first] - X[second], axis=1)


@pytest.mark.parametrize("n_new", [30, 10])
def test_intervals_hold_what_new_people_give(n_new):
    """As many, or a third as many; intervals for the mean of all people would hold the former in 83 to 89 of 100 draws."""
    inside = {"auc": 0, "tpr": 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        person, first, second, same, scores = all_pairs(rng)
        fold = person % 3
        kept = [np.flatnonzero((fold[first] == k) & (fold[second] == k)) for k in range(3)]
        folds = [
            HeldOutScores(0, IndexPairs(first[rows].astype(np.int32), second[rows].astype(np.int32), same[rows]), {})
            for rows in kept
        ]
        found = judge([scores[rows] for rows in kept], folds, person, FPR, 0.95)
        *_, same, scores = all_pairs(rng, n_new)
        roc = roc_curve(scores, same)
        for name, new in {"auc": roc.auc(), "tpr": roc.at(FPR)}.items():
            inside[name] += found[name].low <= new <= found[name].high
    assert min(inside.values()) >= 55


def test_thinning_keeps_all_of_few_pairs_and_even_numbers_of_many():
    same = np.arange(100) < 30
    assert sorted(choice._thin(same, (30, 70))) == list(range(100))
    kept = choice._thin(same, (10, 20))
    assert np.count_nonzero(same[kept]) == 10
    assert np.count_nonzero(~same[kept]) == 20
