"""The look at the paper's first lemma, at a tiny size."""

from __future__ import annotations

import json

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from simtree.experiments import _lemma as lemma
from simtree.experiments._results import Order
from simtree.pairs._pair_features import pair_features

pytestmark = pytest.mark.slow

SIZES = lemma.Sizes(pairs=3_000, fresh=5_000, marks=50)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lemma")
    lemma.run(Order(folder, 2, 0, 1, "simtree reproduce lemma --runs 2"), sizes=SIZES)
    return folder


@pytest.fixture(scope="module")
def result(out):
    return json.loads((out / "lemma.json").read_text())


def test_all_files_are_written_and_shown(out, result):
    text = (out / "lemma.md").read_text()
    assert lemma.section(result) + "\n" == text
    assert text.startswith("## ")
    assert "Lemma 1" in text
    assert "{(0, 0), (1, 1)}" in text
    assert "{(0, 1), (1, 0)}" in text
    assert "](lemma.png)" in text
    assert (out / "lemma.png").read_bytes().startswith(b"\x89PNG")


def test_f_is_equal_on_the_counter_example_and_oblique_coordinates_are_not(result):
    straight, crossed = result["pairs"]
    assert straight["f"] == crossed["f"]
    assert straight["f"] == pytest.approx([0.5**0.5] * 4)
    assert straight["oblique"] == pytest.approx([2**0.5, 0.0])
    assert crossed["oblique"] == pytest.approx([0.0, 2**0.5])
    assert (straight["product"], crossed["product"]) == (1.0, -1.0)


def test_exchanging_one_feature_changes_the_kind_and_the_completed_map_but_not_f():
    pairs, same = lemma.draw_pairs(100, np.random.default_rng(0))
    swapped = pairs.copy()
    swapped[:, :, 1] = pairs[:, ::-1, 1]
    kind = (swapped[:, 0] - swapped[:, 1]).prod(axis=1) > 0
    np.testing.assert_array_equal(kind, ~same)
    np.testing.assert_array_equal(pair_features(swapped), pair_features(pairs))
    for n_directions in (1, 2):
        before, after = (pair_features(lemma.with_oblique(points, n_directions)) for points in (pairs, swapped))
        assert (np.abs(before - after).max(axis=1) > 1e-6).all()


def test_an_added_feature_is_an_oblique_coordinate():
    pairs, _ = lemma.draw_pairs(20, np.random.default_rng(1))
    differences = pairs[:, 0] - pairs[:, 1]
    added = pair_features(lemma.with_oblique(pairs, 2), kinds=["abs_diff"])[:, 2:] * 2**0.5
    np.testing.assert_allclose(added, np.abs(differences @ lemma.DIRECTIONS.T), atol=1e-12)


def test_twice_as_many_pairs_are_alike_with_each_feature_and_one_in_the_end(result):
    assert [entry["alike_in_f"] for entry in result["alike"]] == [1, 2, 4, 8, 16, 32]
    assert [entry["pairs"] for entry in result["alike"]] == [1, 2, 4, 8, 16, 32]
    assert [entry["alike_with_them"] for entry in result["alike"]] == [1] * 6


def test_a_tree_on_f_learns_nothing_and_with_oblique_coordinates_nearly_all(result):
    assert len(result["runs"]) == 2
    assert result["runs"][0] != result["runs"][1]
    for found in result["runs"]:
        blind, one, two = (found[name] for name in result["learners"])
        assert blind["fresh"] == pytest.approx(0.5, abs=0.03)
        assert blind["training"] > 0.55
        assert one["fresh"] > 0.9
        assert two["fresh"] > 0.97


def test_a_run_depends_on_the_seed_and_its_number_alone(result):
    assert lemma.learning_run(0, 1, SIZES) == result["runs"][1]
    assert lemma.learning_run(1, 1, SIZES) != result["runs"][1]


def test_finished_runs_are_not_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr(lemma, "write_figure", lambda file, figure: plt.close(figure))
    lemma.run(Order(tmp_path, 1, 0, 1, "first"), sizes=SIZES)
    done = []
    learn = lemma.learning_run
    monkeypatch.setattr(lemma, "learning_run", lambda *arguments: done.append(arguments[1]) or learn(*arguments))
    lemma.run(Order(tmp_path, 2, 0, 1, "second"), sizes=SIZES)
    assert done == [1]
    assert len(json.loads((tmp_path / "lemma.json").read_text())["runs"]) == 2
