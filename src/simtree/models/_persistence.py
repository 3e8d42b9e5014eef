"""Models as data: the state of a fitted similarity in a model file and in `to_dict`."""

from __future__ import annotations

import os
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from simtree._utils.validation import count
from simtree.evaluation._calibration import Calibration
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._thresholds import ThresholdReport
from simtree.io._archive import write_document
from simtree.io._fields import Fields
from simtree.io._registry import (
    MODEL,
    check_parameters,
    estimator_from_state,
    get_class,
    is_registered,
    known_names,
    parameters_state,
    plain_parameters,
)
from simtree.models._held_out import HeldOutCheck
from simtree.pairs._coordinates import MAX_FEATURES
from simtree.pairs._inputs import n_columns
from simtree.pairs._table import TableColumns
from simtree.pairs._training_counts import TrainingCounts


class PersistenceMixin:
    """Methods of a similarity to save it, and to restore it from the checked fields of a model file."""

    n_features_in_: int
    feature_names_in_: NDArray[Any]
    threshold_: float
    threshold_report_: ThresholdReport
    held_out_check_: HeldOutCheck
    calibration_: Calibration
    learned_fusion_: LearnedFusion
    training_counts_: TrainingCounts
    #: Columns that had no value in `fit`, whose values are not used later.
    _empty_columns: tuple[int, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a file, which `simtree.load` reads.

        The file contains data, never code, and is written atomically. It does not contain training samples, unless they were
        asked for (``CohortNormalization(cohort="samples")``): a ``preprocessor`` is not saved, nor are callbacks or a
        ``RandomState`` instance given as ``random_state``.

        Parameters
        ----------
        path : str or path-like
            Path of the file, conventionally with the extension ``.simtree``.

        Examples
        --------
        >>> import tempfile, simtree
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> tree = simtree.SimilarityTree(max_depth=4, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tree.save(f"{folder}/iris.simtree")
        ...     again = simtree.load(f"{folder}/iris.simtree")
        >>> bool((again.pairwise_score(X) == tree.pairwise_score(X)).all())
        True
        """
        check_is_fitted(self)
        write_document(Path(path), self._get_state())

    def to_dict(self) -> dict[str, Any]:
        """Return a summary of the model as JSON-serialisable values: parameters, threshold and rules.

        It is meant for people and other programs. Use `save` for a file that can be loaded.

        Returns
        -------
        dict
            Nested dict of strings, numbers, lists and None.
        """
        check_is_fitted(self)
        return {
            "class": type(self).__name__,
            "parameters": plain_parameters(self),
            **self._common_state(),
            "calibration": self.calibration_.to_dict() if hasattr(self, "calibration_") else None,
            "learned_fusion": self.learned_fusion_._get_state() if hasattr(self, "learned_fusion_") else None,
            **self._summary(),
        }

    def _get_state(self) -> dict[str, Any]:
        """Return the state of the model for a model file."""
        if not is_registered(self, MODEL):
            raise TypeError(
                f"{type(self).__name__} is not a class of simtree and cannot be saved: a model file holds data, never code; "
                "save a model of simtree instead."
            )
        self._check_parameters()
        return {
            "class": type(self).__name__,
            "parameters": parameters_state(self),
            **self._common_state(),
            "calibration": self.calibration_._get_state() if hasattr(self, "calibration_") else None,
            **({"learned_fusion": self.learned_fusion_._get_state()} if hasattr(self, "learned_fusion_") else {}),
            "fitted": self._get_fitted_state(),
        }

    @classmethod
    def _from_state(cls, fields: Fields) -> Any:
        """Return the fitted model read from a model file; all values are validated before they are used."""
        model = estimator_from_state(fields, cls, **cls._given_parameters(fields.part("fitted")))
        check_parameters(fields, model)
        model.n_features_in_ = fields.integer("n_features_in", 1, MAX_FEATURES)
        if fields.has("feature_names_in"):
            names = fields.strings("feature_names_in", MAX_FEATURES)
            if len(names) != model.n_features_in_:
                raise fields.fail("feature_names_in", f"must be {count(model.n_features_in_, 'string')}")
            model.feature_names_in_ = np.array(names, dtype=object)
        model.columns_ = TableColumns._from_state(fields.part("columns")) if fields.has("columns") else None
        if model.columns_ is not None and len(model.columns_.columns) != model.n_features_in_:
            raise fields.fail("columns", f"must be {count(model.n_features_in_, 'column')}")
        if fields.has("empty_columns"):
            empty, n = fields.items("empty_columns", MAX_FEATURES), n_columns(model)
            if not all(type(column) is int and 0 <= column < n for column in empty) or len(set(empty)) < len(empty):
                raise fields.fail("empty_columns", f"must be distinct numbers of {count(n, 'column')}, from 0")
            model._empty_columns = tuple(empty)
        model._set_fitted_state(fields.part("fitted"))
        model.threshold_ = fields.number("threshold")
        if fields.has("threshold_report"):
            model.threshold_report_ = ThresholdReport._from_state(fields.part("threshold_report"))
            if model.threshold_report_.threshold != model.threshold_:
                raise fields.fail("threshold", "must equal the threshold of its report")
        if fields.has("held_out_check"):
            model.held_out_check_ = HeldOutCheck._from_state(fields.part("held_out_check"))
        if fields.has("training_counts"):
            model.training_counts_ = TrainingCounts._from_state(fields.part("training_counts"))
        if fields.has("calibration"):
            model.calibration_ = Calibration._from_state(fields.part("calibration"))
        if fields.has("learned_fusion"):
            model.learned_fusion_ = LearnedFusion._from_state(fields.part("learned_fusion"))
        return model

    def _common_state(self) -> dict[str, Any]:
        """Return the state common to all models, for model files and `to_dict`."""
        names, columns = getattr(self, "feature_names_in_", None), getattr(self, "columns_", None)
        return {
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else [str(name) for name in names],
            "threshold": float(self.threshold_),
            "threshold_report": self.threshold_report_._get_state() if hasattr(self, "threshold_report_") else None,
            # Written only if there are any, as files of before have none.
            **({"columns": columns._get_state()} if columns is not None else {}),
            **({"empty_columns": list(self._empty_columns)} if self._empty_columns else {}),
            **({"held_out_check": self.held_out_check_._get_state()} if hasattr(self, "held_out_check_") else {}),
            **({"training_counts": self.training_counts_._get_state()} if hasattr(self, "training_counts_") else {}),
        }

    @classmethod
    def _given_parameters(cls, fields: Fields) -> dict[str, Any]:
        """Return parameters that are not written themselves because they follow from the fitted state."""
        return {}

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise an error if a parameter is invalid."""

    @abstractmethod
    def _get_fitted_state(self) -> dict[str, Any]:
        """Return the fitted state for a model file."""

    @abstractmethod
    def _set_fitted_state(self, fields: Fields) -> None:
        """Restore the fitted state from a model file; parameters, feature names and their number are already set."""

    def _summary(self) -> dict[str, Any]:
        """Return the fitted state for `to_dict`."""
        return {}


def model_from_state(fields: Fields, known: tuple[str, ...] | None = None) -> Any:
    """Return the model read from checked fields; its class must be in ``known``, if given."""
    name = fields.string("class", known_names(MODEL) if known is None else known)
    return get_class(MODEL, name)._from_state(fields)
