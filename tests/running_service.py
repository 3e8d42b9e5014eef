"""A real service on a free port of this machine, and a gallery for it."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import numpy as np
import uvicorn

from simtree import Gallery, SimilarityForest
from simtree.service import Client
from simtree.service._app import create_app
from simtree.service._calls import CallLog
from simtree.service._keys import KeyRing
from simtree.service._limits import Limits
from simtree.service._served import Served

N_FEATURES = 4
SCOPES = ("verify", "identify", "enrol", "metrics", "admin")


def people(n, n_samples, seed):
    """Return samples of people, and whose they are."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n), n_samples)
    return 3.0 * rng.normal(size=(n, N_FEATURES))[y] + 0.02 * rng.normal(size=(len(y), N_FEATURES)), y


def make_model():
    """Return a forest that can explain its scores, and knows probabilities."""
    forest = SimilarityForest(n_estimators=12, max_depth=6, n_pairs=4000, random_state=0).fit(*people(80, 4, 0))
    return forest.calibrate_probability(*people(60, 3, 3))


def make_gallery(path, model, n=20, *, is_calibrated=True):
    """Make a gallery of p00, p01, ... with two samples each; another one of everybody is returned.

    Every fourth has one sample only: probabilities of a model are for pairs.
    """
    X, y = people(n, 3, 1)
    enrolled = np.arange(len(y)) % 3 < np.where(y % 4 == 0, 1, 2)
    with Gallery.create(path, model) as gallery:
        names = np.array([f"p{k:02d}" for k in y])
        gallery.enroll(names[enrolled], X[enrolled], metadata={"site": np.where(y[enrolled] < n // 2, "A", "B")})
        if is_calibrated:
            strangers, who = people(120, 1, 2)
            gallery.calibrate(strangers, [f"stranger {k}" for k in who], max_fpir=0.05)
    return X[2::3]


class Service:
    """The process of a service."""

    def __init__(self, gallery, *options):
        command = [sys.executable, "-m", "simtree", "serve", str(gallery), "--port", "0", *map(str, options)]
        self.log = gallery.with_name("service.log")
        with self.log.open("w") as stream:
            self.process = subprocess.Popen(command, stderr=stream, stdout=subprocess.DEVNULL)
        try:
            self.url = self._wait(self._address)
            self._wait(self._is_ready)
        except BaseException:
            self.process.kill()
            raise

    def _wait(self, condition, seconds=120.0):
        end = time.monotonic() + seconds
        while True:
            found = condition()
            if found:
                return found
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)

    def _address(self):
        found = re.search(r"Serving \S+ on (http\S+)\n", self.log.read_text())
        return found and found[1]

    def _is_ready(self):
        try:
            return httpx.get(f"{self.url}/readyz", verify=False).is_success
        except httpx.TransportError:
            return False

    def client(self, key=None, **options):
        return Client(self.url, key, **{"n_retries": 0, **options})

    def close(self):
        """End the service as systems do; return its exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)


@contextmanager
def listening(app):
    """Run an application in a thread, on a free port of this machine; yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, http="h11", ws="none", log_config=None, access_log=False, server_header=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://localhost:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def started_in_thread(folder, *, gallery=None, token=None, is_warm=True, **limits):
    """Run a service in a thread, with the keys of the folder if a token is given; yield a client, and what it is made of."""
    served = Served(gallery or folder / "people.gallery")
    if not is_warm:
        served.warm_up = lambda: None
    app = create_app(
        served,
        keys=KeyRing(None if token is None else folder / "keys.json"),
        limits=Limits(**{"rate": 1e6, "burst": 10**6, **limits}),
        calls=CallLog(folder / "calls"),
    )
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with listening(app) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
        if is_warm:
            assert served._is_warm.wait(60)
        yield SimpleNamespace(http=client, served=served, app=app, url=url)
