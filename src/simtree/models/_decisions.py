"""Decisions of a similarity: thresholds with guarantees, and calibrated probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from simtree._utils.validation import check_real
from simtree.evaluation._calibration import Calibration, fit_calibration
from simtree.evaluation._counting import MAX_COMPARISONS
from simtree.evaluation._enrolled import Templates, TemplateScore, check_no_pairs, check_protocol, check_template_times
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._model_fusion import resolve_fusion
from simtree.evaluation._templates import TOP_MEAN, Fusion
from simtree.evaluation._thresholds import Goal, ThresholdReport, choose_threshold_by
from simtree.models._held_out import HeldOutCheck
from simtree.pairs._inputs import check_training
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import PairSource

# Maximum number of pairs of labelled samples that `score` and `calibrate_probability` use; if there are more, they are sampled.
MAX_SCORE_PAIRS = 1_000_000


def _is_calibrated(model: Any) -> bool:
    if not hasattr(model, "calibration_"):
        raise AttributeError("predict_proba requires calibration; call calibrate_probability first.")
    return True


def check_for_pairs(model: Any, otherwise: str) -> None:
    """Raise if the threshold of a model is for scores with enrolled identities; ``otherwise`` is what else one can do."""
    fusion = getattr(getattr(model, "threshold_report_", None), "fusion", None)
    if fusion is not None:
        raise ValueError(
            f"threshold_ is for scores with enrolled identities (fusion={fusion!r}), not for pairs of samples; calibrate "
            f"it without enrol=, or {otherwise}."
        )


class DecisionMixin:
    """Methods of a similarity to decide on pairs: a threshold chosen on held-out data, and probabilities."""

    threshold_: float
    threshold_report_: ThresholdReport
    held_out_check_: HeldOutCheck
    pair_score: Callable[..., NDArray[np.float64]]
    _prepared: Callable[[Any], Any]
    _scorer: Callable[[NDArray[Any]], Callable[[Any, Any], NDArray[np.float64]]]
    _template_scorer: Callable[..., TemplateScore]

    def predict(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.int64]:
        """Predict whether each pair is a same pair: its score is at least ``threshold_``.

        The threshold is on the scale of scores (in metric-learn it is on the scale of distances).

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
            Pairs of samples, or of row indices of X (or of identifiers for the preprocessor).
        X : array-like of shape (n_samples, n_features), optional
            Samples that row indices refer to.

        Returns
        -------
        ndarray of shape (n_pairs,)
            +1 for pairs predicted to be same, -1 for different.
        """
        check_for_pairs(self, "decide with Gallery.verify")
        return np.where(self.pair_score(pairs, X) >= self.threshold_, 1, -1)

    def set_threshold(self, threshold: float) -> Self:
        """Set the threshold of `predict`: pairs with at least this score are accepted.

        Parameters
        ----------
        threshold : float
            Threshold on the scale of scores.

        Returns
        -------
        self
            The estimator.
        """
        check_is_fitted(self)
        self.threshold_ = check_real("threshold", threshold, -np.inf, np.inf)
        for name in ("threshold_report_", "held_out_check_"):
            self.__dict__.pop(name, None)
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
        assume: str = "regular",
        weighting: str = "identities",
        max_samples: int | None = None,
        sessions: ArrayLike | None = None,
        by: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        identities: ArrayLike | None = None,
        never_pair: ArrayLike | None = None,
        enrol: ArrayLike | None = None,
        fusion: str | LearnedFusion | None = None,
        n_best: int | None = None,
        time: Any = None,
        n_pairs: int | None = MAX_COMPARISONS,
        strict: bool = False,
    ) -> Self:
        """Choose ``threshold_`` on held-out data, by default such that the FPR is at most ``max_fpr`` with confidence.

        The guarantee is for new identities: with probability ``confidence`` over the draw of the identities in the data, the
        FPR of the threshold is at most ``max_fpr``. What it assumes is in ``assume``; ``threshold_report_.promise`` states it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples, that were not used in `fit`.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        strategy : {"max_tpr", "max_tnr", "accuracy", "f_beta"}, default="max_tpr"
            ``"max_tpr"`` maximises the TPR subject to an FPR of at most ``max_fpr``; ``"max_tnr"`` minimises the FPR subject
            to a TPR of at least ``min_rate``; ``"accuracy"`` and ``"f_beta"`` maximise that metric on these pairs.
        max_fpr : float, default=1e-3
            Maximum false positive rate for unseen identities. An error is raised if the identities are too few or too unequal
            to guarantee it.
        confidence : float or None, default=0.95
            Confidence of the guarantee. None uses the FPR on these pairs, without a guarantee for others.
        min_rate : float, optional
            As in metric-learn: the minimum TNR for ``"max_tpr"`` (then without a guarantee), or the minimum TPR for
            ``"max_tnr"``.
        beta : float, default=1.0
            Weight of recall relative to precision for ``"f_beta"``; 0 is precision alone.
        assume : {"regular", "none"}, default="regular"
            ``"regular"`` learns from the data at higher rates how unequal identities are in being mistaken for others, and
            assumes that those not in the data are alike. ``"none"`` assumes only that identities are drawn independently;
            6 / ``max_fpr`` identities are then needed.
        weighting : {"identities", "samples"}, default="identities"
            Whether the FPR is that of a random pair of identities, or of a random pair of samples.
        max_samples : int, optional
            For ``weighting="samples"``, the maximum number of samples per identity in use; the bound without an assumption
            needs it.
        sessions : array-like of shape (n_samples,), optional
            Session of each sample, if the samples of a session share an effect, such as the light of a day. The guarantee is
            then for new identities in new sessions.
        by : array-like of shape (n_samples,), optional
            Attribute of each sample, such as sex; the guarantee then holds within each of its subgroups.
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
        identities : array-like, optional
            For pairs, the identity of each sample: one entry per row of X, or an array of shape (n_pairs, 2). A guarantee
            needs it.
        never_pair : array-like of shape (n_samples,), optional
            Labelled samples that share a value here never form a pair, see `SimilarityTree.fit`.
        enrol : array-like of bool of shape (n_samples,), optional
            Which samples are enrolled. The threshold is then for scores of a probe, any other sample, with all enrolled samples
            of an identity, as in `Gallery.verify`, and not for pairs of samples: `predict` refuses it. The guarantee is for
            people who are enrolled with about as many samples.
        fusion, n_best, time : optional
            How these scores become one, see `evaluate`.
        n_pairs : int or None, default=5_000_000
            Maximum number of pairs; if there are more, this many are sampled. None uses all pairs.
        strict : bool, default=False
            Whether to raise an error, instead of a warning, if same pairs score so far above those that a forest with
            ``oob_score=True`` had not seen that these data look like its training data. Other models cannot tell.

        Returns
        -------
        self
            The estimator, with the guarantee and the data it is based on in ``threshold_report_``, and in
            ``held_out_check_`` whether these data look like training data.

        Examples
        --------
        >>> import numpy as np
        >>> from simtree import SimilarityTree
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat(np.arange(160), 4)
        >>> X = rng.normal(size=(160, 5))[y] + 0.1 * rng.normal(size=(640, 5))
        >>> tree = SimilarityTree(max_depth=5, random_state=0).fit(X[:320], y[:320])
        >>> print(tree.calibrate_threshold(X[320:], y[320:], max_fpr=0.05).threshold_report_.promise)
        FPR <= 0.05 per pair of identities with 95 % confidence if identities differ regularly; without that assumption <= 0.075
        """
        goal = Goal(strategy, max_fpr, confidence, min_rate, beta, assume, weighting, max_samples)
        prepared, source, units = self._compared(X, y, pairs, identities, never_pair)
        if goal.guarantee is not None and source.labels is None and identities is None:
            raise ValueError(
                "max_fpr cannot be guaranteed for pairs of unknown identities, which may share some; give identities=, or "
                "confidence=None for the FPR on these pairs alone."
            )
        in_sessions = None if sessions is None else encode_groups(sessions, len(units), "sessions")
        check_protocol(enrol, fusion=fusion, n_best=n_best, time=time)
        check = self._check_held_out(prepared, source, units)
        if check.suspicious and strict:
            raise ValueError(f"strict=True: {check}; give data that were not used in fit.")
        if enrol is None:
            score = self._scorer(prepared)
            report = choose_threshold_by(score, source, units, goal, sessions=in_sessions, by=by, n_pairs=n_pairs)
        else:
            check_no_pairs(X, pairs, identities)
            chosen = resolve_fusion(self, "max" if fusion is None else fusion, n_best)
            times = check_template_times(time, len(units), needed=chosen.needs_time)
            templates = Templates.of(units, enrol, never_pair)
            weighting = goal.weighting if goal.guarantee else "samples"
            report = choose_threshold_by(
                templates.scorer(self._template_scorer(prepared, chosen, times)),
                templates.comparisons(n_pairs, weighting=weighting),
                templates.identities,
                goal,
                sessions=templates.sessions(sessions),
                by=templates.of_rows(by, "by"),
                n_pairs=n_pairs,
            )
            n_averaged = chosen.n_best if isinstance(chosen, Fusion) and chosen.name == TOP_MEAN else None
            report = replace(report, fusion=chosen.name, n_best=n_averaged)
        self.threshold_, self.threshold_report_, self.held_out_check_ = report.threshold, report, check
        if check.suspicious:
            warnings.warn(f"{check}.", UserWarning, stacklevel=2)
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
        """Calibrate scores to log-likelihood ratios on held-out data, which enables `predict_proba`.

        At most a million pairs of labelled samples are used; if there are more, they are sampled with a fixed random seed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples, that were not used in `fit`.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
        identities : array-like, optional
            For pairs, the identity of each sample, as in `calibrate_threshold`.
        never_pair : array-like of shape (n_samples,), optional
            Labelled samples that share a value here never form a pair, see `SimilarityTree.fit`.

        Returns
        -------
        self
            The estimator, with ``calibration_``: an increasing function of the score, and its cost (Cllr) before and after
            calibration, on identities that it was not fitted on.
        """
        score, source, units = self._comparisons(X, y, pairs, identities, never_pair)
        index = source.sample(MAX_SCORE_PAIRS, np.random.default_rng(0), shuffle=False)
        self.calibration_: Calibration = fit_calibration(score(index.first, index.second), index, units)
        return self

    @available_if(_is_calibrated)
    def predict_proba(self, pairs: ArrayLike, X: ArrayLike | None = None, *, prior: float = 0.5) -> NDArray[np.float64]:
        """Return the calibrated probability that each pair is different or same, after `calibrate_probability`.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
            Pairs of samples, or of row indices of X (or of identifiers for the preprocessor).
        X : array-like of shape (n_samples, n_features), optional
            Samples that row indices refer to.
        prior : float, default=0.5
            Share of same pairs in the application; far below one half when one identity is searched for among many.

        Returns
        -------
        ndarray of shape (n_pairs, 2)
            Probabilities of different (first column) and same (second column).
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
        """Return a function that scores pairs of rows, the source of pairs, and the identity of each row."""
        prepared, source, units = self._compared(X, y, pairs, identities, never_pair)
        return self._scorer(prepared), source, units

    def _compared(
        self,
        X: ArrayLike,
        y: ArrayLike,
        pairs: ArrayLike | None,
        identities: ArrayLike | None,
        never_pair: ArrayLike | None,
    ) -> tuple[NDArray[Any], PairSource, NDArray[np.int64]]:
        """Return the prepared samples, the source of pairs, and the identity of each row."""
        check_is_fitted(self)
        samples, source = check_training(self, X, y, pairs, never_pair, reset=False)
        if source.labels is not None:
            units = source.labels
        else:
            units = np.arange(len(samples)) if identities is None else encode_groups(identities, len(samples), "identities")
        return self._prepared(samples), source, units

    def _check_held_out(self, prepared: NDArray[Any], source: PairSource, identities: NDArray[np.int64]) -> HeldOutCheck:
        """Return whether data look like training data, as far as the model can tell."""
        return HeldOutCheck(None)
