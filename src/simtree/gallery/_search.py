"""Search of probes among templates: the best identities, exactly those that scoring all pairs would find."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from simtree.evaluation._model_fusion import LikelihoodRatio, ModelFusion
from simtree.gallery._blocks import Numbers
from simtree.gallery._snapshot import Templates
from simtree.metrics import FloatArray
from simtree.models import Similarity
from simtree.models._search import TopK
from simtree.models._templates import PairScore
from simtree.pairs._coordinates import SamplePairs

# A search for the best identities, with the parameters and the results of `best_identities`.
Search = Callable[..., tuple[FloatArray, Numbers]]
# Number of pairs scored at a time where all scores are needed.
SCAN_PAIRS = 1 << 21
# Rows that are searched for first, per identity that is wanted; more only where they are of too few identities.
ROWS_PER_IDENTITY = 3


def best_identities(
    model: Similarity,
    fusion: ModelFusion,
    probes: NDArray[np.floating],
    templates: Templates,
    k: int,
    min_score: float = -np.inf,
    *,
    times: FloatArray,
) -> tuple[FloatArray, Numbers]:
    """Return the k identities with the highest fused scores for each probe.

    Parameters
    ----------
    model : Similarity
        The model.
    fusion : ModelFusion
        How the scores with the samples of an identity become one.
    probes : ndarray of shape (n_probes, n_prepared)
        Prepared samples to search for.
    templates : Templates
        What to search in.
    k : int
        Number of identities per probe.
    min_score : float, default=-inf
        Identities with a lower score are left out.
    times : ndarray of shape (n_probes,)
        When the probes were taken, in seconds since 1970.

    Returns
    -------
    scores : ndarray of shape (n_probes, k)
        In decreasing order; -inf where there are fewer identities.
    places : ndarray of shape (n_probes, k)
        Places of the identities in ``templates``; ties are in increasing order. -1 where there are fewer identities.
    """
    if fusion.name == "max":
        return _by_best_rows(model, probes, templates, k, min_score)
    best = TopK(len(probes), k, min_score)
    places = np.arange(len(templates))
    for start, scores in _all_scores(model, fusion, probes, times, templates):
        for probe, of_probe in enumerate(scores, start):
            best.offer(probe, of_probe, places)
    return best.scores, best.rows


def _by_best_rows(
    model: Similarity, probes: NDArray[np.floating], templates: Templates, k: int, min_score: float
) -> tuple[FloatArray, Numbers]:
    """Return the identities of the best rows: in the order of rows by score, the first k different ones.

    Rows are in the order of identities, so that ties of rows, which are in the order of rows, are those of identities.
    """
    n_rows, owner = len(templates.prepared), np.repeat(np.arange(len(templates)), templates.sizes)
    scores, places = np.full((len(probes), k), -np.inf), np.full((len(probes), k), -1, dtype=np.int64)
    largest = int(templates.sizes.max(initial=1))
    enough = min(n_rows, (k - 1) * largest + 1)  # so many rows are always of k identities
    n_wanted = min(enough, ROWS_PER_IDENTITY * k) if largest > 1 else min(k, n_rows)
    open_probes = np.arange(len(probes)) if n_rows else np.empty(0, dtype=np.int64)
    while len(open_probes):
        best = TopK(len(open_probes), n_wanted, min_score)
        model._offer_rows(probes[open_probes], templates.prepared, 0, best)
        unfinished = []
        for probe, of_rows, rows in zip(open_probes.tolist(), best.scores, best.rows, strict=True):
            rows = rows[rows >= 0]
            found, first = np.unique(owner[rows], return_index=True)
            if len(found) < k and n_wanted < enough and len(rows) == n_wanted:
                unfinished.append(probe)
                continue
            first = np.sort(first)[:k]
            scores[probe, : len(first)], places[probe, : len(first)] = of_rows[first], owner[rows[first]]
        open_probes = np.array(unfinished, dtype=np.int64)
        n_wanted = min(enough, 4 * n_wanted)
    return scores, places


def _all_scores(
    model: Similarity, fusion: ModelFusion, probes: NDArray[np.floating], times: FloatArray, templates: Templates
) -> Iterator[tuple[int, FloatArray]]:
    """Yield the fused scores of some probes with all identities, and the place of the first of these probes."""
    n_rows = len(templates.prepared)
    if not n_rows:
        return
    n_probes = max(1, SCAN_PAIRS // n_rows)
    if isinstance(fusion, LikelihoodRatio):
        closed = model._score_templates(probes, templates.prepared, templates.starts)
        for start in range(0, len(probes), n_probes):
            yield start, _score_matrix(model, closed, np.arange(start, min(start + n_probes, len(probes))), len(templates))
        return
    for start in range(0, len(probes), n_probes):
        some = probes[start : start + n_probes]
        none = np.empty(0, dtype=np.int32)
        of_some = SamplePairs(some, templates.prepared, none, none)

        def score(pairs: slice, samples: SamplePairs = of_some) -> FloatArray:
            first, second = np.divmod(np.arange(pairs.start, pairs.stop), n_rows)
            return model._score_pairs(samples.of_rows(first.astype(np.int32), second.astype(np.int32)))

        scores = model._map_blocks(score, len(some) * n_rows).reshape(len(some), n_rows)
        ages = times[start : start + n_probes, None] - templates.times if fusion.needs_time else None
        yield start, fusion(scores, templates.starts, ages)


def _score_matrix(model: Similarity, score: PairScore, probes: Numbers, n_templates: int) -> FloatArray:
    """Return the scores of some probes with all templates, both by number."""

    def block(pairs: slice) -> FloatArray:
        first, second = np.divmod(np.arange(pairs.start, pairs.stop), n_templates)
        return score(probes[first].astype(np.int32), second.astype(np.int32))

    return model._map_blocks(block, len(probes) * n_templates).reshape(len(probes), n_templates)


def score_claims(
    model: Similarity,
    fusion: ModelFusion,
    probes: NDArray[np.floating],
    claims: Numbers,
    templates: Templates,
    *,
    times: FloatArray,
) -> FloatArray:
    """Return the fused score of each probe with one identity, given by its place in ``templates``."""
    if isinstance(fusion, LikelihoodRatio):
        closed = model._score_templates(probes, templates.prepared, templates.starts)
        return closed(np.arange(len(probes), dtype=np.int32), claims.astype(np.int32))
    n_samples = templates.sizes[claims]
    starts = np.append(0, np.cumsum(n_samples)[:-1])
    first = np.repeat(np.arange(len(probes), dtype=np.int32), n_samples)
    second = np.arange(len(first)) - np.repeat(starts - templates.starts[claims], n_samples)
    pairs = SamplePairs(probes, templates.prepared, first, second.astype(np.int32))
    scores = model._map_blocks(lambda rows: model._score_pairs(pairs.take(rows)), len(first))
    ages = times[first] - templates.times[second] if fusion.needs_time else None
    fused: FloatArray = fusion(scores[None, :], starts, None if ages is None else ages[None, :])[0]
    return fused
