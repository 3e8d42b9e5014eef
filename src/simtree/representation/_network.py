"""NetworkPosterior: class probabilities of a neural network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from simtree._kernels.samples import fill_products
from simtree._utils.validation import check_integer, check_n_jobs, check_real
from simtree.io._fields import Fields
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._base import Codes, Floats
from simtree.representation._folded import FoldedPosterior, both_columns
from simtree.representation._perceptron import Layer, learn_layers

# More layers, or larger weights, are treated as damage of a model file: outputs of all layers stay finite within these limits.
MAX_LAYERS, MAX_WEIGHT = 16, 1e6
# Number of rows per update of the weights, and least number of passes over all rows.
BATCH, MIN_PASSES = 200, 5


@register(REPRESENTATION)
class NetworkPosterior(FoldedPosterior[list[Layer]]):
    """Represent samples by class probabilities of a neural network, for the classes seen in training.

    There is one column per class. Features should have similar scales: put a `sklearn.preprocessing.StandardScaler` or
    `MarginalQuantiles` before it. `fit_transform` is cross-fitted: a network is fitted without each fold, and `transform`
    returns the mean of these networks. For closed-set problems.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(100,)
        Number of units of each hidden layer, as in `sklearn.neural_network.MLPClassifier`; they are rectified linear units.
    alpha : float, default=1e-2
        Strength of the L2 regularisation of the weights.
    n_updates : int, default=10_000
        Maximum number of updates of the weights, by at most 200 rows each; at least five passes over the rows are made.
    cv : int, default=5
        Number of folds for cross-fitting, and of networks.
    n_jobs : int or None, default=None
        Number of parallel jobs. It does not affect the result.
    random_state : int, RandomState or None, default=None
        Random seed for folds, initial weights and the order of rows.

    Attributes
    ----------
    models_ : list of (classes, layers)
        For each fold the classes that occur in the others, and the layers of the network of them.
    n_classes_ : int
        Number of classes. Columns are in order of first appearance.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from simtree import NetworkPosterior
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_fitted = NetworkPosterior(n_updates=500, random_state=0).fit_transform(X, y)
    >>> float((cross_fitted.argmax(axis=1) == y).mean().round(2))
    0.97
    """

    def __init__(
        self,
        *,
        hidden_layer_sizes: int | Sequence[int] = (100,),
        alpha: float = 1e-2,
        n_updates: int = 10_000,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.alpha = alpha
        self.n_updates = n_updates
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        sizes = self._sizes()
        for size in sizes:
            check_integer("hidden_layer_sizes", size, 1)
        if len(sizes) >= MAX_LAYERS:
            raise ValueError(
                f"hidden_layer_sizes={self.hidden_layer_sizes!r} is too many layers; give at most {MAX_LAYERS - 1}."
            )
        check_real("alpha", self.alpha, 0.0, np.inf, open_high=True)
        check_integer("n_updates", self.n_updates, 1)
        check_integer("cv", self.cv, 2)
        check_n_jobs(self.n_jobs)

    def _sizes(self) -> list[Any]:
        """Return the sizes of the hidden layers as a list."""
        given = self.hidden_layer_sizes
        return list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given]

    def _learn_model(self, X: Floats, targets: Codes, n_classes: int, seed: int) -> list[Layer]:
        if n_classes == 1:
            return [Layer(np.zeros((X.shape[1], 1)), np.zeros(1))]
        n_passes = max(MIN_PASSES, int(self.n_updates) // -(-len(X) // BATCH))
        layers = learn_layers(
            X, targets, n_classes, tuple(self._sizes()), alpha=float(self.alpha), batch=BATCH, n_passes=n_passes, seed=seed
        )
        if n_classes == 2:
            weights, intercepts = layers[-1]
            layers[-1] = Layer(both_columns(weights), both_columns(intercepts[None])[0])
        # Copies, because the layers are parts of one vector: it would be kept as long as one of them.
        return [Layer(weights.copy(), intercepts.copy()) for weights, intercepts in layers]

    def _add_scores(self, X: Floats, model: list[Layer], out: Floats) -> None:
        *hidden, last = model
        for weights, intercepts in hidden:
            values = np.empty((len(X), len(intercepts)))
            fill_products(X, weights, values)
            X = np.maximum(values + intercepts, 0.0)
        fill_products(X, last.weights, out)
        out += last.intercepts

    def _model_state(self, model: list[Layer]) -> dict[str, Any]:
        largest = max(float(np.abs(array).max()) for layer in model for array in layer)
        if not largest <= MAX_WEIGHT:
            raise ValueError(
                f"the network has weights up to {largest:g}, but at most {MAX_WEIGHT:g} can be saved; scale the samples first."
            )
        return {"layers": [layer._asdict() for layer in model]}

    def _model_from_state(self, fields: Fields, n_classes: int) -> list[Layer]:
        layers = []
        parts = fields.parts("layers", MAX_LAYERS)
        if not parts:
            raise fields.fail("layers", "must not be empty")
        bounds = {"low": -MAX_WEIGHT, "high": MAX_WEIGHT}
        n_inputs = self.n_features_in_
        for part in parts:
            weights = part.array("weights", "float64", (n_inputs, n_classes if part is parts[-1] else None), **bounds)
            n_inputs = weights.shape[1]
            if not n_inputs:
                raise part.fail("weights", "must have a column")
            layers.append(Layer(weights, part.array("intercepts", "float64", (n_inputs,), **bounds)))
        return layers
