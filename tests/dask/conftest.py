"""One small cluster for all tests: starting workers takes longer than the tests."""

from __future__ import annotations

import logging

import numpy as np
import pytest


@pytest.fixture(scope="session")
def client():
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    import dask

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    # Workers are forked from a process that has imported everything, because a killed one is replaced by another. Those of
    # the command line and of the benchmark start from nothing, as they do by default.
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["distributed", "dask.array", "simtree.dask", "simtree.evaluation"])
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            yield client


@pytest.fixture(scope="session")
def people():
    """Samples of 60 people, 8 each."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 8)
    X = rng.normal(size=(60, 5))[y] + 0.7 * rng.normal(size=(480, 5))
    order = rng.permutation(480)
    return X[order], y[order]


@pytest.fixture
def too_large(monkeypatch):
    """As if no worker had room for all samples: rows are sent to those who need them."""
    monkeypatch.setattr("simtree.dask._cluster.SHARED_MEMORY", 0.0)


@pytest.fixture
def small_batches(monkeypatch):
    """As if the rows of two trees were all that workers have room for."""
    monkeypatch.setattr("simtree.dask._samples.BATCH_MEMORY", 1e-12)
