"""One gallery and one running service for all tests of this folder, and services in threads of the tests."""

from __future__ import annotations

import shutil
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import pytest
import uvicorn

from running_service import SCOPES, Service, make_gallery, make_model
from simtree.service._app import create_app
from simtree.service._calls import CallLog
from simtree.service._keys import KeyRing, add_key
from simtree.service._limits import Limits
from simtree.service._served import Served


@pytest.fixture(scope="session")
def forest():
    return make_model()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, forest):
    """A gallery that is copied, never changed: its path, one more sample of each person, and keys."""
    folder = tmp_path_factory.mktemp("prepared")
    queries = make_gallery(folder / "people.gallery", forest)
    tokens = {scope: add_key(folder / "keys.json", [scope], note=f"for {scope}")[1] for scope in SCOPES}
    return SimpleNamespace(folder=folder, queries=queries, tokens=tokens)


@pytest.fixture
def folder(prepared, tmp_path):
    """A copy of the gallery and the keys."""
    shutil.copytree(prepared.folder, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="session")
def running(prepared, tmp_path_factory):
    """A real service, whose gallery its tests share."""
    folder = tmp_path_factory.mktemp("running")
    shutil.copytree(prepared.folder, folder, dirs_exist_ok=True)
    options = ("--keys", folder / "keys.json", "--rate", 1000, "--burst", 1000, "--verbose")
    service = Service(folder / "people.gallery", *options)
    yield SimpleNamespace(service=service, folder=folder, url=service.url, tokens=prepared.tokens, queries=prepared.queries)
    service.close()


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


@pytest.fixture(scope="session")
def started(prepared):
    """Start a service in a thread: a function that returns a client of it, and what it is made of."""

    @contextmanager
    def start(folder, *, gallery=None, with_keys=True, is_warm=True, **limits):
        served = Served(gallery or folder / "people.gallery")
        if not is_warm:
            served.warm_up = lambda: None
        app = create_app(
            served,
            keys=KeyRing(folder / "keys.json" if with_keys else None),
            limits=Limits(**{"rate": 1e6, "burst": 10**6, **limits}),
            calls=CallLog(folder / "calls"),
        )
        headers = {"Authorization": f"Bearer {prepared.tokens['admin']}"} if with_keys else {}
        with listening(app) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as client:
            if is_warm:
                assert served._is_warm.wait(60)
            yield SimpleNamespace(http=client, served=served, app=app, url=url)

    return start
