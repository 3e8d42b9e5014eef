"""Warnings of an evaluation: what few identities, few sessions and uneven samples do, and what says nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import kurtosis, skew
from sklearn.metrics import roc_auc_score

from populations import POPULATIONS
from simtree import evaluate, evaluate_scores
from simtree.evaluation._intervals import tally_pairs
from simtree.evaluation._reliability import OF_SEARCHES, _n_for_half, unit_shape


class Known:
    """A model that looks scores up in a table."""

    def __init__(self, table):
        self.table = table

    def pair_score(self, pairs, X):
        return self.table[X[pairs[:, 0], 0].astype(int), X[pairs[:, 1], 0].astype(int)]


def evaluated(name, n_people=30, seed=0, **options):
    drawn = POPULATIONS[name].draw(n_people, np.random.default_rng(seed))
    rows = np.arange(len(drawn.people))[:, None].astype(float)
    return evaluate(Known(drawn.scores), rows, drawn.people, **options), drawn


def test_equal_people_give_no_warning():
    result, _ = evaluated("normal 0.3")
    assert result.warnings == ()
    assert "warning" not in str(result)


def test_half_is_reached_by_the_largest():
    assert _n_for_half(np.array([1.0, 5.0, 2.0, 2.0])) == 1
    assert _n_for_half(np.ones(10)) == 5


def test_few_people_who_bring_most_pairs_are_named():
    y = np.repeat(np.arange(30), [40, 30, *[2] * 28])
    rng = np.random.default_rng(0)
    table = (y[:, None] == y) * 2.0 + rng.normal(size=(len(y), len(y)))
    result = evaluate(Known(table + table.T), np.arange(len(y))[:, None].astype(float), y)
    assert any(reason.startswith("1 of 30 identities bring half of the same pairs") for reason in result.warnings)
    assert f"warning: {result.warnings[0]}" in str(result).splitlines()
    assert json.loads(json.dumps(result.to_dict()))["warnings"] == list(result.warnings)
    # Each identity counts once: nobody brings more than others.
    fair = evaluate(Known(table + table.T), np.arange(len(y))[:, None].astype(float), y, weighting="identities")
    assert not any("bring half" in reason for reason in fair.warnings)


def test_one_person_behind_most_false_positives_is_named():
    y = np.repeat(np.arange(40), 3)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(120, 120)) / 10
    table = table + table.T + 3.0 * (y[:, None] == y)
    wolf = y == 7
    table[np.ix_(wolf, ~wolf)] += 2.0
    table[np.ix_(~wolf, wolf)] += 2.0
    result = evaluate(Known(table), np.arange(120)[:, None].astype(float), y, threshold=1.5)
    (reason,) = result.warnings
    assert (
        "1 of 40 identities bring half of the false positives and one is the best wrong match of 98 % of the searches" in reason
    )


def test_one_person_who_is_never_mistaken_is_told():
    """Heavy tails on one side warn of those on the other, which a sample may lack."""
    y = np.repeat(np.arange(40), 3)
    table = np.random.default_rng(0).normal(size=(120, 120))
    table = table + table.T + 5.0 * (y[:, None] == y)
    table[y == 7] -= 4.0
    table[:, y == 7] -= 4.0
    (reason,) = evaluate(Known(table), np.arange(120)[:, None].astype(float), y).warnings
    assert reason.startswith("some identities are mistaken for others far less often than most; new identities may be")


def test_heavy_tails_on_both_sides_are_told():
    """Three people who are often mistaken for others and three who never are: not skewed, but further extremes are likely."""
    y = np.repeat(np.arange(60), 2)
    effect = np.zeros(60)
    effect[:3], effect[3:6] = 2.5, -2.5
    table = np.random.default_rng(0).normal(size=(120, 120)) / 2
    table = table + table.T + effect[y][:, None] + effect[y]
    table[y[:, None] == y] = 6.0
    (reason,) = evaluate(Known(table), np.arange(120)[:, None].astype(float), y).warnings
    assert reason.startswith("some identities are mistaken for others far more or far less often than most (")


@pytest.mark.parametrize("increasing", [np.exp, np.cbrt, lambda scores: np.argsort(np.argsort(scores)).astype(float)])
def test_the_shape_does_not_change_with_increasing_functions_of_the_scores(increasing):
    drawn = POPULATIONS["exponential 0.7"].draw(25, np.random.default_rng(0))
    i, j = np.triu_indices(len(drawn.people), 1)
    found = [
        unit_shape(tally_pairs(scores, drawn.people[i] == drawn.people[j], drawn.people[i], drawn.people[j]).different)
        for scores in (drawn.scores[i, j], increasing(drawn.scores[i, j]))
    ]
    assert found[0] == pytest.approx(found[1])
    assert found[0][0] > 1.0


def test_the_shape_is_that_of_normal_scores_by_hand():
    """Eleven units compared pairwise once; unit 0 is accepted with all others, no other pair is."""
    u, v = np.triu_indices(11, 1)
    # A same pair in front, for the curve.
    scores, same = np.append(np.where(u == 0, 2.0, 1.0), 3.0), np.append(np.zeros(55, dtype=bool), True)
    tally = tally_pairs(scores, same, np.append(u, 3), np.append(v, 3)).different
    assert tally.rates[1] == pytest.approx(10 / 55)
    expected = ndtri(np.array([10.5, *[1.5] * 10]) / 11)
    assert unit_shape(tally) == pytest.approx((skew(expected), kurtosis(expected) - 2.0 * skew(expected) ** 2))
    few = tally_pairs(scores[[0, 1, -1]], same[[0, 1, -1]], np.array([0, 0, 3]), np.array([1, 2, 3])).different
    assert unit_shape(few) == (0.0, 0.0)


def test_few_identities_and_few_sessions():
    few, _ = evaluated("normal 0.3", n_people=6)
    assert few.warnings[0].startswith("there are only 6 identities")
    drawn = POPULATIONS["4 sessions"].draw(30, np.random.default_rng(0))
    rows = np.arange(len(drawn.people))[:, None].astype(float)
    plain = evaluate(Known(drawn.scores), rows, drawn.people)
    result = evaluate(Known(drawn.scores), rows, drawn.people, sessions=drawn.sessions)
    assert any(reason.startswith("there are only 4 sessions") for reason in result.warnings)
    assert OF_SEARCHES in result.warnings
    assert result.auc.value == plain.auc.value
    assert np.ptp(result.auc[1:]) > 1.5 * np.ptp(plain.auc[1:])


def test_independent_pairs_are_not_doubted():
    same = np.arange(8) % 2 == 0
    assert evaluate_scores(np.arange(8.0), same).warnings == ()


# --- weighting


def test_identities_weigh_every_pair_of_identities_equally():
    """Against weights of scikit-learn's AUC, and rates by hand."""
    result, drawn = evaluated("Zipf counts", n_people=12, weighting="identities", threshold=1.5)
    i, j = np.triu_indices(len(drawn.people), 1)
    u, v = np.minimum(drawn.people[i], drawn.people[j]), np.maximum(drawn.people[i], drawn.people[j])
    _, cell, sizes = np.unique(u * 12 + v, return_inverse=True, return_counts=True)
    weights, same, scores = 1.0 / sizes[cell], u == v, drawn.scores[i, j]
    assert result.auc.value == pytest.approx(roc_auc_score(same, scores, sample_weight=weights))
    place = np.flatnonzero(result.band.thresholds == 1.5)[0]
    for rate, kind in ((result.band.fpr, ~same), (result.band.tpr, same)):
        assert rate[place] == pytest.approx(np.average(scores[kind] >= 1.5, weights=weights[kind]))
    assert result.weighting == "identities"
    assert "every pair of identities counts once" in str(result)
    by_hand = evaluate_scores(scores, same, identities=np.column_stack([u, v]), weighting="identities", threshold=1.5)
    assert by_hand.auc == pytest.approx(result.auc)
    assert by_hand.cllr == pytest.approx(result.cllr)
    assert by_hand.d_prime == pytest.approx(result.d_prime)


def test_equal_numbers_of_samples_need_no_weights():
    plain, _ = evaluated("normal 0.3")
    weighted, _ = evaluated("normal 0.3", weighting="identities")
    assert weighted.auc == pytest.approx(plain.auc)
    assert weighted.eer_interval == pytest.approx(plain.eer_interval)
    np.testing.assert_allclose(weighted.cmc, plain.cmc)
    assert weighted.fnir == pytest.approx(plain.fnir)


def test_weights_need_identities_and_all_pairs():
    with pytest.raises(ValueError, match="weighting='identities' needs the identities of the pairs"):
        evaluate_scores([1.0, 2.0], [True, False], weighting="identities")
    with pytest.raises(ValueError, match=r"weighting='identities' needs all 7,140 pairs, more than n_pairs=100"):
        evaluated("normal 0.3", weighting="identities", n_pairs=100)
    with pytest.raises(ValueError, match="weighting='people' is unknown"):
        evaluated("normal 0.3", weighting="people")
    with pytest.raises(ValueError, match="sessions has shape"):
        evaluated("normal 0.3", sessions=[1, 2])
