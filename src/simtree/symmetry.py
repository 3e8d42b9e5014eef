"""The catalogue of symmetric coordinates of a pair of points.

A coordinate is a kind applied to one feature: a number computed from the two values that a pair has in that feature, which
does not change when the two points change places. Trees compare the plain value (``|x - x'|``), which people can read;
`CoordinateSet.values` multiplies by the kind's scale, so that ``abs_diff`` and ``sum`` together are the paper's f in an
orthonormal basis. A cut of the one is a cut of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._kernels import coordinates as kernels


class PointPairs(NamedTuple):
    """Pairs with their points: pair p is row ``first[p]`` of A and row ``second[p]`` of B (often A and B are one matrix)."""

    A: NDArray[Any]
    B: NDArray[Any]
    first: NDArray[np.int32]
    second: NDArray[np.int32]

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.first)

    def take(self, rows: NDArray[Any] | slice) -> PointPairs:
        """Some of the pairs; points are shared."""
        return PointPairs(self.A, self.B, self.first[rows], self.second[rows])


@dataclass(frozen=True)
class Kind:
    """One kind of coordinate: how kernels know it, its scale in f, and how people read it."""

    code: int
    scale: float
    label: str


KINDS: dict[str, Kind] = {
    "abs_diff": Kind(kernels.ABS_DIFF, 0.5**0.5, "|{0} - {0}'|"),
    "sum": Kind(kernels.SUM, 0.5**0.5, "{0} + {0}'"),
    "min": Kind(kernels.MIN, 1.0, "min({0}, {0}')"),
    "max": Kind(kernels.MAX, 1.0, "max({0}, {0}')"),
}


@dataclass(frozen=True)
class CoordinateSet:
    """All coordinates of some kinds: coordinate ``k * n_features + j`` is the k-th kind of feature j.

    Parameters
    ----------
    kinds : tuple of str
        Names from `KINDS`.
    n_features : int
        Number of features of a point.

    Examples
    --------
    >>> pair_map = CoordinateSet(("abs_diff", "sum"), n_features=2)
    >>> pair_map.names(["age", "size"])
    ["|age - age'|", "|size - size'|", "age + age'", "size + size'"]
    """

    kinds: tuple[str, ...]
    n_features: int

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"coordinates={list(self.kinds)!r} is not a list of different kinds; choose from {sorted(KINDS)}.")

    def __len__(self) -> int:
        return len(self.kinds) * self.n_features

    @cached_property
    def kind_codes(self) -> NDArray[np.uint8]:
        """The kernel's code of the kind of each coordinate."""
        return np.repeat(np.array([KINDS[kind].code for kind in self.kinds], dtype=np.uint8), self.n_features)

    @cached_property
    def features(self) -> NDArray[np.int32]:
        """The feature of each coordinate."""
        return np.tile(np.arange(self.n_features, dtype=np.int32), len(self.kinds))

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """The factor of each coordinate in f."""
        return np.repeat(np.array([KINDS[kind].scale for kind in self.kinds]), self.n_features)

    def of_features(self, features: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Numbers of all coordinates that look at one of the features, in increasing order."""
        starts = self.n_features * np.arange(len(self.kinds))
        return (starts[:, None] + np.sort(features)[None, :]).ravel()

    def by_feature(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """What coordinates have, handed on to their features."""
        return np.bincount(self.features, weights=shares, minlength=self.n_features).astype(np.float64)

    def numbers(self, kind: str) -> NDArray[np.int64]:
        """Numbers of the coordinates of one kind, by feature."""
        return self.kinds.index(kind) * self.n_features + np.arange(self.n_features)

    def names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Readable names of all coordinates, such as ``|age - age'|``."""
        features = [f"x{j}" for j in range(self.n_features)] if feature_names is None else list(feature_names)
        return [KINDS[kind].label.format(name) for kind in self.kinds for name in features]

    def plain_values(self, pairs: PointPairs) -> NDArray[np.float64]:
        """Dense ``(n_coordinates, n_pairs)`` matrix of the coordinates as trees compare them."""
        plain = np.empty((len(self), pairs.n_pairs))
        kernels.fill_values(*pairs, self.kind_codes, self.features, plain)
        return plain

    def values(self, pairs: PointPairs) -> NDArray[np.float64]:
        """Dense ``(n_pairs, n_coordinates)`` matrix of the scaled coordinates (for the pairs of one cell, never for all)."""
        return np.ascontiguousarray((self.plain_values(pairs) * self.scales[:, None]).T)


def pair_features(pairs: ArrayLike, kinds: Sequence[str] = ("abs_diff", "sum")) -> NDArray[np.float64]:
    """The symmetric coordinates of given pairs as a matrix; by default the paper's f.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2, n_features)
        The pairs.
    kinds : sequence of str
        Names from `KINDS`.

    Returns
    -------
    ndarray of shape (n_pairs, len(kinds) * n_features)
        Coordinates, kind by kind. Row by row the same for pairs with their two points swapped.

    Examples
    --------
    >>> pair_features([[[0.0], [1.0]]], kinds=["abs_diff", "min"]).round(3)
    array([[0.707, 0.   ]])
    """
    points = np.asarray(pairs, dtype=np.float64)
    if points.ndim != 3 or points.shape[1] != 2:
        raise ValueError(f"pairs has shape {points.shape}; it must be (n_pairs, 2, n_features).")
    n_pairs, _, n_features = points.shape
    flat = points.reshape(2 * n_pairs, n_features)
    first = np.arange(0, 2 * n_pairs, 2, dtype=np.int32)
    return CoordinateSet(tuple(kinds), n_features).values(PointPairs(flat, flat, first, first + np.int32(1)))
