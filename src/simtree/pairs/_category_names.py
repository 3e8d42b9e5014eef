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
    >>> CategoryName("colour", RARITY).condition(None, -4.0, 3)
    'colour different and rare (together at most 1 in 20.1)'
    """

    __slots__ = ("feature", "kind")
    feature: str
    kind: str

    def __new__(cls, feature: str, kind: str) -> CategoryName:
        labels = {EQUALITY: "{0} equal", RARITY: "rarity of {0}", RATIO: "evidence of values of {0}"}
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
        if self.kind == EQUALITY:
            is_equal, is_different = low is not None and low >= DIFFERENT, high is not None and high < EQUAL
            known = "different" if is_different else "equal" if is_equal else "missing in neither"
            return f"{self.feature} {known}"
        return self._rarity(low, high, digits)

    def _rarity(self, low: float | None, high: float | None, digits: int) -> str:
        """Return the condition on the rarity of a shared value, or of two different ones, which count below `NOT_SHARED`."""
        may_differ, may_be_shared = low is None or low < NOT_SHARED, high is None or high >= 0.0
        parts = []
        if may_differ:
            rare = None if high is None or high >= NOT_SHARED else f"at most {_one_in(NOT_SHARED - high, digits)}"
            common = None if low is None else f"more than {_one_in(NOT_SHARED - low, digits)}"
            parts.append(f"different{_bounds('together ', rare, common)}")
        if may_be_shared:
            rare = None if low is None or low < 0.0 else f"rarer than {_one_in(low, digits)}"
            common = None if high is None else f"at least {_one_in(high, digits)}"
            parts.append(f"shared{_bounds('', rare, common)}")
        if parts == ["different", "shared"]:
            return f"{self.feature} missing in neither"
        if parts == ["shared"]:
            return f"{self.feature} equal"
        said = ", or ".join(f"{self.feature} {part}" for part in parts)
        return f"({said})" if len(parts) > 1 else said


def _one_in(rarity: float, digits: int) -> str:
    return f"1 in {math.exp(rarity):.{digits}g}"


def _bounds(prefix: str, rare: str | None, common: str | None) -> str:
    """Return in words between which rarities values are; nothing if there are no bounds."""
    if rare is None and common is None:
        return ""
    return f" and {'rare' if rare else 'common'} ({prefix}{' and '.join(filter(None, (rare, common)))})"


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
