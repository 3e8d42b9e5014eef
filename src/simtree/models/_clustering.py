"""Groups without labels: clusters of samples from the pairs that a similarity matches.

Pairs above a threshold are found by the exact search of `Similarity.top_k`, block by block; they form a sparse graph, and no
matrix of all pairs of samples is made. Clusters are the connected components of the graph or, within each component, those of
average linkage, for which all pairs of the component are scored. Two clusters whose mean score reaches the threshold have at
least one pair that does, so average linkage of all samples, cut at the threshold, never joins two components: it is computed
component by component without changing the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from simtree._utils.progress import pairs_watcher
from simtree._utils.validation import check_choice, check_real, count
from simtree.metrics import ClusterScores, b_cubed, pairwise_cluster_scores
from simtree.models._base import Similarity, check_similarity
from simtree.models._decisions import check_for_pairs
from simtree.models._search import TopK
from simtree.pairs._inputs import check_samples

if TYPE_CHECKING:
    from simtree.evaluation import ThresholdReport

METHODS = ("average", "components")
# Rows that are searched for at a time, and matches per row that are searched for first; more only where these do not suffice.
BLOCK_ROWS, FIRST_MATCHES = 1024, 16
# More matches than this need gigabytes. Average linkage holds the scores of all pairs of a component twice: 0.45 GB for this
# many rows.
MAX_MATCHES, MAX_COMPONENT = 1 << 26, 7500
# Pairs of a component that are scored at a time.
LINKED_PAIRS = 1 << 18

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Clusters:
    """Clusters of samples.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Cluster of each sample; clusters are numbered in the order of their first samples.
    n_clusters : int
        Number of clusters.
    threshold : float
        Pairs match from this score on.
    n_matches, n_pairs : int
        Number of matching pairs, and of all pairs.
    max_fpr : float or None
        Rate of different pairs that match at most, if the threshold was calibrated for it.
    expected_false_matches : float or None
        Number of false matches at that rate, if all pairs were different: errors that join clusters.
    pairwise, b_cubed : ClusterScores or None
        How well clusters agree with known identities, by pairs and by samples.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.models import Clusters
    >>> Clusters(np.array([0, 1, 0]), 2, 1.5, 1, 3, None, None).sizes
    array([2, 1])
    """

    labels: Rows
    n_clusters: int
    threshold: float
    n_matches: int
    n_pairs: int
    max_fpr: float | None
    expected_false_matches: float | None
    pairwise: ClusterScores | None = None
    b_cubed: ClusterScores | None = None

    @property
    def sizes(self) -> Rows:
        """Number of samples of each cluster."""
        return np.bincount(self.labels, minlength=self.n_clusters)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the labels, in a form that JSON can hold.

        Returns
        -------
        dict
            Numbers by name.
        """
        scores = {name: None if own is None else own._asdict() for name, own in self._scores.items()}
        return {name: value for name, value in vars(self).items() if name != "labels"} | scores

    @property
    def _scores(self) -> dict[str, ClusterScores | None]:
        return {"pairwise": self.pairwise, "b_cubed": self.b_cubed}


