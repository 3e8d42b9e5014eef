"""Data and helpers that several test files use."""

from __future__ import annotations

import functools
import gc
import gzip
import itertools
import re
import shutil
import struct

import numpy as np
import pytest
import typer.main
import typer.testing

from simtree._kernels import compilation
from simtree.experiments import _mnist as mnist
from simtree.experiments._results import Order
from simtree.models import _search
from simtree.pairs._sampling import PairSampler

TINY_MNIST = mnist.Sizes(
    images=600,
    test_pairs=5_000,
    network_images=500,
    lmnn_images=150,
    lmnn_iterations=10,
    trees=3,
    pairs=2_000,
    best_trees=4,
    best_pairs=2_000,
)


@pytest.fixture(autouse=True, scope="session")
def silent_compilation():
    """What tests find on stderr must not depend on a cold cache; announcements have tests of their own, in fresh processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation._ANNOUNCER, "_print", lambda text, end: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def commands_are_built_once():
    """Typer would build all commands anew for each call, which takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch:
        build = functools.cache(typer.main.get_command)
        patch.setattr(typer.main, "get_command", build)
        patch.setattr(typer.testing, "_get_command", build)
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def blobs():
    """Labelled points: 6 classes of unequal size around centres on a grid of small fractions (exact in floating point)."""
    rng = np.random.default_rng(7)
    y = np.repeat(np.arange(6), [30, 25, 20, 15, 12, 8])
    centres = rng.integers(0, 16, (6, 4)) / 4
    X = centres[y] + np.round(rng.normal(0, 0.5, (len(y), 4)) * 64) / 64
    order = rng.permutation(len(y))
    return X[order], y[order]


@pytest.fixture(scope="session")
def given_pairs(blobs):
    """Pairs of the blobs as an (n, 2, q) array with their labels, same and different mixed."""
    X, y = blobs
    index = PairSampler(y).sample(600, np.random.default_rng(3))
    order = np.random.default_rng(4).permutation(len(index))
    pairs = np.stack([X[index.first], X[index.second]], axis=1)
    return pairs[order], index.same[order]


def drawn_images(n, seed):
    """Images of ten blurred patterns, as MNIST has images of ten digits."""
    patterns = np.random.default_rng(0).integers(0, 256, (10, 784))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, n).astype(np.uint8)
    return np.clip(patterns[y] * 0.3 + rng.normal(90, 70, (n, 784)), 0, 255).astype(np.uint8), y


@pytest.fixture(scope="session")
def mnist_folder(tmp_path_factory):
    """A folder of idx files, some packed, some not."""
    folder = tmp_path_factory.mktemp("images")
    for prefix, n, pack, end in (("train", 800, gzip.compress, ".gz"), ("t10k", 300, bytes, "")):
        X, y = drawn_images(n, seed=n)
        (folder / f"{prefix}-images-idx3-ubyte{end}").write_bytes(pack(struct.pack(">4I", 2051, n, 28, 28) + X.tobytes()))
        (folder / f"{prefix}-labels-idx1-ubyte{end}").write_bytes(pack(struct.pack(">2I", 2049, n) + y.tobytes()))
    return folder


@pytest.fixture(scope="session")
def mnist_out(mnist_folder, tmp_path_factory):
    """Results of the experiment on these images, at a tiny size."""
    out = tmp_path_factory.mktemp("mnist")
    mnist.run(Order(out, 1, 0, 1, "simtree reproduce mnist"), folder=mnist_folder, sizes=TINY_MNIST)
    return out


@pytest.fixture(scope="session")
def postgres_server():
    """A private server, where PostgreSQL is installed."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    import postgres_server

    reason = postgres_server.why_not()
    if reason is not None:
        pytest.skip(reason)
    server = postgres_server.Server()
    yield server
    server.close()


SCHEMAS = (f"gallery_{number}" for number in itertools.count())


# Fixtures that start programs: a database server, a browser, a service and the workers of a cluster.
PROGRAMS = {"postgres_server", "browser", "running", "client"}
# What a module says of all its tests.
MARK_OF_ALL = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(slow|long)\b", re.MULTILINE)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests that start a program as slow."""
    for item in items:
        if PROGRAMS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let the garbage collector leave alone what is there before the first test: all modules and all tests.

    It would look at these millions of objects again and again; a single collection takes about a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_ignore_collect(collection_path, config):
    """Do not import modules whose tests are all left out: what they import takes as long as many fast tests."""
    if collection_path.suffix != ".py":
        return None
    mark = MARK_OF_ALL.search(collection_path.read_text(encoding="utf-8"))
    left_out = {part.strip() for part in config.option.markexpr.split(" and ")}
    return True if mark and f"not {mark[1]}" in left_out else None


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request):
    """The kind of store of a gallery."""
    return request.param


@pytest.fixture
def place(request, store, tmp_path):
    """A function that returns where a gallery of some name is, in each kind of store; the same name is the same place."""
    if store == "sqlite":
        return lambda name="people": tmp_path / f"{name}.gallery"
    server, schemas = request.getfixturevalue("postgres_server"), {}
    return lambda name="people": server.address(schemas.setdefault(name, next(SCHEMAS)))


@pytest.fixture
def search_by(monkeypatch):
    """A function that lets `top_k` search by bounds, or by brute force, whatever that costs."""
    chosen = _search._cheapest

    def choose(*, bounds):
        cost = 1e12 if bounds else 0.0  # of brute force
        monkeypatch.setattr(_search, "_cheapest", lambda *given: chosen(*given[:-1], cost))

    return choose


@pytest.fixture(scope="session")
def browser():
    """Chromium, without a window and without a network of its own; one per test process."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "chromium-browser"))), None)
    if program is None:
        pytest.skip("Chromium is not installed; `make system-deps` installs it")
    quiet = ("background-networking", "component-update", "default-apps", "extensions", "gpu", "sync", "dev-shm-usage")
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()
