"""scikit-learn's imputer, missing indicator and encoders as data: what a model file holds of them.

They are restored by fitting them on a small matrix that has the same statistics or categories, which does not depend on the
private attributes of a version of scikit-learn.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.io._fields import MAX_MODERATE, Fields, moderate
from simtree.io._registry import External, adapt

Floats = NDArray[np.float64]


def _missing_of(fitted: Any) -> NDArray[np.int64]:
    """Return the features with missing values that a MissingIndicator has found; none without one."""
    return np.empty(0, dtype=np.int64) if fitted is None else np.asarray(fitted.features_, dtype=np.int64)


def _read_missing(fields: Fields, n_features: int) -> NDArray[np.int64]:
    found = fields.array("missing_features", "int64", (None,), low=0, high=n_features - 1)
    if (np.diff(found) <= 0).any():
        raise fields.fail("missing_features", "must be increasing")
    return found


def _imputer_state(fitted: Any) -> dict[str, Any]:
    """Return the statistics of a SimpleImputer, NaN where a feature has no value."""
    constants = all(isinstance(value, numbers.Real) for value in np.asarray(fitted.statistics_).tolist())
    if not _is_float_nan(fitted.missing_values) or not constants:
        raise TypeError(
            "a SimpleImputer with missing_values other than NaN, or of words, cannot be saved; read the table into numbers "
            "first, with NaN where a value is missing."
        )
    statistics = np.asarray(fitted.statistics_, dtype=np.float64)
    moderate(statistics[~np.isnan(statistics)])
    return {"statistics": statistics.tolist(), "missing_features": _missing_of(fitted.indicator_)}


def _read_imputer(imputer: Any, fields: Fields) -> int:
    n_features = int(imputer.n_features_in_)
    statistics = fields.numbers("statistics", n_features)
    if np.isinf(statistics).any() or (np.abs(statistics) > MAX_MODERATE).any():
        raise fields.fail("statistics", "must not be infinite")
    if not _is_float_nan(imputer.missing_values):
        raise fields.fail("parameters.missing_values", "must be NaN")
    rows = np.tile(statistics, (2, 1))
    rows[1, _read_missing(fields, n_features)] = np.nan
    imputer.fit(rows)
    return _n_columns(imputer, n_features, fields)


def _indicator_state(fitted: Any) -> dict[str, Any]:
    """Return the features with missing values of a MissingIndicator."""
    return {"missing_features": _missing_of(fitted)}


def _read_indicator(indicator: Any, fields: Fields) -> int:
    n_features = int(indicator.n_features_in_)
    rows = np.zeros((2, n_features))
    rows[1, _read_missing(fields, n_features)] = np.nan
    indicator.fit(rows)
    return _n_columns(indicator, n_features, fields)


def _encoder_state(fitted: Any) -> dict[str, Any]:
    """Return the categories of an encoder, numbers of which NaN comes last and is written as a flag."""
    if fitted.min_frequency is not None or fitted.max_categories is not None:
        raise TypeError(
            f"{type(fitted).__name__} with min_frequency or max_categories cannot be saved; leave them at None, or use "
            "RarityEncoder."
        )
    if any(np.asarray(found).dtype.kind not in "fiub" for found in fitted.categories_):
        raise TypeError(
            f"{type(fitted).__name__} fitted on words cannot be saved; fit a model on the table with the unfitted encoder as "
            "its representation, which reads words into codes."
        )
    categories = [np.asarray(found, dtype=np.float64) for found in fitted.categories_]
    present = [found[~np.isnan(found)] for found in categories]
    return {
        "n_categories": np.array([len(found) for found in present], dtype=np.int64),
        "categories": np.concatenate(present),
        "has_missing": [len(own) < len(found) for own, found in zip(present, categories, strict=True)],
    }


def _read_encoder(encoder: Any, fields: Fields) -> int:
    n_features = int(encoder.n_features_in_)
    values = fields.array("categories", "float64", (None,))
    n_values = fields.lengths("n_categories", n_features, len(values))
    missing = fields.items("has_missing", n_features)
    if len(missing) != n_features or not all(type(flag) is bool for flag in missing):
        raise fields.fail("has_missing", "must be one flag per feature")
    columns = []
    for own, absent in zip(np.split(values, np.cumsum(n_values)[:-1]), missing, strict=True):
        if (np.diff(own) <= 0.0).any() or not len(own) + absent:
            raise fields.fail("categories", "must be increasing, and at least one per feature")
        columns.append(np.append(own, np.nan) if absent else own)
    longest = max(len(column) for column in columns)
    encoder.fit(np.column_stack([np.pad(column, (0, longest - len(column)), mode="edge") for column in columns]))
    return _n_columns(encoder, n_features, fields)


def _n_columns(fitted: Any, n_features: int, fields: Fields) -> int:
    """Return the number of output columns of a fitted transformer."""
    try:
        return len(fitted.get_feature_names_out())
    except ValueError as error:
        raise fields.fail("parameters", f"are invalid: {error}") from None


def _is_float_nan(value: Any) -> bool:
    return isinstance(value, float) and np.isnan(value)


adapt("SimpleImputer", External("sklearn.impute", _imputer_state, _read_imputer))
adapt("MissingIndicator", External("sklearn.impute", _indicator_state, _read_indicator))
for _name in ("OneHotEncoder", "OrdinalEncoder"):
    adapt(_name, External("sklearn.preprocessing", _encoder_state, _read_encoder, defaults=("dtype",)))
