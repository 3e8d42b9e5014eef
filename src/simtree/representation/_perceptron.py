"""Training of a network of rectified linear units by Adam, as scikit-learn's ``MLPClassifier`` does it.

Weights are those of scikit-learn up to rounding. An update of a small network takes less than half of the time, because all
numbers of the network are one vector, and nothing is checked again for each batch. Numbers are of single precision, in which
an update of a large network takes half of the time of double precision.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from simtree.representation._base import Codes

# Single precision in training, double precision in what is returned.
Floats = NDArray[np.floating[Any]]

# Adam: rate of learning, decay of the means of gradients and of their squares, and what keeps a division finite.
RATE, DECAY, SQUARE_DECAY, TINY = 1e-3, 0.9, 0.999, 1e-8
# Training ends if the loss has not fallen by this much in more than so many passes.
MIN_GAIN, PATIENCE = 1e-4, 10
# Share of the probabilities of samples not trained on that is divided among all classes.
EVEN_SHARE = 0.1
# Probabilities are kept this far from 0 and 1 in the loss.
EPS = float(np.finfo(np.float32).eps)


class Layer(NamedTuple):
    """One layer: weights of shape (n_inputs, n_outputs), and an intercept per output."""

    weights: Floats
    intercepts: Floats


class Training:
    """A network of classes in training: pass after pass over its samples, until the loss of these does not fall any more.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    targets : ndarray of shape (n_samples,)
        Class of each sample, from 0 to ``n_classes`` - 1.
    n_classes : int
        Number of classes, at least two; the last layer has one output per class, or a single one for two classes.
    hidden : tuple of int
        Number of units of each hidden layer.
    alpha : float
        Strength of the L2 regularisation of the weights.
    batch : int
        Number of samples per update.
    seed : int
        Random seed for initial weights and the order of samples.
    """

    def __init__(
        self, X: Floats, targets: Codes, n_classes: int, hidden: tuple[int, ...], *, alpha: float, batch: int, seed: int
    ) -> None:
        self._X, self._targets = _single(X), targets
        self._alpha, self._batch = alpha, batch
        self._rng = np.random.RandomState(seed)
        units = (X.shape[1], *hidden, 1 if n_classes == 2 else n_classes)
        self._shapes = list(pairwise(units))
        self._values = np.empty(sum((n_inputs + 1) * n_outputs for n_inputs, n_outputs in self._shapes), dtype=np.float32)
        self._layers = _views(self._values, self._shapes)
        for layer in self._layers:
            bound = np.sqrt(6.0 / sum(layer.weights.shape))
            layer.weights[:] = self._rng.uniform(-bound, bound, layer.weights.shape)
            layer.intercepts[:] = self._rng.uniform(-bound, bound, layer.intercepts.shape)
        self._gradient = np.empty_like(self._values)
        self._adam = _Adam(self._values)
        self._order = np.arange(len(X))
        self._least, self._n_worse = np.inf, 0

    @property
    def has_ended(self) -> bool:
        """Whether the loss of the samples does not fall any more."""
        return self._n_worse > PATIENCE

    def advance(self, n_passes: int) -> None:
        """Make so many more passes over the samples, or fewer if training ends before."""
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is refused
            self._advance(n_passes)
        if not np.isfinite(self._values).all():
            raise ValueError("X holds numbers so large that weights of a network overflow; divide X by a large number.")

    def _advance(self, n_passes: int) -> None:
        n, by_layer = len(self._X), _views(self._gradient, self._shapes)
        for _ in range(n_passes):
            if self.has_ended:
                break
            shuffled = np.arange(n)
            self._rng.shuffle(shuffled)
            self._order = self._order[shuffled]
            loss = 0.0
            for start in range(0, n, self._batch):
                rows = self._order[start : start + self._batch]
                loss += _fill_gradient(self._X[rows], self._targets[rows], self._layers, by_layer, self._alpha)
                self._gradient /= len(rows)
                self._adam.update(self._values, self._gradient)
            self._n_worse = self._n_worse + 1 if loss / n > self._least - MIN_GAIN else 0
            self._least = min(self._least, loss / n)

    def losses(self, X: Floats, targets: Codes) -> Floats:
        """Return minus the log-probability of the class of each of other samples.

        A share of the probabilities is divided among all classes: what a single sure error costs is limited, because the mean
        of several networks is less sure than each of them.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scores = _outputs(_single(X), self._layers)[-1]
            share = EVEN_SHARE / max(2, scores.shape[1])
            return _losses((1.0 - EVEN_SHARE) * _errors(scores, targets)[1] + share)

    def layers(self) -> list[Layer]:
        """Return a copy of the layers as they are now, in double precision."""
        return _views(self._values.astype(np.float64), self._shapes)


