"""DistanceSimilarity: a distance or the cosine as a baseline similarity."""

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
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.pairs._inputs import check_training
from simtree.pairs._limits import check_training_values, max_value

# Sign that makes larger scores mean more similar, and the maximum score.
METRICS = {"cosine": (1.0, 1.0), "euclidean": (-1.0, 0.0), "manhattan": (-1.0, 0.0)}


@register(MODEL)
class DistanceSimilarity(RepresentedMixin, Similarity):
    """A similarity given by the cosine or a distance of two samples: the baseline for learned similarities.

    Apart from the optional representation, only the threshold is fitted.

    Parameters
    ----------
    metric : {"cosine", "euclidean", "manhattan"}, default="cosine"
        The score of a pair: its cosine, or the negative distance.
    representation : transformer, optional
        Transformer applied to the samples first, such as `WithinClassWhitening`; see `SimilarityTree`.
    preprocessor : array-like or callable, optional
        Samples, or a function from identifiers to samples, to which ``(n_pairs, 2)`` input refers; see `SimilarityTree`.
    n_jobs : int or None, default=None
        Number of parallel jobs for scoring. It does not affect the result.

    Attributes
    ----------
    representation_ : transformer or None
        The fitted representation.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it maximises TPR - FPR on the training pairs;
        choose it on held-out data with `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read if the representation takes it; None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    Examples
    --------
    >>> from simtree import DistanceSimilarity
    >>> baseline = DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    >>> baseline.pair_score([[[0.0], [3.0]], [[0.0], [0.5]]])
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
        """Fit the representation, if any, and the threshold.

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
        return np.asarray(sign * self._pair_map.complete(pairs).pairwise[:, 0])

    def _max_score(self) -> float:
        return METRICS[self.metric][1]
