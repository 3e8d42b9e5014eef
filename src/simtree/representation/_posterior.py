"""ForestPosterior: class posteriors of extra trees, out of bag for the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from simtree._kernels.posterior import ClassTrees, add_class_shares
from simtree._utils.validation import check_integer, check_n_jobs, count, n_to_draw
from simtree.io._fields import Fields
from simtree.io._registry import REPRESENTATION, register
from simtree.pairs._labels import encode_labels
from simtree.representation._base import MAX_CLASSES, Codes, Floats, LabelledRepresentation, class_means, filled_in_blocks

# Columns that one entry of a leaf may stand for in a model file: there are classes that no leaf has, but not many.
MAX_COLUMNS_PER_ENTRY = 64


@register(REPRESENTATION)
class ForestPosterior(LabelledRepresentation):
    """How likely each class is for a point, as extra trees say: one column a class.

    Each tree sees a bag of the rows. A training row gets the mean of the trees that did not see it, any other row the mean of
    all trees. For points of the classes that were seen in training: it says little of people who were not.

    Parameters
    ----------
    n_estimators : int, default=200
        How many trees. There must be so many that each training row is out of the bag of one at least.
    max_features : int, float, "sqrt" or None, default="sqrt"
        How many features (float: which share) are drawn for each split; None takes all.
    max_depth : int or None, default=None
        Most tests on the way to a leaf; None grows until the leaves are pure.
    min_samples_leaf : int, default=1
        Least number of different training rows in a leaf. More make smaller models.
    max_classes : int, default=100
        Most columns. If there are more classes, those whose rows have similar means are put together into as many groups.
    n_jobs : int or None, default=None
        Trees grown, and blocks of rows transformed, at one time. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of bags, splits and groups of classes.

    Attributes
    ----------
    trees_ : ClassTrees
        All trees as plain arrays: tests, and the class shares of the leaves.
    n_classes_ : int
        How many classes there were. Columns are in the order of their first rows.

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
        max_classes: int = 100,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
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

    def _fit(self, X: NDArray[Any], codes: Codes, rng: np.random.Generator, cross_fitted: bool) -> Floats | None:
        groups = codes
        if self.n_classes_ > self.max_classes:
            groups = _groups(class_means(X, codes), self.max_classes, int(rng.integers(2**31)))[codes]
        self._n_features_out = int(groups.max()) + 1
        seeds = rng.integers(2**31, size=(self.n_estimators, 2))
        grown: Iterator[ClassTrees] = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(self._grow)(X, groups, _bag(len(X), bag_seed), int(seed)) for bag_seed, seed in seeds.tolist()
        )
        trees = []
        total, n_spoken = np.zeros((len(X) if cross_fitted else 0, self._n_features_out)), np.zeros(len(X), dtype=np.int64)
        for tree, (bag_seed, _) in zip(grown, seeds.tolist(), strict=True):
            trees.append(tree)
            if cross_fitted:
                rows = np.flatnonzero(_bag(len(X), bag_seed) == 0)
                said = np.zeros((len(rows), self._n_features_out))
                add_class_shares(X, rows, tree, said)
                total[rows] += said
                n_spoken[rows] += 1
        self.trees_ = _joined(trees)
        if not cross_fitted:
            return None
        n_lacking = int(np.count_nonzero(n_spoken == 0))
        if n_lacking:
            raise ValueError(
                f"n_estimators={self.n_estimators!r} is too few, with {count(n_lacking, 'row')} in the bag of every tree; "
                "grow more."
            )
        return np.asarray(total / n_spoken[:, None])

    def _apply(self, X: NDArray[Any]) -> Floats:
        def fill(rows: slice, out: Floats) -> None:
            add_class_shares(X, np.arange(rows.start, rows.stop), self.trees_, out)

        return filled_in_blocks(len(X), self._n_features_out, fill, self.n_jobs) / len(self.trees_.root)

    def _get_fitted_state(self) -> dict[str, Any]:
        return {"n_classes": self.n_classes_, "n_columns": self._n_features_out, **self.trees_._asdict()}

    def _set_fitted_state(self, fields: Fields) -> int:
        self.n_classes_ = fields.integer("n_classes", 2, MAX_CLASSES)
        feature = fields.array("feature", "int32", (None,), low=0, high=self.n_features_in_ - 1)
        leaf_start = fields.array("leaf_start", "int64", (None,), low=0)
        leaf_class = fields.array("leaf_class", "int32", (None,), low=0)
        n_columns = fields.integer("n_columns", 1, MAX_COLUMNS_PER_ENTRY * (1 + len(leaf_class)))
        n_tests, n_leaves = len(feature), len(leaf_start) - 1
        if n_leaves < 1 or leaf_start[0] != 0 or leaf_start[-1] != len(leaf_class) or (leaf_start[1:] < leaf_start[:-1]).any():
            raise fields.fail("leaf_start", "must rise from 0 to the number of entries of leaves")
        if len(leaf_class) and leaf_class.max() >= n_columns:
            raise fields.fail("leaf_class", f"must be less than {n_columns:,}")
        ways = {name: fields.array(name, "int32", (n_tests,), low=-n_leaves, high=n_tests - 1) for name in ("if_le", "if_gt")}
        root = fields.array("root", "int32", (None,), low=-n_leaves, high=n_tests - 1)
        if not len(root):
            raise fields.fail("root", "must have an entry for each tree")
        for name, way in ways.items():
            if ((way >= 0) & (way <= np.arange(n_tests))).any():
                raise fields.fail(name, "must lead from each test to a later one, or to a leaf")
        self.trees_ = ClassTrees(
            feature=feature,
            threshold=fields.array("threshold", "float32", (n_tests,)),
            leaf_start=leaf_start,
            leaf_class=leaf_class,
            leaf_share=fields.array("leaf_share", "float32", leaf_class.shape, low=0.0, high=1.0),
            root=root,
            **ways,
        )
        self._n_features_out = n_columns
        return n_columns

    def _grow(self, X: NDArray[Any], groups: Codes, bag: Codes, seed: int) -> ClassTrees:
        """One tree, as plain arrays."""
        from sklearn.tree import ExtraTreeClassifier  # takes a while to import

        n_features = X.shape[1]
        drawn = (
            int(n_features**0.5) if self.max_features == "sqrt" else n_to_draw("max_features", self.max_features, n_features)
        )
        tree = ExtraTreeClassifier(
            max_features=max(1, drawn), max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, random_state=seed
        )
        return _flat(tree.fit(X, groups, sample_weight=bag.astype(np.float64), check_input=False).tree_)


