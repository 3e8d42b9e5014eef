"""GaussianSimilarity: the log-likelihood ratio of same against different in the two-covariance model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from simtree._kernels.compilation import announced_compilation
from simtree._kernels.samples import fill_products
from simtree._utils.validation import check_n_jobs, check_real
from simtree.io._fields import MAX_MODERATE, Fields, moderate
from simtree.io._registry import MODEL, register
from simtree.metrics import youden_threshold
from simtree.models._base import Similarity
from simtree.models._represented import RepresentedMixin
from simtree.pairs._coordinates import CoordinateSet, SamplePairs, occurring
from simtree.pairs._directions import difference_scatter, signed
from simtree.pairs._inputs import check_training
from simtree.pairs._sources import IndexPairs
from simtree.pairs._store import mapped
from simtree.representation._base import filled_in_blocks

Matrix = NDArray[np.float64]

# Maximum number of pairs of labelled samples that covariances are computed from.
N_PAIRS = 200_000
# Share of the training samples within reach. Samples farther out are moved to it: Gaussian tails are too light for them.
WITHIN_REACH = 0.95
# Ridge on the within-class variance of a feature, relative to its total variance: features may be constant within classes.
MIN_VARIANCE_SHARE = 1e-9
# Upper bound of variance ratios, which follows from that ridge for any possible number of features.
MAX_RATIO = 1e15
# Upper bound of the distance of a sample from the mean, per feature.
MAX_DISTANCE = 1e300
TINY = np.finfo(np.float64).tiny


class TwoCovarianceModel(NamedTuple):
    """Independent directions of the two-covariance model, and the ratio of variances in each.

    ``matrix`` maps samples minus ``mean`` to directions with variance 1; ``ratios`` are the ratios of between-class to
    within-class variance, in decreasing order; ``reach`` is the maximum distance from the mean.
    """

    mean: NDArray[np.float64]
    matrix: Matrix
    ratios: NDArray[np.float64]
    reach: float

    @property
    def correlations(self) -> NDArray[np.float64]:
        """Correlation of two samples of one class, along each direction."""
        return self.ratios / (1.0 + self.ratios)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights r / (1 - r²) for the correlations r."""
        return self.ratios * (1.0 + self.ratios) / (1.0 + 2.0 * self.ratios)

    @property
    def constant(self) -> float:
        """Log-likelihood ratio of two samples at the mean: -½ Σ log(1 - r²)."""
        return float(np.log1p(self.ratios).sum() - 0.5 * np.log1p(2.0 * self.ratios).sum())

    @property
    def max_llr(self) -> float:
        """Upper bound of the log-likelihood ratio of a pair."""
        return self.constant + self.reach**2 * float((self.ratios / (1.0 + 2.0 * self.ratios)).max())

    def project(self, samples: NDArray[Any]) -> Matrix:
        """Return samples along the directions, moved within reach; finite for all finite samples."""
        with np.errstate(over="ignore"):
            difference = np.clip(samples - self.mean, -MAX_DISTANCE, MAX_DISTANCE)
        # Lengths are kept separate from directions, so that squares neither overflow nor underflow.
        size = np.abs(difference).max(axis=1, keepdims=True)
        found, length = np.empty((len(samples), len(self.ratios))), np.empty((len(samples), 1))
        fill_products(difference / np.maximum(size, TINY), self.matrix, found)
        largest = np.abs(found).max(axis=1, keepdims=True)
        found /= np.maximum(largest, TINY)
        fill_products(found * found, np.ones((len(self.ratios), 1)), length)
        with np.errstate(over="ignore"):
            found *= np.minimum(size * largest, self.reach / np.sqrt(np.maximum(length, TINY)))
        return found

    def sample_terms(self, samples: NDArray[Any], n_jobs: int | None) -> Matrix:
        """Return the terms of each sample in the ratio: a vector a for the inner product, and -½ Σ r a² as last column."""
        roots, halves = np.sqrt(self.weights), (-0.5 * self.weights * self.correlations)[:, None]

        def fill(rows: slice, out: Matrix) -> None:
            projected, own = self.project(samples[rows]), np.empty((len(out), 1))
            fill_products(projected * projected, halves, own)
            out[:, :-1] = projected * roots
            out[:, -1] = own[:, 0]

        return filled_in_blocks(len(samples), len(self.ratios) + 1, fill, n_jobs)

    def template_terms(self, terms: Matrix, starts: NDArray[np.int64]) -> Matrix:
        """Return the terms of enrolled identities in the ratio with a probe, from the terms of their samples.

        The ratio is the inner product of all columns but the last with the vector a of the probe and its squares, plus the last
        column. Given n samples with mean m, the samples of an identity are Gaussian with mean g m and variance v; without them,
        with mean 0 and variance 1.
        """
        n = np.diff(starts, append=len(terms)).astype(np.float64)[:, None]
        means = np.add.reduceat(terms[:, :-1], starts, axis=0) / n
        gains = n * self.ratios / (1.0 + n * self.ratios)
        variances = (1.0 + self.ratios / (1.0 + n * self.ratios)) / (1.0 + self.ratios)
        # The vectors a are along directions with weights, which are zero where identities do not differ.
        inverse = np.divide(1.0, self.weights, out=np.zeros_like(self.weights), where=self.weights > 0.0)
        linear, square = inverse * gains / variances * means, 0.5 * inverse * (1.0 - 1.0 / variances)
        own = -0.5 * (gains * means * linear).sum(axis=1) - 0.5 * np.log(variances).sum(axis=1)
        return np.column_stack([linear, square, own])


