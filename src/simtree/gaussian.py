"""GaussianSimilarity: how much likelier two points are if they share a class, when everything is Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from simtree._checks import check_n_jobs, check_real
from simtree._kernels.compilation import announced_compilation
from simtree._kernels.points import fill_products
from simtree.directions import difference_scatter
from simtree.metrics import youden_threshold
from simtree.pairs import IndexPairs, PairSampler
from simtree.part_files import moderate, representation_document
from simtree.representation.base import filled_in_blocks
from simtree.represented import fit_representation, represent
from simtree.similarity import Similarity
from simtree.symmetry import CoordinateSet, PointPairs

Matrix = NDArray[np.float64]

# Pairs of labelled points that covariances are computed from.
N_PAIRS = 200_000
# Points that lie farther out than this share of the training points are pulled back: Gaussian tails are too light for them.
REACH = 0.95
# What is added to variances within classes, as a share of their mean: a feature may be constant within classes, or altogether.
LEAST_VARIANCE = 1e-9


class GaussianLaw(NamedTuple):
    """Directions along which everything is independent, and what is between classes in each.

    ``matrix`` makes points, less their ``mean``, have variance 1 in each direction; ``ratios`` are the variances between
    classes over those within them; ``reach`` is how far from the mean a point can be.
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
    def greatest(self) -> float:
        """No pair has a higher ratio."""
        return self.constant + self.reach**2 * float((self.ratios / (1.0 + 2.0 * self.ratios)).max())

    def sides(self, points: NDArray[Any], n_jobs: int | None) -> Matrix:
        """What each point brings into the ratio: vectors a whose products count, and -½ Σ r a² in the last column."""
        n_directions = len(self.ratios)
        sizes = np.column_stack([np.ones(n_directions), self.weights * self.correlations])

        def fill(rows: slice, out: Matrix) -> None:
            placed, found = np.empty((len(out), n_directions)), np.empty((len(out), 2))
            fill_products(points[rows] - self.mean, self.matrix, placed)
            fill_products(placed * placed, sizes, found)
            factor = np.minimum(1.0, self.reach / np.sqrt(np.maximum(found[:, 0], np.finfo(np.float64).tiny)))
            out[:, :-1] = placed * np.sqrt(self.weights) * factor[:, None]
            out[:, -1] = -0.5 * found[:, 1] * factor**2

        return filled_in_blocks(len(points), n_directions + 1, fill, n_jobs)


def gaussian_law(pairs: PointPairs, same: NDArray[np.bool_], shrinkage: float) -> GaussianLaw:
    """The law of points that are a class's centre and a deviation from it, both Gaussian.

    Differences of same pairs have twice the covariance within classes, those of different pairs twice the sum of that and the
    one between classes. ``reach`` is left open: it is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centres = 2.0 * rng.normal(size=(1000, 1))
    >>> points = np.concatenate([centres, centres]) + rng.normal(size=(2000, 1))
    >>> i = np.arange(1000, dtype=np.int32)
    >>> pairs = PointPairs(points, points, np.tile(i, 2), np.concatenate([i + 1000, np.roll(i, 1)]).astype(np.int32))
    >>> gaussian_law(pairs, np.repeat([True, False], 1000), 0.0).ratios.round(1)
    array([4.1])
    """
    features = np.arange(pairs.A.shape[1])
    within = 0.5 * difference_scatter(pairs.take(same), features)
    total = 0.5 * difference_scatter(pairs.take(~same), features)
    size = (np.trace(within) or np.trace(total) or 1.0) / len(features)
    within_shrunk = _shrunk(within, shrinkage) + LEAST_VARIANCE * size * np.eye(len(features))
    ratios, vectors = eigh(_shrunk(total - within, shrinkage), within_shrunk)
    # Where classes do not differ nothing is learned of a pair; one direction is kept, so that there is a law.
    kept = max(int(np.count_nonzero(ratios > 0.0)), 1)
    ratios, vectors = np.maximum(ratios[::-1][:kept], 0.0), vectors[:, ::-1][:, :kept]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(kept)])  # of two signs, one
    matrix = np.ascontiguousarray(vectors / np.sqrt(1.0 + ratios))
    mean = pairs.A.mean(axis=0, dtype=np.float64)
    return GaussianLaw(mean, matrix, np.ascontiguousarray(ratios), np.inf)


def _shrunk(covariance: Matrix, shrinkage: float) -> Matrix:
    """The covariance with what is beside its diagonal made smaller."""
    return (1.0 - shrinkage) * covariance + shrinkage * np.diag(np.diag(covariance))


class GaussianSimilarity(Similarity):
    """The log-likelihood ratio of same against different, if classes and what varies inside them are Gaussian.

    Also known as probabilistic linear discriminant analysis, joint Bayes or the two-covariance model. It is quadratic, has no
    knobs worth turning, is fitted at once, and serves people who were not seen in training: alone where they are few, beside
    forests in a `VotingSimilarity` where it errs on other pairs than they do. Features should look Gaussian:
    ``representation=QuantileMargins()`` sees to it.

    Parameters
    ----------
    shrinkage : float, default=0.2
        From 0 to 1: how much smaller covariances of two features are made. More if there are few classes for the number of
        features.
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

    representation_: Any
    _law: GaussianLaw

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
        with self._all_or_nothing(), announced_compilation():
            self._check_parameters()
            points, source = self._check_training(X, y, pairs, never_pair)
            self.representation_, ready = fit_representation(self.representation, points, source)
            self._take(self._learned(ready, source))
            self.threshold_ = youden_threshold(self._roc_of(self._law.sides(ready, self.n_jobs), source))
        return self

    def _learned(self, points: NDArray[Any], source: IndexPairs | PairSampler) -> GaussianLaw:
        some = source.draw(N_PAIRS, np.random.default_rng(0)) if isinstance(source, PairSampler) else source
        law = gaussian_law(PointPairs(points, points, some.first, some.second), some.same, float(self.shrinkage))
        placed = (points - law.mean) @ law.matrix
        return law._replace(reach=float(np.quantile(np.linalg.norm(placed, axis=1), REACH)))

    def _take(self, law: GaussianLaw) -> None:
        """Use a law from now on."""
        self._law = law
        self.correlations_ = law.correlations
        self._products = CoordinateSet(("dot",), len(law.ratios))

    def _check_parameters(self) -> None:
        check_real("shrinkage", self.shrinkage, 0.0, 1.0)
        check_n_jobs(self.n_jobs)

    def _fitted_document(self) -> dict[str, Any]:
        return {
            "representation": representation_document(self.representation_),
            "mean": moderate(self._law.mean),
            "matrix": moderate(self._law.matrix),
            "ratios": moderate(self._law.ratios),
            "reach": self._law.reach,
        }

    def _described(self) -> dict[str, Any]:
        return {"correlations": self.correlations_.tolist()}

    def _ready(self, points: NDArray[Any]) -> NDArray[Any]:
        if self.representation_ is not None and len(points):
            points = represent(self.representation_, points)
        return self._law.sides(points, self.n_jobs)

    def _score_pairs(self, pairs: PointPairs) -> NDArray[np.float64]:
        own = pairs.A[pairs.first, -1] + pairs.B[pairs.second, -1]
        return np.asarray(self._products.complete(pairs).whole[:, 0] + own + self._law.constant)

    def _greatest_score(self) -> float:
        return self._law.greatest
