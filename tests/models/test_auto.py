"""AutoSimilarity: what is compared, chosen, reported and recorded."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from simtree import (
    AutoSimilarity,
    CohortNormalization,
    DistanceSimilarity,
    ForestPosterior,
    GaussianSimilarity,
    LogisticPosterior,
    MarginalQuantiles,
    PosteriorSimilarity,
    SimilarityBoosting,
    SimilarityForest,
    SimilarityTree,
    StackedSimilarity,
    WithinClassWhitening,
)
from simtree import load as load_model
from simtree._utils.threads import submitted
from simtree.models import _comparison as comparison
from simtree.models import _presets as presets
from simtree.models import _selection as selection
from simtree.models import _timing as timing
from simtree.models._choice import Chooser
from simtree.pairs._sampling import PairSampler
from simtree.representation import Imputer

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:target_fpr=.* cannot be measured")]


def candidate(model, closed=False):
    return presets.Candidate(lambda size: clone(model), presets.CLOSED_SET if closed else presets.ANY_SET)


ALL = presets.CANDIDATES
SMALL = presets.Size(n_trees=3, n_pairs=2_000, n_landmarks=40, n_extra_trees=20, n_rounds=3, n_updates=50, n_folds=2)
FEW = {
    "euclidean": candidate(DistanceSimilarity(metric="euclidean")),
    "gaussian": candidate(GaussianSimilarity()),
    "tree": candidate(SimilarityTree(max_depth=4, n_pairs=2_000)),
    "known": candidate(SimilarityTree(max_depth=5, n_pairs=2_000), closed=True),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few candidates, so small that a fit takes a second."""
    monkeypatch.setattr(presets, "SMALL", SMALL)
    monkeypatch.setattr(presets, "LARGE", replace(SMALL, n_trees=4, n_landmarks=60, n_extra_trees=30))
    monkeypatch.setattr(selection, "VALIDATION_PAIRS", 10_000)
    monkeypatch.setattr(presets, "CANDIDATES", FEW)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return pd.DataFrame(X[::4], columns=[f"p{j}" for j in range(64)]), y[::4]


@pytest.fixture(scope="module")
def round_people():
    """Identities around centres, with the same noise in all directions: nothing beats the plain distance."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 6)
    return rng.normal(size=(40, 6))[y] + 0.3 * rng.normal(size=(240, 6)), y


def test_the_candidates_of_the_presets_are_compared(digits, monkeypatch):
    monkeypatch.setattr(presets, "CANDIDATES", ALL)
    monkeypatch.setattr(comparison, "MAX_REPEATS", 1)
    monkeypatch.setattr(comparison, "MIN_SAME", 100)
    monkeypatch.setattr(comparison, "MIN_COUNTED", 50)
    chosen = AutoSimilarity(target_fpr=0.01, open_set=False, random_state=0).fit(digits[0][:200], digits[1][:200])
    table = pd.DataFrame(chosen.results_)
    assert set(table["name"]) | set(chosen.skipped_) == {name for name, tried in ALL.items() if tried.is_for(closed_set=True)}
    assert all(re.search("far behind on the first fold|^behind 6 others on", reason) for reason in chosen.skipped_.values())
    assert chosen.skipped_
    assert table["weight"].sum() == pytest.approx(1.0)
    assert (np.diff(table["weight"]) <= 0.0).all()
    assert chosen.n_repeats_ == 1


def test_the_table_is_that_of_the_choice(digits):
    X, y = digits
    chosen = AutoSimilarity(target_fpr=0.01, open_set=False, random_state=0).fit(X, y)
    members = chosen.results_["name"][chosen.results_["weight"] > 0.0]
    best = chosen.best_estimator_
    if isinstance(best, StackedSimilarity):
        assert [name for name, _ in best.estimators] == sorted(members, key=[name for name, _ in best.estimators].index)
        assert chosen.best_name_ == f"stack of {len(members)} similarities"
    else:
        assert chosen.best_name_ == members[0]
    assert chosen.performance_["tpr"].low <= chosen.performance_["tpr"].value <= chosen.performance_["tpr"].high
    np.testing.assert_array_equal(chosen.pairwise_score(X[:9]), best.pairwise_score(X[:9]))
    np.testing.assert_array_equal(chosen.top_k(X[:3], X, 5)[1], best.top_k(X[:3], X, 5)[1])
    assert chosen.threshold_ == best.threshold_
    assert list(chosen.feature_names_in_[:2]) == ["p0", "p1"]
    assert "known" in {*chosen.results_["name"], *chosen.skipped_}


def test_where_a_distance_is_all_there_is_to_know_it_is_chosen(round_people):
    chosen = AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(*round_people)
    assert chosen.best_name_ == "euclidean"
    assert "known" not in chosen.results_["name"]


def test_a_stack_is_chosen_where_members_see_different_features(monkeypatch, tmp_path):
    """Each of two candidates knows one half of the features."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 8)
    X = rng.normal(size=(60, 2))[y] + 0.6 * rng.normal(size=(480, 2))
    halves = {
        f"half {k}": candidate(SimilarityForest(n_estimators=5, n_pairs=3_000, representation=Half(k), random_state=0))
        for k in (0, 1)
    }
    monkeypatch.setattr(presets, "CANDIDATES", halves | {"noise": candidate(DistanceSimilarity(representation=Half(2)))})
    noisy = np.column_stack([X, rng.normal(size=(480, 2))])
    chosen = AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(noisy, y)
    assert isinstance(chosen.best_estimator_, StackedSimilarity)
    assert {name for name, _ in chosen.best_estimator_.estimators} == set(halves)
    assert chosen.performance_["auc"].value > chosen.results_["auc"].max() + 0.05


