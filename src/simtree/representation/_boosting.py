"""BoostingPosterior: class probabilities of gradient-boosted trees."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simtree._kernels.boosting import N_CODES, Found, padded
from simtree._kernels.class_boosting import boost_round
from simtree._kernels.posterior import ClassTrees, add_class_shares
from simtree._utils.edges import find_edges
from simtree._utils.folds import assign_folds
from simtree._utils.validation import check_integer, check_n_jobs, check_real
from simtree.io._fields import MAX_MODERATE, Fields, moderate
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._base import Codes, Floats
from simtree.representation._class_trees import join_trees, read_trees
from simtree.representation._folded import FoldedPosterior, Part, learned_apart

# From MIN_TO_STOP rows on, one of HELD_OUT parts of them tells when to stop: when the loss is not lower, by more than
# MIN_PROGRESS, in any of the next PATIENCE rounds.
MIN_TO_STOP, HELD_OUT, PATIENCE, MIN_PROGRESS = 500, 10, 10, 1e-7
# Bins of a column, and the number of rows whose quantiles separate them.
MAX_BINS, QUANTILE_SAMPLE = 255, 20_000


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
        X, targets, n_classes = part.X, part.targets, len(part.classes)
        if n_classes == 1:
            return Boosted(join_trees([_leaf()]), np.zeros(1))
        out = np.zeros(len(X), dtype=np.bool_)
        if len(X) >= MIN_TO_STOP and int(np.bincount(targets).min()) > 1:  # a class with a single row cannot be on both sides
            out = assign_folds(len(X), HELD_OUT, np.random.default_rng(seed), targets) == 0
        edges = _column_edges(X[~out])
        codes = _column_codes(X, edges)
        boosting = _Boosting(codes[~out], targets[~out], n_classes, len(edges), self)
        rounds = [boosting.advance()]
        if out.any():
            stopping = _Stopping(codes[out], targets[out], boosting.baseline)
            while not stopping.is_due(rounds[-1]) and len(rounds) < self.n_rounds:
                rounds.append(boosting.advance())
        else:
            rounds += [boosting.advance() for _ in range(1, self.n_rounds)]
        trees = join_trees(rounds)
        first = np.cumsum([0, *(len(own) for own in edges)])
        thresholds = np.concatenate(edges)[first[trees.feature] + trees.threshold.astype(np.int64)]
        return Boosted(trees._replace(threshold=thresholds), boosting.baseline)

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


class _Boosting:
    """Boosting on the codes of rows, round by round; ``baseline`` has the class scores before the first one."""

    def __init__(
        self, codes: NDArray[np.uint8], targets: Codes, n_classes: int, n_features: int, posterior: BoostingPosterior
    ) -> None:
        shares = np.log(np.bincount(targets, minlength=n_classes) / len(targets))
        # Of two classes the second one has trees, and the score of the first is zero.
        self._first_class = 1 if n_classes == 2 else 0
        self.baseline: Floats = shares - (shares[0] if n_classes == 2 else shares.mean())
        min_leaf = min(int(posterior.min_samples_leaf), len(codes))
        self._max_leaves = min(int(posterior.max_leaf_nodes), len(codes) // min_leaf)
        factors = (float(posterior.l2_regularization), float(posterior.learning_rate))
        self._rule = (self._first_class, int(codes.max()) + 1, *factors, min_leaf, self._max_leaves)
        self._rows = (codes, targets, np.repeat(self.baseline[:, None], len(codes), axis=1))
        histograms = np.empty((self._max_leaves, codes.shape[1], N_CODES), dtype=np.int64)
        self._work = (histograms, Found(np.empty((2, n_features)), *np.zeros((2, 2, n_features), dtype=np.int64)))

    def advance(self) -> ClassTrees:
        """Return the trees of one more round, whose thresholds are codes."""
        n_trees = len(self.baseline) - self._first_class
        n_tests, n_leaves = n_trees * (self._max_leaves - 1), n_trees * self._max_leaves
        feature, if_le, if_gt = np.empty((3, n_tests), dtype=np.int32)
        of_leaves = (np.arange(n_leaves + 1), np.empty(n_leaves, dtype=np.int32), np.empty(n_leaves))
        trees = ClassTrees(feature, np.empty(n_tests), if_le, if_gt, *of_leaves, np.empty(n_trees, dtype=np.int32))
        n_tests, n_leaves = boost_round(*self._rows, *self._rule, *self._work, trees)
        return ClassTrees(
            feature=trees.feature[:n_tests],
            threshold=trees.threshold[:n_tests],
            if_le=trees.if_le[:n_tests],
            if_gt=trees.if_gt[:n_tests],
            leaf_start=trees.leaf_start[: n_leaves + 1],
            leaf_class=trees.leaf_class[:n_leaves],
            leaf_share=trees.leaf_share[:n_leaves],
            root=trees.root,
        )


class _Stopping:
    """Tells from the loss of rows that no tree is grown on when to stop."""

    def __init__(self, codes: NDArray[np.uint8], targets: Codes, baseline: Floats) -> None:
        self._codes, self._targets = codes, targets
        self._scores = np.tile(baseline, (len(codes), 1))
        self._losses = [self._loss()]

    def is_due(self, trees: ClassTrees) -> bool:
        """Return whether, after these trees of one more round, no recent loss is below the one before them."""
        add_class_shares(self._codes, np.arange(len(self._codes)), trees, self._scores)
        self._losses.append(self._loss())
        before, *recent = self._losses[-PATIENCE - 1 :]
        return len(recent) == PATIENCE and min(recent) >= before - MIN_PROGRESS

    def _loss(self) -> float:
        """Return the mean of minus the logarithms of the probabilities of the targets."""
        relative = self._scores - self._scores.max(axis=1, keepdims=True)
        of_targets = relative[np.arange(len(relative)), self._targets]
        return float(np.mean(np.log(np.exp(relative).sum(axis=1)) - of_targets))


def _column_edges(X: Floats) -> list[Floats]:
    """Return the sorted edges of the bins of each column."""
    # A random subsample, because rows may be ordered.
    sampled = X[np.random.default_rng(0).permutation(len(X))[:QUANTILE_SAMPLE]] if len(X) > QUANTILE_SAMPLE else X
    return [find_edges(some, MAX_BINS, partial(np.asarray, values)) for some, values in zip(sampled.T, X.T, strict=True)]


def _column_codes(X: Floats, edges: list[Floats]) -> NDArray[np.uint8]:
    """Return the number of edges strictly below each value, followed by the columns of zeros that kernels need."""
    codes = np.zeros((len(X), padded(len(edges))), dtype=np.uint8)
    for column, own in enumerate(edges):
        codes[:, column] = np.searchsorted(own, X[:, column])
    return codes


def _leaf() -> ClassTrees:
    """Return a tree without tests that adds nothing."""
    none = np.empty(0, dtype=np.int32)
    values, column = np.zeros(1), np.zeros(1, dtype=np.int32)
    return ClassTrees(none, np.empty(0), none, none, np.arange(2), column, values, np.full(1, -1, dtype=np.int32))
