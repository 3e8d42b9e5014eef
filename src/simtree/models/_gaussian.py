"""GaussianSimilarity: how much likelier two points are if they share a class, when everything is Gaussian."""

from __future__ import annotations

from collections.abc import Callable
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
from simtree.pairs._sampling import IndexPairs
from simtree.representation._base import filled_in_blocks

Matrix = NDArray[np.float64]

# Pairs of labelled points that covariances are computed from.
N_PAIRS = 200_000
# Share of the training points within reach. Those farther out are pulled back: Gaussian tails are too light for them.
WITHIN_REACH = 0.95
# What is added to the variance of a feature within classes, as a share of its whole variance: it may be constant within them.
MIN_VARIANCE_SHARE = 1e-9
# Ratios of variances are not greater than this, with that share and any number of features there can be.
MAX_RATIO = 1e15
# Points are not farther from their mean than this.
MAX_DISTANCE = 1e300
TINY = np.finfo(np.float64).tiny


class TwoCovarianceModel(NamedTuple):
    """Directions along which everything is independent, and what is between classes in each.

    ``matrix`` makes points, less their ``mean``, have variance 1 in each direction; ``ratios`` are the variances between
    classes over those within them, greatest first; ``reach`` is how far from the mean a point can be.
    """

    mean: NDArray[np.float64]
    matrix: Matrix
    ratios: NDArray[np.float64]
    reach: float

    @property
    def correlations(self) -> NDArray[np.float64]:
        """Of two points of one class, along each direction."""
        return self.ratios / (1.0 + self.ratios)

    @property
    def weights(self) -> NDArray[np.float64]:
        """r / (1 - r²) for the correlations r."""
        return self.ratios * (1.0 + self.ratios) / (1.0 + 2.0 * self.ratios)

    @property
    def constant(self) -> float:
        """The log-likelihood ratio of two points at the mean: -½ Σ log(1 - r²)."""
        return float(np.log1p(self.ratios).sum() - 0.5 * np.log1p(2.0 * self.ratios).sum())

    @property
    def max_llr(self) -> float:
        """No pair has a higher ratio."""
        return self.constant + self.reach**2 * float((self.ratios / (1.0 + 2.0 * self.ratios)).max())

    def placed(self, samples: NDArray[Any]) -> Matrix:
        """Some points along the directions, within reach; finite wherever the points are."""
        with np.errstate(over="ignore"):
            difference = np.clip(samples - self.mean, -MAX_DISTANCE, MAX_DISTANCE)
        # Lengths are kept apart from directions, whose squares neither overflow nor vanish.
        size = np.abs(difference).max(axis=1, keepdims=True)
        found, length = np.empty((len(samples), len(self.ratios))), np.empty((len(samples), 1))
        fill_products(difference / np.maximum(size, TINY), self.matrix, found)
        largest = np.abs(found).max(axis=1, keepdims=True)
        found /= np.maximum(largest, TINY)
        fill_products(found * found, np.ones((len(self.ratios), 1)), length)
        with np.errstate(over="ignore"):
            found *= np.minimum(size * largest, self.reach / np.sqrt(np.maximum(length, TINY)))
        return found

    def sides(self, samples: NDArray[Any], n_jobs: int | None) -> Matrix:
        """What each point brings into the ratio: vectors a whose products count, and -½ Σ r a² in the last column."""
        roots, halves = np.sqrt(self.weights), (-0.5 * self.weights * self.correlations)[:, None]

        def fill(rows: slice, out: Matrix) -> None:
            placed, own = self.placed(samples[rows]), np.empty((len(out), 1))
            fill_products(placed * placed, halves, own)
            out[:, :-1] = placed * roots
            out[:, -1] = own[:, 0]

        return filled_in_blocks(len(samples), len(self.ratios) + 1, fill, n_jobs)


