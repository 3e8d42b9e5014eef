"""Validation of parameters: each error is one sentence with the parameter, its value and the remedy."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return the value as an int if it is an integer in [low, high]."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not an integer; give an int {_range(low, high)}.")
    number = int(value)
    if number < low or (high is not None and number > high):
        raise ValueError(f"{name}={value!r} is out of range; give an int {_range(low, high)}.")
    return number


def check_real(name: str, value: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> float:
    """Return the value as a float if it is a number between low and high; an open bound is excluded."""
    between = f"{'above' if open_low else 'from'} {low:g} {'to below' if open_high else 'to'} {high:g}"
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is not a number; give one {between}.")
    number = float(value)
    if not low <= number <= high or (open_low and number == low) or (open_high and number == high):
        raise ValueError(f"{name}={value!r} is out of range; give a number {between}.")
    return number


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> Any:
    """Return the value if it is one of the choices."""
    allowed = list(choices)
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in allowed):
        raise ValueError(f"{name}={value!r} is unknown; choose one of {', '.join(map(repr, allowed))}.")
    return value


def check_n_jobs(value: Any) -> int | None:
    """Return the value if it is a valid number of parallel jobs."""
    if value is not None and (not isinstance(value, numbers.Integral) or value == 0):
        raise ValueError(f"n_jobs={value!r} is not a number of parallel jobs; give a positive int, -1 for all cores, or None.")
    return None if value is None else int(value)


def refuse_pipeline(name: str, value: Any) -> None:
    """Raise if a scikit-learn Pipeline is given as a similarity, and name the way out."""
    if hasattr(value, "steps") and not hasattr(value, "pair_score"):
        raise TypeError(f"{name} is a Pipeline, which cannot score pairs; give simtree.from_pipeline(pipeline) instead.")


def n_to_draw(name: str, value: Any, total: int) -> int:
    """Return how many of ``total`` a parameter such as ``max_features`` selects: None all, an int a number, a float a share."""
    if value is None:
        return total
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return min(check_integer(name, value, 1), total)
    return max(1, int(check_real(name, value, 0.0, 1.0, open_low=True) * total))


def check_pair_labels(name: str, labels: ArrayLike, n_pairs: int) -> NDArray[np.bool_]:
    """Return the labels of pairs (bool, 0/1 or -1/+1) as booleans (True: same); same and different pairs must both occur."""
    found = np.asarray(labels)
    if found.shape != (n_pairs,):
        raise ValueError(f"{name} has shape {found.shape}; give one label for each of the {n_pairs} pairs.")
    if found.dtype != np.bool_:
        values = set(found.tolist())
        if not (values <= {0, 1} or values <= {-1, 1}):
            some = ", ".join(sorted(map(repr, values))[:5])
            raise ValueError(f"{name} holds the pair labels {some}; they must be bool, 0/1 or -1/+1.")
        found = np.equal(found, 1)
    n_same = int(np.count_nonzero(found))
    if n_same in (0, n_pairs):
        kind = "different" if n_same == 0 else "same"
        raise ValueError(f"{name} holds {count(n_pairs, f'{kind} pair')} only; give both same and different pairs.")
    return np.asarray(found, dtype=np.bool_)


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in the singular or the plural.

    Parameters
    ----------
    n : int
        The number.
    noun : str
        The noun in the singular.
    plural : str, optional
        Its plural; by default with an s.

    Returns
    -------
    str

    Examples
    --------
    >>> count(1, "feature"), count(1200, "class", "classes")
    ('1 feature', '1,200 classes')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def _range(low: int, high: int | None) -> str:
    return f"of at least {low}" if high is None else f"from {low} to {high}"
