"""Splitter by the likelihood ratio of Gaussian differences and sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import inv

from simtree._utils.matrices import MAX_FLOAT
from simtree._utils.validation import check_integer, check_real
from simtree.io._registry import SPLITTER, register
from simtree.pairs._coordinates import CoordinateSet, SamplePairs
from simtree.pairs._directions import joint_scatter, scaled_scatter
from simtree.splitters._base import Cell, Split, Splitter
from simtree.trees._quadratic_region import NONE_INSIDE, NONE_OUTSIDE, UNSEEN, QuadraticRegion

Matrix = NDArray[np.float64]


@register(SPLITTER)
class GaussianSplitter(Splitter):
    """Split each cell by a threshold on the log-likelihood ratio of same against different pairs, in a Gaussian model.

    The differences x - x' and the sums x + x' are modelled as independent Gaussians, with covariances (and a mean of the
    sums) that differ between same and different pairs. The ratio is quadratic and has a closed form; joint Bayes and
    probabilistic linear discriminant analysis belong to this family. For samples that lack values it is the ratio of the
    features that both have, scaled to all of them; pairs without such a feature go to one side, which is learned.

    Parameters
    ----------
    shrinkage : float, default=0.1
        Shrinkage of covariances towards a multiple of the identity matrix, from 0 (none) to 1.
    min_samples : int, default=50
        Minimum number of same pairs and of different pairs in a cell that is split.
    max_samples : int, default=100_000
        Maximum number of pairs that covariances are computed from; larger cells are subsampled.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import GaussianSplitter, SimilarityTree
    >>> X, y = load_iris(return_X_y=True)
    >>> round(SimilarityTree(max_depth=1, splitter=GaussianSplitter(), random_state=0).fit(X, y).auc_, 2)
    0.93
    """

    binned = False
    takes_missing = True
    squares = True

    def __init__(self, *, shrinkage: float = 0.1, min_samples: int = 50, max_samples: int = 100_000) -> None:
        self.shrinkage = shrinkage
        self.min_samples = min_samples
        self.max_samples = max_samples

    def check(self, pair_map: CoordinateSet) -> None:
        """Raise an error if a parameter is invalid.

        Parameters
        ----------
        pair_map : CoordinateSet
            Coordinates of the pairs.
        """
        check_real("shrinkage", self.shrinkage, 0.0, 1.0)
        check_integer("min_samples", self.min_samples, 2)
        check_integer("max_samples", self.max_samples, 2)

    def split(self, cell: Cell) -> Split | None:
        """Split the cell: the inside are the pairs whose ratio reaches the threshold with the highest AUC gain.

        Parameters
        ----------
        cell : Cell
            The cell to split.

        Returns
        -------
        Split or None
            The region of the more similar pairs and the pairs inside; None if no split improves the AUC.
        """
        pairs, same, _ = cell.sample(self.max_samples)
        features = cell.features
        if min(np.count_nonzero(same), np.count_nonzero(~same)) < self.min_samples or not len(features):
            return None
        if pairs.lacks_values:
            features = features[n_joint(pairs, same, features) >= self.min_samples]
            if not len(features):
                return None
        region = gaussian_ratio(pairs, same, features, self.shrinkage)
        if region is None:
            return None
        scores, lacks = region.scores(cell.sample_pairs)
        none_present = UNSEEN
        if lacks.any():  # all of them go to one side: where they raise the gain
            n_same = np.count_nonzero(cell.same[lacks])
            balance = cell.weight_same * n_same - cell.weight_different * (np.count_nonzero(lacks) - n_same)
            none_present = NONE_INSIDE if balance > 0.0 else NONE_OUTSIDE
            scores = np.where(lacks, np.inf if balance > 0.0 else -np.inf, scores)
        threshold = best_threshold(scores, cell.same, cell.weight_same, cell.weight_different, cell.min_pairs)
        if threshold is None:
            return None
        threshold = float(np.clip(threshold, -MAX_FLOAT, MAX_FLOAT))
        return Split(region.at(threshold, none_present), scores >= threshold)


def n_joint(pairs: SamplePairs, same: NDArray[np.bool_], features: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many same pairs have each feature in both samples, or how many different pairs if these are fewer."""
    a, b = np.isnan(pairs.A[:, features]), np.isnan(pairs.B[:, features])
    joint = ~(a[pairs.first] | b[pairs.second])
    return np.asarray(np.minimum(joint[same].sum(axis=0), joint[~same].sum(axis=0)))