class Half(TransformerMixin, BaseEstimator):
    """One column, or two that are noise."""

    def __init__(self, k=0):
        self.k = k

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[:, 2:] if self.k == 2 else X[:, [self.k]]


def test_same_seed_same_choice_and_scores_for_any_number_of_jobs(digits):
    X, y = digits[0][:200], digits[1][:200]
    first = AutoSimilarity(target_fpr=0.01, open_set=False, n_jobs=1, random_state=3).fit(X, y)
    again = clone(first).set_params(n_jobs=2).fit(X, y)
    assert first.best_name_ == again.best_name_
    assert first.performance_ == again.performance_
    np.testing.assert_array_equal(first.results_["criterion"], again.results_["criterion"])
    np.testing.assert_array_equal(first.pairwise_score(X[:20]), again.pairwise_score(X[:20]))


def test_candidates_are_compared_in_threads_unless_seconds_are_counted(digits, monkeypatch):
    """A candidate that cannot be fitted in a thread is skipped with the reason, as elsewhere."""
    X, y = digits[0][:200], digits[1][:200]
    calls = []
    monkeypatch.setattr(comparison, "submitted", lambda work, n: calls.append((len(work), n)) or submitted(work, n))
    scaled = candidate(DistanceSimilarity(representation=FunctionTransformer(lambda X: np.full(X.shape, np.inf))))
    monkeypatch.setattr(presets, "CANDIDATES", {**FEW, "infinite": scaled})
    chosen = AutoSimilarity(target_fpr=0.01, open_set=False, n_jobs=2, random_state=0).fit(X, y)
    assert calls[0] == (len(FEW) + 1, 2)
    assert "infinite" in chosen.skipped_
    assert (chosen.results_["seconds"] > 0.0).all()
    calls.clear()
    AutoSimilarity(target_fpr=0.01, open_set=False, n_jobs=2, time_budget=1e6, random_state=0).fit(X, y)
    AutoSimilarity(target_fpr=0.01, open_set=False, n_jobs=1, random_state=0).fit(X, y)
    assert calls == []


