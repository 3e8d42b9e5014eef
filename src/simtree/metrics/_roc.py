"""ROC curves of pair scores, areas under them, distances between them and rates at thresholds.

A curve is piecewise linear in the unit square. Tied scores share one knot, so each knot is an operating point that a threshold
can reach.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.matrices import check_unmasked
from simtree._utils.validation import check_pair_labels

FloatArray = NDArray[np.float64]
Counts = NDArray[np.int64]

# Two rates and their difference are each rounded once: smaller differences are due to rounding, not to a better threshold.
ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, repr=False)
class Roc:
    """A ROC curve: the piecewise linear curve through its knots, from (0, 0) to (1, 1).

    Parameters
    ----------
    fpr, tpr : array of shape (n_knots,)
        False and true positive rates of the knots, both non-decreasing. Knots with the same `fpr` form a vertical segment.
    thresholds : array of shape (n_knots,), optional
        A pair is accepted at knot k iff its score >= ``thresholds[k]``. The first threshold is infinity; the others are finite
        and strictly decreasing.

    Notes
    -----
    The arrays are copied and read-only; two curves are equal iff all their arrays are.

    Examples
    --------
    >>> from simtree.metrics import Roc
    >>> roc = Roc([0, 0, 1], [0, 0.5, 1])
    >>> roc
    Roc(auc=0.75, n_knots=3)
    >>> fpr, tpr = roc
    >>> tpr.tolist()
    [0.0, 0.5, 1.0]
    """

    fpr: FloatArray
    tpr: FloatArray
    thresholds: FloatArray | None = None

    def __post_init__(self) -> None:
        """Validate the knots and store read-only copies of them."""
        fpr = _vector("fpr", self.fpr)
        tpr = _vector("tpr", self.tpr)
        if fpr.size < 2:
            raise ValueError(f"fpr must have at least 2 knots, got {fpr.size}: include both (0, 0) and (1, 1).")
        if tpr.size != fpr.size:
            raise ValueError(f"tpr must have one value per knot, got {tpr.size} for {fpr.size} of fpr: pass equal lengths.")
        for name, rate in (("fpr", fpr), ("tpr", tpr)):
            if rate[0] != 0 or rate[-1] != 1:
                raise ValueError(
                    f"{name} must go from 0 to 1, got {float(rate[0])!r} to {float(rate[-1])!r}: "
                    "include both knots (0, 0) and (1, 1)."
                )
            # Comparisons instead of differences: NaN fails them, and infinity does not warn.
            falls = np.flatnonzero(~(rate[1:] >= rate[:-1]))
            if falls.size:
                k = int(falls[0])
                raise ValueError(
                    f"{name} must never decrease, got {float(rate[k])!r} then {float(rate[k + 1])!r} at knot {k + 1}: "
                    "sort the knots by decreasing threshold and drop NaN."
                )
        object.__setattr__(self, "fpr", _frozen(fpr))
        object.__setattr__(self, "tpr", _frozen(tpr))
        if self.thresholds is not None:
            thresholds = _vector("thresholds", self.thresholds)
            if thresholds.size != fpr.size:
                raise ValueError(
                    f"thresholds must have one value per knot, got {thresholds.size} for {fpr.size} knots: "
                    "pass equal lengths or None."
                )
            if thresholds[0] != math.inf:
                raise ValueError(
                    f"thresholds must start with inf, got {float(thresholds[0])!r}: nothing is accepted at knot (0, 0), "
                    "so put inf first."
                )
            rest = thresholds[1:]
            if not (np.isfinite(rest).all() and (rest[1:] < rest[:-1]).all()):
                raise ValueError(
                    f"thresholds must be finite and strictly decreasing after the first, got {_preview(rest)}: "
                    "group tied scores into one knot."
                )
            object.__setattr__(self, "thresholds", _frozen(thresholds))

    def __iter__(self) -> Iterator[FloatArray]:
        """Unpack as ``fpr, tpr = roc``."""
        return iter((self.fpr, self.tpr))

    def __eq__(self, other: object) -> bool:
        """Compare by value."""
        if not isinstance(other, Roc):
            return NotImplemented
        if (self.thresholds is None) != (other.thresholds is None):
            return False
        return (
            np.array_equal(self.fpr, other.fpr)
            and np.array_equal(self.tpr, other.tpr)
            and (self.thresholds is None or other.thresholds is None or np.array_equal(self.thresholds, other.thresholds))
        )

    def __hash__(self) -> int:
        """Hash by value, consistent with equality."""
        return hash((self.fpr.tobytes(), self.tpr.tobytes(), None if self.thresholds is None else self.thresholds.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild through the constructor, because NumPy loses the read-only flag on pickling and copying."""
        return (type(self), (self.fpr, self.tpr, self.thresholds))

    def __repr__(self) -> str:
        """Return a summary, because a curve may have millions of knots."""
        suffix = "" if self.thresholds is None else ", with thresholds"
        return f"{type(self).__name__}(auc={self.auc():.6g}, n_knots={self.fpr.size}{suffix})"

    def _get_state(self) -> dict[str, Any]:
        """Return the state that a model file stores; the first threshold, which is infinite, is left out."""
        assert self.thresholds is not None
        return {"fpr": self.fpr, "tpr": self.tpr, "thresholds": self.thresholds[1:]}

    @classmethod
    def _from_state(cls, fields: Any) -> Roc:
        """Return a curve from the state in a model file."""
        fpr, tpr, thresholds = (fields.array(name, "float64", (None,)) for name in ("fpr", "tpr", "thresholds"))
        try:
            return cls(fpr, tpr, np.concatenate([[np.inf], thresholds]))
        except ValueError as error:
            raise fields.fail("fpr", f"is not a curve: {error}") from None

    def auc(self) -> float:
        """Return the area under the curve.

        Returns
        -------
        float
            The area.

        Examples
        --------
        >>> from simtree.metrics import Roc
        >>> Roc([0, 0, 1], [0, 1, 1]).auc()
        1.0
        """
        return _area(self.fpr, self.tpr)

    @overload
    def at(self, fpr: float) -> float: ...
    @overload
    def at(self, fpr: Sequence[float] | FloatArray) -> FloatArray: ...
    def at(self, fpr: float | Sequence[float] | FloatArray) -> float | FloatArray:
        """Return the true positive rate at `fpr` by linear interpolation; at a vertical segment, that of its upper end.

        Parameters
        ----------
        fpr : float or array
            False positive rate, in [0, 1].

        Returns
        -------
        float or array
            True positive rate, with the shape of `fpr`.

        Examples
        --------
        >>> from simtree.metrics import Roc
        >>> Roc([0, 0, 1], [0, 0.5, 1]).at(0.5)
        0.75
        >>> Roc([0, 0, 1], [0, 0.5, 1]).at([0, 1]).tolist()
        [0.5, 1.0]
        """
        x = _targets(fpr)
        value = np.ones_like(x)  # the curve ends at (1, 1), even if its last segment is vertical
        before_end = x < 1
        value[before_end] = _right_limit(self, x[before_end])
        return float(value) if value.ndim == 0 else value


