"""NetworkPosterior: class probabilities of a neural network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from simtree._kernels.samples import fill_products
from simtree._utils.threads import in_threads, one_blas_thread
from simtree._utils.validation import check_integer, check_n_jobs, check_real
from simtree.io._fields import Fields
from simtree.io._registry import REPRESENTATION, register
from simtree.representation._base import Floats
from simtree.representation._folded import FoldedPosterior, Part, both_columns
from simtree.representation._perceptron import Layer, Training

# More layers, or larger weights, are treated as damage of a model file: outputs of all layers stay finite within these limits.
MAX_LAYERS, MAX_WEIGHT = 16, 1e6
# Number of rows per update of the weights, and least number of passes over all rows.
BATCH, MIN_PASSES = 200, 5
# Training ends after this many times as many passes as were best so far.
MAX_WAITING = 3.0
# Networks are worse than others if their loss is higher by more than this many standard errors of the difference.
N_ERRORS = 1.0


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
        Maximum number of updates of the weights, by at most 200 rows each; at least five passes over the rows are made. They
        end when the networks get worse on the rows that they are not fitted on.
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

    def _learn_models(self, parts: list[Part], seeds: list[int]) -> list[list[Layer]]:
        """Train the networks of all parts side by side, until they get worse on the samples that each of them has not seen.

        All make the same number of passes, because the few samples that a single network has not seen say little. The last
        stage is taken that is not clearly worse than the best one: what is lost by being somewhat too sure of single samples
        is less than what is gained in telling classes apart.
        """
        hidden, alpha = tuple(self._sizes()), float(self.alpha)
        trained = {
            number: Training(part.X, part.targets, len(part.classes), hidden, alpha=alpha, batch=BATCH, seed=seed)
            for number, (part, seed) in enumerate(zip(parts, seeds, strict=True))
            if len(part.classes) > 1
        }
        with one_blas_thread():  # products are small, and networks are trained in parallel
            kept: dict[int, list[Layer]] = self._train(trained, parts) if trained else {}
        return [
            _with_both_columns(kept[number], len(part.classes)) if number in kept else _one_class(part.X.shape[1])
            for number, part in enumerate(parts)
        ]

    def _train(self, trained: dict[int, Training], parts: list[Part]) -> dict[int, list[Layer]]:
        """Return the layers of the networks of some parts."""
        stages: list[_Stage] = []
        n_done = 0
        for n_passes in _stages(max(MIN_PASSES, int(self.n_updates) // -(-len(parts[0].X) // BATCH))):
            in_threads(partial(Training.advance, n_passes=n_passes - n_done), list(trained.values()), self.n_jobs)
            n_done = n_passes
            losses = [training.losses(parts[number].X_out, parts[number].targets_out) for number, training in trained.items()]
            networks = {number: training.layers() for number, training in trained.items()}
            stages.append(_Stage(n_done, networks, np.concatenate(losses)))
            best = min(range(len(stages)), key=lambda k: float(stages[k].losses.sum()))
            stages = stages[best:]  # earlier ones are not asked for any more
            if n_done > MAX_WAITING * stages[0].n_passes or all(training.has_ended for training in trained.values()):
                break
        return [stage for stage in stages if not stage.is_worse_than(stages[0])][-1].networks

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


class _Stage(NamedTuple):
    """Networks after some passes: their numbers and layers, and the loss of each sample that its network has not seen."""

    n_passes: int
    networks: dict[int, list[Layer]]
    losses: Floats

    def is_worse_than(self, other: _Stage) -> bool:
        """Return whether the mean loss is higher by more than some standard errors of the difference."""
        more = self.losses - other.losses
        return len(more) > 0 and float(more.mean()) > N_ERRORS * float(more.std()) / np.sqrt(len(more))


def _stages(n_passes: int) -> Iterator[int]:
    """Yield the numbers of passes after which left-out samples are asked, each larger by a quarter.

    Examples
    --------
    >>> list(_stages(20))
    [5, 7, 9, 12, 15, 19, 20]
    """
    stage = float(min(MIN_PASSES, n_passes))
    while stage < n_passes:
        yield int(np.ceil(stage))
        stage = np.ceil(stage) * 1.25
    yield n_passes


def _one_class(n_features: int) -> list[Layer]:
    """Return the network of a single class."""
    return [Layer(np.zeros((n_features, 1)), np.zeros(1))]


def _with_both_columns(layers: list[Layer], n_classes: int) -> list[Layer]:
    """Return a network with one output per class, also if there are two of them."""
    if n_classes == 2:
        weights, intercepts = layers[-1]
        layers[-1] = Layer(both_columns(weights), both_columns(intercepts[None])[0])
    # Copies, because the layers are parts of one vector: it would be kept as long as one of them.
    return [Layer(weights.copy(), intercepts.copy()) for weights, intercepts in layers]
