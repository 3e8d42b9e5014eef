"""Threads for short tasks: joblib polls for results every 10 ms, which is longer than many of our tasks take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from joblib import effective_n_jobs
from sklearn import config_context, get_config
from threadpoolctl import threadpool_limits

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


def one_blas_thread() -> threadpool_limits:
    """Return a context in which matrices are multiplied by one thread each: for small ones, threads mostly wait for each other.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with one_blas_thread():
    ...     max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
    1
    """
    return threadpool_limits(1, "blas")


def submitted(work: Sequence[Callable[[], T]], n_threads: int) -> list[Future[T]]:
    """Start calls of many seconds in threads of their own, with the settings of scikit-learn of this thread.

    What they call uses one OpenMP thread each, because these threads are the parallel ones.

    Examples
    --------
    >>> [future.result() for future in submitted([lambda: 1, lambda: 2], n_threads=2)]
    [1, 2]
    """
    settings = get_config()

    def with_settings(call: Callable[[], T]) -> T:
        with config_context(**settings):
            return call()

    pool = ThreadPoolExecutor(n_threads, initializer=threadpool_limits, initargs=(1, "openmp"))
    futures = [pool.submit(with_settings, call) for call in work]
    pool.shutdown(wait=False)
    return futures
