"""scikit-learn's scalers, Normalizer and PCA as data: what a model file holds of them.

The arrays of a PCA come back in the precision in which they were fitted, float32 or float64, and its components in the order
in memory that they had: both decide how sums are rounded. A scaler of float64 does to float32 what one of float32 does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.io._fields import MAX_COUNT, MAX_MODERATE, Fields, moderate
from simtree.io._registry import External, adapt

# The fitted arrays of each scaler, one entry per feature, and the parameters one of which makes it fit the array.
SCALERS: dict[str, dict[str, tuple[str, ...]]] = {
    "MaxAbsScaler": {"max_abs_": (), "scale_": ()},
    "MinMaxScaler": {"data_max_": (), "data_min_": (), "data_range_": (), "min_": (), "scale_": ()},
    "RobustScaler": {"center_": ("with_centering",), "scale_": ("with_scaling",)},
    "StandardScaler": {"mean_": ("with_mean", "with_std"), "scale_": ("with_std",), "var_": ("with_std",)},
}

FLOATS = ("float32", "float64")
# The orders in memory that the solvers of PCA leave its components in: as rows, as columns, as columns of a matrix with more
# rows, and as rows from the last to the first. A file without an order, or a dtype, means rows, and float64.
ORDERS = ROWS, COLUMNS, PART_OF_COLUMNS, ROWS_REVERSED = "rows", "columns", "part of columns", "rows, reversed"


def _is_fitted(scaler: Any, parameters: tuple[str, ...]) -> bool:
    """Return whether a scaler fits an array that depends on these parameters (none: always)."""
    return not parameters or any(getattr(scaler, parameter) for parameter in parameters)


def _scaler_state(arrays: dict[str, tuple[str, ...]]) -> Callable[[Any], dict[str, Any]]:
    """Return a function that writes the fitted arrays of a scaler."""

    def get_state(fitted: Any) -> dict[str, Any]:
        return {
            name: moderate(np.asarray(getattr(fitted, name), dtype=np.float64)) if _is_fitted(fitted, parameters) else None
            for name, parameters in arrays.items()
        }

    return get_state


def _read_scaler(arrays: dict[str, tuple[str, ...]]) -> Callable[[Any, Fields], int]:
    """Return a function that reads the fitted arrays of a scaler."""

    def set_state(scaler: Any, fields: Fields) -> int:
        for name, parameters in arrays.items():
            array = fields.moderate(name, (scaler.n_features_in_,)) if _is_fitted(scaler, parameters) else None
            if name == "scale_" and array is not None and (np.abs(array) < 1.0 / MAX_MODERATE).any():
                raise fields.fail(name, "must not hold zeros")
            setattr(scaler, name, array)
        return int(scaler.n_features_in_)

    return set_state


def _order_in_memory(components: NDArray[Any]) -> str:
    """Return the order in memory of the components of a PCA."""
    of_row, of_column = (stride // components.itemsize for stride in components.strides)
    if of_column == 1 or of_row != 1:
        return ROWS_REVERSED if of_row < 0 and len(components) > 1 else ROWS
    return COLUMNS if of_column == len(components) else PART_OF_COLUMNS


def _ordered(components: NDArray[Any], order: str) -> NDArray[Any]:
    """Return components in an order in memory.

    Examples
    --------
    >>> for order in ORDERS:
    ...     print(_order_in_memory(_ordered(np.eye(2, 3), order)))
    rows
    columns
    part of columns
    rows, reversed
    """
    if order == COLUMNS:
        return np.asfortranarray(components)
    if order == PART_OF_COLUMNS:
        return np.asfortranarray(np.vstack([components, components[:1]]))[:-1]
    return np.ascontiguousarray(components[::-1])[::-1] if order == ROWS_REVERSED else components


def _pca_state(fitted: Any) -> dict[str, Any]:
    """Return what a model file holds of a fitted PCA."""
    dtype, order = fitted.components_.dtype.name, _order_in_memory(fitted.components_)
    return {
        "components": moderate(np.asarray(fitted.components_, dtype=np.float64)),
        "mean": moderate(np.asarray(fitted.mean_, dtype=np.float64)),
        "explained_variance": moderate(np.asarray(fitted.explained_variance_, dtype=np.float64)),
        "explained_variance_ratio": np.asarray(fitted.explained_variance_ratio_, dtype=np.float64),
        "singular_values": moderate(np.asarray(fitted.singular_values_, dtype=np.float64)),
        "noise_variance": float(fitted.noise_variance_),
        "n_samples": int(fitted.n_samples_),
        **({} if dtype == "float64" else {"dtype": dtype}),
        **({} if order == ROWS else {"order": order}),
    }


def _read_pca(pca: Any, fields: Fields) -> int:
    """Read what a PCA learned."""
    dtype = fields.string("dtype", FLOATS) if fields.has("dtype") else "float64"
    order = fields.string("order", ORDERS) if fields.has("order") else ROWS
    limit = min(float(np.finfo(dtype).max), MAX_MODERATE)

    def read(name: str, shape: tuple[int | None, ...], low: float = 0.0) -> NDArray[Any]:
        return fields.array(name, "float64", shape, low=low, high=limit).astype(dtype)

    pca.components_ = _ordered(read("components", (None, pca.n_features_in_), low=-limit), order)
    pca.mean_ = read("mean", (pca.n_features_in_,), low=-limit)
    pca.n_components_ = len(pca.components_)
    of_components = (pca.n_components_,)
    pca.explained_variance_ = read("explained_variance", of_components)
    pca.explained_variance_ratio_ = read("explained_variance_ratio", of_components)
    pca.singular_values_ = read("singular_values", of_components)
    pca.noise_variance_ = fields.number("noise_variance", 0.0)
    pca.n_samples_ = fields.integer("n_samples", 1, MAX_COUNT)
    return int(pca.n_components_)


for _name, _arrays in SCALERS.items():
    adapt(_name, External("sklearn.preprocessing", _scaler_state(_arrays), _read_scaler(_arrays)))
# It divides each sample by its length, and learns nothing.
adapt("Normalizer", External("sklearn.preprocessing", lambda fitted: {}, lambda scaler, fields: int(scaler.n_features_in_)))
adapt("PCA", External("sklearn.decomposition", _pca_state, _read_pca))
