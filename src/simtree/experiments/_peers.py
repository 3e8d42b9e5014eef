"""The paper's two competitors on MNIST, as maps of points, and the scores of pairs of mapped points.

Both depend on the scale of the features: LMNN keeps a margin of one in squared distance, and the penalty of the network weighs
its weights against its loss. Give them what they were measured on: principal components of pixels scaled to [0, 1].
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

# Widths of the encoder's layers after the input; the last one is the encoding.
WIDTHS = (146, 140, 134, 128)
# LMNN compares each point with all of other classes at each iteration: time, not memory, is its limit (see `lmnn_map`).
LMNN_POINTS = 5_000
# Numbers that a block of pairs may hold for each of its two points (8 MB in float64).
BLOCK_VALUES = 1 << 20


def lmnn_map(
    X: ArrayLike,
    y: ArrayLike,
    *,
    regularization: float = 0.01,
    n_neighbors: int = 3,
    max_iter: int = 1_000,
    max_points: int | None = LMNN_POINTS,
    random_state: int,
) -> Floats:
    """The linear map that metric-learn's LMNN (Weinberger and Saul 2009) learns; its other parameters keep their defaults.

    With 153 features, one core and all iterations, 1,000 points take about 15 seconds, 2,000 take 40 and 5,000 take 4 minutes,
    within 0.1 GB; of 10,000 points one iteration takes nearly a second, and 0.2 GB.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        Points.
    y : array-like of shape (n_points,)
        Their classes.
    regularization : float, default=0.01
        Weight of pulling neighbours of a class together; one minus it is that of pushing the other classes away. The paper's.
    n_neighbors : int, default=3
        Neighbours of its class that each point is pulled to; each class needs more points than that.
    max_iter : int, default=1000
        Iterations at most.
    max_points : int or None, default=5000
        Points to learn from, drawn without replacement; None takes all.
    random_state : int
        Seed of that drawing. The rest is not random.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        The map L: the points become ``X @ L.T``.
    """
    metric_learn = _optional("metric_learn", "LMNN needs metric-learn")
    points, labels = check_X_y(X, y, dtype=np.float64)
    if max_points is not None and check_integer("max_points", max_points, 2) < len(points):
        chosen = np.random.default_rng(random_state).choice(len(points), max_points, replace=False)
        points, labels = points[chosen], labels[chosen]
    classes = encode_labels(labels)
    sizes = np.bincount(classes)
    if len(sizes) < 2 or sizes.min() <= check_integer("n_neighbors", n_neighbors, 1):
        raise ValueError(
            f"n_neighbors={n_neighbors} needs two classes of more points each, but y has (among {len(points)} points) "
            f"{len(sizes)} with {sizes.min()} points in the smallest; give more points, or fewer neighbours."
        )
    with _old_parameter_of_checks():
        model = metric_learn.LMNN(regularization=regularization, n_neighbors=n_neighbors, max_iter=max_iter)
        model.fit(points, classes)
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
    """Train the network of the paper's appendix to tell the classes apart, and return its encoder.

    Three fully connected layers with ReLU, of 146, 140 and 134 units, and one of 128 without, which is the encoding; for
    training a softmax layer follows it. Adam minimises the mean cross entropy plus the penalty. The paper gives the layers
    alone; the training is ours. One thread does it: the layers are small, and the result is the same for any number of cores.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
        Points.
    y : array-like of shape (n_points,)
        Their classes.
    penalty : float
        Factor of the sum of squared weights of the three layers with ReLU.
    epochs : int, default=20
        How often each point is used.
    batch_size : int, default=128
        Points a step.
    learning_rate : float, default=0.001
        Of Adam.
    random_state : int
        Seed of the first weights and of the order of the points. The state of PyTorch's own generator does not matter and is
        left as it was.
    verbose : int, default=0
        From 1 on, finished epochs are shown.

    Returns
    -------
    callable
        Maps points (n, n_features) to their encoding (n, 128), float32, to be compared by cosine.
    """
    torch = _optional("torch", "The network needs PyTorch")
    penalty = check_real("penalty", penalty, 0.0, np.inf, open_high=True)
    check_integer("epochs", epochs, 1)
    check_integer("batch_size", batch_size, 1)
    checked, labels = check_X_y(X, y, dtype=np.float32, order="C")
    points, classes = torch.from_numpy(checked), torch.from_numpy(encode_labels(labels))

    with _alone_in(torch, random_state):
        widths = (checked.shape[1], *WIDTHS)
        linear = [torch.nn.Linear(*sizes) for sizes in pairwise(widths)]
        encoder = torch.nn.Sequential(*(part for layer in linear[:-1] for part in (layer, torch.nn.ReLU())), linear[-1])
        network = torch.nn.Sequential(encoder, torch.nn.Linear(WIDTHS[-1], int(classes.max()) + 1))
        optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
        cross_entropy = torch.nn.CrossEntropyLoss()

        def finished_epochs() -> Iterator[int]:
            for epoch in range(epochs):
                for batch in torch.randperm(len(points)).split(batch_size):
                    optimizer.zero_grad()
                    squares = sum(layer.weight.square().sum() for layer in linear[:-1])
                    loss = cross_entropy(network(points[batch]), classes[batch]) + penalty * squares
                    loss.backward()
                    optimizer.step()
                yield epoch

        for _ in reported(finished_epochs(), None, n_steps=epochs, what="epochs of the network", verbose=verbose):
            pass

    def encode(points: ArrayLike) -> Encoding:
        with torch.inference_mode():
            encoding: Encoding = encoder(torch.tensor(np.asarray(points), dtype=torch.float32)).numpy()
        return encoding

    return encode


def cosine_scores(A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Cosine of the angle between rows ``first[p]`` and ``second[p]`` of A for each pair p; 0 with a row of zeros.

    Examples
    --------
    >>> cosine_scores([[1.0, 0.0], [3.0, 4.0], [0.0, 0.0]], [0, 1, 0], [1, 1, 2])
    array([0.6, 1. , 0. ])
    """
    rows = np.asarray(A, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return inner_product_scores(np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0), first, second)


