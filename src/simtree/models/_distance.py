"""DistanceSimilarity: a distance or an angle of points, with nothing learned but the threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._kernels.compilation import announced_compilation
from simtree._utils.validation import check_choice, check_n_jobs
from simtree.io._fields import Fields
from simtree.io._registry import MODEL, register
from simtree.metrics import youden_threshold
from simtree.models._base import Similarity
from simtree.models._represented import RepresentedMixin
from simtree.pairs._coordinates import CoordinateSet, SamplePairs, check_training_values, max_value
from simtree.pairs._inputs import check_training

# Sign that makes larger mean more alike, and the greatest score there is.
METRICS = {"cosine": (1.0, 1.0), "euclidean": (-1.0, 0.0), "manhattan": (-1.0, 0.0)}


@register(MODEL)
class DistanceSimilarity(RepresentedMixin, Similarity):
    """A distance or an angle of points as a similarity: what a learned similarity has to beat.

    Parameters
    ----------
    metric : {"cosine", "euclidean", "manhattan"}, default="cosine"
        The cosine, or minus the distance.
    representation : transformer, optional
        What is done to the points first, as in `SimilarityForest`.
    preprocessor : array-like or callable, optional
        As in `SimilarityTree`.
    n_jobs : int or None, default=None
        Threads for scoring.

    Attributes
    ----------
    representation_ : transformer or None
        The fitted representation.
    threshold_ : float
        Until it is set, maximises TPR - FPR on the training pairs.

    Examples
    --------
    >>> from simtree import DistanceSimilarity
    >>> plain = DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    >>> plain.pair_score([[[0.0], [3.0]], [[0.0], [0.5]]])
    array([-3. , -0.5])
    """

    _pair_map: CoordinateSet

    def __init__(
        self,
        *,
        metric: str = "cosine",
        representation: Any = None,
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.representation = representation
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, *, pairs: ArrayLike | None = None, never_pair: ArrayLike | None = None) -> Self:
        """Fit the representation, if there is one, and find a threshold.

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
            prepared = self._fit_representation(samples, source)
            self._pair_map = CoordinateSet((self.metric,), prepared.shape[1])
            check_training_values(prepared, self._pair_map.kinds)
            self._check_magnitude(prepared, *max_value(self._pair_map.kinds, prepared.shape[1]))
            self.threshold_ = youden_threshold(self._roc_of(prepared, source))
        return self

    def _check_parameters(self) -> None:
        check_choice("metric", self.metric, METRICS)
        check_n_jobs(self.n_jobs)

    def _get_fitted_state(self) -> dict[str, Any]:
        return {"representation": self._get_representation_state()}

    def _set_fitted_state(self, fields: Fields) -> None:
        self._pair_map = CoordinateSet((self.metric,), self._set_representation_state(fields))

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        represented = self._represent(samples)
        self._check_magnitude(represented, *max_value(self._pair_map.kinds, represented.shape[1]))
        return represented

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        sign, _ = METRICS[self.metric]
        return np.asarray(sign * self._pair_map.complete(pairs).whole[:, 0])

    def _max_score(self) -> float:
        return METRICS[self.metric][1]
