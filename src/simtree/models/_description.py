"""What is known of a fitted model: its class and parameters, features, trees, threshold and importances, as plain values."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone

from simtree.models._table_members import described, unread
from simtree.models._table_report import what_was_done
from simtree.representation._applied import represented_names


def describe(learned: Any) -> dict[str, Any]:
    """Return a description of a model."""
    inner = getattr(learned, "best_estimator_", learned)
    names = getattr(learned, "feature_names_in_", None)
    trees = inner._trees() if hasattr(inner, "_trees") else []
    report = getattr(learned, "threshold_report_", None)
    calibration = getattr(learned, "calibration_", None)
    return {
        "class": type(learned).__name__,
        **describe_choice(learned),
        "parameters": _changed(_as_given(learned, inner)),
        "cohorts": _cohorts(learned),
        "trained_on": str(learned.training_counts_) if hasattr(learned, "training_counts_") else None,
        "n_features": int(learned.n_features_in_),
        "columns": described(getattr(learned, "columns_", None)),
        "done": what_was_done(learned),
        "features": None if names is None else [str(name) for name in names],
        "n_trees": len(trees),
        "training_pairs": [int(trees[0].cells.n_same[0]), int(trees[0].cells.n_different[0])] if trees else None,
        "n_cells": int(sum(np.count_nonzero(tree.cells.inside < 0) for tree in trees)),
        "training_auc": float(inner.auc_) if trees else None,
        "oob_auc": float(inner.oob_roc_.auc()) if hasattr(inner, "oob_roc_") else None,
        "threshold": float(learned.threshold_),
        "threshold_report": None if report is None else report.to_dict(),
        "probabilities": None if calibration is None else str(calibration),
        "importances": _importances(inner),
    }


def describe_choice(learned: Any) -> dict[str, Any]:
    """Return what was chosen, its figures and the table of candidates; None for each if nothing was chosen."""
    results = getattr(learned, "results_", None)
    if results is None:
        return dict.fromkeys(("chosen", "fpr", "performance", "candidates", "skipped"))
    names = list(results)
    return {
        "chosen": learned.best_name_,
        "fpr": learned.fpr_,
        "performance": {name: list(figure) for name, figure in learned.performance_.items()},
        "candidates": [
            dict(zip(names, row, strict=True)) for row in zip(*(results[name].tolist() for name in names), strict=True)
        ],
        "skipped": learned.skipped_,
    }


def input_columns(learned: Any) -> list[int | None] | None:
    """Return the column of a sample that each feature of an explanation is; None if a representation makes others of them.

    Parameters
    ----------
    learned : Similarity
        Fitted model.

    Returns
    -------
    list of int or None
        One column per feature, in the order of explanations and importances. A column is None if it is part of another, such
        as the hour of a date.
    """
    if not _keeps_features(learned):
        return None
    table = getattr(learned, "columns_", None)
    if table is None:
        return list(range(learned.n_features_in_))
    places = {column.name: place for place, column in enumerate(table.columns)}
    return [places.get(name) for name in table.names]


def _keeps_features(learned: Any) -> bool:
    """Return whether a model and its members have no representation, or one whose features are those of samples."""
    fitted = getattr(learned, "representation_", None)
    if fitted is not None:
        table = getattr(learned, "columns_", None)
        names = getattr(learned, "feature_names_in_", None) if table is None else table.names[: learned._n_given()]
        expected = [f"x{j}" for j in range(learned._n_given())] if names is None else [str(name) for name in names]
        if represented_names(fitted, names) != expected:
            return False
    return all(_keeps_features(member) for member in _members(learned))


def _members(learned: Any) -> list[Any]:
    """Return the fitted models that a model consists of."""
    inner = [getattr(learned, name) for name in ("best_estimator_", "estimator_") if hasattr(learned, name)]
    return [*inner, *getattr(learned, "estimators_", [])]


def _cohorts(learned: Any) -> list[str]:
    """Return what the cohorts of a model and of its members consist of, and whether the model holds samples."""
    own = [learned._cohort_sentence()] if hasattr(learned, "_cohort_sentence") else []
    return own + [sentence for member in _members(learned) for sentence in _cohorts(member)]


def _as_given(learned: Any, inner: Any) -> Any:
    """Return a chosen model with names of columns of the table, instead of their numbers in its own matrix."""
    columns = getattr(learned, "columns_", None)
    return inner if inner is learned or columns is None else unread(clone(inner), columns, by_name=columns.named)


def _changed(learned: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults."""
    usual = {name: repr(parameter.default) for name, parameter in inspect.signature(type(learned)).parameters.items()}
    return {name: repr(value) for name, value in learned.get_params(deep=False).items() if repr(value) != usual[name]}


def _importances(learned: Any) -> dict[str, float] | None:
    """Return the importance of each feature by name, largest first."""
    if not hasattr(learned, "_trees"):
        return None
    shares = learned.feature_importances_
    names = learned._names(None)
    order = np.argsort(-shares, kind="stable")
    return {str(names[j]) if names is not None else f"x{j}": float(shares[j]) for j in order}
