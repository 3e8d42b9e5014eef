"""What a model has done to the table that it was fitted on, in sentences, as far as it can be told from the model itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from simtree.models._tree_model import TreeModel
from simtree.pairs._cells import CATEGORY
from simtree.pairs._column import LEFT_OUT
from simtree.pairs._table import TableColumns
from simtree.representation._columns import ColumnRepresentation
from simtree.representation._imputer import Imputer

# What an encoder makes of the values of a category, by its class.
ENCODERS = {
    "OneHotEncoder": "a column per value",
    "OrdinalEncoder": "the number of a value",
    "RarityEncoder": "the rarity of a value",
}


def what_was_done(model: Any) -> list[str]:
    """Return what a fitted model has done to its table: columns left out, categories compared or encoded, holes filled in.

    Parameters
    ----------
    model : Similarity
        The fitted model; each member of an ensemble has its own sentences.

    Returns
    -------
    list of str
        Sentences without a full stop; none for a model of complete numbers without a representation.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree import GaussianSimilarity, Imputer
    >>> X, y = np.array([[0.0], [np.nan], [1.0], [1.5], [3.0], [3.1]]), [0, 0, 1, 1, 2, 2]
    >>> what_was_done(GaussianSimilarity(representation=Imputer()).fit(X, y))
    ['missing numbers are filled in by the median']
    """
    columns = getattr(model, "columns_", None)
    found = [] if columns is None else [f"{column.name} is left out" for column in columns.columns if column.kind == LEFT_OUT]
    names = getattr(model, "feature_names_in_", None) if columns is None else columns.names
    parts = list(_parts(model, ""))
    for name, part in parts:
        before = f"{name}: " if len(parts) > 1 else ""
        found += [before + sentence for sentence in _of_part(part, names, columns)]
    return list(dict.fromkeys(found))


def _parts(model: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the models that a model consists of, with their names."""
    for inner in ("best_estimator_", "estimator_"):
        if hasattr(model, inner):
            yield from _parts(getattr(model, inner), name)
            return
    if hasattr(model, "estimators_"):
        for (own, _), member in zip(model.estimators, model.estimators_, strict=True):
            yield from _parts(member, own)
        return
    yield name, model


def _of_part(part: Any, names: Sequence[str] | None, columns: TableColumns | None) -> list[str]:
    found = []
    if isinstance(part, TreeModel) and part._n_codes():
        found.append("categories are compared by equality, by the rarity of a shared value, and by learned pairs of values")
    steps = list(_steps(getattr(part, "representation_", None), names))
    found += [sentence for step, own in steps for sentence in _of_step(step, own)]
    fills = any(isinstance(step, Imputer) or type(step).__name__ == "SimpleImputer" for step, _ in steps)
    has_holes = columns is not None and any(column.missing and column.kind != LEFT_OUT for column in columns.columns)
    if isinstance(part, TreeModel) and has_holes and not (fills and not _lacks_category(columns)):
        found.append("what is missing in one sample of a pair, or in both, has a learned side at every test")
    return found


def _lacks_category(columns: TableColumns | None) -> bool:
    """Return whether a category has missing values, which nothing fills in."""
    return columns is not None and any(column.missing and column.kind == CATEGORY for column in columns.columns)


def _steps(step: Any, names: Sequence[str] | None) -> Iterator[tuple[Any, Sequence[str] | None]]:
    """Yield the transformers of a representation and the names of their columns, as far as these are known."""
    if isinstance(step, Pipeline):
        for number, (_, inner) in enumerate(step.steps):
            yield from _steps(inner, names if number == 0 else None)
    elif isinstance(step, ColumnRepresentation):
        for _, inner, columns in step.transformers_:
            own = None if names is None or len(names) <= max(columns, default=0) else [str(names[j]) for j in columns]
            yield from _steps(inner, own)
    elif step is not None and not isinstance(step, str):
        yield step, names


def _of_step(step: Any, names: Sequence[str] | None) -> list[str]:
    kind = type(step).__name__
    if isinstance(step, Imputer) or kind == "SimpleImputer":
        indicated = step.indicator if isinstance(step, Imputer) else step.add_indicator
        value = "a constant" if step.strategy == "constant" else f"the {step.strategy.replace('_', ' ')}"
        value += " value" if step.strategy == "most_frequent" else ""
        return [f"missing numbers are filled in by {value}{', with a column that tells where' if indicated else ''}"]
    if kind in ENCODERS:
        return [f"{', '.join(names) if names else 'categories'}: {ENCODERS[kind]}"]
    return []
