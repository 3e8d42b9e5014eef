"""Explanations of the score of a pair: the contribution of each feature.

The value of a pair changes from each cell to the child it falls into. The change is divided among the coordinates tested on
the way in proportion to their impurity decrease, and the share of a coordinate goes to its features. The changes along a path
sum to the value of the terminal cell minus that of the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.pairs._coordinates import SamplePairs
from simtree.trees._rank_tree import RankTree
from simtree.trees._regions import INSIDE, AxisRegion


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
        width = max(7, *(len(name) for name in self.feature_names))
        lines = [
            f"score {self.score:.4g} = {self.base:.4g} (average pair) {'-' if change < 0 else '+'} {abs(change):.4g}",
            "  ".join(["feature".ljust(width), "x".rjust(8), "x'".rjust(8), "contribution"]),
        ]
        for j in self.order():
            numbers = f"{_cell(self.x[j])}  {_cell(self.x2[j])}  {self.contributions[j]:+12.3f}"
            lines.append(f"{self.feature_names[j]:{width}}  {numbers}")
        return "\n".join(lines)


def _cell(value: Any) -> str:
    """Return a number, or the word of a category, in eight characters."""
    return f"{value[:8]:>8}" if isinstance(value, str) else f"{value:8.4g}"


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
    added = np.zeros(pair_map.n_all_features)
    cell = 0
    while tree.cells.inside[cell] >= 0:
        region = tree.region(cell)
        if isinstance(region, AxisRegion):
            weights = np.zeros(len(pair_map))
            at = 0
            while at >= 0:
                coordinate = region.coordinate[at]
                weights[coordinate] += region.decrease[at]
                at = int(region.if_le[at] if plain[coordinate] <= region.threshold[at] else region.if_gt[at])
            inside, shares = at == INSIDE, pair_map.by_feature(weights / weights.sum())
        else:
            inside, shares = bool(region.contains(pair_map, pair)[0]), region.feature_shares(pair_map)
        child = int(tree.cells.inside[cell] if inside else tree.cells.outside[cell])
        added += (values[child] - values[cell]) * shares
        cell = child
    return added, cell
