"""Learned and closed-form fusions in a gallery: exactly the numbers of the evaluation, with the age of samples."""

from __future__ import annotations

import time as clock

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from simtree import DistanceSimilarity, Gallery, GaussianSimilarity
from simtree.evaluation._enrolled import Templates
from simtree.evaluation._model_fusion import resolve_fusion
from simtree.evaluation._templates import FUSIONS


@pytest.fixture(scope="module")
def people():
    """Samples of identities with unequal numbers of them, their times, and which are enrolled."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(20), 6))
    X = rng.normal(size=(20, 3))[y] + 0.5 * rng.normal(size=(120, 3))
    return X, y, 1e9 + 1e6 * np.sort(rng.random(120)), np.arange(120) < 70


def make_model(people, kind=GaussianSimilarity):
    X, y, time, enrol = people
    return kind().fit(X, y).fit_fusion(X, y, enrol=enrol, time=time)


def evaluated(model, people, fusion):
    """Fused scores of all probes with all enrolled identities, and the labels of these."""
    X, y, time, enrol = people
    templates = Templates.of(y, enrol)
    n_probes, n_enrolled = len(templates.probes), len(templates.starts)
    score = templates.scorer(model._template_scorer(model._prepare(X), resolve_fusion(model, fusion), time))
    first, second = np.divmod(np.arange(n_probes * n_enrolled, dtype=np.int32), np.int32(n_enrolled))
    return score(first, second + np.int32(n_probes)).reshape(n_probes, n_enrolled), y[templates.samples[templates.starts]]


@pytest.mark.parametrize(
    ("fusion", "store"),
    [(fusion, "sqlite") for fusion in FUSIONS]
    + [pytest.param(fusion, "postgresql", marks=pytest.mark.slow) for fusion in ("likelihood_ratio", "learned")],
)
def test_scores_are_those_of_the_evaluation(fusion, people, place):
    X, y, time, enrol = people
    path, model = place(), make_model(people)
    expected, labels = evaluated(model, people, fusion)
    model.calibrate_threshold(X, y, confidence=None, max_fpr=0.1, enrol=enrol, fusion=fusion, time=time)
    with Gallery.create(path, model, fusion=fusion) as gallery:
        for rows in np.array_split(np.flatnonzero(enrol), 3):
            gallery.enroll(y[rows], X[rows], time=time[rows])
        found = gallery.identify(X[~enrol], k=20, time=time[~enrol])
        claims = gallery.verify(np.repeat(labels[:1], (~enrol).sum()), X[~enrol], time=time[~enrol])
        gallery.compact()
    with Gallery.open(path, model=model) as gallery:
        assert gallery.to_dict()["fusion"] == fusion
        assert_array_equal(gallery.identify(X[~enrol], k=20, time=time[~enrol]).score, found.score)
        nearby = gallery.identify(X[~enrol], k=3, time=time[~enrol], where=None)
        assert_array_equal(nearby.score.reshape(-1, 3), found.score.reshape(len(expected), -1)[:, :3])
    assert_array_equal(found.score.reshape(expected.shape), -np.sort(-expected, axis=1))
    assert_array_equal(claims.score, expected[:, 0])
    assert_array_equal(claims.accepted, expected[:, 0] >= model.threshold_)
    if fusion == "learned":
        assert_array_equal(found.probability, expit(found.score))


def test_age_counts(people, tmp_path):
    X = people[0]
    model = make_model(people, DistanceSimilarity)
    model.learned_fusion_ = type(model.learned_fusion_)(0.0, 1e5, 1.0, 0.0, 0.0, -1.0, (1.0, 9.0), (0.0, 1e10), 1e6)
    with Gallery.create(tmp_path / "g", model, fusion="learned") as gallery:
        gallery.enroll(["a", "a"], X[:2], time=[0.0, 1e6])
        at_once, later = (gallery.identify(X[:1], time=at).score[0] for at in (1e6, 5e6))
        now = gallery.identify(X[:1]).score[0]
    newest = model.pair_score([[0, 1]], X)[0]
    weight = 2.0**-10
    mean = (newest + weight * model.pair_score([[0, 0]], X)[0]) / (1.0 + weight)
    assert_allclose([at_once, later], [mean, mean - np.log1p(4.0)])
    assert now == pytest.approx(mean - np.log1p((clock.time() - 1e6) / 1e6), abs=1e-3)


def test_the_oldest_samples_are_dropped(people, place):
    X, _, _, _ = people
    model = make_model(people)
    with Gallery.create(place(), model, fusion="likelihood_ratio", max_samples=2) as gallery:
        assert gallery.enroll(["a"] * 4, X[:4], time=[3.0, 1.0, 4.0, 2.0]).n_dropped == 2
        found = gallery.identify(X[4:5]).score
    prepared = model._prepare(X)
    zero = np.zeros(1, dtype=np.int32)
    assert_array_equal(found, model._score_templates(prepared[4:5], prepared[[0, 2]], np.array([0]))(zero, zero))


def test_another_model_must_have_the_fusion(people, tmp_path):
    X, y, time, enrol = people
    model = make_model(people)
    plain = GaussianSimilarity(shrinkage=0.5).fit(X, y)
    with pytest.raises(ValueError, match="fusion='learned' has not been learned; call fit_fusion"):
        Gallery.create(tmp_path / "g", plain, fusion="learned")
    with pytest.raises(ValueError, match="for GaussianSimilarity only, not for DistanceSimilarity"):
        Gallery.create(tmp_path / "g", DistanceSimilarity().fit(X, y), fusion="likelihood_ratio")
    with pytest.raises(ValueError, match="fusion=LearnedFusion"):
        Gallery.create(tmp_path / "g", model, fusion=model.learned_fusion_)
    assert not (tmp_path / "g").exists()
    with Gallery.create(tmp_path / "g", model, fusion="learned") as gallery:
        gallery.enroll(y[enrol], X[enrol], time=time[enrol])
        with pytest.raises(ValueError, match="has not been learned"):
            gallery.re_enroll(plain)
        before = gallery.identify(X[:1], time=time[-1]).score
        again = GaussianSimilarity(shrinkage=0.5).fit(X, y).fit_fusion(X, y, enrol=enrol)
        gallery.re_enroll(again)
        assert not np.array_equal(gallery.identify(X[:1], time=time[-1]).score, before)
        expected, _ = evaluated(again, people, "learned")
        assert_array_equal(gallery.identify(X[~enrol], k=1, time=time[~enrol]).score, expected.max(axis=1))


def test_thresholds_for_other_scores_are_refused(people, tmp_path):
    X, y, time, enrol = people
    model = make_model(people)
    with Gallery.create(tmp_path / "g", model, fusion="learned") as gallery:
        gallery.enroll(y[enrol], X[enrol], time=time[enrol])
        with pytest.raises(ValueError, match="is for pairs of samples, and the gallery has fusion='learned'"):
            gallery.verify(y[:1], X[:1])
        with pytest.raises(ValueError, match="the threshold of the model is for pairs"):
            gallery.enroll(["new"], X[:1], on_duplicate="warn")
        model.calibrate_threshold(X, y, confidence=None, max_fpr=0.1, enrol=enrol, fusion="mean")
        gallery.re_enroll(model)  # the same scores: only the threshold is new
        with pytest.raises(ValueError, match="is for fusion='mean', and the gallery has fusion='learned'"):
            gallery.verify(y[:1], X[:1])


def test_thresholds_for_another_number_of_scores_are_refused(people, tmp_path):
    X, y, _, enrol = people
    model = DistanceSimilarity().fit(X, y)
    model.calibrate_threshold(X, y, confidence=None, max_fpr=0.1, enrol=enrol, fusion="top_mean", n_best=1)
    with Gallery.create(tmp_path / "g", model, fusion="top_mean", n_best=4) as gallery:
        gallery.enroll(y[enrol], X[enrol])
        said = "is for fusion='top_mean', n_best=1, and the gallery has fusion='top_mean', n_best=4; calibrate the model with"
        with pytest.raises(ValueError, match=said):
            gallery.verify(y[:1], X[:1])
        model.calibrate_threshold(X, y, confidence=None, max_fpr=0.1, enrol=enrol, fusion="top_mean", n_best=4)
        gallery.re_enroll(model)
        assert gallery.verify(y[:1], X[:1]).threshold[0] == model.threshold_


def test_strangers_are_searched_by_fused_scores(people, place):
    X, y, time, enrol = people
    model = make_model(people)
    rng = np.random.default_rng(1)
    with Gallery.create(place(), model, fusion="learned") as gallery:
        gallery.enroll(y[enrol], X[enrol], time=time[enrol])
        strangers = rng.normal(size=(60, 3))
        gallery.calibrate(strangers, [f"s{k}" for k in range(60)], max_fpir=0.05, time=time[-1])
        assert len(gallery.identify(strangers, max_fpir=0.05, time=time[-1])) == 0
        assert len(gallery.identify(X[:5], k=1, time=time[-1])) == 5
