"""The two baselines of the paper on MNIST, LMNN and a neural network, as maps of samples, and scores of mapped samples.

Both depend on the scale of the features: LMNN uses a margin of one in squared distance, and the penalty of the network balances
its weights against its loss. They are meant for principal components of pixels scaled to [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_X_y

from simtree._utils.progress import reported
from simtree._utils.validation import check_integer, check_real
from simtree.pairs._inputs import check_index_pairs
from simtree.pairs._labels import encode_labels

Floats = NDArray[np.float64]
Encoding = NDArray[np.float32]

# Widths of the layers of the encoder after the input; the last one is the encoding.
WIDTHS = (146, 140, 134, 128)
# LMNN compares each sample with all samples of other classes in each iteration: it is limited by time, not by memory.
LMNN_SAMPLES = 5_000
# Maximum number of values per block of pairs for each of the two samples (8 MB in float64).
BLOCK_VALUES = 1 << 20


def lmnn_map(
    X: ArrayLike,
    y: ArrayLike,
    *,
    regularization: float = 0.01,
    n_neighbors: int = 3,
    max_iter: int = 1_000,
    max_points: int | None = LMNN_SAMPLES,
    random_state: int,
) -> Floats:
    """Fit the linear map of metric-learn's LMNN (Weinberger and Saul 2009), with default values of its other parameters.

    With 153 features, one core and all iterations, 1,000 samples take about 15 seconds, 2,000 take 40 and 5,000 take 4 minutes,
    within 0.1 GB; with 10,000 samples, one iteration takes nearly a second and 0.2 GB.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,)
        Labels.
    regularization : float, default=0.01
        Weight of pulling neighbours of the same class together; one minus it is the weight of pushing other classes away. The
        default is that of the paper.
    n_neighbors : int, default=3
        Number of neighbours of its class that each sample is pulled to; each class needs more samples than that.
    max_iter : int, default=1000
        Maximum number of iterations.
    max_points : int or None, default=5000
        Maximum number of samples to learn from, drawn without replacement; None uses all.
    random_state : int
        Random seed of this subsample. The rest is deterministic.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        The map L, which transforms samples to ``X @ L.T``.
    """
    metric_learn = _import_optional("metric_learn", "LMNN needs metric-learn")
    samples, labels = check_X_y(X, y, dtype=np.float64)
    if max_points is not None and check_integer("max_points", max_points, 2) < len(samples):
        chosen = np.random.default_rng(random_state).choice(len(samples), max_points, replace=False)
        samples, labels = samples[chosen], labels[chosen]
    classes = encode_labels(labels)
    sizes = np.bincount(classes)
    if len(sizes) < 2 or sizes.min() <= check_integer("n_neighbors", n_neighbors, 1):
        raise ValueError(
            f"n_neighbors={n_neighbors} requires at least two classes with more samples each, but y has (among {len(samples)} "
            f"samples) {len(sizes)} with {sizes.min()} samples in the smallest; give more samples, or fewer neighbours."
        )
    with _renamed_check_parameter():
        model = metric_learn.LMNN(regularization=regularization, n_neighbors=n_neighbors, max_iter=max_iter)
        model.fit(samples, classes)
    return np.asarray(model.components_, dtype=np.float64)


def train_network(
    X: ArrayLike,
    y: ArrayLike,
    *,
    penalty: float,
    epochs: int = 20,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    random_state: int,
    verbose: int = 0,
) -> Callable[[ArrayLike], Encoding]:
    """Train the classification network of the paper's appendix and return its encoder.

    The network has three fully connected ReLU layers of 146, 140 and 134 units and a linear layer of 128 units, the encoding,
    followed by a softmax layer for training. Adam minimises the mean cross entropy plus the penalty. The paper specifies only
    the layers; the training procedure is ours. It runs in one thread: the layers are small, and the result does not depend on
    the number of cores.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,)
        Labels.
    penalty : float
        Factor of the sum of squared weights of the three ReLU layers.
    epochs : int, default=20
        Number of passes over the samples.
    batch_size : int, default=128
        Number of samples per step.
    learning_rate : float, default=0.001
        Learning rate of Adam.
    random_state : int
        Random seed of the initial weights and of the order of the samples. The state of PyTorch's global generator has no
        effect and is left unchanged.
    verbose : int, default=0
        From 1 on, finished epochs are reported.

    Returns
    -------
    callable
        Function that maps samples (n, n_features) to their encodings (n, 128), float32, to be compared by cosine.
    """
    torch = _import_optional("torch", "The network needs PyTorch")
    penalty = check_real("penalty", penalty, 0.0, np.inf, open_high=True)
    check_integer("epochs", epochs, 1)
    check_integer("batch_size", batch_size, 1)
    checked, labels = check_X_y(X, y, dtype=np.float32, order="C")
    samples, classes = torch.from_numpy(checked), torch.from_numpy(encode_labels(labels))

    with _deterministic(torch, random_state):
        widths = (checked.shape[1], *WIDTHS)
        linear = [torch.nn.Linear(*sizes) for sizes in pairwise(widths)]
        encoder = torch.nn.Sequential(*(part for layer in linear[:-1] for part in (layer, torch.nn.ReLU())), linear[-1])
        network = torch.nn.Sequential(encoder, torch.nn.Linear(WIDTHS[-1], int(classes.max()) + 1))
        optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
        cross_entropy = torch.nn.CrossEntropyLoss()

        def finished_epochs() -> Iterator[int]:
            for epoch in range(epochs):
                for batch in torch.randperm(len(samples)).split(batch_size):
                    optimizer.zero_grad()
                    squares = sum(layer.weight.square().sum() for layer in linear[:-1])
                    loss = cross_entropy(network(samples[batch]), classes[batch]) + penalty * squares
                    loss.backward()
                    optimizer.step()
                yield epoch

        for _ in reported(finished_epochs(), None, n_steps=epochs, what="epochs of the network", verbose=verbose):
            pass

    def encode(samples: ArrayLike) -> Encoding:
        with torch.inference_mode():
            encoding: Encoding = encoder(torch.tensor(np.asarray(samples), dtype=torch.float32)).numpy()
        return encoding

    return encode


def cosine_scores(A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the cosine similarity of rows ``first[p]`` and ``second[p]`` of A for each pair p; 0 for a row of zeros.

    Examples
    --------
    >>> cosine_scores([[1.0, 0.0], [3.0, 4.0], [0.0, 0.0]], [0, 1, 0], [1, 1, 2])
    array([0.6, 1. , 0. ])
    """
    rows = np.asarray(A, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return inner_product_scores(np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0), first, second)


