"""Regions on one side of a hyperplane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.coordinates import linear_values
from simtree._kernels.missing import BOTH_SEEN, ONE_SEEN
from simtree._kernels.missing_regions import linear_state_values
from simtree.io._fields import Fields
from simtree.io._registry import REGION, register
from simtree.pairs._coordinates import CoordinateSet, SamplePairs


@register(REGION)
@dataclass(frozen=True)
class LinearRegion:
    """Pairs for which a weighted sum of coordinates plus an intercept is at least zero.

    A coordinate that a pair lacks adds a number of its state instead. A pair of which nothing is known has no sum: each
    coordinate with a weight is in a state that did not occur in training.

    Parameters
    ----------
    weights : ndarray of shape (n_coordinates,)
        Weights of the plain (unscaled) coordinates.
    intercept : float
        Constant added to the sum.
    shares : ndarray of shape (n_coordinates,)
        Share of each coordinate in the split, for feature importances.
    states : ndarray of shape (n_coordinates, 2), optional
        What a coordinate adds if one sample lacks it, and if both do. None for model files of versions that refused missing
        values: nothing is then known of a pair that lacks a coordinate with a weight.
    seen : ndarray of uint8 of shape (n_coordinates,), optional
        Which of the two states occurred in training: a sum of bits of `simtree._kernels.missing`; none by default.
    """

    weights: NDArray[np.float64]
    intercept: float
    shares: NDArray[np.float64]
    states: NDArray[np.float64] | None = None
    seen: NDArray[np.uint8] | None = None
    kind: ClassVar[str] = "linear"

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
        values = np.empty(pairs.n_pairs)
        pairs = pair_map.complete(pairs)
        coordinates = pair_map.kind_codes, pair_map.columns
        if not pairs.lacks_values:
            linear_values(*pairs, *coordinates, self.weights, self.intercept, values)
            return values >= 0.0
        unknown = np.where(self.weights == 0.0, 0.0, np.nan)
        states = np.column_stack([unknown, unknown]) if self.states is None else self.states
        seen = np.zeros(len(pair_map), dtype=np.uint8) if self.seen is None else self.seen
        directions = pair_map.kernel_directions
        linear_state_values(*pairs, *coordinates, directions, self.weights, self.intercept, states, seen, values)
        return np.where(np.isnan(values), unseen_inside, values >= 0.0)

    def feature_shares(self, pair_map: CoordinateSet, present: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the share of each feature, from the shares of the coordinates.

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
        return pair_map.by_feature(self.shares)

    @staticmethod
    def _get_state(regions: Sequence[LinearRegion]) -> dict[str, Any]:
        """Return the state of regions, one row per region."""
        state = {
            "weights": np.array([region.weights for region in regions]),
            "intercept": np.array([region.intercept for region in regions]),
            "shares": np.array([region.shares for region in regions]),
        }
        if any(region.states is None for region in regions):  # read from a file of an earlier version
            return state
        nothing = np.zeros(len(regions[0].weights), dtype=np.uint8)
        seen = np.array([nothing if region.seen is None else region.seen for region in regions])
        states = np.array([region.states for region in regions])
        return {**state, "one_missing": states[:, :, 0], "both_missing": states[:, :, 1], "seen": seen}

    @classmethod
    def _from_state(cls, fields: Fields, n: int, pair_map: CoordinateSet) -> Iterator[LinearRegion]:
        """Yield ``n`` regions."""
        weights, shares = (fields.array(name, "float64", (n, len(pair_map))) for name in ("weights", "shares"))
        intercept = fields.array("intercept", "float64", (n,)).tolist()
        if not fields.has("seen"):
            return (cls(weights[k], intercept[k], shares[k]) for k in range(n))
        one, both = (fields.array(name, "float64", (n, len(pair_map))) for name in ("one_missing", "both_missing"))
        seen = fields.array("seen", "uint8", (n, len(pair_map)), high=ONE_SEEN | BOTH_SEEN)
        return (cls(weights[k], intercept[k], shares[k], np.column_stack([one[k], both[k]]), seen[k]) for k in range(n))
