"""Results do not change by accident: scores of all estimators, splitters and representations are those that were recorded."""

from __future__ import annotations

import json

import numpy as np
import pytest
from golden import CASES, FILE, computed

GOLDEN = json.loads(FILE.read_text())
# Classifiers of scikit-learn and an optimiser of SciPy, whose results are not ours to keep.
OTHERS = {
    *(f"splitter {name}" for name in ("forest", "neighbours", "network", "svc", "tree")),
    *(f"estimator {name}" for name in ("tree-opaque", "stacked")),
}


def test_every_case_is_recorded():
    assert set(GOLDEN) == set(CASES)


@pytest.mark.parametrize("name", sorted(set(CASES) - OTHERS))
def test_results_are_those_that_were_recorded(name):
    np.testing.assert_allclose(computed(name), GOLDEN[name], rtol=1e-7, atol=1e-9)