def inner_product_scores(A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the inner product of rows ``first[p]`` and ``second[p]`` of A for each pair p.

    Examples
    --------
    >>> inner_product_scores([[1.0, 0.0], [3.0, 4.0]], [0, 1], [1, 1])
    array([ 3., 25.])
    """
    return _scores(lambda rows, others: np.einsum("ij,ij->i", rows, others), A, first, second)


def euclidean_scores(A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the negative Euclidean distance of rows ``first[p]`` and ``second[p]`` of A for each pair p.

    Examples
    --------
    >>> euclidean_scores([[0.0, 0.0], [3.0, 4.0]], [0], [1])
    array([-5.])
    """
    return _scores(lambda rows, others: -np.linalg.norm(rows - others, axis=1), A, first, second)


def manhattan_scores(A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the negative Manhattan distance of rows ``first[p]`` and ``second[p]`` of A for each pair p.

    Examples
    --------
    >>> manhattan_scores([[0.0, 0.0], [3.0, 4.0]], [0], [1])
    array([-7.])
    """
    return _scores(lambda rows, others: -np.abs(rows - others).sum(axis=1), A, first, second)


def _scores(score: Callable[[Floats, Floats], Floats], A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the score of the two rows of each pair, in float64 and in blocks of bounded memory."""
    rows = np.asarray(A, dtype=np.float64)
    first, second = check_index_pairs(np.column_stack([first, second]), len(rows))
    scores = np.empty(len(first))
    size = max(1, BLOCK_VALUES // max(1, rows.shape[1]))
    for start in range(0, len(scores), size):
        block = slice(start, start + size)
        scores[block] = score(rows[first[block]], rows[second[block]])
    return scores


def _import_optional(module: str, sentence: str) -> Any:
    """Import a module that only the experiments need."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f'{sentence}; install it with: pip install "simtree[experiments]"') from error


@contextmanager
def _renamed_check_parameter() -> Iterator[None]:
    """Let metric-learn 0.7 call scikit-learn's checks with ``force_all_finite``, named ``ensure_all_finite`` since 1.6.

    The functions are replaced in metric-learn's own module and restored at the end; scikit-learn is not modified.
    """
    module = import_module("metric_learn._util")
    checks = {name: getattr(module, name) for name in ("check_array", "check_X_y")}
    try:
        for name, check in checks.items():
            setattr(module, name, _renaming(check))
        yield
    finally:
        for name, check in checks.items():
            setattr(module, name, check)


def _renaming(check: Callable[..., Any]) -> Callable[..., Any]:
    def renamed(*args: Any, **parameters: Any) -> Any:
        if "force_all_finite" in parameters:
            parameters["ensure_all_finite"] = parameters.pop("force_all_finite")
        return check(*args, **parameters)

    return renamed


@contextmanager
def _deterministic(torch: Any, seed: int) -> Iterator[None]:
    """Run PyTorch in one thread and with a random seed; restore the number of threads and the generator at the end."""
    n_threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)