def inner_product_scores(A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Inner product of rows ``first[p]`` and ``second[p]`` of A for each pair p.

    Examples
    --------
    >>> inner_product_scores([[1.0, 0.0], [3.0, 4.0]], [0, 1], [1, 1])
    array([ 3., 25.])
    """
    return _scores(lambda rows, others: np.einsum("ij,ij->i", rows, others), A, first, second)


def euclidean_scores(A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Negative distance of rows ``first[p]`` and ``second[p]`` of A for each pair p: larger for more alike.

    Examples
    --------
    >>> euclidean_scores([[0.0, 0.0], [3.0, 4.0]], [0], [1])
    array([-5.])
    """
    return _scores(lambda rows, others: -np.linalg.norm(rows - others, axis=1), A, first, second)


def manhattan_scores(A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """Negative sum of absolute differences of rows ``first[p]`` and ``second[p]`` of A for each pair p.

    Examples
    --------
    >>> manhattan_scores([[0.0, 0.0], [3.0, 4.0]], [0], [1])
    array([-7.])
    """
    return _scores(lambda rows, others: -np.abs(rows - others).sum(axis=1), A, first, second)


def _scores(score: Callable[[Floats, Floats], Floats], A: ArrayLike, first: ArrayLike, second: ArrayLike) -> Floats:
    """What a function says of the two rows of each pair, in float64 and in blocks of bounded memory."""
    rows = np.asarray(A, dtype=np.float64)
    first, second = check_index_pairs(np.column_stack([first, second]), len(rows))
    scores = np.empty(len(first))
    size = max(1, BLOCK_VALUES // max(1, rows.shape[1]))
    for start in range(0, len(scores), size):
        block = slice(start, start + size)
        scores[block] = score(rows[first[block]], rows[second[block]])
    return scores


def _optional(module: str, sentence: str) -> Any:
    """A module that only the experiments need."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f'{sentence}; install it with: pip install "simtree[experiments]"') from error


@contextmanager
def _old_parameter_of_checks() -> Iterator[None]:
    """Let metric-learn 0.7 call scikit-learn's checks with ``force_all_finite``, which is ``ensure_all_finite`` since 1.6.

    The names are replaced in metric-learn's own module and put back at the end; scikit-learn stays as it is.
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
def _alone_in(torch: Any, seed: int) -> Iterator[None]:
    """One thread of PyTorch and its generator with a seed; both are put back at the end."""
    n_threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(n_threads)
