"""Results of every estimator, splitter, representation and metric on small data; run as a program it writes them anew.

They change only where a change of results is meant, and the changelog then says so.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from every_estimator import ESTIMATORS, OTHERS
from every_representation import REPRESENTATIONS
from every_splitter import SPLITTERS
from sklearn.base import clone

import simtree
from simtree import metrics

FILE = Path(__file__).with_name("golden.json")
N_SCORES = 6


def samples():
    """Return labelled samples: eight identities, four features."""
    rng = np.random.default_rng(17)
    y = np.repeat(np.arange(8), [14, 12, 10, 9, 8, 7, 6, 5])
    return 1.5 * rng.normal(size=(8, 4))[y] + rng.normal(0, 0.6, (len(y), 4)), y


def pairs():
    """Return pairs of samples that no model has seen."""
    return np.random.default_rng(18).normal(size=(N_SCORES, 2, 4))


def scored_pairs():
    """Return scores of pairs, with ties, whether they are same, and the identities of both samples."""
    rng = np.random.default_rng(19)
    identities = rng.integers(0, 12, (400, 2))
    same = identities[:, 0] == identities[:, 1]
    return rng.normal(1.5 * same, 1.0).round(1), same, identities


def metric_cases():
    """Return the call of each metric."""
    rng = np.random.default_rng(20)
    scores, same, _ = scored_pairs()
    roc, other = metrics.roc_curve(scores, same), metrics.roc_curve(scores + rng.normal(0, 1.0, len(scores)).round(1), same)
    identities, clusters = np.arange(40) % 7, rng.integers(0, 9, 40)
    found = metrics.searches(rng.normal(size=(10, 14)).round(2), np.arange(10), np.arange(14) % 8)
    return {
        "auc": lambda: metrics.auc(roc),
        "b_cubed": lambda: metrics.b_cubed(identities, clusters),
        "cllr": lambda: metrics.cllr(scores, same),
        "cmc": lambda: metrics.cmc(found.ranks, max_rank=5),
        "d_prime": lambda: metrics.d_prime(scores, same),
        "det_points": lambda: np.concatenate([values[:4] for values in metrics.det_points(roc)]),
        "deviation_bound": lambda: metrics.deviation_bound(100, 0.05, vc_dimension=3, constant=1.0),
        "eer": lambda: metrics.eer(roc),
        "fnir_at_fpir": lambda: metrics.fnir_at_fpir(found, [0.1, 0.5]),
        "fnmr_at_fmr": lambda: metrics.fnmr_at_fmr(roc, [0.1, 0.01]),
        "min_cllr": lambda: metrics.min_cllr(scores, same),
        "monotone_llr": lambda: np.concatenate([np.ravel(values)[:6] for values in metrics.monotone_llr(scores, same)]),
        "n_for_rate": lambda: metrics.n_for_rate(0.001),
        "pairwise_cluster_scores": lambda: metrics.pairwise_cluster_scores(identities, clusters),
        "partial_auc": lambda: [metrics.partial_auc(roc, 0.1), metrics.partial_auc(roc, 0.1, standardize=True)],
        "roc_curve": lambda: np.concatenate([roc.fpr[1:5], roc.tpr[1:5], roc.thresholds[1:5]]),
        "roc_distance": lambda: metrics.roc_distance(roc, other, p=2.0),
        "roc_l1_distance": lambda: metrics.roc_l1_distance(roc, other),
        "roc_sup_distance": lambda: metrics.roc_sup_distance(roc, other),
        "searches": lambda: np.concatenate([np.maximum(found.mated, -9.0), found.nonmated, found.ranks]),
        "threshold_at_fmr": lambda: metrics.threshold_at_fmr(roc, 0.05),
        "tpr_at_fpr": lambda: metrics.tpr_at_fpr(roc, [0.2, 0.02]),
        "youden_threshold": lambda: metrics.youden_threshold(roc),
        "zero_fmr": lambda: metrics.zero_fmr(roc),
        "zero_fnmr": lambda: metrics.zero_fnmr(roc),
    }


def evaluation():
    """Return the numbers of an evaluation of scores: metrics with the ends of their intervals."""
    scores, same, identities = scored_pairs()
    found = simtree.evaluate_scores(scores, same, identities=identities)
    points = [[point.threshold, point.fpr, *point.tpr] for point in found.operating_points]
    return [*found.auc, *found.eer_interval, found.partial_auc, found.d_prime, found.cllr, found.min_cllr, *np.ravel(points)]


CASES = {
    **{f"metric {name}": call for name, call in metric_cases().items()},
    "evaluation of scores": evaluation,
    **{f"estimator {name}": estimator for name, estimator in (ESTIMATORS | OTHERS).items()},
    **{f"splitter {name}": splitter for name, splitter in SPLITTERS.items()},
    **{f"representation {name}": representation for name, representation in REPRESENTATIONS.items()},
}


def computed(name):
    """Return the numbers of a case: scores and threshold, transformed samples, or metrics."""
    if name.startswith(("metric", "evaluation")):
        return np.ravel(CASES[name]()).astype(float).tolist()
    X, y = samples()
    case = clone(CASES[name])
    if name.startswith("representation"):
        return np.append(case.fit_transform(X, y)[0], case.transform(pairs()[:, 0])[0]).tolist()
    if name.startswith("splitter"):
        case = simtree.SimilarityTree(max_depth=3, splitter=case, n_pairs=800, random_state=0)
    model = case.fit(X, y)
    return [*model.pair_score(pairs()).tolist(), float(model.threshold_)]


if __name__ == "__main__":
    lines = [f"  {json.dumps(name)}: {json.dumps([float(f'{value:.12g}') for value in computed(name)])}" for name in CASES]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
