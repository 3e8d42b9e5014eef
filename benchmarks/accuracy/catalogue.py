"""The tables: for each data set its splits, one list of models, and which of ours must beat which others.

To add a pipeline, write a function from `Training` to an object with ``pair_score(rows, X)`` (a fitted similarity has it), add
a `Model` with a new name to the list of a data set, and name it in a contest once ``--choose`` has found it the best. Runs of
the other models are in the log and are not repeated.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from accuracy import data, peers
from accuracy.data import Split
from accuracy.peers import ALL, F, Training
from accuracy.protocol import FPR, Benchmark, Contest, Model, Problem, Scale
from simtree import SimilarityForest

AUC = "AUC"


def tpr_at(fpr: float) -> str:
    """How a rate is called in tables, JSON and aims."""
    return f"TPR at {fpr:g}"


# simtree


def forest(training: Training, *, n_estimators: int = 100, n_pairs: int = 200_000, **parameters: Any) -> SimilarityForest:
    """A forest; its trees draw their own pairs, as many same as different ones."""
    model = SimilarityForest(
        n_estimators=training.rounds(n_estimators),
        n_pairs=training.some(n_pairs),
        n_jobs=training.n_jobs,
        random_state=training.seed,
        **parameters,
    )
    return model.fit(training.X, training.y)


MIN_MAX = [*F, "min", "max"]
ON_F = Model("forest on f", forest, ours=True)
ON_MIN_MAX = Model("forest on f, min, max", partial(forest, coordinates=MIN_MAX), ours=True)
REFILLED = Model("forest on f, min, max, refilled", partial(forest, coordinates=MIN_MAX, refill=True), ours=True)
FORESTS = (ON_F, ON_MIN_MAX, REFILLED)


# MNIST


def mnist_split(scale: Scale, split: int, choice: int | None) -> Split:
    make = data.made_up_digits if scale.name == "tiny" else data.digits
    return make(scale.pairs(100_000, 900_000), split, choice)


NETWORKS = {
    penalty: Model(f"network, penalty {penalty:g}, cosine", partial(peers.network, penalty=penalty), needs="torch")
    for penalty in (0.01, 1e-4)
}
LIGHTGBM_ON_F = Model(
    "LightGBM on f, 1,000,000 pairs", partial(peers.pair_classifier, kinds=F, n_pairs=1_000_000), needs="lightgbm"
)
# The coordinates, and the representation if there is one, of our best pipeline.
LIGHTGBM_ON_OURS = Model(
    "LightGBM on the coordinates of our best, 1,000,000 pairs",
    partial(peers.pair_classifier, kinds=MIN_MAX, n_pairs=1_000_000),
    needs="lightgbm",
)
MNIST = Benchmark(
    "mnist",
    "MNIST: 153 principal components",
    """60,000 images to learn from and pairs of the 10,000 test images; a split draws other pairs and seeds. Chosen on the last
    10,000 training images.""",
    (Problem("mnist", mnist_split, n_choices=1),),
    (*NETWORKS.values(), LIGHTGBM_ON_F, LIGHTGBM_ON_OURS, *FORESTS),
    (
        Contest("All-tree pipeline", REFILLED.name, (NETWORKS[0.01].name,), {}),
        Contest(
            "Best pipeline",
            REFILLED.name,
            (NETWORKS[1e-4].name, LIGHTGBM_ON_OURS.name),
            {AUC: 0.9984, tpr_at(1e-2): 0.978, tpr_at(1e-3): 0.890},
        ),
        Contest("No representation", REFILLED.name, (LIGHTGBM_ON_F.name,), {}),
    ),
)


# Keystrokes


@lru_cache(maxsize=1)
def keystroke_points(scale: Scale) -> data.Labelled:
    return data.made_up_points() if scale.name == "tiny" else data.read_keystroke()


def keystroke_split(scale: Scale, split: int, choice: int | None) -> Split:
    return data.other_people(keystroke_points(scale), 30 / 51, scale.pairs(200_000, 1_000_000), split, choice)


def quantile_lightgbm(training: Training) -> peers.Similarity:
    """LightGBM on all coordinates of the marginal quantiles of the features."""
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
KEYSTROKE = Benchmark(
    "keystroke",
    "Keystrokes: people never seen",
    "Timings of one password; 30 people to learn from, pairs of the 21 others to test with; a split is one of people.",
    (Problem("keystroke", keystroke_split),),
    (MANHATTAN, LDA, LIGHTGBM_ON_ALL, LIGHTGBM_ON_QUANTILES, *FORESTS),
    (
        Contest(
            "Best pipeline",
            REFILLED.name,
            (LIGHTGBM_ON_ALL.name, LIGHTGBM_ON_QUANTILES.name, MANHATTAN.name, LDA.name),
            {AUC: 0.91, tpr_at(1e-2): 0.45, tpr_at(1e-3): 0.24},
        ),
    ),
)


# Speakers


@lru_cache(maxsize=1)
def audio_points(scale: Scale) -> data.Labelled:
    return data.made_up_points() if scale.name == "tiny" else data.read_audiomnist()


def audio_split(scale: Scale, split: int, choice: int | None) -> Split:
    people = data.other_people(audio_points(scale), 0.6, scale.pairs(100_000, 1_000_000), split, choice)
    return data.to_normal_quantiles(people)


SHRUNK_LDA = Model("LDA, shrinkage 0.3, cosine", partial(peers.lda_cosine, shrinkage=0.3))
QUADRATIC = Model("one quadratic log-likelihood ratio", peers.quadratic_ratio)
AUDIO = Benchmark(
    "audio",
    "AudioMNIST: speakers never heard",
    """60 statistics of spoken digits, each feature through its quantiles to a normal law; 36 speakers to learn from, pairs of
    the 24 others to test with; a split is one of speakers.""",
    (Problem("audio", audio_split),),
    (SHRUNK_LDA, QUADRATIC, LIGHTGBM_ON_ALL, *FORESTS),
    (
        Contest(
            "Best pipeline",
            REFILLED.name,
            (SHRUNK_LDA.name, QUADRATIC.name, LIGHTGBM_ON_ALL.name),
            {AUC: 0.92, tpr_at(1e-2): 0.40},
        ),
    ),
)


# Faces


@lru_cache(maxsize=1)
def faces(scale: Scale) -> data.Faces:
    return data.made_up_faces() if scale.name == "tiny" else data.read_lfw()


def lfw_split(scale: Scale, split: int, choice: int | None) -> Split:
    return data.other_people(faces(scale), 0.6, scale.pairs(30_000, 4_000_000), split, choice)


EUCLIDEAN = Model("Euclidean distance, no learning", peers.euclidean)
COSINE = Model("cosine, no learning", peers.cosine)
LFW = Benchmark(
    "lfw",
    "Labelled Faces in the Wild: people never seen",
    """128-d descriptors; 60 % of the people to learn from, pairs of the others to test with; a split is one of people. On the
    official ten folds a model learns from all people who are in no pair of the fold, and the threshold is the best one for the
    other nine.""",
    (Problem("lfw", lfw_split, fpr=(*FPR, 1e-5), faces=faces),),
    (EUCLIDEAN, COSINE, *FORESTS),
    (Contest("Best pipeline", REFILLED.name, (EUCLIDEAN.name, COSINE.name), {tpr_at(1e-3): 0.94, tpr_at(1e-4): 0.80}),),
)


# UCI


@lru_cache(maxsize=len(data.UCI))
def uci_points(name: str, scale: Scale) -> data.Labelled:
    return data.made_up_points(6, 60) if scale.name == "tiny" else data.read_uci(name)


def uci_split(name: str, scale: Scale, split: int, choice: int | None) -> Split:
    return data.other_points(uci_points(name, scale), scale.pairs(100_000, 1_000_000), split, choice)


UCI_LIGHTGBM = Model("LightGBM on f, 100,000 pairs", partial(peers.pair_classifier, kinds=F, n_pairs=100_000), needs="lightgbm")
UCI_RANDOM_FOREST = Model("RandomForest on f, 100,000 pairs", partial(peers.random_forest, kinds=F, n_pairs=100_000))
LMNN = Model("LMNN, distance", peers.lmnn, needs="metric_learn")
NCA = Model("NCA, distance", peers.nca)
UCI = Benchmark(
    "uci",
    "UCI: classes seen in training",
    """Splits are the five stratified folds of a cross-validation: the classes tested are those learned from. LMNN learns from
    at most 2,000 points and NCA from 4,000.""",
    tuple(Problem(name, partial(uci_split, name)) for name in data.UCI),
    (UCI_LIGHTGBM, UCI_RANDOM_FOREST, LMNN, NCA, LDA, *FORESTS),
    (Contest("Best pipeline", REFILLED.name, (UCI_LIGHTGBM.name, UCI_RANDOM_FOREST.name, LMNN.name, NCA.name, LDA.name), {}),),
)

BENCHMARKS = {benchmark.name: benchmark for benchmark in (MNIST, KEYSTROKE, AUDIO, LFW, UCI)}
