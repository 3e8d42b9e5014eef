"""What happens when workers die, tasks fail, and people lose patience."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

from cluster_helpers import DeadlySimilarity, DeadlySplitter, FailingSplitter, SlowSplitter
from simtree import CutSplitter, SimilarityForest, evaluate
from simtree import dask as simdask
from simtree.dask import _cluster, _scoring

pytestmark = pytest.mark.slow

FOREST = SimilarityForest(n_estimators=4, n_pairs=300, max_depth=3, splitter=CutSplitter(), random_state=0)


@pytest.fixture(params=["fits", "does not fit"])
def room(request):
    if request.param == "does not fit":
        request.getfixturevalue("too_large")


def test_a_worker_is_killed_in_the_middle_of_fit(room, people, client, tmp_path):
    X, y = people
    expected = clone(FOREST).fit(X, y)
    found = clone(FOREST).set_params(splitter=DeadlySplitter(str(tmp_path / "flag")))
    simdask.fit(found, da.from_array(X, chunks=(100, 5)), y, client=client)
    assert (tmp_path / "flag").exists()
    rows = np.arange(480).reshape(-1, 2)
    np.testing.assert_array_equal(found.pair_score(rows, X), expected.pair_score(rows, X))


@pytest.mark.usefixtures("too_large")
def test_a_worker_is_killed_in_the_middle_of_evaluate(people, client, tmp_path, monkeypatch):
    monkeypatch.setattr(_scoring, "FEW", 1_000)
    monkeypatch.setattr(_scoring, "BLOCK", 20_000)
    X, y = people
    model = DeadlySimilarity().fit(X, y)
    expected = evaluate(model, X, y).to_dict()
    model.flag = str(tmp_path / "flag")
    assert simdask.evaluate(model, da.from_array(X, chunks=(100, 5)), y, client=client).to_dict() == expected
    assert (tmp_path / "flag").exists()


def test_a_worker_is_killed_in_the_middle_of_top_k(people, client, tmp_path):
    X, y = people
    model = DeadlySimilarity().fit(X, y)
    expected = model.top_k(X[:9], X, k=4)
    model.flag = str(tmp_path / "flag")
    found = simdask.top_k(model, X[:9], da.from_array(X, chunks=(100, 5)), k=4, client=client)
    assert (tmp_path / "flag").exists()
    np.testing.assert_array_equal(found, expected)


def test_the_error_of_a_task_is_that_of_the_user(room, people, client):
    X, y = people
    model = clone(FOREST).set_params(splitter=FailingSplitter())
    with pytest.raises(ZeroDivisionError, match="a bug of the user's splitter") as caught:
        simdask.fit(model, da.from_array(X, chunks=(100, 5)), y, client=client)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert not hasattr(model, "trees_")


def test_interrupted_work_is_not_begun(room, people, client, monkeypatch):
    """Ctrl-C comes while the first tree is waited for; trees that nobody has begun are never grown."""
    X, y = people
    waited = _cluster.Cluster._wait

    def interrupted(self, future):
        if future.key.startswith("grow-tree"):
            raise KeyboardInterrupt
        waited(self, future)

    monkeypatch.setattr(_cluster.Cluster, "_wait", interrupted)
    model = clone(FOREST).set_params(splitter=SlowSplitter(), n_estimators=30)
    with pytest.raises(KeyboardInterrupt):
        simdask.fit(model, da.from_array(X, chunks=(100, 5)), y, client=client)
    assert not hasattr(model, "trees_")

    def left(dask_scheduler):
        return [key for key, task in dask_scheduler.tasks.items() if "grow-tree" in str(key) and task.state != "processing"]

    for _ in range(100):
        if not client.run_on_scheduler(left):
            break
        time.sleep(0.1)
    assert client.run_on_scheduler(left) == []


def test_two_fits_at_once(people, client):
    X, y = people
    models = [clone(FOREST).set_params(random_state=seed) for seed in (1, 2)]
    errors = []

    def fit(model):
        try:
            simdask.fit(model, da.from_array(X, chunks=(100, 5)), y, client=client)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=fit, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    rows = np.arange(480).reshape(-1, 2)
    for seed, model in zip((1, 2), models, strict=True):
        expected = clone(FOREST).set_params(random_state=seed).fit(X, y)
        np.testing.assert_array_equal(model.pair_score(rows, X), expected.pair_score(rows, X))


def test_all_workers_are_lost(people, tmp_path, monkeypatch):
    """Without a nanny nobody starts another worker: waiting ends with an error, here after a moment."""
    assert _cluster.MAX_SECONDS_ALONE + 2 * _cluster.SECONDS_PER_LOOK < 60.0
    monkeypatch.setattr(_cluster, "MAX_SECONDS_ALONE", 0.5)
    monkeypatch.setattr(_cluster, "SECONDS_PER_LOOK", 0.2)
    X, y = people
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster, Client(cluster) as client:
        command = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            cluster.scheduler_address,
            "--no-nanny",
            "--no-dashboard",
        ]
        log = (tmp_path / "log").open("w")
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # the worker imports the splitter below from here
        with log, subprocess.Popen(command, stdout=log, stderr=log, env=paths) as worker:
            try:
                client.wait_for_workers(1)
                model = clone(FOREST).set_params(splitter=DeadlySplitter(str(tmp_path / "flag")))
                with pytest.raises(RuntimeError, match="all workers of the Dask cluster were lost"):
                    simdask.fit(model, X, y, client=client)
            finally:
                worker.kill()


def test_tasks_have_names_that_can_be_read(people, client):
    from dask.utils import key_split

    for what in ("grow-tree", "score-block", "search-chunk", "take-rows", "check-chunk"):
        assert key_split(_cluster.new_key(what)) == what
