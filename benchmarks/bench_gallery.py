"""A gallery beside what it is made of: enrolling, loading and searching, in seconds.

    python benchmarks/bench_gallery.py [--rows 100000] [--features 128] [--queries 100] [--repeats 3]

Rows are random float32 vectors, one per identity, and the model is a small forest without a representation. Enrolling is
compared with bare SQLite that writes the same bytes with the same settings: all rows of all tables that the gallery has made,
the samples in their blocks, ids, keys and the audit, which are at hand in memory; and with writing the vectors alone. Loading
is compared with one row of the database per sample; searching with `top_k` on the bare array. Times are the lowest of some
repeats, with a warm file cache. Memory is the peak of a process that opens the gallery and answers once.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simtree import Gallery, SimilarityForest
from simtree._utils.files import write_atomically
from simtree.gallery._blocks import BLOCK_BYTES
from simtree.models import Similarity


def best_time(repeats: int, work: Callable[[], object]) -> float:
    """Return the lowest time of some repeats."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def small_forest(n_features: int) -> Similarity:
    """Return a forest that has learned from synthetic clusters."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 5)
    X = rng.normal(size=(60, n_features))[y] + 0.5 * rng.normal(size=(300, n_features))
    return SimilarityForest(n_estimators=10, max_depth=5, n_pairs=5000, random_state=0).fit(X.astype(np.float32), y)


def bare(path: Path) -> sqlite3.Connection:
    """Return a database with the settings of a gallery."""
    connection = sqlite3.connect(path)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}").fetchone()
    connection.execute("CREATE TABLE part (number INTEGER PRIMARY KEY, content BLOB)")
    return connection


def write_bare(path: Path, X: NDArray[np.float32], n_rows: int) -> float:
    """Return the time to write the rows to a new database, so many per row of the database."""
    with closing(bare(path)) as connection:
        parts = ((X[start : start + n_rows].tobytes(),) for start in range(0, len(X), n_rows))

        def write() -> None:
            with connection:
                connection.executemany("INSERT INTO part (content) VALUES (?)", parts)

        return best_time(1, write)


def write_same(path: Path, gallery: Path) -> tuple[float, float]:
    """Return the elapsed and the processor time to write all that is in a gallery to a new database with the same tables."""
    with closing(sqlite3.connect(gallery)) as source:
        names = "block", "identity", "audit"
        tables = [source.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0] for name in names]
        rows = {name: source.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    with closing(bare(path)) as connection:
        for statement in tables:
            connection.execute(statement)
        start = time.perf_counter(), time.process_time()
        with connection:
            for name, of_table in rows.items():
                marks = ", ".join("?" * len(of_table[0]))
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", of_table)
        return time.perf_counter() - start[0], time.process_time() - start[1]


def memory_to_open(path: Path, query: NDArray[np.float32]) -> float:
    """Return the peak memory in megabytes of a new process that opens a gallery and answers once."""
    # Not ru_maxrss, in which a new process has the peak of the one that started it.
    code = (
        "import re, sys, numpy as np; from pathlib import Path; from simtree import Gallery; "
        "Gallery.open(sys.argv[1], readonly=True).identify(np.array(eval(sys.argv[2]), dtype=np.float32)[None], k=1); "
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, path, str(query.tolist())], check=True, capture_output=True, text=True)
    return float(done.stdout)


def load_bare(path: Path) -> None:
    """Load all rows of a database into one array."""
    with closing(sqlite3.connect(path)) as connection:
        np.frombuffer(b"".join(content for (content,) in connection.execute("SELECT content FROM part")), dtype=np.float32)


def measure(n_rows: int, n_features: int, n_queries: int, repeats: int, folder: Path) -> dict[str, float]:
    """Return the time of each step."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    queries = rng.normal(size=(n_queries, n_features)).astype(np.float32)
    model = small_forest(n_features)
    found: dict[str, float] = {}
    with Gallery.create(folder / "gallery", model, dtype="float32") as gallery:
        ids = np.arange(n_rows)
        start = time.perf_counter(), time.process_time()
        gallery.enroll(ids, X)
        found["enrol"], found["enrol, processor"] = time.perf_counter() - start[0], time.process_time() - start[1]
        same = write_same(folder / "same", folder / "gallery")
        found["write the same tables to bare SQLite"], found["write the same tables to bare SQLite, processor"] = same
        found["write only the vectors to bare SQLite"] = write_bare(folder / "blocks", X, max(1, BLOCK_BYTES // X[0].nbytes))
        write_bare(folder / "rows", X, 1)
        found["load blocks of bare SQLite"] = best_time(repeats, lambda: load_bare(folder / "blocks"))
        found["load rows of bare SQLite"] = best_time(repeats, lambda: load_bare(folder / "rows"))

    def open_and_load() -> None:
        with Gallery.open(folder / "gallery", readonly=True) as opened:
            opened.identify(queries[:1], k=1)

    found["open, load and answer once"] = best_time(repeats, open_and_load)
    with Gallery.open(folder / "gallery", readonly=True) as gallery:
        gallery.identify(queries, k=10)
        found["identify"] = best_time(repeats, lambda: gallery.identify(queries, k=10))
        found["top_k of the array"] = best_time(repeats, lambda: model.top_k(queries, X, k=10))
    return found


def ratios(seconds: dict[str, float]) -> dict[str, float]:
    """Return the figures that matter, which a busy machine changes less than times."""
    same = "write the same tables to bare SQLite"
    return {
        "enrol / write the same tables": seconds["enrol"] / seconds[same],
        "enrol / write the same tables, processor": seconds["enrol, processor"] / seconds[f"{same}, processor"],
        "enrol / write only the vectors": seconds["enrol"] / seconds["write only the vectors to bare SQLite"],
        "identify / top_k of the array": seconds["identify"] / seconds["top_k of the array"],
    }


def main() -> None:
    """Measure, print a table and write a JSON file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    if min(options.rows, options.features, options.queries, options.repeats) < 1:
        sys.exit("--rows, --features, --queries and --repeats must be at least 1.")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.rows, options.features, options.queries, options.repeats, Path(folder))
        memory = memory_to_open(Path(folder) / "gallery", np.zeros(options.features, dtype=np.float32))
    print(f"{options.rows:,} rows of {options.features} float32, {options.queries} queries\n\n| step | seconds |\n|---|---|")
    for name, seconds in found.items():
        print(f"| {name} | {seconds:.3f} |")
    print(f"| memory of a process that opens it | {memory:,.0f} MB |\n\n| ratio | |\n|---|---|")
    for name, ratio in ratios(found).items():
        print(f"| {name} | {ratio:.2f} |")
    sizes = {"rows": options.rows, "features": options.features, "queries": options.queries}
    write_atomically(
        options.out / "bench_gallery.json",
        json.dumps({**sizes, "seconds": found, "ratios": ratios(found), "megabytes": memory}, indent=1) + "\n",
    )


if __name__ == "__main__":
    main()
