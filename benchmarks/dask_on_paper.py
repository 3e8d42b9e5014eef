"""What a forest and a gallery of a billion samples would cost on a cluster, computed from measured constants.

    python benchmarks/dask_on_paper.py docs/results/bench_dask.json

The constants come from ``bench_dask.py``; what is assumed about storage and network is printed with the result.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from simtree.dask._samples import BATCH_MEMORY, MAX_PIECES
from simtree.experiments._results import markdown_table

N_SAMPLES, N_TREES, N_PAIRS, N_FEATURES = 10**9, 1_000, 100_000, 128
WORKERS = (10, 100, 1_000)
# Assumptions: a worker has one thread, 4 GB, and reads from storage and from others at these rates.
MEMORY, READ, NETWORK = 4e9, 2e8, 5e8
CHUNK = 5e8


def forest(constants: dict[str, Any], n_workers: int) -> dict[str, float]:
    """Return seconds and bytes of each part of a fit."""
    data, rows = N_SAMPLES * N_FEATURES * 4.0, 2.0 * N_PAIRS * N_FEATURES * 4
    n_chunks = math.ceil(data / CHUNK)
    n_batch = max(1, min(int(BATCH_MEMORY * MEMORY * n_workers / rows), MAX_PIECES // n_chunks))
    n_passes = math.ceil(N_TREES / n_batch) + 2
    # The time of a tree grows with its coordinates.
    of_tree = constants["fit"]["CPU time per tree (s)"] * N_FEATURES / constants["fit_features"]
    return {
        "trees per pass over the data": n_batch,
        "passes over the data": n_passes,
        "read (hours)": n_passes * data / READ / n_workers / 3600,
        "rows sent (hours)": N_TREES * rows / NETWORK / n_workers / 3600,
        "grow trees (hours)": math.ceil(N_TREES / n_workers) * of_tree / 3600,
        "scheduler (hours)": N_TREES * n_chunks * constants["overhead"]["per tree and chunk: CPU (ms)"] / 1e3 / 3600,
        "draw pairs on the client (hours)": N_TREES
        * N_SAMPLES
        * constants["draw"]["CPU per tree and sample (ns)"]
        / 1e9
        / 3600,
    }


def gallery(constants: dict[str, Any], n_workers: int) -> dict[str, float]:
    """Return what a search among a billion templates takes."""
    data = N_SAMPLES * N_FEATURES * 4.0
    return {
        "templates in memory, per worker (GB)": data / n_workers / 1e9,
        "100 queries, from memory (s)": 100 * N_SAMPLES * constants["search"]["CPU per query and row (ns)"] / 1e9 / n_workers,
        "one pass from storage (s)": data / READ / n_workers,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="bench_dask.json, with the parts fit, overhead, draw and search")
    constants = json.loads(parser.parse_args().results.read_text())
    for part, cost in (("fit", forest), ("gallery", gallery)):
        columns = [cost(constants, n) for n in WORKERS]
        rows = [[name, *(f"{column[name]:,.3g}" for column in columns)] for name in columns[0]]
        print(f"## {part.capitalize()}\n\n{markdown_table(['', *(f'{n:,} workers' for n in WORKERS)], rows)}\n")
    print(
        f"Client: {N_SAMPLES * constants['draw']['memory per sample (bytes)'] / 1e9:,.0f} GB for labels. Assumed: workers with "
        f"one thread and {MEMORY / 1e9:g} GB, {READ / 1e6:g} MB/s from storage, {NETWORK / 1e6:g} MB/s between workers, "
        f"chunks of {CHUNK / 1e6:g} MB."
    )


if __name__ == "__main__":
    main()
