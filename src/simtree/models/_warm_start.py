"""What ``warm_start=True`` requires: trees that are added are scored with those that exist, on the same coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simtree._utils.validation import count
from simtree.pairs._coordinates import CoordinateSet
from simtree.pairs._table import TableColumns
from simtree.trees._rank_tree import RankTree


def check_parameters(model: Any, trees: Sequence[RankTree], kinds: Sequence[str]) -> None:
    """Raise an error if trees cannot be added with the parameters of a model.

    Parameters
    ----------
    model : SimilarityForest or SimilarityBoosting
        The model.
    trees : sequence of RankTree
        The existing trees.
    kinds : sequence of str
        Kinds of coordinates of the trees to add.
    """
    if not trees:
        return
    if len(trees) > model.n_estimators:
        raise ValueError(
            f"n_estimators={model.n_estimators!r} is less than the {len(trees)} existing trees; "
            "increase it, or set warm_start=False."
        )
    if model.representation is not None:
        raise ValueError("warm_start=True cannot be used with a representation, which would be refitted; set warm_start=False.")
    existing = trees[0].pair_map.kinds
    if tuple(kinds) != existing:
        raise ValueError(
            f"coordinates={list(kinds)!r} differ from those of the existing trees, with which trees that are added share them; "
            f"set coordinates={list(existing)!r}, or warm_start=False."
        )


def check_features(existing: CoordinateSet, n_features: int) -> None:
    """Raise an error if samples have another number of features, with categories, than those of the existing trees."""
    if n_features != existing.n_all_features:
        raise ValueError(
            f"X has {count(n_features, 'feature')}, but the existing trees were grown on {existing.n_all_features}; "
            "give the same features, or set warm_start=False."
        )


def check_categories(
    existing: CoordinateSet, added: CoordinateSet, columns_before: TableColumns | None, columns: TableColumns | None
) -> None:
    """Raise an error if categories have other values than in the existing trees, or something else was learned of them.

    Parameters
    ----------
    existing, added : CoordinateSet
        Coordinates of the existing trees, and of those to add.
    columns_before, columns : TableColumns or None
        How the table of the existing trees was read, and how that of the others is.
    """
    states = [{} if own.categories is None else own.categories._get_state() for own in (existing, added)]
    same = states[0].keys() == states[1].keys() and all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
    if not same or _vocabularies(columns_before) != _vocabularies(columns):
        raise ValueError(
            "X has categories of which other values were seen, or something else was learned, than in the existing trees; "
            "give the same samples and labels, or set warm_start=False."
        )


def _vocabularies(columns: TableColumns | None) -> list[tuple[str, tuple[Any, ...]]]:
    return [] if columns is None else [(column.name, column.values) for column in columns.columns if column.values]
