"""Numbers and rules in words, for readers who do not know the terms of the field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from simtree._kernels.categories import N_COORDINATES
from simtree.evaluation._report import ThresholdRates, scale_of
from simtree.pairs._category_names import CategoryName
from simtree.pairs._coordinates import FEATURE_KINDS, PAIRWISE_KINDS, CoordinateSet
from simtree.trees._export import Condition, describe_region, inside_paths, merged_tests, with_missing
from simtree.trees._regions import AxisRegion, Region

# How a coordinate of each kind begins a condition, before "at most" or "more than".
BEGINNINGS = {
    "abs_diff": "{0} differs by",
    "sum": "the sum of both {0} is",
    "min": "the smaller {0} is",
    "max": "the larger {0} is",
    "product": "the product of both {0} is",
    "dot": "the dot product of both samples is",
    "cosine": "the cosine of both samples is",
    "euclidean": "the Euclidean distance of both samples is",
    "manhattan": "the sum of all differences is",
}
MAX_ALTERNATIVES = 6
NO_BREAK = "\N{NO-BREAK SPACE}"


def plain(value: float, digits: int = 3) -> str:
    """Return a number with some significant digits, without an exponent.

    Examples
    --------
    >>> plain(0.0000123456), plain(1234.5), plain(0.5)
    ('0.0000123', '1,230', '0.5')
    """
    rounded = Decimal(f"{value:.{digits}g}")
    return f"{rounded.normalize() if rounded % 1 else rounded.quantize(Decimal(1)):,f}"


def percent(rate: float) -> str:
    r"""Return a rate in percent, without a place to break the line at.

    Examples
    --------
    >>> percent(0.001234), percent(1.0), percent(0.0)
    ('0.123\xa0%', '100\xa0%', '0\xa0%')
    """
    return f"{plain(100.0 * rate)}{NO_BREAK}%"


def interval(low: float, high: float) -> str:
    r"""Return the ends of the interval of a rate.

    Examples
    --------
    >>> interval(0.01, 0.025)
    '1\xa0% to 2.5\xa0%'
    """
    return f"{percent(low)} to {percent(high)}"


def what_it_does(rates: ThresholdRates, confidence: float) -> list[str]:
    """Return what a threshold does to strangers and to the right people, in two sentences.

    Parameters
    ----------
    rates : ThresholdRates
        Rates at the threshold, with their intervals.
    confidence : float
        Confidence level of the intervals.

    Returns
    -------
    list of str
        The sentences.
    """
    sure = f"with {percent(confidence)} confidence"
    n = scale_of(rates.fpr if rates.fpr > 0.0 else rates.fpr_interval[1], at_least=1_000)
    accepted = f"about {round(rates.fpr * n):,}" if rates.fpr > 0.0 else "none in these data"
    most = math.ceil(rates.fpr_interval[1] * n - 1e-9)
    misses = 1.0 - rates.tpr
    m = scale_of(misses if misses > 0.0 else 1.0 - rates.tpr_interval[0], at_least=100)
    rejected = f"about {round(misses * m):,}" if misses > 0.0 else "none in these data"
    most_rejected = math.ceil((1.0 - rates.tpr_interval[0]) * m - 1e-9)
    return [
        f"Of {n:,} attempts by a stranger, {accepted} are accepted: at most {most:,} {sure}.",
        f"Of {m:,} attempts by the right person, {rejected} are rejected: at most {most_rejected:,} {sure}.",
    ]


def beginnings(pair_map: CoordinateSet, features: Sequence[str]) -> list[str]:
    """Return how a condition on each coordinate begins.

    Parameters
    ----------
    pair_map : CoordinateSet
        The coordinates.
    features : sequence of str
        Names of the features.

    Returns
    -------
    list of str
        One beginning per coordinate.

    Examples
    --------
    >>> beginnings(CoordinateSet(("abs_diff", "cosine"), 1), ["age"])
    ['age differs by', 'the cosine of both samples is']
    """
    columns = [*features[: pair_map.n_features], *(f"combination {k} of features" for k in range(len(pair_map.directions)))]
    kinds = {kind.code: name for name, kind in FEATURE_KINDS.items()}
    pairwise = [name for name in pair_map.kinds if name in PAIRWISE_KINDS]
    n_plain = len(pair_map) - N_COORDINATES * pair_map.n_categories
    coordinates = zip(pair_map.kind_codes[:n_plain], pair_map.columns[:n_plain], pair_map.is_pairwise[:n_plain], strict=True)
    named = [
        BEGINNINGS[pairwise[column]] if alone else BEGINNINGS[kinds[int(code)]].format(columns[column])
        for code, column, alone in coordinates
    ]
    return [*named, *pair_map.names(features)[n_plain:]]


def rule_in_words(region: Region, pair_map: CoordinateSet, features: Sequence[str]) -> list[str]:
    """Return the alternatives for a pair to be inside a region, each a conjunction of conditions in words.

    Parameters
    ----------
    region : Region
        The region.
    pair_map : CoordinateSet
        Coordinates that it tests.
    features : sequence of str
        Names of the features.

    Returns
    -------
    list of str
        The alternatives. Regions that are not tests of single coordinates are described by their formula.
    """
    if not isinstance(region, AxisRegion):
        return describe_region(region, pair_map.names(features), subjects=pair_map.subjects(features))
    begin, subjects = beginnings(pair_map, features), pair_map.subjects(features)
    paths = list(inside_paths(region))
    rules = [
        " and ".join(_condition(begin, subjects, condition) for condition in merged_tests(path))
        for path in paths[:MAX_ALTERNATIVES]
    ]
    more = len(paths) - MAX_ALTERNATIVES
    return [*rules, f"one of {more} more rules holds"] if more > 0 else rules


def opposite_in_words(region: Region, pair_map: CoordinateSet, features: Sequence[str]) -> str | None:
    """Return the condition for a pair to be outside a region of one test; None for other regions.

    Parameters
    ----------
    region : Region
        The region.
    pair_map : CoordinateSet
        Coordinates that it tests.
    features : sequence of str
        Names of the features.

    Returns
    -------
    str or None
        The condition.
    """
    if not isinstance(region, AxisRegion) or len(region.coordinate) != 1:
        return None
    opposite = replace(region, if_le=region.if_gt, if_gt=region.if_le)
    ((condition,),) = (merged_tests(path) for path in inside_paths(opposite))
    return _condition(beginnings(pair_map, features), pair_map.subjects(features), condition)


def _condition(begin: Sequence[str], subjects: Sequence[str | None], condition: Condition) -> str:
    """Return a condition in words."""
    coordinate, low, high, *_ = condition
    beginning = begin[coordinate]
    if isinstance(beginning, CategoryName):
        values = "" if low is None and high is None else beginning.condition(low, high, 3)
        return with_missing(condition, values, subjects[coordinate])
    values = beginning + (
        f" more than {low:.4g} and at most {high:.4g}"
        if low is not None and high is not None
        else f" at most {high:.4g}"
        if high is not None
        else f" more than {low:.4g}"
        if low is not None
        else ""
    )
    return with_missing(condition, values, subjects[coordinate])
