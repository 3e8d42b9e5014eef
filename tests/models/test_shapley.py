"""Explanations of scores that are not sums over features: what Shapley values must be, for any model."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

import simtree
from simtree import (
    AutoSimilarity,
    DistanceSimilarity,
    GaussianSimilarity,
    PosteriorSimilarity,
    SimilarityTree,
    StackedSimilarity,
)
from simtree.io import ModelFileError
from simtree.models import _presets as presets
from simtree.models._shapley import HALF_DIFFERENCE, TypicalPair, explain_any, shapley_values
from simtree.pairs._codes import MISSING
from simtree.pairs._table import TableColumns
from simtree.representation import ForestPosterior
from tiny_models import people, probes

X, Y = people(1)
PROBES = probes()
MODELS = {
    "gaussian": GaussianSimilarity(),
    "cosine": DistanceSimilarity(metric="cosine"),
    "posterior": PosteriorSimilarity(ForestPosterior(n_estimators=30, random_state=0)),
    "quantile forest": simtree.SimilarityForest(
        n_estimators=3, max_depth=3, n_pairs=300, representation=simtree.MarginalQuantiles(), random_state=0
    ),
}


def test_a_typical_pair_is_the_mean_less_and_plus_a_part_of_the_deviation():
    values = np.array([[1.0, 5.0, np.nan], [3.0, 5.0, np.nan], [np.nan, 5.0, np.nan], [5.0, 5.0, np.nan]])
    found = TypicalPair.of(values)
    deviation = np.std([1.0, 3.0, 5.0])
    np.testing.assert_allclose(found.low, [3.0 - HALF_DIFFERENCE * deviation, 5.0, 0.0])
    np.testing.assert_allclose(found.high, [3.0 + HALF_DIFFERENCE * deviation, 5.0, 0.0])


def test_two_normal_draws_differ_as_much_as_a_typical_pair():
    draws = np.random.default_rng(0).normal(3.0, 2.0, (2, 40_000))
    found = TypicalPair.of(draws.reshape(-1, 1))
    assert (found.high - found.low)[0] == pytest.approx(np.median(np.abs(draws[0] - draws[1])), rel=0.03)


def test_the_largest_numbers_do_not_overflow():
    with np.errstate(all="raise"):
        found = TypicalPair.of(np.array([[1.7e308], [-1.7e308], [1.7e308]]))
    assert np.isfinite([found.low, found.high]).all()


def test_typical_categories_are_the_two_most_frequent_values_of_the_vocabulary():
    words = ["red"] * 2 + ["blue"] * 4 + ["green"] * 3
    table = pd.DataFrame({"colour": words, "kind": ["one"] * 9})
    columns = TableColumns.of(table)
    found = TypicalPair.of(columns.read(table), columns)
    assert [columns.words(row).tolist() for row in (found.low, found.high)] == [["blue", "one"], ["green", "one"]]
    unseen = columns.read(table)
    unseen[:, 0] = MISSING
    assert TypicalPair.of(unseen, columns).low[0] == MISSING


def test_contributions_to_a_sum_over_features_are_its_terms():
    model = DistanceSimilarity(metric="manhattan").fit(X, Y)
    typical = TypicalPair.of(X)
    contributions, base, score = shapley_values(model, typical, PROBES[0], PROBES[1])
    typical_terms = typical.high - typical.low
    np.testing.assert_allclose(contributions, typical_terms - np.abs(PROBES[0] - PROBES[1]), rtol=1e-9, atol=1e-12)
    assert base == pytest.approx(-typical_terms.sum())
    assert score == pytest.approx(-np.abs(PROBES[0] - PROBES[1]).sum())


def test_they_are_the_mean_over_all_orders():
    rng = np.random.default_rng(0)
    few, labels = rng.normal(size=(60, 3)), np.arange(60) % 6
    model = GaussianSimilarity().fit(few + 0.3 * labels[:, None], labels)
    typical = TypicalPair.of(few)
    x, x2 = few[:2]
    expected = np.zeros(3)
    orders = list(product(permutations(range(3)), product([False, True], repeat=3)))
    for order, swapped in orders:
        a, b = np.where(swapped, typical.high, typical.low), np.where(swapped, typical.low, typical.high)
        before = model.pair_score([[a, b]])[0]
        for feature in order:
            a[feature], b[feature] = x[feature], x2[feature]
            after = model.pair_score([[a, b]])[0]
            expected[feature] += (after - before) / len(orders)
            before = after
    found, _, _ = shapley_values(model, typical, x, x2)
    np.testing.assert_allclose(found, expected, atol=0.1 * np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_laws(name):
    model = MODELS[name].fit(np.column_stack([X, np.zeros(len(X))]), Y)
    samples = np.column_stack([PROBES, np.zeros(len(PROBES))])
    typical = TypicalPair.of(np.column_stack([X, np.zeros(len(X))]))
    for first, second in ((0, 1), (2, 9), (4, 4)):
        found = explain_any(model, typical, samples[[first, second]])
        assert found.score == pytest.approx(model.pair_score([[first, second]], samples)[0], rel=1e-12)
        assert found.base + found.contributions.sum() == pytest.approx(found.score, rel=1e-9, abs=1e-9)
        assert found.contributions[-1] == 0.0  # the same in both, and in typical pairs
        swapped = explain_any(model, typical, samples[[second, first]])
        np.testing.assert_array_equal(found.contributions, swapped.contributions)
        assert found.contributions.any()


def chosen(monkeypatch, model, data, labels, **parameters):
    monkeypatch.setattr(presets, "CANDIDATES", {"it": presets.Candidate(lambda size: model)})
    return AutoSimilarity(target_fpr=0.2, open_set=True, random_state=0, **parameters).fit(data, labels)


def test_auto_explains_whatever_it_chose(monkeypatch, tmp_path):
    auto = chosen(monkeypatch, GaussianSimilarity(), X, Y)
    found = auto.explain_pair(*PROBES[:2])
    assert found.base + found.contributions.sum() == pytest.approx(auto.pair_score([[0, 1]], PROBES)[0], rel=1e-9)
    auto.save(tmp_path / "auto.simtree")
    loaded = simtree.load(tmp_path / "auto.simtree")
    np.testing.assert_array_equal(loaded.explain_pair(*PROBES[:2]).contributions, found.contributions)
    auto._typical = None  # as in files of earlier versions
    assert not hasattr(auto, "explain_pair")
    again = chosen(monkeypatch, SimilarityTree(max_depth=2, random_state=0), X, Y)
    assert again._typical is None
    assert again.explain_pair(*PROBES[:2]).base == pytest.approx(again.best_estimator_.explain_pair(*PROBES[:2]).base)


def test_words_and_holes_are_explained(monkeypatch):
    table = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    table["word"] = np.array(["a", "b", "c"])[Y % 3]
    table.loc[::7, "f0"] = np.nan
    auto = chosen(monkeypatch, GaussianSimilarity(), table, Y)
    found = auto.explain_pair(table.iloc[0].tolist(), table.iloc[8].tolist())
    assert found.feature_names == (*table.columns,)
    assert (found.x[-1], found.x2[-1]) == (table["word"][0], table["word"][8])
    assert found.label(0) == "f0 missing in one of the two"
    assert found.base + found.contributions.sum() == pytest.approx(found.score, rel=1e-9)


def test_a_typical_pair_of_another_size_is_damage(tmp_path):
    stack = StackedSimilarity([("a", GaussianSimilarity()), ("b", DistanceSimilarity())], random_state=0).fit(X, Y)
    stack._typical = TypicalPair(stack._typical.low[:-1], stack._typical.high[:-1])
    stack.save(tmp_path / "damaged.simtree")
    with pytest.raises(ModelFileError, match=r"typical_pair\.low"):
        simtree.load(tmp_path / "damaged.simtree")
