"""Progress reports: scikit-learn's callbacks where they exist, and a progress bar on the terminal for ``verbose=1``."""

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
        """Stand-in for the class of scikit-learn."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged, in place of scikit-learn's decorator."""
        return method


__all__ = ["CallbackSupportMixin", "pairs_watcher", "reported", "tell", "watched_pairs", "with_callbacks"]

T = TypeVar("T")
_WATCHER: ContextVar[Callable[[int], None]] = ContextVar("simtree_pairs_watcher", default=lambda n_pairs: None)


@contextmanager
def watched_pairs(tell: Callable[[int], None]) -> Iterator[None]:
    """Call ``tell`` with the number of pairs of each block that is scored inside this context.

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
    """Return the function to call with the number of scored pairs.

    Call this in the thread of the caller: worker threads do not inherit the context variable.
    """
    return _WATCHER.get()


def reported(steps: Iterable[T], estimator: Any, *, n_steps: int, what: str, verbose: int) -> Iterator[T]:
    """Yield the steps, and report each of them to the callbacks of the estimator and on the terminal.

    Parameters
    ----------
    steps : iterable
        Results of the steps, as they become available.
    estimator : estimator or None
        Estimator whose callbacks are called.
    n_steps : int
        Number of steps.
    what : str
        Description of the work.
    verbose : int
        0 shows nothing; from 1 on, a progress bar is shown on a terminal (if rich is installed), or about ten lines otherwise.

    Yields
    ------
    object
        The results of the steps.
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


def tell(sentence: str, *, verbose: int) -> None:
    """Print a sentence on stderr, where progress is shown, if ``verbose``."""
    if verbose:
        print(sentence, file=sys.stderr, flush=True)


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
