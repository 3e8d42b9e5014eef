"""The registry of classes that a model file may name, and the conversion of their parameters to data.

Only registered classes, and Pipelines of them, are written and read, by name: a file cannot refer to other code. A class
returns its fitted state with ``_get_fitted_state`` and restores it with ``_set_fitted_state``. Classes of scikit-learn, which
have no such methods, are registered with two functions that do the same (`adapt`).
"""

from __future__ import annotations

import importlib
import inspect
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline

from simtree.io._fields import Fields

PIPELINE = "Pipeline"
MAPPING = "dict"
# A list of (name, transformer) tuples, such as the members of a mean of posteriors.
MEMBERS = "list"
# A list of (name, transformer, columns) tuples.
COLUMNS = "columns"
MODEL, SPLITTER, REPRESENTATION, REGION = "model", "splitter", "representation", "region"
# Kinds of estimators that may be a parameter of another.
PARAMETERS = (SPLITTER, REPRESENTATION)
# A preprocessor, an array of samples or a function of the user, is not part of a model; the members of an ensemble and the
# estimator inside another are written with their fitted state.
LEFT_OUT = ("preprocessor", "estimators", "estimator")
# Parameters that models of this version of files did not have at first: written only if they have another value.
ADDED = {"categorical_features": "from_dtype"}
ADDED_TO: dict[str, dict[str, str | bool]] = {"SimilarityForest": {"open_set": "auto"}, "ForestPosterior": {"bootstrap": True}}
# Parameters that are written with the fitted state, because files without them have another value than the default.
OF_STATE = {"PosteriorSimilarity": ("same_weighting",)}
# Larger numbers are treated as damage.
MAX_STEPS = 32
MAX_KEYS = 1 << 10
MAX_JOBS = 64

T = TypeVar("T", bound=type)


class External(NamedTuple):
    """A class of another library, imported when it is needed, with functions that get and set its fitted state."""

    module: str
    get_state: Callable[[Any], dict[str, Any]]
    set_state: Callable[[Any, Fields], int]
    # Parameters that are not data, which must have their defaults.
    defaults: tuple[str, ...] = ()


_CLASSES: dict[str, dict[str, type]] = {MODEL: {}, SPLITTER: {}, REPRESENTATION: {}, REGION: {}}
_EXTERNAL: dict[str, External] = {}
# How an object of another library is converted to one that can be saved: a test of the object, and the conversion.
_CONVERSIONS: list[tuple[Callable[[Any], bool], Callable[[Any], Any]]] = []


def register(kind: str) -> Callable[[T], T]:
    """Return a class decorator that registers the class under a kind, so that model files may name it."""

    def add(cls: T) -> T:
        _CLASSES[kind][cls.__name__] = cls
        return cls

    return add


def adapt(name: str, external: External) -> None:
    """Register a transformer of another library as a representation that model files may name."""
    _EXTERNAL[name] = external


def convert(is_meant: Callable[[Any], bool], conversion: Callable[[Any], Any]) -> None:
    """Register how objects of another library, recognised without importing it, are converted to ones that can be saved."""
    _CONVERSIONS.append((is_meant, conversion))


def known_names(kind: str) -> list[str]:
    """Return the names of the classes of a kind, in alphabetical order."""
    return sorted([*_CLASSES[kind], *(_EXTERNAL if kind == REPRESENTATION else ())])


def get_class(kind: str, name: str) -> Any:
    """Return the class of a kind that a file names."""
    if kind == REPRESENTATION and name in _EXTERNAL:
        return getattr(importlib.import_module(_EXTERNAL[name].module), name)
    return _CLASSES[kind][name]


def is_registered(value: Any, kind: str) -> bool:
    """Return whether the class of an object is registered under a kind."""
    name = type(value).__name__
    return name in known_names(kind) and get_class(kind, name) is type(value)


def get_fitted_state(representation: Any) -> dict[str, Any]:
    """Return the fitted state of a registered representation."""
    external = _EXTERNAL.get(type(representation).__name__)
    state: dict[str, Any] = representation._get_fitted_state() if external is None else external.get_state(representation)
    return state


def set_fitted_state(representation: Any, fields: Fields) -> int:
    """Restore the fitted state of a registered representation; return the number of columns of transformed samples."""
    external = _EXTERNAL.get(type(representation).__name__)
    return int(representation._set_fitted_state(fields)) if external is None else external.set_state(representation, fields)


def refusal(what: str) -> str:
    """Return the message that something cannot be saved."""
    known = ", ".join([*known_names(SPLITTER), *known_names(REPRESENTATION)])
    return (
        f"{what} cannot be saved: a model file holds data, never code, and supports only these splitters and representations "
        f"({known}, and Pipelines of them); use these, or pickle the model and load it only if you trust everyone who "
        "can write the file."
    )


