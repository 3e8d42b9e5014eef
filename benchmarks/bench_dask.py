"""Models on a Dask cluster: time, traffic and memory, with worker processes on this machine.

    python benchmarks/bench_dask.py                          # everything, in the sizes of the goals
    python benchmarks/bench_dask.py --quick fit traffic      # some parts, on less data

Wall-clock times mean something on an idle machine only, so CPU times of all processes are printed beside them.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from simtree import DistanceSimilarity, SimilarityForest
from simtree import dask as simdask
from simtree.dask import _samples
from simtree.experiments._results import markdown_table
from simtree.growing._bagging import draw_bag
from simtree.growing._grower import sample_both_kinds
from simtree.pairs._sampling import PairSampler

MEGABYTE = 1e6


@dataclass(frozen=True)
class Size:
    """Sizes of all parts."""

    n_trees: int
    n_pairs: int
    n_samples: int
    n_features: int
    n_rows: int
    n_wide: int
    n_chunks: int
    n_queries: int
    n_compared: tuple[int, ...]
    n_empty: int
    memory: str = "1GB"


SIZES = {
    "full": Size(40, 100_000, 20_000, 64, 2_000_000, 128, 100, 100, (4_473, 14_143, 44_722), 200),
    "default": Size(40, 100_000, 20_000, 64, 2_000_000, 128, 100, 100, (4_473, 14_143), 200),
    "quick": Size(8, 20_000, 5_000, 32, 400_000, 128, 20, 20, (1_415, 4_473), 100),
    "tiny": Size(2, 500, 400, 4, 2_000, 8, 4, 3, (101, 201), 3),
}


@contextmanager
def cluster(n_workers: int, memory: str | float = "4GB") -> Iterator[Client]:
    """Start worker processes with one thread each."""
    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=n_workers, memory_limit=memory, **options) as made, Client(made) as client:
        yield client


def people(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of identities with four samples each."""
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) // 4
    X = rng.normal(size=(y[-1] + 1, n_features))[y] + rng.normal(size=(n_samples, n_features))
    return X.astype(np.float32), y


def made_rows(block_info: Any = None) -> np.ndarray:
    """Return the rows of a chunk, as if they were read from somewhere."""
    (start, stop), (_, n_features) = block_info[None]["array-location"]
    return np.random.default_rng(start).random((stop - start, n_features), dtype=np.float32)


def cpu_seconds(client: Client | None) -> float:
    """Return the CPU time of this program and of all workers."""
    return time.process_time() + (sum(client.run(time.process_time).values()) if client is not None else 0.0)


def timed(work: Callable[[], Any], client: Client | None = None) -> tuple[float, float]:
    """Return wall-clock and CPU seconds."""
    before, start = cpu_seconds(client), time.perf_counter()
    work()
    return time.perf_counter() - start, cpu_seconds(client) - before


