"""Pictures in scikit-learn's style: a display computes, holds, and draws on any matplotlib axes.

matplotlib is imported when something is drawn, not before: it comes with ``pip install "simtree[plot]"``.
"""

from simtree.plots._evaluation import CmcDisplay, DetDisplay, ScoreHistogramDisplay, ThresholdDisplay
from simtree.plots._roc import RocDisplay
from simtree.plots._style import BLUE, FAINT, INK, ORANGE, PALETTE
from simtree.plots._tree import ExplanationDisplay, ImportanceDisplay, PruningDisplay, TreeDisplay

__all__ = [
    "BLUE",
    "FAINT",
    "INK",
    "ORANGE",
    "PALETTE",
    "CmcDisplay",
    "DetDisplay",
    "ExplanationDisplay",
    "ImportanceDisplay",
    "PruningDisplay",
    "RocDisplay",
    "ScoreHistogramDisplay",
    "ThresholdDisplay",
    "TreeDisplay",
]