def parameters_state(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as data; a random generator becomes None, and many parallel jobs become -1."""
    left_out = _left_out(type(estimator))
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name not in left_out}
    for name, default in (ADDED | ADDED_TO.get(type(estimator).__name__, {})).items():
        if isinstance(parameters.get(name), type(default)) and parameters[name] == default:
            del parameters[name]
    external = _EXTERNAL.get(type(estimator).__name__)
    for name in () if external is None else external.defaults:
        if parameters.pop(name) is not inspect.signature(type(estimator)).parameters[name].default:
            raise TypeError(refusal(f"{type(estimator).__name__} with another {name} than the default"))
    if isinstance(parameters.get("n_jobs"), numbers.Integral) and parameters["n_jobs"] > MAX_JOBS:
        parameters["n_jobs"] = -1
    return {name: _parameter(type(estimator).__name__, name, value) for name, value in parameters.items()}


def _left_out(cls: type) -> tuple[str, ...]:
    """Return the parameters of a class that are not among those in a file."""
    return (*LEFT_OUT, *OF_STATE.get(cls.__name__, ()))


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as strings and numbers for display, without those in `LEFT_OUT`."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            return plain(value.tolist())
        if isinstance(value, list | tuple) and _is_plain(value):
            return [plain(entry) for entry in value]
        return value.item() if isinstance(value, np.generic) else value if _is_plain(value) else repr(value)

    parameters = estimator.get_params(deep=False).items()
    return {name: plain(value) for name, value in parameters if name not in LEFT_OUT}


def estimator_from_state(fields: Fields, cls: type, **given: Any) -> Any:
    """Return an unfitted estimator with the parameters of its state and the given ones."""
    part = fields.part("parameters")
    names = cls._get_param_names()  # type: ignore[attr-defined]
    unknown = set(part.content) - set(names) | set(_left_out(cls)) & set(part.content)
    if unknown:
        raise part.fail(min(unknown), f"is not a parameter of {cls.__name__}")
    parameters = {name: _read_parameter(part, name) for name in part.content}
    n_jobs = parameters.get("n_jobs")
    if n_jobs is not None and (type(n_jobs) is not int or n_jobs == 0 or n_jobs > MAX_JOBS):
        raise part.fail("n_jobs", f"must be a number of parallel jobs, at most {MAX_JOBS}")
    # JSON has no tuples; scikit-learn requires one where the default is a tuple.
    defaults = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
    for name, default in defaults.items():
        if default is inspect.Parameter.empty and name not in parameters and name not in given:
            raise part.fail(name, "is missing")
    for name, value in parameters.items():
        if isinstance(value, list) and isinstance(defaults.get(name), tuple):
            parameters[name] = tuple(value)
    return cls(**parameters, **given)


def check_parameters(fields: Fields, estimator: Any) -> None:
    """Raise an error for parameters that `fit` would refuse."""
    try:
        if hasattr(estimator, "_check_parameters"):
            estimator._check_parameters()
        else:
            estimator._validate_params()
    except (TypeError, ValueError, OverflowError) as error:
        raise fields.fail("parameters", f"are invalid: {error}") from None


def pipeline_steps(fields: Fields) -> list[Fields]:
    """Return the steps of a Pipeline after checking their names."""
    steps = fields.parts("steps", MAX_STEPS)
    names = [step.string("name") for step in steps]
    if not steps or len(set(names)) < len(names) or any("__" in name or not name for name in names):
        raise fields.fail("steps", "must have distinct names without '__'")
    return steps


def _parameter(owner: str, name: str, value: Any) -> Any:
    """Return a parameter as data."""
    value = next((conversion(value) for is_meant, conversion in _CONVERSIONS if is_meant(value)), value)
    if _is_plain(value):
        return value
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return _parameter(owner, name, value.tolist())
    if type(value) is dict and all(isinstance(key, str) for key in value) and _is_plain(list(value.values())):
        return {"class": MAPPING, "keys": list(value), "values": list(value.values())}
    if type(value) is Pipeline or _is_named(value):
        kind, members = (PIPELINE, value.steps) if type(value) is Pipeline else (MEMBERS, value)
        return {"class": kind, "steps": [{"name": step, "step": _parameter(owner, name, part)} for step, part in members]}
    if _is_named(value, 3):
        parts = [
            {"name": step, "step": _parameter(owner, name, part), "columns": _parameter(owner, name, columns)}
            for step, part, columns in value
        ]
        return {"class": COLUMNS, "steps": parts}
    if not any(is_registered(value, kind) for kind in PARAMETERS):
        raise TypeError(refusal(f"{owner} with {name}={value!r}"))
    return {"class": type(value).__name__, "parameters": parameters_state(value)}


def _read_parameter(fields: Fields, name: str) -> Any:
    """Return the parameter that `_parameter` converted to data."""
    value = fields.get(name)
    if isinstance(value, list):
        value = fields.items(name, len(value))
        if not _is_plain(value):
            raise fields.fail(name, "must be a list of strings and numbers")
    if not isinstance(value, dict):
        return value
    part = fields.part(name)
    name = part.string("class", [*known_names(SPLITTER), *known_names(REPRESENTATION), PIPELINE, MEMBERS, MAPPING, COLUMNS])
    if name == MAPPING:
        keys = part.strings("keys", MAX_KEYS)
        values = part.items("values", MAX_KEYS)
        if len(set(keys)) < len(keys) or len(values) != len(keys) or not _is_plain(values):
            raise part.fail("keys", "must be distinct strings, each with a string or number in values")
        return dict(zip(keys, values, strict=True))
    if name == COLUMNS:
        return [
            (step.string("name"), _read_parameter(step, "step"), _read_parameter(step, "columns"))
            for step in pipeline_steps(part)
        ]
    if name in (PIPELINE, MEMBERS):
        members = [(step.string("name"), _read_parameter(step, "step")) for step in pipeline_steps(part)]
        return Pipeline(members) if name == PIPELINE else members
    return estimator_from_state(part, get_class(SPLITTER if name in known_names(SPLITTER) else REPRESENTATION, name))


def _is_named(value: Any, length: int = 2) -> bool:
    """Return whether a value is a list of tuples of this length that begin with a name."""
    tuples = isinstance(value, list | tuple) and all(isinstance(entry, tuple) and len(entry) == length for entry in value)
    return bool(tuples and len(value) and all(isinstance(entry[0], str) for entry in value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(not isinstance(entry, list | tuple) and _is_plain(entry) for entry in value)
    return value is None or isinstance(value, bool | int | float | str | np.bool_ | np.integer | np.floating)
