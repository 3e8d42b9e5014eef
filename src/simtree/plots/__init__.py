"""Plots in the style of scikit-learn: a display computes and stores what it draws, and draws on any matplotlib axes.

matplotlib is imported only when something is drawn; it is installed by ``pip install "simtree[plot]"``.
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
