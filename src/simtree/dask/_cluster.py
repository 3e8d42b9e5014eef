"""A Dask cluster as simtree uses it: data that all workers have, calls with readable names, and what happens to lost work.

Results come in the order of the calls. What a lost worker was doing is done again by others: Dask does so with what it can
compute again, and data that were sent from here are sent once more. Nobody waits for ever for workers that do not come back.
"""

from __future__ import annotations

import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any

from dask.sizeof import sizeof
from distributed import Client, KilledWorker, default_client, get_client, wait

from simtree.pairs._sources import PairSource

# Seconds after each attempt to cancel: what was submitted last reaches the scheduler on another connection, maybe after the
# first attempt.
CANCEL_PAUSES = (0.05, 0.2, 0.0)
# Seconds between two looks at the workers, and how long there may be none before waiting for them is given up.
SECONDS_PER_LOOK, MAX_SECONDS_ALONE = 2.0, 30.0
# How often a call is made again whose data were lost with a worker.
MAX_ATTEMPTS = 5
# Larger arguments are sent to a worker directly, not through the scheduler.
MAX_ARGUMENT_BYTES = 1 << 21
# Memory of a worker without a limit, as it is assumed.
UNLIMITED = 4 << 30
# Share of the memory of a worker that an array may take to be sent to all of them.
SHARED_MEMORY = 0.2
# Calls that wait at a worker, per thread, so that it is never idle.
CALLS_PER_THREAD = 2


def find_client(client: Client | None) -> Client:
    """Return the given client, or the one of the surrounding program; raise if there is none."""
    if client is not None:
        if not isinstance(client, Client):
            raise TypeError(f"client={client!r} is not a dask.distributed.Client; give one, or None for the current one.")
        return client
    try:
        return get_client()  # also inside a task
    except ValueError:
        pass
    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "client=None, and there is no current Dask client; create one with dask.distributed.Client()."
        ) from None


class Shared:
    """Something that workers have in memory, sent once.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    value : object
        What is sent.
    to_all : bool, default=True
        Whether all workers get it, or one of them.
    """

    def __init__(self, cluster: Cluster, value: Any, *, to_all: bool = True) -> None:
        self._cluster, self._value, self._to_all = cluster, value, to_all
        self._future: Any = None

    def future(self) -> Any:
        """Return the future of the value; it is sent again if it was lost with all workers that had it."""
        if self._future is None or self._future.status in ("cancelled", "lost"):
            self._future = self._cluster.send(self._value, to_all=self._to_all)
        return self._future


