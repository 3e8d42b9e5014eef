"""The simulation of out-of-bag figures at a tiny size: it runs, and finds what is known of noise."""

from __future__ import annotations

import numpy as np
import pytest

import bench_out_of_bag as bench

pytestmark = pytest.mark.slow


def test_features_that_saw_all_labels_leak_on_noise(monkeypatch):
    """This is why a forest refuses to compute out-of-bag scores of them."""
    monkeypatch.setattr(
        bench, "fitted", lambda *given, fit=bench.fitted, **options: fit(*given, **{**options, "n_estimators": 40})
    )
    found = bench.summary([bench.one_leak(seed, 1) for seed in range(2)])
    assert found["features"]["mean"][0] == pytest.approx(0.5, abs=0.05)
    assert found["whitened with all labels"]["mean"][0] > 0.55
    assert found["discriminant directions of all labels"]["mean"][0] > 0.55


def test_one_run_of_each(monkeypatch):
    monkeypatch.setattr(bench, "N_GROUPS", 1)
    curve = bench.one_curve(0, 20, 2.0, 1)
    assert len(curve["out of bag"]) == len(curve["held out"]) == 1 + len(bench.FPR)
    assert 0.8 < curve["out of bag"][0] <= 1.0
    refill = bench.one_refill(0, 2)
    assert refill["with refill"][0] > refill["without refill"][0] - 0.05 > 0.6


def test_summary_is_the_mean_and_its_standard_error():
    found = bench.summary([{"a": [1.0]}, {"a": [3.0]}])
    assert found == {"a": {"mean": [2.0], "error": [1.0]}}
    assert np.isnan(bench.summary([{"a": [1.0]}])["a"]["error"][0])