def moved(client: Client) -> int:
    """Return the bytes that workers have received from each other."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def memory_of(dask_worker: Any) -> int:
    """Return the memory of a worker as it measures itself."""
    return int(dask_worker.monitor.get_process_memory())


def reset_peak() -> int:
    """Forget the peak of the memory of this process, and return what it takes now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def status(name: str) -> int:
    """Return an entry of the status of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def peak() -> int:
    """Return the peak of the memory of this process since it was reset."""
    return status("VmHWM")


def bench_fit(size: Size) -> dict[str, Any]:
    """Fit with one worker, with two, and with two threads here."""
    X, y = people(size.n_samples, size.n_features)
    forest = SimilarityForest(n_estimators=size.n_trees, n_pairs=size.n_pairs, random_state=0)
    SimilarityForest(n_estimators=1, n_pairs=500, random_state=0).fit(X, y)  # loads the kernels
    found: dict[str, tuple[float, float]] = {"threads": timed(lambda: forest.set_params(n_jobs=2).fit(X, y))}
    for n_workers in (1, 2):
        with cluster(n_workers) as client:
            small = SimilarityForest(n_estimators=2 * n_workers, n_pairs=500, random_state=0)
            simdask.fit(small, X[:1000], y[:1000], client=client)
            found[f"{n_workers} workers"] = timed(lambda client=client: simdask.fit(forest, X, y, client=client), client)
    (one, _), (two, cpu_two), (threads, cpu_threads) = found["1 workers"], found["2 workers"], found["threads"]
    return {
        "wall time, one worker over two": one / two,
        "wall time, two workers over n_jobs=2": two / threads,
        "CPU time, two workers over n_jobs=2": cpu_two / cpu_threads,
        "wall time of two workers (s)": two,
        "CPU time per tree (s)": cpu_threads / size.n_trees,
    }


def bench_overhead(size: Size) -> dict[str, Any]:
    """Grow trees of one split on a few pairs, so that all that is measured is the way there and back."""
    X, y = people(400, 4)
    forest = SimilarityForest(n_estimators=size.n_empty, n_pairs=50, max_depth=1, random_state=0)
    with cluster(2) as client:
        simdask.fit(forest, X, y, client=client)
        here = timed(lambda: forest.fit(X, y))
        sent = min(timed(lambda: simdask.fit(forest, X, y, client=client), client) for _ in range(3))
        chunks = da.from_array(X, chunks=(40, 4))
        with _no_room():
            routed = min(timed(lambda: simdask.fit(forest, chunks, y, client=client), client) for _ in range(2))
    n = size.n_empty
    return {
        "per tree, samples everywhere: wall (ms)": 1e3 * (sent[0] - here[0]) / n,
        "per tree, samples everywhere: CPU (ms)": 1e3 * (sent[1] - here[1]) / n,
        "per tree, rows from 10 chunks: wall (ms)": 1e3 * (routed[0] - here[0]) / n,
        "per tree and chunk: CPU (ms)": 1e3 * (routed[1] - sent[1]) / n / 10,
    }


@contextmanager
def _no_room() -> Iterator[None]:
    from simtree.dask import _cluster

    before, _cluster.SHARED_MEMORY = _cluster.SHARED_MEMORY, 0.0
    try:
        yield
    finally:
        _cluster.SHARED_MEMORY = before


def bench_traffic(size: Size) -> dict[str, Any]:
    """Grow trees of one split on rows of an array that no worker has room for."""
    y = np.arange(size.n_rows) // 4
    chunk = size.n_rows // size.n_chunks
    X = da.map_blocks(made_rows, chunks=((chunk,) * size.n_chunks, (size.n_wide,)), dtype=np.float32, meta=np.empty((0, 0)))
    n_trees = 4
    weights: list[int] = []
    drawn = _samples.renumbered

    def counting(pairs: Any) -> Any:
        rows, local = drawn(pairs)
        weights.append(len(rows) * size.n_wide * 4)
        return rows, local

    forest = SimilarityForest(n_estimators=n_trees, n_pairs=size.n_pairs, max_depth=1, random_state=0)
    with cluster(2, size.memory) as client, _no_room():
        _samples.renumbered = counting
        before = moved(client)
        try:
            wall, _ = timed(lambda: simdask.fit(forest, X, y, client=client), client)
        finally:
            _samples.renumbered = drawn
        between = moved(client) - before
        peaks = client.run(peak).values()
    weight = sum(weights[:n_trees])
    return {
        "distinct rows of a tree (MB)": weight / n_trees / MEGABYTE,
        "bytes moved over what distinct rows weigh": between / weight,
        "peak memory of a worker (MB)": max(peaks) / MEGABYTE,
        "wall time of the fit (s)": wall,
    }


def bench_search(size: Size) -> dict[str, Any]:
    """Search a gallery in Parquet files with little memory, and compare with a search here."""
    rng = np.random.default_rng(0)
    model = DistanceSimilarity(metric="euclidean").fit(*people(200, size.n_wide))
    queries = rng.random((size.n_queries, size.n_wide), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        rows = size.n_rows // size.n_chunks
        for number in range(size.n_chunks):
            part = np.random.default_rng(number).random((rows, size.n_wide), dtype=np.float32)
            pd.DataFrame(part, columns=[f"x{j}" for j in range(size.n_wide)]).to_parquet(f"{folder}/part.{number}.parquet")
        with cluster(2, size.memory) as client:
            gallery = dd.read_parquet(folder)
            result: list[Any] = []
            wall, cpu = timed(lambda: result.append(simdask.top_k(model, queries, gallery, client=client)), client)
            peaks = client.run(peak).values()
        best = [(np.empty((size.n_queries, 0)), np.empty((size.n_queries, 0), dtype=np.int64))]
        for number in range(size.n_chunks):
            part = np.random.default_rng(number).random((rows, size.n_wide), dtype=np.float32)
            scores, found = model.top_k(queries, part)
            scores, found = np.hstack([best[0][0], scores]), np.hstack([best[0][1], found + number * rows])
            order = np.lexsort((found, -scores), axis=1)[:, :10]
            best[0] = np.take_along_axis(scores, order, axis=1), np.take_along_axis(found, order, axis=1)
    exact = all(np.array_equal(one, other) for one, other in zip(result[0], best[0], strict=True))
    return {
        "rows": size.n_rows,
        "exact": exact,
        "peak memory of a worker (MB)": max(peaks) / MEGABYTE,
        "wall time (s)": wall,
        "CPU per query and row (ns)": 1e9 * cpu / size.n_queries / size.n_rows,
    }


def bench_evaluate(size: Size) -> dict[str, Any]:
    """Compare all pairs, and measure the memory of workers above that of idle ones."""
    model = DistanceSimilarity(metric="euclidean").fit(*people(200, 8))
    found: dict[str, Any] = {}
    with cluster(2, size.memory) as client:
        simdask.evaluate(model, *people(200, 8), n_pairs=None, client=client)
        for n in size.n_compared:
            X, y = people(n, 8)
            idle = client.run(reset_peak)
            wall, cpu = timed(lambda X=X, y=y: simdask.evaluate(model, X, y, n_pairs=None, client=client), client)
            above = max(high - idle[worker] for worker, high in client.run(peak).items())
            n_pairs = n * (n - 1) // 2
            found[f"{n_pairs:.1e} pairs: memory above an idle worker (MB)"] = above / MEGABYTE
            found[f"{n_pairs:.1e} pairs: wall (s)"] = wall
            found[f"{n_pairs:.1e} pairs: CPU per pair (ns)"] = 1e9 * cpu / n_pairs
    return found


def bench_first(size: Size) -> dict[str, Any]:
    """Time the first tree of a new worker against the second: it loads the compiled kernels."""
    X, y = people(400, 4)
    forest = SimilarityForest(n_estimators=1, n_pairs=2000, max_depth=5, random_state=0)
    forest.fit(X, y)
    with cluster(1) as client:
        first, second = (timed(lambda: simdask.fit(forest, X, y, client=client), client)[1] for _ in range(2))
        idle = max(client.run(memory_of).values())
    return {"first tree, CPU (s)": first, "second tree, CPU (s)": second, "memory of a worker after it (MB)": idle / MEGABYTE}


def bench_draw(size: Size) -> dict[str, Any]:
    """Time how the pairs of a tree are drawn here, for one tree after the other."""
    y = np.arange(size.n_rows) // 4
    source = PairSampler(y)
    rng = np.random.default_rng(0)

    def draw() -> None:
        bagged, _ = draw_bag(source, np.arange(size.n_rows), size.n_rows, rng)
        sample_both_kinds(bagged, rng, size.n_pairs, 0.5, "pairs")

    arrays = [value for value in vars(source).values() if isinstance(value, np.ndarray)]
    return {
        "samples": size.n_rows,
        "CPU per tree and sample (ns)": 1e9 * min(timed(draw)[1] for _ in range(3)) / size.n_rows,
        "memory per sample (bytes)": sum(array.nbytes for array in arrays) / size.n_rows,
    }


PARTS = {
    "draw": bench_draw,
    "fit": bench_fit,
    "overhead": bench_overhead,
    "traffic": bench_traffic,
    "search": bench_search,
    "evaluate": bench_evaluate,
    "first": bench_first,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"parts to run: {', '.join(PARTS)}; all by default")
    for name in ("tiny", "quick", "full"):
        parser.add_argument(f"--{name}", dest="size", action="store_const", const=name, default="default")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (results)")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"{unknown.pop()!r} is not a part; choose from {', '.join(PARTS)}")
    size = SIZES[options.size]
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "bench_dask.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    found |= {"size": asdict(size), "n_cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    for name in options.parts or PARTS:
        found[name] = PARTS[name](size)
        if name == "fit":
            found["fit_features"] = size.n_features
        lines = [[what, value if isinstance(value, bool | int) else f"{value:.3g}"] for what, value in found[name].items()]
        print(f"## {name}\n\n{markdown_table(['what', 'measured'], lines)}\n", flush=True)
        file.write_text(json.dumps(found, indent=2))
    print(f"Written: {file}")


if __name__ == "__main__":
    main()
