"""How large, and how small, the values of samples may be for the coordinates of their pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from simtree._utils.matrices import MAX_FLOAT, check_squares

# Largest absolute value of a feature with which a coordinate cannot overflow, by the number of features; half of the exact
# limit for sums over features, to allow for rounding.
_MAX_VALUES: dict[str, Callable[[int], float]] = {
    "abs_diff": lambda n: MAX_FLOAT / 2,
    "sum": lambda n: MAX_FLOAT / 2,
    "product": lambda n: MAX_FLOAT**0.5,
    "dot": lambda n: (MAX_FLOAT / n) ** 0.5 / 2,
    "cosine": lambda n: (MAX_FLOAT / n) ** 0.5 / 2,
    "euclidean": lambda n: (MAX_FLOAT / n) ** 0.5 / 4,
    "manhattan": lambda n: MAX_FLOAT / n / 4,
}


def max_value(kinds: Sequence[str], n_features: int) -> tuple[float, str]:
    """Return the largest absolute value of a feature with which no coordinate overflows, and what requires it.

    Kernels compute in float64, so float32 samples are always within it. Products with directions are checked elsewhere.

    Parameters
    ----------
    kinds : sequence of str
        Names of kinds, see `simtree.pairs._coordinates`.
    n_features : int
        Number of features.

    Returns
    -------
    limit : float
        The largest absolute value.
    needed_by : str
        The kinds with this limit, for an error message.

    Examples
    --------
    >>> limit, needed_by = max_value(["abs_diff", "sum", "cosine"], n_features=4)
    >>> f"{needed_by}: {limit:.3g}"
    'coordinates of kind cosine: 3.35e+153'
    """
    limits = {kind: _MAX_VALUES[kind](max(n_features, 1)) for kind in kinds if kind in _MAX_VALUES}
    limit = min(limits.values(), default=MAX_FLOAT)
    return limit, "coordinates of kind " + " and ".join(kind for kind, own in limits.items() if own == limit)


def check_training_values(samples: NDArray[Any], kinds: Sequence[str]) -> None:
    """Raise if the products of which some coordinates consist vanish in all samples.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_features)
        Training samples.
    kinds : sequence of str
        Names of kinds, see `simtree.pairs._coordinates`.
    """
    squared = [kind for kind in kinds if kind in ("product", "dot", "cosine", "euclidean")]
    if squared:
        check_squares(samples, "coordinates of kind " + " and ".join(squared))
