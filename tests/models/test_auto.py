from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from simtree import AutoSimilarity, DistanceSimilarity, SimilarityForest
from simtree.models import _auto as auto
from simtree.models import _presets as presets

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:target_fpr=.* cannot be measured")]


@pytest.fixture(scope="module", autouse=True)
def small():
    """Forests and representations so small that a fit takes a second."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        tiny = presets.Size(n_trees=4, n_pairs=4_000, n_landmarks=40, n_extra_trees=20)
        monkeypatch.setattr(presets, "SMALL", tiny)
        monkeypatch.setattr(presets, "LARGE", presets.Size(n_trees=6, n_pairs=4_000, n_landmarks=60, n_extra_trees=30))
        monkeypatch.setattr(auto, "VALIDATION_PAIRS", 20_000)
        yield


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return pd.DataFrame(X[::3], columns=[f"p{j}" for j in range(64)]), y[::3]


@pytest.fixture(scope="module")
def chosen(digits, small):
    """The choice for the known classes of the digits."""
    return AutoSimilarity(target_fpr=0.01, random_state=0).fit(*digits)


@pytest.fixture(scope="module")
def round_people():
    """Identities around centres, with the same noise in all directions: nothing beats the plain distance."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 6)
    return rng.normal(size=(40, 6))[y] + 0.3 * rng.normal(size=(240, 6)), y


def test_known_classes_are_learned(chosen):
    assert not chosen.open_set_
    assert isinstance(chosen.best_estimator_, SimilarityForest)
    table = pd.DataFrame(chosen.results_)
    assert set(table["name"]) == set(presets.CANDIDATES)
    assert table["name"][0] == chosen.best_name_
    assert (np.diff(table["tpr"]) <= 0).all()
    assert table["tpr"][0] > table.set_index("name")["tpr"]["euclidean"] + 0.1
    assert chosen.best_estimator_.n_estimators == 6


def test_the_best_candidate_is_chosen(round_people):
    """Where a distance is all there is to know, it is chosen; what learns known classes is not even tried."""
    chosen = AutoSimilarity(target_fpr=0.05, random_state=0).fit(*round_people)
    assert chosen.open_set_
    assert isinstance(chosen.best_estimator_, DistanceSimilarity)
    assert not {name for name, candidate in presets.CANDIDATES.items() if candidate.closed_set} & set(chosen.results_["name"])


def test_open_set_folds_leave_out_entire_classes(round_people):
    X, y = round_people
    for open_set in (True, False):
        automatic = AutoSimilarity(open_set=open_set)
        automatic.open_set_ = open_set
        folds = automatic._folds(X, auto.PairSampler(y), np.random.default_rng(0))
        assert len(folds) == 3
        for seen, source, pairs in folds:
            assert not seen[pairs.first].any()
            assert not seen[pairs.second].any()
            shared = set(source.labels[seen]) & set(source.labels[~seen])
            assert (len(shared) == 0) is open_set


def test_same_seed_same_choice_and_scores_for_any_number_of_jobs(digits):
    X, y = digits[0][:200], digits[1][:200]
    first = AutoSimilarity(target_fpr=0.01, n_jobs=1, random_state=3).fit(X, y)
    again = clone(first).set_params(n_jobs=2).fit(X, y)
    assert first.best_name_ == again.best_name_
    np.testing.assert_array_equal(first.results_["tpr"], again.results_["tpr"])
    np.testing.assert_array_equal(first.pairwise_score(X[:20]), again.pairwise_score(X[:20]))


def test_budget_stops_the_search_but_the_simplest_is_always_tried(digits):
    X, y = digits
    chosen = AutoSimilarity(time_budget=0.0, random_state=0).fit(X, y)
    assert chosen.results_["name"].tolist() == ["euclidean"]
    assert chosen.best_name_ == "euclidean"


