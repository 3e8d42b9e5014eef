"""Coordinates of pairs as a matrix without holes, for learners that need complete numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.missing import BOTH_MISSING, ONE_MISSING
from simtree.pairs._coordinates import CoordinateSet

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class FilledCoordinates:
    """Means in place of coordinates that a pair lacks, followed by one column per state that occurred in training.

    Coordinates of the same feature are in a state together, and share its column.

    Parameters
    ----------
    means : ndarray of shape (n_coordinates,)
        Mean of each coordinate over the training pairs that have it.
    one_missing, both_missing : ndarrays of int
        Places of coordinates whose state has a column, the first of each feature.
    group : ndarray of int of shape (n_coordinates,)
        What each coordinate lacks if it is in a state, see `CoordinateSet.state_groups`.

    Examples
    --------
    >>> pair_map = CoordinateSet(("abs_diff", "sum"), n_features=1)
    >>> values = np.array([[1.0, 3.0], [3.0, 5.0], [ONE_MISSING, ONE_MISSING]])
    >>> FilledCoordinates.fit(pair_map, np.arange(2), values).table(values)
    array([[1., 3., 0.],
           [3., 5., 0.],
           [2., 4., 1.]])
    """

    means: Matrix
    one_missing: NDArray[np.int64]
    both_missing: NDArray[np.int64]
    group: NDArray[np.int64]

    @classmethod
    def fit(cls, pair_map: CoordinateSet, coordinates: NDArray[np.int64], values: Matrix) -> Self:
        """Find means and states.

        Parameters
        ----------
        pair_map : CoordinateSet
            All coordinates of a pair.
        coordinates : ndarray of int of shape (n_coordinates,)
            Numbers of those that are used.
        values : ndarray of shape (n_pairs, n_coordinates)
            Coordinates of the training pairs, infinite in a state of missing values.

        Returns
        -------
        FilledCoordinates
        """
        group = pair_map.state_groups[coordinates]
        present = np.isfinite(values)
        n_present = present.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            means = np.where(present, values, 0.0).sum(axis=0) / np.maximum(n_present, 1)
        means = np.where(np.isfinite(means), means, 0.0)  # of a sum that overflows
        if n_present.min(initial=len(values)) == len(values):
            none = np.empty(0, dtype=np.int64)
            return cls(means, none, none, group)
        firsts = np.sort(np.unique(group, return_index=True)[1])
        one, both = (firsts[(values[:, firsts] == state).any(axis=0)] for state in (ONE_MISSING, BOTH_MISSING))
        return cls(means, one, both, group)

    def table(self, values: Matrix) -> Matrix:
        """Return the matrix of pairs.

        Parameters
        ----------
        values : ndarray of shape (n_pairs, n_coordinates)
            Their coordinates, infinite in a state of missing values.

        Returns
        -------
        ndarray of shape (n_pairs, n_coordinates + n_states)
            ``values`` itself if training pairs lacked nothing, and these do not.
        """
        present = np.isfinite(values)
        filled = values if present.all() else np.where(present, values, self.means)
        if not len(self.one_missing) + len(self.both_missing):
            return filled
        return np.hstack([filled, *(values[:, places] == state for places, state in self._told)])

    def is_known(self, values: Matrix) -> NDArray[np.bool_]:
        """Return whether a coordinate of each pair has a value, or is in a state that occurred in training.

        Parameters
        ----------
        values : ndarray of shape (n_pairs, n_coordinates)
            Coordinates of pairs, infinite in a state of missing values.

        Returns
        -------
        ndarray of bool of shape (n_pairs,)
        """
        known = [np.isfinite(values), *(values[:, places] == state for places, state in self._told)]
        return np.asarray(np.hstack(known).any(axis=1))

    def column_places(self) -> NDArray[np.int64]:
        """Return the place of the coordinate that each column of the table is of.

        Returns
        -------
        ndarray of int of shape (n_coordinates + n_states,)
        """
        return np.concatenate([np.arange(len(self.means)), self.one_missing, self.both_missing])

    def state_columns(self) -> tuple[tuple[NDArray[np.int64], slice], tuple[NDArray[np.int64], slice]]:
        """Return, for "missing in one" and "missing in both", the places of coordinates and the columns of their state.

        Returns
        -------
        tuple of two tuples
            Places and a slice of columns.
        """
        start = len(self.means)
        middle = start + len(self.one_missing)
        return (self.one_missing, slice(start, middle)), (self.both_missing, slice(middle, middle + len(self.both_missing)))

    @property
    def _told(self) -> list[tuple[NDArray[np.int64], float]]:
        """Places of coordinates that have a column for a state, and the state."""
        return [(self.one_missing, ONE_MISSING), (self.both_missing, BOTH_MISSING)]
