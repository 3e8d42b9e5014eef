"""Symmetric coordinates of a pair of samples.

A coordinate is a number computed from a pair that does not change when its two samples are swapped. Most kinds use one feature
(``|x_j - x'_j|``), some all features of the pair (the cosine of its samples), and ``oblique`` a weighted sum of the features,
w·x, which is computed once per sample and stored as an additional column.

Samples may lack values (NaN). A coordinate of a feature that one sample lacks, or both, then has no value but one of two
states, which trees treat like values of their own; coordinates of many features use those that both samples have, see
`simtree._kernels.missing`.

Trees compare unscaled values (``|x - x'|``), which are easy to read; `CoordinateSet.values` multiplies them by the scale of
their kind, so that ``abs_diff`` and ``sum`` together are the paper's f in an orthonormal basis. Thresholds on the one
correspond to thresholds on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from simtree._kernels import coordinates as kernels
from simtree._kernels.categories import N_COORDINATES
from simtree._kernels.missing import fill_joint_pairwise, fill_state_values
from simtree._kernels.samples import fill_products
from simtree._utils.matrices import MAX_FLOAT, has_missing
from simtree.pairs._categories import NO_FOLD, Categories
from simtree.pairs._category_names import category_names
from simtree.pairs._store import appended, mapped


class _PairArrays(NamedTuple):
    """Arrays of `SamplePairs`, in the order in which kernels take them."""

    A: NDArray[Any]
    B: NDArray[Any]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    pairwise: NDArray[np.float64]


class SamplePairs(_PairArrays):
    """Pairs with their samples: pair p is row ``first[p]`` of A and row ``second[p]`` of B.

    Parameters
    ----------
    A, B : ndarrays of shape (n_samples, n_columns)
        Samples; often the same matrix.
    first, second : ndarrays of int32 of shape (n_pairs,)
        Row numbers of the two samples of each pair.
    pairwise : ndarray of shape (n_pairs, n_pairwise), optional
        Pairwise coordinates, those computed from all features; no columns until `CoordinateSet.complete` computes them.
    lacks_values : bool, optional
        Whether any value of A or B is missing (NaN), if this is known.
    """

    # Whether values are missing, None until it is asked for: one list for all pairs that were made from the same samples.
    _missing: list[bool | None]

    def __new__(
        cls,
        A: NDArray[Any],
        B: NDArray[Any],
        first: NDArray[np.int32],
        second: NDArray[np.int32],
        pairwise: NDArray[np.float64] | None = None,
        *,
        lacks_values: bool | None = None,
    ) -> Self:
        made = super().__new__(cls, A, B, first, second, np.empty((len(first), 0)) if pairwise is None else pairwise)
        made._missing = [lacks_values]
        return made

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.first)

    @property
    def lacks_values(self) -> bool:
        """Whether any value of A or B is missing (NaN), looked up once for all pairs of the same samples."""
        known = self._missing[0]
        if known is None:
            known = self._missing[0] = has_missing(self.A) or (self.B is not self.A and has_missing(self.B))
        return known

    def of_rows(
        self, first: NDArray[np.int32], second: NDArray[np.int32], pairwise: NDArray[np.float64] | None = None
    ) -> SamplePairs:
        """Return other pairs of the same samples.

        Parameters
        ----------
        first, second : ndarrays of int32 of shape (n_pairs,)
            Row numbers of the two samples of each pair.
        pairwise : ndarray of shape (n_pairs, n_pairwise), optional
            Pairwise coordinates.

        Returns
        -------
        SamplePairs
            The pairs.
        """
        made = SamplePairs(self.A, self.B, first, second, pairwise)
        made._missing = self._missing
        return made

    def take(self, rows: NDArray[Any] | slice) -> SamplePairs:
        """Return some of the pairs, with the same samples.

        Parameters
        ----------
        rows : ndarray or slice
            Numbers of the pairs, a mask or a slice.

        Returns
        -------
        SamplePairs
            The chosen pairs.
        """
        return self.of_rows(self.first[rows], self.second[rows], self.pairwise[rows])


@dataclass(frozen=True)
class Kind:
    """One kind of coordinate.

    Parameters
    ----------
    code : int
        Code of the kind in kernels.
    scale : float
        Factor of the kind in the paper's f.
    label : str
        Template of readable names.
    """

    code: int
    scale: float
    label: str


#: Kinds that use one feature, with one coordinate per feature.
FEATURE_KINDS: dict[str, Kind] = {
    "abs_diff": Kind(kernels.ABS_DIFF, 0.5**0.5, "|{0} - {0}'|"),
    "sum": Kind(kernels.SUM, 0.5**0.5, "{0} + {0}'"),
    "min": Kind(kernels.MIN, 1.0, "min({0}, {0}')"),
    "max": Kind(kernels.MAX, 1.0, "max({0}, {0}')"),
    "product": Kind(kernels.PRODUCT, 1.0, "{0} {0}'"),
}
#: Pairwise kinds, which use all features, with one coordinate each.
PAIRWISE_KINDS: dict[str, Kind] = {
    "dot": Kind(kernels.DOT, 1.0, "dot(x, x')"),
    "cosine": Kind(kernels.COSINE, 1.0, "cosine(x, x')"),
    "euclidean": Kind(kernels.EUCLIDEAN, 1.0, "euclidean(x, x')"),
    "manhattan": Kind(kernels.MANHATTAN, 1.0, "manhattan(x, x')"),
}
#: Coordinates |w·x - w·x'| and w·x + w·x' for each direction w.
OBLIQUE = "oblique"
OBLIQUE_KINDS = ("abs_diff", "sum")
KINDS = (*FEATURE_KINDS, *PAIRWISE_KINDS, OBLIQUE)
# A model file with more features is treated as damaged.
MAX_FEATURES = 1 << 20


class _Block(NamedTuple):
    """Adjacent coordinates of one kind, and the columns they use: of the samples, or of ``pairwise``."""

    kind: Kind
    code: int
    columns: range


@dataclass(frozen=True, eq=False)
class CoordinateSet:
    """The coordinates of some kinds, ordered by kind and within a kind by feature (or direction).

    Parameters
    ----------
    kinds : tuple of str
        Names from `KINDS`.
    n_features : int
        Number of features of a sample.
    directions : ndarray of shape (n_directions, n_features)
        Directions w of the kind ``oblique``. Samples then have additional columns w·x after their features, see `extend`.
    categories : Categories, optional
        Categories of samples, in columns after their features. Their coordinates come last: all equalities, rarities of a
        shared value, and log-likelihood ratios of the pair of values.

    Examples
    --------
    >>> from simtree.pairs import CoordinateSet
    >>> pair_map = CoordinateSet(("abs_diff", "sum", "cosine"), n_features=2)
    >>> pair_map.names(["age", "size"])
    ["|age - age'|", "|size - size'|", "age + age'", "size + size'", "cosine(x, x')"]
    """

    kinds: tuple[str, ...]
    n_features: int
    directions: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    categories: Categories | None = None

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"coordinates={list(self.kinds)!r} is not a list of distinct kinds; choose from {sorted(KINDS)}.")

    def __len__(self) -> int:
        return sum(len(block.columns) for block in self._blocks)

    def _get_state(self) -> dict[str, Any]:
        """Return what a model file holds of the coordinates."""
        directions = self.directions if len(self.directions) else None
        state = {"kinds": self.kinds, "n_features": self.n_features, "directions": directions}
        return state if self.categories is None else {**state, "categories": self.categories._get_state()}

    @classmethod
    def _from_state(cls, fields: Any) -> Self:
        """Return the coordinates of a model file."""
        kinds = fields.strings("kinds", len(KINDS))
        categories = Categories._from_state(fields.part("categories")) if fields.has("categories") else None
        n_features = fields.integer("n_features", 0 if categories is not None else 1, MAX_FEATURES)
        directions = np.empty((0, n_features))
        if fields.has("directions"):
            directions = fields.moderate("directions", (None, n_features))
            if not np.abs(directions).max(axis=1).all():
                raise fields.fail("directions", "must not hold a direction of zeros")
        if set(kinds) - set(KINDS) or not kinds or len(set(kinds)) < len(kinds) or (OBLIQUE in kinds) != bool(len(directions)):
            raise fields.fail(
                "kinds", f"must be distinct strings of {', '.join(KINDS)}, with the last if and only if there are directions"
            )
        return cls(tuple(kinds), n_features, directions, categories)

    @property
    def n_categories(self) -> int:
        """Number of categories."""
        return 0 if self.categories is None else len(self.categories)

    @property
    def n_all_features(self) -> int:
        """Number of features and categories."""
        return self.n_features + self.n_categories

    @property
    def n_columns(self) -> int:
        """Number of columns of an extended sample: its features, and its products with the directions."""
        return self.n_features + len(self.directions)

    def __getstate__(self) -> dict[str, Any]:
        # What was computed on demand is not part of the state, so that scoring does not change a model.
        return {
            name: value for name, value in vars(self).items() if not isinstance(vars(type(self)).get(name), cached_property)
        }

    @cached_property
    def _blocks(self) -> list[_Block]:
        found = []
        pairwise = 0
        for name in self.kinds:
            if name in FEATURE_KINDS:
                kind = FEATURE_KINDS[name]
                found.append(_Block(kind, kind.code, range(self.n_features)))
            elif name in PAIRWISE_KINDS:
                found.append(_Block(PAIRWISE_KINDS[name], kernels.PAIRWISE, range(pairwise, pairwise + 1)))
                pairwise += 1
            else:
                of_directions = range(self.n_features, self.n_columns)
                found += [_Block(FEATURE_KINDS[name], FEATURE_KINDS[name].code, of_directions) for name in OBLIQUE_KINDS]
        if self.n_categories:
            end = pairwise + N_COORDINATES * self.n_categories
            found.append(_Block(Kind(kernels.PAIRWISE, 1.0, ""), kernels.PAIRWISE, range(pairwise, end)))
        return found

    @cached_property
    def kind_codes(self) -> NDArray[np.uint8]:
        """Kernel code of the kind of each coordinate."""
        return np.concatenate([np.full(len(block.columns), block.code, dtype=np.uint8) for block in self._blocks])

    @cached_property
    def columns(self) -> NDArray[np.int32]:
        """Column that each coordinate uses: of the extended samples, or of ``pairwise`` for pairwise coordinates."""
        return np.concatenate([np.arange(block.columns.start, block.columns.stop, dtype=np.int32) for block in self._blocks])

    @cached_property
    def scales(self) -> NDArray[np.float64]:
        """Factor of each coordinate in the paper's f."""
        return np.concatenate([np.full(len(block.columns), block.kind.scale) for block in self._blocks])

    @cached_property
    def pairwise_kinds(self) -> NDArray[np.int64]:
        """Kernel code of each column of ``pairwise``."""
        return np.array([PAIRWISE_KINDS[kind].code for kind in self.kinds if kind in PAIRWISE_KINDS], dtype=np.int64)

    @cached_property
    def is_pairwise(self) -> NDArray[np.bool_]:
        """Whether each coordinate is pairwise, using all features."""
        return np.equal(self.kind_codes, kernels.PAIRWISE)

    @cached_property
    def kernel_directions(self) -> NDArray[np.float64]:
        """Directions with one column per feature, also if there are none."""
        return self.directions if len(self.directions) else np.empty((0, self.n_features))

    @cached_property
    def state_groups(self) -> NDArray[np.int64]:
        """Number of what each coordinate lacks if it is in a state of missing values: a feature, all of them, or a category."""
        n_pairwise = len(self.pairwise_kinds)
        of_all, of_categories = self.n_columns, self.n_columns + 1
        category = of_categories + (self.columns - n_pairwise) % max(self.n_categories, 1)
        of_pair = np.where(self.columns < n_pairwise, of_all, category)
        return np.where(self.is_pairwise, of_pair, self.columns).astype(np.int64)

    def of_columns(self, columns: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the numbers of all coordinates that use one of the columns, and of all pairwise coordinates.

        Parameters
        ----------
        columns : ndarray of int
            Columns of extended samples.

        Returns
        -------
        ndarray of int
            Numbers of coordinates, in increasing order.
        """
        return np.flatnonzero(self.is_pairwise | np.isin(self.columns, columns))

    def by_feature(self, shares: NDArray[np.float64], present: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the shares of features, given the shares of coordinates.

        Parameters
        ----------
        shares : ndarray of shape (n_coordinates,)
            Share of each coordinate.
        present : ndarray of bool of shape (n_features,), optional
            Features that coordinates of many features were computed from; all by default, and if there are none.

        Returns
        -------
        ndarray of shape (n_all_features,)
            Share of each feature, and then of each category. The share of an oblique coordinate is divided in proportion to
            ``|w|``, that of a pairwise coordinate equally.
        """
        of_one = ~self.is_pairwise
        by_column = np.bincount(self.columns[of_one], weights=shares[of_one], minlength=self.n_columns)
        of_categories = shares[len(shares) - N_COORDINATES * self.n_categories :]
        of_all = shares[self.is_pairwise].sum() - of_categories.sum() if self.n_categories else shares[self.is_pairwise].sum()
        used = np.ones(self.n_features, dtype=np.bool_) if present is None or not present.any() else present
        found = by_column[: self.n_features] + used * (of_all / max(np.count_nonzero(used), 1))
        if len(self.directions):
            sizes = np.abs(self.directions) * used
            sizes = np.where(sizes.any(axis=1, keepdims=True), sizes, np.abs(self.directions))
            found = found + by_column[self.n_features :] @ (sizes / sizes.sum(axis=1, keepdims=True))
        if self.n_categories:
            found = np.concatenate([found, of_categories.reshape(N_COORDINATES, -1).sum(axis=0)])
        return np.asarray(found, dtype=np.float64)

    def numbers(self, kind: str) -> NDArray[np.int64]:
        """Return the numbers of the coordinates of one kind of `FEATURE_KINDS`, by feature.

        Parameters
        ----------
        kind : str
            Name from `FEATURE_KINDS`.

        Returns
        -------
        ndarray of int
            Numbers of coordinates; those of oblique coordinates are left out.
        """
        here = (self.kind_codes == FEATURE_KINDS[kind].code) & (self.columns < self.n_features)
        return np.flatnonzero(here)

    def monotone_numbers(self, kind: str) -> NDArray[np.int64]:
        """Return the numbers of the coordinates of a kind that can be monotone: of ``oblique`` ones the differences.

        Parameters
        ----------
        kind : str
            Name from `KINDS` that is among ``kinds``.

        Returns
        -------
        ndarray of int
            Numbers of coordinates.
        """
        if kind in PAIRWISE_KINDS:
            place = [name for name in self.kinds if name in PAIRWISE_KINDS].index(kind)
            return np.flatnonzero(self.is_pairwise & (self.columns == place))
        if kind == OBLIQUE:
            differences = self.kind_codes == FEATURE_KINDS["abs_diff"].code
            return np.flatnonzero(differences & (self.columns >= self.n_features))
        return self.numbers(kind)

    def names(self, feature_names: Sequence[str] | None = None) -> list[str]:
        """Return readable names of all coordinates, such as ``|age - age'|``.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the features; by default x0, x1, ...

        Returns
        -------
        list of str
            Names of the coordinates.
        """
        features = [f"x{j}" for j in range(self.n_all_features)] if feature_names is None else list(feature_names)
        columns = [*features[: self.n_features], *(f"w{k}·x" for k in range(len(self.directions)))]
        pairwise = [""] * len(PAIRWISE_KINDS)  # their labels do not name a column
        return [
            block.kind.label.format((pairwise if block.code == kernels.PAIRWISE else columns)[column])
            for block in (self._blocks[:-1] if self.n_categories else self._blocks)
            for column in block.columns
        ] + category_names(features[self.n_features :])

    def subjects(self, feature_names: Sequence[str] | None = None) -> list[str | None]:
        """Return the name of the feature that may be missing in a pair, for each coordinate.

        Parameters
        ----------
        feature_names : sequence of str, optional
            Names of the features; by default x0, x1, ...

        Returns
        -------
        list of str or None
            Names of features and categories; None for coordinates of many features.
        """
        features = [f"x{j}" for j in range(self.n_all_features)] if feature_names is None else list(feature_names)
        groups = self.state_groups
        category = np.where(groups > self.n_columns, groups - self.n_columns - 1 + self.n_features, -1)
        number = np.where(groups < self.n_features, groups, category)
        return [features[feature] if feature >= 0 else None for feature in number.tolist()]

    def lacks_values(self, samples: NDArray[Any]) -> bool:
        """Return whether a feature or a category of samples is missing.

        Parameters
        ----------
        samples : ndarray or SampleStore of shape (n_samples, n_all_features)
            Samples, whose last columns are codes of categories.

        Returns
        -------
        bool
            True if any is missing.
        """
        if has_missing(samples):
            return True
        return bool(self.n_categories and samples.size and (samples.min(axis=0)[self.n_features :] < 0).any())

    def extend(self, samples: NDArray[Any], *, training: bool = False) -> NDArray[Any]:
        """Return samples with their products with the directions as additional columns; NaN if a feature is missing.

        Parameters
        ----------
        samples : ndarray or SampleStore of shape (n_samples, n_all_features)
            Samples.
        training : bool, default=False
            Whether these are the samples that categories were fitted on: their folds are then the last column.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            The samples themselves if there are no directions; codes of categories, and folds, come last.
        """
        if self.categories is not None:
            folds = self.categories.folds if training else np.tile([NO_FOLD, 0], (len(samples), 1))
            return cast(NDArray[Any], appended(mapped(samples, self._with_products_and_codes), folds))
        if not len(self.directions):
            return samples
        return cast(NDArray[Any], mapped(samples, lambda rows: with_products(rows, rows, self.directions)))

    def _with_products_and_codes(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return features, their products with the directions, and codes; a missing one is NaN, like a missing number."""
        numbers, codes = np.hsplit(samples, [self.n_features])
        if len(self.directions):
            numbers = with_products(numbers, np.ascontiguousarray(numbers), self.directions)
        return np.hstack([numbers, np.where(codes < 0, np.nan, codes)])

    def complete(self, pairs: SamplePairs) -> SamplePairs:
        """Return pairs with their pairwise coordinates computed.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs of extended samples.

        Returns
        -------
        SamplePairs
            The pairs themselves if nothing is missing.
        """
        n_pairwise = len(self.pairwise_kinds) + N_COORDINATES * self.n_categories
        if pairs.pairwise.shape[1] == n_pairwise:
            return pairs
        pairwise = np.empty((pairs.n_pairs, n_pairwise))
        if len(self.pairwise_kinds):
            fill = fill_joint_pairwise if pairs.lacks_values else kernels.fill_pairwise
            fill(*pairs[:4], self.n_features, self.pairwise_kinds, pairwise)
        if self.categories is not None:
            self.categories.fill(pairs, self.n_columns, len(self.pairwise_kinds), pairwise)
        return pairs.of_rows(pairs.first, pairs.second, pairwise)

    def plain_values(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the unscaled coordinates, as trees compare them.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs of extended samples.

        Returns
        -------
        ndarray of shape (n_coordinates, n_pairs)
            Values of the coordinates; inf if a feature is missing in one sample, -inf if it is missing in both.
        """
        return self.some_values(pairs, slice(None))

    def some_values(self, pairs: SamplePairs, chosen: slice | list[int]) -> NDArray[np.float64]:
        """Return some of the unscaled coordinates, see `plain_values`.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs of extended samples.
        chosen : slice or list of int
            Numbers of the coordinates.

        Returns
        -------
        ndarray of shape (n_chosen, n_pairs)
            Values of the coordinates.
        """
        kinds, columns = self.kind_codes[chosen], self.columns[chosen]
        values = np.empty((len(kinds), pairs.n_pairs))
        pairs = self.complete(pairs) if self.is_pairwise[chosen].any() else pairs
        if pairs.lacks_values:
            fill_state_values(*pairs, kinds, columns, self.kernel_directions, values)
        else:
            kernels.fill_values(*pairs, kinds, columns, values)
        return values

    def values(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the scaled coordinates as a dense matrix; meant for the pairs of one cell, not for all pairs.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs of extended samples.

        Returns
        -------
        ndarray of shape (n_pairs, n_coordinates)
            Values of the coordinates times `scales`.
        """
        return np.ascontiguousarray((self.plain_values(pairs) * self.scales[:, None]).T)


def with_products(rows: NDArray[Any], samples: NDArray[Any], directions: NDArray[np.float64]) -> NDArray[Any]:
    """Return rows with products of samples and directions appended; each row depends on its own sample alone, bit for bit.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Rows to extend.
    samples : ndarray of shape (n_samples, n_features)
        Samples of the rows.
    directions : ndarray of shape (n_directions, n_features)
        Directions.

    Returns
    -------
    ndarray of shape (n_samples, n_columns + n_directions)
        The extended rows, of the same type.
    """
    products = np.empty((len(samples), len(directions)))
    fill_products(samples, np.ascontiguousarray(directions.T), products)
    limit = min(float(np.finfo(rows.dtype).max), MAX_FLOAT / 2)
    checked = products[~np.isnan(samples).any(axis=1)] if has_missing(samples) else products
    # This form also refuses NaN, the result of an overflow of both signs.
    if checked.size and not (-limit <= checked.min() and checked.max() <= limit):
        raise ValueError(
            f"X has values whose products with the directions of oblique coordinates exceed {limit:.3g}; "
            "divide X by a large number first."
        )
    return np.hstack([rows, products.astype(rows.dtype)])


def occurring(samples: NDArray[Any], rows: NDArray[np.integer[Any]]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the samples that occur among some row numbers, and the row numbers in terms of these samples."""
    used, numbers = np.unique(rows, return_inverse=True)
    return samples[used], numbers.astype(np.int32)
