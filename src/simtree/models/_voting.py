"""VotingSimilarity: an ensemble of similarities, by the sum of their scaled scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._kernels.compilation import announced_compilation
from simtree._utils.matrices import MAX_FLOAT, MAX_SQUARED
from simtree.io._fields import Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import youden_threshold
from simtree.models._base import Similarity
from simtree.models._ensemble import Ensemble
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._inputs import check_training
from simtree.pairs._labels import encode_groups
from simtree.pairs._store import SampleStore

# Maximum number of pairs for computing the scales and the threshold.
SCALE_PAIRS = 200_000
TINY = float(np.finfo(np.float64).tiny)


@register(MODEL)
class VotingSimilarity(Ensemble):
    """An ensemble of similarities: the weighted sum of their scores, each divided by its standard deviation.

    Combining similarities that make errors on different pairs can improve accuracy. For example, combine a forest on the
    features, a forest on whitened samples (`WithinClassWhitening`) and a `GaussianSimilarity`.

    Parameters
    ----------
    estimators : list of (str, similarity) tuples
        Names and similarities; clones of these are fitted.
    weights : array-like of shape (n_estimators,), optional
        Positive weights of the similarities; equal by default.
    preprocessor : array-like or callable, optional
        Samples, or a function from identifiers to samples, to which ``(n_pairs, 2)`` input refers; see `SimilarityTree`. It
        is not needed in the members.
    n_jobs : int or None, default=None
        Number of parallel jobs for scoring; members use their own ``n_jobs`` for fitting. It does not affect the result.

    Attributes
    ----------
    estimators_ : list of similarities
        The fitted members.
    scales_ : ndarray of shape (n_estimators,)
        Standard deviation of the scores of each member over different training pairs, by which scores are divided.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it maximises TPR - FPR on the training pairs;
        choose it on held-out data with `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read into a matrix, which its members read again; None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, SimilarityTree, VotingSimilarity
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("distance", DistanceSimilarity(metric="euclidean")), ("tree", SimilarityTree(max_depth=4, random_state=0))]
    >>> ensemble = VotingSimilarity(members).fit(X, y)
    >>> ensemble.predict([[X[0], X[1]], [X[0], X[70]]])
    array([ 1, -1])
    """

    scales_: NDArray[np.float64]

    def __init__(
        self,
        estimators: Sequence[tuple[str, Similarity]],
        *,
        weights: ArrayLike | None = None,
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        pairs: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        never_pair: ArrayLike | None = None,
    ) -> Self:
        """Fit all members, their scales and the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
        groups : array-like of shape (n_samples,) or (n_pairs, 2), optional
            Group of each sample, for members that take groups, see `SimilarityForest.fit`.
        never_pair : array-like of shape (n_samples,), optional
            Labelled samples that share a value here never form a pair, see `SimilarityTree.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            samples, source = check_training(self, X, y, pairs, never_pair)
            codes = None if groups is None else encode_groups(groups, len(samples))
            index = source.sample(SCALE_PAIRS, np.random.default_rng(0), shuffle=False)
            prepared = self._fit_members(samples, source, index, codes, X, y, pairs, never_pair)
            different = index.take(~index.same)
            spreads = []
            for member, columns in zip(self.estimators_, prepared, strict=True):
                scores = member._scorer(columns)(different.first, different.second)
                spreads.append(_spread(scores))
            # A member with a constant score has no influence, whatever its scale.
            self.scales_ = np.array([spread if spread >= TINY else 1.0 for spread in spreads])
            is_store = isinstance(prepared[0], SampleStore)
            joined = self._prepared(samples) if is_store else np.hstack(prepared)
            self.threshold_ = youden_threshold(self._roc_of(joined, index))
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            n_members = len(self.estimators)
            if weights.shape != (n_members,) or not np.isfinite(weights).all() or (weights <= 0.0).any():
                raise ValueError(
                    f"weights={self.weights!r} must be {n_members} positive numbers, one per member of estimators."
                )

    def _get_fitted_state(self) -> dict[str, Any]:
        return {"members": self._get_members_state(), "scales": self.scales_}

    def _set_fitted_state(self, fields: Fields) -> None:
        self._set_members_state(fields)
        self.scales_ = fields.array("scales", "float64", (len(self.estimators_),), low=TINY)

    def _summary(self) -> dict[str, Any]:
        return {"scales": self.scales_.tolist(), **super()._summary()}

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        total = np.zeros(pairs.n_pairs)
        limit = MAX_FLOAT / len(self.estimators_)
        for scores, factor in zip(self._member_scores(pairs), self._factors, strict=True):
            with np.errstate(over="ignore"):
                total += np.clip(factor * scores, -limit, limit)
        return total

    def _max_score(self) -> float:
        return float(np.dot(self._factors, [member._max_score() for member in self.estimators_]))

    @property
    def _factors(self) -> NDArray[np.float64]:
        """Factor of the scores of each member."""
        weights = np.ones(len(self.estimators_)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        return np.asarray(weights / self.scales_)


def _spread(scores: NDArray[np.float64]) -> float:
    """Return the standard deviation of scores, also where their squares would overflow."""
    largest = float(np.abs(scores).max())
    if largest <= MAX_SQUARED:
        return float(scores.std())
    return min(largest * float((scores / largest).std()), MAX_FLOAT)
