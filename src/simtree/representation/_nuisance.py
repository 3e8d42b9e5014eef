"""NuisanceCentering: subtract from each sample what the circumstances under which it was taken add to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from simtree._kernels.samples import fill_products
from simtree._utils.validation import check_integer, check_n_jobs, check_real
from simtree.io._fields import Fields, moderate
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._base import (
    MAX_CLASSES,
    Codes,
    Floats,
    LabelledRepresentation,
    class_means,
    filled_in_blocks,
    folds_of_rows,
    inverse_root,
)
from simtree.representation._clusters import cluster_numbers
from simtree.representation._folded import softmax

# A cluster has this many distinct rows on average, at least.
ROWS_PER_CLUSTER = 10
# Rows from which the clusterings of a fold are found, at most; the means of classes are those of all rows.
MAX_ROWS = 50_000
# More clusterings in a model file are treated as damage.
MAX_CLUSTERINGS = 1 << 16


class Clustering(NamedTuple):
    """Clusters of deviations: linear scores that recognise the cluster of a sample, and the mean deviation in each.

    Parameters
    ----------
    weights : ndarray of shape (n_features, n_clusters)
        Weights of the scores, whose softmax are the probabilities of the clusters.
    intercepts : ndarray of shape (n_clusters,)
        Constants of the scores.
    deviations : ndarray of shape (n_clusters, n_features)
        Mean deviation of the samples of each cluster from their class.
    """

    weights: Floats
    intercepts: Floats
    deviations: Floats


@register(REPRESENTATION)
class NuisanceCentering(LabelledRepresentation):
    """Subtract from each sample how samples that were taken like it deviate from the mean of their identity.

    People say different words, are seen from different sides, type at different speeds: what nobody labelled makes samples of
    one identity differ, and often in the same way for all identities. The deviations of samples from the mean of their class
    are clustered. A linear classifier recognises the cluster of a sample, also of an identity that was not in training, and
    the mean deviation of the cluster is subtracted, weighted by its probability and averaged over several clusterings. Use it
    before a `GaussianSimilarity` or a `WithinClassWhitening` for unseen identities, after `MarginalQuantiles` if features have
    odd scales. Classes with one sample have no deviations.

    Parameters
    ----------
    n_clusters : int or sequence of int, default=(40, 80)
        Number of clusters of each clustering; there are fewer if a cluster would have fewer than ten samples on average. Each
        fold has clusterings of its own.
    shrinkage : float, default=0.1
        Shrinkage of covariances towards a multiple of the identity matrix, as in `WithinClassWhitening`.
    cv : int, default=5
        Number of folds for cross-fitting. The clusters of each fold are found without it; `transform` averages all of them.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for the folds and the clusters.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training samples.
    clusterings_ : list of Clustering
        The clusterings: weights and intercepts of the classifier, and the mean deviation of each cluster. A cluster has at
        least five distinct samples.
    n_classes_ : int
        Number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree import GaussianSimilarity, NuisanceCentering
    >>> rng = np.random.default_rng(0)
    >>> y, words = np.repeat(np.arange(20), 20), rng.integers(0, 3, 400)  # who speaks, and what: nobody notes the latter
    >>> X = rng.normal(size=(20, 2))[y] + np.array([[0, 9], [9, 0], [9, 9]])[words] + 0.1 * rng.normal(size=(400, 2))
    >>> def auc_of_new_speakers(representation):
    ...     model = GaussianSimilarity(representation=representation).fit(X[:200], y[:200])
    ...     return round(model.score(X[200:], y[200:]), 2)
    >>> auc_of_new_speakers(None), auc_of_new_speakers(NuisanceCentering(random_state=0))
    (0.54, 0.99)
    """

    mean_: Floats
    clusterings_: list[Clustering]

    def __init__(
        self,
        *,
        n_clusters: int | Sequence[int] = (40, 80),
        shrinkage: float = 0.1,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.shrinkage = shrinkage
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        numbers = self._numbers_of_clusters()
        if not numbers:
            raise ValueError(f"n_clusters={self.n_clusters!r} is empty; give at least one number of clusters.")
        for number in numbers:
            check_integer("n_clusters", number, 1)
        check_real("shrinkage", self.shrinkage, 0.0, 1.0, open_low=True)
        check_integer("cv", self.cv, 2)
        check_n_jobs(self.n_jobs)

    def _numbers_of_clusters(self) -> list[Any]:
        if isinstance(self.n_clusters, Sequence | np.ndarray) and not isinstance(self.n_clusters, str):
            return list(self.n_clusters)
        return [self.n_clusters]

    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        self.mean_ = X.mean(axis=0)
        self._n_features_out = X.shape[1]
        centred = X - self.mean_
        for_folds, *for_clusters = rng.spawn(1 + self.cv)
        folds = folds_of_rows(codes, self.cv, for_folds)
        learned = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._clusterings)(centred, codes, folds != fold, generator) for fold, generator in enumerate(for_clusters)
        )
        self.clusterings_ = [clustering for of_fold in learned for clustering in of_fold]
        if not cross_fitted:
            return None
        found = np.empty_like(centred)
        for fold, of_fold in enumerate(learned):
            found[folds == fold] = self._centred(X[folds == fold], of_fold)
        return found

    def _clusterings(self, X: Floats, codes: Codes, used: NDArray[np.bool_], rng: np.random.Generator) -> list[Clustering]:
        """Return the clusterings of the samples that are used, without those for which there are too few samples."""
        X, codes = X[used], codes[used]
        codes = np.unique(codes, return_inverse=True)[1]
        means = class_means(X, codes)
        rows = np.flatnonzero(np.bincount(codes)[codes] > 1)
        if len(rows) > MAX_ROWS:
            rows = np.sort(rng.choice(rows, MAX_ROWS, replace=False))
        # Rows that occur again and again would be clusters of their own, whose means disclose them.
        rows = rows[np.sort(np.unique(X[rows], axis=0, return_index=True)[1])]
        samples = X[rows]
        deviations = samples - means[codes[rows]]
        covariance = deviations.T @ deviations / max(len(rows), 1)
        # Without any deviation, or with some whose squares underflow, there is nothing to cluster.
        if not np.trace(covariance) > np.finfo(np.float64).tiny:
            return []
        spread = deviations @ inverse_root(covariance, self.shrinkage)
        most = len(np.unique(spread, axis=0)) // ROWS_PER_CLUSTER
        found = []
        for number in self._numbers_of_clusters():
            if min(int(number), most) > 1:
                clusters = cluster_numbers(spread, min(int(number), most), rng)
                found.append(self._clustering(samples, deviations, clusters))
        return found

    def _clustering(self, samples: Floats, deviations: Floats, clusters: Codes) -> Clustering:
        """Return the classifier of clusters, by linear discriminant analysis, and their mean deviations."""
        centres = class_means(samples, clusters)
        within = samples - centres[clusters]
        root = inverse_root(within.T @ within / len(samples), self.shrinkage)
        whitened = centres @ root
        shares = np.bincount(clusters) / len(clusters)
        intercepts = np.log(shares) - 0.5 * np.sum(whitened * whitened, axis=1)
        return Clustering(np.ascontiguousarray((whitened @ root).T), intercepts, class_means(deviations, clusters))

    def _apply(self, X: NDArray[Any]) -> Floats:
        return self._centred(X, self.clusterings_)

    def _centred(self, X: NDArray[Any], clusterings: list[Clustering]) -> Floats:
        """Return samples less the mean of the deviations that the clusterings expect of them."""

        def fill(rows: slice, out: Floats) -> None:
            centred = X[rows] - self.mean_
            one = np.empty_like(out)
            for clustering in clusterings:
                scores = np.empty((len(out), len(clustering.intercepts)))
                fill_products(centred, clustering.weights, scores)
                shares = softmax(scores + clustering.intercepts)
                if not np.isfinite(shares).all():
                    raise ValueError("X holds numbers so large that scores of clusters overflow; divide X by a large number.")
                fill_products(shares, clustering.deviations, one)
                out += one
            out[:] = X[rows] - out / max(len(clusterings), 1)

        return filled_in_blocks(len(X), X.shape[1], fill, self.n_jobs)

    def _get_fitted_state(self) -> dict[str, Any]:
        clusterings = [
            {name: moderate(values) for name, values in clustering._asdict().items()} for clustering in self.clusterings_
        ]
        return {"n_classes": self.n_classes_, "mean": moderate(self.mean_), "clusterings": clusterings}

    def _set_fitted_state(self, fields: Fields) -> int:
        n_features = self.n_features_in_
        self.n_classes_ = fields.integer("n_classes", 2, MAX_CLASSES)
        self.mean_ = fields.moderate("mean", (n_features,))
        self.clusterings_ = []
        for part in fields.parts("clusterings", MAX_CLUSTERINGS):
            weights = part.moderate("weights", (n_features, None))
            n_clusters = weights.shape[1]
            if not n_clusters:
                raise part.fail("weights", "must have a column per cluster")
            intercepts = part.moderate("intercepts", (n_clusters,))
            self.clusterings_.append(Clustering(weights, intercepts, part.moderate("deviations", (n_clusters, n_features))))
        self._n_features_out = n_features
        return n_features