def fit_two_covariance(samples: NDArray[Any], pairs: IndexPairs, shrinkage: float) -> TwoCovarianceModel:
    """The law of points that are a class's centre and a deviation from it, both Gaussian, from pairs of both kinds.

    Differences of same pairs have twice the covariance within classes, those of different pairs twice the sum of that and the
    one between classes. Rows that are in no pair have no part in it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = 2.0 * rng.normal(size=(1000, 1))
    >>> points = np.concatenate([centres, centres]) + rng.normal(size=(2000, 1))
    >>> i = np.arange(1000, dtype=np.int32)
    >>> pairs = IndexPairs(np.tile(i, 2), np.append(i + 1000, np.roll(i, 1)), np.repeat([True, False], 1000))
    >>> fit_two_covariance(points, pairs, 0.0).ratios.round(1)
    array([4.1])
    """
    of_both, numbers = occurring(samples, np.concatenate([pairs.first, pairs.second]))
    first, second = np.split(numbers, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = of_both.mean(axis=0, dtype=np.float64)
        centred = of_both - mean
        units = np.abs(centred).max(axis=0)
    if not units.max() <= MAX_DISTANCE:
        raise ValueError(f"X has features that differ by more than {MAX_DISTANCE:g}; divide them by a large number first.")
    if (units[units > 0.0] < 1.0 / MAX_DISTANCE).any():
        raise ValueError(
            f"X has features that differ by less than {1.0 / MAX_DISTANCE:g}; multiply them by a large number first."
        )
    units[units == 0.0] = 1.0
    centred /= units
    scaled = SamplePairs(centred, centred, first, second)
    features = np.arange(samples.shape[1])
    within = 0.5 * difference_scatter(scaled.take(pairs.same), features)
    total = 0.5 * difference_scatter(scaled.take(~pairs.same), features)
    variances = np.maximum(np.diag(within), np.diag(total))
    ridge = MIN_VARIANCE_SHARE * np.where(variances > 0.0, variances, 1.0)
    ratios, vectors = eigh(_shrunk(total - within, shrinkage), _shrunk(within, shrinkage) + np.diag(ridge))
    # Where classes do not differ nothing is learned of a pair; one direction is kept, so that there is a model.
    kept = max(int(np.count_nonzero(ratios > 0.0)), 1)
    ratios, vectors = np.clip(ratios[::-1][:kept], 0.0, MAX_RATIO), signed(vectors[:, ::-1][:, :kept])
    matrix = np.ascontiguousarray(vectors / np.sqrt(1.0 + ratios) / units[:, None])
    model = TwoCovarianceModel(mean, matrix, np.ascontiguousarray(ratios), MAX_DISTANCE)
    lengths = np.linalg.norm(model.placed(of_both), axis=1)
    return model._replace(reach=float(np.quantile(lengths, WITHIN_REACH)))


def _shrunk(covariance: Matrix, shrinkage: float) -> Matrix:
    """The covariance with what is beside its diagonal made smaller."""
    return (1.0 - shrinkage) * covariance + shrinkage * np.diag(np.diag(covariance))


@register(MODEL)
class GaussianSimilarity(RepresentedMixin, Similarity):
    """The log-likelihood ratio of same against different, if classes and what varies inside them are Gaussian.

    Also known as probabilistic linear discriminant analysis, joint Bayes or the two-covariance model. It is quadratic,
    is fitted at once, and serves people who were not seen in training: alone where they are few, beside forests in a
    `VotingSimilarity` where it errs on other pairs than they do. Features should look Gaussian:
    ``representation=MarginalQuantiles()`` sees to it. Their units do not matter.

    Parameters
    ----------
    shrinkage : float, default=0.2
        From 0 to 1: by which share covariances between different features are reduced. More if there are few classes for the
        number of features.
    representation : transformer, optional
        What is done to the points first, as in `SimilarityForest`.
    preprocessor : array-like or callable, optional
        As in `SimilarityTree`.
    n_jobs : int or None, default=None
        Threads for scoring.

    Attributes
    ----------
    correlations_ : ndarray of shape (n_directions,)
        Of two points of one class, along each direction, greatest first.
    representation_ : transformer or None
        The fitted representation.
    threshold_ : float
        Until it is set, maximises TPR - FPR on the training pairs.

    Notes
    -----
    Along a direction in which points have variance 1, and two points s and t of one class the correlation r, the ratio is
    ``(r s t - r² (s² + t²) / 2) / (1 - r²) - log(1 - r²) / 2``; directions are independent, and their ratios are added. A
    score of 0 says that both cases are as likely. Points farther from the mean than 95 % of the training points count as if
    they were as far as these.

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
        """Compute covariances from pairs, of labelled points from at most 200,000, and find a threshold.

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
            represented = self._fit_representation(samples, source)
            index = source.sample(N_PAIRS, np.random.default_rng(0))
            self._take(fit_two_covariance(represented, index, float(self.shrinkage)))
            self.threshold_ = youden_threshold(self._roc_of(self._model.sides(represented, self.n_jobs), source))
        return self

    def _take(self, model: TwoCovarianceModel) -> None:
        """Use a model from now on."""
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
            raise fields.fail("ratios", "must be numbers from the largest to the smallest")
        reach = fields.number("reach", 0.0, MAX_MODERATE)
        self._take(TwoCovarianceModel(fields.moderate("mean", (n_features,)), matrix, ratios, reach))

    def _summary(self) -> dict[str, Any]:
        return {"correlations": self.correlations_.tolist()}

    def _prepare(self, samples: NDArray[Any]) -> NDArray[Any]:
        return self._model.sides(self._represent(samples), self.n_jobs)

    def _score_pairs(self, pairs: SamplePairs) -> NDArray[np.float64]:
        own = pairs.A[pairs.first, -1] + pairs.B[pairs.second, -1]
        # The sum may be greater by rounding; distances must not be negative.
        ratios = self._products.complete(pairs).whole[:, 0] + own + self._model.constant
        return np.asarray(np.minimum(ratios, self._model.max_llr))

    def _max_score(self) -> float:
        return self._model.max_llr
