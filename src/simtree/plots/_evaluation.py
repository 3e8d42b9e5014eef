"""Plots of an evaluation: DET and CMC curves, histograms of scores, and rates against the threshold."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from sklearn.utils.validation import check_is_fitted

from simtree.evaluation._evaluate import evaluate, evaluate_scores
from simtree.evaluation._intervals import monotone_ends
from simtree.evaluation._report import rates_at_threshold
from simtree.evaluation._results import Evaluation
from simtree.evaluation._thresholds import ThresholdReport
from simtree.metrics import FloatArray, det_points
from simtree.models._base import Similarity
from simtree.plots._style import BLUE, FAINT, ORANGE, Display, percent

# Rates at the ticks of normal-deviate axes, and where these axes end.
TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8)
LOWEST, HIGHEST = 1e-6, 0.9
# Label of the second axes of a threshold display.
TWIN = "axes of true positive rates"


class _EvaluationDisplay(Display):
    """Base class of displays of an `Evaluation`."""

    def __init__(self, evaluation: Evaluation, *, name: str | None = None) -> None:
        self.evaluation = evaluation
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Similarity,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pairs: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Evaluate a fitted similarity on held-out data, and draw the result.

        Parameters
        ----------
        estimator : Similarity
            Fitted similarity.
        X, y, pairs : array-like
            Held-out data, as in `evaluate`.
        name : str, optional
            Name in the legend; by default the class of the estimator.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        Self
            The display, drawn.
        """
        check_is_fitted(estimator)
        evaluation = evaluate(estimator, X, y, pairs=pairs, threshold=_threshold_in_use(estimator))
        return cls(evaluation, name=evaluation.name if name is None else name).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        same: ArrayLike,
        scores: ArrayLike,
        *,
        identities: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Evaluate scores of pairs from any source, and draw the result.

        Parameters
        ----------
        same, scores, identities : array-like
            Labels, scores and identities of the pairs, as in `evaluate_scores`.
        name : str, optional
            Name in the legend.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        Self
            The display, drawn.
        """
        return cls(evaluate_scores(scores, same, identities=identities), name=name).plot(ax, **kwargs)

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or in a new figure."""

    def _legend(self, **location: Any) -> None:
        if self.ax_.get_legend_handles_labels()[0]:
            self.ax_.legend(frameon=False, **location)


def _threshold_in_use(estimator: Any) -> float | None:
    """Return the threshold of a similarity; None if it has none, or one for scores with enrolled identities."""
    if getattr(getattr(estimator, "threshold_report_", None), "fusion", None) is not None:
        return None
    threshold: float | None = getattr(estimator, "threshold_", None)
    return threshold


