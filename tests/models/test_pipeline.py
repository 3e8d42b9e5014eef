"""from_pipeline: a Pipeline that ends in a similarity becomes a model that scores, saves and evaluates."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC

import simtree
from simtree import (
    AutoSimilarity,
    DistanceSimilarity,
    GaussianSimilarity,
    MarginalQuantiles,
    SimilarityForest,
    SimilarityTree,
    VotingSimilarity,
)
from tiny_models import people, probes

SIMILARITIES = {
    "tree": SimilarityTree(max_depth=3, n_pairs=300, random_state=0),
    "forest": SimilarityForest(n_estimators=3, max_depth=3, n_pairs=200, oob_score=False, random_state=0),
    "represented": SimilarityTree(max_depth=3, n_pairs=300, representation=MarginalQuantiles(), random_state=0),
    "gaussian": GaussianSimilarity(),
    "distance": DistanceSimilarity(metric="euclidean"),
    "auto": AutoSimilarity(target_fpr=0.5, time_budget=0.0, open_set=True, random_state=0),
}
TRANSFORMERS = {
    "standard": [StandardScaler()],
    "standard without mean": [StandardScaler(with_mean=False)],
    "others": [RobustScaler(with_centering=False), MinMaxScaler(), MaxAbsScaler()],
    "pca": [StandardScaler(), PCA(2, whiten=True)],
}


@pytest.mark.parametrize("name", SIMILARITIES)
@pytest.mark.parametrize("steps", TRANSFORMERS)
def test_a_fitted_pipeline_scores_saves_and_evaluates(name, steps, tmp_path):
    X, y = people(1)
    pipeline = make_pipeline(*TRANSFORMERS[steps], SIMILARITIES[name]).fit(X, y)
    model = simtree.from_pipeline(pipeline)
    transformed = pipeline[:-1].transform(probes())
    np.testing.assert_array_equal(model.pairwise_score(probes()), pipeline[-1].pairwise_score(transformed))
    model.save(tmp_path / "m.simtree")
    loaded = simtree.load(tmp_path / "m.simtree")
    np.testing.assert_array_equal(loaded.pairwise_score(probes()), model.pairwise_score(probes()))
    assert model.threshold_ == loaded.threshold_ == pipeline[-1].threshold_
    assert 0.0 <= simtree.evaluate(model, *people(2)).auc.value <= 1.0


def test_an_unfitted_pipeline_becomes_an_unfitted_model():
    X, y = people(1)
    pipeline = make_pipeline(StandardScaler(), SIMILARITIES["represented"])
    model = simtree.from_pipeline(pipeline)
    assert not hasattr(model, "threshold_")
    assert [name for name, _ in model.representation.steps] == ["standardscaler", "representation"]
    fitted = simtree.from_pipeline(pipeline.fit(X, y))
    np.testing.assert_array_equal(model.fit(X, y).pairwise_score(X), fitted.pairwise_score(X))


def test_the_pipeline_is_not_modified_and_names_are_kept():
    pandas = pytest.importorskip("pandas")
    X, y = people(1)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), SIMILARITIES["tree"]).fit(frame, y)
    model = simtree.from_pipeline(pipeline)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert "|a - a'|" in model.export_text()
    assert pipeline[-1].representation is None
    model.set_threshold(1.0)
    assert pipeline[-1].threshold_ != 1.0


def test_without_transformers_it_is_the_similarity_itself():
    X, y = people(1)
    pipeline = make_pipeline("passthrough", SIMILARITIES["gaussian"]).fit(X, y)
    np.testing.assert_array_equal(simtree.from_pipeline(pipeline).pairwise_score(X), pipeline[-1].pairwise_score(X))


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (SimilarityTree(), "is not a scikit-learn Pipeline"),
        (make_pipeline(StandardScaler(), SVC()), "which is not a similarity"),
        (make_pipeline(StandardScaler(), VotingSimilarity([("a", SimilarityTree())])), "has no parameter representation"),
    ],
)
def test_unsuitable_pipelines_are_rejected(pipeline, message):
    with pytest.raises(TypeError, match=message):
        simtree.from_pipeline(pipeline)


WAYS_IN = {
    "evaluate": lambda pipeline, X, y, path: simtree.evaluate(pipeline, X, y),
    "curve": lambda pipeline, X, y, path: simtree.plots.RocDisplay.from_estimator(pipeline, X, y),
    "training curve": lambda pipeline, X, y, path: simtree.plots.RocDisplay.from_estimator(pipeline),
    "curve of errors": lambda pipeline, X, y, path: simtree.plots.DetDisplay.from_estimator(pipeline, X, y),
    "tree": lambda pipeline, X, y, path: simtree.plots.TreeDisplay.from_estimator(pipeline),
    "pruning": lambda pipeline, X, y, path: simtree.plots.PruningDisplay.from_estimator(pipeline),
    "explanation": lambda pipeline, X, y, path: simtree.plots.ExplanationDisplay.from_estimator(pipeline, X[0], X[1]),
    "importances": lambda pipeline, X, y, path: simtree.plots.ImportanceDisplay.from_estimator(pipeline),
    "gallery": lambda pipeline, X, y, path: simtree.Gallery.create(path / "people.gallery", pipeline),
    "clusters": lambda pipeline, X, y, path: simtree.cluster(pipeline, X),
    "report": lambda pipeline, X, y, path: simtree.report.write(pipeline, X, y, path / "report.html"),
    "cohort": lambda pipeline, X, y, path: simtree.CohortNormalization(pipeline).fit(X, y),
    "vote": lambda pipeline, X, y, path: VotingSimilarity([("scaled", pipeline)]).fit(X, y),
    "stack": lambda pipeline, X, y, path: simtree.StackedSimilarity([("scaled", pipeline)]).fit(X, y),
    "cluster of machines": lambda pipeline, X, y, path: simtree.dask.fit(pipeline, X, y),
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_whatever_a_pipeline_is_given_to_names_the_way_out(tmp_path, way):
    X, y = people(1)
    pipeline = make_pipeline(StandardScaler(), SIMILARITIES["tree"]).fit(X, y)
    with pytest.raises(
        TypeError, match=r"is a Pipeline, which cannot score pairs; give simtree.from_pipeline\(pipeline\) instead"
    ):
        WAYS_IN[way](pipeline, X, y, tmp_path)
    assert not list(tmp_path.iterdir())
