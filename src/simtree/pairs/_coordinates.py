"""The catalogue of symmetric coordinates of a pair of points.

A coordinate is a number computed from a pair that does not change when its two points change places. Most kinds look at one
feature (``|x_j - x'_j|``), some at the whole pair (the cosine of its points), and ``oblique`` ones at a weighted sum of the
features, w·x: a further column of the points, computed once for each of them.

Trees compare the plain value (``|x - x'|``), which people can read; `CoordinateSet.values` multiplies by the kind's scale, so
that ``abs_diff`` and ``sum`` together are the paper's f in an orthonormal basis. A cut of the one is a cut of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._kernels import coordinates as kernels
from simtree._kernels.samples import fill_products
from simtree._utils.matrices import MAX_FLOAT, check_magnitude, check_rows, check_unmasked


class _PairArrays(NamedTuple):
    """The arrays of `SamplePairs`, in the order in which kernels take them."""

    A: NDArray[Any]
    B: NDArray[Any]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    whole: NDArray[np.float64]


class SamplePairs(_PairArrays):
    """Pairs with their points: pair p is row ``first[p]`` of A and row ``second[p]`` of B (often A and B are one matrix).

    ``whole[p]`` holds its coordinates of all features; it has no columns until `CoordinateSet.complete` fills them in.
    """

    __slots__ = ()

    def __new__(
        cls,
        A: NDArray[Any],
        B: NDArray[Any],
        first: NDArray[np.int32],
        second: NDArray[np.int32],
        whole: NDArray[np.float64] | None = None,
    ) -> Self:
        return super().__new__(cls, A, B, first, second, np.empty((len(first), 0)) if whole is None else whole)

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.first)

    def take(self, rows: NDArray[Any] | slice) -> SamplePairs:
        """Some of the pairs; points are shared."""
        return SamplePairs(self.A, self.B, self.first[rows], self.second[rows], self.whole[rows])


@dataclass(frozen=True)
class Kind:
    """One kind of coordinate: how kernels know it, its scale in f, and how people read it."""

    code: int
    scale: float
    label: str


#: Kinds that look at one feature: as many coordinates as there are features.
FEATURE_KINDS: dict[str, Kind] = {
    "abs_diff": Kind(kernels.ABS_DIFF, 0.5**0.5, "|{0} - {0}'|"),
    "sum": Kind(kernels.SUM, 0.5**0.5, "{0} + {0}'"),
    "min": Kind(kernels.MIN, 1.0, "min({0}, {0}')"),
    "max": Kind(kernels.MAX, 1.0, "max({0}, {0}')"),
    "product": Kind(kernels.PRODUCT, 1.0, "{0} {0}'"),
}
#: Kinds that look at all features: one coordinate each.
WHOLE_KINDS: dict[str, Kind] = {
    "dot": Kind(kernels.DOT, 1.0, "dot(x, x')"),
    "cosine": Kind(kernels.COSINE, 1.0, "cosine(x, x')"),
    "euclidean": Kind(kernels.EUCLIDEAN, 1.0, "euclidean(x, x')"),
    "manhattan": Kind(kernels.MANHATTAN, 1.0, "manhattan(x, x')"),
}
# Feature values up to these have coordinates that do not overflow, by the number of features; half of what would do for sums
# over features, because of rounding.
_MAX_VALUES: dict[str, Callable[[int], float]] = {
    "abs_diff": lambda n: MAX_FLOAT / 2,
    "sum": lambda n: MAX_FLOAT / 2,
    "product": lambda n: MAX_FLOAT**0.5,
    "dot": lambda n: (MAX_FLOAT / n) ** 0.5 / 2,
    "cosine": lambda n: (MAX_FLOAT / n) ** 0.5 / 2,
    "euclidean": lambda n: (MAX_FLOAT / n) ** 0.5 / 4,
    "manhattan": lambda n: MAX_FLOAT / n / 4,
}
#: |w·x - w·x'| and w·x + w·x' for each direction w.
OBLIQUE = "oblique"
OBLIQUE_KINDS = ("abs_diff", "sum")
KINDS = (*FEATURE_KINDS, *WHOLE_KINDS, OBLIQUE)
# More features in a model file are taken for damage.
MAX_FEATURES = 1 << 20


class _Block(NamedTuple):
    """Neighbouring coordinates of one kind, and the columns they look at: of the points, or of ``whole`` for the whole pair."""

    kind: Kind
    code: int
    columns: range


@dataclass(frozen=True, eq=False)
class CoordinateSet:
    """All coordinates of some kinds, kind by kind and within a kind feature by feature (direction by direction).

    Parameters
    ----------
    kinds : tuple of str
        Names from `KINDS`.
    n_features : int
        Number of features of a point.
    directions : ndarray of shape (n_directions, n_features)
        The directions w of ``oblique``. With them a point has further columns w·x behind its features, see `extend`.

    Examples
    --------
    >>> pair_map = CoordinateSet(("abs_diff", "sum", "cosine"), n_features=2)
    >>> pair_map.names(["age", "size"])
    ["|age - age'|", "|size - size'|", "age + age'", "size + size'", "cosine(x, x')"]
    """

    kinds: tuple[str, ...]
    n_features: int
    directions: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"coordinates={list(self.kinds)!r} is not a list of different kinds; choose from {sorted(KINDS)}.")

    def __len__(self) -> int:
        return sum(len(block.columns) for block in self._blocks)

    def _get_state(self) -> dict[str, Any]:
        """Return what a model file holds of the coordinates."""
        directions = self.directions if len(self.directions) else None
        return {"kinds": self.kinds, "n_features": self.n_features, "directions": directions}

    @classmethod
    def _from_state(cls, fields: Any) -> Self:
        """Return the coordinates of a model file."""
        kinds = fields.words("kinds", len(KINDS))
        n_features = fields.integer("n_features", 1, MAX_FEATURES)
        directions = np.empty((0, n_features))
        if fields.has("directions"):
            directions = fields.array("directions", "float64", (None, n_features))
            if not np.abs(directions).max(axis=1).all():
                raise fields.fail("directions", "must not hold a direction of zeros")
        if set(kinds) - set(KINDS) or not kinds or len(set(kinds)) < len(kinds) or (OBLIQUE in kinds) != bool(len(directions)):
            raise fields.fail("kinds", f"must be different words of {', '.join(KINDS)}, the last if there are directions")
        return cls(tuple(kinds), n_features, directions)

    @property
    def n_columns(self) -> int:
        """Columns of an extended point: its features, and its product with each direction."""
        return self.n_features + len(self.directions)

    @cached_property
    def _blocks(self) -> list[_Block]:
        found = []
        whole = 0
        for name in self.kinds:
            if name in FEATURE_KINDS:
                kind = FEATURE_KINDS[name]
                found.append(_Block(kind, kind.code, range(self.n_features)))
            elif name in WHOLE_KINDS:
                found.append(_Block(WHOLE_KINDS[name], kernels.WHOLE, range(whole, whole + 1)))
                whole += 1
            else:
                of_directions = range(self.n_features, self.n_columns)
                found += [_Block(FEATURE_KINDS[name], FEATURE_KINDS[name].code, of_directions) for name in OBLIQUE_KINDS]
        return found

    @cached_property
    def kind_codes(self) -> NDArray[np.uint8]:
        """The kernel's code of the kind of each coordinate."""
        return np.concatenate([np.full(len(block.columns), block.code, dtype=np.uint8) for block in self._blocks])

    @cached_property
    def columns(self) -> NDArray[np.int32]:
        """The column each coordinate looks at: of the extended points, or of ``whole``."""
        return np.concatenate([np.arange(block.columns.start, block.columns.stop, dtype=np.int32) for block in self._blocks])

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """The factor of each coordinate in f."""
        return np.concatenate([np.full(len(block.columns), block.kind.scale) for block in self._blocks])

    @cached_property
    def whole_kinds(self) -> NDArray[np.int64]:
        """The kernel's code of each column of ``whole``."""
        return np.array([WHOLE_KINDS[kind].code for kind in self.kinds if kind in WHOLE_KINDS], dtype=np.int64)

    @cached_property
    def of_whole(self) -> NDArray[np.bool_]:
        """Whether each coordinate looks at the whole pair."""
        return np.equal(self.kind_codes, kernels.WHOLE)

    def of_columns(self, columns: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Numbers of all coordinates that look at one of the columns or at the whole pair, in increasing order."""
        return np.flatnonzero(self.of_whole | np.isin(self.columns, columns))

    def by_feature(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """What coordinates have, handed on to their features: by ``|w|`` for a direction w, to all alike for a whole pair."""
        of_one = ~self.of_whole
        by_column = np.bincount(self.columns[of_one], weights=shares[of_one], minlength=self.n_columns)
        found = by_column[: self.n_features] + shares[self.of_whole].sum() / self.n_features
        if len(self.directions):
            sizes = np.abs(self.directions)
            found = found + by_column[self.n_features :] @ (sizes / sizes.sum(axis=1, keepdims=True))
        return np.asarray(found, dtype=np.float64)

    def numbers(self, kind: str) -> NDArray[np.int64]:
        """Numbers of the coordinates of one kind of `FEATURE_KINDS`, by feature."""
        here = (self.kind_codes == FEATURE_KINDS[kind].code) & (self.columns < self.n_features)
        return np.flatnonzero(here)

    def names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Readable names of all coordinates, such as ``|age - age'|``."""
        features = [f"x{j}" for j in range(self.n_features)] if feature_names is None else list(feature_names)
        columns = [*features, *(f"w{k}·x" for k in range(len(self.directions)))]
        whole = [""] * len(WHOLE_KINDS)  # whose labels name no column
        return [
            block.kind.label.format((whole if block.code == kernels.WHOLE else columns)[column])
            for block in self._blocks
            for column in block.columns
        ]

    def extend(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Points with their products with the directions as further columns; the points themselves if there are none."""
        if not len(self.directions):
            return samples
        return with_products(samples, samples, self.directions)

    def complete(self, pairs: SamplePairs) -> SamplePairs:
        """The pairs with their coordinates of the whole pair; as they are if they have them, or none is wanted."""
        if pairs.whole.shape[1] == len(self.whole_kinds):
            return pairs
        whole = np.empty((pairs.n_pairs, len(self.whole_kinds)))
        kernels.fill_whole(*pairs[:4], self.n_features, self.whole_kinds, whole)
        return SamplePairs(*pairs[:4], whole)

    def plain_values(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Dense ``(n_coordinates, n_pairs)`` matrix of the coordinates as trees compare them."""
        plain = np.empty((len(self), pairs.n_pairs))
        kernels.fill_values(*self.complete(pairs), self.kind_codes, self.columns, plain)
        return plain

    def values(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Dense ``(n_pairs, n_coordinates)`` matrix of the scaled coordinates (for the pairs of one cell, never for all)."""
        return np.ascontiguousarray((self.plain_values(pairs) * self.scales[:, None]).T)


def max_value(kinds: Sequence[str], n_features: int) -> tuple[float, str]:
    """Return the largest absolute value of a feature with which no coordinate overflows, and what requires it.

    Kernels compute in float64, so float32 samples are always within it. `with_products` checks products with directions.

    Parameters
    ----------
    kinds : sequence of str
        Names from `KINDS`.
    n_features : int
        Number of features.

    Returns
    -------
    limit : float
        The largest absolute value.
    needed_by : str
        The kinds with this limit, for an error message.

    Examples
    --------
    >>> limit, needed_by = max_value(["abs_diff", "sum", "cosine"], n_features=4)
    >>> f"{needed_by}: {limit:.3g}"
    'coordinates of kind cosine: 3.35e+153'
    """
    limits = {kind: _MAX_VALUES[kind](n_features) for kind in kinds if kind in _MAX_VALUES}
    limit = min(limits.values(), default=MAX_FLOAT)
    return limit, "coordinates of kind " + " and ".join(kind for kind, own in limits.items() if own == limit)


def with_products(rows: NDArray[Any], samples: NDArray[Any], directions: NDArray[np.float64]) -> NDArray[Any]:
    """Rows with the products of their points with directions as last columns; of each row alone, bit for bit."""
    products = np.empty((len(samples), len(directions)))
    fill_products(samples, np.ascontiguousarray(directions.T), products)
    limit = min(float(np.finfo(rows.dtype).max), MAX_FLOAT / 2)
    # Written so that NaN, of an overflow of both signs, is refused as well.
    if products.size and not (-limit <= products.min() and products.max() <= limit):
        raise ValueError(
            f"X has values whose products with the directions of oblique coordinates exceed {limit:.3g}; "
            "divide X by a large number first."
        )
    return np.hstack([rows, products.astype(rows.dtype)])


def occurring(samples: NDArray[Any], rows: NDArray[np.integer[Any]]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The points that occur among some row numbers, and the numbers they have there."""
    used, numbers = np.unique(rows, return_inverse=True)
    return samples[used], numbers.astype(np.int32)


def pair_features(
    pairs: ArrayLike, kinds: Sequence[str] = ("abs_diff", "sum"), *, directions: ArrayLike | None = None
) -> NDArray[np.float64]:
    """The symmetric coordinates of given pairs as a matrix; by default the paper's f.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2, n_features)
        The pairs.
    kinds : sequence of str
        Names from `KINDS`.
    directions : array-like of shape (n_directions, n_features), optional
        The directions of ``oblique``.

    Returns
    -------
    ndarray of shape (n_pairs, n_coordinates)
        Coordinates, kind by kind. Row by row the same for pairs with their two points swapped.

    Examples
    --------
    >>> pair_features([[[0.0], [1.0]]], kinds=["abs_diff", "min"]).round(3)
    array([[0.707, 0.   ]])
    """
    check_unmasked("pairs", pairs)
    samples = np.asarray(pairs, dtype=np.float64)
    if samples.ndim != 3 or samples.shape[1] != 2:
        raise ValueError(f"pairs has shape {samples.shape}; it must be (n_pairs, 2, n_features).")
    n_pairs, _, n_features = samples.shape
    w = np.empty((0, n_features)) if directions is None else np.ascontiguousarray(directions, dtype=np.float64)
    if w.ndim != 2 or w.shape[1] != n_features or (OBLIQUE in kinds) != bool(len(w)):
        raise ValueError(
            f"directions has shape {w.shape}; the kind 'oblique' needs (n_directions, {n_features}), and only it needs any."
        )
    pair_map = CoordinateSet(tuple(kinds), n_features, w)
    flat = check_rows("pairs", samples.reshape(2 * n_pairs, n_features), stacked=True, dtype=np.float64, ensure_min_samples=0)
    check_magnitude(flat, *max_value(kinds, n_features), name="pairs")
    flat = pair_map.extend(flat)
    first = np.arange(0, 2 * n_pairs, 2, dtype=np.int32)
    return pair_map.values(SamplePairs(flat, flat, first, first + np.int32(1)))