def gaussian_ratio(
    pairs: SamplePairs, same: NDArray[np.bool_], features: NDArray[np.int64], shrinkage: float
) -> QuadraticRegion | None:
    """Return the log-likelihood ratio, up to a constant, as the score of a region; None if it cannot be computed.

    With D and S the covariances of differences and of sums, m the mean of sums, and y = x - centre,

        P = D_same^-1 - D_different^-1,   R = S_same^-1 - S_different^-1,   l = S_same^-1 m_same - S_different^-1 m_different,
        ratio = l·(y + y') - (y - y')ᵀ P (y - y') / 2 - (y + y')ᵀ R (y + y') / 2,

    which is u(y) + u(y') + yᵀ (P - R) y' with u(y) = l·y - yᵀ (P + R) y / 2.

    `GaussianSimilarity` models the samples instead: there D and S follow from one covariance within and one between classes, as
    the samples of a different pair are independent. In a cell they are not, because pairs were selected by their scores.

    If samples lack values, means and variances of a feature are those of the pairs that have it in both samples, and
    covariances follow `scaled_scatter`.
    """
    a = pairs.A[pairs.first[:, None], features].astype(np.float64)
    b = pairs.B[pairs.second[:, None], features].astype(np.float64)
    if pairs.lacks_values:  # a value without its counterpart is left out
        joint = ~np.isnan(a + b)
        a, b = np.where(joint, a, np.nan), np.where(joint, b, np.nan)
    mean_of = np.nanmean if pairs.lacks_values else np.mean
    centre = 0.5 * (mean_of(a, axis=0) + mean_of(b, axis=0))
    a -= centre
    b -= centre
    differences, sums = a - b, a + b
    spread = np.sqrt(0.5 * (mean_of(a**2, axis=0) + mean_of(b**2, axis=0)))
    if not np.isfinite(spread).all() or spread.max() == 0.0:
        return None
    n = len(features)
    P, R, line = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for sign, rows in ((1.0, same), (-1.0, ~same)):
        mean = mean_of(sums[rows], axis=0)
        if pairs.lacks_values:
            scatters = [scaled_scatter(*joint_scatter(values)) for values in (differences[rows], sums[rows] - mean)]
        else:
            covariance = np.cov(sums[rows], rowvar=False, bias=True).reshape(n, n)
            scatters = [differences[rows].T @ differences[rows] / np.count_nonzero(rows), covariance]
        of_differences, of_sums = (_inverse(scatter, shrinkage) for scatter in scatters)
        if of_differences is None or of_sums is None:
            return None
        P += sign * of_differences
        R += sign * of_sums
        line += sign * (of_sums @ mean)
    own, own_directions = np.linalg.eigh(-0.5 * (P + R))
    cross, cross_directions = np.linalg.eigh(P - R)
    shares = ((np.abs(P) + np.abs(R)) * np.outer(spread, spread)).sum(axis=1)
    if not shares.sum() > 0.0:
        return None
    return QuadraticRegion(
        features=features,
        centre=centre,
        linear=line,
        own_directions=np.ascontiguousarray(own_directions.T),
        own=own,
        cross_directions=np.ascontiguousarray(cross_directions.T),
        cross=cross,
        threshold=0.0,
        shares=shares / shares.sum(),
    )


def best_threshold(
    scores: NDArray[np.float64], same: NDArray[np.bool_], weight_same: float, weight_different: float, min_pairs: int
) -> float | None:
    """Return the threshold that maximises the weight of same pairs minus that of different pairs with scores above it.

    It lies halfway between neighbouring scores; None if no threshold with at least ``min_pairs`` on each side has a gain.

    Examples
    --------
    >>> best_threshold(np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, False, True, True]), 1.0, 1.0, 1)
    1.5
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    gain = np.cumsum(np.where(same[order], weight_same, -weight_different))[:-1]
    n_inside = np.arange(1, len(order))
    allowed = (ordered[:-1] > ordered[1:]) & (n_inside >= min_pairs) & (len(order) - n_inside >= min_pairs)
    gain = np.where(allowed, gain, -np.inf)
    if not len(gain) or gain.max() <= 0.0:
        return None
    at = int(np.argmax(gain))
    middle = 0.5 * ordered[at] + 0.5 * ordered[at + 1]
    return float(middle if middle > ordered[at + 1] else ordered[at])


def _inverse(covariance: Matrix, shrinkage: float) -> Matrix | None:
    """Return the inverse of a covariance shrunk towards a multiple of the identity matrix; None if it is singular."""
    n = len(covariance)
    size = np.trace(covariance) / n
    shrunk = (1.0 - shrinkage) * covariance + (shrinkage + 1e-9) * size * np.eye(n)
    if not np.isfinite(size) or size <= 0.0:
        return None
    try:
        return np.asarray(inv(shrunk))
    except np.linalg.LinAlgError:
        return None
