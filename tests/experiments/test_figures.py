"""The figures of the appendix, at a tiny size."""

from __future__ import annotations

import itertools
import json

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from simtree.datasets import square_law_posterior
from simtree.experiments import _figures as figures
from simtree.experiments._results import Order
from simtree.metrics import roc_curve

pytestmark = pytest.mark.slow

SIZES = figures.Sizes(points=400, pairs=2_000, fresh=2_000, marks=50)
PICTURES = ("figures_square.png", "figures_split.png", "figures_tree.png", "figures_knots.png")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    figures.run(Order(folder, 2, 0, 1, "simtree reproduce figures --runs 2"), sizes=SIZES)
    return folder


@pytest.fixture(scope="module")
def result(out):
    return json.loads((out / "figures.json").read_text())


@pytest.fixture(scope="module")
def data():
    return figures.square_data(0, 0, SIZES)


def test_all_files_are_written_and_shown(out, result):
    text = (out / "figures.md").read_text()
    assert figures.section(result) + "\n" == text
    assert text.startswith("## ")
    for name in PICTURES:
        assert (out / name).read_bytes().startswith(b"\x89PNG")
        assert f"]({name})" in text


def test_the_same_order_gives_the_same_result_whatever_the_number_of_runs(result, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "write_figure", lambda file, figure: plt.close(figure))
    figures.run(Order(tmp_path, 1, 0, 1, "another command"), sizes=SIZES)
    again = json.loads((tmp_path / "figures.json").read_text())
    assert again["square"]["runs"] == result["square"]["runs"][:1]
    assert again["split"] == result["split"]
    assert again["knots"] == result["knots"]


def test_runs_differ(result):
    first, second = result["square"]["runs"]
    assert first != second


def test_squares_are_the_truth_and_distances_are_not(result):
    mean = {name: np.mean([found[name] for found in result["square"]["runs"]], axis=0) for name in figures.PROPOSALS}
    assert mean["C_sq"][0] > 0.63
    assert mean["C_sq"][0] > mean["C_diag"].max()
    assert mean["C_diag and sums"][-1] > mean["C_diag"][0]


def test_exact_aucs_of_the_square_law():
    """By numbers on a grid: each point of it is a same pair with the posterior's weight, and a different one with the rest."""
    points = figures.grid(0.0, 1.0, 300)
    x, x2 = (values.ravel() for values in np.meshgrid(points, points))
    posterior = square_law_posterior(x, x2)

    def auc(scores):
        # The AUC of scores with weights: ranks as a weighted sum over sorted groups.
        values, group = np.unique(scores, return_inverse=True)
        same, different = (np.bincount(group, weights=weights, minlength=len(values)) for weights in (posterior, 1 - posterior))
        below = np.cumsum(different) - different / 2
        return (same * below).sum() / (same.sum() * different.sum())

    assert auc(posterior) == pytest.approx(figures.POSTERIOR_AUC, abs=1e-9)
    assert auc(-np.abs(x - x2).round(9)) == pytest.approx(figures.DISTANCE_AUC, abs=1e-4)


@pytest.mark.parametrize("name", figures.PROPOSALS)
def test_maps_are_symmetric_and_not_flat(data, name):
    scores = figures.score_map(figures.square_tree(name, 3, data), 60)
    np.testing.assert_array_equal(scores, scores.T)
    assert len(np.unique(scores)) > 2


def test_a_diagonal_region_is_constant_along_the_diagonal_and_a_square_is_not(data):
    diagonal = figures.score_map(figures.square_tree("C_diag", 3, data), 64)
    square = figures.score_map(figures.square_tree("C_sq", 1, data), 64)
    for k in range(-63, 64):
        # Some pairs of one diagonal fall on both sides of a threshold by rounding only.
        assert np.unique(diagonal.diagonal(k)).size <= 2
    assert square[:28, :28].min() == square[36:, 36:].min() == 2.0
    assert square[:28, 36:].max() == 1.0


def test_the_split_is_symmetric_and_near_the_best_region(result):
    split = result["split"]
    assert split["largest_asymmetry"] == 0.0
    assert split["tpr_inside"] > split["fpr_inside"] + 0.2
    assert split["share_as_posterior"] > 0.8


def test_scores_of_the_tree_are_what_the_caption_computes(result):
    leaves = result["tree"]["leaves"]
    assert [leaf["score"] for leaf in leaves] == [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    assert all(8 - sum(leaf["subtracted"]) == leaf["score"] for leaf in leaves)
    assert leaves[-1]["subtracted"] == [4, 2, 1]
    assert sum(leaf["same"] + leaf["different"] for leaf in leaves) == SIZES.pairs


def test_cells_above_the_leaves_show_the_score_so_far():
    _, grown, _ = figures._knots(0, SIZES)
    texts = [text.get_text() for text in figures._draw_tree(grown).axes[0].texts]
    assert sorted(int(text.split()[-1]) for text in texts if "so far" in text) == [2, 4, 4, 6, 8, 8, 8]


def test_knots_grow_with_depth_and_stay(result):
    by_depth = result["knots"]["by_depth"]
    assert [entry["depth"] for entry in by_depth] == list(figures.KNOT_DEPTHS)
    assert len(by_depth[0]["fpr"]) == 3
    for shallow, deep in itertools.pairwise(by_depth):
        points = [set(zip(entry["fpr"], entry["tpr"], strict=True)) for entry in (shallow, deep)]
        assert points[0] < points[1]
        assert deep["training_auc"] > shallow["training_auc"]


def test_a_fresh_auc_is_below_the_best_possible(result):
    knots = result["knots"]
    assert knots["optimal"]["auc"] == pytest.approx(0.96, abs=0.001)
    assert max(entry["fresh_auc"] for entry in knots["by_depth"]) < knots["optimal"]["auc"] + 0.005


def test_training_and_fresh_points_differ():
    data = figures.square_data(0, 0, SIZES)
    assert len(np.unique(data.X)) == SIZES.points
    other = figures.square_data(0, 1, SIZES)
    assert not np.isin(data.X, other.X).any()
    assert set(np.unique(data.pairs)) <= set(range(SIZES.points))
    scores = square_law_posterior(data.X[data.pairs[:, 0], 0], data.X[data.pairs[:, 1], 0])
    assert roc_curve(scores, data.same).auc() > 0.6
