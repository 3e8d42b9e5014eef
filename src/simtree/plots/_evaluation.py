"""Pictures of what `evaluate` finds: DET and CMC curves, histograms of scores, rates against the threshold."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from simtree.evaluation._evaluate import Evaluation, evaluate, evaluate_scores
from simtree.evaluation._thresholds import ThresholdReport
from simtree.metrics import FloatArray, det_points
from simtree.models._base import Similarity
from simtree.plots._style import BLUE, FAINT, ORANGE, Display, rising


class _EvaluationDisplay(Display):
    """A picture of an evaluation."""

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
        """Evaluate a fitted similarity on held-out data, and draw what was found.

        Parameters
        ----------
        estimator : SimilarityTree or SimilarityForest
            Fitted.
        X, y, pairs : array-like
            Held-out data, as in `evaluate`.
        name : str, optional
            Stands in the legend; by default the class of the estimator.
        ax, **kwargs
            As in `plot`.
        """
        check_is_fitted(estimator)
        found = evaluate(estimator, X, y, pairs=pairs)
        return cls(found, name=found.name if name is None else name).plot(ax, **kwargs)

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
        """Draw any scores of pairs; ``same`` says which belong together, ``identities`` who the two of each pair are."""
        return cls(evaluate_scores(scores, same, identities=identities), name=name).plot(ax, **kwargs)

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, or in a new figure."""

    def _legend(self, **place: Any) -> None:
        if self.ax_.get_legend_handles_labels()[0]:
            self.ax_.legend(frameon=False, **place)


class DetDisplay(_EvaluationDisplay):
    """A DET curve: which share of same pairs is missed, at which share of different pairs let through, both logarithmic.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returns.
    name : str, optional
        Stands in the legend, before the EER.

    Attributes
    ----------
    ax_, figure_, line_, band_
        Where it was last drawn, the curve, and what the intervals of both rates allow.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = DetDisplay.from_predictions([True, True, False, False], [3, 2, 2, 1], name="by hand")
    >>> display.line_.get_label()
    'by hand (EER = 0.25)'
    """

    def plot(self, ax: Any = None, **line_kwargs: Any) -> Self:
        """Draw on ``ax``, perhaps beside other curves, or in a new figure; ``line_kwargs`` are those of ``ax.plot``."""
        ax = self._take_axes(ax, figsize=(5.2, 4.8), layout="constrained")
        found = self.evaluation
        fmr, fnmr = det_points(found.roc)
        floor_x, floor_y = 0.5 / found.n_different, 0.5 / found.n_same
        error = f"EER = {found.eer.value:.3g}"
        style = {"drawstyle": "steps-post", "label": error if self.name is None else f"{self.name} ({error})", **line_kwargs}
        # Rates of zero have no place on these axes: they stand at half a pair.
        (self.line_,) = ax.plot(np.maximum(fmr, floor_x), np.maximum(fnmr, floor_y), **style)
        (least_fpr, most_fpr), (least_tpr, most_tpr) = rising(found.band.fpr_interval), rising(found.band.tpr_interval)
        x = np.concatenate([least_fpr, most_fpr[::-1]])
        y = 1.0 - np.concatenate([most_tpr, least_tpr[::-1]])
        colour = self.line_.get_color()
        (self.band_,) = ax.fill(np.maximum(x, floor_x), np.maximum(y, floor_y), color=colour, alpha=0.18, lw=0, zorder=1)
        drawn_before = ax.get_xscale() == "log"
        limits = ax.get_xlim()[0] if drawn_before else 1.0, ax.get_ylim()[0] if drawn_before else 1.0
        ax.set(xscale="log", yscale="log", xlabel="False match rate", ylabel="False non-match rate")
        ax.set(xlim=(min(limits[0], floor_x), 1.0), ylim=(min(limits[1], max(floor_y, 1e-4)), 1.0))
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        self._legend(loc="lower left")
        return self