def roc_curve(scores: ArrayLike, same: ArrayLike) -> Roc:
    """Return the ROC curve of `scores`, with one knot for each distinct score.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Finite scores of the pairs; larger means more similar.
    same : array of shape (n_pairs,)
        True for same pairs: bool, 0/1 or -1/+1. Same and different pairs must both occur.

    Returns
    -------
    Roc
        The curve, with thresholds.

    Examples
    --------
    >>> from simtree.metrics import roc_curve
    >>> roc = roc_curve([3, 2, 2, 1], [True, True, False, False])
    >>> roc.fpr.tolist(), roc.tpr.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    >>> roc.thresholds.tolist()
    [inf, 3.0, 2.0, 1.0]
    """
    values, n_same, n_different = grouped(*check_scores(scores, same))
    # Collinear knots are operating points too, which tpr_at_fpr needs.
    fpr, tpr = (np.append(0, np.cumsum(counts[::-1])) / counts.sum() for counts in (n_different, n_same))
    return Roc(fpr, tpr, np.append(np.inf, values[::-1]))


def weighted_roc_curve(scores: FloatArray, same: NDArray[np.bool_], weights: FloatArray | None) -> Roc:
    """Return the ROC curve of pairs with positive weights; None if all weigh the same.

    Examples
    --------
    >>> roc = weighted_roc_curve(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), np.array([3.0, 1.0, 1.0]))
    >>> roc.tpr.tolist()
    [0.0, 0.75, 0.75, 1.0]
    """
    if weights is None:
        return roc_curve(scores, same)
    values, place = np.unique(scores, return_inverse=True)
    sums = [np.bincount(place[kind], weights=weights[kind], minlength=len(values))[::-1].cumsum() for kind in (~same, same)]
    fpr, tpr = (np.append(0.0, own / own[-1]) for own in sums)
    return Roc(fpr, tpr, np.append(np.inf, values[::-1]))