def cluster(
    model: Similarity,
    X: ArrayLike,
    *,
    y: ArrayLike | None = None,
    max_fpr: float | None = None,
    threshold: float | None = None,
    method: str = "average",
) -> Clusters:
    """Group samples without labels: those that the model matches are of one cluster.

    A false positive rate is one of pairs. Among n samples there are n (n - 1) / 2 pairs, and a component is joined by each
    error, so that a rate that is low for one comparison may join everything: it should be far below 1 / n. Average linkage is
    less sensitive, because a single false match does not raise the mean score of two clusters by much.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    X : array-like of shape (n_samples, n_features)
        The samples.
    y : array-like of shape (n_samples,), optional
        Known identities, to evaluate the clusters; they do not change them.
    max_fpr : float, optional
        Rate of different pairs that may match. The threshold of the model must have been calibrated for this rate or a lower
        one, see `Similarity.calibrate_threshold`. By default the model's threshold is used, whatever it promises.
    threshold : float, optional
        Score from which on pairs match, instead of the threshold of the model.
    method : {"average", "components"}, default="average"
        ``"components"`` joins all samples that are connected by matches; ``"average"`` joins two clusters as long as the mean
        score of their pairs reaches the threshold.

    Returns
    -------
    Clusters
        The cluster of each sample, and what is known about it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, cluster
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceSimilarity(metric="euclidean").fit(X, y)
    >>> found = cluster(model, X, y=y, threshold=-1.2)
    >>> found.n_clusters, round(found.b_cubed.f1, 2)
    (6, 0.79)
    """
    check_similarity(model)
    lowest = matching_threshold(model, max_fpr, threshold)
    samples = check_samples(model, X)
    if y is not None and np.shape(y) != (len(samples),):
        raise ValueError(f"y has shape {np.shape(y)} for {count(len(samples), 'sample')} of X; give one identity each.")
    return cluster_rows(model, model._prepare(samples), lowest, method, y, max_fpr if threshold is None else None)


def matching_threshold(model: Similarity, max_fpr: float | None, threshold: float | None) -> float:
    """Return the threshold from which on pairs match; raise if the model does not promise the rate that is asked for."""
    if threshold is not None:
        if max_fpr is not None:
            raise ValueError(f"threshold={threshold!r} and max_fpr={max_fpr!r} are both given; give one of them.")
        return check_real("threshold", threshold, -np.inf, np.inf)
    check_for_pairs(model, "give a threshold")
    if max_fpr is None:
        return float(model.threshold_)
    check_real("max_fpr", max_fpr, 0.0, 1.0, open_low=True, open_high=True)
    report: ThresholdReport | None = getattr(model, "threshold_report_", None)
    promised = None if report is None else report.max_fpr
    if promised is None or promised > max_fpr:
        known = "has no such promise" if promised is None else f"was calibrated for {promised:g}"
        raise ValueError(
            f"max_fpr={max_fpr:g}, and the threshold of the model {known}; call "
            f"calibrate_threshold(X, y, max_fpr={max_fpr:g}) with other data first, or give a threshold."
        )
    return float(model.threshold_)


def cluster_rows(
    model: Similarity,
    prepared: NDArray[Any],
    threshold: float,
    method: str,
    y: ArrayLike | None = None,
    max_fpr: float | None = None,
) -> Clusters:
    """Return the clusters of prepared samples, see `cluster`."""
    check_choice("method", method, METHODS)
    n = len(prepared)
    first, second = matching_pairs(model, prepared, threshold)
    graph = coo_array((np.ones(len(first), dtype=np.bool_), (first, second)), shape=(n, n))
    labels = connected_components(graph, directed=False)[1].astype(np.int64)
    if method == "average":
        labels = _by_average_linkage(model, prepared, threshold, labels)
    labels = _by_first_sample(labels)
    n_pairs = n * (n - 1) // 2
    return Clusters(
        labels,
        int(labels.max(initial=-1)) + 1,
        threshold,
        len(first),
        n_pairs,
        max_fpr,
        None if max_fpr is None else max_fpr * n_pairs,
        None if y is None or not n else pairwise_cluster_scores(y, labels),
        None if y is None or not n else b_cubed(y, labels),
    )


