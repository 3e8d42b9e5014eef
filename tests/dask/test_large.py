"""Data ten times as large as the memory of a worker."""

from __future__ import annotations

import logging
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from cluster_helpers import made_rows, peak_memory
from simtree import SimilarityForest
from simtree import dask as simdask

pytestmark = pytest.mark.long

LIMIT = 800_000_000
CHUNK, N_CHUNKS, N_FEATURES = 125_000, 125, 128  # 8 GB in chunks of 64 MB


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of the memory of a process is read from /proc")
def test_everything_finishes_within_the_memory_of_workers():
    X = da.map_blocks(
        made_rows, chunks=((CHUNK,) * N_CHUNKS, (N_FEATURES,)), dtype=np.float32, meta=np.empty((0, 0), dtype=np.float32)
    )
    assert X.nbytes == 10 * LIMIT
    y = np.arange(len(X)) // 4
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(memory_limit=LIMIT, **options) as cluster, Client(cluster) as client:
        before = set(client.run(lambda dask_worker: dask_worker.name).values())
        forest = SimilarityForest(n_estimators=2, n_pairs=20_000, max_depth=2, random_state=0)
        simdask.fit(forest, X, y, client=client)
        pairs = np.random.default_rng(0).integers(0, len(X), (200_000, 2))
        assert len(simdask.pair_score(forest, pairs, X, client=client).compute()) == 200_000
        _, rows = simdask.top_k(forest, made_rows(start=0, n_rows=5, n_features=N_FEATURES), X, k=3, client=client)
        assert rows.shape == (5, 3)
        result = simdask.evaluate(forest, X, y, n_pairs=200_000, client=client)
        assert result.n_same + result.n_different == 200_000
        assert max(client.run(peak_memory).values()) < LIMIT
        assert set(client.run(lambda dask_worker: dask_worker.name).values()) == before
