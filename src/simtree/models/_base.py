"""What every fitted similarity can do: score pairs, matrices and searches of a gallery.

A subclass provides `_score_pairs` (scores of pairs of rows), `_max_score`, `_check_parameters`, and `_get_fitted_state` with
`_set_fitted_state` (what a model file holds of it); the rest follows.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from simtree._kernels.compilation import announced_compilation
from simtree._utils.progress import pairs_watcher
from simtree._utils.threads import in_threads
from simtree._utils.validation import check_integer, check_real
from simtree.metrics import Roc, roc_curve
from simtree.models._decisions import MAX_SCORE_PAIRS, DecisionMixin
from simtree.models._persistence import PersistenceMixin
from simtree.models._search import TopK, plan_search
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._inputs import check_pairs, check_samples, check_training
from simtree.pairs._sampling import PairSource
from simtree.trees._rank_tree import RankTree

# Pairs scored by one thread at a time; also bounds the memory of pairwise_score beyond its result.
BLOCK = 1 << 18
# Rows of a gallery that are prepared and searched at one time.
GALLERY_ROWS = 1 << 20

LeafValues = tuple[list[RankTree], list[NDArray[np.float64]]]


class Similarity(DecisionMixin, PersistenceMixin, BaseEstimator, ABC):
    """Base of the estimators: a symmetric score of pairs, larger for more similar."""

    preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None
    n_jobs: int | None
    n_features_in_: int

    @abstractmethod
    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the score of each pair of prepared rows."""

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return checked samples as `_score_pairs` needs them: what has to be computed once per sample."""
        return samples

    def _leaf_values(self) -> LeafValues | None:
        """Return trees and the values of their cells, whose mean is the score; None if the score is not such a mean."""
        return None

    @abstractmethod
    def _max_score(self) -> float:
        """Return the score that no pair exceeds, from which distances are measured."""

    def pair_score(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.float64]:
        """How alike the two points of each pair are.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
            The pairs: their points, or row numbers of X (or of the preprocessor).
        X : array-like of shape (n_points, n_features), optional
            The points that row numbers refer to.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Scores, larger for more alike; the same whichever point comes first.
        """
        check_is_fitted(self)
        samples, first, second = check_pairs(self, pairs, X)
        return self._scorer(self._prepare(samples))(first, second)

    def pair_distance(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.float64]:
        """How unlike the two points of each pair are: the greatest possible score minus `pair_score`.

        A dissimilarity, not a metric: a point may be at a positive distance from itself, and triangles may be unequal.
        """
        scores = self.pair_score(pairs, X)
        return self._max_score() - scores

    def decision_function(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.float64]:
        """`pair_score` under the name that scikit-learn and metric-learn use."""
        return self.pair_score(pairs, X)

    def pairwise_score(self, A: ArrayLike, B: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the score of each row of A with each row of B (of A if None), as a ``(len(A), len(B))`` matrix.

        Computed in blocks: beyond the result it needs a few megabytes per thread.
        """
        check_is_fitted(self)
        A = self._prepare(check_samples(self, A))
        B = A if B is None else self._prepare(check_samples(self, B))

        def score(rows: slice) -> NDArray[np.float64]:
            first, second = np.divmod(np.arange(rows.start, rows.stop), len(B))
            return self._score_pairs(SamplePairs(A, B, first.astype(np.int32), second.astype(np.int32)))

        return self._map_blocks(score, len(A) * len(B)).reshape(len(A), len(B))

    def top_k(
        self, queries: ArrayLike, X: ArrayLike, k: int = 10, min_score: float | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The rows of X that are most alike to each query: exact, as if all pairs were scored and sorted.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_features)
            What is looked for.
        X : array-like of shape (n_points, n_features)
            Where it is looked for. Rows of float32 or float64 are not copied; memory beyond them does not grow with their
            number.
        k : int, default=10
            How many rows for each query.
        min_score : float, optional
            Rows with a lower score are left out.

        Returns
        -------
        scores, indices : ndarrays of shape (n_queries, k)
            Scores, as `pair_score` gives them, and row numbers of X, best first; among equal scores the smaller number comes
            first. Where there is no row left the score is -inf and the number -1.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from simtree import SimilarityTree
        >>> X, y = load_iris(return_X_y=True)
        >>> tree = SimilarityTree(max_depth=4, random_state=0).fit(X, y)
        >>> scores, indices = tree.top_k(X[[0, 140]], X, k=3)
        >>> indices
        array([[  0,   1,   2],
               [100, 101, 102]])
        """
        check_is_fitted(self)
        check_integer("k", k, 1)
        least = -np.inf if min_score is None else check_real("min_score", min_score, -np.inf, np.inf)
        wanted, gallery = self._prepare(check_samples(self, queries)), check_samples(self, X)
        best = TopK(len(wanted), int(k), least)
        with announced_compilation():
            n_threads, leaf_values = effective_n_jobs(self.n_jobs), self._leaf_values()
            for start in range(0, len(gallery), GALLERY_ROWS):
                rows = self._prepare(gallery[start : start + GALLERY_ROWS])
                search, parts = plan_search(wanted, rows, start, self._score_pairs, leaf_values, best, n_threads)
                in_threads(search, parts, self.n_jobs)
        return best.scores, best.rows

    def score(self, X: ArrayLike, y: ArrayLike, *, pairs: ArrayLike | None = None) -> float:
        """Return the AUC over the pairs of labelled samples, or over given pairs; takes what `fit` takes.

        Of labelled samples all pairs are used up to a million; beyond that a million are sampled, always the same ones.
        """
        check_is_fitted(self)
        return self._roc_on(X, y, pairs).auc()

    def get_metric(self) -> PairDistance:
        """The distance of two points as a function, for `sklearn.cluster.DBSCAN(metric=...)` and the like.

        A frozen copy: fitting this estimator anew does not change it. Can be pickled.
        """
        check_is_fitted(self)
        return PairDistance(copy.copy(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags

    @contextmanager
    def _rollback_on_error(self) -> Iterator[None]:
        """Leave the estimator as it was if its fit fails or is interrupted."""
        before = dict(vars(self))
        for name in ("threshold_report_", "calibration_"):  # what was found for another fit
            self.__dict__.pop(name, None)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _roc_on(self, X: ArrayLike, y: ArrayLike, pairs: ArrayLike | None) -> Roc:
        """Return the ROC curve on labelled samples or on pairs."""
        samples, source = check_training(self, X, y, pairs, reset=False)
        return self._roc_of(self._prepare(samples), source)

    def _roc_of(self, prepared: NDArray[Any], source: PairSource) -> Roc:
        """Return the ROC curve on pairs of prepared samples."""
        index = source.sample(MAX_SCORE_PAIRS, np.random.default_rng(0))
        return roc_curve(self._scorer(prepared)(index.first, index.second), index.same)

    def _scorer(self, prepared: NDArray[Any]) -> Callable[[Any, Any], NDArray[np.float64]]:
        """Return a function from row numbers of prepared samples to the scores of their pairs."""

        def score(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.float64]:
            pairs = SamplePairs(prepared, prepared, first, second)
            return self._map_blocks(lambda rows: self._score_pairs(pairs.take(rows)), len(first))

        return score

    def _map_blocks(self, score: Callable[[slice], NDArray[np.float64]], n_pairs: int) -> NDArray[np.float64]:
        """Return the scores of a range of pairs, block by block in threads; whoever watches is told of each block."""
        scores = np.empty(n_pairs)
        tell = pairs_watcher()

        def fill(start: int) -> None:
            rows = slice(start, min(start + BLOCK, n_pairs))
            scores[rows] = score(rows)
            tell(rows.stop - rows.start)

        with announced_compilation():
            in_threads(fill, range(0, n_pairs, BLOCK), self.n_jobs)
        return scores


class PairDistance:
    """The distance of two points that a fitted similarity gives; larger for less alike, the same in both orders."""

    def __init__(self, model: Similarity) -> None:
        self._model = model

    def __call__(self, u: ArrayLike, v: ArrayLike) -> float:
        """Distance of the points u and v."""
        samples = np.array([u, v], dtype=np.float64)
        n_features = self._model.n_features_in_
        if samples.shape != (2, n_features) or not np.isfinite(samples).all():
            raise ValueError(f"u and v have shape {samples.shape[1:]}; give two points of {n_features} finite numbers each.")
        row = np.zeros(1, dtype=np.int32)
        samples = self._model._prepare(samples)
        score = self._model._score_pairs(SamplePairs(samples, samples, row, row + np.int32(1)))
        return float(self._model._max_score() - score[0])
