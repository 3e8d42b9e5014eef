"""Data and helpers that several test files use."""

from __future__ import annotations

import numpy as np
import pytest

from simtree.pairs import PairSampler


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def blobs():
    """Labelled points: 6 classes of unequal size around centres on a grid of small fractions (exact in floating point)."""
    rng = np.random.default_rng(7)
    y = np.repeat(np.arange(6), [30, 25, 20, 15, 12, 8])
    centres = rng.integers(0, 16, (6, 4)) / 4
    X = centres[y] + np.round(rng.normal(0, 0.5, (len(y), 4)) * 64) / 64
    order = rng.permutation(len(y))
    return X[order], y[order]


@pytest.fixture(scope="session")
def given_pairs(blobs):
    """Pairs of the blobs as an (n, 2, q) array with their labels, same and different mixed."""
    X, y = blobs
    index = PairSampler(y).draw(600, np.random.default_rng(3))
    order = np.random.default_rng(4).permutation(len(index))
    pairs = np.stack([X[index.first], X[index.second]], axis=1)
    return pairs[order], index.same[order]
