"""People for the tests of the report: values, names and labels that can be searched for in a file."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from simtree import SimilarityForest, SimilarityTree

N_PEOPLE, N_SAMPLES, N_FEATURES = 120, 4, 9


@cache
def people():
    """Samples with distinct values around 7,000, and names of people nobody has."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(N_PEOPLE), N_SAMPLES)
    values = 7000 + 500 * rng.normal(size=(N_PEOPLE, N_FEATURES))[codes] + 250 * rng.normal(size=(len(codes), N_FEATURES))
    frame = pd.DataFrame(values, columns=[f"feature {j}" for j in range(N_FEATURES)])
    names = np.array([f"Xanthippe-{code:03d}" for code in codes])
    return frame, names, np.where(codes % 2, "camera A", "camera B")


@cache
def model_of(kind):
    """A fitted model of each kind that the page has a section for, calibrated on people of its own."""
    X, y, _ = people()
    train, tune = slice(0, 120), slice(120, 360)
    if kind == "tree":
        return SimilarityTree(max_depth=4, random_state=0).fit(X[train], y[train])
    forest = SimilarityForest(n_estimators=4, n_pairs=4_000, random_state=0).fit(X[train], y[train])
    return forest.calibrate_threshold(X[tune], y[tune], max_fpr=0.2)


def held_out():
    """Samples, labels and an attribute of people whom no model has seen."""
    X, y, camera = people()
    rows = slice(360, None)
    return X[rows].reset_index(drop=True), y[rows], camera[rows]