def fit_two_covariance(
    samples: NDArray[Any], pairs: IndexPairs, shrinkage: float, *, by_occurrence: bool = False
) -> TwoCovarianceModel:
    """Fit the two-covariance model to pairs: a sample is a Gaussian class centre plus a Gaussian deviation.

    Differences of same pairs have twice the within-class covariance, those of different pairs twice the sum of the
    within-class and between-class covariances. Rows that occur in no pair are ignored. ``by_occurrence`` counts a row in the
    mean and in the reach as often as it occurs, as if each pair had rows of its own.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = 2.0 * rng.normal(size=(1000, 1))
    >>> samples = np.concatenate([centres, centres]) + rng.normal(size=(2000, 1))
    >>> i = np.arange(1000, dtype=np.int32)
    >>> pairs = IndexPairs(np.tile(i, 2), np.append(i + 1000, np.roll(i, 1)), np.repeat([True, False], 1000))
    >>> fit_two_covariance(samples, pairs, 0.0).ratios.round(1)
    array([4.1])
    """
    used, numbers = occurring(samples, np.concatenate([pairs.first, pairs.second]))
    first, second = np.split(numbers, 2)
    counts = np.bincount(numbers) if by_occurrence else np.ones(len(used), dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.average(used, axis=0, weights=counts)
        centred = used - mean
        scale = np.abs(centred).max(axis=0)
    if not scale.max() <= MAX_DISTANCE:
        raise ValueError(f"X has features that differ by more than {MAX_DISTANCE:g}; divide them by a large number first.")
    if (scale[scale > 0.0] < 1.0 / MAX_DISTANCE).any():
        raise ValueError(
            f"X has features that differ by less than {1.0 / MAX_DISTANCE:g}; multiply them by a large number first."
        )
    scale[scale == 0.0] = 1.0
    centred /= scale
    scaled = SamplePairs(centred, centred, first, second)
    features = np.arange(samples.shape[1])
    within = 0.5 * difference_scatter(scaled.take(pairs.same), features)
    total = 0.5 * difference_scatter(scaled.take(~pairs.same), features)
    variances = np.maximum(np.diag(within), np.diag(total))
    ridge = MIN_VARIANCE_SHARE * np.where(variances > 0.0, variances, 1.0)
    ratios, vectors = eigh(_shrunk(total - within, shrinkage), _shrunk(within, shrinkage) + np.diag(ridge))
    # Directions in which classes do not differ are uninformative; keep at least one so that there is a model.
    kept = max(int(np.count_nonzero(ratios > 0.0)), 1)
    ratios, vectors = np.clip(ratios[::-1][:kept], 0.0, MAX_RATIO), signed(vectors[:, ::-1][:, :kept])
    matrix = np.ascontiguousarray(vectors / np.sqrt(1.0 + ratios) / scale[:, None])
    model = TwoCovarianceModel(mean, matrix, np.ascontiguousarray(ratios), MAX_DISTANCE)
    lengths = np.linalg.norm(model.project(used), axis=1)
    return model._replace(reach=float(np.quantile(np.repeat(lengths, counts), WITHIN_REACH)))


def _shrunk(covariance: Matrix, shrinkage: float) -> Matrix:
    """Return the covariance with its off-diagonal entries shrunk towards zero."""
    return (1.0 - shrinkage) * covariance + shrinkage * np.diag(np.diag(covariance))


@register(MODEL)
class GaussianSimilarity(RepresentedMixin, Similarity):
    """The log-likelihood ratio of same against different pairs in a Gaussian model of classes.

    A sample is modelled as the sum of a Gaussian class centre and a Gaussian deviation. The model is known as probabilistic
    linear discriminant analysis (PLDA), joint Bayes or the two-covariance model. The score is quadratic, fitting has a closed
    form, and it generalises to unseen identities. Use it on its own if there are few identities, or combine it with forests
    in a `VotingSimilarity`, because they make different errors. Features should be roughly Gaussian, which
    ``representation=MarginalQuantiles()`` helps to achieve; their scale does not matter.

    Parameters
    ----------
    shrinkage : float, default=0.2
        Shrinkage of the covariances between features towards zero, from 0 (none) to 1. Increase it if there are few classes
        relative to the number of features.
    representation : transformer, optional
        Transformer applied to the samples first, see `SimilarityTree`.
    preprocessor : array-like or callable, optional
        Samples, or a function from identifiers to samples, to which ``(n_pairs, 2)`` input refers; see `SimilarityTree`.
    n_jobs : int or None, default=None
        Number of parallel jobs for scoring. It does not affect the result.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_directions,)
        Correlation of two samples of one class along each direction of the model, in decreasing order.
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

    Notes
    -----
    Along a direction in which samples have variance 1 and two samples s and t of one class have correlation r, the
    log-likelihood ratio is ``(r s t - r² (s² + t²) / 2) / (1 - r²) - log(1 - r²) / 2``. Directions are independent, so their
    ratios are added. A score of 0 means that a pair is equally likely under both hypotheses. Samples farther from the mean
    than 95 % of the training samples are moved to that distance. With several enrolled samples of one identity,
    ``fusion="likelihood_ratio"`` of `evaluate`, `calibrate_threshold` and `Gallery` is the ratio of a probe and all of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import GaussianSimilarity
    >>> X, y = load_iris(return_X_y=True)
    >>> gaussian = GaussianSimilarity().fit(X, y)
    >>> gaussian.pair_score([[X[0], X[1]], [X[0], X[100]]]).round(0)
    array([  3., -53.])
    """

    _model: TwoCovarianceModel
    _has_closed_form = True

    def __init__(
        self,
        *,
        shrinkage: float = 0.2,
        representation: Any = None,
        preprocessor: ArrayLike | Callable[[NDArray[Any]], ArrayLike] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.representation = representation
        self.preprocessor = preprocessor
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, *, pairs: ArrayLike | None = None, never_pair: ArrayLike | None = None) -> Self:
        """Fit the model and the threshold; labelled samples are used through at most 200,000 sampled pairs.

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
            represented = self._fit_representation(samples, source)
            index = source.sample(N_PAIRS, np.random.default_rng(0), shuffle=False)
            given = source.labels is None
            self._set_model(fit_two_covariance(represented, index, float(self.shrinkage), by_occurrence=given))
            terms = mapped(represented, partial(self._model.sample_terms, n_jobs=self.n_jobs))
            self.threshold_ = youden_threshold(self._roc_of(terms, source))
        return self

    def _set_model(self, model: TwoCovarianceModel) -> None:
        """Set the fitted model and the attributes that follow from it."""
        self._model = model
        self.correlations_ = model.correlations
        self._products = CoordinateSet(("dot",), len(model.ratios))

    def _check_parameters(self) -> None:
        check_real("shrinkage", self.shrinkage, 0.0, 1.0)
        check_n_jobs(self.n_jobs)

    def _get_fitted_state(self) -> dict[str, Any]:
        return {
            "representation": self._get_representation_state(),
            "mean": moderate(self._model.mean),
            "matrix": moderate(self._model.matrix),
            "ratios": moderate(self._model.ratios),
            "reach": float(moderate(np.array(self._model.reach))),
        }

    def _set_fitted_state(self, fields: Fields) -> None:
        n_features = self._set_representation_state(fields)
        matrix = fields.moderate("matrix", (n_features, None))
        ratios = fields.array("ratios", "float64", matrix.shape[1:], low=0.0, high=MAX_RATIO)
        if not len(ratios) or (np.diff(ratios) > 0.0).any():
            raise fields.fail("ratios", "must be in decreasing order")
        reach = fields.number("reach", 0.0, MAX_MODERATE)
        self._set_model(TwoCovarianceModel(fields.moderate("mean", (n_features,)), matrix, ratios, reach))

    def _summary(self) -> dict[str, Any]:
        return {"correlations": self.correlations_.tolist()}

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        return self._model.sample_terms(self._represent(samples), self.n_jobs)

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        own = pairs.A[pairs.first, -1] + pairs.B[pairs.second, -1]
        # Rounding may exceed the bound, but distances must not be negative.
        ratios = self._products.complete(pairs).pairwise[:, 0] + own + self._model.constant
        return np.asarray(np.minimum(ratios, self._model.max_llr))

    def _score_templates(
        self, probes: NDArray[Any], samples: NDArray[Any], starts: NDArray[np.int64]
    ) -> Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64]]:
        vectors = probes[:, :-1]
        terms = np.hstack([vectors, vectors * vectors])
        templates = self._model.template_terms(samples, starts)
        products = CoordinateSet(("dot",), terms.shape[1])

        def score(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.float64]:
            pairs = SamplePairs(terms, templates, first, second)
            return np.asarray(products.complete(pairs).pairwise[:, 0] + templates[second, -1])

        return score

    def _max_score(self) -> float:
        return self._model.max_llr
