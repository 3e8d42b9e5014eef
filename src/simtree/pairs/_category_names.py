"""Coordinates of categories in words: "colour equal", "colour shared and rare"."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simtree._kernels.categories import DIFFERENT, EQUAL, NOT_SHARED

EQUALITY, RARITY, RATIO = "equality", "rarity", "ratio"


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
        """Return in words that the coordinate has a value of more than ``low`` and at most ``high``, None if it is unbounded.

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
        least, most = (NOT_SHARED, 0.0) if self.kind == RARITY else (DIFFERENT, EQUAL)
        is_shared, is_different = low is not None and low >= least, high is not None and high < most
        if is_different or (self.kind == EQUALITY and is_shared):
            return f"{self.feature} {'different' if is_different else 'equal'}"
        rare = None if low is None or low < 0.0 else f"rarer than 1 in {math.exp(low):.{digits}g}"
        common = None if high is None else f"at least 1 in {math.exp(high):.{digits}g}"
        if rare is None and common is None:
            return f"{self.feature} equal" if is_shared else f"{self.feature} missing in neither"
        shared = f"{self.feature} shared and {'rare' if rare else 'common'} ({' and '.join(filter(None, (rare, common)))})"
        return shared if is_shared else f"({self.feature} different, or {shared})"


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
