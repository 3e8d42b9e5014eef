"""What each display draws; what all of them must do is in contracts/test_displays.py."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from dataclasses import replace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.neighbors import KNeighborsClassifier

from simtree import CartSplitter, ClassifierSplitter, CutSplitter, LinearSplitter, SimilarityTree, evaluate
from simtree.evaluation._results import Band
from simtree.metrics import Roc, roc_curve
from simtree.pairs._coordinates import CoordinateSet
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
from simtree.trees import Explanation
from simtree.trees._rank_tree import TreeBuilder
from simtree.trees._regions import INSIDE, OUTSIDE, AxisRegion

SPLITTERS = [
    CutSplitter(),
    CartSplitter(),
    LinearSplitter(),
    ClassifierSplitter(KNeighborsClassifier(n_neighbors=1), max_samples=200),
]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tree(blobs):
    return SimilarityTree(max_depth=5, random_state=0).fit(*blobs)


# --- TreeDisplay


@pytest.mark.parametrize("max_depth", [0, 3, 9])
def test_cells_show_their_counts_and_scores(tree, max_depth):
    drawn = TreeDisplay.from_estimator(tree, max_depth=max_depth)
    grown, cells = tree.tree_, tree.tree_.cells
    assert sorted(drawn.text_) == np.flatnonzero(cells.depth <= max_depth).tolist()
    for cell, text in drawn.text_.items():
        name, same, different, *end = text.get_text().split("\n")
        assert name == f"$C_{{{cells.depth[cell]},{cells.rank[cell]}}}$"
        assert (same, different) == (f"{cells.n_same[cell]:,} same", f"{cells.n_different[cell]:,} different")
        if cells.inside[cell] < 0:
            assert end == [f"score {grown.scores[cell]:.0f}"]
        else:
            assert end == (["split further ..."] if cells.depth[cell] == max_depth else [])
    shown = [cell for cell in drawn.text_ if cells.inside[cell] >= 0 and cells.depth[cell] < max_depth]
    assert sorted(drawn.test_text_) == sorted(shown)


def test_more_similar_cells_are_further_left_and_deeper_ones_lower(tree):
    drawn = TreeDisplay.from_estimator(tree)
    cells = tree.tree_.cells
    for a, b in itertools.combinations(drawn.text_, 2):
        (xa, ya), (xb, yb) = drawn.text_[a].get_position(), drawn.text_[b].get_position()
        assert (cells.depth[a] < cells.depth[b]) == (ya > yb)
        if cells.depth[a] == cells.depth[b]:
            assert (cells.rank[a] < cells.rank[b]) == (xa < xb)


@pytest.mark.parametrize(("coordinate", "expected"), [("max", "max(size, size') ≤ 0.5"), ("min", "min(size, size') > 0.5")])
def test_a_single_test_is_written_as_it_is_inside(coordinate, expected):
    low, high = 0.25, 0.75
    alike = high if coordinate == "min" else low
    pairs = np.array([[low, high], [high, low], [alike, alike], [alike, alike]])[:, :, None]
    fitted = SimilarityTree(max_depth=1, splitter="cut", coordinates=[coordinate]).fit(pairs, [False, False, True, True])
    drawn = TreeDisplay.from_estimator(fitted, feature_names=["size"])
    assert drawn.test_text_[0].get_text() == expected


@pytest.mark.slow
def test_a_tree_has_a_title_within_its_figure(tree):
    for max_depth, title in ((1, "Similarity tree, 1 level of 5"), (9, "Similarity tree")):
        drawn = TreeDisplay.from_estimator(tree, max_depth=max_depth)
        drawn.figure_.canvas.draw()
        assert drawn.ax_.get_title() == title
        box = drawn.ax_.title.get_window_extent()
        assert drawn.figure_.bbox.y1 >= box.y1
        assert box.y0 > max(text.get_window_extent().y1 for text in drawn.text_.values())


def test_other_tests_are_counted(tree):
    drawn = TreeDisplay.from_estimator(tree)
    for cell, text in drawn.test_text_.items():
        n_more = len(tree.tree_.region(cell).coordinate) - 1
        assert (f"+ {n_more} more test" in text.get_text()) == (n_more > 0)


def overlaps(texts):
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    return [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


@pytest.fixture(scope="module", params=SPLITTERS, ids=lambda splitter: type(splitter).__name__)
def any_tree(request, blobs):
    return SimilarityTree(max_depth=4, splitter=request.param, n_pairs=2000, random_state=0).fit(*blobs)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "length"), [(None, 70), ((6, 3), 20), ((20, 12), 1)])
def test_texts_do_not_overlap(any_tree, size, length):
    ax = None if size is None else plt.figure(figsize=size).subplots()
    drawn = TreeDisplay.from_estimator(any_tree, feature_names=[f"{'W' * length}{j}" for j in range(4)], ax=ax)
    drawn.figure_.canvas.draw()
    assert not overlaps(drawn.ax_.texts)
    assert all(text.get_text().strip() for text in drawn.test_text_.values())


@pytest.mark.slow
@pytest.mark.parametrize("sides", ["000000", "111111", "010101", "001101", "0", "1"])
def test_a_lopsided_tree_is_drawn_without_overlap(sides):
    """At each level one cell is split: the inside (0) or the outside (1) child of the one before."""
    builder = TreeBuilder(CoordinateSet(("abs_diff",), 1), 6, 2**20, 2**20)
    ends = np.array([INSIDE], dtype=np.int32), np.array([OUTSIDE], dtype=np.int32)
    region = AxisRegion(np.zeros(1, dtype=np.int32), np.array([0.123456]), *ends, np.ones(1))
    cell, same, different = 0, 2**20, 2**20
    for side in map(int, sides):
        inside = same * 3 // 4, different // 4
        cell = builder.split(cell, region, *inside)[side]
        same, different = (same - inside[0], different - inside[1]) if side else inside
    drawn = TreeDisplay(builder.freeze(), max_depth=6, feature_names=["a feature with a long name"]).plot()
    assert len(drawn.text_) == 2 * len(sides) + 1
    assert not overlaps(drawn.ax_.texts)


def test_a_tree_without_splits_is_one_box():
    fitted = SimilarityTree(max_depth=2).fit([[[0.0], [1.0]], [[0.0], [1.0]]], [True, False])
    drawn = TreeDisplay.from_estimator(fitted)
    assert [text.get_text().split("\n")[-1] for text in drawn.text_.values()] == ["score 4"]


@pytest.mark.slow
def test_odd_feature_names_are_drawn_as_they_are(tree):
    drawn = TreeDisplay.from_estimator(tree, feature_names=["$\\bad{", "a\nb", "", "%s {0}"])
    drawn.figure_.canvas.draw()


def test_feature_names_of_a_data_frame_are_used(blobs):
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    frame = pandas.DataFrame(X, columns=["ann", "bob", "cyd", "dan"])
    drawn = TreeDisplay.from_estimator(SimilarityTree(max_depth=2, random_state=0).fit(frame, y))
    assert all(any(name in text.get_text() for name in frame.columns) for text in drawn.test_text_.values())


def test_wrong_arguments_of_a_tree_display(tree):
    with pytest.raises(ValueError, match="feature_names has 1 name; X had 4 features"):
        TreeDisplay.from_estimator(tree, feature_names=["a"])
    with pytest.raises(ValueError, match="max_depth=-1"):
        TreeDisplay.from_estimator(tree, max_depth=-1)
    with pytest.raises(TypeError, match="not a SimilarityTree"):
        TreeDisplay.from_estimator(KNeighborsClassifier().fit([[0.0], [1.0]], [0, 1]))


# --- RocDisplay


def test_the_training_curve_goes_through_the_knots(tree):
    drawn = RocDisplay.from_estimator(tree)
    for line in (drawn.line_, drawn.knots_):
        np.testing.assert_array_equal(line.get_xdata(), tree.roc_.fpr)
        np.testing.assert_array_equal(line.get_ydata(), tree.roc_.tpr)
    assert drawn.line_.get_label() == f"SimilarityTree in training (AUC = {tree.auc_:.3f})"
    assert (drawn.ax_.get_xlabel(), drawn.ax_.get_ylabel()) == ("False positive rate", "True positive rate")


@pytest.mark.parametrize("kind", ["points", "pairs", "index"])
def test_held_out_auc_is_the_score(tree, blobs, given_pairs, kind):
    X, y = blobs
    pairs, same = given_pairs
    index = np.random.default_rng(0).permutation(len(X)).reshape(-1, 2)
    data = {
        "points": {"X": X[:60], "y": y[:60]},
        "pairs": {"X": pairs, "y": same},
        "index": {"X": X, "y": y[index[:, 0]] == y[index[:, 1]], "pairs": index},
    }[kind]
    drawn = RocDisplay.from_estimator(tree, **data)
    assert drawn.roc.auc() == tree.score(**data)
    assert drawn.line_.get_label() == f"SimilarityTree (AUC = {tree.score(**data):.3f})"


@pytest.mark.parametrize("given", [{"X": [[0.0] * 4]}, {"y": [1]}, {"pairs": [[0, 1]]}])
def test_incomplete_data_is_refused(tree, given):
    with pytest.raises(ValueError, match="give X and y"):
        RocDisplay.from_estimator(tree, **given)


def test_a_log_axis_has_no_zeros_and_shows_the_curve(tree):
    drawn = RocDisplay.from_estimator(tree, log_fpr=True)
    roc = tree.roc_
    for line in drawn.ax_.lines:
        assert (line.get_xdata() > 0).all()
    fpr, tpr = drawn.line_.get_data()
    assert (np.diff(fpr) >= 0).all()
    assert (np.diff(tpr) >= 0).all()
    assert set(roc.fpr[roc.fpr > 0]) <= set(fpr)
    # Between knots the drawn line is the curve itself, not a chord of the log axis.
    inner = ~np.isin(fpr, roc.fpr)
    np.testing.assert_array_equal(tpr[inner], roc.at(fpr[inner]))
    assert drawn.ax_.get_xscale() == "log"
    assert drawn.ax_.get_xlim()[0] == pytest.approx(min(0.1, roc.fpr[roc.fpr > 0].min()))
    first = roc.at(drawn.ax_.get_xlim()[0])
    assert first - 0.12 < drawn.ax_.get_ylim()[0] < first


def test_several_curves_share_axes(tree):
    fine = Roc([0, 1e-6, 0.5, 1], [0, 0.4, 0.8, 1])
    first = RocDisplay(fine, name="fine").plot(log_fpr=True)
    second = RocDisplay(Roc([0, 0.2, 1], [0, 0.7, 1]), name="coarse", knots=False).plot(first.ax_, color="black")
    ax = first.ax_
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[0] == pytest.approx(1e-6)
    assert ax.get_ylim()[0] == pytest.approx(-0.01)
    assert first.chance_ is second.chance_
    assert first.line_ in ax.lines
    assert second.line_.get_color() == "black"
    assert second.knots_ is None
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [f"fine (AUC = {fine.auc():.3f})", "coarse (AUC = 0.750)", "chance"]


@pytest.mark.parametrize("log_fpr", [False, True])
def test_a_perfect_curve_is_drawn(log_fpr):
    drawn = RocDisplay(Roc([0, 0, 1], [0, 1, 1])).plot(log_fpr=log_fpr)
    drawn.figure_.canvas.draw()
    assert drawn.line_.get_label() == "AUC = 1.000"


def test_from_predictions_draws_the_curve_of_the_scores(rng):
    scores, same = rng.normal(size=500), rng.random(500) < 0.3
    drawn = RocDisplay.from_predictions(same, scores, knots=True)
    assert drawn.roc == roc_curve(scores, same)
    drawn.figure_.canvas.draw()


# --- ExplanationDisplay and PruningDisplay


def test_bars_are_the_contributions_and_the_rest_is_summed_up(tree):
    why = tree.explain_pair(np.zeros(4), np.ones(4))
    order = why.order()
    widths = [bar.get_width() for bar in ExplanationDisplay(why).plot().bars_]
    assert widths == why.contributions[order].tolist()
    short = ExplanationDisplay(why, max_features=3).plot()
    assert [bar.get_width() for bar in short.bars_] == [*why.contributions[order[:3]], why.contributions[order[3:]].sum()]
    assert short.ax_.get_yticklabels()[-1].get_text() == "1 more feature"
    assert short.bars_[-1].get_hatch()


def test_many_small_contributions_do_not_dwarf_the_others():
    why = Explanation(
        tuple(f"x{j}" for j in range(40)), np.zeros(40), np.ones(40), np.r_[[0.5, -0.25], np.full(38, 0.2)], 0.0, 7.85
    )
    drawn = ExplanationDisplay(why, max_features=2, threshold=8.0).plot()
    left, right = drawn.ax_.get_xlim()
    assert left < -0.25
    assert 0.5 < right < 1.5 < drawn.bars_[-1].get_width()
    assert [text.get_text() for text in drawn.ax_.texts] == ["+7.6"]
    assert drawn.ax_.get_title().endswith("rejected at threshold 8")


def test_pruning_lines_are_the_path(tree):
    path = tree.cost_complexity_path()
    drawn = PruningDisplay(path, chosen=path.penalties[1]).plot()
    np.testing.assert_array_equal(drawn.line_.get_ydata()[:-1], path.aucs)
    np.testing.assert_array_equal(drawn.cells_line_.get_ydata()[:-1], path.n_leaves)
    np.testing.assert_array_equal(drawn.line_.get_xdata()[1:-1], path.penalties[1:])
    assert drawn.ax_.lines[-1].get_xdata()[0] == path.penalties[1]


# --- displays of an evaluation


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 4)
    return rng.normal(size=(60, 4))[y] + 0.4 * rng.normal(size=(240, 4)), y


@pytest.fixture(scope="module")
def judged(people):
    """A tree with a calibrated threshold, and its evaluation on the same held-out people."""
    X, y = people
    tree = SimilarityTree(max_depth=6, random_state=0).fit(X[:80], y[:80])
    tree.calibrate_threshold(X[80:], y[80:], max_fpr=0.1, confidence=None)
    tree.threshold_report_ = replace(tree.threshold_report_, max_fpr=0.1, confidence=0.95)  # as if there were more people
    return tree, evaluate(tree, X[80:], y[80:])


def test_det_curve_has_the_rates_and_a_band_around_them(judged):
    _, found = judged
    drawn = DetDisplay(found, name="tree").plot()
    fmr, fnmr = drawn.line_.get_data()
    half = 0.5 / found.n_different, 0.5 / found.n_same
    np.testing.assert_allclose(fmr, np.clip(found.roc.fpr, half[0], 1 - half[0]))
    np.testing.assert_allclose(fnmr, np.clip(1 - found.roc.tpr, half[1], 1 - half[1]))
    # Equal distances on the axes are equal differences of normal deviates.
    places = drawn.ax_.transData.transform([(ndtr(z), 0.5) for z in (-2.0, -1.0, 0.0)])[:, 0]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1])
    assert drawn.eer_.get_xydata()[0].tolist() == pytest.approx([found.eer.value] * 2)
    at = np.flatnonzero(found.band.thresholds == found.threshold)[0]
    assert drawn.point_.get_xydata()[0].tolist() == pytest.approx([found.band.fpr[at], 1 - found.band.tpr[at]])
    assert "95 % band, for new identities" in [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    drawn.figure_.canvas.draw()
    assert share_inside(drawn.band_, found.band.fpr, 1 - found.band.tpr) > 0.9


def share_inside(band, x, y):
    """Share of the points of a curve, but for its ends, that lie in a band."""
    return band.get_path().contains_points(np.column_stack([x, y])[5:-5], radius=1e-6).mean()


def test_curves_share_axes(judged):
    _, found = judged
    first = DetDisplay(found, name="one").plot()
    DetDisplay(found, name="two").plot(first.ax_)
    labels = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert [label for label in labels if "(EER" in label] == [
        f"{name} (EER = {found.eer.value:.3g})" for name in ("one", "two")
    ]
    assert labels.count("95 % band, for new identities") == 1


def test_roc_band_holds_the_curve(judged):
    _, found = judged
    drawn = RocDisplay(found.roc, band=found.band, knots=False).plot()
    assert share_inside(drawn.band_, found.band.fpr, found.band.tpr) > 0.9
    assert RocDisplay(found.roc).plot().band_ is None


@pytest.mark.parametrize("log_fpr", [False, True])
def test_the_threshold_in_use_is_marked_on_the_curve(judged, people, log_fpr):
    X, y = people
    tree, _ = judged
    drawn = RocDisplay.from_estimator(tree, X[80:], y[80:], log_fpr=log_fpr)
    scores = tree.pair_score(np.column_stack(np.triu_indices(160, k=1)), X[80:])
    u, v = (y[80:][rows] for rows in np.triu_indices(160, k=1))
    accepted = scores >= tree.threshold_
    assert drawn.point_.get_xydata()[0].tolist() == pytest.approx([accepted[u != v].mean(), accepted[u == v].mean()])
    assert RocDisplay.from_estimator(tree).point_ is None


def test_a_band_needs_held_out_data(tree):
    with pytest.raises(ValueError, match="band=True needs held-out data"):
        RocDisplay.from_estimator(tree, band=True)


def test_cmc_curve(judged):
    _, found = judged
    drawn = CmcDisplay(found).plot()
    np.testing.assert_array_equal(drawn.line_.get_ydata(), found.cmc)
    assert drawn.ax_.get_ylim()[0] == 0.0
    assert drawn.chance_.get_ydata()[:2].tolist() == pytest.approx([1 / 40, 2 / 40])
    assert "160 samples" in drawn.ax_.get_title()
    with pytest.raises(ValueError, match="evaluation has no searches"):
        CmcDisplay.from_predictions([True, False], [2, 1])


def test_histograms_are_shares(judged):
    _, found = judged
    drawn = ScoreHistogramDisplay(found).plot(threshold=20.0)
    for area in (drawn.same_, drawn.different_):
        assert area.get_data().values.sum() == pytest.approx(1.0)
    assert [text.get_text() for text in drawn.ax_.get_legend().get_texts()] == ["different pairs", "same pairs", "threshold 20"]
    usual = ScoreHistogramDisplay(found).plot()
    assert usual.ax_.get_legend().get_texts()[-1].get_text() == f"threshold {found.threshold:.4g}"


def test_the_threshold_in_use_is_marked_without_a_calibration(judged, people):
    X, y = people
    tree = copy.copy(judged[0]).set_threshold(3.0)
    drawn = ThresholdDisplay.from_estimator(tree, X[80:], y[80:])
    band, used = drawn.evaluation.band, drawn.evaluation.threshold
    assert used == band.thresholds[np.flatnonzero(band.thresholds >= 3.0)[-1]]
    labels = [text.get_text() for text in drawn.tpr_ax_.get_legend().get_texts()]
    assert labels == [band.label, "false positive rate", f"threshold {used:.4g}", "true positive rate"]
    assert [text.get_text() for text in drawn.tpr_ax_.texts] == [f"{100 * band.tpr[band.thresholds == used][0]:.3g} %"]
    never = ThresholdDisplay.from_estimator(tree.set_threshold(np.inf), X[80:], y[80:])
    assert "threshold" not in " ".join(text.get_text() for text in never.tpr_ax_.get_legend().get_texts())


def test_the_chosen_threshold_is_marked(judged, people):
    X, y = people
    tree, _ = judged
    drawn = ThresholdDisplay.from_estimator(tree, X[80:], y[80:])
    labels = [text.get_text() for text in drawn.tpr_ax_.get_legend().get_texts()]
    band = drawn.evaluation.band
    chosen = f"chosen threshold {tree.threshold_:.4g}"
    assert labels == [band.label, "false positive rate", chosen, "target 0.1", "true positive rate"]
    np.testing.assert_allclose(drawn.tpr_line_.get_ydata(), band.tpr)
    np.testing.assert_allclose(drawn.fpr_line_.get_ydata(), np.maximum(band.fpr, 0.5 / drawn.evaluation.n_different))
    assert (drawn.ax_.get_yscale(), drawn.tpr_ax_.get_yscale()) == ("log", "linear")
    at = np.flatnonzero(band.thresholds >= tree.threshold_)[-1]
    for ax, rate in ((drawn.ax_, band.fpr[at]), (drawn.tpr_ax_, band.tpr[at])):
        assert [text.get_text() for text in ax.texts] == [f"{100 * rate:.3g} %"]
    before = len(drawn.figure_.axes)
    assert len(drawn.plot(drawn.ax_).figure_.axes) == before


def test_importances_are_sorted_and_summed_up(tree):
    drawn = ImportanceDisplay.from_estimator(tree, max_features=2)
    widths = [bar.get_width() for bar in drawn.bars_]
    assert sum(widths) == pytest.approx(1.0)
    assert widths[:2] == sorted(tree.feature_importances_, reverse=True)[:2]


def test_importances_have_the_names_of_a_data_frame(blobs):
    X, y = blobs
    tree = SimilarityTree(max_depth=3, random_state=0).fit(pd.DataFrame(X, columns=["ear", "nose", "eye", "chin"]), y)
    labels = [label.get_text() for label in ImportanceDisplay.from_estimator(tree).ax_.get_yticklabels()]
    assert sorted(labels) == ["chin", "ear", "eye", "nose"]


def test_bands_never_fall(blobs):
    """Neither edge of a band turns back, however the intervals of single thresholds jump."""
    X, y = blobs
    tree = SimilarityTree(max_depth=4, random_state=0).fit(X[::2], y[::2])
    found = evaluate(tree, X[1::2], y[1::2])
    jumping = np.array([[0.3, 0.4], [0.1, 0.9], [0.2, 0.6]])
    found = dataclasses.replace(found, band=Band(np.array([3.0, 2.0, 1.0]), *np.full((2, 3), 0.3), jumping, jumping))
    x, y = RocDisplay(found.roc, band=found.band).plot().band_.get_xy().T
    upper, lower = slice(0, 4), slice(-2, -6, -1)
    for edge in (upper, lower):
        assert (np.diff(x[edge]) >= 0).all()
        assert (np.diff(y[edge]) >= 0).all()
