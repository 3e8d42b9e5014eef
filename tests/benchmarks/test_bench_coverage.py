"""The page on intervals is generated from its results, and populations have the true rates that they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench_coverage import make_page, one_run, outside
from populations import BENIGN, POPULATIONS
from simtree.pairs._sampling import PairSampler

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
RESULT = json.loads((DOCS / "results" / "coverage.json").read_text())


def test_the_page_is_generated_from_the_results():
    assert (DOCS / "intervals.md").read_text() == make_page(RESULT)


def test_benign_people_are_covered_without_many_warnings():
    """At 60 people, with a margin for chance."""
    rows = [row for row in RESULT["coverage"] if row["population"] in BENIGN and row["n_people"] == 60]
    assert np.mean([row["warned"] for row in rows]) <= 0.15
    for row in rows:
        for name, metric in row["metrics"].items():
            assert metric["covered_or_warned"] >= 0.95 - 4 * (0.05 * 0.95 / row["runs"]) ** 0.5, (row["population"], name)


def test_what_covers_too_little_is_listed():
    low, _ = outside(RESULT["coverage"])
    for row in RESULT["coverage"]:
        for name, metric in row["metrics"].items():
            listed = any(row["population"] in text and name in text and str(row["n_people"]) in text for text in low)
            assert listed or metric["covered_or_warned"] >= 0.9 or metric["covered"] >= 0.9, (row["population"], name)


@pytest.mark.parametrize("name", ["normal 0.7", "exponential 0.5", "Zipf counts", "10 % goats"])
def test_populations_have_the_true_rates_that_they_say(name):
    population = POPULATIONS[name]
    threshold = population.threshold(0.05)
    found = []
    for seed in range(12):
        drawn = population.draw(150, np.random.default_rng(seed))
        pairs = PairSampler(drawn.people).all_pairs()
        accepted = drawn.scores[pairs.first, pairs.second] >= threshold
        found.append([accepted[~pairs.same].mean(), accepted[pairs.same].mean()])
    spread = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - [0.05, population.tpr(threshold)]) <= 5 * spread).all()


def test_one_run_has_ends_for_each_metric():
    found, again = one_run("normal 0.3", 20, 0), one_run("normal 0.3", 20, 0)
    assert set(found["ends"]) == set(RESULT["coverage"][0]["metrics"])
    for name, (low, high) in found["ends"].items():
        assert 0.0 <= low < high <= 1.0
        np.testing.assert_array_equal(again["ends"][name], [low, high])
