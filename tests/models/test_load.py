"""Saved and loaded models behave identically, contain no training data, and files of old versions can be read."""

from __future__ import annotations

import json
import os
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import simtree
from simtree import (
    ClassifierSplitter,
    CutSplitter,
    DistanceSimilarity,
    KernelDiscriminant,
    MarginalQuantiles,
    ModelFileError,
    SimilarityForest,
    SimilarityTree,
)
from simtree.io._archive import document_bytes
from tiny_models import FILES, MODELS, fitted, people, probes

VERSIONS = sorted(FILES.glob("version_*/"))


def through_a_file(model, folder):
    model.save(folder / "m.simtree")
    return simtree.load(folder / "m.simtree")


def assert_same(one, other):
    """Equal, also where there are arrays in it."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, strict=True)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            assert_same(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif hasattr(one, "__dict__"):
        assert_same(vars(one), vars(other))
    else:
        assert one == other or (one != one and other != other)


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_does_what_the_saved_one_does(name, tmp_path):
    model, X = fitted(name), probes()
    loaded = through_a_file(model, tmp_path)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.pairwise_score(X), model.pairwise_score(X))
    np.testing.assert_array_equal(loaded.pairwise_score(X), loaded.pairwise_score(X).T)
    pairs = np.stack([X, X[::-1]], axis=1)
    for method in ("pair_score", "pair_distance", "predict", "decision_function"):
        np.testing.assert_array_equal(getattr(loaded, method)(pairs), getattr(model, method)(pairs))
    assert hasattr(loaded, "predict_proba") == hasattr(model, "predict_proba")
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(pairs, prior=0.1), model.predict_proba(pairs, prior=0.1))
    gallery = people(5, n=40)[0]
    for one, other in zip(loaded.top_k(gallery[:20], gallery, k=3), model.top_k(gallery[:20], gallery, k=3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert hasattr(loaded, "explain_pair") == hasattr(model, "explain_pair")
    if hasattr(model, "explain_pair") and name != "forest-median":
        assert str(loaded.explain_pair(*X[:2])) == str(model.explain_pair(*X[:2]))
    for figure in (
        "feature_importances_",
        "auc_",
        "oob_score_",
        "max_depth_",
        "n_pairs_",
        "prune_penalty_",
        "fpr_",
        "best_name_",
    ):
        assert hasattr(loaded, figure) == hasattr(model, figure)
        if hasattr(model, figure):
            np.testing.assert_array_equal(getattr(loaded, figure), getattr(model, figure))
    assert loaded.threshold_report_ == model.threshold_report_
    assert json.dumps(loaded.to_dict()) == json.dumps(model.to_dict())


@pytest.mark.parametrize("name", MODELS)
def test_every_fitted_attribute_is_restored(name, tmp_path):
    """But parameters that are tuples, which JSON does not know: they are lists."""
    model = fitted(name)
    loaded = through_a_file(model, tmp_path)
    parameters = set(model.get_params(deep=False))
    kept = {key: value for key, value in vars(model).items() if key not in parameters}
    assert set(kept) <= set(vars(loaded)), name
    for key, value in kept.items():
        if key not in ("tree_", "trees_", "representation_", "best_estimator_", "estimator_", "estimators_"):
            assert_same(value, vars(loaded)[key])
    for tree, other in zip(*(m._trees() if hasattr(m, "_trees") else [] for m in (model, loaded)), strict=True):
        for columns, others in ((tree.cells, other.cells), (tree.nodes, other.nodes)):
            for column, one, two in zip(columns._fields, columns, others, strict=True):
                np.testing.assert_array_equal(one, two, strict=True, err_msg=column)
        assert list(tree.regions) == list(other.regions)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:n_estimators=5 is too few")
def test_parameters_are_restored_and_a_clone_fits_the_same(name, tmp_path):
    model = fitted(name)
    loaded = through_a_file(model, tmp_path)
    assert repr(loaded).replace("[", "(").replace("]", ")") == repr(model).replace("[", "(").replace("]", ")")
    if not name.startswith("auto"):
        again = clone(loaded).fit(*people(1))
        np.testing.assert_array_equal(again.pairwise_score(probes()), model.pairwise_score(probes()))


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_saved_as_the_same_bytes(name, tmp_path):
    fitted(name).save(tmp_path / "one")
    simtree.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:n_estimators=5 is too few")
def test_no_training_sample_and_no_label_is_in_the_file(name, tmp_path):
    X, y = people(1)
    model = clone(MODELS[name]).fit(X, [f"person {label}" for label in y])
    model.save(tmp_path / "m.simtree")
    data = (tmp_path / "m.simtree").read_bytes()
    assert b"person" not in data
    for dtype in (np.float64, np.float32):
        for row in X.astype(dtype):
            assert row[:2].tobytes() not in data
            assert row[1:].tobytes() not in data


def test_a_preprocessor_is_not_saved(tmp_path):
    X, y = people(1)
    pairs = np.column_stack([np.arange(len(X) - 1), np.arange(1, len(X))])
    model = SimilarityTree(max_depth=2, preprocessor=X).fit(pairs, y[pairs[:, 0]] == y[pairs[:, 1]])
    loaded = through_a_file(model, tmp_path)
    assert loaded.preprocessor is None
    np.testing.assert_array_equal(loaded.pair_score(pairs, X), model.pair_score(pairs))
    assert X[3].tobytes() not in (tmp_path / "m.simtree").read_bytes()


def test_a_random_generator_is_not_saved(tmp_path):
    model = SimilarityTree(max_depth=2, random_state=np.random.RandomState(0)).fit(*people(1))
    assert through_a_file(model, tmp_path).random_state is None


@pytest.mark.parametrize(("n_jobs", "loaded"), [(None, None), (2, 2), (-1, -1), (-3, -3), (200, -1)])
def test_threads_are_those_of_a_moderate_machine(n_jobs, loaded, tmp_path):
    model = DistanceSimilarity(n_jobs=n_jobs).fit(*people(1))
    assert through_a_file(model, tmp_path).n_jobs == loaded


def test_feature_names_are_restored(tmp_path):
    X, y = people(1)
    names = ["höhe", "width", "age"]
    loaded = through_a_file(SimilarityTree(max_depth=2).fit(pd.DataFrame(X, columns=names), y), tmp_path)
    assert loaded.feature_names_in_.tolist() == names
    assert "höhe" in loaded.export_text()
    with pytest.raises(ValueError, match="feature names"):
        loaded.pairwise_score(pd.DataFrame(X, columns=["a", "b", "c"]))


def test_a_loaded_forest_can_be_warm_started(tmp_path):
    X, y = people(1)
    forest = SimilarityForest(n_estimators=2, max_depth=3, n_pairs=200, warm_start=True, random_state=0).fit(X, y)
    loaded = through_a_file(forest, tmp_path)
    grown = loaded.set_params(n_estimators=4).fit(X, y)
    whole = SimilarityForest(n_estimators=4, max_depth=3, n_pairs=200, random_state=0).fit(X, y)
    np.testing.assert_array_equal(grown.pairwise_score(X), whole.pairwise_score(X))


def test_a_tree_without_a_split(tmp_path):
    X, y = people(1)
    tree = SimilarityTree(max_depth=2, min_pairs_split=10**6, n_pairs=100).fit(X, y)
    np.testing.assert_array_equal(through_a_file(tree, tmp_path).pairwise_score(X), tree.pairwise_score(X))


def test_numbers_that_json_does_not_know(tmp_path):
    model = SimilarityTree(max_depth=2, random_state=0).fit(*people(1)).set_threshold(np.inf)
    loaded = through_a_file(model, tmp_path)
    assert loaded.threshold_ == np.inf
    assert not hasattr(loaded, "threshold_report_")


def test_a_folder_is_no_place_for_a_model(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        SimilarityTree(max_depth=2, random_state=0).fit(*people(1)).save(tmp_path)


class OwnTree(SimilarityTree):
    """A model of somebody's own."""


