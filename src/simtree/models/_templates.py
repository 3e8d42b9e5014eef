"""Templates of a similarity: scores of probes with identities that have several enrolled samples, and a learned fusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree.evaluation._enrolled import Templates, TemplateScore, check_no_pairs, check_template_times, fused_scorer
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._model_fusion import LikelihoodRatio, ModelFusion, no_closed_form
from simtree.metrics import FloatArray
from simtree.pairs._sources import IndexPairs, PairSource

# Number of pairs of samples that a fusion is learned from, about, and minimum number of comparisons.
MAX_FUSION_PAIRS, MIN_COMPARISONS = 1_000_000, 1_000

Rows = NDArray[Any]
PairScore = Callable[[NDArray[np.int32], NDArray[np.int32]], FloatArray]


class TemplateMixin:
    """Methods of a similarity for identities with several enrolled samples."""

    learned_fusion_: LearnedFusion
    _scorer: Callable[[Rows], PairScore]
    _compared: Callable[..., tuple[Rows, PairSource, NDArray[np.int64]]]

    def fit_fusion(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        enrol: ArrayLike,
        time: Any = None,
        never_pair: ArrayLike | None = None,
        random_state: int = 0,
    ) -> Self:
        """Learn how the scores of a probe with the samples of an identity become one score.

        The result is used, and saved with the model, as ``fusion="learned"``: a log-likelihood ratio that increases with each
        score, and depends on the number and, with ``time``, on the age of the samples. See
        `simtree.evaluation.LearnedFusion`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples of identities that the model was not fitted on, since its scores for those are too good.
        y : array-like of shape (n_samples,)
            Identity of each sample.
        enrol : array-like of bool of shape (n_samples,)
            Which samples are enrolled; the others are probes. Enrol as many per identity, and as long before the probes, as
            will be usual in the application.
        time : array-like of shape (n_samples,), optional
            When each sample was taken: dates, or numbers. Half-lives are learned from it.
        never_pair : array-like of shape (n_samples,), optional
            Samples that share a value here are not compared, see `SimilarityTree.fit`.
        random_state : int, default=0
            Random seed of the sample of comparisons, if there are many.

        Returns
        -------
        self
            The estimator, with ``learned_fusion_``.

        Examples
        --------
        >>> import numpy as np
        >>> from simtree import DistanceSimilarity, evaluate
        >>> rng = np.random.default_rng(0)
        >>> y = np.repeat(np.arange(60), 10)
        >>> X = rng.normal(size=(60, 5))[y] + rng.normal(size=(600, 5))
        >>> enrol = np.arange(600) % 10 < 8
        >>> model = DistanceSimilarity(metric="euclidean").fit(X[:200], y[:200])
        >>> model = model.fit_fusion(X[200:400], y[200:400], enrol=enrol[200:400])
        >>> for fusion in ("max", "learned"):
        ...     print(f"{evaluate(model, X[400:], y[400:], enrol=enrol[400:], fusion=fusion).auc.value:.3f}")
        0.866
        0.889
        """
        check_no_pairs(X, None, None)
        prepared, _, labels = self._compared(X, y, None, None, never_pair)
        times = check_template_times(time, len(labels), needed=False)
        templates = Templates.of(labels, enrol, never_pair)
        n_comparisons = max(MIN_COMPARISONS, int(MAX_FUSION_PAIRS / templates.sizes.mean()))
        chosen = templates.comparisons(n_comparisons, weighting="identities", seed=random_state)
        probes, samples, starts = templates.expand(chosen.first, chosen.second)
        first = np.repeat(probes, np.diff(starts, append=len(samples)))
        self.learned_fusion_ = LearnedFusion.fit(
            self._scorer(prepared)(first.astype(np.int32), samples.astype(np.int32)),
            starts,
            chosen.same,
            ages=None if times is None else times[first] - times[samples],
            weights=_even_weights(chosen, templates.identities),
        )
        return self

    def _templates(
        self, X: ArrayLike, y: ArrayLike, enrol: ArrayLike, fusion: ModelFusion, never_pair: ArrayLike | None, time: Any
    ) -> tuple[Templates, TemplateScore]:
        """Return the probes and enrolled identities of labelled samples, and the function that scores them."""
        prepared, _, labels = self._compared(X, y, None, None, never_pair)
        times = check_template_times(time, len(labels), needed=fusion.needs_time)
        return Templates.of(labels, enrol, never_pair), self._template_scorer(prepared, fusion, times)

    def _score_templates(self, probes: Rows, samples: Rows, starts: NDArray[np.int64]) -> PairScore:
        """Return a function that scores prepared probes with prepared identities, both by number, in closed form."""
        raise no_closed_form(self)

    def _template_scorer(self, prepared: Rows, fusion: ModelFusion, times: FloatArray | None) -> TemplateScore:
        """Return a function that scores probes with the samples of identities, all given as rows of prepared samples."""
        if not isinstance(fusion, LikelihoodRatio):
            return fused_scorer(self._scorer(prepared), fusion, times)

        def score(probes: NDArray[np.int64], samples: NDArray[np.int64], starts: NDArray[np.int64]) -> FloatArray:
            numbers = np.arange(len(probes), dtype=np.int32)
            return self._score_templates(prepared[probes], prepared[samples], starts)(numbers, numbers)

        return score


def _even_weights(pairs: IndexPairs, identities: NDArray[np.int64]) -> FloatArray:
    """Return weights that give each ordered pair of identities, as a probe and as enrolled, the same weight."""
    cells = identities[pairs.first] * (int(identities.max()) + 1) + identities[pairs.second]
    _, places, counts = np.unique(cells, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[places])
