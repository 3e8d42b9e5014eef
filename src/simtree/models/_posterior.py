"""PosteriorSimilarity: the log-likelihood ratio of same against different, by class posteriors."""

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
from simtree.pairs._store import mapped
from simtree.representation._applied import fitted_rows

# Share of the prior in the probability of a same pair, so that no score is infinite.
PRIOR_SHARE = 1e-6
# Smallest prior of a class, of a same pair and of a different one.
MIN_PRIOR = 1e-9
# Weightings of same pairs, and that of files which do not say it.
WEIGHTINGS, UNSAID = ("pairs", "samples"), "samples"


@register(MODEL)
class PosteriorSimilarity(RepresentedMixin, Similarity):
    """The log-likelihood ratio of same against different pairs, by probabilities of the classes seen in training.

    If a representation returns the probability p_k of each class k, two samples are of the same class with probability
    s = Σ_k p_k p'_k. The score is log(s / (1 - s)), less its value for the priors of the classes: no score of pairs of random
    samples is better if the classes are those of training (closed set) and the probabilities are right. Of unseen identities
    it says little. Labelled samples are required.

    Parameters
    ----------
    representation : transformer
        Transformer that returns one probability per class: `ForestPosterior`, `BoostingPosterior`, `NetworkPosterior`,
        `LogisticPosterior`, a Pipeline that ends in one of them, or the `MeanPosterior` of several.
    same_weighting : {"pairs", "samples"}, default="pairs"
        Which same pairs the ratio is for: all of them alike, most of which are those of large classes, or as many of each
        sample, so that a class counts by its size q_k. The score is then log Σ_k p_k p'_k / q_k.
    preprocessor : array-like or callable, optional
        Samples, or a function from identifiers to samples, to which ``(n_pairs, 2)`` input refers; see `SimilarityTree`.
    n_jobs : int or None, default=None
        Number of parallel jobs for scoring. It does not affect the result.

    Attributes
    ----------
    priors_ : ndarray of shape (n_classes,)
        Prior of each class: the mean of its cross-fitted probability over the training samples.
    representation_ : transformer
        The fitted representation.
    threshold_ : float
        Pairs with at least this score are predicted to be same. After `fit` it maximises TPR - FPR on the training pairs, by
        cross-fitted probabilities; choose it on held-out data with `calibrate_threshold`.
    columns_ : TableColumns or None
        How a table with categories, booleans or dates is read if the representation takes it; None for numbers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import ForestPosterior, PosteriorSimilarity
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PosteriorSimilarity(ForestPosterior(n_estimators=50, random_state=0)).fit(X, y)
    >>> model.pair_score([[X[0], X[1]], [X[0], X[100]]]).round(1)
    array([ 14.9, -14.2])
    """

    priors_: NDArray[np.float64]

    def __init__(
        self,
        representation: Any,
        *,
        same_weighting: str = "pairs",
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.representation = representation
        self.same_weighting = same_weighting
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, *, pairs: ArrayLike | None = None, never_pair: ArrayLike | None = None) -> Self:
        """Fit the representation, the priors and the threshold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Label of each sample.
        pairs : None
            Not supported: probabilities of classes are learned from labels.
        never_pair : array-like of shape (n_samples,), optional
            Samples that share a value here never form a pair, see `SimilarityTree.fit`.

        Returns
        -------
        self
            The fitted estimator.
        """
        with self._rollback_on_error(), announced_compilation():
            self._check_parameters()
            samples, source = check_training(self, X, y, pairs, never_pair)
            posteriors = self._fit_representation(samples, source)
            rows = fitted_rows(len(posteriors))
            seen = np.asarray(posteriors) if rows is None else posteriors[rows]
            if seen.min() < 0.0 or np.abs(seen.sum(axis=1) - 1.0).max() > 1e-3:
                raise ValueError(
                    f"representation={self.representation!r} does not return probabilities of classes; give one that does, "
                    "such as ForestPosterior()."
                )
            self._set_priors(np.maximum(seen.mean(axis=0, dtype=np.float64), MIN_PRIOR))
            self.threshold_ = youden_threshold(self._roc_of(mapped(posteriors, self._scaled), source))
        return self

    def _set_priors(self, priors: NDArray[np.float64]) -> None:
        """Set the priors and what follows from them."""
        self.priors_ = priors
        self._products = CoordinateSet(("dot",), len(priors))
        self._prior = float(np.clip(priors @ priors, MIN_PRIOR, 1.0 - MIN_PRIOR))

    def _check_parameters(self) -> None:
        if self.representation is None:
            raise ValueError(
                "representation=None, but probabilities of classes are required; give one such as ForestPosterior()."
            )
        check_choice("same_weighting", self.same_weighting, WEIGHTINGS)
        check_n_jobs(self.n_jobs)

    def _get_fitted_state(self) -> dict[str, Any]:
        return {
            "representation": self._get_representation_state(),
            "priors": self.priors_,
            **({} if self.same_weighting == UNSAID else {"same_weighting": self.same_weighting}),
        }

    @classmethod
    def _given_parameters(cls, fields: Fields) -> dict[str, Any]:
        said = fields.has("same_weighting")
        return {"same_weighting": fields.string("same_weighting", WEIGHTINGS) if said else UNSAID}

    def _set_fitted_state(self, fields: Fields) -> None:
        n_classes = self._set_representation_state(fields)
        self._set_priors(fields.array("priors", "float64", (n_classes,), low=MIN_PRIOR, high=1.0))

    def _summary(self) -> dict[str, Any]:
        return {"priors": self.priors_.tolist()}

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        if not len(samples):
            return np.empty((0, len(self.priors_)))
        return self._scaled(self._represent(samples))

    def _scaled(self, posteriors: NDArray[Any]) -> NDArray[np.float64]:
        """Return what the inner product is taken of: probabilities, divided by the roots of the priors if samples count."""
        clipped: NDArray[np.float64] = np.clip(posteriors, 0.0, 1.0, dtype=np.float64)
        return clipped if self.same_weighting == "pairs" else clipped / np.sqrt(self.priors_)

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        return np.minimum(self._log_ratio(self._products.complete(pairs).pairwise[:, 0]), self._max_score())

    def _max_score(self) -> float:
        highest = 1.0 if self.same_weighting == "pairs" else 1.0 / self.priors_.min()
        return float(self._log_ratio(np.array(highest)))

    def _log_ratio(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-likelihood ratio of pairs from inner products, with a little of the prior so that it is finite."""
        if self.same_weighting == "samples":
            own = (1.0 - PRIOR_SHARE) ** 2
            return np.log(own * products + (1.0 - own))
        same = (1.0 - PRIOR_SHARE) * np.minimum(products, 1.0) + PRIOR_SHARE * self._prior
        return np.asarray(np.log(same / (1.0 - same)) - np.log(self._prior / (1.0 - self._prior)))
