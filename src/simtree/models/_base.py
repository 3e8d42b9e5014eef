"""Base class of all similarity models: scores of pairs, score matrices, and gallery search.

A subclass implements `_score_pairs` (scores of pairs of rows), `_max_score`, `_check_parameters`, and `_get_fitted_state` with
`_set_fitted_state` (its part of a model file).
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
from simtree._utils.matrices import check_all_unmasked
from simtree._utils.progress import pairs_watcher
from simtree._utils.threads import in_threads
from simtree._utils.validation import check_integer, check_real, refuse_pipeline
from simtree.metrics import Roc
from simtree.metrics._roc import weighted_roc_curve
from simtree.models._decisions import MAX_SCORE_PAIRS, DecisionMixin
from simtree.models._persistence import PersistenceMixin
from simtree.models._search import TopK, plan_search
from simtree.models._templates import TemplateMixin
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._inputs import check_pairs, check_samples, check_training
from simtree.pairs._sources import IndexPairs, PairSource
from simtree.pairs._store import SampleStore, mapped
from simtree.pairs._table import TableColumns
from simtree.trees._rank_tree import RankTree

# Number of pairs scored by one thread at a time; also limits the memory that pairwise_score needs beyond its result.
BLOCK = 1 << 18
# Number of gallery rows prepared and searched at a time.
GALLERY_ROWS = 1 << 20

LeafValues = tuple[list[RankTree], list[NDArray[np.float64]]]


class Similarity(DecisionMixin, TemplateMixin, PersistenceMixin, BaseEstimator, ABC):
    """Base class of all similarity models, which learn a symmetric score of pairs: larger for more similar samples."""

    preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None
    n_jobs: int | None
    n_features_in_: int
    columns_: TableColumns | None = None
    #: Whether `fit` need not find a ROC curve and a threshold on training pairs, because held-out pairs are scored only.
    _only_scores = False

    @abstractmethod
    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        """Return the score of each pair of prepared rows."""

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return checked samples in the form required by `_score_pairs`, so that it is computed once per sample."""
        return samples

    def _takes_missing(self) -> bool:
        """Return whether samples may lack values (NaN)."""
        return False

    def _table_categories(self) -> Any:
        """Return which columns of a table are categories, as `TableColumns.of` takes it; None if only numbers are taken."""
        return getattr(self, "categorical_features", None)

    def _read(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return samples that another model has checked as `check_samples` returns them: columns of categories are read."""
        columns = getattr(self, "columns_", None)
        return samples if columns is None else columns.read(samples)

    def _read_and_prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return samples that another model has checked, read and prepared."""
        return self._prepare(self._read(samples))

    def _test_cost(self) -> float:
        """Return the time that `_score_pairs` takes for one test of one pair, relative to that of a forest."""
        return 1.0

    def _prepared(self, samples: Any) -> Any:
        """Return checked samples, an array or a store, as `_prepare` makes them."""
        return mapped(samples, self._prepare)

    def _leaf_values(self) -> LeafValues | None:
        """Return trees and cell values whose mean over trees is the score; None if the score is not of this form."""
        return None

    @abstractmethod
    def _max_score(self) -> float:
        """Return an upper bound of the score, from which distances are measured."""

    def pair_score(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the score of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
            Pairs of samples, or of row indices of X (or of identifiers for the preprocessor).
        X : array-like of shape (n_samples, n_features), optional
            Samples that row indices refer to.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Scores, larger for more similar samples. The order of the two samples of a pair does not matter.
        """
        check_is_fitted(self)
        samples, first, second = check_pairs(self, pairs, X)
        return self._scorer(self._prepare(samples))(first, second)

    def pair_distance(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the distance of each pair: the maximum possible score minus `pair_score`.

        This is a dissimilarity, not a metric: the distance of a sample to itself may be positive, and the triangle inequality
        need not hold.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
            Pairs of samples, or of row indices of X (or of identifiers for the preprocessor).
        X : array-like of shape (n_samples, n_features), optional
            Samples that row indices refer to.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Non-negative distances, smaller for more similar samples.
        """
        scores = self.pair_score(pairs, X)
        return self._max_score() - scores

    def decision_function(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the score of each pair, as `pair_score` does, under scikit-learn's and metric-learn's name.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
            Pairs of samples, or of row indices of X (or of identifiers for the preprocessor).
        X : array-like of shape (n_samples, n_features), optional
            Samples that row indices refer to.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Scores, larger for more similar samples.
        """
        return self.pair_score(pairs, X)

    def pairwise_score(self, A: ArrayLike, B: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the score of each row of A with each row of B.

        The matrix is computed in blocks that take a few megabytes per thread.

        Parameters
        ----------
        A : array-like of shape (n_samples_a, n_features)
            Samples.
        B : array-like of shape (n_samples_b, n_features), optional
            Samples; A if None.

        Returns
        -------
        ndarray of shape (n_samples_a, n_samples_b)
            Matrix of scores.
        """
        check_is_fitted(self)
        A = self._prepare(check_samples(self, A))
        return self._pairwise_score(A, A if B is None else self._prepare(check_samples(self, B)))

    def _pairwise_score(self, A: NDArray[Any], B: NDArray[Any]) -> NDArray[np.float64]:
        """Return the score of each prepared row of A with each prepared row of B."""
        none = np.empty(0, dtype=np.int32)
        samples = SamplePairs(A, B, none, none)

        def score(rows: slice) -> NDArray[np.float64]:
            first, second = np.divmod(np.arange(rows.start, rows.stop), len(B))
            return self._score_pairs(samples.of_rows(first.astype(np.int32), second.astype(np.int32)))

        return self._map_blocks(score, len(A) * len(B)).reshape(len(A), len(B))

    def top_k(
        self, queries: ArrayLike, X: ArrayLike, k: int = 10, min_score: float | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the k rows of X that are most similar to each query.

        The search is exact: the result is that of scoring and sorting all pairs.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_features)
            Samples to search for.
        X : array-like of shape (n_samples, n_features)
            The gallery: samples to search in. Arrays of float32 or float64 are not copied, and additional memory does not
            grow with the number of rows.
        k : int, default=10
            Number of rows per query.
        min_score : float, optional
            Exclude rows with a lower score.

        Returns
        -------
        scores : ndarray of shape (n_queries, k)
            Scores as returned by `pair_score`, in decreasing order; -inf if there are fewer than k rows.
        indices : ndarray of shape (n_queries, k)
            Row indices of X; ties are in increasing order of the index. -1 if there are fewer than k rows.

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
        lowest = -np.inf if min_score is None else check_real("min_score", min_score, -np.inf, np.inf)
        prepared, gallery = self._prepare(check_samples(self, queries)), check_samples(self, X)
        best = TopK(len(prepared), int(k), lowest)
        for start in range(0, len(gallery), GALLERY_ROWS):
            rows = self._prepare(gallery[start : start + GALLERY_ROWS])
            # Converting queries is cheaper than compiling kernels for float32 queries beside float64 rows.
            self._offer_rows(prepared.astype(np.result_type(prepared, rows), copy=False), rows, start, best)
        return best.scores, best.rows

    def score(self, X: ArrayLike, y: ArrayLike, *, pairs: ArrayLike | None = None) -> float:
        """Return the AUC over the pairs of labelled samples, or over given pairs.

        At most a million pairs of labelled samples are used; if there are more, they are sampled with a fixed random seed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.

        Returns
        -------
        float
            Area under the ROC curve.
        """
        check_is_fitted(self)
        return self._roc_on(X, y, pairs).auc()

    def get_metric(self) -> PairDistance:
        """Return the distance of two samples as a function, for example for `sklearn.cluster.DBSCAN(metric=...)`.

        The function can be pickled, and refitting the estimator does not change it.

        Returns
        -------
        callable
            A function of two samples that returns their distance, as in `pair_distance`.
        """
        check_is_fitted(self)
        return PairDistance(copy.copy(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = self._takes_missing()
        tags.target_tags.required = True
        return tags

    @contextmanager
    def _rollback_on_error(self) -> Iterator[None]:
        """Restore the estimator if its fit fails or is interrupted."""
        before = dict(vars(self))
        for name in (
            "threshold_report_",
            "held_out_check_",
            "calibration_",
            "learned_fusion_",
        ):  # results that belong to the previous fit
            self.__dict__.pop(name, None)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _roc_on(self, X: ArrayLike, y: ArrayLike, pairs: ArrayLike | None) -> Roc:
        """Return the ROC curve on labelled samples or on given pairs."""
        samples, source = check_training(self, X, y, pairs, reset=False)
        return self._roc_of(self._prepared(samples), source)

    def _roc_of(self, prepared: NDArray[Any], source: PairSource) -> Roc:
        """Return the ROC curve on pairs of prepared samples."""
        return self._curve(prepared, source.sample(MAX_SCORE_PAIRS, np.random.default_rng(0), shuffle=False))

    def _curve(self, prepared: NDArray[Any], index: IndexPairs, weights: NDArray[np.float64] | None = None) -> Roc:
        """Return the ROC curve of these pairs of prepared samples; that of chance if nothing but scores is asked for."""
        if self._only_scores:
            return Roc(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([np.inf, 0.0]))
        return weighted_roc_curve(self._scorer(prepared)(index.first, index.second), index.same, weights)

    def _scorer(self, prepared: NDArray[Any]) -> Callable[[Any, Any], NDArray[np.float64]]:
        """Return a function that scores pairs given as row indices of prepared samples, an array or a store."""
        if isinstance(prepared, SampleStore):
            return prepared.scorer(self)

        def score(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.float64]:
            pairs = SamplePairs(prepared, prepared, first, second)
            return self._map_blocks(lambda rows: self._score_pairs(pairs.take(rows)), len(first))

        return score

    def _offer_rows(self, queries: NDArray[Any], rows: NDArray[Any], start: int, best: TopK) -> None:
        """Update ``best`` with the prepared rows of a gallery, of which the first has the index ``start``."""
        with announced_compilation():
            n_threads = effective_n_jobs(self.n_jobs)
            search, parts = plan_search(
                queries, rows, start, self._score_pairs, self._leaf_values(), best, n_threads, self._test_cost()
            )
            in_threads(search, parts, self.n_jobs)

    def _map_blocks(self, score: Callable[[slice], NDArray[np.float64]], n_pairs: int) -> NDArray[np.float64]:
        """Return the scores of a range of pairs, computed in threads block by block, reporting progress."""
        scores = np.empty(n_pairs)
        report = pairs_watcher()

        def fill(start: int) -> None:
            rows = slice(start, min(start + BLOCK, n_pairs))
            scores[rows] = score(rows)
            report(rows.stop - rows.start)

        with announced_compilation():
            in_threads(fill, range(0, n_pairs, BLOCK), self.n_jobs)
        return scores


def check_similarity(model: Any, name: str = "model", *, fitted: bool = True) -> Similarity:
    """Return the model if it is a similarity, and fitted if that is asked for; ``name`` is the parameter in errors."""
    if not isinstance(model, Similarity):
        refuse_pipeline(name, model)
        remedy = "a fitted model of simtree" if fitted else "one such as SimilarityForest()"
        raise TypeError(f"{name}={model!r} is not a similarity; give {remedy}.")
    if fitted:
        check_is_fitted(model)
    return model


class PairDistance:
    """Symmetric distance of two samples from a fitted similarity, as a callable."""

    def __init__(self, model: Similarity) -> None:
        self._model = model

    def __call__(self, u: ArrayLike, v: ArrayLike) -> float:
        """Return the distance of the samples u and v."""
        check_all_unmasked(u=u, v=v)
        if getattr(self._model, "columns_", None) is not None:
            samples = check_samples(self._model, np.array([u, v], dtype=object))
        else:
            samples = self._checked(u, v)
        row = np.zeros(1, dtype=np.int32)
        samples = self._model._prepare(samples)
        score = self._model._score_pairs(SamplePairs(samples, samples, row, row + np.int32(1)))
        return float(self._model._max_score() - score[0])

    def _checked(self, u: ArrayLike, v: ArrayLike) -> NDArray[np.float64]:
        samples = np.array([u, v], dtype=np.float64)
        n_features = self._model.n_features_in_
        takes_missing = self._model._takes_missing()
        if samples.shape != (2, n_features) or not (np.isfinite(samples) | (takes_missing & np.isnan(samples))).all():
            numbers = "numbers, NaN where one is missing," if takes_missing else "finite numbers"
            raise ValueError(f"u and v have shape {samples.shape[1:]}; give two samples of {n_features} {numbers} each.")
        return samples
