"""Approximate search: FAISS proposes candidates by the Euclidean distance of prepared samples, and the model ranks them.

The index is made in memory from the rows that a process holds anyway, and never written: what is removed from the gallery is
gone from it when the rows are read anew. Scores of candidates are exact; what may be lost are candidates that are not proposed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import filled
from simtree.evaluation._model_fusion import ModelFusion
from simtree.gallery._blocks import Numbers
from simtree.gallery._search import score_claims
from simtree.gallery._snapshot import Templates
from simtree.metrics import FloatArray
from simtree.models import Similarity
from simtree.models._search import TopK

# From so many rows on, they are divided into lists around centres, of which the nearest ones are searched.
MIN_LISTED_ROWS = 100_000
# Lists per square root of the number of rows, the share of lists that is searched, and rows per list to find the centres.
LISTS_PER_ROOT, SHARE_SEARCHED, ROWS_PER_LIST = 2.0, 0.05, 50
# Number of pairs of a probe and a candidate that are ranked at a time.
RANKED_PAIRS = 1 << 17


class Prefilter:
    """An index of the rows of a gallery.

    Columns are divided by their standard deviations, because distances of columns of different scales mean little.

    Parameters
    ----------
    templates : Templates
        What to search in.
    """

    def __init__(self, templates: Templates) -> None:
        faiss = _faiss()
        self.templates = templates
        rows = templates.prepared
        self._owner = np.repeat(np.arange(len(templates)), templates.sizes)
        known = filled(rows)
        spread = known.std(axis=0, dtype=np.float64)
        self._scale = np.divide(1.0, spread, out=np.ones_like(spread), where=spread > 0.0)
        self._centre = known.mean(axis=0, dtype=np.float64)
        flat = faiss.IndexFlatL2(rows.shape[1])
        if len(rows) < MIN_LISTED_ROWS:
            self._index = flat
        else:
            n_lists = int(LISTS_PER_ROOT * np.sqrt(len(rows)))
            self._index = faiss.IndexIVFFlat(flat, rows.shape[1], n_lists)
            self._index.cp.min_points_per_centroid = 1  # FAISS prints a warning below
            self._index.nprobe = max(1, round(SHARE_SEARCHED * n_lists))
            some = np.linspace(0, len(rows) - 1, min(len(rows), ROWS_PER_LIST * n_lists)).astype(np.int64)
            self._index.train(self._scaled(rows[some]))
        for start in range(0, len(rows), MIN_LISTED_ROWS):
            self._index.add(self._scaled(rows[start : start + MIN_LISTED_ROWS]))

    def _scaled(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        # A missing value is neither near nor far: it is taken for the mean.
        return np.ascontiguousarray(np.nan_to_num((rows - self._centre) * self._scale), dtype=np.float32)

    def best_identities(
        self,
        model: Similarity,
        fusion: ModelFusion,
        probes: NDArray[Any],
        k: int,
        n_candidates: int,
        min_score: float = -np.inf,
        *,
        times: FloatArray,
    ) -> tuple[FloatArray, Numbers]:
        """Return the k identities with the highest fused scores for each probe, among those of the nearest rows.

        Parameters
        ----------
        model : Similarity
            The model.
        fusion : ModelFusion
            How the scores with the samples of an identity become one.
        probes : ndarray of shape (n_probes, n_prepared)
            Prepared samples to search for.
        k : int
            Number of identities per probe.
        n_candidates : int
            Number of rows that are proposed per probe.
        min_score : float, default=-inf
            Identities with a lower score are left out.
        times : ndarray of shape (n_probes,)
            When the probes were taken, in seconds since 1970.

        Returns
        -------
        scores, places : ndarrays of shape (n_probes, k)
            As `simtree.gallery._search.best_identities`.
        """
        n_candidates = min(n_candidates, len(self.templates.prepared))
        best = TopK(len(probes), k, min_score)
        step = max(1, RANKED_PAIRS // n_candidates)
        for start in range(0, len(probes), step):
            some, taken = probes[start : start + step], times[start : start + step]
            rows = self._index.search(self._scaled(some), n_candidates)[1]
            probe, column = np.nonzero(rows >= 0)
            # Identities, once each: all their samples are scored, so that the fused score is exact.
            pairs = np.unique(np.stack([probe, self._owner[rows[probe, column]]]), axis=1)
            scores = score_claims(model, fusion, some[pairs[0]], pairs[1], self.templates, times=taken[pairs[0]])
            ends = np.searchsorted(pairs[0], np.arange(len(some) + 1))
            for own, (begin, end) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True), start):
                best.offer(own, scores[begin:end], pairs[1, begin:end])
        return best.scores, best.rows


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise ImportError('n_candidates needs FAISS; install it with: pip install "simtree[search]"') from None
    return faiss