class Cluster:
    """The workers of a client.

    Parameters
    ----------
    client : Client, optional
        The client; by default the current one.
    """

    def __init__(self, client: Client | None = None) -> None:
        self.client = find_client(client)
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        if not workers:
            self.client.wait_for_workers(1, timeout=MAX_SECONDS_ALONE)
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        #: Memory that the smallest worker may take, in bytes.
        self.memory = min((worker["memory_limit"] or UNLIMITED for worker in workers), default=UNLIMITED)
        self.n_workers = len(workers)
        self.n_threads = sum(worker["nthreads"] for worker in workers)

    def has_room_for(self, n_bytes: int) -> bool:
        """Return whether every worker can have an array of this size."""
        return n_bytes <= SHARED_MEMORY * self.memory

    def send(self, value: Any, *, to_all: bool = False) -> Any:
        """Return the future of a value that is sent to one worker, or to all of them, and not through the scheduler."""
        with _no_size_warning():
            try:
                return self.client.scatter([value], broadcast=to_all, hash=False, direct=True)[0]
            except (OSError, TimeoutError):  # a worker has just been lost, or workers cannot be reached from here
                if not self.client.nthreads():
                    raise _all_lost() from None
                return self.client.scatter([value], broadcast=to_all, hash=False, direct=False)[0]

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a call whose name begins with ``what``; large arguments are sent directly."""
        sent = [self.send(one) if _n_bytes(one) > MAX_ARGUMENT_BYTES else one for one in arguments]
        with _no_size_warning():
            return self.client.submit(function, *sent, key=new_key(what), pure=False)

    def run(
        self,
        calls: Iterable[Callable[[], Any]],
        *,
        n_waiting: int | None = None,
    ) -> Iterator[Any]:
        """Yield the results of calls in order.

        Parameters
        ----------
        calls : iterable of callables
            Each makes a call and returns its future. It is called again if data of the call were lost.
        n_waiting : int, optional
            Number of calls that are made before the first result is waited for.

        Yields
        ------
        object
            The result of a call.
        """
        n_waiting = n_waiting or CALLS_PER_THREAD * self.n_threads + 1
        # Batches of one call, so many of which are waited for as if they were one.
        return self._run(([make] for make in calls), lambda batch: n_waiting)

    def run_batches(self, batches: Iterable[Sequence[Callable[[], Any]]]) -> Iterator[Any]:
        """Yield the results of batches of calls in order; a batch is called when the first result of the last one is there."""
        return self._run(batches, len)

    def _run(self, batches: Iterable[Sequence[Callable[[], Any]]], n_waiting: Callable[[Sequence[Any]], int]) -> Iterator[Any]:
        waiting: deque[tuple[Callable[[], Any], Any]] = deque()
        try:
            for batch in batches:
                waiting.extend((make, make()) for make in batch)
                while len(waiting) >= n_waiting(batch):
                    yield self._result(*waiting[0])
                    waiting.popleft()
            while waiting:
                yield self._result(*waiting[0])
                waiting.popleft()
        finally:  # on Ctrl-C, and on an error: what has not begun yet is not done any more
            if waiting:
                self.cancel([future for _, future in waiting])

    def map(self, what: str, function: Callable[..., Any], shared: Any, parts: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield ``function(shared, *part)`` for each part, in order; all workers have what is shared."""
        everywhere = shared if isinstance(shared, Shared) else Shared(self, shared)

        def made(part: tuple[Any, ...]) -> Callable[[], Any]:
            return lambda: self.call(what, function, everywhere.future(), *part)

        return self.run(made(part) for part in parts)

    def get(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        """Return the futures of some keys of a graph."""
        with _no_size_warning():
            return list(self.client.get(graph, list(keys), sync=False))

    def _get_one(self, graph: dict[Any, Any], key: Any) -> Any:
        return self.get(graph, [key])[0]

    def gather(self, graph: dict[Any, Any], keys: Sequence[Any]) -> list[Any]:
        """Return the results of some keys of a graph, in order."""
        futures = iter(self.get(graph, keys))
        calls = [once_then(next(futures), partial(self._get_one, graph, key)) for key in keys]
        return list(self.run(calls, n_waiting=len(keys) + 1))

    def cancel(self, futures: Sequence[Any]) -> None:
        """Cancel what has not begun; what runs ends by itself, and its result is thrown away."""
        for pause in CANCEL_PAUSES:
            if self.client.status == "running":
                self.client.cancel(list(futures))
                time.sleep(pause)

    def _result(self, make: Callable[[], Any], future: Any) -> Any:
        """Return the result of a call, made again if its data were lost; raise the error of the task itself."""
        for _ in range(MAX_ATTEMPTS):
            self._wait(future)
            status = future.status
            if status == "finished":
                try:
                    return future.result()
                except CancelledError:  # lost between the two lines
                    status = "lost"
            if status == "error":
                error = future.exception()
                if isinstance(error, KilledWorker):
                    raise RuntimeError(
                        f"{error.allowed_failures + 1} workers died one after the other while they did the same task, mostly "
                        "for want of memory; give workers more memory, or the model a smaller n_pairs."
                    ) from None
                raise error.with_traceback(future.traceback()) from None
            if self.client.status != "running":
                raise RuntimeError("the connection to the Dask scheduler was lost; is it still running?")
            future = make()
        raise RuntimeError(
            f"the data of a task were lost {MAX_ATTEMPTS} times with the workers that had them; are they stable?"
        )

    def _wait(self, future: Any) -> None:
        """Wait until a future is done, lost or cancelled; raise if all workers are gone for too long."""
        alone_since = None
        while True:
            try:
                wait([future], timeout=SECONDS_PER_LOOK)
                return
            except CancelledError:
                return
            except TimeoutError:
                pass
            if self.client.status != "running" or self.client.nthreads():
                alone_since = None
                if self.client.status != "running":
                    return
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > MAX_SECONDS_ALONE:
                raise _all_lost()


def new_key(what: str) -> str:
    """Return a unique key that the dashboard shows as ``what``."""
    return f"{what}-0{uuid.uuid4().hex}"


def once_then(future: Any, make: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that returns a future at first, and makes it again later."""
    futures = [future]
    return lambda: futures.pop() if futures else make()


def _all_lost() -> RuntimeError:
    return RuntimeError("all workers of the Dask cluster were lost, and none has come back; start workers, and try again.")


def _n_bytes(value: Any) -> int:
    """Return the approximate size of an argument."""
    return sum(map(sizeof, value.content())) if isinstance(value, PairSource) else int(sizeof(value))


@contextmanager
def _no_size_warning() -> Iterator[None]:
    """Silence the advice to scatter what is large: row numbers are part of the graph, so that Dask can compute it again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield
