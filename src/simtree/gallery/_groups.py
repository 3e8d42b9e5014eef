"""What a gallery tells about all of its samples: groups of similar ones, and what an approximate search loses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree._utils.validation import check_integer
from simtree.evaluation._model_fusion import ModelFusion
from simtree.gallery._answers import Groups
from simtree.gallery._blocks import Numbers
from simtree.gallery._inputs import check_times
from simtree.gallery._model import check_rows_of
from simtree.gallery._prefilter import Prefilter
from simtree.gallery._search import best_identities
from simtree.gallery._session import Session
from simtree.gallery._snapshot import Templates
from simtree.metrics import FloatArray
from simtree.models import Similarity
from simtree.models._clustering import cluster_rows, matching_threshold


class GroupsMixin:
    """Methods of a gallery that look at all samples."""

    path: Any
    _session: Session
    _prefilter: Prefilter | None = None

    def cluster(self, *, max_fpr: float | None = None, threshold: float | None = None, method: str = "average") -> Groups:
        """Group all samples of the gallery, whatever their ids, to find people with several ids and ids of several people.

        Parameters
        ----------
        max_fpr : float, optional
            Rate of different pairs of samples that may match; the threshold of the gallery's model must have been calibrated
            for it. It is a rate of pairs, and should be far below one by the number of samples; see `simtree.cluster`.
        threshold : float, optional
            Score from which on samples match, instead of the threshold of the model.
        method : {"average", "components"}, default="average"
            As in `simtree.cluster`.

        Returns
        -------
        Groups
            Table of samples with their ids and groups, and how well both agree.
        """
        with self._session.searching() as (_, state):
            pass
        lowest = matching_threshold(state.model, max_fpr, threshold)
        templates = state.snapshot.templates
        if not len(templates):
            raise ValueError(f"{self.path} is empty; enrol somebody first.")
        owner = np.repeat(np.arange(len(templates)), templates.sizes)
        rate = max_fpr if threshold is None else None
        found = cluster_rows(state.model, templates.prepared, lowest, method, owner, rate)
        self._session.audit_search(state, "cluster", (), len(owner))
        return Groups(state.snapshot.names[owner], found.labels, found.sizes[found.labels], found)

    def prefilter_recall(self, queries: ArrayLike, *, k: int = 10, n_candidates: int = 100, time: Any = None) -> float:
        """Return the share of the exact answers that an approximate search finds for these queries.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_features)
            Samples like those that will be searched for.
        k : int, default=10
            Number of identities per query.
        n_candidates : int, default=100
            Number of samples that are proposed per query, as in `identify`.
        time : datetime or number or array-like of shape (n_queries,), optional
            When the queries were taken, as in `identify`.

        Returns
        -------
        float
            Mean over queries of the share of the k best identities that ``identify(..., n_candidates=...)`` returns.
        """
        check_integer("k", k, 1)
        check_integer("n_candidates", n_candidates, 1)
        with self._session.searching() as (_, state):
            pass
        templates = state.snapshot.templates
        if not len(templates):
            raise ValueError(f"{self.path} is empty; enrol somebody first.")
        probes = state.model._prepare(check_rows_of(state.model, state.form, queries))
        k, times = min(int(k), len(templates)), check_times(time, len(probes))
        exact = best_identities(state.model, state.fusion, probes, templates, k, times=times)[1]
        found = self._best_proposed(int(n_candidates), state.model, state.fusion, probes, templates, k, times=times)[1]
        self._session.audit_search(state, "prefilter_recall", (), len(probes))
        return float(np.mean([len(np.intersect1d(one, other)) / k for one, other in zip(exact, found, strict=True)]))

    def _best_proposed(
        self,
        n_candidates: int,
        model: Similarity,
        fusion: ModelFusion,
        probes: NDArray[Any],
        templates: Templates,
        k: int,
        min_score: float = -np.inf,
        *,
        times: FloatArray,
    ) -> tuple[FloatArray, Numbers]:
        """Return the best identities among those that an index proposes; it is made anew whenever the rows have changed."""
        index = self._prefilter  # looked at once: other threads may set it at any moment
        if index is None or index.templates is not templates:
            self._prefilter = None  # what was removed is forgotten before anything else happens
            self._prefilter = index = Prefilter(templates)
        return index.best_identities(model, fusion, probes, k, n_candidates, min_score, times=times)
