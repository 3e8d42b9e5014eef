"""ROC curves, on linear and logarithmic axes, with the band of their intervals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from simtree.evaluation._evaluate import Band, evaluate, evaluate_scores
from simtree.metrics import Roc, roc_curve
from simtree.models._base import Similarity
from simtree.plots._style import FAINT, Display, rising

# Log axes: curves have these points besides their knots, and are seen from half the smallest false positive rate on.
LOG_GRID = np.geomspace(1e-9, 1.0, 500)
FIRST_VIEW = 1e-2
CHANCE = "chance"
MANY_KNOTS = 64


class RocDisplay(Display):
    """A ROC curve: which share of same pairs is found, at which share of different pairs let through.

    Parameters
    ----------
    roc : Roc
        The curve.
    knots : bool, default=True
        Mark the knots: what a threshold can reach. Where they are dense, some of them.
    name : str, optional
        Stands in the legend, before the AUC.
    band : Band, optional
        Intervals of the rates at some thresholds, as `evaluate` finds them. What is coloured is all that they allow: at each
        threshold the FPR and the TPR lie in their intervals.

    Attributes
    ----------
    ax_, figure_, line_, knots_, band_, chance_
        Where the curve was last drawn, its line, its marks and its band (or None), and the chance line, which curves on one
        axes share.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = RocDisplay.from_predictions([True, True, False, False], [3, 2, 2, 1], name="by hand")
    >>> display.line_.get_label()
    'by hand (AUC = 0.875)'
    """

    def __init__(self, roc: Roc, *, knots: bool = True, name: str | None = None, band: Band | None = None) -> None:
        self.roc = roc
        self.band = band
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
        """Draw the training curve of a fitted similarity, or its curve on other data.

        Parameters
        ----------
        estimator : SimilarityTree
            Fitted.
        X, y, pairs : array-like, optional
            Held-out data, as ``estimator.score`` takes it. Without, the curve of the training pairs is drawn.
        band : bool, default=False
            Draw intervals that know that pairs share people (of held-out data; see `evaluate`).
        knots, log_fpr, name, ax, **line_kwargs
            As in `RocDisplay` and `plot`; the name is by default the class of the estimator.
        """
        check_is_fitted(estimator)
        given = [key for key, value in (("X", X), ("y", y), ("pairs", pairs)) if value is not None]
        if given and (X is None or y is None):
            raise ValueError(f"Only {' and '.join(given)} was given; give X and y, or neither for the training curve.")
        intervals = None
        if X is None or y is None:
            if band:
                raise ValueError("band=True needs held-out data; give X and y.")
            roc, default = estimator.roc_, f"{type(estimator).__name__} in training"
        elif band:
            found = evaluate(estimator, X, y, pairs=pairs)
            roc, intervals, default = found.roc, found.band, found.name
        else:
            roc, default = estimator._roc_on(X, y, pairs), type(estimator).__name__
        display = cls(roc, knots=knots, name=default if name is None else name, band=intervals)
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
        """Draw the curve of any scores of pairs; ``same`` says which belong together. The rest is as in `from_estimator`.

        With ``identities``, the two people of each pair, it has a band.
        """
        band = None if identities is None else evaluate_scores(scores, same, identities=identities).band
        return cls(roc_curve(scores, same), knots=knots, name=name, band=band).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, log_fpr: bool = False, **line_kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw, perhaps beside other curves; a new figure by default.
        log_fpr : bool, default=False
            Logarithmic false positive rates, down to half the smallest one that occurs. Axes that are logarithmic stay so.
        **line_kwargs
            For the line of the curve, as in ``ax.plot``.
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
        handles, labels = zip(
            *sorted(zip(*ax.get_legend_handles_labels(), strict=True), key=lambda entry: entry[1] == CHANCE), strict=True
        )
        ax.legend(handles, labels, loc="upper left" if log else "lower right", frameon=False)
        return self

    def _draw_band(self, colour: str) -> Any:
        """Colour what lies between the best and the worst corners of the intervals."""
        if self.band is None:
            return None
        (least_fpr, most_fpr), (least_tpr, most_tpr) = rising(self.band.fpr_interval), rising(self.band.tpr_interval)
        best = np.append(0.0, least_fpr), np.append(0.0, most_tpr)
        worst = np.append(0.0, most_fpr), np.append(0.0, least_tpr)
        x, y = (np.concatenate([up, [1.0], down[::-1]]) for up, down in zip(best, worst, strict=True))
        (band,) = self.ax_.fill(np.maximum(x, LOG_GRID[0]), y, color=colour, alpha=0.18, lw=0, zorder=1)
        return band

    def _log_points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The curve without its points at zero, and with points between its knots: straight lines are bent on a log axis."""
        positive = self.roc.fpr > 0.0
        fpr = np.concatenate([LOG_GRID, self.roc.fpr[positive]])
        tpr = np.concatenate([self.roc.at(LOG_GRID), self.roc.tpr[positive]])
        order = np.lexsort((tpr, fpr))
        return fpr[order], tpr[order]

    def _draw_frame(self, log: bool) -> None:
        """Scales, labels and the chance line; curves drawn before stay in view."""
        ax, left, right, diagonal = self.ax_, -0.01, 1.01, np.array([0.0, 1.0])
        before = [line for line in ax.lines if line.get_gid() == CHANCE]
        if log:
            seen = ax.get_xlim()[0] if before and ax.get_xscale() == "log" else FIRST_VIEW
            left, right, diagonal = min(seen, float(self.roc.fpr[self.roc.fpr > 0.0].min()) / 2), 1.0, LOG_GRID
            ax.set_xscale("log")
        self.chance_ = before[0] if before else ax.plot([], [], color=FAINT, ls=":", lw=1.2, label=CHANCE, gid=CHANCE)[0]
        self.chance_.set_data(diagonal, diagonal)
        ax.set(xlim=(left, right), ylim=(-0.01, 1.01), xlabel="False positive rate", ylabel="True positive rate")
        ax.grid(visible=True, alpha=0.25, lw=0.6)
