"""Example data: two synthetic distributions with a known optimal similarity, and loaders of real data.

Nothing is downloaded or shipped: a loader reads the folder that it is given, or the one that the environment variable
``SIMTREE_DATA`` names.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from simtree._utils.validation import check_choice, check_integer, check_real
from simtree.metrics import Roc

__all__ = ["TreeLaw", "load_keystroke", "load_mnist", "make_square_law", "make_tree_law", "square_law_posterior"]

Floats = NDArray[np.float64]
RandomState = int | np.random.RandomState | None
Folder = str | os.PathLike[str] | None

_MAX_DEPTH = 16
_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class TreeLaw:
    """Distribution of pairs that is uniform within the cells of a tree, so that its optimal ROC curve is known.

    A pair (x, x') has the coordinates u = (x + x') / sqrt(2) and v = abs(x - x') / sqrt(2). The cell of a same pair is drawn
    with the weights `positive`, that of a different pair with the weights `negative`. Then (u, v) is uniform in the cell, and a
    fair coin decides which of the two samples gets +v.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_cells, 2 * n_features)
        Corners of the cells, boxes that partition one large box; the first n_features columns are u, the others v.
        A cell contains its lower faces but not its upper ones, except for those of the large box.
    positive, negative : ndarray of shape (n_cells,)
        Weight of each cell among the same pairs and among the different pairs. All weights are positive, and both arrays sum
        to 1.

    See Also
    --------
    make_tree_law : The random distributions of the paper.

    Examples
    --------
    >>> from simtree.datasets import TreeLaw
    >>> law = TreeLaw([[-1, 0], [-1, 0.5]], [[1, 0.5], [1, 1]], positive=[0.8, 0.2], negative=[0.2, 0.8])
    >>> round(law.optimal_auc, 3)
    0.8
    >>> law.optimal_score([[[0.1], [0.2]], [[0.7], [-0.2]]]).round(3)
    array([ 1.386, -1.386])
    """

    lower: Floats
    upper: Floats
    positive: Floats
    negative: Floats

    def __post_init__(self) -> None:
        """Validate the arrays and store read-only copies of them."""
        for name in ("lower", "upper", "positive", "negative"):
            # A read-only copy, so that later changes of the given arrays have no effect.
            values = np.array(getattr(self, name), dtype=np.float64)
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        self._check_cells()
        for name in ("positive", "negative"):
            weights = getattr(self, name)
            if weights.shape != (self.n_cells,):
                raise ValueError(
                    f"{name} has shape {weights.shape}; it must hold one weight for each of the {self.n_cells} cells."
                )
            if not ((weights > 0).all() and abs(weights.sum() - 1.0) < 1e-9):
                raise ValueError(f"{name} sums to {weights.sum()}; its weights must all be positive and sum to 1.")

    def _check_cells(self) -> None:
        shape = self.lower.shape
        if len(shape) != 2 or shape != self.upper.shape or 0 in shape or shape[1] % 2:
            raise ValueError(
                f"lower and upper have shapes {shape} and {self.upper.shape}; both must be (n_cells, 2 * n_features)."
            )
        sides = self.upper - self.lower
        if not (np.isfinite(sides).all() and (sides >= 0).all()):
            raise ValueError("lower must be finite and at most upper, in every coordinate of every cell.")
        volume = np.ptp([self.lower.min(axis=0), self.upper.max(axis=0)], axis=0).prod()
        if not math.isclose(sides.prod(axis=1).sum(), volume, rel_tol=1e-9):
            raise ValueError(
                f"lower and upper bound cells of total volume {sides.prod(axis=1).sum():g} in a box of volume {volume:g};"
                " they must partition it."
            )

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.lower.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features of a sample."""
        return int(self.lower.shape[1]) // 2

    @property
    def optimal_roc(self) -> Roc:
        """Optimal ROC curve, which no similarity can exceed: its knots are the cells by decreasing ratio of their weights.

        Its thresholds are those of `optimal_score`; the first one, infinity, accepts no pair.
        """
        ratios = self._log_ratios
        order = np.argsort(-ratios, kind="stable")
        # Cells with the same ratio are one step, because no threshold separates them.
        last_of_step = np.append(ratios[order][1:] < ratios[order][:-1], True)
        return Roc(
            _knots(self.negative[order], last_of_step),
            _knots(self.positive[order], last_of_step),
            np.concatenate([[np.inf], ratios[order][last_of_step]]),
        )

    @property
    def optimal_auc(self) -> float:
        """Area under `optimal_roc`."""
        return float(self.optimal_roc.auc())

    @property
    def _log_ratios(self) -> Floats:
        return np.asarray(np.log(self.positive) - np.log(self.negative))

    def sample(
        self, n_pairs: int, *, positive_fraction: float = 0.5, random_state: RandomState = None
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Draw random pairs.

        Parameters
        ----------
        n_pairs : int
            Number of pairs.
        positive_fraction : float, default=0.5
            Probability that a pair is a same pair (p+ in Table 1 of the paper). Pairs are drawn independently, so the share
            of same pairs is random; if the fraction is small, there may be none.
        random_state : int, RandomState or None
            Random seed or generator.

        Returns
        -------
        pairs : ndarray of shape (n_pairs, 2, n_features)
            The two samples of each pair.
        same : ndarray of shape (n_pairs,), bool
            True for same pairs.

        Examples
        --------
        >>> from simtree.datasets import make_tree_law
        >>> pairs, same = make_tree_law(3, random_state=0).sample(1000, positive_fraction=0.1, random_state=0)
        >>> pairs.shape, bool(80 < same.sum() < 120)
        ((1000, 2, 3), True)
        """
        check_integer("n_pairs", n_pairs, 1)
        check_real("positive_fraction", positive_fraction, 0.0, 1.0)
        rng = _random_state(random_state)
        same: NDArray[np.bool_] = rng.random_sample(n_pairs) < positive_fraction
        cells = np.empty(n_pairs, dtype=np.intp)
        for kind, weights in ((same, self.positive), (~same, self.negative)):
            cells[kind] = rng.choice(self.n_cells, size=np.count_nonzero(kind), p=weights)
        lower, upper = self.lower[cells], self.upper[cells]
        sums, differences = np.hsplit(lower + (upper - lower) * rng.random_sample(lower.shape), 2)
        # One coin per pair, not per coordinate: v is the difference vector of the two samples.
        differences *= np.where(rng.random_sample(n_pairs) < 0.5, 1.0, -1.0)[:, None]
        pairs = np.stack([sums + differences, sums - differences], axis=1) / math.sqrt(2.0)
        return pairs, same

    def cell_of(self, pairs: ArrayLike) -> NDArray[np.intp]:
        """Return the cell of each pair; a pair outside all cells is assigned to the nearest one.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Index of the cell in `lower` and `upper`.

        Examples
        --------
        >>> from simtree.datasets import TreeLaw
        >>> law = TreeLaw([[-1, 0], [-1, 0.5]], [[1, 0.5], [1, 1]], positive=[0.8, 0.2], negative=[0.2, 0.8])
        >>> law.cell_of([[[0.1], [0.2]], [[0.7], [-0.2]]])
        array([0, 1])
        """
        samples = np.asarray(pairs, dtype=np.float64)
        if samples.ndim != 3 or samples.shape[1:] != (2, self.n_features):
            raise ValueError(f"pairs has shape {samples.shape}; give pairs of shape (n_pairs, 2, {self.n_features}).")
        if not np.isfinite(samples).all():
            raise ValueError("pairs holds NaN or infinity; remove or replace such pairs.")
        first, second = samples[:, 0], samples[:, 1]
        # Sums and absolute differences do not depend on the order, bit for bit, so swapping the samples cannot change the cell.
        coordinates = np.hstack([first + second, np.abs(first - second)]) / math.sqrt(2.0)
        # Rounding may move a pair out of the box; and cells do not contain their upper faces, but the box does.
        np.clip(coordinates, self.lower.min(axis=0), np.nextafter(self.upper.max(axis=0), -np.inf), out=coordinates)
        cells = np.full(len(samples), -1, dtype=np.intp)
        # Halve the list of cells and keep the pairs inside the hull of each half: correct for any cells, and fast for those of
        # a tree, whose halves are the two sides of a split.
        pending = [(0, self.n_cells, np.arange(len(samples)))]
        while pending:
            start, stop, rows = pending.pop()
            hull_lower, hull_upper = self.lower[start:stop].min(axis=0), self.upper[start:stop].max(axis=0)
            rows = rows[((coordinates[rows] >= hull_lower) & (coordinates[rows] < hull_upper)).all(axis=1)]
            if stop - start == 1:
                cells[rows] = start
            elif len(rows):
                middle = (start + stop) // 2
                pending += [(start, middle, rows), (middle, stop, rows)]
        if (cells < 0).any():
            raise ValueError(
                f"lower and upper leave {(cells < 0).sum()} of the pairs without a cell; they must partition a box."
            )
        return cells

    def optimal_score(self, pairs: ArrayLike) -> Floats:
        """Return the optimal score of each pair, the log-likelihood ratio of its cell.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs.

        Returns
        -------
        ndarray of shape (n_pairs,)
            Logarithm of the positive over the negative weight; larger means more similar. Swapping the two samples of a pair
            gives the same score, bit for bit.

        Examples
        --------
        >>> from simtree.datasets import make_tree_law
        >>> law = make_tree_law(2, random_state=0)
        >>> pairs, same = law.sample(1000, random_state=0)
        >>> scores = law.optimal_score(pairs)
        >>> bool(scores[same].mean() > scores[~same].mean())
        True
        """
        return self._log_ratios[self.cell_of(pairs)]


def make_tree_law(
    depth: int,
    *,
    n_features: int = 3,
    noise: float = 0.01,
    exponent: Literal["cells", "text"] = "cells",
    order: Literal["random", "identity"] = "random",
    random_state: RandomState = None,
) -> TreeLaw:
    """Make a random tree-structured distribution of pairs, as in Table 1 of Clémençon and Vogel (2019).

    The tree splits sums u in [-1, 1]^q and absolute differences v in [0, 1]^q (see `TreeLaw`) down to `depth`: each node is
    split on a coordinate drawn uniformly, at a value drawn uniformly over its range in the node. The l-th weight, for
    l = 0, ..., 2^depth - 1, is proportional to noise^(l / L) among the same pairs and to noise^(-l / L) among the different
    pairs.

    Parameters
    ----------
    depth : int
        Depth of the tree, from 1 to 16; it has 2^depth cells.
    n_features : int, default=3
        Number q of features of a sample.
    noise : float, default=0.01
        Noise level in (0, 1): near 0, same and different pairs are perfectly separable; near 1, their distributions are equal.
    exponent : {"cells", "text"}, default="cells"
        L is 2^depth for "cells", which gives the optimal AUC of 0.96 that the paper reports, and 2^depth - 1 for "text", as the
        paper's text says, which gives 0.976 (at depth 3 and noise 0.01).
    order : {"random", "identity"}, default="random"
        Whether the weights are assigned to the cells in random order, or in the order of the cells in the tree (the side below
        the value of a split first). The cells themselves are the same for both.
    random_state : int, RandomState or None
        Random seed or generator.

    Returns
    -------
    TreeLaw
        The distribution, from which pairs can be sampled, with its optimal ROC curve.

    Examples
    --------
    >>> from simtree.datasets import make_tree_law
    >>> law = make_tree_law(3, random_state=0)
    >>> law.n_cells, round(law.optimal_auc, 2)
    (8, 0.96)
    """
    check_integer("depth", depth, 1, _MAX_DEPTH)
    check_integer("n_features", n_features, 1)
    # Smaller values hardly change the distribution, but the weights would underflow.
    check_real("noise", noise, 1e-300, 1.0, open_high=True)
    check_choice("exponent", exponent, ("cells", "text"))
    check_choice("order", order, ("random", "identity"))
    rng = _random_state(random_state)
    lower, upper = _random_cells(depth, n_features, rng)
    n_cells = len(lower)
    ranks = rng.permutation(n_cells) if order == "random" else np.arange(n_cells)
    logs = math.log(noise) * ranks / (n_cells if exponent == "cells" else n_cells - 1)
    return TreeLaw(lower, upper, _normalised_exp(logs), _normalised_exp(-logs))


def make_square_law(n_points: int, *, random_state: RandomState = None) -> tuple[Floats, NDArray[np.int64]]:
    """Draw labelled samples from the one-dimensional distribution of the paper's figure of proposal regions.

    X is uniform on [0, 1]. The label is 2 with probability 0.2 if X is below one half and with probability 0.8 otherwise; else
    it is 1.

    Parameters
    ----------
    n_points : int
        Number of samples.
    random_state : int, RandomState or None
        Random seed or generator.

    Returns
    -------
    X : ndarray of shape (n_points, 1)
        The samples.
    y : ndarray of shape (n_points,)
        Their labels, 1 or 2.

    Examples
    --------
    >>> from simtree.datasets import make_square_law
    >>> X, y = make_square_law(1000, random_state=0)
    >>> bool((y[X[:, 0] >= 0.5] == 2).mean() > 0.7)
    True
    """
    check_integer("n_points", n_points, 1)
    rng = _random_state(random_state)
    X = rng.random_sample((n_points, 1))
    y = np.where(rng.random_sample(n_points) < _probability_of_two(X[:, 0]), 2, 1).astype(np.int64)
    return X, y


def square_law_posterior(x: ArrayLike, x2: ArrayLike) -> Floats:
    """Return the probability that two samples of `make_square_law` have the same label, its optimal similarity.

    Parameters
    ----------
    x, x2 : array-like
        Samples in [0, 1], with shapes that broadcast.

    Returns
    -------
    ndarray
        The posterior eta(x, x'): the sum over the labels k of eta_k(x) eta_k(x').

    Examples
    --------
    >>> from simtree.datasets import square_law_posterior
    >>> square_law_posterior([0.2, 0.2], [0.3, 0.9]).round(2)
    array([0.68, 0.32])
    """
    first, second = _probability_of_two(_unit_samples("x", x)), _probability_of_two(_unit_samples("x2", x2))
    return np.asarray(first * second + (1.0 - first) * (1.0 - second))


def load_mnist(path: Folder = None, *, part: Literal["train", "test"] = "train") -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read the MNIST handwritten digits from their idx files, plain or compressed with gzip.

    Parameters
    ----------
    path : path-like or None
        Folder of the files (``train-images-idx3-ubyte.gz``, ...). None uses the folder that the environment variable
        ``SIMTREE_DATA`` names, or its subfolder ``mnist``.
    part : {"train", "test"}, default="train"
        Part of the official split: 60,000 training or 10,000 test images.

    Returns
    -------
    X : ndarray of shape (n_images, 784), uint8
        Grey values of the 28 x 28 pixels. Convert them before subtracting: unsigned bytes wrap around.
    y : ndarray of shape (n_images,), uint8
        The digits.

    Examples
    --------
    >>> from simtree.datasets import Path, load_mnist
    >>> import struct, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     images, labels = Path(folder, "train-images-idx3-ubyte"), Path(folder, "train-labels-idx1-ubyte")
    ...     _ = images.write_bytes(struct.pack(">4I", 2051, 2, 28, 28) + bytes(2 * 784))
    ...     _ = labels.write_bytes(struct.pack(">2I", 2049, 2) + bytes([7, 1]))
    ...     X, y = load_mnist(folder)
    >>> X.shape, y
    ((2, 784), array([7, 1], dtype=uint8))
    """
    check_choice("part", part, ("train", "test"))
    folders = _folders(path, "mnist")
    prefix = {"train": "train", "test": "t10k"}[part]
    image_file = _find(folders, [f"{prefix}-images{dot}idx3-ubyte{end}" for dot in "-." for end in ("", ".gz")])
    label_file = _find(folders, [f"{prefix}-labels{dot}idx1-ubyte{end}" for dot in "-." for end in ("", ".gz")])
    images = _read_idx(image_file, magic=2051, item_shape=(28, 28))
    labels = _read_idx(label_file, magic=2049, item_shape=())
    if len(images) != len(labels):
        raise ValueError(
            f"{image_file} holds {len(images)} images and {label_file} holds {len(labels)} labels; use files of one data set."
        )
    return images.reshape(len(images), 784), labels


def load_keystroke(path: Folder = None) -> tuple[Floats, NDArray[np.int64]]:
    """Read the CMU keystroke timings (Killourhy and Maxion 2009): one password, typed 400 times by each of 51 people.

    Parameters
    ----------
    path : path-like or None
        Folder with the file ``cmu_keystroke.npz``, which holds the arrays ``X`` and ``y``. None uses the folder that the
        environment variable ``SIMTREE_DATA`` names.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Timings in seconds.
    y : ndarray of shape (n_samples,)
        Identity of the typist, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> from simtree.datasets import Path, load_keystroke
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "cmu_keystroke.npz"), X=np.zeros((4, 31)), y=[0, 0, 1, 1])
    ...     X, y = load_keystroke(folder)
    >>> X.shape, y
    ((4, 31), array([0, 0, 1, 1]))
    """
    file = _find(_folders(path), ["cmu_keystroke.npz"])
    try:
        # np.load treats a file that is not a zip archive as a single array or a pickle, and its message would be misleading.
        if not zipfile.is_zipfile(file):
            raise zipfile.BadZipFile("not a zip file")
        with np.load(file, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError) as error:
        raise ValueError(f"{file} is not an npz file with plain arrays X and y ({error}); get a fresh copy.") from error
    if X.ndim != 2 or y.shape != X.shape[:1] or X.dtype.kind not in "fiu" or y.dtype.kind not in "iu":
        raise ValueError(
            f"{file} holds X of shape {X.shape} ({X.dtype}) and y of shape {y.shape} ({y.dtype});"
            " it must hold numbers (n, d) and integers (n,)."
        )
    return X.astype(np.float64), y.astype(np.int64)


def _random_state(seed: RandomState) -> np.random.RandomState:
    check: Any = check_random_state  # scikit-learn has no types.
    rng: np.random.RandomState = check(seed)
    return rng


def _random_cells(depth: int, n_features: int, rng: np.random.RandomState) -> tuple[Floats, Floats]:
    lower = np.repeat([[-1.0, 0.0]], n_features, axis=1)
    upper = np.ones((1, 2 * n_features))
    for _ in range(depth):
        nodes = np.arange(len(lower))
        variables = rng.randint(2 * n_features, size=len(nodes))
        values = rng.uniform(lower[nodes, variables], upper[nodes, variables])
        # The children of node i are cells 2i (below the value) and 2i + 1.
        lower, upper = np.repeat(lower, 2, axis=0), np.repeat(upper, 2, axis=0)
        upper[2 * nodes, variables] = values
        lower[2 * nodes + 1, variables] = values
    return lower, upper


def _normalised_exp(logs: Floats) -> Floats:
    weights = np.exp(logs)
    return np.asarray(weights / weights.sum())


def _knots(weights: Floats, last_of_step: NDArray[np.bool_]) -> Floats:
    """Return the rates after each step of the curve, from exactly 0 to exactly 1 despite rounding."""
    rates = np.concatenate([[0.0], np.minimum(np.cumsum(weights), 1.0)[last_of_step]])
    rates[-1] = 1.0
    return rates


def _probability_of_two(x: Floats) -> Floats:
    return np.asarray(0.6 * (x >= 0.5) + 0.2)


def _unit_samples(name: str, values: ArrayLike) -> Floats:
    samples = np.asarray(values, dtype=np.float64)
    if not ((samples >= 0) & (samples <= 1)).all():
        raise ValueError(f"{name} holds NaN or values out of range; give samples from 0 to 1.")
    return samples


def _folders(path: Folder, *subfolders: str) -> list[Path]:
    """Return the folders to search: the given one, or that of SIMTREE_DATA and its subfolders."""
    if path is not None:
        folders = [Path(path)]
    elif root := os.environ.get("SIMTREE_DATA"):
        folders = [Path(root), *(Path(root, name) for name in subfolders)]
    else:
        raise FileNotFoundError(
            "path is None and SIMTREE_DATA is not set; pass the folder of the data, or set SIMTREE_DATA to it."
        )
    if not folders[0].is_dir():
        origin = "SIMTREE_DATA" if path is None else "path"
        raise FileNotFoundError(f"{origin}={str(folders[0])!r} is not a folder; give the folder that holds the data.")
    return folders


def _find(folders: list[Path], names: list[str]) -> Path:
    for folder in folders:
        for name in names:
            if (folder / name).is_file():
                return folder / name
    places = " or ".join(str(folder) for folder in folders)
    raise FileNotFoundError(f"{' or '.join(names)} is not in {places}; put it there, or pass its folder as path.")


def _read_idx(file: Path, *, magic: int, item_shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return the array of an idx file of unsigned bytes, after checking its header against its length."""
    opener: Any = gzip.open if file.suffix == ".gz" else open
    header = struct.Struct(f">{2 + len(item_shape)}I")
    try:
        with opener(file, "rb") as stream:
            start = _read_at_most(stream, header.size)
            if len(start) < header.size:
                raise ValueError(f"{file} ends within its header; get a fresh copy.")
            found_magic, n_items, *found_shape = header.unpack(start)
            if found_magic != magic:
                raise ValueError(
                    f"{file} starts with the number {found_magic}, not {magic}; it is not the idx file that its name says."
                )
            if tuple(found_shape) != item_shape:
                raise ValueError(
                    f"{file} declares items of shape {tuple(found_shape)}; those of MNIST have shape {item_shape}."
                )
            n_bytes = n_items * math.prod(item_shape)
            # Read one byte more than declared, to detect a file that is too long.
            content = _read_at_most(stream, n_bytes + 1)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{file} is not a complete gzip file ({error}); get a fresh copy.") from error
    if len(content) != n_bytes:
        amount = "more" if len(content) > n_bytes else f"only {len(content)}"
        raise ValueError(f"{file} declares {n_bytes} bytes of data and holds {amount}; get a fresh copy.")
    return np.frombuffer(content, dtype=np.uint8).reshape(n_items, *item_shape)


def _read_at_most(stream: IO[bytes], n_bytes: int) -> bytearray:
    # In chunks, because read(n) allocates n bytes: a forged header could ask for terabytes.
    content = bytearray()
    while chunk := stream.read(min(_CHUNK, n_bytes - len(content))):
        content += chunk
    return content
