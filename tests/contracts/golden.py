"""Scores of every estimator, splitter and representation on small data, as they were; run as a program it writes them anew.

They change only where a change of results is meant, and the changelog then says so.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from every_estimator import ESTIMATORS, OTHERS
from every_representation import REPRESENTATIONS
from every_splitter import SPLITTERS
from sklearn.base import clone

import simtree

FILE = Path(__file__).with_name("golden.json")
N_SCORES = 6


def samples():
    """Return labelled samples: eight identities, four features."""
    rng = np.random.default_rng(17)
    y = np.repeat(np.arange(8), [14, 12, 10, 9, 8, 7, 6, 5])
    return 1.5 * rng.normal(size=(8, 4))[y] + rng.normal(0, 0.6, (len(y), 4)), y


def pairs():
    """Return pairs of samples that no model has seen."""
    return np.random.default_rng(18).normal(size=(N_SCORES, 2, 4))


CASES = {
    **{f"estimator {name}": estimator for name, estimator in (ESTIMATORS | OTHERS).items()},
    **{f"splitter {name}": splitter for name, splitter in SPLITTERS.items()},
    **{f"representation {name}": representation for name, representation in REPRESENTATIONS.items()},
}


def computed(name):
    """Return the numbers of a case: scores and threshold, or transformed samples."""
    X, y = samples()
    case = clone(CASES[name])
    if name.startswith("representation"):
        return np.append(case.fit_transform(X, y)[0], case.transform(pairs()[:, 0])[0]).tolist()
    if name.startswith("splitter"):
        case = simtree.SimilarityTree(max_depth=3, splitter=case, n_pairs=800, random_state=0)
    model = case.fit(X, y)
    return [*model.pair_score(pairs()).tolist(), float(model.threshold_)]


if __name__ == "__main__":
    lines = [f"  {json.dumps(name)}: {json.dumps([float(f'{value:.12g}') for value in computed(name)])}" for name in CASES]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
