"""The hardest pairs: same pairs with the lowest scores, and different pairs with the highest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simtree.evaluation._enrolled import Templates, TemplateScore
from simtree.evaluation._model_fusion import ModelFusion
from simtree.pairs._labels import encode_groups
from simtree.pairs._sources import PairSource

# Candidates that are kept of each kind, from which pairs without a common sample are taken.
N_CANDIDATES = 500

Scorer = Callable[[Any, Any], NDArray[np.float64]]


class ScoredPair(NamedTuple):
    """A pair of rows with its score."""

    first: int
    second: int
    score: float


class Watched:
    """A model that remembers the hardest pairs it has scored, so that these need no second pass over all pairs.

    Parameters
    ----------
    model : Similarity
        Fitted model.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._same, self._different = _Highest(), _Highest()

    def __getattr__(self, name: str) -> Any:
        """Return what else the model has, such as a learned fusion."""
        return getattr(self._model, name)

    def _comparisons(
        self,
        X: ArrayLike,
        y: ArrayLike,
        pairs: ArrayLike | None,
        identities: ArrayLike | None,
        never_pair: ArrayLike | None,
    ) -> tuple[Scorer, PairSource, NDArray[np.int64]]:
        """Return what `evaluate` asks a model for, with a scoring function that is watched."""
        score, source, units = self._model._comparisons(X, y, pairs, identities, never_pair)
        apart = None if never_pair is None else encode_groups(never_pair, len(units), "never_pair")

        def watched(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.float64]:
            scores = score(first, second)
            compared = first != second if apart is None else apart[first] != apart[second]
            same = units[first] == units[second]
            self._same.offer(first, second, -scores, same & compared)
            self._different.offer(first, second, scores, ~same & compared)
            return np.asarray(scores)

        return watched, source, units

    def _templates(
        self, X: ArrayLike, y: ArrayLike, enrol: ArrayLike, fusion: ModelFusion, never_pair: ArrayLike | None, time: Any
    ) -> tuple[Templates, TemplateScore]:
        """Return what `evaluate` asks a model for if samples are enrolled; the first sample of an identity stands for it."""
        templates, score = self._model._templates(X, y, enrol, fusion, never_pair, time)

        def watched(probes: NDArray[np.int64], samples: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
            scores = score(probes, samples, starts)
            first = samples[starts]
            same = templates.labels[probes] == templates.labels[first]
            self._same.offer(probes, first, -scores, same)
            self._different.offer(probes, first, scores, ~same)
            return np.asarray(scores)

        return templates, watched

    def hardest(self, n: int) -> tuple[list[ScoredPair], list[ScoredPair]]:
        """Return the hardest same and different pairs, hardest first; no sample is in two pairs of a kind.

        Parameters
        ----------
        n : int
            Number of pairs of each kind, at most.

        Returns
        -------
        tuple of two lists of ScoredPair
            Same pairs and different pairs.
        """
        same = [ScoredPair(first, second, -score) for first, second, score in self._same.best(n)]
        return same, [ScoredPair(*pair) for pair in self._different.best(n)]


class _Highest:
    """The pairs with the highest values."""

    def __init__(self) -> None:
        self._pairs = np.empty((0, 2), dtype=np.int64)
        self._values = np.empty(0)

    def offer(self, first: NDArray[Any], second: NDArray[Any], values: NDArray[np.float64], allowed: NDArray[np.bool_]) -> None:
        """Keep the highest of the allowed pairs."""
        if len(self._values) >= N_CANDIDATES:
            allowed = allowed & (values > self._values[-1])
        chosen = np.flatnonzero(allowed)
        if len(chosen) > N_CANDIDATES:
            chosen = chosen[np.argpartition(-values[chosen], N_CANDIDATES)[:N_CANDIDATES]]
        both = np.column_stack([np.minimum(first[chosen], second[chosen]), np.maximum(first[chosen], second[chosen])])
        pairs, places = np.unique(np.concatenate([self._pairs, both]), axis=0, return_index=True)
        found = np.concatenate([self._values, values[chosen]])[places]
        order = np.argsort(-found, kind="stable")[:N_CANDIDATES]
        self._pairs, self._values = pairs[order], found[order]

    def best(self, n: int) -> list[tuple[int, int, float]]:
        """Return the highest pairs, none of which has a sample of an earlier one."""
        taken: set[int] = set()
        found: list[tuple[int, int, float]] = []
        for (first, second), value in zip(self._pairs.tolist(), self._values.tolist(), strict=True):
            if len(found) < n and not taken & {first, second}:
                found.append((first, second, value))
                taken |= {first, second}
        return found
