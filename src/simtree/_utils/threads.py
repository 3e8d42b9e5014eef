"""Threads for short tasks: joblib polls for results every 10 ms, which is longer than many of our tasks take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import effective_n_jobs

T = TypeVar("T")


def in_threads(work: Callable[[T], None], parts: Sequence[T], n_jobs: int | None) -> None:
    """Call ``work`` on each part in ``n_jobs`` threads, with joblib's meaning of ``n_jobs``, and raise the first exception.

    Examples
    --------
    >>> found = []
    >>> in_threads(found.append, [1, 2, 3], n_jobs=2)
    >>> sorted(found)
    [1, 2, 3]
    """
    n_threads = min(effective_n_jobs(n_jobs), len(parts))
    if n_threads < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            for future in [pool.submit(work, part) for part in parts]:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
