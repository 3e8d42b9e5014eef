"""The list of all representations: to add one, add an entry, and all contract tests run on it."""

from __future__ import annotations

from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from simtree import (
    BoostingPosterior,
    ForestPosterior,
    KernelDiscriminant,
    LandmarkFeatures,
    LogisticPosterior,
    MarginalQuantiles,
    MeanPosterior,
    NetworkPosterior,
    NuisanceCentering,
    WithinClassWhitening,
)
from simtree.representation import ColumnRepresentation, Imputer, RarityEncoder

UNLABELLED = {
    "quantiles": MarginalQuantiles(),
    "quantiles-few": MarginalQuantiles(n_quantiles=7, output="normal"),
    "landmarks": LandmarkFeatures(n_landmarks=8, random_state=0),
    "imputer": Imputer(),
    "imputer-frequent": Imputer(strategy="most_frequent", indicator=True),
    "rarity": RarityEncoder(),
    "columns": ColumnRepresentation(
        [("first", make_pipeline(Imputer(), StandardScaler()), [0]), ("none", "drop", [])], remainder="passthrough"
    ),
}
LABELLED = {
    "posterior": ForestPosterior(n_estimators=30, random_state=0),
    "posterior-grouped": ForestPosterior(n_estimators=30, max_classes=3, min_samples_leaf=2, random_state=0),
    "posterior-linear": LogisticPosterior(random_state=0),
    "posterior-network": NetworkPosterior(hidden_layer_sizes=(20,), n_updates=150, cv=3, random_state=0),
    "posterior-boosting": BoostingPosterior(n_rounds=20, cv=3, random_state=0),
    "discriminant": KernelDiscriminant(n_landmarks=20, random_state=0),
    "discriminant-waves": KernelDiscriminant(n_landmarks=30, landmarks="fourier", n_repeats=2, random_state=0),
    "discriminant-chosen": KernelDiscriminant(n_landmarks=300, landmarks="fourier", gamma="auto", alpha="auto", random_state=0),
    "discriminant-projected": KernelDiscriminant(n_landmarks=20, max_classes=3, random_state=0),
    "nuisance": NuisanceCentering(n_clusters=4, random_state=0),
    "whitening": WithinClassWhitening(random_state=0),
    "whitening-weighted": WithinClassWhitening(emphasis=0.25, shrinkage=0.5, center=False, n_components=2, random_state=0),
}
# Members have parameters such as n_jobs, the whole has none.
COMPOSED = {
    "posterior-mean": MeanPosterior(
        [("trees", LABELLED["posterior"]), ("scaled", make_pipeline(StandardScaler(), LABELLED["posterior-linear"]))]
    ),
}
REPRESENTATIONS = UNLABELLED | LABELLED | COMPOSED
