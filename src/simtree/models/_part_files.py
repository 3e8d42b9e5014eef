"""Parameters, splitters and representations in model files: what is written of them, and how it is read back and checked.

Only classes of simtree are written and read, by their names, and Pipelines of them: a file can name no other code.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from simtree._kernels.posterior import ClassTrees
from simtree.io._archive import Fields
from simtree.representation import (
    ForestPosterior,
    KernelDiscriminant,
    LandmarkFeatures,
    MarginalQuantiles,
    WithinClassWhitening,
)
from simtree.representation._landmarks import Bumps, Waves
from simtree.splitters import BY_NAME

PIPELINE = "Pipeline"
# Tables of points, or functions of the user's: no part of a model. Members of a vote: written with what they learned.
LEFT_OUT = ("preprocessor", "estimators")
# Larger numbers are taken for damage.
MOST_STEPS = 32
MOST_REPEATS = 1 << 12
MOST_CLASSES = 1 << 40
MOST_THREADS = 64
# Beyond this the product of two such numbers, squared, may overflow.
GREATEST = 1e70
# Quantiles are nearer to 0 and 1 than this only with more rows than there are.
LEAST_LEVEL = 1e-12
# Columns that one entry of a leaf may stand for: there are classes that no leaf has, but not many.
COLUMNS_AN_ENTRY = 64

T = TypeVar("T")


def parameters_document(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator; a table of points and a random generator are left out, many threads are all cores."""
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name not in LEFT_OUT}
    if isinstance(parameters.get("n_jobs"), numbers.Integral) and parameters["n_jobs"] > MOST_THREADS:
        parameters["n_jobs"] = -1
    return {name: _parameter(type(estimator).__name__, name, value) for name, value in parameters.items()}


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator as words and numbers for people; the same are left out."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            return plain(value.tolist())
        if isinstance(value, list | tuple) and _is_plain(value):
            return [plain(entry) for entry in value]
        return value.item() if isinstance(value, np.generic) else value if _is_plain(value) else repr(value)

    parameters = estimator.get_params(deep=False).items()
    return {name: plain(value) for name, value in parameters if name not in LEFT_OUT}


def read_estimator(fields: Fields, known: dict[str, type[T]], **given: Any) -> T:
    """An estimator, not fitted, of one of some classes, with its parameters and those given."""
    made = known[fields.word("class", known)]
    part = fields.part("parameters")
    names = made._get_param_names()  # type: ignore[attr-defined]
    unknown = set(part.content) - set(names) | set(LEFT_OUT) & set(part.content)
    if unknown:
        raise part.fail(min(unknown), f"is no parameter of {made.__name__}")
    parameters = {name: _read_parameter(part, name) for name in part.content}
    n_jobs = parameters.get("n_jobs")
    if n_jobs is not None and (type(n_jobs) is not int or n_jobs == 0 or n_jobs > MOST_THREADS):
        raise part.fail("n_jobs", f"must be a number of threads, at most {MOST_THREADS}")
    return made(**parameters, **given)


def check_parameters(fields: Fields, estimator: Any) -> None:
    """Refuse parameters that `fit` would refuse."""
    try:
        estimator._check_parameters()
    except (TypeError, ValueError, OverflowError) as error:
        raise fields.fail("parameters", f"are wrong: {error}") from None


def representation_document(fitted: Any) -> dict[str, Any] | None:
    """What is written of a fitted representation."""
    if fitted is None:
        return None
    if type(fitted) is Pipeline:
        return {
            "class": PIPELINE,
            "steps": [{"name": name, "step": representation_document(step)} for name, step in fitted.steps],
        }
    name = type(fitted).__name__
    if name not in REPRESENTATIONS or not _is_known(fitted):
        raise TypeError(_refusal(f"a model with the representation {fitted!r}"))
    return {
        "class": name,
        "parameters": parameters_document(fitted),
        "n_features_in": fitted.n_features_in_,
        "fitted": REPRESENTATIONS[name][1](fitted),
    }


def read_representation(fields: Fields, n_features: int) -> tuple[Any, int]:
    """A fitted representation of points with so many features, and how many columns it makes."""
    if fields.word("class", (*REPRESENTATIONS, PIPELINE)) == PIPELINE:
        steps = []
        for part in _steps(fields):
            step, n_features = read_representation(part.part("step"), n_features)
            steps.append((part.word("name"), step))
        return Pipeline(steps), n_features
    representation: Any = read_estimator(fields, {name: made for name, (made, _, _) in REPRESENTATIONS.items()})
    check_parameters(fields, representation)
    representation.n_features_in_ = fields.integer("n_features_in", n_features, n_features)
    n_columns = REPRESENTATIONS[type(representation).__name__][2](fields.part("fitted"), representation, n_features)
    return representation, n_columns