class CmcDisplay(_EvaluationDisplay):
    """A CMC curve: how often the true identity is among the best k, when each sample is searched among all others.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returns, of all comparisons.
    name : str, optional
        Stands in the legend, before the rate at rank 1.

    Attributes
    ----------
    ax_, figure_, line_
        Where it was last drawn, and the curve.

    Examples
    --------
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
                "evaluation has no searches, for not all comparisons were made; evaluate points with n_pairs=None."
            )
        super().__init__(evaluation, name=name)

    def plot(self, ax: Any = None, **line_kwargs: Any) -> Self:
        """Draw on ``ax``, perhaps beside other curves, or in a new figure; ``line_kwargs`` are those of ``ax.plot``."""
        ax = self._take_axes(ax, figsize=(5.6, 4.2), layout="constrained")
        found = np.asarray(self.evaluation.cmc)
        first = f"rank 1: {found[0]:.3f}"
        style = {"marker": "o", "ms": 4, "label": first if self.name is None else f"{self.name} ({first})", **line_kwargs}
        (self.line_,) = ax.plot(np.arange(1, len(found) + 1), found, **style)
        ax.set(xlabel="Rank", ylabel="Share of searches that find the identity", ylim=(None, 1.01))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        self._legend(loc="lower right")
        return self


class ScoreHistogramDisplay(_EvaluationDisplay):
    """How the scores of same and of different pairs are distributed, as shares of each kind.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returns.
    name : str, optional
        Title of the picture.

    Attributes
    ----------
    ax_, figure_, same_, different_
        Where it was last drawn, and the areas.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = ScoreHistogramDisplay.from_predictions([True, True, False, False], [3, 2, 2, 1])
    >>> display.ax_.get_xlabel()
    'Score'
    """

    def plot(self, ax: Any = None, *, threshold: float | None = None) -> Self:
        """Draw on ``ax``, which is cleared, or in a new figure, with a line at a threshold if one is given."""
        ax = self._take_axes(ax, figsize=(5.6, 4.0), layout="constrained")
        ax.clear()
        bars = self.evaluation.histogram
        self.different_, self.same_ = (
            ax.stairs(counts / counts.sum(), bars.edges, fill=True, color=colour, alpha=0.45, label=f"{kind} pairs", lw=0)
            for kind, counts, colour in (("different", bars.different, ORANGE), ("same", bars.same, BLUE))
        )
        for counts, colour in ((bars.different, ORANGE), (bars.same, BLUE)):
            ax.stairs(counts / counts.sum(), bars.edges, color=colour, lw=1.4)
        if threshold is not None:
            ax.axvline(threshold, color=FAINT, ls=":", lw=1.4, label="threshold")
        ax.set(xlabel="Score", ylabel="Share of the pairs of a kind", title=self.name or "")
        ax.grid(visible=True, alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)
        self._legend()
        return self


class ThresholdDisplay(_EvaluationDisplay):
    """Which threshold: both rates against it, with their intervals.

    Parameters
    ----------
    evaluation : Evaluation
        What `evaluate` returns.
    name : str, optional
        Title of the picture.
    report : ThresholdReport, optional
        A threshold that was chosen (``threshold_report_``), with its target.

    Attributes
    ----------
    ax_, figure_, fpr_line_, tpr_line_
        Where it was last drawn, and the curves.

    Examples
    --------
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
        """Evaluate a fitted similarity on held-out data, and mark its threshold if it was calibrated."""
        check_is_fitted(estimator)
        found = evaluate(estimator, X, y, pairs=pairs)
        report = getattr(estimator, "threshold_report_", None)
        return cls(found, name=found.name if name is None else name, report=report).plot(ax, **kwargs)

    def plot(self, ax: Any = None) -> Self:
        """Draw on ``ax``, which is cleared, or in a new figure."""
        ax = self._take_axes(ax, figsize=(5.6, 4.4), layout="constrained")
        ax.clear()
        band, floor = self.evaluation.band, 0.5 / self.evaluation.n_different
        kinds = (
            ("true positive rate", band.tpr, band.tpr_interval, BLUE),
            ("false positive rate", band.fpr, band.fpr_interval, ORANGE),
        )
        self.tpr_line_, self.fpr_line_ = (self._draw_rate(*kind, floor) for kind in kinds)
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
        low, high = (np.maximum(ends, floor) for ends in rising(interval))
        self.ax_.fill_between(thresholds, low, high, color=colour, alpha=0.18, lw=0, step="pre")
        (line,) = self.ax_.plot(thresholds, np.maximum(rate, floor), color=colour, label=label, drawstyle="steps-pre")
        return line
