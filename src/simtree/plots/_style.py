"""What all displays have in common: one look, and the axes they were last drawn on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Orange to white to blue: told apart with any colour vision, and light enough for black text.
PALETTE = ("#e08214", "#fbd9a9", "#f7f7f7", "#b5d5ea", "#4a9bcf")
# Same pairs, and different ones, where lines and text need darker colours.
BLUE, ORANGE = "#1f6fae", "#d06f00"
INK, FAINT = "#222222", "#666666"
FONT_SIZE = 9.0


class Display:
    """Base of the displays: it has the axes it was last drawn on."""

    ax_: Any
    figure_: Any

    def _take_axes(self, ax: Any, **new_figure: Any) -> Any:
        """Draw on ``ax`` from now on, or on the axes of a new figure."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError('Plots need matplotlib; install it with: pip install "simtree[plot]"') from error
        self.ax_ = plt.subplots(**new_figure)[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


def rising(interval: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The low and the high ends of a rate's intervals at falling thresholds, so that neither falls.

    A rate does not fall when the threshold does: what it is at least at one threshold it is at least at all lower ones.

    Examples
    --------
    >>> rising(np.array([[0.2, 0.6], [0.1, 0.5], [0.3, 0.9]]))
    (array([0.2, 0.2, 0.3]), array([0.5, 0.5, 0.9]))
    """
    return np.maximum.accumulate(interval[:, 0]), np.minimum.accumulate(interval[::-1, 1])[::-1]


def shorten(name: str, length: int) -> str:
    """A name with its middle left out, if it is longer."""
    return name if len(name) <= length else f"{name[: length // 2]}…{name[-((length - 1) // 2) :]}"
