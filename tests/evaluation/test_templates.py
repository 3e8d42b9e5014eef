"""Fusions: what they return, and that the score of an identity depends on its own samples alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from simtree.evaluation._templates import PLAIN_FUSIONS, Fusion


def plain(name, n_best, scores):
    best = np.sort(scores)[::-1]
    return {"max": best[0], "mean": best.mean(), "top_mean": best[:n_best].mean()}[name]


@pytest.mark.parametrize("name", PLAIN_FUSIONS)
@pytest.mark.parametrize("n_best", [1, 2, 50])
def test_fusion_of_each_identity(name, n_best, rng):
    sizes = rng.integers(1, 40, 12)
    starts = np.append(0, np.cumsum(sizes)[:-1])
    scores = rng.normal(size=(5, sizes.sum()))
    fused = Fusion(name, n_best)(scores, starts)
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        own = scores[:, start : start + size]
        assert_allclose(fused[:, k], [plain(name, n_best, row) for row in own], rtol=1e-12)
        alone = Fusion(name, n_best)(np.ascontiguousarray(own[:1]), np.array([0]))
        assert_array_equal(fused[:1, k], alone[:, 0])


def test_one_sample_each_is_its_score(rng):
    scores = rng.normal(size=(2, 3))
    for name in PLAIN_FUSIONS:
        assert_array_equal(Fusion(name)(scores, np.arange(3)), scores)


def test_unknown_fusions_are_refused():
    with pytest.raises(ValueError, match="fusion='median' is unknown; choose one of 'max', 'mean', 'top_mean'"):
        Fusion("median")
    with pytest.raises(ValueError, match="n_best=0 is out of range"):
        Fusion("top_mean", 0)
