"""Catalogue of the accuracy benchmark: for each data set its splits, its models, and the baselines they are compared with.

To add a pipeline, write a function from `Training` to an object with ``pair_score(rows, X)`` (a fitted similarity has it), add
a `Model` with a new name to the list of a data set, and use it in a comparison if it is the best with ``--choose``. Runs of the
other models are in the log and are not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline, make_pipeline

from accuracy import data, peers
from accuracy.data import Split
from accuracy.peers import ALL, F, Training
from accuracy.protocol import FPR, Benchmark, Comparison, Model, Problem, Scale
from problems import row_numbers
from simtree import (
    DistanceSimilarity,
    ForestPosterior,
    GaussianSimilarity,
    GaussianSplitter,
    KernelDiscriminant,
    MarginalQuantiles,
    SimilarityForest,
    VotingSimilarity,
    WithinClassWhitening,
)
from simtree.models._base import Similarity

AUC = "AUC"
# Title of the comparison that the README shows.
BEST = "Best pipeline"


def tpr_at(fpr: float) -> str:
    """Return the name of a rate in tables, JSON and targets."""
    return f"TPR at {fpr:g}"


# simtree


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


# MNIST


def mnist_split(scale: Scale, split: int, choice: int | None) -> Split:
    make = data.make_digits if scale.name == "tiny" else data.digits
    return make(scale.pairs(100_000, 900_000), split, choice)


NETWORKS = {
    penalty: Model(f"network, penalty {penalty:g}, cosine", partial(peers.network, penalty=penalty), needs="torch")
    for penalty in (0.01, 1e-4)
}
LIGHTGBM_ON_F = Model(
    "LightGBM on f, 1,000,000 pairs", partial(peers.pair_classifier, kinds=F, n_pairs=1_000_000), needs="lightgbm"
)
N_SHARED = 1_000_000


def posteriors(training: Training) -> ForestPosterior:
    trees = {"n_estimators": max(100, training.rounds(400)), "max_features": min(24, training.X.shape[1])}
    return ForestPosterior(**trees, n_jobs=training.n_jobs, random_state=training.seed)


def discriminants(training: Training) -> KernelDiscriminant:
    how = {"n_landmarks": training.some(4_000, minimum=10), "alpha": 0.003}
    return KernelDiscriminant(**how, n_jobs=training.n_jobs, random_state=training.seed)


def discriminant_lightgbm(training: Training) -> peers.Similarity:
    """Train LightGBM on all coordinates of the same representation."""
    return peers.pair_classifier(training, kinds=ALL, n_pairs=N_SHARED, representation=discriminants(training))


@dataclass(frozen=True)
class Represented:
    """Similarity of transformed samples."""

    representation: Any
    similarity: SimilarityForest

    def pair_score(self, rows: np.ndarray, X: np.ndarray) -> np.ndarray:
        return self.similarity.pair_score(rows, self.representation.transform(X))


def discriminant_forest_on_shared_pairs(training: Training) -> Represented:
    """Train on the same pairs as LightGBM; each tree gets a random half of them."""
    representation, pairs = discriminants(training), training.pairs(N_SHARED)
    samples = representation.fit_transform(training.X, training.y)
    model = forest(training, n_estimators=40, max_samples=0.5)
    return Represented(representation, model.fit(samples, pairs.same, pairs=row_numbers(pairs)))


LIGHTGBM_ON_DISCRIMINANTS = Model("LightGBM on kernel discriminants, 1,000,000 pairs", discriminant_lightgbm, needs="lightgbm")
BIG = {"n_estimators": 20, "n_pairs": 500_000}
ON_POSTERIORS = Model(
    "forest on class posteriors of extra trees", partial(fitted_forest, represent=posteriors, **BIG), ours=True
)
ON_DISCRIMINANTS = Model("forest on kernel discriminants", partial(fitted_forest, represent=discriminants, **BIG), ours=True)
ON_SHARED_PAIRS = Model(
    "forest on kernel discriminants, the same 1,000,000 pairs", discriminant_forest_on_shared_pairs, ours=True
)
OBLIQUE = Model(
    "forest along discriminant directions",
    partial(fitted_forest, coordinates=["oblique"], directions="discriminant", **BIG),
    ours=True,
)
MNIST = Benchmark(
    "mnist",
    "MNIST: 153 principal components",
    """60,000 training images, and pairs of the 10,000 test images; splits differ in pairs and random seeds. Models were chosen
    on the last 10,000 training images.""",
    (Problem("mnist", mnist_split, n_choices=1),),
    (*NETWORKS.values(), LIGHTGBM_ON_F, LIGHTGBM_ON_DISCRIMINANTS, ON_POSTERIORS, ON_DISCRIMINANTS, ON_SHARED_PAIRS, OBLIQUE),
    (
        Comparison("All-tree pipeline", ON_POSTERIORS.name, (NETWORKS[0.01].name,), {}),
        Comparison(
            BEST,
            ON_DISCRIMINANTS.name,
            (NETWORKS[1e-4].name, LIGHTGBM_ON_DISCRIMINANTS.name),
            {AUC: 0.9984, tpr_at(1e-2): 0.978, tpr_at(1e-3): 0.890},
        ),
        Comparison(
            "The same pipeline on the same number of pairs",
            ON_SHARED_PAIRS.name,
            (NETWORKS[1e-4].name, LIGHTGBM_ON_DISCRIMINANTS.name),
            {},
        ),
        Comparison("No representation", OBLIQUE.name, (LIGHTGBM_ON_F.name,), {}),
    ),
)


# Keystrokes


@lru_cache(maxsize=1)
def keystroke_samples(scale: Scale) -> data.Labelled:
    return data.make_samples() if scale.name == "tiny" else data.read_keystroke()


def keystroke_split(scale: Scale, split: int, choice: int | None) -> Split:
    return data.split_identities(keystroke_samples(scale), 30 / 51, scale.pairs(200_000, 1_000_000), split, choice)


def quantile_lightgbm(training: Training) -> peers.Similarity:
    """Train LightGBM on all coordinates of the marginal quantiles of the features."""
    from sklearn.preprocessing import QuantileTransformer

    quantiles = QuantileTransformer(n_quantiles=min(1_000, len(training.X)), random_state=0)
    return peers.pair_classifier(training, kinds=ALL, n_pairs=600_000, representation=quantiles)


LIGHTGBM_ON_ALL = Model(
    "LightGBM on all coordinates, 600,000 pairs",
    partial(peers.pair_classifier, kinds=ALL, n_pairs=600_000),
    needs="lightgbm",
)
LIGHTGBM_ON_QUANTILES = Model("LightGBM on all coordinates of quantiles, 600,000 pairs", quantile_lightgbm, needs="lightgbm")
MANHATTAN = Model("Manhattan distance, standardised", peers.standardised_manhattan)
LDA = Model("LDA, cosine", peers.lda_cosine)


def whitened_quantiles(training: Training) -> Pipeline:
    return make_pipeline(MarginalQuantiles(), WithinClassWhitening(random_state=training.seed))


def whitened_cosine(training: Training) -> DistanceSimilarity:
    return cosine_of(training, whitened_quantiles(training)).fit(training.X, training.y)


def two_forests(training: Training) -> dict[str, Similarity]:
    """Return forests on whitened quantiles, which bound values outside the training range, and on raw features."""
    return {"raw": forest(training), "whitened": forest(training, representation=whitened_quantiles(training))}


def keystroke_members(training: Training) -> dict[str, Similarity]:
    return {"gaussian": likelihood_ratio(training, represent=MarginalQuantiles), **two_forests(training)}


WHITENED_COSINE = Model("cosine of whitened quantiles", whitened_cosine, ours=True)
ON_ALL = Model("forest on all coordinates", fitted_forest, ours=True)
ON_WHITENED = Model("forest on whitened quantiles", partial(fitted_forest, represent=whitened_quantiles), ours=True)
TWO_FORESTS = Model("ensemble of two forests", partial(ensemble, members=two_forests), ours=True)
GAUSSIAN_QUANTILES = Model(
    "Gaussian likelihood ratio of quantiles", partial(fitted_ratio, represent=MarginalQuantiles), ours=True
)
KEYSTROKE_ENSEMBLE = Model(
    "ensemble of a likelihood ratio and two forests", partial(ensemble, members=keystroke_members), ours=True
)
KEYSTROKE = Benchmark(
    "keystroke",
    "Keystrokes: unseen people",
    "Timings of one password, split by person: 30 people for training, and pairs of the 21 others for test.",
    (Problem("keystroke", keystroke_split),),
    (
        *(MANHATTAN, LDA, LIGHTGBM_ON_ALL, LIGHTGBM_ON_QUANTILES),
        *(WHITENED_COSINE, GAUSSIAN_QUANTILES, ON_ALL, ON_WHITENED, TWO_FORESTS, KEYSTROKE_ENSEMBLE),
    ),
    (
        Comparison(
            BEST,
            KEYSTROKE_ENSEMBLE.name,
            (LIGHTGBM_ON_ALL.name, LIGHTGBM_ON_QUANTILES.name, MANHATTAN.name, LDA.name),
            {AUC: 0.91, tpr_at(1e-2): 0.45, tpr_at(1e-3): 0.24},
        ),
    ),
)


# Speakers


@lru_cache(maxsize=1)
def audio_samples(scale: Scale) -> data.Labelled:
    return data.make_samples() if scale.name == "tiny" else data.read_audiomnist()


def audio_split(scale: Scale, split: int, choice: int | None) -> Split:
    people = data.split_identities(audio_samples(scale), 0.6, scale.pairs(100_000, 1_000_000), split, choice)
    return data.to_normal_quantiles(people)


SHRUNK_LDA = Model("LDA, shrinkage 0.3, cosine", partial(peers.lda_cosine, shrinkage=0.3))
QUADRATIC = Model("quadratic log-likelihood ratio", peers.quadratic_ratio)


def whitening(training: Training) -> WithinClassWhitening:
    return WithinClassWhitening(random_state=training.seed)


def speaker_members(training: Training) -> dict[str, Similarity]:
    """Return a Gaussian likelihood ratio, and forests on raw features, on whitened samples, and with Gaussian splits."""
    gaussian_splits = {"splitter": GaussianSplitter(), "max_depth": 6, "coordinates": list(F)}
    return {
        "gaussian": likelihood_ratio(training),
        "raw": forest(training),
        "whitened": forest(training, representation=whitening(training)),
        "gaussian splits": forest(training, n_estimators=10, n_pairs=100_000, **gaussian_splits),
    }


WHITENED_SPEAKERS = Model("forest on whitened samples", partial(fitted_forest, represent=whitening), ours=True)
GAUSSIAN = Model("Gaussian likelihood ratio", fitted_ratio, ours=True)
# The likelihood ratio has the same weight as the three forests together.
SPEAKER_ENSEMBLE = Model(
    "ensemble of a likelihood ratio and three forests",
    partial(ensemble, members=speaker_members, weights=(3.0, 1.0, 1.0, 1.0)),
    ours=True,
)
AUDIO = Benchmark(
    "audio",
    "AudioMNIST: unseen speakers",
    """60 statistics of spoken digits, each feature transformed by its quantiles to a normal distribution, split by speaker: 36
    speakers for training, and pairs of the 24 others for test.""",
    (Problem("audio", audio_split),),
    (SHRUNK_LDA, QUADRATIC, LIGHTGBM_ON_ALL, GAUSSIAN, ON_ALL, WHITENED_SPEAKERS, SPEAKER_ENSEMBLE),
    (
        Comparison(
            BEST,
            SPEAKER_ENSEMBLE.name,
            (SHRUNK_LDA.name, QUADRATIC.name, LIGHTGBM_ON_ALL.name),
            {AUC: 0.92, tpr_at(1e-2): 0.40},
        ),
    ),
)


# Faces


@lru_cache(maxsize=1)
def faces(scale: Scale) -> data.Faces:
    return data.make_faces() if scale.name == "tiny" else data.read_lfw()


def lfw_split(scale: Scale, split: int, choice: int | None) -> Split:
    return data.split_identities(faces(scale), 0.6, scale.pairs(30_000, 4_000_000), split, choice)


EUCLIDEAN = Model("Euclidean distance, no training", peers.euclidean)
COSINE = Model("cosine, no training", peers.cosine)


def face_whitening(training: Training) -> WithinClassWhitening:
    """Return weak whitening, because the descriptors were trained to be compared directly."""
    return WithinClassWhitening(shrinkage=0.7, center=False, random_state=training.seed)


def face_forest(training: Training, **parameters: Any) -> SimilarityForest:
    """Return a forest with same pairs uniform over people, because one of them has most of the same pairs."""
    kinds = [*F, "dot", "cosine", "euclidean", "manhattan"]
    return forest(training, coordinates=kinds, same_weighting="identities", **parameters)


def fitted_face_forest(training: Training) -> SimilarityForest:
    return face_forest(training).fit(training.X, training.y)


def face_members(training: Training) -> dict[str, Similarity]:
    return {
        "cosine": cosine_of(training, face_whitening(training)),
        "raw": face_forest(training),
        "whitened": face_forest(training, representation=face_whitening(training)),
    }


FACE_FOREST = Model("forest on f and pairwise coordinates, uniform over people", fitted_face_forest, ours=True)
FACES = Model("ensemble of two forests and a cosine", partial(ensemble, members=face_members), ours=True)
LFW = Benchmark(
    "lfw",
    "Labeled Faces in the Wild: unseen people",
    """128-d descriptors, split by person: 60 % of the people for training, and pairs of the others for test. For the ten
    official folds a model is trained on all people who are in no pair of the fold, and the threshold is the best one on the
    other nine.""",
    (Problem("lfw", lfw_split, fpr=(*FPR, 1e-5), faces=faces),),
    (EUCLIDEAN, COSINE, FACE_FOREST, FACES),
    (Comparison(BEST, FACES.name, (EUCLIDEAN.name, COSINE.name), {tpr_at(1e-3): 0.94, tpr_at(1e-4): 0.80}),),
)


# UCI


@lru_cache(maxsize=len(data.UCI))
def uci_samples(name: str, scale: Scale) -> data.Labelled:
    return data.make_samples(6, 60) if scale.name == "tiny" else data.read_uci(name)


def uci_split(name: str, scale: Scale, split: int, choice: int | None) -> Split:
    return data.split_samples(uci_samples(name, scale), scale.pairs(100_000, 1_000_000), split, choice)


UCI_LIGHTGBM = Model("LightGBM on f, 100,000 pairs", partial(peers.pair_classifier, kinds=F, n_pairs=100_000), needs="lightgbm")
UCI_RANDOM_FOREST = Model("RandomForest on f, 100,000 pairs", partial(peers.random_forest, kinds=F, n_pairs=100_000))
LMNN = Model("LMNN, distance", peers.lmnn, needs="metric_learn")
NCA = Model("NCA, distance", peers.nca)


def known_class_members(training: Training) -> dict[str, Similarity]:
    return {
        "posteriors": forest(training, **MODEST, representation=posteriors(training)),
        "discriminants": forest(training, **MODEST, representation=discriminants(training)),
    }


MODEST = {"n_estimators": 20, "n_pairs": 100_000}
UCI_POSTERIORS = Model(ON_POSTERIORS.name, partial(fitted_forest, represent=posteriors, **MODEST), ours=True)
UCI_DISCRIMINANTS = Model(ON_DISCRIMINANTS.name, partial(fitted_forest, represent=discriminants, **MODEST), ours=True)
KNOWN_CLASS_ENSEMBLE = Model(
    "ensemble of forests on posteriors and on discriminants", partial(ensemble, members=known_class_members), ours=True
)
UCI = Benchmark(
    "uci",
    "UCI: known classes",
    """Splits are the five folds of a stratified cross-validation: training and test have the same classes. LMNN is trained on
    at most 2,000 samples, and NCA on at most 4,000.""",
    tuple(Problem(name, partial(uci_split, name)) for name in data.UCI),
    (UCI_LIGHTGBM, UCI_RANDOM_FOREST, LMNN, NCA, LDA, UCI_POSTERIORS, UCI_DISCRIMINANTS, KNOWN_CLASS_ENSEMBLE),
    (
        Comparison(
            BEST, KNOWN_CLASS_ENSEMBLE.name, (UCI_LIGHTGBM.name, UCI_RANDOM_FOREST.name, LMNN.name, NCA.name, LDA.name), {}
        ),
    ),
)

BENCHMARKS = {benchmark.name: benchmark for benchmark in (MNIST, KEYSTROKE, AUDIO, LFW, UCI)}
