"""Tables with categories in all tree models: laws, files, explanations, and no leak of labels."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import simtree
from simtree import (
    AutoSimilarity,
    CohortNormalization,
    DistanceSimilarity,
    GaussianSimilarity,
    Imputer,
    MarginalQuantiles,
    ObliqueCartSplitter,
    RarityEncoder,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    VotingSimilarity,
)
from simtree.metrics import roc_curve
from simtree.models import _presets as presets
from simtree.models._table_members import Contents, for_table
from simtree.models._table_report import what_was_done
from simtree.pairs import PairSampler
from simtree.pairs._categories import Categories
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.pairs._table import TableColumns

N_IDENTITIES, N_SAMPLES = 24, 8
MODELS = {
    "tree": SimilarityTree(max_depth=4, splitter="cut", n_pairs=2000, random_state=0),
    "forest": SimilarityForest(n_estimators=4, max_depth=4, n_pairs=1000, representation=MarginalQuantiles(), random_state=0),
    "boosting": SimilarityBoosting(n_estimators=10, n_pairs=1000, early_stopping=False, random_state=0),
}


def people(seed=0):
    """A table of people with a favourite colour, a town that mostly one of them has, and a height."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(N_IDENTITIES), N_SAMPLES)
    favourite = rng.integers(0, 5, N_IDENTITIES)[y]
    colour = np.where(rng.random(len(y)) < 0.8, favourite, rng.integers(0, 5, len(y)))
    names = np.array(["red", "blue", "green", "pink", "grey"], dtype=object)[colour]
    names[rng.random(len(y)) < 0.1] = None
    town = np.array([f"town {k}" for k in range(40)])[np.where(rng.random(len(y)) < 0.5, y, 24 + y % 3)]
    return pd.DataFrame({"height": rng.normal(size=len(y)), "colour": names, "town": town, "left": rng.random(len(y)) < 0.2}), y


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return clone(MODELS[request.param]).fit(*people())


def test_scores_are_symmetric_and_come_back_from_a_file(fitted, tmp_path):
    table, _ = people(1)
    scores = fitted.pairwise_score(table[:30])
    np.testing.assert_array_equal(scores, scores.T)
    fitted.save(tmp_path / "m.simtree")
    again = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(again.pairwise_score(table[:30]), scores)
    assert again.columns_ == fitted.columns_
    rows = np.column_stack([np.arange(10), np.arange(10, 20)])
    np.testing.assert_array_equal(fitted.pair_score(rows, table), scores[:10, 10:20].diagonal())
    stacked = np.stack([table[:10].to_numpy(), table[10:20].to_numpy()], axis=1)
    np.testing.assert_array_equal(fitted.pair_score(stacked), scores[:10, 10:20].diagonal())
    best, _ = fitted.top_k(table[:2], table[:30], k=3)
    np.testing.assert_array_equal(best, -np.sort(-scores[:2], axis=1)[:, :3])
    assert fitted.get_metric()(table.iloc[0].tolist(), table.iloc[1].tolist()) == fitted.pair_distance([[0, 1]], table)[0]


def test_other_frames_and_orders_of_columns_score_alike(fitted):
    table, _ = people(1)
    expected = fitted.pairwise_score(table[:10])
    np.testing.assert_array_equal(fitted.pairwise_score(pl.from_pandas(table[:10])), expected)
    np.testing.assert_array_equal(fitted.pairwise_score(table[:10][["town", "left", "height", "colour"]]), expected)
    np.testing.assert_array_equal(fitted.pairwise_score(table[:10].astype({"colour": "category"})), expected)


def test_categories_help_on_new_people(fitted):
    table, y = people(1)
    without = clone(fitted).fit(people()[0][["height", "left"]], people()[1])
    assert fitted.score(table, y) > without.score(table[["height", "left"]], y) + 0.1


def test_explanations_say_words(fitted):
    table, _ = people()
    table = table.assign(town="town 24")
    said = str(fitted.explain_pair(table.iloc[0].tolist(), table.iloc[9].tolist()))
    assert "colour" in said
    assert str(table["colour"][0])[:8] in said
    assert "town 24" in said
    importances = dict(zip(fitted.columns_.names, fitted.feature_importances_, strict=True))
    assert importances["colour"] + importances["town"] > 0.7
    assert sum(importances.values()) == pytest.approx(1.0)


def test_the_number_of_jobs_changes_nothing():
    table, y = people()
    one, two = (clone(MODELS["forest"]).set_params(n_jobs=n).fit(table, y) for n in (1, 2))
    np.testing.assert_array_equal(one.pairwise_score(table), two.pairwise_score(table))


