"""The page on intervals is generated from its results, which show what it says; distributions have their true rates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench_coverage import make_page, one_coverage, one_threshold, outside
from identity_effects import DISTRIBUTIONS
from simtree.metrics import roc_curve

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
RESULT = json.loads((DOCS / "results" / "coverage.json").read_text())


def test_the_page_is_generated_from_the_results():
    assert (DOCS / "intervals.md").read_text() == make_page(RESULT)


def test_intervals_cover_from_50_identities_up_and_binomial_ones_do_not():
    """For distributions with identity effects. One metric is an exception, which the page states."""
    assert outside(RESULT) == ["TPR at FPR 0.01, bootstrap (strong, 50 identities: 91.4 %)"]
    for row in RESULT["coverage"]:
        if row["distribution"] in ("mild", "strong") and row["n_identities"] >= 50:
            assert max(share for name, share in row["covered"].items() if "binomial" in name) < 0.9


def test_the_guarantee_holds_where_it_should():
    for row in RESULT["thresholds"]:
        if row["distribution"] in ("mild", "strong"):
            assert row["identities"]["exceeded"] <= 0.05 + 0.02, row
            assert row["pairs"]["exceeded"] > 0.1, row


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_has_its_true_rates(name):
    distribution = DISTRIBUTIONS[name]
    parts = [distribution.sample(40, 3, np.random.default_rng(seed)) for seed in range(60)]
    scores, same = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    threshold = distribution.threshold(0.05)
    assert np.mean(scores[~same] >= threshold) == pytest.approx(0.05, rel=0.2)
    assert np.mean(scores[same] >= threshold) == pytest.approx(distribution.tpr(threshold), abs=0.03)
    assert roc_curve(scores, same).auc() == pytest.approx(distribution.auc(), abs=0.02)


def test_one_run_of_each():
    assert all(isinstance(held, bool) for held in one_coverage("strong", 12, 0).values())
    assert set(one_threshold("mild", 15, 0.1, 0)) == {"identities", "pairs"}
    assert one_threshold("mild", 15, 0.001, 0)["identities"] is None
