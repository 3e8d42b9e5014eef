"""LogisticPosterior: class probabilities of multinomial logistic regression."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simtree._kernels.samples import fill_products
from simtree._utils.validation import check_integer, check_n_jobs, check_real
from simtree.io._fields import Fields, moderate
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._base import Floats
from simtree.representation._folded import FoldedPosterior, Part, both_columns, learned_apart


class Linear(NamedTuple):
    """Linear class scores: weights of shape (n_features, n_classes), and an intercept per class."""

    weights: Floats
    intercepts: Floats


@register(REPRESENTATION)
class LogisticPosterior(FoldedPosterior[Linear]):
    """Represent samples by class probabilities of multinomial logistic regression, for the classes seen in training.

    There is one column per class. Put a `LandmarkFeatures` before it for kernel logistic regression, or a `KernelDiscriminant`,
    whose scores it turns into probabilities. `fit_transform` is cross-fitted: a classifier is fitted without each fold, and
    `transform` returns the mean of these classifiers. For closed-set problems.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the regularisation strength, as in `sklearn.linear_model.LogisticRegression`.
    n_updates : int, default=100
        Maximum number of iterations.
    cv : int, default=5
        Number of folds for cross-fitting, and of classifiers.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for the folds.

    Attributes
    ----------
    models_ : list of (classes, Linear)
        For each fold the classes that occur in the others, and the weights and intercepts of the regression on them.
    n_classes_ : int
        Number of classes. Columns are in order of first appearance.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import LogisticPosterior
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_fitted = LogisticPosterior(random_state=0).fit_transform(X, y)
    >>> float((cross_fitted.argmax(axis=1) == y).mean().round(2))
    0.96
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        n_updates: int = 100,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.C = C
        self.n_updates = n_updates
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_real("C", self.C, 0.0, np.inf, open_low=True, open_high=True)
        check_integer("n_updates", self.n_updates, 1)
        check_integer("cv", self.cv, 2)
        check_n_jobs(self.n_jobs)

    def _learn_models(self, parts: list[Part], seeds: list[int]) -> list[Linear]:
        return learned_apart(self._learn_model, parts, seeds, self.n_jobs)

    def _learn_model(self, part: Part, seed: int) -> Linear:
        from sklearn.linear_model import LogisticRegression  # slow to import

        X, targets, n_classes = part.X, part.targets, len(part.classes)
        if n_classes == 1:
            return Linear(np.zeros((X.shape[1], 1)), np.zeros(1))
        found = LogisticRegression(C=float(self.C), max_iter=int(self.n_updates)).fit(X, targets)
        weights, intercepts = found.coef_.T, found.intercept_[None]
        if n_classes == 2:
            weights, intercepts = both_columns(weights), both_columns(intercepts)
        return Linear(np.ascontiguousarray(weights), intercepts[0])

    def _add_scores(self, X: Floats, model: Linear, out: Floats) -> None:
        fill_products(X, model.weights, out)
        out += model.intercepts

    def _model_state(self, model: Linear) -> dict[str, Any]:
        return {"weights": moderate(model.weights), "intercepts": moderate(model.intercepts)}

    def _model_from_state(self, fields: Fields, n_classes: int) -> Linear:
        weights = fields.moderate("weights", (self.n_features_in_, n_classes))
        return Linear(weights, fields.moderate("intercepts", (n_classes,)))
