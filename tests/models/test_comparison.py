"""What the first fold says about candidates: how many same pairs count, and which candidates are given up after it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from simtree import AutoSimilarity, DistanceSimilarity, GaussianSimilarity, WithinClassWhitening
from simtree.models import _comparison as comparison
from simtree.models import _presets as presets
from simtree.pairs._sampling import PairSampler
from simtree.pairs._sources import IndexPairs

WHITENED = DistanceSimilarity(
    metric="euclidean", representation=make_pipeline(StandardScaler(), WithinClassWhitening(emphasis=0.25))
)


@pytest.fixture(scope="module")
def one_large_identity():
    """Sixty identities with five samples each, and one with 250 that are nearly equal."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 5)
    X = np.hstack([rng.normal(size=(60, 6))[y] + 0.3 * rng.normal(size=(300, 6)), 3.0 * rng.normal(size=(300, 20))])
    large = np.hstack([rng.normal(size=6), 3.0 * rng.normal(size=20)]) + 0.05 * rng.normal(size=(250, 26))
    return np.vstack([large, X]), np.append(np.full(250, 60), y)


@pytest.fixture
def two_candidates(monkeypatch):
    made = {"gaussian": GaussianSimilarity(), "whitened": WHITENED}
    candidates = {name: presets.Candidate(lambda size, model=model: clone(model)) for name, model in made.items()}
    monkeypatch.setattr(presets, "CANDIDATES", candidates)


@pytest.mark.parametrize("sizes", [[2, 2, 2], [3, 2], [5, 5, 5, 5], [250, 5, 5], [1, 1, 4]])
def test_an_identity_counts_for_at_most_as_many_same_pairs_as_it_has_samples(sizes):
    pairs = PairSampler(np.repeat(np.arange(len(sizes)), sizes)).all_pairs()
    assert comparison._n_counted(pairs) == sum(min(n * (n - 1) // 2, n) for n in sizes)


def test_no_same_pair_counts():
    assert comparison._n_counted(IndexPairs(np.array([0]), np.array([1]), np.array([False]))) == 0


def test_one_large_identity_does_not_decide_which_candidates_are_given_up(one_large_identity, two_candidates):
    """It has 31,125 same pairs, all of which the better candidate finds, and the other one nearly all."""
    chosen = AutoSimilarity(target_fpr=0.01, open_set=True, random_state=0).fit(*one_large_identity)
    assert chosen.skipped_ == {}


def test_figures_are_printed_such_that_they_differ():
    first = comparison._FirstFold({"best": 1.0, "other": 0.99967}, 30_000)
    assert first.is_far_behind("other")
    assert first.sentence("other") == "far behind on the first fold: 0.9997, and 1.0000 of best"


def test_a_candidate_as_good_as_those_that_are_kept_is_not_called_worse(monkeypatch, rng):
    metrics = ("euclidean", "manhattan", "cosine")
    candidates = {name: presets.Candidate(lambda size, name=name: DistanceSimilarity(metric=name)) for name in metrics}
    monkeypatch.setattr(presets, "CANDIDATES", candidates)
    monkeypatch.setattr(comparison, "MAX_KEPT", 2)
    y = np.repeat(np.arange(120), 5)
    X = 10.0 * rng.normal(size=(120, 8))[y] + 1e-3 * rng.normal(size=(600, 8))  # all candidates find every same pair
    chosen = AutoSimilarity(target_fpr=0.01, open_set=True, random_state=0).fit(X, y)
    assert list(chosen.skipped_.values()) == ["no better than 2 others on the first fold: 1.000, and 1.000 of manhattan"]
