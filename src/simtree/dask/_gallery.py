"""Search in a gallery whose templates are divided among the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_integer
from simtree.dask._cluster import Cluster, Shared
from simtree.dask._inputs import known_samples
from simtree.dask._scoring import lightened
from simtree.dask._search import merged
from simtree.gallery import Candidates, Gallery
from simtree.gallery._search import best_identities
from simtree.gallery._snapshot import Templates
from simtree.gallery._strangers import check_rate

# Rows of a gallery that a worker searches at a time; an identity is never divided.
PART_ROWS = 1 << 17


def identify(
    gallery: Gallery,
    queries: ArrayLike,
    *,
    k: int = 10,
    where: Mapping[str, Any] | None = None,
    max_fpir: float | None = None,
    time: Any = None,
    keep_below: bool = False,
    client: Client | None = None,
) -> Candidates:
    """Return the identities of a gallery that are most similar to each query, found by the workers of a cluster.

    The search is exact: the answer is that of `Gallery.identify`. The gallery is read here, and its prepared samples are sent
    to the workers in parts, each to one of them: the cluster helps where searching takes longer than that, with many queries
    or a slow model. To search for several tables, use `ClusterSearch`, which sends them once.

    Parameters
    ----------
    gallery : Gallery
        An open gallery.
    queries : Dask array or frame, or array-like, of shape (n_queries, n_features)
        Samples to search for. They are sent to all workers.
    k, where, max_fpir, time, keep_below : int, dict, float, array-like and bool, optional
        As in `Gallery.identify`.
    client : dask.distributed.Client, optional
        The client of the cluster; by default the current one.

    Returns
    -------
    Candidates
        Table of candidates.

    Examples
    --------
    >>> import tempfile
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from simtree import DistanceSimilarity, Gallery, dask as simdask
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceSimilarity(metric="euclidean").fit(X, y)
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Gallery.create(f"{folder}/flowers.gallery", model) as gallery,
    ...     Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client,
    ... ):
    ...     _ = gallery.enroll(["setosa", "versicolor", "virginica"], X[[0, 50, 100]])
    ...     simdask.identify(gallery, X[[1, 140]], k=1, client=client).id.tolist()
    ['setosa', 'virginica']
    """
    return ClusterSearch(client).identify(
        gallery, queries, k=k, where=where, max_fpir=max_fpir, time=time, keep_below=keep_below
    )


class ClusterSearch:
    """Search in galleries on a cluster, which keeps the parts of the last one that was searched.

    Parameters
    ----------
    client : dask.distributed.Client, optional
        The client of the cluster; by default the current one.
    """

    def __init__(self, client: Client | None = None) -> None:
        self._cluster = Cluster(client)
        self._templates: Templates | None = None
        self._parts: list[tuple[int, Shared]] = []

    def identify(
        self,
        gallery: Gallery,
        queries: ArrayLike,
        *,
        k: int = 10,
        where: Mapping[str, Any] | None = None,
        max_fpir: float | None = None,
        time: Any = None,
        keep_below: bool = False,
    ) -> Candidates:
        """Return the identities that are most similar to each query.

        Parameters
        ----------
        gallery : Gallery
            An open gallery.
        queries : Dask array or frame, or array-like, of shape (n_queries, n_features)
            Samples to search for.
        k, where, max_fpir, time, keep_below : int, dict, float, array-like and bool, optional
            As in `Gallery.identify`.

        Returns
        -------
        Candidates
            Table of candidates.
        """
        if not isinstance(gallery, Gallery):
            raise TypeError(f"gallery={gallery!r} is not a Gallery; open one with simtree.Gallery.open(path).")
        check_integer("k", k, 1)
        if max_fpir is not None:
            check_rate(max_fpir)
        sought = known_samples(self._cluster, queries)
        return gallery._identify(sought, int(k), where, max_fpir, time, keep_below, self._best_identities)

    def _best_identities(
        self,
        model: Any,
        fusion: Any,
        probes: NDArray[Any],
        templates: Templates,
        k: int,
        min_score: float = -np.inf,
        *,
        times: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the best identities, as `simtree.gallery._search.best_identities`."""
        self._send(templates)
        shared = Shared(self._cluster, (lightened(model), fusion, probes, times, k, min_score))
        best, places = np.full((len(probes), k), -np.inf), np.full((len(probes), k), -1, dtype=np.int64)

        def call(part: Shared) -> Callable[[], Any]:
            return lambda: self._cluster.call("search-templates", search_part, shared.future(), part.future())

        found = self._cluster.run(call(part) for _, part in self._parts)
        for (n_before, _), (scores, own) in zip(self._parts, found, strict=True):
            own[own >= 0] += n_before
            best, places = merged(np.hstack([best, scores]), np.hstack([places, own]), k)
        return best, places

    def _send(self, templates: Templates) -> None:
        """Divide templates among workers, unless they have them already."""
        # Of ``where``, the same identities are new templates with each call.
        if self._templates is not None and _are_equal(self._templates, templates):
            return
        self._templates = templates
        self._parts = [
            (start, Shared(self._cluster, _part(templates, start, stop), to_all=False)) for start, stop in _ends(templates)
        ]


def search_part(shared: tuple[Any, ...], templates: Templates) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the best identities of a part of the templates."""
    model, fusion, probes, times, k, min_score = shared
    return best_identities(model, fusion, probes, templates, min(k, len(templates)), min_score, times=times)


def _are_equal(one: Templates, other: Templates) -> bool:
    """Return whether templates have the same identities and rows."""
    if one is other:
        return True
    columns = ("numbers", "starts", "times", "prepared")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


def _ends(templates: Templates) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place, exclusive, of the identities of each part."""
    rows = np.append(templates.starts, len(templates.prepared))
    start = 0
    while start < len(templates):
        stop = int(np.searchsorted(rows, rows[start] + PART_ROWS, side="right")) - 1
        stop = min(max(stop, start + 1), len(templates))
        yield start, stop
        start = stop


def _part(templates: Templates, start: int, stop: int) -> Templates:
    """Return the identities at some places, with their own rows only."""
    rows = np.append(templates.starts, len(templates.prepared))
    own = slice(rows[start], rows[stop])
    return Templates(
        templates.prepared[own], templates.times[own], templates.starts[start:stop] - rows[start], templates.numbers[start:stop]
    )
