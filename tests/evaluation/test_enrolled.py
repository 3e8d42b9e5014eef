"""Probes against enrolled identities: which comparisons there are, their scores, intervals, thresholds and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from simtree import DistanceSimilarity, GaussianSimilarity, evaluate, evaluate_scores
from simtree.evaluation import LearnedFusion
from simtree.evaluation._enrolled import Templates, fused_scorer
from simtree.evaluation._templates import Fusion
from simtree.metrics import cmc, fnir_at_fpir, searches

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 6)
    X = rng.normal(size=(30, 3))[y] + 0.6 * rng.normal(size=(180, 3))
    enrol = rng.random(180) < 0.5
    enrol[y == 7] = False  # a stranger
    enrol[y == 8] = True  # nobody probes as this one
    return X, y, enrol


@pytest.fixture(scope="module")
def model(people):
    return DistanceSimilarity(metric="euclidean").fit(*people[:2])


def brute_force(model, X, y, enrol, fuse, never_pair=None):
    """Score, same and identities of each comparison, with loops."""
    found, every = [], model.pairwise_score(X)
    for probe in np.flatnonzero(~enrol):
        for identity in np.unique(y[enrol]):
            rows = np.flatnonzero(enrol & (y == identity))
            if never_pair is not None:
                rows = rows[never_pair[rows] != never_pair[probe]]
            if len(rows):
                found.append((fuse(every[probe, rows]), y[probe] == identity, y[probe], identity))
    return [np.array(column) for column in zip(*found, strict=True)]


@pytest.mark.parametrize(
    ("fusion", "fuse"), [("max", np.max), ("mean", np.mean), ("top_mean", lambda s: np.sort(s)[-2:].mean())]
)
@pytest.mark.parametrize("with_sessions", [False, True])
def test_evaluation_is_that_of_all_comparisons(people, model, fusion, fuse, with_sessions):
    X, y, enrol = people
    never_pair = np.arange(180) % 4 if with_sessions else None
    n_best = 2 if fusion == "top_mean" else None
    result = evaluate(model, X, y, enrol=enrol, fusion=fusion, n_best=n_best, never_pair=never_pair)
    scores, same, first, second = brute_force(model, X, y, enrol, fuse, never_pair)
    expected = evaluate_scores(scores, same, identities=np.column_stack([first, second]))
    assert (result.n_same, result.n_different, result.n_enrolled, result.fusion) == (same.sum(), (~same).sum(), 29, fusion)
    assert_allclose(result.auc, expected.auc, rtol=1e-9)
    assert_allclose(result.eer_interval, expected.eer_interval, rtol=1e-9)
    assert "29 enrolled identities, scores fused by" in str(result)
    assert result.to_dict()["n_enrolled"] == 29


@pytest.mark.parametrize("weighting", ["samples", "identities"])
def test_probes_are_searched_among_enrolled_identities(people, model, weighting):
    X, y, enrol = people
    result = evaluate(model, X, y, enrol=enrol, weighting=weighting)
    scores, *_ = brute_force(model, X, y, enrol, np.max)
    found = searches(scores.reshape((~enrol).sum(), 29), y[~enrol], np.unique(y[enrol]))
    ranks = np.where(np.isfinite(found.mated), found.ranks, 0)
    weights = None if weighting == "samples" else 1.0 / np.bincount(y[~enrol])[y[~enrol]]
    assert_allclose(result.cmc, cmc(ranks, 20, weights=weights))
    assert_allclose(result.fnir[0.1], fnir_at_fpir(found._replace(ranks=ranks), 0.1, weights=weights))
    assert result.rank1.low < result.rank1.value == result.cmc[0] < result.rank1.high
    assert "identification, each probe among 29 identities: rank 1:" in str(result)
    assert evaluate(model, X, y, enrol=enrol, n_pairs=500).cmc is None


def test_objects_with_pair_score_can_be_evaluated(people, model):
    class Other:
        def pair_score(self, pairs, X):
            return model.pair_score(pairs, X)

    X, y, enrol = people
    assert evaluate(Other(), X, y, enrol=enrol).auc == evaluate(model, X, y, enrol=enrol).auc
    with pytest.raises(ValueError, match="for GaussianSimilarity only, not for Other"):
        evaluate(Other(), X, y, enrol=enrol, fusion="likelihood_ratio")


def test_age_is_the_time_between_probe_and_sample(people, model):
    X, y, enrol = people
    time = np.random.default_rng(1).random(180) * 100.0
    fusion = LearnedFusion(1.0, 20.0, 1.0, 0.0, 0.0, -1.0, (1.0, 9.0), (0.0, 100.0), 10.0)
    templates = Templates.of(y, enrol)
    pairs = templates.comparisons()
    score = model._scorer(model._prepare(X))
    found = templates.scorer(fused_scorer(score, fusion, time))(pairs.first, pairs.second)
    for k in range(0, len(pairs), 97):
        probe, identity = templates.probes[pairs.first[k]], templates.identities[pairs.second[k]]
        rows = np.flatnonzero(enrol & (y == identity))
        ages = time[probe] - time[rows]
        one = fusion(model.pair_score(np.column_stack([np.full(len(rows), probe), rows]), X)[None], np.array([0]), ages[None])
        assert found[k] == one[0, 0]
    dates = np.datetime64("2024-01-01") + (time * 1e6).astype("timedelta64[us]")
    by_number, by_date = (evaluate(model, X, y, enrol=enrol, fusion=fusion, time=t).auc.value for t in (time, dates))
    assert by_number == pytest.approx(by_date)


def test_blocks_do_not_change_scores(people, model, monkeypatch):
    X, y, enrol = people
    templates = Templates.of(y, enrol, np.arange(180) % 5)
    pairs = templates.comparisons()
    score = templates.scorer(fused_scorer(model._scorer(model._prepare(X)), Fusion("mean"), None))
    whole = score(pairs.first, pairs.second)
    monkeypatch.setattr("simtree.evaluation._enrolled.BLOCK", 7)
    assert_array_equal(score(pairs.first, pairs.second), whole)


def test_many_comparisons_are_sampled(people, model):
    X, y, enrol = people
    templates = Templates.of(y, enrol)
    drawn = templates.comparisons(500)
    assert 300 < len(drawn) <= 500
    assert 0 < drawn.n_same <= 100
    codes = drawn.first.astype(int) * 1000 + drawn.second
    assert len(np.unique(codes)) == len(codes)
    assert_array_equal(drawn.same, templates.identities[drawn.first] == templates.identities[drawn.second])
    by_identity = templates.comparisons(29 * 60, weighting="identities")
    counts = np.bincount(y[templates.probes[np.unique(by_identity.first)]], minlength=30)
    assert counts.max() <= 2
    assert len(by_identity) <= 29 * 60
    result = evaluate(model, X, y, enrol=enrol, n_pairs=500)
    assert result.n_possible == templates.n_comparisons > result.n_same + result.n_different
    with pytest.raises(ValueError, match="weighting='identities' needs all"):
        evaluate(model, X, y, enrol=enrol, n_pairs=500, weighting="identities")


def test_sessions_in_which_somebody_was_enrolled_together_are_one():
    labels, enrol = np.array([0, 0, 0, 1, 1, 1]), np.array([True, True, False, True, False, False])
    sessions = Templates.of(labels, enrol).sessions(["a", "b", "c", "d", "b", "e"])
    # rows: the probes 2, 4 and 5, and the identities 0 (sessions a and b) and 1 (session d)
    assert sessions[1] == sessions[3]
    assert len(np.unique(sessions)) == 4


def test_a_threshold_knows_how_many_scores_were_averaged(people, tmp_path):
    import simtree
    from simtree.evaluation import ThresholdReport
    from simtree.io._fields import Fields

    X, y, enrol = people
    model = DistanceSimilarity(metric="euclidean").fit(X, y)
    for fusion, n_best, expected in (("top_mean", 1, 1), ("top_mean", None, 3), ("mean", None, None)):
        model.calibrate_threshold(X, y, confidence=None, max_fpr=0.1, enrol=enrol, fusion=fusion, n_best=n_best)
        assert model.threshold_report_.n_best == expected
        model.save(tmp_path / f"{fusion}-{n_best}.simtree")
        assert simtree.load(tmp_path / f"{fusion}-{n_best}.simtree").threshold_report_ == model.threshold_report_
    state = model.threshold_report_._get_state() | {"fusion": "top_mean"}
    assert "n_best" not in state
    assert ThresholdReport._from_state(Fields("file", "", state, [])).n_best == 3  # a file of before


def test_threshold_for_fused_scores(model):
    rng = np.random.default_rng(2)
    y = np.repeat(np.arange(150), 5)
    X = rng.normal(size=(150, 3))[y] + 0.2 * rng.normal(size=(750, 3))
    enrol = np.arange(750) % 5 < 3
    chosen = (
        DistanceSimilarity(metric="euclidean").fit(X, y).calibrate_threshold(X, y, max_fpr=0.05, enrol=enrol, fusion="mean")
    )
    report = chosen.threshold_report_
    assert report.fusion == "mean"
    assert report.n_same == 300
    assert report.n_different == 300 * 149
    scores, same, *_ = brute_force(chosen, X[:100], y[:100], enrol[:100], np.mean)
    accepted = evaluate_scores(scores, same, threshold=chosen.threshold_)
    assert accepted.threshold == chosen.threshold_
    assert "for scores with enrolled identities (mean)" in report.promise
    everything = evaluate(chosen, X, y, enrol=enrol, fusion="mean", weighting="identities", threshold=chosen.threshold_)
    place = int(np.flatnonzero(everything.band.thresholds == chosen.threshold_)[0])
    assert everything.band.fpr[place] == pytest.approx(report.fpr)
    assert everything.band.tpr[place] == pytest.approx(report.tpr)
    with pytest.raises(ValueError, match=r"threshold_ is for scores with enrolled identities \(fusion='mean'\)"):
        chosen.predict([[X[0], X[1]]])
    assert len(chosen.set_threshold(0.0).predict([[X[0], X[1]]])) == 1


def test_subgroups_and_sessions_are_those_of_probe_and_identity(people, model):
    X, y, enrol = people
    result = evaluate(model, X, y, enrol=enrol, by=np.where(y < 15, "a", "b"), sessions=y // 2)
    assert [group.subgroup for group in result.by] == ["a", "b"]
    assert sum(group.n_same for group in result.by) == result.n_same
    with pytest.raises(ValueError, match="by has several values for the enrolled samples of one identity"):
        evaluate(model, X, y, enrol=enrol, by=np.arange(180))


def test_bad_input_is_one_sentence(people, model):
    X, y, enrol = people
    for wrong, message in [
        ({"fusion": "mean"}, "fusion has no effect without enrol="),
        ({"time": np.arange(180)}, "time has no effect without enrol="),
        ({"enrol": enrol[1:]}, r"enrol has shape \(179,\) and type bool; give a boolean for each of the 180 samples"),
        ({"enrol": enrol.astype(int)}, "type int64; give a boolean"),
        ({"enrol": np.ones(180, dtype=bool)}, "enrol leaves no probes"),
        ({"enrol": np.zeros(180, dtype=bool)}, "enrol leaves no enrolled samples"),
        ({"enrol": y < 15}, "enrol allows no same comparison"),
        ({"enrol": enrol, "fusion": "median"}, "fusion='median' is unknown; choose one of 'max', 'mean', 'top_mean', 'likel"),
        ({"enrol": enrol, "fusion": "learned"}, "fusion='learned' has not been learned; call fit_fusion"),
        ({"enrol": enrol, "fusion": "likelihood_ratio"}, "for GaussianSimilarity only, not for DistanceSimilarity"),
        ({"enrol": enrol, "fusion": LearnedFusion(0.0, 5.0, 1.0, 0.0)}, "depends on the age of samples; give time="),
        ({"enrol": enrol, "time": np.arange(3)}, r"time has shape \(3,\)"),
        ({"enrol": enrol, "never_pair": np.zeros(180)}, "never_pair allows no same pair"),
    ]:
        with pytest.raises(ValueError, match=message):
            evaluate(model, X, y, **wrong)
        with pytest.raises(ValueError, match=message):
            model.calibrate_threshold(X, y, confidence=None, **wrong)
    with pytest.raises(ValueError, match="enrol= needs samples and their identities, not pairs"):
        evaluate(model, X, [True, False], pairs=[[0, 1], [0, 9]], enrol=enrol)


def test_the_closed_form_is_that_of_multivariate_normals():
    """Against densities of all samples together, in the space of the features."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(400), 4)
    mixing = rng.normal(size=(3, 3))
    X = rng.normal(size=(400, 3))[y] @ mixing + rng.normal(size=(1600, 3))
    model = GaussianSimilarity(shrinkage=0.0).fit(X, y)
    two = model._model
    to_features = np.linalg.inv(two.matrix)  # rows: features of each direction
    between = to_features.T @ np.diag(two.correlations) @ to_features
    within = to_features.T @ np.diag(1.0 - two.correlations) @ to_features
    inside = np.linalg.norm(two.project(X), axis=1) < 0.99 * two.reach  # others are moved
    rows = np.flatnonzero(inside)[:60]
    for n in (1, 2, 5):
        probe, samples = X[rows[0]], X[rows[1 : n + 1]]
        joint = multivariate_normal(
            np.tile(two.mean, n + 1), np.kron(np.ones((n + 1, n + 1)), between) + np.kron(np.eye(n + 1), within)
        )
        enrolled = multivariate_normal(np.tile(two.mean, n), np.kron(np.ones((n, n)), between) + np.kron(np.eye(n), within))
        alone = multivariate_normal(two.mean, between + within)
        expected = joint.logpdf(np.append(probe, samples)) - enrolled.logpdf(samples.ravel()) - alone.logpdf(probe)
        prepared = model._prepare(np.vstack([probe, samples]))
        zero = np.zeros(1, dtype=np.int32)
        found = model._score_templates(prepared[:1], prepared[1:], np.array([0]))(zero, zero)
        assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    enrol = np.arange(1600) % 4 == 0
    single = evaluate(model, X[:400], y[:400], enrol=enrol[:400], fusion="likelihood_ratio")
    assert single.auc.value == pytest.approx(evaluate(model, X[:400], y[:400], enrol=enrol[:400]).auc.value, abs=1e-6)
    several = [evaluate(model, X[:400], y[:400], enrol=~enrol[:400], fusion=f).auc.value for f in ("likelihood_ratio", "max")]
    assert several[0] > several[1]


