"""One gallery and one running service for all tests of this folder, and services in threads of the tests."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from running_service import SCOPES, Service, make_gallery, make_model, started_in_thread
from simtree.service._keys import add_key


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


@pytest.fixture(scope="session")
def started(prepared):
    """Start a service in a thread: a function that returns a client of it, and what it is made of."""

    def start(folder, *, with_keys=True, **options):
        return started_in_thread(folder, token=prepared.tokens["admin"] if with_keys else None, **options)

    return start