class DetDisplay(_EvaluationDisplay):
    """Detection error tradeoff (DET) curve: the false negative against the false positive rate, on normal-deviate axes.

    Normal scores of both kinds of pairs give a straight line. The equal error rate and the threshold in use are marked.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate`.
    name : str, optional
        Name in the legend, before the EER.

    Attributes
    ----------
    ax_, figure_, line_, band_, eer_, point_
        Axes and figure it was last drawn on, the curve, the band of the intervals of both rates, the mark of the equal error
        rate, and that of the threshold in use (or None).

    Examples
    --------
    >>> from simtree.plots import DetDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = DetDisplay.from_predictions([True, True, False, False], [3, 2, 2, 1], name="by hand")
    >>> display.line_.get_label()
    'by hand (EER = 0.25)'
    """

    def plot(self, ax: Any = None, **line_kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on, perhaps with other curves; a new figure by default.
        **line_kwargs
            Properties of the line, as in ``ax.plot``.

        Returns
        -------
        Self
            The display, drawn.
        """
        ax = self._take_axes(ax, figsize=(5.2, 4.8), layout="constrained")
        evaluation = self.evaluation
        fpr, fnr = det_points(evaluation.roc)
        floor_x, floor_y = 0.5 / evaluation.n_different, 0.5 / evaluation.n_same
        lows = (ax.get_xlim()[0], ax.get_ylim()[0]) if ax.get_xscale() == "function" else (HIGHEST, HIGHEST)
        error = f"EER = {evaluation.eer.value:.3g}"
        style = {"label": error if self.name is None else f"{self.name} ({error})", **line_kwargs}
        # Rates of 0 and 1 have no normal deviate: they are drawn at half a pair.
        (self.line_,) = ax.plot(_inside(fpr, floor_x), _inside(fnr, floor_y), **style)
        colour = self.line_.get_color()
        low_fpr, high_fpr = monotone_ends(evaluation.band.fpr_interval)
        low_tpr, high_tpr = monotone_ends(evaluation.band.tpr_interval)
        x = np.concatenate([low_fpr, high_fpr[-1:], high_fpr[::-1]])
        y = 1.0 - np.concatenate([high_tpr, high_tpr[-1:], low_tpr[::-1]])
        label = self._new_label(evaluation.band.label)
        filled = {"color": colour, "alpha": 0.18, "lw": 0, "zorder": 1, "label": label}
        (self.band_,) = ax.fill(_inside(x, floor_x), _inside(y, floor_y), **filled)
        marked = {"ls": "none", "mec": colour, "mfc": "white", "mew": 1.6, "zorder": 4}
        equal = evaluation.eer.value
        at_eer = _inside(np.array([equal]), floor_x), _inside(np.array([equal]), floor_y)
        (self.eer_,) = ax.plot(*at_eer, marker="o", ms=6, label=self._new_label("equal error rate"), **marked)
        self.point_ = None
        rates = rates_at_threshold(evaluation)
        if rates is not None:
            at = _inside(np.array([rates.fpr]), floor_x), _inside(np.array([1.0 - rates.tpr]), floor_y)
            words = f"threshold {rates.threshold:.4g}: {percent(rates.fpr)}, {percent(1.0 - rates.tpr)}"
            (self.point_,) = ax.plot(*at, marker="D", ms=6.5, label=words, **marked)
        self._deviate_axes(min(lows[0], max(floor_x, LOWEST)), min(lows[1], max(floor_y, LOWEST)))
        self._title("DET curve")
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        self._legend(loc="upper right", fontsize=9)
        return self

    def _deviate_axes(self, left: float, bottom: float) -> None:
        """Scale both axes by normal deviates, from the lowest rates to `HIGHEST`."""
        ax = self.ax_
        functions = lambda rates: ndtri(np.clip(rates, 1e-300, 1.0 - 1e-16)), ndtr
        ax.set_xscale("function", functions=functions)
        ax.set_yscale("function", functions=functions)
        ax.set(xlim=(left, HIGHEST), ylim=(bottom, HIGHEST), xlabel="False positive rate", ylabel="False negative rate")
        for axis, low in ((ax.xaxis, left), (ax.yaxis, bottom)):
            ticks = [rate for rate in TICKS if low <= rate <= HIGHEST]
            axis.set_ticks(ticks, [percent(rate).replace("e-05", "e-5") for rate in ticks])
            axis.set_ticks([], minor=True)
        ax.tick_params(axis="x", labelrotation=45)


def _inside(rates: FloatArray, floor: float) -> FloatArray:
    """Return rates that are kept away from 0 and 1."""
    return np.clip(rates, floor, 1.0 - floor)


class CmcDisplay(_EvaluationDisplay):
    """Cumulative match characteristic (CMC) curve: how often a search has the true identity among its top k.

    Each sample is searched among all others, or each probe among the enrolled identities.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate` with all comparisons.
    name : str, optional
        Name in the legend, before the rate at rank 1.

    Attributes
    ----------
    ax_, figure_, line_, chance_
        Axes and figure it was last drawn on, the curve, and that of a ranking by chance.

    Examples
    --------
    >>> from simtree.plots import CmcDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_iris
    >>> from simtree import SimilarityTree
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SimilarityTree(max_depth=4, random_state=0).fit(X[::2], y[::2])
    >>> CmcDisplay.from_estimator(tree, X[1::2], y[1::2]).line_.get_label()
    'SimilarityTree (rank 1: 0.547)'
    """

    def __init__(self, evaluation: Evaluation, *, name: str | None = None) -> None:
        if evaluation.cmc is None:
            raise ValueError(
                "evaluation has no searches, because not all comparisons were made; evaluate samples with n_pairs=None."
            )
        super().__init__(evaluation, name=name)

    def plot(self, ax: Any = None, **line_kwargs: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on, perhaps with other curves; a new figure by default.
        **line_kwargs
            Properties of the line, as in ``ax.plot``.

        Returns
        -------
        Self
            The display, drawn.
        """
        ax = self._take_axes(ax, figsize=(5.6, 4.2), layout="constrained")
        rates = np.asarray(self.evaluation.cmc)
        ranks = np.arange(1, len(rates) + 1)
        first = f"rank 1: {rates[0]:.3f}"
        style = {"marker": "o", "ms": 4, "label": first if self.name is None else f"{self.name} ({first})", **line_kwargs}
        (self.line_,) = ax.plot(ranks, rates, **style)
        n_identities = self.evaluation.n_in_gallery
        chance = np.minimum(ranks / max(n_identities, 1), 1.0)
        label = self._new_label(f"chance, {n_identities:,} identities")
        (self.chance_,) = ax.plot(ranks, chance, color=FAINT, ls=":", lw=1.2, label=label)
        ax.set(xlabel="Rank", ylabel="Identification rate", ylim=(0.0, 1.01))
        ax.xaxis.get_major_locator().set_params(integer=True)
        searched = f"each of {self.evaluation.n_samples or 1:,} samples among all others"
        if self.evaluation.n_enrolled is not None:
            searched = f"each probe among {n_identities:,} enrolled identities"
        self._title(f"CMC curve: {searched}")
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        self._legend(loc="lower right")
        return self


class ScoreHistogramDisplay(_EvaluationDisplay):
    """Histograms of the scores of same and of different pairs, as proportions of each.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate`.
    name : str, optional
        Title of the plot.

    Attributes
    ----------
    ax_, figure_, same_, different_
        Axes and figure it was last drawn on, and the two histograms.

    Examples
    --------
    >>> from simtree.plots import ScoreHistogramDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = ScoreHistogramDisplay.from_predictions([True, True, False, False], [3, 2, 2, 1])
    >>> display.ax_.get_xlabel()
    'Score'
    """

    def plot(self, ax: Any = None, *, threshold: float | None = None) -> Self:
        """Draw the histograms.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on, which are cleared; a new figure by default.
        threshold : float, optional
            Threshold to mark with a line; by default the one in use, ``evaluation.threshold``.

        Returns
        -------
        Self
            The display, drawn.
        """
        ax = self._take_axes(ax, figsize=(5.6, 4.0), layout="constrained")
        ax.clear()
        histogram = self.evaluation.histogram
        self.different_, self.same_ = (
            ax.stairs(counts / counts.sum(), histogram.edges, fill=True, color=colour, alpha=0.45, label=f"{name} pairs", lw=0)
            for name, counts, colour in (("different", histogram.different, ORANGE), ("same", histogram.same, BLUE))
        )
        for counts, colour in ((histogram.different, ORANGE), (histogram.same, BLUE)):
            ax.stairs(counts / counts.sum(), histogram.edges, color=colour, lw=1.4)
        threshold = self.evaluation.threshold if threshold is None else threshold
        if threshold is not None:
            ax.axvline(threshold, color=FAINT, ls=":", lw=1.4, label=f"threshold {threshold:.4g}")
        ax.set(xlabel="Score", ylabel="Proportion of pairs", title=self.name or "Scores of same and different pairs")
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)
        self._legend()
        return self


class ThresholdDisplay(_EvaluationDisplay):
    """False positive rate (left axis, logarithmic) and true positive rate (right axis, linear) against the threshold.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate`.
    name : str, optional
        Title of the plot.
    report : ThresholdReport, optional
        Report on a chosen threshold (``threshold_report_``), which is marked together with its target. By default the threshold
        in use, ``evaluation.threshold``, is marked.

    Attributes
    ----------
    ax_, tpr_ax_, figure_, fpr_line_, tpr_line_
        Axes of both rates and figure it was last drawn on, and the curves.

    Examples
    --------
    >>> from simtree.plots import ThresholdDisplay
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = ThresholdDisplay.from_predictions([True, True, False, False], [3, 2, 2, 1])
    >>> display.fpr_line_.get_label()
    'false positive rate'
    """

    def __init__(self, evaluation: Evaluation, *, name: str | None = None, report: ThresholdReport | None = None) -> None:
        super().__init__(evaluation, name=name)
        self.report = report

    @classmethod
    def from_estimator(
        cls,
        estimator: Similarity,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pairs: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Evaluate a fitted similarity on held-out data, and mark its threshold.

        Parameters
        ----------
        estimator : Similarity
            Fitted similarity.
        X, y, pairs : array-like
            Held-out data, as in `evaluate`.
        name : str, optional
            Title of the plot; by default the class of the estimator.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        Self
            The display, drawn.
        """
        check_is_fitted(estimator)
        threshold = _threshold_in_use(estimator)
        evaluation = evaluate(estimator, X, y, pairs=pairs, threshold=threshold)
        report = None if threshold is None else getattr(estimator, "threshold_report_", None)
        return cls(evaluation, name=evaluation.name if name is None else name, report=report).plot(ax, **kwargs)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on, which are cleared; a new figure by default.

        Returns
        -------
        Self
            The display, drawn.
        """
        ax = self._take_axes(ax, figsize=(6.2, 4.4), layout="constrained")
        ax.clear()
        evaluation = self.evaluation
        band, floor = evaluation.band, 0.5 / evaluation.n_different
        for other in ax.get_shared_x_axes().get_siblings(ax):
            if other.get_label() == TWIN:  # of an earlier drawing on the same axes
                other.remove()
        self.tpr_ax_ = ax.twinx()
        self.tpr_ax_.set_label(TWIN)
        self.fpr_line_ = self._draw_rate(ax, "false positive rate", band.fpr, band.fpr_interval, ORANGE, floor)
        self.tpr_line_ = self._draw_rate(self.tpr_ax_, "true positive rate", band.tpr, band.tpr_interval, BLUE, 0.0)
        if self.report is not None:
            self._mark(self.report.threshold, "chosen threshold")
            if self.report.max_fpr is not None:
                target = self.report.max_fpr
                ax.axhline(target, color=FAINT, ls="--", lw=1.0, label=f"target {target:g}")
        elif evaluation.threshold is not None:
            self._mark(evaluation.threshold, "threshold")
        ax.set(yscale="log", ylim=(floor, 1.1), xlabel="Threshold", title=self.name or "Rates at each threshold")
        ax.set_ylabel("False positive rate", color=ORANGE)
        self.tpr_ax_.set(ylim=(0.0, 1.01))
        self.tpr_ax_.set_ylabel("True positive rate", color=BLUE)
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        handles, labels = ax.get_legend_handles_labels()
        others = self.tpr_ax_.get_legend_handles_labels()
        # On the axes that are drawn last, so that no curve runs through it.
        self.tpr_ax_.legend(handles + others[0], labels + others[1], loc="best", fontsize=9, framealpha=0.9, edgecolor="none")
        return self

    def _mark(self, threshold: float, name: str) -> None:
        """Mark a threshold, and write the rates where the curves cross it."""
        band = self.evaluation.band
        self.ax_.axvline(threshold, color=FAINT, ls=":", lw=1.4, label=f"{name} {threshold:.4g}")
        place = max(int(np.searchsorted(-band.thresholds, -threshold, side="right")) - 1, 0)
        ground = {"fc": self.ax_.get_facecolor(), "ec": "none", "alpha": 0.85, "pad": 1.0}
        for ax, rate, colour in ((self.ax_, band.fpr[place], ORANGE), (self.tpr_ax_, band.tpr[place], BLUE)):
            y = max(float(rate), 0.5 / self.evaluation.n_different)
            ax.plot([threshold], [y], "o", ms=5, color=colour, label="_chosen")
            beside = {"xytext": (6, 4), "textcoords": "offset points", "color": colour, "bbox": ground}
            ax.annotate(percent(float(rate)), (threshold, y), **beside)

    def _draw_rate(self, ax: Any, label: str, rate: FloatArray, interval: FloatArray, colour: str, floor: float) -> Any:
        band = self.evaluation.band
        low, high = (np.maximum(ends, floor) for ends in monotone_ends(interval))
        filled = {"color": colour, "alpha": 0.18, "lw": 0, "step": "pre", "label": self._new_label(band.label)}
        ax.fill_between(band.thresholds, low, high, **filled)
        (line,) = ax.plot(band.thresholds, np.maximum(rate, floor), color=colour, label=label, drawstyle="steps-pre")
        return line