def test_learned_fusion_belongs_to_the_model(people, tmp_path):
    import simtree

    X, y, enrol = people
    model = DistanceSimilarity(metric="euclidean").fit(X, y)
    time = np.arange(180.0)
    model.fit_fusion(X, y, enrol=enrol, time=time)
    model.save(tmp_path / "model.simtree")
    again = simtree.load(tmp_path / "model.simtree")
    assert again.learned_fusion_ == model.learned_fusion_
    assert model.to_dict()["learned_fusion"]["slope"] == model.learned_fusion_.slope
    by_name = evaluate(again, X, y, enrol=enrol, fusion="learned", time=time)
    assert by_name.auc == evaluate(model, X, y, enrol=enrol, fusion=model.learned_fusion_, time=time).auc
    model.calibrate_threshold(X, y, confidence=None, max_fpr=0.1, enrol=enrol, fusion="learned", time=time).save(
        tmp_path / "m2.simtree"
    )
    assert simtree.load(tmp_path / "m2.simtree").threshold_report_.fusion == "learned"
    assert not hasattr(model.fit(X, y), "learned_fusion_")
    with pytest.raises(ValueError, match="not pairs"):
        model.fit_fusion(np.zeros((4, 2, 3)), [0, 1, 0, 1], enrol=enrol)
