"""Choice of the width of an RBF kernel and of the penalty of a ridge regression, by leave-one-out scores of some rows.

Leaving out each row once needs no fit per row: with the inverse G of the penalised kernel matrix and the targets T, the score
of row i without itself is T_i - (G T)_i / G_ii. One eigendecomposition per width serves all penalties.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from simtree._kernels.samples import fill_rbf
from simtree.representation._base import Codes, Floats

# What is tried, the smoothest first, which wins among equals: widths as multiples of that of "scale", and penalties.
WIDTHS = (0.1, 0.3, 1.0, 3.0)
PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
# Rows that settings are compared on; twice as many led to the same settings on most of fifteen tables.
MAX_ROWS = 500
# Scores of ridge regression are no log-odds: the loss is that of the best of these multiples of them.
MULTIPLES = (1.0, 2.0, 4.0, 8.0, 16.0)


def choose_kernel(
    X: NDArray[Any],
    codes: Codes,
    targets: Floats,
    gammas: Sequence[float],
    alphas: Sequence[float],
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the width and the penalty with the lowest loss of leave-one-out scores on some rows.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    codes : ndarray of shape (n_samples,)
        Class of each sample.
    targets : ndarray of shape (n_classes, n_columns)
        Target of each class.
    gammas, alphas : sequence of float
        Widths and penalties to choose from; the first of equals wins.
    rng : Generator
        Random numbers that choose the rows.
    """
    rows = np.sort(rng.choice(len(X), MAX_ROWS, replace=False)) if len(X) > MAX_ROWS else np.arange(len(X))
    samples = np.ascontiguousarray(X[rows])
    occurring, numbers = np.unique(codes[rows], return_inverse=True)
    best = (np.inf, gammas[0], alphas[0])
    for gamma in gammas:
        kernel = np.empty((len(rows), len(rows)))
        fill_rbf(samples, np.ascontiguousarray(samples.T), gamma, kernel)
        for alpha, left_out in zip(alphas, leave_one_out(kernel, targets[codes[rows]], alphas), strict=True):
            loss = log_loss(left_out @ targets[occurring].T, numbers)
            if loss < best[0]:
                best = (loss, gamma, alpha)
    return best[1:]


def leave_one_out(kernel: Floats, targets: Floats, alphas: Sequence[float]) -> Iterator[Floats]:
    """Yield, for each penalty, the scores of kernel ridge regression for each row, fitted without the row."""
    values, vectors = eigh(kernel)
    along, squares = vectors.T @ targets, vectors**2
    for alpha in alphas:
        inverse = 1.0 / (np.maximum(values, 0.0) + alpha)
        yield targets - (vectors @ (inverse[:, None] * along)) / (squares @ inverse)[:, None]


def log_loss(scores: Floats, classes: Codes) -> float:
    """Return the mean log loss of the softmax of the best multiple of class scores."""
    own = np.arange(len(scores))
    losses = []
    for multiple in MULTIPLES:
        shifted = multiple * (scores - scores.max(axis=1, keepdims=True))
        losses.append(float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[own, classes])))
    return min(losses)
