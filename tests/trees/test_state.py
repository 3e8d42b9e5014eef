"""Trees in model files: tables that loop, point outside, or contradict one another are rejected before anything is built."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from simtree import ModelFileError, SimilarityTree
from simtree.io._archive import document_bytes, read_document
from simtree.metrics import Roc
from simtree.pairs._coordinates import MAX_FEATURES
from simtree.trees import _rank_tree as rank_tree
from simtree.trees._rank_tree import RankTree, separate_tests
from tiny_models import fitted, people


def read(document):
    return RankTree._from_state(read_document(document_bytes(document)))


def changed(place, index, value):
    """Return a function that changes one entry (all with ``index=...``) of the array at a path."""

    def change(document):
        *above, name = place
        for part in above:
            document = document[part]
        array = document[name].copy()
        array[index] = value
        document[name] = array

    return change


def removed(*place):
    def change(document):
        for part in place[:-1]:
            document = document[part]
        del document[place[-1]]

    return change


def shortened(*place):
    def change(document):
        for part in place[:-1]:
            document = document[part]
        document[place[-1]] = document[place[-1]][:-1]

    return change


def of_entry(document, **entries):
    document["coordinates"].update(entries)


# Of forest-refilled: cells 0, 1, 2, ... of the first tree come first, and each has several tests.
CHANGES = {
    "a cell that is its own child": changed(["cells", "inside"], 0, 0),
    "a cell that is two children": changed(["cells", "inside"], 1, 1),
    "a child that is not there": changed(["cells", "inside"], 0, 2**31 - 3),
    "a child before its parent": changed(["cells", "inside"], 5, 1),
    "a child that is a second child": changed(["cells", "inside"], 0, 2),
    "a cell below nothing": changed(["cells", "inside"], 0, -1),
    "a number below -1": changed(["cells", "inside"], 0, -2),
    "trees that are longer than all cells": changed(["n_cells"], 0, 10**6),
    "trees that meet elsewhere": lambda d: d.update(n_cells=d["n_cells"] + np.array([2, -2, 0, 0])),
    "a tree without cells": changed(["n_cells"], 0, 0),
    "no trees": lambda d: d.update(n_cells=np.empty(0, dtype=np.int64), max_depth=np.empty(0, dtype=np.int64)),
    "a tree that is deeper than it says": changed(["max_depth"], 0, 1),
    "a tree that is too deep": changed(["max_depth"], 0, 53),
    "more same pairs in a child": changed(["cells", "n_same"], 1, 10**9),
    "negative counts": changed(["cells", "n_different"], 3, -1),
    "no different pairs": changed(["cells", "n_different"], ..., 0),
    "a gain from nowhere": changed(["cells", "gain"], 0, 0.9),
    "cells of different lengths": shortened("cells", "n_same"),
    "a test that leads to itself": changed(["tests", "if_le"], 0, 0),
    "a test that leads back": changed(["tests", "if_gt"], 3, 1),
    "a test that leads out of its cell": changed(["tests", "if_le"], 0, 1000),
    "a third end": changed(["tests", "if_le"], 0, -3),
    "a coordinate that is not there": changed(["tests", "coordinate"], 0, 6),
    "a negative coordinate": changed(["tests", "coordinate"], 0, -1),
    "tests of different lengths": shortened("tests", "threshold"),
    "fewer tests than cells want": changed(["cells", "n_tests"], 0, 10**6),
    "tests of a terminal cell": lambda d: (
        changed(["cells", "n_tests"], _terminal(d), 1)(d) or changed(["cells", "n_tests"], 0, d["cells"]["n_tests"][0] - 1)(d)
    ),
    "a split cell without tests": lambda d: (
        changed(["cells", "n_tests"], 0, 0)(d) or changed(["cells", "n_tests"], 1, d["cells"]["n_tests"][:2].sum())(d)
    ),
    "no column": removed("tests", "decrease"),
    "an unknown kind": lambda d: of_entry(d, kinds=["abs_diff", "sums"]),
    "a kind that is there twice": lambda d: of_entry(d, kinds=["abs_diff", "abs_diff"]),
    "no kinds": lambda d: of_entry(d, kinds=[]),
    "oblique without directions": lambda d: of_entry(d, kinds=["abs_diff", "oblique"]),
    "directions without oblique": lambda d: of_entry(d, directions=np.ones((2, 3))),
    "directions of other points": lambda d: of_entry(d, kinds=["abs_diff", "oblique"], directions=np.ones((2, 4))),
    "a direction of zeros": lambda d: of_entry(d, kinds=["abs_diff", "oblique"], directions=np.eye(4, 3)),
    "no features": lambda d: of_entry(d, n_features=0),
    "too many features": lambda d: of_entry(d, n_features=MAX_FEATURES + 1),
    "features that are no number": lambda d: of_entry(d, n_features="3"),
}


def _terminal(document):
    return int(np.flatnonzero(document["cells"]["inside"] < 0)[0])


def tried(name, change):
    document = copy.deepcopy(RankTree._get_state(fitted(name)._trees()))
    read(document)  # good as it is
    change(document)
    with pytest.raises(ModelFileError, match="is damaged"):
        read(document)


@pytest.mark.parametrize("change", CHANGES)
def test_inconsistent_tables_are_rejected(change):
    tried("forest-refilled", CHANGES[change])


REGIONS = {
    "tree-linear": {
        "a cell twice": changed(["regions", "linear", "cell"], ..., 0),
        "a cell that is not there": changed(["regions", "linear", "cell"], 0, 99),
        "a terminal cell": lambda d: changed(["regions", "linear", "cell"], 0, _terminal(d))(d),
        "a tree that is not there": changed(["regions", "linear", "tree"], 0, 1),
        "weights of other coordinates": lambda d: d["regions"]["linear"].update(weights=np.ones((1, 2))),
        "no region": removed("regions", "linear"),
        "regions of different numbers": shortened("regions", "linear", "intercept"),
    },
    "tree-local": {
        "a coordinate that is not there": changed(["regions", "oblique", "tests", "coordinate"], 0, 10),
        "a loop": changed(["regions", "oblique", "tests", "if_le"], 0, 0),
        "directions of another": changed(["regions", "oblique", "n_directions"], 0, 3),
        "tests of another": changed(["regions", "oblique", "n_tests"], 0, 99),
        "no tests": changed(["regions", "oblique", "n_tests"], 0, 0),
        "a direction of zeros": changed(["regions", "oblique", "directions"], 0, 0.0),
    },
    "tree-gaussian": {
        "a feature that is not there": changed(["regions", "quadratic", "features"], 0, 3),
        "features of another": changed(["regions", "quadratic", "n_features"], 0, 3),
        "no features": changed(["regions", "quadratic", "n_features"], 0, 0),
        "directions that are short": shortened("regions", "quadratic", "own_directions"),
        "a column that is short": shortened("regions", "quadratic", "centre"),
    },
}


@pytest.mark.parametrize(("name", "change"), [(name, change) for name, changes in REGIONS.items() for change in changes])
def test_inconsistent_regions_are_rejected(name, change):
    tried(name, REGIONS[name][change])


@pytest.mark.parametrize("name", ["tree", "tree-local", "forest-median", "forest-refilled"])
def test_tests_are_separated_by_region(name):
    for tree in fitted(name)._trees():
        n_tests, tests = separate_tests(tree)
        start = 0
        for cell in np.flatnonzero(n_tests):
            region, own = tree.region(cell), slice(start, start + n_tests[cell])
            for column, values in vars(region).items():
                found = getattr(tests, column)
                np.testing.assert_array_equal(None if found is None else found[own], values)
            start += n_tests[cell]
        assert start == len(tree.nodes.kind)


def test_too_many_trees_are_rejected(monkeypatch):
    """A tree may take a few bytes in a file but thousands in memory."""
    document = RankTree._get_state(fitted("forest")._trees())
    monkeypatch.setattr(rank_tree, "MAX_TREES", 4)
    with pytest.raises(ModelFileError, match="at most 4"):
        read(document)
    with pytest.raises(ValueError, match=r"5 trees .* at most 4"):
        RankTree._get_state(fitted("forest")._trees())


def test_too_many_regions_are_rejected(monkeypatch):
    document = RankTree._get_state(fitted("forest-linear")._trees())
    monkeypatch.setattr(rank_tree, "MAX_REGIONS", 2)
    with pytest.raises(ModelFileError, match="at most 2"):
        read(document)
    with pytest.raises(ValueError, match="cannot be saved"):
        RankTree._get_state(fitted("forest-linear")._trees())


def test_a_large_number_of_features_takes_little_memory():
    """A file of a few kilobytes may declare a million features: this must allocate numbers, not objects."""
    document = copy.deepcopy(RankTree._get_state([SimilarityTree(max_depth=2, random_state=0).fit(*people(1)).tree_]))
    document["coordinates"]["n_features"] = MAX_FEATURES
    assert len(read(document)[0].pair_map) == 2 * MAX_FEATURES


def test_curves_are_restored_and_invalid_ones_are_rejected():
    roc = Roc([0, 0.1, 1], [0, 0.5, 1], [np.inf, 2.0, 1.0])
    document = roc._get_state()
    assert Roc._from_state(read_document(document_bytes(document))) == roc
    with pytest.raises(ModelFileError, match="not a curve"):
        Roc._from_state(read_document(document_bytes({**document, "fpr": document["fpr"][::-1].copy()})))
