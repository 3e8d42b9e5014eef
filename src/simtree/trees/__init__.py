"""Ranking trees: the fitted tree, its regions, pruning, export as rules, and explanations."""

from simtree.trees._explanation import Explanation
from simtree.trees._linear_region import LinearRegion
from simtree.trees._opaque_region import OpaqueRegion
from simtree.trees._pruning import PruningPath
from simtree.trees._quadratic_region import QuadraticRegion
from simtree.trees._rank_tree import Cells, RankTree
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion, ObliqueRegion, Region

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