def test_an_interrupted_comparison_does_not_start_what_is_left(digits, monkeypatch):
    X, y = digits[0][:200], digits[1][:200]
    futures = []
    monkeypatch.setattr(comparison, "submitted", lambda work, n: futures.extend(submitted(work, 1)) or futures)
    monkeypatch.setattr(comparison.Comparison, "_add", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        AutoSimilarity(target_fpr=0.01, open_set=False, n_jobs=2, random_state=0).fit(X, y)
    assert any(future.cancelled() for future in futures)


def test_without_a_budget_the_clock_decides_nothing(digits, monkeypatch):
    """A clock that runs wild changes the recorded seconds only."""
    X, y = digits[0][:200], digits[1][:200]
    first = AutoSimilarity(target_fpr=0.01, open_set=False, random_state=0).fit(X, y)
    clock = iter(np.cumsum(np.random.default_rng(0).exponential(1e4, 10_000)))
    for module in (timing, comparison):
        monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(clock)))
    again = clone(first).fit(X, y)
    assert again.best_name_ == first.best_name_
    np.testing.assert_array_equal(again.pairwise_score(X[:20]), first.pairwise_score(X[:20]))


def test_a_budget_of_nothing_tries_the_simplest(digits):
    chosen = AutoSimilarity(time_budget=0.0, open_set=False, random_state=0).fit(*digits)
    assert chosen.results_["name"].tolist() == ["euclidean"]
    assert chosen.best_name_ == "euclidean"
    assert set(chosen.skipped_) == set(FEW) - {"euclidean"}
    assert set(chosen.skipped_.values()) == {"no time is left"}


@pytest.mark.parametrize("budget", [30.0, 100.0, 400.0])
def test_a_budget_is_kept_on_a_clock_that_ticks_with_the_work(round_people, monkeypatch, budget):
    """A fit takes two seconds, and one more per tree and thousand pairs."""
    clock = [0.0]

    class Slow(SimilarityForest):
        def fit(self, X, y, **options):
            super().fit(X, y, **options)
            clock[0] += 2.0 + self.n_estimators * self.n_pairs / 1000
            return self

    def make(size):
        return Slow(n_estimators=size.n_trees, n_pairs=size.n_pairs, max_depth=2)

    for module in (timing, comparison):
        monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(timing, "FEW_PAIRS", 100)
    monkeypatch.setattr(timing, "TRIAL_PAIRS", 500)
    slow = {f"slow {k}": presets.Candidate(make) for k in range(4)}
    monkeypatch.setattr(presets, "CANDIDATES", {"euclidean": FEW["euclidean"], **slow})
    chosen = AutoSimilarity(target_fpr=0.05, time_budget=budget, open_set=True, n_jobs=1, random_state=0).fit(*round_people)
    assert clock[0] <= 1.3 * budget
    assert len(chosen.results_["name"]) + len(chosen.skipped_) == 5
    assert (len(chosen.skipped_) > 0) is (budget < 400.0)


def test_the_expected_time_is_that_of_the_search(round_people, monkeypatch):
    clock = [0.0]

    class Slow(SimilarityForest):
        def fit(self, X, y, **options):
            super().fit(X, y, **options)
            clock[0] += 2.0 + self.n_estimators * self.n_pairs / 1000
            return self

    def make(size):
        return Slow(n_estimators=size.n_trees, n_pairs=size.n_pairs, max_depth=1 + size.n_trees % 2)

    for module in (timing, comparison):
        monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(timing, "FEW_PAIRS", 100)
    monkeypatch.setattr(timing, "TRIAL_PAIRS", 500)
    monkeypatch.setattr(comparison, "MAX_REPEATS", 1)
    monkeypatch.setattr(presets, "CANDIDATES", {"a": presets.Candidate(make), "b": presets.Candidate(make)})
    model = AutoSimilarity(target_fpr=0.05, open_set=True, n_jobs=1, random_state=0)
    expected = clone(model)._expected_seconds(*round_people, None)
    clock[0] = 0.0
    model.fit(*round_people)
    assert 1 / 1.5 < clock[0] / expected < 1.5


