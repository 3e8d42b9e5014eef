"""BoostingPosterior: class probabilities of gradient-boosted trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.posterior import ClassTrees, add_class_shares
from simtree._utils.validation import check_integer, check_n_jobs, check_real
from simtree.io._fields import MAX_MODERATE, Fields, moderate
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._base import Floats
from simtree.representation._class_trees import join_trees, numbered, read_trees
from simtree.representation._folded import FoldedPosterior, Part, both_columns, learned_apart

# A tenth of the rows tells when to stop, from this many rows on, and rounds go on for so many after the best one.
MIN_TO_STOP, PATIENCE = 500, 10


class Boosted(NamedTuple):
    """Boosted trees, whose leaves hold what they add to the score of a class, and the scores that they are added to."""

    trees: ClassTrees
    baseline: Floats


@register(REPRESENTATION)
class BoostingPosterior(FoldedPosterior[Boosted]):
    """Represent samples by class probabilities of gradient-boosted trees, for the classes seen in training.

    There is one column per class, and each round adds one tree per class. `fit_transform` is cross-fitted: trees are boosted
    without each fold, and `transform` returns the mean of these classifiers. For closed-set problems with few classes.

    Parameters
    ----------
    n_rounds : int, default=100
        Maximum number of rounds. From 500 rows on, a tenth of them tells when to stop.
    learning_rate : float, default=0.1
        Factor of the values of the leaves.
    max_leaf_nodes : int, default=15
        Maximum number of leaves of a tree.
    min_samples_leaf : int, default=5
        Minimum number of rows in a leaf.
    l2_regularization : float, default=1.0
        Strength of the L2 regularisation of the values of the leaves.
    cv : int, default=5
        Number of folds for cross-fitting, and of classifiers.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for the folds and for the rows that tell when to stop.

    Attributes
    ----------
    models_ : list of (classes, Boosted)
        For each fold the classes that occur in the others, and the trees as plain arrays.
    n_classes_ : int
        Number of classes. Columns are in order of first appearance.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import BoostingPosterior
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_fitted = BoostingPosterior(n_rounds=20, random_state=0).fit_transform(X, y)
    >>> float((cross_fitted.argmax(axis=1) == y).mean().round(2))
    0.94
    """

    def __init__(
        self,
        *,
        n_rounds: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 15,
        min_samples_leaf: int = 5,
        l2_regularization: float = 1.0,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer("n_rounds", self.n_rounds, 1)
        check_real("learning_rate", self.learning_rate, 0.0, 1.0, open_low=True)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        check_real("l2_regularization", self.l2_regularization, 0.0, np.inf, open_high=True)
        check_integer("cv", self.cv, 2)
        check_n_jobs(self.n_jobs)

    def _learn_models(self, parts: list[Part], seeds: list[int]) -> list[Boosted]:
        return learned_apart(self._learn_model, parts, seeds, self.n_jobs)

    def _learn_model(self, part: Part, seed: int) -> Boosted:
        from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import

        X, targets, n_classes = part.X, part.targets, len(part.classes)
        if n_classes == 1:
            return Boosted(join_trees([_leaf()]), np.zeros(1))
        classifier = HistGradientBoostingClassifier(
            max_iter=int(self.n_rounds),
            learning_rate=float(self.learning_rate),
            max_leaf_nodes=int(self.max_leaf_nodes),
            min_samples_leaf=int(self.min_samples_leaf),
            l2_regularization=float(self.l2_regularization),
            # A class with a single row cannot be on both sides.
            early_stopping=len(X) >= MIN_TO_STOP and int(np.bincount(targets).min()) > 1,
            n_iter_no_change=PATIENCE,
            random_state=seed,
        )
        classifier.fit(X, targets)
        first_class = 1 if n_classes == 2 else 0
        trees = [
            _flat(tree.nodes, first_class + column) for rounds in classifier._predictors for column, tree in enumerate(rounds)
        ]
        baseline = np.asarray(classifier._baseline_prediction, dtype=np.float64).reshape(1, -1)
        return Boosted(join_trees(trees), (both_columns(baseline) if n_classes == 2 else baseline)[0])

    def _add_scores(self, X: Floats, model: Boosted, out: Floats) -> None:
        add_class_shares(X, np.arange(len(X)), model.trees, out)
        out += model.baseline

    def _model_state(self, model: Boosted) -> dict[str, Any]:
        moderate(model.trees.leaf_share)
        return {"baseline": moderate(model.baseline), **model.trees._asdict()}

    def _model_from_state(self, fields: Fields, n_classes: int) -> Boosted:
        bounds = {"low": -MAX_MODERATE, "high": MAX_MODERATE}
        trees = read_trees(fields, self.n_features_in_, n_classes, dtype="float64", **bounds)
        return Boosted(trees, fields.moderate("baseline", (n_classes,)))


def _flat(nodes: NDArray[Any], column: int) -> ClassTrees:
    """Return a tree of scikit-learn as arrays; its leaves add to the score of one class."""
    inner = nodes["is_leaf"] == 0
    number = numbered(inner)
    tests, values = nodes[inner], nodes["value"][~inner]
    return ClassTrees(
        feature=tests["feature_idx"].astype(np.int32),
        threshold=tests["num_threshold"].astype(np.float64),
        if_le=number[tests["left"]],
        if_gt=number[tests["right"]],
        leaf_start=np.arange(len(values) + 1),
        leaf_class=np.full(len(values), column, dtype=np.int32),
        leaf_share=values.astype(np.float64),
        root=number[:1],
    )


def _leaf() -> ClassTrees:
    """Return a tree without tests that adds nothing."""
    none = np.empty(0, dtype=np.int32)
    values, column = np.zeros(1), np.zeros(1, dtype=np.int32)
    return ClassTrees(none, np.empty(0), none, none, np.arange(2), column, values, np.full(1, -1, dtype=np.int32))
