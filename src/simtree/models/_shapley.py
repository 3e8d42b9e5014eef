"""Explanations of scores that are not sums over features: sampled Shapley values, from a typical pair to the pair itself.

Features of a typical pair are replaced, one after the other, by those of the pair. What a feature changes depends on those
replaced before it, so it is averaged over random orders (Shapley values, by Monte Carlo as in Štrumbelj and Kononenko 2014).
For each order the changes add up to the score minus that of the typical pair, whatever the model is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from simtree._utils.validation import count
from simtree.io._fields import MAX_MODERATE, Fields
from simtree.models._base import Similarity
from simtree.pairs._codes import MISSING
from simtree.pairs._coordinates import SamplePairs
from simtree.pairs._inputs import n_columns
from simtree.pairs._table import TableColumns
from simtree.trees._explanation import Explanation, with_words

Floats = NDArray[np.float64]

# Rows that a typical pair is computed from; more would not change it much.
MAX_ROWS = 10_000
# Half of the median difference of two draws from a normal distribution, in standard deviations.
HALF_DIFFERENCE = 0.4769
# Pairs that are scored for one explanation, and orders of the features at least and at most.
N_SCORED, MIN_ORDERS, MAX_ORDERS = 20_000, 8, 64


@dataclass(frozen=True, eq=False)
class TypicalPair:
    """Values of a pair that says nothing: they differ as much as those of two random samples do.

    Numbers are their mean, less and plus a part of their standard deviation; categories are the two most frequent values. So
    no value of a training sample is kept, but for values that many have.

    Parameters
    ----------
    low, high : ndarrays of shape (n_columns,)
        The two values of each column of samples as a model reads them.
    """

    low: Floats
    high: Floats

    @classmethod
    def of(cls, samples: Any, columns: TableColumns | None = None) -> Self:
        """Return the typical pair of samples.

        Parameters
        ----------
        samples : ndarray or SampleStore of shape (n_samples, n_columns)
            Checked samples.
        columns : TableColumns, optional
            How they were read, if from a table; its categories are the last columns.

        Returns
        -------
        TypicalPair

        Examples
        --------
        >>> pair = TypicalPair.of(np.array([[-1.0], [1.0]]))
        >>> pair.low, pair.high
        (array([-0.4769]), array([0.4769]))
        """
        n = len(samples)
        rows = np.asarray(samples[np.unique(np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(np.int64))], dtype=np.float64)
        n_values = () if columns is None else tuple(columns.n_values)
        n_numbers = rows.shape[1] - len(n_values)
        low, high = _typical_numbers(rows[:, :n_numbers])
        codes = [_most_frequent(rows[:, n_numbers + j], n_own) for j, n_own in enumerate(n_values)]
        return cls(np.append(low, [first for first, _ in codes]), np.append(high, [second for _, second in codes]))

    def _get_state(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high}

    @classmethod
    def _from_state(cls, fields: Fields, n: int) -> Self:
        return cls(fields.moderate("low", (n,)), fields.moderate("high", (n,)))


def _typical_numbers(numbers: Floats) -> tuple[Floats, Floats]:
    """Return two values per column; zeros for columns without any, which no model uses."""
    present = ~np.isnan(numbers)
    n_present = np.maximum(present.sum(axis=0), 1)
    values = np.where(present, numbers, 0.0)
    scale = np.abs(values).max(axis=0)
    scale[scale == 0.0] = 1.0
    values = values / scale  # squares of large values would overflow
    mean = values.sum(axis=0) / n_present
    deviation = np.sqrt((np.where(present, values - mean, 0.0) ** 2).sum(axis=0) / n_present)
    low, high = ((mean + side * HALF_DIFFERENCE * deviation) * np.minimum(scale, MAX_MODERATE / 2.0) for side in (-1.0, 1.0))
    return low, high


def _most_frequent(codes: Floats, n_values: int) -> tuple[float, float]:
    """Return the two most frequent values of a vocabulary; twice the same if there is one, and `MISSING` if there is none."""
    known = codes[(codes >= 0.0) & (codes < n_values)].astype(np.int64)
    if not len(known):
        return MISSING, MISSING
    counts = np.bincount(known)
    order = np.argsort(-counts, kind="stable")
    second = order[1] if len(order) > 1 and counts[order[1]] else order[0]
    return float(order[0]), float(second)


def explain_any(
    model: Similarity, typical: TypicalPair, samples: NDArray[Any], *, feature_names: Sequence[str] | None = None
) -> Explanation:
    """Explain the score of a pair by any model, from that of a typical pair on.

    Parameters
    ----------
    model : Similarity
        The fitted model.
    typical : TypicalPair
        Typical pair of its training samples.
    samples : ndarray of shape (2, n_columns)
        The two samples, checked and read.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in ``fit``, or x0, x1, ...

    Returns
    -------
    Explanation
        Contribution of each feature as given; ``base`` is the mean score of typical pairs.
    """
    names = _names(model, feature_names)
    x, x2 = np.asarray(samples, dtype=np.float64)
    contributions, base, score = shapley_values(model, typical, x, x2)
    found = Explanation(names, x, x2, contributions, base, score)
    return found if model.columns_ is None else with_words(found, model.columns_, samples)


def shapley_values(model: Similarity, typical: TypicalPair, x: Floats, x2: Floats) -> tuple[Floats, float, float]:
    """Return the contribution of each column, the mean score of typical pairs, and the score of the pair.

    Which sample of a typical pair has the lower value is random for each column and order, and each is taken both ways. So
    exchanging x and x2 changes nothing.

    Parameters
    ----------
    model : Similarity
        The fitted model.
    typical : TypicalPair
        Where the features start.
    x, x2 : ndarrays of shape (n_columns,)
        The two samples.

    Returns
    -------
    contributions : ndarray of shape (n_columns,)
        They add up to the score minus the base.
    base, score : float
        Scores of a typical pair and of the pair.
    """
    n = len(x)
    n_orders = int(np.clip(N_SCORED // (2 * (n + 1)), MIN_ORDERS, MAX_ORDERS))
    rng = np.random.default_rng(0)
    added = np.zeros(n)
    base = 0.0
    for _ in range(n_orders):
        # Entry k of the ranks is the step in which feature k is replaced; row s has those of the first s steps.
        ranks = rng.permutation(n)
        replaced = ranks < np.arange(n + 1)[:, None]
        swapped = rng.integers(2, size=n).astype(bool)
        one, other = np.where(swapped, typical.high, typical.low), np.where(swapped, typical.low, typical.high)
        scores = np.mean(
            [
                _scores(model, np.where(replaced, x, first), np.where(replaced, x2, second))
                for first, second in ((one, other), (other, one))
            ],
            axis=0,
        )
        added += np.diff(scores)[ranks]
        base += float(scores[0])
    return added / n_orders, base / n_orders, float(scores[-1])


def _scores(model: Similarity, A: Floats, B: Floats) -> Floats:
    """Return the scores of rows of A with the same rows of B."""
    rows = np.arange(len(A), dtype=np.int32)
    return model._score_pairs(SamplePairs(model._prepare(A), model._prepare(B), rows, rows))


def _names(model: Similarity, feature_names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names that are given, or those seen in ``fit``, after checking their number."""
    n = n_columns(model)
    own = getattr(model, "feature_names_in_", None) if model.columns_ is None else model.columns_.names
    names = own if feature_names is None else feature_names
    if names is not None and len(names) != n:
        raise ValueError(f"feature_names has {count(len(names), 'name')}; X had {count(n, 'feature')}.")
    return tuple(f"x{j}" for j in range(n)) if names is None else tuple(map(str, names))
