"""Ranking trees: the fitted tree, its regions, pruning, export as rules, and explanations."""

from simtree.trees._explanation import Explanation
from simtree.trees._pruning import PruningPath
from simtree.trees._rank_tree import Cells, RankTree
from simtree.trees._regions import (
    INSIDE,
    OUTSIDE,
    AxisRegion,
    LinearRegion,
    ObliqueRegion,
    OpaqueRegion,
    QuadraticRegion,
    Region,
)

__all__ = [
    "INSIDE",
    "OUTSIDE",
    "AxisRegion",
    "Cells",
    "Explanation",
    "LinearRegion",
    "ObliqueRegion",
    "OpaqueRegion",
    "PruningPath",
    "QuadraticRegion",
    "RankTree",
    "Region",
]