class OwnSplitter(CutSplitter):
    """A splitter of somebody's own."""


def refused():
    classifier = RandomForestClassifier(n_estimators=2, random_state=0)
    return {
        "opaque": SimilarityTree(max_depth=1, splitter=ClassifierSplitter(classifier), n_pairs=200),
        "opaque, renamed": SimilarityTree(max_depth=1, splitter=ClassifierSplitter(classifier), n_pairs=200),
        "function": DistanceSimilarity(representation=FunctionTransformer()),
        "function in a pipeline": DistanceSimilarity(representation=make_pipeline(MarginalQuantiles(), FunctionTransformer())),
        "function, renamed": DistanceSimilarity(representation=FunctionTransformer()),
        "own": OwnTree(max_depth=1, n_pairs=200),
        "own splitter": SimilarityTree(max_depth=1, splitter=OwnSplitter(), n_pairs=200),
    }


@pytest.mark.parametrize("name", refused())
def test_custom_classes_are_rejected_and_no_file_is_left(name, tmp_path):
    model = refused()[name].fit(*people(1))
    if name.endswith("renamed"):  # the parameter is known, what was learned is not
        model.set_params(**{"splitter": "cut"} if "opaque" in name else {"representation": None})
    with pytest.raises(TypeError, match=r"cannot be saved[^.]*never code|cannot be saved[^.]*data only"):
        model.save(tmp_path / "m.simtree")
    assert list(tmp_path.iterdir()) == []


def test_invalid_parameters_are_not_saved(tmp_path):
    model = SimilarityForest(n_estimators=1, max_depth=2, n_pairs=100).fit(*people(1)).set_params(aggregation="sum")
    with pytest.raises(ValueError, match="aggregation"):
        model.save(tmp_path / "m.simtree")


def test_invalid_numbers_are_not_saved(tmp_path):
    X, y = people(1)
    model = DistanceSimilarity(representation=KernelDiscriminant(n_landmarks=3, random_state=0)).fit(X * 1e80, y)
    with pytest.raises(ValueError, match="scale the samples"):
        model.save(tmp_path / "m.simtree")


