"""Bad input gets one sentence, and the gallery is as it was before."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import gallery_files
import simtree
from gallery_stores import content, is_idle, query, tamper
from simtree import Gallery
from simtree.gallery import GalleryError
from simtree.gallery._sqlite_file import new_file, remove_unfinished
from tiny_models import fitted, people, probes

X, Y = people(40, n=10, n_samples=2)
NAN = np.full((1, 3), np.nan)


@pytest.fixture
def gallery(place):
    with Gallery.create(place(), fitted("gaussian")) as made:
        made.enroll(Y, X, metadata={"site": ["A"] * 20})
    with Gallery.open(place(), timeout=0.05) as opened:
        yield opened


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def untouched(request, tmp_path_factory):
    """A gallery in each kind of store for all tests that check that it is as it was."""
    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("untouched") / "people.gallery"
    else:
        path = request.getfixturevalue("postgres_server").address("untouched")
    with Gallery.create(path, fitted("gaussian")) as made:
        made.enroll(Y, X, metadata={"site": ["A"] * 20})
    with Gallery.open(path, timeout=0.05) as opened:
        yield opened


@pytest.fixture
def file(tmp_path):
    """A gallery in a file, for what only files can suffer."""
    with Gallery.create(tmp_path / "people.gallery", fitted("gaussian"), timeout=0.05) as made:
        made.enroll(Y, X, metadata={"site": ["A"] * 20})
        yield made


@contextlib.contextmanager
def unchanged(gallery):
    """Check that the whole content of the database is the same at the end."""
    before = content(gallery)
    yield
    assert content(gallery) == before
    assert is_idle(gallery)
    assert gallery.identify(X[:1], k=1).id[0] == "0"


def enroll(**given):
    return lambda gallery: gallery.enroll(**{"ids": ["x"], "X": X[:1], **given})


MISTAKES = {
    "width": (enroll(X=np.zeros((1, 7))), ValueError, "X has 7 features, but .* is expecting 3 features"),
    "nan": (enroll(X=NAN), ValueError, "X contains NaN in column 0"),
    "text": (enroll(X=[["a", "b", "c"]]), ValueError, "X has text in column 0"),
    "no samples": (enroll(ids=[], X=np.zeros((0, 3))), ValueError, "0 sample"),
    "lengths": (enroll(ids=["x", "y"]), ValueError, "ids has 2 entries for 1 sample of X; give one each"),
    "id of no type": (enroll(ids=[1.5]), TypeError, "ids holds 1.5; an id is a string or an integer"),
    "missing id": (enroll(ids=[None]), TypeError, "ids holds None; an id is"),
    "bool": (enroll(ids=[True]), TypeError, "ids holds True; an id is"),
    "empty id": (enroll(ids=[""]), ValueError, "ids holds ''; an id is valid text of 1 to 1,000 characters"),
    "long id": (enroll(ids=["x" * 1001]), ValueError, r"ids holds 'xxx.*\.\.\.'; an id is valid text"),
    "half a character": (enroll(ids=["\ud800"]), ValueError, "an id is valid text"),
    "matrix of ids": (enroll(ids=[["x"]]), ValueError, r"ids has shape \(1, 1\); give one id per sample"),
    "metadata length": (enroll(metadata={"a": [1, 2]}), ValueError, "metadata 'a' has 2 values for 1 sample; give one each"),
    "metadata type": (enroll(metadata=[1]), TypeError, r"metadata=\[1\] is not a table; give a data frame or a dict"),
    "metadata value": (enroll(metadata={"a": [[1]]}), ValueError, r"metadata 'a' holds \[1\]; give strings, finite numbers"),
    "metadata date": (enroll(metadata={"a": [pd.Timestamp(0)]}), ValueError, "dates as strings"),
    "metadata infinite": (enroll(metadata={"a": [np.inf]}), ValueError, "metadata 'a' holds inf; give strings, finite"),
    "metadata name": (enroll(metadata={"a\n": [1]}), ValueError, r"the metadata name 'a\\n' is not usable; give a printable"),
    "metadata number": (enroll(metadata={7: [1]}), ValueError, "the metadata name 7 is not usable"),
    "two values": (
        enroll(ids=["x", "x"], X=X[:2], metadata={"a": [1, 2]}),
        ValueError,
        "metadata 'a' is both 1 and 2 for the id 'x'; an identity has one value",
    ),
    "time": (enroll(time="noon"), ValueError, "time holds 'noon' or a missing value; give dates"),
    "no time": (enroll(time=[np.datetime64("NaT")]), ValueError, "or a missing value; give dates"),
    "times": (enroll(time=[1, 2]), ValueError, r"time has shape \(2,\); give one time, or one per sample \(1\)"),
    "on_duplicate": (enroll(on_duplicate="shout"), ValueError, "on_duplicate='shout' is unknown; choose one of"),
    "duplicate": (enroll(on_duplicate="raise"), ValueError, "matches '0' with the score .* nothing was enrolled"),
    "remove": (lambda g: g.remove(["0", "nobody"]), ValueError, "the id 'nobody' is not enrolled; check its spelling"),
    "remove two": (lambda g: g.remove(["nobody", "else"]), ValueError, r"the id 'nobody' is not enrolled \(nor are 1 others\)"),
    "verify": (lambda g: g.verify(["00"], X[:1]), ValueError, "the id '00' is not enrolled; did you mean '0'"),
    "verify lengths": (lambda g: g.verify(["0"], X[:2]), ValueError, "ids has 1 entry for 2 samples of X"),
    "verify nan": (lambda g: g.verify(["0"], NAN), ValueError, "X contains NaN in column 0"),
    "k": (lambda g: g.identify(X[:1], k=0), ValueError, "k=0 is out of range"),
    "query": (lambda g: g.identify(X[:1, :2]), ValueError, "X has 2 features"),
    "where": (lambda g: g.identify(X[:1], where=["A"]), TypeError, r"where=\['A'\] is not a mapping; give one such as"),
    "where none": (lambda g: g.identify(X[:1], where={"site": []}), ValueError, r"where 'site' is \[\]; give a value"),
    "where null": (lambda g: g.identify(X[:1], where={"site": None}), ValueError, "where 'site' is None; give a value"),
    "rate": (lambda g: g.identify(X[:1], max_fpir=2), ValueError, "max_fpir=2 is out of range"),
    "model": (lambda g: g.re_enroll(LogisticRegression()), TypeError, "is not a similarity; give a fitted model of simtree"),
    "unfitted": (lambda g: g.re_enroll(simtree.DistanceSimilarity()), ValueError, "is not fitted yet"),
    "other width": (
        lambda g: g.re_enroll(simtree.DistanceSimilarity(metric="euclidean").fit(X[:, :2], Y)),
        ValueError,
        "the model is for samples with 2 features, and those of the gallery have 3",
    ),
    "audit": (lambda g: g.audit("nobody"), ValueError, "the id 'nobody' is not enrolled"),
    "backup": (lambda g: g.backup(Path("no") / "b"), FileNotFoundError, "there is no folder .*no; make it first"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_sentence(name, untouched):
    call, kind, said = MISTAKES[name]
    with unchanged(untouched), pytest.raises(kind, match=said) as caught, warnings.catch_warnings():
        call(untouched)
    if "sklearn" not in name:
        assert "\n" not in str(caught.value).strip() or "unfitted" in name


def test_float32_cannot_hold_everything(place):
    with Gallery.create(place(), fitted("tree"), dtype="float32") as gallery:
        with pytest.raises(ValueError, match=r"X has a value in column 1 that float32 cannot hold; .* dtype='float64'"):
            gallery.enroll(["x"], [[0.0, 1e200, 0.0]])
        assert len(gallery) == 0


def test_an_empty_gallery_has_no_answer(place):
    with Gallery.create(place(), fitted("tree")) as gallery:
        with pytest.raises(ValueError, match=f"{re.escape(str(place()))} is empty; enrol somebody first"):
            gallery.identify(probes())
        assert gallery.ids() == []
        gallery.compact()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fusion": "median"}, "fusion='median' is unknown"),
        ({"dtype": "int8"}, "dtype='int8' is unknown"),
        ({"max_samples": 0}, "max_samples=0 is out of range"),
        ({"n_best": 0}, "n_best=0 is out of range"),
        ({"timeout": -1}, "timeout=-1 is out of range"),
    ],
)
def test_parameters_of_a_new_gallery(place, tmp_path, options, said):
    with pytest.raises(ValueError, match=said):
        Gallery.create(place(), fitted("tree"), **options)
    with pytest.raises(FileNotFoundError, match="there is no gallery"):
        Gallery.open(place())
    assert list(tmp_path.iterdir()) == []


def test_a_new_gallery_does_not_replace_another(gallery, place):
    with unchanged(gallery), pytest.raises(FileExistsError, match=r"exists; choose another (name|schema)"):
        Gallery.create(place(), fitted("tree"))
    splitter = simtree.ClassifierSplitter(LogisticRegression())
    tree = simtree.SimilarityTree(max_depth=2, splitter=splitter, n_pairs=200).fit(X, Y)
    with pytest.raises(TypeError, match="cannot be saved"):
        Gallery.create(place("other"), tree)
    with pytest.raises(FileNotFoundError, match="there is no gallery"):
        Gallery.open(place("other"))


def test_a_new_gallery_does_not_use_files_that_are_left_over(tmp_path):
    (tmp_path / "other-wal").write_bytes(b"left over")
    with pytest.raises(FileExistsError, match=r"other-wal exists"):
        Gallery.create(tmp_path / "other", fitted("tree"))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        Gallery.create(tmp_path / "no" / "g", fitted("tree"))
    assert [left.name for left in tmp_path.iterdir()] == ["other-wal"]


def test_files_that_are_no_galleries(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no gallery .*missing; make it with Gallery\.create"):
        Gallery.open(tmp_path / "missing")
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        Gallery.open(tmp_path)
    for name, written in {"text": b"name,value\n" * 1000, "empty": b"", "short": b"SQLite format 3\0"}.items():
        (tmp_path / name).write_bytes(written)
        with pytest.raises(GalleryError, match=f"{name} is not a gallery of simtree; give another one"):
            Gallery.open(tmp_path / name)
        assert (tmp_path / name).read_bytes() == written
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE setting (name, value)")
    with pytest.raises(GalleryError, match=r"other\.db is not a gallery of simtree"):
        Gallery.open(tmp_path / "other.db")
    fitted("tree").save(tmp_path / "m.simtree")
    with pytest.raises(GalleryError, match="is not a gallery"):
        Gallery.open(tmp_path / "m.simtree")


def test_galleries_of_other_versions_are_refused(gallery, place):
    for version, said in [
        (3, r"written by a newer simtree \(schema version 3; this one reads up to 2\): upgrade simtree"),
        (0, "is damaged: its schema version is 0; restore a backup"),
    ]:
        set_version(gallery, version)
        with pytest.raises(GalleryError, match=said):
            Gallery.open(place())
        with pytest.raises(GalleryError, match="was upgraded by another program while it was open; open it again"):
            gallery.ids()
        with pytest.raises(GalleryError, match=said):
            Gallery.upgrade(place())


def set_version(gallery, version):
    if gallery._session.store.kind == "sqlite":
        gallery._session.store.connection.execute(f"PRAGMA user_version={version}")
    else:
        tamper(gallery, "UPDATE gallery SET schema_version = ?", version)


@pytest.mark.parametrize("share", [0.0005, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_gallery_is_refused(share, tmp_path):
    with Gallery.create(tmp_path / "g", fitted("gaussian")) as gallery:
        gallery.enroll(np.arange(2000), np.random.default_rng(0).normal(size=(2000, 3)))
        gallery.compact()
    content = (tmp_path / "g").read_bytes()
    (tmp_path / "g").write_bytes(content[: int(share * len(content))])
    with pytest.raises(GalleryError, match=r"is damaged|is not a gallery"):
        use(tmp_path / "g")


def use(path):
    with Gallery.open(path) as gallery:
        gallery.identify(probes()[:1])


def test_a_damaged_block_is_noticed(gallery, place):
    ((*others, prepared),) = query(gallery, "SELECT owners, samples, times, prepared FROM block")
    damaged = prepared[:-1] + bytes([prepared[-1] ^ 1])
    tamper(gallery, "UPDATE block SET prepared = ?", damaged)
    with (
        Gallery.open(place()) as other,
        pytest.raises(GalleryError, match="is damaged: the checksum of block 1 does not match; restore a backup"),
    ):
        other.identify(probes()[:1])
    tamper(gallery, "UPDATE block SET n_rows = n_rows + 1, checksum = ?", zlib.crc32(b"".join([*others, damaged])))
    with (
        Gallery.open(place()) as other,
        pytest.raises(GalleryError, match="is damaged: block 1 does not have the length of its 21 rows"),
    ):
        other.identify(probes()[:1])
    ((model,),) = query(gallery, "SELECT content FROM model")
    tamper(gallery, "UPDATE model SET content = ?", model[:-1])
    with pytest.raises(GalleryError, match="is damaged: its model cannot be read"):
        Gallery.open(place())


def test_damaged_settings_are_noticed(gallery, place):
    tamper(gallery, "DELETE FROM setting WHERE name = 'fusion'")
    with pytest.raises(GalleryError, match=r"is damaged: its settings cannot be read \('fusion'\); restore a backup"):
        Gallery.open(place())


def test_a_locked_gallery_can_be_read_and_says_that_it_is_locked(gallery, place):
    with Gallery.open(place()) as other, unchanged(gallery):
        with other._session.store.writing():
            for change in (
                lambda: gallery.enroll(["x"], X[:1]),
                lambda: gallery.remove("0"),
                lambda: gallery.re_enroll(fitted("tree")),
            ):
                with pytest.raises(TimeoutError, match=r"is locked by another process, .* timeout=0.05 seconds; try again"):
                    change()
            assert gallery.identify(X[:1], k=1).id[0] == "0"
        gallery.identify(X[:1])


def test_a_gallery_for_reading_is_not_changed(gallery, place, tmp_path):
    with Gallery.open(place(), readonly=True) as reader, unchanged(gallery):
        for change in (
            lambda: reader.enroll(["x"], X[:1]),
            lambda: reader.remove("0"),
            lambda: reader.re_enroll(fitted("tree")),
            lambda: reader.calibrate(*people(41, n=60, n_samples=1)),
            reader.compact,
        ):
            with pytest.raises(PermissionError, match="was opened with readonly=True, and this changes it; open it without"):
                change()
        reader.backup(tmp_path / "copy")  # makes another file


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no users as Unix has")
def test_a_disk_that_cannot_be_written_to(file):
    folder = Path(tempfile.mkdtemp())
    file.backup(folder / "people.gallery")
    (folder / "people.gallery").chmod(0o444)
    folder.chmod(0o555)
    is_root = os.geteuid() == 0
    if is_root:  # who may write everywhere
        os.seteuid(65534)
    try:
        with Gallery.open(folder / "people.gallery", readonly=True) as reader:
            assert reader.identify(X[:1], k=1).id[0] == "0"
        with (
            pytest.raises(PermissionError, match=r"cannot be (opened|written to)"),
            Gallery.open(folder / "people.gallery") as g,
        ):
            g.enroll(["x"], X[:1])
        with pytest.raises(PermissionError):
            Gallery.create(folder / "new", fitted("tree"))
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)


@contextlib.contextmanager
def full_disk(gallery):
    """No space for more, inside the context: in SQLite for more pages, in PostgreSQL as a trigger says it."""
    store = gallery._session.store
    if store.kind == "sqlite":
        (n_pages,) = store.connection.execute("PRAGMA page_count").fetchone()
        store.connection.execute(f"PRAGMA max_page_count={n_pages}")
        yield
        store.connection.execute("PRAGMA max_page_count=1073741823")
        return
    raised = "BEGIN RAISE ''could not extend file'' USING ERRCODE = ''disk_full''; END"
    tamper(gallery, f"CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS '{raised}'")
    tamper(gallery, "CREATE TRIGGER no_space BEFORE INSERT ON block FOR EACH ROW EXECUTE FUNCTION no_space()")
    yield
    tamper(gallery, "DROP FUNCTION no_space CASCADE")


def test_a_full_disk_leaves_the_gallery_as_it_was(gallery):
    many = np.random.default_rng(0).normal(size=(5000, 3))
    with unchanged(gallery), full_disk(gallery):
        for change in (lambda: gallery.enroll(np.arange(5000) + 100, many), lambda: gallery.re_enroll(fitted("forest"))):
            with pytest.raises(OSError, match=r"cannot be written: no space left on the disk; free") as caught:
                change()
            assert caught.value.errno == errno.ENOSPC
    gallery.enroll(np.arange(5000) + 100, many)
    assert len(gallery) == 5010


def test_an_interrupted_enrolment_enrols_nothing(gallery, monkeypatch):
    from simtree.gallery import _enrolment

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    with unchanged(gallery):
        monkeypatch.setattr(_enrolment, "add_entry", interrupted)
        for change in (lambda: gallery.enroll(["x"], X[:1]), lambda: gallery.remove("0")):
            with pytest.raises(KeyboardInterrupt):
                change()
        monkeypatch.undo()
    gallery.enroll(["x"], X[:1])
    assert "x" in gallery.identify(X[:1], k=20).id


def test_a_closed_gallery_says_so(gallery):
    gallery.close()
    for call in (gallery.ids, lambda: gallery.identify(X[:1]), lambda: gallery.enroll(["x"], X[:1]), lambda: len(gallery)):
        with pytest.raises(ValueError, match=r"is closed; open it again with Gallery\.open"):
            call()


def test_a_forked_process_opens_the_gallery_again(gallery, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(ValueError, match="was opened by another process, from which this one was forked; open it again here"):
        gallery.ids()
    monkeypatch.undo()
    assert len(gallery.ids()) == 10


def test_what_killed_processes_have_left_is_removed(file, tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = [f".copy.{gone.pid}", f".copy.{gone.pid}-wal", f".copy.{os.getpid()}", f".copy.{2**70}"]
    kept = [f".copy.{os.getppid()}", f".copy.more.{gone.pid}", f".copy.{gone.pid}-other", ".copy.x", f"copy.{gone.pid}"]
    for name in left + kept:
        (tmp_path / name).write_bytes(b"of somebody")
    file.backup(tmp_path / "copy")
    assert [name for name in left if (tmp_path / name).exists()] == []
    assert [name for name in kept if not (tmp_path / name).exists()] == []
    with Gallery.open(tmp_path / "copy") as copy:
        assert len(copy) == 10
    with new_file(tmp_path / "again"):
        assert (tmp_path / f".again.{os.getpid()}").exists()
        remove_unfinished(tmp_path / "again")  # as another thread may
        assert (tmp_path / f".again.{os.getpid()}").exists()


@pytest.mark.parametrize("age", ["new", "old", "upgraded"])
def test_no_statement_of_sqlite_changes_the_audit(age, tmp_path):
    path = tmp_path / "g"
    if age == "upgraded":
        shutil.copy(Path(gallery_files.FOLDER, "version_1.gallery"), path)
        Gallery.upgrade(path)
    else:
        Gallery.create(path, fitted("gaussian")).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:  # as any program may open it
        if age == "old":
            other.execute("DROP TRIGGER audit_not_replaced")
            with Gallery.open(path) as gallery:
                gallery.compact()
        before = other.execute("SELECT * FROM audit").fetchall()
        assert before
        for statement in (
            "INSERT OR REPLACE INTO audit SELECT number, 0, action, model, n_samples, subjects FROM audit WHERE number = 1",
            "REPLACE INTO audit (number, time, action, model, n_samples, subjects) VALUES (1, 0, '', '', 0, '')",
            "INSERT INTO audit VALUES (1, 0, '', '', 0, '') ON CONFLICT (number) DO UPDATE SET time = 0",
            "UPDATE audit SET time = 0",
            "UPDATE OR REPLACE audit SET number = 1",
            "DELETE FROM audit",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="the audit can only be appended to"):
                other.execute(statement)
        assert other.execute("SELECT * FROM audit").fetchall() == before
        other.execute("INSERT INTO audit (time, action, model, n_samples, subjects) VALUES (0, '', '', 0, '')")
        assert len(other.execute("SELECT * FROM audit").fetchall()) == len(before) + 1


def test_compact_waits_no_longer_than_it_is_told(place):
    """Whatever the gallery was opened with."""
    with Gallery.create(place(), fitted("gaussian"), timeout=20.0) as patient, Gallery.open(place()) as other:
        patient.enroll(Y, X)
        patient.remove("0")
        began = time.monotonic()
        with other._session.store.writing(), pytest.raises(TimeoutError, match="not yet erased"):
            patient.compact(timeout=0.05)
        assert time.monotonic() - began < 10.0
        assert patient._session.store.timeout == 20.0
        patient.compact()
        assert patient.to_dict()["n_samples_not_erased"] == 0


def test_who_writes_after_the_erasure_does_not_make_it_fail(place, monkeypatch):
    with (
        Gallery.create(place(), fitted("gaussian")) as gallery,
        Gallery.open(place()) as other,
        contextlib.ExitStack() as busy,
    ):
        gallery.enroll(Y, X)
        gallery.remove("0")
        store = gallery._session.store
        rewrite = store.rewrite

        def rewrite_and_be_late(timeout):
            rewrite(timeout)
            busy.enter_context(other._session.store.writing())

        with monkeypatch.context() as patch:
            patch.setattr(store, "rewrite", rewrite_and_be_late)
            gallery.compact(timeout=0.3)
        busy.close()
        assert gallery.to_dict()["n_samples_not_erased"] == 2  # to be on the safe side
        gallery.compact()
        assert gallery.to_dict()["n_samples_not_erased"] == 0