class _Adam:
    """Means of gradients and of their squares, and updates by them."""

    def __init__(self, values: Floats) -> None:
        self._mean, self._square = np.zeros_like(values), np.zeros_like(values)
        self._part, self._step = np.empty_like(values), np.empty_like(values)
        self._n_updates = 0

    def update(self, values: Floats, gradient: Floats) -> None:
        """Move values against their gradient."""
        mean, square, part = self._mean, self._square, self._part
        mean *= DECAY
        np.multiply(gradient, 1 - DECAY, out=part)
        mean += part
        square *= SQUARE_DECAY
        np.multiply(gradient, gradient, out=part)
        part *= 1 - SQUARE_DECAY
        square += part
        np.sqrt(square, out=part)
        part += TINY
        self._n_updates += 1
        rate = RATE * np.sqrt(1 - SQUARE_DECAY**self._n_updates) / (1 - DECAY**self._n_updates)
        np.multiply(mean, rate, out=self._step)
        self._step /= part
        values -= self._step


def _single(X: Floats) -> Floats:
    """Return samples in single precision; numbers that are too large become infinite, and `Training.advance` refuses them."""
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


def _views(values: Floats, shapes: list[tuple[int, int]]) -> list[Layer]:
    """Return the parts of a vector as layers."""
    layers, start = [], 0
    for n_inputs, n_outputs in shapes:
        end = start + n_inputs * n_outputs
        layers.append(Layer(values[start:end].reshape(n_inputs, n_outputs), values[end : end + n_outputs]))
        start = end + n_outputs
    return layers


def _fill_gradient(X: Floats, targets: Codes, layers: list[Layer], gradient: list[Layer], alpha: float) -> float:
    """Set the gradient of the regularised loss, summed over samples, and return this loss."""
    *inputs, scores = _outputs(X, layers)
    error, of_target = _errors(scores, targets)
    loss = float(_losses(of_target).sum())
    for number in range(len(layers) - 1, -1, -1):
        weights, (of_weights, of_intercepts) = layers[number].weights, gradient[number]
        np.matmul(inputs[number].T, error, out=of_weights)
        of_weights += alpha * weights
        error.sum(axis=0, out=of_intercepts)
        loss += 0.5 * alpha * float(np.vdot(weights, weights))
        if number:
            error = error @ weights.T
            error *= inputs[number] > 0.0
    return loss


def _outputs(X: Floats, layers: list[Layer]) -> list[Floats]:
    """Return the samples, what each hidden layer makes of them, and the scores of the classes."""
    outputs = [X]
    for weights, intercepts in layers[:-1]:
        values = outputs[-1] @ weights
        values += intercepts
        outputs.append(np.maximum(values, 0.0, out=values))
    weights, intercepts = layers[-1]
    return [*outputs, outputs[-1] @ weights + intercepts]


def _losses(of_target: Floats) -> Floats:
    """Return minus the logarithms of probabilities of classes."""
    return np.asarray(-np.log(np.clip(of_target, EPS, 1 - EPS)))


def _errors(scores: Floats, targets: Codes) -> tuple[Floats, Floats]:
    """Return probabilities minus what they should be, and the probability of the class of each sample."""
    if scores.shape[1] == 1:
        probability = expit(scores)
        of_second = probability[:, 0].copy()
        probability[:, 0] -= targets
        return probability, np.where(targets == 1, of_second, 1.0 - of_second)
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    rows = np.arange(len(targets))
    of_target = scores[rows, targets]
    scores[rows, targets] -= 1.0
    return scores, of_target