def test_a_model_that_is_not_fitted(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        SimilarityTree().save(tmp_path / "m.simtree")


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.simtree"
    fitted("distance").save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fitted("tree").save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_path_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        fitted("distance").save(tmp_path / "file" / "m.simtree")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        simtree.load(tmp_path / "m.simtree")


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_files_of_all_versions_are_read(folder):
    scores = json.loads((folder / "scores.json").read_text())
    assert {path.stem for path in folder.glob("*.simtree")} == set(scores)
    for name, expected in scores.items():
        model = simtree.load(folder / f"{name}.simtree")
        # Logarithms have other last bits on other machines.
        np.testing.assert_allclose(model.pairwise_score(probes())[0], expected, rtol=1e-12, err_msg=name)
        assert model.threshold_report_.threshold == model.threshold_


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_from_before_the_first_release_is_rejected(version):
    with pytest.raises(
        ModelFileError,
        match=rf"^version_{version}.simtree has file version {version}, .* no longer reads .*: fit the model again",
    ):
        simtree.load(FILES / f"version_{version}.simtree")


def test_the_files_of_this_version_hold_every_model():
    names = {path.stem for path in (FILES / f"version_{simtree.io._archive.VERSION}").glob("*.simtree")}
    assert names == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_written_has_not_changed_without_a_new_version(name, tmp_path):
    """If it has: raise `persistence.VERSION`, let `loading` read both, and run tests/tiny_models.py, which writes its files."""
    path = FILES / f"version_{simtree.io._archive.VERSION}" / f"{name}.simtree"
    simtree.load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


CHANGES = {
    "a class that is none": lambda d: d.update({"class": "Exception"}),
    "an AutoSimilarity in an AutoSimilarity": lambda d: d["fitted"].update(best_estimator=d),
    "an unknown parameter": lambda d: d["parameters"].update(colour="red"),
    "a preprocessor": lambda d: d["parameters"].update(preprocessor=[1]),
    "a parameter that fit refuses": lambda d: d["parameters"].update(target_fpr=-1),
    "too many threads": lambda d: d["parameters"].update(n_jobs=10**9),
    "names of other features": lambda d: d.update(feature_names_in=["a"]),
    "another number of features": lambda d: d.update(n_features_in=4),
    "a threshold that is not that of the report": lambda d: d.update(threshold=0.0),
    "no threshold": lambda d: d.pop("threshold"),
    "a threshold that is no number": lambda d: d.update(threshold=float("nan")),
    "a calibration that falls": lambda d: d["calibration"].update(llr=-d["calibration"]["llr"]),
    "a best that was not tried": lambda d: d["fitted"].update(best_name="luck"),
    "a report of rates above one": lambda d: d["threshold_report"].update(tpr=1.5),
}


@pytest.mark.parametrize("change", CHANGES)
def test_inconsistent_fields_are_rejected(change, tmp_path):
    document = {**fitted("auto-forest")._get_state()}
    for name in ("fitted", "parameters", "calibration", "threshold_report"):
        document[name] = dict(document[name])
    if change != "an AutoSimilarity in an AutoSimilarity":
        CHANGES[change](document)
    else:
        document["fitted"]["best_estimator"] = fitted("auto")._get_state()
    (tmp_path / "m.simtree").write_bytes(document_bytes(document))
    with pytest.raises(ModelFileError, match=r"m\.simtree is damaged"):
        simtree.load(tmp_path / "m.simtree")


LAWS = {
    "ratios that rise": lambda law: law.update(ratios=law["ratios"][::-1].copy()),
    "a ratio that no law has": lambda law: law.update(ratios=np.full_like(law["ratios"], 1e70)),
    "no direction": lambda law: law.update(ratios=np.empty(0), matrix=np.empty((len(law["mean"]), 0))),
    "a ratio too many": lambda law: law.update(ratios=np.append(law["ratios"], 0.0)),
    "a negative reach": lambda law: law.update(reach=-1.0),
    "no reach": lambda law: law.update(reach=float("inf")),
}


@pytest.mark.parametrize("change", LAWS)
def test_invalid_gaussian_models_are_rejected(change, tmp_path):
    document = fitted("gaussian")._get_state()
    LAWS[change](document["fitted"])
    (tmp_path / "m.simtree").write_bytes(document_bytes(document))
    with pytest.raises(ModelFileError, match=r"m\.simtree is damaged"):
        simtree.load(tmp_path / "m.simtree")


@pytest.mark.parametrize("reach", [0.0, 1.0, 1e70])
def test_gaussian_models_with_the_largest_numbers_have_finite_scores(reach, tmp_path):
    document = fitted("gaussian")._get_state()
    law = document["fitted"]
    law.update(mean=np.full_like(law["mean"], 1e70), matrix=np.full_like(law["matrix"], 1e70), reach=reach)
    law.update(ratios=np.full_like(law["ratios"], 1e15))
    (tmp_path / "m.simtree").write_bytes(document_bytes(document))
    model = simtree.load(tmp_path / "m.simtree")
    assert np.isfinite(model.pairwise_score(probes())).all()
    assert np.isfinite(model.pair_distance(np.array([[0, 1]]), probes())).all()
