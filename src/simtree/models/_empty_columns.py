"""Columns of training samples that have no value at all."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import extremes, has_missing
from simtree._utils.validation import count
from simtree.pairs._column_facts import warn_of_empty


def empty_columns(samples: NDArray[Any], names: Sequence[str] | None) -> NDArray[np.int64]:
    """Return the columns without any value, with a warning that names them; raise if there is nothing else.

    Parameters
    ----------
    samples : ndarray of shape (n_samples, n_columns)
        Training samples.
    names : sequence of str or None
        Names of the columns.

    Returns
    -------
    ndarray of int
        Numbers of columns.

    Examples
    --------
    >>> empty_columns(np.array([[1.0, np.nan], [np.nan, 2.0]]), None)
    array([], dtype=int64)
    """
    empty = np.flatnonzero(np.isnan(extremes(samples, axis=0)[0])) if has_missing(samples) else np.empty(0, dtype=np.int64)
    if not len(empty):
        return empty
    if len(empty) == samples.shape[1]:
        raise ValueError(f"X has no value in any of its {count(len(empty), 'column')}; give samples with values.")
    warn_of_empty([str(column) if names is None else repr(str(names[column])) for column in empty.tolist()])
    return empty


@contextmanager
def named_already() -> Iterator[None]:
    """Do not repeat the warning of columns without any value, for models that another one fits after it has named them.

    Such models may know columns by number only, and what is empty in a fold need not be so in all samples.
    """
    with warnings.catch_warnings():  # once for all threads, which share the filters
        warnings.filterwarnings("ignore", "X has no value in column", UserWarning)
        yield
