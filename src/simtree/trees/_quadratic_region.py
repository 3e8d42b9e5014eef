"""Regions where a quadratic score is high."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.coordinates import quadratic_values
from simtree._kernels.missing_regions import fill_incomplete_quadratic
from simtree._kernels.samples import fill_products
from simtree.io._fields import Fields
from simtree.io._registry import REGION, register
from simtree.pairs._coordinates import CoordinateSet, SamplePairs, occurring
from simtree.trees._regions import ranges

# Arrays of a quadratic region with one entry per feature.
BY_FEATURE = ("centre", "linear", "own", "cross", "shares")
# Where pairs without a joint feature go; the first if there were none in training.
UNSEEN, NONE_INSIDE, NONE_OUTSIDE = 0, 1, 2


@register(REGION)
@dataclass(frozen=True)
class QuadraticRegion:
    """Pairs for which a quadratic function of their difference and their sum is at least a threshold.

    With y = x - centre for each sample x, the score of a pair is

        u(y) + u(y') + sum over k of cross[k] (E y)_k (E y')_k,   with   u(y) = l·y + sum over k of own[k] (F y)_k^2.

    If a sample lacks features, the score is that of the features of both samples, with y = 0 for the others, divided by their
    share; pairs without such a feature have no score.

    Parameters
    ----------
    features : ndarray of int of shape (n,)
        The features that are used.
    centre, linear : ndarrays of shape (n,)
        The centre, and the vector l.
    own_directions, own : ndarrays of shape (n, n) and (n,)
        The matrix F, and the weights of the squares.
    cross_directions, cross : ndarrays of shape (n, n) and (n,)
        The matrix E, and the weights of the products.
    threshold : float
        Minimum score of a pair in the region.
    shares : ndarray of shape (n,)
        Share of each of the features in the split, for feature importances.
    none_present : int, default=UNSEEN
        Where pairs go that have none of the features in both samples: `NONE_INSIDE`, `NONE_OUTSIDE`, or `UNSEEN`.
    """

    features: NDArray[np.int64]
    centre: NDArray[np.float64]
    linear: NDArray[np.float64]
    own_directions: NDArray[np.float64]
    own: NDArray[np.float64]
    cross_directions: NDArray[np.float64]
    cross: NDArray[np.float64]
    threshold: float
    shares: NDArray[np.float64]
    none_present: int = UNSEEN
    kind: ClassVar[str] = "quadratic"

    def contains(self, pair_map: CoordinateSet, pairs: SamplePairs, *, unseen_inside: bool = False) -> NDArray[np.bool_]:
        """Return whether each pair lies in the region.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        pairs : SamplePairs
            Pairs with their samples.
        unseen_inside : bool, default=False
            Where pairs go whose state of missing values did not occur in training.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
            True for the pairs inside.
        """
        scores, lacks = self.scores(pairs)
        of_lacking = unseen_inside if self.none_present == UNSEEN else self.none_present == NONE_INSIDE
        return np.where(lacks, of_lacking, scores >= self.threshold)

    def at(self, threshold: float, none_present: int = UNSEEN) -> QuadraticRegion:
        """Return the region with the same score and another threshold.

        Parameters
        ----------
        threshold : float
            Minimum score of a pair in the region.
        none_present : int, default=UNSEEN
            Where pairs without a joint feature go.

        Returns
        -------
        QuadraticRegion
            The region.
        """
        return replace(self, threshold=threshold, none_present=none_present)

    def scores(self, pairs: SamplePairs) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the score of each pair.

        Parameters
        ----------
        pairs : SamplePairs
            Pairs with their samples.

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
            Scores; a pair lies in the region if its score is at least the threshold.
        lacks : ndarray of bool of shape (n_pairs,)
            Whether no feature is present in both samples, so that the pair has no score.
        """
        centred_a, first = self._centred(pairs.A, pairs.first)
        centred_b, second = self._centred(pairs.B, pairs.second)
        products_a, own_a = self._project(centred_a)
        products_b, own_b = self._project(centred_b)
        values, lacks = np.empty(pairs.n_pairs), np.zeros(pairs.n_pairs, dtype=np.bool_)
        quadratic_values(products_a, products_b, own_a, own_b, first, second, self.cross, values)
        if pairs.lacks_values:
            terms = (self.linear, self.own_directions, self.own, self.cross_directions, self.cross, self.shares)
            fill_incomplete_quadratic(centred_a, centred_b, first, second, *terms, values, lacks)
        return values, lacks

    def _centred(self, samples: NDArray[Any], rows: NDArray[np.int32]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Return y for the samples that occur, and their new row numbers."""
        used, numbers = occurring(samples, rows)
        return used[:, self.features].astype(np.float64) - self.centre, numbers

    def _project(self, centred: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return E y and u(y) for centred samples y."""
        products, squares, own, line = (np.empty((len(centred), n)) for n in (len(self.cross), len(self.own), 1, 1))
        fill_products(centred, np.ascontiguousarray(self.cross_directions.T), products)
        fill_products(centred, np.ascontiguousarray(self.own_directions.T), squares)
        with np.errstate(over="ignore"):  # a score that is not a number lies outside
            squares = squares**2
        fill_products(squares, self.own[:, None], own)
        fill_products(centred, self.linear[:, None], line)
        return products, (own + line)[:, 0]

    def feature_shares(self, pair_map: CoordinateSet, present: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the share of each feature, as given by the splitter.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the tree.
        present : ndarray of bool of shape (n_features,), optional
            Features that both samples of a pair have, to explain its score; all by default.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares that sum to one.
        """
        found = np.zeros(pair_map.n_all_features)
        joint = self.shares if present is None else self.shares * present[self.features]
        total = joint.sum()
        found[self.features] = joint / total if total > 0.0 else self.shares
        return found

    @staticmethod
    def _get_state(regions: Sequence[QuadraticRegion]) -> dict[str, Any]:
        """Return the concatenated arrays of regions."""
        sides = np.array([region.none_present for region in regions], dtype=np.uint8)
        return {
            "n_features": np.array([len(region.features) for region in regions], dtype=np.int64),
            "features": np.concatenate([region.features for region in regions]).astype(np.int64),
            **{name: np.concatenate([getattr(region, name) for region in regions]) for name in BY_FEATURE},
            "own_directions": np.concatenate([region.own_directions.ravel() for region in regions]),
            "cross_directions": np.concatenate([region.cross_directions.ravel() for region in regions]),
            "threshold": np.array([region.threshold for region in regions]),
            **({} if (sides == UNSEEN).all() else {"none_present": sides}),
        }

    @classmethod
    def _from_state(cls, fields: Fields, n: int, pair_map: CoordinateSet) -> Iterator[QuadraticRegion]:
        """Yield ``n`` regions."""
        features = fields.array("features", "int64", (None,), low=0, high=pair_map.n_features - 1)
        n_features = fields.lengths("n_features", n, len(features), low=1)
        columns = {name: fields.array(name, "float64", features.shape) for name in BY_FEATURE}
        squares = n_features**2
        own, cross = (fields.array(name, "float64", (int(squares.sum()),)) for name in ("own_directions", "cross_directions"))
        threshold = fields.array("threshold", "float64", (n,)).tolist()
        none_present = [UNSEEN] * n  # of complete samples
        if fields.has("none_present"):
            none_present = fields.array("none_present", "uint8", (n,), high=NONE_OUTSIDE).tolist()
        for k, (of_features, of_squares) in enumerate(zip(ranges(n_features), ranges(squares), strict=True)):
            some, shape = slice(*of_features), (int(n_features[k]), int(n_features[k]))
            yield cls(
                features=features[some],
                own_directions=own[slice(*of_squares)].reshape(shape),
                cross_directions=cross[slice(*of_squares)].reshape(shape),
                threshold=threshold[k],
                none_present=none_present[k],
                **{name: column[some] for name, column in columns.items()},
            )
