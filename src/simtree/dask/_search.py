"""Scores of pairs as a lazy array, and gallery search in one pass over the chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.core import flatten
from dask.highlevelgraph import HighLevelGraph
from distributed import Client
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from simtree._utils.validation import check_integer, check_real
from simtree.dask._chunks import as_matrix, graph_of, with_row
from simtree.dask._cluster import Cluster, Shared, new_key, once_then
from simtree.dask._inputs import as_rows, known, known_samples, samples_on
from simtree.dask._samples import ArraySamples, on_pieces
from simtree.dask._scoring import BLOCK, RowScorer, lightened, score_pairs, score_rows
from simtree.models._base import check_similarity
from simtree.pairs._inputs import check_index_pairs, check_samples

Scores = NDArray[np.float64]
# Rows of an array that are sent to a worker for one search.
SEARCHED_ROWS = 1 << 17


def pair_score(model: Any, pairs: Any, X: Any = None, *, client: Client | None = None) -> Any:
    """Return the score of each pair as a lazy Dask array, computed on a cluster when it is asked for.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    pairs : Dask array or array-like of shape (n_pairs, 2, n_features), or (n_pairs, 2) with X
        Pairs of samples, or of row numbers of X. If X does not fit into a worker, row numbers are fetched at once.
    X : Dask array or frame, or array-like, of shape (n_samples, n_features), optional
        Samples that row numbers refer to. If they fit into a worker, they are sent to all of them at once.
    client : dask.distributed.Client, optional
        The client of the cluster; by default the current one.

    Returns
    -------
    dask.array.Array of shape (n_pairs,)
        Scores as of ``pair_score`` of the model. Compute them with the same client.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, dask as simdask
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceSimilarity(metric="euclidean").fit(X, y)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    ...     scores = simdask.pair_score(model, [[0, 1], [0, 149]], da.from_array(X), client=client)
    ...     scores.compute().round(1)
    array([-0.5, -4.1])
    """
    check_similarity(model, fitted=False)
    check_is_fitted(model)
    cluster = Cluster(client)
    if X is None:
        return _of_stacked(cluster, model, pairs)
    samples = check_samples(model, samples_on(cluster, X))
    if isinstance(samples, ArraySamples) and samples.fits:
        prepared = model._prepared(samples)
        shared = cluster.send((lightened(model), prepared.values), to_all=True)
        blocks = _row_numbers(pairs, len(samples))
        return _mapped(blocks, _score_numbers, shared)
    numbers = np.asarray(known(cluster, pairs))
    first, second = check_index_pairs(numbers, len(samples))
    return _of_rows(cluster, model, samples, first, second)


def top_k(
    model: Any, queries: ArrayLike, X: Any, k: int = 10, min_score: float | None = None, *, client: Client | None = None
) -> tuple[Scores, NDArray[np.int64]]:
    """Return the k rows of X that are most similar to each query, after one pass over the chunks of X.

    The search is exact: the result is that of ``top_k`` of the model.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    queries : Dask array or frame, or array-like, of shape (n_queries, n_features)
        Samples to search for. They are sent to all workers.
    X : Dask array or frame, or array-like, of shape (n_samples, n_features)
        The gallery: samples to search in.
    k : int, default=10
        Number of rows per query.
    min_score : float, optional
        Exclude rows with a lower score.
    client : dask.distributed.Client, optional
        The client of the cluster; by default the current one.

    Returns
    -------
    scores : ndarray of shape (n_queries, k)
        Scores in decreasing order; -inf if there are fewer than k rows.
    indices : ndarray of shape (n_queries, k)
        Row numbers of X; ties are in increasing order. -1 if there are fewer than k rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from simtree import SimilarityTree, dask as simdask
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = SimilarityTree(max_depth=4, random_state=0).fit(X, y)
    >>> with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    ...     scores, indices = simdask.top_k(tree, X[[0, 140]], da.from_array(X, chunks=(50, 4)), k=3, client=client)
    >>> indices
    array([[  0,   1,   2],
           [100, 101, 102]])
    """
    check_similarity(model, fitted=False)
    check_is_fitted(model)
    check_integer("k", k, 1)
    if min_score is not None:
        check_real("min_score", min_score, -np.inf, np.inf)
    cluster = Cluster(client)
    sought = known_samples(cluster, queries)
    found = check_samples(model, sought)
    # Workers read the columns of a table themselves.
    given = found if model.columns_ is None else sought
    shared = Shared(cluster, (lightened(model), given, int(k), min_score))
    best, rows = np.full((len(found), int(k)), -np.inf), np.full((len(found), int(k)), -1, dtype=np.int64)
    n_before = 0
    for scores, indices, n_rows, error in _searched(cluster, shared, X):
        if error is not None:
            raise with_row(error, n_before)
        indices[indices >= 0] += n_before
        best, rows = merged(np.hstack([best, scores]), np.hstack([rows, indices]), int(k))
        n_before += n_rows
    return best, rows


def _searched(cluster: Cluster, shared: Shared, X: Any) -> Iterator[Any]:
    """Yield the result of each chunk of a gallery, in order."""
    if not is_dask_collection(X):
        starts = range(0, len(X), SEARCHED_ROWS)
        calls = (_search_call(cluster, shared, X[start : start + SEARCHED_ROWS]) for start in starts)
        return cluster.run(calls)
    array, _ = as_rows(X)
    graph, keys = graph_of(array)

    def futures_of(chosen: list[Any]) -> list[Any]:
        calls = {new_key("search-chunk"): (search_chunk, shared.future(), key) for key in chosen}
        return cluster.get({**graph, **calls}, list(calls))

    def future_of(key: Any) -> Any:
        return futures_of([key])[0]

    futures = futures_of(keys)
    made = [once_then(future, partial(future_of, key)) for future, key in zip(futures, keys, strict=True)]
    return cluster.run(made, n_waiting=len(made) + 1)


def _search_call(cluster: Cluster, shared: Shared, rows: Any) -> Callable[[], Any]:
    return lambda: cluster.call("search-chunk", search_chunk, shared.future(), rows)


def search_chunk(shared: tuple[Any, ...], chunk: Any) -> tuple[Any, ...]:
    """Return the best rows of a chunk for each query, its number of rows, and what is wrong with them."""
    model, queries, k, min_score = shared
    if not len(chunk):
        return np.empty((len(queries), 0)), np.empty((len(queries), 0), dtype=np.int64), 0, None
    try:
        is_table = hasattr(chunk, "columns") or model.columns_ is not None
        scores, rows = model.top_k(queries, chunk if is_table else as_matrix(chunk), k, min_score)
    except (TypeError, ValueError) as error:
        return None, None, len(chunk), error
    return scores, rows, len(chunk), None


def merged(scores: Scores, rows: NDArray[np.int64], k: int) -> tuple[Scores, NDArray[np.int64]]:
    """Return the k best of each row of a table, by decreasing score; ties by increasing number, nothing (-1) last."""
    order = np.lexsort((np.where(rows < 0, np.iinfo(np.int64).max, rows), -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _row_numbers(pairs: Any, n_samples: int) -> Any:
    """Return row numbers of pairs in blocks; those that are known here are checked at once."""
    if not is_dask_collection(pairs):
        first, second = check_index_pairs(pairs, n_samples)
        return da.from_array(np.column_stack([first, second]), chunks=(BLOCK, 2))
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"pairs has shape {pairs.shape}; row numbers of pairs must have shape (n_pairs, 2).")
    return pairs.rechunk({1: -1})


def _of_stacked(cluster: Cluster, model: Any, pairs: Any) -> Any:
    """Return the scores of pairs of samples, lazily."""
    if not is_dask_collection(pairs) and not isinstance(pairs, np.ndarray):  # numbers beside words stay numbers
        pairs = np.asarray(pairs) if model.columns_ is None else np.asarray(pairs, dtype=object)
    if pairs.ndim != 3:
        raise ValueError(
            f"pairs has shape {pairs.shape}; give an array of shape (n_pairs, 2, n_features), "
            "or (n_pairs, 2) row numbers together with X."
        )
    if not is_dask_collection(pairs):
        rows = max(1, BLOCK // max(1, pairs.shape[2]))
        pairs = da.from_array(pairs, chunks=(rows, *pairs.shape[1:]))
    return _mapped(pairs.rechunk({1: -1, 2: -1}), _score_stacked, cluster.send(lightened(model), to_all=True))


def _mapped(blocks: Any, function: Callable[..., Scores], shared: Any) -> Any:
    """Return the array of ``function(shared, block)`` of each block."""
    name = new_key("score-block")
    keys = flatten(blocks.__dask_keys__())
    graph = {(name, number): (function, shared, key) for number, key in enumerate(keys)}
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[blocks])
    return da.Array(layers, name, (blocks.chunks[0],), dtype=np.float64)


def _of_rows(cluster: Cluster, model: Any, samples: Any, first: Any, second: Any) -> Any:
    """Return the scores of pairs of rows that no worker has all of.

    They are lazy if the rows are on the cluster: each batch of blocks then reads the chunks anew, so that none of them has to
    be kept for the next. Rows that are here are sent at once.
    """
    prepared = model._prepared(samples)
    scorer = RowScorer(prepared, model)
    if isinstance(prepared, ArraySamples):
        return da.from_array(scorer(first, second), chunks=BLOCK)
    name = new_key("score-block")
    graph: dict[Any, Any] = {}
    sizes: list[int] = []
    shared = cluster.send((prepared.steps, lightened(model)), to_all=True)
    for batch in prepared.batched(scorer.jobs(first, second)):
        own, pieces = prepared.taking([rows for rows, _ in batch], "take-rows", again=True)
        graph |= own
        for number, (rows, (left, right)) in enumerate(batch):
            keys = [pieces[place] for place in sorted(pieces) if place[1] == number]
            numbers = rows if prepared.needs_numbers else None
            graph[name, len(sizes)] = (on_pieces, score_rows, shared, numbers, keys, left, right)
            sizes.append(len(left))
    return da.Array(HighLevelGraph.from_collections(name, graph), name, (tuple(sizes),), dtype=np.float64)


def _score_stacked(model: Any, pairs: Any) -> Scores:
    scores: Scores = model.pair_score(as_matrix(pairs) if model.columns_ is None else pairs)
    return scores


def _score_numbers(shared: tuple[Any, NDArray[Any]], pairs: Any) -> Scores:
    first, second = check_index_pairs(pairs, len(shared[1]))
    return score_pairs(shared, first, second)
