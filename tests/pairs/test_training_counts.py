"""How much a model was trained on: counted at fit, kept in its file, and told."""

from __future__ import annotations

import numpy as np
import pytest

import simtree
from simtree import DistanceSimilarity, SimilarityTree
from simtree.io._archive import read_document, write_document
from simtree.io._fields import ModelFileError
from simtree.models._description import describe
from simtree.models._persistence import model_from_state
from simtree.pairs._training_counts import TrainingCounts

X, Y = np.arange(8.0)[:, None], np.repeat([3, 5, 9], [2, 2, 4])


def test_labelled_samples_are_counted_and_kept_in_the_file(tmp_path):
    model = DistanceSimilarity().fit(X, Y, never_pair=[0, 0, 1, 2, 3, 4, 5, 6])
    assert model.training_counts_ == TrainingCounts(n_samples=8, n_identities=3, n_pairs=27)
    model.score(X[:4], Y[:4])
    model.save(tmp_path / "m.simtree")
    loaded = simtree.load(tmp_path / "m.simtree")
    assert loaded.training_counts_ == model.training_counts_
    assert describe(loaded)["trained_on"] == "8 samples of 3 identities, which make 27 pairs"


def test_the_identities_of_given_pairs_are_not_known():
    tree = SimilarityTree(max_depth=1).fit(X, [True, False, True], pairs=[[0, 1], [1, 2], [2, 3]])
    assert tree.training_counts_ == TrainingCounts(8, None, 3)
    assert str(tree.training_counts_) == "3 given pairs of 8 samples"


def test_a_failed_fit_leaves_the_counts_of_the_last_one():
    model = DistanceSimilarity().fit(X, Y)
    with pytest.raises(ValueError, match="y"):
        model.fit(X[:2], [0, 1])
    assert model.training_counts_.n_samples == 8


@pytest.mark.parametrize(("name", "value"), [("n_samples", 0), ("n_identities", -1), ("n_pairs", 1.5), ("n_pairs", None)])
def test_a_file_with_bad_counts_is_refused_and_one_without_is_read(tmp_path, name, value):
    state = DistanceSimilarity().fit(X, Y)._get_state()
    state["training_counts"][name] = value
    write_document(tmp_path / "bad", state)
    with pytest.raises(ModelFileError, match=name):
        simtree.load(tmp_path / "bad")
    del state["training_counts"]
    write_document(tmp_path / "old", state)
    old = model_from_state(read_document((tmp_path / "old").read_bytes()))
    assert not hasattr(old, "training_counts_")
    assert describe(old)["trained_on"] is None
