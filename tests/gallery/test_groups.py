"""Groups of the samples of a gallery, and the approximate search."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

import simtree
from simtree import Gallery
from simtree.gallery import _prefilter as prefilter
from tiny_models import fitted, people, probes


@pytest.fixture
def gallery(place):
    X, y = people(5, n=30, n_samples=3)
    with Gallery.create(place(), fitted("gaussian"), audit_searches=True) as gallery:
        gallery.enroll([f"p{k:02d}" for k in y], X)
        yield gallery


def test_groups_are_those_of_cluster(gallery):
    X, y = people(5, n=30, n_samples=3)
    expected = simtree.cluster(gallery.model, X, y=y, threshold=0.0)
    found = gallery.cluster(threshold=0.0)
    np.testing.assert_array_equal(found.cluster, expected.labels)
    np.testing.assert_array_equal(found.size, expected.sizes[expected.labels])
    assert found.id.tolist() == [f"p{k:02d}" for k in y]
    assert found.clusters.to_dict() == expected.to_dict()
    assert list(found.to_frame().columns) == ["id", "cluster", "size"]
    assert gallery.audit().action.tolist()[-1] == "cluster"


def test_all_comparisons_with_people_are_audited(tmp_path):
    X, y = people(5, n=9, n_samples=2)
    with Gallery.create(tmp_path / "g", fitted("forest"), audit_searches=True) as gallery:
        gallery.enroll(y, X)
        gallery.explain("3", X[0])
        assert gallery.audit("3").action.tolist() == ["enroll", "explain"]
        if importlib.util.find_spec("faiss"):
            gallery.prefilter_recall(X[:4])
            trail = gallery.audit()
            assert (trail.action[-1], trail.n_samples[-1], trail.subjects[-1]) == ("prefilter_recall", 4, "")
        with Gallery.open(tmp_path / "g", readonly=True) as reader, pytest.raises(PermissionError, match="it audits searches"):
            reader.explain("3", X[0])


def test_a_person_under_two_ids_is_found(gallery):
    X, _ = people(5, n=30, n_samples=3)
    gallery.enroll(["again"], X[:1] + 1e-6)
    together = gallery.cluster(threshold=3.0, method="components")
    assert together.cluster[together.id == "again"] == together.cluster[0]
    assert any({"again", "p00"} <= set(ids) for ids in together.mixed())


def test_bad_input_of_groups(tmp_path):
    with Gallery.create(tmp_path / "g", fitted("distance")) as gallery:
        with pytest.raises(ValueError, match="is empty; enrol somebody first"):
            gallery.cluster()
        with pytest.raises(ValueError, match="has no such promise"):
            gallery.cluster(max_fpr=0.01)
        with pytest.raises(ValueError, match="is empty; enrol somebody first"):
            gallery.prefilter_recall(probes())


@pytest.mark.parametrize("fusion", ["max", "mean"])
@pytest.mark.parametrize("lists", [False, True])
def test_proposed_candidates_have_exact_scores(fusion, lists, tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    if lists:
        monkeypatch.setattr(prefilter, "MIN_LISTED_ROWS", 40)
        monkeypatch.setattr(prefilter, "ROWS_PER_LIST", 4)
    X, y = people(5, n=60, n_samples=3)
    with Gallery.create(tmp_path / "g", fitted("forest"), fusion=fusion) as gallery:
        gallery.enroll(y, X)
        exact = gallery.identify(probes(), k=60)
        scores = {(query, name): score for query, name, score in zip(exact.query, exact.id, exact.score, strict=True)}
        some = gallery.identify(probes(), k=5, n_candidates=20)
        assert lists or len(some) == 5 * len(probes())
        assert all(scores[query, name] == score for query, name, score in zip(some.query, some.id, some.score, strict=True))
        best = set(zip(exact.query[exact.rank <= 5], exact.id[exact.rank <= 5], strict=True))
        by_hand = len(best & set(zip(some.query, some.id, strict=True))) / len(best)
        assert gallery.prefilter_recall(probes(), k=5, n_candidates=20) == pytest.approx(by_hand)
        assert 0.2 < by_hand < 1.0
        if not lists:  # everything is proposed
            assert gallery.prefilter_recall(probes(), k=5, n_candidates=10**9) == 1.0
            whole = gallery.identify(probes(), k=60, n_candidates=10**9)
            np.testing.assert_array_equal(whole.id, exact.id)


def test_filters_stay_exact_and_the_promise_holds(tmp_path):
    pytest.importorskip("faiss")
    X, y = people(5, n=40, n_samples=2)
    with Gallery.create(tmp_path / "g", fitted("gaussian")) as gallery:
        gallery.enroll(y, X, metadata={"site": np.where(y < 3, "A", "B")})
        one = gallery.identify(probes(), k=3, where={"site": "A"}, n_candidates=1)
        np.testing.assert_array_equal(one.id, gallery.identify(probes(), k=3, where={"site": "A"}).id)
        strangers, names = people(77, n=60, n_samples=1)
        gallery.calibrate(strangers, [f"s{k}" for k in names])
        exact = gallery.identify(probes(), max_fpir=0.05)
        some = gallery.identify(probes(), max_fpir=0.05, n_candidates=3)
        assert some.threshold == exact.threshold
        assert set(zip(some.query, some.id, strict=True)) <= set(zip(exact.query, exact.id, strict=True))


def test_the_index_is_never_on_disk_and_forgets(tmp_path):
    pytest.importorskip("faiss")
    X, y = people(5, n=40, n_samples=2)
    with Gallery.create(tmp_path / "g", fitted("distance")) as gallery:
        gallery.enroll(y, X)
        files = sorted(path.name for path in tmp_path.iterdir())
        assert gallery.identify(X[:1], k=1, n_candidates=4).id[0] == "0"
        assert sorted(path.name for path in tmp_path.iterdir()) == files
        index = gallery._prefilter
        gallery.identify(X[:1], k=1, n_candidates=4)
        assert gallery._prefilter is index
        gallery.remove("0")
        assert gallery._prefilter is None
        assert "0" not in gallery.identify(X[:1], k=9, n_candidates=80).id
        with Gallery.open(gallery.path) as other:
            other.remove("1")
        assert "1" not in gallery.identify(X[2:3], k=9, n_candidates=80).id
        assert len(gallery._prefilter.templates) == 38
    assert gallery._prefilter is None


def test_other_threads_may_drop_or_replace_the_index(tmp_path):
    pytest.importorskip("faiss")
    X, y = people(5, n=40, n_samples=2)

    class Shared(Gallery):
        """A gallery whose index is another one, or none, whenever it is looked at again."""

        left: list = []  # noqa: RUF012 - of one test

        @property
        def _prefilter(self):
            return self.left.pop() if self.left else None

        @_prefilter.setter
        def _prefilter(self, index):
            pass

    with Shared.create(tmp_path / "g", fitted("distance")) as gallery:
        gallery.enroll(y, X)
        expected = gallery.identify(X[:9], k=1).id.tolist()
        assert gallery.identify(X[:9], k=1, n_candidates=4).id.tolist() == expected
        own = prefilter.Prefilter(gallery._session.state().snapshot.templates)
        with Gallery.create(tmp_path / "other", fitted("distance")) as other:
            other.enroll(y[::-1], X[::-1])
            other.identify(X[:1], n_candidates=4)
            Shared.left = [other._prefilter, own]
            assert gallery.identify(X[:9], k=1, n_candidates=4).id.tolist() == expected


def test_without_faiss_it_says_what_to_install(gallery, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r'n_candidates needs FAISS; install it with: pip install "simtree\[search\]"'):
        gallery.identify(people(5, n=1, n_samples=1)[0], n_candidates=3)
    with pytest.raises(ValueError, match="n_candidates"):
        gallery.identify(people(5, n=1, n_samples=1)[0], n_candidates=0)
