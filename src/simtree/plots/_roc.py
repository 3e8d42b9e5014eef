"""ROC curves on linear and logarithmic axes, with confidence bands."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree.evaluation._evaluate import evaluate, evaluate_scores
from simtree.evaluation._intervals import monotone_ends
from simtree.evaluation._results import Band
from simtree.metrics import Roc, roc_curve
from simtree.models._base import Similarity, check_similarity
from simtree.plots._style import FAINT, Display

# On logarithmic axes curves have these points in addition to their knots; the axis starts at this rate, or at the smallest
# positive false positive rate if that is lower.
LOG_GRID = np.geomspace(1e-9, 1.0, 500)
MAX_LEFT_LIMIT = 1e-1
CHANCE, IN_USE = "chance", "threshold in use"
# Entries of the legend after those of the curves.
LAST = (CHANCE, IN_USE)
MANY_KNOTS = 64


class RocDisplay(Display):
    """ROC curve: the true positive rate against the false positive rate.

    Parameters
    ----------
    roc : Roc
        The curve.
    knots : bool, default=True
        Whether to mark the knots, which are the rates that a threshold can reach; if there are many, only some are marked.
    name : str, optional
        Name in the legend, before the AUC.
    band : Band, optional
        Intervals of the rates at some thresholds, as computed by `evaluate`. The band is the union, over the thresholds, of the
        rectangles of both intervals.
    threshold : float, optional
        Threshold in use, which is marked on a curve that has thresholds.

    Attributes
    ----------
    ax_, figure_, line_, knots_, band_, point_, chance_
        Axes and figure the curve was last drawn on, its line, its markers, its band and the point of the threshold (or None),
        and the chance line, which curves on the same axes share.

    Examples
    --------
    >>> from simtree.plots import RocDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = RocDisplay.from_predictions([True, True, False, False], [3, 2, 2, 1], name="by hand")
    >>> display.line_.get_label()
    'by hand (AUC = 0.875)'
    """

    def __init__(
        self,
        roc: Roc,
        *,
        knots: bool = True,
        name: str | None = None,
        band: Band | None = None,
        threshold: float | None = None,
    ) -> None:
        self.roc = roc
        self.band = band
        self.threshold = threshold
        self.knots = knots
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Similarity,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        pairs: ArrayLike | None = None,
        knots: bool = True,
        log_fpr: bool = False,
        name: str | None = None,
        band: bool = False,
        ax: Any = None,
        **line_kwargs: Any,
    ) -> Self:
        """Draw the training curve of a fitted similarity, or its curve on other data with the threshold in use marked.

        Parameters
        ----------
        estimator : Similarity
            Fitted similarity.
        X, y, pairs : array-like, optional
            Held-out data, as in ``estimator.score``. By default the curve of the training pairs is drawn.
        band : bool, default=False
            Whether to draw a confidence band, which accounts for pairs that share identities; requires held-out data, see
            `evaluate`.
        knots, log_fpr, name, ax, **line_kwargs
            As in `RocDisplay` and `plot`; the name is by default the class of the estimator.

        Returns
        -------
        Self
            The display, drawn.
        """
        check_similarity(estimator, "estimator")
        given = [key for key, value in (("X", X), ("y", y), ("pairs", pairs)) if value is not None]
        if given and (X is None or y is None):
            raise ValueError(f"Only {' and '.join(given)} given; give X and y, or neither for the training curve.")
        intervals, threshold = None, None
        if X is None or y is None:
            if band:
                raise ValueError("band=True needs held-out data; give X and y.")
            roc, default = estimator.roc_, f"{type(estimator).__name__} in training"
        elif band:
            evaluation = evaluate(estimator, X, y, pairs=pairs)
            roc, intervals, default = evaluation.roc, evaluation.band, evaluation.name
            threshold = float(estimator.threshold_)
        else:
            roc, default = estimator._roc_on(X, y, pairs), type(estimator).__name__
            threshold = float(estimator.threshold_)
        display = cls(roc, knots=knots, name=default if name is None else name, band=intervals, threshold=threshold)
        return display.plot(ax, log_fpr=log_fpr, **line_kwargs)

    @classmethod
    def from_predictions(
        cls,
        same: ArrayLike,
        scores: ArrayLike,
        *,
        identities: ArrayLike | None = None,
        knots: bool = False,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of scores of pairs from any source.

        Parameters
        ----------
        same, scores : array-like of shape (n_pairs,)
            Whether each pair is a same pair, and its score.
        identities : array-like of shape (n_pairs, 2), optional
            Identities of the two samples of each pair. If given, a confidence band is drawn.
        knots, name, ax, **kwargs
            As in `RocDisplay` and `plot`.

        Returns
        -------
        Self
            The display, drawn.
        """
        band = None if identities is None else evaluate_scores(scores, same, identities=identities).band
        return cls(roc_curve(scores, same), knots=knots, name=name, band=band).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, log_fpr: bool = False, **line_kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on, perhaps with other curves; a new figure by default.
        log_fpr : bool, default=False
            Whether to show false positive rates on a logarithmic axis, down to the smallest positive one; the axis of true
            positive rates begins where the curve does. An axis that is already logarithmic is kept.
        **line_kwargs
            Properties of the line, as in ``ax.plot``.

        Returns
        -------
        Self
            The display, drawn.
        """
        ax = self._take_axes(ax, figsize=(5.6, 4.6), layout="constrained")
        log = log_fpr or ax.get_xscale() == "log"
        fpr, tpr = self._log_points() if log else (self.roc.fpr, self.roc.tpr)
        area = f"AUC = {self.roc.auc():.3f}"
        line_kwargs = {"label": area if self.name is None else f"{self.name} ({area})", **line_kwargs}
        self._draw_frame(log)
        (self.line_,) = ax.plot(fpr, tpr, **line_kwargs)
        self.band_ = self._draw_band(self.line_.get_color())
        self.knots_ = None
        if self.knots:
            shown = self.roc.fpr > 0.0 if log else slice(None)
            every = 0.02 if self.roc.fpr.size > MANY_KNOTS else None
            style = {"marker": "o", "ms": 3.5, "ls": "none", "color": self.line_.get_color(), "markevery": every}
            (self.knots_,) = ax.plot(self.roc.fpr[shown], self.roc.tpr[shown], label="_knots", **style)
        self.point_ = self._draw_threshold(self.line_.get_color(), log)
        self._title("ROC curve")
        handles, labels = zip(
            *sorted(zip(*ax.get_legend_handles_labels(), strict=True), key=lambda entry: entry[1] in LAST), strict=True
        )
        ax.legend(handles, labels, loc="best" if log else "lower right", frameon=False)
        return self

    def _draw_band(self, colour: str) -> Any:
        """Fill the area between the curves of the best and of the worst corners of the intervals."""
        if self.band is None:
            return None
        low_fpr, high_fpr = monotone_ends(self.band.fpr_interval)
        low_tpr, high_tpr = monotone_ends(self.band.tpr_interval)
        best = np.append(0.0, low_fpr), np.append(0.0, high_tpr)
        worst = np.append(0.0, high_fpr), np.append(0.0, low_tpr)
        x, y = (np.concatenate([up, [1.0], down[::-1]]) for up, down in zip(best, worst, strict=True))
        label = self._new_label(self.band.label)
        (band,) = self.ax_.fill(np.maximum(x, LOG_GRID[0]), y, color=colour, alpha=0.18, lw=0, zorder=1, label=label)
        return band

    def _draw_threshold(self, colour: str, log: bool) -> Any:
        """Mark the rates at the threshold in use."""
        if self.threshold is None or self.roc.thresholds is None:
            return None
        place = int(np.searchsorted(-self.roc.thresholds, -self.threshold, side="right")) - 1
        fpr, tpr = float(self.roc.fpr[place]), float(self.roc.tpr[place])
        x = max(fpr, self.ax_.get_xlim()[0]) if log else fpr
        style = {"marker": "D", "ms": 6.5, "ls": "none", "mec": colour, "mfc": "white", "mew": 1.6, "zorder": 4}
        label = self._new_label(IN_USE)
        return self.ax_.plot([x], [tpr], label=label, clip_on=False, **style)[0]

    def _log_points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the curve at positive rates, with points between its knots: straight lines are curved on a log axis."""
        positive = self.roc.fpr > 0.0
        fpr = np.concatenate([LOG_GRID, self.roc.fpr[positive]])
        tpr = np.concatenate([self.roc.at(LOG_GRID), self.roc.tpr[positive]])
        order = np.lexsort((tpr, fpr))
        return fpr[order], tpr[order]

    def _first_tenth(self, fpr: float) -> float:
        """Return the last tenth below the curve, and below its band, from a false positive rate on."""
        tpr = float(self.roc.at(fpr))
        if self.band is not None:
            reached = np.searchsorted(monotone_ends(self.band.fpr_interval)[1], fpr, side="right")
            tpr = float(np.append(0.0, monotone_ends(self.band.tpr_interval)[0])[reached])
        return float(np.floor(10.0 * tpr) / 10.0)

    def _draw_frame(self, log: bool) -> None:
        """Set scales, limits and labels, and draw the chance line; earlier curves stay within the limits."""
        ax, left, right, diagonal = self.ax_, -0.01, 1.01, np.array([0.0, 1.0])
        before = [line for line in ax.lines if line.get_gid() == CHANCE]
        lowest = 0.0 if not log else ax.get_ylim()[0] + 0.01 if before else 1.0
        if log:
            seen = ax.get_xlim()[0] if before and ax.get_xscale() == "log" else MAX_LEFT_LIMIT
            left, right, diagonal = min(seen, float(self.roc.fpr[self.roc.fpr > 0.0].min())), 1.0, LOG_GRID
            lowest = min(lowest, self._first_tenth(left))
            ax.set_xscale("log")
        self.chance_ = before[0] if before else ax.plot([], [], color=FAINT, ls=":", lw=1.2, label=CHANCE, gid=CHANCE)[0]
        self.chance_.set_data(diagonal, diagonal)
        ax.set(xlim=(left, right), ylim=(lowest - 0.01, 1.01), xlabel="False positive rate", ylabel="True positive rate")
        ax.grid(visible=True, alpha=0.25, lw=0.6)
