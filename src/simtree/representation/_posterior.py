"""ForestPosterior: class probabilities of extra trees, out of bag for the training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from simtree._kernels.posterior import ClassTrees, add_class_shares
from simtree._utils.validation import check_integer, check_n_jobs, count, n_to_draw
from simtree.io._fields import Fields
from simtree.io._registry import REPRESENTATION, register
from simtree.pairs._labels import encode_labels
from simtree.representation._base import (
    MAX_CLASSES,
    Codes,
    Floats,
    LabelledRepresentation,
    class_means,
    filled_in_blocks,
    folds_of_rows,
    quiet_classifiers,
)
from simtree.representation._class_trees import join_trees, numbered, read_trees

# Maximum number of columns per leaf entry in a model file: few classes occur in no leaf.
MAX_COLUMNS_PER_ENTRY = 64
# Folds that take turns in being left out if there is no bootstrap.
N_FOLDS = 10


@register(REPRESENTATION)
class ForestPosterior(LabelledRepresentation):
    """Represent samples by class probabilities of extra trees, for the classes seen in training.

    There is one column per class. Each tree is grown on a part of the rows, its bag. `fit_transform` returns the mean of
    the trees that did not see a row, `transform` the mean of all trees. The representation suits closed-set problems; it is
    of little use for unseen identities.

    Parameters
    ----------
    n_estimators : int, default=200
        Number of trees. `fit_transform` requires enough of them that each training row is out of bag for at least one.
    max_features : int, float, "sqrt" or None, default="sqrt"
        Number of features (share of them if a float) drawn for each split; None uses all.
    max_depth : int or None, default=None
        Maximum depth of a tree; None grows until the leaves are pure.
    min_samples_leaf : int, default=1
        Minimum number of distinct training rows in a leaf. Larger values make smaller models.
    bootstrap : bool, default=True
        If True, a bag is a bootstrap sample of the rows. Otherwise it is all rows but those of one of ten folds, which take
        turns: better where classes hardly overlap, since trees see more rows, and worse where they do.
    max_classes : int, default=100
        Maximum number of columns. If there are more classes, classes with similar means are merged into this many clusters.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for bags, splits and clusters of classes.

    Attributes
    ----------
    trees_ : ClassTrees
        All trees as plain arrays: tests, and the class shares of the leaves.
    n_classes_ : int
        Number of classes. Columns are in order of first appearance.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import ForestPosterior
    >>> X, y = load_iris(return_X_y=True)
    >>> posterior = ForestPosterior(n_estimators=50, random_state=0)
    >>> out_of_bag = posterior.fit_transform(X, y)
    >>> float((out_of_bag.argmax(axis=1) == y).mean().round(2))
    0.95
    >>> posterior.transform(X[:1]).round(2)
    array([[1., 0., 0.]])
    """

    trees_: ClassTrees
    _dtype = np.float32

    def __init__(
        self,
        *,
        n_estimators: int = 200,
        max_features: int | float | str | None = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        bootstrap: bool = True,
        max_classes: int = 100,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.bootstrap = bootstrap
        self.max_classes = max_classes
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer("n_estimators", self.n_estimators, 1)
        if self.max_depth is not None:
            check_integer("max_depth", self.max_depth, 1)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        check_integer("max_classes", self.max_classes, 2)
        if self.max_features != "sqrt":
            n_to_draw("max_features", self.max_features, 1)
        check_n_jobs(self.n_jobs)

    @quiet_classifiers()
    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        targets = codes
        if self.n_classes_ > self.max_classes:
            targets = _cluster_classes(class_means(X, codes), self.max_classes, int(rng.integers(2**31)))[codes]
        self._n_features_out = int(targets.max()) + 1
        seeds = rng.integers(2**31, size=(self.n_estimators, 2)).tolist()
        bag_of: Callable[[int], Codes] = partial(_bootstrap, len(X))
        if not self.bootstrap:
            folds = folds_of_rows(targets, min(N_FOLDS, len(X)), rng)
            seeds = [(number % (int(folds.max()) + 1), seed) for number, (_, seed) in enumerate(seeds)]
            bag_of = partial(_without_fold, folds)
        grown: Iterator[ClassTrees] = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(self._grow)(X, targets, bag_of(bag), seed) for bag, seed in seeds
        )
        trees = []
        total, n_out_of_bag = np.zeros((len(X) if cross_fitted else 0, self._n_features_out)), np.zeros(len(X), dtype=np.int64)
        for tree, (bag, _) in zip(grown, seeds, strict=True):
            trees.append(tree)
            if cross_fitted:
                rows = np.flatnonzero(bag_of(bag) == 0)
                shares = np.zeros((len(rows), self._n_features_out))
                add_class_shares(X, rows, tree, shares)
                total[rows] += shares
                n_out_of_bag[rows] += 1
        self.trees_ = join_trees(trees)
        if not cross_fitted:
            return None
        n_never = int(np.count_nonzero(n_out_of_bag == 0))
        if n_never:
            raise ValueError(
                f"n_estimators={self.n_estimators!r} is too few: {count(n_never, 'row')} in the bag of every tree; "
                "use more trees."
            )
        return np.asarray(total / n_out_of_bag[:, None])

    def _apply(self, X: NDArray[Any]) -> Floats:
        def fill(rows: slice, out: Floats) -> None:
            add_class_shares(X, np.arange(rows.start, rows.stop), self.trees_, out)

        return filled_in_blocks(len(X), self._n_features_out, fill, self.n_jobs) / len(self.trees_.root)

    def _get_fitted_state(self) -> dict[str, Any]:
        return {"n_classes": self.n_classes_, "n_columns": self._n_features_out, **self.trees_._asdict()}

    def _set_fitted_state(self, fields: Fields) -> int:
        self.n_classes_ = fields.integer("n_classes", 2, MAX_CLASSES)
        n_entries = len(fields.array("leaf_class", "int32", (None,), low=0))
        n_columns = fields.integer("n_columns", 1, MAX_COLUMNS_PER_ENTRY * (1 + n_entries))
        self.trees_ = read_trees(fields, self.n_features_in_, n_columns, dtype="float32", low=0.0, high=1.0)
        if not len(self.trees_.root):
            raise fields.fail("root", "must have one entry per tree")
        self._n_features_out = n_columns
        return n_columns

    def _grow(self, X: NDArray[Any], targets: Codes, bag: Codes, seed: int) -> ClassTrees:
        """Return one tree as plain arrays."""
        from sklearn.tree import ExtraTreeClassifier  # slow to import

        n_features = X.shape[1]
        drawn = (
            int(n_features**0.5) if self.max_features == "sqrt" else n_to_draw("max_features", self.max_features, n_features)
        )
        tree = ExtraTreeClassifier(
            max_features=max(1, drawn), max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, random_state=seed
        )
        return _flat(tree.fit(X, targets, sample_weight=bag.astype(np.float64), check_input=False).tree_)


def _cluster_classes(means: Floats, n_clusters: int, seed: int) -> Codes:
    """Return the cluster of each class, by the mean of its rows."""
    from sklearn.cluster import KMeans

    distinct = min(n_clusters, len(np.unique(means, axis=0)))
    nearest = KMeans(distinct, n_init=1, random_state=seed).fit_predict(means)
    return encode_labels(nearest)


def _bootstrap(n: int, seed: int) -> Codes:
    """Return how often each row occurs in a bootstrap sample of n rows."""
    return np.bincount(np.random.default_rng(seed).integers(n, size=n), minlength=n)


def _without_fold(folds: Codes, fold: int) -> Codes:
    """Return one for each row that is not in a fold, and zero for the others."""
    return np.asarray(folds != fold, dtype=np.int64)


def _flat(tree: Any) -> ClassTrees:
    """Return a scikit-learn tree as arrays: its tests, and the nonzero class shares of its leaves."""
    inner = tree.children_left >= 0
    number = numbered(inner)
    exact = tree.threshold[inner]
    threshold = exact.astype(np.float32)
    # Samples are float32: x <= threshold is equivalent to x <= the largest float32 not above the threshold.
    threshold = np.where(threshold > exact, np.nextafter(threshold, np.float32(-np.inf)), threshold)
    shares = tree.value[~inner, 0]
    leaf, column = np.nonzero(shares)
    return ClassTrees(
        feature=tree.feature[inner].astype(np.int32),
        threshold=threshold,
        if_le=number[tree.children_left[inner]],
        if_gt=number[tree.children_right[inner]],
        leaf_start=np.concatenate([[0], np.cumsum(np.bincount(leaf, minlength=len(shares)))]),
        leaf_class=column.astype(np.int32),
        leaf_share=shares[leaf, column].astype(np.float32),
        root=number[:1],
    )
