"""What users hand over: errors name the parameter, the column and the remedy."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from simtree import (
    GaussianSimilarity,
    KernelDiscriminant,
    LandmarkFeatures,
    MarginalQuantiles,
    SimilarityForest,
    SimilarityTree,
    metrics,
)
from simtree._utils.validation import count
from simtree.pairs import PairSampler, pair_features

Y = np.repeat(np.arange(5), 4)
X = np.random.default_rng(0).normal(size=(20, 3))
DAY = datetime.date(2020, 1, 31)
DATES = "dates; convert them to numbers, such as days since the first date, or drop them.$"


def with_cell(value, row=5, column=2):
    found = X.copy()
    found[row, column] = value
    return found


def frame(**columns):
    return pd.DataFrame({"age": X[:, 0], "size": X[:, 1], **columns})


UNUSABLE = {
    "text in pandas": (
        frame(name=["ann"] * 20),
        r"X has the column 'name' of text, such as 'ann'; (name it in categorical_features=\['name'\]|convert it to numbers), "
        "or drop it.$",
    ),
    "categories in pandas": (frame(name=pd.Categorical(["ann"] * 20)), "X has the column 'name' of text, such as 'ann'; "),
    "text in polars": (
        pl.DataFrame({"age": X[:, 0], "name": ["ann"] * 20}),
        "X has the column 'name' of text, such as 'ann'; ",
    ),
    "text in a list": (
        [[1.0, "ann"]] * 20,
        r"X has text in column 1, such as 'ann'; (name it in categorical_features=\[1\]|convert it to numbers), or drop it.$",
    ),
    "text in NumPy": (np.array([["1", "ann"]] * 20), "X has text in column 1, such as 'ann'; "),
    "dates in pandas": (frame(day=pd.date_range("2020", periods=20)), "X has the column 'day' of " + DATES),
    "dates with a time zone": (frame(day=pd.date_range("2020", periods=20, tz="UTC")), "X has the column 'day' of " + DATES),
    "durations in pandas": (frame(day=pd.to_timedelta(range(20), unit="D")), "X has the column 'day' of " + DATES),
    "only dates": (pd.DataFrame({"day": pd.date_range("2020", periods=20)}), "X has the column 'day' of " + DATES),
    "date objects": (frame(day=[DAY] * 20), "X has the column 'day' of " + DATES),
    "dates in polars": (pl.DataFrame({"age": X[:, 0], "day": [DAY] * 20}), "X has the column 'day' of " + DATES),
    "dates in NumPy": (np.array([["2020-01-31"]] * 20, dtype="M8[D]"), "X is an array of " + DATES),
    "NaN in pandas": (
        frame(h=with_cell(np.nan)[:, 2]),
        "X contains NaN in column 'h', first in row 5; fill it in.*, or leave the row out.$",
    ),
    "NA in pandas": (frame(h=pd.array([None] + [1.0] * 19, dtype="Float64")), "X contains NaN in column 'h', first in row 0; "),
    "null in polars": (
        pl.DataFrame({"age": X[:, 0], "h": [None] + [1.0] * 19}),
        "X contains NaN in column 'h', first in row 0; ",
    ),
    "NaN in NumPy": (with_cell(np.nan), "X contains NaN in column 2, first in row 5; fill it in.*, or leave the row out.$"),
    "infinity": (
        with_cell(-np.inf),
        "X contains infinity in column 2, first in row 5; replace it by a finite number, or leave the row out.$",
    ),
    "complex numbers": (X + 1j, "Complex data not supported: X holds complex numbers; give real ones, such as X.real.$"),
    "masked": (
        np.ma.masked_greater(X, 1.0),
        r"X is a masked array with \d+ masked values, the first in row \d+ of column \d; fill them with X.filled\(value\), "
        "or leave these rows out.$",
    ),
}


@pytest.mark.parametrize("case", sorted(UNUSABLE))
def test_unusable_samples_are_named(case):
    samples, message = UNUSABLE[case]
    # Trees and quantiles take missing values.
    taking = [SimilarityTree(max_depth=2, categorical_features=None), MarginalQuantiles()]
    fits = [
        *([GaussianSimilarity()] if case.startswith(("NaN", "NA", "null")) else taking),
        LandmarkFeatures(n_landmarks=2),
        KernelDiscriminant(n_landmarks=2),
    ]
    for estimator in fits:
        with pytest.raises(ValueError, match=r"^" + message):
            estimator.fit(samples, Y)


@pytest.mark.parametrize("case", ["text in pandas", "NaN in NumPy", "masked"])
def test_unusable_samples_are_named_when_scoring(case):
    samples, message = UNUSABLE[case]
    if case == "text in pandas":
        message = "X has the column 'name' of text, such as 'ann', but the model was fitted on numbers there; convert it"
    usual = frame(name=X[:, 2]) if isinstance(samples, pd.DataFrame) else X
    model, landmarks = GaussianSimilarity().fit(usual, Y), LandmarkFeatures(n_landmarks=2).fit(usual)
    calls = (
        model.pairwise_score,
        lambda rows: model.top_k(usual, rows),
        lambda rows: model.pair_score([[0, 1]], rows),
        landmarks.transform,
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"^" + message):
            call(samples)


def test_unusable_pairs_are_named_by_pair_and_column():
    model = GaussianSimilarity().fit(X, Y)
    pairs = np.stack([X, with_cell(np.nan)], axis=1)
    with pytest.raises(
        ValueError, match=r"^pairs contains NaN in column 2, first in pair 5; fill it in, or leave the pair out\.$"
    ):
        model.pair_score(pairs)
    with pytest.raises(ValueError, match=r"^pairs contains NaN in column 2, first in pair 5; "):
        pair_features(pairs)
    with pytest.raises(ValueError, match=r"^X contains NaN in column 2, first in pair 5; "):
        GaussianSimilarity().fit(pairs, Y % 2)
    with pytest.raises(ValueError, match=r"^pairs has 1 feature, but GaussianSimilarity is expecting 3 features.$"):
        model.pair_score(np.zeros((4, 2, 1)))


def test_no_mask_is_ignored():
    tree = SimilarityTree(max_depth=2).fit(np.ma.array(X), Y)  # nothing is masked
    stacked, rows = np.stack([X, X], axis=1), np.array([[0, 1], [2, 3]])
    labels, masked = np.arange(20) % 2, np.ma.masked_equal
    calls = {
        "y": lambda: SimilarityTree().fit(X, masked(Y, 3)),
        "pairs": lambda: tree.pair_score(np.ma.masked_greater(stacked, 1.0)),
        "never_pair": lambda: SimilarityTree().fit(X, Y, never_pair=masked(Y, 3)),
        "groups": lambda: SimilarityForest(n_estimators=2).fit(X, Y, groups=masked(Y, 3)),
        "scores": lambda: metrics.roc_curve(masked(np.arange(20.0), 3), labels),
        "preprocessor": lambda: SimilarityTree(preprocessor=np.ma.masked_greater(X, 1.0)).fit(rows, [0, 1]),
        "x": lambda: tree.explain_pair(masked(X[0], X[0, 1]), X[1]),
        "x2": lambda: tree.explain_pair(X[0], masked(X[1], X[1, 0])),
        "u": lambda: tree.get_metric()(masked(X[0], X[0, 1]), X[1]),
        "v": lambda: tree.get_metric()(X[0], masked(X[1], X[1, 0])),
        "ranks": lambda: metrics.cmc(masked([1, 2, 3], 3)),
        "weights": lambda: metrics.cmc([1, 2, 3], weights=masked([1.0, 2.0, 3.0], 2.0)),
        "probes": lambda: metrics.searches(np.eye(2), masked([0, 1], 1), [0, 1]),
        "labels": lambda: metrics.b_cubed([0, 0, 1], masked([0, 0, 1], 1)),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"^{name} is a masked array with .*; fill them with {name}.filled"):
            call()
    with pytest.raises(ValueError, match=r"^pairs is a masked array with 1 masked value, the first in row 1 of column 1; "):
        tree.pair_score(masked(rows, 3), X)
    with pytest.raises(ValueError, match=r"^y is a masked array"):
        PairSampler(masked(Y, 3))


@pytest.mark.parametrize(("n", "text"), [(0, "0 features"), (1, "1 feature"), (2, "2 features"), (12345, "12,345 features")])
def test_plurals(n, text):
    assert count(n, "feature") == text
    assert count(n, "class", "classes").endswith("class" if n == 1 else "classes")