def _parameter(owner: str, name: str, value: Any) -> Any:
    """A parameter as it is written."""
    if _is_plain(value):
        return value
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return _parameter(owner, name, value.tolist())
    if type(value) is Pipeline:
        return {
            "class": PIPELINE,
            "steps": [{"name": step, "step": _parameter(owner, name, part)} for step, part in value.steps],
        }
    if not _is_known(value):
        raise TypeError(_refusal(f"{owner} with {name}={value!r}"))
    return {"class": type(value).__name__, "parameters": parameters_document(value)}


def _read_parameter(fields: Fields, name: str) -> Any:
    """A parameter that was written by `_parameter`."""
    value = fields.get(name)
    if isinstance(value, list):
        value = fields.items(name, len(value))
        if not _is_plain(value):
            raise fields.fail(name, "must be a list of words and numbers")
    if not isinstance(value, dict):
        return value
    part = fields.part(name)
    if part.word("class", (*CLASSES, PIPELINE)) == PIPELINE:
        return Pipeline([(step.word("name"), _read_parameter(step, "step")) for step in _steps(part)])
    return read_estimator(part, CLASSES)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(not isinstance(entry, list | tuple) and _is_plain(entry) for entry in value)
    return value is None or isinstance(value, bool | int | float | str | np.bool_ | np.integer | np.floating)


def _is_known(value: Any) -> bool:
    return CLASSES.get(type(value).__name__) is type(value)


def _steps(fields: Fields) -> list[Fields]:
    """The steps of a Pipeline, with names that it allows."""
    steps = fields.parts("steps", MOST_STEPS)
    names = [step.word("name") for step in steps]
    if not steps or len(set(names)) < len(names) or any("__" in name or not name for name in names):
        raise fields.fail("steps", "must have different names without '__'")
    return steps


def _refusal(what: str) -> str:
    return (
        f"{what} cannot be saved: a model file holds data, never code, and knows splitters and representations of simtree only "
        f"({', '.join(CLASSES)}, and Pipelines of them); use these, or pickle the model and load it only "
        "where you trust whoever can write the file."
    )


def moderate(array: NDArray[Any]) -> NDArray[Any]:
    """An array to be written, whose numbers will be accepted when it is read."""
    if array.size and np.abs(array).max() > GREATEST:
        raise ValueError(f"the model holds numbers beyond {GREATEST:g}, which cannot be saved; scale the points first.")
    return array


