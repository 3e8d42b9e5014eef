"""Where the tests of trees send missing values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.missing import BOTH_ABOVE, BOTH_SEEN, ONE_ABOVE, ONE_SEEN, StateNodes
from simtree._kernels.route import Nodes
from simtree.pairs._coordinates import CoordinateSet

if TYPE_CHECKING:
    from simtree.trees._regions import AxisRegion

# All bits of the states of a test.
MAX_STATES = ONE_ABOVE | BOTH_ABOVE | ONE_SEEN | BOTH_SEEN


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
    nodes: Nodes, states: NDArray[np.uint8] | None, otherwise: NDArray[np.int32], pair_map: CoordinateSet
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
    pair_map : CoordinateSet
        Coordinates of the tree.

    Returns
    -------
    StateNodes
    """
    known = np.zeros(len(otherwise), dtype=np.uint8) if states is None else states
    return StateNodes(*nodes, known, otherwise, pair_map.kernel_directions)
