"""Evaluation of pair scores: metrics with confidence intervals, guaranteed thresholds, calibration and score files."""

from simtree.evaluation._calibration import Calibration
from simtree.evaluation._evaluate import evaluate, evaluate_scores
from simtree.evaluation._guarantee import n_identities_for
from simtree.evaluation._intervals import point_intervals, tally_pairs, upper_bound, wilson_interval
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._results import Band, Estimate, Evaluation, OperatingPoint, SubgroupRates
from simtree.evaluation._score_files import Comparison, ScoreTable, iterate_scores, read_scores, write_scores
from simtree.evaluation._thresholds import ThresholdReport, threshold_for_scores

__all__ = [
    "Band",
    "Calibration",
    "Comparison",
    "Estimate",
    "Evaluation",
    "LearnedFusion",
    "OperatingPoint",
    "ScoreTable",
    "SubgroupRates",
    "ThresholdReport",
    "evaluate",
    "evaluate_scores",
    "iterate_scores",
    "n_identities_for",
    "point_intervals",
    "read_scores",
    "tally_pairs",
    "threshold_for_scores",
    "upper_bound",
    "wilson_interval",
    "write_scores",
]
