"""Where the tests of trees send missing values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.missing import BOTH_ABOVE, BOTH_MISSING, BOTH_SEEN, ONE_ABOVE, ONE_MISSING, ONE_SEEN, StateNodes
from simtree._kernels.route import Nodes

if TYPE_CHECKING:
    from simtree.trees._regions import AxisRegion

# All bits of the states of a test.
MAX_STATES = ONE_ABOVE | BOTH_ABOVE | ONE_SEEN | BOTH_SEEN


def goes_above(value: float, threshold: float, states: int) -> bool:
    """Return whether a coordinate, or its state, continues at the successor for values above the threshold.

    Examples
    --------
    >>> goes_above(2.0, 1.0, 0), goes_above(ONE_MISSING, 1.0, BOTH_ABOVE), goes_above(BOTH_MISSING, 1.0, BOTH_ABOVE)
    (True, False, True)
    """
    if value == ONE_MISSING:
        return states & ONE_ABOVE != 0
    if value == BOTH_MISSING:
        return states & BOTH_ABOVE != 0
    return value > threshold


def is_unseen(value: float, states: int) -> bool:
    """Return whether a coordinate is in a state that did not occur among the training pairs of a test."""
    return (value == ONE_MISSING and states & ONE_SEEN == 0) or (value == BOTH_MISSING and states & BOTH_SEEN == 0)


def joined_states(regions: Iterable[AxisRegion]) -> NDArray[np.uint8] | None:
    """Return the concatenated states of the tests of regions; None if no region has any.

    Parameters
    ----------
    regions : iterable of AxisRegion
        The regions.

    Returns
    -------
    ndarray of uint8 of shape (n_tests,) or None
    """
    regions = list(regions)
    if all(region.states is None for region in regions):
        return None
    parts = (np.zeros(len(region.coordinate)) if region.states is None else region.states for region in regions)
    return np.concatenate(list(parts)).astype(np.uint8)


def with_states(
    nodes: Nodes, states: NDArray[np.uint8] | None, otherwise: NDArray[np.int32], directions: NDArray[np.float64]
) -> StateNodes:
    """Return a table of tests that pairs with missing values can be routed through.

    Parameters
    ----------
    nodes : Nodes
        The tests.
    states : ndarray of uint8 of shape (n_tests,) or None
        Where the tests send missing values.
    otherwise : ndarray of int32 of shape (n_tests,)
        Where those continue that did not occur in training.
    directions : ndarray of shape (n_directions, n_features)
        Directions of the columns that follow the features of the samples.

    Returns
    -------
    StateNodes
    """
    known = np.zeros(len(otherwise), dtype=np.uint8) if states is None else states
    return StateNodes(*nodes, known, otherwise, directions)
