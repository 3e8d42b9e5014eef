"""Models of simtree in the accuracy benchmark, as functions from `Training` to a similarity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from accuracy.peers import ALL, F, Training
from accuracy.settings import Setting, setting_for
from problems import row_numbers
from simtree import (
    AutoSimilarity,
    DistanceSimilarity,
    GaussianSimilarity,
    SimilarityBoosting,
    SimilarityForest,
    VotingSimilarity,
)
from simtree.models._base import Similarity
from simtree.pairs._sources import IndexPairs

MAX_ROUNDS = 2_000
# As for the peers.
PATIENCE = 100


def forest(training: Training, *, n_estimators: int = 30, n_pairs: int = 200_000, **parameters: Any) -> SimilarityForest:
    """Return an unfitted forest; each tree samples its own pairs, as many same as different ones."""
    settings = {"coordinates": list(ALL), "min_pairs_split": 100} | parameters
    return SimilarityForest(
        n_estimators=training.rounds(n_estimators),
        n_pairs=training.some(n_pairs),
        n_jobs=training.n_jobs,
        random_state=training.seed,
        **settings,
    )


def fitted_forest(
    training: Training, *, represent: Callable[[Training], Any] | None = None, **parameters: Any
) -> SimilarityForest:
    representation = None if represent is None else represent(training)
    return forest(training, representation=representation, **parameters).fit(training.X, training.y)


def fitted_boosting(training: Training, *, n_pairs: int, n_rounds: int = MAX_ROUNDS, **parameters: Any) -> SimilarityBoosting:
    """Fit boosting on new pairs every ten rounds, with default settings; rounds are found by early stopping."""
    model = SimilarityBoosting(
        n_estimators=training.rounds(n_rounds),
        n_pairs=training.some(n_pairs),
        open_set=training.open_set,
        n_iter_no_change=training.rounds(PATIENCE),
        n_jobs=training.n_jobs,
        random_state=training.seed,
        **parameters,
    )
    return model.fit(training.X, training.y)


def cosine_of(training: Training, representation: Any) -> DistanceSimilarity:
    return DistanceSimilarity(metric="cosine", representation=representation, n_jobs=training.n_jobs)


def ensemble(
    training: Training, *, members: Callable[[Training], dict[str, Similarity]], weights: Sequence[float] | None = None
) -> VotingSimilarity:
    """Fit an ensemble of several similarities, with equal weights by default."""
    model = VotingSimilarity(list(members(training).items()), weights=weights, n_jobs=training.n_jobs)
    return model.fit(training.X, training.y)


def likelihood_ratio(training: Training, *, represent: Callable[[], Any] | None = None) -> GaussianSimilarity:
    representation = None if represent is None else represent()
    return GaussianSimilarity(representation=representation, n_jobs=training.n_jobs)


def fitted_ratio(training: Training, *, represent: Callable[[], Any] | None = None) -> GaussianSimilarity:
    return likelihood_ratio(training, represent=represent).fit(training.X, training.y)


@dataclass(frozen=True)
class Represented:
    """Similarity of transformed samples."""

    representation: Any
    similarity: Similarity

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        return self.similarity.pair_score(rows, self.representation.transform(X))


def on_pairs(
    training: Training, model: Similarity, pairs: IndexPairs, represent: Callable[[Training], Any], **given: Any
) -> Represented:
    """Fit a model on given pairs of transformed samples; the transformer may learn from labels, which pairs do not tell."""
    representation = represent(training)
    samples = representation.fit_transform(training.X, training.y)
    return Represented(representation, model.fit(samples, pairs.same, pairs=row_numbers(pairs), **given))


def boosted(
    training: Training,
    *,
    n_pairs: int,
    fresh: bool,
    kinds: Sequence[str] = F,
    represent: Callable[[Training], Any] | None = None,
    same_weighting: str = "pairs",
    setting: Setting | None = None,
    refit: bool = True,
) -> SimilarityBoosting | Represented:
    """Fit boosting on the same pairs as a peer, or on as many fresh pairs every ten rounds.

    The setting is searched for as those of the peers are. On the same pairs, the number of rounds is found as theirs is: by a
    first fit on other pairs, without held-out identities (or samples), of which as many validation pairs are drawn as needed.
    """
    setting = setting or setting_for(training, "simtree")
    representation = None if represent is None else represent(training)
    model = SimilarityBoosting(
        n_estimators=training.rounds(MAX_ROUNDS),
        learning_rate=setting.learning_rate,
        max_leaf_nodes=setting.size,
        coordinates=list(kinds),
        n_pairs=training.some(n_pairs),
        same_weighting=same_weighting,
        representation=representation,
        open_set=training.open_set,
        refit=refit and fresh,
        n_iter_no_change=training.rounds(PATIENCE),
        n_jobs=training.n_jobs,
        random_state=training.seed,
    )
    if fresh:
        return model.fit(training.X, training.y)
    model.set_params(refresh=None).fit(training.X, training.y)
    if not refit:
        return model
    known = clone(model).set_params(n_estimators=model.best_iteration_, early_stopping=False, representation=None)
    pairs = training.pairs(n_pairs, same_weighting)
    if represent is not None:
        return on_pairs(training, known, pairs, represent)
    return known.fit(training.X, pairs.same, pairs=row_numbers(pairs))


def auto(training: Training) -> AutoSimilarity:
    """Fit AutoSimilarity with default settings."""
    budget = 0.0 if training.is_check else None
    model = AutoSimilarity(open_set=training.open_set, time_budget=budget, n_jobs=training.n_jobs, random_state=training.seed)
    return model.fit(training.X, training.y)
