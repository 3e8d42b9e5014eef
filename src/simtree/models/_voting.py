"""VotingSimilarity: the scores of several similarities, put on one scale and added."""

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

# Pairs that scales and the threshold are found on.
SCALE_PAIRS = 200_000
# More members in a model file are taken for damage.
MAX_ESTIMATORS = 1 << 8
TINY = float(np.finfo(np.float64).tiny)


@register(MODEL)
class VotingSimilarity(Similarity, _BaseComposition):
    """Several similarities as one: the weighted sum of their scores, each divided by its spread.

    Similarities that err on different pairs do better together: one that follows single features (a forest), one
    that follows straight directions (a forest on whitened points), one that takes points for Gaussian (`GaussianSimilarity`).

    Parameters
    ----------
    estimators : list of (str, similarity)
        Names and similarities, of which clones are fitted.
    weights : array-like of shape (n_estimators,), optional
        Positive numbers; by default all count alike.
    preprocessor : array-like or callable, optional
        As in `SimilarityTree`; the members need none.
    n_jobs : int or None, default=None
        Threads for scoring; members use their own for fitting.

    Attributes
    ----------
    estimators_ : list of similarities
        The fitted members.
    scales_ : ndarray of shape (n_estimators,)
        What scores are divided by: their standard deviation over different training pairs.
    threshold_ : float
        Until it is set, maximises TPR - FPR on training pairs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, SimilarityTree, VotingSimilarity
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("plain", DistanceSimilarity(metric="euclidean")), ("tree", SimilarityTree(max_depth=4, random_state=0))]
    >>> both = VotingSimilarity(members).fit(X, y)
    >>> both.predict([[X[0], X[1]], [X[0], X[70]]])
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
        """Parameters of this estimator and, if ``deep``, of its members, as ``name__parameter``."""
        params: dict[str, Any] = self._get_params("estimators", deep=deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator, members, and parameters of members."""
        self._set_params("estimators", **params)
        return self

    def fit(self, X: ArrayLike, y: ArrayLike, *, pairs: ArrayLike | None = None, never_pair: ArrayLike | None = None) -> Self:
        """Fit all members, and find their scales and a threshold.

        Parameters
        ----------
        X, y, pairs, never_pair
            As in `SimilarityTree.fit`.

        Returns
        -------
        self
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            samples, source = check_training(self, X, y, pairs, never_pair)
            given: dict[str, Any] = {"X": X, "y": y, "pairs": pairs}
            index = source.sample(SCALE_PAIRS, np.random.default_rng(0))
            if source.labels is not None:
                given["never_pair"] = never_pair
            elif self.preprocessor is not None:  # elsewhere the caller's own X, so that feature names arrive
                given = {"X": samples, "y": index.same, "pairs": np.column_stack([index.first, index.second])}
            self.estimators_ = [clone(member).fit(**given) for _, member in self.estimators]
            ready = [member._prepare(samples) for member in self.estimators_]
            self._n_columns = [columns.shape[1] for columns in ready]
            different = index.take(~index.same)
            spreads = []
            for member, columns in zip(self.estimators_, ready, strict=True):
                scores = member._scorer(columns)(different.first, different.second)
                spreads.append(_spread(scores))
            # A member that says the same of all pairs has no say, whatever it is divided by.
            self.scales_ = np.array([spread if spread >= TINY else 1.0 for spread in spreads])
            self.threshold_ = youden_threshold(self._roc_of(np.hstack(ready), index))
        return self

    def _check_parameters(self) -> None:
        check_n_jobs(self.n_jobs)
        names = [name for name, _ in self.estimators]
        if not names:
            raise ValueError("estimators is empty; give a list of names and similarities.")
        self._validate_names(names)
        for name, member in self.estimators:
            if not isinstance(member, Similarity):
                raise TypeError(f"estimators has {member!r} under {name!r}; give similarities such as SimilarityForest().")
        if self.weights is not None:
            weights = np.asarray(self.weights, dtype=np.float64)
            if weights.shape != (len(names),) or not np.isfinite(weights).all() or (weights <= 0.0).any():
                raise ValueError(f"weights={self.weights!r} must be {len(names)} positive numbers, one for each of estimators.")

    def _get_fitted_state(self) -> dict[str, Any]:
        members = [
            {"name": name, "model": member._get_state()}
            for (name, _), member in zip(self.estimators, self.estimators_, strict=True)
        ]
        return {"members": members, "scales": self.scales_}

    @classmethod
    def _given_parameters(cls, fields: Fields) -> dict[str, Any]:
        """Return the members, fitted; the parameter holds clones of them."""
        parts = fields.parts("members", MAX_ESTIMATORS)
        return {"estimators": [(part.word("name"), model_from_state(part.part("model"))) for part in parts]}

    def _set_fitted_state(self, fields: Fields) -> None:
        self.estimators_ = [member for _, member in self.estimators]
        self.estimators = [(name, clone(member)) for name, member in self.estimators]
        if any(member.n_features_in_ != self.n_features_in_ for member in self.estimators_):
            raise fields.fail("members", f"must be of samples with {count(self.n_features_in_, 'feature')}")
        self.scales_ = fields.array("scales", "float64", (len(self.estimators_),), low=TINY)
        origin = np.zeros((1, self.n_features_in_))
        self._n_columns = [member._prepare(origin).shape[1] for member in self.estimators_]

    def _summary(self) -> dict[str, Any]:
        members = {name: member.to_dict() for (name, _), member in zip(self.estimators, self.estimators_, strict=True)}
        return {"scales": self.scales_.tolist(), "members": members}

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        """What each member wants, side by side."""
        return np.hstack([member._prepare(samples) for member in self.estimators_])

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        total = np.zeros(pairs.n_pairs)
        limit = MAX_FLOAT / len(self.estimators_)
        # A gallery may have many more rows than a block has pairs.
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
        """What the scores of each member are multiplied by."""
        weights = np.ones(len(self.estimators_)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        return np.asarray(weights / self.scales_)


def _spread(scores: NDArray[np.float64]) -> float:
    """Return the standard deviation of scores, also where their squares would overflow."""
    largest = float(np.abs(scores).max())
    if largest <= MAX_SQUARED:
        return float(scores.std())
    return min(largest * float((scores / largest).std()), MAX_FLOAT)