def test_values_of_one_person_are_not_in_the_file(tmp_path):
    table, y = people()
    table.loc[y == 3, "colour"] = "a colour of one person"
    tree = clone(MODELS["tree"]).fit(table, y)
    tree.save(tmp_path / "m.simtree")
    content = (tmp_path / "m.simtree").read_bytes()
    assert b"a colour of one person" not in content
    assert "a colour of one person" not in repr(simtree.load(tmp_path / "m.simtree").columns_)
    assert "town 25" in repr(tree.columns_)


def test_new_values_are_equal_or_different_and_not_missing():
    table, y = people()
    tree = SimilarityTree(max_depth=3, splitter="cut", random_state=0).fit(table[["colour"]], y)
    new = pd.DataFrame({"colour": ["cyan", "cyan", "teal", None]})
    scores = tree.pairwise_score(new)
    assert scores[0, 1] == scores[0, 0] > scores[0, 2]
    rows = tree._prepare(tree.columns_.read(new))
    first, second = np.array([[0, 0, 0, 3], [1, 2, 3, 3]], dtype=np.int32)
    coordinates = tree.tree_.pair_map.plain_values(SamplePairs(rows, rows, first, second))[-3:]
    np.testing.assert_array_equal(coordinates[0], [1.0, 0.0, np.inf, -np.inf])


def opinions(*, who_lacks):
    """A table of 40 people with one word each, which `who_lacks` of their numbers lack, and pairs of new words."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 5)
    word = np.array(["red", "blue", "green", "pink"], dtype=object)[rng.integers(0, 4, 40)][y]
    changed = rng.random(len(y)) < 0.15
    word[changed] = np.array(["red", "blue", "green", "pink"], dtype=object)[rng.integers(0, 4, np.count_nonzero(changed))]
    word[who_lacks(y, rng)] = None
    return pd.DataFrame({"word": word}), y


@pytest.fixture(scope="module")
def new_words():
    """Return new samples: a known word twice, another one, two that lack it, an unseen word twice, another unseen one."""
    return pd.DataFrame({"word": ["red", "red", "blue", None, None, "cyan", "cyan", "teal"]})


@pytest.mark.parametrize("model", [MODELS["tree"], MODELS["boosting"], SimilarityTree(max_depth=2, splitter="linear")])
def test_both_lacking_a_word_may_speak_for_one_person_and_one_lacking_it_against(model, new_words):
    table, y = opinions(who_lacks=lambda y, rng: y % 8 == 0)
    scores = clone(model).set_params(random_state=0).fit(table, y).pairwise_score(new_words)
    equal, different, one, both = scores[0, 1], scores[0, 2], scores[0, 3], scores[3, 4]
    assert both > equal > different >= one
    assert scores[5, 6] > different  # a word that nobody had, and both have
    assert max(scores[5, 7], scores[5, 0]) < equal  # two words, of which nobody had one, or both
    assert scores[5, 3] == one


def test_one_cut_puts_what_both_lack_beside_equal_words():
    table, y = opinions(who_lacks=lambda y, rng: y % 8 == 0)
    tree = SimilarityTree(max_depth=1, splitter="cut", random_state=0).fit(table, y)
    assert "inside if (word equal or word missing in both)" in tree.export_text()


def test_what_is_missing_at_random_says_little(new_words):
    table, y = opinions(who_lacks=lambda y, rng: rng.random(len(y)) < 0.3)
    scores = clone(MODELS["boosting"]).fit(table, y).pairwise_score(new_words)
    assert scores[0, 1] > scores[0, 3] > scores[0, 2]
    assert scores[0, 1] > scores[3, 4] > scores[0, 2]


def test_words_that_were_never_missing_go_where_most_pairs_went(new_words):
    """A model that never saw a missing word does not take it for a different one."""
    table, y = opinions(who_lacks=lambda y, rng: np.zeros(len(y), dtype=bool))
    tree = SimilarityTree(max_depth=2, splitter="cut", positive_fraction=0.9, n_pairs=500, random_state=0).fit(table, y)
    rows = tree._prepare(tree.columns_.read(new_words))
    first, second = np.array([[0, 3], [3, 4]], dtype=np.int32)
    found = tree.tree_.apply(SamplePairs(rows, rows, first, second))
    cell, n_pairs = 0, tree.tree_.cells.n_same + tree.tree_.cells.n_different
    while tree.tree_.cells.inside[cell] >= 0:
        inside, outside = tree.tree_.cells.inside[cell], tree.tree_.cells.outside[cell]
        cell = inside if n_pairs[inside] >= n_pairs[outside] else outside
    np.testing.assert_array_equal(found, cell)


def test_oblique_splits_do_not_read_categories_as_numbers():
    """Products with the directions of a cell come after the codes of categories."""
    table, y = people()
    table["weight"] = table["height"] + y
    splitter = ObliqueCartSplitter(n_directions=1, min_samples=50)
    tree = SimilarityTree(max_depth=2, splitter=splitter, n_pairs=None, random_state=0).fit(table, y)
    assert any(region.kind == "oblique" for region in tree.tree_.regions.values())
    rows = tree.tree_.pair_map.extend(tree._represent(tree.columns_.read(table)), training=True)
    first, second = (column.astype(np.int32) for column in np.triu_indices(len(y), 1))
    found = tree.tree_.apply(SamplePairs(rows, rows, first, second))[y[first] == y[second]]
    n_same = np.bincount(found, minlength=tree.tree_.n_cells)
    np.testing.assert_array_equal(n_same[tree.tree_.leaves], tree.tree_.cells.n_same[tree.tree_.leaves])


def auc_of_ratios(codes, n_values, y, *, training, **how):
    """Return the AUC of what was learned of pairs of values, on the pairs that it was learned from."""
    learned = Categories.fit(codes, np.array([n_values]), PairSampler(y), **how)
    pairs = PairSampler(y).sample(20_000, np.random.default_rng(1))
    samples = CoordinateSet(("abs_diff",), 0, categories=learned).extend(codes, training=training)
    found = np.empty((len(pairs), 3))
    learned.fill(SamplePairs(samples, samples, pairs.first, pairs.second), 0, 0, found)
    _, number = np.unique(found[:, 2], return_inverse=True)
    n_same, n_all = np.bincount(number, pairs.same), np.bincount(number)
    # The best that a tree could do with these numbers, whatever their order.
    best = roc_curve((n_same / n_all)[number], pairs.same).auc()
    return roc_curve(found[:, 2], pairs.same).auc(), best


def test_ratios_are_learned_out_of_fold():
    """Values at random: what is learned of hundreds of pairs of values must not help on the pairs it was learned from."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(200), 6)
    codes = rng.integers(0, 12, (len(y), 1)).astype(float)
    assert auc_of_ratios(codes, 12, y, training=True)[0] < 0.52
    assert auc_of_ratios(codes, 12, y, training=False)[0] > 0.54


