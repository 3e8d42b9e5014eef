"""Decisions of a similarity: the threshold, its guarantee, and scores as probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from simtree._utils.validation import check_real
from simtree.evaluation._calibration import Calibration, fit_calibration
from simtree.evaluation._counting import MAX_COMPARISONS, SAME_SHARE
from simtree.evaluation._thresholds import Goal, ThresholdReport, choose_threshold
from simtree.pairs._inputs import check_training
from simtree.pairs._labels import encode_groups
from simtree.pairs._sampling import PairSource

# `score` and `calibrate_probability` use all pairs of labelled samples up to this many, and sample this many beyond.
MAX_SCORE_PAIRS = 1_000_000


def _is_calibrated(model: Any) -> bool:
    if not hasattr(model, "calibration_"):
        raise AttributeError("predict_proba requires calibration; call calibrate_probability first.")
    return True


class DecisionMixin:
    """Decide on pairs by their score: a threshold, chosen on data that training has not seen, and probabilities."""

    threshold_: float
    threshold_report_: ThresholdReport
    pair_score: Callable[..., NDArray[np.float64]]
    _prepare: Callable[[NDArray[Any]], NDArray[Any]]
    _scorer: Callable[[NDArray[Any]], Callable[[Any, Any], NDArray[np.float64]]]

    def predict(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.int64]:
        """+1 for pairs with a score of at least ``threshold_``, otherwise -1.

        The threshold is on the scale of scores (metric-learn's is on the scale of distances).
        """
        return np.where(self.pair_score(pairs, X) >= self.threshold_, 1, -1)

    def set_threshold(self, threshold: float) -> Self:
        """Accept pairs with a score of at least ``threshold`` from now on."""
        check_is_fitted(self)
        self.threshold_ = check_real("threshold", threshold, -np.inf, np.inf)
        self.__dict__.pop("threshold_report_", None)
        return self

    def calibrate_threshold(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        strategy: str = "max_tpr",
        max_fpr: float | None = 1e-3,
        confidence: float | None = 0.95,
        min_rate: float | None = None,
        beta: float = 1.0,
        pairs: ArrayLike | None = None,
        identities: ArrayLike | None = None,
        never_pair: ArrayLike | None = None,
        n_pairs: int | None = MAX_COMPARISONS,
    ) -> Self:
        """Choose ``threshold_`` on data that training has not seen; by default so that the FPR is at most ``max_fpr``.

        Parameters
        ----------
        X, y, pairs : array-like
            Labelled points or pairs, as in `fit`; not those of `fit`.
        strategy : {"max_tpr", "max_tnr", "accuracy", "f_beta"}, default="max_tpr"
            ``"max_tpr"``: the highest TPR with FPR <= max_fpr. ``"max_tnr"``: the lowest FPR with a TPR of at least min_rate.
            ``"accuracy"`` and ``"f_beta"``: where these are highest on the pairs at hand.
        max_fpr : float, default=1e-3
            The false positive rate to stay below with new people. If the identities are too few for it, it is refused.
        confidence : float or None, default=0.95
            How sure that must be. None: the FPR of the pairs at hand counts, without a guarantee for others.
        min_rate : float, optional
            As in metric-learn: the least TNR for "max_tpr" (then without guarantee), the least TPR for "max_tnr".
        beta : float, default=1.0
            Of "f_beta": how much more the recall counts than the precision.
        identities : array-like, optional
            For pairs: whom the points belong to, one entry for each row of X, or (n_pairs, 2). Without it each point counts as
            somebody else, and pairs that share a person are taken for independent.
        never_pair : array-like of shape (n_points,), optional
            As in `fit`.
        n_pairs : int or None, default=5_000_000
            If there are more pairs, so many are drawn; None uses all.

        Returns
        -------
        self
            ``threshold_report_`` says what was promised and on what grounds.

        Examples
        --------
        >>> import numpy as np
        >>> from simtree import SimilarityTree
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat(np.arange(80), 4)
        >>> X = rng.normal(size=(80, 5))[y] + 0.1 * rng.normal(size=(320, 5))
        >>> tree = SimilarityTree(max_depth=5, random_state=0).fit(X[:160], y[:160])
        >>> tree.calibrate_threshold(X[160:], y[160:], max_fpr=0.05).threshold_report_.fpr_bound < 0.05
        True
        """
        goal = Goal(strategy, max_fpr, confidence, min_rate, beta)
        score, source, units = self._comparisons(X, y, pairs, identities, never_pair)
        source = source.limit(n_pairs, np.random.default_rng(0), positive_fraction=SAME_SHARE)
        report = choose_threshold(score, source, units, goal, n_units=len(np.unique(units)))
        self.threshold_, self.threshold_report_ = report.threshold, report
        return self

    def calibrate_probability(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pairs: ArrayLike | None = None,
        identities: ArrayLike | None = None,
        never_pair: ArrayLike | None = None,
    ) -> Self:
        """Learn what scores are worth as evidence, on data that training has not seen; then there is `predict_proba`.

        Takes what `calibrate_threshold` takes. ``calibration_`` holds an increasing function of the score, and its cost (Cllr)
        before and after, on identities that it was not fitted on. Of many pairs a million are drawn.
        """
        score, source, units = self._comparisons(X, y, pairs, identities, never_pair)
        index = source.sample(MAX_SCORE_PAIRS, np.random.default_rng(0))
        self.calibration_: Calibration = fit_calibration(score(index.first, index.second), index, units)
        return self

    @available_if(_is_calibrated)
    def predict_proba(self, pairs: ArrayLike, X: ArrayLike | None = None, *, prior: float = 0.5) -> NDArray[np.float64]:
        """Probabilities that pairs are different (first column) and the same (second), after `calibrate_probability`.

        Parameters
        ----------
        pairs, X : array-like
            As in `pair_score`.
        prior : float, default=0.5
            Share of same pairs where the probabilities are to hold: far below one half, if one person is looked for among many.
        """
        check_real("prior", prior, 0.0, 1.0, open_low=True, open_high=True)
        same = self.calibration_.probability(self.pair_score(pairs, X), prior)
        return np.column_stack([1.0 - same, same])

    def _comparisons(
        self,
        X: ArrayLike,
        y: ArrayLike,
        pairs: ArrayLike | None,
        identities: ArrayLike | None,
        never_pair: ArrayLike | None,
    ) -> tuple[Callable[[Any, Any], NDArray[np.float64]], PairSource, NDArray[np.int64]]:
        """Return a function that scores pairs of rows, the pairs there are, and the identity of each row."""
        check_is_fitted(self)
        samples, source = check_training(self, X, y, pairs, never_pair, reset=False)
        if source.labels is not None:
            units = source.labels
        else:
            units = np.arange(len(samples)) if identities is None else encode_groups(identities, len(samples), "identities")
        return self._scorer(self._prepare(samples)), source, units
