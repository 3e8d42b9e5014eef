"""An evaluation in words: one vocabulary, a legend, and a sentence whose numbers are those of the evaluation."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from simtree.evaluation import evaluate_scores
from simtree.evaluation._report import in_plain_words, legend, rates_at_threshold


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    same = np.arange(4000) % 2 == 0
    identities = rng.integers(0, 40, (4000, 2))
    return evaluate_scores(rng.normal(size=4000) + 2 * same, same, identities=identities, threshold=1.5)


def with_rates(result, fpr, high, tpr=0.5):
    band = replace(
        result.band,
        thresholds=np.array([1.5]),
        fpr=np.array([fpr]),
        tpr=np.array([tpr]),
        fpr_interval=np.array([[0.0, high]]),
        tpr_interval=np.array([[0.0, 1.0]]),
    )
    return replace(result, band=band)


def test_the_sentence_has_the_rates_of_the_threshold(result):
    rates = rates_at_threshold(result)
    assert rates.threshold == 1.5
    words = in_plain_words(result)
    n_same, n_different, most = (
        int(number) for number in re.findall(r"(\d+) of 100 same.* about (\d+), at most (\d+) ", words)[0]
    )
    assert n_same == round(100 * rates.tpr)
    assert n_different == round(100 * rates.fpr)
    assert most == math.ceil(100 * rates.fpr_interval[1])
    assert "with 95 % confidence" in words
    assert str(result).endswith(words)


@pytest.mark.parametrize(
    ("fpr", "high", "said"),
    [
        (
            0.0276,
            0.0449,
            "of 100 different ones about 3, at most 5 with 95 % confidence (about 4 with twice as many identities).",
        ),
        (0.0003, 0.00041, "of 10,000 different ones about 3, at most 5 with 95 % confidence (about 4 with twice as many"),
        (0.03, 0.03, "of 100 different ones about 3, at most 3 with 95 % confidence."),
        (0.0, 0.0021, "of 1,000 different ones none here, at most 3 with 95 % confidence."),
        (1.0, 1.0, "of 100 different ones about 100, at most 100 with 95 % confidence."),
    ],
)
def test_the_scale_goes_by_the_rate(result, fpr, high, said):
    assert said in in_plain_words(with_rates(result, fpr, high))


def test_small_true_positive_rates_have_a_scale_too(result):
    assert "accepts 2 of 1,000 same pairs" in in_plain_words(with_rates(result, 0.5, 0.6, tpr=0.0021))


def test_without_identities_nothing_is_said_of_more_of_them():
    scores, same = np.arange(100.0), np.arange(100) % 3 == 0
    assert "twice as many" not in in_plain_words(evaluate_scores(scores, same, threshold=50.0))


def test_no_sentence_for_a_threshold_that_accepts_nothing(result):
    rng = np.random.default_rng(0)
    nothing = evaluate_scores(rng.normal(size=100), np.arange(100) % 2 == 0, threshold=np.inf)
    assert nothing.threshold is None
    assert in_plain_words(nothing) is None
    assert str(nothing).endswith(legend(nothing)[-1])


def test_iso_terms_are_named_in_the_legend_only(result):
    body, explained = str(result).split("\n\nFPR: share of different pairs")
    assert "FMR" not in body
    assert "FMR" in explained
    assert all(term in explained for term in ("FNMR", "EER", "d'", "Cllr"))
    assert max(map(len, str(result).splitlines())) <= 160
