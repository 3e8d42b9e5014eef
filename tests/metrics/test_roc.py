"""ROC curves, areas, distances and rates, against hand-worked cases, scikit-learn and plain numerics."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simtree.metrics import (
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

DIAGONAL = Roc([0, 1], [0, 1])
PERFECT = Roc([0, 0, 1], [0, 1, 1])
WORST = Roc([0, 1, 1], [0, 0, 1])
HALF = Roc([0, 0, 1, 1], [0, 0.5, 0.5, 1])  # jumps at both ends, crosses the diagonal in the middle

SETTINGS = settings(deadline=None, max_examples=40)


# --- strategies and plain restatements ------------------------------------------------------------------------------


@st.composite
def curves(draw: st.DrawFn) -> Roc:
    """Curves from small cell counts: many shared breakpoints, vertical and flat segments, repeated knots."""
    cells = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=7))
    different, same = np.cumsum(np.array([(0, 0), *cells]), axis=0).T
    assume(different[-1] > 0 and same[-1] > 0)
    return Roc(different / different[-1], same / same[-1])


@st.composite
def scored_pairs(draw: st.DrawFn) -> tuple[list[int], list[bool]]:
    rows = draw(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=25))
    scores, same = [list(column) for column in zip(*rows, strict=True)]
    assume(any(same) and not all(same))
    return scores, same


def dense_distance(roc: Roc, reference: Roc, p: float, n: int = 100_000) -> float:
    """Midpoint rule; off the knots np.interp is plain interpolation. Error of the integral: a few / n."""
    x = (np.arange(n) + 0.5) / n + 1e-9 / n
    gap = np.interp(x, roc.fpr, roc.tpr) - np.interp(x, reference.fpr, reference.tpr)
    return float(np.mean(np.abs(gap) ** p) ** (1 / p))


def many_ties(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    same = rng.random(n) < 0.3
    return np.round(rng.normal(size=n) + same, 1) / 4, same


# --- Roc ------------------------------------------------------------------------------------------------------------


def test_roc_is_a_value() -> None:
    a = Roc([0, 0.5, 1], [0, 0.75, 1], [math.inf, 2, 1])
    b = Roc(np.array([0, 0.5, 1]), (0, 0.75, 1), thresholds=[math.inf, 2.0, 1.0])
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b}) == 1
    assert a != Roc([0, 0.5, 1], [0, 0.75, 1])
    assert Roc([0, 0.5, 1], [0, 0.75, 1]) != a
    assert a != Roc([0, 0.5, 1], [0, 0.75, 1], [math.inf, 2, 0])
    assert a != Roc([0, 0.5, 1], [0, 0.5, 1], [math.inf, 2, 1])
    assert a != Roc([0, 0.25, 1], [0, 0.75, 1], [math.inf, 2, 1])
    assert a != Roc([0, 0.5, 0.5, 1], [0, 0.75, 0.75, 1])
    assert a != "roc"
    assert (a == 1) is False


def test_negative_zero_keeps_equality_and_hash_in_step() -> None:
    a, b = Roc([-0.0, 1], [0.0, 1]), Roc([0.0, 1], [-0.0, 1])
    assert a == b
    assert hash(a) == hash(b)


def test_roc_copies_and_freezes_its_arrays() -> None:
    fpr = np.array([0, 0.5, 1.0])
    roc = Roc(fpr, [0, 0.75, 1], [math.inf, 2, 1])
    fpr[1] = 0.25
    assert roc.fpr[1] == 0.5
    assert roc.fpr.dtype == roc.tpr.dtype == np.float64
    for array in (roc.fpr, roc.tpr, roc.thresholds):
        with pytest.raises(ValueError, match="read-only"):
            array[1] = 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        roc.fpr = fpr  # type: ignore[misc]


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda roc: pickle.loads(pickle.dumps(roc))])
def test_copies_are_equal_and_still_frozen(clone) -> None:
    roc = Roc([0, 0.5, 1], [0, 0.75, 1], [math.inf, 2, 1])
    twin = clone(roc)
    assert twin == roc
    assert not (twin.fpr.flags.writeable)
    assert not (twin.tpr.flags.writeable)
    assert not (twin.thresholds.flags.writeable)


def test_repr_is_short() -> None:
    assert repr(PERFECT) == "Roc(auc=1, n_knots=3)"
    assert repr(Roc([0, 0.5, 1], [0, 0.75, 1], [math.inf, 2, 1])) == "Roc(auc=0.625, n_knots=3, with thresholds)"


def test_at_takes_the_top_of_a_vertical_segment() -> None:
    roc = Roc([0, 0, 0.25, 0.25, 1, 1], [0, 0.125, 0.25, 0.5, 0.75, 1])
    value = roc.at(0.25)
    assert value == 0.5
    assert type(value) is float
    assert roc.at(0) == 0.125
    assert roc.at(1) == 1.0
    assert roc.at(0.125) == 0.1875
    np.testing.assert_array_equal(roc.at([[0.125], [0.625]]), [[0.1875], [0.625]])
    assert roc.at([]).shape == (0,)


@given(curves(), st.lists(st.floats(0, 1), min_size=2, max_size=10))
@SETTINGS
def test_at_is_monotone_and_within_the_square(roc: Roc, targets: list[float]) -> None:
    value = roc.at(sorted(targets))
    assert (np.diff(value) >= -1e-15).all()
    assert value.min() >= 0
    assert value.max() <= 1
    off_knots = np.setdiff1d(targets, roc.fpr)
    np.testing.assert_allclose(roc.at(off_knots), np.interp(off_knots, roc.fpr, roc.tpr), atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [0]), r"fpr must have at least 2 knots, got 1: include both \(0, 0\) and \(1, 1\)\."),
        (([0, 1], [0, 0.5, 1]), r"tpr must have one value per knot, got 3 for 2 of fpr: pass equal lengths\."),
        (([0.1, 1], [0, 1]), r"fpr must go from 0 to 1, got 0\.1 to 1\.0: include both knots"),
        (([0, 1], [0, 0.9]), r"tpr must go from 0 to 1, got 0\.0 to 0\.9: include both knots"),
        (([0, math.nan], [0, 1]), r"fpr must go from 0 to 1, got 0\.0 to nan: include"),
        (([0, 0.6, 0.4, 1], [0, 0.5, 0.5, 1]), r"fpr must never decrease, got 0\.6 then 0\.4 at knot 2: sort the knots"),
        (([0, 0.5, 1], [0, math.nan, 1]), r"tpr must never decrease, got 0\.0 then nan at knot 1: sort .* drop NaN\."),
        (([0, math.inf, math.inf, 1], [0, 0, 1, 1]), r"fpr must never decrease, got inf then 1\.0 at knot 3"),
        (([[0, 1]], [0, 1]), r"fpr must be one-dimensional, got shape \(1, 2\): flatten it\."),
        ((["a", "b"], [0, 1]), r"fpr must hold real numbers, got \['a', 'b'\]: convert it to floats\."),
        (
            ([0, 1], [0, 1], [math.inf]),
            r"thresholds must have one value per knot, got 1 for 2 knots: pass equal lengths or None",
        ),
        (([0, 1], [0, 1], [3, 2]), r"thresholds must start with inf, got 3\.0: .* put inf first\."),
        (([0, 1], [0, 1], [math.nan, 2]), r"thresholds must start with inf, got nan"),
        (([0, 0.5, 1], [0, 0.5, 1], [math.inf, 2, 2]), r"strictly decreasing after the first, got \[2\.0, 2\.0\]: group tied"),
        (([0, 1], [0, 1], [math.inf, math.inf]), r"thresholds must be finite and strictly decreasing .* got \[inf\]"),
        (([0, 0.5, 1], [0, 0.5, 1], [math.inf, math.nan, 2]), r"thresholds must be finite .* got \[nan, 2\.0\]"),
    ],
)
def test_roc_refuses_what_is_no_curve(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Roc(*arguments)


def test_messages_stay_short_for_long_input() -> None:
    with pytest.raises(ValueError, match="finite and strictly decreasing") as caught:
        Roc(np.linspace(0, 1, 500), np.linspace(0, 1, 500), np.r_[math.inf, np.arange(499)])
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)


# --- roc_curve and areas --------------------------------------------------------------------------------------------


def test_roc_curve_by_hand_groups_ties() -> None:
    # 5: S | 4: S D | 2: D D | 1: S
    roc = roc_curve([4, 2, 5, 1, 4, 2], [True, False, True, True, False, False])
    np.testing.assert_array_equal(roc.fpr, [0, 0, 1 / 3, 1, 1])
    np.testing.assert_array_equal(roc.tpr, [0, 1 / 3, 2 / 3, 2 / 3, 1])
    np.testing.assert_array_equal(roc.thresholds, [math.inf, 5, 4, 2, 1])
    # Same 5 beats 3; same 4 beats 2 and ties 1; same 1 beats none: 5.5 of 9.
    assert roc.auc() == pytest.approx(5.5 / 9, abs=1e-15)
    assert auc(roc) == roc.auc()


def test_a_constant_score_gives_the_diagonal() -> None:
    roc = roc_curve(np.zeros(5), [1, 0, 0, 1, 0])
    assert roc == Roc([0, 1], [0, 1], [math.inf, 0])
    assert roc.auc() == 0.5


@pytest.mark.parametrize(
    "code",
    [
        lambda same: same.tolist(),
        lambda same: same.astype(int),
        lambda same: same.astype(float),
        lambda same: np.where(same, 1, -1),
        lambda same: same.astype(object),
    ],
)
def test_every_coding_of_the_labels_gives_one_curve(code) -> None:
    scores, same = many_ties(0, 50)
    assert roc_curve(scores, code(same)) == roc_curve(scores, same)


@pytest.mark.parametrize("seed", range(5))
def test_roc_curve_keeps_every_operating_point_of_scikit_learn(seed: int) -> None:
    scores, same = many_ties(seed)
    roc = roc_curve(scores, same)
    fpr, tpr, thresholds = sklearn.metrics.roc_curve(same, scores, drop_intermediate=False)
    np.testing.assert_array_equal(roc.fpr, fpr)
    np.testing.assert_array_equal(roc.tpr, tpr)
    np.testing.assert_array_equal(roc.thresholds, thresholds)
    assert roc.fpr.size == np.unique(scores).size + 1
    for k in (1, roc.fpr.size // 2, roc.fpr.size - 1):
        accepted = scores >= roc.thresholds[k]
        assert roc.fpr[k] == pytest.approx(accepted[~same].mean(), abs=1e-15)
        assert roc.tpr[k] == pytest.approx(accepted[same].mean(), abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_areas_equal_scikit_learn(seed: int) -> None:
    scores, same = many_ties(seed)
    roc = roc_curve(scores, same)
    assert roc.auc() == pytest.approx(sklearn.metrics.roc_auc_score(same, scores), abs=1e-13)
    on_a_knot = float(roc.fpr[roc.fpr.size // 3])
    for max_fpr in (0.001, 0.01, 0.1, on_a_knot, 0.5, 0.999, 1.0):
        expected = sklearn.metrics.roc_auc_score(same, scores, max_fpr=max_fpr)
        assert partial_auc(roc, max_fpr, standardize=True) == pytest.approx(expected, abs=1e-12)


@given(scored_pairs())
@SETTINGS
def test_auc_is_the_rate_of_concording_pairs(data) -> None:
    scores, same = data
    won = [
        (a > b) + 0.5 * (a == b)
        for a, sa in zip(scores, same, strict=True)
        for b, sb in zip(scores, same, strict=True)
        if sa and not sb
    ]
    assert roc_curve(scores, same).auc() == pytest.approx(sum(won) / len(won), abs=1e-13)


@given(scored_pairs())
@SETTINGS
def test_reversed_scores_mirror_the_area(data) -> None:
    scores, same = data
    forward, backward = roc_curve(scores, same), roc_curve([-s for s in scores], same)
    assert forward.auc() + backward.auc() == pytest.approx(1, abs=1e-13)


def test_area_never_exceeds_one() -> None:
    overshoots = 0
    for seed in range(50):
        fpr = np.r_[0, 0, np.sort(np.random.default_rng(seed).random(1000) ** 8), 1]
        overshoots += np.sum(np.diff(fpr)) > 1
        assert 1 - 1e-14 < Roc(fpr, np.r_[0, np.ones(1002)]).auc() <= 1
    assert overshoots  # the plain sum of widths would have failed


def test_partial_auc_by_hand() -> None:
    roc = Roc([0, 0, 0.5, 0.5, 1], [0, 0.25, 0.5, 0.75, 1])
    assert partial_auc(roc, 0.25) == 0.25 * (0.25 + 0.375) / 2
    assert partial_auc(roc, 0.5) == 0.5 * (0.25 + 0.5) / 2  # the vertical segment adds nothing
    assert partial_auc(roc, 0.75) == 0.5 * (0.25 + 0.5) / 2 + 0.25 * (0.75 + 0.875) / 2
    assert partial_auc(roc, 1) == roc.auc() == 0.625
    assert partial_auc(roc, 1, standardize=True) == 0.625


@pytest.mark.parametrize("max_fpr", [1e-200, 1e-6, 0.3, 1.0])
def test_standardised_areas_of_the_extreme_curves(max_fpr: float) -> None:
    assert partial_auc(DIAGONAL, max_fpr, standardize=True) == pytest.approx(0.5, abs=1e-15)
    assert partial_auc(PERFECT, max_fpr, standardize=True) == pytest.approx(1.0, abs=1e-15)


@given(curves(), st.floats(0.01, 1), st.floats(0.01, 1))
@SETTINGS
def test_partial_auc_is_additive_and_below_its_width(roc: Roc, a: float, b: float) -> None:
    a, b = min(a, b), max(a, b)
    strip = partial_auc(roc, b) - partial_auc(roc, a)
    assert (b - a) * roc.at(a) - 1e-14 <= strip <= (b - a) * roc.at(b) + 1e-14


@pytest.mark.parametrize(
    ("scores", "same", "message"),
    [
        ([1, math.nan, 2], [1, 0, 1], r"scores must be finite, got 1 NaN or infinite of 3: drop or replace them\."),
        ([1, math.inf, -math.inf], [1, 0, 1], r"scores must be finite, got 2 NaN or infinite of 3"),
        ([1, 2, 3], [1, 0], r"same has shape \(2,\); give one label for each of the 3 pairs\."),
        ([1, 2, 3], [0, 1, 2], r"same holds the pair labels 0, 1, 2; they must be bool, 0/1 or -1/\+1"),
        ([1, 2, 3], [-1, 0, 1], r"same holds the pair labels -1, 0, 1;"),
        ([1, 2], [-1, 0], r"same holds the pair labels -1, 0;"),
        ([1, 2], [1, math.nan], r"same holds the pair labels 1\.0, nan;"),
        ([1, 2], ["1", "0"], r"same holds the pair labels '0', '1';"),
        (range(9), range(9), r"holds the pair labels 0, 1, 2, 3, 4; they"),
        ([1, 2], [1, 1], r"same holds 2 same pairs only; give both same and different pairs\."),
        ([1, 2], [-1, -1], r"same holds 2 different pairs only"),
        ([], [], r"same holds 0 different pairs only"),
        ([[1, 2]], [1, 0], r"scores must be one-dimensional, got shape \(1, 2\)"),
        ([1, 2], [[1, 0]], r"same has shape \(1, 2\); give one label for each of the 2 pairs\."),
        (["high", "low"], [1, 0], r"scores must hold real numbers, got \['high', 'low'\]"),
    ],
)
def test_roc_curve_refuses(scores, same, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        roc_curve(scores, same)


@pytest.mark.parametrize("max_fpr", [0, -0.1, 1.5, math.nan])
def test_partial_auc_refuses(max_fpr: float) -> None:
    with pytest.raises(ValueError, match=rf"max_fpr must lie in \(0, 1\], got {max_fpr}: pass the largest rate"):
        partial_auc(PERFECT, max_fpr)


# --- distances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("roc", "reference", "l1", "l2", "sup"),
    [
        (PERFECT, DIAGONAL, 1 / 2, math.sqrt(1 / 3), 1),
        (WORST, DIAGONAL, 1 / 2, math.sqrt(1 / 3), 1),
        (PERFECT, WORST, 1, 1, 1),
        (HALF, DIAGONAL, 1 / 4, math.sqrt(1 / 12), 1 / 2),  # gap 1/2 - x changes sign inside the only interval
        (HALF, PERFECT, 1 / 2, 1 / 2, 1 / 2),  # constant gap, jumps at both ends
        # A jump in the middle of a segment of the other curve: the gap is -x, then 1 - x.
        (Roc([0, 0.5, 0.5, 1], [0, 0, 1, 1]), DIAGONAL, 1 / 4, math.sqrt(1 / 12), 1 / 2),
        # Crossing off the middle: gap from 3/4 to -1/4.
        (Roc([0, 0, 1, 1], [0, 0.75, 0.75, 1]), DIAGONAL, 5 / 16, math.sqrt((27 + 1) / (64 * 3)), 3 / 4),
        # The same line with other knots.
        (Roc([0, 0.3, 0.3, 0.9, 1], [0, 0.3, 0.3, 0.9, 1]), DIAGONAL, 0, 0, 0),
    ],
)
def test_distances_by_hand(roc: Roc, reference: Roc, l1: float, l2: float, sup: float) -> None:
    for a, b in ((roc, reference), (reference, roc)):
        assert roc_l1_distance(a, b) == pytest.approx(l1, abs=1e-15)
        assert roc_distance(a, b) == pytest.approx(l1, abs=1e-15)
        assert roc_distance(a, b, p=2) == pytest.approx(l2, abs=1e-15)
        assert roc_sup_distance(a, b) == pytest.approx(sup, abs=1e-15)
        assert roc_distance(a, b, p=math.inf) == roc_sup_distance(a, b)


@pytest.mark.parametrize("p", [1.5, 3, 10, 1e3, 1e6])
def test_any_order_in_closed_form(p: float) -> None:
    # Gap 1 - x: the integral of its p-th power is 1 / (p + 1).
    assert roc_distance(PERFECT, DIAGONAL, p=p) == pytest.approx((p + 1) ** (-1 / p), rel=1e-14)
    # Gap 1/2 - x: twice the triangle of height and base 1/2, which is where a naive power underflows for large p.
    assert roc_distance(HALF, DIAGONAL, p=p) == pytest.approx(0.5 * (p + 1) ** (-1 / p), rel=1e-14)


@pytest.mark.parametrize("p", [1, 2.5, 7, 50])
def test_nearly_parallel_curves_keep_their_digits(p: float) -> None:
    # The ends of the gap differ by 1e-15: a difference of powers over a difference of gaps would be noise.
    a = Roc([0, 0, 1, 1], [0, 0.5, 0.5 + 1e-15, 1])
    b = Roc([0, 0, 1, 1], [0, 0.4, 0.4, 1])
    assert roc_distance(a, b, p=p) == pytest.approx(0.1, rel=1e-13)


def test_the_largest_gap_may_sit_between_the_ends_of_a_jump() -> None:
    # At fpr 1/2 the curve jumps over the reference: the gap from below (5/8) is larger than the one from above (1/4).
    roc = Roc([0, 0.5, 0.5, 1], [0, 0.125, 1, 1])
    reference = Roc([0, 0.5, 1], [0, 0.75, 1])
    assert roc_sup_distance(roc, reference) == 0.625
    assert abs(roc.at(0.5) - reference.at(0.5)) == 0.25


@given(curves(), curves(), st.sampled_from([1.0, 1.7, 3.0]))
@SETTINGS
def test_distance_equals_dense_integration(roc: Roc, reference: Roc, p: float) -> None:
    exact = roc_distance(roc, reference, p=p)
    # Compare the integrals, for the root magnifies their errors near zero.
    assert exact**p == pytest.approx(dense_distance(roc, reference, p) ** p, abs=1e-4)


@given(curves(), curves())
@SETTINGS
def test_sup_distance_is_the_limit_of_a_dense_grid(roc: Roc, reference: Roc) -> None:
    # Off the knots but as near to them as matters: slopes are at most 28, so the gap moves by less than 1e-6.
    knots = np.union1d(roc.fpr, reference.fpr)
    x = np.concatenate([knots[:-1] + 1e-8, knots[1:] - 1e-8])
    gap = np.abs(np.interp(x, roc.fpr, roc.tpr) - np.interp(x, reference.fpr, reference.tpr))
    assert roc_sup_distance(roc, reference) == pytest.approx(gap.max(), abs=2e-6)


@given(curves(), curves(), curves(), st.sampled_from([1.0, 2.0, 5.5, math.inf]))
@SETTINGS
def test_distance_is_a_metric(a: Roc, b: Roc, c: Roc, p: float) -> None:
    assert roc_distance(a, b, p=p) == pytest.approx(roc_distance(b, a, p=p), abs=1e-14)
    assert roc_distance(a, a, p=p) == 0
    assert roc_distance(a, c, p=p) <= roc_distance(a, b, p=p) + roc_distance(b, c, p=p) + 1e-12


@given(curves(), curves())
@SETTINGS
def test_distance_grows_with_the_order(roc: Roc, reference: Roc) -> None:
    distances = [roc_distance(roc, reference, p=p) for p in (1, 1.3, 2, 4, 30, 1e4, math.inf)]
    assert (np.diff(distances) >= -1e-12).all()
    assert roc_sup_distance(roc, reference) >= roc_l1_distance(roc, reference)
    assert distances[-1] <= 1


@given(curves(), curves())
@SETTINGS
def test_l1_distance_bounds_the_difference_of_areas(roc: Roc, reference: Roc) -> None:
    l1 = roc_l1_distance(roc, reference)
    assert l1 >= abs(roc.auc() - reference.auc()) - 1e-13
    # No crossing with the two extreme curves, so there the two are equal (Table 1 of the paper prints the latter).
    assert roc_l1_distance(roc, PERFECT) == pytest.approx(1 - roc.auc(), abs=1e-13)
    assert roc_l1_distance(roc, WORST) == pytest.approx(roc.auc(), abs=1e-13)


@pytest.mark.parametrize("p", [0.5, 0, -1, math.nan])
def test_distance_refuses_orders_below_one(p: float) -> None:
    with pytest.raises(ValueError, match=rf"p must be at least 1, got {p}: pass 1, 2 or math\.inf, for example\."):
        roc_distance(PERFECT, DIAGONAL, p=p)


# --- rates and thresholds -------------------------------------------------------------------------------------------


def test_tpr_at_fpr_is_never_above_the_target() -> None:
    # 9: S | 8: S S D (one group) | 5: D | 4: S D D. The knot nearest to 0.2 is 0.25, which a threshold cannot split.
    roc = roc_curve([9, 8, 8, 8, 5, 4, 4, 4], [1, 1, 1, 0, 0, 1, 0, 0])
    np.testing.assert_array_equal(roc.fpr, [0, 0, 0.25, 0.5, 1])
    np.testing.assert_array_equal(roc.tpr, [0, 0.25, 0.75, 0.75, 1])
    value = tpr_at_fpr(roc, 0.2)
    assert value == 0.25
    assert type(value) is float
    assert tpr_at_fpr(roc, 0.2, interpolate=True) == pytest.approx(0.25 + 0.8 * 0.5, abs=1e-15)
    assert tpr_at_fpr(roc, 0.25) == 0.75
    assert tpr_at_fpr(roc, np.nextafter(0.25, 0)) == 0.25
    assert tpr_at_fpr(roc, 0) == 0.25  # the top of the vertical segment, not the knot (0, 0)
    assert tpr_at_fpr(roc, 0.999) == 0.75
    assert tpr_at_fpr(roc, 1) == 1
    np.testing.assert_array_equal(tpr_at_fpr(roc, [[0.2, 0.25], [0, 1]]), [[0.25, 0.75], [0.25, 1]])
    np.testing.assert_array_equal(tpr_at_fpr(roc, [0, 0.375, 1], interpolate=True), [0.25, 0.75, 1])


def test_tpr_at_fpr_returns_a_fresh_array() -> None:
    value = tpr_at_fpr(PERFECT, np.array([0.0, 0.5]))
    value[0] = 0.5
    assert tpr_at_fpr(PERFECT, 0) == 1


@given(scored_pairs(), st.one_of(st.floats(0, 1), st.sampled_from([1 / 3, 0.1, 0.25, 2 / 3])))
@SETTINGS
def test_tpr_at_fpr_equals_a_search_over_thresholds(data, target: float) -> None:
    scores, same = (np.array(column) for column in data)
    reachable = [0.0]
    for threshold in scores:
        if np.mean(scores[~same] >= threshold) <= target:
            reachable.append(np.mean(scores[same] >= threshold))
    roc = roc_curve(scores, same)
    assert tpr_at_fpr(roc, target) == pytest.approx(max(reachable), abs=1e-15)
    assert tpr_at_fpr(roc, target) <= tpr_at_fpr(roc, target, interpolate=True)


@pytest.mark.parametrize("interpolate", [False, True])
@pytest.mark.parametrize(("fpr", "shown"), [(-0.1, "-0.1"), (5, "5.0"), (math.nan, "nan"), ([0.1, 2], "2.0")])
def test_rates_outside_the_unit_interval_are_refused(fpr, shown: str, interpolate: bool) -> None:
    with pytest.raises(ValueError, match=rf"fpr must lie in \[0, 1\], got {shown}: pass a false positive rate"):
        tpr_at_fpr(PERFECT, fpr, interpolate=interpolate)
    with pytest.raises(ValueError, match=r"fpr must lie in \[0, 1\]"):
        PERFECT.at(fpr)


def test_youden_threshold_by_hand() -> None:
    # tpr - fpr after 5, 4, 2, 1: 1/3, 1/3, -1/3, 0. The higher of the tied thresholds wins.
    assert youden_threshold(roc_curve([4, 2, 5, 1, 4, 2], [1, 0, 1, 1, 0, 0])) == 5
    assert youden_threshold(roc_curve([9, 8, 8, 8, 5, 4, 4, 4], [1, 1, 1, 0, 0, 1, 0, 0])) == 8


def test_youden_threshold_sees_through_rounding() -> None:
    assert 0.9 - 0.6 > 0.3  # the tie that floating point breaks
    roc = Roc([0, 0, 0.6, 1], [0, 0.3, 0.9, 1], [math.inf, 3, 2, 1])
    assert youden_threshold(roc) == 3


def test_youden_threshold_is_finite_even_when_accepting_nothing_is_best() -> None:
    # Scores in the wrong order: only accepting everything is as good as accepting nothing.
    assert youden_threshold(roc_curve([3, 2, 1], [0, 0, 1])) == 1
    assert youden_threshold(roc_curve([7, 7], [0, 1])) == 7


@given(scored_pairs())
@SETTINGS
def test_youden_threshold_equals_a_search(data) -> None:
    scores, same = (np.array(column) for column in data)
    n_same, n_different = np.count_nonzero(same), np.count_nonzero(~same)

    def benefit(threshold: float) -> int:  # times n_same * n_different, exact in integers
        accepted = scores >= threshold
        return int(np.sum(accepted & same) * n_different - np.sum(accepted & ~same) * n_same)

    best = max(sorted(set(scores.tolist()), reverse=True), key=benefit)  # max keeps the first, hence the highest
    assert youden_threshold(roc_curve(scores, same)) == best


def test_youden_threshold_needs_thresholds() -> None:
    message = r"roc must have thresholds, got Roc\(auc=1, n_knots=3\): make it with roc_curve, or pass thresholds to Roc\."
    with pytest.raises(ValueError, match=message):
        youden_threshold(PERFECT)


# --- the bound of the paper -----------------------------------------------------------------------------------------


def test_deviation_bound_by_hand() -> None:
    # 2 * 3 * sqrt(4 / 16) + 2 * sqrt(15 / 15)
    assert deviation_bound(16, math.exp(-15), 4, 3.0) == pytest.approx(5.0, rel=1e-14)
    # delta close to 1 leaves the first term alone.
    assert deviation_bound(n=100, delta=1 - 1e-16, vc_dimension=25, constant=0.5) == pytest.approx(0.5, rel=1e-7)
    assert deviation_bound(np.int64(2), 5e-324, np.int32(1), 1e-300) == pytest.approx(2 * math.sqrt(1074 * math.log(2)))


def test_deviation_bound_moves_the_right_way() -> None:
    base = deviation_bound(1000, 0.05, 5, 1.0)
    assert deviation_bound(4000, 0.05, 5, 1.0) == pytest.approx(base / 2, rel=1e-3)
    assert deviation_bound(1000, 0.01, 5, 1.0) > base
    assert deviation_bound(1000, 0.05, 6, 1.0) > base
    assert deviation_bound(1000, 0.05, 5, 1.1) > base


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 1}, r"n must be an integer of at least 2, got 1: pass the number of samples\."),
        ({"n": 10.5}, r"n must be an integer of at least 2, got 10\.5"),
        ({"delta": 0}, r"delta must lie in \(0, 1\), got 0: pass the probability that the bound fails, such as 0\.05\."),
        ({"delta": 1}, r"delta must lie in \(0, 1\), got 1"),
        ({"delta": math.nan}, r"delta must lie in \(0, 1\), got nan"),
        ({"vc_dimension": 0}, r"vc_dimension must be an integer of at least 1, got 0: pass that of the class of regions\."),
        ({"vc_dimension": 2.5}, r"vc_dimension must be an integer of at least 1, got 2\.5"),
        ({"vc_dimension": True}, r"vc_dimension must be an integer of at least 1, got True"),
        ({"constant": 0.0}, r"constant must be positive and finite, got 0\.0: pass the C of the lemma, such as 1\.0\."),
        ({"constant": math.inf}, r"constant must be positive and finite, got inf"),
        ({"constant": math.nan}, r"constant must be positive and finite, got nan"),
    ],
)
def test_deviation_bound_refuses(change, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        deviation_bound(**({"n": 100, "delta": 0.05, "vc_dimension": 3, "constant": 1.0} | change))