def test_scores_are_those_of_the_best_estimator(digits, chosen):
    frame, y = digits
    best = chosen.best_estimator_
    np.testing.assert_array_equal(chosen.pairwise_score(frame[:10]), best.pairwise_score(frame[:10]))
    np.testing.assert_array_equal(chosen.top_k(frame[:3], frame, 5)[1], best.top_k(frame[:3], frame, 5)[1])
    assert chosen.threshold_ == best.threshold_
    assert chosen.score(frame, y) == best.score(frame, y)
    assert hasattr(chosen, "explain_pair") == isinstance(best, SimilarityForest)
    assert chosen.feature_names_in_[0] == "p0"


def test_rate_is_the_smallest_that_the_data_allow(round_people):
    X, y = round_people
    with pytest.warns(UserWarning, match=r"target_fpr=1e-06 cannot be measured: .* 2,808 different pairs; .* fpr_=0.011"):
        chosen = AutoSimilarity(target_fpr=1e-6, time_budget=0.0, random_state=0).fit(X, y)
    # The smallest fold has 13 people with 6 points each: 78 * 77 / 2 - 13 * 15 = 2808 different pairs.
    assert chosen.fpr_ == 30 / 2808


def test_many_samples_are_subsampled_for_the_comparison(digits, monkeypatch):
    monkeypatch.setattr(auto, "MAX_SEARCH_SAMPLES", 200)
    rng = np.random.default_rng(0)
    few_classes, many_classes = digits[1], np.repeat(np.arange(100), 9)
    assert len(auto._some_rows(few_classes, True, rng)) == 200
    assert len(auto._some_rows(many_classes, False, rng)) == 200
    rows = auto._some_rows(many_classes, True, rng)
    assert 150 <= len(rows) <= 200
    assert set(np.bincount(many_classes[rows])) == {0, 9}


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"target_fpr": 0.0}, "target_fpr=0.0"),
        ({"time_budget": -1.0}, "time_budget=-1.0"),
        ({"open_set": "maybe"}, "open_set='maybe' is unknown"),
    ],
)
def test_bad_parameters(digits, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        AutoSimilarity(**parameters).fit(*digits)


def test_pairs_and_too_few_classes_are_rejected():
    with pytest.raises(ValueError, match="array of pairs"):
        AutoSimilarity().fit(np.zeros((4, 2, 3)), [1, 0, 1, 0])
    with pytest.raises(ValueError, match="open_set=True leaves out entire classes"):
        AutoSimilarity(open_set=True).fit(np.arange(12.0)[:, None], np.arange(12) % 3)


def test_too_few_pairs_to_compare_candidates_are_rejected():
    """It was "fpr must lie in [0, 1], got 5.0", which nobody gave."""
    X, y = np.arange(16.0)[:, None], np.arange(16) // 4
    with pytest.raises(
        ValueError, match=r"y leaves \d+ different pairs in a fold, but more than 30 are needed; give more classes"
    ):
        AutoSimilarity(random_state=0).fit(X, y)


def test_never_pair_is_respected_everywhere(round_people, monkeypatch):
    """In folds, in the candidates' own pairs, and in the last fit."""
    X, y = round_people
    sitting = np.tile([0, 0, 1, 1, 2, 2], 40)
    told = []
    fit = DistanceSimilarity.fit
    monkeypatch.setattr(
        DistanceSimilarity,
        "fit",
        lambda self, X, y, never_pair=None: told.append(never_pair) or fit(self, X, y, never_pair=never_pair),
    )
    automatic = AutoSimilarity(time_budget=0.0, random_state=0).fit(X, y, never_pair=sitting)
    assert len(told) == 4
    assert all(len(np.unique(values)) == 3 for values in told)
    automatic.open_set_ = True
    for _, source, pairs in automatic._folds(X, auto.PairSampler(y, never_pair=sitting), np.random.default_rng(0)):
        assert (sitting[pairs.first] != sitting[pairs.second]).all()
        assert source.never_pair is not None
