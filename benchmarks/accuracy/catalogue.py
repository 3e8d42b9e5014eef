"""Catalogue of the accuracy benchmark: for each data set its splits, its models, and the baselines they are compared with.

To add a pipeline, write a function from `Training` to an object with ``pair_score(rows, X)`` (a fitted similarity has it), add
a `Model` with a new name to the list of a data set, and use it in a comparison if it is the best with ``--choose``. Runs of the
other models are in the log and are not repeated.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from sklearn.pipeline import Pipeline, make_pipeline

from accuracy import data, lists, peers, small
from accuracy.data import Split
from accuracy.ours import (
    Represented,
    cosine_of,
    ensemble,
    fitted_boosting,
    fitted_forest,
    fitted_ratio,
    forest,
    likelihood_ratio,
    on_pairs,
)
from accuracy.peers import ALL, F, Training
from accuracy.protocol import AUC, FPR, Benchmark, Comparison, Model, Problem, Scale, tpr_at
from simtree import (
    DistanceSimilarity,
    ForestPosterior,
    GaussianSplitter,
    KernelDiscriminant,
    MarginalQuantiles,
    NuisanceCentering,
    SimilarityForest,
    WithinClassWhitening,
)
from simtree.models._base import Similarity

# Title of the comparison that the README shows.
BEST = "Best pipeline"


# MNIST


def mnist_split(scale: Scale, split: int, choice: int | None) -> Split:
    make = data.make_digits if scale.name == "tiny" else data.digits
    return make(scale.pairs(100_000, 900_000), split, choice)


NETWORKS = {
    penalty: Model(f"network, penalty {penalty:g}, cosine", partial(peers.network, penalty=penalty), needs="torch")
    for penalty in (0.01, 1e-4)
}
N_SHARED = 1_000_000


def posteriors(training: Training) -> ForestPosterior:
    trees = {"n_estimators": max(100, training.rounds(400)), "max_features": min(24, training.X.shape[1])}
    return ForestPosterior(**trees, n_jobs=training.n_jobs, random_state=training.seed)


def discriminants(training: Training) -> KernelDiscriminant:
    how = {"n_landmarks": training.some(4_000, minimum=10), "alpha": 0.003}
    return KernelDiscriminant(**how, n_jobs=training.n_jobs, random_state=training.seed)


def discriminant_forest_on_shared_pairs(training: Training) -> Represented:
    """Train on the same pairs as the peers; each tree gets a random half of them."""
    return on_pairs(training, forest(training, n_estimators=40, max_samples=0.5), training.pairs(N_SHARED), discriminants)


MNIST_SMALL, MNIST_LARGE = (lists.boosting("f", n_pairs) for n_pairs in (100_000, N_SHARED))
MNIST_DISCRIMINANTS = lists.boosting("kernel discriminants", N_SHARED, kinds=ALL, represent=discriminants)
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
# So many rounds were still better than fewer on the last training images; early stopping would double the time.
F_FRESH = Model(
    "boosting on f, 400,000 fresh pairs, 1,200 rounds",
    partial(fitted_boosting, n_pairs=400_000, n_rounds=1_200, early_stopping=False),
    ours=True,
)
FISHER = Model(
    "boosting along Fisher directions, fresh pairs",
    partial(fitted_boosting, coordinates=["oblique"], directions="fisher", n_pairs=200_000),
    ours=True,
)
MNIST_MODELS = (
    *NETWORKS.values(),
    *(ON_POSTERIORS, ON_DISCRIMINANTS, ON_SHARED_PAIRS, OBLIQUE, FISHER),
    *lists.posterior_models(),
    *MNIST_DISCRIMINANTS.models,
    lists.AUTO,
)
ON_DISCRIMINANTS_BASELINES = (NETWORKS[1e-4].name, *(model.name for model in MNIST_DISCRIMINANTS.peers))
MNIST = Benchmark(
    "mnist",
    "MNIST: 153 principal components",
    """60,000 training images, and pairs of the 10,000 test images; splits differ in pairs and random seeds. Models were chosen
    on the last 10,000 training images.""",
    (Problem("mnist", mnist_split, n_choices=1),),
    MNIST_MODELS,
    (
        lists.against_all(lists.AUTO, MNIST_MODELS),
        Comparison("All-tree pipeline", ON_POSTERIORS.name, (NETWORKS[0.01].name,), {}),
        Comparison(
            BEST,
            ON_DISCRIMINANTS.name,
            ON_DISCRIMINANTS_BASELINES,
            {AUC: 0.9984, tpr_at(1e-2): 0.978, tpr_at(1e-3): 0.890},
        ),
        Comparison(
            "The same pipeline on the same number of pairs",
            ON_SHARED_PAIRS.name,
            ON_DISCRIMINANTS_BASELINES,
            {},
        ),
        Comparison("No representation, and no class but same or different", OBLIQUE.name, (NETWORKS[0.01].name,), {}),
        Comparison(
            "No representation, classes known",
            FISHER.name,
            (NETWORKS[0.01].name,),
            {AUC: 0.98, tpr_at(1e-2): 0.75, tpr_at(1e-3): 0.45, tpr_at(1e-4): 0.24},
        ),
        *MNIST_DISCRIMINANTS.comparisons,
    ),
)
MNIST_BOOSTING = Benchmark(
    "mnist_boosting",
    "MNIST: boosting by all libraries",
    "Gradient boosting with early stopping and searched settings on f of 153 principal components, on the same test pairs.",
    MNIST.problems,
    (*MNIST_SMALL.models, F_FRESH, *MNIST_LARGE.models),
    (
        Comparison(
            "The features f, fresh pairs",
            F_FRESH.name,
            tuple(model.name for model in (*MNIST_SMALL.peers, *MNIST_LARGE.peers)),
            {AUC: 0.97, tpr_at(1e-2): 0.64, tpr_at(1e-3): 0.40, tpr_at(1e-4): 0.21},
        ),
        *MNIST_SMALL.comparisons,
        *MNIST_LARGE.comparisons,
    ),
)


# Keystrokes


@lru_cache(maxsize=1)
def keystroke_samples(scale: Scale) -> data.Labelled:
    return data.make_samples() if scale.name == "tiny" else data.read_keystroke()


def keystroke_split(scale: Scale, split: int, choice: int | None) -> Split:
    return data.split_identities(keystroke_samples(scale), 30 / 51, scale.pairs(200_000, 1_000_000), split, choice)


BOOSTING_ON_ALL = lists.boosting("all coordinates", 200_000, kinds=ALL)


def whitened_quantiles(training: Training) -> Pipeline:
    return make_pipeline(MarginalQuantiles(), WithinClassWhitening(random_state=training.seed))


def without_nuisance() -> Pipeline:
    """Return quantiles less what circumstances seem to add to a sample; the seed makes clusters the same each time."""
    return make_pipeline(MarginalQuantiles(output="normal"), NuisanceCentering(random_state=0))


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
CENTRED_GAUSSIAN = Model(
    "Gaussian likelihood ratio without nuisance", partial(fitted_ratio, represent=without_nuisance), ours=True
)
KEYSTROKE_ENSEMBLE = Model(
    "ensemble of a likelihood ratio and two forests", partial(ensemble, members=keystroke_members), ours=True
)
KEYSTROKE_MODELS = (
    *(lists.MANHATTAN, lists.LDA),
    *(WHITENED_COSINE, GAUSSIAN_QUANTILES, CENTRED_GAUSSIAN, ON_ALL, ON_WHITENED, TWO_FORESTS, KEYSTROKE_ENSEMBLE),
    *lists.embedding_models(quantiles=False),
    *lists.embedding_models(quantiles=True),
    *lists.BOOSTING_ON_F.models,
    *BOOSTING_ON_ALL.models,
    lists.AUTO,
)
KEYSTROKE = Benchmark(
    "keystroke",
    "Keystrokes: unseen people",
    "Timings of one password, split by person: 30 people for training, and pairs of the 21 others for test.",
    (Problem("keystroke", keystroke_split),),
    KEYSTROKE_MODELS,
    (
        lists.against_all(lists.AUTO, KEYSTROKE_MODELS, targets={tpr_at(1e-2): 0.53, tpr_at(1e-3): 0.28}),
        lists.against_all(
            KEYSTROKE_ENSEMBLE,
            KEYSTROKE_MODELS,
            title=BEST,
            targets={AUC: 0.91, tpr_at(1e-2): 0.45, tpr_at(1e-3): 0.24},
        ),
        *lists.BOOSTING_ON_F.comparisons,
        *BOOSTING_ON_ALL.comparisons,
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
AUDIO_MODELS = (
    *(SHRUNK_LDA, lists.QUADRATIC),
    *(GAUSSIAN, CENTRED_GAUSSIAN, ON_ALL, WHITENED_SPEAKERS, SPEAKER_ENSEMBLE),
    *lists.embedding_models(quantiles=False),
    lists.AUTO,
)
AUDIO = Benchmark(
    "audio",
    "AudioMNIST: unseen speakers",
    """60 statistics of spoken digits, each feature transformed by its quantiles to a normal distribution, split by speaker: 36
    speakers for training, and pairs of the 24 others for test.""",
    (Problem("audio", audio_split),),
    AUDIO_MODELS,
    (
        lists.against_all(lists.AUTO, AUDIO_MODELS, targets={AUC: 0.92, tpr_at(1e-2): 0.40}),
        lists.against_all(SPEAKER_ENSEMBLE, AUDIO_MODELS, title=BEST, targets={AUC: 0.92, tpr_at(1e-2): 0.40}),
    ),
)
AUDIO_BOOSTING = Benchmark(
    "audio_boosting",
    "AudioMNIST: boosting by all libraries",
    "Gradient boosting with early stopping and searched settings, on the same data, splits and test pairs.",
    AUDIO.problems,
    lists.BOOSTING_ON_F.models,
    lists.BOOSTING_ON_F.comparisons,
)


# Faces


@lru_cache(maxsize=1)
def faces(scale: Scale) -> data.Faces:
    return data.make_faces() if scale.name == "tiny" else data.read_lfw()


def lfw_split(scale: Scale, split: int, choice: int | None) -> Split:
    return data.split_identities(faces(scale), 0.6, scale.pairs(30_000, 4_000_000), split, choice)


FACE_KINDS = (*F, "dot", "cosine", "euclidean", "manhattan")


def face_whitening(training: Training) -> WithinClassWhitening:
    """Return weak whitening, because the descriptors were trained to be compared directly."""
    return WithinClassWhitening(shrinkage=0.7, center=False, random_state=training.seed)


def face_forest(training: Training, **parameters: Any) -> SimilarityForest:
    """Return a forest with same pairs uniform over people, because one of them has most of the same pairs."""
    return forest(training, coordinates=list(FACE_KINDS), same_weighting="identities", **parameters)


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
FACE_BOOSTING = lists.boosting(
    "f and pairwise coordinates, uniform over people", 100_000, kinds=FACE_KINDS, same_weighting="identities"
)
LFW_MODELS = (
    *(lists.EUCLIDEAN, lists.COSINE),
    *(FACE_FOREST, FACES),
    *lists.embedding_models(quantiles=False),
    *lists.embedding_models(quantiles=True),
    lists.AUTO,
)
LFW = Benchmark(
    "lfw",
    "Labeled Faces in the Wild: unseen people",
    """128-d descriptors, split by person: 60 % of the people for training, and pairs of the others for test. For the ten
    official folds a model is trained on all people who are in no pair of the fold, and the threshold is the best one on the
    other nine.""",
    (Problem("lfw", lfw_split, fpr=(*FPR, 1e-5), faces=faces),),
    LFW_MODELS,
    (
        lists.against_all(lists.AUTO, LFW_MODELS, targets={tpr_at(1e-3): 0.945, tpr_at(1e-4): 0.83, tpr_at(1e-5): 0.62}),
        lists.against_all(FACES, LFW_MODELS, title=BEST, targets={tpr_at(1e-3): 0.94, tpr_at(1e-4): 0.80}),
    ),
)
LFW_BOOSTING = Benchmark(
    "lfw_boosting",
    "Labeled Faces in the Wild: boosting by all libraries",
    "Gradient boosting with early stopping and searched settings, on the same data, splits and test pairs.",
    (Problem("lfw", lfw_split, fpr=(*FPR, 1e-5)),),
    FACE_BOOSTING.models,
    FACE_BOOSTING.comparisons,
)


# UCI


@lru_cache(maxsize=len(data.UCI))
def uci_samples(name: str, scale: Scale) -> data.Labelled:
    return data.make_samples(6, 60) if scale.name == "tiny" else data.read_uci(name)


def uci_split(name: str, scale: Scale, split: int, choice: int | None) -> Split:
    return data.split_samples(uci_samples(name, scale), scale.pairs(100_000, 1_000_000), split, choice)


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
UCI_MODELS = (
    *lists.CLASSICS,
    *(UCI_POSTERIORS, UCI_DISCRIMINANTS, KNOWN_CLASS_ENSEMBLE),
    *lists.posterior_models(),
    lists.AUTO,
)
UCI = Benchmark(
    "uci",
    "UCI: known classes",
    """Splits are the five folds of a stratified cross-validation: training and test have the same classes. LMNN is trained on
    at most 2,000 samples, and NCA on at most 4,000.""",
    tuple(Problem(name, partial(uci_split, name)) for name in data.UCI),
    UCI_MODELS,
    (
        lists.against_all(lists.AUTO, UCI_MODELS),
        lists.against_all(KNOWN_CLASS_ENSEMBLE, UCI_MODELS, title=BEST),
    ),
)
UCI_BOOSTING = Benchmark(
    "uci_boosting",
    "UCI: boosting by all libraries",
    "Gradient boosting with early stopping and searched settings, on the same data, splits and test pairs.",
    UCI.problems,
    lists.BOOSTING_ON_F.models,
    lists.BOOSTING_ON_F.comparisons,
)


EVERY = (
    MNIST,
    MNIST_BOOSTING,
    KEYSTROKE,
    AUDIO,
    AUDIO_BOOSTING,
    LFW,
    LFW_BOOSTING,
    UCI,
    UCI_BOOSTING,
    small.TABLES,
    small.PEOPLE,
)
BENCHMARKS = {benchmark.name: benchmark for benchmark in EVERY}
