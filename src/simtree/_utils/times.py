"""Times of samples: dates or numbers, as seconds."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simtree._utils.matrices import check_unmasked


def check_times(time: Any, n_samples: int) -> NDArray[np.float64]:
    """Return the time of each sample as a number: that of a date in seconds since 1970, and numbers as they are.

    Parameters
    ----------
    time : datetime or number or array-like of shape (n_samples,)
        One time for all samples, or one per sample; dates without a time zone are UTC.
    n_samples : int
        Number of samples.

    Returns
    -------
    ndarray of shape (n_samples,)
        The times.
    """
    check_unmasked("time", time)
    values = np.asarray(time)
    if values.ndim == 0:
        values = np.repeat(values, n_samples)
    if values.shape != (n_samples,):
        raise ValueError(f"time has shape {values.shape}; give one time, or one per sample ({n_samples:,}).")
    if values.dtype.kind == "M":
        return _check_finite(np.where(np.isnat(values), np.nan, _seconds(values)), time)
    if values.dtype == object:
        values = np.array([_timestamp(value) for value in values.tolist()], dtype=object)
    try:
        return _check_finite(values.astype(np.float64), time)
    except (TypeError, ValueError):
        raise _bad_times(time) from None


def _seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    return values.astype("datetime64[us]").astype(np.int64) / 1e6


def _timestamp(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)).timestamp()
    return value


def _check_finite(seconds: NDArray[np.float64], given: Any) -> NDArray[np.float64]:
    if not np.isfinite(seconds).all():
        raise _bad_times(given)
    return seconds


def _bad_times(given: Any) -> ValueError:
    some = np.asarray(given, dtype=object).ravel()[:1].tolist()
    return ValueError(f"time holds {some[0]!r} or a missing value; give dates (naive ones are UTC), or seconds since 1970.")