def _groups(means: Floats, n_groups: int, seed: int) -> Codes:
    """The group of each class: clusters of the means of their rows."""
    from sklearn.cluster import KMeans

    distinct = min(n_groups, len(np.unique(means, axis=0)))
    nearest = KMeans(distinct, n_init=1, random_state=seed).fit_predict(means)
    return encode_labels(nearest)


def _bag(n: int, seed: int) -> Codes:
    """How often each row is in a bag of as many rows as there are."""
    return np.bincount(np.random.default_rng(seed).integers(n, size=n), minlength=n)


def _flat(tree: Any) -> ClassTrees:
    """The arrays of a tree of scikit-learn: tests only, and the shares of its leaves that are not zero."""
    inner = tree.children_left >= 0
    # Tests are numbered 0, 1, ... and leaves -1, -2, ..., each in their order.
    number = np.where(inner, np.cumsum(inner) - 1, -np.cumsum(~inner)).astype(np.int32)
    exact = tree.threshold[inner]
    threshold = exact.astype(np.float32)
    # Points are float32: x <= threshold is the same question as x <= the largest float32 that is not above it.
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


def _joined(trees: list[ClassTrees]) -> ClassTrees:
    """One table of several: rows, leaves and entries of later trees come after those of earlier ones."""
    n_tests, n_leaves, n_entries = 0, 0, 0
    moved = []
    for tree in trees:

        def move(to: NDArray[np.int32], n_tests: int = n_tests, n_leaves: int = n_leaves) -> NDArray[np.int32]:
            return np.where(to >= 0, to + n_tests, to - n_leaves).astype(np.int32)

        start = tree.leaf_start[:-1] + n_entries
        moved.append(tree._replace(if_le=move(tree.if_le), if_gt=move(tree.if_gt), leaf_start=start, root=move(tree.root)))
        n_tests += len(tree.feature)
        n_leaves += len(start)
        n_entries += len(tree.leaf_class)
    joined = ClassTrees(*(np.concatenate(columns) for columns in zip(*moved, strict=True)))
    return joined._replace(leaf_start=np.append(joined.leaf_start, n_entries))