def read_moderate(fields: Fields, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """An array of numbers whose products do not overflow."""
    return fields.array(name, "float64", shape, low=-GREATEST, high=GREATEST)


def _quantiles_document(fitted: MarginalQuantiles) -> dict[str, Any]:
    return {
        "n_knots": np.array([len(knots) for knots in fitted.knots_], dtype=np.int64),
        "knots": np.concatenate(fitted.knots_),
        "levels": np.concatenate(fitted.levels_),
    }


def _read_quantiles(fields: Fields, representation: MarginalQuantiles, n_features: int) -> int:
    knots = fields.array("knots", "float64", (None,))
    levels = fields.array("levels", "float64", knots.shape, low=LEAST_LEVEL, high=1.0 - LEAST_LEVEL)
    n_knots = fields.lengths("n_knots", n_features, len(knots), low=1)
    ends = np.cumsum(n_knots)[:-1]
    representation.knots_, representation.levels_ = np.split(knots, ends), np.split(levels, ends)
    for of_feature, heights in zip(representation.knots_, representation.levels_, strict=True):
        if (of_feature[1:] <= of_feature[:-1]).any() or (heights[1:] < heights[:-1]).any():
            raise fields.fail("knots", "must rise, and so must levels")
    return n_features


def _whitening_document(fitted: WithinClassWhitening) -> dict[str, Any]:
    return {"n_classes": fitted.n_classes_, "mean": moderate(fitted.mean_), "matrix": moderate(fitted.matrix_)}


def _read_whitening(fields: Fields, representation: WithinClassWhitening, n_features: int) -> int:
    representation.n_classes_ = fields.integer("n_classes", 2, MOST_CLASSES)
    representation.mean_ = read_moderate(fields, "mean", (n_features,))
    representation.matrix_ = read_moderate(fields, "matrix", (n_features, None))
    representation._n_features_out = representation.matrix_.shape[1]
    return representation._n_features_out


def _features_document(features: Bumps | Waves) -> dict[str, Any]:
    if isinstance(features, Bumps):
        return {"kind": "bumps", "landmarks": moderate(features.landmarks), "gamma": features.gamma}
    return {"kind": "waves", "directions": moderate(features.directions), "phases": moderate(features.phases)}


def _read_features(fields: Fields, n_features: int) -> Bumps | Waves:
    if fields.word("kind", ("bumps", "waves")) == "bumps":
        gamma = fields.number("gamma", 0.0, np.finfo(np.float64).max)
        return Bumps(read_moderate(fields, "landmarks", (n_features, None)), gamma)
    directions = read_moderate(fields, "directions", (n_features, None))
    return Waves(directions, read_moderate(fields, "phases", (directions.shape[1],)))


def _landmarks_document(fitted: LandmarkFeatures) -> dict[str, Any]:
    return _features_document(fitted.features_)


def _read_landmarks(fields: Fields, representation: LandmarkFeatures, n_features: int) -> int:
    representation.features_ = _read_features(fields, n_features)
    representation._n_features_out = representation.features_.n
    return representation._n_features_out


def _discriminant_document(fitted: KernelDiscriminant) -> dict[str, Any]:
    repeats = [
        {**_features_document(features), "weights": moderate(weights)}
        for features, weights in zip(fitted.features_, fitted.weights_, strict=True)
    ]
    return {"n_classes": fitted.n_classes_, "repeats": repeats}


def _read_discriminant(fields: Fields, representation: KernelDiscriminant, n_features: int) -> int:
    representation.n_classes_ = fields.integer("n_classes", 2, MOST_CLASSES)
    representation.features_, representation.weights_ = [], []
    n_columns: int | None = None
    for part in fields.parts("repeats", MOST_REPEATS):
        features = _read_features(part, n_features)
        weights = read_moderate(part, "weights", (features.n, n_columns))
        n_columns = weights.shape[1]
        representation.features_.append(features)
        representation.weights_.append(weights)
    if n_columns is None:
        raise fields.fail("repeats", "must not be empty")
    representation._n_features_out = n_columns
    return n_columns


def _posterior_document(fitted: ForestPosterior) -> dict[str, Any]:
    return {"n_classes": fitted.n_classes_, "n_columns": fitted._n_features_out, **fitted.trees_._asdict()}


def _read_posterior(fields: Fields, representation: ForestPosterior, n_features: int) -> int:
    representation.n_classes_ = fields.integer("n_classes", 2, MOST_CLASSES)
    feature = fields.array("feature", "int32", (None,), low=0, high=n_features - 1)
    leaf_start = fields.array("leaf_start", "int64", (None,), low=0)
    leaf_class = fields.array("leaf_class", "int32", (None,), low=0)
    n_columns = fields.integer("n_columns", 1, COLUMNS_AN_ENTRY * (1 + len(leaf_class)))
    n_tests, n_leaves = len(feature), len(leaf_start) - 1
    if n_leaves < 1 or leaf_start[0] != 0 or leaf_start[-1] != len(leaf_class) or (leaf_start[1:] < leaf_start[:-1]).any():
        raise fields.fail("leaf_start", "must rise from 0 to the number of entries of leaves")
    if len(leaf_class) and leaf_class.max() >= n_columns:
        raise fields.fail("leaf_class", f"must be less than {n_columns:,}")
    ways = {name: fields.array(name, "int32", (n_tests,), low=-n_leaves, high=n_tests - 1) for name in ("if_le", "if_gt")}
    root = fields.array("root", "int32", (None,), low=-n_leaves, high=n_tests - 1)
    if not len(root):
        raise fields.fail("root", "must have an entry for each tree")
    for name, way in ways.items():
        if ((way >= 0) & (way <= np.arange(n_tests))).any():
            raise fields.fail(name, "must lead from each test to a later one, or to a leaf")
    representation.trees_ = ClassTrees(
        feature=feature,
        threshold=fields.array("threshold", "float32", (n_tests,)),
        leaf_start=leaf_start,
        leaf_class=leaf_class,
        leaf_share=fields.array("leaf_share", "float32", leaf_class.shape, low=0.0, high=1.0),
        root=root,
        **ways,
    )
    representation._n_features_out = n_columns
    return n_columns


# Each representation, and how what it learned is written and read.
REPRESENTATIONS: dict[str, tuple[type, Callable[[Any], dict[str, Any]], Callable[[Fields, Any, int], int]]] = {
    "ForestPosterior": (ForestPosterior, _posterior_document, _read_posterior),
    "KernelDiscriminant": (KernelDiscriminant, _discriminant_document, _read_discriminant),
    "LandmarkFeatures": (LandmarkFeatures, _landmarks_document, _read_landmarks),
    "MarginalQuantiles": (MarginalQuantiles, _quantiles_document, _read_quantiles),
    "WithinClassWhitening": (WithinClassWhitening, _whitening_document, _read_whitening),
}
# All that a file may name, besides models and Pipelines.
CLASSES: dict[str, type] = {
    **{splitter.__name__: splitter for splitter in BY_NAME.values()},
    **{name: made for name, (made, _, _) in REPRESENTATIONS.items()},
}
