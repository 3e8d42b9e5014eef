"""What was removed is gone from all files after `compact`: vectors, prepared samples, ids, metadata and keys."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from gallery_stores import pieces
from simtree import DistanceSimilarity, Gallery, MarginalQuantiles

N_FEATURES = 60
PLAIN = DistanceSimilarity(metric="euclidean")
PREPARED = DistanceSimilarity(metric="euclidean", representation=MarginalQuantiles(n_quantiles=20, output="normal"))
NAME, SITE = "the person who wants to be forgotten", "a place that nobody else has"


def data(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, N_FEATURES))


def model(kind):
    return kind.fit(data(60, seed=9), np.repeat(np.arange(20), 3))


def found_in(folder, wanted):
    """Which of the pieces are in any file of a folder."""
    content = b"\0".join(file.read_bytes() for file in sorted(folder.iterdir()))
    return {piece for piece in wanted if piece in content}


def traces(gallery, X):
    """Pieces of all that a gallery stores of samples, whose type is that of the gallery, and of whose they are."""
    vectors = pieces(X) if gallery.to_dict()["has_vectors"] else set()
    return vectors | pieces(gallery.model._prepare(X)) | {NAME.encode(), SITE.encode()}


SIZES = {"one": [1], "merged": [3] * 70, "large": [400], "several": [40] * 9}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "sizes", "options"),
    [
        *(pytest.param(PLAIN, sizes, {}, id=f"plain-{name}") for name, sizes in SIZES.items()),
        *(pytest.param(PREPARED, sizes, {}, id=f"prepared-{name}") for name, sizes in SIZES.items()),
        pytest.param(PLAIN, SIZES["several"], {"dtype": "float32"}, id="plain-float32"),
        pytest.param(PREPARED, SIZES["several"], {"dtype": "float32"}, id="prepared-float32"),
        pytest.param(PREPARED, SIZES["several"], {"keep_vectors": False}, id="no-vectors"),
        pytest.param(PREPARED, SIZES["several"], {"keep_vectors": False, "dtype": "float32"}, id="no-vectors-float32"),
    ],
)
def test_nothing_is_left_of_a_person(kind, sizes, options, tmp_path):
    forgotten = data(2, seed=7777).astype(options.get("dtype", "float64"))
    with Gallery.create(tmp_path / "g", model(kind), **options) as gallery, Gallery.open(tmp_path / "g") as idle:
        traced = traces(gallery, forgotten)
        gallery.enroll([NAME], forgotten[:1], metadata={"site": SITE})
        for number, size in enumerate(sizes):
            gallery.enroll([f"{number}-{k}" for k in range(size)], data(size, seed=number), metadata={"site": "here"})
        gallery.enroll([NAME], forgotten[1:])
        idle.identify(data(1), k=1)  # a reader that stays open, but reads nothing
        assert len(found_in(tmp_path, traced)) > 0.9 * len(traced)
        if not gallery.to_dict()["has_vectors"]:
            assert found_in(tmp_path, pieces(forgotten)) == set()  # they never were there
        (key,) = gallery._session.store.connection.execute("SELECT audit_key FROM identity WHERE id = ?", (NAME,)).fetchone()
        gallery.remove(NAME)
        assert gallery.to_dict()["n_samples_not_erased"] == 2
        gallery.compact()
        assert found_in(tmp_path, traced | {key}) == set()
        assert gallery.to_dict()["n_samples_not_erased"] == 0
        assert len(gallery) == sum(sizes) == idle.identify(data(1), k=10_000).n_identities
        kept = gallery.model._prepare(data(sizes[-1], seed=len(sizes) - 1).astype(forgotten.dtype))
        assert found_in(tmp_path, pieces(kept[:3]))  # those who stay are there, apart from pieces that a page splits


@pytest.mark.slow
def test_erasure_does_not_rest_on_overwriting_alone(tmp_path):
    """Nor on whether the program that removed a person had asked SQLite to overwrite."""
    X = data(300, seed=13)
    with Gallery.create(tmp_path / "g", model(PREPARED)) as gallery:
        gallery._session.store.connection.execute("PRAGMA secure_delete=OFF")
        for start in range(0, 300, 5):
            gallery.enroll([f"name {k}" for k in range(start, start + 5)], X[start : start + 5])
        gallery.remove([f"name {k}" for k in range(100, 300)])
        gone = pieces(X[100:300:7]) | pieces(gallery.model._prepare(X[100:300:7]))
        gallery._session.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert found_in(tmp_path, gone)
        gallery.compact()
        assert found_in(tmp_path, gone) == set()


@pytest.mark.slow
def test_nothing_is_left_after_years_of_changes(tmp_path):
    """People come and go, one by one; pages split and merge, and the log is copied back many times."""
    rng, X = np.random.default_rng(3), data(150, seed=11)
    with Gallery.create(tmp_path / "g", model(PREPARED), max_samples=2) as gallery:
        present = set()
        for step in range(150):
            gallery.enroll([f"name of {step}", f"name of {step // 2}"], X[[step, step - 1]])
            present |= {step, step // 2}
            if step % 3 == 2:
                gone = int(rng.choice(sorted(present)))
                gallery.remove([f"name of {gone}"])
                present.remove(gone)
            if step % 50 == 49:
                gallery._session.store.connection.execute("PRAGMA wal_checkpoint")
        kept = {bytes(row) for row in _vectors(gallery)}
        gone = [x for x in X if x.tobytes() not in kept]
        assert len(gone) > 30
        gallery.compact()
        assert found_in(tmp_path, pieces(gone) | pieces(gallery.model._prepare(np.array(gone)))) == set()
        content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        assert {k for k in range(150) if f"name of {k}".encode() in content} >= present
        absent = {f"name of {k}".encode() for k in range(100, 150) if k not in present}
        assert absent
        assert found_in(tmp_path, absent) == set()


def _vectors(gallery):
    rows = gallery._session.store.connection.execute("SELECT vectors FROM vectors").fetchall()
    return np.vstack([np.frombuffer(content).reshape(-1, N_FEATURES) for (content,) in rows])


def test_other_prepared_forms_are_gone_after_a_change_of_the_model(tmp_path):
    X = data(5, seed=12)
    with Gallery.create(tmp_path / "g", model(PREPARED), keep_vectors=True) as gallery:
        gallery.enroll(list("abcde"), X)
        old = pieces(gallery.model._prepare(X)) - pieces(X)
        assert found_in(tmp_path, old) == old
        gallery.re_enroll(model(PLAIN))
        gallery.compact()
        assert found_in(tmp_path, old) == set()
        assert found_in(tmp_path, pieces(X))


def test_a_reader_in_the_middle_of_a_call_delays_erasure(tmp_path):
    forgotten = data(1, seed=7)
    with Gallery.create(tmp_path / "g", model(PLAIN)) as gallery:
        gallery.enroll([NAME, "other"], np.vstack([forgotten, data(1)]))
        reader = sqlite3.connect(tmp_path / "g", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM block").fetchone()
        gallery.remove(NAME)
        with pytest.raises(TimeoutError, match=r"not yet erased: what was removed may still be in .* compact it again"):
            gallery.compact(timeout=0.1)
        assert found_in(tmp_path, pieces(forgotten))  # as it says
        assert gallery.to_dict()["n_samples_not_erased"] == 1
        assert NAME not in gallery
        reader.execute("COMMIT")
        gallery.compact(timeout=5)
        assert found_in(tmp_path, traces(gallery, forgotten)) == set()
        reader.close()


def test_a_writer_delays_erasure_too(tmp_path):
    with Gallery.create(tmp_path / "g", model(PLAIN), timeout=0.1) as gallery:
        gallery.enroll([NAME, "other"], data(2))
        gallery.remove(NAME)
        writer = sqlite3.connect(tmp_path / "g", isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError, match="not yet erased"):
            gallery.compact(timeout=0.1)
        writer.execute("ROLLBACK")
        gallery.compact()
        writer.close()
