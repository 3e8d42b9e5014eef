"""Base class and style of all displays."""

from __future__ import annotations

from typing import Any

# Orange to white to blue: safe for colour-blind readers, and light enough for black text.
PALETTE = ("#e08214", "#fbd9a9", "#f7f7f7", "#b5d5ea", "#4a9bcf")
# Same and different pairs, for lines and text, which need darker colours.
BLUE, ORANGE = "#1f6fae", "#d06f00"
INK, FAINT = "#222222", "#666666"
FONT_SIZE = 9.0


class Display:
    """Base class of displays, with the axes and the figure it was last drawn on."""

    ax_: Any
    figure_: Any

    def _take_axes(self, ax: Any, **new_figure: Any) -> Any:
        """Return ``ax``, or the axes of a new figure, and keep it as the axes to draw on."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError('Plots need matplotlib; install it with: pip install "simtree[plot]"') from error
        self.ax_ = plt.subplots(**new_figure)[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_

    def _title(self, words: str) -> None:
        """Set a title, unless the axes have one."""
        if not self.ax_.get_title():
            self.ax_.set_title(words)

    def _new_label(self, label: str) -> str:
        """Return a label for the legend, or a hidden one if curves on the same axes have it already."""
        return f"_{label}" if label in self.ax_.get_legend_handles_labels()[1] else label


def percent(rate: float) -> str:
    """Return a rate in percent, with three digits at most.

    Examples
    --------
    >>> percent(0.00012345), percent(0.93256)
    ('0.0123 %', '93.3 %')
    """
    return f"{100 * rate:.3g} %"


def shorten(name: str, length: int) -> str:
    """Return a name without its middle part if it is longer than a length."""
    return name if len(name) <= length else f"{name[: length // 2]}…{name[-((length - 1) // 2) :]}"
