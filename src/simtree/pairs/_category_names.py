"""Coordinates of categories in words: "colour equal", "colour shared and rare"."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simtree._kernels.categories import BOTH_MISSING, DIFFERENT, EQUAL, ONE_MISSING, RARITY_SHIFT

EQUALITY, RARITY, RATIO = "equality", "rarity", "ratio"
STATES = (BOTH_MISSING, ONE_MISSING, DIFFERENT, EQUAL)
# States of a pair from the lowest to the highest value of its equality, by the first and the last that are meant.
WORDS = {
    (0, 0): "{0} missing in both",
    (0, 1): "{0} missing in one of the two or both",
    (0, 2): "{0} not equal",
    (0, 3): "{0} any",
    (1, 1): "{0} missing in one of the two",
    (1, 2): "{0} different or missing in one of the two",
    (1, 3): "{0} not missing in both",
    (2, 2): "{0} different",
    (2, 3): "{0} missing in neither",
    (3, 3): "{0} equal",
}


class CategoryName(str):
    """Name of a coordinate of a category, which also says in words what an interval of it means.

    Parameters
    ----------
    feature : str
        Name of the category.
    kind : {"equality", "rarity", "ratio"}
        Its coordinate.

    Examples
    --------
    >>> CategoryName("colour", EQUALITY).condition(0.5, None, 3)
    'colour equal'
    >>> CategoryName("colour", RARITY).condition(3.0, None, 3)
    'colour shared and rare (rarer than 1 in 20.1)'
    """

    __slots__ = ("feature", "kind")
    feature: str
    kind: str

    def __new__(cls, feature: str, kind: str) -> CategoryName:
        labels = {EQUALITY: "{0} equal", RARITY: "rarity of shared {0}", RATIO: "evidence of values of {0}"}
        made = super().__new__(cls, labels[kind].format(feature))
        made.feature, made.kind = feature, kind
        return made

    def condition(self, low: float | None, high: float | None, digits: int) -> str:
        """Return in words that the coordinate is more than ``low`` and at most ``high``, None if it is unbounded.

        Parameters
        ----------
        low, high : float or None
            The interval.
        digits : int
            Number of significant digits.

        Returns
        -------
        str
            The condition.
        """
        if self.kind == RATIO:
            lower = "" if low is None else f"{low:.{digits}g} < "
            upper = "" if high is None else f" <= {high:.{digits}g}"
            return f"{lower}{self}{upper}" if high is not None else f"{self} > {low:.{digits}g}"
        shift = RARITY_SHIFT if self.kind == RARITY else 0.0
        first = sum(low is not None and state + shift <= low for state in STATES[:3])
        if self.kind == EQUALITY:
            last = sum(high is None or state <= high for state in STATES) - 1
            return WORDS[first, max(last, first)].format(self.feature)
        if high is not None and high < 0.0:
            last = sum(state + shift <= high for state in STATES[:3]) - 1
            return WORDS[first, max(last, first)].format(self.feature)
        rare = None if low is None or low < 0.0 else f"rarer than 1 in {math.exp(low):.{digits}g}"
        common = None if high is None else f"at least 1 in {math.exp(high):.{digits}g}"
        if rare is None and common is None:
            return WORDS[first, 3].format(self.feature)
        shared = f"{self.feature} shared and {'rare' if rare else 'common'} ({' and '.join(filter(None, (rare, common)))})"
        return shared if rare or first == 3 else f"{WORDS[first, 2].format(self.feature)}, or {shared}"


def category_names(features: Sequence[str]) -> list[str]:
    """Return the names of the coordinates of categories, in their order.

    Parameters
    ----------
    features : sequence of str
        Names of the categories.

    Returns
    -------
    list of str
        All equalities, all rarities, then all ratios.
    """
    return [CategoryName(feature, kind) for kind in (EQUALITY, RARITY, RATIO) for feature in features]
