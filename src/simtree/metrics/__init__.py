"""Metrics of pair scores: ROC curves, error rates, identification rates, log-likelihood ratios, and clusters.

All metrics are pure functions of arrays. A pair is accepted iff its score is at least the threshold. Tied scores are treated as
one, and a rate at a target is the best one of a threshold whose error rate is *at most* the target.
"""

from simtree.metrics._clustering import ClusterScores, b_cubed, pairwise_cluster_scores
from simtree.metrics._identification import Searches, cmc, fnir_at_fpir, searches
from simtree.metrics._likelihood_ratio import cllr, d_prime, min_cllr, monotone_llr
from simtree.metrics._rates import (
    EqualErrorRate,
    det_points,
    eer,
    fnmr_at_fmr,
    n_for_rate,
    threshold_at_fmr,
    zero_fmr,
    zero_fnmr,
)
from simtree.metrics._roc import (
    FloatArray,
    Roc,
    auc,
    deviation_bound,
    partial_auc,
    roc_curve,
    roc_distance,
    roc_l1_distance,
    roc_sup_distance,
    tpr_at_fpr,
    youden_threshold,
)

__all__ = [
    "ClusterScores",
    "EqualErrorRate",
    "FloatArray",
    "Roc",
    "Searches",
    "auc",
    "b_cubed",
    "cllr",
    "cmc",
    "d_prime",
    "det_points",
    "deviation_bound",
    "eer",
    "fnir_at_fpir",
    "fnmr_at_fmr",
    "min_cllr",
    "monotone_llr",
    "n_for_rate",
    "pairwise_cluster_scores",
    "partial_auc",
    "roc_curve",
    "roc_distance",
    "roc_l1_distance",
    "roc_sup_distance",
    "searches",
    "threshold_at_fmr",
    "tpr_at_fpr",
    "youden_threshold",
    "zero_fmr",
    "zero_fnmr",
]
