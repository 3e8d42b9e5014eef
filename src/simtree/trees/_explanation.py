"""Explanations of the score of a pair: the contribution of each feature.

The value of a pair changes from each cell to the child it falls into. The change is divided among the coordinates tested on
the way in proportion to their impurity decrease, and the share of a coordinate goes to its features. The changes along a path
sum to the value of the terminal cell minus that of the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._table import TableColumns
from simtree.trees._rank_tree import RankTree
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion
from simtree.trees._states import goes_above, is_unseen


@dataclass(frozen=True)
class Explanation:
    """The contribution of each feature to the score of one pair.

    The score equals ``base`` plus the sum of the contributions.

    Parameters
    ----------
    feature_names : tuple of str
        Names of the features.
    x, x2 : ndarrays of shape (n_features,)
        The two samples of the pair: numbers, and words for categories.
    contributions : ndarray of shape (n_features,)
        Contribution of each feature; negative if it lowers the score.
    base : float
        Value of the root cell: the score of a pair before any test is made.
    score : float
        Score of the pair.

    Examples
    --------
    >>> from simtree import SimilarityTree
    >>> X, y = [[0.0, 5.0], [0.1, 3.0], [1.0, 4.0], [1.1, 6.0]], [0, 0, 1, 1]
    >>> tree = SimilarityTree(max_depth=1, splitter="cut").fit(X, y)
    >>> print(tree.explain_pair(X[0], X[2]))
    score 1 = 2 (average pair) - 1
    feature         x        x'  contribution
    x0              0         1        -1.000
    x1              5         4        +0.000
    """

    feature_names: tuple[str, ...]
    x: NDArray[Any]
    x2: NDArray[Any]
    contributions: NDArray[np.float64]
    base: float
    score: float

    def order(self) -> NDArray[np.int64]:
        """Return the features from the largest to the smallest absolute contribution.

        Returns
        -------
        ndarray of shape (n_features,)
            Indices of the features.
        """
        return np.argsort(-np.abs(self.contributions), kind="stable")

    def __str__(self) -> str:
        change = self.score - self.base
        labels = [self.label(j) for j in range(len(self.feature_names))]
        width = max(7, *(len(label) for label in labels))
        lines = [
            f"score {self.score:.4g} = {self.base:.4g} (average pair) {'-' if change < 0 else '+'} {abs(change):.4g}",
            "  ".join(["feature".ljust(width), "x".rjust(8), "x'".rjust(8), "contribution"]),
        ]
        for j in self.order():
            numbers = f"{value_text(self.x[j]):>8}  {value_text(self.x2[j]):>8}  {self.contributions[j]:+12.3f}"
            lines.append(f"{labels[j]:{width}}  {numbers}")
        return "\n".join(lines)

    def label(self, feature: int) -> str:
        """Return the name of a feature, and whether it is missing in one sample or in both.

        Parameters
        ----------
        feature : int
            Number of the feature.

        Returns
        -------
        str
            The name, followed by what is missing.
        """
        n_missing = int(_is_missing(self.x[feature])) + int(_is_missing(self.x2[feature]))
        return self.feature_names[feature] + ["", " missing in one of the two", " missing in both"][n_missing]


def with_words(found: Explanation, columns: TableColumns, samples: NDArray[Any]) -> Explanation:
    """Return an explanation whose last features, the categories of a table, have words in place of codes.

    Parameters
    ----------
    found : Explanation
        The explanation.
    columns : TableColumns
        How the table was read.
    samples : ndarray of shape (2, n_columns)
        The two samples as they were read.

    Returns
    -------
    Explanation
    """
    n = len(columns.categories)
    if not n:
        return found
    words = (columns.words(row)[-n:] for row in samples)
    x, x2 = (np.append(row[:-n], own) for row, own in zip((found.x, found.x2), words, strict=True))
    return replace(found, x=x, x2=x2)


def value_text(value: Any) -> str:
    """Return a value of a sample, a number or the word of a category, as a short text.

    Examples
    --------
    >>> value_text(0.5), value_text(float("nan")), value_text("turquoise")
    ('0.5', 'missing', 'turquois')
    """
    if isinstance(value, str):
        return value[:8]
    return "missing" if _is_missing(value) else f"{value:.4g}"


def _is_missing(value: Any) -> bool:
    """Return whether a value is NaN or None; a word is not."""
    return value is None or (not isinstance(value, str) and bool(np.isnan(value)))


def explain(
    trees: Sequence[RankTree],
    values: Sequence[NDArray[np.float64]],
    pair: SamplePairs,
    names: Sequence[str] | None,
) -> Explanation:
    """Return the explanation of the score of one pair, where the score is the mean over trees of terminal cell values."""
    pair_map = trees[0].pair_map
    pair = pair_map.complete(pair)
    used = [*range(pair_map.n_features), *range(pair_map.n_columns, pair_map.n_columns + pair_map.n_categories)]
    x, x2 = (row[used].astype(np.float64) for row in (pair.A[pair.first[0]], pair.B[pair.second[0]]))
    contributions = np.zeros(pair_map.n_all_features)
    base = score = 0.0
    for tree, of_cells in zip(trees, values, strict=True):
        added, end = _follow(tree, of_cells, pair)
        contributions += added
        base += of_cells[0]
        score += of_cells[end]
    n = len(trees)
    features = tuple(f"x{j}" for j in range(pair_map.n_all_features)) if names is None else tuple(map(str, names))
    return Explanation(features, x, x2, contributions / n, float(base / n), float(score / n))


def _follow(tree: RankTree, values: NDArray[np.float64], pair: SamplePairs) -> tuple[NDArray[np.float64], int]:
    """Return the contribution of each feature along the path of one pair, and the terminal cell of that pair."""
    pair_map = tree.pair_map
    plain = pair_map.plain_values(pair)[:, 0]
    rows = pair.A[pair.first[0]], pair.B[pair.second[0]]
    present = ~np.logical_or(*(np.isnan(row[: pair_map.n_features]) for row in rows))
    added = np.zeros(pair_map.n_all_features)
    cell = 0
    while tree.cells.inside[cell] >= 0:
        region = tree.region(cell)
        if isinstance(region, AxisRegion):
            weights = np.zeros(len(pair_map))
            at = 0
            while at >= 0:
                coordinate, states = region.coordinate[at], 0 if region.states is None else int(region.states[at])
                weights[coordinate] += region.decrease[at]
                if is_unseen(plain[coordinate], states):
                    at = INSIDE if tree.majority_child[cell] == tree.cells.inside[cell] else OUTSIDE
                else:
                    above = goes_above(plain[coordinate], region.threshold[at], states)
                    at = int(region.if_gt[at] if above else region.if_le[at])
            inside, shares = at == INSIDE, pair_map.by_feature(weights / weights.sum(), present)
        else:
            unseen_inside = bool(tree.majority_child[cell] == tree.cells.inside[cell])
            inside = bool(region.contains(pair_map, pair, unseen_inside=unseen_inside)[0])
            shares = region.feature_shares(pair_map, present)
        child = int(tree.cells.inside[cell] if inside else tree.cells.outside[cell])
        added += (values[child] - values[cell]) * shares
        cell = child
    return added, cell