def test_a_candidate_without_trees_scores_each_pair_once(round_people, monkeypatch):
    clock = [0.0]

    class Slow(DistanceSimilarity):
        def pair_score(self, pairs, X=None):
            clock[0] += len(pairs) / 1000
            return super().pair_score(pairs, X)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    source = PairSampler(round_people[1])
    cost = timing.measure_cost(lambda size: Slow(), round_people[0], source, None)
    n_scored = timing.n_drawn(timing.VALIDATION_PAIRS, source, timing.SAME_SHARE)
    assert cost.of_fold(source) == pytest.approx(n_scored / 1000, rel=0.01)


@pytest.mark.parametrize(
    ("representation", "columns"),
    [(PCA(1), [1]), (MarginalQuantiles(), [2]), (Imputer(indicator=True), [3])],
    ids=["fewer columns", "holes stay", "more columns"],
)
def test_candidates_know_the_categories_behind_a_representation(rng, monkeypatch, representation, columns):
    X, y = rng.normal(size=(200, 2)) + np.repeat(np.arange(20), 10)[:, None], np.repeat(np.arange(20), 10)
    if not isinstance(representation, PCA):
        X[::7, 0] = np.nan
    table = pd.DataFrame({"a": X[:, 0], "town": np.array(["x", "y", "z"])[rng.integers(0, 3, 200)], "b": X[:, 1]})
    monkeypatch.setattr(presets, "CANDIDATES", {"tree": FEW["tree"]})
    auto = AutoSimilarity(representation=representation, target_fpr=0.1, open_set=True, random_state=0).fit(table, y)
    assert auto.best_estimator_.categorical_features == columns


def test_trees_of_a_representation_are_not_grown_on_pairs(digits):
    posteriors = PosteriorSimilarity(ForestPosterior(n_estimators=20, random_state=0))
    assert timing.measure_cost(lambda size: posteriors, *digits_source(digits), None).per_pair == 0.0
    forest = SimilarityForest(n_estimators=1, n_pairs=100, max_depth=1, representation=ForestPosterior(n_estimators=20))
    assert timing.measure_cost(lambda size: forest, *digits_source(digits), None).per_pair > 0.0


def digits_source(digits):
    """The first digits, and their pairs."""
    return np.asarray(digits[0])[:200], PairSampler(digits[1][:200])


def test_folds_are_repeated_while_the_ranking_is_uncertain(round_people, monkeypatch):
    noise = np.random.default_rng(1).normal(size=(60, 3))
    close = {name: candidate(DistanceSimilarity(metric=name)) for name in ("euclidean", "cosine")}
    monkeypatch.setattr(presets, "CANDIDATES", close)
    assert AutoSimilarity(target_fpr=0.001, open_set=True, random_state=0).fit(noise, np.arange(60) % 15).n_repeats_ > 1
    clear = {"euclidean": FEW["euclidean"], "tree": candidate(SimilarityTree(max_depth=1, n_pairs=100, random_state=0))}
    monkeypatch.setattr(presets, "CANDIDATES", clear)
    assert AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(*round_people).n_repeats_ == 1


@pytest.mark.filterwarnings("default:target_fpr=")
def test_rate_is_the_smallest_that_the_data_allow(round_people):
    X, y = round_people
    with pytest.warns(UserWarning, match=r"target_fpr=1e-06 cannot be measured: .* 2,808 different pairs; .* fpr_=0.011"):
        chosen = AutoSimilarity(target_fpr=1e-6, time_budget=0.0, open_set=True, random_state=0).fit(X, y)
    # The smallest fold has 13 people with 6 points each: 78 * 77 / 2 - 13 * 15 = 2808 different pairs.
    assert chosen.fpr_ == 30 / 2808


