"""The simulation of guarantees: its truth, its summary, and what it calls broken."""

from __future__ import annotations

import numpy as np
import pytest

import bench_guarantees as bench
from populations import FURTHER, POPULATIONS
from simtree.evaluation._guarantee import ASSUMPTIONS


@pytest.mark.slow
def test_the_true_rate_is_that_of_many_pairs_of_people():
    population = POPULATIONS["exponential 0.5"]
    people, effects, _ = population.draw_samples(400_000, np.random.default_rng(1), 1)
    noise = np.random.default_rng(2).normal(size=len(people)) * np.sqrt(bench.OF_PAIR**2 + bench.NOISE**2)
    scores = effects + np.roll(effects, 1) + noise
    for threshold in (1.0, 2.0, 3.0):
        assert np.mean(scores >= threshold) == pytest.approx(population.fpr_of_people(threshold), rel=0.05)


@pytest.mark.parametrize("name", ["Laplace", "gamma 0.5", "Pareto 3"])
def test_further_effects_are_scaled(name):
    effects = FURTHER[name].effects(np.random.default_rng(0), 400_000)
    assert np.mean(effects) == pytest.approx(0.0, abs=0.01)
    assert np.std(effects) == pytest.approx(0.5, rel=0.1)


def test_further_populations_take_fewer_runs_and_have_their_own_table(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "POPULATIONS", {"no effects": POPULATIONS["no effects"]})
    monkeypatch.setattr(bench, "FURTHER", {"Laplace": FURTHER["Laplace"]})
    monkeypatch.setattr(bench, "N_PEOPLE_FURTHER", (40,))
    monkeypatch.setattr(bench, "RUNS_FURTHER", 1)
    stored = bench.simulate(tmp_path / "guarantees.json", 2, 1, [40])
    assert [(cell["population"], cell["runs"]) for cell in stored["cells"]] == [("no effects", 2), ("Laplace", 1)]
    assert bench.simulate(tmp_path / "guarantees.json", 2, 1, [40]) == stored  # nothing is left to do
    _, further = bench.make_page(stored).split("## Further populations")
    assert "| Laplace | 0.0 / 100.0 |" in further
    assert "no effects |" not in further.split("## Broken promises")[0]


def test_a_run_has_an_outcome_for_each_target_and_assumption():
    outcomes = bench.one_run("no effects", 90, 0)
    assert [(one["target"], one["assume"]) for one in outcomes] == [(t, a) for t in bench.TARGETS for a in ASSUMPTIONS]
    assert outcomes == bench.one_run("no effects", 90, 0)
    assert 0.0 < outcomes[0]["fpr"] <= 0.01
    assert outcomes[1]["needed"] == 597


def test_what_is_broken():
    row = {"target": 0.01, "assume": "regular", "exceeded": 8, "refused": 0, "relative_fpr": 0.5, "needed": None}
    cell = {"population": "normal 0.3", "n_people": 80, "runs": 100, "rows": [row]}
    assert not list(bench.broken([cell]))  # 5 % plus three standard errors are 11.5 of 100
    bad = {**cell, "rows": [{**row, "exceeded": 12}]}
    assert [text.split(":")[0] for text in bench.broken([bad])] == [
        "normal 0.3, 80 people, target 0.01, assume='regular'",
        "normal 0.3, all cells, assume='regular'",
    ]
    assert "exceeded in 27 of 300 runs" in list(bench.broken([{**cell, "rows": [{**row, "exceeded": 9}]}] * 3))[-1]


def test_the_page_is_made_from_the_stored_results():
    rows = bench.summarise([bench.one_run("no effects", 60, seed) for seed in range(2)])
    stored = {"versions": {"simtree": "0"}, "cells": [{"population": "no effects", "n_people": 60, "runs": 2, "rows": rows}]}
    page = bench.make_page(stored)
    assert "| no effects (benign) | 0.0 / " in page
    assert "## What cannot be covered" in page
