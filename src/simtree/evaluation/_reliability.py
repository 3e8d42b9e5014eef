"""Reasons to doubt intervals: few identities that bring most pairs or stand out from the others, and few sessions.

Coverage is measured in docs/intervals.md. A reason names what dominates, so that the reader knows which data to add.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import kurtosis, skew

from simtree._utils.validation import count
from simtree.evaluation._intervals import CurveTallies
from simtree.evaluation._normal_scores import nearest_level, normal_scores
from simtree.evaluation._search_rates import SearchRates
from simtree.evaluation._tallies import PairTally
from simtree.metrics import FloatArray

# Fewer units or sessions than this carry no interval that could be checked.
MIN_UNITS, MIN_SESSIONS = 10, 20
# Few units bring most pairs if this share of them would be as informative with equal weights (Kish), and at most this many.
MAX_EVEN_SHARE, MAX_EVEN = 1.0 / 3.0, 50.0
# Units are very unequal if the skewness of the normal scores of how often each is accepted, or the weight of their tails,
# exceeds a constant plus a share of 1 / n_units.
MAX_SKEWNESS, MAX_SKEWNESS_PER_UNIT = 1.25, 4.0
MAX_TAILS, MAX_TAILS_PER_UNIT = 0.6, 30.0

OF_SEARCHES = "sessions are not accounted for in the intervals of rank 1 and FNIR."


def find_doubts(tallies: CurveTallies, searches: SearchRates | None, place: int, unit: str) -> tuple[str, ...]:
    """Return the reasons why some intervals may be too narrow.

    Parameters
    ----------
    tallies : CurveTallies
        Counts of same and different pairs.
    searches : SearchRates or None
        Result of searches.
    place : int
        Index of the threshold in use.
    unit : str
        What the units are called.

    Returns
    -------
    tuple of str
        Sentences; empty if there is no reason.
    """
    if tallies.same.independent:
        return ()
    found = []
    n_units = max(tallies.same.n_active, tallies.different.n_active)
    if n_units < MIN_UNITS:
        found.append(f"there are only {n_units} {unit}, so all intervals may be too narrow; give data of at least {MIN_UNITS}.")
    for tally, kind, what in ((tallies.same, "same", "TPR, EER and AUC"), (tallies.different, "different", "FPR")):
        reason = _few_bring_most(tally)
        if reason is not None:
            found.append(f"{reason} {unit} bring half of the {kind} pairs, so intervals of the {what} may be too narrow.")
    skewness, tails = unit_shape(tallies.different)
    is_skewed = abs(skewness) > MAX_SKEWNESS + MAX_SKEWNESS_PER_UNIT / n_units
    if is_skewed or tails > MAX_TAILS + MAX_TAILS_PER_UNIT / n_units:
        found.append(_standing_out(tallies, searches, np.sign(skewness) if is_skewed else 0.0, place, unit))
    sessions = tallies.different.by_session
    if sessions is not None:
        n_sessions = int(np.count_nonzero(sessions.weights))
        if n_sessions < MIN_SESSIONS:
            found.append(
                f"there are only {count(n_sessions, 'session')}, so intervals for new sessions may be too narrow; give data of "
                f"at least {MIN_SESSIONS}."
            )
        if searches is not None:
            found.append(OF_SEARCHES)
    return tuple(found)


def _few_bring_most(tally: PairTally) -> str | None:
    """Return how many units bring half of the pairs if these are few."""
    n_even = tally.influence().n_even
    if n_even >= MAX_EVEN or n_even >= MAX_EVEN_SHARE * tally.n_active:
        return None
    weights = tally.by_unit.weights
    return f"{_n_for_half(weights)} of {tally.n_active}"


def unit_shape(tally: PairTally) -> tuple[float, float]:
    """Return the shape of the distribution of how often units are accepted with others, as normal scores.

    Parameters
    ----------
    tally : PairTally
        Counts of different pairs.

    Returns
    -------
    skewness : float
        Skewness.
    tails : float
        Excess kurtosis minus twice the squared skewness: about 0 for normal and log-normal scores, which are merely skewed, and
        positive if both tails are heavy.

    Notes
    -----
    Both do not change with increasing functions of the scores, and are 0 where they cannot be judged.
    """
    level = nearest_level(tally.rates[:-1])
    if level is None:
        return 0.0, 0.0
    active = tally.by_unit.weights > 0.0
    scores = normal_scores(tally.by_unit.rates(level)[active], 2.0 * tally.n_unit_pairs / max(tally.n_active, 1))
    if scores is None:
        return 0.0, 0.0
    skewness = float(skew(scores))
    return skewness, float(kurtosis(scores)) - 2.0 * skewness**2


def _standing_out(tallies: CurveTallies, searches: SearchRates | None, sign: float, place: int, unit: str) -> str:
    """Return the sentence on units that are accepted far more (1), less (-1), or either (0), often with others than most."""
    n_units = tallies.different.n_active
    how = {1.0: "more", -1.0: "less", 0.0: "more or far less"}[float(sign)]
    what = f"some {unit} are mistaken for others far {how} often than most"
    if sign >= 0.0:
        accepted = np.nan_to_num(tallies.different.by_unit.rates(place)) * tallies.different.by_unit.weights
        who = f"{_n_for_half(accepted)} of {n_units} {unit} bring half of the false positives" if accepted.any() else ""
        hub = 0.0 if searches is None else searches.largest_hub()
        search = f"one is the best wrong match of {100 * hub:.0f} % of the searches" if hub > 0.25 else ""
        named = " and ".join(filter(None, [who, search]))
        what += f" ({named})" if named else ""
    return (
        f"{what}; new {unit} may be still more extreme, so intervals of the FPR, rank 1 and FNIR, and of rates at low FPRs, "
        "may be too narrow."
    )


def _n_for_half(shares: FloatArray) -> int:
    """Return how many of the largest shares make up half of their sum."""
    summed = np.cumsum(np.sort(shares)[::-1])
    return int(np.searchsorted(summed, summed[-1] / 2.0)) + 1
