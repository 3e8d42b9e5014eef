"""Small problems for development: tables with known classes, and few people to train on."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from accuracy import data, lists
from accuracy.data import Split
from accuracy.peers import ALL
from accuracy.protocol import Benchmark, Problem, Scale

# Tables: known classes


@lru_cache(maxsize=1)
def table_samples(name: str, scale: Scale) -> data.Labelled:
    if scale.name == "tiny":
        return data.make_samples(6, 60)
    return data.read_digits() if name == "digits" else data.read_keel(name)


def table_split(name: str, scale: Scale, split: int, choice: int | None) -> Split:
    return data.split_samples(table_samples(name, scale), scale.pairs(100_000, 1_000_000), split, choice)


TABLES_MODELS = (
    *lists.CLASSICS,
    *lists.posterior_models(),
    *lists.BOOSTING_ON_F.models,
    lists.AUTO,
)
TABLES = Benchmark(
    "small_tables",
    "Small tables: known classes",
    """Splits are the five folds of a stratified cross-validation: training and test have the same classes. The tables were used
    during development.""",
    tuple(Problem(name, partial(table_split, name)) for name in (*data.KEEL, "digits")),
    TABLES_MODELS,
    (lists.against_all(lists.AUTO, TABLES_MODELS), *lists.BOOSTING_ON_F.comparisons),
)


# People: unseen identities


# Numbers of people to train on; faces of people with fewer images give few same pairs.
FEW = (8, 12, 20)
MIN_IMAGES = 10
FACE_COMPONENTS = 60
READERS = {
    "keystroke": data.read_keystroke,
    "lfw": lambda: data.with_at_least(data.read_lfw(), MIN_IMAGES),
    "olivetti": data.read_olivetti,
    "audio": data.read_audiomnist,
}


@lru_cache(maxsize=1)
def people_samples(name: str, scale: Scale) -> data.Labelled:
    return data.make_samples(40) if scale.name == "tiny" else READERS[name]()


def people_split(name: str, n_people: int, scale: Scale, split: int, choice: int | None) -> Split:
    samples = people_samples(name, scale)
    share = n_people / len(np.unique(samples.y))
    found = data.split_identities(samples, share, scale.pairs(100_000, 1_000_000), split, choice)
    return data.to_components(found, FACE_COMPONENTS) if name == "olivetti" else found


BOOSTING = lists.boosting("all coordinates", 100_000, kinds=ALL)
PEOPLE_MODELS = (
    *(lists.EUCLIDEAN, lists.COSINE, lists.MANHATTAN, lists.QUADRATIC),
    *lists.embedding_models(quantiles=False),
    *lists.embedding_models(quantiles=True),
    *BOOSTING.models,
    lists.AUTO,
)
PEOPLE = Benchmark(
    "small_people",
    "Few people: unseen identities",
    """Training on 8, 12 or 20 people, and pairs of all others for test: keystrokes, face descriptors of people with at least
    ten images, 60 principal components of the Olivetti faces, and spoken digits. The problems were used during development.""",
    tuple(Problem(f"{name} {n}", partial(people_split, name, n)) for name in READERS for n in FEW),
    PEOPLE_MODELS,
    (lists.against_all(lists.AUTO, PEOPLE_MODELS), *BOOSTING.comparisons),
)
