"""Training data are recognised where they should be held out, and held-out data are not taken for them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import simtree
from simtree import GaussianSimilarity, SimilarityForest, SimilarityTree
from simtree.models import _held_out as held_out
from simtree.models._held_out import LEVELS, OutOfBagScores

pytestmark = pytest.mark.slow


def identities(n, seed, centres=1.5, samples=5):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n), samples)
    return centres * rng.normal(size=(n, 6))[y] + rng.normal(size=(len(y), 6)), y


FOREST = SimilarityForest(n_estimators=60, n_pairs=3000, oob_score=True, random_state=0)


@pytest.fixture(scope="module", params=["samples", "classes"])
def forest(request):
    return clone(FOREST).set_params(bag=request.param).fit(*identities(25, 0))


def check(model, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.calibrate_threshold(X, y, strategy="accuracy", **options).held_out_check_


def test_training_data_are_recognised_and_new_ones_are_not(forest):
    assert check(forest, *identities(25, 0)).suspicious
    excess = [check(forest, *identities(n, seed)).excess for n in (12, 25, 60) for seed in range(1, 5)]
    assert max(excess) < held_out.MAX_EXCESS


def test_a_part_of_the_training_data_in_another_order_is_recognised_by_its_scores():
    X, y = identities(60, 0, centres=0.8)
    model = clone(FOREST).fit(X, y)
    rows = np.random.default_rng(1).permutation(len(y))[: len(y) // 2]
    assert check(model, X[rows], y[rows]).suspicious
    assert not check(model, *identities(60, 1, centres=0.8)).suspicious


@pytest.mark.parametrize("bag", ["samples", "classes"])
def test_the_training_table_is_recognised_without_out_of_bag_scores_and_where_it_is_easy(bag):
    X, y = identities(20, 0, centres=4.0)
    model = clone(FOREST).set_params(oob_score=False, bag=bag).fit(X, y)
    assert check(model, X, y).suspicious
    new = check(model, *identities(20, 1, centres=4.0))
    assert new.excess is None
    assert "cannot be checked" in str(new)


@pytest.mark.parametrize(
    "model", [SimilarityTree(max_depth=3), GaussianSimilarity(), clone(FOREST).set_params(bootstrap=False)]
)
def test_other_models_cannot_tell(model):
    X, y = identities(10, 0)
    if isinstance(model, SimilarityForest):
        model.set_params(oob_score=False)
    found = check(clone(model).fit(X, y), X, y, strict=True)
    assert found.suspicious is None


def test_it_warns_or_refuses_and_a_refusal_changes_nothing():
    X, y = identities(25, 0)
    model = clone(FOREST).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"strict=True: same pairs score [\d.]+ standard errors higher .* not used in fit\.$"):
        model.calibrate_threshold(X, y, strategy="accuracy", strict=True)
    assert vars(model) == before
    with pytest.warns(UserWarning, match="these data look like the training data"):
        model.calibrate_threshold(X, y, strategy="accuracy")
    assert model.held_out_check_.suspicious
    assert not hasattr(model.set_threshold(0.0), "held_out_check_")


def test_given_pairs_with_groups():
    X, y = identities(25, 0, centres=0.8)
    pairs = simtree.pairs.PairSampler(y).sample(1500, np.random.default_rng(0))
    rows = np.column_stack([pairs.first, pairs.second])
    model = clone(FOREST).fit(X[rows], pairs.same, groups=y[rows])
    assert check(model, X[rows], pairs.same, identities=y[rows]).suspicious
    X, y = identities(25, 1, centres=0.8)
    assert not check(model, X[rows], pairs.same, identities=y[rows]).suspicious


def test_what_is_kept_is_saved(forest, tmp_path):
    forest.save(tmp_path / "m.simtree")
    loaded = simtree.load(tmp_path / "m.simtree")
    for data in (identities(25, 0), identities(25, 1)):
        assert check(loaded, *data) == check(forest, *data)
    loaded.save(tmp_path / "m.simtree")
    assert simtree.load(tmp_path / "m.simtree").held_out_check_ == loaded.held_out_check_


# --- the summary


def test_shares_and_spreads_are_those_of_their_definition():
    rng = np.random.default_rng(0)
    who = rng.integers(0, 12, 200)
    scores = rng.normal(size=12)[who] + rng.normal(size=200)
    kept = OutOfBagScores.from_scores(scores, who, 0.2)
    np.testing.assert_allclose(kept.quantiles, np.quantile(scores, LEVELS))
    sizes = np.bincount(who)
    assert kept.n_identities == pytest.approx(200**2 / (sizes**2).sum())
    for quantile, share, spread in zip(kept.quantiles, kept.shares, kept.spreads, strict=True):
        above = scores >= quantile
        assert share == above.mean()
        residuals = [above[who == k].sum() - sizes[k] * share for k in range(12)]
        assert spread == pytest.approx(np.sqrt(sum(r**2 for r in residuals) * 12 / 11) / 200 * np.sqrt(kept.n_identities))
    assert kept.excess(scores, who) == pytest.approx(0.0, abs=1e-9)
    assert kept.excess(scores + 3, who) > kept.excess(scores + 1, who) > 0 > kept.excess(scores - 3, who)


def test_no_more_than_the_maximum_of_pairs_is_scored(monkeypatch):
    monkeypatch.setattr(held_out, "MAX_PAIRS", 60)
    monkeypatch.setattr(held_out, "BLOCK", 16)
    X, y = identities(25, 0, centres=0.8)
    model = clone(FOREST).fit(X, y)
    assert 1 < model._oob_same.n_identities <= 25
    assert check(model, X, y).suspicious
