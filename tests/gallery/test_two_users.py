"""A reader who may not write beside a gallery sees what another user, who may, has changed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from simtree import DistanceSimilarity, Gallery
from simtree.gallery import GalleryError

NOBODY = 65534
X = np.random.default_rng(0).normal(size=(8, 3))
# Another process, because SQLite shares what it knows of a file among the connections of one process. It gives a gallery the
# content of another one, without simtree, which takes seconds to import, and closes it when it is told to.
WRITER = """
import sqlite3, sys
connection = None
for line in sys.stdin:
    path, source = line.split()
    connection = connection or sqlite3.connect(path, isolation_level=None)
    if source == "close":
        connection = connection.close()
    else:
        connection.execute("ATTACH ? AS source", (source,))
        connection.execute("BEGIN IMMEDIATE")
        for table in ("setting", "identity", "block", "vectors"):
            connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} SELECT * FROM source.{table}")
        connection.execute("COMMIT")
        connection.execute("DETACH source")
    print("done", flush=True)
"""

pytestmark = [
    pytest.mark.slow,  # it starts a program
    pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act as two users of the machine"),
]


@contextlib.contextmanager
def as_nobody():
    """Do what is inside as a user who owns nothing."""
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def path(tmp_path):
    """A gallery that everybody may read, in a folder where only its owner may write; later states of it are in tmp_path."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder, "g")
        with Gallery.create(path, DistanceSimilarity(metric="euclidean").fit(X, np.repeat(np.arange(4), 2))) as made:
            made.enroll(["a", "b"], X[:2])
            made.identify(X[:1])
            made.backup(tmp_path / "a")
        path.chmod(0o644)
        with Gallery.open(tmp_path / "a") as later:
            later.enroll(["c"], X[2:3])
            later.backup(tmp_path / "with_c")
            later.remove("a")
            later.backup(tmp_path / "without_a")
        yield path


@pytest.fixture
def write(path, tmp_path):
    """A function that lets another process change the gallery, or close it."""
    with subprocess.Popen([sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:

        def call(what):
            writer.stdin.write(f"{path} {what if what == 'close' else tmp_path / what}\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "done\n"

        yield call
        writer.stdin.close()


def found(reader, row):
    with as_nobody():
        return reader.identify(X[row : row + 1], k=9).id.tolist()


def test_changes_and_removals_reach_a_reader_who_may_not_write(path, write, tmp_path):
    with as_nobody():
        reader = Gallery.open(path, readonly=True)
    with reader:
        assert found(reader, 0) == ["a", "b"]
        assert [file.name for file in path.parent.iterdir()] == ["g"]  # so SQLite takes it for a file that never changes
        write("with_c")
        assert sorted(found(reader, 0)) == ["a", "b", "c"]  # while the other program has it open
        write("without_a")
        write("close")
        assert sorted(found(reader, 0)) == ["b", "c"]


def test_what_was_written_between_two_calls_is_seen(path, write, tmp_path):
    with as_nobody():
        reader = Gallery.open(path, readonly=True)
    with reader:
        assert found(reader, 0) == ["a", "b"]
        for what in ("with_c", "without_a", "close"):
            write(what)
        assert [file.name for file in path.parent.iterdir()] == ["g"]
        reader.backup(tmp_path / "copy")
        assert sorted(found(reader, 0)) == ["b", "c"]
    with Gallery.open(tmp_path / "copy") as copy:
        assert sorted(copy.ids()) == ["b", "c"]


def test_a_change_in_the_middle_of_a_call_is_noticed(path, monkeypatch):
    with as_nobody():
        reader = Gallery.open(path, readonly=True)
    with reader:
        assert found(reader, 0) == ["a", "b"]

        def change(self, connection):
            os.seteuid(0)
            os.utime(path)
            os.seteuid(NOBODY)
            return self

        with monkeypatch.context() as patch:
            patch.setattr("simtree.gallery._state.State.with_rows", change)
            with pytest.raises(GalleryError, match="was changed by another user while it was being read; try again"):
                found(reader, 0)
        assert found(reader, 0) == ["a", "b"]
