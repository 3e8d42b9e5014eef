"""The presets: one answer to what should be used, for Python and the command."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from simtree import AutoSimilarity, MarginalQuantiles, SimilarityForest, SimilarityTree, WithinClassWhitening, load  # noqa: F401
from simtree.models import _presets as presets
from simtree.models._open_set import MAX_CLOSED_SET_LABELS
from simtree.pairs._sampling import PairSampler


def labels(n, samples=4):
    return np.repeat(np.arange(n), samples)


@pytest.mark.parametrize(("n", "open_set"), [(10, False), (11, True)])
def test_one_rule_says_what_an_open_set_is(n, open_set):
    y = labels(n)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    kind = "an open" if open_set else "a closed"
    with pytest.warns(UserWarning, match=f"open_set='auto' takes the {n} labels for {kind} set; set open_set=True if"):
        assert AutoSimilarity(target_fpr=1.0, time_budget=0.0, random_state=0).fit(X, y).open_set_ is open_set
    assert presets.forest_preset(PairSampler(y)).bag == ("classes" if open_set else "samples")


def test_who_says_what_the_set_is_is_believed():
    closed = presets.forest_preset(PairSampler(labels(20)), open_set=False)
    assert (closed.bag, closed.open_set) == ("samples", False)
    assert presets.forest_preset(PairSampler(labels(5)), open_set=True).bag == "classes"


def test_a_forest_goes_by_what_there_is_to_learn_from():
    few, many = PairSampler(labels(7)), PairSampler(labels(60))
    assert (presets.forest_preset(few).bootstrap, presets.forest_preset(few).oob_score) == (False, False)
    assert (presets.forest_preset(many).bootstrap, presets.forest_preset(many).oob_score) == (True, True)
    assert not presets.forest_preset(many, n_trees=presets.MIN_TREES_FOR_OOB_SCORE - 1).oob_score
    assert not presets.forest_preset(many, directions="discriminant").oob_score  # all labels are seen: no pair is out of bag
    assert not presets.forest_preset(many, representation=WithinClassWhitening()).oob_score
    assert [presets.forest_preset(pairs).min_pairs_split for pairs in (few, many)] == [2, 100]
    assert presets.forest_preset(many, min_pairs_split=7).min_pairs_split == 7


def test_the_guide_shows_what_the_command_learns():
    guide = (Path(__file__).parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^>>> forest = SimilarityForest\($.*?^\.\.\. \)$", guide, re.DOTALL | re.MULTILINE)
    shown = re.sub(r"^(>>>|\.\.\.) ?", "", shown, flags=re.MULTILINE).removeprefix("forest = ")
    assert str(eval(shown)) == str(presets.forest_preset(PairSampler(labels(60))))
    assert f"more than {'ten' if MAX_CLOSED_SET_LABELS == 10 else MAX_CLOSED_SET_LABELS}\nidentities" in guide
    assert f"fewer than {presets.MANY_PAIRS:,} pairs" in guide
    assert f"fewer than {presets.MIN_BAG_SAMPLES} samples" in guide
    readable = f'SimilarityTree(splitter="{presets.READABLE_SPLITTER}", max_depth={presets.READABLE_DEPTH})'
    assert f"`{readable}`, or `simtree fit --model tree`" in guide
    few = presets.tree_preset(PairSampler(labels(7)))
    assert str(eval(readable)) == str(few)


@pytest.mark.slow
@pytest.mark.parametrize("name", presets.CANDIDATES)
def test_every_candidate_is_fitted_scores_new_samples_and_can_be_saved(name, tmp_path):
    y = labels(8, 10)
    X = np.random.default_rng(0).normal(size=(8, 3))[y] + 0.3 * np.random.default_rng(1).normal(size=(80, 3))
    tiny = presets.Size(n_trees=3, n_pairs=500, n_landmarks=10, n_extra_trees=20, n_rounds=3, n_updates=20)
    model = presets.CANDIDATES[name].make(tiny).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.6
    model.save(tmp_path / "m.simtree")
    np.testing.assert_array_equal(load(tmp_path / "m.simtree").pairwise_score(X), model.pairwise_score(X))


def test_a_readable_tree_has_one_condition_per_split_and_few_cells():
    y = labels(20, 12)
    X = np.random.default_rng(0).normal(size=(20, 3))[y] + 0.3 * np.random.default_rng(1).normal(size=(240, 3))
    tree = presets.tree_preset(PairSampler(y), random_state=0).fit(X, y)
    rules = tree.export_text()
    assert np.count_nonzero(tree.tree_.cells.inside < 0) <= 2**presets.READABLE_DEPTH
    assert "inside if" in rules
    assert " and " not in rules
    assert " or " not in rules
    assert presets.tree_preset(PairSampler(y), splitter="cart", max_depth=10).get_params()["splitter"] == "cart"
