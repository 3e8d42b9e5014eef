from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simtree.pairs import split_identities


@given(st.lists(st.integers(0, 30), min_size=1), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 100))
def test_parts_share_no_identity_and_have_their_share(y, weights, seed):
    shares = {f"p{k}": weight / (sum(weights) + 1) for k, weight in enumerate(weights)}
    n = len(set(y))
    try:
        parts = split_identities(y, shares, random_state=seed)
    except ValueError:
        assert min(shares.values()) * n < 3
        return
    labels = [set(np.asarray(y)[rows].tolist()) for rows in parts.values()]
    assert sum(map(len, labels)) == len(set().union(*labels))
    for own, share, rows in zip(labels, shares.values(), parts.values(), strict=True):
        assert abs(len(own) - share * n) <= 1
        assert rows.tolist() == [row for row, label in enumerate(y) if label in own]


def test_relabelling_changes_nothing():
    y = np.random.default_rng(0).integers(0, 20, 100)
    shares = {"a": 0.5, "b": 0.5}
    plain, words = split_identities(y, shares, random_state=1), split_identities([f"x{k}" for k in y], shares, random_state=1)
    for name in shares:
        np.testing.assert_array_equal(plain[name], words[name])


@pytest.mark.parametrize(
    ("shares", "said"),
    [({}, "shares is empty"), ({"a": 0.7, "b": 0.5}, "add up to 1.2"), ({"a": -1.0}, "out of range"), ({"a": 0.1}, "take 2")],
)
def test_bad_shares(shares, said):
    with pytest.raises(ValueError, match=said):
        split_identities(np.arange(10), shares)