def grouped(score: FloatArray, is_same: NDArray[np.bool_]) -> tuple[FloatArray, Counts, Counts]:
    """Return the distinct scores in increasing order, and the numbers of same and of different pairs at each."""
    order = np.argsort(score)
    ordered = score[order]
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)  # place of each distinct score
    n_same = np.diff(np.cumsum(is_same[order])[last], prepend=0)
    return ordered[last], n_same, np.diff(last, prepend=-1) - n_same


def check_scores(scores: ArrayLike, same: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return finite scores as floats, and the labels of pairs as booleans; same and different pairs must both occur."""
    score = _vector("scores", scores)
    unusable = np.count_nonzero(~np.isfinite(score))
    if unusable:
        raise ValueError(f"scores must be finite, got {unusable} NaN or infinite of {score.size}: drop or replace them.")
    return score, check_pair_labels("same", same, score.size)


def auc(roc: Roc) -> float:
    """Return the area under `roc`: the probability that a same pair scores higher than a different pair (ties count one half).

    Parameters
    ----------
    roc : Roc
        Curve.

    Returns
    -------
    float
        The area.

    Examples
    --------
    >>> from simtree.metrics import auc, roc_curve
    >>> auc(roc_curve([3, 2, 2, 1], [1, 1, 0, 0]))
    0.875
    """
    return roc.auc()


def partial_auc(roc: Roc, max_fpr: float, standardize: bool = False) -> float:
    """Return the area under `roc` over false positive rates in [0, `max_fpr`].

    Parameters
    ----------
    roc : Roc
        Curve.
    max_fpr : float
        Largest false positive rate, in (0, 1].
    standardize : bool, default=False
        If True, apply the McClish correction, so that the diagonal has 0.5 and the perfect curve 1, as
        ``sklearn.metrics.roc_auc_score(max_fpr=)`` does.

    Returns
    -------
    float
        The partial area.

    Examples
    --------
    >>> from simtree.metrics import Roc, partial_auc
    >>> perfect = Roc([0, 0, 1], [0, 1, 1])
    >>> partial_auc(perfect, 0.25), partial_auc(perfect, 0.25, standardize=True)
    (0.25, 1.0)
    """
    if not 0 < max_fpr <= 1:
        raise ValueError(f"max_fpr must lie in (0, 1], got {max_fpr!r}: pass the largest rate of interest, such as 0.01.")
    stop = int(np.searchsorted(roc.fpr, max_fpr, side="right"))
    area = _area(np.append(roc.fpr[:stop], max_fpr), np.append(roc.tpr[:stop], roc.at(max_fpr)))
    if not standardize:
        return area
    # Relative to max_fpr, because its square would underflow for very small rates.
    chance = 0.5 * max_fpr
    return 0.5 * (1 + (area / max_fpr - chance) / (1 - chance))


def roc_distance(roc: Roc, reference: Roc, p: float = 1.0) -> float:
    """Return the L_p distance of two curves, ``(∫ |roc - reference|^p)^(1/p)``, in closed form.

    Parameters
    ----------
    roc, reference : Roc
        The two curves.
    p : float, default=1.0
        Exponent, at least 1; ``math.inf`` gives the largest vertical gap.

    Returns
    -------
    float
        The distance.

    Examples
    --------
    >>> from simtree.metrics import Roc, roc_distance
    >>> perfect, diagonal = Roc([0, 0, 1], [0, 1, 1]), Roc([0, 1], [0, 1])
    >>> roc_distance(perfect, diagonal, p=1), roc_distance(perfect, diagonal, p=float("inf"))
    (0.5, 1.0)
    """
    if not p >= 1:
        raise ValueError(f"p must be at least 1, got {p!r}: pass 1, 2 or math.inf, for example.")
    width, left, right = _gaps(roc, reference)
    largest = float(max(np.abs(left).max(), np.abs(right).max()))
    if math.isinf(p) or largest == 0:
        return largest
    # Relative to the largest gap, no power overflows, and those that underflow are negligible.
    mean = float(np.sum(width * _mean_power(left / largest, right / largest, p)))
    return float(largest * mean ** (1 / p))


def roc_l1_distance(roc: Roc, reference: Roc) -> float:
    """Return the area between two curves, ``∫ |roc - reference|``: the paper's D_1 if `reference` is optimal.

    Parameters
    ----------
    roc, reference : Roc
        The two curves.

    Returns
    -------
    float
        The area.

    Examples
    --------
    >>> from simtree.metrics import Roc, roc_l1_distance
    >>> roc_l1_distance(Roc([0, 0, 1], [0, 1, 1]), Roc([0, 1], [0, 1]))
    0.5
    """
    return roc_distance(roc, reference, p=1.0)


def roc_sup_distance(roc: Roc, reference: Roc) -> float:
    """Return the largest vertical gap between two curves: the paper's D_inf if `reference` is optimal.

    Parameters
    ----------
    roc, reference : Roc
        The two curves.

    Returns
    -------
    float
        The gap; both ends of vertical segments count.

    Examples
    --------
    >>> from simtree.metrics import Roc, roc_sup_distance
    >>> roc_sup_distance(Roc([0, 0, 1], [0, 1, 1]), Roc([0, 1], [0, 1]))
    1.0
    """
    return roc_distance(roc, reference, p=math.inf)


@overload
def tpr_at_fpr(roc: Roc, fpr: float, *, interpolate: bool = ...) -> float: ...
@overload
def tpr_at_fpr(roc: Roc, fpr: Sequence[float] | FloatArray, *, interpolate: bool = ...) -> FloatArray: ...
def tpr_at_fpr(roc: Roc, fpr: float | Sequence[float] | FloatArray, *, interpolate: bool = False) -> float | FloatArray:
    """Return the highest true positive rate whose false positive rate is at most `fpr`.

    Parameters
    ----------
    roc : Roc
        Curve.
    fpr : float or array
        Maximum false positive rate, in [0, 1].
    interpolate : bool, default=False
        If False, use the knots of the curve only, because no threshold reaches the points between them. If True, interpolate
        linearly, which corresponds to a random choice between two thresholds.

    Returns
    -------
    float or array
        True positive rate, with the shape of `fpr`.

    Examples
    --------
    >>> from simtree.metrics import Roc, tpr_at_fpr
    >>> roc = Roc([0, 0, 0.5, 1], [0, 0.25, 0.75, 1])
    >>> tpr_at_fpr(roc, 0.375), tpr_at_fpr(roc, 0.375, interpolate=True)
    (0.25, 0.625)
    """
    if interpolate:
        return roc.at(fpr)
    x = _targets(fpr)
    value: FloatArray = roc.tpr[np.searchsorted(roc.fpr, x, side="right") - 1]
    return float(value) if x.ndim == 0 else value


def deviation_bound(n: int, delta: float, vc_dimension: int, constant: float) -> float:
    """Return a uniform bound on the error of empirical shares, 2 C sqrt(V / n) + 2 sqrt(log(1 / delta) / (n - 1)).

    With probability at least 1 - `delta`, for every region of a class of VC dimension `vc_dimension`, the share of the same (or
    of the different) pairs of `n` samples that lie in the region differs from its expectation by at most this bound.

    Parameters
    ----------
    n : int
        Number of samples, at least 2. All pairs of these samples are used.
    delta : float
        Probability that the bound fails, in (0, 1).
    vc_dimension : int
        VC dimension V of the class of regions, at least 1.
    constant : float
        Universal constant C of the chaining bound, positive; the paper does not give its value.

    Returns
    -------
    float
        The bound; it is vacuous if it exceeds 1.

    Notes
    -----
    This is the second lemma of Clémençon and Vogel (2019) as printed. It does not depend on the share of same pairs: read it as
    a rate in `n`, not as a guarantee where same pairs are rare.

    Examples
    --------
    >>> from simtree.metrics import deviation_bound
    >>> round(deviation_bound(10_001, delta=0.05, vc_dimension=4, constant=1.0), 4)
    0.0746
    """
    if not isinstance(n, Integral) or n < 2:
        raise ValueError(f"n must be an integer of at least 2, got {n!r}: pass the number of samples.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {delta!r}: pass the probability that the bound fails, such as 0.05.")
    if not isinstance(vc_dimension, Integral) or isinstance(vc_dimension, bool) or vc_dimension < 1:
        raise ValueError(
            f"vc_dimension must be an integer of at least 1, got {vc_dimension!r}: pass that of the class of regions."
        )
    if not 0 < constant < math.inf:
        raise ValueError(f"constant must be positive and finite, got {constant!r}: pass the C of the lemma, such as 1.0.")
    return float(2 * constant * math.sqrt(vc_dimension / n) + 2 * math.sqrt(-math.log(delta) / (n - 1)))


def youden_threshold(roc: Roc) -> float:
    """Return the finite threshold that maximises tpr - fpr, the highest one on ties.

    The infinite threshold, which accepts no pair, is not considered: if no finite threshold is better, accepting every pair is
    as good.

    Parameters
    ----------
    roc : Roc
        Curve with thresholds, as returned by `roc_curve`.

    Returns
    -------
    float
        The threshold.

    Examples
    --------
    >>> from simtree.metrics import roc_curve, youden_threshold
    >>> youden_threshold(roc_curve([4, 3, 2, 1], [True, True, False, True]))
    3.0
    """
    thresholds = thresholds_of(roc)
    benefit = (roc.tpr - roc.fpr)[1:]
    best = np.flatnonzero(benefit >= benefit.max() - ROUNDING)[0]
    return float(thresholds[1:][best])


def thresholds_of(roc: Roc) -> FloatArray:
    """Return the thresholds of a curve, which must have them."""
    if roc.thresholds is None:
        raise ValueError(f"roc must have thresholds, got {roc!r}: make it with roc_curve, or pass thresholds to Roc.")
    return roc.thresholds


def _vector(name: str, values: ArrayLike) -> FloatArray:
    check_unmasked(name, values)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers, got {_preview(values)}: convert it to floats.") from error
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}: flatten it.")
    return array


def _frozen(array: FloatArray) -> FloatArray:
    # A copy, so that the caller's array stays writeable; + 0.0 turns -0.0 into 0.0, so that equal curves have equal hashes.
    copy: FloatArray = array + 0.0
    copy.setflags(write=False)
    return copy


def _preview(values: object) -> str:
    text = repr(values.tolist() if isinstance(values, np.ndarray) and values.size <= 10 else values)
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."


def _targets(fpr: float | Sequence[float] | FloatArray) -> FloatArray:
    x = np.asarray(fpr, dtype=np.float64)
    bad = x[~((x >= 0) & (x <= 1))]
    if bad.size:
        raise ValueError(f"fpr must lie in [0, 1], got {float(bad[0])!r}: pass a false positive rate such as 0.001.")
    return x


def _area(x: FloatArray, y: FloatArray) -> float:
    # Rounded widths may sum to slightly more than 1, but an area must not exceed the total width.
    return min(float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2), float(x[-1] - x[0]))


def _right_limit(roc: Roc, x: FloatArray) -> FloatArray:
    """Return the limit from the right at each x < 1."""
    k = np.searchsorted(roc.fpr, x, side="right")  # fpr[k - 1] <= x < fpr[k]
    start, end = roc.fpr[k - 1], roc.fpr[k]
    low, high = roc.tpr[k - 1], roc.tpr[k]
    value: FloatArray = np.minimum(low + (x - start) / (end - start) * (high - low), high)
    return value


def _left_limit(roc: Roc, x: FloatArray) -> FloatArray:
    """Return the limit from the left at each x > 0."""
    k = np.searchsorted(roc.fpr, x, side="left")  # fpr[k - 1] < x <= fpr[k]
    start, end = roc.fpr[k - 1], roc.fpr[k]
    low, high = roc.tpr[k - 1], roc.tpr[k]
    value: FloatArray = np.maximum(high - (end - x) / (end - start) * (high - low), low)
    return value


def _gaps(roc: Roc, reference: Roc) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the widths of the intervals on which roc - reference is linear, and its one-sided limits at their two ends."""
    x = np.union1d(roc.fpr, reference.fpr)
    left = _right_limit(roc, x[:-1]) - _right_limit(reference, x[:-1])
    right = _left_limit(roc, x[1:]) - _left_limit(reference, x[1:])
    return np.diff(x), left, right


def _mean_power(left: FloatArray, right: FloatArray, p: float) -> FloatArray:
    """Return the mean of |d|^p where d is linear from `left` to `right`."""
    a, b = np.abs(left), np.abs(right)
    mean = np.zeros_like(a)

    # The sign changes: two triangles.
    crossing = np.sign(left) * np.sign(right) < 0
    u, v = a[crossing], b[crossing]
    mean[crossing] = (u ** (p + 1) + v ** (p + 1)) / ((p + 1) * (u + v))

    # The sign is constant: (high^(p+1) - low^(p+1)) / ((p + 1) (high - low)) suffers from cancellation when the ends are close,
    # so it is computed from the relative difference 1 - low / high.
    one_sign = ~crossing & (np.maximum(a, b) > 0)
    high, low = np.maximum(a, b)[one_sign], np.minimum(a, b)[one_sign]
    fall = (high - low) / high
    factor = np.ones_like(fall)
    sloped = fall > 0
    with np.errstate(divide="ignore"):  # a fall of 1 (an end at zero) has log -inf, which gives the right limit
        factor[sloped] = -np.expm1((p + 1) * np.log1p(-fall[sloped])) / ((p + 1) * fall[sloped])
    mean[one_sign] = high**p * factor
    return mean
