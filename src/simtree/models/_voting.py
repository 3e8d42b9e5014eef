"""VotingSimilarity: an ensemble of similarities, by the sum of their scaled scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import _BaseComposition

from simtree._kernels.compilation import announced_compilation
from simtree._utils.matrices import MAX_FLOAT, MAX_SQUARED
from simtree._utils.validation import check_n_jobs, count
from simtree.io._fields import Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import youden_threshold
from simtree.models._base import Similarity
from simtree.models._persistence import model_from_state
from simtree.pairs._coordinates import SamplePairs, occurring
from simtree.pairs._inputs import check_training

# Maximum number of pairs for computing the scales and the threshold.
SCALE_PAIRS = 200_000
# More members in a model file are treated as corruption.
MAX_ESTIMATORS = 1 << 8
TINY = float(np.finfo(np.float64).tiny)


@register(MODEL)
class VotingSimilarity(Similarity, _BaseComposition):
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

    estimators_: list[Similarity]
    scales_: NDArray[np.float64]
    _n_columns: list[int]

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

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator and, if ``deep``, of its members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the members and their parameters.

        Returns
        -------
        dict
            Parameters by name.
        """
        params: dict[str, Any] = self._get_params("estimators", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, replace members by name, or set their parameters as ``name__parameter``.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator.

        Returns
        -------
        self
            The estimator.
        """
        self._set_params("estimators", **params)
        return self

    def fit(self, X: ArrayLike, y: ArrayLike, *, pairs: ArrayLike | None = None, never_pair: ArrayLike | None = None) -> Self:
        """Fit all members, their scales and the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or (n_pairs, 2, n_features)
            Labelled samples, or pairs of samples.
        y : array-like
            Label of each sample; for pairs, whether each is a same pair (bool, 0/1 or -1/+1).
        pairs : array-like of shape (n_pairs, 2), optional
            Pairs as row indices of X; ``y`` then has one entry per pair.
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
            given: dict[str, Any] = {"X": X, "y": y, "pairs": pairs}
            index = source.sample(SCALE_PAIRS, np.random.default_rng(0), shuffle=False)
            if source.labels is not None:
                given["never_pair"] = never_pair
            elif self.preprocessor is not None:  # otherwise pass the original X, which has the feature names
                given = {"X": samples, "y": index.same, "pairs": np.column_stack([index.first, index.second])}
            self.estimators_ = [clone(member).fit(**given) for _, member in self.estimators]
            prepared = [member._prepare(samples) for member in self.estimators_]
            self._n_columns = [columns.shape[1] for columns in prepared]
            different = index.take(~index.same)
            spreads = []
            for member, columns in zip(self.estimators_, prepared, strict=True):
                scores = member._scorer(columns)(different.first, different.second)
                spreads.append(_spread(scores))
            # A member with a constant score has no influence, whatever its scale.
            self.scales_ = np.array([spread if spread >= TINY else 1.0 for spread in spreads])
            self.threshold_ = youden_threshold(self._roc_of(np.hstack(prepared), index))
        return self

    def _check_parameters(self) -> None:
        check_n_jobs(self.n_jobs)
        names = [name for name, _ in self.estimators]
        if not names:
            raise ValueError("estimators is empty; give a list of (name, similarity) tuples.")
        self._validate_names(names)
        for name, member in self.estimators:
            if not isinstance(member, Similarity):
                raise TypeError(f"estimators has {member!r} under {name!r}; give similarities such as SimilarityForest().")
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            if weights.shape != (len(names),) or not np.isfinite(weights).all() or (weights <= 0.0).any():
                raise ValueError(
                    f"weights={self.weights!r} must be {len(names)} positive numbers, one per member of estimators."
                )

    def _get_fitted_state(self) -> dict[str, Any]:
        members = [
            {"name": name, "model": member._get_state()}
            for (name, _), member in zip(self.estimators, self.estimators_, strict=True)
        ]
        return {"members": members, "scales": self.scales_}

    @classmethod
    def _given_parameters(cls, fields: Fields) -> dict[str, Any]:
        """Return the fitted members as ``estimators``, from which `_set_fitted_state` makes clones."""
        parts = fields.parts("members", MAX_ESTIMATORS)
        return {"estimators": [(part.string("name"), model_from_state(part.part("model"))) for part in parts]}

    def _set_fitted_state(self, fields: Fields) -> None:
        self.estimators_ = [member for _, member in self.estimators]
        self.estimators = [(name, clone(member)) for name, member in self.estimators]
        if any(member.n_features_in_ != self.n_features_in_ for member in self.estimators_):
            raise fields.fail("members", f"must be for samples with {count(self.n_features_in_, 'feature')}")
        self.scales_ = fields.array("scales", "float64", (len(self.estimators_),), low=TINY)
        origin = np.zeros((1, self.n_features_in_))
        self._n_columns = [member._prepare(origin).shape[1] for member in self.estimators_]

    def _summary(self) -> dict[str, Any]:
        members = {name: member.to_dict() for (name, _), member in zip(self.estimators, self.estimators_, strict=True)}
        return {"scales": self.scales_.tolist(), "members": members}

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        """Return the prepared samples of all members, side by side."""
        return np.hstack([member._prepare(samples) for member in self.estimators_])

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        total = np.zeros(pairs.n_pairs)
        limit = MAX_FLOAT / len(self.estimators_)
        # Restrict to the rows that occur, because a gallery may have many more rows than a block has pairs.
        (A, first), (B, second) = occurring(pairs.A, pairs.first), occurring(pairs.B, pairs.second)
        begin = 0
        for member, n_columns, factor in zip(self.estimators_, self._n_columns, self._factors, strict=True):
            of_a, of_b = (np.ascontiguousarray(rows[:, begin : begin + n_columns]) for rows in (A, B))
            with np.errstate(over="ignore"):
                scaled = factor * member._score_pairs(SamplePairs(of_a, of_b, first, second))
            total += np.clip(scaled, -limit, limit)
            begin += n_columns
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
