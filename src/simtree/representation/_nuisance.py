"""NuisanceCentering: subtract from each sample what the circumstances under which it was taken add to it."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

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
)
from simtree.representation._clusters import cluster_numbers
from simtree.representation._folded import softmax

# A cluster has this many distinct rows on average, at least.
ROWS_PER_CLUSTER = 10
# Rows from which clusters are found, at most; the means of identities are those of all rows.
MAX_ROWS = 50_000
# Features are not normal within a cluster, so that discriminant analysis is too sure of the cluster: its log odds are halved.
SHARPNESS = 0.5


class Clustering(NamedTuple):
    """Clusters of deviations: linear scores that recognise the cluster of a sample, and the mean deviation in each.

    Parameters
    ----------
    weights : ndarray of shape (n_features, n_clusters)
        Weights of the scores, whose softmax are the probabilities of the clusters.
    intercepts : ndarray of shape (n_clusters,)
        Constants of the scores.
    deviations : ndarray of shape (n_clusters, n_features)
        Mean deviation of the samples of each cluster from their identity.
    """

    weights: Floats
    intercepts: Floats
    deviations: Floats


class Covariance(NamedTuple):
    """A covariance that is shrunk towards a multiple of the identity matrix, by its principal directions.

    There are no more directions than rows, so that many features take no longer than many rows.

    Parameters
    ----------
    directions : ndarray of shape (n_features, n_directions)
        Orthonormal directions; the variance is the same in all directions across them.
    variances : ndarray of shape (n_directions,)
        Variance along each.
    rest : float
        Variance across them.
    """

    directions: Floats
    variances: Floats
    rest: float

    @classmethod
    def of(cls, rows: Floats, shrinkage: float) -> Self:
        """Return the covariance of rows around zero, shrunk as in `WithinClassWhitening`."""
        n, n_features = rows.shape
        if n < n_features:
            variances, left = np.linalg.eigh(rows @ rows.T / n)
            some = variances > np.finfo(np.float64).eps * n * max(variances[-1], 0.0)
            variances = variances[some]
            directions = rows.T @ (left[:, some] / np.sqrt(n * variances))
        else:
            variances, directions = np.linalg.eigh(rows.T @ rows / n)
            variances = np.maximum(variances, 0.0)
        rest = shrinkage * (float(variances.sum()) / n_features or 1.0)
        return cls(directions, (1.0 - shrinkage) * variances + rest, rest)

    def whiten(self, rows: Floats) -> Floats:
        """Return rows of the same span in coordinates in which their covariance is the identity."""
        return np.asarray((rows @ self.directions) / np.sqrt(self.variances))

    def solve(self, rows: Floats) -> Floats:
        """Return rows times the inverse of the covariance."""
        along = rows @ self.directions
        if self.directions.shape[0] == self.directions.shape[1]:
            return np.asarray((along / self.variances) @ self.directions.T)
        return np.asarray((along / self.variances - along / self.rest) @ self.directions.T + rows / self.rest)


@register(REPRESENTATION)
class NuisanceCentering(LabelledRepresentation):
    """Subtract from each sample how samples that were taken like it deviate from the mean of their identity.

    People say different words, are seen from different sides, type at different speeds: what nobody labelled makes samples of
    one identity differ, and often in the same way for all identities. The deviations of samples from the mean of the other
    samples of their identity are clustered. A linear classifier recognises the cluster of a sample, also of an identity that
    was not in training, and the mean deviation of the cluster is subtracted, weighted by its probability. Use it before a
    `GaussianSimilarity` or a `WithinClassWhitening` for unseen identities, after `MarginalQuantiles` if features have odd
    scales. Identities with one sample have no deviations.

    Parameters
    ----------
    n_clusters : int, default=100
        Number of clusters, 1 for none; there are fewer if a cluster would have fewer than ten samples on average, or samples
        of fewer than five identities.
    shrinkage : float, default=0.1
        Shrinkage of covariances towards a multiple of the identity matrix, as in `WithinClassWhitening`.
    cv : int, default=5
        Number of folds for cross-fitting: training samples are centred by clusters that were found without their fold.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for the folds and the clusters.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training samples.
    clustering_ : Clustering or None
        Weights and intercepts of the classifier, and the mean deviation of each cluster, which has samples of at least five
        identities. None if there are too few samples or identities for two clusters, also without one of the folds: samples
        then stay as they are.
    n_classes_ : int
        Number of identities.

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
    (0.54, 1.0)
    """

    mean_: Floats
    clustering_: Clustering | None

    def __init__(
        self,
        *,
        n_clusters: int = 100,
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
        check_integer("n_clusters", self.n_clusters, 1)
        check_real("shrinkage", self.shrinkage, 0.0, 1.0, open_low=True)
        check_integer("cv", self.cv, 2)
        check_n_jobs(self.n_jobs)

    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        self.mean_ = X.mean(axis=0)
        self._n_features_out = X.shape[1]
        centred = X - self.mean_
        for_folds, *for_clusters = rng.spawn(2 + self.cv)
        folds = folds_of_rows(codes, self.cv, for_folds)
        # Of the folds only to centre their samples: differences of means of nearly the same rows would disclose a row.
        used = [np.ones(len(X), dtype=np.bool_), *(folds != fold for fold in range(self.cv))]
        every, *of_folds = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._clustering)(centred[rows], codes[rows], generator)
            for rows, generator in zip(used, for_clusters, strict=True)
        )
        # All samples are centred, or none: a model that is trained on others than it scores is worse than one without.
        self.clustering_ = every if all(of_fold is not None for of_fold in of_folds) else None
        if not cross_fitted:
            return None
        if self.clustering_ is None:
            return np.array(X, dtype=np.float64)
        found = np.empty_like(centred)
        for fold, of_fold in enumerate(of_folds):
            found[folds == fold] = self._centred(X[folds == fold], of_fold)
        return found

    def _clustering(self, X: Floats, codes: Codes, rng: np.random.Generator) -> Clustering | None:
        """Return clusters of the deviations of samples; None if there are too few samples or identities for two."""
        codes = np.unique(codes, return_inverse=True)[1]
        sizes = np.bincount(codes)
        rows = np.flatnonzero(sizes[codes] > 1)
        if len(rows) > MAX_ROWS:
            rows = np.sort(rng.choice(rows, MAX_ROWS, replace=False))
        # Rows that occur again and again would be clusters of their own, whose means disclose them.
        rows = rows[np.sort(np.unique(X[rows], axis=0, return_index=True)[1])]
        samples, identities = X[rows], codes[rows]
        # From the mean of the other samples: a sample is nearer to a mean that it is part of.
        others = sizes[identities] / (sizes[identities] - 1)
        deviations = (samples - class_means(X, codes)[identities]) * others[:, None]
        # Without any deviation, or with some whose squares underflow, there is nothing to cluster.
        if not np.sum(deviations * deviations) > np.finfo(np.float64).tiny * max(len(rows), 1):
            return None
        spread = Covariance.of(deviations, self.shrinkage).whiten(deviations)
        n_clusters = min(int(self.n_clusters), len(np.unique(spread, axis=0)) // ROWS_PER_CLUSTER)
        while n_clusters > 1:
            clusters = cluster_numbers(spread, n_clusters, rng, identities)
            if clusters.max() >= n_clusters // 2:
                return self._recognised(samples, deviations, clusters)
            n_clusters //= 2  # most clusters were of few identities: larger ones are of more
        return None

    def _recognised(self, samples: Floats, deviations: Floats, clusters: Codes) -> Clustering:
        """Return the classifier of clusters, by linear discriminant analysis, and their mean deviations."""
        centres = class_means(samples, clusters)
        weights = Covariance.of(samples - centres[clusters], self.shrinkage).solve(centres)
        scores = np.log(np.bincount(clusters) / len(clusters)) - 0.5 * np.sum(centres * weights, axis=1)
        return Clustering(np.ascontiguousarray(SHARPNESS * weights.T), SHARPNESS * scores, class_means(deviations, clusters))

    def _apply(self, X: NDArray[Any]) -> Floats:
        return np.array(X, dtype=np.float64) if self.clustering_ is None else self._centred(X, self.clustering_)

    def _centred(self, X: NDArray[Any], clustering: Clustering) -> Floats:
        """Return samples less the deviation that is expected of them."""

        def fill(rows: slice, out: Floats) -> None:
            scores = np.empty((len(out), len(clustering.intercepts)))
            fill_products(X[rows] - self.mean_, clustering.weights, scores)
            shares = softmax(scores + clustering.intercepts)
            if not np.isfinite(shares).all():
                raise ValueError("X holds numbers so large that scores of clusters overflow; divide X by a large number.")
            fill_products(shares, clustering.deviations, out)
            out[:] = X[rows] - out

        return filled_in_blocks(len(X), X.shape[1], fill, self.n_jobs)

    def _get_fitted_state(self) -> dict[str, Any]:
        found = [] if self.clustering_ is None else [self.clustering_]
        states = [{name: moderate(values) for name, values in clustering._asdict().items()} for clustering in found]
        return {"n_classes": self.n_classes_, "mean": moderate(self.mean_), "clusterings": states}

    def _set_fitted_state(self, fields: Fields) -> int:
        n_features = self.n_features_in_
        self.n_classes_ = fields.integer("n_classes", 2, MAX_CLASSES)
        self.mean_ = fields.moderate("mean", (n_features,))
        self.clustering_ = None
        for part in fields.parts("clusterings", 1):
            weights = part.moderate("weights", (n_features, None))
            n_clusters = weights.shape[1]
            if not n_clusters:
                raise part.fail("weights", "must have a column per cluster")
            intercepts = part.moderate("intercepts", (n_clusters,))
            self.clustering_ = Clustering(weights, intercepts, part.moderate("deviations", (n_clusters, n_features)))
        self._n_features_out = n_features
        return n_features
