"""Plots of an evaluation: DET and CMC curves, histograms of scores, and rates against the threshold."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from simtree.evaluation._evaluate import evaluate, evaluate_scores
from simtree.evaluation._intervals import monotone_ends
from simtree.evaluation._results import Evaluation
from simtree.evaluation._thresholds import ThresholdReport
from simtree.metrics import FloatArray, det_points
from simtree.models._base import Similarity
from simtree.plots._style import BLUE, FAINT, ORANGE, Display


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
        evaluation = evaluate(estimator, X, y, pairs=pairs)
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


class DetDisplay(_EvaluationDisplay):
    """Detection error tradeoff (DET) curve: the false negative rate against the false positive rate, on logarithmic axes.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate`.
    name : str, optional
        Name in the legend, before the EER.

    Attributes
    ----------
    ax_, figure_, line_, band_
        Axes and figure it was last drawn on, the curve, and the band of the intervals of both rates.

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
        error = f"EER = {evaluation.eer.value:.3g}"
        style = {"drawstyle": "steps-post", "label": error if self.name is None else f"{self.name} ({error})", **line_kwargs}
        # A logarithmic axis cannot show zero: rates of zero are drawn at half a pair.
        (self.line_,) = ax.plot(np.maximum(fpr, floor_x), np.maximum(fnr, floor_y), **style)
        low_fpr, high_fpr = monotone_ends(evaluation.band.fpr_interval)
        low_tpr, high_tpr = monotone_ends(evaluation.band.tpr_interval)
        x = np.concatenate([low_fpr, high_fpr[::-1]])
        y = 1.0 - np.concatenate([high_tpr, low_tpr[::-1]])
        colour = self.line_.get_color()
        (self.band_,) = ax.fill(np.maximum(x, floor_x), np.maximum(y, floor_y), color=colour, alpha=0.18, lw=0, zorder=1)
        drawn_before = ax.get_xscale() == "log"
        limits = ax.get_xlim()[0] if drawn_before else 1.0, ax.get_ylim()[0] if drawn_before else 1.0
        ax.set(xscale="log", yscale="log", xlabel="False positive rate", ylabel="False negative rate")
        ax.set(xlim=(min(limits[0], floor_x), 1.0), ylim=(min(limits[1], max(floor_y, 1e-4)), 1.0))
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        self._legend(loc="lower left")
        return self


class CmcDisplay(_EvaluationDisplay):
    """Cumulative match characteristic (CMC) curve: how often a search has the true identity among its top k.

    Each sample is searched among all others.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate` with all comparisons.
    name : str, optional
        Name in the legend, before the rate at rank 1.

    Attributes
    ----------
    ax_, figure_, line_
        Axes and figure it was last drawn on, and the curve.

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
        first = f"rank 1: {rates[0]:.3f}"
        style = {"marker": "o", "ms": 4, "label": first if self.name is None else f"{self.name} ({first})", **line_kwargs}
        (self.line_,) = ax.plot(np.arange(1, len(rates) + 1), rates, **style)
        ax.set(xlabel="Rank", ylabel="Identification rate", ylim=(None, 1.01))
        ax.xaxis.get_major_locator().set_params(integer=True)
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
            Threshold to mark with a line.

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
        if threshold is not None:
            ax.axvline(threshold, color=FAINT, ls=":", lw=1.4, label="threshold")
        ax.set(xlabel="Score", ylabel="Proportion of pairs", title=self.name or "")
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)
        self._legend()
        return self


class ThresholdDisplay(_EvaluationDisplay):
    """True and false positive rates against the threshold, with their intervals.

    Parameters
    ----------
    evaluation : Evaluation
        Result of `evaluate`.
    name : str, optional
        Title of the plot.
    report : ThresholdReport, optional
        Report on a chosen threshold (``threshold_report_``), which is marked together with its target.

    Attributes
    ----------
    ax_, figure_, fpr_line_, tpr_line_
        Axes and figure it was last drawn on, and the curves.

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
        """Evaluate a fitted similarity on held-out data, and mark its threshold if it was calibrated.

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
        evaluation = evaluate(estimator, X, y, pairs=pairs)
        report = getattr(estimator, "threshold_report_", None)
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
        ax = self._take_axes(ax, figsize=(5.6, 4.4), layout="constrained")
        ax.clear()
        band, floor = self.evaluation.band, 0.5 / self.evaluation.n_different
        curves = (
            ("true positive rate", band.tpr, band.tpr_interval, BLUE),
            ("false positive rate", band.fpr, band.fpr_interval, ORANGE),
        )
        self.tpr_line_, self.fpr_line_ = (self._draw_rate(*curve, floor) for curve in curves)
        if self.report is not None:
            ax.axvline(self.report.threshold, color=FAINT, ls=":", lw=1.4, label="chosen threshold")
            if self.report.max_fpr is not None:
                ax.axhline(self.report.max_fpr, color=FAINT, ls="--", lw=1.0, label=f"target {self.report.max_fpr:g}")
        ax.set(yscale="log", ylim=(floor, 1.1), xlabel="Threshold", ylabel="Rate", title=self.name or "")
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        self._legend(loc="lower left")
        return self

    def _draw_rate(self, label: str, rate: FloatArray, interval: FloatArray, colour: str, floor: float) -> Any:
        thresholds = self.evaluation.band.thresholds
        low, high = (np.maximum(ends, floor) for ends in monotone_ends(interval))
        self.ax_.fill_between(thresholds, low, high, color=colour, alpha=0.18, lw=0, step="pre")
        (line,) = self.ax_.plot(thresholds, np.maximum(rate, floor), color=colour, label=label, drawstyle="steps-pre")
        return line
