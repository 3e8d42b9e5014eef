"""The list of all displays: to add one, add an entry with arguments of from_estimator, and every contract test runs on it."""

from __future__ import annotations

import numpy as np

from simtree.plots import (
    CmcDisplay,
    DetDisplay,
    ExplanationDisplay,
    ImportanceDisplay,
    PruningDisplay,
    RocDisplay,
    ScoreHistogramDisplay,
    ThresholdDisplay,
    TreeDisplay,
)

RNG = np.random.default_rng(5)
HELD_OUT = {"X": RNG.uniform(0, 4, (40, 4)), "y": np.repeat(np.arange(10), 4)}

DISPLAYS = {
    "tree": (TreeDisplay, {}),
    "tree-top": (TreeDisplay, {"max_depth": 1, "feature_names": ["a", "b", "c", "d"]}),
    "roc": (RocDisplay, {}),
    "roc-log": (RocDisplay, {"log_fpr": True, "knots": False, "name": "a tree"}),
    "roc-band": (RocDisplay, {"log_fpr": True, "knots": False, "band": True, **HELD_OUT}),
    "explanation": (ExplanationDisplay, {"x": np.zeros(4), "x2": np.ones(4)}),
    "explanation-short": (ExplanationDisplay, {"x": np.zeros(4), "x2": np.ones(4), "max_features": 2}),
    "pruning": (PruningDisplay, {}),
    "importance": (ImportanceDisplay, {}),
    "importance-short": (ImportanceDisplay, {"max_features": 2, "feature_names": ["a", "b", "c", "d"]}),
    "det": (DetDisplay, HELD_OUT),
    "cmc": (CmcDisplay, HELD_OUT),
    "histogram": (ScoreHistogramDisplay, {"threshold": 8.0, **HELD_OUT}),
    "threshold": (ThresholdDisplay, HELD_OUT),
}
