"""What every fitted similarity can do, and the border where users' pairs become row numbers.

A subclass provides `_score_pairs` (scores of pairs of rows), `_greatest_score`, `_check_parameters` and `_fitted_document`
(what a model file says of it); the rest follows.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d, validate_data

from simtree._kernels.compilation import announced_compilation
from simtree._utils.progress import pairs_watcher
from simtree._utils.threads import in_threads
from simtree._utils.validation import check_integer, check_pair_labels, check_real
from simtree.evaluation._calibration import Calibration, fit_calibration
from simtree.evaluation._counting import MOST_PAIRS, at_most
from simtree.evaluation._thresholds import Goal, ThresholdReport, choose_threshold
from simtree.io._archive import write_document
from simtree.metrics import Roc, roc_curve
from simtree.models._part_files import parameters_document, plain_parameters
from simtree.models._search import BestRows, plan_search
from simtree.pairs._coordinates import PointPairs
from simtree.pairs._inputs import check_index_pairs, group_numbers, look_up, stack_pairs
from simtree.pairs._sampling import IndexPairs, PairSampler, given_or_drawn
from simtree.trees._rank_tree import RankTree

# Pairs scored by one thread at a time; also bounds the memory of pairwise_score beyond its result.
BLOCK = 1 << 18
# `score` uses all pairs of labelled points up to this many, and draws this many beyond.
MAX_SCORE_PAIRS = 1_000_000
# Rows of a gallery that are made ready and searched at one time.
GALLERY_ROWS = 1 << 20
# Points of these types are used as they are; others are converted to the first.
DTYPES = [np.float64, np.float32]


def _is_calibrated(model: Any) -> bool:
    if not hasattr(model, "calibration_"):
        raise AttributeError("predict_proba needs what scores are worth as evidence; call calibrate_probability first.")
    return True


class Similarity(BaseEstimator, ABC):
    """Base of the estimators: a symmetric score of pairs, larger for more alike."""

    preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None
    n_jobs: int | None
    n_features_in_: int
    threshold_: float
    threshold_report_: ThresholdReport

    @abstractmethod
    def _score_pairs(self, pairs: PointPairs) -> NDArray[np.float64]:
        """Score of each pair of ready rows."""

    def _ready(self, points: NDArray[Any]) -> NDArray[Any]:
        """Checked points as `_score_pairs` wants them: what has to be computed once a point."""
        return points

    def _mean_of_cells(self) -> tuple[list[RankTree], list[NDArray[np.float64]]] | None:
        """Trees, and the values of their cells, whose mean is the score; None if the score is no such mean."""
        return None

    @abstractmethod
    def _greatest_score(self) -> float:
        """The score no pair exceeds, from which distances are measured."""

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
        return self._score_blocks(self._check_pairs(pairs, X))

    def pair_distance(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.float64]:
        """How unlike the two points of each pair are: the greatest possible score minus `pair_score`.

        A dissimilarity, not a metric: a point may be at a positive distance from itself, and triangles may be unequal.
        """
        scores = self.pair_score(pairs, X)
        return self._greatest_score() - scores

    def decision_function(self, pairs: ArrayLike, X: ArrayLike | None = None) -> NDArray[np.float64]:
        """`pair_score` under the name that scikit-learn and metric-learn use."""
        return self.pair_score(pairs, X)

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
        n_pairs: int | None = MOST_PAIRS,
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
        source = at_most(source, n_pairs, 0) if isinstance(source, PairSampler) else source
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
        index = given_or_drawn(source, MAX_SCORE_PAIRS)
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
    ) -> tuple[Callable[[Any, Any], NDArray[np.float64]], IndexPairs | PairSampler, NDArray[np.int64]]:
        """A function that scores pairs of rows, the pairs there are, and the identity of each row."""
        check_is_fitted(self)
        points, source = self._check_training(X, y, pairs, never_pair, reset=False)
        points = self._ready(points)
        if isinstance(source, PairSampler):
            units = source.classes
        else:
            units = np.arange(len(points)) if identities is None else group_numbers(identities, len(points), "identities")
        return lambda first, second: self._score_blocks(PointPairs(points, points, first, second)), source, units

    def pairwise_score(self, A: ArrayLike, B: ArrayLike | None = None) -> NDArray[np.float64]:
        """Score of each row of A with each row of B (of A if None), as a ``(len(A), len(B))`` matrix.

        Computed in blocks: beyond the result it needs a few megabytes a thread.
        """
        check_is_fitted(self)
        A = self._ready(self._check_points(A))
        B = A if B is None else self._ready(self._check_points(B))
        scores = np.empty((len(A), len(B)))
        flat = scores.reshape(-1)

        def fill(start: int) -> None:
            numbers = np.arange(start, min(start + BLOCK, flat.size))
            first, second = np.divmod(numbers, len(B))
            flat[start : start + BLOCK] = self._score_pairs(PointPairs(A, B, first.astype(np.int32), second.astype(np.int32)))

        self._in_threads(fill, flat.size)
        return scores

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
        wanted, gallery = self._ready(self._check_points(queries)), self._check_points(X)
        best = BestRows(len(wanted), int(k), least)
        with announced_compilation():
            n_threads, mean = effective_n_jobs(self.n_jobs), self._mean_of_cells()
            for start in range(0, len(gallery), GALLERY_ROWS):
                rows = self._ready(gallery[start : start + GALLERY_ROWS])
                self._run(*plan_search(wanted, rows, start, self._score_pairs, mean, best, n_threads))
        return best.scores, best.rows

    def score(self, X: ArrayLike, y: ArrayLike, *, pairs: ArrayLike | None = None) -> float:
        """AUC over the pairs of labelled points, or of given pairs; takes what `fit` takes.

        Of labelled points all pairs are used up to a million; of more points a million are drawn, always the same.
        """
        check_is_fitted(self)
        return self._roc_on(X, y, pairs).auc()

    def get_metric(self) -> PairDistance:
        """The distance of two points as a function, for `sklearn.cluster.DBSCAN(metric=...)` and the like.

        A frozen copy: fitting this estimator anew does not change it. Can be pickled.
        """
        check_is_fitted(self)
        return PairDistance(copy.copy(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file of data, never code; `simtree.load` reads it. The file is written whole or not at all.

        No training point is in it: a ``preprocessor`` is left out, as are callbacks, and a generator as ``random_state``.

        Parameters
        ----------
        path : str or path
            By custom with the ending ``.simtree``.

        Examples
        --------
        >>> import tempfile, simtree
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> tree = simtree.SimilarityTree(max_depth=4, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tree.save(f"{folder}/iris.simtree")
        ...     again = simtree.load(f"{folder}/iris.simtree")
        >>> bool((again.pairwise_score(X) == tree.pairwise_score(X)).all())
        True
        """
        check_is_fitted(self)
        write_document(Path(path), self._document())

    def to_dict(self) -> dict[str, Any]:
        """The model for people and other programs: parameters, threshold and rules as words and numbers, ready for JSON.

        It is not what `save` writes, and cannot be loaded.
        """
        check_is_fitted(self)
        return {
            "class": type(self).__name__,
            "parameters": plain_parameters(self),
            **self._common_document(),
            "calibration": self.calibration_.to_dict() if hasattr(self, "calibration_") else None,
            **self._described(),
        }

    def _document(self) -> dict[str, Any]:
        """What is written of the model."""
        if type(self).__module__.split(".")[0] != "simtree":
            raise TypeError(
                f"{type(self).__name__} is a class of your own and cannot be saved: a model file holds data, never code, and "
                "knows models of simtree only."
            )
        self._check_parameters()
        return {
            "class": type(self).__name__,
            "parameters": parameters_document(self),
            **self._common_document(),
            "calibration": vars(self.calibration_) if hasattr(self, "calibration_") else None,
            "fitted": self._fitted_document(),
        }

    def _common_document(self) -> dict[str, Any]:
        """What is written of every model, for files and for people."""
        names = getattr(self, "feature_names_in_", None)
        return {
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else [str(name) for name in names],
            "threshold": float(self.threshold_),
            "threshold_report": self.threshold_report_.to_dict() if hasattr(self, "threshold_report_") else None,
        }

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter is not what it must be."""

    @abstractmethod
    def _fitted_document(self) -> dict[str, Any]:
        """What is written of what was learned."""

    def _described(self) -> dict[str, Any]:
        """What people may want to know of what was learned."""
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A fit that fails or is interrupted leaves the estimator as it was."""
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
        """ROC curve on labelled points or on pairs."""
        points, source = self._check_training(X, y, pairs, reset=False)
        return self._roc_of(self._ready(points), source)

    def _roc_of(self, points: NDArray[Any], source: IndexPairs | PairSampler) -> Roc:
        """ROC curve on pairs of ready points."""
        index = given_or_drawn(source, MAX_SCORE_PAIRS)
        scores = self._score_blocks(PointPairs(points, points, index.first, index.second))
        return roc_curve(scores, index.same)

    def _score_blocks(self, pairs: PointPairs) -> NDArray[np.float64]:
        """Scores of many pairs, in threads."""
        return self._fill_blocks(self._score_pairs, pairs)

    def _fill_blocks(self, score: Callable[[PointPairs], NDArray[np.float64]], pairs: PointPairs) -> NDArray[np.float64]:
        """What a function says of many pairs, in threads."""
        scores = np.empty(pairs.n_pairs)
        tell = pairs_watcher()

        def fill(start: int) -> None:
            rows = slice(start, start + BLOCK)
            scores[rows] = score(pairs.take(rows))
            tell(len(scores[rows]))

        self._in_threads(fill, pairs.n_pairs)
        return scores

    def _in_threads(self, fill: Callable[[int], None], size: int) -> None:
        """Call ``fill(start)`` for each block of a range."""
        self._run(fill, range(0, size, BLOCK))

    def _run(self, work: Callable[[Any], None], parts: Sequence[Any]) -> None:
        """Call ``work`` for each part, in threads if there are several."""
        with announced_compilation():
            in_threads(work, parts, self.n_jobs)

    def _check_points(self, X: ArrayLike, *, reset: bool = False) -> NDArray[Any]:
        """Points as a matrix of float32 or float64 whose rows are contiguous; not copied if it is one already."""
        points = validate_data(self, X, reset=reset, dtype=DTYPES, order="C")
        return np.asarray(points)

    def _check_pairs(self, pairs: ArrayLike, X: ArrayLike | None) -> PointPairs:
        """Pairs for scoring as row numbers with their points."""
        check_is_fitted(self)
        if X is not None:
            points = self._check_points(X)
            first, second = check_index_pairs(pairs, len(points))
            points = self._ready(points)
            return PointPairs(points, points, first, second)
        given = np.asarray(pairs)
        if given.ndim == 2 and self.preprocessor is not None:
            table, first, second = look_up(given, self.preprocessor)
            points = self._check_points(table)
        elif given.ndim == 3:
            points, first, second = self._check_stacked(given, reset=False)
        else:
            if given.shape[1:] != (2,):  # says first what is wrong with points, if somebody takes a point for a pair
                self._check_points(pairs)
            raise ValueError(
                f"pairs has shape {given.shape}; give an array of shape (n_pairs, 2, n_features), "
                "or (n_pairs, 2) row numbers together with X."
            )
        points = self._ready(points)
        return PointPairs(points, points, first, second)

    def _check_stacked(self, pairs: NDArray[Any], *, reset: bool) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32]]:
        if pairs.shape[1] != 2:
            raise ValueError(f"pairs has shape {pairs.shape}; it must be (n_pairs, 2, n_features).")
        points, first, second = stack_pairs(pairs)
        if reset:
            return self._check_points(points, reset=True), first, second
        # Not by validate_data: it would warn that an array of pairs has no names of features, which it cannot have.
        checked = check_array(points, dtype=DTYPES, order="C", ensure_min_samples=0, input_name="pairs")
        if checked.shape[1] != self.n_features_in_:
            raise ValueError(
                f"pairs has {checked.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features."
            )
        return checked, first, second

    def _check_training(
        self,
        X: ArrayLike,
        y: ArrayLike,
        pairs: ArrayLike | None,
        never_pair: ArrayLike | None = None,
        *,
        reset: bool = True,
    ) -> tuple[NDArray[Any], IndexPairs | PairSampler]:
        """Points, and either the given pairs or a sampler of the labelled points' pairs."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give the class of each point, "
                "or for pairs whether each is the same."
            )
        if pairs is not None:
            points = self._check_points(X, reset=reset)
            first, second = check_index_pairs(pairs, len(points))
        elif np.ndim(X) == 3:
            points, first, second = self._check_stacked(np.asarray(X), reset=reset)
        elif self.preprocessor is not None and np.ndim(X) == 2 and np.shape(X)[1] == 2:
            table, first, second = look_up(X, self.preprocessor)
            points = self._check_points(table, reset=reset)
        else:
            points = self._check_points(X, reset=reset)
            labels = column_or_1d(y, warn=True)
            check_consistent_length(points, labels)
            return points, PairSampler(labels, never_pair=never_pair)
        if never_pair is not None:
            raise ValueError("never_pair is for labelled points; leave unwanted pairs out of those that are given.")
        same = check_pair_labels("y", y, len(first))
        if (first == second).any():
            row = first[first == second][0]
            raise ValueError(f"pairs holds row {row} with itself; remove such pairs, which say nothing about two points.")
        return points, IndexPairs(first, second, same)


class PairDistance:
    """The distance of two points that a fitted similarity gives; larger for less alike, the same in both orders."""

    def __init__(self, model: Similarity) -> None:
        self._model = model

    def __call__(self, u: ArrayLike, v: ArrayLike) -> float:
        """Distance of the points u and v."""
        points = np.array([u, v], dtype=np.float64)
        n_features = self._model.n_features_in_
        if points.shape != (2, n_features) or not np.isfinite(points).all():
            raise ValueError(f"u and v have shape {points.shape[1:]}; give two points of {n_features} finite numbers each.")
        row = np.zeros(1, dtype=np.int32)
        points = self._model._ready(points)
        score = self._model._score_pairs(PointPairs(points, points, row, row + np.int32(1)))
        return float(self._model._greatest_score() - score[0])
