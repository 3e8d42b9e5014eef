"""Progress of long work: scikit-learn's callbacks where they exist, and a bar on the terminal for ``verbose=1``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Stands in for scikit-learn's."""
        return method


__all__ = ["CallbackSupportMixin", "pairs_watcher", "reported", "watched_pairs", "with_callbacks"]

T = TypeVar("T")
_WATCHER: ContextVar[Callable[[int], None]] = ContextVar("simtree_pairs_watcher", default=lambda n_pairs: None)


@contextmanager
def watched_pairs(tell: Callable[[int], None]) -> Iterator[None]:
    """Inside this context ``tell`` hears of each block of pairs that was scored, and how many they are.

    Examples
    --------
    >>> from simtree import DistanceSimilarity
    >>> plain = DistanceSimilarity(metric="euclidean").fit([[0.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with watched_pairs(print):
    ...     scores = plain.pair_score([[0, 1], [0, 2]], [[0.0], [1.0], [2.0]])
    2
    """
    token = _WATCHER.set(tell)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def pairs_watcher() -> Callable[[int], None]:
    """Who is to be told of scored pairs; ask in the thread that was called, for those at work do not know."""
    return _WATCHER.get()


def reported(steps: Iterable[T], estimator: Any, *, n_steps: int, what: str, verbose: int) -> Iterator[T]:
    """The steps, each told to the callbacks of the estimator and to whoever watches.

    Parameters
    ----------
    steps : iterable
        Results of the steps, in order, as they come.
    estimator : estimator
        Its callbacks are told.
    n_steps : int
        How many steps there will be.
    what : str
        Name of the work.
    verbose : int
        0 shows nothing. From 1 on a bar is shown on a terminal (with rich, if it is installed), or some lines elsewhere.
    """
    context = estimator._init_callback_context(max_subtasks=n_steps) if hasattr(estimator, "_init_callback_context") else None
    if context is not None:
        context.call_on_fit_task_begin(estimator=estimator)
    for step in _shown(steps, n_steps, what) if verbose else steps:
        if context is not None:
            part = context.subcontext(task_name=what)
            part.call_on_fit_task_begin(estimator=estimator)
            part.call_on_fit_task_end(estimator=estimator)
        yield step
    if context is not None:
        context.call_on_fit_task_end(estimator=estimator)


def _shown(steps: Iterable[T], n_steps: int, what: str) -> Iterator[T]:
    if sys.stderr.isatty():
        try:
            from rich.console import Console
            from rich.progress import track
        except ImportError:
            pass
        else:
            yield from track(steps, description=what, total=n_steps, console=Console(stderr=True))
            return
    tenth = max(1, n_steps // 10)
    for done, step in enumerate(steps, start=1):
        if done % tenth == 0 or done == n_steps:
            print(f"{what}: {done} of {n_steps}", file=sys.stderr, flush=True)
        yield step