def matching_pairs(model: Similarity, prepared: NDArray[Any], threshold: float) -> tuple[Rows, Rows]:
    """Return the pairs (i, j), i < j, of prepared samples whose score reaches a threshold.

    Examples
    --------
    >>> from simtree import DistanceSimilarity
    >>> model = DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    >>> matching_pairs(model, np.array([[0.0], [5.0], [0.5], [1.0]]), -0.6)
    (array([0, 2]), array([2, 3]))
    """
    report, found, n_found = pairs_watcher(), [], 0
    for start in range(0, len(prepared), BLOCK_ROWS):
        for first, second in _matches_of_block(model, prepared, start, threshold):
            n_found += len(first)
            if n_found > MAX_MATCHES:
                raise ValueError(
                    f"more than {MAX_MATCHES:,} pairs reach the threshold {threshold:g}, too many to be held in memory; choose "
                    "a higher threshold, or a lower max_fpr."
                )
            found.append((first, second))
        report((min(start + BLOCK_ROWS, len(prepared)) - start) * (len(prepared) - start))
    nothing = np.empty(0, dtype=np.int64)
    first, second = (np.concatenate([nothing, *side]) for side in zip(*found, strict=True)) if found else (nothing, nothing)
    order = np.lexsort((second, first))
    return first[order], second[order]


def _matches_of_block(model: Similarity, prepared: NDArray[Any], start: int, threshold: float) -> Iterator[tuple[Rows, Rows]]:
    """Yield the matches of the rows of a block with later rows; rows with many matches are searched for again."""
    rows = prepared[start:]
    waiting, k = np.arange(min(BLOCK_ROWS, len(rows))), FIRST_MATCHES
    while len(waiting):
        best = TopK(len(waiting), min(k, len(rows)), threshold)
        model._offer_rows(rows[waiting], rows, 0, best)
        is_done = (best.rows[:, -1] < 0) | (best.k == len(rows))
        query, column = np.nonzero((best.rows >= 0) & is_done[:, None])
        first, second = waiting[query], best.rows[query, column]
        later = second > first
        yield start + first[later], start + second[later]
        waiting, k = waiting[~is_done], 8 * k


def _by_average_linkage(model: Similarity, prepared: NDArray[Any], threshold: float, components: Rows) -> Rows:
    """Return the clusters of average linkage within components."""
    from scipy.cluster.hierarchy import fcluster, linkage

    order = np.argsort(components, kind="stable")
    sizes = np.bincount(components)
    if sizes.max(initial=0) > MAX_COMPONENT:
        raise ValueError(
            f"matches above {threshold:g} connect {sizes.max():,} samples, too many for average linkage (at most "
            f"{MAX_COMPONENT:,}); choose a higher threshold or a lower max_fpr, or method='components'."
        )
    labels, n_clusters = np.empty(len(components), dtype=np.int64), 0
    for members in np.split(order, np.cumsum(sizes)[:-1]) if len(order) else []:
        if len(members) < 3:
            labels[members], own = n_clusters, 1
        else:
            scores = _scores_of_all_pairs(model, np.ascontiguousarray(prepared[members]))
            highest = max(float(scores.max()), threshold)
            distances = np.subtract(highest, scores, out=scores)
            found = fcluster(linkage(distances, "average"), highest - threshold, "distance")
            labels[members], own = n_clusters + found - 1, int(found.max())
        n_clusters += own
    return labels


def _scores_of_all_pairs(model: Similarity, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the scores of all pairs (i, j), i < j, in the order of scipy; beside them, memory is that of a block of pairs."""
    n, score = len(rows), model._scorer(rows)
    ends = np.cumsum(np.arange(n - 1, -1, -1))  # of the pairs of each row with later ones
    scores = np.empty(int(ends[-1]))
    start = 0
    while start < n - 1:
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + LINKED_PAIRS, side="right")))
        some = np.arange(start, min(stop, n - 1))
        first = np.repeat(some, n - 1 - some)
        second = np.arange(len(first)) - np.repeat(ends[some] - (n - 1 - some) - done, n - 1 - some) + first + 1
        scores[done : done + len(first)] = score(first.astype(np.int32), second.astype(np.int32))
        start = stop
    return scores


def _by_first_sample(labels: Rows) -> Rows:
    """Return clusters that are numbered in the order of their first samples."""
    first, codes = np.unique(labels, return_index=True, return_inverse=True)[1:]
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[codes]
