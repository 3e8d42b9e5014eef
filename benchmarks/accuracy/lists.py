"""Lists of models that several data sets have in common: boosting, posteriors of known classes, and unseen identities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from accuracy import ours, peers, peers_embeddings, peers_posteriors
from accuracy.peers_boosted import LIBRARIES, boosted
from accuracy.protocol import Comparison, Model
from simtree.experiments import _peers as maps

EUCLIDEAN = Model("Euclidean distance, no training", peers.euclidean)
COSINE = Model("cosine, no training", peers.cosine)
MANHATTAN = Model("Manhattan distance, standardised", peers.standardised_manhattan)
QUADRATIC = Model("quadratic log-likelihood ratio", peers.quadratic_ratio)
LDA = Model("LDA, cosine", peers.lda_cosine)
# For tables with known classes.
CLASSICS = (
    Model("RandomForest on f, 100,000 pairs", partial(peers.random_forest, kinds=peers.F, n_pairs=100_000)),
    Model("LMNN, distance", peers.lmnn, needs="metric_learn"),
    Model("NCA, distance", peers.nca),
    LDA,
)
AUTO = Model("AutoSimilarity, default settings", ours.auto, ours=True)


@dataclass(frozen=True)
class Boosting:
    """Gradient boosting by all libraries on the same coordinates, and simtree's on the same pairs and on fresh ones."""

    coordinates: str
    peers: tuple[Model, ...]
    same: Model
    fresh: Model

    @property
    def models(self) -> tuple[Model, ...]:
        return (*self.peers, self.same, self.fresh)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        baselines = tuple(model.name for model in self.peers)
        return (
            Comparison(f"Boosting on {self.coordinates}, the same pairs", self.same.name, baselines, {}),
            Comparison(f"Boosting on {self.coordinates}, fresh pairs", self.fresh.name, baselines, {}),
        )


def boosting(coordinates: str, n_pairs: int, **how: Any) -> Boosting:
    """Return models on some coordinates, which ``how`` describes to `peers_boosted.boosted` and `ours.boosted`."""
    parameters = {"n_pairs": n_pairs, **how}
    where = f"on {coordinates}, {n_pairs:,} pairs"
    return Boosting(
        coordinates,
        tuple(
            Model(f"tuned {library} {where}", partial(boosted, library=library, **parameters), needs=library.lower())
            for library in LIBRARIES
        ),
        Model(f"SimilarityBoosting {where}", partial(ours.boosted, fresh=False, **parameters), ours=True),
        Model(
            f"SimilarityBoosting {where}, fresh every ten rounds", partial(ours.boosted, fresh=True, **parameters), ours=True
        ),
    )


BOOSTING_ON_F = boosting("f", 100_000)


def posterior_models() -> tuple[Model, ...]:
    """Return similarities by the posteriors of each classifier of known classes, and of all together."""
    members = {name: (name,) for name in peers_posteriors.CLASSIFIERS} | {"mean": tuple(peers_posteriors.CLASSIFIERS)}
    forms = {"dot product": False, "likelihood ratio": True}
    return tuple(
        Model(
            f"{form} of posteriors, {name}",
            partial(peers_posteriors.posteriors, classifiers=classifiers, ratio=ratio),
            needs="lightgbm" if "LightGBM" in classifiers else None,
        )
        for name, classifiers in members.items()
        for form, ratio in forms.items()
    )


def embedding_models(*, quantiles: bool) -> tuple[Model, ...]:
    """Return discriminant analysis, PLDA, a whitened cosine and a network; of features as given, or of quantiles."""
    of_what = " of quantiles" if quantiles else ""
    how = {"quantiles": quantiles}
    return (
        Model(f"LDA{of_what}, distance", partial(peers_embeddings.lda, compare=maps.euclidean_scores, **how)),
        Model(f"LDA{of_what}, Ledoit-Wolf, cosine", partial(peers_embeddings.lda, compare=maps.cosine_scores, **how)),
        Model(f"PLDA{of_what}", partial(peers_embeddings.plda, normalise_lengths=False, **how)),
        Model(f"PLDA{of_what}, lengths normalised", partial(peers_embeddings.plda, normalise_lengths=True, **how)),
        Model(f"WCCN{of_what}, cosine", partial(peers_embeddings.wccn, **how)),
        Model(
            f"metric-learning network{of_what}, cosine",
            partial(peers_embeddings.embedding, **how),
            needs="pytorch_metric_learning",
        ),
    )


def against_all(
    model: Model, models: tuple[Model, ...], *, title: str | None = None, targets: Mapping[str, float] | None = None
) -> Comparison:
    """Return the comparison of a model with all peers of a table; the title is its name by default."""
    baselines = tuple(other.name for other in models if not other.ours)
    return Comparison(title or model.name, model.name, baselines, targets or {})