@pytest.mark.parametrize(("n_samples", "n_values"), [(6, 4), (15, 12), (60, 12)])
def test_ratios_of_a_closed_set_are_learned_out_of_fold(n_samples, n_values):
    y = np.repeat(np.arange(20), n_samples)
    noise = [np.random.default_rng(seed).integers(0, n_values, (len(y), 1)).astype(float) for seed in range(20)]
    trained, looked_up = (
        [auc_of_ratios(codes, n_values, y, training=training, closed_set=True)[0] for codes in noise]
        for training in (True, False)
    )
    assert np.mean(trained) < 0.505 < 0.508 < np.mean(looked_up)


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(40), 8), np.tile(np.arange(64), 5)], ids=["no", "label", "site"])
@pytest.mark.parametrize("closed_set", [False, True])
def test_what_is_left_out_does_not_tell_same_pairs(closed_set, groups):
    """A value that two identities have: ratios without one of them would be known for same pairs only."""
    y = np.repeat(np.arange(40), 8)
    few = (y // 2)[:, None].astype(float)
    of_ratios, best = auc_of_ratios(few, 20, y, training=True, closed_set=closed_set, groups=groups)
    pairs = PairSampler(y).all_pairs()
    of_equality = roc_curve((few[pairs.first, 0] == few[pairs.second, 0]).astype(float), pairs.same).auc()
    assert max(of_ratios, best) < of_equality + 0.01


def are_divided(folds, units):
    """Return whether samples of a unit are in two folds."""
    return len(np.unique(np.column_stack([folds, units]), axis=0)) > len(np.unique(units))


@pytest.mark.parametrize("per_group", ["two labels", "samples of several labels"])
@pytest.mark.parametrize("closed_set", [False, True])
def test_groups_are_not_divided_into_folds(rng, closed_set, per_group):
    """Labels of an open set are not divided either, unless groups link too many of them."""
    y = np.repeat(np.arange(40), 8)
    groups = y // 2 if per_group == "two labels" else np.tile(np.arange(64), 5)
    codes = rng.integers(0, 3, (320, 1)).astype(float)
    folds = Categories.fit(codes, np.array([3]), PairSampler(y), closed_set=closed_set, groups=groups).folds[:, 0]
    assert set(folds) == set(range(5))
    assert not are_divided(folds, groups)
    assert are_divided(folds, y) == (per_group == "samples of several labels")


@pytest.mark.parametrize("name", ["tree", "forest", "boosting"])
def test_models_keep_groups_in_one_fold(name):
    table, y = synonyms(0)
    groups = np.tile(np.arange(50), 16)
    of_samples, of_groups = (
        clone(CLOSED[name]).fit(table, y, groups=given)._trees()[0].pair_map.categories.folds[:, 0] for given in (None, groups)
    )
    assert are_divided(of_samples, groups)
    assert not are_divided(of_groups, groups)


def test_early_stopping_keeps_groups_in_one_fold():
    table, y = synonyms(0)
    groups = np.tile(np.arange(50), 16)
    model = clone(CLOSED["boosting"]).set_params(early_stopping=True, refit=False).fit(table, y, groups=groups)
    folds = model.trees_[0].pair_map.categories.folds[:, 0]
    assert set(folds) == set(range(6))  # the last for those that are held out
    assert not are_divided(folds, groups)


@pytest.mark.slow
@pytest.mark.parametrize(("n_labels", "how"), [(100, {"bag": "classes"}), (20, {"open_set": False})], ids=["open", "closed"])
def test_out_of_bag_figures_of_noise_are_those_of_chance(n_labels, how):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_labels), 600 // n_labels)
    table = pd.DataFrame({"code": rng.integers(0, 12, len(y)).astype(str)})
    forest = SimilarityForest(n_estimators=50, max_depth=4, n_pairs=2000, oob_score=True, random_state=0, **how)
    assert abs(forest.fit(table, y).oob_score_ - 0.5) < 0.05


