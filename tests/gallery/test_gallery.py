"""What a gallery answers: exactly the scores of the model, fused over the samples of each identity."""

from __future__ import annotations

import datetime
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.preprocessing import StandardScaler

import simtree
from gallery_stores import content, is_idle, query, tamper
from simtree import DistanceSimilarity, Gallery
from simtree.evaluation._templates import Fusion
from simtree.gallery import GalleryError
from tiny_models import fitted, people, probes

# Models that score in different ways: bounded search, brute force, a closed form, a representation, an ensemble, cohorts.
KINDS = ["tree", "forest", "forest-linear", "gaussian", "distance", "distance-pipeline", "boosting", "voting", "cohort"]
FUSED = [("max", 3), ("mean", 3), ("top_mean", 2)]


def samples_of(n=15, most=5, seed=5):
    """Samples of identities with unequal numbers of them, in a random order, and their ids."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n), rng.integers(1, most + 1, n))
    X = people(seed, n=n, n_samples=most)[0]
    rows = np.concatenate([k * most + np.arange(count) for k, count in enumerate(np.bincount(y))])
    order = rng.permutation(len(y))
    return [f"p{k:02d}" for k in y[order]], X[rows][order]


def expected(model, fusion, ids, X, queries):
    """Ids and fused scores by decreasing score, from `pair_score` alone; ties in the order of first enrolment."""
    names = list(dict.fromkeys(ids))
    rows = np.vstack([queries, X])
    pairs = [(query, len(queries) + sample) for query in range(len(queries)) for sample in range(len(X))]
    scores = model.pair_score(pairs, rows).reshape(len(queries), len(X))
    table = np.empty((len(queries), len(names)))
    for column, name in enumerate(names):
        own = [k for k, other in enumerate(ids) if other == name]
        table[:, column] = fusion(np.ascontiguousarray(scores[:, own]), np.array([0]))[:, 0]
    order = np.argsort(-table, axis=1, kind="stable")
    return np.array(names, dtype=object)[order], np.take_along_axis(table, order, axis=1)


@pytest.fixture
def path(place):
    return place()


@pytest.mark.parametrize(("fusion", "n_best"), FUSED)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_pair_scores_fused(kind, fusion, n_best, path):
    model, (ids, X) = fitted(kind), samples_of()
    names, scores = expected(model, Fusion(fusion, n_best), ids, X, probes())
    with Gallery.create(path, model, fusion=fusion, n_best=n_best) as gallery:
        for start in range(0, len(ids), 7):  # several enrolments, and samples of one identity in more than one
            gallery.enroll(ids[start : start + 7], X[start : start + 7])
        found = gallery.identify(probes(), k=4)
        assert_array_equal(found.id.reshape(-1, 4), names[:, :4])
        assert_array_equal(found.score.reshape(-1, 4), scores[:, :4])
        assert_array_equal(found.query, np.repeat(np.arange(len(probes())), 4))
        assert_array_equal(found.rank.reshape(-1, 4)[0], [1, 2, 3, 4])
        whole = gallery.identify(probes(), k=10**12)
        assert_array_equal(whole.id.reshape(len(probes()), -1), names)
        claims = gallery.verify(names[:, 2], probes())
        assert_array_equal(claims.score, scores[:, 2])
        assert_array_equal(claims.accepted, scores[:, 2] >= model.threshold_)
    with Gallery.open(path, readonly=True, model=model) as again:
        assert_array_equal(again.identify(probes(), k=100).score, whole.score)


@pytest.mark.parametrize("kind", ["forest", "gaussian"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_with_one_sample_each_it_is_top_k(kind, dtype, path):
    X, queries = (rows.astype(dtype) for rows in (people(7, n=900, n_samples=1)[0], people(8, n=30, n_samples=1)[0]))
    model = fitted(kind)
    scores, rows = model.top_k(queries, X, k=5)
    with Gallery.create(path, model, dtype=dtype) as gallery:
        gallery.enroll(np.arange(900), X)
        found = gallery.identify(queries, k=5)
    assert_array_equal(found.id.reshape(-1, 5), rows.astype(str).astype(object))
    assert_array_equal(found.score.reshape(-1, 5), scores)
    assert np.isfinite(found.probability).all()


def test_many_samples_of_one_identity_do_not_hide_others(path):
    model = fitted("tree")
    X, _ = people(9, n=1, n_samples=400)
    others, _ = people(10, n=30, n_samples=1)
    ids = ["many"] * 400 + [f"p{k}" for k in range(30)]
    names, scores = expected(model, Fusion("max"), ids, np.vstack([X, others]), X[:3])
    with Gallery.create(path, model) as gallery:
        gallery.enroll(ids, np.vstack([X, others]))
        found = gallery.identify(X[:3], k=6)
    assert_array_equal(found.id.reshape(-1, 6), names[:, :6])
    assert_array_equal(found.score.reshape(-1, 6), scores[:, :6])


@pytest.mark.parametrize("fusion", ["max", "mean"])
def test_where_selects_identities_and_leaves_their_scores(fusion, path):
    ids, X = samples_of()
    site = ["A" if name < "p07" else "B" for name in ids]
    metadata = pd.DataFrame({"site": site, "age": [int(name[1:]) for name in ids]})
    with Gallery.create(path, fitted("forest"), fusion=fusion) as gallery:
        gallery.enroll(ids, X, metadata=metadata)
        whole = gallery.identify(probes(), k=100).to_frame()
        for where, chosen in [
            ({"site": "A"}, whole["id"] < "p07"),
            ({"site": ["A", "B"]}, whole["id"] >= ""),
            ({"site": "B", "age": [8, 9.0]}, whole["id"].isin(["p08", "p09"])),
        ]:
            part = gallery.identify(probes(), k=100, where=where)
            assert_array_equal(part.id, whole["id"][chosen])
            assert_array_equal(part.score, whole["score"][chosen])
        assert part.n_identities == 2
        assert len(gallery.identify(probes(), where={"site": "A", "age": 12})) == 0
        with pytest.raises(ValueError, match=r"where names 'town', which the metadata .* its names are 'age', 'site'"):
            gallery.identify(probes(), where={"town": "A"})


def test_metadata_come_from_frames_and_dicts_and_are_replaced(path):
    frames = [pl.DataFrame({"site": ["A", None]}), {"site": ["B", "A"]}, {"site": "C"}, pd.DataFrame({"site": [None, pd.NA]})]
    with Gallery.create(path, fitted("distance")) as gallery:
        for frame, (site, found) in zip(
            frames, [("A", ["x"]), ("B", ["x"]), ("C", ["x", "y"]), ("C", ["x", "y"])], strict=True
        ):
            gallery.enroll(["x", "y"], probes()[:2], metadata=frame)
            answer = gallery.identify(probes()[:1], where={"site": site}).id
            assert sorted(answer) == found


def test_values_are_bound_and_never_part_of_a_statement(path):
    evil = "'; DROP TABLE identity; --"
    with Gallery.create(path, fitted("distance")) as gallery:
        gallery.enroll([evil, "x"], probes()[:2], metadata={evil: [evil, "y"]})
        assert gallery.identify(probes()[:1], where={evil: evil}).id.tolist() == [evil]
        assert gallery.verify([evil], probes()[:1]).id.tolist() == [evil]
        gallery.remove(evil)
        assert gallery.ids() == ["x"]


def test_answers_depend_on_neither_merging_nor_order_of_blocks(path, place, monkeypatch):
    ids, X = samples_of(n=40)
    model = fitted("gaussian")
    with Gallery.create(path, model, fusion="mean") as gallery:
        gallery.enroll(ids, X)
        at_once = gallery.identify(probes(), k=40)
    monkeypatch.setattr("simtree.gallery._blocks.BLOCK_BYTES", 64 * 9)  # blocks of a few rows
    with Gallery.create(place("b"), model, fusion="mean") as gallery:
        for name, x in zip(ids, X, strict=True):
            gallery.enroll([name], [x])
        one_by_one = gallery.identify(probes(), k=40)
        n_blocks = query(gallery, "SELECT count(*) FROM block")[0][0]
        gallery.remove([ids[0]])  # its blocks get new numbers, and come last
        fewer = gallery.identify(probes(), k=40)
    with Gallery.open(place("b")) as again:  # which reads all blocks at once
        reopened = again.identify(probes(), k=40)
    assert_array_equal(reopened.id, fewer.id)
    assert_array_equal(reopened.score, fewer.score)
    assert n_blocks < len(ids) / 2
    assert_array_equal(np.sort(at_once.id), np.sort(one_by_one.id))
    assert_array_equal(at_once.score, one_by_one.score)
    kept = one_by_one.id != ids[0]
    assert_array_equal(fewer.id, one_by_one.id[kept])
    assert_array_equal(fewer.score, one_by_one.score[kept])


def test_removed_identities_are_found_no_more_and_can_come_again(path):
    ids, X = samples_of()
    with Gallery.create(path, fitted("forest")) as gallery:
        gallery.enroll(ids, X, metadata={"site": "A"})
        assert gallery.remove(["p03", "p04"]) == ids.count("p03") + ids.count("p04")
        assert "p03" not in gallery
        assert "p05" in gallery
        assert len(gallery) == 13
        assert not {"p03", "p04"} & set(gallery.identify(probes(), k=100).id)
        gallery.enroll(["p03"], X[:1])
        assert gallery.identify(X[:1], k=100).id.tolist().count("p03") == 1
        assert gallery.ids()[-1] == "p03"
        assert "p03" not in gallery.identify(X[:1], k=100, where={"site": "A"}).id


def test_max_samples_keeps_the_newest(path):
    X, _ = people(3, n=1, n_samples=6)
    day = 86_400.0
    with Gallery.create(path, fitted("distance"), max_samples=2) as gallery:
        done = gallery.enroll(["x"] * 3 + ["y"], X[[0, 1, 2, 0]], time=[3 * day, day, 2 * day, 0.0])
        assert (done.n_samples, done.n_identities, done.n_new, done.n_dropped) == (4, 2, 2, 1)
        model = gallery.model
        assert gallery.verify(["x"], X[1:2]).score[0] < model.pair_score([[X[1], X[1]]])[0]  # the oldest is gone
        assert (
            gallery.enroll(["x"], X[3:4], time=datetime.datetime(1970, 1, 1, 12, tzinfo=datetime.UTC)).n_dropped == 1
        )  # older than both
        assert gallery.verify(["x"], X[:1]).score[0] == model.pair_score([[X[0], X[0]]])[0]
        assert gallery.enroll(["x"], X[3:4], time=np.datetime64("1990-01-01")).n_dropped == 1
        for row, there in [(0, True), (1, False), (2, False), (3, True)]:
            assert (gallery.verify(["x"], X[[row]]).score[0] == model.pair_score([[X[row], X[row]]])[0]) == there
        assert gallery.to_dict()["n_samples"] == 3


def test_times_may_be_dates_of_any_kind(path):
    aware = datetime.datetime(2026, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    times = [
        aware,
        [datetime.datetime.fromisoformat("2026-01-01")],
        pd.Series(pd.to_datetime(["2026-01-01"])),
        1767225600,
        [1767225600.0],
    ]
    with Gallery.create(path, fitted("distance")) as gallery:
        for name, time in enumerate(times):
            gallery.enroll([name], probes()[:1], time=time)
        rows = query(gallery, "SELECT times FROM block")
    assert {np.frombuffer(content)[0] for (content,) in rows} == {1767225600.0}


def test_a_match_under_another_id_is_reported(path):
    X, y = people(20, n=5, n_samples=2)
    model = DistanceSimilarity(metric="euclidean").fit(X, y).set_threshold(-1e-9)
    with Gallery.create(path, model) as gallery:
        gallery.enroll(["a", "b"], X[[0, 2]])
        assert gallery.enroll(["a", "c"], X[[0, 4]], on_duplicate="raise").duplicates == ()
        with pytest.warns(
            UserWarning, match="1 sample to enrol match another identity, such as row 1 of 'e', which matches 'b'"
        ):
            done = gallery.enroll(["d", "e"], X[[6, 2]], on_duplicate="warn")
        assert [(found.row, found.id, found.other, found.score) for found in done.duplicates] == [(1, "e", "b", 0.0)]
        with pytest.raises(ValueError, match=r"row 0 of 'f', which matches 'g' .* nothing was enrolled"):
            gallery.enroll(["f", "g"], X[[8, 8]], on_duplicate="raise")
        assert gallery.ids() == ["a", "b", "c", "d", "e"]


def test_another_model_is_refused_and_thresholds_are_no_other_model(path, tmp_path):
    ids, X = samples_of()
    model = simtree.load(_saved(fitted("voting"), tmp_path / "m.simtree"))
    with Gallery.create(path, model) as gallery:
        gallery.enroll(ids, X)
        before = gallery.fingerprint
        assert gallery.verify(ids[:1], X[:1]).threshold[0] == model.threshold_
    model.set_threshold(7.0).n_jobs = 2
    model.estimators_[0].set_threshold(3.0)
    del model.training_counts_  # as in files from before they were kept
    Gallery.open(path, model=model).close()
    with pytest.raises(ValueError, match=r"has another model .VotingSimilarity. than the one given"):
        Gallery.open(path, model=fitted("forest"))
    with Gallery.open(path) as gallery:
        gallery.re_enroll(model)
        assert gallery.fingerprint == before
        assert gallery.verify(ids[:1], X[:1]).threshold[0] == 7.0


def _saved(model, file):
    model.save(file)
    return file


@pytest.mark.parametrize("kind", ["tree", "gaussian", "distance-pipeline"])
def test_another_model_takes_over_without_new_samples(kind, path):
    ids, X = samples_of()
    with Gallery.create(path, fitted("forest")) as gallery, Gallery.open(path) as other:
        gallery.enroll(ids, X)
        other.identify(probes())
        gallery.re_enroll(fitted(kind))
        names, scores = expected(fitted(kind), Fusion("max"), ids, X, probes())
        for some in (gallery, other):
            found = some.identify(probes(), k=3)
            assert_array_equal(found.id.reshape(-1, 3), names[:, :3])
            assert_array_equal(found.score.reshape(-1, 3), scores[:, :3])
        other.enroll(["new"], probes()[:1])
        assert "new" in gallery.identify(probes()[:1], k=100).id
        gallery.re_enroll(fitted("forest"))  # and back
        names, scores = expected(fitted("forest"), Fusion("max"), [*ids, "new"], np.vstack([X, probes()[:1]]), probes())
        assert_array_equal(gallery.identify(probes(), k=3).score.reshape(-1, 3), scores[:, :3])


def test_other_threads_never_see_new_rows_with_the_old_model(path, monkeypatch):
    model, scaled = (DistanceSimilarity(metric="euclidean", representation=step) for step in (None, StandardScaler()))
    (X, y), (strangers, who) = people(5, n=9, n_samples=2), people(31, n=60, n_samples=1)
    for some in (model, scaled):
        some.fit(X, y)
    with Gallery.create(path, model) as gallery:
        gallery.enroll(y, X)
        gallery.identify(probes(), k=1)
        store, seen = gallery._session.store, []
        writing = store.writing

        @contextmanager
        def watched():
            with writing() as connection:
                yield connection
            # What another thread may do as soon as the store is free.
            seen.append((gallery.identify(probes(), k=1).score, gallery.to_dict()["calibration"]))

        monkeypatch.setattr(store, "writing", watched)
        gallery.re_enroll(scaled)
        gallery.calibrate(strangers, [f"s{k}" for k in who])
    expected = scaled.pairwise_score(probes(), X).max(axis=1)
    assert_array_equal(seen[0][0], expected)
    assert seen[0][1] is None
    assert seen[1][1] is not None


def test_what_is_not_kept_rules_out_another_model(path):
    ids, X = samples_of()
    with Gallery.create(path, fitted("gaussian"), keep_vectors=False) as gallery:
        gallery.enroll(ids, X)
        stored = [value for rows in content(gallery).values() for row in rows for value in row if isinstance(value, bytes)]
        assert not [value for value in stored if X[0].tobytes() in value]
        with pytest.raises(ValueError, match="keep_vectors=False and has no samples that another model could prepare"):
            gallery.re_enroll(fitted("tree"))
        assert not gallery.to_dict()["has_vectors"]
        assert len(gallery.identify(probes(), k=1)) == len(probes())


def test_changes_reach_other_readers_without_reading_everything_again(path, monkeypatch):
    from simtree.gallery import _snapshot

    read = []
    monkeypatch.setattr(_snapshot, "read_rows", lambda *args, whole=_snapshot.read_rows: read.append(args[2]) or whole(*args))
    ids, X = samples_of(n=30)
    with Gallery.create(path, fitted("forest")) as writer, Gallery.open(path, readonly=True) as reader:
        writer.enroll(ids, X)
        reader.identify(probes())
        assert len(read) == 1
        buffer = reader._session.state().snapshot.buffer
        for name in ("new", "newer"):
            writer.enroll([name], probes()[:1])
            assert name in reader.identify(probes()[:1], k=3).id
        assert len(read) == 3
        assert reader._session.state().snapshot.buffer is buffer  # nor were all rows copied
        reader.identify(probes())
        assert len(read) == 3
        writer.remove("new")
        assert "new" not in reader.identify(probes()[:1], k=3).id
        assert len(read) == 3
        assert is_idle(reader)


def test_new_rows_find_their_places_without_sorting_all(rng):
    from simtree.gallery._snapshot import _places_of_all, _places_of_new

    for n_kept, n_new in [(0, 5), (7, 0), (0, 0), (30, 1), (30, 40)]:
        owners = np.append(np.sort(rng.integers(0, 12, n_kept)), rng.integers(0, 14, n_new))
        samples = np.arange(len(owners))  # new ones are later
        assert_array_equal(_places_of_new(owners, n_kept), _places_of_all(owners, samples))


def test_the_audit_is_appended_to_and_forgets_who_was_removed(path):
    ids, X = samples_of()
    start = pd.Timestamp.now("UTC").tz_localize(None).floor("ms")
    with Gallery.create(path, fitted("distance"), audit_searches=True) as gallery:
        gallery.enroll(ids, X)
        gallery.identify(X[:1], k=2)
        gallery.verify(ids[:1], X[:1])
        trail = gallery.audit().to_frame()
        assert trail["action"].tolist() == ["create", "enroll", "identify", "verify"]
        assert trail["n_identities"].tolist() == [0, 15, 2, 1]
        assert trail["n_samples"].tolist() == [0, len(ids), 1, 1]
        assert set(trail["model"]) == {gallery.fingerprint}
        assert trail["time"].between(start, pd.Timestamp.now("UTC").tz_localize(None)).all()
        assert gallery.audit(ids[0]).action.tolist() == ["enroll", "identify", "verify"]
        (subject,) = set(trail["subjects"][3].split())
        gallery.remove(ids[0])
        gallery.enroll(ids[:1], X[:1])
        assert subject in gallery.audit().subjects[-2]  # the removal
        assert subject not in gallery.audit().subjects[-1]  # the same id has another hash now
        assert gallery.audit(ids[0]).action.tolist() == ["enroll"]
        for statement in ("DELETE FROM audit", "UPDATE audit SET action = 'x'"):
            with pytest.raises(GalleryError, match="can only be appended to"):
                tamper(gallery, statement)
    with Gallery.open(path, readonly=True) as gallery, pytest.raises(PermissionError, match="it audits searches"):
        gallery.identify(X[:1])


def test_probabilities_are_for_identities_with_one_sample(path, place):
    model = fitted("forest")
    with Gallery.create(path, model) as gallery:
        gallery.enroll(["one", "two", "two"], probes()[:3])
        found = gallery.identify(probes()[5:6]).to_frame().set_index("id")
        assert np.isnan(found.loc["two", "probability"])
        pair = [[probes()[5], probes()[0]]]
        assert found.loc["one", "probability"] == model.predict_proba(pair)[0, 1]
    with Gallery.create(place("b"), fitted("distance")) as gallery:
        gallery.enroll(["one"], probes()[:1])
        assert np.isnan(gallery.identify(probes()[:1]).probability).all()


def test_a_backup_is_a_gallery_of_its_own(path, tmp_path):
    ids, X = samples_of()
    with Gallery.create(path, fitted("forest")) as gallery:
        gallery.enroll(ids, X)
        gallery.backup(tmp_path / "copy.gallery")
        gallery.remove(ids[0])
        with pytest.raises(FileExistsError, match=r"copy\.gallery exists; choose another name"):
            gallery.backup(tmp_path / "copy.gallery")
        with pytest.raises(FileExistsError):
            gallery.backup(path)
    with Gallery.open(tmp_path / "copy.gallery") as copy:
        assert ids[0] in copy
        copy.enroll(["new"], X[:1])
        assert copy.identify(X[:1], k=100).n_identities == 16
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_feature_names_are_those_of_the_model(path):
    frame = pd.DataFrame(people(1)[0], columns=["a", "b", "c"])
    model = DistanceSimilarity().fit(frame, people(1)[1])
    with Gallery.create(path, model) as gallery:
        gallery.enroll(["x"], frame[:1])
        assert gallery.identify(frame[:1]).id[0] == "x"
        with pytest.raises(ValueError, match="feature names"), warnings.catch_warnings():
            gallery.identify(frame[:1].rename(columns={"a": "z"}))
        other = DistanceSimilarity().fit(frame.rename(columns={"a": "z"}), people(1)[1])
        with pytest.raises(ValueError, match=r"the model is for the features z, b, c .* give a model for the same features"):
            gallery.re_enroll(other)


def test_threads_may_share_a_gallery(path):
    from concurrent.futures import ThreadPoolExecutor

    ids, X = samples_of(n=30)
    with Gallery.create(path, fitted("gaussian")) as gallery, ThreadPoolExecutor(4) as pool:
        gallery.enroll(["first"], X[:1])
        work = [pool.submit(gallery.enroll, [name], [x]) for name, x in zip(ids, X, strict=True)]
        answers = [pool.submit(gallery.identify, X[:2]) for _ in range(20)]
        assert all(len(answer.result()) >= 2 for answer in answers)
        assert all(done.result().n_samples == 1 for done in work)
        assert len(gallery) == 31


def test_it_says_what_it_is(path):
    with Gallery.create(path, fitted("distance")) as gallery:
        gallery.enroll([1, 2], probes()[:2])
        assert repr(gallery) == f"<gallery {path}: 2 identities>"
        assert gallery.ids() == ["1", "2"]
        assert 1 in gallery
        assert gallery
    assert repr(gallery) == f"<closed gallery {path}>"
    gallery.close()
