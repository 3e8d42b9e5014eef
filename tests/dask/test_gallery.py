"""A gallery that is searched on a cluster gives the answer of the gallery, for every fusion and any parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from simtree import Gallery, GaussianSimilarity
from simtree import dask as simdask
from simtree.cli._app import app
from simtree.dask import _gallery

pytestmark = pytest.mark.slow

NOW = 1.7e9


@pytest.fixture(scope="module")
def model(people):
    X, y = people
    enrol = np.arange(len(X)) % 2 == 0
    return GaussianSimilarity().fit(X, y).fit_fusion(X, y, enrol=enrol, time=NOW - 1e5 * np.arange(len(X)))


@pytest.fixture
def small_parts(monkeypatch):
    """Three identities or so to a part."""
    monkeypatch.setattr(_gallery, "PART_ROWS", 25)


def enrolled(path, model, people, fusion):
    """Return a gallery with half of the samples; each person is of one of two sites."""
    X, y = people
    gallery = Gallery.create(path, model, fusion=fusion)
    rows = np.arange(0, len(X), 2)
    metadata = pd.DataFrame({"site": np.where(y[rows] % 2, "A", "B")})
    gallery.enroll(y[rows], X[rows], metadata=metadata, time=NOW - 1e5 * rows)
    return gallery


def assert_equal(found, expected):
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame(), check_exact=True)
    assert (found.threshold, found.promise, found.n_identities) == (
        expected.threshold,
        expected.promise,
        expected.n_identities,
    )


@pytest.mark.parametrize("fusion", ["max", "mean", "top_mean", "likelihood_ratio", "learned"])
def test_the_answer_is_that_of_the_gallery(fusion, model, people, client, small_parts, tmp_path):
    probes = people[0][1::2][:40]
    with enrolled(tmp_path / "g", model, people, fusion) as gallery:
        for options in ({"k": 3}, {"k": 100}, {"k": 3, "where": {"site": "A"}}):
            found = simdask.identify(gallery, probes, time=NOW, client=client, **options)
            assert_equal(found, gallery.identify(probes, time=NOW, **options))


def test_parts_are_sent_once_and_again_when_the_gallery_changes(model, people, client, small_parts, monkeypatch, tmp_path):
    X, y = people
    sent = []
    send = _gallery.Cluster.send
    monkeypatch.setattr(
        _gallery.Cluster, "send", lambda self, value, to_all=False: sent.append(to_all) or send(self, value, to_all=to_all)
    )
    search = simdask.ClusterSearch(client)
    with enrolled(tmp_path / "g", model, people, "max") as gallery:
        n_sent = []
        for where in (None, None, {"site": "A"}, {"site": "A"}, None):
            sent.clear()
            search.identify(gallery, X[:4], where=where)
            n_sent.append(sent.count(False))
        n_all, n_half = n_sent[0], n_sent[2]
        assert n_all > n_half > 3
        assert n_sent == [n_all, 0, n_half, 0, n_all]
        gallery.remove([str(y[0])])
        found = search.identify(gallery, X[:4], k=60)
        assert str(y[0]) not in set(found.id)
        assert_equal(found, gallery.identify(X[:4], k=60))


def test_strangers_are_counted_as_by_the_gallery(model, people, client, small_parts, tmp_path):
    X, _ = people
    rng = np.random.default_rng(1)
    with enrolled(tmp_path / "g", model, people, "max") as gallery:
        gallery.calibrate(rng.normal(size=(80, 5)), 1000 + np.arange(80), max_fpir=0.05)
        options = {"k": 2, "max_fpir": 0.05}
        for more in ({}, {"keep_below": True}):
            found = simdask.identify(gallery, X[1::2], client=client, **options, **more)
            assert_equal(found, gallery.identify(X[1::2], **options, **more))


def test_bad_input(model, people, client, tmp_path):
    with enrolled(tmp_path / "g", model, people, "max") as gallery:
        with pytest.raises(ValueError, match="k=0"):
            simdask.identify(gallery, people[0], k=0, client=client)
        with pytest.raises(ValueError, match="3 features"):
            simdask.identify(gallery, people[0][:, :3], client=client)
    with pytest.raises(TypeError, match="is not a Gallery; open one"):
        simdask.identify(model, people[0], client=client)


def test_the_command(model, people, client, small_parts, tmp_path):
    enrolled(tmp_path / "g", model, people, "max").close()
    pd.DataFrame(people[0][1::2]).to_csv(tmp_path / "probes.csv", index=False)
    command = ["identify", str(tmp_path / "g"), str(tmp_path / "probes.csv")]
    found = [CliRunner().invoke(app, [*command, *more]) for more in ([], ["--dask", client.scheduler.address])]
    assert [result.exit_code for result in found] == [0, 0], found[1].output
    assert_array_equal(found[0].stdout.splitlines(), found[1].stdout.splitlines())
