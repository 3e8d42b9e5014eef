"""Parameters and representations in model files: those of simtree come back, whatever is wrong with them is refused."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from every_representation import REPRESENTATIONS
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from simtree import (
    CartSplitter,
    ForestPosterior,
    MarginalQuantiles,
    ModelFileError,
    SimilarityForest,
    VotingSimilarity,
    WithinClassWhitening,
)
from simtree.io._archive import document_bytes, read_document
from simtree.io._registry import (
    MODEL,
    REGION,
    REPRESENTATION,
    SPLITTER,
    estimator_from_state,
    get_class,
    known_names,
    parameters_state,
    plain_parameters,
)
from simtree.representation._applied import representation_from_state, representation_state
from tiny_models import fitted, people


def read(document, n_features=3):
    return representation_from_state(read_document(document_bytes(document)), n_features)


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_every_representation_comes_back_bit_for_bit(name):
    X, y = people(1)
    representation = clone(REPRESENTATIONS[name])
    representation.fit_transform(X, y)
    loaded, n_columns = read(representation_state(representation))
    new = people(2)[0]
    np.testing.assert_array_equal(loaded.transform(new), representation.transform(new), strict=True)
    assert n_columns == representation.transform(new).shape[1]
    assert list(loaded.get_feature_names_out()) == list(representation.get_feature_names_out())
    assert repr(loaded) == repr(representation)
    assert set(vars(loaded)) == set(vars(representation))


def test_a_pipeline_in_a_pipeline_comes_back():
    X, y = people(1)
    inner = make_pipeline(MarginalQuantiles(output="normal"))
    pipeline = make_pipeline(inner, WithinClassWhitening(n_components=2, random_state=0)).fit(X, y)
    loaded, n_columns = read(representation_state(pipeline))
    np.testing.assert_array_equal(loaded.transform(X), pipeline.transform(X))
    assert n_columns == 2
    assert repr(loaded) == repr(pipeline)


def test_parameters_of_parts_come_back():
    representation = make_pipeline(MarginalQuantiles(n_quantiles=7), ForestPosterior(max_features=None))
    forest = SimilarityForest(
        splitter=CartSplitter(max_features=0.5),
        representation=representation,
        directions=("random", "discriminant"),
        max_samples=0.7,
    )
    document = {"class": "SimilarityForest", "parameters": parameters_state(forest)}
    loaded = estimator_from_state(read_document(document_bytes(document)), SimilarityForest)
    assert repr(loaded) == repr(forest).replace("('random', 'discriminant')", "['random', 'discriminant']")
    assert loaded.representation is not representation


def test_parameters_for_people_are_words_and_numbers():
    forest = SimilarityForest(n_pairs=np.int64(5), directions=("random",), splitter=CartSplitter(), preprocessor=np.eye(3))
    assert plain_parameters(VotingSimilarity([], weights=np.array([1.0, 2.0])))["weights"] == [1.0, 2.0]
    found = plain_parameters(forest)
    assert found["n_pairs"] == 5
    assert type(found["n_pairs"]) is int
    assert found["directions"] == ["random"]
    assert found["splitter"] == "CartSplitter()"
    assert "preprocessor" not in found


def test_only_classes_of_simtree_can_be_named():
    kinds = (MODEL, SPLITTER, REPRESENTATION, REGION)
    known = [get_class(kind, name) for kind in kinds for name in known_names(kind)]
    modules = ("simtree.", "sklearn.preprocessing.", "sklearn.decomposition.", "sklearn.impute.")
    assert all(cls.__module__.startswith(modules) for cls in known)
    document = {"class": "Pipeline", "steps": [{"name": "a", "step": {"class": "FunctionTransformer", "parameters": {}}}]}
    with pytest.raises(ModelFileError, match=r"steps\[0\].step.class must be one of 'BoostingPosterior'"):
        read(document)


def entry(name, value):
    return lambda d: d["fitted"].update({name: value(d["fitted"][name]) if callable(value) else value})


def at(index, value):
    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


def of_repeat(name, value):
    return lambda d: d["fitted"]["repeats"][0].update({name: value(d["fitted"]["repeats"][0][name])})


def of_model(name, value):
    return lambda d: d["fitted"]["models"][0].update({name: value(d["fitted"]["models"][0][name])})


def of_layers(change):
    """Change the layers of the first network of a mean, which is in a Pipeline."""
    return lambda d: change(d["fitted"]["members"][0]["steps"][1]["step"]["fitted"]["models"][0]["layers"])


CHANGES = {
    "forest-posterior": {
        "a feature that is not there": entry("feature", at(0, 3)),
        "a test that leads to itself": entry("if_le", at(0, 0)),
        "a test that leads back": entry("if_gt", at(1, 0)),
        "a test that is not there": entry("if_le", at(0, 10**6)),
        "a leaf that is not there": entry("if_le", at(0, -(10**6))),
        "a root that is not there": entry("root", at(0, 10**6)),
        "no roots": entry("root", lambda a: a[:0]),
        "leaves that do not rise": entry("leaf_start", at(1, 10**6)),
        "leaves that do not begin at 0": entry("leaf_start", at(0, 1)),
        "leaves that end before the entries": entry("leaf_class", lambda a: np.append(a, a[:1])),
        "no leaves": entry("leaf_start", lambda a: a[:0]),
        "a class that is not there": entry("leaf_class", at(0, 12)),
        "a share of 2": entry("leaf_share", at(0, 2.0)),
        "columns without entries": entry("n_columns", 1 << 40),
        "one class": entry("n_classes", 1),
        "thresholds of another type": entry("threshold", lambda a: a.astype(np.float64)),
        "other features": lambda d: d.update(n_features_in=4),
        "wrong parameters": lambda d: d["parameters"].update(n_estimators="many"),
        "unknown parameters": lambda d: d["parameters"].update(n_trees=1),
        "another class": lambda d: d.update({"class": "WithinClassWhitening"}),
    },
    "forest-discriminant": {
        "no repeats": entry("repeats", []),
        "weights of other landmarks": of_repeat("weights", lambda a: a[:-1]),
        "other columns": of_repeat("weights", lambda a: a[:, :-1].copy()),
        "landmarks of other points": of_repeat("landmarks", lambda a: a[:-1]),
        "a negative gamma": of_repeat("gamma", lambda g: -g),
        "an unknown kind": of_repeat("kind", lambda _: "bump"),
        "huge weights": of_repeat("weights", at((0, 0), 1e200)),
    },
    "posterior": {
        "no models": entry("models", []),
        "a class that nobody knows": entry("n_classes", 13),
        "fewer classes than are known": entry("n_classes", 11),
        "a million classes": entry("n_classes", 10**6),
        "classes that fall": of_model("classes", lambda a: a[::-1].copy()),
        "a class twice": of_model("classes", at(1, 0)),
        "no classes": of_model("classes", lambda a: a[:0]),
        "a test that leads to itself": of_model("if_le", at(0, 0)),
        "a feature that is not there": of_model("feature", at(0, 3)),
        "a leaf of another class": of_model("leaf_class", at(0, 12)),
        "huge leaves": of_model("leaf_share", at(0, 1e200)),
        "a baseline of fewer classes": of_model("baseline", lambda a: a[:-1]),
    },
    "posterior-mean": {
        "fewer members than parameters": entry("members", lambda members: members[:1]),
        "no parameter that is required": lambda d: d["parameters"].pop("posteriors"),
        "more classes than the members": entry("n_classes", 13),
        "no layers": of_layers(lambda layers: layers.clear()),
        "a layer of other inputs": of_layers(lambda layers: layers[0].update(weights=layers[0]["weights"][:-1])),
        "a layer without outputs": of_layers(lambda layers: layers[0].update(weights=layers[0]["weights"][:, :0].copy())),
        "a last layer of other classes": of_layers(lambda layers: layers.pop()),
        "huge weights": of_layers(lambda layers: layers[1].update(intercepts=at(0, 1e7)(layers[1]["intercepts"]))),
        "intercepts of other outputs": of_layers(lambda layers: layers[1].update(intercepts=layers[1]["intercepts"][:-1])),
        "weights of other features": lambda d: of_model("weights", lambda a: a[:-1])(
            d["fitted"]["members"][1]["steps"][1]["step"]
        ),
    },
    "distance-waves": {"phases of other waves": of_repeat("phases", lambda a: a[:-1])},
    "distance-pipeline": {
        "no steps": lambda d: d.update(steps=[]),
        "a name twice": lambda d: d["steps"][0].update(name="withinclasswhitening"),
        "a name of two": lambda d: d["steps"][0].update(name="a__b"),
        "knots that fall": lambda d: entry("knots", lambda a: a[::-1].copy())(d["steps"][0]["step"]),
        "levels that fall": lambda d: entry("levels", lambda a: a[::-1].copy())(d["steps"][0]["step"]),
        "a level of one": lambda d: entry("levels", at(-1, 1.0))(d["steps"][0]["step"]),
        "knots of other features": lambda d: entry("n_knots", lambda a: a[:-1])(d["steps"][0]["step"]),
        "a feature without knots": lambda d: entry("n_knots", at(0, 0))(d["steps"][0]["step"]),
        "a matrix of other points": lambda d: entry("matrix", lambda a: a[:-1])(d["steps"][1]["step"]),
        "a mean of other points": lambda d: entry("mean", lambda a: a[:-1])(d["steps"][1]["step"]),
    },
}


@pytest.mark.parametrize(("name", "change"), [(name, change) for name, changes in CHANGES.items() for change in changes])
def test_representations_that_cannot_be_are_refused(name, change):
    document = copy.deepcopy(representation_state(fitted(name).representation_))
    read(document)  # good as it is
    CHANGES[name][change](document)
    with pytest.raises(ModelFileError, match="is damaged"):
        read(document)
