"""Enrolments that are repeated, single identities, explanations, and files that are no longer the ones that were opened."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from simtree import DistanceSimilarity, Gallery, SimilarityTree
from simtree.gallery import GalleryError, NotEnrolledError


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 4)
    return rng.normal(size=(30, 5))[y] + 0.2 * rng.normal(size=(120, 5)), y


@pytest.fixture(scope="module")
def tree(data):
    return SimilarityTree(max_depth=3).fit(*data)


def filled(place, tree, data):
    X, y = data
    made = Gallery.create(place, tree)
    made.enroll([f"p{k:02d}" for k in y[:40]], X[:40], metadata={"site": np.where(y[:40] < 5, "A", "B")}, time=1e9)
    return made


@pytest.fixture
def gallery(place, tree, data):
    """A gallery in each kind of store."""
    with filled(place(), tree, data) as made:
        yield made


@pytest.fixture
def in_file(tmp_path, tree, data):
    """A gallery in a file."""
    with filled(tmp_path / "people.gallery", tree, data) as made:
        yield made


def test_a_repeated_enrolment_is_done_once(gallery, data):
    new = data[0][100:103]
    first = gallery.enroll(["new"] * 3, new, metadata={"site": "C"}, request="r1")
    n_entries = len(gallery.audit())
    again = gallery.enroll(["new"] * 3, new, metadata={"site": "C"}, request="r1")
    assert (first.is_repeated, again.is_repeated) == (False, True)
    assert (again.n_samples, again.n_new) == (first.n_samples, first.n_new) == (3, 1)
    assert gallery.subject("new").n_samples == 3
    assert len(gallery.audit()) == n_entries
    assert not gallery.enroll(["new"] * 3, new, request="r2").is_repeated
    assert gallery.subject("new").n_samples == 6


@pytest.mark.parametrize(
    ("ids", "rows", "options"),
    [
        (["new"], [101], {}),
        (["other"], [100], {}),
        (["new"], [100], {"metadata": {"site": "A"}}),
        (["new"], [100], {"time": 5.0}),
        (["new", "new"], [100, 101], {}),
    ],
)
def test_the_name_of_an_enrolment_is_not_used_for_another_one(gallery, data, ids, rows, options):
    gallery.enroll(["new"], data[0][[100]], request="r")
    before = gallery.to_dict()["n_samples"]
    with pytest.raises(ValueError, match="was already used for another enrolment"):
        gallery.enroll(ids, data[0][rows], request="r", **options)
    assert gallery.to_dict()["n_samples"] == before


def test_a_late_repetition_does_not_bring_back_who_was_removed(gallery, data):
    gallery.enroll(["new"], data[0][[100]], request="r")
    gallery.remove("new")
    with pytest.raises(ValueError, match="removed since"):
        gallery.enroll(["new"], data[0][[100]], request="r")
    assert "new" not in gallery


def test_an_enrolment_that_failed_can_be_repeated(gallery, data):
    with pytest.raises(ValueError, match="match another identity"):
        gallery.enroll(["copy"], data[0][[0]], request="r", on_duplicate="raise")
    assert not gallery.enroll(["copy"], data[0][[0]], request="r").is_repeated


@pytest.mark.parametrize("request_name", ["", "x" * 1001, 7])
def test_names_of_enrolments_are_checked(gallery, data, request_name):
    with pytest.raises(ValueError, match=r"request=.* is not usable"):
        gallery.enroll(["new"], data[0][[100]], request=request_name)


def test_a_subject(gallery):
    found = gallery.subject("p03")
    assert (found.id, found.n_samples, found.metadata) == ("p03", 4, {"site": "A"})
    assert found.times.astype("datetime64[s]").astype(int).tolist() == [10**9] * 4
    assert gallery.hashes(["p03", "nobody"]) == [found.hash]
    assert found.hash in gallery.audit("p03").subjects[0]
    with pytest.raises(NotEnrolledError, match="'p3' is not enrolled"):
        gallery.subject("p3")


def test_ids_are_found_by_prefix_and_page(gallery):
    names = sorted(gallery.ids())
    assert gallery.search_ids(limit=100) == names
    assert gallery.search_ids("p0", limit=3) == ["p00", "p01", "p02"]
    assert gallery.search_ids("p0", after="p02", limit=3) == ["p03", "p04", "p05"]
    assert gallery.search_ids("p0", after="p0999") == []
    assert gallery.search_ids("q") == []


def test_ids_are_in_the_order_of_their_characters_in_every_store(gallery, data):
    names = ["a", "B", "_", "\u00e9", "a b", "ab", "A", "\u2603", "\U0001f600"]
    gallery.enroll(names, data[0][: len(names)])
    assert [name for name in gallery.search_ids(limit=100) if name in names] == sorted(names)
    assert gallery.search_ids("a") == ["a", "a b", "ab"]


def test_metadata_of_a_subject_are_what_was_given(gallery, data):
    gallery.enroll(["new"], data[0][:1], metadata={"n": [2.5], "m": [3], "flag": [True], "text": ["2"]})
    assert gallery.subject("new").metadata == {"flag": 1, "m": 3, "n": 2.5, "text": "2"}


def test_a_backup_knows_what_was_done_under_a_name(gallery, place, data):
    gallery.enroll(["new"], data[0][[100]], request="r")
    gallery.backup(place("copy"))
    with Gallery.open(place("copy")) as copy:
        assert copy.enroll(["new"], data[0][[100]], request="r").is_repeated


def test_candidates_below_the_threshold_can_be_kept(gallery, data):
    X, y = data
    assert gallery.max_fpir is None
    assert np.isnan(gallery.verify(["p00"], X[[0]]).expected_fpir)
    gallery.calibrate(X[40:], [f"stranger {k}" for k in y[40:]], max_fpir=0.2)
    assert gallery.max_fpir == 0.2
    some, every = (gallery.identify(X[:1], k=10, max_fpir=0.2, keep_below=keep) for keep in (False, True))
    assert len(every) == 10 > len(some)
    assert some.threshold == every.threshold
    np.testing.assert_array_equal(every.score[: len(some)], some.score)
    assert every.n_enrolled == 10
    assert every.fingerprint == gallery.fingerprint
    # Of 20 strangers none is above the threshold: the next one is with a probability of 1 / 21.
    assert every.expected_fpir == pytest.approx(1 / 21)
    checked = gallery.verify(["p00"], X[[0]])
    assert (checked.n_enrolled, checked.fingerprint) == (10, gallery.fingerprint)
    assert 1 / 21 <= checked.expected_fpir <= 1.0


def test_an_explanation_is_that_of_the_best_enrolled_sample(gallery, tree, data):
    X, _ = data
    found = gallery.explain("p01", X[0])
    scores = tree.pair_score([[X[0], X[row]] for row in range(4, 8)])
    assert found.score == pytest.approx(scores.max())
    np.testing.assert_allclose(found.x2, X[4 + int(np.argmax(scores))])
    assert found.base + found.contributions.sum() == pytest.approx(found.score)


def test_not_everything_can_be_explained(tmp_path, data):
    X, y = data
    with Gallery.create(tmp_path / "distances", DistanceSimilarity(metric="euclidean").fit(X, y)) as distances:
        distances.enroll(["a"], X[:1])
        with pytest.raises(ValueError, match="DistanceSimilarity cannot explain"):
            distances.explain("a", X[0])


def test_a_file_that_was_moved_over_the_gallery_is_noticed(in_file, tree, tmp_path):
    in_file.check()
    Gallery.create(tmp_path / "other", tree).close()
    (tmp_path / "people.gallery").rename(tmp_path / "before")
    with pytest.raises(GalleryError, match=r"is gone"):
        in_file.check()
    (tmp_path / "other").rename(tmp_path / "people.gallery")
    with pytest.raises(GalleryError, match="was replaced by another file"):
        in_file.check()
    (tmp_path / "before").rename(tmp_path / "people.gallery")
    in_file.check()


def test_a_file_that_was_copied_over_the_gallery_is_noticed(in_file, tree, tmp_path):
    in_file.compact()  # nothing of it is left in the log
    in_file.check()
    Gallery.create(tmp_path / "other", tree).close()
    shutil.copyfile(tmp_path / "other", tmp_path / "people.gallery")
    with pytest.raises(GalleryError, match=r"replaced by another file|damaged"):
        in_file.check()


def test_a_file_that_was_overwritten_is_noticed(in_file, tmp_path):
    in_file.compact()
    (tmp_path / "people.gallery").write_bytes(b"nothing of a gallery")
    with pytest.raises(GalleryError, match=r"not a gallery|damaged"):
        in_file.check()
