"""Open set: how often a search for a stranger raises an alarm, from searches for people who are not enrolled.

One maximum per person: the highest score of all samples of the person with all identities. People are drawn independently, so
the number of maxima above a fixed score is binomial, and an order statistic of the maxima bounds the rate without any
assumption about scores: among n people the (j + 1)-th highest maximum is exceeded by more than a share of the population with
a probability of at most P(Binomial(n, share) <= j).

**When the gallery grows**, the allowed rate shrinks in proportion. The rate of alarms of a random part of a gallery is a
concave function of its size, because an alarm that two identities raise together counts once. So it grows at most in
proportion, if those who are enrolled later are like those before; that is the assumption. Whoever was removed still counts.
With fusion "max" a new sample raises alarms of its own, beside those of the samples before, so samples are counted as well.
With all other fusions it makes another template of the identity, which counts as a new one; the old one does not count less.

**When time passes**, a learned fusion may raise the scores with all identities, because their samples have become older. It
raises none by more than `LearnedFusion.max_rise`: the threshold is raised by as much, so that who is above it would have been
above the threshold of the calibration at that time. No assumption is needed.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from simtree._utils.validation import check_real
from simtree.evaluation._learned_fusion import LearnedFusion
from simtree.evaluation._model_fusion import ModelFusion
from simtree.gallery._store import Connection
from simtree.metrics import FloatArray

# Number of identities per search whose scores are kept, to tell how many false matches are expected.
N_KEPT = 20
# Relative error of sums of floats, by which scores that time has raised may exceed their bound.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Size:
    """How much was ever enrolled in a gallery, and how much it holds.

    Parameters
    ----------
    n_identities, n_samples : int
        Numbers of identities and samples in the gallery.
    n_identities_added, n_samples_added : int
        Numbers of all that were ever added.
    n_templates_changed : int
        How often more samples of an identity were enrolled; not counted with fusion "max".
    """

    n_identities: int
    n_samples: int
    n_identities_added: int
    n_samples_added: int
    n_templates_changed: int = 0


@dataclass(frozen=True)
class SearchTimes:
    """When strangers were searched for; without arguments, nothing is known about it.

    Parameters
    ----------
    earliest, latest : float
        When the first and the last of their samples was taken.
    newest : float
        When the newest enrolled sample was taken.
    """

    earliest: float = -math.inf
    latest: float = math.inf
    newest: float = math.inf

    def max_rise(self, fusion: ModelFusion, times: FloatArray) -> float:
        """Return by how much scores of searches at other times can exceed those of these searches, at most."""
        if not isinstance(fusion, LearnedFusion) or fusion.of_age == 0.0 or not len(times):
            return 0.0
        if fusion.of_age > 0.0:  # scores rise as samples age
            first, last = self.earliest, float(times.max())
        else:  # or if queries are from before
            first, last = float(times.min()), self.latest
        return fusion.max_rise(max(0.0, last - first), first - self.newest)


@dataclass(frozen=True)
class Strangers:
    """Results of searches for people who are not enrolled.

    Parameters
    ----------
    maxima : ndarray of shape (n_people,)
        Highest score of each person, in decreasing order.
    scores, weights : ndarrays of shape (n_scores,)
        The highest scores of each search in decreasing order; the weights of a person sum to the number of scores per search.
    max_fpir, confidence : float
        The rate that was asked for, and the confidence level.
    size : Size
        Size of the gallery that was searched.
    times : SearchTimes
        When it was searched.

    Examples
    --------
    >>> size = Size(100, 100, 100, 100)
    >>> searches = Strangers(np.arange(59.0)[::-1], np.empty(0), np.empty(0), 0.05, 0.95, size)
    >>> searches.threshold(0.05, size) > 58.0
    True
    """

    maxima: FloatArray
    scores: FloatArray
    weights: FloatArray
    max_fpir: float
    confidence: float
    size: Size
    times: SearchTimes = SearchTimes()

    @classmethod
    def of(
        cls,
        found: FloatArray,
        people: NDArray[np.int64],
        max_fpir: float,
        confidence: float,
        size: Size,
        times: SearchTimes | None = None,
    ) -> Self:
        """Return the results of searches.

        Parameters
        ----------
        found : ndarray of shape (n_searches, n_best)
            The best scores of each search in decreasing order, -inf where there are no more.
        people : ndarray of shape (n_searches,)
            Person of each search, numbered from 0.
        max_fpir, confidence : float
            The rate that is asked for, and the confidence level.
        size : Size
            Size of the gallery that was searched.
        times : SearchTimes, optional
            When it was searched; unknown, if None.

        Returns
        -------
        Strangers
            The results.
        """
        n_people = int(people.max()) + 1
        maxima = np.full(n_people, -np.inf)
        np.maximum.at(maxima, people, found[:, 0])
        share = 1.0 / (n_people * np.bincount(people)[people])
        scores, weights = found.ravel(), np.repeat(share, found.shape[1])
        order = np.argsort(-scores, kind="stable")[: np.count_nonzero(np.isfinite(scores))]
        return cls(np.sort(maxima)[::-1], scores[order], weights[order], max_fpir, confidence, size, times or SearchTimes())

    def growth(self, size: Size) -> float:
        """Return how many times more may raise an alarm than when the gallery was searched: templates or samples."""
        then = self.size
        # However often they were changed, no more templates can be others than there were.
        n_changed = min(size.n_templates_changed - then.n_templates_changed, then.n_identities)
        of_identities = (size.n_identities_added - then.n_identities_added + n_changed) / then.n_identities
        of_samples = (size.n_samples_added - then.n_samples_added) / then.n_samples
        return 1.0 + max(of_identities, of_samples)

    def threshold(self, max_fpir: float, size: Size, rise: float = 0.0) -> float:
        """Return the threshold that keeps the rate of alarms in a gallery of some size; raise if people are too few.

        ``rise`` is by how much scores can have risen since, see `SearchTimes.max_rise`.
        """
        check_rate(max_fpir)
        growth = self.growth(size)
        n_allowed = n_above(len(self.maxima), max_fpir / growth, self.confidence)
        if n_allowed < 0:
            raise ValueError(self._refusal(max_fpir, growth))
        return self._above(n_allowed, rise)

    def strictest_threshold(self, size: Size, rise: float = 0.0) -> float:
        """Return the threshold for the rate of the calibration or, if the gallery has outgrown it, the highest there is."""
        n_allowed = n_above(len(self.maxima), self.max_fpir / self.growth(size), self.confidence)
        return self._above(max(0, n_allowed), rise)

    def _above(self, n_allowed: int, rise: float) -> float:
        """Return the lowest threshold that so many people reach, and no more, after scores have risen."""
        highest = float(self.maxima[n_allowed])
        return float(np.nextafter(highest, np.inf)) if rise == 0.0 else highest + rise + ROUNDING * (abs(highest) + rise)

    def expected_matches(self, scores: FloatArray, n_searched: int, size: Size, rise: float = 0.0) -> FloatArray:
        """Return the number of identities that a stranger is expected to match with at least each score.

        Counted are the best identities of each search, at most `N_KEPT`; the number grows with the gallery.
        """
        cumulated = np.append(0.0, np.cumsum(self.weights))
        reached = np.searchsorted(-self.scores, rise - scores, side="right")
        return np.asarray(cumulated[reached] * self.growth(size) * n_searched / max(1, size.n_identities))

    def expected_fpir(self, threshold: float, size: Size, rise: float = 0.0) -> float:
        """Return the share of strangers who are expected to have a candidate of at least some score.

        It is the mean over all samples of n strangers: a threshold just above the highest of their maxima is exceeded by the
        next stranger with a probability of 1 / (n + 1).
        """
        n_above = np.count_nonzero(self.maxima >= threshold - rise)
        return float(min(1.0, self.growth(size) * (n_above + 1) / (len(self.maxima) + 1)))

    def promise(self, max_fpir: float, size: Size) -> str:
        """Return what holds for the threshold, in words."""
        growth = self.growth(size)
        grown = f", assuming that what was enrolled since is like what was before (x {growth:.3g})" if growth > 1.0 else ""
        return (
            f"FPIR <= {max_fpir:g} with {100 * self.confidence:g} % confidence for strangers like the {len(self.maxima):,} "
            f"searched{grown}"
        )

    def _refusal(self, max_fpir: float, growth: float) -> str:
        n, needed = len(self.maxima), n_people_for(max_fpir / growth, self.confidence)
        lowest = growth * (1.0 - (1.0 - self.confidence) ** (1.0 / n))
        grown = f" in a gallery that grew {growth:.3g}-fold since its calibration" if growth > 1.0 else ""
        possible = f", or allow {_rounded_up(lowest):g}" if lowest < 1.0 else ""
        return (
            f"max_fpir={max_fpir:g} at confidence={self.confidence:g} takes {needed:,} identities that are not enrolled"
            f"{grown}, and there are {n:,}; calibrate with more identities{possible}."
        )

    def write(self, connection: Connection) -> None:
        """Write the results into a gallery, instead of earlier ones."""
        connection.execute("DELETE FROM strangers")
        content = json.dumps(
            {"max_fpir": self.max_fpir, "confidence": self.confidence, "size": vars(self.size), "times": vars(self.times)}
        )
        arrays = (np.ascontiguousarray(array, dtype="<f8").tobytes() for array in (self.maxima, self.scores, self.weights))
        connection.execute("INSERT INTO strangers VALUES (?, ?, ?, ?)", (content, *arrays))

    @classmethod
    def read(cls, connection: Connection) -> Self | None:
        """Return the results in a gallery, if there are any."""
        row = connection.execute("SELECT content, maxima, scores, weights FROM strangers").fetchone()
        if row is None:
            return None
        content: dict[str, Any] = json.loads(row[0])
        maxima, scores, weights = (np.frombuffer(part, dtype="<f8").astype(np.float64) for part in row[1:])
        times = SearchTimes(**content.get("times", {}))  # those of before did not note them
        return cls(maxima, scores, weights, content["max_fpir"], content["confidence"], Size(**content["size"]), times)


def check_rate(max_fpir: float) -> float:
    """Return a rate of alarms if it is one."""
    return check_real("max_fpir", max_fpir, 0.0, 1.0, open_low=True, open_high=True)


def n_above(n_people: int, rate: float, confidence: float) -> int:
    """Return how many of the maxima may lie above a threshold that promises a rate; -1 if there are too few people.

    Examples
    --------
    >>> n_above(58, 0.05, 0.95), n_above(59, 0.05, 0.95), n_above(299, 0.01, 0.95), n_above(1000, 0.05, 0.95)
    (-1, 0, 0, 38)
    """
    counts = np.arange(n_people)
    return int(np.count_nonzero(bdtr(counts, n_people, rate) <= 1.0 - confidence)) - 1


def n_people_for(rate: float, confidence: float) -> int:
    """Return the minimum number of people that can support the claim FPIR <= rate.

    Examples
    --------
    >>> n_people_for(0.05, 0.95), n_people_for(0.01, 0.95)
    (59, 299)
    """
    return math.ceil(math.log1p(-confidence) / math.log1p(-rate))


def _rounded_up(rate: float) -> float:
    """Return a rate with two digits that is not lower."""
    step = 10.0 ** (math.floor(math.log10(rate)) - 1)
    return math.ceil(rate / step) * step