def test_the_figure_on_noise_is_that_of_chance_whatever_the_representation():
    """A selection of features by labels that saw all of them would promise an AUC far above one half."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 200)), np.arange(90) % 3
    model = AutoSimilarity(target_fpr=0.1, open_set=False, representation=SelectKBest(k=5), random_state=0).fit(X, y)
    assert abs(model.performance_["auc"].value - 0.5) < 0.06
    assert model.representation_.transform(X).shape == (90, 5)
    assert model.best_estimator_.n_features_in_ == 5


def test_a_group_is_never_on_both_sides(monkeypatch):
    """Samples of a group are nearly equal: class posteriors know the class of a sample if its group was in training."""
    posteriors = DistanceSimilarity(representation=ForestPosterior(n_estimators=20))
    monkeypatch.setattr(presets, "CANDIDATES", {"posteriors": candidate(posteriors, closed=True)})
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 6)
    y = np.arange(30) % 3
    X = rng.normal(size=(30, 4))[groups] + 0.01 * rng.normal(size=(180, 4))
    found = {
        name: AutoSimilarity(target_fpr=0.1, open_set=False, random_state=0).fit(X, y[groups], groups=given, never_pair=groups)
        for name, given in (("told", groups), ("untold", None))
    }
    assert abs(found["told"].performance_["auc"].value - 0.5) < 0.15
    assert found["untold"].performance_["auc"].value > 0.9


class Recorded(SimilarityForest):
    """A forest that records the samples and groups of each of its fits."""

    fits: ClassVar[list] = []

    def fit(self, X, y, *, pairs=None, groups=None, never_pair=None):
        self.fits.append((np.asarray(X), groups))
        return super().fit(X, y, pairs=pairs, groups=groups, never_pair=never_pair)


@pytest.mark.parametrize("budget", [None, 60.0])
@pytest.mark.parametrize("others", [0, 2])
def test_groups_reach_the_members_that_take_them(round_people, monkeypatch, others, budget):
    """In each fold, in trials of the time, on half of the samples and in the last fit, also of a stack."""
    X, y = round_people
    forest = Recorded(n_estimators=3, max_depth=3, n_pairs=500)
    rest = [("euclidean", DistanceSimilarity(metric="euclidean")), ("cohort", CohortNormalization(forest, n_cohort=20))]
    monkeypatch.setattr(presets, "CANDIDATES", {name: candidate(one) for name, one in [("forest", forest), *rest[:others]]})
    monkeypatch.setattr(Chooser, "members", lambda self, folds: tuple(self.names))
    monkeypatch.setattr(Recorded, "fits", [])
    groups = np.array([f"site {identity // 2}" for identity in y])
    found = AutoSimilarity(target_fpr=0.1, open_set=True, time_budget=budget, random_state=0).fit(X, y, groups=groups)
    assert isinstance(found.best_estimator_, StackedSimilarity) == bool(others)
    assert len(Recorded.fits) > 3
    names = {row.tobytes(): name for row, name in zip(X, groups, strict=True)}
    for samples, given in Recorded.fits:
        own = [names[row.tobytes()] for row in samples]
        assert len(set(zip(own, given, strict=True))) == len(set(own)) == len(set(given))  # the same groups, as numbers
    assert len(Recorded.fits[-1][0]) == len(X)


def test_groups_of_the_two_samples_of_pairs_reach_members(round_people, monkeypatch):
    X, y = round_people
    index = PairSampler(y).sample(600, np.random.default_rng(0))
    rows = np.column_stack([index.first, index.second])
    forest = SimilarityForest(n_estimators=3, max_depth=3)
    monkeypatch.setattr(presets, "CANDIDATES", {"forest": candidate(forest)})
    found = AutoSimilarity(target_fpr=0.1, random_state=0).fit(X[rows], index.same, groups=y[rows]).best_estimator_
    same = clone(found).fit(X[rows], index.same, groups=y[rows])
    np.testing.assert_array_equal(found.pair_score(rows, X), same.pair_score(rows, X))


def test_given_pairs_are_learned_from(round_people, tmp_path):
    X, y = round_people
    index = PairSampler(y).sample(3_000, np.random.default_rng(0))
    rows = np.column_stack([index.first, index.second])
    chosen = AutoSimilarity(target_fpr=0.05, random_state=0).fit(X, index.same, pairs=rows, groups=y)
    assert chosen.open_set_
    assert chosen.performance_["auc"].value > 0.9
    assert set(chosen.results_["name"]) == {"euclidean", "gaussian", "tree"}
    stacked = AutoSimilarity(target_fpr=0.05, random_state=0).fit(X[rows], index.same)
    assert stacked.score(X, y) > 0.9


def test_a_candidate_far_behind_on_the_first_fold_sees_no_other(round_people, monkeypatch):
    fits: ClassVar[list] = []

    class Counted(SimilarityTree):
        def fit(self, X, y, **options):
            fits.append(len(X))
            return super().fit(X, y, **options)

    stump = candidate(Counted(max_depth=1, n_pairs=100, random_state=0))
    monkeypatch.setattr(presets, "CANDIDATES", {"stump": stump, "euclidean": FEW["euclidean"]})
    chosen = AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(*round_people)
    assert len(fits) == 3  # the fold has fewer than MIN_SAME same pairs, which say too little
    fits.clear()
    monkeypatch.setattr(comparison, "MIN_SAME", 100)
    AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(*round_people)
    assert len(fits) == 3  # and fewer than MIN_COUNTED of them count, because they share samples
    fits.clear()
    monkeypatch.setattr(comparison, "MIN_COUNTED", 50)
    chosen = AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(*round_people)
    assert len(fits) == 1
    assert chosen.results_["name"].tolist() == ["euclidean"]
    reason = chosen.skipped_["stump"]
    assert re.fullmatch(r"far behind on the first fold: 0\.\d{3}, and 0\.\d{3} of euclidean", reason)


def test_scores_of_a_candidate_that_is_far_behind_are_not_normalised(round_people, monkeypatch):
    """The candidate that normalises stands before its base, and is tried after it."""
    stump = SimilarityTree(max_depth=1, n_pairs=100, random_state=0)
    made = {
        "stump, normalised": presets.Candidate(lambda size: CohortNormalization(clone(stump)), after="stump"),
        "normalised": presets.Candidate(
            lambda size: CohortNormalization(DistanceSimilarity(metric="euclidean")), after="euclidean"
        ),
        "stump": candidate(stump),
        "euclidean": FEW["euclidean"],
    }
    monkeypatch.setattr(presets, "CANDIDATES", made)
    monkeypatch.setattr(comparison, "MIN_SAME", 100)
    monkeypatch.setattr(comparison, "MIN_COUNTED", 50)
    chosen = AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(*round_people)
    assert chosen.skipped_["stump, normalised"].startswith("stump is far behind on the first fold: ")
    assert chosen.skipped_["normalised"].startswith("far behind on the first fold: ")  # it was tried itself


def test_the_best_are_kept_and_the_best_of_each_class_of_models(round_people, monkeypatch):
    metrics = ("euclidean", "manhattan", "cosine")
    close = {name: candidate(DistanceSimilarity(metric=name)) for name in metrics}
    close |= {"gaussian": FEW["gaussian"], "tree": candidate(SimilarityTree(max_depth=6, n_pairs=3_000, random_state=0))}
    monkeypatch.setattr(presets, "CANDIDATES", close)
    monkeypatch.setattr(comparison, "MIN_SAME", 100)
    monkeypatch.setattr(comparison, "MIN_COUNTED", 50)
    monkeypatch.setattr(comparison, "MAX_KEPT", 1)
    monkeypatch.setattr(comparison, "MAX_OF_CLASS", 1)
    monkeypatch.setattr(comparison, "FAR_BEHIND", 1e6)
    chosen = AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(*round_people)
    kept = set(chosen.results_["name"])
    assert len(kept & set(metrics)) == 1
    assert kept > {"gaussian", "tree"}
    assert set(chosen.skipped_) == set(metrics) - kept
    assert all(
        re.fullmatch(r"behind 1 others on the first fold: 0\.\d{3}, and 0\.\d{3} of \w+", reason)
        for reason in chosen.skipped_.values()
    )


def test_a_candidate_that_cannot_be_fitted_is_skipped_with_the_reason(round_people, monkeypatch):
    X, y = round_people
    index = PairSampler(y).sample(1_000, np.random.default_rng(0))
    whitened = make_pipeline(StandardScaler(), WithinClassWhitening())
    needs_labels = candidate(DistanceSimilarity(representation=whitened))
    monkeypatch.setattr(presets, "CANDIDATES", {"labels": needs_labels, "euclidean": FEW["euclidean"]})
    rows = np.column_stack([index.first, index.second])
    chosen = AutoSimilarity(target_fpr=0.05, random_state=0).fit(X, index.same, pairs=rows)
    assert chosen.results_["name"].tolist() == ["euclidean"]
    assert chosen.skipped_ == {"labels": "requires labels"}
    in_time = AutoSimilarity(target_fpr=0.05, time_budget=60.0, random_state=0).fit(X, index.same, pairs=rows)
    assert in_time.skipped_ == chosen.skipped_
    with pytest.raises(ValueError, match=r"^(?s:representation=Pipeline.*) requires labels; fit labelled samples"):
        AutoSimilarity(representation=whitened).fit(X, index.same, pairs=rows)  # this one the user chose
    monkeypatch.setattr(presets, "CANDIDATES", {"labels": needs_labels})
    with pytest.raises(ValueError, match=r"no candidate can be fitted on a fold of these data; labels: requires labels$"):
        AutoSimilarity(target_fpr=0.05, random_state=0).fit(X, index.same, pairs=rows)


def test_a_column_without_values_is_named_once(round_people, monkeypatch):
    X, y = round_people
    forest = candidate(SimilarityForest(n_estimators=2, n_pairs=300, random_state=0))
    monkeypatch.setattr(presets, "CANDIDATES", {"euclidean": FEW["euclidean"], "forest": forest})
    table = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]).assign(empty=np.nan)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        AutoSimilarity(target_fpr=0.05, random_state=0).fit(table, y)
    first, second = (str(warning.message) for warning in told)
    assert first == "X has no value in column 'empty'; the model does not use it."
    assert second.startswith("open_set='auto'")


@pytest.mark.parametrize("open_set", [True, False])
def test_sixteen_rows_of_two_identities(open_set):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16, 3)) + 2.0 * (np.arange(16) % 2)[:, None], np.arange(16) % 2
    if open_set:
        with pytest.raises(ValueError, match=r"^entire classes are left out of folds, but the 2 of .*set open_set=False\.$"):
            AutoSimilarity(open_set=True, random_state=0).fit(X, y)
        return
    chosen = AutoSimilarity(open_set=False, random_state=0).fit(X, y)
    assert chosen.score(X, y) > 0.5
    assert chosen.fpr_ == pytest.approx(selection.MAX_TARGET)


@pytest.mark.parametrize(
    ("given", "n_groups", "sentence"),
    [
        ("open", 1, "groups link the 4 of these data to 1 unit that cannot .* share fewer classes, or leave groups out"),
        (
            "closed",
            1,
            "entire groups are left out of folds, but the 1 group of these data .*give more groups, or leave them out",
        ),
        (
            "pairs",
            1,
            "entire groups are left out of folds, but the 1 group of these data .*give more groups, or leave them out",
        ),
        ("pairs", 0, "the data cannot be divided into folds .*give more pairs, or fit a single model"),
    ],
)
def test_the_remedy_for_data_that_cannot_be_divided_is_true(given, n_groups, sentence):
    X, y = np.random.default_rng(0).normal(size=(16, 3)), np.arange(16) % 4
    options = {"groups": np.zeros(16)} if n_groups else {}
    if given == "pairs":
        options["pairs"], y = [[0, 4], [4, 8], [0, 1]], [1, 1, 0]
    with pytest.raises(ValueError, match=f"{sentence}") as raised:
        AutoSimilarity(open_set=given == "open", random_state=0).fit(X, y, **options)
    assert "open_set" not in str(raised.value)


@pytest.mark.parametrize(("n", "kind"), [(8, "a closed"), (12, "an open")])
def test_it_warns_if_it_is_not_told_whether_the_set_is_open(n, kind):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n), 10)
    X = rng.normal(size=(n, 4))[y] + 0.5 * rng.normal(size=(10 * n, 4))
    figures = r"\(mean TPR around FPR [\d.]+ of \w+: 0\.\d\d on identities left out of training, 0\.\d\d on other samples"
    with pytest.warns(UserWarning, match=rf"takes the {n} labels for {kind} set {figures}.*set open_set=True if"):
        AutoSimilarity(target_fpr=0.1, random_state=0).fit(X, y)


def test_never_pair_reaches_every_fit(round_people, monkeypatch):
    X, y = round_people
    sitting = np.tile([0, 0, 1, 1, 2, 2], 40)
    told = []
    fit = DistanceSimilarity.fit
    monkeypatch.setattr(
        DistanceSimilarity,
        "fit",
        lambda self, X, y, never_pair=None: told.append(never_pair) or fit(self, X, y, never_pair=never_pair),
    )
    AutoSimilarity(time_budget=0.0, open_set=True, random_state=0).fit(X, y, never_pair=sitting)
    assert len(told) == 4
    assert all(len(np.unique(values)) == 3 for values in told)


def test_a_stack_is_saved_and_explained(round_people, monkeypatch, tmp_path):
    X, y = round_people
    trees = {f"tree {k}": candidate(SimilarityTree(max_depth=4, n_pairs=400, max_features=2, splitter="cart")) for k in (0, 1)}
    monkeypatch.setattr(presets, "CANDIDATES", trees)
    monkeypatch.setattr(presets, "seeded", lambda model, seed, n_jobs: clone(model).set_params(random_state=next(seeds)))
    seeds = iter(range(1000))
    chosen = AutoSimilarity(target_fpr=0.05, open_set=True, random_state=0).fit(X, y)
    assert isinstance(chosen.best_estimator_, StackedSimilarity)
    explanation = chosen.explain_pair(X[0], X[1])
    assert explanation.score == pytest.approx(chosen.pair_score([[0, 1]], X)[0])
    chosen.save(tmp_path / "m.simtree")
    loaded = load_model(tmp_path / "m.simtree")
    np.testing.assert_array_equal(loaded.pairwise_score(X[:9]), chosen.pairwise_score(X[:9]))
    assert loaded.performance_ == chosen.performance_
    assert loaded.n_repeats_ == chosen.n_repeats_


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"target_fpr": 0.0}, "target_fpr=0.0"),
        ({"time_budget": -1.0}, "time_budget=-1.0"),
        ({"open_set": "maybe"}, "open_set='maybe' is unknown"),
    ],
)
def test_bad_parameters(round_people, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        AutoSimilarity(**parameters).fit(*round_people)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_classes_of_few_samples_are_no_reason_for_warnings(rng, monkeypatch, n_jobs):
    """Warnings are errors here: scikit-learn suspects that so many labels are numbers to regress on."""
    models = {"trees": ForestPosterior(n_estimators=60), "linear": LogisticPosterior(cv=2)}
    posteriors = {name: candidate(PosteriorSimilarity(model), closed=True) for name, model in models.items()}
    monkeypatch.setattr(presets, "CANDIDATES", posteriors)
    y = np.repeat(np.arange(20), 3)
    X = rng.normal(size=(20, 6))[y] + 0.5 * rng.normal(size=(60, 6))
    chosen = AutoSimilarity(open_set=False, target_fpr=0.1, n_jobs=n_jobs, random_state=0).fit(X, y)
    assert chosen.skipped_ == {}


@pytest.mark.parametrize(("n_identities", "n_each", "open_set"), [(4, 2, True), (2, 3, False)])
def test_few_samples_suffice(rng, monkeypatch, n_identities, n_each, open_set):
    """Boosting finds no split in so few pairs, and is then a candidate whose scores are all equal."""
    boosting = SimilarityBoosting(n_estimators=5, random_state=0)
    monkeypatch.setattr(presets, "CANDIDATES", {"gaussian": FEW["gaussian"], "boosting": candidate(boosting)})
    y = np.repeat(np.arange(n_identities), n_each)
    X = rng.normal(size=(len(y), 4))
    model = AutoSimilarity(open_set=open_set, random_state=0).fit(X, y)
    assert np.isfinite(model.pairwise_score(X)).all()