@pytest.mark.slow
def test_held_out_figures_of_noise_of_a_closed_set_are_those_of_chance():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 50)
    table, new = (pd.DataFrame(rng.integers(0, 12, (len(y), 3)).astype(str), columns=list("abc")) for _ in range(2))
    model = SimilarityBoosting(n_estimators=40, n_pairs=5000, open_set=False, early_stopping=True, random_state=0)
    model.fit(table, y)
    assert abs(model.validation_roc_.auc() - 0.5) < 0.03
    assert abs(model.score(new, y) - 0.5) < 0.02


def synonyms(seed):
    """A table of 20 classes, each of which writes one of two values; another class writes the same two."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(20), 40)
    word = 2 * (y % 10) + rng.integers(0, 2, len(y))
    return pd.DataFrame({"word": [f"word {number}" for number in word], "size": rng.normal(size=len(y))}), y


CLOSED = {
    "tree": SimilarityTree(max_depth=6, n_pairs=2000, open_set=False, random_state=0),
    "forest": SimilarityForest(n_estimators=4, max_depth=4, n_pairs=2000, open_set=False, random_state=0),
    "boosting": SimilarityBoosting(n_estimators=10, n_pairs=2000, open_set=False, early_stopping=False, random_state=0),
}


@pytest.mark.parametrize("way", ["labels", "pairs"])
@pytest.mark.parametrize("name", CLOSED)
def test_values_of_few_classes_are_learned_if_no_other_classes_will_come(name, way):
    """No value is held by two classes of each fold; folds of samples find that two values are written for one another."""
    table, y = synonyms(0)
    drawn = PairSampler(y).sample(4000, np.random.default_rng(0))
    given = {"y": y} if way == "labels" else {"y": drawn.same, "pairs": np.column_stack([drawn.first, drawn.second])}
    closed = clone(CLOSED[name]).fit(table, **given)
    unsaid = clone(CLOSED[name]).set_params(open_set="auto").fit(table, **given)
    assert closed.score(*synonyms(1)) > 0.95
    learned, of_unsaid = (int(model._trees()[0].pair_map.categories.n_keys.sum()) for model in (closed, unsaid))
    assert learned >= 60 > 0 == of_unsaid


@pytest.mark.parametrize(("open_set", "expected"), [(False, False), (True, "auto")])
def test_auto_tells_candidates_whether_the_set_is_closed(monkeypatch, open_set, expected):
    make = {"forest": presets.Candidate(lambda size: clone(CLOSED["forest"]).set_params(open_set="auto"))}
    monkeypatch.setattr(presets, "CANDIDATES", make)
    table, y = synonyms(0)
    auto = AutoSimilarity(target_fpr=0.2, open_set=open_set, random_state=0).fit(table, y)
    assert auto.best_estimator_.open_set == expected
    drawn = PairSampler(y).sample(4000, np.random.default_rng(0))
    rows = np.column_stack([drawn.first, drawn.second])
    assert auto.fit(table, drawn.same, pairs=rows).best_estimator_.open_set == expected


def test_a_closed_set_is_not_one_of_unseen_classes():
    with pytest.raises(ValueError, match="open_set=False says that no unseen identities will come, but bag='classes'"):
        clone(CLOSED["forest"]).set_params(bag="classes").fit(*synonyms(0))


def test_trees_are_not_added_to_those_of_other_ratios():
    table, y = synonyms(0)
    forest = clone(CLOSED["forest"]).set_params(warm_start=True).fit(table, y).set_params(n_estimators=5)
    assert len(clone(forest).fit(table, y).trees_) == 5
    with pytest.raises(ValueError, match="warm_start=True requires the samples, labels and bags"):
        forest.set_params(open_set="auto").fit(table, y)
    assert len(forest.set_params(open_set=False).fit(table, y).trees_) == 5


def test_rounds_are_not_added_to_those_of_other_ratios(tmp_path):
    table, y = synonyms(0)
    boosting = clone(CLOSED["boosting"]).set_params(warm_start=True).fit(table, y)
    boosting.set_params(open_set="auto").save(tmp_path / "m.simtree")
    for model in (boosting, simtree.load(tmp_path / "m.simtree")):
        model.set_params(n_estimators=12)
        with pytest.raises(ValueError, match=r"open_set='auto' is not what the existing trees .* set open_set=False, or warm"):
            model.fit(table, y)
        assert len(model.set_params(open_set=False).fit(table, y).trees_) == 12
    opened = clone(boosting).set_params(open_set="auto").fit(table, y).set_params(n_estimators=14)
    assert len(opened.set_params(open_set=True).fit(table, y).trees_) == 14  # which it was taken for
    numbers = clone(boosting).fit(table[["size"]], y).set_params(n_estimators=14, open_set=True)
    assert len(numbers.fit(table[["size"]], y).trees_) == 14


def test_whether_the_set_is_closed_comes_back_from_a_file(tmp_path):
    table, y = synonyms(0)
    for open_set in (False, "auto"):
        forest = clone(CLOSED["forest"]).set_params(open_set=open_set).fit(table, y)
        forest.save(tmp_path / "m.simtree")
        again = simtree.load(tmp_path / "m.simtree")
        assert again.open_set == open_set
        np.testing.assert_array_equal(again.pairwise_score(table[:20]), forest.pairwise_score(table[:20]))


def test_often_confused_values_are_found():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(150), 4)
    kind = (y % 3)[:, None] * 2  # three kinds of identity, each with two values that are written for each other
    codes = (kind + rng.integers(0, 2, kind.shape)).astype(float)
    learned = Categories.fit(codes, np.array([6]), PairSampler(y))
    ratio = {tuple(map(int, divmod(key, 7))): value for key, value in zip(learned.keys, learned.ratios[:, 0], strict=True)}
    assert ratio[0, 1] > 0.5 > -2.0 > ratio[0, 2]


@pytest.mark.parametrize("name", ["tree", "boosting"])
def test_given_pairs_of_a_table(name):
    table, y = people()
    pairs = PairSampler(y).sample(1500, np.random.default_rng(0))
    rows = np.column_stack([pairs.first, pairs.second])
    model = clone(MODELS[name]).fit(table, pairs.same, pairs=rows)
    assert model.score(table, pairs.same, pairs=rows) > 0.7


def test_samples_without_a_pair_are_not_identities_of_their_own(rng):
    """Folds of them would leave little to learn from: equal values score higher than different ones, as in the data."""
    y = rng.integers(0, 3, 900)
    colour = np.array(list("abc"))[np.where(rng.random(900) < 0.7, y, rng.integers(0, 3, 900))]
    new = rng.integers(450, 900, (2000, 2))
    equal = colour[new[:, 0]] == colour[new[:, 1]]
    pairs = PairSampler(y[:450]).sample(3000, rng)
    rows = np.column_stack([pairs.first, pairs.second])
    model = SimilarityBoosting(n_estimators=10, early_stopping=False, random_state=0)
    scores = model.fit(pd.DataFrame({"colour": colour}), pairs.same, pairs=rows).pair_score(new, colour[:, None])
    assert scores[equal].min() > scores[~equal].max()


@pytest.mark.parametrize(("share", "whole"), [(0.6, False), (0.05, True)])
def test_a_large_identity_is_divided_into_folds(rng, share, whole):
    y = np.where(rng.random(600) < share, 0, rng.integers(1, 20, 600))
    learned = Categories.fit(rng.integers(0, 3, (600, 1)).astype(float), np.array([3]), PairSampler(y))
    assert (len(np.unique(learned.folds[y == 0, 0])) == 1) == whole


def test_only_categories():
    table, y = people()
    for model in MODELS.values():
        score = clone(model).fit(table[["colour", "town"]], y).score(*[people(1)[0][["colour", "town"]], y])
        assert score > 0.6


def test_early_stopping_with_categories():
    table, y = people()
    boosting = SimilarityBoosting(n_estimators=20, n_pairs=2000, open_set=True, early_stopping=True, random_state=0)
    assert boosting.fit(table, y).validation_roc_.auc() > 0.6


def test_numbers_as_categories():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 8)
    X = np.column_stack([rng.permutation(20)[y] // 2, rng.normal(size=len(y))])
    tree = SimilarityTree(max_depth=3, splitter="cut", categorical_features=[0], random_state=0).fit(X, y)
    assert "inside if shop equal" in tree.export_text(feature_names=["size", "shop"])
    assert tree.score(X, y) > 0.9


def test_an_encoder_takes_the_categories():
    table, y = people()
    parts = [("words", OneHotEncoder(handle_unknown="ignore"), ["colour"]), ("rare", RarityEncoder(), ["town"])]
    model = SimilarityTree(
        max_depth=3, representation=ColumnTransformer([*parts, ("height", Imputer(), ["height"])]), random_state=0
    )
    assert model.fit(table, y).tree_.pair_map.n_categories == 0
    values = ["blue", "green", "grey", "pink", "red", "missing"]
    assert model._names(None) == [*(f"colour_{value}" for value in values), "town", "height"]
    assert model.score(people(1)[0], y) > 0.6


@pytest.mark.parametrize("model", [GaussianSimilarity(), DistanceSimilarity()])
def test_models_of_numbers_take_tables_through_an_encoder(model, tmp_path):
    table, y = people()
    parts = [("words", OneHotEncoder(handle_unknown="ignore"), ["colour"]), ("rare", RarityEncoder(), ["town"])]
    encoder = ColumnTransformer(parts, remainder="passthrough")
    fitted = clone(model).set_params(representation=encoder).fit(table, y)
    new = people(1)[0]
    assert fitted.score(new, y) > 0.6
    fitted.save(tmp_path / "m.simtree")
    np.testing.assert_array_equal(simtree.load(tmp_path / "m.simtree").pairwise_score(new[:9]), fitted.pairwise_score(new[:9]))
    # The line that the error names helps.
    with pytest.raises(ValueError, match="column 'colour' of text") as error:
        clone(model).fit(table[["height", "colour"]], y)
    named = re.search(r"representation=(ColumnTransformer\(.*\)) of scikit-learn", str(error.value)).group(1)
    representation = eval(named, {"ColumnTransformer": ColumnTransformer, "OneHotEncoder": OneHotEncoder})
    clone(model).set_params(representation=representation).fit(table[["height", "colour"]], y)


def test_pairs_of_lists_with_words(fitted):
    table, _ = people()
    rows = table[:4].to_numpy(dtype=object).tolist()
    expected = fitted.pair_score([[0, 1], [2, 3]], table)
    np.testing.assert_array_equal(fitted.pair_score([[rows[0], rows[1]], [rows[2], rows[3]]]), expected)


def test_a_model_is_fitted_on_pairs_of_lists_with_words():
    pairs = [[[0.1, "a"], [0.2, "a"]], [[0.3, "b"], [0.5, "b"]], [[0.1, "a"], [0.9, "b"]], [[0.7, "b"], [0.6, "a"]]]
    tree = SimilarityTree(max_depth=1, splitter="cut", categorical_features=[1]).fit(pairs, [1, 1, 0, 0])
    assert [column.kind for column in tree.columns_.columns] == ["number", "category"]
    assert tree.score(pairs, [1, 1, 0, 0]) == 1.0


def test_an_ordinal_encoder_sorts_values_as_it_does_elsewhere():
    table, y = people()
    encoder = ColumnTransformer([("words", OrdinalEncoder(), ["colour"])])
    tree = SimilarityTree(max_depth=1, representation=encoder, random_state=0).fit(table, y)
    complete = table[table["colour"].notna()]
    expected = OrdinalEncoder().fit_transform(complete[["colour"]])
    np.testing.assert_array_equal(tree._represent(tree.columns_.read(complete)), expected)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (OrdinalEncoder(categories=[["red", "blue"]]), "OrdinalEncoder has the categories .*; leave categories='auto'"),
        (OneHotEncoder(categories=[["red", "blue"]]), "OneHotEncoder has the categories"),
        (OneHotEncoder(drop=["red"]), r"OneHotEncoder has drop=\['red'\], but it is given .*; set drop='first' or"),
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder()), "fill_value='none', but it is"),
    ],
)
def test_words_in_transformers_are_refused_in_one_sentence(step, said):
    table, y = people()
    model = SimilarityTree(max_depth=1, representation=ColumnTransformer([("words", step, ["colour"])]))
    for refusing in (model, CohortNormalization(model), VotingSimilarity([("tree", model)])):
        with pytest.raises(ValueError, match=said):
            refusing.fit(table, y)


# Bad input -------------------------------------------------------------------------------------------


def test_models_of_numbers_refuse_words():
    table, y = people()
    with pytest.raises(ValueError, match="column 'colour' of text, such as"):
        GaussianSimilarity().fit(table, y)
    with pytest.raises(ValueError, match=r"column 'colour' of text.*; name it in categorical_features=\['colour'\]"):
        SimilarityTree(categorical_features=None).fit(table, y)


def test_a_column_that_names_identities_is_warned_of():
    table, y = people()
    with pytest.warns(UserWarning, match="column 'session', each of whose values only one identity has; leave it out"):
        clone(MODELS["tree"]).fit(table.assign(session=[f"{who}-{k % 2}" for k, who in enumerate(y)]), y)


def test_columns_that_changed_are_named(fitted):
    table, _ = people()
    with pytest.raises(ValueError, match="'height' of text, such as 'tall', but the model was fitted on numbers"):
        fitted.pairwise_score(table.assign(height="tall"))
    with pytest.raises(ValueError, match="no column 'town'"):
        fitted.pairwise_score(table.drop(columns="town"))


def test_a_model_of_numbers_names_a_column_that_turned_to_words():
    table, y = people()
    tree = SimilarityTree(max_depth=2, random_state=0).fit(table[["height"]], y)
    with pytest.raises(ValueError, match="'height' of text, such as 'tall', but the model was fitted on numbers there"):
        tree.pairwise_score(table[["height"]].assign(height="tall"))


# What chooses among models ---------------------------------------------------------------------------


def test_auto_takes_a_table_with_holes_and_words(tmp_path):
    table, y = people()
    table.loc[::7, "height"] = np.nan
    auto = AutoSimilarity(target_fpr=0.2, time_budget=0.0, open_set=True, random_state=0).fit(table, y)
    assert [column.kind for column in auto.columns_.columns] == ["number", "category", "category", "boolean"]
    assert auto.columns_.columns[0].missing == pytest.approx(len(table[::7]) / len(table))
    scores = auto.pairwise_score(table[:20])
    np.testing.assert_array_equal(scores, scores.T)
    auto.save(tmp_path / "m.simtree")
    np.testing.assert_array_equal(simtree.load(tmp_path / "m.simtree").pairwise_score(table[:20]), scores)


@pytest.mark.parametrize("name", ["gaussian", "forest", "stack"])
def test_every_candidate_takes_a_table_as_it_was_read(name, tmp_path):
    table, y = people()
    table.loc[::7, "height"] = np.nan
    columns = TableColumns.of(table)
    matrix = columns.with_holes(columns.read(table))
    forest = clone(MODELS["forest"])
    stack = VotingSimilarity([("gaussian", GaussianSimilarity()), ("forest", forest)])
    model = {"gaussian": GaussianSimilarity(), "forest": forest, "stack": stack}[name]
    model = for_table(model, Contents.of(matrix, columns.n_values)).fit(matrix, y)
    assert model.score(matrix, y) > 0.7
    model.save(tmp_path / "m.simtree")
    np.testing.assert_array_equal(
        simtree.load(tmp_path / "m.simtree").pairwise_score(matrix[:9]), model.pairwise_score(matrix[:9])
    )


def test_auto_says_what_it_found_and_did(capsys, tmp_path):
    table, y = people()
    table.loc[::7, "height"] = np.nan
    auto = AutoSimilarity(target_fpr=0.2, time_budget=0.0, open_set=True, random_state=0, verbose=1).fit(table, y)
    said = capsys.readouterr().err
    assert "Columns: height: number, 14.6% missing; colour: category with 5 values" in said
    done = ["missing numbers are filled in by the median, with a column that tells where", "colour: a column per value"]
    assert what_was_done(auto)[:2] == done
    assert f"Done: {done[0]}." in said
    assert "town: the rarity of a value" in what_was_done(auto)
    auto.save(tmp_path / "m.simtree")
    assert what_was_done(simtree.load(tmp_path / "m.simtree")) == what_was_done(auto)
    voting = VotingSimilarity([("a", MODELS["tree"]), ("b", MODELS["tree"])]).fit(table, y)
    assert "a: what is missing in one sample of a pair, or in both, has a learned side at every test" in what_was_done(voting)
    assert what_was_done(SimilarityTree(max_depth=2).fit(table[["left"]], y)) == []


def test_a_missing_category_is_missing_to_a_tree_that_auto_chose(monkeypatch, tmp_path):
    """Auto gives candidates what it has read; they must not take a missing value for one more value."""
    table, y = people()
    make = {"forest": presets.Candidate(lambda size: clone(MODELS["tree"]))}
    monkeypatch.setattr(presets, "CANDIDATES", make)
    auto = AutoSimilarity(target_fpr=0.2, open_set=True, random_state=0).fit(table, y)
    tree = auto.best_estimator_
    assert [column.missing for column in tree.columns_.columns[-2:]] == [table["colour"].isna().mean(), 0.0]
    new = pd.DataFrame({"height": 0.0, "colour": ["red", None, None], "town": "town 24", "left": False})
    first, second = np.array([[0, 1], [1, 2]], dtype=np.int32)
    rows = auto._prepare(auto.columns_.read(new))
    coordinates = tree.tree_.pair_map.plain_values(SamplePairs(rows, rows, first, second))
    equal = len(coordinates) - 6  # three coordinates of each of the two categories
    np.testing.assert_array_equal(coordinates[equal], [np.inf, -np.inf])
    assert "colour missing in both" in str(auto.explain_pair(new.iloc[1].tolist(), new.iloc[2].tolist()))


@pytest.mark.parametrize("representation", [MarginalQuantiles(), StandardScaler()])
def test_a_representation_of_auto_leaves_missing_categories_alone(representation, monkeypatch):
    table, y = people()
    monkeypatch.setattr(presets, "CANDIDATES", {"forest": presets.Candidate(lambda size: clone(MODELS["tree"]))})
    auto = AutoSimilarity(target_fpr=0.2, open_set=True, representation=representation, random_state=0).fit(table, y)
    assert auto.best_estimator_.columns_.columns[-2].missing == table["colour"].isna().mean()


ENSEMBLES = {
    "voting": VotingSimilarity([("tree", MODELS["tree"]), ("boosting", MODELS["boosting"])]),
    "stack": StackedSimilarity([("tree", MODELS["tree"]), ("boosting", MODELS["boosting"])], random_state=0),
    "cohort": CohortNormalization(MODELS["tree"], n_cohort=30, n_nearest=5, random_state=0),
    "synthetic cohort": CohortNormalization(MODELS["tree"], cohort="synthetic", n_cohort=30, n_nearest=5, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENSEMBLES)
def test_what_combines_trees_takes_tables_as_they_are(name, tmp_path):
    table, y = people()
    model = clone(ENSEMBLES[name]).fit(table, y)
    new = people(1)[0]
    scores = model.pairwise_score(new[:12])
    np.testing.assert_array_equal(scores, scores.T)
    assert model.score(new, y) > 0.65
    model.save(tmp_path / "m.simtree")
    again = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(again.pairwise_score(new[:12]), scores)
    np.testing.assert_array_equal(again.fit(table, y).pairwise_score(new[:12]), scores)
    if hasattr(model, "explain_pair"):
        found = model.explain_pair(new.iloc[0].tolist(), new.iloc[1].tolist())
        assert found.score == pytest.approx(scores[0, 1])
        assert found.x[list(found.feature_names).index("town")] == new["town"][0] or new["town"][0] not in repr(model.columns_)


def test_members_of_an_ensemble_have_the_states_of_missing_categories():
    table, y = people()
    model = clone(ENSEMBLES["voting"]).fit(table, y)
    alone = clone(MODELS["tree"]).fit(table, y)
    np.testing.assert_array_equal(
        model.estimators_[0].pairwise_score(model._given(model.columns_.read(table[:20]))), alone.pairwise_score(table[:20])
    )


def test_members_that_take_numbers_only_or_name_other_columns_are_refused():
    table, y = people()
    with pytest.raises(ValueError, match="estimators: 'gaussian' is a GaussianSimilarity that takes numbers only, but X has"):
        VotingSimilarity([("tree", MODELS["tree"]), ("gaussian", GaussianSimilarity())]).fit(table, y)
    other = clone(MODELS["tree"]).set_params(categorical_features=["left"])
    third = clone(MODELS["tree"]).set_params(categorical_features=["town"])
    with pytest.raises(ValueError, match="'a' and 'b' name different columns in categorical_features"):
        VotingSimilarity([("a", other), ("b", third)]).fit(table, y)
    encoder = ColumnTransformer([("words", OneHotEncoder(handle_unknown="ignore"), ["colour"])])
    mixed = [("tree", MODELS["tree"]), ("gaussian", GaussianSimilarity(representation=encoder))]
    assert VotingSimilarity(mixed).fit(table, y).score(people(1)[0], y) > 0.65


@pytest.mark.slow
def test_auto_of_complete_numbers_refuses_holes_when_scoring():
    table, y = people()
    auto = AutoSimilarity(target_fpr=0.2, time_budget=0.0, open_set=True, random_state=0).fit(table[["height"]], y)
    table.loc[3, "height"] = np.nan
    with pytest.raises(ValueError, match="NaN in column 'height', first in row 3"):
        auto.pairwise_score(table[["height"]])
