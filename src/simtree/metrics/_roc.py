"""ROC curves of pair scores, areas under them, distances between them and rates at thresholds.

A curve is a broken line in the unit square; ties are grouped, so each knot is an operating point that a
threshold can really reach. Everything here is a pure function of arrays.
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

# Two rates and their difference are each rounded once: gaps below this are rounding, not a better threshold.
ROUNDING = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, repr=False)
class Roc:
    """A ROC curve: the broken line through its knots, from (0, 0) to (1, 1).

    Parameters
    ----------
    fpr, tpr : array of shape (n_knots,)
        False and true positive rates of the knots, both non-decreasing. Knots that share their `fpr` make a
        vertical segment.
    thresholds : array of shape (n_knots,), optional
        A pair is accepted at knot k iff its score >= ``thresholds[k]``; the first is infinity, the others
        are finite and strictly decreasing.

    Notes
    -----
    The arrays are copied and read-only; two curves are equal iff all their arrays are.

    Examples
    --------
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
        """Check the knots, and keep private read-only copies of them."""
        fpr = _vector("fpr", self.fpr)
        tpr = _vector("tpr", self.tpr)
        if fpr.size < 2:
            raise ValueError(f"fpr must have at least 2 knots, got {fpr.size}: include both (0, 0) and (1, 1).")
        if tpr.size != fpr.size:
            raise ValueError(f"tpr must have one value a knot, got {tpr.size} for {fpr.size} of fpr: pass equal lengths.")
        for name, rate in (("fpr", fpr), ("tpr", tpr)):
            if rate[0] != 0 or rate[-1] != 1:
                raise ValueError(
                    f"{name} must go from 0 to 1, got {float(rate[0])!r} to {float(rate[-1])!r}: "
                    "include both knots (0, 0) and (1, 1)."
                )
            # Comparisons, not differences: NaN fails them and infinity does not warn.
            falls = np.flatnonzero(~(rate[1:] >= rate[:-1]))
            if falls.size:
                k = int(falls[0])
                raise ValueError(
                    f"{name} must never decrease, got {float(rate[k])!r} then {float(rate[k + 1])!r} at knot {k + 1}: "
                    "sort the knots by falling threshold and drop NaN."
                )
        object.__setattr__(self, "fpr", _frozen(fpr))
        object.__setattr__(self, "tpr", _frozen(tpr))
        if self.thresholds is not None:
            thresholds = _vector("thresholds", self.thresholds)
            if thresholds.size != fpr.size:
                raise ValueError(
                    f"thresholds must have one value a knot, got {thresholds.size} for {fpr.size} knots: "
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
        """Hash by value, in step with equality."""
        return hash((self.fpr.tobytes(), self.tpr.tobytes(), None if self.thresholds is None else self.thresholds.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild through the constructor: numpy forgets the read-only flag when it pickles or copies."""
        return (type(self), (self.fpr, self.tpr, self.thresholds))

    def __repr__(self) -> str:
        """Summarise: a curve may have millions of knots."""
        suffix = "" if self.thresholds is None else ", with thresholds"
        return f"{type(self).__name__}(auc={self.auc():.6g}, n_knots={self.fpr.size}{suffix})"

    def _get_state(self) -> dict[str, Any]:
        """Return what a model file holds of the curve; its first threshold is infinite and is left out."""
        assert self.thresholds is not None
        return {"fpr": self.fpr, "tpr": self.tpr, "thresholds": self.thresholds[1:]}

    @classmethod
    def _from_state(cls, fields: Any) -> Roc:
        """Return the curve of a model file."""
        fpr, tpr, thresholds = (fields.array(name, "float64", (None,)) for name in ("fpr", "tpr", "thresholds"))
        try:
            return cls(fpr, tpr, np.concatenate([[np.inf], thresholds]))
        except ValueError as error:
            raise fields.fail("fpr", f"is not a curve: {error}") from None

    def auc(self) -> float:
        """Area under the broken line.

        Examples
        --------
        >>> Roc([0, 0, 1], [0, 1, 1]).auc()
        1.0
        """
        return _area(self.fpr, self.tpr)

    @overload
    def at(self, fpr: float) -> float: ...
    @overload
    def at(self, fpr: Sequence[float] | FloatArray) -> FloatArray: ...
    def at(self, fpr: float | Sequence[float] | FloatArray) -> float | FloatArray:
        """Value of the broken line at `fpr` (scalar or array); the top of a vertical segment.

        Examples
        --------
        >>> Roc([0, 0, 1], [0, 0.5, 1]).at(0.5)
        0.75
        >>> Roc([0, 0, 1], [0, 0.5, 1]).at([0, 1]).tolist()
        [0.5, 1.0]
        """
        x = _targets(fpr)
        value = np.ones_like(x)  # the curve ends at (1, 1), whatever its last segment
        before_end = x < 1
        value[before_end] = _right_limit(self, x[before_end])
        return float(value) if value.ndim == 0 else value


def roc_curve(scores: ArrayLike, same: ArrayLike) -> Roc:
    """ROC curve of `scores`, one knot for each distinct score.

    Parameters
    ----------
    scores : array of shape (n_pairs,)
        Finite; larger means more alike.
    same : array of shape (n_pairs,)
        Whether each pair shares its label: bool, 0/1 or -1/+1; both kinds must occur.

    Returns
    -------
    Roc
        With thresholds.

    Examples
    --------
    >>> roc = roc_curve([3, 2, 2, 1], [True, True, False, False])
    >>> roc.fpr.tolist(), roc.tpr.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    >>> roc.thresholds.tolist()
    [inf, 3.0, 2.0, 1.0]
    """
    score, is_same = check_scores(scores, same)
    from sklearn.metrics import roc_curve as sklearn_roc_curve  # here, because it takes most of the time of an import

    # Collinear knots are operating points too: dropping them would make tpr_at_fpr miss some.
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds up the scores to see whether they are finite
        fpr, tpr, thresholds = sklearn_roc_curve(is_same, score, drop_intermediate=False)
    return Roc(fpr, tpr, thresholds)


def check_scores(scores: ArrayLike, same: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Scores as finite floats, and labels of pairs as booleans, of both kinds."""
    score = _vector("scores", scores)
    unusable = np.count_nonzero(~np.isfinite(score))
    if unusable:
        raise ValueError(f"scores must be finite, got {unusable} NaN or infinite of {score.size}: drop or replace them.")
    return score, check_pair_labels("same", same, score.size)


def auc(roc: Roc) -> float:
    """Area under `roc`: the chance that a same pair outscores a different one, ties counting one half.

    Examples
    --------
    >>> auc(roc_curve([3, 2, 2, 1], [1, 1, 0, 0]))
    0.875
    """
    return roc.auc()


def partial_auc(roc: Roc, max_fpr: float, standardize: bool = False) -> float:
    """Area under `roc` over false positive rates in [0, `max_fpr`].

    Parameters
    ----------
    roc : Roc
    max_fpr : float in (0, 1]
    standardize : bool, default=False
        Rescale as McClish does, so that the diagonal gets 0.5 and the perfect curve 1; this is
        ``sklearn.metrics.roc_auc_score(max_fpr=)``.

    Returns
    -------
    float

    Examples
    --------
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
    # Areas relative to max_fpr: its square would underflow for very small rates.
    chance = 0.5 * max_fpr
    return 0.5 * (1 + (area / max_fpr - chance) / (1 - chance))


def roc_distance(roc: Roc, reference: Roc, p: float = 1.0) -> float:
    """L_p distance of two curves, (∫ |roc - reference|^p)^(1/p), in closed form (no grid).

    Parameters
    ----------
    roc, reference : Roc
    p : float >= 1, default=1.0
        ``math.inf`` gives the largest gap.

    Returns
    -------
    float

    Examples
    --------
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
    # Relative to the largest gap no power overflows, and the ones that underflow do not matter.
    mean = float(np.sum(width * _mean_power(left / largest, right / largest, p)))
    return float(largest * mean ** (1 / p))


def roc_l1_distance(roc: Roc, reference: Roc) -> float:
    """Area between two curves, ∫ |roc - reference|: the paper's D_1 when `reference` is optimal.

    Examples
    --------
    >>> roc_l1_distance(Roc([0, 0, 1], [0, 1, 1]), Roc([0, 1], [0, 1]))
    0.5
    """
    return roc_distance(roc, reference, p=1.0)


def roc_sup_distance(roc: Roc, reference: Roc) -> float:
    """Largest vertical gap of two curves, both ends of vertical segments included: the paper's D_inf.

    Examples
    --------
    >>> roc_sup_distance(Roc([0, 0, 1], [0, 1, 1]), Roc([0, 1], [0, 1]))
    1.0
    """
    return roc_distance(roc, reference, p=math.inf)


@overload
def tpr_at_fpr(roc: Roc, fpr: float, *, interpolate: bool = ...) -> float: ...
@overload
def tpr_at_fpr(roc: Roc, fpr: Sequence[float] | FloatArray, *, interpolate: bool = ...) -> FloatArray: ...
def tpr_at_fpr(roc: Roc, fpr: float | Sequence[float] | FloatArray, *, interpolate: bool = False) -> float | FloatArray:
    """Highest true positive rate whose false positive rate is at most `fpr`.

    Parameters
    ----------
    roc : Roc
    fpr : float or array, in [0, 1]
    interpolate : bool, default=False
        By default only knots count, for only they are reached by a threshold. True gives the value of the
        broken line, which takes a coin toss between two thresholds.

    Returns
    -------
    float or array
        As `fpr`.

    Examples
    --------
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
    """Bound on the error of all empirical shares at once: 2 C sqrt(V / n) + 2 sqrt(log(1 / delta) / (n - 1)).

    With probability at least 1 - `delta`, no region of a class of VC dimension `vc_dimension` has an empirical
    share of the same (or of the different) pairs of `n` points further than this from its true share.

    Parameters
    ----------
    n : int >= 2
        Number of points, not of pairs: all their pairs are used.
    delta : float in (0, 1)
    vc_dimension : int >= 1
    constant : float > 0
        The universal constant C of the chaining bound; the paper does not print its value.

    Returns
    -------
    float
        May exceed 1, and then says nothing.

    Notes
    -----
    This is the second lemma of Clémençon and Vogel (2019) as printed. The share of same pairs does not occur in
    it: read it as a rate in `n`, not as a guarantee where same pairs are rare.

    Examples
    --------
    >>> round(deviation_bound(10_001, delta=0.05, vc_dimension=4, constant=1.0), 4)
    0.0746
    """
    if not isinstance(n, Integral) or n < 2:
        raise ValueError(f"n must be an integer of at least 2, got {n!r}: pass the number of points.")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), got {delta!r}: pass the risk that the bound fails, such as 0.05.")
    if not isinstance(vc_dimension, Integral) or isinstance(vc_dimension, bool) or vc_dimension < 1:
        raise ValueError(
            f"vc_dimension must be an integer of at least 1, got {vc_dimension!r}: pass that of the class of regions."
        )
    if not 0 < constant < math.inf:
        raise ValueError(f"constant must be positive and finite, got {constant!r}: pass the C of the lemma, such as 1.0.")
    return float(2 * constant * math.sqrt(vc_dimension / n) + 2 * math.sqrt(-math.log(delta) / (n - 1)))


def youden_threshold(roc: Roc) -> float:
    """Finite threshold that maximises tpr - fpr, the highest one on ties.

    Accepting nothing (the threshold infinity) is not considered: where no threshold beats it, accepting
    everything is exactly as good.

    Examples
    --------
    >>> youden_threshold(roc_curve([4, 3, 2, 1], [True, True, False, True]))
    3.0
    """
    thresholds = thresholds_of(roc)
    benefit = (roc.tpr - roc.fpr)[1:]
    best = np.flatnonzero(benefit >= benefit.max() - ROUNDING)[0]
    return float(thresholds[1:][best])


def thresholds_of(roc: Roc) -> FloatArray:
    """Thresholds of a curve that must have them."""
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
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}: pass one value each.")
    return array


def _frozen(array: FloatArray) -> FloatArray:
    # A copy, so that the caller's array stays writeable; + 0.0 makes -0.0 and 0.0 the same bytes, hence the same hash.
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
    # Rounded widths may sum to a little more than 1, and an area above the width is no probability.
    return min(float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2), float(x[-1] - x[0]))


def _right_limit(roc: Roc, x: FloatArray) -> FloatArray:
    """Value just after each x < 1."""
    k = np.searchsorted(roc.fpr, x, side="right")  # fpr[k - 1] <= x < fpr[k]
    start, end = roc.fpr[k - 1], roc.fpr[k]
    low, high = roc.tpr[k - 1], roc.tpr[k]
    value: FloatArray = np.minimum(low + (x - start) / (end - start) * (high - low), high)
    return value


def _left_limit(roc: Roc, x: FloatArray) -> FloatArray:
    """Value just before each x > 0."""
    k = np.searchsorted(roc.fpr, x, side="left")  # fpr[k - 1] < x <= fpr[k]
    start, end = roc.fpr[k - 1], roc.fpr[k]
    low, high = roc.tpr[k - 1], roc.tpr[k]
    value: FloatArray = np.maximum(high - (end - x) / (end - start) * (high - low), low)
    return value


def _gaps(roc: Roc, reference: Roc) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Intervals on which roc - reference is linear: widths, and its limits at the two ends from within."""
    x = np.union1d(roc.fpr, reference.fpr)
    left = _right_limit(roc, x[:-1]) - _right_limit(reference, x[:-1])
    right = _left_limit(roc, x[1:]) - _left_limit(reference, x[1:])
    return np.diff(x), left, right


def _mean_power(left: FloatArray, right: FloatArray, p: float) -> FloatArray:
    """Mean of |d|^p where d goes linearly from `left` to `right`."""
    a, b = np.abs(left), np.abs(right)
    mean = np.zeros_like(a)

    # Through zero: two triangles.
    crossing = np.sign(left) * np.sign(right) < 0
    u, v = a[crossing], b[crossing]
    mean[crossing] = (u ** (p + 1) + v ** (p + 1)) / ((p + 1) * (u + v))

    # One sign: (high^(p+1) - low^(p+1)) / ((p + 1) (high - low)) cancels when the ends are close, so it is written
    # in the relative fall 1 - low / high, which keeps its digits.
    one_sign = ~crossing & (np.maximum(a, b) > 0)
    high, low = np.maximum(a, b)[one_sign], np.minimum(a, b)[one_sign]
    fall = (high - low) / high
    factor = np.ones_like(fall)
    sloped = fall > 0
    with np.errstate(divide="ignore"):  # a fall of 1 (an end at zero) has log -inf, and the limit is right
        factor[sloped] = -np.expm1((p + 1) * np.log1p(-fall[sloped])) / ((p + 1) * fall[sloped])
    mean[one_sign] = high**p * factor
    return mean
