"""Data sets of the accuracy benchmark and how each is split into points to learn from and points to test with.

Split 0 is there to choose: only its training side is looked at, cut again into points to learn from and points to compare
candidates on. Splits 1 to 5 are reported. The number of a split is the seed of all that is drawn in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import QuantileTransformer

from problems import Points, as_rows, components, mnist, row_numbers
from simtree.datasets import _find, _folders, load_keystroke, load_mnist
from simtree.pairs._sampling import PairSampler

UCI = ("letter", "optdigits", "penbased", "satimage", "isolet")
N_FOLDS = 5
# The training side of split 0 is cut this often to choose (MNIST: once).
N_CHOICES = 3
# Images of the training set of MNIST that candidates are compared on.
LAST_IMAGES = 10_000
N_COMPONENTS = 153


@dataclass(frozen=True, eq=False)
class Split:
    """Points to learn from, points to test with (float32), and the test pairs that all models are scored on.

    ``groups`` says which training points belong to one person when the people tested are others; otherwise it is None.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    X_test: np.ndarray
    rows: np.ndarray
    same: np.ndarray


@dataclass(frozen=True)
class Labelled:
    """Points of many people or classes."""

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Faces(Labelled):
    """Face descriptors with the official pairs: row numbers (10, n, 2) of the folds, and which pairs are same."""

    folds: np.ndarray
    same: np.ndarray


# Where the points come from


def read_points(name: str) -> Labelled:
    """The arrays X and y of an npz file in the folder of SIMTREE_DATA."""
    with np.load(_find(_folders(None), [f"{name}.npz"]), allow_pickle=False) as arrays:
        return Labelled(as_rows(arrays["X"]), arrays["y"].astype(np.int64))


def read_keystroke() -> Labelled:
    X, y = load_keystroke()
    return Labelled(as_rows(X), y)


def read_audiomnist() -> Labelled:
    """60 statistics of MFCCs of spoken digits, and who speaks."""
    return read_points("audiomnist_mfcc60")


def read_uci(name: str) -> Labelled:
    return read_points("isolet_1560" if name == "isolet" else name)


def read_lfw() -> Faces:
    """Descriptors of the Labelled Faces in the Wild, and the official list of pairs in ten folds."""
    folders = _folders(None)
    with np.load(_find(folders, ["lfw_dlib128.npz"]), allow_pickle=False) as arrays:
        X, y, images = as_rows(arrays["X"]), arrays["y"].astype(np.int64), arrays["image"]
    row_of = {image: row for row, image in enumerate(images.tolist())}
    return Faces(X, y, *official_pairs(_find(folders, ["lfw_pairs.txt"]).read_text(encoding="utf-8"), row_of))


def official_pairs(text: str, row_of: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers (n_folds, n, 2) of the pairs, and which are same.

    The first line has the number of folds and that of pairs of each kind in a fold. ``name i j`` is two images of one person,
    ``name i other j`` one image each of two people; in a fold, same pairs come first.
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


def made_up_points(n_classes: int = 24, n_each: int = 20, n_features: int = 8) -> Labelled:
    """Points around random centres: shows that everything runs."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), n_each)
    return Labelled(as_rows(2.0 * rng.normal(size=(n_classes, n_features))[y] + rng.normal(size=(len(y), n_features))), y)


def made_up_faces() -> Faces:
    """The same with ten folds of pairs: the people of a fold are in no other."""
    points = made_up_points(40)
    rng = np.random.default_rng(1)
    folds, same = [], []
    for fold in range(10):
        of_fold = np.flatnonzero(points.y % 10 == fold)
        pairs = PairSampler(points.y[of_fold]).sample(20, rng)
        folds.append(of_fold[row_numbers(pairs)])
        same.append(pairs.same)
    return Faces(points.X, points.y, np.array(folds), np.array(same))


# How they are split: a function of the number of a split, or of None and the number of a choice


@dataclass(frozen=True)
class Pairs:
    """How many test pairs of each kind are drawn; all pairs of a kind if there are fewer."""

    same: int
    different: int

    def of(self, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers of pairs of labelled points, and which are same."""
        n_pairs = self.same + self.different
        pairs = PairSampler(y).sample(n_pairs, np.random.default_rng([seed, 1]), positive_fraction=self.same / n_pairs)
        return row_numbers(pairs), pairs.same


def other_people(points: Labelled, share: float, pairs: Pairs, split: int, choice: int | None) -> Split:
    """That share of the people to learn from, the others to test with."""
    people = np.unique(points.y)
    order = np.random.default_rng(split).permutation(people)
    learn, test = np.split(order, [round(share * len(people))])
    if choice is not None:
        folds = np.array_split(learn, N_CHOICES)
        learn, test = np.concatenate([fold for k, fold in enumerate(folds) if k != choice]), folds[choice]
    to_learn, to_test = np.isin(points.y, learn), np.isin(points.y, test)
    y = points.y[to_learn]
    return Split(points.X[to_learn], y, y, points.X[to_test], *pairs.of(points.y[to_test], split))


def other_points(points: Labelled, pairs: Pairs, split: int, choice: int | None) -> Split:
    """Splits 1 to 5 are the folds of one stratified cross-validation; split 0 is a fold of another one."""
    rows = np.arange(len(points.y))
    learn, test = stratified(points.y, N_FOLDS, min(split, 1), max(split - 1, 0))
    if choice is not None:
        inner, held_out = stratified(points.y[learn], N_CHOICES, split, choice)
        learn, test = rows[learn][inner], rows[learn][held_out]
    return Split(points.X[learn], points.y[learn], None, points.X[test], *pairs.of(points.y[test], split))


def stratified(y: np.ndarray, n_folds: int, seed: int, fold: int) -> tuple[np.ndarray, np.ndarray]:
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(y, y))[fold]


def digits(pairs: Pairs, split: int, choice: int | None) -> Split:
    """The official split in all splits, with other pairs; to choose, the last training images stand for the test images."""
    points = images(choice is not None)
    return Split(points.X, points.y, None, points.X_test, *pairs.of(points.y_test, split))


@lru_cache(maxsize=1)
def images(to_choose: bool) -> Points:
    """Principal components of the images to learn from, and of those to test with on them."""
    if not to_choose:
        return mnist(N_COMPONENTS)
    X, y = load_mnist()
    return Points(*components(N_COMPONENTS, X[:-LAST_IMAGES], y[:-LAST_IMAGES], X[-LAST_IMAGES:], y[-LAST_IMAGES:]))


def made_up_digits(pairs: Pairs, split: int, choice: int | None) -> Split:
    """Points of ten classes, cut into two halves."""
    points = made_up_points(10, 80)
    to_test = np.arange(len(points.y)) % 2 == (0 if choice is None else 1)
    return Split(points.X[~to_test], points.y[~to_test], None, points.X[to_test], *pairs.of(points.y[to_test], split))


def without_fold(faces: Faces, fold: int) -> Split:
    """All faces of people who are in no pair of an official fold, to learn from; the pairs of the fold, to test with."""
    in_fold = np.isin(faces.y, faces.y[faces.folds[fold]])
    y = faces.y[~in_fold]
    return Split(faces.X[~in_fold], y, y, faces.X, faces.folds[fold], faces.same[fold])


def to_normal_quantiles(split: Split) -> Split:
    """Each feature through its quantiles among the training points to a normal law."""
    transform = QuantileTransformer(n_quantiles=min(1_000, len(split.X)), output_distribution="normal", random_state=0)
    X = as_rows(transform.fit_transform(split.X))
    return replace(split, X=X, X_test=as_rows(transform.transform(split.X_test)))
