"""scikit-learn's scalers, Normalizer and PCA as data: what a model file holds of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simtree.io._fields import MAX_COUNT, MAX_MODERATE, Fields, moderate
from simtree.io._registry import External, adapt

# The fitted arrays of each scaler, one entry per feature, and the parameters one of which makes it fit the array.
SCALERS: dict[str, dict[str, tuple[str, ...]]] = {
    "MaxAbsScaler": {"max_abs_": (), "scale_": ()},
    "MinMaxScaler": {"data_max_": (), "data_min_": (), "data_range_": (), "min_": (), "scale_": ()},
    "RobustScaler": {"center_": ("with_centering",), "scale_": ("with_scaling",)},
    "StandardScaler": {"mean_": ("with_mean", "with_std"), "scale_": ("with_std",), "var_": ("with_std",)},
}


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


def _pca_state(fitted: Any) -> dict[str, Any]:
    """Return what a model file holds of a fitted PCA."""
    return {
        "components": moderate(np.asarray(fitted.components_, dtype=np.float64)),
        "mean": moderate(np.asarray(fitted.mean_, dtype=np.float64)),
        "explained_variance": moderate(np.asarray(fitted.explained_variance_, dtype=np.float64)),
        "explained_variance_ratio": np.asarray(fitted.explained_variance_ratio_, dtype=np.float64),
        "singular_values": moderate(np.asarray(fitted.singular_values_, dtype=np.float64)),
        "noise_variance": float(fitted.noise_variance_),
        "n_samples": int(fitted.n_samples_),
    }


def _read_pca(pca: Any, fields: Fields) -> int:
    """Read what a PCA learned."""
    pca.components_ = fields.moderate("components", (None, pca.n_features_in_))
    pca.mean_ = fields.moderate("mean", (pca.n_features_in_,))
    pca.n_components_ = len(pca.components_)
    of_components = (pca.n_components_,)
    pca.explained_variance_ = fields.array("explained_variance", "float64", of_components, low=0.0, high=MAX_MODERATE)
    pca.explained_variance_ratio_ = fields.array("explained_variance_ratio", "float64", of_components, low=0.0)
    pca.singular_values_ = fields.array("singular_values", "float64", of_components, low=0.0, high=MAX_MODERATE)
    pca.noise_variance_ = fields.number("noise_variance", 0.0)
    pca.n_samples_ = fields.integer("n_samples", 1, MAX_COUNT)
    return int(pca.n_components_)


for _name, _arrays in SCALERS.items():
    adapt(_name, External("sklearn.preprocessing", _scaler_state(_arrays), _read_scaler(_arrays)))
# It divides each sample by its length, and learns nothing.
adapt("Normalizer", External("sklearn.preprocessing", lambda fitted: {}, lambda scaler, fields: int(scaler.n_features_in_)))
adapt("PCA", External("sklearn.decomposition", _pca_state, _read_pca))
