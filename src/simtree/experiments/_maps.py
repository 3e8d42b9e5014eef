"""Helpers for figures of pairs: scatter plots of same and different pairs, and maps of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree.plots import BLUE, ORANGE, PALETTE


def grid(low: float, high: float, n: int) -> NDArray[np.float64]:
    """Return the centres of n equal intervals from low to high.

    Examples
    --------
    >>> grid(0.0, 1.0, 2)
    array([0.25, 0.75])
    """
    return np.asarray(low + (high - low) * (np.arange(n) + 0.5) / n)


def draw_map(ax: Any, values: NDArray[np.float64], *, low: float, high: float, limits: tuple[float, float]) -> Any:
    """Colour a square by values on a `grid`, row by row from below, from orange at ``limits[0]`` to blue at ``limits[1]``."""
    from matplotlib.colors import LinearSegmentedColormap

    return ax.imshow(
        values,
        origin="lower",
        extent=(low, high, low, high),
        cmap=LinearSegmentedColormap.from_list("simtree", PALETTE),
        vmin=limits[0],
        vmax=limits[1],
        interpolation="nearest",
    )


def scatter_pairs(ax: Any, x: NDArray[np.float64], y: NDArray[np.float64], same: NDArray[np.bool_], *, size: float) -> None:
    """Plot same pairs as blue dots and different pairs as orange crosses."""
    ax.scatter(x[same], y[same], s=size, marker="o", color=BLUE, lw=0, label="same")
    ax.scatter(x[~same], y[~same], s=1.4 * size, marker="x", color=ORANGE, lw=0.7, label="different")
