"""The symmetric coordinates of pairs as a matrix, for use with other libraries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.matrices import check_magnitude, check_rows, check_unmasked
from simtree.pairs._coordinates import OBLIQUE, CoordinateSet, SamplePairs
from simtree.pairs._limits import max_value


def pair_features(
    pairs: ArrayLike, kinds: Sequence[str] = ("abs_diff", "sum"), *, directions: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the symmetric coordinates of pairs as a matrix; by default the paper's f.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2, n_features)
        The pairs.
    kinds : sequence of str, default=("abs_diff", "sum")
        Names from `KINDS`.
    directions : array-like of shape (n_directions, n_features), optional
        Directions of the kind ``oblique``.

    Returns
    -------
    ndarray of shape (n_pairs, n_coordinates)
        Coordinates, ordered by kind. Swapping the two samples of a pair does not change its row.

    Examples
    --------
    >>> from simtree.pairs import pair_features
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
            f"directions has shape {w.shape}; the kind 'oblique' requires (n_directions, {n_features}), other kinds take none."
        )
    pair_map = CoordinateSet(tuple(kinds), n_features, w)
    flat = check_rows("pairs", samples.reshape(2 * n_pairs, n_features), stacked=True, dtype=np.float64, ensure_min_samples=0)
    check_magnitude(flat, *max_value(kinds, n_features), name="pairs")
    flat = pair_map.extend(flat)
    first = np.arange(0, 2 * n_pairs, 2, dtype=np.int32)
    return pair_map.values(SamplePairs(flat, flat, first, first + np.int32(1)))
