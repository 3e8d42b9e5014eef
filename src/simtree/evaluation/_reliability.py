"""Reasons to doubt intervals: few identities that bring most pairs or most of the uncertainty, and few sessions.

Coverage is measured in docs/intervals.md. A reason names what dominates, so that the reader knows which data to add.
"""

from __future__ import annotations

import numpy as np

from simtree._utils.validation import count
from simtree.evaluation._intervals import CurveTallies
from simtree.evaluation._searching import SearchCounts
from simtree.evaluation._tallies import Influence, PairTally
from simtree.metrics import FloatArray

# Fewer units or sessions than this carry no interval that could be checked.
MIN_UNITS, MIN_SESSIONS = 10, 20
# Few units bring most pairs if this share of them would be as informative with equal weights (Kish), and at most this many.
MAX_EVEN_SHARE, MAX_EVEN = 1.0 / 3.0, 50.0
# Relative standard error from which on a rate rests on few units: a constant, and a share of 1 / n_units.
MAX_ERROR, MAX_ERROR_PER_UNIT = 0.7, 7.0
# Share of searches from which on one unit decides their result: a constant, and a share of 1 / n_units.
MAX_HUB, MAX_HUB_PER_UNIT = 0.6, 5.0

OF_SEARCHES = "sessions are not accounted for in the intervals of rank 1 and FNIR."


def find_doubts(tallies: CurveTallies, searches: SearchCounts | None, eer: float, place: int, unit: str) -> tuple[str, ...]:
    """Return the reasons why some intervals may be too narrow.

    Parameters
    ----------
    tallies : CurveTallies
        Counts of same and different pairs.
    searches : SearchCounts or None
        Result of searches.
    eer : float
        Equal error rate.
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
    fpr = float(tallies.different.rates[place])
    auc = 1.0 - float(tallies.same.rates[-1])
    for influence, value, name in (
        (tallies.different.influence().at([place]), fpr, "the FPR at the threshold"),
        (tallies.eer_influence(eer), eer, "the EER"),
        (tallies.influence(), auc, "the AUC"),
    ):
        reason = _few_dominate(influence, value)
        if reason is not None:
            found.append(f"{reason} {unit} make up half of the variance of {name}, so its interval may be too narrow.")
    hub = 0.0 if searches is None else searches.largest_hub()
    if hub > MAX_HUB + MAX_HUB_PER_UNIT / n_units:
        found.append(
            f"one of {n_units} {unit} is the best wrong match of {100 * hub:.0f} % of the searches, so intervals of rank 1 and "
            "FNIR may be too narrow."
        )
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


def _few_dominate(influence: Influence, value: float) -> str | None:
    """Return how many units make up half of the variance if the relative standard error says that they are few."""
    spread = value * (1.0 - value)
    limit = MAX_ERROR + MAX_ERROR_PER_UNIT / max(influence.n_units, 1)
    if spread <= 0.0 or not float(np.sqrt(influence.variance()[0][0])) / spread > limit:
        return None
    return f"{_n_for_half(influence.units[:, 0] ** 2)} of {influence.n_units}"


def _n_for_half(shares: FloatArray) -> int:
    """Return how many of the largest shares make up half of their sum."""
    summed = np.cumsum(np.sort(shares)[::-1])
    return int(np.searchsorted(summed, summed[-1] / 2.0)) + 1
