"""Searches for strangers: the threshold keeps its promise, shrinks as the gallery grows, and is refused with too few people."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gallery_stores import query, tamper
from simtree import DistanceSimilarity, Gallery
from simtree.evaluation import LearnedFusion
from simtree.gallery._strangers import SearchTimes, Size, Strangers, n_above, n_people_for
from tiny_models import fitted, people

SIZE = Size(100, 100, 100, 100)


def strangers(maxima, size=SIZE, confidence=0.95):
    nothing = np.empty(0)
    return Strangers(np.sort(maxima)[::-1], nothing, nothing, 0.05, confidence, size)


@pytest.fixture
def path(place):
    return place()


def enrolled(path, n=40, **options):
    X, y = people(30, n=n, n_samples=2)
    gallery = Gallery.create(path, fitted("gaussian"), **options)
    gallery.enroll(y, X)
    return gallery


def others(n, seed=31):
    X, y = people(seed, n=n, n_samples=3)
    return X, [f"stranger {k}" for k in y]


@pytest.mark.parametrize(("rate", "confidence", "needed"), [(0.05, 0.95, 59), (0.01, 0.95, 299), (0.01, 0.99, 459)])
def test_number_of_people_needed(rate, confidence, needed):
    assert n_people_for(rate, confidence) == needed
    assert n_above(needed - 1, rate, confidence) == -1
    assert n_above(needed, rate, confidence) == 0


@pytest.mark.parametrize(("rate", "n"), [(0.05, 59), (0.05, 200), (0.02, 300)])
def test_the_rate_is_exceeded_as_often_as_the_confidence_says(rate, n):
    """Maxima of people are uniform: the rate of a threshold is known."""
    rng, n_repeats = np.random.default_rng(0), 4000
    rates = [1.0 - strangers(rng.random(n)).threshold(rate, SIZE) for _ in range(n_repeats)]
    exceeded = np.mean(np.array(rates) > rate)
    assert exceeded <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / n_repeats)
    assert exceeded >= 0.01  # and it is not wasteful


def test_the_rate_holds_when_the_gallery_grows_threefold():
    """Scores of a stranger with all identities are independent and uniform: the worst case, with the most alarms."""
    rng, n_repeats, then, now = np.random.default_rng(1), 2000, 100, 300
    grown = Size(now, now, now, now)
    maxima = rng.random((n_repeats, 250)) ** (1.0 / then)  # of 100 independent uniform scores each
    rates = [1.0 - strangers(some).threshold(0.05, grown) ** now for some in maxima]
    assert np.mean(np.array(rates) > 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / n_repeats)


def test_growth_counts_identities_or_samples_that_were_added():
    searched = strangers(np.arange(100.0))
    assert searched.growth(SIZE) == 1.0
    assert searched.growth(Size(150, 150, 150, 150)) == 1.5
    assert searched.growth(Size(100, 300, 100, 300)) == 3.0
    assert searched.growth(Size(100, 100, 180, 180)) == 1.8  # 80 were removed, and 80 others came
    assert searched.growth(Size(10, 10, 100, 100)) == 1.0


@pytest.mark.parametrize(("fusion", "counted"), [("max", 1.25), ("mean", 2.0), ("top_mean", 2.0), ("likelihood_ratio", 2.0)])
def test_a_changed_template_counts_as_a_new_one(fusion, counted, tmp_path):
    """One more sample for each of four: a quarter more samples, but all templates are others."""
    (X, y), later = people(30, n=40, n_samples=4), people(32, n=40, n_samples=1)[0]
    with Gallery.create(tmp_path / "g", fitted("gaussian"), fusion=fusion) as gallery:
        gallery.enroll(y, X)
        gallery.calibrate(*others(120))
        gallery.enroll(range(40), later)
        assert gallery.to_dict()["calibration"]["growth"] == counted
        gallery.enroll(range(20), later[:20])
        assert gallery.to_dict()["calibration"]["growth"] == counted + 0.125 * (fusion == "max")  # no more than all of them
        gallery.enroll(["new"] * 4, X[:4])
        assert gallery.to_dict()["calibration"]["growth"] == counted + (0.15 if fusion == "max" else 0.025)
        gallery.calibrate(*others(120))
        assert gallery.to_dict()["calibration"]["growth"] == 1.0


def test_the_promise_holds_when_samples_are_replaced(tmp_path):
    """All templates of a gallery with fusion "mean" change, as the oldest samples are dropped, in some draws of everybody."""
    exceeded, unknown, n_draws = 0, people(99, n=600, n_samples=1)[0], 6
    for seed in range(n_draws):
        X, y = people([7, seed], n=30, n_samples=3)
        first = np.arange(90) % 3 < 2
        with Gallery.create(tmp_path / str(seed), fitted("gaussian"), fusion="mean", max_samples=2) as gallery:
            gallery.enroll(y[first], X[first])
            gallery.calibrate(*others(120, seed=[8, seed]))
            assert gallery.enroll(y[~first], X[~first]).n_dropped == 30
            found = gallery.identify(unknown, k=1, max_fpir=0.05)
            assert "(x 2)" in found.promise
            exceeded += len(found) / len(unknown) > 0.05
    assert exceeded <= n_draws * 0.05 + 2 * np.sqrt(n_draws * 0.05 * 0.95)


@pytest.mark.parametrize("fusion", ["max", "mean"])
def test_an_open_search_returns_the_candidates_above_the_threshold(fusion, path):
    with enrolled(path, fusion=fusion) as gallery:
        with pytest.raises(ValueError, match="max_fpir needs a calibrated gallery; calibrate it with identities that are not"):
            gallery.identify(others(1)[0], max_fpir=0.05)
        promise = gallery.calibrate(*others(60), max_fpir=0.05)
        assert promise == "FPIR <= 0.05 with 95 % confidence for strangers like the 60 searched"
        found = gallery.identify(others(60)[0], k=1)
        queries = np.vstack([people(30, n=40, n_samples=2)[0], others(60)[0]])
        whole, answer = gallery.identify(queries, k=40), gallery.identify(queries, k=40, max_fpir=0.05)
        assert answer.threshold == np.nextafter(found.score.max(), np.inf)
        assert answer.promise == promise
        kept = whole.score >= answer.threshold
        assert_array_equal(answer.id, whole.id[kept])
        assert_array_equal(answer.query, whole.query[kept])
        assert len(set(answer.query)) < len(queries)  # some queries have no candidate
        assert set(answer.query) <= set(range(80))  # the people of the calibration have none
        part = gallery.identify(queries, k=40, max_fpir=0.5)
        assert part.threshold < answer.threshold


def test_expected_false_matches_are_those_of_strangers(path):
    with enrolled(path) as gallery:
        assert np.isnan(gallery.identify(others(2)[0], k=3).expected_false_matches).all()
        assert np.isnan(gallery.verify(["0"], others(1)[0][:1]).expected_false_matches).all()
        X, y = others(60)
        gallery.calibrate(X, y)
        scores = gallery.identify(X, k=40).score.reshape(len(X), 40)
        found = gallery.identify(people(30, n=40, n_samples=2)[0][:5], k=20)
        expected = [(scores >= score).sum(axis=1).mean() for score in found.score]
        low = np.sort(scores, axis=1)[:, -20].max()  # twenty are counted per search
        sure = found.score >= low
        assert sure.any()
        assert_allclose(found.expected_false_matches[sure], np.array(expected)[sure], rtol=1e-9)
        assert (np.diff(found.expected_false_matches.reshape(5, 20), axis=1) >= 0).all()
        claims = gallery.verify(found.id[:20], np.repeat(people(30, n=40, n_samples=2)[0][:1], 20, axis=0))
        assert_array_equal(claims.score, found.score[:20])
        assert_array_equal(claims.expected_false_matches, found.expected_false_matches[:20])
        gallery.enroll([f"new {k}" for k in range(40)], people(32, n=40, n_samples=1)[0])
        again = gallery.identify(people(30, n=40, n_samples=2)[0][:5], k=1)
        assert_allclose(again.expected_false_matches, 2.0 * found.expected_false_matches.reshape(5, 20)[:, 0])


def test_a_grown_gallery_takes_more_people_until_it_is_calibrated_again(path):
    with enrolled(path) as gallery, Gallery.open(path, readonly=True) as reader:
        gallery.calibrate(*others(100), max_fpir=0.05)
        before = reader.identify(others(1)[0], max_fpir=0.05)
        gallery.enroll([f"new {k}" for k in range(20)], people(32, n=20, n_samples=1)[0])
        after = reader.identify(others(1)[0], max_fpir=0.05)
        assert after.threshold >= before.threshold
        assert "assuming that what was enrolled since is like what was before (x 1.5)" in after.promise
        gallery.enroll([f"newer {k}" for k in range(40)], people(33, n=40, n_samples=1)[0])
        with pytest.raises(
            ValueError, match=r"max_fpir=0.05 at confidence=0.95 takes 149 identities .* grew 2.5-fold .* there are 100"
        ):
            reader.identify(others(1)[0], max_fpir=0.05)
        gallery.calibrate(*others(100), max_fpir=0.05)
        assert reader.identify(others(1)[0], max_fpir=0.05).threshold is not None


# A day, and when the people of these galleries were enrolled.
DAY, SINCE = 86400.0, 1e9


def ageing(of_age, path):
    """A gallery whose fused scores depend on age, calibrated on the day after the last enrolment."""
    X, y = people(30, n=40, n_samples=2)
    model = DistanceSimilarity(metric="euclidean").fit(X, y)
    model.learned_fusion_ = LearnedFusion(
        0.0, np.inf, 1.0, 0.0, of_age=of_age, n_samples=(1.0, 9.0), newest=(0.0, 1000 * DAY), age_unit=30 * DAY
    )
    gallery = Gallery.create(path, model, fusion="learned")
    gallery.enroll(y, X, time=SINCE + DAY * np.linspace(0, 100, len(y)))
    gallery.calibrate(*others(300), max_fpir=0.05, time=SINCE + DAY * np.linspace(101, 103, 900))
    return gallery


def rate_of_alarms(gallery, day):
    """The share of people who were never searched for, and have a candidate when they come on some day."""
    unknown = people(77, n=600, n_samples=1)[0]
    found = gallery.identify(unknown, k=1, max_fpir=0.05, time=SINCE + day * DAY)
    return len(found) / len(unknown), found.threshold


@pytest.mark.parametrize(("of_age", "days"), [(0.5, (103, 130, 400, 3000)), (-0.5, (101, 60, 0))])
def test_the_promise_holds_when_time_passes(of_age, days, tmp_path):
    """Nobody is enrolled: only the age of samples changes the scores, and a threshold that stays would be exceeded."""
    with ageing(of_age, tmp_path / "g") as gallery:
        rates, thresholds = zip(*[rate_of_alarms(gallery, day) for day in days], strict=True)
        assert max(rates) <= 0.05
        assert rates[0] > 0.0  # the threshold is not merely high
        assert thresholds == tuple(sorted(thresholds))
        at_calibration = gallery._session.state().strangers.threshold(0.05, gallery._session.state().size)
        late = gallery.identify(people(77, n=600, n_samples=1)[0], k=1, time=SINCE + days[-1] * DAY)
        assert np.mean(late.score >= at_calibration) > 0.05  # what it would be
        expected = gallery._session.state().strangers.expected_matches(late.score, 40, gallery._session.state().size)
        assert (late.expected_false_matches >= expected).all()


def test_other_directions_of_time_lower_scores_and_change_nothing(tmp_path):
    with ageing(-0.5, tmp_path / "g") as gallery:
        thresholds = {rate_of_alarms(gallery, day)[1] for day in (103, 130, 3000)}
        assert thresholds == {gallery._session.state().strangers.threshold(0.05, gallery._session.state().size)}


def test_a_calibration_that_does_not_say_when_is_taken_for_the_oldest(path):
    with ageing(0.5, path) as gallery:
        before = rate_of_alarms(gallery, 3000)[1]
        ((written,),) = query(gallery, "SELECT content FROM strangers")
        content = json.loads(written)
        assert content.pop("times")["newest"] == SINCE + 100 * DAY
        tamper(gallery, "UPDATE strangers SET content = ?", json.dumps(content))
        with Gallery.open(path) as opened:
            assert opened._session.state().strangers.times == SearchTimes()
            assert rate_of_alarms(opened, 103)[1] >= before


def test_calibration_is_refused_where_it_would_promise_nothing(path, place):
    with enrolled(path) as gallery:
        with pytest.raises(ValueError, match=r"takes 59 identities that are not enrolled, and there are 40; .* or allow 0.073"):
            gallery.calibrate(*others(40))
        gallery.calibrate(*others(40), max_fpir=0.073)
        with pytest.raises(
            ValueError, match=r"y has 40 identities that the gallery holds, such as '0'; calibrate with identities"
        ):
            gallery.calibrate(*people(30, n=60, n_samples=2))
        with pytest.raises(ValueError, match="y has 3 entries for 4 samples of X"):
            gallery.calibrate(others(2)[0][:4], [1001, 1002, 1003])
        for bad in (0.0, 1.0):
            with pytest.raises(ValueError, match="out of range"):
                gallery.calibrate(*others(60), max_fpir=bad)
    with (
        Gallery.create(place("empty"), fitted("gaussian")) as gallery,
        pytest.raises(ValueError, match="the gallery is empty, so that nobody can raise an alarm; enrol first"),
    ):
        gallery.calibrate(*others(60))


def test_another_model_voids_the_calibration(path):
    with enrolled(path) as gallery:
        gallery.calibrate(*others(60))
        gallery.re_enroll(fitted("tree"))
        with pytest.raises(ValueError, match="max_fpir needs a calibrated gallery"):
            gallery.identify(others(1)[0], max_fpir=0.05)
        assert gallery.to_dict()["calibration"] is None


def test_duplicates_are_judged_by_the_calibrated_threshold(path):
    with enrolled(path) as gallery:
        gallery.calibrate(*others(60))
        X, _ = people(30, n=40, n_samples=2)
        threshold = gallery.identify(X[:1], max_fpir=0.05).threshold
        alike = gallery.verify(["0"], X[:1]).score[0]
        assert alike >= threshold
        with pytest.raises(ValueError, match="row 0 of 'other', which matches '0'"):
            gallery.enroll(["other"], X[:1], on_duplicate="raise")
        gallery.enroll([f"new {k}" for k in range(200)], people(32, n=200, n_samples=1)[0])
        with pytest.raises(ValueError, match="calibrate with more identities"):
            gallery.identify(X[:1], max_fpir=0.05)
        with pytest.raises(ValueError, match="row 0 of 'other', which matches '0'"):  # enrolling goes on, by the highest bar
            gallery.enroll(["other"], X[:1], on_duplicate="raise")
