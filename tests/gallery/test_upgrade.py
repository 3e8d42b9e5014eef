"""Galleries that older versions of simtree have written: refused until they are upgraded, and then as they were."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest
from numpy.testing import assert_allclose

import gallery_files
from simtree import Gallery
from simtree.gallery import GalleryError
from simtree.gallery._schema import VERSION
from tiny_models import fitted

OLDER = sorted(gallery_files.FOLDER.glob("version_*.gallery"))


@pytest.fixture(params=OLDER, ids=lambda file: file.stem)
def original(request):
    return request.param


@pytest.fixture
def old(original, tmp_path):
    return shutil.copy(original, tmp_path / "people.gallery")


def dump(path):
    """The whole content of a file, with its version."""
    with closing(sqlite3.connect(path)) as connection:
        return [*connection.iterdump(), connection.execute("PRAGMA user_version").fetchone()]


def structure(path):
    """The tables, indexes and triggers of a file."""
    with closing(sqlite3.connect(path)) as connection:
        return {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}


def test_there_is_a_file_of_each_older_version():
    assert [int(file.stem.removeprefix("version_")) for file in OLDER] == list(range(1, VERSION))


def test_an_upgraded_gallery_answers_as_before(old, original, tmp_path):
    before, answers = old.read_bytes(), json.loads(original.with_suffix(".json").read_text())
    with pytest.raises(GalleryError, match=r"written by an older simtree .* upgrade it with simtree gallery upgrade"):
        Gallery.open(old, readonly=True)
    assert old.read_bytes() == before
    backup = Gallery.upgrade(old)
    assert backup == tmp_path / f"people.gallery.{original.stem}"
    Gallery.create(tmp_path / "new.gallery", fitted("gaussian")).close()
    assert structure(old) == structure(tmp_path / "new.gallery")
    with Gallery.open(old) as gallery:
        found = gallery_files.answers(gallery)
        assert found["audit"][0].pop() == "upgrade"
        assert found["audit"][1].pop() == ""
        assert_allclose(found.pop("numbers"), answers.pop("numbers"), rtol=1e-9)  # other machines may round differently
        assert found == answers
        number = gallery._session.store.connection.execute("SELECT max(number) FROM block").fetchone()[0]
        gallery.enroll(["new"], gallery_files.probes()[:1])
        assert gallery._session.store.connection.execute("SELECT max(number) FROM block").fetchone()[0] > number
        assert gallery.ids() == [*answers["ids"], "new"]
    assert Gallery.upgrade(old) is None  # once is enough
    assert dump(backup) == dump(shutil.copy(original, tmp_path / "original"))
    Gallery.upgrade(backup, backup=tmp_path / "again")
    with Gallery.open(backup) as again:
        assert again.ids() == answers["ids"]


def test_an_upgrade_that_fails_leaves_the_gallery_as_it_was(old, tmp_path, monkeypatch):
    before = dump(old)
    (tmp_path / "there").touch()
    with pytest.raises(FileExistsError, match="there exists; choose another name"):
        Gallery.upgrade(old, backup=tmp_path / "there")
    monkeypatch.setattr("simtree.gallery._sqlite_upgrade.add_entry", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        Gallery.upgrade(old, backup=tmp_path / "b")
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        assert dump(old) == before
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError, match="is locked by another process"):
            Gallery.upgrade(old, backup=tmp_path / "c", timeout=0.05)
    assert not (tmp_path / "c").exists()


def _interrupted(*_):
    raise KeyboardInterrupt
