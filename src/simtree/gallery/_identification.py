"""Answers of a gallery: who a query may be, whether a claim holds, and how strangers fare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from simtree.evaluation._templates import LEARNED
from simtree.gallery._answers import Candidates, Verifications
from simtree.gallery._blocks import Numbers
from simtree.gallery._search import Search, best_identities, score_claims
from simtree.gallery._snapshot import Templates
from simtree.gallery._state import State
from simtree.gallery._strangers import N_KEPT, SearchTimes, Size, Strangers
from simtree.metrics import FloatArray


def identify(
    state: State,
    prepared: NDArray[np.floating],
    times: FloatArray,
    k: int,
    max_fpir: float | None,
    chosen: Numbers | None,
    search: Search = best_identities,
    keep_below: bool = False,
) -> Candidates:
    """Return the best identities for each query, among the chosen ones.

    Parameters
    ----------
    state : State
        The gallery, with its rows.
    prepared : ndarray of shape (n_queries, n_prepared)
        Prepared queries.
    times : ndarray of shape (n_queries,)
        When the queries were taken, in seconds since 1970.
    k : int
        Number of candidates per query.
    max_fpir : float or None
        Rate of alarms; None for candidates of any score.
    chosen : ndarray or None
        Numbers of the identities to search in; None for all.
    search : callable, default=best_identities
        Finds the best identities.
    keep_below : bool, default=False
        Whether candidates below the threshold are kept.

    Returns
    -------
    Candidates
        The answer.
    """
    templates = state.snapshot.templates if chosen is None else state.snapshot.templates.only(chosen)
    k = max(1, min(k, len(templates)))
    threshold = promise = None
    expected_fpir, rise = np.nan, state.max_rise(times)
    if max_fpir is not None:
        strangers = require_calibration(state)
        threshold, promise = strangers.threshold(max_fpir, state.size, rise), strangers.promise(max_fpir, state.size)
        expected_fpir = strangers.expected_fpir(threshold, state.size, rise)
    lowest = -np.inf if threshold is None or keep_below else threshold
    scores, places = search(state.model, state.fusion, prepared, templates, k, lowest, times=times)
    queries, columns = np.nonzero(places >= 0)
    found, of_found = places[queries, columns], scores[queries, columns]
    ranks = columns + 1
    whole = np.searchsorted(state.snapshot.templates.numbers, templates.numbers[found])
    return Candidates(
        queries,
        ranks,
        state.snapshot.names[whole],
        of_found,
        _probabilities(state, of_found, templates.sizes[found]),
        _expected_matches(state, of_found, len(templates), rise),
        threshold,
        promise,
        len(prepared),
        len(templates),
        state.size.n_identities,
        state.fingerprint,
        expected_fpir,
    )


def verify(state: State, prepared: NDArray[np.floating], times: FloatArray, numbers: Numbers) -> Verifications:
    """Return the fused score of each query with the identity of a number, and whether the model's threshold accepts it."""
    templates = state.snapshot.templates
    claims = np.searchsorted(templates.numbers, numbers)
    threshold = np.full(len(prepared), state.threshold)
    scores = score_claims(state.model, state.fusion, prepared, claims, templates, times=times)
    probability = _probabilities(state, scores, templates.sizes[claims])
    rise = state.max_rise(times)
    expected = _expected_matches(state, scores, len(templates), rise)
    rate = np.nan if state.strangers is None else state.strangers.expected_fpir(state.threshold, state.size, rise)
    return Verifications(
        state.snapshot.names[claims],
        scores,
        threshold,
        scores >= threshold,
        probability,
        expected,
        state.size.n_identities,
        state.fingerprint,
        rate,
    )


def search_strangers(
    state: State,
    prepared: NDArray[np.floating],
    times: FloatArray,
    people: NDArray[np.int64],
    max_fpir: float,
    confidence: float,
) -> Strangers:
    """Search for people who are not enrolled; raise if they are too few for the rate."""
    templates: Templates = state.snapshot.templates
    if not len(templates):
        raise ValueError("the gallery is empty, so that nobody can raise an alarm; enrol first.")
    size: Size = state.size
    nobody = Strangers(np.zeros(int(people.max()) + 1), np.empty(0), np.empty(0), max_fpir, confidence, size)
    nobody.threshold(max_fpir, size)  # refuses before the work, not after it
    n_kept = min(N_KEPT, len(templates))
    scores, _ = best_identities(state.model, state.fusion, prepared, templates, n_kept, times=times)
    when = SearchTimes(float(times.min()), float(times.max()), float(templates.times.max()))
    return Strangers.of(scores, people, max_fpir, confidence, size, when)


def require_calibration(state: State) -> Strangers:
    """Return what searches for strangers found; raise if there were none."""
    if state.strangers is None:
        raise ValueError("max_fpir needs a calibrated gallery; calibrate it with identities that are not enrolled.")
    return state.strangers


def _expected_matches(state: State, scores: FloatArray, n_searched: int, rise: float) -> FloatArray:
    """Return how many of the identities searched a stranger is expected to match with at least each score, if known."""
    if state.strangers is None:
        return np.full(len(scores), np.nan)
    return state.strangers.expected_matches(scores, n_searched, state.size, rise)


def _probabilities(state: State, scores: FloatArray, n_samples: Numbers) -> FloatArray:
    """Return calibrated probabilities; those of the model are for pairs: identities with several samples have none.

    What a learned fusion returns is a log-likelihood ratio for any number of samples.
    """
    if state.settings.fusion == LEARNED:
        return np.asarray(expit(scores))
    if not hasattr(state.model, "calibration_"):
        return np.full(len(scores), np.nan)
    return np.where(n_samples == 1, state.model.calibration_.probability(scores, 0.5), np.nan)
